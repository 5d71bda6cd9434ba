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
//! 4. one task deletes everything, phase `deleted`, as the time of the whole test includes that.
//!
//! There are as many loops as fit into 70 % of a disk of 11 M, but at most 60: 14, as many as the source's
//! figures are of. All grows with M, and the source's M is 16 GiB; what a run on less memory cannot scale
//! are the kernel's own periods. `scale=full` asks for the source's memory, for which whoever makes the
//! machine has to look.
//!
//! Left out: `fs_mark`'s names of 40 bytes (a name of more than 31 takes an object of slab of its own), and
//! what it prints. Neighbours: [`crate::system`].

use units::{Bytes, Nanos, PAGE_SIZE};

use crate::parts::buffer;
use crate::parts::chance;
use crate::parts::creators::Place;
use crate::parts::footprint::{Footprint, MachineSize};
use crate::system::errno::{Errno, SystemError};
use crate::system::outcome::{Outcome, WorkloadError};
use crate::system::{CpuTime, System, TaskSpec};
use language::metric::{Better, MetricSpec, TIME_RESOLUTION_SECONDS, metric};
use language::params::{ParamError, ParamSpec, Params};

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
    ParamSpec::count(
        "processes",
        1..=256,
        "processes that create files at the same time, each in a directory of its own",
    )
    .by_default("16"),
    ParamSpec::count(
        "subdirectories",
        1..=1_000_000,
        "subdirectories of each directory, which are taken in turn",
    )
    .by_default("10000"),
    ParamSpec::count(
        "per_directory",
        1..=1_000_000_000,
        "files of a process before its next subdirectory; without it 180 s",
    ),
    ParamSpec::size(
        "file_size",
        Bytes(1)..=Bytes(1 << 30),
        "size of each file, which is written by one call",
    )
    .by_default("4k"),
    ParamSpec::count(
        "files",
        1..=(1 << 40),
        "files of a loop, all processes; without it 8/15 of memory in pages",
    ),
    ParamSpec::count(
        "loops",
        1..=100_000,
        "loops, one sample each; without it those of 7.7 times the memory, 60 at most: 14",
    ),
    ParamSpec::choice(
        "names",
        &["on", "off"],
        "on: each process keeps the names of its files, 2128 bytes each",
    ),
    ParamSpec::choice("delete", &["on", "off"], "on: all files are deleted in the end"),
    ParamSpec::choice("filesystem", &["xfs", "ext4"], "filesystem that the machine puts the files on"),
    ParamSpec::choice(
        "scale",
        &["default", FULL],
        "full: on as much memory as the source's machine had, 16 GiB",
    ),
];

/// The value of `scale` that asks for [`SOURCE_MEMORY`].
pub const FULL: &str = "full";
/// Memory of the source's machine.
pub const SOURCE_MEMORY: Bytes = Bytes(16 << 30);

/// The metrics that head its reports.
pub const METRICS: &[MetricSpec] = &[
    metric("files_per_sec", "files/s", Better::More, "files of a loop by the time of its processes, summed"),
    metric(
        "slab_share",
        "",
        Better::Neither,
        "slab of slab and file pages on LRU lists, in the steady state",
    ),
    metric(
        "slab_pagecache_ratio",
        "",
        Better::Neither,
        "slab by file pages on LRU lists, in the steady state",
    ),
    metric("dirty_percent", "%", Better::Neither, "dirty pages of all memory, in the steady state"),
    metric("slab_idle_percent", "%", Better::Less, "intervals of the steady state without slab scanning"),
    metric("kswapd_pages_scanned", "pages", Better::Less, "scanned by kswapd"),
    metric("kswapd_pages_reclaimed", "pages", Better::Neither, "reclaimed by kswapd"),
    metric("kswapd_efficiency_percent", "%", Better::More, "of those it scanned"),
    metric("kswapd_velocity", "pages/s", Better::Neither, "scanned by the whole time"),
    metric("direct_pages_scanned", "pages", Better::Less, "scanned by tasks that allocate"),
    metric("direct_pages_reclaimed", "pages", Better::Neither, "reclaimed by tasks that allocate"),
    metric("direct_efficiency_percent", "%", Better::More, "of those they scanned"),
    metric("direct_velocity", "pages/s", Better::Neither, "scanned by the whole time"),
    metric("page_reclaim_immediate", "pages", Better::Less, "found under writeback at the end of the list"),
    metric("slabs_scanned", "objects", Better::Neither, "looked at by shrinkers"),
    metric("kswapd_inode_steals", "pages", Better::Neither, "went with their inode, by kswapd"),
    metric("direct_inode_steals", "pages", Better::Neither, "went with their inode, by tasks that allocate"),
    metric("user_seconds", "s", Better::Less, "CPU time of all processes, deletion included")
        .resolved_to(TIME_RESOLUTION_SECONDS),
    metric("system_seconds", "s", Better::Less, "the same in the kernel")
        .resolved_to(TIME_RESOLUTION_SECONDS),
    metric("elapsed_seconds", "s", Better::Less, "from the first directory to the end of the deletion")
        .resolved_to(TIME_RESOLUTION_SECONDS),
];

