//! `sequential-readers`: N readers, each of a file of its own, once from start to end. How much of
//! the time do they wait for memory rather than for the disks?
//!
//! The load of the thread "Performance regression in scsi sequential throughput (iozone)" (C.
//! Ehrhardt and M. Gorman, Feb 2010): `iozone` with 4, 8 and 16 threads, one disk each, in a guest
//! of 256 MiB; the files are written first, then `sync`, `drop_caches` and a pause.
//!
//! Theory of operation:
//! 1. the files come to be: each is written by a writer of its own, all at the same time, as
//!    `iozone` does, or is laid out as if that were long ago (`prepare`); phase `files_written` ends;
//! 2. sync, drop caches and dentries, sleep; phase `caches_dropped` ends;
//! 3. the readers are started one after the other, each reads its file once in calls of `record`
//!    bytes; when the last is through, phase `read_done` ends.
//!
//! Throughput is that of the whole: all bytes, from the start of the first reader to the end of the
//! last (`iozone`: "Parent sees throughput"). Counters are those of the third phase; a metric whose
//! counter the kernel does not have is left out. Left out: `iozone`'s barrier at the start, its
//! rereads and its buffer, which it touches once. Neighbours: [`crate::system`].

use serde::{Deserialize, Serialize};
use units::{Bytes, Nanos, PAGE_SIZE};

use crate::parts::buffer;
use crate::parts::chance;
use crate::parts::counters::Counters;
use crate::parts::footprint::{Footprint, MachineSize};
use crate::system::errno::SystemError;
use crate::system::outcome::{Outcome, WorkloadError};
use crate::system::{ALL_CACHES, OpenMode, System, TaskSpec};
use language::metric::{Better, MetricSpec, TIME_RESOLUTION_SECONDS, metric};
use language::params::{ParamError, ParamSpec, Params};

/// The name in the catalog.
pub const NAME: &str = "sequential-readers";
/// One line for lists.
pub const HELP: &str = "readers of a file and a disk each, once and sequentially";

/// Its phases, in order.
pub const PHASES: &[&str] = &["files_written", "caches_dropped", "read_done"];

/// What its draws decide, and what those of the kernel below it do.
pub const VARIES: &[&str] = &[
    "when each writer and reader begins, up to 2 ms after it was forked: their order",
    "where on each disk the files lie, within 1 MiB",
    "simulated: the phase of the kernel's periodic workers (vmstat, memory.stat)",
];

/// The most readers, and the most disks.
const READERS_MAX: u64 = 256;

/// Its parameters.
pub const PARAMS: &[ParamSpec] = &[
    ParamSpec::count("readers", 1..=READERS_MAX, "how many read at the same time, each a file of its own")
        .by_default("16"),
    ParamSpec::size("file", Bytes(PAGE_SIZE)..=Bytes(1 << 40), "size of each reader's file")
        .by_default("128M"),
    ParamSpec::size("record", Bytes(512)..=Bytes(16 << 20), "bytes of one read or write call")
        .by_default("64k"),
    ParamSpec::count(
        "disks",
        1..=READERS_MAX,
        "disks that the files lie on: 1, or one for each reader; without it the latter where \
               the machine has several disks",
    ),
    ParamSpec::choice(
        "prepare",
        &["written", "laid-out"],
        "written: through the page cache, right before; laid-out: the files are there, as if \
               written long ago",
    ),
    ParamSpec::size("held", Bytes(0)..=Bytes(1 << 40), "anonymous memory that others hold all the time")
        .by_default("0"),
    ParamSpec {
        default: None,
        ..ParamSpec::choice(
            "filesystem",
            &["ext3", "ext4", "xfs"],
            "filesystem that the machine puts the files on; without it the machine's own: ext3 on \
               s390-fcp, else ext4",
        )
    },
];

/// The metrics that head its reports.
pub const METRICS: &[MetricSpec] = &[
    metric(
        "throughput_kb_per_sec",
        "KiB/s",
        Better::More,
        "all readers together, from the first start to the last end",
    ),
    metric(
        "futile_wait_seconds",
        "s",
        Better::Less,
        "all tasks: waits to their timeout while nothing was under way that could end them",
    )
    .resolved_to(TIME_RESOLUTION_SECONDS),
    metric("slowest_reader_seconds", "s", Better::Less, "the reader that took longest")
        .resolved_to(TIME_RESOLUTION_SECONDS),
    metric("fastest_reader_seconds", "s", Better::Less, "the reader that took least")
        .resolved_to(TIME_RESOLUTION_SECONDS),
    metric(
        "failed_but_progress_percent",
        "%",
        Better::Less,
        "direct reclaims that freed pages and got none of them",
    ),
    metric("allocation_stalls", "stalls", Better::Less, "times that a reader had to reclaim memory itself"),
];

/// After dropping caches the mail's author let things settle: "a few sleeps".
const SETTLE: Nanos = Nanos::from_secs(1);

