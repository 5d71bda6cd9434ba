//! What each policy keeps of a few pages, drawn.

use crate::world::World;
use crate::{boot, pass, resident};

fn with(feature: &str) -> World {
    boot((pagetide_cache_ext::PolicyInfo::of_feature(feature).expect("a policy").make)())
}

/// A hot set that was read three times, then pages that are read once, reclaimed as they come.
fn scanned(feature: &str) -> (u32, World) {
    let mut world = with(feature);
    let group = world.group("A");
    for _ in 0..3 {
        world.read(group, 0..100);
    }
    for from in (1000..3000).step_by(100) {
        world.read(group, from..from + 100);
        while world.sizes(group).0 + world.sizes(group).1 > 300 {
            assert!(pass(&mut world, group) > 0);
        }
        // The hot set is read on, where it still is.
        world.read(group, resident(&world, 0..100));
    }
    (resident(&world, 0..100).len() as u32, world)
}

#[test]
fn who_counts_accesses_keeps_a_hot_set_beside_a_scan() {
    for (feature, least, most) in [
        ("cache-ext-fifo", 0, 0),
        ("cache-ext-lru", 100, 100),
        ("cache-ext-lfu", 100, 100),
        ("cache-ext-s3fifo", 100, 100),
        ("cache-ext-lhd", 90, 100),
    ] {
        let (kept, _) = scanned(feature);
        assert!((least..=most).contains(&kept), "{feature}: {kept}");
    }
}

#[test]
fn mru_keeps_what_was_read_first() {
    let mut world = with("cache-ext-mru");
    let group = world.group("A");
    world.read(group, 0..600);
    world.settle();
    assert_eq!(pass(&mut world, group), 32, "a chunk of the inactive list's quota; no page is active");
    let left = resident(&world, 0..600);
    let gone: Vec<u32> = (0..600).filter(|page| !left.contains(page)).collect();
    assert_eq!(gone, (368..400).collect::<Vec<_>>(), "the 200 read last are left alone");
}

/// A page that went from the small list and is back soon is main.
#[test]
fn s3fifo_remembers_who_failed() {
    let mut world = with("cache-ext-s3fifo");
    let group = world.group("A");
    world.read(group, 0..200);
    world.settle();
    assert_eq!(pass(&mut world, group), 32);
    assert_eq!(resident(&world, 0..200), (32..200).collect::<Vec<_>>());
    world.read(group, 0..10);
    world.settle();
    // All others go before those that are back: each of them has an access and is main.
    for _ in 0..5 {
        pass(&mut world, group);
    }
    let left = resident(&world, 0..200);
    assert!((0..10).all(|page| left.contains(&page)), "{left:?}");
    assert!(left.len() < 30, "{left:?}");
}
