//! A recorded trace: on plain replacement policies, how many requests miss; through the modelled
//! page cache and reclaim, what else happens.
//!
//! [`replay`]: each cache reads the trace for itself, several in parallel; the file is never held
//! in memory. [`page_cache`]: one simulated run, limited by memory instead of a number of objects.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rayon::prelude::*;
use recording::Recording;
use workload::policy::{self, Capacity, PolicyKind};
use workload::replay::{Replay, Timing};
use workload::trace::{TraceError, TraceFormat, TraceReader};

use crate::error::LabError;
use crate::resolve::Request;
use crate::simulate::SimulatedRun;

/// A trace and the caches to replay it on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplayRequest {
    /// The trace file.
    pub trace: PathBuf,
    /// Its format; `None` looks at its content.
    pub format: Option<TraceFormat>,
    /// Policies: each is replayed at each capacity.
    pub policies: Vec<PolicyKind>,
    /// Capacities in objects.
    pub capacities: Vec<u64>,
}

/// How far a replay is: told every few thousand requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplayProgress {
    /// Bytes read since the last report, by all caches together.
    pub bytes: u64,
    /// Bytes to read, by all caches together.
    pub total: u64,
}

/// Replays the trace on every policy at every capacity; policies vary slowest. The results are
/// recordings of backend `policy` with the metrics `requests`, `misses`, `evictions` and
/// `miss_ratio`; the same trace gives the same ones.
///
/// # Errors
/// A capacity that no cache has; a trace that cannot be read to its end;
/// [`LabError::Interrupted`].
pub fn replay(
    request: &ReplayRequest,
    stop: &Arc<AtomicBool>,
    progress: impl Fn(ReplayProgress) + Sync,
) -> Result<Vec<Recording>, LabError> {
    let capacities = request.capacities.iter().map(|&objects| Capacity::new(objects));
    let capacities: Vec<Capacity> = capacities.collect::<Result<_, _>>()?;
    let caches: Vec<(PolicyKind, Capacity)> = (request.policies.iter())
        .flat_map(|&kind| capacities.iter().map(move |&capacity| (kind, capacity)))
        .collect();
    let length = std::fs::metadata(&request.trace).map_or(0, |metadata| metadata.len());
    let total = length.saturating_mul(caches.len() as u64);
    let report = |bytes| progress(ReplayProgress { bytes, total });
    let results: Vec<Result<Recording, LabError>> =
        caches.par_iter().map(|&cache| replay_one(request, cache, stop, &report)).collect();
    let finished = results.iter().flatten().count();
    if stop.load(Ordering::Relaxed) && finished < caches.len() {
        return Err(LabError::Interrupted { finished, total: caches.len() });
    }
    results.into_iter().collect()
}

fn replay_one(
    request: &ReplayRequest,
    (kind, capacity): (PolicyKind, Capacity),
    stop: &AtomicBool,
    report: &(dyn Fn(u64) + Sync),
) -> Result<Recording, LabError> {
    let failed = |source: TraceError| LabError::Trace { path: request.trace.clone(), source };
    let reader = TraceReader::open(&request.trace, request.format).map_err(failed)?;
    let counted = policy::replay(kind, capacity, Objects { reader, report, stop, count: 0, reported: 0 })
        .map_err(failed)?;

    let name = file_name(&request.trace);
    let label = format!("{} {}", kind.name(), capacity.get());
    let mut recording = Recording::new(label, format!("replay {name}"), "policy", kind.name(), 0);
    recording.metrics.insert("requests".to_owned(), counted.requests as f64);
    recording.metrics.insert("misses".to_owned(), counted.misses as f64);
    recording.metrics.insert("evictions".to_owned(), counted.evictions as f64);
    let ratio = counted.miss_ratio().unwrap_or(f64::NAN);
    recording.metrics.insert("miss_ratio".to_owned(), ratio);
    Ok(recording)
}

/// A trace and the machine whose page cache it goes through.
#[derive(Debug, Clone)]
pub struct PageCacheRequest {
    /// The trace file.
    pub trace: PathBuf,
    /// Its format; `None` looks at its content.
    pub format: Option<TraceFormat>,
    /// When its requests are made.
    pub timing: Timing,
    /// Kernel, machine, memory, sysctls and seed; its workload does not run.
    pub machine: Request,
    /// The command that makes this run again.
    pub command: String,
}

/// Replays the trace as reads and writes of pages.
///
/// # Errors
/// A trace that cannot be read to its end; a machine that cannot be built;
/// [`LabError::Interrupted`].
pub fn page_cache(
    request: &PageCacheRequest,
    stop: &Arc<AtomicBool>,
    progress: impl FnMut(sim::Progress) + 'static,
) -> Result<Recording, LabError> {
    let scenario = request.machine.resolve()?;
    let failed = |source: TraceError| LabError::Trace { path: request.trace.clone(), source };
    let replay = Replay::open(&request.trace, request.format, request.timing).map_err(failed)?;
    let name = file_name(&request.trace);
    let kernel = scenario.kernel.to_string();
    let identity = Recording::new(&kernel, format!("replay {name}"), "sim", &kernel, scenario.seed.0);
    let run = SimulatedRun {
        program: sim::Program::Replay(replay),
        scenario: &scenario,
        command: request.command.clone(),
    };
    run.record(identity, stop, progress)
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
