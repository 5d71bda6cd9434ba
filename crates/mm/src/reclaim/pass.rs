//! How much of which list a reclaim pass looks at (MECHANISMS 6.4 to 6.6, 7.2, 7.3,
//! MECHANISMS-6X 3).
//!
//! A *run* (one direct reclaim, one limit reclaim, one kswapd balance) goes through priorities 12
//! to 0. A *pass* visits the cgroups below the run's target once at one priority. For each it cuts
//! *quotas* from the list sizes, size >> priority, and spends them in chunks of 32 pages.
//!
//! Whether active pages may be deactivated is decided once per pass at the target with
//! `root-aging`, for each cgroup by itself without. [`crate::version::rules::FileBalance`] says when lists are
//! opened, [`crate::version::rules::ScanStop`] when a cgroup is left before its quotas are spent, [`SmallScans`]
//! what quotas below a chunk come to.
//!
//! Left out: lists by zone (up to 4.7; here by node, which is the same on a node of
//! one zone). Neighbours: [`crate::reclaim::scan_balance`] for anonymous against file pages,
//! [`crate::reclaim::spend`] spends the quotas.

use units::{NodeId, Order};

use crate::alloc::flags::AllocFlags;
use crate::alloc::pcp::COSTLY_ORDER;
use crate::alloc::suitable::{Suitability, compact_gap, suitable};
use crate::base::event::{Reason, Trace, TraceEvent};
use crate::base::ids::MemcgId;
use crate::base::vmstat::MemcgStat;
use crate::cgroup::protection::Protection;
use crate::cgroup::walk::{Walk, WalkKind};
use crate::core::Core;
use crate::lru::lists::{Lru, LruList};
use crate::reclaim::run::{DEF_PRIORITY, Met, Reclaimer, SWAP_CLUSTER_MAX, ScanControl};
use crate::reclaim::scan_balance::{
    can_age_anon, inactive_is_low, is_anon_low, look_at_target, scan_balance,
};
use crate::reclaim::state::Reclaim;
use crate::version::rules::{Aging, Compaction, MemcgWalk, ProtectedScan, SmallScans};

/// Quotas of one cgroup in one pass, and how far they are spent (`shrink_lruvec`).
#[derive(Debug, Clone, Copy)]
pub struct LruvecScan {
    pub(super) memcg: MemcgId,
    pub(super) node: NodeId,
    /// Pages left to look at, by [`LruList::EVICTABLE`].
    pub(super) quota: [u64; 4],
    /// The same when the visit began.
    pub(super) due: [u64; 4],
    pub(super) reclaimed: u64,
    pub(super) finish_quota: bool,
    /// Next list of the current round.
    pub(super) next: usize,
    /// Its anonymous pages were looked at once more, for their balance.
    pub(super) aged: bool,
}

impl LruvecScan {
    /// A visit that begins, with these quotas; `aged`: it is over at once.
    const fn new(memcg: MemcgId, node: NodeId, quota: [u64; 4], finish_quota: bool, aged: bool) -> Self {
        Self { memcg, node, quota, due: quota, reclaimed: 0, finish_quota, next: 0, aged }
    }

    /// Pages of `list`, one of [`LruList::EVICTABLE`], that are still to be looked at.
    pub fn left(&self, list: LruList) -> u64 {
        self.quota[list as usize]
    }
}

impl Reclaim {
    /// Starts a pass over `node`: decides whether active file pages may be deactivated
    /// (`prepare_scan_count`), and returns the walk through the cgroups.
    pub fn begin_pass<T: Trace>(
        &mut self,
        core: &mut Core<T>,
        lru: &Lru,
        node: NodeId,
        sc: &mut ScanControl,
    ) -> Walk {
        sc.met = Met::default();
        core.cgroups.flush_for_reclaim(sc.target);
        if core.rules().aging == Aging::Root {
            let refaults = core.cgroups.reclaim_stat(sc.target, node, MemcgStat::WorkingsetActivateFile);
            let snapshot = lru.lruvec(sc.target, node).file_refaults();
            let inactive = core.cgroups.reclaim_stat(sc.target, node, MemcgStat::InactiveFile);
            let active = core.cgroups.reclaim_stat(sc.target, node, MemcgStat::ActiveFile);
            sc.may_deactivate_file = sc.force_deactivate
                || refaults != snapshot
                || inactive_is_low(core.rules().file_balance, inactive, active);
            sc.at_target = look_at_target(core, lru, node, sc);
        }
        Walk::new(sc.target, node, walk_kind(core, sc))
    }

