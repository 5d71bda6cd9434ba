//! Scenes of memory, drawn: what each rule of the fallback does to a zone of four pageblocks.
//!
//! One line per pageblock: its type (`U`, `M`, `R`, `H`), then 16 cells of 32 pages each.
//!
//! ```text
//! u m r h   all free, on the lists of unmovable, movable, reclaimable, highatomic
//! 1 2 3     its first page is free, on the lists of unmovable, movable, reclaimable; rest kernel's
//! L         pages on an LRU list
//! #         kernel memory
//! U M R H   (drawn only) partly free; the letter tells the list of the first free block
//! ```
//! Next: [`rules`] takes the rules one by one, each at its limit; [`oldest`] those of 2.6.32; [`serve`] asks
//! what compaction works for.

mod oldest;
mod rules;
mod serve;

use std_alloc::string::String;
use std_alloc::vec;
use std_alloc::vec::Vec;

use units::{CpuId, Order, Pages, Pfn};

use crate::alloc::buddy::{End, FreeArea, recorded_type};
use crate::alloc::fallback::Mode;
use crate::alloc::flags::AllocFlags;
use crate::alloc::page_alloc::PageAllocator;
use crate::alloc::pageblock::{BlockSize, HUGE_PAGES as PAGEBLOCK_PAGES, heads};
use crate::alloc::zone::Zone;
use crate::base::event::{KeepTrace, TraceEvent};
use crate::base::frame::{FrameState, Frames};
use crate::base::gfp::{Gfp, MigrateType};
use crate::base::layout::{HugeSupport, MemoryLayout, NodeLayout, ZoneId, ZoneKind, ZoneLayout};
use crate::base::sysctl::Sysctls;
use crate::base::vmstat::VmEvent;
use crate::version::presets::Version;
use crate::version::rules::{HighatomicReserve, ReserveUsers, Rules};

const CELL: u32 = 32;
const CELL_ORDER: Order = Order(5);
const LETTERS: [char; 4] = ['U', 'M', 'R', 'H'];
const BLOCKS: u64 = 4;
const QUIET: AllocFlags = AllocFlags::WMARK_MIN;

type Memory = PageAllocator<KeepTrace>;

fn type_of(letter: char) -> MigrateType {
    let index = LETTERS.iter().position(|&l| l == letter.to_ascii_uppercase()).expect("a type's letter");
    MigrateType::from_index(index)
}

/// A machine with one zone in the state that is drawn.
fn scene(kernel: &str, drawing: [&str; 4]) -> Memory {
    machine(kernel, &[(ZoneKind::Dma32, drawing)])
}

fn machine(kernel: &str, zones: &[(ZoneKind, [&str; 4])]) -> Memory {
    machine_of_nodes(kernel, &[zones])
}

/// A machine with one CPU on each node.
fn machine_of_nodes(kernel: &str, nodes: &[&[(ZoneKind, [&str; 4])]]) -> Memory {
    let pages = Pages(BLOCKS * u64::from(PAGEBLOCK_PAGES));
    let layout = |&(kind, _): &(ZoneKind, [&str; 4])| ZoneLayout::new(kind, pages);
    let zones = nodes.concat();
    let cpus = u16::try_from(nodes.len()).unwrap();
    let nodes = nodes.iter().map(|zones| NodeLayout { zones: zones.iter().map(layout).collect() }).collect();
    let layout = MemoryLayout { nodes, cpus, huge_pages: HugeSupport::Off };
    let kernel = Version::parse(kernel).unwrap();
    let mut memory = PageAllocator::boot(&layout, kernel, Sysctls::default(), KeepTrace::default()).unwrap();
    let rules = memory.version.rules;
    for (zone, (_, drawing)) in memory.zones.iter_mut().zip(zones) {
        build(zone, &mut memory.frames, &rules, drawing);
    }
    memory.check().unwrap();
    memory
}

