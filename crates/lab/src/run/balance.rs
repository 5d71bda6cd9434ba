//! What a recording tells of the balance between slab and page cache, and of reclaim, as metrics of workloads
//! that are about it.
//!
//! The *steady state* is the second half of the time of one phase, which the workload names: memory has
//! filled long before. In it, over the sampled series:
//! - `slab_share`: the mean over time of slab / (slab + file pages on LRU lists), which the reference suite
//!   plots; `slab_share_least` and `slab_share_most`; `slab_pagecache_ratio`: mean slab / mean file pages there;
//! - `dirty_percent`: dirty pages by all memory; `dirty_of_background_percent`: by the threshold at which the
//!   flusher begins, which sinks with the memory that slab takes;
//! - `slab_idle_percent`: of intervals, those without slab scanning. The reference suite's have 10 s on 16 GiB;
//!   here they are as much shorter as memory is smaller, so that as many fall to a loop.
//!
//! Over the whole run, the reference suite's figures of reclaim (`stats::ops`).
//!
//! Left out: runs on this host, whose series are those of everybody's memory. Next: `counted.rs`.

use std::collections::BTreeMap;

use recording::{Recording, Series};
use stats::ops::{OpsRules, ops_rows};
use units::PAGE_SIZE;
use workload::WorkloadSpec;
use workload::small_files::SOURCE_MEMORY;

/// The reference suite's monitors read every 10 s.
const MONITOR_SECONDS: f64 = 10.0;

/// Rows of `stats::ops`, and what they are called as metrics.
const OF_RECLAIM: [(&str, &str); 12] = [
    ("Direct pages scanned", "direct_pages_scanned"),
    ("Kswapd pages scanned", "kswapd_pages_scanned"),
    ("Kswapd pages reclaimed", "kswapd_pages_reclaimed"),
    ("Direct pages reclaimed", "direct_pages_reclaimed"),
    ("Kswapd efficiency %", "kswapd_efficiency_percent"),
    ("Kswapd velocity", "kswapd_velocity"),
    ("Direct efficiency %", "direct_efficiency_percent"),
    ("Direct velocity", "direct_velocity"),
    ("Page reclaim immediate", "page_reclaim_immediate"),
    ("Slabs scanned", "slabs_scanned"),
    ("Direct inode steals", "direct_inode_steals"),
    ("Kswapd inode steals", "kswapd_inode_steals"),
];

/// `recording` with these metrics, if its workload is about them. To be called when its phases, its series
/// and its counters are complete; what the OOM killer ended has none.
pub(crate) fn with_balance(mut recording: Recording) -> Recording {
    let phase = WorkloadSpec::find(&recording.workload).ok().and_then(|spec| spec.balance);
    let Some(phase) = phase.filter(|_| recording.ended_by().is_none() && recording.backend != "host") else {
        return recording;
    };
    let seconds = recording.duration_ns().map(|ns| ns as f64 / 1e9);
    let rows = ops_rows(&recording.vmstat, seconds, OpsRules::Repaired);
    for (label, name) in OF_RECLAIM {
        if let Some(value) = rows.iter().find(|row| row.label == label).and_then(|row| row.value) {
            recording.metrics.insert(name.to_owned(), value);
        }
    }
    let Some(window) = steady_state(&recording, phase) else { return recording };
    let memory = recording.metrics.get("memory_pages").copied();
    let interval = memory.map(|pages| interval_ns(pages, &recording.series));
    recording.metrics.extend(balance(&recording.series, window, memory, interval));
    recording.notes.push(format!("steady state: the second half of the phase `{phase}`"));
    if let Some(ns) = interval {
        recording.notes.push(format!(
            "slab scanning is looked at in intervals of {} s, as the reference suite does every 10 s on 16 GiB",
            ns as f64 / 1e9
        ));
    }
    recording
}

/// Where the second half of a phase begins and ends.
fn steady_state(recording: &Recording, phase: &str) -> Option<(u64, u64)> {
    let index = recording.phases.iter().position(|ended| ended.name == phase)?;
    let end = recording.phases[index].at_ns;
    let begin = match index.checked_sub(1) {
        Some(before) => recording.phases[before].at_ns,
        None => recording.series.times_ns().next()?,
    };
    (end > begin).then_some((begin + ((end - begin) / 2), end))
}

