//! The machines that runs can name: their hardware, and the memory that a kernel manages on them.
//!
//! A machine is the same at every size of memory, but for the zones, the fast cells of a disk and the log of
//! XFS that a smaller one has in proportion: its name alone says what it is. [`MACHINES`] has
//! one line for each, with where its figures come from; [`build`] makes it. Next: `guest.rs` and `uml.rs` for the
//! guests that the model is held against, `server.rs` for the machines of sources 0, 3 and 4, `s390.rs`
//! for that of source 1; `change.rs` for what a run may change of one.
//!
//! `vm-2cpu` is the machine of source 2, of which only `MemTotal` is known: what a run gives as
//! its memory is what the kernel manages. Left out: what its boot keeps.

mod change;
mod guest;
mod measured;
mod s390;
mod server;
mod spec;
mod uml;

use kernel::fs::Filesystem;
use mm::base::layout::{MemoryLayout, OldReads};
use mm::version::presets::Version;
pub use server::SERVER;
pub use spec::{MachineError, MachineSpec};
use units::Bytes;
pub use workload::scenario::{MEM_MAX, MEM_MIN};

use crate::hardware::Hardware;
use crate::hardware::cost::CostTable;
use crate::hardware::device::DeviceModel;
use change::Change;

/// The machine that stands for a virtual machine of QEMU's.
pub const GUEST: &str = workload::scenario::GUEST_MACHINE;
/// The machine that stands for a guest of User-Mode Linux.
pub const UML: &str = workload::scenario::UML_MACHINE;
/// The machine of source 0.
const EVO: &str = "evo-ssd";
/// The machine of source 3.
const QUAD: &str = "quad-node-16g";
/// The machine of source 1.
const S390: &str = "s390-fcp";

/// What most have in common.
const PLAIN: MachineSpec = MachineSpec {
    costs: CostTable::DEFAULT,
    name: "",
    help: "",
    nodes: 1,
    cpus: 1,
    default_mem: MEM_MIN,
    least_mem: MEM_MIN,
    cpu_percent: 100,
    hz: kernel::time::HZ,
    disk: DeviceModel::VIRTIO_RAM,
    disks: 1,
    rotational: true,
    readahead: None,
    filesystem: Filesystem::Ext4,
    host_bandwidth: None,
    protection_keys: false,
    source: "",
};

/// Every machine; the first is the one when nobody says.
pub const MACHINES: &[MachineSpec] = &[
    MachineSpec {
        name: "vm-2cpu",
        help: "a virtual machine on fast hardware; its memory is what the kernel manages",
        cpus: 2,
        default_mem: Bytes(1_016_336 << 10),
        source: "source 2; zones follow from MemTotal",
        ..PLAIN
    },
    MachineSpec {
        name: GUEST,
        help: "a guest of QEMU without KVM, as `--on vm:VERSION` makes it",
        cpus: 2,
        default_mem: Bytes(512 << 20),
        least_mem: guest::LEAST_MEM,
        cpu_percent: guest::CPU_PERCENT,
        readahead: Some(guest::READAHEAD),
        source: "measured: guests of 5.10, 6.1, 6.12 and 7.2 (docs/fidelity.md)",
        ..PLAIN
    },
    MachineSpec {
        name: UML,
        help: "a guest of User-Mode Linux, as `--on uml:VERSION` makes it",
        default_mem: Bytes(512 << 20),
        least_mem: uml::LEAST_MEM,
        costs: uml::COSTS,
        hz: uml::HZ,
        disk: DeviceModel::UBD,
        readahead: Some(guest::READAHEAD),
        source: "measured: guests of 5.10, 6.1, 6.12 and 7.2 (docs/uml.md)",
        ..PLAIN
    },
    MachineSpec {
        name: SERVER,
        help: "any x86-64 server: nodes, CPUs, disk and costs as a machine file says",
        cpus: 8,
        default_mem: Bytes(16 << 30),
        disk: DeviceModel::NVME,
        rotational: false,
        source: "zones by the rule of x86-64; costs of a core of 2018",
        ..PLAIN
    },
    MachineSpec {
        name: "skylake-1s",
        help: "one socket of 2017",
        cpus: 8,
        default_mem: Bytes(32 << 30),
        disk: DeviceModel::SATA_HDD,
        source: "source 4; zones in proportion to memory",
        ..PLAIN
    },
    MachineSpec {
        name: "haswell-2s",
        help: "two sockets of 2014",
        nodes: 2,
        cpus: 48,
        default_mem: Bytes(64 << 30),
        disk: DeviceModel::SATA_HDD,
        source: "source 4; zones in proportion to memory",
        ..PLAIN
    },
    MachineSpec {
        name: EVO,
        help: "one socket of 2019 with a SATA SSD that writes fast until its fast cells are full",
        cpus: 8,
        default_mem: Bytes(16 << 30),
        disk: DeviceModel::SATA_EVO,
        rotational: false,
        filesystem: Filesystem::Xfs,
        source: "source 0; memory is inferred, CPUs are assumed",
        ..PLAIN
    },
    MachineSpec {
        name: QUAD,
        help: "a virtual machine of 2020 with memory in four nodes and XFS on two striped SATA SSDs",
        nodes: server::QUAD_NODES,
        cpus: 16,
        default_mem: Bytes(16 << 30),
        disk: DeviceModel::SATA_STRIPE,
        rotational: false,
        filesystem: Filesystem::Xfs,
        source: "source 3: nodes, CPUs and memory; its disk and log are assumed",
        ..PLAIN
    },
    MachineSpec {
        name: S390,
        help: "a guest of 2010 with 16 disks of a storage controller; one zone",
        cpus: 4,
        default_mem: Bytes(256 << 20),
        least_mem: s390::LEAST_MEM,
        cpu_percent: 200,
        hz: 100,
        disk: DeviceModel::S390_FCP_2010,
        disks: 16,
        readahead: Some(Bytes(512 << 10)),
        filesystem: Filesystem::Ext3,
        host_bandwidth: Some(1_400_000_000),
        source: "source 1; CPUs, disks and what is kept are assumed",
        ..PLAIN
    },
];

