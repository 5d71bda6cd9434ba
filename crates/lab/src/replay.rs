//! A recorded trace through a kernel's page cache and reclaim, or on plain replacement policies:
//! how much of it misses?
//!
//! A kernel is limited by memory and serves pages, with readahead and writeback; a policy is
//! limited by a number of objects and knows no sizes. Each cache reads the trace for itself,
//! several in parallel; the file is never held in memory.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use kernel::Filesystem;
use rayon::prelude::*;
use recording::Recording;
use sim::machines::MACHINES;
use sim::run::{Program, SimRun};
use units::Bytes;
use workload::policy::{self, Capacity, PolicyKind};
use workload::replay::Timing;
use workload::scenario::{SEED_DEFAULT, parse_mem_of};
use workload::trace::{TraceError, TraceFormat, TraceReader};
use workload::{KernelSpec, Replay};

use crate::error::LabError;
use crate::names::Names;
use crate::resolve::{Setting, kernel_named, newest_kernel, shell_quoted, sysctl_pairs};
use crate::simulate::{run_recorded, sim_run};

/// A trace and the caches to replay it on.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ReplayRequest {
    /// The trace file.
    pub trace: PathBuf,
    /// Its format; `None` looks at its content.
    pub format: Option<TraceFormat>,
    /// Policies: each is replayed at each capacity.
    pub policies: Vec<PolicyKind>,
    /// Capacities in objects.
    pub capacities: Vec<u64>,
    /// Memory sizes of a simulated machine: each is replayed under each kernel.
    pub mems: Vec<String>,
    /// When requests are made of a simulated machine.
    pub timing: Timing,
    /// Kernels; none means the newest.
    pub kernels: Vec<String>,
    /// Sysctls of all of these kernels, each `name=value`.
    pub sysctls: Vec<String>,
}

/// How far a replay is: told every few thousand requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplayProgress {
    /// More of the trace was read.
    Read {
        /// Bytes since the last report, by all caches together.
        bytes: u64,
        /// Bytes to read, by all caches together.
        total: u64,
    },
    /// A cache has come to the end of the trace.
    Finished {
        /// How many did so far, with this one.
        done: usize,
        /// How many there are.
        total: usize,
    },
}

/// One cache to replay the trace on.
enum Cache {
    Policy(PolicyKind, Capacity),
    /// The label, the kernel's name, the command, and the run.
    Kernel(Box<(String, String, String, SimRun)>),
}

/// Replays the trace on every policy at every capacity, then under every kernel with every size of
/// memory; names vary slowest. The same trace gives the same recordings: those of policies are of
/// backend `policy` with the metrics `requests`, `misses`, `evictions` and `miss_ratio`, those of
/// kernels are of backend `sim` and count pages.
///
/// # Errors
/// A name, capacity or size that cannot be; a trace that cannot be read to its end;
/// [`LabError::Interrupted`].
pub fn replay(
    request: &ReplayRequest,
    stop: &Arc<AtomicBool>,
    progress: impl Fn(ReplayProgress) + Sync,
) -> Result<Vec<Recording>, LabError> {
    let mut caches = policy_caches(request)?;
    caches.extend(kernel_caches(request)?);
    let length = std::fs::metadata(&request.trace).map_or(0, |metadata| metadata.len());
    let total = length.saturating_mul(caches.len() as u64);
    let report = |bytes| progress(ReplayProgress::Read { bytes, total });
    let done = AtomicUsize::new(0);
    let run = |cache: &Cache| {
        let result = match cache {
            Cache::Policy(kind, capacity) => replay_policy(request, (*kind, *capacity), stop, &report),
            Cache::Kernel(run) => {
                let (label, kernel, command, run) = &**run;
                let identity = Recording::new(label, workload_name(request), "sim", kernel, run.seed);
                let result = run_recorded(run, identity, command, stop, |_| {});
                report(length); // The simulator does not tell how far in the trace it is.
                result
            }
        }?;
        let done = done.fetch_add(1, Ordering::Relaxed) + 1;
        progress(ReplayProgress::Finished { done, total: caches.len() });
        Ok(result)
    };
    let results: Vec<Result<Recording, LabError>> = caches.par_iter().map(run).collect();
    let finished = results.iter().flatten().count();
    if stop.load(Ordering::Relaxed) && finished < caches.len() {
        return Err(LabError::Interrupted { finished, total: caches.len() });
    }
    results.into_iter().collect()
}

