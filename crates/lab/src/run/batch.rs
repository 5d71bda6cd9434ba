//! Many scenarios, whole runs in parallel, results in the order of the plan.
//!
//! Runs share nothing, so neither the number of jobs nor who finishes first changes a result. A
//! stop flag ends what runs and starts nothing more; what has finished is kept. After a run that
//! failed no other is started either, but in sweeps.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use linux::Told;
use rayon::prelude::*;
use recording::Recording;
use sim::run::{Checks, Watch};
use units::Nanos;
use workload::scenario::Backend;

use crate::error::LabError;
use crate::resolve::planned::PlannedRun;
use crate::resolve::program::with_traces;
use crate::resolve::request as resolve;
use crate::run::in_time::in_time;
use crate::run::kept::KeepRuns;
use crate::run::real::{self, HostPolicy};
use crate::run::simulate::{plan, simulate_watched};

/// What an observer is told.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum RunEvent<'a> {
    /// A run begins.
    Started {
        /// Its place in the plan, from 0.
        index: usize,
        /// The run.
        run: &'a PlannedRun,
    },
    /// A run has come this far; told every few thousand events.
    Advanced {
        /// Its place in the plan.
        index: usize,
        /// Simulated time.
        simulated: Nanos,
    },
    /// A real kernel, or what starts it, has something to say.
    Told {
        /// The run's place in the plan.
        index: usize,
        /// What it says.
        told: Told<'a>,
    },
    /// A run is over and has a recording.
    Finished {
        /// Its place in the plan.
        index: usize,
        /// The run.
        run: &'a PlannedRun,
        /// Simulated time of the whole run; zero on a real kernel.
        simulated: Nanos,
        /// Time on a clock.
        wall: Nanos,
    },
}

/// Who watches, and how to stop.
#[derive(Clone)]
pub struct Control {
    /// Set to end all runs soon.
    pub stop: Arc<AtomicBool>,
    /// Called from the threads that run; must not block for long.
    pub observer: Arc<dyn Fn(RunEvent<'_>) + Send + Sync>,
    /// What runs on this host may do.
    pub host: HostPolicy,
    /// Simulated runs write their recordings while they go, with events, and `keep` of the functions here is
    /// told of none of them; none: it is told of all.
    pub kept: Option<KeepRuns>,
    /// Simulated runs that are not kept look at all of their state after every event.
    pub check: bool,
}

impl Default for Control {
    /// Nobody watches and nobody stops.
    fn default() -> Self {
        let (host, observer) = (HostPolicy::default(), Arc::new(|_: RunEvent<'_>| {}));
        Self { stop: Arc::default(), observer, host, kept: None, check: false }
    }
}

impl std::fmt::Debug for Control {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Control").field("stop", &self.stop).finish_non_exhaustive()
    }
}

/// What became of a planned run.
#[derive(Debug)]
#[allow(clippy::large_enum_variant)] // Most runs end with a recording.
pub enum Ended {
    /// It was not run: the user stopped the work, or another run had failed.
    NotRun,
    /// It left a recording.
    Recorded(Recording),
    /// It has ended, and its recording could not be written.
    NotKept(Recording, LabError),
    /// It left none.
    Failed(LabError),
}

impl Ended {
    /// The recording that it left.
    pub const fn recording(&self) -> Option<&Recording> {
        match self {
            Self::Recorded(recording) | Self::NotKept(recording, _) => Some(recording),
            Self::NotRun | Self::Failed(_) => None,
        }
    }

