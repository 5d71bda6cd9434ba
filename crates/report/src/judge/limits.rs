//! Limits on a comparison: which columns went beyond what somebody wants to be told of.
//!
//! A limit is on one number of each run: a metric, the mean or a percentile of samples, a counter, a counter
//! of a cgroup. Every column but the baseline is judged by the rules of [`crate::judge::change`], with all limits as
//! one family of tests. A change that is not clear from noise, or below what the model resolves, counts as
//! none. One run a side of a real kernel has no known spread and is taken as measured, which is said; only
//! a limit without an amount is not decided by it. A column whose runs lack the number more often than those of the
//! baseline is beyond every limit on it: a run that was killed is no pass.
//!
//! Left out: how a limit is written (`pagetide-lab`), and further points of an experiment's grid.

use std::collections::BTreeSet;

use recording::Recording;
use stats::multiple::Family;

use crate::judge::change::{Change, Pairing, Side, is_modelled};
use crate::judge::compared::by_seed;
use crate::judge::group::Group;
use crate::judge::measure::{Direction, direction, unit};
use crate::judge::outcome::{Judged, Outcome};
use crate::judge::view::{Measure, Measures, View};

/// Something that must not be so.
#[derive(Debug, Clone, PartialEq)]
pub struct Limit {
    /// As it was written.
    pub text: String,
    /// What it is on: the name of a metric or of samples, `SAMPLES.p99`, a counter, or `CGROUP:COUNTER`.
    pub name: String,
    /// When it is crossed.
    pub condition: Condition,
}

/// When a limit is crossed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Condition {
    /// A number is below or above another one.
    Compared {
        /// Which number of the column.
        of: LimitOn,
        /// How it is compared.
        order: Order,
        /// With what.
        amount: Amount,
    },
    /// The number went this way from the baseline's, by more than so much if that is said.
    Went(Way, Option<Amount>),
}

/// Which number a condition is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitOn {
    /// The column's own.
    Value,
    /// The difference to the baseline's.
    Change,
}

/// How two numbers are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Order {
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// Where a number went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// The way that is the bad one of this measure.
    Worse,
    /// The good one.
    Better,
    /// Either.
    Changed,
}

/// How much.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Amount {
    /// Percent of the baseline's number.
    Percent(f64),
    /// In the unit of the number itself.
    Plain(f64),
    /// A time in nanoseconds, for what is measured in a unit of time.
    Nanoseconds(f64),
    /// A size in bytes, for what is measured in a unit of size.
    Bytes(f64),
}

/// Why a limit cannot be judged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LimitError {
    /// No run has such a number.
    #[error("`{limit}`: no run has a metric, samples or counter `{name}`")]
    Unknown {
        /// The limit.
        limit: String,
        /// What it is on.
        name: String,
        /// What there is.
        known: Vec<String>,
    },
    /// Nobody knows which way of this number is the good one.
    #[error("`{limit}`: nobody says which way of `{name}` is the better one")]
    NoDirection {
        /// The limit.
        limit: String,
        /// What it is on.
        name: String,
    },
    /// An amount in a unit that is no other one of the number's.
    #[error("`{limit}`: `{name}` is {measured}, and the limit is {asked}")]
    Unit {
        /// The limit.
        limit: String,
        /// What it is on.
        name: String,
        /// What the number is.
        measured: String,
        /// What the limit is.
        asked: &'static str,
    },
}

