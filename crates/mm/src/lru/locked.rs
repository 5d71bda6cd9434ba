//! How many pages are locked, and the marks of one that comes to a list or leaves it for good (MECHANISMS 13.2).
//!
//! Neighbour: `mlock.rs`, which locks and unlocks.

use units::{NodeId, Pfn};

use crate::base::event::Trace;
use crate::base::frame::PageFlags;
use crate::base::layout::ZoneKind;
use crate::base::vmstat::VmEvent;
use crate::core::Core;
use crate::lru::lists::Lru;

impl Lru {
    /// Locked pages of one zone kind on a node, on the list or in a batch: `nr_mlock`.
    pub fn locked_pages(&self, node: NodeId, kind: ZoneKind) -> u64 {
        self.locked[node.index()][kind as usize]
    }

    /// Locked pages of the machine.
    pub fn all_locked_pages(&self) -> u64 {
        self.locked.iter().flatten().sum()
    }

    /// A page comes to a list out of a batch: a locked one is culled, to the unevictable list.
    pub(super) fn cull<T: Trace>(&self, core: &mut Core<T>, pfn: Pfn) {
        if core.alloc.frames.flags(pfn).has(PageFlags::MLOCKED) {
            core.alloc.frames.set_flags(pfn, PageFlags::UNEVICTABLE);
            core.alloc.events.add(VmEvent::UnevictablePgsCulled, u64::from(core.alloc.frames.pages(pfn)));
        }
    }

    /// A locked page is unlocked, or unmapped, by which it is unlocked, too.
    pub(super) fn forget_locked<T: Trace>(&mut self, core: &mut Core<T>, pfn: Pfn) {
        self.count_locked(core, pfn, false);
        let (flags, pages) = (core.alloc.frames.flags(pfn), u64::from(core.alloc.frames.pages(pfn)));
        core.alloc.events.add(VmEvent::UnevictablePgsMunlocked, pages);
        if flags.has(PageFlags::UNEVICTABLE) {
            core.alloc.events.add(VmEvent::UnevictablePgsRescued, pages);
        }
    }

    pub(super) fn count_locked<T: Trace>(&mut self, core: &Core<T>, pfn: Pfn, is_locked: bool) {
        let (zone, node) = core.page_place(pfn);
        let pages = u64::from(core.alloc.frames.pages(pfn));
        let count = &mut self.locked[node.index()][zone as usize];
        *count = if is_locked { *count + pages } else { *count - pages };
    }
}
