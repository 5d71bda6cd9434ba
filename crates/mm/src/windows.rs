//! Wires of neighbouring pages of files: windows that come in, reads of what is there, requests that were completed.
//! Next: [`crate::pages::window`].

use core::ops::Range;

use units::{CpuId, Pfn};

use crate::base::event::Trace;
use crate::base::ids::MappingId;
use crate::memory::Memory;
use crate::pages::window::{Added, Window};

impl<T: Trace> Memory<T> {
    /// Adds pages of a window as far as nothing stands in the way: see [`crate::pages::window`].
    pub fn add_window(&mut self, cpu: CpuId, window: &Window, each: impl FnMut(&[Pfn])) -> Added {
        self.cache.add_window(&mut self.core, &mut self.lru, cpu, window, each)
    }

    /// Reads pages that are there, as far as they go; returns the first place that was not read.
    pub fn read_present(
        &mut self,
        cpu: CpuId,
        mapping: MappingId,
        pages: Range<u32>,
        last: &mut Option<Pfn>,
    ) -> u32 {
        self.cache.read_present(&mut self.core, &mut self.lru, cpu, mapping, pages, last)
    }

    /// The frames of the pages of a file at these places, one after the other; none where there is no page.
    pub fn each_frame(&self, mapping: MappingId, pages: Range<u32>, each: impl FnMut(Option<Pfn>)) {
        self.cache.each_frame(&self.core.alloc.frames, mapping, pages, each);
    }

    /// Pages of a file are valid.
    pub fn unlock_pages(&mut self, mapping: MappingId, pages: Range<u32>) {
        self.cache.unlock_pages(&mut self.core, mapping, pages);
    }
}
