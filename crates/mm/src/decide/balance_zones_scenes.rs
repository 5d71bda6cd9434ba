//! Scripts that walk runs of kswapd by [`super::balance_zones`], and its way to sleep in 2.6.32.

use std_alloc::string::String;
use std_alloc::vec::Vec;

use units::{NodeId, Order};

use super::backoff::Site;
use super::balance::BalanceNext;
use super::balance_zones::{Run, ZoneBalance};
use super::kswapd::{FallAsleep, Job, Request, SleepNext};
use super::scene::Zones;
use crate::alloc::watermark::Mark;
use crate::base::layout::ZoneKind::{self, Dma32, Normal};
use crate::base::vmstat::VmEvent;
use crate::version::rules::{DirectPause, KswapdDone, KswapdSleep, ReserveThrottle};

const NODE: NodeId = NodeId(0);
const KERNEL: &str = "linux-2.6.32";

/// What a pass does.
#[derive(Clone, Copy)]
struct Pass {
    scanned: u64,
    freed: u64,
}

/// Walks a run by a script: the pass with this number over a zone of this kind. Returns each pass and pause,
/// and how the run ended: priority and letter of the zone, `|` for a pause.
fn walk(zones: &mut Zones, order: u8, mut pass: impl FnMut(&mut Zones, usize) -> Pass) -> (String, Order) {
    let mut run = ZoneBalance::begin(&mut zones.mem, NODE, Order(order));
    let (mut steps, mut passes) = (Vec::new(), 0);
    loop {
        assert!(passes < 200, "{steps:?}");
        match run.step(&mut zones.mem, false) {
            BalanceNext::Shrink => {
                let letter = if run.sc.reclaim_idx == Normal { 'N' } else { 'D' };
                steps.push(std_alloc::format!("{}{letter}", run.sc.priority));
                let Pass { scanned, freed } = pass(zones, passes);
                run.sc.nr_scanned += scanned;
                run.sc.nr_reclaimed += freed;
                zones.mem.note_scanned(NODE, run.sc.reclaim_idx, scanned);
                passes += 1;
            }
            BalanceNext::Pause(Site::Kswapd, _) => steps.push(String::from("|")),
            BalanceNext::Pause(site, _) => panic!("a pause of {site:?}"),
            BalanceNext::Rest { .. } | BalanceNext::Relieve(_) => {}
            BalanceNext::Done { .. } => return (steps.join(" "), run.order()),
        }
    }
}

fn above_high(kinds: &[ZoneKind]) -> Zones {
    let mut zones = Zones::full(KERNEL, &[Dma32, Normal]);
    for &kind in kinds {
        let high = zones.mark(kind, Mark::High);
        zones.free(kind, 0, high + 600); // More than the lower zone keeps from users of the higher one.
    }
    zones
}

const NOTHING: Pass = Pass { scanned: 0, freed: 0 };

#[test]
fn a_run_ends_when_every_zone_is_above_its_high_mark_and_not_when_some_zone_is() {
    let mut zones = above_high(&[Dma32, Normal]);
    assert_eq!(zones.mem.core.rules().kswapd_done, KswapdDone::EveryZone);
    assert_eq!(walk(&mut zones, 0, |_, _| NOTHING).0, "");
    let mut zones = above_high(&[Dma32]);
    zones.add_file_page(Normal);
    let (steps, _) = walk(&mut zones, 0, |zones, pass| {
        if pass == 1 {
            let high = zones.mark(Normal, Mark::High);
            zones.free(Normal, 0, high + 1);
        }
        Pass { scanned: 1, freed: 1 }
    });
    assert_eq!(steps, "12D 12N");
}

#[test]
fn zones_above_the_last_one_that_is_short_are_left_alone() {
    let mut zones = above_high(&[Normal]);
    zones.add_file_page(Dma32);
    let (steps, _) = walk(&mut zones, 0, |zones, _| {
        let high = zones.mark(Dma32, Mark::High);
        zones.free(Dma32, 0, high + 1);
        Pass { scanned: 1, freed: 1 }
    });
    assert_eq!(steps, "12D", "and the lower one alone decides");
}

