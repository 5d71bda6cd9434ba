//! What many random worlds come to, for people and programs: how near the model is to real kernels.
//!
//! [`WorldsSummary`] holds all that was found; every form is a view of it. Errors are parts of the real value, shares
//! parts of the counters judged. Left out: how it was found (`pagetide-lab`, `worlds`).

use serde_json::{Value, json};

use crate::document::number::signed_percent;
use crate::document::{Cell, Document, Records, Section, Table, row};

/// How near the counters of some worlds are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorldsShares {
    /// `limit` or `global`.
    pub scope: String,
    /// The workload; `all` is all of them together.
    pub workload: String,
    /// Worlds that were judged.
    pub worlds: usize,
    /// Counters in the real runs' own spread, and outside of it within 2, 10, 25 %, and beyond that.
    pub near: [usize; 5],
    /// Counters that are small on all sides, which are not among them.
    pub small: usize,
}

/// A metric that heads the reports of its workload.
#[derive(Debug, Clone, PartialEq)]
pub struct WorldsHeadline {
    /// The workload.
    pub workload: String,
    /// `limit` or `global`.
    pub scope: String,
    /// The metric.
    pub metric: String,
    /// Worlds in which it was judged.
    pub worlds: usize,
    /// Those in which it is in the spread or within 5 %.
    pub right: usize,
    /// The median error.
    pub error: Option<f64>,
}

/// A counter that is more than 10 % off in some worlds. Numbers are of these.
#[derive(Debug, Clone, PartialEq)]
pub struct WorldsCounter {
    /// The counter or metric; of a cgroup `PATH:COUNTER`.
    pub counter: String,
    /// `vmstat`, `memcg`, `metric` or `run`.
    pub kind: String,
    /// `limit` or `global`.
    pub scope: String,
    /// How many worlds.
    pub worlds: usize,
    /// Of how many in which it was judged.
    pub of: usize,
    /// In how many it is more than 25 % off.
    pub beyond: usize,
    /// In how many no other counter of `/proc/vmstat` is off by more pages.
    pub largest: usize,
    /// Their workloads.
    pub workloads: Vec<String>,
    /// The median error.
    pub error: Option<f64>,
    /// The median of the real values.
    pub real: Option<f64>,
    /// The median of the model's.
    pub model: Option<f64>,
    /// The seed of the world in which the least happened.
    pub example: u64,
}

/// What worlds came to.
#[derive(Debug, Clone, PartialEq)]
pub struct WorldsSummary {
    /// The real kernel, or the model where there is none.
    pub kernel: String,
    /// How many worlds have ended.
    pub worlds: usize,
    /// Whether they ran for real, too.
    pub has_real: bool,
    /// By scope and workload.
    pub shares: Vec<WorldsShares>,
    /// Headline metrics.
    pub headlines: Vec<WorldsHeadline>,
    /// Counters that disagree, those of the most worlds first.
    pub counters: Vec<WorldsCounter>,
    /// Worlds that were not judged: seed, workload, why.
    pub not_judged: Vec<(u64, String, String)>,
    /// What a reader must know, a sentence each.
    pub notes: Vec<String>,
}

/// Counters that text and Markdown show.
const SHOWN: usize = 30;
/// Worlds not judged that they show.
const SHOWN_WORLDS: usize = 10;

impl WorldsShares {
    /// Parts of the judged counters that are at least so near; the last is all.
    fn cumulated(&self) -> [f64; 5] {
        let all: usize = self.near.iter().sum();
        let mut sum = 0;
        self.near.map(|count| {
            sum += count;
            if all == 0 { 0.0 } else { sum as f64 / all as f64 }
        })
    }

    fn judged(&self) -> usize {
        self.near.iter().sum()
    }
}

