//! The pool of compressed memory behind a zram device: how many pages its objects take (SWAP 4.3).
//!
//! A page is compressed; what comes out is an object of its length and 8 bytes for its handle, rounded up to a class
//! of 16 bytes. Objects of a class lie in chains of `c` pages, with `c` from 1 to the chain's limit and such that the
//! least is wasted; a chain has room for `k = c * 4096 / class` objects. One that a compressor hardly makes smaller
//! lies in a page of its own, and a page of one repeated word takes no memory at all.
//!
//! Chains are full but for the last one of each class: `c * ceil(objects / k)` pages. Left out: holes that objects
//! leave when they go in another order than they came, so that after many swap-ins a pool holds less in the model;
//! compaction of pools; classes that share their chains. The pages themselves are the caller's.
//! Neighbours: [`crate::swap::areas`].

use std_alloc::collections::BTreeMap;

use crate::version::rules::{Rules, ZspageChain};
use units::PAGE_SIZE;

/// Bytes that an object's handle takes.
const HANDLE: u64 = 8;
/// Classes are multiples of this.
const CLASS_STEP: u64 = 16;
/// The smallest class.
const CLASS_MIN: u64 = 32;

/// Objects of one size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Class {
    /// Pages of a chain.
    chain: u64,
    /// Objects in one.
    room: u64,
}

/// What a pool holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Zpool {
    /// Pages of a chain at most.
    chain_max: u64,
    /// From this length on an object has a page of its own.
    huge: u64,
    /// Objects by the size of their class.
    objects: BTreeMap<u64, u64>,
    /// Bytes that compressors made, without handles and rounding.
    compressed: u64,
    /// Pages of one repeated word.
    same_filled: u64,
    pages: u64,
}

impl Zpool {
    /// An empty pool.
    pub fn new(rules: &Rules) -> Self {
        let (chain_max, huge) = match rules.zspage_chain {
            ZspageChain::UpToFour => (4, 3256),
            ZspageChain::UpToEight => (8, 3624),
        };
        Self { chain_max, huge, objects: BTreeMap::new(), compressed: 0, same_filled: 0, pages: 0 }
    }

    /// Stores a page that compresses to `bytes`, 0 for one of one repeated word; returns the pages that the pool
    /// needs more.
    pub fn store(&mut self, bytes: u16) -> u32 {
        self.change(bytes, |count| *count += 1)
    }

    /// Frees what [`Zpool::store`] stored; returns the pages that the pool needs no more.
    ///
    /// # Panics
    /// When it holds no object of this size: a slot is freed twice.
    pub fn free(&mut self, bytes: u16) -> u32 {
        self.change(bytes, |count| *count = count.checked_sub(1).expect("an object is freed once"))
    }

    fn change(&mut self, bytes: u16, change: impl Fn(&mut u64)) -> u32 {
        if bytes == 0 {
            change(&mut self.same_filled);
            return 0;
        }
        let (size, class) = self.class(u64::from(bytes));
        let objects = self.objects.entry(size).or_default();
        let before = *objects;
        change(objects);
        let pages = |objects: u64| class.chain * objects.div_ceil(class.room);
        let (old, new) = (pages(before), pages(*objects));
        self.compressed = if *objects > before {
            self.compressed + u64::from(bytes)
        } else {
            self.compressed - u64::from(bytes)
        };
        self.pages = self.pages + new - old;
        u32::try_from(new.abs_diff(old)).expect("a chain is short")
    }

    /// The size of an object's class, and its chains.
    fn class(&self, bytes: u64) -> (u64, Class) {
        if bytes >= self.huge {
            return (PAGE_SIZE, Class { chain: 1, room: 1 });
        }
        let size = (bytes + HANDLE).next_multiple_of(CLASS_STEP).max(CLASS_MIN);
        let wasted = |chain: &u64| (chain * PAGE_SIZE) % size;
        let chain = (1..=self.chain_max).min_by_key(wasted).expect("a chain has a page");
        (size, Class { chain, room: chain * PAGE_SIZE / size })
    }

    /// Pages of the pool: `nr_zspages`.
    pub fn pages(&self) -> u64 {
        self.pages
    }

    /// Pages that are stored: those with an object and those of one repeated word.
    pub fn stored(&self) -> u64 {
        self.same_filled + self.objects.values().sum::<u64>()
    }

    /// Bytes that compressors made of them: `compr_data_size` of `mm_stat`.
    pub fn compressed(&self) -> u64 {
        self.compressed
    }
}

#[cfg(test)]
mod tests {
    use std_alloc::format;
    use std_alloc::string::String;

    use super::*;
    use crate::version::presets::Version;

    fn pool(kernel: &str) -> Zpool {
        Zpool::new(&Version::parse(kernel).unwrap().rules)
    }

    /// Chains, room and what 16,664 pages take, by the size that they compress to. `nr_zspages` of measured guests:
    /// 4441 to 4447 on 6.1 with 1070 bytes, 4390 to 4398 on 6.12 with 1050.
    #[test]
    fn a_pool_takes_as_many_pages_as_were_measured() {
        let mut report = String::new();
        for (kernel, bytes) in [
            ("linux-6.1", 1070),
            ("linux-6.12", 1050),
            ("linux-6.1", 1200),
            ("linux-6.12", 1200),
            ("linux-6.1", 3255),
            ("linux-6.1", 3256),
            ("linux-6.12", 3623),
            ("linux-6.12", 3624),
            ("linux-6.12", 1),
            ("linux-6.12", 0),
        ] {
            let mut pool = pool(kernel);
            let (size, Class { chain, room }) = pool.class(bytes);
            let bytes = u16::try_from(bytes).unwrap();
            let grown: u32 = (0..16_664).map(|_| pool.store(bytes)).sum();
            assert_eq!((u64::from(grown), pool.stored()), (pool.pages(), 16_664));
            report += &format!("{kernel} {bytes}: {room} of {size} in {chain}, {grown} pages\n");
        }
        insta::assert_snapshot!(report, @"
        linux-6.1 1070: 15 of 1088 in 4, 4444 pages
        linux-6.12 1050: 19 of 1072 in 5, 4390 pages
        linux-6.1 1200: 10 of 1216 in 3, 5001 pages
        linux-6.12 1200: 10 of 1216 in 3, 5001 pages
        linux-6.1 3255: 5 of 3264 in 4, 13332 pages
        linux-6.1 3256: 1 of 4096 in 1, 16664 pages
        linux-6.12 3623: 9 of 3632 in 8, 14816 pages
        linux-6.12 3624: 1 of 4096 in 1, 16664 pages
        linux-6.12 1: 128 of 32 in 1, 131 pages
        linux-6.12 0: 128 of 32 in 1, 0 pages
        ");
    }

    #[test]
    fn what_is_stored_can_be_freed_to_the_last_page() {
        let mut pool = pool("linux-6.12");
        let sizes = [0, 1, 1050, 3000, 3624, 4096];
        let stored: u32 = (0..600).map(|page| pool.store(sizes[page % sizes.len()])).sum();
        let freed: u32 = (0..600).rev().map(|page| pool.free(sizes[page % sizes.len()])).sum();
        assert_eq!((stored, pool.pages(), pool.stored(), pool.compressed()), (freed, 0, 0, 0));
    }
}
