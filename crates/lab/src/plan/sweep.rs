//! Sweeps: one workload, or one trace, with every combination of several values of several things.
//!
//! What has several values is an axis; the plan is the product of all axes, the first one slowest, in
//! the order in which they were given. A run that fails does not stop the others.
//!
//! | file | what it holds |
//! |---|---|
//! | `sweep/values.rs` | lists and ranges as a person writes them |
//! | `sweep/folder.rs` | what has finished, on disk, so that a sweep can go on |
//! | `sweep/chunk.rs` | a plan to be handed over, and a part of it run anywhere to a file of a dataset |
//!
//! Left out: backends as an axis (`compare` has them), and which combination is the best one.

pub mod chunk;
pub(crate) mod folder;
mod values;

use std::path::{Path, PathBuf};

use policy::PolicySpec;
use recording::Recording;
use units::{Bytes, parse_size};
use workload::WorkloadSpec;
use workload::replay::ReplayOptions;
use workload::scenario::parse_interval;

pub use folder::SweepFolder;

use crate::error::LabError;
use crate::error::class::Class;
use crate::plan::replay::{
    CacheSpec, Outcomes, ReplayControl, ReplayPlan, ReplayRequest, ReplayScenario, STDIN,
};
use crate::resolve::planned::PlannedRun;
use crate::resolve::request::{Request, Subject};
use crate::run::batch::{self, Control, Ended};
use values::{Kind, values};

pub use crate::resolve::planned::{PlanOf, RUNS_MAX, RUNS_MAX_OF_DATASET};

/// An option that can have several values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Swept {
    /// `--kernel`.
    Kernel,
    /// `--machine`.
    Machine,
    /// `--mem`.
    Mem,
    /// `--swap`.
    Swap,
    /// `--set`, with the name of a sysctl before its values.
    Set,
    /// `--param`, with the name of a parameter before its values.
    Param,
    /// `--seed`.
    Seed,
    /// `--policy`.
    Policy,
    /// `--capacity`.
    Capacity,
}

impl Swept {
    /// The name of the axis, which for sysctls and parameters is their own.
    const fn name(self) -> &'static str {
        match self {
            Self::Kernel => "kernel",
            Self::Machine => "machine",
            Self::Mem => "mem",
            Self::Swap => "swap",
            Self::Set => "set",
            Self::Param => "param",
            Self::Seed => "seed",
            Self::Policy => "policy",
            Self::Capacity => "capacity",
        }
    }

    const fn kind(self) -> Kind {
        match self {
            Self::Kernel | Self::Machine | Self::Swap | Self::Policy => Kind::Name,
            Self::Mem => Kind::Size,
            Self::Capacity => Kind::Count,
            Self::Set | Self::Param | Self::Seed => Kind::Any,
        }
    }
}

/// A sweep as a person asks for it.
#[derive(Debug, Clone)]
pub struct SweepRequest {
    /// A workload, a scenario file (`*.toml`), or a trace; `-` is a trace on standard input.
    pub subject: String,
    /// The options that were given, in that order, as they were written.
    pub options: Vec<(Swept, String)>,
    /// Runs with so many seeds, from the first one on.
    pub seeds: Option<u64>,
    /// What else is asked of a workload's runs: which it is, backend and guest. What `options` name is not looked at.
    pub base: Request,
    /// How a trace is read.
    pub reading: ReplayOptions,
}

/// Something with its values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Axis {
    pub(crate) what: Swept,
    /// `kernel`, `mem`, the name of a sysctl or parameter, ...
    pub name: String,
    /// As they were written, in their order.
    pub values: Vec<String>,
}

/// One combination.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SweepRun {
    /// What its recording is called: `name=value` for each axis.
    pub label: String,
    /// The value of each axis.
    pub values: Vec<String>,
}

/// A sweep that can run: all names and values of all runs are checked.
#[derive(Debug, Clone)]
pub struct SweepPlan {
    /// What it is for.
    pub of: PlanOf,
    /// What was asked for.
    pub subject: String,
    /// What has several values, the slowest first.
    pub axes: Vec<Axis>,
    /// What was given and has one value: `name=value`.
    pub fixed: Vec<String>,
    /// The runs.
    pub runs: Vec<SweepRun>,
    work: Work,
}

