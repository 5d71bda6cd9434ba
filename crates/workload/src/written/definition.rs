//! What a workload file says, read and checked: groups, files, tasks and their steps, phases, metrics.
//!
//! Amounts stay as they are written until a run knows parameters and machine. Left out: how it is read
//! ([`super::read`], [`super::steps`]), and what becomes of it ([`super::play`]).

use std::collections::BTreeMap;

use crate::written::expression::{Expression, MEMORY, TASK, Values};
use language::metric::Better;
use language::params::{ParamSpec, ParamValue, Params};

/// A workload file.
#[derive(Debug)]
pub(crate) struct Definition {
    /// The file's text, as it goes into scenarios, recordings and guests.
    pub(crate) text: String,
    pub(crate) name: String,
    pub(crate) phases: Vec<String>,
    pub(crate) keeps_caches: bool,
    pub(crate) groups: Vec<Group>,
    pub(crate) files: Vec<FileSet>,
    pub(crate) tasks: Vec<TaskGroup>,
    pub(crate) metrics: Vec<MetricDefinition>,
}

/// A cgroup, and what is written to its files once it is there.
#[derive(Debug)]
pub(crate) struct Group {
    pub(crate) path: String,
    pub(crate) settings: Vec<(String, Setting)>,
}

/// What is written to a file of a cgroup, or to a sysctl.
#[derive(Debug, Clone)]
pub(crate) enum Setting {
    /// As it stands.
    Text(String),
    /// A number.
    Amount(Expression),
}

/// How a file is there when tasks begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileState {
    /// On the disk, as if written long ago.
    LaidOut,
    /// Written by the run, so that it is in the page cache as far as that holds it.
    Written,
    /// Of no size.
    Empty,
    /// Made by the task that first writes to it.
    Absent,
}

/// Where files lie.
#[derive(Debug, Clone)]
pub(crate) enum Place {
    /// On a disk.
    Disk(Expression),
    /// Each on the next disk.
    AllDisks,
    /// In memory.
    Memory,
}

/// A file, or many of one kind.
#[derive(Debug)]
pub(crate) struct FileSet {
    pub(crate) name: String,
    pub(crate) smallest: Expression,
    /// Sizes are drawn up to here, each as likely; none: all are as large as the smallest.
    pub(crate) largest: Option<Expression>,
    /// None: a single file.
    pub(crate) count: Option<Expression>,
    pub(crate) state: FileState,
    pub(crate) place: Place,
}

/// Tasks of one kind.
#[derive(Debug)]
pub(crate) struct TaskGroup {
    pub(crate) name: String,
    pub(crate) count: Option<Expression>,
    pub(crate) group: Option<Word>,
    pub(crate) cpu: Option<Expression>,
    pub(crate) steps: Vec<Step>,
}

/// A word that may hang on a parameter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Word {
    Fixed(String),
    Param(String),
}

impl Word {
    /// What it comes to.
    pub(crate) fn of<'a>(&'a self, words: &'a BTreeMap<String, String>) -> &'a str {
        match self {
            Self::Fixed(word) => word,
            Self::Param(name) => words.get(name).map_or("", |word| word),
        }
    }
}

/// In which order a task comes to the blocks of a file, the pages of a mapping, the files of a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// From the beginning on, and there again after the end; it goes on where it was.
    Sequential,
    /// Any, as likely as any other.
    Random,
    /// Each once, in a drawn order.
    Shuffled,
    /// Few often, most seldom: the exponent in hundredths.
    Zipf(u32),
}

/// What a step with an order does at each place that it comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Deed {
    Read,
    Write,
    /// Looks at a file's size.
    Stat,
    Touch,
    TouchWriting,
}

/// How much of it a step does.
#[derive(Debug, Clone)]
pub(crate) enum Much {
    Passes(Expression),
    Count(Expression),
    Bytes(Expression),
}

/// A step over many places.
#[derive(Debug)]
pub(crate) struct Work {
    /// Its number among all steps of the file, by which it draws.
    pub(crate) id: usize,
    pub(crate) deed: Deed,
    /// A set of files, or a mapping.
    pub(crate) on: String,
    /// Each task keeps to its own part.
    pub(crate) own: bool,
    pub(crate) order: Word,
    /// Bytes of one call.
    pub(crate) block: Expression,
    pub(crate) much: Much,
    /// Of many files, a block of each in turn, instead of one file after the other.
    pub(crate) in_turn: bool,
    /// Of ten thousand operations of a step that reads, so many write.
    pub(crate) writes: u32,
    /// It ends after this time, done or not.
    pub(crate) at_most: Option<Expression>,
    /// How long it is from the beginning of one to that of the next.
    pub(crate) every: Option<Expression>,
    /// How long it rests after each.
    pub(crate) think: Option<Expression>,
    /// An `fsync` after so many writes.
    pub(crate) fsync: Option<Expression>,
    pub(crate) label: Option<String>,
}

/// How often steps are made again.
#[derive(Debug)]
pub(crate) enum Again {
    Times(Expression),
    For(Expression),
    Until(String),
}