/// Loops that `fs_mark` is asked for.
const LOOPS_ASKED: u64 = 60;
/// A process stays in a subdirectory for so long, when it goes by time.
const STAY: Nanos = Nanos::from_secs(180);
/// An entry of the table of names.
const NAME_BYTES: u64 = 2128;
/// Files that a process makes at most, where nobody says how many.
const FILES_OF_PROCESS_MAX: u64 = 1_000_000;
/// With fewer samples quartiles and spread say little.
const LOOPS_USEFUL: u64 = 8;

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
    /// [`ParamError::Conflict`]: fewer files than processes.
    pub fn from_params(params: &Params) -> Result<Self, ParamError> {
        let processes = params.count("processes").expect("processes has a default");
        if let Some(files) = params.count("files").filter(|&files| files < processes) {
            return Err(ParamError::Conflict {
                name: "files",
                problem: format!("{files} files for {processes} processes"),
                hint: format!("give `files={processes}` at least, or fewer `processes`"),
            });
        }
        Ok(Self {
            processes,
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
        let files_per_process = match self.files {
            Some(files) => files / self.processes,
            None => (memory * 2 * 16 / 60 / self.processes).min(FILES_OF_PROCESS_MAX),
        }
        .max(1);
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

    /// What is to be said of a run on `machine` with its results: what it makes, and what its size means.
    pub(crate) fn remarks(&self, machine: MachineSize) -> Vec<String> {
        let Sizes { files_per_process, loops } = self.sizes(machine);
        let Footprint { files, anonymous, .. } = self.footprint(machine);
        let memory = (machine.memory.get() * PAGE_SIZE) as f64;
        let percent = |bytes: u64| 100.0 * bytes as f64 / memory;
        let mut said = vec![format!(
            "{loops} loop{} of {} processes with {files_per_process} files of {} each: data of a loop {:.1} % of \
             memory, names {:.1} %; {:.2} GiB of data in all",
            if loops == 1 { "" } else { "s" },
            self.processes,
            self.file_size,
            percent(files.get() / loops),
            percent(anonymous.get()),
            files.get() as f64 / f64::from(1 << 30),
        )];
        let times = SOURCE_MEMORY.get() as f64 / memory;
        if self.files.is_none() && !(0.9..1.1).contains(&times) {
            said.push(format!(
                "the source's machine had 16 GiB, {times:.3} times this memory: a loop is as much shorter, but \
                 the kernel's own periods (flusher 5 s, expiry of dirty pages 30 s) are what they are; \
                 `--param scale=full` runs its size"
            ));
        }
        said.extend(self.few_samples(machine));
        said
    }

    /// Tells that there will be too few samples, and what to do.
    pub(crate) fn few_samples(&self, machine: MachineSize) -> Option<String> {
        let Sizes { loops, .. } = self.sizes(machine);
        let samples = if loops == 1 { "1 sample".to_owned() } else { format!("{loops} samples") };
        (loops < LOOPS_USEFUL).then(|| {
            format!(
                "{samples} of files_per_sec: too few for quartiles and a spread; the source has 14, \
                 `--param loops=14`"
            )
        })
    }

    /// Runs it. The metrics are those of the module's theory of operation.
    ///
    /// # Errors
    /// The first failing system call; `Killed` when the OOM killer took a task.
    pub async fn run<S: System>(&self, sys: S) -> Result<Outcome, WorkloadError> {
        let sizes = self.sizes(MachineSize::of(&sys));
        let begin = sys.now();
        let time_of_day = sys.seed().stream(&format!("{NAME}/time-of-day")).below(86_400);
        for process in 0..self.processes {
            sys.make_dir(&directory(process)).await?;
        }
        let mut rates = Vec::new();
        for number in 0..sizes.loops {
            rates.push(self.create(&sys, sizes, number, time_of_day).await?);
        }
        sys.mark("created");
        if self.delete {
            for process in 0..self.processes {
                delete(&sys, &directory(process)).await?;
            }
            sys.mark("deleted");
        }
        let mut outcome = Outcome::default();
        outcome.metric("elapsed_seconds", sys.now().saturating_sub(begin).as_secs_f64());
        match sys.cpu_time().await {
            Ok(CpuTime { user, system }) => {
                outcome.metric("user_seconds", user.as_secs_f64());
                outcome.metric("system_seconds", system.as_secs_f64());
            }
            Err(error) if error.errno == Errno::NotSup => {}
            Err(error) => return Err(error.into()),
        }
        outcome.metric("memory_pages", sys.memory_total().get() as f64);
        outcome.metric("files_created", (sizes.loops * sizes.files_per_process * self.processes) as f64);
        outcome.samples.insert("files_per_sec".to_owned(), rates);
        Ok(outcome)
    }

    /// One loop; returns its files per second.
    async fn create<S: System>(
        &self,
        sys: &S,
        sizes: Sizes,
        number: u64,
        time_of_day: u64,
    ) -> Result<f64, WorkloadError> {
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
                chance::begin(&sys, NAME, &stream, chance::WITH_OTHERS).await;
                creator.create(&sys).await
            };
            processes.push(sys.spawn(TaskSpec::named(name), program).await?);
        }
        let mut rate = 0.0;
        for process in processes {
            let took: Nanos = sys.join(process).await??;
            rate += sizes.files_per_process as f64 * 1e9 / took.get().max(1) as f64;
        }
        Ok(rate)
    }
}

