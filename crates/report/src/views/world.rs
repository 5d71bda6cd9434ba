//! One world on both sides: the commands, a counter, where its samples part, and the other counters that differ.
//!
//! Left out: how it was found (`pagetide-lab`, `worlds/evidence.rs`).

use serde_json::{Value, json};
use stats::describe::median;

use super::worlds::error_text;
use crate::document::{Block, Cell, Document, Records, Section, Table, row};

/// A counter on both sides.
#[derive(Debug, Clone, PartialEq)]
pub struct EvidenceCounter {
    /// `vmstat`, `memcg`, `metric` or `run`.
    pub kind: String,
    /// Its name; of a cgroup `PATH:COUNTER`.
    pub counter: String,
    /// What it was in each real run.
    pub real: Vec<f64>,
    /// The same of the model.
    pub model: Vec<f64>,
    /// How much more the model has, by medians.
    pub off: f64,
    /// How near they are.
    pub class: String,
    /// By how much the model is off the nearest real run, as a part of it.
    pub error: Option<f64>,
}

/// Where the samples of a counter part.
#[derive(Debug, Clone, PartialEq)]
pub struct Parting {
    /// At the first sample that is more than 10 % off; none where all are nearer.
    pub at_seconds: Option<f64>,
    /// Seconds, the real value and the model's since the beginning, around that.
    pub samples: Vec<(f64, f64, f64)>,
}

/// What is known of a world that disagrees.
#[derive(Debug, Clone, PartialEq)]
pub struct WorldEvidence {
    /// `KERNEL/SEED`.
    pub world: String,
    /// The workload.
    pub workload: String,
    /// What ran for real.
    pub real_name: String,
    /// The model.
    pub model_name: String,
    /// The command of the real side.
    pub real_command: String,
    /// That of the model.
    pub model_command: String,
    /// The counter that is asked about.
    pub counter: EvidenceCounter,
    /// Where its samples part, if it is sampled.
    pub parting: Option<Parting>,
    /// All counters that are more than 10 % off.
    pub counters: Vec<EvidenceCounter>,
    /// How many smaller worlds were tried, if any.
    pub tried: Option<usize>,
    /// Whether nothing smaller was left to try.
    pub is_smallest: bool,
    /// What a reader must know, a sentence each.
    pub notes: Vec<String>,
}

/// Counters of one kind that text and Markdown show.
const SHOWN: usize = 15;

/// What is known of a world that disagrees, both sides beside each other.
///
/// CSV: one row for each number: `part,kind,name,side,at,value`.
pub fn world(evidence: &WorldEvidence) -> Document<'_> {
    let WorldEvidence { real_name, real_command, model_name, model_command, .. } = evidence;
    let commands = [(real_name, real_command), (model_name, model_command)];
    let commands = commands.map(|(name, command)| (name.clone(), command.clone())).to_vec();
    Document::new("world")
        .section(Section::first(title(evidence), None))
        .section(Section::new(heading(evidence)).with(counters(evidence, [&evidence.counter].into_iter())))
        .sections(evidence.parting.iter().map(|parting| parted(evidence, parting)))
        .sections(KINDS.iter().filter_map(|(kind, heading)| others(evidence, kind, heading)))
        .section(Section::untitled().with(Block::Commands { heading: "Make it again", commands }))
        .section(Section::untitled().lines_of(evidence.notes.clone()))
        .json(|| value(evidence))
        .csv(|| records(evidence))
}

const KINDS: [(&str, &str); 3] = [
    ("vmstat", "counters of /proc/vmstat that differ most"),
    ("memcg", "counters of memory.stat that differ most"),
    ("metric", "metrics that differ most"),
];

fn title(evidence: &WorldEvidence) -> String {
    let WorldEvidence { world, workload, real_name, model_name, tried, is_smallest, .. } = evidence;
    let smaller = match (tried, is_smallest) {
        (None, _) => String::new(),
        (Some(tried), true) => format!(", made as small as it can be by {tried} tries"),
        (Some(tried), false) => format!(", made smaller by {tried} tries"),
    };
    format!("world {world}, {workload}: {real_name} beside {model_name}{smaller}")
}

fn heading(evidence: &WorldEvidence) -> String {
    let EvidenceCounter { counter, error, .. } = &evidence.counter;
    match error_text(*error) {
        text if text.is_empty() => counter.clone(),
        text => format!("{counter}: {text}"),
    }
}

