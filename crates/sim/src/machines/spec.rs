//! A machine as it is described, and why one cannot be had.

use kernel::fs::Filesystem;
use mm::version::presets::Version;
use mm::version::rules::DefaultReadahead;
use units::Bytes;
use workload::scenario::MEM_MAX;

use crate::hardware::Hardware;
use crate::hardware::cost::CostTable;
use crate::hardware::device::DeviceModel;

/// The readahead of disks for which nobody says one (`VM_READAHEAD_PAGES`).
const DEFAULT_READAHEAD: Bytes = Bytes(128 << 10);
/// Twice the largest request, 4 MiB.
const ROTATIONAL_READAHEAD: Bytes = Bytes(8 << 20);

/// A machine by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MachineSpec {
    /// The name on the command line.
    pub name: &'static str,
    /// One line for lists.
    pub help: &'static str,
    /// NUMA nodes.
    pub nodes: u16,
    /// CPUs, shared out evenly to the nodes.
    pub cpus: u16,
    /// Memory unless said otherwise.
    pub default_mem: Bytes,
    /// The least memory that it can have.
    pub least_mem: Bytes,
    /// CPU time of an operation, in percent of what the cost table has for it.
    pub cpu_percent: u32,
    /// Ticks per second of its kernels.
    pub hz: u64,
    /// Its disk, or each of several.
    pub disk: DeviceModel,
    /// How many disks it has, at least 1.
    pub disks: u16,
    /// It rotates, or counts as a disk that does, as one of virtio's.
    pub rotational: bool,
    /// Readahead window of each; none: what the kernel makes of such a disk.
    pub readahead: Option<Bytes>,
    /// What its disks have where the workload does not say.
    pub filesystem: Filesystem,
    /// Bytes per second of the host adapter that they share, if it can be the bottleneck.
    pub host_bandwidth: Option<u64>,
    /// Costs of operations on a core at 100 percent.
    pub costs: CostTable,
    /// Whether its host's CPU has protection keys, where programs of a guest are programs of the host.
    pub protection_keys: bool,
    /// Where these figures come from.
    pub source: &'static str,
}

/// Why a machine cannot be had.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MachineError {
    /// No machine has this name.
    #[error("unknown machine `{0}`")]
    Unknown(String),
    /// Not enough memory to boot, or more than frame numbers reach.
    #[error("{mem} of memory is out of range for machine `{machine}`")]
    Memory {
        /// As asked for.
        mem: Bytes,
        /// The machine.
        machine: &'static str,
        /// The least that it can have.
        least: Bytes,
    },
    /// Machines have no such thing to change.
    #[error("machines have no `{change}` to change")]
    UnknownChange {
        /// As it is called behind the machine's name.
        change: String,
        /// What can be changed, for the hint.
        known: String,
    },
    /// Something of the machine cannot be so.
    #[error("`{change}` of a machine cannot be `{value}`")]
    Value {
        /// What would be changed.
        change: &'static str,
        /// As asked for.
        value: String,
        /// What makes sense.
        takes: &'static str,
    },
    /// One thing is changed twice.
    #[error("`{0}` of a machine is changed twice")]
    Twice(&'static str),
}

impl MachineError {
    /// What to write instead.
    pub fn hint(&self) -> String {
        match self {
            Self::Unknown(_) => "`pagetide list machines` shows the names".to_string(),
            Self::Memory { least, .. } => format!("give a size from {least} to {MEM_MAX}"),
            Self::UnknownChange { known, .. } => format!("it is one of {known}, as in `s390-fcp+cpus=16`"),
            Self::Value { takes, .. } => format!("it takes {takes}"),
            Self::Twice(_) => "leave one of them out".to_string(),
        }
    }
}

impl MachineSpec {
    /// The readahead window of its disks under `kernel`.
    fn readahead_under(&self, kernel: &Version) -> Bytes {
        self.readahead.unwrap_or(match kernel.rules.default_readahead {
            DefaultReadahead::Rotational if self.rotational => ROTATIONAL_READAHEAD,
            DefaultReadahead::Rotational | DefaultReadahead::Fixed => DEFAULT_READAHEAD,
        })
    }

    /// What it has under `kernel`.
    pub(super) fn hardware(&self, kernel: &Version) -> Hardware {
        let mut hardware = Hardware::with_cpus(self.cpus);
        hardware.devices = vec![self.disk.clone(); usize::from(self.disks)];
        hardware.costs = self.costs.clone().scale_percent(self.cpu_percent);
        hardware.hz = self.hz;
        let readahead = self.readahead_under(kernel).to_pages_floor();
        hardware.readahead_pages = u32::try_from(readahead.0).expect("64 MiB at most");
        hardware.host_bandwidth = self.host_bandwidth;
        hardware
    }
}
