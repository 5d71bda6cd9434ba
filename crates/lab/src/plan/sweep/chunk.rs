//! A sweep that others run: its plan in full, and a part of it to a file of a dataset.
//!
//! # Theory of operation
//! [`SweepPlan::handed_over`] is everything about a plan, as texts. Whoever runs it cuts the runs into chunks, by the
//! plan alone, and calls [`run_chunk`] for each, anywhere, in any order, on any number of machines. A chunk's bytes
//! follow from its runs: no clock and no place comes into them. What is wrong with the place (a trace that is not
//! there, no threads) is an error and no chunk; what is wrong with a run is a fact of it.
//!
//! Left out: who runs which chunk, and where files go; real kernels, which differ from run to run.
//! Neighbours: `recording::chunk` has the columns, `folder.rs` keeps whole recordings instead.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use recording::Recording;
use recording::chunk::{ChunkAxis, ChunkRun, Fact, FactKind, encode_chunk};
use serde::{Deserialize, Serialize};
use workload::scenario::Backend;
use xxhash_rust::xxh3::xxh3_128;

use super::SweepPlan;
use crate::error::LabError;
use crate::error::class::Class;
use crate::keep::folders::is_replay;
use crate::known::known_of;
use crate::plan::replay::{CacheSpec, ReplayControl, ReplayPlan, ReplayScenario, file_name};
use crate::resolve::planned::PlannedRun;
use crate::resolve::program::with_traces;
use crate::resolve::request::{Request, Subject};
use crate::run::batch::{self, Control, Ended};

/// A plan that needs nothing else to be run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HandedOver {
    /// The pagetide that planned.
    pub version: String,
    /// What was asked for: a workload, a scenario file, a trace.
    pub subject: String,
    /// What recordings call it.
    pub workload: String,
    /// What has several values, the slowest first.
    pub axes: Vec<HandedAxis>,
    /// What was given and has one value: `name=value`.
    pub fixed: Vec<String>,
    /// How many runs there are and why.
    pub size: String,
    /// What a person should know before it runs.
    pub warnings: Vec<String>,
    /// Changes with anything above and below, warnings aside: in hexadecimal.
    pub hash: String,
    /// The runs, in their order.
    pub runs: Vec<HandedRun>,
}

/// Something with its values.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HandedAxis {
    /// `kernel`, `mem`, the name of a sysctl or parameter, ...
    pub name: String,
    /// As they were written.
    pub values: Vec<String>,
}

/// A run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HandedRun {
    /// What it is called.
    pub label: String,
    /// The value of each axis.
    pub values: Vec<String>,
    /// The resolved scenario, TOML.
    pub scenario: String,
}

/// A plan with all that another program needs to run it on a cluster and show it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ClusterRequest {
    /// What to run.
    pub plan: HandedOver,
    /// The address of the cluster.
    pub scheduler: String,
    /// The dataset, if it is kept.
    pub out: Option<String>,
    /// Whether to go on with what is in it.
    pub resume: bool,
    /// Runs of one chunk, where somebody said so.
    pub chunk_runs: Option<usize>,
    /// The form of the result.
    pub format: String,
    /// Whether it shows all metrics.
    pub all: bool,
    /// How wide it is.
    pub width: usize,
    /// Whether nothing but errors is told.
    pub quiet: bool,
}

impl ClusterRequest {
    /// As JSON.
    ///
    /// # Panics
    /// Never: it is made of texts and numbers.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("texts, numbers and lists of them")
    }
}

impl HandedOver {
    /// The axes as files have them.
    pub fn chunk_axes(&self) -> Vec<ChunkAxis> {
        self.axes.iter().map(|axis| ChunkAxis::new(&axis.name, &axis.values)).collect()
    }
}

