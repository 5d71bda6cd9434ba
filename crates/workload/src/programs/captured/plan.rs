//! Which task does which operations, in which order, and what must be there before: all that can be known of a
//! replay before it runs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use trace::{ActsOn, NONE, Operation, OperationKind, Trace, open};
use units::{Bytes, PAGE_SIZE};

use super::pieces::{Cutting, Piece};
use super::thinks::{Look, thinks, uses};
use crate::parts::footprint::Footprint;

/// Of a file more is laid out than the program comes to, as far as readahead may look ahead of it.
const BEHIND: u64 = 16 << 20;

/// A trace and what follows from it.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) trace: Arc<Trace>,
    /// Operations of each task by their numbers, in order.
    pub(super) steps: Vec<Vec<u32>>,
    /// Tasks that nobody spawns.
    pub(super) roots: Vec<u32>,
    /// The task that an operation spawns.
    pub(super) spawns: BTreeMap<u32, u32>,
    /// Before an operation its task waits for the end of these, the last of which ended at so many nanoseconds.
    pub(super) waits: BTreeMap<u32, (Vec<u32>, u64)>,
    /// How long its task thinks before each operation.
    thinks: Vec<u64>,
    /// What is laid out, by file.
    files: BTreeMap<u32, PlannedFile>,
    /// Pieces of each mapping.
    pub(super) pieces: Vec<Vec<Piece>>,
    /// The process that made each mapping; [`NONE`] where the trace does not tell.
    made_by: Vec<u32>,
    /// Anonymous memory that processes share, by mapping.
    shared: BTreeMap<u32, Shared>,
    /// Bytes that files grow by.
    grown: u64,
    remarks: Vec<String>,
}

/// How anonymous memory that processes share is replayed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shared {
    /// Whoever maps it hands it to the tasks that come of it: each touches it itself.
    Inherited,
    /// This task touches it for all, since some came otherwise: of a thread, or before it was mapped.
    By(u32),
}

/// A file that is there before the program begins.
#[derive(Debug, Clone, Copy)]
pub(super) struct PlannedFile {
    pub(super) laid_out: Bytes,
}

/// The directory of files that lie in memory.
pub(super) const IN_MEMORY: &str = "shm";

impl Plan {
    pub(super) fn of(trace: Arc<Trace>) -> Self {
        let (roots, spawns) = family(&trace);
        let shared = shared(&trace, &spawns);
        let mut steps = vec![Vec::new(); trace.tasks.len()];
        for (number, operation) in (0_u32..).zip(&trace.operations) {
            steps[home(&trace, &shared, operation) as usize].push(number);
        }
        let waits = waits(&trace, &steps, &spawns);
        let home = |step: u32| home(&trace, &shared, &trace.operations[step as usize]);
        let thinks = thinks(&trace, &steps, home, &waits);
        let made_by = made_by(&trace);
        let (pieces, too_many) = pieces(&trace);
        let (files, grown) = files(&trace);
        let mut remarks = Vec::new();
        if too_many > 0 {
            remarks.push(format!(
                "{too_many} mappings were taken back or advised on in thousands of parts: some parts stay longer"
            ));
        }
        let by_one = shared.values().filter(|how| **how != Shared::Inherited).count();
        if by_one > 0 {
            remarks.push(format!(
                "{by_one} mappings of anonymous memory that processes share are touched by the process that made them, \
                 as one that shares them was begun by another thread or before they were made"
            ));
        }
        Self { trace, steps, roots, spawns, waits, thinks, files, pieces, made_by, shared, grown, remarks }
    }

    /// Files that are laid out, in order.
    pub(super) fn files(&self) -> impl Iterator<Item = (u32, PlannedFile)> {
        self.files.iter().map(|(&number, &file)| (number, file))
    }

    pub(super) fn remarks(&self) -> impl Iterator<Item = String> {
        self.remarks.iter().cloned()
    }