#[derive(Debug, Clone)]
enum Work {
    Scenarios(Vec<PlannedRun>),
    Replays(ReplayPlan),
}

/// Resolves every combination of `request`.
///
/// # Errors
/// Values that cannot be read or do not go together, nothing to sweep over, too many runs, and what
/// [`Request::resolve`] and [`ReplayRequest::plan`] report.
pub fn plan(request: &SweepRequest) -> Result<SweepPlan, LabError> {
    plan_up_to(request, RUNS_MAX)
}

/// [`plan`] with `max` runs at most.
///
/// # Errors
/// As [`plan`].
pub fn plan_up_to(request: &SweepRequest, max: usize) -> Result<SweepPlan, LabError> {
    let plan = plan_points(request, max)?;
    if plan.axes.is_empty() {
        let hint = "give one option several values, as in `--mem 256M..2G` or `--set vm.swappiness=10,60`";
        return Err(LabError::refused("there is nothing to sweep over: no option has several values", hint));
    }
    Ok(plan)
}

/// [`plan_up_to`], where a single combination will do.
///
/// # Errors
/// As [`plan`], but for nothing to sweep over.
pub fn plan_points(request: &SweepRequest, max: usize) -> Result<SweepPlan, LabError> {
    let is_trace = is_trace(&request.subject);
    let mut all = axes(&request.options)?;
    check_options(&all, &request.subject, is_trace)?;
    if let Some(seeds) = request.seeds {
        add_seeds(&mut all, seeds, max, request, is_trace)?;
    }
    let runs: u128 = all.iter().map(|axis| axis.values.len() as u128).product();
    if runs > max as u128 {
        let message = format!("this makes {runs} runs; a sweep takes {max} at most");
        return Err(LabError::refused(message, values::LARGER_STEPS));
    }
    let combinations = product(&all);
    let is_axis = |axis: &Axis| axis.values.len() > 1;
    let run = |values: &Vec<&str>| {
        let pairs = all.iter().zip(values).filter(|(axis, _)| is_axis(axis));
        let label: Vec<String> =
            pairs.clone().map(|(axis, value)| format!("{}={value}", axis.name)).collect();
        SweepRun { label: label.join(", "), values: pairs.map(|(_, value)| (*value).to_owned()).collect() }
    };
    let runs: Vec<SweepRun> = combinations.iter().map(run).collect();
    let work = if is_trace {
        Work::Replays(replays(request, &all, &combinations, &runs)?)
    } else {
        Work::Scenarios(scenarios(request, &all, &combinations, &runs)?)
    };
    let (axes, fixed): (Vec<Axis>, Vec<Axis>) = all.into_iter().partition(is_axis);
    let fixed = fixed.into_iter().map(|axis| format!("{}={}", axis.name, axis.values[0])).collect();
    Ok(SweepPlan { of: PlanOf::Sweep, subject: request.subject.clone(), axes, fixed, runs, work })
}

/// Sizes of memory as a list or range: `64M,96M`, `64M..1G`.
///
/// # Errors
/// A text that is none.
pub(crate) fn sizes(option: &'static str, text: &str) -> Result<Vec<Bytes>, LabError> {
    let read =
        |text: &String| parse_size(text).map_err(|_| values::wrong(option, text, "is no size, such as 64M"));
    values(option, text, Kind::Size)?.iter().map(read).collect()
}

/// A workload's name or a scenario file is none; of the rest, what could be a file is one.
fn is_trace(subject: &str) -> bool {
    let is_file = !matches!(Subject::of_argument(subject), Subject::Workload(_));
    let could_be = subject == STDIN || subject.contains(['.', '/']) || Path::new(subject).is_file();
    !is_file && WorkloadSpec::find(subject).is_err() && could_be
}

