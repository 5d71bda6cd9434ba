//! How many events per second the executor processes: stretches of CPU work, context switches
//! and timers. Compare before and after a change, on one machine; the figures mean nothing else.
//!
//! Each scene prints nothing but its rate: divan counts one item for each event.

use divan::Bencher;
use divan::counter::ItemsCount;
use kernel::machine::{CostOp, Machine, WaitReason};
use pagetide_sim::{Hardware, Sim, Simulation};
use units::{Nanos, Seed};

/// Steps that all tasks of a scene take together.
const STEPS: u64 = 1 << 20;

fn main() {
    divan::main();
}

/// Boots a machine on which `tasks` tasks run `program`.
fn boot<P>(cpus: u16, tasks: u64, program: impl Fn(Sim, u64, u64) -> P) -> Simulation
where
    P: Future<Output = ()> + 'static,
{
    let simulation = Simulation::new(Hardware::with_cpus(cpus)).expect("a machine");
    let sim = simulation.machine();
    for number in 0..tasks {
        sim.spawn("task", None, program(sim.clone(), number, STEPS / tasks));
    }
    simulation
}

/// Runs a scene to its end, again and again, each time on a machine of its own.
fn measure(bencher: Bencher<'_, '_>, boot: impl Fn() -> Simulation + Sync) {
    let events = {
        let mut simulation = boot();
        simulation.run_until_idle(Nanos(u64::MAX)).expect("it ends");
        simulation.machine().statistics().events
    };
    bencher.counter(ItemsCount::new(events)).with_inputs(&boot).bench_local_values(|mut simulation| {
        simulation.run_until_idle(Nanos(u64::MAX)).expect("it ends");
        simulation
    });
}

/// Work of random length and nothing else: every CPU has an event to come.
#[divan::bench(args = [1, 8, 256])]
fn work(bencher: Bencher<'_, '_>, tasks: u64) {
    measure(bencher, || {
        boot(8, tasks, |sim, number, steps| async move {
            let mut stream = Seed(number).stream("work");
            for _ in 0..steps {
                sim.charge(CostOp::ScanPage, 1 + stream.below(64));
                sim.cond_resched().await;
            }
        })
    });
}

/// Short sleeps of random length: a timer, a context switch and a stretch of work each.
#[divan::bench(args = [1, 8, 256])]
fn sleep(bencher: Bencher<'_, '_>, tasks: u64) {
    measure(bencher, || {
        boot(8, tasks, |sim, number, steps| async move {
            let mut stream = Seed(number).stream("sleep");
            for _ in 0..steps {
                sim.charge(CostOp::ScanPage, 32);
                sim.sleep(Nanos(1 + stream.below(1_000_000)), WaitReason::UserSleep).await;
            }
        })
    });
}

/// Pairs of tasks that wake each other, with a timeout that never comes.
#[divan::bench(args = [8, 256])]
fn ping_pong(bencher: Bencher<'_, '_>, tasks: u64) {
    measure(bencher, || {
        let simulation = Simulation::new(Hardware::with_cpus(8)).expect("a machine");
        let sim = simulation.machine();
        for _ in 0..tasks / 2 {
            let (ping, pong) = (sim.new_queue(), sim.new_queue());
            for (mine, yours) in [(ping, pong), (pong, ping)] {
                let here = sim.clone();
                sim.spawn("player", None, async move {
                    for _ in 0..STEPS / tasks {
                        here.charge(CostOp::Syscall, 1);
                        let _ = here.wake_all(yours);
                        let timeout = Some(Nanos::from_millis(100));
                        let _ = here.wait(mine, WaitReason::PageRead, timeout).await;
                    }
                    let _ = here.wake_all(yours);
                });
            }
        }
        simulation
    });
}
