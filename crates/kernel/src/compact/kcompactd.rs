//! kcompactd: compacts a node when kswapd has nothing more to do (MECHANISMS-6X 9); with `vm.defrag_mode` until as many
//! pages as the high mark says are free in whole pageblocks (MECHANISMS-510-72 1.7); since 5.9 also when free memory is
//! fragmented and kswapd sleeps ([`mm::compact::score`]).
//!
//! Left out: `compact_memory`.

use mm::alloc::flags::AllocFlags;
use mm::alloc::suitable::{Suitability, suitable_for_whole_blocks};
use mm::base::event::Trace;
use mm::base::gfp::MigrateType;
use mm::base::layout::{ZoneId, ZoneKind};
use mm::base::sysctl::Sysctl;
use mm::base::vmstat::VmEvent;
use mm::compact::score::{ScoreMarks, node_score};
use mm::compact::state::{CompactGoal, CompactPriority, CompactRequest, CompactResult};
use mm::version::rules::{Compaction, ProactiveCompaction};
use units::{Nanos, NodeId, Order};

use crate::handle::Kernel;
use crate::machine::{Machine, WaitReason, Woken};

/// After which it looks how fragmented memory is, and for requests that nobody woke it for
/// (`HPAGE_FRAG_CHECK_INTERVAL_MSEC`).
const LOOKS_AGAIN: Nanos = Nanos::from_millis(500);
/// After which it does when compaction left memory as fragmented as it was (`<< COMPACT_MAX_DEFER_SHIFT`).
const LOOKS_LATER: Nanos = Nanos::from_secs(32);

impl<M: Machine, T: Trace> Kernel<M, T> {
    /// The thread.
    pub(crate) async fn kcompactd(&self, node: NodeId) {
        let queue = self.shared.compaction.queues[node.index()];
        let mut again = LOOKS_AGAIN;
        loop {
            let request = std::mem::take(&mut self.shared.compaction.requests.borrow_mut()[node.index()]);
            if request.order > Order(0) {
                self.machine().stall(true);
                self.kcompactd_do_work(
                    node,
                    request.order,
                    request.highest_zoneidx.unwrap_or(ZoneKind::Movable),
                )
                .await;
                self.machine().stall(false);
                again = LOOKS_AGAIN;
                continue;
            }
            let timeout = self.score_marks().map(|_| self.timeout(again));
            let woken = self.machine().wait(queue, WaitReason::KcompactdIdle, timeout).await;
            let is_asked = self.shared.compaction.requests.borrow()[node.index()].order > Order(0);
            if woken == Woken::TimedOut && !is_asked {
                again = self.compact_by_itself(node).await;
            }
        }
    }

    /// Between which scores it works by itself; none where it does not.
    fn score_marks(&self) -> Option<ScoreMarks> {
        self.mem(|mem| {
            let has = mem.core.rules().proactive_compaction != ProactiveCompaction::None;
            has.then(|| mem.core.alloc.sysctls().get(Sysctl::CompactionProactiveness))
                .and_then(ScoreMarks::of)
        })
    }

    /// Proactive compaction (`proactive_compact_node`); returns when it looks again.
    async fn compact_by_itself(&self, node: NodeId) -> Nanos {
        let score = || self.mem(|mem| node_score(&mem.core.alloc, node));
        let before = score();
        let Some(marks) = self.score_marks().filter(|marks| before > marks.high) else { return LOOKS_AGAIN };
        if !self.kswapd_sleeps(node) {
            return LOOKS_AGAIN;
        }
        let request = CompactRequest {
            order: self.mem(|mem| mem.core.alloc.block_size().order()),
            want: MigrateType::Movable,
            highest_zoneidx: ZoneKind::Movable,
            flags: AllocFlags::WMARK_MIN,
            priority: CompactPriority::SyncLight,
            direct: false,
            may_fs: true,
            goal: CompactGoal::Score(marks.low),
        };
        for zone in self.mem(|mem| mem.zones_up_to(node, ZoneKind::Movable)) {
            let _ = self.compact_zone(zone, request).await;
        }
        if score() < before { LOOKS_AGAIN } else { LOOKS_LATER }
    }

    /// `wakeup_kcompactd`: notes the request; wakes if some zone can be compacted.
    pub(crate) fn wakeup_kcompactd(&self, node: NodeId, order: Order, highest_zoneidx: ZoneKind) {
        if order == Order(0) || self.mem(|mem| mem.core.rules().compaction) == Compaction::Off {
            return;
        }
        {
            let request = &mut self.shared.compaction.requests.borrow_mut()[node.index()];
            request.order = request.order.max(order);
            request.highest_zoneidx =
                Some(request.highest_zoneidx.map_or(highest_zoneidx, |before| before.min(highest_zoneidx)));
        }
        let queue = self.shared.compaction.queues[node.index()];
        if self.machine().has_waiters(queue) {
            let suits = self
                .mem(|mem| mem.zones_up_to(node, highest_zoneidx))
                .into_iter()
                .any(|zone| self.suits(zone, order, highest_zoneidx));
            if suits {
                self.machine().wake_all(queue);
            }
        }
    }

    fn suits(&self, zone: ZoneId, order: Order, highest_zoneidx: ZoneKind) -> bool {
        let flags = AllocFlags::WMARK_MIN;
        let suits = self.mem(|mem| match mem.core.alloc.keeps_whole() {
            true => suitable_for_whole_blocks(&mem.core.alloc, zone, order, highest_zoneidx),
            false => mem.compaction_suitable(zone, order, flags, highest_zoneidx),
        });
        suits == Suitability::Suitable
    }

    async fn kcompactd_do_work(&self, node: NodeId, order: Order, highest_zoneidx: ZoneKind) {
        self.mem(|mem| mem.core.alloc.events.add(VmEvent::CompactDaemonWake, 1));
        let request = CompactRequest {
            order,
            want: MigrateType::Movable,
            highest_zoneidx,
            flags: AllocFlags::WMARK_MIN,
            priority: CompactPriority::SyncLight,
            direct: false,
            may_fs: true,
            goal: match self.mem(|mem| mem.core.alloc.keeps_whole()) {
                true => CompactGoal::WholeBlocks,
                false => CompactGoal::Block,
            },
        };
        for zone in self.mem(|mem| mem.zones_up_to(node, highest_zoneidx)) {
            if self.mem(|mem| mem.compaction_deferred(zone, order))
                || !self.suits(zone, order, highest_zoneidx)
            {
                continue;
            }
            match self.compact_zone(zone, request).await {
                CompactResult::Success => self.mem(|mem| mem.compaction_succeeded(zone, order, false)),
                CompactResult::PartialSkipped | CompactResult::Complete => {
                    // Pages on per-CPU lists may be all that is missing.
                    self.drain_lists().await;
                    self.mem(|mem| mem.defer_compaction(zone, order));
                }
                _ => {}
            }
        }
    }
}
