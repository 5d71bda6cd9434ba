//! One task at work: its files, its memory, the tasks that it spawned.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use trace::{NONE, Operation, OperationKind, advice, open};
use units::{Bytes, Nanos, PAGE_SIZE};

use super::counts::Counts;
use super::pieces::{Piece, pages};
use super::plan::Plan;
use super::thinks::Look;
use crate::parts::limits::{GROUP, Limits};
use crate::system::errno::{Errno, SystemError};
use crate::system::outcome::WorkloadError;
use crate::system::{Advice, FileAdvice, FileMapping, OpenMode, SharedMemory, System, TaskSpec};

/// Time that is owed as sleep, until it is worth one.
const SLEEP_MIN: Nanos = Nanos(100_000);

/// When operations are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// As long after the task's previous one had ended as it was captured.
    Think,
    /// At the captured time, or as soon after it as the task is free.
    Recorded,
    /// As soon as the task is free.
    Asap,
}

/// What a task returns.
type Counted = Result<Counts, WorkloadError>;
/// Anonymous memory that a task shares with those that come of it, by mapping and first page of a piece.
type Memories = BTreeMap<(u32, u64), SharedMemory>;
/// A task at work: it spawns others like itself, so its type must be named.
type Working = Pin<Box<dyn Future<Output = Counted>>>;

/// Begins a task of the trace. `delay_ns` is how long it thinks first; it comes from one that has `memories`, the first
/// ones from outside of the group.
pub(super) async fn spawn<S: System>(
    sys: &S,
    plan: &Arc<Plan>,
    task: u32,
    course: Course,
    delay_ns: u64,
    memories: Option<&Memories>,
) -> Result<S::Task<Counted>, SystemError> {
    let called = &plan.trace.tasks[task as usize].name;
    let called = if called.is_empty() { "task" } else { called };
    let spec = match memories {
        None => Limits::task(called),
        Some(_) => TaskSpec::named(called).in_cgroup(GROUP),
    };
    let memories = memories.cloned().unwrap_or_default();
    let plan = Arc::clone(plan);
    let work = move |sys: S| -> Working {
        Box::pin(async move {
            let mut player = Player {
                sys,
                plan,
                task,
                course,
                owed: 0,
                files: BTreeMap::new(),
                direct: BTreeSet::new(),
                pieces: BTreeMap::new(),
                ended: BTreeSet::new(),
                memories,
                children: BTreeMap::new(),
                counts: Counts { tasks: 1, ..Counts::default() },
            };
            player.work(delay_ns).await?;
            Ok(player.counts)
        })
    };
    sys.spawn(spec, work).await
}

/// How all tasks go about it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Course {
    pub(super) pace: Pace,
    /// When the whole began.
    pub(super) begin: Nanos,
    /// Whether files can lie in memory.
    pub(super) has_memory: bool,
}

struct Player<S: System> {
    sys: S,
    plan: Arc<Plan>,
    task: u32,
    course: Course,
    /// Nanoseconds that it should have slept and did not; below 0 it slept too long.
    owed: i64,
    files: BTreeMap<u32, S::File>,
    /// Files that it has open past the page cache.
    direct: BTreeSet<u32>,
    /// Pieces that are mapped, by mapping and first page.
    pieces: BTreeMap<(u32, u64), S::Mapping>,
    /// Pieces that were taken back.
    ended: BTreeSet<(u32, u64)>,
    /// Of memory that processes share, all that it has, touched or not.
    memories: Memories,
    children: BTreeMap<u32, S::Task<Counted>>,
    counts: Counts,
}

impl<S: System> Player<S> {
    async fn work(&mut self, delay_ns: u64) -> Result<(), WorkloadError> {
        let plan = Arc::clone(&self.plan);
        let mut is_first = true;
        let mut steps = plan.steps[self.task as usize].as_slice();
        while let Some((&step, rest)) = steps.split_first() {
            if let Some((children, _)) = plan.waits.get(&step) {
                for child in children {
                    self.wait_for(*child).await?;
                }
            }
            let think = if std::mem::take(&mut is_first) { delay_ns } else { plan.think(step) };
            let look = plan.look(steps);
            if look.rounds > 1 {
                self.look(look, think).await?;
                steps = &steps[look.steps.len()..];
                continue;
            }
            self.pass(think, plan.trace.operations[step as usize].at_ns).await;
            self.counts.operations += 1;
            self.timed(step).await?;
            steps = rest;
        }
        self.pieces.clear();
        self.files.clear();
        while let Some((child, _)) = self.children.first_key_value() {
            self.wait_for(*child).await?;
        }
        Ok(())
    }

