//! A task of a workload file at work: its steps, one after the other.
//!
//! Each task opens a file when it first comes to it and keeps it open; of a set of many files it opens the one that it
//! comes to, goes through all of it, and closes it. Left out: steps of two tasks in one order, but for phases. Next:
//! [`super::play`], which starts tasks and ends phases.

use std::collections::{BTreeMap, VecDeque};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use units::{Bytes, Nanos, PAGE_SIZE, Stream};

use crate::parts::buffer;
use crate::parts::chance::{self, Started};
use crate::system::outcome::WorkloadError;
use crate::system::{Errno, FileMapping, OpenMode, System};
use crate::written::definition::{Again, Bound, Deed, Much, Step, Work};
use crate::written::plan::Plan;
use crate::written::steps::{WHOLE, file_advice, mapping_advice, order};
use crate::written::tally::Tally;
use crate::written::walk::Walk;

/// Who a task is.
#[derive(Debug, Clone)]
pub(super) struct Who {
    /// Its kind, by its number in the file.
    pub(super) kind: usize,
    /// Its number among those of its kind, and how many they are.
    pub(super) number: u64,
    pub(super) of: u64,
    pub(super) name: String,
}

/// A mapping, and how many pages of it this task comes to.
struct Mapped<S: System> {
    mapping: S::Mapping,
    pages: u64,
}

/// A task.
pub(super) struct Actor<S: System> {
    sys: S,
    plan: Arc<Plan>,
    who: Who,
    bound: Arc<Bound>,
    files: BTreeMap<String, S::File>,
    mappings: BTreeMap<String, Mapped<S>>,
    /// How many places each step goes over, and where it is.
    walks: BTreeMap<usize, (u64, Walk)>,
    mixes: BTreeMap<usize, Stream>,
    /// Paths that it created and did not remove, by directory, the oldest first.
    created: BTreeMap<String, VecDeque<String>>,
    created_so_far: u64,
    ended: Vec<bool>,
    tally: Tally,
}

type Boxed<'a> = Pin<Box<dyn Future<Output = Result<(), WorkloadError>> + 'a>>;

impl<S: System> Actor<S> {
    pub(super) fn new(sys: S, plan: Arc<Plan>, who: Who) -> Self {
        let ended = vec![false; plan.definition.phases.len()];
        let bound = Arc::new(plan.bound.of_task(who.number));
        Self {
            sys,
            plan,
            who,
            bound,
            files: BTreeMap::new(),
            mappings: BTreeMap::new(),
            walks: BTreeMap::new(),
            mixes: BTreeMap::new(),
            created: BTreeMap::new(),
            created_so_far: 0,
            ended,
            tally: Tally::default(),
        }
    }

    /// All its steps.
    pub(super) async fn run(mut self) -> Result<Tally, WorkloadError> {
        let plan = Arc::clone(&self.plan);
        chance::begin(&self.sys, &plan.definition.name, &self.who.name, Started::WithOthers).await;
        let steps = &plan.definition.tasks[self.who.kind].steps;
        if let Some(largest) = plan.largest_call(steps) {
            buffer::use_large(&self.sys, Bytes(largest)).await?;
        }
        self.steps(steps).await?;
        Ok(self.tally)
    }

    fn steps<'a>(&'a mut self, steps: &'a [Step]) -> Boxed<'a> {
        Box::pin(async move {
            for step in steps {
                self.step(step).await?;
            }
            Ok(())
        })
    }

