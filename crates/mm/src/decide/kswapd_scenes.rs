//! Scenes of kswapd: zones of which so many blocks are free, and what it does then.

use std_alloc::vec::Vec;

use units::{NodeId, Order};

use crate::alloc::watermark::Mark;
use crate::base::layout::ZoneKind;
use crate::base::vmstat::VmEvent;
use crate::decide::balance::{FallAsleep, SleepNext};
use crate::decide::kswapd::Job;
use crate::decide::scene::Zones;

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
    use SleepNext::{Doze, LetWaitersGo, Sleep, Stay};
    // There is no block of 8 pages, but a run for one freed enough for kcompactd to make it.
    let mut zones = above_high(2);
    assert_eq!(fall_asleep(&mut zones, [3, 0], false), [LetWaitersGo, Doze, LetWaitersGo, Sleep]);
    assert_eq!(fall_asleep(&mut zones, [3, 2], false), [LetWaitersGo, Doze, LetWaitersGo, Sleep]);
    assert_eq!(zones.mem.core.alloc.events.get(VmEvent::KswapdHighWmarkHitQuickly), 0);
    assert_eq!(fall_asleep(&mut zones, [3, 3], false), [LetWaitersGo, LetWaitersGo, Stay]);
    assert_eq!(zones.mem.core.alloc.events.get(VmEvent::KswapdHighWmarkHitQuickly), 1);
    assert_eq!(zones.mem.core.alloc.events.get(VmEvent::KswapdLowWmarkHitQuickly), 0);
}
