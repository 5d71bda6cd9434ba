//! Who waited in which wait, for how long, what ended it, and whether anything could have: the file
//! `waits.csv`, one row for waits of one task in one phase that are alike.
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
use crate::files::{csv_problem, utf8};

/// Waits of one task in one phase that are alike.
#[derive(Debug, Clone, PartialEq, Eq)]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum WaitKind {
    /// Work for a thread that has none; or a program's own choice.
    Idle,
    /// The request that is waited for.
    Io,
    /// Some write to some disk.
    Writes,
    /// Progress of somebody else in reclaim.
    Reclaim,
    /// Nothing: a pause of a given length.
    Pause,
}

/// What ended a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum WaitEnd {
    /// Somebody woke the task.
    Wake,
    /// The timeout passed.
    Timeout,
    /// The end of the run: it lasted still.
    Run,
}

impl WaitKind {
    const ALL: [(Self, &str); 5] = [
        (Self::Idle, "idle"),
        (Self::Io, "io"),
        (Self::Writes, "writes"),
        (Self::Reclaim, "reclaim"),
        (Self::Pause, "pause"),
    ];

    /// Whether the allocator or reclaim makes its callers wait so: for others, or for nothing.
    pub const fn is_imposed(self) -> bool {
        matches!(self, Self::Writes | Self::Reclaim)
    }
}

