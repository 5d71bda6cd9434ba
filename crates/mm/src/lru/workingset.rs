//! Refault detection: shadow entries and refault distance (MECHANISMS 7).
//!
//! When a page is evicted, its slot in the page cache tree, or since 5.9 its swap slot, keeps a *shadow*: which
//! cgroup and node it was evicted from, and the age of that lruvec. When the page is read again, the
//! difference of ages, the refault distance, tells how many more pages the list would have needed
//! to keep it. If other lists are at least that long, the page is activated at once: the active list of files; for an
//! anonymous page the inactive one as well; since 5.9 also those of anonymous pages, as far as these could have
//! gone instead (SWAP 2.5).
//!
//! `root-aging` off: age and distance are those of the owner's own lruvec. On: the shadow belongs to
//! the cgroup at which reclaim started; an eviction ages the owner and all its ancestors up to 5.7,
//! since 5.8 that cgroup and its ancestors:
//!
//! ```text
//!                                   5.4     5.5          6.1
//!   page of P/A, reclaim of P/A     P/A     P/A P root   P/A P root
//!                reclaim of P       P/A     P/A P root       P root
//!                global reclaim     P/A     P/A P root         root
//! ```
//!
//! So does an activation, by an access or a refault, the owner and all above it; since 5.8 also by a scan of the
//! inactive list ([`Lru::age_on_scan`]).
//!
use units::{NodeId, Pfn};

use crate::base::event::{Reason, Trace, TraceEvent};
use crate::base::frame::PageFlags;
use crate::base::ids::MemcgId;
use crate::base::layout::ZoneKind;
use crate::base::vmstat::{MemcgStat, VmEvent};
use crate::core::Core;
use crate::lru::lists::{Lru, LruList};
use crate::lru::queues;
use crate::version::rules::{ActivationAge, Aging, AnonStart, EvictionAge, LruKind, RefaultSwap};

/// What an evicted page leaves in its slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shadow {
    /// The cgroup that reclaim started at (root aging) or that owned the page.
    pub memcg: MemcgId,
    /// Its node.
    pub node: NodeId,
    /// Age of that lruvec at eviction, modulo [`AGE_MASK`] + 1.
    pub age: u64,
    /// Whether the page had been part of the working set.
    pub workingset: bool,
}

/// Ages are kept in 36 bits.
pub const AGE_MASK: u64 = (1 << 36) - 1;

impl Shadow {
    /// Packs into 63 bits: the tree marks shadows by the topmost bit.
    pub(crate) const fn pack(self) -> u64 {
        self.age
            | ((self.node.0 as u64) << 36)
            | ((self.memcg.0 as u64) << 44)
            | ((self.workingset as u64) << 60)
    }

    pub(crate) const fn unpack(bits: u64) -> Self {
        Self {
            age: bits & AGE_MASK,
            node: NodeId(((bits >> 36) & 0xff) as u8),
            memcg: MemcgId(((bits >> 44) & 0xffff) as u16),
            workingset: ((bits >> 60) & 1) != 0,
        }
    }
}

/// Evictions of single pages of one cgroup and node, one after the other.
#[derive(Debug)]
#[must_use]
pub(crate) struct Evictions {
    memcg: MemcgId,
    node: NodeId,
    aged: MemcgId,
    /// Of the lruvec that shadows name, as of now.
    age: u64,
    /// What each eviction adds to it.
    step: u64,
}

impl Evictions {
    /// What the next page, with these flags, leaves in its slot.
    #[inline]
    pub(crate) fn next_shadow(&mut self, flags: PageFlags) -> Shadow {
        let (memcg, node, age) = (self.memcg, self.node, self.age & AGE_MASK);
        self.age += self.step;
        Shadow { memcg, node, age, workingset: flags.has(PageFlags::WORKINGSET) }
    }
}

impl Lru {
    fn add_age<T: Trace>(&mut self, core: &Core<T>, memcg: MemcgId, node: NodeId, pages: u64) {
        if core.rules().aging == Aging::PerCgroup {
            let index = self.index(memcg, node);
            self.lruvecs[index].age += pages;
            return;
        }
        let mut next = Some(memcg);
        while let Some(id) = next {
            let index = self.index(id, node);
            self.lruvecs[index].age += pages;
            next = core.cgroups[id].parent;
        }
    }

    /// `workingset_eviction`: ages the lists and makes the shadow of `pfn`, evicted by a run that
    /// started at `target`.
    #[inline]
    pub(crate) fn evict_shadow<T: Trace>(&mut self, core: &Core<T>, pfn: Pfn, target: MemcgId) -> Shadow {
        let owner = core.page_memcg(pfn);
        let (_, node) = core.page_place(pfn);
        if core.rules().lru == LruKind::Generations {
            let (age, workingset) = self.gen_eviction(core, pfn);
            return Shadow { memcg: owner, node, age: age & AGE_MASK, workingset };
        }
        let memcg = if core.rules().aging == Aging::Root { target } else { owner };
        let pages = u64::from(core.alloc.frames.pages(pfn));
        // The shadow holds the age before this eviction from 5.5 on, after it up to 5.4; one page
        // in either case.
        let age = self.lruvecs[self.index(memcg, node)].age & AGE_MASK;
        let aged = match core.rules().eviction_age {
            EvictionAge::Owner => owner,
            EvictionAge::Target => memcg,
        };
        let workingset = core.alloc.frames.flags(pfn).has(PageFlags::WORKINGSET);
        // What goes from S3-FIFO's main queue takes nobody's place in its memory.
        if !(workingset && core.rules().lru == LruKind::S3Fifo) {
            self.add_age(core, aged, node, pages);
        }
        Shadow { memcg, node, age, workingset }
    }

