//! Scenes of kswapd: zones of which so many blocks are free, and what it does then. Nothing here frees
//! a page by itself: what passes come to is a script.

use std_alloc::format;
use std_alloc::vec::Vec;

use units::{CpuId, Nanos, NodeId, Order, Pages};

use crate::alloc::flags::AllocFlags;
use crate::alloc::watermark::Mark;
use crate::base::event::TraceEvent;
use crate::base::gfp::MigrateType;
use crate::base::ids::MemcgId;
use crate::base::layout::ZoneKind;
use crate::base::vmstat::{MemcgStat, VmEvent};
use crate::compact::state::{CompactGoal, CompactPriority, CompactRequest};
use crate::decide::balance::{Balance, BalanceNext};
use crate::decide::kswapd::{FallAsleep, Job, Request, SleepNext};
use crate::decide::scene::Zones;
use crate::reclaim::run::{Met, ScanControl};
use crate::version::rules::PassMeasure;

const NODE: NodeId = NodeId(0);

/// A zone that is just above its high mark, in blocks of at most `order`.
fn above_high(order: u8) -> Zones {
    let mut zones = Zones::full("linux-6.1", &[ZoneKind::Normal]);
    let block = u64::from(Order(order).pages());
    zones.free(ZoneKind::Normal, 0, zones.mark(ZoneKind::Normal, Mark::High));
    zones.free(ZoneKind::Normal, order, 1);
    assert!(zones.mem.core.alloc.free_pages().0 > zones.mark(ZoneKind::Normal, Mark::High) + block - 1);
    zones
}

// ---- what there is to do ----

/// Whether the node needs no reclaim for a block of `order` in zones up to `highest_zoneidx`.
fn balanced(zones: &Zones, order: u8, highest_zoneidx: ZoneKind) -> bool {
    !zones.mem.has_work_for_kswapd(NODE, Order(order), highest_zoneidx)
}

#[test]
fn a_node_is_balanced_if_a_zone_is_above_its_high_mark_and_has_a_block() {
    use ZoneKind::Normal;
    for order in [0, 1, 3, 9] {
        let mut zones = Zones::full("linux-6.1", &[Normal]);
        let high = zones.mark(Normal, Mark::High);
        zones.free(Normal, order, 1);
        // All of the block but one page is taken off what must be above the mark.
        zones.free(Normal, 0, high - 1);
        assert!(!balanced(&zones, order, Normal), "{order}: at the mark");
        zones.free(Normal, 0, 1);
        assert!(balanced(&zones, order, Normal), "{order}: above it");
        assert!(!balanced(&zones, order + 1, Normal), "{order}: no block of the next order");
        zones.free(Normal, 0, 5_000);
        assert!(!balanced(&zones, order + 1, Normal), "{order}: however much is free");
        zones.free(Normal, order + 2, 1);
        assert!(balanced(&zones, order + 1, Normal), "{order}: a larger block will do");
    }
}

#[test]
fn any_zone_that_the_request_may_use_is_enough_if_its_reserve_is_left() {
    use ZoneKind::{Dma32, Normal};
    let mut zones = Zones::full("linux-6.1", &[Dma32, Normal]);
    zones.free(Dma32, 0, zones.mark(Dma32, Mark::High) + 1);
    assert!(balanced(&zones, 0, Dma32));
    assert!(!balanced(&zones, 0, Normal), "pages of DMA32 are kept from requests for Normal");
    let reserve = zones.mem.core.alloc.zone(zones.zone(Dma32)).watermarks.reserve(Normal);
    zones.free(Dma32, 0, reserve - 1);
    assert!(!balanced(&zones, 0, Normal));
    zones.free(Dma32, 0, 1);
    assert!(balanced(&zones, 0, Normal), "although Normal has no free page");

    let mut zones = Zones::full("linux-6.1", &[Dma32, Normal]);
    zones.free(Normal, 0, zones.mark(Normal, Mark::High) + 1);
    assert!(balanced(&zones, 0, Normal) && !balanced(&zones, 0, Dma32), "Normal is of no use for DMA32");
}

