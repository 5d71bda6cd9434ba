//! Readahead windows: how many pages around a miss are read, and when the next window starts
//! (MECHANISMS-6X 2.1, 2.2).
//!
//! ```text
//!   miss at 0:      [ 0 ........ 16m ....... 31 ]            window of 32, marker at 16
//!   read reaches m: [ 0 ......... 31 ][ 32m ...... 63 ]      one window ahead, marker at its start
//! ```
//! Windows are those of the modelled kernels for sequential streams; a miss in the middle of nothing
//! reads what was asked for. Pure arithmetic: [`super::readahead`] reads the pages. Left out:
//! what kernels read less than `fadvise` asks for. Windows of faults: [`super::mapped_readahead`].

use mm::version::rules::{ReadaheadHistory, ReadaheadMiss};

/// What an open file remembers of its last reads (`file_ra_state`), in pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Readahead {
    /// First page of the last window.
    pub(crate) start: u32,
    /// Its pages.
    pub(crate) size: u32,
    /// Pages left in it when the next window is started.
    pub(crate) async_size: u32,
    /// The last page that was read, none at first.
    pub(crate) previous: Option<u32>,
    /// The page that it was read up to, as the version's `ReadaheadPosition` has it.
    pub(crate) position: Option<u32>,
    /// `FMODE_RANDOM`: only what is asked for is read.
    pub(crate) random: bool,
    /// `POSIX_FADV_SEQUENTIAL`: windows are twice as large.
    pub(crate) doubled: bool,
    /// Faults on its mappings that missed beyond those that found their page (`mmap_miss`).
    pub(crate) misses: u32,
    /// The order that folios of the last window were to have, where the file remembers it (6.17).
    pub(crate) order: u32,
}

impl Readahead {
    /// A file that was just opened.
    pub(crate) const fn new() -> Self {
        Self {
            start: 0,
            size: 0,
            async_size: 0,
            previous: None,
            position: None,
            random: false,
            doubled: false,
            misses: 0,
            order: 0,
        }
    }

    /// The largest window, where the device's is `max`.
    pub(crate) const fn largest(self, max: u32) -> u32 {
        if self.doubled { max * 2 } else { max }
    }

    /// A first window for a request of `request` pages (`get_init_ra_size`).
    fn initial_size(request: u32, max: u32) -> u32 {
        let size = request.next_power_of_two();
        if size <= max / 32 {
            size * 4
        } else if size <= max / 4 {
            size * 2
        } else {
            max
        }
    }

    /// The window after one of this size (`get_next_ra_size`).
    fn next_size(self, max: u32) -> u32 {
        if self.size < max / 16 {
            self.size * 4
        } else if self.size <= max / 2 {
            self.size * 2
        } else {
            max
        }
    }

    /// Moves on to a window for the page that is missing at `index`, where `request` pages are wanted. None: read just
    /// what was asked for (`ondemand_readahead`, since 6.11 `page_cache_sync_ra`).
    pub(crate) fn miss(&mut self, index: u32, request: u32, history: History, max: u32) -> Option<()> {
        let is_next = self.is_marker(index) || index == self.start + self.size;
        let sequential = match self.position {
            None => index == 0,
            Some(position) => index == position || index == position + 1,
        };
        if history.miss == ReadaheadMiss::Continues && index > 0 && self.size > 0 && is_next {
            self.continue_window(max);
        } else if index == 0 || sequential || request > max {
            self.start = index;
            self.size = Self::initial_size(request, max);
            self.async_size = if self.size > request { self.size - request } else { self.size };
        } else {
            self.size = history.window(index, request, max)?;
            self.start = index;
            self.async_size = 1;
        }
        if index == self.start && self.size == self.async_size {
            // The request itself would hit the marker at once: merge the next window in.
            let more = self.next_size(max);
            if self.size + more <= max {
                self.async_size = more;
                self.size += more;
            } else {
                self.size = max;
                self.async_size = max / 2;
            }
        }
        Some(())
    }

    /// Whether the last window has its marker here.
    pub(crate) const fn is_marker(self, index: u32) -> bool {
        self.size > 0 && index == self.marker()
    }

    /// The marker of the last window was reached: on to the next one (`page_cache_async_ra`).
    pub(crate) fn continue_window(&mut self, max: u32) {
        self.start += self.size;
        self.size = self.next_size(max);
        self.async_size = self.size;
    }

    /// A marker that somebody else left was reached `at_hand` pages before the first missing one, `from`. What is at
    /// hand counts as the window before.
    pub(crate) fn take_over(&mut self, from: u32, at_hand: u32, max: u32) {
        self.start = from;
        self.size = at_hand.max(1);
        self.size = self.next_size(max);
        self.async_size = self.size;
    }

