//! Rows of measured guests that map files: how near is near enough.
//!
//! Below a limit one order of accesses leaves little to chance: counters are held to 5 %. Each row is one run of a
//! guest; where pages are accessed at random, when its kernel threads run decides some of them.
//! Next: `data/mapped-reference.toml`.

use super::Tolerance;

/// Counters of guests that map files.
pub(super) const REFERENCE: &str = include_str!("../../data/mapped-reference.toml");

/// How near a counter of a guest that maps files has to be.
pub(super) fn tolerance(counter: &str) -> Tolerance {
    match counter {
        // How often a page is written and made dirty again goes by the flusher's clock, and a guest that shares its
        // CPUs takes its time.
        "nr_dirtied" => Tolerance::Shown,
        _ => Tolerance::Relative(0.05),
    }
}