    async fn step(&mut self, step: &Step) -> Result<(), WorkloadError> {
        let plan = Arc::clone(&self.plan);
        let bound = Arc::clone(&self.bound);
        let amount = |expression| bound.amount(expression);
        match step {
            Step::Work(work) => self.work(work).await?,
            Step::Map { .. } | Step::MapFile { .. } => self.map(step).await?,
            Step::Unmap(name) => drop(self.mappings.remove(name)),
            Step::Lock(name) => {
                if let Some(mapped) = self.mappings.get(name) {
                    self.sys.lock_memory(&mapped.mapping, 0, mapped.pages).await?;
                }
            }
            Step::Advise { on, is_file, advice } => {
                let name = advice.of(&bound.words);
                if *is_file {
                    let advice = file_advice(name).expect("it was checked");
                    for laid in &plan.files[on].files {
                        let file = self.file(&laid.path).await?;
                        self.sys.advise_file(&file, 0, 0, advice).await?;
                    }
                } else if let Some(mapped) = self.mappings.get(on) {
                    self.sys.advise(&mapped.mapping, mapping_advice(name).expect("it was checked")).await?;
                }
            }
            Step::Create { .. } => self.create(step).await?,
            Step::Unlink { directory, count } => {
                let created = self.created.entry(directory.clone()).or_default();
                let count = count.as_ref().map_or(created.len() as u64, amount).min(created.len() as u64);
                let paths: Vec<String> = created.drain(..count as usize).collect();
                for path in paths {
                    self.sys.unlink(&path).await?;
                }
            }
            Step::Sync => self.sys.sync().await?,
            Step::Fsync(name) => {
                for laid in &plan.files[name].files {
                    let file = self.file(&laid.path).await?;
                    self.sys.fsync(&file).await?;
                }
            }
            Step::Sleep(time) => self.sys.sleep(Nanos(amount(time))).await,
            Step::Compute(time) => self.sys.compute(Nanos(amount(time))),
            Step::Wait(phase) => self.wait(phase).await?,
            Step::End(phase) => self.sys.open_gate(plan.gates[plan.phase(phase)].done).await?,
            Step::Again { again, steps } => self.again(again, steps).await?,
            Step::Cgroup { path, file, to } => {
                self.sys.cgroup_write(path, file, &bound.setting(to)).await?;
            }
            Step::Sysctl { name, to } => self.sys.sysctl_write(name, &bound.setting(to)).await?,
            Step::DropCaches(mask) => self.sys.drop_caches(*mask).await?,
        }
        Ok(())
    }

    /// Waits until a phase has ended.
    async fn wait(&mut self, phase: &str) -> Result<(), WorkloadError> {
        while !self.has_ended(phase, Plan::PATIENCE).await? {}
        Ok(())
    }

    /// Whether a phase has ended, or does so within `limit`.
    async fn has_ended(&mut self, phase: &str, limit: Nanos) -> Result<bool, WorkloadError> {
        let number = self.plan.phase(phase);
        if !self.ended[number] {
            self.ended[number] = self.sys.pass_gate(self.plan.gates[number].go, limit).await?;
        }
        Ok(self.ended[number])
    }

    async fn again(&mut self, again: &Again, steps: &[Step]) -> Result<(), WorkloadError> {
        let begin = self.sys.now();
        let mut times = 0;
        loop {
            let goes_on = match again {
                Again::Times(count) => times < self.bound.amount(count),
                Again::For(time) => self.sys.now().saturating_sub(begin).get() < self.bound.amount(time),
                Again::Until(phase) => !self.has_ended(phase, Nanos(0)).await?,
            };
            if !goes_on {
                return Ok(());
            }
            let before = self.sys.now();
            self.steps(steps).await?;
            if self.sys.now() == before && !matches!(again, Again::Times(_)) {
                // Steps that take no time would never come to an end of it.
                self.sys.sleep(Nanos::from_micros(1)).await;
            }
            times += 1;
        }
    }

    /// The file at `path`, which stays open.
    async fn file(&mut self, path: &str) -> Result<S::File, WorkloadError> {
        if let Some(file) = self.files.get(path) {
            return Ok(file.clone());
        }
        let file = match self.plan.writes {
            true => self.open_to_write(path).await?,
            false => self.sys.open(path, OpenMode::Read).await?,
        };
        self.files.insert(path.to_owned(), file.clone());
        Ok(file)
    }

    /// Opens a file that may be written to; one that is not there is made.
    async fn open_to_write(&self, path: &str) -> Result<S::File, WorkloadError> {
        match self.sys.open(path, OpenMode::ReadWrite).await {
            Err(error) if error.errno == Errno::NoEnt => Ok(self.sys.open(path, OpenMode::Create).await?),
            other => Ok(other?),
        }
    }

    async fn map(&mut self, step: &Step) -> Result<(), WorkloadError> {
        let plan = Arc::clone(&self.plan);
        let (name, mapping, size) = match step {
            Step::Map { name, size } => {
                let size = Bytes(self.bound.amount(size));
                (name, self.sys.map_anonymous(size).await?, size)
            }
            Step::MapFile { name, file, own, shared, writable, executable } => {
                let files = &plan.files[file].files;
                let number = if *own { self.who.number as usize % files.len() } else { 0 };
                let size = Bytes(files[number].size);
                let how = FileMapping { shared: *shared, writable: *writable, executable: *executable };
                let file = self.file(&files[number].path).await?;
                (name, self.sys.map_file(&file, 0, size, how).await?, size)
            }
            _ => return Ok(()),
        };
        self.mappings.insert(name.clone(), Mapped { mapping, pages: size.to_pages_ceil().get() });
        Ok(())
    }

