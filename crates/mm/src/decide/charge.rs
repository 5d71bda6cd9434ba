//! What a charge does at a limit that stands in its way (`try_charge_memcg`; MECHANISMS 8.2,
//! MECHANISMS-6X 4.1).
//!
//! ```text
//!   charge --over--> reclaim --room--> charge
//!                       +--none--> drain stocks, retry while there was progress or retries are left
//!                                  then the OOM killer, and from the beginning
//! ```
//! Left out: what is paid above `memory.high` ([`super::over_high`]). Neighbours: [`crate::cgroup::charge`] for one
//! try,
//! [`super::priority`] for the reclaim.

use units::CpuId;

use crate::base::gfp::Gfp;
use crate::base::ids::MemcgId;
use crate::cgroup::tree::{Charge, Memcgs};

/// Charges of up to this many pages are repeated as long as reclaim makes progress
/// (1 << `PAGE_ALLOC_COSTLY_ORDER`).
const SMALL_CHARGE_PAGES: u32 = 8;

/// What came of the last step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing was asked for yet.
    Start,
    /// So many pages were freed.
    Reclaimed(u64),
    /// Whether a task was killed.
    Killed(bool),
}

/// What a charge does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Next {
    /// Reclaim below this cgroup, whose limit was hit.
    Reclaim(MemcgId),
    /// Kill a task below this cgroup.
    Kill(MemcgId),
    /// The pages are charged.
    Done,
    /// No room, and nothing more to try.
    Fail,
}

/// A charge on its way.
#[derive(Debug, Clone, Copy)]
pub struct ChargeLoop {
    memcg: MemcgId,
    pages: u32,
    gfp: Gfp,
    batch: u32,
    retries: u32,
    retries_at_first: u32,
    drained: bool,
    /// The cgroup whose limit stood in the way last.
    over: MemcgId,
}

impl ChargeLoop {
    /// A charge of `pages` to `memcg`. `retries`: rounds of reclaim without progress before somebody
    /// is killed.
    pub fn new(memcgs: &Memcgs, memcg: MemcgId, pages: u32, gfp: Gfp, retries: u32) -> Self {
        let batch = memcgs.charge_batch();
        let (drained, over) = (false, memcg);
        Self { memcg, pages, gfp, batch, retries, retries_at_first: retries, drained, over }
    }

    /// Pages that were charged at once, if they were not in stock.
    pub const fn at_once(&self) -> u32 {
        if self.batch > self.pages { self.batch } else { self.pages }
    }

    /// The next step, for a task on `cpu`; `dying`: it was killed, and may pass any limit.
    pub fn step(&mut self, memcgs: &mut Memcgs, cpu: CpuId, dying: bool, outcome: Outcome) -> Next {
        match outcome {
            Outcome::Start | Outcome::Killed(true) => {}
            Outcome::Killed(false) => return Next::Fail,
            Outcome::Reclaimed(freed) => {
                if let Some(next) = self.after_reclaim(memcgs, freed) {
                    return next;
                }
            }
        }
        match memcgs.try_charge(cpu, self.memcg, self.pages, self.batch) {
            Charge::Done => return Next::Done,
            Charge::Over(over) => self.over = over,
        }
        self.batch = self.pages;
        if dying {
            memcgs.charge_by_force(self.memcg, u64::from(self.pages));
            return Next::Done;
        }
        if !self.gfp.has(Gfp::DIRECT_RECLAIM) {
            return Next::Fail;
        }
        memcgs.count_event(self.over, |events| &mut events.max);
        Next::Reclaim(self.over)
    }

