//! `simoop`: readers, writers, allocators and tree walkers on a machine whose memory is full. How often
//! does an allocation stall, and does anybody's latency change when it no longer does?
//!
//! The program by C. Mason that imitates the pressure of a Hadoop node on memory, as in the patch "xfs: make
//! inode reclaim almost non-blocking" (D. Chinner, on 5.7). The source prints its figures, not its command;
//! the program itself was not at hand. What follows is from `config-workload-simoop-short` of mmtests, or from
//! the source's figures, or assumed, which [`Simoop::remarks`] prints with each run.
//!
//! Theory of operation, with M the memory of the machine:
//! 1. data files of 2.4 M lie in 16 directories, small files beside them. The workers' working set is 0.6 M:
//!    each fills its part, which stays; burning tasks keep a fifth of the CPUs from the kernel's threads. Phase
//!    `laid_out`, and when the warm-up is over, `warm`;
//! 2. a worker does one work after the other: it maps and touches memory, with all others an eighth of M, and gives
//!    it back in the end (one sample of *allocation* latency), reads pieces of data files, drawn at random (*read*
//!    latency), writes a result of as many files (*write* latency), and deletes the result of some works ago: so
//!    inodes are made, become dirty, and go;
//! 3. walkers look at every file of every directory, as `du` does, pause, and begin again: lookups that keep
//!    dentries and inodes coming;
//! 4. every reporting interval the main task reads how often allocations stalled. When the time is over, each
//!    task ends after what it is at; phase `measured`.
//!
//! Left out: one address space for all. Tasks are processes, so nobody waits for the lock of somebody else's
//! mappings. Instead a worker pauses after each huge page's worth, so that an allocation takes as long as the
//! source's: else nearly all would read at any time, and nobody would ask for memory while the disk is busy, and with
//! it a kswapd that waits for an inode. The program's threads that read and write for one work are one task here,
//! which goes from one piece to the next.
//!
//! Neighbours: `simoop/tasks.rs` for what each task does, `simoop/rates.rs` for what becomes of it.

mod rates;
mod tasks;

use units::{Bytes, Nanos, PAGE_SIZE};

use crate::parts::chance;
use crate::parts::counters::Counters;
use crate::parts::footprint::{Footprint, MachineSize};
use crate::system::errno::SystemError;
use crate::system::outcome::{Outcome, WorkloadError};
use crate::system::{System, TaskSpec};
use language::metric::{Better, MetricSpec, TIME_RESOLUTION_US, metric};
use language::params::{ParamError, ParamSpec, Params};
use rates::Report;
use tasks::{Tree, Walker, Work, Worker};

/// The name in the catalog.
pub const NAME: &str = "simoop";
/// One line for lists.
pub const HELP: &str = "readers, writers, allocators and tree walkers that keep memory full";

/// Its phases, in order.
pub const PHASES: &[&str] = &["laid_out", "warm", "measured"];

/// What its draws decide, and what those of the kernel below it do.
pub const VARIES: &[&str] = &[
    "which pieces of which files each worker reads",
    "when each worker, walker and burning task begins, up to 2 ms after it was forked: their order",
    "simulated: the phase of the kernel's periodic workers (vmstat, memory.stat, the log of XFS)",
];

