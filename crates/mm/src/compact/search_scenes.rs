//! Zones drawn before compaction that searches (5.1): which pageblock it empties first, and where its targets are.
//!
//! Drawings and helpers are those of [`super::scenes`]: a line is a pageblock, a cell 32 pages.

use std_alloc::vec;
use std_alloc::vec::Vec;

use units::Pfn;

use super::scenes::{BLOCK, CELL, KCOMPACTD, Scene, compact, draw, skipped, taken_by};
use super::state::{CompactPriority, CompactRequest, CompactResult, CompactStep, Compaction};
use crate::base::frame::{FrameState, PageFlags};
use crate::version::presets::Version;
use crate::version::rules::{CompactSearch, Rule};

fn scene(search: CompactSearch, drawing: &[&str]) -> Scene {
    let mut version = Version::parse("linux-6.1").unwrap();
    version.rules = version.rules.with(Rule::CompactSearch(search));
    draw(taken_by(version, drawing.len()), drawing)
}

/// Steps until something was moved or the run is over.
fn until_moved(mem: &mut Scene, run: &mut Compaction) -> CompactStep {
    loop {
        let step = mem.step(run);
        if step.moved_anon > 0 || step.done.is_some() {
            return step;
        }
    }
}

/// Cells of the pageblock that are free now.
fn free_cells(mem: &Scene, block: u32) -> u32 {
    let free = (block * BLOCK..(block + 1) * BLOCK).filter(|&pfn| {
        let frames = &mem.core.alloc.frames;
        (0..=10).any(|order| {
            let head = pfn & !((1 << order) - 1);
            frames.state(Pfn(head)) == FrameState::Free && head + frames.pages(Pfn(head)) > pfn
        })
    });
    u32::try_from(free.count()).unwrap() / CELL
}

/// Half empty pageblocks; the third has its free pages in one piece.
const PIECE: [&str; 12] = [
    "################",
    "A.A.A.A.A.A.A.A.",
    "AAAAAAAA........",
    "A.A.A.A.A.A.A.A.",
    "A.A.A.A.A.A.A.A.",
    "A.A.A.A.A.A.A.A.",
    "A.A.A.A.A.A.A.A.",
    "A.A.A.A.A.A.A.A.",
    "A.A.A.A.A.A.A.A.",
    "A.A.A.A.A.A.A.A.",
    "A.A.A.A.A.A.A.A.",
    "A.A.A.A.A.A.A.A.",
];

#[test]
fn the_pageblock_with_the_largest_free_block_is_emptied_first() {
    for (search, emptied) in [(CompactSearch::None, 1), (CompactSearch::Counted, 2)] {
        let mut mem = scene(search, &PIECE);
        assert_eq!(compact(&mut mem, KCOMPACTD).0, CompactResult::Success, "{search:?}");
        let whole: Vec<u32> = (0..12).filter(|&block| free_cells(&mem, block) == 16).collect();
        assert_eq!(whole, [emptied], "{search:?}");
    }
}

/// `mm_compaction_isolate_migratepages` of 5.10 and 6.1: one frame scanned, none taken.
#[test]
fn up_to_6_2_the_scan_passes_over_the_pageblock_that_the_search_marked() {
    for search in [CompactSearch::Any, CompactSearch::UpperHalf] {
        let mut mem = scene(search, &PIECE);
        let mut run = mem.begin(KCOMPACTD).expect("a run makes sense");
        let step = mem.step(&mut run);
        assert_eq!((step.moved_anon, run.migrate_at / BLOCK), (0, 3), "{search:?}");
        mem.end(run);
        assert_eq!((skipped(&mem), free_cells(&mem, 2)), (vec![2], 8), "{search:?}");
    }
}

/// kcompactd of 6.12 went back to a pageblock with a page that another task had locked, for ever.
#[test]
fn a_pageblock_in_which_a_page_stays_is_not_found_again() {
    let mut drawing = PIECE;
    // The last cell of a pageblock: what stays is met at its end.
    drawing[2] = "...............A";
    (drawing[1], drawing[3]) = ("A#A#A#A#A#A#A#A#", "A#A#A#A#A#A#A#A#");
    let mut mem = scene(CompactSearch::Counted, &drawing);
    let last = 3 * BLOCK - CELL..3 * BLOCK;
    last.for_each(|pfn| mem.core.alloc.frames.set_flags(Pfn(pfn), PageFlags::LOCKED));
    let mut run = mem.begin(KCOMPACTD).expect("a run makes sense");
    assert!((0..1000).any(|_| mem.step(&mut run).done.is_some()), "it goes round and round");
    mem.end(run);
    assert!(skipped(&mem).contains(&2));
}

