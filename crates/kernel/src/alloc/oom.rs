//! The OOM killer (MECHANISMS 13.1, MECHANISMS-6X 10): who is killed when reclaim cannot help.
//!
//! The victim is the process with the most anonymous memory in the cgroup that ran out; its memory
//! is reaped at once and its next system call fails. Left out: `oom_score_adj`, swap and page
//! tables in the score, `memory.oom.group`.

use mm::MemcgId;
use mm::base::event::Trace;
use mm::base::vmstat::VmEvent;

use crate::handle::Kernel;
use crate::machine::Machine;
use crate::tasks::process::Process;

impl<M: Machine, T: Trace> Kernel<M, T> {
    /// Kills one process below `memcg`; false when none is left to kill.
    pub(crate) fn oom_kill(&self, memcg: MemcgId) -> bool {
        let candidates: Vec<Process> = self
            .shared
            .processes
            .borrow()
            .list
            .iter()
            .filter(|process| !process.is_killed())
            .filter(|process| self.mem(|mem| mem.core.cgroups.is_descendant(process.memcg(), memcg)))
            .cloned()
            .collect();
        // The first of equals: the oldest process, so that the choice does not depend on chance.
        let Some(victim) = candidates.into_iter().rev().max_by_key(|process| self.anon_pages(process)) else {
            return false;
        };
        self.shared.oom_lock.set(true);
        victim.0.killed.set(true);
        self.mem(|mem| {
            mem.core.alloc.events.add(VmEvent::OomKill, 1);
            mem.core.cgroups.count_event(victim.memcg(), |events| &mut events.oom_kill);
        });
        self.reap(&victim);
        self.shared.oom_lock.set(false);
        true
    }
}
