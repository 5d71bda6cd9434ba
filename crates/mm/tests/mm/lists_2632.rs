//! Reclaim of Linux 2.6.32 step by step: its two lists of files, its scans, and what it does with dirty pages
//! (MECHANISMS 4.6, 6.4 to 6.8, 7, 9.2).
//!
//! Each scene differs from its neighbour by one answer.

use crate::world::{CPU, NODE, World};
use insta::assert_snapshot;
use pagetide_mm::MemcgId;
use pagetide_mm::base::frame::PageFlags;
use pagetide_mm::base::layout::ZoneKind;
use pagetide_mm::base::vmstat::VmEvent;
use pagetide_mm::lru::lists::LruList;
use pagetide_mm::pages::tree::Slot;
use pagetide_mm::reclaim::run::{Reclaimer, ScanControl};
use pagetide_mm::version::rules::{
    FileBalance, Refaults, Rule, ScanStop, SlabPressure, SmallScans, SparedScan, Writepage,
};
use units::Order;

const ROOT: MemcgId = MemcgId::ROOT;

#[test]
fn use_once_pages_go_first_while_they_are_as_many_as_active_ones() {
    let deactivated = |kernel, inactive: u32| {
        let mut world = World::boot(kernel, 16);
        world.heat(ROOT, 0..1024);
        world.read(ROOT, 2000..2000 + inactive);
        world.settle();
        world.pass(&mut ScanControl { priority: 4, ..world.direct() }).deactivated
    };
    // Before 56e49d21 a sixteenth of the active list went, whatever the balance.
    assert_eq!(deactivated("linux-2.6.32-evict-once-ratio", 1200), 64);
    assert_eq!(deactivated("linux-2.6.32", 1200), 0);
    assert_eq!(deactivated("linux-2.6.32", 1000), 64, "fewer than active ones");
}

#[test]
fn the_balance_is_one_to_one_in_memory_of_any_size_up_to_4_6() {
    // 400,000 pages are more than 1 GiB, where a third of inactive ones is enough since 4.7.
    for (answer, deactivates) in [(FileBalance::MoreThanInactive, true), (FileBalance::ByMemorySize, false)] {
        let mut world = World::boot_with("linux-4.19", &[Rule::FileBalance(answer)], 2048);
        world.heat(ROOT, 0..250_000);
        world.read(ROOT, 300_000..450_000);
        world.settle();
        let passed = world.pass(&mut ScanControl { priority: 6, ..world.direct() });
        assert_eq!(passed.deactivated > 0, deactivates, "{answer:?}");
    }
}

#[test]
fn the_scan_of_spared_active_pages_is_spent_on_inactive_ones_in_2_6_32() {
    let reclaimed = |answer| {
        let mut world = World::boot_with("linux-2.6.32", &[Rule::SparedScan(answer)], 16);
        world.heat(ROOT, 0..1024);
        world.read(ROOT, 2000..3200);
        world.settle();
        // 1200 >> 5 = 37, two chunks; 1024 >> 5 = 32, another one.
        world.pass(&mut ScanControl { priority: 5, ..ScanControl::kswapd(ZoneKind::Movable) }).reclaimed
    };
    assert_eq!(reclaimed(SparedScan::OnInactive), 96);
    assert_eq!(reclaimed(SparedScan::Dropped), 64, "2.6.33");
}

#[test]
fn a_scan_of_less_than_a_chunk_waits_until_there_is_one() {
    // 4096 pages: 1, 2, 4, 8, 16 at priorities 12 to 8, together 31; 32 at priority 7.
    let run = |answers: &[Rule]| {
        let mut world = World::boot_with("linux-2.6.32", answers, 64);
        world.read(ROOT, 0..4096);
        world.settle();
        let mut sc = ScanControl { nr_to_reclaim: 60, ..world.direct() };
        let passes = world.run(&mut sc);
        passes.iter().map(|pass| pass.scanned).collect::<Vec<_>>()
    };
    // 31 and 32 make 63 at once: a chunk, and one of 31 that is a whole one, too.
    assert_eq!(run(&[]), [0, 0, 0, 0, 0, 64]);
    assert_eq!(run(&[Rule::SmallScans(SmallScans::Made)]), [1, 1, 3, 7, 15, 31, 32], "3.0: of what is left");
    assert_eq!(run(&[Rule::SmallScans(SmallScans::Saved)]).len(), 6);
}

#[test]
fn what_was_saved_is_not_lost_between_two_runs() {
    let mut world = World::boot("linux-2.6.32", 64);
    world.read(ROOT, 0..4096);
    world.settle();
    let scanned: Vec<u64> =
        (0..3).map(|_| world.pass(&mut ScanControl { priority: 8, ..world.direct() }).scanned).collect();
    assert_eq!(scanned, [0, 32, 0], "16, 32, 16 of the rest");
}

#[test]
fn a_pass_ends_after_the_chunk_that_makes_more_than_32_pages() {
    // 4096 >> 4 = 256 pages of quota.
    let reclaimed = |answer, reclaimer| {
        let mut world = World::boot_with("linux-2.6.32", &[Rule::ScanStop(answer)], 64);
        world.read(ROOT, 0..4096);
        world.settle();
        let sc = match reclaimer {
            Reclaimer::Kswapd => ScanControl { nr_to_reclaim: 32, ..ScanControl::kswapd(ZoneKind::Movable) },
            _ => world.direct(),
        };
        world.pass(&mut ScanControl { priority: 4, ..sc }).reclaimed
    };
    assert_eq!(reclaimed(ScanStop::AfterChunk, Reclaimer::Direct), 64, "32 are not more than 32");
    assert_eq!(reclaimed(ScanStop::AfterChunk, Reclaimer::Kswapd), 256, "kswapd spends its quota");
    assert_eq!(reclaimed(ScanStop::InProportion, Reclaimer::Direct), 32, "3.12");
    assert_eq!(reclaimed(ScanStop::InProportion, Reclaimer::Kswapd), 32);
}

