//! File pages on FIFO queues instead of the two lists: what S3-FIFO and SIEVE would do as a kernel's file LRU.
//! Never merged: a what-if, for `file-lru-s3fifo` and `file-lru-sieve`.
//!
//! ```text
//!   S3-FIFO, per cgroup and node                                 G: shadows, as far back as M may be long
//!     new --> S (inactive list) tail -- hits <= 1: freed, shadow --^        in time: to M
//!                                    -- hits >= 2: hits = 0 --> M (active list) tail -- hits = 0: freed
//!                                                               ^------ hits > 0: hits - 1 ------'
//!     victims come from S while it has a tenth of both, else from M
//!
//!   SIEVE: one queue (inactive list)
//!     new --> head . . . <-- hand . . . tail      hits > 0: hits = 0, stays where it is;  hits = 0: freed
//! ```
//!
//! A hit costs two bits of the page's flags and moves nothing. Every page is accessed once because it was read
//! for that: this first access sets Referenced and is no hit, which for the papers is the miss itself, also of a
//! page that was read ahead. Amounts, protection, watermarks and batches of 32 are those of classic reclaim, and so is
//! what becomes of a dirty, locked or mapped page; whatever classic reclaim would activate goes to M, or stays in
//! SIEVE's queue. Anonymous pages stay on their two lists.
//!
//! Refaults are found and counted by shadows as before. S3-FIFO's G is what is left of them: a page that went
//! from S and is back before nine tenths of the file pages have gone from there goes to M. SIEVE has no memory.
//!
//! Neighbours: [`crate::lru::lists`] holds the queues and SIEVE's hand, [`crate::lru::two_lists`] brings accesses,
//! `reclaim/page.rs` asks [`at_end`], [`crate::lru::workingset`] for G. `docs/policies.md` has the plain forms.

use units::NodeId;

use crate::base::frame::PageFlags;
use crate::base::ids::MemcgId;
use crate::base::layout::ZoneKind;
use crate::lru::lists::{Lru, LruList};
use crate::version::rules::LruKind;

/// The highest number of hits: they have two bits.
const MOST_HITS: u32 = 3;
/// Hits on trial that bring a page from S to M.
const PROVEN_HITS: u32 = 2;
/// S gives the victims while it has one page in so many.
const SMALL_PART: u64 = 10;

/// What is to become of a page at the end of a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AtEnd {
    /// It goes round again, with these flags.
    Again(PageFlags),
    /// It goes from S to M, with these flags.
    Proven(PageFlags),
    /// Its queue lets it go, with these flags.
    Victim(PageFlags),
}

/// Whether file pages are on queues.
pub(crate) const fn has_queues(lru: LruKind) -> bool {
    matches!(lru, LruKind::S3Fifo | LruKind::Sieve)
}

/// Hits of a page since it came to its queue.
const fn hits(flags: PageFlags) -> u32 {
    (flags.has(PageFlags::HITS_LOW) as u32) + (2 * flags.has(PageFlags::HITS_HIGH) as u32)
}

const fn with_hits(flags: PageFlags, hits: u32) -> PageFlags {
    let none = flags.clear(PageFlags::HITS_LOW.set(PageFlags::HITS_HIGH));
    let low = if hits & 1 != 0 { none.set(PageFlags::HITS_LOW) } else { none };
    if hits & 2 != 0 { low.set(PageFlags::HITS_HIGH) } else { low }
}

/// A page is accessed: the first time sets Referenced, the others are hits.
pub(crate) fn touched(flags: PageFlags) -> PageFlags {
    if flags.has(PageFlags::REFERENCED) {
        with_hits(flags, (hits(flags) + 1).min(MOST_HITS))
    } else {
        flags.set(PageFlags::REFERENCED)
    }
}

/// What its queue makes of a page that it came to the end with.
pub(crate) fn at_end(lru: LruKind, flags: PageFlags) -> AtEnd {
    let hits = hits(flags);
    match lru {
        LruKind::Sieve if hits > 0 => AtEnd::Again(with_hits(flags, 0)),
        LruKind::S3Fifo if flags.has(PageFlags::ACTIVE) => match hits.checked_sub(1) {
            Some(left) => AtEnd::Again(with_hits(flags, left)),
            // G remembers only those that failed on trial: see the shadow.
            None => AtEnd::Victim(flags.set(PageFlags::WORKINGSET)),
        },
        LruKind::S3Fifo if hits >= PROVEN_HITS => AtEnd::Proven(with_hits(flags, 0)),
        _ => AtEnd::Victim(flags.clear(PageFlags::WORKINGSET)),
    }
}

impl Lru {
    /// The list that the next victims come from, where `list`, one of file pages, is a queue.
    pub(crate) fn queue_of_victims(
        &self,
        lru: LruKind,
        (memcg, node, list): (MemcgId, NodeId, LruList),
        highest_zoneidx: ZoneKind,
    ) -> Option<LruList> {
        if !has_queues(lru) || !list.is_file() {
            return None;
        }
        let size = |list| self.lruvec(memcg, node).size(list, highest_zoneidx);
        let (small, main) = (size(LruList::InactiveFile), size(LruList::ActiveFile));
        let from_main = main > 0 && small * SMALL_PART < small + main;
        Some(if from_main { LruList::ActiveFile } else { LruList::InactiveFile })
    }
}

/// How many pages may have gone from S since a page went, of as many file pages, for it to be in G.
pub(crate) const fn remembered(pages: u64) -> u64 {
    pages - pages / SMALL_PART
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accessed(times: u32) -> PageFlags {
        (0..times).fold(PageFlags::NONE, |flags, _| touched(flags))
    }

    #[test]
    fn the_first_access_is_no_hit_and_two_bits_hold_three() {
        assert_eq!([0, 1, 2, 3, 4, 9].map(|times| hits(accessed(times))), [0, 0, 1, 2, 3, 3]);
        for hits_left in 0..=MOST_HITS {
            assert_eq!(hits(with_hits(accessed(9), hits_left)), hits_left);
        }
    }

    #[test]
    fn s_lets_go_what_was_hit_once_and_m_what_was_not_hit() {
        let lru = LruKind::S3Fifo;
        assert_eq!(at_end(lru, accessed(2)), AtEnd::Victim(accessed(2)));
        assert_eq!(at_end(lru, accessed(3)), AtEnd::Proven(accessed(1)));
        let main = |times| accessed(times).set(PageFlags::ACTIVE);
        assert_eq!(at_end(lru, main(3)), AtEnd::Again(main(2)));
        assert_eq!(at_end(lru, main(1)), AtEnd::Victim(main(1).set(PageFlags::WORKINGSET)));
    }

    #[test]
    fn the_hand_takes_all_hits_of_a_page_at_once() {
        assert_eq!(at_end(LruKind::Sieve, accessed(4)), AtEnd::Again(accessed(1)));
        assert_eq!(at_end(LruKind::Sieve, accessed(1)), AtEnd::Victim(accessed(1)));
    }
}
