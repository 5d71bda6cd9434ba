//! The summary: as in the terminal, worst first, each change as a bar with its interval in the row.
//!
//! One table for each candidate against the baseline. All bars of a page share one axis, on which equal
//! factors are equal steps: half and twice are as far from no change. It is finer around no change, so that
//! a few percent are seen beside 100 times. Next: [`crate::judge::change`] for the verdicts.

use super::verdict;
use super::words::amount;
use crate::document::axis::Axis;
use crate::document::changes::{ChangeBar, ChangeRow, Changes, look_of};
use crate::document::figure::{Column, Figure, Key, Mark, Panel};
use crate::judge::{Change, Compared, Group, Row, Rows, View};

/// Factors at which the axis of bars has ticks, with what stands there, those that matter most first: of two
/// that are too near to each other the first has its text.
const TICKS: [(f64, &str); 11] = [
    (1.0, "0"),
    (100.0, "×100"),
    (0.01, "÷100"),
    (10.0, "×10"),
    (0.1, "÷10"),
    (2.0, "×2"),
    (0.5, "÷2"),
    (1.1, "+10 %"),
    (0.9, "−10 %"),
    (1.01, "+1 %"),
    (0.99, "−1 %"),
];
/// How far apart two texts are at least, as a share of the axis.
const APART: f64 = 0.15;
/// Below this part of a change the axis is nearly linear.
const LINEAR: f64 = 0.2;

/// Where verdicts stand in a table: the worst first.
const ORDER: [&[&str]; 4] = [&["worse"], &["one run", "no clear change"], &["higher", "lower"], &["better"]];

/// The axis of all bars: the largest factor that any of them reaches, one for both directions.
#[derive(Debug, Clone, Copy)]
struct Bars {
    reach: f64,
}

/// A bar: factors of the baseline.
#[derive(Debug, Clone, Copy)]
struct Bar {
    factor: f64,
    interval: Option<(f64, f64)>,
}

impl Bars {
    fn of<'a>(rows: impl Iterator<Item = &'a Row>) -> Self {
        let ends = |row: &'a Row| {
            let bars = row.changes.iter().filter_map(|(change, _)| bar(*change, row.base()));
            bars.flat_map(|bar| {
                [bar.factor, bar.interval.map_or(1.0, |i| i.0), bar.interval.map_or(1.0, |i| i.1)]
            })
        };
        let most = rows
            .flat_map(ends)
            .filter(|factor| *factor > 0.0)
            .map(|factor| place(factor).abs())
            .fold(0.0, f64::max);
        Self { reach: most.clamp(place(1.1), place(150.0)) }
    }

    /// From 0 at the left to 1 at the right; 0.5 is no change.
    fn share(self, factor: f64) -> f64 {
        if factor <= 0.0 {
            return 0.0;
        }
        0.5 + 0.5 * (place(factor) / (self.reach * 1.08)).clamp(-1.0, 1.0)
    }

    /// Places of ticks that are not too near to each other, with their texts.
    fn ticks(self) -> Vec<(f64, &'static str)> {
        let mut told: Vec<(f64, &str)> = Vec::new();
        for (factor, text) in TICKS {
            let share = self.share(factor);
            if !self.is_beyond(factor) && told.iter().all(|(other, _)| (other - share).abs() >= APART) {
                told.push((share, text));
            }
        }
        told
    }

    fn is_beyond(self, factor: f64) -> bool {
        factor <= 0.0 || place(factor).abs() > self.reach * 1.08
    }
}

/// Signed distance of a factor from no change.
fn place(factor: f64) -> f64 {
    let log = factor.ln();
    log.signum() * (1.0 + log.abs() / LINEAR).ln()
}

fn bar(change: Change, base: f64) -> Option<Bar> {
    let difference = change.difference()?;
    // Of a baseline that is nothing there is no factor.
    if base <= 0.0 || !difference.is_finite() {
        return None;
    }
    let factor = |difference: f64| 1.0 + difference / base;
    let interval = change.tested().map(|tested| (factor(tested.low), factor(tested.high)));
    Some(Bar { factor: factor(difference), interval })
}