    /// Why it left none although it was run, or none on disk.
    pub const fn failure(&self) -> Option<&LabError> {
        match self {
            Self::Failed(error) | Self::NotKept(_, error) => Some(error),
            Self::NotRun | Self::Recorded(_) => None,
        }
    }
}

impl From<Result<Recording, LabError>> for Ended {
    fn from(result: Result<Recording, LabError>) -> Self {
        match result {
            Ok(recording) => Self::Recorded(recording),
            Err(LabError::NotKept(recording, error)) => Self::NotKept(*recording, error.into()),
            Err(error) => Self::Failed(error),
        }
    }
}

/// What is left of a batch.
#[derive(Debug)]
pub struct Batch {
    /// The recording of each run of the plan, where it finished.
    pub recordings: Vec<Option<Recording>>,
    /// Why some did not: the first failure in the order of the plan, or the interruption.
    pub error: Option<LabError>,
}

impl Batch {
    /// All recordings.
    ///
    /// # Errors
    /// The batch's error.
    pub fn into_result(self) -> Result<Vec<Recording>, LabError> {
        match self.error {
            Some(error) => Err(error),
            None => Ok(self.recordings.into_iter().flatten().collect()),
        }
    }
}

/// What a person should know before `plan` runs, each sentence once.
pub fn warnings(plan: &[PlannedRun]) -> Vec<String> {
    let mut told: Vec<String> = Vec::new();
    for warning in plan.iter().flat_map(|run| resolve::warnings(&run.scenario)) {
        if !told.contains(&warning) {
            told.push(warning);
        }
    }
    told
}

/// Runs all of `plan`, up to `jobs` at a time (0: one for each CPU). `keep` is called with each
/// recording as soon as it is there, for instance to write it to disk.
///
/// # Errors
/// Only when no threads can be started; what goes wrong with a run is part of the [`Batch`].
pub fn run_all(
    plan: &[PlannedRun],
    jobs: usize,
    control: &Control,
    keep: impl Fn(usize, &Recording) -> Result<(), LabError> + Sync,
) -> Result<Batch, LabError> {
    let results = outcomes(plan, jobs, control, false, keep)?;
    Ok(collected(results, control.stop.load(Ordering::Relaxed)))
}

/// [`run_all`] of what is not `finished`, of which there is an entry for each run of `plan`. `keep` is told
/// the place in the whole plan, the observer that in what is left of it.
///
/// # Errors
/// As [`run_all`].
pub fn run_rest(
    plan: &[PlannedRun],
    finished: Vec<Option<Recording>>,
    jobs: usize,
    control: &Control,
    keep: impl Fn(usize, &Recording) -> Result<(), LabError> + Sync,
) -> Result<Batch, LabError> {
    let places: Vec<usize> = (0..plan.len()).filter(|&place| finished[place].is_none()).collect();
    let left: Vec<PlannedRun> = places.iter().map(|&place| plan[place].clone()).collect();
    let kept = control.kept.clone().map(|kept| kept.of_places(places.clone()));
    let control = &Control { kept, ..control.clone() };
    let keep = |index: usize, recording: &Recording| keep(places[index], recording);
    let new = outcomes(&left, jobs, control, false, keep)?;
    let mut all: Vec<Ended> =
        finished.into_iter().map(|recording| recording.map_or(Ended::NotRun, Ended::Recorded)).collect();
    for (place, outcome) in places.into_iter().zip(new) {
        all[place] = outcome;
    }
    Ok(collected(all, control.stop.load(Ordering::Relaxed)))
}

/// [`run_all`] with what became of each run. With `go_on` a failure does not keep others from starting.
pub(crate) fn outcomes(
    plan: &[PlannedRun],
    jobs: usize,
    control: &Control,
    go_on: bool,
    keep: impl Fn(usize, &Recording) -> Result<(), LabError> + Sync,
) -> Result<Vec<Ended>, LabError> {
    let plan = &*with_traces(plan)?;
    // Real kernels are timed and share this machine: one at a time.
    let real = plan.iter().any(|run| run.scenario.backend != Backend::Sim);
    let jobs = if real { 1 } else { jobs.min(plan.len().max(1)) };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(jobs).build()?;
    let failed = AtomicBool::new(false);
    let run_one = |(index, run): (usize, &PlannedRun)| {
        if failed.load(Ordering::Relaxed) || control.stop.load(Ordering::Relaxed) {
            return Ended::NotRun;
        }
        let is_kept = control.kept.is_some() && run.scenario.backend == Backend::Sim;
        let ended = match run_planned(index, run, control) {
            Ok(recording) if is_kept => Ended::Recorded(recording),
            Ok(recording) => match keep(index, &recording) {
                Ok(()) => Ended::Recorded(recording),
                Err(error) => Ended::NotKept(recording, error),
            },
            Err(error) => Ended::from(Err(error)),
        };
        failed.fetch_or(ended.failure().is_some() && !go_on, Ordering::Relaxed);
        ended
    };
    Ok(pool.install(|| plan.par_iter().enumerate().with_max_len(1).map(run_one).collect()))
}

fn run_planned(index: usize, run: &PlannedRun, control: &Control) -> Result<Recording, LabError> {
    (control.observer)(RunEvent::Started { index, run });
    let recording = ended_in_time(run, control, |stop| one(index, run, control, stop))?;
    (control.observer)(RunEvent::Finished {
        index,
        run,
        simulated: Nanos(recording.simulated_ns),
        wall: Nanos(recording.wall_ns.unwrap_or(0)),
    });
    Ok(recording)
}

/// What `work`, which is `run` or a part of it, comes to within the time that a run may take.
pub(crate) fn ended_in_time<T>(
    run: &PlannedRun,
    control: &Control,
    work: impl FnOnce(&Arc<AtomicBool>) -> Result<T, LabError>,
) -> Result<T, LabError> {
    let max = control.host.max_time;
    let (result, too_long) = in_time(max.map(|max| Duration::from_nanos(max.get())), &control.stop, work);
    match (result, max) {
        (Err(LabError::Interrupted { .. }), Some(max))
            if too_long && !control.stop.load(Ordering::Relaxed) =>
        {
            Err(LabError::TooLong { label: run.label.clone(), seed: run.scenario.seed.0, max })
        }
        (result, _) => result,
    }
}

fn one(
    index: usize,
    run: &PlannedRun,
    control: &Control,
    stop: &Arc<AtomicBool>,
) -> Result<Recording, LabError> {
    let observer = Arc::clone(&control.observer);
    let progress = move |progress: sim::Progress| {
        observer(RunEvent::Advanced { index, simulated: progress.now });
    };
    match run.scenario.backend {
        Backend::Sim => match &control.kept {
            None => {
                let checks = if control.check { Checks::EveryEvent } else { Checks::default() };
                let wanted = Watch { checks, ..Watch::default() };
                simulate_watched(&run.scenario, &run.label, stop, progress, wanted)
            }
            Some(keep) => {
                let (spec, identity) = plan(&run.scenario, &run.label)?;
                keep.run(index, &spec, identity, stop, progress)
            }
        },
        Backend::Host | Backend::Vm(_) | Backend::Uml(_) => {
            let tell = |told: Told<'_>| (control.observer)(RunEvent::Told { index, told });
            real::run(&run.scenario, &run.label, &control.host, stop, &tell)
        }
    }
}

fn collected(results: Vec<Ended>, stopped: bool) -> Batch {
    let total = results.len();
    let mut batch = Batch { recordings: Vec::with_capacity(total), error: None };
    for result in results {
        let (recording, error) = match result {
            Ended::Recorded(recording) => (Some(recording), None),
            Ended::NotKept(recording, error) => (Some(recording), Some(error)),
            Ended::Failed(error) => (None, Some(error)),
            Ended::NotRun => (None, None),
        };
        batch.recordings.push(recording);
        // An interruption is reported for the batch as a whole, below.
        let error = error.filter(|error| !matches!(error, LabError::Interrupted { .. }));
        batch.error = batch.error.take().or(error);
    }
    let finished = batch.recordings.iter().flatten().count();
    if batch.error.is_none() && stopped && finished < total {
        batch.error = Some(LabError::Interrupted { finished, total });
    }
    batch
}
