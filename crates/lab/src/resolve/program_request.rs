//! A captured program on several machines and under several limits: what a person asks for, to a plan of runs.
//!
//! Neighbours: [`crate::resolve::program`], the trace from its file; [`crate::plan::replay`], the same for
//! traces of requests.

use std::path::PathBuf;
use std::sync::Arc;

use workload::captured::NAME;
use workload::scenario::Scenario;

use crate::error::LabError;
use crate::resolve::planned::PlannedRun;
use crate::resolve::program::read;
use crate::resolve::request::{Request, Subject};
use crate::resolve::texts::first_twice;
use crate::resolve::variant::label;

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
        match first_twice(&plan) {
            Some(twice) => Err(LabError::same_kernel(&twice.label)),
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
        let mut label = label(scenario);
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
