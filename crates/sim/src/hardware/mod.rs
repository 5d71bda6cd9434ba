//! The description of a machine: what [`crate::Simulation::new`] boots.
//!
//! Left out: memory and NUMA nodes, which belong to the kernel's description.

pub mod cost;
pub mod device;

use kernel::machine::{KernelBuild, ProcessCost, RunCost};
use mm::version::rules::{Preemption, Scheduler};
use units::Nanos;

use crate::hardware::cost::CostTable;
use crate::hardware::device::{DeviceModel, Speed};

/// Linux's default readahead window: 128 KiB (`read_ahead_kb`).
const READAHEAD_PAGES: u32 = 32;

/// CPUs, their costs, and block devices.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hardware {
    /// Number of CPUs; at least 1.
    pub cpus: u16,
    /// Without a scheduler: how long a task runs before another that waits for its CPU has its turn.
    pub slice: Nanos,
    /// How the kernel there shares CPUs among tasks; none: they take turns of a slice.
    pub scheduler: Option<Scheduler>,
    /// That kernel's clock goes on at ticks alone, as its scheduler has it.
    pub clock_of_ticks: bool,
    /// When a task that is to give way does so inside that kernel.
    pub preemption: Preemption,
    /// Ticks per second of kernels built for this machine (`CONFIG_HZ`): the grain of every timeout.
    pub hz: u64,
    /// How its kernel is built and started.
    pub build: KernelBuild,
    /// What differs there where the workload is a file; none: nothing.
    pub workload_file: Option<FileCost>,
    /// CPU time for each operation.
    pub costs: CostTable,
    /// Block devices; a request names one by its index here.
    pub devices: Vec<DeviceModel>,
    /// Readahead window of each device in pages (`read_ahead_kb` / 4).
    pub readahead_pages: u32,
    /// Bytes per second of the host adapter that all devices share, if it can be the bottleneck.
    pub host_bandwidth: Option<u64>,
}

/// What a workload that is a file costs, which each of its processes interprets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileCost {
    /// More than another run: reading it.
    pub run: RunCost,
    /// Faults of that for each KiB of it, beside those.
    pub faults_per_kib: u32,
    /// Each of its processes.
    pub process: ProcessCost,
}

impl FileCost {
    /// What a file of so many bytes costs the run that reads it.
    pub(crate) fn of_reading(self, bytes: usize) -> RunCost {
        let kib = u32::try_from(bytes.div_ceil(1024)).unwrap_or(u32::MAX);
        let faults = self.run.faults.saturating_add(kib.saturating_mul(self.faults_per_kib));
        RunCost { faults, ..self.run }
    }
}

impl Hardware {
    /// A machine with the default costs and slice, and no device.
    pub fn with_cpus(cpus: u16) -> Self {
        Self {
            cpus,
            slice: Nanos::from_millis(3),
            scheduler: None,
            clock_of_ticks: false,
            preemption: Preemption::Voluntary,
            hz: kernel::time::HZ,
            build: KernelBuild::default(),
            workload_file: None,
            costs: CostTable::default(),
            devices: Vec::new(),
            readahead_pages: READAHEAD_PAGES,
            host_bandwidth: None,
        }
    }

    /// The same machine with one more device.
    #[must_use]
    pub fn with_device(mut self, model: DeviceModel) -> Self {
        self.devices.push(model);
        self
    }

    /// Whether the machine can be built.
    ///
    /// # Errors
    /// The first part that makes no sense.
    pub fn validate(&self) -> Result<(), HardwareError> {
        if self.cpus == 0 {
            return Err(HardwareError::NoCpu);
        }
        if self.slice == Nanos::ZERO {
            return Err(HardwareError::NoSlice);
        }
        if self.hz == 0 || !1_000_000_000_u64.is_multiple_of(self.hz) {
            return Err(HardwareError::NoTick(self.hz));
        }
        if self.host_bandwidth == Some(0) {
            return Err(HardwareError::Stuck { part: "host adapter", what: "bandwidth" });
        }
        for model in &self.devices {
            let stuck = |what| Err(HardwareError::Stuck { part: model.name, what });
            let speeds = [model.read, model.write, model.slowest_write()];
            if speeds.iter().any(|Speed { bandwidth, .. }| *bandwidth == 0) {
                return stuck("bandwidth");
            }
            if model.depth == 0 {
                return stuck("depth");
            }
        }
        Ok(())
    }
}

/// Why a machine cannot be built.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HardwareError {
    /// It has no CPU.
    #[error("a machine needs at least one CPU")]
    NoCpu,
    /// Its time slice is zero.
    #[error("the time slice must be longer than 0 ns")]
    NoSlice,
    /// A tick of it is no whole number of nanoseconds.
    #[error("{0} ticks a second are none that a kernel is built with")]
    NoTick(u64),
    /// A device or the host adapter could never complete a request.
    #[error("`{part}` can never complete a request: its {what} is 0")]
    Stuck {
        /// The device's model, or the host adapter.
        part: &'static str,
        /// The figure that is zero.
        what: &'static str,
    },
}
