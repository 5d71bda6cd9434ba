//! Texts to a scenario that can run, and a scenario to what the simulator takes.
//!
//! | file | what it holds |
//! |---|---|
//! | `request.rs` | what a person gives to a scenario whose names and values are checked |
//! | `defaults.rs` | what nobody said: machine, memory and swap of a workload, or of a backend |
//! | `command.rs` | a scenario back to the command that runs it |
//! | `texts.rs` | names and values as texts: read and checked, quoted and listed |
//! | `variant.rs`, `planned.rs` | a column of a comparison and its runs; a run that is planned |
//! | `kernel_name.rs` | the name of a simulated kernel to its version, and its policy for file pages |
//! | `policy_object.rs` | the object of eBPF that a kernel's name has |
//! | `setting.rs` | names and values of a scenario to what the simulator takes |
//! | `lacks.rs`, `disks.rs`, `swap.rs` | what a kernel or a machine does not have: refused, or told with the results |
//! | `zones.rs` | the zones of a machine as they are after boot |
//! | `program.rs` | a captured program as a workload: its trace read from its file |
//! | `program_file.rs` | the trace of a program from its file, whoever wrote it; what is in it |
//! | `program_request.rs` | a captured program on several machines and under several limits |

pub(crate) mod command;
pub(crate) mod defaults;
pub(crate) mod disks;
pub(crate) mod kernel_name;
pub(crate) mod lacks;
pub(crate) mod planned;
pub(crate) mod policy_object;
pub mod program;
pub mod program_file;
pub mod program_request;
pub(crate) mod request;
pub(crate) mod setting;
pub(crate) mod swap;
pub(crate) mod texts;
pub(crate) mod variant;
pub mod zones;
