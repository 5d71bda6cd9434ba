//! Page cache trees: which page of which file is in memory, and the shadows of those that were.
//!
//! Models `struct address_space` with its xarray: leaves of 64 slots below inner nodes of 64
//! children. A file whose only page is page 0 needs no node. Nodes are kernel objects: they live
//! on slab pages and are charged to the cgroup of the task that made them, so a caller first makes
//! the nodes that an insertion needs ([`PageCache::prepare_insert`]), waiting for memory if it must.
//!
//! A leaf that holds nothing but shadows is on the *shadow list* of its cgroup, where the shadow
//! shrinker finds it ([`crate::pages::shadow`]).
//!
//! Leaves carry the tag of dirty pages, so that writeback finds them without looking at each page.
//!
//! Left out: the other tags, multi-order entries (a large folio fills each of its slots), DAX. Neighbours:
//! [`crate::lru::workingset`] for what a shadow says, [`crate::slab::caches`] for the nodes' pages,
//! [`crate::pages::dirty`] for dirty pages.

use core::ops::Range;

use std_alloc::collections::VecDeque;
use std_alloc::vec;
use std_alloc::vec::Vec;

use units::{CpuId, Pfn};

use crate::base::event::{Reason, Trace, TraceEvent};
use crate::base::frame::{NO_OWNER, PageFlags};
use crate::base::ids::{MappingId, MemcgId};
use crate::base::vmstat::MemcgStat;
use crate::cgroup::charge::Uncharged;
use crate::core::Core;
use crate::lru::lists::Lru;
use crate::lru::workingset::Shadow;
use crate::pages::heads::Heads;
use crate::pages::mapped::FileMaps;
use crate::pages::pace::Pace;
use crate::pages::swap_spaces::SwapSpaces;
use crate::pages::tree::{
    EMPTY, Mapping, Mappings, NO_NODE, SHADOW_BIT, SLOTS, Slot, decode, encode_page, encode_shadow,
};
use crate::slab::object::{Object, ObjectAlloc};
use crate::slab::table::SlabId;
use crate::version::geometry::Cache;

/// What an insertion still needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Prepared {
    /// Nothing: insert now.
    Ready,
    /// Charge this many pages of kernel memory to the cgroup, then tell
    /// [`crate::cgroup::tree::Memcgs::object_pages_charged`].
    NeedsCharge {
        /// Pages to charge.
        pages: u32,
    },
    /// Allocate a reclaimable slab block and hand it to [`Core::grow_slab`].
    NeedsSlab,
}

/// The page cache of the machine.
#[derive(Debug, Clone)]
pub struct PageCache {
    pub(super) trees: Mappings,
    /// Empty between steps.
    scratch: NodeScratch,
    /// Mappings that lost their last page in this step.
    emptied: VecDeque<MappingId>,
    /// What journals keep of blocks that are pages here.
    pub(crate) heads: Heads,
    /// Dirty pages, by node.
    pub(super) dirty: Vec<u64>,
    /// Pages being written, by node.
    pub(super) under_writeback: Vec<u64>,
    pub(crate) pace: Pace,
    pub(super) swap: SwapSpaces,
    /// Page tables of those who map files.
    pub maps: FileMaps,
}

impl PageCache {
    /// Empty, on a machine of so many nodes.
    pub fn new(nodes: usize) -> Self {
        Self {
            trees: Mappings::default(),
            scratch: Vec::new(),
            emptied: VecDeque::new(),
            heads: Heads::default(),
            dirty: vec![0; nodes],
            under_writeback: vec![0; nodes],
            pace: Pace::new(),
            swap: SwapSpaces::default(),
            maps: FileMaps::default(),
        }
    }

    /// The trees, for a look.
    #[inline]
    pub fn trees(&self) -> &Mappings {
        &self.trees
    }

    /// [`Mappings::hand_over`]
    pub(crate) fn hand_over(&mut self, memcg: MemcgId, heir: MemcgId) {
        self.trees.hand_over(memcg, heir);
        self.maps.hand_over(memcg, heir);
    }

    /// What a page index of a file holds.
    #[inline]
    pub fn find(&self, mapping: MappingId, index: u32) -> Slot {
        self.trees.find(mapping, index)
    }

