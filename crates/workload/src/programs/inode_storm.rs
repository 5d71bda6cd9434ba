//! `inode-storm`: many processes create files while a task pins ever more of the memory. How much can it pin
//! before the OOM killer comes, and what is the memory then?
//!
//! D. Chinner's test of "xfs: make inode reclaim almost non-blocking" (29 Jun 2020, on 5.7): a 16-way `fs_mark`
//! that creates files on 4 nodes, 16 CPUs and 16 GiB, beside memory pinned by `mlock`.
//!
//! Theory of operation, with M the memory of the machine:
//! 1. a step forks `processes`, which wait; then memory is locked up to the step's amount, `pin_from` and each
//!    time `pin_step` more, M/2 and M/64 unless said otherwise; a file named after the step tells all to begin;
//! 2. together they create `files` files, each process in subdirectories of its own; a file is what it is in
//!    [`crate::programs::small_files`], but empty unless `file_size` says otherwise: nearly all of it is its inode;
//! 3. nothing is deleted and no cache dropped between two steps, so from some step on memory is always full;
//! 4. the first OOM kill of anybody, while it pins or while they create, is the end of the workload and its
//!    result. Every task reads the kernel's count of kills often, and whoever pins then unpins everything: one
//!    kill is to be the last one, and not to become a panic for want of somebody to kill.
//!
//! Samples, one a step that ran to its end: `pinned_gib`, `files_per_sec`, and when it ended `free_pages`,
//! `slab_pages`, `file_pages`; `alloc_stalls` in it. What memory was at the kill is read from the kernel's report.
//!
//! `pinner=stays`: the workload itself pins, ever more of one mapping. `pinner=anew`: each step a task maps
//! and locks the whole amount, whose memory is free again before the next step, as the measured guests'
//! `mlockpin` does. Whoever pins has an `oom_score_adj` of -1000, and so has the workload; those who create 0.
//! A host that does not permit that has 0 and 1000 instead.
//!
//! `programs`: a real machine has pages of programs, which reclaim may take and somebody reads again; here a task
//! reads a file of that size every 100 ms. Without it nothing is on the lists of pages but what the storm itself reads.
//! How many the source's machine had is not known: a machine gets [`PROGRAMS`], unless it is small, as guests
//! are that run nothing else.
//!
//! Left out: that the source's author deleted the files between his runs. Neighbours: [`crate::parts::creators`].

use serde::{Deserialize, Serialize};
use units::{Bytes, Nanos, PAGE_SIZE, Pages};

use crate::parts::buffer;
use crate::parts::chance;
use crate::parts::creators::Place;
use crate::parts::footprint::{Footprint, MachineSize};
use crate::system::errno::{Errno, SystemError};
use crate::system::outcome::{Outcome, WorkloadError};
use crate::system::{OpenMode, Portable, System, TaskSpec};
use language::metric::{Better, MetricSpec, TIME_RESOLUTION_SECONDS, metric};
use language::params::{ParamError, ParamSpec, Params};

/// The name in the catalog.
pub const NAME: &str = "inode-storm";
/// One line for lists.
pub const HELP: &str = "many processes create files while ever more memory is pinned, until an OOM kill";

/// Its phases, in order.
pub const PHASES: &[&str] = &["stormed"];

/// What its draws decide, and what those of the kernel below it do.
pub const VARIES: &[&str] = &[
    "when each process of a step begins, up to 2 ms after it was told to: their order",
    "simulated: the phase of the kernel's periodic workers (vmstat, memory.stat, the log of XFS)",
];

const SIZE_MAX: Bytes = Bytes(1 << 50);

