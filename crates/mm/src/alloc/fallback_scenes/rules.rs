//! Each rule of the fallback at its limit: one scene on either side of it (MECHANISMS 2.4, 2.8,
//! 2.9). Drawn as in [`super`].

use std_alloc::format;

use super::*;
use crate::alloc::watermark::Mark;

const FULL: &str = "M LLLLLLLLLLLLLLLL";
const BOTH: [&str; 2] = ["linux-5.5", "linux-6.12"];

/// A free block of `order` at `pfn`, which is in use so far.
fn put(memory: &mut Memory, pfn: u32, order: u8, kind: MigrateType) {
    let pages = Order(order).pages();
    memory.zones[0].free_area.push(&mut memory.frames, Pfn(pfn), Order(order), kind, End::Tail);
    (1..pages).for_each(|page| memory.frames.set_state(Pfn(pfn + page), FrameState::Tail));
    memory.check().unwrap();
}

// ---- whom to take from ----

#[test]
fn of_two_blocks_of_one_size_the_first_type_to_fall_back_to_gives_its_own() {
    for kernel in BOTH {
        for (want, drawing, page) in [
            (Unmovable, ["M mL##############", "R r###############", FULL, FULL], 512),
            (Reclaimable, ["M mL##############", "U u###############", FULL, FULL], 512),
            (Movable, ["U u###############", "R r###############", FULL, FULL], 512),
        ] {
            let mut memory = scene(kernel, drawing);
            assert_eq!(take(&mut memory, 5, want, QUIET), Some(Pfn(page)), "{want:?} on {kernel}");
        }
    }
}

// ---- cur >= 9: every covered pageblock ----

#[test]
fn a_block_of_two_pageblocks_changes_both_of_them() {
    for kernel in BOTH {
        let mut memory = scene(kernel, ["M mmmmmmmmmmmmmmmm", "M mmmmmmmmmmmmmmmm", FULL, FULL]);
        assert_eq!(take(&mut memory, 5, Reclaimable, QUIET), Some(Pfn(0)));
        assert_eq!(draw(&memory, 0), ["R #rrrrrrrrrrrrrrr", "R rrrrrrrrrrrrrrrr", FULL, FULL]);
        assert_eq!((events(&memory), memory.zones[0].watermarks.boost()), ((1, 0), Pages(0)));
    }
}

#[test]
fn one_order_less_than_a_pageblock_is_a_fragmenting_event_and_boosts() {
    for kernel in BOTH {
        let mut memory = scene(kernel, ["M mmmmmmmm########", FULL, FULL, FULL]);
        assert_eq!(take(&mut memory, 5, Reclaimable, QUIET), Some(Pfn(0)));
        assert_eq!(draw(&memory, 0)[0], "R #rrrrrrr########", "half free: claimed");
        assert_eq!((events(&memory), memory.zones[0].watermarks.boost()), ((1, 1), Pages(512)));
    }
}

// ---- cur >= 4, or a kernel type: all free pages of the pageblock ----

/// Where the free block of `order` and a single page far behind it are after a request for one
/// page of `want`.
fn two_free_blocks(kernel: &str, order: u8, want: MigrateType) -> (Option<Pfn>, Vec<String>, Pages) {
    let old = if want == Reclaimable { Unmovable } else { Reclaimable };
    let line = format!("{} ########{}#######", LETTERS[old as usize], old as u8 + 1);
    let mut memory = scene(kernel, [&line, FULL, FULL, FULL]);
    put(&mut memory, 0, order, old);
    let page = take(&mut memory, 0, want, QUIET);
    (page, draw(&memory, 0), memory.zones[0].watermarks.boost())
}

#[test]
fn from_order_4_on_a_movable_request_gets_all_free_pages_of_the_pageblock() {
    let (page, drawn, boost) = two_free_blocks("linux-5.5", 3, Movable);
    assert_eq!(page, Some(Pfn(8 * CELL)), "order 3: the smallest block, and only that");
    assert_eq!((drawn[0].as_str(), boost), ("R R###############", Pages(512)));

    let (page, drawn, boost) = two_free_blocks("linux-5.5", 4, Movable);
    assert_eq!(page, Some(Pfn(8 * CELL)), "order 4: all are moved, and the smallest serves");
    assert_eq!((drawn[0].as_str(), boost), ("R M###############", Pages(512)));
}

