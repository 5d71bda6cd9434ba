//! Memory is reclaimed because somebody asks for it, as [`mm::decide::proactive`] decides: the cgroup file
//! `memory.reclaim` (SWAP 6.4), and `reclaim` of a node (MECHANISMS-510-72 12).
//!
//! Of a node's file the sources tell what it takes and how it fails. So it goes on as `memory.reclaim` does, a quarter
//! of the rest at a time, and each run is as that of a task for the whole machine, on this node alone.
//!
//! Left out: the file of the root. Neighbours: [`crate::reclaim::limit`] for a run, [`super::files`] for the other
//! files.

use mm::MemcgId;
use mm::base::event::Trace;
use mm::base::sysctl::Sysctl;
use mm::decide::proactive::{Proactive, ProactiveNext};
use mm::reclaim::scan_balance::ANON_ONLY;
use mm::version::rules::{NodeReclaim, ProactiveReclaim, Rules};
use units::{NodeId, PAGE_SIZE, parse_size};

use crate::errno::Errno;
use crate::handle::Kernel;
use crate::machine::Machine;

/// Whose memory is asked for.
#[derive(Debug, Clone, Copy)]
enum Whose {
    Cgroup(MemcgId),
    Node(NodeId),
}

/// What somebody asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Asked {
    pages: u64,
    /// Instead of `vm.swappiness`.
    swappiness: Option<u64>,
}

impl<M: Machine, T: Trace> Kernel<M, T> {
    /// Writes `memory.reclaim`: `BYTES`, since 6.11 also `BYTES swappiness=N`, since 6.16 `BYTES swappiness=max`.
    ///
    /// # Errors
    /// `NoEnt` where the version has no such file; `Inval`; `Again` when it could not free as much.
    pub(super) async fn write_memory_reclaim(&self, memcg: MemcgId, value: &str) -> Result<(), Errno> {
        self.reclaim_as_asked(Whose::Cgroup(memcg), value).await
    }

    /// Writes a file of a node below `/sys/devices/system/node`: `reclaim` takes what `memory.reclaim` takes.
    ///
    /// # Errors
    /// `NoEnt` for an unknown node or file, or where the version has none; `Inval`; `Busy` while somebody else asks
    /// this node; `Again` when it could not free as much.
    pub async fn node_write(&self, node: NodeId, file: &str, value: &str) -> Result<(), Errno> {
        let has_file = self.mem(|mem| {
            mem.core.rules().node_reclaim == NodeReclaim::File && node.index() < mem.core.alloc.nodes().len()
        });
        if file != "reclaim" || !has_file {
            return Err(Errno::NoEnt);
        }
        let asked = &self.shared.nodes_asked;
        if asked.borrow().contains(&node) {
            return Err(Errno::Busy);
        }
        asked.borrow_mut().push(node);
        let written = self.reclaim_as_asked(Whose::Node(node), value).await;
        asked.borrow_mut().retain(|&other| other != node);
        written
    }

    async fn reclaim_as_asked(&self, whose: Whose, value: &str) -> Result<(), Errno> {
        let rules = self.mem(|mem| *mem.core.rules());
        let Asked { pages, swappiness } = parse(&rules, value).ok_or(Errno::Inval)?;
        let mut write = Proactive::new(&rules, pages).ok_or(Errno::NoEnt)?;
        let mut freed = None;
        loop {
            match write.step(freed) {
                ProactiveNext::Reclaim { pages, drain } => {
                    if drain {
                        self.mem(mm::Memory::lru_drain_all);
                    }
                    freed = Some(match whose {
                        Whose::Cgroup(memcg) => self.proactive_reclaim(memcg, pages, swappiness).await,
                        Whose::Node(node) => self.node_reclaim(node, pages, swappiness).await,
                    });
                }
                ProactiveNext::Done => return Ok(()),
                ProactiveNext::FallsShort => return Err(Errno::Again),
            }
        }
    }
}

fn parse(rules: &Rules, value: &str) -> Option<Asked> {
    let mut words = value.split_whitespace();
    let pages = parse_size(words.next()?).ok()?.0 / PAGE_SIZE;
    let Some(option) = words.next() else { return Some(Asked { pages, swappiness: None }) };
    let (knows, knows_max) = match rules.proactive_reclaim {
        ProactiveReclaim::None | ProactiveReclaim::Whole => (false, false),
        ProactiveReclaim::Quarters => (true, false),
        ProactiveReclaim::QuartersOrAnon => (true, true),
    };
    let text = option.strip_prefix("swappiness=").filter(|_| knows && words.next().is_none())?;
    let swappiness = match text {
        "max" if knows_max => ANON_ONLY,
        number => number.parse().ok().filter(|&number| number <= rules.sysctl_max(Sysctl::Swappiness))?,
    };
    Some(Asked { pages, swappiness: Some(swappiness) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use mm::Version;

    fn read(kernel: &str, value: &str) -> Option<(u64, Option<u64>)> {
        let rules = Version::parse(kernel).expect("a kernel").rules;
        parse(&rules, value).map(|Asked { pages, swappiness }| (pages, swappiness))
    }

    #[test]
    fn an_amount_is_read_and_since_6_11_a_swappiness() {
        for kernel in ["linux-6.1", "linux-6.12", "linux-7.2"] {
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

    #[test]
    fn since_6_16_anonymous_memory_alone_can_be_asked_for() {
        assert_eq!(read("linux-7.2", "1M swappiness=max"), Some((256, Some(ANON_ONLY))));
        assert_eq!(read("linux-7.2", "1M swappiness=max max"), None);
        for kernel in ["linux-6.1", "linux-6.12", "linux-7.2-memory-reclaim-anon-only"] {
            assert_eq!(read(kernel, "1M swappiness=max"), None, "{kernel}");
        }
    }
}
