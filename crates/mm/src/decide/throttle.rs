//! Whether a reclaimer is too fast for the disk or for kswapd, and what it waits for (MECHANISMS 4.5,
//! 6.8).
//!
//! ```text
//!   after a pass: kswapd that meets the same pages under writeback again waits for the disk;
//!                 others wait a tick when all that they met is stuck there (5.16+)
//!   after a node: who frees well wakes those who do not; who freed nothing at last waits (5.16+)
//! ```
//! Left out: congestion of devices, which none reports any more. Neighbours: [`super::balance`],
//! [`super::priority`].

use units::NodeId;

use crate::base::event::Trace;
use crate::base::layout::ZoneKind;
use crate::memory::Memory;
use crate::reclaim::run::{Reclaimer, ScanControl};
use crate::version::rules::Throttle;

/// What a reclaimer does after a pass over a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum AfterPass {
    /// Nothing.
    GoOn,
    /// Wait at most 100 ms until enough is written.
    UntilWritten,
    /// Sleep 100 ms: before 5.16 nobody was woken by what was written.
    CongestionWait,
    /// Sleep a tick.
    CongestionTick,
}

/// What a reclaimer does after its passes over a node at one priority.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum AfterNode {
    /// Nothing.
    GoOn,
    /// Wake those who wait as nothing was freed.
    WakeOthers,
    /// Wait a tick, or until others free something.
    Wait,
}

impl<T: Trace> Memory<T> {
    /// What a pass met tells kswapd, and those who reclaim beside it, about the state of writeback
    /// (the end of `shrink_node`).
    pub fn after_pass(&mut self, node: NodeId, sc: &ScanControl) -> AfterPass {
        let has_throttle = self.core.rules().throttle == Throttle::ReclaimThrottle;
        let congested = match sc.reclaimer {
            Reclaimer::Kswapd => {
                self.reclaim.note_pass(node, &sc.met);
                return match (sc.met.immediate > 0, has_throttle) {
                    (false, _) => AfterPass::GoOn,
                    (true, true) => AfterPass::UntilWritten,
                    (true, false) => AfterPass::CongestionWait,
                };
            }
            Reclaimer::Limit => sc.met.all_congested(),
            Reclaimer::Direct => self.reclaim.node(node).congested,
        };
        // Up to 5.15 `wait_iff_congested` looks for a congested device, which none is any more.
        if congested && has_throttle && self.waiting_helps(node) {
            AfterPass::CongestionTick
        } else {
            AfterPass::GoOn
        }
    }

    /// `consider_reclaim_throttle` (5.16+): a run that frees well wakes those that do not; a run near
    /// its last priority without any page waits.
    pub fn after_node(&self, node: NodeId, sc: &ScanControl) -> AfterNode {
        if self.core.rules().throttle == Throttle::CongestionWait || !sc.is_global() {
            return AfterNode::GoOn;
        }
        if sc.nr_reclaimed > (sc.nr_scanned >> 3) {
            return AfterNode::WakeOthers;
        }
        let in_vain = sc.reclaimer == Reclaimer::Direct && sc.priority == 1 && sc.nr_reclaimed == 0;
        if in_vain && self.waiting_helps(node) { AfterNode::Wait } else { AfterNode::GoOn }
    }

    /// Waiting makes no sense when kswapd has given up, or few of the pages are dirty
    /// (`skip_throttle_noprogress`).
    fn waiting_helps(&self, node: NodeId) -> bool {
        !self.is_hopeless(node) && self.is_mostly_dirty(node)
    }