fn directory(process: u64) -> String {
    format!("d{process:02}")
}

fn subdirectory(process: u64, number: u64) -> String {
    format!("{}/{number:04}", directory(process))
}

/// One process of one loop.
#[derive(Debug, Clone, Copy)]
struct Creator {
    process: u64,
    /// The loop's.
    number: u64,
    files: u64,
    size: Bytes,
    /// The subdirectory that it begins in.
    first: u64,
    subdirectories: u64,
    per_directory: Option<u64>,
    names: bool,
}

impl Creator {
    /// Makes its files; returns how long that took.
    async fn create<S: System>(self, sys: &S) -> Result<Nanos, SystemError> {
        let table = Bytes(self.files * NAME_BYTES);
        let table = if self.names { Some(sys.map_anonymous(table).await?) } else { None };
        buffer::use_pages(sys, self.size).await?;
        let begin = sys.now();
        let (mut present, mut place) = (None, Place::default());
        for file in 0..self.files {
            let turn = match self.per_directory {
                Some(files) => file / files,
                None => sys.now().saturating_sub(begin).get() / STAY.get(),
            };
            let number = (self.first + turn) % self.subdirectories;
            if present.replace(number) != Some(number) {
                place.enter(&subdirectory(self.process, number));
            }
            place.make_file(sys, self.number, file, self.size).await?;
            if let Some(table) = &table {
                enter_name(sys, table, file).await?;
            }
        }
        Ok(sys.now().saturating_sub(begin))
    }
}

