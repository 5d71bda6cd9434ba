//! What is written back from zswap to the areas behind it (SWAP 4.4): a page in the swap cache, written to its slot and
//! freed when that is done; the entry goes.
//!
//! Neighbours: [`super::zswap`], [`super::swap_cache`]; the kernel's worker, a cgroup at its share and the shrinker ask
//! for it.

use units::{CpuId, Order, Pfn};

use crate::alloc::flags::AllocFlags;
use crate::base::event::Trace;
use crate::base::frame::PageFlags;
use crate::base::gfp::Gfp;
use crate::base::ids::MemcgId;
use crate::base::vmstat::VmEvent;
use crate::core::Core;
use crate::lru::lists::Lru;
use crate::pages::cache::PageCache;
use crate::swap::slot::SwapSlot;
use crate::swap::store::Stored;
use crate::swap::zswap::Oldest;
use crate::version::rules::Zswap;

impl PageCache {
    /// Writes the entry of a slot back by way of `pfn`, a new page charged to nobody yet. None: the entry is gone or
    /// being read, or nobody uses its slot any more, or there is no memory for the tree, and the page is the
    /// caller's; else whether its write is to be sent off (`zswap_writeback_entry`).
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
        core.count_zram(VmEvent::PgPgOut, u64::from(matches!(stored, Stored::Compressed(_))));
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
