//! A run of direct reclaim that has nothing to free, in one step.
//!
//! Tasks that may not enter the filesystem (`GFP_NOFS`) and meet memory full of inodes go through all priorities on all
//! nodes, free nothing and begin anew, a hundred thousand times a second on 16 CPUs. All that comes of a pass is
//! what the super block's shrinker owes for it (`SHRINK_STOP`, which adds to `nr_deferred`), and since 6.12 where its
//! walk stopped. This does just that for all passes of a run together: the result is the same, to the last number.
//!
//! Left out: cgroups, swap, generations, kernels that pause in such a run, those that press slab by scan or save a
//! position for each priority, and blocks that compaction may make; they go the long way. Neighbours:
//! [`super::priority`] for the run, [`crate::reclaim::pass`] for a pass.

use units::CpuId;

use crate::alloc::pcp::COSTLY_ORDER;
use crate::base::event::Trace;
use crate::base::ids::MemcgId;
use crate::decide::priority::{Escalation, run_zones};
use crate::lru::lists::LruList;
use crate::memory::Memory;
use crate::reclaim::run::{DEF_PRIORITY, Reclaimer, ScanControl};
use crate::version::rules::{Backoff, DirectPause, LruKind, MemcgWalk, SlabPressure, Throttle};

/// Passes over a node in one round of a run: one at each priority.
const PASSES: u64 = DEF_PRIORITY as u64 + 1;

impl<T: Trace> Memory<T> {
    /// Goes through with `run`, which has not begun, for a task on `cpu`: the passes that it made, each over one
    /// cgroup. None, and nothing has changed, when it may find something to free.
    pub fn run_idle(&mut self, run: &mut Escalation, cpu: CpuId) -> Option<u64> {
        if !self.has_nothing_for(&run.sc, cpu) {
            return None;
        }
        let rounds = run.go_through_in_vain(self, cpu);
        let Self { core, cache, fs, reclaim, .. } = self;
        core.cgroups.flush_for_reclaim(MemcgId::ROOT);
        for &node in run.nodes() {
            if core.rules().memcg_walk == MemcgWalk::Partial {
                reclaim.walk_root_alone(node, PASSES); // The second round walks the whole tree.
            }
            reclaim.owe_in_vain(core, cache, fs, node, rounds);
        }
        for node in self.nodes() {
            self.snapshot_refaults(MemcgId::ROOT, node);
        }
        Some(rounds * PASSES * run.nodes().len() as u64)
    }

    fn has_nothing_for(&self, sc: &ScanControl, cpu: CpuId) -> bool {
        let rules = self.core.rules();
        let goes_through = sc.reclaimer == Reclaimer::Direct
            && sc.order <= COSTLY_ORDER
            && rules.lru == LruKind::TwoLists
            && rules.direct_pause == DirectPause::None
            && rules.slab_pressure == SlabPressure::ByPriority
            && rules.memcg_walk != MemcgWalk::Shared
            && rules.backoff != Backoff::PressureWait;
        goes_through
            && self.core.swap.total_pages() == 0
            && self.core.cgroups.ids().nth(1).is_none()
            && self.nodes().all(|node| {
                let lists = [LruList::InactiveFile, LruList::ActiveFile];
                let lruvec = self.lru.lruvec(MemcgId::ROOT, node);
                lists.iter().all(|&list| lruvec.size(list, sc.reclaim_idx) == 0)
                    && !(rules.throttle == Throttle::ReclaimThrottle && self.waiting_helps(node, sc))
                    && self.reclaim.has_nothing_to_shrink(&self.core, &self.cache, &self.fs, node, sc)
            })
            && run_zones(self, sc, cpu).iter().all(|&zone| !self.is_unreclaimable(zone))
    }
}

#[cfg(test)]
mod tests {
    use std_alloc::{format, vec};

    use units::{NodeId, Order, Pages};

    use super::*;
    use crate::base::event::NoTrace;
    use crate::base::gfp::Gfp;
    use crate::base::layout::{HugeSupport, MemoryLayout, ZoneKind};
    use crate::decide::priority::Next;
    use crate::decide::scene::{add_dirty_page, add_file_page, boot, machine};
    use crate::decide::throttle::{AfterNode, AfterPass};
    use crate::reclaim::plan::Shrinker;

