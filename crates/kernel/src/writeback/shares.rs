//! What each cgroup has lately written of all that was written: its share of the background threshold
//! (`wb_calc_thresh`, `lib/flex_proportions.c`).
//!
//! ```text
//!   pages written   0 s ....... 3 s ....... 6 s ....... 9 s       every period all counts are halved
//!   of A            1000         500         250+600     425
//!   of all          4000        2000        1000+600     800      A has a half
//! ```
//! One that has written nothing has none, and its worker leaves nothing dirty (guests of 5.10, 6.12 and 7.2). Files
//! that were laid out count for the root. Left out: the share that a disk has; the least that 7.2 gives to each. Next:
//! [`super::work`].

use std::collections::BTreeMap;

use mm::MemcgId;
use units::Nanos;

/// `VM_COMPLETIONS_PERIOD_LEN`.
const PERIOD: Nanos = Nanos::from_secs(3);

/// A count that is halved with each period.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Fading {
    count: u64,
    period: u64,
}

impl Fading {
    fn at(self, period: u64) -> u64 {
        self.count.checked_shr((period - self.period).min(64) as u32).unwrap_or(0)
    }

    fn add(&mut self, period: u64, pages: u64) {
        *self = Self { count: self.at(period) + pages, period };
    }
}

/// The shares of all cgroups.
#[derive(Debug, Default)]
pub(crate) struct Shares {
    of: BTreeMap<MemcgId, Fading>,
    all: Fading,
}

impl Shares {
    /// Pages of a cgroup are written.
    pub(crate) fn add(&mut self, memcg: MemcgId, now: Nanos, pages: u64) {
        let period = now.0 / PERIOD.0;
        self.of.entry(memcg).or_default().add(period, pages);
        self.all.add(period, pages);
    }

    /// A cgroup's part of so many pages. Where nobody has written anything the root has all.
    pub(crate) fn part(&self, memcg: MemcgId, now: Nanos, pages: u64) -> u64 {
        let period = now.0 / PERIOD.0;
        let own = self.of.get(&memcg).map_or(0, |count| count.at(period));
        match self.all.at(period) {
            0 if memcg == MemcgId::ROOT => pages,
            0 => 0,
            all => pages * own.min(all) / all,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cgroup_has_what_it_lately_wrote_of_all() {
        let (a, mut shares) = (MemcgId(1), Shares::default());
        let at = |shares: &Shares, seconds| {
            [MemcgId::ROOT, a].map(|memcg| shares.part(memcg, Nanos::from_secs(seconds), 800))
        };
        assert_eq!(at(&shares, 0), [800, 0]);
        shares.add(a, Nanos::from_secs(0), 1000);
        shares.add(MemcgId::ROOT, Nanos::from_secs(1), 3000);
        assert_eq!(at(&shares, 5), [600, 200]);
        shares.add(a, Nanos::from_secs(6), 650);
        assert_eq!(at(&shares, 6), [363, 436], "750 and 900 of 1650");
        assert_eq!(at(&shares, 1000), [800, 0], "all is forgotten");
    }
}
