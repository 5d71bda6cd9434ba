//! Dirty pages and pages under writeback: how many there are on each node, and how a page goes
//! from one to the other (MECHANISMS 10, MECHANISMS-6X 8.1).
//!
//! ```text
//!   write() --> DIRTY --flusher--> WRITEBACK --device--> clean
//!                                      \--> marked for reclaim: to the inactive tail
//! ```
//!
//! Left out: writes that fail. Thresholds and the pace of writers: [`crate::pages::pace`]. Who sleeps and who
//! writes is up to the driver, `writeback.rs` of the kernel crate.

use core::ops::Range;

use std_alloc::vec::Vec;

use units::{Nanos, NodeId, Pfn};

use crate::alloc::watermark::Mark;
use crate::base::event::{Reason, Trace, TraceEvent};
use crate::base::frame::{FrameState, PageFlags};
use crate::base::ids::{MappingId, MemcgId};
use crate::base::sysctl::Sysctl;
use crate::base::vmstat::{MemcgStat, VmEvent};
use crate::core::Core;
use crate::lru::lists::{Lru, LruList};
use crate::pages::cache::PageCache;
use crate::pages::pace::{Balance, DirtyDomains, DirtyLimits, Looking, Pace};
use crate::pages::tree::Slot;
use crate::slab::object::Object;
use crate::version::rules::CgroupWriteback;

/// Pages that could be made dirty on `node`: free ones beyond the reserves, and file pages
/// (`node_dirtyable_memory`). Slab does not count, so thresholds fall as it grows.
fn dirtyable_pages<T: Trace>(core: &Core<T>, lru: &Lru, node: NodeId) -> u64 {
    let (mut free, mut reserve) = (0, 0);
    for &id in &core.alloc.nodes()[node.index()].zones {
        let zone = core.alloc.zone(id);
        free += zone.free_pages().0;
        reserve += (zone.watermarks.base(Mark::High) + zone.watermarks.reserve_max()).min(zone.managed.0);
    }
    let file = |list| lru.node_pages(list, node);
    free.saturating_sub(reserve) + file(LruList::InactiveFile) + file(LruList::ActiveFile)
}

fn all_dirtyable_pages<T: Trace>(core: &Core<T>, lru: &Lru) -> u64 {
    core.nodes().map(|node| dirtyable_pages(core, lru, node)).sum()
}

/// The thresholds for so many pages that could be made dirty.
fn limits_of<T: Trace>(core: &Core<T>, dirtyable: u64, dirty: u64, writeback: u64) -> DirtyLimits {
    let ratio = core.alloc.sysctls().get(Sysctl::DirtyRatio);
    let background_ratio = core.alloc.sysctls().get(Sysctl::DirtyBackgroundRatio);
    let (threshold, background) = DirtyLimits::thresholds(dirtyable, ratio, background_ratio);
    DirtyLimits { threshold, background, dirty, writeback }
}

/// Gives each page of a folio a buffer head, which is freed with it. False, and nothing changes: it has buffers
/// already, is of another size, or is charged to another cgroup.
pub fn attach_buffers<T: Trace>(core: &mut Core<T>, pfn: Pfn, buffers: &[Object]) -> bool {
    let frames = &core.alloc.frames;
    let is_bare = !frames.flags(pfn).has(PageFlags::PRIVATE);
    let fits = frames.pages(pfn) as usize == buffers.len();
    if !is_bare || !fits || buffers.iter().any(|buffer| buffer.memcg != core.page_memcg(pfn)) {
        return false;
    }
    core.alloc.frames.set_flags(pfn, PageFlags::PRIVATE);
    for (page, buffer) in (pfn.0..).zip(buffers) {
        core.alloc.frames.set_private(Pfn(page), buffer.slab.0);
    }
    true
}

impl PageCache {
    /// `nr_dirty`.
    pub fn dirty(&self) -> u64 {
        self.dirty.iter().sum()
    }

    /// `nr_writeback`.
    pub fn under_writeback(&self) -> u64 {
        self.under_writeback.iter().sum()
    }

    /// Pages of a node that are dirty or being written: `nr_zone_write_pending` of its zones.
    pub fn pending(&self, node: NodeId) -> u64 {
        self.dirty[node.index()] + self.under_writeback[node.index()]
    }

    /// The pace of writers.
    pub fn pace(&self) -> &Pace {
        &self.pace
    }

    /// The thresholds now (`global_dirty_limits`).
    pub fn dirty_limits<T: Trace>(&self, core: &Core<T>, lru: &Lru) -> DirtyLimits {
        limits_of(core, all_dirtyable_pages(core, lru), self.dirty(), self.under_writeback())
    }