impl SweepPlan {
    /// Everything about the plan. A trace is read for its hash.
    ///
    /// # Errors
    /// It runs on real kernels, or its trace cannot be read.
    pub fn handed_over(&self) -> Result<HandedOver, LabError> {
        let planned = self.planned().unwrap_or_default();
        let real = planned.iter().map(|run| &run.scenario.backend).find(|backend| **backend != Backend::Sim);
        if let Some(backend) = real {
            return Err(LabError::refused(
                format!("a sweep into a dataset runs the model, and this one runs on `{backend}`"),
                "what runs on real kernels differs from run to run: `pagetide sweep` keeps recordings of them",
            ));
        }
        let axes = self.axes.iter();
        let run = |(run, scenario): (&super::SweepRun, String)| HandedRun {
            label: run.label.clone(),
            values: run.values.clone(),
            scenario,
        };
        let mut plan = HandedOver {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            subject: self.subject.clone(),
            workload: self.workload(),
            axes: axes
                .map(|axis| HandedAxis { name: axis.name.clone(), values: axis.values.clone() })
                .collect(),
            fixed: self.fixed.clone(),
            size: self.size(),
            warnings: Vec::new(),
            hash: String::new(),
            runs: self.runs.iter().zip(self.scenarios()?).map(run).collect(),
        };
        plan.hash = format!("{:032x}", xxh3_128(written(&plan).as_bytes()));
        plan.warnings = batch::warnings(planned);
        Ok(plan)
    }

    fn workload(&self) -> String {
        let of_trace = self.trace().map(|trace| format!("replay {}", file_name(trace)));
        let planned = self.planned().and_then(<[PlannedRun]>::first);
        of_trace.or_else(|| planned.map(|run| run.scenario.workload.name().to_owned())).unwrap_or_default()
    }
}

/// A run of a chunk: its place in the plan, and what it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlacedRun {
    /// Its place in the plan, from 0.
    pub place: u64,
    /// The run.
    pub run: HandedRun,
}

/// Runs `runs` one after the other, in this thread, and returns the bytes of their file. With `stop` set it ends
/// soon, without.
///
/// # Errors
/// A scenario that cannot be read here, a trace that is not here or has other bytes, an interruption.
pub fn run_chunk(
    axes: &[ChunkAxis],
    runs: &[PlacedRun],
    stop: &Arc<AtomicBool>,
) -> Result<Vec<u8>, LabError> {
    let is_of_trace = runs.first().is_some_and(|first| is_replay(&first.run.scenario));
    let over = if is_of_trace { replayed(runs, stop)? } else { simulated(runs, stop)? };
    Ok(encode_chunk(axes, &over))
}

fn simulated(runs: &[PlacedRun], stop: &Arc<AtomicBool>) -> Result<Vec<ChunkRun>, LabError> {
    let planned = |placed: &PlacedRun| {
        let scenario = Request::new(Subject::Text(placed.run.scenario.clone())).resolve()?;
        Ok(PlannedRun { label: placed.run.label.clone(), scenario })
    };
    let plan = runs.iter().map(planned).collect::<Result<Vec<_>, LabError>>()?;
    let plan = with_traces(&plan)?;
    let control = Control { stop: Arc::clone(stop), ..Control::default() };
    let one = |(placed, planned): (&PlacedRun, &PlannedRun)| {
        let ended = batch::outcomes(std::slice::from_ref(planned), 1, &control, true, |_, _| Ok(()))?;
        over(placed, planned.scenario.seed.0, ended.first(), runs.len())
    };
    runs.iter().zip(plan.iter()).map(one).collect()
}

fn replayed(runs: &[PlacedRun], stop: &Arc<AtomicBool>) -> Result<Vec<ChunkRun>, LabError> {
    let parsed =
        |placed: &PlacedRun| ReplayScenario::of_text(&placed.run.scenario, Path::new(&placed.run.label));
    let scenarios = runs.iter().map(parsed).collect::<Result<Vec<_>, LabError>>()?;
    let seed = |scenario: &ReplayScenario| match scenario.cache {
        CacheSpec::Kernel { seed, .. } => seed,
        CacheSpec::Policy { .. } => 0,
    };
    let control = ReplayControl { stop: Arc::clone(stop), observer: Arc::new(|_| {}), kept: None };
    // Policies share one reading; what a kernel leaves is large, and one is held at a time.
    let is_policy = |scenario: &ReplayScenario| matches!(scenario.cache, CacheSpec::Policy { .. });
    let together = if scenarios.iter().all(is_policy) { runs.len() } else { 1 };
    let mut all = Vec::new();
    for (scenarios, runs) in scenarios.chunks(together).zip(runs.chunks(together)) {
        let mut plan = ReplayPlan::from(scenarios[0].clone());
        let caches = scenarios.iter().zip(runs);
        plan.caches =
            caches.map(|(scenario, placed)| (placed.run.label.clone(), scenario.cache.clone())).collect();
        let outcomes = plan.run(1, &control, |_, _| Ok(()))?;
        for ((scenario, placed), ended) in scenarios.iter().zip(runs).zip(&outcomes) {
            all.push(over(placed, seed(scenario), Some(ended), runs.len())?);
        }
    }
    Ok(all)
}

