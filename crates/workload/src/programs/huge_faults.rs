//! `huge-faults`: huge page faults beside file I/O. How often does mixing of mobility types break
//! pageblocks, and how many faults still get a huge page?
//!
//! The `thpfioscale` test of mmtests, as in the series "fragmentation avoidance improvements"
//! (M. Gorman, 7 Nov 2018, on 4.20-rc1): on one socket 1,023,463 fragmenting events before, 1,351
//! after all four steps.
//!
//! Theory of operation, with R the memory of the machine and R_node that of one node:
//! 1. four writers create 1.5 R of small files, by 4 KiB writes in sequence without preallocation,
//!    so that inodes and page cache are allocated in turn; phase `created` ends; sync, `synced`;
//! 2. four readers look at the sizes of all their files, as `fio` does before it starts, which brings
//!    back every inode; then they read the files at random, 16 blocks of one and then the next,
//!    until the end. Looking and reading take as long as creation took, or `warm` percent of that, then phase
//!    `warm` ends;
//! 3. the faulting threads map 3/4 of R_node together and go through the first half of that, one
//!    2 MiB region after the other: touch its first byte, look whether its 64th page is there too
//!    (then the fault was a *huge* one, else *base*), fill it. One sample is the time of all
//!    three, so a base sample covers 512 faults; phase `faulted` ends;
//! 4. the readers are stopped by a file that they look for, since tasks share nothing else.
//!
//! With `order=rounds` a writer has all its files open and writes a block of each in turn. That is what the job of
//! the reference suite asks `fio` for: it names neither `openfiles` nor `file_service_type`, so that all files are
//! open (its script raises `ulimit -n` to their number) and are served round robin.
//!
//! Left out: what `fio` itself keeps of its files, and that its writers look for them in vain.
//!
//! Event counts are those of the whole run, as the reference suite counts them: its tracer runs
//! from before the first file to the end. The phases tell the parts. A mean is left out when there
//! is no sample of its kind. Neighbours: [`crate::system`].

use serde::{Deserialize, Serialize};
use units::{Bytes, Nanos, PAGE_SIZE, Stream};

use crate::parts::chance;
use crate::parts::counters::Counters;
use crate::parts::footprint::{Footprint, MachineSize};
use crate::system::errno::{Errno, SystemError};
use crate::system::outcome::{Outcome, WorkloadError};
use crate::system::{Advice, OpenMode, System, TaskSpec};
use language::metric::{Better, MetricSpec, TIME_RESOLUTION_SECONDS, TIME_RESOLUTION_US, metric};
use language::params::{ParamError, ParamSpec, Params};

/// The name in the catalog.
pub const NAME: &str = "huge-faults";
/// One line for lists.
pub const HELP: &str = "huge page faults beside the creation and random reads of small files";

/// Its phases, in order.
pub const PHASES: &[&str] = &["created", "synced", "warm", "faulted"];

/// What its draws decide, and what those of the kernel below it do.
pub const VARIES: &[&str] = &[
    "when each writer, reader and faulting thread begins, up to 2 ms after it was forked: their order",
    "which files and blocks the readers read",
    "simulated: the phase of the kernel's periodic workers (vmstat, memory.stat, the log of XFS)",
];

/// Its parameters.
pub const PARAMS: &[ParamSpec] = &[
    ParamSpec::choice(
        "advice",
        &["default", "madvise"],
        "madvise: ask for huge pages on the mapping; default: take what the kernel gives",
    ),
    ParamSpec::count(
        "threads",
        1..=4096,
        "faulting threads; without it a quarter of a node's CPUs beyond the readers'",
    ),
    ParamSpec::count(
        "nodes",
        1..=32,
        "memory nodes: the threads map 3/4 of one; without it those of the machine",
    ),
    ParamSpec::size("file_size", Bytes(PAGE_SIZE)..=Bytes(1 << 30), "size of each file").by_default("64k"),
    ParamSpec::count("scale", 1..=1000, "percent of the usual amount of files and mappings")
        .by_default("100"),
    ParamSpec::choice(
        "order",
        &["files", "rounds"],
        "writers finish a file before the next; rounds: open all, and write a block of each in turn",
    ),
    ParamSpec::count(
        "warm",
        1..=100_000,
        "percent of the time of creation that readers read before the faults",
    )
    .by_default("100"),
    ParamSpec::choice("filesystem", &["ext4", "xfs"], "filesystem that the machine puts the files on")
        .by_default("xfs"),
];