/// Its parameters.
pub const PARAMS: &[ParamSpec] = &[
    ParamSpec::count("threads", 1..=4096, "workers; without it five for each CPU"),
    ParamSpec::count("burners", 0..=4096, "tasks that keep a CPU busy; without it a fifth of the CPUs"),
    ParamSpec::count("walkers", 0..=4096, "tasks that look at every file, as du does").by_default("2"),
    ParamSpec::count("walk_pause", 1..=86_400, "seconds between two walks of a walker").by_default("60"),
    ParamSpec::count(
        "tree_files",
        0..=(1 << 30),
        "files that only walkers look at; without it one for each 160 KiB of memory",
    ),
    ParamSpec::count("directories", 1..=1000, "directories of the files").by_default("16"),
    ParamSpec::size(
        "working_set",
        Bytes(PAGE_SIZE)..=Bytes(1 << 40),
        "memory that the workers keep; without it 60 % of all",
    ),
    ParamSpec::size(
        "mapped",
        Bytes(PAGE_SIZE)..=Bytes(1 << 40),
        "memory that a work maps and touches; without it an eighth of all for all workers",
    ),
    ParamSpec::count(
        "alloc_wait",
        0..=3_600_000,
        "milliseconds that a worker waits in all while it touches what it mapped",
    )
    .by_default("2640"),
    ParamSpec::size("file_size", Bytes(PAGE_SIZE)..=Bytes(1 << 40), "size of a data file").by_default("80M"),
    ParamSpec::count("files", 1..=1_000_000, "data files; without it those of 2.4 times the memory"),
    ParamSpec::count("pieces", 1..=4096, "pieces that a work reads, and files that it writes")
        .by_default("8"),
    ParamSpec::size("read_size", Bytes(PAGE_SIZE)..=Bytes(1 << 40), "bytes of a piece that is read")
        .by_default("2M"),
    ParamSpec::size("write_size", Bytes(PAGE_SIZE)..=Bytes(1 << 40), "bytes of a file that is written")
        .by_default("1M"),
    ParamSpec::count("kept", 1..=100_000, "results of a worker that are there at a time").by_default("16"),
    ParamSpec::count("seconds", 1..=864_000, "run time, with the warm-up").by_default("480"),
    ParamSpec::count("warmup", 1..=864_000, "seconds that are not measured").by_default("180"),
    ParamSpec::count("interval", 1..=86_400, "seconds from one report to the next").by_default("60"),
    ParamSpec::choice("filesystem", &["xfs", "ext4"], "filesystem that the machine puts the files on"),
];

/// The metrics that head its reports.
pub const METRICS: &[MetricSpec] = &[
    metric("alloc_stall_rate", "/s", Better::Less, "direct reclaims begun (allocstall)"),
    metric("alloc_stall_rate_most", "/s", Better::Less, "the same in the interval that had most"),
    metric("work_rate", "/s", Better::More, "works done"),
    latency("read_latency_p50_us", "reading the pieces of a work, median"),
    latency("read_latency_p95_us", "the same, 95th percentile"),
    latency("read_latency_p99_us", "the same, 99th percentile"),
    latency("write_latency_p50_us", "writing the files of a work, median"),
    latency("write_latency_p95_us", "the same, 95th percentile"),
    latency("write_latency_p99_us", "the same, 99th percentile"),
    latency("alloc_latency_p50_us", "mapping and touching the memory of a work, median"),
    latency("alloc_latency_p95_us", "the same, 95th percentile"),
    latency("alloc_latency_p99_us", "the same, 99th percentile"),
];

const fn latency(name: &'static str, help: &'static str) -> MetricSpec {
    metric(name, "µs", Better::Less, help).resolved_to(TIME_RESOLUTION_US)
}

/// The source's works a second, 13.44, and the medians of their parts, 3.31, 2.64 and 0.18 s, make 82 at a time on
/// 16 CPUs.
const WORKERS_BY_CPU: u64 = 5;

/// Bytes of memory for each file that only walkers look at, so that these would take 0.8 % of it.
const MEMORY_BY_TREE_FILE: u64 = 160 << 10;

/// The program with all parameters resolved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Simoop {
    threads: Option<u64>,
    burners: Option<u64>,
    walkers: u64,
    walk_pause: Nanos,
    directories: u64,
    working_set: Option<Bytes>,
    tree_files: Option<u64>,
    mapped: Option<Bytes>,
    alloc_wait: Nanos,
    file_size: Bytes,
    files: Option<u64>,
    pieces: u64,
    read_size: Bytes,
    write_size: Bytes,
    kept: u64,
    length: Nanos,
    warmup: Nanos,
    interval: Nanos,
}

/// What the machine's size makes of the parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Sizes {
    threads: u64,
    burners: u64,
    files: u64,
    tree_files: u64,
    /// Pages that each worker keeps.
    kept_pages: u64,
    /// Pages that a work touches.
    mapped_pages: u64,
}

