//! Both sides of one world beside each other: the counters that differ most, and where a counter's samples part.
//!
//! Samples are of one more run of each side, at the same times, counted from the beginning. Left out: why they part;
//! `pagetide explain` of a recording with events tells more of the model's side.

use recording::chunk::FactKind;
use recording::worlds::WorldRow;
use recording::{Recording, is_gauge};
use report::{EvidenceCounter, Parting, WorldEvidence};
use stats::describe::median;
use units::{Nanos, PAGE_SIZE};
use workload::Scenario;

use super::draw::Drawn;
use super::judge::{Class, SMALL_PAGES};
use super::one::OneWorld;
use super::run::recorded;
use super::{WorldsControl, WorldsError};
use crate::error::LabError;
use crate::resolve::command::command;
use crate::resolve::planned::PlannedRun;

/// Time between two samples.
const INTERVAL: Nanos = Nanos::from_millis(100);
/// Samples that are shown before the first at which the sides part, and from it on.
const SHOWN: (usize, usize) = (3, 9);
/// By what part of the real value they differ then.
const APART: f64 = 0.1;

impl OneWorld {
    /// What is known of it, and where its sides part.
    ///
    /// # Errors
    /// The sides cannot run.
    pub fn explain(&self, control: &WorldsControl) -> Result<WorldEvidence, LabError> {
        self.evidence(&self.drawn, self.rows.clone(), control)
    }

    /// The same of a world like it, of which there are these rows.
    pub(super) fn evidence(
        &self,
        drawn: &Drawn,
        rows: Vec<WorldRow>,
        control: &WorldsControl,
    ) -> Result<WorldEvidence, LabError> {
        let world = self.plan.sides(self.seed, drawn)?;
        let (Some(real), Some(model)) = (world.real.first(), world.model.first()) else {
            return Err(WorldsError::ModelAlone(self.name.clone()).into());
        };
        let row = rows.iter().find(|row| self.is_wanted(row)).unwrap_or(&self.wanted);
        let mut notes: Vec<String> = rows
            .iter()
            .filter(|row| row.kind == FactKind::Run.name() && row.counter == "outcome")
            .filter_map(|row| row.text.clone())
            .collect();
        let parting = match self.column() {
            Some(column) => self.parting(&column, [real, model], control, &mut notes),
            None if self.wanted.kind == FactKind::Run.name() => None,
            None => {
                notes.push(format!("`{}` is not sampled while a run goes", row.counter));
                None
            }
        };
        Ok(WorldEvidence {
            world: self.name.clone(),
            workload: drawn.workload.to_owned(),
            real_name: real.label.clone(),
            model_name: model.label.clone(),
            real_command: command(&real.scenario),
            model_command: command(&model.scenario),
            counter: counter(row),
            parting,
            counters: rows.iter().filter(|row| is_apart(row)).map(counter).collect(),
            tried: None,
            is_smallest: false,
            notes,
        })
    }

    /// The column that samples have the counter in.
    fn column(&self) -> Option<String> {
        match &*self.wanted.kind {
            kind if kind == FactKind::Vmstat.name() => Some(self.wanted.counter.clone()),
            kind if kind == FactKind::Memcg.name() => {
                let (path, name) = self.wanted.counter.rsplit_once(':')?;
                Some(format!("cg_{}_{name}", path.trim_start_matches('/').replace('/', "_")))
            }
            _ => None,
        }
    }

    fn parting(
        &self,
        column: &str,
        sides: [&PlannedRun; 2],
        control: &WorldsControl,
        notes: &mut Vec<String>,
    ) -> Option<Parting> {
        let mut samples = Vec::new();
        for run in sides {
            let scenario = Scenario { interval: Some(INTERVAL), ..run.scenario.clone() };
            match recorded(&PlannedRun { scenario, ..run.clone() }, control) {
                Ok(recording) => samples.push(since_begin(&recording, column)),
                Err(told) => {
                    notes.push(format!("{}: no samples: {told}", run.label));
                    return None;
                }
            }
        }
        let [Some(real), Some(model)] = &samples[..] else {
            notes.push(format!("`{}` is not sampled while a run goes", self.wanted.counter));
            return None;
        };
        Some(parted(real, model, small(&self.wanted)))
    }
}

/// Below which a difference is none.
fn small(row: &WorldRow) -> f64 {
    let name = row.counter.rsplit(':').next().unwrap_or_default();
    let in_bytes = row.kind == FactKind::Memcg.name() && is_gauge(name) && !name.starts_with("workingset_");
    if in_bytes { SMALL_PAGES * PAGE_SIZE as f64 } else { SMALL_PAGES }
}

/// Times in seconds and what a column had changed by.
type Samples = Vec<(f64, f64)>;

fn since_begin(recording: &Recording, column: &str) -> Option<Samples> {
    let values = recording.series.column(column)?;
    let times: Vec<u64> = recording.series.times_ns().collect();
    let (begin, first) = (*times.first()?, *values.first()? as f64);
    let sample = |(at, value): (u64, u64)| ((at - begin) as f64 / 1e9, value as f64 - first);
    Some(times.into_iter().zip(values).map(sample).collect())
}

/// Where two series part for the first time, with the samples around.
fn parted(real: &Samples, model: &Samples, small: f64) -> Parting {
    let at = |samples: &Samples, time: f64| {
        let place = samples.partition_point(|(at, _)| *at <= time + 1e-9);
        samples.get(place.checked_sub(1)?).map(|(_, value)| *value)
    };
    let longer = if real.len() >= model.len() { real } else { model };
    let rows: Vec<(f64, f64, f64)> = longer
        .iter()
        .map(|&(time, _)| (time, at(real, time).unwrap_or(0.0), at(model, time).unwrap_or(0.0)))
        .collect();
    let apart = |&(_, real, model): &(f64, f64, f64)| {
        (real - model).abs() >= small && (real - model).abs() > APART * real.abs()
    };
    let first = rows.iter().position(apart);
    let from = first.unwrap_or(0).saturating_sub(SHOWN.0);
    let shown = rows.iter().skip(from).take(SHOWN.0 + SHOWN.1).copied().collect();
    Parting { at_seconds: first.map(|first| rows[first].0), samples: shown }
}

fn is_apart(row: &WorldRow) -> bool {
    row.kind != FactKind::Run.name() && Class::named(&row.class).is_some_and(Class::disagrees)
}

fn counter(row: &WorldRow) -> EvidenceCounter {
    EvidenceCounter {
        kind: row.kind.clone(),
        counter: row.counter.clone(),
        real: row.real.clone(),
        model: row.model.clone(),
        off: median(&row.real).zip(median(&row.model)).map_or(0.0, |(real, model)| model - real),
        class: row.class.clone(),
        error: row.error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn series_part_at_the_first_sample_that_is_ten_percent_off_and_not_small() {
        let real: Samples = (0..40).map(|at| (f64::from(at) / 10.0, f64::from(at) * 100.0)).collect();
        let model: Samples =
            real.iter().map(|&(at, value)| (at, if at < 2.0 { value } else { value * 0.8 })).collect();
        let found = parted(&real, &model, 256.0);
        assert_eq!(found.at_seconds, Some(2.0));
        assert_eq!(found.samples[SHOWN.0], (2.0, 2000.0, 1600.0));
        assert_eq!(found.samples.len(), SHOWN.0 + SHOWN.1);
        assert_eq!(parted(&real, &real, 256.0).at_seconds, None);
        let short: Samples = real[..10].to_vec();
        assert_eq!(parted(&real, &short, 256.0).at_seconds, Some(1.2), "one has ended");
    }
}