/// The metrics that head its reports.
pub const METRICS: &[MetricSpec] = &[
    metric("percentage_huge", "%", Better::More, "regions that got a huge page"),
    metric("extfrag_events", "events", Better::Less, "mobility types mixed"),
    metric("fault_base_us", "µs", Better::Less, "filling 2 MiB of small pages")
        .resolved_to(TIME_RESOLUTION_US),
    metric("fault_huge_us", "µs", Better::Less, "filling a huge page").resolved_to(TIME_RESOLUTION_US),
    metric("fragment_stall_seconds", "s", Better::Less, "stalled, all tasks together")
        .resolved_to(TIME_RESOLUTION_SECONDS),
];

/// Writers, and later readers.
const FILE_TASKS: u64 = 4;
/// Reads of one file before a reader turns to the next.
const READS_PER_FILE: usize = 16;
/// Files that a reader goes through before it looks for [`STOP_FILE`].
const FILES_PER_LOOK: u32 = 64;
const STOP_FILE: &str = "stop";
/// Pages of a huge page.
const REGION_PAGES: u64 = 512;
/// The page of a region that tells whether its first touch brought all of them.
const PROBED_PAGE: u64 = 64;

/// The program with all parameters resolved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HugeFaults {
    advice: Option<Advice>,
    threads: Option<u64>,
    nodes: Option<u64>,
    file_size: Bytes,
    /// All files are open at once, and get a block in turn.
    in_rounds: bool,
    scale_percent: u64,
    /// Of the time that creation took.
    warm_percent: u64,
}

/// What the machine's size makes of the parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Sizes {
    files_per_task: u64,
    threads: u64,
    /// Regions that each thread maps; it touches half of them.
    regions: u64,
}

impl HugeFaults {
    /// The program that `params`, made from [`PARAMS`], describe.
    ///
    /// # Errors
    /// None yet; the signature is that of all workloads.
    pub fn from_params(params: &Params) -> Result<Self, ParamError> {
        let madvise = params.choice("advice") == Some("madvise");
        Ok(Self {
            advice: madvise.then_some(Advice::HugePage),
            threads: params.count("threads"),
            nodes: params.count("nodes"),
            file_size: params.size("file_size").expect("file_size has a default"),
            in_rounds: params.choice("order") == Some("rounds"),
            scale_percent: params.count("scale").expect("scale has a default"),
            warm_percent: params.count("warm").expect("warm has a default"),
        })
    }

    fn sizes(&self, machine: MachineSize) -> Sizes {
        let scaled = machine.memory.get() * self.scale_percent / 100;
        let nodes = self.nodes.unwrap_or_else(|| u64::from(machine.nodes));
        let cpus_per_node = u64::from(machine.cpus) / nodes;
        let threads = self.threads.unwrap_or(cpus_per_node.saturating_sub(FILE_TASKS) / 4).max(1);
        let files = (scaled * 3 / 2) * PAGE_SIZE / self.file_size.get();
        Sizes {
            files_per_task: (files / FILE_TASKS).max(1),
            threads,
            regions: (scaled / nodes * 3 / 4 / threads / REGION_PAGES).max(2),
        }
    }

    /// What it makes on `machine`: the files of all writers, and the half of the mappings that the
    /// threads go through.
    pub(crate) fn footprint(&self, machine: MachineSize) -> Footprint {
        let Sizes { files_per_task, threads, regions } = self.sizes(machine);
        let file_count = files_per_task * FILE_TASKS;
        Footprint {
            files: Bytes(file_count.saturating_mul(self.file_size.get())),
            file_count: file_count + 1, // STOP_FILE
            anonymous: Bytes(threads * (regions / 2) * REGION_PAGES * PAGE_SIZE),
            tasks: FILE_TASKS + threads,
            disks: 1,
        }
    }

