//! What switching features comes to, measure by measure: main effects and interactions, judged over seeds.
//!
//! Of each seed in which every kernel has the measure, an effect is the difference of two halves of the
//! kernels ([`stats::factorial`]); over seeds these halves are paired and judged as the two sides of a
//! comparison are ([`crate::judge::change`]). All effects of a table are one family of tests. Next:
//! [`crate::views::ablate`], which shows them.

use recording::Recording;
use stats::describe::mean;
use stats::difference::Test;
use stats::factorial::{Halves, effects};
use stats::multiple::Family;

use crate::judge::change::{Change, Pairing, Side};
use crate::judge::measure::Direction;
use crate::judge::view::{Measure, Scale, View};

/// What became of a run.
#[derive(Debug, Clone)]
pub enum AblatedRun<'a> {
    /// It left a recording.
    Recorded(&'a Recording),
    /// It failed, and why.
    Failed(String),
    /// It was not begun, or not ended.
    NotRun,
}

impl<'a> AblatedRun<'a> {
    pub(crate) fn recording(&self) -> Option<&'a Recording> {
        if let Self::Recorded(recording) = self { Some(recording) } else { None }
    }
}

/// One kernel of an ablation.
#[derive(Debug, Clone)]
pub struct Subset<'a> {
    /// The kernel.
    pub label: String,
    /// The command that makes its runs again.
    pub command: String,
    /// Its runs, one for each seed.
    pub runs: Vec<AblatedRun<'a>>,
}

/// An ablation to report on.
#[derive(Debug, Clone)]
pub struct Ablated<'a> {
    /// The workload.
    pub workload: String,
    /// What was switched: `+root-aging`.
    pub factors: Vec<String>,
    /// A kernel for each subset of the factors: bit `f` of its place tells whether factor `f` is changed.
    pub subsets: Vec<Subset<'a>>,
    /// The seeds, in the order of each kernel's runs.
    pub seeds: Vec<u64>,
    /// What a seed decides in this workload, a line each.
    pub varies: Vec<String>,
    /// How it is shown.
    pub view: View,
}

impl<'a> Ablated<'a> {
    /// All runs that left a recording.
    pub(crate) fn recordings(&self) -> Vec<&'a Recording> {
        self.subsets.iter().flat_map(|subset| subset.runs.iter().filter_map(AblatedRun::recording)).collect()
    }
}

/// All effects on the measures of one table.
#[derive(Debug, Clone)]
pub(crate) struct Effects {
    pub(crate) measures: Vec<MeasureEffects>,
    pub(crate) family: Family,
}

/// What the features do to one measure.
#[derive(Debug, Clone)]
pub(crate) struct MeasureEffects {
    pub(crate) measure: Measure,
    pub(crate) scale: Scale,
    /// What each kernel's runs gave, in the order of the subsets.
    pub(crate) sides: Vec<Side>,
    /// How many seeds have a value for every kernel: what effects are made of.
    pub(crate) seeds: usize,
    /// Mean of the base kernel over those seeds; 0 without any.
    pub(crate) base: f64,
    /// Main effects and interactions of two.
    pub(crate) effects: Vec<Effect>,
    /// The largest interaction of three and more: of which features, and its mean over seeds.
    pub(crate) largest_of_more: Option<(u32, f64)>,
}

/// One effect on one measure.
#[derive(Debug, Clone)]
pub(crate) struct Effect {
    /// The factors, as bits.
    pub(crate) of: u32,
    /// The effect for each seed.
    pub(crate) per_seed: Vec<f64>,
    pub(crate) change: Change,
    pub(crate) verdict: &'static str,
}

