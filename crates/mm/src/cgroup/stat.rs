//! Statistics of cgroups: live counters, and what readers see of them (MECHANISMS-6X 4.3).
//!
//! ```text
//!   own pages change --> local, at once
//!   flush            --> seen = local + what is seen of the children; a parent keeps the sum of these
//! ```
//! A flush visits only what changed since the last one, as the kernel's does, so its cost does not
//! grow with the cgroups that rest. Where the kernel's counters are always exact, the few that reclaim
//! reads go up the tree with each change.
//!
//! Left out: the per-CPU batches below a counter (a few pages at most). Neighbours: [`super`] for
//! the tree, [`crate::reclaim::pass`] for who reads.

use units::NodeId;

use crate::base::ids::MemcgId;
use crate::base::vmstat::MemcgStat;
use crate::cgroup::counters::is_kept_live;
use crate::cgroup::tree::Memcgs;
use crate::version::rules::StatFreshness;

impl Memcgs {
    #[inline]
    fn slot(&self, memcg: MemcgId, node: NodeId) -> usize {
        (memcg.index() * self.nodes) + node.index()
    }

    /// Adds to a counter of `memcg`'s own pages on `node`.
    #[inline]
    pub fn add_stat(&mut self, memcg: MemcgId, node: NodeId, stat: MemcgStat, n: u64) {
        let slot = self.slot(memcg, node);
        self.stats[slot].local[stat as usize] += n;
        self.pending += n;
        self.note_change(slot, stat, n);
    }

    /// Subtracts from a counter of `memcg`'s own pages on `node`.
    #[inline]
    pub fn sub_stat(&mut self, memcg: MemcgId, node: NodeId, stat: MemcgStat, n: u64) {
        let slot = self.slot(memcg, node);
        self.stats[slot].local[stat as usize] -= n;
        self.pending += n;
        self.note_change(slot, stat, n.wrapping_neg());
    }

    /// A counter changed by `by`, modulo 2^64.
    #[inline]
    fn note_change(&mut self, slot: usize, stat: MemcgStat, by: u64) {
        if self.keeps_live {
            if is_kept_live(stat) {
                self.add_live(slot, stat, by);
            }
        } else if !self.stats[slot].is_stale {
            self.mark_stale(slot);
        }
    }

    fn add_live(&mut self, slot: usize, stat: MemcgStat, by: u64) {
        let mut next = Some(slot);
        while let Some(slot) = next {
            let seen = &mut self.stats[slot].seen[stat as usize];
            *seen = seen.wrapping_add(by);
            next = self.slot_above(slot);
        }
    }

    /// Notes that a flush has to look at `slot` and at those above.
    #[cold]
    fn mark_stale(&mut self, slot: usize) {
        let mut next = Some(slot);
        while let Some(slot) = next.filter(|&slot| !self.stats[slot].is_stale) {
            self.stats[slot].is_stale = true;
            self.stale.push(u32::try_from(slot).expect("65536 cgroups on 256 nodes at most"));
            next = self.slot_above(slot);
        }
    }

    fn slot_above(&self, slot: usize) -> Option<usize> {
        let (memcg, node) = (slot / self.nodes, slot % self.nodes);
        self.list[memcg].parent.map(|parent| (parent.index() * self.nodes) + node)
    }

    /// A counter of `memcg`'s own pages on `node`, exact.
    #[inline]
    pub fn local_stat(&self, memcg: MemcgId, node: NodeId, stat: MemcgStat) -> u64 {
        self.stats[self.slot(memcg, node)].local[stat as usize]
    }

    /// A counter of the subtree below `memcg` on `node`, exact: a sum over the subtree where it is not
    /// kept.
    pub fn live_stat(&self, memcg: MemcgId, node: NodeId, stat: MemcgStat) -> u64 {
        if self.keeps_live && is_kept_live(stat) {
            return self.stats[self.slot(memcg, node)].seen[stat as usize];
        }
        self.subtree(memcg).iter().map(|&id| self.local_stat(id, node, stat)).sum()
    }

    /// A counter of the subtree on `node` as reclaim sees it: see [`StatFreshness`].
    pub fn reclaim_stat(&self, memcg: MemcgId, node: NodeId, stat: MemcgStat) -> u64 {
        match self.freshness {
            StatFreshness::Live => self.live_stat(memcg, node, stat),
            _ => self.stats[self.slot(memcg, node)].seen[stat as usize],
        }
    }

    /// A counter of the subtree over all nodes, as a reader of `memory.stat` sees it. Call
    /// [`Self::flush_for_read`] before.
    pub fn read_stat(&self, memcg: MemcgId, stat: MemcgStat) -> u64 {
        (0..self.nodes)
            .map(|node| {
                let node = NodeId(u8::try_from(node).expect("nodes are numbered in 8 bits"));
                self.reclaim_stat(memcg, node, stat)
            })
            .sum()
    }

    /// Flushes before a reclaim pass if the kernel would: 6.1 does once the pending updates exceed
    /// its threshold, 6.12 leaves it to the 2 s worker.
    pub fn flush_for_reclaim(&mut self) {
        // Each CPU passes on its updates in units of more than 64, and a flush happens when the
        // units exceed the number of CPUs.
        let threshold = 65 * (self.stocks.len() as u64 + 1);
        if self.freshness == StatFreshness::Threshold && self.pending >= threshold {
            self.flush(MemcgId::ROOT);
        }
    }

