//! What a measure's name tells: which way is the good one, and its unit.
//!
//! Names are those of `/proc/vmstat` and the workloads' metrics, which carry their unit last
//! (`read_latency_p95_us`, `files_per_s`). What the tables below do not know is neutral: a
//! report then says higher or lower, never better or worse. Next: [`crate::judge::view`], whose headlines
//! say it themselves.

/// Which way of a measure is the good one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// More is better: rates, hits, pages kept.
    Higher,
    /// Less is better: times, stalls, refaults, scans.
    Lower,
    /// Neither.
    Neutral,
}

impl Direction {
    /// In one word, for programs.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Higher => "higher",
            Self::Lower => "lower",
            Self::Neutral => "neutral",
        }
    }
}

/// Names that do not follow from a part of them.
const EXACT: [(&str, Direction); 12] = [
    ("hot_pages_cached", Direction::Higher),
    ("thp_fault_alloc", Direction::Higher),
    ("compact_success", Direction::Higher),
    ("pgmajfault", Direction::Lower),
    ("pswpin", Direction::Lower),
    ("pswpout", Direction::Lower),
    ("compact_stall", Direction::Lower),
    ("nr_vmscan_write", Direction::Lower),
    ("nr_vmscan_immediate_reclaim", Direction::Lower),
    // Whether more slab scanning is good is the question of a whole experiment.
    ("slabs_scanned", Direction::Neutral),
    ("elapsed_s", Direction::Lower),
    ("elapsed_seconds", Direction::Lower),
];

/// Parts of names; the first that a name contains decides. Bad things come first, so that
/// `stalls_per_s` is not taken for a rate to be proud of.
const PARTS: [(&str, Direction); 36] = [
    ("stall", Direction::Lower),
    ("refault", Direction::Lower),
    ("scan", Direction::Lower),
    ("extfrag", Direction::Lower),
    ("fallback", Direction::Lower),
    ("fail", Direction::Lower),
    ("oom", Direction::Lower),
    ("evict", Direction::Lower),
    ("miss", Direction::Lower),
    ("majfault", Direction::Lower),
    ("major_fault", Direction::Lower),
    ("throttle", Direction::Lower),
    ("wmark_hit_quickly", Direction::Lower),
    ("wait", Direction::Lower),
    ("latency", Direction::Lower),
    ("reread", Direction::Lower),
    ("time_to", Direction::Lower),
    ("cpu_time", Direction::Lower),
    ("stddev", Direction::Lower),
    ("per_s", Direction::Higher),
    ("/s", Direction::Higher),
    ("throughput", Direction::Higher),
    ("bandwidth", Direction::Higher),
    ("iops", Direction::Higher),
    ("_mbps", Direction::Higher),
    ("hit_ratio", Direction::Higher),
    ("hit_rate", Direction::Higher),
    ("hits", Direction::Higher),
    ("huge_percent", Direction::Higher),
    ("percent_huge", Direction::Higher),
    ("huge_pages_faulted", Direction::Higher),
    ("hot_resident", Direction::Higher),
    ("hot_cached", Direction::Higher),
    ("efficiency", Direction::Higher),
    ("hot_pages", Direction::Higher),
    ("work_done", Direction::Higher),
];

/// Units that a name can end in, and what heads the column; longer endings first.
const UNITS: [(&str, &str); 24] = [
    ("mib_per_s", "MiB/s"),
    ("mib_per_second", "MiB/s"),
    ("kib_per_second", "KiB/s"),
    ("kib_per_s", "KiB/s"),
    ("mb_per_s", "MB/s"),
    ("pages_per_s", "pages/s"),
    ("files_per_s", "files/s"),
    ("/sec", "1/s"),
    ("per_sec", "1/s"),
    ("per_second", "1/s"),
    ("per_s", "1/s"),
    ("percent", "%"),
    ("ratio", "ratio"),
    ("seconds", "s"),
    ("_ns", "ns"),
    ("_us", "µs"),
    ("_ms", "ms"),
    ("_s", "s"),
    ("_mib", "MiB"),
    ("_kib", "KiB"),
    ("_kb", "kB"),
    ("bytes", "B"),
    ("pages", "pages"),
    ("files", "files"),
];

/// Which way of the measure called `name` is the good one.
///
/// Exact names first, then parts of names, then times by their unit.
pub fn direction(name: &str) -> Direction {
    let exact = EXACT.iter().find(|(known, _)| *known == name);
    let part = || PARTS.iter().find(|(part, _)| name.contains(part));
    if let Some((_, direction)) = exact.or_else(part) {
        return *direction;
    }
    match unit(name) {
        "ns" | "µs" | "ms" | "s" => Direction::Lower,
        _ => Direction::Neutral,
    }
}

/// The unit of the measure called `name`, from its ending; empty for a bare count.
pub fn unit(name: &str) -> &'static str {
    if name.contains("_pages") && !name.ends_with("_per_s") {
        return "pages";
    }
    UNITS.iter().find(|(ending, _)| name.ends_with(ending)).map_or("", |(_, unit)| unit)
}

/// Whether a measure is a rate, whose average is the harmonic mean.
pub(crate) fn is_rate(name: &str) -> bool {
    name.ends_with("per_s")
        || name.ends_with("per_sec")
        || name.ends_with("per_second")
        || name.ends_with("/sec")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_their_direction() {
        use Direction::{Higher, Lower, Neutral};
        for (name, wanted) in [
            ("hot_pages_cached", Higher),
            ("files_per_s", Higher),
            ("1-files/sec", Higher),
            ("read_mib_per_s", Higher),
            ("stalls_per_s", Lower),
            ("allocstall_movable", Lower),
            ("workingset_refault_file", Lower),
            ("pgscan_direct", Lower),
            ("read_latency_p95_us", Lower),
            ("elapsed_s", Lower),
            ("thp_fault_alloc", Higher),
            ("thp_fault_fallback", Lower),
            ("slabs_scanned", Neutral),
            ("nr_free_pages", Neutral),
            ("whatever", Neutral),
        ] {
            assert_eq!(direction(name), wanted, "{name}");
        }
    }

    #[test]
    fn names_tell_their_unit() {
        for (name, wanted) in [
            ("hot_pages_cached", "pages"),
            ("files_per_s", "files/s"),
            ("read_latency_p95_us", "µs"),
            ("scanned_pages_per_s", "pages/s"),
            ("1-files/sec", "1/s"),
            ("elapsed_s", "s"),
            ("stream_mib_per_second", "MiB/s"),
            ("oom_kills", ""),
            ("huge_percent", "%"),
        ] {
            assert_eq!(unit(name), wanted, "{name}");
        }
    }
}
