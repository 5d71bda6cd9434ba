//! Workloads of a user's own, as files: cgroups, files, tasks and what they do, phases, metrics.
//!
//! A file becomes a [`WorkloadSpec`](crate::WorkloadSpec) like those of the catalog, and runs wherever they do. Its
//! text goes with it, into scenarios, recordings and guests. The language is told in `docs/workload-files.md`.
//!
//! | file | what it holds |
//! |---|---|
//! | `read`, `steps`, `measure` | the file, what a task does, metrics: from TOML, each mistake at its place |
//! | `scope`, `expression`, `definition` | names and amounts; what a file says |
//! | `order` | that nobody waits for ever |
//! | `plan`, `layout`, `walk`, `ground` | the file on one machine; its files; the order of a step's places |
//! | [`fio`] | job files of `fio` in this language |
//! | `play`, `direct` | the run, and one where `main` lets tasks go |
//! | `start`, `act`, `tally` | how tasks start, one at work, what it counts |
//!
//! Left out: processes that fork, memory that tasks share, conditions on what happens in a run.

mod act;
mod definition;
mod direct;
mod expression;
pub mod fio;
mod ground;
mod layout;
mod measure;
mod order;
mod plan;
mod play;
mod read;
mod scope;
mod start;
mod steps;
mod tally;
mod walk;

use std::sync::Arc;

pub use crate::language::table::Mistake;
use crate::parts::footprint::{Footprint, MachineSize};
use crate::parts::need::Need;
use crate::system::System;
use crate::system::outcome::{Outcome, WorkloadError};
use crate::written::definition::{Bound, Definition, Measured, Refusal, Step, each_made};
pub use crate::written::read::is_one;
use language::metric::{MetricSpec, TIME_RESOLUTION_SECONDS, TIME_RESOLUTION_US};
use language::params::{ParamError, ParamSpec, Params};

/// What a seed decides.
const VARIES: &[&str] = &[
    "when each task begins, up to 2 ms after it was started",
    "where on the disk the files lie, within 1 MiB; sizes and orders that the file has drawn",
    "simulated: the phase of the kernel's periodic workers (vmstat each second, memory.stat every 2 s)",
];
/// Memory of the machine on which amounts are checked before there is one.
const ANY_MEMORY: u64 = 1 << 40;

/// A workload file as it was read: what the catalog knows of its own workloads, found out of the file.
#[derive(Debug)]
pub(crate) struct Described {
    pub(crate) name: &'static str,
    pub(crate) help: &'static str,
    pub(crate) params: &'static [ParamSpec],
    pub(crate) phases: &'static [&'static str],
    pub(crate) prepares: &'static [&'static str],
    pub(crate) varies: &'static [&'static str],
    pub(crate) metrics: &'static [MetricSpec],
    definition: Arc<Definition>,
}

/// A workload file with its parameters.
#[derive(Debug, Clone)]
pub(crate) struct Program {
    definition: Arc<Definition>,
    params: Params,
}

impl PartialEq for Program {
    fn eq(&self, other: &Self) -> bool {
        self.definition.text == other.definition.text && self.params == other.params
    }
}

impl Eq for Program {}

