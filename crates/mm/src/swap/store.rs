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
    /// It is compressed memory.
    is_memory: bool,
    zeroes_by_bit: bool,
    pool: Zpool,
    pages: Vec<Pfn>,
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

impl Store {
    /// Nothing is in any of so many slots behind the header.
    pub(super) fn new(slots: u32, is_memory: bool, rules: &Rules) -> Self {
        let none = vec![NOTHING; slots as usize + 1];
        let zeroes_by_bit = rules.zero_pages == ZeroPages::Bitmap;
        Self {
            content: none.clone(),
            bytes: none,
            is_memory,
            zeroes_by_bit,
            pool: Zpool::new(rules),
            pages: Vec::new(),
        }
    }

    /// Says what the page of a slot compresses to, in bytes.
    pub(super) fn note(&mut self, offset: u32, bytes: u16) {
        self.content[offset as usize] = bytes;
    }

    /// Writes the page of a slot, as far as that takes no waiting.
    pub(super) fn write<T: Trace>(
        &mut self,
        alloc: &mut PageAllocator<T>,
        cpu: CpuId,
        offset: u32,
    ) -> Stored {
        self.erase(alloc, cpu, offset);
        let bytes = self.content[offset as usize];
        if bytes == SAME_FILLED && self.zeroes_by_bit {
            self.bytes[offset as usize] = bytes;
            return Stored::Zero;
        }
        if !self.is_memory {
            return Stored::ToBeWritten;
        }
        let grows = self.pool.store(bytes);
        for grown in 0..grows {
            let gfp = Gfp(Gfp::MOVABLE_BIT.0 | Gfp::KSWAPD_RECLAIM.0);
            let page = alloc.alloc(cpu, gfp, Order(0), AllocFlags::NO_WATERMARKS).page;
            let Some(page) = page else {
                self.pool.free(bytes);
                self.shrink(alloc, cpu, grown);
                return Stored::Failed;
            };
            self.pages.push(page);
        }
        self.bytes[offset as usize] = bytes;
        Stored::Compressed(bytes)
    }

    /// Gives pages of the pool back.
    fn shrink<T: Trace>(&mut self, alloc: &mut PageAllocator<T>, cpu: CpuId, pages: u32) {
        for _ in 0..pages {
            let page = self.pages.pop().expect("the pool has pages");
            alloc.free(cpu, page, Order(0));
        }
    }

    /// Bytes that are stored for a slot; none: it is on the device.
    pub(super) fn length(&self, offset: u32) -> Option<u16> {
        let bytes = self.bytes[offset as usize];
        (bytes != NOTHING).then_some(bytes)
    }

    /// Whether a bit says that a slot's page is one of zeroes.
    pub(super) fn is_zero(&self, offset: u32) -> bool {
        self.zeroes_by_bit && self.bytes[offset as usize] == SAME_FILLED
    }

    /// What is stored for a slot is no longer needed.
    pub(super) fn erase<T: Trace>(&mut self, alloc: &mut PageAllocator<T>, cpu: CpuId, offset: u32) {
        let is_zero = self.is_zero(offset);
        let bytes = core::mem::replace(&mut self.bytes[offset as usize], NOTHING);
        if self.is_memory && bytes != NOTHING && !is_zero {
            let shrinks = self.pool.free(bytes);
            self.shrink(alloc, cpu, shrinks);
        }
    }

    /// Pages of the pool.
    pub(super) fn pool_pages(&self) -> u64 {
        self.pages.len() as u64
    }
}
