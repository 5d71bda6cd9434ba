//! The sources' loads on real kernels beside the model on the same machine, `guest-uml`: the tables of
//! `docs/sources.md` with three columns, and `data/real-sources.csv`, below whose hits none may fall.
//!
//! `data/real-sources.toml` has what real kernels counted. `real` runs the model and prints the file, `real --check`
//! says where a run has fewer hits than it has. Left out: the sources' own machines ([`crate::sources`]).
//! Neighbours: [`crate::hits`], which does the same for rows that the model was fitted to.

use std::collections::BTreeMap;
use std::error::Error;

use serde::Deserialize;

use crate::rows::figure;
use lab::batch::{Control, run_all};
use lab::{LabError, PlannedRun, Request, Subject, command};
use recording::Recording;
use units::Seed;
use workload::scenario::Scenario;

const REAL: &str = include_str!("../data/real-sources.toml");
const KEPT: &str = include_str!("../data/real-sources.csv");
const HEADER: &str = "run,figure,until,model,verdict";
/// What the real kernels ran on, as the model has it.
const MACHINE: &str = "guest-uml";
const HIT: &str = "hit";
const MISS: &str = "miss";

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Real {
    run: Vec<Run>,
}

/// One load on one kernel.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Run {
    source: u8,
    name: String,
    /// What the load is, in the words of the table.
    load: String,
    real_kernel: String,
    kernel: String,
    workload: String,
    /// Where it is not the usual one: that with a change behind its name.
    #[serde(default)]
    machine: Option<String>,
    mem: String,
    params: Vec<String>,
    #[serde(default)]
    sysctls: Vec<String>,
    figures: Vec<Figure>,
}

/// One figure of a run.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Figure {
    /// What it is, in the words of the table.
    what: String,
    /// A metric; with `until` a counter of `/proc/vmstat`, over all phases up to that one.
    of: String,
    #[serde(default)]
    until: Option<String>,
    /// What the source has.
    #[serde(default)]
    source: Option<String>,
    /// Each repeat on the real kernel.
    real: Vec<f64>,
    /// How far beyond the repeats is near enough: percent of them, or so much.
    #[serde(default)]
    percent: f64,
    #[serde(default)]
    within: f64,
}

/// A figure of the model, as the file has it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Model {
    run: String,
    figure: String,
    until: String,
    /// None where the run did not come so far.
    value: Option<f64>,
    verdict: String,
}

impl Run {
    fn request(&self) -> Request {
        let mut request = Request::new(Subject::Workload(self.workload.clone()));
        request.kernel = Some(self.kernel.clone());
        request.machine = Some(self.machine.as_deref().unwrap_or(MACHINE).to_owned());
        request.mem = Some(self.mem.clone());
        request.params.clone_from(&self.params);
        request.sysctls.clone_from(&self.sysctls);
        request
    }
}

impl Figure {
    fn verdict(&self, value: Option<f64>) -> &'static str {
        let least = self.real.iter().copied().fold(f64::INFINITY, f64::min);
        let most = self.real.iter().copied().fold(0.0, f64::max);
        let (below, above) = (1.0 - self.percent / 100.0, 1.0 + self.percent / 100.0);
        let near = least * below - self.within..=most * above + self.within;
        if value.is_some_and(|value| near.contains(&value)) { HIT } else { MISS }
    }

    /// What the model has of it: a counter's name is that of one, or the beginning of several.
    fn value(&self, run: &Recording) -> Option<f64> {
        let Some(until) = &self.until else { return run.metrics.get(&self.of).copied() };
        let last = run.phases.iter().position(|phase| phase.name == *until)?;
        let of_phase = |vmstat: &BTreeMap<String, u64>| match vmstat.get(&self.of) {
            Some(&count) => count,
            None => {
                vmstat.iter().filter(|(name, _)| name.starts_with(&self.of)).map(|(_, count)| count).sum()
            }
        };
        Some(run.phases[..=last].iter().map(|phase| of_phase(&phase.vmstat)).sum::<u64>() as f64)
    }
}

fn real() -> Vec<Run> {
    toml::from_str::<Real>(REAL).expect("the embedded figures are well-formed").run
}

/// What the repository keeps.
fn kept() -> Vec<Model> {
    read(KEPT).expect("the embedded file is well-formed")
}