fn counters<'a>(evidence: &WorldEvidence, rows: impl Iterator<Item = &'a EvidenceCounter>) -> Table {
    let names = [&evidence.real_name, &evidence.model_name].map(String::as_str);
    let mut table = Table::new().texts(["counter"]).amounts(names).amounts(["off", "error"]).breaking_names();
    for counter in rows {
        let middle = |values: &[f64]| match median(values) {
            Some(value) => Cell::Number(value),
            None => Cell::None,
        };
        let (real, model) = (middle(&counter.real), middle(&counter.model));
        table.push(row![&counter.counter, real, model, Cell::Number(counter.off), error_text(counter.error)]);
    }
    table
}

/// Those of a kind, the ones that are off by the most first.
fn others(evidence: &WorldEvidence, kind: &str, heading: &str) -> Option<Section> {
    let mut rows: Vec<&EvidenceCounter> = evidence.counters.iter().filter(|row| row.kind == kind).collect();
    rows.sort_by(|a, b| b.off.abs().total_cmp(&a.off.abs()).then_with(|| a.counter.cmp(&b.counter)));
    let all = rows.len();
    let of = if all > SHOWN { format!(", {SHOWN} of {all}") } else { String::new() };
    let table = counters(evidence, rows.into_iter().take(SHOWN));
    (all > 0).then(|| Section::new(format!("{heading}{of}")).with(table))
}

fn parted(evidence: &WorldEvidence, parting: &Parting) -> Section {
    let heading = match parting.at_seconds {
        Some(at) => format!("samples part at {at:.3} s"),
        None => "no sample is more than 10 % off, small differences aside".to_owned(),
    };
    let mut table = Table::new()
        .texts(["since the beginning, s"])
        .amounts([&evidence.real_name, &evidence.model_name].map(String::as_str))
        .amounts(["off"]);
    for &(at, real, model) in &parting.samples {
        let first = if parting.at_seconds == Some(at) { " <" } else { "" };
        table.push(row![
            format!("{at:.3}{first}"),
            Cell::Number(real),
            Cell::Number(model),
            Cell::Number(model - real)
        ]);
    }
    Section::new(heading).with(table)
}

fn value(evidence: &WorldEvidence) -> Value {
    let counter = |counter: &EvidenceCounter| {
        json!({
            "kind": counter.kind, "counter": counter.counter, "real": counter.real, "model": counter.model,
            "off": counter.off, "class": counter.class, "error": counter.error,
        })
    };
    let parting = |parting: &Parting| {
        let sample =
            |(at, real, model): &(f64, f64, f64)| json!({ "seconds": at, "real": real, "model": model });
        let samples: Vec<Value> = parting.samples.iter().map(sample).collect();
        json!({ "at_seconds": parting.at_seconds, "samples": samples })
    };
    json!({
        "schema": 1,
        "world": evidence.world,
        "workload": evidence.workload,
        "real": { "name": evidence.real_name, "command": evidence.real_command },
        "model": { "name": evidence.model_name, "command": evidence.model_command },
        "counter": counter(&evidence.counter),
        "parting": evidence.parting.as_ref().map(parting),
        "counters": evidence.counters.iter().map(counter).collect::<Vec<_>>(),
        "tried": evidence.tried,
        "smallest": evidence.is_smallest,
        "notes": evidence.notes,
    })
}

fn records(evidence: &WorldEvidence) -> Records {
    let header = ["part", "kind", "name", "side", "at", "value"];
    let mut rows = vec![header.map(str::to_owned).to_vec()];
    let all = std::iter::once(("counter", &evidence.counter))
        .chain(evidence.counters.iter().map(|counter| ("counters", counter)));
    for (part, counter) in all {
        for (side, values) in [("real", &counter.real), ("model", &counter.model)] {
            for (run, value) in (1..).zip(values) {
                let cells =
                    [part, &counter.kind, &counter.counter, side, &run.to_string(), &value.to_string()];
                rows.push(cells.map(str::to_owned).to_vec());
            }
        }
    }
    let EvidenceCounter { kind, counter, .. } = &evidence.counter;
    for (at, real, model) in evidence.parting.iter().flat_map(|parting| &parting.samples) {
        for (side, value) in [("real", real), ("model", model)] {
            let cells = ["samples", kind, counter, side, &at.to_string(), &value.to_string()];
            rows.push(cells.map(str::to_owned).to_vec());
        }
    }
    let commands = [("real", &evidence.real_command), ("model", &evidence.model_command)];
    rows.extend(commands.map(|(side, text)| ["command", "", "", side, "", text].map(str::to_owned).to_vec()));
    rows
}
