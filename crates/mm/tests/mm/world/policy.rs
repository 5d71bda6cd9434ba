//! A machine whose file pages go by a policy, and a pass that asks it.

use super::World;
use super::mm::MemcgId;
use super::mm::lru::cache_ext::hooks::EvictionPolicy;

/// A machine of 16 MiB whose file pages go by a policy.
pub fn boot(policy: Box<dyn EvictionPolicy>) -> World {
    let mut world = World::boot("linux-6.12", 16);
    world.mem.attach_policy(policy);
    world
}

/// A pass of the group's limit that may look at all of its pages; how many came free.
pub fn pass(world: &mut World, group: MemcgId) -> u64 {
    world.settle();
    let mut sc = world.limit(group);
    (sc.priority, sc.nr_to_reclaim) = (0, 1);
    let passed = world.pass(&mut sc);
    world.settle();
    world.mem.check_at_rest().expect("memory is sound");
    passed.reclaimed
}