    /// A new empty mapping.
    pub fn create(&mut self) -> MappingId {
        let fresh = Mapping::new();
        match self.trees.free.pop() {
            Some(id) => {
                self.trees.list[id as usize] = fresh;
                MappingId(id)
            }
            None => {
                self.trees.list.push(fresh);
                MappingId(u32::try_from(self.trees.list.len() - 1).expect("fewer files than pages"))
            }
        }
    }

    /// An empty file is another one from here on.
    pub(crate) fn renew(&mut self, mapping: MappingId) {
        let list = &mut self.trees.list[mapping.0 as usize];
        assert!(list.pages == 0, "{mapping:?} has pages");
        *list = Mapping::new();
    }

    /// Makes the tree nodes that inserting `pages` pages at `index` needs, for a task of `memcg`.
    /// Call again after having done what it asks for; other tasks may have changed the tree.
    pub fn prepare_insert<T: Trace>(
        &mut self,
        core: &mut Core<T>,
        cpu: CpuId,
        mapping: MappingId,
        index: u32,
        pages: u32,
        memcg: MemcgId,
    ) -> Prepared {
        while let Some((level, number)) = self.trees.missing_node(mapping, index, pages) {
            match core.alloc_object(cpu, Cache::TreeNode, memcg) {
                ObjectAlloc::Done(object) => self.trees.add_node(mapping, level, number, object),
                ObjectAlloc::NeedsCharge { pages } => return Prepared::NeedsCharge { pages },
                ObjectAlloc::NeedsSlab => return Prepared::NeedsSlab,
            }
        }
        Prepared::Ready
    }

    /// Adds a page or folio to the page cache; [`Prepared::Ready`] must have been returned for it
    /// just before. The page is charged to `memcg` already. Returns the shadow that lay there.
    ///
    /// # Panics
    /// When a slot is taken: callers look before they insert, with no wait in between.
    pub fn insert_page<T: Trace>(
        &mut self,
        core: &mut Core<T>,
        mapping: MappingId,
        index: u32,
        pfn: Pfn,
        memcg: MemcgId,
    ) -> Option<Shadow> {
        let pages = core.alloc.frames.pages(pfn);
        let mut shadow = None;
        self.trees.add_slots(mapping, index, pages);
        for offset in 0..pages {
            let (before, _) = self.trees.put_entry(mapping, index + offset, encode_page(pfn));
            match decode(before) {
                Slot::Page(_) => panic!("a page cache slot is taken twice"),
                Slot::Shadow(found) => shadow = Some(found),
                Slot::Empty => {}
            }
        }
        self.trees.list[mapping.0 as usize].pages += pages;
        self.trees.total_pages += u64::from(pages);
        core.alloc.frames.set_owner(pfn, mapping.0, index);
        core.alloc.frames.set_memcg(pfn, memcg.0);
        let (_, node) = core.page_place(pfn);
        core.cgroups.add_stat(memcg, node, MemcgStat::File, u64::from(pages));
        core.cgroups.note_update(1);
        core.tell_page(pfn, |page| TraceEvent::FilemapAdd { page });
        shadow
    }

    /// Lets the place of `old` in its mapping name `new`, of the same order, instead.
    pub(crate) fn replace_page<T: Trace>(&mut self, core: &Core<T>, mapping: MappingId, old: Pfn, new: Pfn) {
        let (index, pages) = (core.alloc.frames.index(old), core.alloc.frames.pages(old));
        for index in index..index + pages {
            assert!(self.trees.find(mapping, index) == Slot::Page(old), "tree and frame agree");
            let _ = self.trees.set(mapping, index, encode_page(new));
        }
    }

    /// Takes a page out of its mapping, leaving `shadow` or nothing.
    pub(crate) fn remove_page<T: Trace>(
        &mut self,
        core: &mut Core<T>,
        cpu: CpuId,
        pfn: Pfn,
        shadow: Option<Shadow>,
    ) {
        let mapping = MappingId(core.alloc.frames.owner(pfn));
        let index = core.alloc.frames.index(pfn);
        let pages = core.alloc.frames.pages(pfn);
        let flags = core.alloc.frames.flags(pfn);
        if flags.has(PageFlags::MAPPED) {
            self.maps.unmap(core, pfn);
        }
        if flags.has_any(PageFlags::DIRTY.set(PageFlags::ATTACHED)) {
            self.clear_private(core, cpu, pfn);
        }
        let tree = &mut self.trees.list[mapping.0 as usize];
        tree.pages -= pages;
        if tree.pages == 0 {
            self.emptied.push_back(mapping);
        }
        self.trees.total_pages -= u64::from(pages);
        let entry = shadow.map_or(EMPTY, encode_shadow);
        for offset in 0..pages {
            if let Some(leaf) = self.trees.set(mapping, index + offset, entry) {
                self.free_leaf(core, cpu, leaf);
            }
        }
        core.alloc.frames.set_owner(pfn, NO_OWNER, 0);
        let (_, node) = core.page_place(pfn);
        core.cgroups.sub_stat(core.page_memcg(pfn), node, MemcgStat::File, u64::from(pages));
    }

