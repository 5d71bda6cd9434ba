//! Invariants of policies for file pages: they know the pages of files that are in memory, no others and each once, and
//! what is on their lists is theirs.

use std_alloc::format;

use units::Pfn;

use crate::base::event::Trace;
use crate::base::frame::PageFlags;
use crate::base::violation::{Violation, ensure};
use crate::lru::cache_ext::lists::Folio;
use crate::memory::Memory;

impl<T: Trace> Memory<T> {
    pub(super) fn check_policies(&self) -> Result<(), Violation> {
        let Some(attached) = self.lru.attached() else { return Ok(()) };
        let (frames, registry) = (&self.core.alloc.frames, &attached.registry);
        let is_known = |pfn| frames.is_lru_page(pfn) && !frames.is_anon(pfn);
        let is_files = |pfn| is_known(pfn) && !frames.flags(pfn).has(PageFlags::SWAP_BACKED);
        let mut known = 0_usize;
        for (folio, pfn, group, place) in registry.folios() {
            known += 1;
            ensure!(is_files(pfn), "policies know {folio:?} at {pfn:?}, which holds no page of a file");
            let (memcg, (_, node)) = (self.core.page_memcg(pfn), self.core.page_place(pfn));
            let own = self.lru.group(memcg, node);
            ensure!(group == own, "{folio:?} is known to lruvec {group} and belongs to {own}");
            let holds = (frames.owner(pfn), frames.index(pfn));
            ensure!(
                holds == (place.file.0, place.index),
                "{folio:?} is {place:?} and its frame holds {holds:?}"
            );
            ensure!(registry.at(pfn) == Some(folio), "{pfn:?} is {folio:?} and says {:?}", registry.at(pfn));
        }
        let resident = (0..frames.len()).filter(|&index| is_files(Pfn(index as u32))).count();
        ensure!(resident == known, "policies know {known} folios of {resident}");
        let wrong =
            |folio: Folio| Violation(format!("{folio:?} is not on the list of a policy that it names"));
        registry.check().map_err(wrong)
    }
}

#[cfg(test)]
mod tests {
    use std_alloc::boxed::Box;
    use std_alloc::string::String;

    use units::{CpuId, Order, Pages};

    use super::*;
    use crate::alloc::flags::AllocFlags;
    use crate::base::event::NoTrace;
    use crate::base::gfp::Gfp;
    use crate::base::ids::MemcgId;
    use crate::base::layout::MemoryLayout;
    use crate::base::sysctl::Sysctls;
    use crate::lru::cache_ext::hooks::EvictionPolicy;
    use crate::lru::cache_ext::lists::{End, Eviction, EvictionList, Lists};
    use crate::version::presets::Version;

    const CPU: CpuId = CpuId(0);

    #[derive(Debug, Clone)]
    struct Listing(EvictionList);

    impl EvictionPolicy for Listing {
        fn init(&mut self, lists: &mut Lists<'_>) {
            self.0 = lists.create();
        }

        fn evict_folios(&mut self, _lists: &mut Lists<'_>, _eviction: &mut Eviction) {}

        fn folio_added(&mut self, lists: &mut Lists<'_>, folio: Folio) {
            assert!(lists.add(self.0, folio, End::Tail), "it is on no list yet");
        }

        fn folio_accessed(&mut self, _lists: &mut Lists<'_>, _folio: Folio) {}

        fn folio_removed(&mut self, _lists: &mut Lists<'_>, _folio: Folio) {}
    }

    /// What the check says of two files of a page each, of which policies know, and of a free page, after `breaks` had
    /// its way.
    fn found(breaks: impl FnOnce(&mut Memory<NoTrace>, [Pfn; 3])) -> Result<(), String> {
        let version = Version::parse("linux-6.12").expect("a version");
        let layout = MemoryLayout::flat(Pages(4096), 1);
        let mut mem = Memory::boot(&layout, version, Sysctls::default(), NoTrace).expect("it boots");
        mem.attach_policy(Box::new(Listing(EvictionList::NIL)));
        let pages = [(); 3].map(|()| {
            let page = mem.core.alloc.alloc(CPU, Gfp::HIGHUSER_MOVABLE, Order(0), AllocFlags::WMARK_MIN).page;
            page.expect("memory is free")
        });
        for &pfn in &pages[..2] {
            let file = mem.mapping_create();
            assert_eq!(mem.insert_page(file, 0, pfn, MemcgId::ROOT), None);
            mem.lru_add(CPU, pfn);
        }
        mem.lru_drain_all();
        mem.check().expect("it is sound");
        breaks(&mut mem, pages);
        mem.check_policies().map_err(|violation| violation.0)
    }

    #[test]
    fn policies_know_pages_of_files_and_all_of_them() {
        assert_eq!(found(|_, _| {}), Ok(()));
        let forgotten = |mem: &mut Memory<NoTrace>, [page, ..]: [Pfn; 3]| {
            mem.lru.tell_removed(&mem.core, page);
        };
        assert_eq!(found(forgotten), Err("policies know 1 folios of 2".into()));
        let strayed = |mem: &mut Memory<NoTrace>, [page, _, free]: [Pfn; 3]| {
            mem.lru.tell_moved(page, free);
        };
        let told = found(strayed).expect_err("it is broken");
        assert!(told.contains("which holds no page of a file"), "{told}");
        let elsewhere = |mem: &mut Memory<NoTrace>, [page, ..]: [Pfn; 3]| {
            let index = mem.core.alloc.frames.index(page);
            mem.core.alloc.frames.set_owner(page, 7, index);
        };
        let told = found(elsewhere).expect_err("it is broken");
        assert!(told.contains("and its frame holds (7, 0)"), "{told}");
        let others = |mem: &mut Memory<NoTrace>, [page, ..]: [Pfn; 3]| {
            let group = mem.memcg_create(MemcgId::ROOT, "A");
            mem.core.alloc.frames.set_memcg(page, group.0);
        };
        let told = found(others).expect_err("it is broken");
        assert!(told.contains("is known to lruvec 0 and belongs to 1"), "{told}");
    }
}
