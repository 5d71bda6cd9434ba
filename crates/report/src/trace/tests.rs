//! Drawn runs as traces, read back packet by packet.

use std::collections::BTreeMap;
use std::fmt::Write;

use recording::{Chunk, Event, Names, OomKill, Phase, Recording, Series, Wait, WaitEnd, WaitKind};

use super::ftrace::FtraceText;
use super::perfetto::PerfettoTrace;
use super::{RunTrace, TraceFormat};

/// A field as it stands in a message.
enum Field<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in (0..).step_by(7) {
        let (first, rest) = bytes.split_first().expect("a number ends");
        *bytes = rest;
        value |= u64::from(first & 0x7f) << shift;
        if *first < 0x80 {
            break;
        }
    }
    value
}

fn fields(mut bytes: &[u8]) -> Vec<(u64, Field<'_>)> {
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let tag = varint(&mut bytes);
        let field = match tag & 7 {
            0 => Field::Number(varint(&mut bytes)),
            1 => {
                let (number, rest) = bytes.split_at(8);
                bytes = rest;
                Field::Number(u64::from_le_bytes(number.try_into().unwrap()))
            }
            2 => {
                let length = varint(&mut bytes) as usize;
                let (content, rest) = bytes.split_at(length);
                bytes = rest;
                Field::Bytes(content)
            }
            wire => panic!("wire type {wire}"),
        };
        fields.push((tag >> 3, field));
    }
    fields
}

fn number(message: &[u8], field: u64) -> Option<u64> {
    fields(message).iter().rev().find_map(|(number, value)| match value {
        Field::Number(value) if *number == field => Some(*value),
        _ => None,
    })
}

fn parts(message: &[u8], field: u64) -> Vec<&[u8]> {
    let part = |(number, value)| match value {
        Field::Bytes(bytes) if number == field => Some(bytes),
        _ => None,
    };
    fields(message).into_iter().filter_map(part).collect()
}

fn text(message: &[u8], field: u64) -> Option<String> {
    parts(message, field).last().map(|bytes| String::from_utf8(bytes.to_vec()).unwrap())
}

/// What packets have numbered so far, by the field of `InternedData`.
type Numbered = BTreeMap<(u64, u64), String>;

/// One line for each packet.
fn shown(trace: &[u8]) -> String {
    let mut lines = String::new();
    let (mut numbered, mut tracks) = (Numbered::new(), BTreeMap::new());
    for packet in parts(trace, 1) {
        for interned in parts(packet, 12) {
            for (table, entry) in fields(interned) {
                let Field::Bytes(entry) = entry else { panic!("an entry is a message") };
                numbered.insert((table, number(entry, 1).unwrap()), text(entry, 2).unwrap());
            }
        }
        for track in parts(packet, 60) {
            let name = text(track, 2).unwrap();
            let parent = number(track, 5).map_or(String::new(), |uuid| format!("{} / ", tracks[&uuid]));
            let kinds = [(3, " (process)"), (4, " (thread)"), (8, " (counter)")];
            let kind = kinds.iter().find(|(field, _)| !parts(track, *field).is_empty());
            writeln!(lines, "track {parent}{name}{}", kind.map_or("", |(_, kind)| kind)).unwrap();
            tracks.insert(number(track, 1).unwrap(), format!("{parent}{name}"));
        }
        for event in parts(packet, 11) {
            let at = number(packet, 8).unwrap();
            let name = |table, field| number(event, field).map(|number| numbered[&(table, number)].as_str());
            let kind = ["", "begin", "end", "instant", "count"][number(event, 9).unwrap() as usize];
            write!(lines, "{at} {} | {kind}", tracks[&number(event, 11).unwrap()]).unwrap();
            if let (Some(name), Some(category)) = (name(2, 10), name(1, 3)) {
                write!(lines, " {name} [{category}]").unwrap();
            }
            for annotation in parts(event, 4) {
                write!(lines, " {}", annotated(annotation, &numbered)).unwrap();
            }
            for (field, way) in [(47, "->"), (48, "<-")] {
                if let Some(arrow) = number(event, field) {
                    write!(lines, " {way}{arrow}").unwrap();
                }
            }
            if let Some(value) = number(event, 30) {
                write!(lines, " {value}").unwrap();
            }
            if let Some(bits) = number(event, 44) {
                write!(lines, " {}", f64::from_bits(bits)).unwrap();
            }
            lines.push('\n');
        }
    }
    lines
}