#[test]
fn a_boost_is_work_and_raises_what_must_be_free() {
    use ZoneKind::{Dma32, Normal};
    let mut zones = Zones::full("linux-6.1", &[Dma32, Normal]);
    zones.free(Dma32, 0, zones.mark(Dma32, Mark::High) + 1);
    zones.free(Normal, 0, 8_000);
    zones.mem.core.alloc.boost_for_stall(zones.zone(Normal));
    assert!(!balanced(&zones, 0, Normal), "there is a boost to work off");
    assert!(balanced(&zones, 0, Dma32), "not in zones up to DMA32");
    assert_eq!(passes(&mut zones, 0, Dma32, &[]), []);
    let all_but_one = zones.mem.core.alloc.zone(zones.zone(Normal)).watermarks.boost() - Pages(1);
    zones.mem.core.alloc.reduce_boost(zones.zone(Normal), all_but_one);
    assert!(!balanced(&zones, 0, Normal), "a page of it is enough");

    let mut zones = above_high(0);
    zones.mem.core.alloc.boost_for_stall(zones.zone(Normal));
    assert_eq!(passes(&mut zones, 0, Normal, &[]).len(), 12, "what is free is below the boosted mark");
}

#[test]
fn kswapd_is_not_woken_once_it_has_failed_16_times() {
    let mut zones = Zones::full("linux-6.1", &[ZoneKind::Normal]);
    (0..15).for_each(|_| zones.mem.reclaim.note_failure(NODE));
    assert!(!zones.mem.is_hopeless(NODE) && !balanced(&zones, 0, ZoneKind::Normal));
    zones.mem.reclaim.note_failure(NODE);
    assert!(zones.mem.is_hopeless(NODE) && balanced(&zones, 0, ZoneKind::Normal));
}

// ---- runs ----

/// What happens in a pass.
#[derive(Clone, Copy)]
enum Pass {
    /// It frees so many pages, and scans as many as it was to, or one page less.
    Frees(u64, Scans),
    /// It frees nothing, but others free as many pages of Normal.
    OthersFree(u64),
    /// It frees a page, but others take all there is.
    OthersTake,
}

#[derive(Clone, Copy, PartialEq)]
enum Scans {
    Enough,
    OneLess,
}

/// Begins a run.
fn begin(zones: &mut Zones, order: u8, highest_zoneidx: ZoneKind) -> Balance {
    Balance::begin(&mut zones.mem, NODE, Order(order), highest_zoneidx)
}

/// Walks a run by a script; passes behind its end do nothing. Returns what each pass was to do.
fn walk(zones: &mut Zones, run: &mut Balance, script: &[Pass]) -> Vec<ScanControl> {
    let mut passes: Vec<ScanControl> = Vec::new();
    loop {
        match run.step(&mut zones.mem, false) {
            BalanceNext::Shrink => {
                let pass = script.get(passes.len()).copied().unwrap_or(Pass::Frees(0, Scans::OneLess));
                assert_eq!(run.sc.nr_scanned, 0, "each pass counts for itself");
                passes.push(run.sc.clone());
                match pass {
                    Pass::Frees(freed, scans) => {
                        run.sc.nr_reclaimed += freed;
                        run.sc.nr_scanned = run.sc.nr_to_reclaim - u64::from(scans == Scans::OneLess);
                    }
                    Pass::OthersFree(freed) => zones.free(ZoneKind::Normal, 0, freed),
                    Pass::OthersTake => {
                        run.sc.nr_reclaimed += 1;
                        zones.take_all();
                    }
                }
            }
            BalanceNext::Rest { wake } => assert!(!wake, "nobody waits"),
            BalanceNext::Relieve(_) | BalanceNext::Pause(..) => panic!("no step of this run"),
            BalanceNext::Done { .. } => return passes,
        }
    }
}

/// The priorities of the passes of a run.
fn passes(zones: &mut Zones, order: u8, highest_zoneidx: ZoneKind, script: &[Pass]) -> Vec<u8> {
    let mut run = begin(zones, order, highest_zoneidx);
    walk(zones, &mut run, script).iter().map(|sc| sc.priority).collect()
}

fn failures(zones: &Zones) -> u32 {
    zones.mem.reclaim.node(NODE).kswapd_failures
}

