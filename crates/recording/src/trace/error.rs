//! What can be wrong with a file that shall hold, or holds, a trace.

use std::io;
use std::path::PathBuf;

/// Why a trace could not be written or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TraceError {
    /// Something with the file's name exists.
    #[error("`{}` exists already", path.display())]
    Exists {
        /// The file that was to be written.
        path: PathBuf,
    },
    /// The system refused to write.
    #[error("cannot write `{}`: {source}", path.display())]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// The trace could not be written to its end.
    #[error("{source}; what was complete by then is in `{}`", path.display())]
    Kept {
        /// The file that can be read as far as it goes.
        path: PathBuf,
        /// What went wrong.
        source: Box<TraceError>,
    },
    /// A row names what is not there, or a range that cannot be.
    #[error("`{}` is no trace that can be replayed: {source}", path.display())]
    Broken {
        /// The file.
        path: PathBuf,
        /// The row, and what is wrong with it.
        source: trace::BrokenTrace,
    },
    /// There is no such file.
    #[error("there is no trace at `{}`{}", path.display(), left_over(partial.as_ref()))]
    Missing {
        /// The path as given.
        path: PathBuf,
        /// What a writer of that name left that did not end.
        partial: Option<PathBuf>,
    },
    /// The system refused to read.
    #[error("cannot read `{}`: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// The file is something else.
    #[error("`{}` is no trace of a program: {problem}", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// What it is, or what it lacks.
        problem: String,
    },
    /// The trace is of a format that this program does not know.
    #[error("`{}` has schema {found}, this program reads up to schema {}", path.display(), super::TRACE_SCHEMA)]
    Schema {
        /// The file.
        path: PathBuf,
        /// The schema it names.
        found: u32,
    },
    /// The file was cut before anything in it was complete.
    #[error("`{}` was cut short before anything in it was complete", path.display())]
    Cut {
        /// The file.
        path: PathBuf,
    },
    /// The file is a trace, and cannot be read.
    #[error("`{}` is damaged: {problem}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What was found.
        problem: String,
    },
}

impl TraceError {
    /// What to do about it: one sentence without a full stop.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Exists { .. } => "name a new file, or remove this one first",
            Self::Unwritable { .. } => "check permissions and free space there, or name another file",
            Self::Kept { .. } => "what is there can be replayed as far as it goes",
            Self::Broken { .. } => "make the trace again; whatever wrote this one wrote a wrong row",
            Self::Missing { partial: Some(_), .. } => {
                "name what is left to read it as far as it goes, or make the trace again"
            }
            Self::Missing { .. } => "check the path; `pagetide capture -o FILE -- COMMAND` makes a trace",
            Self::Unreadable { .. } => "check the path and its permissions",
            Self::Foreign { .. } => "`pagetide capture -o FILE -- COMMAND` makes a trace",
            Self::Schema { .. } => "read it with the pagetide that wrote it, or make the trace again",
            Self::Cut { .. } | Self::Damaged { .. } => "copy the file again, or make the trace again",
        }
    }
}

fn left_over(partial: Option<&PathBuf>) -> String {
    let told = |path: &PathBuf| format!(", but what was captured up to some point, in `{}`", path.display());
    partial.map(told).unwrap_or_default()
}
