//! The sections of a page: question, verdict, summary, figures, details, how to read it and make it again.

use recording::Recording;
use serde_json::{Value, json};

use super::ablation::Factors;
use super::settings::SettingGrid;
use super::story::Story;
use super::{summary, verdict};
use crate::document::figure::Figure;
use crate::document::{Block, Document, Section, Table, row};
use crate::judge::{Compared, Group, Measure, Measures, Scale, Side, View, by_seed, recordings_of};
use crate::views::compare::footer;
use crate::views::findings::{all_counters, waited_table};
use crate::views::heat::Heat;
use crate::views::metrics::metrics_table;
use crate::views::oom::oom_lines;

/// What a page is made of.
#[derive(Debug, Clone)]
pub struct Page<'a> {
    /// The variants, the baseline first.
    pub groups: &'a [Group<'a>],
    /// Which measures matter most, and what the reader has to know.
    pub view: View,
    /// What the reader wants to know.
    pub question: String,
    /// What the workload's story shows.
    pub story: Story,
    /// For each group where memory was warm in its first run, if its events tell.
    pub heats: Vec<Option<Heat>>,
    /// What distinguishes the kernels, if they are an ablation.
    pub factors: Option<Factors>,
    /// All settings of all kernels, if there are several; `groups` may be those of one setting only.
    pub grid: Option<SettingGrid<'a>>,
    /// The command that makes the page again.
    pub command: String,
}

/// The page without its figures alone.
pub(super) fn document<'a>(
    page: &'a Page<'a>,
    groups: &[Group<'_>],
    workload: &'a str,
    figures: Vec<Figure>,
) -> Document<'a> {
    let compared = (groups.len() > 1).then(|| Compared::of(groups, &page.view));
    let compared = compared.as_ref();
    Document::new(workload)
        .section(header(page, groups, workload, compared))
        .section(match compared.filter(|_| !is_replay(workload)) {
            Some(compared) => summary_section(compared, groups),
            None => values_section(page, groups),
        })
        .section(Section::untitled().with_all(figures))
        .section(details(compared, groups))
        .section(reading(page, groups))
        .json(move || {
            json!({
                "workload": workload,
                "question": page.question,
                "runs": recordings_of(&by_seed(page.groups)).into_iter().map(run_data).collect::<Vec<_>>(),
            })
        })
}

fn run_data(run: &Recording) -> Value {
    json!({ "label": run.label, "kernel": run.kernel, "backend": run.backend, "seed": run.seed, "metrics": run.metrics })
}

fn header(page: &Page<'_>, groups: &[Group<'_>], workload: &str, compared: Option<&Compared>) -> Section {
    let runs: usize = groups.iter().map(|group| group.recordings.len()).sum();
    let count = |count: usize, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
    let facts = format!("{workload} · {} · {}", count(groups.len(), "variant"), count(runs, "run"));
    let (verdict, not_shown) = match (compared, is_replay(workload)) {
        (None, _) => (alone(&groups[0], page), None),
        (Some(compared), true) => {
            (verdict::extremes(compared, groups), Some(verdict::not_shown_by_replays(groups)))
        }
        (Some(compared), false) => {
            (verdict::sentences(compared, groups).join(" "), Some(verdict::not_shown(compared, groups)))
        }
    };
    let not_shown = not_shown.map(|text| Block::Labelled { label: "Not shown".to_owned(), text });
    Section::first(facts, Some(page.question.clone()))
        .with(Block::Verdict(verdict))
        .with_all(not_shown)
        .with_all(oom_lines(groups).into_iter().map(Block::Alarm))
        .with_all(page.view.warnings.iter().cloned().map(Block::Warning))
}

/// What one variant gave, with nothing to compare it with.
fn alone(group: &Group<'_>, page: &Page<'_>) -> String {
    let measures = Measures::of(group.recordings.iter().copied(), &page.view).first;
    let told = |measure: &Measure| {
        let side = Side::of(group, |run| measure.value(run));
        let scale = Scale::of(measure.unit, side.mean());
        Some(format!("{} {} {}", measure.name, side.text(scale.factor)?, scale.unit).trim_end().to_owned())
    };
    let told: Vec<String> = measures.iter().take(4).filter_map(told).collect();
    format!("{}: {}. There is nothing to compare it with.", group.label, told.join(", "))
}

