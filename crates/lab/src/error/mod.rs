//! All that can go wrong between a person's request and a recording, what to do about it, and
//! whose fault it is.
//!
//! Every error has a message, often a cause ([`std::error::Error::source`]), mostly a hint, and a
//! [`Class`] that decides the exit code.

pub(crate) mod class;
pub(crate) mod worlds;

use std::fmt::Display;
use std::io;
use std::path::{Path, PathBuf};

#[cfg(unix)]
use ::capture::CaptureError;
use policy::PolicyError;
use report::number::duration;
use sim::machines::{MACHINES, MachineError};
use thiserror::Error;
use trace::requests::TraceError;
use workload::scenario::ScenarioProblem;
use workload::{InputError, KernelError, ParamError, ScenarioError, UnknownName};

pub use class::Class;

/// Why there is no result.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LabError {
    /// An unknown workload or a wrong parameter.
    #[error(transparent)]
    Input(Box<InputError>),
    /// An unknown kernel or feature.
    #[error(transparent)]
    Kernel(#[from] KernelError),
    /// Any other name that does not exist.
    #[error(transparent)]
    Unknown(#[from] UnknownName),
    /// A memory size that makes no sense.
    #[error(transparent)]
    Value(Box<ScenarioProblem>),
    /// A sysctl has a value that it does not take.
    #[error(transparent)]
    Sysctl(#[from] mm::base::sysctl::SysctlError),
    /// A file or a folder cannot be read.
    #[error("cannot read `{}`", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why, by the operating system.
        source: io::Error,
        /// What to do.
        hint: Option<&'static str>,
    },
    /// A scenario file is wrong.
    #[error("`{}` cannot be run", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong, and where.
        source: Box<ScenarioError>,
    },
    /// A log of another program cannot be read as a trace.
    #[error("`{}`, {source}", path.display())]
    Import {
        /// The log.
        path: PathBuf,
        /// What is wrong, and where.
        source: Box<trace::import::ImportError>,
    },
    /// The trace of a program cannot be read.
    #[error(transparent)]
    Program(Box<recording::TraceError>),
    /// What was asked for cannot be, or not here.
    #[error("{message}")]
    Refused {
        /// What is wrong.
        message: String,
        /// What to do instead.
        hint: Option<String>,
    },
    /// The machine cannot be built like this.
    #[error("{message}")]
    Machine {
        /// What is wrong.
        message: String,
        /// What to do.
        hint: Option<String>,
    },
    /// The run ended early.
    #[error("{label}, seed {seed}: {message}")]
    Run {
        /// What the run is called.
        label: String,
        /// Its seed.
        seed: u64,
        /// Why it ended.
        message: String,
        /// What to do.
        hint: Option<String>,
    },
    /// A run that was stopped, as it took longer than it may.
    #[error("{label}, seed {seed}: stopped after {}, as `--max-time` says", duration(max.get() as f64))]
    TooLong {
        /// What the run is called.
        label: String,
        /// Its seed.
        seed: u64,
        /// How long it may take.
        max: units::Nanos,
    },
    /// A mechanism reached a state that must not exist.
    #[error("{label}, seed {seed}: an invariant of the model is violated")]
    Invariant {
        /// What the run is called.
        label: String,
        /// Its seed.
        seed: u64,
        /// The assertion that failed.
        source: FailedAssertion,
        /// The command that shows it again.
        command: String,
    },
    /// A command that cannot be started.
    #[error("cannot run `{command}`")]
    Command {
        /// The command, without its arguments.
        command: PathBuf,
        /// Why, by the operating system.
        source: io::Error,
    },
    /// A result that cannot be written.
    #[error("cannot write {what}")]
    Unwritable {
        /// The file, or what else.
        what: String,
        /// Why, by the operating system.
        source: io::Error,
    },
    /// A recording cannot be read or written.
    #[error(transparent)]
    Recording(#[from] recording::RecordingError),
    /// A recording that could not be written when its run had ended; it is not lost to who asked for it.
    #[error("{1}")]
    NotKept(Box<recording::Recording>, recording::RecordingError),
    /// The recordings cannot be put side by side.
    #[error(transparent)]
    Report(#[from] report::ReportError),
    /// A trace cannot be read.
    #[error("cannot read the trace `{}`", path.display())]
    Trace {
        /// The file.
        path: PathBuf,
        /// What is wrong, and where.
        source: TraceError,
    },
    /// A cache that cannot be made.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// A number of objects or requests that cannot be read.
    #[error(transparent)]
    Amount(#[from] workload::amount::AmountError),
    /// A file that holds something else than numbers.
    #[error("cannot compare `{}`", path.display())]
    Numbers {
        /// The file.
        path: PathBuf,
        /// What is wrong, and where.
        source: NumbersError,
    },
    /// A program that was not followed.
    #[cfg(unix)]
    #[error(transparent)]
    Capture(#[from] CaptureError),
    /// No threads to run on.
    #[error("cannot start threads")]
    Threads(#[from] rayon::ThreadPoolBuildError),
    /// Runs that failed, while others did not.
    #[error("{failed} of {total} runs failed")]
    SomeFailed {
        /// How many failed.
        failed: usize,
        /// How many there are.
        total: usize,
        /// Whose fault the worst one is.
        class: Class,
    },
    /// Limits that were not kept.
    #[error("{failed} of {total} limits {}: {}", if *.failed == 1 { "is not kept" } else { "are not kept" }, told.join(", "))]
    Crossed {
        /// How many were not, of one column each.
        failed: usize,
        /// How many there are.
        total: usize,
        /// Which, with numbers.
        told: Vec<String>,
    },
    /// Worlds that cannot be.
    #[error(transparent)]
    Worlds(#[from] worlds::WorldsError),
    /// The user stopped the work.
    #[error("interrupted: {finished} of {total} runs finished")]
    Interrupted {
        /// How many runs have a recording.
        finished: usize,
        /// How many were planned.
        total: usize,
    },
}

/// Why a text holds no numbers to compare, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{problem}")]
pub struct NumbersError {
    /// What is wrong, and where.
    pub problem: String,
    /// What to do about it.
    pub hint: &'static str,
}

/// A failed assertion.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct FailedAssertion(pub String);

impl From<InputError> for LabError {
    fn from(error: InputError) -> Self {
        Self::Input(Box::new(error))
    }
}

impl From<ParamError> for LabError {
    fn from(error: ParamError) -> Self {
        InputError::from(error).into()
    }
}

impl From<ScenarioProblem> for LabError {
    fn from(problem: ScenarioProblem) -> Self {
        Self::Value(Box::new(problem))
    }
}

impl From<MachineError> for LabError {
    fn from(error: MachineError) -> Self {
        Self::Machine { message: error.to_string(), hint: Some(machine_hint(&error)) }
    }
}

/// What to write instead of a machine that cannot be.
pub(crate) fn machine_hint(error: &MachineError) -> String {
    match error {
        MachineError::Unknown(name) => {
            UnknownName::new("machine", name, MACHINES.iter().map(|machine| machine.name)).hint()
        }
        _ => error.hint(),
    }
}

impl LabError {
    /// What was asked for cannot be; `hint` says what can.
    pub fn refused(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Refused { message: message.into(), hint: Some(hint.into()) }
    }

    /// A value that `option` has twice.
    pub(crate) fn twice(option: &str, value: impl Display) -> Self {
        Self::refused(format!("`{option} {value}` is given twice"), "leave one of them out")
    }

    /// A kernel that is to run twice.
    pub(crate) fn same_kernel(label: &str) -> Self {
        Self::refused(format!("kernel `{label}` is named twice"), "use `--seeds` to repeat a run")
    }

    /// No seeds, or more than anyone can wait for.
    pub(crate) fn seeds(seeds: u64, max: u64) -> Self {
        Self::Refused { message: format!("`--seeds` takes 1 to {max}, not {seeds}"), hint: None }
    }

    /// A text that should set a sysctl.
    pub(crate) fn not_a_pair(text: &str) -> Self {
        let hint = "write it as in `--set vm.swappiness=10`";
        Self::refused(format!("`{text}` is not of the form `name=value`"), hint)
    }

    /// A warm-up as long as the trace.
    pub(crate) fn all_warmup(told: String) -> Self {
        Self::refused(told, "give a shorter `--warmup`")
    }

    /// A file that is there already, or a folder where a file is to be.
    pub(crate) fn file_exists(path: &Path) -> Self {
        if path.is_dir() {
            return Self::refused(format!("`{}` is a folder", path.display()), "name a new file in it");
        }
        Self::refused(
            format!("`{}` exists already", path.display()),
            "name a new file, or remove this one first",
        )
    }

    /// A scenario, or a folder of them, that cannot be read.
    pub(crate) fn unreadable(path: &Path, source: io::Error) -> Self {
        let hint = unreadable_hint(&source);
        Self::Unreadable { path: path.to_owned(), source, hint }
    }

    /// A machine file that cannot be read.
    pub(crate) fn unreadable_machine(path: &Path, source: io::Error) -> Self {
        let hint = match source.kind() {
            io::ErrorKind::NotFound => {
                Some("check the path; `pagetide machine show NAME > FILE.toml` writes one")
            }
            io::ErrorKind::InvalidData | io::ErrorKind::IsADirectory => {
                Some("a machine file is a text, as `pagetide machine show` prints it; this is something else")
            }
            _ => unreadable_hint(&source),
        };
        Self::Unreadable { path: path.to_owned(), source, hint }
    }

    /// A trace that cannot be read, of whatever kind it is.
    pub(crate) fn unreadable_trace(path: &Path, source: io::Error) -> Self {
        let hint = trace_hint(&source);
        Self::Unreadable { path: path.to_owned(), source, hint }
    }

    /// What to do about it; `None` when the message says it all.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Input(error) => error.hint(),
            Self::Import { source, .. } => source.hint().map(str::to_owned),
            Self::Program(error) => Some(error.hint().to_owned()),
            Self::Kernel(error) => error.hint(),
            Self::Unknown(error) => Some(error.hint()),
            Self::Value(problem) => problem.hint(),
            #[cfg(unix)]
            Self::Capture(error) => error.hint(),
            Self::File { source, .. } => source.hint(),
            Self::Refused { hint, .. } | Self::Machine { hint, .. } | Self::Run { hint, .. } => hint.clone(),
            Self::Recording(error) | Self::NotKept(_, error) => Some(error.hint().to_owned()),
            Self::Report(error) => Some(error.hint().to_owned()),
            Self::Trace { source, .. } => source.hint(),
            Self::Unreadable { hint, .. } => hint.map(str::to_owned),
            Self::Command { command, source } => Some(command_hint(command, source).to_owned()),
            Self::Invariant { command, .. } => {
                Some(format!("this is a bug of pagetide; please report it with this command:\n  {command}"))
            }
            Self::Amount(error) => Some(error.hint().to_owned()),
            Self::Policy(error) => error.hint(),
            Self::Numbers { source, .. } => Some(source.hint.to_owned()),
            Self::Worlds(error) => error.hint(),
            Self::TooLong { .. } => Some(
                "give it longer, less to do, or more memory: a machine that thrashes takes long".to_owned(),
            ),
            Self::SomeFailed { .. } => {
                Some("their rows say why; with `--out DIR`, `--resume` runs them again".to_owned())
            }
            Self::Sysctl(_)
            | Self::Unwritable { .. }
            | Self::Threads(_)
            | Self::Crossed { .. }
            | Self::Interrupted { .. } => None,
        }
    }

    /// Its causes, each that says more than what it caused.
    pub fn causes(&self) -> Vec<String> {
        let mut causes = Vec::new();
        let mut told = self.to_string();
        let mut cause = std::error::Error::source(self);
        while let Some(error) = cause {
            let text = error.to_string();
            if !told.contains(&text) {
                causes.push(text.clone());
                told = text;
            }
            cause = error.source();
        }
        causes
    }

    /// The message with its causes, in one line.
    pub fn told(&self) -> String {
        [vec![self.to_string()], self.causes()].concat().join(": ")
    }

    /// Whose fault it is.
    pub fn class(&self) -> Class {
        match self {
            Self::Invariant { .. } => Class::Invariant,
            Self::Interrupted { .. } => Class::Interrupted,
            Self::Threads(_) => Class::Internal,
            Self::Command { command, source } if is_missing(command, source) => Class::CommandNotFound,
            Self::Command { .. } => Class::CommandNotExecutable,
            Self::SomeFailed { class, .. } => *class,
            Self::Crossed { .. } => Class::Limit,
            Self::Worlds(error) => error.class(),
            #[cfg(unix)]
            Self::Capture(error) if error.is_missing() => Class::CommandNotFound,
            #[cfg(unix)]
            Self::Capture(error) if error.is_not_executable() => Class::CommandNotExecutable,
            _ => Class::Input,
        }
    }
}

/// What to do about a file of text that cannot be read.
fn unreadable_hint(error: &io::Error) -> Option<&'static str> {
    match error.kind() {
        io::ErrorKind::NotFound => {
            Some("check the path; `pagetide run WORKLOAD --dry-run > FILE.toml` writes a scenario")
        }
        io::ErrorKind::PermissionDenied => Some("check the permissions of the file and its folders"),
        io::ErrorKind::InvalidData => {
            Some("a scenario is a text in UTF-8, as `--dry-run` prints it; this file is something else")
        }
        io::ErrorKind::IsADirectory => Some("name a file in it; a recording's scenario is `scenario.toml`"),
        _ => None,
    }
}

/// What to do about a trace that cannot be read.
fn trace_hint(error: &io::Error) -> Option<&'static str> {
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied => {
            Some("check the path and the permissions of the file and its folders")
        }
        io::ErrorKind::IsADirectory => Some("name the file of the trace; this is a folder"),
        io::ErrorKind::FileTooLarge => Some("ask Prometheus for fewer containers, or for a longer step"),
        _ => None,
    }
}

/// Whether there is no such command. A script whose interpreter is missing fails in the same way.
fn is_missing(command: &Path, error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound && !command.exists()
}

fn command_hint(command: &Path, error: &io::Error) -> &'static str {
    match error.kind() {
        _ if is_missing(command, error) => {
            "check its name; for a line of a shell write `pagetide record -- sh -c 'LINE'`"
        }
        io::ErrorKind::NotFound => "it is there, but the interpreter that its first line names is not",
        _ if command.is_dir() => "name a program; this is a folder",
        io::ErrorKind::PermissionDenied => {
            "make it executable with `chmod +x`, or name its interpreter first"
        }
        _ => "name a program; a script begins with a line such as `#!/bin/sh`",
    }
}
