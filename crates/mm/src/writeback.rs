//! Dirty pages and pages under writeback: counts, thresholds, and the pace of those who make pages
//! dirty (MECHANISMS 10, MECHANISMS-6X 8.1).
//!
//! ```text
//!   write() --> DIRTY --flusher--> WRITEBACK --device--> clean
//!                                      \--> marked for reclaim: to the inactive tail
//!
//!   dirty: 0 ..... background ..... freerun ..... setpoint ..... limit
//!          nobody      flusher       writers are paused, so that they make      writers wait
//!          cares       writes        pages dirty as fast as the device writes
//! ```
//!
//! A writer that is above *freerun* (halfway from the background threshold to the threshold) gets
//! a rate: the *base rate*, which follows the device's measured bandwidth divided by the number of
//! writers, times the *position ratio*, which is 1 at the setpoint and falls to 0 at the limit.
//!
//! Left out: shares of several devices and of cgroups (one device, one domain), `dirty_bytes`,
//! real-time writers. Who sleeps and who writes is up to the driver.

use std_alloc::vec;
use std_alloc::vec::Vec;

use units::{CpuId, Nanos, NodeId, PAGE_SIZE, Pfn};

use crate::event::Trace;
use crate::frame::{FrameState, PageFlags};
use crate::lru::LruList;
use crate::mapping::{MappingId, Slot};
use crate::memory::Memory;
use crate::slab::SlabId;
use crate::slab_caches::{Cache, Object};
use crate::sysctl::Sysctl;
use crate::vmstat::{MemcgStat, VmEvent};
use crate::watermark::Mark;
use crate::zone::ZoneKind;

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

/// The thresholds and where the machine stands, in pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DirtyLimits {
    /// Above it writers wait: `nr_dirty_threshold`.
    pub threshold: u64,
    /// Above it the flusher writes: `nr_dirty_background_threshold`.
    pub background: u64,
    /// Dirty pages that nobody writes yet.
    pub dirty: u64,
    /// Pages being written.
    pub writeback: u64,
}

impl DirtyLimits {
    /// The thresholds for so many dirtyable pages and these ratios in percent
    /// (`domain_dirty_limits`: ratios are rounded down to 1/4096 first).
    pub fn thresholds(dirtyable: u64, ratio: u64, background_ratio: u64) -> (u64, u64) {
        let share = |percent: u64| dirtyable * (percent * PAGE_SIZE / 100) / PAGE_SIZE;
        let threshold = share(ratio);
        let background = share(background_ratio);
        (threshold, if background >= threshold { threshold / 2 } else { background })
    }

    /// Pages up to which writers are left alone.
    pub const fn freerun(&self) -> u64 {
        (self.threshold + self.background) / 2
    }

    /// Dirty pages and pages being written.
    pub const fn pending(&self) -> u64 {
        self.dirty + self.writeback
    }
}

/// What a writer does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Balance {
    /// Goes on; looks again after `poll` more pages.
    Go {
        /// Pages.
        poll: u32,
    },
    /// Sleeps, then goes on and looks again after `poll` more pages.
    Pause {
        /// For so long.
        length: Nanos,
        /// Pages.
        poll: u32,
    },
    /// Sleeps and looks again at once: the limit is reached.
    Wait {
        /// For so long.
        length: Nanos,
    },
}

/// The longest pause.
const MAX_PAUSE: Nanos = Nanos::from_millis(200);
/// The shortest: less is added to the next.
const MIN_PAUSE: Nanos = Nanos::from_millis(10);
/// How long a pause should be.
const GOOD_PAUSE: Nanos = Nanos::from_millis(20);
/// Between two measurements.
const MEASURE_PERIOD: Nanos = Nanos::from_millis(200);
/// A measurement over more than this says nothing: nobody wrote.
const QUIET: Nanos = Nanos::from_secs(1);
/// Over which the bandwidth is averaged.
const BANDWIDTH_PERIOD: Nanos = Nanos::from_secs(3);
/// 100 MB/s in pages: what a device is taken for before it is measured.
const FIRST_BANDWIDTH: u64 = (100 << 20) / PAGE_SIZE;
/// Pages of a first look of a new writer, and between looks at slow rates.
pub const FIRST_POLL: u32 = 32;
/// 1 of a position ratio.
const ONE: u64 = 1 << 10;
const SECOND: u64 = 1_000_000_000;