fn summary_section(compared: &Compared, groups: &[Group<'_>]) -> Section {
    Section::new("What changed, worst first")
        .at("summary")
        .with_all(summary::tables(&compared.first, groups))
        .lines_of(footer(&compared.first, groups))
        .line(
            "Bars: the candidate as a multiple of the baseline, on one axis for all rows; equal factors are equal steps, finer around 0. Arrows point at what lies beyond. A thin line is the 95 % interval, where seeds differ.",
        )
}

/// Replays are one list of caches, and none of them is a baseline.
pub(super) fn is_replay(workload: &str) -> bool {
    workload.starts_with("replay ")
}

/// What each run gave, where nothing is compared.
fn values_section(page: &Page<'_>, groups: &[Group<'_>]) -> Section {
    let runs = recordings_of(groups);
    let measures = Measures::of(runs.iter().copied(), &page.view).first;
    Section::new("What each run gave").at("summary").with(metrics_table(&runs, &measures))
}

fn details(compared: Option<&Compared>, groups: &[Group<'_>]) -> Section {
    let is_replay = is_replay(&groups[0].recordings[0].workload);
    let rest = compared.filter(|_| !is_replay).map(|compared| summary::tables(&compared.rest, groups));
    let rest = rest.into_iter().flatten().map(Block::Changes).collect();
    let table = |table: Table| if table.is_empty() { Vec::new() } else { vec![table.into()] };
    let folded = [
        ("Other metrics", rest),
        ("What differs in the scenarios", differences(groups)),
        ("The scenario of the baseline", scenario(groups[0].recordings[0])),
        ("Time waited for", table(waited_table(groups, true))),
        ("All counters that are not zero (/proc/vmstat)", table(all_counters(groups))),
        ("Runs, seeds and length", table(table_of_runs(groups))),
    ];
    let folded = folded.map(|(heading, blocks)| Block::Folded { heading: heading.to_owned(), blocks });
    Section::new("Details").at("details").prose().with_all(folded)
}

fn table_of_runs(groups: &[Group<'_>]) -> Table {
    let mut table =
        Table::new().texts(["run", "backend", "kernel"]).numbers(["seed", "length, s", "readings"]);
    for group in groups {
        for run in &group.recordings {
            let length = run.duration_ns().map(|ns| ns as f64 / 1e9);
            let readings = run.series.rows.len();
            table.push(row![&group.label, &run.backend, &run.kernel, run.seed, length, readings]);
        }
    }
    table
}

/// Lines of each variant's scenario that the baseline's does not have.
fn differences(groups: &[Group<'_>]) -> Vec<Block> {
    let lines = |group: &Group<'_>| -> Vec<String> {
        let is_told = |line: &&str| !line.is_empty() && !line.starts_with("seed");
        group.recordings[0].scenario_toml.lines().filter(is_told).map(str::to_owned).collect()
    };
    let base = lines(&groups[0]);
    let other = |group: &Group<'_>| {
        let own: Vec<String> = lines(group).into_iter().filter(|line| !base.contains(line)).collect();
        let code = |text: String| Block::Code { label: group.label.clone(), text };
        (!own.is_empty()).then(|| code(own.join(", ")))
    };
    groups[1..].iter().filter_map(other).collect()
}

fn scenario(run: &Recording) -> Vec<Block> {
    let text = run.scenario_toml.trim();
    let code = |text: &str| Block::Code { label: String::new(), text: text.to_owned() };
    (!text.is_empty()).then(|| code(text)).into_iter().collect()
}

fn reading(page: &Page<'_>, groups: &[Group<'_>]) -> Section {
    let mut commands: Vec<(String, String)> =
        groups.iter().map(|group| (group.label.clone(), group.command.clone())).collect();
    commands.push(("this page, from the recordings".to_owned(), page.command.clone()));
    Section::new("How to read this page, and how to make it again")
        .at("reading")
        .prose()
        .paragraph(
            "The baseline is grey and the candidate coloured, in every figure. Orange is what a task pays: direct reclaim, stalls, what got worse. All figures are drawn from the recordings as they are, without smoothing; the numbers behind them are in this file, in the element with the id data.",
        )
        .with(Block::Commands { heading: "Every run, and this page", commands })
}