    /// The thresholds of whoever writes for a cgroup: beside those of the machine its own, of what it could make dirty.
    /// That are its file pages and what may still be charged to it, as far as clean pages of others go (cgroup-v2.rst,
    /// "Writeback": "the amount of available memory capped by limits imposed by the memory controller and system-wide
    /// clean memory").
    pub fn dirty_domains<T: Trace>(&self, core: &Core<T>, lru: &Lru, memcg: MemcgId) -> DirtyDomains {
        let dirtyable = all_dirtyable_pages(core, lru);
        let machine = limits_of(core, dirtyable, self.dirty(), self.under_writeback());
        if memcg == MemcgId::ROOT || core.rules().cgroup_writeback == CgroupWriteback::Absent {
            return DirtyDomains::of_machine(machine);
        }
        let stat = |stat| core.cgroups.writer_stat(memcg, stat);
        let (dirty, writeback) = (stat(MemcgStat::FileDirty), stat(MemcgStat::FileWriteback));
        let file = stat(MemcgStat::InactiveFile) + stat(MemcgStat::ActiveFile);
        let clean = dirtyable.saturating_sub(machine.dirty);
        let clean_of_others = clean.saturating_sub(file.saturating_sub(dirty));
        let headroom = core.cgroups.headroom(memcg).min(clean_of_others);
        DirtyDomains { machine, group: Some(limits_of(core, file + headroom, dirty, writeback)) }
    }

    /// The dirty pages of a cgroup itself; all there are where cgroups are not told apart.
    pub fn dirty_of<T: Trace>(&self, core: &Core<T>, memcg: MemcgId) -> u64 {
        match core.rules().cgroup_writeback {
            CgroupWriteback::Absent => self.dirty(),
            _ => core.nodes().map(|node| core.cgroups.local_stat(memcg, node, MemcgStat::FileDirty)).sum(),
        }
    }

    /// Notes which nodes hold more than their share of dirty pages: to be called before a page is
    /// allocated that will be dirtied (`node_dirty_ok`).
    pub fn note_dirty_full_nodes<T: Trace>(&mut self, core: &mut Core<T>, lru: &Lru) {
        let mut full = 0;
        for node in core.nodes() {
            let limit = dirtyable_pages(core, lru, node) * core.alloc.sysctls().get(Sysctl::DirtyRatio) / 100;
            full |= u32::from(self.pending(node) > limit) << node.0;
        }
        core.alloc.set_dirty_full_nodes(full);
    }

    /// A writer looks: measures the pace if it is time, and says what the writer does.
    pub fn balance_dirty_pages<T: Trace>(
        &mut self,
        core: &Core<T>,
        domains: &DirtyDomains,
        now: Nanos,
        looking: Looking,
    ) -> Balance {
        self.measure_pace(core, now, domains);
        self.pace.balance(domains, looking)
    }

    /// Measures the pace if it is time.
    fn measure_pace<T: Trace>(&mut self, core: &Core<T>, now: Nanos, domains: &DirtyDomains) {
        let dirtied = core.alloc.events.get(VmEvent::NrDirtied);
        let written = core.alloc.events.get(VmEvent::NrWritten);
        self.pace.measure(now, domains, dirtied, written);
    }

    /// Marks a page of the cache dirty; false if it was already.
    pub fn set_dirty<T: Trace>(&mut self, core: &mut Core<T>, pfn: Pfn) -> bool {
        if core.alloc.frames.flags(pfn).has(PageFlags::DIRTY) {
            return false;
        }
        core.alloc.frames.set_flags(pfn, PageFlags::DIRTY);
        let mapping = MappingId(core.alloc.frames.owner(pfn));
        self.trees.tag_dirty(mapping, core.alloc.frames.index(pfn), true);
        let pages = u64::from(core.alloc.frames.pages(pfn));
        let (_, node) = core.page_place(pfn);
        self.dirty[node.index()] += pages;
        core.cgroups.add_stat(core.page_memcg(pfn), node, MemcgStat::FileDirty, pages);
        core.alloc.events.add(VmEvent::NrDirtied, pages);
        true
    }

    /// Runs of dirty pages of `mapping`, some perhaps being written (`tag_pages_for_writeback`).
    pub fn dirty_ranges(&self, mapping: MappingId) -> Vec<Range<u32>> {
        let (mut ranges, mut from) = (Vec::new(), 0);
        while let Some(start) = self.trees.next_dirty(mapping, from) {
            let mut end = start + 1;
            while self.trees.is_dirty(mapping, end) {
                end += 1;
            }
            ranges.push(start..end);
            from = end;
        }
        ranges
    }

    /// Starts writeback of the first run of dirty pages of `mapping` at or behind `from`, at most
    /// `max` pages that follow each other. Returns the first index and the number of pages; none
    /// when no page is left that is not already being written.
    pub fn start_writeback<T: Trace>(
        &mut self,
        core: &mut Core<T>,
        mapping: MappingId,
        from: u32,
        max: u32,
    ) -> Option<(u32, u32)> {
        let mut first = self.trees.next_dirty(mapping, from)?;
        let mut end = loop {
            if let Some(pages) = self.start_page(core, mapping, first) {
                break first + pages;
            }
            first = self.trees.next_dirty(mapping, first.checked_add(1)?)?;
        };
        while end - first < max
            && self.trees.is_dirty(mapping, end)
            && let Some(pages) = self.start_page(core, mapping, end)
        {
            end += pages;
        }
        Some((first, end - first))
    }

