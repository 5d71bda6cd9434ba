//! How two groups of runs differ in one measure, how sure that is, and a word for it.
//!
//! Rules. Several runs a side are judged by [`stats::shift`], paired where both sides have the same seeds: an
//! exact permutation test, a bootstrap where runs are many, a t test where they are too few for either;
//! intervals and verdicts both hold at 95 % over all tests of a table together (Bonferroni). Where every run of
//! both sides gave the same number there is no spread to test against, and chance was not seen at work: the
//! difference is judged by its size, as that of one simulated run a side is, which is exact for its seed. One run
//! of a real kernel a side tells nothing about its spread: no verdict. A measure that a side lacks is said to be
//! so, and why. A difference that is smaller than what the model resolves gets no other word.
//!
//! Next: [`crate::judge::compared`], which counts the tests of a table.

use std::collections::BTreeSet;

use recording::Recording;
use stats::describe::{mean, sample_stddev};
use stats::difference::{Difference, Method, Test};
use stats::multiple::Family;
use stats::shift::needed;
use stats::{Summary, paired_t_test, shift, welch_t_test};

use crate::document::number::{
    SMALL_PERCENT, percent_with_interval, plain, signed, signed_percent, with_spread,
};
use crate::judge::group::Group;
use crate::judge::measure::Direction;

/// The level of intervals; verdicts hold at 1 minus this.
pub(crate) const LEVEL: f64 = 0.95;

/// A spread of this part of the values is their rounding.
const ROUNDING: f64 = 1e-12;
/// The verdict on a difference that the model cannot tell, which is not worth a number either.
const BELOW_RESOLUTION: &str = "below resolution";

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

    /// The standard deviation; `None` for less than two runs.
    pub(crate) fn spread(&self) -> Option<f64> {
        sample_stddev(&self.values)
    }

    /// Whether several runs all gave the same.
    pub(crate) fn is_constant(&self) -> bool {
        self.spread() == Some(0.0)
    }

    /// The mean with its spread, if runs differ, multiplied by `factor`; `None` without a value.
    pub(crate) fn text(&self, factor: f64) -> Option<String> {
        Summary::of(&self.values).map(|Summary { mean, stddev, .. }| match stddev {
            Some(stddev) if stddev != 0.0 => with_spread(mean * factor, stddev * factor),
            _ => plain(mean * factor),
        })
    }
}

/// How the two sides of a measure differ.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Change {
    /// A side lacks the measure.
    Missing,
    /// New minus base, without any spread: one simulated run a side, or the same in all runs.
    Exact(f64),
    /// Only one run on a side whose repeats would vary: new minus base, nothing known beyond.
    OneRun(f64),
    /// Several runs a side that vary.
    Tested(Difference),
}

impl Change {
    /// The change from `base` to `new`, two sides of one measure that is asked about with others.
    pub(crate) fn between(base: &Side, new: &Side, pairing: Pairing, family: Family) -> Self {
        let (Some(base_mean), Some(new_mean)) = (base.mean(), new.mean()) else { return Self::Missing };
        let paired = pairing.pairs(base, new);
        match spread_of(base, new, paired) {
            Some((change, false)) => Self::Exact(change),
            Some((change, true)) => {
                let tested = shift(&base.values, &new.values, paired, family.level_of_each(LEVEL));
                tested.map_or(Self::OneRun(change), Self::Tested)
            }
            None if pairing.is_exact && base.values.len() == 1 && new.values.len() == 1 => {
                Self::Exact(new_mean - base_mean)
            }
            None => Self::OneRun(new_mean - base_mean),
        }
    }

    /// Whether [`Change::between`] these would be a test: both sides have several runs, which vary.
    pub(crate) fn is_to_be_tested(base: &Side, new: &Side, pairing: Pairing) -> bool {
        matches!(spread_of(base, new, pairing.pairs(base, new)), Some((_, true)))
    }

    /// New minus base.
    pub(crate) fn difference(self) -> Option<f64> {
        match self {
            Self::Missing => None,
            Self::Exact(change) | Self::OneRun(change) => Some(change),
            Self::Tested(difference) => Some(difference.difference),
        }
    }

    pub(crate) fn tested(self) -> Option<Difference> {
        if let Self::Tested(difference) = self { Some(difference) } else { None }
    }

    /// The change as text: a percentage of the base, or where that is 0 the plain difference
    /// multiplied by `factor`; nothing where `verdict` says that there is nothing to tell.
    pub(crate) fn text(self, base: f64, factor: f64, verdict: &str) -> String {
        let percent = |change: f64| 100.0 * change / base.abs();
        match self {
            _ if verdict == BELOW_RESOLUTION => "-".into(),
            Self::Missing => "-".into(),
            Self::Exact(change) | Self::OneRun(change) if base == 0.0 => signed(change * factor),
            Self::Exact(change) | Self::OneRun(change) => signed_percent(percent(change)),
            Self::Tested(d) if base == 0.0 => {
                let [middle, low, high] = [d.difference, d.low, d.high].map(|x| signed(x * factor));
                format!("{middle} [{low}, {high}]")
            }
            Self::Tested(d) => percent_with_interval(percent(d.difference), percent(d.low), percent(d.high)),
        }
    }

