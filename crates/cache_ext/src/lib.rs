//! Policies by which the modelled kernel can evict the file pages of its cgroups, through the hooks of cache_ext
//! ([`mm::lru::cache_ext::hooks`]): those that its paper (Zussman et al., SOSP 2025) was evaluated with, as their own
//! papers have them, and LRU.
//!
//! Start with [`fifo`], which is the shortest, and [`lfu`], which scores. A policy of one's own is a file like these,
//! and an entry of [`POLICIES`]; its kernel is called `linux-6.12+cache-ext-NAME`.
//!
//! Left out: GET-SCAN and the admission filter of the paper, which go by the thread that reads; MGLRU on the hooks,
//! which the kernel has itself.

pub mod fifo;
mod in_order;
pub mod lfu;
pub mod lhd;
pub mod lru;
pub mod mru;
pub mod per_folio;
pub mod s3fifo;

use mm::lru::cache_ext::hooks::EvictionPolicy;

/// A policy by its name.
#[derive(Debug, Clone, Copy)]
pub struct PolicyInfo {
    /// What a kernel with it is called behind the `+`.
    pub feature: &'static str,
    /// What it does, in a line.
    pub help: &'static str,
    /// Where it is from.
    pub source: &'static str,
    /// Makes its pattern.
    pub make: fn() -> Box<dyn EvictionPolicy>,
}

/// Every policy.
pub const POLICIES: &[PolicyInfo] = &[
    PolicyInfo {
        feature: "cache-ext-fifo",
        help: "file pages go in the order in which they came",
        source: "cache_ext, SOSP 2025",
        make: || Box::new(fifo::Fifo::default()),
    },
    PolicyInfo {
        feature: "cache-ext-lru",
        help: "file pages go in the order of their last accesses, with no second list",
        source: "cache_ext, SOSP 2025",
        make: || Box::new(lru::Lru::default()),
    },
    PolicyInfo {
        feature: "cache-ext-mru",
        help: "the file page that was accessed last goes first",
        source: "cache_ext, SOSP 2025",
        make: || Box::new(mru::Mru::default()),
    },
    PolicyInfo {
        feature: "cache-ext-lfu",
        help: "of 512 file pages the 32 go that were accessed least often",
        source: "cache_ext, SOSP 2025",
        make: || Box::new(lfu::Lfu::default()),
    },
    PolicyInfo {
        feature: "cache-ext-s3fifo",
        help: "a small FIFO on trial before the main one, names of those who failed",
        source: "Yang et al., SOSP 2023",
        make: || Box::new(s3fifo::S3Fifo::default()),
    },
    PolicyInfo {
        feature: "cache-ext-lhd",
        help: "of 512 file pages the 32 go that have the fewest hits to expect for the time that they would stay",
        source: "Beckmann, Chen, Cidon, NSDI 2018",
        make: || Box::new(lhd::Lhd::default()),
    },
];

impl PolicyInfo {
    /// The policy of a kernel with this feature.
    pub fn of_feature(feature: &str) -> Option<&'static Self> {
        POLICIES.iter().find(|info| info.feature == feature)
    }
}
