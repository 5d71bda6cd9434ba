//! A run that goes: a program on a machine that has booted, up to some time, or to its end.
//!
//! Where it pauses makes no difference to the run: it is the same events in the same order. Next: `begin.rs` begins
//! one, `stepping.rs` lets others look at it.

use std::cell::RefCell;
use std::pin::Pin;
use std::rc::Rc;

use kernel::machine::TaskId;
use kernel::{Machine, WaitReason};
use units::{Nanos, Seed};
use workload::{Outcome, WorkloadError};

use crate::accounts::waits::WaitKind;
use crate::engine::sim::{Sim, SimKernel};
use crate::engine::simulation::{RunError, Simulation};
use crate::machine::readings::Stall;
use crate::run::checks::Checks;
use crate::run::handing::SampleSink;
use crate::run::patience::Patience;
use crate::run::result::{FRAGMENT_STALL_SAMPLES, SimError, SimResult};
use crate::run::sample::{AtEnd, Sampler};
use crate::run::spec::SimRun;
use crate::run::system::SimSystem;

/// What a program came to, and what was read when it had ended.
type Ended = (Result<Outcome, WorkloadError>, AtEnd);

/// A program as the first process of a machine.
pub(crate) struct Going {
    pub(crate) simulation: Simulation,
    pub(crate) kernel: SimKernel,
    sampler: Rc<RefCell<Sampler>>,
    outcome: Rc<RefCell<Option<Ended>>>,
    main: TaskId,
    time_limit: Nanos,
    /// When the kernel stopped the machine: a panic is a result, too.
    halted: Option<Nanos>,
    is_over: bool,
    /// At its end all of memory is looked at, however long that takes.
    checks_whole: bool,
}

/// What a program comes to, some time.
pub(crate) type Ending = Pin<Box<dyn Future<Output = Result<Outcome, WorkloadError>>>>;

/// A program that has not begun.
pub(crate) type MainProgram = Box<dyn FnOnce(SimSystem) -> Ending>;

/// Events of a run for each frame that is looked at when it ends: less than a hundredth of its time goes there.
const EVENTS_FOR_A_FRAME: u64 = 8;

impl Going {
    /// Starts `program` on a machine that has just booted; nothing has happened yet.
    pub(crate) fn begin(
        spec: &SimRun,
        mut simulation: Simulation,
        kernel: SimKernel,
        samples: Option<SampleSink>,
        checks: Checks,
        program: MainProgram,
    ) -> Self {
        let mut patience = Patience::with(kernel.clone());
        simulation.goes_on_while(move || patience.look());
        let machine = simulation.machine();
        let sampler = Rc::new(RefCell::new(Sampler::new(samples)));
        start_monitor(&machine, &kernel, &sampler, spec.sample_period);
        let outcome = Rc::new(RefCell::new(None));
        let main = {
            let (kernel, sampler, outcome) = (kernel.clone(), Rc::clone(&sampler), Rc::clone(&outcome));
            let seed = Seed(spec.seed);
            let disks = u16::try_from(spec.hardware.devices.len()).expect("few disks");
            machine.spawn("workload", None, async move {
                let begin = || sampler.borrow_mut().begin(kernel.machine().now(), &kernel);
                let result = match kernel.run_begins("workload", begin).await {
                    Ok(process) => {
                        let system =
                            SimSystem::new(kernel.clone(), process, Rc::clone(&sampler), seed, disks);
                        program(system).await
                    }
                    Err(errno) => Err(out_of_memory_at_start(errno)),
                };
                kernel.monitor_takes_over();
                // What the program read last and what the recording holds are readings of one instant.
                let end = sampler.borrow_mut().end(kernel.machine().now(), &kernel);
                kernel.machine().end_events();
                *outcome.borrow_mut() = Some((result, end));
            })
        };
        let time_limit = spec.time_limit;
        Self {
            simulation,
            kernel,
            sampler,
            outcome,
            main,
            time_limit,
            halted: None,
            is_over: false,
            checks_whole: checks != Checks::Sample,
        }
    }

    /// Whether the program has ended, or the kernel stopped the machine.
    pub(crate) const fn is_over(&self) -> bool {
        self.is_over
    }

