//! Which pages of a mapping are named as used again, where only their number is known.
//!
//! Where nothing is known of how often, the first ones. Where it is ([`crate::rates`]), blocks of pages that lie
//! anywhere: those of the faster classes are the same at each look, those of the slowest are others each time. So what
//! was used within any time is as much as in the program, and lies apart, as it does where a program looks things up.

use crate::ranges::Range;
use crate::rates::{Class, Shares};

const PAGE: u64 = 4096;
/// Blocks of a mapping that are named at a look, about: of more pages, blocks are larger.
const BLOCKS: u64 = 8192;

/// A range of addresses, and how often each page of it was used.
type Named = (u64, u64, u32);

/// The first `bytes` of what is there.
pub(crate) fn first(there: &[Range<bool>], bytes: u64) -> Vec<Named> {
    let mut left = bytes;
    let mut named = Vec::new();
    for range in there.iter().take_while(|_| bytes > 0) {
        let end = range.end.min(range.start + left);
        left -= end - range.start;
        named.push((range.start, end, 1));
        if left == 0 {
            break;
        }
    }
    named
}

/// Blocks of about `bytes` together, by class; `look_ms` after the look before, which had the number before `look`.
pub(crate) fn spread(
    there: &[Range<bool>],
    bytes: u64,
    shares: &Shares,
    (look_ms, look): (f64, u64),
) -> Vec<Named> {
    let pages = bytes / PAGE;
    let all: u64 = there.iter().map(|range| (range.end - range.start) / PAGE).sum();
    let block = pages.div_ceil(BLOCKS).max(1) * PAGE;
    let classes = shares.classes(pages.min(all), look_ms);
    let mut named: Vec<Named> = Vec::new();
    for range in there {
        let mut start = range.start;
        while start < range.end {
            let end = range.end.min((start / block + 1) * block);
            if let Some(uses) = drawn_uses(start, all, &classes, look) {
                match named.last_mut() {
                    Some(last) if (last.1, last.2) == (start, uses) => last.1 = end,
                    _ => named.push((start, end, uses)),
                }
            }
            start = end;
        }
    }
    named
}

/// How often what begins here is used, if it is: each page is of a class as likely as of `all` pages are in it.
fn drawn_uses(start: u64, all: u64, classes: &[Class], look: u64) -> Option<u32> {
    let mut place = below(drawn(start, 0), all);
    let mut left = all;
    for class in classes.iter().filter(|class| class.is_same) {
        if place < class.pages {
            return Some(class.uses);
        }
        place -= class.pages;
        left -= class.pages;
    }
    let slow: u64 = classes.iter().filter(|class| !class.is_same).map(|class| class.pages).sum();
    (below(drawn(start, look + 1), left) < slow).then_some(1)
}

/// A number below `bound`, of one that was drawn.
const fn below(drawn: u64, bound: u64) -> u64 {
    ((drawn as u128 * bound as u128) >> 64) as u64
}

/// A number that an address draws.
const fn drawn(start: u64, turn: u64) -> u64 {
    let mixed = ((start / PAGE) ^ (turn << 40)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed ^ (mixed >> 32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rates::Point;

    fn there(pages: u64) -> [Range<bool>; 1] {
        [Range { start: 0, end: pages * PAGE, value: false }]
    }

    #[test]
    fn what_is_hot_is_the_same_at_each_look_and_what_is_cold_is_not() {
        let point = |after_ms, pages| Point { after_ms, pages };
        // A tenth of a thousand is always used.
        let shares = Shares::of(&[point(10.0, 110.0), point(30.0, 128.0), point(100.0, 190.0)]).unwrap();
        let named = |look| spread(&there(1000), 190 * PAGE, &shares, (100.0, look));
        let (one, other) = (named(1), named(2));
        let pages = |named: &[Named]| named.iter().map(|(start, end, _)| (end - start) / PAGE).sum::<u64>();
        let hot =
            |named: &[Named]| named.iter().filter(|(_, _, uses)| *uses > 10).copied().collect::<Vec<_>>();
        assert_eq!(hot(&one), hot(&other));
        assert!((75..=135).contains(&pages(&hot(&one))), "{}", pages(&hot(&one)));
        assert_ne!(one, other);
        assert!((150..230).contains(&pages(&one)), "{}", pages(&one));
    }

    #[test]
    fn of_a_large_mapping_few_large_blocks_are_named() {
        let shares = Shares::of(&[Point { after_ms: 100.0, pages: 5.0 }]).unwrap();
        assert!(spread(&there(1 << 18), 1 << 29, &shares, (100.0, 1)).len() < 2 * BLOCKS as usize);
    }
}
