//! What is read off a machine: who waited for what, who was in the middle of what, and what tasks do now.
//!
//! Sums are kept by phase of the program (`accounts/waits.rs`, `accounts/sections.rs`); what lasts still counts up to
//! now.

use std::collections::BTreeMap;

use kernel::machine::{TaskId, WaitReason};
use units::{CpuId, Nanos};

use crate::accounts::sections::{SectionTime, SectionTotal};
use crate::accounts::waits::{Ended, Finished, Past, WaitTotal, Waits};
use crate::machine::state::State;
use crate::machine::task::Place;

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
    /// Waits that end from now on belong to the next phase.
    pub(crate) fn end_phase(&mut self) {
        for (task, record) in (0_u32..).zip(&mut self.records) {
            let phase = self.phase;
            self.past_sections.extend(record.sections.drain(..).map(|total| (phase, task, total)));
            self.past_waits.extend(record.waits.drain(..).map(|total| Past { phase, task, total }));
        }
        self.phase += 1;
    }

    /// All waits: by phase, in each the longest total first, among equals by task and reason.
    pub(crate) fn waits(&self, now: u64) -> Vec<Waits> {
        let row = |phase, task: u32, total: &WaitTotal| Waits {
            phase,
            task: TaskId(task),
            name: self.records[task as usize].name.clone(),
            reason: total.reason,
            within: total.within,
            ended: total.ended,
            futile: total.futile,
            count: total.count,
            requested: Nanos(total.requested),
            spent: Nanos(total.spent),
            longest: Nanos(total.longest),
            lengths: total.lengths,
        };
        let past = self.past_waits.iter().map(|Past { phase, task, total }| row(*phase, *task, total));
        let mut waits: Vec<Waits> = past.collect();
        for (number, (task, record)) in (0_u32..).zip(self.tasks.iter().zip(&self.records)) {
            waits.extend(record.waits.iter().map(|total| row(self.phase, number, total)));
            if task.place == Place::Blocked {
                let lasts = Finished {
                    reason: task.reason,
                    within: task.inside.within,
                    ended: Ended::Lasts,
                    timeout: task.timeout,
                    spent: now - task.since,
                    no_write: false,
                };
                waits.push(row(self.phase, number, &WaitTotal::of(lasts)));
            }
        }
        waits.sort_by_key(|waits| {
            let alike = (waits.reason, waits.within, waits.ended, waits.futile);
            (waits.phase, std::cmp::Reverse(waits.spent), waits.task, alike)
        });
        waits
    }

    /// All time in sections: by phase, in each by section, the longest first, among equals by task.
    pub(crate) fn sections(&self, now: u64) -> Vec<SectionTime> {
        let row = |phase, task: u32, total: &SectionTotal| SectionTime {
            phase,
            task: TaskId(task),
            name: self.records[task as usize].name.clone(),
            within: total.within,
            count: total.count,
            spent: Nanos(total.spent),
            longest: Nanos(total.longest),
            waited: total.waited,
        };
        let past = self.past_sections.iter().map(|(phase, task, total)| row(*phase, *task, total));
        let mut times: Vec<SectionTime> = past.collect();
        for (number, (task, record)) in (0_u32..).zip(self.tasks.iter().zip(&self.records)) {
            times.extend(record.sections.iter().map(|total| row(self.phase, number, total)));
            let open = task.inside.open();
            let open = open.map(|(within, stay)| SectionTotal::of(within, stay, now));
            times.extend(open.map(|total| row(self.phase, number, &total)));
        }
        times.sort_by_key(|time| (time.phase, time.within, std::cmp::Reverse(time.spent), time.task));
        times
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
