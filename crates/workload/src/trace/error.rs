//! What can be wrong with a trace, where, and what to do about it.

use std::fmt;
use std::io;

use thiserror::Error;

use super::TraceFormat;

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
    pub(super) fn at(place: Place, problem: TraceProblem) -> Self {
        Self(Box::new((place, problem)))
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
    #[error("cannot read the trace: {0}")]
    Io(io::Error),
    /// There is nothing in it.
    #[error("the trace is empty")]
    Empty,
    /// It is compressed.
    #[error("the trace is compressed with {0}")]
    Compressed(&'static str),
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
        expected: &'static str,
    },
    /// A column holds no number of its kind.
    #[error("column `{column}`: `{text}` is not {expected}")]
    Field {
        /// The column's name.
        column: &'static str,
        /// What it holds, shortened.
        text: String,
        /// What it should hold.
        expected: &'static str,
    },
    /// A number that does not fit.
    #[error("column `{column}`: `{text}` is too large, {max} at most")]
    TooLarge {
        /// The column's name.
        column: &'static str,
        /// What it holds, shortened.
        text: String,
        /// The largest that fits.
        max: u64,
    },
    /// A binary trace that ends inside a record.
    #[error("the trace ends inside a record: {0} bytes are left where a record has 24")]
    Truncated(usize),
}

impl TraceProblem {
    fn hint(&self) -> Option<String> {
        let names = TraceFormat::ALL.map(|format| format!("`{}`", format.name())).join(", ");
        let hint = match self {
            Self::Io(error) if error.kind() == io::ErrorKind::IsADirectory => {
                "name the file of the trace; this is a folder".to_owned()
            }
            Self::Open { .. } => "check the path and the permissions of the file and its folders".to_owned(),
            Self::Compressed(tool) => format!("decompress it first: `{tool} -d`"),
            Self::UnknownFormat(_) => format!("if you know better, name the format: one of {names}"),
            Self::BinaryData(_) => {
                format!("leave the format out to have it detected, or name another of {names}")
            }
            Self::NotUtf8 => "convert the file to UTF-8, or check that it is not cut or damaged".to_owned(),
            Self::LongLine(_) => "a request per line is expected; is this a binary file?".to_owned(),
            Self::Truncated(_) => {
                "the file was cut while it was copied, or it is not in this format".to_owned()
            }
            Self::Field { column: "object", .. } => {
                "objects are numbers; replace names by numbers or hashes first".to_owned()
            }
            _ => return None,
        };
        Some(hint)
    }
}
