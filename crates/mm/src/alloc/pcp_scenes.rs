//! One CPU and its lists, without a machine around them: what each generation takes from the zone
//! at a time, when it gives back, and how much (MECHANISMS 3.1-3.3; MECHANISMS-6X 1.4).
//!
//! Neighbours: [`super::fallback_scenes`] for the zone behind the lists; the same rules on whole machines
//! are in the tests beside `src`. [`history`]: the lists up to 4.14, with hot and cold ends. [`rows`]: several pages
//! at once.

mod history;
mod rows;

use std_alloc::vec::Vec;

use units::{Order, Pfn};

use crate::alloc::buddy::{End, FreeArea, recorded_type};
use crate::alloc::pageblock::{BlockSize, HUGE_ORDER as PAGEBLOCK_ORDER};
use crate::alloc::pcp::{Pcp, PcpSizes, sizing_mark};
use crate::alloc::watermark::Watermarks;
use crate::base::frame::{FrameState, Frames};
use crate::base::gfp::MigrateType::{self, HighAtomic, Movable, Reclaimable, Unmovable};
use crate::version::presets::Version;
use crate::version::rules::PcpGeneration::{self, AutoSize, Classic, HighOrder};
use crate::version::rules::{FallbackPolicy, Rule, Rules};

const SINGLE: Order = Order(0);
const ZONE_PAGES: u32 = 1 << 15;

/// A CPU with a zone of 128 MiB, all of it in use.
struct Cpu {
    rules: Rules,
    pcp: Pcp,
    marks: Watermarks,
    frames: Frames,
    area: FreeArea,
    /// Pages below were freed, or put on the lists by a refill.
    next: u32,
    /// The type that freed pages have, and that is asked for.
    kind: MigrateType,
}

impl Cpu {
    /// With so many pages a batch, and lists of at most `high`, which 6.12 may raise to `high_max`.
    fn new(generation: PcpGeneration, batch: u32, high: u32, high_max: u32) -> Self {
        let mut frames = Frames::new(ZONE_PAGES as usize);
        (0..ZONE_PAGES).for_each(|pfn| frames.set_state(Pfn(pfn), FrameState::InUse));
        let rules = Version::parse("linux-6.1").unwrap().rules.with(Rule::PcpGeneration(generation));
        Self {
            rules,
            pcp: Pcp::new(PcpSizes { batch, high_min: high, high_max }),
            marks: Watermarks::default(),
            frames,
            area: FreeArea::new(Pfn(0), ZONE_PAGES, BlockSize::HUGE, &rules),
            next: 0,
            kind: Movable,
        }
    }

    /// A block in use that was not touched yet.
    fn block(&mut self, order: Order) -> Pfn {
        let pfn = Pfn(self.next.next_multiple_of(order.pages()));
        self.next = pfn.0 + order.pages();
        self.frames.set_order(pfn, order);
        (1..order.pages()).for_each(|page| self.frames.set_state(Pfn(pfn.0 + page), FrameState::Tail));
        pfn
    }

    /// Frees a block; returns how many pages went back to the zone because of it.
    fn free(&mut self, order: Order) -> u32 {
        let pfn = self.block(order);
        let block = (order, self.kind);
        let excess = self.pcp.put(&mut self.frames, &self.rules, pfn, block, End::Head, &self.marks);
        self.hand_back(excess, order)
    }

    fn hand_back(&mut self, pages: u32, freed: Order) -> u32 {
        let before = self.pcp.count();
        let freed = (freed, self.kind);
        self.pcp.free_bulk(pages, &self.rules, freed, &mut self.frames, &mut self.area);
        before - self.pcp.count()
    }

    /// Frees single pages until so many bulk frees came of them; returns their sizes.
    fn bulks(&mut self, count: usize) -> Vec<u32> {
        let mut bulks = Vec::new();
        while bulks.len() < count {
            bulks.extend(Some(self.free(SINGLE)).filter(|&pages| pages > 0));
        }
        bulks
    }

    /// Frees so many single pages, none of which makes the lists too long.
    fn free_quietly(&mut self, pages: u32) {
        for _ in 0..pages {
            assert_eq!(self.free(SINGLE), 0, "{} pages are too many", self.pcp.count());
        }
    }