fn build(zone: &mut Zone, frames: &mut Frames, rules: &Rules, drawing: [&str; 4]) {
    for pfn in (zone.start.0..zone.start.0 + zone.spanned).map(Pfn) {
        frames.set_state(pfn, FrameState::InUse);
        frames.set_order(pfn, Order(0));
    }
    zone.free_area = FreeArea::new(zone.start, zone.spanned, BlockSize::HUGE, rules);
    let mut at = zone.start;
    for line in drawing {
        let (migrate_type, cells) = line.split_once(' ').expect("type, space, cells");
        let migrate_type = type_of(migrate_type.chars().next().expect("a type"));
        if migrate_type == MigrateType::HighAtomic && rules.highatomic != HighatomicReserve::Blocks {
            zone.free_area.reserved_highatomic += u64::from(PAGEBLOCK_PAGES);
        }
        zone.free_area.blocks.set(at, migrate_type);
        assert_eq!(cells.len(), 16, "a pageblock has 16 cells");
        for cell in cells.chars() {
            build_cell(&mut zone.free_area, frames, at, cell);
            at = Pfn(at.0 + CELL);
        }
    }
}

fn build_cell(area: &mut FreeArea, frames: &mut Frames, at: Pfn, cell: char) {
    match cell {
        'u' | 'm' | 'r' | 'h' => area.free_block(frames, at, CELL_ORDER, type_of(cell), false, 1),
        '1' | '2' | '3' => {
            let migrate_type = MigrateType::from_index(cell as usize - '1' as usize);
            area.push(frames, at, Order(0), migrate_type, End::Tail);
        }
        'L' => (at.0..at.0 + CELL).for_each(|pfn| frames.set_state(Pfn(pfn), FrameState::Lru)),
        '#' => {}
        _ => panic!("no such cell: {cell}"),
    }
}

/// Draws a zone.
fn draw(memory: &Memory, zone: usize) -> Vec<String> {
    let zone = &memory.zones[zone];
    let mut cells = Vec::new();
    let mut pages = vec![(FrameState::Reserved, MigrateType::Movable); zone.spanned as usize];
    for (pfn, state) in heads(&memory.frames, zone.start, zone.spanned) {
        let migrate_type =
            if state == FrameState::Free { recorded_type(&memory.frames, pfn) } else { MigrateType::Movable };
        let first = (pfn.0 - zone.start.0) as usize;
        pages[first..first + memory.frames.pages(pfn) as usize].fill((state, migrate_type));
    }
    for cell in pages.chunks(CELL as usize) {
        let free: Vec<_> = cell.iter().filter(|page| page.0 == FrameState::Free).collect();
        cells.push(match free.as_slice() {
            [] if cell[0].0 == FrameState::Lru => 'L',
            [] => '#',
            [one] => char::from(b'1' + one.1 as u8),
            [first, ..] if free.len() == CELL as usize => LETTERS[first.1 as usize].to_ascii_lowercase(),
            [first, ..] => LETTERS[first.1 as usize],
        });
    }
    let blocks = zone.free_area.pageblocks().iter();
    let line = |((_, migrate_type), cells): ((Pfn, MigrateType), &[char])| {
        [LETTERS[migrate_type as usize], ' '].into_iter().chain(cells.iter().copied()).collect()
    };
    blocks.zip(cells.chunks(16)).map(line).collect()
}

/// Takes a block past the per-CPU lists.
fn take(memory: &mut Memory, order: u8, want: MigrateType, flags: AllocFlags) -> Option<Pfn> {
    let page = memory.lock(ZoneId(0)).take_block(Order(order), want, flags, &mut Mode::default());
    memory.check().unwrap();
    page
}

fn events(memory: &Memory) -> (u64, u64) {
    (memory.events.get(VmEvent::ExtfragEvents), memory.events.get(VmEvent::ExtfragFragmenting))
}

use MigrateType::{Movable, Reclaimable, Unmovable};

#[test]
fn own_blocks_come_first_and_the_smallest_that_fits() {
    for kernel in ["linux-2.6.32", "linux-5.5", "linux-6.12"] {
        let mut memory = scene(
            kernel,
            ["M mmmmmmmmmmmmmmmm", "M ################", "U uu##############", "U u###############"],
        );
        let page = take(&mut memory, 5, Unmovable, QUIET);
        assert_eq!(page, Some(Pfn(3 * 512)), "the single cell, not half of the pair");
        assert_eq!(events(&memory), (0, 0));
    }
}

