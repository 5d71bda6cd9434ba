//! Who there is: tasks that begin, become another program, and end.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use trace::{NONE, OperationKind, TraceMapping, TraceTask};

use super::{Follower, Process, Task};
use crate::clocks::Clock;
use crate::descriptors::Descriptors;
use crate::maps;
use crate::memory::Memory;

/// How far the first task's stack may grow, where nobody says otherwise (`ulimit -s`).
const STACK_MAX: u64 = 8 << 20;
/// Set-user-ID and set-group-ID.
const SET_ID: u32 = 0o6000;
/// The fifth byte of an ELF file of 64 bits.
const ELF_64: u8 = 2;

/// How a task came to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Born {
    /// A copy of its parent.
    Fork,
    /// It borrows its parent's memory until it becomes another program.
    Vfork,
    /// A thread, or a copy.
    Clone,
}

impl Follower {
    /// The task that everything begins with.
    pub(crate) fn first(&mut self, pid: i32) {
        let memory = self.new_memory(Memory::default());
        self.add_process(pid, NONE, memory, Descriptors::of(pid));
    }

    /// A process that ran before we came: with all of its mappings and tasks, and what is in memory of its files.
    /// `is_child`: what it has in common with the one that forked it is that one's.
    pub(crate) fn found(&mut self, pid: i32, tasks: &[i32], is_child: bool) {
        self.first(pid);
        self.read_mappings(pid);
        self.name(pid);
        if let Some(memory) = self.memory_of(pid) {
            memory.was_there(is_child);
        }
        tasks.iter().filter(|tid| **tid != pid).for_each(|tid| self.found_thread(pid, *tid));
        self.read_cached(pid);
    }

    /// A thread that ran before we came.
    pub(crate) fn found_thread(&mut self, pid: i32, tid: i32) {
        if let Some(process) = self.processes.get_mut(&pid) {
            process.tasks += 1;
            process.tasks_peak = process.tasks_peak.max(process.tasks);
            let number = process.number;
            self.not_alone(pid);
            self.add_task(tid, pid, number, number);
            self.name(tid);
        }
    }

    /// A process that nobody has told of: the one that made it may have been killed before it could. A thread is left
    /// waiting: whatever kills the one that made it kills it, too.
    pub(crate) fn adopted(&mut self, tid: i32) -> bool {
        let process = maps::process_of(tid);
        if process.is_some_and(|process| self.processes.contains_key(&process)) {
            return false;
        }
        self.found(tid, &[], false);
        true
    }

    /// Whether a task is known.
    pub(crate) fn knows(&self, tid: i32) -> bool {
        self.tasks.contains_key(&tid)
    }

    /// All tasks that are there.
    pub(crate) fn all_tasks(&self) -> Vec<i32> {
        self.tasks.keys().copied().collect()
    }

    /// A task made another one.
    pub(crate) fn spawned(&mut self, parent: i32, tid: i32, born: Born) {
        self.settle(parent);
        let Some(&Task { number, process, .. }) = self.tasks.get(&parent) else { return };
        if let Some(known) = self.tasks.get(&tid).map(|task| task.number) {
            return self.told_of(parent, number, known);
        }
        let Some(family) = self.processes.get_mut(&process) else { return };
        let is_thread = born == Born::Clone && Path::new(&format!("/proc/{process}/task/{tid}")).exists();
        if is_thread {
            family.tasks += 1;
            family.tasks_peak = family.tasks_peak.max(family.tasks);
            let first = family.number;
            self.not_alone(process);
            self.add_task(tid, process, number, first);
        } else {
            family.descriptors.shared |= Self::shares_numbers(process, tid);
            let (memory, descriptors) = (family.memory, family.descriptors.forked(tid));
            let memory = match born {
                Born::Vfork => memory,
                Born::Fork | Born::Clone => {
                    let copy = self.memories.get(&memory).map(Memory::forked).unwrap_or_default();
                    self.new_memory(copy)
                }
            };
            self.add_process(tid, number, memory, descriptors);
        }
        let child = self.tasks.get(&tid).map_or(NONE, |task| task.number);
        self.note(parent, OperationKind::Spawn, child, 0, 0, 0);
    }

