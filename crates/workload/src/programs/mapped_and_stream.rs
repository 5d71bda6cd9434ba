//! `mapped-and-stream`: a program accesses a file through a mapping, again and again, while another one streams past.
//!
//! Reads through a mapping are no system calls: only faults and the bits of page tables tell the kernel of them. So
//! this asks what faults read and map, and whether reclaim believes page tables.
//!
//! Theory of operation:
//! 1. the cgroups are made in the order A, B, in which reclaim walks them; then the workers;
//! 2. M in A maps the file `hot` and accesses each page of it `reads` times, one byte a page; phase `hot_ready` ends;
//! 3. `loops` times: S in B reads the next `every` bytes of the file `stream`, from its start again where it ends; M
//!    accesses its pages once, unless `again=no`. Phase `stream_done` ends;
//! 4. pages of the mapping that are in memory are counted, by `mincore`; M accesses each of them once more; phase
//!    `hot_reread` ends.
//!
//! With `written=N` every Nth page of a pass is written to instead of read. The workers take turns on one CPU, so there
//! is one order of accesses.
//!
//! Left out: several processes that map one file, mappings that come and go. Neighbours: `hot_and_stream.rs` for
//! reads by system calls, [`crate::system`] for tasks and gates.

use units::{Bytes, Nanos, PAGE_SIZE};

use crate::parts::chance;
use crate::parts::footprint::{Footprint, MachineSize};
use crate::parts::turns::{Crew, Round, Topology, Turn, shuffled};
use crate::system::outcome::{Outcome, WorkloadError};
use crate::system::{Advice, FileMapping, OpenMode, System};
use language::metric::{Better, MetricSpec, TIME_RESOLUTION_SECONDS, metric};
use language::params::{ParamError, ParamSpec, Params};

/// The name in the catalog.
pub const NAME: &str = "mapped-and-stream";
/// One line for lists.
pub const HELP: &str = "a file that a program accesses through a mapping beside a stream of reads";

/// The largest file.
const SIZE_MAX: Bytes = Bytes(1 << 40);
/// The smallest limit that two workers can live under, see `hot-and-stream`.
const LIMIT_MIN: Bytes = Bytes(2 << 20);
/// How often pages are accessed, or a part of the stream is read, at most.
const LOOPS_MAX: u64 = 100_000;

/// Its phases, in order.
pub const PHASES: &[&str] = &["hot_ready", "stream_done", "hot_reread"];

/// What its draws decide, and what those of the kernel below it do.
pub const VARIES: &[&str] = &[
    "where on the disk the files lie, within 1 MiB",
    "with order=random, in which order pages are accessed, anew in each pass",
    "simulated: the phase of the kernel's periodic workers (vmstat each second, memory.stat every 2 s)",
];

/// Its parameters.
pub const PARAMS: &[ParamSpec] = &[
    ParamSpec::size("hot", Bytes(PAGE_SIZE)..=SIZE_MAX, "size of the file that A maps").by_default("24M"),
    ParamSpec::count("reads", 1..=LOOPS_MAX, "how often A accesses each page at the start").by_default("2"),
    ParamSpec::choice(
        "again",
        &["yes", "no"],
        "yes: A accesses its pages again after each part of the stream",
    ),
    ParamSpec::choice("order", &["sequential", "random"], "order in which A accesses its pages"),
    ParamSpec::choice("advice", &["none", "random", "sequential"], "what A says of its accesses, by madvise"),
    ParamSpec::choice("mapping", &["shared", "private"], "whether writes reach the file or make copies"),
    ParamSpec::choice("code", &["no", "yes"], "yes: the mapping is executable, as that of a program's text"),
    ParamSpec::count(
        "written",
        0..=LOOPS_MAX,
        "every so manyth page is written to instead of read; 0 for none",
    )
    .by_default("0"),
    ParamSpec::size("stream", Bytes(PAGE_SIZE)..=SIZE_MAX, "size of the file that B reads, round and round")
        .by_default("256M"),
    ParamSpec::size(
        "every",
        Bytes(0)..=SIZE_MAX,
        "bytes that B reads before A accesses its pages again; 0 for none",
    )
    .by_default("8M"),
    ParamSpec::count("loops", 0..=LOOPS_MAX, "how often the two take turns").by_default("32"),
    ParamSpec::choice(
        "topology",
        &["parent", "global", "same"],
        "parent: P/A and P/B; global: A and B at the root; same: both tasks in P",
    ),
    ParamSpec::size("limit", LIMIT_MIN..=SIZE_MAX, "memory.max of P, which topology=global does not have")
        .by_default("64M"),
    ParamSpec::choice("filesystem", &["ext4", "xfs"], "filesystem that the machine puts the files on"),
    ParamSpec::size("read_size", Bytes(512)..=SIZE_MAX, "bytes of one read call of B").by_default("128k"),
];

