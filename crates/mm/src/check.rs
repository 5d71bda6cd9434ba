//! Invariants over the whole memory state; the first violation is named.
//!
//! [`crate::alloc::page_alloc::PageAllocator::check`] covers frames, free lists, per-CPU lists and
//! pageblocks. Here: every page in use by a list, batch, mapping or slab is where its frame says,
//! LRU sizes equal recounts, and charges cover what is charged for. O(frames): run after every
//! event of small worlds, and at the end of large ones.
//!
//! A task that waits between charging a page and listing it holds a charge that no page shows; one
//! that brings an inode into memory holds its first object while it waits for the next. So charges
//! and objects may exceed what is found, and equal it only while no task is in a system call
//! ([`Memory::check_at_rest`]).

mod cache_ext;
mod generations;
mod mlocked;
mod sample;
mod swap;
#[cfg(test)]
mod xfs_scenes;

use std_alloc::format;
use std_alloc::string::String;
use std_alloc::vec;
use std_alloc::vec::Vec;

use units::{PAGE_SIZE, Pfn};

use crate::base::event::Trace;
use crate::base::frame::{FrameState, NO_OWNER, PageFlags};
use crate::base::ids::{MappingId, MemcgId};
use crate::base::layout::ZoneKind;
use crate::base::violation::{Violation, ensure};
use crate::base::vmstat::MemcgStat;
use crate::lru::lists::LruList;
use crate::memory::Memory;
use crate::pages::tree::{Mappings, Slot};
use crate::version::geometry::Cache;

/// What the frames say of themselves.
struct PagesInUse {
    /// Folios on lists.
    listed: u64,
    /// Folios in page cache trees.
    cached: u64,
    /// Pages on lists and in batches, by cgroup.
    pages_of: Vec<u64>,
}

impl<T: Trace> Memory<T> {
    /// Checks everything that holds between any two steps.
    ///
    /// # Errors
    /// The first invariant that does not hold.
    pub fn check(&self) -> Result<(), Violation> {
        self.check_with(|charged, found| charged >= found)
    }

    /// Checks everything, and that nothing is charged or allocated that is not there.
    ///
    /// # Errors
    /// The first invariant that does not hold.
    pub fn check_at_rest(&self) -> Result<(), Violation> {
        self.check_with(|charged, found| charged == found)
    }

    fn check_with(&self, holds: fn(u64, u64) -> bool) -> Result<(), Violation> {
        self.core.alloc.check()?;
        let found = self.pages_in_use()?;
        self.check_lists(found.listed)?;
        self.check_mappings(found.cached)?;
        self.anon.check(&self.core).map_err(|problem| Violation(format!("anonymous memory: {problem}")))?;
        let maps = self.cache.check_maps(&self.core);
        maps.map_err(|problem| Violation(format!("mapped files: {problem}")))?;
        self.check_slabs(holds)?;
        self.check_writeback()?;
        self.check_mlocked()?;
        self.check_policies()?;
        self.check_swap()?;
        self.core.cgroups.check().map_err(|problem| Violation(String::from(problem)))?;
        self.check_charges(&found.pages_of, holds)
    }

    /// Goes through all frames once.
    fn pages_in_use(&self) -> Result<PagesInUse, Violation> {
        let frames = &self.core.alloc.frames;
        let mut found =
            PagesInUse { listed: 0, cached: 0, pages_of: vec![0; self.core.cgroups.ids().count()] };
        for index in 0..frames.len() {
            let pfn = Pfn(u32::try_from(index).expect("frames are numbered in 32 bits"));
            match frames.state(pfn) {
                FrameState::Lru => found.listed += 1,
                FrameState::Batch => {}
                FrameState::Isolated => {
                    return Err(Violation(format!("{pfn:?} is isolated between steps")));
                }
                _ => continue,
            }
            found.pages_of[self.core.page_memcg(pfn).index()] += u64::from(frames.pages(pfn));
            if !frames.is_anon(pfn) {
                found.cached += 1;
                let slot = self.cache.find(MappingId(frames.owner(pfn)), frames.index(pfn));
                ensure!(slot == Slot::Page(pfn), "{pfn:?} says that it is cached; its slot holds {slot:?}");
            }
        }
        Ok(found)
    }

