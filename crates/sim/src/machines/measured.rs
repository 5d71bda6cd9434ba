//! What the rules of both guests share: the nearest kernel that was measured, and the tables that every boot makes.
//!
//! Next: `guest.rs` and `uml.rs`, which have the figures.

use mm::version::presets::Version;
use units::PAGE_SIZE;

/// A kernel of which guests were measured.
pub(super) trait Measured {
    /// Its name as a preset.
    fn name(&self) -> &'static str;
}

/// Of `measured` the kernel `base` itself, or the nearest of those that are modelled: in their order, not in time.
pub(super) fn nearest<'a, M: Measured>(measured: &'a [M], base: &str) -> &'a M {
    let place = |name: &str| Version::presets().position(|(preset, _)| preset == name);
    let wanted = place(base).expect("a kernel starts from one that is modelled");
    let distance = |measured: &&M| place(measured.name()).map(|place| place.abs_diff(wanted));
    measured.iter().min_by_key(distance).expect("guests were measured")
}

/// What stands for the boot of a kernel of which no guest was measured.
pub(super) fn assumed<M: Measured>(all: &[M], kernel: &Version) -> Option<String> {
    let (measured, base) = (nearest(all, kernel.base).name(), kernel.base);
    (measured != base).then(|| {
        format!("assumed: {base} boots as a guest of {measured} does; no guest of {base} was measured")
    })
}

/// Pages of the tables of dentries and inodes, one bucket of 8 bytes for two of `pages` and half as many, each rounded
/// up to a power of two (`alloc_large_system_hash`).
pub(super) fn hash_tables(pages: u64) -> u64 {
    const BUCKET: u64 = 8;
    let table = |buckets: u64| (buckets.next_power_of_two() * BUCKET).div_ceil(PAGE_SIZE);
    table(pages / 2) + table(pages / 4)
}
