//! An address space: which mapping lies where, and which of its pages were seen.
//!
//! Addresses stay in here; the trace knows mappings by number and bytes in them. Pages that `mremap` moves keep
//! their mapping, the heap grows by a mapping at a time.

use std::collections::BTreeMap;

use trace::NONE;

use crate::again;
use crate::ranges::{Range, Ranges};
use crate::rates::{Point, Shares};
use crate::sys::Region;

const PAGE: u64 = 4096;

/// Of less than this, used within a look, it is not estimated how often.
const SAMPLED_MIN: u64 = 32 * PAGE;

/// Which mapping, and the address at which its first byte would lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Piece {
    /// Its number.
    pub(crate) mapping: u32,
    /// May lie below 0, of a mapping whose first part is gone: it wraps.
    base: u64,
}

/// A part of a mapping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Part {
    /// The mapping's number.
    pub(crate) mapping: u32,
    /// First byte in it.
    pub(crate) offset: u64,
    /// How many.
    pub(crate) len: u64,
}

/// A part that was touched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TouchedPart {
    /// Which.
    pub(crate) part: Part,
    /// It was written to.
    pub(crate) written: bool,
    /// It was not there at the last look.
    pub(crate) new: bool,
    /// How often each page was used since the last look.
    pub(crate) uses: u32,
}

/// How much of a range was used since the last look, of `smaps`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Referenced {
    /// First address.
    pub(crate) start: u64,
    /// Address after the last.
    pub(crate) end: u64,
    /// Bytes of it that were used.
    pub(crate) bytes: u64,
}

/// Mappings by address.
#[derive(Debug, Clone, Default)]
pub(crate) struct Memory {
    pieces: Ranges<Piece>,
    /// Pages that were there at the last look; whether the process had written them.
    seen: Ranges<bool>,
    /// What was there already when its process was forked: each page is its parent's, too, until one of them writes.
    inherited: Ranges<()>,
    /// How often pages of a range are used, by its first address.
    shares: BTreeMap<u64, Shares>,
    /// Milliseconds from the look before to the next one, and how many there were.
    look_ms: f64,
    looks: u64,
    /// It was there before we came, and was not looked at yet.
    old: bool,
    /// Where the heap ends; 0 before that is known.
    heap_end: u64,
}

impl Memory {
    /// Puts a new mapping where nothing lies.
    pub(crate) fn map(&mut self, start: u64, len: u64, mapping: u32) {
        self.pieces.insert(start, start.saturating_add(pages(len)), Piece { mapping, base: start });
    }

    /// The memory of a child that was forked: a copy, of which no page is its own.
    pub(crate) fn forked(&self) -> Self {
        let mut inherited = Ranges::default();
        self.pieces.all().for_each(|piece| inherited.insert(piece.start, piece.end, ()));
        let mut seen = Ranges::default();
        let not_own = self.seen.all().filter(|range| !range.value);
        not_own.for_each(|range| seen.insert(range.start, range.end, false));
        Self { pieces: self.pieces.clone(), seen, inherited, heap_end: self.heap_end, ..Self::default() }
    }

    /// It was there before we came. With `is_child` all of it may be another process's, too.
    pub(crate) fn was_there(&mut self, is_child: bool) {
        self.old = true;
        if is_child {
            self.inherited = self.forked().inherited;
        }
    }

    /// Whether this is the first look at what was there before us.
    pub(crate) fn is_first_look(&mut self) -> bool {
        std::mem::take(&mut self.old)
    }

    /// Ranges in which only what no other process has is its own.
    pub(crate) fn inherited(&self) -> Vec<(u64, u64)> {
        self.inherited.all().map(|range| (range.start, range.end)).collect()
    }

    /// Takes away what lies in a range.
    pub(crate) fn unmap(&mut self, start: u64, len: u64) -> Vec<Part> {
        let end = start.saturating_add(pages(len));
        self.seen.remove(start, end);
        self.inherited.remove(start, end);
        self.pieces.remove(start, end).iter().filter_map(part).collect()
    }

    /// The parts of mappings that lie in a range.
    pub(crate) fn parts(&self, start: u64, len: u64) -> Vec<Part> {
        self.pieces.within(start, start.saturating_add(pages(len))).iter().filter_map(part).collect()
    }

    /// Moves what lies in a range to where nothing lies.
    pub(crate) fn move_to(&mut self, from: u64, len: u64, to: u64) {
        let end = from.saturating_add(pages(len));
        let moved = |address: u64| address.wrapping_sub(from).wrapping_add(to);
        for range in self.pieces.remove(from, end) {
            let piece = Piece { base: moved(range.value.base), ..range.value };
            self.pieces.insert(moved(range.start), moved(range.end), piece);
        }
        for range in self.seen.remove(from, end) {
            self.seen.insert(moved(range.start), moved(range.end), range.value);
        }
        for range in self.inherited.remove(from, end) {
            self.inherited.insert(moved(range.start), moved(range.end), ());
        }
    }