#[test]
fn a_kernel_request_gets_them_from_order_0_on() {
    for (order, want, drawn) in [
        (1, Unmovable, "R U###############"),
        (3, Unmovable, "R U###############"),
        (1, Reclaimable, "U R###############"),
    ] {
        let (page, now, _) = two_free_blocks("linux-5.5", order, want);
        assert_eq!((page, now[0].as_str()), (Some(Pfn(8 * CELL)), drawn), "order {order}, {want:?}");
    }
}

#[test]
fn in_6_12_only_who_may_claim_tries_to_and_boosts() {
    for (order, want, boost) in [(3, Movable, 0), (4, Movable, 512), (3, Unmovable, 512)] {
        let (page, drawn, boosted) = two_free_blocks("linux-6.12", order, want);
        assert_eq!(page, Some(Pfn(8 * CELL)), "far from half free, so the smallest block is stolen");
        assert_eq!(drawn[0], "R R###############", "order {order}, {want:?}: the rest stays");
        assert_eq!(boosted, Pages(boost), "order {order}, {want:?}: an attempt boosts");
    }
}

// ---- 256 pages free or alike: the pageblock ----

#[test]
fn a_pageblock_is_claimed_at_256_pages_that_are_free_or_alike() {
    // For movable requests pages on the LRU are alike; for kernel requests, in movable pageblocks,
    // those that are neither free nor on the LRU; between kernel types nothing is.
    for kernel in BOTH {
        for (want, before, claimed) in [
            (Movable, "U LLLLLLLu########", true),
            (Movable, "U LLLLLLu#########", false),
            (Movable, "R uLLLLLLL########", true),
            (Unmovable, "M LLLLLLLLm#######", true),
            (Unmovable, "M LLLLLLLLLm######", false),
            (Reclaimable, "M LLLLLLLLm#######", true),
            (Reclaimable, "M LLLLLLLLLm######", false),
            (Unmovable, "R rrrrrrrr########", true),
            (Unmovable, "R rrrrrrr#########", false),
            (Reclaimable, "U uuuuuuuu########", true),
            (Reclaimable, "U uuuuuuu#########", false),
        ] {
            let before = before.replace('u', if before.starts_with('R') { "r" } else { "u" });
            let mut memory = scene(kernel, [&before, FULL, FULL, FULL]);
            assert!(take(&mut memory, 5, want, QUIET).is_some());
            let (old, now) = (before.chars().next().unwrap(), draw(&memory, 0)[0].chars().next().unwrap());
            let expected = if claimed { LETTERS[want as usize] } else { old };
            assert_eq!(now, expected, "{want:?} from {before} on {kernel}");
            assert_eq!((events(&memory), memory.zones[0].watermarks.boost()), ((1, 1), Pages(512)));
        }
    }
}

// ---- highatomic ----

#[test]
fn of_a_highatomic_pageblock_a_single_block_is_taken_and_nothing_boosts() {
    // Pages that were freed as movable before their pageblock was set aside.
    let mut memory = scene("linux-5.5", ["H m#m#############", FULL, FULL, FULL]);
    assert_eq!(take(&mut memory, 0, Unmovable, QUIET), Some(Pfn(2 * CELL)), "the last one freed");
    assert_eq!(draw(&memory, 0)[0], "H m#U#############", "the other block stays where it is");
    assert_eq!(memory.zones[0].watermarks.boost(), Pages(0));
}

// ---- the boost's cap ----

/// The zone's boost after each of six pages stolen from other types.
fn boosts(kernel: &str, factor: u64) -> Vec<u64> {
    let mut memory = scene(kernel, SINGLES);
    memory.sysctls.set(crate::base::sysctl::Sysctl::WatermarkBoostFactor, factor);
    let mut steal = || {
        let _ = take(&mut memory, 0, Movable, QUIET).unwrap();
        memory.zones[0].watermarks.boost().0
    };
    (0..6).map(|_| steal()).collect()
}

#[test]
fn the_merged_cap_is_fixed_and_the_posted_one_grows_with_the_boost() {
    let memory = scene("linux-4.20-rc1", SINGLES);
    assert_eq!(memory.zones[0].watermarks.base(Mark::High), 134, "what the caps are made from");
    let (merged, posted) = ("linux-4.20-rc1+watermark-boost", "linux-4.20-rc1+watermark-boost-v2");
    // Half as much again as the high mark is less than the one pageblock that is always allowed.
    assert_eq!(boosts(merged, 15_000), [512, 512, 512, 512, 512, 512]);
    // 1.5 * (134 + 512) = 969, then every step fits.
    assert_eq!(boosts(posted, 15_000), [512, 969, 1481, 1993, 2505, 3017]);
    // Ten high marks.
    assert_eq!(boosts(merged, 100_000), [512, 1024, 1340, 1340, 1340, 1340]);
    for kernel in [merged, posted] {
        assert_eq!(boosts(kernel, 0), [0; 6], "switched off");
    }
}

