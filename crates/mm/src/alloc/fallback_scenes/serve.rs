//! What compaction works for: a free block that serves a request without mixing types for good
//! (MECHANISMS 12.1, `compact_finished`). Drawn as in [`super`].

use super::*;
use crate::alloc::fallback::can_serve;

const FULL: &str = "M ################";

/// Orders at which a free block serves a request for `want`.
fn serves(drawing: &str, want: MigrateType) -> Vec<u8> {
    let memory = scene("linux-6.1", [drawing, FULL, FULL, FULL]);
    (0..=10).filter(|&order| can_serve(&memory.zones[0].free_area, Order(order), want)).collect()
}

#[test]
fn a_block_of_the_own_type_serves_at_its_order() {
    assert_eq!(serves("M mm#m##2#########", Movable), [0, 5, 6]);
    assert_eq!(serves("U uu#u##1#########", Unmovable), [0, 5, 6]);
    assert_eq!(serves(FULL, Movable), [0; 0]);
}

#[test]
fn a_block_of_another_type_serves_who_may_claim_its_pageblock() {
    // Kernel types always may; a movable request from order 4 on.
    assert_eq!(serves("M mm#m##2#########", Unmovable), [0, 5, 6]);
    assert_eq!(serves("M mm#m##2#########", Reclaimable), [0, 5, 6]);
    assert_eq!(serves("U uu#u##1#########", Movable), [5, 6], "a single page of the kernel's does not");
    assert_eq!(serves("R rr#r##3#########", Movable), [5, 6]);
}

#[test]
fn a_movable_request_may_claim_from_order_4_on() {
    for (order, expected) in [(3, &[][..]), (4, &[4])] {
        let mut memory = scene("linux-6.1", [FULL, FULL, FULL, FULL]);
        memory.zones[0].free_area.push(&mut memory.frames, Pfn(0), Order(order), Unmovable, End::Tail);
        let served = |at: &u8| can_serve(&memory.zones[0].free_area, Order(*at), Movable);
        assert_eq!((0..=10).filter(served).collect::<Vec<u8>>(), expected, "order {order}");
    }
}

#[test]
fn the_atomic_reserve_serves_nobody_else() {
    for want in [Unmovable, Movable, Reclaimable] {
        assert_eq!(serves("H hhhh############", want), [0; 0]);
    }
}
