//! The folder of a comparison: a recording for each run that has finished, so that it can be gone on with.
//!
//! Left out: what such folders have in common, see [`crate::plan::sweep`].

use std::path::Path;

use recording::Recording;

use super::Comparison;
use crate::error::LabError;
use crate::plan::sweep::folder::first_and_hash;
use crate::plan::sweep::{PlanOf, SweepFolder};
use crate::resolve::planned::PlannedRun;

/// Characters of a label that the folder of a run has in its name; the system takes 255 bytes.
const LABEL_MAX: usize = 200;

impl Comparison {
    /// The folder that takes the recordings of [`Comparison::runs`] as they are made; with `resume` one in which this
    /// comparison was begun. Returns also what has finished there, an entry for each run.
    ///
    /// # Errors
    /// As [`SweepFolder::open`].
    pub fn folder(
        &self,
        path: &Path,
        resume: bool,
    ) -> Result<(SweepFolder, Vec<Option<Recording>>), LabError> {
        let runs = self.runs();
        let digits = runs.len().to_string().len();
        // Names begin with the run's number, so that they sort in the order of the plan and the baseline
        // stays the baseline.
        let name = |(index, PlannedRun { label, scenario }): (usize, &PlannedRun)| {
            let label: String = label.replace(['/', ' '], "-").chars().take(LABEL_MAX).collect();
            format!("{:0digits$}-{label}-seed{}", index + 1, scenario.seed.0)
        };
        let names = runs.iter().enumerate().map(name).collect();
        let variants = self.variants.iter().map(|variant| format!("`{}`", variant.label));
        let mut text = format!("variants = {}\n", variants.collect::<Vec<_>>().join(", "));
        text += &format!("seeds = {}\n", self.variants.first().map_or(0, |v| v.scenarios.len()));
        text += &format!("runs = {}\n", runs.len());
        let scenarios: Vec<String> = runs.iter().map(|run| run.scenario.to_toml()).collect();
        text += &first_and_hash(scenarios.first().map_or("", String::as_str), &scenarios.concat());
        SweepFolder::open_for(path, PlanOf::Comparison, names, &text, resume)
    }
}
