//! Processes.

pub mod kthreadd;
pub mod own;
pub mod process;
pub mod reap;
pub mod start;
