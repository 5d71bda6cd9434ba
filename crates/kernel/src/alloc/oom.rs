//! The OOM killer (MECHANISMS 13.1, MECHANISMS-6X 10): who is killed when reclaim cannot help.
//!
//! The victim is the process with the most anonymous memory in the cgroup that ran out; its memory
//! is reaped at once and its next system call fails. Each kill is kept with what the kernel prints
//! of it (`dump_header`, `oom_kill_process`).
//!
//! A task that is out of memory holds a lock from its last try until the victim's memory is free;
//! others sleep a tick and go round, so that nobody dies for what is about to come free. Linux lets
//! go of it before the reaper is done, but kills nobody else either while it sees a victim that was
//! not reaped. A kill in a cgroup at its limit takes no time here, and so needs no lock.
//!
//! Left out: an `oom_score_adj` other than -1000, which nobody is killed with, swap and page tables in the score, `memory.oom.group`.

use std::cell::Cell;

use mm::MemcgId;
use mm::base::event::Trace;
use mm::base::vmstat::VmEvent;
use units::PAGE_SIZE;

use crate::alloc::kills::OomKill;
use crate::handle::Kernel;
use crate::machine::Machine;
use crate::tasks::process::{OOM_SCORE_ADJ_MIN, Process};

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

    /// Kills one process below `memcg`; false when none is left to kill.
    pub(crate) fn oom_kill(&self, memcg: MemcgId) -> bool {
        let candidates: Vec<Process> = self
            .shared
            .processes
            .borrow()
            .list
            .iter()
            .filter(|process| !process.is_killed() && process.oom_score_adj() != OOM_SCORE_ADJ_MIN)
            .filter(|process| self.mem(|mem| mem.core.cgroups.is_descendant(process.memcg(), memcg)))
            .cloned()
            .collect();
        // The first of equals: the oldest process, so that the choice does not depend on chance.
        let victim = candidates.iter().rev().max_by_key(|process| self.anon_pages(process));
        let Some(victim) = victim.cloned() else { return false };
        let kill = self.described(&victim, memcg, &candidates);
        self.shared.oom_kills.borrow_mut().push(kill);
        victim.0.killed.set(true);
        self.mem(|mem| {
            mem.core.alloc.events.add(VmEvent::OomKill, 1);
            mem.core.cgroups.count_event(victim.memcg(), |events| &mut events.oom_kill);
        });
        self.reap(&victim);
        true
    }

    /// Every kill so far, the first one first.
    pub fn oom_kills(&self) -> Vec<OomKill> {
        self.shared.oom_kills.borrow().clone()
    }

    /// How many kills there were so far.
    pub fn oom_kill_count(&self) -> u64 {
        self.shared.oom_kills.borrow().len() as u64
    }

    fn described(&self, victim: &Process, memcg: MemcgId, candidates: &[Process]) -> OomKill {
        let by_limit = memcg != MemcgId::ROOT;
        let path = |id: MemcgId| self.mem(|mem| mem.core.cgroups[id].path.clone());
        let cgroup = path(victim.memcg());
        let anon_pages = self.anon_pages(victim);
        let mut memory = self.mem(|mem| if by_limit { mem.memcg_info(memcg) } else { mem.mem_info() });
        memory.push("Tasks state (memory values in pages):".to_string());
        memory.push("[  pid  ]      rss name".to_string());
        let task = |process: &Process| {
            format!("[{:>7}] {:>8} {}", process.0.id.0, self.anon_pages(process), process.name())
        };
        memory.extend(candidates.iter().map(task));
        let constraint = if by_limit {
            format!("CONSTRAINT_MEMCG,oom_memcg=/{}", path(memcg))
        } else {
            "CONSTRAINT_NONE,global_oom".to_string()
        };
        let (name, pid) = (victim.name(), victim.0.id.0);
        memory.push(format!("oom-kill:constraint={constraint},task_memcg=/{cgroup},task={name},pid={pid}"));
        let whose = if by_limit { "Memory cgroup out of memory" } else { "Out of memory" };
        let held = anon_pages * PAGE_SIZE / 1024;
        memory.push(format!("{whose}: Killed process {pid} ({name}) anon-rss:{held}kB"));
        OomKill { at: self.machine().now(), task: name.to_string(), cgroup, by_limit, anon_pages, memory }
    }
}
