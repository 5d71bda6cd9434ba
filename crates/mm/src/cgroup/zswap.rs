//! Shares of the zswap pool that cgroups hold: `memory.zswap.*` (SWAP 4.4).
//!
//! What an entry compresses to is charged to its cgroup as kernel memory, and counts here for it and all above.
//! Neighbours: [`crate::pages::zswap`] stores, [`super::charge`] for kernel memory.

use units::{CpuId, PAGE_SIZE};

use crate::base::ids::MemcgId;
use crate::cgroup::tree::{Memcgs, UNLIMITED, ZswapCounter};

/// What the limits say to one more page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ZswapRoom {
    /// It may be stored.
    Room,
    /// Some cgroup has what it may have.
    Full,
    /// Some cgroup may have nothing.
    Never,
}

impl Memcgs {
    /// Sets `memory.zswap.max` in bytes.
    pub fn set_zswap_max(&mut self, memcg: MemcgId, bytes: u64) {
        self.list[memcg.index()].zswap.max = bytes;
    }

    /// Sets `memory.zswap.writeback`.
    pub fn set_zswap_writeback(&mut self, memcg: MemcgId, on: bool) {
        self.list[memcg.index()].zswap.writeback = on;
    }

    /// Whether pages of a cgroup may go to areas: no cgroup above it forbids that.
    pub fn may_write_to_swap(&self, memcg: MemcgId) -> bool {
        self.ancestors(memcg).all(|id| self[id].zswap.writeback)
    }

    /// Whether a page of a cgroup may be stored: `obj_cgroup_may_zswap`.
    pub(crate) fn zswap_room(&self, memcg: MemcgId) -> ZswapRoom {
        for id in self.ancestors(memcg) {
            let counter = self[id].zswap;
            match counter.max {
                0 => return ZswapRoom::Never,
                max if max != UNLIMITED && counter.bytes >= max => return ZswapRoom::Full,
                _ => {}
            }
        }
        ZswapRoom::Room
    }

    /// Charges a stored page of so many bytes, whatever the limits of memory say: who reclaims may not wait for more.
    pub(crate) fn charge_zswap(&mut self, cpu: CpuId, memcg: MemcgId, bytes: u16) {
        self.count_zswap(memcg, |counter| {
            counter.bytes += u64::from(bytes);
            counter.pages += 1;
        });
        let bytes = u32::from(bytes);
        if !self.consume_object_stock(cpu, memcg, bytes) {
            let pages = u32::try_from(u64::from(bytes).div_ceil(PAGE_SIZE)).expect("one");
            self.charge_by_force(memcg, u64::from(pages));
            self.object_pages_charged(cpu, memcg, pages);
            assert!(self.consume_object_stock(cpu, memcg, bytes), "a page was charged");
        }
    }

    /// Gives back what [`Self::charge_zswap`] charged.
    pub(crate) fn uncharge_zswap(&mut self, cpu: CpuId, memcg: MemcgId, bytes: u16) {
        self.count_zswap(memcg, |counter| {
            counter.bytes -= u64::from(bytes);
            counter.pages -= 1;
        });
        let heir = self.heir(memcg);
        self.uncharge_object(cpu, heir, u32::from(bytes));
    }

    fn count_zswap(&mut self, memcg: MemcgId, change: impl Fn(&mut ZswapCounter)) {
        let mut next = Some(memcg);
        while let Some(id) = next {
            let group = &mut self.list[id.index()];
            change(&mut group.zswap);
            next = group.parent;
        }
    }
}
