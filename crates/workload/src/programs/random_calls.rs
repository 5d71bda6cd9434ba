//! Programs of random calls, as files of the workload language.
//!
//! A program follows from a number: each task has a stream of its own, from which one call after the other is drawn,
//! so that a shorter program is the beginning of a longer one. What a call is made on is there: a mapping is touched,
//! advised and unmapped only once it has been made. Sizes are the parameters' of `library/random-calls.toml`, which
//! is all of the file but its tasks.
//!
//! Left out: calls that only some kernels know, as `memory.reclaim`. Next: [`crate::written`] runs what is written.

use std::fmt::Write as _;

use units::{Seed, Stream};

use language::params::Params;

/// The file up to its tasks.
const HEAD: &str = include_str!("../../library/random-calls.toml");
/// Bytes that one call with a count moves, at most.
const MOVED_MAX: u64 = 64 << 20;
/// Sizes of calls, in bytes, the usual ones more often.
const BLOCKS: [u64; 9] = [1000, 4 << 10, 4 << 10, 4 << 10, 12 << 10, 64 << 10, 128 << 10, 300_000, 1 << 20];
/// How often something is done.
const COUNTS: [u64; 6] = [1, 20, 100, 500, 1000, 3000];
const ORDERS: [&str; 5] = ["sequential", "sequential", "random", "shuffled", "zipf:1"];
const FILES: [&str; 3] = ["first", "second", "small"];
const OF_MAPPINGS: [&str; 8] =
    ["normal", "random", "sequential", "will-need", "dont-need", "cold", "page-out", "free"];
const OF_FILES: [&str; 5] = ["normal", "random", "sequential", "will-need", "dont-need"];

/// The workload file of these parameters.
pub(crate) fn text(params: &Params) -> String {
    let number = |name: &str| params.count(name).expect("it has a default");
    written(number("program"), number("calls"), number("tasks"))
}

/// The file of some program: what it says of itself is so of each.
pub(crate) fn any() -> String {
    written(1, 1, 1)
}

fn written(program: u64, calls: u64, tasks: u64) -> String {
    let mut text = HEAD.to_owned();
    for task in 0..tasks {
        let mut drawn = Drawn::new(program, task);
        let _ = write!(text, "\n[tasks.t{task}]\ngroup = \"G\"\nbegins_within = \"2ms\"\nsteps = [\n");
        for _ in 0..calls {
            drawn.call(&mut text);
        }
        text += "]\n";
    }
    text
}

/// A mapping that a task has.
#[derive(Debug, Clone, Copy)]
struct Mapping {
    number: u64,
    is_file: bool,
    is_writable: bool,
}

/// One task's program as far as it is drawn.
struct Drawn {
    stream: Stream,
    task: u64,
    mappings: Vec<Mapping>,
    /// Mappings that there were.
    mapped: u64,
    /// Whether it has made files that are still there.
    has_made: bool,
}

impl Drawn {
    fn new(program: u64, task: u64) -> Self {
        let stream = Seed(program).stream(&format!("random-calls: task {task}"));
        Self { stream, task, mappings: Vec::new(), mapped: 0, has_made: false }
    }

    fn pick<T: Copy>(&mut self, all: &[T]) -> T {
        all[usize::try_from(self.stream.below(all.len() as u64)).expect("an index")]
    }

    /// One call more, as a line of the task's steps.
    fn call(&mut self, text: &mut String) {
        let step = match self.stream.below(100) {
            0..30 => self.read(),
            30..43 => self.write(),
            43..46 => self.fsync(),
            46..54 => self.map_file(),
            54..62 => self.map_memory(),
            62..78 => self.touch(),
            78..84 => self.advise_mapping(),
            84..88 => {
                let (file, advice) = (self.pick(&FILES), self.pick(&OF_FILES));
                format!("{{ advise = \"{file}\", as = \"{advice}\" }}")
            }
            88..90 => self.unmap(),
            90..93 => self.make(),
            93..95 => "{ stat = \"small\" }".to_owned(),
            95..97 => "{ sync = true }".to_owned(),
            97..98 => format!("{{ drop_caches = {} }}", 1 + self.stream.below(3)),
            98..99 => format!("{{ sleep = \"{}ms\" }}", self.pick(&[10, 300, 2500])),
            _ => self.squeeze(),
        };
        let _ = writeln!(text, "  {step},");
    }

