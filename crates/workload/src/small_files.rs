//! `small-files`: a steady stream of small files, more than memory holds. How do page cache and
//! inode cache share the memory, and who reclaims them?
//!
//! `config-io-fsmark-small-file-stream` of mmtests, as in the patch "mm, vmscan: do not special-case
//! slab reclaim when watermarks are boosted" (M. Gorman, 8 Aug 2019, on 5.3-rc3).
//!
//! Theory of operation, with M the memory of the machine:
//! 1. each loop forks `processes` anew, which together create M * 2 * 16 / 4096 / 60 files of 4 KiB:
//!    data of 8/15 of M. Each has a directory of its own and works in one subdirectory for 180 s, then in
//!    the next one; the first is that of the time of day, modulo `subdirectories`;
//! 2. a file is a `mkdir` of the subdirectory, which mostly fails, a creation, one write and a close;
//! 3. a process keeps a table of the names that it made, 2128 bytes for each: anonymous memory,
//!    up to 27.7 % of M for all, that goes when the loop ends. A process's rate is its files by its time,
//!    and the sample of a loop the sum of all rates. The last loop ends the phase `created`;
//! 4. one task deletes all files, phase `deleted`, as the time of the whole test includes that.
//!
//! Left out: what `fs_mark` prints. Neighbours: [`crate::system`].

use serde::{Deserialize, Serialize};
use units::{Bytes, Nanos, PAGE_SIZE};

use crate::chance::{self, Started};
use crate::footprint::{Footprint, MachineSize};
use crate::metric::{Better, MetricSpec};
use crate::outcome::{Outcome, WorkloadError};
use crate::params::{ParamError, ParamKind, ParamSpec, Params};
use crate::system::{Errno, OpenMode, System, SystemError, TaskSpec};

/// The name in the catalog.
pub const NAME: &str = "small-files";
/// One line for lists.
pub const HELP: &str = "a steady stream of small files, more than memory holds, and their deletion";

/// Its phases, in order.
pub const PHASES: &[&str] = &["created", "deleted"];

/// What its draws decide, and what those of the kernel below it do.
pub const VARIES: &[&str] = &[
    "the time of day, which names the first subdirectory",
    "when each process begins, up to 2 ms after it was forked: their order",
    "simulated: the phase of the kernel's periodic workers (vmstat, memory.stat, the log of XFS)",
];

/// Its parameters.
pub const PARAMS: &[ParamSpec] = &[
    ParamSpec {
        name: "processes",
        kind: ParamKind::Count { min: 1, max: 256 },
        default: Some("16"),
        help: "processes that create files at the same time, each in a directory of its own",
    },
    ParamSpec {
        name: "subdirectories",
        kind: ParamKind::Count { min: 1, max: 1_000_000 },
        default: Some("10000"),
        help: "subdirectories of each directory, which are taken in turn",
    },
    ParamSpec {
        name: "per_directory",
        kind: ParamKind::Count { min: 1, max: 1_000_000_000 },
        default: None,
        help: "files of a process before its next subdirectory; without it 180 s",
    },
    ParamSpec {
        name: "file_size",
        kind: ParamKind::Size { min: Bytes(1), max: Bytes(1 << 30) },
        default: Some("4k"),
        help: "size of each file, which is written by one call",
    },
    ParamSpec {
        name: "files",
        kind: ParamKind::Count { min: 1, max: 1 << 40 },
        default: None,
        help: "files of a loop, all processes; without it 8/15 of memory in pages",
    },
    ParamSpec {
        name: "loops",
        kind: ParamKind::Count { min: 1, max: 100_000 },
        default: None,
        help: "loops, one sample each; without it what fits into 7.7 times the memory, at most 60",
    },
    ParamSpec {
        name: "names",
        kind: ParamKind::Choice(&["on", "off"]),
        default: Some("on"),
        help: "on: each process keeps the names of its files, 2128 bytes each",
    },
    ParamSpec {
        name: "delete",
        kind: ParamKind::Choice(&["on", "off"]),
        default: Some("on"),
        help: "on: all files are deleted in the end",
    },
    ParamSpec {
        name: "filesystem",
        kind: ParamKind::Choice(&["xfs", "ext4"]),
        default: Some("xfs"),
        help: "filesystem that the machine puts the files on",
    },
];

