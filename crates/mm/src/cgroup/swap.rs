//! Swap slots that cgroups hold: charges and limits (`memory.swap.*`, SWAP 2.4).
//!
//! A slot is charged to one cgroup and all above it, from the time that it is used to its give-back.
//! Neighbours: [`crate::swap::areas`] for the slots, [`crate::decide::over_high`] for tasks of a cgroup that uses more
//! than its `memory.swap.high`.

use crate::base::ids::MemcgId;
use crate::cgroup::tree::{Memcgs, SwapEvents, UNLIMITED};

impl Memcgs {
    /// Sets `memory.swap.max` in pages.
    pub fn set_swap_max(&mut self, memcg: MemcgId, pages: u64) {
        self.list[memcg.index()].swap.max = pages;
    }

    /// Sets `memory.swap.high` in pages.
    pub fn set_swap_high(&mut self, memcg: MemcgId, pages: u64) {
        self.list[memcg.index()].swap.high = pages;
        self.high_set = true;
    }

    /// Whether a cgroup that `memcg` is in has a `memory.high` or a `memory.swap.high`.
    pub fn has_high(&self, memcg: MemcgId) -> bool {
        let has = |id: MemcgId| self[id].memory.high != UNLIMITED || self[id].swap.high != UNLIMITED;
        self.high_set && self.ancestors(memcg).any(has)
    }

    /// Whether a cgroup that `memcg` is in uses more swap than its `memory.swap.high`.
    pub fn is_over_swap_high(&self, memcg: MemcgId) -> bool {
        self.high_set && self.ancestors(memcg).any(|id| self[id].swap.usage > self[id].swap.high)
    }

    /// `mem_cgroup_try_charge_swap`: charges slots, or names the cgroup whose limit forbids it; then
    /// nothing is charged.
    ///
    /// # Errors
    /// The lowest cgroup without room.
    pub fn charge_swap(&mut self, memcg: MemcgId, pages: u64) -> Result<(), MemcgId> {
        let is_full = |id: MemcgId| self[id].swap.usage + pages > self[id].swap.max;
        if let Some(full) = self.ancestors(memcg).find(|&id| is_full(id)) {
            return Err(full);
        }
        self.change_swap(memcg, pages, |usage| *usage += pages);
        Ok(())
    }

    /// Counts an event of `memcg` in its `memory.swap.events` and in those of its ancestors.
    pub fn count_swap_event(&mut self, memcg: MemcgId, event: fn(&mut SwapEvents) -> &mut u64) {
        let mut next = Some(memcg);
        while let Some(id) = next {
            let group = &mut self.list[id.index()];
            *event(&mut group.swap.events) += 1;
            next = group.parent;
        }
    }

    /// Gives charged slots back.
    pub fn uncharge_swap(&mut self, memcg: MemcgId, pages: u64) {
        self.change_swap(memcg, pages, |usage| *usage -= pages);
    }

    fn change_swap(&mut self, memcg: MemcgId, pages: u64, change: impl Fn(&mut u64)) {
        self.note_update(pages);
        let mut next = Some(memcg);
        while let Some(id) = next {
            let group = &mut self.list[id.index()];
            change(&mut group.swap.usage);
            next = group.parent;
        }
    }
}
