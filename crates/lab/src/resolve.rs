//! Texts to a resolved scenario, and a scenario back to the command that runs it.
//!
//! A [`Request`] is what a person gives: a workload or a scenario file, and what shall differ
//! from its defaults. All names and values are checked here, before anything runs.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use mm::feature::Kernel;
use mm::sysctl::{Sysctl, Sysctls};
use sim::machines::{self, GUEST, MACHINES, MachineSpec};
use units::{Bytes, Seed};
use workload::params::split_pair;
use workload::scenario::{Guest, LruGen, SEED_DEFAULT, parse_mem, parse_sysctl_value};
use workload::{Backend, KernelSpec, Params, Scenario, WorkloadSpec};

use crate::error::LabError;
use crate::experiment::Experiment;
use crate::names::Names;

/// What a request is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// A workload by name.
    Workload(String),
    /// A scenario file.
    File(PathBuf),
}

impl Subject {
    /// A scenario file if it is called so (`*.toml`), a workload otherwise.
    pub fn of_argument(argument: &str) -> Self {
        let path = Path::new(argument);
        if path.extension() == Some(OsStr::new("toml")) {
            Self::File(path.to_owned())
        } else {
            Self::Workload(argument.to_owned())
        }
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
    /// Parameters of the workload, each `name=value`.
    pub params: Vec<String>,
    /// Sysctls, each `name=value`.
    pub sysctls: Vec<String>,
    /// The seed.
    pub seed: Option<u64>,
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
}

impl GuestRequest {
    /// The option of the command line that was given, the first of several.
    pub fn given(&self) -> Option<&'static str> {
        let given = [
            ("--vm-cpus", self.cpus.is_some()),
            ("--vm-nodes", self.numa_nodes.is_some()),
            ("--lru-gen", self.lru_gen.is_some()),
        ];
        given.into_iter().find_map(|(option, given)| given.then_some(option))
    }

    fn apply_to(&self, mut guest: Guest) -> Result<Guest, LabError> {
        guest.cpus = self.cpus.unwrap_or(guest.cpus);
        guest.numa_nodes = self.numa_nodes.unwrap_or(guest.numa_nodes);
        if let Some(lru_gen) = &self.lru_gen {
            guest.lru_gen = lru_gen.parse::<LruGen>()?;
        }
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
            params: Vec::new(),
            sysctls: Vec::new(),
            seed: None,
            backend: None,
            guest: GuestRequest::default(),
        }
    }

    /// The scenario that was asked for, with every name and value checked.
    ///
    /// # Errors
    /// The first name or value that cannot be used.
    pub fn resolve(&self) -> Result<Scenario, LabError> {
        let names = Names::default();
        let mut scenario = match &self.subject {
            Subject::Workload(name) => defaults(name, &names)?,
            Subject::File(path) => read_file(path, &names)?,
        };
        self.apply_to(&mut scenario, &names)?;
        check(&scenario)?;
        Ok(scenario)
    }

    fn apply_to(&self, scenario: &mut Scenario, names: &Names) -> Result<(), LabError> {
        let vocabulary = names.vocabulary();
        if !self.params.is_empty() {
            let spec = WorkloadSpec::find(scenario.workload.name())?;
            let mut params: Params = scenario.workload.params().clone();
            for pair in &self.params {
                let (name, value) = split_pair(pair)?;
                params.set(name, value)?;
            }
            scenario.workload = spec.build(params)?;
        }
        if let Some(kernel) = &self.kernel {
            scenario.kernel = vocabulary.kernel(kernel)?;
        }
        if let Some(machine) = &self.machine {
            scenario.machine = vocabulary.machine(machine)?;
            scenario.mem = machine_spec(machine).default_mem;
        }
        if let Some(mem) = &self.mem {
            scenario.mem = parse_mem(mem)?;
        }
        scenario.sysctls.extend(sysctl_pairs(&self.sysctls, names)?);
        if let Some(seed) = self.seed {
            scenario.seed = Seed(seed);
        }
        if let Some(backend) = &self.backend {
            scenario.backend = backend.parse()?;
            let has_own = matches!(self.subject, Subject::File(_));
            if matches!(scenario.backend, Backend::Vm(_)) && !has_own {
                if self.machine.is_none() {
                    scenario.machine = GUEST.to_owned();
                }
                if self.mem.is_none() {
                    scenario.mem = machine_spec(GUEST).default_mem;
                }
            }
        }
        self.apply_guest_to(scenario)
    }

    /// A guest's scenario says all of it, any other nothing. A file's own `[vm]` may go with a
    /// backend that the request names instead of the file's.
    fn apply_guest_to(&self, scenario: &mut Scenario) -> Result<(), LabError> {
        if matches!(scenario.backend, Backend::Vm(_)) {
            scenario.guest = Some(self.guest.apply_to(scenario.guest.unwrap_or_default())?);
            return Ok(());
        }
        if let Some(option) = self.guest.given() {
            return Err(LabError::NoGuest { what: option, backend: scenario.backend.to_string() });
        }
        if scenario.guest.take().is_some() && self.backend.is_none() {
            return Err(LabError::NoGuest { what: "[vm]", backend: scenario.backend.to_string() });
        }
        Ok(())
    }
}

/// Reads `name=value` texts; of two values for one sysctl the later counts.
pub(crate) fn sysctl_pairs(texts: &[String], names: &Names) -> Result<BTreeMap<String, String>, LabError> {
    let pair = |text: &String| {
        let (name, value) = split_pair(text).map_err(|_| LabError::SysctlNotAPair(text.clone()))?;
        let name = names.vocabulary().sysctl(name)?;
        let value = parse_sysctl_value(&name, value)?;
        Ok((name, value))
    };
    texts.iter().map(pair).collect()
}

