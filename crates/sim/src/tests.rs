//! Stories about the whole machine. Parts that stand alone are tested in their own files.

mod devices;
mod elevator;
mod futile;
mod reference;
mod runs;
mod scheduling;
mod sections;
mod waiting;

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use kernel::machine::{CostOp, Machine, WaitReason};
use units::{CpuId, Nanos, Seed};

use crate::{CostTable, Hardware, Sim, Simulation};

/// A machine on which a system call costs 1 us, and nothing else anything.
fn hardware(cpus: u16) -> Hardware {
    let mut costs = CostTable::free();
    costs.set("syscall", Nanos::from_micros(1)).expect("a cost");
    Hardware { costs, ..Hardware::with_cpus(cpus) }
}

fn boot(hardware: Hardware) -> (Simulation, Sim) {
    let simulation = Simulation::new(hardware).expect("sound hardware");
    let sim = simulation.machine();
    (simulation, sim)
}

/// Works for so many microseconds.
async fn work(sim: &Sim, micros: u64) {
    sim.charge(CostOp::Syscall, micros);
    sim.cond_resched().await;
}

async fn nap(sim: &Sim, micros: u64) {
    sim.sleep(Nanos::from_micros(micros), WaitReason::UserSleep).await;
}

/// What happened when, as told by the tasks: a line for each event, with its microsecond.
#[derive(Clone, Default)]
struct Log(Rc<RefCell<Vec<String>>>);

impl Log {
    fn tell(&self, sim: &Sim, what: impl std::fmt::Display) {
        let (Nanos(now), CpuId(cpu)) = (sim.now(), sim.current_cpu());
        self.0.borrow_mut().push(format!("{:>5} us cpu{cpu} {what}", now / 1000));
    }

    fn text(&self) -> String {
        self.0.borrow().join("\n")
    }
}

/// A machine on which tasks do a random mixture of everything for some milliseconds.
fn random_mix(hardware: Hardware, seed: u64) -> Simulation {
    let simulation = Simulation::new(hardware.with_device(crate::DeviceModel::NVME)).expect("sound hardware");
    let sim = simulation.machine();
    let queues = [sim.new_queue(), sim.new_queue()];
    let arrived = sim.new_queue();
    let interrupts = sim.clone();
    sim.on_io_done(Rc::new(move |_| {
        interrupts.charge(CostOp::PcpFree, 3);
        let _ = interrupts.wake_all(arrived);
    }));
    for number in 0..12_u16 {
        let cpu = (number % 4 == 0).then_some(CpuId(number / 4 % sim.cpu_count()));
        let here = sim.clone();
        sim.spawn(&format!("task {number}"), cpu, async move {
            let mut stream = Seed(seed).stream(&format!("task {number}"));
            for round in 0..60_u64 {
                here.charge(CostOp::MinorFault, stream.below(400));
                let queue = queues[usize::from(stream.chance(1, 2))];
                let long = Nanos(stream.below(3_000_000));
                match stream.below(8) {
                    0 => here.sleep(Nanos(long.0 / 10), WaitReason::UserSleep).await,
                    1 => {
                        let _ = here.wait(queue, WaitReason::PageRead, Some(long)).await;
                    }
                    2 => {
                        let _ = here.wake_all(queue);
                    }
                    3 => {
                        let (offset, len) = (stream.below(9) << 12, units::Bytes(4096));
                        let kind = kernel::IoKind::Read;
                        here.submit(kernel::IoRequest {
                            device: 0,
                            kind,
                            offset,
                            len,
                            segments: 1,
                            tag: round,
                        });
                        let _ = here.wait(arrived, WaitReason::PageRead, None).await;
                    }
                    4 if round == 30 => {
                        let child = here.clone();
                        here.spawn("child", None, async move { work(&child, 700).await });
                    }
                    _ => here.cond_resched().await,
                }
            }
        });
    }
    simulation
}
