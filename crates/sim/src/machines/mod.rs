//! The machines that runs can name: their hardware, and the memory that a kernel manages on them.
//!
//! A machine is the same at every size of memory: its name alone says what it is. [`MACHINES`] has
//! one line for each, with where its figures come from; [`build`] makes it. Next: `guest.rs` for the
//! virtual machine that the model is held against, `server.rs` for the machines of source 4.
//!
//! `vm-2cpu` is the machine of source 2, of which only `MemTotal` is known: what a run gives as
//! its memory is what the kernel manages. Left out: what its boot keeps.

mod guest;
mod server;

use mm::base::layout::MemoryLayout;
use mm::version::presets::Version;
use units::Bytes;
pub use workload::scenario::{MEM_MAX, MEM_MIN};

use crate::device_model::DeviceModel;
use crate::hardware::Hardware;

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
    /// Its disk.
    pub disk: &'static DeviceModel,
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
}

impl MachineError {
    /// What to write instead.
    pub fn hint(&self) -> String {
        match self {
            Self::Unknown(_) => "`pagetide list machines` shows the names".to_string(),
            Self::Memory { least, .. } => format!("give a size from {least} to {MEM_MAX}"),
        }
    }
}

/// The machine that stands for a virtual machine of QEMU's.
pub const GUEST: &str = workload::scenario::GUEST_MACHINE;

/// Every machine; the first is the one when nobody says.
pub const MACHINES: &[MachineSpec] = &[
    MachineSpec {
        name: "vm-2cpu",
        help: "a virtual machine on fast hardware; its memory is what the kernel manages",
        nodes: 1,
        cpus: 2,
        default_mem: Bytes(1_016_336 << 10),
        least_mem: MEM_MIN,
        cpu_percent: 100,
        disk: &DeviceModel::VIRTIO_RAM,
        source: "source 2; zones follow from MemTotal",
    },
    MachineSpec {
        name: GUEST,
        help: "a guest of QEMU without KVM, as `--on vm:VERSION` makes it",
        nodes: 1,
        cpus: 2,
        default_mem: Bytes(512 << 20),
        least_mem: guest::LEAST_MEM,
        cpu_percent: guest::CPU_PERCENT,
        disk: &DeviceModel::VIRTIO_RAM,
        source: "measured: guests of 5.10, 6.1 and 6.12 (docs/fidelity.md)",
    },
    MachineSpec {
        name: "skylake-1s",
        help: "one socket of 2017",
        nodes: 1,
        cpus: 8,
        default_mem: Bytes(32 << 30),
        least_mem: MEM_MIN,
        cpu_percent: 100,
        disk: &DeviceModel::SATA_HDD,
        source: "source 4; zones in proportion to memory",
    },
    MachineSpec {
        name: "haswell-2s",
        help: "two sockets of 2014",
        nodes: 2,
        cpus: 48,
        default_mem: Bytes(64 << 30),
        least_mem: MEM_MIN,
        cpu_percent: 100,
        disk: &DeviceModel::SATA_HDD,
        source: "source 4; zones in proportion to memory",
    },
];

impl MachineSpec {
    /// The machine of that name.
    pub fn find(name: &str) -> Option<&'static Self> {
        MACHINES.iter().find(|spec| spec.name == name)
    }

    /// What is assumed where `kernel` on this machine was not measured: a sentence for whoever
    /// reads the results.
    pub fn assumed(&self, kernel: &Version) -> Option<String> {
        if self.name == GUEST { guest::assumed(kernel) } else { None }
    }

    fn hardware(&self) -> Hardware {
        let mut hardware = Hardware::with_cpus(self.cpus).with_device(self.disk.clone());
        hardware.costs = hardware.costs.scale_percent(self.cpu_percent);
        hardware
    }
}

