//! Marks, reserves and boosts in numbers that can be checked by hand (MECHANISMS 1.3-1.6, 2.8).
//!
//! Neighbours: marks of machines as measured are in the tests beside `src`, what the marks are for in
//! [`super::zone`].

use units::Pages;

use crate::alloc::watermark::{
    Mark, MarkShares, Watermarks, huge_page_min_free_kbytes, lowmem_reserve, min_free_kbytes,
};
use crate::base::layout::ZoneKind::{self, Dma, Dma32, Movable, Normal};
use crate::version::rules::WatermarkBoost;

/// Pages of a pageblock.
const HUGE_PAGES: u64 = crate::alloc::pageblock::HUGE_PAGES as u64;

const MIB: u64 = 256;

#[test]
fn min_free_kbytes_is_four_times_the_root_of_memory_within_bounds() {
    let at_boot = |pages, max| min_free_kbytes(Pages(pages), max);
    assert_eq!(at_boot(4 * MIB, 65_536), 256, "4 * sqrt(4096)");
    assert_eq!(at_boot(16 * MIB, 65_536), 512, "four times as much memory, twice as much kept");
    assert_eq!([2, MIB / 2, MIB].map(|pages| at_boot(pages, 65_536)), [128, 128, 128], "the least");
    assert_eq!(at_boot(1 << 28, 65_536), 65_536, "of 1 TiB, up to 5.7");
    assert_eq!(at_boot(1 << 28, 262_144), 131_072, "and since 5.8");
}

#[test]
fn huge_pages_want_eleven_pageblocks_a_zone_but_no_more_than_a_twentieth() {
    // Two, and one for each of three types beside each of three.
    for (zones, kbytes) in [(1, 22_528), (2, 45_056), (3, 67_584)] {
        assert_eq!(huge_page_min_free_kbytes(zones, Pages(1 << 20)), kbytes);
    }
    assert_eq!(huge_page_min_free_kbytes(1, Pages(10_000)), 2000, "500 pages");
}

/// The marks of a zone of `kind` with `managed` of 100000 pages, of which 1000 are kept.
fn marks(kind: ZoneKind, managed: u64, scale_factor: impl Into<Option<u64>>) -> [u64; 3] {
    let mut marks = Watermarks::default();
    let scale_factor = scale_factor.into();
    marks.set_base(MarkShares { min_free_kbytes: 4000, scale_factor, lowmem: 100_000 }, kind, managed);
    Mark::ALL.map(|mark| marks.mark(mark))
}

#[test]
fn up_to_4_5_marks_are_a_quarter_and_a_half_above_min_whatever_the_size_of_the_zone() {
    assert_eq!(marks(Normal, 100_000, None), [1000, 1250, 1500]);
    assert_eq!(marks(Dma, 400, None), [4, 5, 6]);
    // Twice a quarter is not always a half.
    assert_eq!(marks(Dma, 700, None), [7, 8, 10]);
    assert_eq!(marks(Dma, 700, 1), [7, 8, 9]);
}

#[test]
fn a_zone_keeps_its_share_and_low_and_high_are_a_quarter_and_a_half_above() {
    assert_eq!(marks(Normal, 100_000, 10), [1000, 1250, 1500]);
    assert_eq!(marks(Dma32, 40_000, 10), [400, 500, 600]);
    assert_eq!(marks(Dma, 400, 10), [4, 5, 6]);
}

#[test]
fn watermark_scale_factor_widens_the_gaps_where_it_asks_for_more_than_a_quarter() {
    assert_eq!(marks(Normal, 100_000, 25), [1000, 1250, 1500], "25 of 10000 are just as many");
    assert_eq!(marks(Normal, 100_000, 30), [1000, 1300, 1600]);
    assert_eq!(marks(Normal, 40_000, 1000), [400, 4400, 8400], "a tenth of the zone");
}

#[test]
fn a_movable_zone_keeps_a_thousandth_between_32_and_128_pages() {
    for (managed, min) in [(1024, 32), (32 * 1024, 32), (33 * 1024, 33), (128 * 1024, 128), (1 << 20, 128)] {
        assert_eq!(marks(Movable, managed, 10)[0], min, "{managed} pages");
    }
    // Its gaps are those of a zone of its size.
    assert_eq!(marks(Movable, 40_000, 10), [39, 139, 239]);
    assert_eq!(marks(Movable, 40_000, 100), [39, 439, 839]);
}

#[test]
fn new_marks_end_a_boost() {
    let mut marks = Watermarks { base: [1000, 1250, 1500], ..Watermarks::default() };
    assert!(marks.raise_boost(WatermarkBoost::Merged, 15_000, HUGE_PAGES, 512));
    let shares = MarkShares { min_free_kbytes: 4000, scale_factor: Some(10), lowmem: 100_000 };
    marks.set_base(shares, Normal, 100_000);
    assert_eq!((marks.boost(), marks.mark(Mark::Min)), (Pages(0), 1000));
}

#[test]
fn a_lower_zone_keeps_a_share_of_what_lies_above_it_from_those_who_could_go_there() {
    let managed = [4000, 512_000, 1_024_000, 64_000];
    assert_eq!(lowmem_reserve(Dma, &managed), [0, 2000, 6000, 6250], "1/256 of all zones in between");
    assert_eq!(lowmem_reserve(Dma32, &managed), [0, 0, 4000, 4250]);
    assert_eq!(lowmem_reserve(Normal, &managed), [0, 0, 0, 2000], "1/32");
    assert_eq!(lowmem_reserve(Movable, &managed), [0; 4], "nothing lies above");
    let mut marks = Watermarks::default();
    marks.set_reserve(lowmem_reserve(Dma, &managed));
    assert_eq!(ZoneKind::ALL.map(|kind| marks.reserve(kind)), [0, 2000, 6000, 6250]);
}

#[test]
fn a_zone_without_zones_above_keeps_nothing() {
    assert_eq!(lowmem_reserve(Dma32, &[4000, 512_000, 0, 0]), [0; 4]);
    assert_eq!(lowmem_reserve(Dma, &[4000, 512_000, 0, 0]), [0, 2000, 2000, 2000]);
}

#[test]
fn a_boost_of_less_than_a_page_is_off_as_merged_and_one_pageblock_as_posted() {
    let tiny = Watermarks { base: [4, 5, 6], ..Watermarks::default() };
    for (form, on, boost) in [(WatermarkBoost::Merged, false, 0), (WatermarkBoost::V2, true, 512)] {
        let mut marks = tiny;
        assert_eq!(marks.raise_boost(form, 1000, HUGE_PAGES, 512), on, "{form:?}");
        assert_eq!(marks.boost(), Pages(boost), "{form:?}");
    }
    let mut marks = tiny;
    assert!(marks.raise_boost(WatermarkBoost::Merged, 15_000, HUGE_PAGES, 512));
    assert_eq!(marks.boost(), Pages(512), "a cap of 9 pages still allows one pageblock");
}

#[test]
fn what_kswapd_freed_comes_off_a_boost_and_no_more_than_there_is() {
    let mut marks = Watermarks { boost: 512, ..Watermarks::default() };
    marks.reduce_boost(Pages(500));
    assert_eq!(marks.boost(), Pages(12));
    marks.reduce_boost(Pages(500));
    assert_eq!(marks.boost(), Pages(0));
}
