//! The one facade: what the command line and other programs call to run workloads, compare
//! kernels and replay traces.
//!
//! Start with [`Request`]: names and texts as a person gives them. [`Request::resolve`] makes a
//! [`Scenario`] of it, [`compare::plan`] the scenarios of a comparison; [`batch::run_all`] runs
//! scenarios, whole runs in parallel, and returns recordings in the order of the plan.
//!
//! | file | what it holds |
//! |---|---|
//! | `names.rs` | every name that can be given: workloads, kernels, features, sysctls, counters, machines |
//! | `counters.rs` | what recordings hold: every counter, where it comes from, whether it counts up |
//! | `zones.rs` | the zones of a machine as they are after boot |
//! | `experiment.rs` | what a workload runs on when nobody says: machine, memory, kernels before and after |
//! | `resolve.rs` | texts to a resolved scenario, and a scenario back to the command that runs it |
//! | `lacks.rs` | what a kernel does not have: refused, or told with the results |
//! | `grid.rs` | further points of an experiment: other values of a parameter, other memory |
//! | `setting.rs` | names and values of a scenario to what the simulator takes |
//! | `variant.rs` | a column of a comparison, its runs, and what it is called |
//! | `compare.rs` | kernels x seeds to runs, and the runs back to columns of a report |
//! | `ablate.rs` | one workload on every kernel that some features make, switched or not |
//! | `sweep.rs` | one workload or trace with every combination of several values |
//! | `program.rs` | a captured program as a workload: its trace read from its file |
//! | `program_file.rs` | the trace of a program from its file, whoever wrote it; what is in it |
//! | `program_request.rs` | a captured program on several machines and under several limits |
//! | `replay.rs` | a trace on simulated machines and on plain replacement policies |
//! | `simulate.rs` | one scenario on the simulated machine to a recording |
//! | `stepping.rs` | a run that is stopped to look at it |
//! | `events.rs` | events of the simulator to those of a recording |
//! | `heat.rs` | where memory was warm, from recorded events |
//! | `kept.rs` | recordings that are written while their run goes |
//! | `planned.rs` | a run that is planned |
//! | `batch.rs` | many scenarios in parallel, progress, interruption |
//! | `real.rs` | one scenario on a real kernel, or any command on this host, to a recording |
//! | `capture.rs` | a program that is followed, to a trace of what it does |
//! | `counted.rs` | counters since boot to what happened in a run and in its phases |
//! | `balance.rs` | slab and page cache in the steady state, reclaim over the run: metrics |
//! | `waited.rs` | waits as a backend tells them to those of a recording, and their metrics |
//! | `differences.rs` | what distinguishes recordings that are put side by side |
//! | `view.rs` | what a report of a workload shows first |
//! | `page.rs` | what the page of a workload asks and tells; pages as files |
//! | `trace.rs` | a recording as a trace for other programs |
//! | `folders.rs` | folders of several recordings, written and read |
//! | `explain.rs` | what is to be explained: recordings, or a run that is made for it |
//! | `mmtests.rs` | runs in the folders of mmtests, written and read |
//! | `numbers.rs` | numbers that a person has, as the runs of a table |
//! | `size.rs` | how much memory a trace needs |
//! | `fail_if.rs` | limits on a comparison, as a person writes them |
//! | `class.rs` | whose fault an error is |
//! | `error.rs` | all that can go wrong, what to do about it, and whose fault it is |
//!
//! Deliberately absent: terminals, colours and formats (`cli`, `pagetide-report`); process-global
//! state; any decision of the model. The same scenario gives the same recording.

pub mod ablate;
mod at_kill;
mod balance;
pub mod batch;
pub mod capture;
mod class;
pub mod compare;
mod counted;
mod counters;
mod differences;
pub mod disks;
mod error;
mod events;
pub mod experiment;
pub mod explain;
pub mod fail_if;
pub mod folders;
pub mod grid;
mod heat;
mod kept;
mod lacks;
pub mod mmtests;
pub mod names;
pub mod numbers;
pub mod page;
mod planned;
pub mod program;
pub mod program_file;
pub mod program_request;
pub mod real;
pub mod replay;
pub mod resolve;
mod setting;
mod simulate;
pub mod size;
pub mod stepping;
mod swap;
pub mod sweep;
pub mod trace;
mod variant;
mod view;
mod waited;
pub mod zones;

pub use batch::{Batch, Control, Ended, RunEvent, run_all};
pub use class::Class;
pub use compare::Comparison;
pub use error::LabError;
pub use heat::heat;
pub use kept::KeepRuns;
pub use linux::Told;
pub use mm::base::event::Detail;
pub use planned::PlannedRun;
pub use real::HostPolicy;
pub use recording::folder::check_new_folder;
pub use recording::{Recording, RecordingError};
pub use resolve::{GuestRequest, Request, Subject, command, warnings};
pub use simulate::{events_of, simulate, simulate_with_events};
pub use variant::{Variant, label};
pub use view::{headlines, view};
pub use workload::UnknownName;
pub use workload::amount::Warmup;
pub use workload::policy::{POLICIES, PolicyError, PolicySpec};
pub use workload::replay::{ReplayOptions, Timing};
pub use workload::scenario::{Backend, Scenario, parse_mem, parse_mem_of};
pub use workload::trace::TraceFormat;
