//! The invariants of the machine, which hold between two events.
//!
//! 1. A queued task is in exactly one run queue, that of its CPU; a task on a CPU is the current
//!    one of exactly that CPU; others are in no run queue and on no CPU.
//! 2. A CPU is in the idle set exactly when it has no task, and then nobody waits for it.
//! 3. While a CPU is idle, no task that may move waits for another: the machine conserves work.
//! 4. A CPU with a task has exactly one event to come, an idle one none. A segment is no longer
//!    than its task's debt and what is left of the slice, which is never zero.
//! 5. The links of a wait queue agree in both directions with what its tasks say.
//! 6. A sleeper with a timeout has exactly one live timer; all other timers are counted as stale.
//! 7. Every request that a device has begun has exactly one completion to come; a disk begins one at a time of
//!    those in its places, and does not rest while it has any.
//! 8. A task has its program until that has ended; it may have debt left to pass then.
//! 9. Groups of tasks count what their tasks are: ready, waiting for I/O, stalled on memory.

use crate::event::Class;
use crate::machine::state::{State, is_live};
use crate::machine::task::{NONE, Place, Then};

impl State {
    /// Panics when an invariant does not hold.
    pub(crate) fn check(&self) {
        self.check_places();
        self.check_cpus();
        self.check_wait_queues();
        self.check_events();
        self.check_pressure();
    }

    fn check_places(&self) {
        let mut homes = vec![0; self.tasks.len()];
        for (number, cpu) in (0_u16..).zip(&self.cpus) {
            for &index in &cpu.queue {
                let task = &self.tasks[index as usize];
                assert!(task.place == Place::Queued && task.cpu == number, "task {index} queued elsewhere");
                homes[index as usize] += 1;
            }
            if cpu.current != NONE {
                let task = &self.tasks[cpu.current as usize];
                assert!(task.place == Place::OnCpu && task.cpu == number, "cpu{number} runs a stranger");
                homes[cpu.current as usize] += 1;
            }
        }
        for (index, (task, homes)) in self.tasks.iter().zip(homes).enumerate() {
            let on_a_cpu = matches!(task.place, Place::Queued | Place::OnCpu);
            assert!(homes == usize::from(on_a_cpu), "task {index} is in {homes} places");
            assert!(
                task.program.is_none() == (task.place == Place::Done || task.then == Then::End),
                "task {index} and its program"
            );
        }
    }

    fn check_cpus(&self) {
        let movable = |&&index: &&u32| !self.tasks[index as usize].pinned;
        let queued_movable = self.cpus.iter().flat_map(|cpu| &cpu.queue).filter(movable).count();
        assert!(self.queued_movable == queued_movable, "the count of movable tasks is off");
        assert!(queued_movable == 0 || self.idle.lowest().is_none(), "a CPU idles while tasks wait");
        for (number, cpu) in (0_u16..).zip(&self.cpus) {
            let idle = cpu.current == NONE;
            assert!(self.idle.contains(number) == idle, "cpu{number} and the idle set");
            assert!(!idle || cpu.queue.is_empty(), "cpu{number} idles beside its queue");
            assert!(
                (1..=self.slice).contains(&cpu.slice_left),
                "cpu{number} has a slice of {}",
                cpu.slice_left
            );
            if !idle && !cpu.switching {
                let debt = self.tasks[cpu.current as usize].debt;
                assert!(
                    (1..=debt.min(cpu.slice_left)).contains(&cpu.segment),
                    "cpu{number} has a wrong segment"
                );
            }
        }
    }

    fn check_wait_queues(&self) {
        let mut linked = 0;
        for (number, queue) in (0_u32..).zip(&self.queues) {
            let (mut before, mut index) = (NONE, queue.first);
            while index != NONE {
                let task = &self.tasks[index as usize];
                assert!(task.queue == number && task.before == before, "task {index} in queue {number}");
                linked += 1;
                (before, index) = (index, task.behind);
            }
            assert!(queue.last == before, "queue {number} ends elsewhere");
        }
        let waiting = self.tasks.iter().filter(|task| task.queue != NONE).count();
        assert!(waiting == linked, "{waiting} tasks say that they wait, {linked} are linked");
    }

    fn check_events(&self) {
        let mut cpus = vec![0; self.cpus.len()];
        let mut timers = vec![0; self.tasks.len()];
        let mut completions = vec![0; self.devices.len()];
        let mut stale = 0;
        for entry in self.agenda.entries() {
            let target = entry.target() as usize;
            match entry.class() {
                Class::CpuSegment => cpus[target] += 1,
                Class::DeviceDone => completions[target] += 1,
                Class::Timer if is_live(&self.tasks, entry) => timers[target] += 1,
                Class::Timer => stale += 1,
            }
        }
        for (number, (cpu, events)) in self.cpus.iter().zip(cpus).enumerate() {
            assert!(events == usize::from(cpu.current != NONE), "cpu{number} has {events} events");
        }
        for (index, (task, timers)) in self.tasks.iter().zip(timers).enumerate() {
            assert!(timers == usize::from(task.timer_armed), "task {index} has {timers} timers");
            assert!(!task.timer_armed || task.place == Place::Blocked, "task {index} is awake with a timer");
        }
        for (number, (device, events)) in self.devices.iter().zip(completions).enumerate() {
            assert!(events == device.requests_begun(), "device {number} has {events} events");
        }
        assert!(self.agenda.stale() == stale, "{stale} timers are stale");
    }
}
