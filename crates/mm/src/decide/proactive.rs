//! What a write to `memory.reclaim` does (`memory_reclaim`; SWAP 6.4): runs of limit reclaim until as much is
//! freed as was asked for, or 16 of them came to nothing.
//!
//! ```text
//!   5.19   the whole rest is the target of each run: one that goes low visits all cgroups, and frees
//!          up to its target in each
//!   6.11   a quarter of the rest, at least a chunk; from now on with a swappiness of its own
//!   6.16   that may be `max`: anonymous memory alone
//! ```
//! Neighbours: [`super::priority`] for a run.

use crate::reclaim::run::{MAX_RECLAIM_RETRIES, SWAP_CLUSTER_MAX};
use crate::version::rules::{ProactiveReclaim, Rules};

/// What a write does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum ProactiveNext {
    /// A run with this target; the batches before the lists of all CPUs are emptied first if `drain`.
    Reclaim {
        /// Pages that are enough.
        pages: u64,
        /// It is the last try.
        drain: bool,
    },
    /// As much was freed.
    Done,
    /// It could not be: `EAGAIN`.
    FallsShort,
}

/// A write on its way.
#[derive(Debug, Clone, Copy)]
pub struct Proactive {
    left: u64,
    retries: u32,
    divisor: u64,
}

impl Proactive {
    /// `pages` are to be freed; none where the kernel has no such file.
    pub fn new(rules: &Rules, pages: u64) -> Option<Self> {
        let divisor = match rules.proactive_reclaim {
            ProactiveReclaim::None => return None,
            ProactiveReclaim::Whole => 1,
            ProactiveReclaim::Quarters | ProactiveReclaim::QuartersOrAnon => 4,
        };
        Some(Self { left: pages, retries: MAX_RECLAIM_RETRIES, divisor })
    }

    /// The next step, after a run that freed so many pages; 0 at first.
    pub fn step(&mut self, freed: Option<u64>) -> ProactiveNext {
        self.left = self.left.saturating_sub(freed.unwrap_or(0));
        if self.left == 0 {
            return ProactiveNext::Done;
        }
        if freed == Some(0) {
            if self.retries == 0 {
                return ProactiveNext::FallsShort;
            }
            self.retries -= 1;
        }
        let pages = (self.left / self.divisor).max(SWAP_CLUSTER_MAX);
        ProactiveNext::Reclaim { pages, drain: self.retries == 0 }
    }
}

#[cfg(test)]
mod tests {
    use std_alloc::vec::Vec;

    use super::*;
    use crate::version::presets::Version;

    /// Targets of the runs that free as much as `frees` says, and how it ended.
    fn walk(kernel: &str, pages: u64, frees: impl Fn(u64) -> u64) -> (Vec<u64>, ProactiveNext) {
        let rules = Version::parse(kernel).unwrap().rules;
        let (mut run, mut targets, mut freed) = (Proactive::new(&rules, pages).unwrap(), Vec::new(), None);
        loop {
            match run.step(freed) {
                ProactiveNext::Reclaim { pages, drain } => {
                    targets.push(pages);
                    assert_eq!(drain, targets.len() > 16 && frees(pages) == 0);
                    freed = Some(frees(pages));
                }
                end => return (targets, end),
            }
        }
    }

    #[test]
    fn all_that_is_left_is_asked_of_a_run_since_6_11_a_quarter_of_it() {
        let all = |pages| pages;
        assert_eq!(walk("linux-6.1", 8192, all), ([8192].to_vec(), ProactiveNext::Done));
        assert_eq!(walk("linux-6.1", 8192, |_| 4000).0, [8192, 4192, 192]);
        let (targets, end) = walk("linux-6.12", 8192, all);
        assert_eq!((&targets[..4], end), (&[2048, 1536, 1152, 864][..], ProactiveNext::Done));
        assert_eq!(targets.last(), Some(&32), "a chunk at least");
        assert!(targets.iter().sum::<u64>() < 8192 + 32);
    }

    #[test]
    fn sixteen_runs_in_vain_are_one_too_few_and_the_seventeenth_drains() {
        let (targets, end) = walk("linux-6.1", 100, |_| 0);
        assert_eq!((targets.len(), end), (17, ProactiveNext::FallsShort));
        assert_eq!(walk("linux-6.1", 0, |_| 0), (Vec::new(), ProactiveNext::Done));
        assert!(Proactive::new(&Version::parse("linux-5.10").unwrap().rules, 1).is_none());
    }
}