    /// Begins evictions of single pages of `owner` on `node` by a run that started at `target`: each leaves the shadow
    /// that [`Self::evict_shadow`] would make, and nobody looks at ages before they end.
    pub(crate) fn begin_evictions<T: Trace>(
        &self,
        core: &Core<T>,
        owner: MemcgId,
        node: NodeId,
        target: MemcgId,
    ) -> Evictions {
        let by_root = core.rules().aging == Aging::Root;
        let memcg = if by_root { target } else { owner };
        let aged = match core.rules().eviction_age {
            EvictionAge::Owner => owner,
            EvictionAge::Target => memcg,
        };
        let ages = if by_root { core.cgroups.is_descendant(aged, memcg) } else { aged == memcg };
        let age = self.lruvecs[self.index(memcg, node)].age;
        Evictions { memcg, node, aged, age, step: u64::from(ages) }
    }

    /// Ages the lists by evictions that are over, of so many pages.
    pub(crate) fn end_evictions<T: Trace>(&mut self, core: &Core<T>, evictions: &Evictions, pages: u32) {
        self.add_age(core, evictions.aged, evictions.node, u64::from(pages));
    }

    /// `workingset_activation`: an activation makes room on the inactive list as an eviction does.
    pub(crate) fn age_on_activation<T: Trace>(&mut self, core: &Core<T>, pfn: Pfn) {
        let (_, node) = core.page_place(pfn);
        let pages = u64::from(core.alloc.frames.pages(pfn));
        self.add_age(core, core.page_memcg(pfn), node, pages);
    }

    /// A scan of an inactive list put so many of its pages on the active one: they left their list as evicted ones
    /// do, and shadows age with it, as by other activations (MECHANISMS 7.2). SWAP 2.5 does not say so; measured:
    /// refaults of a guest of 6.1 that come too late. That anonymous pages age files at all began with 5.8.
    pub(crate) fn age_on_scan<T: Trace>(
        &mut self,
        core: &Core<T>,
        memcg: MemcgId,
        node: NodeId,
        activated: u64,
    ) {
        let rules = core.rules();
        if rules.activation_age == ActivationAge::Scans && rules.lru == LruKind::TwoLists && activated > 0 {
            self.add_age(core, memcg, node, activated);
        }
    }

    /// `workingset_refault`: `pfn` is back and `shadow` lay in its slot. It is flagged active if
    /// the distance says that it would have stayed with a longer list.
    pub fn refault<T: Trace>(&mut self, core: &mut Core<T>, pfn: Pfn, shadow: Shadow) {
        if core.rules().lru == LruKind::Generations {
            self.gen_refault(core, pfn, (shadow.memcg, shadow.node), shadow.age, shadow.workingset);
            return;
        }
        let owner = core.page_memcg(pfn);
        let (_, node) = core.page_place(pfn);
        let pages = u64::from(core.alloc.frames.pages(pfn));
        let counters = COUNTERS[usize::from(LruList::of(core.alloc.frames.flags(pfn)).is_file())];
        let counted = if core.rules().aging == Aging::Root { owner } else { shadow.memcg };
        count_workingset(core, counted, node, counters.refault, pages);
        let eviction = self.index(shadow.memcg, shadow.node);
        let distance = self.lruvecs[eviction].age.wrapping_sub(shadow.age) & AGE_MASK;
        let room = self.room_for_refault(core, pfn, shadow);
        let workingset = shadow.workingset;
        core.tell_page(pfn, |page| {
            let is_within = room.is_some_and(|room| distance <= room);
            let reason = if is_within { Reason::WithinActive } else { Reason::BeyondActive };
            TraceEvent::PageRefaulted { page, reason, distance, counted, workingset }
        });
        if room.is_none_or(|room| distance > room) {
            return;
        }
        core.alloc.frames.set_flags(pfn, PageFlags::ACTIVE);
        if core.rules().lru == LruKind::S3Fifo {
            self.note_activation(core, counted, node);
        } else if core.rules().aging == Aging::Root {
            self.age_on_activation(core, pfn);
        } else {
            self.lruvecs[eviction].age += pages;
            self.note_activation(core, counted, node);
        }
        count_workingset(core, counted, node, counters.activate, pages);
        if shadow.workingset {
            core.alloc.frames.set_flags(pfn, PageFlags::WORKINGSET);
            self.note_refault(core, pfn);
            count_workingset(core, counted, node, counters.restore, pages);
        }
    }

