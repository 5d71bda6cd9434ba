//! The page: question, verdict, summary, figures, details, how to read it and make it again.

use recording::Recording;
use serde_json::{Value, json};

use super::figure::{self, Figure};
use super::markup::Element;
use super::{Page, summary, verdict};
use crate::Group;
use crate::compare::footer;
use crate::compared::{Compared, recordings_of};
use crate::findings::{all_counters, waited_table};
use crate::metrics::metrics_table;
use crate::number::plain;
use crate::oom::oom_lines;
use crate::table::Table;

const STYLE: &str = include_str!("style.css");
pub(super) const MARKS: &str = include_str!("marks.css");
const SCRIPT: &str = include_str!("script.js");

/// What a page of ours begins with.
const GENERATOR: &str = "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"generator\" content=\"pagetide";

/// What pages and figures begin with, so that a file of ours can be told from others.
pub const MARKS_OF_OURS: [&str; 2] = [GENERATOR, super::figure::BEGIN];

/// Colours of a figure that is a file of its own.
pub(crate) fn style_of_figures() -> String {
    let colours = STYLE.find("* {").map_or("", |end| &STYLE[..end]);
    format!("{colours}{MARKS}")
}

/// The text of the page.
pub(super) fn text(page: &Page<'_>, groups: &[Group<'_>], workload: &str, figures: &[Figure]) -> String {
    let compared = (groups.len() > 1).then(|| Compared::of(groups, &page.view));
    let runs = recordings_of(groups);
    let body = Element::new("main")
        .with(header(page, groups, workload, compared.as_ref()))
        .with(match compared.as_ref().filter(|_| !is_replay(workload)) {
            Some(compared) => summary_section(compared, groups),
            None => values_section(page, groups),
        })
        .with_all(figures.iter().map(Figure::html))
        .with(details(compared.as_ref(), groups))
        .with(reading(page, groups));
    let data = json!({
        "made_by": page.made_by,
        "workload": workload,
        "question": page.question,
        "runs": runs.iter().map(run_data).collect::<Vec<_>>(),
        "figures": figures.iter().map(|f| (f.name.clone(), f.data())).collect::<serde_json::Map<_, _>>(),
    });
    framed(&page.made_by, &format!("{workload}: {}", page.question), &body, &data)
}

/// A page with this title around `body`, which carries its numbers in `data`.
pub(crate) fn framed(made_by: &str, title: &str, body: &Element, data: &Value) -> String {
    // Nothing in it can end the element that it stands in, or begin another one.
    let data = data.to_string().replace('<', "\\u003c");
    let title = Element::new("title").text(title);
    format!(
        "{GENERATOR} {}\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n{title}\n<style>\n{STYLE}{MARKS}</style></head>\n<body>\n{}\n<script type=\"application/json\" id=\"data\">{data}</script>\n<script>\n{SCRIPT}</script>\n</body></html>\n",
        super::markup::escaped(made_by),
        in_lines(&body.to_string()),
    )
}

/// A line for each block, so that a difference of two pages can be read.
fn in_lines(markup: &str) -> String {
    const BLOCKS: [&str; 10] =
        ["<section", "<table", "<tr", "<p", "<figure", "<h2", "<h3", "<details", "<dl", "<footer"];
    let mut text = markup.to_owned();
    for block in BLOCKS {
        for end in [" ", ">"] {
            text = text.replace(&format!("{block}{end}"), &format!("\n{block}{end}"));
        }
    }
    text
}

fn run_data(run: &&Recording) -> Value {
    json!({ "label": run.label, "kernel": run.kernel, "backend": run.backend, "seed": run.seed, "metrics": run.metrics })
}

