//! A captured program as a workload: whoever runs it reads its trace from its file first, once for all runs of a
//! plan.
//!
//! Left out: what a replay does, which is [`workload::program`]'s. Neighbours: [`crate::replay`], traces of requests
//! without a program; `recording`, the file.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use trace::Trace;
use workload::Workload;
use workload::limits::Limits;
use workload::program::NAME;
use workload::scenario::Scenario;

use crate::batch::PlannedRun;
use crate::compare;
use crate::error::LabError;
use crate::program_file;
use crate::resolve::{Request, Subject};

/// A program's trace and the machines and limits to replay it with, as a person names them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramRequest {
    /// The trace file.
    pub trace: PathBuf,
    /// `memory.max` of its cgroup, each of these; none means no limit.
    pub limits: Vec<String>,
    /// `memory.high` of its cgroup.
    pub high: Option<String>,
    /// `memory.low` of its cgroup.
    pub low: Option<String>,
    /// When operations are made: `think`, `recorded`, `asap`.
    pub pace: Option<String>,
    /// Memory of the machine, each of these.
    pub mems: Vec<String>,
    /// Kernels of simulated machines; none means the newest.
    pub kernels: Vec<String>,
    /// Where it runs, each of these; none means the simulator.
    pub backends: Vec<String>,
    /// All else; its subject, kernel, memory and backend do not count.
    pub run: Request,
}

impl ProgramRequest {
    /// Every backend with every kernel, memory and limit; limits vary fastest. All share the trace.
    ///
    /// # Errors
    /// A name or value that cannot be; a trace that cannot be read.
    pub fn plan(&self) -> Result<Vec<PlannedRun>, LabError> {
        let trace = read(&self.trace)?;
        let fixed = [("high", &self.high), ("low", &self.low), ("pace", &self.pace)];
        let fixed = fixed.iter().filter_map(|(name, value)| Some(format!("{name}={}", value.as_ref()?)));
        let path = format!("trace={}", self.trace.display());
        let fixed: Vec<String> = [path].into_iter().chain(fixed).chain(self.run.params.clone()).collect();
        let mut plan: Vec<PlannedRun> = Vec::new();
        for (backend, kernel) in self.kernels_of_backends() {
            for mem in each(&self.mems) {
                for limit in each(&self.limits) {
                    let limit = limit.map(|limit| format!("limit={limit}"));
                    let request = Request {
                        subject: Subject::Workload(NAME.to_owned()),
                        backend: backend.cloned(),
                        kernel: kernel.cloned(),
                        mem: mem.cloned(),
                        params: fixed.iter().cloned().chain(limit).collect(),
                        ..self.run.clone()
                    };
                    let mut scenario = request.resolve()?;
                    scenario.workload = match plan.first() {
                        Some(first) => scenario.workload.with_plan_of(&first.scenario.workload),
                        None => scenario.workload.with_trace(Arc::clone(&trace)),
                    };
                    plan.push(PlannedRun { label: self.label(&scenario), scenario });
                }
            }
        }
        match plan.iter().enumerate().find(|(place, run)| plan[..*place].contains(run)) {
            Some((_, twice)) => Err(LabError::SameKernel(twice.label.clone())),
            None => Ok(plan),
        }
    }

    /// Only simulated kernels can be chosen by name.
    fn kernels_of_backends(&self) -> Vec<(Option<&String>, Option<&String>)> {
        let backends = each(&self.backends);
        let is_simulated = |backend: Option<&String>| backend.is_none_or(|backend| backend == "sim");
        let alone = !backends.iter().any(|backend| is_simulated(*backend));
        let kernels = |backend: Option<&String>| {
            if is_simulated(backend) || alone { each(&self.kernels) } else { vec![None] }
        };
        let with =
            |backend| kernels(backend).into_iter().map(move |kernel| (backend, kernel)).collect::<Vec<_>>();
        backends.into_iter().flat_map(with).collect()
    }

    /// The kernel, and what of memory and limits there are several of.
    fn label(&self, scenario: &Scenario) -> String {
        let mut label = compare::label(scenario);
        if let (true, Some(mem)) = (self.mems.len() > 1, scenario.mem) {
            label.push_str(&format!(" {mem}"));
        }
        if let (true, Some(limit)) = (self.limits.len() > 1, scenario.workload.params().size("limit")) {
            label.push_str(&format!(" limit {limit}"));
        }
        label
    }
}

/// Each of them, or one time nothing.
fn each(texts: &[String]) -> Vec<Option<&String>> {
    if texts.is_empty() { vec![None] } else { texts.iter().map(Some).collect() }
}

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
    if is_complete { Ok(()) } else { Err(LabError::NoTrace) }
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
