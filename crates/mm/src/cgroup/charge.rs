//! Charging pages and kernel objects: per-CPU stocks in front of the page counters (MECHANISMS 8.2,
//! MECHANISMS-6X 4.1).
//!
//! One round without reclaim; who reclaims at a limit and tries again is the kernel's driver. Left
//! out: swap and socket charges. Neighbours: [`super`] for the tree, [`super::stat`].

use units::{CpuId, NodeId, PAGE_SIZE};

use crate::base::ids::MemcgId;
use crate::base::vmstat::MemcgStat;
use crate::cgroup::stock::Held;
use crate::cgroup::tree::{Charge, Memcgs, UNLIMITED};

/// Pages of one cgroup that reclaim frees in one step, whose charges go together (`uncharge_gather`).
#[derive(Debug)]
#[must_use]
pub(crate) struct Uncharged {
    memcg: MemcgId,
    pages: u64,
    folios: u64,
}

/// Pages that were charged one after the other.
#[derive(Debug, Clone, Copy)]
#[must_use]
pub(crate) struct Charges {
    pub(crate) pages: u32,
    /// They are of a CPU's stock, or belong there if they are not used.
    in_advance: bool,
}

impl Default for Uncharged {
    fn default() -> Self {
        Self { memcg: MemcgId::ROOT, pages: 0, folios: 0 }
    }
}

impl Memcgs {
    /// Tries to charge `pages`, from the CPU's stock or by `batch` pages at once; what is left of
    /// the batch goes to the stock (`try_charge_memcg`, one round without reclaim). The root is
    /// never charged.
    pub fn try_charge(&mut self, cpu: CpuId, memcg: MemcgId, pages: u32, batch: u32) -> Charge {
        if memcg == MemcgId::ROOT {
            return Charge::Done;
        }
        if let Some(held) = self.stocks[cpu.index()].pages.of(memcg)
            && held.amount >= pages
            && pages <= self.charge_batch
        {
            held.amount -= pages;
            return Charge::Done;
        }
        let batch = batch.max(pages);
        match self.try_charge_counters(memcg, u64::from(batch)) {
            Charge::Done => {
                self.refill_stock(cpu, memcg, batch - pages);
                Charge::Done
            }
            Charge::Over(_) if batch > pages => self.try_charge_counters(memcg, u64::from(pages)),
            over @ Charge::Over(_) => over,
        }
    }

    /// Takes up to `pages` single charges of `memcg` as [`Self::try_charge`] takes one after the other, as far as the
    /// CPU holds them in advance; where it holds none a batch is charged for the first, or where there is no room for
    /// that as many pages as there is room for. None where a limit stands in the way, or somebody wants to know of the
    /// batch. What is not used goes back by [`Self::return_charges`], before anything else is charged.
    pub(crate) fn take_charges(&mut self, cpu: CpuId, memcg: MemcgId, pages: u32) -> Charges {
        if memcg == MemcgId::ROOT {
            return Charges { pages, in_advance: true };
        }
        if let Some(held) = self.stocks[cpu.index()].pages.of(memcg)
            && held.amount > 0
        {
            let taken = held.amount.min(pages);
            held.amount -= taken;
            return Charges { pages: taken, in_advance: true };
        }
        if self.has_high(memcg) {
            return Charges { pages: 0, in_advance: true };
        }
        let room = self.ancestors(memcg).map(|id| self.margin(id)).min().unwrap_or(0);
        if room < u64::from(self.charge_batch) {
            let pages = u32::try_from(room).unwrap_or(u32::MAX).min(pages);
            self.charge_by_force(memcg, u64::from(pages));
            return Charges { pages, in_advance: false };
        }
        if self.try_charge(cpu, memcg, 1, self.charge_batch) != Charge::Done {
            return Charges { pages: 0, in_advance: true };
        }
        let more = self.stocks[cpu.index()].pages.of(memcg).map_or(0, |held| {
            let taken = held.amount.min(pages - 1);
            held.amount -= taken;
            taken
        });
        Charges { pages: 1 + more, in_advance: true }
    }

    /// Gives back charges that were taken in vain.
    pub(crate) fn return_charges(&mut self, cpu: CpuId, memcg: MemcgId, charges: Charges, used: u32) {
        let left = charges.pages - used;
        if left == 0 || memcg == MemcgId::ROOT {
            return;
        }
        match self.stocks[cpu.index()].pages.of(memcg) {
            Some(held) if charges.in_advance => held.amount += left,
            _ => self.uncharge(memcg, u64::from(left)),
        }
    }

    /// Whether a CPU holds `pages` for `memcg` in advance, so that no counter is looked at for them.
    pub fn has_in_stock(&self, cpu: CpuId, memcg: MemcgId, pages: u32) -> bool {
        let mut held = self.stocks[cpu.index()].pages.all();
        pages <= self.charge_batch && held.any(|held| held.memcg == Some(memcg) && held.amount >= pages)
    }

