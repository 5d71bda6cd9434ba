//! [`Sim`]: the machine as the kernel sees it, and as tests and monitors look into it.
//!
//! Every call that takes time leaves a request and suspends; `core.rs` takes it from there.

use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use kernel::Kernel;
use kernel::machine::{
    CostOp, GroupId, IoRequest, KernelBuild, Machine, Pressure, QueueId, TaskId, WaitReason, Woken,
};
use kernel::section::{Section, Whom};
use mm::Memory;
use mm::base::event::{Detail, Home};
use mm::base::ids::{AnonId, MappingId};
use units::{CpuId, Nanos};

use crate::accounts::sections::SectionTime;
use crate::accounts::waits::Waits;
use crate::devices::device::DeviceCounters;
use crate::engine::core::{Core, Request, Statistics};
use crate::engine::tracer::SimTrace;
use crate::event::FOREVER;
use crate::machine::readings::{Stall, Unfinished};
use crate::machine::task::Program;
use crate::trace::log::{ANONYMOUS, EventLog, Sink};

/// The kernel of a simulated machine.
pub type SimKernel = Kernel<Sim, SimTrace>;

/// The memory of a simulated machine.
pub type SimMemory = Memory<SimTrace>;

/// A handle of a simulated machine; clones are handles of the same one.
#[derive(Clone)]
pub struct Sim {
    core: Rc<Core>,
}

impl Sim {
    pub(crate) fn new(core: Rc<Core>) -> Self {
        Self { core }
    }

    /// A program leaves the kernel, or will when its debt has passed.
    fn begin_held(&self) {
        let mut state = self.core.state.borrow_mut();
        state.begin_held(self.core.now.get() + self.core.debt.get());
        self.core.lower_horizon(&state);
    }

    /// What the run has done so far. Of the program that is running now, what it has done since
    /// its turn began is not yet in the CPU's busy time.
    pub fn statistics(&self) -> Statistics {
        self.core.statistics()
    }

    /// Time that a task has been on a CPU, without its present turn if it runs now. What an interrupt took
    /// there is part of it, as where the kernel accounts by ticks.
    pub fn cpu_time(&self, task: TaskId) -> Nanos {
        Nanos(self.core.state.borrow().tasks[task.0 as usize].ran)
    }

    /// How often programs went back to user mode so far.
    pub(crate) fn returns(&self) -> u64 {
        self.core.returns.get()
    }

    /// A program works for so long in user mode from now on.
    pub(crate) fn works_for(&self, length: Nanos) {
        self.core.debt.set(self.core.debt.get() + length.0);
        let until = self.core.now.get().saturating_add(length.0);
        self.core.works_until.set(self.core.works_until.get().max(until));
    }

    /// When the longest such work ends, if nobody takes the CPU away.
    pub(crate) fn works_until(&self) -> Nanos {
        Nanos(self.core.works_until.get())
    }

    /// What an operation costs here.
    pub(crate) fn cost(&self, op: CostOp) -> Nanos {
        self.core.costs.get(op)
    }

    /// All waits by task and reason, the longest total first. A wait that lasts counts up to now.
    pub fn stalls(&self) -> Vec<Stall> {
        self.core.state.borrow().stalls(self.core.now.get())
    }

    /// All waits by phase, task, reason, end and futility. A wait that lasts counts up to now.
    pub fn waits(&self) -> Vec<Waits> {
        self.core.state.borrow().waits(self.core.now.get())
    }

    /// Time in sections by phase, section and task. A stay that lasts counts up to now.
    pub fn sections(&self) -> Vec<SectionTime> {
        self.core.state.borrow().sections(self.core.now.get())
    }

    /// A phase of the program is over: waits that end from now on are of the next one.
    pub fn end_phase(&self) {
        self.core.state.borrow_mut().end_phase();
    }

    /// The tasks that have not ended and what they do now, by number.
    pub fn unfinished(&self) -> Vec<Unfinished> {
        self.core.state.borrow().unfinished()
    }

    /// What a device has done so far; `None` when the machine has no such device.
    pub fn device_counters(&self, device: u16) -> Option<DeviceCounters> {
        self.core.state.borrow().devices.get(usize::from(device)).map(|device| device.counters)
    }