    /// Flushes the subtree of `memcg` for a reader of its `memory.stat`.
    pub fn flush_for_read(&mut self, memcg: MemcgId) {
        let root = if self.freshness == StatFreshness::Threshold { MemcgId::ROOT } else { memcg };
        self.flush(root);
    }

    /// Flushes the whole tree: what the 2 s worker does.
    pub fn flush_periodic(&mut self) {
        self.flush(MemcgId::ROOT);
    }

    fn flush(&mut self, root: MemcgId) {
        if self.freshness == StatFreshness::Live {
            return;
        }
        // Children come after their parents in creation order: backwards, each is looked at before its
        // parent.
        self.stale.sort_unstable();
        let mut stale = core::mem::take(&mut self.stale);
        for &slot in stale.iter().rev() {
            if self.is_below(slot, root) {
                self.settle(slot as usize);
            }
        }
        stale.retain(|&slot| !self.is_below(slot, root));
        self.stale = stale;
        if root == MemcgId::ROOT {
            self.pending = 0;
        }
    }

    fn is_below(&self, slot: u32, root: MemcgId) -> bool {
        let memcg = slot as usize / self.nodes;
        self.is_descendant(MemcgId(u16::try_from(memcg).expect("checked at creation")), root)
    }

    /// Lets readers see what is known of a place, and its parent know what is seen.
    fn settle(&mut self, slot: usize) {
        let stats = &mut self.stats[slot];
        stats.is_stale = false;
        let before = stats.seen;
        for (seen, (local, below)) in stats.seen.iter_mut().zip(stats.local.iter().zip(&stats.below)) {
            *seen = local + below;
        }
        let after = stats.seen;
        if let Some(above) = self.slot_above(slot) {
            let parts = before.iter().zip(&after);
            for (below, (before, after)) in self.stats[above].below.iter_mut().zip(parts) {
                *below = *below - before + after;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std_alloc::vec::Vec;

    use crate::version::presets::Version;

    fn tree(kernel: &str) -> Memcgs {
        Memcgs::new(&Version::parse(kernel).unwrap(), 1, 2)
    }

    #[test]
    fn six_twelve_sees_old_numbers_until_somebody_flushes() {
        let mut tree = tree("linux-6.12");
        let parent = tree.create(MemcgId::ROOT, "P");
        let child = tree.create(parent, "A");
        let see = |tree: &Memcgs, id| tree.reclaim_stat(id, NodeId(0), MemcgStat::InactiveFile);
        tree.add_stat(child, NodeId(0), MemcgStat::InactiveFile, 1000);
        tree.flush_for_reclaim();
        assert_eq!(see(&tree, parent), 0);
        tree.flush_for_read(parent);
        assert_eq!(
            (see(&tree, parent), see(&tree, MemcgId::ROOT)),
            (1000, 0),
            "a read refreshes its subtree only"
        );
        tree.flush_periodic();
        assert_eq!(see(&tree, MemcgId::ROOT), 1000);
    }

    #[test]
    fn six_one_flushes_once_enough_is_pending() {
        let mut tree = tree("linux-6.1");
        let group = tree.create(MemcgId::ROOT, "A");
        let see = |tree: &Memcgs| tree.reclaim_stat(MemcgId::ROOT, NodeId(0), MemcgStat::File);
        tree.add_stat(group, NodeId(0), MemcgStat::File, 194);
        tree.flush_for_reclaim();
        assert_eq!(see(&tree), 0);
        tree.add_stat(group, NodeId(0), MemcgStat::File, 1);
        tree.flush_for_reclaim();
        assert_eq!(see(&tree), 195);
    }

    /// Counts what a walk over the whole tree would: the flush of 6.1 before it visited changes only.
    fn sums(tree: &Memcgs, stat: MemcgStat) -> Vec<u64> {
        let sum = |id| tree.subtree(id).iter().map(|&id| tree.local_stat(id, NodeId(0), stat)).sum();
        tree.ids().map(sum).collect()
    }

    #[test]
    fn a_flush_of_what_changed_sees_what_a_flush_of_everything_would() {
        for kernel in ["linux-5.5", "linux-6.1", "linux-6.12"] {
            let mut tree = tree(kernel);
            let mut stream = units::Seed(7).stream("tree");
            let stat = MemcgStat::InactiveFile;
            for _ in 0..2000 {
                let count = tree.ids().count() as u64;
                let memcg = MemcgId(u16::try_from(stream.below(count)).unwrap());
                match stream.below(20) {
                    0 if count < 40 => {
                        tree.create(memcg, "child");
                    }
                    1 => tree.flush_for_read(memcg),
                    2..8 => {
                        let held = tree.local_stat(memcg, NodeId(0), stat);
                        tree.sub_stat(memcg, NodeId(0), stat, stream.below(held + 1));
                    }
                    _ => tree.add_stat(memcg, NodeId(0), stat, stream.below(100)),
                }
                let live: Vec<u64> = tree.ids().map(|id| tree.live_stat(id, NodeId(0), stat)).collect();
                assert_eq!(live, sums(&tree, stat), "{kernel}");
            }
            tree.flush_periodic();
            let seen: Vec<u64> = tree.ids().map(|id| tree.reclaim_stat(id, NodeId(0), stat)).collect();
            assert_eq!(seen, sums(&tree, stat), "{kernel}");
        }
    }
}
