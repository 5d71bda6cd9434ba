//! Pages that the policy of a cgroup proposes for eviction ([`crate::lru::cache_ext::hooks`]).
//!
//! A policy is asked where the kernel would take a chunk off the tail of the inactive list of files, and its proposals
//! go that way from there: those that are dirty, locked or accessed through page tables stay, for the same reasons and
//! with the same consequences, on the kernel's lists as well as on the policy's. They count as scanned. How much is
//! taken of which cgroup, and when active pages are deactivated, the kernel decides as ever. Left out: what a policy's
//! own work takes; looking at its lists costs no time.
//!
//! Next: [`super::spend`], which goes on with the kernel's own lists where too few pages came free.

use units::CpuId;

use crate::base::event::Trace;
use crate::core::Core;
use crate::lru::lists::{Lru, LruList};
use crate::pages::anon::AnonMaps;
use crate::pages::cache::PageCache;
use crate::reclaim::pass::LruvecScan;
use crate::reclaim::run::{ChunkReport, ScanControl};
use crate::reclaim::state::Reclaim;

impl Reclaim {
    /// Asks the policy of a cgroup for a chunk, and frees what can be freed of what it names.
    pub(super) fn shrink_proposed<T: Trace>(
        &mut self,
        core: &mut Core<T>,
        lru: &mut Lru,
        cache: &mut PageCache,
        anon: &mut AnonMaps,
        cpu: CpuId,
        chunk: u64,
        scan: &LruvecScan,
        sc: &mut ScanControl,
    ) -> ChunkReport {
        lru.drain(core, cpu);
        let at = (scan.memcg, scan.node);
        lru.take_proposed(core, at, sc.reclaim_idx, chunk, &mut self.isolated);
        let taken = self.isolated.iter().map(|&pfn| core.alloc.frames.pages(pfn)).sum();
        if taken == 0 {
            return ChunkReport::default();
        }
        // Wherever they lay: they are looked at as inactive ones are.
        self.shrink_taken(core, lru, cache, anon, cpu, LruList::InactiveFile, (taken, taken), scan, sc)
    }
}
