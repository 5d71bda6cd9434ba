//! Dirty pages and pages under writeback: how many there are on each node, and how a page goes
//! from one to the other (MECHANISMS 10, MECHANISMS-6X 8.1).
//!
//! ```text
//!   write() --> DIRTY --flusher--> WRITEBACK --device--> clean
//!                                      \--> marked for reclaim: to the inactive tail
//! ```
//!
//! Left out: writes that fail. Thresholds and the pace of writers: [`pace`]. Who sleeps and who
//! writes is up to the driver, `writeback.rs` of the kernel crate.

use std_alloc::vec;
use std_alloc::vec::Vec;

use units::{CpuId, Nanos, NodeId, Pfn};

use crate::alloc::watermark::Mark;
use crate::base::event::Trace;
use crate::base::frame::{FrameState, PageFlags};
use crate::base::ids::MappingId;
use crate::base::layout::ZoneKind;
use crate::base::sysctl::Sysctl;
use crate::base::vmstat::{MemcgStat, VmEvent};
use crate::lru::lists::LruList;
use crate::memory::Memory;
use crate::pages::pace::{Balance, DirtyLimits, Pace};
use crate::pages::tree::Slot;
use crate::slab::cache::SlabId;
use crate::slab::object::Object;
use crate::version::geometry::Cache;

/// How many pages are dirty or being written, by node, and the pace of writers.
#[derive(Debug, Clone)]
pub struct Writeback {
    dirty: Vec<u64>,
    under_writeback: Vec<u64>,
    /// The pace of writers.
    pub pace: Pace,
    /// The filesystem lets kswapd write single pages.
    pub has_writepage_hook: bool,
}

impl Writeback {
    /// Nothing is dirty.
    pub fn new(nodes: usize) -> Self {
        Self {
            dirty: vec![0; nodes],
            under_writeback: vec![0; nodes],
            pace: Pace::new(),
            has_writepage_hook: false,
        }
    }

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
}

impl<T: Trace> Memory<T> {
    /// Pages that could be made dirty on `node`: free ones beyond the reserves, and file pages
    /// (`node_dirtyable_memory`). Slab does not count, so thresholds fall as it grows.
    fn dirtyable_pages(&self, node: NodeId) -> u64 {
        let (mut free, mut reserve) = (0, 0);
        for &id in &self.core.alloc.nodes()[node.index()].zones {
            let zone = self.core.alloc.zone(id);
            let kept = ZoneKind::ALL.iter().map(|&class| zone.watermarks.reserve(class)).max().unwrap_or(0);
            free += zone.free_pages().0;
            reserve += (zone.watermarks.base(Mark::High) + kept).min(zone.managed.0);
        }
        let file = |list| -> u64 {
            let lruvecs = self.lruvecs.iter().skip(node.index()).step_by(self.core.alloc.nodes().len());
            lruvecs.map(|lruvec| lruvec.size(list, ZoneKind::Movable)).sum()
        };
        free.saturating_sub(reserve) + file(LruList::InactiveFile) + file(LruList::ActiveFile)
    }

    /// The thresholds now (`global_dirty_limits`).
    pub fn dirty_limits(&self) -> DirtyLimits {
        let dirtyable = self.nodes().map(|node| self.dirtyable_pages(node)).sum();
        let ratio = self.core.alloc.sysctls().get(Sysctl::DirtyRatio);
        let background_ratio = self.core.alloc.sysctls().get(Sysctl::DirtyBackgroundRatio);
        let (threshold, background) = DirtyLimits::thresholds(dirtyable, ratio, background_ratio);
        let (dirty, writeback) = (self.writeback.dirty(), self.writeback.under_writeback());
        DirtyLimits { threshold, background, dirty, writeback }
    }

    /// Notes which nodes hold more than their share of dirty pages: to be called before a page is
    /// allocated that will be dirtied (`node_dirty_ok`).
    pub fn note_dirty_full_nodes(&mut self) {
        let mut full = 0;
        for node in self.nodes() {
            let limit = self.dirtyable_pages(node) * self.core.alloc.sysctls().get(Sysctl::DirtyRatio) / 100;
            full |= u32::from(self.writeback.pending(node) > limit) << node.0;
        }
        self.core.alloc.set_dirty_full_nodes(full);
    }

