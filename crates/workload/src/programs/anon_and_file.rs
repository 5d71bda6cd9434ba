//! `anon-and-file`: hot and cold anonymous memory beside a file that is read round and round. Which of the three
//! makes room for the others?
//!
//! Three workers take turns, in one order of accesses: H in cgroup A has hot memory, C in cgroup C cold memory, S in
//! cgroup B reads the file. Reclaim that swaps out what nobody needs leaves room for the file; reclaim that takes
//! file pages alone reads the file anew in every pass.
//!
//! Theory of operation, with `steps=loop`:
//! 1. the cgroups are made in the order A, C, B, which is that in which reclaim walks them; then the workers;
//! 2. C maps its memory and writes to all of it; phase `cold_ready` ends. H does so with its own, and writes to
//!    each page once more; phase `hot_ready` ends;
//! 3. `loops` times: S reads the next `every` bytes of the file, from its start again where it ends; H writes one
//!    byte to each of its pages. Phase `stream_done` ends;
//! 4. pages of H and C that are in memory are counted, by `mincore`; H sweeps over its memory once more, phase
//!    `hot_reread` ends; then C over its own, phase `cold_reread` ends.
//!
//! `steps=pageout` advises instead: H's memory is cold (`MADV_COLD`), C's is paged out, read back and paged out
//! again, H's may be dropped (`MADV_FREE`); then P is asked for room by `memory.reclaim`, and for twice as much.
//! `steps=reclaim` fills memory and the page cache, the file read twice, and asks P in the same way, below its limit.
//!
//! Left out: sharing between the workers, swap areas themselves, which are the machine's. Neighbours: `plan.rs` for
//! what is done in which order, `turns.rs` for how they take turns.

mod plan;

use units::{Bytes, Nanos, PAGE_SIZE};

use self::plan::{Action, Plan, Step, Who};
use crate::parts::chance;
use crate::parts::footprint::{Footprint, MachineSize};
use crate::parts::need::Need;
use crate::parts::turns::{Crew, Round, Topology, Turn, shuffled};
use crate::system::errno::{Errno, SystemError};
use crate::system::outcome::{Outcome, WorkloadError};
use crate::system::{Advice, System};
use language::metric::{Better, MetricSpec, TIME_RESOLUTION_SECONDS, metric};
use language::params::{ParamError, ParamSpec, Params};

/// The name in the catalog.
pub const NAME: &str = "anon-and-file";
/// One line for lists.
pub const HELP: &str = "hot and cold anonymous memory beside a file that is read round and round, with swap";

/// The largest memory or file.
const SIZE_MAX: Bytes = Bytes(1 << 40);
/// The smallest limit that three workers can live under, see `hot-and-stream`.
const LIMIT_MIN: Bytes = Bytes(2 << 20);
/// How often the file or memory is gone through at most.
const LOOPS_MAX: u64 = 100_000;

/// Its phases with `steps=loop`, in order. With other steps each one ends a phase of its own, see `plan.rs`.
pub const PHASES: &[&str] = &["cold_ready", "hot_ready", "stream_done", "hot_reread", "cold_reread"];

/// What its draws decide, and what those of the kernel below it do.
pub const VARIES: &[&str] = &[
    "where on the disk the file lies, within 1 MiB",
    "with order=random, in which order the hot pages are touched",
    "simulated: the phase of the kernel's periodic workers (vmstat each second, memory.stat every 2 s)",
];

