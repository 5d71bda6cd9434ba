//! The fallback of 2.6.32, largest block first, and the pageblocks set aside at boot (MECHANISMS 2.4).
//! Drawn as in [`super`].

use super::*;
use crate::version::rules::{FallbackPolicy, LikelyMerges, Rule};

const KERNEL: &str = "linux-2.6.32";
const FULL: &str = "M ################";

fn zone(first: &str) -> Memory {
    scene(KERNEL, [first, FULL, FULL, FULL])
}

fn first_block(memory: &Memory) -> String {
    draw(memory, 0).swap_remove(0)
}

#[test]
fn a_pageblock_is_claimed_if_half_of_it_is_free_whatever_the_rest_is() {
    for (before, after) in [
        ("M mmmmmmmmLLLLLLLL", "R #rrrrrrrLLLLLLLL"), // exactly 256 pages
        ("M mmmmmmm#LLLLLLLL", "M #rrrrrr#LLLLLLLL"),
        ("M ####mmmm########", "M #####rrr########"), // since 4.19 the rest would count as alike
    ] {
        let mut memory = zone(before);
        assert!(take(&mut memory, 5, Reclaimable, QUIET).is_some());
        assert_eq!(first_block(&memory), after);
        assert_eq!(events(&memory), (1, 1));
        assert_eq!(memory.zones[0].watermarks.boost(), Pages(0));
    }
}

#[test]
fn from_order_4_on_all_free_pages_of_the_pageblock_go_along() {
    for (order, moved) in [(3, false), (4, true)] {
        let mut memory = zone("M ########2#######");
        let area = &mut memory.zones[0].free_area;
        area.push(&mut memory.frames, Pfn(0), Order(order), Movable, End::Head);
        (1..1 << order).for_each(|page| memory.frames.set_state(Pfn(page), FrameState::Tail));
        assert_eq!(
            take(&mut memory, 0, Unmovable, QUIET),
            Some(Pfn(0)),
            "the large one, not the single page"
        );
        let expected = if moved { "M U#######1#######" } else { "M M#######2#######" };
        assert_eq!(
            first_block(&memory),
            expected,
            "order {order}: the rest stays what it was, or goes along"
        );
    }
}

#[test]
fn reclaimable_requests_take_all_free_pages_along_even_with_a_single_one() {
    for (want, expected) in [(Unmovable, "M #2##############"), (Reclaimable, "M #3##############")] {
        let mut memory = zone("M 22##############");
        assert_eq!(take(&mut memory, 0, want, QUIET), Some(Pfn(0)));
        assert_eq!(first_block(&memory), expected);
        assert!(memory.trace.0.iter().all(|event| matches!(
            event,
            TraceEvent::PageAllocExtfrag { change_ownership: false, fallback_migratetype: Movable, .. }
        )));
    }
}

#[test]
fn a_movable_request_takes_the_largest_block_too() {
    let drawing = ["U 1###############", "U uu##############", "R r###############", FULL];
    assert_eq!(take(&mut scene(KERNEL, drawing), 0, Movable, QUIET), Some(Pfn(512)));
    // Short of order 4 later kernels take the smallest.
    let small = ["U 1###############", "U ################", "R ################", FULL];
    for (fallback, page) in [(FallbackPolicy::LargestFirst, 512), (FallbackPolicy::StealAndClaim, 0)] {
        let mut memory = scene(KERNEL, small);
        memory.version.rules = memory.version.rules.with(Rule::FallbackPolicy(fallback));
        let area = &mut memory.zones[0].free_area;
        area.push(&mut memory.frames, Pfn(512), Order(3), Unmovable, End::Head);
        (1..8).for_each(|page| memory.frames.set_state(Pfn(512 + page), FrameState::Tail));
        assert_eq!(take(&mut memory, 0, Movable, QUIET), Some(Pfn(page)), "{fallback:?}");
    }
}