/// The metrics that head its reports.
pub const METRICS: &[MetricSpec] = &[
    metric("hot_pages_resident", "pages", Better::More, "of the mapped file, in memory after the stream"),
    metric("stream_done_major_faults", "", Better::Less, "faults that had to read, beside the stream"),
    metric("hot_reread_major_faults", "", Better::Less, "faults that had to read, of one more pass"),
    metric("stream_seconds", "s", Better::Less, "reading the stream and accessing the mapping in turns")
        .resolved_to(TIME_RESOLUTION_SECONDS),
    metric("hot_reread_seconds", "s", Better::Less, "one more pass over the mapping")
        .resolved_to(TIME_RESOLUTION_SECONDS),
    metric("stream_done_limit_reclaims", "", Better::Less, "reclaims because P was at its limit, meanwhile"),
];

const HOT_FILE: &str = "hot";
const STREAM_FILE: &str = "stream";
/// One of the workers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Who {
    Mapper,
    Streamer,
}

impl Who {
    const fn name(self) -> &'static str {
        match self {
            Self::Mapper => "mapper",
            Self::Streamer => "streamer",
        }
    }

    /// What its group is called.
    const fn letter(self) -> &'static str {
        match self {
            Self::Mapper => "A",
            Self::Streamer => "B",
        }
    }
}

/// What a worker does in one step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Action {
    /// Maps the file.
    Map,
    /// Accesses each page once.
    Pass,
    /// Counts the pages that are in memory.
    Count,
    /// Reads a part of the stream from there on.
    Read { offset: u64 },
}

/// One step of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// A worker does something, the other one waits.
    Work(Who, Action),
    /// A phase ends.
    Mark(&'static str),
}

/// The program with its parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MappedAndStream {
    reads: u64,
    again: bool,
    loops: u64,
    topology: Topology,
    limit: Bytes,
    worker: Worker,
}

impl MappedAndStream {
    /// The program that `params`, made from [`PARAMS`], describe.
    ///
    /// # Errors
    /// [`ParamError::Conflict`]: code that is written to.
    pub fn from_params(params: &Params) -> Result<Self, ParamError> {
        let size = |name| params.size(name).expect("it has a default");
        let word = |name| params.choice(name).expect("it has a default");
        let count = |name| params.count(name).expect("it has a default");
        let topology = Topology::from_params(params);
        let (code, written) = (word("code") == "yes", count("written"));
        if code && written > 0 {
            return Err(ParamError::Conflict {
                name: "written",
                problem: "code is not written to while it runs".to_owned(),
                hint: "leave `written` or `code` out".to_owned(),
            });
        }
        let advice = match word("advice") {
            "random" => Some(Advice::Random),
            "sequential" => Some(Advice::Sequential),
            _ => None,
        };
        let shared = word("mapping") == "shared";
        let worker = Worker {
            hot: size("hot").to_pages_ceil().get(),
            random: word("order") == "random",
            advice,
            how: FileMapping { shared, writable: written > 0, executable: code },
            written,
            stream: Round { path: STREAM_FILE, size: size("stream"), read_size: size("read_size") },
            every: size("every"),
        };
        let (reads, again, loops) = (count("reads"), word("again") == "yes", count("loops"));
        Ok(Self { reads, again, loops, topology, limit: size("limit"), worker })
    }

