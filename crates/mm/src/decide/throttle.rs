//! Whether a reclaimer is too fast for the disk or for kswapd, and what it waits for (MECHANISMS 4.5,
//! 6.8).
//!
//! ```text
//!   after a pass: kswapd that meets the same pages under writeback again waits for the disk;
//!                 others wait a tick when all that they met is stuck there (5.16+)
//!   after a node: who frees well wakes those who do not; who freed nothing at last waits (5.16+)
//!   before all:   a task waits while the reserve is nearly gone, a kernel thread never (3.6+; MECHANISMS 4.4)
//! ```
//! Left out: after a pass, `wait_iff_congested` of 2.6.36 to 4.20 where a device is congested; that khugepaged
//! is a kernel thread where it reclaims at a limit. Neighbours: [`super::backoff`] for the pauses of older
//! kernels, [`super::balance`], [`super::priority`].

use units::{Nanos, NodeId};

use crate::base::event::Trace;
use crate::base::gfp::Gfp;
use crate::base::layout::ZoneKind;
use crate::base::vmstat::VmEvent;
use crate::memory::Memory;
use crate::reclaim::run::{Reclaimer, SWAP_CLUSTER_MAX, ScanControl};
use crate::version::rules::{KswapdHope, ReserveThrottle, Throttle, Writepage};

/// How long kswapd waits for the disk at most, with and without being woken.
const WRITEBACK_WAIT: Nanos = Nanos::from_millis(100);

/// What a reclaimer does after a pass over a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum AfterPass {
    /// Nothing.
    GoOn,
    /// Wait until enough is written, at most as long.
    UntilWritten(Nanos),
    /// Sleep as long: before 5.16 nobody was woken by what was written.
    CongestionWait(Nanos),
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

/// Reclaimers of a node that wait for writeback (`nr_writeback_throttled`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WritebackWaiters {
    tasks: u64,
    /// Pages written since the first of them waits.
    written: u64,
}

impl WritebackWaiters {
    /// A reclaimer begins to wait.
    pub const fn begin(&mut self) {
        if self.tasks == 0 {
            self.written = 0;
        }
        self.tasks += 1;
    }

    /// A reclaimer waits no longer.
    pub const fn end(&mut self) {
        self.tasks -= 1;
    }

    /// Pages of the node were written; true when all who wait are to be woken, as it is more than a
    /// chunk for each of them (`acct_reclaim_writeback`).
    pub const fn note_written(&mut self, pages: u64) -> bool {
        self.written += pages;
        self.tasks > 0 && self.written > SWAP_CLUSTER_MAX * self.tasks
    }
}

/// What a task does that is about to reclaim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum ReserveNext {
    /// Reclaim.
    GoOn,
    /// Wake kswapd and wait until it wakes those who wait for the reserve, at most as long; then ask
    /// again.
    Wait(Option<Nanos>),
}

/// Without FS a task waits no longer for the reserve: it may hold what kswapd needs.
const LONGEST_WAIT_WITHOUT_FS: Nanos = Nanos::from_secs(1);

/// A task on its way into direct reclaim (`throttle_direct_reclaim`; MECHANISMS 4.4, MECHANISMS-6X 5.3):
/// it waits until kswapd has restored half of the min marks or has given up.
#[derive(Debug, Clone, Copy)]
pub struct ReserveWait {
    node: NodeId,
    gfp: Gfp,
    /// It is a kernel thread, which others may need to go on: it does not wait.
    kernel_thread: bool,
    waits: bool,
    until: Option<Nanos>,
}

impl ReserveWait {
    /// A task, or a kernel thread, that allocates on `node` with `gfp`.
    pub const fn new(node: NodeId, gfp: Gfp, kernel_thread: bool) -> Self {
        Self { node, gfp, kernel_thread, waits: false, until: None }
    }