impl MachineSpec {
    /// The machine that `text` names, without the changes behind its name.
    pub fn find(text: &str) -> Option<&'static Self> {
        let name = text.split_once('+').map_or(text, |(name, _)| name);
        MACHINES.iter().find(|spec| spec.name == name)
    }

    /// The machine that `text` describes: a name, and changes as in `s390-fcp+cpus=16+segment=2us`.
    ///
    /// # Errors
    /// An unknown name or change, a value that makes no sense, one thing changed twice.
    pub fn parse(text: &str) -> Result<Self, MachineError> {
        let mut parts = text.split('+');
        let name = parts.next().unwrap_or_default();
        let mut spec = Self::find(name).ok_or_else(|| MachineError::Unknown(name.to_string()))?.clone();
        let mut changed = Vec::new();
        for part in parts {
            let change = Change::apply(part, &mut spec)?;
            if changed.contains(&change) {
                return Err(MachineError::Twice(change));
            }
            changed.push(change);
        }
        Ok(spec)
    }

    /// What is assumed where `kernel` on this machine was not measured: a sentence for whoever
    /// reads the results.
    pub fn assumed(&self, kernel: &Version) -> Option<String> {
        match self.name {
            GUEST => guest::assumed(kernel),
            UML => uml::assumed(kernel),
            S390 => Some(s390::assumed(self.cpus)),
            EVO => Some(server::assumed_of_evo()),
            QUAD => Some(server::assumed_of_quad()),
            _ => None,
        }
    }
}

/// The zones and the hardware of the machine that `text` describes with `mem` of memory under `kernel`.
///
/// # Errors
/// What [`MachineSpec::parse`] reports, or a size that cannot work.
pub fn build(text: &str, mem: Bytes, kernel: &Version) -> Result<(Hardware, MemoryLayout), MachineError> {
    let spec = MachineSpec::parse(text)?;
    if mem < spec.least_mem || mem > MEM_MAX {
        return Err(MachineError::Memory { mem, machine: spec.name, least: spec.least_mem });
    }
    let mut hardware = spec.hardware(kernel);
    let layout = match spec.name {
        "vm-2cpu" => MemoryLayout::flat(mem.to_pages_floor(), spec.cpus),
        GUEST => {
            guest::set_costs(&mut hardware.costs, &spec.costs);
            guest::layout(mem, kernel, spec.cpus)
        }
        UML => {
            uml::follow(&mut hardware, kernel, OldReads::on_a_host(spec.protection_keys));
            uml::layout(mem, kernel, spec.cpus)
        }
        S390 => s390::layout(mem, spec.cpus),
        SERVER => server::by_rule(mem, spec.cpus, spec.nodes),
        "skylake-1s" | "haswell-2s" => server::layout(mem, spec.cpus, spec.nodes, server::SKYLAKE_NODE),
        QUAD => {
            // A log that somebody asks for is what they get.
            if !text.split('+').any(|change| change.starts_with("log=")) {
                hardware
                    .devices
                    .iter_mut()
                    .for_each(|disk| disk.xfs_log = server::quad_log(mem, disk.xfs_log));
            }
            server::layout(mem, spec.cpus, spec.nodes, server::QUAD_NODE)
        }
        EVO => {
            for burst in hardware.devices.iter_mut().filter_map(|disk| disk.burst.as_mut()) {
                burst.cells = server::burst(mem, burst.cells);
            }
            server::layout(mem, spec.cpus, spec.nodes, server::EVO_NODE)
        }
        other => unreachable!("machine {other} is listed but not built"),
    };
    Ok((hardware, layout))
}

