//! Scenes of those who are too fast: zones of which so much is free, or dirty, and who waits then.

use units::{Nanos, NodeId, Pages};

use crate::alloc::watermark::Mark;
use crate::base::gfp::Gfp;
use crate::base::layout::ZoneKind;
use crate::base::vmstat::VmEvent;
use crate::decide::scene::Zones;
use crate::decide::throttle::{AfterNode, AfterPass, ReserveNext, ReserveWait};
use crate::reclaim::run::{Met, ScanControl};

const NODE: NodeId = NodeId(0);

/// Three zones of which those in `with_files` have a page to reclaim.
fn reserve(with_files: &[ZoneKind]) -> Zones {
    let mut zones = Zones::full("linux-6.1", &[ZoneKind::Dma32, ZoneKind::Normal, ZoneKind::Movable]);
    with_files.iter().for_each(|&kind| _ = zones.add_file_page(kind));
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

/// Whether a run near its end without a page, and one beside a kswapd that is stuck under writeback,
/// wait where each of three zones has a page of a file, of which `dirty` are so.
fn wait_with(dirty: usize) -> [bool; 2] {
    use ZoneKind::{Dma32, Movable, Normal};
    let mut zones = reserve(&[]);
    for (at, kind) in [Dma32, Normal, Movable].into_iter().enumerate() {
        let pfn = zones.add_file_page(kind);
        assert!(at >= dirty || zones.mem.set_dirty(pfn));
    }
    let stuck = Met { taken: 8, file_taken: 8, dirty: 8, congested: 8, ..Met::default() };
    zones.mem.reclaim.note_pass(NODE, &stuck);
    let sc = ScanControl { priority: 1, nr_scanned: 800, ..ScanControl::direct(ZoneKind::Movable) };
    [
        zones.mem.after_node(NODE, &sc) == AfterNode::Wait,
        zones.mem.after_pass(NODE, &sc, 0) == AfterPass::CongestionTick,
    ]
}

#[test]
fn a_run_waits_for_others_only_if_more_than_half_of_what_it_could_free_is_dirty() {
    assert_eq!([0, 1, 2, 3].map(wait_with), [[false; 2], [false; 2], [true; 2], [true; 2]]);
}

#[test]
fn half_of_the_pages_is_not_most_of_them() {
    let mut zones = reserve(&[ZoneKind::Normal]);
    let pfn = zones.add_file_page(ZoneKind::Dma32);
    assert!(zones.mem.set_dirty(pfn));
    assert!(!zones.mem.is_mostly_dirty(NODE), "one of two");
}