    /// Allocates a block; returns how many pages a refill took from the zone for it.
    fn alloc(&mut self, order: Order) -> u32 {
        self.pcp.note_alloc();
        if self.take(order, self.kind).is_some() {
            return 0;
        }
        let before = self.pcp.count();
        for _ in 0..self.pcp.refill_blocks(self.rules.pcp, order, self.marks.below_high) {
            let (pfn, block) = (self.block(order), (order, self.kind));
            self.pcp.refill_with(&mut self.frames, &self.rules, pfn, block, End::Head, None);
        }
        let refilled = self.pcp.count() - before;
        assert!(self.take(order, self.kind).is_some());
        refilled
    }

    fn take(&mut self, order: Order, kind: MigrateType) -> Option<Pfn> {
        self.pcp.take(&mut self.frames, &self.rules, order, kind, End::Head)
    }

    /// Allocates single pages until so many refills came of them; returns their sizes.
    fn refills(&mut self, count: usize) -> Vec<u32> {
        let mut refills = Vec::new();
        while refills.len() < count {
            refills.extend(Some(self.alloc(SINGLE)).filter(|&pages| pages > 0));
        }
        refills
    }

    /// Pages on the lists of single pages, by type: unmovable, movable, reclaimable.
    fn singles(&self) -> Vec<u32> {
        self.pcp.lists().filter(|(order, _)| *order == SINGLE).map(|(_, list)| list.len()).collect()
    }
}

// ---- sizes ----

#[test]
fn a_batch_is_a_quarter_of_a_thousandth_of_the_zone_one_below_a_power_of_two() {
    // 256 MiB: 65536 pages, a thousandth is 64, a quarter of that 16; half as much again is 24, and the
    // power of two below that 16.
    for (mib, batch) in [(4, 1), (16, 1), (64, 3), (96, 7), (200, 15), (256, 15), (384, 31), (1024, 63)] {
        assert_eq!(PcpSizes::new(Classic, mib << 8, 0, 1, 256).batch, batch, "{mib} MiB");
    }
    assert_eq!(
        PcpSizes::new(Classic, 1 << 28, 0, 1, 256).batch,
        63,
        "1 TiB: a thousandth counts up to 1 MiB"
    );
    assert_eq!(PcpSizes::new(Classic, 1 << 28, 0, 1, 128).batch, 31, "up to 512 KiB, up to 4.18");
    assert_eq!(PcpSizes::new(Classic, 256 << 8, 0, 1, 128).batch, 15, "which a small machine never saw");
}

#[test]
fn high_was_six_batches_then_a_share_of_the_low_mark_and_may_now_grow_to_one_of_the_zone() {
    let sizes = |generation, cpus| PcpSizes::new(generation, 65_536, 1000, cpus, 256);
    let of = |high_min, high_max| PcpSizes { batch: 15, high_min, high_max };
    assert_eq!(sizes(Classic, 2), of(90, 90));
    assert_eq!(sizes(HighOrder, 2), of(500, 500));
    assert_eq!(sizes(AutoSize, 2), of(500, 4096), "an eighth of the zone");
    assert_eq!(sizes(HighOrder, 100), of(60, 60), "four batches at least");
    assert_eq!(sizes(AutoSize, 1000), of(60, 60));
    assert_eq!(sizes(HighOrder, 0), of(1000, 1000), "a node without CPUs counts as one with one");
    let mostly_reserve = PcpSizes::new(AutoSize, 65_536, 20_000, 2, 256);
    assert_eq!(mostly_reserve, of(10_000, 10_000), "never below what it may hold at first");
}

#[test]
fn a_boost_does_not_make_lists_larger() {
    let marks = Watermarks { base: [400, 500, 600], boost: 512, ..Watermarks::default() };
    assert_eq!(sizing_mark(&marks), 500, "the low mark as it is without");
}

#[test]
fn new_marks_resize_lists_but_not_beyond_where_they_had_grown() {
    let mut cpu = Cpu::new(AutoSize, 4, 100, 400);
    let resized = |cpu: &mut Cpu, high_min, high_max| {
        cpu.pcp.resize(PcpSizes { batch: 4, high_min, high_max });
        cpu.pcp.high()
    };
    assert_eq!(resized(&mut cpu, 200, 400), 200);
    assert_eq!(resized(&mut cpu, 100, 400), 200);
    assert_eq!(resized(&mut cpu, 100, 150), 150);
}

