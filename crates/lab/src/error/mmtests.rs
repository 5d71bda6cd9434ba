//! Why a folder of mmtests cannot be written or read, and what to do about it.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

/// Why a folder of mmtests cannot be written or read.
#[derive(Debug, Error)]
pub enum MmtestsError {
    /// No benchmark has samples such as those.
    #[error("mmtests has no benchmark with samples such as those of `{workload}`")]
    NoPlace {
        /// The workload.
        workload: String,
    },
    /// The folder, or one in it, is no run.
    #[error("there is no run of mmtests in `{}`", path.display())]
    NoRun {
        /// The folder.
        path: PathBuf,
    },
    /// A file that should be there is not, or cannot be read.
    #[error("cannot read `{}`", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why, by the operating system.
        source: io::Error,
    },
    /// A file is packed in a way that is not read here.
    #[error("`{}` is packed by xz", path.display())]
    Packed {
        /// The file.
        path: PathBuf,
    },
    /// A file cannot be written.
    #[error("cannot write `{}`", path.display())]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// Why, by the operating system.
        source: io::Error,
    },
    /// A file holds something else than mmtests writes.
    #[error("`{}`, line {line}: {problem}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What is wrong.
        problem: String,
    },
}

impl MmtestsError {
    /// What to do about it.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::NoPlace { .. } => Some(
                "it takes files per second, times of page faults, and other rates; `pagetide stats` shows all",
            ),
            Self::NoRun { .. } => Some("name `work/log` of mmtests, or the folder of one run in it"),
            Self::Packed { .. } => Some("unpack it with `unxz` first"),
            Self::Unreadable { .. } | Self::Unwritable { .. } | Self::Malformed { .. } => None,
        }
    }
}