/// Its parameters.
pub const PARAMS: &[ParamSpec] = &[
    ParamSpec::count(
        "processes",
        1..=256,
        "processes that create files at the same time, each in a directory of its own",
    )
    .by_default("16"),
    ParamSpec::count(
        "files",
        1..=(1 << 40),
        "files of a step, all processes; without it one for each 64 KiB of memory",
    ),
    ParamSpec::size(
        "file_size",
        Bytes(0)..=Bytes(1 << 30),
        "size of each file, which is written by one call; 0: it is not written",
    )
    .by_default("0"),
    ParamSpec::count("per_directory", 1..=1_000_000_000, "files of a process before its next subdirectory")
        .by_default("10000"),
    ParamSpec::size(
        "pin_from",
        Bytes(PAGE_SIZE)..=SIZE_MAX,
        "memory that the first step pins; without it half of all",
    ),
    ParamSpec::size(
        "pin_to",
        Bytes(PAGE_SIZE)..=SIZE_MAX,
        "memory that the last step pins, if nobody is killed before; without it all",
    ),
    ParamSpec::size(
        "pin_step",
        Bytes(PAGE_SIZE)..=SIZE_MAX,
        "memory that each step pins more than the one before; without it 1/64 of all",
    ),
    ParamSpec::choice(
        "pinner",
        &["stays", "anew"],
        "stays: one task pins ever more; anew: each step another one pins the whole amount",
    ),
    ParamSpec::size(
        "programs",
        Bytes(0)..=SIZE_MAX,
        "pages of other programs, a file that one task reads all the time; without it 38M from 4G of memory on",
    ),
    ParamSpec::choice("filesystem", &["xfs", "ext4"], "filesystem that the machine puts the files on"),
];

/// The metrics that head its reports.
pub const METRICS: &[MetricSpec] = &[
    metric("pinned_gib_before_oom", "GiB", Better::More, "pinned in the last step that ran to its end"),
    metric("pinned_gib_at_oom", "GiB", Better::More, "pinned when the first task was killed"),
    metric("free_percent_at_oom", "%", Better::Less, "free memory when the first task was killed, of all"),
    metric("slab_percent_at_oom", "%", Better::Neither, "slab then, of all memory"),
    metric(
        "dirty_inodes_at_oom",
        "inodes",
        Better::Neither,
        "inodes that waited to be written then (simulated)",
    ),
    metric("files_per_sec", "files/s", Better::More, "files of a step by its time, one sample a step"),
    metric("files_created", "files", Better::Neither, "in all steps"),
    metric("elapsed_seconds", "s", Better::Neither, "from the first step to the end of the last")
        .resolved_to(TIME_RESOLUTION_SECONDS),
];

/// Parts of memory by which a step pins more where nobody says: 256 MiB of the source's 16 GiB.
const STEPS: u64 = 64;
/// What a machine's own programs keep mapped where nobody says: `nr_mapped` of the one measured machine that is no
/// guest was 9,627 to 9,707 pages before its runs.
const PROGRAMS: Bytes = Bytes(38 << 20);
/// A machine with less memory has no other programs.
const PROGRAMS_FROM: Bytes = Bytes(4 << 30);
/// Memory is installed in whole sixteenths of a power of two.
const INSTALLED_PARTS: u64 = 16;
/// A step's files where nobody says: one for so much memory.
const MEMORY_OF_FILE: u64 = 64 << 10;
/// Pages that are locked by one call: fewer than the killer gets by one process, so that a pinner that needs a
/// kill does not need the next one before it looks.
const PIN_CHUNK: u64 = 32;
/// A process looks for a kill before every so many files.
const LOOK_EVERY: u64 = 256;
/// How often a process looks whether it may begin, and whoever pins whether somebody was killed.
const WAIT: Nanos = Nanos::from_millis(10);
/// The `oom_score_adj` of a task that nobody kills, of one like any other, and of one that is killed first.
const SPARED: i16 = -1000;
const ORDINARY: i16 = 0;
const FIRST: i16 = 1000;

/// What other programs read, by how much, and how long they rest when they have read all of it.
const OTHERS: &str = "others";
const READ_LEN: usize = 128 << 10;
const OTHERS_REST: Nanos = Nanos::from_millis(100);

/// Who pins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pinner {
    Stays,
    Anew,
}

/// The program with all parameters resolved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InodeStorm {
    processes: u64,
    files: Option<u64>,
    file_size: Bytes,
    per_directory: u64,
    pin_from: Option<Bytes>,
    pin_to: Option<Bytes>,
    pin_step: Option<Bytes>,
    pinner: Pinner,
    programs: Option<Bytes>,
}

/// What the machine's size makes of the parameters; amounts of memory in pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Sizes {
    files_per_process: u64,
    from: u64,
    to: u64,
    step: u64,
    /// Bytes of the file of other programs.
    programs: Bytes,
}