    /// What follows a round of reclaim; none: charge again.
    fn after_reclaim(&mut self, memcgs: &mut Memcgs, freed: u64) -> Option<Next> {
        if memcgs.margin(self.over) >= u64::from(self.pages) {
            return None;
        }
        if !self.drained {
            memcgs.drain_all_stocks(self.over);
            self.drained = true;
            return None;
        }
        if self.gfp.has(Gfp::NORETRY) {
            return Some(Next::Fail);
        }
        if freed > 0 && self.pages <= SMALL_CHARGE_PAGES {
            return None;
        }
        if self.retries > 0 {
            self.retries -= 1;
            return None;
        }
        if self.gfp.has(Gfp::RETRY_MAYFAIL) {
            return Some(Next::Fail);
        }
        memcgs.count_event(self.over, |events| &mut events.oom);
        self.retries = self.retries_at_first;
        Some(Next::Kill(self.over))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cgroup::tree::Limit;
    use crate::version::presets::Version;

    const CPU: CpuId = CpuId(0);
    const RETRIES: u32 = 3;

    /// A cgroup that may use 64 pages and uses all of them.
    fn full() -> (Memcgs, MemcgId) {
        let mut memcgs = Memcgs::new(&Version::parse("linux-6.1").unwrap(), 1, 1);
        let group = memcgs.create(MemcgId::ROOT, "A");
        memcgs.set_limit(group, Limit::Max, 64);
        memcgs.charge_by_force(group, 64);
        (memcgs, group)
    }

    /// Walks a charge of `pages` through rounds of reclaim that free `freed` pages each, all of which
    /// others use again. Returns the rounds until somebody is to be killed or the charge ends, at most
    /// 100, each of which hit the limit once; who may not reclaim is not counted.
    fn rounds(pages: u32, gfp: Gfp, freed: u64) -> (u32, Next) {
        let (mut memcgs, group) = full();
        let mut charge = ChargeLoop::new(&memcgs, group, pages, gfp, RETRIES);
        let mut next = charge.step(&mut memcgs, CPU, false, Outcome::Start);
        let mut rounds = 0;
        while next == Next::Reclaim(group) && rounds < 100 {
            rounds += 1;
            next = charge.step(&mut memcgs, CPU, false, Outcome::Reclaimed(freed));
        }
        let hits = rounds + u32::from(next == Next::Reclaim(group));
        assert_eq!(memcgs[group].events.max, u64::from(hits));
        (rounds, next)
    }

    #[test]
    fn a_charge_is_repeated_while_reclaim_makes_progress_if_it_is_small() {
        let (_, group) = full();
        // One round after which stocks are drained, RETRIES more, and the one that gives up.
        let kill = (RETRIES + 2, Next::Kill(group));
        for (pages, gfp, freed, expected) in [
            (1, Gfp::KERNEL, 0, kill),
            (8, Gfp::KERNEL, 7, (100, Next::Reclaim(group))),
            (9, Gfp::KERNEL, 7, kill),
            (1, Gfp::KERNEL | Gfp::NORETRY, 7, (2, Next::Fail)),
            (1, Gfp::KERNEL | Gfp::RETRY_MAYFAIL, 0, (RETRIES + 2, Next::Fail)),
            (1, Gfp::KERNEL.without(Gfp::DIRECT_RECLAIM), 0, (0, Next::Fail)),
        ] {
            assert_eq!(rounds(pages, gfp, freed), expected, "{pages} pages, {gfp:?}, {freed} freed");
        }
    }

    #[test]
    fn room_ends_it_and_a_killed_task_needs_none() {
        let (mut memcgs, group) = full();
        let mut charge = ChargeLoop::new(&memcgs, group, 1, Gfp::KERNEL, RETRIES);
        assert_eq!(charge.step(&mut memcgs, CPU, false, Outcome::Start), Next::Reclaim(group));
        memcgs.uncharge(group, 1);
        assert_eq!(charge.step(&mut memcgs, CPU, false, Outcome::Reclaimed(1)), Next::Done);
        assert_eq!(memcgs[group].memory.usage, 64);

        let mut charge = ChargeLoop::new(&memcgs, group, 1, Gfp::KERNEL, RETRIES);
        assert_eq!(charge.step(&mut memcgs, CPU, true, Outcome::Start), Next::Done);
        assert_eq!(memcgs[group].memory.usage, 65, "beyond the limit");
    }

    #[test]
    fn room_for_just_the_charge_ends_it_even_for_a_task_that_does_not_retry() {
        let (mut memcgs, group) = full();
        let mut charge = ChargeLoop::new(&memcgs, group, 2, Gfp::KERNEL | Gfp::NORETRY, RETRIES);
        assert_eq!(charge.step(&mut memcgs, CPU, false, Outcome::Start), Next::Reclaim(group));
        assert_eq!(
            charge.step(&mut memcgs, CPU, false, Outcome::Reclaimed(0)),
            Next::Reclaim(group),
            "drained"
        );
        memcgs.uncharge(group, 2);
        assert_eq!(charge.step(&mut memcgs, CPU, false, Outcome::Reclaimed(2)), Next::Done);
    }

    #[test]
    fn the_oom_killer_gives_a_charge_new_retries_and_none_left_to_kill_ends_it() {
        let (mut memcgs, group) = full();
        let mut charge = ChargeLoop::new(&memcgs, group, 1, Gfp::KERNEL, RETRIES);
        let mut outcome = Outcome::Start;
        let (mut rounds, mut kills) = (0, 0);
        let end = loop {
            outcome = match charge.step(&mut memcgs, CPU, false, outcome) {
                Next::Reclaim(_) => {
                    rounds += 1;
                    Outcome::Reclaimed(0)
                }
                Next::Kill(_) => {
                    kills += 1;
                    Outcome::Killed(kills < 3)
                }
                end => break end,
            }
        };
        assert_eq!((end, kills, memcgs[group].events.oom), (Next::Fail, 3, 3));
        // The stocks are drained once; then each kill costs RETRIES + 1 rounds.
        assert_eq!(rounds, 1 + 3 * (RETRIES + 1));
    }
}