    /// Checks every invariant of the machine in time linear in its size.
    ///
    /// # Panics
    /// When one does not hold, which is a bug of this crate.
    pub fn check(&self) {
        self.core.state.borrow().check();
    }

    /// The pressure of a group as a monitor of its own reads it: nothing changes for programs.
    pub(crate) fn pressure_aside(&self, group: GroupId) -> Pressure {
        self.core.state.borrow_mut().pressure(self.core.now.get(), group, false)
    }

    /// Where rows of events go, if anybody wants them.
    pub(crate) fn event_log(&self) -> Option<Rc<EventLog>> {
        self.core.state.borrow().log.clone()
    }

    /// The pages of `mapping` are from now on those of the file at `path`.
    pub(crate) fn name_mapping(&self, mapping: MappingId, path: &str) {
        self.name_home((Home::File(mapping), mapping.0), path);
    }

    /// The pages of anonymous memory are from now on called so: `anon:TASK/N`, N the number of the mapping.
    pub(crate) fn name_anon(&self, anon: AnonId, task: &str, number: usize) {
        self.name_home((Home::Anon(anon), anon.0), &format!("{ANONYMOUS}{task}/{number}"));
    }

    fn name_home(&self, home: (Home, u32), path: &str) {
        if let Some(log) = &self.core.state.borrow().log {
            log.name_home(self.core.now.get(), self.core.task.get(), home, path);
        }
    }

    /// Hands the last rows of a trace over: events from here on are none of the run.
    pub fn end_events(&self) {
        if let Some(log) = self.event_log() {
            log.close();
        }
    }

    /// A tracer for the kernel, whose rows and those of the machine go to `sink`. To be called before anything
    /// else is; rows come in chunks, and what is left of them with [`Self::end_events`].
    pub fn trace(&self, detail: Detail, sink: Sink) -> SimTrace {
        let log = EventLog::new(sink);
        self.core.state.borrow_mut().log = Some(Rc::clone(&log));
        SimTrace::new(Rc::clone(&self.core), log, detail)
    }

    /// Ends the running task's turn with a request.
    fn suspend(&self, request: Request) -> Suspend<'_> {
        Suspend { core: &self.core, request: Some(request) }
    }
}

/// Leaves its request at the first poll; is ready, with how the wait ended, at the second.
struct Suspend<'a> {
    core: &'a Core,
    request: Option<Request>,
}

impl Future for Suspend<'_> {
    type Output = Woken;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Woken> {
        let Some(request) = self.request.take() else { return Poll::Ready(self.core.outcome.get()) };
        let left = self.core.request.replace(request);
        assert!(left == Request::Nothing, "a task awaits two things at once");
        Poll::Pending
    }
}

impl Machine for Sim {
    #[inline]
    fn now(&self) -> Nanos {
        Nanos(self.core.now.get())
    }

    fn cpu_count(&self) -> u16 {
        self.core.cpu_count
    }

    fn hz(&self) -> u64 {
        self.core.hz
    }

    fn build(&self) -> KernelBuild {
        self.core.build
    }

    fn device_count(&self) -> u16 {
        self.core.device_count
    }

    fn is_free(&self, op: CostOp) -> bool {
        self.core.costs.get(op) == Nanos::ZERO
    }

    /// In interrupt context, the CPU that submitted the request; at boot, CPU 0.
    #[inline]
    fn current_cpu(&self) -> CpuId {
        CpuId(self.core.cpu.get())
    }

    /// In interrupt context and at boot, task 0: the swapper, which no call of `spawn` returns.
    #[inline]
    fn current_task(&self) -> TaskId {
        TaskId(self.core.task.get())
    }

    fn enter(&self, section: Section) {
        let now = self.core.now.get() + self.core.debt.get();
        let (mut state, task) = (self.core.state.borrow_mut(), self.core.task.get());
        state.enter_section(now, task, section);
        if let Section::Site(site) = section {
            state.stall_at(now, task, site, true);
        }
    }

    fn leave(&self, section: Section) {
        let now = self.core.now.get() + self.core.debt.get();
        let (mut state, task) = (self.core.state.borrow_mut(), self.core.task.get());
        state.leave_section(now, task, section);
        if let Section::Site(site) = section {
            state.stall_at(now, task, site, false);
        }
    }

