//! The owner of a run: the loop over events, where it ends, and who looks on.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use kernel::machine::TaskId;
use units::Nanos;

use crate::engine::core::{Core, LOOK_UP_EVERY, Step};
use crate::engine::sim::Sim;
use crate::hardware::{Hardware, HardwareError};
use crate::machine::readings::{Doing, Unfinished};
use crate::machine::task::NONE;

/// How far a run is, for the progress hook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Simulated time.
    pub now: Nanos,
    /// Events processed.
    pub events: u64,
}

/// Why a run ended early.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RunError {
    /// Nothing is left to happen, and the awaited task has not ended.
    #[error("deadlock at {now}: nothing is left to happen and `{task}` has not ended{}", list(unfinished))]
    Deadlock {
        /// When.
        now: Nanos,
        /// The awaited task.
        task: String,
        /// Every task that has not ended.
        unfinished: Vec<Unfinished>,
    },
    /// The caller's cap on simulated time was reached.
    #[error("not done after {limit} of simulated time{}", list(unfinished))]
    TimeLimit {
        /// The cap.
        limit: Nanos,
        /// Every task that has not ended.
        unfinished: Vec<Unfinished>,
    },
    /// Nobody gets anywhere any more.
    #[error("no progress since {since}: {why}{}", list(unfinished))]
    NoProgress {
        /// Since when.
        since: Nanos,
        /// Who waits for what, and what is left of memory.
        why: String,
        /// Whether there is memory that could be reclaimed: Linux would go on.
        hope: bool,
        /// Every task that has not ended.
        unfinished: Vec<Unfinished>,
    },
    /// The caller's cap on events was reached.
    #[error("not done after {events} events, at {now} of simulated time{}", list(unfinished))]
    EventLimit {
        /// The events.
        events: u64,
        /// When.
        now: Nanos,
        /// Every task that has not ended.
        unfinished: Vec<Unfinished>,
    },
    /// The kernel stopped the machine.
    #[error("the machine was halted at {now}")]
    Halted {
        /// When.
        now: Nanos,
    },
    /// The stop flag was set.
    #[error("stopped at {now} of simulated time")]
    Stopped {
        /// When.
        now: Nanos,
    },
}

fn list(unfinished: &[Unfinished]) -> String {
    let line = |unfinished: &Unfinished| {
        let Unfinished { task: TaskId(number), name, doing } = unfinished;
        let doing = match doing {
            Doing::Waiting { reason, since } => format!("waits for {reason:?} since {since}"),
            Doing::Queued(cpu) => format!("is queued for cpu{cpu}"),
            Doing::OnCpu(cpu) => format!("is on cpu{cpu}"),
        };
        format!("\n  `{name}` (task {number}) {doing}")
    };
    unfinished.iter().map(line).collect()
}

type ProgressHook = Box<dyn FnMut(Progress)>;
type EventHook = Box<dyn FnMut()>;
type PatienceHook = Box<dyn FnMut() -> Result<(), RunError>>;

/// A machine and its run: boots, runs, and drops every program at the end.
pub struct Simulation {
    core: Rc<Core>,
    stop: Option<Arc<AtomicBool>>,
    progress: Option<ProgressHook>,
    after_event: Option<EventHook>,
    patience: Option<PatienceHook>,
    events_max: u64,
}

impl Simulation {
    /// Boots a machine; time is 0.
    ///
    /// # Errors
    /// When the hardware makes no sense.
    pub fn new(hardware: Hardware) -> Result<Self, HardwareError> {
        hardware.validate()?;
        let core = Rc::new(Core::new(hardware));
        let (stop, progress, after_event, patience) = (None, None, None, None);
        Ok(Self { core, stop, progress, after_event, patience, events_max: u64::MAX })
    }

    /// The handle for the kernel and its tasks. Before the first run it serves to set up queues,
    /// the completion handler and the first tasks; what is charged then takes no time.
    pub fn machine(&self) -> Sim {
        Sim::new(Rc::clone(&self.core))
    }

    /// Lets a task of this name end as soon as it is started, without having done anything: plants a hang,
    /// to see that it is found.
    pub fn leave_out(&mut self, name: &str) {
        self.core.left_out.replace(Some(name.to_owned()));
    }

    /// Ends a run with [`RunError::Stopped`] soon after `stop` is set.
    pub fn stop_on(&mut self, stop: Arc<AtomicBool>) {
        self.stop = Some(stop);
    }

    /// Calls `hook` every few thousand events.
    pub fn on_progress(&mut self, hook: impl FnMut(Progress) + 'static) {
        self.progress = Some(Box::new(hook));
    }

    /// Asks `hook` every few thousand events whether the run shall go on.
    pub(crate) fn goes_on_while(&mut self, hook: impl FnMut() -> Result<(), RunError> + 'static) {
        self.patience = Some(Box::new(hook));
    }

    /// Ends a run with [`RunError::EventLimit`] soon after so many events.
    pub(crate) fn limit_events(&mut self, events: u64) {
        self.events_max = events;
    }

    /// Calls `hook` after every single event, when no program runs: for checks of the whole state.
    /// The fast path, on which several events pass within one turn of a program, is off then; the
    /// run is the same without it.
    pub fn after_every_event(&mut self, hook: impl FnMut() + 'static) {
        self.core.fast_path.set(false);
        self.after_event = Some(Box::new(hook));
    }