fn read(text: &str) -> Option<Vec<Model>> {
    let mut lines = text.lines();
    (lines.next()? == HEADER).then_some(())?;
    let model = |line: &str| {
        let [run, figure, until, value, verdict] = line.split(',').collect::<Vec<_>>().try_into().ok()?;
        let [run, figure, until, verdict] = [run, figure, until, verdict].map(str::to_owned);
        let value = if value.is_empty() { None } else { Some(value.parse().ok()?) };
        Some(Model { run, figure, until, value, verdict })
    };
    lines.map(model).collect()
}

/// As the file has them.
pub(crate) fn write(all: &[Model]) -> String {
    let line = |Model { run, figure: of, until, value, verdict }: &Model| {
        format!("{run},{of},{until},{},{verdict}\n", value.map(figure).unwrap_or_default())
    };
    all.iter().fold(format!("{HEADER}\n"), |text, model| text + &line(model))
}

/// Seeds of each run: what hangs on the phase of a worker differs between them.
const SEEDS: u64 = 3;

/// Runs the model under these loads, or all without a name, each with [`SEEDS`]: the medians of its figures.
///
/// # Errors
/// The first run that fails.
pub(crate) fn model(wanted: &[&str], control: &Control) -> Result<Vec<Model>, LabError> {
    let mut runs = real();
    runs.retain(|run| wanted.is_empty() || wanted.contains(&run.name.as_str()));
    let mut plan = Vec::new();
    for run in &runs {
        let scenario = run.request().resolve()?;
        plan.extend((1..=SEEDS).map(|seed| PlannedRun {
            label: run.name.clone(),
            scenario: Scenario { seed: Seed(seed), ..scenario.clone() },
        }));
    }
    let recordings = run_all(&plan, 0, control, |_, _| Ok(()))?.into_result()?;
    let of_run = |(run, recordings): (&Run, &[Recording])| {
        let model = |of: &Figure| {
            let values: Vec<f64> = recordings.iter().filter_map(|recording| of.value(recording)).collect();
            let value = stats::describe::median(&values);
            Model {
                run: run.name.clone(),
                figure: of.of.clone(),
                until: of.until.clone().unwrap_or_default(),
                value,
                // Of the value as it is kept.
                verdict: of.verdict(value.and_then(|value| figure(value).parse().ok())).to_owned(),
            }
        };
        run.figures.iter().map(model).collect::<Vec<_>>()
    };
    Ok(runs.iter().zip(recordings.chunks(SEEDS as usize)).flat_map(of_run).collect())
}

/// Whether no run of these has fewer hits than are kept.
///
/// # Errors
/// Those that have, and those that the file does not have.
pub(crate) fn check(now: &[Model]) -> Result<(), Box<dyn Error>> {
    let kept = hits(&kept());
    let fewer = hits(now).into_iter().filter(|(run, hits)| kept.get(run).is_none_or(|kept| hits < kept));
    let told: Vec<String> =
        fewer.map(|(run, hits)| format!("{run}: {hits} hits, {:?} kept", kept.get(&run))).collect();
    if told.is_empty() { Ok(()) } else { Err(told.join("\n").into()) }
}

fn hits(models: &[Model]) -> BTreeMap<String, usize> {
    let mut hits = BTreeMap::new();
    for model in models {
        *hits.entry(model.run.clone()).or_default() += usize::from(model.verdict == HIT);
    }
    hits
}

/// The table of one source, how many of its figures hit, and the commands.
pub(crate) fn table(source: u8) -> Result<String, LabError> {
    let kept = kept();
    let mut text = String::from(
        "| load | kernel | | source | real kernel | model | |\n|---|---|---|---:|---:|---:|---|\n",
    );
    let mut commands = Vec::new();
    let (mut all, mut hit) = (0, 0);
    for run in real().into_iter().filter(|run| run.source == source) {
        for figure in &run.figures {
            let is_it = |model: &&Model| {
                model.run == run.name
                    && model.figure == figure.of
                    && model.until == figure.until.clone().unwrap_or_default()
            };
            let model = kept.iter().find(is_it).expect("a test holds that each figure is kept");
            all += 1;
            hit += usize::from(model.verdict == HIT);
            text += &line(&run, figure, model);
        }
        commands.push(command(&run.request().resolve()?));
    }
    commands.dedup();
    Ok(format!("{hit} of {all} figures hit.\n\n{text}\n```sh\n{}\n```", commands.join("\n")))
}