    /// Pages on the lists of which some could have gone instead of a page that is back; none where nobody asks,
    /// since it stays inactive.
    fn room_for_refault<T: Trace>(&self, core: &Core<T>, pfn: Pfn, shadow: Shadow) -> Option<u64> {
        let of = |list: LruList| match core.rules().aging {
            Aging::Root => core.cgroups.reclaim_stat(shadow.memcg, shadow.node, list.stat()),
            Aging::PerCgroup => self.lruvec(shadow.memcg, shadow.node).size(list, ZoneKind::Movable),
        };
        let is_anon = !LruList::of(core.alloc.frames.flags(pfn)).is_file();
        match core.rules().lru {
            LruKind::S3Fifo if !is_anon => {
                let pages = of(LruList::InactiveFile) + of(LruList::ActiveFile);
                return (!shadow.workingset).then(|| queues::remembered(pages));
            }
            LruKind::Sieve if !is_anon => return None,
            _ => {}
        }
        let mut room = of(LruList::ActiveFile);
        if is_anon {
            room += of(LruList::InactiveFile);
        }
        let payer = match core.rules().refault_swap {
            RefaultSwap::OfPage => core.page_memcg(pfn),
            RefaultSwap::OfEviction => shadow.memcg,
        };
        let counts_anon = core.rules().anon_start == AnonStart::Inactive && core.swap.total_pages() > 0;
        if counts_anon && core.swap.free_for(&core.cgroups, payer) > 0 {
            room += of(LruList::ActiveAnon) + if is_anon { 0 } else { of(LruList::InactiveAnon) };
        }
        Some(room)
    }

    /// `snapshot_refaults`: remembers how many refaulted pages were activated so far. Root aging
    /// does so at the target only, before it in every cgroup below it.
    pub fn snapshot_refaults<T: Trace>(&mut self, core: &Core<T>, target: MemcgId, node: NodeId) {
        if core.rules().aging == Aging::Root {
            let index = self.index(target, node);
            self.lruvecs[index].refaults = [
                core.cgroups.reclaim_stat(target, node, MemcgStat::WorkingsetActivateAnon),
                core.cgroups.reclaim_stat(target, node, MemcgStat::WorkingsetActivateFile),
            ];
            return;
        }
        let mut activated = core::mem::take(&mut self.activated);
        activated.retain(|&(id, place)| {
            let is_due = place == node && core.cgroups.is_descendant(id, target);
            if is_due {
                let index = self.index(id, node);
                self.lruvecs[index].refaults = [
                    core.cgroups.local_stat(id, node, MemcgStat::WorkingsetActivateAnon),
                    core.cgroups.local_stat(id, node, MemcgStat::WorkingsetActivateFile),
                ];
            }
            !is_due
        });
        self.activated = activated;
    }

    /// A refaulted page of `memcg` is about to be activated: the next snapshot looks at the cgroup.
    fn note_activation<T: Trace>(&mut self, core: &Core<T>, memcg: MemcgId, node: NodeId) {
        let so_far = [MemcgStat::WorkingsetActivateAnon, MemcgStat::WorkingsetActivateFile]
            .map(|stat| core.cgroups.local_stat(memcg, node, stat));
        if self.lruvec(memcg, node).refaults == so_far {
            self.activated.push((memcg, node));
        }
    }
}

/// What is counted of a refault, under `/proc/vmstat` and in the cgroup.
#[derive(Clone, Copy)]
struct Counters {
    refault: (VmEvent, MemcgStat),
    activate: (VmEvent, MemcgStat),
    restore: (VmEvent, MemcgStat),
}

/// Those of anonymous pages, and of file pages.
const COUNTERS: [Counters; 2] = [
    Counters {
        refault: (VmEvent::WorkingsetRefaultAnon, MemcgStat::WorkingsetRefaultAnon),
        activate: (VmEvent::WorkingsetActivateAnon, MemcgStat::WorkingsetActivateAnon),
        restore: (VmEvent::WorkingsetRestoreAnon, MemcgStat::WorkingsetRestoreAnon),
    },
    Counters {
        refault: (VmEvent::WorkingsetRefaultFile, MemcgStat::WorkingsetRefaultFile),
        activate: (VmEvent::WorkingsetActivateFile, MemcgStat::WorkingsetActivateFile),
        restore: (VmEvent::WorkingsetRestoreFile, MemcgStat::WorkingsetRestoreFile),
    },
];

fn count_workingset<T: Trace>(
    core: &mut Core<T>,
    memcg: MemcgId,
    node: NodeId,
    (event, stat): (VmEvent, MemcgStat),
    pages: u64,
) {
    core.alloc.events.add(event, pages);
    core.cgroups.add_stat(memcg, node, stat, pages);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shadow_packs_and_unpacks() {
        let shadow = Shadow { memcg: MemcgId(65535), node: NodeId(200), age: AGE_MASK, workingset: true };
        assert_eq!(Shadow::unpack(shadow.pack()), shadow);
        assert_eq!(shadow.pack() >> 63, 0, "the topmost bit is the tree's");
    }
}
