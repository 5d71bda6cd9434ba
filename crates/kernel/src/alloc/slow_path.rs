//! The page allocator's slow path, as it is since 4.7 (MECHANISMS 4.4; `__alloc_pages_slowpath`).
//!
//! ```text
//!   fast: one pass over the zones at the low mark
//!   slow: wake kswapd, try at the min mark
//!    R:   wake kswapd again, try with whatever reserves the task may use
//!         direct reclaim, try; if that freed pages but none is left, drain all CPUs and try
//!         compact, try (large orders, and small ones that others cannot make, compact before R too)
//!         retry while reclaim or compaction can still help, else OOM
//! ```
//! Left out: CPU sets. Next: [`crate::reclaim`], [`crate::compact`], [`super::oom`].

use mm::compact::{CompactPriority, CompactResult, Suitability};
use mm::event::Trace;
use mm::gfp::Gfp;
use mm::page_alloc::{AllocFlags, class_of};
use mm::pcp::COSTLY_ORDER;
use mm::watermark::Mark;
use units::{NodeId, Order, Pfn};

use crate::handle::Kernel;
use crate::machine::{CostOp, Machine, WaitReason};
use crate::tasks::process::Process;
use crate::time::ticks_from;

/// Rounds without progress before the OOM killer (`MAX_RECLAIM_RETRIES`).
const MAX_RECLAIM_RETRIES: u32 = 16;

/// What the slow path remembers of its compaction rounds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CompactTries {
    pub(crate) priority: CompactPriority,
    pub(crate) result: CompactResult,
    retries: u32,
}

impl CompactTries {
    pub(crate) const fn new() -> Self {
        Self { priority: CompactPriority::SyncLight, result: CompactResult::Skipped, retries: 0 }
    }
}

/// Rounds in which compaction made progress (`MAX_COMPACT_RETRIES`); a quarter of it for costly
/// orders.
const MAX_COMPACT_RETRIES: u32 = 16;

impl<M: Machine, T: Trace> Kernel<M, T> {
    pub(crate) async fn alloc_slow(&self, process: Option<&Process>, gfp: Gfp, order: Order) -> Option<Pfn> {
        let victim = process.is_some_and(Process::is_killed);
        let can_reclaim = gfp.has(Gfp::DIRECT_RECLAIM);
        let flags = AllocFlags::slow(gfp, false, victim);
        let mut fruitless = 0;
        self.wake_all_kswapds(gfp, order);
        if let Some(pfn) = self.try_or_stall(gfp, order, flags).await {
            return Some(pfn);
        }
        let mut tries = CompactTries::new();
        if can_reclaim && (order > COSTLY_ORDER || (order > Order(0) && !gfp.has(Gfp::MOVABLE_BIT))) {
            let result = &mut tries.result;
            let page = self.direct_compact(gfp, order, flags, CompactPriority::Async, result).await;
            if page.is_some() {
                return page;
            }
            if order > COSTLY_ORDER && gfp.has(Gfp::NORETRY) {
                if tries.result <= CompactResult::Deferred {
                    return None;
                }
                tries.priority = CompactPriority::Async;
            }
        }
        loop {
            self.wake_all_kswapds(gfp, order);
            if let Some(pfn) = self.try_once(gfp, order, flags) {
                return Some(pfn);
            }
            if !can_reclaim || (victim && !gfp.has(Gfp::NOFAIL)) {
                return None;
            }
            let progress = self.direct_reclaim(gfp, order).await;
            if progress > 0
                && let Some(pfn) = self.try_after_reclaim(gfp, order, flags)
            {
                return Some(pfn);
            }
            let page = self.direct_compact(gfp, order, flags, tries.priority, &mut tries.result).await;
            if page.is_some() {
                return page;
            }
            let gives_up = gfp.has(Gfp::NORETRY) || (order > COSTLY_ORDER && !gfp.has(Gfp::RETRY_MAYFAIL));
            if gives_up && !gfp.has(Gfp::NOFAIL) {
                return None;
            }
            if progress > 0 && order <= COSTLY_ORDER {
                fruitless = 0;
            } else {
                fruitless += 1;
            }
            let reclaim_helps = fruitless <= MAX_RECLAIM_RETRIES && self.reclaim_can_help(gfp, order, flags);
            if reclaim_helps {
                self.wait_for_dirty_pages(progress).await;
            }
            if reclaim_helps || (progress > 0 && self.should_compact_retry(gfp, order, flags, &mut tries)) {
                self.machine().cond_resched().await;
                continue;
            }
            match self.last_try_or_kill(process, gfp, order).await {
                Some(Ok(pfn)) => return Some(pfn),
                Some(Err(())) => fruitless = 0,
                None => return None,
            }
        }
    }

