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
use crate::parts::chance;
use crate::parts::turns::Turn;
use crate::system::outcome::WorkloadError;
use crate::system::{Advice, Errno, FileMapping, OpenMode, OwnCode, System, SystemError};
use crate::written::definition::{Again, Bound, Deed, FileState, Much, Order, Step, Work};
use crate::written::ground::{Going, Ground, Pass};
use crate::written::measure::resident;
use crate::written::plan::{Plan, Watched, works};
use crate::written::steps::{WHOLE, file_advice, mapping_advice, order};
use crate::written::tally::Tally;
use crate::written::walk::Walk;

/// `EAGAIN` of Linux.
const TRY_AGAIN: i32 = 11;

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
    /// Where each step is, by its number or the name that it draws by.
    walks: BTreeMap<String, Going>,
    buffer: Option<Bytes>,
    mixes: BTreeMap<usize, Stream>,
    /// Paths that it created and did not remove, by directory, the oldest first.
    created: BTreeMap<String, VecDeque<String>>,
    created_so_far: u64,
    /// Which of its own code it has used, of [`OwnCode`].
    has_used: [bool; 3],
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
            buffer: None,
            mixes: BTreeMap::new(),
            created: BTreeMap::new(),
            created_so_far: 0,
            has_used: [false; 3],
            ended,
            tally: Tally::default(),
        }
    }

    /// All its steps.
    pub(super) async fn run(mut self) -> Result<Tally, WorkloadError> {
        let plan = Arc::clone(&self.plan);
        let task = &plan.definition.tasks[self.who.kind];
        let within =
            task.begins_within.as_ref().map_or(chance::WITH_OTHERS, |time| Nanos(self.bound.amount(time)));
        chance::begin(&self.sys, &plan.definition.name, &self.who.name, within).await;
        let steps = &task.steps;
        if let Some(largest) = plan.largest_call(steps) {
            buffer::use_large(&self.sys, Bytes(largest)).await?;
        }
        self.uses(OwnCode::Work, works(steps));
        self.steps(steps).await?;
        Ok(self.tally)
    }

    /// Its turns among `steps`, each when it is let, and the end when all have had theirs: memory stays until then.
    pub(super) async fn take_turns(mut self, turn: Turn) -> Result<Tally, WorkloadError> {
        let plan = Arc::clone(&self.plan);
        self.uses(OwnCode::Work, true);
        self.turns(&plan.definition.main, turn).await?;
        turn.wait(&self.sys).await?;
        Ok(self.tally)
    }

    fn turns<'a>(&'a mut self, steps: &'a [Step], turn: Turn) -> Boxed<'a> {
        Box::pin(async move {
            for step in steps {
                match step {
                    Step::Turn { task, steps } if *task == self.who.kind => {
                        turn.wait(&self.sys).await?;
                        self.steps(steps).await?;
                        turn.end(&self.sys).await?;
                    }
                    Step::Again { again, steps } => {
                        for _ in 0..again.times(&self.bound) {
                            self.turns(steps, turn).await?;
                        }
                    }
                    _ => {}
                }
            }
            Ok(())
        })
    }

    /// What its steps came to so far.
    pub(super) fn tally(self) -> Tally {
        self.tally
    }

    fn steps<'a>(&'a mut self, steps: &'a [Step]) -> Boxed<'a> {
        Box::pin(async move {
            for step in steps {
                self.step(step).await?;
            }
            Ok(())
        })
    }

    pub(super) async fn step(&mut self, step: &Step) -> Result<(), WorkloadError> {
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
                    for laid in &plan.set(on)?.files {
                        let file = self.file(&laid.path).await?;
                        self.sys.advise_file(&file, 0, 0, advice).await?;
                    }
                } else if let Some(mapped) = self.mappings.get(on) {
                    let advice = mapping_advice(name).expect("it was checked");
                    match self.sys.advise(&mapped.mapping, advice).await {
                        // A kernel without huge pages knows no such advice, and needs none.
                        Err(SystemError { errno: Errno::Inval | Errno::NotSup, .. })
                            if advice == Advice::NoHugePage => {}
                        other => other?,
                    }
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
            Step::Fsync(name) => {
                for laid in &plan.set(name)?.files {
                    let file = self.file(&laid.path).await?;
                    self.sys.fsync(&file).await?;
                }
            }
            Step::Sleep(time) => self.sys.sleep(Nanos(amount(time))).await,
            Step::Compute(time) => self.sys.spin(Nanos(amount(time))).await,
            Step::Wait(phase) => self.wait(phase).await?,
            Step::End(phase) => self.sys.open_gate(plan.gates[plan.phase(phase)].done).await?,
            Step::Again { again, steps } => self.again(again, steps).await?,
            Step::Run(_) | Step::Turn { .. } => unreachable!("only `main` has these, and does them"),
            other => self.kernel_step(other).await?,
        }
        Ok(())
    }

    /// A step that asks the kernel, or tells it something, as a whole.
    async fn kernel_step(&mut self, step: &Step) -> Result<(), WorkloadError> {
        let plan = Arc::clone(&self.plan);
        let bound = Arc::clone(&self.bound);
        match step {
            Step::Sync => self.sys.sync().await?,
            Step::Cgroup { path, file, to } => {
                if let (Some(path), Some(to)) = (plan.path_of(path), bound.setting(to)) {
                    self.sys.cgroup_write(path, file, &to).await?;
                }
            }
            Step::Sysctl { name, to } => {
                if let Some(to) = bound.setting(to) {
                    self.sys.sysctl_write(name, &to).await?;
                }
            }
            Step::DropCaches(mask) => self.sys.drop_caches(*mask).await?,
            Step::Buffer(len) => {
                let len = Bytes(bound.amount(len));
                if self.buffer.replace(len) != Some(len) {
                    self.sys.use_buffer(len).await?;
                }
            }
            Step::Count { on, is_file, label } => {
                let pages = match self.mappings.get(on) {
                    Some(mapped) if !is_file => {
                        self.sys.mapping_resident(&mapped.mapping, 0, mapped.pages).await?
                    }
                    _ if *is_file => resident(&self.sys, plan.set(on)?).await?,
                    _ => 0,
                };
                self.tally.counted(label, pages);
            }
            Step::Fill { name, compressed } => {
                if let Some(mapped) = self.mappings.get(name) {
                    let compressed = bound.amount(compressed).min(PAGE_SIZE);
                    let compressed = u16::try_from(compressed).expect("at most a page");
                    self.sys.write_content(&mapped.mapping, 0, mapped.pages, compressed).await?;
                }
            }
            Step::Reclaim { bytes, group, swappiness, label } => {
                let mut value = bound.amount(bytes).to_string();
                if let Some(swappiness) = swappiness.as_ref().and_then(|setting| bound.setting(setting)) {
                    value += &format!(" swappiness={swappiness}");
                }
                let written = match group.as_ref().map(|group| plan.path_of(group)) {
                    None => self.sys.node_write(0, "reclaim", &value).await,
                    Some(None) => return Ok(()),
                    Some(Some(path)) => self.sys.cgroup_write(path, "memory.reclaim", &value).await,
                };
                // A kernel that could not free as much says `EAGAIN`, which is a result.
                let is_short = matches!(written, Err(SystemError { errno: Errno::Other(TRY_AGAIN), .. }));
                self.tally.counted(label, u64::from(is_short));
                if !is_short {
                    written?;
                }
            }
            Step::Flush(group) => {
                if let Some(path) = plan.path_of(group) {
                    self.sys.cgroup_read(path, "memory.stat").await?;
                }
            }
            _ => {}
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
                Again::When(_) | Again::Timed(_) => times < again.times(&self.bound),
            };
            if !goes_on {
                if let Again::Timed(label) = again {
                    self.tally.pass(label, self.sys.now().saturating_sub(begin));
                }
                return Ok(());
            }
            let before = self.sys.now();
            self.steps(steps).await?;
            if self.sys.now() == before && matches!(again, Again::For(_) | Again::Until(_)) {
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

    /// Opens a file that may be written to; one that is not there is made, unless another task was faster.
    async fn open_to_write(&self, path: &str) -> Result<S::File, WorkloadError> {
        match self.sys.open(path, OpenMode::ReadWrite).await {
            Err(error) if error.errno == Errno::NoEnt => {}
            other => return Ok(other?),
        }
        match self.sys.open(path, OpenMode::Create).await {
            Err(error) if error.errno == Errno::Exist => Ok(self.sys.open(path, OpenMode::ReadWrite).await?),
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
                let files = &plan.set(file)?.files;
                let number = if *own { self.who.number as usize % files.len() } else { 0 };
                let size = Bytes(files[number].size);
                let [shared, writable, executable] =
                    [shared, writable, executable].map(|flag| flag.holds(&self.bound));
                let how = FileMapping { shared, writable, executable };
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
            let took = self.sys.now().saturating_sub(begin);
            self.tally.step(label, took);
            self.tally.pass(label, took);
        }
        Ok(())
    }

    /// A step over many places.
    async fn work(&mut self, work: &Work) -> Result<(), WorkloadError> {
        let bound = Arc::clone(&self.bound);
        let amount = |expression| bound.amount(expression);
        let ground = self.ground(work, amount(&work.block)).await?;
        let watched = work.label.as_ref().and_then(|label| self.plan.watched.get(label)).copied();
        let label = work.label.as_deref().filter(|_| watched.is_some()).unwrap_or_default();
        let watched = watched.unwrap_or_default();
        let (passes, count) = match &work.much {
            Much::Passes(passes) => (amount(passes), ground.places),
            Much::Count(count) => (1, amount(count)),
            Much::Bytes(bytes) => (1, amount(bytes)),
        };
        let count = if ground.places == 0 { 0 } else { count };
        if count == 0 && !watched.passes {
            return Ok(());
        }
        let mut going = self.going(work, &ground);
        self.uses(OwnCode::Timing, watched.operations);
        self.uses(OwnCode::Popularity, matches!(going.walk, Walk::Zipf { .. }));
        let given = [&work.every, &work.think, &work.fsync, &work.at_most];
        let [every, think, fsync, at_most] = given.map(|given| given.as_ref().map(amount));
        // What most of them are goes without a future of its own.
        let is_plain = work.deed == Deed::Read && work.writes == 0;
        let begin = self.sys.now();
        let mut number = 0;
        'all: for _ in 0..passes {
            let mut pass = Pass::new(self.sys.now(), watched.parts, ground.bytes);
            for _ in 0..count {
                if at_most.is_some_and(|at_most| self.sys.now().saturating_sub(begin).get() >= at_most) {
                    break 'all;
                }
                if let Some(every) = every {
                    let due = Nanos(begin.get().saturating_add(every.saturating_mul(number)));
                    self.sleep_until(due).await;
                }
                let Some((place, at, len)) = going.next(&ground) else { break };
                // Where the time is a call, it costs as much as the operation.
                let start = watched.operations.then(|| self.sys.now());
                let bytes = match &ground.file {
                    Some((_, file)) if is_plain => self.sys.read(file, at, len).await?,
                    _ => self.deed(work, &ground, place, at, len).await?,
                };
                if bytes == 0 && ground.never_ends {
                    return Err(ground.short(at));
                }
                if let Some(start) = start {
                    self.tally.operation(label, bytes, self.sys.now().saturating_sub(start));
                }
                if pass.part_ends(bytes) {
                    let (bytes, took) = pass.part(self.sys.now());
                    self.tally.part(label, bytes, took);
                }
                number += 1;
                if fsync.is_some_and(|fsync| fsync > 0 && number.is_multiple_of(fsync)) {
                    let path = self.path_of(work, &ground, place);
                    let file = self.file(&path).await?;
                    self.sys.fsync(&file).await?;
                }
                if let Some(think) = think {
                    self.sys.sleep(Nanos(think)).await;
                }
            }
            self.pass_ends(label, watched, pass);
        }
        self.walks.insert(going.key.clone(), going);
        if watched.operations {
            self.tally.step(label, self.sys.now().saturating_sub(begin));
        }
        Ok(())
    }

    fn uses(&mut self, code: OwnCode, does: bool) {
        if does && !std::mem::replace(&mut self.has_used[code as usize], true) {
            self.sys.first_use(code);
        }
    }

    fn pass_ends(&mut self, label: &str, watched: Watched, mut pass: Pass) {
        if watched.parts.is_some() && pass.has_begun_part() {
            let (bytes, took) = pass.part(self.sys.now());
            self.tally.part(label, bytes, took);
        }
        if watched.passes {
            self.tally.pass(label, self.sys.now().saturating_sub(pass.begin));
        }
    }

    async fn sleep_until(&self, due: Nanos) {
        let now = self.sys.now();
        if due > now {
            self.sys.sleep(due.saturating_sub(now)).await;
        }
    }

    /// Where a step goes on, or begins.
    fn going(&mut self, work: &Work, ground: &Ground<S>) -> Going {
        let key = work.draw.clone().unwrap_or_else(|| work.id.to_string());
        let order = order(work.order.of(&self.bound.words)).expect("it was checked");
        let by_bytes =
            matches!(work.much, Much::Bytes(_)) && order == Order::Sequential && ground.file.is_some();
        let places = if by_bytes { ground.bytes } else { ground.places };
        let left = match &work.much {
            Much::Bytes(bytes) => Some(self.bound.amount(bytes)),
            _ => None,
        };
        match self.walks.remove(&key) {
            // A mapping may have another size when a loop comes here again.
            Some(going) if going.places == places => Going { left, ..going },
            _ => {
                let workload = &self.plan.definition.name;
                let name = format!("{workload}/{}/step{}", self.who.name, work.id);
                // Popular places are so for everybody, an order is a step's own.
                let order_by = match (&work.draw, order) {
                    (Some(draw), _) => format!("{workload}/{draw}"),
                    (None, Order::Zipf(_)) => format!("{workload}/popularity of {}", work.on),
                    (None, _) => format!("{name}/places"),
                };
                let walk = Walk::new(order, places.max(1), self.sys.seed(), &name, order_by);
                Going { key, places, walk, by_bytes, left }
            }
        }
    }

    /// What a step goes over. A single file is opened.
    async fn ground(&mut self, work: &Work, block: u64) -> Result<Ground<S>, WorkloadError> {
        let plan = Arc::clone(&self.plan);
        let block = block.max(1);
        let share = |all: u64| match work.own {
            true => (all * self.who.number / self.who.of, all * (self.who.number + 1) / self.who.of),
            false => (0, all),
        };
        let write_each = work.write_each.as_ref().map_or(0, |each| self.bound.amount(each));
        let of = |(first, past): (u64, u64), block: u64| Ground {
            file: None,
            never_ends: false,
            size: 0,
            first,
            places: past - first,
            bytes: 0,
            block,
            write_each,
        };
        if matches!(work.deed, Deed::Touch | Deed::TouchWriting) {
            let pages_at_once = (block / PAGE_SIZE).max(1);
            let Some(mapped) = self.mappings.get(&work.on) else {
                let told = format!("task `{}` touches `{}`, which it has unmapped", self.who.name, work.on);
                return Err(WorkloadError::Amount(told));
            };
            return Ok(of(share(mapped.pages.div_ceil(pages_at_once)), block));
        }
        let set = plan.set(&work.on)?;
        let count = set.files.len() as u64;
        // A file of a set for each task.
        let is_one_each = work.own && set.is_many && count <= self.who.of;
        if work.in_turn && set.is_many && !is_one_each {
            let blocks = set.files.iter().map(|file| file.size.div_ceil(block)).max().unwrap_or(0);
            return Ok(of((0, blocks * count), block));
        }
        if (set.is_many && !is_one_each) || work.deed == Deed::Stat {
            return Ok(of(share(count), block));
        }
        let number = if is_one_each { self.who.number % count.max(1) } else { 0 };
        let Some(laid) = set.files.get(number as usize) else { return Ok(of((0, 0), block)) };
        let blocks = laid.size.div_ceil(block);
        let (first, past) = if is_one_each { (0, blocks) } else { share(blocks) };
        let bytes = (past * block).min(laid.size) - (first * block).min(laid.size);
        let file = Some((laid.path.clone(), self.file(&laid.path).await?));
        let never_ends = set.state == FileState::LaidOut;
        Ok(Ground { file, never_ends, size: laid.size, bytes, ..of((first, past), block) })
    }

    /// The file that a step is at.
    fn path_of(&self, work: &Work, ground: &Ground<S>, place: u64) -> String {
        let files = &self.plan.files[&work.on].files;
        match &ground.file {
            Some((path, _)) => path.clone(),
            None => files[place as usize % files.len()].path.clone(),
        }
    }

    /// What a step does at one place; returns the bytes that it moved.
    async fn deed(
        &mut self,
        work: &Work,
        ground: &Ground<S>,
        place: u64,
        at: u64,
        len: u64,
    ) -> Result<u64, WorkloadError> {
        let block = ground.block;
        let plan = Arc::clone(&self.plan);
        match work.deed {
            Deed::Touch | Deed::TouchWriting => {
                let Some(mapped) = self.mappings.get(&work.on) else { return Ok(0) };
                let at_once = (block / PAGE_SIZE).max(1);
                let first = place * at_once;
                let count = at_once.min(mapped.pages - first);
                let each = ground.write_each;
                if work.deed == Deed::Touch && (each == 0 || !(place + 1).is_multiple_of(each)) {
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
                if let Some((_, file)) = &ground.file {
                    return self.transfer(deed, file, at, len).await;
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
