//! The catalog: every workload by name, with its parameters, and how to run one.
//!
//! What the language of [`crate::written`] carries is a file of `library`, named at `LIBRARY` below. Another workload
//! is a file of Rust that has constant lists of [`ParamSpec`]s and [`MetricSpec`]s, a constructor from [`Params`], a
//! `footprint` and a `run`; it is wired in at `CODE` and `Program`.
//!
//! Left out: which kernel and machine it runs on, see [`crate::scenario`].

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use thiserror::Error;
use trace::Trace;

use crate::parts::footprint::{Footprint, MachineSize};
use crate::parts::need::Need;
use crate::programs::captured;
use crate::programs::huge_faults::{self, HugeFaults};
use crate::programs::inode_storm::{self, InodeStorm};
use crate::programs::random_calls;
use crate::programs::sequential_readers::{self, SequentialReaders};
use crate::programs::simoop::{self, Simoop};
use crate::programs::small_files::{self, SmallFiles};
use crate::system::System;
use crate::system::outcome::{Outcome, WorkloadError};
use crate::written::{self, Described, Mistake};
use language::metric::MetricSpec;
use language::names::UnknownName;
use language::params::{ParamError, ParamSpec, Params};

/// What there is to know about a workload before it runs.
#[derive(Debug, Clone, Copy)]
pub struct WorkloadSpec {
    /// The name on the command line and in files.
    pub name: &'static str,
    /// One line for `pagetide list workloads`, without a full stop.
    pub help: &'static str,
    /// Its parameters, in the order in which help shows them.
    pub params: &'static [ParamSpec],
    /// Its phases, in the order in which they end.
    pub phases: &'static [&'static str],
    /// Those of them that only prepare what is measured.
    pub prepares: &'static [&'static str],
    /// The phase in whose second half slab and page cache are in balance, if that is what it is about.
    pub balance: Option<&'static str>,
    /// What a seed decides, one line each.
    pub varies: &'static [&'static str],
    /// The metrics that head its reports, most telling first.
    pub metrics: &'static [MetricSpec],
    pub(crate) build: Build,
}

/// How a workload is made of its parameters.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Build {
    /// By code.
    Code(fn(&Params) -> Result<Program, ParamError>),
    /// From a file.
    Written(&'static Described),
    /// From a file that is drawn.
    Drawn(fn(&Params) -> String),
}

/// All workloads, in the order in which lists show them.
pub fn catalog() -> &'static [WorkloadSpec] {
    static CATALOG: OnceLock<Vec<WorkloadSpec>> = OnceLock::new();
    CATALOG.get_or_init(all_by_name)
}

/// The same, and behind them the one that needs a file: a captured program.
pub fn with_program() -> impl Iterator<Item = &'static WorkloadSpec> {
    catalog().iter().chain([CAPTURED])
}

/// Workload files that were read, each once: what they name lives as long as the process, and reports look it up here.
static FILES: Mutex<Vec<&'static WorkloadSpec>> = Mutex::new(Vec::new());

/// A captured program is no part of the catalog: nothing can be said of it without a trace.
const CAPTURED: &WorkloadSpec = &WorkloadSpec {
    name: captured::NAME,
    help: captured::HELP,
    params: captured::PARAMS,
    phases: captured::PHASES,
    prepares: &["laid_out"],
    balance: None,
    varies: captured::VARIES,
    metrics: captured::METRICS,
    build: Build::Code(|params| captured::Program::from_params(params).map(Program::Captured)),
};

/// Those that are files.
const LIBRARY: [&str; 4] = [
    include_str!("../library/anon-and-file.toml"),
    include_str!("../library/containers.toml"),
    include_str!("../library/hot-and-stream.toml"),
    include_str!("../library/mapped-and-stream.toml"),
];