/// Options to axes: one for each sysctl and parameter, and one for each other option, which may be
/// repeated.
fn axes(options: &[(Swept, String)]) -> Result<Vec<Axis>, LabError> {
    let mut axes: Vec<Axis> = Vec::new();
    for (what, text) in options {
        let what = *what;
        let (name, text) = match what {
            Swept::Set => workload::params::split_pair(text).map_err(|_| LabError::not_a_pair(text))?,
            Swept::Param => workload::params::split_pair(text)?,
            _ => (what.name(), text.as_str()),
        };
        let listed = values(name, text, what.kind())?;
        match axes.iter_mut().find(|axis| axis.what == what && axis.name == name) {
            None => axes.push(Axis { what, name: name.to_owned(), values: listed }),
            Some(_) if matches!(what, Swept::Set | Swept::Param) => {
                let hint = format!("list its values in one option: `{name}=A,B`");
                return Err(LabError::refused(format!("`{name}` is given twice"), hint));
            }
            Some(axis) => {
                if let Some(value) = listed.iter().find(|value| axis.values.contains(value)) {
                    return Err(values::twice(name, value));
                }
                axis.values.extend(listed);
            }
        }
    }
    Ok(axes)
}

fn check_options(axes: &[Axis], subject: &str, is_trace: bool) -> Result<(), LabError> {
    let has = |what: Swept| axes.iter().any(|axis| axis.what == what);
    let refused = |what: Swept, of, is| {
        let message = || format!("`--{}` is {of}, and `{subject}` is {is}", what.name());
        if has(what) { Err(LabError::refused(message(), "leave it out")) } else { Ok(()) }
    };
    if !is_trace {
        refused(Swept::Policy, "for traces", "a workload")?;
        return refused(Swept::Capacity, "for traces", "a workload");
    }
    refused(Swept::Param, "for workloads", "a trace")?;
    let of_kernels = [Swept::Kernel, Swept::Machine, Swept::Mem, Swept::Swap, Swept::Set, Swept::Seed];
    if (has(Swept::Policy) || has(Swept::Capacity)) && of_kernels.into_iter().any(has) {
        let message = "a sweep is over policies or over kernels, not over both";
        return Err(LabError::refused(message, "make two sweeps, or `pagetide replay` with both"));
    }
    Ok(())
}

/// `--seeds N` is an axis of N seeds from the first one on.
fn add_seeds(
    axes: &mut Vec<Axis>,
    seeds: u64,
    max: usize,
    request: &SweepRequest,
    is_trace: bool,
) -> Result<(), LabError> {
    if !(1..=max as u64).contains(&seeds) {
        return Err(LabError::seeds(seeds, max as u64));
    }
    let given = axes.iter().position(|axis| axis.what == Swept::Seed).map(|at| axes.remove(at));
    let first = match given {
        Some(axis) if axis.values.len() > 1 => {
            let message = "`--seeds` counts from one `--seed`, and several are given";
            return Err(LabError::refused(message, "give `--seeds N`, or list them: `--seed 1..N`"));
        }
        Some(axis) => seed(&axis.values[0])?,
        None if is_trace => workload::scenario::SEED_DEFAULT.0,
        None => {
            let first: Vec<&str> = axes.iter().map(|axis| axis.values[0].as_str()).collect();
            scenario_request(request, axes, &first)?.resolve()?.seed.0
        }
    };
    let values = (0..seeds).map(|offset| first.wrapping_add(offset).to_string()).collect();
    axes.push(Axis { what: Swept::Seed, name: Swept::Seed.name().to_owned(), values });
    Ok(())
}

fn seed(text: &str) -> Result<u64, LabError> {
    let problem = "is no seed, a whole number from 0 to 2^64 - 1";
    text.parse().map_err(|_| values::wrong("seed", text, problem))
}

/// All combinations of values, those of the last axis next to each other.
fn product(axes: &[Axis]) -> Vec<Vec<&str>> {
    let mut all: Vec<Vec<&str>> = vec![Vec::new()];
    for axis in axes {
        let mut longer = Vec::with_capacity(all.len() * axis.values.len());
        for begun in &all {
            longer.extend(axis.values.iter().map(|value| [&begun[..], &[value.as_str()]].concat()));
        }
        all = longer;
    }
    all
}

