//! Which pages of a mapping are named as used again, where only their number is known.
//!
//! Where nothing is known of how often, the first ones. Where it is ([`crate::rates`]), blocks of pages that lie
//! anywhere: those of the faster classes are the same at each look, those of the slowest are others each time. So what
//! was used within any time is as much as in the program, and lies apart, as it does where a program looks things up.

use crate::ranges::Range;
use crate::rates::Shares;

const PAGE: u64 = 4096;
/// Pages of a block at least, and blocks of a mapping that are named at a look, about.
const BLOCK_PAGES: u64 = 4;
const BLOCKS: u64 = 2048;

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

/// Blocks of `bytes` together, by class; `look_ms` after the look before, which had the number before `look`.
pub(crate) fn spread(
    there: &[Range<bool>],
    bytes: u64,
    shares: &Shares,
    (look_ms, look): (f64, u64),
) -> Vec<Named> {
    let pages = bytes / PAGE;
    let block = BLOCK_PAGES.max(pages.div_ceil(BLOCKS)) * PAGE;
    let mut blocks: Vec<(u64, u64)> = Vec::new();
    for range in there {
        let mut start = range.start;
        while start < range.end {
            let end = range.end.min((start / block + 1) * block);
            blocks.push((start, end));
            start = end;
        }
    }
    blocks.sort_unstable_by_key(|(start, _)| drawn(*start, 0));
    let classes = shares.classes(pages, look_ms);
    let mut named = Vec::new();
    let mut rest = blocks.as_mut_slice();
    for (class, (count, uses)) in classes.into_iter().enumerate() {
        if class + 1 == classes.len() {
            rest.sort_unstable_by_key(|(start, _)| drawn(*start, look));
        }
        let mut left = count * PAGE;
        let taken = rest.iter().take_while(|(start, end)| {
            let is_wanted = left > 0;
            left = left.saturating_sub(end - start);
            is_wanted
        });
        let taken = taken.count();
        let (now, later) = rest.split_at_mut(taken);
        now.sort_unstable();
        named.extend(now.iter().map(|(start, end)| (*start, *end, uses)));
        rest = later;
    }
    named
}

/// A number that an address draws.
const fn drawn(start: u64, turn: u64) -> u64 {
    let mixed = ((start / PAGE) ^ (turn << 40)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9)
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
        let hot =
            |named: &[Named]| named.iter().filter(|(_, _, uses)| *uses > 10).copied().collect::<Vec<_>>();
        assert_eq!(hot(&one), hot(&other));
        assert!((80..=120).contains(&(hot(&one).len() as u64 * BLOCK_PAGES)), "{:?}", hot(&one).len());
        assert_ne!(one, other);
        let pages: u64 = one.iter().map(|(start, end, _)| (end - start) / PAGE).sum();
        assert!((190..210).contains(&pages), "{pages}");
    }

    #[test]
    fn of_a_large_mapping_few_large_blocks_are_named() {
        let shares = Shares::of(&[Point { after_ms: 100.0, pages: 5.0 }]).unwrap();
        assert!(spread(&there(1 << 18), 1 << 29, &shares, (100.0, 1)).len() < 2 * BLOCKS as usize);
    }
}
