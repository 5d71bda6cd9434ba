//! Which page tables a walk for a new generation looks at (MGLRU 4.2: two Bloom filters, one for this walk and one for
//! the next).
//!
//! ```text
//!   a walk:     tables in its filter, and all of mappings that no walk has seen  --> an eighth young: the next filter
//!   eviction:   an eighth young around an accessed page                          --> the filter of the next walk
//! ```
//! So a table in which little is young is left to eviction, until that finds more. A walk passes mappings by whose
//! program has not run since the last one; where it passes all by, it leaves the filter of the next walk as it was two
//! walks ago. That is a hypothesis, held to a virtual machine with 6.12 in `docs/cases/multi-gen-parts.md`.
//!
//! Sets stand for the filters, which now and then say yes of a table that is in none. Left out: that a process is what
//! is new and runs, not a mapping, that those with fewer than 64 pages are passed by, and the bits of upper tables,
//! which save time alone.

use std_alloc::collections::BTreeSet;

use crate::base::ids::{AnonId, FileAreaId};
use crate::version::rules::{GenFilter, Rules};

/// Entries of a page table.
pub(crate) const TABLE_PAGES: u32 = 512;

/// What is mapped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Mapped {
    /// A part of a file.
    File(FileAreaId),
    /// Anonymous memory.
    Anon(AnonId),
}

/// One of the page tables of a mapping.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Table {
    mapped: Mapped,
    number: u32,
}

impl Table {
    /// The table that has this page of a mapping.
    pub(crate) const fn of(mapped: Mapped, page: u32) -> Self {
        Self { mapped, number: page / TABLE_PAGES }
    }

    /// The mapping.
    pub(crate) const fn mapped(self) -> Mapped {
        self.mapped
    }
}

/// Whether so many young ones among these entries are worth a walk (`suitable_to_scan`).
pub(crate) const fn is_dense(young: u32, entries: u32) -> bool {
    young * 8 >= entries
}

/// The filters of a cgroup on a node.
#[derive(Debug, Clone)]
pub(crate) struct Filters {
    filter: GenFilter,
    /// Of walks that begin while the number of the youngest generation is even, and odd.
    dense: [BTreeSet<Table>; 2],
    /// The walk that the filter was emptied for last.
    emptied_for: u64,
    /// What walks have seen.
    seen: BTreeSet<Mapped>,
}

impl Filters {
    pub(super) fn new(rules: &Rules) -> Self {
        Self { filter: rules.gen_filter, dense: Default::default(), emptied_for: 0, seen: BTreeSet::new() }
    }

    /// Whether the walk that begins while `max_seq` is the youngest looks at a table.
    pub(crate) fn visits(&self, max_seq: u64, table: Table) -> bool {
        self.filter == GenFilter::All || self.dense[(max_seq % 2) as usize].contains(&table)
    }

    /// The walk that begins while `max_seq` is the youngest is to look at a table.
    pub(crate) fn add(&mut self, max_seq: u64, table: Table) {
        if self.filter == GenFilter::Dense {
            self.dense[(max_seq % 2) as usize].insert(table);
        }
    }

    /// A walk that begins while `max_seq` is the youngest comes to a mapping whose program has run since the last walk:
    /// the filter of the next walk begins anew, if it has not yet. Returns whether no walk has seen the mapping.
    pub(crate) fn begin(&mut self, max_seq: u64, mapped: Mapped) -> bool {
        if self.emptied_for != max_seq + 1 {
            self.emptied_for = max_seq + 1;
            self.dense[((max_seq + 1) % 2) as usize].clear();
        }
        self.seen.insert(mapped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::version::presets::Version;

    #[test]
    fn a_table_is_visited_while_an_eighth_of_it_is_young_or_eviction_says_so() {
        let mut filters = Filters::new(&Version::parse("linux-6.12+lru-gen").unwrap().rules);
        let heap = Mapped::Anon(AnonId(1));
        let (first, second) = (Table::of(heap, 511), Table::of(heap, 512));
        assert_ne!(first, second);
        assert!(filters.begin(3, heap) && !filters.begin(4, heap));
        assert!(!filters.visits(5, first));
        filters.add(5, first);
        assert!(filters.visits(5, first) && !filters.visits(5, second) && !filters.visits(6, first));
        // Nobody has run when the fifth ends, so that the filter is there for the seventh.
        assert!(filters.visits(7, first));
        let _ = filters.begin(6, heap);
        assert!(!filters.visits(7, first), "somebody has when the sixth ends");
        assert!(is_dense(64, 512) && !is_dense(63, 512) && is_dense(8, 64) && is_dense(1, 6));
    }

    #[test]
    fn without_filters_each_walk_visits_all() {
        let filters = Filters::new(&Version::parse("linux-6.12+lru-gen-mglru-bloom").unwrap().rules);
        assert!(filters.visits(3, Table::of(Mapped::File(FileAreaId(0)), 0)));
    }
}
