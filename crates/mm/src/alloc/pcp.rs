//! Per-CPU page lists: a stock of free pages for each CPU and zone (MECHANISMS 3.1-3.3;
//! MECHANISMS-6X 1.4).
//!
//! Three generations. *Classic*: single pages, fixed batch and high. *High order* (5.13): orders
//! 0 to 3 and 9, high from the low watermark, frees grow while nothing is allocated. *Auto size*
//! (6.7): refills double while nothing is freed, high floats. Pages on these lists do not count as
//! free, and are only looked at after the watermark test.
//!
//! The classic ones had one list for all types at first ([`PcpLists::Single`]), searched from an end for a page
//! of the right one. Hot pages are taken from and freed to the head, cold ones the tail; bulk frees take
//! from the tail (source 1; MECHANISMS 3.4):
//!
//! ```text
//!   head  freed last .. refilled hot, frames rise ->   <- frames rise, refilled cold .. freed cold last  tail
//! ```
//! Left out: draining the lists of remote nodes after some idle seconds; that reclaim of 2.6.32 frees its
//! pages in handfuls of 14, last one first.
//!
//! Neighbours: [`crate::alloc::page_alloc`] refills and drains, [`crate::alloc::buddy`] takes what is freed.

use units::{Order, Pfn};

use crate::alloc::buddy::{End, FreeArea, recorded_type};
use crate::alloc::pageblock::HUGE_ORDER;
use crate::alloc::watermark::{Mark, Watermarks};
use crate::base::frame::{FrameList, Frames};
use crate::base::gfp::MigrateType;
use crate::version::rules::{FallbackPolicy, PcpGeneration, PcpLists, PcpReserve, Rules};

/// Largest order that the lists hold beside huge pages: `PAGE_ALLOC_COSTLY_ORDER`.
pub const COSTLY_ORDER: Order = Order(3);
/// Refills double, and bulk frees grow, at most this often.
const BATCH_SCALE_MAX: u8 = 5;
/// A list for each type at each order up to [`COSTLY_ORDER`], then one for movable and one for
/// other huge pages.
const LISTS: usize = MigrateType::PCP_TYPES * (COSTLY_ORDER.0 as usize + 1) + 2;
/// Single pages that are freed as one block are at most 2 to the power of this: less than a pageblock.
const LARGEST_RUN: u32 = 5;
const HUGE_MOVABLE: usize = LISTS - 2;
const HUGE_OTHER: usize = LISTS - 1;
/// The list that holds all pages where there is but one.
const SINGLE: usize = 0;

impl PcpGeneration {
    /// Whether blocks of `order` go through the lists.
    #[inline]
    pub const fn holds(self, order: Order) -> bool {
        match self {
            Self::Classic => order.0 == 0,
            Self::HighOrder | Self::AutoSize => order.0 <= COSTLY_ORDER.0 || order.0 == HUGE_ORDER.0,
        }
    }
}

/// The list for blocks of `order` and type `migrate_type`; the reserve's blocks go with the movable ones.
#[inline]
fn list_index(order: Order, migrate_type: MigrateType) -> usize {
    let migrate_type =
        if migrate_type == MigrateType::HighAtomic { MigrateType::Movable } else { migrate_type };
    if order <= COSTLY_ORDER {
        (order.index() * MigrateType::PCP_TYPES) + (migrate_type as usize)
    } else if migrate_type == MigrateType::Movable {
        HUGE_MOVABLE
    } else {
        HUGE_OTHER
    }
}

/// Sizes of a zone's lists on each CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PcpSizes {
    /// Pages per refill or bulk free.
    pub batch: u32,
    /// Pages that a CPU may hold, at first or always.
    pub high_min: u32,
    /// Pages that a CPU may ever hold.
    pub high_max: u32,
}