/// The pace of writers: what was measured, and the base rate that follows from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// Pages per second that the device writes.
    bandwidth: u64,
    /// Pages per second for each writer at the setpoint.
    base_rate: u64,
    /// The threshold, slowly following downwards.
    limit: u64,
    measured_at: Nanos,
    dirtied: u64,
    written: u64,
}

impl Default for Pace {
    fn default() -> Self {
        Self::new()
    }
}

impl Pace {
    /// Before anything is measured.
    pub const fn new() -> Self {
        Self {
            bandwidth: FIRST_BANDWIDTH,
            base_rate: FIRST_BANDWIDTH,
            limit: 0,
            measured_at: Nanos::ZERO,
            dirtied: 0,
            written: 0,
        }
    }

    /// Pages per second that the device was measured to write.
    pub const fn bandwidth(&self) -> u64 {
        self.bandwidth
    }

    /// Pages per second that a writer may make dirty at the setpoint.
    pub const fn base_rate(&self) -> u64 {
        self.base_rate
    }

    fn limit(&self, limits: &DirtyLimits) -> u64 {
        self.limit.max(limits.threshold)
    }

    /// The position ratio in 1/1024 (`pos_ratio_polynom`): 1 + ((setpoint - dirty) / (limit -
    /// setpoint))^3, from 0 to 2.
    pub fn position_ratio(&self, limits: &DirtyLimits) -> u64 {
        let limit = self.limit(limits);
        let dirty = limits.pending();
        if dirty >= limit {
            return 0;
        }
        let setpoint = limits.freerun().midpoint(limit);
        let signed = |n: u64| i64::try_from(n).expect("page counts are far below 2^63");
        let one = signed(ONE);
        let x = (signed(setpoint) - signed(dirty)) * one / signed((limit - setpoint).max(1));
        let x = x.clamp(-one, one);
        u64::try_from((x * x / one * x / one) + one).expect("the cube is -1 at least")
    }

    /// Measures, if it is time: `dirtied` and `written` are the counts of pages so far.
    pub fn measure(&mut self, now: Nanos, limits: &DirtyLimits, dirtied: u64, written: u64) {
        let elapsed = now.saturating_sub(self.measured_at);
        if elapsed < MEASURE_PERIOD {
            return;
        }
        let more_dirtied = dirtied - core::mem::replace(&mut self.dirtied, dirtied);
        let more_written = written - core::mem::replace(&mut self.written, written);
        self.measured_at = now;
        self.follow_threshold(limits);
        if elapsed > QUIET {
            return;
        }
        let rest = BANDWIDTH_PERIOD.0 - elapsed.0;
        self.bandwidth = ((more_written * SECOND) + (self.bandwidth * rest)) / BANDWIDTH_PERIOD.0;
        self.follow_bandwidth(limits, more_dirtied * SECOND / elapsed.0);
    }

    fn follow_threshold(&mut self, limits: &DirtyLimits) {
        let target = limits.threshold.max(limits.pending());
        if self.limit < limits.threshold {
            self.limit = limits.threshold;
        } else if self.limit > target {
            self.limit -= (self.limit - target) >> 5;
        }
    }

    /// Moves the base rate an eighth of the way to the one at which pages would be made dirty as
    /// fast as they are written; not away from it when the position already corrects.
    fn follow_bandwidth(&mut self, limits: &DirtyLimits, dirty_rate: u64) {
        let task_rate = (self.base_rate * self.position_ratio(limits) / ONE).max(1);
        let balanced = (task_rate * self.bandwidth / dirty_rate.max(1)).min(self.bandwidth);
        let setpoint = limits.freerun().midpoint(self.limit(limits));
        if limits.pending() < setpoint {
            let target = balanced.min(task_rate);
            self.base_rate += target.saturating_sub(self.base_rate).div_ceil(8);
        } else {
            let target = balanced.max(task_rate);
            self.base_rate -= self.base_rate.saturating_sub(target).div_ceil(8);
        }
        self.base_rate = self.base_rate.max(1);
    }

