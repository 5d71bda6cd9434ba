//! Rows of measured guests that map files: how near is near enough.
//!
//! Below a limit one order of accesses leaves little to chance: counters are held to 5 %, in which two runs of a guest
//! differ where pages are accessed at random (the draws are the same, when kernel threads run is not), resident pages
//! to one reclaim of 32 beyond that. Next: `data/mapped-reference.toml`.

use super::Tolerance;

/// Counters of guests that map files.
pub(super) const REFERENCE: &str = include_str!("../../data/mapped-reference.toml");

/// How near a counter of a guest that maps files has to be.
pub(super) fn tolerance(counter: &str) -> Tolerance {
    match counter {
        // Fewer than the processes of a guest activate, deactivate or fault by themselves.
        "pgdeactivate" | "pgfault" => Tolerance::Shown,
        _ => Tolerance::Relative(0.05),
    }
}
