//! The cgroup file `memory.reclaim`: memory is reclaimed because somebody asks for it, as
//! [`mm::decide::proactive`] decides (SWAP 6.4).
//!
//! Left out: the file of the root; `swappiness=max` (6.16). Neighbours: [`crate::reclaim::limit`] for a run,
//! [`super::files`] for the other files.

use mm::MemcgId;
use mm::base::event::Trace;
use mm::decide::proactive::{Proactive, ProactiveNext};
use mm::reclaim::scan_balance::swappiness_max;
use mm::version::rules::{ProactiveReclaim, Rules};
use units::{PAGE_SIZE, parse_size};

use crate::errno::Errno;
use crate::handle::Kernel;
use crate::machine::Machine;

impl<M: Machine, T: Trace> Kernel<M, T> {
    /// Writes `memory.reclaim`: `BYTES`, since 6.11 also `BYTES swappiness=N`.
    ///
    /// # Errors
    /// `NoEnt` where the version has no such file; `Inval`; `Again` when it could not free as much.
    pub(super) async fn write_memory_reclaim(&self, memcg: MemcgId, value: &str) -> Result<(), Errno> {
        let rules = self.mem(|mem| *mem.core.rules());
        let (pages, swappiness) = parse(&rules, value).ok_or(Errno::Inval)?;
        let mut write = Proactive::new(&rules, pages).ok_or(Errno::NoEnt)?;
        let mut freed = None;
        loop {
            match write.step(freed) {
                ProactiveNext::Reclaim { pages, drain } => {
                    if drain {
                        self.mem(mm::Memory::lru_drain_all);
                    }
                    freed = Some(self.proactive_reclaim(memcg, pages, swappiness).await);
                }
                ProactiveNext::Done => return Ok(()),
                ProactiveNext::FallsShort => return Err(Errno::Again),
            }
        }
    }
}

/// Pages to free, and the swappiness to do so with.
fn parse(rules: &Rules, value: &str) -> Option<(u64, Option<u64>)> {
    let mut words = value.split_whitespace();
    let pages = parse_size(words.next()?).ok()?.0 / PAGE_SIZE;
    let Some(option) = words.next() else { return Some((pages, None)) };
    let knows = rules.proactive_reclaim == ProactiveReclaim::Quarters && words.next().is_none();
    let swappiness = option.strip_prefix("swappiness=").filter(|_| knows)?.parse().ok()?;
    (swappiness <= swappiness_max(rules)).then_some((pages, Some(swappiness)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use mm::Version;

    #[test]
    fn an_amount_is_read_and_since_6_11_a_swappiness() {
        let read = |kernel, value| parse(&Version::parse(kernel).expect("a preset").rules, value);
        for kernel in ["linux-6.1", "linux-6.12"] {
            assert_eq!(read(kernel, "32M\n"), Some((8192, None)));
            for wrong in
                ["", "many", "-1", "32M please", "32M swappiness=201", "32M swappiness=-1", "32M swappiness="]
            {
                assert_eq!(read(kernel, wrong), None, "{kernel} {wrong}");
            }
        }
        assert_eq!(read("linux-6.12", "1M swappiness=0"), Some((256, Some(0))));
        assert_eq!(read("linux-6.12", "1M swappiness=200"), Some((256, Some(200))));
        assert_eq!(read("linux-6.12", "1M swappiness=1 2"), None);
        assert_eq!(read("linux-6.1", "1M swappiness=60"), None, "not yet");
    }
}