    /// What a writer does that has made `pages` dirty since its last look, `since_pause` after its
    /// last pause ended (`balance_dirty_pages`).
    pub fn balance(&self, limits: &DirtyLimits, pages: u32, since_pause: Nanos) -> Balance {
        let dirty = limits.pending();
        if dirty <= limits.freerun() {
            let room = limits.threshold - dirty;
            return Balance::Go { poll: 1 << (room.max(1).ilog2() / 2) };
        }
        let rate = self.base_rate * self.position_ratio(limits) / ONE;
        if rate == 0 {
            return Balance::Wait { length: MAX_PAUSE };
        }
        let poll = poll_at(rate);
        let period = Nanos(u64::from(pages) * SECOND / rate);
        let length = period.saturating_sub(since_pause);
        if length < MIN_PAUSE {
            Balance::Go { poll }
        } else {
            Balance::Pause { length: length.min(MAX_PAUSE), poll }
        }
    }
}

/// Pages after which a writer at this rate looks again: those of one good pause; at slow rates up
/// to those of the longest.
fn poll_at(rate: u64) -> u32 {
    let in_time = |time: Nanos| rate * time.0 / SECOND;
    let pages = in_time(GOOD_PAUSE);
    let pages =
        if pages < u64::from(FIRST_POLL) { in_time(MAX_PAUSE).min(u64::from(FIRST_POLL)) } else { pages };
    u32::try_from(pages.max(1)).unwrap_or(u32::MAX)
}

impl<T: Trace> Memory<T> {
    /// Pages that could be made dirty on `node`: free ones beyond the reserves, and file pages
    /// (`node_dirtyable_memory`). Slab does not count, so thresholds fall as it grows.
    fn dirtyable_pages(&self, node: NodeId) -> u64 {
        let (mut free, mut reserve) = (0, 0);
        for &id in &self.alloc.nodes[node.index()].zones {
            let zone = self.alloc.zone(id);
            let kept = ZoneKind::ALL.iter().map(|&class| zone.watermarks.reserve(class)).max().unwrap_or(0);
            free += zone.free_pages().0;
            reserve += (zone.watermarks.base(Mark::High) + kept).min(zone.managed.0);
        }
        let file = |list| -> u64 {
            let lruvecs = self.lruvecs.iter().skip(node.index()).step_by(self.alloc.nodes.len());
            lruvecs.map(|lruvec| lruvec.size(list, ZoneKind::Movable)).sum()
        };
        free.saturating_sub(reserve) + file(LruList::InactiveFile) + file(LruList::ActiveFile)
    }

    /// The thresholds now (`global_dirty_limits`).
    pub fn dirty_limits(&self) -> DirtyLimits {
        let dirtyable = self.nodes().map(|node| self.dirtyable_pages(node)).sum();
        let ratio = self.alloc.sysctls.get(Sysctl::DirtyRatio);
        let background_ratio = self.alloc.sysctls.get(Sysctl::DirtyBackgroundRatio);
        let (threshold, background) = DirtyLimits::thresholds(dirtyable, ratio, background_ratio);
        let (dirty, writeback) = (self.writeback.dirty(), self.writeback.under_writeback());
        DirtyLimits { threshold, background, dirty, writeback }
    }

    /// Notes which nodes hold more than their share of dirty pages: to be called before a page is
    /// allocated that will be dirtied (`node_dirty_ok`).
    pub fn note_dirty_full_nodes(&mut self) {
        let mut full = 0;
        for node in self.nodes() {
            let limit = self.dirtyable_pages(node) * self.alloc.sysctls.get(Sysctl::DirtyRatio) / 100;
            full |= u32::from(self.writeback.pending(node) > limit) << node.0;
        }
        self.alloc.dirty_full_nodes = full;
    }

    /// A writer looks: measures the pace if it is time, and says what the writer does.
    pub fn balance_dirty_pages(&mut self, now: Nanos, pages: u32, since_pause: Nanos) -> Balance {
        let limits = self.dirty_limits();
        self.measure_pace(now, &limits);
        self.writeback.pace.balance(&limits, pages, since_pause)
    }

    /// Measures the pace if it is time: the flusher does so too.
    pub fn measure_pace(&mut self, now: Nanos, limits: &DirtyLimits) {
        let dirtied = self.alloc.events.get(VmEvent::NrDirtied);
        let written = self.alloc.events.get(VmEvent::NrWritten);
        self.writeback.pace.measure(now, limits, dirtied, written);
    }

