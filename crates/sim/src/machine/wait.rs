//! Wait queues, timeouts, and the end of every wait.
//!
//! A task joins a queue before its debt passes and sleeps after it, so a wake-up in between finds
//! it and it does not sleep at all. The timeout runs from the moment it sleeps, and so does the
//! wait that is attributed: CPU work and waiting for a CPU are no part of it.
//!
//! Every sleep has a label, and what is known of it goes to `accounts/waits.rs` when it is over.

use kernel::machine::{QueueId, Woken};

use crate::accounts::waits::{self, Finished};
use crate::machine::state::{State, WaitQueue};
use crate::machine::task::{NONE, Place};
use crate::trace::log::What;

impl State {
    pub(crate) fn new_queue(&mut self) -> QueueId {
        let id = u32::try_from(self.queues.len()).expect("fewer than 2^32 wait queues");
        self.queues.push(WaitQueue { first: NONE, last: NONE });
        QueueId(id)
    }

    /// Appends a task to a queue.
    pub(crate) fn join(&mut self, queue: QueueId, index: u32) {
        let waiters = &mut self.queues[queue.0 as usize];
        let last = std::mem::replace(&mut waiters.last, index);
        match last {
            NONE => waiters.first = index,
            last => self.tasks[last as usize].behind = index,
        }
        let task = &mut self.tasks[index as usize];
        assert!(task.queue == NONE, "a task waits on two queues");
        (task.queue, task.before, task.behind) = (queue.0, last, NONE);
    }

    /// Takes a task out of the queue it is in.
    fn leave(&mut self, index: u32) {
        let task = &mut self.tasks[index as usize];
        let (queue, before, behind) = (task.queue, task.before, task.behind);
        (task.queue, task.before, task.behind) = (NONE, NONE, NONE);
        match before {
            NONE => self.queues[queue as usize].first = behind,
            before => self.tasks[before as usize].behind = behind,
        }
        match behind {
            NONE => self.queues[queue as usize].last = before,
            behind => self.tasks[behind as usize].before = before,
        }
    }

    /// Wakes every waiter of a queue, first come first; returns how many there were.
    pub(crate) fn wake_all(&mut self, now: u64, queue: QueueId) -> usize {
        let mut woken = 0;
        loop {
            let first = self.queues[queue.0 as usize].first;
            if first == NONE {
                return woken;
            }
            self.leave(first);
            self.wake(now, first, Woken::Signalled);
            woken += 1;
        }
    }

    pub(crate) fn has_waiters(&self, queue: QueueId) -> bool {
        self.queues[queue.0 as usize].first != NONE
    }

    /// A timer that is not stale fires: its task's wait is over.
    pub(crate) fn timer_fires(&mut self, now: u64, index: u32) {
        let task = &mut self.tasks[index as usize];
        assert!(task.place == Place::Blocked && task.timer_armed, "a live timer belongs to a sleeper");
        task.timer_armed = false;
        if task.queue != NONE {
            self.leave(index);
        }
        self.wake(now, index, Woken::TimedOut);
    }

    /// Ends the wait of a task that is in no queue any more. It may not sleep yet, when its debt
    /// has still to pass; then it never will.
    fn wake(&mut self, now: u64, index: u32, how: Woken) {
        let task = &mut self.tasks[index as usize];
        task.woken = Some(how);
        if task.place != Place::Blocked {
            return;
        }
        task.generation = task.generation.wrapping_add(1);
        task.inside.note_wait();
        if std::mem::take(&mut task.timer_armed) {
            self.agenda.note_stale();
        }
        let finished = Finished {
            reason: task.reason,
            within: task.inside.within,
            ended: how.into(),
            timeout: task.timeout,
            spent: now - task.since,
            no_write: task.writes_before == Some(self.writes_sent),
        };
        if let Some(log) = &self.log {
            log.push(now, index, What::wait(finished));
        }
        waits::note(&mut self.records[index as usize].waits, finished);
        self.make_ready(now, index, true);
    }
}
