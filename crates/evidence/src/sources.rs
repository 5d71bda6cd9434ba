//! What the source documents report beside what the simulation gives: `docs/sources.md`.
//!
//! An experiment is one workload on several kernels, the source's baseline first. Events are told
//! with their part of the baseline's, since that is what a change is judged by. Left out: verdicts,
//! as most sources ran once and say nothing of their spread. Next: [`crate::rows`], which
//! compares with measurements that were repeated.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::real;
use crate::rows::figure;
use lab::PlannedRun;
use lab::batch::run_all;
use lab::{Control, LabError};
use lab::{Request, Subject, command};

const SOURCES: &str = include_str!("../data/sources.toml");
/// What is said before the tables.
const INTRODUCTION: &str = include_str!("../data/sources.md");
/// The page as it is.
const PAGE: &str = include_str!("../../../docs/sources.md");
/// What begins the tables of the sources' own machines.
const OWN_MACHINES: &str = "## The sources' own machines\n";

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Sources {
    experiment: Vec<Experiment>,
}

/// One workload on several kernels, with what the source reports of it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Experiment {
    /// What it is about.
    pub(crate) name: String,
    /// Where the figures come from.
    pub(crate) source: String,
    /// The workload.
    pub(crate) workload: String,
    /// The machine, if it is not the workload's own.
    #[serde(default)]
    pub(crate) machine: Option<String>,
    /// Parameters as `name=value`.
    #[serde(default)]
    pub(crate) params: Vec<String>,
    /// The kernels, the baseline first.
    pub(crate) kernels: Vec<String>,
    /// By metric the source's value for each kernel; `nan` where it gives none.
    pub(crate) figures: BTreeMap<String, Vec<f64>>,
}

/// An experiment with what was simulated: by metric one value for each kernel.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SourceResult {
    /// What the source says.
    pub(crate) experiment: Experiment,
    /// What the simulation gives; a metric that a run does not have is `None`.
    pub(crate) simulated: BTreeMap<String, Vec<Option<f64>>>,
    /// The command for each kernel.
    pub(crate) commands: Vec<String>,
}

fn request(experiment: &Experiment, kernel: &str) -> Request {
    let mut request = Request::new(Subject::Workload(experiment.workload.clone()));
    request.kernel = Some(kernel.to_owned());
    request.machine.clone_from(&experiment.machine);
    request.params.clone_from(&experiment.params);
    request
}

/// Runs every experiment once, `jobs` runs at a time (0: one for each CPU).
///
/// # Errors
/// The first run that fails.
pub(crate) fn results(jobs: usize, control: &Control) -> Result<Vec<SourceResult>, LabError> {
    let sources: Sources = toml::from_str(SOURCES).expect("the embedded figures are well-formed");
    let mut plan = Vec::new();
    for experiment in &sources.experiment {
        for kernel in &experiment.kernels {
            let scenario = request(experiment, kernel).resolve()?;
            plan.push(PlannedRun { label: kernel.clone(), scenario });
        }
    }
    let recordings = run_all(&plan, jobs, control, |_, _| Ok(()))?.into_result()?;
    let mut runs = plan.iter().zip(&recordings);
    let result = |experiment: Experiment| {
        let runs: Vec<_> = runs.by_ref().take(experiment.kernels.len()).collect();
        let values = |metric: &String| {
            (metric.clone(), runs.iter().map(|(_, run)| run.metrics.get(metric).copied()).collect())
        };
        SourceResult {
            simulated: experiment.figures.keys().map(values).collect(),
            commands: runs.iter().map(|(planned, _)| command(&planned.scenario)).collect(),
            experiment,
        }
    };
    Ok(sources.experiment.into_iter().map(result).collect())
}

/// `docs/sources.md`: the introduction with the tables of real kernels, then one table for each experiment.
///
/// # Errors
/// A load of a real kernel that the model does not know.
pub(crate) fn to_markdown(results: &[SourceResult]) -> Result<String, LabError> {
    Ok(introduction()? + &results.iter().map(experiment_table).collect::<String>())
}

/// The same with the experiments as the page has them, which take long to run.
///
/// # Errors
/// A load of a real kernel that the model does not know.
pub(crate) fn with_kept_experiments() -> Result<String, LabError> {
    let kept = PAGE.split_once(OWN_MACHINES).map_or("", |(_, kept)| kept);
    Ok(introduction()? + kept)
}

fn introduction() -> Result<String, LabError> {
    let mut text = String::from(INTRODUCTION);
    for source in 0..=4 {
        text = text.replace(&format!("{{{{real {source}}}}}"), &real::table(source)?);
    }
    Ok(text)
}

fn experiment_table(result: &SourceResult) -> String {
    let Experiment { name, source, kernels, figures, .. } = &result.experiment;
    let mut text = format!("\n### {name}\n\nFigures: {source}.\n\n");
    text += &format!("| metric | {} |\n|---|{}\n", steps(kernels).join(" | "), "---:|".repeat(kernels.len()));
    for (metric, reported) in figures {
        let simulated = &result.simulated[metric];
        let cells = (0..kernels.len()).map(|index| {
            let source = cell(reported.get(index).copied(), reported.first().copied(), index);
            let simulated = cell(simulated[index], simulated[0], index);
            format!("{source}; {simulated}")
        });
        text += &format!("| `{metric}` | {} |\n", cells.collect::<Vec<_>>().join(" | "));
    }
    text + "\n```sh\n" + &result.commands.join("\n") + "\n```\n"
}

/// The baseline by its name, the others by what they add to it.
fn steps(kernels: &[String]) -> Vec<String> {
    let base = kernels.first().map_or("", String::as_str);
    kernels
        .iter()
        .map(|kernel| match kernel.strip_prefix(base) {
            Some(added) if !added.is_empty() => added.replace('+', " +").trim_start().to_owned(),
            _ => kernel.clone(),
        })
        .collect()
}

/// A figure, from the second kernel on with its part of the baseline's if that is a count of many.
fn cell(value: Option<f64>, base: Option<f64>, index: usize) -> String {
    const MANY: f64 = 100.0;
    let Some(value) = value.filter(|value| value.is_finite()) else { return "-".to_owned() };
    let figure = figure(value);
    match base {
        Some(base) if index > 0 && base >= MANY && value.fract() == 0.0 && base.fract() == 0.0 => {
            format!("{figure} ({:.2} %)", 100.0 * value / base)
        }
        _ => figure,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_embedded_figures_name_things_that_exist() {
        let sources: Sources = toml::from_str(SOURCES).unwrap();
        for experiment in &sources.experiment {
            for kernel in &experiment.kernels {
                request(experiment, kernel).resolve().unwrap();
            }
            for (metric, figures) in &experiment.figures {
                assert_eq!(figures.len(), experiment.kernels.len(), "{}: {metric}", experiment.name);
            }
        }
    }

    #[test]
    fn events_are_told_with_their_part_of_the_baseline() {
        assert_eq!(cell(Some(1_023_463.0), Some(1_023_463.0), 0), "1023463");
        assert_eq!(cell(Some(19_274.0), Some(1_023_463.0), 2), "19274 (1.88 %)");
        assert_eq!(cell(Some(1.16), Some(1.68), 1), "1.16");
        assert_eq!(cell(Some(f64::NAN), Some(3.0), 1), "-");
    }

    #[test]
    fn kernels_are_headed_by_what_they_add() {
        let kernels = ["linux-4.19", "linux-4.19+nofragment+watermark-boost-v2"].map(String::from);
        assert_eq!(steps(&kernels), ["linux-4.19", "+nofragment +watermark-boost-v2"]);
    }
}
