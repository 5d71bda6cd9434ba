//! The parts of Linux memory management that wait: the allocator's slow path, kswapd, direct and
//! limit reclaim, page cache with readahead, files, anonymous memory, cgroups and sysctls, as
//! short async drivers over the synchronous steps of `mm`.
//!
//! Start with [`machine`], the hardware seen from below.

pub mod machine;

pub use machine::{CostOp, IoKind, IoRequest, Machine, QueueId, TaskId, WaitReason, Woken};