    async fn timed(&mut self, step: u32) -> Result<(), WorkloadError> {
        let asked = self.sys.now();
        self.make(step).await?;
        self.counts.in_operations += self.sys.now().saturating_sub(asked).get();
        Ok(())
    }

    /// What one look saw used several times: as often, while the task thinks.
    async fn look(&mut self, look: Look<'_>, think_ns: u64) -> Result<(), WorkloadError> {
        let plan = Arc::clone(&self.plan);
        let rounds = u64::from(look.rounds);
        self.counts.operations += look.steps.len() as u64;
        for round in 0..rounds {
            let passed = |rounds_done: u64| think_ns / rounds * rounds_done;
            let at_ns = plan.trace.operations[look.steps[0] as usize].at_ns;
            self.pass(passed(round + 1) - passed(round), at_ns.saturating_sub(think_ns - passed(round + 1)))
                .await;
            for &step in look.steps {
                let uses = u64::from(plan.uses(step));
                if round * uses / rounds != (round + 1) * uses / rounds {
                    self.timed(step).await?;
                }
            }
        }
        Ok(())
    }

    async fn wait_for(&mut self, child: u32) -> Result<(), WorkloadError> {
        match self.children.remove(&child) {
            Some(task) => self.counts.join(self.sys.join(task).await),
            None => Ok(()),
        }
    }

    /// Lets time pass before an operation.
    async fn pass(&mut self, think_ns: u64, at_ns: u64) {
        match self.course.pace {
            Pace::Asap => {}
            Pace::Recorded => {
                let ahead = (self.course.begin + Nanos(at_ns)).saturating_sub(self.sys.now());
                if ahead > Nanos::ZERO {
                    self.sys.sleep(ahead).await;
                }
            }
            Pace::Think => {
                self.owed = self.owed.saturating_add_unsigned(think_ns);
                if self.owed < SLEEP_MIN.get().cast_signed() {
                    return;
                }
                let asked = self.sys.now();
                self.sys.sleep(Nanos(self.owed.cast_unsigned())).await;
                let slept = self.sys.now().saturating_sub(asked).get();
                self.owed = self.owed.saturating_sub_unsigned(slept);
            }
        }
    }

    /// Makes an operation, or counts why not.
    async fn make(&mut self, step: u32) -> Result<(), WorkloadError> {
        let plan = Arc::clone(&self.plan);
        let operation = &plan.trace.operations[step as usize];
        if plan.is_in_memory(operation) && !self.course.has_memory {
            self.counts.left_out += 1;
            return Ok(());
        }
        let made = match operation.kind {
            OperationKind::Spawn => self.spawn(step).await,
            OperationKind::Exec => self.exec().await,
            OperationKind::Map => self.share(operation.object).await,
            // Its memory and files go with the task, when it has no more to do.
            OperationKind::Exit => Ok(()),
            OperationKind::Sync => self.sys.sync().await,
            OperationKind::Unmap => self.unmap(operation).await,
            OperationKind::AdviseMapping => self.advise(operation).await,
            OperationKind::Touch | OperationKind::Dirty => self.touch(operation).await,
            _ => self.on_file(operation).await,
        };
        match made {
            Ok(()) => {}
            Err(error) => match error.errno {
                Errno::NotSup => self.counts.left_out += 1,
                Errno::NoEnt | Errno::Exist | Errno::NoMem => self.counts.out_of_order += 1,
                _ => return Err(error.into()),
            },
        }
        Ok(())
    }

    async fn spawn(&mut self, step: u32) -> Result<(), SystemError> {
        let plan = Arc::clone(&self.plan);
        let Some(&child) = plan.spawns.get(&step) else { return Ok(()) };
        let at_ns = plan.trace.operations[step as usize].at_ns;
        let delay = plan.first_think(child, at_ns);
        let task = spawn(&self.sys, &plan, child, self.course, delay, Some(&self.memories)).await?;
        self.children.insert(child, task);
        Ok(())
    }

    /// The file, opened if the task has not done so.
    async fn file(&mut self, file: u32) -> Result<S::File, SystemError> {
        if let Some(open) = self.files.get(&file) {
            return Ok(open.clone());
        }
        let opened = self.sys.open(&self.plan.name(file), OpenMode::ReadWrite).await?;
        self.files.insert(file, opened.clone());
        Ok(opened)
    }