    /// Whether most reclaimable pages of a node are dirty or being written.
    pub(crate) fn is_mostly_dirty(&self, node: NodeId) -> bool {
        let reclaimable = ZoneKind::ALL.iter().map(|&kind| self.zone_reclaimable_pages(node, kind));
        2 * self.cache.pending(node) > reclaimable.sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::ids::MemcgId;
    use crate::decide::scene::{add_dirty_page, machine};
    use crate::reclaim::run::{MAX_RECLAIM_RETRIES, Met};

    const NODE: NodeId = NodeId(0);
    /// All that a pass met is dirty, under writeback, and was met there before.
    const STUCK: Met = Met {
        taken: 8,
        file_taken: 8,
        dirty: 8,
        congested: 8,
        unqueued_dirty: 0,
        writeback: 8,
        immediate: 8,
    };

    fn run(reclaimer: Reclaimer, met: Met) -> ScanControl {
        let sc = match reclaimer {
            Reclaimer::Kswapd => ScanControl::kswapd(ZoneKind::Normal),
            Reclaimer::Direct => ScanControl::direct(ZoneKind::Normal),
            Reclaimer::Limit => ScanControl::limit(MemcgId::ROOT, 1),
        };
        ScanControl { met, ..sc }
    }

    #[test]
    fn kswapd_waits_for_pages_that_it_meets_under_writeback_again() {
        for (kernel, waits) in
            [("linux-5.4", AfterPass::CongestionWait), ("linux-6.1", AfterPass::UntilWritten)]
        {
            let mut mem = machine(kernel);
            assert_eq!(mem.after_pass(NODE, &run(Reclaimer::Kswapd, STUCK)), waits, "{kernel}");
            let once = Met { immediate: 0, ..STUCK };
            assert_eq!(mem.after_pass(NODE, &run(Reclaimer::Kswapd, once)), AfterPass::GoOn);
        }
    }

    #[test]
    fn kswapd_notes_what_holds_for_all_pages_that_a_pass_met() {
        let clean = Met { taken: 8, file_taken: 8, ..Met::default() };
        let flags = |met| {
            let mut mem = machine("linux-6.1");
            let _ = mem.after_pass(NODE, &run(Reclaimer::Kswapd, met));
            let known = *mem.reclaim.node(NODE);
            (known.dirty, known.writeback, known.congested)
        };
        assert_eq!(flags(clean), (false, false, false));
        assert_eq!(flags(STUCK), (false, true, true));
        assert_eq!(flags(Met { writeback: 7, ..STUCK }), (false, false, true), "one is not");
        assert_eq!(flags(Met { congested: 7, ..STUCK }), (false, true, false));
        assert!(flags(Met { unqueued_dirty: 8, ..STUCK }).0, "nobody writes them yet");
        assert_eq!(flags(Met::default()), (true, false, false), "a pass that met nothing says so, too");
    }

    #[test]
    fn others_wait_a_tick_where_kswapd_or_their_own_limit_is_stuck() {
        let after = |kernel, dirty, reclaimer, met| {
            let mut mem = machine(kernel);
            let _ = mem.after_pass(NODE, &run(Reclaimer::Kswapd, STUCK));
            if dirty {
                add_dirty_page(&mut mem);
            }
            mem.after_pass(NODE, &run(reclaimer, met)) == AfterPass::CongestionTick
        };
        assert!(after("linux-6.1", true, Reclaimer::Direct, Met::default()), "kswapd was stuck");
        assert!(after("linux-6.1", true, Reclaimer::Limit, STUCK));
        assert!(!after("linux-6.1", true, Reclaimer::Limit, Met::default()), "its own pages were not");
        assert!(!after("linux-6.1", false, Reclaimer::Direct, STUCK), "little is dirty");
        assert!(!after("linux-5.4", true, Reclaimer::Direct, STUCK), "no device is congested any more");
    }

    #[test]
    fn a_run_without_a_page_waits_near_its_end_and_one_with_enough_wakes_it() {
        let mut mem = machine("linux-6.1");
        add_dirty_page(&mut mem);
        let in_vain = ScanControl { priority: 1, nr_scanned: 800, ..run(Reclaimer::Direct, STUCK) };
        assert_eq!(mem.after_node(NODE, &in_vain), AfterNode::Wait);
        let well = |nr_reclaimed| ScanControl { nr_reclaimed, ..in_vain.clone() };
        assert_eq!(mem.after_node(NODE, &well(100)), AfterNode::GoOn, "an eighth is not enough");
        assert_eq!(mem.after_node(NODE, &well(101)), AfterNode::WakeOthers);
        assert_eq!(mem.after_node(NODE, &ScanControl { priority: 2, ..in_vain.clone() }), AfterNode::GoOn);
        let others = [Reclaimer::Kswapd, Reclaimer::Limit]
            .map(|reclaimer| mem.after_node(NODE, &ScanControl { reclaimer, ..in_vain.clone() }));
        assert_eq!(others, [AfterNode::GoOn; 2]);
        (0..MAX_RECLAIM_RETRIES).for_each(|_| mem.reclaim.note_failure(NODE));
        assert_eq!(mem.after_node(NODE, &in_vain), AfterNode::GoOn, "kswapd has given up");
        assert_eq!(machine("linux-5.4").after_node(NODE, &well(101)), AfterNode::GoOn);
    }
}
