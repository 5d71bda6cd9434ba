//! What each cgroup has lately written of all that was written: its share of the background threshold
//! (`wb_calc_thresh`, `lib/flex_proportions.c`).
//!
//! ```text
//!   pages written   0 s ....... 3 s ....... 6 s ....... 9 s       every period all counts are halved,
//!   of A            1000         500         250+600     425      until one page is left of all
//!   of all          4000        2000        1000+600     800      A has a half
//! ```
//! One that has written nothing has none, and its worker leaves nothing dirty at its first look, five seconds after the
//! first dirty page: that is so of the root, too, until something was written on the machine (guests of 5.10, 6.1, 6.12
//! and 7.2). Whoever alone wrote has all of it for good (the same guests, after 40 s). Files that were laid out count
//! for the root. Left out: what a machine wrote before the run; the share that a disk has; the least that 7.2 gives to
//! each. Next: [`super::work`].

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
    /// When the period of `all` ends, while there is more than a page of it.
    ends: Nanos,
}

impl Shares {
    /// Pages of a cgroup are written.
    pub(crate) fn add(&mut self, memcg: MemcgId, now: Nanos, pages: u64) {
        let period = self.period(now);
        self.ends = match self.all.at(period) {
            // With the last page of all the periods ended, and begin anew.
            0 | 1 => now + PERIOD,
            _ => self.ends + Nanos(PERIOD.0 * (period - self.all.period)),
        };
        self.of.entry(memcg).or_default().add(period, pages);
        self.all.add(period, pages);
    }

    /// The period that it is: each begins while there is more than a page left of all.
    fn period(&self, now: Nanos) -> u64 {
        let Some(past) = now.0.checked_sub(self.ends.0) else { return self.all.period };
        let halvings = self.all.count.checked_ilog2().unwrap_or(0);
        self.all.period + (1 + past / PERIOD.0).min(halvings.into())
    }

    /// A cgroup's part of so many pages; nobody has any before something was written.
    pub(crate) fn part(&self, memcg: MemcgId, now: Nanos, pages: u64) -> u64 {
        let period = self.period(now);
        let own = self.of.get(&memcg).map_or(0, |count| count.at(period));
        match self.all.at(period) {
            0 => 0,
            all => pages * own.min(all) / all,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: MemcgId = MemcgId(1);

    fn at(shares: &Shares, seconds: u64) -> [u64; 2] {
        [MemcgId::ROOT, A].map(|memcg| shares.part(memcg, Nanos::from_secs(seconds), 800))
    }

    #[test]
    fn a_cgroup_has_what_it_lately_wrote_of_all() {
        let mut shares = Shares::default();
        assert_eq!(at(&shares, 0), [0, 0]);
        shares.add(A, Nanos::from_secs(0), 1000);
        shares.add(MemcgId::ROOT, Nanos::from_secs(1), 3000);
        assert_eq!(at(&shares, 5), [600, 200]);
        shares.add(A, Nanos::from_secs(6), 650);
        assert_eq!(at(&shares, 6), [363, 436], "750 and 900 of 1650");
    }

    #[test]
    fn the_last_to_write_keeps_all_of_it() {
        let mut shares = Shares::default();
        shares.add(MemcgId::ROOT, Nanos::ZERO, 1);
        assert_eq!(at(&shares, 1000), [800, 0]);
        shares.add(A, Nanos::from_secs(1000), 63);
        assert_eq!(at(&shares, 1002), [12, 787]);
        assert_eq!(at(&shares, 1003), [0, 775], "31 of 32");
        assert_eq!(
            at(&shares, 1018),
            [0, 0],
            "nobody has the page that is left: what was written is halved each for itself"
        );
        shares.add(A, Nanos::from_secs(2000), 1);
        assert_eq!(at(&shares, 2000), [0, 400], "and it counts on");
    }
}
