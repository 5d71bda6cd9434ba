//! Many runs for one question: planned, run, and put together again.
//!
//! | file | the question |
//! |---|---|
//! | `compare.rs` | does another kernel, or another place to run, do better: kernels x seeds |
//! | `grid.rs` | and at other values of a parameter, at other sizes of memory? |
//! | `ablate.rs` | which of these features matter: every kernel that they make, switched or not |
//! | `sweep.rs` | how does a result depend on several values: every combination |
//! | `replay.rs` | what do simulated machines and plain replacement policies make of a trace |
//! | `guest_speed.rs` | how fast are guests of User-Mode Linux on this host? |
//! | `size.rs` | how much memory does a trace need |

#[cfg(unix)]
pub mod ablate;
pub mod compare;
pub mod grid;
#[cfg(unix)]
pub mod guest_speed;
#[cfg(unix)]
pub mod replay;
#[cfg(unix)]
pub mod size;
#[cfg(unix)]
pub mod sweep;
