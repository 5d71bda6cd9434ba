//! Which part of a trace is replayed: a hashed sample of its addresses, all requests of each or none.
//!
//! As SHARDS (Waldspurger et al., FAST 2015) samples: an address belongs to the sample by its hash alone, so that
//! how often and how far apart it is asked for stays as it was. What is hashed is a whole object of an object
//! trace, and an aligned unit of [`UNIT_PAGES`] pages of a block trace: readahead brings neighbours, and of single
//! pages no neighbour would be in the sample. The units that are in it lie side by side in the replayed file, in
//! the order of the trace's device, so that who reads through the device reads through the sample, too.
//!
//! What scales with it is decided by whoever replays: memory, the times of writeback. What does not: readahead
//! windows, batches of reclaim, a request's latency. Left out: samples of a fixed size, whose rate falls with time.

/// Pages of a block trace that are in a sample together: twice the readahead window that most disks have.
pub const UNIT_PAGES: u64 = 64;

/// One of `one_in` addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    one_in: u32,
    /// Another number, another sample of the same size.
    salt: u64,
}

/// The smallest part that makes sense: a sample of one in so many.
pub const ONE_IN_MAX: u32 = 4096;

impl Sample {
    /// One address in `one_in`; `None` for less than one in one or in more than [`ONE_IN_MAX`].
    pub fn new(one_in: u32, salt: u64) -> Option<Self> {
        (1..=ONE_IN_MAX).contains(&one_in).then_some(Self { one_in, salt })
    }

    /// How many times as large the whole is.
    pub const fn one_in(self) -> u32 {
        self.one_in
    }

    /// Whether an address is in the sample.
    #[inline]
    pub const fn has(self, address: u64) -> bool {
        let mixed = mixed(address ^ mixed(self.salt));
        // The upper half of a well mixed number, as a part of 2^32.
        ((mixed >> 32) * self.one_in as u64) >> 32 == 0
    }
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
}
