//! What of the time on the wall was the program's own: each task is seen when it asks or stops, and freed when it may
//! go on.

use super::Follower;
use crate::clocks::OwnQueue;
use crate::pace::{Arrival, Got};

/// Tasks whose clocks are read at a tick.
const ASKED_MAX: usize = 256;

impl Follower {
    /// A task has stopped, or has asked; `ours` is the queue of the thread that sees it.
    pub(crate) fn seen(&mut self, tid: i32, got: Got, stopped: bool, ours: &mut OwnQueue) {
        let Some(task) = self.tasks.get_mut(&tid) else { return };
        let slept = std::mem::take(&mut task.sleeps);
        let arrival =
            Arrival { at_ns: self.pace.wall_at(got.at), backlog_ns: got.backlog_ns, stopped, slept };
        let (clock, line) = (&mut task.clock, &mut task.line);
        let ran = clock.ran_ns();
        self.pace.seen(line, arrival, ran, || clock.asleep(ours));
        // Pages came by the work of any of its tasks: whoever thinks first pays.
        if let Some(process) = self.processes.get_mut(&task.process).filter(|process| process.owed_ns > 0) {
            let thought = line.take();
            let paid = thought.min(process.owed_ns);
            process.owed_ns -= paid;
            line.give_back(thought - paid);
        }
    }

    /// By the clock: how many tasks are at work. Of very many some are asked, and stand for all.
    pub(crate) fn tick(&mut self) {
        for task in self.tasks.values_mut().take(ASKED_MAX) {
            let ran = task.clock.ran_ns();
            self.pace.ran(&mut task.line, ran);
        }
        self.pace.tick(self.tasks.len());
    }

    /// A task goes on.
    pub(crate) fn freed(&mut self, tid: i32) {
        let now = self.pace.wall_ns();
        if let Some(task) = self.tasks.get_mut(&tid) {
            task.line.freed(now);
        }
    }

    /// A process has another task: its own clock tells of all of them.
    pub(super) fn not_alone(&mut self, pid: i32) {
        if let Some(first) = self.tasks.get_mut(&pid) {
            first.clock.not_alone();
        }
    }
}
