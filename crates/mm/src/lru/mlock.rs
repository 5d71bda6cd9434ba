//! Pages that `mlock` keeps in memory: the unevictable list, and the ways on and off it (MECHANISMS 13.2,
//! MECHANISMS-6X 10).
//!
//! ```text
//!   mlock --> [batch of 15 or 31] --culled--> unevictable list --munlock or end: rescued--> inactive
//! ```
//! A page counts as locked at once, and as culled when its batch is flushed; reclaim never looks at the
//! list. Left out: that a page which is locked while it is on a list stays there until its batch is flushed
//! (5.18), and pages that are stranded because somebody else held them. Neighbours: `locked.rs` counts them,
//! `two_lists.rs` puts them on the list.

use units::{CpuId, Pfn};

use crate::base::event::Trace;
use crate::base::frame::{FrameState, PageFlags};
use crate::base::vmstat::VmEvent;
use crate::core::Core;
use crate::lru::lists::Lru;

impl Lru {
    /// Locks a page into memory (`mlock_folio`): off whatever list it is on, and into the batch of `cpu`. One
    /// that waits in a batch goes to the unevictable list from there.
    pub fn mlock<T: Trace>(&mut self, core: &mut Core<T>, cpu: CpuId, pfn: Pfn) {
        let flags = core.alloc.frames.flags(pfn);
        if flags.has(PageFlags::MLOCKED) {
            return;
        }
        let is_listed = core.alloc.frames.state(pfn) == FrameState::Lru;
        if is_listed {
            self.remove(core, pfn);
        }
        core.alloc.frames.put_flags(pfn, flags.set(PageFlags::MLOCKED).clear(PageFlags::ACTIVE));
        self.count_locked(core, pfn, true);
        core.alloc.events.add(VmEvent::UnevictablePgsMlocked, u64::from(core.alloc.frames.pages(pfn)));
        if is_listed {
            self.add(core, cpu, pfn);
        }
    }

    /// Lets a page go (`munlock_folio`): from the unevictable list it goes to an inactive one.
    pub fn munlock<T: Trace>(&mut self, core: &mut Core<T>, pfn: Pfn) {
        let flags = core.alloc.frames.flags(pfn);
        if !flags.has(PageFlags::MLOCKED) {
            return;
        }
        self.forget_locked(core, pfn);
        let free = flags.clear(PageFlags::MLOCKED).clear(PageFlags::UNEVICTABLE);
        if flags.has(PageFlags::UNEVICTABLE) && core.alloc.frames.state(pfn) == FrameState::Lru {
            self.relist(core, pfn, free);
        } else {
            core.alloc.frames.put_flags(pfn, free);
        }
    }
}
