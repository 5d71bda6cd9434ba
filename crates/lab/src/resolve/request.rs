//! Texts to a resolved scenario.
//!
//! A [`Request`] is what a person gives: a workload or a scenario file, and what shall differ
//! from its defaults. All names and values are checked here, before anything runs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use kernel::Filesystem;
use mm::base::sysctl::Sysctl;
use sim::machines::{self, MachineSpec};
use units::Seed;
use workload::params::split_pair;
use workload::scenario::{
    Guest, LruGen, ScenarioProblem, Swap, Written, check_kernel, check_lru_gen, check_machine, check_mem,
    check_swap, is_guest_machine, lru_gen_of, parse_interval, parse_mem_of,
};
use workload::small_files::{FULL, SOURCE_MEMORY};
use workload::{Backend, MachineSize, ParamError, Params, Scenario, ScenarioError, WorkloadSpec};

use crate::error::{LabError, machine_hint};
use crate::name::machine_file;
use crate::name::names::Names;
use crate::name::written;
use crate::resolve::defaults::{default_swap, defaults, fill_in, guest_of, is_full};
use crate::resolve::disks;
use crate::resolve::kernel_name::check_changes;
use crate::resolve::policy_object;
use crate::resolve::program;
use crate::resolve::setting::{Setting, filesystem, machine_spec, sysctls};
use crate::resolve::swap;
use crate::resolve::texts::{kernel_named, listed, sysctl_pairs};

/// What a request is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// A workload by name.
    Workload(String),
    /// A scenario file.
    File(PathBuf),
    /// A workload file, and what it has in it.
    Written {
        /// Where it lies.
        path: PathBuf,
        /// Its text.
        text: String,
    },
    /// What a scenario file has in it.
    Text(String),
}

/// What a text that is no file is called where something in it is wrong.
const UNNAMED: &str = "scenario text";

impl Subject {
    /// A scenario or workload file if it is called so (`*.toml`, `*.fio`), a workload by name otherwise. A file is
    /// looked at: a workload file has tasks, and a scenario names a workload.
    pub fn of_argument(argument: &str) -> Self {
        let path = Path::new(argument);
        if written::is_called_so(path)
            && let Ok(text) = std::fs::read_to_string(path)
            && written::is_one(path, &text)
        {
            return Self::Written { path: path.to_owned(), text };
        }
        if written::is_called_so(path) {
            Self::File(path.to_owned())
        } else {
            Self::Workload(argument.to_owned())
        }
    }

    /// A workload file or a scenario, as its text has it.
    pub fn of_text(text: String) -> Self {
        let path = PathBuf::from(UNNAMED);
        if written::is_one(&path, &text) { Self::Written { path, text } } else { Self::Text(text) }
    }

    /// Whether it names what runs and no more, as a scenario does.
    pub fn is_workload(&self) -> bool {
        matches!(self, Self::Workload(_) | Self::Written { .. })
    }
}

/// A run as a person asks for it; what is left out is the workload's, or the file's, own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// What to run.
    pub subject: Subject,
    /// The kernel: `linux-5.4+root-aging`.
    pub kernel: Option<String>,
    /// The machine, by name.
    pub machine: Option<String>,
    /// The machine's memory: `1016336kB`.
    pub mem: Option<String>,
    /// What the machine swaps to: `zram:256M,disk:1G`.
    pub swap: Option<String>,
    /// Parameters of the workload, each `name=value`.
    pub params: Vec<String>,
    /// Sysctls, each `name=value`.
    pub sysctls: Vec<String>,
    /// The seed.
    pub seed: Option<u64>,
    /// Time between two samples of all counters: `100ms`.
    pub interval: Option<String>,
    /// Where to run: `sim`, `host`, `vm:6.12`.
    pub backend: Option<String>,
    /// What a virtual machine shall be like.
    pub guest: GuestRequest,
}

/// What a person wants of a virtual machine; only a backend `vm:VERSION` has one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GuestRequest {
    /// CPUs.
    pub cpus: Option<u16>,
    /// NUMA nodes.
    pub numa_nodes: Option<u16>,
    /// `on`, `off`, or what `/sys/kernel/mm/lru_gen/enabled` takes.
    pub lru_gen: Option<String>,
    /// MiB of the log of XFS.
    pub xfs_log: Option<u16>,
}

