//! Hangs that are planted, for the oracle of liveness to find: a device that never completes, kswapd
//! missing where a reclaimer waits for it, a task that goes round for ever.

use std::panic::{AssertUnwindSafe, catch_unwind};

use kernel::{Filesystem, Kernel, KernelConfig, Machine, Process};
use mm::MemcgId;
use mm::base::layout::MemoryLayout;
use mm::base::sysctl::Sysctls;
use sim::run::{Checks, Left, verify_watched};
use sim::{DeviceModel, Hardware, Program, SimKernel, SimRun, SimSystem, SimTrace, Simulation};
use units::{Bytes, Nanos, Pages, Seed};
use workload::system::{OpenMode, System, TaskSpec};
use workload::{Outcome, Workload, WorkloadError};

use super::liveness::{Bounds, Calls, Oracle};
use super::text_of;

fn spec() -> SimRun {
    let program = Program::Workload(Workload::new("hot-and-stream", []).expect("the defaults"));
    let version = mm::Version::parse("linux-6.1").expect("a version");
    let hardware = Hardware::with_cpus(1).with_device(DeviceModel::NVME);
    SimRun::new(program, version, hardware, MemoryLayout::flat(Pages(16 << 8), 1))
}

/// What the oracle of a healthy machine says of a program on a sick one.
fn verdict<F, Fut>(sick: &SimRun, program: impl FnOnce(Calls) -> F) -> String
where
    F: FnOnce(SimSystem) -> Fut + 'static,
    Fut: Future<Output = Result<Outcome, WorkloadError>> + 'static,
{
    let calls = Calls::new(Bounds::of(&spec(), 1));
    let mut oracle = Oracle::new(calls.clone());
    let program = program(calls);
    let ended = catch_unwind(AssertUnwindSafe(|| {
        let watch = move |kernel: &_| oracle.look(Kernel::machine(kernel), || Left::of(kernel));
        verify_watched(sick, Checks::Spread(1), watch, program)
    }));
    match ended {
        Ok(Ok(_)) => "all is well".to_owned(),
        Ok(Err(error)) => panic!("{error}"),
        Err(panic) => text_of(panic.as_ref()),
    }
}

/// A task that reads a page of a file.
fn reader(calls: Calls) -> impl FnOnce(SimSystem) -> BoxedProgram {
    move |sys| {
        Box::pin(async move {
            sys.lay_out_file("file", Bytes(1 << 20)).await?;
            let task = sys.spawn(TaskSpec::named("reader"), move |sys: SimSystem| async move {
                let file = sys.open("file", OpenMode::Read).await?;
                let ticket = calls.enter("reader", "read", 1, sys.now());
                sys.read(&file, 0, 1).await?;
                calls.leave(ticket, sys.now());
                Ok::<(), WorkloadError>(())
            });
            sys.join(task.await?).await??;
            Ok(Outcome::default())
        })
    }
}

type BoxedProgram = std::pin::Pin<Box<dyn Future<Output = Result<Outcome, WorkloadError>>>>;

#[test]
fn a_reader_of_a_device_that_never_completes_is_named() {
    assert_eq!(verdict(&spec(), reader), "all is well");
    let mut sick = spec();
    sick.hardware.devices[0].read.latency = Nanos::from_secs(365 * 24 * 60 * 60);
    sick.filesystem = Filesystem::Xfs; // Whose open reads nothing.
    let found = verdict(&sick, reader);
    assert!(found.contains("`reader` waits for PageRead since "), "{found}");
}

#[test]
fn a_task_that_goes_round_for_ever_is_named() {
    let round = |step: Nanos| {
        move |calls: Calls| {
            move |sys: SimSystem| async move {
                calls.enter("workload", "read", 7, sys.now());
                loop {
                    sys.sleep(step).await;
                }
            }
        }
    };
    let found = verdict(&spec(), round(Nanos::from_millis(100)));
    assert!(found.contains("`workload` is in read of 7 pages since "), "{found}");
    let found = verdict(&spec(), round(Nanos(1)));
    assert!(found.contains("no call returned for 262144 events"), "{found}");
}

/// Fills memory with a file, raises the reserve far above what is free, and reads on; returns when it
/// ended, or what the oracle says.
fn raise_reserve(with_kswapd: bool) -> Result<Nanos, String> {
    let spec = spec();
    let mut simulation = Simulation::new(spec.hardware.clone()).expect("a machine");
    if !with_kswapd {
        simulation.leave_out("kswapd0");
    }
    let config = KernelConfig {
        version: spec.kernel.clone(),
        sysctls: Sysctls::default(),
        layout: spec.layout.clone(),
        filesystem: Filesystem::Ext4,
        xfs_log_size: Bytes(64 << 20),
        gathers: 16,
        readahead_pages: 0,
        policy: None,
        seed: Seed(1),
    };
    let kernel = Kernel::boot(simulation.machine(), config, SimTrace::default()).expect("it boots");
    let mut oracle = Oracle::new(Calls::new(Bounds::of(&spec, 1)));
    let (sim, watched) = (simulation.machine(), kernel.clone());
    simulation.after_every_event(move || oracle.look(&sim, || Left::of(&watched)));
    let task = {
        let kernel = kernel.clone();
        simulation.machine().spawn("reader", None, async move {
            let process = kernel.process_start("reader", MemcgId::ROOT).await.expect("all memory is free");
            read_on(&kernel, &process).await;
        })
    };
    let ended = catch_unwind(AssertUnwindSafe(|| {
        simulation
            .run_until_task_done(task, Nanos::from_secs(24 * 60 * 60))
            .expect("the oracle speaks before")
    }));
    ended.map_err(|panic| text_of(panic.as_ref()))
}

async fn read_on(kernel: &SimKernel, process: &Process) {
    kernel.lay_out_file("file", Bytes(64 << 20)).expect("a new file");
    let file = kernel.open(process, "file", false).await.expect("memory");
    kernel.read(process, &file, 0, 24 << 20).await.expect("memory");
    kernel.sysctl_write("vm.min_free_kbytes", "8192").expect("a sysctl");
    kernel.read(process, &file, 24 << 20, 1 << 20).await.expect("memory");
}

#[test]
fn a_reclaimer_that_waits_for_a_kswapd_that_never_comes_is_named() {
    let ended = raise_reserve(true);
    assert!(ended.is_ok(), "{ended:?}");
    let found = raise_reserve(false).expect_err("it hangs");
    assert!(found.contains("`reader` waits for DirectReclaimThrottle since "), "{found}");
}