    /// Runs it. The metrics are those of the module's theory of operation.
    ///
    /// # Errors
    /// The first failing system call; `Killed` when the OOM killer took a task.
    pub async fn run<S: System>(&self, sys: S) -> Result<Outcome, WorkloadError> {
        let sizes = self.sizes(MachineSize::of(&sys));
        let before = Counters::read(&sys).await?;
        let begin = sys.now();
        self.create_files(&sys, sizes).await?;
        let creation = sys.now().saturating_sub(begin);
        sys.mark("created");
        sys.sync().await?;
        sys.mark("synced");

        let readers = self.start_readers(&sys, sizes).await?;
        sys.sleep(Nanos(creation.get() * self.warm_percent / 100)).await;
        sys.mark("warm");
        let faults = self.fault(&sys, sizes).await?;
        sys.mark("faulted");
        sys.open(STOP_FILE, OpenMode::Create).await?;
        for reader in readers {
            sys.join(reader).await??;
        }
        let after = Counters::read(&sys).await?;
        Ok(outcome(&faults, &before, &after))
    }

    async fn create_files<S: System>(&self, sys: &S, sizes: Sizes) -> Result<(), WorkloadError> {
        let mut writers = Vec::new();
        for task in 0..FILE_TASKS {
            let (files, size, in_rounds) = (sizes.files_per_task, self.file_size, self.in_rounds);
            let name = format!("writer{task}");
            let spec = TaskSpec::named(name.clone());
            let program = move |sys: S| async move {
                chance::begin(&sys, NAME, &name, chance::WITH_OTHERS).await;
                if in_rounds {
                    return write_in_rounds(&sys, task, files, size).await;
                }
                write_files(&sys, task, files, size).await
            };
            writers.push(sys.spawn(spec, program).await?);
        }
        for writer in writers {
            sys.join(writer).await??;
        }
        Ok(())
    }

    async fn start_readers<S: System>(
        &self,
        sys: &S,
        sizes: Sizes,
    ) -> Result<Vec<S::Task<Result<(), SystemError>>>, WorkloadError> {
        let mut readers = Vec::new();
        for task in 0..FILE_TASKS {
            let reader = Reader {
                task,
                files: sizes.files_per_task,
                blocks: (0..u32::try_from(self.file_size.get() / PAGE_SIZE).expect("at most 1 GiB"))
                    .collect(),
                stream: sys.seed().stream(&format!("{NAME}/reader{task}")),
            };
            let name = format!("reader{task}");
            let spec = TaskSpec::named(name.clone());
            let program = move |sys: S| async move {
                chance::begin(&sys, NAME, &name, chance::WITH_OTHERS).await;
                reader.read_until_stopped(&sys).await
            };
            readers.push(sys.spawn(spec, program).await?);
        }
        Ok(readers)
    }

    async fn fault<S: System>(&self, sys: &S, sizes: Sizes) -> Result<Vec<Fault>, WorkloadError> {
        let mut threads = Vec::new();
        for thread in 0..sizes.threads {
            let (advice, regions) = (self.advice, sizes.regions);
            let name = format!("faulter{thread}");
            let spec = TaskSpec::named(name.clone());
            let program = move |sys: S| async move {
                chance::begin(&sys, NAME, &name, chance::WITH_OTHERS).await;
                fault_regions(&sys, regions, advice).await
            };
            threads.push(sys.spawn(spec, program).await?);
        }
        let mut faults = Vec::new();
        for thread in threads {
            faults.extend(sys.join(thread).await??);
        }
        Ok(faults)
    }
}

fn directory(task: u64) -> String {
    format!("d{task}")
}

fn file_path(task: u64, file: u64) -> String {
    format!("d{task}/{file:07}")
}

async fn write_files<S: System>(sys: &S, task: u64, files: u64, size: Bytes) -> Result<(), SystemError> {
    sys.make_dir(&directory(task)).await?;
    for number in 0..files {
        let file = sys.open(&file_path(task, number), OpenMode::Create).await?;
        let mut offset = 0;
        while offset < size.get() {
            offset += sys.write(&file, offset, PAGE_SIZE.min(size.get() - offset)).await?;
        }
    }
    Ok(())
}

