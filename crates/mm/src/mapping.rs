//! Page cache trees: which page of which file is in memory, and the shadows of those that were.
//!
//! Models `struct address_space` with its xarray: leaves of 64 slots below inner nodes of 64
//! children. A file whose only page is page 0 needs no node. Nodes are kernel objects: they live
//! on slab pages and are charged to the cgroup of the task that made them, so a caller first makes
//! the nodes that an insertion needs ([`Memory::prepare_insert`]), waiting for memory if it must.
//!
//! A leaf that holds nothing but shadows is on the *shadow list* of its cgroup, where the shadow
//! shrinker finds it (MECHANISMS 7.1: kept are as many as an eighth of the cgroup's pages).
//!
//! Left out: tags, multi-order entries (a large folio fills each of its slots), DAX. Neighbours:
//! [`crate::workingset`] for what a shadow says, [`crate::slab`] for the nodes' pages.

use std_alloc::vec::Vec;

use units::{CpuId, Order, Pfn};

use crate::event::Trace;
use crate::frame::{NO_OWNER, PageFlags};
use crate::memcg::MemcgId;
use crate::memory::Memory;
use crate::slab::{EmptySlab, SlabId};
use crate::vmstat::{MemcgStat, VmEvent};
use crate::workingset::Shadow;

/// A file's page cache, by its place in the table. Places are reused after [`Memory::mapping_remove`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MappingId(pub u32);

/// What a page index of a file holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Slot {
    /// Nothing, and no memory of anything.
    Empty,
    /// A page: the head of its folio.
    Page(Pfn),
    /// A page was evicted from here.
    Shadow(Shadow),
}

/// What an insertion still needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Prepared {
    /// Nothing: insert now.
    Ready,
    /// Charge this many pages of kernel memory to the cgroup, then tell
    /// [`crate::memcg::Memcgs::object_pages_charged`].
    NeedsCharge {
        /// Pages to charge.
        pages: u32,
    },
    /// Allocate a reclaimable slab block and hand it to [`Memory::grow_tree_slab`].
    NeedsSlab,
}

const SLOTS: usize = 64;
const NO_NODE: u32 = u32::MAX;
/// Inner levels above the leaves: 64^5 leaves of 64 pages exceed 32-bit page indices.
const LEVELS_MAX: usize = 5;

const SHADOW_BIT: u64 = 1 << 63;
const EMPTY: u64 = 0;

#[inline]
fn encode_page(pfn: Pfn) -> u64 {
    u64::from(pfn.0) + 1
}

#[inline]
fn decode(entry: u64) -> Slot {
    if entry == EMPTY {
        Slot::Empty
    } else if (entry & SHADOW_BIT) != 0 {
        Slot::Shadow(Shadow::unpack(entry & !SHADOW_BIT))
    } else {
        Slot::Page(Pfn(u32::try_from(entry - 1).expect("a page entry is a frame number plus one")))
    }
}

fn encode_shadow(shadow: Shadow) -> u64 {
    shadow.pack() | SHADOW_BIT
}

/// Who pays for a node, and where it lies.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NodeObject {
    slab: SlabId,
    memcg: MemcgId,
}

#[derive(Debug, Clone)]
struct Leaf {
    slots: [u64; SLOTS],
    used: u8,
    shadows: u8,
    mapping: u32,
    number: u32,
    object: NodeObject,
    prev: u32,
    next: u32,
    listed: bool,
}

#[derive(Debug, Clone, Copy, Default)]
struct Inner {
    children: u8,
    object: Option<NodeObject>,
}

/// One file's tree.
#[derive(Debug, Clone, Default)]
struct Mapping {
    live: bool,
    /// The entry of page 0 while the tree is no more than that.
    head: u64,
    leaves: Vec<u32>,
    inner: [Vec<Inner>; LEVELS_MAX],
    /// Inner levels in use: 0 for at most one leaf.
    height: u8,
    /// Nodes of all levels, leaves included.
    nodes: u32,
    pages: u64,
}

#[derive(Debug, Clone, Copy)]
struct ShadowList {
    head: u32,
    tail: u32,
    len: u64,
    deferred: u64,
}

const NO_SHADOWS: ShadowList = ShadowList { head: NO_NODE, tail: NO_NODE, len: 0, deferred: 0 };