    /// A marker was reached: folios of the new window are two orders larger than those of the last one, and it ends
    /// where such a folio does (`page_cache_async_ra`; MECHANISMS-510-72 2.3).
    pub(crate) fn raise_order(&mut self, max: u32) {
        self.order = (self.order + 2).min(READAHEAD_PAGES_MAX.ilog2());
        let step = 1 << self.order.min(max.max(1).ilog2());
        let end = self.start + self.size;
        let beyond = end % step;
        if beyond < self.size {
            self.size -= beyond;
            self.async_size = self.async_size.saturating_sub(beyond).max(1);
        }
    }

    /// Where the marker goes.
    pub(crate) const fn marker(self) -> u32 {
        self.start + (self.size - self.async_size)
    }
}

/// Pages in memory right before one that is missing: what other reads, of any descriptor, have left there. And how a
/// kernel goes by them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct History {
    pub(crate) pages: u32,
    pub(crate) rule: ReadaheadHistory,
    pub(crate) miss: ReadaheadMiss,
}

impl History {
    /// The first window of a read of `request` pages at `index` that continues what is there; `None` where it is too
    /// little for that (`try_context_readahead`, `page_cache_sync_ra`).
    fn window(self, index: u32, request: u32, max: u32) -> Option<u32> {
        let least = match self.rule {
            ReadaheadHistory::AnyPage => 1,
            ReadaheadHistory::MoreThanAsked => request + 1,
        };
        if self.pages < least {
            return None;
        }
        let back_to_the_beginning = self.pages >= index;
        let all = request + self.pages * (1 + u32::from(back_to_the_beginning));
        Some(match self.rule {
            ReadaheadHistory::AnyPage => Readahead::initial_size(all, max),
            ReadaheadHistory::MoreThanAsked => all.min(max),
        })
    }
}

/// The largest readahead window in pages (256 MiB): larger settings are cut down to it.
pub(crate) const READAHEAD_PAGES_MAX: u32 = 1 << 16;

#[cfg(test)]
mod tests {
    use super::*;

    fn history(pages: u32, miss: ReadaheadMiss) -> History {
        History { pages, rule: ReadaheadHistory::MoreThanAsked, miss }
    }

    fn windows(reads: &[(u32, u32, bool)], max: u32) -> Vec<(u32, u32, u32)> {
        let mut state = Readahead::new();
        reads
            .iter()
            .map(|&(index, request, on_marker)| {
                if on_marker {
                    assert!(state.is_marker(index));
                    state.continue_window(max);
                } else {
                    let none = history(0, ReadaheadMiss::Continues);
                    state.miss(index, request, none, max).expect("a sequential read has a window");
                }
                (state.start, state.size, state.marker())
            })
            .collect()
    }

    #[test]
    fn a_stream_of_128_kib_reads_is_always_one_window_ahead() {
        // (start, size, marker); MECHANISMS-6X 2.1.
        assert_eq!(
            windows(&[(0, 32, false), (16, 16, true), (32, 32, true), (64, 32, true)], 32),
            [(0, 32, 16), (32, 32, 32), (64, 32, 64), (96, 32, 96)]
        );
    }

    #[test]
    fn small_reads_ramp_up_to_the_full_window() {
        // One page at a time: 4, then doubling to 32.
        assert_eq!(
            windows(&[(0, 1, false), (1, 1, true), (4, 1, true), (12, 1, true), (28, 1, true)], 32),
            [(0, 4, 1), (4, 8, 4), (12, 16, 12), (28, 32, 28), (60, 32, 60)]
        );
    }

    /// Measured on 5.10 and 6.12.
    #[test]
    fn a_marker_of_another_read_asks_for_twice_what_is_there() {
        let mut state = Readahead { start: 5000, size: 3, async_size: 1, ..Readahead::new() };
        // The marker at 14, what is missing begins at 15: 2 pages are at hand.
        assert!(!state.is_marker(14));
        state.take_over(15, 2, 32);
        assert_eq!((state.start, state.size, state.marker()), (15, 4, 15));
    }

    /// Measured: a read of 33 pages finds its marker's page in memory, and misses the last one. One of 58 reaches the
    /// next window's marker on 5.10, and not on 6.12.
    #[test]
    fn a_miss_behind_the_window_goes_on_or_looks_back() {
        let next = |miss| {
            let mut state = Readahead { start: 1000, size: 32, async_size: 16, ..Readahead::new() };
            state.miss(1032, 26, history(32, miss), 32).expect("a window");
            (state.start, state.size, state.marker())
        };
        assert_eq!(next(ReadaheadMiss::Continues), (1032, 32, 1048));
        assert_eq!(next(ReadaheadMiss::LooksBack), (1032, 32, 1063));
    }

