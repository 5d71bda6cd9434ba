//! A random program: some tasks in some cgroups that read and write files, touch and lock memory,
//! change limits, drop caches, remove what others use, and go on whatever errno comes back.

use units::{Bytes, Nanos, Seed, random::Stream};
use workload::system::{Advice, OpenMode, System, SystemError, TaskSpec};
use workload::{Errno, Outcome, WorkloadError};

use super::world::pick;

/// The outline of a program; the tasks draw the rest from the seed.
#[derive(Debug, Clone)]
pub struct Plan {
    seed: u64,
    tasks: u64,
    ops: u64,
    groups: Vec<&'static str>,
    files: Vec<u64>,
    /// `memory.max` of each group.
    limits: Vec<Option<u64>>,
    /// Sizes are cut down to this: large values make the machine run out of memory.
    reach: u64,
}

const GROUPS: [&str; 6] = ["A", "B", "A/x", "A/y", "B/x", "A/x/deep"];

impl Plan {
    /// Draws one for a machine with so many bytes of memory.
    pub fn draw(seed: u64, memory: u64, stream: &mut Stream) -> Self {
        let groups = GROUPS[..usize::try_from(stream.below(7)).expect("small")].to_vec();
        let files = (0..1 + stream.below(4)).map(|_| stream.below(memory * 2)).collect();
        let limits = groups.iter().map(|_| stream.chance(1, 3).then(|| stream.below(memory))).collect();
        let reach = memory >> stream.below(8);
        Self { seed, tasks: 1 + stream.below(5), ops: 4 + stream.below(40), groups, files, limits, reach }
    }
}

fn file_name(number: u64) -> String {
    format!("file{number}")
}

/// The first task: makes groups and files, starts the others, and tidies up.
pub async fn main<S: System>(sys: S, plan: Plan) -> Result<Outcome, WorkloadError> {
    for (group, limit) in plan.groups.iter().zip(&plan.limits) {
        sys.cgroup_create(group).await?;
        if let Some(limit) = limit {
            accept(sys.cgroup_write(group, "memory.max", &limit.to_string()).await)?;
        }
    }
    for (number, &size) in (0..).zip(&plan.files) {
        sys.lay_out_file(&file_name(number), Bytes(size)).await?;
    }
    let mut tasks = Vec::new();
    let mut stream = Seed(plan.seed).stream("main");
    for number in 0..plan.tasks {
        let mut spec = TaskSpec::named(format!("task{number}"));
        if !plan.groups.is_empty() && stream.chance(3, 4) {
            spec = spec.in_cgroup(*pick(&mut stream, &plan.groups));
        }
        let plan = plan.clone();
        let started = sys.spawn(spec, move |sys: S| async move { Task::new(sys, plan, number).run().await });
        tasks.extend(accept(started.await)?);
    }
    let mut digest = 0_u64;
    for task in tasks {
        let done = accept(sys.join(task).await)?;
        digest = digest.rotate_left(7) ^ done.transpose()?.unwrap_or(1);
    }
    for group in plan.groups.iter().rev() {
        accept(sys.cgroup_remove(group).await)?;
    }
    accept(sys.drop_caches(3).await)?;
    let mut outcome = Outcome::default();
    outcome.metric("digest", (digest >> 12) as f64);
    Ok(outcome)
}

/// Any errno that Linux could return here is fine; anything else is not.
fn accept<V>(answer: Result<V, SystemError>) -> Result<Option<V>, WorkloadError> {
    match answer {
        Ok(value) => Ok(Some(value)),
        Err(error) => match error.errno {
            Errno::NoMem | Errno::Killed | Errno::Busy | Errno::NoEnt => Ok(None),
            Errno::Exist | Errno::NoSpc | Errno::Inval => Ok(None),
            _ => Err(error.into()),
        },
    }
}

struct Task<S: System> {
    sys: S,
    plan: Plan,
    stream: Stream,
    files: Vec<(S::File, u64)>,
    mappings: Vec<(S::Mapping, u64)>,
    digest: u64,
}

impl<S: System> Task<S> {
    fn new(sys: S, plan: Plan, number: u64) -> Self {
        let stream = Seed(plan.seed).stream(&format!("task{number}"));
        Self { sys, plan, stream, files: Vec::new(), mappings: Vec::new(), digest: number }
    }

    async fn run(mut self) -> Result<u64, WorkloadError> {
        for _ in 0..self.plan.ops {
            let value = match self.stream.below(20) {
                0..=2 => self.open().await?,
                3..=8 => self.read().await?,
                9..=10 => self.write().await?,
                11..=13 => self.touch().await?,
                14 => self.release(),
                15 => self.control().await?,
                16 => self.files_come_and_go().await?,
                17 => self.look().await?,
                18 => self.settings().await?,
                _ => self.nap().await,
            };
            self.digest = self.digest.rotate_left(9) ^ value ^ self.sys.now().0;
        }
        Ok(self.digest)
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
        if let Some(file) = accept(self.sys.open(&file_name(number), OpenMode::ReadWrite).await)? {
            self.files.push((file, size));
        }
        Ok(self.files.len() as u64)
    }

