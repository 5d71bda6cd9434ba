//! Counters of a recording as tracks: under which heading, in which unit, and what is drawn.
//!
//! A gauge is drawn as it was read. Of what counts events the rate between two readings is drawn, from the first
//! of them on: a line that only climbs shows nothing. Columns that never change are left out, as they are in the
//! series. Next: [`super::perfetto`].

use recording::{Series, is_gauge};

use super::packets::{Kind, Packets, Track, Unit, Value};

const PAGE: Unit<'_> = Unit::Bytes(4096);
const BYTE: Unit<'_> = Unit::Bytes(1);
const OBJECTS: Unit<'_> = Unit::Called("objects");

/// How one column is drawn.
#[derive(Debug, Clone, PartialEq)]
struct Drawn<'a> {
    /// The track above it.
    heading: String,
    name: &'a str,
    unit: Unit<'a>,
    reading: Reading,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Reading {
    /// As read.
    Level,
    /// One of so many parts of the unit.
    Part(f64),
    /// So much more each second.
    Rate,
}

/// Draws every column of `series`; `cgroups` are the paths that its columns may be of.
pub(super) fn draw(series: &Series, cgroups: &[&str], packets: &mut Packets) {
    let mut headings: Vec<(String, Track)> = Vec::new();
    for (column, name) in series.columns.iter().enumerate() {
        let drawn = Drawn::of(name, cgroups);
        let parent = match headings.iter().find(|(heading, _)| *heading == drawn.heading) {
            Some(&(_, track)) => track,
            None => {
                let rank = rank(&drawn.heading);
                let track = packets.track(&drawn.heading, None, rank, Kind::Plain);
                headings.push((drawn.heading.clone(), track));
                track
            }
        };
        let track = packets.track(drawn.name, Some(parent), 0, Kind::Counter(drawn.unit));
        let mut last = None;
        for (at, value) in values(series, column, drawn.reading) {
            if last != Some(value) {
                packets.count(at, track, value);
                last = Some(value);
            }
        }
    }
}

/// What is drawn of a column, and from when on. Readings need not be in order; those that are not have no rate.
fn values(series: &Series, column: usize, reading: Reading) -> impl Iterator<Item = (u64, Value)> + '_ {
    let rows = &series.rows;
    rows.iter().enumerate().filter_map(move |(row, (at, values))| {
        let value = values[column];
        let drawn = match reading {
            Reading::Level => Value::Whole(value),
            Reading::Part(parts) => Value::Real(value as f64 / parts),
            Reading::Rate => {
                let (next, later) = rows.get(row + 1)?;
                let (length, more) = (next.checked_sub(*at)?, later[column].saturating_sub(value));
                if length == 0 {
                    return None;
                }
                Value::Real(more as f64 * 1e9 / length as f64)
            }
        };
        Some((*at, drawn))
    })
}

/// Headings from the whole machine to its parts.
fn rank(heading: &str) -> i64 {
    let order =
        ["memory", "pressure", "events per second", "cgroup", "zone", "slab", "meminfo", "free lists"];
    order.iter().position(|begin| heading.starts_with(begin)).map_or(90, |place| 10 + place as i64)
}

impl<'a> Drawn<'a> {
    fn of(name: &'a str, cgroups: &[&str]) -> Self {
        if let Some(drawn) = Self::of_cgroup(name, cgroups).or_else(|| Self::of_zone(name)) {
            return drawn;
        }
        let level =
            |heading: &str, unit| Self { heading: heading.to_owned(), name, unit, reading: Reading::Level };
        if name.starts_with("slab_") {
            return level("slab caches", OBJECTS);
        }
        if name.starts_with("mi_") {
            return level("meminfo", Unit::Bytes(1024));
        }
        if name.starts_with("psi_") {
            return Self { heading: "pressure".to_owned(), ..Self::pressure(name) };
        }
        if name.starts_with("buddy_") {
            return level("free lists", Unit::Called("blocks"));
        }
        if name.starts_with("pagetype_") || name.starts_with("pageblocks_") {
            return level("free lists", Unit::Called("pageblocks"));
        }
        let is_objects = ["nr_dentries", "nr_inodes", "nr_page_cache_tree_nodes", "workingset_nodes"];
        match (is_gauge(name), is_objects.contains(&name)) {
            (true, true) => level("memory", OBJECTS),
            (true, false) => level("memory", PAGE),
            (false, _) => Self::rate("events per second", name),
        }
    }

    fn rate(heading: &str, name: &'a str) -> Self {
        Self { heading: heading.to_owned(), name, unit: Unit::Called("per s"), reading: Reading::Rate }
    }

