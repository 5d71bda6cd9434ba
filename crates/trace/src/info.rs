//! What is in a trace: who did what to which files and memory, in figures.
//!
//! [`TraceInfo::of`] reads all operations once. A page is 4 KiB. An access is a page that was read or written by a
//! call, or that was seen touched in a mapping; a page of a file is the same page whether it is read or mapped.
//! Reuse distances are those of one LRU list over all files and memory, so that their sums are the hits of a cache
//! of that size which knows nothing of a kernel's ways.
//!
//! Left out: what a page cache does by itself (readahead, writeback), what removing and cutting files frees. Next:
//! [`reuse`], which counts the distances.

mod reuse;

use std::collections::BTreeMap;

use serde::Serialize;

use self::reuse::{Access, Distances};
use crate::{NONE, Operation, OperationKind, Trace};

/// Bytes of a page.
const PAGE: u64 = 4096;
/// With more accesses than this, distances are sampled.
const ACCESSES_MAX: u64 = 16 << 20;
/// Operations on more pages, a terabyte, are no accesses: no program makes such, but a file may say so.
const PAGES_MAX: u64 = 1 << 28;
/// How many files are named.
const FILES_NAMED: usize = 5;

/// Figures of a trace.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TraceInfo {
    /// [`Trace::source`].
    pub source: String,
    /// [`Trace::command`].
    pub command: String,
    /// [`Trace::length_ns`], in seconds.
    pub seconds: f64,
    /// Time that tasks computed and spent in calls, in seconds of all tasks.
    pub thinking_seconds: f64,
    /// Likewise in calls that are in the trace.
    pub in_calls_seconds: f64,
    /// Processes, and tasks with their threads.
    pub processes: u64,
    /// Tasks of all processes.
    pub tasks: u64,
    /// How often which program ran: processes by their names, the most first.
    pub programs: Vec<(String, u64)>,
    /// Files that are named in it, and their bytes in all.
    pub files: u64,
    /// Bytes of all files.
    pub file_bytes: u64,
    /// The largest, the largest first.
    pub largest: Vec<FileInfo>,
    /// Those of which most was read, the most first.
    pub most_read: Vec<FileInfo>,
    /// Operations, by name, in the order of their kinds: how many, and bytes that they came to.
    pub operations: Vec<(&'static str, u64, u64)>,
    /// Calls that read.
    pub reads: Transfers,
    /// Calls that wrote.
    pub writes: Transfers,
    /// Pages that were accessed.
    pub footprint: Footprint,
    /// Memory that was mapped.
    pub memory: Memory,
    /// How far apart accesses to a page are.
    pub reuse: Reuse,
    /// [`Trace::gaps`].
    pub gaps: Vec<String>,
}

/// Figures of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FileInfo {
    /// Its path.
    pub path: String,
    /// Its bytes when it was first opened.
    pub size_bytes: u64,
    /// Bytes that were read of it.
    pub read_bytes: u64,
    /// Bytes that were written to it.
    pub written_bytes: u64,
}

/// Calls that move bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Transfers {
    /// How many came to more than nothing.
    pub calls: u64,
    /// Bytes of all.
    pub bytes: u64,
    /// Those that began where the same task's last one in the file had ended.
    pub sequential_calls: u64,
    /// Runs of calls each of which goes on where the one before it had ended.
    pub runs: u64,
}

/// Pages that were accessed, each counted once; of a sample, as many as it stands for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Footprint {
    /// Pages of files.
    pub file_pages: u64,
    /// Pages of anonymous memory that were seen touched.
    pub anonymous_pages: u64,
}

/// Memory that was mapped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Memory {
    /// Mappings of files, and of none.
    pub file_mappings: u64,
    /// Mappings of anonymous memory.
    pub anonymous_mappings: u64,
    /// The most bytes of files that were mapped at a time.
    pub mapped_bytes_most: u64,
    /// The most bytes of anonymous memory that were mapped at a time.
    pub anonymous_bytes_most: u64,
    /// How often pages were seen touched, [`Trace::sampled_every_ns`] apart.
    pub touched_pages: u64,
    /// Likewise written to.
    pub dirtied_pages: u64,
}

/// How many of the accesses a cache of some size would have had.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Reuse {
    /// Accesses, of all pages.
    pub accesses: u64,
    /// One page in so many was followed; 1: all.
    pub one_in: u64,
    /// Accesses to the pages that were followed.
    pub followed: u64,
    /// Of these, the first ones to a page.
    pub first: u64,
    /// Of these, further ones, by the pages that a cache must hold for them to hit: up to 1, 2, 4, ... pages.
    pub within: Vec<(u64, u64)>,
}

impl Reuse {
    /// The part of accesses that hit in an LRU cache of so many pages, a power of two; 0 of none.
    pub fn hit_ratio(&self, pages: u64) -> f64 {
        let hits: u64 = self.within.iter().filter(|&&(most, _)| most <= pages).map(|&(_, count)| count).sum();
        if self.followed == 0 { 0.0 } else { hits as f64 / self.followed as f64 }
    }
}

