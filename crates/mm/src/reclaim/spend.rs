//! How the quotas of a cgroup are spent: chunk by chunk, in rounds over its lists (MECHANISMS 6.6, SWAP 1.5,
//! 1.6).
//!
//! ```text
//!   round:  <= 32 pages of inactive anon, active anon, inactive file, active file
//!   target met: the kind of which less is left is let be; of the other no larger part is scanned than was
//!               of this one; a round later it is over, up to 6.0 when all quotas are spent
//!   at last: 32 active anonymous pages, if there are too few inactive ones
//! ```
//! Neighbours: [`crate::reclaim::pass`] cuts the quotas, [`crate::reclaim::page`] decides on each page of a chunk.

use std_alloc::vec::Vec;

use units::{CpuId, NodeId};

use crate::base::event::Trace;
use crate::base::ids::MemcgId;
use crate::core::Core;
use crate::lru::cost::ChunkCost;
use crate::lru::lists::{Lru, LruList};
use crate::pages::anon::AnonMaps;
use crate::pages::cache::PageCache;
use crate::reclaim::pass::{LruvecScan, may_deactivate};
use crate::reclaim::run::{ChunkReport, DEF_PRIORITY, Reclaimer, SWAP_CLUSTER_MAX, ScanControl};
use crate::reclaim::scan_balance::anon_wants_aging;
use crate::reclaim::state::Reclaim;
use crate::version::rules::{Aging, QuotaRest, ScanStop, SmallScans, SparedScan};

/// Lists of anonymous and of file pages, as places in a quota.
const KINDS: [[usize; 2]; 2] = [
    [LruList::InactiveAnon as usize, LruList::ActiveAnon as usize],
    [LruList::InactiveFile as usize, LruList::ActiveFile as usize],
];

impl Reclaim {
    /// Spends the next chunk of a cgroup's quotas; none when they are spent or enough is freed.
    pub fn shrink_chunk<T: Trace>(
        &mut self,
        core: &mut Core<T>,
        lru: &mut Lru,
        cache: &mut PageCache,
        anon: &mut AnonMaps,
        cpu: CpuId,
        scan: &mut LruvecScan,
        sc: &mut ScanControl,
    ) -> Option<ChunkReport> {
        if scan.aged {
            return None;
        }
        loop {
            while scan.next < LruList::EVICTABLE.len() {
                let list = LruList::EVICTABLE[scan.next];
                scan.next += 1;
                let left = &mut scan.quota[list as usize];
                let chunk = (*left).min(SWAP_CLUSTER_MAX);
                *left -= chunk;
                if chunk > 0 {
                    // Up to 2.6.39 the last chunk of an inactive list is a whole one, too.
                    let whole = core.rules().small_scans == SmallScans::Saved && !list.is_active();
                    let chunk = if whole { SWAP_CLUSTER_MAX } else { chunk };
                    return Some(self.shrink_list(core, lru, cache, anon, cpu, list, chunk, scan, sc));
                }
            }
            scan.next = 0;
            if ends_round(core, scan, sc) || scan.is_spent() {
                scan.aged = true;
                let (memcg, node) = (scan.memcg, scan.node);
                let wants_aging = anon_wants_aging(core, lru, memcg, node, sc);
                return wants_aging.then(|| self.age_anon(core, lru, cache, cpu, memcg, node, sc));
            }
        }
    }

    fn shrink_list<T: Trace>(
        &mut self,
        core: &mut Core<T>,
        lru: &mut Lru,
        cache: &mut PageCache,
        anon: &mut AnonMaps,
        cpu: CpuId,
        list: LruList,
        chunk: u64,
        scan: &mut LruvecScan,
        sc: &mut ScanControl,
    ) -> ChunkReport {
        let (memcg, node) = (scan.memcg, scan.node);
        let queue = lru.queue_of_victims(core.rules().lru, (memcg, node, list), sc.reclaim_idx);
        if queue.is_none() && list.is_active() && may_deactivate(core, lru, list, scan, sc) {
            let report = self.shrink_active(core, lru, cache, cpu, list, chunk, memcg, node, sc);
            lru.note_chunk(core, (memcg, node, list), cost_of(list, &report));
            return report;
        }
        if queue.is_none() && list.is_active() {
            sc.skipped_deactivate = true;
            if core.rules().spared_scan == SparedScan::Dropped {
                return ChunkReport::default();
            }
        }
        let list = queue.unwrap_or(list.inactive());
        if lru.has_policies() && list.is_file() {
            return self.shrink_by_policy(core, lru, cache, anon, cpu, chunk, scan, sc);
        }
        let report = self.shrink_inactive(core, lru, cache, anon, cpu, list, chunk, scan, sc);
        note_inactive(core, lru, list, &report, scan, sc);
        report
    }

