//! Recordings that are there already: read from folders, and written for other programs.
//!
//! | file | what it holds |
//! |---|---|
//! | `folders.rs` | folders of several recordings, written and read |
//! | `differences.rs` | what distinguishes recordings that are put side by side |
//! | `trace.rs` | a recording as a trace for other programs |
//! | `mmtests.rs` | runs in the folders of mmtests, written and read |
//! | `numbers.rs` | numbers that a person has, as the runs of a table |
//! | `prometheus.rs` | what Prometheus has of containers' memory |
//! | `unpacked.rs` | texts of others as a whole, with a bound |

pub(crate) mod differences;
pub mod folders;
pub mod mmtests;
pub mod numbers;
pub(crate) mod prometheus;
pub mod trace;
pub(crate) mod unpacked;