    /// The next step; `dying`: the task was killed.
    pub fn step<T: Trace>(&mut self, mem: &mut Memory<T>, now: Nanos, dying: bool) -> ReserveNext {
        let is_off = mem.core.rules().reserve_throttle == ReserveThrottle::Off;
        if is_off || self.kernel_thread || dying || mem.allow_direct_reclaim(self.node) {
            return ReserveNext::GoOn;
        }
        if !self.waits {
            self.waits = true;
            mem.core.alloc.events.add(VmEvent::PgScanDirectThrottle, 1);
            self.until = (!self.gfp.has(Gfp::FS)).then(|| now + LONGEST_WAIT_WITHOUT_FS);
        }
        match self.until {
            Some(until) if until <= now => ReserveNext::GoOn,
            until => ReserveNext::Wait(until.map(|until| until - now)),
        }
    }
}

impl<T: Trace> Memory<T> {
    /// Every dirty page that a pass met waits for a congested device: `wait_iff_congested` waits from now on,
    /// until kswapd sleeps (2.6.36, as long as devices are marked; MECHANISMS 4.3). Left out: with several
    /// devices, which of them the pages are on.
    pub fn note_congestion(&mut self, node: NodeId, sc: &ScanControl) {
        if sc.met.dirty > 0 {
            self.reclaim.note_congested(node);
        }
    }

    /// What a pass met tells kswapd, and those who reclaim beside it, about the state of writeback; that
    /// it freed something, slab included, gives kswapd hope again (the end of `shrink_node`; MECHANISMS
    /// 5.3).
    pub fn after_pass(&mut self, node: NodeId, sc: &ScanControl, freed: u64) -> AfterPass {
        if freed > 0 && self.has_hope_again(node, sc) {
            self.reclaim.note_success(node);
        }
        let has_throttle = self.core.rules().throttle == Throttle::ReclaimThrottle;
        let congested = match sc.reclaimer {
            Reclaimer::Kswapd => {
                self.reclaim.note_pass(node, &sc.met);
                if self.core.rules().writepage == Writepage::Anyone {
                    return AfterPass::GoOn; // It wrote them itself; such pages were not yet told apart.
                }
                return match (sc.met.immediate > 0, has_throttle) {
                    (false, _) => AfterPass::GoOn,
                    (true, true) => AfterPass::UntilWritten(WRITEBACK_WAIT),
                    (true, false) => AfterPass::CongestionWait(WRITEBACK_WAIT),
                };
            }
            Reclaimer::Limit => sc.met.all_congested(),
            Reclaimer::Direct => self.reclaim.node(node).congested,
        };
        // Up to 5.15 `wait_iff_congested` looks for a congested device, which none is since 5.0.
        if congested && has_throttle && self.waiting_helps(node, sc) {
            AfterPass::CongestionTick
        } else {
            AfterPass::GoOn
        }
    }

    /// Whether a pass that freed something gives a kswapd hope that gave up: since 7.0 only on a node that is balanced
    /// by now (MECHANISMS-510-72 3.8).
    fn has_hope_again(&self, node: NodeId, sc: &ScanControl) -> bool {
        match self.core.rules().kswapd_hope {
            KswapdHope::AnyProgress => true,
            KswapdHope::Balanced => self.is_balanced(node, sc.order, sc.reclaim_idx),
        }
    }

    /// `consider_reclaim_throttle` (5.16+): a run that frees well wakes those that do not; a run near
    /// its last priority without any page waits.
    pub fn after_node(&self, node: NodeId, sc: &ScanControl) -> AfterNode {
        if self.core.rules().throttle == Throttle::CongestionWait {
            return AfterNode::GoOn;
        }
        if sc.nr_reclaimed > (sc.nr_scanned >> 3) {
            return AfterNode::WakeOthers;
        }
        let in_vain = sc.reclaimer == Reclaimer::Direct && sc.priority == 1 && sc.nr_reclaimed == 0;
        if in_vain && self.waiting_helps(node, sc) { AfterNode::Wait } else { AfterNode::GoOn }
    }

