//! Objects of our own on a small machine, that of the tests of `mm`: what they may do, and what ends them.
//!
//! Their sources and `make.sh`, which compiles them, are in `tests/objects`.

extern crate mm as pagetide_mm;

mod broken;
mod trials;
#[path = "../../../mm/tests/mm/world/mod.rs"]
mod world;

use mm::lru::cache_ext::hooks::EvictionPolicy;
use pagetide_bpf::Object;
use units::Seed;
use world::World;
use world::policy::{boot, pass};

const FIFO: &[u8] = include_bytes!("../objects/fifo.bpf.o");
const TRIAL: &[u8] = include_bytes!("../objects/trial.bpf.o");

/// Instructions of a hook: enough for these policies, and soon over.
const INSTRUCTIONS: u64 = 100_000;

/// The policy that does the thing of this number.
fn trial(what: u64) -> Box<dyn EvictionPolicy> {
    let mut object = Object::read(TRIAL).expect("an object");
    object.set("what", what).expect("a variable of the policy");
    object.check().expect("nothing is missing");
    object.policy_within(Seed(1), INSTRUCTIONS)
}

/// Which of these pages are no longer in memory.
fn gone(world: &World, pages: std::ops::Range<u32>) -> Vec<u32> {
    pages.filter(|&page| world.page(page).is_none()).collect()
}
