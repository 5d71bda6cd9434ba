//! Runs that are checked: all of the machine and its memory, as often as is asked for.

use workload::{Outcome, WorkloadError};

use crate::engine::core::Statistics;
use crate::engine::sim::SimKernel;
use crate::engine::simulation::Simulation;
use crate::engine::tracer::SimTrace;
use crate::run::begin::boot_kernel;
use crate::run::checks::{Checks, check_all_along};
use crate::run::going::{Going, MainProgram};
use crate::run::result::{SimError, SimResult};
use crate::run::spec::SimRun;
use crate::run::system::SimSystem;

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
    watch: impl FnMut(&SimKernel) + 'static,
    program: F,
) -> Result<(SimResult, Statistics), SimError>
where
    F: FnOnce(SimSystem) -> Fut + 'static,
    Fut: Future<Output = Result<Outcome, WorkloadError>> + 'static,
{
    verify_boxed(spec, checks, Box::new(watch), Box::new(move |system| Box::pin(program(system))))
}

/// The same for all programs, so that each does not bring a run of its own to compile.
fn verify_boxed(
    spec: &SimRun,
    checks: Checks,
    watch: Box<dyn FnMut(&SimKernel)>,
    program: MainProgram,
) -> Result<(SimResult, Statistics), SimError> {
    let mut simulation = Simulation::new(spec.hardware_under_kernel())?;
    let kernel = boot_kernel(spec, &simulation, SimTrace::default())?;
    let machine = simulation.machine();
    check_all_along(&mut simulation, &kernel, checks, watch);
    let result = Going::begin(spec, simulation, kernel.clone(), None, checks, program).finish()?;
    // A machine that stopped in the middle is not at rest.
    if !result.oom_kills.iter().any(|kill| kill.panicked) {
        kernel.mem(|mem| mem.check_at_rest()).map_err(SimError::Violation)?;
    }
    Ok((result, machine.statistics()))
}
