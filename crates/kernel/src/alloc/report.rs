//! What the kernel prints when memory ran out (`dump_header`, `oom_kill_process`), as far as there is
//! something behind it here: who asked and what for, memory, tasks, the verdict.
//!
//! Lines are those of 5.x. Left out: numbers of `gfp_mask`, which differ from version to version (names do not),
//! registers, offsets of the call trace, and mapped files. Next: [`super::oom`], which decides, and
//! `mem_info.rs` of `mm` for memory.

use std::collections::BTreeMap;

use mm::MemcgId;
use mm::base::event::Trace;
use mm::base::gfp::Gfp;
use mm::mem_info::KernelPages;
use units::{Order, PAGE_SIZE};

use crate::alloc::kills::OomKill;
use crate::alloc::purpose::Purpose;
use crate::handle::Kernel;
use crate::machine::Machine;
use crate::tasks::process::Process;

/// What ran out, and for whom (`struct oom_control`).
pub(crate) struct OomControl<'a> {
    /// The cgroup that is at its limit; the root: the machine is out of memory.
    pub(crate) memcg: MemcgId,
    /// Who asked; none: a kernel thread.
    pub(crate) by: Option<&'a Process>,
    pub(crate) gfp: Gfp,
    pub(crate) order: Order,
    pub(crate) purpose: Purpose,
    /// Why reclaim gave up.
    pub(crate) why: Vec<String>,
}

impl OomControl<'_> {
    pub(crate) fn is_by_limit(&self) -> bool {
        self.memcg != MemcgId::ROOT
    }

    /// The name of who asked.
    pub(crate) fn asker(&self) -> &str {
        self.by.map_or(self.purpose.thread(), Process::name)
    }
}

const fn kb(pages: u64) -> u64 {
    pages * (PAGE_SIZE / 1024)
}

impl<M: Machine, T: Trace> Kernel<M, T> {
    /// The kill of `victim`, just before it.
    pub(crate) fn described(&self, victim: &Process, oom: OomControl<'_>, tasks: &[Process]) -> OomKill {
        let by_limit = oom.is_by_limit();
        let (anon_pages, tables) = (self.anon_pages(victim), victim.page_tables());
        let (name, pid, adj) = (victim.name(), victim.0.id.0, victim.oom_score_adj());
        let cgroup = self.memcg_path(victim.memcg());
        let constraint = if by_limit {
            format!("CONSTRAINT_MEMCG,oom_memcg=/{}", self.memcg_path(oom.memcg))
        } else {
            "CONSTRAINT_NONE,nodemask=(null),cpuset=/,global_oom".to_string()
        };
        let whose = if by_limit { "Memory cgroup out of memory" } else { "Out of memory" };
        let mut memory = self.dump_header(&oom, tasks);
        memory.extend([
            format!("oom-kill:constraint={constraint},task_memcg=/{cgroup},task={name},pid={pid},uid=0"),
            format!(
                "{whose}: Killed process {pid} ({name}) total-vm:{}kB, anon-rss:{}kB, file-rss:0kB, \
                 shmem-rss:0kB, UID:0 pgtables:{}kB oom_score_adj:{adj}",
                kb(victim.mapped_pages()),
                kb(anon_pages),
                kb(tables)
            ),
        ]);
        OomKill {
            at: self.machine().now(),
            task: name.to_string(),
            cgroup,
            by_limit,
            anon_pages,
            panicked: false,
            memory,
            why: oom.why,
            gauges: self.gauges_then(),
        }
    }

    /// The last kill was followed by the OOM reaper.
    pub(crate) fn note_reaped(&self, victim: &Process) {
        let left = kb(self.anon_pages(victim));
        let line = format!(
            "oom_reaper: reaped process {} ({}), now anon-rss:{left}kB, file-rss:0kB, shmem-rss:0kB",
            victim.0.id.0,
            victim.name()
        );
        self.shared.oom_kills.borrow_mut().last_mut().expect("a kill was noted").memory.push(line);
    }