    fn check_lists(&self, states: u64) -> Result<(), Violation> {
        let frames = &self.core.alloc.frames;
        let mut listed = 0_u64;
        for memcg in self.core.cgroups.ids() {
            for node in self.nodes() {
                let lruvec = self.lru.lruvec(memcg, node);
                listed += self.check_generations(memcg, node)?;
                if let Some(hand) = lruvec.hand() {
                    let is_listed = frames.state(hand) == FrameState::Lru
                        && LruList::of(frames.flags(hand)) == LruList::InactiveFile
                        && (self.core.page_memcg(hand), self.core.page_place(hand).1) == (memcg, node);
                    ensure!(is_listed, "the hand of {memcg:?} is at {hand:?}, which is not on its queue");
                }
                for list in LruList::ALL {
                    let mut pages = [0_u64; ZoneKind::COUNT];
                    let mut length = 0;
                    for pfn in lruvec.list(list).iter(frames) {
                        length += 1;
                        self.check_place(memcg, node, pfn)?;
                        ensure!(
                            LruList::of(frames.flags(pfn)) == list,
                            "{pfn:?} is on {list:?} with flags {:?}",
                            frames.flags(pfn)
                        );
                        let (zone, _) = self.core.page_place(pfn);
                        pages[zone as usize] += u64::from(frames.pages(pfn));
                    }
                    listed += u64::from(length);
                    ensure!(
                        length == lruvec.list(list).len(),
                        "{list:?} of {memcg:?} has {length} elements and says {}",
                        lruvec.list(list).len()
                    );
                    if lruvec.gens().is_some() && list != LruList::Unevictable {
                        ensure!(length == 0, "{list:?} of {memcg:?} has pages beside generations");
                        continue;
                    }
                    self.check_sizes(memcg, node, list, pages)?;
                }
            }
        }
        self.check_node_sizes()?;
        ensure!(states == listed, "{states} frames say that they are on a list, {listed} are");
        for pfn in self.lru.add_batches() {
            ensure!(
                frames.state(pfn) == FrameState::Batch,
                "{pfn:?} waits in a batch as {:?}",
                frames.state(pfn)
            );
        }
        Ok(())
    }

    /// What is kept by node is what the lists of all cgroups there add up to.
    fn check_node_sizes(&self) -> Result<(), Violation> {
        for node in self.nodes() {
            for (list, kind) in
                LruList::ALL.into_iter().flat_map(|list| ZoneKind::ALL.map(|kind| (list, kind)))
            {
                let of = |memcg| self.lru.lruvec(memcg, node).by_zone(list)[kind as usize];
                let sum: u64 = self.core.cgroups.ids().map(of).sum();
                let kept = self.lru.zone_pages(list, node, kind);
                ensure!(
                    sum == kept,
                    "{list:?} of {node:?} adds up to {sum} pages of {kind:?} and says {kept}"
                );
            }
        }
        Ok(())
    }

    fn check_mappings(&self, frames_cached: u64) -> Result<(), Violation> {
        let frames = &self.core.alloc.frames;
        let mut cached = 0_u64;
        for mapping in self.cache.trees().ids() {
            if let Err(problem) = self.cache.trees().check(mapping) {
                return Err(Violation(format!("{mapping:?}: {problem}")));
            }
            if self.cache.first_slot(mapping).is_some() {
                continue; // Pages of the swap cache: see `check/swap.rs`.
            }
            for (index, pfn) in self.cache.trees().heads(mapping) {
                cached += 1;
                let owner = (frames.owner(pfn), frames.index(pfn));
                ensure!(
                    owner == (mapping.0, index),
                    "{mapping:?} has {pfn:?} at {index}, the frame says {owner:?}"
                );
                ensure!(frames.is_lru_page(pfn), "{pfn:?} is cached and {:?}", frames.state(pfn));
            }
        }
        ensure!(cached == frames_cached, "{cached} folios are cached, {frames_cached} frames say so");
        Ok(())
    }

    fn check_slabs(&self, holds: fn(u64, u64) -> bool) -> Result<(), Violation> {
        let frames = &self.core.alloc.frames;
        let mut used = [0_u64; Cache::COUNT];
        self.core.slabs.payers().for_each(|object| used[object.cache as usize] += 1);
        used[Cache::SwapTable as usize] = self.cache.swap_tables();
        used[Cache::TreeNode as usize] = self.cache.trees().nodes() - self.cache.swap_tables();
        used[Cache::ZswapEntry as usize] = self.core.swap.zswap.stored_pages();
        used[Cache::JournalHead as usize] = self.cache.heads.objects();
        used[Cache::ExtentStatus as usize] = self.fs.vfs.extents.objects();
        [used[Cache::Bio as usize], used[Cache::BioVec as usize]] = self.fs.bios();
        self.fs
            .vfs
            .objects()
            .chain(self.fs.xfs_log.objects())
            .for_each(|object| used[object.cache as usize] += 1);
        let buffered = |&pfn: &Pfn| frames.is_lru_page(pfn) && frames.flags(pfn).has(PageFlags::PRIVATE);
        used[Cache::BufferHead as usize] = (0..frames.len())
            .map(|index| Pfn(index as u32))
            .filter(buffered)
            .map(|pfn| u64::from(frames.pages(pfn)))
            .sum();
        for cache in Cache::ALL {
            let slabs = &self.core.slabs;
            let (name, objects, held) = (cache.name(), slabs.objects(cache), used[cache as usize]);
            ensure!(holds(objects, held), "{name}: {objects} objects are in use, {held} are held");
            for slab in slabs.blocks(cache) {
                let state = frames.state(slab.pfn);
                ensure!(state == FrameState::InUse, "slab {:?} of {name} is {state:?}", slab.pfn);
            }
        }
        self.fs
            .check_xfs(self.core.rules().inode_cluster)
            .map_err(|problem| Violation(String::from(problem)))?;
        if let Some(pfn) = self.fs.xfs_buffers.all_pages().find(|&pfn| frames.state(pfn) != FrameState::InUse)
        {
            return Err(Violation(format!("{pfn:?} of a buffer is {:?}", frames.state(pfn))));
        }
        let slabs = self.core.slabs.check();
        slabs.map_err(|(cache, problem)| Violation(format!("{}: {problem}", cache.name())))?;
        self.fs.vfs.check().map_err(|problem| Violation(String::from(problem)))?;
        self.check_journals()
    }

