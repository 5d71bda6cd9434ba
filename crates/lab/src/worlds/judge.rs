//! How near the model is to the real runs of one world, counter by counter.
//!
//! A counter is judged where both sides have it and every run came to its end: what a kill cut short counts nothing.
//! The model stands for itself by the median of its seeds. It is in the *spread* where it lies between the real runs;
//! else its *error* is its distance from the nearest of them, as a part of that. Counts of fewer than
//! [`SMALL_PAGES`] pages on all sides are *small*, apart from the rest: one batch more or less is half of them.
//! Left out: times, in so far as they are counters, too; what a reader makes of many worlds (`summary.rs`).

use std::collections::BTreeMap;

use recording::chunk::{Fact, FactKind};
use recording::is_gauge;
use report::unit;
use stats::describe::median;
use units::PAGE_SIZE;

/// Pages, or events, below which a counter is small.
pub(super) const SMALL_PAGES: f64 = 256.0;
/// A tick of such a guest (HZ=100): a real run's shorter times are what telling of a phase takes.
pub(super) const SMALL_SECONDS: f64 = 0.01;

/// How near the model is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// Between the real runs.
    Spread,
    /// Within 2 % of one.
    Within2,
    /// Within 10 %.
    Within10,
    /// Within 25 %.
    Within25,
    /// Farther than that.
    Beyond,
    /// Of a count that is small on all sides.
    Small,
    /// The model does not have it, or the real kernel does not.
    OneSide,
}

impl Class {
    /// All of them, nearest first.
    pub const ALL: [Self; 7] = [
        Self::Spread,
        Self::Within2,
        Self::Within10,
        Self::Within25,
        Self::Beyond,
        Self::Small,
        Self::OneSide,
    ];

    /// As the table has it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Spread => "spread",
            Self::Within2 => "2 %",
            Self::Within10 => "10 %",
            Self::Within25 => "25 %",
            Self::Beyond => "beyond",
            Self::Small => "small",
            Self::OneSide => "one side",
        }
    }

    /// The class of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|class| class.name() == name)
    }

    /// Whether the model is more than 10 % off.
    pub const fn disagrees(self) -> bool {
        matches!(self, Self::Within25 | Self::Beyond)
    }

    /// Whether it says how near the model is.
    pub const fn is_judged(self) -> bool {
        !matches!(self, Self::Small | Self::OneSide)
    }
}

/// What a counter came to on both sides.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Judged {
    pub(super) kind: FactKind,
    pub(super) counter: String,
    pub(super) real: Vec<f64>,
    pub(super) model: Vec<f64>,
    pub(super) class: Class,
    pub(super) error: Option<f64>,
}

/// Every counter of runs on both sides; those of one side only come with no values on the other.
pub(super) fn judge_all(real: &[Vec<Fact>], model: &[Vec<Fact>]) -> Vec<Judged> {
    let [real, model] = [real, model].map(values);
    let names: std::collections::BTreeSet<_> = real.keys().chain(model.keys()).collect();
    let judged = |key: &(u8, String)| {
        let of = |side: &Values| side.get(key).map(|(_, values)| values.clone()).unwrap_or_default();
        let kind = real.get(key).or(model.get(key)).expect("one side has it").0;
        let (real, model) = (of(&real), of(&model));
        let (class, error) = judge(&real, &model, small(kind, &key.1));
        Judged { kind, counter: key.1.clone(), real, model, class, error }
    };
    names.into_iter().map(judged).collect()
}

type Values = BTreeMap<(u8, String), (FactKind, Vec<f64>)>;

/// By what it is and its name. Files that set something are none; guests of User-Mode Linux count what the kernel
/// does for a program as the program's own time, so only the sum of both counts.
fn values(runs: &[Vec<Fact>]) -> Values {
    let mut values = Values::new();
    for run in runs {
        let is_cpu = |fact: &&Fact| {
            fact.kind == FactKind::Metric && matches!(&*fact.name, "user_seconds" | "system_seconds")
        };
        if let Some(cpu) =
            run.iter().filter(is_cpu).filter_map(|fact| fact.value).reduce(|sum, more| sum + more)
        {
            let entry = values.entry((0, "cpu_seconds".to_owned())).or_insert((FactKind::Metric, Vec::new()));
            entry.1.push(cpu);
        }
        for fact in run.iter().filter(|fact| !is_cpu(fact)) {
            add(&mut values, fact);
        }
    }
    values
}

fn add(values: &mut Values, fact: &Fact) {
    let rank = match fact.kind {
        FactKind::Metric => 0,
        FactKind::Vmstat => 1,
        FactKind::Memcg => 2,
        FactKind::Run => return,
    };
    let is_setting = match fact.kind {
        FactKind::Memcg => fact.name.contains(":memory."),
        _ => matches!(&*fact.name, "nr_dirty_threshold" | "nr_dirty_background_threshold"),
    };
    if let (Some(value), false) = (fact.value, is_setting) {
        let entry = values.entry((rank, fact.name.clone())).or_insert((fact.kind, Vec::new()));
        entry.1.push(value);
    }
}