fn scenario_request(request: &SweepRequest, axes: &[Axis], values: &[&str]) -> Result<Request, LabError> {
    let Request { subject, interval, backend, guest, .. } = request.base.clone();
    let mut own = Request { interval, backend, guest, ..Request::new(subject) };
    for (axis, &value) in axes.iter().zip(values) {
        let (text, pair) = (|| Some(value.to_owned()), || format!("{}={value}", axis.name));
        match axis.what {
            Swept::Kernel => own.kernel = text(),
            Swept::Machine => own.machine = text(),
            Swept::Mem => own.mem = text(),
            Swept::Swap => own.swap = text(),
            Swept::Set => own.sysctls.push(pair()),
            Swept::Param => own.params.push(pair()),
            Swept::Seed => own.seed = Some(seed(value)?),
            Swept::Policy | Swept::Capacity => unreachable!("refused for workloads"),
        }
    }
    Ok(own)
}

fn scenarios(
    request: &SweepRequest,
    axes: &[Axis],
    combinations: &[Vec<&str>],
    runs: &[SweepRun],
) -> Result<Vec<PlannedRun>, LabError> {
    let planned = |(values, run): (&Vec<&str>, &SweepRun)| {
        let scenario = scenario_request(request, axes, values)?.resolve()?;
        Ok(PlannedRun { label: run.label.clone(), scenario })
    };
    combinations.iter().zip(runs).map(planned).collect()
}

fn replays(
    request: &SweepRequest,
    axes: &[Axis],
    combinations: &[Vec<&str>],
    runs: &[SweepRun],
) -> Result<ReplayPlan, LabError> {
    let cache = |(values, run): (&Vec<&str>, &SweepRun)| {
        let mut own = ReplayRequest { trace: PathBuf::from(&request.subject), ..ReplayRequest::default() };
        for (axis, &value) in axes.iter().zip(values) {
            match axis.what {
                Swept::Kernel => own.kernels.push(value.to_owned()),
                Swept::Machine => own.machine = Some(value.to_owned()),
                Swept::Mem => own.mems.push(value.to_owned()),
                Swept::Swap => own.swap = Some(value.to_owned()),
                Swept::Set => own.sysctls.push(format!("{}={value}", axis.name)),
                Swept::Seed => own.seed = Some(seed(value)?),
                Swept::Policy => own.policies.push(value.parse::<PolicySpec>()?),
                Swept::Capacity => own.capacities.push(value.to_owned()),
                Swept::Param => unreachable!("refused for traces"),
            }
        }
        let (_, cache) = own.plan()?.caches.remove(0);
        Ok((run.label.clone(), cache))
    };
    let caches: Vec<(String, CacheSpec)> =
        combinations.iter().zip(runs).map(cache).collect::<Result<_, LabError>>()?;
    let trace = PathBuf::from(&request.subject);
    let interval = request.base.interval.as_deref();
    let interval = interval.map(|text| parse_interval("--interval", text)).transpose()?;
    Ok(ReplayPlan { trace, options: request.reading, caches, interval, expected: None })
}

impl SweepPlan {
    /// Every kernel of an ablation with every seed: each run's name, and the run itself.
    pub(crate) fn of_ablation(
        subject: &str,
        kernels: Axis,
        seeds: Axis,
        runs: Vec<(SweepRun, PlannedRun)>,
    ) -> Self {
        let (runs, planned) = runs.into_iter().unzip();
        Self {
            of: PlanOf::Ablation,
            subject: subject.to_owned(),
            axes: vec![seeds, kernels],
            fixed: Vec::new(),
            runs,
            work: Work::Scenarios(planned),
        }
    }

    /// The runs of a workload; `None` when it is a trace that is swept.
    pub fn planned(&self) -> Option<&[PlannedRun]> {
        match &self.work {
            Work::Scenarios(runs) => Some(runs),
            Work::Replays(_) => None,
        }
    }