impl PcpSizes {
    /// Sizes for a zone of `managed` pages with low mark `low`, used by `cpus` local CPUs. `share_max`: see
    /// [`crate::version::presets::Tuning::pcp_share_max`].
    pub fn new(generation: PcpGeneration, managed: u64, low: u64, cpus: u32, share_max: u16) -> Self {
        // A thousandth of the zone, at most `share_max`, in quarters; then just below a power of two, so
        // that batches do not fall into step with the cache's colours.
        let quarter = ((managed >> 10).min(share_max.into()) / 4).max(1);
        let raw = (1 << (quarter + (quarter / 2)).ilog2()) - 1;
        let batch = raw.max(1);
        let share =
            |pages: u64| u32::try_from(pages / u64::from(cpus.max(1))).unwrap_or(u32::MAX / 4).max(4 * batch);
        let high_min = match generation {
            PcpGeneration::Classic => 6 * raw,
            PcpGeneration::HighOrder | PcpGeneration::AutoSize => share(low),
        };
        let high_max = match generation {
            PcpGeneration::Classic | PcpGeneration::HighOrder => high_min,
            PcpGeneration::AutoSize => share(managed / 8).max(high_min),
        };
        Self { batch, high_min, high_max }
    }
}

/// How many blocks a refill takes, and what the lists keep in mind of it.
#[derive(Debug, Clone, Copy)]
pub(super) struct RefillPlan {
    pub(super) blocks: u32,
    high: u32,
    alloc_factor: u8,
}

/// One CPU's lists for one zone.
#[derive(Debug, Clone)]
pub struct Pcp {
    lists: [FrameList; LISTS],
    count: u32,
    sizes: PcpSizes,
    high: u32,
    /// 6.1: how often bulk frees have doubled.
    free_factor: u8,
    /// 6.12: how often refills have doubled.
    alloc_factor: u8,
    /// 6.12: pages freed lately.
    free_count: u32,
    /// 6.12: the block freed last was of order 1 to 3.
    freed_high_order: bool,
}

impl Pcp {
    /// Empty lists.
    pub(super) fn new(sizes: PcpSizes) -> Self {
        Self {
            lists: [FrameList::EMPTY; LISTS],
            count: 0,
            sizes,
            high: sizes.high_min,
            free_factor: 0,
            alloc_factor: 0,
            free_count: 0,
            freed_high_order: false,
        }
    }

    /// Pages on the lists: `count` in `/proc/zoneinfo`.
    pub const fn count(&self) -> u32 {
        self.count
    }

    /// Pages beyond which some are freed: `high` in `/proc/zoneinfo`.
    pub const fn high(&self) -> u32 {
        self.high
    }

    /// Sizes.
    pub const fn sizes(&self) -> PcpSizes {
        self.sizes
    }

    /// Takes over new sizes after the marks have changed.
    pub(super) fn resize(&mut self, sizes: PcpSizes) {
        self.sizes = sizes;
        self.high = self.high.clamp(sizes.high_min, sizes.high_max);
    }

    /// The lists with the order of their blocks.
    pub(super) fn lists(&self) -> impl Iterator<Item = (Order, &FrameList)> {
        self.lists.iter().enumerate().map(|(index, list)| (order_of(index), list))
    }

    /// Takes the block that was freed last as a hot one ([`End::Head`]) or a cold one.
    #[inline]
    pub(super) fn take(
        &mut self,
        frames: &mut Frames,
        rules: &Rules,
        order: Order,
        migrate_type: MigrateType,
        end: End,
    ) -> Option<Pfn> {
        if is_single(rules) {
            return self.search(frames, migrate_type, end);
        }
        let list = &mut self.lists[list_index(order, migrate_type)];
        let pfn = match end {
            End::Head => list.pop_front(frames)?,
            End::Tail => list.pop_back(frames)?,
        };
        self.count -= order.pages();
        Some(pfn)
    }

    /// [`Self::take`] of single pages, one after the other. Returns how many there were, `taken.len()` at most.
    pub(super) fn take_singles(
        &mut self,
        frames: &mut Frames,
        rules: &Rules,
        migrate_type: MigrateType,
        end: End,
        taken: &mut [Pfn],
    ) -> usize {
        if is_single(rules) {
            let mut count = 0;
            while let Some(place) = taken.get_mut(count)
                && let Some(pfn) = self.search(frames, migrate_type, end)
            {
                *place = pfn;
                count += 1;
            }
            return count;
        }
        let list = &mut self.lists[list_index(Order(0), migrate_type)];
        let count = match end {
            End::Head => list.pop_front_all(frames, taken),
            End::Tail => list.pop_back_all(frames, taken),
        };
        self.count -= u32::try_from(count).expect("a list is short");
        count
    }

