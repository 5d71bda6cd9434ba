//! All that can go wrong between a person's request and a recording, what to do about it, and
//! whose fault it is.
//!
//! Every error has a message, often a cause ([`std::error::Error::source`]), mostly a hint, and a
//! [`Class`] that decides the exit code.

pub(crate) mod ablate;
pub(crate) mod capture;
pub(crate) mod class;
pub(crate) mod fail_if;
pub(crate) mod mmtests;
pub(crate) mod numbers;
pub(crate) mod size;
pub(crate) mod sweep;
pub(crate) mod worlds;

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;
use workload::policy::PolicyError;
use workload::scenario::ScenarioProblem;
use workload::trace::TraceError;
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
    /// A sysctl is given in a form that cannot be read.
    #[error("`{0}` is not of the form `name=value`")]
    SysctlNotAPair(String),
    /// A sysctl has a value that it does not take.
    #[error(transparent)]
    Sysctl(#[from] mm::base::sysctl::SysctlError),
    /// A scenario file cannot be read.
    #[error("cannot read `{}`", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why, by the operating system.
        source: io::Error,
    },
    /// A trace cannot be read, of whatever kind it is.
    #[error("cannot read `{}`", path.display())]
    UnreadableTrace {
        /// The file.
        path: PathBuf,
        /// Why, by the operating system.
        source: io::Error,
    },
    /// A scenario file is wrong.
    #[error("`{}` is no scenario that can run", path.display())]
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
    /// A program is to be replayed, and nobody says which.
    #[error("`program` replays a trace, and none is named")]
    NoTrace,
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
    /// This host, or what it has installed, does not do what was asked.
    #[error("{message}")]
    Host {
        /// What it does not do.
        message: String,
        /// What to do about it.
        hint: Option<String>,
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
    /// A comparison without kernels of a workload that has none of its own.
    #[error("`{0}` has no kernels of its own to compare")]
    NoDefaultKernels(String),
    /// A comparison of one kernel.
    #[error("there is only `{0}`: nothing to compare it with")]
    OneKernel(String),
    /// A comparison of one real kernel.
    #[error("there is only `{0}`: nothing to compare it with")]
    OneBackend(String),
    /// A path in place of a workload's name.
    #[error("`{0}` is neither a workload nor a scenario file")]
    NotAWorkload(String),
    /// A sysctl that only the model has, or that only the model sets.
    #[error("sysctl `{name}` cannot be set on `{backend}`, only on simulated kernels")]
    NotOnReal {
        /// The sysctl.
        name: String,
        /// Where it runs.
        backend: String,
    },
    /// Events of a real kernel.
    #[error("`{0}` has no events to keep: they are the simulator's")]
    NoEventsOf(String),
    /// Events of a replacement policy.
    #[error("a replacement policy has no events to keep: they are a kernel's")]
    NoEventsOfPolicies,
    /// The same kernel twice.
    #[error("kernel `{0}` is named twice")]
    SameKernel(String),
    /// The same value twice for an option that takes several.
    #[error("`{option} {value}` is given twice")]
    Twice {
        /// The option.
        option: &'static str,
        /// Its value.
        value: String,
    },
    /// A command that cannot be started.
    #[error("cannot run `{command}`")]
    Command {
        /// The command, without its arguments.
        command: PathBuf,
        /// Why, by the operating system.
        source: io::Error,
    },
    /// Something is said of this host, and nothing runs on it.
    #[error("`{what}` is for runs on this host, and this runs on `{backend}`")]
    NotOnHost {
        /// The option.
        what: &'static str,
        /// Where it runs.
        backend: String,
    },
    /// No seeds, or more than anyone can wait for.
    #[error("`--seeds` takes 1 to {max}, not {seeds}")]
    Seeds {
        /// As asked for.
        seeds: u64,
        /// What a comparison takes.
        max: u64,
    },
    /// A sweep that cannot be, or that has gone wrong in part.
    #[error(transparent)]
    Sweep(#[from] sweep::SweepError),
    /// Worlds that cannot be.
    #[error(transparent)]
    Worlds(#[from] worlds::WorldsError),
    /// An ablation that cannot be.
    #[error(transparent)]
    Ablate(#[from] ablate::AblateError),
    /// A limit that cannot be read or judged, or that is not kept.
    #[error(transparent)]
    FailIf(#[from] fail_if::FailIfError),
    /// A trace that cannot be sized.
    #[error(transparent)]
    Size(#[from] size::SizeError),
    /// Workloads and folders in one comparison.
    #[error("`{0}` is not a folder with recordings")]
    NotARecording(String),
    /// Several workloads in one comparison, or a folder that is not there.
    #[error("`{0}` is not a folder with recordings")]
    NotComparable(String),
    /// The same folder twice in one comparison.
    #[error("`{}` is named twice", .0.display())]
    SameFolder(PathBuf),
    /// A folder of recordings without any.
    #[error("there is no recording in `{}`", .0.display())]
    EmptyFolder(PathBuf),
    /// A story of pages is asked for, and nobody recorded what became of them.
    #[error("`{label}` was recorded without events of pages")]
    NoEventsOfPages {
        /// What the run is called.
        label: String,
        /// The command that records them, if one does.
        command: Option<String>,
    },
    /// A folder of several recordings where one is meant.
    #[error("`{}` has {count} recordings, and this is about one", folder.display())]
    SeveralRecordings {
        /// The folder.
        folder: PathBuf,
        /// How many there are.
        count: usize,
        /// The first of them.
        first: PathBuf,
    },
    /// A recording without events where they are all there is to show.
    #[error("`{}` has no events, and this form of a trace has nothing else", .0.display())]
    NoEvents(PathBuf),
    /// A file that is there already.
    #[error("`{}` exists already", .0.display())]
    FileExists(PathBuf),
    /// A file in a folder that does not exist.
    #[error("cannot write `{}`: there is no folder `{}`", file.display(), folder.display())]
    NoFolder {
        /// The file.
        file: PathBuf,
        /// Its folder.
        folder: PathBuf,
    },
    /// A figure in another form than SVG.
    #[error("`{}` is not named as what it would be: figures are written as SVG", .0.display())]
    NotSvg(PathBuf),
    /// A figure that the recordings have nothing for.
    #[error("there is no figure{} to draw of these recordings", name.as_ref().map_or_else(String::new, |name| format!(" `{name}`")))]
    NoFigure {
        /// What was asked for.
        name: Option<String>,
        /// Those that there are.
        figures: Vec<String>,
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
    /// A replay on nothing.
    #[error("there is no cache to replay the trace on")]
    NoCache,
    /// A warm-up as long as the trace.
    #[error("{0}")]
    AllWarmup(String),
    /// Standard input would have to be read twice.
    #[error("a sweep that is kept cannot read its trace from standard input")]
    StdinOnce,
    /// A trace that is not the one that a scenario is about.
    #[error("`{}` has {found} bytes and is not the trace of this scenario, which had {expected}", path.display())]
    OtherTrace {
        /// The file.
        path: PathBuf,
        /// Bytes that it had.
        expected: u64,
        /// Bytes that it has.
        found: u64,
    },
    /// The scenario of a replay that is wrong.
    #[error("`{}` is no scenario of a replay: {problem}", path.display())]
    ReplayFile {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// A file of numbers that cannot be read.
    #[error("cannot read `{}`", path.display())]
    NoNumbers {
        /// The file.
        path: PathBuf,
        /// Why, by the operating system.
        source: io::Error,
    },
    /// A file that holds something else than numbers.
    #[error("cannot compare `{}`", path.display())]
    Numbers {
        /// The file.
        path: PathBuf,
        /// What is wrong, and where.
        source: numbers::NumbersError,
    },
    /// A folder of mmtests that cannot be written or read.
    #[error(transparent)]
    Mmtests(#[from] mmtests::MmtestsError),
    /// A program that was not captured, or not to its end.
    #[error(transparent)]
    Capture(#[from] capture::CaptureFailure),
    /// A run on a real kernel that was to be stopped and looked at.
    #[error("`{0}` cannot be stopped and looked at: only simulated runs are stepped")]
    NotStepped(String),
    /// No threads to run on.
    #[error("cannot start threads")]
    Threads(#[from] rayon::ThreadPoolBuildError),
    /// The user stopped the work.
    #[error("interrupted: {finished} of {total} runs finished")]
    Interrupted {
        /// How many runs have a recording.
        finished: usize,
        /// How many were planned.
        total: usize,
    },
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

impl LabError {
    /// What to do about it; `None` when the message says it all.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Input(error) => error.hint(),
            Self::Import { source, .. } => source.hint().map(str::to_owned),
            Self::Program(error) => Some(error.hint().to_owned()),
            Self::Kernel(error) => error.hint(),
            Self::Unknown(error) => Some(error.hint()),
            Self::Value(problem) => problem.hint(),
            Self::Capture(failure) => failure.hint(),
            Self::File { source, .. } => source.hint(),
            Self::Machine { hint, .. } | Self::Run { hint, .. } | Self::Host { hint, .. } => hint.clone(),
            Self::Recording(error) | Self::NotKept(_, error) => Some(error.hint().to_owned()),
            Self::Report(error) => Some(error.hint().to_owned()),
            Self::Trace { source, .. } => source.hint(),
            Self::Unreadable { source, .. } => unreadable_hint(source).map(str::to_owned),
            Self::UnreadableTrace { source, .. } => trace_hint(source).map(str::to_owned),
            Self::Command { command, source } => Some(command_hint(command, source).to_owned()),
            Self::Sweep(error) => error.hint(),
            Self::Worlds(error) => error.hint(),
            Self::Ablate(error) => error.hint(),
            Self::NoEventsOfPages { command, .. } => Some(match command {
                Some(command) => format!("record them with `{command}`"),
                None => "only simulated runs record them: `pagetide explain WORKLOAD --file NAME`".to_owned(),
            }),
            Self::FailIf(error) => error.hint(),
            Self::Size(error) => error.hint(),
            Self::SeveralRecordings { first, .. } => Some(format!("name one, such as `{}`", first.display())),
            Self::NotSvg(path) => Some(format!("name it `{}`", path.with_extension("svg").display())),
            Self::NoFigure { figures, .. } => Some(figures_hint(figures)),
            Self::Invariant { command, .. } => {
                Some(format!("this is a bug of pagetide; please report it with this command:\n  {command}"))
            }
            Self::Amount(error) => Some(error.hint().to_owned()),
            Self::Policy(error) => error.hint(),
            Self::Mmtests(error) => error.hint().map(str::to_owned),
            Self::Numbers { source, .. } => Some(source.hint().to_owned()),
            _ => self.remedy().map(str::to_owned),
        }
    }

    /// The hint of those that have the same one every time.
    fn remedy(&self) -> Option<&'static str> {
        match self {
            Self::SysctlNotAPair(_) => Some("write it as in `--set vm.swappiness=10`"),
            Self::Twice { .. } => Some("leave one of them out"),
            Self::NoDefaultKernels(_) => Some("name two or more with `--kernel`"),
            Self::OneKernel(_) => Some("name a second one with `--kernel`"),
            Self::OneBackend(_) => Some("name a second one with `--on`, such as `--on sim`"),
            Self::NotOnReal { .. } => Some("leave it out, or run it with `--on sim`"),
            Self::NoTrace => {
                Some("add `--param trace=FILE`; `pagetide capture -o FILE -- COMMAND` makes one")
            }
            Self::NotAWorkload(_) => Some(
                "a scenario file is called `*.toml`, a recording's is `scenario.toml` in its folder; \
                 `pagetide report DIR` shows recordings",
            ),
            Self::NotOnHost { .. } => Some("add `--on host`, or leave it out"),
            Self::NotStepped(_) => Some("run it on `sim`"),
            Self::NoEventsOf(_) => Some("leave `--events` out, or `--on`"),
            Self::NoEventsOfPolicies => Some("name memory for a kernel with `--mem`"),
            Self::SameKernel(_) => Some("use `--seeds` to repeat a run"),
            Self::NotComparable(_) => Some(
                "compare folders, or one workload, whose kernels are named with `--kernel`; \
                 `pagetide run WORKLOAD --out DIR` makes a recording",
            ),
            Self::NotARecording(_) | Self::EmptyFolder(_) => {
                Some("`pagetide run WORKLOAD --out DIR` makes a recording")
            }
            Self::NoEvents(_) => Some("`pagetide run WORKLOAD --events reclaim --out DIR` records them"),
            Self::FileExists(_) => Some("name a new file, or remove this one first"),
            Self::NoFolder { .. } => Some("make the folder first, or name another one"),
            Self::SameFolder(_) => Some("name another folder to put beside it"),
            Self::NoNumbers { .. } => {
                Some("name a file of numbers, `NAME=FILE`, `NAME=1.5,2.5`, or folders with recordings")
            }
            Self::NoCache => {
                Some("`--mem 256M` is a kernel's page cache, `--policy lru --capacity 10k` a plain policy")
            }
            Self::AllWarmup(_) => Some("give a shorter `--warmup`"),
            Self::StdinOnce => Some("put the trace into a file first, or leave `--out` away"),
            Self::OtherTrace { .. } => {
                Some("get the trace that it was made with, or replay this one by its own name")
            }
            Self::ReplayFile { .. } => Some("a replay's recording has one, as `scenario.toml`"),
            _ => None,
        }
    }

    /// The message with its causes, in one line.
    pub fn told(&self) -> String {
        let mut told = self.to_string();
        let mut cause = std::error::Error::source(self);
        while let Some(error) = cause {
            let text = error.to_string();
            if !told.contains(&text) {
                told = format!("{told}: {text}");
            }
            cause = error.source();
        }
        told
    }

    /// Whose fault it is.
    pub fn class(&self) -> Class {
        match self {
            Self::Invariant { .. } => Class::Invariant,
            Self::Interrupted { .. } => Class::Interrupted,
            Self::Threads(_) => Class::Internal,
            Self::Command { command, source } if is_missing(command, source) => Class::CommandNotFound,
            Self::Command { .. } => Class::CommandNotExecutable,
            Self::Sweep(sweep::SweepError::SomeFailed { class, .. }) => *class,
            Self::FailIf(fail_if::FailIfError::Crossed { .. }) => Class::Limit,
            Self::Capture(failure) => failure.class(),
            Self::Worlds(error) => error.class(),
            _ => Class::Input,
        }
    }
}

/// Which figures there are.
fn figures_hint(figures: &[String]) -> String {
    match figures {
        [] => "they have no readings over time, no samples and no waits".to_owned(),
        figures => format!("there are {}", figures.join(", ")),
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
