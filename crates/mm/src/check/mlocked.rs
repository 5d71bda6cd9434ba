//! Invariants of memory that is locked (`mlock`; MECHANISMS-6X 10): reclaim must never meet it.

use units::Pfn;

use crate::base::event::Trace;
use crate::base::frame::{FrameState, NO_OWNER, PageFlags, anon_owner};
use crate::base::violation::{Violation, ensure};
use crate::lru::lists::LruList;
use crate::memory::Memory;

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
        let (counted, locked) = (self.lru.all_locked_pages(), listed + batched);
        ensure!(counted == locked, "{counted} pages count as locked, {locked} are");
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std_alloc::string::String;

    use units::{CpuId, Order, Pages};

    use super::*;
    use crate::alloc::flags::AllocFlags;
    use crate::base::event::NoTrace;
    use crate::base::gfp::Gfp;
    use crate::base::ids::MemcgId;
    use crate::base::layout::MemoryLayout;
    use crate::base::sysctl::Sysctls;
    use crate::version::presets::Version;

    const CPU: CpuId = CpuId(0);

    /// What the check says of two pages of a mapping, of which the first is locked, after `breaks` had its way.
    fn found(breaks: impl FnOnce(&mut Memory<NoTrace>, [Pfn; 2])) -> Result<(), String> {
        let version = Version::parse("linux-6.1").expect("a version");
        let layout = MemoryLayout::flat(Pages(4096), 1);
        let mut mem = Memory::boot(&layout, version, Sysctls::default(), NoTrace).expect("it boots");
        let anon = mem.anon_create();
        let pages = [0, 1].map(|index| {
            let page = mem.core.alloc.alloc(CPU, Gfp::HIGHUSER_MOVABLE, Order(0), AllocFlags::WMARK_MIN).page;
            mem.anon_map(CPU, anon, index, page.expect("memory is free"), MemcgId::ROOT);
            page.expect("just seen")
        });
        mem.lru_drain_all();
        mem.anon_lock(CPU, anon, 0, 1);
        mem.lru_drain_all();
        mem.check().expect("it is sound");
        breaks(&mut mem, pages);
        mem.check_mlocked().map_err(|violation| violation.0)
    }

    #[test]
    fn only_locked_pages_are_unevictable_and_all_of_them() {
        assert_eq!(found(|_, _| {}), Ok(()));
        let unlocked = |mem: &mut Memory<NoTrace>, [locked, _]: [Pfn; 2]| {
            mem.core.alloc.frames.clear_flags(locked, PageFlags::MLOCKED);
        };
        let text = found(unlocked).expect_err("it is broken");
        assert!(text.contains("is unevictable and not locked"), "{text}");
        let listed = |mem: &mut Memory<NoTrace>, [_, other]: [Pfn; 2]| {
            mem.core.alloc.frames.set_flags(other, PageFlags::MLOCKED);
        };
        let text = found(listed).expect_err("it is broken");
        assert!(text.contains("is locked and on a list that reclaim scans"), "{text}");
        let unmapped = |mem: &mut Memory<NoTrace>, [locked, _]: [Pfn; 2]| {
            mem.core.alloc.frames.set_owner(locked, NO_OWNER, 0);
        };
        let text = found(unmapped).expect_err("it is broken");
        assert!(text.contains("is locked and nobody maps it"), "{text}");
    }
}
