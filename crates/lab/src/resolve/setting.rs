//! What a run is made on, as the simulator takes it: the kernel, its sysctls, the machine.
//!
//! Names and values of a [`Scenario`] were checked before; here they become what they stand for. Next: `request.rs`,
//! from texts to a scenario; `simulate.rs`, which runs it.

use std::collections::BTreeMap;

use bpf::Object;
use cache_ext::PolicyInfo;
use kernel::Filesystem;
use mm::base::sysctl::{Sysctl, Sysctls};
use mm::lru::cache_ext::hooks::EvictionPolicy;
use mm::version::presets::Version;
use sim::machines::{self, MachineSpec};
use units::{Bytes, Seed};
use workload::scenario::Swap;
use workload::{KernelSpec, MachineSize, Scenario};

use crate::error::LabError;
use crate::resolve::kernel_name;
use crate::resolve::lacks;
use crate::resolve::policy_object;
use crate::resolve::swap;

/// What evicts file pages instead of a kernel's own lists.
#[derive(Debug, Clone)]
pub(crate) enum Policy {
    /// One of those that have names.
    Named(&'static PolicyInfo),
    /// An object of eBPF.
    Object(Box<Object>),
}

impl Policy {
    /// The pattern of a run's policies.
    pub(crate) fn make(self, seed: Seed) -> Box<dyn EvictionPolicy> {
        match self {
            Self::Named(info) => (info.make)(),
            Self::Object(object) => object.policy(seed),
        }
    }
}

/// The kernel and the machine of a run, as the simulator takes them.
#[derive(Debug, Clone)]
pub(crate) struct Setting {
    pub(crate) kernel: Version,
    /// What its file pages are evicted by instead of its own lists.
    pub(crate) policy: Option<Policy>,
    pub(crate) sysctls: Sysctls,
    pub(crate) hardware: sim::Hardware,
    pub(crate) layout: mm::base::layout::MemoryLayout,
    /// What it swaps to.
    pub(crate) swap: Swap,
    /// What is assumed where nobody measured.
    pub(crate) notes: Vec<String>,
}

impl Setting {
    /// The setting of a scenario that is simulated.
    pub(crate) fn of(scenario: &Scenario) -> Result<Self, LabError> {
        let Scenario { kernel, machine, mem, sysctls, .. } = scenario;
        let (Some(kernel), Some(machine), Some(mem)) = (kernel, machine, *mem) else {
            panic!("a scenario for the simulator without a kernel or a machine: {scenario:?}");
        };
        let swap = scenario.swap.clone().unwrap_or_default();
        let mut setting = Self::new(kernel, machine, mem, sysctls)?.with_swap(machine, mem, swap)?;
        lacks::check_workload(&setting.kernel, &scenario.workload)?;
        lacks::check_huge_advice(&setting.layout, scenario)?;
        let filesystem = filesystem(scenario);
        setting.notes.extend(lacks::assumed_of_workload(&setting.kernel, &scenario.workload, filesystem));
        setting.notes.extend(scenario.workload.remarks(setting.machine_size()));
        Ok(setting)
    }

    pub(crate) fn machine_size(&self) -> MachineSize {
        let count = |len: usize| u16::try_from(len).expect("a machine has few of them");
        MachineSize {
            memory: self.layout.memory(),
            nodes: count(self.layout.nodes.len()),
            cpus: self.hardware.cpus,
            disks: count(self.hardware.devices.len()),
        }
    }

    /// The setting that these names and values make.
    ///
    /// # Errors
    /// A sysctl out of range or that the kernel does not have, or a machine that cannot be built.
    pub(crate) fn new(
        kernel: &KernelSpec,
        machine: &str,
        mem: Bytes,
        pairs: &BTreeMap<String, String>,
    ) -> Result<Self, LabError> {
        let sysctls = sysctls(pairs)?;
        kernel_name::check_lists(kernel, &sysctls)?;
        let object = policy_object::object_of(kernel)?;
        let of_object = object.as_ref().map(Object::assumed).unwrap_or_default();
        let named = kernel_name::policy_of(kernel).map(Policy::Named);
        let (kernel, policy) = (
            kernel_name::version_of(kernel),
            object.map(|object| Policy::Object(Box::new(object))).or(named),
        );
        lacks::check_sysctls(&kernel, pairs)?;
        let (hardware, layout) = machines::build(machine, mem, &kernel)?;
        let spec = MachineSpec::parse(machine).expect("it was just built");
        let mut notes: Vec<String> = spec.assumed(&kernel).into_iter().collect();
        notes.extend(of_object);
        notes.extend(lacks::assumed_of_machine(&kernel, &layout));
        notes.extend(lacks::idle_features(&kernel, &hardware, &layout));
        Ok(Self { kernel, policy, sysctls, hardware, layout, swap: Swap::NONE, notes })
    }

    /// The same setting with something to swap to.
    ///
    /// # Errors
    /// More than the machine has room for.
    pub(crate) fn with_swap(mut self, machine: &str, mem: Bytes, swap: Swap) -> Result<Self, LabError> {
        swap::check(machine, mem, &swap)?;
        lacks::check_zswap(&self.kernel, &swap)?;
        self.notes.extend(swap::assumed(&swap));
        self.swap = swap;
        Ok(self)
    }
}

/// The filesystem that the workload asks for; the machine's own when it does not.
pub(crate) fn filesystem(scenario: &Scenario) -> Filesystem {
    let asked = match scenario.workload.params().get("filesystem") {
        Some(workload::ParamValue::Choice(name)) => Filesystem::by_name(name),
        _ => None,
    };
    let own = || scenario.machine.as_deref().map_or(Filesystem::Ext4, |name| machine_spec(name).filesystem);
    asked.unwrap_or_else(own)
}

pub(crate) fn machine_spec(name: &str) -> &'static MachineSpec {
    MachineSpec::find(name).expect("the name was checked")
}

/// Values by their names.
///
/// # Errors
/// An unknown name, a value that cannot be.
pub(crate) fn sysctls(pairs: &BTreeMap<String, String>) -> Result<Sysctls, LabError> {
    let mut sysctls = Sysctls::default();
    for (name, value) in pairs {
        let sysctl = Sysctl::parse(name)?;
        sysctls.set(sysctl, sysctl.parse_value(value)?);
    }
    Ok(sysctls)
}