#[test]
fn a_pass_is_to_free_the_high_marks_of_all_zones_that_count() {
    use ZoneKind::{Dma, Dma32, Normal};
    let mut zones = Zones::full_of_sizes("linux-6.1", &[(Dma, 256), (Dma32, 16_384), (Normal, 16_384)]);
    let [dma, dma32, normal] = [Dma, Dma32, Normal].map(|kind| zones.mark(kind, Mark::High));
    assert!(dma < 32);
    let target = |zones: &mut Zones, highest| {
        let mut run = begin(zones, 3, highest);
        let first = walk(zones, &mut run, &[])[0].clone();
        assert_eq!((first.reclaim_idx, first.order, first.nr_scanned), (highest, Order(3), 0));
        assert!(first.may_writepage && first.may_shrinkslab && first.may_fs);
        first.nr_to_reclaim
    };
    assert_eq!(target(&mut zones, Dma), 32, "of a tiny zone a chunk");
    assert_eq!(target(&mut zones, Dma32), 32 + dma32);
    assert_eq!(target(&mut zones, Normal), 32 + dma32 + normal);
    zones.mem.core.alloc.boost_for_stall(zones.zone(Normal));
    let boost = zones.mem.core.alloc.zone(zones.zone(Normal)).watermarks.boost().0;
    assert_eq!(target(&mut zones, Normal), 32 + dma32 + normal + boost, "a boost is part of the mark");
}

#[test]
fn the_priority_stays_only_after_a_pass_that_scanned_its_target_and_freed_something() {
    let mut zones = Zones::full("linux-6.1", &[ZoneKind::Normal]);
    let script = [
        Pass::Frees(1, Scans::Enough),
        Pass::Frees(1, Scans::OneLess),
        Pass::Frees(0, Scans::Enough),
        Pass::Frees(1, Scans::Enough),
        Pass::Frees(1, Scans::OneLess), // At 10: only a boost is worked off there and no deeper.
    ];
    let expected = [12, 12, 11, 10, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1];
    assert_eq!(passes(&mut zones, 0, ZoneKind::Normal, &script), expected);
    assert_eq!(failures(&zones), 0);
}

#[test]
fn since_6_12_pages_that_a_pass_freed_from_slabs_count_towards_its_target() {
    for (kernel, measure, second) in
        [("linux-6.1", PassMeasure::Scanned, 11), ("linux-6.12", PassMeasure::ScannedOrFreed, 12)]
    {
        let mut zones = Zones::full(kernel, &[ZoneKind::Normal]);
        assert_eq!(zones.mem.core.rules().pass_measure, measure);
        let target = zones.mark(ZoneKind::Normal, Mark::High);
        let script = [
            Pass::Frees(target, Scans::OneLess),
            Pass::Frees(target - 1, Scans::OneLess),
            Pass::OthersFree(8_000),
        ];
        let priorities = passes(&mut zones, 0, ZoneKind::Normal, &script);
        assert_eq!(priorities, [12, second, second - 1], "{kernel}: the second pass freed a page less");
    }
}

#[test]
fn a_run_ends_when_the_node_is_balanced_whoever_did_it() {
    let mut zones = above_high(0);
    assert_eq!(passes(&mut zones, 0, ZoneKind::Normal, &[]), []);
    let mut zones = Zones::full("linux-6.1", &[ZoneKind::Normal]);
    let high = zones.mark(ZoneKind::Normal, Mark::High);
    assert_eq!(passes(&mut zones, 0, ZoneKind::Normal, &[Pass::OthersFree(high)]).len(), 12);
    assert_eq!(failures(&zones), 1);
    assert_eq!(passes(&mut zones, 0, ZoneKind::Normal, &[Pass::OthersFree(1)]), [12]);
    assert_eq!(failures(&zones), 1, "it freed nothing, but there was no need any more");
    assert_eq!(zones.mem.core.alloc.events.get(VmEvent::PageOutRun), 2);
}