#[test]
fn only_single_pages_were_listed_then_small_and_huge_blocks_too() {
    let held =
        |generation: PcpGeneration| (0..=10).filter(|&n| generation.holds(Order(n))).collect::<Vec<u8>>();
    assert_eq!(held(Classic), [0]);
    assert_eq!(held(HighOrder), [0, 1, 2, 3, 9]);
    assert_eq!(held(AutoSize), [0, 1, 2, 3, 9]);
}

// ---- which list ----

#[test]
fn each_order_and_type_has_a_list_but_only_movable_huge_pages_have_one_of_their_own() {
    let mut cpu = Cpu::new(HighOrder, 4, 10_000, 10_000);
    let types = [Unmovable, Movable, Reclaimable];
    for order in [0, 1, 2, 3, 9].map(Order) {
        for kind in types {
            cpu.kind = kind;
            assert_eq!(cpu.free(order), 0);
        }
    }
    let lists: Vec<_> = cpu.pcp.lists().map(|(order, list)| (order.0, list.len())).collect();
    let small = [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3].map(|order| (order, 1));
    assert_eq!(lists[..12], small);
    assert_eq!(lists[12..], [(9, 1), (9, 2)], "movable, others");
    assert_eq!(cpu.pcp.count(), 3 * (1 + 2 + 4 + 8 + 512));
    // The two that are not movable share a list: whoever asks gets the last one freed.
    for kind in [Unmovable, Unmovable] {
        assert!(cpu.take(PAGEBLOCK_ORDER, kind).is_some());
    }
    assert_eq!(cpu.take(PAGEBLOCK_ORDER, Reclaimable), None);
}

#[test]
fn pages_of_the_atomic_reserve_are_kept_with_the_movable_ones() {
    let mut cpu = Cpu::new(HighOrder, 4, 100, 100);
    cpu.kind = HighAtomic;
    cpu.free_quietly(2);
    assert_eq!(cpu.singles(), [0, 2, 0]);
}

#[test]
fn the_page_freed_last_is_taken_first_and_one_refilled_last() {
    let mut cpu = Cpu::new(HighOrder, 4, 100, 100);
    assert_eq!(cpu.alloc(SINGLE), 4, "pages 0 to 3; page 0 is taken");
    cpu.free_quietly(1);
    let mut take = || cpu.take(SINGLE, Movable).map(|pfn| pfn.0);
    assert_eq!([take(), take(), take(), take(), take()], [Some(4), Some(1), Some(2), Some(3), None]);
    assert_eq!(cpu.pcp.count(), 0);
}

// ---- classic: six batches, one goes back ----

#[test]
fn a_classic_list_gives_one_batch_back_when_it_is_full() {
    let mut cpu = Cpu::new(Classic, 4, 24, 24);
    cpu.free_quietly(23);
    assert_eq!(cpu.bulks(3), [4, 4, 4]);
    assert_eq!(cpu.pcp.count(), 20);
    assert_eq!(cpu.alloc(SINGLE), 0);
    cpu.free_quietly(4);
    assert_eq!(cpu.bulks(1), [4], "allocations change nothing");
    let mut small = Cpu::new(Classic, 4, 0, 0);
    assert_eq!(small.bulks(2), [1, 1], "a tiny zone keeps none");
}

/// How many pages of each type are left when `pages` of so many go back.
fn left_of(unmovable: u32, movable: u32, reclaimable: u32, pages: u32) -> Vec<u32> {
    let mut cpu = Cpu::new(Classic, 4, 1000, 1000);
    for (kind, count) in [(Unmovable, unmovable), (Movable, movable), (Reclaimable, reclaimable)] {
        cpu.kind = kind;
        cpu.free_quietly(count);
    }
    assert_eq!(cpu.hand_back(pages, SINGLE), pages);
    cpu.singles()
}

#[test]
fn classic_lists_give_in_turn_and_one_more_for_each_empty_one_met() {
    assert_eq!(left_of(10, 10, 10, 6), [8, 8, 8]);
    assert_eq!(left_of(10, 10, 10, 1), [10, 9, 10], "movable first");
    assert_eq!(left_of(10, 10, 10, 2), [10, 9, 9], "then reclaimable");
    // Movable gives one, the empty list is passed over, so unmovable gives two.
    assert_eq!(left_of(10, 10, 0, 6), [6, 8, 0]);
    assert_eq!(left_of(10, 10, 0, 1), [10, 9, 0]);
    assert_eq!(left_of(10, 10, 0, 2), [9, 9, 0]);
    assert_eq!(left_of(0, 0, 10, 7), [0, 0, 3], "the only one gives all");
    assert_eq!(left_of(2, 3, 4, 9), [0, 0, 0]);
}