    /// Content of a range is gone, though it is still mapped.
    pub(crate) fn emptied(&mut self, start: u64, len: u64) {
        self.seen.remove(start, start.saturating_add(pages(len)));
    }

    /// The heap begins and ends here.
    pub(crate) fn set_heap_end(&mut self, end: u64) {
        self.heap_end = pages(end);
    }

    /// The heap is to end at `end`: the range that it grows by, or the range that goes. Nothing changes.
    pub(crate) fn heap_change(&self, end: u64) -> Option<(u64, u64, bool)> {
        let end = pages(end);
        match self.heap_end {
            0 => None,
            before if end > before => Some((before, end - before, true)),
            before if end < before && end != 0 => Some((end, before - end, false)),
            _ => None,
        }
    }

    /// What is there now, by a scan; returns what was touched since the last one.
    pub(crate) fn look(&mut self, found: &[Region], referenced: &[Referenced]) -> Vec<TouchedPart> {
        let mut touched = Vec::new();
        let mut again: Vec<Referenced> = referenced.to_vec();
        for region in found {
            let written = region.categories.is_own();
            for new in self.news(region.start, region.end, written) {
                for vma in again.iter_mut().filter(|vma| vma.start < new.end && new.start < vma.end) {
                    let both = vma.end.min(new.end) - vma.start.max(new.start);
                    vma.bytes = vma.bytes.saturating_sub(both);
                }
                touched.extend(self.touched(new.start, new.end, (written, true)));
            }
        }
        for vma in again {
            touched.extend(self.used_again(&vma));
        }
        self.seen = Ranges::default();
        for region in found {
            self.seen.insert(region.start, region.end, region.categories.is_own());
        }
        touched
    }

    /// Ranges that were not there before, or were not written before.
    fn news(&self, start: u64, end: u64, written: bool) -> Vec<Range<()>> {
        let mut news = Vec::new();
        let mut from = start;
        for old in self.seen.within(start, end).into_iter().filter(|old| old.value || !written) {
            news.push(Range { start: from, end: old.start, value: () });
            from = old.end;
        }
        news.push(Range { start: from, end, value: () });
        news.retain(|range| range.start < range.end);
        news
    }

    /// Pages that were used again: which of those that were there is not known, so some are named ([`again`]).
    ///
    /// [`again`]: crate::again
    fn used_again(&self, vma: &Referenced) -> Vec<TouchedPart> {
        let there = self.seen.within(vma.start, vma.end);
        let named = match self.shares.get(&vma.start) {
            Some(shares) => again::spread(&there, pages(vma.bytes), shares, (self.look_ms, self.looks)),
            None => again::first(&there, pages(vma.bytes)),
        };
        let named = named.into_iter().flat_map(|(start, end, uses)| {
            let parts = self.touched(start, end, (false, false));
            parts.map(move |part| TouchedPart { uses, ..part })
        });
        named.collect()
    }

    /// So long after it was asked to forget, this much had been used: what that says of each range.
    pub(crate) fn sampled(&mut self, points: &[(f64, Vec<Referenced>)]) {
        let Some((_, last)) = points.last() else { return };
        self.shares.retain(|start, _| last.iter().any(|vma| vma.start == *start));
        for vma in last.iter().filter(|vma| vma.bytes >= SAMPLED_MIN) {
            let of = |used: &[Referenced]| {
                let same = used.iter().find(|one| (one.start, one.end) == (vma.start, vma.end));
                same.map_or(0.0, |one| (one.bytes / PAGE) as f64)
            };
            let curve: Vec<Point> = points
                .iter()
                .map(|(after_ms, used)| Point { after_ms: *after_ms, pages: of(used) })
                .collect();
            if let Some(shares) = Shares::of(&curve) {
                self.shares.insert(vma.start, shares);
            }
        }
    }

    /// The next look comes so long after the last one.
    pub(crate) fn looks_after(&mut self, ms: f64) {
        self.look_ms = ms;
        self.looks += 1;
    }

    fn touched(
        &self,
        start: u64,
        end: u64,
        (written, new): (bool, bool),
    ) -> impl Iterator<Item = TouchedPart> {
        self.parts(start, end - start).into_iter().map(move |part| TouchedPart {
            part,
            written,
            new,
            uses: 1,
        })
    }
}