#[test]
fn a_run_for_a_block_goes_on_for_single_pages_once_compaction_has_enough() {
    for (order, freed, passes_after, ends_as) in [(3, 15, 12, 3), (3, 16, 1, 0), (1, 3, 12, 1), (1, 4, 1, 0)]
    {
        let mut zones = above_high(0);
        let mut run = begin(&mut zones, order, ZoneKind::Normal);
        let passes = walk(&mut zones, &mut run, &[Pass::Frees(freed, Scans::OneLess)]);
        assert_eq!(passes.len(), passes_after, "{order}: {freed} pages freed, and single ones are there");
        assert_eq!(run.order(), Order(ends_as));
    }
    // Single pages are missing as well: the passes after it are for them.
    let mut zones = Zones::full("linux-6.1", &[ZoneKind::Normal]);
    let mut run = begin(&mut zones, 3, ZoneKind::Normal);
    let passes = walk(&mut zones, &mut run, &[Pass::Frees(8, Scans::Enough), Pass::Frees(8, Scans::Enough)]);
    let orders: Vec<u8> = passes.iter().take(4).map(|sc| sc.order.0).collect();
    assert_eq!(orders, [3, 3, 0, 0], "what it freed adds up");
    assert_eq!(passes[2].priority, 12, "at the same priority");
}

/// A zone with plenty of free memory and a boost.
fn boosted(kernel: &str) -> (Zones, u64) {
    let mut zones = Zones::full(kernel, &[ZoneKind::Normal]);
    zones.free(ZoneKind::Normal, 0, 8_000);
    zones.mem.core.alloc.boost_for_stall(zones.zone(ZoneKind::Normal));
    let boost = boost_of(&zones);
    assert!(boost > 100 && boost < 7_000);
    (zones, boost)
}

fn boost_of(zones: &Zones) -> u64 {
    zones.mem.core.alloc.zone(zones.zone(ZoneKind::Normal)).watermarks.boost().0
}

#[test]
fn a_boost_costs_as_many_pages_as_it_is_high() {
    let (mut zones, boost) = boosted("linux-6.1");
    let script = [Pass::Frees(boost - 1, Scans::OneLess), Pass::Frees(1, Scans::OneLess)];
    assert_eq!(passes(&mut zones, 0, ZoneKind::Normal, &script), [12, 11]);
    assert_eq!((boost_of(&zones), failures(&zones)), (0, 0));
    let (mut zones, boost) = boosted("linux-6.1");
    let script = [Pass::Frees(boost, Scans::OneLess)];
    assert_eq!(passes(&mut zones, 0, ZoneKind::Normal, &script), [12]);
}

#[test]
fn a_boost_is_worked_off_at_priority_10_but_not_below() {
    let (mut zones, _) = boosted("linux-6.1");
    let script = [Pass::Frees(1, Scans::OneLess); 6];
    assert_eq!(passes(&mut zones, 0, ZoneKind::Normal, &script), [12, 11, 10, 10, 10, 10, 10]);
    assert_eq!(failures(&zones), 0, "the last pass freed nothing, but others did");
}

/// A what-if of MECHANISMS-6X 6.5 (i): passes beyond priority 10 scan more slab, and write.
#[test]
fn without_a_floor_a_boost_is_worked_off_as_hard_as_it_takes() {
    let (mut zones, _) = boosted("linux-6.1+boost-without-floor");
    let mut run = begin(&mut zones, 0, ZoneKind::Normal);
    let passes = walk(&mut zones, &mut run, &[Pass::Frees(1, Scans::OneLess); 6]);
    let how: Vec<_> = passes.iter().map(|sc| (sc.priority, sc.may_writepage)).collect();
    assert_eq!(how, [(12, false), (11, false), (10, false), (9, true), (8, true), (7, true), (6, true)]);
    assert_eq!(failures(&zones), 0, "it ends with a pass that frees nothing, as with a floor");
}

#[test]
fn reclaim_for_the_marks_has_precedence_over_a_boost() {
    let (mut zones, boost) = boosted("linux-5.4-shrink-slab-when-boosted");
    let mut run = begin(&mut zones, 0, ZoneKind::Normal);
    let script = [Pass::Frees(1, Scans::OneLess), Pass::Frees(1, Scans::OneLess), Pass::OthersTake];
    let passes = walk(&mut zones, &mut run, &script);
    let spared: Vec<_> =
        passes.iter().map(|sc| (sc.priority, sc.may_writepage, sc.may_shrinkslab)).take(4).collect();
    let boosting = |priority| (priority, false, false);
    assert_eq!(spared, [boosting(12), boosting(11), boosting(10), (12, true, true)]);
    assert_eq!(passes.len(), 3 + 12, "and goes through all priorities");
    let high = zones.mark(ZoneKind::Normal, Mark::High);
    assert_eq!(passes[14].nr_to_reclaim, high + boost, "the mark stays boosted until the end");
    assert_eq!(boost_of(&zones), 0);
}

