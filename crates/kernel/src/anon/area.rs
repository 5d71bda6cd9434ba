//! What a process remembers of an anonymous mapping.

use mm::base::ids::AnonId;

/// Advice on a mapping.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum HugeAdvice {
    /// None was given.
    #[default]
    None,
    /// `MADV_HUGEPAGE`.
    Huge,
    /// `MADV_NOHUGEPAGE`.
    NoHuge,
}

/// An anonymous mapping of a process.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AnonArea {
    pub(crate) anon: AnonId,
    /// Its length in pages.
    pub(crate) pages: u64,
    pub(crate) advice: HugeAdvice,
}