    /// Waiting makes no sense when kswapd has given up, or few of the pages are dirty
    /// (`skip_throttle_noprogress`); a kernel thread does not wait either, as others may need it to go
    /// on (`reclaim_throttle`).
    pub(super) fn waiting_helps(&self, node: NodeId, sc: &ScanControl) -> bool {
        !sc.kernel_thread && !self.is_hopeless(node) && self.is_mostly_dirty(node)
    }

    /// Whether most reclaimable pages of a node are dirty or being written.
    pub(crate) fn is_mostly_dirty(&self, node: NodeId) -> bool {
        let reclaimable = ZoneKind::ALL.iter().map(|&kind| self.zone_reclaimable_pages(node, kind));
        2 * self.cache.pending(node) > reclaimable.sum()
    }
}

#[cfg(test)]
mod tests {
    use std_alloc::vec::Vec;

    use units::{CpuId, Order};

    use super::*;
    use crate::alloc::flags::AllocFlags;
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
        let long = Nanos::from_millis(100);
        for (kernel, waits) in
            [("linux-5.4", AfterPass::CongestionWait(long)), ("linux-6.1", AfterPass::UntilWritten(long))]
        {
            let mut mem = machine(kernel);
            assert_eq!(mem.after_pass(NODE, &run(Reclaimer::Kswapd, STUCK), 0), waits, "{kernel}");
            let once = Met { immediate: 0, ..STUCK };
            assert_eq!(mem.after_pass(NODE, &run(Reclaimer::Kswapd, once), 0), AfterPass::GoOn);
        }
    }

    #[test]
    fn who_waits_for_writeback_is_woken_after_more_than_a_chunk_for_each() {
        let mut waiters = WritebackWaiters::default();
        assert!(!waiters.note_written(1000), "nobody waits");
        waiters.begin();
        assert!(!waiters.note_written(32), "and what was written before does not count");
        waiters.begin();
        assert!(!waiters.note_written(32), "two chunks, two wait");
        assert!(waiters.note_written(1));
        waiters.end();
        assert!(waiters.note_written(1), "65 pages are enough for one as well");
        waiters.end();
        assert!(!waiters.note_written(1000));
    }

    #[test]
    fn kswapd_notes_what_holds_for_all_pages_that_a_pass_met() {
        let clean = Met { taken: 8, file_taken: 8, ..Met::default() };
        let flags = |met| {
            let mut mem = machine("linux-6.1");
            let _ = mem.after_pass(NODE, &run(Reclaimer::Kswapd, met), 0);
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
            let _ = mem.after_pass(NODE, &run(Reclaimer::Kswapd, STUCK), 0);
            if dirty {
                add_dirty_page(&mut mem);
            }
            mem.after_pass(NODE, &run(reclaimer, met), 0) == AfterPass::CongestionTick
        };
        assert!(after("linux-6.1", true, Reclaimer::Direct, Met::default()), "kswapd was stuck");
        assert!(after("linux-6.1", true, Reclaimer::Limit, STUCK));
        assert!(!after("linux-6.1", true, Reclaimer::Limit, Met::default()), "its own pages were not");
        assert!(!after("linux-6.1", false, Reclaimer::Direct, STUCK), "little is dirty");
        assert!(!after("linux-5.4", true, Reclaimer::Direct, STUCK), "no device is congested any more");
    }

    #[test]
    fn what_a_direct_reclaimer_met_itself_is_no_reason_to_wait() {
        let mut mem = machine("linux-6.1");
        add_dirty_page(&mut mem);
        assert_eq!(mem.after_pass(NODE, &run(Reclaimer::Direct, STUCK), 0), AfterPass::GoOn);
        assert!(!mem.reclaim.node(NODE).congested, "only kswapd says what holds for the node");
    }

    #[test]
    fn kernel_threads_wait_for_no_other_reclaimer() {
        let mut mem = machine("linux-6.1");
        let _ = mem.after_pass(NODE, &run(Reclaimer::Kswapd, STUCK), 0);
        add_dirty_page(&mut mem);
        let task = ScanControl { priority: 1, nr_scanned: 800, ..run(Reclaimer::Direct, STUCK) };
        let thread = ScanControl { kernel_thread: true, ..task.clone() };
        assert_eq!(mem.after_pass(NODE, &task, 0), AfterPass::CongestionTick);
        assert_eq!(mem.after_pass(NODE, &thread, 0), AfterPass::GoOn);
        assert_eq!(mem.after_node(NODE, &task), AfterNode::Wait);
        assert_eq!(mem.after_node(NODE, &thread), AfterNode::GoOn);
        let well = ScanControl { nr_reclaimed: 101, ..thread };
        assert_eq!(mem.after_node(NODE, &well), AfterNode::WakeOthers, "but it wakes them");
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
        let at_limit = ScanControl { reclaimer: Reclaimer::Limit, ..well(101) };
        assert_eq!(mem.after_node(NODE, &at_limit), AfterNode::WakeOthers, "whoever frees well");
        assert_eq!(mem.after_node(NODE, &well(1)), AfterNode::GoOn, "a page is some progress");
        for priority in [0, 2] {
            let other = ScanControl { priority, ..in_vain.clone() };
            assert_eq!(mem.after_node(NODE, &other), AfterNode::GoOn, "only once in a run");
        }
        let others = [Reclaimer::Kswapd, Reclaimer::Limit]
            .map(|reclaimer| mem.after_node(NODE, &ScanControl { reclaimer, ..in_vain.clone() }));
        assert_eq!(others, [AfterNode::GoOn; 2]);
        (0..MAX_RECLAIM_RETRIES).for_each(|_| mem.reclaim.note_failure(NODE));
        assert_eq!(mem.after_node(NODE, &in_vain), AfterNode::GoOn, "kswapd has given up");
        assert_eq!(machine("linux-5.4").after_node(NODE, &well(101)), AfterNode::GoOn);
    }

    /// MECHANISMS-510-72 3.8.
    #[test]
    fn since_7_0_kswapd_has_hope_again_only_on_a_node_that_is_balanced() {
        for (kernel, hopeless) in [("linux-6.12", false), ("linux-6.12+kswapd-hope-needs-balance", true)] {
            let mut mem = machine(kernel);
            (0..MAX_RECLAIM_RETRIES).for_each(|_| mem.reclaim.note_failure(NODE));
            let mut taken = Vec::new();
            let flags = AllocFlags::NO_WATERMARKS;
            while let Some(pfn) = mem.core.alloc.alloc(CpuId(0), Gfp::KERNEL, Order(0), flags).page {
                taken.push(pfn);
            }
            let direct = run(Reclaimer::Direct, Met::default());
            assert_eq!(mem.after_pass(NODE, &direct, 1), AfterPass::GoOn);
            assert_eq!(mem.is_hopeless(NODE), hopeless, "{kernel}");
            taken.into_iter().for_each(|pfn| mem.core.alloc.free(CpuId(0), pfn, Order(0)));
            assert_eq!(mem.after_pass(NODE, &direct, 0), AfterPass::GoOn);
            assert_eq!(mem.is_hopeless(NODE), hopeless, "{kernel}: who frees nothing gives no hope");
            assert_eq!(mem.after_pass(NODE, &direct, 1), AfterPass::GoOn);
            assert!(!mem.is_hopeless(NODE), "{kernel}");
        }
    }

    #[test]
    fn whoever_frees_something_on_the_node_gives_kswapd_hope_again() {
        for reclaimer in [Reclaimer::Kswapd, Reclaimer::Direct, Reclaimer::Limit] {
            let mut mem = machine("linux-6.1");
            (0..MAX_RECLAIM_RETRIES).for_each(|_| mem.reclaim.note_failure(NODE));
            assert_eq!(mem.after_pass(NODE, &run(reclaimer, Met::default()), 0), AfterPass::GoOn);
            assert!(mem.is_hopeless(NODE), "{reclaimer:?}: nothing was freed");
            assert_eq!(mem.after_pass(NODE, &run(reclaimer, Met::default()), 1), AfterPass::GoOn);
            assert_eq!(mem.reclaim.node(NODE).kswapd_failures, 0, "{reclaimer:?}");
        }
    }
}
