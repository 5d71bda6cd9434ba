//! Who waited in which wait, for how long, what ended it, and whether anything could have: a
//! table on disk, one row for waits of one task in one phase that are alike.
//!
//! A simulated run has all of its waits, idle ones, too. A run on a real kernel has those that the
//! kernel's tracepoints tell of, and of those not always whether they were futile: that is not known
//! then, which is something else than no. Recordings of schema 1 and 2 have none of this, but
//! [`crate::Stall`]s; those of schema 3 do not say in the middle of what a task waited, and on whom.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::str::FromStr;

use crate::RecordingError;
use crate::table::Column;

/// Waits of one task in one phase that are alike.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wait {
    /// The phase in which they ended, by the name that phases have in reports; empty in a run without
    /// phases.
    pub phase: String,
    /// The task's name.
    pub task: String,
    /// The function of the kernel that waits.
    pub wait: String,
    /// In the middle of what, outermost first and divided by [`WITHIN`], such as `allocation stall >
    /// super-block shrinker`; empty where it is nothing that is told apart.
    pub within: String,
    /// On whom, where the wait was within something: who could have ended it.
    pub on: String,
    /// What ends such a wait, other than its timeout.
    pub kind: WaitKind,
    /// What did end them.
    pub ended: WaitEnd,
    /// Whether they ran to their timeout while nothing was under way that could have ended them;
    /// `None` where nobody knows.
    pub futile: Option<bool>,
    /// How many there were.
    pub count: u64,
    /// The sum of their timeouts; `None` for waits without one.
    pub requested_ns: Option<u64>,
    /// How long they lasted altogether.
    pub spent_ns: u64,
    /// The longest one.
    pub longest_ns: u64,
    /// How many were how long: class 0 is below a microsecond, class `n` from `2^(n-1)` to below `2^n`.
    pub lengths: BTreeMap<u8, u64>,
}

/// What divides the parts of [`Wait::within`] and [`crate::SectionTime::within`].
pub const WITHIN: &str = " > ";

/// What ends a wait, other than its timeout.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum WaitKind {
    /// Work for a thread that has none; or a program's own choice.
    #[default]
    Idle,
    /// The request that is waited for.
    Io,
    /// Some write to some disk.
    Writes,
    /// Progress of somebody else in reclaim.
    Reclaim,
    /// Nothing: a pause of a given length.
    Pause,
    /// Another task: a lock that it holds, or work that was asked of it.
    Task,
}

/// What ended a wait.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum WaitEnd {
    /// Somebody woke the task.
    #[default]
    Wake,
    /// The timeout passed.
    Timeout,
    /// The end of the run: it lasted still.
    Run,
}

impl WaitKind {
    pub(crate) const ALL: [(Self, &str); 6] = [
        (Self::Idle, "idle"),
        (Self::Io, "io"),
        (Self::Writes, "writes"),
        (Self::Reclaim, "reclaim"),
        (Self::Pause, "pause"),
        (Self::Task, "task"),
    ];

    /// Whether the allocator or reclaim makes its callers wait so: for others, or for nothing.
    pub const fn is_imposed(self) -> bool {
        matches!(self, Self::Writes | Self::Reclaim)
    }
}

impl WaitEnd {
    pub(crate) const ALL: [(Self, &str); 3] =
        [(Self::Wake, "wake"), (Self::Timeout, "timeout"), (Self::Run, "run")];
}

impl fmt::Display for WaitKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(name_of(&Self::ALL, *self))
    }
}

impl fmt::Display for WaitEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(name_of(&Self::ALL, *self))
    }
}

