//! Which part of a trace is replayed: a hashed sample of its addresses, all requests of each or none.
//!
//! As SHARDS (Waldspurger et al., FAST 2015) samples: an address belongs to the sample by its hash alone, so that
//! how often and how far apart it is asked for stays as it was. Of an object trace whole objects are hashed.
//!
//! # Block traces
//! Of neighbouring pages one is taken ([`Sample::one_of`]), chosen by the hash of their number, and what was a run of
//! pages stays one, so many times shorter:
//!
//! ```text
//!   device   0 1 2 3 | 4 5 6 7 | 8 9 a b | ...        read from 2 to b
//!   sample     1     |       7 | 8       | ...        read from 7 to 8, one page behind the other
//!   file       0     |       1 | 2       | ...
//! ```
//!
//! Who replays it makes the readahead window shorter in proportion. Taking aligned units of many pages, and leaving
//! the window, is not the same: each unit cuts a run twice, and at a cut pages are missed that readahead would have
//! brought, and pages are brought that nobody asks for. The group of neighbours cannot be larger than half the window,
//! or nothing would be left of it; smaller samples take blocks of [`UNIT_PAGES`] such groups, by hash, too. Blocks
//! lie side by side in the replayed file, in the order of the device, each with all of its pages.
//!
//! Within a group the sample has no readahead, and its own begins with the second page that it misses. Of a run of
//! reads the whole misses the first two, or where it comes to what is not in memory the first; readahead has brought
//! the rest before it is asked for. So some pages that the sample misses count as hits ([`Ahead`]).
//!
//! What scales with it is decided by whoever replays: memory, readahead, what a request costs, the times of writeback.
//! What does not: batches of charges and of reclaim. Left out: samples of a fixed size, whose rate falls with time.

/// Pages of the replayed file that are in a sample together: those of a block.
pub const UNIT_PAGES: u64 = 64;

/// One of `one_in` addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    one_in: u32,
    /// Another number, another sample of the same size.
    salt: u64,
    /// Neighbouring pages of a block trace of which one is taken; at most `one_in`.
    one_of: u32,
    /// Whether the whole is read ahead.
    reads_ahead: bool,
}

/// The smallest part that makes sense: a sample of one in so many.
pub const ONE_IN_MAX: u32 = 4096;

impl Sample {
    /// One address in `one_in`; `None` for less than one in one or in more than [`ONE_IN_MAX`].
    pub fn new(one_in: u32, salt: u64) -> Option<Self> {
        (1..=ONE_IN_MAX).contains(&one_in).then_some(Self { one_in, salt, one_of: 1, reads_ahead: false })
    }

    /// Takes, of a block trace, one of so many neighbouring pages as leave two pages of a readahead window, which is
    /// given in pages; with no readahead, or more than the sample needs, one of as many as the sample has one in.
    #[must_use]
    pub fn thinned(self, window: u32) -> Self {
        let most = if window == 0 { self.one_in } else { (window / 2).max(1) };
        Self { one_of: self.one_in.min(most), reads_ahead: window > 0, ..self }
    }

    /// How many times as large the whole is.
    pub const fn one_in(self) -> u32 {
        self.one_in
    }

    /// Neighbouring pages of a block trace of which one is taken.
    pub const fn one_of(self) -> u32 {
        self.one_of
    }

    /// Whether an object is in the sample.
    #[inline]
    pub const fn has(self, object: u64) -> bool {
        part(object, self.salt, self.one_in) == 0
    }

    /// Where a page of a device is among those of the sample, before blocks are laid side by side.
    #[inline]
    pub fn place(self, page: u64) -> Option<u64> {
        let group = page / u64::from(self.one_of);
        let block = group / UNIT_PAGES;
        let is_taken = page % u64::from(self.one_of) == part(group, !self.salt, self.one_of)
            && part(block, self.salt, self.one_in) < u64::from(self.one_of);
        is_taken.then_some(group)
    }
}

/// Reads of a device, each of which begins where the one before it ended.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Run {
    begin: u64,
    /// The last page that was read, none at first.
    last: Option<u64>,
    reads: u32,
}

impl Run {
    /// Moves on to a read of pages `first` to `last`.
    pub(super) fn read(&mut self, first: u64, last: u64) {
        match self.last {
            Some(before) if first == before || first == before + 1 => self.reads += 1,
            _ => (self.begin, self.reads) = (first, 1),
        }
        self.last = Some(last);
    }

    /// What readahead of the whole has done for `page` of this read, which begins at page `first`. A run is known as
    /// one by its second read, which misses, too.
    pub(super) fn ahead(&self, sample: Sample, first: u64, page: u64) -> Ahead {
        let begin = page - page % u64::from(sample.one_of);
        let known = if self.begin >= begin { 2 } else { 1 };
        if !sample.reads_ahead || self.reads <= known {
            Ahead::Nothing
        } else if first > begin {
            Ahead::Brought
        } else if self.reads > 2 {
            Ahead::GoesOn
        } else {
            Ahead::Nothing
        }
    }
}

