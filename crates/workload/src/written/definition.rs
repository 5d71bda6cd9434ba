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
    /// What starts the tasks, lets them take turns and ends phases; empty: all start at once and end phases.
    pub(crate) main: Vec<Step>,
    pub(crate) metrics: Vec<MetricDefinition>,
    pub(crate) refusals: Vec<Refusal>,
}

/// Parameters that do not go together.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) when: When,
    pub(crate) param: &'static str,
    pub(crate) problem: String,
    pub(crate) hint: String,
}

/// Whether parameters are what they must be: of each list one must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct When(pub(crate) Vec<Vec<Condition>>);

/// That a parameter has a value, or another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Condition {
    pub(crate) name: String,
    pub(crate) is: bool,
    pub(crate) value: String,
}

impl When {
    pub(crate) fn holds(&self, bound: &Bound) -> bool {
        let is = |one: &Condition| (bound.words.get(&one.name) == Some(&one.value)) == one.is;
        self.0.iter().all(|any| any.iter().any(is))
    }
}

/// Something that is so, is not so, or hangs on parameters.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Flag(pub(crate) Option<When>);

impl Flag {
    pub(crate) fn holds(&self, bound: &Bound) -> bool {
        self.0.as_ref().is_some_and(|when| when.holds(bound))
    }
}

/// A cgroup, and what is written to its files once it is there.
#[derive(Debug)]
pub(crate) struct Group {
    pub(crate) name: String,
    pub(crate) path: String,
    pub(crate) when: When,
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
    pub(crate) when: When,
    pub(crate) smallest: Expression,
    /// Sizes are drawn up to here, each as likely; none: all are as large as the smallest.
    pub(crate) largest: Option<Expression>,
    /// So much of each lies on the disk behind what steps come to.
    pub(crate) beyond: Option<Expression>,
    /// None: a single file.
    pub(crate) count: Option<Expression>,
    pub(crate) state: FileState,
    pub(crate) place: Place,
}

/// Tasks of one kind.
#[derive(Debug)]
pub(crate) struct TaskGroup {
    pub(crate) name: String,
    pub(crate) when: When,
    pub(crate) count: Option<Expression>,
    /// The first of these that is there.
    pub(crate) groups: Vec<Word>,
    pub(crate) cpu: Option<Expression>,
    /// How late it may begin.
    pub(crate) begins_within: Option<Expression>,
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

/// In the name that an order is drawn by: each pass has its own number, and is drawn anew.
pub(crate) const PASS: &str = "$pass";

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
    /// Every so manyth place is written to; 0 for none.
    pub(crate) write_each: Option<Expression>,
    /// By which name its order is drawn; none: by its number.
    pub(crate) draw: Option<String>,
    pub(crate) label: Option<String>,
}

/// How often steps are made again.
#[derive(Debug)]
pub(crate) enum Again {
    Times(Expression),
    For(Expression),
    Until(String),
    /// Once, or not at all.
    When(When),
    /// Once: how long it takes is told by this label.
    Timed(String),
}

impl Again {
    /// How often, as far as that is known before.
    pub(crate) fn times(&self, bound: &Bound) -> u64 {
        match self {
            Self::Times(times) => bound.amount(times),
            Self::When(when) => u64::from(when.holds(bound)),
            Self::For(_) | Self::Until(_) | Self::Timed(_) => 1,
        }
    }
}