/// The kernel when none is named: the newest.
pub(crate) fn newest_kernel() -> &'static str {
    Kernel::presets().last().expect("there are kernels").0
}

fn read_file(path: &Path, names: &Names) -> Result<Scenario, LabError> {
    let text = std::fs::read_to_string(path)
        .map_err(|source| LabError::Unreadable { path: path.to_owned(), source })?;
    Scenario::read(&text, &names.vocabulary())
        .map_err(|source| LabError::File { path: path.to_owned(), source: Box::new(source) })
}

/// The workload in its source's setting, or on the first machine where it has none; on the newest
/// kernel.
fn defaults(name: &str, names: &Names) -> Result<Scenario, LabError> {
    let spec = WorkloadSpec::find(name)?;
    let (machine, mem) = default_machine(spec.name);
    Ok(Scenario {
        workload: spec.build(spec.defaults())?,
        kernel: names.vocabulary().kernel(newest_kernel())?,
        machine: machine.to_owned(),
        mem,
        sysctls: Default::default(),
        seed: SEED_DEFAULT,
        backend: Backend::Sim,
        guest: None,
    })
}

fn default_machine(workload: &str) -> (&'static str, Bytes) {
    match Experiment::of(workload) {
        Some(experiment) => (experiment.machine, experiment.mem),
        None => {
            let first = MACHINES.first().expect("there are machines");
            (first.name, first.default_mem)
        }
    }
}

pub(crate) fn machine_spec(name: &str) -> &'static MachineSpec {
    MachineSpec::find(name).expect("the name was checked")
}

/// What only shows when all values are known: sysctls in range, a machine that can be built.
fn check(scenario: &Scenario) -> Result<(), LabError> {
    Setting::of(scenario).map(drop)
}

/// The kernel and the machine of a run, as the simulator takes them.
#[derive(Debug, Clone)]
pub(crate) struct Setting {
    pub(crate) kernel: Kernel,
    pub(crate) sysctls: Sysctls,
    pub(crate) hardware: sim::Hardware,
    pub(crate) layout: mm::zone::MemoryLayout,
    /// What is assumed where nobody measured.
    pub(crate) notes: Vec<String>,
}

impl Setting {
    /// The setting of a scenario.
    pub(crate) fn of(scenario: &Scenario) -> Result<Self, LabError> {
        Self::new(&scenario.kernel, &scenario.machine, scenario.mem, &scenario.sysctls)
    }

    /// The setting that these names and values make.
    ///
    /// # Errors
    /// A sysctl out of range, or a machine that cannot be built.
    pub(crate) fn new(
        kernel: &KernelSpec,
        machine: &str,
        mem: Bytes,
        pairs: &BTreeMap<String, String>,
    ) -> Result<Self, LabError> {
        let kernel = Kernel::parse(&kernel.to_string()).expect("the vocabulary comes from the same table");
        let mut sysctls = Sysctls::default();
        for (name, value) in pairs {
            let sysctl = Sysctl::parse(name)?;
            sysctls.set(sysctl, sysctl.parse_value(value)?);
        }
        let (hardware, layout) = machines::build(machine, mem, &kernel)
            .map_err(|error| LabError::Machine { message: error.to_string(), hint: Some(error.hint()) })?;
        let notes = machine_spec(machine).assumed(&kernel).into_iter().collect();
        Ok(Self { kernel, sysctls, hardware, layout, notes })
    }
}

/// The command that runs `scenario`, with all that differs from the workload's defaults.
pub fn command(scenario: &Scenario) -> String {
    let mut command = format!("pagetide run {} --kernel {}", scenario.workload.name(), scenario.kernel);
    let mut add = |option: &str, value: &str| {
        command.push_str(&format!(" --{option} {}", shell_quoted(value)));
    };
    let (machine, mem) = match &scenario.backend {
        Backend::Vm(_) => (GUEST, machine_spec(GUEST).default_mem),
        _ => default_machine(scenario.workload.name()),
    };
    if scenario.machine != machine {
        add("machine", &scenario.machine);
    }
    let implied = if scenario.machine == machine { mem } else { machine_spec(&scenario.machine).default_mem };
    if scenario.mem != implied {
        add("mem", &scenario.mem.to_string());
    }
    let spec = WorkloadSpec::find(scenario.workload.name()).expect("the workload was made from it");
    let defaults = spec.defaults();
    for (name, value) in scenario.workload.params().iter() {
        if defaults.get(name) != Some(value) {
            add("param", &format!("{name}={value}"));
        }
    }
    for (name, value) in &scenario.sysctls {
        add("set", &format!("{name}={value}"));
    }
    if scenario.backend != Backend::Sim {
        add("on", &scenario.backend.to_string());
    }
    if let Some(guest) = &scenario.guest {
        let default = Guest::default();
        if guest.cpus != default.cpus {
            add("vm-cpus", &guest.cpus.to_string());
        }
        if guest.numa_nodes != default.numa_nodes {
            add("vm-nodes", &guest.numa_nodes.to_string());
        }
        if guest.lru_gen != default.lru_gen {
            add("lru-gen", &guest.lru_gen.to_string());
        }
    }
    if scenario.seed != SEED_DEFAULT {
        add("seed", &scenario.seed.0.to_string());
    }
    command
}

pub(crate) fn shell_quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=.,:+/%".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}
