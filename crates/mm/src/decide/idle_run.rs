//! A run of direct reclaim that has nothing to free, in one step.
//!
//! Tasks that may not enter the filesystem (`GFP_NOFS`) and meet memory full of inodes go through all priorities on all
//! nodes, free nothing and begin anew, a hundred thousand times a second on 16 CPUs. All that comes of a pass is
//! what the super block's shrinker owes for it (`SHRINK_STOP`, which adds to `nr_deferred`). This does just that,
//! without the ways by which a driver pays and waits: the result is the same, to the last number.
//!
//! Left out: cgroups, swap, kernels that pause in such a run, and those that press slab by scan; they go the long way.
//! Neighbours: [`super::priority`] for the run, [`crate::reclaim::pass`] for a pass.

use units::{CpuId, NodeId};

use crate::base::event::Trace;
use crate::base::ids::MemcgId;
use crate::decide::priority::{Escalation, Next};
use crate::lru::lists::LruList;
use crate::memory::Memory;
use crate::reclaim::plan::Shrinker;
use crate::reclaim::run::{Reclaimer, ScanControl};
use crate::version::rules::{Backoff, DirectPause, MemcgWalk, SlabPressure, Throttle};

/// What came of an idle run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IdleRun {
    /// Pages that count as freed: 1 if compaction has what it needs.
    pub freed: u64,
    /// Passes that it made, each over one cgroup.
    pub passes: u64,
}

impl<T: Trace> Memory<T> {
    /// Goes through with `run`, which has not begun, for a task on `cpu`; none, and nothing has changed, when it
    /// may find something to free.
    pub fn run_idle(&mut self, run: &mut Escalation, cpu: CpuId) -> Option<IdleRun> {
        if !self.has_nothing_for(&run.sc) {
            return None;
        }
        let mut passes = 0;
        loop {
            match run.step(self, cpu) {
                Next::Shrink(node) => {
                    passes += 1;
                    self.idle_pass(node, &mut run.sc);
                }
                Next::Done(freed) => return Some(IdleRun { freed, passes }),
                Next::WakeFlusher(_) | Next::Pause(..) => panic!("this kernel does not pause in a run"),
            }
        }
    }

    fn has_nothing_for(&self, sc: &ScanControl) -> bool {
        let rules = self.core.rules();
        let goes_through = !sc.may_fs
            && sc.reclaimer == Reclaimer::Direct
            && rules.direct_pause == DirectPause::None
            && rules.slab_pressure == SlabPressure::ByPriority
            && rules.memcg_walk == MemcgWalk::Full
            && rules.throttle == Throttle::CongestionWait
            && rules.backoff != Backoff::PressureWait;
        goes_through
            && self.core.swap.total_pages() == 0
            && self.core.cgroups.ids().nth(1).is_none()
            && self.nodes().all(|node| {
                let lists = [LruList::InactiveFile, LruList::ActiveFile];
                let lruvec = self.lru.lruvec(MemcgId::ROOT, node);
                lists.iter().all(|&list| lruvec.size(list, sc.reclaim_idx) == 0)
                    && self.reclaim.is_super_block_all(&self.core, &self.cache, &self.fs, node)
            })
    }

    fn idle_pass(&mut self, node: NodeId, sc: &mut ScanControl) {
        let _ = self.begin_pass(node, sc);
        let visit = self.begin_slab(Shrinker::SuperBlock, MemcgId::ROOT, node, sc);
        assert!(visit.is_none(), "a task that may not enter the filesystem was let in");
    }
}

#[cfg(test)]
mod tests {
    use std_alloc::format;

    use units::Order;

    use super::*;
    use crate::base::event::NoTrace;
    use crate::base::gfp::Gfp;
    use crate::decide::scene::{add_file_page, machine};

    const CPU: CpuId = CpuId(0);

    /// As the kernel's driver goes through with a run, without paying.
    fn the_long_way(mem: &mut Memory<NoTrace>, mut run: Escalation) -> IdleRun {
        let mut passes = 0;
        loop {
            let node = match run.step(mem, CPU) {
                Next::Shrink(node) => node,
                Next::Done(freed) => return IdleRun { freed, passes },
                other => panic!("{other:?}"),
            };
            let sc = &mut run.sc;
            let mut walk = mem.begin_pass(node, sc);
            let mut visited = None;
            while let Some(memcg) = mem.next_memcg(&mut walk, visited, sc) {
                visited = Some(memcg);
                passes += walk.take_steps();
                let mut scan = mem.begin_lruvec(memcg, node, sc).expect("the root is not protected");
                assert!(mem.shrink_chunk(CPU, &mut scan, sc).is_none());
                for shrinker in Shrinker::ALL {
                    assert!(mem.begin_slab(shrinker, memcg, node, sc).is_none());
                }
            }
            passes += walk.take_steps();
            mem.credit_slab(sc);
            assert!(!mem.should_continue_reclaim(node, sc, 0));
            let _ = mem.after_pass(node, sc, 0);
        }
    }

    #[test]
    fn a_run_without_anything_to_free_comes_to_what_its_passes_come_to() {
        for (kernel, inodes) in [("linux-5.7", 0), ("linux-5.7", 5_000), ("linux-5.10", 5_000)] {
            for order in [Order(0), Order(1), Order(9)] {
                let mut mem = machine(kernel);
                for number in 0..inodes {
                    let mapping = mem.mapping_create();
                    mem.fs.vfs.reclaimable.add(number, mapping);
                }
                let mut other = mem.clone();
                let run = || Escalation::direct(Gfp::NOFS, order);
                let idle = mem.run_idle(&mut run(), CPU);
                assert_eq!(idle, Some(the_long_way(&mut other, run())), "{kernel}, {order:?}");
                assert_eq!(format!("{mem:?}"), format!("{other:?}"), "{kernel}, {order:?}");
            }
        }
    }

    #[test]
    fn where_something_can_be_freed_or_the_filesystem_entered_nothing_is_done() {
        let mut with_page = machine("linux-5.7");
        add_file_page(&mut with_page, CPU);
        with_page.lru_drain_all();
        let cases = [
            (with_page, Gfp::NOFS),
            (machine("linux-5.7"), Gfp::KERNEL),
            (machine("linux-6.12"), Gfp::NOFS),
            (machine("linux-2.6.32"), Gfp::NOFS),
        ];
        for (mut mem, gfp) in cases {
            let before = format!("{mem:?}");
            assert_eq!(mem.run_idle(&mut Escalation::direct(gfp, Order(0)), CPU), None);
            assert_eq!(format!("{mem:?}"), before);
        }
    }
}