    /// Single pages with nothing attached leave the leaf of a mapping that `index` is in, and a shadow of each stays,
    /// which `put` puts there. Their frames and what is counted of them are the caller's. Returns how many.
    #[inline]
    pub(crate) fn leave_shadows(
        &mut self,
        mapping: MappingId,
        index: u32,
        put: impl FnOnce(&mut [u64]) -> u32,
    ) -> u32 {
        let count = self.trees.put_shadows(mapping, index, put);
        let tree = &mut self.trees.list[mapping.0 as usize];
        tree.pages -= count;
        if tree.pages == 0 {
            self.emptied.push_back(mapping);
        }
        self.trees.total_pages -= u64::from(count);
        count
    }

    /// Takes a mapping that lost its last page and was not taken yet.
    pub(crate) fn take_emptied(&mut self) -> Option<MappingId> {
        self.emptied.pop_front()
    }

    /// A dirty page is clean without having been written, or is about to be written.
    pub(super) fn clear_dirty<T: Trace>(&mut self, core: &mut Core<T>, pfn: Pfn) {
        if core.alloc.frames.flags(pfn).has(PageFlags::MAPPED) {
            self.maps.protect(core, pfn);
        }
        core.alloc.frames.clear_flags(pfn, PageFlags::DIRTY);
        let mapping = MappingId(core.alloc.frames.owner(pfn));
        self.trees.tag_dirty(mapping, core.alloc.frames.index(pfn), false);
        let pages = u64::from(core.alloc.frames.pages(pfn));
        let (_, node) = core.page_place(pfn);
        self.dirty[node.index()] -= pages;
        core.cgroups.sub_stat(core.page_memcg(pfn), node, MemcgStat::FileDirty, pages);
    }

    /// A page leaves the cache: it is no longer dirty, and its buffer heads go.
    fn clear_private<T: Trace>(&mut self, core: &mut Core<T>, cpu: CpuId, pfn: Pfn) {
        let flags = core.alloc.frames.flags(pfn);
        assert!(!flags.has(PageFlags::WRITEBACK), "{pfn:?} leaves the cache while it is written");
        assert!(!flags.has(PageFlags::JOURNAL), "{pfn:?} leaves the cache while a transaction holds it");
        if flags.has(PageFlags::DIRTY) {
            self.clear_dirty(core, pfn);
        }
        if flags.has(PageFlags::PRIVATE) {
            core.alloc.frames.clear_flags(pfn, PageFlags::PRIVATE);
            let (cache, memcg) = (Cache::BufferHead, core.page_memcg(pfn));
            for page in pfn.0..pfn.0 + core.alloc.frames.pages(pfn) {
                let slab = SlabId(core.alloc.frames.private(Pfn(page)));
                core.free_object(cpu, Object { cache, slab, memcg });
            }
        }
        self.drop_head(core, cpu, pfn);
    }

    /// The block of a page needs its journal head no longer, if it has one.
    pub(crate) fn drop_head<T: Trace>(&mut self, core: &mut Core<T>, cpu: CpuId, pfn: Pfn) {
        let frames = &mut core.alloc.frames;
        if !frames.flags(pfn).has(PageFlags::JOURNAL_HEAD) {
            return;
        }
        frames.clear_flags(pfn, PageFlags::JOURNAL_HEAD);
        let (mapping, index) = (MappingId(frames.owner(pfn)), frames.index(pfn));
        let head = self.heads.forget(mapping, index).expect("its page says so");
        core.free_object(cpu, head);
    }