fn header(page: &Page<'_>, groups: &[Group<'_>], workload: &str, compared: Option<&Compared>) -> Element {
    let runs: usize = groups.iter().map(|group| group.recordings.len()).sum();
    let count = |count: usize, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
    let facts = format!("{workload} · {} · {}", count(groups.len(), "variant"), count(runs, "run"));
    let header = Element::new("header")
        .with(Element::of("p", "eyebrow").text(&facts))
        .with(Element::new("h1").text(&page.question));
    let header = match compared {
        Some(compared) => {
            let sentences = match is_replay(workload) {
                true => verdict::extremes(compared, groups),
                false => verdict::sentences(compared, groups).join(" "),
            };
            let not_shown = match is_replay(workload) {
                true => verdict::not_shown_by_replays(groups),
                false => verdict::not_shown(compared, groups),
            };
            let not = Element::of("p", "not").with(Element::new("b").text("Not shown: ")).prose(&not_shown);
            header.with(Element::of("p", "verdict").text(&sentences)).with(not)
        }
        None => header.with(Element::of("p", "verdict").text(&alone(&groups[0], page))),
    };
    let notes = oom_lines(groups);
    let warnings = page.view.warnings.iter().map(|warning| format!("warning: {warning}"));
    let notes =
        notes.lines().map(str::to_owned).chain(warnings).map(|note| Element::of("p", "note").prose(&note));
    header.with_all(notes)
}

/// What one variant gave, with nothing to compare it with.
fn alone(group: &Group<'_>, page: &Page<'_>) -> String {
    let measures = crate::view::Measures::of(group.recordings.iter().copied(), &page.view).first;
    let told = |measure: &crate::view::Measure| {
        let side = crate::judge::Side::of(group, |run| measure.value(run));
        let scale = crate::view::Scale::of(measure.unit, side.mean());
        Some(format!("{} {} {}", measure.name, side.text(scale.factor)?, scale.unit).trim_end().to_owned())
    };
    let told: Vec<String> = measures.iter().take(4).filter_map(told).collect();
    format!("{}: {}. There is nothing to compare it with.", group.label, told.join(", "))
}

fn summary_section(compared: &Compared, groups: &[Group<'_>]) -> Element {
    let notes = footer(&compared.first, groups);
    Element::of("section", "summary")
        .set("id", "summary")
        .with(Element::new("h2").text("What changed, worst first"))
        .with_all(summary::tables(compared, groups))
        .with_all(notes.iter().map(|note| Element::of("p", "not").prose(note)))
        .with(Element::of("p", "not").text(
            "Bars: the candidate as a multiple of the baseline, on one axis for all rows; equal factors are equal steps, finer around 0. Arrows point at what lies beyond. A thin line is the 95 % interval, where seeds differ.",
        ))
}

/// Replays are one list of caches, and none of them is a baseline.
pub(super) fn is_replay(workload: &str) -> bool {
    workload.starts_with("replay ")
}

/// What each run gave, where nothing is compared.
fn values_section(page: &Page<'_>, groups: &[Group<'_>]) -> Element {
    let runs = recordings_of(groups);
    let measures = crate::view::Measures::of(runs.iter().copied(), &page.view).first;
    Element::of("section", "summary")
        .set("id", "summary")
        .with(Element::new("h2").text("What each run gave"))
        .with(plain_table(&metrics_table(&runs, &measures)))
}

