//! Distributions of samples: what part of them is at or below each value, seeds as faint lines.
//!
//! An empirical distribution function has no bins to choose and hides no tail. Each candidate has a panel of its
//! own beside the baseline, all on the same axes. Left out: densities, and bars with whiskers.

use std::collections::BTreeSet;

use super::words::amount;
use crate::document::axis::Axis;
use crate::document::figure::{Column, Figure, Key, Mark, NamedLine, Panel};
use crate::judge::{Group, Measures, Scale, View};

/// Samples of a run below which there is no distribution to show.
const SAMPLES_MIN: usize = 5;
/// Steps of a line at most; of more samples so many quantiles are drawn.
const STEPS_MAX: usize = 300;
/// Figures at most: those of headlines first.
const FIGURES_MAX: usize = 4;
/// Values that lie further apart than this factor are on a logarithmic axis.
const LOG_FROM: f64 = 10.0;
/// Seeds that are drawn faintly at most.
const FAINT_MAX: usize = 20;

/// A figure for each kind of samples.
pub(crate) fn figures(groups: &[Group<'_>], view: &View) -> Vec<Figure> {
    let recordings = || groups.iter().flat_map(|group| group.recordings.iter());
    let measures = Measures::of(recordings().copied(), view);
    let unit = |name: &str| {
        let known = measures.first.iter().chain(&measures.rest).find(|measure| measure.name == name);
        known.map_or_else(|| crate::judge::measure::unit(name), |measure| measure.unit)
    };
    let has =
        |name: &str| recordings().any(|run| run.samples.get(name).is_some_and(|of| of.len() >= SAMPLES_MIN));
    let first = measures.first.iter().map(|measure| measure.name.clone());
    let all = recordings().flat_map(|run| run.samples.keys().cloned()).collect::<BTreeSet<_>>();
    let mut names: Vec<String> = Vec::new();
    for name in first.chain(all).filter(|name| has(name)) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names.iter().take(FIGURES_MAX).filter_map(|name| figure(groups, name, unit(name))).collect()
}

/// All samples of a group, and those of each run, in order of size.
struct Sampled<'a> {
    group: &'a Group<'a>,
    all: Vec<f64>,
    runs: Vec<Vec<f64>>,
}

impl<'a> Sampled<'a> {
    fn of(group: &'a Group<'a>, name: &str, factor: f64) -> Option<Self> {
        let sorted = |mut values: Vec<f64>| {
            values.sort_by(f64::total_cmp);
            values
        };
        let of_run = |run: &&recording::Recording| {
            let values = run.samples.get(name)?.iter().filter(|value| value.is_finite());
            Some(sorted(values.map(|value| value * factor).collect()))
        };
        let runs: Vec<Vec<f64>> =
            group.recordings.iter().filter_map(of_run).filter(|of| !of.is_empty()).collect();
        let all = sorted(runs.concat());
        (!all.is_empty()).then_some(Self { group, all, runs })
    }
}

fn figure(groups: &[Group<'_>], name: &str, unit: &'static str) -> Option<Figure> {
    let values = groups.iter().flat_map(|group| &group.recordings).filter_map(|run| run.samples.get(name));
    let scale = Scale::of(unit, values.flatten().copied());
    let sampled: Vec<Sampled<'_>> =
        groups.iter().filter_map(|group| Sampled::of(group, name, scale.factor)).collect();
    let first = sampled.first()?;
    if sampled.iter().flat_map(|of| &of.all).all(|value| *value == first.all[0]) {
        return None; // One value everywhere is no distribution.
    }
    // The baseline may have none: what is drawn then is candidates only.
    let base = std::ptr::eq(first.group, &groups[0]).then_some(first);
    let others = if base.is_some() { &sampled[1..] } else { &sampled[..] };
    let x = axis(&sampled);
    let column = |candidate: Option<&Sampled<'_>>| Column {
        heading: candidate.map_or_else(String::new, |of| of.group.label.clone()),
        panels: vec![panel(base, candidate, x.clone(), name, scale.unit)],
    };
    let columns = match others {
        [] => vec![column(None)],
        others => others.iter().map(|of| column(Some(of))).collect(),
    };
    let counts: Vec<usize> = sampled.iter().map(|of| of.all.len()).collect();
    let (fewest, most) = (counts.iter().min()?, counts.iter().max()?);
    let samples = if fewest == most { most.to_string() } else { format!("{fewest} to {most}") };
    let runs = sampled.iter().map(|of| of.runs.len()).max()?;
    let mut keys: Vec<Key> =
        base.map(|base| Key::line("line base dashed", base.group.label.clone())).into_iter().collect();
    if !others.is_empty() {
        keys.push(Key::line("line new", "the candidate"));
    }
    if runs > 1 {
        keys.push(Key::line("line faint", "single seeds"));
    }
    Some(Figure {
        name: format!("ecdf-{name}"),
        finding: finding(name, scale.unit, &sampled) + if base.is_some() { "" } else { "; the baseline has none" },
        n: format!("{samples} samples of each kernel from {runs} run{}", if runs == 1 { "" } else { "s" }),
        axes: format!("x: {}{}; y: part of the samples that are at or below it", with_unit(name, scale.unit), if x.is_log { ", logarithmic" } else { "" }),
        keys,
        columns,
        read: "A line that lies further to the left has smaller values; where two lines cross, the order turns around. Go up from a value to read what part of the samples is not larger; go right from 0.5 to read the median. Steep parts are where most samples lie, a long flat end is a tail.".to_owned(),
        commands: sampled.iter().map(|of| (of.group.label.clone(), of.group.command.clone())).collect(),
    })
}