    /// [`PageCache::start_writeback`] of the folio at `index` alone, which is freed as soon as it is written
    /// (`pageout`).
    pub fn start_pageout<T: Trace>(
        &mut self,
        core: &mut Core<T>,
        mapping: MappingId,
        index: u32,
    ) -> Option<(u32, u32)> {
        let (first, count) = self.start_writeback(core, mapping, index, 1)?;
        if let Slot::Page(pfn) = self.trees.find(mapping, first) {
            core.alloc.frames.set_flags(pfn, PageFlags::RECLAIM);
        }
        Some((first, count))
    }

    /// Starts writeback of the folio at `index`, which is dirty, if it can be; how many pages it has.
    fn start_page<T: Trace>(&mut self, core: &mut Core<T>, mapping: MappingId, index: u32) -> Option<u32> {
        let Slot::Page(pfn) = self.trees.find(mapping, index) else {
            panic!("a tag without a page at {index} of {mapping:?}")
        };
        if core.alloc.frames.flags(pfn).has(PageFlags::WRITEBACK) {
            return None; // Dirtied again while it is being written: not twice at a time.
        }
        self.clear_dirty(core, pfn);
        let of_folio = core.alloc.frames.pages(pfn);
        let pages = u64::from(of_folio);
        if core.alloc.frames.flags(pfn).has(PageFlags::JOURNAL) {
            // Its buffers are the journal's and not dirty: there is nothing to write yet.
            core.alloc.events.add(VmEvent::NrWritten, pages);
            return None;
        }
        core.alloc.frames.set_flags(pfn, PageFlags::WRITEBACK);
        let (_, node) = core.page_place(pfn);
        self.under_writeback[node.index()] += pages;
        *self.trees.count_writeback(mapping) += pages;
        core.cgroups.add_stat(core.page_memcg(pfn), node, MemcgStat::FileWriteback, pages);
        Some(of_folio)
    }

    /// The pages at `first..first + count` of `mapping` are written (`folio_end_writeback`). Those
    /// that reclaim met meanwhile go to the inactive tail. Their nodes, cgroups and numbers are added to `written`.
    pub fn end_writeback<T: Trace>(
        &mut self,
        core: &mut Core<T>,
        lru: &mut Lru,
        mapping: MappingId,
        first: u32,
        count: u32,
        written: &mut Vec<(NodeId, MemcgId, u64)>,
    ) {
        let mut index = first;
        while index < first + count {
            let Slot::Page(pfn) = self.trees.find(mapping, index) else {
                panic!("page {index} of {mapping:?} went while it was written")
            };
            let pages = core.alloc.frames.pages(pfn);
            let memcg = core.page_memcg(pfn);
            let node = self.end_page(core, lru, mapping, pfn, u64::from(pages));
            match written.last_mut() {
                Some((last, of, sum)) if (*last, *of) == (node, memcg) => *sum += u64::from(pages),
                _ => written.push((node, memcg, u64::from(pages))),
            }
            index += pages;
        }
    }

    fn end_page<T: Trace>(
        &mut self,
        core: &mut Core<T>,
        lru: &mut Lru,
        mapping: MappingId,
        pfn: Pfn,
        pages: u64,
    ) -> NodeId {
        let flags = core.alloc.frames.flags(pfn);
        assert!(flags.has(PageFlags::WRITEBACK), "{pfn:?} ends a writeback that never began");
        core.alloc.frames.clear_flags(pfn, PageFlags::WRITEBACK.set(PageFlags::RECLAIM));
        let (_, node) = core.page_place(pfn);
        self.under_writeback[node.index()] -= pages;
        *self.trees.count_writeback(mapping) -= pages;
        core.cgroups.sub_stat(core.page_memcg(pfn), node, MemcgStat::FileWriteback, pages);
        core.alloc.events.add(VmEvent::NrWritten, pages);
        let rotates = flags.has(PageFlags::RECLAIM)
            && !flags.has_any(PageFlags::DIRTY.set(PageFlags::LOCKED).set(PageFlags::UNEVICTABLE))
            && core.alloc.frames.state(pfn) == FrameState::Lru;
        if rotates {
            lru.remove(core, pfn);
            core.alloc.frames.clear_flags(pfn, PageFlags::ACTIVE);
            lru.insert_tail(core, pfn);
            core.alloc.events.add(VmEvent::PgRotated, pages);
            let reason = Reason::Written;
            core.tell_page(pfn, |page| TraceEvent::PageRotated { page, reason, scan: None });
        }
        node
    }
}
