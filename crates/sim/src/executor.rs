//! The loop that takes events in order and polls the tasks they free; the owner of a run.
//!
//! # Theory of operation
//! Programs are futures. While one is polled, no time passes: it charges debt into [`Core::debt`]
//! and ends its turn by leaving one [`Request`] and returning `Pending`. The loop takes the
//! request, and the scheduler (`cpu.rs`) turns debt and request into events. There is one thing a
//! program waits for at a time; nothing is woken through a `Waker`.
//!
//! *Fast path.* When a program lets its debt pass, and it ends before anything else is due and
//! before its slice ends, the loop would do nothing but add an event, take it, and poll the same
//! program. [`Core::pass_debt_at_once`] does the same to time, statistics and event hash without
//! leaving the program. A run is the same with and without it; a test compares the two.
//!
//! Ground rules: no borrow of [`State`] while a program is polled or dropped, or a handler runs.
//! A program is dropped when it has ended, or with the run, never in between.
//!
//! Read next: `machine.rs`, the other side of a poll.

use std::cell::{Cell, RefCell, RefMut};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};

use kernel::machine::{TaskId, WaitReason, Woken};
use units::{CpuId, Nanos};

use crate::cost::CostTable;
use crate::event::{Class, Entry};
use crate::hardware::{Hardware, HardwareError};
use crate::machine::Sim;
use crate::state::{State, Statistics};
use crate::task::{NONE, Place, SWAPPER, Then};
use crate::wait::{Doing, Unfinished};

/// Events between two looks at the stop flag; also the cadence of the progress hook.
const LOOK_UP_EVERY: u32 = 4096;
/// A program that gives way so often in one turn without having charged anything is stuck.
const GIVES_WAY_FOR_NOTHING: u32 = 1 << 24;

/// What a program asks for when it ends its turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Request {
    /// Nothing: it must not end its turn so.
    Nothing,
    /// To let its debt pass and go on, on its way to user mode or inside the kernel.
    GiveWay { to_user: bool },
    /// To let its debt pass and sleep until it is woken or so many nanoseconds have passed.
    Block { reason: WaitReason, timeout: u64 },
}

/// The machine: hot cells that a program's turn touches, and the [`State`] behind a `RefCell`.
pub(crate) struct Core {
    pub(crate) costs: CostTable,
    pub(crate) cpu_count: u16,
    pub(crate) hz: u64,
    pub(crate) device_count: u16,
    pub(crate) now: Cell<u64>,
    pub(crate) task: Cell<u32>,
    pub(crate) cpu: Cell<u16>,
    /// What the program has charged in this turn and that has not passed.
    pub(crate) debt: Cell<u64>,
    pub(crate) request: Cell<Request>,
    /// How the wait ended that the program resumes from.
    pub(crate) outcome: Cell<Woken>,
    /// The last nanosecond at which nothing else is due and the run may still be.
    horizon: Cell<u64>,
    /// Copies of the CPU's figures during a turn, moved by the fast path.
    slice_left: Cell<u64>,
    busy: Cell<u64>,
    gave_way_for_nothing: Cell<u32>,
    /// Events until the next look at the stop flag.
    budget: Cell<u32>,
    events: Cell<u64>,
    event_hash: Cell<u64>,
    /// The end of the present run.
    limit: Cell<u64>,
    /// The kernel stopped the machine.
    halted: Cell<bool>,
    /// Off where every event is looked at, and in the test that compares a run with and without.
    fast_path: Cell<bool>,
    pub(crate) state: RefCell<State>,
    pub(crate) on_io_done: RefCell<Option<CompletionHandler>>,
    /// The task that is left out: see [`Simulation::leave_out`].
    pub(crate) left_out: RefCell<Option<String>>,
}

/// What is called with the tag of every completed request.
pub(crate) type CompletionHandler = Rc<dyn Fn(u64)>;

/// What one step of the loop came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Event,
    AwaitedTaskDone,
    NothingLeft,
    LimitReached,
    Halted,
}