    /// Shares of time in hundredths of a percent, or microseconds of stall.
    fn pressure(name: &'a str) -> Self {
        let (unit, reading) =
            if name.contains("_avg") { ("%", Reading::Part(100.0)) } else { ("µs per s", Reading::Rate) };
        Self { heading: String::new(), name, unit: Unit::Called(unit), reading }
    }

    /// `cg_PATH_NAME`, where `PATH` has `_` for `/`.
    fn of_cgroup(name: &'a str, cgroups: &[&str]) -> Option<Self> {
        let rest = name.strip_prefix("cg_")?;
        let of = |path: &&&str| {
            let prefix = format!("{}_", path.replace('/', "_"));
            rest.starts_with(&prefix).then_some(prefix.len())
        };
        let (path, length) = cgroups
            .iter()
            .filter_map(|path| Some((*path, of(&path)?)))
            .max_by_key(|&(_, length)| length)
            .or_else(|| rest.split_once('_').map(|(path, _)| (path, path.len() + 1)))?;
        let heading = format!("cgroup {path}");
        let stat = &rest[length..];
        if stat.starts_with("psi_") {
            return Some(Self { heading, ..Self::pressure(stat) });
        }
        if stat == "workingset_nodes" {
            return Some(Self { heading, name: stat, unit: OBJECTS, reading: Reading::Level });
        }
        if stat == "current" || is_gauge(stat) {
            return Some(Self { heading, name: stat, unit: BYTE, reading: Reading::Level });
        }
        Some(Self::rate(&heading, stat))
    }

    /// `zN_ZONE_NAME`.
    fn of_zone(name: &'a str) -> Option<Self> {
        let (node, rest) = name.strip_prefix('z')?.split_once('_')?;
        let (zone, stat) = rest.split_once('_')?;
        if node.is_empty() || !node.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let unit = if stat.starts_with("blocks_") { Unit::Called("pageblocks") } else { PAGE };
        let heading = format!("zone {zone} of node {node}");
        Some(Self { heading, name: stat, unit, reading: Reading::Level })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_column_has_its_heading_and_unit() {
        let shown = |name| {
            let Drawn { heading, name, unit, reading } = Drawn::of(name, &["P", "P/A", "deep_er"]);
            format!("{heading} | {name} | {unit:?} | {reading:?}")
        };
        let names = [
            "nr_free_pages",
            "nr_inodes",
            "pgscan_direct",
            "nr_written",
            "z0_DMA32_free",
            "z1_Normal_blocks_movable",
            "zswpin",
            "cg_P_A_active_file",
            "cg_P_pgscan",
            "cg_deep_er_current",
            "cg_unknown_events_low",
            "psi_memory_some_avg10",
            "cg_P_psi_memory_full_total_us",
            "slab_xfs_inode_active",
            "mi_MemFree",
            "buddy_n0_DMA_o3",
        ];
        insta::assert_snapshot!(names.map(shown).join("\n"), @r#"
        memory | nr_free_pages | Bytes(4096) | Level
        memory | nr_inodes | Called("objects") | Level
        events per second | pgscan_direct | Called("per s") | Rate
        events per second | nr_written | Called("per s") | Rate
        zone DMA32 of node 0 | free | Bytes(4096) | Level
        zone Normal of node 1 | blocks_movable | Called("pageblocks") | Level
        events per second | zswpin | Called("per s") | Rate
        cgroup P/A | active_file | Bytes(1) | Level
        cgroup P | pgscan | Called("per s") | Rate
        cgroup deep_er | current | Bytes(1) | Level
        cgroup unknown | events_low | Called("per s") | Rate
        pressure | psi_memory_some_avg10 | Called("%") | Part(100.0)
        cgroup P | psi_memory_full_total_us | Called("µs per s") | Rate
        slab caches | slab_xfs_inode_active | Called("objects") | Level
        meminfo | mi_MemFree | Bytes(1024) | Level
        free lists | buddy_n0_DMA_o3 | Called("blocks") | Level
        "#);
    }

    /// Readings that are not in order, or of the same moment, have no rate and do no harm.
    #[test]
    fn a_rate_is_what_came_until_the_next_reading() {
        let rows = [(0, 5), (500_000_000, 25), (500_000_000, 30), (2_500_000_000, 30), (1, 90), (2, 10)];
        let series = Series {
            columns: vec!["pgscan_direct".into()],
            rows: rows.map(|(at, value)| (at, vec![value])).to_vec(),
            ..Series::default()
        };
        let drawn: Vec<(u64, Value)> = values(&series, 0, Reading::Rate).collect();
        let real = |at, value| (at, Value::Real(value));
        assert_eq!(drawn, [real(0, 40.0), real(500_000_000, 0.0), real(1, 0.0)]);
    }
}