#[test]
fn a_run_goes_on_at_the_priority_of_its_boost_if_the_marks_are_missed_once_that_is_worked_off() {
    let (mut zones, boost) = boosted("linux-6.1");
    let script = [Pass::Frees(1, Scans::OneLess), Pass::Frees(boost - 2, Scans::OneLess), Pass::OthersTake];
    let priorities = passes(&mut zones, 0, ZoneKind::Normal, &script);
    assert_eq!(priorities, [12, 11, 10, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1], "the third pass freed the last page");
}

#[test]
fn what_is_boosted_during_a_run_is_left_to_the_next_one() {
    let (mut zones, boost) = boosted("linux-4.20-rc1+nofragment+watermark-boost-v2+fragment-stall");
    let mut run = begin(&mut zones, 0, ZoneKind::Normal);
    zones.mem.core.alloc.boost_for_stall(zones.zone(ZoneKind::Normal));
    let both = boost_of(&zones);
    assert!(both > boost);
    let passes = walk(&mut zones, &mut run, &[Pass::Frees(boost, Scans::OneLess)]);
    assert_eq!((passes.len(), boost_of(&zones)), (1, both - boost));
}

#[test]
fn a_run_tells_the_per_cpu_lists_and_kcompactd_and_remembers_refaults() {
    use ZoneKind::{Dma32, Normal};
    let mut zones = Zones::full("linux-5.5", &[Dma32, Normal]);
    let active = |zones: &Zones| {
        [Dma32, Normal].map(|kind| zones.mem.core.alloc.zone(zones.zone(kind)).watermarks.reclaim_active)
    };
    zones.mem.core.cgroups.add_stat(MemcgId::ROOT, NODE, MemcgStat::WorkingsetActivateFile, 5);
    let mut run = begin(&mut zones, 0, Dma32);
    assert_eq!(active(&zones), [true, false], "zones that it reclaims for keep less on per-CPU lists");
    zones.free(Dma32, 0, 1_000);
    assert_eq!(zones.mem.lru.lruvec(MemcgId::ROOT, NODE).file_refaults(), 0);
    assert_eq!(run.step(&mut zones.mem, false), BalanceNext::Done { boosted: false });
    assert_eq!(active(&zones), [false, false]);
    assert_eq!(zones.mem.lru.lruvec(MemcgId::ROOT, NODE).file_refaults(), 5);
    // A boost of a zone that the run is for makes work for kcompactd, also if it was dropped.
    zones.mem.core.alloc.boost_for_stall(zones.zone(Dma32));
    zones.take_all();
    let mut run = begin(&mut zones, 0, Dma32);
    let end = loop {
        let next = run.step(&mut zones.mem, false);
        if let BalanceNext::Done { .. } = next {
            break next;
        }
    };
    assert_eq!(end, BalanceNext::Done { boosted: true });
}

#[test]
fn a_pass_wakes_those_who_wait_for_the_reserve_once_there_is_enough() {
    let mut zones = Zones::full("linux-6.1", &[ZoneKind::Normal]);
    zones.add_file_page(ZoneKind::Normal);
    let min = zones.mark(ZoneKind::Normal, Mark::Min);
    let mut run = begin(&mut zones, 0, ZoneKind::Normal);
    let mut rest = |zones: &mut Zones, waiters| {
        assert_eq!(run.step(&mut zones.mem, waiters), BalanceNext::Shrink);
        run.step(&mut zones.mem, waiters)
    };
    assert_eq!(rest(&mut zones, true), BalanceNext::Rest { wake: false });
    zones.free(ZoneKind::Normal, 0, min);
    assert_eq!(rest(&mut zones, false), BalanceNext::Rest { wake: false }, "nobody waits");
    assert_eq!(rest(&mut zones, true), BalanceNext::Rest { wake: true });
}