/// One figure under several loads, which `wanted` names behind it: `slab_share small_files_52 small_files_54`; a
/// counter with the phase up to which it counts, `extfrag_events@warm`.
pub(crate) fn figures(wanted: &str) -> Result<String, Box<dyn Error>> {
    let mut words = wanted.split_whitespace();
    let (of, until) = words.next().map_or(("", None), |word| match word.split_once('@') {
        Some((of, until)) => (of, Some(until)),
        None => (word, None),
    });
    let (runs, kept) = (real(), kept());
    let mut text = String::from("| kernel | source | real kernel | model |\n|---|---:|---:|---:|\n");
    for name in words {
        let run = runs.iter().find(|run| run.name == name).ok_or_else(|| format!("no run `{name}`"))?;
        let wanted = run.figures.iter().find(|figure| figure.of == of && figure.until.as_deref() == until);
        let wanted = wanted.ok_or_else(|| format!("`{name}` has no `{of}`"))?;
        let is_it = |model: &&Model| {
            model.run == name && model.figure == of && model.until == until.unwrap_or_default()
        };
        let model = kept.iter().find(is_it);
        let repeats: Vec<String> = wanted.real.iter().copied().map(figure).collect();
        let value = model.and_then(|model| model.value).map_or_else(|| "-".to_owned(), figure);
        let source = wanted.source.as_deref().unwrap_or("-");
        let load = if run.load.is_empty() { String::new() } else { format!(", {}", run.load) };
        text += &format!("| {}{load} | {source} | {} | {value} |\n", run.real_kernel, repeats.join(", "));
    }
    Ok(text)
}

fn line(run: &Run, of: &Figure, model: &Model) -> String {
    let repeats: Vec<String> = of.real.iter().copied().map(figure).collect();
    let value = model.value.map_or_else(|| "-".to_owned(), figure);
    let source = of.source.as_deref().unwrap_or("-");
    format!(
        "| {} | {} | {} | {source} | {} | {value} | {} |\n",
        run.load,
        run.real_kernel,
        of.what,
        repeats.join(", "),
        model.verdict
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The page, which only its command writes.
    const PAGE: &str = include_str!("../../../docs/sources.md");
    /// Runs that take no time, of every source that has one.
    const QUICK: [&str; 4] = ["readers_256m", "readers_256m_drained", "stream_54_after_1g", "storm_510"];

    #[test]
    fn every_figure_is_kept_once_with_the_verdict_that_its_value_has() {
        assert_eq!(write(&kept()), KEPT);
        let kept = kept();
        let figures: Vec<(String, Figure)> = real()
            .into_iter()
            .flat_map(|run| run.figures.into_iter().map(move |figure| (run.name.clone(), figure)))
            .collect();
        assert_eq!(kept.len(), figures.len());
        for (model, (run, figure)) in kept.iter().zip(&figures) {
            let until = figure.until.clone().unwrap_or_default();
            assert_eq!((&model.run, &model.figure, &model.until), (run, &figure.of, &until));
            assert_eq!(figure.verdict(model.value), model.verdict, "{run}: {}", figure.of);
        }
    }

    #[test]
    fn the_page_has_the_table_of_every_source() {
        for source in 0..=4 {
            let table = table(source).unwrap();
            assert!(PAGE.contains(&table), "run `sources` again: source {source} has\n{table}");
        }
    }

    /// The others are what `real --check` is for.
    #[test]
    fn quick_runs_have_as_many_hits_as_are_kept() {
        let now = model(&QUICK, &Control::default()).unwrap();
        assert_eq!(hits(&now).len(), QUICK.len());
        check(&now).unwrap();
    }

    #[test]
    fn a_figure_hits_between_the_repeats_and_a_part_beyond() {
        let figure = Figure {
            what: String::new(),
            of: String::new(),
            until: None,
            source: None,
            real: vec![100.0, 200.0],
            percent: 25.0,
            within: 5.0,
        };
        let verdicts = [69.0, 70.0, 255.0, 256.0].map(|value| figure.verdict(Some(value)));
        assert_eq!(verdicts, [MISS, HIT, HIT, MISS]);
        assert_eq!(figure.verdict(None), MISS);
    }

    #[test]
    fn a_run_with_fewer_hits_is_told() {
        let mut now = kept();
        check(&now).unwrap();
        let place = now.iter().position(|model| model.verdict == HIT).expect("there is one");
        now[place].verdict = MISS.to_owned();
        assert!(check(&now).unwrap_err().to_string().contains(&now[place].run));
    }
}
