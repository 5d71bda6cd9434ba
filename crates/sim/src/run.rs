//! Runs a workload on a simulated kernel and machine, from boot to its last task.
//!
//! The result depends on [`SimRun`] alone: same input, same result, on any machine.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use kernel::{Filesystem, Kernel, KernelConfig, Machine, OomKill};
use mm::alloc::boot::BootError;
use mm::base::event::Detail;
use mm::base::layout::MemoryLayout;
use mm::base::sysctl::{Sysctl, Sysctls};
use mm::swap::areas::{AreaKind, AreaSpec};
use mm::{Memory, Violation};
use units::{Bytes, Nanos, Seed};
use workload::scenario::{Swap, SwapArea, SwapDevice};
use workload::{Errno, Outcome, Replay, SystemError, Workload, WorkloadError};

use crate::attribution::Waits;
use crate::device_model::DeviceModel;
use crate::executor::{Progress, RunError, Simulation};
use crate::going::Going;
use crate::handing::{PhaseSample, SampleSink};
use crate::hardware::{Hardware, HardwareError};
use crate::machine::{Sim, SimKernel, SimMemory};
use crate::section::SectionTime;
use crate::state::Statistics;
use crate::system::SimSystem;
use crate::trace::{SimTrace, Sink as EventSink};
use crate::wait::Stall;

/// What runs.
#[derive(Debug, Clone)]
pub enum Program {
    /// A workload of the catalog.
    Workload(Workload),
    /// A recorded trace.
    Replay(Replay),
}

impl Program {
    async fn run(self, system: SimSystem) -> Result<Outcome, WorkloadError> {
        match self {
            Self::Workload(workload) => workload.run(system).await,
            Self::Replay(replay) => replay.run(system).await,
        }
    }
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
    pub(crate) fn hardware_under_kernel(&self) -> Hardware {
        let rules = &self.kernel.rules;
        let mut hardware = Hardware {
            scheduler: Some(rules.scheduler),
            preemption: rules.preemption,
            ..self.hardware.clone()
        };
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
    fn swap_areas(&self) -> Vec<AreaSpec> {
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
    fn sysctls_at_boot(&self) -> Sysctls {
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
            swap: Swap::NONE,
            filesystem: Filesystem::Ext4,
            seed: 1,
            time_limit: TIME_LIMIT,
            sample_period: SAMPLE_PERIOD,
        }
    }
}

/// What a simulated run leaves.
#[derive(Debug, Clone)]
pub struct SimResult {
    /// The workload's own figures; none if it was killed, what it kept if the kernel panicked.
    pub outcome: Outcome,
    /// What the OOM killer took, the first one first; mostly empty. Whether that ended the run or its
    /// workload went on, `outcome` tells; where nobody was left to take, the last one is the panic.
    pub oom_kills: Vec<OomKill>,
    /// `/proc/vmstat` when the program began: what booting and starting its process counted.
    pub vmstat_before: BTreeMap<String, u64>,
    /// `/proc/vmstat` when it had ended: events since boot, gauges as they are.
    pub vmstat: BTreeMap<String, u64>,
    /// `memory.stat` of every cgroup at the end, by path.
    pub memcg: BTreeMap<String, BTreeMap<String, u64>>,
    /// The phases in order.
    pub phases: Vec<PhaseSample>,
    /// Names of the sampled columns.
    pub columns: Vec<String>,
    /// Samples: simulated time and one value for each column.
    pub rows: Vec<(Nanos, Vec<u64>)>,
    /// Who waited for what; waits that are idleness are left out.
    pub stalls: Vec<Stall>,
    /// Every wait, idleness included, by the phase in which it ended: what ended it, and whether
    /// anything could have.
    pub waits: Vec<Waits>,
    /// How long tasks were in which parts of the kernel, by the phase in which they left them.
    pub sections: Vec<SectionTime>,
    /// Events that the simulator handled.
    pub events: u64,
    /// Simulated time when the program ended.
    pub simulated: Nanos,
}

/// Why a simulated run has no result.
#[derive(Debug, thiserror::Error)]
pub enum SimError {
    /// The machine cannot be built.
    #[error(transparent)]
    Hardware(#[from] HardwareError),
    /// The kernel cannot boot in this memory.
    #[error("{0}")]
    Boot(BootError),
    /// The workload failed, and not because the OOM killer took one of its tasks.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// The run was stopped, deadlocked or took too long.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The memory state at the end is inconsistent: a bug of the simulator.
    #[error("{0}")]
    Violation(Violation),
}

impl SimError {
    /// What to do about it, where something can be done.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Hardware(_) => None,
            Self::Boot(_) => Some("give the machine more memory with `--mem`".to_string()),
            Self::Workload(WorkloadError::System(SystemError {
                errno: Errno::NoMem | Errno::Killed,
                ..
            })) => Some("give it more memory with `--mem`, or make it smaller with `--param`".to_string()),
            Self::Workload(_) => None,
            Self::Run(RunError::TimeLimit { .. }) => Some(
                "make the workload smaller with `--param`, or give it more memory with `--mem`".to_string(),
            ),
            Self::Run(_) => None,
            Self::Violation(_) => {
                Some("this is a bug of pagetide: please report it with the scenario and seed".to_string())
            }
        }
    }
}

