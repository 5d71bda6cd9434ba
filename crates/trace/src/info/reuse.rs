//! After how many other pages a page is asked for again: exact LRU stack distances.
//!
//! Accesses have places in one long row, each page at its last one; the pages behind a page's place are those that were
//! asked for since. A Fenwick tree over the row counts them in logarithmic time (Bennett and Kruskal 1975). When the row is
//! full, the pages move together at its beginning. With a rate of 1/N only pages whose hash is divisible by N are
//! followed, and distances and counts are multiplied by N (SHARDS, Waldspurger et al. 2015).

use std::collections::BTreeMap;

/// Pages of an object that stand together in one leaf.
const LEAF: u64 = 512;
/// Places of the row at first.
const PLACES_MIN: usize = 1 << 16;

/// What is asked for: an object, and a page of it.
type Page = (u64, u64);

/// Distances while accesses come.
#[derive(Debug)]
pub(super) struct Distances {
    /// One page in so many is followed.
    pub(super) one_in: u64,
    /// By object and leaf: each page's last place plus one, or 0.
    leaves: BTreeMap<Page, Box<[u32; LEAF as usize]>>,
    /// The page that was at a place last.
    row: Vec<Page>,
    /// The Fenwick tree: places that are some page's last.
    tree: Vec<u32>,
    pages: u32,
}

/// What an access was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    /// The page is not followed.
    Left,
    /// Nobody asked for the page before.
    First,
    /// So many pages, this one included, have to fit for it to be there still.
    Again(u64),
}

impl Distances {
    pub(super) fn new(one_in: u64) -> Self {
        Self {
            one_in,
            leaves: BTreeMap::new(),
            row: Vec::with_capacity(PLACES_MIN),
            tree: vec![0; PLACES_MIN + 1],
            pages: 0,
        }
    }

    /// Somebody asks for a page.
    pub(super) fn access(&mut self, object: u64, page: u64) -> Access {
        if self.one_in > 1 && !mixed(object, page).is_multiple_of(self.one_in) {
            return Access::Left;
        }
        if self.row.len() + 1 == self.tree.len() {
            self.move_together();
        }
        let place = self.row.len();
        let leaf = self.leaves.entry((object, page / LEAF)).or_insert_with(|| Box::new([0; LEAF as usize]));
        let slot = &mut leaf[(page % LEAF) as usize];
        let before = std::mem::replace(slot, u32::try_from(place + 1).expect("the row is shorter"));
        self.row.push((object, page));
        self.change(place, 1);
        if before == 0 {
            self.pages += 1;
            return Access::First;
        }
        let before = before as usize - 1;
        self.change(before, -1);
        let not_since = self.count_up_to(before);
        Access::Again(u64::from(self.pages - not_since) * self.one_in)
    }

    fn change(&mut self, place: usize, by: i32) {
        let mut at = place + 1;
        while at < self.tree.len() {
            self.tree[at] = self.tree[at].wrapping_add_signed(by);
            at += at & at.wrapping_neg();
        }
    }

    /// Pages whose last place is `place` or before it.
    fn count_up_to(&self, place: usize) -> u32 {
        let (mut at, mut count) = (place + 1, 0_u32);
        while at > 0 {
            count = count.wrapping_add(self.tree[at]);
            at &= at - 1;
        }
        count
    }

    fn move_together(&mut self) {
        let row = std::mem::take(&mut self.row);
        let places = (4 * self.pages as usize).max(PLACES_MIN);
        self.row.reserve(places);
        for (place, page) in row.into_iter().enumerate() {
            let leaf = self.leaves.get_mut(&(page.0, page.1 / LEAF)).expect("it was asked for");
            let slot = &mut leaf[(page.1 % LEAF) as usize];
            if *slot as usize == place + 1 {
                self.row.push(page);
                *slot = u32::try_from(self.row.len()).expect("fewer than before");
            }
        }
        self.tree.clear();
        self.tree.resize(places + 1, 0);
        // Each of the first places counts one.
        for at in 1..self.tree.len() {
            self.tree[at] += u32::from(at <= self.row.len());
            let above = at + (at & at.wrapping_neg());
            if above < self.tree.len() {
                self.tree[above] += self.tree[at];
            }
        }
    }
}

/// A number that looks as if drawn, the same for a page each time (SplitMix64's finish).
fn mixed(object: u64, page: u64) -> u64 {
    let mut value = object.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ page;
    value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against a list that is searched from its front.
    #[test]
    fn distances_are_those_of_a_list() {
        let mut stream = units::Seed(3).stream("distances");
        let (mut distances, mut list) = (Distances::new(1), Vec::<Page>::new());
        for round in 0..300_000_u64 {
            // Enough accesses that the row moves together several times; a part that grows, a part that stays.
            let page =
                if stream.below(4) == 0 { (7, round / 100) } else { (stream.below(3), stream.below(40)) };
            let before = list.iter().rev().take(4000).position(|&other| other == page);
            let found = distances.access(page.0, page.1);
            match before {
                Some(place) => {
                    assert_eq!(found, Access::Again(place as u64 + 1), "round {round}");
                    list.remove(list.len() - 1 - place);
                }
                None => assert_eq!(found, Access::First, "round {round}"),
            }
            list.push(page);
        }
    }

    #[test]
    fn a_sample_tells_distances_of_the_whole() {
        let mut distances = Distances::new(8);
        let (mut firsts, mut sum, mut again) = (0, 0, 0);
        for _ in 0..4 {
            for page in 0..100_000 {
                match distances.access(1, page) {
                    Access::Left => {}
                    Access::First => firsts += 1,
                    Access::Again(distance) => (sum, again) = (sum + distance, again + 1),
                }
            }
        }
        let mean = sum / again;
        assert!((95_000..105_000).contains(&mean), "{mean}");
        assert!((11_500..13_500).contains(&firsts), "{firsts}");
    }
}