fn annotated(annotation: &[u8], numbered: &Numbered) -> String {
    let key = text(annotation, 10).or_else(|| Some(numbered[&(3, number(annotation, 1)?)].clone()));
    let entries = parts(annotation, 11);
    let value = if !entries.is_empty() {
        let entries: Vec<String> = entries.iter().map(|entry| annotated(entry, numbered)).collect();
        format!("{{{}}}", entries.join(" "))
    } else if let Some(text) = text(annotation, 6) {
        format!("{text:?}")
    } else if let Some(id) = number(annotation, 17) {
        format!("{:?}", numbered[&(29, id)])
    } else if let Some(bits) = number(annotation, 5) {
        f64::from_bits(bits).to_string()
    } else {
        number(annotation, 4).unwrap().cast_signed().to_string()
    };
    format!("{}={value}", key.unwrap())
}

fn run() -> Recording {
    Recording { simulated_ns: 9000, ..Recording::new("vanilla", "reading", "sim", "linux-6.12", 7) }
}

#[test]
fn a_run_without_events_has_phases_sums_of_waits_kills_and_counters() {
    let wait = |phase: &str, task: &str, kind, count: u64| Wait {
        phase: phase.into(),
        task: task.into(),
        wait: "congestion_wait".into(),
        within: "allocation stall".into(),
        on: "any write".into(),
        kind,
        ended: WaitEnd::Timeout,
        futile: Some(true),
        count,
        spent_ns: 10 * count,
        longest_ns: 10,
        ..Wait::default()
    };
    let phase = |name: &str, at_ns| Phase { name: name.into(), at_ns, vmstat: BTreeMap::new() };
    let columns = ["nr_free_pages", "pgscan_direct", "cg_A_current"].map(String::from).to_vec();
    let kill = OomKill { at_ns: 8000, task: "reader-1".into(), why: vec!["no".into()], ..OomKill::default() };
    let recording = Recording {
        phases: vec![phase("laid out", 1000), phase("read", 9000)],
        waits: vec![
            wait("read", "reader-1", WaitKind::Writes, 3),
            wait("laid out", "kswapd0", WaitKind::Idle, 1),
        ],
        series: Series::new(
            columns,
            vec![(0, vec![500, 0, 8]), (1000, vec![500, 2, 9]), (9000, vec![7, 2, 10])],
        ),
        oom_kills: vec![kill],
        memcg: BTreeMap::from([("A".into(), BTreeMap::new())]),
        ..run()
    };
    insta::assert_snapshot!(shown(&PerfettoTrace::new(&recording, false).take()), @r#"
    track run
    0 run | begin reading on linux-6.12 [run] label="vanilla" backend="sim" seed="7" scenario=""
    0 run | begin laid out [run]
    1000 run | end
    1000 run | begin read [run]
    9000 run | end
    9000 run | end
    track OOM kills
    8000 OOM kills | instant oom_kill [oom] task="reader-1" cgroup="" by="the machine's memory" why="no"
    track kernel threads (process)
    track reading (process)
    track kswapd0 (thread)
    0 kswapd0 | begin sums of waits in laid out [wait] congestion_wait in allocation stall={count=1 spent_ns=10 longest_ns=10 kind="idle" ended_by="timeout" futile=1 on="any write"}
    1000 kswapd0 | end
    track reader-1 (thread)
    1000 reader-1 | begin sums of waits in read [wait] congestion_wait in allocation stall={count=3 spent_ns=30 longest_ns=10 kind="writes" ended_by="timeout" futile=1 on="any write"}
    9000 reader-1 | end
    track memory
    track memory / nr_free_pages (counter)
    0 memory / nr_free_pages | count 500
    9000 memory / nr_free_pages | count 7
    track events per second
    track events per second / pgscan_direct (counter)
    0 events per second / pgscan_direct | count 2000000
    1000 events per second / pgscan_direct | count 0
    track cgroup A
    track cgroup A / current (counter)
    0 cgroup A / current | count 8
    1000 cgroup A / current | count 9
    9000 cgroup A / current | count 10
    "#);
}

/// Names that a drawn event has, and the rest from a template.
fn event(names: &mut Names, time_ns: u64, event: &str, task: &str) -> Event {
    let task = (!task.is_empty()).then(|| names.intern(task));
    Event { task, ..Event::new(time_ns, names.intern(event)) }
}

/// A reader wakes kswapd, reclaims, shrinks a cache inside, waits in there, and reads; all begins at the same moment.
fn scene() -> (Names, Chunk) {
    let names = &mut Names::default();
    let file = Some(names.intern("hot"));
    let reason = |names: &mut Names, text: &str| Some(names.intern(text));
    let node = Some(0);
    let mut events = vec![
        Event { node, order: Some(0), ..event(names, 100, "mm_vmscan_wakeup_kswapd", "reader-1") },
        Event { order: Some(0), ..event(names, 100, "mm_vmscan_direct_reclaim_begin", "reader-1") },
        Event { node, order: Some(0), ..event(names, 101, "mm_vmscan_kswapd_wake", "kswapd0") },
        Event {
            node,
            reason: reason(names, "super-block shrinker"),
            ..event(names, 100, "mm_shrink_slab_start", "reader-1")
        },
        Event {
            duration_ns: 50,
            value: Some(2),
            reason: reason(names, "congestion_wait in allocation stall > super-block shrinker"),
            ..event(names, 100, "wait", "reader-1")
        },
        Event {
            duration_ns: 60,
            reason: reason(names, "super-block shrinker"),
            value: Some(128),
            ..event(names, 100, "mm_shrink_slab_end", "reader-1")
        },
        Event {
            duration_ns: 20,
            pages: 32,
            value: Some(30),
            priority: Some(12),
            ..event(names, 165, "mm_vmscan_lru_shrink_inactive", "reader-1")
        },
        Event {
            file,
            page: Some(17),
            pages: 1,
            priority: Some(12),
            ..event(names, 190, "page_reclaimed", "reader-1")
        },
        Event {
            duration_ns: 100,
            value: Some(30),
            ..event(names, 100, "mm_vmscan_direct_reclaim_end", "reader-1")
        },
        Event { duration_ns: 109, node, ..event(names, 101, "mm_vmscan_kswapd_sleep", "kswapd0") },
    ];
    let disk = Some(names.intern("block device 0"));
    let reason = reason(names, "read");
    for (page, send, done) in [(64, 220, 300), (96, 230, 310), (0, 300, 320)] {
        let about =
            |event| Event { file: disk, reason, page: Some(page), pages: 32, value: Some(131_072), ..event };
        events.push(about(event(names, send, "block_rq_issue", "reader-1")));
        events.push(Event {
            duration_ns: done - send,
            ..about(event(names, send, "block_rq_complete", "reader-1"))
        });
    }
    events.sort_by_key(|event| event.time_ns + event.duration_ns);
    events.push(event(names, 400, "watermark_boost", ""));
    events.push(Event { order: Some(3), ..event(names, 500, "mm_compaction_begin", "kcompactd0") });
    (names.clone(), Chunk { events })
}

#[test]
fn events_are_slices_inside_one_another_requests_on_lines_and_arrows() {
    let (names, chunk) = scene();
    let mut trace = PerfettoTrace::new(&run(), true);
    trace.take();
    trace.events(&chunk, &names);
    let shown = shown_after(&trace.take());
    insta::assert_snapshot!(shown, @r#"
    track reader-1 (thread)
    100 reader-1 | instant mm_vmscan_wakeup_kswapd [reclaim] nid=0 order=0 ->1
    100 reader-1 | begin mm_vmscan_direct_reclaim [reclaim] order=0
    100 reader-1 | begin mm_shrink_slab [reclaim] reason="super-block shrinker" nid=0
    track kswapd0 (thread)
    101 kswapd0 | begin kswapd awake [reclaim] nid=0 order=0 <-1
    100 reader-1 | begin congestion_wait [wait] within="allocation stall > super-block shrinker" timed_out=1 futile=1
    150 reader-1 | end
    160 reader-1 | end reason="super-block shrinker" objects=128
    track reader-1 / mm_vmscan_lru_shrink_inactive
    165 reader-1 / mm_vmscan_lru_shrink_inactive | begin mm_vmscan_lru_shrink_inactive [reclaim] nr_scanned=32 priority=12 nr_reclaimed=30
    185 reader-1 / mm_vmscan_lru_shrink_inactive | end
    track reader-1 / pages
    190 reader-1 / pages | instant page_reclaimed [page] file="hot" page=17 pages=1 priority=12
    200 reader-1 | end nr_reclaimed=30
    210 kswapd0 | end nid=0
    220 reader-1 | instant block_rq_issue [io] file="block device 0" reason="read" page=64 pages=32 bytes=131072 ->2
    230 reader-1 | instant block_rq_issue [io] file="block device 0" reason="read" page=96 pages=32 bytes=131072 ->3
    track block device 0
    track block device 0 / requests
    220 block device 0 / requests | begin read [io] page=64 pages=32 bytes=131072 task="reader-1" <-2
    300 block device 0 / requests | end
    300 reader-1 | instant block_rq_issue [io] file="block device 0" reason="read" page=0 pages=32 bytes=131072 ->4
    track block device 0 / requests
    230 block device 0 / requests | begin read [io] page=96 pages=32 bytes=131072 task="reader-1" <-3
    310 block device 0 / requests | end
    300 block device 0 / requests | begin read [io] page=0 pages=32 bytes=131072 task="reader-1" <-4
    320 block device 0 / requests | end
    track no task
    400 no task | instant watermark_boost [reclaim]
    track kcompactd0 (thread)
    500 kcompactd0 | begin mm_compaction [compaction] order=3
    "#);
}

/// [`shown`] of what follows the head of a trace.
fn shown_after(bytes: &[u8]) -> String {
    let mut whole = PerfettoTrace::new(&run(), true).take();
    let head = shown(&whole);
    whole.extend_from_slice(bytes);
    shown(&whole)[head.len()..].to_owned()
}

/// However events are divided into chunks, and however often bytes are taken, the trace is the same.
#[test]
fn chunks_of_any_length_give_the_same_bytes() {
    let (names, chunk) = scene();
    let in_chunks_of = |length| {
        let mut trace = PerfettoTrace::new(&run(), true);
        let mut bytes = trace.take();
        for events in chunk.events.chunks(length) {
            trace.events(&Chunk { events: events.to_vec() }, &names);
            bytes.extend(trace.take());
        }
        bytes
    };
    let whole = in_chunks_of(chunk.events.len());
    for length in 1..chunk.events.len() {
        assert_eq!(in_chunks_of(length), whole, "chunks of {length}");
    }
}

/// The head of a `trace.dat` says where the pages are and how long; chunks of any length give the same file.
#[test]
fn a_trace_dat_is_as_long_as_its_head_says() {
    let (names, chunk) = scene();
    let many = Chunk { events: chunk.events.iter().cycle().take(5000).copied().collect() };
    let in_chunks_of = |length| {
        let show = |mut trace: RunTrace| {
            let mut bytes = trace.take();
            for events in many.events.chunks(length) {
                trace.events(&Chunk { events: events.to_vec() }, &names);
                bytes.extend(trace.take());
            }
            trace.finish();
            bytes.extend(trace.take());
            (trace, bytes)
        };
        let (seen, _) = show(RunTrace::new(TraceFormat::TraceDat, &run(), true));
        assert!(seen.sees_all_first());
        show(seen.again(&run())).1
    };
    let whole = in_chunks_of(5000);
    let mark = b"flyrecord\0";
    let at = whole.windows(mark.len()).position(|bytes| bytes == mark).unwrap() + mark.len();
    let long = |at: usize| u64::from_le_bytes(whole[at..at + 8].try_into().unwrap()) as usize;
    let (begin, length) = (long(at), long(at + 8));
    assert_eq!((begin % 4096, begin + length), (0, whole.len()));
    assert!(length > 100 * 4096, "{length}");
    for page in whole[begin..].chunks(4096) {
        let used = u64::from_le_bytes(page[8..16].try_into().unwrap());
        assert!((1..=4080).contains(&used), "{used}");
    }
    for length in [1, 7, 1000] {
        assert!(in_chunks_of(length) == whole, "chunks of {length}");
    }
}

/// A recording of pages begins in the middle of things: an end without a begin has its own length to tell.
#[test]
fn an_end_without_a_begin_and_a_begin_inside_another_do_no_harm() {
    let names = &mut Names::default();
    let events = vec![
        Event { duration_ns: 9, ..event(names, 1, "mm_vmscan_direct_reclaim_end", "a") },
        event(names, 20, "mm_vmscan_direct_reclaim_begin", "a"),
        event(names, 21, "mm_shrink_slab_start", "a"),
        Event { duration_ns: 10, ..event(names, 20, "mm_vmscan_direct_reclaim_end", "a") },
        Event { duration_ns: 3, ..event(names, 28, "mm_shrink_slab_end", "a") },
        event(names, 40, "mm_vmscan_direct_reclaim_end", ""),
    ];
    let mut trace = PerfettoTrace::new(&run(), true);
    trace.take();
    trace.events(&Chunk { events }, names);
    insta::assert_snapshot!(shown_after(&trace.take()), @"
    track a (thread)
    track a / mm_vmscan_direct_reclaim_end
    1 a / mm_vmscan_direct_reclaim_end | begin mm_vmscan_direct_reclaim_end [reclaim]
    10 a / mm_vmscan_direct_reclaim_end | end
    20 a | begin mm_vmscan_direct_reclaim [reclaim]
    21 a | begin mm_shrink_slab [reclaim]
    30 a | end
    30 a | end
    track a / mm_shrink_slab_end
    28 a / mm_shrink_slab_end | begin mm_shrink_slab_end [reclaim]
    31 a / mm_shrink_slab_end | end
    track no task
    40 no task | instant mm_vmscan_direct_reclaim_end [reclaim]
    ");
}

#[test]
fn events_are_lines_as_a_kernel_prints_them() {
    let (names, chunk) = scene();
    let mut text = FtraceText::new(&run());
    text.events(&chunk, &names);
    insta::assert_snapshot!(String::from_utf8(text.take()).unwrap(), @"
    # tracer: nop
    #
    #                                _-----=> irqs-off/BH-disabled
    #                               / _----=> need-resched
    #                              | / _---=> hardirq/softirq
    #                              || / _--=> preempt-depth
    #                              ||| / _-=> migrate-disable
    #                              |||| /     delay
    #           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION
    #              | |         |   |||||     |         |
    # reading on linux-6.12 (sim), seed 7, by pagetide
    # Formats are those of Linux 6.12. What the recording does not hold is 0, or `unknown` where a word stands:
    # CPUs, pfn, page, gfp_flags, timeouts, and of reclaim nr_dirty to nr_unmap_fail and what shrinkers were to scan.
    # folio is no address: its first half is the inode number, the second the place in the file in pages.
    # Names without a tracepoint are pagetide's own: wait, page_*, memcg_low, watermark_boost.
            reader-1-1001    [000] .....     0.000000: mm_vmscan_wakeup_kswapd: nid=0 order=0 gfp_flags=unknown
            reader-1-1001    [000] .....     0.000000: mm_vmscan_direct_reclaim_begin: order=0 gfp_flags=unknown
            reader-1-1001    [000] .....     0.000000: mm_shrink_slab_start: super_cache_scan+0x0/0x0 0000000000000000: nid: 0 objects to shrink 0 gfp_flags unknown cache items 0 delta 0 total_scan 0 priority 0
             kswapd0-3       [000] .....     0.000000: mm_vmscan_kswapd_wake: nid=0 order=0
            reader-1-1001    [000] .....     0.000000: writeback_congestion_wait: usec_timeout=0 usec_delayed=0
            reader-1-1001    [000] .....     0.000000: mm_shrink_slab_end: super_cache_scan+0x0/0x0 0000000000000000: nid: 0 unused scan count 0 new scan count 0 total_scan 128 last shrinker return val 0
            reader-1-1001    [000] .....     0.000000: mm_vmscan_lru_shrink_inactive: nid=0 nr_scanned=32 nr_reclaimed=30 nr_dirty=0 nr_writeback=0 nr_congested=0 nr_immediate=0 nr_activate_anon=0 nr_activate_file=0 nr_ref_keep=0 nr_unmap_fail=0 priority=12 flags=unknown
    # inode 1 is hot
            reader-1-1001    [000] .....     0.000000: page_reclaimed: ino=1 folio=0000000100000011 ofs=69632 pages=1 priority=12
            reader-1-1001    [000] .....     0.000000: mm_vmscan_direct_reclaim_end: nr_reclaimed=30
             kswapd0-3       [000] .....     0.000000: mm_vmscan_kswapd_sleep: nid=0
            reader-1-1001    [000] .....     0.000000: block_rq_issue: 8,0 R 131072 () 512 + 256 none,0,0 [reader-1]
            reader-1-1001    [000] .....     0.000000: block_rq_issue: 8,0 R 131072 () 768 + 256 none,0,0 [reader-1]
            reader-1-1001    [000] .....     0.000000: block_rq_complete: 8,0 R () 512 + 256 none,0,0 [0]
            reader-1-1001    [000] .....     0.000000: block_rq_issue: 8,0 R 131072 () 0 + 256 none,0,0 [reader-1]
            reader-1-1001    [000] .....     0.000000: block_rq_complete: 8,0 R () 768 + 256 none,0,0 [0]
            reader-1-1001    [000] .....     0.000000: block_rq_complete: 8,0 R () 0 + 256 none,0,0 [0]
              <idle>-0       [000] d.h..     0.000000: watermark_boost:
          kcompactd0-4       [000] .....     0.000000: mm_compaction_begin: zone_start=0x0 migrate_pfn=0x0 free_pfn=0x0 zone_end=0x0, mode=unknown
    ");
}

/// Every tracepoint that events are named after, with what the scene does not have.
#[test]
fn every_tracepoint_has_the_format_of_the_kernel() {
    let names = &mut Names::default();
    let mut events = Vec::new();
    let file = Some(names.intern("a file"));
    let mut add = |name: &str, task: &str, reason: &str, change: fn(Event) -> Event, names: &mut Names| {
        let plain = event(names, 1_234_567_891, name, task);
        let reason = (!reason.is_empty()).then(|| names.intern(reason));
        events.push(change(Event { reason, ..plain }));
    };
    let page = |event| Event { page: Some(17), pages: 4, order: Some(2), node: Some(0), ..event };
    add("mm_filemap_add_to_page_cache", "reader", "", page, names);
    add("mm_lru_insertion", "reader", "active", page, names);
    add("mm_lru_insertion", "reader", "inactive", |event| Event { pages: 1, ..event }, names);
    add("mm_lru_activate", "reader", "activated", page, names);
    add("mm_vmscan_memcg_reclaim_begin", "a task with a long name", "", |event| event, names);
    add("mm_vmscan_memcg_reclaim_end", "reader", "", |event| Event { value: Some(32), ..event }, names);
    add("mm_vmscan_lru_shrink_active", "kswapd0", "file", page, names);
    add("mm_compaction_end", "kcompactd0", "success", |event| event, names);
    let extfrag = |event| Event { order: Some(9), value: Some(3), ..event };
    add(
        "mm_page_alloc_extfrag",
        "",
        "movable from a block of unmovable pages, which is claimed",
        extfrag,
        names,
    );
    add("oom_kill", "reader", "", |event| Event { value: Some(256), ..event }, names);
    let waited = |event| Event { duration_ns: 20_000_000, value: Some(1), ..event };
    add("wait", "reader", "congestion_wait in allocation stall", waited, names);
    add("wait", "reader", "reclaim_throttle: no progress", waited, names);
    add("wait", "reader", "folio_wait_locked in limit reclaim > super-block shrinker", waited, names);
    add("page_refaulted", "reader", "activated: distance within the active list", page, names);
    for event in &mut events {
        event.file = event.page.and(file);
    }
    let kill = OomKill { at_ns: 1_234_567_891, task: "hog".into(), ..OomKill::default() };
    let mut text = FtraceText::new(&run().killed(vec![kill]));
    text.take();
    text.events(&Chunk { events }, names);
    insta::assert_snapshot!(String::from_utf8(text.take()).unwrap(), @"
    # inode 1 is a file
              reader-1001    [000] .....     1.234567: mm_filemap_add_to_page_cache: dev 8:0 ino 1 pfn=0x0 ofs=69632 order=2
              reader-1001    [000] .....     1.234567: mm_lru_insertion: folio=0000000100000011 pfn=0x0 lru=3 flags= f    
              reader-1001    [000] .....     1.234567: mm_lru_insertion: folio=0000000000000000 pfn=0x0 lru=0 flags= a b  
              reader-1001    [000] .....     1.234567: mm_lru_activate: folio=0000000100000011 pfn=0x0
     a_task_with_a_l-1002    [000] .....     1.234567: mm_vmscan_memcg_reclaim_begin: order=0 gfp_flags=unknown
              reader-1001    [000] .....     1.234567: mm_vmscan_memcg_reclaim_end: nr_reclaimed=32
             kswapd0-3       [000] .....     1.234567: mm_vmscan_lru_shrink_active: nid=0 nr_taken=4 nr_active=0 nr_deactivated=0 nr_referenced=0 priority=0 flags=RECLAIM_WB_FILE|RECLAIM_WB_ASYNC
          kcompactd0-4       [000] .....     1.234567: mm_compaction_end: zone_start=0x0 migrate_pfn=0x0 free_pfn=0x0 zone_end=0x0, mode=unknown status=success
              <idle>-0       [000] d.h..     1.234567: mm_page_alloc_extfrag: page=0000000000000000 pfn=0x0 alloc_order=9 fallback_order=3 pageblock_order=9 alloc_migratetype=1 fallback_migratetype=0 fragmenting=1 change_ownership=1
              reader-1001    [000] .....     1.234567: mark_victim: pid=1003 comm=hog total-vm=1024kB anon-rss=1024kB file-rss:0kB shmem-rss:0kB uid=0 pgtables=0kB oom_score_adj=0
              reader-1001    [000] .....     1.254567: writeback_congestion_wait: usec_timeout=0 usec_delayed=20000
              reader-1001    [000] .....     1.254567: mm_vmscan_throttled: nid=0 usec_timeout=0 usect_delayed=20000 reason=VMSCAN_THROTTLE_NOPROGRESS
              reader-1001    [000] .....     1.254567: wait: function=folio_wait_locked usec_delayed=20000 within=limit_reclaim>super-block_shrinker ended_by=timeout futile=0
              reader-1001    [000] .....     1.234567: page_refaulted: ino=1 folio=0000000100000011 ofs=69632 pages=4 nid=0 order=2 reason=activated:_distance_within_the_active_list
    ");
}

/// Kswapd dozes before it sleeps, and may be woken from that: its tracepoints alone would have it awake all along.
#[test]
fn kswapd_is_awake_until_it_dozes_or_is_woken_again() {
    let names = &mut Names::default();
    let dozing = Some(names.intern("kswapd dozing"));
    let wait = |names: &mut Names, at| Event {
        duration_ns: 10,
        reason: dozing,
        ..event(names, at, "wait", "kswapd0")
    };
    let events = vec![
        event(names, 5, "mm_vmscan_kswapd_wake", "kswapd0"),
        event(names, 7, "mm_vmscan_kswapd_wake", "kswapd0"),
        wait(names, 9),
        event(names, 19, "mm_vmscan_kswapd_wake", "kswapd0"),
        wait(names, 19),
        event(names, 29, "mm_vmscan_kswapd_sleep", "kswapd0"),
        wait(names, 29),
    ];
    let mut trace = PerfettoTrace::new(&run(), true);
    trace.take();
    trace.events(&Chunk { events }, names);
    insta::assert_snapshot!(shown_after(&trace.take()), @"
    track kswapd0 (thread)
    5 kswapd0 | begin kswapd awake [reclaim]
    7 kswapd0 | end
    7 kswapd0 | begin kswapd awake [reclaim]
    9 kswapd0 | end
    9 kswapd0 | begin kswapd dozing [idle]
    19 kswapd0 | end
    19 kswapd0 | begin kswapd awake [reclaim]
    19 kswapd0 | end
    19 kswapd0 | begin kswapd dozing [idle]
    29 kswapd0 | end
    29 kswapd0 | instant mm_vmscan_kswapd_sleep [reclaim]
    29 kswapd0 | begin kswapd dozing [idle]
    39 kswapd0 | end
    ");
}