    const CPU: CpuId = CpuId(0);

    /// As the kernel's driver goes through with a run, without paying: the passes.
    fn the_long_way(mem: &mut Memory<NoTrace>, run: &mut Escalation) -> u64 {
        let mut passes = 0;
        loop {
            let node = match run.step(mem, CPU) {
                Next::Shrink(node) => node,
                Next::Done(freed) => {
                    assert_eq!(freed, 0);
                    return passes;
                }
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
            assert_eq!(mem.after_pass(node, sc, 0), AfterPass::GoOn);
            assert_eq!(mem.after_node(node, sc), AfterNode::GoOn);
        }
    }

    /// A machine of two nodes with evicted inodes, and before it walks that stopped at the root, or not.
    fn two_nodes(kernel: &str, inodes: u32, stopped: bool) -> Memory<NoTrace> {
        let [near, far] = [(); 2].map(|()| MemoryLayout::flat(Pages(16_384), 2).nodes[0].clone());
        let mut mem =
            boot(kernel, &MemoryLayout { nodes: vec![near, far], cpus: 2, huge_pages: HugeSupport::Off });
        for number in 0..inodes {
            let mapping = mem.mapping_create();
            mem.fs.vfs.reclaimable.add(number, mapping);
        }
        let mut sc = ScanControl::direct(ZoneKind::Normal);
        if stopped {
            let mut walk = mem.begin_pass(NodeId(1), &mut sc);
            assert_eq!(mem.next_memcg(&mut walk, None, &mut sc), Some(MemcgId::ROOT));
        }
        mem
    }

    #[test]
    fn a_run_without_anything_to_free_comes_to_what_its_passes_come_to() {
        let inodes = [("linux-5.7", 0), ("linux-5.7", 5_000), ("linux-5.10", 5_000), ("linux-6.1", 5_000)];
        for (kernel, inodes) in inodes.into_iter().chain([("linux-6.12", 0), ("linux-6.12", 5_000)]) {
            for (order, stopped, gfp) in [
                (Order(0), false, Gfp::NOFS),
                (Order(1), true, Gfp::NOFS),
                (Order(0), true, if inodes == 0 { Gfp::KERNEL } else { Gfp::NOFS }),
            ] {
                let mut mem = two_nodes(kernel, inodes, stopped);
                let mut other = mem.clone();
                let [mut run, mut long] = [(); 2].map(|()| Escalation::direct(gfp, order));
                let passes = mem.run_idle(&mut run, CPU);
                assert_eq!(passes, Some(the_long_way(&mut other, &mut long)), "{kernel}, {order:?}");
                assert_eq!(format!("{mem:?}"), format!("{other:?}"), "{kernel}, {order:?}");
                assert!(run.passes().iter().eq(long.passes().iter()), "{kernel}, {order:?}");
            }
        }
    }

    #[test]
    fn where_something_can_be_freed_or_the_filesystem_entered_nothing_is_done() {
        let mut with_page = machine("linux-5.7");
        add_file_page(&mut with_page, CPU);
        with_page.lru_drain_all();
        // Still on its way to a list, a dirty page makes waiting worth it.
        let mut waits = machine("linux-6.12");
        add_dirty_page(&mut waits);
        let cases = [
            (with_page, Gfp::NOFS, Order(0)),
            (waits, Gfp::NOFS, Order(0)),
            (two_nodes("linux-5.7", 1, false), Gfp::KERNEL, Order(0)),
            (machine("linux-5.4"), Gfp::NOFS, Order(0)),
            (machine("linux-2.6.32"), Gfp::NOFS, Order(0)),
            (machine("linux-5.7"), Gfp::NOFS, Order(4)),
        ];
        for (mut mem, gfp, order) in cases {
            let before = format!("{mem:?}");
            assert_eq!(mem.run_idle(&mut Escalation::direct(gfp, order), CPU), None);
            assert_eq!(format!("{mem:?}"), before);
        }
    }
}