impl Sizes {
    /// Pages that each step pins.
    fn amounts(self) -> impl Iterator<Item = u64> {
        (0..).map(move |step| self.from + step * self.step).take_while(move |&pages| pages <= self.to)
    }
}

/// One step of the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Step {
    number: u64,
    /// Pages that are pinned before it begins, and when it creates.
    pinned: u64,
    pages: u64,
    files_per_process: u64,
    /// Kills before it.
    kills: u64,
    /// The `oom_score_adj` of those who create.
    adj: i16,
}

/// What a step came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Stepped {
    /// Pages that were pinned in the end.
    pinned: u64,
    files: u64,
    took: Nanos,
    /// Whether somebody was killed.
    killed: bool,
    /// Memory when it ended, and allocations since boot that had to reclaim.
    memory: Memory,
}

/// What memory is used for, in pages, by `/proc/vmstat`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Memory {
    free: u64,
    slab: u64,
    file: u64,
    allocstalls: u64,
}

impl Memory {
    fn of(vmstat: &[(String, u64)]) -> Self {
        let mut memory = Self::default();
        for (name, value) in vmstat {
            match name.as_str() {
                "nr_free_pages" => memory.free += value,
                "nr_slab_reclaimable" | "nr_slab_unreclaimable" => memory.slab += value,
                "nr_active_file" | "nr_inactive_file" => memory.file += value,
                name if name.starts_with("allocstall") => memory.allocstalls += value,
                _ => {}
            }
        }
        memory
    }
}

impl InodeStorm {
    /// The program that `params`, made from [`PARAMS`], describe.
    ///
    /// # Errors
    /// [`ParamError::Conflict`]: fewer files than processes, or an end of pinning before its beginning.
    pub fn from_params(params: &Params) -> Result<Self, ParamError> {
        let processes = params.count("processes").expect("processes has a default");
        if let Some(files) = params.count("files").filter(|&files| files < processes) {
            return Err(ParamError::Conflict {
                name: "files",
                problem: format!("{files} files for {processes} processes"),
                hint: format!("give `files={processes}` at least, or fewer `processes`"),
            });
        }
        let [pin_from, pin_to, pin_step] = ["pin_from", "pin_to", "pin_step"].map(|name| params.size(name));
        if let (Some(from), Some(to)) = (pin_from, pin_to)
            && to < from
        {
            return Err(ParamError::Conflict {
                name: "pin_to",
                problem: format!("{to} is less than `pin_from`, which is {from}"),
                hint: format!("give `pin_to={from}` at least, for one step"),
            });
        }
        Ok(Self {
            processes,
            files: params.count("files"),
            file_size: params.size("file_size").expect("file_size has a default"),
            per_directory: params.count("per_directory").expect("per_directory has a default"),
            pin_from,
            pin_to,
            pin_step,
            pinner: if params.choice("pinner") == Some("anew") { Pinner::Anew } else { Pinner::Stays },
            programs: params.size("programs"),
        })
    }

    fn sizes(&self, machine: MachineSize) -> Sizes {
        let memory = machine.memory.get();
        let pages = |size: Option<Bytes>, otherwise: u64| {
            size.map_or(otherwise, |size| size.get().div_ceil(PAGE_SIZE)).max(1)
        };
        let step = installed(memory) / STEPS;
        let files = self.files.unwrap_or(installed(memory) / (MEMORY_OF_FILE / PAGE_SIZE));
        Sizes {
            files_per_process: (files / self.processes).max(1),
            from: pages(self.pin_from, installed(memory) / 2),
            to: pages(self.pin_to, memory),
            step: pages(self.pin_step, step),
            programs: self.programs.unwrap_or_else(|| {
                let has_some = installed(memory) * PAGE_SIZE >= PROGRAMS_FROM.get();
                if has_some { PROGRAMS } else { Bytes(0) }
            }),
        }
    }

    /// What it makes on `machine`, if all steps are run.
    pub(crate) fn footprint(&self, machine: MachineSize) -> Footprint {
        let sizes = self.sizes(machine);
        let steps = sizes.amounts().count() as u64;
        let file_count = (sizes.files_per_process * self.processes).saturating_mul(steps);
        Footprint {
            files: Bytes(
                file_count.saturating_mul(self.file_size.get()).saturating_add(sizes.programs.get()),
            ),
            file_count,
            anonymous: Bytes(0),
            tasks: self.processes
                + u64::from(self.pinner == Pinner::Anew)
                + u64::from(sizes.programs > Bytes(0)),
            disks: 1,
        }
    }

