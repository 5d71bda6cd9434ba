//! What can go wrong between asking for a run in a virtual machine and its result, and what a
//! person can do about each.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::bounds::BoundsError;

/// Why there is no result. [`VmError::hint`] says what to do.
#[derive(Debug, Error)]
pub enum VmError {
    /// The program that runs virtual machines is not installed.
    #[error("`{program}` is not installed")]
    NoQemu {
        /// What was looked for.
        program: String,
    },
    /// This host is no Linux on x86-64, so its program cannot run in the guest.
    #[error("virtual machines need a host with Linux on x86-64")]
    WrongHost,
    /// No kernel of this version was fetched yet.
    #[error("no kernel {version} in `{cache}`")]
    KernelMissing {
        /// The version that was asked for.
        version: String,
        /// Where kernels are kept.
        cache: PathBuf,
        /// Kernels that are there.
        have: Vec<String>,
        /// The command that fetches them: `vm` or `uml`.
        command: &'static str,
    },
    /// User-Mode Linux is another machine than was asked for.
    #[error("{why}")]
    NotUserMode {
        /// What it has and was asked for.
        why: String,
        /// What to do.
        instead: String,
    },
    /// A kernel was built without what a run needs.
    #[error("kernel {release} has no {what}")]
    Lacks {
        /// What `uname -r` says in it.
        release: String,
        /// What it lacks, and what for.
        what: String,
        /// The option that builds it.
        option: String,
    },
    /// A file is not what a kernel needs.
    #[error("`{path}` cannot be used: {why}")]
    BadKernel {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// A module is neither in the kernel nor beside it.
    #[error("kernel module `{name}` is missing")]
    ModuleMissing {
        /// The module.
        name: String,
    },
    /// The guest's program cannot be taken along.
    #[error("`{path}` cannot run in a guest: {why}")]
    BadProgram {
        /// The program.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// The package manager is not there.
    #[error("`apt-get` is not installed, and kernels are fetched with it")]
    NoApt,
    /// The package manager failed.
    #[error("`{command}` failed: {message}")]
    Apt {
        /// The command with its first argument.
        command: String,
        /// Its last lines.
        message: String,
    },
    /// The package lists have no such kernel.
    #[error("no package `{pattern}` in the package lists{}", suite_text(*.suite))]
    PackageNotFound {
        /// The name that was looked for.
        pattern: String,
        /// The suite of Debian that was looked through beside those of /etc/apt.
        suite: Option<&'static str>,
    },
    /// A version has a form that no kernel's version has.
    #[error("`{text}` is not a kernel version")]
    BadVersion {
        /// What was given.
        text: String,
    },
    /// The program that makes the guest's filesystem is not installed.
    #[error("`{program}` is not installed, and it makes the guest's filesystem")]
    NoMkfs {
        /// `mkfs.ext4` or `mkfs.xfs`.
        program: &'static str,
    },
    /// The program that makes the guest's filesystem failed.
    #[error("`{program}` failed: {message}")]
    Mkfs {
        /// `mkfs.ext4` or `mkfs.xfs`.
        program: &'static str,
        /// What it wrote.
        message: String,
    },
    /// The kernel is older than the multi-gen LRU.
    #[error("kernel {release} has no multi-gen LRU")]
    NoLruGen {
        /// What `uname -r` says in it.
        release: String,
    },
    /// The kernel has no module for compressed memory.
    #[error("kernel {release} has no module `zram`")]
    NoZram {
        /// What `uname -r` says in it.
        release: String,
    },
    /// The machine makes no sense.
    #[error("{why}")]
    BadSpec {
        /// What is wrong.
        why: String,
    },
    /// It would take more of this host, or of the guest, than there is.
    #[error(transparent)]
    Bounds(#[from] BoundsError),
    /// The cache folder could be changed by others.
    #[error("`{}`, where kernels would be kept, {why}", path.display())]
    SharedCache {
        /// The folder.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// QEMU ended before the guest had sent its result.
    #[error("the virtual machine ended without a result: {message}{}", tail_text(.tail))]
    Ended {
        /// QEMU's own words.
        message: String,
        /// The last lines of the guest's console.
        tail: Vec<String>,
    },
    /// The guest's kernel crashed.
    #[error("the guest's kernel crashed: {line}{}", tail_text(.tail))]
    Crashed {
        /// The line that says so.
        line: String,
        /// The last lines of the guest's console.
        tail: Vec<String>,
    },
    /// Nothing was heard from the guest for too long.
    #[error("nothing heard from the guest for {seconds} s{}", tail_text(.tail))]
    Hung {
        /// For how long.
        seconds: u64,
        /// Whether its program had begun.
        had_begun: bool,
        /// The last lines of the guest's console.
        tail: Vec<String>,
    },
    /// The whole run took too long.
    #[error("the run did not end within {seconds} s{}", tail_text(.tail))]
    TimedOut {
        /// How long it had.
        seconds: u64,
        /// The last lines of the guest's console.
        tail: Vec<String>,
    },
    /// Somebody asked to stop.
    #[error("stopped")]
    Stopped,
    /// The program in the guest failed.
    #[error("in the guest: {message}")]
    Guest {
        /// What it said.
        message: String,
        /// What it suggests.
        hint: Option<String>,
    },
    /// The guest sent what nobody can read.
    #[error("the guest sent a message that cannot be read: {why}")]
    Protocol {
        /// What is wrong with it.
        why: String,
    },
    /// A file or program of this host could not be used.
    #[error("cannot {action} `{path}`: {source}")]
    Io {
        /// A verb.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl VmError {
    pub(crate) fn io(action: &'static str, path: &Path, source: io::Error) -> Self {
        Self::Io { action, path: path.to_owned(), source }
    }

    pub(crate) fn bad_kernel(path: &Path, why: impl Into<String>) -> Self {
        Self::BadKernel { path: path.to_owned(), why: why.into() }
    }

    /// What to do; `None` when the message says it all.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::NoQemu { .. } => "install it: `apt-get install qemu-system-x86`".to_owned(),
            Self::KernelMissing { version, have, command, .. } => fetch_hint(version, have, command),
            Self::NotUserMode { instead, .. } => instead.clone(),
            Self::Lacks { option, .. } => format!(
                "build it with {option}=y (`pagetide uml config` prints all that a run can use), or take another kernel"
            ),
            Self::Io { action: READ_UML, .. } => {
                "name a program `linux` or the tree that it was built in, such as `--on uml:./linux`, or fetch one: \
                 `pagetide uml fetch 6.12`"
                    .to_owned()
            }
            Self::ModuleMissing { .. } => {
                "give a kernel whose modules are in /lib/modules or in the folder `modules` beside it"
                    .to_owned()
            }
            Self::Io { action: READ_KERNEL, .. } => {
                "name a kernel image that can be read, such as `--on vm:/boot/vmlinuz`, or fetch one: \
                 `pagetide vm fetch 6.12`"
                    .to_owned()
            }
            Self::NoApt => {
                "copy a kernel here and name it by its path: `--on vm:/path/to/vmlinuz`".to_owned()
            }
            Self::Apt { .. } => {
                "check the network and /etc/apt; what was fetched before still works".to_owned()
            }
            Self::PackageNotFound { suite: Some(_), .. } => {
                "Debian has 5.10, 6.1, 6.12 and in sid its newest kernel; name any other by its path".to_owned()
            }
            Self::PackageNotFound { suite: None, .. } => {
                "kernels come from Debian's `linux-image-*-cloud-amd64`; add a mirror of Debian to \
                 /etc/apt, or name a kernel by its path"
                    .to_owned()
            }
            Self::BadVersion { .. } => "write it like `6.12`, `6.1.0-50` or `6.12.117`".to_owned(),
            Self::NoMkfs { program: "mkfs.xfs" } => "install it: `apt-get install xfsprogs`".to_owned(),
            Self::NoMkfs { .. } => "install it: `apt-get install e2fsprogs`".to_owned(),
            Self::Crashed { tail, .. } if tail.iter().any(|line| line.contains("set fp regs failed")) => {
                "this host's CPU has registers that the kernel does not know of (AMX), which is mended for programs that are linked dynamically: build it without CONFIG_STATIC_LINK, or take 6.13 or later"
                    .to_owned()
            }
            Self::Crashed { line, .. } if line.contains("Attempted to kill init") => {
                "the guest's program ended too early: its `main` has to begin with \
                 `vm::guest::become_init_in_a_guest()`"
                    .to_owned()
            }
            Self::Crashed { line, .. } if line.contains("Unable to mount root fs") => {
                "a guest boots from an initramfs: build the kernel with CONFIG_BLK_DEV_INITRD=y".to_owned()
            }
            Self::Hung { had_begun: false, tail, .. } if tail.is_empty() => {
                "a kernel of your own needs CONFIG_SERIAL_8250_CONSOLE=y to be heard, as a program \
                 CONFIG_STDERR_CONSOLE=y; Debian's have it"
                    .to_owned()
            }
            Self::Hung { .. } | Self::TimedOut { .. } => {
                "make the workload smaller with `--param`, or give it more memory with `--mem`; an emulated CPU is slow".to_owned()
            }
            Self::BadSpec { .. } => "`--mem`, `--vm-cpus` and `--vm-nodes` shape the machine".to_owned(),
            Self::Bounds(error) => return error.hint(),
            Self::SharedCache { .. } => {
                "set HOME or XDG_CACHE_HOME to a folder of your own, or remove that one".to_owned()
            }
            Self::NoLruGen { .. } => NO_LRU_GEN_HINT.to_owned(),
            Self::NoZram { .. } => {
                "fetch it anew by `pagetide vm fetch VERSION`, which keeps that module, too, or swap to a disk".to_owned()
            }
            Self::Guest { hint, .. } => return hint.clone(),
            _ => return None,
        })
    }
}

fn fetch_hint(version: &str, have: &[String], command: &str) -> String {
    match have {
        [] => format!("fetch one: `pagetide {command} fetch {version}`"),
        _ => format!("fetch it: `pagetide {command} fetch {version}`; there is {}", have.join(", ")),
    }
}

/// What [`VmError::Io`] says when it is about the kernel's image.
pub(super) const READ_KERNEL: &str = "read kernel";

/// The same of a kernel that is a program.
pub(super) const READ_UML: &str = "read the kernel";

/// What to do about a kernel without a multi-gen LRU.
pub(super) const NO_LRU_GEN_HINT: &str =
    "leave `--lru-gen` out, or take a kernel from 6.1 on that was built with CONFIG_LRU_GEN";

fn suite_text(suite: Option<&str>) -> String {
    suite.map_or_else(String::new, |suite| format!(" of this host and of Debian's suite {suite}"))
}

fn tail_text(tail: &[String]) -> String {
    if tail.is_empty() {
        return String::new();
    }
    format!("\nlast lines of the guest's console:\n  {}", tail.join("\n  "))
}
