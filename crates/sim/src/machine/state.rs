//! The state of the machine between two events: agenda, tasks, CPUs, wait queues, devices.
//!
//! What happens to it is in the files of their concepts: `inside.rs`, `schedule.rs`, `wait.rs`; `readings.rs` and
//! `check.rs` look at it. All of it is synchronous, takes the time as an argument, and never calls into a program
//! or a handler: that is `engine/core.rs`'s part, which holds no borrow of this while it does.

use std::rc::Rc;

use kernel::machine::{IoKind, IoRequest, TaskId};
use mm::version::rules::Preemption;
use units::{CpuId, Nanos};

use crate::accounts::pressure::Groups;
use crate::accounts::sections::SectionTotal;
use crate::accounts::waits::Past;
use crate::devices::device::{Begun, Completed, Device, HostLink};
use crate::event::{Agenda, Class, Entry, FOREVER};
use crate::hardware::Hardware;
use crate::machine::cpu::{Cpu, CpuSet};
use crate::machine::share::Sharing;
use crate::machine::task::{NONE, SWAPPER, Task, TaskRecord};
use crate::trace::log::{EventLog, What};

/// The longest that a request waits for a CPU of the host that the kernel never leaves, in nanoseconds: the host lets
/// another thread run after some slices. Known, not measured.
const HELD_MAX: u64 = 10_000_000;

/// The waiters of a queue, linked through their tasks, first come first.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WaitQueue {
    pub(crate) first: u32,
    pub(crate) last: u32,
}

/// See the module.
pub(crate) struct State {
    pub(crate) agenda: Agenda,
    pub(crate) tasks: Vec<Task>,
    /// One for each task: the part that is seldom looked at.
    pub(crate) records: Vec<TaskRecord>,
    pub(crate) cpus: Vec<Cpu>,
    pub(crate) idle: CpuSet,
    /// Tasks in run queues that may run on another CPU.
    pub(crate) queued_movable: usize,
    pub(crate) queues: Vec<WaitQueue>,
    pub(crate) devices: Vec<Device>,
    pub(crate) host_link: HostLink,
    /// Requests to devices that have to wait for a CPU, by whom they were sent.
    pub(crate) held: Vec<(IoRequest, CpuId)>,
    /// When they begin at the latest, or [`FOREVER`].
    pub(crate) held_until: u64,
    /// Writes of all devices that were sent, and those of them that are not complete.
    pub(crate) writes_sent: u64,
    pub(crate) writes_in_flight: u64,
    /// Phases of the program that are over, and the waits that ended in them.
    pub(crate) phase: usize,
    pub(crate) past_waits: Vec<Past>,
    /// The same of time in sections: phase, task.
    pub(crate) past_sections: Vec<(usize, u32, SectionTotal)>,
    /// Of a slice, or between two ticks.
    pub(crate) slice: u64,
    pub(crate) sharing: Sharing,
    pub(crate) preemption: Preemption,
    pub(crate) switch_cost: u64,
    pub(crate) wakeup_latency: u64,
    pub(crate) tasks_done: u64,
    /// CPU time of interrupts that found their CPU idle.
    pub(crate) idle_interrupt_time: u64,
    /// The run ends when this task has ended; [`NONE`] for no such task.
    pub(crate) awaited: u32,
    /// Pressure on memory, by groups of tasks.
    pub(crate) groups: Groups,
    /// Where rows of events go; none: nobody wants them.
    pub(crate) log: Option<Rc<EventLog>>,
}

impl State {
    pub(crate) fn new(hardware: Hardware) -> Self {
        let switch_cost = hardware.costs.get(kernel::machine::CostOp::ContextSwitch).0;
        let tick = 1_000_000_000 / hardware.hz;
        let slice = if hardware.scheduler.is_some() { tick } else { hardware.slice.0 };
        let swapper = TaskRecord { name: "swapper".to_owned(), waits: Vec::new(), sections: Vec::new() };
        Self {
            agenda: Agenda::default(),
            tasks: vec![Task::new(None, 0, true)],
            records: vec![swapper],
            cpus: (0..hardware.cpus).map(|_| Cpu::new(slice)).collect(),
            idle: CpuSet::full(hardware.cpus),
            queued_movable: 0,
            queues: Vec::new(),
            devices: hardware.devices.into_iter().map(Device::new).collect(),
            host_link: HostLink::new(hardware.host_bandwidth),
            held: Vec::new(),
            held_until: FOREVER,
            writes_sent: 0,
            writes_in_flight: 0,
            phase: 0,
            past_waits: Vec::new(),
            past_sections: Vec::new(),
            slice,
            sharing: Sharing::new(hardware.scheduler, hardware.cpus, tick, hardware.clock_of_ticks),
            preemption: hardware.preemption,
            switch_cost,
            wakeup_latency: hardware.costs.wakeup_latency().0,
            tasks_done: 0,
            idle_interrupt_time: 0,
            awaited: NONE,
            groups: Groups::new(hardware.cpus, hardware.hz),
            log: None,
        }
    }