#[test]
fn a_page_that_was_evicted_and_comes_back_is_a_new_one() {
    for (answer, slot_has_shadow) in [(Refaults::None, false), (Refaults::Shadows, true)] {
        let mut world = World::boot_with("linux-2.6.32", &[Rule::Refaults(answer)], 16);
        world.read(ROOT, 0..64);
        world.settle();
        let mut sc = ScanControl { priority: 0, ..world.direct() };
        assert_eq!(world.pass(&mut sc).reclaimed, 64);
        let shadow = matches!(world.mem.cache.find(world.file, 0), Slot::Shadow(_));
        assert_eq!(shadow, slot_has_shadow, "{answer:?}");
        world.read(ROOT, [0]);
        let refaults = world.event(VmEvent::WorkingsetRefaultFile);
        assert_eq!(refaults, u64::from(slot_has_shadow), "{answer:?}");
        world.mem.check_at_rest().unwrap();
    }
}

/// What a pass of `reclaimer` makes of a page in this state.
fn verdict(answer: Writepage, page: &str, reclaimer: Reclaimer, may_fs: bool) -> String {
    let answers = [Rule::Writepage(answer), Rule::SmallScans(SmallScans::Made)];
    let mut world = World::boot_with("linux-2.6.32", &answers, 8);
    assert!(world.add(CPU, ROOT, 0, Order(0)));
    world.settle();
    let (pfn, file) = (world.page(0).expect("it was just added"), world.file);
    assert!(world.mem.set_dirty(pfn));
    match page {
        "dirty" => {}
        "dirty read" => world.mem.core.alloc.frames.set_flags(pfn, PageFlags::REFERENCED),
        _ => assert_eq!(world.mem.start_writeback(file, 0, 1), Some((0, 1))),
    }
    let sc = match reclaimer {
        Reclaimer::Kswapd => ScanControl::kswapd(ZoneKind::Movable),
        Reclaimer::Direct => ScanControl::direct(ZoneKind::Movable),
        Reclaimer::Limit => ScanControl::limit(ROOT, 1),
    };
    assert_eq!(world.pass(&mut ScanControl { priority: 0, may_fs, ..sc }).scanned, 1);
    let active = world.mem.lru_list(ROOT, NODE, LruList::ActiveFile).count() == 1;
    let mut text = if active { "activate" } else { "keep" }.to_owned();
    if !world.mem.take_pageout().is_empty() {
        assert_eq!(world.event(VmEvent::NrVmscanWrite), 1);
        text += ", write";
        // Its blocks are written; then it is the first to go.
        assert_eq!(world.mem.start_pageout(file, 0), Some((0, 1)));
        world.mem.end_writeback(file, 0, 1, &mut Vec::new());
        assert_eq!(world.event(VmEvent::PgRotated), 1);
    }
    text
}

#[test]
fn up_to_3_1_whoever_meets_a_dirty_page_writes_it() {
    use Reclaimer::{Direct, Kswapd, Limit};
    let mut table = String::new();
    for page in ["dirty", "dirty read", "writeback"] {
        let row = [(Direct, true), (Direct, false), (Kswapd, true), (Limit, true)]
            .map(|(who, may_fs)| verdict(Writepage::Anyone, page, who, may_fs));
        table += &format!("{page:10} | {}\n", row.join(" | "));
    }
    assert_snapshot!(table, @r"
    dirty      | keep, write | keep | keep, write | keep, write
    dirty read | keep | keep | keep | keep
    writeback  | keep | keep | keep | keep
    ");
    assert_eq!(verdict(Writepage::Never, "dirty", Direct, true), "activate");
    assert_eq!(verdict(Writepage::Never, "writeback", Direct, true), "activate");
}

#[test]
fn slab_is_pressed_by_the_part_of_the_lists_that_was_scanned() {
    let part = |answer, scanned| {
        let mut world = World::boot_with("linux-2.6.32", &[Rule::SlabPressure(answer)], 16);
        world.heat(ROOT, 0..100);
        world.read(ROOT, 1000..1900);
        world.settle();
        let mut sc = world.direct();
        world.mem.slab_after_pass(NODE, scanned, &mut sc).then_some((sc.scanned.pages, sc.scanned.listed))
    };
    assert_eq!(part(SlabPressure::ByScan, 64), Some((64, 1000)));
    assert_eq!(part(SlabPressure::ByScan, 0), Some((32, 1000)), "a pass without pages presses like a chunk");
    assert_eq!(part(SlabPressure::ByPriority, 64), None, "4.12: after the lists of each cgroup instead");
}

#[test]
fn a_limit_leaves_slab_alone_where_it_is_pressed_by_scan() {
    let world = World::boot("linux-2.6.32", 8);
    assert!(!world.mem.slab_after_pass(NODE, 100, &mut world.limit(ROOT)));
    assert!(world.mem.slab_after_pass(NODE, 100, &mut world.direct()));
}
