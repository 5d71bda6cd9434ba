//! Wait queues, timeouts, and the attribution of stalls.
//!
//! A task joins a queue before its debt passes and sleeps after it, so a wake-up in between finds
//! it and it does not sleep at all. The timeout runs from the moment it sleeps, and so does the
//! wait that is attributed: CPU work and waiting for a CPU are no part of it.
//!
//! Every sleep has a label, and what is known of it goes to `attribution.rs` when it is over;
//! [`Stall`]s are its sums by task and label.

use std::collections::BTreeMap;

use kernel::machine::{QueueId, TaskId, WaitReason, Woken};
use units::{CpuId, Nanos};

use crate::attribution::{Finished, Waits};
use crate::event::Class;
use crate::state::State;
use crate::task::{FOREVER, NONE, Place};
use crate::trace::What;

/// The waiters of a queue, linked through their tasks, first come first.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WaitQueue {
    pub(crate) first: u32,
    pub(crate) last: u32,
}

/// All waits of one task for one reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stall {
    /// The task.
    pub task: TaskId,
    /// Its name.
    pub name: String,
    /// What it waited for.
    pub reason: WaitReason,
    /// How many times it slept.
    pub count: u64,
    /// How long altogether; a wait that still lasts counts up to now.
    pub total: Nanos,
    /// The longest one.
    pub longest: Nanos,
}

/// A task that has not ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unfinished {
    /// The task.
    pub task: TaskId,
    /// Its name.
    pub name: String,
    /// What it does now.
    pub doing: Doing,
}

/// What a task does that has not ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Doing {
    /// It sleeps.
    Waiting {
        /// What for.
        reason: WaitReason,
        /// Since when.
        since: Nanos,
    },
    /// It waits for its CPU.
    Queued(CpuId),
    /// It has a CPU.
    OnCpu(CpuId),
}

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

    /// Puts a task to sleep; it has given up its CPU.
    pub(crate) fn block(&mut self, now: u64, index: u32, reason: WaitReason, timeout: u64) {
        let task = &mut self.tasks[index as usize];
        task.place = Place::Blocked;
        task.reason = reason;
        task.since = now;
        task.timeout = timeout;
        task.writes_before = (self.writes_in_flight == 0).then_some(self.writes_sent);
        task.timer_armed = timeout != FOREVER;
        if task.timer_armed {
            self.agenda.add(now.saturating_add(timeout), Class::Timer, index, task.generation);
        }
        self.note_role(now, index);
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
        self.records[index as usize].note_wait(finished);
        self.make_ready(now, index, true);
    }

    /// The tasks that have not ended, by number.
    pub(crate) fn unfinished(&self) -> Vec<Unfinished> {
        let mut unfinished = Vec::new();
        for (number, (task, record)) in (0_u32..).zip(self.tasks.iter().zip(&self.records)) {
            let doing = match task.place {
                Place::Blocked => Doing::Waiting { reason: task.reason, since: Nanos(task.since) },
                Place::Queued => Doing::Queued(CpuId(task.cpu)),
                Place::OnCpu => Doing::OnCpu(CpuId(task.cpu)),
                Place::Done => continue,
            };
            unfinished.push(Unfinished { task: TaskId(number), name: record.name.clone(), doing });
        }
        unfinished
    }

    /// All waits by task and reason, the longest total first; among equals by task and reason.
    pub(crate) fn stalls(&self, now: u64) -> Vec<Stall> {
        let mut stalls: BTreeMap<(TaskId, WaitReason), Stall> = BTreeMap::new();
        for Waits { task, name, reason, count, spent, longest, .. } in self.waits(now) {
            let nothing = || Stall { task, name, reason, count: 0, total: Nanos(0), longest: Nanos(0) };
            let stall = stalls.entry((task, reason)).or_insert_with(nothing);
            stall.count += count;
            stall.total += spent;
            stall.longest = stall.longest.max(longest);
        }
        let mut stalls: Vec<Stall> = stalls.into_values().collect();
        stalls.sort_by_key(|stall| std::cmp::Reverse(stall.total));
        stalls
    }
}
