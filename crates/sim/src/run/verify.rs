//! Runs that are checked: all of the machine and its memory, as often as is asked for.

use kernel::Machine;
use workload::{Outcome, WorkloadError};

use crate::engine::core::Statistics;
use crate::engine::sim::SimKernel;
use crate::engine::simulation::Simulation;
use crate::engine::tracer::SimTrace;
use crate::run::begin::boot_kernel;
use crate::run::going::Going;
use crate::run::result::{SimError, SimResult};
use crate::run::spec::SimRun;
use crate::run::system::SimSystem;

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
