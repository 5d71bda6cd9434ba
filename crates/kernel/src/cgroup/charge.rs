//! Charging pages and kernel objects to a cgroup, with reclaim at its limit (MECHANISMS 8.2,
//! MECHANISMS-6X 4.1, 4.6), and what those pay that are above `memory.high` or `memory.swap.high` (SWAP 3.4).
//!
//! In the steady state usage sits exactly at the limit: a run of limit reclaim frees some dozen
//! pages, the next charges use them up one by one, and the next run follows.
//!
//! Left out: charges of sockets.

use mm::MemcgId;
use mm::base::event::Trace;
use mm::base::gfp::Gfp;
use mm::decide::charge::{ChargeLoop, Next as Charging, Outcome};
use mm::decide::effort::Effort;
use mm::decide::over_high::{Next, OverHigh};
use mm::version::rules::HighOvercharge;
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
        if let Some(at_once) = self.charge_unpaid(process, memcg, pages, gfp).await? {
            self.note_over_high(process, memcg, at_once).await;
        }
        Ok(())
    }

    /// [`Self::charge_pages`], but that nobody pays for being above `memory.high`: for a kernel thread, which does not
    /// return to user mode. Returns what was charged at once, if counters were looked at that have such a mark.
    pub(crate) async fn charge_unpaid(
        &self,
        process: &Process,
        memcg: MemcgId,
        pages: u32,
        gfp: Gfp,
    ) -> Result<Option<u32>, Errno> {
        if memcg == MemcgId::ROOT {
            return Ok(None); // It is never charged, and over no mark.
        }
        let cpu = self.machine().current_cpu();
        let (mut charge, refills) = self.mem(|mem| {
            let retries = u32::from(mem.core.alloc.tuning().charge_retries);
            let groups = &mem.core.cgroups;
            let refills = groups.has_high(memcg) && !groups.has_in_stock(cpu, memcg, pages);
            (ChargeLoop::new(groups, memcg, pages, gfp, retries), refills)
        });
        let (mut outcome, mut effort) = (Outcome::Start, Effort::default());
        loop {
            let (cpu, dying) = (self.machine().current_cpu(), process.is_killed());
            outcome = match self.mem(|mem| charge.step(&mut mem.core.cgroups, cpu, dying, outcome)) {
                Charging::Reclaim(over) => {
                    let (freed, passes) = self.limit_reclaim(over, u64::from(pages), gfp).await;
                    effort.note_run(freed, passes);
                    Outcome::Reclaimed(freed)
                }
                Charging::Kill(memcg) => {
                    let why = self.mem(|mem| mem.why_charge_given_up(&std::mem::take(&mut effort)));
                    let (order, purpose) = (Order(0), Purpose::Other);
                    let by = Some(process);
                    let verdict = self.oom_kill(OomControl { memcg, by, gfp, order, purpose, why });
                    Outcome::Killed(verdict == Verdict::Killed)
                }
                Charging::Done => break,
                Charging::Fail => return Err(Errno::NoMem),
            };
        }
        Ok(refills.then(|| charge.at_once()))
    }

    /// Notes pages that were charged above some limit, which are paid for on the way to user mode, or, where they are
    /// many, at once.
    async fn note_over_high(&self, process: &Process, memcg: MemcgId, pages: u32) {
        let (over, at_once, batch) = self.mem(|mem| {
            let groups = &mem.core.cgroups;
            let over = groups.is_over_high(memcg) || groups.is_over_swap_high(memcg);
            let at_once = mem.core.rules().high_overcharge == HighOvercharge::AtOnce;
            (over, at_once, u64::from(groups.charge_batch()))
        });
        if !over {
            return;
        }
        let noted = process.0.over_high_pages.get() + u64::from(pages);
        process.0.over_high_pages.set(noted);
        if at_once && noted > batch {
            self.handle_over_high(process).await;
        }
    }

    /// On return to user mode (`mem_cgroup_handle_over_high`), as [`mm::decide::over_high`] decides.
    pub(crate) async fn handle_over_high(&self, process: &Process) {
        let pages = process.0.over_high_pages.replace(0);
        if pages == 0 {
            return;
        }
        let memcg = process.memcg();
        let mut paying = OverHigh::new(self.mem(|mem| mem.core.rules().high_pause), pages);
        let mut next = paying.first();
        loop {
            match next {
                Next::Reclaim(pages) => {
                    let freed = self.reclaim_over_high(memcg, pages).await;
                    next = self.mem(|mem| paying.step(&mut mem.core.cgroups, memcg, freed));
                }
                Next::Sleep(_) if process.is_killed() => return,
                Next::Sleep(length) => {
                    self.machine().enter(Section::Site(Site::OverHigh));
                    self.machine().sleep(self.timeout(length), WaitReason::OverHigh).await;
                    self.machine().leave(Section::Site(Site::OverHigh));
                    return;
                }
                Next::Done => return,
            }
        }
    }

    /// Reclaims `pages` at every level above `memcg` that is over its `memory.high`; what that freed in all.
    async fn reclaim_over_high(&self, memcg: MemcgId, pages: u64) -> u64 {
        let over: Vec<MemcgId> = self.mem(|mem| {
            let groups = &mem.core.cgroups;
            let is_over = |id: &MemcgId| groups[*id].memory.usage > groups[*id].memory.high;
            groups.ancestors(memcg).filter(is_over).collect()
        });
        let mut freed = 0;
        for id in over {
            self.mem(|mem| mem.core.cgroups.count_event(id, |events| &mut events.high));
            freed += self.limit_reclaim(id, pages, Gfp::KERNEL).await.0;
        }
        freed
    }
}