/// Writes the entry of `file`: touches the pages that begin in it.
async fn enter_name<S: System>(sys: &S, table: &S::Mapping, file: u64) -> Result<(), SystemError> {
    let page = |file: u64| (file * NAME_BYTES).div_ceil(PAGE_SIZE);
    let (first, after) = (page(file), page(file + 1));
    if after > first {
        sys.touch(table, first, after - first).await?;
    }
    Ok(())
}

/// `rm -rf` of a directory with subdirectories of files.
async fn delete<S: System>(sys: &S, directory: &str) -> Result<(), SystemError> {
    for subdirectory in sys.read_dir(directory).await? {
        let mut path = format!("{directory}/{subdirectory}");
        let length = path.len();
        for name in sys.read_dir(&path).await? {
            path.push('/');
            path.push_str(&name);
            sys.unlink(&path).await?;
            path.truncate(length);
        }
        sys.remove_dir(&path).await?;
    }
    sys.remove_dir(directory).await
}

#[cfg(test)]
mod tests {
    use units::Pages;

    use super::*;

    fn machine(memory: Bytes) -> MachineSize {
        MachineSize { memory: memory.to_pages_floor(), nodes: 1, cpus: 8, disks: 1 }
    }

    fn of(pairs: &[(&'static str, &'static str)]) -> SmallFiles {
        let mut params = Params::defaults(PARAMS);
        pairs.iter().for_each(|(name, value)| params.set(name, value).expect("a value"));
        SmallFiles::from_params(&params).expect("they go together")
    }

    /// The example of the reference suite's configuration: 16 GiB.
    #[test]
    fn the_sources_machine_makes_14_loops_of_2_million_files_beside_a_quarter_of_memory_of_names() {
        let sizes = of(&[]).sizes(machine(SOURCE_MEMORY));
        assert_eq!((sizes.files_per_process, sizes.loops), (139_810, 14));
        let footprint = of(&[]).footprint(machine(SOURCE_MEMORY));
        assert_eq!(footprint.file_count, 14 * 16 * 139_810);
        let names = footprint.anonymous.get() as f64 / SOURCE_MEMORY.get() as f64;
        assert!((names - 0.277).abs() < 0.001, "{names}");
        assert_eq!(of(&[("names", "off")]).footprint(machine(SOURCE_MEMORY)).anonymous, Bytes(0));
    }

    #[test]
    fn loops_are_those_that_fit_unless_they_are_said_and_a_process_makes_a_million_files_at_most() {
        assert_eq!(of(&[]).sizes(machine(Bytes(256 << 20))).loops, 14);
        assert_eq!(of(&[("files", "4096")]).sizes(machine(Bytes(256 << 20))).loops, 60);
        assert_eq!(of(&[("files", "1000000000")]).sizes(machine(Bytes(256 << 20))).loops, 1);
        assert_eq!(of(&[("loops", "3")]).sizes(machine(Bytes(256 << 20))).loops, 3);
        assert_eq!(of(&[]).sizes(machine(Bytes(256 << 30))).files_per_process, 1_000_000);
        assert_eq!(of(&[]).sizes(MachineSize { memory: Pages(1), ..machine(Bytes(0)) }).files_per_process, 1);
    }

    #[test]
    fn what_a_run_makes_and_what_its_size_means_is_said() {
        let said = |pairs, mib: u64| of(pairs).remarks(machine(Bytes(mib << 20))).join("\n");
        insta::assert_snapshot!(said(&[], 16 << 10), @"14 loops of 16 processes with 139810 files of 4k each: data of a loop 53.3 % of memory, names 27.7 %; 119.47 GiB of data in all");
        insta::assert_snapshot!(said(&[("loops", "1"), ("names", "off")], 1024), @r"
        1 loop of 16 processes with 8738 files of 4k each: data of a loop 53.3 % of memory, names 0.0 %; 0.53 GiB of data in all
        the source's machine had 16 GiB, 16.000 times this memory: a loop is as much shorter, but the kernel's own periods (flusher 5 s, expiry of dirty pages 30 s) are what they are; `--param scale=full` runs its size
        1 sample of files_per_sec: too few for quartiles and a spread; the source has 14, `--param loops=14`
        ");
    }
}
