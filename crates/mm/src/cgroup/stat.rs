//! Statistics of cgroups: live counters, and what readers see of them (MECHANISMS-6X 4.3).
//!
//! Left out: the per-CPU batches below a counter (a few pages at most). Neighbours: [`super`] for
//! the tree, [`crate::reclaim::pass`] for who reads.

use units::NodeId;

use crate::base::ids::MemcgId;
use crate::base::vmstat::MemcgStat;
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
    }

    /// Subtracts from a counter of `memcg`'s own pages on `node`.
    #[inline]
    pub fn sub_stat(&mut self, memcg: MemcgId, node: NodeId, stat: MemcgStat, n: u64) {
        let slot = self.slot(memcg, node);
        self.stats[slot].local[stat as usize] -= n;
        self.pending += n;
    }

    /// A counter of `memcg`'s own pages on `node`, exact.
    #[inline]
    pub fn local_stat(&self, memcg: MemcgId, node: NodeId, stat: MemcgStat) -> u64 {
        self.stats[self.slot(memcg, node)].local[stat as usize]
    }

    /// A counter of the subtree below `memcg` on `node`, exact.
    pub fn live_stat(&self, memcg: MemcgId, node: NodeId, stat: MemcgStat) -> u64 {
        if memcg == MemcgId::ROOT {
            return (0..self.list.len())
                .map(|index| self.stats[(index * self.nodes) + node.index()].local[stat as usize])
                .sum();
        }
        let below: u64 = self[memcg].children.iter().map(|&id| self.live_stat(id, node, stat)).sum();
        below + self.local_stat(memcg, node, stat)
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
        // Children come after their parents in creation order, so summing backwards is enough.
        for index in (0..self.list.len()).rev() {
            let id = MemcgId(u16::try_from(index).expect("checked at creation"));
            if !self.is_descendant(id, root) {
                continue;
            }
            for node in 0..self.nodes {
                let mut sum = self.stats[(index * self.nodes) + node].local;
                for child in &self.list[index].children {
                    let below = &self.stats[(child.index() * self.nodes) + node].seen;
                    for (total, part) in sum.iter_mut().zip(below) {
                        *total += part;
                    }
                }
                self.stats[(index * self.nodes) + node].seen = sum;
            }
        }
        if root == MemcgId::ROOT {
            self.pending = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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
}