    /// Nobody is left to kill.
    pub(crate) fn note_panic(&self, oom: OomControl<'_>, tasks: &[Process]) {
        let mut memory = self.dump_header(&oom, tasks);
        memory.push("Out of memory and no killable processes...".to_string());
        memory.push("Kernel panic - not syncing: System is deadlocked on memory".to_string());
        let kill = OomKill {
            at: self.machine().now(),
            task: oom.asker().to_string(),
            cgroup: oom.by.map_or(String::new(), |process| self.memcg_path(process.memcg())),
            by_limit: false,
            anon_pages: 0,
            panicked: true,
            memory,
            why: oom.why,
            gauges: self.gauges_then(),
        };
        self.shared.oom_kills.borrow_mut().push(kill);
    }

    fn memcg_path(&self, memcg: MemcgId) -> String {
        self.mem(|mem| mem.core.cgroups[memcg].path.clone())
    }

    /// Who asked, memory, and all tasks in reach.
    fn dump_header(&self, oom: &OomControl<'_>, tasks: &[Process]) -> Vec<String> {
        let adj = oom.by.map_or(0, Process::oom_score_adj);
        let pid = oom.by.map_or(2, |process| process.0.id.0);
        let asker = oom.asker();
        let cpu = self.machine().current_cpu();
        let mut lines = vec![
            format!(
                "{asker} invoked oom-killer: gfp_mask={}, order={}, oom_score_adj={adj}",
                oom.gfp, oom.order
            ),
            format!("CPU: {} PID: {pid} Comm: {asker}", cpu.0),
            "Call Trace:".to_string(),
        ];
        let outer: &[&str] = if oom.is_by_limit() {
            &["mem_cgroup_out_of_memory", "try_charge"]
        } else {
            &["out_of_memory", "__alloc_pages_slowpath"]
        };
        lines.extend(outer.iter().map(|function| format!(" {function}")));
        lines.extend(oom.purpose.trace().into_iter().map(|function| format!(" {function}")));
        let pages = self.kernel_pages();
        lines.extend(self.mem(|mem| {
            if oom.is_by_limit() { mem.memcg_info(oom.memcg) } else { mem.mem_info(cpu, &pages) }
        }));
        lines.extend(self.tasks_state(tasks));
        lines
    }

    /// `dump_tasks`
    fn tasks_state(&self, tasks: &[Process]) -> Vec<String> {
        let task = |process: &Process| {
            format!(
                "[{:>7}] {:>5} {:>5} {:>8} {:>8} {:>8} {:>8}         {:>5} {}",
                process.0.id.0,
                0,
                process.0.id.0,
                process.mapped_pages(),
                self.anon_pages(process),
                process.page_tables() * PAGE_SIZE,
                self.swapped_pages(process),
                process.oom_score_adj(),
                process.name()
            )
        };
        let mut lines = vec![
            "Tasks state (memory values in pages):".to_string(),
            "[  pid  ]   uid  tgid total_vm      rss pgtables_bytes swapents oom_score_adj name".to_string(),
        ];
        lines.extend(tasks.iter().map(task));
        lines
    }

    /// Page tables and stacks of all processes, by zone.
    fn kernel_pages(&self) -> KernelPages {
        let processes = self.shared.processes.borrow();
        self.mem(|mem| {
            let mut pages = KernelPages::default();
            for process in &processes.list {
                process.page_table_frames().for_each(|pfn| pages.add_table(mem.core.alloc.zone_of(pfn)));
                process.stack_frames().for_each(|pfn| pages.add_stack(mem.core.alloc.zone_of(pfn)));
            }
            pages
        })
    }

    fn gauges_then(&self) -> BTreeMap<String, u64> {
        self.mem(|mem| {
            let managed: u64 = mem.core.alloc.zones().iter().map(|zone| zone.managed.0).sum();
            let not_clean = mem.fs.xfs_log.items().not_clean();
            let more = [("managed_pages", managed), ("nr_xfs_inodes_not_clean", not_clean)];
            mem.gauges().into_iter().chain(more).map(|(name, value)| (name.to_string(), value)).collect()
        })
    }
}