/// All trees of the machine.
#[derive(Debug, Clone, Default)]
pub struct Mappings {
    list: Vec<Mapping>,
    free: Vec<u32>,
    leaves: Vec<Leaf>,
    free_leaves: Vec<u32>,
    shadow_lists: Vec<ShadowList>,
}

impl Mappings {
    /// Looks a page index up.
    #[inline]
    pub fn find(&self, mapping: MappingId, index: u32) -> Slot {
        decode(self.entry(mapping, index))
    }

    #[inline]
    fn entry(&self, mapping: MappingId, index: u32) -> u64 {
        let tree = &self.list[mapping.0 as usize];
        match tree.leaves.get((index >> 6) as usize) {
            Some(&leaf) if leaf != NO_NODE => self.leaves[leaf as usize].slots[(index & 63) as usize],
            _ if index == 0 => tree.head,
            _ => EMPTY,
        }
    }

    /// Pages of `mapping` in memory.
    pub fn pages(&self, mapping: MappingId) -> u64 {
        self.list[mapping.0 as usize].pages
    }

    /// Pages of all mappings in memory: `nr_file_pages`.
    pub fn total_pages(&self) -> u64 {
        self.list.iter().map(|tree| tree.pages).sum()
    }

    /// Live mappings.
    pub fn ids(&self) -> impl Iterator<Item = MappingId> + '_ {
        self.list
            .iter()
            .enumerate()
            .filter(|(_, tree)| tree.live)
            .map(|(index, _)| MappingId(u32::try_from(index).expect("mappings are numbered in 32 bits")))
    }

    /// Every page of `mapping` in ascending order of index, heads once.
    pub fn heads(&self, mapping: MappingId) -> Vec<(u32, Pfn)> {
        let tree = &self.list[mapping.0 as usize];
        let mut heads = Vec::new();
        if let Slot::Page(pfn) = decode(tree.head) {
            heads.push((0, pfn));
        }
        for &leaf in tree.leaves.iter().filter(|&&leaf| leaf != NO_NODE) {
            let leaf = &self.leaves[leaf as usize];
            for (offset, &entry) in (0..).zip(leaf.slots.iter()) {
                if let Slot::Page(pfn) = decode(entry)
                    && heads.last().is_none_or(|&(_, last)| last != pfn)
                {
                    heads.push(((leaf.number << 6) + offset, pfn));
                }
            }
        }
        heads
    }

    /// Leaves that hold only shadows: `workingset_nodes`.
    pub fn shadow_leaves(&self) -> u64 {
        self.shadow_lists.iter().map(|list| list.len).sum()
    }

    /// Recounts `mapping` and compares with its counters; returns what differs.
    pub(crate) fn check(&self, mapping: MappingId) -> Result<(), &'static str> {
        let tree = &self.list[mapping.0 as usize];
        let mut pages = u64::from(matches!(decode(tree.head), Slot::Page(_)));
        for &id in tree.leaves.iter().filter(|&&leaf| leaf != NO_NODE) {
            let leaf = &self.leaves[id as usize];
            let shadows = leaf.slots.iter().filter(|&&entry| (entry & SHADOW_BIT) != 0).count();
            let used = leaf.slots.iter().filter(|&&entry| entry != EMPTY).count();
            if (usize::from(leaf.used), usize::from(leaf.shadows)) != (used, shadows) {
                return Err("a leaf's counts differ from its slots");
            }
            if leaf.listed != (used > 0 && used == shadows) {
                return Err("a leaf is on the shadow list without being all shadows, or the reverse");
            }
            pages += (used - shadows) as u64;
        }
        if pages == tree.pages { Ok(()) } else { Err("the page count differs from the slots") }
    }

    fn shadow_list(&mut self, memcg: MemcgId) -> &mut ShadowList {
        if self.shadow_lists.len() <= memcg.index() {
            self.shadow_lists.resize(memcg.index() + 1, NO_SHADOWS);
        }
        &mut self.shadow_lists[memcg.index()]
    }

    fn list_leaf(&mut self, id: u32) {
        let memcg = self.leaves[id as usize].object.memcg;
        let list = self.shadow_list(memcg);
        let tail = core::mem::replace(&mut list.tail, id);
        list.len += 1;
        if tail == NO_NODE {
            list.head = id;
        } else {
            self.leaves[tail as usize].next = id;
        }
        let leaf = &mut self.leaves[id as usize];
        (leaf.prev, leaf.next, leaf.listed) = (tail, NO_NODE, true);
    }

    fn unlist_leaf(&mut self, id: u32) {
        let leaf = &mut self.leaves[id as usize];
        leaf.listed = false;
        let (prev, next, memcg) = (leaf.prev, leaf.next, leaf.object.memcg);
        if prev != NO_NODE {
            self.leaves[prev as usize].next = next;
        }
        if next != NO_NODE {
            self.leaves[next as usize].prev = prev;
        }
        let list = self.shadow_list(memcg);
        if prev == NO_NODE {
            list.head = next;
        }
        if next == NO_NODE {
            list.tail = prev;
        }
        list.len -= 1;
    }

    /// Sets one slot; the leaf must exist (or be page 0 of a tree without leaves). Returns a leaf
    /// that became empty.
    fn set(&mut self, mapping: MappingId, index: u32, entry: u64) -> Option<u32> {
        let tree = &mut self.list[mapping.0 as usize];
        let leaf_id = tree.leaves.get((index >> 6) as usize).copied().unwrap_or(NO_NODE);
        if leaf_id == NO_NODE {
            assert!(index == 0, "an insertion was not prepared");
            tree.head = entry;
            return None;
        }
        let leaf = &mut self.leaves[leaf_id as usize];
        let old = core::mem::replace(&mut leaf.slots[(index & 63) as usize], entry);
        leaf.used -= u8::from(old != EMPTY);
        leaf.used += u8::from(entry != EMPTY);
        leaf.shadows -= u8::from((old & SHADOW_BIT) != 0);
        leaf.shadows += u8::from((entry & SHADOW_BIT) != 0);
        let should_list = leaf.used > 0 && leaf.used == leaf.shadows;
        let (listed, used) = (leaf.listed, leaf.used);
        if should_list && !listed {
            self.list_leaf(leaf_id);
        } else if !should_list && listed {
            self.unlist_leaf(leaf_id);
        }
        (used == 0).then_some(leaf_id)
    }

    /// The first node that is missing for pages up to `last` at `index`: its level (0 = leaf) and
    /// number. As in the kernel, a tree first grows at the root, then down to the leaf.
    fn missing_node(&self, mapping: MappingId, index: u32, pages: u32) -> Option<(usize, u32)> {
        let tree = &self.list[mapping.0 as usize];
        let last = index + (pages - 1);
        let is_missing = |leaf: &u32| tree.leaves.get(*leaf as usize).is_none_or(|&id| id == NO_NODE);
        let leaf = ((index >> 6)..=(last >> 6)).find(is_missing)?;
        if last == 0 && tree.nodes == 0 {
            return None;
        }
        if tree.nodes == 0 && tree.head != EMPTY {
            return Some((0, 0)); // page 0 moves into a leaf of its own
        }
        let needed = height_for(last);
        let mut height = usize::from(tree.height);
        if height < needed {
            if tree.nodes > 0 {
                return Some((height + 1, 0));
            }
            height = needed;
        }
        for level in (1..=height).rev() {
            let number = leaf >> (6 * level);
            let present =
                tree.inner[level - 1].get(number as usize).is_some_and(|inner| inner.object.is_some());
            if !present {
                return Some((level, number));
            }
        }
        Some((0, leaf))
    }

    fn add_node(&mut self, mapping: MappingId, level: usize, number: u32, object: NodeObject) {
        if level == 0 {
            self.add_leaf(mapping, number, object);
        } else {
            let tree = &mut self.list[mapping.0 as usize];
            // A new root finds what the tree had so far below it; any other node starts empty.
            let had_below = tree.nodes > 0 && level > usize::from(tree.height);
            let inner = &mut tree.inner[level - 1];
            if inner.len() <= number as usize {
                inner.resize(number as usize + 1, Inner::default());
            }
            inner[number as usize] = Inner { children: u8::from(had_below), object: Some(object) };
            tree.height = tree.height.max(u8::try_from(level).expect("five levels at most"));
        }
        let tree = &mut self.list[mapping.0 as usize];
        tree.nodes += 1;
        if level < usize::from(tree.height) {
            tree.inner[level][(number >> 6) as usize].children += 1;
        }
    }

    fn add_leaf(&mut self, mapping: MappingId, number: u32, object: NodeObject) {
        let leaf = Leaf {
            slots: [EMPTY; SLOTS],
            used: 0,
            shadows: 0,
            mapping: mapping.0,
            number,
            object,
            prev: NO_NODE,
            next: NO_NODE,
            listed: false,
        };
        let id = match self.free_leaves.pop() {
            Some(id) => {
                self.leaves[id as usize] = leaf;
                id
            }
            None => {
                self.leaves.push(leaf);
                u32::try_from(self.leaves.len() - 1).expect("fewer leaves than pages")
            }
        };
        let tree = &mut self.list[mapping.0 as usize];
        if tree.leaves.len() <= number as usize {
            tree.leaves.resize(number as usize + 1, NO_NODE);
        }
        tree.leaves[number as usize] = id;
        let head = core::mem::replace(&mut tree.head, EMPTY);
        if head != EMPTY {
            assert!(number == 0, "page 0 moves before other leaves are made");
            let _ = self.set(mapping, 0, head);
        }
    }

    /// Drops an empty leaf and the inner nodes that it leaves empty; returns their objects.
    fn drop_leaf(&mut self, id: u32, freed: &mut Vec<NodeObject>) {
        let leaf = &self.leaves[id as usize];
        assert!(leaf.used == 0 && !leaf.listed, "dropped a leaf in use");
        let (mapping, number) = (leaf.mapping, leaf.number);
        freed.push(leaf.object);
        self.free_leaves.push(id);
        let tree = &mut self.list[mapping as usize];
        tree.leaves[number as usize] = NO_NODE;
        tree.nodes -= 1;
        let mut child = number;
        for level in 0..usize::from(tree.height) {
            child >>= 6;
            let inner = &mut tree.inner[level][child as usize];
            inner.children -= 1;
            if inner.children > 0 {
                break;
            }
            freed.extend(inner.object.take());
            tree.nodes -= 1;
        }
        if tree.nodes == 0 {
            tree.height = 0;
        }
    }

    /// Takes what is left of a tree without pages and shadows: nodes that were prepared for an
    /// insertion that never came.
    fn take_remains(&mut self, mapping: MappingId, freed: &mut Vec<NodeObject>) {
        let tree = &mut self.list[mapping.0 as usize];
        freed.extend(tree.inner.iter_mut().flatten().filter_map(|inner| inner.object.take()));
        (tree.nodes, tree.height) = (0, 0);
    }
}