/// How the files come to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Prepare {
    Written,
    LaidOut,
}

/// The program with its parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SequentialReaders {
    readers: u16,
    file: Bytes,
    record: Bytes,
    disks: Option<u16>,
    prepare: Prepare,
    held: Bytes,
}

impl SequentialReaders {
    /// The program that `params`, made from [`PARAMS`], describe.
    ///
    /// # Errors
    /// [`ParamError::Conflict`]: more readers than disks, or more disks than readers; a file that is
    /// shorter than one record.
    pub fn from_params(params: &Params) -> Result<Self, ParamError> {
        let count = |name| params.count(name).map(|count| u16::try_from(count).expect("at most 256"));
        let readers = count("readers").expect("readers has a default");
        let disks = count("disks");
        let file = params.size("file").expect("file has a default");
        let record = params.size("record").expect("record has a default");
        if let Some(disks) = disks.filter(|&disks| disks != 1 && disks != readers) {
            return Err(ParamError::Conflict {
                name: "disks",
                problem: format!("{readers} readers on {disks} disks"),
                hint: format!("each reader has a disk, `disks={readers}`, or all share one, `disks=1`"),
            });
        }
        if file < record {
            return Err(ParamError::Conflict {
                name: "file",
                problem: format!("{file} is less than one record of {record}"),
                hint: "give a larger `file` or a smaller `record`".to_owned(),
            });
        }
        let prepare = match params.choice("prepare").expect("prepare has a default") {
            "written" => Prepare::Written,
            "laid-out" => Prepare::LaidOut,
            other => unreachable!("prepare {other} is not in PARAMS"),
        };
        let held = params.size("held").expect("held has a default");
        Ok(Self { readers, file, record, disks, prepare, held })
    }

    /// Disks that the files lie on, on a machine with so many.
    fn disks_of(&self, there: u16) -> u16 {
        self.disks.unwrap_or(if there > 1 { self.readers } else { 1 })
    }

    /// What it makes on `machine`: a file for each reader, and what moves them to another place of
    /// each disk.
    pub(crate) fn footprint(&self, machine: MachineSize) -> Footprint {
        let disks = self.disks_of(machine.disks);
        let files = self.file.get() * u64::from(self.readers);
        Footprint {
            files: Bytes(files + (chance::PLACED_WITHIN.get() * u64::from(disks))),
            file_count: u64::from(self.readers) + u64::from(disks),
            anonymous: self.held,
            tasks: u64::from(self.readers),
            disks,
        }
    }

    /// Runs it. The metrics are those of the module's theory of operation.
    ///
    /// # Errors
    /// [`WorkloadError::TooFewDisks`]; the first failing system call, `Killed` when the OOM killer took
    /// a task.
    pub async fn run<S: System>(&self, sys: S) -> Result<Outcome, WorkloadError> {
        let there = sys.disks_online();
        let disks = self.disks_of(there);
        if disks > there {
            return Err(WorkloadError::TooFewDisks { wanted: disks, there });
        }
        // Until all is over.
        let _held = hold(&sys, self.held).await?;
        for disk in 0..disks {
            sys.make_dir_on(&directory(disk), disk).await?;
            chance::place_files_in(&sys, NAME, &directory(disk)).await?;
        }
        let files: Vec<OneFile> = (0..self.readers).map(|number| self.file(number, disks)).collect();
        match self.prepare {
            Prepare::Written => {
                write_all(&sys, &files).await?;
                sys.mark("files_written");
                sys.sync().await?;
                sys.drop_caches(ALL_CACHES).await?;
            }
            Prepare::LaidOut => {
                for file in &files {
                    sys.lay_out_file(&file.path(), file.size).await?;
                }
                sys.mark("files_written");
                sys.begin_cold().await?;
            }
        }
        sys.sleep(SETTLE).await;
        sys.mark("caches_dropped");

        let before = Counters::read(&sys).await?;
        let passes = read_all(&sys, &files).await?;
        let after = Counters::read(&sys).await?;
        sys.mark("read_done");
        Ok(self.outcome(&passes, &before, &after))
    }

    fn file(&self, number: u16, disks: u16) -> OneFile {
        OneFile { number, disk: number % disks, size: self.file, record: self.record }
    }

