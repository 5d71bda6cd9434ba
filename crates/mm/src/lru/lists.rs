//! LRU lists of each cgroup on each node, the per-CPU batches in front of them, and what an
//! access does to a page (MECHANISMS 6.1 to 6.4, MECHANISMS-6X 2.3 and 2.4).
//!
//! ```text
//!   new file page --> [batch of 15 or 31] --> inactive head ... tail --> reclaim
//!   second access --> [activate batch]    --> active head   ... tail --> inactive head
//! ```
//!
//! Sizes count pages; a large folio is one list element. Pages in a batch are on no list.
//! Left out: rotation and lazy-free batches, the multi-gen LRU. Neighbours: [`crate::reclaim::pass`]
//! decides how much of a list is looked at, [`crate::reclaim::page`] what becomes of each page.

use std_alloc::vec::Vec;

use units::{CpuId, NodeId, Pfn};

use crate::base::event::Trace;
use crate::base::frame::{FrameList, FrameState, PageFlags};
use crate::base::ids::MemcgId;
use crate::base::layout::ZoneKind;
use crate::base::vmstat::{MemcgStat, VmEvent};
use crate::memory::Memory;
use crate::version::feature::Feature;

/// The lists of an lruvec.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
#[allow(missing_docs)] // Named as in the kernel.
pub enum LruList {
    InactiveAnon,
    ActiveAnon,
    InactiveFile,
    ActiveFile,
    Unevictable,
}

impl LruList {
    /// Every list.
    pub const ALL: [Self; 5] =
        [Self::InactiveAnon, Self::ActiveAnon, Self::InactiveFile, Self::ActiveFile, Self::Unevictable];
    /// The lists that reclaim scans, in the order in which it does.
    pub const EVICTABLE: [Self; 4] =
        [Self::InactiveAnon, Self::ActiveAnon, Self::InactiveFile, Self::ActiveFile];

    /// The list that a page with these flags belongs on.
    #[inline]
    pub const fn of(flags: PageFlags) -> Self {
        if flags.has(PageFlags::UNEVICTABLE) {
            return Self::Unevictable;
        }
        match (flags.has(PageFlags::SWAP_BACKED), flags.has(PageFlags::ACTIVE)) {
            (true, false) => Self::InactiveAnon,
            (true, true) => Self::ActiveAnon,
            (false, false) => Self::InactiveFile,
            (false, true) => Self::ActiveFile,
        }
    }

    /// Whether it holds file pages.
    #[inline]
    pub const fn is_file(self) -> bool {
        matches!(self, Self::InactiveFile | Self::ActiveFile)
    }

    /// Whether it is one of the active lists.
    #[inline]
    pub const fn is_active(self) -> bool {
        matches!(self, Self::ActiveAnon | Self::ActiveFile)
    }

    /// The statistic that counts its pages.
    pub const fn stat(self) -> MemcgStat {
        match self {
            Self::InactiveAnon => MemcgStat::InactiveAnon,
            Self::ActiveAnon => MemcgStat::ActiveAnon,
            Self::InactiveFile => MemcgStat::InactiveFile,
            Self::ActiveFile => MemcgStat::ActiveFile,
            Self::Unevictable => MemcgStat::Unevictable,
        }
    }
}

/// The lists of one cgroup on one node.
#[derive(Debug, Clone, Default)]
pub struct Lruvec {
    pub(crate) lists: [FrameList; 5],
    /// Pages on each list by zone: what reclaim's quotas are cut from, always exact.
    pub(crate) pages: [[u64; ZoneKind::COUNT]; 5],
    /// `nonresident_age` (up to 5.4 `inactive_age`): evictions and activations so far.
    pub(crate) age: u64,
    /// `refaults`: activations of refaulted pages (anon, file) as of the last snapshot.
    pub(crate) refaults: [u64; 2],
}

impl Lruvec {
    /// Pages on `list` in zones up to `class`.
    #[inline]
    pub fn size(&self, list: LruList, class: ZoneKind) -> u64 {
        self.pages[list as usize][..=(class as usize)].iter().sum()
    }
}

/// The batches of one CPU.
#[derive(Debug, Clone, Default)]
pub(crate) struct CpuBatches {
    pub(crate) add: Vec<Pfn>,
    pub(crate) activate: Vec<Pfn>,
}

impl<T: Trace> Memory<T> {
    /// The lists of `memcg` on `node`.
    pub fn lruvec(&self, memcg: MemcgId, node: NodeId) -> &Lruvec {
        &self.lruvecs[self.core.lruvec_index(memcg, node)]
    }

