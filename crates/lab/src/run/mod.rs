//! One run, or many, to recordings.
//!
//! | file | what it holds |
//! |---|---|
//! | `batch.rs` | many scenarios in parallel, progress, interruption |
//! | `simulate.rs` | one scenario on the simulated machine to a recording |
//! | `real.rs` | one scenario on a real kernel, or any command on this host, to a recording |
//! | `stepping.rs` | a run that is stopped to look at it |
//! | `capture.rs` | a program that is followed, to a trace of what it does |
//! | `kept.rs` | recordings that are written while their run goes |
//! | `events.rs` | events of the simulator to those of a recording |
//! | `in_time.rs` | work that is stopped after some time on the clock |
//! | `clock.rs` | how long something took, where there is a clock |
//! | `counted.rs` | counters since boot to what happened in a run and in its phases |
//! | `laid_out.rs` | counters of a real kernel without what laying files out counted |
//! | `waited.rs` | waits as a backend tells them to those of a recording, and their metrics |
//! | `balance.rs` | slab and page cache in the steady state, reclaim over the run: metrics |
//! | `at_kill.rs` | memory at the first kill by the OOM killer: metrics |

pub(crate) mod at_kill;
pub(crate) mod balance;
#[cfg(unix)]
pub mod batch;
#[cfg(unix)]
pub mod capture;
pub(crate) mod clock;
pub(crate) mod counted;
pub(crate) mod events;
#[cfg(unix)]
pub(crate) mod in_time;
#[cfg(unix)]
pub(crate) mod kept;
#[cfg(unix)]
pub(crate) mod laid_out;
#[cfg(unix)]
pub mod real;
pub(crate) mod simulate;
pub mod stepping;
pub(crate) mod waited;
