//! What goes into zswap, and what comes out (SWAP 4.4).
//!
//! ```text
//!   reclaim:  stored --> freed at once      refused --> its area, or active where that is forbidden
//!   fault:    read from the pool: the entry goes (6.8), the page is dirty
//! ```
//! Neighbours: [`crate::swap::zswap`] for entries, [`crate::cgroup::zswap`] for limits, [`super::zswap_back`] for what
//! is written back.

use units::{CpuId, PAGE_SIZE, Pfn};

use crate::base::event::Trace;
use crate::base::frame::PageFlags;
use crate::base::ids::MemcgId;
use crate::base::sysctl::Sysctl;
use crate::base::vmstat::VmEvent;
use crate::cgroup::zswap::ZswapRoom;
use crate::core::Core;
use crate::swap::slot::SwapSlot;
use crate::version::geometry::Cache;
use crate::version::rules::Zswap;

/// What became of a page that is to be swapped out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub(crate) enum Taken {
    /// It is in the pool, and can be freed.
    Stored,
    /// It is to go to its area.
    Refused,
    /// The page's cgroup, or one above it, has its share: an entry may be written back for it.
    Full,
}

impl<T: Trace> Core<T> {
    /// Whether pages go into zswap, or went there.
    pub(crate) fn has_zswap(&self) -> bool {
        self.alloc.sysctls().get(Sysctl::ZswapEnabled) > 0 || self.alloc.events.get(VmEvent::ZswpOut) > 0
    }

    /// The pages that the pool may have, and those that it has to fall to once it had them.
    pub(crate) fn zswap_limits(&self) -> (u64, u64) {
        let memory: u64 = self.alloc.zones().iter().map(|zone| zone.managed.0).sum();
        let percent = |of: u64, sysctl| of * self.alloc.sysctls().get(sysctl) / 100;
        let limit = percent(memory, Sysctl::ZswapMaxPoolPercent);
        (limit, percent(limit, Sysctl::ZswapAcceptThresholdPercent))
    }

    /// Stores the page of a slot, if zswap takes it (`zswap_store`).
    pub(crate) fn zswap_store(&mut self, cpu: CpuId, slot: SwapSlot, memcg: MemcgId) -> Taken {
        self.zswap_forget(cpu, slot);
        let rule = self.rules().zswap;
        if rule == Zswap::Absent || self.alloc.sysctls().get(Sysctl::ZswapEnabled) == 0 {
            return Taken::Refused;
        }
        let Some(bytes) = self.swap.compressed(slot) else { return Taken::Refused };
        match self.cgroups.zswap_room(memcg) {
            ZswapRoom::Room => {}
            ZswapRoom::Full => return Taken::Full,
            ZswapRoom::Never => return Taken::Refused,
        }
        let (limit, threshold) = self.zswap_limits();
        if !self.swap.zswap.has_room(limit, threshold) {
            return Taken::Refused;
        }
        let is_poor = u64::from(bytes) >= PAGE_SIZE;
        let stores_all = rule == Zswap::StoresAll && self.cgroups.may_write_to_swap(memcg);
        if is_poor && !stores_all {
            self.swap.zswap.counts.reject_compress_poor += 1;
            return Taken::Refused;
        }
        let bytes = bytes.min(PAGE_SIZE as u16);
        let Some(object) = self.take_object(cpu, Cache::ZswapEntry) else { return Taken::Refused };
        if !self.swap.zswap.insert(&mut self.alloc, cpu, slot, bytes, memcg, object) {
            self.free_object(cpu, object);
            return Taken::Refused;
        }
        self.cgroups.charge_zswap(cpu, memcg, bytes);
        self.alloc.events.add(VmEvent::ZswpOut, 1);
        Taken::Stored
    }

    /// What zswap has of a slot is no longer needed (`zswap_invalidate`).
    pub(crate) fn zswap_forget(&mut self, cpu: CpuId, slot: SwapSlot) {
        if let Some(entry) = self.swap.zswap.remove(&mut self.alloc, cpu, slot) {
            self.free_object(cpu, entry.object);
            self.cgroups.uncharge_zswap(cpu, entry.memcg, entry.bytes);
        }
    }

    /// The page of a slot was read from the pool, if it was there: `pfn` is in the swap cache, or mapped already
    /// (`zswap_load`).
    pub(crate) fn zswap_load(&mut self, cpu: CpuId, slot: SwapSlot, pfn: Pfn) {
        if self.swap.zswap.get(slot).is_none() {
            return;
        }
        self.alloc.events.add(VmEvent::ZswpIn, 1);
        if self.rules().zswap != Zswap::OneList {
            self.zswap_forget(cpu, slot);
            self.alloc.frames.set_flags(pfn, PageFlags::ANON_DIRTY);
        }
    }
}
