//! What the memory was when the OOM killer came, as metrics of a workload that lives on after it, or ends by it.
//!
//! Of the first kill's report, as the kernel prints it: `free_percent_at_oom` and `slab_percent_at_oom`, of all
//! memory; `pinned_percent_at_oom`, what no reclaim may touch. `dirty_inodes_at_oom`, inodes that wait to be
//! written, is known of the simulated kernel only.
//!
//! Left out: kills at a cgroup's limit, whose report says nothing of free memory. Next: `report`'s own reading of
//! a kill.

use recording::{OomKill, Recording};
use units::PAGE_SIZE;

/// The metric, and what its pages are called in `Mem-Info`.
const SHARES: [(&str, &[&str]); 3] = [
    ("free_percent_at_oom", &["free:"]),
    ("slab_percent_at_oom", &["slab_reclaimable:", "slab_unreclaimable:"]),
    ("pinned_percent_at_oom", &["unevictable:"]),
];

/// What `inode-storm` tells itself, unless the machine stopped.
const PINNED: &str = "pinned_gib_at_oom";

/// `recording` with these metrics, if somebody was killed and its workload has metrics. `dirty_inodes` is as many
/// as there were at the kill, where that is known.
pub(crate) fn with_kill(mut recording: Recording, dirty_inodes: Option<u64>) -> Recording {
    let Some(kill) = recording.oom_kills.first().filter(|kill| !kill.by_limit) else { return recording };
    let Some(&memory) = recording.metrics.get("memory_pages").filter(|&&pages| pages > 0.0) else {
        return recording;
    };
    let share = |keys: &[&str]| {
        let pages: Option<u64> = keys.iter().map(|key| pages(kill, key)).sum();
        pages.map(|pages| 100.0 * pages as f64 / memory)
    };
    let mut found: Vec<(&str, f64)> =
        SHARES.iter().filter_map(|&(name, keys)| Some((name, share(keys)?))).collect();
    // Nobody was left to measure it when the kernel panicked.
    if recording.metrics.contains_key("pinned_gib_before_oom") && !recording.metrics.contains_key(PINNED) {
        let gib = |pages: u64| (pages * PAGE_SIZE) as f64 / f64::from(1 << 30);
        found.extend(pages(kill, "unevictable:").map(|pages| (PINNED, gib(pages))));
    }
    found.extend(dirty_inodes.map(|count| ("dirty_inodes_at_oom", count as f64)));
    recording.metrics.extend(found.into_iter().map(|(name, value)| (name.to_owned(), value)));
    recording
}

/// The number behind `key` in the report's first lines, those of the whole machine.
fn pages(kill: &OomKill, key: &str) -> Option<u64> {
    let of_machine = kill.memory.iter().take_while(|line| !line.trim_start().starts_with("Node "));
    let mut words = of_machine.flat_map(|line| line.split_whitespace());
    words.find_map(|word| word.strip_prefix(key)?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recorded(memory_pages: Option<f64>, by_limit: bool) -> Recording {
        let report = "\
            Mem-Info:\n active_anon:780 inactive_anon:0 isolated_anon:0\n  unevictable:600 dirty:0 writeback:0\n  \
            slab_reclaimable:63 slab_unreclaimable:37\n  free:250 free_pcp:239\n \
            Node 0 active_anon:2940kB free:1kB\n Node 0 DMA free:15360kB";
        let kill = OomKill {
            at_ns: 1,
            task: "creator0".into(),
            by_limit,
            memory: report.lines().map(str::to_owned).collect(),
            ..OomKill::default()
        };
        let mut recording = Recording::new("", "inode-storm", "sim", "", 1).killed(vec![kill]);
        recording.metrics.extend(memory_pages.map(|pages| ("memory_pages".to_owned(), pages)));
        recording
    }

    #[test]
    fn shares_of_memory_are_those_of_the_whole_machine() {
        let metrics = with_kill(recorded(Some(1000.0), false), Some(7)).metrics;
        assert_eq!(
            metrics.iter().map(|(name, value)| (name.as_str(), *value)).collect::<Vec<_>>(),
            [
                ("dirty_inodes_at_oom", 7.0),
                ("free_percent_at_oom", 25.0),
                ("memory_pages", 1000.0),
                ("pinned_percent_at_oom", 60.0),
                ("slab_percent_at_oom", 10.0),
            ]
        );
    }

    #[test]
    fn without_the_size_of_memory_or_at_a_limit_nothing_is_told() {
        assert!(with_kill(recorded(None, false), Some(7)).metrics.is_empty());
        assert_eq!(with_kill(recorded(Some(1000.0), true), Some(7)).metrics.len(), 1);
    }
}