/// The samples that hold the length of every stall on fragmentation in microseconds, in whole ticks:
/// the tracepoint `mm_fragmentation_stall`.
pub const FRAGMENT_STALL_SAMPLES: &str = "fragment_stall_us";

/// Runs `spec` to its end, or until `stop` is set. `progress` is called every few thousand events.
///
/// # Errors
/// See [`SimError`].
pub fn run(
    spec: &SimRun,
    stop: Arc<AtomicBool>,
    progress: impl FnMut(Progress) + 'static,
) -> Result<SimResult, SimError> {
    run_watched(spec, stop, progress, Watch::default())
}

/// Who is handed what while a run goes. The result is the same for all.
#[derive(Default)]
pub struct Watch {
    /// Samples of all counters, chunk by chunk; the last rows are in the result only.
    pub samples: Option<SampleSink>,
    /// Rows of the events of this detail, from boot to the instant at which the program has ended.
    pub events: Option<(Detail, EventSink)>,
}

/// As [`run`], and hands out what is wanted while it goes.
///
/// # Errors
/// See [`SimError`].
pub fn run_watched(
    spec: &SimRun,
    stop: Arc<AtomicBool>,
    progress: impl FnMut(Progress) + 'static,
    watch: Watch,
) -> Result<SimResult, SimError> {
    let going = begin(spec, stop, Box::new(progress), watch)?;
    let machine = going.simulation.machine();
    let result = going.finish();
    // Where the kernel stopped the machine, no program has.
    end_events(&machine);
    result
}

/// Boots the machine and starts its program. The one place where kernel and programs are compiled for runs.
pub(crate) fn begin(
    spec: &SimRun,
    stop: Arc<AtomicBool>,
    progress: Box<dyn FnMut(Progress)>,
    Watch { samples, events }: Watch,
) -> Result<Going, SimError> {
    let mut simulation = Simulation::new(spec.hardware_under_kernel())?;
    simulation.stop_on(stop);
    simulation.on_progress(progress);
    let machine = simulation.machine();
    let trace = events.map_or_else(SimTrace::default, |(detail, sink)| machine.trace(detail, sink));
    let kernel = boot_kernel(spec, &simulation, trace)?;
    if machine.event_log().is_some() {
        for disk in 0..machine.device_count().max(1) {
            machine.name_mapping(kernel.device_mapping(disk), &device_name(disk));
        }
    }
    let program = spec.program.clone();
    Ok(Going::begin(spec, simulation, kernel, samples, |system| program.run(system)))
}

/// What rows call the block device `disk` as a file.
pub fn device_name(disk: u16) -> String {
    format!("block device {disk}")
}