/// Its parameters.
pub const PARAMS: &[ParamSpec] = &[
    ParamSpec::choice(
        "steps",
        &["loop", "pageout", "reclaim"],
        "loop: hot memory against the file; pageout: madvise; reclaim: memory.reclaim",
    ),
    ParamSpec::size("hot", Bytes(PAGE_SIZE)..=SIZE_MAX, "anonymous memory of A, touched again and again")
        .by_default("32M"),
    ParamSpec::size(
        "cold",
        Bytes(PAGE_SIZE)..=SIZE_MAX,
        "anonymous memory of C, touched at the start and at the end",
    )
    .by_default("96M"),
    ParamSpec::size("file", Bytes(PAGE_SIZE)..=SIZE_MAX, "size of the file that B reads, round and round")
        .by_default("128M"),
    ParamSpec::size(
        "every",
        Bytes(0)..=SIZE_MAX,
        "bytes that B reads before A touches its memory again; 0 for none",
    )
    .by_default("16M"),
    ParamSpec::count("loops", 0..=LOOPS_MAX, "how often the two take turns").by_default("32"),
    ParamSpec::choice(
        "topology",
        &["parent", "global", "same"],
        "parent: P/A, P/C and P/B; global: A, C and B at the root; same: all tasks in P",
    ),
    ParamSpec::size("limit", LIMIT_MIN..=SIZE_MAX, "memory.max of P, which topology=global does not have")
        .by_default("192M"),
    ParamSpec::size("swap_max", Bytes(0)..=SIZE_MAX, "memory.swap.max of P"),
    ParamSpec::size(
        "swap_high",
        Bytes(0)..=SIZE_MAX,
        "memory.swap.high of P, above which tasks are made to sleep (5.8)",
    ),
    ParamSpec::size(
        "reclaim",
        Bytes(PAGE_SIZE)..=SIZE_MAX,
        "asked of memory.reclaim of P, then twice as much; not with steps=loop",
    )
    .by_default("32M"),
    ParamSpec::choice(
        "reclaim_of",
        &["cgroup", "node"],
        "node: asked of node 0 instead, whose file Linux 6.17 has",
    ),
    ParamSpec::choice("reclaim_what", &["all", "anon"], "anon: anonymous memory alone is asked for (6.16)"),
    ParamSpec::count(
        "reclaim_swappiness",
        0..=200,
        "swappiness of what is asked for (6.11), instead of vm.swappiness",
    ),
    ParamSpec::choice("order", &["sequential", "random"], "order in which A touches its pages"),
    ParamSpec::choice("huge", &["never", "always"], "huge pages for anonymous memory, by madvise"),
    ParamSpec::choice(
        "flush",
        &["no", "yes"],
        "yes: memory.stat of all groups is read after every read of B, which makes them exact",
    ),
    ParamSpec::count(
        "compressed_bytes",
        0..=PAGE_SIZE,
        "bytes that a compressor makes of an anonymous page; 0 for pages of one repeated byte",
    )
    .by_default("1200"),
    ParamSpec::choice("filesystem", &["ext4", "xfs"], "filesystem that the machine puts the file on"),
    ParamSpec::size("read_size", Bytes(512)..=SIZE_MAX, "bytes of one read call").by_default("128k"),
];

/// The metrics that head its reports.
pub const METRICS: &[MetricSpec] = &[
    metric("stream_seconds", "s", Better::Less, "reading the file and touching the hot memory in turns")
        .resolved_to(TIME_RESOLUTION_SECONDS),
    metric("hot_pages_resident", "pages", Better::More, "of the hot memory, in memory after that"),
    metric("cold_pages_resident", "pages", Better::Neither, "of the cold memory, in memory after that"),
    metric("hot_reread_seconds", "s", Better::Less, "a sweep over the hot memory")
        .resolved_to(TIME_RESOLUTION_SECONDS),
    metric("cold_reread_seconds", "s", Better::Less, "a sweep over the cold memory")
        .resolved_to(TIME_RESOLUTION_SECONDS),
    metric(
        "stream_done_limit_reclaims",
        "",
        Better::Less,
        "reclaims because P was at its limit, while the file was read",
    ),
];

const FILE: &str = "file";

/// How P, or the node, is asked for room.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Asked {
    of_node: bool,
    /// Instead of `vm.swappiness`: a number or `max`.
    swappiness: Option<String>,
}

/// The program with its parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnonAndFile {
    plan: Plan,
    topology: Topology,
    limit: Bytes,
    swap_max: Option<Bytes>,
    swap_high: Option<Bytes>,
    asked: Asked,
    worker: Worker,
}