fn with_unit(name: &str, unit: &str) -> String {
    if unit.is_empty() || name.ends_with(unit) { name.to_owned() } else { format!("{name}, {unit}") }
}

fn axis(sampled: &[Sampled<'_>]) -> Axis {
    let least = sampled.iter().filter_map(|of| of.all.first()).copied().fold(f64::MAX, f64::min);
    let most = sampled.iter().filter_map(|of| of.all.last()).copied().fold(f64::MIN, f64::max);
    if least > 0.0 && most / least > LOG_FROM {
        return Axis::logarithmic(least, most);
    }
    let margin = (most - least).max(most.abs() * 1e-3).max(1e-12) * 0.04;
    let low = if least >= 0.0 { (least - margin).max(0.0) } else { least - margin };
    Axis::exact(low, most + margin, 5)
}

fn panel(
    base: Option<&Sampled<'_>>,
    candidate: Option<&Sampled<'_>>,
    x: Axis,
    name: &str,
    unit: &str,
) -> Panel {
    let mut marks = Vec::new();
    let mut lines = Vec::new();
    let sides = [(base, "base", "line base dashed"), (candidate, "new", "line new")];
    for (of, class, _) in &sides {
        let faint = of.iter().flat_map(|of| &of.runs).take(FAINT_MAX);
        let many = of.is_some_and(|of| of.runs.len() > 1);
        marks.extend(faint.filter(|_| many).map(|run| line(&format!("line faint {class}"), run, &x)));
    }
    for (of, _, class) in sides {
        if let Some(of) = of {
            marks.push(line(class, &of.all, &x));
            lines.push(NamedLine {
                label: of.group.label.clone(),
                class: class.to_owned(),
                points: points(&of.all),
            });
        }
    }
    let y = Axis::exact(0.0, 1.0, 4);
    let caption = "part of the samples at or below".to_owned();
    Panel { caption, height: 190.0, x, y, x_label: with_unit(name, unit), marks, lines }
}

fn line(class: &str, sorted: &[f64], x: &Axis) -> Mark {
    let mut all = vec![(sorted.first().copied().unwrap_or(0.0), 0.0)];
    all.extend(points(sorted));
    // The whole of the samples stays so to the end of the axis.
    all.push((x.high, 1.0));
    Mark::Line { class: class.to_owned(), points: all, steps: true }
}

/// Each value with the part of all that is not larger; of many only some.
fn points(sorted: &[f64]) -> Vec<(f64, f64)> {
    let count = sorted.len();
    let every = count.div_ceil(STEPS_MAX);
    let at = |index: usize| (sorted[index], (index + 1) as f64 / count as f64);
    let mut points: Vec<(f64, f64)> = (0..count).filter(|index| (index + 1) % every == 0).map(at).collect();
    if !count.is_multiple_of(every) {
        points.push(at(count - 1));
    }
    points
}

/// The smallest sample that a part of all is not above.
fn quantile(sorted: &[f64], part: f64) -> f64 {
    let rank = (part * sorted.len() as f64).ceil().max(1.0) as usize;
    sorted[rank.min(sorted.len()) - 1]
}

fn finding(name: &str, unit: &str, sampled: &[Sampled<'_>]) -> String {
    let unit = if name.ends_with(unit) { "" } else { unit };
    let value = |of: &Sampled<'_>, part: f64| amount(quantile(&of.all, part), unit);
    let told = |of: &Sampled<'_>| {
        format!("median {}, 95th percentile {} on {}", value(of, 0.5), value(of, 0.95), of.group.label)
    };
    match sampled {
        [] => name.to_owned(),
        [only] => format!("{name}: {}", told(only)),
        [base, new] => format!("{name}: {}; {}", told(base), told(new)),
        [base, others @ ..] => {
            let median = |of: &&Sampled<'_>| quantile(&of.all, 0.5);
            let by_median = |a: &&Sampled<'_>, b: &&Sampled<'_>| median(a).total_cmp(&median(b));
            let least = others.iter().min_by(by_median).unwrap_or(base);
            let most = others.iter().max_by(by_median).unwrap_or(base);
            if value(least, 0.5) == value(most, 0.5) {
                let (told, median) = (told(base), value(most, 0.5));
                return format!("{name}: {told}; median {median} on each of {} others", others.len());
            }
            format!(
                "{name}: {}; medians of {} others from {} ({}) to {} ({})",
                told(base),
                others.len(),
                value(least, 0.5),
                least.group.label,
                value(most, 0.5),
                most.group.label
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sample_is_a_step_until_there_are_too_many() {
        assert_eq!(points(&[1.0, 2.0, 2.0, 5.0]), [(1.0, 0.25), (2.0, 0.5), (2.0, 0.75), (5.0, 1.0)]);
        let many: Vec<f64> = (1..=1000).map(f64::from).collect();
        let drawn = points(&many);
        assert!(drawn.len() <= STEPS_MAX + 1, "{}", drawn.len());
        assert_eq!(drawn.last(), Some(&(1000.0, 1.0)));
        assert!(drawn.iter().all(|(x, y)| (x / 1000.0 - y).abs() < 1e-9), "still the same distribution");
    }

    #[test]
    fn quantiles_are_samples() {
        let sorted = [1.0, 2.0, 3.0, 40.0];
        assert_eq!(
            [0.0, 0.5, 0.75, 0.95, 1.0].map(|part| quantile(&sorted, part)),
            [1.0, 2.0, 3.0, 40.0, 40.0]
        );
    }
}
