//! The free blocks of a zone: one list per mobility type and order (MECHANISMS 2.1-2.3).
//!
//! Splitting keeps the lower half, so that single pages are handed out in ascending order.
//! Merging goes up to order 10 and does not care for types, except that blocks of the highatomic
//! reserve stay apart from the order of a pageblock on; those of the reserve before it
//! ([`HighatomicReserve::Blocks`]) do not. A block that is likely to grow is kept for last since 2.6.35
//! ([`LikelyMerges`]).
//!
//! While a frame is free or on a per-CPU list its `index` field records the type of its list, as the kernel
//! keeps it in `page->index`.
//! Left out: isolation for memory offlining, page shuffling.
//!
//! Neighbours: [`crate::alloc::pageblock`] for types of blocks, [`crate::alloc::fallback`] for taking from lists
//! of another type.

use units::{Order, Pfn};

pub use crate::alloc::pageblock::LARGEST_ORDER;
use crate::alloc::pageblock::{BlockSize, HUGE_ORDER, Pageblocks, head_step};
use crate::base::frame::{FrameList, FrameState, Frames};
use crate::base::gfp::MigrateType;
use crate::version::rules::{HighatomicReserve, LikelyMerges, ReserveCount, Rules};

/// Number of orders.
pub const ORDERS: usize = LARGEST_ORDER.0 as usize + 1;

const TYPES: usize = MigrateType::ALL.len();
const _: () = assert!(HUGE_ORDER.0 < LARGEST_ORDER.0 && ORDERS <= 16);

/// A zone's free blocks and the types of its pageblocks.
#[derive(Debug, Clone)]
pub struct FreeArea {
    lists: [[FrameList; ORDERS]; TYPES],
    /// Bit o of `filled[t]`: list (t, o) has an element.
    filled: [u16; TYPES],
    free: u64,
    /// Blocks that were given back so far.
    given_back: u64,
    pub(super) blocks: Pageblocks,
    pub(super) reserved_highatomic: u64,
    /// A reserve existed at some time: buddies of a pageblock may have been left unmerged.
    pub(super) had_highatomic: bool,
    /// Whom the blocks of type [`MigrateType::HighAtomic`] are for.
    pub(super) reserve: HighatomicReserve,
    reserve_count: ReserveCount,
    likely_merges: LikelyMerges,
    /// See [`crate::alloc::page_alloc::PageAllocator::go_one_by_one`].
    pub(super) one_by_one: bool,
}

/// The type that is recorded for a frame on a free or per-CPU list.
#[inline]
pub(super) fn recorded_type(frames: &Frames, pfn: Pfn) -> MigrateType {
    MigrateType::from_index(frames.index(pfn) as usize)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Head,
    Tail,
}

impl FreeArea {
    /// No free block yet; `spanned` frames from `start`, in pageblocks of `size`.
    pub(super) fn new(start: Pfn, spanned: u32, size: BlockSize, rules: &Rules) -> Self {
        Self {
            lists: [[FrameList::EMPTY; ORDERS]; TYPES],
            filled: [0; TYPES],
            free: 0,
            given_back: 0,
            blocks: Pageblocks::new(start, spanned, size),
            reserved_highatomic: 0,
            had_highatomic: false,
            reserve: rules.highatomic,
            reserve_count: rules.reserve_count,
            likely_merges: rules.likely_merges,
            one_by_one: false,
        }
    }

    /// Free pages.
    #[inline]
    pub const fn free_pages(&self) -> u64 {
        self.free
    }

    /// Blocks that were given back so far: while there are more and more, the zone is not exhausted.
    pub const fn given_back(&self) -> u64 {
        self.given_back
    }

    /// Pages set aside for high-order atomic requests, free or not.
    #[inline]
    pub const fn reserved_highatomic(&self) -> u64 {
        self.reserved_highatomic
    }

    /// What requests that may not use that reserve do not find free.
    #[inline]
    pub(super) fn kept_from_others(&self) -> u64 {
        match self.reserve_count {
            _ if self.reserved_highatomic == 0 => 0,
            ReserveCount::Whole => self.reserved_highatomic,
            ReserveCount::Free => self.free_of(MigrateType::HighAtomic),
        }
    }

    /// Free blocks of `order`, of every type: a column of `/proc/buddyinfo`.
    pub fn blocks_free(&self, order: Order) -> u64 {
        self.lists.iter().map(|lists| u64::from(lists[order.index()].len())).sum()
    }

    /// Free pages in whole free pageblocks: `nr_free_pages_blocks`.
    pub fn pages_in_whole_blocks(&self) -> u64 {
        (self.blocks.size().order().0..=LARGEST_ORDER.0)
            .map(|order| self.blocks_free(Order(order)) << order)
            .sum()
    }

