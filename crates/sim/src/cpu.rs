//! CPUs: who runs where, and for how long.
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
//! A slice that ends while nobody waits is simply renewed. A task that wakes goes to its previous
//! CPU if that is idle, else to the idle CPU with the lowest number, else behind the others on
//! its previous CPU. A new task does the same, but goes to the shortest queue if no CPU is idle.
//! A CPU that runs out of tasks takes the first one that may move from the longest queue
//! (newidle balancing). Pinned tasks stay where they are.
//!
//! Left out: priorities, wake-up preemption, periodic load balancing, caches and SMT.
//!
//! The invariants are listed and checked in `check.rs`.

use std::collections::VecDeque;

use crate::event::Class;
use crate::state::State;
use crate::task::{NONE, Place, Task, TaskRecord, Then};

/// One CPU.
#[derive(Debug)]
pub(crate) struct Cpu {
    /// The task on it; [`NONE`] when idle.
    pub(crate) current: u32,
    /// Whether `current` is still being switched in.
    pub(crate) switching: bool,
    /// Nanoseconds of the current task's debt that pass until the next event here.
    pub(crate) segment: u64,
    /// What is left of the current task's slice; at least 1 between events.
    pub(crate) slice_left: u64,
    /// Tasks that wait for this CPU, next one first.
    pub(crate) queue: VecDeque<u32>,
    pub(crate) busy: u64,
    pub(crate) switches: u64,
}

impl Cpu {
    pub(crate) fn new(slice: u64) -> Self {
        let queue = VecDeque::new();
        Self { current: NONE, switching: false, segment: 0, slice_left: slice, queue, busy: 0, switches: 0 }
    }
}

/// A set of CPUs that finds its lowest member fast.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CpuSet(Vec<u64>);

impl CpuSet {
    /// CPUs `0..count`.
    pub(crate) fn full(count: u16) -> Self {
        let mut set = Self(vec![0; usize::from(count).div_ceil(64)]);
        (0..count).for_each(|cpu| set.insert(cpu));
        set
    }

    pub(crate) fn insert(&mut self, cpu: u16) {
        self.0[usize::from(cpu / 64)] |= 1 << (cpu % 64);
    }

    pub(crate) fn remove(&mut self, cpu: u16) {
        self.0[usize::from(cpu / 64)] &= !(1 << (cpu % 64));
    }

    #[inline]
    pub(crate) fn contains(&self, cpu: u16) -> bool {
        self.0[usize::from(cpu / 64)] & (1 << (cpu % 64)) != 0
    }

    pub(crate) fn lowest(&self) -> Option<u16> {
        let word = self.0.iter().position(|&word| word != 0)?;
        u16::try_from(word * 64 + self.0[word].trailing_zeros() as usize).ok()
    }
}

impl State {
    /// Adds a task and makes it ready.
    pub(crate) fn start(
        &mut self,
        now: u64,
        name: &str,
        cpu: Option<u16>,
        program: crate::task::Program,
    ) -> u32 {
        if let Some(cpu) = cpu {
            assert!(usize::from(cpu) < self.cpus.len(), "task `{name}` is pinned to a CPU that is not there");
        }
        let index = u32::try_from(self.tasks.len()).expect("fewer than 2^32 tasks");
        assert!(index != NONE, "task numbers are used up");
        let home = cpu.unwrap_or_else(|| self.shortest_queue());
        self.tasks.push(Task::new(Some(program), home, cpu.is_some()));
        self.records.push(TaskRecord { name: name.to_owned(), waits: Vec::new() });
        self.make_ready(now, index, false);
        index
    }

