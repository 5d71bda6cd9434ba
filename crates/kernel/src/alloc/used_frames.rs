//! Which page frames were ever used: behind a hypervisor the first use of each costs time.

use units::{Order, Pfn};

/// Which page frames were ever handed out since boot: one bit each, or none at all where nobody asks.
#[derive(Debug, Default)]
pub(crate) struct UsedFrames(Vec<u64>);

impl UsedFrames {
    /// For a machine with `frames` frames, none of them used; for 0 where nobody asks.
    pub(crate) fn new(frames: usize) -> Self {
        Self(vec![0; frames.div_ceil(64)])
    }

    /// Marks a block as used; returns how many of its frames had not been.
    #[inline]
    pub(crate) fn use_block(&mut self, pfn: Pfn, order: Order) -> u64 {
        if self.0.is_empty() {
            return 0;
        }
        // A block lies at a multiple of its size: within one word, or in whole words.
        let (index, pages) = (pfn.index(), order.pages() as usize);
        if pages == 1 {
            let (word, bit) = (&mut self.0[index / 64], 1 << (index % 64));
            let fresh = (*word & bit) == 0;
            *word |= bit;
            return u64::from(fresh);
        }
        let mask = if pages < 64 { ((1 << pages) - 1) << (index % 64) } else { u64::MAX };
        let mut fresh = 0;
        for word in &mut self.0[index / 64..(index + pages).div_ceil(64)] {
            fresh += u64::from((mask & !*word).count_ones());
            *word |= mask;
        }
        fresh
    }

    /// [`Self::use_block`] for each of some single pages.
    #[inline]
    pub(crate) fn use_singles(&mut self, pages: &[Pfn]) -> u64 {
        if self.0.is_empty() {
            return 0;
        }
        pages.iter().map(|&pfn| self.use_block(pfn, Order(0))).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_fresh_once() {
        let mut frames = UsedFrames::new(200);
        assert_eq!(frames.use_block(Pfn(62), Order(0)), 1);
        assert_eq!(frames.use_block(Pfn(60), Order(2)), 3, "one of the four was used before");
        assert_eq!(frames.use_block(Pfn(60), Order(2)), 0);
        assert_eq!(frames.use_block(Pfn(0), Order(7)), 124, "two words");
        assert_eq!(frames.use_block(Pfn(128), Order(6)), 64);
        assert_eq!(frames.use_singles(&[Pfn(199), Pfn(60), Pfn(199)]), 1);
        assert_eq!(UsedFrames::new(0).use_block(Pfn(7), Order(3)), 0, "nobody asks");
    }
}