#[test]
fn a_zone_with_eight_times_its_high_mark_is_not_scanned_for_others() {
    for (times, steps) in [(7, "12D 12N"), (9, "12N")] {
        let mut zones = Zones::full(KERNEL, &[Dma32, Normal]);
        let high = zones.mark(Dma32, Mark::High);
        zones.free(Dma32, 0, times * high);
        zones.add_file_page(Normal);
        let (walked, _) = walk(&mut zones, 0, |zones, _| {
            if zones.mem.core.alloc.zone(zones.zone(Normal)).free_pages().0 == 0 {
                let high = zones.mark(Normal, Mark::High);
                zones.free(Normal, 0, high + 1);
            }
            Pass { scanned: 1, freed: 1 }
        });
        assert!(walked.starts_with(steps), "{times}: {walked}");
    }
}

#[test]
fn below_priority_10_kswapd_pauses_and_with_32_pages_it_starts_over() {
    let mut zones = Zones::full(KERNEL, &[Normal]);
    zones.add_file_page(Normal);
    let (steps, order) = walk(&mut zones, 0, |zones, pass| match pass {
        0..4 => Pass { scanned: 1, freed: 1 },
        4 => Pass { scanned: 32, freed: 28 },
        _ => {
            let high = zones.mark(Normal, Mark::High);
            zones.free(Normal, 0, high + 1);
            Pass { scanned: 1, freed: 1 }
        }
    });
    assert_eq!(steps, "12N 11N 10N 9N | 8N | 12N", "32 pages in all: from the start");
    assert_eq!(order, Order(0));
}

#[test]
fn a_pass_that_looked_at_nothing_is_no_reason_to_pause() {
    let mut zones = Zones::full(KERNEL, &[Normal]);
    zones.add_file_page(Normal);
    let (steps, _) = walk(&mut zones, 0, |zones, pass| {
        if pass == 5 {
            let high = zones.mark(Normal, Mark::High);
            zones.free(Normal, 0, high + 1);
        }
        NOTHING
    });
    assert_eq!(steps, "12N 11N 10N 9N 8N 7N");
}

#[test]
fn an_exhausted_zone_is_looked_at_once_a_run_until_a_page_of_it_is_freed() {
    let mut zones = Zones::full(KERNEL, &[Normal]);
    zones.add_file_page(Normal);
    // One page can be reclaimed: six looks at it are enough.
    let look = |_: &mut Zones, _: usize| Pass { scanned: 1, freed: 0 };
    assert_eq!(walk(&mut zones, 0, look).0, "12N 11N 10N 9N | 8N | 7N |");
    assert!(zones.mem.is_hopeless(NODE), "there is nothing to be had");
    assert_eq!(walk(&mut zones, 0, look).0, "12N");
    zones.free(Normal, 0, 1);
    assert!(!zones.mem.is_hopeless(NODE));
    assert!(walk(&mut zones, 0, look).0.starts_with("12N 11N 10N"));
}

#[test]
fn an_exhausted_zone_does_not_keep_kswapd_from_being_done() {
    let mut zones = above_high(&[Dma32]);
    let steps = walk(&mut zones, 0, |_, _| NOTHING).0;
    assert_eq!(steps, "12D 12N", "nothing to be reclaimed is exhausted at the first look");
}

#[test]
fn a_block_is_given_up_after_a_round_of_next_to_nothing() {
    let mut zones = above_high(&[Dma32, Normal]); // By single pages: there is no block.
    let (steps, order) = walk(&mut zones, 3, |_, _| Pass { scanned: 0, freed: 1 });
    assert_eq!(steps.split(' ').count(), 26, "{steps}");
    assert_eq!(order, Order(0));
    let (_, order) = walk(&mut zones, 3, |zones, pass| {
        if pass == 40 {
            zones.free(Normal, 3, 200);
            zones.free(Dma32, 3, 200);
        }
        Pass { scanned: 0, freed: 2 }
    });
    assert_eq!(order, Order(3), "52 pages are enough to go on");
}

#[test]
fn since_2_6_33_there_is_no_pause_while_a_zone_is_below_its_min_mark() {
    let pauses = |kernel: &str, free: bool| {
        let mut zones = Zones::full(kernel, &[Normal]);
        zones.add_file_page(Normal);
        if free {
            let min = zones.mark(Normal, Mark::Min);
            zones.free(Normal, 0, min + 1);
        }
        let (steps, _) = walk(&mut zones, 0, |_, _| Pass { scanned: 1, freed: 0 });
        (steps.contains('|'), zones.mem.core.alloc.events.get(VmEvent::KswapdSkipCongestionWait))
    };
    assert_eq!(pauses(KERNEL, false), (true, 0));
    for kernel in ["linux-2.6.32+pressure-wait", "linux-2.6.32+wait-iff-congested"] {
        assert_eq!(pauses(kernel, false), (false, 3), "{kernel}");
        assert_eq!(pauses(kernel, true), (true, 0), "{kernel}");
    }
}

