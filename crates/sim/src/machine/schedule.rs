//! Who runs on which CPU, and for how long.
//!
//! # Theory of operation
//! A task computes in no time and runs up debt; then it occupies its CPU until the debt has
//! passed. A CPU is idle, or switching to its task, or working off its task's debt in segments of
//! at most what is left of the slice:
//!
//! ```text
//!          wake           debt      slice used up, others wait       debt passed, sleeps
//! CPU 0 ....|-latency-switch-|==A==|poll|=====A=====|-switch-|==B==|................
//! ```
//!
//! A slice that ends while nobody waits is simply renewed. Under a scheduler of Linux (`share.rs`) it is a tick,
//! at which the task's turn may be over, and a task that wakes may have the CPU where the one there ends its
//! segment: that stands for the next place in the kernel where it could schedule. Where preemption is lazy the one
//! there goes on until its program leaves the kernel, or to the next tick:
//!
//! ```text
//!             B wakes on A's CPU                 leaves the kernel  B wakes again   tick
//! voluntary ==A==|-switch-|==B==|-switch-|==A==........
//! lazy      ==A==|====A====|====A===============|-switch-|==B==..==A==|====A======|-switch-|==B==
//! ```
//! A tick that ends a turn asks in the same way, so that the task has the time to the end of its system call or one
//! more tick. (`Documentation/scheduler/sched-preemption.rst`; "sched: Add Lazy preemption model", Linux 6.13.)
//!
//! A task that wakes goes to its previous CPU if that is idle, else to the idle CPU with the lowest number,
//! else behind the others on its previous CPU. A new task does the same, but goes to the shortest queue if
//! no CPU is idle. A CPU that runs out of tasks takes the first one that may move from the longest queue
//! (newidle balancing). Pinned tasks stay where they are; one that gives way to them goes to an idle CPU.
//!
//! Left out: priorities, preemption of programs within a segment, periodic load balancing, caches and SMT.
//!
//! The invariants are listed and checked in `check.rs`.

use kernel::machine::WaitReason;
use mm::version::rules::Preemption;

use crate::event::{Class, FOREVER};
use crate::machine::share::Share;
use crate::machine::state::State;
use crate::machine::task::{NONE, Place, Program, Task, TaskRecord, Then};

impl State {
    /// Adds a task and makes it ready.
    pub(crate) fn start(&mut self, now: u64, name: &str, cpu: Option<u16>, program: Program) -> u32 {
        if let Some(cpu) = cpu {
            assert!(usize::from(cpu) < self.cpus.len(), "task `{name}` is pinned to a CPU that is not there");
        }
        let index = u32::try_from(self.tasks.len()).expect("fewer than 2^32 tasks");
        assert!(index != NONE, "task numbers are used up");
        let home = cpu.unwrap_or_else(|| self.shortest_queue());
        self.tasks.push(Task::new(Some(program), home, cpu.is_some()));
        self.records.push(TaskRecord { name: name.to_owned(), waits: Vec::new(), sections: Vec::new() });
        if let Some(log) = &self.log {
            log.name_task(name);
        }
        self.make_ready(now, index, false);
        index
    }

    /// Puts a task that is neither queued nor running where it will run. `returns` is whether it
    /// has a previous CPU to prefer.
    pub(crate) fn make_ready(&mut self, now: u64, index: u32, returns: bool) {
        let task = &self.tasks[index as usize];
        let stays = task.pinned || (returns && self.idle.contains(task.cpu));
        if !stays && let Some(cpu) = self.idle.lowest() {
            self.move_to(index, cpu);
        }
        let cpu = self.tasks[index as usize].cpu;
        self.place(now, index, returns);
        if self.idle.contains(cpu) {
            self.idle.remove(cpu);
            self.switch_to(now, cpu, index, self.wakeup_latency);
        } else {
            self.enqueue(cpu, index);
            self.note_role(now, index);
            self.preempt_for_last(now, cpu);
        }
    }

    fn move_to(&mut self, index: u32, cpu: u16) {
        let task = &mut self.tasks[index as usize];
        let [from, to] = [task.cpu, cpu].map(|cpu| self.cpus[usize::from(cpu)].base);
        task.share.move_between(from, to);
        task.cpu = cpu;
    }

    /// Gives a task that is new or was asleep its place among those of its CPU.
    fn place(&mut self, now: u64, index: u32, returns: bool) {
        if self.sharing.takes_turns() {
            return;
        }
        let cpu_number = self.tasks[index as usize].cpu;
        let mut there = self.waiting(cpu_number);
        there.extend(self.running(now, cpu_number));
        let cpu = &mut self.cpus[usize::from(cpu_number)];
        cpu.base = Share::least(cpu.base, there.iter().copied());
        let share = &mut self.tasks[index as usize].share;
        if returns {
            self.sharing.wake(share, cpu.base, &there);
        } else {
            self.sharing.start(share, cpu.base, &there);
        }
    }