impl GuestRequest {
    /// The option of the command line that was given, the first of several.
    pub fn given(&self) -> Option<&'static str> {
        let given = [
            ("--vm-cpus", self.cpus.is_some()),
            ("--vm-nodes", self.numa_nodes.is_some()),
            ("--lru-gen", self.lru_gen.is_some()),
            ("--vm-xfs-log", self.xfs_log.is_some()),
        ];
        given.into_iter().find_map(|(option, given)| given.then_some(option))
    }

    fn apply_to(&self, mut guest: Guest) -> Result<Guest, LabError> {
        guest.cpus = self.cpus.unwrap_or(guest.cpus);
        guest.numa_nodes = self.numa_nodes.unwrap_or(guest.numa_nodes);
        if let Some(lru_gen) = &self.lru_gen {
            guest.lru_gen = lru_gen.parse::<LruGen>()?;
        }
        guest.xfs_log = self.xfs_log.or(guest.xfs_log);
        guest.check()?;
        Ok(guest)
    }
}

impl Request {
    /// `subject` as it is when nobody says more.
    pub fn new(subject: Subject) -> Self {
        Self {
            subject,
            kernel: None,
            machine: None,
            mem: None,
            swap: None,
            params: Vec::new(),
            sysctls: Vec::new(),
            seed: None,
            interval: None,
            backend: None,
            guest: GuestRequest::default(),
        }
    }

    /// The scenario that was asked for, with every name and value checked.
    ///
    /// # Errors
    /// The first name or value that cannot be used, or that means nothing where it runs.
    pub fn resolve(&self) -> Result<Scenario, LabError> {
        self.resolve_telling().map(|(scenario, _)| scenario)
    }

    /// The scenario that was asked for, and a sentence on what a file says in vain, because it is
    /// moved to another backend than its own.
    ///
    /// # Errors
    /// As [`Request::resolve`].
    pub fn resolve_telling(&self) -> Result<(Scenario, Option<String>), LabError> {
        let names = Names::default();
        let moved_to = self.backend.as_deref().map(str::parse::<Backend>).transpose()?;
        let mut of_file = None;
        let (scenario, unused) = match &self.subject {
            Subject::Workload(name) => {
                let is_path = name.contains('/') || Path::new(name).exists();
                if is_path && WorkloadSpec::find(name).is_err() {
                    return Err(LabError::refused(
                        format!("`{name}` is neither a workload nor a scenario file"),
                        "a scenario file is called `*.toml`, a recording's is `scenario.toml` in its folder; \
                         `pagetide report DIR` shows recordings",
                    ));
                }
                (self.with_defaults(WorkloadSpec::find(name)?, moved_to, &names)?, Vec::new())
            }
            Subject::Written { path, text } => {
                let read = written::read(path, text)?;
                of_file = read.told;
                let mut scenario = self.with_defaults(read.spec, moved_to, &names)?;
                scenario.file = written::is_called_so(path).then(|| path.clone());
                (scenario, Vec::new())
            }
            Subject::File(path) => self.read(path, &read_file(path)?, moved_to.as_ref(), &names)?,
            Subject::Text(text) => self.read(Path::new(UNNAMED), text, moved_to.as_ref(), &names)?,
        };
        let told = listed(&unused).map(|keys| {
            format!("`{}` is what it is: left out what the file says of {keys}", scenario.backend)
        });
        Ok((scenario, told.or(of_file)))
    }

    /// A workload with what is asked for in place of its defaults.
    fn with_defaults(
        &self,
        spec: &'static WorkloadSpec,
        moved_to: Option<Backend>,
        names: &Names,
    ) -> Result<Scenario, LabError> {
        let mut scenario = defaults(spec, moved_to.unwrap_or_default())?;
        self.apply_to(&mut scenario, names)?;
        check(&scenario)?;
        Ok(scenario)
    }

    /// The scenario of a text with what is asked for in place of what it says, and the keys that it says in vain.
    fn read(
        &self,
        path: &Path,
        text: &str,
        moved_to: Option<&Backend>,
        names: &Names,
    ) -> Result<(Scenario, Vec<&'static str>), LabError> {
        let written = read_text(path, text, moved_to, names)?;
        let mut scenario = written.scenario.clone();
        fill_in(&mut scenario)?;
        self.apply_to(&mut scenario, names)?;
        check(&scenario).map_err(|error| self.place_of_mem(path, &written, error))?;
        Ok((scenario, written.unused))
    }

    /// A machine that cannot be built, told at the file's line if its memory is the file's.
    fn place_of_mem(&self, path: &Path, written: &Written, error: LabError) -> LabError {
        match (error, written.place("mem")) {
            (LabError::Machine { message, hint }, Some(position))
                if self.mem.is_none() && self.machine.is_none() =>
            {
                let problem = ScenarioProblem::Model { message, hint };
                let source = Box::new(ScenarioError { position: Some(position), problem });
                LabError::File { path: path.to_owned(), source }
            }
            (error, _) => error,
        }
    }

