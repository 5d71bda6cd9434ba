//! How recordings are shown: what the caller knows about them.
//!
//! A workload names the measures that a person looks at first; they come as [`Headline`]s, in their
//! order, because recordings do not say which of their numbers matter. Left out: where headlines come
//! from (`pagetide-lab`).

use std::collections::BTreeSet;

use recording::Recording;
use stats::describe::{harmonic_mean, mean};

use crate::judge::known::Known;
use crate::judge::measure::{Direction, direction, is_rate, unit};
use crate::judge::outcome::Judged;

/// A measure that a person looks at first.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Headline {
    /// The name of a metric or of samples.
    pub name: &'static str,
    /// The unit of its numbers.
    pub unit: &'static str,
    /// Which way is the good one.
    pub direction: Direction,
    /// The metric that it is a part of.
    pub of: Option<&'static str>,
    /// The smallest difference that the model can tell, in the same unit.
    pub resolution: f64,
    /// One line about it.
    pub help: &'static str,
}

/// How recordings are shown, whatever the format.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct View {
    /// Whether to show everything, not what matters most only.
    pub all: bool,
    /// What matters most, most telling first. Where it is empty, all metrics do.
    pub headlines: Vec<Headline>,
    /// What the reader of a comparison has to know about its sides.
    pub warnings: Vec<String>,
    /// Limits on a comparison, judged already.
    pub limits: Vec<Judged>,
    /// By scenario, as a recording has it, what real kernels are known to differ from the model by.
    pub known: Vec<(String, Known)>,
}

impl View {
    /// What is known of runs like this one.
    pub(crate) fn known_of(&self, recording: &Recording) -> Option<&Known> {
        self.known.iter().find(|(scenario, _)| *scenario == recording.scenario_toml).map(|(_, known)| known)
    }

    /// A sentence for each kind of run, with the name of the first one where they differ.
    pub(crate) fn known_lines<'a>(&self, recordings: impl IntoIterator<Item = &'a Recording>) -> Vec<String> {
        let (mut lines, mut without): (Vec<(&str, String)>, Vec<&str>) = (Vec::new(), Vec::new());
        for recording in recordings {
            let Some(known) = self.known_of(recording) else { continue };
            let line = known.told();
            if known.worlds == 0 {
                without.push(&known.of);
            } else if !lines.iter().any(|(_, told)| *told == line) {
                lines.push((&recording.label, line));
            }
        }
        without.dedup();
        let without = (!without.is_empty())
            .then(|| format!("not held to real kernels: there are no worlds of {}", without.join(", ")));
        let with = match &lines[..] {
            [(_, only)] if without.is_none() => vec![only.clone()],
            _ => lines.iter().map(|(label, line)| format!("{label}: {line}")).collect(),
        };
        with.into_iter().chain(without).collect()
    }
}

/// Something that recordings have a number for.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Measure {
    pub(crate) name: String,
    pub(crate) unit: &'static str,
    pub(crate) direction: Direction,
    pub(crate) of: Option<&'static str>,
    pub(crate) resolution: f64,
    pub(crate) help: &'static str,
    from_samples: bool,
    is_headline: bool,
}

/// Measures in the order in which they are shown.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Measures {
    /// Those to look at first.
    pub(crate) first: Vec<Measure>,
    /// The others, by name.
    pub(crate) rest: Vec<Measure>,
}

impl Measures {
    /// What any of `recordings` has.
    pub(crate) fn of<'a>(recordings: impl IntoIterator<Item = &'a Recording>, view: &View) -> Self {
        let mut metrics: BTreeSet<&String> = BTreeSet::new();
        let mut samples: BTreeSet<&String> = BTreeSet::new();
        for recording in recordings {
            metrics.extend(recording.metrics.keys());
            samples.extend(recording.samples.keys());
        }
        // A metric of the same name is what the workload makes of these samples.
        samples.retain(|name| !metrics.contains(name));
        let named = |headline: &Headline| {
            let from_samples = samples.iter().any(|name| *name == headline.name);
            let known = from_samples || metrics.iter().any(|name| *name == headline.name);
            known.then(|| Measure::headline(headline, from_samples))
        };
        let first: Vec<Measure> = view.headlines.iter().filter_map(named).collect();
        let all = metrics.iter().map(|name| (name, false)).chain(samples.iter().map(|name| (name, true)));
        let rest: Vec<Measure> = all
            .filter(|(name, _)| first.iter().all(|measure| measure.name != ***name))
            .map(|(name, from_samples)| Measure::named(name, from_samples))
            .collect();
        // Without headlines nothing is more telling than the rest.
        if first.is_empty() { Self { first: rest, rest: Vec::new() } } else { Self { first, rest } }
    }
}

impl Measure {
    fn headline(headline: &Headline, from_samples: bool) -> Self {
        let Headline { name, unit, direction, of, resolution, help } = *headline;
        let name = name.to_owned();
        Self { name, unit, direction, of, resolution, help, from_samples, is_headline: true }
    }

