//! What is read ahead of a page that comes back from swap: how much, and where (SWAP 3.5).
//!
//! ```text
//!   by mapping: the pages behind a fault, before it, or around it, of the same 2 MiB
//!   by cluster: the aligned group of slots that the wanted one is in, of whomever they are
//! ```
//! Each page that was read ahead and is used is a hit; the more hits, the longer the next window. Neighbour:
//! [`crate::pages::anon_swap`].

use core::ops::Range;

/// Pages that a page table of the lowest level maps.
const TABLE_PAGES: u32 = 512;

/// Largest window, as a power of two (`SWAP_RA_ORDER_CEILING`).
const ORDER_MAX: u64 = 5;

/// What a count of hits stays at.
const HITS_MAX: u32 = 63;

/// The next window's length after `hits`, at most `max` and at least half of the last one
/// (`__swapin_nr_pages`).
fn window(previous: u32, at: u32, hits: u32, max: u32, last: u32) -> u32 {
    let follows = at == previous.wrapping_add(1) || at == previous.wrapping_sub(1);
    let wanted = match hits {
        0 => 1 + u32::from(follows),
        _ => (hits + 2).next_power_of_two().max(4),
    };
    wanted.min(max).max(last / 2)
}

/// Readahead of a mapping: where its last fault was, the last window, and hits since.
#[derive(Debug, Clone, Copy, Default)]
pub struct MappingWindow {
    previous: u32,
    window: u32,
    hits: u32,
}

impl MappingWindow {
    /// A fault at page `at` found it in the swap cache; `ahead`: it was read ahead.
    pub fn hit(&mut self, at: u32, ahead: bool) {
        self.previous = at;
        self.hits = (self.hits + u32::from(ahead)).min(HITS_MAX);
    }

    /// A fault at page `at` of a mapping of so many pages: which pages are read, if they are swapped out.
    pub fn next(&mut self, at: u32, page_cluster: u64, pages: u32) -> Range<u32> {
        let max = 1 << page_cluster.min(ORDER_MAX);
        if max == 1 {
            *self = Self { previous: at, window: 1, hits: 0 };
            return at..at + 1;
        }
        let count = window(self.previous, at, self.hits, max, self.window);
        let first = if at == self.previous.wrapping_add(1) {
            at
        } else if at.wrapping_add(1) == self.previous {
            (at + 1).saturating_sub(count)
        } else {
            at.saturating_sub((count - 1) / 2)
        };
        *self = Self { previous: at, window: count, hits: 0 };
        let table = at - (at % TABLE_PAGES);
        first.max(table)..(first + count).min(table + TABLE_PAGES).min(pages)
    }
}

/// Readahead by slots, of the whole machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct ClusterWindow {
    previous: u32,
    last: u32,
    hits: u32,
}

impl ClusterWindow {
    /// A page that was read ahead is used.
    pub fn hit(&mut self) {
        self.hits += 1;
    }

    /// A fault wants the slot at `offset` of an area of so many slots: which are read, if they are used.
    pub fn next(&mut self, offset: u32, page_cluster: u64, slots: u32) -> Range<u32> {
        let max = 1 << page_cluster.min(ORDER_MAX);
        let count = if max == 1 { 1 } else { window(self.previous, offset, self.hits, max, self.last) };
        if count == 1 {
            self.last = 1;
            self.previous = offset;
            return offset..offset + 1;
        }
        *self = Self { previous: offset, last: count, hits: 0 };
        let first = offset & !(count - 1);
        first.max(1)..(first + count).min(slots)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sequential_sweep_reads_two_pages_then_four_then_eight() {
        let (mut state, mut at, mut seen) = (MappingWindow::default(), 1000, std_alloc::vec::Vec::new());
        while seen.len() < 5 {
            let window = state.next(at, 3, 1 << 20);
            seen.push((window.start, window.len()));
            window.clone().skip(1).for_each(|page| state.hit(page, true));
            at = window.end;
        }
        assert_eq!(seen, [(1000, 1), (1001, 2), (1003, 4), (1007, 8), (1015, 8)]);
    }

    #[test]
    fn windows_lie_behind_before_or_around_the_fault_and_stay_in_its_table() {
        let at = |previous, at, hits| MappingWindow { previous, window: 8, hits }.next(at, 3, 2000);
        assert_eq!(at(99, 100, 6), 100..108);
        assert_eq!(at(101, 100, 6), 93..101);
        assert_eq!(at(500, 100, 6), 97..105);
        assert_eq!(at(509, 510, 6), 510..512, "of its 2 MiB");
        assert_eq!(at(1998, 1999, 6), 1999..2000, "of its mapping");
        assert_eq!(at(99, 100, 0), 100..104, "no hit: at least half of the last one");
        assert_eq!(MappingWindow::default().next(7, 0, 100), 7..8, "page-cluster 0: none");
    }

    #[test]
    fn clusters_are_aligned_groups_of_slots() {
        let mut state = ClusterWindow { previous: 0, last: 8, hits: 7 };
        assert_eq!(state.next(13, 3, 100), 8..16);
        assert_eq!(state.next(3, 3, 100), 1..4, "without the header");
        assert_eq!(state.next(99, 3, 100), 98..100);
    }
}
