//! Charging pages and kernel objects to a cgroup, with reclaim at its limit (MECHANISMS 8.2,
//! MECHANISMS-6X 4.1, 4.6), and the sleeps of those above `memory.swap.high` (SWAP 3.4).
//!
//! In the steady state usage sits exactly at the limit: a run of limit reclaim frees some dozen
//! pages, the next charges use them up one by one, and the next run follows.
//!
//! Left out: the penalty sleep of `memory.high`, charges of sockets.

use mm::MemcgId;
use mm::base::event::Trace;
use mm::base::gfp::Gfp;
use mm::cgroup::tree::UNLIMITED;
use mm::decide::charge::{ChargeLoop, Next, Outcome};
use mm::decide::effort::Effort;
use units::Order;

use crate::alloc::oom::Verdict;
use crate::alloc::purpose::Purpose;
use crate::alloc::report::OomControl;
use crate::errno::Errno;
use crate::handle::Kernel;
use crate::machine::{Machine, WaitReason};
use crate::section::{Section, Site};
use crate::tasks::process::Process;

impl<M: Machine, T: Trace> Kernel<M, T> {
    /// Charges `pages` to `memcg`, reclaiming at whichever limit stands in the way
    /// (`try_charge_memcg`), as [`mm::decide::charge`] decides.
    ///
    /// # Errors
    /// `NoMem` when reclaim does not help and nothing can be killed; `Killed`.
    pub(crate) async fn charge_pages(
        &self,
        process: &Process,
        memcg: MemcgId,
        pages: u32,
        gfp: Gfp,
    ) -> Result<(), Errno> {
        if memcg == MemcgId::ROOT {
            return Ok(()); // It is never charged, and over no mark.
        }
        let cpu = self.machine().current_cpu();
        let (mut charge, notes) = self.mem(|mem| {
            let retries = u32::from(mem.core.alloc.tuning().charge_retries);
            let groups = &mem.core.cgroups;
            let notes = groups.is_over_swap_high(memcg) && !groups.has_in_stock(cpu, memcg, pages);
            (ChargeLoop::new(groups, memcg, pages, gfp, retries), notes)
        });
        let (mut outcome, mut effort) = (Outcome::Start, Effort::default());
        loop {
            let (cpu, dying) = (self.machine().current_cpu(), process.is_killed());
            outcome = match self.mem(|mem| charge.step(&mut mem.core.cgroups, cpu, dying, outcome)) {
                Next::Reclaim(over) => {
                    let (freed, passes) = self.limit_reclaim(over, u64::from(pages), gfp).await;
                    effort.note_run(freed, passes);
                    Outcome::Reclaimed(freed)
                }
                Next::Kill(memcg) => {
                    let why = self.mem(|mem| mem.why_charge_given_up(&std::mem::take(&mut effort)));
                    let (order, purpose) = (Order(0), Purpose::Other);
                    let by = Some(process);
                    let verdict = self.oom_kill(OomControl { memcg, by, gfp, order, purpose, why });
                    Outcome::Killed(verdict == Verdict::Killed)
                }
                Next::Done => break,
                Next::Fail => return Err(Errno::NoMem),
            };
        }
        self.note_over_high(process, memcg, pages);
        if notes {
            let noted = process.0.over_swap_high_pages.get();
            process.0.over_swap_high_pages.set(noted + u64::from(charge.at_once()));
        }
        Ok(())
    }

    fn note_over_high(&self, process: &Process, memcg: MemcgId, pages: u32) {
        let over = self.mem(|mem| {
            mem.core
                .cgroups
                .ancestors(memcg)
                .any(|id| mem.core.cgroups[id].memory.usage > mem.core.cgroups[id].memory.high)
        });
        if over {
            let noted = process.0.over_high_pages.get();
            process.0.over_high_pages.set(noted + u64::from(pages));
        }
    }

    /// On return to user mode: a task that charged pages while a cgroup above it used more than its
    /// `memory.swap.high` sleeps ([`mm::decide::over_high`]).
    pub(crate) async fn sleep_over_swap_high(&self, process: &Process) {
        let pages = process.0.over_swap_high_pages.replace(0);
        if pages == 0 || process.is_killed() {
            return;
        }
        let Some(length) = self.mem(|mem| mem.core.cgroups.swap_penalty(process.memcg(), pages)) else {
            return;
        };
        self.machine().enter(Section::Site(Site::OverHigh));
        self.machine().sleep(self.timeout(length), WaitReason::OverHigh).await;
        self.machine().leave(Section::Site(Site::OverHigh));
    }

    /// On return to user mode (`mem_cgroup_handle_over_high`): a task that charged above some
    /// `memory.high` reclaims a batch at every level that is over it.
    pub(crate) async fn handle_over_high(&self, process: &Process) {
        self.sleep_over_swap_high(process).await;
        let pages = process.0.over_high_pages.replace(0);
        if pages == 0 {
            return;
        }
        let over: Vec<MemcgId> = self.mem(|mem| {
            mem.core
                .cgroups
                .ancestors(process.memcg())
                .filter(|&id| mem.core.cgroups[id].memory.high != UNLIMITED)
                .filter(|&id| mem.core.cgroups[id].memory.usage > mem.core.cgroups[id].memory.high)
                .collect()
        });
        for id in over {
            self.mem(|mem| mem.core.cgroups.count_event(id, |events| &mut events.high));
            self.limit_reclaim(id, pages, Gfp::KERNEL).await;
        }
    }
}