// ---- 6.1: frees in a row double ----

#[test]
fn up_to_6_1_bulk_frees_double_while_nothing_is_allocated() {
    let mut cpu = Cpu::new(HighOrder, 2, 1000, 1000);
    cpu.free_quietly(999);
    assert_eq!(cpu.bulks(8), [2, 4, 8, 16, 32, 64, 64, 64], "32 batches at most");
}

#[test]
fn a_bulk_free_of_6_1_leaves_one_batch() {
    let mut cpu = Cpu::new(HighOrder, 2, 12, 12);
    assert_eq!(cpu.bulks(5), [2, 4, 8, 10, 10]);
    assert_eq!(cpu.pcp.count(), 2);
}

#[test]
fn each_allocation_halves_how_often_bulk_frees_of_6_1_have_doubled() {
    let mut cpu = Cpu::new(HighOrder, 2, 1000, 1000);
    assert_eq!(cpu.bulks(6), [2, 4, 8, 16, 32, 64]);
    assert_eq!(cpu.alloc(SINGLE), 0);
    assert_eq!(cpu.bulks(2), [8, 16], "of 2^5 batches 2^2 are left");
    assert_eq!((cpu.alloc(SINGLE), cpu.alloc(SINGLE)), (0, 0));
    assert_eq!(cpu.bulks(1), [4], "of 2^4 twice halved 2^1");
}

#[test]
fn a_bulk_free_of_6_1_that_reached_its_bound_does_not_double_further() {
    // Two batches and no more can go back of three.
    let mut cpu = Cpu::new(HighOrder, 4, 12, 12);
    assert_eq!(cpu.bulks(4), [4, 8, 8, 8]);
    assert_eq!(cpu.alloc(SINGLE), 0);
    assert_eq!(cpu.bulks(1), [4], "one halving undoes the one doubling");
}

#[test]
fn once_frees_have_doubled_a_freed_block_of_order_1_to_3_takes_all_pages_along() {
    for (order, flushed) in [(0, 0), (1, 500), (2, 502), (3, 506)] {
        let mut cpu = Cpu::new(HighOrder, 2, 500, 500);
        assert_eq!(cpu.free(Order(2)), 0, "not before");
        assert_eq!(cpu.bulks(1), [2]);
        assert_eq!(cpu.pcp.count(), 498);
        assert_eq!(cpu.free(Order(order)), flushed, "order {order}");
    }
}

#[test]
fn while_kswapd_works_6_1_keeps_four_batches_and_gives_three_back_at_most() {
    let mut cpu = Cpu::new(HighOrder, 4, 1000, 1000);
    cpu.marks.reclaim_active = true;
    cpu.free_quietly(15);
    assert_eq!(cpu.bulks(4), [4, 8, 12, 12]);
    let mut small = Cpu::new(HighOrder, 4, 10, 10);
    small.marks.reclaim_active = true;
    small.free_quietly(9);
    assert_eq!(small.bulks(2), [4, 6], "less where high is less");
}

// ---- 6.1 and 6.12: which pages go ----

#[test]
fn the_list_that_was_freed_to_is_emptied_first_oldest_page_first() {
    let mut cpu = Cpu::new(HighOrder, 4, 1000, 1000);
    for kind in [Unmovable, Movable, Reclaimable] {
        cpu.kind = kind;
        cpu.free_quietly(4);
    }
    cpu.kind = Movable;
    assert_eq!(cpu.hand_back(3, SINGLE), 3);
    assert_eq!(cpu.singles(), [4, 1, 4]);
    let oldest = [4, 5, 6].map(|pfn| cpu.frames.state(Pfn(pfn)));
    assert_eq!(oldest.map(|state| state == FrameState::Pcp), [false; 3]);
    assert_eq!(cpu.frames.state(Pfn(7)), FrameState::Pcp, "the last one freed stays");
    assert_eq!(cpu.hand_back(4, SINGLE), 4, "then the lists behind it");
    assert_eq!(cpu.singles(), [4, 0, 1]);
    assert_eq!(cpu.hand_back(2, SINGLE), 2, "and those before it");
    assert_eq!(cpu.singles(), [3, 0, 0]);
    assert_eq!(cpu.hand_back(100, SINGLE), 3, "there are no more");
}