impl AnonAndFile {
    /// The program that `params`, made from [`PARAMS`], describe.
    ///
    /// # Errors
    /// [`ParamError::Conflict`]: a group that is asked for room and does not exist.
    pub fn from_params(params: &Params) -> Result<Self, ParamError> {
        let size = |name| params.size(name).expect("it has a default");
        let word = |name| params.choice(name).expect("it has a default");
        let topology = Topology::from_params(params);
        let steps = word("steps");
        let of_parent = ["swap_max", "swap_high"].into_iter().find(|name| params.size(name).is_some());
        let of_parent = of_parent.or((steps != "loop").then_some("steps"));
        if let (Topology::Global, Some(name)) = (topology, of_parent) {
            return Err(ParamError::Conflict {
                name,
                problem: "there is no parent cgroup to limit or to ask for room".to_owned(),
                hint: format!("add `topology=parent`, or leave `{name}` out"),
            });
        }
        if params.count("reclaim_swappiness").is_some() && word("reclaim_what") == "anon" {
            return Err(ParamError::Conflict {
                name: "reclaim_swappiness",
                problem: "anonymous memory alone is asked for".to_owned(),
                hint: "leave it out, or `reclaim_what=anon`".to_owned(),
            });
        }
        let swappiness = params.count("reclaim_swappiness").map(|number| number.to_string());
        let asked = Asked {
            of_node: word("reclaim_of") == "node",
            swappiness: if word("reclaim_what") == "anon" { Some("max".to_owned()) } else { swappiness },
        };
        let plan = Plan {
            steps,
            every: size("every"),
            loops: params.count("loops").expect("it has a default"),
            flush: word("flush") == "yes",
            reclaim: size("reclaim"),
            file: size("file"),
        };
        let compressed = params.count("compressed_bytes").expect("it has a default");
        let worker = Worker {
            hot: size("hot").to_pages_ceil().get(),
            cold: size("cold").to_pages_ceil().get(),
            file: Round { path: FILE, size: size("file"), read_size: size("read_size") },
            random: word("order") == "random",
            huge: word("huge") == "always",
            compressed: u16::try_from(compressed).expect("at most a page"),
        };
        let [swap_max, swap_high] = ["swap_max", "swap_high"].map(|name| params.size(name));
        Ok(Self { plan, topology, limit: size("limit"), swap_max, swap_high, asked, worker })
    }

    /// What a kernel must have for it to run.
    pub(crate) fn needs(&self) -> Vec<Need> {
        let mut needs = vec![Need::Cgroups];
        needs.extend(self.swap_high.map(|_| Need::SwapHigh));
        needs.extend(self.worker.huge.then_some(Need::HugePageAdvice));
        if self.plan.asks() {
            needs.push(Need::ProactiveReclaim);
            let how = match self.asked.swappiness.as_deref() {
                Some("max") => Some(Need::AnonReclaim),
                Some(_) => Some(Need::ReclaimSwappiness),
                None => None,
            };
            needs.extend(how);
            needs.extend(self.asked.of_node.then_some(Need::NodeReclaim));
        }
        needs
    }

    fn has_file(&self) -> bool {
        self.plan.who_works().contains(&Who::Stream)
    }

    /// What it makes at most: the file, what moves it, and the memory of two workers.
    pub(crate) fn footprint(&self, _machine: MachineSize) -> Footprint {
        let Worker { hot, cold, file, .. } = &self.worker;
        let files = if self.has_file() { file.len_on_disk().get() + chance::PLACED_WITHIN.get() } else { 0 };
        Footprint {
            file_count: if self.has_file() { 2 } else { 0 },
            files: Bytes(files),
            anonymous: Bytes((hot + cold) * PAGE_SIZE),
            tasks: self.plan.who_works().len() as u64,
            disks: 1,
        }
    }