/// The metrics that head its reports.
pub const METRICS: &[MetricSpec] = &[MetricSpec {
    name: "files_per_sec",
    unit: "files/s",
    better: Better::More,
    of: None,
    resolution: 0.0,
    help: "files of a loop by the time of its processes, summed over these",
}];

/// Loops that `fs_mark` is asked for.
const LOOPS_ASKED: u64 = 60;
/// A process stays in a subdirectory for so long, when it goes by time.
const STAY: Nanos = Nanos::from_secs(180);
/// An entry of the table of names.
const NAME_BYTES: u64 = 2128;

/// The program with all parameters resolved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SmallFiles {
    processes: u64,
    subdirectories: u64,
    per_directory: Option<u64>,
    file_size: Bytes,
    files: Option<u64>,
    loops: Option<u64>,
    names: bool,
    delete: bool,
}

/// What the machine's size makes of the parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Sizes {
    files_per_process: u64,
    loops: u64,
}

impl SmallFiles {
    /// The program that `params`, made from [`PARAMS`], describe.
    ///
    /// # Errors
    /// None yet; the signature is that of all workloads.
    pub fn from_params(params: &Params) -> Result<Self, ParamError> {
        Ok(Self {
            processes: params.count("processes").expect("processes has a default"),
            subdirectories: params.count("subdirectories").expect("subdirectories has a default"),
            per_directory: params.count("per_directory"),
            file_size: params.size("file_size").expect("file_size has a default"),
            files: params.count("files"),
            loops: params.count("loops"),
            names: params.choice("names") == Some("on"),
            delete: params.choice("delete") == Some("on"),
        })
    }

    fn sizes(&self, machine: MachineSize) -> Sizes {
        let memory = machine.memory.get();
        let files = self.files.unwrap_or(memory * 2 * 16 / 60);
        let files_per_process = (files / self.processes).max(1);
        let loop_bytes = (files_per_process * self.processes).saturating_mul(self.file_size.get());
        // 70 % of a disk of 11 M, as the source's was.
        let fit = (memory * PAGE_SIZE * 77 / 10) / loop_bytes;
        Sizes { files_per_process, loops: self.loops.unwrap_or(fit.clamp(1, LOOPS_ASKED)) }
    }

    /// What it makes on `machine`.
    pub(crate) fn footprint(&self, machine: MachineSize) -> Footprint {
        let Sizes { files_per_process, loops } = self.sizes(machine);
        let per_loop = files_per_process.saturating_mul(self.processes);
        let file_count = per_loop.saturating_mul(loops);
        Footprint {
            files: Bytes(file_count.saturating_mul(self.file_size.get())),
            file_count,
            anonymous: Bytes(if self.names { per_loop.saturating_mul(NAME_BYTES) } else { 0 }),
            tasks: self.processes,
            disks: 1,
        }
    }

    /// Runs it. The metrics are those of the module's theory of operation.
    ///
    /// # Errors
    /// The first failing system call; `Killed` when the OOM killer took a task.
    pub async fn run<S: System>(&self, sys: S) -> Result<Outcome, WorkloadError> {
        let sizes = self.sizes(MachineSize::of(&sys));
        let time_of_day = sys.seed().stream(&format!("{NAME}/time-of-day")).below(86_400);
        for process in 0..self.processes {
            sys.make_dir(&directory(process)).await?;
        }
        let mut rates = Vec::new();
        let mut made = Vec::new();
        for number in 0..sizes.loops {
            let stints = self.create(&sys, sizes, number, time_of_day).await?;
            rates.push(stints.iter().map(Stint::rate).sum());
            made.extend(stints);
        }
        sys.mark("created");
        if self.delete {
            for stint in &made {
                stint.delete(&sys).await?;
            }
            sys.mark("deleted");
        }
        let mut outcome = Outcome::default();
        outcome.metric("files_created", (sizes.loops * sizes.files_per_process * self.processes) as f64);
        outcome.samples.insert("files_per_sec".to_owned(), rates);
        Ok(outcome)
    }

