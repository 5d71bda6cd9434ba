//! Processes.

pub mod process;
pub mod reap;
pub mod start;