    /// Free pages on the lists of one type: a row of `/proc/pagetypeinfo`, summed up.
    pub fn free_of(&self, migrate_type: MigrateType) -> u64 {
        (0_u8..)
            .zip(&self.lists[migrate_type as usize])
            .map(|(order, list)| u64::from(list.len()) << order)
            .sum()
    }

    /// The list of free blocks of one type and order, next to be taken first.
    #[inline]
    pub const fn list(&self, migrate_type: MigrateType, order: Order) -> &FrameList {
        &self.lists[migrate_type as usize][order.0 as usize]
    }

    /// Turns the list of the free block at `pfn` until that is at the head, or else at the tail.
    pub(super) fn turn_list(&mut self, frames: &mut Frames, pfn: Pfn, to_head: bool) {
        let first = if to_head { Some(pfn) } else { FrameList::next(frames, pfn) };
        if let Some(first) = first {
            let migrate_type = recorded_type(frames, pfn) as usize;
            self.lists[migrate_type][frames.order(pfn).index()].turn_to(frames, first);
        }
    }

    /// Types of the pageblocks.
    pub const fn pageblocks(&self) -> &Pageblocks {
        &self.blocks
    }

    /// Whether a block of `order` or larger is free on a list that requests can use.
    pub(super) fn has_block(&self, order: Order, with_highatomic: bool) -> bool {
        let with_highatomic = with_highatomic || self.reserve == HighatomicReserve::Blocks;
        let types = if with_highatomic { TYPES } else { MigrateType::PCP_TYPES };
        self.filled[..types].iter().any(|&filled| (filled >> order.0) != 0)
    }

    /// Whether a block of exactly `order` is free on the list of `migrate_type`.
    #[inline]
    pub(super) const fn has(&self, migrate_type: MigrateType, order: Order) -> bool {
        (self.filled[migrate_type as usize] & (1 << order.0)) != 0
    }

    /// Puts a block that is on no list on the list of `migrate_type`.
    #[inline]
    pub(super) fn push(
        &mut self,
        frames: &mut Frames,
        pfn: Pfn,
        order: Order,
        migrate_type: MigrateType,
        end: End,
    ) {
        frames.begin_free(pfn, order, migrate_type as u32);
        let list = &mut self.lists[migrate_type as usize][order.index()];
        match end {
            End::Head => list.push_front(frames, pfn),
            End::Tail => list.push_back(frames, pfn),
        }
        self.filled[migrate_type as usize] |= 1 << order.0;
        self.free += u64::from(order.pages());
    }

    /// Takes a free block off its list. Its state is left to the caller.
    #[inline]
    pub(super) fn take(&mut self, frames: &mut Frames, pfn: Pfn) {
        let migrate_type = recorded_type(frames, pfn) as usize;
        let order = frames.order(pfn);
        let list = &mut self.lists[migrate_type][order.index()];
        list.remove(frames, pfn);
        if list.is_empty() {
            self.filled[migrate_type] &= !(1 << order.0);
        }
        self.free -= u64::from(order.pages());
    }

    /// Takes the smallest block of `migrate_type` that holds `order`, splits it and hands out its lowest
    /// part as a block in use.
    #[inline]
    pub(super) fn take_smallest(
        &mut self,
        frames: &mut Frames,
        order: Order,
        migrate_type: MigrateType,
    ) -> Option<Pfn> {
        let fitting = self.filled[migrate_type as usize] >> order.0;
        if fitting == 0 {
            return None;
        }
        let from = Order(order.0 + u8::try_from(fitting.trailing_zeros()).expect("at most 16"));
        let pfn = self.list(migrate_type, from).first().expect("its bit is set");
        self.take_split(frames, pfn, order, migrate_type);
        Some(pfn)
    }

    /// Takes `count` single pages of `migrate_type`, which has as many, as [`Self::take_smallest`] takes one after
    /// the other: where a block is split its pages follow in ascending order, and nothing smaller is free until it is
    /// used up. `each` is handed the first page of a block, and how many of its pages are to be single. What is left
    /// of the last one goes on the lists as its splits would put it there.
    pub(super) fn take_singles(
        &mut self,
        frames: &mut Frames,
        migrate_type: MigrateType,
        count: u32,
        mut each: impl FnMut(&mut Frames, (Pfn, u32)),
    ) {
        let mut left = count;
        while left > 0 {
            let smallest = self.filled[migrate_type as usize].trailing_zeros();
            let order = Order(u8::try_from(smallest).expect("at most 16"));
            let Pfn(head) = self.list(migrate_type, order).first().expect("it has as many pages");
            self.take(frames, Pfn(head));
            let pages = left.min(order.pages());
            let mut rest = pages;
            while rest < order.pages() {
                let part = Order(u8::try_from(rest.trailing_zeros()).expect("at most 32"));
                self.push(frames, Pfn(head + rest), part, migrate_type, End::Head);
                rest += part.pages();
            }
            each(frames, (Pfn(head), pages));
            left -= pages;
        }
    }

