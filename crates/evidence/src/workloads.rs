//! What the workloads are, do and count: `docs/workloads.md`.
//!
//! The text is `data/workloads.md`. A line `{{parameters NAME}}`, `{{phases NAME}}` or
//! `{{varies NAME}}` in it stands for what the catalog says of that workload, `{{figures}}` for the
//! rows of `data/workloads.toml`, whose runs are made anew. So nothing here goes stale by itself.
//! Left out: what the sources report, see [`crate::sources`].

use serde::Deserialize;
use units::Bytes;
use workload::{ParamKind, ParamSpec, ParamValue, WorkloadSpec};

use crate::rows::figure;
use lab::LabError;
use lab::PlannedRun;
use lab::batch::{Control, run_all};
use lab::experiment::Experiment;
use lab::{Request, Subject};

const TEXT: &str = include_str!("../data/workloads.md");
const ROWS: &str = include_str!("../data/workloads.toml");
/// Seeds of every figure: where they differ, the smallest and the largest value are shown.
const SEEDS: [u64; 3] = [1, 2, 3];

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Rows {
    row: Vec<Row>,
}

/// A metric of one command.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    workload: String,
    #[serde(default)]
    machine: Option<String>,
    mem: String,
    #[serde(default)]
    params: Vec<String>,
    metric: String,
}

impl Row {
    fn command(&self) -> String {
        let machine = self.machine.iter().map(|name| format!(" --machine {name}"));
        let params = self.params.iter().map(|pair| format!(" --param {pair}"));
        let options: String = machine.chain([format!(" --mem {}", self.mem)]).chain(params).collect();
        format!("pagetide compare {}{options}", self.workload)
    }

    fn kernels(&self) -> &'static [&'static str] {
        Experiment::of(&self.workload).map_or(&[], |experiment| experiment.kernels)
    }

    fn request(&self, kernel: &str, seed: u64) -> Request {
        Request {
            kernel: Some(kernel.to_owned()),
            machine: self.machine.clone(),
            mem: Some(self.mem.clone()),
            params: self.params.clone(),
            seed: Some(seed),
            ..Request::new(Subject::Workload(self.workload.clone()))
        }
    }
}

fn rows() -> Vec<Row> {
    toml::from_str::<Rows>(ROWS).expect("the embedded rows are well-formed").row
}

/// The cells of every row, by kernel: what the runs give.
///
/// # Errors
/// The first run that fails.
pub(crate) fn figures(jobs: usize, control: &Control) -> Result<Vec<Vec<String>>, LabError> {
    let rows = rows();
    let mut plan = Vec::new();
    for row in &rows {
        for kernel in row.kernels() {
            for seed in SEEDS {
                let scenario = row.request(kernel, seed).resolve()?;
                plan.push(PlannedRun { label: (*kernel).to_owned(), scenario });
            }
        }
    }
    let recordings = run_all(&plan, jobs, control, |_, _| Ok(()))?.into_result()?;
    let mut cells = recordings.chunks(SEEDS.len());
    let mut cell = |row: &Row| {
        let runs = cells.next().expect("a chunk for each kernel of each row");
        span(runs.iter().filter_map(|run| run.metrics.get(&row.metric).copied()))
    };
    Ok(rows.iter().map(|row| row.kernels().iter().map(|_| cell(row)).collect()).collect())
}

fn span(values: impl Iterator<Item = f64>) -> String {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let rounded = |value: f64| if value.fract() == 0.0 { figure(value) } else { format!("{value:.1}") };
    match &values[..] {
        [] => "-".to_owned(),
        [first, .., last] if first != last => format!("{} to {}", rounded(*first), rounded(*last)),
        [first, ..] => rounded(*first),
    }
}

/// `docs/workloads.md` with these figures.
///
/// # Panics
/// When the text asks for what is not there: a mistake in `data/workloads.md`.
pub(crate) fn to_markdown(figures: &[Vec<String>]) -> String {
    TEXT.lines().map(|line| filled(line, figures) + "\n").collect()
}