    /// What it makes at most: two files, what moves them, and copies of pages.
    pub(crate) fn footprint(&self, _machine: MachineSize) -> Footprint {
        let Worker { hot, stream, how, .. } = &self.worker;
        let files = hot * PAGE_SIZE + stream.len_on_disk().get() + chance::PLACED_WITHIN.get();
        let copies = if how.shared || !how.writable { 0 } else { hot * PAGE_SIZE };
        Footprint { file_count: 3, files: Bytes(files), anonymous: Bytes(copies), tasks: 2, disks: 1 }
    }

    fn script(&self) -> Vec<Step> {
        use Who::{Mapper, Streamer};
        let mut script = vec![Step::Work(Mapper, Action::Map)];
        script.extend((0..self.reads).map(|_| Step::Work(Mapper, Action::Pass)));
        script.push(Step::Mark("hot_ready"));
        for turn in 0..self.loops {
            if self.worker.every > Bytes(0) {
                let offset = turn.wrapping_mul(self.worker.every.get()) % self.worker.stream.size.get();
                script.push(Step::Work(Streamer, Action::Read { offset }));
            }
            script.extend(self.again.then_some(Step::Work(Mapper, Action::Pass)));
        }
        script.extend([
            Step::Mark("stream_done"),
            Step::Work(Mapper, Action::Count),
            Step::Work(Mapper, Action::Pass),
            Step::Mark("hot_reread"),
        ]);
        script
    }

    /// Runs it. The metrics are those of the module's theory of operation; `PHASE_limit_reclaims` are the reclaims of P
    /// because of its limit in each phase, `PHASE_major_faults` those of the machine.
    ///
    /// # Errors
    /// The first failing system call; `Killed` when the OOM killer took a worker.
    pub async fn run<S: System>(&self, sys: S) -> Result<Outcome, WorkloadError> {
        self.set_up(&sys).await?;
        let script = self.script();
        let mut crew = self.hire(&sys, &script).await?;
        let mut outcome = Outcome::default();
        let mut before = self.look(&sys).await?;
        for step in &script {
            match *step {
                Step::Work(who, _) => crew.work(&sys, who.name()).await?,
                Step::Mark(name) => {
                    sys.mark(name);
                    let now = self.look(&sys).await?;
                    now.record(name, &before, &mut outcome);
                    before = now;
                }
            }
        }
        let resident: u64 = crew.leave(&sys).await?.into_iter().map(|(_, counted)| counted).sum();
        outcome.metric("hot_pages_resident", resident as f64);
        outcome.metric("hot_pages", self.worker.hot as f64);
        Ok(outcome)
    }

    async fn set_up<S: System>(&self, sys: &S) -> Result<(), WorkloadError> {
        /// Page cache and slab: the files' inodes and dentries go too.
        const ALL_CACHES: u8 = 3;
        chance::place_files(sys, NAME).await?;
        sys.lay_out_file(HOT_FILE, Bytes(self.worker.hot * PAGE_SIZE)).await?;
        sys.lay_out_file(STREAM_FILE, self.worker.stream.len_on_disk()).await?;
        sys.drop_caches(ALL_CACHES).await?;
        let letters = [Who::Mapper, Who::Streamer].map(Who::letter);
        Ok(self.topology.make(sys, &[("memory.max", self.limit)], &letters).await?)
    }

    async fn hire<S: System>(&self, sys: &S, script: &[Step]) -> Result<Crew<S, u64>, WorkloadError> {
        let member = |who: Who| {
            let of = |step: &Step| match *step {
                Step::Work(worker, action) if worker == who => Some(action),
                _ => None,
            };
            let actions: Vec<Action> = script.iter().filter_map(of).collect();
            (who.name(), self.topology.group(who.letter()), (self.worker.clone(), actions))
        };
        let workers = [Who::Mapper, Who::Streamer].map(member).into();
        let work = async |sys: S, (worker, actions): (Worker, Vec<Action>), turn| {
            worker.work(&sys, &actions, turn).await
        };
        Ok(Crew::hire(sys, workers, work).await?)
    }

