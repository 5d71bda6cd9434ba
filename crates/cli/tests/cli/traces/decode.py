"""Decodes a Perfetto trace with the protos of PyPI's `perfetto`, and tells what is in it.

Fails where a packet has a field that the protos do not know, a number that nothing gave a text to, a track
that is not described, an end without a begin, or counters whose times go backwards.
"""

import sys
from collections import Counter

try:
    from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as protos
    from google.protobuf import unknown_fields
except ImportError as error:
    print(f"MISSING {error}")
    sys.exit(0)

BEGIN, END, INSTANT, COUNTER = 1, 2, 3, 4


def check_known(message, path="packet"):
    unknown = unknown_fields.UnknownFieldSet(message)
    assert len(unknown) == 0, f"{path} has unknown fields {[field.field_number for field in unknown]}"
    for field, value in message.ListFields():
        if field.type == field.TYPE_MESSAGE:
            for one in value if field.is_repeated else [value]:
                check_known(one, f"{path}.{field.name}")


def annotation_value(annotation, texts):
    if annotation.dict_entries:
        return {key(one): annotation_value(one, texts) for one in annotation.dict_entries}
    if annotation.HasField("string_value_iid"):
        return texts[annotation.string_value_iid]
    return getattr(annotation, annotation.WhichOneof("value"))


def key(annotation):
    return annotation.name if annotation.HasField("name") else KEYS[annotation.name_iid]


trace = protos.Trace()
with open(sys.argv[1], "rb") as file:
    trace.ParseFromString(file.read())
check_known(trace, "trace")

tracks, names, texts, categories, KEYS = {}, {}, {}, {}, {}
events, counters, flows, flow_ends = [], Counter(), set(), set()
clocks = []
for packet in trace.packet:
    assert packet.trusted_packet_sequence_id == 1
    for table, entries in [
        (names, packet.interned_data.event_names),
        (categories, packet.interned_data.event_categories),
        (KEYS, packet.interned_data.debug_annotation_names),
    ]:
        for entry in entries:
            assert table.setdefault(entry.iid, entry.name) == entry.name
    for entry in packet.interned_data.debug_annotation_string_values:
        texts[entry.iid] = entry.str.decode()
    if packet.HasField("clock_snapshot"):
        clocks = [clock.clock_id for clock in packet.clock_snapshot.clocks]
        assert packet.clock_snapshot.primary_trace_clock in clocks
    if packet.HasField("trace_packet_defaults"):
        assert packet.sequence_flags == 1 and packet.trace_packet_defaults.timestamp_clock_id in clocks
    if packet.HasField("track_descriptor"):
        track = packet.track_descriptor
        assert track.uuid not in tracks
        assert not track.parent_uuid or track.parent_uuid in tracks, "a parent is described first"
        tracks[track.uuid] = track
    if packet.HasField("track_event"):
        event = packet.track_event
        assert packet.sequence_flags == 2 and event.track_uuid in tracks
        annotations = {key(one): annotation_value(one, texts) for one in event.debug_annotations}
        name = names[event.name_iid] if event.name_iid else ""
        category = categories[event.category_iids[0]] if event.category_iids else ""
        events.append((packet.timestamp, event.type, event.track_uuid, name, category, annotations, event))
        flows.update(event.flow_ids)
        flow_ends.update(event.terminating_flow_ids)
assert flow_ends <= flows, "an arrow ends that does not begin"


def path(uuid):
    track = tracks[uuid]
    above = f"{path(track.parent_uuid)} / " if track.parent_uuid else ""
    if track.HasField("thread"):
        above = "kernel threads / " if track.thread.pid == 2 else "program / "
    return above + track.name


# As `trace_processor` does: by time, and in the order of the file where times are the same.
open_slices, spent, counts, seen = {}, Counter(), Counter(), {}
for at, kind, uuid, name, category, annotations, event in sorted(events, key=lambda event: event[0]):
    stack = open_slices.setdefault(uuid, [])
    if kind == BEGIN:
        place = " > ".join([*(one[1] for one in stack), name])
        stack.append((at, name, place))
        counts[path(uuid), category, place] += 1
    elif kind == END:
        assert stack, f"{path(uuid)}: an end without a begin at {at}"
        began, _, place = stack.pop()
        spent[path(uuid), place] += at - began
    elif kind == INSTANT:
        counts[path(uuid), category, "* " + name] += 1
    elif kind == COUNTER:
        assert tracks[uuid].HasField("counter") and seen.get(uuid, -1) < at
        seen[uuid] = at
        counters[uuid] += 1

print(f"{len(trace.packet)} packets, {len(tracks)} tracks, clocks {clocks}, {len(flow_ends)} of {len(flows)} arrows end")
for (track, category, place), count in sorted(counts.items()):
    print(f"{track} | {category} | {place} | {count} | {spent[track, place]} ns")
for stack in open_slices.values():
    for at, name, place in stack:
        print(f"open since {at}: {place}")
headings = Counter()
for uuid, count in counters.items():
    counter = tracks[uuid].counter
    unit = counter.unit_name or f"{counter.unit_multiplier} bytes"
    headings[tracks[tracks[uuid].parent_uuid].name, unit] += 1
for (heading, unit), count in sorted(headings.items()):
    print(f"{heading}: {count} counters in {unit}")
if len(sys.argv) > 2:
    for at, kind, uuid, name, category, annotations, event in events:
        if kind != COUNTER:
            print(at, kind, path(uuid), name, category, annotations)
