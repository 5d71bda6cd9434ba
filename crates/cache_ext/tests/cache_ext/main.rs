//! Policies for file pages on a small machine, that of the tests of `mm`: against naive ones, and such as misbehave.

extern crate mm as pagetide_mm;

mod misbehaving;
mod naive;
mod scenes;
#[path = "../../../mm/tests/mm/world/mod.rs"]
mod world;

use world::World;
use world::policy::{boot, pass};

/// Which of these pages are in memory.
fn resident(world: &World, pages: std::ops::Range<u32>) -> Vec<u32> {
    pages.filter(|&page| world.page(page).is_some()).collect()
}
