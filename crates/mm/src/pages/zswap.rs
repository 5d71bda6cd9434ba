//! What goes into zswap, what comes out, and what is written back from there (SWAP 4.4).
//!
//! ```text
//!   reclaim:  stored --> freed at once      refused --> its area, or active where that is forbidden
//!   fault:    read from the pool: the entry goes (6.8), the page is dirty
//!   back:     a page in the swap cache, written to its slot, freed when that is done; the entry goes
//! ```
//! Neighbours: [`crate::swap::zswap`] for entries, [`crate::cgroup::zswap`] for limits, [`crate::pages::swap_cache`].

use units::{CpuId, Order, PAGE_SIZE, Pfn};

use crate::alloc::flags::AllocFlags;
use crate::base::event::Trace;
use crate::base::frame::PageFlags;
use crate::base::gfp::Gfp;
use crate::base::ids::MemcgId;
use crate::base::sysctl::Sysctl;
use crate::base::vmstat::VmEvent;
use crate::cgroup::zswap::ZswapRoom;
use crate::core::Core;
use crate::lru::lists::Lru;
use crate::pages::cache::PageCache;
use crate::swap::slot::SwapSlot;
use crate::swap::store::Stored;
use crate::swap::zswap::Oldest;
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
        if !self.swap.zswap.insert(&mut self.alloc, cpu, slot, bytes, memcg) {
            return Taken::Refused;
        }
        self.cgroups.charge_zswap(cpu, memcg, bytes);
        self.alloc.events.add(VmEvent::ZswpOut, 1);
        Taken::Stored
    }

    /// What zswap has of a slot is no longer needed (`zswap_invalidate`).
    pub(crate) fn zswap_forget(&mut self, cpu: CpuId, slot: SwapSlot) {
        if let Some(entry) = self.swap.zswap.remove(&mut self.alloc, cpu, slot) {
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

impl PageCache {
    /// Writes the entry of a slot back by way of `pfn`, a new page charged to nobody yet. None: the entry is gone or
    /// being read, or nobody uses its slot any more, or there is no memory for the tree, and the page is the caller's; else whether its write is to be
    /// sent off (`zswap_writeback_entry`).
    pub(crate) fn write_back<T: Trace>(
        &mut self,
        core: &mut Core<T>,
        lru: &mut Lru,
        cpu: CpuId,
        slot: SwapSlot,
        pfn: Pfn,
    ) -> Option<bool> {
        let memcg = core.swap.memcg(slot).filter(|_| core.swap.zswap.get(slot).is_some())?;
        if self.swap_page(slot).is_some() || !core.swap.is_mapped(slot) {
            return None;
        }
        core.cgroups.charge_by_force(memcg, 1);
        if !self.begin_read(core, lru, cpu, slot, pfn) {
            core.cgroups.uncharge(memcg, 1);
            return None;
        }
        core.zswap_forget(cpu, slot);
        core.unlock_page(pfn);
        core.swap.zswap.counts.written_back_pages += 1;
        if core.rules().zswap != Zswap::OneList {
            core.alloc.events.add(VmEvent::ZswpWb, 1);
        }
        let stored = core.swap.store(&mut core.alloc, cpu, slot);
        if stored == Stored::Failed {
            core.alloc.frames.set_flags(pfn, PageFlags::ANON_DIRTY);
            return Some(false);
        }
        core.alloc.events.add(VmEvent::PswpOut, 1);
        let is_sent = stored == Stored::ToBeWritten;
        if is_sent {
            self.start_swap_write(core, pfn);
        }
        Some(is_sent)
    }

    /// Gives the oldest entry of a cgroup a second chance, or writes it back, by whoever reclaims: without regard to
    /// watermarks. Returns the page whose write is to be sent off.
    pub(crate) fn shrink_zswap<T: Trace>(
        &mut self,
        core: &mut Core<T>,
        lru: &mut Lru,
        cpu: CpuId,
        memcg: MemcgId,
    ) -> Option<Pfn> {
        if !core.cgroups.may_write_to_swap(memcg) {
            return None;
        }
        let Some(Oldest::Goes(slot)) = core.swap.zswap.look_at_oldest(memcg) else { return None };
        let gfp = Gfp(Gfp::MOVABLE_BIT.0 | Gfp::KSWAPD_RECLAIM.0);
        let pfn = core.alloc.alloc(cpu, gfp, Order(0), AllocFlags::NO_WATERMARKS).page?;
        match self.write_back(core, lru, cpu, slot, pfn) {
            Some(true) => Some(pfn),
            Some(false) => None,
            None => {
                core.alloc.free(cpu, pfn, Order(0));
                None
            }
        }
    }
}
