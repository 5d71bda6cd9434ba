//! A call that failed, and why.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::system::portable;

/// The errors of Linux that the modelled calls can return.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Errno {
    /// Operation not permitted.
    Perm,
    /// No such file, directory or cgroup.
    NoEnt,
    /// It exists already.
    Exist,
    /// Not a directory.
    NotDir,
    /// Is a directory.
    IsDir,
    /// Directory or cgroup not empty.
    NotEmpty,
    /// Permission denied.
    Acces,
    /// Device or resource busy.
    Busy,
    /// Invalid argument.
    Inval,
    /// No space left on device.
    NoSpc,
    /// Cannot allocate memory.
    NoMem,
    /// I/O error.
    Io,
    /// Not supported here.
    NotSup,
    /// Killed by the OOM killer while in the call.
    Killed,
    /// Ended by this signal.
    Signal(i32),
    /// Any other number of a real kernel.
    Other(i32),
}

impl fmt::Display for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Self::Perm => "operation not permitted",
            Self::NoEnt => "no such file or directory",
            Self::Exist => "file exists",
            Self::NotDir => "not a directory",
            Self::IsDir => "is a directory",
            Self::NotEmpty => "directory not empty",
            Self::Acces => "permission denied",
            Self::Busy => "device or resource busy",
            Self::Inval => "invalid argument",
            Self::NoSpc => "no space left on device",
            Self::NoMem => "cannot allocate memory",
            Self::Io => "input/output error",
            Self::NotSup => "not supported",
            Self::Killed => "killed: out of memory",
            Self::Signal(number) => return write!(f, "ended by signal {number}"),
            Self::Other(number) => return write!(f, "errno {number}"),
        };
        f.write_str(text)
    }
}

/// A failed call: what was called, on what, and why it failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SystemError {
    /// The call, as in a manual page: `read`, `mkdir`, `write memory.max`.
    #[serde(deserialize_with = "portable::static_name")]
    pub call: portable::StaticName,
    /// The path or name that the call was made with.
    pub subject: String,
    /// Why.
    pub errno: Errno,
}

impl SystemError {
    /// An error of `call` on `subject`.
    pub fn new(call: &'static str, subject: impl Into<String>, errno: Errno) -> Self {
        Self { call, subject: subject.into(), errno }
    }
}

impl fmt::Display for SystemError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} `{}`: {}", self.call, self.subject, self.errno)
    }
}

impl std::error::Error for SystemError {}