impl Simoop {
    /// The program that `params`, made from [`PARAMS`], describe.
    ///
    /// # Errors
    /// [`ParamError::Conflict`]: pieces larger than a file, no interval between warm-up and end.
    pub fn from_params(params: &Params) -> Result<Self, ParamError> {
        let of = |name| params.count(name).expect("it has a default");
        let bytes = |name| params.size(name).expect("it has a default");
        let (file_size, read_size) = (bytes("file_size"), bytes("read_size"));
        if read_size > file_size {
            return Err(ParamError::Conflict {
                name: "read_size",
                problem: format!("{read_size} of files of {file_size}"),
                hint: format!("give `read_size={file_size}` at most, or larger files"),
            });
        }
        let (seconds, warmup, interval) = (of("seconds"), of("warmup"), of("interval"));
        if warmup + interval > seconds {
            return Err(ParamError::Conflict {
                name: "seconds",
                problem: format!("{seconds} s for a warm-up of {warmup} s and an interval of {interval} s"),
                hint: format!("give `seconds={}` at least, or shorter ones", warmup + interval),
            });
        }
        Ok(Self {
            threads: params.count("threads"),
            burners: params.count("burners"),
            walkers: of("walkers"),
            walk_pause: Nanos::from_secs(of("walk_pause")),
            directories: of("directories"),
            working_set: params.size("working_set"),
            tree_files: params.count("tree_files"),
            mapped: params.size("mapped"),
            alloc_wait: Nanos::from_millis(of("alloc_wait")),
            file_size,
            files: params.count("files"),
            pieces: of("pieces"),
            read_size,
            write_size: bytes("write_size"),
            kept: of("kept"),
            length: Nanos::from_secs(seconds),
            warmup: Nanos::from_secs(warmup),
            interval: Nanos::from_secs(interval),
        })
    }

    fn sizes(&self, machine: MachineSize) -> Sizes {
        let cpus = u64::from(machine.cpus);
        let memory = machine.memory.get() * PAGE_SIZE;
        let threads = self.threads.unwrap_or(cpus * WORKERS_BY_CPU);
        let share = self.working_set.map_or(memory / 10 * 6, Bytes::get) / threads / PAGE_SIZE;
        let mapped = self.mapped.map_or(memory / 8 / threads, Bytes::get) / PAGE_SIZE;
        Sizes {
            threads,
            burners: self.burners.unwrap_or(cpus / 5),
            files: self.files.unwrap_or((memory / 10 * 24 / self.file_size.get()).max(1)),
            tree_files: self.tree_files.unwrap_or(memory / MEMORY_BY_TREE_FILE),
            kept_pages: share.max(1),
            mapped_pages: mapped.max(1),
        }
    }

    /// What it makes on `machine`.
    pub(crate) fn footprint(&self, machine: MachineSize) -> Footprint {
        let Sizes { threads, burners, files, tree_files, kept_pages, mapped_pages } = self.sizes(machine);
        let results = threads * (self.kept + 1) * self.pieces;
        let data = files.saturating_mul(self.file_size.get());
        Footprint {
            files: Bytes(
                data.saturating_add(results.saturating_mul(self.write_size.get()))
                    .saturating_add(tree_files * tasks::TREE_FILE_SIZE.get()),
            ),
            file_count: files + results + tree_files,
            anonymous: Bytes(threads * (kept_pages + mapped_pages) * PAGE_SIZE),
            tasks: threads + burners + self.walkers,
            disks: 1,
        }
    }

    /// What is to be said of a run on `machine` with its results: its sizes, and what of them is assumed.
    pub(crate) fn remarks(&self, machine: MachineSize) -> Vec<String> {
        let Sizes { threads, burners, files, tree_files, kept_pages, mapped_pages } = self.sizes(machine);
        let memory = (machine.memory.get() * PAGE_SIZE) as f64;
        let percent = |bytes: u64| 100.0 * bytes as f64 / memory;
        let kept = percent(threads * kept_pages * PAGE_SIZE);
        vec![
            format!(
                "{threads} workers keep {kept:.0} % of memory, map {} for a work, and read from {files} files of {}, {:.0} % of memory; \
                 {burners} burning tasks, {} walkers of {tree_files} more files",
                Bytes(mapped_pages * PAGE_SIZE),
                self.file_size,
                percent(files.saturating_mul(self.file_size.get())),
                self.walkers,
            ),
            format!(
                "assumed, because the source gives no command: as mmtests runs it, but as many workers as the source's \
                 rate and latencies make, {} ms of waiting in each allocation, as the source's took, {} results kept by \
                 a worker, files that only walkers see, walks {} s apart, a warm-up of {} s; pieces of a work are \
                 read and written one after the other",
                self.alloc_wait.get() / 1_000_000,
                self.kept,
                self.walk_pause.get() / 1_000_000_000,
                self.warmup.get() / 1_000_000_000,
            ),
        ]
    }