    /// How long a task thinks before its first operation, that was spawned at this time.
    pub(super) fn first_think(&self, task: u32, spawned_ns: u64) -> u64 {
        let Some(&first) = self.steps[task as usize].first() else { return 0 };
        let first = &self.trace.operations[first as usize];
        if first.at_ns == 0 { first.think_ns } else { first.at_ns.saturating_sub(spawned_ns) }
    }

    /// How long its task thinks before a step that is not its first.
    pub(super) fn think(&self, step: u32) -> u64 {
        self.thinks[step as usize]
    }

    /// Of a task's next steps those that one look at its memory saw, and how often they were at most.
    pub(super) fn look<'a>(&self, steps: &'a [u32]) -> Look<'a> {
        Look::of(&self.trace, steps, &self.waits)
    }

    /// How often what a step touches was used.
    pub(super) fn uses(&self, step: u32) -> u32 {
        uses(&self.trace.operations[step as usize])
    }

    pub(super) fn is_in_memory(&self, operation: &Operation) -> bool {
        is_in_memory(&self.trace, operation)
    }

    /// Whether a file lies in memory.
    pub(super) fn is_file_in_memory(&self, file: u32) -> bool {
        self.trace.files.get(file as usize).is_some_and(|file| file.in_memory)
    }

    /// Whether some operation is on such a file.
    pub(super) fn uses_memory(&self) -> bool {
        self.trace.operations.iter().any(|operation| self.is_in_memory(operation))
    }

    /// What a file is called here.
    pub(super) fn name(&self, file: u32) -> String {
        if self.is_file_in_memory(file) { format!("{IN_MEMORY}/f{file}") } else { format!("f{file}") }
    }

    /// Whether the process of `task` made the mapping, or is the one that touches it for all.
    pub(super) fn is_mapped_by(&self, mapping: u32, task: u32) -> bool {
        match (self.shared.get(&mapping), self.made_by[mapping as usize]) {
            (Some(Shared::Inherited), _) | (None, NONE) => true,
            (Some(&Shared::By(by)), _) => by == task,
            (None, maker) => maker == self.trace.tasks[task as usize].process,
        }
    }

    /// Whether a mapping is of anonymous memory that processes share.
    pub(super) fn is_shared_memory(&self, mapping: u32) -> bool {
        self.shared.contains_key(&mapping)
    }

    pub(super) fn footprint(&self) -> Footprint {
        let laid_out = |in_memory: bool| -> u64 {
            let files = self.files().filter(|&(number, _)| self.is_file_in_memory(number) == in_memory);
            files.map(|(_, file)| file.laid_out.get()).sum()
        };
        let anonymous =
            self.trace.mappings.iter().zip(&self.pieces).filter(|(mapping, _)| mapping.file == NONE);
        let pages: u64 = anonymous.flat_map(|(_, pieces)| pieces).map(|piece| piece.past - piece.first).sum();
        Footprint {
            files: Bytes(laid_out(false).saturating_add(self.grown)),
            file_count: self.trace.files.len() as u64,
            anonymous: Bytes(pages.saturating_mul(PAGE_SIZE).saturating_add(laid_out(true))),
            tasks: self.trace.tasks.len() as u64,
            disks: 1,
        }
    }
}

/// The process that made each mapping.
fn made_by(trace: &Trace) -> Vec<u32> {
    let mut by = vec![NONE; trace.mappings.len()];
    for operation in trace.operations.iter().filter(|operation| operation.kind == OperationKind::Map) {
        let maker = &mut by[operation.object as usize];
        if *maker == NONE {
            *maker = trace.tasks[operation.task as usize].process;
        }
    }
    by
}