#[test]
fn a_whole_free_pageblock_changes_hands_without_fragmentation() {
    for kernel in ["linux-2.6.32", "linux-5.5", "linux-6.12"] {
        let mut memory = scene(
            kernel,
            ["M mmmmmmmmmmmmmmmm", "M LLLLLLLLLLLLLLLL", "M mmmm############", "M ################"],
        );
        let page = take(&mut memory, 0, Unmovable, QUIET | AllocFlags::KSWAPD);
        assert_eq!(page, Some(Pfn(0)));
        assert_eq!(
            draw(&memory, 0),
            ["U Uuuuuuuuuuuuuuuu", "M LLLLLLLLLLLLLLLL", "M mmmm############", "M ################"]
        );
        assert_eq!(events(&memory), (1, 0));
        assert_eq!(memory.zones[0].watermarks.boost(), Pages(0));
        assert_eq!(
            memory.trace.0,
            [TraceEvent::PageAllocExtfrag {
                pfn: Pfn(0),
                alloc_order: Order(0),
                fallback_order: Order(9),
                alloc_migratetype: Unmovable,
                fallback_migratetype: Movable,
                change_ownership: true,
            }]
        );
    }
}

#[test]
fn half_free_or_alike_is_enough_to_claim_a_pageblock() {
    for kernel in ["linux-5.5", "linux-6.12"] {
        // 4 cells free, 4 the kernel's: exactly 256 pages.
        let mut memory = scene(
            kernel,
            ["M LLLLmmmm####LLLL", "M LLLLLLLLLLLLLLLL", "M LLLLLLLLLLLLLLLL", "M LLLLLLLLLLLLLLLL"],
        );
        assert_eq!(take(&mut memory, 5, Reclaimable, QUIET), Some(Pfn(4 * CELL)));
        assert_eq!(draw(&memory, 0)[0], "R LLLL#rrr####LLLL");
        assert_eq!(events(&memory), (1, 1));
        assert_eq!(memory.zones[0].watermarks.boost(), Pages(512));
    }
}

#[test]
fn short_of_half_the_classic_rule_takes_the_pages_but_not_the_block() {
    let drawing = ["M LLLLmmmm###LLLLL", "M LLLLLLLLLLLLLLLL", "M LLLLLLLLLLLLLLLL", "M LLLLLLLLLLLLLLLL"];
    let mut memory = scene("linux-5.5", drawing);
    assert_eq!(take(&mut memory, 5, Reclaimable, QUIET), Some(Pfn(4 * CELL)));
    assert_eq!(draw(&memory, 0)[0], "M LLLL#rrr###LLLLL", "free pages on the lists of another type");
    assert_eq!(events(&memory), (1, 1));
}

#[test]
fn short_of_half_6_12_steals_one_block_and_leaves_the_rest_to_its_owner() {
    let drawing = ["M LLLLmmmm###LLLLL", "M LLLLLLLLLLLLLLLL", "M LLLLLLLLLLLLLLLL", "M LLLLLLLLLLLLLLLL"];
    let mut memory = scene("linux-6.12", drawing);
    assert_eq!(take(&mut memory, 5, Reclaimable, QUIET), Some(Pfn(4 * CELL)));
    assert_eq!(draw(&memory, 0)[0], "M LLLL#mmm###LLLLL");
    assert_eq!(events(&memory), (1, 1));
    assert_eq!(memory.zones[0].watermarks.boost(), Pages(512), "the failed claim boosted once");
}

