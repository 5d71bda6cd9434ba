//! Names that can be given, what they stand for when nobody says more, and what recordings count.
//!
//! | file | what it holds |
//! |---|---|
//! | `names.rs` | every name: workloads, kernels, features, sysctls, counters, machines |
//! | `experiment.rs` | what a workload runs on when nobody says: machine, memory, kernels before and after |
//! | `machine_file.rs` | machines of files |
//! | `written.rs` | workloads of files |
//! | `counters.rs` | what recordings hold: every counter, where it comes from, whether it counts up |

pub(crate) mod counters;
pub mod experiment;
pub mod machine_file;
pub mod names;
pub mod written;
