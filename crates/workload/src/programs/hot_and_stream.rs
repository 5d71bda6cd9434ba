//! `hot-and-stream`: a hot set in cgroup A, one pass of streaming reads in cgroup B. How much of
//! the hot set is still cached afterwards?
//!
//! The demonstration of the series "fix page aging across multiple cgroups" (J. Weiner, 7 Nov
//! 2019): 50 MiB of active file pages in A, 18 GiB read once in B, on a machine with
//! `MemTotal: 1016336 kB`. Before, 134 of 12800 hot pages were left; after, all of them.
//!
//! Theory of operation:
//! 1. lay out both files, drop caches, create the cgroups;
//! 2. task `hot` in A reads its file `hot_reads` times; the second read of a page puts it on the
//!    active list; count residents; phase `hot_ready` ends;
//! 3. task `stream` in B reads its file once; phase `stream_done` ends; count residents, then read
//!    `memory.stat` once per group (it flushes statistics, hence not before the phase's end);
//! 4. task `reread` in A reads the hot file once more; phase `reread_done` ends; `memory.stat`
//!    again.
//!
//! Left out: the script's warm-up and its other file systems; `filesystem` is for the machine.
//! Neighbours: [`crate::system`] for what a task is, [`crate::parts::memory_stat`].

use serde::{Deserialize, Serialize};
use units::{Bytes, Nanos};

use crate::parts::buffer;
use crate::parts::chance::{self, Started};
use crate::parts::footprint::{Footprint, MachineSize};
use crate::parts::memory_stat::MemoryStat;
use crate::system::outcome::{Outcome, WorkloadError};
use crate::system::{OpenMode, System, TaskSpec};
use language::metric::{Better, MetricSpec, TIME_RESOLUTION_SECONDS, metric};
use language::params::{ParamError, ParamSpec, Params};

/// The name in the catalog.
pub const NAME: &str = "hot-and-stream";
/// One line for lists.
pub const HELP: &str = "a hot file in cgroup A against one pass of streaming reads in cgroup B";

/// The largest file or limit: what 2^32 page frames hold, the most memory that can be modelled.
const SIZE_MAX: Bytes = Bytes(16 << 40);

/// The smallest limit that both tasks can live under. Each has a readahead window of 128 KiB
/// locked while it is read, and each of two CPUs can hold a charge batch of 64 pages that reclaim
/// cannot take: 768 KiB. The rest is for page tables, stacks and the page cache's own tree.
const LIMIT_MIN: Bytes = Bytes(1 << 20);
const _: () = assert!(LIMIT_MIN.0 > 2 * (128 << 10) + 2 * 64 * units::PAGE_SIZE);

/// Its phases, in order.
pub const PHASES: &[&str] = &["hot_ready", "stream_done", "reread_done"];

/// What its draws decide, and what those of the kernel below it do.
pub const VARIES: &[&str] = &[
    "when each task begins, up to 20 ms after it was started: the distance to the kernel's ticks",
    "where on the disk the files lie, within 1 MiB",
    "simulated: the phase of the kernel's periodic workers (vmstat each second, memory.stat every 2 s)",
];

/// Its parameters.
pub const PARAMS: &[ParamSpec] = &[
    ParamSpec::size("hot", Bytes(0)..=SIZE_MAX, "size of the hot file that A reads").by_default("50M"),
    ParamSpec::count("hot_reads", 0..=1000, "how often A reads it; 2 puts it on the active list")
        .by_default("2"),
    ParamSpec::size("stream", Bytes(0)..=SIZE_MAX, "size of the file that B reads once, sequentially")
        .by_default("18G"),
    ParamSpec::choice(
        "topology",
        &["siblings", "parent", "same"],
        "siblings: A and B at the root; parent: P/A and P/B; same: both tasks in A",
    ),
    ParamSpec::size("limit", LIMIT_MIN..=SIZE_MAX, "memory.max of P; only with topology=parent"),
    ParamSpec::size("low", Bytes(0)..=SIZE_MAX, "memory.low of A, and of P where there is one"),
    ParamSpec::choice("filesystem", &["ext4", "xfs"], "filesystem that the machine puts the files on"),
    ParamSpec::size("read_size", Bytes(512)..=Bytes(1 << 30), "bytes of one read call").by_default("128k"),
];