    /// The folios on one list of `memcg` on `node`, the newest first.
    pub fn lru_list(&self, memcg: MemcgId, node: NodeId, list: LruList) -> impl Iterator<Item = Pfn> + '_ {
        self.lruvec(memcg, node).lists[list as usize].iter(&self.core.alloc.frames)
    }

    /// The folios in the batch of `cpu` on their way to a list, the oldest first.
    pub fn add_batch(&self, cpu: CpuId) -> &[Pfn] {
        &self.cpus[cpu.index()].add
    }

    /// Puts a page that is on no list at the head of the one its flags name.
    #[inline]
    pub(crate) fn lru_insert(&mut self, pfn: Pfn) {
        self.lru_insert_at(pfn, false);
    }

    /// [`Self::lru_insert`] at the tail, which reclaim takes from.
    pub(crate) fn lru_insert_tail(&mut self, pfn: Pfn) {
        self.lru_insert_at(pfn, true);
    }

    #[inline]
    fn lru_insert_at(&mut self, pfn: Pfn, tail: bool) {
        let list = LruList::of(self.core.alloc.frames.flags(pfn));
        let (zone, node) = self.core.page_place(pfn);
        let memcg = self.core.page_memcg(pfn);
        let pages = u64::from(self.core.alloc.frames.pages(pfn));
        let index = self.core.lruvec_index(memcg, node);
        let lruvec = &mut self.lruvecs[index];
        lruvec.pages[list as usize][zone as usize] += pages;
        let frames = &mut self.core.alloc.frames;
        if tail {
            lruvec.lists[list as usize].push_back(frames, pfn);
        } else {
            lruvec.lists[list as usize].push_front(frames, pfn);
        }
        frames.set_state(pfn, FrameState::Lru);
        self.core.cgroups.add_stat(memcg, node, list.stat(), pages);
    }

    /// Takes a page off its list; its state becomes `Isolated`.
    pub(crate) fn lru_remove(&mut self, pfn: Pfn) {
        let list = LruList::of(self.core.alloc.frames.flags(pfn));
        let (zone, node) = self.core.page_place(pfn);
        let memcg = self.core.page_memcg(pfn);
        let pages = u64::from(self.core.alloc.frames.pages(pfn));
        let index = self.core.lruvec_index(memcg, node);
        let lruvec = &mut self.lruvecs[index];
        lruvec.pages[list as usize][zone as usize] -= pages;
        lruvec.lists[list as usize].remove(&mut self.core.alloc.frames, pfn);
        self.core.alloc.frames.set_state(pfn, FrameState::Isolated);
        self.core.cgroups.sub_stat(memcg, node, list.stat(), pages);
    }

    /// `folio_add_lru`: queues a new page for the list that its flags name. The batch is flushed
    /// when it is full, and at once for a large folio.
    pub fn lru_add(&mut self, cpu: CpuId, pfn: Pfn) {
        self.core.alloc.frames.set_state(pfn, FrameState::Batch);
        let limit = usize::from(self.core.alloc.tuning().lru_batch);
        let large = self.core.alloc.frames.pages(pfn) > 1;
        let batch = &mut self.cpus[cpu.index()].add;
        batch.push(pfn);
        if large || batch.len() >= limit {
            self.flush_add_batch(cpu);
        }
    }

    fn flush_add_batch(&mut self, cpu: CpuId) {
        let mut batch = core::mem::take(&mut self.cpus[cpu.index()].add);
        for pfn in batch.drain(..) {
            // A page that was removed while it waited here is marked by its state.
            if self.core.alloc.frames.state(pfn) == FrameState::Batch {
                self.lru_insert(pfn);
            }
        }
        self.cpus[cpu.index()].add = batch;
    }

    fn flush_activate_batch(&mut self, cpu: CpuId) {
        let mut batch = core::mem::take(&mut self.cpus[cpu.index()].activate);
        for pfn in batch.drain(..) {
            self.core.alloc.frames.clear_flags(pfn, PageFlags::ACTIVATING);
            self.activate_now(pfn);
        }
        self.cpus[cpu.index()].activate = batch;
    }

    fn activate_now(&mut self, pfn: Pfn) {
        let flags = self.core.alloc.frames.flags(pfn);
        let settled = self.core.alloc.frames.state(pfn) == FrameState::Lru;
        if !settled || flags.has_any(PageFlags::ACTIVE.set(PageFlags::UNEVICTABLE)) {
            return;
        }
        self.lru_remove(pfn);
        self.core.alloc.frames.set_flags(pfn, PageFlags::ACTIVE);
        self.lru_insert(pfn);
        let pages = u64::from(self.core.alloc.frames.pages(pfn));
        let (_, node) = self.core.page_place(pfn);
        self.core.alloc.events.add(VmEvent::PgActivate, pages);
        self.core.cgroups.add_stat(self.core.page_memcg(pfn), node, MemcgStat::PgActivate, pages);
    }

    /// `lru_add_drain_cpu`: empties the batches of `cpu` onto the lists.
    pub fn lru_drain(&mut self, cpu: CpuId) {
        if !self.cpus[cpu.index()].add.is_empty() {
            self.flush_add_batch(cpu);
        }
        if !self.cpus[cpu.index()].activate.is_empty() {
            self.flush_activate_batch(cpu);
        }
    }

    /// `lru_add_drain_all`.
    pub fn lru_drain_all(&mut self) {
        for index in 0..self.cpus.len() {
            self.lru_drain(CpuId(u16::try_from(index).expect("CPUs are numbered in 16 bits")));
        }
    }

    /// `folio_mark_accessed`, for an access through `read` or `write`: the first one sets
    /// Referenced, the second one activates an inactive page.
    pub fn mark_accessed(&mut self, cpu: CpuId, pfn: Pfn) {
        let flags = self.core.alloc.frames.flags(pfn);
        if !flags.has(PageFlags::REFERENCED) {
            self.core.alloc.frames.set_flags(pfn, PageFlags::REFERENCED);
            return;
        }
        if flags.has_any(PageFlags::ACTIVE.set(PageFlags::UNEVICTABLE)) {
            return;
        }
        match self.core.alloc.frames.state(pfn) {
            FrameState::Lru => self.activate(cpu, pfn),
            // Still in an add batch: it goes straight to the active list, if the batch is ours.
            FrameState::Batch if self.cpus[cpu.index()].add.contains(&pfn) => {
                self.core.alloc.frames.set_flags(pfn, PageFlags::ACTIVE);
            }
            _ => {}
        }
        self.core.alloc.frames.clear_flags(pfn, PageFlags::REFERENCED);
        self.age_on_activation(pfn);
    }

    /// `folio_activate`: through the CPU's batch.
    fn activate(&mut self, cpu: CpuId, pfn: Pfn) {
        let limit = usize::from(self.core.alloc.tuning().lru_batch);
        let large = self.core.alloc.frames.pages(pfn) > 1;
        if self.core.alloc.frames.flags(pfn).has(PageFlags::ACTIVATING) {
            return;
        }
        self.core.alloc.frames.set_flags(pfn, PageFlags::ACTIVATING);
        let batch = &mut self.cpus[cpu.index()].activate;
        batch.push(pfn);
        if large || batch.len() >= limit {
            self.flush_activate_batch(cpu);
        }
    }

    /// Forgets a page that waits in some batch: it is being freed.
    pub(crate) fn forget_batched(&mut self, pfn: Pfn) {
        for cpu in &mut self.cpus {
            cpu.add.retain(|&other| other != pfn);
            cpu.activate.retain(|&other| other != pfn);
        }
    }

    /// Puts a new anonymous page of `memcg` on its way to the lists. Up to 5.8 it starts active.
    pub fn anon_add(&mut self, cpu: CpuId, pfn: Pfn, memcg: MemcgId) {
        let mut flags = PageFlags::SWAP_BACKED.set(PageFlags::MAPPED).set(PageFlags::YOUNG);
        if !self.core.alloc.features().has(Feature::AnonStartsInactive) {
            flags = flags.set(PageFlags::ACTIVE);
        }
        self.core.alloc.frames.put_flags(pfn, flags);
        self.core.alloc.frames.set_memcg(pfn, memcg.0);
        let (_, node) = self.core.page_place(pfn);
        let pages = u64::from(self.core.alloc.frames.pages(pfn));
        self.core.cgroups.add_stat(memcg, node, MemcgStat::Anon, pages);
        self.lru_add(cpu, pfn);
    }

    /// Frees an anonymous page and uncharges it.
    pub fn anon_free(&mut self, cpu: CpuId, pfn: Pfn) {
        let (_, node) = self.core.page_place(pfn);
        let memcg = self.core.page_memcg(pfn);
        let pages = self.core.alloc.frames.pages(pfn);
        self.detach_from_lru(pfn);
        self.core.cgroups.sub_stat(memcg, node, MemcgStat::Anon, u64::from(pages));
        self.core.cgroups.uncharge(memcg, u64::from(pages));
        self.core.alloc.free(cpu, pfn, self.core.alloc.frames.order(pfn));
    }

    /// Locks a page into memory: it moves to the unevictable list (`mlock_folio`).
    pub fn mlock(&mut self, cpu: CpuId, pfn: Pfn) {
        if self.core.alloc.frames.flags(pfn).has(PageFlags::MLOCKED) {
            return;
        }
        if self.core.alloc.frames.state(pfn) == FrameState::Batch {
            self.lru_drain_all();
        }
        self.lru_drain(cpu);
        if self.core.alloc.frames.state(pfn) == FrameState::Lru {
            self.lru_remove(pfn);
        }
        self.core.alloc.frames.set_flags(pfn, PageFlags::MLOCKED.set(PageFlags::UNEVICTABLE));
        self.core.alloc.frames.clear_flags(pfn, PageFlags::ACTIVE);
        self.lru_insert(pfn);
        let pages = u64::from(self.core.alloc.frames.pages(pfn));
        self.core.alloc.events.add(VmEvent::UnevictablePgsMlocked, pages);
        self.core.alloc.events.add(VmEvent::UnevictablePgsCulled, pages);
    }

    /// Takes a page that is being freed off its list or out of its batch.
    pub(crate) fn detach_from_lru(&mut self, pfn: Pfn) {
        match self.core.alloc.frames.state(pfn) {
            FrameState::Lru => {
                self.lru_remove(pfn);
                if self.core.alloc.frames.flags(pfn).has(PageFlags::ACTIVATING) {
                    self.forget_batched(pfn);
                }
            }
            FrameState::Batch => self.forget_batched(pfn),
            _ => {}
        }
        self.core.alloc.frames.set_state(pfn, FrameState::InUse);
    }
}