    /// Frees file pages that the cgroup's policy proposes, wherever they lie, instead of a chunk of inactive ones; of
    /// these as many as are missing then.
    #[cold]
    fn shrink_by_policy<T: Trace>(
        &mut self,
        core: &mut Core<T>,
        lru: &mut Lru,
        cache: &mut PageCache,
        anon: &mut AnonMaps,
        cpu: CpuId,
        chunk: u64,
        scan: &mut LruvecScan,
        sc: &mut ScanControl,
    ) -> ChunkReport {
        let list = LruList::InactiveFile;
        let mut report = self.shrink_proposed(core, lru, cache, anon, cpu, chunk, scan, sc);
        note_inactive(core, lru, list, &report, scan, sc);
        let left = chunk.saturating_sub(u64::from(report.reclaimed));
        if left > 0 {
            let own = self.shrink_inactive(core, lru, cache, anon, cpu, list, left, scan, sc);
            note_inactive(core, lru, list, &own, scan, sc);
            report.add(&own);
        }
        report
    }

    /// Deactivates a chunk of anonymous pages for the balance of their lists alone.
    pub fn age_anon<T: Trace>(
        &mut self,
        core: &mut Core<T>,
        lru: &mut Lru,
        cache: &mut PageCache,
        cpu: CpuId,
        memcg: MemcgId,
        node: NodeId,
        sc: &ScanControl,
    ) -> ChunkReport {
        let list = LruList::ActiveAnon;
        let report = self.shrink_active(core, lru, cache, cpu, list, SWAP_CLUSTER_MAX, memcg, node, sc);
        lru.note_chunk(core, (memcg, node, list), cost_of(list, &report));
        report
    }

    /// The cgroups of which kswapd deactivates a chunk of anonymous pages before a pass: all, if the whole machine has
    /// too few inactive ones; up to 5.4 those that have (`age_active_anon`).
    pub fn anon_to_age<T: Trace>(
        &self,
        core: &Core<T>,
        lru: &Lru,
        node: NodeId,
        sc: &ScanControl,
    ) -> Vec<MemcgId> {
        let wants = |memcg| anon_wants_aging(core, lru, memcg, node, sc);
        let at_root = core.rules().aging == Aging::Root;
        if at_root && !wants(MemcgId::ROOT) {
            return Vec::new();
        }
        core.cgroups.subtree(MemcgId::ROOT).iter().copied().filter(|&id| at_root || wants(id)).collect()
    }
}

/// What a chunk of pages that could be freed came to.
fn note_inactive<T: Trace>(
    core: &Core<T>,
    lru: &mut Lru,
    list: LruList,
    report: &ChunkReport,
    scan: &mut LruvecScan,
    sc: &mut ScanControl,
) {
    lru.note_chunk(core, (scan.memcg, scan.node, list), cost_of(list, report));
    scan.reclaimed += u64::from(report.reclaimed);
    sc.nr_reclaimed += u64::from(report.reclaimed);
}

fn cost_of(list: LruList, report: &ChunkReport) -> ChunkCost {
    ChunkCost {
        scanned: u64::from(report.scanned),
        taken: u64::from(report.taken.pages),
        reclaimed: u64::from(report.reclaimed),
        pageout: u64::from(report.pageout),
        rotated: u64::from(if list.is_active() { report.referenced } else { report.activated }),
    }
}

