//! Cgroups: their files, and charges with reclaim at a limit.

pub mod charge;
pub mod files;
pub mod proactive;
