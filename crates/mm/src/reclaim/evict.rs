//! Pages that reclaim took off their lists: clean file pages are freed, what is kept goes back.
//!
//! Where several go the same way in a row, what is the same for all of them is done once: whose ages advance, and what
//! is counted. Left out: pages with buffers, mapped and anonymous ones, which are freed one by one. Next:
//! [`super::page`] decides.

use units::{CpuId, Pfn};

use crate::alloc::page_alloc::chunk_of;
use crate::base::event::{Detail, Reason, Trace, TraceEvent};
use crate::base::frame::{FrameState, NO_OWNER, PageFlags};
use crate::base::ids::{MappingId, MemcgId};
use crate::base::vmstat::MemcgStat;
use crate::cgroup::charge::Uncharged;
use crate::core::Core;
use crate::lru::lists::Lru;
use crate::lru::mglru::access;
use crate::pages::cache::{PageCache, release_reclaimed_page};
use crate::pages::tree::put_shadow;
use crate::reclaim::state::Reclaim;
use crate::version::rules::{LruKind, Refaults};

/// A page that was isolated and not freed goes back to a list.
fn put_back<T: Trace>(core: &mut Core<T>, lru: &mut Lru, pfn: Pfn, active: bool) {
    let flags = core.alloc.frames.flags(pfn);
    match core.rules().lru {
        LruKind::Generations => core.alloc.frames.put_flags(pfn, access::rejected(flags)),
        LruKind::TwoLists | LruKind::S3Fifo | LruKind::Sieve if active => {
            core.alloc.frames.put_flags(pfn, flags.set(PageFlags::ACTIVE));
        }
        LruKind::TwoLists => {}
        LruKind::S3Fifo | LruKind::Sieve => return lru.keep_in_place(core, pfn),
    }
    lru.insert(core, pfn);
}

impl Reclaim {
    /// An isolated page goes back to the list that it was on.
    pub(super) fn keep<T: Trace>(&mut self, core: &mut Core<T>, lru: &mut Lru, pfn: Pfn) {
        match core.rules().lru {
            LruKind::TwoLists => self.insert_later(core, lru, pfn),
            _ => put_back(core, lru, pfn, false),
        }
    }

    /// An isolated page goes to the head of the list that its flags name: at once, or with those behind it, where
    /// nobody sees the difference.
    pub(super) fn insert_later<T: Trace>(&mut self, core: &mut Core<T>, lru: &mut Lru, pfn: Pfn) {
        if core.alloc.frames.pages(pfn) > 1 {
            self.put_kept_back(core, lru);
            return lru.insert(core, pfn);
        }
        let wants_each = core.alloc.trace.listens(Detail::Page) || core.alloc.goes_one_by_one();
        if wants_each || core.rules().lru != LruKind::TwoLists || !core.cgroups.counts_at_once() {
            return lru.insert(core, pfn);
        }
        self.kept.push(pfn);
    }

    /// An isolated page goes to the active list, behind those that were kept before.
    pub(super) fn activate<T: Trace>(&mut self, core: &mut Core<T>, lru: &mut Lru, pfn: Pfn) {
        self.put_kept_back(core, lru);
        put_back(core, lru, pfn, true);
    }

    /// What was kept is back on its lists.
    #[inline]
    pub(super) fn put_kept_back<T: Trace>(&mut self, core: &mut Core<T>, lru: &mut Lru) {
        if self.kept.is_empty() {
            return;
        }
        let mut kept = core::mem::take(&mut self.kept);
        lru.insert_isolated(core, &kept);
        kept.clear();
        self.kept = kept;
    }
}

/// Frees an isolated clean file page, leaving a shadow in its slot where the kernel remembers what it
/// evicted.
pub(super) fn evict<T: Trace>(
    core: &mut Core<T>,
    lru: &mut Lru,
    cache: &mut PageCache,
    cpu: CpuId,
    pfn: Pfn,
    target: MemcgId,
    uncharged: &mut Uncharged,
) {
    assert!(core.alloc.frames.owner(pfn) != NO_OWNER, "a file page on a list has a mapping");
    core.tell_page(pfn, |page| TraceEvent::FilemapDelete { page, reason: Reason::Reclaimed });
    lru.tell_removed(core, pfn);
    let shadow = match core.rules().refaults {
        Refaults::None => None,
        Refaults::Shadows => Some(lru.evict_shadow(core, pfn, target)),
    };
    cache.remove_page(core, cpu, pfn, shadow);
    core.alloc.frames.set_state(pfn, FrameState::InUse);
    release_reclaimed_page(core, cpu, pfn, uncharged);
}