    /// A writer looks: measures the pace if it is time, and says what the writer does.
    pub fn balance_dirty_pages(&mut self, now: Nanos, pages: u32, since_pause: Nanos) -> Balance {
        let limits = self.dirty_limits();
        self.measure_pace(now, &limits);
        self.writeback.pace.balance(&limits, pages, since_pause)
    }

    /// Measures the pace if it is time: the flusher does so too.
    pub fn measure_pace(&mut self, now: Nanos, limits: &DirtyLimits) {
        let dirtied = self.core.alloc.events.get(VmEvent::NrDirtied);
        let written = self.core.alloc.events.get(VmEvent::NrWritten);
        self.writeback.pace.measure(now, limits, dirtied, written);
    }

    /// Marks a page of the cache dirty; false if it was already.
    pub fn set_dirty(&mut self, pfn: Pfn) -> bool {
        if self.core.alloc.frames.flags(pfn).has(PageFlags::DIRTY) {
            return false;
        }
        self.core.alloc.frames.set_flags(pfn, PageFlags::DIRTY);
        let mapping = MappingId(self.core.alloc.frames.owner(pfn));
        self.mappings.tag_dirty(mapping, self.core.alloc.frames.index(pfn), true);
        let pages = u64::from(self.core.alloc.frames.pages(pfn));
        let (_, node) = self.core.page_place(pfn);
        self.writeback.dirty[node.index()] += pages;
        self.core.cgroups.add_stat(self.core.page_memcg(pfn), node, MemcgStat::FileDirty, pages);
        self.core.alloc.events.add(VmEvent::NrDirtied, pages);
        true
    }

    /// A dirty page is clean without having been written, or is about to be written.
    fn clear_dirty(&mut self, pfn: Pfn) {
        self.core.alloc.frames.clear_flags(pfn, PageFlags::DIRTY);
        let mapping = MappingId(self.core.alloc.frames.owner(pfn));
        self.mappings.tag_dirty(mapping, self.core.alloc.frames.index(pfn), false);
        let pages = u64::from(self.core.alloc.frames.pages(pfn));
        let (_, node) = self.core.page_place(pfn);
        self.writeback.dirty[node.index()] -= pages;
        self.core.cgroups.sub_stat(self.core.page_memcg(pfn), node, MemcgStat::FileDirty, pages);
    }

    /// Starts writeback of the first run of dirty pages of `mapping` at or behind `from`, at most
    /// `max` pages that follow each other. Returns the first index and the number of pages; none
    /// when no page is left that is not already being written.
    pub fn start_writeback(&mut self, mapping: MappingId, from: u32, max: u32) -> Option<(u32, u32)> {
        let mut first = self.mappings.next_dirty(mapping, from)?;
        while !self.start_page(mapping, first) {
            first = self.mappings.next_dirty(mapping, first.checked_add(1)?)?;
        }
        let mut end = first + self.folio_pages(mapping, first);
        while end - first < max
            && self.mappings.next_dirty(mapping, end) == Some(end)
            && self.start_page(mapping, end)
        {
            end += self.folio_pages(mapping, end);
        }
        Some((first, end - first))
    }

    fn folio_pages(&self, mapping: MappingId, index: u32) -> u32 {
        match self.mappings.find(mapping, index) {
            Slot::Page(pfn) => self.core.alloc.frames.pages(pfn),
            _ => 1,
        }
    }

    fn start_page(&mut self, mapping: MappingId, index: u32) -> bool {
        let Slot::Page(pfn) = self.mappings.find(mapping, index) else {
            panic!("a tag without a page at {index} of {mapping:?}")
        };
        if self.core.alloc.frames.flags(pfn).has(PageFlags::WRITEBACK) {
            return false; // Dirtied again while it is being written: not twice at a time.
        }
        self.clear_dirty(pfn);
        self.core.alloc.frames.set_flags(pfn, PageFlags::WRITEBACK);
        let pages = u64::from(self.core.alloc.frames.pages(pfn));
        let (_, node) = self.core.page_place(pfn);
        self.writeback.under_writeback[node.index()] += pages;
        *self.mappings.count_writeback(mapping) += pages;
        self.core.cgroups.add_stat(self.core.page_memcg(pfn), node, MemcgStat::FileWriteback, pages);
        true
    }