    /// Pages that a first try charges at once: the argument `batch` of [`Self::try_charge`].
    pub fn charge_batch(&self) -> u32 {
        self.charge_batch
    }

    fn try_charge_counters(&mut self, memcg: MemcgId, pages: u64) -> Charge {
        let over = self.ancestors(memcg).find(|id| {
            let counter = &self.list[id.index()].memory;
            counter.max != UNLIMITED && counter.usage + pages > counter.max
        });
        if let Some(over) = over {
            return Charge::Over(over);
        }
        self.add_usage(memcg, pages);
        Charge::Done
    }

    fn add_usage(&mut self, memcg: MemcgId, pages: u64) {
        let mut next = Some(memcg);
        while let Some(id) = next {
            next = self.set_usage(id, |usage| usage + pages);
        }
    }

    /// Charges without looking at limits, as for a dying or memory-allocating task.
    pub fn charge_by_force(&mut self, memcg: MemcgId, pages: u64) {
        if memcg != MemcgId::ROOT {
            self.add_usage(memcg, pages);
        }
    }

    /// Gives `pages` back.
    pub fn uncharge(&mut self, memcg: MemcgId, pages: u64) {
        if memcg == MemcgId::ROOT {
            return;
        }
        let mut next = Some(memcg);
        while let Some(id) = next {
            next = self.set_usage(id, |usage| usage - pages);
        }
    }

    /// Gives pages back together with those before them, if they are of the same cgroup (`uncharge_folio`). Nobody
    /// sees the difference before [`Self::finish_uncharge`].
    #[inline]
    pub(crate) fn gather_uncharge(&mut self, gathered: &mut Uncharged, memcg: MemcgId, pages: u64) {
        self.gather_singles(gathered, memcg, 0);
        gathered.pages += pages;
        gathered.folios += 1;
    }

    /// The same for single pages.
    #[inline]
    pub(crate) fn gather_singles(&mut self, gathered: &mut Uncharged, memcg: MemcgId, pages: u64) {
        if gathered.memcg != memcg {
            let next = Uncharged { memcg, ..Uncharged::default() };
            self.finish_uncharge(core::mem::replace(gathered, next));
        }
        gathered.pages += pages;
        gathered.folios += pages;
    }

    /// Gives back what was gathered last.
    pub(crate) fn finish_uncharge(&mut self, gathered: Uncharged) {
        self.uncharge(gathered.memcg, gathered.pages);
        self.note_update(gathered.folios);
    }

    /// Pages that `memcg` can still charge before its own limit.
    pub fn margin(&self, memcg: MemcgId) -> u64 {
        let counter = &self[memcg].memory;
        counter.max.saturating_sub(counter.usage)
    }

    fn refill_stock(&mut self, cpu: CpuId, memcg: MemcgId, pages: u32) {
        if pages == 0 {
            return;
        }
        let stock = &mut self.stocks[cpu.index()].pages;
        let mut before = Held::default();
        if stock.of(memcg).is_none() {
            before = stock.make_place(memcg).1;
        }
        let held = stock.of(memcg).expect("it has a place");
        held.amount += pages;
        if held.amount > self.charge_batch {
            self.drain_page_stock(cpu, memcg);
        }
        if let Some(memcg) = before.memcg {
            self.uncharge(memcg, u64::from(before.amount));
        }
    }

    fn drain_page_stock(&mut self, cpu: CpuId, memcg: MemcgId) {
        let pages = self.stocks[cpu.index()].pages.take(memcg);
        self.uncharge(memcg, u64::from(pages));
    }

    /// Gives whole pages of these bytes back. A rest below one page stays with the cgroup, for the next CPU that needs
    /// it.
    pub(super) fn give_back_objects(&mut self, memcg: MemcgId, bytes: u32) {
        let bytes = bytes + self.list[memcg.index()].object_rest;
        self.list[memcg.index()].object_rest = bytes % (PAGE_SIZE as u32);
        self.uncharge_kernel_pages(memcg, u64::from(bytes) / PAGE_SIZE);
    }

    /// Gives back what all CPUs hold in advance for `root` and its descendants
    /// (`drain_all_stock`).
    pub fn drain_all_stocks(&mut self, root: MemcgId) {
        for cpu in 0..self.stocks.len() {
            let stock = self.stocks[cpu];
            for memcg in stock.pages.all().filter_map(|held| held.memcg) {
                if self.is_descendant(memcg, root) {
                    let pages = self.stocks[cpu].pages.take(memcg);
                    self.uncharge(memcg, u64::from(pages));
                }
            }
            for memcg in stock.objects.all().filter_map(|held| held.memcg) {
                if self.is_descendant(memcg, root) {
                    let bytes = self.stocks[cpu].objects.take(memcg);
                    self.give_back_objects(memcg, bytes);
                }
            }
        }
    }