    /// Runs it. The metrics are those of the module's theory of operation; `PHASE_limit_reclaims` are the
    /// reclaims of P because of its limit in each phase.
    ///
    /// # Errors
    /// The first failing system call; `Killed` when the OOM killer took a worker.
    pub async fn run<S: System>(&self, sys: S) -> Result<Outcome, WorkloadError> {
        self.set_up(&sys).await?;
        let script = self.plan.script();
        let mut crew = self.hire(&sys, &script).await?;
        let mut outcome = Outcome::default();
        let mut phase = Phase { begin: sys.now(), reclaims: self.topology.limit_reclaims(&sys).await? };
        for step in &script {
            match *step {
                Step::Work(who, _) => crew.work(&sys, who.name()).await?,
                Step::Mark(name) => {
                    sys.mark(name);
                    phase = self.end_phase(&sys, name, &phase, &mut outcome).await?;
                }
                Step::Reclaim(bytes) => self.reclaim(&sys, bytes, &mut outcome).await?,
                Step::Flush => self.flush(&sys).await?,
            }
        }
        for (name, seen) in crew.leave(&sys).await? {
            record_counts(&script, &name, &seen, &mut outcome);
        }
        Ok(outcome)
    }

    async fn set_up<S: System>(&self, sys: &S) -> Result<(), WorkloadError> {
        /// Page cache and slab: the file's inode and dentry go too.
        const ALL_CACHES: u8 = 3;
        if self.has_file() {
            chance::place_files(sys, NAME).await?;
            sys.lay_out_file(FILE, self.worker.file.len_on_disk()).await?;
            sys.drop_caches(ALL_CACHES).await?;
        }
        let mut settings = vec![("memory.max", self.limit)];
        settings.extend(self.swap_max.map(|swap_max| ("memory.swap.max", swap_max)));
        settings.extend(self.swap_high.map(|swap_high| ("memory.swap.high", swap_high)));
        Ok(self.topology.make(sys, &settings, &Who::LETTERS).await?)
    }

    async fn hire<S: System>(&self, sys: &S, script: &[Step]) -> Result<Crew<S, Vec<f64>>, WorkloadError> {
        let member = |who: Who| {
            let group = Some(self.topology.group(who.letter()));
            (who.name().to_owned(), group, (self.worker.clone(), who, plan::actions_of(script, who)))
        };
        let workers = self.plan.who_works().into_iter().map(member).collect();
        let work = async |sys: S, (worker, who, actions): (Worker, Who, Vec<Action>), turn| {
            worker.work(&sys, who, &actions, turn).await
        };
        Ok(Crew::hire(sys, workers, work).await?)
    }

    async fn end_phase<S: System>(
        &self,
        sys: &S,
        name: &str,
        before: &Phase,
        outcome: &mut Outcome,
    ) -> Result<Phase, WorkloadError> {
        let now = Phase { begin: sys.now(), reclaims: self.topology.limit_reclaims(sys).await? };
        let stem = if name == "stream_done" { "stream" } else { name };
        outcome.metric(&format!("{stem}_seconds"), now.begin.saturating_sub(before.begin).as_secs_f64());
        if let (Some(now), Some(before)) = (now.reclaims, before.reclaims) {
            outcome.metric(&format!("{name}_limit_reclaims"), now.saturating_sub(before) as f64);
        }
        Ok(now)
    }

    /// Asks P, or the node, for room. A kernel that could not free as much says `EAGAIN`, which is a result.
    async fn reclaim<S: System>(
        &self,
        sys: &S,
        bytes: Bytes,
        outcome: &mut Outcome,
    ) -> Result<(), WorkloadError> {
        /// `EAGAIN` of Linux.
        const TRY_AGAIN: i32 = 11;
        let parent = self.topology.parent().expect("it was checked");
        let missed = outcome.metrics.entry("reclaims_that_fell_short".to_owned()).or_insert(0.0);
        let swappiness = self.asked.swappiness.iter().map(|value| format!(" swappiness={value}"));
        let value = swappiness.fold(bytes.get().to_string(), |text, option| text + &option);
        let written = if self.asked.of_node {
            sys.node_write(0, "reclaim", &value).await
        } else {
            sys.cgroup_write(parent, "memory.reclaim", &value).await
        };
        match written {
            Err(SystemError { errno: Errno::Other(TRY_AGAIN), .. }) => *missed += 1.0,
            other => other?,
        }
        Ok(())
    }

