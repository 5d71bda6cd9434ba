//! What can be wrong with a trace, where, and what to do about it.

use std::fmt;
use std::io;

use thiserror::Error;

use super::TraceFormat;

/// Bytes that a file can have: what 32-bit page numbers reach, less room for readahead beyond the end.
pub const FILE_MAX: units::Bytes = units::Bytes((1 << 44) - (1 << 30));

/// Where in a trace something is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// A line, counted from 1.
    Line(u64),
    /// A byte, counted from 0.
    Byte(u64),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line(line) => write!(f, "line {line}"),
            Self::Byte(byte) => write!(f, "byte {byte}"),
        }
    }
}

/// A trace that cannot be read further: the problem and its place. One pointer wide, so that a
/// request or an error costs no more to return than a request.
#[derive(Debug)]
pub struct TraceError(Box<(Place, TraceProblem)>);

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.place() {
            Place::Byte(0) => self.problem().fmt(f), // The trace as a whole.
            place => write!(f, "{place}: {}", self.problem()),
        }
    }
}

impl std::error::Error for TraceError {}

impl TraceError {
    #[cold]
    /// What is wrong at a place.
    pub fn at(place: Place, problem: TraceProblem) -> Self {
        Self(Box::new((place, problem)))
    }

    /// The file at `path` cannot be opened.
    pub fn open(path: &std::path::Path, error: io::Error) -> Self {
        Self::at(Place::Byte(0), TraceProblem::Open { path: path.display().to_string(), error })
    }

    /// Where it is wrong.
    pub fn place(&self) -> Place {
        self.0.0
    }

    /// What is wrong.
    pub fn problem(&self) -> &TraceProblem {
        &self.0.1
    }

    /// What to do about it; `None` when the message says it all.
    pub fn hint(&self) -> Option<String> {
        self.problem().hint()
    }
}

/// What is wrong with a trace.
#[derive(Debug, Error)]
pub enum TraceProblem {
    /// The file cannot be opened.
    #[error("cannot open `{path}`: {error}")]
    Open {
        /// The file.
        path: String,
        /// Why, by the operating system.
        error: io::Error,
    },
    /// The operating system could not read it.
    #[error("{0}")]
    Io(io::Error),
    /// There is nothing in it.
    #[error("the trace is empty")]
    Empty,
    /// There is a heading and nothing below it.
    #[error("the trace has a heading and no requests")]
    OnlyHeading,
    /// There are records, and none of them reads or writes.
    #[error("the trace has no requests: none of its {0} operations reads or writes")]
    OnlySkipped(u64),
    /// It is compressed, and cannot be decompressed to its end.
    #[error("the {kind} data is cut short or damaged: {error}")]
    Damaged {
        /// How it is compressed.
        kind: &'static str,
        /// What the decoder says.
        error: io::Error,
    },
    /// It looks like no known format.
    #[error("this is no trace format that I know: {0}")]
    UnknownFormat(&'static str),
    /// A text format was expected, and there are bytes that no text has.
    #[error("binary data in a trace that is read as `{}`", .0.name())]
    BinaryData(TraceFormat),
    /// A text line that is not UTF-8.
    #[error("the text is not UTF-8")]
    NotUtf8,
    /// A line far longer than any request.
    #[error("the line is longer than {0} bytes")]
    LongLine(usize),
    /// Too few or too many columns.
    #[error("{found} columns where `{expected}` was expected")]
    Columns {
        /// How many there are.
        found: usize,
        /// The columns that there should be.
        expected: String,
    },
    /// The heading names no column of a kind that every request needs.
    #[error("no column is the {what}: found {found}")]
    MissingColumn {
        /// What is missing.
        what: &'static str,
        /// The columns that there are.
        found: String,
    },
    /// The heading names several.
    #[error("several columns could be the {what}: {columns}")]
    AmbiguousColumn {
        /// What they could be.
        what: &'static str,
        /// The columns.
        columns: String,
    },
    /// A quote that is not closed, or has more behind it than a comma.
    #[error("a quoted field does not end in this line as it should")]
    Quotes,
    /// A column holds no value of its kind.
    #[error("column `{column}`: `{text}` is not {expected}")]
    Field {
        /// The column's name.
        column: String,
        /// What it holds, shortened.
        text: String,
        /// What it should hold.
        expected: Expected,
    },
    /// A number that does not fit.
    #[error("column `{column}`: `{text}` is too large, {max} at most")]
    TooLarge {
        /// The column's name.
        column: String,
        /// What it holds, shortened.
        text: String,
        /// What it should hold.
        expected: Expected,
        /// The largest that fits.
        max: u64,
    },
    /// A request that ends beyond what a file can hold.
    #[error("the request ends at byte {end} of its file, which cannot have more than {FILE_MAX}")]
    BeyondFile {
        /// Where it ends.
        end: u128,
    },
    /// Objects that together are larger than a file can be.
    #[error("the trace's objects take {0} together, and a file can have {FILE_MAX}")]
    ObjectsBeyondFile(units::Bytes),
    /// A request to another disk than those above it.
    #[error("a request to disk `{disk}`, and the trace is of disk `{first}`")]
    OtherDisk {
        /// Its host and number, shortened.
        disk: String,
        /// Those of the first request.
        first: String,
    },
    /// A request before the one above it.
    #[error("time runs backwards: {} s after {} s", seconds(*.time_ns), seconds(*.before_ns))]
    Backwards {
        /// The request's time.
        time_ns: u64,
        /// The time of the one before it.
        before_ns: u64,
    },
    /// A binary trace that ends inside a record.
    #[error("the trace ends inside a record: {0} bytes are left where a record has 24")]
    Truncated(usize),
}

/// What a column should hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expected {
    /// A number of an object.
    Object,
    /// A number of anything else.
    Number,
    /// A time.
    Time,
    /// A time of Windows.
    Filetime,
    /// What a request does.
    Operation,
}