#[test]
fn the_last_posting_of_the_stall_wakes_waiters_after_each_good_pass_of_a_boost() {
    use ZoneKind::{Dma32, Normal};
    let wakes = |posting: &str, boost: bool, scans: Scans| {
        let kernel = format!("linux-5.3+fragment-stall{posting}");
        let mut zones = Zones::full(&kernel, &[Dma32, Normal]);
        // Normal alone counts for the reserve, DMA32 alone for balance: the run has only the boost to do.
        zones.add_file_page(Normal);
        if boost {
            zones.free(Dma32, 0, 8_000);
            zones.mem.core.alloc.boost_for_stall(zones.zone(Normal));
        }
        let mut run = begin(&mut zones, 0, Normal);
        assert_eq!(run.step(&mut zones.mem, true), BalanceNext::Shrink);
        assert_eq!(run.sc.may_writepage, !boost);
        run.sc.nr_scanned = run.sc.nr_to_reclaim - u64::from(scans == Scans::OneLess);
        run.step(&mut zones.mem, true) == BalanceNext::Rest { wake: true }
    };
    assert!(wakes("-v5", true, Scans::Enough));
    assert!(!wakes("-v5", true, Scans::OneLess), "it scanned too little");
    assert!(!wakes("-v5", false, Scans::Enough), "no boost: the reserve decides");
    assert!(!wakes("-v3", true, Scans::Enough), "as it does up to the third posting");
}

// ---- on the way to sleep ----

/// Walks the way to sleep of a kswapd that was asked for the one and reclaimed for the other order.
fn fall_asleep(zones: &mut Zones, [order, reclaim_order]: [u8; 2], woken: bool) -> Vec<SleepNext> {
    let job =
        Job { order: Order(order), reclaim_order: Order(reclaim_order), highest_zoneidx: ZoneKind::Normal };
    let mut fall = FallAsleep::new(NODE, &job, job.order);
    let mut steps = Vec::new();
    while !matches!(steps.last(), Some(SleepNext::Sleep | SleepNext::Stay)) {
        steps.push(fall.step(&mut zones.mem, &mut Request::default(), woken));
    }
    steps
}

#[test]
fn both_tests_before_sleep_are_for_the_order_that_was_reclaimed_for() {
    use SleepNext::{LetWaitersGo, Sleep, Stay};
    let doze = SleepNext::Doze(Nanos::from_millis(100));
    // There is no block of 8 pages, but a run for one freed enough for kcompactd to make it.
    let mut zones = above_high(2);
    assert_eq!(fall_asleep(&mut zones, [3, 0], false), [LetWaitersGo, doze, LetWaitersGo, Sleep]);
    assert_eq!(fall_asleep(&mut zones, [3, 2], false), [LetWaitersGo, doze, LetWaitersGo, Sleep]);
    assert_eq!(zones.mem.core.alloc.events.get(VmEvent::KswapdHighWmarkHitQuickly), 0);
    assert_eq!(fall_asleep(&mut zones, [3, 3], false), [LetWaitersGo, LetWaitersGo, Stay]);
    assert_eq!(zones.mem.core.alloc.events.get(VmEvent::KswapdHighWmarkHitQuickly), 1);
    assert_eq!(zones.mem.core.alloc.events.get(VmEvent::KswapdLowWmarkHitQuickly), 0);
}

/// Compacts the zone; returns the pages that the migration scanner looked at.
fn compact(zones: &mut Zones) -> u64 {
    let cpu = CpuId(0);
    let request = CompactRequest {
        order: Order(3),
        want: MigrateType::Movable,
        highest_zoneidx: ZoneKind::Normal,
        flags: AllocFlags::WMARK_MIN,
        priority: CompactPriority::SyncLight,
        direct: true,
        may_fs: true,
        goal: CompactGoal::Block,
    };
    let before = zones.mem.core.alloc.events.get(VmEvent::CompactMigrateScanned);
    let zone = zones.zone(ZoneKind::Normal);
    let mut run = zones.mem.begin_compact(cpu, zone, request).expect("it makes sense");
    while zones.mem.compact_step(cpu, &mut run).done.is_none() {}
    zones.mem.end_compact(cpu, run);
    zones.mem.core.alloc.events.get(VmEvent::CompactMigrateScanned) - before
}