    /// Marks a page of the cache dirty; false if it was already.
    pub fn set_dirty(&mut self, pfn: Pfn) -> bool {
        if self.alloc.frames.flags(pfn).has(PageFlags::DIRTY) {
            return false;
        }
        self.alloc.frames.set_flags(pfn, PageFlags::DIRTY);
        let mapping = MappingId(self.alloc.frames.owner(pfn));
        self.mappings.tag_dirty(mapping, self.alloc.frames.index(pfn), true);
        let pages = u64::from(self.alloc.frames.pages(pfn));
        let (_, node) = self.page_place(pfn);
        self.writeback.dirty[node.index()] += pages;
        self.memcgs.add_stat(self.page_memcg(pfn), node, MemcgStat::FileDirty, pages);
        self.alloc.events.add(VmEvent::NrDirtied, pages);
        true
    }

    /// A dirty page is clean without having been written, or is about to be written.
    fn clear_dirty(&mut self, pfn: Pfn) {
        self.alloc.frames.clear_flags(pfn, PageFlags::DIRTY);
        let mapping = MappingId(self.alloc.frames.owner(pfn));
        self.mappings.tag_dirty(mapping, self.alloc.frames.index(pfn), false);
        let pages = u64::from(self.alloc.frames.pages(pfn));
        let (_, node) = self.page_place(pfn);
        self.writeback.dirty[node.index()] -= pages;
        self.memcgs.sub_stat(self.page_memcg(pfn), node, MemcgStat::FileDirty, pages);
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
            Slot::Page(pfn) => self.alloc.frames.pages(pfn),
            _ => 1,
        }
    }

    fn start_page(&mut self, mapping: MappingId, index: u32) -> bool {
        let Slot::Page(pfn) = self.mappings.find(mapping, index) else {
            panic!("a tag without a page at {index} of {mapping:?}")
        };
        if self.alloc.frames.flags(pfn).has(PageFlags::WRITEBACK) {
            return false; // Dirtied again while it is being written: not twice at a time.
        }
        self.clear_dirty(pfn);
        self.alloc.frames.set_flags(pfn, PageFlags::WRITEBACK);
        let pages = u64::from(self.alloc.frames.pages(pfn));
        let (_, node) = self.page_place(pfn);
        self.writeback.under_writeback[node.index()] += pages;
        *self.mappings.count_writeback(mapping) += pages;
        self.memcgs.add_stat(self.page_memcg(pfn), node, MemcgStat::FileWriteback, pages);
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
            let pages = self.alloc.frames.pages(pfn);
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
        let flags = self.alloc.frames.flags(pfn);
        assert!(flags.has(PageFlags::WRITEBACK), "{pfn:?} ends a writeback that never began");
        self.alloc.frames.clear_flags(pfn, PageFlags::WRITEBACK.set(PageFlags::RECLAIM));
        let (_, node) = self.page_place(pfn);
        self.writeback.under_writeback[node.index()] -= pages;
        *self.mappings.count_writeback(mapping) -= pages;
        self.memcgs.sub_stat(self.page_memcg(pfn), node, MemcgStat::FileWriteback, pages);
        self.alloc.events.add(VmEvent::NrWritten, pages);
        let rotates = flags.has(PageFlags::RECLAIM)
            && !flags.has_any(PageFlags::DIRTY.set(PageFlags::LOCKED).set(PageFlags::UNEVICTABLE))
            && self.alloc.frames.state(pfn) == FrameState::Lru;
        if rotates {
            self.lru_remove(pfn);
            self.alloc.frames.clear_flags(pfn, PageFlags::ACTIVE);
            self.lru_insert_tail(pfn);
            self.alloc.events.add(VmEvent::PgRotated, pages);
        }
        node
    }

    /// Gives a page a buffer head, which is freed with the page.
    pub fn attach_buffer(&mut self, cpu: CpuId, pfn: Pfn, buffer: Object) {
        if self.alloc.frames.flags(pfn).has(PageFlags::PRIVATE) {
            self.free_object(cpu, buffer);
            return;
        }
        assert!(buffer.memcg == self.page_memcg(pfn), "a buffer head is charged with its page");
        self.alloc.frames.set_flags(pfn, PageFlags::PRIVATE);
        self.alloc.frames.set_private(pfn, buffer.slab.0);
    }

    /// A page leaves the cache: it is no longer dirty, and its buffer head goes.
    pub(crate) fn clear_private(&mut self, cpu: CpuId, pfn: Pfn) {
        let flags = self.alloc.frames.flags(pfn);
        assert!(!flags.has(PageFlags::WRITEBACK), "{pfn:?} leaves the cache while it is written");
        if flags.has(PageFlags::DIRTY) {
            self.clear_dirty(pfn);
        }
        if flags.has(PageFlags::PRIVATE) {
            let slab = SlabId(self.alloc.frames.private(pfn));
            self.alloc.frames.clear_flags(pfn, PageFlags::PRIVATE);
            self.free_object(cpu, Object { cache: Cache::BufferHead, slab, memcg: self.page_memcg(pfn) });
        }
    }

    /// Dirty pages that kswapd met at the tail of the lists again and again and wants written one
    /// by one; the list is handed over.
    pub fn take_pageout(&mut self) -> Vec<Pfn> {
        core::mem::take(&mut self.pageout)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 10 percent of 33296 pages in the background, 20 percent at the most.
    fn limits(dirty: u64, writeback: u64) -> DirtyLimits {
        let (threshold, background) = DirtyLimits::thresholds(33_296, 20, 10);
        DirtyLimits { threshold, background, dirty, writeback }
    }

    #[test]
    fn thresholds_are_those_that_a_guest_reported() {
        // MECHANISMS-6X 8.1: b_ext4_base_k61 at 16 s.
        assert_eq!(DirtyLimits::thresholds(33_296, 20, 10), (6657, 3324));
        assert_eq!(DirtyLimits::thresholds(33_296, 20, 30), (6657, 3328), "background is half at most");
        assert_eq!(DirtyLimits::thresholds(33_296, 0, 10), (0, 0));
    }

    #[test]
    fn the_position_ratio_falls_from_two_to_nothing_along_a_cubic_curve() {
        // freerun 4990, setpoint 5823, limit 6657.
        let ratio = |dirty| Pace::new().position_ratio(&limits(dirty, 0));
        let curve: Vec<u64> = [0, 4990, 5407, 5823, 6240, 6600, 6656, 6657, 9000].map(ratio).into();
        assert_eq!(curve, [2048, 2042, 1150, 1024, 896, 197, 6, 0, 0]);
    }

    #[test]
    fn below_freerun_writers_are_left_alone_and_look_more_often_as_they_near_it() {
        let poll = |dirty| Pace::new().balance(&limits(dirty, 0), 32, Nanos::ZERO);
        assert_eq!(poll(0), Balance::Go { poll: 64 });
        assert_eq!(poll(4990), Balance::Go { poll: 32 });
        assert!(matches!(poll(4991), Balance::Go { poll: 512.. }), "32 pages are too few for a pause");
    }

    #[test]
    fn a_pause_lasts_as_long_as_the_pages_take_at_the_allowed_rate() {
        let pace = Pace { base_rate: 1000, ..Pace::new() };
        let at = |dirty, pages, since| pace.balance(&limits(dirty, 0), pages, Nanos::from_millis(since));
        let pause = |millis, poll| Balance::Pause { length: Nanos::from_millis(millis), poll };
        assert_eq!(at(5823, 32, 0), pause(32, 32));
        assert_eq!(at(5823, 32, 20), pause(12, 32), "time since the last pause counts");
        assert_eq!(at(5823, 32, 30), Balance::Go { poll: 32 }, "too short a pause is saved up");
        assert_eq!(at(5823, 1000, 0), pause(200, 32));
        assert_eq!(at(6657, 1, 0), Balance::Wait { length: Nanos::from_millis(200) });
    }

    #[test]
    fn the_base_rate_settles_where_pages_are_dirtied_as_fast_as_written() {
        // A closed loop in steps of 200 ms: two writers at the rate they get, a device of 2000/s.
        let mut pace = Pace::new();
        let (mut dirty, mut dirtied, mut written) = (5800_u64, 0, 0);
        let mut rates = Vec::new();
        for step in 1..600 {
            let now = Nanos::from_millis(200 * step);
            let rate = pace.base_rate() * pace.position_ratio(&limits(dirty, 0)) / 1024;
            let (more, gone) = ((2 * rate / 5).min(6657_u64.saturating_sub(dirty)), dirty.min(400));
            (dirty, dirtied, written) = (dirty + more - gone, dirtied + more, written + gone);
            pace.measure(now, &limits(dirty, 0), dirtied, written);
            rates.push(rate);
        }
        let late: u64 = rates[400..].iter().sum::<u64>() / 199;
        assert!((950..=1050).contains(&late), "each of two writers gets half of 2000, not {late}");
        assert!((1950..=2050).contains(&pace.bandwidth()), "{}", pace.bandwidth());
        assert!((4990..6657).contains(&dirty), "{dirty} pages are dirty");
    }
}
