//! Boots a kernel on a machine, and starts a program there.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use kernel::{Kernel, KernelConfig, Machine};
use mm::Memory;
use mm::alloc::boot::BootError;
use mm::base::event::Detail;
use mm::base::layout::MemoryLayout;
use mm::base::sysctl::Sysctls;
use units::{Bytes, Seed};

use crate::engine::sim::{SimKernel, SimMemory};
use crate::engine::simulation::{Progress, Simulation};
use crate::engine::tracer::SimTrace;
use crate::run::checks::{Checks, check_all_along};
use crate::run::going::{Ending, Going};
use crate::run::handing::SampleSink;
use crate::run::result::SimError;
use crate::run::spec::{Program, SimRun};
use crate::run::system::SimSystem;
use crate::trace::log::Sink as EventSink;

impl Program {
    /// What it comes to on a system; boxed, as who awaits it would compile all programs once more.
    pub fn run(self, system: SimSystem) -> Ending {
        match self {
            Self::Workload(workload) => Box::pin(async move { workload.run(system).await }),
            Self::Replay(replay) => Box::pin(async move { replay.run(system).await }),
        }
    }
}

/// Who is handed what while a run goes. The result is the same for all.
#[derive(Default)]
pub struct Watch {
    /// Samples of all counters, chunk by chunk; the last rows are in the result only.
    pub samples: Option<SampleSink>,
    /// Rows of the events of this detail, from boot to the instant at which the program has ended.
    pub events: Option<(Detail, EventSink)>,
    /// When machine and memory are checked; a broken invariant is a panic.
    pub checks: Checks,
    /// Events after which the run is given up.
    pub events_max: Option<u64>,
}

/// Boots the machine and starts its program. The one place where kernel and programs are compiled for runs.
pub(crate) fn begin(
    spec: &SimRun,
    stop: Arc<AtomicBool>,
    progress: Box<dyn FnMut(Progress)>,
    Watch { samples, events, checks, events_max }: Watch,
) -> Result<Going, SimError> {
    let mut simulation = Simulation::new(spec.hardware_under_kernel())?;
    simulation.stop_on(stop);
    simulation.limit_events(events_max.unwrap_or(u64::MAX));
    simulation.on_progress(progress);
    let machine = simulation.machine();
    let trace = events.map_or_else(SimTrace::default, |(detail, sink)| machine.trace(detail, sink));
    let kernel = boot_kernel(spec, &simulation, trace)?;
    check_all_along(&mut simulation, &kernel, checks, |_| {});
    if machine.event_log().is_some() {
        for disk in 0..machine.device_count().max(1) {
            machine.name_mapping(kernel.device_mapping(disk), &device_name(disk));
        }
    }
    let program = spec.program.clone();
    Ok(Going::begin(spec, simulation, kernel, samples, checks, Box::new(|system| program.run(system))))
}

/// What rows call the block device `disk` as a file.
pub fn device_name(disk: u16) -> String {
    format!("block device {disk}")
}

/// Memory as it is when a kernel has booted in it, without a machine.
///
/// # Errors
/// The kernel cannot boot in it.
pub fn boot_memory(
    layout: &MemoryLayout,
    kernel: mm::Version,
    sysctls: Sysctls,
) -> Result<SimMemory, BootError> {
    Memory::boot(layout, kernel, sysctls, SimTrace::default())
}

pub(super) fn boot_kernel(
    spec: &SimRun,
    simulation: &Simulation,
    trace: SimTrace,
) -> Result<SimKernel, SimError> {
    let config = KernelConfig {
        version: spec.kernel.clone(),
        sysctls: spec.sysctls_at_boot(),
        layout: spec.layout.clone(),
        filesystem: spec.filesystem,
        xfs_log_size: spec.hardware.devices.first().map_or(Bytes(0), |disk| disk.xfs_log),
        gathers: spec.hardware.devices.first().map_or(1, |disk| disk.gathers),
        readahead_pages: spec.readahead_pages,
        policy: spec.policy.clone(),
        seed: Seed(spec.seed),
    };
    let kernel = Kernel::boot(simulation.machine(), config, trace).map_err(SimError::Boot)?;
    spec.swap_areas().into_iter().for_each(|area| kernel.swap_on(area));
    Ok(kernel)
}