/// Judges `limits` on every group but the first; `view` tells what headlines there are.
///
/// # Errors
/// A limit on what no run has, or that does not suit it.
pub fn judge_limits(groups: &[Group<'_>], view: &View, limits: &[Limit]) -> Result<Vec<Judged>, LimitError> {
    let groups = &by_seed(groups)[..];
    let found = limits.iter().map(|limit| On::find(limit, groups, view));
    let found: Vec<On<'_>> = found.collect::<Result<_, _>>()?;
    let pairs: Vec<(&On<'_>, usize)> =
        found.iter().flat_map(|on| (1..groups.len()).map(move |index| (on, index))).collect();
    let change = |&(on, index): &(&On<'_>, usize), family| {
        let pairing = Pairing::of(&groups[0], &groups[index]);
        Change::between(&on.sides[0], &on.sides[index], pairing, family)
    };
    let tested = pairs.iter().filter(|pair| change(pair, Family { tests: 1 }).tested().is_some());
    let family = Family { tests: tested.count() };
    let modelled: Vec<bool> = groups.iter().map(is_modelled).collect();
    let judged = |pair: &(&On<'_>, usize)| {
        let (on, index) = *pair;
        let resolution = if modelled[0] || modelled[index] { on.resolution } else { 0.0 };
        on.judge(&groups[index].label, index, change(pair, family), resolution)
    };
    Ok(pairs.iter().map(judged).collect())
}

/// A limit and the numbers that it is on.
struct On<'a> {
    limit: &'a Limit,
    direction: Direction,
    resolution: f64,
    /// The amount in the number's unit, or in percent.
    amount: Option<f64>,
    is_percent: bool,
    sides: Vec<Side>,
}

impl<'a> On<'a> {
    fn find(limit: &'a Limit, groups: &[Group<'_>], view: &View) -> Result<Self, LimitError> {
        let recordings: Vec<&Recording> =
            groups.iter().flat_map(|group| group.recordings.iter().copied()).collect();
        let Some(number) = Number::named(&limit.name, &recordings, view) else {
            let (limit, name) = (limit.text.clone(), limit.name.clone());
            return Err(LimitError::Unknown { limit, name, known: known(&recordings) });
        };
        let (way, resolution, unit) = number.traits();
        if way == Direction::Neutral
            && matches!(limit.condition, Condition::Went(Way::Worse | Way::Better, _))
        {
            let (limit, name) = (limit.text.clone(), limit.name.clone());
            return Err(LimitError::NoDirection { limit, name });
        }
        let amount = match limit.condition {
            Condition::Compared { amount, .. } => Some(amount),
            Condition::Went(_, amount) => amount,
        };
        let in_unit = amount.map(|amount| in_unit(amount, unit));
        let in_unit = in_unit.transpose().map_err(|asked| LimitError::Unit {
            limit: limit.text.clone(),
            name: limit.name.clone(),
            measured: if unit.is_empty() { "a plain number".to_owned() } else { format!("in {unit}") },
            asked,
        })?;
        let sides = groups.iter().map(|group| Side::of(group, |run| number.value(run))).collect();
        let is_percent = matches!(amount, Some(Amount::Percent(_)));
        Ok(Self { limit, direction: way, resolution, amount: in_unit, is_percent, sides })
    }

    fn judge(&self, label: &str, index: usize, change: Change, resolution: f64) -> Judged {
        let (base, new) = (&self.sides[0], &self.sides[index]);
        let base_mean = base.mean().unwrap_or(0.0);
        let verdict = change.verdict(self.direction, base_mean, resolution);
        let (outcome, why) = self.outcome(base, new, change, verdict);
        Judged {
            limit: self.limit.text.clone(),
            label: label.to_owned(),
            values: [base.mean(), new.mean()],
            change: change.text(base_mean, 1.0, verdict),
            outcome,
            why,
        }
    }

    fn outcome(&self, base: &Side, new: &Side, change: Change, verdict: &str) -> (Outcome, &'static str) {
        if new.missing > base.missing {
            return (Outcome::Missing, "runs of this column lack it");
        }
        if let Condition::Compared { of: LimitOn::Value, order, .. } = self.limit.condition {
            let Some(mean) = new.mean() else {
                return (Outcome::Missing, "no run of this column has it, or samples enough for it");
            };
            return (crossed(order.holds(mean, self.amount.unwrap_or(0.0))), "");
        }
        let (Some(base), Some(difference)) = (base.mean(), change.difference()) else {
            return (Outcome::Missing, "a side has no number, or too few samples for it");
        };
        let one_run = matches!(change, Change::OneRun(_));
        let beyond = self.is_beyond(difference, base);
        let none = match verdict {
            "no clear change" => "the change is not clear from noise, and counts as none",
            "below resolution" => "the change is below what the model resolves, and counts as none",
            "one run" if self.amount.is_none() => "a side has one run: how much repeats vary is not known",
            _ if one_run => return (crossed(beyond), "a side has one run, taken as measured"),
            _ if self.amount.is_none() => return (crossed(beyond && verdict != "alike"), ""),
            _ => return (crossed(beyond), ""),
        };
        match (beyond, self.is_beyond(0.0, base)) {
            (_, true) => (Outcome::Crossed, none),
            (true, false) => (Outcome::Unclear, none),
            (false, false) => (Outcome::Kept, ""),
        }
    }

    /// Whether a change of `difference` from `base` is beyond the limit. Any change from 0 is infinite in
    /// percent.
    fn is_beyond(&self, difference: f64, base: f64) -> bool {
        let change = match self.is_percent {
            true if difference == 0.0 => 0.0,
            true => 100.0 * difference / base.abs(),
            false => difference,
        };
        let amount = self.amount.unwrap_or(0.0);
        match self.limit.condition {
            Condition::Compared { order, .. } => order.holds(change, amount),
            Condition::Went(way, _) => match (way, self.direction) {
                (Way::Changed, _) => change.abs() > amount,
                (Way::Worse, Direction::Higher) | (Way::Better, Direction::Lower) => -change > amount,
                _ => change > amount,
            },
        }
    }
}

const fn crossed(is: bool) -> Outcome {
    if is { Outcome::Crossed } else { Outcome::Kept }
}