fn name_of<T: Copy + PartialEq>(all: &[(T, &'static str)], value: T) -> &'static str {
    all.iter().find(|(known, _)| *known == value).expect("every value has a name").1
}

pub(crate) fn named<T: Copy>(all: &[(T, &'static str)], name: &str) -> Option<T> {
    all.iter().find(|(_, known)| *known == name).map(|(value, _)| *value)
}

/// Names of the columns.
pub(crate) const HEADER: [&str; 13] = [
    "phase",
    "task",
    "wait",
    "kind",
    "ended",
    "futile",
    "count",
    "requested_ns",
    "spent_ns",
    "longest_ns",
    "lengths",
    "within",
    "on",
];

/// The table on disk.
pub(crate) fn columns(waits: &[Wait]) -> Vec<Column> {
    let texts = |name, of: fn(&Wait) -> &str| Column::of_texts(name, waits.iter().map(of));
    let numbers = |name, of: fn(&Wait) -> u64| Column::of_u64(name, waits.iter().map(of));
    let futile = waits.iter().map(|wait| match wait.futile {
        Some(true) => "yes",
        Some(false) => "no",
        None => "unknown",
    });
    let lengths = |wait: &Wait| {
        let pairs = wait.lengths.iter().map(|(class, count)| format!("{class}:{count}"));
        pairs.collect::<Vec<_>>().join(" ")
    };
    let lengths: Vec<String> = waits.iter().map(lengths).collect();
    let requested = Column::of_u64("requested_ns", waits.iter().filter_map(|wait| wait.requested_ns));
    let present = waits.iter().map(|wait| wait.requested_ns.is_some().into()).collect();
    vec![
        texts("phase", |wait| &wait.phase),
        texts("task", |wait| &wait.task),
        texts("wait", |wait| &wait.wait),
        texts("kind", |wait| name_of(&WaitKind::ALL, wait.kind)),
        texts("ended", |wait| name_of(&WaitEnd::ALL, wait.ended)),
        Column::of_texts("futile", futile),
        numbers("count", |wait| wait.count),
        Column { present: Some(present), ..requested },
        numbers("spent_ns", |wait| wait.spent_ns),
        numbers("longest_ns", |wait| wait.longest_ns),
        Column::of_texts("lengths", lengths.iter().map(String::as_str)),
        texts("within", |wait| &wait.within),
        texts("on", |wait| &wait.on),
    ]
}

/// The waits in a table of [`columns`].
pub(crate) fn of_columns(columns: Vec<Column>, path: &Path) -> Result<Vec<Wait>, RecordingError> {
    let no_wait = |place: usize| RecordingError::Damaged {
        path: path.to_owned(),
        problem: format!("`{}` is missing or tells of no wait", HEADER[place]),
    };
    let mut columns = Columns { columns: columns.into_iter(), place: 0 };
    decode(&mut columns).ok_or_else(|| no_wait(columns.place.saturating_sub(1)))
}

/// Columns that are taken in the order of [`HEADER`].
struct Columns {
    columns: std::vec::IntoIter<Column>,
    /// How many were taken.
    place: usize,
}

impl Columns {
    fn next(&mut self) -> Option<Column> {
        self.place += 1;
        self.columns.next().filter(|column| column.name == HEADER[self.place - 1])
    }

    fn texts(&mut self) -> Option<Vec<String>> {
        self.next()?.into_texts()
    }

    fn numbers(&mut self) -> Option<Vec<u64>> {
        self.next()?.into_u64()
    }

    fn read<T>(&mut self, read: impl Fn(&str) -> Option<T>) -> Option<Vec<T>> {
        self.texts()?.iter().map(|text| read(text)).collect()
    }
}

/// `None`: the column taken last cannot be read.
fn decode(columns: &mut Columns) -> Option<Vec<Wait>> {
    let [phase, task, wait] = [columns.texts()?, columns.texts()?, columns.texts()?];
    let kind = columns.read(|text| named(&WaitKind::ALL, text))?;
    let ended = columns.read(|text| named(&WaitEnd::ALL, text))?;
    let futile = columns.read(futility)?;
    let count = columns.numbers()?;
    let requested_ns = columns.next()?.into_gappy_u64()?;
    let [spent_ns, longest_ns] = [columns.numbers()?, columns.numbers()?];
    let lengths = columns.read(decode_lengths)?;
    let [within, on] = [columns.texts()?, columns.texts()?];
    let row = |row: usize| Wait {
        phase: phase[row].clone(),
        task: task[row].clone(),
        wait: wait[row].clone(),
        within: within[row].clone(),
        on: on[row].clone(),
        kind: kind[row],
        ended: ended[row],
        futile: futile[row],
        count: count[row],
        requested_ns: requested_ns[row],
        spent_ns: spent_ns[row],
        longest_ns: longest_ns[row],
        lengths: lengths[row].clone(),
    };
    Some((0..phase.len()).map(row).collect())
}

/// What the words of a file say; `None` where they say nothing.
pub(crate) fn futility(text: &str) -> Option<Option<bool>> {
    match text {
        "yes" => Some(Some(true)),
        "no" => Some(Some(false)),
        "unknown" => Some(None),
        _ => None,
    }
}

pub(crate) fn decode_lengths(text: &str) -> Option<BTreeMap<u8, u64>> {
    let pair = |pair: &str| {
        let (class, count) = pair.split_once(':')?;
        Some((parsed(class)?, parsed(count)?))
    };
    text.split_ascii_whitespace().map(pair).collect()
}

/// A number as it is written, so that nothing reads back that would be written otherwise.
pub(crate) fn parsed<T: FromStr + fmt::Display>(text: &str) -> Option<T> {
    text.parse::<T>().ok().filter(|number| number.to_string() == text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_wait_is_named_with_its_column() {
        let error = |place: usize, column: Option<Column>| {
            let mut columns = columns(&vec![Wait::default(); 4]);
            match column {
                Some(column) => columns[place] = column,
                None => columns.truncate(place),
            }
            of_columns(columns, Path::new("w.parquet")).unwrap_err().to_string()
        };
        let texts = |name, text: &'static str| Some(Column::of_texts(name, std::iter::repeat_n(text, 4)));
        let errors = [
            error(0, None),
            error(1, texts("thread", "t")),
            error(3, texts("kind", "naps")),
            error(4, texts("ended", "luck")),
            error(5, texts("futile", "maybe")),
            error(6, texts("count", "1")),
            error(10, texts("lengths", "3=1")),
            error(11, None),
        ];
        insta::assert_snapshot!(errors.join("\n"), @"
        `w.parquet` is no table that can be read: `phase` is missing or tells of no wait
        `w.parquet` is no table that can be read: `task` is missing or tells of no wait
        `w.parquet` is no table that can be read: `kind` is missing or tells of no wait
        `w.parquet` is no table that can be read: `ended` is missing or tells of no wait
        `w.parquet` is no table that can be read: `futile` is missing or tells of no wait
        `w.parquet` is no table that can be read: `count` is missing or tells of no wait
        `w.parquet` is no table that can be read: `lengths` is missing or tells of no wait
        `w.parquet` is no table that can be read: `within` is missing or tells of no wait
        ");
    }
}