    /// `, order = ..., block = ...` of a call, and how much of it: a pass, or a count.
    fn places(&mut self) -> String {
        let (order, block) = (self.pick(&ORDERS), self.pick(&BLOCKS));
        let count = self.pick(&COUNTS).min(MOVED_MAX / block);
        let much = if self.stream.chance(2, 5) { String::new() } else { format!(", count = {count}") };
        format!(", order = \"{order}\", block = {block}{much}")
    }

    fn read(&mut self) -> String {
        let file = self.pick(&FILES);
        format!("{{ read = \"{file}\"{} }}", self.places())
    }

    fn write(&mut self) -> String {
        let file = self.pick(&FILES);
        let fsync = if self.stream.chance(1, 4) { ", fsync = 50" } else { "" };
        format!("{{ write = \"{file}\"{}{fsync} }}", self.places())
    }

    fn fsync(&mut self) -> String {
        format!("{{ fsync = \"{}\" }}", self.pick(&FILES))
    }

    fn mapped(&mut self, is_file: bool, is_writable: bool) -> String {
        self.mapped += 1;
        self.mappings.push(Mapping { number: self.mapped, is_file, is_writable });
        format!("m{}", self.mapped)
    }

    fn map_file(&mut self) -> String {
        let file = self.pick(&["first", "second"]);
        let (shared, writes) = (self.stream.chance(1, 2), self.stream.chance(1, 3));
        let name = self.mapped(true, writes);
        format!("{{ map = \"{name}\", file = \"{file}\", shared = {shared}, write = {writes} }}")
    }

    /// Memory, and its first use.
    fn map_memory(&mut self) -> String {
        let part = 1 << self.stream.below(7);
        let name = self.mapped(false, true);
        let use_it = match self.stream.below(3) {
            0 => format!("{{ fill = \"{name}\", compressed = {} }}", self.pick(&[0, 1000, 4096])),
            _ => format!("{{ touch = \"{name}\", write = true }}"),
        };
        let size = format!("\"($mapping + {}) / {part}\"", 4096 * part);
        format!("{{ steps = [{{ map = \"{name}\", size = {size} }}, {use_it}] }}")
    }

    /// A mapping that is there; without any, memory is mapped.
    fn on_mapping(&mut self, step: impl FnOnce(&mut Self, Mapping) -> String) -> String {
        if self.mappings.is_empty() {
            return self.map_memory();
        }
        let mappings = self.mappings.clone();
        let mapping = self.pick(&mappings);
        step(self, mapping)
    }

    fn touch(&mut self) -> String {
        self.on_mapping(|drawn, mapping| {
            let (order, count) = (drawn.pick(&ORDERS), drawn.pick(&COUNTS));
            let writes = mapping.is_writable && drawn.stream.chance(1, 2);
            let much = if drawn.stream.chance(1, 4) { String::new() } else { format!(", count = {count}") };
            format!("{{ touch = \"m{}\", order = \"{order}\"{much}, write = {writes} }}", mapping.number)
        })
    }

    fn advise_mapping(&mut self) -> String {
        self.on_mapping(|drawn, mapping| {
            // Only memory of one's own can be freed so.
            let advices = if mapping.is_file { &OF_MAPPINGS[..7] } else { &OF_MAPPINGS };
            format!("{{ advise = \"m{}\", as = \"{}\" }}", mapping.number, drawn.pick(advices))
        })
    }

    fn unmap(&mut self) -> String {
        self.on_mapping(|drawn, mapping| {
            drawn.mappings.retain(|other| other.number != mapping.number);
            format!("{{ unmap = \"m{}\" }}", mapping.number)
        })
    }

    /// Files of its own, or none of them any more.
    fn make(&mut self) -> String {
        let directory = format!("made{}", self.task);
        if self.has_made && self.stream.chance(1, 2) {
            self.has_made = false;
            return format!("{{ unlink = \"{directory}\" }}");
        }
        self.has_made = true;
        let (count, size) =
            (self.pick(&COUNTS).min(500), self.pick(&["0", "$small_size / 4", "$small_size"]));
        format!("{{ create = \"{directory}\", count = {count}, size = \"{size}\" }}")
    }

    /// Its group has a half or a third of its room, or all of it again.
    fn squeeze(&mut self) -> String {
        let file = self.pick(&["memory.max", "memory.high"]);
        let part = self.pick(&[1, 2, 3]);
        let set = format!("{{ cgroup = \"G\", set = \"{file}\", to = \"$limit / {part}\" }}");
        format!("{{ when = \"limit != none\", steps = [{set}] }}")
    }
}
