//! What a process remembers of a mapping.

use std::collections::BTreeMap;
use std::ops::Range;

use mm::base::ids::{AnonId, FileAreaId};

/// Advice on a mapping.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum HugeAdvice {
    /// None was given.
    #[default]
    None,
    /// `MADV_HUGEPAGE`.
    Huge,
    /// `MADV_NOHUGEPAGE`.
    NoHuge,
}

/// A mapping of a process: of anonymous memory, or of a file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AnonArea {
    /// Its anonymous pages: of a file's mapping the copies that writes made.
    pub(crate) anon: AnonId,
    /// The file's pages, if it is that of a file.
    pub(crate) file: Option<FileAreaId>,
    /// Its pages are those of a file in memory, and stay when it goes.
    pub(crate) shared: bool,
    /// Its length in pages; of a file in memory, where its part of that ends.
    pub(crate) pages: u64,
    pub(crate) advice: HugeAdvice,
}

/// Pages of a mapping that a program uses whenever it runs ([`crate::tasks::own`]).
#[derive(Debug, Clone, Copy)]
pub(crate) struct UsedPages {
    pub(crate) area: AnonArea,
    /// The last so many of it.
    pub(crate) used: u64,
    pub(crate) write: bool,
}

/// A mapping of a process: of private anonymous memory, or of a file ([`super::file`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AnonMapping {
    pub(crate) index: usize,
    pub(crate) pages: u64,
    /// Where it begins in a file in memory.
    pub(crate) base: u32,
}

impl AnonMapping {
    /// Its length in pages.
    pub const fn pages(self) -> u64 {
        self.pages
    }
}

/// What of the mappings of a process is locked by `mlock` (`VM_LOCKED`): pages that are there, and pages that are
/// still to come. Ranges of one mapping neither overlap nor touch.
#[derive(Debug, Default)]
pub(crate) struct LockedRanges {
    /// End of each range by mapping and first page.
    ends: BTreeMap<(usize, u32), u32>,
}

impl LockedRanges {
    /// The first locked range of `mapping` within `range`.
    pub(crate) fn within(&self, mapping: usize, range: Range<u32>) -> Option<Range<u32>> {
        let (&(_, start), &end) = self.overlapping(mapping, &range).next()?;
        Some(start.max(range.start)..end.min(range.end))
    }

    fn overlapping(&self, mapping: usize, range: &Range<u32>) -> impl Iterator<Item = (&(usize, u32), &u32)> {
        let before = self.ends.range(..(mapping, range.start)).next_back();
        let before = before.filter(|&(&(of, _), &end)| of == mapping && end > range.start);
        before.into_iter().chain(self.ends.range((mapping, range.start)..(mapping, range.end)))
    }

    /// Locks a range.
    pub(crate) fn lock(&mut self, mapping: usize, range: Range<u32>) {
        self.unlock(mapping, range.clone());
        let Range { mut start, mut end } = range;
        let before = self.ends.range(..(mapping, start)).next_back().map(|(&place, &end)| (place, end));
        if let Some((place, _)) = before.filter(|&((of, _), end)| of == mapping && end == start) {
            self.ends.remove(&place);
            start = place.1;
        }
        if let Some(later) = self.ends.remove(&(mapping, end)) {
            end = later;
        }
        self.ends.insert((mapping, start), end);
    }

    /// Unlocks a range.
    pub(crate) fn unlock(&mut self, mapping: usize, range: Range<u32>) {
        let cut: Vec<(u32, u32)> =
            self.overlapping(mapping, &range).map(|(&(_, start), &end)| (start, end)).collect();
        for (start, end) in cut {
            self.ends.remove(&(mapping, start));
            if start < range.start {
                self.ends.insert((mapping, start), range.start);
            }
            if range.end < end {
                self.ends.insert((mapping, range.end), end);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(locked: &LockedRanges) -> String {
        locked.ends.iter().map(|(&(mapping, start), &end)| format!("{mapping}:{start}..{end} ")).collect()
    }

    #[test]
    fn locked_ranges_grow_together_and_are_cut_apart_each_mapping_by_itself() {
        let mut locked = LockedRanges::default();
        locked.lock(1, 10..20);
        locked.lock(1, 30..40);
        locked.lock(2, 20..30);
        assert_eq!(drawn(&locked), "1:10..20 1:30..40 2:20..30 ");
        locked.lock(1, 20..25);
        assert_eq!(drawn(&locked), "1:10..25 1:30..40 2:20..30 ");
        locked.lock(1, 15..32);
        assert_eq!(drawn(&locked), "1:10..40 2:20..30 ");
        locked.unlock(1, 12..14);
        locked.unlock(2, 0..100);
        assert_eq!(drawn(&locked), "1:10..12 1:14..40 ");
        assert_eq!(locked.within(1, 0..11), Some(10..11));
        assert_eq!(locked.within(1, 11..20), Some(11..12), "the first one");
        assert_eq!(locked.within(1, 12..14), None);
        assert_eq!(locked.within(1, 20..21), Some(20..21));
        assert_eq!(locked.within(0, 0..50), None);
        assert_eq!(locked.within(2, 0..50), None);
    }
}
