//! File pages on FIFO queues: S3-FIFO and SIEVE in place of the two lists, drawn. Lists newest first, `'` =
//! Referenced; S is the inactive list, M the active one.

use crate::world::{CPU, Passed, World};
use insta::assert_snapshot;
use pagetide_mm::MemcgId;
use pagetide_mm::base::vmstat::VmEvent;
use pagetide_mm::lru::lists::LruList;
use pagetide_mm::version::feature::Feature;
use pagetide_mm::version::rules::{LruKind, Rule};

const S3_FIFO: &str = "linux-6.12+file-lru-s3fifo";
const SIEVE: &str = "linux-6.12+file-lru-sieve";

/// Ten pages read once, of which some were read again, `hits` times.
fn ten_pages(kernel: &str, hits: &[(u32, u32)]) -> (World, MemcgId) {
    let mut world = World::boot(kernel, 8);
    let group = world.group("A");
    world.read(group, 0..10);
    for &(page, times) in hits {
        world.read(group, (0..times).map(|_| page));
    }
    world.settle();
    (world, group)
}

/// One chunk of a run of the group's limit.
fn pass(world: &mut World, group: MemcgId) -> Passed {
    let mut sc = world.limit(group);
    sc.priority = 0;
    let passed = world.pass(&mut sc);
    world.settle();
    world.mem.check_at_rest().unwrap();
    passed
}

#[test]
fn the_features_give_the_answers() {
    for (feature, kind) in
        [(Feature::FileLruS3Fifo, LruKind::S3Fifo), (Feature::FileLruSieve, LruKind::Sieve)]
    {
        assert_eq!(feature.on(), Rule::LruKind(kind));
        assert_eq!(feature.first_kernel(), None, "never merged");
    }
}

#[test]
fn hits_move_nothing() {
    for kernel in [S3_FIFO, SIEVE] {
        let (world, group) = ten_pages(kernel, &[(2, 5), (7, 1)]);
        assert_eq!(world.draw(group), "A: active [] inactive [9' 8' 7' 6' 5' 4' 3' 2' 1' 0']", "{kernel}");
        assert_eq!(world.event(VmEvent::PgActivate), 0);
    }
}

#[test]
fn s_lets_go_of_what_was_hit_once_and_gives_m_what_was_hit_twice() {
    let (mut world, group) = ten_pages(S3_FIFO, &[(2, 2), (3, 1), (8, 3)]);
    assert_eq!(pass(&mut world, group), Passed { scanned: 10, reclaimed: 8, deactivated: 0 });
    assert_snapshot!(world.draw(group), @"A: active [8' 2'] inactive []");
}

#[test]
fn m_gives_another_round_for_each_hit() {
    let (mut world, group) = ten_pages(S3_FIFO, &[(2, 2), (8, 3)]);
    pass(&mut world, group);
    world.read(group, [2]);
    assert_eq!(pass(&mut world, group).reclaimed, 1);
    assert_snapshot!(world.draw(group), @"A: active [2'] inactive []");
    assert_eq!(pass(&mut world, group).reclaimed, 1, "its hit is used up");
}

#[test]
fn victims_come_from_s_while_it_has_a_tenth() {
    let mut world = World::boot(S3_FIFO, 8);
    let group = world.group("A");
    for _ in 0..3 {
        world.read(group, 0..200);
    }
    world.settle();
    let mut sc = world.limit(group);
    (sc.priority, sc.nr_to_reclaim) = (0, 1000);
    let _ = world.pass(&mut sc);
    world.read(group, 1000..1100);
    world.settle();
    let before = world.sizes(group);
    pass(&mut world, group);
    assert_eq!(world.sizes(group), (before.0, before.1 - 32), "M is untouched");
}

#[test]
fn who_failed_on_trial_and_is_back_in_time_goes_to_m() {
    let (mut world, group) = ten_pages(S3_FIFO, &[]);
    pass(&mut world, group);
    world.read(group, 20..40);
    world.read(group, [9]);
    world.settle();
    let counted = |world: &World| {
        [VmEvent::WorkingsetRefaultFile, VmEvent::WorkingsetActivateFile].map(|event| world.event(event))
    };
    assert_eq!(counted(&world), [1, 1]);
    assert_eq!(world.indices(group, LruList::ActiveFile), [9]);
    // SIEVE remembers nobody; the refault is counted all the same.
    let (mut world, group) = ten_pages(SIEVE, &[]);
    pass(&mut world, group);
    world.read(group, [9]);
    world.settle();
    assert_eq!((counted(&world), world.sizes(group)), ([1, 0], (0, 1)));
}

/// The hand goes from old to new, and what it spares stays where it was.
#[test]
fn the_hand_takes_what_was_not_hit_and_moves_nothing() {
    let mut world = World::boot(SIEVE, 8);
    let group = world.group("A");
    world.read(group, 0..40);
    world.read(group, [1, 3, 36]);
    world.settle();
    assert_eq!(pass(&mut world, group), Passed { scanned: 32, reclaimed: 30, deactivated: 0 });
    assert_snapshot!(world.draw(group), @"A: active [] inactive [39' 38' 37' 36' 35' 34' 33' 32' 3' 1']");
    // New pages come to the head; the hand goes on at 32 and takes them before it comes back to 1 and 3.
    world.read(group, 50..70);
    world.settle();
    assert_eq!(pass(&mut world, group), Passed { scanned: 28, reclaimed: 27, deactivated: 0 });
    assert_snapshot!(world.draw(group), @"A: active [] inactive [36' 3' 1']");
    assert_eq!(pass(&mut world, group).reclaimed, 3, "nobody hit them in the meantime");
}

#[test]
fn the_hand_steps_off_a_page_that_goes() {
    let mut world = World::boot(SIEVE, 8);
    let group = world.group("A");
    world.read(group, 0..40);
    world.settle();
    pass(&mut world, group);
    let file = world.file;
    world.mem.mapping_remove(CPU, file);
    world.mem.check_at_rest().unwrap();
    world.mem.core.cgroups.flush_periodic();
}