    pub(super) fn free_leaf<T: Trace>(&mut self, core: &mut Core<T>, cpu: CpuId, leaf: u32) {
        let mut objects = core::mem::take(&mut self.scratch);
        self.trees.drop_leaf(leaf, &mut objects);
        self.free_nodes(core, cpu, objects);
    }

    fn free_nodes<T: Trace>(&mut self, core: &mut Core<T>, cpu: CpuId, mut objects: NodeScratch) {
        for object in objects.drain(..) {
            self.swap.tables -= u64::from(object.cache == Cache::SwapTable);
            core.free_object(cpu, object);
        }
        self.scratch = objects;
    }

    /// Frees every page of `mapping`, dirty or not, and its tree: truncation on unlink.
    pub(crate) fn truncate<T: Trace>(
        &mut self,
        core: &mut Core<T>,
        lru: &mut Lru,
        cpu: CpuId,
        mapping: MappingId,
    ) {
        self.invalidate(core, lru, cpu, mapping, false);
        self.clear(core, cpu, mapping);
        self.emptied.retain(|&other| other != mapping);
    }

    /// Frees the pages of `mapping` from `first` on, dirty or not, and the shadows there: truncation of a file. A folio
    /// that begins before goes, too, unless it is dirty. False: some are in use, and stay until it is called again.
    pub(crate) fn truncate_from<T: Trace>(
        &mut self,
        core: &mut Core<T>,
        lru: &mut Lru,
        cpu: CpuId,
        mapping: MappingId,
        first: u32,
    ) -> bool {
        let in_use = PageFlags::WRITEBACK.set(PageFlags::LOCKED).set(PageFlags::JOURNAL);
        let mut stays = false;
        for (index, pfn) in self.trees.heads(mapping) {
            let past = index + core.alloc.frames.pages(pfn);
            let flags = core.alloc.frames.flags(pfn);
            if past <= first {
                continue;
            }
            if flags.has_any(in_use) {
                stays = true;
            } else if index >= first || !flags.has(PageFlags::DIRTY) {
                self.invalidate_range(core, lru, cpu, mapping, index..past, false);
            }
        }
        if stays {
            return false;
        }
        if first == 0 {
            self.clear(core, cpu, mapping);
        } else {
            self.clear_shadows_in(core, cpu, mapping, first..u32::MAX);
        }
        true
    }

    /// Forgets what was evicted of a range.
    fn clear_shadows_in<T: Trace>(
        &mut self,
        core: &mut Core<T>,
        cpu: CpuId,
        mapping: MappingId,
        range: Range<u32>,
    ) {
        let head = &mut self.trees.list[mapping.0 as usize].head;
        if range.start == 0 && (*head & SHADOW_BIT) != 0 {
            *head = EMPTY;
        }
        let past = range.end.div_ceil(1 << 6) as usize;
        for place in (range.start >> 6) as usize..past {
            let Some(leaf) = self.trees.list[mapping.0 as usize].leaves().get(place).copied() else { return };
            if leaf == NO_NODE {
                continue;
            }
            let begin = self.trees.leaves[leaf as usize].number << 6;
            let mut emptied = None;
            for offset in 0..SLOTS {
                let index = begin + u32::try_from(offset).expect("64 slots");
                let is_shadow = (self.trees.leaves[leaf as usize].slots[offset] & SHADOW_BIT) != 0;
                if is_shadow && range.contains(&index) {
                    emptied = self.trees.set(mapping, index, EMPTY);
                }
            }
            if let Some(leaf) = emptied {
                self.free_leaf(core, cpu, leaf);
            }
        }
    }

    /// A mapping without pages and shadows is no more: its number is used again.
    pub(crate) fn release(&mut self, mapping: MappingId) {
        assert!(self.trees.is_empty(mapping), "{mapping:?} is released with pages or shadows");
        self.trees.list[mapping.0 as usize] = Mapping::default();
        self.trees.free.push(mapping.0);
    }

    /// Frees shadows and nodes of a mapping without pages.
    pub(crate) fn clear<T: Trace>(&mut self, core: &mut Core<T>, cpu: CpuId, mapping: MappingId) {
        assert!(self.trees.pages(mapping) == 0, "pages are freed before their tree");
        for leaf in 0..self.trees.list[mapping.0 as usize].leaves().len() {
            // The last one takes the tree with it.
            let id = self.trees.list[mapping.0 as usize].leaves().get(leaf).copied();
            self.clear_shadows(core, cpu, id.unwrap_or(NO_NODE));
        }
        let mut remains = core::mem::take(&mut self.scratch);
        self.trees.take_remains(mapping, &mut remains);
        self.free_nodes(core, cpu, remains);
        self.trees.list[mapping.0 as usize].head = EMPTY;
    }