    /// One loop.
    async fn create<S: System>(
        &self,
        sys: &S,
        sizes: Sizes,
        number: u64,
        time_of_day: u64,
    ) -> Result<Vec<Stint>, WorkloadError> {
        let mut processes = Vec::new();
        let seconds = time_of_day + sys.now().get() / 1_000_000_000;
        for process in 0..self.processes {
            let creator = Creator {
                process,
                number,
                files: sizes.files_per_process,
                size: self.file_size,
                first: seconds % self.subdirectories,
                subdirectories: self.subdirectories,
                per_directory: self.per_directory,
                names: self.names,
            };
            let name = format!("creator{process}");
            let stream = format!("loop{number}/{name}");
            let program = move |sys: S| async move {
                chance::begin(&sys, NAME, &stream, Started::WithOthers).await;
                creator.create(&sys).await
            };
            processes.push(sys.spawn(TaskSpec::named(name), program).await?);
        }
        let mut stints = Vec::new();
        for process in processes {
            stints.push(sys.join(process).await??);
        }
        Ok(stints)
    }
}

fn directory(process: u64) -> String {
    format!("d{process:02}")
}

fn subdirectory(process: u64, number: u64) -> String {
    format!("{}/{number:04}", directory(process))
}

fn file_path(subdirectory: &str, number: u64, file: u64) -> String {
    format!("{subdirectory}/{number:03}{file:09}")
}

/// One process of one loop.
#[derive(Debug, Clone, Copy)]
struct Creator {
    process: u64,
    number: u64,
    files: u64,
    size: Bytes,
    first: u64,
    subdirectories: u64,
    per_directory: Option<u64>,
    names: bool,
}

impl Creator {
    async fn create<S: System>(self, sys: &S) -> Result<Stint, SystemError> {
        let table = Bytes(self.files * NAME_BYTES);
        let table = if self.names { Some(sys.map_anonymous(table).await?) } else { None };
        let begin = sys.now();
        let mut stays: Vec<(u64, u64)> = Vec::new();
        let mut current = (u64::MAX, String::new());
        for file in 0..self.files {
            let turn = match self.per_directory {
                Some(files) => file / files,
                None => sys.now().saturating_sub(begin).get() / STAY.get(),
            };
            let number = (self.first + turn) % self.subdirectories;
            if current.0 != number {
                current = (number, subdirectory(self.process, number));
                stays.push((number, 0));
            }
            stays.last_mut().expect("just pushed").1 += 1;
            match sys.make_dir(&current.1).await {
                Err(error) if error.errno != Errno::Exist => return Err(error),
                _ => {}
            }
            let handle = sys.open(&file_path(&current.1, self.number, file), OpenMode::Create).await?;
            sys.write(&handle, 0, self.size.get()).await?;
            drop(handle);
            if let Some(table) = &table {
                let page = |file: u64| (file * NAME_BYTES).div_ceil(PAGE_SIZE);
                let (first, after) = (page(file), page(file + 1));
                if after > first {
                    sys.touch(table, first, after - first).await?;
                }
            }
        }
        let nanos = sys.now().saturating_sub(begin).get();
        Ok(Stint { process: self.process, number: self.number, files: self.files, nanos, stays })
    }
}

/// What a process did in a loop: how long it took, and how many files lie in which subdirectory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Stint {
    process: u64,
    number: u64,
    files: u64,
    nanos: u64,
    stays: Vec<(u64, u64)>,
}

impl Stint {
    fn rate(&self) -> f64 {
        self.files as f64 * 1e9 / self.nanos as f64
    }

    async fn delete<S: System>(&self, sys: &S) -> Result<(), SystemError> {
        let mut next = 0;
        for &(number, files) in &self.stays {
            let subdirectory = subdirectory(self.process, number);
            for file in next..next + files {
                sys.unlink(&file_path(&subdirectory, self.number, file)).await?;
            }
            next += files;
        }
        Ok(())
    }
}