    /// Runs everything that happens up to `time`, which it is then.
    ///
    /// # Errors
    /// [`RunError::Stopped`].
    pub fn run_until(&mut self, time: Nanos) -> Result<(), RunError> {
        self.run(NONE, time)?;
        self.core.now.set(self.core.now.get().max(time.0));
        Ok(())
    }

    /// Runs until nothing is left to happen: every task has ended or waits for ever. Returns the
    /// time of the last event.
    ///
    /// # Errors
    /// [`RunError::TimeLimit`] when there is more after `limit`; [`RunError::Stopped`].
    pub fn run_until_idle(&mut self, limit: Nanos) -> Result<Nanos, RunError> {
        match self.run(NONE, limit)? {
            Step::LimitReached => Err(self.time_limit(limit)),
            _ => Ok(Nanos(self.core.now.get())),
        }
    }

    /// Runs until a task has ended. Returns when that was.
    ///
    /// # Errors
    /// [`RunError::Deadlock`], [`RunError::TimeLimit`], [`RunError::Halted`], [`RunError::Stopped`].
    ///
    /// # Panics
    /// When the task is none of this machine.
    pub fn run_until_task_done(&mut self, task: TaskId, limit: Nanos) -> Result<Nanos, RunError> {
        let index = self.core.state.borrow().index(task);
        let step = self.run(task.0, limit)?;
        self.ended(step, index, limit)
    }

    /// What it means for the awaited task that the run ended so.
    fn ended(&self, step: Step, index: usize, limit: Nanos) -> Result<Nanos, RunError> {
        match step {
            Step::LimitReached => Err(self.time_limit(limit)),
            Step::Halted => Err(RunError::Halted { now: Nanos(self.core.now.get()) }),
            Step::NothingLeft => {
                let state = self.core.state.borrow();
                let task = state.records[index].name.clone();
                Err(RunError::Deadlock {
                    now: Nanos(self.core.now.get()),
                    task,
                    unfinished: state.unfinished(),
                })
            }
            Step::Event | Step::AwaitedTaskDone => Ok(Nanos(self.core.now.get())),
        }
    }

    /// Goes on by one event, unless a task has ended, which it returns. The fast path is off meanwhile, so that it is
    /// one event and no more; the run is the same without it.
    ///
    /// # Errors
    /// As [`Simulation::run_until_task_done`].
    pub(crate) fn step_towards(&mut self, task: TaskId, limit: Nanos) -> Result<bool, RunError> {
        let index = self.core.state.borrow().index(task);
        self.core.state.borrow_mut().awaited = task.0;
        self.core.limit.set(limit.0);
        if self.core.budget.get() == 0 {
            self.look_up()?;
        }
        let fast_path = self.core.fast_path.replace(false);
        let step = self.core.step();
        self.core.fast_path.set(fast_path);
        match step {
            Step::Event => Ok(false),
            step => self.ended(step, index, limit).map(|_| true),
        }
    }

    fn run(&mut self, awaited: u32, limit: Nanos) -> Result<Step, RunError> {
        self.core.state.borrow_mut().awaited = awaited;
        self.core.limit.set(limit.0);
        loop {
            if self.core.budget.get() == 0 {
                self.look_up()?;
            }
            let step = self.core.step();
            if step != Step::Event {
                return Ok(step);
            }
            if let Some(hook) = &mut self.after_event {
                hook();
            }
        }
    }

    fn look_up(&mut self) -> Result<(), RunError> {
        let now = Nanos(self.core.now.get());
        if self.stop.as_ref().is_some_and(|stop| stop.load(Ordering::Relaxed)) {
            return Err(RunError::Stopped { now });
        }
        self.core.budget.set(LOOK_UP_EVERY);
        let events = self.core.events.get();
        if let Some(hook) = &mut self.progress {
            hook(Progress { now, events });
        }
        if events > self.events_max {
            let unfinished = self.core.state.borrow().unfinished();
            return Err(RunError::EventLimit { events, now, unfinished });
        }
        if let Some(hook) = &mut self.patience {
            hook()?;
        }
        Ok(())
    }

    fn time_limit(&self, limit: Nanos) -> RunError {
        RunError::TimeLimit { limit, unfinished: self.core.state.borrow().unfinished() }
    }

    #[cfg(test)]
    pub(crate) fn without_fast_path(self) -> Self {
        self.core.fast_path.set(false);
        self
    }

    /// One event, for tests that check the state after each.
    #[cfg(test)]
    pub(crate) fn one_event(&mut self) -> bool {
        self.core.limit.set(u64::MAX);
        self.core.budget.set(LOOK_UP_EVERY);
        self.core.step() == Step::Event
    }
}

impl Drop for Simulation {
    /// Drops every program, and what it holds, in the order of the tasks. Programs hold handles of
    /// the machine that holds them; this breaks the circle.
    fn drop(&mut self) {
        let mut index = 0;
        loop {
            let program = match self.core.state.borrow_mut().tasks.get_mut(index) {
                Some(task) => task.program.take(),
                None => break,
            };
            drop(program);
            index += 1;
        }
        let handler = self.core.on_io_done.take();
        drop(handler);
    }
}