/// All of them, by name. No static names this function: with the reader of files it would be part of each program that
/// has the crate's code, such as that of its unit tests.
fn all_by_name() -> Vec<WorkloadSpec> {
    let read = |text: &&str| {
        let file = Described::read(text).unwrap_or_else(|mistake| panic!("a file of the library: {mistake}"));
        WorkloadSpec::described(file)
    };
    let mut all: Vec<WorkloadSpec> = CODE.iter().copied().chain(LIBRARY.iter().map(read)).collect();
    let any = random_calls::any();
    all.push(WorkloadSpec { build: Build::Drawn(random_calls::text), ..read(&&*any) });
    all.sort_by_key(|spec| spec.name);
    all
}

/// Those that are code.
const CODE: &[WorkloadSpec] = &[
    WorkloadSpec {
        name: huge_faults::NAME,
        help: huge_faults::HELP,
        params: huge_faults::PARAMS,
        phases: huge_faults::PHASES,
        prepares: &["created", "synced", "warm"],
        balance: None,
        varies: huge_faults::VARIES,
        metrics: huge_faults::METRICS,
        build: Build::Code(|params| HugeFaults::from_params(params).map(Program::HugeFaults)),
    },
    WorkloadSpec {
        name: inode_storm::NAME,
        help: inode_storm::HELP,
        params: inode_storm::PARAMS,
        phases: inode_storm::PHASES,
        prepares: &[],
        balance: None,
        varies: inode_storm::VARIES,
        metrics: inode_storm::METRICS,
        build: Build::Code(|params| InodeStorm::from_params(params).map(Program::InodeStorm)),
    },
    WorkloadSpec {
        name: sequential_readers::NAME,
        help: sequential_readers::HELP,
        params: sequential_readers::PARAMS,
        phases: sequential_readers::PHASES,
        prepares: &["files_written", "caches_dropped"],
        balance: None,
        varies: sequential_readers::VARIES,
        metrics: sequential_readers::METRICS,
        build: Build::Code(|params| SequentialReaders::from_params(params).map(Program::SequentialReaders)),
    },
    WorkloadSpec {
        name: simoop::NAME,
        help: simoop::HELP,
        params: simoop::PARAMS,
        phases: simoop::PHASES,
        prepares: &["laid_out", "warm"],
        balance: None,
        varies: simoop::VARIES,
        metrics: simoop::METRICS,
        build: Build::Code(|params| Simoop::from_params(params).map(Program::Simoop)),
    },
    WorkloadSpec {
        name: small_files::NAME,
        help: small_files::HELP,
        params: small_files::PARAMS,
        phases: small_files::PHASES,
        prepares: &[],
        balance: Some("created"),
        varies: small_files::VARIES,
        metrics: small_files::METRICS,
        build: Build::Code(|params| SmallFiles::from_params(params).map(Program::SmallFiles)),
    },
];

/// A workload that is ready to run: a program with all parameters resolved.
#[derive(Debug, Clone)]
pub struct Workload {
    spec: &'static WorkloadSpec,
    params: Params,
    program: Program,
}

impl PartialEq for Workload {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name() && self.params == other.params && self.program == other.program
    }
}

impl Eq for Workload {}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Program {
    HugeFaults(HugeFaults),
    InodeStorm(InodeStorm),
    Captured(captured::Program),
    SequentialReaders(SequentialReaders),
    Simoop(Simoop),
    SmallFiles(SmallFiles),
    Written(written::Program),
}

