//! Rows of captured programs: a guest beside the model, both as they were recorded.
//!
//! A trace is as large as what the program did, and holds its paths, so none of them is kept here; whoever has one
//! runs both sides again by the row's command. Left out: the knee of the curve. Next: `data/program-reference.toml`.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::{Row, Tolerance, verdict};

/// Recorded figures.
const REFERENCE: &str = include_str!("../../data/program-reference.toml");

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Reference {
    program: Vec<Program>,
}

/// A program that was captured.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Program {
    name: String,
    /// The file that its capture made.
    trace: String,
    /// The command that captured it.
    capture: String,
    kernel: String,
    mem: String,
    /// What both machines swap to.
    swap: Option<String>,
    row: Vec<Limited>,
}

/// A replay below a limit.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Limited {
    limit: String,
    guest: BTreeMap<String, f64>,
    simulated: BTreeMap<String, f64>,
}

/// How near a figure has to be.
const TOLERANCE: Tolerance = Tolerance::Relative(0.15);

/// A row for each figure of each replay.
pub(super) fn rows() -> Vec<Row> {
    let reference: Reference = toml::from_str(REFERENCE).expect("the embedded reference is well-formed");
    reference.program.iter().flat_map(rows_of).collect()
}

fn rows_of(program: &Program) -> impl Iterator<Item = Row> + '_ {
    let Program { name, trace, capture, kernel, mem, swap, row } = program;
    let swap = swap.as_ref().map(|areas| format!(" --swap {areas}")).unwrap_or_default();
    row.iter().flat_map(move |Limited { limit, guest, simulated }| {
        let replay = format!("pagetide replay {trace} --limit {limit} --mem {mem}{swap} --pace asap");
        let command = format!("{capture}; {replay} --kernel {kernel} --machine guest-tcg");
        simulated.iter().map(move |(counter, &simulated)| {
            let guest = guest.get(counter).copied().into_iter().collect::<Vec<_>>();
            Row {
                scenario: format!("program_{name}_{}", limit.to_lowercase()),
                workload: "replay".to_owned(),
                kernel: kernel.clone(),
                counter: counter.clone(),
                measured: Vec::new(),
                verdict: verdict(TOLERANCE, &guest, &[simulated], 0.0),
                guest,
                simulated: vec![simulated],
                command: command.clone(),
            }
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guest_and_model_count_the_same_things() {
        let reference: Reference = toml::from_str(REFERENCE).expect("well-formed");
        for limited in reference.program.iter().flat_map(|program| &program.row) {
            assert!(limited.guest.keys().eq(limited.simulated.keys()), "{limited:?}");
        }
        let rows = rows();
        assert!(rows.iter().all(|row| row.guest.len() == 1 && row.verdict != "shown"));
        assert_eq!(rows[0].scenario, "program_sqlite_32m");
    }
}