/// The metrics that head its reports.
pub const METRICS: &[MetricSpec] = &[
    metric("hot_pages_cached", "pages", Better::More, "in memory after the stream").of("hot_pages_total"),
    metric("reread_seconds", "s", Better::Less, "reading the hot file again")
        .resolved_to(TIME_RESOLUTION_SECONDS),
    metric("stream_mib_per_second", "MiB/s", Better::More, "pace of the stream"),
    metric("memcg_pgscan", "pages", Better::Less, "scanned until the stream ends"),
];

/// The stream's file goes on behind what is read, as in the measured runs: readahead reaches one
/// window further, which may have 8 MiB.
const READAHEAD_BEYOND: u64 = 16 << 20;

const HOT_FILE: &str = "hot";
const STREAM_FILE: &str = "stream";
/// A group that nothing happens in.
const BYSTANDER: &str = "P";
/// Rate samples of the stream: enough to see a stall, few enough to print.
const STREAM_SAMPLES: u64 = 64;

/// The cgroups that the tasks live in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Topology {
    Siblings,
    Parent { limit: Option<Bytes> },
    Same,
}

impl Topology {
    /// The parent, the hot task's group and the stream task's group.
    fn groups(self) -> (Option<&'static str>, &'static str, &'static str) {
        match self {
            Self::Siblings => (None, "A", "B"),
            Self::Parent { .. } => (Some("P"), "P/A", "P/B"),
            Self::Same => (None, "A", "A"),
        }
    }
}

/// The program with its parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HotAndStream {
    hot: Bytes,
    hot_reads: u64,
    stream: Bytes,
    topology: Topology,
    low: Option<Bytes>,
    read_size: Bytes,
}

impl HotAndStream {
    /// The program that `params`, made from [`PARAMS`], describe.
    ///
    /// # Errors
    /// [`ParamError::Conflict`]: a limit without a parent to put it on.
    pub fn from_params(params: &Params) -> Result<Self, ParamError> {
        let limit = params.size("limit");
        let topology = match params.choice("topology").expect("topology has a default") {
            "siblings" => Topology::Siblings,
            "parent" => Topology::Parent { limit },
            "same" => Topology::Same,
            other => unreachable!("topology {other} is not in PARAMS"),
        };
        if limit.is_some() && !matches!(topology, Topology::Parent { .. }) {
            return Err(ParamError::Conflict {
                name: "limit",
                problem: "there is no parent cgroup to limit".to_owned(),
                hint: "add `topology=parent`, or leave `limit` out".to_owned(),
            });
        }
        Ok(Self {
            hot: params.size("hot").expect("hot has a default"),
            hot_reads: params.count("hot_reads").expect("hot_reads has a default"),
            stream: params.size("stream").expect("stream has a default"),
            topology,
            low: params.size("low"),
            read_size: params.size("read_size").expect("read_size has a default"),
        })
    }

    /// Sizes of the two files.
    fn file_sizes(&self) -> [Bytes; 2] {
        [self.hot, Bytes(self.stream.get() + READAHEAD_BEYOND)]
    }

    /// What it makes at most, on any machine: two files, read by one task after the other, and the one
    /// that moves them to another place of the disk.
    pub(crate) fn footprint(&self, _machine: MachineSize) -> Footprint {
        let sizes = self.file_sizes().into_iter().chain([chance::PLACED_WITHIN]);
        Footprint {
            file_count: sizes.clone().count() as u64,
            files: Bytes(sizes.map(|size| size.get()).sum()),
            anonymous: Bytes(0),
            tasks: 1,
            disks: 1,
        }
    }