impl Order {
    fn holds(self, left: f64, right: f64) -> bool {
        match self {
            Self::Less => left < right,
            Self::LessOrEqual => left <= right,
            Self::Greater => left > right,
            Self::GreaterOrEqual => left >= right,
        }
    }
}

/// The amount in `unit`, or what it is instead.
fn in_unit(amount: Amount, unit: &str) -> Result<f64, &'static str> {
    const TIMES: [(&str, f64); 4] = [("s", 1e9), ("ms", 1e6), ("µs", 1e3), ("ns", 1.0)];
    const SIZES: [(&str, f64); 5] =
        [("GiB", 1073741824.0), ("MiB", 1048576.0), ("KiB", 1024.0), ("kB", 1024.0), ("B", 1.0)];
    let scaled = |amount: f64, scales: &[(&str, f64)], asked| {
        let of = scales.iter().find(|(name, _)| *name == unit);
        of.map(|(_, of)| amount / of).ok_or(asked)
    };
    match amount {
        Amount::Percent(amount) | Amount::Plain(amount) => Ok(amount),
        Amount::Nanoseconds(amount) => scaled(amount, &TIMES, "a time"),
        Amount::Bytes(amount) => scaled(amount, &SIZES, "a size"),
    }
}

/// One number of a run.
enum Number {
    Measure(Measure),
    /// The sample at this percentile, where there are samples enough for it.
    Percentile(Measure, f64),
    Counter(String),
    OfCgroup(String, String),
}

impl Number {
    fn named(name: &str, recordings: &[&Recording], view: &View) -> Option<Self> {
        let Measures { first, rest } = Measures::of(recordings.iter().copied(), view);
        let measures = || first.iter().chain(&rest);
        if let Some(measure) = measures().find(|measure| measure.name == name) {
            return Some(Self::Measure(measure.clone()));
        }
        let of_samples = recordings.iter().flat_map(|run| run.samples.keys()).find_map(|samples| {
            let rank = percent(name.strip_prefix(samples.as_str())?.strip_prefix('.')?)?;
            Some((samples.clone(), rank))
        });
        if let Some((samples, rank)) = of_samples {
            let known = measures().find(|measure| measure.name == samples).cloned();
            // A metric may have the name of its samples.
            return Some(Self::Percentile(known.unwrap_or_else(|| Measure::named(&samples, true)), rank));
        }
        if recordings.iter().any(|run| run.vmstat.contains_key(name)) {
            return Some(Self::Counter(name.to_owned()));
        }
        let (path, counter) = name.split_once(':')?;
        let has = |run: &&Recording| run.memcg.get(path).is_some_and(|all| all.contains_key(counter));
        recordings.iter().any(has).then(|| Self::OfCgroup(path.to_owned(), counter.to_owned()))
    }

    fn traits(&self) -> (Direction, f64, &'static str) {
        match self {
            Self::Measure(measure) => (measure.direction, measure.resolution, measure.unit),
            Self::Percentile(measure, _) => (measure.direction, 0.0, measure.unit),
            Self::Counter(name) | Self::OfCgroup(_, name) => (direction(name), 0.0, unit(name)),
        }
    }

    fn value(&self, run: &Recording) -> Option<f64> {
        match self {
            Self::Measure(measure) => measure.value(run),
            Self::Percentile(measure, percent) => {
                let samples = run.samples.get(&measure.name)?;
                match *percent {
                    0.0 => samples.iter().copied().min_by(f64::total_cmp),
                    100.0 => samples.iter().copied().max_by(f64::total_cmp),
                    percent => stats::percentile::of_samples(samples, percent),
                }
            }
            Self::Counter(name) => run.vmstat.get(name).map(|&count| count as f64),
            Self::OfCgroup(path, name) => run.memcg.get(path)?.get(name).map(|&count| count as f64),
        }
    }
}

/// What stands behind the name of samples: `p99`, `min`.
fn percent(text: &str) -> Option<f64> {
    match text {
        "min" => Some(0.0),
        "median" => Some(50.0),
        "max" => Some(100.0),
        _ => text.strip_prefix('p')?.parse().ok().filter(|percent| (0.0..=100.0).contains(percent)),
    }
}

/// All names that a limit can be on, percentiles left out but for one of each samples.
fn known(recordings: &[&Recording]) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for run in recordings {
        all.extend(run.metrics.keys().cloned());
        all.extend(run.samples.keys().flat_map(|name| [name.clone(), format!("{name}.p99")]));
    }
    for run in recordings {
        all.extend(run.vmstat.keys().cloned());
        let of_cgroups = run.memcg.iter().flat_map(|(path, all)| all.keys().map(move |name| (path, name)));
        all.extend(of_cgroups.map(|(path, name)| format!("{path}:{name}")));
    }
    let mut seen = BTreeSet::new();
    all.retain(|name| seen.insert(name.clone()));
    all
}

#[cfg(test)]
mod tests;