impl WaitEnd {
    const ALL: [(Self, &str); 3] = [(Self::Wake, "wake"), (Self::Timeout, "timeout"), (Self::Run, "run")];
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

fn named<T: Copy>(all: &[(T, &'static str)], name: &str) -> Option<T> {
    all.iter().find(|(_, known)| *known == name).map(|(value, _)| *value)
}

/// Columns of all files; those of schema 3 have no others.
const COLUMNS: usize = 11;

const HEADER: [&str; COLUMNS + 2] = [
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

/// Whether the file needs the columns of schema 4.
pub(crate) fn tell_within(waits: &[Wait]) -> bool {
    waits.iter().any(|wait| !wait.within.is_empty() || !wait.on.is_empty())
}

pub(crate) fn encode(waits: &[Wait]) -> Vec<u8> {
    let columns = if tell_within(waits) { HEADER.len() } else { COLUMNS };
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(&HEADER[..columns]).expect("memory takes every write");
    for wait in waits {
        let futile = match wait.futile {
            Some(true) => "yes",
            Some(false) => "no",
            None => "unknown",
        };
        let lengths: Vec<String> =
            wait.lengths.iter().map(|(class, count)| format!("{class}:{count}")).collect();
        let fields = [
            wait.phase.clone(),
            wait.task.clone(),
            wait.wait.clone(),
            wait.kind.to_string(),
            wait.ended.to_string(),
            futile.to_owned(),
            wait.count.to_string(),
            wait.requested_ns.map_or_else(String::new, |ns| ns.to_string()),
            wait.spent_ns.to_string(),
            wait.longest_ns.to_string(),
            lengths.join(" "),
            wait.within.clone(),
            wait.on.clone(),
        ];
        writer.write_record(&fields[..columns]).expect("memory takes every write");
    }
    writer.into_inner().expect("memory takes every write")
}

pub(crate) fn decode(bytes: &[u8], path: &Path) -> Result<Vec<Wait>, RecordingError> {
    let text = utf8(bytes, path)?;
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let malformed =
        |line, problem| RecordingError::Malformed { path: path.to_owned(), line, column: 1, problem };
    let broken = |error: csv::Error| {
        let line = error.position().map_or(1, csv::Position::line);
        malformed(line, csv_problem(&error))
    };
    let headers = reader.headers().map_err(broken)?;
    if headers != HEADER[..] && headers != HEADER[..COLUMNS] {
        return Err(malformed(1, format!("expected the columns `{}`", HEADER[..COLUMNS].join(","))));
    }
    let mut waits = Vec::new();
    for record in reader.records() {
        let record = record.map_err(broken)?;
        let line = record.position().map_or(1, csv::Position::line);
        let wait = decode_row(&record).map_err(|column| {
            let field = record.get(column).unwrap_or_default().escape_default();
            malformed(line, format!("`{field}` is no `{}`", HEADER[column]))
        })?;
        waits.push(wait);
    }
    Ok(waits)
}

/// One row; an error is the column that cannot be read.
fn decode_row(record: &csv::StringRecord) -> Result<Wait, usize> {
    let field = |column: usize| record.get(column).ok_or(column);
    let number = |column| parsed::<u64>(field(column)?).ok_or(column);
    Ok(Wait {
        phase: field(0)?.to_owned(),
        task: field(1)?.to_owned(),
        wait: field(2)?.to_owned(),
        kind: named(&WaitKind::ALL, field(3)?).ok_or(3_usize)?,
        ended: named(&WaitEnd::ALL, field(4)?).ok_or(4_usize)?,
        futile: match field(5)? {
            "yes" => Some(true),
            "no" => Some(false),
            "unknown" => None,
            _ => return Err(5),
        },
        count: number(6)?,
        requested_ns: if field(7)?.is_empty() { None } else { Some(number(7)?) },
        spent_ns: number(8)?,
        longest_ns: number(9)?,
        lengths: decode_lengths(field(10)?).ok_or(10_usize)?,
        within: record.get(11).unwrap_or_default().to_owned(),
        on: record.get(12).unwrap_or_default().to_owned(),
    })
}

fn decode_lengths(text: &str) -> Option<BTreeMap<u8, u64>> {
    let pair = |pair: &str| {
        let (class, count) = pair.split_once(':')?;
        Some((parsed(class)?, parsed(count)?))
    };
    text.split_ascii_whitespace().map(pair).collect()
}

/// A number as [`encode`] writes it, so that nothing reads back that would be written otherwise.
fn parsed<T: FromStr + fmt::Display>(text: &str) -> Option<T> {
    text.parse::<T>().ok().filter(|number| number.to_string() == text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::{Files, tests::example};
    use crate::{OomKill, Recording};

    pub(crate) fn waits() -> Vec<Wait> {
        let wait = |task: &str, wait: &str, kind, ended, futile, count: u64, each_ns: u64| Wait {
            phase: "read".into(),
            task: task.into(),
            wait: wait.into(),
            kind,
            ended,
            futile,
            count,
            requested_ns: (kind == WaitKind::Writes).then_some(count * 20_000_000),
            spent_ns: count * each_ns,
            longest_ns: each_ns,
            lengths: BTreeMap::from([(15, count)]),
            within: String::new(),
            on: String::new(),
        };
        use WaitEnd::{Run, Timeout, Wake};
        vec![
            wait("reader-3", "congestion_wait", WaitKind::Writes, Timeout, Some(true), 8979, 20_000_000),
            wait("reader-3", "congestion_wait", WaitKind::Writes, Wake, Some(false), 2, 3_000_000),
            wait("a,\"b\"\n", "wait_iff_congested", WaitKind::Writes, Timeout, None, 1, 20_000_000),
            wait("kswapd0", "kswapd asleep", WaitKind::Idle, Run, Some(false), 1, 900_000_000),
        ]
    }

    fn decode_files(files: &Files) -> Result<Recording, RecordingError> {
        files.decode(Path::new("runs/first"))
    }

    #[test]
    fn waits_read_back_equal_with_and_without_a_kill() {
        let waited = example().waited(waits());
        assert_eq!(waited.schema, 3);
        assert_eq!(decode_files(&Files::encode(&waited)).unwrap(), waited);
        let kill = OomKill {
            at_ns: 1,
            task: "t".into(),
            cgroup: String::new(),
            by_limit: false,
            anon_pages: None,
            ..OomKill::default()
        };
        for killed in [example().killed(vec![kill.clone()]).waited(waits()), waited.killed(vec![kill])] {
            assert_eq!(killed.schema, 3);
            assert_eq!(decode_files(&Files::encode(&killed)).unwrap(), killed);
        }
    }

    /// What a task waited in the middle of takes two more columns and a newer schema; time in sections, too.
    #[test]
    fn what_is_told_of_sections_reads_back_equal_and_only_then_the_schema_is_newer() {
        let mut told = waits();
        told[0].within = format!("allocation stall{WITHIN}super-block shrinker");
        told[0].on = "any write, \"or\" none".into();
        let waited = example().waited(told);
        let text = String::from_utf8(Files::encode(&waited).waits.unwrap()).unwrap();
        let lines: Vec<&str> = text.lines().take(3).collect();
        insta::assert_snapshot!(lines.join("\n"), @r#"
        phase,task,wait,kind,ended,futile,count,requested_ns,spent_ns,longest_ns,lengths,within,on
        read,reader-3,congestion_wait,writes,timeout,yes,8979,179580000000,179580000000,20000000,15:8979,allocation stall > super-block shrinker,"any write, ""or"" none"
        read,reader-3,congestion_wait,writes,wake,no,2,40000000,6000000,3000000,15:2,,
        "#);
        let time = crate::SectionTime {
            phase: "read".into(),
            task: "reader-3".into(),
            within: "allocation stall".into(),
            count: 17,
            spent_ns: 400,
            longest_ns: 90,
            waited: 3,
        };
        for recording in [waited.clone(), waited.within(vec![time.clone()]), example().within(vec![time])] {
            assert_eq!(recording.schema, 4);
            assert_eq!(decode_files(&Files::encode(&recording)).unwrap(), recording);
        }
        assert_eq!(example().within(Vec::new()), example());
    }

    #[test]
    fn the_bytes_of_waits_never_change() {
        let files = Files::encode(&example().waited(waits()[..2].to_vec()));
        insta::assert_snapshot!(String::from_utf8(files.waits.unwrap()).unwrap(), @r"
        phase,task,wait,kind,ended,futile,count,requested_ns,spent_ns,longest_ns,lengths
        read,reader-3,congestion_wait,writes,timeout,yes,8979,179580000000,179580000000,20000000,15:8979
        read,reader-3,congestion_wait,writes,wake,no,2,40000000,6000000,3000000,15:2
        ");
        let manifest = String::from_utf8(files.manifest).unwrap();
        assert!(
            manifest.contains("\nschema 3\n") && manifest.contains("\nfile waits.csv 255 "),
            "{manifest}"
        );
    }

    /// A recording without waits is written as it always was, and read by programs that know no waits.
    #[test]
    fn without_waits_there_is_no_file_and_no_newer_schema() {
        let files = Files::encode(&example().waited(Vec::new()));
        assert_eq!(files, Files::encode(&example()));
        assert_eq!(files.waits, None);
        assert!(files.manifest.starts_with(b"pagetide recording\nschema 1\n"));
        assert_eq!(decode_files(&files).unwrap().waits, []);
    }

    #[test]
    fn what_is_no_wait_is_named_with_its_place() {
        let header = HEADER[..COLUMNS].join(",");
        let error = |text: String| decode(text.as_bytes(), Path::new("w.csv")).unwrap_err().to_string();
        let row = |row: &str| error(format!("{header}\n{row}\n"));
        let errors = [
            error(String::new()),
            error("task,wait\n".to_owned()),
            row("p,t,w,io"),
            row("p,t,w,naps,wake,no,1,,5,5,3:1"),
            row("p,t,w,io,luck,no,1,,5,5,3:1"),
            row("p,t,w,io,wake,maybe,1,,5,5,3:1"),
            row("p,t,w,io,wake,no,-1,,5,5,3:1"),
            row("p,t,w,io,wake,no,1,0x5,5,5,3:1"),
            row("p,t,w,io,wake,no,1,,5,5,3=1"),
            row("p,t,w,io,wake,no,01,,5,5,300:1"),
        ];
        insta::assert_snapshot!(errors.join("\n"), @r"
        `w.csv`, line 1, column 1: expected the columns `phase,task,wait,kind,ended,futile,count,requested_ns,spent_ns,longest_ns,lengths`
        `w.csv`, line 1, column 1: expected the columns `phase,task,wait,kind,ended,futile,count,requested_ns,spent_ns,longest_ns,lengths`
        `w.csv`, line 2, column 1: the row has 4 fields, the header 11
        `w.csv`, line 2, column 1: `naps` is no `kind`
        `w.csv`, line 2, column 1: `luck` is no `ended`
        `w.csv`, line 2, column 1: `maybe` is no `futile`
        `w.csv`, line 2, column 1: `-1` is no `count`
        `w.csv`, line 2, column 1: `0x5` is no `requested_ns`
        `w.csv`, line 2, column 1: `3=1` is no `lengths`
        `w.csv`, line 2, column 1: `01` is no `count`
        ");
    }

    #[test]
    fn a_missing_or_changed_file_of_waits_is_told() {
        let parent = tempfile::tempdir().unwrap();
        let target = parent.path().join("first");
        let waited = example().waited(waits());
        waited.write(&target).unwrap();
        assert_eq!(Recording::read(&target).unwrap(), waited);
        let path = target.join("waits.csv");
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, text.replace("reader-3", "reader-4")).unwrap();
        let error = Recording::read(&target).unwrap_err();
        assert!(matches!(error, RecordingError::Changed { .. }), "{error}");
        std::fs::remove_file(&path).unwrap();
        let error = Recording::read(&target).unwrap_err();
        assert!(matches!(error, RecordingError::Missing { path } if path.ends_with("waits.csv")));
    }
}
