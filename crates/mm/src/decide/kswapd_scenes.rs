//! Scenes of kswapd: zones of which so many blocks are free, and what it does then.

use std_alloc::vec::Vec;

use units::{Nanos, NodeId, Order, Pages};

use crate::alloc::watermark::Mark;
use crate::base::gfp::Gfp;
use crate::base::layout::ZoneKind;
use crate::base::vmstat::VmEvent;
use crate::decide::balance::{FallAsleep, SleepNext};
use crate::decide::kswapd::Job;
use crate::decide::scene::Zones;
use crate::decide::throttle::{ReserveNext, ReserveWait};

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

/// Walks the way to sleep of a kswapd that was asked for the one and reclaimed for the other order.
fn fall_asleep(zones: &mut Zones, [order, reclaim_order]: [u8; 2], woken: bool) -> Vec<SleepNext> {
    let job = Job { order: Order(order), reclaim_order: Order(reclaim_order), class: ZoneKind::Normal };
    let mut fall = FallAsleep::new(NODE, &job);
    let mut steps = Vec::new();
    while !matches!(steps.last(), Some(SleepNext::Sleep | SleepNext::Stay)) {
        steps.push(fall.step(&mut zones.mem, woken));
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

/// Three zones of which those in `with_files` have a page to reclaim.
fn reserve(with_files: &[ZoneKind]) -> Zones {
    let mut zones = Zones::full("linux-6.1", &[ZoneKind::Dma32, ZoneKind::Normal, ZoneKind::Movable]);
    with_files.iter().for_each(|&kind| zones.add_file_page(kind));
    zones
}

#[test]
fn direct_reclaim_goes_on_while_more_than_half_of_the_min_marks_is_free() {
    use ZoneKind::{Dma32, Movable, Normal};
    let mut zones = reserve(&[Dma32, Normal, Movable]);
    let half = (zones.mark(Dma32, Mark::Min) + zones.mark(Normal, Mark::Min)) / 2;
    zones.free(Movable, 0, half + 1);
    assert!(!zones.mem.allow_direct_reclaim(NODE), "zones above Normal do not count");
    zones.free(Normal, 0, half - 1);
    zones.free(Dma32, 0, 1);
    assert!(!zones.mem.allow_direct_reclaim(NODE), "a half is not more than a half");
    zones.free(Dma32, 0, 1);
    assert!(zones.mem.allow_direct_reclaim(NODE));
    // A boost is part of the marks.
    zones.mem.core.alloc.boost_for_stall(zones.zone(Normal));
    let boost = zones.mem.core.alloc.zone(zones.zone(Normal)).watermarks.boost();
    assert!(boost > Pages(1) && !zones.mem.allow_direct_reclaim(NODE));
    zones.free(Normal, 0, boost.0 / 2);
    assert!(zones.mem.allow_direct_reclaim(NODE));
}

#[test]
fn zones_without_a_page_to_reclaim_are_no_reason_to_wait() {
    use ZoneKind::{Dma32, Normal};
    assert!(reserve(&[]).mem.allow_direct_reclaim(NODE), "waiting helps nobody here");
    let mut zones = reserve(&[Normal]);
    let half = zones.mark(Normal, Mark::Min) / 2;
    zones.free(Dma32, 0, half + 1);
    zones.free(Normal, 0, half);
    assert!(!zones.mem.allow_direct_reclaim(NODE), "nor do their free pages count");
    zones.free(Normal, 0, 1);
    assert!(zones.mem.allow_direct_reclaim(NODE), "nor their marks");
}

#[test]
fn direct_reclaim_waits_for_kswapd_until_that_has_failed_16_times() {
    let mut zones = reserve(&[ZoneKind::Normal]);
    let mut wait = ReserveWait::new(NODE, Gfp::KERNEL, false);
    for failures in 0..16 {
        let now = Nanos::from_secs(failures);
        assert_eq!(wait.step(&mut zones.mem, now, false), ReserveNext::Wait(None), "{failures}");
        zones.mem.reclaim.note_failure(NODE);
    }
    assert_eq!(wait.step(&mut zones.mem, Nanos::from_secs(16), false), ReserveNext::GoOn);
    assert_eq!(zones.mem.core.alloc.events.get(VmEvent::PgScanDirectThrottle), 1, "once for each task");
}

#[test]
fn kernel_threads_and_killed_tasks_do_not_wait_for_the_reserve() {
    let mut zones = reserve(&[ZoneKind::Normal]);
    let mut step = |kernel_thread, dying| {
        ReserveWait::new(NODE, Gfp::KERNEL, kernel_thread).step(&mut zones.mem, Nanos::ZERO, dying)
    };
    assert_eq!([step(true, false), step(false, true)], [ReserveNext::GoOn; 2]);
    assert_eq!(zones.mem.core.alloc.events.get(VmEvent::PgScanDirectThrottle), 0);
}

#[test]
fn without_fs_a_task_waits_for_the_reserve_one_second_in_all() {
    let mut zones = reserve(&[ZoneKind::Normal]);
    let mut wait = ReserveWait::new(NODE, Gfp::NOFS, false);
    let mut at = |millis: u64| wait.step(&mut zones.mem, Nanos::from_millis(5_000 + millis), false);
    let waits = |millis| ReserveNext::Wait(Some(Nanos::from_millis(millis)));
    assert_eq!([at(0), at(300), at(999)], [waits(1000), waits(700), waits(1)]);
    assert_eq!(at(1000), ReserveNext::GoOn);
}