    /// Runs it. The metrics are those of the module's theory of operation.
    ///
    /// # Errors
    /// The first failing system call; `Killed` when the OOM killer took a task.
    pub async fn run<S: System>(&self, sys: S) -> Result<Outcome, WorkloadError> {
        let (_, group_a, group_b) = self.topology.groups();
        let mut outcome = Outcome::default();
        self.set_up(&sys).await?;
        let hot = Reader { path: HOT_FILE, size: self.hot, read_size: self.read_size };
        let stream = Reader { path: STREAM_FILE, size: self.stream, read_size: self.read_size };

        let passes = hot.spawn(&sys, "hot", group_a, self.hot_reads).await?;
        let pass_seconds = passes.iter().map(|pass| pass.length.as_secs_f64()).collect();
        outcome.samples.insert("hot_pass_seconds".to_owned(), pass_seconds);
        outcome.metric("hot_pages_before", self.resident_hot_pages(&sys).await? as f64);
        sys.mark("hot_ready");

        let streamed = stream.spawn(&sys, "stream", group_b, 1).await?;
        sys.mark("stream_done");
        outcome.metric("hot_pages_cached", self.resident_hot_pages(&sys).await? as f64);
        outcome.metric("hot_pages_total", self.hot.to_pages_ceil().get() as f64);
        let reclaim_before = self.record_groups(&sys, &mut outcome).await?;
        record_stream(&streamed, &mut outcome);

        let reread = hot.spawn(&sys, "reread", group_a, 1).await?;
        sys.mark("reread_done");
        outcome.metric("reread_seconds", total_seconds(&reread));
        let scanned = self.stats(&sys).await?.sum("pgscan")?;
        if let (Some(scanned), Some(before)) = (scanned, reclaim_before) {
            outcome.metric("reread_memcg_pgscan", scanned.saturating_sub(before) as f64);
        }
        Ok(outcome)
    }

    async fn set_up<S: System>(&self, sys: &S) -> Result<(), WorkloadError> {
        /// Page cache and slab: the files' inodes and dentries go too.
        const ALL_CACHES: u8 = 3;
        chance::place_files(sys, NAME).await?;
        let [hot, stream] = self.file_sizes();
        sys.lay_out_file(HOT_FILE, hot).await?;
        sys.lay_out_file(STREAM_FILE, stream).await?;
        sys.drop_caches(ALL_CACHES).await?;

        let (parent, group_a, group_b) = self.topology.groups();
        let low = self.low.map(|low| low.get().to_string());
        if let Some(parent) = parent {
            sys.cgroup_create(parent).await?;
            if let Topology::Parent { limit: Some(limit) } = self.topology {
                sys.cgroup_write(parent, "memory.max", &limit.get().to_string()).await?;
            }
            if let Some(low) = &low {
                sys.cgroup_write(parent, "memory.low", low).await?;
            }
        }
        sys.cgroup_create(group_a).await?;
        if let Some(low) = &low {
            sys.cgroup_write(group_a, "memory.low", low).await?;
        }
        if group_b != group_a {
            sys.cgroup_create(group_b).await?;
        }
        if parent.is_none() {
            // The measured guests always had an empty third group; where reclaim continues its
            // walk of the tree at a saved position, what lies behind B matters.
            sys.cgroup_create(BYSTANDER).await?;
        }
        Ok(())
    }

    async fn resident_hot_pages<S: System>(&self, sys: &S) -> Result<u64, WorkloadError> {
        if self.hot == Bytes(0) {
            return Ok(0); // There is nothing to map, and mmap of nothing is an error.
        }
        let file = sys.open(HOT_FILE, OpenMode::Read).await?;
        Ok(sys.resident_pages(&file, 0, self.hot.get()).await?)
    }

    /// Reads every group once and records the counters; returns the pages scanned so far.
    async fn record_groups<S: System>(
        &self,
        sys: &S,
        outcome: &mut Outcome,
    ) -> Result<Option<u64>, WorkloadError> {
        let stats = self.stats(sys).await?;
        for (metric, key) in [
            ("memcg_pgscan", "pgscan"),
            ("memcg_pgsteal", "pgsteal"),
            ("memcg_pgrefill", "pgrefill"),
            ("memcg_pgdeactivate", "pgdeactivate"),
        ] {
            if let Some(pages) = stats.sum(key)? {
                outcome.metric(metric, pages as f64);
            }
        }
        outcome.metric("a_active_file_pages", stats.a.pages("active_file")? as f64);
        outcome.metric("a_inactive_file_pages", stats.a.pages("inactive_file")? as f64);
        if let Some(b) = &stats.b {
            outcome.metric("b_inactive_file_pages", b.pages("inactive_file")? as f64);
        }
        stats.sum("pgscan")
    }

    async fn stats<S: System>(&self, sys: &S) -> Result<GroupStats, WorkloadError> {
        let (parent, group_a, group_b) = self.topology.groups();
        let parent = match parent {
            Some(parent) => Some(MemoryStat::read(sys, parent).await?),
            None => None,
        };
        let a = MemoryStat::read(sys, group_a).await?;
        let b = if group_b == group_a { None } else { Some(MemoryStat::read(sys, group_b).await?) };
        Ok(GroupStats { parent, a, b })
    }
}

