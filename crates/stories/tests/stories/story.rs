//! Stories that a program tells: a small machine, and its run with all invariants checked.

use std::future::Future;

use mm::base::layout::MemoryLayout;
use sim::run::{Checks, verify};
use sim::{DeviceModel, Hardware, Program, SimResult, SimRun, SimSystem};
use units::{Nanos, Pages};
use workload::{Outcome, Workload, WorkloadError};

/// A machine with so many MiB of memory, 2 CPUs and a fast disk; what runs there comes with the story.
pub(crate) fn machine(kernel: &str, mib: u64) -> SimRun {
    let program = Program::Workload(Workload::new("hot-and-stream", []).expect("the defaults"));
    let kernel = mm::Version::parse(kernel).expect("a kernel");
    let hardware = Hardware::with_cpus(2).with_device(DeviceModel::NVME);
    SimRun {
        time_limit: Nanos::from_secs(600),
        sample_period: Nanos::from_secs(1),
        ..SimRun::new(program, kernel, hardware, MemoryLayout::flat(Pages(mib << 8), 2))
    }
}

/// Tells a story that has an outcome.
pub(crate) fn told<F, Fut>(spec: &SimRun, checks: Checks, program: F) -> SimResult
where
    F: FnOnce(SimSystem) -> Fut + 'static,
    Fut: Future<Output = Result<Outcome, WorkloadError>> + 'static,
{
    verify(spec, checks, program).expect("the story ends well").0
}

/// Tells one that asserts what it has to say, and checks after every event unless said otherwise.
pub(crate) fn tell<F, Fut>(spec: &SimRun, program: F) -> SimResult
where
    F: FnOnce(SimSystem) -> Fut + 'static,
    Fut: Future<Output = Result<(), WorkloadError>> + 'static,
{
    tell_with(spec, Checks::EveryEvent, program)
}

/// See [`tell`].
pub(crate) fn tell_with<F, Fut>(spec: &SimRun, checks: Checks, program: F) -> SimResult
where
    F: FnOnce(SimSystem) -> Fut + 'static,
    Fut: Future<Output = Result<(), WorkloadError>> + 'static,
{
    told(spec, checks, |sys| {
        let story = program(sys);
        async move { story.await.map(|()| Outcome::default()) }
    })
}