    /// What is to be said of a run on `machine` with its results.
    pub(crate) fn remarks(&self, machine: MachineSize) -> Vec<String> {
        let Sizes { files_per_process, from, step, programs, .. } = self.sizes(machine);
        let size = |pages: u64| Bytes(pages * PAGE_SIZE);
        let mut remarks = vec![format!(
            "each step {} with {files_per_process} files of {} each; pinned are {}, then {} more each time, until \
             an OOM kill{}",
            if self.processes == 1 {
                "1 process".to_owned()
            } else {
                format!("{} processes", self.processes)
            },
            self.file_size,
            size(from),
            size(step),
            self.pin_to.map(|to| format!(" or {to}")).unwrap_or_default(),
        )];
        if self.programs.is_none() && programs > Bytes(0) {
            remarks.push(format!(
                "assumed: other programs keep {programs} of files in use, as those of a measured machine did; without                  any, and with two features, the kill comes earlier (`--param programs=0`)"
            ));
        }
        remarks
    }

    /// Runs it until somebody is killed for want of memory, which is no error, or all steps are done.
    ///
    /// # Errors
    /// [`WorkloadError::PinsTooMuch`] where there is no step at all; the first failing system call while nobody was
    /// killed.
    pub async fn run<S: System>(&self, sys: S) -> Result<Outcome, WorkloadError> {
        let sizes = self.sizes(MachineSize::of(&sys));
        if sizes.from > sizes.to {
            let [wanted, there] =
                [sizes.from, sys.memory_total().get()].map(|pages| Bytes(pages * PAGE_SIZE));
            return Err(WorkloadError::PinsTooMuch { wanted, there });
        }
        let adj = spare(&sys).await?;
        for process in 0..self.processes {
            sys.make_dir(&directory(process)).await?;
        }
        let begin = sys.now();
        let kills = sys.oom_kills().await?;
        let before = Memory::of(&sys.vmstat().await?);
        let stays = self.pinner == Pinner::Stays;
        let others = Self::run_others(&sys, sizes.programs).await?;
        let mut held = match stays {
            true => Some(sys.map_anonymous(Bytes(sizes.to * PAGE_SIZE)).await?),
            false => None,
        };
        let so_far = |steps: &[Stepped]| {
            outcome(steps, sys.now().saturating_sub(begin), sys.memory_total(), before.allocstalls)
        };
        let (mut steps, mut pinned) = (Vec::new(), 0);
        sys.keep(&so_far(&steps));
        for (number, pages) in (0..).zip(sizes.amounts()) {
            let files_per_process = sizes.files_per_process;
            let step = Step { number, pinned, pages, files_per_process, kills, adj };
            let stepped = if stays {
                self.step(&sys, step, &mut held).await?
            } else {
                self.step_anew(&sys, step).await?
            };
            pinned = if stays { stepped.pinned } else { 0 };
            steps.push(stepped);
            sys.keep(&so_far(&steps));
            if stepped.killed {
                break;
            }
        }
        sys.mark("stormed");
        if let Some(others) = others {
            sys.unlink(OTHERS).await?; // They look for it.
            others_ended(sys.join(others).await)?;
        }
        Ok(so_far(&steps))
    }

    /// Other programs, if there are any: a task that reads their file over and over, until that is removed.
    async fn run_others<S: System>(
        sys: &S,
        size: Bytes,
    ) -> Result<Option<S::Task<Result<(), SystemError>>>, SystemError> {
        if size == Bytes(0) {
            return Ok(None);
        }
        sys.lay_out_file(OTHERS, size).await?;
        let program = move |sys: S| async move {
            let file = sys.open(OTHERS, OpenMode::Read).await?;
            while sys.file_size(OTHERS).await.is_ok() {
                for offset in (0..size.get()).step_by(READ_LEN) {
                    sys.read(&file, offset, READ_LEN as u64).await?;
                }
                sys.sleep(OTHERS_REST).await;
            }
            Ok(())
        };
        sys.spawn(TaskSpec::named("others"), program).await.map(Some)
    }

