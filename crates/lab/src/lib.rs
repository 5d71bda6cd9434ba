//! The one facade: what the command line and other programs call to run workloads, compare
//! kernels and replay traces.
//!
//! Start with [`Request`]: names and texts as a person gives them. [`Request::resolve`] makes a
//! [`Scenario`] of it, [`compare::plan`] the scenarios of a comparison; [`batch::run_all`] runs
//! scenarios, whole runs in parallel, and returns recordings in the order of the plan.
//!
//! Rooms by what a caller does, from the top; each uses itself and those below it:
//!
//! | room | what it holds |
//! |---|---|
//! | `worlds` | random scenarios on a real kernel and on the model, judged counter by counter |
//! | `plan` | many runs for one question: compare, ablate, sweep, replay, size |
//! | `show` | what recordings are asked: what a report shows first, limits, explanations, pages |
//! | `keep` | recordings in folders, those of mmtests, numbers of others; traces for other programs |
//! | `run` | one run, or many, to recordings: simulated, on a real kernel, step by step |
//! | `resolve` | texts to a scenario, and a scenario to what the simulator takes |
//! | `known` | what worlds are drawn from, and how near the model is to real kernels in those that ran |
//! | `name` | names that can be given, what stands behind them, what recordings count |
//! | `error` | all that can go wrong, what to do about it, and whose fault it is |
//!
//! Where there are no processes and files, as in WebAssembly, what reaches real kernels and what runs many scenarios
//! at once are left out: a caller makes each run of a plan by [`simulate()`] or [`stepping`].
//!
//! Deliberately absent: terminals, colours and formats (`cli`, `pagetide-report`); process-global
//! state; any decision of the model. The same scenario gives the same recording.

#![cfg_attr(not(unix), allow(dead_code))] // Some of what is left has its callers in what is not.

mod error;
mod keep;
pub mod known;
mod name;
mod plan;
mod resolve;
mod run;
mod show;
#[cfg(unix)]
pub mod worlds;

pub use keep::{folders, mmtests, numbers, trace};
pub use name::written as workload_file;
pub use name::{experiment, machine_file, names};
#[cfg(unix)]
pub use plan::{ablate, guest_speed, replay, size, sweep};
pub use plan::{compare, grid};
pub use resolve::{program, program_file, program_request, zones};
pub use run::stepping;
#[cfg(unix)]
pub use run::{batch, capture, real};
pub use show::{explain, fail_if, page};

pub use ::trace::requests::TraceFormat;
#[cfg(unix)]
pub use batch::{Batch, Control, Ended, RunEvent, run_all};
pub use compare::Comparison;
pub use error::{Class, LabError};
#[cfg(unix)]
pub use linux::Told;
pub use mm::base::event::Detail;
pub use policy::PolicySpec;
#[cfg(unix)]
pub use real::HostPolicy;
pub use recording::Recording;
pub use recording::folder::check_new_folder;
pub use resolve::command::command;
pub use resolve::planned::PlannedRun;
pub use resolve::request::{GuestRequest, Request, Subject, warnings};
pub use resolve::variant::label;
#[cfg(unix)]
pub use run::kept::KeepRuns;
pub use run::simulate::{events_of, simulate, simulate_with_events};
pub use show::heat::heat;
pub use show::view::{headlines, view};
pub use workload::replay::ReplayOptions;
pub use workload::scenario::{Backend, Scenario};
