//! What the values of a scenario lie within, and how a time is written.

use units::{Bytes, Nanos, Seed};

/// The version of the file form; it changes when an older reader would misread a newer file.
pub const SCHEMA: u64 = 1;
/// The smallest memory that a kernel boots in: its own image, reserves of a few MiB, one process.
pub const MEM_MIN: Bytes = Bytes(8 << 20);
/// The largest memory: 2^28 page frames. The frame table of a simulated run takes a hundredth of it.
pub const MEM_MAX: Bytes = Bytes(1 << 40);
/// The shortest time between samples: below, a real machine would do little else.
pub const INTERVAL_MIN: Nanos = Nanos::from_millis(1);
/// The longest one.
pub const INTERVAL_MAX: Nanos = Nanos::from_secs(3600);
/// The seed when none is given.
pub const SEED_DEFAULT: Seed = Seed(1);

/// The time between two samples as `parse_interval` reads it.
pub fn interval_text(interval: Nanos) -> String {
    let ns = interval.get();
    let units = [(1_000_000_000, "s"), (1_000_000, "ms"), (1000, "us")];
    let whole = units.into_iter().find(|(unit, _)| ns.is_multiple_of(*unit));
    whole.map_or_else(|| format!("{ns}ns"), |(unit, name)| format!("{}{name}", ns / unit))
}
