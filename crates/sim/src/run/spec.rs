//! What a run depends on, and nothing else: the same input gives the same result, on any machine.

use kernel::Filesystem;
use mm::base::layout::MemoryLayout;
use mm::base::sysctl::{Sysctl, Sysctls};
use mm::lru::cache_ext::hooks::EvictionPolicy;
use mm::swap::areas::{AreaKind, AreaSpec};
use mm::version::rules::Preemption;
use units::Nanos;
use workload::scenario::{Swap, SwapArea, SwapDevice};
use workload::{Replay, Workload};

use crate::hardware::Hardware;
use crate::hardware::device::DeviceModel;

/// What runs.
#[derive(Debug, Clone)]
pub enum Program {
    /// A workload of the catalog.
    Workload(Workload),
    /// A recorded trace.
    Replay(Replay),
}

/// Everything that a simulated run depends on.
#[derive(Debug, Clone)]
pub struct SimRun {
    /// What runs.
    pub program: Program,
    /// The kernel's version and features.
    pub kernel: mm::Version,
    /// Its tunables.
    pub sysctls: Sysctls,
    /// CPUs, costs, devices.
    pub hardware: Hardware,
    /// Nodes and zones.
    pub layout: MemoryLayout,
    /// What file pages are evicted by instead of the kernel's own lists.
    pub policy: Option<Box<dyn EvictionPolicy>>,
    /// What it swaps to.
    pub swap: Swap,
    /// Of the data disk.
    pub filesystem: Filesystem,
    /// Readahead window in pages.
    pub readahead_pages: u32,
    /// From which all randomness of the run follows.
    pub seed: u64,
    /// Simulated time after which a run is given up.
    pub time_limit: Nanos,
    /// Between two samples of all counters.
    pub sample_period: Nanos,
}

/// Simulated time after which a run counts as stuck: a day, more than any source's run took.
const TIME_LIMIT: Nanos = Nanos::from_secs(24 * 60 * 60);
/// Simulated time between two samples of all counters.
const SAMPLE_PERIOD: Nanos = Nanos::from_millis(100);

impl SimRun {
    /// The hardware, its CPUs shared as the kernel does.
    pub(super) fn hardware_under_kernel(&self) -> Hardware {
        let rules = &self.kernel.rules;
        let mut hardware = Hardware {
            scheduler: Some(rules.scheduler),
            preemption: self.hardware.build.preemption.map_or(rules.preemption, |_| Preemption::Voluntary),
            ..self.hardware.clone()
        };
        if let Program::Workload(workload) = &self.program
            && let (Some(bytes), Some(cost)) = (workload.file_bytes(), hardware.workload_file)
        {
            hardware.build.run += cost.of_reading(bytes);
            hardware.build.process = cost.process;
        }
        hardware.devices.extend(std::iter::repeat_n(self.swap_disk(), usize::from(self.swap_disks())));
        hardware
    }

    /// Each swap disk is of the kind that files are on.
    fn swap_disk(&self) -> DeviceModel {
        self.hardware.devices.first().cloned().unwrap_or(DeviceModel::VIRTIO_RAM)
    }

    /// Disks that hold swap; they come behind those for files.
    fn swap_disks(&self) -> u16 {
        let on_disk = self.swap.areas.iter().filter(|area| area.device == SwapDevice::Disk);
        u16::try_from(on_disk.count()).expect("few areas")
    }

    /// The areas as the kernel takes them, in the order of `swapon`.
    pub(super) fn swap_areas(&self) -> Vec<AreaSpec> {
        let mut device = u16::try_from(self.hardware.devices.len()).expect("few disks");
        let mut area = |area: &SwapArea| {
            let kind = match area.device {
                SwapDevice::Zram => AreaKind::Zram,
                SwapDevice::Disk => {
                    device += 1;
                    AreaKind::Disk { device: device - 1, rotating: self.swap_disk().turns() }
                }
            };
            AreaSpec { kind, pages: area.slots(), priority: area.priority }
        };
        self.swap.areas.iter().map(&mut area).collect()
    }

    /// What is set at boot: zswap, too, if there is some in front of the areas.
    pub(super) fn sysctls_at_boot(&self) -> Sysctls {
        let mut sysctls = self.sysctls.clone();
        if let Some(zswap) = self.swap.zswap {
            sysctls.set(Sysctl::ZswapEnabled, 1);
            if let Some(percent) = zswap.max_pool_percent {
                sysctls.set(Sysctl::ZswapMaxPoolPercent, u64::from(percent));
            }
        }
        sysctls
    }

    /// `program` on `kernel` and this machine, with seed 1 and everything else as it is when
    /// nobody says more.
    pub fn new(program: Program, kernel: mm::Version, hardware: Hardware, layout: MemoryLayout) -> Self {
        Self {
            program,
            kernel,
            sysctls: Sysctls::default(),
            readahead_pages: hardware.readahead_pages,
            hardware,
            layout,
            policy: None,
            swap: Swap::NONE,
            filesystem: Filesystem::Ext4,
            seed: 1,
            time_limit: TIME_LIMIT,
            sample_period: SAMPLE_PERIOD,
        }
    }
}