    /// Accounts of the tasks that wait for a CPU, in the order of its queue.
    fn waiting(&self, cpu: u16) -> Vec<Share> {
        self.cpus[usize::from(cpu)].queue.iter().map(|&index| self.tasks[index as usize].share).collect()
    }

    /// The account of the task on a CPU as of now: what passed of its segment counts.
    fn running(&self, now: u64, cpu: u16) -> Option<Share> {
        let cpu = &self.cpus[usize::from(cpu)];
        let mut share = self.tasks.get(cpu.current as usize)?.share;
        share.run(self.sharing.counted(now, cpu.passed(now)));
        Some(share)
    }

    /// Looks whether the task that joined a CPU's queue last has it before the running one.
    fn preempt_for_last(&mut self, now: u64, cpu_number: u16) {
        if self.sharing.takes_turns() {
            return;
        }
        let waiting = self.waiting(cpu_number);
        let cpu = &mut self.cpus[usize::from(cpu_number)];
        let passed = self.sharing.counted(now, cpu.passed(now));
        let share = &mut self.tasks[cpu.current as usize].share;
        share.run(passed);
        cpu.resched |= self.sharing.preempts(waiting.len() - 1, &waiting, share);
        share.take_back(passed);
    }

    /// Takes the task that ran on a CPU off its books, before it sleeps or ends.
    fn leave_cpu(&mut self, cpu_number: u16) {
        if self.sharing.takes_turns() {
            return;
        }
        let waiting = self.waiting(cpu_number);
        let cpu = &mut self.cpus[usize::from(cpu_number)];
        let share = &mut self.tasks[cpu.current as usize].share;
        cpu.base = Share::least(cpu.base, waiting.iter().copied().chain([*share]));
        self.sharing.sleep(share, &waiting);
    }

    /// The CPU with the fewest tasks waiting, the lowest number among equals.
    fn shortest_queue(&self) -> u16 {
        let lengths = (0_u16..).zip(self.cpus.iter().map(|cpu| cpu.queue.len()));
        lengths.min_by_key(|&(_, length)| length).map_or(0, |(cpu, _)| cpu)
    }

    fn enqueue(&mut self, cpu: u16, index: u32) {
        let task = &mut self.tasks[index as usize];
        task.place = Place::Queued;
        self.queued_movable += usize::from(!task.pinned);
        self.cpus[usize::from(cpu)].queue.push_back(index);
    }

    /// Begins to switch a task in: it can go on after `delay` and the context switch.
    fn switch_to(&mut self, now: u64, cpu_number: u16, index: u32, delay: u64) {
        let task = &mut self.tasks[index as usize];
        task.place = Place::OnCpu;
        task.cpu = cpu_number;
        task.share.pick();
        let cpu = &mut self.cpus[usize::from(cpu_number)];
        cpu.current = index;
        cpu.switching = true;
        cpu.slice_left = self.slice;
        cpu.resched = false;
        cpu.switches += 1;
        self.agenda.add_segment(now + delay + self.switch_cost, cpu_number);
        self.note_role(now, index);
    }

    /// A CPU's segment or context switch is over. Returns the task if its program can go on now.
    pub(crate) fn segment_ends(&mut self, now: u64, cpu_number: u16) -> Option<u32> {
        self.begin_held_too_long(now);
        let cpu = &mut self.cpus[usize::from(cpu_number)];
        if cpu.switching {
            cpu.switching = false;
            if !self.sharing.takes_turns() {
                cpu.slice_left = self.slice - (now % self.slice);
            }
            return self.go_on(now, cpu_number);
        }
        let task = &mut self.tasks[cpu.current as usize];
        let ran = std::mem::take(&mut cpu.segment);
        task.debt -= ran;
        task.ran += ran;
        task.share.run(self.sharing.counted(now, ran));
        cpu.busy += ran;
        cpu.slice_left -= ran;
        let goes_anyway = task.debt == 0 && task.leaves_cpu();
        let returns = task.debt == 0 && task.then == Then::Resume { to_user: true };
        let gives_way = self.gives_way(cpu_number, returns);
        let cpu = &self.cpus[usize::from(cpu_number)];
        if gives_way && !goes_anyway && !cpu.queue.is_empty() {
            let index = cpu.current;
            self.enqueue(cpu_number, index);
            self.note_role(now, index);
            self.take_up_next(now, cpu_number);
            self.go_elsewhere(now, index);
            return None;
        }
        self.go_on(now, cpu_number)
    }

    /// A task that gave way to one that is pinned goes on where nobody runs.
    fn go_elsewhere(&mut self, now: u64, index: u32) {
        let task = &self.tasks[index as usize];
        let (place, pinned, from) = (task.place, task.pinned, usize::from(task.cpu));
        let Some(idle) = self.idle.lowest().filter(|_| place == Place::Queued && !pinned) else { return };
        self.cpus[from].queue.retain(|&queued| queued != index);
        self.queued_movable -= 1;
        self.move_to(index, idle);
        self.idle.remove(idle);
        self.switch_to(now, idle, index, self.wakeup_latency);
    }