impl WorkloadSpec {
    /// The workload called `name`.
    ///
    /// # Errors
    /// [`UnknownName`], with the nearest name.
    pub fn find(name: &str) -> Result<&'static Self, UnknownName> {
        with_program()
            .find(|spec| spec.name == name)
            .ok_or_else(|| UnknownName::new("workload", name, catalog().iter().map(|spec| spec.name)))
    }

    /// The parameters as they are when nobody sets any.
    pub fn defaults(&self) -> Params {
        Params::defaults(self.params)
    }

    /// The workload with its defaults and `pairs` of parameter names and values; of two values for one name the later
    /// counts.
    ///
    /// # Errors
    /// A wrong value, or values that do not go together.
    pub fn with<'a>(
        &'static self,
        pairs: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Workload, ParamError> {
        let mut params = self.defaults();
        for (name, value) in pairs {
            params.set(name, value)?;
        }
        self.build(params)
    }

    /// The workload with these parameters, which began as [`WorkloadSpec::defaults`].
    ///
    /// # Errors
    /// [`ParamError::Conflict`] when the parameters do not go together.
    pub fn build(&'static self, params: Params) -> Result<Workload, ParamError> {
        let program = match self.build {
            Build::Code(build) => build(&params)?,
            Build::Written(file) => Program::Written(file.build(&params)?),
            Build::Drawn(text) => Program::Written(written::of_text(&text(&params), &params)?),
        };
        Ok(Workload { spec: self, params, program })
    }

    /// The workload that a file describes, see [`crate::written`].
    ///
    /// # Errors
    /// The first mistake, with its place; a name that the catalog has.
    pub fn of_file(text: &str) -> Result<&'static Self, Mistake> {
        let mut files = FILES.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(same) = files.iter().find(|spec| spec.file_text() == Some(text)) {
            return Ok(same);
        }
        let file = Described::read(text)?;
        if with_program().any(|own| own.name == file.name) {
            let message = format!("`{}` is the name of a built-in workload", file.name);
            let hint = Some("give it another one in the line `name = ...`".to_owned());
            return Err(Mistake { position: None, message, hint });
        }
        let spec: &'static Self = Box::leak(Box::new(Self::described(file)));
        files.push(spec);
        Ok(spec)
    }

    fn described(file: Described) -> Self {
        let file: &'static Described = Box::leak(Box::new(file));
        let Described { name, help, params, phases, prepares, varies, metrics, .. } = *file;
        let build = Build::Written(file);
        Self { name, help, params, phases, prepares, balance: None, varies, metrics, build }
    }

    /// The workload called `name`, be it from a file that was read: then the last one of that name.
    pub fn known(name: &str) -> Option<&'static Self> {
        let files = FILES.lock().unwrap_or_else(PoisonError::into_inner);
        Self::find(name).ok().or_else(|| files.iter().rev().find(|spec| spec.name == name).copied())
    }

    /// The text of the file that it comes from, if that is not in the library.
    pub fn file_text(&self) -> Option<&'static str> {
        match self.build {
            Build::Written(file) if !LIBRARY.contains(&file.text()) => Some(file.text()),
            Build::Code(_) | Build::Written(_) | Build::Drawn(_) => None,
        }
    }
}

/// What the caller asked for does not exist or makes no sense.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum InputError {
    /// No workload has this name.
    #[error(transparent)]
    UnknownWorkload(#[from] UnknownName),
    /// A parameter is wrong.
    #[error(transparent)]
    Param(#[from] ParamError),
}

impl InputError {
    /// What to write instead; `None` when the message says it all.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::UnknownWorkload(unknown) => Some(unknown.hint()),
            Self::Param(error) => error.hint(),
        }
    }
}

impl Workload {
    /// The workload called `name` with its defaults and `pairs` of parameter names and values; of
    /// two values for one name the later counts.
    ///
    /// # Errors
    /// An unknown name, a wrong value, or values that do not go together.
    pub fn new<'a>(
        name: &str,
        pairs: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Self, InputError> {
        Ok(WorkloadSpec::find(name)?.with(pairs)?)
    }

