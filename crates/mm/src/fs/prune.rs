//! Scans of the lists of dentries and inodes (`prune_dcache_sb`, `prune_icache_sb`; MECHANISMS 9.4).
//!
//! Neighbours: [`super::inode`] for who is on the lists, [`crate::reclaim::shrinker`] for how much is scanned.

use units::{CpuId, NodeId};

use crate::base::event::Trace;
use crate::base::ids::{MappingId, MemcgId};
use crate::base::vmstat::VmEvent;
use crate::core::Core;
use crate::fs::inode::Vfs;
use crate::lru::lists::Lru;
use crate::pages::cache::PageCache;
use crate::version::rules::InodeLru;

/// What a scan of one of the lists came to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[must_use]
pub struct Pruned {
    /// Dentries or inodes freed.
    pub freed: u64,
    /// Pages (and shadows, which count as pages) that were dropped with them.
    pub stolen: u64,
}

impl Vfs {
    /// Looks at up to `count` dentries of a list, oldest first. A directory that loses its last one goes with
    /// it, and is not counted.
    pub(crate) fn prune_dentries<T: Trace>(
        &mut self,
        core: &mut Core<T>,
        cache: &PageCache,
        cpu: CpuId,
        memcg: MemcgId,
        node: NodeId,
        count: u64,
    ) -> Pruned {
        let mut pruned = Pruned::default();
        for _ in 0..count {
            let Some(id) = self.dentries.lru.first(memcg, node) else { break };
            if self.dentries.get(id).users > 0 {
                self.dentries.unlist(core, id);
            } else if self.dentries.is_referenced(id) {
                self.dentries.rotate(core, id);
            } else {
                let mut parent = self.free_dentry(core, cache, cpu, id);
                while self.dentries.release(parent) == 0 {
                    parent = self.free_dentry(core, cache, cpu, parent);
                }
                pruned.freed += 1;
            }
        }
        pruned
    }

    /// Looks at up to `count` inodes of a list, oldest first. An inode with pages (or from 5.16 on a shadow)
    /// first loses those, and goes at the next look.
    pub(crate) fn prune_inodes<T: Trace>(
        &mut self,
        core: &mut Core<T>,
        lru: &mut Lru,
        cache: &mut PageCache,
        cpu: CpuId,
        memcg: MemcgId,
        node: NodeId,
        count: u64,
        is_kswapd: bool,
    ) -> Pruned {
        let mut pruned = Pruned::default();
        for _ in 0..count {
            let Some(mapping) = self.oldest_inode(memcg, node) else { break };
            if self.is_inode_busy(core, cache, mapping) {
                self.unlist_inode(core, mapping);
            } else if self.is_inode_referenced(mapping) {
                self.rotate_inode(core, mapping);
            } else if holds_pages(core, cache, mapping) {
                pruned.stolen += steal_pages(core, lru, cache, cpu, mapping);
                if cache.trees().pages(mapping) > 0 {
                    self.rotate_inode(core, mapping);
                }
            } else {
                cache.clear(core, cpu, mapping);
                self.free_inode(core, cpu, mapping);
                pruned.freed += 1;
            }
        }
        let event = if is_kswapd { VmEvent::KswapdInodeSteal } else { VmEvent::PgInodeSteal };
        core.alloc.events.add(event, pruned.stolen);
        pruned
    }
}

fn holds_pages<T: Trace>(core: &Core<T>, cache: &PageCache, mapping: MappingId) -> bool {
    if core.rules().inode_lru == InodeLru::WithoutPages {
        !cache.trees().is_empty(mapping)
    } else {
        cache.trees().pages(mapping) > 0
    }
}

/// Drops the clean pages of an inode; a lone shadow counts as one (MECHANISMS-6X 6.6).
fn steal_pages<T: Trace>(
    core: &mut Core<T>,
    lru: &mut Lru,
    cache: &mut PageCache,
    cpu: CpuId,
    mapping: MappingId,
) -> u64 {
    if cache.trees().pages(mapping) == 0 {
        cache.clear(core, cpu, mapping);
        return 1;
    }
    cache.invalidate(core, lru, cpu, mapping, true)
}
