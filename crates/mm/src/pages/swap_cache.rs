//! The swap cache: pages that have a slot, by slot; and the shadows of those that were swapped out (SWAP 2.4, 2.5).
//!
//! Trees as those of files, one for each 64 MiB of an area. Their nodes are kernel objects of the root, taken by
//! whoever swaps out, from the reserves where it must be. Since 6.18 those that hold entries are parts of tables of
//! clusters. A page in the swap cache is listed as anonymous memory and counts as a file page; whoever maps it owns its
//! frame, as any other anonymous page, and one that nobody maps has no owner. Its frame's `private` is its slot.
//!
//! ```text
//!   mapped --swap-out: slot, cached, unmapped, written--> clean, cached --freed--> shadow
//!          <--swap-in: hit, or read-- page table names the slot
//! ```
//! Left out: shared memory; that a table stays while its cluster is in use, and has no node above it. Neighbours:
//! [`crate::swap::areas`] for slots, [`crate::pages::anon`] for page tables, [`crate::reclaim::swap_out`] for who swaps
//! out.

use units::{CpuId, Pfn};

use crate::base::event::Trace;
use crate::base::frame::{FrameState, NO_OWNER, PageFlags};
use crate::base::ids::{MappingId, MemcgId};
use crate::base::vmstat::{MemcgStat, VmEvent};
use crate::core::Core;
use crate::lru::lists::Lru;
use crate::lru::mglru::access::faulted_in;
use crate::lru::workingset::Shadow;
use crate::pages::cache::{PageCache, release_file_page};
use crate::pages::tree::{EMPTY, Mappings, Slot, encode_page, encode_shadow};
use crate::swap::areas::Fetched;
use crate::swap::slot::SwapSlot;
use crate::version::geometry::Cache;
use crate::version::rules::SwapShadows;

impl PageCache {
    /// Pages in the swap cache: `nr_swapcached`.
    pub fn swap_cached(&self) -> u64 {
        self.swap.pages
    }

    /// Nodes that are parts of tables of clusters.
    pub(crate) fn swap_tables(&self) -> u64 {
        self.swap.tables
    }

    /// The tree of a slot, where there is one, and its place in there.
    #[inline]
    pub fn swap_place(&self, slot: SwapSlot) -> Option<(MappingId, u32)> {
        self.swap.place(slot)
    }

    /// The first slot of a tree of the swap cache; none: it is a file's.
    pub fn first_slot(&self, mapping: MappingId) -> Option<SwapSlot> {
        self.swap.first_slot(mapping)
    }

    fn swap_tree(&mut self, slot: SwapSlot, listed: bool) -> (MappingId, u32) {
        if let Some(found) = self.swap_place(slot) {
            return found;
        }
        let tree = self.create();
        self.trees.list_shadows(tree, listed);
        self.swap.add(slot, tree);
        self.swap_place(slot).expect("it was just made")
    }

    /// What the swap cache has of a slot.
    #[inline]
    pub fn find_swap(&self, slot: SwapSlot) -> Slot {
        match self.swap_place(slot) {
            Some((tree, index)) => self.trees.find(tree, index),
            None => Slot::Empty,
        }
    }

    /// The page of a slot, if it is in memory.
    pub(crate) fn swap_page(&self, slot: SwapSlot) -> Option<Pfn> {
        match self.find_swap(slot) {
            Slot::Page(pfn) => Some(pfn),
            Slot::Shadow(_) | Slot::Empty => None,
        }
    }

    /// The slot of a page in the swap cache.
    pub(crate) fn slot_of<T: Trace>(core: &Core<T>, pfn: Pfn) -> SwapSlot {
        assert!(core.alloc.frames.flags(pfn).has(PageFlags::SWAP_CACHE), "{pfn:?} is not in the swap cache");
        SwapSlot(core.alloc.frames.private(pfn))
    }

    /// Takes a slot for a page of one cgroup, or 512 for a huge one, and charges it; none: there is none, or
    /// a limit forbids it, which counts (`folio_alloc_swap`).
    pub(crate) fn take_slot<T: Trace>(
        &mut self,
        core: &mut Core<T>,
        cpu: CpuId,
        memcg: MemcgId,
        pages: u32,
    ) -> Option<Fetched> {
        for slot in core.swap.decide_keeping() {
            give_back(core, cpu, slot);
        }
        let found = match pages {
            1 => core.swap.fetch(cpu),
            _ => core.swap.fetch_cluster().map(|slot| Fetched { slot, fetched: 0 }),
        };
        let Some(found) = found else {
            core.cgroups.count_swap_event(memcg, |events| &mut events.fail);
            self.forget_given_back(core, cpu);
            return None;
        };
        if core.cgroups.charge_swap(memcg, u64::from(pages)).is_err() {
            core.cgroups.count_swap_event(memcg, |events| &mut events.max);
            core.cgroups.count_swap_event(memcg, |events| &mut events.fail);
            for place in 0..pages {
                self.put_slot(core, cpu, found.slot.plus(place));
            }
            return None;
        }
        (0..pages).for_each(|place| core.swap.begin_use(found.slot.plus(place), memcg));
        self.forget_given_back(core, cpu);
        Some(found)
    }