/// Events from here on are none of the run.
pub(crate) fn end_events(machine: &Sim) {
    if let Some(log) = machine.event_log() {
        log.close();
    }
}

/// When a verified run is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Checks {
    /// After every event.
    EveryEvent,
    /// After each of the first `n` events, then each time that the run has grown by one part in
    /// `n`: long runs are looked at a few times `n` in all.
    Spread(u64),
    /// At the end only.
    AtTheEnd,
}

impl Checks {
    /// The event that the check after this one follows.
    const fn next(self, event: u64) -> u64 {
        match self {
            Self::EveryEvent => event + 1,
            Self::Spread(parts) => event + 1 + (event / parts),
            Self::AtTheEnd => u64::MAX,
        }
    }
}

/// Runs `program` in place of `spec`'s own, and checks all of the machine and its memory when
/// `checks` says and at the end, by when every task of the program must have been joined. Returns
/// the machine's own figures beside the result. The result does not depend on `checks`.
///
/// # Errors
/// See [`SimError`].
///
/// # Panics
/// When an invariant is broken: a bug of the simulator.
pub fn verify<F, Fut>(spec: &SimRun, checks: Checks, program: F) -> Result<(SimResult, Statistics), SimError>
where
    F: FnOnce(SimSystem) -> Fut + 'static,
    Fut: Future<Output = Result<Outcome, WorkloadError>> + 'static,
{
    verify_watched(spec, checks, |_| {}, program)
}

/// As [`verify`], and shows the kernel to `watch` after every event, unless only the end is checked.
/// What it looks for is its own affair: it panics where it does not find it.
///
/// # Errors
/// See [`SimError`].
///
/// # Panics
/// When an invariant is broken: a bug of the simulator.
pub fn verify_watched<F, Fut>(
    spec: &SimRun,
    checks: Checks,
    mut watch: impl FnMut(&SimKernel) + 'static,
    program: F,
) -> Result<(SimResult, Statistics), SimError>
where
    F: FnOnce(SimSystem) -> Fut + 'static,
    Fut: Future<Output = Result<Outcome, WorkloadError>> + 'static,
{
    let mut simulation = Simulation::new(spec.hardware_under_kernel())?;
    let kernel = boot_kernel(spec, &simulation, SimTrace::default())?;
    let machine = simulation.machine();
    if checks != Checks::AtTheEnd {
        let (machine, kernel) = (machine.clone(), kernel.clone());
        let (mut event, mut next_check) = (0, 0);
        simulation.after_every_event(move || {
            watch(&kernel);
            event += 1;
            if event < next_check {
                return;
            }
            next_check = checks.next(event);
            machine.check();
            if let Err(violation) = kernel.mem(|mem| mem.check()) {
                panic!("at {}: {violation}", machine.now());
            }
        });
    }
    let result = Going::begin(spec, simulation, kernel.clone(), None, program).finish()?;
    // A machine that stopped in the middle is not at rest.
    if !result.oom_kills.iter().any(|kill| kill.panicked) {
        kernel.mem(|mem| mem.check_at_rest()).map_err(SimError::Violation)?;
    }
    Ok((result, machine.statistics()))
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

fn boot_kernel(spec: &SimRun, simulation: &Simulation, trace: SimTrace) -> Result<SimKernel, SimError> {
    let config = KernelConfig {
        version: spec.kernel.clone(),
        sysctls: spec.sysctls_at_boot(),
        layout: spec.layout.clone(),
        filesystem: spec.filesystem,
        xfs_log_size: spec.hardware.devices.first().map_or(Bytes(0), |disk| disk.xfs_log),
        gathers: spec.hardware.devices.first().map_or(1, |disk| disk.gathers),
        readahead_pages: spec.readahead_pages,
        seed: Seed(spec.seed),
    };
    let kernel = Kernel::boot(simulation.machine(), config, trace).map_err(SimError::Boot)?;
    spec.swap_areas().into_iter().for_each(|area| kernel.swap_on(area));
    Ok(kernel)
}
