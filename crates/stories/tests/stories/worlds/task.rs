//! A task of a random program: it reads and writes files, makes and removes many small ones, touches
//! and locks memory with and without advice on huge pages, maps files, changes limits and settings, drops
//! caches, removes what others use, and goes on whatever errno comes back.
//!
//! Every call that may wait is entered in [`Calls`], where the oracle of liveness sees it.

use std::future::Future;

use units::{Bytes, Nanos, Seed, random::Stream};
use workload::WorkloadError;
use workload::system::{Advice, FileMapping, OpenMode, System, SystemError};

use super::liveness::Calls;
use super::program::{LIMITS, Plan, accept, file_name};
use super::world::{SETTINGS, pick};

const PAGE: u64 = 4096;
const HUGE_PAGE: u64 = 2 << 20;
/// Pages of the largest call but for a few: so that the oracle sees who goes on.
const PAGES_OF_A_CALL: u64 = 256;

/// A file that a task has open.
struct Opened<F> {
    file: F,
    name: String,
    size: u64,
}

impl<F: Clone> Clone for Opened<F> {
    fn clone(&self) -> Self {
        Self { file: self.file.clone(), name: self.name.clone(), size: self.size }
    }
}

pub struct Task<S: System> {
    sys: S,
    plan: Plan,
    calls: Calls,
    name: String,
    stream: Stream,
    /// What it draws for what it asks of memory besides.
    asks: Stream,
    files: Vec<Opened<S::File>>,
    mappings: Vec<(S::Mapping, u64)>,
    created: u64,
    digest: u64,
}

impl<S: System> Task<S> {
    pub fn new(sys: S, plan: Plan, calls: Calls, number: u64) -> Self {
        let name = format!("task{number}");
        let stream = Seed(plan.seed).stream(&name);
        let asks = Seed(plan.seed).stream(&format!("{name} asks"));
        let (files, mappings) = (Vec::new(), Vec::new());
        Self { sys, plan, calls, name, stream, asks, files, mappings, created: 0, digest: number }
    }

    pub async fn run(mut self) -> Result<u64, WorkloadError> {
        for _ in 0..self.plan.ops {
            let value = match self.stream.below(28) {
                0..=2 => self.open().await?,
                3..=8 => self.read().await?,
                9..=11 => self.write().await?,
                12 => self.append().await?,
                13..=16 => self.touch().await?,
                17 => self.release(),
                18..=19 => self.control().await?,
                20 => self.files_come_and_go().await?,
                21 => self.small_files().await?,
                22 => self.look().await?,
                23 => self.settings().await?,
                24 => self.advise().await?,
                25 => self.sync().await?,
                _ => self.nap().await,
            };
            if self.asks.chance(1, 10) {
                self.ask().await?;
            }
            self.digest = self.digest.rotate_left(9) ^ value ^ self.sys.now().0;
        }
        Ok(self.digest)
    }

    /// Makes a call that touches `pages` pages; none: it failed as it may.
    async fn call<V>(
        &self,
        name: &'static str,
        pages: u64,
        call: impl Future<Output = Result<V, SystemError>>,
    ) -> Result<Option<V>, WorkloadError> {
        accept(self.calls.during((&self.sys, &self.name), name, pages, call).await)
    }

    fn size(&mut self) -> u64 {
        let reach = self.plan.reach.max(2);
        let bound = reach >> self.stream.below(12);
        self.stream.below(bound.max(2))
    }