    /// Whether the task on a CPU is to give way where its segment ended: at a tick, on its way to user mode
    /// (`returns`), or somewhere in the kernel.
    fn gives_way(&mut self, cpu_number: u16, returns: bool) -> bool {
        let cpu = &mut self.cpus[usize::from(cpu_number)];
        let was_asked = std::mem::take(&mut cpu.resched);
        let is_tick = cpu.slice_left == 0;
        if is_tick {
            cpu.slice_left = self.slice;
        }
        let is_asked = (is_tick && self.turn_is_over(cpu_number)) || was_asked;
        let at_once = match self.preemption {
            Preemption::Voluntary => true,
            Preemption::Lazy => returns || (is_tick && was_asked),
        };
        self.cpus[usize::from(cpu_number)].resched = is_asked && !at_once;
        is_asked && at_once
    }

    fn turn_is_over(&mut self, cpu_number: u16) -> bool {
        let waiting = self.waiting(cpu_number);
        let current = self.cpus[usize::from(cpu_number)].current;
        self.sharing.turn_is_over(&waiting, &mut self.tasks[current as usize].share)
    }

    /// Lets the current task of a CPU work off its debt, or do what it meant to do after that.
    /// Returns the task if its program can go on now.
    pub(crate) fn go_on(&mut self, now: u64, cpu_number: u16) -> Option<u32> {
        let cpu = &mut self.cpus[usize::from(cpu_number)];
        let index = cpu.current;
        let task = &mut self.tasks[index as usize];
        if task.debt > 0 {
            cpu.segment = task.debt.min(cpu.slice_left);
            cpu.segment_began = now;
            self.agenda.add_segment(now + cpu.segment, cpu_number);
            return None;
        }
        if !task.leaves_cpu() {
            return Some(index);
        }
        self.leave_cpu(cpu_number);
        match self.tasks[index as usize].then {
            Then::Resume { .. } => unreachable!("a task that resumes keeps its CPU"),
            Then::Block { reason, timeout } => self.block(now, index, reason, timeout),
            Then::End => self.end(now, index),
        }
        self.take_up_next(now, cpu_number);
        None
    }

    /// Puts a task to sleep; it has given up its CPU.
    fn block(&mut self, now: u64, index: u32, reason: WaitReason, timeout: u64) {
        let task = &mut self.tasks[index as usize];
        task.place = Place::Blocked;
        task.reason = reason;
        task.since = now;
        task.timeout = timeout;
        task.writes_before = (self.writes_in_flight == 0).then_some(self.writes_sent);
        task.timer_armed = timeout != FOREVER;
        if task.timer_armed {
            self.agenda.add(now.saturating_add(timeout), Class::Timer, index, task.generation);
        }
        self.note_role(now, index);
    }

    fn end(&mut self, now: u64, index: u32) {
        self.tasks[index as usize].place = Place::Done;
        self.tasks_done += 1;
        self.note_role(now, index);
    }

    /// A CPU without a task takes up the next one: of its own queue, else of the longest.
    fn take_up_next(&mut self, now: u64, cpu_number: u16) {
        let own = self.next_of(cpu_number);
        let Some(index) = own.or_else(|| self.pull(cpu_number)) else {
            self.cpus[usize::from(cpu_number)].current = NONE;
            self.idle.insert(cpu_number);
            self.begin_held(now);
            return;
        };
        self.queued_movable -= usize::from(!self.tasks[index as usize].pinned);
        self.switch_to(now, cpu_number, index, 0);
    }

    /// Takes the task out of a CPU's queue that is to run there next.
    fn next_of(&mut self, cpu_number: u16) -> Option<u32> {
        if self.sharing.takes_turns() {
            return self.cpus[usize::from(cpu_number)].queue.pop_front();
        }
        let next = self.sharing.next(&self.waiting(cpu_number))?;
        self.cpus[usize::from(cpu_number)].queue.remove(next)
    }

    /// Takes the first task that may move out of the longest queue that has one.
    fn pull(&mut self, to: u16) -> Option<u32> {
        if self.queued_movable == 0 {
            return None;
        }
        let movable = |&index: &u32| !self.tasks[index as usize].pinned;
        let candidates = self.cpus.iter().enumerate().filter(|(_, cpu)| cpu.queue.iter().any(movable));
        let (from, _) =
            candidates.max_by_key(|&(number, cpu)| (cpu.queue.len(), std::cmp::Reverse(number)))?;
        let position = self.cpus[from].queue.iter().position(movable)?;
        let index = self.cpus[from].queue.remove(position)?;
        self.move_to(index, to);
        Some(index)
    }

    /// Charges an interrupt on `cpu`: its time is stolen from the task there.
    pub(crate) fn steal_time(&mut self, cpu: u16, nanos: u64) {
        match self.cpus[usize::from(cpu)].current {
            NONE => self.idle_interrupt_time += nanos,
            current => self.tasks[current as usize].debt += nanos,
        }
    }
}
