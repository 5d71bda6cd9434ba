//! Counters of one cgroup on one node: its own, and what was seen of those below (MECHANISMS-6X 4.3).
//!
//! Left out: who flushes them and when, see [`crate::cgroup::stat`]. [`crate::cgroup::tree`] holds them.

use crate::base::vmstat::MemcgStat;

type StatArray = [u64; MemcgStat::COUNT];

/// Counters of one cgroup on one node.
#[derive(Debug, Clone)]
pub(super) struct Stats {
    /// Of the cgroup's own pages, exact.
    pub(super) local: StatArray,
    /// Of the whole subtree, as of the last flush, or without what is kept back; [`is_kept_live`] ones exact
    /// where all are.
    pub(super) seen: StatArray,
    /// What is seen of the cgroups directly below.
    pub(super) below: StatArray,
    /// The next change is to be told: to a flush, which has not heard of one since the last, or up the
    /// tree where counters are kept exact.
    pub(super) tells: bool,
}

/// Counters of a new cgroup.
pub(super) const NOTHING: Stats = Stats {
    local: [0; MemcgStat::COUNT],
    seen: [0; MemcgStat::COUNT],
    below: [0; MemcgStat::COUNT],
    tells: true,
};

/// What reclaim reads of a whole subtree.
pub(super) const fn is_kept_live(stat: MemcgStat) -> bool {
    matches!(
        stat,
        MemcgStat::InactiveFile
            | MemcgStat::ActiveFile
            | MemcgStat::WorkingsetActivateAnon
            | MemcgStat::WorkingsetActivateFile
    )
}

/// What is not counted in pages or events.
pub(super) const fn is_in_bytes(stat: MemcgStat) -> bool {
    matches!(
        stat,
        MemcgStat::KernelBytes | MemcgStat::SlabReclaimableBytes | MemcgStat::SlabUnreclaimableBytes
    )
}
