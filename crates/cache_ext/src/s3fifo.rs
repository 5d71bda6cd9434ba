//! S3-FIFO (Yang et al., SOSP 2023) on the hooks, as section 5.1 of cache_ext's paper has it.
//!
//! ```text
//!   added --> small: head -- accessed once at most: candidate, to its tail      ghosts: as many names as 0.9 of all
//!                          -- accessed more often --> main: head -- not accessed: candidate, to its tail
//!   added again, named by a ghost -----------------> main        -- accessed: one access less, to its tail
//!   victims come from small while it has a tenth of all, else from main
//! ```
//! Folios that the kernel would not free now, as they are dirty or being read, are passed by and have another round.
//! Accesses are counted up to 3. The one that a page was read for counts: one more makes it main.
//! `file-lru-s3fifo` asks for two more, and keeps its names in shadows.

use std::collections::{BTreeMap, VecDeque};

use mm::lru::cache_ext::hooks::EvictionPolicy;
use mm::lru::cache_ext::lists::{
    End, Eviction, EvictionList, Folio, LOOKS_MAX, Lists, Moves, Place, Verdict,
};

use crate::per_folio::PerFolio;

/// Accesses are counted up to here.
const ACCESSES_MAX: u8 = 3;
/// The small list gives the victims while it has one folio in so many.
const SMALL_PART: u32 = 10;

/// What is kept of a folio.
#[derive(Debug, Clone, Copy, Default)]
struct Kept {
    accesses: u8,
    is_main: bool,
}

/// Names of those who went from the small list, the oldest first.
#[derive(Debug, Clone, Default)]
struct Ghosts {
    order: VecDeque<(Place, u64)>,
    /// The entry in `order` that counts for a name.
    names: BTreeMap<Place, u64>,
    next: u64,
}

impl Ghosts {
    fn add(&mut self, place: Place, most: usize) {
        self.order.push_back((place, self.next));
        self.names.insert(place, self.next);
        self.next += 1;
        while self.names.len() > most || self.order.len() > 2 * most + 1 {
            let Some((oldest, number)) = self.order.pop_front() else { return };
            if self.names.get(&oldest) == Some(&number) {
                self.names.remove(&oldest);
            }
        }
    }

    fn take(&mut self, place: Place) -> bool {
        self.names.remove(&place).is_some()
    }
}

/// The policy.
#[derive(Debug, Clone, Default)]
pub struct S3Fifo {
    small: EvictionList,
    main: EvictionList,
    kept: PerFolio<Kept>,
    ghosts: Ghosts,
}

impl S3Fifo {
    fn evict_small(&mut self, lists: &mut Lists<'_>, eviction: &mut Eviction) {
        let moves = Moves { kept: Some((self.main, End::Tail)), evicted: Some((self.small, End::Tail)) };
        let (kept, mut busy) = (&mut self.kept, 0);
        lists.iterate(self.small, moves, eviction, |_, seen| {
            if seen.is_busy() {
                busy += 1;
                return if busy > LOOKS_MAX { Verdict::Stop } else { Verdict::Rotate };
            }
            let kept = kept.of(seen.folio);
            kept.is_main = kept.accesses > 1;
            if kept.is_main { Verdict::Keep } else { Verdict::Evict }
        });
    }

    /// Each round takes an access off every folio that it passes, so that the last one finds some without.
    fn evict_main(&mut self, lists: &mut Lists<'_>, eviction: &mut Eviction) {
        let to_tail = Some((self.main, End::Tail));
        let moves = Moves { kept: to_tail, evicted: to_tail };
        let mut busy = 0;
        for _ in 0..=ACCESSES_MAX {
            let kept = &mut self.kept;
            lists.iterate(self.main, moves, eviction, |_, seen| {
                if seen.is_busy() {
                    busy += 1;
                    return if busy > LOOKS_MAX { Verdict::Stop } else { Verdict::Rotate };
                }
                let kept = kept.of(seen.folio);
                match kept.accesses.checked_sub(1) {
                    Some(fewer) => {
                        kept.accesses = fewer;
                        Verdict::Keep
                    }
                    None => Verdict::Evict,
                }
            });
        }
    }
}

impl EvictionPolicy for S3Fifo {
    fn init(&mut self, lists: &mut Lists<'_>) {
        (self.small, self.main) = (lists.create(), lists.create());
    }

    fn evict_folios(&mut self, lists: &mut Lists<'_>, eviction: &mut Eviction) {
        let (small, main) = (lists.len(self.small), lists.len(self.main));
        if main == 0 || small * SMALL_PART >= small + main {
            self.evict_small(lists, eviction);
        } else {
            self.evict_main(lists, eviction);
        }
    }

    fn folio_added(&mut self, lists: &mut Lists<'_>, folio: Folio) {
        let is_main = lists.see(folio).is_some_and(|seen| self.ghosts.take(seen.place));
        *self.kept.of(folio) = Kept { accesses: 0, is_main };
        lists.add(if is_main { self.main } else { self.small }, folio, End::Tail);
    }

    fn folio_accessed(&mut self, _lists: &mut Lists<'_>, folio: Folio) {
        let kept = self.kept.of(folio);
        kept.accesses = (kept.accesses + 1).min(ACCESSES_MAX);
    }

    fn folio_removed(&mut self, lists: &mut Lists<'_>, folio: Folio) {
        let all = lists.len(self.small) + lists.len(self.main);
        if let Some(seen) = lists.see(folio).filter(|_| !self.kept.of(folio).is_main) {
            self.ghosts.add(seen.place, (all - all / SMALL_PART) as usize);
        }
    }
}