    /// Measured: pages to 99 were read, 100 is in memory, 101 missing. A guest of 5.10 reads what was asked for, those
    /// of 6.12 and 7.2 a first window.
    #[test]
    fn a_read_that_ends_with_a_page_stands_at_the_next_one() {
        let next = |position: u32| {
            let mut state = Readahead { position: Some(position), ..Readahead::new() };
            state.miss(101, 2, history(1, ReadaheadMiss::LooksBack), 32).map(|()| state.size)
        };
        assert_eq!(next(99), None, "the last page that was read");
        assert_eq!(next(100), Some(4), "the page of the byte behind it");
    }

    /// (end, order) of the windows of a stream of 128 KiB reads.
    fn ends_and_orders(count: usize, max: u32) -> Vec<(u32, u32)> {
        let mut state = Readahead::new();
        state.miss(0, 32, history(0, ReadaheadMiss::LooksBack), max).expect("a window");
        let mut seen = vec![(state.start + state.size, state.order)];
        while seen.len() < count {
            state.continue_window(max);
            state.raise_order(max);
            assert_eq!(state.marker(), state.start, "always one window ahead");
            seen.push((state.start + state.size, state.order));
        }
        seen
    }

    /// MECHANISMS-510-72 2.3.
    #[test]
    fn windows_of_a_file_that_remembers_its_order_end_where_folios_do() {
        let orders = |seen: &[(u32, u32)], most: u32| -> Vec<u32> {
            seen.iter().map(|&(_, order)| order.min(most)).collect()
        };
        let small = ends_and_orders(6, 32);
        assert_eq!(small.iter().map(|&(end, _)| end).collect::<Vec<_>>(), [32, 64, 96, 128, 160, 192]);
        assert_eq!(orders(&small, 5), [0, 2, 4, 5, 5, 5], "32 pages, 8 of 4, 2 of 16, then one of 32");
        let large = ends_and_orders(9, 2048);
        let ends = [128, 384, 896, 1920, 3840, 5120, 6144, 8192, 10240];
        assert_eq!(large.iter().map(|&(end, _)| end).collect::<Vec<_>>(), ends);
        assert_eq!(orders(&large, 9), [0, 2, 4, 6, 8, 9, 9, 9, 9]);
    }

    #[test]
    fn a_window_smaller_than_a_folio_keeps_its_end() {
        let mut state = Readahead { start: 40, size: 4, async_size: 4, order: 4, ..Readahead::new() };
        state.raise_order(32);
        assert_eq!((state.size, state.async_size, state.order), (4, 4, 6));
    }

    fn read(history: u32, request: u32, rule: ReadaheadHistory) -> Option<(u32, u32)> {
        let mut state = Readahead::new();
        let history = History { pages: history, rule, miss: ReadaheadMiss::Continues };
        state.miss(1000, request, history, 32).map(|()| (state.start, state.size))
    }

    #[test]
    fn a_miss_in_the_middle_of_nothing_opens_no_window() {
        let mut state = Readahead::new();
        assert_eq!(state.miss(1000, 4, history(0, ReadaheadMiss::LooksBack), 32), None);
        assert_eq!(state, Readahead::new());
    }

    /// What a host of 6.18 was seen to read at such a miss, pages from there: with one page asked for 1, 1, 3, 4, 5
    /// for 0 to 4 pages before it; with four of them 4 for 4 before, 9 for 5.
    #[test]
    fn more_pages_before_a_miss_than_it_asks_for_are_a_run_and_as_many_are_not() {
        let read = |history, request| read(history, request, ReadaheadHistory::MoreThanAsked);
        let sizes = [0, 1, 2, 3, 4].map(|history| read(history, 1).map(|(_, size)| size));
        assert_eq!(sizes, [None, None, Some(3), Some(4), Some(5)]);
        assert_eq!((read(4, 4), read(5, 4)), (None, Some((1000, 9))));
        assert_eq!(read(32, 8), Some((1000, 32)), "no more than the largest window");
    }

    /// "Readahead will be started whenever reading page N+1 when it happened to read N recently", and not slowly.
    #[test]
    fn one_page_before_a_miss_was_enough_in_2_6_32() {
        let read = |history, request| read(history, request, ReadaheadHistory::AnyPage);
        assert_eq!((read(0, 1), read(1, 1), read(8, 4)), (None, Some((1000, 4)), Some((1000, 32))));
    }
}