#[test]
fn a_pageblock_is_finished_once_pages_of_it_have_moved() {
    for (search, steps) in [(CompactSearch::None, vec![32; 8]), (CompactSearch::Counted, vec![32, 7 * 32])] {
        let mut mem = scene(search, &PIECE);
        let mut run = mem.begin(KCOMPACTD).expect("a run makes sense");
        let mut moved = Vec::new();
        loop {
            let step = until_moved(&mut mem, &mut run);
            if step.done.is_some() {
                break;
            }
            moved.push(step.moved_anon);
        }
        mem.end(run);
        assert_eq!(moved, steps, "{search:?}");
    }
}

#[test]
fn targets_are_the_free_pages_of_a_pageblock_in_the_last_quarter() {
    let mut drawing = PIECE;
    // Nothing is free at the end of the zone; a scan would go through three pageblocks.
    for line in &mut drawing[6..] {
        *line = "AAAAAAAAAAAAAAAA";
    }
    drawing[10] = "AAAAAAAA.AAA.AAA";
    for (search, scanned) in [(CompactSearch::None, 2 * BLOCK), (CompactSearch::Counted, 3 * CELL)] {
        let mut mem = scene(search, &drawing);
        let mut run = mem.begin(KCOMPACTD).expect("a run makes sense");
        let step = until_moved(&mut mem, &mut run);
        mem.end(run);
        assert!(step.free_scanned <= u64::from(scanned), "{search:?}: {}", step.free_scanned);
        assert_eq!(free_cells(&mem, 10), 1, "{search:?}");
    }
}

/// Half empty pageblocks below full ones: what is free lies in the lower half.
const LOW: [&str; 14] = {
    let mut drawing = ["AAAAAAAAAAAAAAAA"; 14];
    drawing[0] = "################";
    let mut line = 1;
    while line < 6 {
        drawing[line] = "A.A.A.A.A.A.A.A.";
        line += 1;
    }
    drawing
};

/// Frames that the free scanner looks at before the first page moves.
fn looks(search: CompactSearch, priority: CompactPriority) -> u64 {
    let mut mem = scene(search, &LOW);
    let mut run = mem.begin(CompactRequest { priority, ..KCOMPACTD }).expect("a run makes sense");
    run.migrate_at = BLOCK + 1; // Within a pageblock, which is gone on with: no search for another source.
    let step = until_moved(&mut mem, &mut run);
    mem.end(run);
    step.free_scanned
}

/// `mm_compaction_isolate_freepages` of guests of 6.1, 6.12 and 7.2: 1,024 frames of a pageblock, then 512, 256, 128,
/// 64, 32 and 32.
#[test]
fn full_pageblocks_are_looked_at_more_and_more_seldom() {
    use CompactSearch::{Counted, None};
    let every = looks(None, CompactPriority::SyncLight);
    assert!(every > u64::from(8 * BLOCK), "{every}");
    let halved: u64 = [1, 2, 4, 8, 16, 32, 32, 32].map(|stride| u64::from(BLOCK) / stride).iter().sum();
    let seldom = looks(Counted, CompactPriority::SyncLight);
    assert!((halved..halved + u64::from(BLOCK)).contains(&seldom), "{seldom} of {halved}");
    let async_looks = looks(Counted, CompactPriority::Async);
    assert!(async_looks < seldom / 2, "{async_looks}, who does not wait begins with few");
}

/// Guests of 5.10, whose kcompactd went on to a pageblock in the lower half; those of 6.1 scanned.
#[test]
fn a_run_that_starts_goes_to_the_highest_free_block_wherever_it_is_until_6_1() {
    for (search, goes) in [(CompactSearch::Any, true), (CompactSearch::UpperHalf, false)] {
        let mut mem = scene(search, &LOW);
        let mut run = mem.begin(KCOMPACTD).expect("a run makes sense");
        mem.search_targets(&mut run);
        let found = (run.targets_pages == u64::from(BLOCK / 2), run.free_at / BLOCK);
        mem.end(run);
        assert_eq!(found, (goes, if goes { 5 } else { 13 }), "{search:?}");
    }
}

/// Guests of four kernels: `mm_compaction_begin` at frame 0 for both scanners, and `complete` at once.
#[test]
fn the_first_run_of_a_zone_that_begins_with_the_first_frame_ends_at_once() {
    let mut mem = scene(CompactSearch::Counted, &PIECE);
    mem.compactor = super::state::Compactor::new(mem.core.alloc.zones());
    assert_eq!(compact(&mut mem, KCOMPACTD), (CompactResult::Complete, 0));
    assert_eq!(compact(&mut mem, KCOMPACTD).0, CompactResult::Success);
}