    /// Nobody uses a slot any more (`free_swap_slot`).
    fn put_slot<T: Trace>(&mut self, core: &mut Core<T>, cpu: CpuId, slot: SwapSlot) {
        for slot in core.swap.put(cpu, slot) {
            give_back(core, cpu, slot);
        }
        self.forget_given_back(core, cpu);
    }

    /// A page is not going to be in the swap cache after all: its slots, used by nobody else, are free.
    pub(crate) fn put_unused<T: Trace>(
        &mut self,
        core: &mut Core<T>,
        cpu: CpuId,
        slot: SwapSlot,
        pages: u32,
    ) {
        for place in 0..pages {
            if core.swap.uncache(slot.plus(place)) {
                self.put_slot(core, cpu, slot.plus(place));
            }
        }
    }

    /// Shadows go with the slots that they lie in.
    fn forget_given_back<T: Trace>(&mut self, core: &mut Core<T>, cpu: CpuId) {
        for slot in core.swap.take_given_back() {
            let Some((tree, index)) = self.swap_place(slot) else { continue };
            match self.trees.find(tree, index) {
                Slot::Empty => {}
                Slot::Shadow(_) => self.set_swap_entry(core, cpu, slot, EMPTY),
                Slot::Page(pfn) => panic!("{slot:?} is given back with {pfn:?} in it"),
            }
        }
    }

    fn set_swap_entry<T: Trace>(&mut self, core: &mut Core<T>, cpu: CpuId, slot: SwapSlot, entry: u64) {
        let (tree, index) = self.swap_place(slot).expect("a slot in use has a tree");
        if let Some(leaf) = self.trees.set(tree, index, entry) {
            self.free_leaf(core, cpu, leaf);
        }
    }

    /// Makes the nodes that a page in these slots needs, of the root; false when there is no memory at all for them.
    fn prepare_swap<T: Trace>(&mut self, core: &mut Core<T>, cpu: CpuId, slot: SwapSlot, pages: u32) -> bool {
        let shadows = core.rules().swap_shadows;
        let (tree, index) = self.swap_tree(slot, shadows == SwapShadows::Shrunk);
        // Each page has an entry of its own, those of a huge one, too.
        let missing =
            |trees: &Mappings| (0..pages).find_map(|page| trees.missing_node(tree, index + page, 1));
        while let Some((level, number)) = missing(&self.trees) {
            let in_table = level == 0 && shadows == SwapShadows::InTables;
            let cache = if in_table { Cache::SwapTable } else { Cache::TreeNode };
            let Some(object) = core.take_object(cpu, cache) else { return false };
            self.swap.tables += u64::from(in_table);
            self.trees.add_node(tree, level, number, object);
        }
        true
    }

    /// Puts a page into the swap cache in the place of these slots (`add_to_swap_cache`); false: no memory for
    /// the tree. Returns the shadow that lay there, too.
    pub(crate) fn insert_swap<T: Trace>(
        &mut self,
        core: &mut Core<T>,
        cpu: CpuId,
        slot: SwapSlot,
        pfn: Pfn,
    ) -> Option<Option<Shadow>> {
        let pages = core.alloc.frames.pages(pfn);
        if !self.prepare_swap(core, cpu, slot, pages) {
            return None;
        }
        let mut shadow = None;
        for place in 0..pages {
            match self.find_swap(slot.plus(place)) {
                Slot::Page(other) => panic!("{:?} has {other:?} already", slot.plus(place)),
                Slot::Shadow(found) => shadow = Some(found),
                Slot::Empty => {}
            }
            self.set_swap_entry(core, cpu, slot.plus(place), encode_page(pfn));
        }
        core.alloc.frames.set_flags(pfn, PageFlags::SWAP_CACHE);
        core.alloc.frames.set_private(pfn, slot.0);
        self.count_swap(core, slot, pfn, true);
        Some(shadow)
    }

