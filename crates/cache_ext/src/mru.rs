//! Most recently used: for files that are read from beginning to end again and again, and do not fit.
//!
//! ```text
//!   added, accessed --> head: 200 left alone, evicted from there on ... tail
//! ```
//! What was read last may still be in use, or was read ahead and not yet asked for: so many at the head are passed by.

use mm::lru::cache_ext::hooks::EvictionPolicy;
use mm::lru::cache_ext::lists::{End, Eviction, EvictionList, Folio, Lists, Moves, Verdict};

/// Folios at the head that are left alone, as many as cache_ext's own policy lets be.
const PASSED_BY: u32 = 200;

/// The policy.
#[derive(Debug, Clone, Default)]
pub struct Mru {
    list: EvictionList,
}

impl EvictionPolicy for Mru {
    fn init(&mut self, lists: &mut Lists<'_>) {
        self.list = lists.create();
    }

    fn evict_folios(&mut self, lists: &mut Lists<'_>, eviction: &mut Eviction) {
        lists.iterate(self.list, Moves::default(), eviction, |count, seen| {
            if count < PASSED_BY || seen.is_busy() { Verdict::Keep } else { Verdict::Evict }
        });
    }

    fn folio_added(&mut self, lists: &mut Lists<'_>, folio: Folio) {
        lists.add(self.list, folio, End::Head);
    }

    fn folio_accessed(&mut self, lists: &mut Lists<'_>, folio: Folio) {
        lists.move_to(self.list, folio, End::Head);
    }

    fn folio_removed(&mut self, _lists: &mut Lists<'_>, _folio: Folio) {}
}
