//! How much of a zone was scanned since a page of it was last freed, and which zones have nothing that
//! reclaim could free (`pages_scanned`, `ZONE_ALL_UNRECLAIMABLE`; MECHANISMS 5.5), up to 4.7.
//!
//! Left out: scans of active lists, which count there, too. Neighbours: [`crate::decide::balance_zones`], which gives zones up, and
//! [`crate::decide::priority`], which leaves them alone.

use std_alloc::vec::Vec;

use crate::base::layout::ZoneId;

/// Scans without a page freed after which a zone counts as exhausted, in multiples of what it has.
const SCANS: u64 = 6;

/// Scans of one zone.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct ZoneScans {
    scanned: u64,
    unreclaimable: bool,
    /// What had been given back to the zone by then.
    given_back: u64,
}

/// Scans of every zone, as far as anybody asked.
#[derive(Debug, Clone, Default)]
pub struct Scans(Vec<ZoneScans>);

impl Scans {
    /// Scans of a zone to which `given_back` blocks were given back so far: none, if there are more than
    /// when it was last asked.
    fn of(&mut self, zone: ZoneId, given_back: u64) -> &mut ZoneScans {
        if self.0.len() <= zone.index() {
            self.0.resize(zone.index() + 1, ZoneScans::default());
        }
        let scans = &mut self.0[zone.index()];
        if scans.given_back != given_back {
            *scans = ZoneScans { given_back, ..ZoneScans::default() };
        }
        scans
    }

    /// So many pages of a zone were looked at.
    pub fn note(&mut self, zone: ZoneId, given_back: u64, pages: u64) {
        self.of(zone, given_back).scanned += pages;
    }

    /// Nothing came of a scan of a zone that has so many `reclaimable` pages: is it exhausted?
    pub fn note_fruitless(&mut self, zone: ZoneId, given_back: u64, reclaimable: u64) {
        let scans = self.of(zone, given_back);
        scans.unreclaimable |= scans.scanned >= SCANS * reclaimable;
    }

    /// Whether a zone counts as exhausted, to which so many blocks were given back so far.
    pub fn is_unreclaimable(&self, zone: ZoneId, given_back: u64) -> bool {
        let scans = self.0.get(zone.index());
        scans.is_some_and(|scans| scans.unreclaimable && scans.given_back == given_back)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zone_is_given_up_after_six_scans_of_all_it_has_until_a_page_comes_back() {
        let (mut scans, zone) = (Scans::default(), ZoneId(1));
        scans.note(zone, 7, 59);
        scans.note_fruitless(zone, 7, 10);
        assert!(!scans.is_unreclaimable(zone, 7));
        scans.note(zone, 7, 1);
        scans.note_fruitless(zone, 7, 10);
        assert!(scans.is_unreclaimable(zone, 7));
        assert!(!scans.is_unreclaimable(ZoneId(0), 7), "others are not");
        assert!(!scans.is_unreclaimable(zone, 8), "a page was freed");
        scans.note(zone, 8, 20);
        scans.note_fruitless(zone, 8, 4);
        assert!(!scans.is_unreclaimable(zone, 8), "what was scanned before does not count");
    }
}