    fn count_swap<T: Trace>(&mut self, core: &mut Core<T>, slot: SwapSlot, pfn: Pfn, comes: bool) {
        let pages = core.alloc.frames.pages(pfn);
        let (tree, _) = self.swap_place(slot).expect("it has a tree");
        let (_, node) = core.page_place(pfn);
        let (memcg, count) = (core.page_memcg(pfn), u64::from(pages));
        if comes {
            self.trees.list[tree.0 as usize].pages += pages;
            self.trees.total_pages += count;
            self.swap.pages += count;
            core.cgroups.add_stat(memcg, node, MemcgStat::SwapCached, count);
        } else {
            self.trees.list[tree.0 as usize].pages -= pages;
            self.trees.total_pages -= count;
            self.swap.pages -= count;
            core.cgroups.sub_stat(memcg, node, MemcgStat::SwapCached, count);
        }
    }

    /// Takes a page out of the swap cache, leaving `shadow` or nothing (`delete_from_swap_cache`). Slots that no
    /// page table names are free then.
    pub(crate) fn remove_swap<T: Trace>(
        &mut self,
        core: &mut Core<T>,
        cpu: CpuId,
        pfn: Pfn,
        shadow: Option<Shadow>,
    ) {
        assert!(
            !core.alloc.frames.flags(pfn).has(PageFlags::WRITEBACK),
            "{pfn:?} leaves while it is written"
        );
        let slot = Self::slot_of(core, pfn);
        self.count_swap(core, slot, pfn, false);
        core.alloc.frames.clear_flags(pfn, PageFlags::SWAP_CACHE);
        let entry = shadow.map_or(EMPTY, encode_shadow);
        for place in 0..core.alloc.frames.pages(pfn) {
            let slot = slot.plus(place);
            self.set_swap_entry(core, cpu, slot, entry);
            if core.swap.uncache(slot) {
                self.put_slot(core, cpu, slot);
            }
        }
    }

    /// A page in the swap cache gives its slot back, if no page table names it and it is not being written: what
    /// is in memory is all that there is of it then (`folio_free_swap`). Returns whether it did.
    pub(crate) fn free_swap<T: Trace>(&mut self, core: &mut Core<T>, cpu: CpuId, pfn: Pfn) -> bool {
        let flags = core.alloc.frames.flags(pfn);
        let slot = Self::slot_of(core, pfn);
        let named = (0..core.alloc.frames.pages(pfn)).any(|place| core.swap.is_mapped(slot.plus(place)));
        if named || flags.has_any(PageFlags::WRITEBACK.set(PageFlags::LOCKED)) {
            return false;
        }
        self.remove_swap(core, cpu, pfn, None);
        core.alloc.frames.set_flags(pfn, PageFlags::ANON_DIRTY);
        true
    }

    /// Begins to read the page of a slot in use into the new page `pfn`, charged to the slot's cgroup: it is in the
    /// swap cache, locked, and on its way to the lists (`__read_swap_cache_async`). False: no memory for the tree.
    pub(crate) fn begin_read<T: Trace>(
        &mut self,
        core: &mut Core<T>,
        lru: &mut Lru,
        cpu: CpuId,
        slot: SwapSlot,
        pfn: Pfn,
    ) -> bool {
        let memcg = core.swap.memcg(slot).expect("a slot in use is charged");
        begin_anon(core, pfn, memcg, false);
        let Some(shadow) = self.insert_swap(core, cpu, slot, pfn) else { return false };
        core.swap.cache(slot);
        core.lock_page(pfn);
        if let Some(shadow) = shadow {
            lru.refault(core, pfn, shadow);
        }
        let flags = core.alloc.frames.flags(pfn);
        core.alloc.frames.put_flags(pfn, faulted_in(core, flags)); // Read ahead or not.
        lru.add(core, cpu, pfn);
        true
    }

    /// A huge page of the swap cache that nobody maps and nobody writes becomes single ones.
    pub(crate) fn split_cached<T: Trace>(&mut self, core: &mut Core<T>, lru: &mut Lru, head: Pfn) {
        let slot = Self::slot_of(core, head);
        let pages = core.alloc.frames.pages(head);
        let frames = &mut core.alloc.frames;
        let (flags, memcg, index) = (frames.flags(head), frames.memcg(head), frames.index(head));
        frames.set_order(head, units::Order(0));
        let mut behind = head;
        for place in 1..pages {
            let tail = Pfn(head.0 + place);
            let frames = &mut core.alloc.frames;
            frames.set_order(tail, units::Order(0));
            frames.put_flags(tail, flags);
            frames.set_memcg(tail, memcg);
            frames.set_private(tail, slot.0 + place);
            frames.set_owner(tail, NO_OWNER, index + place);
            lru.split_off(core, behind, tail);
            let (tree, at) = self.swap_place(slot.plus(place)).expect("a page in the swap cache has a tree");
            let _ = self.trees.set(tree, at, encode_page(tail));
            behind = tail;
        }
        core.alloc.events.add(VmEvent::ThpSplitPage, 1);
    }

