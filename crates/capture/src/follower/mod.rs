//! All that is known of the program: its tasks, their descriptors and memory, and what they do, as operations.
//!
//! Notices ([`crate::notices`]) and stops ([`crate::stops`]) say that a call begins or ends; [`enter`] and [`leave`]
//! say what it comes to, [`opens`] spares the ends of opens, [`tasks`] keeps who there is, [`looks`] what looks
//! at memory found, [`times`] what of the time was the program's own.

mod cached;
mod enter;
mod gaps;
mod leave;
mod looks;
mod opens;
mod paths;
mod sends;
mod tasks;
mod times;

use std::collections::BTreeSet;

use trace::{NONE, Operation, OperationKind, TraceMapping, TraceTask};

use crate::calls::{CopyEnd, Descriptor};
use crate::clocks::Clock;
use crate::descriptors::Descriptors;
use crate::files::Files;
use crate::ledger::{Ledger, Place};
use crate::memory::{Memory, Part};
use crate::numbers::ByNumber;
use crate::pace::{Pace, Timeline};
use crate::prices::Prices;

pub(crate) use gaps::Gaps;
pub(crate) use looks::look_at;
pub(crate) use tasks::Born;

/// Whether a call's end is to be told, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// No: it is done, or of no interest.
    Done,
    /// Yes: by [`Follower::leave`].
    TellEnd,
}

/// A call that has begun.
#[derive(Debug)]
struct Begun {
    place: Place,
    at_ns: u64,
    /// The same on the clock on the wall, by which files are dated.
    wall_ns: u64,
    think_ns: u64,
    what: UnderWay,
}

/// What is known of a call when it begins, and wanted when it ends.
#[derive(Debug)]
enum UnderWay {
    Transfer {
        file: u32,
        write: bool,
        offset: u64,
    },
    /// An open whose end is told.
    Open {
        flags: u64,
    },
    /// One whose end is not. `name`: the last part of its path, where others of the process may open, too.
    Opening {
        flags: u64,
        name: Option<Vec<u8>>,
    },
    Copy {
        from: Option<(u32, u64)>,
        to: Option<(u32, u64)>,
    },
    /// A copy whose end is not told: of this file, or `to` that one, and how much at most.
    Sending {
        from: (u32, u64),
        to: Option<(u32, u64)>,
        source: CopyEnd,
        len: u64,
    },
    Allocate {
        file: u32,
        end: u64,
        keeps_size: bool,
    },
    Cut {
        file: u32,
        len: u64,
    },
    Sync {
        file: u32,
    },
    SyncAll,
    Unlink {
        file: u32,
    },
    Rename {
        file: u32,
        replaced: u32,
    },
    Map {
        mapping: TraceMapping,
    },
    Remap {
        start: u64,
        old_len: u64,
        len: u64,
        keeps_old: bool,
    },
}

/// A task.
#[derive(Debug)]
struct Task {
    /// Its number in the trace.
    number: u32,
    process: i32,
    /// Its own clock, and what it thought.
    clock: Clock,
    line: Timeline,
    begun: Option<Begun>,
    /// It has called for a time to pass.
    sleeps: bool,
    /// It is about to end.
    ending: bool,
}

/// A process.
#[derive(Debug)]
struct Process {
    /// The number of its first task.
    number: u32,
    /// Its tasks that are there.
    tasks: u32,
    /// How many there were at most since nobody opened.
    tasks_peak: u32,
    /// One of them, which the kernel is asked about its numbers and memory.
    asked: i32,
    descriptors: Descriptors,
    /// Its tasks of which it is not known yet whether they have opened what they were to, oldest first.
    opening: Vec<i32>,
    /// Which memory it has: that of its parent between `vfork` and `exec`.
    memory: u32,
    /// The kernel's work on pages that were found new, which is still to go from what its tasks thought.
    owed_ns: u64,
}

impl Process {
    /// Numbers that others may have had while one of its tasks opened: a call takes two at most (pipe(2)).
    const fn reserved(&self) -> u32 {
        2 * (self.tasks_peak - 1)
    }

    /// Whether nobody else has its numbers.
    const fn is_alone(&self) -> bool {
        self.tasks == 1 && !self.descriptors.shared
    }

    /// A task is seen again: what it was to close is closed.
    fn closed_by(&mut self, tid: i32) {
        self.descriptors.closed_by(tid);
        if self.opening.is_empty() {
            self.descriptors.forget_closed();
        }
    }
}

/// Everything.
#[derive(Debug)]
pub(crate) struct Follower {
    pace: Pace,
    /// The clock on the wall when it began, in seconds.
    began_at: f64,
    tasks: ByNumber<i32, Task>,
    processes: ByNumber<i32, Process>,
    memories: ByNumber<u32, Memory>,
    next_memory: u32,
    files: Files,
    task_rows: Vec<TraceTask>,
    mappings: Vec<TraceMapping>,
    ledger: Ledger,
    counts: [u64; OperationKind::ALL.len()],
    pub(crate) gaps: Gaps,
    /// Files of which it was told what is in memory of them, and how many pages that were.
    cached: BTreeSet<u32>,
    cached_pages: u64,
    /// The end of every call is told, wanted or not.
    tells_ends: bool,
    /// Opens under way that cut their file.
    cutting: usize,
}