/// Anonymous memory that processes share, and whether all that touch it can have it from the one that mapped it.
fn shared(trace: &Trace, spawns: &BTreeMap<u32, u32>) -> BTreeMap<u32, Shared> {
    let mut maps: BTreeMap<u32, (u32, u32)> = BTreeMap::new();
    for (step, operation) in (0_u32..).zip(&trace.operations) {
        let is_map = operation.kind == OperationKind::Map;
        if is_map && is_shared_memory(trace, operation.object) {
            let process = trace.tasks[operation.task as usize].process;
            maps.entry(operation.object).or_insert((process, step));
        }
    }
    let began: BTreeMap<u32, u32> = spawns.iter().map(|(&step, &child)| (child, step)).collect();
    // A process has it if it was begun by the first task of one that has it, after it was mapped.
    let has = |process: u32, (maker, step): (u32, u32)| {
        let mut process = process;
        while process != maker {
            let Some(&spawn) = began.get(&process) else { return false };
            let parent = trace.operations[spawn as usize].task;
            if spawn < step || trace.tasks[parent as usize].process != parent {
                return false;
            }
            process = parent;
        }
        true
    };
    let mut shared: BTreeMap<u32, Shared> =
        maps.keys().map(|&mapping| (mapping, Shared::Inherited)).collect();
    for operation in &trace.operations {
        let touches = matches!(operation.kind, OperationKind::Touch | OperationKind::Dirty);
        let map = touches.then(|| maps.get(&operation.object)).flatten();
        if let Some(&map) = map
            && !has(trace.tasks[operation.task as usize].process, map)
        {
            shared.insert(operation.object, Shared::By(map.0));
        }
    }
    shared
}

fn is_shared_memory(trace: &Trace, mapping: u32) -> bool {
    let mapping = trace.mappings[mapping as usize];
    mapping.shared && mapping.file == NONE
}

/// The task that makes an operation: what is on memory is made by the first of its process.
fn home(trace: &Trace, shared: &BTreeMap<u32, Shared>, operation: &Operation) -> u32 {
    let process = trace.tasks[operation.task as usize].process;
    match operation.kind {
        OperationKind::Touch | OperationKind::Dirty => match shared.get(&operation.object) {
            Some(&Shared::By(task)) => task,
            _ => process,
        },
        OperationKind::Exec => process,
        kind if kind.acts_on() == ActsOn::Mapping => process,
        _ => operation.task,
    }
}

fn is_in_memory(trace: &Trace, operation: &Operation) -> bool {
    let file = match operation.kind.acts_on() {
        ActsOn::File => operation.object,
        ActsOn::Mapping => trace.mappings[operation.object as usize].file,
        ActsOn::Task | ActsOn::Nothing => NONE,
    };
    trace.files.get(file as usize).is_some_and(|file| file.in_memory)
}

/// Tasks that begin by themselves, and who spawns the others: each has one parent, and nobody is its own ancestor.
fn family(trace: &Trace) -> (Vec<u32>, BTreeMap<u32, u32>) {
    let mut spawned = BTreeSet::new();
    let mut steps = vec![Vec::new(); trace.tasks.len()];
    for (step, operation) in (0_u32..).zip(&trace.operations) {
        if operation.kind == OperationKind::Spawn {
            spawned.insert(operation.object);
            steps[operation.task as usize].push(step);
        }
    }
    let all = 0..trace.tasks.len() as u32;
    // Whoever nobody spawns begins; then whoever is left, since tasks that spawn each other begin somewhere.
    let first = all.clone().filter(|task| !spawned.contains(task));
    let (mut roots, mut spawns, mut known) = (Vec::new(), BTreeMap::new(), BTreeSet::new());
    for task in first.chain(all) {
        if !known.insert(task) {
            continue;
        }
        roots.push(task);
        let mut open = vec![task];
        while let Some(parent) = open.pop() {
            for &step in &steps[parent as usize] {
                let child = trace.operations[step as usize].object;
                if known.insert(child) {
                    spawns.insert(step, child);
                    open.push(child);
                }
            }
        }
    }
    (roots, spawns)
}

