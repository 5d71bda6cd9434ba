//! Tree leaves that hold nothing but shadows, and giving them back (MECHANISMS 7.1).
//!
//! Kept are as many as an eighth of the cgroup's own pages. Left out: that the kernel isolates a leaf
//! under the list's lock first. Neighbours: [`crate::reclaim::shrinker`] decides how many are looked at.

use units::{CpuId, PAGE_SIZE};

use crate::base::event::Trace;
use crate::base::ids::{MappingId, MemcgId};
use crate::base::vmstat::MemcgStat;
use crate::core::Core;
use crate::lru::lists::LruList;
use crate::pages::cache::PageCache;

/// A leaf that was freed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub(crate) struct LeafFreed {
    /// The mapping that lost its last node, if it has no page either: its inode may go on the LRU now.
    pub emptied: Option<MappingId>,
}

impl PageCache {
    /// Objects that the shadow shrinker may free for `memcg`: leaves beyond an eighth of the
    /// cgroup's own pages (`count_shadow_nodes`).
    pub(crate) fn freeable_shadow_leaves<T: Trace>(&self, core: &Core<T>, memcg: MemcgId) -> u64 {
        let leaves = u64::from(self.trees.shadow_list(memcg).len());
        if leaves == 0 {
            return 0;
        }
        let (mut lru, mut slab) = (0, 0);
        for node in core.nodes() {
            let local = core.cgroups.local_stats(memcg, node);
            lru += LruList::ALL.iter().map(|list| local[list.stat() as usize]).sum::<u64>();
            slab += local[MemcgStat::SlabReclaimableBytes as usize];
            slab += local[MemcgStat::SlabUnreclaimableBytes as usize];
        }
        leaves.saturating_sub((lru + (slab / PAGE_SIZE)) >> 3)
    }

    /// Frees the oldest leaf of `memcg` that holds only shadows (`scan_shadow_nodes`); none when there is
    /// none.
    pub(crate) fn shrink_shadow_leaf<T: Trace>(
        &mut self,
        core: &mut Core<T>,
        cpu: CpuId,
        memcg: MemcgId,
    ) -> Option<LeafFreed> {
        let oldest = self.trees.shadow_list(memcg).first()?;
        let mapping = MappingId(self.trees.leaves[oldest as usize].mapping);
        self.clear_shadows(core, cpu, oldest);
        let is_empty = self.trees.is_shrinkable(mapping) && self.first_slot(mapping).is_none();
        Some(LeafFreed { emptied: is_empty.then_some(mapping) })
    }
}
