//! Moving a page in use to another frame (`migrate_pages`).
//!
//! The new frame takes over the place in the page table or page cache tree, flags, cgroup and list;
//! it goes to the head of its list as a page does that was isolated and put back. The old frame
//! goes to the CPU's list of free pages. What a page holds is not stored, so nothing is copied.
//!
//! Left out: waiting for a locked page or for writeback, as only the strictest mode does; that page tables forget
//! accesses to pages of files, and those that hardware walks accesses to any (before 6.1).
//! Neighbour: [`crate::compact::scanners`] says which pages move where.

use units::{CpuId, Pfn};

use crate::base::event::Trace;
use crate::base::frame::{FrameState, NO_OWNER, PageFlags, anon_owner};
use crate::base::ids::MappingId;
use crate::base::layout::PageTables;
use crate::core::Core;
use crate::lru::lists::Lru;
use crate::pages::anon::AnonMaps;
use crate::pages::cache::PageCache;

/// Whether the page at `pfn` is one whose users are known and can be told that it moves: it is
/// on a list, and a file or an anonymous mapping owns it.
pub fn is_movable<T: Trace>(core: &Core<T>, pfn: Pfn) -> bool {
    let frames = &core.alloc.frames;
    let is_known = frames.owner(pfn) != NO_OWNER || frames.flags(pfn).has(PageFlags::SWAP_CACHE);
    frames.state(pfn) == FrameState::Lru && is_known
}

/// Whether somebody holds the page so that it cannot move now.
pub(crate) fn is_busy<T: Trace>(core: &Core<T>, pfn: Pfn) -> bool {
    // A journal holds the buffers of its pages until they are written (`buffer_migrate_page_norefs`, 5.0): of pages to
    // be moved a fifth stay in guests of 5.10, a third on 6.12. Left out: that 4.19 drops buffers for it.
    let held = PageFlags::LOCKED
        .set(PageFlags::WRITEBACK)
        .set(PageFlags::ACTIVATING)
        .set(PageFlags::JOURNAL)
        .set(PageFlags::JOURNAL_HEAD);
    core.alloc.frames.flags(pfn).has_any(held)
}

/// Moves the isolated page `old` to the frame `new`, in use, of the same order and zone, and
/// frees `old` to the lists of `cpu`.
pub(crate) fn migrate<T: Trace>(
    core: &mut Core<T>,
    lru: &mut Lru,
    cache: &mut PageCache,
    anon: &mut AnonMaps,
    cpu: CpuId,
    old: Pfn,
    new: Pfn,
) {
    let frames = &core.alloc.frames;
    let (owner, index, order) = (frames.owner(old), frames.index(old), frames.order(old));
    assert!(frames.state(old) == FrameState::Isolated && frames.state(new) == FrameState::InUse);
    assert!(order == frames.order(new), "a page moves to a block of its own order");
    match anon_owner(owner) {
        Some(id) => anon.replace(core, id, old, new),
        None if owner == NO_OWNER => {} // In the swap cache only.
        None => cache.replace_page(core, MappingId(owner), old, new),
    }
    if core.alloc.frames.flags(old).has(PageFlags::SWAP_CACHE) {
        cache.replace_swap(core, old, new);
    }
    let frames = &mut core.alloc.frames;
    let flags = frames.flags(old);
    // Guests of User-Mode Linux from 5.10 to 7.2 take a fault on each anonymous page that was moved, when it is next
    // written to.
    let is_old = anon_owner(owner).is_some() && core.page_tables != PageTables::Hardware;
    frames.put_flags(new, if is_old { flags.clear(PageFlags::YOUNG) } else { flags });
    // Slabs that are attached, or its slot.
    if frames.flags(old).has_any(PageFlags::PRIVATE.set(PageFlags::SWAP_CACHE)) {
        for page in 0..frames.pages(old) {
            frames.set_private(Pfn(new.0 + page), frames.private(Pfn(old.0 + page)));
        }
    }
    frames.set_memcg(new, frames.memcg(old));
    frames.set_owner(new, owner, index);
    frames.set_owner(old, NO_OWNER, 0);
    lru.tell_moved(old, new);
    lru.insert(core, new);
    core.alloc.free(cpu, old, order);
}
