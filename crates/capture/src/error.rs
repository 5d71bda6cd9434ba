//! Why a program was not followed.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

/// Why there is no capture.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CaptureError {
    /// The command cannot be started.
    #[error("cannot run `{}`: {source}", command.display())]
    Command {
        /// The command, without its arguments.
        command: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It would run with rights that a program that is followed does not get.
    #[error("`{}` has {what}, which has no effect while it is followed", program.display())]
    Privileged {
        /// The program.
        program: PathBuf,
        /// `set-user-ID`, `set-group-ID`, `file capabilities`.
        what: &'static str,
    },
    /// There is no such process.
    #[error("there is no process {pid}")]
    NoProcess {
        /// The number.
        pid: u32,
    },
    /// The process is not ours to follow.
    #[error("process {pid} may not be followed: {why}")]
    NotOurs {
        /// The number.
        pid: u32,
        /// Whose it is, or who forbids it.
        why: String,
    },
    /// There is no such cgroup.
    #[error("there is no cgroup `{}`", path.display())]
    NoCgroup {
        /// As it was named.
        path: PathBuf,
    },
    /// No process is in it.
    #[error("cgroup `{}` has no processes", path.display())]
    EmptyCgroup {
        /// As it was named.
        path: PathBuf,
    },
    /// There is no such unit, or it does not run.
    #[error("unit `{name}` does not run here")]
    NoUnit {
        /// Its full name.
        name: String,
    },
    /// The kernel refuses to follow a program of our own.
    #[error("this kernel does not let a program be followed: {what}: {source}")]
    Refused {
        /// Which call.
        what: &'static str,
        /// Why.
        source: io::Error,
    },
    /// Calls are known by number for one architecture only.
    #[error("programs can be captured on x86_64 only")]
    Architecture,
}

impl CaptureError {
    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Command { command, source } => match source.kind() {
                _ if self.is_missing() => {
                    "check its name; for a line of a shell write `pagetide capture -o FILE -- sh -c 'LINE'`".to_owned()
                }
                io::ErrorKind::NotFound => {
                    "it is there, but the interpreter that its first line names is not".to_owned()
                }
                io::ErrorKind::IsADirectory => "name a program; this is a folder".to_owned(),
                io::ErrorKind::PermissionDenied => {
                    format!("make it executable with `chmod +x {}`, or name its interpreter first", command.display())
                }
                _ => "name a program; a script begins with a line such as `#!/bin/sh`".to_owned(),
            },
            Self::Privileged { .. } => {
                "run pagetide as the user that the program would become, or capture what it starts with `--attach`"
                    .to_owned()
            }
            Self::NoCgroup { .. } => {
                "name its folder below `/sys/fs/cgroup`; `/proc/PID/cgroup` says in which one a process is".to_owned()
            }
            Self::EmptyCgroup { .. } => {
                "start what shall run in it first, or follow one process with `--attach PID`".to_owned()
            }
            Self::NoUnit { .. } => {
                "`systemctl list-units` lists those that there are; or name a process with `--attach PID`".to_owned()
            }
            Self::NoProcess { .. } => "`ps` lists those that there are".to_owned(),
            Self::NotOurs { .. } if rustix::process::getuid().is_root() => {
                "start it with `pagetide capture -o FILE -- COMMAND`, or end what follows it".to_owned()
            }
            Self::NotOurs { pid, .. } => format!(
                "a process can be followed by its own user: `sudo pagetide capture -o FILE --attach {pid}`, or start it \
                 with `pagetide capture -o FILE -- COMMAND`"
            ),
            Self::Refused { .. } => {
                "containers often forbid ptrace or seccomp: allow it (`--cap-add=SYS_PTRACE`, \
                 `--security-opt seccomp=unconfined`), or import a log of `strace -f -tt -y`"
                    .to_owned()
            }
            Self::Architecture => "import a log of `strace -f -tt -y` that was made there".to_owned(),
        })
    }

    /// Whether the command does not exist.
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::Command { command, source }
            if source.kind() == io::ErrorKind::NotFound && !command.exists())
    }

    /// Whether the command exists and cannot be run.
    pub fn is_not_executable(&self) -> bool {
        matches!(self, Self::Command { .. } | Self::Privileged { .. }) && !self.is_missing()
    }
}
