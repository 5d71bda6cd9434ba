//! The simulated machine: a deterministic event core, CPUs with run queues and time slices, wait
//! queues and block devices. It implements [`kernel::machine::Machine`], so the kernel runs on it.
//!
//! Start here: [`Hardware`] describes a machine, [`Simulation`] boots and runs it, [`Sim`] is the
//! handle that the kernel and its tasks hold.
//!
//! | file | what it holds |
//! |---|---|
//! | `event.rs` | the agenda: all events to come in one total order |
//! | `executor.rs` | the loop that takes events and polls tasks; the fast path; stop and progress |
//! | `hardware.rs` | [`Hardware`]: CPUs, costs and devices of a machine |
//! | `machine.rs` | [`Sim`]: charge, sleep, wait, wake, spawn, submit |
//! | `state.rs` | all that a machine is between two events |
//! | `cpu.rs` | who runs where and for how long |
//! | `wait.rs` | wait queues, timeouts |
//! | `attribution.rs` | who waited for what, what ended it, and whether anything could have |
//! | `section.rs` | in the middle of what tasks were, and for how long |
//! | `task.rs` | what is known of a task |
//! | `device.rs`, `device_model.rs` | block devices at work; what each kind can do |
//! | `elevator.rs`, `sweep.rs` | what waits before a device, and how a disk goes through what it has |
//! | `cost.rs` | nanoseconds for each operation |
//! | `machines/` | the machines that runs can name |
//! | `run.rs`, `system.rs`, `sample.rs` | a workload from boot to end, its system calls, its samples |
//! | `going.rs`, `stepping.rs` | a run that goes, to its end or up to some time; for whoever looks at it |
//! | `trace.rs`, `handing.rs` | events and samples of a run while it goes, for whoever wants them |
//! | `check.rs` | the invariants that hold between two events |
//!
//! Deliberately absent: threads, atomics in the model, a clock, randomness, and allocation for
//! an event. A run depends on nothing but its inputs.

mod attribution;
mod check;
mod cost;
mod cpu;
mod device;
mod device_model;
mod elevator;
mod event;
mod executor;
mod going;
pub mod handing;
mod hardware;
mod machine;
pub mod machines;
mod memories;
mod pressure;
pub mod run;
mod sample;
mod section;
mod share;
mod state;
pub mod stepping;
mod sweep;
mod system;
mod task;
pub mod trace;
mod wait;

#[cfg(test)]
mod tests;

pub use attribution::{Ended, LENGTH_CLASSES, WaitKind, Waits, kernel_name};
pub use cost::{CostTable, UnknownCost};
pub use device::DeviceCounters;
pub use device_model::{DeviceModel, IoScheduler, Order, Speed};
pub use event::Class;
pub use executor::{Progress, RunError, Simulation};
pub use handing::PhaseSample;
pub use hardware::{Hardware, HardwareError};
pub use machine::{Sim, SimKernel, SimMemory};
pub use run::{Program, SimError, SimResult, SimRun};
pub use section::{SectionTime, Within, shrinker_name, site_name, whom_name};
pub use state::Statistics;
pub use system::SimSystem;
pub use trace::SimTrace;
pub use wait::{Doing, Stall, Unfinished};
