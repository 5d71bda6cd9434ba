//! The simulated machine: a deterministic event core, CPUs with run queues and time slices, wait
//! queues and block devices. It implements [`kernel::machine::Machine`], so the kernel runs on it.
//!
//! Start here: [`Hardware`] describes a machine, [`Simulation`] boots and runs it, [`Sim`] is the
//! handle that the kernel and its tasks hold.
//!
//! From the top, a room uses what stands below it:
//!
//! | room | what it holds |
//! |---|---|
//! | `run` | a workload from boot to end, or up to some time; its system calls, its samples |
//! | `machines` | the machines that runs can name |
//! | `engine` | `simulation`: the loop over events; `sim`: the handle that the kernel has; `core`: a program's turn |
//! | `machine` | what a machine is between two events (`state`), what happens to it, what is read off it |
//! | `trace` | events of a run while it goes, for whoever wants them |
//! | `accounts` | what is counted of tasks: waits and what ended them, time in sections, pressure |
//! | `devices` | block devices at work, what waits before one, how a disk goes through what it has |
//! | `hardware` | [`Hardware`]: CPUs, nanoseconds for each operation, what each kind of device can do |
//! | `event` | the agenda: all events to come in one total order |
//!
//! Deliberately absent: threads, atomics in the model, a clock, randomness, and allocation for
//! an event. A run depends on nothing but its inputs.

mod event;
mod hardware;
pub mod machines;

/// Block devices at work.
mod devices {
    pub mod device;
    pub mod elevator;
    pub mod sweep;
}

/// What is counted of tasks.
mod accounts {
    mod average;
    pub mod pressure;
    pub mod sections;
    pub mod waits;
}

/// Events of a run while it goes.
pub mod trace {
    pub(crate) mod log;

    pub use log::{ANONYMOUS, CHUNK_ROWS, EventNames, EventRow, Sink, What};
}

/// A machine between two events.
mod machine {
    pub mod check;
    pub mod cpu;
    pub mod inside;
    pub mod readings;
    pub mod schedule;
    pub mod share;
    pub mod state;
    pub mod task;
    pub mod wait;
}

/// What makes it go.
mod engine {
    pub mod core;
    pub mod sim;
    pub mod simulation;
    pub mod tracer;
}

/// Workloads on a machine, from boot to end.
pub mod run {
    pub(crate) mod begin;
    mod buffer;
    mod checks;
    mod gates;
    mod going;
    mod handing;
    mod laying_out;
    mod left;
    mod memories;
    mod patience;
    pub(crate) mod result;
    mod sample;
    pub(crate) mod spec;
    mod stepping;
    pub(crate) mod system;
    mod verify;
    mod whole;
    mod worked;

    pub use begin::{Watch, boot_memory, device_name};
    pub use checks::Checks;
    pub use handing::{PhaseSample, SampleChunk, SampleSink};
    pub use left::Left;
    pub use result::{FRAGMENT_STALL_SAMPLES, SimError, SimResult};
    pub use spec::{Program, SimRun};
    pub use stepping::Stepping;
    pub use verify::{verify, verify_watched};
    pub use whole::{run, run_watched};
}

#[cfg(test)]
mod tests;

pub use accounts::sections::{SectionTime, Within, shrinker_name, site_name, whom_name};
pub use accounts::waits::{Ended, LENGTH_CLASSES, WaitKind, Waits, kernel_name};
pub use devices::device::DeviceCounters;
pub use engine::core::Statistics;
pub use engine::sim::{Sim, SimKernel, SimMemory};
pub use engine::simulation::{Progress, RunError, Simulation};
pub use engine::tracer::SimTrace;
pub use event::Class;
pub use hardware::cost::{CostTable, UnknownCost};
pub use hardware::device::{DeviceModel, IoScheduler, Order, Speed};
pub use hardware::{Hardware, HardwareError};
pub use machine::readings::{Doing, Stall, Unfinished};
pub use run::system::SimSystem;
pub use run::{PhaseSample, Program, SimError, SimResult, SimRun};