/// Inner levels that a tree needs to reach page `last`.
fn height_for(last: u32) -> usize {
    let mut height = 0;
    let mut leaves = last >> 6;
    while leaves > 0 {
        leaves >>= 6;
        height += 1;
    }
    height
}

impl<T: Trace> Memory<T> {
    /// A new empty mapping.
    pub fn mapping_create(&mut self) -> MappingId {
        let fresh = Mapping { live: true, ..Mapping::default() };
        match self.mappings.free.pop() {
            Some(id) => {
                self.mappings.list[id as usize] = fresh;
                MappingId(id)
            }
            None => {
                self.mappings.list.push(fresh);
                MappingId(u32::try_from(self.mappings.list.len() - 1).expect("fewer files than pages"))
            }
        }
    }

    /// Makes the tree nodes that inserting `pages` pages at `index` needs, for a task of `memcg`.
    /// Call again after having done what it asks for; other tasks may have changed the tree.
    pub fn prepare_insert(
        &mut self,
        cpu: CpuId,
        mapping: MappingId,
        index: u32,
        pages: u32,
        memcg: MemcgId,
    ) -> Prepared {
        while let Some((level, number)) = self.mappings.missing_node(mapping, index, pages) {
            let bytes = self.tree_node_bytes();
            if !self.memcgs.consume_object_stock(cpu, memcg, bytes) {
                return Prepared::NeedsCharge { pages: bytes.div_ceil(units::PAGE_SIZE as u32) };
            }
            let Some(slab) = self.tree_slab.alloc() else {
                self.memcgs.uncharge_object(cpu, memcg, bytes);
                return Prepared::NeedsSlab;
            };
            let node = units::NodeId(0);
            self.memcgs.add_stat(memcg, node, MemcgStat::SlabReclaimableBytes, u64::from(bytes));
            self.mappings.add_node(mapping, level, number, NodeObject { slab, memcg });
        }
        Prepared::Ready
    }