impl TraceInfo {
    /// Reads a whole trace, which passes [`Trace::check`].
    pub fn of(trace: &Trace) -> Self {
        let mut reader = Reader::new(trace);
        trace.operations.iter().for_each(|operation| reader.operation(operation));
        reader.finish()
    }
}

/// Where the last call of a task in a file ended, and figures of such calls.
#[derive(Debug, Default)]
struct Sequence {
    ends: BTreeMap<(u32, u32), u64>,
    transfers: Transfers,
}

impl Sequence {
    fn add(&mut self, operation: &Operation) {
        let Operation { task, object, offset, len, .. } = *operation;
        if len == 0 {
            return; // The end of a file.
        }
        let before = self.ends.insert((task, object), offset + len);
        let goes_on = before == Some(offset);
        let transfers = &mut self.transfers;
        transfers.calls += 1;
        add(&mut transfers.bytes, len);
        transfers.sequential_calls += u64::from(goes_on);
        transfers.runs += u64::from(!goes_on);
    }
}

struct Reader<'a> {
    trace: &'a Trace,
    files: Vec<(u64, u64)>,
    kinds: [(u64, u64); OperationKind::ALL.len()],
    reads: Sequence,
    writes: Sequence,
    footprint: Footprint,
    memory: Memory,
    /// Bytes mapped now, of files and of none.
    mapped: (u64, u64),
    /// What is left of each process's mappings, to go with it.
    left: BTreeMap<u32, BTreeMap<u32, u64>>,
    distances: Distances,
    followed: u64,
    first: u64,
    within: BTreeMap<u64, u64>,
    accesses: u64,
    thinking_ns: u128,
    in_calls_ns: u128,
}

/// Pages of a range, from the first to the last.
fn pages(offset: u64, len: u64) -> std::ops::Range<u64> {
    let (first, end) = (offset / PAGE, offset.saturating_add(len).div_ceil(PAGE));
    if len == 0 || end - first > PAGES_MAX { 0..0 } else { first..end }
}

/// Sums of what a damaged file says stay where they are.
fn add(sum: &mut u64, more: u64) {
    *sum = sum.saturating_add(more);
}

fn is_access(kind: OperationKind) -> bool {
    matches!(kind, OperationKind::Read | OperationKind::Write | OperationKind::Touch | OperationKind::Dirty)
}

impl<'a> Reader<'a> {
    fn new(trace: &'a Trace) -> Self {
        let all = trace.operations.iter().filter(|operation| is_access(operation.kind));
        let accesses = all.fold(0_u64, |sum, operation| {
            let pages = pages(operation.offset, operation.len);
            sum.saturating_add(pages.end - pages.start)
        });
        let one_in = accesses.div_ceil(ACCESSES_MAX).next_power_of_two();
        Self {
            trace,
            files: vec![(0, 0); trace.files.len()],
            kinds: [(0, 0); OperationKind::ALL.len()],
            reads: Sequence::default(),
            writes: Sequence::default(),
            footprint: Footprint::default(),
            memory: Memory::default(),
            mapped: (0, 0),
            left: BTreeMap::new(),
            distances: Distances::new(one_in),
            followed: 0,
            first: 0,
            within: BTreeMap::new(),
            accesses,
            thinking_ns: 0,
            in_calls_ns: 0,
        }
    }

    fn operation(&mut self, operation: &Operation) {
        let Operation { kind, object, len, .. } = *operation;
        let noted = &mut self.kinds[kind as usize];
        *noted = (noted.0 + 1, noted.1.saturating_add(len));
        self.thinking_ns += u128::from(operation.think_ns);
        self.in_calls_ns += u128::from(operation.took_ns);
        match kind {
            OperationKind::Read => {
                add(&mut self.files[object as usize].0, len);
                self.reads.add(operation);
            }
            OperationKind::Write => {
                add(&mut self.files[object as usize].1, len);
                self.writes.add(operation);
            }
            OperationKind::Touch => self.memory.touched_pages += len.div_ceil(PAGE),
            OperationKind::Dirty => self.memory.dirtied_pages += len.div_ceil(PAGE),
            OperationKind::Map => self.map(operation),
            OperationKind::Unmap => self.unmap(operation),
            OperationKind::Exec | OperationKind::Exit => self.leave(operation),
            _ => {}
        }
        if is_access(kind) {
            self.access(operation);
        }
    }

    fn access(&mut self, operation: &Operation) {
        let Operation { kind, object, offset, len, .. } = *operation;
        let is_mapped = matches!(kind, OperationKind::Touch | OperationKind::Dirty);
        let (object, offset, is_file) = if is_mapped {
            let mapping = self.trace.mappings[object as usize];
            match mapping.file {
                NONE => (u64::from(NONE) + u64::from(object), offset, false),
                file => (u64::from(file), mapping.file_offset + offset, true),
            }
        } else {
            (u64::from(object), offset, true)
        };
        for page in pages(offset, len) {
            match self.distances.access(object, page) {
                Access::Left => continue,
                Access::First => {
                    let footprint = &mut self.footprint;
                    let count =
                        if is_file { &mut footprint.file_pages } else { &mut footprint.anonymous_pages };
                    *count += self.distances.one_in;
                    self.first += 1;
                }
                Access::Again(most) => *self.within.entry(most.next_power_of_two()).or_default() += 1,
            }
            self.followed += 1;
        }
    }

