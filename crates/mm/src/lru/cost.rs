//! What reclaim of anonymous and of file pages has cost lately, by which the two are weighed (SWAP 1.3, 1.4).
//!
//! ```text
//!   up to 5.7   each lruvec by itself: pages scanned, and those of them that went back to an active list
//!   since 5.8   each lruvec and those of all cgroups above it: I/O; since 6.2 pages scanned in vain, too
//! ```
//! Both forget: what grows beyond a quarter of the lists is halved. Nobody reads any of it while there is
//! no swap area, so nothing is noted then.
//!
//! Left out: that 5.8 alone counts every page that is swapped in; executable pages that stay active. Neighbours:
//! [`crate::reclaim::scan_balance`] for the weights.

use units::{NodeId, Pfn};

use crate::base::event::Trace;
use crate::base::ids::MemcgId;
use crate::base::layout::ZoneKind;
use crate::core::Core;
use crate::lru::lists::{Lru, LruList, ScanCosts};
use crate::version::rules::LruCost;

/// What a page that was written or came back weighs against one that was scanned in vain (6.2).
const IO_WEIGHT: u64 = 32;

/// What a chunk of one list came to, in pages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ChunkCost {
    /// Looked at.
    pub scanned: u64,
    /// Taken off the list.
    pub taken: u64,
    /// Freed.
    pub reclaimed: u64,
    /// Their write-out was started.
    pub pageout: u64,
    /// Back on an active list; of an active list those that were accessed.
    pub rotated: u64,
}

impl Lru {
    /// A chunk of a list was scanned.
    pub(crate) fn note_chunk<T: Trace>(
        &mut self,
        core: &Core<T>,
        (memcg, node, list): (MemcgId, NodeId, LruList),
        chunk: ChunkCost,
    ) {
        if !is_noted(core) {
            return;
        }
        let ChunkCost { scanned, taken, reclaimed, pageout, rotated } = chunk;
        match core.rules().lru_cost {
            LruCost::Rotations => self.note_recent(memcg, node, list.is_file(), [taken, rotated]),
            _ if list.is_active() => {}
            LruCost::Io => self.note_cost(core, memcg, node, list.is_file(), pageout),
            LruCost::IoAndRotations => {
                let cost = (IO_WEIGHT * pageout) + (scanned - reclaimed);
                self.note_cost(core, memcg, node, list.is_file(), cost);
            }
        }
    }

    /// A page came back that had been part of the working set (`lru_note_cost_refault`).
    pub(super) fn note_refault<T: Trace>(&mut self, core: &Core<T>, pfn: Pfn) {
        if !is_noted(core) {
            return;
        }
        let pages = u64::from(core.alloc.frames.pages(pfn));
        let cost = match core.rules().lru_cost {
            LruCost::Rotations => return,
            LruCost::Io => pages,
            LruCost::IoAndRotations => IO_WEIGHT * pages,
        };
        let is_file = LruList::of(core.alloc.frames.flags(pfn)).is_file();
        let (_, node) = core.page_place(pfn);
        self.note_cost(core, core.page_memcg(pfn), node, is_file, cost);
    }

    /// A page comes from a batch to a list (`update_page_reclaim_stat`, up to 5.7): it counts as scanned, and
    /// as rotated if the list is active.
    pub(super) fn note_batched<T: Trace>(&mut self, core: &Core<T>, pfn: Pfn) {
        if !is_noted(core) || core.rules().lru_cost != LruCost::Rotations {
            return;
        }
        let list = LruList::of(core.alloc.frames.flags(pfn));
        if list == LruList::Unevictable {
            return;
        }
        let (_, node) = core.page_place(pfn);
        let recent = [1, u64::from(list.is_active())];
        self.note_recent(core.page_memcg(pfn), node, list.is_file(), recent);
    }

    fn note_recent(&mut self, memcg: MemcgId, node: NodeId, is_file: bool, [scanned, rotated]: [u64; 2]) {
        let index = self.index(memcg, node);
        let costs = &mut self.lruvecs[index].costs;
        costs.scanned[usize::from(is_file)] += scanned;
        costs.rotated[usize::from(is_file)] += rotated;
    }

    /// `lru_note_cost`: adds to the cost of one kind in a cgroup and all above it; where both kinds together are
    /// more than a quarter of the lists by now, each is halved.
    fn note_cost<T: Trace>(
        &mut self,
        core: &Core<T>,
        memcg: MemcgId,
        node: NodeId,
        is_file: bool,
        cost: u64,
    ) {
        let mut next = Some(memcg);
        while let Some(id) = next {
            let of = |list: &LruList| core.cgroups.reclaim_stat(id, node, list.stat());
            let listed: u64 = LruList::EVICTABLE.iter().map(of).sum();
            let index = self.index(id, node);
            let [anon, file] = &mut self.lruvecs[index].costs.cost;
            *(if is_file { &mut *file } else { &mut *anon }) += cost;
            if *anon + *file > listed / 4 {
                *anon /= 2;
                *file /= 2;
            }
            next = core.cgroups[id].parent;
        }
    }

    /// Before pages are weighed by rotations: what grew beyond a quarter of a kind's pages is halved.
    pub(crate) fn forget_rotations(&mut self, memcg: MemcgId, node: NodeId) -> ScanCosts {
        let index = self.index(memcg, node);
        let lruvec = &mut self.lruvecs[index];
        for (kind, lists) in LruList::EVICTABLE.chunks(2).enumerate() {
            let pages: u64 = lists.iter().map(|&list| lruvec.size(list, ZoneKind::Movable)).sum();
            if lruvec.costs.scanned[kind] > pages / 4 {
                lruvec.costs.scanned[kind] /= 2;
                lruvec.costs.rotated[kind] /= 2;
            }
        }
        lruvec.costs
    }
}

/// Whether anybody will ever weigh the two kinds.
#[inline]
pub(super) fn is_noted<T: Trace>(core: &Core<T>) -> bool {
    core.swap.total_pages() > 0
}