impl Core {
    fn new(hardware: Hardware) -> Self {
        Self {
            costs: hardware.costs.clone(),
            cpu_count: hardware.cpus,
            hz: hardware.hz,
            device_count: u16::try_from(hardware.devices.len()).expect("requests name devices by 16 bits"),
            now: Cell::new(0),
            task: Cell::new(SWAPPER),
            cpu: Cell::new(0),
            debt: Cell::new(0),
            request: Cell::new(Request::Nothing),
            outcome: Cell::new(Woken::Signalled),
            horizon: Cell::new(0),
            slice_left: Cell::new(0),
            busy: Cell::new(0),
            gave_way_for_nothing: Cell::new(0),
            budget: Cell::new(LOOK_UP_EVERY),
            events: Cell::new(0),
            event_hash: Cell::new(0),
            limit: Cell::new(0),
            halted: Cell::new(false),
            fast_path: Cell::new(true),
            state: RefCell::new(State::new(hardware)),
            on_io_done: RefCell::new(None),
            left_out: RefCell::new(None),
        }
    }

    /// Lets the running program's debt pass without ending its turn, if nothing else would happen
    /// meanwhile. Returns whether no debt is left.
    #[inline]
    pub(crate) fn pass_debt_at_once(&self) -> bool {
        let debt = self.debt.get();
        if debt == 0 {
            return self.give_way_for_nothing();
        }
        let end = self.now.get() + debt;
        if end > self.horizon.get() || debt >= self.slice_left.get() || self.budget.get() == 0 {
            return false;
        }
        self.debt.set(0);
        self.now.set(end);
        self.slice_left.set(self.slice_left.get() - debt);
        self.busy.set(self.busy.get() + debt);
        self.gave_way_for_nothing.set(0);
        self.count_event(end, Class::CpuSegment, u32::from(self.cpu.get()), self.task.get());
        true
    }

    #[inline]
    fn give_way_for_nothing(&self) -> bool {
        let times = self.gave_way_for_nothing.get() + 1;
        self.gave_way_for_nothing.set(times);
        assert!(times < GIVES_WAY_FOR_NOTHING, "task {} loops without charging anything", self.task.get());
        true
    }

    #[inline]
    fn count_event(&self, time: u64, class: Class, target: u32, task: u32) {
        self.budget.set(self.budget.get() - 1);
        self.events.set(self.events.get() + 1);
        let what = (u64::from(target) << 32) ^ (u64::from(task) << 2) ^ (class as u64);
        let mixed = (self.event_hash.get().rotate_left(23) ^ time).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ what;
        self.event_hash.set(mixed.wrapping_mul(0xbf58_476d_1ce4_e5b9));
    }

    /// Books what passed on the fast path to the running task and its CPU: before anybody compares.
    pub(crate) fn book(&self, state: &mut State) {
        let ran = self.busy.replace(0);
        if ran > 0 {
            state.cpus[usize::from(self.cpu.get())].busy += ran;
            let task = &mut state.tasks[self.task.get() as usize];
            task.ran += ran;
            task.share.run(ran);
        }
    }

    /// To be called when a program or handler may have added an event, or woken a task that preempts.
    pub(crate) fn lower_horizon(&self, state: &State) {
        if state.cpus[usize::from(self.cpu.get())].resched {
            self.horizon.set(0);
        }
        let before_next = state.agenda.next_time().saturating_sub(1);
        self.horizon.set(self.horizon.get().min(before_next));
    }

    fn step(&self) -> Step {
        let mut state = self.state.borrow_mut();
        if state.awaited != NONE && state.tasks[state.awaited as usize].place == Place::Done {
            return Step::AwaitedTaskDone;
        }
        if self.halted.get() {
            return Step::Halted;
        }
        let Some(entry) = state.next_event() else { return Step::NothingLeft };
        if entry.time() > self.limit.get() {
            return Step::LimitReached;
        }
        state.agenda.take();
        assert!(entry.time() >= self.now.get(), "an event lies in the past");
        self.now.set(entry.time());
        match entry.class() {
            Class::CpuSegment => self.cpu_event(state, entry),
            Class::Timer => {
                self.count_event(entry.time(), Class::Timer, entry.target(), entry.target());
                state.timer_fires(entry.time(), entry.target());
            }
            Class::DeviceDone => self.interrupt(state, entry),
        }
        Step::Event
    }

