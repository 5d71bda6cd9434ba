//! How often all of a machine and its memory is looked at while a run goes.
//!
//! A check takes time in proportion to memory and tasks, so runs say how many they can wait for. Left out: what is
//! checked, see `machine/check.rs` and `check.rs` of `mm`.

use kernel::Machine;

use crate::engine::sim::SimKernel;
use crate::engine::simulation::Simulation;

/// When a run is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Checks {
    /// After every event.
    EveryEvent,
    /// After each of the first `n` events, then each time that the run has grown by one part in
    /// `n`: long runs are looked at a few times `n` in all.
    Spread(u64),
    /// At the end only.
    AtTheEnd,
    /// At the end, and of so many pages only that it takes no time beside the run.
    #[default]
    Sample,
}

impl Checks {
    /// The event that the check after this one follows.
    const fn next(self, event: u64) -> u64 {
        match self {
            Self::EveryEvent => event + 1,
            Self::Spread(parts) => event + 1 + (event / parts),
            Self::AtTheEnd | Self::Sample => u64::MAX,
        }
    }
}

/// Has everything checked when `checks` says, and shows the kernel to `watch` after every event, unless only the end
/// is checked. A broken invariant is a panic.
pub(super) fn check_all_along(
    simulation: &mut Simulation,
    kernel: &SimKernel,
    checks: Checks,
    mut watch: impl FnMut(&SimKernel) + 'static,
) {
    if matches!(checks, Checks::AtTheEnd | Checks::Sample) {
        return;
    }
    let (machine, kernel) = (simulation.machine(), kernel.clone());
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
        if kernel.mem(|mem| mem.has_swap_writes()) {
            panic!("at {}: whoever reclaimed pages left their writes to swap with nobody", machine.now());
        }
    });
}