#[test]
fn every_attempt_to_claim_boosts_in_6_12() {
    // A block of order 6 and one of order 5: two attempts, both in vain, before the steal.
    let drawing = ["M LLmmLLLLLLLLLLLL", "M LLmLLLLLLLLLLLLL", "M LLLLLLLLLLLLLLLL", "M LLLLLLLLLLLLLLLL"];
    let mut memory = scene("linux-6.12", drawing);
    memory.sysctls.set(crate::base::sysctl::Sysctl::WatermarkBoostFactor, 1_000_000);
    assert_eq!(take(&mut memory, 5, Unmovable, QUIET), Some(Pfn(512 + (2 * CELL))));
    assert_eq!(memory.zones[0].watermarks.boost(), Pages(1024));
    assert_eq!(events(&memory), (1, 1));
}

#[test]
fn a_movable_request_that_may_not_claim_takes_the_smallest_block() {
    // Free: single pages only (order 0), and one pair behind them.
    let drawing = ["R 3###############", "U 1###############", "R ################", "U ################"];
    let mut memory = scene("linux-5.5", drawing);
    let area = &mut memory.zones[0].free_area;
    area.push(&mut memory.frames, Pfn(1024 + 8), Order(3), Reclaimable, End::Head);
    (1..8).for_each(|i| memory.frames.set_state(Pfn(1024 + 8 + i), FrameState::Tail));
    assert_eq!(take(&mut memory, 0, Movable, QUIET), Some(Pfn(0)), "order 0, reclaimable first");
    assert_eq!(take(&mut memory, 0, Movable, QUIET), Some(Pfn(512)));
    assert_eq!(take(&mut memory, 0, Movable, QUIET), Some(Pfn(1024 + 8)), "now the block of order 3");
    assert_eq!(take(&mut memory, 0, Movable, QUIET), Some(Pfn(1024 + 9)), "its rest became movable");
    assert_eq!(events(&memory), (3, 3), "no event for a page of the own type");
}

#[test]
fn a_kernel_request_takes_the_largest_block_and_all_its_neighbours() {
    let drawing = ["M 2LLL2LLLLLLLLLLL", "M m2LLLLLLLLLLLLLL", "M LLLLLLLLLLLLLLLL", "M LLLLLLLLLLLLLLLL"];
    let mut memory = scene("linux-5.5", drawing);
    assert_eq!(
        take(&mut memory, 0, Unmovable, QUIET),
        Some(Pfn(512 + CELL)),
        "the smallest of what it moved"
    );
    assert_eq!(draw(&memory, 0)[..2], ["M 2LLL2LLLLLLLLLLL", "M u#LLLLLLLLLLLLLL"]);
}

#[test]
fn with_nofragment_only_whole_pageblocks_change_hands() {
    for kernel in ["linux-5.5", "linux-6.12"] {
        let drawing =
            ["M mmmmmmmmLLLLLLLL", "M LLLLLLLLLLLLLLLL", "M LLLLLLLLLLLLLLLL", "M LLLLLLLLLLLLLLLL"];
        let mut memory = scene(kernel, drawing);
        assert_eq!(take(&mut memory, 0, Unmovable, QUIET | AllocFlags::NOFRAGMENT), None);
        assert_eq!(draw(&memory, 0), drawing);
        assert_eq!((events(&memory), memory.zones[0].watermarks.boost()), ((0, 0), Pages(0)));
    }
}

/// Normal has movable pages only; DMA32 has what a kernel request wants.
const NORMAL: [&str; 4] =
    ["M mmmmmmmmLLLLLLLL", "M mmmmmmmmLLLLLLLL", "M mmmmmmmmLLLLLLLL", "M mmmmmmmmLLLLLLLL"];
const DMA32: [&str; 4] =
    ["U uuuuuuuuuuuuuuuu", "M mmmmmmmmmmmmmmmm", "M mmmmmmmmmmmmmmmm", "M mmmmmmmmmmmmmmmm"];

#[test]
fn a_request_for_normal_goes_to_dma32_before_it_mixes_types() {
    for (kernel, zone) in [("linux-5.5", 0), ("linux-5.5-nofragment", 1)] {
        let mut memory = machine(kernel, &[(ZoneKind::Dma32, DMA32), (ZoneKind::Normal, NORMAL)]);
        let flags = memory.fast_flags(CpuId(0), Gfp::KERNEL);
        let page = memory.alloc(CpuId(0), Gfp::KERNEL, Order(0), flags).page.unwrap();
        assert_eq!(memory.zone_of(page), ZoneId(zone), "{kernel}");
    }
}

