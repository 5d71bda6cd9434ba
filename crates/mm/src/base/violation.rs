//! What a check of our own state says when it fails.
//!
//! Neighbours: [`crate::alloc::check`] and [`crate::check`], which look.

use core::fmt;
use std_alloc::string::String;

/// A broken invariant: a bug of ours, never of the caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation(pub String);

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "invariant violated: {}", self.0)
    }
}

impl core::error::Error for Violation {}

macro_rules! ensure {
    ($holds:expr, $($message:tt)*) => {
        if !$holds {
            return Err($crate::base::violation::Violation(std_alloc::format!($($message)*)));
        }
    };
}
pub(crate) use ensure;
