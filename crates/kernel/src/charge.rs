//! Charging pages and kernel objects to a cgroup, with reclaim at its limit (MECHANISMS 8.2,
//! MECHANISMS-6X 4.1, 4.6).
//!
//! In the steady state usage sits exactly at the limit: a run of limit reclaim frees some dozen
//! pages, the next charges use them up one by one, and the next run follows.
//!
//! Left out: the penalty sleep of `memory.high`, charges of swap and sockets.

use mm::MemcgId;
use mm::base::event::Trace;
use mm::base::gfp::Gfp;
use mm::cgroup::tree::{Charge, UNLIMITED};

use crate::kernel::Kernel;
use crate::machine::Machine;
use crate::task::{Errno, Process};

/// Progress below this many pages is worth another round for small charges
/// (1 << PAGE_ALLOC_COSTLY_ORDER).
const SMALL_CHARGE_PAGES: u32 = 8;

impl<M: Machine, T: Trace> Kernel<M, T> {
    /// Charges `pages` to `memcg`, reclaiming at whichever limit stands in the way
    /// (`try_charge_memcg`).
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
        let (mut batch, mut retries) =
            self.mem(|mem| (mem.core.cgroups.charge_batch(), mem.core.alloc.tuning().charge_retries));
        let mut drained = false;
        loop {
            let cpu = self.machine().current_cpu();
            let over = match self.mem(|mem| mem.core.cgroups.try_charge(cpu, memcg, pages, batch)) {
                Charge::Done => break,
                Charge::Over(over) => over,
            };
            batch = pages;
            if process.is_killed() {
                self.mem(|mem| mem.core.cgroups.charge_by_force(memcg, u64::from(pages)));
                break;
            }
            if !gfp.has(Gfp::DIRECT_RECLAIM) {
                return Err(Errno::NoMem);
            }
            self.mem(|mem| mem.core.cgroups.count_event(over, |events| &mut events.max));
            let reclaimed = self.limit_reclaim(over, u64::from(pages), gfp).await;
            if self.mem(|mem| mem.core.cgroups.margin(over)) >= u64::from(pages) {
                continue;
            }
            if !drained {
                self.mem(|mem| mem.core.cgroups.drain_all_stocks(over));
                drained = true;
                continue;
            }
            if gfp.has(Gfp::NORETRY) {
                return Err(Errno::NoMem);
            }
            if reclaimed > 0 && pages <= SMALL_CHARGE_PAGES {
                continue;
            }
            if retries > 0 {
                retries -= 1;
                continue;
            }
            if gfp.has(Gfp::RETRY_MAYFAIL) {
                return Err(Errno::NoMem);
            }
            self.mem(|mem| mem.core.cgroups.count_event(over, |events| &mut events.oom));
            if !self.oom_kill(over) {
                return Err(Errno::NoMem);
            }
            retries = self.mem(|mem| mem.core.alloc.tuning().charge_retries);
        }
        self.note_over_high(process, memcg, pages);
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

    /// On return to user mode (`mem_cgroup_handle_over_high`): a task that charged above some
    /// `memory.high` reclaims a batch at every level that is over it.
    pub(crate) async fn handle_over_high(&self, process: &Process) {
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