    /// The next cgroup of a pass; none when the pass is over, also because it has enough where
    /// the kernel stops in mid-tree.
    pub fn next_memcg<T: Trace>(
        &mut self,
        core: &Core<T>,
        walk: &mut Walk,
        visited: Option<MemcgId>,
        sc: &ScanControl,
    ) -> Option<MemcgId> {
        let stops_early = match (core.rules().memcg_walk, sc.reclaimer) {
            (MemcgWalk::Full, _) | (_, Reclaimer::Kswapd) => false,
            (MemcgWalk::Shared, reclaimer) => reclaimer == Reclaimer::Limit,
            (MemcgWalk::Partial, _) => !sc.memcg_full_walk,
        };
        let has_enough = stops_early && sc.nr_reclaimed >= sc.nr_to_reclaim;
        if visited.is_some() && has_enough {
            return None;
        }
        walk.next(&core.cgroups, &mut self.walk_positions, !has_enough)
    }
}

impl Reclaim {
    /// Whether a cgroup's protection lets it be visited.
    pub(super) fn may_visit<T: Trace>(
        &self,
        core: &mut Core<T>,
        memcg: MemcgId,
        node: NodeId,
        sc: &mut ScanControl,
    ) -> bool {
        let scan = sc.scan_for();
        let tell = |core: &mut Core<T>, reason| {
            core.tell(|_| TraceEvent::MemcgProtected { memcg, nid: node, reason, scan });
        };
        match core.cgroups.protection(sc.target, memcg) {
            Protection::BelowMin => {
                tell(core, Reason::BelowMin);
                return false;
            }
            Protection::BelowLow => {
                if !sc.memcg_low_reclaim {
                    sc.memcg_low_skipped = true;
                    tell(core, Reason::BelowLow);
                    return false;
                }
                core.cgroups.count_event(memcg, |events| &mut events.low);
                tell(core, Reason::LowOverridden);
            }
            Protection::None => {}
        }
        true
    }

    /// Starts on one cgroup: checks its protection and cuts its quotas. None when it is protected.
    pub fn begin_lruvec<T: Trace>(
        &mut self,
        core: &mut Core<T>,
        lru: &mut Lru,
        memcg: MemcgId,
        node: NodeId,
        sc: &mut ScanControl,
    ) -> Option<LruvecScan> {
        if !self.may_visit(core, memcg, node, sc) {
            return None;
        }
        let protection = protection_from_scan(core, memcg, sc);
        let lruvec = lru.lruvec(memcg, node);
        let mut sizes = [0; 4];
        for list in LruList::EVICTABLE {
            sizes[list as usize] = lruvec.size(list, sc.reclaim_idx);
        }
        let saves_up = core.rules().small_scans == SmallScans::Saved;
        if sizes == [0; 4] && protection == 0 && !saves_up && !can_age_anon(core) {
            // There is nothing to look at, and nothing to remember.
            return Some(LruvecScan::new(memcg, node, [0; 4], false, true));
        }
        let balance = scan_balance(core, lru, memcg, node, sc);
        let online = core.cgroups[memcg].online;
        let mut quota = [0; 4];
        for (list, size) in LruList::EVICTABLE.into_iter().zip(sizes) {
            let scan = if size == 0 && protection == 0 {
                0
            } else {
                let due = quota_of(core, memcg, size, protection, sc.priority);
                balance.scan(list.is_file(), due, online)
            };
            quota[list as usize] =
                if saves_up { save_up(self.saved_scan(list, memcg, node), scan) } else { scan };
        }
        let finish_quota = sc.reclaimer == Reclaimer::Direct && sc.priority == DEF_PRIORITY;
        Some(LruvecScan::new(memcg, node, quota, finish_quota, false))
    }
}

/// `nr_scan_try_batch`: what was saved and `scan` together, if they make a chunk; else nothing, and it is
/// saved.
fn save_up(saved: &mut u64, scan: u64) -> u64 {
    *saved += scan;
    if *saved < SWAP_CLUSTER_MAX { 0 } else { core::mem::take(saved) }
}

