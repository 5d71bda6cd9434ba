//! Packets of a Perfetto trace: tracks, events on them, counters, and texts that are written once.
//!
//! All packets are of one sequence, whose first one says which clock times are of and gives numbers to what is
//! known beforehand: categories and names of annotations. Names and texts that come up later get theirs in the
//! packet that first means them. Times may go backwards from packet to packet (a wait is written when it is
//! over): whoever reads a trace sorts it, and keeps the order of what happened at the same time.
//!
//! Numbers of fields are those of `protos/perfetto/trace/**/*.proto` of Perfetto 59, which promises to keep them.
//! Left out: everything that this does not need. Next: [`super::perfetto`], which decides what is drawn.

use std::collections::BTreeMap;

use super::proto::Message;

/// `Trace.packet`.
const PACKET: u32 = 1;
/// The one sequence of packets: `TracePacket.trusted_packet_sequence_id`.
const SEQUENCE: u64 = 1;
/// `BUILTIN_CLOCK_BOOTTIME` and `BUILTIN_CLOCK_MONOTONIC`: both begin with the machine or the run, in nanoseconds.
const CLOCKS: [u64; 2] = [6, 3];

/// Of a `TracePacket`.
mod packet {
    pub(super) const CLOCK_SNAPSHOT: u32 = 6;
    pub(super) const TIMESTAMP: u32 = 8;
    pub(super) const SEQUENCE_ID: u32 = 10;
    pub(super) const TRACK_EVENT: u32 = 11;
    pub(super) const INTERNED: u32 = 12;
    /// 1: what was numbered before is forgotten; 2: numbers of packets before are meant.
    pub(super) const SEQUENCE_FLAGS: u32 = 13;
    pub(super) const CLOCK_ID: u32 = 58;
    pub(super) const DEFAULTS: u32 = 59;
    pub(super) const TRACK_DESCRIPTOR: u32 = 60;
}

/// Of `InternedData`; each entry has a number and a text.
mod interned {
    pub(super) const CATEGORY: u32 = 1;
    pub(super) const NAME: u32 = 2;
    pub(super) const KEY: u32 = 3;
    pub(super) const TEXT: u32 = 29;
}

/// Of a `TrackDescriptor`.
mod track {
    pub(super) const UUID: u32 = 1;
    pub(super) const NAME: u32 = 2;
    pub(super) const PROCESS: u32 = 3;
    pub(super) const THREAD: u32 = 4;
    pub(super) const PARENT: u32 = 5;
    pub(super) const COUNTER: u32 = 8;
    pub(super) const CHILD_ORDER: u32 = 11;
    pub(super) const RANK: u32 = 12;
    pub(super) const DESCRIPTION: u32 = 14;
}

/// Of a `TrackEvent`.
mod event {
    pub(super) const CATEGORY: u32 = 3;
    pub(super) const ANNOTATION: u32 = 4;
    pub(super) const TYPE: u32 = 9;
    pub(super) const NAME: u32 = 10;
    pub(super) const TRACK: u32 = 11;
    pub(super) const COUNT: u32 = 30;
    pub(super) const COUNT_DOUBLE: u32 = 44;
    pub(super) const FLOW: u32 = 47;
    pub(super) const FLOW_END: u32 = 48;
}

/// Of a `DebugAnnotation`.
mod annotation {
    pub(super) const KEY: u32 = 1;
    pub(super) const INT: u32 = 4;
    pub(super) const DOUBLE: u32 = 5;
    pub(super) const TEXT: u32 = 6;
    pub(super) const NAME: u32 = 10;
    pub(super) const ENTRY: u32 = 11;
    pub(super) const TEXT_ID: u32 = 17;
}

/// Gives each variant its text and the number by which packets mean it, from 1.
macro_rules! numbered {
    ($(#[$doc:meta])* $name:ident: $($variant:ident = $text:literal,)*) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(super) enum $name { $($variant,)* }

        impl $name {
            const ALL: &'static [(Self, &'static str)] = &[$((Self::$variant, $text),)*];

            const fn number(self) -> u64 {
                self as u64 + 1
            }
        }
    };
}

numbered! {
    /// By what the user interface filters.
    Category:
    Run = "run",
    Wait = "wait",
    Idle = "idle",
    Reclaim = "reclaim",
    Compaction = "compaction",
    Io = "io",
    Page = "page",
    Oom = "oom",
    Other = "other",
}

numbered! {
    /// What an annotation of an event is called.
    Key:
    Cgroup = "cgroup",
    ByCgroup = "by_cgroup",
    File = "file",
    Reason = "reason",
    Page = "page",
    Pages = "pages",
    Node = "nid",
    Priority = "priority",
    Order = "order",
    Value = "value",
    NrScanned = "nr_scanned",
    NrReclaimed = "nr_reclaimed",
    NrDeactivated = "nr_deactivated",
    Objects = "objects",
    Bytes = "bytes",
    Distance = "distance_pages",
    Within = "within",
    TimedOut = "timed_out",
    Futile = "futile",
    Count = "count",
    Spent = "spent_ns",
    Longest = "longest_ns",
    Task = "task",
}