    /// Somebody tells of a task that was taken for one without a parent.
    fn told_of(&mut self, tid: i32, parent: u32, child: u32) {
        if let Some(row) = self.task_rows.get_mut(child as usize)
            && row.parent == NONE
        {
            row.parent = parent;
            self.note(tid, OperationKind::Spawn, child, 0, 0, 0);
        }
    }

    /// A process became another program; `former` is the task that asked for it, and is `pid` now.
    pub(crate) fn executed(&mut self, pid: i32, former: i32) {
        let others: Vec<i32> = self
            .tasks
            .iter()
            .filter(|(tid, task)| task.process == pid && **tid != former)
            .map(|(tid, _)| *tid)
            .collect();
        for other in others {
            self.forget_call(other);
            self.note(other, OperationKind::Exit, NONE, 0, 0, 0);
            self.tasks.remove(&other);
        }
        self.forget_call(former);
        let Some(mut task) = self.tasks.remove(&former) else { return };
        if former != pid {
            task.clock = Clock::of(pid, false);
            task.line.other_clock();
        }
        self.tasks.insert(pid, task);
        let memory = self.new_memory(Memory::default());
        let Some(process) = self.processes.get_mut(&pid) else { return };
        (process.tasks, process.tasks_peak) = (1, 1);
        process.descriptors.forget_all();
        if std::mem::replace(&mut process.asked, pid) != pid {
            process.descriptors.take_from(pid, pid);
        }
        let before = std::mem::replace(&mut process.memory, memory);
        self.drop_memory(before);
        self.name(pid);
        self.note(pid, OperationKind::Exec, NONE, 0, 0, 0);
        self.check_program(pid);
        self.read_mappings(pid);
    }

    /// A task ends; whether it was known.
    pub(crate) fn ended(&mut self, tid: i32) -> bool {
        self.forget_call(tid);
        self.note(tid, OperationKind::Exit, NONE, 0, 0, 0);
        let Some(task) = self.tasks.remove(&tid) else { return false };
        let Some(process) = self.processes.get_mut(&task.process) else { return true };
        process.tasks = process.tasks.saturating_sub(1);
        process.closed_by(tid);
        if process.tasks == 0
            && let Some(process) = self.processes.remove(&task.process)
        {
            self.gaps.refused += process.descriptors.refused;
            self.drop_memory(process.memory);
        }
        true
    }

    /// A task is about to end: its last name.
    pub(crate) fn name(&mut self, tid: i32) {
        let name = maps::name(tid);
        if let Some(task) = self.tasks.get(&tid)
            && let Some(row) = self.task_rows.get_mut(task.number as usize)
            && !name.is_empty()
        {
            row.name = name;
        }
    }

    /// How many tasks there were.
    pub(crate) fn tasks_made(&self) -> usize {
        self.task_rows.len()
    }

    /// A task is about to end. Its process, if all others of it are, too, and nobody else has its memory.
    pub(crate) fn ending(&mut self, tid: i32) -> Option<i32> {
        let task = self.tasks.get_mut(&tid)?;
        task.ending = true;
        let pid = task.process;
        let process = self.processes.get_mut(&pid)?;
        let mut left = self.tasks.iter().filter(|(_, task)| task.process == pid && !task.ending);
        if process.asked == tid
            && let Some((other, _)) = left.next()
        {
            process.asked = *other;
            process.descriptors.take_from(*other, pid);
        }
        let process = self.processes.get(&pid)?;
        let alone = !self.processes.iter().any(|(other, of)| *other != pid && of.memory == process.memory);
        let last = process.tasks == 1
            || self.tasks.values().filter(|task| task.process == pid).all(|task| task.ending);
        (last && alone).then_some(pid)
    }

    /// What a process has of the one that forked it.
    pub(crate) fn inherited(&self, pid: i32) -> Vec<(u64, u64)> {
        let memory = self.processes.get(&pid).and_then(|process| self.memories.get(&process.memory));
        memory.map(Memory::inherited).unwrap_or_default()
    }

