//! Linux's page allocator and page reclaim as plain state and synchronous decisions.
//!
//! Start with [`page_alloc::PageAllocator`] (frames, zones, watermarks, buddy and per-CPU lists), then
//! [`Memory`] on top of it (LRU lists, cgroups, page cache trees, reclaim passes).
//!
//! Deliberately absent: waiting, clocks, randomness, I/O, hash iteration and `unsafe`. Every step
//! is bounded and returns what happened; whoever drives it waits.
#![no_std]

extern crate alloc as std_alloc;

pub mod alloc_flags;
pub mod anon;
pub mod boot;
pub mod buddy;
pub mod check;
pub mod check_alloc;
pub mod compact;
mod compact_scan;
pub mod event;
pub mod fallback;
#[cfg(test)]
mod fallback_scenes;
pub mod feature;
pub mod frame;
pub mod gfp;
pub mod highatomic;
pub mod inode;
pub mod lru;
pub mod mapping;
mod mem_info;
pub mod memcg;
pub mod memory;
pub mod migrate;
pub mod page_alloc;
pub mod pageblock;
pub mod pcp;
pub mod scan;
pub mod shrink;
pub mod shrinker;
pub mod slab;
pub mod slab_caches;
pub mod sysctl;
pub mod vmstat;
pub mod walk;
pub mod watermark;
pub mod workingset;
pub mod writeback;
pub mod xfs_buf;
pub mod xfs_log;
pub mod zone;

pub use check::Violation;
pub use feature::{Feature, FeatureSet, Kernel};
pub use memcg::MemcgId;
pub use memory::Memory;
