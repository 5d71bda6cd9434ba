//! The parts of Linux memory management that wait: the allocator's slow path, kswapd, direct and
//! limit reclaim, page cache with readahead, writeback, files, anonymous memory, cgroups and sysctls, as
//! short async drivers over the synchronous steps of `mm`.
//!
//! Start with [`kernel`] (what a kernel is made of), then [`reclaim`] and [`kswapd`] (drivers that
//! read as the kernel's own slow paths do) and [`filemap`] (what a read does). [`machine`] is the
//! hardware seen from above.
//!
//! Invariants: no borrow and no remembered count crosses an `.await`; an `.await` stands only
//! where Linux could schedule. Deliberately absent: how time passes, and any real system call.

pub mod allocate;
pub mod anon;
pub mod cgroup;
pub mod charge;
pub mod compaction;
mod dirty_inodes;
pub mod file;
pub mod filemap;
pub mod fragment;
pub mod huge;
pub mod kernel;
pub mod kswapd;
pub mod machine;
pub mod oom;
mod page_table;
mod page_wait;
pub mod proc;
pub mod readahead;
pub mod reclaim;
pub mod slab;
pub mod task;
pub mod writeback;
mod xfs;
mod xfs_log;

pub use file::{Filesystem, OpenFile};
pub use kernel::{Kernel, KernelConfig};
pub use machine::{CostOp, IoKind, IoRequest, Machine, QueueId, TaskId, WaitReason, Woken};
pub use oom::OomKill;
pub use task::{Errno, Process, ProcessId};