/// `memory.stat` of all groups at one moment.
struct GroupStats {
    parent: Option<MemoryStat>,
    a: MemoryStat,
    b: Option<MemoryStat>,
}

impl GroupStats {
    /// A counter of the whole workload: a parent counts for its children. `None` where the kernel
    /// has no such counter: cgroup v1 counts no reclaim per group.
    fn sum(&self, key: &'static str) -> Result<Option<u64>, WorkloadError> {
        let sum = match (&self.parent, &self.b) {
            (Some(parent), _) => parent.value(key),
            (None, None) => self.a.value(key),
            (None, Some(b)) => self.a.value(key).and_then(|sum| Ok(sum.saturating_add(b.value(key)?))),
        };
        match sum {
            Err(WorkloadError::MissingStat { .. }) => Ok(None),
            other => other.map(Some),
        }
    }
}

/// One pass over a file: how long it took, and the rates along the way.
#[derive(Serialize, Deserialize)]
struct Pass {
    length: Nanos,
    rates_mib_per_second: Vec<f64>,
}

fn total_seconds(passes: &[Pass]) -> f64 {
    passes.iter().map(|pass| pass.length).sum::<Nanos>().as_secs_f64()
}

fn record_stream(passes: &[Pass], outcome: &mut Outcome) {
    outcome.metric("stream_seconds", total_seconds(passes));
    let rates = passes.iter().flat_map(|pass| pass.rates_mib_per_second.iter().copied()).collect();
    outcome.samples.insert("stream_mib_per_second".to_owned(), rates);
}

/// A task's job: read a file from start to end, in calls of `read_size`.
#[derive(Debug, Clone, Copy)]
struct Reader {
    path: &'static str,
    size: Bytes,
    read_size: Bytes,
}

impl Reader {
    /// Reads the file `passes` times in a task of its own in `group`; returns when it has exited.
    async fn spawn<S: System>(
        self,
        sys: &S,
        name: &str,
        group: &str,
        passes: u64,
    ) -> Result<Vec<Pass>, WorkloadError> {
        let spec = TaskSpec::named(name).in_cgroup(group);
        let name = name.to_owned();
        let program = move |sys: S| async move {
            chance::begin(&sys, NAME, &name, Started::ByShell).await;
            self.read_all(&sys, passes).await
        };
        let task = sys.spawn(spec, program).await?;
        sys.join(task).await?
    }

    async fn read_all<S: System>(self, sys: &S, passes: u64) -> Result<Vec<Pass>, WorkloadError> {
        buffer::use_large(sys, self.read_size.min(self.size)).await?;
        let file = sys.open(self.path, OpenMode::Read).await?;
        let mut done = Vec::new();
        for _ in 0..passes {
            done.push(self.read_once(sys, &file).await?);
        }
        Ok(done)
    }

    async fn read_once<S: System>(self, sys: &S, file: &S::File) -> Result<Pass, WorkloadError> {
        let size = self.size.get();
        let sample_len = size.div_ceil(STREAM_SAMPLES).max(1);
        let begin = sys.now();
        let mut pass = Pass { length: Nanos::ZERO, rates_mib_per_second: Vec::new() };
        let (mut offset, mut sample_offset, mut sample_begin) = (0, 0, begin);
        while offset < size {
            let len = self.read_size.get().min(size - offset);
            let read = sys.read(file, offset, len).await?;
            if read == 0 {
                let path = self.path.to_owned();
                return Err(WorkloadError::ShortRead { path, read_bytes: offset, size_bytes: size });
            }
            offset += read;
            if offset - sample_offset >= sample_len || offset >= size {
                let now = sys.now();
                let length = now.saturating_sub(sample_begin);
                pass.rates_mib_per_second.extend(rate(offset - sample_offset, length));
                (sample_offset, sample_begin) = (offset, now);
            }
        }
        pass.length = sys.now().saturating_sub(begin);
        Ok(pass)
    }
}

/// MiB per second; none when no time has passed.
fn rate(bytes: u64, length: Nanos) -> Option<f64> {
    (length > Nanos::ZERO).then(|| (bytes as f64 / f64::from(1 << 20)) / length.as_secs_f64())
}