#[test]
fn every_zone_that_was_looked_at_may_relieve_its_waiters() {
    let mut zones = Zones::full(KERNEL, &[Dma32, Normal]);
    let high = zones.mark(Dma32, Mark::High);
    zones.free(Dma32, 0, 9 * high);
    zones.add_file_page(Normal);
    let mut run = ZoneBalance::begin(&mut zones.mem, NODE, Order(0));
    let (dma32, normal) = (zones.zone(Dma32), zones.zone(Normal));
    let steps: Vec<BalanceNext> = (0..4).map(|_| run.step(&mut zones.mem, false)).collect();
    let rest = BalanceNext::Rest { wake: false };
    let expected = [BalanceNext::Relieve(dma32), BalanceNext::Shrink, BalanceNext::Relieve(normal), rest];
    assert_eq!(steps, expected, "also the one that was not scanned");
}

#[test]
fn kswapd_is_woken_as_soon_as_a_zone_is_below_its_low_mark() {
    let mut zones = Zones::full(KERNEL, &[Dma32, Normal]);
    for kind in [Dma32, Normal] {
        let low = zones.mark(kind, Mark::Low);
        zones.free(kind, 0, low + 1);
    }
    assert!(!zones.mem.has_work_for_kswapd(NODE, Order(0), Normal), "below the high mark is no reason");
    assert!(zones.mem.has_work_for_kswapd(NODE, Order(1), Normal), "but a block is");
    let mut zones = above_high(&[Normal]);
    assert!(zones.mem.has_work_for_kswapd(NODE, Order(0), Normal));
    let high = zones.mark(Dma32, Mark::High);
    zones.free(Dma32, 0, high);
    assert!(!zones.mem.has_work_for_kswapd(NODE, Order(0), Normal));
}

#[test]
fn kswapd_sleeps_at_once_unless_a_larger_block_is_asked_for() {
    let mut zones = Zones::full(KERNEL, &[Normal]);
    assert_eq!(zones.mem.core.rules().kswapd_sleep, KswapdSleep::AtOnce);
    for (asked, end) in [(0, SleepNext::Sleep), (2, SleepNext::Sleep), (3, SleepNext::Stay)] {
        let mut request = Request::default();
        request.add(Order(asked), Normal);
        let mut fall = FallAsleep::new(NODE, &Job::FIRST, Order(2));
        let steps = [(); 2].map(|()| fall.step(&mut zones.mem, &mut request, false));
        assert_eq!(steps, [SleepNext::LetWaitersGo, end], "order {asked}, though no page is free");
        let mut job = Job::FIRST;
        job.take(&mut request);
        let left = if end == SleepNext::Stay { Order(3) } else { Order(0) };
        assert_eq!(job.order, left, "what a run was for is asked for no more");
    }
    assert_ne!(zones_of("linux-5.4").core.rules().kswapd_sleep, KswapdSleep::AtOnce);
}

fn zones_of(kernel: &str) -> crate::memory::Memory<crate::base::event::KeepTrace> {
    Zones::full(kernel, &[Normal]).mem
}

#[test]
fn each_kernel_runs_by_its_own_rule() {
    for (kernel, done) in [(KERNEL, KswapdDone::EveryZone), ("linux-4.19", KswapdDone::SomeZone)] {
        let mut mem = zones_of(kernel);
        assert_eq!(mem.core.rules().kswapd_done, done);
        let run = Run::begin(&mut mem, NODE, Order(0), Normal);
        assert_eq!(matches!(run, Run::EveryZone(_)), done == KswapdDone::EveryZone);
    }
    let rules = [zones_of(KERNEL), zones_of("linux-4.19")];
    let rules = rules.iter().map(|mem| (mem.core.rules().reserve_throttle, mem.core.rules().direct_pause));
    let expected = [(ReserveThrottle::Off, DirectPause::Paused), (ReserveThrottle::Waits, DirectPause::None)];
    assert!(rules.eq(expected));
}