    fn blame(&self, whom: Option<Whom>) {
        self.core.state.borrow_mut().blame(self.core.task.get(), whom);
    }

    fn stall(&self, begins: bool) {
        let now = self.core.now.get() + self.core.debt.get();
        self.core.state.borrow_mut().stall(now, self.core.task.get(), begins);
    }

    fn add_group(&self, group: GroupId, parent: GroupId) {
        self.core.state.borrow_mut().add_group(self.core.now.get(), group, parent);
    }

    fn join_group(&self, group: GroupId) {
        let now = self.core.now.get();
        self.core.state.borrow_mut().join_group(now, self.core.task.get(), group);
    }

    fn pressure(&self, group: GroupId) -> Pressure {
        self.core.state.borrow_mut().pressure(self.core.now.get(), group, true)
    }

    /// In interrupt context the time is stolen from the task on that CPU; at boot it is ignored.
    #[inline]
    fn charge(&self, op: CostOp, count: u64) {
        self.core.debt.set(self.core.debt.get() + self.core.costs.get(op).0 * count);
    }

    #[inline]
    async fn cond_resched(&self) {
        if !self.core.pass_debt_at_once() {
            let _ = self.suspend(Request::GiveWay { to_user: false }).await;
        }
    }

    #[inline]
    async fn return_to_user(&self) {
        self.core.returns.set(self.core.returns.get() + 1);
        if self.core.holds_requests.replace(false) {
            self.begin_held();
            // The thread that serves them runs first.
            self.charge(CostOp::ContextSwitch, 1);
        }
        if !self.core.pass_debt_at_once() {
            let _ = self.suspend(Request::GiveWay { to_user: true }).await;
        }
    }

    #[inline]
    async fn sleep(&self, length: Nanos, reason: WaitReason) {
        let _ = self.suspend(Request::Block { reason, timeout: length.0 }).await;
    }

    fn new_queue(&self) -> QueueId {
        self.core.state.borrow_mut().new_queue()
    }

    #[inline]
    async fn wait(&self, queue: QueueId, reason: WaitReason, timeout: Option<Nanos>) -> Woken {
        self.core.state.borrow_mut().join(queue, self.core.task.get());
        let timeout = timeout.map_or(FOREVER, |timeout| timeout.0);
        self.suspend(Request::Block { reason, timeout }).await
    }

    fn wake_all(&self, queue: QueueId) -> usize {
        let mut state = self.core.state.borrow_mut();
        self.core.book(&mut state);
        let woken = state.wake_all(self.core.now.get(), queue);
        self.core.lower_horizon(&state);
        woken
    }

    fn has_waiters(&self, queue: QueueId) -> bool {
        self.core.state.borrow().has_waiters(queue)
    }

    fn spawn(&self, name: &str, cpu: Option<CpuId>, program: impl Future<Output = ()> + 'static) -> TaskId {
        let mut state = self.core.state.borrow_mut();
        let cpu = cpu.map(|CpuId(number)| number);
        let is_left_out = self.core.left_out.borrow().as_deref() == Some(name);
        let program: Program = if is_left_out { Box::pin(async {}) } else { Box::pin(program) };
        self.core.book(&mut state);
        let index = state.start(self.core.now.get(), name, cpu, program);
        self.core.lower_horizon(&state);
        TaskId(index)
    }

    fn halt(&self) {
        self.core.halt();
    }

    fn submit(&self, request: IoRequest) {
        let mut state = self.core.state.borrow_mut();
        let sent = self.core.now.get() + self.core.debt.get();
        if let Some(log) = &state.log {
            log.request(self.core.now.get(), self.core.task.get(), request);
        }
        state.submit(sent, request, self.current_cpu());
        self.core.holds_requests.set(!state.held.is_empty());
        self.core.lower_horizon(&state);
    }

    fn on_io_done(&self, handler: Rc<dyn Fn(u64)>) {
        let before = self.core.on_io_done.replace(Some(handler));
        assert!(before.is_none(), "the handler of completions is registered once");
    }
}
