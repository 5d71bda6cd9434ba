//! The machine at work: takes an event, and polls the tasks that it frees.
//!
//! # Theory of operation
//! Programs are futures. While one is polled, no time passes: it charges debt into [`Core::debt`]
//! and ends its turn by leaving one [`Request`] and returning `Pending`. The loop takes the
//! request, and the scheduler (`machine/schedule.rs`) turns debt and request into events. There is one thing a
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
//! Read next: `sim.rs`, the other side of a poll; `simulation.rs`, the loop.

use std::cell::{Cell, RefCell, RefMut};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use kernel::machine::{KernelBuild, WaitReason, Woken};
use units::{CpuId, Nanos};

use crate::event::{Class, Entry};
use crate::hardware::Hardware;
use crate::hardware::cost::CostTable;
use crate::machine::state::State;
use crate::machine::task::{NONE, Place, SWAPPER, Then};

/// Events between two looks at the stop flag; also the cadence of the progress hook.
pub(super) const LOOK_UP_EVERY: u32 = 4096;
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
    pub(crate) build: KernelBuild,
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
    pub(super) budget: Cell<u32>,
    pub(super) events: Cell<u64>,
    /// How often programs went back to user mode.
    pub(super) returns: Cell<u64>,
    /// When the longest work in user mode ends that a program has begun.
    pub(super) works_until: Cell<u64>,
    event_hash: Cell<u64>,
    /// The end of the present run.
    pub(super) limit: Cell<u64>,
    /// The kernel stopped the machine.
    halted: Cell<bool>,
    /// Requests may wait for a program to leave the kernel.
    pub(super) holds_requests: Cell<bool>,
    /// Off where every event is looked at, and in the test that compares a run with and without.
    pub(super) fast_path: Cell<bool>,
    pub(crate) state: RefCell<State>,
    pub(crate) on_io_done: RefCell<Option<CompletionHandler>>,
    /// The task that is left out: see `Simulation::leave_out`.
    pub(crate) left_out: RefCell<Option<String>>,
}

/// What is called with the tag of every completed request.
pub(crate) type CompletionHandler = Rc<dyn Fn(u64)>;

/// What one step of the loop came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    Event,
    AwaitedTaskDone,
    NothingLeft,
    LimitReached,
    Halted,
}

impl Core {
    pub(super) fn new(hardware: Hardware) -> Self {
        Self {
            costs: hardware.costs.clone(),
            cpu_count: hardware.cpus,
            hz: hardware.hz,
            build: hardware.build,
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
            returns: Cell::new(0),
            works_until: Cell::new(0),
            event_hash: Cell::new(0),
            limit: Cell::new(0),
            halted: Cell::new(false),
            holds_requests: Cell::new(false),
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
            task.share.run(state.sharing.counted(self.now.get(), ran));
        }
    }

    /// To be called when a program or handler may have added an event, or woken a task that preempts.
    pub(crate) fn lower_horizon(&self, state: &State) {
        if state.cpus[usize::from(self.cpu.get())].resched {
            self.horizon.set(0);
        }
        let before_next = state.agenda.next_time().min(state.held_until).saturating_sub(1);
        self.horizon.set(self.horizon.get().min(before_next));
    }

    /// Takes the next event, unless the run is over.
    pub(super) fn step(&self) -> Step {
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
        state.agenda.take(entry);
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

/// What a run has done so far. Two runs of the same inputs have equal statistics.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statistics {
    /// Time since boot.
    pub now: Nanos,
    /// Events processed: stretches of CPU work, context switches, timers, completions.
    pub events: u64,
    /// A hash over (time, class, target) of every event in order.
    pub event_hash: u64,
    /// Times that a CPU took up a task.
    pub context_switches: u64,
    /// For each CPU, the time that it worked off what tasks had charged.
    pub cpu_busy: Vec<Nanos>,
    /// CPU time charged by interrupts that found their CPU idle; it delays nobody.
    pub idle_interrupt_time: Nanos,
    /// Tasks started.
    pub tasks_started: u64,
    /// Tasks ended.
    pub tasks_done: u64,
}