    /// Puts a task that is neither queued nor running where it will run. `returns` is whether it
    /// has a previous CPU to prefer.
    pub(crate) fn make_ready(&mut self, now: u64, index: u32, returns: bool) {
        let task = &mut self.tasks[index as usize];
        let stays = task.pinned || (returns && self.idle.contains(task.cpu));
        if !stays && let Some(cpu) = self.idle.lowest() {
            task.cpu = cpu;
        }
        let cpu = task.cpu;
        if self.idle.contains(cpu) {
            self.idle.remove(cpu);
            self.switch_to(now, cpu, index, self.wakeup_latency);
        } else {
            self.enqueue(cpu, index);
        }
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
        let cpu = &mut self.cpus[usize::from(cpu_number)];
        cpu.current = index;
        cpu.switching = true;
        cpu.slice_left = self.slice;
        cpu.switches += 1;
        self.agenda.add(now + delay + self.switch_cost, Class::CpuSegment, u32::from(cpu_number), 0);
    }

    /// A CPU's segment or context switch is over. Returns the task if its program can go on now.
    pub(crate) fn segment_ends(&mut self, now: u64, cpu_number: u16) -> Option<u32> {
        let cpu = &mut self.cpus[usize::from(cpu_number)];
        if cpu.switching {
            cpu.switching = false;
            return self.go_on(now, cpu_number);
        }
        let task = &mut self.tasks[cpu.current as usize];
        task.debt -= cpu.segment;
        cpu.busy += cpu.segment;
        cpu.slice_left -= cpu.segment;
        if cpu.slice_left == 0 {
            cpu.slice_left = self.slice;
            let goes_anyway = task.debt == 0 && task.leaves_cpu();
            if !goes_anyway && !cpu.queue.is_empty() {
                let index = cpu.current;
                self.enqueue(cpu_number, index);
                self.take_up_next(now, cpu_number);
                return None;
            }
        }
        self.go_on(now, cpu_number)
    }

    /// Lets the current task of a CPU work off its debt, or do what it meant to do after that.
    /// Returns the task if its program can go on now.
    pub(crate) fn go_on(&mut self, now: u64, cpu_number: u16) -> Option<u32> {
        let cpu = &mut self.cpus[usize::from(cpu_number)];
        let index = cpu.current;
        let task = &mut self.tasks[index as usize];
        if task.debt > 0 {
            cpu.segment = task.debt.min(cpu.slice_left);
            self.agenda.add(now + cpu.segment, Class::CpuSegment, u32::from(cpu_number), 0);
            return None;
        }
        if !task.leaves_cpu() {
            return Some(index);
        }
        match task.then {
            Then::Resume => unreachable!("a task that resumes keeps its CPU"),
            Then::Block { reason, timeout } => self.block(now, index, reason, timeout),
            Then::End => self.end(index),
        }
        self.take_up_next(now, cpu_number);
        None
    }

    fn end(&mut self, index: u32) {
        self.tasks[index as usize].place = Place::Done;
        self.tasks_done += 1;
    }

    /// A CPU without a task takes up the next one: of its own queue, else of the longest.
    fn take_up_next(&mut self, now: u64, cpu_number: u16) {
        let own = self.cpus[usize::from(cpu_number)].queue.pop_front();
        let Some(index) = own.or_else(|| self.pull()) else {
            self.cpus[usize::from(cpu_number)].current = NONE;
            self.idle.insert(cpu_number);
            return;
        };
        self.queued_movable -= usize::from(!self.tasks[index as usize].pinned);
        self.switch_to(now, cpu_number, index, 0);
    }

    /// Takes the first task that may move out of the longest queue that has one.
    fn pull(&mut self) -> Option<u32> {
        if self.queued_movable == 0 {
            return None;
        }
        let movable = |&index: &u32| !self.tasks[index as usize].pinned;
        let candidates = self.cpus.iter().enumerate().filter(|(_, cpu)| cpu.queue.iter().any(movable));
        let (from, _) =
            candidates.max_by_key(|&(number, cpu)| (cpu.queue.len(), std::cmp::Reverse(number)))?;
        let position = self.cpus[from].queue.iter().position(movable)?;
        self.cpus[from].queue.remove(position)
    }

    /// Charges an interrupt on `cpu`: its time is stolen from the task there.
    pub(crate) fn steal_time(&mut self, cpu: u16, nanos: u64) {
        match self.cpus[usize::from(cpu)].current {
            NONE => self.idle_interrupt_time += nanos,
            current => self.tasks[current as usize].debt += nanos,
        }
    }
}
