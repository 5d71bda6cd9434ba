//! Why a system call of this kernel fails.

use std::fmt;

/// Why a call failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Errno {
    /// No such file, directory or cgroup.
    NoEnt,
    /// It exists already.
    Exist,
    /// Not a directory.
    NotDir,
    /// A directory.
    IsDir,
    /// Not empty.
    NotEmpty,
    /// Busy.
    Busy,
    /// Try again.
    Again,
    /// Invalid argument.
    Inval,
    /// No space left on the device.
    NoSpc,
    /// Out of memory.
    NoMem,
    /// Not supported by this version of Linux.
    NotSup,
    /// The process was killed by the OOM killer.
    Killed,
}

impl fmt::Display for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoEnt => "ENOENT",
            Self::Exist => "EEXIST",
            Self::NotDir => "ENOTDIR",
            Self::IsDir => "EISDIR",
            Self::NotEmpty => "ENOTEMPTY",
            Self::Busy => "EBUSY",
            Self::Again => "EAGAIN",
            Self::Inval => "EINVAL",
            Self::NoSpc => "ENOSPC",
            Self::NoMem => "ENOMEM",
            Self::NotSup => "ENOTSUP",
            Self::Killed => "killed",
        })
    }
}