    fn check_journals(&self) -> Result<(), Violation> {
        let frames = &self.core.alloc.frames;
        let is_held = |pfn| frames.is_lru_page(pfn) && frames.flags(pfn).has(PageFlags::JOURNAL);
        for journal in &self.fs.journals {
            let mapping = journal.mapping();
            let pages = self.cache.trees().heads(mapping);
            let held = pages.iter().filter(|&&(_, pfn)| is_held(pfn)).count() as u64;
            let holds = |block| matches!(self.cache.find(mapping, block), Slot::Page(pfn) if is_held(pfn));
            journal.check(&holds, held).map_err(|problem| Violation(String::from(problem)))?;
        }
        for (device, block) in self.cache.heads.blocks() {
            let is_there = matches!(self.cache.find(device, block), Slot::Page(_));
            ensure!(is_there, "block {block} has a journal head and has left memory");
        }
        self.fs.vfs.extents.check().map_err(|problem| Violation(String::from(problem)))
    }

    fn check_writeback(&self) -> Result<(), Violation> {
        let frames = &self.core.alloc.frames;
        let count = self.core.cgroups.ids().count();
        let mut by_memcg = vec![(0_u64, 0_u64); count];
        let (mut dirty, mut writeback) = (0, 0);
        for index in 0..frames.len() {
            let pfn = Pfn(index as u32);
            let flags = frames.flags(pfn);
            if !frames.is_lru_page(pfn) || !flags.has_any(PageFlags::DIRTY.set(PageFlags::WRITEBACK)) {
                continue;
            }
            let kept = frames.owner(pfn) != NO_OWNER || flags.has(PageFlags::SWAP_CACHE);
            ensure!(kept, "{pfn:?} is {flags:?} and in no file");
            let pages = u64::from(frames.pages(pfn));
            let sums = &mut by_memcg[self.core.page_memcg(pfn).index()];
            if flags.has(PageFlags::DIRTY) {
                (dirty, sums.0) = (dirty + pages, sums.0 + pages);
                let (owner, at) = (MappingId(frames.owner(pfn)), frames.index(pfn));
                ensure!(
                    self.cache.trees().next_dirty(owner, at) == Some(at),
                    "{pfn:?} is dirty without a tag"
                );
            }
            if flags.has(PageFlags::WRITEBACK) {
                (writeback, sums.1) = (writeback + pages, sums.1 + pages);
            }
        }
        let said = (self.cache.dirty(), self.cache.under_writeback());
        ensure!(said == (dirty, writeback), "{said:?} pages are dirty and written, not {dirty}, {writeback}");
        let mappings = |of: fn(&Mappings, MappingId) -> u64| -> u64 {
            self.cache.trees().ids().map(|mapping| of(self.cache.trees(), mapping)).sum()
        };
        let (tagged, written) = (mappings(Mappings::dirty_pages), mappings(Mappings::writeback_pages));
        ensure!(written == writeback, "mappings have {written} pages under writeback, not {writeback}");
        ensure!(tagged <= dirty, "{tagged} pages are tagged dirty, {dirty} are");
        for memcg in self.core.cgroups.ids() {
            let stat = |stat| -> u64 {
                self.nodes().map(|node| self.core.cgroups.local_stat(memcg, node, stat)).sum()
            };
            let said = (stat(MemcgStat::FileDirty), stat(MemcgStat::FileWriteback));
            let is = by_memcg[memcg.index()];
            ensure!(said == is, "{memcg:?} has {is:?} pages dirty and under writeback and says {said:?}");
        }
        Ok(())
    }

    fn check_charges(&self, pages_of: &[u64], holds: fn(u64, u64) -> bool) -> Result<(), Violation> {
        for memcg in self.core.cgroups.ids().skip(1) {
            let below: u64 = self
                .core
                .cgroups
                .ids()
                .filter(|&id| self.core.cgroups.is_descendant(id, memcg))
                .map(|id| {
                    let kernel: u64 = self
                        .nodes()
                        .map(|node| self.core.cgroups.local_stat(id, node, MemcgStat::KernelBytes))
                        .sum();
                    pages_of[id.index()] + (kernel / PAGE_SIZE)
                })
                .sum();
            let stocked = self.core.cgroups.stocked_pages(memcg);
            let usage = self.core.cgroups[memcg].memory.usage;
            ensure!(
                holds(usage, below + stocked),
                "{memcg:?} is charged {usage} pages; its pages are {below} and stocks hold {stocked}"
            );
        }
        ensure!(self.core.cgroups[MemcgId::ROOT].parent.is_none(), "the root has a parent");
        Ok(())
    }
}
