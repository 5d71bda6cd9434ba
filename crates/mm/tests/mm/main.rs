//! Mechanisms from outside, by what any user of this crate can call.
//!
//! `world` is a small machine to read pages and reclaim on; files that end in `_scenes` draw it. Those
//! that end in `_model` or `_property` hold a mechanism against a naive one under random events. One
//! program holds them all: it is linked once, and a file that is new needs its line here.

mod alloc_property;
mod anon_balance;
mod compaction;
mod dirty_limits;
mod ext4_journal;
mod file_queues;
mod generations;
mod lists_2632;
mod lru_model;
mod lru_scenes;
mod mapped_scenes;
mod memcg_model;
mod page_cache_tree;
mod pcp_lists;
mod protection;
mod reclaim_scenes;
mod reclaim_verdicts;
mod slab_charge;
mod slab_model;
mod swap_scenes;
mod swap_worlds;
mod user_mode;
mod version_table;
mod watermark_tables;
mod workingset;
mod world;
mod zswap;