/// What random worlds come to, in tables; for programs everything, an error from 0 as `null`.
///
/// CSV: one row for each number: `table,scope,workload,name,measure,value`.
pub fn worlds(summary: &WorldsSummary) -> Document<'_> {
    Document::new("worlds")
        .section(Section::first(title(summary), None))
        .sections(tables(summary).into_iter().map(|(heading, table)| Section::new(heading).with(table)))
        .section(Section::untitled().lines_of(said(summary)))
        .json(|| value(summary))
        .csv(|| records(summary))
}

fn title(summary: &WorldsSummary) -> String {
    let WorldsSummary { kernel, worlds, has_real, not_judged, .. } = summary;
    if *worlds == 0 {
        return "no world has ended".to_owned();
    }
    let beside = if *has_real { " beside the model" } else { " of the model" };
    let not_judged = match not_judged.len() {
        0 => String::new(),
        count => format!(", {count} of them not judged"),
    };
    let noun = if *worlds == 1 { "world" } else { "worlds" };
    format!("{worlds} {noun} of {kernel}{beside}{not_judged}")
}

fn tables(summary: &WorldsSummary) -> [(String, Table); 4] {
    let of = |all: usize, most: usize| if most < all { format!(", {most} of {all}") } else { String::new() };
    let mut not_judged = Table::new().texts(["world", "workload", "why"]);
    for (seed, workload, why) in summary.not_judged.iter().take(SHOWN_WORLDS) {
        not_judged.push(row![*seed, workload, why]);
    }
    let counters = of(summary.counters.len(), SHOWN);
    let left_out = of(summary.not_judged.len(), SHOWN_WORLDS);
    [
        ("% of counters that are at least so near".to_owned(), share_table(summary)),
        ("headline metrics".to_owned(), headline_table(summary)),
        (format!("counters more than 10 % off, by worlds{counters}"), counter_table(summary)),
        (format!("not judged{left_out}"), not_judged),
    ]
}

fn percent(part: f64) -> String {
    format!("{:.1}", part * 100.0)
}

fn share_table(summary: &WorldsSummary) -> Table {
    let mut table = Table::new()
        .texts(["scope", "workload"])
        .amounts(["worlds", "counters", "spread", "2 %", "10 %", "25 %"])
        .named_by(2);
    for share in &summary.shares {
        let [spread, two, ten, quarter, _] = share.cumulated().map(percent);
        let (scope, workload) = (&share.scope, &share.workload);
        table.push(row![scope, workload, share.worlds, share.judged(), spread, two, ten, quarter]);
    }
    table
}

fn headline_table(summary: &WorldsSummary) -> Table {
    let mut table = Table::new()
        .texts(["workload", "scope", "metric"])
        .amounts(["worlds", "% within 5 %", "median error"])
        .named_by(3);
    for WorldsHeadline { workload, scope, metric, worlds, right, error } in &summary.headlines {
        let right = percent(*right as f64 / (*worlds).max(1) as f64);
        table.push(row![workload, scope, metric, *worlds, right, error_text(*error)]);
    }
    table
}

fn counter_table(summary: &WorldsSummary) -> Table {
    let mut table = Table::new()
        .texts(["counter", "scope"])
        .amounts(["worlds", "of", "> 25 %", "largest", "error", "real", "model", "example"])
        .named_by(2)
        .breaking_names();
    for line in summary.counters.iter().take(SHOWN) {
        let value = |value: Option<f64>| value.map_or(Cell::None, Cell::Number);
        table.push(row![
            &line.counter,
            &line.scope,
            line.worlds,
            line.of,
            line.beyond,
            line.largest,
            error_text(line.error),
            value(line.real),
            value(line.model),
            line.example,
        ]);
    }
    table
}

pub(super) fn error_text(error: Option<f64>) -> String {
    match error {
        None => String::new(),
        Some(error) if error.is_infinite() => "from 0".to_owned(),
        Some(error) => signed_percent(error * 100.0),
    }
}

fn said(summary: &WorldsSummary) -> Vec<String> {
    let mut said = summary.notes.clone();
    if !summary.counters.is_empty() {
        said.push(
            "counters: `worlds` where it is more than 10 % off, `of` those in which it was judged, `largest` where no \
             other of /proc/vmstat is off by more; error, real and model are medians of these worlds; `example` is the \
             seed of the one in which the least happened"
                .to_owned(),
        );
    }
    said
}