/// The recording of one run, whole.
///
/// # Errors
/// As [`run_chunk`], and the run's own.
pub fn record(run: &HandedRun, stop: &Arc<AtomicBool>) -> Result<Recording, LabError> {
    let ended = if is_replay(&run.scenario) {
        let plan = ReplayPlan::from(ReplayScenario::of_text(&run.scenario, Path::new(&run.label))?);
        let control = ReplayControl { stop: Arc::clone(stop), observer: Arc::new(|_| {}), kept: None };
        plan.run(1, &control, |_, _| Ok(()))?
    } else {
        let scenario = Request::new(Subject::Text(run.scenario.clone())).resolve()?;
        let plan = [PlannedRun { label: run.label.clone(), scenario }];
        let control = Control { stop: Arc::clone(stop), ..Control::default() };
        batch::outcomes(&plan, 1, &control, true, |_, _| Ok(()))?
    };
    match ended.into_iter().next() {
        Some(Ended::Recorded(recording) | Ended::NotKept(recording, _)) => {
            Ok(Recording { label: run.label.clone(), ..recording })
        }
        Some(Ended::Failed(error)) => Err(error),
        Some(Ended::NotRun) | None => Err(LabError::Interrupted { finished: 0, total: 1 }),
    }
}

/// All facts of a run of the model, with what it is known to be off by.
fn with_errors(recording: &Recording) -> Vec<Fact> {
    let mut facts = facts(recording);
    if let Some(known) = known_of(recording) {
        let is_known = |fact: &&mut Fact| matches!(fact.kind, FactKind::Metric | FactKind::Vmstat);
        for fact in facts.iter_mut().filter(is_known) {
            fact.error = known.measures.get(&fact.name).map(|off| [off.median, off.p90]);
        }
    }
    facts
}

fn over(placed: &PlacedRun, seed: u64, ended: Option<&Ended>, total: usize) -> Result<ChunkRun, LabError> {
    let facts = match ended {
        Some(Ended::Recorded(recording) | Ended::NotKept(recording, _)) => with_errors(recording),
        Some(Ended::Failed(LabError::Interrupted { .. }) | Ended::NotRun) | None => {
            return Err(LabError::Interrupted { finished: 0, total });
        }
        Some(Ended::Failed(error)) => vec![said(ERROR, Some(code(error.class())), error.told())],
    };
    let HandedRun { label, values, .. } = placed.run.clone();
    Ok(ChunkRun { run: placed.place, label, seed, values, facts })
}

/// What the command line ends with where this is the worst that happened.
const fn code(class: Class) -> f64 {
    match class {
        Class::Invariant => 3.0,
        Class::Internal => 2.0,
        _ => 1.0,
    }
}

const ERROR: &str = "error";
const BACKEND: &str = "backend";
const KERNEL: &str = "kernel";
const COMMAND: &str = "command";
const NOTE: &str = "note";
const OOM_KILL: &str = "oom_kill_seconds";
const PANIC: &str = "panic_seconds";
const STALLED: &str = "stall_seconds";
const SIMULATED: &str = "simulated_seconds";
const EVENTS: &str = "events";

fn said(name: &str, value: Option<f64>, text: String) -> Fact {
    Fact { kind: FactKind::Run, name: name.to_owned(), value, text: Some(text), error: None }
}

fn counted(kind: FactKind, name: &str, value: f64) -> Fact {
    Fact { kind, name: name.to_owned(), value: Some(value), text: None, error: None }
}

const fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

/// What of a recording a dataset has.
pub(crate) fn facts(recording: &Recording) -> Vec<Fact> {
    let metrics = recording.metrics.iter().map(|(name, &value)| counted(FactKind::Metric, name, value));
    let vmstat = recording.vmstat.iter().map(|(name, &value)| counted(FactKind::Vmstat, name, value as f64));
    let memcg = recording.memcg.iter().flat_map(|(path, counters)| {
        let named = move |(name, &value): (&String, &u64)| {
            counted(FactKind::Memcg, &format!("{path}:{name}"), value as f64)
        };
        counters.iter().map(named)
    });
    let mut facts: Vec<Fact> = metrics.chain(vmstat).chain(memcg).collect();
    for (name, text) in
        [(BACKEND, &recording.backend), (KERNEL, &recording.kernel), (COMMAND, &recording.command)]
    {
        facts.push(said(name, None, text.clone()));
    }
    facts.extend(recording.notes.iter().map(|note| said(NOTE, None, note.clone())));
    if let Some(kill) = recording.ended_by() {
        let name = if kill.panicked { PANIC } else { OOM_KILL };
        facts.push(said(name, Some(seconds(kill.at_ns)), kill.task.clone()));
    }
    if recording.is_simulated() {
        let stalled = recording.stalls.iter().map(|stall| stall.total_ns).sum();
        let known = [(STALLED, seconds(stalled)), (SIMULATED, seconds(recording.simulated_ns))];
        facts.extend(known.map(|(name, value)| counted(FactKind::Run, name, value)));
        facts.push(counted(FactKind::Run, EVENTS, recording.events as f64));
    }
    facts
}

