//! What is to become of an isolated page. Neighbours: [`crate::reclaim::page`], [`crate::reclaim::swap_out`].

use crate::base::event::Reason;

/// What to do with one isolated page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Free,
    Keep(Reason),
    Activate(Reason),
}