#[test]
fn pageblocks_that_compaction_skips_are_scanned_again_after_kswapd_dozed() {
    let mut zones = above_high(0);
    let _ = compact(&mut zones); // The first run of a zone ends at once.
    let scanned = compact(&mut zones);
    assert!(scanned > 0 && compact(&mut zones) == 0, "nothing in them can move");
    let steps = fall_asleep(&mut zones, [3, 3], false);
    assert_eq!((steps.last(), compact(&mut zones)), (Some(&SleepNext::Stay), 0), "it did not doze");
    let steps = fall_asleep(&mut zones, [0, 0], false);
    assert_eq!((steps.last(), compact(&mut zones)), (Some(&SleepNext::Sleep), scanned));
}

#[test]
fn what_passes_said_about_writeback_is_forgotten_only_when_kswapd_may_sleep() {
    let mut zones = above_high(0);
    zones.mem.reclaim.note_pass(NODE, &Met::default());
    let _ = fall_asleep(&mut zones, [1, 1], false);
    assert!(zones.mem.reclaim.node(NODE).dirty, "there is no block of two pages: it stays up");
    let _ = fall_asleep(&mut zones, [0, 0], true);
    assert!(!zones.mem.reclaim.node(NODE).dirty, "a doze is enough");
}

#[test]
fn a_kswapd_that_dozed_while_memory_was_taken_goes_back_to_work() {
    let mut zones = above_high(0);
    let mut fall = FallAsleep::new(NODE, &Job { highest_zoneidx: ZoneKind::Normal, ..Job::FIRST }, Order(0));
    assert_eq!(fall.step(&mut zones.mem, &mut Request::default(), false), SleepNext::LetWaitersGo);
    assert_eq!(
        fall.step(&mut zones.mem, &mut Request::default(), false),
        SleepNext::Doze(Nanos::from_millis(100))
    );
    zones.take_all();
    assert_eq!(fall.step(&mut zones.mem, &mut Request::default(), false), SleepNext::LetWaitersGo);
    assert_eq!(fall.step(&mut zones.mem, &mut Request::default(), false), SleepNext::Stay);
    let events = &zones.mem.core.alloc.events;
    let quickly = [VmEvent::KswapdLowWmarkHitQuickly, VmEvent::KswapdHighWmarkHitQuickly];
    assert_eq!(quickly.map(|event| events.get(event)), [0, 1]);
    let sleeps = |zones: &Zones| {
        let sleep = TraceEvent::VmscanKswapdSleep { nid: NODE };
        zones.mem.core.alloc.trace.0.iter().filter(|&&event| event == sleep).count()
    };
    assert_eq!(sleeps(&zones), 0);
    let mut zones = above_high(0);
    let _ = fall_asleep(&mut zones, [0, 0], false);
    assert_eq!(sleeps(&zones), 1);
}

#[test]
fn kswapd_dozes_first_and_sleeps_only_if_nobody_came_or_it_has_given_up() {
    use SleepNext::{LetWaitersGo, Sleep, Stay};
    let doze = SleepNext::Doze(Nanos::from_millis(100));
    let mut zones = above_high(0);
    assert_eq!(fall_asleep(&mut zones, [0, 0], false), [LetWaitersGo, doze, LetWaitersGo, Sleep]);
    assert_eq!(fall_asleep(&mut zones, [0, 0], true), [LetWaitersGo, doze, Stay]);
    let events = &zones.mem.core.alloc.events;
    let quickly = [VmEvent::KswapdLowWmarkHitQuickly, VmEvent::KswapdHighWmarkHitQuickly];
    assert_eq!(quickly.map(|event| events.get(event)), [1, 0]);

    zones.take_all();
    zones.add_file_page(ZoneKind::Normal);
    (0..15).for_each(|_| zones.mem.reclaim.note_failure(NODE));
    assert_eq!(fall_asleep(&mut zones, [0, 0], false), [LetWaitersGo, LetWaitersGo, Stay]);
    assert!(!zones.mem.allow_direct_reclaim(NODE));
    zones.mem.reclaim.note_failure(NODE);
    assert_eq!(fall_asleep(&mut zones, [0, 0], false), [LetWaitersGo, doze, LetWaitersGo, Sleep]);
    assert!(zones.mem.allow_direct_reclaim(NODE), "nobody waits for one who has given up");
}
