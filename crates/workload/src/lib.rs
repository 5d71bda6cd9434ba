//! Programs that put memory under pressure, written once against [`System`] and run unchanged
//! in the simulator and on a real kernel; the traces and scenario files that describe runs.
//!
//! Start with [`system`], the only thing that a program sees of a kernel.
//!
//! Deliberately absent: which backend a program runs on, clocks other than [`System::now`], and
//! any knowledge of the mechanisms under test.

pub mod system;

pub use system::{Advice, Errno, OpenMode, System, SystemError, TaskSpec};
