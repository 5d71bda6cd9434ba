//! Looking for a page of a file.

use mm::base::event::Trace;
use mm::base::frame::PageFlags;
use mm::pages::tree::Slot;
use units::{Order, Pfn};

use crate::files::inode::Inode;
use crate::handle::Kernel;
use crate::machine::Machine;

/// What a look at one page found.
pub(crate) enum Found {
    Missing,
    Locked,
    Marker(Order),
    Ready(Pfn),
}

impl<M: Machine, T: Trace> Kernel<M, T> {
    pub(crate) fn look(&self, inode: &Inode, index: u32) -> Found {
        self.mem(|mem| {
            let Slot::Page(pfn) = mem.cache.find(inode.mapping, index) else { return Found::Missing };
            if mem.core.take_readahead_mark(pfn) {
                return Found::Marker(mem.core.alloc.frames.order(pfn));
            }
            if mem.core.alloc.frames.flags(pfn).has(PageFlags::LOCKED) {
                Found::Locked
            } else {
                Found::Ready(pfn)
            }
        })
    }
}