    fn group(&mut self) -> &'static str {
        match self.plan.groups.as_slice() {
            [] => "A",
            groups => groups[usize::try_from(self.stream.below(groups.len() as u64)).expect("a few groups")],
        }
    }

    async fn open(&mut self) -> Result<u64, WorkloadError> {
        let number = self.stream.below(self.plan.files.len() as u64 + 2);
        let size = self.plan.files.get(usize::try_from(number).expect("small")).copied().unwrap_or(0);
        let (mut name, mut mode) = (file_name(number), OpenMode::ReadWrite);
        if self.stream.chance(1, 4) {
            (name, mode) = (format!("{}-{}", self.name, self.created), OpenMode::Create);
            self.created += 1;
        }
        if let Some(file) = self.call("open", 1, self.sys.open(&name, mode)).await? {
            if self.stream.chance(1, 8) {
                self.sys.advise_random(&file).await?;
            }
            self.files.push(Opened { file, name, size });
        }
        Ok(self.files.len() as u64)
    }

    /// A range of an open file: from its start, from anywhere, or over its end.
    fn range(&mut self) -> Option<(Opened<S::File>, u64, u64)> {
        if self.files.is_empty() {
            return None;
        }
        let opened = pick(&mut self.stream, &self.files).clone();
        let offset = if self.stream.chance(1, 2) { 0 } else { self.stream.below(opened.size + 8192) };
        let len = if self.stream.chance(1, 30) { u64::MAX - offset } else { self.size() };
        Some((opened, offset, len))
    }

    /// Bytes of a call: mostly few, seldom all at once.
    fn step(&mut self) -> u64 {
        let steps = [PAGE, 4 * PAGE, 32 * PAGE, PAGES_OF_A_CALL * PAGE];
        if self.stream.chance(1, 16) { u64::MAX } else { *pick(&mut self.stream, &steps) }
    }

    async fn read(&mut self) -> Result<u64, WorkloadError> {
        let Some((Opened { file, size, .. }, offset, len)) = self.range() else { return Ok(0) };
        let step = self.step();
        let (mut done, end) = (0, offset + len);
        let mut at = offset;
        while at < end && done < self.plan.reach * 2 {
            let len = step.min(end - at);
            let pages = len.min(size.saturating_sub(at)).div_ceil(PAGE) + 1;
            let read = self.call("read", pages, self.sys.read(&file, at, len)).await?.unwrap_or(0);
            if read == 0 {
                break;
            }
            (at, done) = (at + read, done + read);
        }
        Ok(done)
    }

    async fn write(&mut self) -> Result<u64, WorkloadError> {
        let Some((opened, offset, len)) = self.range() else { return Ok(0) };
        let len = if self.stream.chance(1, 4) { len } else { len.min(65536) };
        // Now and then the same range again, clean or not.
        let times = if self.stream.chance(1, 6) { 3 } else { 1 };
        let mut written = 0;
        for _ in 0..times {
            written += self.put(&opened.file, offset, len).await?;
        }
        if self.stream.chance(1, 8) {
            self.call("fsync", written / PAGE, self.sys.fsync(&opened.file)).await?;
        }
        if self.stream.chance(1, 12) {
            self.call("unlink", 1, self.sys.unlink(&opened.name)).await?;
        }
        Ok(written)
    }

    /// Writes in steps; returns the bytes.
    async fn put(&mut self, file: &S::File, offset: u64, len: u64) -> Result<u64, WorkloadError> {
        // Nobody writes more than what fits: it ends by time alone.
        let (step, len) = (self.step(), len.min(self.plan.reach * 2));
        let mut done = 0;
        while done < len {
            let chunk = step.min(len - done);
            let pages = chunk.div_ceil(PAGE) + 1;
            let written = self.call("write", pages, self.sys.write(file, offset + done, chunk)).await?;
            if written.is_none() {
                break;
            }
            done += chunk;
        }
        Ok(done)
    }

    /// Small writes at the end of a file.
    async fn append(&mut self) -> Result<u64, WorkloadError> {
        let Some((opened, _, _)) = self.range() else { return Ok(0) };
        let mut written = 0;
        for _ in 0..1 + self.stream.below(16) {
            let size = self.call("stat", 1, self.sys.file_size(&opened.name)).await?;
            let Some(size) = size else { break };
            let len = 1 + self.stream.below(3 * PAGE);
            written += self.call("write", 4, self.sys.write(&opened.file, size, len)).await?.unwrap_or(0);
        }
        Ok(written)
    }

    async fn touch(&mut self) -> Result<u64, WorkloadError> {
        if self.mappings.is_empty() || self.stream.chance(1, 3) {
            self.map().await?;
        }
        let count = self.mappings.len() as u64;
        if count == 0 {
            return Ok(0);
        }
        let number = usize::try_from(self.stream.below(count)).expect("small");
        let pages = self.mappings[number].1;
        let first = self.stream.below(pages + 1);
        let end = first + self.stream.below(pages - first + 1);
        let (lock, fill) = (self.stream.chance(1, 6), self.stream.chance(1, 4));
        let (mapping, reads) = (&self.mappings[number].0, self.stream.chance(1, 3));
        let mut done = 0;
        for at in (first..end).step_by(PAGES_OF_A_CALL as usize) {
            let len = PAGES_OF_A_CALL.min(end - at);
            let touched = if lock {
                self.call("mlock", len, self.sys.lock_memory(mapping, at, len)).await?
            } else if reads {
                self.call("touch", len, self.sys.touch_reading(mapping, at, len)).await?
            } else if fill {
                self.call("memset", len, self.sys.fill(mapping, at, len)).await?
            } else {
                self.call("touch", len, self.sys.touch(mapping, at, len)).await?
            };
            done += u64::from(touched.is_some());
        }
        Ok(done)
    }

    /// Maps memory, of any size or some huge pages, with any advice.
    async fn map(&mut self) -> Result<(), WorkloadError> {
        if !self.files.is_empty() && self.stream.chance(1, 2) {
            return self.map_file().await;
        }
        let huge = HUGE_PAGE * (1 + self.stream.below(3));
        let size = if self.stream.chance(1, 4) { huge } else { self.size() };
        let Some(mapping) = accept(self.sys.map_anonymous(Bytes(size)).await)? else { return Ok(()) };
        let advice = [Advice::HugePage, Advice::NoHugePage];
        if self.stream.chance(1, 2) {
            accept(self.sys.advise(&mapping, *pick(&mut self.stream, &advice)).await)?;
        }
        self.mappings.push((mapping, size.div_ceil(PAGE)));
        Ok(())
    }

    /// Maps a part of a file, in any way, now and then beyond its end.
    async fn map_file(&mut self) -> Result<(), WorkloadError> {
        let Opened { file, size, .. } = pick(&mut self.stream, &self.files).clone();
        let pages = size.div_ceil(PAGE) + 1;
        let first = if self.stream.chance(1, 2) { 0 } else { self.stream.below(pages) };
        let len = self.size().min((pages - first) * PAGE);
        let how = FileMapping {
            shared: self.stream.chance(1, 2),
            writable: self.stream.chance(2, 3),
            executable: self.stream.chance(1, 4),
        };
        let mapped = self.sys.map_file(&file, first * PAGE, Bytes(len), how).await;
        if let Some(mapping) = accept(mapped)? {
            self.mappings.push((mapping, len.div_ceil(PAGE)));
        }
        Ok(())
    }

    /// Changes the advice on memory that is in use, or gives its pages back.
    async fn advise(&mut self) -> Result<u64, WorkloadError> {
        let advice = *pick(
            &mut self.stream,
            &[
                Advice::HugePage,
                Advice::NoHugePage,
                Advice::DontNeed,
                Advice::Random,
                Advice::Sequential,
                Advice::Normal,
                Advice::WillNeed,
            ],
        );
        if self.mappings.is_empty() {
            return Ok(0);
        }
        let (mapping, pages) = pick(&mut self.stream, &self.mappings);
        self.call("madvise", *pages, self.sys.advise(mapping, advice)).await?;
        Ok(accept(self.sys.mapping_resident(mapping, 0, *pages).await)?.unwrap_or(0))
    }

    /// Closes a file or unmaps memory.
    fn release(&mut self) -> u64 {
        if self.stream.chance(1, 2) {
            self.files.pop();
        } else {
            self.mappings.pop();
        }
        self.files.len() as u64
    }

    async fn control(&mut self) -> Result<u64, WorkloadError> {
        let group = self.group();
        let file = *pick(&mut self.stream, &LIMITS);
        let size = self.size();
        let value = if self.stream.chance(1, 4) { "max".to_owned() } else { size.to_string() };
        // It may reclaim all that the group has.
        let pages = self.sys.memory_total().0;
        let written = self.call(file, pages, self.sys.cgroup_write(group, file, &value)).await?;
        Ok(u64::from(written.is_some()))
    }

    /// Limits of swap, memory that shall be reclaimed, of a cgroup or of a node, and whole pageblocks.
    async fn ask(&mut self) -> Result<(), WorkloadError> {
        let group = match self.plan.groups.as_slice() {
            [] => "A",
            groups => *pick(&mut self.asks, groups),
        };
        let bytes = self.asks.below(self.plan.reach.max(2));
        let pages = self.sys.memory_total().0;
        let limit = if self.asks.chance(1, 4) { "max".to_owned() } else { bytes.to_string() };
        let how = *pick(&mut self.asks, &["", "", " swappiness=0", " swappiness=200", " swappiness=max"]);
        let amount = format!("{bytes}{how}");
        match self.asks.below(6) {
            0 => {
                self.call("swap.high", pages, self.sys.cgroup_write(group, "memory.swap.high", &limit))
                    .await?
            }
            1 => {
                self.call("swap.max", pages, self.sys.cgroup_write(group, "memory.swap.max", &limit)).await?
            }
            2 | 3 => {
                let written = self.sys.cgroup_write(group, "memory.reclaim", &amount);
                self.call("memory.reclaim", pages, written).await?
            }
            4 => {
                let node = u8::try_from(self.asks.below(2)).expect("small");
                self.call("node reclaim", pages, self.sys.node_write(node, "reclaim", &amount)).await?
            }
            _ => {
                let value = *pick(&mut self.asks, &["0", "1"]);
                accept(self.sys.sysctl_write("vm.defrag_mode", value).await)?
            }
        };
        Ok(())
    }

    async fn files_come_and_go(&mut self) -> Result<u64, WorkloadError> {
        let number = self.stream.below(self.plan.files.len() as u64 + 2);
        let (name, size, group) = (file_name(number), self.size(), self.group());
        let done = match self.stream.below(4) {
            0 => self.call("unlink", 1, self.sys.unlink(&name)).await?,
            1 => accept(self.sys.lay_out_file(&name, Bytes(size)).await)?,
            2 => accept(self.sys.cgroup_remove(group).await)?,
            _ => accept(self.sys.cgroup_create(group).await)?,
        };
        Ok(u64::from(done.is_some()))
    }

    /// Dentries and inodes: makes small files, looks at those of before, removes some.
    async fn small_files(&mut self) -> Result<u64, WorkloadError> {
        let before = self.created;
        for _ in 0..self.stream.below(96) {
            let name = format!("{}-{}", self.name, self.created);
            self.created += 1;
            let opened = self.call("creat", 1, self.sys.open(&name, OpenMode::Create)).await?;
            let Some(file) = opened else { break };
            let len = self.stream.below(2 * PAGE);
            self.call("write", 3, self.sys.write(&file, 0, len)).await?;
        }
        for _ in 0..before.min(32) {
            let name = format!("{}-{}", self.name, self.stream.below(before));
            if self.stream.chance(1, 3) {
                self.call("unlink", 1, self.sys.unlink(&name)).await?;
            } else {
                self.call("stat", 1, self.sys.file_size(&name)).await?;
            }
        }
        Ok(self.created)
    }

    async fn look(&mut self) -> Result<u64, WorkloadError> {
        let group = self.group();
        let file = *pick(&mut self.stream, &["memory.stat", "memory.current", "memory.events", "memory.max"]);
        let text = accept(self.sys.cgroup_read(group, file).await)?.unwrap_or_default();
        let resident = match self.range() {
            Some((opened, offset, len)) => self.sys.resident_pages(&opened.file, offset, len).await?,
            None => self.sys.vmstat().await?.iter().map(|(_, value)| value).sum(),
        };
        Ok(resident ^ text.len() as u64)
    }

    async fn settings(&mut self) -> Result<u64, WorkloadError> {
        if self.stream.chance(1, 2) {
            let mask = u8::try_from(self.stream.below(5)).expect("small");
            let pages = self.sys.memory_total().0;
            return Ok(u64::from(
                self.call("drop_caches", pages, self.sys.drop_caches(mask)).await?.is_some(),
            ));
        }
        let (sysctl, values) = *pick(&mut self.stream, &SETTINGS);
        let value = sysctl.value_text(values.draw(&mut self.stream));
        Ok(u64::from(accept(self.sys.sysctl_write(sysctl.name(), &value).await)?.is_some()))
    }

    async fn sync(&mut self) -> Result<u64, WorkloadError> {
        let pages = self.sys.memory_total().0;
        let done = match self.files.last() {
            Some(opened) if self.stream.chance(2, 3) => {
                self.call("fsync", pages, self.sys.fsync(&opened.file)).await?
            }
            _ => self.call("sync", pages, self.sys.sync()).await?,
        };
        Ok(u64::from(done.is_some()))
    }

    async fn nap(&mut self) -> u64 {
        if let Some((mapping, _)) = self.mappings.last()
            && self.stream.chance(1, 3)
        {
            let _ = self.sys.advise(mapping, Advice::DontNeed).await;
        }
        let length = 1_u64 << self.stream.below(30);
        self.sys.sleep(Nanos(length)).await;
        length
    }
}