/// Whether pages can be freed in a row: nobody wants to hear of each, and those without a flag that keeps them are
/// freed in any case.
fn frees_in_a_row<T: Trace>(core: &Core<T>, lru: &Lru) -> bool {
    let rules = core.rules();
    let plain = rules.lru == LruKind::TwoLists && rules.refaults == Refaults::Shadows;
    plain && !lru.has_policies() && !core.alloc.trace.listens(Detail::Page) && !core.alloc.goes_one_by_one()
}

/// [`evict`] of isolated pages from the first on, as far as they are single pages of files of one cgroup and node
/// with none of `special` flags and pages can be freed in a row. Returns how many. Inlined as far as to see that the
/// first one is not: chunks of folios, and of pages that stay, have a look for each.
#[inline]
pub(super) fn evict_row<T: Trace>(
    core: &mut Core<T>,
    lru: &mut Lru,
    cache: &mut PageCache,
    cpu: CpuId,
    pages: &[Pfn],
    special: PageFlags,
    target: MemcgId,
    uncharged: &mut Uncharged,
) -> u32 {
    let first = pages.first().and_then(|&pfn| core.alloc.frames.single_of_file(pfn));
    if first.is_none_or(|first| first.0.has_any(special.set(PageFlags::ATTACHED))) {
        return 0;
    }
    evict_singles(core, lru, cache, cpu, pages, special, target, uncharged)
}

#[inline(never)]
fn evict_singles<T: Trace>(
    core: &mut Core<T>,
    lru: &mut Lru,
    cache: &mut PageCache,
    cpu: CpuId,
    pages: &[Pfn],
    special: PageFlags,
    target: MemcgId,
    uncharged: &mut Uncharged,
) -> u32 {
    let special = special.set(PageFlags::ATTACHED);
    let first = pages.first().and_then(|&pfn| core.alloc.frames.single_of_file(pfn));
    let Some((_, _, _, group)) = first.filter(|first| !first.0.has_any(special) && frees_in_a_row(core, lru))
    else {
        return 0;
    };
    let (memcg, (_, node)) = (MemcgId(group), core.page_place(pages[0]));
    let mut ages = lru.begin_evictions(core, memcg, node, target);
    let first_chunk = chunk_of(pages[0]);
    let is_one = |&pfn: &Pfn| {
        let (flags, owner, index, of) = core.alloc.frames.single_of_file(pfn)?;
        let is_near = chunk_of(pfn) == first_chunk || core.page_place(pfn).1 == node;
        (of == group && !flags.has_any(special) && is_near).then_some((owner, index, flags))
    };
    let mut freed = 0;
    while let Some((owner, first, _)) = pages.get(freed as usize).and_then(is_one) {
        // As many as are in one leaf.
        freed += cache.leave_shadows(MappingId(owner), first, |slots| {
            let mut count = 0;
            for (of, index, flags) in pages[freed as usize..].iter().map_while(is_one) {
                if of != owner || (index >> 6) != (first >> 6) {
                    break;
                }
                put_shadow(slots, index, ages.next_shadow(flags));
                count += 1;
            }
            count
        });
    }
    lru.end_evictions(core, &ages, freed);
    // What was gathered of others is counted after the first page and before the second.
    core.cgroups.sub_stat_by_ones(memcg, node, MemcgStat::File, freed.min(1));
    core.cgroups.gather_singles(uncharged, memcg, u64::from(freed));
    core.cgroups.sub_stat_by_ones(memcg, node, MemcgStat::File, freed.saturating_sub(1));
    core.alloc.free_cold_singles(cpu, &pages[..freed as usize]);
    freed
}
