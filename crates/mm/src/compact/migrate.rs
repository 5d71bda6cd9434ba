//! Moving a page in use to another frame (`migrate_pages`).
//!
//! The new frame takes over the place in the page table or page cache tree, flags, cgroup and list;
//! it goes to the head of its list as a page does that was isolated and put back. The old frame
//! goes to the CPU's list of free pages. What a page holds is not stored, so nothing is copied.
//!
//! Left out: waiting for a locked page or for writeback, as only the strictest mode does.
//! Neighbour: [`crate::compact::scanners`] says which pages move where.

use units::{CpuId, Pfn};

use crate::base::event::Trace;
use crate::base::frame::{FrameState, NO_OWNER, PageFlags};
use crate::base::ids::MappingId;
use crate::memory::Memory;
use crate::pages::anon::anon_owner;

impl<T: Trace> Memory<T> {
    /// Whether the page at `pfn` is one whose users are known and can be told that it moves: it is
    /// on a list, and a file or an anonymous mapping owns it.
    pub fn is_movable(&self, pfn: Pfn) -> bool {
        self.core.alloc.frames.state(pfn) == FrameState::Lru && self.core.alloc.frames.owner(pfn) != NO_OWNER
    }

    /// Whether somebody holds the page so that it cannot move now.
    pub(crate) fn is_busy(&self, pfn: Pfn) -> bool {
        let held = PageFlags::LOCKED.set(PageFlags::WRITEBACK).set(PageFlags::ACTIVATING);
        self.core.alloc.frames.flags(pfn).has_any(held)
    }

    /// Moves the isolated page `old` to the frame `new`, in use, of the same order and zone, and
    /// frees `old` to the lists of `cpu`.
    pub(crate) fn migrate(&mut self, cpu: CpuId, old: Pfn, new: Pfn) {
        let frames = &self.core.alloc.frames;
        let (owner, index, order) = (frames.owner(old), frames.index(old), frames.order(old));
        assert!(frames.state(old) == FrameState::Isolated && frames.state(new) == FrameState::InUse);
        assert!(order == frames.order(new), "a page moves to a block of its own order");
        match anon_owner(owner) {
            Some(anon) => self.anon_replace(anon, old, new),
            None => self.replace_page(MappingId(owner), old, new),
        }
        let frames = &mut self.core.alloc.frames;
        frames.put_flags(new, frames.flags(old));
        frames.set_private(new, frames.private(old));
        frames.set_memcg(new, frames.memcg(old));
        frames.set_owner(new, owner, index);
        frames.set_owner(old, NO_OWNER, 0);
        self.lru_insert(new);
        self.core.alloc.free(cpu, old, order);
    }
}
