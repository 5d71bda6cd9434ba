//! How long a task sleeps on its way to user mode whose cgroup uses more swap than its `memory.swap.high`
//! (`mem_cgroup_handle_over_high`; SWAP 3.4).
//!
//! ```text
//!   over the limit by a part x of it, 64 pages charged:  64 s * x * x, 2 s at most;  up to 10 ms: no sleep
//! ```
//! The worst of the cgroups above the task decides. Nothing is reclaimed: the sleeps let somebody see it and act.
//! That a sleep is as that of `memory.high`, and how long at most, is in the sources of SWAP 3.4 and MECHANISMS-6X 4.6;
//! the curve is known, and was not read again.
//!
//! Left out: the sleep of `memory.high` itself. Neighbours: [`crate::cgroup::swap`] for the limit,
//! [`super::charge`] for the charges that it is paid for.

use units::Nanos;

use crate::base::ids::MemcgId;
use crate::cgroup::tree::{Memcgs, UNLIMITED};

/// The longest sleep (`MEMCG_MAX_HIGH_DELAY_JIFFIES`).
pub const LONGEST: Nanos = Nanos::from_secs(2);
/// So little is let go: `HZ` / 100.
const LET_GO: Nanos = Nanos::from_millis(10);
/// What a batch costs that is over the limit by all of it.
const TWICE_THE_LIMIT: Nanos = Nanos::from_secs(64);

/// How long a task sleeps for `pages` that it charged, where `usage` is above `high` and charges are made by
/// `batch`.
fn penalty(usage: u64, high: u64, pages: u64, batch: u64) -> Nanos {
    let (over, high) = (u128::from(usage.saturating_sub(high)), u128::from(high.max(1)));
    let over = over.min(high); // Far beyond the longest sleep.
    let batches = u128::from(TWICE_THE_LIMIT.0) * over * over / (high * high);
    let length = batches * u128::from(pages) / u128::from(batch);
    Nanos(u64::try_from(length).unwrap_or(u64::MAX))
}

impl Memcgs {
    /// How long a task of `memcg` sleeps that has charged `pages` since it was last in user mode, if at all. Counts an
    /// event of each cgroup that is over its limit.
    pub fn swap_penalty(&mut self, memcg: MemcgId, pages: u64) -> Option<Nanos> {
        let batch = u64::from(self.charge_batch());
        let (mut longest, mut next) = (Nanos::ZERO, Some(memcg));
        while let Some(id) = next.filter(|&id| id != MemcgId::ROOT) {
            let swap = self[id].swap;
            if swap.high != UNLIMITED && swap.usage > swap.high {
                self.count_swap_event(id, |events| &mut events.high);
                longest = longest.max(penalty(swap.usage, swap.high, pages, batch));
            }
            next = self[id].parent;
        }
        (longest > LET_GO).then_some(longest.min(LONGEST))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::version::presets::Version;

    /// ```text
    ///   P: 1000 slots, uses what A does     P/A: no limit
    /// ```
    #[test]
    fn a_sleep_grows_with_the_square_of_what_is_over_up_to_two_seconds() {
        let mut groups = Memcgs::new(&Version::parse("linux-6.12").unwrap(), 1, 1);
        let parent = groups.create(MemcgId::ROOT, "P");
        let child = groups.create(parent, "A");
        groups.set_swap_high(parent, 1000);
        let mut used = 0;
        let mut after = |usage: u64, pages: u64| {
            assert_eq!(groups.charge_swap(child, usage - used), Ok(()));
            used = usage;
            (groups.swap_penalty(child, pages), groups[parent].swap.events.high)
        };
        let millis = |millis| Some(Nanos::from_millis(millis));
        assert_eq!(after(1000, 64), (None, 0), "not over it");
        assert_eq!(after(1010, 64), (None, 1), "6.4 ms are let go, and told all the same");
        assert_eq!(after(1020, 64), (Some(Nanos(25_600_000)), 2));
        assert_eq!(after(1100, 64), (millis(640), 3));
        assert_eq!(after(1100, 32), (millis(320), 4), "half as many pages");
        assert_eq!(after(1200, 64), (millis(2000), 5));
        assert_eq!(after(9000, 512), (millis(2000), 6));
    }

    #[test]
    fn the_worst_of_the_cgroups_above_a_task_decides_and_each_is_told() {
        let mut groups = Memcgs::new(&Version::parse("linux-6.12").unwrap(), 1, 1);
        let parent = groups.create(MemcgId::ROOT, "P");
        let child = groups.create(parent, "A");
        groups.set_swap_high(parent, 2000);
        groups.set_swap_high(child, 2100);
        assert_eq!(groups.charge_swap(child, 2200), Ok(()));
        assert_eq!(groups.swap_penalty(child, 64), Some(Nanos::from_millis(640)), "a tenth of P's");
        let events = [child, parent].map(|id| groups[id].swap.events.high);
        assert_eq!(events, [1, 2], "P's file tells of A, too");
        groups.set_swap_high(parent, 0);
        assert_eq!(groups.swap_penalty(child, 64), Some(LONGEST), "no swap at all");
    }
}