    /// Takes the first page of a type from one end of the list that holds all of them.
    #[cold]
    fn search(&mut self, frames: &mut Frames, migrate_type: MigrateType, end: End) -> Option<Pfn> {
        let list = &mut self.lists[SINGLE];
        let mut at = match end {
            End::Head => list.first(),
            End::Tail => list.last(),
        };
        while let Some(pfn) = at.filter(|&pfn| recorded_type(frames, pfn) != migrate_type) {
            at = match end {
                End::Head => FrameList::next(frames, pfn),
                End::Tail => FrameList::prev(frames, pfn),
            };
        }
        let pfn = at?;
        list.remove(frames, pfn);
        self.count -= 1;
        Some(pfn)
    }

    /// Keeps the pace of frees in step with an allocation.
    #[inline]
    pub(super) fn note_alloc(&mut self) {
        self.free_factor >>= 1;
        self.free_count >>= 1;
    }

    /// [`Self::note_alloc`] for each of some allocations.
    #[inline]
    pub(super) fn note_allocs(&mut self, count: u32) {
        self.free_factor = self.free_factor.checked_shr(count).unwrap_or(0);
        self.free_count = self.free_count.checked_shr(count).unwrap_or(0);
    }

    /// Whether there is a single page of a type.
    #[inline]
    pub(super) fn has_single(&self, frames: &Frames, rules: &Rules, migrate_type: MigrateType) -> bool {
        if is_single(rules) {
            return self.lists[SINGLE].iter(frames).any(|pfn| recorded_type(frames, pfn) == migrate_type);
        }
        !self.lists[list_index(Order(0), migrate_type)].is_empty()
    }

    /// Blocks of `order` that a refill takes from the zone.
    pub(super) fn refill_blocks(&mut self, generation: PcpGeneration, order: Order, below_high: bool) -> u32 {
        let RefillPlan { blocks, high, alloc_factor } = self.refill_plan(generation, order, below_high);
        (self.high, self.alloc_factor) = (high, alloc_factor);
        blocks
    }

    /// What a refill would come to.
    pub(super) fn refill_plan(
        &self,
        generation: PcpGeneration,
        order: Order,
        below_high: bool,
    ) -> RefillPlan {
        let PcpSizes { batch, high_min, high_max } = self.sizes;
        let (mut high, mut alloc_factor) = (self.high, self.alloc_factor);
        let mut wanted = batch;
        if generation == PcpGeneration::AutoSize {
            if order == Order(0) {
                wanted <<= alloc_factor;
            }
            if high_min != high_max && !below_high {
                high = (high + wanted).min(high_max);
            }
            if order == Order(0) {
                let room = high.saturating_sub(self.count).saturating_sub(batch).max(batch);
                if wanted <= room && alloc_factor < BATCH_SCALE_MAX {
                    alloc_factor += 1;
                }
                wanted = wanted.min(room);
            }
        }
        let blocks = if order > Order(0) && wanted > 1 { (wanted >> order.0).max(2) } else { wanted };
        RefillPlan { blocks, high, alloc_factor }
    }

    /// [`Self::refill_with`] the first pages of a block, single from now on, one after the other. Returns the last one.
    #[inline]
    pub(super) fn refill_with_singles(
        &mut self,
        frames: &mut Frames,
        rules: &Rules,
        (head, count): (Pfn, u32),
        migrate_type: MigrateType,
        end: End,
        previous: Option<Pfn>,
    ) -> Option<Pfn> {
        let pages = (head.0..head.0 + count).map(Pfn);
        if is_single(rules) {
            return pages.fold(previous, |previous, pfn| {
                frames.set_order(pfn, Order(0));
                self.refill_with(frames, rules, pfn, (Order(0), migrate_type), end, previous);
                Some(pfn)
            });
        }
        let list = &mut self.lists[list_index(Order(0), migrate_type)];
        frames.split_on_pcp(list, head, count, migrate_type as u32, end == End::Head);
        self.count += count;
        Some(Pfn(head.0 + (count - 1)))
    }

    /// Puts a block of a refill beside `previous`, the one before it: so that the first of them is taken first
    /// from `end`, and frame numbers rise from there.
    #[inline]
    pub(super) fn refill_with(
        &mut self,
        frames: &mut Frames,
        rules: &Rules,
        pfn: Pfn,
        (order, migrate_type): (Order, MigrateType),
        end: End,
        previous: Option<Pfn>,
    ) {
        frames.begin_pcp(pfn, migrate_type as u32);
        self.count += order.pages();
        if is_single(rules) {
            return self.refill_single(frames, pfn, end, previous);
        }
        // There are no others: a list is refilled when it is empty.
        let list = &mut self.lists[list_index(order, migrate_type)];
        match end {
            End::Head => list.push_back(frames, pfn),
            End::Tail => list.push_front(frames, pfn),
        }
    }