    async fn flush<S: System>(&self, sys: &S) -> Result<(), WorkloadError> {
        if let Some(parent) = self.topology.parent() {
            sys.cgroup_read(parent, "memory.stat").await?;
        }
        if self.topology != Topology::Same {
            for letter in Who::LETTERS {
                sys.cgroup_read(&self.topology.group(letter), "memory.stat").await?;
            }
        }
        Ok(())
    }
}

/// What was there when a phase began.
struct Phase {
    begin: Nanos,
    reclaims: Option<u64>,
}

/// Records the pages that the worker `name` found in memory each time it counted them, among all that it has `seen`.
fn record_counts(script: &[Step], name: &str, seen: &[f64], outcome: &mut Outcome) {
    let who = Who::IN_ORDER_OF_GROUPS.into_iter().find(|who| who.name() == name).expect("it was hired");
    let actions = plan::actions_of(script, who);
    let counts = actions.iter().zip(seen).filter(|(action, _)| **action == Action::Count);
    let resident: Vec<f64> = counts.map(|(_, pages)| *pages).collect();
    if let (Some(first), Some(name)) = (resident.first(), who.memory()) {
        outcome.metric(&format!("{name}_pages_resident"), *first);
        outcome.samples.insert(format!("{name}_pages_resident_each_time"), resident.clone());
    }
}

/// What the workers have, and how they use it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Worker {
    hot: u64,
    cold: u64,
    file: Round,
    random: bool,
    huge: bool,
    compressed: u16,
}

impl Worker {
    /// A worker's whole life: its actions, each when it is let; returns what each of them says, in pages.
    async fn work<S: System>(
        &self,
        sys: &S,
        who: Who,
        actions: &[Action],
        turn: Turn,
    ) -> Result<Vec<f64>, WorkloadError> {
        let pages = if who == Who::Hot { self.hot } else { self.cold };
        let mut seen = Vec::with_capacity(actions.len());
        let mut memory: Option<S::Mapping> = None;
        let mut file: Option<S::File> = None;
        for action in actions {
            turn.wait(sys).await?;
            let said = match (action, &memory) {
                (Action::Read { offset, len }, _) => {
                    self.file.read(sys, &mut file, *offset, *len).await? / PAGE_SIZE
                }
                (Action::Map, _) => {
                    memory = Some(self.map(sys, pages).await?);
                    pages
                }
                (_, None) => unreachable!("memory is mapped first"),
                (Action::Write, Some(memory)) => self.write(sys, who, memory, pages).await?,
                (Action::ReadBack, Some(memory)) => {
                    sys.touch_reading(memory, 0, pages).await?;
                    pages
                }
                (Action::Count, Some(memory)) => sys.mapping_resident(memory, 0, pages).await?,
                (Action::Advise(advice), Some(memory)) => {
                    sys.advise(memory, *advice).await?;
                    0
                }
            };
            seen.push(said as f64);
            turn.end(sys).await?;
        }
        // Its memory stays until the others are done.
        turn.wait(sys).await?;
        Ok(seen)
    }

    async fn map<S: System>(&self, sys: &S, pages: u64) -> Result<S::Mapping, WorkloadError> {
        let memory = sys.map_anonymous(Bytes(pages * PAGE_SIZE)).await?;
        if self.huge {
            sys.advise(&memory, Advice::HugePage).await?;
        } else {
            // A kernel without huge pages knows no such advice, and needs none.
            match sys.advise(&memory, Advice::NoHugePage).await {
                Ok(()) => {}
                Err(error) if matches!(error.errno, Errno::Inval | Errno::NotSup) => {}
                Err(error) => return Err(error.into()),
            }
        }
        sys.write_content(&memory, 0, pages, self.compressed).await?;
        Ok(memory)
    }

    async fn write<S: System>(
        &self,
        sys: &S,
        who: Who,
        memory: &S::Mapping,
        pages: u64,
    ) -> Result<u64, WorkloadError> {
        if self.random && who == Who::Hot {
            for page in shuffled(sys, &format!("{NAME}/{}/order", who.name()), pages) {
                sys.touch(memory, page, 1).await?;
            }
        } else {
            sys.touch(memory, 0, pages).await?;
        }
        Ok(pages)
    }
}