#[test]
fn when_all_zones_would_mix_types_the_preferred_one_does() {
    let mut memory = machine("linux-5.5", &[(ZoneKind::Dma32, NORMAL), (ZoneKind::Normal, NORMAL)]);
    let flags = memory.fast_flags(CpuId(0), Gfp::KERNEL);
    assert!(flags.has_any(AllocFlags::NOFRAGMENT));
    let outcome = memory.alloc(CpuId(0), Gfp::KERNEL, Order(0), flags);
    assert_eq!(memory.zone_of(outcome.page.unwrap()), ZoneId(1));
    assert_eq!(outcome.wake.iter().collect::<Vec<_>>(), [ZoneId(1)], "its boost wakes kswapd");
    assert!(!memory.zones[1].watermarks.boosted, "the wake-up is handed over once");
    assert_eq!(outcome.stolen_blocks, 1);
}

#[test]
fn of_two_nodes_the_near_one_mixes_types_before_the_far_one_is_asked() {
    let near: &[_] = &[(ZoneKind::Dma32, NORMAL), (ZoneKind::Normal, NORMAL)];
    let far: &[_] = &[(ZoneKind::Normal, DMA32)];
    // As posted the walk did not start over, and so went on to the other node.
    for (kernel, zone) in [("linux-5.5", 1), ("linux-4.20-rc1+nofragment", 2), ("linux-4.20-rc1", 1)] {
        let mut memory = machine_of_nodes(kernel, &[near, far]);
        let flags = memory.fast_flags(CpuId(0), Gfp::KERNEL);
        assert_eq!(flags.has_any(AllocFlags::NOFRAGMENT), kernel != "linux-4.20-rc1");
        let page = memory.alloc(CpuId(0), Gfp::KERNEL, Order(0), flags).page.unwrap();
        assert_eq!(memory.zone_of(page), ZoneId(zone), "{kernel}");
    }
    let memory = machine_of_nodes("linux-5.5", &[near, far]);
    let flags = memory.fast_flags(CpuId(1), Gfp::KERNEL);
    assert!(!flags.has_any(AllocFlags::NOFRAGMENT), "the far node has no DMA32 zone to go to");
}

/// Free pages of kernel types only, all of them single.
const SINGLES: [&str; 4] =
    ["U 1111111111111111", "U 1111111111111111", "R 3333333333333333", "U ################"];
/// The same, in blocks of 32 pages.
const CELLS: [&str; 4] =
    ["U u#u#u#u#u#u#u#u#", "U u#u#u#u#u#u#u#u#", "R r#r#r#r#r#r#r#r#", "U ################"];

fn stalling(memory: &mut Memory) -> crate::alloc::page_alloc::AllocOutcome {
    let flags = AllocFlags::NO_WATERMARKS | AllocFlags::KSWAPD | AllocFlags::FRAGMENT_STALL;
    memory.alloc(CpuId(0), Gfp::HIGHUSER_MOVABLE, Order(0), flags)
}

#[test]
fn a_movable_request_stalls_before_it_takes_a_small_block_and_takes_it_afterwards() {
    let mut memory = scene("linux-5.5+fragment-stall", SINGLES);
    let outcome = stalling(&mut memory);
    let stall = outcome.stall.unwrap();
    assert_eq!((outcome.page, stall.zone), (None, ZoneId(0)));
    assert_eq!(outcome.wake.iter().collect::<Vec<_>>(), [ZoneId(0)], "it boosts first");
    assert_eq!((events(&memory), draw(&memory, 0)), ((0, 0), SINGLES.map(String::from).to_vec()));
    let flags = AllocFlags::NO_WATERMARKS | AllocFlags::FRAGMENT_STALL;
    let page =
        memory.alloc_after_stall(CpuId(0), Gfp::HIGHUSER_MOVABLE, Order(0), flags, stall).page.unwrap();
    assert_eq!(page, Pfn(1024), "a reclaimable page");
    assert!(events(&memory).1 > 0);
}