    #[cold]
    fn refill_single(&mut self, frames: &mut Frames, pfn: Pfn, end: End, previous: Option<Pfn>) {
        let list = &mut self.lists[SINGLE];
        match (end, previous) {
            (End::Head, None) => list.push_front(frames, pfn),
            (End::Tail, None) => list.push_back(frames, pfn),
            (End::Head, Some(previous)) => list.insert_after(frames, previous, pfn),
            (End::Tail, Some(previous)) => match FrameList::prev(frames, previous) {
                Some(before) => list.insert_after(frames, before, pfn),
                None => list.push_front(frames, pfn),
            },
        }
    }

    /// Puts a freed block, whose order is set, at one end: the head if it is hot. Returns how many pages must
    /// now go back to the zone.
    #[inline]
    pub(super) fn put(
        &mut self,
        frames: &mut Frames,
        rules: &Rules,
        pfn: Pfn,
        (order, migrate_type): (Order, MigrateType),
        end: End,
        zone: &Watermarks,
    ) -> u32 {
        frames.begin_pcp(pfn, migrate_type as u32);
        let index = if is_single(rules) { SINGLE } else { list_index(order, migrate_type) };
        match end {
            End::Head => self.lists[index].push_front(frames, pfn),
            End::Tail => self.lists[index].push_back(frames, pfn),
        }
        self.count += order.pages();
        match rules.pcp {
            PcpGeneration::Classic => self.excess_classic(),
            PcpGeneration::HighOrder => self.excess_high_order(order, zone),
            PcpGeneration::AutoSize => self.excess_auto_size(order, zone),
        }
    }

    /// [`Self::put`] of single pages, one after the other, until pages must go back to the zone or one is of another
    /// huge page than the first: those of one are of one type. Returns how many were put, and how many must go.
    pub(super) fn put_singles(
        &mut self,
        frames: &mut Frames,
        rules: &Rules,
        pages: &[Pfn],
        migrate_type: MigrateType,
        end: End,
        zone: &Watermarks,
    ) -> (usize, u32) {
        let (quiet, rest) = pages.split_at(pages.len().min(self.quiet_frees(rules, zone) as usize));
        let index = if is_single(rules) { SINGLE } else { list_index(Order(0), migrate_type) };
        let (list, at_head) = (&mut self.lists[index], end == End::Head);
        let Pfn(first) = pages[0];
        let near = |pfn: Pfn| (pfn.0 >> HUGE_ORDER.0) == (first >> HUGE_ORDER.0);
        let put = frames.put_on_pcp(list, quiet, migrate_type as u32, at_head, near);
        self.note_quiet_frees(rules, u32::try_from(put).expect("a row is short"));
        let next = rest.first().filter(|&&pfn| put == quiet.len() && near(pfn));
        let Some(&pfn) = next else { return (put, 0) };
        assert!(
            frames.is_block_in_use(pfn, Order(0)),
            "{pfn:?} ({:?}) freed as a single page",
            frames.state(pfn)
        );
        (put + 1, self.put(frames, rules, pfn, (Order(0), migrate_type), end, zone))
    }

    /// How many single pages can be put here, one after the other, at least, that do no more than to count.
    #[inline]
    fn quiet_frees(&self, rules: &Rules, zone: &Watermarks) -> u32 {
        let PcpSizes { batch, high_min, high_max } = self.sizes;
        let floats = rules.pcp == PcpGeneration::AutoSize && self.high > high_min;
        if floats && (zone.reclaim_active || (zone.below_high && high_min != high_max)) {
            return 0; // Each free lowers `high`.
        }
        let is_short = rules.pcp != PcpGeneration::Classic && zone.reclaim_active;
        let high = if is_short { self.high.min(4 * batch) } else { self.high };
        high.saturating_sub(self.count + 1)
    }