/// Ten seconds scaled by memory, in whole milliseconds, and at least a step of the series.
fn interval_ns(memory_pages: f64, series: &Series) -> u64 {
    let scale = memory_pages * PAGE_SIZE as f64 / SOURCE_MEMORY.get() as f64;
    let wanted = (MONITOR_SECONDS * 1e9 * scale) as u64;
    let times: Vec<u64> = series.times_ns().collect();
    let mut steps: Vec<u64> = times.windows(2).map(|two| two[1].saturating_sub(two[0])).collect();
    steps.sort_unstable();
    let step = steps.get(steps.len() / 2).copied().unwrap_or(1).max(1);
    wanted.max(step).div_ceil(1_000_000) * 1_000_000
}

type Window = (u64, u64);

fn balance(
    series: &Series,
    window: Window,
    memory_pages: Option<f64>,
    interval: Option<u64>,
) -> BTreeMap<String, f64> {
    let mut metrics = BTreeMap::new();
    let mut add = |name: &str, value: Option<f64>| {
        metrics.extend(value.filter(|value| value.is_finite()).map(|value| (name.to_owned(), value)));
    };
    let held = Held::of(series, window);
    let slab = sum(series, &["nr_slab_reclaimable", "nr_slab_unreclaimable"]);
    let file = sum(series, &["nr_active_file", "nr_inactive_file"]);
    if let (Some(slab), Some(file)) = (&slab, &file) {
        let share: Vec<f64> = slab.iter().zip(file).map(|(slab, file)| slab / (slab + file)).collect();
        add("slab_share", held.mean(&share));
        add("slab_share_least", held.values(&share).reduce(f64::min));
        add("slab_share_most", held.values(&share).reduce(f64::max));
        let ratio = held.mean(slab).zip(held.mean(file)).map(|(slab, file)| slab / file);
        add("slab_pagecache_ratio", ratio);
    }
    let dirty = sum(series, &["nr_dirty"]).and_then(|dirty| held.mean(&dirty));
    let background = sum(series, &["nr_dirty_background_threshold"]).and_then(|values| held.mean(&values));
    add("dirty_percent", dirty.zip(memory_pages).map(|(dirty, memory)| 100.0 * dirty / memory));
    add("dirty_of_background_percent", dirty.zip(background).map(|(dirty, limit)| 100.0 * dirty / limit));
    let scanned = series.column("slabs_scanned");
    add("slab_idle_percent", scanned.zip(interval).and_then(|(scanned, ns)| held.idle_percent(&scanned, ns)));
    metrics
}

fn sum(series: &Series, names: &[&str]) -> Option<Vec<f64>> {
    let columns = names.iter().map(|name| series.column(name)).collect::<Option<Vec<_>>>()?;
    let row = |row: usize| columns.iter().map(|column| column[row] as f64).sum();
    Some((0..series.rows.len()).map(row).collect())
}

/// How long each reading stood, within a window.
struct Held {
    window: Window,
    times: Vec<u64>,
    lengths: Vec<u64>,
}

impl Held {
    fn of(series: &Series, window: Window) -> Self {
        let (begin, end) = window;
        let times: Vec<u64> = series.times_ns().collect();
        let until = times.iter().skip(1).copied().chain([u64::MAX]);
        let within = |(from, to): (u64, u64)| to.min(end).saturating_sub(from.max(begin));
        let lengths = times.iter().copied().zip(until).map(within).collect();
        Self { window, times, lengths }
    }

    /// Values that stood for some of the time.
    fn values(&self, values: &[f64]) -> impl Iterator<Item = f64> {
        values.iter().zip(&self.lengths).filter(|&(_, &length)| length > 0).map(|(&value, _)| value)
    }

    /// The mean over time.
    fn mean(&self, values: &[f64]) -> Option<f64> {
        let whole: u64 = self.lengths.iter().sum();
        let stood = values.iter().zip(&self.lengths).filter(|&(_, &length)| length > 0);
        let sum: f64 = stood.map(|(value, &length)| value * length as f64).sum();
        (whole > 0).then(|| sum / whole as f64)
    }