#[test]
fn as_posted_the_attempt_after_a_stall_goes_on_behind_the_last_zone() {
    let mut memory = scene("linux-4.20-rc1+fragment-stall", SINGLES);
    let stall = stalling(&mut memory).stall.unwrap();
    let flags = AllocFlags::NO_WATERMARKS;
    let outcome = memory.alloc_after_stall(CpuId(0), Gfp::HIGHUSER_MOVABLE, Order(0), flags, stall);
    assert_eq!((outcome.page, outcome.stall), (None, None));
}

#[test]
fn only_fallbacks_of_a_smaller_order_than_the_sysctl_stall() {
    for (order, drawing, stalls) in
        [(4, SINGLES, true), (0, SINGLES, false), (1, SINGLES, true), (5, CELLS, false), (6, CELLS, true)]
    {
        let mut memory = scene("linux-4.20-rc1+fragment-stall", drawing);
        memory.sysctls.set(crate::base::sysctl::Sysctl::FragmentStallOrder, order);
        let outcome = stalling(&mut memory);
        assert_eq!((outcome.stall.is_some(), outcome.page.is_none()), (stalls, stalls), "order {order}");
    }
}

#[test]
fn a_stall_boosts_seven_pageblocks_as_far_as_the_cap_allows() {
    for (boost, expected) in [("", 0), ("+watermark-boost", 512), ("+watermark-boost-v2", 512)] {
        let mut memory = scene(&std_alloc::format!("linux-4.20-rc1+fragment-stall{boost}"), SINGLES);
        memory.boost_for_stall(ZoneId(0));
        assert_eq!(memory.zones[0].watermarks.boost(), Pages(expected), "{boost}");
        memory.sysctls.set(crate::base::sysctl::Sysctl::WatermarkBoostFactor, 1_000_000);
        memory.boost_for_stall(ZoneId(0));
        let full = if expected == 0 { 0 } else { 512 + (7 * 512) };
        assert_eq!(memory.zones[0].watermarks.boost(), Pages(full), "{boost}");
    }
}

#[test]
fn as_posted_a_boost_wakes_kswapd_even_for_requests_that_may_not() {
    for (boost, wakes) in [("+watermark-boost", false), ("+watermark-boost-v2", true)] {
        let mut memory = scene(&std_alloc::format!("linux-4.20-rc1{boost}"), SINGLES);
        let outcome = memory.alloc(
            CpuId(0),
            Gfp::HIGHUSER_MOVABLE.without(Gfp::KSWAPD_RECLAIM),
            Order(0),
            AllocFlags::NO_WATERMARKS,
        );
        assert_eq!((outcome.page.is_some(), !outcome.wake.is_empty()), (true, wakes), "{boost}");
    }
}

#[test]
fn without_a_dma32_zone_nofragment_is_never_set() {
    let memory = machine("linux-5.5", &[(ZoneKind::Normal, NORMAL)]);
    assert!(!memory.fast_flags(CpuId(0), Gfp::KERNEL).has_any(AllocFlags::NOFRAGMENT));
    let guest = machine("linux-6.1", &[(ZoneKind::Dma32, NORMAL)]);
    assert!(!guest.fast_flags(CpuId(0), Gfp::KERNEL).has_any(AllocFlags::NOFRAGMENT));
}

#[test]
fn a_boost_ends_at_the_larger_of_one_pageblock_and_one_and_a_half_high_marks() {
    let mut memory = scene("linux-6.1", NORMAL);
    let high = memory.zones[0].watermarks.base(crate::alloc::watermark::Mark::High);
    assert!(high * 15_000 / 10_000 < 512, "a small zone");
    for _ in 0..3 {
        let _ = take(&mut memory, 8, Unmovable, QUIET);
        assert_eq!(memory.zones[0].watermarks.boost(), Pages(512));
        assert_eq!(memory.zones[0].watermarks.mark(crate::alloc::watermark::Mark::High), high + 512);
    }
    let mut off = scene("linux-6.1-watermark-boost", NORMAL);
    let _ = take(&mut off, 0, Unmovable, QUIET);
    assert_eq!(off.zones[0].watermarks.boost(), Pages(0));
}

