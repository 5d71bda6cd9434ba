//! Why there is no trace of a program, or not all of it, and what to do about it.

use std::path::PathBuf;

use ::capture::CaptureError;
use recording::TraceError;
use thiserror::Error;

use crate::error::class::Class;

/// Why there is no trace, or not all of it.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CaptureFailure {
    /// The program was not followed.
    #[error(transparent)]
    Capture(#[from] CaptureError),
    /// The trace was not written, or not to its end.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The program was killed: it would have filled memory.
    #[error("the command was killed: it made more than {max} tasks; what it did until then is in `{}`", path.display())]
    TooManyTasks {
        /// How many it might make.
        max: usize,
        /// The trace.
        path: PathBuf,
    },
    /// A number of tasks that makes no sense.
    #[error("`--max-tasks` takes a whole number from 1 to 10000000, not `{0}`")]
    Tasks(String),
}

impl CaptureFailure {
    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Capture(error) => error.hint(),
            Self::Trace(error) => Some(error.hint().to_owned()),
            Self::TooManyTasks { .. } => {
                Some("if it is meant to make so many, allow more with `--max-tasks`".to_owned())
            }
            Self::Tasks(_) => Some("leave it away for 200000".to_owned()),
        }
    }

    /// Whose fault it is.
    pub fn class(&self) -> Class {
        match self {
            Self::Capture(error) if error.is_missing() => Class::CommandNotFound,
            Self::Capture(error) if error.is_not_executable() => Class::CommandNotExecutable,
            _ => Class::Input,
        }
    }
}
