//! Which page frames were ever used: behind a hypervisor the first use of each costs time.

use units::{Order, Pfn};

/// Which page frames were ever handed out since boot: one bit each.
#[derive(Debug, Default)]
pub(crate) struct UsedFrames(Vec<u64>);

impl UsedFrames {
    /// For a machine with `frames` frames, none of them used.
    pub(crate) fn new(frames: usize) -> Self {
        Self(vec![0; frames.div_ceil(64)])
    }

    /// Marks a block as used; returns how many of its frames had not been.
    #[inline]
    pub(crate) fn use_block(&mut self, pfn: Pfn, order: Order) -> u64 {
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
    }
}
