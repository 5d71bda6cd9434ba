//! A column of a comparison before it has run: what it is called, and its runs, one for each seed.
//!
//! Next: `compare.rs`, which plans the columns, and `grid.rs`, which plans further points of them.

use workload::scenario::{Backend, SEED_DEFAULT, Scenario};

use crate::resolve::command::command;

/// One column of a comparison before it has run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variant {
    /// What the column is called.
    pub label: String,
    /// The command that makes its runs again.
    pub command: String,
    /// Its runs, one for each seed.
    pub scenarios: Vec<Scenario>,
}

/// What a run is called: the simulated kernel, or where it runs and what is special there.
pub fn label(scenario: &Scenario) -> String {
    let differences = scenario.guest.map(|guest| guest.differences(&scenario.backend.default_guest()));
    let differences = differences.unwrap_or_default();
    match &scenario.backend {
        Backend::Sim => scenario.kernel.as_ref().map(ToString::to_string).unwrap_or_default(),
        real if differences.is_empty() => real.to_string(),
        real => format!("{real},{differences}"),
    }
}

/// The column of `scenario` with so many seeds.
pub(crate) fn variant(label: String, scenario: &Scenario, seeds: u64) -> Variant {
    let command = match seeds {
        1 => command(scenario),
        _ => {
            let unseeded = command(&Scenario { seed: SEED_DEFAULT, ..scenario.clone() });
            let first = scenario.seed.0;
            let last = first.wrapping_add(seeds - 1);
            format!("for seed in $(seq {first} {last}); do {unseeded} --seed $seed; done")
        }
    };
    Variant { label, command, scenarios: seeded(scenario, seeds) }
}

/// `scenario` with so many seeds, from its own on.
pub(crate) fn seeded(scenario: &Scenario, seeds: u64) -> Vec<Scenario> {
    let first = scenario.seed.0;
    let with = |offset: u64| Scenario { seed: units::Seed(first.wrapping_add(offset)), ..scenario.clone() };
    (0..seeds).map(with).collect()
}
