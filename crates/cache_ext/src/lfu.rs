//! Least frequently used, as cache_ext approximates it: the folios at the head of one list are scored by how often they
//! were accessed, and the lowest scores go.
//!
//! ```text
//!   head: 512 scored --> the 32 lowest are candidates, all 512 --> tail <-- added with 1
//! ```
//! Accesses are never forgotten while a folio stays.

use mm::lru::cache_ext::hooks::EvictionPolicy;
use mm::lru::cache_ext::lists::{End, Eviction, EvictionList, Folio, LOOKS_MAX, Lists};

use crate::per_folio::PerFolio;

/// The policy.
#[derive(Debug, Clone, Default)]
pub struct Lfu {
    list: EvictionList,
    accesses: PerFolio<u32>,
}

impl EvictionPolicy for Lfu {
    fn init(&mut self, lists: &mut Lists<'_>) {
        self.list = lists.create();
    }

    fn evict_folios(&mut self, lists: &mut Lists<'_>, eviction: &mut Eviction) {
        let accesses = &mut self.accesses;
        lists.evict_lowest(self.list, LOOKS_MAX, eviction, |seen| {
            (!seen.is_busy()).then(|| u64::from(*accesses.of(seen.folio)))
        });
    }

    fn folio_added(&mut self, lists: &mut Lists<'_>, folio: Folio) {
        lists.add(self.list, folio, End::Tail);
        *self.accesses.of(folio) = 1;
    }

    fn folio_accessed(&mut self, _lists: &mut Lists<'_>, folio: Folio) {
        let accesses = self.accesses.of(folio);
        *accesses = accesses.saturating_add(1);
    }

    fn folio_removed(&mut self, _lists: &mut Lists<'_>, _folio: Folio) {}
}