/// One thing that a task does.
#[derive(Debug)]
pub(crate) enum Step {
    Work(Work),
    /// Anonymous memory.
    Map {
        name: String,
        size: Expression,
    },
    MapFile {
        name: String,
        file: String,
        own: bool,
        shared: bool,
        writable: bool,
        executable: bool,
    },
    Unmap(String),
    Lock(String),
    Advise {
        on: String,
        is_file: bool,
        advice: Word,
    },
    Create {
        directory: String,
        count: Expression,
        size: Expression,
        fsync: bool,
        label: Option<String>,
    },
    Unlink {
        directory: String,
        count: Option<Expression>,
    },
    Sync,
    Fsync(String),
    Sleep(Expression),
    Compute(Expression),
    Wait(String),
    End(String),
    Again {
        again: Again,
        steps: Vec<Step>,
    },
    Cgroup {
        path: String,
        file: String,
        to: Setting,
    },
    Sysctl {
        name: String,
        to: Setting,
    },
    DropCaches(u8),
}

/// A definition with its parameters: what hangs on them comes to a number.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Bound {
    pub(crate) values: Values,
    pub(crate) words: BTreeMap<String, String>,
}

impl Bound {
    pub(crate) fn new(params: &Params, memory_bytes: u64) -> Self {
        let mut values = Values::from([(MEMORY.to_owned(), memory_bytes as f64)]);
        let mut words = BTreeMap::new();
        for (name, value) in params.iter() {
            let _before = match value {
                ParamValue::Size(bytes) => values.insert(name.to_owned(), bytes.get() as f64),
                ParamValue::Count(count) => values.insert(name.to_owned(), count as f64),
                ParamValue::Share(share) => values.insert(name.to_owned(), share.as_f64()),
                ParamValue::Choice(word) | ParamValue::File(word) => {
                    words.insert(name.to_owned(), word.to_owned());
                    None
                }
            };
        }
        Self { values, words }
    }

    /// The same for the steps of one task.
    pub(crate) fn of_task(&self, number: u64) -> Self {
        let mut own = self.clone();
        own.values.insert(TASK.to_owned(), number as f64);
        own
    }

    /// An amount, which was checked when the workload was built.
    pub(crate) fn amount(&self, expression: &Expression) -> u64 {
        expression.value(&self.values).unwrap_or(0)
    }

    /// The text of a setting.
    pub(crate) fn setting(&self, setting: &Setting) -> String {
        match setting {
            Setting::Text(text) => text.clone(),
            Setting::Amount(expression) => self.amount(expression).to_string(),
        }
    }
}

impl Definition {
    /// The set of files called `name`.
    pub(crate) fn file_set(&self, name: &str) -> Option<&FileSet> {
        self.files.iter().find(|set| set.name == name)
    }
}

/// Visits every step, those within loops too.
pub(crate) fn each_step<'a>(steps: &'a [Step], visit: &mut impl FnMut(&'a Step)) {
    for step in steps {
        visit(step);
        if let Step::Again { steps, .. } = step {
            each_step(steps, visit);
        }
    }
}

impl Step {
    /// The amounts in it.
    pub(crate) fn amounts(&self) -> Vec<&Expression> {
        match self {
            Self::Work(work) => {
                let much = match &work.much {
                    Much::Passes(amount) | Much::Count(amount) | Much::Bytes(amount) => amount,
                };
                let others = [&work.every, &work.think, &work.fsync, &work.at_most];
                [&work.block, much].into_iter().chain(others.into_iter().flatten()).collect()
            }
            Self::Map { size, .. } => vec![size],
            Self::Create { count, size, .. } => vec![count, size],
            Self::Unlink { count, .. } => count.iter().collect(),
            Self::Sleep(amount) | Self::Compute(amount) => vec![amount],
            Self::Again { again: Again::Times(amount) | Again::For(amount), .. } => vec![amount],
            Self::Cgroup { to: Setting::Amount(amount), .. }
            | Self::Sysctl { to: Setting::Amount(amount), .. } => {
                vec![amount]
            }
            _ => Vec::new(),
        }
    }
}

/// What a workload file says of itself, besides what it does.
pub(crate) struct Head {
    pub(crate) help: String,
    pub(crate) params: Vec<ParamSpec>,
    pub(crate) prepares: Vec<String>,
}

/// A metric that a file declares.
#[derive(Debug)]
pub(crate) struct MetricDefinition {
    pub(crate) name: String,
    pub(crate) what: Measured,
    pub(crate) unit: String,
    pub(crate) better: Better,
    pub(crate) of: Option<String>,
    pub(crate) help: String,
}

/// What a metric is.
#[derive(Debug)]
pub(crate) enum Measured {
    /// How long a phase lasts.
    Seconds(String),
    /// Pages of a set of files that are in memory when a phase ends.
    Resident { files: String, at: usize },
    /// A number of `/proc/vmstat`, or of the `memory.stat` of a group.
    Counter { group: Option<String>, name: String, span: Span },
    /// A percentile of what one operation of a step takes, in microseconds.
    Latency { label: String, percentile: f64 },
    /// MiB a second that a step moves while it runs.
    Rate(String),
    /// Operations of a step.
    Operations(String),
}

/// Between which phases' ends; 0 is the beginning of all tasks, 1 the end of the first phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Span {
    At(usize),
    Between(usize, usize),
}

impl Span {
    /// Whether it is about the end of this phase.
    pub(crate) fn needs(self, number: usize) -> bool {
        match self {
            Self::At(at) => at == number,
            Self::Between(from, to) => from == number || to == number,
        }
    }
}
