//! CPU time that a program has used, as `times(2)` tells it: its own, and that of tasks that it has joined.
//!
//! Left out: what its calls cost the kernel, which the machine counts; see `engine/core.rs`.

use std::cell::Cell;
use std::rc::Rc;

use kernel::machine::TaskId;
use units::Nanos;
use workload::system::CpuTime;

use crate::engine::sim::Sim;

/// CPU time of a program and of those of its tasks that were joined.
pub(super) struct Worked {
    task: TaskId,
    user: Cell<Nanos>,
    joined: Cell<CpuTime>,
}

impl Worked {
    pub(super) fn of(task: TaskId) -> Rc<Self> {
        Rc::new(Self { task, user: Cell::new(Nanos::ZERO), joined: Cell::default() })
    }

    /// What it and its joined tasks have used.
    pub(super) fn sum(&self, machine: &Sim) -> CpuTime {
        let (joined, user) = (self.joined.get(), self.user.get());
        let system = machine.cpu_time(self.task).saturating_sub(user);
        CpuTime { user: joined.user + user, system: joined.system + system }
    }

    /// It works for so long outside of the kernel.
    pub(super) fn work(&self, machine: &Sim, length: Nanos) {
        machine.works_for(length);
        self.user.set(self.user.get() + length);
    }

    pub(super) fn join(&self, other: CpuTime) {
        let CpuTime { user, system } = self.joined.get();
        self.joined.set(CpuTime { user: user + other.user, system: system + other.system });
    }
}