#[cfg(test)]
mod tests {
    use units::Nanos;

    use super::*;

    /// Both guests had costs of their own, and what a machine file said of them was lost.
    #[test]
    fn costs_that_somebody_sets_go_before_those_of_guests() {
        let kernel = Version::parse("linux-6.12").unwrap();
        for machine in ["guest-uml", "guest-tcg"] {
            let cost = |text: &str, name: &str| {
                let (hardware, _) = build(text, Bytes(512 << 20), &kernel).unwrap();
                hardware.costs.names().find(|(other, _)| *other == name).unwrap().1
            };
            let changed = format!("{machine}+costs=file_create:77us,scan_page:3us");
            let percent = u64::from(MachineSpec::find(machine).unwrap().cpu_percent);
            for (name, nanos) in [("file_create", 77_000), ("scan_page", 3_000)] {
                assert_eq!(cost(&changed, name), Nanos(nanos * percent / 100), "{name} of {machine}");
            }
            assert_eq!(cost(&changed, "minor_fault"), cost(machine, "minor_fault"));
        }
    }

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
                    let [before, there, behind] = [before, there, behind].map(without_cells);
                    assert!(before == there && there == behind, "{what}: the hardware differs");
                    // A section of memory has its struct pages at once: two pageblocks.
                    let near = |one: &MemoryLayout, other: &MemoryLayout| {
                        one.memory().0.abs_diff(other.memory().0) <= 512
                    };
                    assert!(near(&least, &exact) && near(&exact, &most), "{what}: the zones differ");
                    assert_eq!(exact.nodes.len(), usize::from(spec.nodes), "{what}");
                }
            }
        }
    }

    /// Fast cells and logs are in proportion to memory.
    fn without_cells(mut hardware: Hardware) -> Hardware {
        for burst in hardware.devices.iter_mut().filter_map(|disk| disk.burst.as_mut()) {
            burst.cells = Bytes(0);
        }
        hardware.devices.iter_mut().for_each(|disk| disk.xfs_log = Bytes(0));
        hardware
    }

    /// `guest-uml+cpus=2` had two CPUs above a kernel for one, which panicked.
    #[test]
    fn one_cpu_more_is_one_for_the_kernel_too() {
        let kernel = Version::parse("linux-6.12").unwrap();
        for spec in MACHINES {
            let name = format!("{}+cpus={}", spec.name, spec.cpus + 1);
            let (hardware, layout) = build(&name, spec.default_mem, &kernel).unwrap();
            assert_eq!((hardware.cpus, layout.cpus), (spec.cpus + 1, spec.cpus + 1), "{name}");
        }
    }

    #[test]
    fn a_machine_is_what_the_list_says_of_it() {
        let kernel = Version::parse("linux-6.12").unwrap();
        for spec in MACHINES {
            let (hardware, layout) = build(spec.name, spec.default_mem, &kernel).unwrap();
            assert_eq!((hardware.cpus, layout.cpus), (spec.cpus, spec.cpus), "{}", spec.name);
            assert_eq!(layout.nodes.len(), usize::from(spec.nodes), "{}", spec.name);
            // How much is sent off at once to that of User-Mode Linux depends on its kernel.
            let disk = DeviceModel { gathers: hardware.devices[0].gathers, ..spec.disk.clone() };
            assert_eq!(hardware.devices, vec![disk; usize::from(spec.disks)], "{}", spec.name);
            let cost = |hardware: &Hardware| hardware.costs.wakeup_latency().0;
            let percent = cost(&hardware) * 100 / cost(&Hardware::with_cpus(1));
            assert_eq!(percent, u64::from(spec.cpu_percent), "{}", spec.name);
        }
    }

    #[test]
    fn a_log_that_is_asked_for_is_not_scaled() {
        let kernel = Version::parse("linux-5.7").unwrap();
        let log = |text| build(text, Bytes(1 << 30), &kernel).unwrap().0.devices[0].xfs_log;
        assert_eq!((log("quad-node-16g"), log("quad-node-16g+log=2G")), (Bytes(128 << 20), Bytes(2 << 30)));
    }

    #[test]
    fn memory_of_the_first_machine_is_what_the_kernel_manages() {
        for kernel in ["linux-5.4", "linux-6.12"].map(|name| Version::parse(name).unwrap()) {
            for mem in [1_016_336 << 10, 512 << 20] {
                let (_, layout) = build("vm-2cpu", Bytes(mem), &kernel).unwrap();
                assert_eq!(layout.memory().to_bytes(), Bytes(mem));
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
