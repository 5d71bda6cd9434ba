//! A captured program as a workload: whoever runs it reads its trace from its file first, once for all runs of a
//! plan.
//!
//! Left out: what a replay does, which is [`workload::captured`]'s. Neighbours: [`crate::resolve::program_request`],
//! which plans replays; [`crate::plan::replay`], traces of requests
//! without a program; `recording`, the file.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use trace::Trace;
use workload::Workload;
use workload::captured::NAME;
use workload::limits::Limits;
use workload::scenario::Scenario;

use crate::error::LabError;
use crate::resolve::planned::PlannedRun;
use crate::resolve::program_file;

/// Reads a trace, of our own format or from the log of another program.
///
/// # Errors
/// No such file, or no trace that can be replayed.
pub fn read(path: &Path) -> Result<Arc<Trace>, LabError> {
    if let Some(trace) = program_file::read(path)? {
        return Ok(Arc::new(trace));
    }
    // It says what it is not.
    recording::read_trace(path).map(Arc::new).map_err(|error| LabError::Program(Box::new(error)))
}

/// Whether the file at `path` is the trace of a program, and no trace of requests.
pub fn is_one(path: &Path) -> bool {
    program_file::is_one(path)
}

/// The replay of `trace`, which lies at `path` and passes [`Trace::check`], in a cgroup with these limits: the scenario
/// `like` with another workload. Many of them share one trace.
///
/// # Errors
/// A path or a limit that no scenario can have.
pub fn scenario(
    like: &Scenario,
    path: &Path,
    trace: &Arc<Trace>,
    limits: Limits,
) -> Result<Scenario, LabError> {
    let own = like.workload.clone();
    let path = path.to_string_lossy();
    let limits = [("limit", limits.max), ("high", limits.high), ("low", limits.low)];
    let limits =
        limits.map(|(name, limit)| (name, limit.map_or("none".to_owned(), |limit| limit.to_string())));
    let mut pairs = vec![("trace", &*path)];
    pairs.extend(limits.iter().map(|(name, limit)| (*name, limit.as_str())));
    let others: Vec<(&str, String)> = match own.name() {
        NAME => own.params().iter().map(|(name, value)| (name, value.to_string())).collect(),
        _ => Vec::new(),
    };
    let all = others.iter().map(|(name, value)| (*name, value.as_str())).chain(pairs);
    // What many share is planned once: the plan of a workload that has this trace already stays.
    let planned = Workload::new(NAME, all)?;
    let workload = match own.trace() {
        Some(same) if Arc::ptr_eq(same, trace) => planned.with_plan_of(&own),
        _ => planned.with_trace(Arc::clone(trace)),
    };
    Ok(Scenario { workload, ..like.clone() })
}

/// Whether a scenario that replays a program names its trace.
pub(crate) fn check(scenario: &Scenario) -> Result<(), LabError> {
    let is_complete = scenario.workload.name() != NAME || scenario.workload.trace_path().is_some();
    let hint = "add `--param trace=FILE`; `pagetide capture -o FILE -- COMMAND` makes one";
    let refused = || LabError::refused("`program` replays a trace, and none is named", hint);
    if is_complete { Ok(()) } else { Err(refused()) }
}

/// What the results of a replay leave out: a sentence each.
pub(crate) fn remarks(scenario: &Scenario) -> Vec<String> {
    if scenario.workload.trace().is_none() {
        return Vec::new();
    }
    let any = workload::MachineSize { memory: units::Pages(0), nodes: 1, cpus: 1, disks: 1 };
    scenario.workload.remarks(any)
}

/// A scenario with its trace, if it replays one.
pub(crate) fn with_trace(scenario: &Scenario) -> Result<Cow<'_, Scenario>, LabError> {
    let Some(path) = missing(scenario) else { return Ok(Cow::Borrowed(scenario)) };
    let workload = scenario.workload.clone().with_trace(read(Path::new(path))?);
    Ok(Cow::Owned(Scenario { workload, ..scenario.clone() }))
}

/// Runs with their traces, each of which is read once.
pub(crate) fn with_traces(plan: &[PlannedRun]) -> Result<Cow<'_, [PlannedRun]>, LabError> {
    if plan.iter().all(|run| missing(&run.scenario).is_none()) {
        return Ok(Cow::Borrowed(plan));
    }
    let mut first: BTreeMap<&'static str, Workload> = BTreeMap::new();
    let mut complete = plan.to_vec();
    for PlannedRun { scenario, .. } in &mut complete {
        let Some(path) = missing(scenario) else { continue };
        let workload = scenario.workload.clone();
        scenario.workload = match first.get(path) {
            Some(same) => workload.with_plan_of(same),
            None => workload.with_trace(read(Path::new(path))?),
        };
        first.entry(path).or_insert_with(|| scenario.workload.clone());
    }
    Ok(Cow::Owned(complete))
}

/// The file of a trace that was not read.
fn missing(scenario: &Scenario) -> Option<&'static str> {
    scenario.workload.trace_path().filter(|_| scenario.workload.trace().is_none())
}