/// The zones and the hardware of machine `name` with `mem` of memory under `kernel`.
///
/// # Errors
/// An unknown name, or a size that cannot work.
pub fn build(name: &str, mem: Bytes, kernel: &Version) -> Result<(Hardware, MemoryLayout), MachineError> {
    let spec = MachineSpec::find(name).ok_or_else(|| MachineError::Unknown(name.to_string()))?;
    if mem < spec.least_mem || mem > MEM_MAX {
        return Err(MachineError::Memory { mem, machine: spec.name, least: spec.least_mem });
    }
    let mut hardware = spec.hardware();
    let layout = match spec.name {
        "vm-2cpu" => MemoryLayout::flat(mem.to_pages_floor(), spec.cpus),
        GUEST => {
            guest::set_costs(&mut hardware.costs);
            guest::layout(mem, kernel, spec.cpus)
        }
        "skylake-1s" | "haswell-2s" => server::layout(mem, spec.cpus, spec.nodes),
        other => unreachable!("machine {other} is listed but not built"),
    };
    Ok((hardware, layout))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As `vm-2cpu` was: with exactly 256M, 512M or 1G under 6.1 or 6.12 another machine, 43 times
    /// as slow and with zones of its own.
    #[test]
    fn memory_of_exactly_a_power_of_two_is_no_other_machine() {
        const MIB: u64 = 1 << 20;
        for kernel in Version::presets().map(|(name, _)| Version::parse(name).unwrap()) {
            for spec in MACHINES {
                for size in [256 * MIB, 512 * MIB, 1024 * MIB, 2048 * MIB] {
                    let at = |mem| build(spec.name, Bytes(mem), &kernel).unwrap();
                    let [(before, least), (there, exact), (behind, most)] =
                        [size - MIB, size, size + MIB].map(at);
                    let what = format!("{} with {} under {}", spec.name, Bytes(size), kernel.name);
                    assert!(before == there && there == behind, "{what}: the hardware differs");
                    // A section of memory has its struct pages at once: two pageblocks.
                    let near = |one: &MemoryLayout, other: &MemoryLayout| {
                        one.managed().0.abs_diff(other.managed().0) <= 512
                    };
                    assert!(near(&least, &exact) && near(&exact, &most), "{what}: the zones differ");
                    assert_eq!(exact.nodes.len(), usize::from(spec.nodes), "{what}");
                }
            }
        }
    }

    #[test]
    fn a_machine_is_what_the_list_says_of_it() {
        let kernel = Version::parse("linux-6.12").unwrap();
        for spec in MACHINES {
            let (hardware, layout) = build(spec.name, spec.default_mem, &kernel).unwrap();
            assert_eq!((hardware.cpus, layout.cpus), (spec.cpus, spec.cpus), "{}", spec.name);
            assert_eq!(layout.nodes.len(), usize::from(spec.nodes), "{}", spec.name);
            assert_eq!(hardware.devices, std::slice::from_ref(spec.disk), "{}", spec.name);
            let cost = |hardware: &Hardware| hardware.costs.wakeup_latency().0;
            let percent = cost(&hardware) * 100 / cost(&Hardware::with_cpus(1));
            assert_eq!(percent, u64::from(spec.cpu_percent), "{}", spec.name);
        }
    }

    #[test]
    fn memory_of_the_first_machine_is_what_the_kernel_manages() {
        for kernel in ["linux-5.4", "linux-6.12"].map(|name| Version::parse(name).unwrap()) {
            for mem in [1_016_336 << 10, 512 << 20] {
                let (_, layout) = build("vm-2cpu", Bytes(mem), &kernel).unwrap();
                assert_eq!(layout.managed().to_bytes(), Bytes(mem));
            }
        }
    }

    #[test]
    fn sizes_out_of_range_are_errors() {
        let kernel = Version::parse("linux-5.4").unwrap();
        for mem in [Bytes(0), Bytes(1 << 20), Bytes(1 << 50)] {
            let refused = MachineError::Memory { mem, machine: "vm-2cpu", least: MEM_MIN };
            assert_eq!(build("vm-2cpu", mem, &kernel), Err(refused));
        }
        let error = build(GUEST, Bytes(64 << 20), &kernel).unwrap_err();
        assert_eq!(error.to_string(), "64M of memory is out of range for machine `guest-tcg`");
        assert_eq!(error.hint(), "give a size from 128M to 1T");
        for spec in MACHINES {
            assert!(build(spec.name, spec.least_mem, &kernel).is_ok(), "{}", spec.name);
            assert!(build(spec.name, MEM_MAX, &kernel).is_ok(), "{}", spec.name);
        }
    }
}