/// What readahead of the whole has done for a page of the sample before it is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ahead {
    /// Nothing that the sample's own does not do.
    Nothing,
    /// It has brought the page, as the run has been in its group before.
    Brought,
    /// It has brought the page if it was at work, which it was if the run has missed the page of the group before.
    GoesOn,
}

/// Which of `parts` a number belongs to, from 0.
#[inline]
const fn part(number: u64, salt: u64, parts: u32) -> u64 {
    let mixed = mixed(number ^ mixed(salt));
    // The upper half of a well mixed number, as a part of 2^32.
    ((mixed >> 32) * parts as u64) >> 32
}

/// The finalizer of splitmix64: every bit of the input turns half of those of the output.
const fn mixed(number: u64) -> u64 {
    let number = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_as_large_as_it_says_and_never_changes() {
        for one_in in [1, 2, 16, 100] {
            let sample = Sample::new(one_in, 1).unwrap();
            let count = (0..100_000).filter(|&address| sample.has(address)).count();
            let wanted = 100_000 / one_in as usize;
            assert!(count.abs_diff(wanted) < 300, "{count} of 100000, one in {one_in}");
        }
        let first: Vec<u64> = (0..100).filter(|&address| Sample::new(16, 1).unwrap().has(address)).collect();
        assert_eq!(first, [28, 31, 51, 90, 92], "samples of the same trace would change");
        assert!(Sample::new(0, 1).is_none() && Sample::new(ONE_IN_MAX + 1, 1).is_none());
    }

    #[test]
    fn another_salt_is_another_sample() {
        let both = |address: &u64| {
            Sample::new(16, 1).unwrap().has(*address) && Sample::new(16, 2).unwrap().has(*address)
        };
        let count = (0..256_000).filter(both).count();
        assert!(count.abs_diff(1000) < 120, "{count} in both, expected one in 256");
    }

    /// Whatever the part and the window: as many pages as it says, no two at one place, in the device's order.
    #[test]
    fn a_thinned_sample_of_a_device_has_a_page_of_each_group_of_its_blocks() {
        for (one_in, window, one_of) in
            [(16, 32, 16), (16, 0, 16), (16, 128, 16), (5, 32, 5), (100, 32, 16), (8, 1, 1)]
        {
            let sample = Sample::new(one_in, 7).unwrap().thinned(window);
            assert_eq!(sample.one_of(), one_of);
            const PAGES: u64 = 8 << 20;
            let places: Vec<u64> = (0..PAGES).filter_map(|page| sample.place(page)).collect();
            let wanted = PAGES / u64::from(one_in);
            assert!((places.len() as u64).abs_diff(wanted) < wanted / 10, "{} of {wanted}", places.len());
            assert!(places.windows(2).all(|pair| pair[0] < pair[1]), "one in {one_in}, one of {one_of}");
            if one_of == one_in {
                assert!((0..).zip(&places).all(|(group, &place)| group == place), "a group has none");
            }
        }
    }

    /// ```text
    ///   read       a a b b c c d d | d d e e e e e e | f f
    ///   group      0               | 1               | 2
    ///   brought            c c d d       e e e e e e
    /// ```
    /// `b` shows that it is a run, and misses as `a` does. Behind the first part of `d`, and at `f`, it goes on.
    #[test]
    fn of_a_group_that_a_run_walks_through_what_it_reads_later_is_read_ahead() {
        use Ahead::{Brought, GoesOn, Nothing};
        let ahead = |sample: Sample, reads: &[(u64, u64)]| -> Vec<Ahead> {
            let mut run = Run::default();
            let read = |&(first, last): &(u64, u64)| {
                run.read(first, last);
                run.ahead(sample, first, first)
            };
            reads.iter().map(read).collect()
        };
        let sample = Sample::new(8, 1).unwrap().thinned(32);
        let walk = [(0, 1), (2, 3), (4, 5), (6, 9), (10, 15), (16, 17)];
        assert_eq!(ahead(sample, &walk), [Nothing, Nothing, Brought, Brought, Brought, GoesOn]);
        let mut run = Run { begin: 0, last: Some(5), reads: 3 };
        run.read(6, 9);
        assert_eq!(run.ahead(sample, 6, 8), GoesOn, "the second part of d");
        assert_eq!(ahead(sample, &[(3, 4), (8, 9), (10, 11)]), [Nothing; 3], "no run but at the end");
        assert_eq!(ahead(sample, &[(7, 7), (8, 9), (10, 11)]), [Nothing, Nothing, Brought], "known before");
        assert_eq!(ahead(Sample::new(8, 1).unwrap().thinned(0), &walk), [Nothing; 6], "without readahead");
    }
}