    /// Frees the pages of `mapping` that nothing needs: what `drop_caches` does to a file, with
    /// `clean_only`. What was evicted of it is forgotten, too. Returns the pages freed.
    pub fn invalidate<T: Trace>(
        &mut self,
        core: &mut Core<T>,
        lru: &mut Lru,
        cpu: CpuId,
        mapping: MappingId,
        clean_only: bool,
    ) -> u64 {
        self.invalidate_range(core, lru, cpu, mapping, 0..u32::MAX, clean_only)
    }

    /// [`PageCache::invalidate`] of the folios that lie wholly in a range.
    pub(crate) fn invalidate_range<T: Trace>(
        &mut self,
        core: &mut Core<T>,
        lru: &mut Lru,
        cpu: CpuId,
        mapping: MappingId,
        range: Range<u32>,
        clean_only: bool,
    ) -> u64 {
        let busy = PageFlags::DIRTY
            .set(PageFlags::WRITEBACK)
            .set(PageFlags::LOCKED)
            .set(PageFlags::MAPPED)
            .set(PageFlags::JOURNAL)
            .set(PageFlags::MLOCKED);
        let mut freed = 0;
        for (index, pfn) in self.trees.heads(mapping) {
            let pages = core.alloc.frames.pages(pfn);
            let is_inside = index >= range.start && index + pages <= range.end;
            if !is_inside || (clean_only && core.alloc.frames.flags(pfn).has_any(busy)) {
                continue;
            }
            freed += u64::from(pages);
            core.tell_page(pfn, |page| {
                let reason = if clean_only { Reason::Invalidated } else { Reason::Truncated };
                TraceEvent::FilemapDelete { page, reason }
            });
            lru.detach(core, pfn);
            self.remove_page(core, cpu, pfn, None);
            release_file_page(core, cpu, pfn);
        }
        if clean_only {
            self.clear_shadows_in(core, cpu, mapping, range);
        }
        freed
    }

    /// Empties a leaf of its shadows and frees it, unless it holds pages.
    pub(super) fn clear_shadows<T: Trace>(&mut self, core: &mut Core<T>, cpu: CpuId, leaf: u32) {
        if leaf == NO_NODE {
            return;
        }
        let (mapping, first) = {
            let leaf = &self.trees.leaves[leaf as usize];
            (MappingId(leaf.mapping), leaf.number << 6)
        };
        let mut emptied = self.trees.leaves[leaf as usize].used == 0;
        for offset in 0..SLOTS {
            let entry = self.trees.leaves[leaf as usize].slots[offset];
            if (entry & SHADOW_BIT) != 0 {
                let index = first + u32::try_from(offset).expect("64 slots");
                emptied = self.trees.set(mapping, index, EMPTY).is_some();
            }
        }
        if emptied {
            self.free_leaf(core, cpu, leaf);
        }
    }
}

/// Uncharges and frees a page that left its mapping and its list.
pub(crate) fn release_file_page<T: Trace>(core: &mut Core<T>, cpu: CpuId, pfn: Pfn) {
    let pages = core.alloc.frames.pages(pfn);
    core.cgroups.uncharge(core.page_memcg(pfn), u64::from(pages));
    core.cgroups.note_update(1);
    core.alloc.free(cpu, pfn, core.alloc.frames.order(pfn));
}

/// [`release_file_page`] for a page that reclaim took: nobody has touched it lately, and its charge goes with those
/// of others.
pub(crate) fn release_reclaimed_page<T: Trace>(
    core: &mut Core<T>,
    cpu: CpuId,
    pfn: Pfn,
    uncharged: &mut Uncharged,
) {
    let pages = core.alloc.frames.pages(pfn);
    core.cgroups.gather_uncharge(uncharged, core.page_memcg(pfn), u64::from(pages));
    core.alloc.free_cold(cpu, pfn, core.alloc.frames.order(pfn));
}

/// Nodes on their way out; kept between calls so that freeing allocates nothing.
type NodeScratch = Vec<Object>;