    /// A range of an open file: from its start, from anywhere, or over its end.
    fn range(&mut self) -> Option<(S::File, u64, u64)> {
        if self.files.is_empty() {
            return None;
        }
        let (file, size) = pick(&mut self.stream, &self.files).clone();
        let offset = if self.stream.chance(1, 2) { 0 } else { self.stream.below(size + 8192) };
        let len = if self.stream.chance(1, 30) { u64::MAX - offset } else { self.size() };
        Some((file, offset, len))
    }

    async fn read(&mut self) -> Result<u64, WorkloadError> {
        let Some((file, offset, len)) = self.range() else { return Ok(0) };
        // Sometimes at once, mostly in a row of small calls.
        let step = [4096, 16384, 131_072, u64::MAX][usize::try_from(self.stream.below(4)).expect("small")];
        let (mut done, end) = (0, offset + len);
        let mut at = offset;
        while at < end && done < self.plan.reach * 2 {
            let read = accept(self.sys.read(&file, at, step.min(end - at)).await)?.unwrap_or(0);
            if read == 0 {
                break;
            }
            (at, done) = (at + read, done + read);
        }
        Ok(done)
    }

    async fn write(&mut self) -> Result<u64, WorkloadError> {
        let Some((file, offset, len)) = self.range() else { return Ok(0) };
        let len = if self.stream.chance(1, 4) { len } else { len.min(65536) };
        let written = accept(self.sys.write(&file, offset, len).await)?;
        if self.stream.chance(1, 8) {
            accept(self.sys.fsync(&file).await)?;
        }
        Ok(written.unwrap_or(3))
    }

    async fn touch(&mut self) -> Result<u64, WorkloadError> {
        if self.mappings.is_empty() || self.stream.chance(1, 3) {
            let size = self.size();
            if let Some(mapping) = accept(self.sys.map_anonymous(Bytes(size)).await)? {
                self.mappings.push((mapping, size.div_ceil(4096)));
            }
        }
        let count = self.mappings.len() as u64;
        if count == 0 {
            return Ok(0);
        }
        let number = usize::try_from(self.stream.below(count)).expect("small");
        let pages = self.mappings[number].1;
        let first = self.stream.below(pages + 1);
        let len = self.stream.below(pages - first + 1);
        let lock = self.stream.chance(1, 6);
        let mapping = &self.mappings[number].0;
        let done = if lock {
            self.sys.lock_memory(mapping, first, len).await
        } else {
            self.sys.touch(mapping, first, len).await
        };
        Ok(u64::from(accept(done)?.is_some()))
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
        let file = *pick(&mut self.stream, &["memory.max", "memory.high", "memory.low", "memory.min"]);
        let size = self.size();
        let value = if self.stream.chance(1, 4) { "max".to_owned() } else { size.to_string() };
        let written = accept(self.sys.cgroup_write(group, file, &value).await)?;
        Ok(u64::from(written.is_some()))
    }

    async fn files_come_and_go(&mut self) -> Result<u64, WorkloadError> {
        let number = self.stream.below(self.plan.files.len() as u64 + 2);
        let (name, size, group) = (file_name(number), self.size(), self.group());
        let done = match self.stream.below(4) {
            0 => accept(self.sys.unlink(&name).await)?,
            1 => accept(self.sys.lay_out_file(&name, Bytes(size)).await)?,
            2 => accept(self.sys.cgroup_remove(group).await)?,
            _ => accept(self.sys.cgroup_create(group).await)?,
        };
        Ok(u64::from(done.is_some()))
    }

    async fn look(&mut self) -> Result<u64, WorkloadError> {
        let group = self.group();
        let file = *pick(&mut self.stream, &["memory.stat", "memory.current", "memory.events", "memory.max"]);
        let text = accept(self.sys.cgroup_read(group, file).await)?.unwrap_or_default();
        let resident = match self.range() {
            Some((file, offset, len)) => self.sys.resident_pages(&file, offset, len).await?,
            None => self.sys.vmstat().await?.iter().map(|(_, value)| value).sum(),
        };
        Ok(resident ^ text.len() as u64)
    }

    async fn settings(&mut self) -> Result<u64, WorkloadError> {
        if self.stream.chance(1, 2) {
            let mask = u8::try_from(self.stream.below(5)).expect("small");
            return Ok(u64::from(accept(self.sys.drop_caches(mask).await)?.is_some()));
        }
        let (name, value) = match self.stream.below(3) {
            0 => ("vm.min_free_kbytes", self.stream.below(4096)),
            1 => ("vm.watermark_scale_factor", 1 + self.stream.below(3000)),
            _ => ("vm.watermark_boost_factor", self.stream.below(30_000)),
        };
        Ok(u64::from(accept(self.sys.sysctl_write(name, &value.to_string()).await)?.is_some()))
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
