//! How two groups of runs differ in one measure, how sure that is, and a word for it.
//!
//! Rules. Several runs a side are judged by a t test: paired where both sides have the same
//! seeds, Welch's otherwise; verdicts hold at 5 % over all rows of a table together (Holm). One
//! simulated run a side is exact for its seed, so the change is told without any interval. One
//! run of a real kernel a side tells nothing about its spread: no verdict. A measure that a side
//! lacks is missing, not 0.
//!
//! Left out: the correction over a table's rows, see [`crate::compare`].

use std::collections::BTreeSet;

use recording::Recording;
use stats::describe::mean;
use stats::difference::Difference;
use stats::{Summary, paired_t_test, welch_t_test};

use crate::Group;
use crate::measure::Direction;
use crate::number::{percent_with_interval, plain, signed, signed_percent, with_spread};

/// The level of intervals; verdicts hold at 1 minus this.
const LEVEL: f64 = 0.95;

/// What a side's runs say about one measure.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Side {
    /// The value of each run that has the measure, in the order of the runs.
    pub(crate) values: Vec<f64>,
    /// Runs that do not have it.
    pub(crate) missing: usize,
}

impl Side {
    pub(crate) fn of(group: &Group<'_>, value: impl Fn(&Recording) -> Option<f64>) -> Self {
        let values: Vec<f64> = group
            .recordings
            .iter()
            .filter_map(|recording| value(recording))
            .filter(|v| v.is_finite())
            .collect();
        let missing = group.recordings.len() - values.len();
        Self { values, missing }
    }

    pub(crate) fn mean(&self) -> Option<f64> {
        mean(&self.values)
    }

    pub(crate) fn text(&self) -> String {
        match Summary::of(&self.values) {
            None => "missing".into(),
            Some(Summary { mean, stddev: Some(stddev), .. }) => with_spread(mean, stddev),
            Some(Summary { mean, .. }) => plain(mean),
        }
    }
}

/// How the two sides of a measure differ.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Change {
    /// A side lacks the measure.
    Missing,
    /// One simulated run a side: new minus base, exact for the seed.
    Exact(f64),
    /// Only one run on a side whose repeats would vary: new minus base, nothing known beyond.
    OneRun(f64),
    /// Several runs a side.
    Tested(Difference),
}

/// Below this part of the base an exact change is told as none worth a word.
const ALIKE: f64 = 0.001;

impl Change {
    /// The change from `base` to `new`, two sides of one measure.
    pub(crate) fn between(base: &Side, new: &Side, pairing: Pairing) -> Self {
        let (Some(base_mean), Some(new_mean)) = (base.mean(), new.mean()) else { return Self::Missing };
        let paired = pairing.same_seeds && base.missing == 0 && new.missing == 0;
        let tested = if paired {
            paired_t_test(&base.values, &new.values, LEVEL)
        } else {
            welch_t_test(&base.values, &new.values, LEVEL)
        };
        match tested {
            Some(difference) => Self::Tested(difference),
            None if pairing.deterministic && base.values.len() == 1 && new.values.len() == 1 => {
                Self::Exact(new_mean - base_mean)
            }
            None => Self::OneRun(new_mean - base_mean),
        }
    }

    /// The change as text: a percentage of the base, or the plain difference where base is 0. Single
    /// runs of real kernels are told as the ratio to the base.
    pub(crate) fn text(self, base: f64) -> String {
        let percent = |change: f64| 100.0 * change / base.abs();
        match self {
            Self::Missing => "-".into(),
            Self::Exact(change) | Self::OneRun(change) if base == 0.0 => signed(change),
            Self::Exact(change) => signed_percent(percent(change)),
            Self::OneRun(change) => format!("x {:.4}", (base + change) / base),
            Self::Tested(d) if base == 0.0 => {
                format!("{} [{}, {}]", signed(d.difference), signed(d.low), signed(d.high))
            }
            Self::Tested(d) => percent_with_interval(percent(d.difference), percent(d.low), percent(d.high)),
        }
    }

    /// A word for the change, given p after correction.
    pub(crate) fn verdict(self, direction: Direction, base: f64, corrected_p: f64) -> &'static str {
        let change = match self {
            Self::Missing => return "-",
            Self::OneRun(_) => return "one run",
            Self::Exact(change) if change != 0.0 && change.abs() < ALIKE * base.abs() => return "alike",
            Self::Exact(change) => change,
            Self::Tested(d) if d.difference != 0.0 && corrected_p >= 1.0 - LEVEL => return "no clear change",
            Self::Tested(d) if d.difference == 0.0 && d.low < d.high => return "no clear change",
            Self::Tested(d) => d.difference,
        };
        match (change.total_cmp(&0.0), direction) {
            _ if change == 0.0 => "same",
            (std::cmp::Ordering::Greater, Direction::Higher)
            | (std::cmp::Ordering::Less, Direction::Lower) => "better",
            (std::cmp::Ordering::Greater, Direction::Neutral) => "higher",
            (_, Direction::Neutral) => "lower",
            _ => "worse",
        }
    }
}

/// What is known about the runs of two groups as such.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pairing {
    /// Run `i` of both groups has the same seed.
    pub(crate) same_seeds: bool,
    /// All of them are simulated, so a repeat would give the same.
    pub(crate) deterministic: bool,
}

impl Pairing {
    pub(crate) fn of(base: &Group<'_>, new: &Group<'_>) -> Self {
        let seeds = |group: &Group<'_>| group.recordings.iter().map(|r| r.seed).collect::<Vec<_>>();
        let distinct = seeds(base).into_iter().collect::<BTreeSet<_>>().len() == base.recordings.len();
        Self {
            same_seeds: distinct && seeds(base) == seeds(new),
            deterministic: base.recordings.iter().chain(&new.recordings).all(|r| r.is_simulated()),
        }
    }
}
