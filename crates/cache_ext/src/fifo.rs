//! First in, first out.
//!
//! ```text
//!   evicted <-- head ... tail <-- added
//! ```
//! A page that the kernel cannot free, as it is dirty or being read, is passed by and has another round.

use mm::lru::cache_ext::hooks::EvictionPolicy;
use mm::lru::cache_ext::lists::{End, Eviction, EvictionList, Folio, Lists, Moves};

use crate::in_order::in_order;

/// The policy.
#[derive(Debug, Clone, Default)]
pub struct Fifo {
    list: EvictionList,
}

impl EvictionPolicy for Fifo {
    fn init(&mut self, lists: &mut Lists<'_>) {
        self.list = lists.create();
    }

    fn evict_folios(&mut self, lists: &mut Lists<'_>, eviction: &mut Eviction) {
        let moves = Moves { kept: None, evicted: Some((self.list, End::Tail)) };
        lists.iterate(self.list, moves, eviction, in_order);
    }

    fn folio_added(&mut self, lists: &mut Lists<'_>, folio: Folio) {
        lists.add(self.list, folio, End::Tail);
    }

    fn folio_accessed(&mut self, _lists: &mut Lists<'_>, _folio: Folio) {}

    fn folio_removed(&mut self, _lists: &mut Lists<'_>, _folio: Folio) {}
}