/// Opens all files and writes the first block of each, then the second of each, and so on; all are closed at the end.
async fn write_in_rounds<S: System>(sys: &S, task: u64, files: u64, size: Bytes) -> Result<(), SystemError> {
    sys.make_dir(&directory(task)).await?;
    let mut open = Vec::new();
    for offset in (0..size.get()).step_by(PAGE_SIZE as usize) {
        for number in 0..files {
            if offset == 0 {
                open.push(sys.open(&file_path(task, number), OpenMode::Create).await?);
            }
            let file = &open[usize::try_from(number).expect("an index")];
            sys.write(file, offset, PAGE_SIZE.min(size.get() - offset)).await?;
        }
    }
    Ok(())
}

/// Reads files of one task at random.
struct Reader {
    task: u64,
    files: u64,
    /// The blocks of a file, in an order that changes with every file.
    blocks: Vec<u32>,
    stream: Stream,
}

impl Reader {
    async fn read_until_stopped<S: System>(mut self, sys: &S) -> Result<(), SystemError> {
        for file in 0..self.files {
            sys.file_size(&file_path(self.task, file)).await?;
        }
        loop {
            match sys.open(STOP_FILE, OpenMode::Read).await {
                Ok(_) => return Ok(()),
                Err(error) if error.errno == Errno::NoEnt => {}
                Err(error) => return Err(error),
            }
            for _ in 0..FILES_PER_LOOK {
                self.read_one_file(sys).await?;
            }
        }
    }

    /// Reads distinct blocks, as a reader that keeps a map of what it has read does.
    async fn read_one_file<S: System>(&mut self, sys: &S) -> Result<(), SystemError> {
        let path = file_path(self.task, self.stream.below(self.files));
        let file = sys.open(&path, OpenMode::Read).await?;
        sys.advise_random(&file).await?;
        let len = self.blocks.len();
        for at in 0..READS_PER_FILE.min(len) {
            let left = usize::try_from(self.stream.below((len - at) as u64)).expect("an index");
            self.blocks.swap(at, at + left);
            sys.read(&file, u64::from(self.blocks[at]) * PAGE_SIZE, PAGE_SIZE).await?;
        }
        Ok(())
    }
}

/// One region: how long it took, and whether the first touch brought a huge page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Fault {
    nanos: u64,
    huge: bool,
}

async fn fault_regions<S: System>(
    sys: &S,
    regions: u64,
    advice: Option<Advice>,
) -> Result<Vec<Fault>, SystemError> {
    let mapping = sys.map_anonymous(Bytes(regions * REGION_PAGES * PAGE_SIZE)).await?;
    if let Some(advice) = advice {
        sys.advise(&mapping, advice).await?;
    }
    let mut faults = Vec::new();
    for region in 0..regions / 2 {
        let first = region * REGION_PAGES;
        let begin = sys.now();
        sys.touch(&mapping, first, 1).await?;
        let huge = sys.mapping_resident(&mapping, first + PROBED_PAGE, 1).await? > 0;
        sys.fill(&mapping, first, REGION_PAGES).await?;
        faults.push(Fault { nanos: sys.now().saturating_sub(begin).get(), huge });
    }
    Ok(faults)
}

fn outcome(faults: &[Fault], before: &Counters, after: &Counters) -> Outcome {
    let mut outcome = Outcome::default();
    for (metric, counter) in [
        ("extfrag_events", "extfrag_events"),
        ("extfrag_events_all", "extfrag_events_all"),
        ("thp_fault_alloc", "thp_fault_alloc"),
        ("thp_fault_fallback", "thp_fault_fallback"),
        ("fragment_stalls", "fragment_stall"),
    ] {
        if let Some(count) = after.since(before, counter) {
            outcome.metric(metric, count as f64);
        }
    }
    if let Some(usec) = after.since(before, "fragment_stall_usec") {
        outcome.metric("fragment_stall_seconds", usec as f64 / 1e6);
    }
    let huge = faults.iter().filter(|fault| fault.huge).count();
    outcome.metric("percentage_huge", 100.0 * huge as f64 / faults.len() as f64);
    for (name, is_huge) in [("fault_base_us", false), ("fault_huge_us", true)] {
        let of_kind = faults.iter().filter(|fault| fault.huge == is_huge);
        let samples: Vec<f64> = of_kind.map(|fault| fault.nanos as f64 / 1e3).collect();
        if !samples.is_empty() {
            outcome.metric(name, samples.iter().sum::<f64>() / samples.len() as f64);
            outcome.samples.insert(name.to_owned(), samples);
        }
    }
    outcome
}