impl fmt::Display for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Object | Self::Number | Self::Time => "a number",
            Self::Filetime => "a Windows filetime",
            Self::Operation => "an operation",
        })
    }
}

fn seconds(nanos: u64) -> String {
    let (whole, part) = (nanos / 1_000_000_000, nanos % 1_000_000_000);
    let text = format!("{whole}.{part:09}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

impl TraceProblem {
    fn hint(&self) -> Option<String> {
        let names = TraceFormat::ALL.map(|format| format!("`{}`", format.name())).join(", ");
        let hint = match self {
            Self::Io(error) if error.kind() == io::ErrorKind::IsADirectory => {
                "name the file of the trace; this is a folder".to_owned()
            }
            Self::Open { .. } => "check the path and the permissions of the file and its folders".to_owned(),
            Self::Damaged { kind, .. } => {
                format!("get the file again; `{kind} -t` checks whether it is whole")
            }
            Self::OnlySkipped(_) => {
                "is the column `op` what it should be? reads are `28` or `read`".to_owned()
            }
            Self::MissingColumn { found, .. } if found.contains(';') || found.contains("\\t") => {
                "put commas between columns".to_owned()
            }
            Self::MissingColumn { what, .. } => format!("call one of them {}", names_of(what)),
            Self::AmbiguousColumn { what: "object or block", .. } => {
                "`--trace-format block-csv` or `object-csv` says which, or take one out".to_owned()
            }
            Self::AmbiguousColumn { .. } => "take all but one out, or give them other names".to_owned(),
            Self::Quotes => "a request is one line; a quote within quotes is written twice".to_owned(),
            Self::BeyondFile { .. } => {
                "blocks are of 512 bytes; is the column of blocks the right one?".to_owned()
            }
            Self::ObjectsBeyondFile(_) => "replay it on policies: `--policy lru --capacity 10k`".to_owned(),
            Self::Backwards { .. } => {
                "sort the trace by time, or take its order as it is with `--unsorted`".to_owned()
            }
            Self::TooLarge { expected: Expected::Time, .. } => {
                "times are in seconds; call the column `time_ms`, `time_us` or `time_ns` if these are not"
                    .to_owned()
            }
            Self::TooLarge { expected: Expected::Filetime, .. }
            | Self::Field { expected: Expected::Filetime, .. } => {
                "traces of MSR Cambridge count whole ticks of 100 ns since 1601; `--trace-format block-csv` reads \
                 others by their heading"
                    .to_owned()
            }
            Self::OtherDisk { first, .. } => {
                format!("a trace is of one disk; `grep ,{first}, TRACE` takes out those of the first")
            }
            Self::UnknownFormat(_) => format!("if you know better, name the format: one of {names}"),
            Self::BinaryData(_) => {
                format!("leave the format out to have it detected, or name another of {names}")
            }
            Self::NotUtf8 => "convert the file to UTF-8, or check that it is not cut or damaged".to_owned(),
            Self::LongLine(_) => "a request per line is expected; is this a binary file?".to_owned(),
            Self::Truncated(_) => {
                "the file was cut while it was copied, or it is not in this format".to_owned()
            }
            Self::Field { expected: Expected::Object, .. } => {
                "objects are numbers; replace names by numbers or hashes first".to_owned()
            }
            Self::Field { expected: Expected::Operation, .. } => {
                "write SCSI codes as `28` and `2a`, or words such as `read` and `write`".to_owned()
            }
            _ => return None,
        };
        Some(hint)
    }
}

/// The names that a heading may give to a column.
fn names_of(what: &str) -> &'static str {
    match what {
        "time" => "`time` or `timestamp`",
        "size" => "`size`, `obj_size` or `length`",
        "host" => "`Hostname`",
        "disk" => "`DiskNumber`",
        "object" => "`object`, `key` or `id`",
        "block" => "`lbn`, `lba` or `offset`",
        _ => "`object`, `key` or `id`, or `lbn`, `lba` or `offset`",
    }
}