    async fn open(&mut self, file: u32, flags: u32) -> Result<(), SystemError> {
        if flags & open::DIRECT != 0 {
            self.direct.insert(file);
        } else {
            self.direct.remove(&file);
        }
        // A new descriptor, with no past of reads.
        self.files.remove(&file);
        if flags & open::CREATED != 0 {
            match self.sys.open(&self.plan.name(file), OpenMode::Create).await {
                Ok(made) => {
                    self.files.insert(file, made);
                    return Ok(());
                }
                Err(error) if error.errno == Errno::Exist => {}
                Err(error) => return Err(error),
            }
        }
        let opened = self.file(file).await?;
        if flags & open::TRUNCATED != 0 {
            self.sys.truncate(&opened, 0).await?;
        }
        Ok(())
    }

    async fn on_file(&mut self, operation: &Operation) -> Result<(), SystemError> {
        let Operation { kind, object, offset, len, detail, .. } = *operation;
        match kind {
            OperationKind::Open => return self.open(object, detail).await,
            OperationKind::Close => {
                self.files.remove(&object);
                return Ok(());
            }
            OperationKind::Unlink => return self.sys.unlink(&self.plan.name(object)).await,
            OperationKind::Rename => return self.rename(object, detail).await,
            _ => {}
        }
        if self.direct.contains(&object) && matches!(kind, OperationKind::Read | OperationKind::Write) {
            self.counts.left_out += 1;
            return Ok(());
        }
        let file = self.file(object).await?;
        match kind {
            OperationKind::Read => {
                let hits = self.sys.resident_pages(&file, offset, len).await?;
                let read = self.sys.read(&file, offset, len).await?;
                self.counts.read(offset, read, hits);
            }
            OperationKind::Write => {
                self.counts.writes += 1;
                self.counts.written_bytes += self.sys.write(&file, offset, len).await?;
            }
            OperationKind::Fsync => self.sys.fsync(&file).await?,
            OperationKind::Truncate => self.sys.truncate(&file, len).await?,
            OperationKind::ReadAhead => self.sys.read_ahead(&file, offset, len).await?,
            _ => {
                let Some(advice) = file_advice(detail) else {
                    self.counts.left_out += 1;
                    return Ok(());
                };
                self.sys.advise_file(&file, offset, len, advice).await?;
            }
        }
        Ok(())
    }

    /// Files are called by their numbers whatever happens to their names: one that is renamed gets its own back. Where
    /// there is no such call, the file whose name it took is gone all the same.
    async fn rename(&mut self, file: u32, victim: u32) -> Result<(), SystemError> {
        let own = self.plan.name(file);
        let other = if victim == NONE { format!("{own}r") } else { self.plan.name(victim) };
        match self.sys.rename(&own, &other).await {
            Ok(()) => self.sys.rename(&other, &own).await,
            Err(error) if error.errno == Errno::NotSup && victim != NONE => self.sys.unlink(&other).await,
            Err(error) => Err(error),
        }
    }

    /// The pieces of a range of a mapping.
    fn pieces_of(&self, operation: &Operation) -> Vec<Piece> {
        let (first, past) = pages(operation.offset, operation.len);
        let all = &self.plan.pieces[operation.object as usize];
        let from = all.partition_point(|piece| piece.past <= first);
        all[from..].iter().take_while(|piece| piece.first < past).copied().collect()
    }

    /// Memory that processes share is there from the call that maps it on: those that come of this task have it, too.
    async fn share(&mut self, mapping: u32) -> Result<(), SystemError> {
        if !self.plan.is_shared_memory(mapping) {
            return Ok(());
        }
        let plan = Arc::clone(&self.plan);
        for piece in &plan.pieces[mapping as usize] {
            let key = (mapping, piece.first);
            if !self.memories.contains_key(&key) {
                let len = Bytes((piece.past - piece.first) * PAGE_SIZE);
                self.memories.insert(key, self.sys.share_memory(len).await?);
            }
        }
        Ok(())
    }

    /// Lets go of memory that processes share; what of it was touched is among the pieces.
    async fn leave(&mut self, key: (u32, u64)) -> Result<(), SystemError> {
        let memory = self.memories.remove(&key);
        if let (Some(memory), None) = (memory, self.pieces.remove(&key)) {
            drop(self.sys.map_shared_memory(memory).await?);
        }
        Ok(())
    }

