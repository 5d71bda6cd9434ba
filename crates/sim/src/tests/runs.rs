//! Whole runs: that they repeat, how they end, and what can be seen from outside.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::*;
use crate::{HardwareError, RunError, Stall, Statistics};

const LONG: Nanos = Nanos::from_secs(10);

fn outcome(mut simulation: Simulation) -> (Statistics, Vec<Stall>) {
    simulation.run_until_idle(LONG).expect("the mixture ends");
    let sim = simulation.machine();
    sim.check();
    (sim.statistics(), sim.stalls())
}

#[test]
fn a_run_repeats_event_for_event_and_another_seed_differs() {
    let [first, again, other] = [1, 1, 2].map(|seed| outcome(random_mix(Hardware::with_cpus(4), seed)));
    assert_eq!(first, again);
    assert_ne!(first.0.event_hash, other.0.event_hash);
    assert!(first.0.events > 1_000, "a mixture of {} events is too dull", first.0.events);
}

#[test]
fn the_fast_path_changes_nothing_but_the_speed() {
    for (cpus, seed) in [(1, 1), (2, 2), (4, 3), (16, 4), (65, 5)] {
        let with = outcome(random_mix(Hardware::with_cpus(cpus), seed));
        let without = outcome(random_mix(Hardware::with_cpus(cpus), seed).without_fast_path());
        assert_eq!(with, without, "{cpus} CPUs, seed {seed}");
    }
}

#[test]
fn every_invariant_holds_after_every_event() {
    for (cpus, seed) in [(1, 1), (3, 2), (16, 3)] {
        let mut simulation = random_mix(Hardware::with_cpus(cpus), seed);
        let sim = simulation.machine();
        while simulation.one_event() {
            sim.check();
        }
        assert!(sim.statistics().tasks_done > 0);
    }
}

#[test]
fn a_deadlock_names_who_waits_for_what_since_when() {
    let (mut simulation, sim) = boot(hardware(1));
    let queue = sim.new_queue();
    let here = sim.clone();
    let reader = sim.spawn("reader", None, async move {
        work(&here, 2_000).await;
        let _ = here.wait(queue, WaitReason::PageRead, None).await;
    });
    let here = sim.clone();
    sim.spawn("kswapd0", None, async move {
        let _ = here.wait(queue, WaitReason::KswapdIdle, None).await;
    });
    let error = simulation.run_until_task_done(reader, LONG).unwrap_err();
    insta::assert_snapshot!(error, @r"
    deadlock at 0.002s: nothing is left to happen and `reader` has not ended
      `reader` (task 1) waits for PageRead since 0.002s
      `kswapd0` (task 2) waits for KswapdIdle since 0.002s
    ");
}

#[test]
fn a_run_that_passes_the_cap_says_what_everybody_does() {
    let (mut simulation, sim) = boot(hardware(2));
    let here = sim.clone();
    sim.spawn("flusher", None, async move {
        loop {
            nap(&here, 300_000).await;
        }
    });
    let here = sim.clone();
    let spinner = sim.spawn("spinner", None, async move {
        loop {
            work(&here, 1).await;
        }
    });
    let error = simulation.run_until_task_done(spinner, Nanos::from_secs(1)).unwrap_err();
    insta::assert_snapshot!(error, @r"
    not done after 1.000s of simulated time
      `flusher` (task 1) waits for UserSleep since 0.900s
      `spinner` (task 2) is on cpu1
    ");
    assert_eq!(sim.now(), Nanos::from_secs(1));
}

#[test]
fn a_run_goes_on_where_the_last_one_stopped() {
    let (mut simulation, sim) = boot(hardware(1));
    let here = sim.clone();
    let task = sim.spawn("worker", None, async move { work(&here, 5_000).await });
    simulation.run_until(Nanos::from_millis(2)).expect("not stopped");
    assert_eq!((sim.now(), sim.statistics().tasks_done), (Nanos::from_millis(2), 0));
    assert_eq!(simulation.run_until_task_done(task, LONG), Ok(Nanos::from_millis(5)));
    simulation.run_until(Nanos::from_millis(9)).expect("not stopped");
    assert_eq!(sim.now(), Nanos::from_millis(9));
}

#[test]
fn the_stop_flag_ends_even_a_program_that_never_leaves_the_fast_path() {
    let (mut simulation, sim) = boot(hardware(1));
    let stop = Arc::new(AtomicBool::new(false));
    simulation.stop_on(Arc::clone(&stop));
    let seen = Rc::new(RefCell::new(Vec::new()));
    let (hook_seen, hook_stop) = (Rc::clone(&seen), stop);
    simulation.on_progress(move |progress| {
        hook_seen.borrow_mut().push(progress.events);
        hook_stop.store(hook_seen.borrow().len() == 3, Ordering::Relaxed);
    });
    let here = sim.clone();
    sim.spawn("spinner", None, async move {
        loop {
            work(&here, 1).await;
        }
    });
    let stopped = simulation.run_until_idle(Nanos(u64::MAX));
    assert!(matches!(stopped, Err(RunError::Stopped { .. })), "{stopped:?}");
    assert_eq!(*seen.borrow(), [4096, 8192, 12288]);
}

#[test]
fn the_end_of_a_run_drops_every_program_and_the_handler() {
    let (simulation, sim) = boot(hardware(1));
    let witness = Rc::new(());
    let (held, handed) = (Rc::clone(&witness), Rc::clone(&witness));
    let here = sim.clone();
    sim.spawn("sleeper", None, async move {
        nap(&here, 1).await;
        drop(held);
    });
    sim.on_io_done(Rc::new(move |_| assert_eq!(Rc::strong_count(&handed), 1)));
    assert_eq!(Rc::strong_count(&witness), 3);
    drop(simulation);
    assert_eq!(Rc::strong_count(&witness), 1);
}

#[test]
fn a_machine_that_cannot_work_is_refused() {
    use crate::DeviceModel;
    let no_slice = Hardware { slice: Nanos(0), ..hardware(1) };
    let stuck = hardware(1).with_device(DeviceModel { depth: 0, ..DeviceModel::NVME });
    for (hardware, expected) in [
        (hardware(0), HardwareError::NoCpu),
        (no_slice, HardwareError::NoSlice),
        (Hardware { hz: 0, ..hardware(1) }, HardwareError::NoTick(0)),
        (Hardware { hz: 300, ..hardware(1) }, HardwareError::NoTick(300)),
        (stuck, HardwareError::Stuck { part: "nvme", what: "depth" }),
    ] {
        assert_eq!(Simulation::new(hardware).err(), Some(expected));
    }
}
