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
//! Leaves carry the tag of dirty pages, so that writeback finds them without looking at each page.
//!
//! Left out: the other tags, multi-order entries (a large folio fills each of its slots), DAX. Neighbours:
//! [`crate::lru::workingset`] for what a shadow says, [`crate::slab::caches`] for the nodes' pages,
//! [`crate::pages::dirty`] for dirty pages.

use std_alloc::vec::Vec;

use units::{CpuId, Pfn};

use crate::base::event::Trace;
use crate::base::frame::{NO_OWNER, PageFlags};
use crate::base::ids::MappingId;
use crate::base::ids::MemcgId;
use crate::base::vmstat::{MemcgStat, VmEvent};
use crate::lru::workingset::Shadow;
use crate::memory::Memory;
use crate::pages::tree::Slot;
use crate::slab::object::{Object, ObjectAlloc};
use crate::version::geometry::Cache;

use crate::pages::tree::{EMPTY, Mapping, NO_NODE, SHADOW_BIT, SLOTS, encode_page, encode_shadow};

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
    /// Allocate a reclaimable slab block and hand it to [`Memory::grow_slab`].
    NeedsSlab,
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
            match self.core.alloc_object(cpu, Cache::TreeNode, memcg) {
                ObjectAlloc::Done(object) => self.mappings.add_node(mapping, level, number, object),
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
    pub fn insert_page(
        &mut self,
        mapping: MappingId,
        index: u32,
        pfn: Pfn,
        memcg: MemcgId,
    ) -> Option<Shadow> {
        let pages = self.core.alloc.frames.pages(pfn);
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
        self.mappings.total_pages += u64::from(pages);
        self.core.alloc.frames.set_owner(pfn, mapping.0, index);
        self.core.alloc.frames.set_memcg(pfn, memcg.0);
        let (_, node) = self.core.page_place(pfn);
        self.core.cgroups.add_stat(memcg, node, MemcgStat::File, u64::from(pages));
        shadow
    }

    /// Lets the place of `old` in its mapping name `new`, of the same order, instead.
    pub(crate) fn replace_page(&mut self, mapping: MappingId, old: Pfn, new: Pfn) {
        let (index, pages) = (self.core.alloc.frames.index(old), self.core.alloc.frames.pages(old));
        for index in index..index + pages {
            assert!(self.mappings.find(mapping, index) == Slot::Page(old), "tree and frame agree");
            let _ = self.mappings.set(mapping, index, encode_page(new));
        }
    }

    /// Takes a page out of its mapping, leaving `shadow` or nothing.
    pub(crate) fn remove_page(&mut self, cpu: CpuId, pfn: Pfn, shadow: Option<Shadow>) {
        let mapping = MappingId(self.core.alloc.frames.owner(pfn));
        let index = self.core.alloc.frames.index(pfn);
        let pages = self.core.alloc.frames.pages(pfn);
        let flags = self.core.alloc.frames.flags(pfn);
        if flags.has_any(PageFlags::DIRTY.set(PageFlags::PRIVATE)) {
            self.clear_private(cpu, pfn);
        }
        self.mappings.list[mapping.0 as usize].pages -= u64::from(pages);
        self.mappings.total_pages -= u64::from(pages);
        let entry = shadow.map_or(EMPTY, encode_shadow);
        for offset in 0..pages {
            if let Some(leaf) = self.mappings.set(mapping, index + offset, entry) {
                self.free_leaf(cpu, leaf);
            }
        }
        self.core.alloc.frames.set_owner(pfn, NO_OWNER, 0);
        let (_, node) = self.core.page_place(pfn);
        self.core.cgroups.sub_stat(self.core.page_memcg(pfn), node, MemcgStat::File, u64::from(pages));
    }

    fn free_leaf(&mut self, cpu: CpuId, leaf: u32) -> u64 {
        let mut objects = core::mem::take(&mut self.node_scratch);
        self.mappings.drop_leaf(leaf, &mut objects);
        self.free_nodes(cpu, objects)
    }

    fn free_nodes(&mut self, cpu: CpuId, mut objects: NodeScratch) -> u64 {
        let mut pages = 0;
        for object in objects.drain(..) {
            pages += self.core.free_object(cpu, object);
        }
        self.node_scratch = objects;
        pages
    }

    /// Frees every page of `mapping`, dirty or not, and its tree: truncation on unlink.
    pub fn mapping_remove(&mut self, cpu: CpuId, mapping: MappingId) {
        self.inode_forget(cpu, mapping);
        self.mapping_invalidate(cpu, mapping, false);
        self.mapping_clear(cpu, mapping);
        self.mappings.list[mapping.0 as usize] = Mapping::default();
        self.mappings.free.push(mapping.0);
    }

    /// Frees shadows and nodes of a mapping without pages.
    pub(crate) fn mapping_clear(&mut self, cpu: CpuId, mapping: MappingId) {
        assert!(self.mappings.pages(mapping) == 0, "pages are freed before their tree");
        for leaf in 0..self.mappings.list[mapping.0 as usize].leaves.len() {
            self.clear_shadows(cpu, self.mappings.list[mapping.0 as usize].leaves[leaf]);
        }
        let mut remains = core::mem::take(&mut self.node_scratch);
        self.mappings.take_remains(mapping, &mut remains);
        self.free_nodes(cpu, remains);
        self.mappings.list[mapping.0 as usize].head = EMPTY;
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
            if clean_only && self.core.alloc.frames.flags(pfn).has_any(busy) {
                continue;
            }
            freed += u64::from(self.core.alloc.frames.pages(pfn));
            self.detach_from_lru(pfn);
            self.remove_page(cpu, pfn, None);
            self.release_file_page(cpu, pfn);
        }
        freed
    }

    /// Uncharges and frees a page that left its mapping and its list.
    pub(crate) fn release_file_page(&mut self, cpu: CpuId, pfn: Pfn) {
        let pages = self.core.alloc.frames.pages(pfn);
        self.core.cgroups.uncharge(self.core.page_memcg(pfn), u64::from(pages));
        self.core.alloc.free(cpu, pfn, self.core.alloc.frames.order(pfn));
    }

    /// Empties a leaf of its shadows and frees it, unless it holds pages. Returns the slab pages that came free.
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
        let freed = if emptied { self.free_leaf(cpu, leaf) } else { 0 };
        self.inode_lost_pages(mapping);
        freed
    }

    /// Objects that the shadow shrinker may free for `memcg`: leaves beyond an eighth of the
    /// cgroup's own pages (`count_shadow_nodes`).
    pub(crate) fn freeable_shadow_leaves(&self, memcg: MemcgId) -> u64 {
        let leaves = self.mappings.shadow_lists.get(memcg.index()).map_or(0, |list| list.len);
        if leaves == 0 {
            return 0;
        }
        let of = |stat| -> u64 {
            (0..self.core.alloc.nodes().len())
                .map(|node| self.core.cgroups.local_stat(memcg, units::NodeId(node as u8), stat))
                .sum()
        };
        let lru: u64 = crate::lru::lists::LruList::ALL.iter().map(|list| of(list.stat())).sum();
        let slab = of(MemcgStat::SlabReclaimableBytes) + of(MemcgStat::SlabUnreclaimableBytes);
        leaves.saturating_sub((lru + (slab / units::PAGE_SIZE)) >> 3)
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
        self.core.alloc.events.add(VmEvent::WorkingsetNodeReclaim, freed);
        self.core.cgroups.add_stat(memcg, units::NodeId(0), MemcgStat::WorkingsetNodeReclaim, freed);
        (freed, pages)
    }
}

/// Nodes on their way out; kept between calls so that freeing allocates nothing.
pub(crate) type NodeScratch = Vec<Object>;