impl Effects {
    /// The effects of all factors of `ablated` on `measures`.
    pub(crate) fn of(ablated: &Ablated<'_>, measures: Vec<Measure>) -> Self {
        // Which are tested does not depend on how many there are.
        let single: Vec<MeasureEffects> = (measures.into_iter())
            .map(|measure| MeasureEffects::of(ablated, measure, Family { tests: 1 }))
            .collect();
        let tested =
            single.iter().flat_map(|of| &of.effects).filter(|effect| effect.change.tested().is_some());
        let family = Family { tests: tested.count() };
        let judged = single.into_iter().map(|of| MeasureEffects::of(ablated, of.measure, family));
        Self { measures: judged.collect(), family }
    }

    /// The tests of effects that differ by seed.
    pub(crate) fn tests(&self) -> impl Iterator<Item = Test> + '_ {
        let effects = self.measures.iter().flat_map(|of| &of.effects);
        effects.filter_map(|effect| effect.change.tested()).map(|difference| difference.test)
    }
}

impl MeasureEffects {
    fn of(ablated: &Ablated<'_>, measure: Measure, family: Family) -> Self {
        let value = |recording: &Recording| measure.value(recording).filter(|value| value.is_finite());
        let of_subset = |runs: &[AblatedRun<'_>]| -> Vec<Option<f64>> {
            runs.iter().map(|run| run.recording().and_then(value)).collect()
        };
        let values: Vec<Vec<Option<f64>>> =
            ablated.subsets.iter().map(|subset| of_subset(&subset.runs)).collect();
        let of_seed = |seed: usize| values.iter().map(|of| of[seed]).collect::<Option<Vec<f64>>>();
        let whole: Vec<Vec<f64>> = (0..ablated.seeds.len()).filter_map(of_seed).collect();
        let sides: Vec<Side> = values
            .iter()
            .map(|of| {
                let values: Vec<f64> = of.iter().flatten().copied().collect();
                Side { missing: of.len() - values.len(), values }
            })
            .collect();
        let base = mean(&whole.iter().map(|values| values[0]).collect::<Vec<_>>()).unwrap_or(0.0);
        let scale = Scale::of(measure.unit, sides.iter().filter_map(Side::mean));
        let (few, more): (Vec<u32>, Vec<u32>) = if whole.is_empty() {
            (Vec::new(), Vec::new())
        } else {
            effects(ablated.factors.len() as u32).into_iter().partition(|of| of.count_ones() <= 2)
        };
        let effects = few.into_iter().map(|of| effect(of, &whole, &measure, base, family)).collect();
        let total = |of: u32| mean(&halves(of, &whole).map(Halves::effect).collect::<Vec<_>>());
        let largest_of_more = (more.into_iter())
            .filter_map(|of| total(of).map(|effect| (of, effect)))
            .max_by(|(_, a), (_, b)| a.abs().total_cmp(&b.abs()));
        let seeds = whole.len();
        Self { measure, scale, sides, seeds, base, effects, largest_of_more }
    }
}

fn halves(of: u32, whole: &[Vec<f64>]) -> impl Iterator<Item = Halves> + '_ {
    whole.iter().map(move |values| Halves::of(values, of).expect("a value for every subset"))
}

fn effect(of: u32, whole: &[Vec<f64>], measure: &Measure, base: f64, family: Family) -> Effect {
    let side = |values: Vec<f64>| Side { values, missing: 0 };
    let against = side(halves(of, whole).map(|halves| halves.against).collect());
    let towards = side(halves(of, whole).map(|halves| halves.towards).collect());
    let paired = Pairing { same_seeds: true, is_exact: true };
    let change = Change::between(&against, &towards, paired, family);
    let verdict = match of.count_ones() {
        1 => change.verdict(measure.direction, base, measure.resolution),
        _ => of_interaction(change.verdict(Direction::Neutral, base, measure.resolution)),
    };
    Effect { of, per_seed: halves(of, whole).map(Halves::effect).collect(), change, verdict }
}

/// An interaction is neither good nor bad: both together give more than each adds by itself, or less.
fn of_interaction(verdict: &'static str) -> &'static str {
    match verdict {
        "higher" => "more together",
        "lower" => "less together",
        "same" | "alike" => "none",
        "no clear change" => "none clear",
        other => other,
    }
}