fn policy_caches(request: &ReplayRequest) -> Result<Vec<Cache>, LabError> {
    let capacities = request.capacities.iter().map(|&objects| Capacity::new(objects));
    let capacities: Vec<Capacity> = capacities.collect::<Result<_, _>>()?;
    if let Some(value) = first_twice(&request.capacities) {
        return Err(LabError::Twice { option: "--capacity", value: value.to_string() });
    }
    if let Some(kind) = first_twice(&request.policies) {
        return Err(LabError::Twice { option: "--policy", value: kind.name().to_owned() });
    }
    let caches_of = |&kind| capacities.iter().map(move |&capacity| Cache::Policy(kind, capacity));
    Ok(request.policies.iter().flat_map(caches_of).collect())
}

fn first_twice<T: PartialEq>(values: &[T]) -> Option<&T> {
    values.iter().enumerate().find(|(index, value)| values[..*index].contains(value)).map(|(_, value)| value)
}

fn kernel_caches(request: &ReplayRequest) -> Result<Vec<Cache>, LabError> {
    let names = Names::default();
    let sysctls = sysctl_pairs(&request.sysctls, &names)?;
    let machine = MACHINES.first().expect("there are machines").name;
    let kernels = match &request.kernels[..] {
        [] => vec![newest_kernel().to_owned()],
        named => named.to_vec(),
    };
    let mut settings: Vec<(KernelSpec, Bytes, Setting)> = Vec::new();
    for kernel in &kernels {
        let kernel = kernel_named(kernel, &names)?;
        if settings.iter().any(|(other, ..)| *other == kernel) {
            return Err(LabError::Twice { option: "--kernel", value: kernel.to_string() });
        }
        for (index, mem) in request.mems.iter().enumerate() {
            let mem = parse_mem_of("--mem", mem)?;
            let twice = |given: &String| parse_mem_of("--mem", given) == Ok(mem);
            if request.mems[..index].iter().any(twice) {
                return Err(LabError::Twice { option: "--mem", value: mem.to_string() });
            }
            settings.push((kernel.clone(), mem, Setting::new(&kernel, machine, mem, &sysctls)?));
        }
    }
    if settings.is_empty() {
        return Ok(Vec::new());
    }
    let failed = |source: TraceError| LabError::Trace { path: request.trace.clone(), source };
    let trace = Replay::open(&request.trace, request.format, request.timing).map_err(failed)?;
    let caches = settings.into_iter().map(|(kernel, mem, setting)| {
        let run = sim_run(Program::Replay(trace.clone()), setting, Filesystem::Ext4, SEED_DEFAULT.0);
        let path = shell_quoted(&request.trace.to_string_lossy());
        let timing = request.timing.name();
        let command = format!("pagetide replay {path} --mem {mem} --kernel {kernel} --timing {timing}");
        Cache::Kernel(Box::new((format!("{kernel} {mem}"), kernel.to_string(), command, run)))
    });
    Ok(caches.collect())
}

fn workload_name(request: &ReplayRequest) -> String {
    format!("replay {}", file_name(&request.trace))
}

fn replay_policy(
    request: &ReplayRequest,
    (kind, capacity): (PolicyKind, Capacity),
    stop: &AtomicBool,
    report: &(dyn Fn(u64) + Sync),
) -> Result<Recording, LabError> {
    let failed = |source: TraceError| LabError::Trace { path: request.trace.clone(), source };
    let reader = TraceReader::open(&request.trace, request.format).map_err(failed)?;
    let counted = policy::replay(kind, capacity, Objects { reader, report, stop, count: 0, reported: 0 })
        .map_err(failed)?;

    let label = format!("{} {}", kind.name(), capacity.get());
    let mut recording = Recording::new(label, workload_name(request), "policy", kind.name(), 0);
    recording.metrics.insert("requests".to_owned(), counted.requests as f64);
    recording.metrics.insert("misses".to_owned(), counted.misses as f64);
    recording.metrics.insert("evictions".to_owned(), counted.evictions as f64);
    let ratio = counted.miss_ratio().unwrap_or(f64::NAN);
    recording.metrics.insert("miss_ratio".to_owned(), ratio);
    Ok(recording)
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

/// The objects of a trace; looks up now and then to report and to see whether to stop.
struct Objects<'a> {
    reader: TraceReader<std::fs::File>,
    report: &'a (dyn Fn(u64) + Sync),
    stop: &'a AtomicBool,
    count: u64,
    reported: u64,
}

impl Iterator for Objects<'_> {
    type Item = Result<u64, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        const LOOK_UP_EVERY: u64 = 1 << 14;
        self.count += 1;
        if self.count.is_multiple_of(LOOK_UP_EVERY) {
            let read = self.reader.bytes_read();
            (self.report)(read - self.reported);
            self.reported = read;
            if self.stop.load(Ordering::Relaxed) {
                return None;
            }
        }
        Some(self.reader.next()?.map(|request| request.object))
    }
}