    /// Runs it. The metrics are those of the module's theory of operation.
    ///
    /// # Errors
    /// The first failing system call; `Killed` when the OOM killer took a task.
    pub async fn run<S: System>(&self, sys: S) -> Result<Outcome, WorkloadError> {
        let sizes = self.sizes(MachineSize::of(&sys));
        let tree = self.lay_out(&sys, sizes).await?;
        sys.mark("laid_out");
        let begin = sys.now();
        let end = begin + self.length;
        let workers = self.start_workers(&sys, sizes, tree, end).await?;
        let others = self.start_others(&sys, sizes, tree, end).await?;
        let reports = self.report(&sys, begin).await?;
        let mut works: Vec<Work> = Vec::new();
        for worker in workers {
            works.extend(sys.join(worker).await??);
        }
        for other in others {
            sys.join(other).await??;
        }
        Ok(rates::outcome(&works, &reports))
    }

    async fn lay_out<S: System>(&self, sys: &S, sizes: Sizes) -> Result<Tree, WorkloadError> {
        let Sizes { files, tree_files, .. } = sizes;
        let tree = Tree { directories: self.directories, files, file_size: self.file_size };
        for number in 0..self.directories {
            sys.make_dir(&tasks::directory(number)).await?;
        }
        chance::place_files(sys, NAME).await?;
        let data = (0..files).map(|number| (tree.data(number), self.file_size));
        let small = (0..tree_files).map(|number| (tree.small(number), tasks::TREE_FILE_SIZE));
        sys.lay_out_files(&data.chain(small).collect::<Vec<_>>()).await?;
        Ok(tree)
    }

    async fn start_workers<S: System>(
        &self,
        sys: &S,
        sizes: Sizes,
        tree: Tree,
        end: Nanos,
    ) -> Result<Vec<S::Task<Result<Vec<Work>, SystemError>>>, WorkloadError> {
        let mut workers = Vec::new();
        for number in 0..sizes.threads {
            let name = format!("worker{number:02}");
            let worker = Worker {
                number,
                tree,
                kept_pages: sizes.kept_pages,
                mapped_pages: sizes.mapped_pages,
                alloc_wait: self.alloc_wait,
                pieces: self.pieces,
                read_size: self.read_size,
                write_size: self.write_size,
                kept: self.kept,
                end,
            };
            let spec = TaskSpec::named(name.clone());
            let program = move |sys: S| async move {
                chance::begin(&sys, NAME, &name, chance::WITH_OTHERS).await;
                let stream = sys.seed().stream(&format!("{NAME}/{name}"));
                worker.work(&sys, stream).await
            };
            workers.push(sys.spawn(spec, program).await?);
        }
        Ok(workers)
    }

    async fn start_others<S: System>(
        &self,
        sys: &S,
        sizes: Sizes,
        tree: Tree,
        end: Nanos,
    ) -> Result<Vec<S::Task<Result<(), SystemError>>>, WorkloadError> {
        let mut others = Vec::new();
        for number in 0..self.walkers {
            let name = format!("walker{number}");
            let walker = Walker { tree, pause: self.walk_pause, end };
            let spec = TaskSpec::named(name.clone());
            let program = move |sys: S| async move {
                chance::begin(&sys, NAME, &name, chance::WITH_OTHERS).await;
                walker.walk(&sys).await
            };
            others.push(sys.spawn(spec, program).await?);
        }
        for number in 0..sizes.burners {
            let name = format!("burner{number}");
            let spec = TaskSpec::named(name.clone());
            let program = move |sys: S| async move {
                chance::begin(&sys, NAME, &name, chance::WITH_OTHERS).await;
                tasks::burn(&sys, end).await
            };
            others.push(sys.spawn(spec, program).await?);
        }
        Ok(others)
    }

    /// Waits for the ends of warm-up and intervals, and reads the stalls at each.
    async fn report<S: System>(&self, sys: &S, begin: Nanos) -> Result<Vec<Report>, WorkloadError> {
        let measured = self.length.saturating_sub(self.warmup);
        let intervals = measured.get() / self.interval.get();
        let mut before = None;
        let mut reports = Vec::new();
        for number in 0..=intervals {
            let since = match number {
                // What does not make another interval is part of the last one.
                last if last == intervals => self.length,
                number => self.warmup + Nanos(self.interval.get() * number),
            };
            sys.sleep((begin + since).saturating_sub(sys.now())).await;
            let now = Counters::read(sys).await?;
            let first = before.get_or_insert_with(|| now.clone());
            let stalls = now.sum_since(first, |name| name.starts_with("allocstall"));
            reports.push(Report { at: sys.now(), begin, stalls });
            sys.mark(if number == 0 {
                "warm"
            } else if number == intervals {
                "measured"
            } else {
                continue;
            });
        }
        Ok(reports)
    }
}