/// Whom tasks waited for: a task that ended while the one that spawned it did nothing that is in the trace. One that
/// the trace only stops to speak of may have gone on.
fn waits(trace: &Trace, steps: &[Vec<u32>], spawns: &BTreeMap<u32, u32>) -> BTreeMap<u32, (Vec<u32>, u64)> {
    let mut waits: BTreeMap<u32, (Vec<u32>, u64)> = BTreeMap::new();
    for (&spawn, &child) in spawns {
        // By their order, which tells more than times: many operations may have one.
        let Some(&exit) = steps[child as usize].last() else { continue };
        let OperationKind::Exit = trace.operations[exit as usize].kind else { continue };
        let ended_ns = trace.operations[exit as usize].at_ns;
        let own = &steps[trace.operations[spawn as usize].task as usize];
        let operation = |place: usize| &trace.operations[own[place] as usize];
        let next = own.partition_point(|&step| step < exit);
        let after_spawn = own.partition_point(|&step| step <= spawn);
        if next < after_spawn || next >= own.len() {
            continue;
        }
        let before = operation(next - 1);
        if before.at_ns.saturating_add(before.took_ns) <= ended_ns {
            let (children, last_ns) = waits.entry(own[next]).or_default();
            children.push(child);
            *last_ns = ended_ns.max(*last_ns);
        }
    }
    waits
}

/// The pieces of all mappings, and how many mappings have too many.
fn pieces(trace: &Trace) -> (Vec<Vec<Piece>>, usize) {
    let mut cuttings = vec![Cutting::default(); trace.mappings.len()];
    for operation in &trace.operations {
        let Operation { offset, len, object, .. } = *operation;
        match operation.kind {
            OperationKind::Touch | OperationKind::Dirty => cuttings[object as usize].touch(offset, len),
            OperationKind::Unmap | OperationKind::AdviseMapping => cuttings[object as usize].cut(offset, len),
            _ => {}
        }
    }
    let too_many = cuttings.iter().filter(|cutting| cutting.too_many).count();
    (cuttings.into_iter().map(Cutting::pieces).collect(), too_many)
}

/// What of a file the operations come to.
#[derive(Debug, Clone, Copy, Default)]
struct Reached {
    /// One behind the last byte that is there before and is used.
    read: u64,
    written: u64,
    /// Whether the program makes it.
    is_made: Option<bool>,
}

/// Files that are there before, and the bytes that they grow by.
fn files(trace: &Trace) -> (BTreeMap<u32, PlannedFile>, u64) {
    let mut reached: BTreeMap<u32, Reached> = BTreeMap::new();
    for operation in &trace.operations {
        let (file, begin) = match operation.kind.acts_on() {
            ActsOn::File => (operation.object, operation.offset),
            ActsOn::Mapping => {
                let mapping = trace.mappings[operation.object as usize];
                (mapping.file, mapping.file_offset.saturating_add(operation.offset))
            }
            ActsOn::Task | ActsOn::Nothing => continue,
        };
        if file == NONE {
            continue;
        }
        let size = trace.files[file as usize].size_bytes;
        let found = reached.entry(file).or_default();
        let end = begin.saturating_add(operation.len);
        match operation.kind {
            OperationKind::Write => found.written = found.written.max(end),
            OperationKind::Truncate => {}
            OperationKind::Read if operation.len > 0 => found.read = found.read.max(end),
            OperationKind::Touch | OperationKind::Dirty => found.read = found.read.max(end),
            _ => {}
        }
        let made = match operation.kind {
            OperationKind::Open => operation.detail & open::CREATED != 0,
            OperationKind::Write => size == 0,
            _ => false,
        };
        found.is_made.get_or_insert(made);
    }
    let grown = |found: &Reached, laid_out: u64| found.written.saturating_sub(laid_out);
    let mut files = BTreeMap::new();
    let mut more = 0_u64;
    for (number, found) in reached {
        let file = &trace.files[number as usize];
        if found.is_made == Some(true) {
            more = more.saturating_add(found.written);
            continue;
        }
        // Sources that do not know sizes say 0: then there is what was read.
        let size = if file.size_bytes == 0 { found.read } else { file.size_bytes };
        let used = found.read.max(found.written).saturating_add(BEHIND);
        let laid_out = size.min(used);
        more = more.saturating_add(grown(&found, laid_out));
        files.insert(number, PlannedFile { laid_out: Bytes(laid_out) });
    }
    (files, more)
}