fn details(compared: Option<&Compared>, groups: &[Group<'_>]) -> Element {
    let section = Element::new("section").set("id", "details").with(Element::new("h2").text("Details"));
    let folded = |heading: &str, inside: Vec<Element>| {
        (!inside.is_empty())
            .then(|| Element::new("details").with(Element::new("summary").text(heading)).with_all(inside))
    };
    let is_replay = is_replay(&groups[0].recordings[0].workload);
    let rest =
        compared.filter(|_| !is_replay).map(|compared| summary::rest(compared, groups)).unwrap_or_default();
    let plain_table = |table: Table| if table.is_empty() { Vec::new() } else { vec![plain_table(&table)] };
    section
        .with_all(folded("Other metrics", rest))
        .with_all(folded("What differs in the scenarios", differences(groups)))
        .with_all(folded("The scenario of the baseline", scenario(groups[0].recordings[0])))
        .with_all(folded("Time waited for", plain_table(waited_table(groups, true))))
        .with_all(folded("All counters that are not zero (/proc/vmstat)", plain_table(all_counters(groups))))
        .with_all(folded("Runs, seeds and length", vec![plain_table_of_runs(groups)]))
}

/// Any table of ours, which scrolls by itself where it is wide.
pub(crate) fn plain_table(table: &Table) -> Element {
    let (headings, rows) = table.cells();
    let heading = |text: &str| Element::new("th").set("scope", "col").text(text);
    let row =
        |row: &Vec<String>| Element::new("tr").with_all(row.iter().map(|cell| Element::new("td").text(cell)));
    let head = Element::new("tr").with_all(headings.map(heading));
    Element::of("div", "plaintable").with(
        Element::new("table")
            .with(Element::new("thead").with(head))
            .with(Element::new("tbody").with_all(rows.iter().map(row))),
    )
}

fn plain_table_of_runs(groups: &[Group<'_>]) -> Element {
    use crate::table::Align::{Left, Number};
    let mut table = Table::new(
        [
            ("run", Left),
            ("backend", Left),
            ("kernel", Left),
            ("seed", Number),
            ("length, s", Number),
            ("readings", Number),
        ]
        .map(|(text, align)| (text.to_owned(), align)),
    );
    for group in groups {
        for run in &group.recordings {
            let length = run.duration_ns().map_or("-".to_owned(), |ns| plain(ns as f64 / 1e9));
            let readings = run.series.rows.len().to_string();
            table.push([
                group.label.clone(),
                run.backend.clone(),
                run.kernel.clone(),
                run.seed.to_string(),
                length,
                readings,
            ]);
        }
    }
    plain_table(&table)
}

/// Lines of each variant's scenario that the baseline's does not have.
fn differences(groups: &[Group<'_>]) -> Vec<Element> {
    let lines = |group: &Group<'_>| -> Vec<String> {
        let is_told = |line: &&str| !line.is_empty() && !line.starts_with("seed");
        group.recordings[0].scenario_toml.lines().filter(is_told).map(str::to_owned).collect()
    };
    let base = lines(&groups[0]);
    let other = |group: &Group<'_>| {
        let own: Vec<String> = lines(group).into_iter().filter(|line| !base.contains(line)).collect();
        (!own.is_empty()).then(|| {
            Element::new("p")
                .with(Element::new("b").text(&group.label))
                .text(": ")
                .with(Element::new("code").text(&own.join(", ")))
        })
    };
    groups[1..].iter().filter_map(other).collect()
}

fn scenario(run: &Recording) -> Vec<Element> {
    match run.scenario_toml.trim() {
        "" => Vec::new(),
        text => vec![Element::of("code", "command").text(text)],
    }
}

fn reading(page: &Page<'_>, groups: &[Group<'_>]) -> Element {
    let mut commands: Vec<(String, String)> =
        groups.iter().map(|group| (group.label.clone(), group.command.clone())).collect();
    commands.push(("this page, from the recordings".to_owned(), page.command.clone()));
    let commands = figure::commands("Every run, and this page", &commands).set("open", "");
    Element::new("section")
        .set("id", "reading")
        .with(Element::new("h2").text("How to read this page, and how to make it again"))
        .with(Element::new("p").text(
            "The baseline is grey and the candidate coloured, in every figure. Orange is what a task pays: direct reclaim, stalls, what got worse. All figures are drawn from the recordings as they are, without smoothing; the numbers behind them are in this file, in the element with the id data.",
        ))
        .with(commands)
        .with(Element::new("footer").text(&format!("{}. One file, no network; a script adds values under the pointer only.", page.made_by)))
}