    /// A cgroup that is not modelled charges on a CPU. Where that has room for one cgroup alone (up to 6.12), it gives
    /// back what it held.
    pub fn charged_elsewhere(&mut self, cpu: CpuId) {
        if let Some(memcg) = self.stocks[cpu.index()].pages.only() {
            self.drain_page_stock(cpu, memcg);
        }
    }

    /// Pages held in stocks for `memcg` and its descendants.
    pub fn stocked_pages(&self, memcg: MemcgId) -> u64 {
        let held = self.stocks.iter().flat_map(|stock| stock.pages.all());
        let below = held.filter(|held| held.memcg.is_some_and(|id| self.is_descendant(id, memcg)));
        below.map(|held| u64::from(held.amount)).sum()
    }

    // ---- kernel objects -----------------------------------------------------------------------

    /// Takes `bytes` for a kernel object from the CPU's rest of a page; false when whole pages
    /// must be charged first ([`Self::object_pages_charged`]).
    pub fn consume_object_stock(&mut self, cpu: CpuId, memcg: MemcgId, bytes: u32) -> bool {
        if memcg == MemcgId::ROOT {
            return true;
        }
        match self.stocks[cpu.index()].objects.of(memcg) {
            Some(held) if held.amount >= bytes => {
                held.amount -= bytes;
                true
            }
            _ => false,
        }
    }

    /// Accounts whole pages just charged for objects: they become the CPU's stock, from which
    /// [`Self::consume_object_stock`] takes.
    pub fn object_pages_charged(&mut self, cpu: CpuId, memcg: MemcgId, pages: u32) {
        let page_bytes = u64::from(pages) * PAGE_SIZE;
        self.add_stat(memcg, NodeId(0), MemcgStat::KernelBytes, page_bytes);
        let bytes = u32::try_from(page_bytes).expect("an object spans few pages");
        self.held_objects(cpu, memcg).amount += bytes;
    }

    /// The bytes that a CPU holds for `memcg`: where it held none, the cgroup's rest of a page.
    fn held_objects(&mut self, cpu: CpuId, memcg: MemcgId) -> &mut Held {
        let objects = &mut self.stocks[cpu.index()].objects;
        if objects.of(memcg).is_none() {
            let before = objects.make_place(memcg).1;
            if let Some(other) = before.memcg {
                self.give_back_objects(other, before.amount);
            }
            let rest = core::mem::take(&mut self.list[memcg.index()].object_rest);
            self.stocks[cpu.index()].objects.of(memcg).expect("it has a place").amount = rest;
        }
        self.stocks[cpu.index()].objects.of(memcg).expect("it has a place")
    }

    /// Gives the bytes of a kernel object back; whole pages among the CPU's bytes are uncharged.
    pub fn uncharge_object(&mut self, cpu: CpuId, memcg: MemcgId, bytes: u32) {
        if memcg == MemcgId::ROOT {
            return;
        }
        let held = self.held_objects(cpu, memcg);
        held.amount += bytes;
        let whole = held.amount / (PAGE_SIZE as u32);
        held.amount %= PAGE_SIZE as u32;
        self.uncharge_kernel_pages(memcg, u64::from(whole));
    }

    /// What a CPU holds for objects beyond a page becomes its stock of pages.
    pub(super) fn restock_whole_pages(&mut self, cpu: CpuId, memcg: MemcgId) {
        let held = self.held_objects(cpu, memcg);
        let whole = held.amount / (PAGE_SIZE as u32);
        held.amount %= PAGE_SIZE as u32;
        self.sub_stat(memcg, NodeId(0), MemcgStat::KernelBytes, u64::from(whole) * PAGE_SIZE);
        self.refill_stock(cpu, memcg, whole);
    }

    /// Counts whole pages of kernel memory (stacks, page tables) that were charged.
    pub fn count_kernel_pages(&mut self, memcg: MemcgId, pages: u64) {
        self.add_stat(memcg, NodeId(0), MemcgStat::KernelBytes, pages * PAGE_SIZE);
    }

    /// Takes them off the count; uncharging is the caller's.
    pub fn uncount_kernel_pages(&mut self, memcg: MemcgId, pages: u64) {
        self.sub_stat(memcg, NodeId(0), MemcgStat::KernelBytes, pages * PAGE_SIZE);
    }

    fn uncharge_kernel_pages(&mut self, memcg: MemcgId, pages: u64) {
        if pages > 0 {
            self.sub_stat(memcg, NodeId(0), MemcgStat::KernelBytes, pages * PAGE_SIZE);
            self.uncharge(memcg, pages);
        }
    }
}

