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
//! Left out: CPU sets. Next: [`crate::reclaim`], [`crate::compaction`], [`crate::oom`].

use mm::alloc::flags::{AllocFlags, class_of};
use mm::alloc::page_alloc::AllocOutcome;
use mm::alloc::watermark::Mark;
use mm::base::event::Trace;
use mm::base::gfp::Gfp;
use mm::base::layout::ZoneKind;
use mm::compact::state::{CompactPriority, CompactResult};
use units::{NodeId, Order, Pfn};

use crate::compaction::CompactTries;
use crate::kernel::{Kernel, ticks_from};
use crate::machine::{CostOp, Machine, WaitReason};
use crate::task::Process;

/// Orders up to this are worth repeating reclaim for (`PAGE_ALLOC_COSTLY_ORDER`).
pub const COSTLY_ORDER: Order = Order(3);
/// Rounds without progress before the OOM killer (`MAX_RECLAIM_RETRIES`).
const MAX_RECLAIM_RETRIES: u32 = 16;

impl<M: Machine, T: Trace> Kernel<M, T> {
    /// Allocates a block for `process`, or for the kernel itself if none; waits as far as `gfp`
    /// allows. None: out of memory, or `gfp` allowed no more.
    pub async fn alloc_pages(&self, process: Option<&Process>, gfp: Gfp, order: Order) -> Option<Pfn> {
        let cpu = self.machine().current_cpu();
        let outcome = self.mem(|mem| {
            let flags = mem.core.alloc.fast_flags(cpu, gfp);
            mem.core.alloc.alloc(cpu, gfp, order, flags)
        });
        match self.settle_outcome(outcome, order) {
            Some(pfn) => Some(pfn),
            None => self.alloc_slow(process, gfp, order).await,
        }
    }

    /// Charges the CPU for one pass and wakes kswapd where the pass boosted a zone.
    pub(crate) fn settle_outcome(&self, outcome: AllocOutcome, order: Order) -> Option<Pfn> {
        let machine = self.machine();
        machine.charge(if order == Order(0) { CostOp::PcpAlloc } else { CostOp::BuddyAlloc }, 1);
        if outcome.refilled > 0 {
            machine.charge(CostOp::PcpRefillPage, u64::from(outcome.refilled));
        }
        if outcome.stolen_blocks > 0 {
            machine.charge(CostOp::StealBlock, u64::from(outcome.stolen_blocks));
        }
        for zone in outcome.wake.iter() {
            let (node, kind) =
                self.mem(|mem| (mem.core.alloc.zone(zone).node, mem.core.alloc.zone(zone).kind));
            let _ = self.wakeup_kswapd(node, Order(0), kind);
        }
        if let Some(pfn) = outcome.page {
            let fresh = self.shared.used_frames.borrow_mut().use_block(pfn, order);
            if fresh > 0 {
                machine.charge(CostOp::FirstUse, fresh);
            }
        }
        outcome.page
    }

    pub(crate) fn try_once(&self, gfp: Gfp, order: Order, flags: AllocFlags) -> Option<Pfn> {
        let cpu = self.machine().current_cpu();
        let outcome = self.mem(|mem| mem.core.alloc.alloc(cpu, gfp, order, flags));
        self.settle_outcome(outcome, order)
    }

    async fn alloc_slow(&self, process: Option<&Process>, gfp: Gfp, order: Order) -> Option<Pfn> {
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
            let zones = mem.core.alloc.zonelist(cpu, gfp).to_vec();
            mem.core.alloc.unreserve_highatomic(&zones, gfp.migrate_type(), false);
            let _ = mem.core.alloc.drain_all();
        });
        self.machine().charge(CostOp::DrainCpu, u64::from(self.machine().cpu_count()));
        self.try_once(gfp, order, flags)
    }

    /// `should_reclaim_retry`: could any zone pass its min mark if all its file pages were freed?
    fn reclaim_can_help(&self, gfp: Gfp, order: Order, flags: AllocFlags) -> bool {
        let cpu = self.machine().current_cpu();
        self.mem(|mem| {
            mem.core.alloc.zonelist(cpu, gfp).iter().any(|&id| {
                let zone = mem.core.alloc.zone(id);
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
            self.mem(|mem| {
                mem.core.alloc.zonelist(cpu, gfp).get(place).map(|&zone| mem.core.alloc.zone(zone).node)
            })
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

    /// `allow_direct_reclaim`: enough of the reserve is free for direct reclaimers to go on.
    pub(crate) fn allow_direct_reclaim(&self, node: NodeId) -> bool {
        let (allowed, failures) = self.mem(|mem| {
            let (mut free, mut reserve) = (0, 0);
            for &id in &mem.core.alloc.nodes()[node.index()].zones {
                let zone = mem.core.alloc.zone(id);
                if zone.kind <= ZoneKind::Normal && mem.zone_reclaimable_pages(node, zone.kind) > 0 {
                    free += zone.free_pages().0;
                    reserve += zone.watermarks.mark(Mark::Min);
                }
            }
            (reserve == 0 || free > reserve / 2, mem.reclaim.node(node).kswapd_failures)
        });
        allowed || failures >= mm::reclaim::run::MAX_RECLAIM_RETRIES
    }
}

/// Which page frames were ever handed out since boot: one bit each.
#[derive(Debug, Default)]
pub(crate) struct UsedFrames(Vec<u64>);

impl UsedFrames {
    /// For a machine with `frames` frames, none of them used.
    pub(crate) fn new(frames: usize) -> Self {
        Self(vec![0; frames.div_ceil(64)])
    }

    /// Marks a block as used; returns how many of its frames had not been.
    #[inline]
    fn use_block(&mut self, pfn: Pfn, order: Order) -> u64 {
        // A block lies at a multiple of its size: within one word, or in whole words.
        let (index, pages) = (pfn.index(), order.pages() as usize);
        let mask = if pages < 64 { ((1 << pages) - 1) << (index % 64) } else { u64::MAX };
        let mut fresh = 0;
        for word in &mut self.0[index / 64..(index + pages).div_ceil(64)] {
            fresh += u64::from((mask & !*word).count_ones());
            *word |= mask;
        }
        fresh
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_fresh_once() {
        let mut frames = UsedFrames::new(200);
        assert_eq!(frames.use_block(Pfn(62), Order(0)), 1);
        assert_eq!(frames.use_block(Pfn(60), Order(2)), 3, "one of the four was used before");
        assert_eq!(frames.use_block(Pfn(60), Order(2)), 0);
        assert_eq!(frames.use_block(Pfn(0), Order(7)), 124, "two words");
        assert_eq!(frames.use_block(Pfn(128), Order(6)), 64);
    }
}