    async fn look<S: System>(&self, sys: &S) -> Result<Seen, WorkloadError> {
        let counters = sys.vmstat().await?;
        let major = counters.into_iter().find(|(name, _)| name == "pgmajfault").map_or(0, |(_, count)| count);
        let reclaims = self.topology.limit_reclaims(sys).await?;
        Ok(Seen { at: sys.now(), major, reclaims })
    }
}

/// What there was when a phase began.
struct Seen {
    at: Nanos,
    major: u64,
    reclaims: Option<u64>,
}

impl Seen {
    fn record(&self, name: &str, before: &Self, outcome: &mut Outcome) {
        let stem = if name == "stream_done" { "stream" } else { name };
        outcome.metric(&format!("{stem}_seconds"), self.at.saturating_sub(before.at).as_secs_f64());
        outcome.metric(&format!("{name}_major_faults"), self.major.saturating_sub(before.major) as f64);
        if let (Some(now), Some(before)) = (self.reclaims, before.reclaims) {
            outcome.metric(&format!("{name}_limit_reclaims"), now.saturating_sub(before) as f64);
        }
    }
}

/// What the workers have, and how they use it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Worker {
    hot: u64,
    random: bool,
    advice: Option<Advice>,
    how: FileMapping,
    written: u64,
    stream: Round,
    every: Bytes,
}

impl Worker {
    /// A worker's whole life: its actions, each when it is let; returns the pages that it counted.
    async fn work<S: System>(&self, sys: &S, actions: &[Action], turn: Turn) -> Result<u64, WorkloadError> {
        let (mut mapping, mut stream): (Option<S::Mapping>, Option<S::File>) = (None, None);
        let (mut counted, mut pass) = (0, 0);
        for action in actions {
            turn.wait(sys).await?;
            match (action, &mapping) {
                (Action::Read { offset }, _) => {
                    self.stream.read(sys, &mut stream, *offset, self.every.get()).await?;
                }
                (Action::Map, _) => mapping = Some(self.map(sys).await?),
                (_, None) => unreachable!("the file is mapped first"),
                (Action::Pass, Some(mapping)) => {
                    self.pass(sys, mapping, pass).await?;
                    pass += 1;
                }
                (Action::Count, Some(mapping)) => {
                    counted = sys.mapping_resident(mapping, 0, self.hot).await?;
                }
            }
            turn.end(sys).await?;
        }
        // The mapping stays until the other one is done.
        turn.wait(sys).await?;
        Ok(counted)
    }

    async fn map<S: System>(&self, sys: &S) -> Result<S::Mapping, WorkloadError> {
        let writes = self.how.shared && self.how.writable;
        let file = sys.open(HOT_FILE, if writes { OpenMode::ReadWrite } else { OpenMode::Read }).await?;
        let mapping = sys.map_file(&file, 0, Bytes(self.hot * PAGE_SIZE), self.how).await?;
        if let Some(advice) = self.advice {
            sys.advise(&mapping, advice).await?;
        }
        Ok(mapping)
    }

    /// One access to each page.
    async fn pass<S: System>(&self, sys: &S, mapping: &S::Mapping, number: u64) -> Result<(), WorkloadError> {
        let is_written = |page: u64| self.written > 0 && (page + 1).is_multiple_of(self.written);
        if !self.random && self.written == 0 {
            return Ok(sys.touch_reading(mapping, 0, self.hot).await?);
        }
        let order = if self.random {
            shuffled(sys, &format!("{NAME}/order/{number}"), self.hot)
        } else {
            (0..self.hot).collect()
        };
        for page in order {
            if is_written(page) {
                sys.touch(mapping, page, 1).await?;
            } else {
                sys.touch_reading(mapping, page, 1).await?;
            }
        }
        Ok(())
    }
}