#[test]
fn a_block_larger_than_a_pageblock_makes_all_that_it_covers_change_hands() {
    let whole = "M mmmmmmmmmmmmmmmm";
    let mut memory = scene(KERNEL, [whole, whole, FULL, FULL]);
    assert_eq!(take(&mut memory, 0, Unmovable, QUIET), Some(Pfn(0)));
    assert_eq!(draw(&memory, 0)[..2], ["U Uuuuuuuuuuuuuuuu", "U uuuuuuuuuuuuuuuu"]);
    assert_eq!(events(&memory), (1, 0));
}

#[test]
fn what_is_set_aside_is_everybodys_last_resort_and_stays_set_aside() {
    for fallback in
        [FallbackPolicy::LargestFirst, FallbackPolicy::StealAndClaim, FallbackPolicy::ClaimThenSteal]
    {
        let mut memory = scene(KERNEL, ["H hhhhhhhhhhhhhhhh", "U uu##############", FULL, FULL]);
        memory.version.rules = memory.version.rules.with(Rule::FallbackPolicy(fallback));
        assert_eq!(take(&mut memory, 6, Movable, QUIET), Some(Pfn(512)), "{fallback:?}: others first");
        assert_eq!(events(&memory), (1, 1));
        for (order, want, page) in [(5, Movable, 0), (0, Unmovable, CELL), (4, Reclaimable, CELL + 16)] {
            assert_eq!(take(&mut memory, order, want, QUIET), Some(Pfn(page)), "{fallback:?}");
        }
        assert_eq!(first_block(&memory), "H #Hhhhhhhhhhhhhhh", "{fallback:?}");
        assert_eq!(events(&memory), (1, 1), "no types are mixed by that");
        assert_eq!(take(&mut memory, 5, Movable, QUIET | AllocFlags::NOFRAGMENT), None);
    }
}

#[test]
fn an_atomic_request_has_no_prior_claim_to_what_is_set_aside() {
    let mut memory = scene(KERNEL, ["H hhhhhhhhhhhhhhhh", "U uu##############", FULL, FULL]);
    let flags = AllocFlags::NO_WATERMARKS | AllocFlags::HIGHATOMIC;
    let page = memory.alloc(CpuId(0), Gfp::ATOMIC, Order(3), flags).page;
    assert_eq!(page, Some(Pfn(512)));
    assert_eq!(memory.zones[0].free_area.pageblocks().totals()[3], 1, "nor is more set aside for it");
    let zones = [ZoneId(0)];
    assert!(!memory.unreserve_highatomic(&zones, Unmovable, true), "and it is given up for nobody");
}

#[test]
fn since_2_6_35_a_block_that_is_likely_to_grow_is_taken_last() {
    for (merges, page) in [(LikelyMerges::Head, 0), (LikelyMerges::Tail, 8 * CELL)] {
        let mut memory = zone(FULL);
        memory.zones[0].free_area = {
            let rules = memory.version.rules.with(Rule::LikelyMerges(merges));
            FreeArea::new(Pfn(0), memory.zones[0].spanned, BlockSize::HUGE, &rules)
        };
        let area = &mut memory.zones[0].free_area;
        // The next larger block beside cell 0 would be cells 2 and 3, and they are free.
        for (cell, order) in [(8, 5), (2, 6), (0, 5)] {
            area.free_block(&mut memory.frames, Pfn(cell * CELL), Order(order), Movable, false, 1);
        }
        assert_eq!(take(&mut memory, 5, Movable, QUIET), Some(Pfn(page)), "{merges:?}");
    }
}

#[test]
fn blocks_set_aside_merge_with_their_neighbours() {
    // Since 4.4 the highatomic reserve does not, from order 9 on.
    for (kernel, orders) in [(KERNEL, [0, 1]), ("linux-6.1", [2, 0])] {
        let mut memory = scene(kernel, ["H ################", FULL, FULL, FULL]);
        let area = &mut memory.zones[0].free_area;
        for (block, kind) in [(0, MigrateType::HighAtomic), (1, Movable)] {
            (1..512).for_each(|page| memory.frames.set_state(Pfn((block * 512) + page), FrameState::Tail));
            area.free_block(&mut memory.frames, Pfn(block * 512), Order(9), kind, false, 1);
        }
        assert_eq!([9, 10].map(|order| area.blocks_free(Order(order))), orders, "{kernel}");
    }
}