    fn apply_to(&self, scenario: &mut Scenario, names: &Names) -> Result<(), LabError> {
        if !self.params.is_empty() {
            let spec = scenario.workload.spec();
            let mut params: Params = scenario.workload.params().clone();
            let mut given = BTreeMap::new();
            for pair in &self.params {
                let (name, value) = split_pair(pair)?;
                params.set(name, value)?;
                if let Some(first) = given.insert(name, value) {
                    return Err(ParamError::twice(name, first, value).into());
                }
            }
            let full_before = is_full(scenario);
            scenario.workload = spec.build(params)?;
            if is_full(scenario) != full_before {
                scenario.mem = None;
                fill_in(scenario)?;
            }
        }
        self.apply_machine_to(scenario, names)?;
        scenario.sysctls.extend(sysctl_pairs(&self.sysctls, names)?);
        if let Some(seed) = self.seed {
            scenario.seed = Seed(seed);
        }
        if let Some(interval) = &self.interval {
            scenario.interval = Some(parse_interval("--interval", interval)?);
        }
        self.apply_guest_to(scenario)
    }

    /// Kernel, machine and memory, where the backend leaves them to choose.
    fn apply_machine_to(&self, scenario: &mut Scenario, names: &Names) -> Result<(), LabError> {
        let simulated = scenario.backend == Backend::Sim;
        if let Some(kernel) = &self.kernel {
            let kernel = kernel_named(kernel, names)?;
            check_kernel("--kernel", &kernel, &scenario.backend)?;
            if let (true, Some(lru_gen)) = (scenario.backend.is_guest(), lru_gen_of(&kernel)) {
                let given = self.guest.lru_gen.as_ref().map(|given| given.parse::<LruGen>()).transpose()?;
                given.map_or(Ok(()), |given| check_lru_gen(lru_gen, given))?;
                scenario.guest = Some(Guest { lru_gen, ..guest_of(scenario) });
            }
            scenario.kernel = simulated.then_some(kernel);
        }
        let file = machine_file::of_option(self.machine.as_deref())?;
        if let Some(file) = &file {
            for (name, value) in sysctl_pairs(&file.sysctls, names)? {
                scenario.sysctls.entry(name).or_insert(value);
            }
        }
        let machine = file.as_ref().map(|file| &file.machine).or(self.machine.as_ref());
        if let Some(machine) = machine {
            if is_guest_machine(machine, &scenario.backend) {
                // It may say how far its disks are read ahead.
                MachineSpec::parse(machine).map_err(no_machine)?;
                scenario.machine = Some(machine.clone());
            } else {
                let machine = names.vocabulary().machine(machine)?;
                check_machine("--machine", &machine, &scenario.backend)?;
                scenario.mem = Some(machine_spec(&machine).default_mem);
                scenario.machine = Some(machine);
                if is_full(scenario) {
                    scenario.mem = Some(SOURCE_MEMORY);
                }
            }
        }
        if let Some(mem) = self.mem.as_ref().or(file.as_ref().and_then(|file| file.memory.as_ref())) {
            check_mem("--mem", mem, &scenario.backend)?;
            scenario.mem = Some(parse_mem_of("--mem", mem)?);
        }
        if let Some(swap) = &self.swap {
            let swap: Swap = swap.parse()?;
            check_swap("--swap", &swap, &scenario.backend)?;
            scenario.swap = (default_swap(scenario) != swap || !swap.is_none()).then_some(swap);
        }
        Ok(())
    }

    /// A guest's scenario says all of it, any other nothing.
    fn apply_guest_to(&self, scenario: &mut Scenario) -> Result<(), LabError> {
        if scenario.backend.is_guest() {
            scenario.guest = Some(self.guest.apply_to(guest_of(scenario))?);
            return Ok(());
        }
        match self.guest.given() {
            Some(what) => {
                Err(ScenarioProblem::NoGuest { what, backend: scenario.backend.to_string() }.into())
            }
            None => Ok(()),
        }
    }
}

fn read_file(path: &Path) -> Result<String, LabError> {
    std::fs::read_to_string(path).map_err(|source| LabError::unreadable(path, source))
}

/// A machine that cannot be.
fn no_machine(error: machines::MachineError) -> ScenarioProblem {
    ScenarioProblem::Model { message: error.to_string(), hint: Some(machine_hint(&error)) }
}