    /// Reclaim made progress: try; if others took it all, drain the per-CPU lists once and try
    /// again (`__alloc_pages_direct_reclaim`).
    fn try_after_reclaim(&self, gfp: Gfp, order: Order, flags: AllocFlags) -> Option<Pfn> {
        if let Some(pfn) = self.try_once(gfp, order, flags) {
            return Some(pfn);
        }
        let cpu = self.machine().current_cpu();
        self.mem(|mem| {
            let zones = mem.alloc.zonelist(cpu, gfp).to_vec();
            mem.alloc.unreserve_highatomic(&zones, gfp.migrate_type(), false);
            let _ = mem.alloc.drain_all();
        });
        self.machine().charge(CostOp::DrainCpu, u64::from(self.machine().cpu_count()));
        self.try_once(gfp, order, flags)
    }

    /// `should_reclaim_retry`: could any zone pass its min mark if all its file pages were freed?
    fn reclaim_can_help(&self, gfp: Gfp, order: Order, flags: AllocFlags) -> bool {
        let cpu = self.machine().current_cpu();
        self.mem(|mem| {
            mem.alloc.zonelist(cpu, gfp).iter().any(|&id| {
                let zone = mem.alloc.zone(id);
                let available = zone.free_pages().0 + mem.zone_reclaimable_pages(zone.node, zone.kind);
                zone.watermark_ok(order, zone.watermarks.mark(Mark::Min), class_of(gfp), flags, available)
            })
        })
    }

    /// The end of the slow path: one try at the high mark, then the OOM killer. `Some(Err)`: go
    /// round again; none: give up.
    async fn last_try_or_kill(
        &self,
        process: Option<&Process>,
        gfp: Gfp,
        order: Order,
    ) -> Option<Result<Pfn, ()>> {
        if self.shared.oom_lock.get() {
            self.machine().sleep(ticks_from(self.machine().now(), 1), WaitReason::OomLock).await;
            return Some(Err(()));
        }
        if let Some(pfn) = self.try_once(gfp, order, AllocFlags::WMARK_HIGH) {
            return Some(Ok(pfn));
        }
        let may_kill = order <= COSTLY_ORDER && gfp.has(Gfp::FS) && !gfp.has(Gfp::RETRY_MAYFAIL);
        if !may_kill && !gfp.has(Gfp::FS) {
            self.machine().cond_resched().await;
            return Some(Err(())); // Loops as the kernel does: somebody else must free memory.
        }
        let killed = may_kill && self.oom_kill(mm::MemcgId::ROOT);
        if process.is_some_and(Process::is_killed) && !gfp.has(Gfp::NOFAIL) {
            return None;
        }
        killed.then_some(Err(()))
    }

    fn wake_all_kswapds(&self, gfp: Gfp, order: Order) {
        if !gfp.has(Gfp::KSWAPD_RECLAIM) {
            return;
        }
        let cpu = self.machine().current_cpu();
        let mut woken: Option<NodeId> = None;
        let node_of = |place| {
            self.mem(|mem| mem.alloc.zonelist(cpu, gfp).get(place).map(|&zone| mem.alloc.zone(zone).node))
        };
        for node in (0..).map_while(node_of) {
            if woken != Some(node) {
                let sleeps_on = !self.wakeup_kswapd(node, order, class_of(gfp));
                if sleeps_on && !gfp.has(Gfp::DIRECT_RECLAIM) {
                    self.wakeup_kcompactd(node, order, class_of(gfp));
                }
                woken = Some(node);
            }
        }
    }

    /// `should_compact_retry`: another round is worth it, perhaps one that tries harder.
    pub(crate) fn should_compact_retry(
        &self,
        gfp: Gfp,
        order: Order,
        flags: AllocFlags,
        tries: &mut CompactTries,
    ) -> bool {
        if order == Order(0) {
            return false;
        }
        let costly = order > COSTLY_ORDER;
        match tries.result {
            CompactResult::Skipped
            | CompactResult::Deferred
            | CompactResult::Contended
            | CompactResult::PartialSkipped => return self.compaction_can_help(gfp, order, flags),
            CompactResult::Success => {
                tries.retries += 1;
                let most = if costly { MAX_COMPACT_RETRIES / 4 } else { MAX_COMPACT_RETRIES };
                if tries.retries <= most {
                    return true;
                }
            }
            CompactResult::Complete => {}
        }
        let hardest = if costly { CompactPriority::SyncLight } else { CompactPriority::SyncFull };
        if tries.priority <= hardest {
            return false;
        }
        tries.priority = match tries.priority {
            CompactPriority::Async => CompactPriority::SyncLight,
            _ => CompactPriority::SyncFull,
        };
        tries.retries = 0;
        true
    }

    /// `compaction_zonelist_suitable`: could any zone be compacted if a part of its file pages were
    /// freed?
    fn compaction_can_help(&self, gfp: Gfp, order: Order, flags: AllocFlags) -> bool {
        let cpu = self.machine().current_cpu();
        self.mem(|mem| {
            mem.alloc.zonelist(cpu, gfp).iter().any(|&id| {
                let zone = mem.alloc.zone(id);
                let reclaimable = mem.zone_reclaimable_pages(zone.node, zone.kind) / u64::from(order.0);
                let available = zone.free_pages().0 + reclaimable;
                let suits = mem.compaction_suitable_with(id, order, flags, class_of(gfp), available);
                suits != Suitability::Skip
            })
        })
    }
}
