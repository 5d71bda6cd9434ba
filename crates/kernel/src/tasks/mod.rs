//! Processes.

pub mod kthreadd;
pub mod process;
pub mod reap;
pub mod start;