fn part(range: &Range<Piece>) -> Option<Part> {
    let offset = range.start.wrapping_sub(range.value.base);
    (range.value.mapping != NONE).then_some(Part {
        mapping: range.value.mapping,
        offset,
        len: range.end - range.start,
    })
}

/// Bytes of whole pages.
pub(crate) const fn pages(len: u64) -> u64 {
    match len.checked_next_multiple_of(PAGE) {
        Some(len) => len,
        None => u64::MAX - PAGE + 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::Categories;

    const A: u64 = 0x10_0000;

    fn region(first: u64, count: u64, categories: Categories) -> Region {
        Region { start: A + first * PAGE, end: A + (first + count) * PAGE, categories }
    }

    fn shown(touched: &[TouchedPart]) -> Vec<(u32, u64, u64, bool)> {
        let show =
            |one: &TouchedPart| (one.part.mapping, one.part.offset / PAGE, one.part.len / PAGE, one.written);
        touched.iter().map(show).collect()
    }

    #[test]
    fn what_is_unmapped_is_told_by_mapping_and_offset() {
        let mut memory = Memory::default();
        memory.map(A, 4 * PAGE, 0);
        memory.map(A + 4 * PAGE, 4 * PAGE, 1);
        let gone = memory.unmap(A + 3 * PAGE, 2 * PAGE);
        assert_eq!(
            gone,
            [Part { mapping: 0, offset: 3 * PAGE, len: PAGE }, Part { mapping: 1, offset: 0, len: PAGE }]
        );
        assert_eq!(memory.unmap(A, 16 * PAGE).iter().map(|part| part.len / PAGE).sum::<u64>(), 6);
    }

    #[test]
    fn moved_pages_keep_their_mapping_and_have_been_seen() {
        let mut memory = Memory::default();
        memory.map(A, 4 * PAGE, 7);
        assert_eq!(shown(&memory.look(&[region(0, 2, Categories::own())], &[])), [(7, 0, 2, true)]);
        memory.move_to(A, 4 * PAGE, A + 100 * PAGE);
        assert_eq!(memory.look(&[region(100, 2, Categories::own())], &[]), []);
        let later = memory.look(&[region(100, 3, Categories::own())], &[]);
        assert_eq!(shown(&later), [(7, 2, 1, true)]);
    }

    #[test]
    fn a_page_of_a_file_is_touched_and_then_its_copy_written() {
        let mut memory = Memory::default();
        memory.map(A, 8 * PAGE, 3);
        assert_eq!(shown(&memory.look(&[region(0, 4, Categories::of_file())], &[])), [(3, 0, 4, false)]);
        let mixed = [region(0, 1, Categories::own()), region(1, 3, Categories::of_file())];
        assert_eq!(shown(&memory.look(&mixed, &[])), [(3, 0, 1, true)]);
    }

    /// Of four pages that are there, two were used since: those that are new count first.
    #[test]
    fn pages_that_were_used_again_are_named_once() {
        let mut memory = Memory::default();
        memory.map(A, 8 * PAGE, 3);
        memory.look(&[region(0, 3, Categories::own())], &[]);
        let used = Referenced { start: A, end: A + 8 * PAGE, bytes: 2 * PAGE };
        let touched = memory.look(&[region(0, 4, Categories::own())], &[used]);
        assert_eq!(shown(&touched), [(3, 3, 1, true), (3, 0, 1, false)]);
    }

    /// The child has the parent's page until one of them writes; then the look finds it with nobody else.
    #[test]
    fn of_a_fork_only_what_is_no_others_was_written() {
        let mut parent = Memory::default();
        parent.map(A, 8 * PAGE, 3);
        parent.look(&[region(0, 4, Categories::own())], &[]);
        let mut child = parent.forked();
        assert_eq!(child.inherited(), [(A, A + 8 * PAGE)]);
        assert_eq!(child.look(&[], &[]), []);
        assert_eq!(shown(&child.look(&[region(1, 1, Categories::own())], &[])), [(3, 1, 1, true)]);
        child.unmap(A, 6 * PAGE);
        child.map(A, 6 * PAGE, 4);
        assert_eq!(child.inherited(), [(A + 6 * PAGE, A + 8 * PAGE)]);
    }

    #[test]
    fn the_heap_grows_and_shrinks_by_pages() {
        let mut memory = Memory::default();
        assert_eq!(memory.heap_change(A), None);
        memory.set_heap_end(A);
        assert_eq!(memory.heap_change(0), None);
        assert_eq!(memory.heap_change(A + 1), Some((A, PAGE, true)));
        memory.set_heap_end(A + 1);
        assert_eq!(memory.heap_change(A), Some((A, PAGE, false)));
    }
}