    /// Bytes that one tree node is charged with.
    fn tree_node_bytes(&self) -> u32 {
        let tuning = &self.alloc.kernel.tuning;
        u32::from(tuning.tree_node_size) + u32::from(tuning.object_cgroup_overhead)
    }

    /// The order that a slab of tree nodes is first tried with.
    pub fn tree_slab_order(&self) -> Order {
        self.tree_slab.order()
    }

    /// Hands a block to the cache of tree nodes.
    pub fn grow_tree_slab(&mut self, pfn: Pfn) {
        let order = self.alloc.frames.order(pfn);
        self.tree_slab.grow(pfn, order);
    }

    /// Adds a page or folio to the page cache; [`Prepared::Ready`] must have been returned for it
    /// just before. The page is charged to `memcg` already. Returns the shadow that lay there.
    ///
    /// # Panics
    /// When a slot is taken: callers look before they insert, with no wait in between.
    pub fn insert_page(
        &mut self,
        mapping: MappingId,
        index: u32,
        pfn: Pfn,
        memcg: MemcgId,
    ) -> Option<Shadow> {
        let pages = self.alloc.frames.pages(pfn);
        let mut shadow = None;
        for offset in 0..pages {
            match self.mappings.find(mapping, index + offset) {
                Slot::Page(_) => panic!("a page cache slot is taken twice"),
                Slot::Shadow(found) => shadow = Some(found),
                Slot::Empty => {}
            }
            let _ = self.mappings.set(mapping, index + offset, encode_page(pfn));
        }
        self.mappings.list[mapping.0 as usize].pages += u64::from(pages);
        self.alloc.frames.set_owner(pfn, mapping.0, index);
        self.alloc.frames.set_memcg(pfn, memcg.0);
        let (_, node) = self.page_place(pfn);
        self.memcgs.add_stat(memcg, node, MemcgStat::File, u64::from(pages));
        shadow
    }