    /// Goes on up to `time`, or to the end of the program.
    pub(crate) fn run_until(&mut self, time: Nanos) -> Result<(), RunError> {
        if self.is_over || time < self.simulation.machine().now() {
            return Ok(());
        }
        let ended = self.simulation.run_until_task_done(self.main, time.min(self.time_limit));
        match ended {
            Err(RunError::TimeLimit { .. }) if time < self.time_limit => Ok(()),
            ended => self.note(ended.map(drop)),
        }
    }

    /// Goes on by one event.
    pub(crate) fn step(&mut self) -> Result<(), RunError> {
        if self.is_over {
            return Ok(());
        }
        match self.simulation.step_towards(self.main, self.time_limit) {
            Ok(false) => Ok(()),
            ended => self.note(ended.map(drop)),
        }
    }

    fn note(&mut self, ended: Result<(), RunError>) -> Result<(), RunError> {
        match ended {
            Err(RunError::Halted { now }) => self.halted = Some(now),
            other => other?,
        }
        self.is_over = true;
        Ok(())
    }

    /// Goes on to the end of the program, and reads what it left.
    pub(crate) fn finish(mut self) -> Result<SimResult, SimError> {
        self.run_until(self.time_limit)?;
        let Self { kernel, sampler, outcome, halted, .. } = &self;
        let machine = kernel.machine();
        let some = machine.statistics().events / EVENTS_FOR_A_FRAME;
        let checked = kernel.mem(|mem| if self.checks_whole { mem.check() } else { mem.check_sample(some) });
        checked.map_err(SimError::Violation)?;
        if let Some(failure) = kernel.mem(|mem| mem.policy_failure()) {
            return Err(SimError::Policy(failure));
        }
        let oom_kills = kernel.oom_kills();
        let (outcome, end) = match *halted {
            Some(now) => {
                let mut sampler = sampler.borrow_mut();
                (Ok(sampler.kept.clone()), sampler.end(now, kernel))
            }
            None => outcome.borrow_mut().take().expect("the main task stores its outcome"),
        };
        let mut outcome = match outcome {
            // Half of a measurement is none; what was counted up to then is the result.
            Err(_) if !oom_kills.is_empty() => Outcome::default(),
            other => other?,
        };
        add_fragment_stalls(&mut outcome, end.fragment_stalls);
        let (columns, rows) = sampler.borrow().table();
        let Sampler { phases, vmstat_before, .. } = sampler.take();
        Ok(SimResult {
            outcome,
            oom_kills,
            vmstat_before,
            vmstat: end.vmstat,
            memcg: end.memcg,
            phases,
            columns,
            rows,
            stalls: machine.stalls().into_iter().filter(|stall| !is_idleness(stall)).collect(),
            waits: machine.waits(),
            sections: machine.sections(),
            events: machine.statistics().events,
            simulated: end.at,
        })
    }
}

fn add_fragment_stalls(outcome: &mut Outcome, stalls: Vec<u64>) {
    if !stalls.is_empty() {
        let samples = stalls.into_iter().map(|usec| usec as f64).collect();
        outcome.samples.insert(FRAGMENT_STALL_SAMPLES.to_owned(), samples);
    }
}

fn out_of_memory_at_start(errno: kernel::Errno) -> WorkloadError {
    let errno = match errno {
        kernel::Errno::NoMem => workload::Errno::NoMem,
        _ => workload::Errno::Killed,
    };
    WorkloadError::from(workload::SystemError::new("spawn", "workload", errno))
}

fn start_monitor(machine: &Sim, kernel: &SimKernel, sampler: &Rc<RefCell<Sampler>>, period: Nanos) {
    let (kernel, sampler, clock) = (kernel.clone(), Rc::clone(sampler), machine.clone());
    machine.spawn("monitor", None, async move {
        loop {
            sampler.borrow_mut().sample(clock.now(), &kernel);
            clock.sleep(period, WaitReason::Periodic).await;
        }
    });
}

/// Waits that tell nothing about memory.
fn is_idleness(stall: &Stall) -> bool {
    WaitKind::of(stall.reason) == WaitKind::Idle
}