    fn cpu_event<'a>(&'a self, mut state: RefMut<'a, State>, entry: Entry) {
        let target = entry.target();
        let cpu = u16::try_from(target).expect("a CPU number");
        self.count_event(entry.time(), Class::CpuSegment, target, state.cpus[usize::from(cpu)].current);
        let mut ready = state.segment_ends(entry.time(), cpu);
        while let Some(index) = ready {
            state = self.turn(state, index, cpu);
            ready = state.go_on(self.now.get(), cpu);
        }
    }

    /// Polls a program on its CPU until it ends its turn; leaves debt and intent in its task.
    fn turn<'a>(&'a self, mut state: RefMut<'a, State>, index: u32, cpu: u16) -> RefMut<'a, State> {
        let task = &mut state.tasks[index as usize];
        let mut program = task.program.take().expect("a task on a CPU has a program");
        self.outcome.set(task.woken.unwrap_or(Woken::Signalled));
        self.task.set(index);
        self.cpu.set(cpu);
        self.debt.set(0);
        self.busy.set(0);
        self.gave_way_for_nothing.set(0);
        self.slice_left.set(state.cpus[usize::from(cpu)].slice_left);
        self.horizon.set(if self.fast_path.get() { self.limit.get() } else { 0 });
        self.lower_horizon(&state);
        drop(state);

        let ended = program.as_mut().poll(&mut Context::from_waker(Waker::noop())) == Poll::Ready(());
        let program = if ended {
            drop(program);
            None
        } else {
            Some(program)
        };

        let mut state = self.state.borrow_mut();
        let task = &mut state.tasks[index as usize];
        task.program = program;
        task.debt = self.debt.replace(0);
        task.woken = None;
        task.then = match self.request.replace(Request::Nothing) {
            _ if ended => Then::End,
            Request::GiveWay { to_user } => Then::Resume { to_user },
            Request::Block { reason, timeout } => Then::Block { reason, timeout },
            Request::Nothing => panic!("task {index} awaits something that is not of this machine"),
        };
        let on_cpu = &mut state.cpus[usize::from(cpu)];
        on_cpu.slice_left = self.slice_left.get();
        self.book(&mut state);
        self.task.set(SWAPPER);
        state
    }

    /// A request is complete: calls the handler on the CPU that submitted it.
    fn interrupt(&self, mut state: RefMut<'_, State>, entry: Entry) {
        self.count_event(entry.time(), Class::DeviceDone, entry.target(), entry.detail());
        let completed = state.complete(entry.time(), entry.target(), entry.detail());
        drop(state);
        let handler = self.on_io_done.borrow().clone();
        let CpuId(cpu) = completed.pending.cpu;
        self.cpu.set(cpu);
        self.debt.set(0);
        if let Some(handler) = handler {
            completed.pending.sent().for_each(|sent| handler(sent.tag));
        }
        let charged = self.debt.replace(0);
        if charged > 0 {
            self.state.borrow_mut().steal_time(cpu, charged);
        }
    }

    /// Nothing happens from now on.
    pub(crate) fn halt(&self) {
        self.halted.set(true);
    }

    pub(crate) fn statistics(&self) -> Statistics {
        let state = self.state.borrow();
        Statistics {
            now: Nanos(self.now.get()),
            events: self.events.get(),
            event_hash: self.event_hash.get(),
            context_switches: state.cpus.iter().map(|cpu| cpu.switches).sum(),
            cpu_busy: state.cpus.iter().map(|cpu| Nanos(cpu.busy)).collect(),
            idle_interrupt_time: Nanos(state.idle_interrupt_time),
            tasks_started: state.tasks.len() as u64 - 1,
            tasks_done: state.tasks_done,
        }
    }
}

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

/// A machine and its run: boots, runs, and drops every program at the end.
pub struct Simulation {
    core: Rc<Core>,
    stop: Option<Arc<AtomicBool>>,
    progress: Option<ProgressHook>,
    after_event: Option<EventHook>,
}

impl Simulation {
    /// Boots a machine; time is 0.
    ///
    /// # Errors
    /// When the hardware makes no sense.
    pub fn new(hardware: Hardware) -> Result<Self, HardwareError> {
        hardware.validate()?;
        Ok(Self { core: Rc::new(Core::new(hardware)), stop: None, progress: None, after_event: None })
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
        if let Some(hook) = &mut self.progress {
            hook(Progress { now, events: self.core.events.get() });
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