#[test]
fn single_pages_are_handed_out_in_ascending_order() {
    for kernel in ["linux-5.5", "linux-6.1", "linux-6.12"] {
        let free = ["M mmmmmmmmmmmmmmmm"; 4];
        let mut memory = scene(kernel, free);
        let mut taken = Vec::new();
        for _ in 0..600 {
            let outcome = memory.alloc(CpuId(0), Gfp::HIGHUSER_MOVABLE, Order(0), QUIET);
            taken.push(outcome.page.unwrap());
        }
        assert!(taken.is_sorted(), "{kernel}: {taken:?}");
        for pfn in taken {
            memory.free(CpuId(0), pfn, Order(0));
        }
        let _ = memory.drain_all();
        assert_eq!(draw(&memory, 0), free);
        assert_eq!(memory.zones[0].free_area.blocks_free(Order(10)), 2, "merged again");
    }
}

#[test]
fn a_high_order_atomic_request_sets_its_pageblock_aside() {
    let mut memory = scene(
        "linux-6.1",
        ["M mmmmmmmmmmmmmmmm", "M ################", "M ################", "M ################"],
    );
    let flags = AllocFlags::slow(ReserveUsers::Atomic, Gfp::ATOMIC, Order(5), false);
    assert!(memory.alloc(CpuId(0), Gfp::ATOMIC, Order(5), flags).page.is_some());
    assert_eq!(draw(&memory, 0)[0], "H #hhhhhhhhhhhhhhh");
    assert_eq!(memory.zones[0].free_area.reserved_highatomic(), 512);
    let zones = [ZoneId(0)];
    assert!(!memory.unreserve_highatomic(&zones, Unmovable, false), "the last block is kept");
    assert!(memory.unreserve_highatomic(&zones, Unmovable, true));
    assert_eq!(draw(&memory, 0)[0], "U #uuuuuuuuuuuuuuu");
    memory.check().unwrap();
    let mut small = scene("linux-6.12", ["M mmmmmmmmmmmmmmmm"; 4]);
    assert!(small.rules().highatomic == HighatomicReserve::LargeZones);
    let _ = small.alloc(CpuId(0), Gfp::ATOMIC, Order(5), flags);
    assert_eq!(small.zones[0].free_area.reserved_highatomic(), 0);
}

#[test]
fn a_reserve_that_is_given_back_stays_apart_from_its_buddy_until_a_page_of_it_is_freed() {
    let half = "M mmmmmmmmmmmmmmmm";
    let mut memory = scene("linux-6.1", [half, half, "M ################", "M ################"]);
    let largest = |memory: &Memory| [9, 10].map(|order| memory.zones[0].free_area.blocks_free(Order(order)));
    assert_eq!(largest(&memory), [0, 1]);
    let flags = AllocFlags::slow(ReserveUsers::Atomic, Gfp::ATOMIC, Order(5), false);
    let pfn = memory.alloc(CpuId(0), Gfp::ATOMIC, Order(5), flags).page.unwrap();
    memory.free(CpuId(0), pfn, Order(5));
    assert_eq!(draw(&memory, 0)[..2], ["H hhhhhhhhhhhhhhhh", "U uuuuuuuuuuuuuuuu"]);
    assert!(memory.unreserve_highatomic(&[ZoneId(0)], Unmovable, true));
    assert_eq!(draw(&memory, 0)[..2], ["U uuuuuuuuuuuuuuuu"; 2]);
    assert_eq!(largest(&memory), [2, 0], "only lists and types changed");
    let mut take = |order| memory.alloc(CpuId(0), Gfp::KERNEL, order, AllocFlags::NO_WATERMARKS).page;
    assert_eq!(take(Order(10)), None);
    let page = take(Order(0)).unwrap();
    memory.free(CpuId(0), page, Order(0));
    let _ = memory.drain_all();
    assert_eq!(largest(&memory), [0, 1]);
    memory.check().unwrap();
}