impl Follower {
    /// Nobody yet; time begins now. `tells_ends`: the end of every call is told, wanted or not.
    pub(crate) fn new(tells_ends: bool, prices: Prices) -> Self {
        let wall = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        Self {
            pace: Pace::new(prices),
            began_at: wall.map_or(0.0, |since| since.as_secs_f64()),
            tasks: ByNumber::default(),
            processes: ByNumber::default(),
            memories: ByNumber::default(),
            next_memory: 0,
            files: Files::default(),
            task_rows: Vec::new(),
            mappings: Vec::new(),
            ledger: Ledger::default(),
            counts: [0; OperationKind::ALL.len()],
            gaps: Gaps::default(),
            cached: BTreeSet::new(),
            cached_pages: 0,
            tells_ends,
            cutting: 0,
        }
    }

    /// Nanoseconds of the program's own time since it began.
    pub(crate) fn now_ns(&self) -> u64 {
        self.pace.now_ns()
    }

    /// A call that has begun, to be ended by [`Self::leave`].
    fn begin(&mut self, tid: i32, what: UnderWay) -> Next {
        let (at_ns, wall_ns) = (self.now_ns(), self.pace.wall_ns());
        let place = self.ledger.begin();
        match self.tasks.get_mut(&tid) {
            Some(task) => {
                let think_ns = task.line.take();
                if let Some(lost) = task.begun.replace(Begun { place, at_ns, wall_ns, think_ns, what }) {
                    task.line.give_back(lost.think_ns);
                    self.ledger.end(lost.place, Vec::new());
                }
                Next::TellEnd
            }
            None => {
                self.ledger.end(place, Vec::new());
                Next::Done
            }
        }
    }

    /// An operation that has ended when it begins, as far as is known.
    fn note(&mut self, tid: i32, kind: OperationKind, object: u32, offset: u64, len: u64, detail: u32) {
        let at_ns = self.now_ns();
        let Some(task) = self.tasks.get_mut(&tid) else { return };
        let think_ns = task.line.take();
        task.line.owe(self.pace.prices().of(kind, len));
        let task_number = task.number;
        self.push(Operation {
            at_ns,
            think_ns,
            took_ns: 0,
            task: task_number,
            kind,
            object,
            offset,
            len,
            detail,
        });
    }

    /// One that a process did without a call that we see: a part of a mapping.
    fn note_part(&mut self, task: u32, kind: OperationKind, part: Part, (at_ns, detail): (u64, u32)) {
        let Part { mapping, offset, len } = part;
        self.push(Operation {
            at_ns,
            think_ns: 0,
            took_ns: 0,
            task,
            kind,
            object: mapping,
            offset,
            len,
            detail,
        });
    }

    fn push(&mut self, operation: Operation) {
        self.counts[operation.kind as usize] += 1;
        self.ledger.push(operation);
    }

    /// A new mapping's number.
    fn new_mapping(&mut self, mapping: TraceMapping) -> u32 {
        let number = u32::try_from(self.mappings.len()).unwrap_or(NONE);
        self.mappings.push(mapping);
        number
    }

    fn process_of(&mut self, tid: i32) -> Option<&mut Process> {
        let process = self.tasks.get(&tid)?.process;
        self.processes.get_mut(&process)
    }

    fn memory_of(&mut self, tid: i32) -> Option<&mut Memory> {
        let memory = self.process_of(tid)?.memory;
        self.memories.get_mut(&memory)
    }

    /// The file of a descriptor.
    fn file_of(&mut self, tid: i32, fd: Descriptor) -> Option<std::sync::Arc<crate::files::Held>> {
        let pid = self.tasks.get(&tid)?.process;
        let process = self.processes.get(&pid)?;
        if !process.opening.is_empty() && !process.descriptors.knows(fd) {
            self.find_new(pid, None); // Another task has opened it.
        }
        self.processes.get_mut(&pid)?.descriptors.file(fd, &mut self.files)
    }

    /// Operations that are ready to be written.
    pub(crate) fn ready(&self) -> usize {
        self.ledger.ready()
    }

    /// Takes them; with `all` those behind a call that has not ended, too.
    pub(crate) fn take(&mut self, all: bool) -> Vec<Operation> {
        self.ledger.take(all)
    }

    /// What they name, from these rows on.
    pub(crate) fn rows_from(&self, tasks: usize, files: usize, mappings: usize) -> Rows {
        Rows {
            tasks: self.task_rows[tasks..].to_vec(),
            files: self.files.rows[files..].to_vec(),
            mappings: self.mappings[mappings..].to_vec(),
        }
    }

    /// How many rows each table has: tasks, files, mappings.
    pub(crate) fn lengths(&self) -> (usize, usize, usize) {
        (self.task_rows.len(), self.files.rows.len(), self.mappings.len())
    }

    /// How many operations there were, by kind.
    pub(crate) const fn counts(&self) -> [u64; OperationKind::ALL.len()] {
        self.counts
    }

    /// What is missing, in sentences.
    pub(crate) fn told_gaps(&self) -> Vec<String> {
        let refused: u64 = self.processes.values().map(|process| process.descriptors.refused).sum();
        self.gaps.sentences(refused, self.ledger.given_up)
    }
}

/// Rows of the tables that operations name.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rows {
    pub(crate) tasks: Vec<TraceTask>,
    pub(crate) files: Vec<trace::TraceFile>,
    pub(crate) mappings: Vec<TraceMapping>,
}