    fn process(&self, task: u32) -> u32 {
        self.trace.tasks[task as usize].process
    }

    fn map(&mut self, operation: &Operation) {
        let mapping = self.trace.mappings[operation.object as usize];
        let process = self.process(operation.task);
        self.left.entry(process).or_default().insert(operation.object, mapping.len);
        let memory = &mut self.memory;
        if mapping.file == NONE {
            add(&mut self.mapped.1, mapping.len);
            memory.anonymous_mappings += 1;
            memory.anonymous_bytes_most = memory.anonymous_bytes_most.max(self.mapped.1);
        } else {
            add(&mut self.mapped.0, mapping.len);
            memory.file_mappings += 1;
            memory.mapped_bytes_most = memory.mapped_bytes_most.max(self.mapped.0);
        }
    }

    fn unmap(&mut self, operation: &Operation) {
        let process = self.process(operation.task);
        let left = self.left.get_mut(&process).and_then(|left| left.get_mut(&operation.object));
        let Some(left) = left else { return };
        let gone = operation.len.min(*left);
        *left -= gone;
        self.give_back(operation.object, gone);
    }

    /// A program is over: its last task ended, or another began in its place.
    fn leave(&mut self, operation: &Operation) {
        let process = self.process(operation.task);
        if operation.kind == OperationKind::Exit && operation.task != process {
            return; // A thread.
        }
        for (mapping, len) in self.left.remove(&process).unwrap_or_default() {
            self.give_back(mapping, len);
        }
    }

    fn give_back(&mut self, mapping: u32, len: u64) {
        let is_file = self.trace.mappings[mapping as usize].file != NONE;
        let mapped = if is_file { &mut self.mapped.0 } else { &mut self.mapped.1 };
        *mapped = mapped.saturating_sub(len);
    }

    fn finish(self) -> TraceInfo {
        let trace = self.trace;
        let file = |number: usize| FileInfo {
            path: trace.files[number].path.clone(),
            size_bytes: trace.files[number].size_bytes,
            read_bytes: self.files[number].0,
            written_bytes: self.files[number].1,
        };
        let named = |by: &dyn Fn(usize) -> u64| {
            let mut numbers: Vec<usize> = (0..trace.files.len()).filter(|&number| by(number) > 0).collect();
            numbers.sort_by_key(|&number| std::cmp::Reverse(by(number))); // Stable.
            numbers.into_iter().take(FILES_NAMED).map(file).collect()
        };
        let kinds = OperationKind::ALL.into_iter().zip(self.kinds);
        let operations =
            kinds.filter(|(_, noted)| noted.0 > 0).map(|(kind, noted)| (kind.name(), noted.0, noted.1));
        let is_process = |number: usize| trace.tasks[number].process as usize == number;
        let processes: Vec<usize> = (0..trace.tasks.len()).filter(|&number| is_process(number)).collect();
        let seconds = |ns: u128| ns as f64 / 1e9;
        TraceInfo {
            source: trace.source.clone(),
            command: trace.command.clone(),
            seconds: seconds(u128::from(trace.length_ns)),
            thinking_seconds: seconds(self.thinking_ns),
            in_calls_seconds: seconds(self.in_calls_ns),
            processes: processes.len() as u64,
            tasks: trace.tasks.len() as u64,
            programs: programs(processes.iter().map(|&number| trace.tasks[number].name.as_str())),
            files: trace.files.len() as u64,
            file_bytes: trace.files.iter().fold(0, |sum, file| sum.saturating_add(file.size_bytes)),
            largest: named(&|number| trace.files[number].size_bytes),
            most_read: named(&|number| self.files[number].0),
            operations: operations.collect(),
            reads: self.reads.transfers,
            writes: self.writes.transfers,
            footprint: self.footprint,
            memory: self.memory,
            reuse: Reuse {
                accesses: self.accesses,
                one_in: self.distances.one_in,
                followed: self.followed,
                first: self.first,
                within: self.within.into_iter().collect(),
            },
            gaps: trace.gaps.clone(),
        }
    }
}

/// Names with how often each comes, the most first; those that are as many by name.
fn programs<'a>(names: impl Iterator<Item = &'a str>) -> Vec<(String, u64)> {
    let mut counted = BTreeMap::<&str, u64>::new();
    names.for_each(|name| *counted.entry(name).or_default() += 1);
    let mut all: Vec<_> = counted.into_iter().map(|(name, count)| (name.to_owned(), count)).collect();
    all.sort_by_key(|&(_, count)| std::cmp::Reverse(count));
    all
}