#[test]
fn whole_blocks_go_even_if_that_is_more_than_was_wanted() {
    let mut cpu = Cpu::new(HighOrder, 4, 1000, 1000);
    assert_eq!([cpu.free(Order(3)), cpu.free(Order(3))], [0, 0]);
    assert_eq!(cpu.hand_back(9, Order(3)), 16);
    assert_eq!((cpu.pcp.count(), cpu.area.free_pages()), (0, 16));
}

#[test]
fn a_page_goes_back_as_the_type_it_was_freed_as_and_since_6_10_as_that_of_its_pageblock() {
    let by_block_type = FallbackPolicy::ClaimThenSteal;
    for (fallback, kind) in [(FallbackPolicy::StealAndClaim, Movable), (by_block_type, Unmovable)] {
        let mut cpu = Cpu::new(AutoSize, 4, 100, 100);
        cpu.rules.fallback = fallback;
        cpu.free_quietly(1);
        cpu.area.blocks.set(Pfn(0), Unmovable);
        assert_eq!(cpu.hand_back(1, SINGLE), 1);
        assert_eq!(recorded_type(&cpu.frames, Pfn(0)), kind);
    }
}

// ---- 6.12: refills ----

#[test]
fn refills_of_6_1_are_one_batch_and_of_a_larger_order_two_blocks_at_least() {
    let mut cpu = Cpu::new(HighOrder, 15, 1000, 1000);
    assert_eq!(cpu.refills(3), [15, 15, 15]);
    assert_eq!([1, 2, 3].map(|order| cpu.alloc(Order(order))), [7 << 1, 3 << 2, 2 << 3]);
    assert_eq!(cpu.alloc(PAGEBLOCK_ORDER), 2 << 9);
    let mut dma = Cpu::new(HighOrder, 1, 13, 13);
    assert_eq!([0, 1, 3].map(|order| dma.alloc(Order(order))), [1, 2, 8], "single blocks where a batch is 1");
    assert_eq!(cpu.pcp.high(), 1000);
}

#[test]
fn refills_of_6_12_double_up_to_32_batches() {
    let mut cpu = Cpu::new(AutoSize, 2, 10_000, 10_000);
    assert_eq!(cpu.refills(8), [2, 4, 8, 16, 32, 64, 64, 64]);
    assert_eq!(cpu.alloc(Order(1)), 4, "those of larger orders do not");
}

#[test]
fn a_refill_of_6_12_leaves_a_batch_of_room_below_high_and_stops_doubling_there() {
    let mut cpu = Cpu::new(AutoSize, 4, 12, 12);
    assert_eq!(cpu.refills(4), [4, 8, 8, 8], "8 and a batch are 12");
    // The one free that follows halves 2^2 batches, not 2^3 nor 2^1.
    while cpu.pcp.count() > 0 {
        assert_eq!(cpu.alloc(SINGLE), 0);
    }
    cpu.free_quietly(1);
    assert_eq!(cpu.alloc(SINGLE), 0);
    assert_eq!(cpu.refills(1), [8]);

    let mut none = Cpu::new(AutoSize, 4, 6, 6);
    assert_eq!(none.refills(3), [4, 4, 4], "one batch in any case");
}

#[test]
fn pages_of_other_types_leave_less_room_for_a_refill_of_6_12() {
    let mut cpu = Cpu::new(AutoSize, 4, 40, 40);
    cpu.kind = Reclaimable;
    cpu.free_quietly(24);
    cpu.kind = Movable;
    assert_eq!(cpu.refills(4), [4, 8, 12, 12], "40 less 24 less a batch");
}

#[test]
fn each_free_halves_how_often_refills_of_6_12_have_doubled() {
    let mut cpu = Cpu::new(AutoSize, 2, 10_000, 10_000);
    assert_eq!(cpu.refills(4), [2, 4, 8, 16]);
    while cpu.pcp.count() > 0 {
        assert_eq!(cpu.alloc(SINGLE), 0);
    }
    cpu.free_quietly(2);
    assert_eq!(cpu.refills(2), [4, 8], "of 2^4 twice halved 2^1");
}