    fn outcome(&self, passes: &[Pass], before: &Counters, after: &Counters) -> Outcome {
        let mut outcome = Outcome::default();
        let seconds: Vec<f64> =
            passes.iter().map(|pass| pass.end.saturating_sub(pass.begin).as_secs_f64()).collect();
        let begin = passes.iter().map(|pass| pass.begin).min().expect("there is a reader");
        let end = passes.iter().map(|pass| pass.end).max().expect("there is a reader");
        let kib = self.file.get() as f64 / 1024.0 * f64::from(self.readers);
        let whole = end.saturating_sub(begin).as_secs_f64();
        if whole > 0.0 {
            outcome.metric("throughput_kb_per_sec", kib / whole);
        }
        outcome.metric("read_seconds", whole);
        outcome.metric("slowest_reader_seconds", seconds.iter().copied().fold(0.0, f64::max));
        outcome.metric("fastest_reader_seconds", seconds.iter().copied().fold(f64::INFINITY, f64::min));
        let longest = passes.iter().map(|pass| pass.longest_call).max().expect("there is a reader");
        outcome.metric("longest_read_call_seconds", longest.as_secs_f64());
        outcome.samples.insert("reader_seconds".to_owned(), seconds);

        if let Some(stalls) = after.sum_since(before, |name| name.starts_with("allocstall")) {
            outcome.metric("allocation_stalls", stalls as f64);
        }
        let direct = after.since(before, "perf_count_pages_direct_reclaim");
        let in_vain = after.since(before, "perf_count_failed_pages_direct_reclaim_but_progress");
        if let (Some(direct @ 1..), Some(in_vain)) = (direct, in_vain) {
            outcome.metric("failed_but_progress_percent", 100.0 * in_vain as f64 / direct as f64);
        }
        outcome
    }
}

fn directory(disk: u16) -> String {
    format!("disk{disk}")
}

/// Memory that stays in use, as there is nowhere to swap it to.
async fn hold<S: System>(sys: &S, size: Bytes) -> Result<Option<S::Mapping>, SystemError> {
    if size == Bytes(0) {
        return Ok(None);
    }
    let mapping = sys.map_anonymous(size).await?;
    sys.touch(&mapping, 0, size.get().div_ceil(PAGE_SIZE)).await?;
    Ok(Some(mapping))
}

/// Starts a writer for each file, and waits for all.
async fn write_all<S: System>(sys: &S, files: &[OneFile]) -> Result<(), WorkloadError> {
    let mut writers = Vec::new();
    for &file in files {
        let name = format!("writer{}", file.number);
        let spec = TaskSpec::named(name.clone());
        let program = move |sys: S| async move {
            chance::begin(&sys, NAME, &name, chance::WITH_OTHERS).await;
            file.write(&sys).await
        };
        writers.push(sys.spawn(spec, program).await?);
    }
    for writer in writers {
        sys.join(writer).await??;
    }
    Ok(())
}

/// Starts a reader of each file, and waits for all.
async fn read_all<S: System>(sys: &S, files: &[OneFile]) -> Result<Vec<Pass>, WorkloadError> {
    let mut readers = Vec::new();
    for &file in files {
        let name = format!("reader{}", file.number);
        let spec = TaskSpec::named(name.clone());
        let program = move |sys: S| async move {
            chance::begin(&sys, NAME, &name, chance::WITH_OTHERS).await;
            file.read(&sys).await
        };
        readers.push(sys.spawn(spec, program).await?);
    }
    let mut passes = Vec::new();
    for reader in readers {
        passes.push(sys.join(reader).await??);
    }
    Ok(passes)
}

/// One pass over a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Pass {
    begin: Nanos,
    end: Nanos,
    longest_call: Nanos,
}

/// The file of one reader.
#[derive(Debug, Clone, Copy)]
struct OneFile {
    number: u16,
    disk: u16,
    size: Bytes,
    record: Bytes,
}

impl OneFile {
    fn path(self) -> String {
        format!("{}/file{}", directory(self.disk), self.number)
    }

    /// Offset and length of each call.
    fn records(self) -> impl Iterator<Item = (u64, u64)> {
        let (size, record) = (self.size.get(), self.record.get());
        (0..size.div_ceil(record)).map(move |call| (call * record, record.min(size - (call * record))))
    }

    async fn write<S: System>(self, sys: &S) -> Result<(), SystemError> {
        buffer::use_large(sys, self.record.min(self.size)).await?;
        let file = sys.open(&self.path(), OpenMode::Create).await?;
        for (offset, len) in self.records() {
            sys.write(&file, offset, len).await?;
        }
        Ok(())
    }

    async fn read<S: System>(self, sys: &S) -> Result<Pass, WorkloadError> {
        buffer::use_large(sys, self.record.min(self.size)).await?;
        let begin = sys.now();
        let file = sys.open(&self.path(), OpenMode::Read).await?;
        let (mut now, mut longest_call) = (sys.now(), Nanos::ZERO);
        for (offset, len) in self.records() {
            let read = sys.read(&file, offset, len).await?;
            if read < len {
                let (path, read_bytes) = (self.path(), offset + read);
                return Err(WorkloadError::ShortRead { path, read_bytes, size_bytes: self.size.get() });
            }
            let called = std::mem::replace(&mut now, sys.now());
            longest_call = longest_call.max(now.saturating_sub(called));
        }
        Ok(Pass { begin, end: now, longest_call })
    }
}
