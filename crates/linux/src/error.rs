//! Why a run on a real kernel did not happen or did not end.

use std::path::{Path, PathBuf};

use thiserror::Error;
use workload::WorkloadError;
use workload::system::{Errno, SystemError};

/// What [`LinuxError::Io`] says when there is no place for the files of a run.
pub(crate) const CREATE_DIRECTORY: &str = "create a directory in";

use crate::bounds::BoundsError;

/// Why there is no result.
#[derive(Debug, Error)]
pub enum LinuxError {
    /// A system call of the runner (not of the workload) failed.
    #[error("cannot {what} `{}`: {source}", path.display())]
    Io {
        /// What was tried, as a verb.
        what: &'static str,
        /// On what.
        path: PathBuf,
        /// Why it failed.
        source: std::io::Error,
    },
    /// The command to record cannot be started.
    #[error("cannot run `{}`: {source}", command.display())]
    Command {
        /// The command, without its arguments.
        command: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// No cgroup with the memory controller can be made here.
    #[error("no memory cgroup can be created here: {reason}")]
    NoMemoryController {
        /// What was tried, and what happened.
        reason: String,
    },
    /// The run would change what other processes share.
    #[error("{what} would change the whole machine, not only the run's own cgroup")]
    HostWide {
        /// What was asked for.
        what: String,
    },
    /// The directory keeps its files in memory only.
    #[error("`{}` is on {filesystem}, whose files cannot be evicted from memory", path.display())]
    MemoryFilesystem {
        /// The directory.
        path: PathBuf,
        /// The filesystem's name.
        filesystem: &'static str,
    },
    /// It would take more of this host than it may.
    #[error(transparent)]
    Bounds(#[from] BoundsError),
    /// The workload's own call failed.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// A task was killed, and the kernel counts no kill for want of memory.
    #[error("`{task}` was killed, and not by the OOM killer")]
    NoOomKill {
        /// What it was called.
        task: String,
    },
    /// The main process of the workload was killed.
    #[error("the workload's main process was killed by signal {signal}")]
    Killed {
        /// The signal; 9 when the OOM killer took it.
        signal: i32,
    },
    /// Somebody asked to stop.
    #[error("stopped before the workload ended")]
    Stopped,
    /// The workload or this crate has a bug.
    #[error("the workload panicked: {message}")]
    Panicked {
        /// The panic's message.
        message: String,
    },
}

impl LinuxError {
    pub(crate) fn io(what: &'static str, path: impl AsRef<Path>, source: impl Into<std::io::Error>) -> Self {
        Self::Io { what, path: path.as_ref().to_owned(), source: source.into() }
    }

    /// What to do about it; `None` when the message says it all.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Io { what: CREATE_DIRECTORY, .. } => {
                "name a folder that is there and that you may write to with `--host-dir`".to_owned()
            }
            Self::Io { source, .. } if source.kind() == std::io::ErrorKind::PermissionDenied => {
                "run as root, or in a session whose user owns a cgroup with the memory controller".to_owned()
            }
            Self::NoMemoryController { .. } => {
                "run as root, or under `systemd-run --user --scope -p Delegate=yes`; `--on vm:VERSION` needs no rights"
                    .to_owned()
            }
            Self::HostWide { .. } => {
                "add `--allow-host-pressure` if the machine is yours alone, or use `--on vm:VERSION`".to_owned()
            }
            Self::MemoryFilesystem { .. } => "name a folder on a disk with `--host-dir`".to_owned(),
            Self::Killed { signal: 9 } | Self::Workload(WorkloadError::System(SystemError { errno: Errno::Killed, .. })) => {
                "give it more memory (`--host-limit` on this host, `--mem` in a guest), or make it smaller".to_owned()
            }
            Self::NoOomKill { .. }
            | Self::Workload(WorkloadError::System(SystemError { errno: Errno::Signal(_), .. }))
                if is_user_mode() =>
            {
                "User-Mode Linux ends a process that needs more mappings of this host than `vm.max_map_count`, and each \
                 page that lies apart is one: `sysctl -w vm.max_map_count=1048576` on this host, or make it smaller"
                    .to_owned()
            }
            Self::Bounds(error) => return error.hint(),
            _ => return None,
        })
    }
}

/// Whether this is a guest of User-Mode Linux.
fn is_user_mode() -> bool {
    std::fs::read_to_string("/proc/cpuinfo").is_ok_and(|text| text.contains("User Mode Linux"))
}