    pub(crate) fn named(name: &str, from_samples: bool) -> Self {
        Self {
            name: name.to_owned(),
            unit: unit(name),
            direction: direction(name),
            of: None,
            resolution: 0.0,
            help: "",
            from_samples,
            is_headline: false,
        }
    }

    /// The name, and for samples what is made of them; a headline's own line says that.
    pub(crate) fn heading(&self) -> String {
        match (self.from_samples && !self.is_headline, self.is_harmonic()) {
            (false, _) => self.name.clone(),
            (true, false) => format!("{} (mean)", self.name),
            (true, true) => format!("{} (harmonic mean)", self.name),
        }
    }

    /// The heading of a column with numbers in `scale`, which says the unit once.
    pub(crate) fn heading_in(&self, scale: &Scale) -> String {
        let heading = self.heading();
        if heading.ends_with(scale.unit) { heading } else { format!("{heading}, {}", scale.unit) }
    }

    pub(crate) fn is_headline(&self) -> bool {
        self.is_headline
    }

    /// Rates of work are averaged harmonically; rates of trouble, which may be 0, are not.
    fn is_harmonic(&self) -> bool {
        is_rate(&self.name) && self.direction == Direction::Higher
    }

    /// A metric's value, or the mean of a run's samples. A rate of 0 makes the harmonic mean 0,
    /// its limit: an interval without any work is not a missing one.
    pub(crate) fn value(&self, recording: &Recording) -> Option<f64> {
        if !self.from_samples {
            return recording.metrics.get(&self.name).copied();
        }
        let samples = recording.samples.get(&self.name)?;
        match self.is_harmonic() {
            false => mean(samples),
            true if samples.contains(&0.0) => Some(0.0),
            true => harmonic_mean(samples),
        }
    }
}

/// One unit for a whole row: times in the unit that suits the largest of them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Scale {
    /// What the numbers are multiplied by.
    pub(crate) factor: f64,
    /// The unit that they have then.
    pub(crate) unit: &'static str,
}

impl Scale {
    /// The scale for `values` in `unit`.
    pub(crate) fn of(unit: &'static str, values: impl IntoIterator<Item = f64>) -> Self {
        const TIMES: [(&str, f64); 4] = [("s", 1.0), ("ms", 1e-3), ("µs", 1e-6), ("ns", 1e-9)];
        const SIZES: [(&str, f64); 3] = [("GiB", 1073741824.0), ("MiB", 1048576.0), ("KiB", 1024.0)];
        let largest = values.into_iter().map(f64::abs).filter(|value| value.is_finite()).fold(0.0, f64::max);
        let as_is = Self { factor: 1.0, unit };
        let fitting = |scales: &[(&'static str, f64)], own: f64| {
            let fits = |&&(_, scale): &&(&'static str, f64)| largest * own >= scale;
            scales.iter().find(fits).map(|&(unit, scale)| Self { factor: own / scale, unit })
        };
        let own_time = TIMES.iter().find(|(name, _)| *name == unit);
        match (own_time, unit) {
            _ if largest == 0.0 => as_is,
            (Some(&(_, own)), _) => fitting(&TIMES, own).unwrap_or(as_is),
            (None, "B") => fitting(&SIZES, 1.0).unwrap_or(as_is),
            _ => as_is,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_of_times_has_the_unit_of_its_largest() {
        for (unit, values, wanted) in [
            ("s", [0.001_98, 0.007_831], "ms"),
            ("s", [2.874, 0.5], "s"),
            ("µs", [985.5, 697.2], "µs"),
            ("µs", [4_000.0, 12.0], "ms"),
            ("s", [0.0, 0.0], "s"),
            ("B", [52_432_896.0, 4096.0], "MiB"),
            ("pages", [12_800.0, 1.0], "pages"),
        ] {
            assert_eq!(Scale::of(unit, values).unit, wanted, "{values:?} {unit}");
        }
        let scale = Scale::of("s", [0.001_98]);
        assert!((0.001_98 * scale.factor - 1.98).abs() < 1e-12);
    }

    fn known() -> Known {
        Known { of: "linux-6.12".to_owned(), is_own: true, worlds: 214, ..Known::default() }
    }

    #[test]
    fn runs_that_differ_are_named() {
        let run = |label: &str| Recording {
            scenario_toml: label.to_owned(),
            ..Recording::new(label, "hot-and-stream", "sim", "", 1)
        };
        let runs = [run("a"), run("b"), run("c")];
        let view = |b: Known| View {
            known: vec![("a".to_owned(), known()), ("b".to_owned(), b)],
            ..View::default()
        };
        assert_eq!(view(known()).known_lines(&runs), [known().told()]);
        let other = Known { worlds: 2, ..known() };
        let lines = view(other).known_lines(&runs);
        assert_eq!(lines.len(), 2);
        assert!(
            lines[0].starts_with("a: real kernels in 214") && lines[1].starts_with("b: real kernels in 2 ")
        );
    }
}
