//! The parts of Linux memory management that wait: the allocator's slow path, kswapd, direct and
//! limit reclaim, page cache with readahead, writeback, files, anonymous memory, cgroups and sysctls, as
//! short async drivers over the synchronous steps of `mm`.
//!
//! Start with [`handle`] (what a kernel is made of), then [`reclaim`] (drivers that read as the
//! kernel's own slow paths do) and [`cache::filemap`] (what a read does). [`machine`] is the
//! hardware seen from above.
//!
//! Invariants: no borrow and no remembered count crosses an `.await`; an `.await` stands only
//! where Linux could schedule; a file uses only what stands below it. Deliberately absent: how time
//! passes, and any real system call.

pub mod alloc;
pub mod anon;
pub mod boot;
pub mod cache;
pub mod cgroup;
pub mod compact;
pub mod errno;
pub mod files;
pub mod fs;
pub mod handle;
pub mod machine;
pub mod objects;
pub mod proc;
mod queues;
pub mod reclaim;
pub mod section;
mod swap;
pub mod tasks;
pub mod time;
pub mod writeback;

pub use alloc::kills::OomKill;
pub use alloc::oom_watch::OomCall;
pub use anon::area::{AnonMapping, HugeAdvice};
pub use anon::file::MapHow;
pub use anon::shared_file::SharedFile;
pub use boot::KernelConfig;
pub use errno::Errno;
pub use files::advice::FileAdvice;
pub use files::descriptor::OpenFile;
pub use fs::Filesystem;
pub use handle::Kernel;
pub use machine::{CostOp, IoKind, IoRequest, Machine, QueueId, TaskId, WaitReason, Woken};
pub use section::{Section, Site, Whom};
pub use tasks::process::{Process, ProcessId};
