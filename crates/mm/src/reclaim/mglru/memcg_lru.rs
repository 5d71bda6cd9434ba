//! The memcg LRU: in which order global reclaim by generations visits cgroups (MGLRU 5.8).
//!
//! ```text
//!   old    bins 0 .. 7   visited by a pass, from a bin drawn by lot: each bin from its head
//!   young  bins 0 .. 7   left alone, until the old ones are empty: then they are the old ones
//!
//!   nothing special  stays    too small, or below memory.low   tail of a bin drawn by lot, once
//!   got a new generation, below memory.min, or not for the first time too small   young
//! ```
//! One for each node. Neighbours: [`super::tour`] for a pass.

use std_alloc::collections::VecDeque;
use std_alloc::vec::Vec;

use units::Stream;

use crate::base::ids::MemcgId;

/// Bins of a generation (`MEMCG_NR_BINS`).
pub(super) const BINS: usize = 8;

/// Where a cgroup goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rotate {
    /// To the tail of a bin of its generation, and it is noted that it was there.
    Tail,
    /// To the tail of a bin of the young generation.
    Young,
    /// To the head of a bin of the old one: it goes offline.
    Old,
}

/// Where a cgroup is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Spot {
    generation: usize,
    bin: usize,
    /// It went to a tail when it was last moved.
    at_tail: bool,
}

/// The memcg LRU of a node.
#[derive(Debug, Clone)]
pub struct MemcgLru {
    /// The old generation, modulo 2.
    seq: u64,
    bins: [[VecDeque<MemcgId>; BINS]; 2],
    spots: Vec<Spot>,
    lots: Stream,
}

impl MemcgLru {
    /// Without cgroups; bins are drawn from `lots`.
    pub(super) fn new(lots: Stream) -> Self {
        Self { seq: 0, bins: Default::default(), spots: Vec::new(), lots }
    }

    /// The old generation.
    pub(super) const fn old(&self) -> usize {
        (self.seq % 2) as usize
    }

    pub(super) fn draw(&mut self) -> usize {
        usize::try_from(self.lots.below(BINS as u64)).expect("a bin")
    }

    /// A new cgroup, the next by number, joins the old generation.
    pub(super) fn add(&mut self, memcg: MemcgId) {
        assert!(memcg.index() == self.spots.len(), "cgroups join in their order");
        let spot = Spot { generation: self.old(), bin: self.draw(), at_tail: false };
        self.bins[spot.generation][spot.bin].push_back(memcg);
        self.spots.push(spot);
    }

    /// The cgroup at a place of a bin.
    pub(super) fn get(&self, generation: usize, bin: usize, place: usize) -> Option<MemcgId> {
        self.bins[generation][bin].get(place).copied()
    }

    /// Whether a cgroup has been sent to a tail already.
    pub(super) fn was_at_tail(&self, memcg: MemcgId) -> bool {
        self.spots[memcg.index()].at_tail
    }

    /// Moves a cgroup; if the old generation is empty now, the young one takes its place.
    pub(super) fn rotate(&mut self, memcg: MemcgId, to: Rotate) {
        let spot = self.spots[memcg.index()];
        let bin = &mut self.bins[spot.generation][spot.bin];
        let place = bin.iter().position(|&id| id == memcg).expect("a cgroup is where its spot says");
        bin.remove(place);
        let generation = match to {
            Rotate::Tail => spot.generation,
            Rotate::Young => 1 - self.old(),
            Rotate::Old => self.old(),
        };
        let new = Spot { generation, bin: self.draw(), at_tail: to == Rotate::Tail };
        let bin = &mut self.bins[new.generation][new.bin];
        if to == Rotate::Old {
            bin.push_front(memcg)
        } else {
            bin.push_back(memcg)
        }
        self.spots[memcg.index()] = new;
        if self.bins[self.old()].iter().all(VecDeque::is_empty) {
            self.seq += 1;
        }
    }

    /// Whether every cgroup is in one bin, the one that its spot names.
    ///
    /// # Errors
    /// What is wrong.
    pub(crate) fn check(&self, cgroups: usize) -> Result<(), &'static str> {
        let binned: usize = self.bins.iter().flatten().map(VecDeque::len).sum();
        if binned != cgroups || self.spots.len() != cgroups {
            return Err("the memcg LRU has another number of cgroups than there are");
        }
        let is_there = |(index, spot): (usize, &Spot)| {
            self.bins[spot.generation][spot.bin].iter().any(|memcg| memcg.index() == index)
        };
        if !self.spots.iter().enumerate().all(is_there) {
            return Err("a cgroup is not in the bin of the memcg LRU where it says");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use units::Seed;

    use super::*;

    fn lru(cgroups: u16) -> MemcgLru {
        let mut lru = MemcgLru::new(Seed(1).stream("memcg-lru0"));
        (0..cgroups).for_each(|id| lru.add(MemcgId(id)));
        lru.check(usize::from(cgroups)).expect("sound");
        lru
    }

    fn generation(lru: &MemcgLru, id: u16) -> usize {
        lru.spots[usize::from(id)].generation
    }

    #[test]
    fn a_cgroup_that_is_sent_to_a_tail_is_still_old_and_one_made_young_is_not() {
        let mut lru = lru(3);
        lru.rotate(MemcgId(0), Rotate::Tail);
        assert!(lru.was_at_tail(MemcgId(0)) && generation(&lru, 0) == lru.old());
        lru.rotate(MemcgId(0), Rotate::Young);
        assert!(!lru.was_at_tail(MemcgId(0)) && generation(&lru, 0) != lru.old());
        lru.rotate(MemcgId(0), Rotate::Old);
        assert_eq!(generation(&lru, 0), lru.old());
        lru.check(3).expect("sound");
    }

    #[test]
    fn the_young_are_the_old_ones_once_none_of_those_is_left() {
        let mut lru = lru(2);
        lru.rotate(MemcgId(1), Rotate::Young);
        assert_eq!(lru.old(), 0);
        lru.rotate(MemcgId(0), Rotate::Young);
        assert_eq!((lru.old(), generation(&lru, 0), generation(&lru, 1)), (1, 1, 1));
    }

    #[test]
    fn bins_are_drawn_evenly_and_the_same_for_one_seed() {
        let (mut one, mut other) = (lru(1), lru(1));
        let mut counts = [0; BINS];
        for _ in 0..8000 {
            let bin = one.draw();
            assert_eq!(bin, other.draw());
            counts[bin] += 1;
        }
        assert!(counts.iter().all(|count| (900..1100).contains(count)), "{counts:?}");
    }
}
