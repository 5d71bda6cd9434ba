//! Invariants of memory that is locked (`mlock`; MECHANISMS-6X 10): reclaim must never meet it.

use units::Pfn;

use crate::base::event::Trace;
use crate::base::frame::{FrameState, NO_OWNER, PageFlags};
use crate::base::violation::{Violation, ensure};
use crate::lru::lists::LruList;
use crate::memory::Memory;
use crate::pages::anon::anon_owner;

impl<T: Trace> Memory<T> {
    /// A locked page is mapped anonymous memory, and either on the unevictable list or in a batch on its way
    /// there; nothing else is on that list, and what the list holds is what counts as locked. So a chunk that
    /// reclaim takes off the other lists cannot have one.
    pub(super) fn check_mlocked(&self) -> Result<(), Violation> {
        let frames = &self.core.alloc.frames;
        let (mut listed, mut batched) = (0, 0);
        for pfn in (0..frames.len()).map(|index| Pfn(index as u32)) {
            let flags = frames.flags(pfn);
            let state = frames.state(pfn);
            if !frames.is_lru_page(pfn) {
                continue;
            }
            let (locked, kept) = (flags.has(PageFlags::MLOCKED), flags.has(PageFlags::UNEVICTABLE));
            ensure!(locked || !kept, "{pfn:?} is unevictable and not locked: {flags:?}");
            if !locked {
                continue;
            }
            let owner = frames.owner(pfn);
            ensure!(owner != NO_OWNER && anon_owner(owner).is_some(), "{pfn:?} is locked and nobody maps it");
            ensure!(!flags.has(PageFlags::ACTIVE) || !kept, "{pfn:?} is locked and active: {flags:?}");
            let pages = u64::from(frames.pages(pfn));
            match state {
                FrameState::Lru => {
                    ensure!(kept, "{pfn:?} is locked and on a list that reclaim scans: {flags:?}");
                    listed += pages;
                }
                _ => batched += pages,
            }
        }
        let said = self.lru.pages(LruList::Unevictable);
        ensure!(
            said == listed,
            "{said} pages are unevictable, {listed} are locked and listed, {batched} not"
        );
        Ok(())
    }
}