impl Described {
    /// Reads a workload file. What it names lives as long as the program: few are ever read.
    pub(crate) fn read(text: &str) -> Result<Self, Mistake> {
        let (definition, head) = read::read(text)?;
        let leaked = |text: &str| -> &'static str { text.to_owned().leak() };
        let all = |texts: &[String]| -> &'static [&'static str] {
            texts.iter().map(|text| leaked(text)).collect::<Vec<_>>().leak()
        };
        let metrics = definition.metrics.iter().filter(|metric| metric.heads).map(|metric| MetricSpec {
            name: leaked(&metric.name),
            unit: leaked(&metric.unit),
            better: metric.better,
            of: metric.of.as_deref().map(leaked),
            resolution: match metric.what {
                Measured::Seconds(_) | Measured::Took { .. } => TIME_RESOLUTION_SECONDS,
                Measured::Latency { .. } => TIME_RESOLUTION_US,
                _ => 0.0,
            },
            help: leaked(&metric.help),
        });
        let params = head.params.leak();
        let bound = Bound::new(&Params::defaults(params), ANY_MEMORY);
        let phases = definition.phases_with(&bound);
        let phases: Vec<String> =
            phases.into_iter().map(|number| definition.phases[number].clone()).collect();
        Ok(Self {
            name: leaked(&definition.name),
            help: leaked(&head.help),
            params,
            phases: all(&phases),
            prepares: all(&head.prepares),
            varies: if head.varies.is_empty() { VARIES } else { all(&head.varies) },
            metrics: metrics.collect::<Vec<_>>().leak(),
            definition: Arc::new(definition),
        })
    }

    /// The workload with these parameters.
    pub(crate) fn build(&self, params: &Params) -> Result<Program, ParamError> {
        Program { definition: Arc::clone(&self.definition), params: params.clone() }.checked()
    }

    /// The file's text.
    pub(crate) fn text(&self) -> &str {
        &self.definition.text
    }
}

/// The workload of a file that was drawn by these parameters, which are the file's own.
pub(crate) fn of_text(text: &str, params: &Params) -> Result<Program, ParamError> {
    let (definition, _) =
        read::read(text).unwrap_or_else(|mistake| panic!("a drawn file: {mistake}\n{text}"));
    Program { definition: Arc::new(definition), params: params.clone() }.checked()
}

impl Program {
    /// The same, if its parameters go together.
    fn checked(self) -> Result<Self, ParamError> {
        let bound = self.bound(ANY_MEMORY);
        if let Some(refused) = self.definition.refusals.iter().find(|refused| refused.when.holds(&bound)) {
            let Refusal { param: name, problem, hint, .. } = refused;
            return Err(ParamError::Conflict { name, problem: problem.clone(), hint: hint.clone() });
        }
        self.definition.check(&bound).map_err(|problem| ParamError::Amount {
            problem,
            hint: "change the parameters, or the amount in the file".to_owned(),
        })?;
        Ok(self)
    }

    fn bound(&self, memory_bytes: u64) -> Bound {
        Bound::new(&self.params, memory_bytes)
    }

    pub(crate) fn needs(&self) -> Vec<Need> {
        let mut needs = Vec::new();
        if !self.definition.groups.is_empty() {
            needs.push(Need::Cgroups);
        }
        let bound = self.bound(ANY_MEMORY);
        let mut add = |need: Need| {
            if !needs.contains(&need) {
                needs.push(need);
            }
        };
        for group in self.definition.groups.iter().filter(|group| group.when.holds(&bound)) {
            let limits = group.settings.iter().filter(|(file, _)| file == "memory.swap.high");
            limits.filter_map(|(_, to)| bound.setting(to)).for_each(|_| add(Need::SwapHigh));
        }
        for steps in self.definition.all_steps() {
            each_made(steps, &bound, &mut |step| match step {
                Step::Advise { advice, .. } if advice.of(&bound.words) == "huge-page" => {
                    add(Need::HugePageAdvice);
                }
                Step::Reclaim { group, swappiness, .. } => {
                    add(Need::ProactiveReclaim);
                    match swappiness.as_ref().and_then(|setting| bound.setting(setting)).as_deref() {
                        Some("max") => add(Need::AnonReclaim),
                        Some(_) => add(Need::ReclaimSwappiness),
                        None => {}
                    }
                    if group.is_none() {
                        add(Need::NodeReclaim);
                    }
                }
                _ => {}
            });
        }
        needs
    }

    pub(crate) fn footprint(&self, machine: MachineSize) -> Footprint {
        self.definition.footprint(&self.bound(machine.memory.get().saturating_mul(units::PAGE_SIZE)), machine)
    }

    pub(crate) async fn run<S: System>(&self, sys: S) -> Result<Outcome, WorkloadError> {
        play::run(sys, &self.definition, |memory| self.bound(memory)).await
    }
}