    /// Of the window's whole intervals of `length`, those in which `counter` did not move.
    fn idle_percent(&self, counter: &[u64], length: u64) -> Option<f64> {
        let (begin, end) = self.window;
        let read = |at: u64| counter[self.times.partition_point(|&time| time <= at).saturating_sub(1)];
        let intervals = (end - begin) / length;
        let is_idle =
            |&number: &u64| read(begin + (number * length)) == read(begin + ((number + 1) * length));
        let idle = (0..intervals).filter(is_idle).count();
        (intervals > 0).then(|| 100.0 * idle as f64 / intervals as f64)
    }
}

#[cfg(test)]
mod tests {
    use recording::Phase;

    use super::*;

    const SECOND: u64 = 1_000_000_000;

    /// Slab grows to the same size as the file pages until the middle of `created`, and is scanned from then
    /// on, but not in the fourth of its last five seconds.
    fn run() -> Recording {
        let names = ["nr_slab_reclaimable", "nr_slab_unreclaimable", "nr_active_file", "nr_inactive_file"];
        let mut names: Vec<String> = names.map(str::to_owned).to_vec();
        names.extend(["nr_dirty".to_owned(), "slabs_scanned".to_owned()]);
        let row = |second: u64| {
            let slab = second.min(5) * 100;
            let scanned = second.saturating_sub(5) - u64::from(second >= 9);
            (second * SECOND, vec![slab, slab, 400, 600, 100, scanned * 64])
        };
        let series = Series::new(names, (0..=12).map(row).collect());
        let phase =
            |name: &str, at: u64| Phase { name: name.into(), at_ns: at * SECOND, vmstat: BTreeMap::new() };
        Recording {
            series,
            phases: vec![phase("created", 10), phase("deleted", 12)],
            metrics: BTreeMap::from([("memory_pages".to_owned(), (1 << 30) as f64 / 4096.0 * 1.6)]),
            vmstat: BTreeMap::from(
                [("pgscan_kswapd", 600), ("pgsteal_kswapd", 300)].map(|(n, v)| (n.into(), v)),
            ),
            simulated_ns: 12 * SECOND,
            ..Recording::new("", "small-files", "sim", "", 1)
        }
    }

    #[test]
    fn the_steady_state_is_the_second_half_of_the_phase() {
        let told = with_balance(run());
        let figures: Vec<String> =
            told.metrics.iter().map(|(name, value)| format!("{name} {value:.3}")).collect();
        insta::assert_snapshot!(figures.join("\n"), @r"
        dirty_percent 0.024
        kswapd_efficiency_percent 50.000
        kswapd_pages_reclaimed 300.000
        kswapd_pages_scanned 600.000
        kswapd_velocity 50.000
        memory_pages 419430.400
        slab_idle_percent 20.000
        slab_pagecache_ratio 1.000
        slab_share 0.500
        slab_share_least 0.500
        slab_share_most 0.500
        ");
        insta::assert_snapshot!(told.notes.join("\n"), @r"
        steady state: the second half of the phase `created`
        slab scanning is looked at in intervals of 1 s, as the reference suite does every 10 s on 16 GiB
        ");
    }

    #[test]
    fn a_reading_counts_for_as_long_as_it_stood() {
        let rows = vec![(0, vec![0]), (6 * SECOND, vec![90]), (7 * SECOND, vec![10]), (20 * SECOND, vec![7])];
        let series = Series::new(vec!["nr_dirty".into()], rows);
        let held = Held::of(&series, (5 * SECOND, 10 * SECOND));
        assert_eq!(held.mean(&sum(&series, &["nr_dirty"]).unwrap()), Some((90.0 + (3.0 * 10.0)) / 5.0));
        assert_eq!(sum(&series, &["nr_dirty", "no_such"]), None);
    }

    #[test]
    fn other_workloads_and_runs_that_ended_early_have_no_balance() {
        let other = Recording { workload: "hot-and-stream".into(), ..run() };
        assert_eq!(with_balance(other.clone()), other);
        let without_end = Recording { phases: Vec::new(), ..run() };
        assert!(!with_balance(without_end).metrics.contains_key("slab_share"));
    }
}
