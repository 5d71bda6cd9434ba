//! Allocating pages and objects: the slow path, its stalls, and the OOM killer.
//!
//! Start with [`page`], then [`slow_path`].

pub mod drain;
pub mod kills;
pub mod oom;
pub mod oom_watch;
pub mod page;
pub mod purpose;
pub(crate) mod report;
pub mod slow_path;
pub mod stall;
pub(crate) mod used_frames;
