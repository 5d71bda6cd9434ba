//! Processes.

pub mod process;
pub mod start;
