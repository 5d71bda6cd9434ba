//! Pressure over time: free memory against the watermarks, boosts, kswapd, direct reclaim, and what cgroups
//! used.
//!
//! Drawn from the series, so nothing is finer than its readings; of a run with events the table of turning
//! points is exact ([`super::moments`]). Watermarks are those in force, boosts included, as `/proc/zoneinfo`
//! prints them.

use recording::{Recording, Series};

use crate::document::Section;
use crate::document::timeline::{Kind, Line};
use crate::views::pressure::pressure_line;
use crate::views::run::{summed, timeline_of};

/// Cgroups beyond these are not drawn.
const GROUPS_MAX: usize = 6;

/// The section; empty where the series holds nothing of it.
pub(super) fn section(recording: &Recording) -> Section {
    let timeline = timeline_of(recording, lines(recording).into_iter());
    Section::untitled().lines_of(pressure_line(recording)).with(timeline)
}

/// The zones of the series that have pages, such as `z0_DMA32`: a real kernel tells of empty ones, too.
fn zones(series: &Series) -> Vec<&str> {
    let names = series.columns.iter().chain(series.constant.keys());
    let is_numbered = |zone: &str| {
        zone.strip_prefix('z').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    let has_pages = |zone: &str| series.constant.get(&format!("{zone}_managed")) != Some(&0);
    let zones = names.filter_map(|name| name.strip_suffix("_free"));
    let mut zones: Vec<&str> = zones.filter(|zone| is_numbered(zone) && has_pages(zone)).collect();
    zones.sort_unstable();
    zones
}

fn lines(recording: &Recording) -> Vec<Line> {
    let series = &recording.series;
    let zones = zones(series);
    let of_zones = |mark: &str| {
        let names: Vec<String> = zones.iter().map(|zone| format!("{zone}_{mark}")).collect();
        summed(series, &names.iter().map(String::as_str).collect::<Vec<_>>())
    };
    let line = |name: &str, unit, kind, values: Option<Vec<f64>>| {
        Some(Line { name: name.to_owned(), unit, kind, values: values? })
    };
    let counted = |name: &str, counters: &[&str]| line(name, "per s", Kind::Events, summed(series, counters));
    let stalls =
        ["allocstall_dma", "allocstall_dma32", "allocstall_normal", "allocstall_movable", "allocstall"];
    let level = |name: &str, values: Option<Vec<f64>>| line(name, "pages", Kind::Level, values);
    let mut lines: Vec<Option<Line>> = vec![
        level("free", summed(series, &["nr_free_pages"])),
        level("high marks", of_zones("high")),
        level("low marks", of_zones("low")),
        level("min marks", of_zones("min")),
        level("boosts", of_zones("boost")),
        line("zones below low", "zones", Kind::Level, below(series, &zones, "low")),
        line("zones below min", "zones", Kind::Level, below(series, &zones, "min")),
        counted("kswapd runs", &["pageoutrun"]),
        counted("kswapd reclaims", &["pgsteal_kswapd"]),
        counted("direct reclaims", &stalls),
        counted("pages of those", &["pgsteal_direct"]),
        counted("refaults", &["workingset_refault", "workingset_refault_file", "workingset_refault_anon"]),
    ];
    lines.extend([("some stalled", "some"), ("all stalled", "full")].map(|(name, kind)| {
        // Microseconds in a second are a share of it.
        let stalled = summed(series, &[&format!("psi_memory_{kind}_total_us")])?;
        line(name, "% of time", Kind::Events, Some(stalled.into_iter().map(|us| us / 1e4).collect()))
    }));
    lines.extend(recording.memcg.keys().take(GROUPS_MAX).map(|path| {
        let used = series.column(&format!("cg_{}_current", path.replace('/', "_")))?;
        let mib = used.into_iter().map(|bytes| bytes as f64 / f64::from(1 << 20)).collect();
        line(&format!("cgroup {path}"), "MiB", Kind::Level, Some(mib))
    }));
    lines.into_iter().flatten().collect()
}

/// In how many zones fewer pages were free than the mark, at each reading.
fn below(series: &Series, zones: &[&str], mark: &str) -> Option<Vec<f64>> {
    let zone = |zone: &&str| {
        let (free, mark) =
            (series.column(&format!("{zone}_free"))?, series.column(&format!("{zone}_{mark}"))?);
        Some(free.iter().zip(mark).map(|(&free, mark)| f64::from(u8::from(free < mark))).collect::<Vec<_>>())
    };
    zones.iter().filter_map(zone).reduce(|a, b| a.iter().zip(b).map(|(a, b)| a + b).collect())
}