/// The rows of each candidate, with bars on one axis.
pub(crate) fn tables(rows: &Rows, groups: &[Group<'_>]) -> Vec<Changes> {
    let bars = Bars::of(rows.rows.iter());
    let heading = if rows.tests().next().is_some() { "change [95 %]" } else { "change" };
    let grid = TICKS.iter().filter(|(factor, _)| !bars.is_beyond(*factor));
    let grid: Vec<f64> = grid.map(|(factor, _)| bars.share(*factor)).collect();
    let of_candidate = |index: usize| Changes {
        base: groups[0].label.clone(),
        candidate: groups[index].label.clone(),
        heading,
        ticks: bars.ticks(),
        grid: grid.clone(),
        rows: ordered(rows, index).into_iter().map(|row| change_row(row, index, bars)).collect(),
    };
    (1..groups.len()).map(of_candidate).collect()
}

/// The rows, worst first for candidate `index`.
fn ordered(rows: &Rows, index: usize) -> Vec<&Row> {
    let mut ordered: Vec<&Row> = rows.rows.iter().collect();
    ordered.sort_by_key(|row| rank(row.changes[index - 1].1)); // stable: most telling first
    ordered
}

fn rank(verdict: &str) -> usize {
    ORDER.iter().position(|words| words.contains(&verdict)).unwrap_or(ORDER.len())
}

fn change_row(row: &Row, index: usize, bars: Bars) -> ChangeRow {
    let (change, verdict) = row.changes[index - 1];
    let drawn = |bar: Bar| ChangeBar {
        end: bars.share(bar.factor),
        interval: bar.interval.map(|(low, high)| (bars.share(low), bars.share(high))),
        is_beyond: bars.is_beyond(bar.factor),
        said: format!("{} times the baseline", amount(bar.factor, "")),
    };
    ChangeRow {
        name: row.measure.heading(),
        unit: row.scale.unit,
        help: row.measure.help,
        base: row.value(0),
        candidate: row.value(index),
        change: change.text(row.base(), row.scale.factor, verdict),
        verdict,
        bar: bar(change, row.base()).map(drawn),
    }
}

/// The summary as a figure: a column for each candidate, a lane for each metric, worst first.
pub(crate) fn figure(groups: &[Group<'_>], view: &View) -> Option<Figure> {
    let [base, others @ ..] = groups else { return None };
    let compared = Compared::of(groups, view);
    let rows = &compared.first;
    if others.is_empty() || rows.rows.is_empty() {
        return None;
    }
    let bars = Bars::of(rows.rows.iter());
    let runs: usize = groups.iter().map(|group| group.recordings.len()).sum();
    let column = |index: usize| {
        let ordered = ordered(rows, index);
        let last = ordered.len() - 1;
        let lane = |(place, row): (usize, &&Row)| lane(row, index, bars, place == last);
        Column {
            heading: groups[index].label.clone(),
            panels: ordered.iter().enumerate().map(lane).collect(),
        }
    };
    let finding = verdict::sentences(&compared, groups).swap_remove(0);
    Some(Figure {
        name: "changes".to_owned(),
        finding: finding.trim_end_matches('.').to_owned(),
        n: format!("{runs} runs, {} metrics", rows.rows.len()),
        axes: format!("x: a multiple of {}; equal factors are equal steps, finer around 0", base.label),
        keys: vec![
            Key::area("change better", "better"),
            Key::area("change worse", "worse"),
            Key::area("change plain", "neither, or not clear"),
            Key::line("interval", "95 % interval"),
        ],
        columns: (1..groups.len()).map(column).collect(),
        read: "Bars to the right are more than the baseline, to the left less.".to_owned(),
        commands: groups.iter().map(|group| (group.label.clone(), group.command.clone())).collect(),
    })
}

fn lane(row: &Row, index: usize, bars: Bars, is_last: bool) -> Panel {
    let (change, verdict) = row.changes[index - 1];
    let told = change.text(row.base(), row.scale.factor, verdict);
    let name = row.measure.heading_in(&row.scale);
    let caption = format!("{name}: {} to {}, {told}: {verdict}", row.value(0), row.value(index));
    let x = Axis {
        low: 0.0,
        high: 1.0,
        is_log: false,
        ticks: bars.ticks().into_iter().map(|(share, text)| (share, text.to_owned())).collect(),
    };
    let mut marks = Vec::new();
    if let Some(bar) = bar(change, row.base()) {
        let (zero, end) = (0.5, bars.share(bar.factor));
        let class = format!("change {}", look_of(verdict));
        marks.push(Mark::Bar {
            class,
            from: f64::min(zero, end),
            to: f64::max(zero, end),
            title: caption.clone(),
        });
        let ends = bar.interval.map(|(low, high)| vec![(bars.share(low), 0.5), (bars.share(high), 0.5)]);
        marks.extend(ends.map(|points| Mark::Line { class: "interval".to_owned(), points, steps: false }));
    }
    let (x, x_label) =
        if is_last { (x, "multiple of the baseline".to_owned()) } else { (x.silent(), String::new()) };
    Panel { caption, height: 14.0, x, y: Axis::exact(0.0, 1.0, 1).bare(), x_label, marks, lines: Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_and_twice_are_as_far_from_no_change() {
        let bars = Bars { reach: place(10.0) };
        let share = |factor| bars.share(factor);
        assert!((share(1.0) - 0.5).abs() < 1e-9);
        assert!((share(2.0) - 0.5 - (0.5 - share(0.5))).abs() < 1e-9);
        assert!(share(1.01) - 0.5 > 0.005, "1 % is seen");
        assert!((share(0.0), bars.is_beyond(0.0)) == (0.0, true), "nothing is left: off the axis");
    }
}