    /// A step of a task of its own, which pins everything.
    async fn step_anew<S: System>(&self, sys: &S, step: Step) -> Result<Stepped, WorkloadError> {
        let storm = *self;
        let program = move |sys: S| async move {
            let mapping = sys.map_anonymous(Bytes(step.pages * PAGE_SIZE)).await?;
            storm.step(&sys, step, &mut Some(mapping)).await
        };
        sys.join(sys.spawn(TaskSpec::named("pinner"), program).await?).await?
    }

    /// Leaves `mapping` as it is, with more of it locked, unless somebody is killed: then it is unmapped.
    async fn step<S: System>(
        &self,
        sys: &S,
        step: Step,
        mapping: &mut Option<S::Mapping>,
    ) -> Result<Stepped, WorkloadError> {
        let mut creators = Vec::new();
        for process in 0..self.processes {
            let creator = Creator { storm: *self, step, process };
            let program = move |sys: S| async move { creator.run(&sys).await };
            creators.push(sys.spawn(TaskSpec::named(format!("creator{process}")), program).await?);
        }
        let locked = pin(sys, step, mapping.as_ref().expect("nobody was killed before")).await;
        unpin_if_killed(sys, step, mapping).await?;
        let begin = sys.now();
        // Also where pinning failed: they wait for it.
        let told = sys.open(&signal(step.number), OpenMode::Create).await.map(drop);
        watch(sys, step, &creators, mapping).await?;
        let (mut files, mut end, mut failed, mut killed) = (0, begin, None, false);
        for creator in creators {
            match sys.join(creator).await {
                Ok(Ok((made, at))) => (files, end) = (files + made, end.max(at)),
                Err(error) if error.errno == Errno::Killed => killed = true,
                Ok(Err(error)) | Err(error) => failed = failed.or(Some(error)),
            }
        }
        killed |= sys.oom_kills().await? > step.kills;
        let pinned = match locked {
            Ok(pinned) => pinned,
            Err((_, pinned)) if killed => pinned,
            Err((error, _)) => return Err(error.into()),
        };
        if !killed && let Some(error) = told.err().or(failed) {
            return Err(error.into());
        }
        let took = end.saturating_sub(begin);
        Ok(Stepped { pinned, files, took, killed, memory: Memory::of(&sys.vmstat().await?) })
    }
}

/// Spares the calling task; returns what those who create are to have. Who may not spare itself has them killed
/// first, which needs no privilege.
async fn spare<S: System>(sys: &S) -> Result<i16, SystemError> {
    match sys.set_oom_score_adj(SPARED).await {
        Ok(()) => Ok(ORDINARY),
        Err(error) if matches!(error.errno, Errno::Acces | Errno::Perm) => Ok(FIRST),
        Err(error) => Err(error),
    }
}

/// Pages that are installed where a kernel manages `pages`, without what it kept at boot: round steps are easier to
/// read.
fn installed(pages: u64) -> u64 {
    let part = pages.checked_next_power_of_two().map_or(1, |power| power / INSTALLED_PARTS);
    pages.next_multiple_of(part.max(1))
}

/// Pins up to the amount of `step`, or until somebody is killed; returns the pages that are pinned then.
///
/// # Errors
/// The call that failed, and the pages that were pinned before.
async fn pin<S: System>(sys: &S, step: Step, mapping: &S::Mapping) -> Result<u64, (SystemError, u64)> {
    let mut pinned = step.pinned;
    while pinned < step.pages {
        let count = PIN_CHUNK.min(step.pages - pinned);
        let locked = async {
            sys.lock_memory(mapping, pinned, count).await?;
            sys.oom_kills().await
        };
        let kills = locked.await.map_err(|error| (error, pinned))?;
        pinned += count;
        if kills > step.kills {
            break;
        }
    }
    Ok(pinned)
}

/// Waits for the end of `creators`; if somebody is killed before, `mapping` goes at once.
async fn watch<S: System, T: Portable>(
    sys: &S,
    step: Step,
    creators: &[S::Task<T>],
    mapping: &mut Option<S::Mapping>,
) -> Result<(), SystemError> {
    while !creators.iter().all(|creator| sys.has_ended(creator)) {
        unpin_if_killed(sys, step, mapping).await?;
        sys.sleep(WAIT).await;
    }
    Ok(())
}