    async fn create(&mut self, step: &Step) -> Result<(), WorkloadError> {
        let Step::Create { directory, count, size, fsync, label, .. } = step else { return Ok(()) };
        let (count, size) = (self.bound.amount(count), self.bound.amount(size));
        let begin = self.sys.now();
        for _ in 0..count {
            let path = format!("{directory}/{}-{:09}", self.who.name, self.created_so_far);
            self.created_so_far += 1;
            let start = label.as_ref().map(|_| self.sys.now());
            let file = self.sys.open(&path, OpenMode::Create).await?;
            if size > 0 {
                self.sys.write(&file, 0, size).await?;
            }
            if *fsync {
                self.sys.fsync(&file).await?;
            }
            drop(file);
            if let Some((label, start)) = label.as_ref().zip(start) {
                self.tally.operation(label, size, self.sys.now().saturating_sub(start));
            }
            self.created.entry(directory.clone()).or_default().push_back(path);
        }
        if let Some(label) = label {
            self.tally.step(label, self.sys.now().saturating_sub(begin));
        }
        Ok(())
    }

    /// A step over many places.
    async fn work(&mut self, work: &Work) -> Result<(), WorkloadError> {
        let plan = Arc::clone(&self.plan);
        let bound = Arc::clone(&self.bound);
        let amount = |expression| bound.amount(expression);
        let block = amount(&work.block);
        let Some(ground) = self.ground(work, block)? else { return Ok(()) };
        let count = match &work.much {
            Much::Passes(passes) => amount(passes).saturating_mul(ground.places),
            Much::Count(count) => amount(count),
            Much::Bytes(bytes) => amount(bytes).div_ceil(block.max(1)),
        };
        // A mapping may have another size when a loop comes here again.
        if self.walks.get(&work.id).is_none_or(|(places, _)| *places != ground.places) {
            let order = order(work.order.of(&bound.words)).expect("it was checked");
            let name = format!("{}/{}/step{}", plan.definition.name, self.who.name, work.id);
            let walk = Walk::new(order, ground.places, self.sys.seed(), &name);
            self.walks.insert(work.id, (ground.places, walk));
        }
        let given = [&work.every, &work.think, &work.fsync, &work.at_most];
        let [every, think, fsync, at_most] = given.map(|given| given.as_ref().map(amount));
        let begin = self.sys.now();
        for number in 0..count {
            if at_most.is_some_and(|at_most| self.sys.now().saturating_sub(begin).get() >= at_most) {
                break;
            }
            if let Some(every) = every {
                let due = Nanos(begin.get().saturating_add(every.saturating_mul(number)));
                let now = self.sys.now();
                if due > now {
                    self.sys.sleep(due.saturating_sub(now)).await;
                }
            }
            let (_, walk) = self.walks.get_mut(&work.id).expect("it is there");
            let place = walk.next();
            // Where the time is a call, it costs as much as the operation.
            let start = work.label.as_ref().map(|_| self.sys.now());
            let bytes = self.deed(work, &ground, ground.first + place, block).await?;
            if let Some((label, start)) = work.label.as_ref().zip(start) {
                self.tally.operation(label, bytes, self.sys.now().saturating_sub(start));
            }
            if fsync.is_some_and(|fsync| fsync > 0 && (number + 1).is_multiple_of(fsync)) {
                let path = self.path_of(work, &ground, ground.first + place);
                let file = self.file(&path).await?;
                self.sys.fsync(&file).await?;
            }
            if let Some(think) = think {
                self.sys.sleep(Nanos(think)).await;
            }
        }
        if let Some(label) = &work.label {
            self.tally.step(label, self.sys.now().saturating_sub(begin));
        }
        Ok(())
    }

    /// What a step goes over; none where there is nothing.
    fn ground(&self, work: &Work, block: u64) -> Result<Option<Ground>, WorkloadError> {
        let block = block.max(1);
        let share = |all: u64| match work.own {
            true => (all * self.who.number / self.who.of, all * (self.who.number + 1) / self.who.of),
            false => (0, all),
        };
        if matches!(work.deed, Deed::Touch | Deed::TouchWriting) {
            let pages_at_once = (block / PAGE_SIZE).max(1);
            let Some(mapped) = self.mappings.get(&work.on) else {
                let told = format!("task `{}` touches `{}`, which it has unmapped", self.who.name, work.on);
                return Err(WorkloadError::Amount(told));
            };
            let (first, past) = share(mapped.pages.div_ceil(pages_at_once));
            return Ok(Ground { file: None, size: 0, first, places: past - first }.some());
        }
        let set = &self.plan.files[&work.on];
        // A file of a set for each task.
        if work.own && set.is_many && set.files.len() as u64 <= self.who.of {
            let file = &set.files[self.who.number as usize % set.files.len().max(1)];
            return Ok(Ground::blocks(&file.path, file.size, (0, file.size.div_ceil(block))).some());
        }
        if work.in_turn && set.is_many {
            let blocks = set.files.iter().map(|file| file.size.div_ceil(block)).max().unwrap_or(0);
            return Ok(
                Ground { file: None, size: 0, first: 0, places: blocks * set.files.len() as u64 }.some()
            );
        }
        if set.is_many || work.deed == Deed::Stat {
            let (first, past) = share(set.files.len() as u64);
            return Ok(Ground { file: None, size: 0, first, places: past - first }.some());
        }
        let Some(file) = set.files.first() else { return Ok(None) };
        Ok(Ground::blocks(&file.path, file.size, share(file.size.div_ceil(block))).some())
    }