    /// Another program has none of the memory.
    async fn exec(&mut self) -> Result<(), SystemError> {
        while let Some((&key, _)) = self.memories.first_key_value() {
            self.leave(key).await?;
        }
        self.pieces.clear();
        Ok(())
    }

    async fn unmap(&mut self, operation: &Operation) -> Result<(), SystemError> {
        for piece in self.pieces_of(operation) {
            let key = (operation.object, piece.first);
            self.leave(key).await?;
            self.ended.insert(key);
        }
        Ok(())
    }

    async fn advise(&mut self, operation: &Operation) -> Result<(), SystemError> {
        let Some(advice) = mapping_advice(operation.detail) else {
            self.counts.left_out += 1;
            return Ok(());
        };
        for piece in self.pieces_of(operation) {
            if let Some(mapping) = self.pieces.get(&(operation.object, piece.first)) {
                self.sys.advise(mapping, advice).await?;
            }
        }
        Ok(())
    }

    async fn touch(&mut self, operation: &Operation) -> Result<(), SystemError> {
        let Operation { object, offset, len, kind, .. } = *operation;
        let writes = kind == OperationKind::Dirty;
        let mapping = self.plan.trace.mappings[object as usize];
        let is_own = self.plan.is_mapped_by(object, self.task);
        if mapping.file == NONE && !writes && !is_own {
            self.counts.left_out += 1; // The page is that of the process that forked this one.
            return Ok(());
        }
        let (first, past) = pages(offset, len);
        for piece in self.pieces_of(operation) {
            let key = (object, piece.first);
            if self.ended.contains(&key) {
                self.counts.out_of_order += 1;
                continue;
            }
            if !self.pieces.contains_key(&key) {
                let mapped = self.map(object, piece).await?;
                self.pieces.insert(key, mapped);
            }
            let mapped = &self.pieces[&key];
            let from = first.max(piece.first);
            let count = past.min(piece.past) - from;
            if writes {
                self.sys.touch(mapped, from - piece.first, count).await?;
                self.counts.dirtied += count;
            } else {
                self.sys.touch_reading(mapped, from - piece.first, count).await?;
                self.counts.touched += count;
            }
        }
        Ok(())
    }

    async fn map(&mut self, mapping: u32, piece: Piece) -> Result<S::Mapping, SystemError> {
        let how = self.plan.trace.mappings[mapping as usize];
        let len = Bytes((piece.past - piece.first) * PAGE_SIZE);
        if self.plan.is_shared_memory(mapping) {
            let memory = self.memories.get(&(mapping, piece.first)).copied();
            let missing = || SystemError::new("mmap", "shared memory", Errno::NoEnt);
            return self.sys.map_shared_memory(memory.ok_or_else(missing)?).await;
        }
        if how.file == NONE {
            return self.sys.map_anonymous(len).await;
        }
        let file = self.file(how.file).await?;
        let offset = how.file_offset + piece.first * PAGE_SIZE;
        // What is private may have been written to before it was protected, as what a linker relocates is.
        let writable = how.writable || !how.shared;
        let how = FileMapping { shared: how.shared, writable, executable: how.executable };
        self.sys.map_file(&file, offset, len, how).await
    }
}

fn file_advice(number: u32) -> Option<FileAdvice> {
    Some(match number {
        advice::NORMAL => FileAdvice::Normal,
        advice::RANDOM => FileAdvice::Random,
        advice::SEQUENTIAL => FileAdvice::Sequential,
        advice::WILL_NEED => FileAdvice::WillNeed,
        advice::DONT_NEED => FileAdvice::DontNeed,
        advice::NO_REUSE => FileAdvice::NoReuse,
        _ => return None,
    })
}

fn mapping_advice(number: u32) -> Option<Advice> {
    Some(match number {
        advice::NORMAL => Advice::Normal,
        advice::RANDOM => Advice::Random,
        advice::SEQUENTIAL => Advice::Sequential,
        advice::WILL_NEED => Advice::WillNeed,
        advice::DONT_NEED => Advice::DontNeed,
        advice::FREE => Advice::Free,
        advice::HUGE_PAGE => Advice::HugePage,
        advice::NO_HUGE_PAGE => Advice::NoHugePage,
        advice::COLD => Advice::Cold,
        advice::PAGE_OUT => Advice::PageOut,
        _ => return None,
    })
}