/// A track, by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Track(u64);

/// The name of an event, by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Name(u64);

/// The text of an annotation, by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Text(u64);

/// What a track is.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kind<'a> {
    /// Events without a process, or a heading for the tracks below it.
    Plain,
    /// A process by its number.
    Process(i64),
    /// A thread by the numbers of its process and of its own.
    Thread(i64, i64),
    /// Numbers over time.
    Counter(Unit<'a>),
}

/// What a counter counts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Unit<'a> {
    /// Bytes, or what has so many of them each.
    Bytes(i64),
    /// Whatever this says.
    Called(&'a str),
}

/// What happens on a track.
#[derive(Debug, Clone, Copy)]
pub(super) enum Happens {
    /// Something begins.
    Begin(Name, Category),
    /// What began last and has not ended ends.
    End,
    /// Something without a length.
    Instant(Name, Category),
}

/// Where annotations of an event are written.
pub(super) struct Annotations<'a, 'b>(&'a mut Message<'b>, u32);

impl Annotations<'_, '_> {
    pub(super) fn int(&mut self, key: Key, value: i64) {
        self.0.message(self.1, |message| {
            message.uint(annotation::KEY, key.number());
            message.int(annotation::INT, value);
        });
    }

    pub(super) fn text(&mut self, key: Key, text: Text) {
        self.0.message(self.1, |message| {
            message.uint(annotation::KEY, key.number());
            message.uint(annotation::TEXT_ID, text.0);
        });
    }

    /// An annotation whose name and text come up once.
    pub(super) fn said(&mut self, name: &str, text: &str) {
        self.0.message(self.1, |message| {
            message.text(annotation::NAME, name);
            message.text(annotation::TEXT, text);
        });
    }

    /// A number whose name comes up once.
    pub(super) fn number(&mut self, name: &str, value: f64) {
        self.0.message(self.1, |message| {
            message.text(annotation::NAME, name);
            message.double(annotation::DOUBLE, value);
        });
    }

    /// Annotations under a common name.
    pub(super) fn group(&mut self, name: &str, write: impl FnOnce(&mut Annotations<'_, '_>)) {
        self.0.message(self.1, |message| {
            message.text(annotation::NAME, name);
            write(&mut Annotations(message, annotation::ENTRY));
        });
    }

    /// An arrow begins here, with this number; on the event itself only.
    pub(super) fn flow(&mut self, number: u64) {
        self.0.fixed64(event::FLOW, number);
    }

    /// The arrow with this number ends here.
    pub(super) fn flow_end(&mut self, number: u64) {
        self.0.fixed64(event::FLOW_END, number);
    }
}

/// Packets as they come; [`Packets::take`] hands over what has been written.
#[derive(Debug)]
pub(super) struct Packets {
    out: Vec<u8>,
    /// Names and texts that the next packet has to give numbers to.
    fresh: Vec<u8>,
    body: Vec<u8>,
    names: BTreeMap<String, u64>,
    texts: BTreeMap<String, u64>,
    tracks: u64,
}

impl Packets {
    pub(super) fn new() -> Self {
        let mut packets = Self {
            out: Vec::new(),
            fresh: Vec::new(),
            body: Vec::new(),
            names: BTreeMap::new(),
            texts: BTreeMap::new(),
            tracks: 0,
        };
        packets.first();
        packets
    }