/// One thing that a task does.
#[derive(Debug)]
pub(crate) enum Step {
    Work(Box<Work>),
    /// Anonymous memory.
    Map {
        name: String,
        size: Expression,
    },
    MapFile {
        name: String,
        file: String,
        own: bool,
        shared: Flag,
        writable: Flag,
        executable: Flag,
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
    /// Later reads and writes of the task use a buffer of so many bytes.
    Buffer(Expression),
    /// Counts pages of a file or a mapping that are in memory.
    Count {
        on: String,
        is_file: bool,
        label: String,
    },
    /// Reads `memory.stat` of a group.
    Flush(String),
    /// Writes content to all pages of a mapping that a compressor brings down to so many bytes each.
    Fill {
        name: String,
        compressed: Expression,
    },
    /// Asks a group, or node 0, to reclaim so many bytes.
    Reclaim {
        bytes: Expression,
        group: Option<String>,
        swappiness: Option<Setting>,
        label: String,
    },
    /// All tasks of this kind are started, and have ended.
    Run(usize),
    /// A task does these steps while the others wait.
    Turn {
        task: usize,
        steps: Vec<Step>,
    },
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
        let mut words: BTreeMap<String, String> =
            params.specs().map(|spec| (spec.name.to_owned(), "none".to_owned())).collect();
        for (name, value) in params.iter() {
            words.insert(name.to_owned(), value.to_string());
            let _before = match value {
                ParamValue::Size(bytes) => values.insert(name.to_owned(), bytes.get() as f64),
                ParamValue::Count(count) => values.insert(name.to_owned(), count as f64),
                ParamValue::Share(share) => values.insert(name.to_owned(), share.as_f64()),
                ParamValue::Choice(_) | ParamValue::File(_) => None,
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

    /// The text of a setting; none where it hangs on a parameter that is not set.
    pub(crate) fn setting(&self, setting: &Setting) -> Option<String> {
        match setting {
            Setting::Text(text) => Some(text.clone()),
            Setting::Amount(amount) if self.lacks(amount).is_some() => None,
            Setting::Amount(amount) => Some(self.amount(amount).to_string()),
        }
    }

    /// A parameter in `amount` that is not set.
    pub(crate) fn lacks<'e>(&self, amount: &'e Expression) -> Option<&'e str> {
        amount.names().into_iter().find(|name| !self.values.contains_key(*name))
    }
}

impl Definition {
    /// The set of files called `name`.
    pub(crate) fn file_set(&self, name: &str) -> Option<&FileSet> {
        self.files.iter().find(|set| set.name == name)
    }

    /// The steps of all tasks, and those that let them go.
    pub(crate) fn all_steps(&self) -> impl Iterator<Item = &[Step]> {
        self.tasks.iter().map(|task| &*task.steps).chain([&*self.main])
    }
}

/// Visits the steps that are made with these parameters.
pub(crate) fn each_made<'a>(steps: &'a [Step], bound: &Bound, visit: &mut impl FnMut(&'a Step)) {
    for step in steps {
        match step {
            Step::Again { again, .. } if again.times(bound) == 0 => {}
            Step::Again { steps, .. } | Step::Turn { steps, .. } => each_made(steps, bound, visit),
            _ => visit(step),
        }
    }
}

/// Visits every step, those within loops too.
pub(crate) fn each_step<'a>(steps: &'a [Step], visit: &mut impl FnMut(&'a Step)) {
    for step in steps {
        visit(step);
        if let Step::Again { steps, .. } | Step::Turn { steps, .. } = step {
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
                let others = [&work.every, &work.think, &work.fsync, &work.at_most, &work.write_each];
                [&work.block, much].into_iter().chain(others.into_iter().flatten()).collect()
            }
            Self::Map { size, .. } => vec![size],
            Self::Create { count, size, .. } => vec![count, size],
            Self::Unlink { count, .. } => count.iter().collect(),
            Self::Sleep(amount)
            | Self::Compute(amount)
            | Self::Buffer(amount)
            | Self::Fill { compressed: amount, .. }
            | Self::Reclaim { bytes: amount, .. } => vec![amount],
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
    pub(crate) varies: Vec<String>,
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
    /// What it is divided by.
    pub(crate) per: Option<Expression>,
    /// Whether it stands at the head of reports.
    pub(crate) heads: bool,
}

/// What a metric is.
#[derive(Debug)]
pub(crate) enum Measured {
    /// How long a phase lasts.
    Seconds(String),
    /// Pages of a set of files that are in memory when a phase ends.
    Resident { files: String, at: usize },
    /// A number of `/proc/vmstat`, or of a file of those of these groups that are there, added up.
    Counter { of: Counted, name: String, span: Span },
    /// A percentile of what one operation of a step takes, in microseconds.
    Latency { label: String, percentile: f64 },
    /// MiB a second that a step moves while it runs.
    Rate(String),
    /// Operations of a step.
    Operations(String),
    /// Seconds that steps took, added up, or as samples.
    Took { label: String, each: bool },
    /// MiB a second along a pass, in so many samples.
    Rates { label: String, parts: u64 },
    /// What a step counted: the first time, all times added up, or as samples.
    Found { label: String, how: Found },
    /// What an amount comes to.
    Value(Expression),
}

/// Where a number is read.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Counted {
    Machine,
    /// A file of groups.
    Groups(Vec<String>, &'static str),
}

/// What of several counts is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Found {
    First,
    Sum,
    Each,
}

/// Stands for the phase that ends last, whichever that is.
pub(crate) const LAST: usize = usize::MAX;

/// Between which phases' ends; 0 is the beginning of all tasks, 1 the end of the first phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Span {
    At(usize),
    Between(usize, usize),
    /// From the end of the phase before it, whichever that is.
    Over(usize),
}
