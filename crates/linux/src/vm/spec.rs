//! What is asked of a run in a guest, and what it leaves.

use std::path::PathBuf;
use std::time::Duration;

use units::{Bytes, Seed};
use workload::scenario::{LruGen, Swap, SwapDevice};

use super::image::VmFilesystem;
use super::kernels::VmKernel;
use super::qemu::{Accelerator, Hardware};
use crate::bounds::{DEFAULT_SHARE, DiskShare};
use crate::spec::LinuxResult;

/// How a guest runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    /// In a virtual machine of QEMU's.
    Qemu,
    /// As a program: User-Mode Linux.
    UserMode,
}

/// A virtual machine and how long it may take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VmSpec {
    /// How it runs.
    pub engine: Engine,
    /// What it boots.
    pub kernel: VmKernel,
    /// Memory, CPUs, nodes.
    pub hardware: Hardware,
    /// What is on the data disk.
    pub filesystem: VmFilesystem,
    /// Size of the data disk, or of all together; only what is written takes room on the host.
    pub disk: Bytes,
    /// What of the free disk of this host that may be.
    pub share: DiskShare,
    /// Readahead of the data disk in KiB.
    pub read_ahead_kib: u32,
    /// What the workload's random draws come from.
    pub seed: Seed,
    /// Sysctls to set before the run, by name and value.
    pub sysctls: Vec<(String, String)>,
    /// The multi-gen LRU. The reference measurements have it off.
    pub lru_gen: LruGen,
    /// What it swaps to. The reference measurements without `swap` in their names have nothing.
    pub swap: Swap,
    /// `memory.max` of the workload's root cgroup.
    pub limit: Option<Bytes>,
    /// Time between samples of the counters.
    pub sample_period: Duration,
    /// What runs the CPUs of QEMU's guest; `None` tries KVM and falls back to emulation.
    pub accelerator: Option<Accelerator>,
    /// How long the whole may take.
    pub timeout: Duration,
    /// How long the guest may say nothing.
    pub quiet_timeout: Duration,
    /// The program to run as init: one whose `main` calls [`super::guest::become_init_in_a_guest`].
    /// `None` is the running program.
    pub program: Option<PathBuf>,
}

impl VmSpec {
    /// A guest as in the reference measurements: 512 MiB, 2 CPUs, ext4 on 32 GiB, readahead of
    /// 128 KiB, two-list LRU, a sample each second. User-Mode Linux has one CPU.
    pub fn new(engine: Engine, kernel: VmKernel) -> Self {
        let cpus = if engine == Engine::Qemu { 2 } else { 1 };
        Self {
            engine,
            kernel,
            hardware: Hardware { mem: Bytes(512 << 20), cpus, numa_nodes: 1 },
            filesystem: VmFilesystem::Ext4,
            disk: Bytes(32 << 30),
            share: DEFAULT_SHARE,
            read_ahead_kib: 128,
            seed: Seed(1),
            sysctls: Vec::new(),
            lru_gen: LruGen::OFF,
            swap: Swap::NONE,
            limit: None,
            sample_period: Duration::from_secs(1),
            accelerator: None,
            timeout: Duration::from_secs(3600),
            quiet_timeout: Duration::from_secs(120),
            program: None,
        }
    }

    /// Compressed memory that it swaps to.
    pub(super) fn zram(&self) -> Bytes {
        self.swap.size_on(SwapDevice::Zram)
    }

    /// Disks that it swaps to.
    pub(super) fn swap_disks(&self) -> impl Iterator<Item = Bytes> {
        self.swap.areas.iter().filter(|area| area.device == SwapDevice::Disk).map(|area| area.size)
    }
}

/// What a run in a guest leaves.
#[derive(Debug, Clone, PartialEq)]
pub struct VmRun {
    /// As if the workload had run here; `notes` say what was special about the machine.
    pub result: LinuxResult,
    /// What ran the CPUs of QEMU's guest.
    pub accelerator: Option<Accelerator>,
    /// From the start until the guest's program ran.
    pub boot: Duration,
    /// From the start until the end.
    pub total: Duration,
}