    /// A word for the change of a measure whose base is `base`; `resolution` is the smallest
    /// difference that the model can tell, 0 where no side is simulated.
    pub(crate) fn verdict(self, direction: Direction, base: f64, resolution: f64) -> &'static str {
        let change = match self {
            Self::Missing => return "-",
            Self::OneRun(_) => return "one run",
            Self::Exact(change) => change,
            Self::Tested(d) if d.difference == 0.0 => return "no clear change",
            Self::Tested(d) => d.difference,
        };
        let small = change.abs() < SMALL_PERCENT / 100.0 * base.abs();
        let clear = self.tested().is_none_or(Difference::excludes_zero);
        match (change.total_cmp(&0.0), direction) {
            _ if change == 0.0 => "same",
            _ if change.abs() < resolution => BELOW_RESOLUTION,
            _ if !clear => "no clear change",
            _ if small => "alike",
            (std::cmp::Ordering::Greater, Direction::Higher)
            | (std::cmp::Ordering::Less, Direction::Lower) => "better",
            (std::cmp::Ordering::Greater, Direction::Neutral) => "higher",
            (_, Direction::Neutral) => "lower",
            _ => "worse",
        }
    }
}

/// New minus base, and whether it varies from run to run; `None` where a side has fewer than two runs.
///
/// Without any spread there is no test: its p would be 0 however few the seeds.
fn spread_of(base: &Side, new: &Side, paired: bool) -> Option<(f64, bool)> {
    let t_test = if paired { paired_t_test } else { welch_t_test };
    let found = t_test(&base.values, &new.values, LEVEL)?;
    let largest = base.values.iter().chain(&new.values).fold(0.0_f64, |most, value| most.max(value.abs()));
    Some((found.difference, found.high - found.low > ROUNDING * largest))
}

/// A test as JSON and CSV name it.
pub(crate) fn method_name(test: Test) -> &'static str {
    match test.method {
        Method::T if test.paired => "paired t",
        Method::T => "Welch t",
        Method::Permutation => "permutation",
        Method::Bootstrap => "bootstrap",
    }
}

/// How tests are named below a table, and what the reader has to know of them.
pub(crate) struct TestsTold {
    /// Whether runs were paired by their seeds.
    pub(crate) paired: bool,
    /// The methods.
    pub(crate) methods: String,
    /// What a t test takes for granted, and what would do without.
    pub(crate) assumed: Option<String>,
}

impl TestsTold {
    /// Of the tests of one family; `None` without any.
    pub(crate) fn of(tests: impl Iterator<Item = Test>, family: Family) -> Option<Self> {
        let tests: Vec<Test> = tests.collect();
        let paired = tests.first()?.paired;
        let methods: BTreeSet<Method> = tests.iter().map(|test| test.method).collect();
        let name = |method: &Method| match method {
            Method::T if paired => "paired t test",
            Method::T => "Welch's t test",
            Method::Permutation => "exact permutation test",
            Method::Bootstrap => "bootstrap",
        };
        let assumed = methods.contains(&Method::T).then(|| {
            let enough = match needed(paired, family.level_of_each(LEVEL)) {
                Some(needed) => format!("{needed} runs a side are enough to test without that"),
                None => "so many tests at once are not made without that".to_owned(),
            };
            format!("a t test takes the mean over runs for normal; {enough}")
        });
        let methods = methods.iter().map(name).collect::<Vec<_>>().join(" or ");
        Some(Self { paired, methods, assumed })
    }
}

/// What is known about the runs of two groups as such.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pairing {
    /// Run `i` of both groups has the same seed.
    pub(crate) same_seeds: bool,
    /// All of them are simulated with the same seeds, so that a repeat would give the same.
    pub(crate) is_exact: bool,
}

impl Pairing {
    pub(crate) fn of(base: &Group<'_>, new: &Group<'_>) -> Self {
        let seeds = |group: &Group<'_>| group.recordings.iter().map(|r| r.seed).collect::<Vec<_>>();
        let distinct = seeds(base).into_iter().collect::<BTreeSet<_>>().len() == base.recordings.len();
        let same_seeds = distinct && seeds(base) == seeds(new);
        Self { same_seeds, is_exact: same_seeds && is_modelled(base) && is_modelled(new) }
    }

    /// Whether run `i` of both sides belongs together: both have the measure in all runs.
    fn pairs(self, base: &Side, new: &Side) -> bool {
        self.same_seeds && base.missing == 0 && new.missing == 0
    }
}

/// Whether all runs of a group come from a model, not from a real kernel.
pub(crate) fn is_modelled(group: &Group<'_>) -> bool {
    // Plain policies are deterministic, too.
    group.recordings.iter().all(|recording| recording.is_simulated() || recording.backend == "policy")
}