    /// Takes the free block at `pfn`, hands out its lowest part of `order` as a block in use and
    /// puts the rest on the lists of `rest_kind`, largest half first.
    #[inline]
    pub(super) fn take_split(&mut self, frames: &mut Frames, pfn: Pfn, order: Order, rest_kind: MigrateType) {
        let mut from = frames.order(pfn);
        self.take(frames, pfn);
        while from > order {
            from = Order(from.0 - 1);
            self.push(frames, Pfn(pfn.0 + from.pages()), from, rest_kind, End::Head);
        }
        frames.set_state(pfn, FrameState::InUse);
        frames.set_order(pfn, order);
    }

    /// Frees a block: merges it with its buddies as far as they are free and puts the result on
    /// the list of `migrate_type`. With `retype`, a pageblock that is absorbed takes over `migrate_type` (6.12). It was
    /// given back as so many `blocks`.
    pub(super) fn free_block(
        &mut self,
        frames: &mut Frames,
        pfn: Pfn,
        order: Order,
        migrate_type: MigrateType,
        retype: bool,
        blocks: u32,
    ) {
        let (mut pfn, mut order) = (pfn, order);
        while order < LARGEST_ORDER {
            let buddy = Pfn(pfn.0 ^ order.pages());
            if !is_free(frames, buddy, order) || !self.may_merge(pfn, buddy, order) {
                break;
            }
            self.take(frames, buddy);
            if retype && order >= self.blocks.size().order() {
                self.blocks.set_covered(buddy, order, migrate_type);
            }
            frames.set_state(Pfn(pfn.0 | order.pages()), FrameState::Tail);
            pfn = Pfn(pfn.0 & !order.pages());
            order = Order(order.0 + 1);
        }
        let waits = self.likely_merges == LikelyMerges::Tail && merge_is_likely(frames, pfn, order);
        let end = if waits { End::Tail } else { End::Head };
        self.push(frames, pfn, order, migrate_type, end);
        self.given_back += u64::from(blocks);
    }

    /// Whether two free buddies may merge: below a pageblock always, above unless exactly one of
    /// them belongs to the highatomic reserve.
    fn may_merge(&self, pfn: Pfn, buddy: Pfn, order: Order) -> bool {
        let is_reserve = |pfn| self.blocks.migrate_type(pfn) == MigrateType::HighAtomic;
        order < self.blocks.size().order()
            || self.reserve == HighatomicReserve::Blocks
            || is_reserve(pfn) == is_reserve(buddy)
    }

    /// Moves all free blocks that start in the pageblock at `start` to the lists of `migrate_type`. Returns
    /// their pages.
    pub(super) fn move_pageblock(
        &mut self,
        frames: &mut Frames,
        start: Pfn,
        migrate_type: MigrateType,
    ) -> u32 {
        let end = start.0 + self.blocks.size().pages();
        let mut moved = 0;
        let mut at = start;
        while at.0 < end {
            let step = head_step(frames, at);
            if frames.state(at) == FrameState::Free {
                self.move_block(frames, at, migrate_type);
                moved += step;
            }
            at = Pfn(at.0 + step);
        }
        moved
    }

    /// Moves one free block to the head of the list of `migrate_type`.
    pub(super) fn move_block(&mut self, frames: &mut Frames, pfn: Pfn, migrate_type: MigrateType) {
        let order = frames.order(pfn);
        self.take(frames, pfn);
        self.push(frames, pfn, order, migrate_type, End::Head);
    }

    /// Sets the type of the pageblock of `pfn` and moves its free pages along.
    pub(super) fn retype_pageblock(&mut self, frames: &mut Frames, pfn: Pfn, migrate_type: MigrateType) {
        let start = self.blocks.size().start(pfn);
        self.blocks.set(start, migrate_type);
        let _ = self.move_pageblock(frames, start, migrate_type);
    }
}

/// Whether a free block of `order` starts at `pfn`.
#[inline]
pub(super) fn is_free(frames: &Frames, pfn: Pfn, order: Order) -> bool {
    frames.is_free_block(pfn, order)
}

/// Whether the buddy of the next larger block is free: then this block's own buddy is likely to
/// come back soon, and it is kept at the tail to merge with it (MECHANISMS 2.3).
#[inline]
fn merge_is_likely(frames: &Frames, pfn: Pfn, order: Order) -> bool {
    if order.0 + 1 >= LARGEST_ORDER.0 {
        return false;
    }
    let larger = Order(order.0 + 1);
    let merged = Pfn(pfn.0 & !order.pages());
    is_free(frames, Pfn(merged.0 ^ larger.pages()), larger)
}
