//! What is in the slots of an area: how long each page is when it is compressed, and the pages that hold them
//! (SWAP 4.2, 4.3).
//!
//! Content is not stored, only its length. The pool's pages are kernel memory of nobody's cgroup, taken without
//! regard to watermarks by whoever reclaims. Here they stay where they are, though they lie among movable pages;
//! the kernel can move them. Neighbours: [`super::zram`] counts the pages of the pool, [`super::areas`].

use std_alloc::vec;
use std_alloc::vec::Vec;

use units::{CpuId, Order, Pfn};

use crate::alloc::flags::AllocFlags;
use crate::alloc::page_alloc::PageAllocator;
use crate::base::event::Trace;
use crate::base::gfp::Gfp;
use crate::swap::areas::{AreaKind, SwapAreas};
use crate::swap::slot::SwapSlot;
use crate::swap::zram::Zpool;
use crate::version::rules::{Rules, ZeroPages};

/// Nothing is stored in a slot.
const NOTHING: u16 = u16::MAX;

/// Length of a page of one repeated word.
pub const SAME_FILLED: u16 = 0;

/// What is in the slots of an area.
#[derive(Debug, Clone)]
pub(super) struct Store {
    /// What the page of a slot compresses to.
    content: Vec<u16>,
    /// What is stored.
    bytes: Vec<u16>,
    pool: Zpool,
    pages: Vec<Pfn>,
}

impl Store {
    pub(super) fn new(slots: u32, rules: &Rules) -> Self {
        let none = vec![NOTHING; slots as usize + 1];
        Self { content: none.clone(), bytes: none, pool: Zpool::new(rules), pages: Vec::new() }
    }
}

/// What came of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub(crate) enum Stored {
    /// A bit says that it is a page of zeroes.
    Zero,
    /// It is in compressed memory: this many bytes of it.
    Compressed(u16),
    /// It is to be written to the device.
    ToBeWritten,
    /// There is no room.
    Failed,
}

impl SwapAreas {
    /// Says what the page that a slot is for compresses to, in bytes.
    pub(crate) fn note_content(&mut self, slot: SwapSlot, bytes: u16) {
        self.areas[slot.area()].store.content[slot.offset() as usize] = bytes;
    }

    /// Writes the page of a slot, as far as that takes no waiting.
    pub(crate) fn store<T: Trace>(
        &mut self,
        alloc: &mut PageAllocator<T>,
        cpu: CpuId,
        slot: SwapSlot,
    ) -> Stored {
        let (kind, zeroes) = (self.kind(slot), alloc.rules().zero_pages);
        self.discard(alloc, cpu, slot);
        let store = &mut self.areas[slot.area()].store;
        let bytes = store.content[slot.offset() as usize];
        if bytes == SAME_FILLED && zeroes == ZeroPages::Bitmap {
            store.bytes[slot.offset() as usize] = bytes;
            return Stored::Zero;
        }
        if kind != AreaKind::Zram {
            return Stored::ToBeWritten;
        }
        for grown in 0..store.pool.store(bytes) {
            let gfp = Gfp(Gfp::MOVABLE_BIT.0 | Gfp::KSWAPD_RECLAIM.0);
            let page = alloc.alloc(cpu, gfp, Order(0), AllocFlags::NO_WATERMARKS).page;
            let Some(page) = page else {
                store.pool.free(bytes);
                store
                    .pages
                    .drain(store.pages.len() - grown as usize..)
                    .for_each(|page| alloc.free(cpu, page, Order(0)));
                return Stored::Failed;
            };
            store.pages.push(page);
        }
        store.bytes[slot.offset() as usize] = bytes;
        Stored::Compressed(bytes)
    }

    /// Bytes that were stored for a slot; none: it is on the device.
    pub fn stored_bytes(&self, slot: SwapSlot) -> Option<u16> {
        let bytes = self.areas[slot.area()].store.bytes[slot.offset() as usize];
        (bytes != NOTHING).then_some(bytes)
    }

    /// Whether a bit says that a slot's page is one of zeroes.
    pub fn is_zero(&self, rules: &Rules, slot: SwapSlot) -> bool {
        rules.zero_pages == ZeroPages::Bitmap && self.stored_bytes(slot) == Some(SAME_FILLED)
    }

    /// What was stored for a slot is no longer needed (`swap_slot_free_notify`).
    pub(crate) fn discard<T: Trace>(&mut self, alloc: &mut PageAllocator<T>, cpu: CpuId, slot: SwapSlot) {
        let kind = self.kind(slot);
        let store = &mut self.areas[slot.area()].store;
        let bytes = core::mem::replace(&mut store.bytes[slot.offset() as usize], NOTHING);
        let is_zero = bytes == SAME_FILLED && alloc.rules().zero_pages == ZeroPages::Bitmap;
        if kind != AreaKind::Zram || bytes == NOTHING || is_zero {
            return;
        }
        for _ in 0..store.pool.free(bytes) {
            let page = store.pages.pop().expect("the pool has pages");
            alloc.free(cpu, page, Order(0));
        }
    }

    /// Pages of all pools: `nr_zspages`.
    pub fn pool_pages(&self) -> u64 {
        self.areas.iter().map(|area| area.store.pages.len() as u64).sum()
    }
}
