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
