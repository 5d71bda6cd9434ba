//! Follows what a program and its children do to files and memory, without root.
//!
//! Start with [`command`] and [`processes`]. A seccomp filter tells of the calls that matter and lets all others run at
//! full speed; `ptrace` tells of tasks, programs, signals and the ends of calls. Calls whose beginning says enough
//! come as notices of the filter, which cost a third of a stop (Linux 5.19; before that they are stops, too).
//! What is read from a mapping is not a call: memory is looked at now and then.
//!
//! Left out: content; sockets, pipes and what the kernel makes up; `io_uring` and AIO, which are counted and named
//! in [`trace::Trace::gaps`]; programs of 32 bits. A program that is followed gets no rights by set-user-ID or
//! file capabilities, and cannot install a filter with notices of its own.
//!
//! Threads: the caller waits for stops ([`stops`]), one answers notices ([`notices`]), one looks at memory
//! ([`ticker`]), one writes ([`writing`]); what they know is in one [`follower`], under a lock.

mod again;
mod attach;
mod calls;
mod cgroups;
mod clocks;
mod descriptors;
mod error;
mod files;
mod filter;
mod follower;
mod footprint;
mod ledger;
mod maps;
mod memory;
mod notices;
mod numbers;
mod pace;
mod prices;
mod program;
mod ranges;
mod rates;
mod run;
mod stops;
mod sys;
mod ticker;
mod writing;

pub use attach::processes;
pub use cgroups::{processes_of_cgroup, processes_of_unit};
pub use error::CaptureError;
pub use footprint::Footprint;
pub use run::{Captured, Ended, Options, command};
pub use writing::Piece;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// What a lock holds. A thread that panicked has told so; what it left is as good as before.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
