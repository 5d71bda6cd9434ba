//! What a CPU holds in advance for cgroups: pages, and bytes of pages for kernel objects (MECHANISMS 8.2,
//! MECHANISMS-510-72 4.1).
//!
//! ```text
//!   up to 6.15   [B: 40]                                 A comes: B's 40 pages go back
//!   since 6.16   [B: 40] [ ] [ ] [ ] [ ] [ ] [ ]         A comes: both are kept, and stay charged
//! ```
//! Left out: stocks by node. Neighbours: [`super::charge`] takes from them and gives them back.

use crate::base::ids::MemcgId;
use crate::version::rules::ChargeStock;

/// Pages, or bytes, held for a cgroup.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Held {
    pub(super) memcg: Option<MemcgId>,
    pub(super) amount: u32,
}

/// As many cgroups as a CPU holds pages for at most, and bytes.
const PAGE_GROUPS: usize = 7;
const OBJECT_GROUPS: usize = 5;

/// What is held of one kind.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stock<const N: usize> {
    held: [Held; N],
    /// Places that are used at all.
    places: usize,
    /// The place to be emptied next where all are taken.
    next: usize,
}

impl<const N: usize> Stock<N> {
    fn new(places: usize) -> Self {
        Self { held: [Held::default(); N], places, next: 0 }
    }

    /// What is held for `memcg`.
    #[inline]
    pub(super) fn of(&mut self, memcg: MemcgId) -> Option<&mut Held> {
        self.held[..self.places].iter_mut().find(|held| held.memcg == Some(memcg))
    }

    /// What is held where there is room for one cgroup alone.
    pub(super) fn only(&self) -> Option<MemcgId> {
        if self.places == 1 { self.held[0].memcg } else { None }
    }

    /// Everything that is held.
    pub(super) fn all(&self) -> impl Iterator<Item = Held> + '_ {
        self.held[..self.places].iter().copied().filter(|held| held.memcg.is_some())
    }

    /// A place for `memcg`, which has none, and what it held before, to be given back: the first empty one, or else
    /// each in turn.
    pub(super) fn make_place(&mut self, memcg: MemcgId) -> (&mut Held, Held) {
        let empty = self.held[..self.places].iter().position(|held| held.memcg.is_none());
        let place = empty.unwrap_or_else(|| {
            let place = self.next;
            self.next = (place + 1) % self.places;
            place
        });
        let before = core::mem::replace(&mut self.held[place], Held { memcg: Some(memcg), amount: 0 });
        (&mut self.held[place], before)
    }

    /// Takes what is held for `memcg`: its place is empty.
    pub(super) fn take(&mut self, memcg: MemcgId) -> u32 {
        self.of(memcg).map_or(0, |held| core::mem::take(held).amount)
    }
}

/// What one CPU holds.
#[derive(Debug, Clone, Copy)]
pub(super) struct CpuStock {
    /// Pages charged in advance.
    pub(super) pages: Stock<PAGE_GROUPS>,
    /// Bytes of charged pages that no object uses yet.
    pub(super) objects: Stock<OBJECT_GROUPS>,
}

impl CpuStock {
    pub(super) fn new(rule: ChargeStock) -> Self {
        let (pages, objects) = match rule {
            ChargeStock::OneGroup => (1, 1),
            ChargeStock::SevenGroups => (PAGE_GROUPS, OBJECT_GROUPS),
        };
        Self { pages: Stock::new(pages), objects: Stock::new(objects) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_filled_one_by_one_and_then_emptied_in_turns() {
        let mut stock = CpuStock::new(ChargeStock::SevenGroups).pages;
        for group in 0..7 {
            let (held, before) = stock.make_place(MemcgId(group));
            held.amount = 10 + u32::from(group);
            assert_eq!(before, Held::default());
        }
        for (group, given_back) in [(7, 0), (8, 1), (9, 2)] {
            let (_, before) = stock.make_place(MemcgId(group));
            assert_eq!(before, Held { memcg: Some(MemcgId(given_back)), amount: 10 + u32::from(given_back) });
        }
        assert_eq!(stock.take(MemcgId(3)), 13);
        let (_, before) = stock.make_place(MemcgId(10));
        assert_eq!(before, Held::default(), "an empty place is taken first");
        assert_eq!(stock.all().count(), 7);
    }

    #[test]
    fn one_place_goes_from_hand_to_hand() {
        let mut stock = CpuStock::new(ChargeStock::OneGroup).objects;
        stock.make_place(MemcgId(1)).0.amount = 100;
        assert_eq!(stock.make_place(MemcgId(2)).1, Held { memcg: Some(MemcgId(1)), amount: 100 });
        assert!(stock.of(MemcgId(1)).is_none());
    }
}