#[test]
fn as_merged_a_zone_asks_for_kswapd_if_it_is_boosted_and_the_request_may_wake_it() {
    for kernel in ["linux-5.5", "linux-6.12"] {
        for (factor, flags, asks) in [
            (15_000, QUIET | AllocFlags::KSWAPD, true),
            (15_000, QUIET, false),
            (0, QUIET | AllocFlags::KSWAPD, false),
            (0, QUIET, false),
        ] {
            let mut memory = scene(kernel, ["M mmmmmmmm########", FULL, FULL, FULL]);
            memory.sysctls.set(crate::base::sysctl::Sysctl::WatermarkBoostFactor, factor);
            assert!(take(&mut memory, 5, Unmovable, flags).is_some());
            assert_eq!(memory.zones[0].watermarks.boosted, asks, "{kernel}, factor {factor}, {flags:?}");
        }
    }
}

#[test]
fn since_5_7_a_zone_below_2048_pages_is_not_boosted() {
    for (kernel, managed, boost) in [
        ("linux-6.1", 2048, 512),
        ("linux-6.1", 2047, 0),
        ("linux-6.12", 2047, 0),
        ("linux-5.5", 2047, 512),
        ("linux-4.20-rc1+watermark-boost", 2047, 512),
        ("linux-4.20-rc1+watermark-boost-v2", 2047, 512),
    ] {
        let mut memory = scene(kernel, ["M mmmmmmmm########", FULL, FULL, FULL]);
        memory.zones[0].managed = Pages(managed);
        let mode = &mut Mode::default();
        assert!(memory.lock(ZoneId(0)).take_block(Order(5), Unmovable, QUIET, mode).is_some());
        assert_eq!(memory.zones[0].watermarks.boost(), Pages(boost), "{managed} pages, {kernel}");
    }
}

// ---- stalls ----

#[test]
fn a_stall_adds_3584_pages_to_the_boost_at_once() {
    let mut memory = scene("linux-4.20-rc1+watermark-boost-v2+fragment-stall", SINGLES);
    memory.sysctls.set(crate::base::sysctl::Sysctl::WatermarkBoostFactor, 1_000_000);
    let stall = stalling(&mut memory).stall.unwrap();
    assert_eq!(memory.zones[0].watermarks.boost(), Pages(512), "of the steal that was refused");
    memory.boost_for_stall(stall.zone);
    assert_eq!(memory.zones[0].watermarks.boost(), Pages(512 + 3584));
}

#[test]
fn a_stall_names_the_preferred_zone_and_every_zone_that_was_tried() {
    let kernel = "linux-4.20-rc1+watermark-boost-v2+fragment-stall-v1";
    let mut memory = machine(kernel, &[(ZoneKind::Dma32, SINGLES), (ZoneKind::Normal, SINGLES)]);
    let outcome = stalling(&mut memory);
    let stall = outcome.stall.unwrap();
    assert_eq!((outcome.page, stall.zone), (None, ZoneId(1)));
    assert_eq!(stall.tried.iter().collect::<Vec<_>>(), [ZoneId(0), ZoneId(1)], "v1 waits for both");
    assert_eq!([0, 1].map(|zone| memory.zones[zone].watermarks.boost()), [Pages(512), Pages(512)]);
    assert_eq!(events(&memory), (0, 0), "nothing moved");
}

#[test]
fn a_walk_that_would_stall_still_takes_a_page_that_needs_no_mixing() {
    let kernel = "linux-4.20-rc1+fragment-stall";
    let movable = ["M mm##############", FULL, FULL, FULL];
    let mut memory = machine(kernel, &[(ZoneKind::Dma32, movable), (ZoneKind::Normal, SINGLES)]);
    let outcome = stalling(&mut memory);
    assert!(outcome.stall.is_none(), "the lower zone serves");
    assert_eq!(memory.zone_of(outcome.page.unwrap()), ZoneId(0));
}