    /// The trace that is swept.
    pub fn trace(&self) -> Option<&Path> {
        match &self.work {
            Work::Scenarios(_) => None,
            Work::Replays(plan) => Some(&plan.trace),
        }
    }

    /// How many runs there are and why: `12 runs: mem (4) x kernel (3)`.
    pub fn size(&self) -> String {
        let axes: Vec<String> =
            self.axes.iter().map(|axis| format!("{} ({})", axis.name, axis.values.len())).collect();
        format!("{} runs: {}", self.runs.len(), axes.join(" x "))
    }

    /// The scenario of each run as TOML. A trace is read for its hash.
    ///
    /// # Errors
    /// A trace that cannot be read, or not twice.
    pub fn scenarios(&self) -> Result<Vec<String>, LabError> {
        match &self.work {
            Work::Scenarios(runs) => Ok(runs.iter().map(|run| run.scenario.to_toml()).collect()),
            Work::Replays(plan) => {
                let id = plan.trace_id()?;
                let toml = |(_, cache): &(String, CacheSpec)| {
                    let (trace, options, cache) = (plan.trace.clone(), plan.options, cache.clone());
                    ReplayScenario { trace, id, options, cache, interval: plan.interval }.to_toml()
                };
                Ok(plan.caches.iter().map(toml).collect())
            }
        }
    }

    /// Runs what is not `finished` and returns all outcomes, finished ones included; those that an
    /// interruption kept from running are [`Ended::NotRun`]. `keep` is called as runs end, with their place.
    ///
    /// # Errors
    /// No threads can be started; a trace cannot be read.
    pub fn run(
        &self,
        finished: Vec<Option<Recording>>,
        jobs: usize,
        control: &SweepControl,
        keep: impl Fn(usize, &Recording) -> Result<(), LabError> + Sync,
    ) -> Result<Outcomes, LabError> {
        let missing: Vec<bool> = finished.iter().map(Option::is_none).collect();
        let places: Vec<usize> = (0..missing.len()).filter(|&place| missing[place]).collect();
        let keep = |index: usize, recording: &Recording| keep(places[index], recording);
        let new = match (&self.work, control) {
            _ if places.is_empty() => Vec::new(),
            (Work::Scenarios(runs), SweepControl::Runs(control)) => {
                let left: Vec<PlannedRun> = places.iter().map(|&place| runs[place].clone()).collect();
                let kept = control.kept.clone().map(|kept| kept.of_places(places.clone()));
                let control = Control { kept, ..control.clone() };
                batch::outcomes(&left, jobs, &control, true, keep)?
            }
            (Work::Replays(plan), SweepControl::Replays(control)) => {
                plan.only(&missing).run(jobs, control, keep)?
            }
            _ => unreachable!("the control is that of this kind of work"),
        };
        let mut all: Outcomes =
            finished.into_iter().map(|recording| recording.map_or(Ended::NotRun, Ended::Recorded)).collect();
        for (place, outcome) in places.into_iter().zip(new) {
            let interrupted = matches!(outcome, Ended::Failed(LabError::Interrupted { .. }));
            all[place] = if interrupted { Ended::NotRun } else { outcome };
        }
        Ok(all)
    }
}

/// Who watches a sweep, and how to stop it.
pub enum SweepControl {
    /// Of a workload.
    Runs(Control),
    /// Of a trace.
    Replays(ReplayControl),
}

/// What is wrong with a sweep as a whole: that runs failed, or that it was interrupted.
pub fn problem(outcomes: &Outcomes, stopped: bool) -> Option<LabError> {
    let total = outcomes.len();
    let failures: Vec<Class> = outcomes.iter().filter_map(Ended::failure).map(LabError::class).collect();
    let finished = outcomes.iter().filter_map(Ended::recording).count();
    let worst =
        failures.iter().copied().find(|class| *class == Class::Invariant).or(failures.first().copied());
    match worst {
        _ if stopped && finished + failures.len() < total => Some(LabError::Interrupted { finished, total }),
        Some(class) => Some(LabError::SomeFailed { failed: failures.len(), total, class }),
        None => None,
    }
}

#[cfg(test)]
mod tests;