    /// The file that a step is at.
    fn path_of(&self, work: &Work, ground: &Ground, place: u64) -> String {
        let files = &self.plan.files[&work.on].files;
        match &ground.file {
            Some(path) => path.clone(),
            None => files[place as usize % files.len()].path.clone(),
        }
    }

    /// What a step does at one place; returns the bytes that it moved.
    async fn deed(
        &mut self,
        work: &Work,
        ground: &Ground,
        place: u64,
        block: u64,
    ) -> Result<u64, WorkloadError> {
        let plan = Arc::clone(&self.plan);
        match work.deed {
            Deed::Touch | Deed::TouchWriting => {
                let Some(mapped) = self.mappings.get(&work.on) else { return Ok(0) };
                let at_once = (block / PAGE_SIZE).max(1);
                let first = place * at_once;
                let count = at_once.min(mapped.pages - first);
                if work.deed == Deed::Touch {
                    self.sys.touch_reading(&mapped.mapping, first, count).await?;
                } else {
                    self.sys.touch(&mapped.mapping, first, count).await?;
                }
                Ok(count * PAGE_SIZE)
            }
            Deed::Stat => {
                self.sys.file_size(&plan.files[&work.on].files[place as usize].path).await?;
                Ok(0)
            }
            Deed::Read | Deed::Write => {
                let deed = if self.turns_to_writing(work) { Deed::Write } else { work.deed };
                if let Some(path) = &ground.file {
                    let file = self.file(path).await?;
                    let at = place * block;
                    return self.transfer(deed, &file, at, block.min(ground.size - at)).await;
                }
                if work.in_turn {
                    let files = &plan.files[&work.on].files;
                    let (laid, at) =
                        (&files[place as usize % files.len()], place / files.len() as u64 * block);
                    if at >= laid.size {
                        return Ok(0);
                    }
                    let file = self.file(&laid.path).await?;
                    return self.transfer(deed, &file, at, block.min(laid.size - at)).await;
                }
                // One file of many, all of it.
                let laid = &plan.files[&work.on].files[place as usize];
                let file = match deed {
                    Deed::Read => self.sys.open(&laid.path, OpenMode::Read).await?,
                    _ => self.open_to_write(&laid.path).await?,
                };
                let mut at = 0;
                while at < laid.size {
                    let len = block.min(laid.size - at);
                    if self.transfer(deed, &file, at, len).await? == 0 {
                        break;
                    }
                    at += len;
                }
                Ok(at)
            }
        }
    }

    /// Whether this operation of a step that reads writes.
    fn turns_to_writing(&mut self, work: &Work) -> bool {
        if work.writes == 0 {
            return false;
        }
        let name = || format!("{}/{}/step{}/writes", self.plan.definition.name, self.who.name, work.id);
        let seed = self.sys.seed();
        let stream = self.mixes.entry(work.id).or_insert_with(|| seed.stream(&name()));
        stream.below(u64::from(WHOLE)) < u64::from(work.writes)
    }

    async fn transfer(&self, deed: Deed, file: &S::File, at: u64, len: u64) -> Result<u64, WorkloadError> {
        Ok(match deed {
            Deed::Read => self.sys.read(file, at, len).await?,
            _ => self.sys.write(file, at, len).await?,
        })
    }
}

/// What a step goes over.
struct Ground {
    /// The one file that it is in.
    file: Option<String>,
    size: u64,
    /// Its first place, and how many there are.
    first: u64,
    places: u64,
}

impl Ground {
    fn blocks(path: &str, size: u64, (first, past): (u64, u64)) -> Self {
        Self { file: Some(path.to_owned()), size, first, places: past - first }
    }

    fn some(self) -> Option<Self> {
        (self.places > 0).then_some(self)
    }
}