    /// What has been written since the last call.
    pub(super) fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.out)
    }

    /// The number of an event's name.
    pub(super) fn name(&mut self, name: &str) -> Name {
        Name(numbered(&mut self.names, &mut self.fresh, interned::NAME, name))
    }

    /// The number of an annotation's text.
    pub(super) fn text(&mut self, text: &str) -> Text {
        Text(numbered(&mut self.texts, &mut self.fresh, interned::TEXT, text))
    }

    /// A new track below `parent`; `rank` is its place among its like there, by name if all have the same.
    pub(super) fn track(&mut self, name: &str, parent: Option<Track>, rank: i64, kind: Kind<'_>) -> Track {
        self.described(name, parent, rank, kind, "")
    }

    /// [`Packets::track`] with a text that explains it.
    pub(super) fn described(
        &mut self,
        name: &str,
        parent: Option<Track>,
        rank: i64,
        kind: Kind<'_>,
        description: &str,
    ) -> Track {
        self.tracks += 1;
        let uuid = self.tracks;
        Message::new(&mut self.out).message(PACKET, |message| {
            message.uint(packet::SEQUENCE_ID, SEQUENCE);
            message.message(packet::TRACK_DESCRIPTOR, |message| {
                message.uint(track::UUID, uuid);
                message.text(track::NAME, name);
                if let Some(Track(parent)) = parent {
                    message.uint(track::PARENT, parent);
                }
                kind.write(message, name);
                message.uint(track::CHILD_ORDER, 3); // EXPLICIT
                message.int(track::RANK, rank);
                if !description.is_empty() {
                    message.text(track::DESCRIPTION, description);
                }
            });
        });
        Track(uuid)
    }

    /// An event at `at` nanoseconds.
    pub(super) fn event(
        &mut self,
        at: u64,
        Track(uuid): Track,
        happens: Happens,
        annotate: impl FnOnce(&mut Annotations<'_, '_>),
    ) {
        self.body.clear();
        let mut message = Message::new(&mut self.body);
        message.uint(event::TRACK, uuid);
        let (kind, what) = match happens {
            Happens::Begin(name, category) => (1, Some((name, category))),
            Happens::End => (2, None),
            Happens::Instant(name, category) => (3, Some((name, category))),
        };
        message.uint(event::TYPE, kind);
        if let Some((Name(name), category)) = what {
            message.uint(event::CATEGORY, category.number());
            message.uint(event::NAME, name);
        }
        annotate(&mut Annotations(&mut message, event::ANNOTATION));
        self.packet(at);
    }

    /// A counter's value from `at` on, until the next one.
    pub(super) fn count(&mut self, at: u64, Track(uuid): Track, value: Value) {
        self.body.clear();
        let mut message = Message::new(&mut self.body);
        message.uint(event::TRACK, uuid);
        message.uint(event::TYPE, 4);
        match value {
            Value::Whole(value) => message.int(event::COUNT, i64::try_from(value).unwrap_or(i64::MAX)),
            Value::Real(value) => message.double(event::COUNT_DOUBLE, value),
        }
        self.packet(at);
    }

    /// A packet of the event in `body`.
    fn packet(&mut self, at: u64) {
        let Self { out, fresh, body, .. } = self;
        Message::new(out).message(PACKET, |message| {
            message.uint(packet::TIMESTAMP, at);
            message.uint(packet::SEQUENCE_ID, SEQUENCE);
            message.bytes(packet::TRACK_EVENT, body);
            if !fresh.is_empty() {
                message.bytes(packet::INTERNED, fresh);
                fresh.clear();
            }
            message.uint(packet::SEQUENCE_FLAGS, 2);
        });
    }

    /// Clocks, defaults and what is numbered beforehand.
    fn first(&mut self) {
        let mut trace = Message::new(&mut self.out);
        trace.message(PACKET, |message| {
            message.uint(packet::SEQUENCE_ID, SEQUENCE);
            message.message(packet::CLOCK_SNAPSHOT, |message| {
                for clock in CLOCKS {
                    message.message(1, |message| {
                        message.uint(1, clock);
                        message.uint(2, 0);
                    });
                }
                message.uint(2, CLOCKS[0]);
            });
        });
        trace.message(PACKET, |message| {
            message.uint(packet::SEQUENCE_ID, SEQUENCE);
            message.uint(packet::SEQUENCE_FLAGS, 1);
            message.message(packet::DEFAULTS, |message| message.uint(packet::CLOCK_ID, CLOCKS[0]));
            message.message(packet::INTERNED, |message| {
                for (category, text) in Category::ALL {
                    entry(message, interned::CATEGORY, category.number(), text);
                }
                for (key, text) in Key::ALL {
                    entry(message, interned::KEY, key.number(), text);
                }
            });
        });
    }
}

/// A counter's value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Value {
    Whole(u64),
    Real(f64),
}

impl Kind<'_> {
    fn write(self, message: &mut Message<'_>, name: &str) {
        match self {
            Self::Plain => {}
            Self::Process(pid) => message.message(track::PROCESS, |message| {
                message.int(1, pid);
                message.text(6, name);
            }),
            Self::Thread(pid, tid) => message.message(track::THREAD, |message| {
                message.int(1, pid);
                message.int(2, tid);
                message.text(5, name);
            }),
            Self::Counter(unit) => message.message(track::COUNTER, |message| match unit {
                Unit::Bytes(each) => {
                    message.uint(3, 3); // UNIT_SIZE_BYTES
                    message.int(4, each);
                }
                Unit::Called(unit) => message.text(6, unit),
            }),
        }
    }
}

fn numbered(known: &mut BTreeMap<String, u64>, fresh: &mut Vec<u8>, field: u32, text: &str) -> u64 {
    if let Some(&number) = known.get(text) {
        return number;
    }
    let number = known.len() as u64 + 1;
    known.insert(text.to_owned(), number);
    entry(&mut Message::new(fresh), field, number, text);
    number
}

fn entry(message: &mut Message<'_>, field: u32, number: u64, text: &str) {
    message.message(field, |message| {
        message.uint(1, number);
        message.text(2, text);
    });
}
