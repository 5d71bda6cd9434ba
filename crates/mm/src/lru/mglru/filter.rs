//! Which page tables a walk for a new generation looks at (MGLRU 4.2: two Bloom filters, one for this walk and one for
//! the next).
//!
//! ```text
//!   a walk:     tables in its filter, and all of mappings that no walk has seen  --> an eighth young: the next filter
//!   eviction:   an eighth young around an accessed page                          --> the filter of the next walk
//! ```
//! So a table in which little is young is left to eviction, until that finds more. Sets stand for the filters, which
//! now and then say yes of a table that is in none. Left out: that a process is what is new, not a mapping, that those
//! with fewer than 64 pages are passed by, and the bits of upper tables, which save time alone.

use std_alloc::collections::{BTreeMap, BTreeSet};

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
    /// By the youngest generation when the walk begins.
    dense: BTreeMap<u64, BTreeSet<Table>>,
    /// What walks have seen.
    seen: BTreeSet<Mapped>,
}

impl Filters {
    pub(super) fn new(rules: &Rules) -> Self {
        Self { filter: rules.gen_filter, dense: BTreeMap::new(), seen: BTreeSet::new() }
    }

    /// Whether no walk has seen it; the next one no longer says so.
    pub(crate) fn is_new(&mut self, mapped: Mapped) -> bool {
        self.seen.insert(mapped)
    }

    /// Whether the walk that begins while `max_seq` is the youngest looks at a table.
    pub(crate) fn visits(&self, max_seq: u64, table: Table) -> bool {
        self.filter == GenFilter::All || self.dense.get(&max_seq).is_some_and(|dense| dense.contains(&table))
    }

    /// The walk that begins while `max_seq` is the youngest is to look at a table.
    pub(crate) fn add(&mut self, max_seq: u64, table: Table) {
        if self.filter == GenFilter::Dense {
            self.dense.entry(max_seq).or_default().insert(table);
        }
    }

    /// The walk is over for which the filter was.
    pub(super) fn forget(&mut self, max_seq: u64) {
        self.dense.remove(&max_seq);
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
        assert!(filters.is_new(heap) && !filters.is_new(heap));
        assert!(!filters.visits(3, first));
        filters.add(3, first);
        assert!(filters.visits(3, first) && !filters.visits(3, second) && !filters.visits(4, first));
        filters.forget(3);
        assert!(!filters.visits(3, first));
        assert!(is_dense(64, 512) && !is_dense(63, 512) && is_dense(8, 64) && is_dense(1, 6));
    }

    #[test]
    fn without_filters_each_walk_visits_all() {
        let filters = Filters::new(&Version::parse("linux-6.12+lru-gen-mglru-bloom").unwrap().rules);
        assert!(filters.visits(3, Table::of(Mapped::File(FileAreaId(0)), 0)));
    }
}
