//! The OOM killer (MECHANISMS 13.1, MECHANISMS-6X 10): who is killed when reclaim cannot help.
//!
//! The victim is the process with the most points (`oom_badness`): anonymous pages, in memory and swapped out,
//! page tables, and thousandths of the memory that ran out as its `oom_score_adj` says; one with -1000 is never taken.
//! Its memory is reaped at once, up to 5.17 but for what it has locked, and its next system call fails, by
//! which it ends. Where nobody is left when the machine is out
//! of memory, the kernel panics ("System is deadlocked on memory"): the machine stops. Each kill is
//! kept with what the kernel prints of it ([`super::report`]), and with why reclaim gave up.
//!
//! A task that is out of memory holds a lock from its last try until the victim's memory is free;
//! others sleep a tick and go round, so that nobody dies for what is about to come free. Linux lets
//! go of it before the reaper is done, but kills nobody else either while it sees a victim that was
//! not reaped. A kill in a cgroup at its limit takes no time here, and so needs no lock.
//!
//! Left out: mapped files in the score, children that die in place of their parent (up to 5.1),
//! points below 1 counted as 1 (up to 5.8), the score by total size of 2.6.32, `memory.oom.group`,
//! the 2 s that the reaper leaves a victim to end by itself (5.18), and that a signal ends its sleep.

use std::cell::Cell;

use mm::MemcgId;
use mm::base::event::{Trace, TraceEvent};
use mm::base::vmstat::VmEvent;
use mm::cgroup::tree::UNLIMITED;
use units::Nanos;

use crate::alloc::kills::OomKill;
use crate::alloc::report::OomControl;
use crate::handle::Kernel;
use crate::machine::{Machine, WaitReason};
use crate::tasks::process::{OOM_SCORE_ADJ_MIN, Process};

/// How long the OOM reaper tries for a victim's memory (`MAX_OOM_REAP_RETRIES` times 100 ms): one that a signal
/// wakes ends long before.
const REAPER_TRIES: Nanos = Nanos::from_secs(1);

/// What came of calling the OOM killer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub(crate) enum Verdict {
    /// A process was killed.
    Killed,
    /// One that was killed before is about to end.
    Awaits,
    /// Nobody is left to kill; unless a limit was reached, the kernel has panicked.
    NobodyLeft,
}

/// `oom_lock`, held until it is dropped.
pub(crate) struct OomLock<'a>(&'a Cell<bool>);

impl Drop for OomLock<'_> {
    fn drop(&mut self) {
        self.0.set(false);
    }
}

impl<M: Machine, T: Trace> Kernel<M, T> {
    /// Takes the lock of the OOM killer; none if another task holds it.
    pub(crate) fn try_lock_oom(&self) -> Option<OomLock<'_>> {
        let held = &self.shared.oom_lock;
        (!held.replace(true)).then(|| OomLock(held))
    }

    /// Memory ran out (`out_of_memory`): kills one process, if there is one.
    pub(crate) fn oom_kill(&self, oom: OomControl<'_>) -> Verdict {
        let tasks: Vec<Process> = self
            .shared
            .processes
            .borrow()
            .list
            .iter()
            .filter(|process| self.mem(|mem| mem.core.cgroups.is_descendant(process.memcg(), oom.memcg)))
            .cloned()
            .collect();
        let total = self.pages_in_reach(oom.memcg);
        let points = |task: &Process| Some((self.badness(task, total)?, task.clone()));
        // The first of equals: the oldest process, so that the choice does not depend on chance.
        let victim = tasks.iter().rev().filter_map(points).max_by_key(|&(points, _)| points);
        let Some((_, victim)) = victim else {
            if self.victim_ends_soon(&oom, &tasks) {
                return Verdict::Awaits;
            }
            if !oom.is_by_limit() {
                self.note_panic(oom, &tasks);
            }
            return Verdict::NobodyLeft;
        };
        let target = oom.memcg;
        let kill = self.described(&victim, oom, &tasks);
        let anon_pages = kill.anon_pages;
        self.shared.oom_kills.borrow_mut().push(kill);
        victim.0.killed.set(true);
        self.mem(|mem| {
            mem.core.alloc.events.add(VmEvent::OomKill, 1);
            mem.core.cgroups.count_event(victim.memcg(), |events| &mut events.oom_kill);
            let memcg = victim.memcg();
            mem.core.tell(|_| TraceEvent::MarkVictim { memcg, target, anon_pages });
        });
        self.oom_reap(&victim);
        self.note_reaped(&victim);
        Verdict::Killed
    }

    /// Whether some victim has yet to end, which frees the rest of its memory: the one that asks, or one that was
    /// killed so lately that the reaper would still try. A charge waits for none.
    fn victim_ends_soon(&self, oom: &OomControl<'_>, tasks: &[Process]) -> bool {
        let kills = self.shared.oom_kills.borrow();
        let lately = kills.last().is_some_and(|kill| self.machine().now() < kill.at + REAPER_TRIES);
        let asker_ends = oom.by.is_some_and(Process::is_killed);
        !oom.is_by_limit() && (asker_ends || (lately && tasks.iter().any(Process::is_killed)))
    }

    /// Stops the machine: the kernel panicked. Nothing comes after it.
    pub(crate) async fn stop_after_panic(&self) {
        self.machine().halt();
        let never = self.machine().new_queue();
        let _ = self.machine().wait(never, WaitReason::Periodic, None).await;
    }

    /// Every kill so far, the first one first.
    pub fn oom_kills(&self) -> Vec<OomKill> {
        self.shared.oom_kills.borrow().clone()
    }

    /// How many kills there were so far.
    pub fn oom_kill_count(&self) -> u64 {
        self.shared.oom_kills.borrow().len() as u64
    }

    /// All pages that ran out: of the machine, or up to the limit.
    fn pages_in_reach(&self, memcg: MemcgId) -> u64 {
        self.mem(|mem| {
            let managed: u64 = mem.core.alloc.zones().iter().map(|zone| zone.managed.0).sum();
            let limit = mem.core.cgroups[memcg].memory.max;
            if limit == UNLIMITED { managed } else { limit.min(managed) }
        })
    }

    /// `oom_badness`; none: it is never taken, or was already.
    fn badness(&self, process: &Process, total: u64) -> Option<i64> {
        let adj = process.oom_score_adj();
        if process.is_killed() || adj == OOM_SCORE_ADJ_MIN {
            return None;
        }
        let held = self.anon_pages(process) + self.swapped_pages(process) + process.page_tables();
        let pages = |count: u64| i64::try_from(count).expect("fewer pages than 2^63");
        Some(pages(held) + i64::from(adj) * pages(total / 1000))
    }
}