    /// Takes a page out of its mapping, leaving `shadow` or nothing.
    pub(crate) fn remove_page(&mut self, cpu: CpuId, pfn: Pfn, shadow: Option<Shadow>) {
        let mapping = MappingId(self.alloc.frames.owner(pfn));
        let index = self.alloc.frames.index(pfn);
        let pages = self.alloc.frames.pages(pfn);
        self.mappings.list[mapping.0 as usize].pages -= u64::from(pages);
        let entry = shadow.map_or(EMPTY, encode_shadow);
        for offset in 0..pages {
            if let Some(leaf) = self.mappings.set(mapping, index + offset, entry) {
                self.free_leaf(cpu, leaf);
            }
        }
        self.alloc.frames.set_owner(pfn, NO_OWNER, 0);
        let (_, node) = self.page_place(pfn);
        self.memcgs.sub_stat(self.page_memcg(pfn), node, MemcgStat::File, u64::from(pages));
    }

    fn free_leaf(&mut self, cpu: CpuId, leaf: u32) -> u64 {
        let mut objects = core::mem::take(&mut self.node_scratch);
        self.mappings.drop_leaf(leaf, &mut objects);
        self.free_nodes(cpu, objects)
    }

    fn free_nodes(&mut self, cpu: CpuId, mut objects: NodeScratch) -> u64 {
        let bytes = self.tree_node_bytes();
        let mut pages = 0;
        for NodeObject { slab, memcg } in objects.drain(..) {
            self.memcgs.sub_stat(memcg, units::NodeId(0), MemcgStat::SlabReclaimableBytes, u64::from(bytes));
            self.memcgs.uncharge_object(cpu, memcg, bytes);
            if let Some(EmptySlab { pfn, order }) = self.tree_slab.free(slab) {
                pages += u64::from(order.pages());
                self.alloc.free(cpu, pfn, order);
            }
        }
        self.node_scratch = objects;
        pages
    }

    /// Frees every page of `mapping`, dirty or not, and its tree: truncation on unlink.
    pub fn mapping_remove(&mut self, cpu: CpuId, mapping: MappingId) {
        self.mapping_invalidate(cpu, mapping, false);
        for leaf in 0..self.mappings.list[mapping.0 as usize].leaves.len() {
            self.clear_shadows(cpu, self.mappings.list[mapping.0 as usize].leaves[leaf]);
        }
        let mut remains = core::mem::take(&mut self.node_scratch);
        self.mappings.take_remains(mapping, &mut remains);
        self.free_nodes(cpu, remains);
        self.mappings.list[mapping.0 as usize] = Mapping::default();
        self.mappings.free.push(mapping.0);
    }