/// Pages that a cgroup is protected by while its lists are scanned: 0 for the target itself. One that
/// is scanned less for its `memory.low` counts as skipped since 5.14.
pub(super) fn protection_from_scan<T: Trace>(core: &Core<T>, memcg: MemcgId, sc: &mut ScanControl) -> u64 {
    let (rule, group) = (core.rules().protected_scan, &core.cgroups[memcg]);
    let low = if sc.memcg_low_reclaim { 0 } else { group.effective_low };
    if rule == ProtectedScan::ScaledAndSkipped && low > group.effective_min {
        sc.memcg_low_skipped = true;
    }
    if rule == ProtectedScan::Whole { 0 } else { low.max(group.effective_min) }
}

/// `get_scan_count` for one list: protected pages are taken off first, in the list's proportion.
pub(super) fn quota_of<T: Trace>(
    core: &Core<T>,
    memcg: MemcgId,
    size: u64,
    protection: u64,
    priority: u8,
) -> u64 {
    let group = &core.cgroups[memcg];
    let scan = if protection > 0 {
        // A group without pages keeps the protection that it had.
        let mut whole = u128::from(group.memory.usage.max(protection));
        if core.rules().protected_scan == ProtectedScan::ScaledAndSkipped {
            whole += 1;
        }
        let protected = u128::from(size) * u128::from(protection) / whole;
        let protected = u64::try_from(protected).expect("a part of the list's size");
        (size - protected).max(SWAP_CLUSTER_MAX)
    } else {
        size
    };
    let quota = scan >> priority;
    if quota == 0 && !group.online { size.min(SWAP_CLUSTER_MAX) } else { quota }
}

/// Whether an active list of this cgroup may be opened in this pass.
pub(super) fn may_deactivate<T: Trace>(
    core: &Core<T>,
    lru: &Lru,
    list: LruList,
    scan: &LruvecScan,
    sc: &ScanControl,
) -> bool {
    if sc.force_deactivate {
        return true;
    }
    if core.rules().aging == Aging::Root {
        return if list.is_file() { sc.may_deactivate_file } else { sc.at_target.may_deactivate_anon };
    }
    let lruvec = lru.lruvec(scan.memcg, scan.node);
    let active = lruvec.size(list, sc.reclaim_idx);
    let inactive = lruvec.size(list.inactive(), sc.reclaim_idx);
    if !list.is_file() {
        return is_anon_low(inactive, active);
    }
    let refaults = core.cgroups.local_stat(scan.memcg, scan.node, MemcgStat::WorkingsetActivateFile);
    if refaults != lruvec.file_refaults() {
        return active > 0;
    }
    inactive_is_low(core.rules().file_balance, inactive, active)
}

fn walk_kind<T: Trace>(core: &Core<T>, sc: &ScanControl) -> WalkKind {
    match core.rules().memcg_walk {
        MemcgWalk::Partial if sc.reclaimer != Reclaimer::Kswapd && !sc.memcg_full_walk => {
            WalkKind::Saved { key: 0 }
        }
        MemcgWalk::Shared => WalkKind::Saved { key: sc.priority },
        MemcgWalk::Partial | MemcgWalk::Full => WalkKind::Full,
    }
}

/// `should_continue_reclaim`: a pass over `node` for a block freed `freed` pages; another one at
/// the same priority is due if compaction cannot work yet and there is enough to reclaim.
pub fn should_continue<T: Trace>(
    core: &Core<T>,
    lru: &Lru,
    node: NodeId,
    sc: &ScanControl,
    freed: u64,
) -> bool {
    let for_compaction = sc.order > Order(0) && (sc.order > COSTLY_ORDER || sc.priority < DEF_PRIORITY - 2);
    if !for_compaction || freed == 0 || core.rules().compaction == Compaction::Off {
        return false;
    }
    let served = core.alloc.nodes()[node.index()]
        .zones
        .iter()
        .filter(|&&id| core.alloc.zone(id).kind <= sc.reclaim_idx)
        .any(|&id| {
            let flags = AllocFlags::WMARK_MIN;
            suitable(&core.alloc, id, sc.order, flags, sc.reclaim_idx) != Suitability::Skip
        });
    let mut inactive = lru.node_pages(LruList::InactiveFile, node);
    if core.swap.free_pages() > 0 {
        inactive += lru.node_pages(LruList::InactiveAnon, node);
    }
    !served && inactive > compact_gap(core.rules().compact_gap, sc.order)
}