/// What a report of a sweep shows of a run: as much of its recording as a dataset has, or why it failed.
///
/// # Errors
/// The run's own error.
pub fn recording_of(run: &ChunkRun, workload: &str) -> Result<Recording, String> {
    let text = |name: &str| {
        let of = |fact: &&Fact| fact.kind == FactKind::Run && fact.name == name;
        run.facts.iter().find(of).and_then(|fact| fact.text.clone())
    };
    if let Some(error) = text(ERROR) {
        return Err(error);
    }
    let [backend, kernel] = [BACKEND, KERNEL].map(|name| text(name).unwrap_or_default());
    let mut recording = Recording::new(&run.label, workload, &backend, &kernel, run.seed);
    recording.command = text(COMMAND).unwrap_or_default();
    for Fact { kind, name, value, text, .. } in &run.facts {
        let (value, text) = (value.unwrap_or_default(), text.clone().unwrap_or_default());
        let ns = (value * 1e9).round() as u64;
        match (kind, name.as_str()) {
            (FactKind::Metric, _) => drop(recording.metrics.insert(name.clone(), value)),
            (FactKind::Vmstat, _) => drop(recording.vmstat.insert(name.clone(), value as u64)),
            (FactKind::Memcg, _) => {
                let (path, counter) = name.rsplit_once(':').unwrap_or((name, ""));
                let counters = recording.memcg.entry(path.to_owned()).or_default();
                counters.insert(counter.to_owned(), value as u64);
            }
            (FactKind::Run, NOTE) => recording.notes.push(text),
            (FactKind::Run, OOM_KILL | PANIC) => recording.oom_kills.push(recording::OomKill {
                at_ns: ns,
                task: text,
                panicked: name == PANIC,
                ..Default::default()
            }),
            (FactKind::Run, STALLED) => recording.stalls.push(recording::Stall {
                task: String::new(),
                reason: String::new(),
                count: 1,
                total_ns: ns,
                max_ns: ns,
            }),
            (FactKind::Run, SIMULATED) => recording.simulated_ns = ns,
            (FactKind::Run, EVENTS) => recording.events = value as u64,
            (FactKind::Run, _) => {}
        }
    }
    Ok(recording)
}

/// The plan as JSON.
///
/// # Panics
/// Never: it is made of texts.
pub fn written(plan: &HandedOver) -> String {
    serde_json::to_string(plan).expect("texts and lists of texts")
}