fn filled(line: &str, figures: &[Vec<String>]) -> String {
    let Some(place) = line.strip_prefix("{{").and_then(|rest| rest.strip_suffix("}}")) else {
        return line.to_owned();
    };
    let of = |name: &str| WorkloadSpec::find(name).expect("the text names workloads of the catalog");
    match place.split_once(' ') {
        Some(("parameters", name)) => parameters(of(name)),
        Some(("phases", name)) => phases(of(name)),
        Some(("varies", name)) => varies(of(name)),
        None if place == "figures" => figure_table(&rows(), figures),
        _ => panic!("`{line}` stands for nothing"),
    }
}

fn parameters(spec: &WorkloadSpec) -> String {
    let row = |param: &ParamSpec| {
        let default = param.default.map_or("none".to_owned(), |default| format!("`{default}`"));
        format!("\n| `{}` | {default} | {} | {} |", param.name, values(param.kind), param.help)
    };
    let rows: String = spec.params.iter().map(row).collect();
    format!("| parameter | default | values | what it is |\n|---|---|---|---|{rows}")
}

fn values(kind: ParamKind) -> String {
    let size = |bytes: Bytes| ParamValue::Size(bytes).to_string();
    match kind {
        ParamKind::Size { min, max } => format!("{} to {}", size(min), size(max)),
        ParamKind::Count { min, max } => format!("{min} to {max}"),
        ParamKind::Share { min, max } => format!("{min} to {max}"),
        ParamKind::File => "the path of a file".to_owned(),
        ParamKind::Choice(words) => {
            words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
        }
    }
}

fn phases(spec: &WorkloadSpec) -> String {
    let names: Vec<String> = spec.phases.iter().map(|phase| format!("`{phase}`")).collect();
    format!("Phases: {}.", names.join(", "))
}

fn varies(spec: &WorkloadSpec) -> String {
    let lines: Vec<String> = spec.varies.iter().map(|what| format!("- {what}")).collect();
    format!("What a seed decides:\n\n{}", lines.join("\n"))
}

fn figure_table(rows: &[Row], figures: &[Vec<String>]) -> String {
    let kernels = rows.first().map_or(&[][..], Row::kernels);
    let steps: Vec<String> = (0..kernels.len()).map(|index| step(kernels, index)).collect();
    let mut text = format!(
        "| command, seeds 1 to 3 | metric | {} |\n|---|---|{}",
        steps.join(" | "),
        "---:|".repeat(steps.len())
    );
    for (row, cells) in rows.iter().zip(figures) {
        text += &format!("\n| `{}` | `{}` | {} |", row.command(), row.metric, cells.join(" | "));
    }
    text
}

/// The baseline by its name, the others by the last step that they add.
fn step(kernels: &[&str], index: usize) -> String {
    match (index, kernels[index].rsplit_once('+')) {
        (1.., Some((_, added))) => format!("+{added}"),
        _ => kernels[index].to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three of its rows had gone stale unseen. Figures are made anew by the command in its head;
    /// all else must be what the catalog says now.
    #[test]
    fn the_document_on_workloads_says_what_the_catalog_says() {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/workloads.md");
        let document = std::fs::read_to_string(path).unwrap();
        let shown: Vec<Vec<String>> = rows()
            .iter()
            .map(|row| {
                let head = format!("| `{}` | `{}` | ", row.command(), row.metric);
                let cells = document.lines().find_map(|line| line.strip_prefix(&head)).unwrap_or_default();
                cells.trim_end_matches(" |").split(" | ").map(str::to_owned).collect()
            })
            .collect();
        assert!(
            document == to_markdown(&shown),
            "docs/workloads.md is stale: cargo run --release -p pagetide-evidence -- workloads > docs/workloads.md"
        );
        for (row, cells) in rows().iter().zip(shown) {
            assert_eq!(cells.len(), row.kernels().len(), "{}", row.command());
        }
    }

    #[test]
    fn the_rows_name_what_exists_and_their_commands_are_what_runs() {
        for row in rows() {
            for kernel in row.kernels() {
                row.request(kernel, 1).resolve().unwrap();
            }
        }
        assert_eq!(rows()[0].command(), "pagetide compare huge-faults --mem 256M --param advice=madvise");
    }

    #[test]
    fn figures_that_differ_by_seed_are_a_span() {
        assert_eq!(span([3.0, 1.0, 2.0].into_iter()), "1 to 3");
        assert_eq!(span([5.25, 5.25].into_iter()), "5.2");
        assert_eq!(span(std::iter::empty()), "-");
    }
}