    /// Its name.
    pub fn name(&self) -> &'static str {
        self.spec.name
    }

    /// What there is to know about it before it runs.
    pub fn spec(&self) -> &'static WorkloadSpec {
        self.spec
    }

    /// All parameters that it runs with, defaults included.
    pub fn params(&self) -> &Params {
        &self.params
    }

    /// The file of the trace that it makes again, if it does: whoever runs it reads the file first.
    pub const fn trace_path(&self) -> Option<&'static str> {
        match &self.program {
            Program::Captured(program) => program.path(),
            _ => None,
        }
    }

    /// The trace that it makes again, once it has one.
    pub fn trace(&self) -> Option<&Arc<Trace>> {
        match &self.program {
            Program::Captured(program) => program.trace(),
            _ => None,
        }
    }

    /// The same workload with the trace that it makes again, which passes [`Trace::check`]. Others stay as they are.
    #[must_use]
    pub fn with_trace(self, trace: Arc<Trace>) -> Self {
        match &self.program {
            Program::Captured(program) => {
                let program = Program::Captured(program.with_trace(trace));
                Self { program, ..self }
            }
            _ => self,
        }
    }

    /// The same workload with the trace of another one, and what was found out of it. Others stay as they are.
    #[must_use]
    pub fn with_plan_of(self, other: &Self) -> Self {
        match (&self.program, &other.program) {
            (Program::Captured(own), Program::Captured(other)) => {
                let program = Program::Captured(own.with_plan_of(other));
                Self { program, ..self }
            }
            _ => self,
        }
    }

    /// What a kernel must have for it to run, or to make sense.
    pub fn needs(&self) -> Vec<Need> {
        let asks = |choice: &str| self.params.choice("advice") == Some(choice);
        match &self.program {
            Program::Written(program) => program.needs(),
            Program::Captured(_) => vec![Need::Cgroups],
            Program::HugeFaults(_) if asks("madvise") => vec![Need::HugePageAdvice],
            Program::HugeFaults(_) => vec![Need::HugePages],
            Program::InodeStorm(_)
            | Program::SequentialReaders(_)
            | Program::Simoop(_)
            | Program::SmallFiles(_) => Vec::new(),
        }
    }

    /// Bytes of the file, be it in the library, that is read when a run begins; none: it is code.
    pub fn file_bytes(&self) -> Option<usize> {
        match self.spec.build {
            Build::Written(file) => Some(file.text().len()),
            Build::Code(_) | Build::Drawn(_) => self.drawn_text().map(|text| text.len()),
        }
    }

    /// The workload file that its parameters come to, where it is drawn.
    pub fn drawn_text(&self) -> Option<String> {
        match self.spec.build {
            Build::Drawn(text) => Some(text(&self.params)),
            Build::Code(_) | Build::Written(_) => None,
        }
    }

    /// Why its result on a machine of this size will say little, if so.
    pub fn warnings(&self, machine: MachineSize) -> Vec<String> {
        match &self.program {
            Program::SmallFiles(program) => program.few_samples(machine).into_iter().collect(),
            Program::HugeFaults(_)
            | Program::InodeStorm(_)
            | Program::Captured(_)
            | Program::SequentialReaders(_)
            | Program::Simoop(_)
            | Program::Written(_) => Vec::new(),
        }
    }

    /// What is to be said of it on a machine of this size with its results.
    pub fn remarks(&self, machine: MachineSize) -> Vec<String> {
        match &self.program {
            Program::InodeStorm(program) => program.remarks(machine),
            Program::Captured(program) => program.remarks(),
            Program::Simoop(program) => program.remarks(machine),
            Program::SmallFiles(program) => program.remarks(machine),
            Program::HugeFaults(_) | Program::SequentialReaders(_) | Program::Written(_) => Vec::new(),
        }
    }

    /// What it makes on a machine of this size, by the code that makes it.
    pub fn footprint(&self, machine: MachineSize) -> Footprint {
        match &self.program {
            Program::HugeFaults(program) => program.footprint(machine),
            Program::InodeStorm(program) => program.footprint(machine),
            Program::Captured(program) => program.footprint(),
            Program::SequentialReaders(program) => program.footprint(machine),
            Program::Simoop(program) => program.footprint(machine),
            Program::SmallFiles(program) => program.footprint(machine),
            Program::Written(program) => program.footprint(machine),
        }
    }

    /// Runs it to its end. Deterministic where `sys` is.
    ///
    /// # Errors
    /// The first system call that fails, by name.
    pub async fn run<S: System>(&self, sys: S) -> Result<Outcome, WorkloadError> {
        match &self.program {
            Program::HugeFaults(program) => program.run(sys).await,
            Program::InodeStorm(program) => program.run(sys).await,
            Program::Captured(program) => program.run(sys).await,
            Program::SequentialReaders(program) => program.run(sys).await,
            Program::Simoop(program) => program.run(sys).await,
            Program::SmallFiles(program) => program.run(sys).await,
            Program::Written(program) => program.run(sys).await,
        }
    }
}