    /// The pages at `first..first + count` of `mapping` are written (`folio_end_writeback`). Those
    /// that reclaim met meanwhile go to the inactive tail. Returns their nodes and numbers.
    pub fn end_writeback(&mut self, mapping: MappingId, first: u32, count: u32) -> Vec<(NodeId, u64)> {
        let mut written: Vec<(NodeId, u64)> = Vec::new();
        let mut index = first;
        while index < first + count {
            let Slot::Page(pfn) = self.mappings.find(mapping, index) else {
                panic!("page {index} of {mapping:?} went while it was written")
            };
            let pages = self.core.alloc.frames.pages(pfn);
            let node = self.end_page(mapping, pfn, u64::from(pages));
            match written.last_mut() {
                Some((last, sum)) if *last == node => *sum += u64::from(pages),
                _ => written.push((node, u64::from(pages))),
            }
            index += pages;
        }
        written
    }

    fn end_page(&mut self, mapping: MappingId, pfn: Pfn, pages: u64) -> NodeId {
        let flags = self.core.alloc.frames.flags(pfn);
        assert!(flags.has(PageFlags::WRITEBACK), "{pfn:?} ends a writeback that never began");
        self.core.alloc.frames.clear_flags(pfn, PageFlags::WRITEBACK.set(PageFlags::RECLAIM));
        let (_, node) = self.core.page_place(pfn);
        self.writeback.under_writeback[node.index()] -= pages;
        *self.mappings.count_writeback(mapping) -= pages;
        self.core.cgroups.sub_stat(self.core.page_memcg(pfn), node, MemcgStat::FileWriteback, pages);
        self.core.alloc.events.add(VmEvent::NrWritten, pages);
        let rotates = flags.has(PageFlags::RECLAIM)
            && !flags.has_any(PageFlags::DIRTY.set(PageFlags::LOCKED).set(PageFlags::UNEVICTABLE))
            && self.core.alloc.frames.state(pfn) == FrameState::Lru;
        if rotates {
            self.lru_remove(pfn);
            self.core.alloc.frames.clear_flags(pfn, PageFlags::ACTIVE);
            self.lru_insert_tail(pfn);
            self.core.alloc.events.add(VmEvent::PgRotated, pages);
        }
        node
    }

    /// Gives a page a buffer head, which is freed with the page.
    pub fn attach_buffer(&mut self, cpu: CpuId, pfn: Pfn, buffer: Object) {
        if self.core.alloc.frames.flags(pfn).has(PageFlags::PRIVATE) {
            self.core.free_object(cpu, buffer);
            return;
        }
        assert!(buffer.memcg == self.core.page_memcg(pfn), "a buffer head is charged with its page");
        self.core.alloc.frames.set_flags(pfn, PageFlags::PRIVATE);
        self.core.alloc.frames.set_private(pfn, buffer.slab.0);
    }

    /// A page leaves the cache: it is no longer dirty, and its buffer head goes.
    pub(crate) fn clear_private(&mut self, cpu: CpuId, pfn: Pfn) {
        let flags = self.core.alloc.frames.flags(pfn);
        assert!(!flags.has(PageFlags::WRITEBACK), "{pfn:?} leaves the cache while it is written");
        if flags.has(PageFlags::DIRTY) {
            self.clear_dirty(pfn);
        }
        if flags.has(PageFlags::PRIVATE) {
            let slab = SlabId(self.core.alloc.frames.private(pfn));
            self.core.alloc.frames.clear_flags(pfn, PageFlags::PRIVATE);
            self.core.free_object(
                cpu,
                Object { cache: Cache::BufferHead, slab, memcg: self.core.page_memcg(pfn) },
            );
        }
    }

    /// Dirty pages that kswapd met at the tail of the lists again and again and wants written one
    /// by one; the list is handed over.
    pub fn take_pageout(&mut self) -> Vec<Pfn> {
        core::mem::take(&mut self.pageout)
    }
}