    /// Frees the pages of `mapping` that nothing needs: what `drop_caches` does to a file, with
    /// `clean_only`. Shadows stay. Returns the pages freed.
    pub fn mapping_invalidate(&mut self, cpu: CpuId, mapping: MappingId, clean_only: bool) -> u64 {
        let busy = PageFlags::DIRTY
            .set(PageFlags::WRITEBACK)
            .set(PageFlags::LOCKED)
            .set(PageFlags::MAPPED)
            .set(PageFlags::MLOCKED);
        let mut freed = 0;
        for (_, pfn) in self.mappings.heads(mapping) {
            if clean_only && self.alloc.frames.flags(pfn).has_any(busy) {
                continue;
            }
            freed += u64::from(self.alloc.frames.pages(pfn));
            self.detach_from_lru(pfn);
            self.remove_page(cpu, pfn, None);
            self.release_file_page(cpu, pfn);
        }
        freed
    }

    /// Uncharges and frees a page that left its mapping and its list.
    pub(crate) fn release_file_page(&mut self, cpu: CpuId, pfn: Pfn) {
        let pages = self.alloc.frames.pages(pfn);
        self.memcgs.uncharge(self.page_memcg(pfn), u64::from(pages));
        self.alloc.free(cpu, pfn, self.alloc.frames.order(pfn));
    }

    /// Empties a leaf of its shadows and frees it. Returns the slab pages that came free.
    fn clear_shadows(&mut self, cpu: CpuId, leaf: u32) -> u64 {
        if leaf == NO_NODE {
            return 0;
        }
        let (mapping, first) = {
            let leaf = &self.mappings.leaves[leaf as usize];
            (MappingId(leaf.mapping), leaf.number << 6)
        };
        let mut emptied = self.mappings.leaves[leaf as usize].used == 0;
        for offset in 0..SLOTS {
            let entry = self.mappings.leaves[leaf as usize].slots[offset];
            if (entry & SHADOW_BIT) != 0 {
                let index = first + u32::try_from(offset).expect("64 slots");
                emptied = self.mappings.set(mapping, index, EMPTY).is_some();
            }
        }
        if emptied { self.free_leaf(cpu, leaf) } else { 0 }
    }

    /// Objects that the shadow shrinker may free for `memcg`: leaves beyond an eighth of the
    /// cgroup's own pages (`count_shadow_nodes`).
    pub(crate) fn freeable_shadow_leaves(&self, memcg: MemcgId) -> u64 {
        let leaves = self.mappings.shadow_lists.get(memcg.index()).map_or(0, |list| list.len);
        if leaves == 0 {
            return 0;
        }
        let of = |stat| -> u64 {
            (0..self.alloc.nodes.len())
                .map(|node| self.memcgs.local_stat(memcg, units::NodeId(node as u8), stat))
                .sum()
        };
        let lru: u64 = crate::lru::LruList::ALL.iter().map(|list| of(list.stat())).sum();
        let slab = of(MemcgStat::SlabReclaimableBytes) + of(MemcgStat::SlabUnreclaimableBytes);
        leaves.saturating_sub((lru + (slab / units::PAGE_SIZE)) >> 3)
    }

    /// What the shadow shrinker owes for `memcg` from earlier passes.
    pub(crate) fn deferred_shadow_leaves(&mut self, memcg: MemcgId) -> &mut u64 {
        &mut self.mappings.shadow_list(memcg).deferred
    }

    /// Frees up to `count` of the oldest leaves that hold only shadows (`scan_shadow_nodes`).
    /// Returns leaves freed and slab pages that came free.
    pub(crate) fn shrink_shadow_leaves(&mut self, cpu: CpuId, memcg: MemcgId, count: u64) -> (u64, u64) {
        let (mut freed, mut pages) = (0, 0);
        while freed < count {
            let head = self.mappings.shadow_list(memcg).head;
            if head == NO_NODE {
                break;
            }
            pages += self.clear_shadows(cpu, head);
            freed += 1;
        }
        self.alloc.events.add(VmEvent::WorkingsetNodeReclaim, freed);
        self.memcgs.add_stat(memcg, units::NodeId(0), MemcgStat::WorkingsetNodeReclaim, freed);
        (freed, pages)
    }
}

/// Nodes on their way out; kept between calls so that freeing allocates nothing.
pub(crate) type NodeScratch = Vec<NodeObject>;