    /// Processes to look at, each memory once, with a task of each that is there.
    pub(crate) fn to_look_at(&self) -> Vec<(i32, i32)> {
        let mut found: Vec<(u32, i32, i32)> =
            self.processes.iter().map(|(pid, process)| (process.memory, *pid, process.asked)).collect();
        found.sort_unstable();
        found.dedup_by_key(|(memory, _, _)| *memory);
        found.into_iter().map(|(_, pid, asked)| (pid, asked)).collect()
    }

    fn add_process(&mut self, pid: i32, parent: u32, memory: u32, descriptors: Descriptors) {
        let number = u32::try_from(self.task_rows.len()).unwrap_or(NONE);
        self.processes.insert(
            pid,
            Process {
                number,
                tasks: 1,
                tasks_peak: 1,
                asked: pid,
                descriptors,
                opening: Vec::new(),
                memory,
                owed_ns: 0,
            },
        );
        self.add_task(pid, pid, parent, number);
    }

    fn add_task(&mut self, tid: i32, process: i32, parent: u32, first: u32) {
        let number = u32::try_from(self.task_rows.len()).unwrap_or(NONE);
        let name = self.task_rows.get(parent as usize).map(|row| row.name.clone()).unwrap_or_default();
        self.task_rows.push(TraceTask { tid: tid.cast_unsigned(), parent, process: first, name });
        let mut clock = Clock::of(tid, tid == process);
        let line = self.pace.timeline(clock.ran_ns(), clock.so_far());
        self.tasks
            .insert(tid, Task { number, process, clock, line, begun: None, sleeps: false, ending: false });
    }

    fn new_memory(&mut self, memory: Memory) -> u32 {
        self.next_memory += 1;
        self.memories.insert(self.next_memory, memory);
        self.next_memory
    }

    fn drop_memory(&mut self, number: u32) {
        if !self.processes.values().any(|process| process.memory == number) {
            self.memories.remove(&number);
        }
    }

    /// The mappings that a program begins with, or has when we come.
    fn read_mappings(&mut self, pid: i32) {
        for mapped in maps::mappings(pid) {
            let file = mapped.path.as_deref().and_then(|path| self.file_named(pid, path)).unwrap_or(NONE);
            let start = if mapped.stack {
                mapped.end.saturating_sub(STACK_MAX).min(mapped.start)
            } else {
                mapped.start
            };
            let len = mapped.end - start;
            let number = self.new_mapping(TraceMapping {
                file,
                file_offset: if file == NONE { 0 } else { mapped.offset },
                len,
                shared: mapped.shared,
                writable: mapped.writable,
                executable: mapped.executable,
            });
            let Some(memory) = self.memory_of(pid) else { return };
            memory.map(start, len, number);
            self.note(pid, OperationKind::Map, number, 0, len, 0);
        }
        let heap = maps::heap_end(pid);
        if let (Some(memory), Some(heap)) = (self.memory_of(pid), heap) {
            memory.set_heap_end(heap);
        }
    }

    fn check_program(&mut self, pid: i32) {
        let link = format!("/proc/{pid}/exe");
        let path = || std::fs::read_link(&link).unwrap_or_default().to_string_lossy().into_owned();
        let mut head = [0; 5];
        let read = std::fs::File::open(&link).and_then(|mut file| std::io::Read::read(&mut file, &mut head));
        if read.is_ok_and(|read| read == head.len()) && head[4] != ELF_64 {
            self.gaps.other_tables.insert(path());
        }
        let (Ok(program), Ok(process)) =
            (std::fs::metadata(&link), std::fs::metadata(format!("/proc/{pid}")))
        else {
            return;
        };
        let set_id =
            program.mode() & SET_ID != 0 && (program.uid(), program.gid()) != (process.uid(), process.gid());
        if set_id || (process.uid() != 0 && crate::program::has_capabilities(Path::new(&link))) {
            self.gaps.without_rights.insert(path());
        }
    }
}