/// Whether a visit is over after a round, before its quotas are spent. With some of both kinds left they
/// are brought into proportion first.
fn ends_round<T: Trace>(core: &Core<T>, scan: &mut LruvecScan, sc: &ScanControl) -> bool {
    if core.rules().scan_stop == ScanStop::AfterChunk {
        let goes_on = sc.reclaimer == Reclaimer::Kswapd || sc.priority == DEF_PRIORITY;
        return sc.nr_reclaimed > SWAP_CLUSTER_MAX && !goes_on;
    }
    if scan.reclaimed < sc.nr_to_reclaim || scan.finish_quota {
        return false;
    }
    if !scan.bring_into_proportion() {
        return true;
    }
    scan.finish_quota = core.rules().quota_rest == QuotaRest::Spent;
    false
}

impl LruvecScan {
    /// Whether no list that keeps a visit going has quota left: the active anonymous pages alone do not.
    fn is_spent(&self) -> bool {
        let of_active_anon = self.quota[LruList::ActiveAnon as usize];
        self.quota.iter().sum::<u64>() == of_active_anon
    }

    /// Drops what is left of the kind of which less is left, and of the other so much that no larger part of it
    /// is scanned; false when one of the kinds has nothing left.
    fn bring_into_proportion(&mut self) -> bool {
        let sum = |of: &[u64; 4], kind: [usize; 2]| kind.iter().map(|&list| of[list]).sum::<u64>();
        let [anon, file] = KINDS.map(|kind| sum(&self.quota, kind));
        if anon == 0 || file == 0 {
            return false;
        }
        let (smaller, larger) = if file > anon { (KINDS[0], KINDS[1]) } else { (KINDS[1], KINDS[0]) };
        let left = sum(&self.quota, smaller) * 100 / (sum(&self.due, smaller) + 1);
        for list in smaller {
            self.quota[list] = 0;
        }
        for list in larger {
            let done = self.due[list] - self.quota[list];
            let wanted = self.due[list] * (100 - left) / 100;
            self.quota[list] = wanted - wanted.min(done);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn visit(due: [u64; 4], left: [u64; 4]) -> LruvecScan {
        LruvecScan {
            memcg: MemcgId::ROOT,
            node: NodeId(0),
            quota: left,
            due,
            reclaimed: 0,
            finish_quota: false,
            next: 0,
            aged: false,
        }
    }

    /// What is left of the quotas after the step, if it is made.
    fn step(due: [u64; 4], left: [u64; 4]) -> Option<[u64; 4]> {
        let mut scan = visit(due, left);
        scan.bring_into_proportion().then_some(scan.quota)
    }

    #[test]
    fn the_kind_of_which_less_is_left_is_dropped_and_the_other_cut_to_its_part() {
        // After a round: a third of 100 anonymous pages was scanned, so a third of the files is; 32 of each
        // list were.
        assert_eq!(step([100, 0, 300, 100], [68, 0, 268, 68]), Some([0, 0, 99 - 32, 33 - 32]));
        // Files are fewer: 14 of 14 are done, two lists of anonymous pages go on to their end.
        assert_eq!(step([400, 80, 14, 33], [368, 48, 0, 1]), Some([360, 46, 0, 0]));
        // As many of both: files are dropped.
        assert_eq!(step([64, 0, 64, 0], [32, 0, 32, 0]), Some([0, 0, 0, 0]));
        // What was scanned is more than its part: nothing is left.
        assert_eq!(step([320, 0, 33, 0], [40, 0, 30, 0]), Some([0, 0, 0, 0]));
        assert_eq!(step([33, 0, 40, 0], [32, 0, 8, 0]), Some([26 - 1, 0, 0, 0]));
    }

    #[test]
    fn with_one_kind_spent_there_is_no_proportion() {
        assert_eq!(step([100, 0, 300, 0], [0, 0, 204, 0]), None);
        assert_eq!(step([100, 20, 300, 0], [36, 0, 0, 0]), None);
        assert_eq!(step([0; 4], [0; 4]), None);
    }

    #[test]
    fn active_anonymous_pages_alone_do_not_keep_a_visit_going() {
        assert!(visit([9; 4], [0, 9, 0, 0]).is_spent());
        for list in [0, 2, 3] {
            let mut left = [0, 9, 0, 0];
            left[list] = 1;
            assert!(!visit([9; 4], left).is_spent());
        }
    }
}