/// Below which a counter is small; none is, of what is not counted.
fn small(kind: FactKind, name: &str) -> Option<f64> {
    match kind {
        FactKind::Metric => match unit(name) {
            "" | "pages" => Some(SMALL_PAGES),
            "s" => Some(SMALL_SECONDS),
            _ => None,
        },
        FactKind::Vmstat => Some(SMALL_PAGES),
        FactKind::Memcg => {
            let counter = name.rsplit_once(':').map_or(name, |(_, counter)| counter);
            let in_bytes = is_gauge(counter) && !counter.starts_with("workingset_");
            Some(if in_bytes { SMALL_PAGES * PAGE_SIZE as f64 } else { SMALL_PAGES })
        }
        FactKind::Run => None,
    }
}

/// The class of one counter, and the error where it is judged.
pub(super) fn judge(real: &[f64], model: &[f64], small: Option<f64>) -> (Class, Option<f64>) {
    let Some(middle) = median(model).filter(|_| !real.is_empty()) else { return (Class::OneSide, None) };
    if small.is_some_and(|small| real.iter().chain(model).all(|value| value.abs() < small)) {
        return (Class::Small, None);
    }
    let least = real.iter().copied().fold(f64::INFINITY, f64::min);
    let most = real.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let nearest = middle.clamp(least, most);
    if middle == nearest {
        return (Class::Spread, Some(0.0));
    }
    let error = (middle - nearest) / nearest.abs();
    let class = match error.abs() {
        off if off <= 0.02 => Class::Within2,
        off if off <= 0.10 => Class::Within10,
        off if off <= 0.25 => Class::Within25,
        _ => Class::Beyond,
    };
    (class, Some(error))
}

/// Each real run judged by the others, as if it were the model: how near a model could be that is the kernel itself.
///
/// None of fewer than three runs: one run has no spread to lie in.
pub fn judge_itself(real: &[f64]) -> Vec<Class> {
    let by_others = |place: usize| {
        let others: Vec<f64> = [&real[..place], &real[place + 1..]].concat();
        judge(&others, &real[place..=place], None).0
    };
    if real.len() < 3 { Vec::new() } else { (0..real.len()).map(by_others).collect() }
}

/// What an error says; the console of a guest that crashed comes behind it.
pub(super) fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_time_is_judged_as_a_sum() {
        let run = |user, system| {
            [("user_seconds", user), ("system_seconds", system)].map(|(name, value)| Fact {
                kind: FactKind::Metric,
                name: name.to_owned(),
                value: Some(value),
                text: None,
                error: None,
            })
        };
        let judged = judge_all(&[run(8.0, 0.5).to_vec()], &[run(0.0, 8.5).to_vec()]);
        let told: Vec<_> = judged.iter().map(|row| (row.counter.as_str(), row.class)).collect();
        assert_eq!(told, [("cpu_seconds", Class::Spread)]);
    }

    #[test]
    fn the_model_is_held_to_the_nearest_real_run() {
        let class = |real: &[f64], model: &[f64]| judge(real, model, Some(SMALL_PAGES));
        assert_eq!(class(&[1000.0, 2000.0], &[1500.0]), (Class::Spread, Some(0.0)));
        assert_eq!(class(&[1000.0, 1000.0], &[1020.0, 1020.0]), (Class::Within2, Some(0.02)));
        assert_eq!(class(&[1000.0, 2000.0], &[2200.0]), (Class::Within10, Some(0.1)));
        assert_eq!(class(&[1000.0, 2000.0], &[750.0]), (Class::Within25, Some(-0.25)));
        assert_eq!(class(&[0.0, 0.0], &[94667.0]), (Class::Beyond, Some(f64::INFINITY)));
        assert_eq!(class(&[94667.0], &[0.0]), (Class::Beyond, Some(-1.0)));
    }

    #[test]
    fn a_real_run_is_judged_by_the_others() {
        let itself = judge_itself(&[1000.0, 1010.0, 1300.0]);
        assert_eq!(itself, [Class::Within2, Class::Spread, Class::Beyond]);
        assert_eq!(judge_itself(&[1000.0, 1010.0]), []);
    }

    #[test]
    fn small_counts_and_those_of_one_side_are_apart() {
        assert_eq!(judge(&[0.0, 255.0], &[17.0], Some(SMALL_PAGES)).0, Class::Small);
        assert_eq!(judge(&[0.0, 256.0], &[257.0], Some(SMALL_PAGES)).0, Class::Within2);
        assert_eq!(judge(&[0.1], &[0.2], None).0, Class::Beyond);
        assert_eq!(judge(&[], &[0.2], None).0, Class::OneSide);
        assert_eq!(judge(&[0.2], &[], None).0, Class::OneSide);
        assert_eq!(small(FactKind::Memcg, "/P/A:anon"), Some(256.0 * 4096.0));
        assert_eq!(small(FactKind::Memcg, "/P/A:pgscan"), Some(256.0));
        assert_eq!(small(FactKind::Metric, "reread_seconds"), Some(0.01));
        assert_eq!(
            judge(&[0.0009, 0.0011], &[0.0001], small(FactKind::Metric, "reread_seconds")).0,
            Class::Small
        );
    }

    #[test]
    fn classes_read_back_by_their_names() {
        for class in Class::ALL {
            assert_eq!(Class::named(class.name()), Some(class));
        }
    }

    #[test]
    fn the_median_of_infinite_errors_is_infinite() {
        assert_eq!(median(&[f64::INFINITY, f64::INFINITY]), Some(f64::INFINITY));
        assert_eq!(median(&[1.0, 3.0]), Some(2.0));
        assert_eq!(median(&[]), None);
    }
}