/// That others were killed is no failure.
fn others_ended(ended: Result<Result<(), SystemError>, SystemError>) -> Result<(), SystemError> {
    match ended.and_then(|ended| ended) {
        Err(error) if error.errno != Errno::Killed => Err(error),
        _ => Ok(()),
    }
}

async fn unpin_if_killed<S: System>(
    sys: &S,
    step: Step,
    mapping: &mut Option<S::Mapping>,
) -> Result<(), SystemError> {
    if mapping.is_some() && sys.oom_kills().await? > step.kills {
        *mapping = None;
    }
    Ok(())
}

fn outcome(steps: &[Stepped], elapsed: Nanos, memory: Pages, stalls_before: u64) -> Outcome {
    let gib = |pages: u64| (pages * PAGE_SIZE) as f64 / f64::from(1 << 30);
    let mut outcome = Outcome::default();
    let whole: Vec<&Stepped> = steps.iter().filter(|step| !step.killed).collect();
    outcome.metric("pinned_gib_before_oom", whole.last().map_or(0.0, |step| gib(step.pinned)));
    if let Some(last) = steps.last().filter(|step| step.killed) {
        outcome.metric("pinned_gib_at_oom", gib(last.pinned));
    }
    outcome.metric("files_created", steps.iter().map(|step| step.files).sum::<u64>() as f64);
    outcome.metric("elapsed_seconds", elapsed.as_secs_f64());
    outcome.metric("memory_pages", memory.get() as f64);
    let mut samples = |name: &str, of: &dyn Fn(&Stepped) -> f64| {
        if !whole.is_empty() {
            outcome.samples.insert(name.to_owned(), whole.iter().map(|step| of(step)).collect());
        }
    };
    samples("files_per_sec", &|step| step.files as f64 * 1e9 / step.took.get().max(1) as f64);
    samples("pinned_gib", &|step| gib(step.pinned));
    samples("free_pages", &|step| step.memory.free as f64);
    samples("slab_pages", &|step| step.memory.slab as f64);
    samples("file_pages", &|step| step.memory.file as f64);
    // What each step added.
    let mut stalls: Vec<f64> = whole.iter().map(|step| step.memory.allocstalls as f64).collect();
    for index in (0..stalls.len()).rev() {
        stalls[index] -= index.checked_sub(1).map_or(stalls_before as f64, |before| stalls[before]);
    }
    if !stalls.is_empty() {
        outcome.samples.insert("alloc_stalls".to_owned(), stalls);
    }
    outcome
}

fn directory(process: u64) -> String {
    format!("d{process:02}")
}

/// The file that tells a step's processes to begin.
fn signal(step: u64) -> String {
    format!("pinned{step:03}")
}

/// One process of one step.
#[derive(Debug, Clone, Copy)]
struct Creator {
    storm: InodeStorm,
    step: Step,
    process: u64,
}

impl Creator {
    /// Makes its files, or as many as it does until somebody is killed; returns how many, and when it ended.
    async fn run<S: System>(self, sys: &S) -> Result<(u64, Nanos), SystemError> {
        let Self { storm, step, process } = self;
        sys.set_oom_score_adj(step.adj).await?;
        let signal = signal(step.number);
        while let Err(error) = sys.file_size(&signal).await {
            if error.errno != Errno::NoEnt {
                return Err(error);
            }
            sys.sleep(WAIT).await;
        }
        chance::begin(sys, NAME, &format!("step{}/creator{process}", step.number), chance::WITH_OTHERS).await;
        buffer::use_pages(sys, storm.file_size).await?;
        let mut place = Place::default();
        let before = step.number * step.files_per_process;
        for file in 0..step.files_per_process {
            if file % LOOK_EVERY == 0 && sys.oom_kills().await? > step.kills {
                return Ok((file, sys.now()));
            }
            let number = before + file;
            if file == 0 || number % storm.per_directory == 0 {
                place.enter(&format!("{}/{:04}", directory(process), number / storm.per_directory));
            }
            place.make_file(sys, step.number, number, storm.file_size).await?;
        }
        Ok((step.files_per_process, sys.now()))
    }
}

#[cfg(test)]
mod tests;
