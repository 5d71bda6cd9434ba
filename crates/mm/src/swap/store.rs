//! What is in the slots of an area: how long each page is when it is compressed, and the pages that hold them
//! (SWAP 4.2, 4.3).
//!
//! Content is not stored, only its length. Neighbours: [`super::pool`] for the pages of compressed memory,
//! [`super::areas`].

use std_alloc::vec;
use std_alloc::vec::Vec;

use units::CpuId;

use crate::alloc::page_alloc::PageAllocator;
use crate::base::event::Trace;
use crate::swap::pool::Pool;
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
    pool: Pool,
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
        Self { content: none.clone(), bytes: none, is_memory, zeroes_by_bit, pool: Pool::new(rules) }
    }

    /// Says what the page of a slot compresses to, in bytes.
    pub(super) fn note(&mut self, offset: u32, bytes: u16) {
        self.content[offset as usize] = bytes;
    }

    /// What the page of a slot compresses to; none: a bit is to say that it is one of zeroes.
    pub(super) fn compressed(&self, offset: u32) -> Option<u16> {
        let bytes = self.content[offset as usize];
        (bytes != SAME_FILLED || !self.zeroes_by_bit).then_some(bytes)
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
        if !self.pool.store(alloc, cpu, bytes) {
            return Stored::Failed;
        }
        self.bytes[offset as usize] = bytes;
        Stored::Compressed(bytes)
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
            self.pool.free(alloc, cpu, bytes);
        }
    }

    /// Pages of the pool.
    pub(super) fn pool_pages(&self) -> u64 {
        self.pool.pages()
    }
}