/// Reads what `path` has in it, and checks what only the model knows: each mistake is told at its line.
fn read_text(
    path: &Path,
    text: &str,
    moved_to: Option<&Backend>,
    names: &Names,
) -> Result<Written, LabError> {
    let failed = |source| LabError::File { path: path.to_owned(), source: Box::new(source) };
    let mut written = Scenario::read_to_run_on(text, &names.vocabulary(), moved_to).map_err(failed)?;
    if let Some(kernel) = &mut written.scenario.kernel {
        let checked = check_changes(kernel).and_then(|()| policy_object::seal(kernel));
        let position = written.place("kernel");
        checked.map_err(|problem| failed(ScenarioError { position, problem }))?;
    }
    let at = |key: &str, problem| failed(ScenarioError { position: written.place(key), problem });
    if let Some(machine) = &written.scenario.machine {
        MachineSpec::parse(machine).map_err(|error| at("machine", no_machine(error)))?;
    }
    for (name, value) in &written.scenario.sysctls {
        Sysctl::parse(name)
            .and_then(|sysctl| sysctl.parse_value(value))
            .map_err(|error| at(name, ScenarioProblem::Model { message: error.to_string(), hint: None }))?;
    }
    Ok(written)
}

fn check_full(scenario: &Scenario) -> Result<(), LabError> {
    if !is_full(scenario) || scenario.mem == Some(SOURCE_MEMORY) {
        return Ok(());
    }
    let (message, hint) = match scenario.mem {
        Some(mem) => (
            format!("`scale={FULL}` is on {SOURCE_MEMORY} of memory, not {mem}"),
            "leave `--mem` out, or `scale`: all sizes follow from the memory",
        ),
        None => (
            format!("`scale={FULL}` is on {SOURCE_MEMORY} of memory, and `{}` has a limit", scenario.backend),
            "leave `scale` out, and say how much by `--host-limit`",
        ),
    };
    Err(ScenarioProblem::Model { message, hint: Some(hint.to_owned()) }.into())
}

/// What only shows when all values are known: sysctls in range, a machine that can be built.
fn check(scenario: &Scenario) -> Result<(), LabError> {
    check_full(scenario)?;
    program::check(scenario)?;
    match scenario.backend {
        Backend::Sim => Ok(disks::check(scenario, &Setting::of(scenario)?)?),
        Backend::Host | Backend::Vm(_) | Backend::Uml(_) => {
            if filesystem(scenario) == Filesystem::Ext3 {
                let message = format!("`{}` makes no disk with ext3", scenario.backend);
                let hint = "leave `filesystem` out, or run it on the simulator".to_owned();
                return Err(ScenarioProblem::Model { message, hint: Some(hint) }.into());
            }
            sysctls(&scenario.sysctls)?;
            if let (Some(swap), Some(mem), Some(machine)) =
                (&scenario.swap, scenario.mem, scenario.backend.guest_machine())
            {
                swap::check(machine, mem, swap)?;
            }
            let simulated = |name: &&String| is_simulated_only(name);
            match scenario.sysctls.keys().find(simulated) {
                Some(name) => {
                    let backend = &scenario.backend;
                    Err(LabError::refused(
                        format!("sysctl `{name}` cannot be set on `{backend}`, only on simulated kernels"),
                        "leave it out, or run it with `--on sim`",
                    ))
                }
                None => Ok(()),
            }
        }
    }
}

/// Whether no run writes it on a real kernel: settings of huge pages, what has an option of its own (`--lru-gen`,
/// `--swap zswap+...`), and the stall on fragmentation, which no kernel was released with.
fn is_simulated_only(sysctl: &str) -> bool {
    let has_file = sysctl.starts_with("vm.") || sysctl == Sysctl::LruGenMinTtlMs.name();
    !has_file || sysctl == Sysctl::FragmentStallOrder.name()
}

/// What a person should know before `scenario` runs: that its result will say little.
pub fn warnings(scenario: &Scenario) -> Vec<String> {
    let machine = match (&scenario.backend, scenario.mem) {
        (Backend::Sim, _) => Setting::of(scenario).ok().map(|setting| setting.machine_size()),
        (_, None) => None,
        (_, Some(mem)) => {
            let Guest { cpus, numa_nodes: nodes, .. } = guest_of(scenario);
            Some(MachineSize { memory: mem.to_pages_floor(), nodes, cpus, disks: 1 })
        }
    };
    machine.map_or_else(Vec::new, |machine| scenario.workload.warnings(machine))
}

#[cfg(test)]
mod tests;
