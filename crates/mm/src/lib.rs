//! Linux's page allocator and page reclaim as plain state and synchronous decisions.
//!
//! The modules below are a tower, drawn from its foot upwards: each may use what stands above it in
//! this file, never what stands below. Start with [`alloc::page_alloc`] (frames, zones, watermarks,
//! buddy and per-CPU lists), then [`lru`] and [`reclaim`] (what goes, and in which order); [`Memory`]
//! holds one of each part and hands them to each other.
//!
//! Deliberately absent: waiting, clocks, randomness, I/O, hash iteration and `unsafe`. Every step
//! is bounded and returns what happened; whoever drives it waits.
#![no_std]

extern crate alloc as std_alloc;

/// What everybody names: frames, zones, flags, counters, tracepoints, sysctls.
pub mod base {
    pub mod event;
    pub mod frame;
    pub mod gfp;
    pub mod hash;
    pub mod ids;
    pub mod layout;
    pub mod list;
    mod rows;
    pub mod sysctl;
    pub mod violation;
    pub mod vmstat;
}

/// Which Linux this is.
pub mod version {
    pub(crate) mod decision;
    /// Every decision with its answers, by the part of the kernel that asks.
    pub mod decisions {
        pub mod alloc;
        pub mod cgroups;
        pub mod files;
        pub mod generations;
        pub mod reclaim;
        pub mod slab;
        pub mod swap;
    }
    pub mod effect;
    pub mod feature;
    pub mod geometry;
    pub mod parse;
    pub mod presets;
    pub mod rules;
}

/// Memory cgroups: the tree, charges, statistics, protection, and the walk of reclaim through it.
pub mod cgroup {
    pub mod charge;
    #[cfg(test)]
    mod charge_scenes;
    mod check;
    pub mod cost;
    mod counters;
    mod heirs;
    mod order;
    pub mod protection;
    pub mod stat;
    mod stock;
    pub mod swap;
    pub mod tree;
    pub mod walk;
    pub mod zswap;
}

/// The page allocator.
pub mod alloc {
    pub mod boot;
    pub mod buddy;
    pub mod check;
    pub mod fallback;
    #[cfg(test)]
    mod fallback_scenes;
    pub mod flags;
    pub mod highatomic;
    mod isolate;
    mod kept;
    #[cfg(test)]
    mod kept_scenes;
    pub mod page_alloc;
    pub mod pageblock;
    pub mod pcp;
    #[cfg(test)]
    mod pcp_scenes;
    pub mod run;
    pub mod suitable;
    pub mod watermark;
    #[cfg(test)]
    mod watermark_scenes;
    pub mod zone;
}

/// Slab: pages that hold kernel objects.
pub mod slab {
    pub mod account;
    pub mod cache;
    pub mod caches;
    mod cpu_slabs;
    pub mod layout;
    pub mod object;
    mod rcu;
    #[cfg(test)]
    mod scenes;
    mod sheaf;
    pub mod table;
}

/// Swap: where anonymous pages can go to.
pub mod swap {
    pub mod areas;
    mod map;
    mod pool;
    pub mod readahead;
    pub mod slot;
    pub mod store;
    pub mod zram;
    pub mod zswap;
}

pub mod core;

/// LRU lists, the batches in front of them, and refaults.
pub mod lru {
    #[cfg(test)]
    mod anon_scenes;
    /// Policies of one's own for file pages.
    pub mod cache_ext {
        pub(crate) mod attached;
        pub mod hooks;
        pub mod lists;
        mod told;
    }
    pub mod cost;
    pub mod lists;
    /// The multi-gen LRU.
    pub mod mglru {
        pub mod access;
        pub mod aging;
        mod feedback;
        pub(crate) mod filter;
        pub mod state;
        mod switch;
    }
    mod locked;
    pub mod mlock;
    pub mod queues;
    #[cfg(test)]
    mod scenes;
    pub mod two_lists;
    pub mod workingset;
}

/// What pages hold: the page cache, which of it is dirty, and anonymous memory.
pub mod pages {
    pub mod advice;
    pub mod anon;
    pub mod anon_swap;
    pub mod cache;
    pub mod dirty;
    pub(crate) mod heads;
    pub mod mapped;
    pub mod mapped_pages;
    pub mod pace;
    pub mod shadow;
    pub mod swap_cache;
    mod swap_spaces;
    pub mod tree;
    pub mod window;
    pub mod zswap;
    pub mod zswap_back;
}

/// Objects of filesystems: dentries, inodes, buffers and the log of XFS.
pub mod fs {
    pub mod dentry;
    /// ext4.
    pub mod ext4 {
        pub mod extents;
        pub mod journal;
        pub mod layout;
    }
    pub mod inode;
    mod object_lru;
    pub mod prune;
    pub mod state;
    /// XFS.
    pub mod xfs {
        pub mod ail;
        pub mod buf;
        pub mod inode_reclaim;
        pub mod items;
        pub mod log;
        pub mod reclaimable;
    }
}

/// Reclaim: runs, passes, what becomes of each page, shrinkers.
pub mod reclaim {
    /// Eviction by generations.
    pub mod mglru {
        pub mod batch;
        pub mod choice;
        pub mod memcg_lru;
        pub mod tour;
        pub mod ttl;
        pub mod visit;
    }
    mod evict;
    pub mod page;
    pub mod pass;
    pub mod plan;
    mod proposed;
    mod references;
    pub mod run;
    pub mod scan_balance;
    pub mod scans;
    pub mod shrinker;
    #[cfg(test)]
    mod shrinker_scenes;
    pub mod spend;
    pub mod state;
    pub mod swap_out;
    mod verdict;
}

/// Compaction: scanners, migration, deferral.
pub mod compact {
    pub mod defer;
    pub mod migrate;
    pub mod run;
    pub mod scanners;
    #[cfg(test)]
    mod scenes;
    pub mod score;
    mod search;
    #[cfg(test)]
    mod search_scenes;
    mod searches;
    pub mod state;
    mod targets;
}

pub mod check;
mod gather;
mod journals;
mod laid_out;
pub mod mapping;
pub mod mem_info;
pub mod memory;
mod policies;
mod readings;
pub mod swapping;
mod tunables;
mod visits;
mod why;
mod windows;

/// Decisions of those who free memory, and of those who wait for it: small machines whose `step` says
/// what to do next. Who does it, pays for it and waits is a driver of the kernel.
pub mod decide {
    pub mod backoff;
    pub mod balance;
    pub mod balance_zones;
    #[cfg(test)]
    mod balance_zones_scenes;
    pub mod charge;
    pub mod congestion;
    pub mod effort;
    pub mod idle_run;
    pub mod kswapd;
    #[cfg(test)]
    mod kswapd_scenes;
    pub mod over_high;
    pub mod pause;
    #[cfg(test)]
    mod pause_scenes;
    pub mod priority;
    pub mod proactive;
    pub mod retry;
    pub mod retry_paused;
    #[cfg(test)]
    mod retry_paused_scripts;
    #[cfg(test)]
    mod retry_scripts;
    #[cfg(test)]
    mod scene;
    pub mod slow_path;
    pub mod throttle;
    #[cfg(test)]
    mod throttle_scenes;
    pub mod write_out;
}

pub use base::ids::MemcgId;
pub use base::violation::Violation;
pub use memory::Memory;
pub use version::feature::Feature;
pub use version::presets::Version;
pub use version::rules::{Rule, Rules};