fn value(summary: &WorldsSummary) -> Value {
    let shares: Vec<Value> = summary.shares.iter().map(share_value).collect();
    let headline = |line: &WorldsHeadline| {
        json!({
            "workload": line.workload, "scope": line.scope, "metric": line.metric, "worlds": line.worlds,
            "within_5_percent": line.right, "median_error": line.error,
        })
    };
    let counter = |line: &WorldsCounter| {
        json!({
            "counter": line.counter, "kind": line.kind, "scope": line.scope, "worlds": line.worlds, "of": line.of,
            "beyond_25_percent": line.beyond, "largest": line.largest, "workloads": line.workloads,
            "median_error": line.error, "median_real": line.real, "median_model": line.model,
            "example_seed": line.example,
        })
    };
    let not_judged = |(seed, workload, why): &(u64, String, String)| json!({ "seed": seed, "workload": workload, "why": why });
    json!({
        "schema": 1,
        "kernel": summary.kernel,
        "worlds": summary.worlds,
        "real": summary.has_real,
        "shares": shares,
        "headlines": summary.headlines.iter().map(headline).collect::<Vec<_>>(),
        "counters": summary.counters.iter().map(counter).collect::<Vec<_>>(),
        "not_judged": summary.not_judged.iter().map(not_judged).collect::<Vec<_>>(),
        "notes": summary.notes,
    })
}

fn share_value(share: &WorldsShares) -> Value {
    let [spread, two, ten, quarter, _] = share.cumulated();
    json!({
        "scope": share.scope, "workload": share.workload, "worlds": share.worlds, "counters": share.judged(),
        "in_spread": spread, "within_2_percent": two, "within_10_percent": ten, "within_25_percent": quarter,
        "small_counters": share.small,
    })
}

fn records(summary: &WorldsSummary) -> Records {
    let header = ["table", "scope", "workload", "name", "measure", "value"];
    let mut rows = vec![header.map(str::to_owned).to_vec()];
    let mut add = |keys: [&str; 4], measure: &str, value: Option<f64>| {
        let [table, scope, workload, name] = keys.map(str::to_owned);
        let value = value.map_or_else(String::new, |value| value.to_string());
        rows.push(vec![table, scope, workload, name, measure.to_owned(), value]);
    };
    for share in &summary.shares {
        let keys = ["shares", &share.scope, &share.workload, ""];
        let [spread, two, ten, quarter, _] = share.cumulated().map(Some);
        let count = |count: usize| Some(count as f64);
        for (measure, value) in [
            ("worlds", count(share.worlds)),
            ("counters", count(share.judged())),
            ("in_spread", spread),
            ("within_2_percent", two),
            ("within_10_percent", ten),
            ("within_25_percent", quarter),
            ("small_counters", count(share.small)),
        ] {
            add(keys, measure, value);
        }
    }
    for line in &summary.headlines {
        let keys = ["headlines", &line.scope, &line.workload, &line.metric];
        add(keys, "worlds", Some(line.worlds as f64));
        add(keys, "within_5_percent", Some(line.right as f64));
        add(keys, "median_error", line.error);
    }
    for line in &summary.counters {
        let workloads = line.workloads.join(" ");
        let keys = ["counters", &line.scope, &workloads, &line.counter];
        for (measure, count) in [
            ("worlds", line.worlds),
            ("of", line.of),
            ("beyond_25_percent", line.beyond),
            ("largest", line.largest),
        ] {
            add(keys, measure, Some(count as f64));
        }
        let medians =
            [("median_error", line.error), ("median_real", line.real), ("median_model", line.model)];
        medians.into_iter().for_each(|(measure, value)| add(keys, measure, value));
        add(keys, "example_seed", Some(line.example as f64));
    }
    rows
}
