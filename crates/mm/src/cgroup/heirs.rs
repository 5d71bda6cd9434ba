//! Removed cgroups that leave nothing behind: what is charged to them becomes their parent's (since 7.1,
//! MECHANISMS-510-72 4.5).
//!
//! Kernel objects remember who paid for them and are given back to whoever inherited the debt. Left out: events of the
//! removed cgroup, which stay with it; slots of swap areas. Neighbours: [`crate::memory`] also moves the lists.

use units::NodeId;

use crate::base::ids::MemcgId;
use crate::base::vmstat::MemcgStat;
use crate::cgroup::tree::Memcgs;

impl Memcgs {
    /// Who pays now for what was charged to `memcg`: itself, unless it handed everything over.
    #[inline]
    pub fn heir(&self, memcg: MemcgId) -> MemcgId {
        let mut heir = memcg;
        while let Some(next) = self.list[heir.index()].heir {
            heir = next;
        }
        heir
    }

    /// Makes all that is charged to `memcg` and counted for it its parent's.
    pub(crate) fn hand_over(&mut self, memcg: MemcgId, parent: MemcgId) {
        self.drain_all_stocks(memcg);
        for node in 0..self.nodes {
            let node = NodeId(u8::try_from(node).expect("nodes are numbered in 8 bits"));
            for &stat in MemcgStat::ALL {
                let count = self.local_stat(memcg, node, stat);
                self.sub_stat(memcg, node, stat, count);
                // The root pays for no kernel memory.
                if parent != MemcgId::ROOT || stat != MemcgStat::KernelBytes {
                    self.add_stat(parent, node, stat, count);
                }
            }
        }
        let usage = self[memcg].memory.usage;
        if parent == MemcgId::ROOT {
            self.uncharge(memcg, usage);
        } else {
            self.set_usage(memcg, |_| 0);
            // What the two have of a page each may be a whole one together.
            let rest = core::mem::take(&mut self.list[memcg.index()].object_rest);
            self.give_back_objects(parent, rest);
        }
        self.list[memcg.index()].object_rest = 0;
        self.list[memcg.index()].heir = Some(parent);
    }
}

#[cfg(test)]
mod tests {
    use units::{CpuId, PAGE_SIZE};

    use super::*;
    use crate::version::presets::Version;

    const HERE: CpuId = CpuId(0);

    #[test]
    fn a_parent_inherits_pages_objects_and_the_debt_for_them() {
        let mut tree = Memcgs::new(&Version::parse("linux-7.2").unwrap(), 1, 2);
        let parent = tree.create(MemcgId::ROOT, "P");
        let (child, other) = (tree.create(parent, "A"), tree.create(parent, "B"));
        let _ = tree.try_charge(HERE, child, 3, 64);
        tree.add_stat(child, NodeId(0), MemcgStat::File, 3);
        for memcg in [child, other] {
            tree.charge_by_force(memcg, 1);
            tree.object_pages_charged(HERE, memcg, 1);
            assert!(tree.consume_object_stock(HERE, memcg, 592));
        }
        tree.remove(child);
        tree.hand_over(child, parent);
        let usage = |tree: &Memcgs| [parent, child, other].map(|memcg| tree[memcg].memory.usage);
        assert_eq!(usage(&tree), [5, 0, 1], "3 pages, and 1 for an object each");
        let kernel = |tree: &Memcgs| tree.live_stat(parent, NodeId(0), MemcgStat::KernelBytes) / PAGE_SIZE;
        assert_eq!((kernel(&tree), tree.local_stat(parent, NodeId(0), MemcgStat::File)), (2, 3));
        assert_eq!([parent, child].map(|memcg| tree.heir(memcg)), [parent; 2]);
        tree.uncharge_object(HERE, tree.heir(child), 592);
        tree.drain_all_stocks(MemcgId::ROOT);
        assert_eq!((usage(&tree), kernel(&tree)), ([4, 0, 1], 1));
    }

    #[test]
    fn the_root_inherits_without_paying() {
        let mut tree = Memcgs::new(&Version::parse("linux-7.2").unwrap(), 1, 2);
        let child = tree.create(MemcgId::ROOT, "A");
        let _ = tree.try_charge(HERE, child, 3, 64);
        tree.object_pages_charged(HERE, child, 1);
        tree.charge_by_force(child, 1);
        assert!(tree.consume_object_stock(HERE, child, 592));
        tree.remove(child);
        tree.hand_over(child, MemcgId::ROOT);
        assert_eq!(tree.heir(child), MemcgId::ROOT);
        assert_eq!([MemcgId::ROOT, child].map(|memcg| tree[memcg].memory.usage), [0, 0]);
        assert_eq!(tree.live_stat(MemcgId::ROOT, NodeId(0), MemcgStat::KernelBytes), 0);
    }
}
