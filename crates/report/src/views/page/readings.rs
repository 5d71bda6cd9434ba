//! Readings of a run as points of lines: levels, rates, marks, stalls.
//!
//! A rate is the mean between two readings, and stands at the first of them. Next: [`super::story`], which draws
//! them.

use recording::{Recording, Series};

use crate::document::number::plain;

/// Points of a line at most; of more readings the least and the most of each stretch are drawn.
pub(super) const POINTS_MAX: usize = 600;
/// Readings that are nearer to each other than this part of the run make one rate.
const SHORTEST_OF_RUN: f64 = 400.0;
/// Counters of stalls; kernels split the first by zones, and a throttled reclaimer stalls, too.
pub(super) const STALLS: [&str; 6] = [
    "allocstall",
    "allocstall_dma",
    "allocstall_dma32",
    "allocstall_normal",
    "allocstall_movable",
    "pgscan_direct_throttle",
];

/// What a column of the series counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counts {
    /// A level in pages of 4 KiB.
    Pages,
    /// A level in huge pages of 2 MiB.
    HugePages,
    /// A level in bytes.
    Bytes,
    /// A level in something else.
    Level,
    /// Events so far.
    Events,
}

impl Counts {
    pub(super) fn unit(self) -> &'static str {
        match self {
            Self::Pages | Self::HugePages | Self::Bytes => "MiB",
            Self::Level => "",
            Self::Events => "per s",
        }
    }

    pub(super) fn factor(self) -> f64 {
        match self {
            Self::Pages => 1.0 / 256.0,
            Self::HugePages => 2.0,
            Self::Bytes => 1.0 / 1_048_576.0,
            Self::Level | Self::Events => 1.0,
        }
    }
}

/// The last reading of a phase.
pub(super) fn last_of(run: &Recording, phase: &str) -> usize {
    let end = run.phases.iter().find(|of| of.name == phase).map_or(u64::MAX, |phase| phase.at_ns);
    let readings = run.series.times_ns().take_while(|time| *time <= end).count();
    readings.saturating_sub(1)
}

/// The last reading before a phase: that of the phase before, or the first.
pub(super) fn before(run: &Recording, phase: &str) -> usize {
    let number = run.phases.iter().position(|of| of.name == phase).unwrap_or(0);
    number.checked_sub(1).map_or(0, |before| last_of(run, &run.phases[before].name))
}

pub(super) fn summed(series: &Series, columns: &[&str]) -> Option<Vec<f64>> {
    let found = columns.iter().filter_map(|name| series.column(name));
    let found = found.map(|values| values.into_iter().map(|value| value as f64).collect::<Vec<_>>());
    found.reduce(|a, b| a.iter().zip(b).map(|(a, b)| a + b).collect())
}

fn seconds(series: &Series) -> Vec<f64> {
    series.times_ns().map(|time| time as f64 / 1e9).collect()
}

/// A level, or a rate between two readings which stands at the first of them.
pub(super) fn read(series: &Series, columns: &[&str], counts: Counts) -> Option<Vec<(f64, f64)>> {
    let values = summed(series, columns)?;
    let times = seconds(series);
    if counts != Counts::Events {
        return Some(
            times.into_iter().zip(values.into_iter().map(|value| value * counts.factor())).collect(),
        );
    }
    let shortest = (times.last()? - times.first()?) / SHORTEST_OF_RUN;
    let mut rates: Vec<(f64, f64)> = Vec::new();
    let mut from = 0;
    for to in 1..times.len() {
        let length = times[to] - times[from];
        if length > shortest || (to + 1 == times.len() && length > 0.0) {
            rates.push((times[from], (values[to] - values[from]).max(0.0) / length));
            from = to;
        }
    }
    let last = *rates.last()?;
    rates.push((*times.last()?, last.1));
    Some(rates)
}

/// A mark of all zones together, boost included, where runs recorded it.
pub(super) fn read_marks(series: &Series, mark: &str) -> Option<Vec<(f64, f64)>> {
    let is_mark = |name: &&String| {
        let rest = name.strip_prefix('z').map(|rest| rest.trim_start_matches(|c: char| c.is_ascii_digit()));
        rest.and_then(|rest| rest.strip_prefix('_'))
            .and_then(|rest| rest.strip_suffix(mark))
            .is_some_and(|zone| zone.ends_with('_'))
    };
    let columns: Vec<&str> =
        series.columns.iter().chain(series.constant.keys()).filter(is_mark).map(String::as_str).collect();
    read(series, &columns, Counts::Pages)
}

/// Readings between which somebody stalled, and how many stalls there were.
pub(super) fn stalls(series: &Series) -> (Vec<(f64, String)>, f64) {
    let Some(values) = summed(series, &STALLS) else { return (Vec::new(), 0.0) };
    let times = seconds(series);
    let mut at: Vec<(f64, String)> = Vec::new();
    let mut count = 0.0;
    for (time, value) in times.windows(2).zip(values.windows(2)) {
        let stalled = value[1] - value[0];
        if stalled > 0.0 {
            count += stalled;
            at.push((
                time[1],
                format!("{} from {} s to {} s", plain(stalled), plain(time[0]), plain(time[1])),
            ));
        }
    }
    (at, count)
}

/// Of more points than are drawn the least and the most of each stretch, in their order.
pub(super) fn thinned(points: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
    if points.len() <= POINTS_MAX {
        return points;
    }
    let stretch = points.len().div_ceil(POINTS_MAX / 2);
    let mut kept: Vec<(f64, f64)> = Vec::new();
    for part in points.chunks(stretch) {
        let place = |best: fn(f64, f64) -> bool| {
            let mut at = 0;
            for (index, point) in part.iter().enumerate() {
                if best(point.1, part[at].1) {
                    at = index;
                }
            }
            at
        };
        let (least, most) = (place(|a, b| a < b), place(|a, b| a > b));
        kept.push(part[least.min(most)]);
        if least != most {
            kept.push(part[least.max(most)]);
        }
    }
    kept.extend(points.last().filter(|last| kept.last() != Some(last)).copied());
    kept
}