    /// A page table names a slot no longer (`free_swap_and_cache`): its page goes, too, unless it is being read or
    /// written; then it is left to reclaim.
    pub(crate) fn drop_entry<T: Trace>(
        &mut self,
        core: &mut Core<T>,
        lru: &mut Lru,
        cpu: CpuId,
        slot: SwapSlot,
    ) {
        if core.swap.unmap(slot) {
            self.put_slot(core, cpu, slot);
            return;
        }
        if let Some(pfn) = self.swap_page(slot)
            && self.free_swap(core, cpu, pfn)
        {
            lru.detach(core, pfn);
            release_file_page(core, cpu, pfn);
        }
    }

    /// A page that came back without the swap cache took the content of its slot: that is free.
    pub(crate) fn drop_slot<T: Trace>(&mut self, core: &mut Core<T>, cpu: CpuId, slot: SwapSlot) {
        let unused = core.swap.unmap(slot);
        assert!(unused, "a slot whose page is not in the swap cache has one user");
        self.put_slot(core, cpu, slot);
    }

    /// Lets the slots of `old` name `new` instead.
    pub(crate) fn replace_swap<T: Trace>(&mut self, core: &Core<T>, old: Pfn, new: Pfn) {
        let slot = Self::slot_of(core, old);
        for place in 0..core.alloc.frames.pages(old) {
            let (tree, index) =
                self.swap_place(slot.plus(place)).expect("a page in the swap cache has a tree");
            let _ = self.trees.set(tree, index, encode_page(new));
        }
    }

    /// Starts the write of a page of the swap cache; it is freed as soon as it is written.
    pub(crate) fn start_swap_write<T: Trace>(&mut self, core: &mut Core<T>, pfn: Pfn) {
        let (tree, _) = self.swap_place(Self::slot_of(core, pfn)).expect("it is in the swap cache");
        let pages = u64::from(core.alloc.frames.pages(pfn));
        core.alloc.frames.set_flags(pfn, PageFlags::WRITEBACK.set(PageFlags::RECLAIM));
        let (_, node) = core.page_place(pfn);
        self.under_writeback[node.index()] += pages;
        *self.trees.count_writeback(tree) += pages;
        core.cgroups.add_stat(core.page_memcg(pfn), node, MemcgStat::FileWriteback, pages);
    }

    /// Holds the swap cache against slots and frames; returns what differs.
    pub(crate) fn check_swap<T: Trace>(&self, core: &Core<T>) -> Result<(), &'static str> {
        let frames = &core.alloc.frames;
        let (mut found, mut said) = (0, 0);
        for tree in self.swap.trees() {
            let first = self.first_slot(tree).expect("it is one of the swap cache");
            for (index, pfn) in self.trees.heads(tree) {
                if !frames.is_lru_page(pfn) || !frames.flags(pfn).has(PageFlags::SWAP_CACHE) {
                    return Err("the swap cache has a page that does not say so");
                }
                if Self::slot_of(core, pfn) != first.plus(index) {
                    return Err("a page in the swap cache names another slot");
                }
                if !frames.flags(pfn).has(PageFlags::SWAP_BACKED) {
                    return Err("a page in the swap cache is not anonymous");
                }
                found += u64::from(frames.pages(pfn));
            }
        }
        for pfn in (0..frames.len()).map(|index| Pfn(index as u32)) {
            if frames.is_lru_page(pfn) && frames.flags(pfn).has(PageFlags::SWAP_CACHE) {
                said += u64::from(frames.pages(pfn));
                if frames.state(pfn) == FrameState::Isolated {
                    return Err("a page in the swap cache is isolated between steps");
                }
            }
        }
        if found != said || found != self.swap.pages {
            return Err("another number of pages is in the swap cache than is said");
        }
        core.swap.check()
    }
}

/// Makes a page anonymous memory of a cgroup that is on no list yet and mapped by nobody.
pub(super) fn begin_anon<T: Trace>(core: &mut Core<T>, pfn: Pfn, memcg: MemcgId, active: bool) {
    let flags = PageFlags::SWAP_BACKED;
    core.alloc.frames.put_flags(pfn, if active { flags.set(PageFlags::ACTIVE) } else { flags });
    core.alloc.frames.set_memcg(pfn, memcg.0);
    core.cgroups.note_update(1);
    core.alloc.frames.set_owner(pfn, NO_OWNER, 0);
}

/// A slot comes back to its area: what was stored is freed, and its cgroup uncharged.
fn give_back<T: Trace>(core: &mut Core<T>, cpu: CpuId, slot: SwapSlot) {
    core.swap.discard(&mut core.alloc, cpu, slot);
    core.zswap_forget(cpu, slot);
    if let Some(memcg) = core.swap.give_back(slot) {
        core.cgroups.uncharge_swap(memcg, 1);
    }
}
