//! How the quotas of a cgroup are spent: chunk by chunk, in rounds over its lists (MECHANISMS 6.6).
//!
//! Neighbours: [`crate::reclaim::pass`] cuts the quotas, [`crate::reclaim::page`] decides on each page of a chunk.

use units::CpuId;

use crate::base::event::Trace;
use crate::core::Core;
use crate::lru::lists::{Lru, LruList};
use crate::pages::anon::AnonMaps;
use crate::pages::cache::PageCache;
use crate::reclaim::pass::{LruvecScan, has_enough, may_deactivate};
use crate::reclaim::run::{ChunkReport, SWAP_CLUSTER_MAX, ScanControl};
use crate::reclaim::state::Reclaim;
use crate::version::rules::{SmallScans, SparedScan};

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
            if has_enough(core, scan, sc) || scan.quota.iter().all(|&left| left == 0) {
                return None;
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
        if list.is_active() && may_deactivate(core, lru, scan, sc) {
            return self.shrink_active(core, lru, cpu, list, chunk, scan, sc);
        }
        if list.is_active() {
            sc.skipped_deactivate = true;
            if core.rules().spared_scan == SparedScan::Dropped {
                return ChunkReport::default();
            }
        }
        let report = self.shrink_inactive(core, lru, cache, anon, cpu, list.inactive(), chunk, scan, sc);
        scan.reclaimed += u64::from(report.reclaimed);
        sc.nr_reclaimed += u64::from(report.reclaimed);
        report
    }
}
