//! What can be wrong with a folder that shall hold, or holds, a recording.
//!
//! Every error names the path and, inside a file, the place; [`RecordingError::hint`] says what
//! to do.

use std::io;
use std::path::{Path, PathBuf};

/// Why a recording could not be written or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordingError {
    /// Something with the folder's name exists.
    #[error("`{}` exists already", path.display())]
    Exists {
        /// The folder that was to be written.
        path: PathBuf,
    },
    /// The path cannot name a new folder, for example `..` or nothing.
    #[error("`{}` does not name a new folder", path.display())]
    NotAName {
        /// The path as given.
        path: PathBuf,
    },
    /// What the recording was to be put into is no folder.
    #[error("`{}` is not a folder that could hold another", path.display())]
    NoParent {
        /// What there is.
        path: PathBuf,
    },
    /// The system refused to write.
    #[error("cannot write `{}`: {source}", path.display())]
    Unwritable {
        /// File or folder that was being written.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// The system refused to write more.
    #[error("{source}; what was recorded up to then is in `{}`", path.display())]
    Partial {
        /// The folder that has no `MANIFEST`.
        path: PathBuf,
        /// What was refused.
        source: Box<RecordingError>,
    },
    /// There is no folder at the path.
    #[error("there is no recording at `{}`{}", path.display(), left_over(partial.as_deref()))]
    NoFolder {
        /// The path as given.
        path: PathBuf,
        /// What a run of that name left that did not end.
        partial: Option<PathBuf>,
    },
    /// The folder holds something else.
    #[error("`{}` holds no recording: it has no `{}` of one", path.display(), crate::MANIFEST)]
    Foreign {
        /// The folder.
        path: PathBuf,
    },
    /// The path is a file.
    #[error("`{}` is not a folder", path.display())]
    NotAFolder {
        /// The path as given.
        path: PathBuf,
    },
    /// A file of the recording is missing.
    #[error("`{}` is missing", path.display())]
    Missing {
        /// The missing file.
        path: PathBuf,
    },
    /// The system refused to read.
    #[error("cannot read `{}`: {source}", path.display())]
    Unreadable {
        /// File that was being read.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// The recording is of a format that this program does not know.
    #[error("`{}` has schema {found}, this program reads up to schema {}", path.display(), crate::SCHEMA)]
    Schema {
        /// File that says so.
        path: PathBuf,
        /// The schema it names.
        found: u64,
    },
    /// A file is not what its name promises.
    #[error("`{}`, line {line}, column {column}: {problem}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// Line, counted from 1.
        line: u64,
        /// Column in bytes, counted from 1.
        column: u64,
        /// What was found, and what was expected.
        problem: String,
    },
    /// A table cannot be read.
    #[error("`{}` is no table that can be read: {problem}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What was found, and what was expected.
        problem: String,
    },
    /// A file reads well but is not the one that was written.
    #[error("`{}` was changed after it was written: {problem}", path.display())]
    Changed {
        /// The file.
        path: PathBuf,
        /// How it differs from what `MANIFEST` says.
        problem: String,
    },
}

impl RecordingError {
    /// What to do about it: one sentence without a full stop.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Exists { .. } => "name a new folder, or remove this one first",
            Self::NotAName { .. } => "name a folder that does not exist yet, such as `runs/first`",
            Self::NoParent { .. } => "name another folder",
            Self::Unwritable { .. } => "check permissions and free space there, or name another folder",
            Self::Partial { source, .. } => source.hint(),
            Self::NoFolder { partial: Some(_), .. } => {
                "name what is left to read it as far as it goes, or make the run again"
            }
            Self::Foreign { .. } => "name the folder of a recording; `pagetide run ... --out DIR` makes one",
            Self::NoFolder { .. } => "check the path; `pagetide run ... --out DIR` makes a recording",
            Self::NotAFolder { .. } => "name the folder that holds the recording, not a file in it",
            Self::Missing { .. } => "copy the whole folder again, or make the run again",
            Self::Unreadable { source, .. } if source.kind() == std::io::ErrorKind::PermissionDenied => {
                "check the permissions of the file and its folders"
            }
            Self::Unreadable { .. } => "copy the whole folder again, or make the run again",
            Self::Schema { .. } => "read it with the pagetide that wrote it, or make the run again",
            Self::Malformed { .. } | Self::Changed { .. } | Self::Damaged { .. } => {
                "it was cut short or edited: copy the folder again, or make the run again"
            }
        }
    }
}

fn left_over(partial: Option<&Path>) -> String {
    let told = |path: &Path| format!(", but what a run left that did not end, in `{}`", path.display());
    partial.map(told).unwrap_or_default()
}
