//! How fragmented free memory is, and when kcompactd compacts a node that nobody asked for: proactive compaction
//! (5.9, "mm: proactive compaction"; `vm.compaction_proactiveness`).
//!
//! ```text
//!   score of a zone: percent of its free pages in blocks smaller than 2 MiB       begins above   ends at
//!   |----------------------------------------------------------------|=====|########|
//!   0                                                                low   high    100
//!   the default, 20:                                                 80    90
//! ```
//! Left out: a write to the sysctl, which lets it begin at once. Next: [`crate::compact::run`]; `kcompactd` of the
//! kernel, which looks each half second, while kswapd sleeps.

use units::{NodeId, Order};

use crate::alloc::buddy::{FreeArea, LARGEST_ORDER};
use crate::alloc::page_alloc::PageAllocator;
use crate::base::event::Trace;

/// Blocks of 2 MiB, also where a kernel has no huge pages (`COMPACTION_HPAGE_ORDER`).
const LARGE: Order = Order(9);
/// The low mark is no lower.
const LOW_LEAST: u64 = 5;
/// From the low mark to the high one.
const APART: u64 = 10;

/// Scores between which a node is compacted proactively (`fragmentation_score_wmark`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScoreMarks {
    /// A zone that is no more fragmented is left alone.
    pub low: u64,
    /// A node that is more fragmented is compacted.
    pub high: u64,
}

impl ScoreMarks {
    /// Of a `vm.compaction_proactiveness` of 1 to 100; none of 0, which turns it off.
    pub fn of(proactiveness: u64) -> Option<Self> {
        let low = 100_u64.saturating_sub(proactiveness).max(LOW_LEAST);
        (proactiveness > 0).then(|| Self { low, high: (low + APART).min(100) })
    }
}

/// Percent of a zone's free pages that lie in blocks smaller than 2 MiB; 0 if none is free (`extfrag_for_order`).
pub fn zone_score(area: &FreeArea) -> u64 {
    let free = area.free_pages();
    let large: u64 = (LARGE.0..=LARGEST_ORDER.0).map(|order| area.blocks_free(Order(order)) << order).sum();
    ((free - large) * 100).checked_div(free).unwrap_or(0)
}

/// Scores of a node's zones, each by its part of the node's pages (`fragmentation_score_node`).
pub fn node_score<T: Trace>(alloc: &PageAllocator<T>, node: NodeId) -> u64 {
    let zones = || alloc.zones().iter().filter(|zone| zone.node == node);
    let pages: u64 = zones().map(|zone| u64::from(zone.spanned)).sum();
    // One more than there are, so that what no zone has is no division by zero: whole scores lose one by it.
    zones().map(|zone| u64::from(zone.spanned) * zone_score(&zone.free_area) / (pages + 1)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compact::scenes::{KCOMPACTD, ZONE, draw, taken_by};
    use crate::compact::state::{CompactGoal, CompactRequest, CompactResult};
    use crate::version::presets::Version;

    /// ```text
    ///   before   A.A.A.A.A.A.A.A. x 12    all that is free lies in blocks of 32 pages: 100 percent
    ///   after    ................ x  3    of six pageblocks that would fit the free pages three are free
    /// ```
    #[test]
    fn a_fragmented_zone_is_compacted_from_its_ends_until_its_score_is_low() {
        let zone = taken_by(Version::parse("linux-6.1").unwrap(), 12);
        let mut mem = draw(zone, &["A.A.A.A.A.A.A.A."; 12]);
        let score = |mem: &crate::compact::scenes::Scene| {
            let node = node_score(&mem.core.alloc, NodeId(0));
            (zone_score(&mem.core.alloc.zone(ZONE).free_area), node)
        };
        assert_eq!(score(&mem), (100, 99), "a node has a page more than its zones");
        let request = CompactRequest { goal: CompactGoal::Score(80), ..KCOMPACTD };
        let mut run = mem.begin(request).unwrap();
        let result = core::iter::from_fn(|| Some(mem.step(&mut run).done)).flatten().next();
        mem.end(run);
        assert_eq!((result, score(&mem)), (Some(CompactResult::Success), (50, 49)));
        // At a low score the next run does nothing.
        let mut run = mem.begin(request).unwrap();
        assert_eq!(mem.step(&mut run).done, Some(CompactResult::Success));
        mem.end(run);
    }

    #[test]
    fn a_larger_proactiveness_begins_and_ends_at_less_fragmentation() {
        let marks = |proactiveness| ScoreMarks::of(proactiveness).map(|marks| (marks.low, marks.high));
        assert_eq!([0, 1, 20, 100].map(marks), [None, Some((99, 100)), Some((80, 90)), Some((5, 15))]);
    }
}