#[test]
fn refills_raise_high_by_what_they_want_until_the_zone_falls_below_its_high_mark() {
    let mut cpu = Cpu::new(AutoSize, 4, 100, 130);
    let mut high = |order, below_high| {
        cpu.marks.below_high = below_high;
        while cpu.alloc(Order(order)) == 0 {}
        cpu.pcp.high()
    };
    assert_eq!(high(0, false), 104);
    assert_eq!(high(0, false), 112, "the second one takes 8");
    assert_eq!(high(1, true), 112, "not while memory is short");
    assert_eq!(high(1, false), 116, "a batch for larger orders");
    assert_eq!(high(0, false), 130, "16 and no further than high_max");

    let mut fixed = Cpu::new(AutoSize, 4, 100, 100);
    assert_eq!(fixed.refills(1), [4]);
    assert_eq!(fixed.pcp.high(), 100, "no range, no change");
}

// ---- 6.12: frees ----

#[test]
fn a_bulk_free_of_6_12_is_what_was_freed_lately() {
    // At most 32 batches, at least one, and one is left.
    for (high, bulk) in [(40, 36), (100, 96), (132, 128), (500, 128)] {
        let mut cpu = Cpu::new(AutoSize, 4, high, high);
        cpu.free_quietly(high - 1);
        assert_eq!(cpu.bulks(1), [bulk], "high {high}");
    }
}

#[test]
fn each_allocation_halves_what_6_12_counts_as_freed_lately() {
    let mut cpu = Cpu::new(AutoSize, 4, 100, 100);
    cpu.free_quietly(90);
    assert_eq!(cpu.alloc(SINGLE), 0);
    // 45 are left of 90; then 11 more reach 100 pages.
    assert_eq!(cpu.bulks(1), [56]);
    (0..10).for_each(|_| assert_eq!(cpu.alloc(SINGLE), 0));
    // Nothing of it is left, and the 66 that were missing come.
    assert_eq!(cpu.bulks(1), [66]);
    (0..30).for_each(|_| assert_eq!(cpu.alloc(SINGLE), 0));
    cpu.free_quietly(1);
}

#[test]
fn what_was_freed_lately_counts_pages_of_a_block_and_stops_at_32_batches() {
    // 80 and a block of 8 are 88; an allocation leaves 44, and 20 more fill the list.
    let mut cpu = Cpu::new(AutoSize, 4, 100, 100);
    cpu.free_quietly(80);
    assert_eq!((cpu.free(Order(3)), cpu.alloc(Order(3))), (0, 0));
    assert_eq!(cpu.bulks(1), [64]);
    // 127 and a block of 512 are 639, half of it 319, and single pages no longer count.
    let mut cpu = Cpu::new(AutoSize, 4, 1000, 1000);
    cpu.free_quietly(127);
    assert_eq!((cpu.free(PAGEBLOCK_ORDER), cpu.alloc(PAGEBLOCK_ORDER)), (0, 0));
    assert_eq!(cpu.bulks(1), [319]);
}

#[test]
fn lists_of_6_12_grow_with_what_is_freed_between_two_bulk_frees() {
    let mut cpu = Cpu::new(AutoSize, 4, 20, 60);
    // 20 pages were freed when the list is full: it is to hold them and a batch from now on.
    assert_eq!((cpu.bulks(1), cpu.pcp.high()), ([16].into(), 24));
    assert_eq!((cpu.bulks(1), cpu.pcp.high()), ([20].into(), 44), "40 by now");
    assert_eq!((cpu.bulks(1), cpu.pcp.high()), ([40].into(), 60), "high_max");
    assert_eq!((cpu.bulks(1), cpu.pcp.high()), ([56].into(), 60));
}

#[test]
fn while_kswapd_works_lists_of_6_12_shrink_and_keep_four_batches() {
    let mut cpu = Cpu::new(AutoSize, 4, 20, 400);
    while cpu.pcp.high() < 400 {
        let _ = cpu.alloc(SINGLE);
    }
    let _ = cpu.hand_back(1000, SINGLE);
    cpu.marks.reclaim_active = true;
    // Each free takes off what was freed lately, a batch at least: 4 four times, then 5, 6 ...
    (0..6).for_each(|_| assert_eq!(cpu.free(SINGLE), 0));
    assert_eq!(cpu.pcp.high(), 400 - (4 + 4 + 4 + 4 + 5 + 6));
    cpu.free_quietly(9);
    assert_eq!((cpu.pcp.count(), cpu.free(SINGLE)), (15, 12), "what was freed lately is 16, all but a batch");
    for _ in 0..40 {
        let _ = cpu.free(SINGLE);
    }
    assert_eq!(cpu.pcp.high(), 20, "but not below high_min");

    let mut small = Cpu::new(AutoSize, 4, 10, 10);
    small.marks.reclaim_active = true;
    small.free_quietly(9);
    assert_eq!(small.free(SINGLE), 6, "less where high is less");
}

