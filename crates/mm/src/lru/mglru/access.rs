//! What accesses leave in a page's flags under generations, and which tier that is (MGLRU 1, 2.1;
//! MECHANISMS-510-72 11).
//!
//! ```text
//!   reads          1   2   3   4   5
//!   up to 6.13     R  +W  +1  +1  +1     refs = counter + W        tier 0 1 2 2 3
//!   since 6.14     R  +1  +1  +1  +W     refs = counter + 1        tier 0 1 2 2 3
//! ```
//! Nothing moves. Neighbours:
//! [`super::state`] for the lists, [`super::feedback`] for what tiers are good for.

use crate::base::event::Trace;
use crate::base::frame::PageFlags;
use crate::core::Core;
use crate::version::rules::{GenAccess, LruKind};

/// Tiers of a generation.
pub const TIERS: usize = 4;

const GENERATION: PageFlags = PageFlags::GENERATION_LOW.set(PageFlags::GENERATION_HIGH);
const LISTED: PageFlags = PageFlags::LISTED_LOW.set(PageFlags::LISTED_HIGH);
const ACCESSES: PageFlags = PageFlags::ACCESSES_LOW.set(PageFlags::ACCESSES_HIGH);

const fn two_bits(flags: PageFlags, mask: PageFlags) -> u32 {
    (flags.0 & mask.0) >> mask.0.trailing_zeros()
}

const fn with_two_bits(flags: PageFlags, mask: PageFlags, value: u32) -> PageFlags {
    PageFlags(flags.clear(mask).0 | ((value & 3) << mask.0.trailing_zeros()))
}

/// The generation of a listed page, modulo 4.
pub(crate) const fn generation(flags: PageFlags) -> usize {
    two_bits(flags, GENERATION) as usize
}

/// The generation whose list a listed page is on, modulo 4.
pub(crate) const fn listed(flags: PageFlags) -> usize {
    two_bits(flags, LISTED) as usize
}

/// With another generation; the list stays.
pub(super) const fn with_generation(flags: PageFlags, generation: usize) -> PageFlags {
    with_two_bits(flags, GENERATION, generation as u32)
}

/// With a generation on whose list it is.
pub(super) const fn with_list(flags: PageFlags, generation: usize) -> PageFlags {
    with_two_bits(with_generation(flags, generation), LISTED, generation as u32)
}

/// Of a page that leaves the lists.
pub(crate) const fn without_list(flags: PageFlags) -> PageFlags {
    flags.clear(GENERATION).clear(LISTED)
}

/// With nothing left of all accesses.
pub(crate) const fn forgotten(flags: PageFlags) -> PageFlags {
    flags.clear(PageFlags::REFERENCED).clear(PageFlags::WORKINGSET).clear(ACCESSES)
}

/// With so many accesses counted, 0 to 3.
pub(super) const fn with_count(flags: PageFlags, count: u32) -> PageFlags {
    with_two_bits(flags, ACCESSES, count)
}

/// After one more access.
pub(crate) const fn touched(flags: PageFlags, access: GenAccess) -> PageFlags {
    let (count, mark) = (two_bits(flags, ACCESSES), PageFlags::WORKINGSET);
    match access {
        _ if !flags.has(PageFlags::REFERENCED) => flags.set(PageFlags::REFERENCED),
        GenAccess::Reads if !flags.has(mark) => flags.set(mark),
        GenAccess::Accesses if count == 3 => flags.set(mark),
        _ => with_two_bits(flags, ACCESSES, if count < 3 { count + 1 } else { 3 }),
    }
}

/// Accesses that count for the tier.
pub const fn refs(flags: PageFlags, access: GenAccess) -> u32 {
    match access {
        GenAccess::Reads => two_bits(flags, ACCESSES) + flags.has(PageFlags::WORKINGSET) as u32,
        GenAccess::Accesses if flags.has(PageFlags::REFERENCED) => two_bits(flags, ACCESSES) + 1,
        GenAccess::Accesses => 0,
    }
}

/// The tier of a page by its accesses.
pub const fn tier(flags: PageFlags, access: GenAccess) -> usize {
    tier_of(refs(flags, access), flags.has(PageFlags::WORKINGSET), access)
}