    /// Keeps the lists in step with so many of them.
    #[inline]
    fn note_quiet_frees(&mut self, rules: &Rules, pages: u32) {
        self.count += pages;
        if rules.pcp == PcpGeneration::AutoSize && pages > 0 {
            self.alloc_factor = self.alloc_factor.checked_shr(pages).unwrap_or(0);
            self.freed_high_order = false;
            let most = self.sizes.batch << BATCH_SCALE_MAX;
            self.free_count = self.free_count.max(most.min(self.free_count + pages));
        }
    }

    #[inline]
    fn excess_classic(&self) -> u32 {
        if self.count >= self.high { self.sizes.batch.min(self.count) } else { 0 }
    }

    fn excess_high_order(&mut self, order: Order, zone: &Watermarks) -> u32 {
        let batch = self.sizes.batch;
        if self.free_factor > 0 && (1..=COSTLY_ORDER.0).contains(&order.0) {
            return self.count;
        }
        let high = if zone.reclaim_active { self.high.min(4 * batch) } else { self.high };
        if self.count < high {
            return 0;
        }
        let most = high - batch;
        let wanted = batch << self.free_factor;
        if wanted < most && self.free_factor < BATCH_SCALE_MAX {
            self.free_factor += 1;
        }
        wanted.max(batch).min(most)
    }

    fn excess_auto_size(&mut self, order: Order, zone: &Watermarks) -> u32 {
        let batch = self.sizes.batch;
        self.alloc_factor >>= 1;
        let is_high_order = (1..=COSTLY_ORDER.0).contains(&order.0);
        let flush = is_high_order && self.free_count >= batch && self.freed_high_order;
        self.freed_high_order = is_high_order;
        if self.free_count < (batch << BATCH_SCALE_MAX) {
            self.free_count += order.pages();
        }
        if flush {
            self.shrink_high(batch << BATCH_SCALE_MAX);
            return self.count.min(batch << BATCH_SCALE_MAX);
        }
        let high = self.high_now(zone);
        if self.count < high {
            return 0;
        }
        self.free_count.max(batch).min(high - batch)
    }

    /// How many pages the CPU may hold at this free (6.12). Moves `high` along.
    fn high_now(&mut self, zone: &Watermarks) -> u32 {
        let PcpSizes { batch, high_min, high_max } = self.sizes;
        if zone.reclaim_active {
            self.shrink_high(self.free_count.max(batch));
            return self.high.min(4 * batch);
        }
        let high = self.high;
        if high_min == high_max {
            return high;
        }
        if zone.below_high {
            self.shrink_high(self.free_count.max(batch));
            return self.count.max(high_min);
        }
        let needed = self.free_count + batch;
        if self.count >= high && high < needed {
            self.high = needed.clamp(high_min, high_max);
        }
        high
    }

    fn shrink_high(&mut self, by: u32) {
        self.high = self.high.saturating_sub(by).max(self.sizes.high_min);
    }

    /// The periodic decay of `high` (6.7, with the vmstat worker, about once a second). Returns how
    /// many pages must go back to the zone.
    pub(super) fn decay(&mut self) -> u32 {
        let PcpSizes { batch, high_min, .. } = self.sizes;
        if self.high > high_min {
            let by_count = self.count.saturating_sub(batch << BATCH_SCALE_MAX);
            self.high = by_count.max(self.high - (self.high >> 3)).max(high_min);
        }
        self.count.saturating_sub(self.high)
    }

    /// Takes at least `pages` pages (or all) off the lists, oldest first, and frees them into the
    /// zone. `freed`: order and type of the block whose free caused it.
    pub(super) fn free_bulk(
        &mut self,
        pages: u32,
        rules: &Rules,
        freed: (Order, MigrateType),
        frames: &mut Frames,
        area: &mut FreeArea,
    ) {
        let pages = pages.min(self.count);
        let by = TypeOf::back_in_zone(rules);
        match rules.pcp {
            PcpGeneration::Classic if is_single(rules) => self.bulk_from_tail(pages, by, frames, area),
            PcpGeneration::Classic => self.bulk_round_robin(pages, by, frames, area),
            PcpGeneration::HighOrder | PcpGeneration::AutoSize => {
                let first = list_index(freed.0, freed.1);
                self.bulk_by_list(pages, first, by, frames, area);
            }
        }
    }

    /// Frees from the only list, whatever the type.
    #[cold]
    fn bulk_from_tail(&mut self, pages: u32, by: TypeOf, frames: &mut Frames, area: &mut FreeArea) {
        let _ = self.free_oldest(SINGLE, pages, by, frames, area);
    }

