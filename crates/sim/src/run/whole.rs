//! Runs a workload on a simulated kernel and machine, from boot to its last task.
//!
//! The result depends on [`SimRun`] alone: same input, same result, on any machine.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::engine::simulation::Progress;
use crate::run::begin::{Watch, begin};
use crate::run::result::{SimError, SimResult};
use crate::run::spec::SimRun;

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
    machine.end_events();
    result
}