/// The tier of so many accesses; `workingset`: the bit is set.
pub(super) const fn tier_of(refs: u32, workingset: bool, access: GenAccess) -> usize {
    let counted = match access {
        GenAccess::Reads => refs + 1,
        GenAccess::Accesses if workingset => return TIERS - 1,
        GenAccess::Accesses if refs == 0 => 1,
        GenAccess::Accesses => refs,
    };
    // The logarithm, rounded up.
    counted.next_power_of_two().trailing_zeros() as usize
}

/// Of a page that is isolated: what was counted of its accesses stays for its shadow, unless it was never read.
pub(crate) const fn isolated(flags: PageFlags) -> PageFlags {
    if flags.has(PageFlags::REFERENCED) { flags } else { forgotten(flags) }
}

/// Of a page that reclaim took off its list and could not free: it goes to a younger generation. To the second
/// youngest if it is to be freed once it is written, else to the youngest, where it starts anew.
pub(crate) const fn rejected(flags: PageFlags) -> PageFlags {
    let written = PageFlags::DIRTY.set(PageFlags::ANON_DIRTY).set(PageFlags::WRITEBACK);
    let flags = flags.clear(PageFlags::ACTIVE);
    if !(flags.has(PageFlags::RECLAIM) && flags.has_any(written)) {
        return forgotten(flags).set(PageFlags::ACTIVE);
    }
    if flags.has(PageFlags::WORKINGSET) { flags.set(PageFlags::REFERENCED) } else { flags }
}

/// Whether no more accesses can be told: such a page is kept once, whatever its tier is worth.
pub(crate) const fn is_saturated(flags: PageFlags) -> bool {
    two_bits(flags, ACCESSES) == 3 && flags.has(PageFlags::WORKINGSET)
}

/// Flags of a page on its way to the lists that a task needs in a page fault: it was accessed by that. Up to
/// 6.13 it goes to the youngest generation, since 6.14 it counts as referenced. Nothing changes where there are
/// no generations.
pub fn faulted_in<T: Trace>(core: &Core<T>, flags: PageFlags) -> PageFlags {
    match (core.rules().lru, core.rules().gen_access) {
        (LruKind::TwoLists | LruKind::S3Fifo | LruKind::Sieve, _) => flags,
        (LruKind::Generations, GenAccess::Reads) => flags.set(PageFlags::ACTIVE),
        (LruKind::Generations, GenAccess::Accesses) => flags.set(PageFlags::REFERENCED),
    }
}

#[cfg(test)]
mod tests {
    use std_alloc::vec::Vec;

    use super::*;

    /// Refs and tier after 0, 1, 2, ... reads.
    fn after_reads(access: GenAccess) -> Vec<(u32, usize)> {
        let mut flags = PageFlags::NONE;
        (0..7)
            .map(|_| {
                let now = (refs(flags, access), tier(flags, access));
                flags = touched(flags, access);
                now
            })
            .collect()
    }

    #[test]
    fn each_read_counts_until_five() {
        let up_to_613 = [(0, 0), (0, 0), (1, 1), (2, 2), (3, 2), (4, 3), (4, 3)];
        assert_eq!(after_reads(GenAccess::Reads), up_to_613, "MGLRU 2.1: refs = N - 1");
        let since_614 = [(0, 0), (1, 0), (2, 1), (3, 2), (4, 2), (4, 3), (4, 3)];
        assert_eq!(after_reads(GenAccess::Accesses), since_614, "MECHANISMS-510-72 11");
    }

    #[test]
    fn only_the_fifth_read_saturates() {
        for access in [GenAccess::Reads, GenAccess::Accesses] {
            let mut flags = PageFlags::NONE;
            for reads in 1..8 {
                flags = touched(flags, access);
                assert_eq!(is_saturated(flags), reads >= 5, "{access:?}, {reads} reads");
            }
            assert_eq!(forgotten(flags.set(PageFlags::DIRTY)), PageFlags::DIRTY);
        }
    }

    #[test]
    fn generation_and_list_leave_other_flags_alone() {
        let flags = PageFlags::DIRTY.set(PageFlags::ACCESSES_LOW);
        for (generation_of, list) in [(0, 3), (3, 0), (2, 1)] {
            let placed = with_generation(with_list(flags, list), generation_of);
            assert_eq!((generation(placed), listed(placed)), (generation_of, list));
            assert_eq!(without_list(placed), flags);
        }
    }
}