    /// Goes round the three types, taking one page more per empty list met, so that fuller lists
    /// give more (MECHANISMS 3.3).
    fn bulk_round_robin(&mut self, pages: u32, by: TypeOf, frames: &mut Frames, area: &mut FreeArea) {
        const TYPES: usize = MigrateType::PCP_TYPES;
        let mut left = pages;
        let mut migrate_type = 0;
        let mut turn = 0;
        while left > 0 {
            loop {
                turn += 1;
                migrate_type = (migrate_type + 1) % TYPES;
                if !self.lists[migrate_type].is_empty() {
                    break;
                }
            }
            if turn as usize == TYPES {
                turn = left; // The only list with pages.
            }
            let freed = self.free_oldest(migrate_type, left.min(turn), by, frames, area);
            left -= freed;
            turn -= freed;
        }
    }

    /// Empties one list after the other, the one that was freed to first.
    fn bulk_by_list(
        &mut self,
        pages: u32,
        first: usize,
        by: TypeOf,
        frames: &mut Frames,
        area: &mut FreeArea,
    ) {
        let mut left = pages;
        for index in (first..LISTS).chain(0..first) {
            if left == 0 {
                break;
            }
            if !self.lists[index].is_empty() {
                left = left.saturating_sub(self.free_oldest(index, left, by, frames, area));
            }
        }
    }

    /// Frees the oldest blocks of a list into the zone, `pages` pages in all, or less if the list has no more; blocks
    /// of several pages may come to more. Single pages that follow each other there, upwards or downwards, and are a
    /// whole block go as that block: on their way they would merge with each other only. Returns how many pages were
    /// freed.
    fn free_oldest(
        &mut self,
        index: usize,
        pages: u32,
        by: TypeOf,
        frames: &mut Frames,
        area: &mut FreeArea,
    ) -> u32 {
        let (list, of_list, mut freed) = (&mut self.lists[index], order_of(index), 0);
        let largest = if of_list == Order(0) && !area.one_by_one { 1 << LARGEST_RUN } else { 1 };
        while freed < pages
            && let Some((head, count, last)) = frames.take_block(list, largest.min(pages - freed))
        {
            let order = if of_list == Order(0) { Order(count.trailing_zeros() as u8) } else { of_list };
            let migrate_type = match by {
                TypeOf::List if index < MigrateType::PCP_TYPES => MigrateType::from_index(index),
                TypeOf::Page | TypeOf::List => recorded_type(frames, last),
                TypeOf::Pageblock => area.blocks.migrate_type(head),
            };
            area.free_block(frames, head, order, migrate_type, by == TypeOf::Pageblock, count);
            freed += order.pages();
        }
        self.count -= freed;
        freed
    }

    /// Whether a page recorded as one of `migrate_type` may be on the list with this number.
    pub(super) fn belongs(index: usize, order: Order, migrate_type: MigrateType, rules: &Rules) -> bool {
        index == if is_single(rules) { SINGLE } else { list_index(order, migrate_type) }
    }
}

/// What says on which of the zone's lists a page goes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TypeOf {
    /// What its pageblock was when it was freed or refilled.
    Page,
    /// The list of single pages that it was on.
    List,
    /// What its pageblock is.
    Pageblock,
}

impl TypeOf {
    fn back_in_zone(rules: &Rules) -> Self {
        match (rules.fallback, rules.pcp_reserve) {
            (FallbackPolicy::ClaimThenSteal, _) => Self::Pageblock,
            (_, PcpReserve::Leaks) if !is_single(rules) => Self::List,
            _ => Self::Page,
        }
    }
}

/// Whether the lists are one, for single pages of all types.
#[inline]
pub(super) fn is_single(rules: &Rules) -> bool {
    rules.pcp_lists == PcpLists::Single && rules.pcp == PcpGeneration::Classic
}

/// Order of the blocks on a list.
#[inline]
fn order_of(index: usize) -> Order {
    if index >= HUGE_MOVABLE {
        HUGE_ORDER
    } else {
        Order(u8::try_from(index / MigrateType::PCP_TYPES).expect("an order up to 3"))
    }
}

/// The low mark that sizes the lists: without boost.
pub(super) const fn sizing_mark(watermarks: &Watermarks) -> u64 {
    watermarks.base(Mark::Low)
}
