//! Policies for file pages on a small machine, that of the tests of `mm`: against naive ones, and such as misbehave.

extern crate mm as pagetide_mm;

mod misbehaving;
mod naive;
mod scenes;
#[path = "../../../mm/tests/mm/world/mod.rs"]
mod world;

use mm::MemcgId;
use mm::lru::cache_ext::hooks::EvictionPolicy;
use world::World;

/// A machine of 16 MiB whose file pages go by a policy.
fn boot(policy: Box<dyn EvictionPolicy>) -> World {
    let mut world = World::boot("linux-6.12", 16);
    world.mem.attach_policy(policy);
    world
}

/// A pass of the group's limit that may look at all of its pages; how many came free.
fn pass(world: &mut World, group: MemcgId) -> u64 {
    world.settle();
    let mut sc = world.limit(group);
    (sc.priority, sc.nr_to_reclaim) = (0, 1);
    let passed = world.pass(&mut sc);
    world.settle();
    world.mem.check_at_rest().expect("memory is sound");
    passed.reclaimed
}

/// Which of these pages are in memory.
fn resident(world: &World, pages: std::ops::Range<u32>) -> Vec<u32> {
    pages.filter(|&page| world.page(page).is_some()).collect()
}