    /// The next event that is not stale; it stays in the agenda.
    #[inline]
    pub(crate) fn next_event(&mut self) -> Option<Entry> {
        if self.agenda.wants_sweep() {
            let tasks = &self.tasks;
            self.agenda.sweep(|entry| is_live(tasks, entry));
        }
        loop {
            let entry = self.agenda.peek()?;
            if is_live(&self.tasks, entry) {
                return Some(entry);
            }
            self.agenda.take(entry);
            self.agenda.forget_stale();
        }
    }

    /// Hands a request to its device.
    pub(crate) fn submit(&mut self, now: u64, request: IoRequest, cpu: CpuId) {
        let index = usize::from(request.device);
        assert!(index < self.devices.len(), "a request names device {index}, which the machine lacks");
        if request.kind != IoKind::Read {
            self.writes_sent += 1;
            self.writes_in_flight += 1;
        }
        if self.devices[index].waits_for_cpu() && !self.idle.contains(cpu.0) {
            self.held_until = self.held_until.min(now + HELD_MAX);
            self.held.push((request, cpu));
            if (1..=self.held.len()).contains(&self.devices[index].gathers()) {
                self.begin_held(now);
            }
        } else {
            self.begin(now, request, cpu);
        }
    }

    /// Whoever serves devices has a CPU, as the host gives it one after a slice: requests that waited too long begin.
    pub(crate) fn begin_held_too_long(&mut self, now: u64) {
        if now >= self.held_until {
            self.begin_held(now);
        }
    }

    /// Whoever serves devices has a CPU: requests that wait for that begin.
    pub(crate) fn begin_held(&mut self, now: u64) {
        self.held_until = FOREVER;
        for (request, cpu) in std::mem::take(&mut self.held) {
            self.begin(now, request, cpu);
        }
    }

    fn begin(&mut self, now: u64, request: IoRequest, cpu: CpuId) {
        let device = &mut self.devices[usize::from(request.device)];
        let begun = device.submit(now, request, cpu, &mut self.host_link);
        self.expect_completion(u32::from(request.device), begun);
    }

    /// Completes the request in a place of a device; the next one that waits there moves up.
    pub(crate) fn complete(&mut self, now: u64, device: u32, place: u32) -> Completed {
        let completed = self.devices[device as usize].complete(now, place, &mut self.host_link);
        if let Some(log) = &self.log {
            let IoRequest { device, kind, offset, len, .. } = completed.pending.request;
            let first = completed.pending.sent().map(|sent| sent.submitted).min().unwrap_or(now);
            let what = What::IoDone { device, kind, offset, len: len.0, spent: Nanos(now - first) };
            log.push(now, SWAPPER, what);
        }
        if completed.pending.request.kind != IoKind::Read {
            self.writes_in_flight -= completed.pending.sent().count() as u64;
        }
        self.expect_completion(device, completed.next);
        completed
    }

    fn expect_completion(&mut self, device: u32, begun: Option<Begun>) {
        if let Some(Begun { done, slot }) = begun {
            self.agenda.add(done, Class::DeviceDone, device, slot);
        }
    }

    /// The task's index, checked: a task that was never started is a bug of the caller.
    pub(crate) fn index(&self, task: TaskId) -> usize {
        let index = task.0 as usize;
        assert!(index < self.tasks.len(), "task {index} was never started on this machine");
        index
    }
}

/// Whether an entry still means something: a timer of a wait that is over does not.
#[inline]
pub(crate) fn is_live(tasks: &[Task], entry: Entry) -> bool {
    entry.class() != Class::Timer || tasks[entry.target() as usize].generation == entry.detail()
}