/// A plan that [`written`] wrote.
///
/// # Errors
/// It is none, or another version's.
pub fn read_handed_over(json: &str) -> Result<HandedOver, LabError> {
    let plan: HandedOver = serde_json::from_str(json).map_err(|error| LabError::Refused {
        message: format!("this is no plan of a sweep: {error}"),
        hint: None,
    })?;
    let here = env!("CARGO_PKG_VERSION");
    if plan.version != here {
        let message =
            format!("the sweep was planned by pagetide {}, and this is pagetide {here}", plan.version);
        return Err(LabError::refused(message, "install the same version everywhere, workers included"));
    }
    Ok(plan)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use recording::chunk::decode_chunk;
    use workload::replay::ReplayOptions;

    use super::super::{SweepRequest, Swept, plan_up_to};
    use super::*;

    fn plan(subject: &str, options: &[(Swept, &str)]) -> HandedOver {
        let request = SweepRequest {
            subject: subject.to_owned(),
            options: options.iter().map(|&(what, text)| (what, text.to_owned())).collect(),
            seeds: None,
            base: Request::new(Subject::of_argument(subject)),
            reading: ReplayOptions::default(),
        };
        plan_up_to(&request, 2000).unwrap().handed_over().unwrap()
    }

    fn placed(plan: &HandedOver) -> Vec<PlacedRun> {
        let runs = plan.runs.iter().cloned().enumerate();
        runs.map(|(place, run)| PlacedRun { place: place as u64, run }).collect()
    }

    fn small() -> HandedOver {
        let sizes = [(Swept::Param, "hot=4M"), (Swept::Param, "stream=16M"), (Swept::Mem, "64M")];
        plan(
            "hot-and-stream",
            &[&sizes[..], &[(Swept::Kernel, "linux-5.4,linux-6.12"), (Swept::Seed, "1,2")]].concat(),
        )
    }

    /// What a chunk holds of a run is what the run leaves where nobody cuts anything.
    #[test]
    fn a_chunk_has_the_figures_of_its_runs() {
        let plan = small();
        let again = written(&plan);
        assert_eq!(read_handed_over(&again).unwrap(), plan);
        let (axes, runs) = (plan.chunk_axes(), placed(&plan));
        let bytes = run_chunk(&axes, &runs[1..3], &Arc::default()).unwrap();
        assert_eq!(run_chunk(&axes, &runs[1..3], &Arc::default()).unwrap(), bytes);
        let over = decode_chunk(&axes, bytes, Path::new("chunk")).unwrap();
        assert_eq!(over.iter().map(|run| run.run).collect::<Vec<_>>(), [1, 2]);
        for (run, placed) in over.iter().zip(&runs[1..3]) {
            let scenario = Request::new(Subject::Text(placed.run.scenario.clone())).resolve().unwrap();
            let whole =
                crate::run::simulate::simulate(&scenario, &run.label, &Arc::default(), |_| {}).unwrap();
            let of_chunk = recording_of(run, "hot-and-stream").unwrap();
            assert_eq!(
                (&of_chunk.metrics, &of_chunk.vmstat, &of_chunk.memcg),
                (&whole.metrics, &whole.vmstat, &whole.memcg)
            );
            assert_eq!((&of_chunk.command, of_chunk.events), (&whole.command, whole.events));
            assert_eq!((run.seed, &run.values), (whole.seed, &placed.run.values));
        }
    }

    #[test]
    fn a_plan_is_told_from_any_other() {
        assert_eq!(small().hash, small().hash);
        let other = plan("hot-and-stream", &[(Swept::Kernel, "linux-5.4,linux-6.12"), (Swept::Seed, "1,2")]);
        assert_ne!(small().hash, other.hash);
        let old = written(&HandedOver { version: "0.0.1".to_owned(), ..small() });
        let error = read_handed_over(&old).unwrap_err().to_string();
        assert!(error.contains("planned by pagetide 0.0.1"), "{error}");
    }

    #[test]
    fn a_trace_that_is_not_here_is_no_result_of_a_run() {
        let folder = tempfile::tempdir().unwrap();
        let trace = folder.path().join("trace.csv");
        std::fs::write(&trace, "1,10,4096\n2,11,4096\n3,10,4096\n").unwrap();
        let name = trace.to_str().unwrap();
        let policies = plan(name, &[(Swept::Policy, "lru,clock"), (Swept::Capacity, "1,2")]);
        let kernels = plan(name, &[(Swept::Mem, "64M,128M")]);
        for plan in [policies, kernels] {
            let (axes, runs) = (plan.chunk_axes(), placed(&plan));
            let all = run_chunk(&axes, &runs, &Arc::default()).unwrap();
            let all = decode_chunk(&axes, all, Path::new("chunk")).unwrap();
            let one = run_chunk(&axes, &runs[1..2], &Arc::default()).unwrap();
            assert_eq!(decode_chunk(&axes, one, Path::new("chunk")).unwrap(), all[1..2]);
            assert!(recording_of(&all[0], "trace").unwrap().metrics.len() > 2);
            std::fs::rename(&trace, folder.path().join("away")).unwrap();
            run_chunk(&axes, &runs, &Arc::default()).expect_err("the trace is gone");
            std::fs::rename(folder.path().join("away"), &trace).unwrap();
        }
    }

    #[test]
    fn a_chunk_that_is_stopped_is_none() {
        let plan = small();
        let stop = Arc::new(AtomicBool::new(false));
        stop.store(true, Ordering::Relaxed);
        let error = run_chunk(&plan.chunk_axes(), &placed(&plan), &stop).unwrap_err();
        assert!(matches!(error, LabError::Interrupted { .. }), "{error}");
    }
}