#[test]
fn below_the_zones_high_mark_lists_of_6_12_go_back_to_high_min_at_once() {
    let mut cpu = Cpu::new(AutoSize, 4, 20, 400);
    while cpu.pcp.high() < 400 {
        let _ = cpu.alloc(SINGLE);
    }
    let _ = cpu.hand_back(1000, SINGLE);
    cpu.free_quietly(19);
    cpu.marks.below_high = true;
    let high = cpu.pcp.high();
    assert_eq!(cpu.free(SINGLE), 16, "20 pages: all but a batch");
    assert_eq!(cpu.pcp.high(), high - 20, "less what was freed lately");
    cpu.free_quietly(15);
    assert!(cpu.free(SINGLE) > 0, "20 again");
    assert_eq!(cpu.pcp.high(), 20, "each free takes off more, but not below high_min");

    let mut fixed = Cpu::new(AutoSize, 4, 20, 20);
    fixed.marks.below_high = true;
    fixed.free_quietly(19);
    assert_eq!(fixed.bulks(1), [16], "lists that cannot grow need no rule");
}

#[test]
fn two_blocks_of_order_1_to_3_in_a_row_flush_32_batches_of_6_12() {
    let flushes = |orders: &[u8]| {
        let mut cpu = Cpu::new(AutoSize, 4, 1000, 1000);
        orders.iter().map(|&order| cpu.free(Order(order))).collect::<Vec<_>>()
    };
    assert_eq!(flushes(&[2, 2]), [0, 8], "all that is there");
    assert_eq!(flushes(&[3, 1]), [0, 10]);
    assert_eq!(flushes(&[1, 1, 1]), [0, 0, 6], "once a batch was freed");
    assert_eq!(flushes(&[2, 0, 2, 0]), [0; 4], "single pages between them do no harm");
    assert_eq!(flushes(&[0, 0, 0, 0, 0]), [0; 5]);
    assert_eq!(flushes(&[2, 0]), [0; 2]);
    assert_eq!(flushes(&[0, 2]), [0; 2]);
    assert_eq!(flushes(&[9, 2]), [0; 2], "a huge page is none of them");

    let mut cpu = Cpu::new(AutoSize, 4, 100, 1000);
    while cpu.pcp.high() < 1000 {
        let _ = cpu.alloc(SINGLE);
    }
    let _ = cpu.hand_back(1000, SINGLE);
    cpu.free_quietly(300);
    assert_eq!(cpu.free(Order(1)), 0);
    assert_eq!(cpu.free(Order(1)), 128, "32 batches at most");
    assert_eq!(cpu.pcp.high(), 1000 - 128, "and the list is to hold so much less");
}

#[test]
fn a_grown_list_of_6_12_decays_by_an_eighth_a_second() {
    let mut cpu = Cpu::new(AutoSize, 4, 20, 800);
    while cpu.pcp.high() < 800 {
        let _ = cpu.alloc(SINGLE);
    }
    let _ = cpu.hand_back(1000, SINGLE);
    cpu.free_quietly(790);
    assert_eq!((cpu.pcp.decay(), cpu.pcp.high()), (90, 700), "700 of 800");
    // A list that goes on holding so many decays no faster than by 32 batches.
    let mut few = cpu.pcp.clone();
    assert_eq!(cpu.hand_back(90, SINGLE), 90);
    assert_eq!((cpu.pcp.decay(), cpu.pcp.high()), (87, 613));
    assert_eq!((few.decay(), few.high()), (790 - 662, 662), "790 less 128");
    for _ in 0..40 {
        let _ = few.decay();
    }
    assert_eq!(few.high(), 662, "as nothing was given back");
    let _ = cpu.hand_back(1000, SINGLE);
    (0..40).for_each(|_| assert_eq!(cpu.pcp.decay(), 0));
    assert_eq!(cpu.pcp.high(), 20);
}