#[cfg(test)]
mod tests {
    use std_alloc::vec::Vec;

    use super::*;
    use crate::cgroup::tree::Limit;
    use crate::version::presets::Version;

    fn tree(kernel: &str) -> Memcgs {
        Memcgs::new(&Version::parse(kernel).unwrap(), 1, 2)
    }

    const CPU0: CpuId = CpuId(0);

    #[test]
    fn a_first_charge_takes_a_batch_and_leaves_the_rest_in_the_stock() {
        let mut tree = tree("linux-6.1");
        let group = tree.create(MemcgId::ROOT, "A");
        assert_eq!(tree.try_charge(CPU0, group, 1, 64), Charge::Done);
        assert_eq!(tree[group].memory.usage, 64);
        assert_eq!(tree[MemcgId::ROOT].memory.usage, 64, "charges reach the root's counter");
        for _ in 0..63 {
            assert_eq!(tree.try_charge(CPU0, group, 1, 64), Charge::Done);
        }
        assert_eq!((tree[group].memory.usage, tree.stocked_pages(group)), (64, 0));
    }

    #[test]
    fn below_one_batch_of_margin_charges_go_one_by_one_up_to_the_limit() {
        let mut tree = tree("linux-6.1");
        let parent = tree.create(MemcgId::ROOT, "P");
        let child = tree.create(parent, "A");
        tree.set_limit(parent, Limit::Max, 70);
        for _ in 0..70 {
            assert_eq!(tree.try_charge(CPU0, child, 1, 64), Charge::Done);
        }
        assert_eq!(tree[parent].memory.usage, 70);
        assert_eq!(
            tree.try_charge(CPU0, child, 1, 64),
            Charge::Over(parent),
            "the parent is full, not the child"
        );
    }

    #[test]
    fn a_stock_for_another_group_is_given_back_first() {
        let mut tree = tree("linux-6.1");
        let (a, b) = (tree.create(MemcgId::ROOT, "A"), tree.create(MemcgId::ROOT, "B"));
        let _ = tree.try_charge(CPU0, a, 1, 64);
        let _ = tree.try_charge(CPU0, b, 1, 64);
        assert_eq!((tree[a].memory.usage, tree[b].memory.usage), (1, 64));
        let _ = tree.try_charge(CpuId(1), a, 1, 64);
        tree.drain_all_stocks(MemcgId::ROOT);
        assert_eq!((tree[a].memory.usage, tree[b].memory.usage), (2, 1));
    }

    /// Seven stocks a CPU: what a stream in B strands beside the rests of A (MECHANISMS-510-72 4.1).
    #[test]
    fn since_6_16_stocks_of_several_groups_stay_side_by_side() {
        let mut tree = tree("linux-6.12+memcg-multi-stock");
        let groups: Vec<MemcgId> =
            ["A", "B", "C", "D", "E", "F", "G", "H"].map(|name| tree.create(MemcgId::ROOT, name)).to_vec();
        for &group in &groups[..7] {
            let _ = tree.try_charge(CPU0, group, 1, 64);
            let _ = tree.try_charge(CpuId(1), group, 1, 64);
        }
        assert_eq!(tree.stocked_pages(MemcgId::ROOT), 7 * 2 * 63);
        let _ = tree.try_charge(CPU0, groups[7], 1, 64);
        assert_eq!(tree.stocked_pages(groups[0]), 63, "the eighth takes the place of the first on its CPU");
        assert!(!tree.consume_object_stock(CPU0, groups[0], 592));
        for &group in &groups[..6] {
            tree.object_pages_charged(CPU0, group, 1);
            assert!(tree.consume_object_stock(CPU0, group, 592));
        }
        assert!(!tree.consume_object_stock(CPU0, groups[0], 592), "five for objects");
        assert!(groups[1..6].iter().all(|&group| tree.consume_object_stock(CPU0, group, 592)));
    }

    #[test]
    fn objects_are_charged_in_whole_pages() {
        let mut tree = tree("linux-6.1");
        let group = tree.create(MemcgId::ROOT, "A");
        let mut pages = 0;
        for _ in 0..4172 {
            if !tree.consume_object_stock(CPU0, group, 592) {
                pages += 1;
                tree.object_pages_charged(CPU0, group, 1);
                assert!(tree.consume_object_stock(CPU0, group, 592));
            }
        }
        // MECHANISMS-6X 4.1: 2469888 B = 603 pages for 4172 nodes of 592 B.
        assert_eq!(pages, 603);
        assert_eq!(tree.local_stat(group, NodeId(0), MemcgStat::KernelBytes), 2_469_888);
    }
}
