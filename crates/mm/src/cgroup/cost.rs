//! What a cgroup costs the one above it (since 5.9): statistics for each CPU, and its own structures.
//!
//! ```text
//!   mkdir P/A P/B P/C  on CPU 1     P pays 6 pages out of a batch of 64: [P: 58] is left in stock there
//!   A, B, C at work    on CPU 0     nobody asks CPU 1 for that place, and P's limit is reached 58 pages early
//! ```
//! Small as it is, the charge is the only one of a cgroup without tasks, so the rest of its batch stays where the
//! cgroups were made: until another cgroup needs the CPU's stock, or, where a stock has places for seven, for good.
//!
//! Left out: the memory itself, of which the model has no frames; `percpu` and `slab` of `memory.stat`, so that all
//! is `kernel`. Sizes: [`crate::version::geometry::GroupCost`]. Neighbours: [`super::charge`] for objects in
//! general; the kernel's driver charges.

use units::{CpuId, PAGE_SIZE};

use crate::base::ids::MemcgId;
use crate::cgroup::tree::Memcgs;

impl Memcgs {
    /// Bytes that `payer` is charged, one after the other, for a cgroup that is made below it.
    pub fn cost_of_group(&self, payer: MemcgId) -> impl Iterator<Item = u32> + use<> {
        let is_charged = payer != MemcgId::ROOT;
        self.group_cost.into_iter().filter(move |&bytes| is_charged && bytes > 0)
    }

    /// Takes `bytes` for a cgroup that is to be made below `payer` from what the CPU holds for objects. Whole pages
    /// that it then holds go to its stock of pages (measured: guests of 6.12).
    ///
    /// # Errors
    /// How many pages must be charged for objects first.
    pub fn pay_for_group(&mut self, cpu: CpuId, payer: MemcgId, bytes: u32) -> Result<(), u32> {
        if !self.consume_object_stock(cpu, payer, bytes) {
            return Err(bytes.div_ceil(PAGE_SIZE as u32));
        }
        self.restock_whole_pages(cpu, payer);
        Ok(())
    }

    /// Notes that the cgroup above a new one paid `bytes` for it.
    pub fn note_cost(&mut self, memcg: MemcgId, bytes: u32) {
        self.list[memcg.index()].cost = bytes;
    }

    /// Gives `payer`, or who inherited its debts, `bytes` back that it paid for a cgroup.
    pub fn give_back_cost(&mut self, payer: MemcgId, bytes: u32) {
        let payer = self.heir(payer);
        if payer != MemcgId::ROOT && bytes > 0 {
            self.give_back_objects(payer, bytes);
        }
    }

    /// Gives back what was paid for a removed cgroup that has nothing left.
    pub(crate) fn release_cost(&mut self, memcg: MemcgId) {
        if self[memcg].memory.usage > 0 {
            return;
        }
        let bytes = core::mem::take(&mut self.list[memcg.index()].cost);
        if let Some(payer) = self[memcg].parent {
            self.give_back_cost(payer, bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use units::NodeId;

    use super::*;
    use crate::base::vmstat::MemcgStat;
    use crate::cgroup::tree::Charge;
    use crate::version::presets::Version;

    /// Makes a cgroup below `payer` as the kernel does on `cpu`.
    fn make(tree: &mut Memcgs, cpu: CpuId, payer: MemcgId, name: &str) -> MemcgId {
        let mut paid = 0;
        for bytes in tree.cost_of_group(payer) {
            while let Err(pages) = tree.pay_for_group(cpu, payer, bytes) {
                let batch = tree.charge_batch();
                assert_eq!(tree.try_charge(cpu, payer, pages, batch), Charge::Done);
                tree.object_pages_charged(cpu, payer, pages);
            }
            paid += bytes;
        }
        let memcg = tree.create(payer, name);
        tree.note_cost(memcg, paid);
        memcg
    }

    fn kernel_pages(tree: &Memcgs, memcg: MemcgId) -> u64 {
        tree.local_stat(memcg, NodeId(0), MemcgStat::KernelBytes) / PAGE_SIZE
    }

    /// What guests with two CPUs show: `kernel` of P less that of its three children.
    #[test]
    fn three_cgroups_cost_the_one_above_a_few_pages() {
        let pages =
            [("linux-5.7", 0), ("linux-5.10", 5), ("linux-6.1", 6), ("linux-6.12", 7), ("linux-7.2", 9)];
        for (kernel, pages) in pages {
            let mut tree = Memcgs::new(&Version::parse(kernel).unwrap(), 1, 2);
            let parent = make(&mut tree, CpuId(0), MemcgId::ROOT, "P");
            assert_eq!(tree[MemcgId::ROOT].memory.usage, 0, "the root pays for nothing");
            let children = ["A", "C", "B"].map(|name| make(&mut tree, CpuId(0), parent, name));
            assert_eq!(kernel_pages(&tree, parent), pages, "{kernel}");
            for child in children {
                tree.remove(child);
                tree.release_cost(child);
            }
            tree.drain_all_stocks(MemcgId::ROOT);
            assert_eq!((kernel_pages(&tree, parent), tree[parent].memory.usage), (0, 0), "{kernel}");
        }
    }

    /// `memory.current` of P in guests, less that of A and C: 6 or 7 pages, or 64 where they were made elsewhere. On
    /// 7.2 the stock has a place for each of them.
    #[test]
    fn the_rest_of_its_batch_stays_on_the_cpu_where_they_were_made() {
        let of_kernels =
            [("linux-6.1", [6, 64]), ("linux-6.12", [7, 64]), ("linux-7.2", [64, 64]), ("linux-5.7", [0, 0])];
        for (kernel, charged) in of_kernels {
            let is = [CpuId(0), CpuId(1)].map(|made_on| {
                let mut tree = Memcgs::new(&Version::parse(kernel).unwrap(), 1, 2);
                let parent = tree.create(MemcgId::ROOT, "P");
                let [a, ..] = ["A", "C", "B"].map(|name| make(&mut tree, made_on, parent, name));
                assert_eq!(tree.try_charge(CpuId(0), a, 1, 64), Charge::Done);
                tree[parent].memory.usage - tree[a].memory.usage
            });
            assert_eq!(is, charged, "{kernel}");
        }
    }

    #[test]
    fn a_cgroup_that_has_pages_left_is_not_given_back() {
        let mut tree = Memcgs::new(&Version::parse("linux-6.12").unwrap(), 1, 2);
        let parent = tree.create(MemcgId::ROOT, "P");
        let child = make(&mut tree, CpuId(0), parent, "A");
        tree.charge_by_force(child, 1);
        tree.remove(child);
        tree.release_cost(child);
        assert_eq!(kernel_pages(&tree, parent), 3, "6,080 bytes and 3,088");
    }
}
