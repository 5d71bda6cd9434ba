//! Neighbouring pages of a file at once: those of a readahead window that come in, of a read that are there, of a
//! request that was completed.
//!
//! ```text
//!   per page:   walk the zonelist, take a page, charge, look for the leaf, insert, count, queue for the LRU list
//!   at once:    walk, charge, look for the leaf; for each page take, insert, queue; count
//! ```
//! Whatever is done once is the same for each page, as nothing else happens in between; the state is that of one page
//! after the other. Where a page could need more (memory that is to be reclaimed, a limit, a slab for a node) it is
//! left to the caller, who can wait. Left out: pages that bring folios. Next: [`super::cache`] for one page or folio.

use core::ops::Range;

use units::{CpuId, Pfn};

use crate::alloc::flags::AllocFlags;
use crate::alloc::run::Run;
use crate::base::event::{Detail, Trace, TraceEvent};
use crate::base::frame::{Frames, PageFlags};
use crate::base::gfp::Gfp;
use crate::base::ids::{MappingId, MemcgId};
use crate::base::vmstat::MemcgStat;
use crate::core::Core;
use crate::lru::lists::Lru;
use crate::pages::cache::{PageCache, Prepared};
use crate::pages::tree::{EMPTY, Mappings, SLOTS, Slot, decode, encode_page};

/// Single pages that are to be added to a file.
#[derive(Debug, Clone)]
pub struct Window {
    /// Of the file.
    pub mapping: MappingId,
    /// Their places.
    pub pages: Range<u32>,
    /// Reading the page here starts the next window.
    pub marker: Option<u32>,
    /// Who pays for them.
    pub memcg: MemcgId,
    /// How they are allocated.
    pub gfp: Gfp,
    /// Flags of the first try in the slow path, for pages that get there ([`crate::decide::slow_path`]); none for those
    /// of the fast path.
    pub slow: Option<AllocFlags>,
}

/// What was added of a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub struct Added {
    /// The first place that has no page yet, or another one.
    pub past: u32,
    /// Pages that went from the buddy lists to a per-CPU list.
    pub refilled: u32,
}

impl PageCache {
    /// Allocates, charges and adds locked pages from the first of a window on, as far as nothing stands in the way;
    /// `each` hears of all, some at a time.
    pub(crate) fn add_window<T: Trace>(
        &mut self,
        core: &mut Core<T>,
        lru: &mut Lru,
        cpu: CpuId,
        window: &Window,
        mut each: impl FnMut(&[Pfn]),
    ) -> Added {
        let flags = core.alloc.fast_flags(cpu, window.gfp);
        let Range { start, end } = window.pages;
        let mut added = Added { past: start, refilled: 0 };
        while added.past < end && self.find(window.mapping, added.past).is_vacant() {
            let run = match window.slow {
                Some(flags) => core.alloc.open_slow_run(cpu, window.gfp, flags),
                None => core.alloc.open_run(cpu, window.gfp, flags),
            };
            let Some(run) = run else { break };
            let charged = core.cgroups.take_charges(cpu, window.memcg, end - added.past);
            let places = added.past..added.past + charged.pages;
            let filled = self.fill(core, lru, cpu, window, places, run, &mut each);
            core.cgroups.return_charges(cpu, window.memcg, charged, filled.past);
            added.past += filled.past;
            added.refilled += filled.refilled;
            if filled.past == 0 {
                break;
            }
        }
        added
    }

    /// Adds pages of a run at `places`, as far as their first leaf goes. `past` is how many.
    fn fill<T: Trace>(
        &mut self,
        core: &mut Core<T>,
        lru: &mut Lru,
        cpu: CpuId,
        window: &Window,
        places: Range<u32>,
        mut run: Run,
        each: &mut impl FnMut(&[Pfn]),
    ) -> Added {
        let Window { mapping, memcg, .. } = *window;
        let nothing = Added { past: 0, refilled: 0 };
        if places.is_empty() {
            return nothing;
        }
        let prepared = self.prepare_insert(core, cpu, mapping, places.start, 1, memcg);
        let Some(leaf) = self.trees.leaf_of(mapping, places.start).filter(|_| prepared == Prepared::Ready)
        else {
            return nothing;
        };
        let in_leaf = places.end.min((places.start | 63).saturating_add(1));
        let mut index = places.start;
        while index < in_leaf {
            let mut pages = [Pfn(0); SLOTS];
            let (first, empty) = (index, self.trees.empty_in(leaf, index..in_leaf));
            // A page that comes back is a matter of its own, and whoever listens wants to hear of each in turn.
            let most = if core.alloc.trace.listens(Detail::Page) { 1 } else { empty.max(1) };
            if empty == 0 && !self.trees.is_vacant_in(leaf, index) {
                break;
            }
            let count = core.alloc.take_of_run(&mut run, &mut pages[..most]);
            let pages = &pages[..count];
            if count == 0 {
                break;
            }
            let before = self.trees.put_pages(leaf, first, pages);
            core.alloc.frames.begin_file_pages(pages, mapping.0, index, memcg.0, PageFlags::LOCKED);
            core.tell_page(pages[0], |page| TraceEvent::FilemapAdd { page });
            each(pages);
            index += u32::try_from(count).expect("64 at most");
            if let (Slot::Shadow(shadow), Some(&pfn)) = (before, pages.first()) {
                lru.refault(core, pfn, shadow);
            }
            if let Some(marker) = window.marker.filter(|marker| (first..index).contains(marker)) {
                core.mark_readahead(pages[(marker - first) as usize]);
            }
            lru.add_singles(core, cpu, pages);
            if count < most {
                break;
            }
        }
        let count = index - places.start;
        self.trees.count_pages(mapping, count);
        let (node, refilled) = core.alloc.close_run(run);
        core.cgroups.add_stat_by_ones(memcg, node, MemcgStat::File, count);
        core.cgroups.note_updates(count);
        Added { past: count, refilled }
    }

    /// Reads pages of a file one after the other, as far as they are there, valid and without a marker; each folio is
    /// accessed once, but for `last`, which is the last one that was. Returns the first place that was not read.
    pub(crate) fn read_present<T: Trace>(
        &self,
        core: &mut Core<T>,
        lru: &mut Lru,
        cpu: CpuId,
        mapping: MappingId,
        pages: Range<u32>,
        last: &mut Option<Pfn>,
    ) -> u32 {
        let mut past = pages.start;
        if core.alloc.goes_one_by_one() {
            return past;
        }
        self.trees.each_stretch(mapping, pages, |first, entries| {
            let read = if first == past { read_entries(core, lru, cpu, entries, last) } else { 0 };
            past += read as u32;
            read == entries.len()
        });
        past
    }

    /// Hands out the frames of the pages of a file at these places, one after the other; none where there is no page.
    pub(crate) fn each_frame(
        &self,
        frames: &Frames,
        mapping: MappingId,
        pages: Range<u32>,
        mut each: impl FnMut(Option<Pfn>),
    ) {
        let mut next = pages.start;
        // The last entry, and the frame that follows in its folio.
        let (mut before, mut following) = (EMPTY, 0);
        self.trees.each_stretch(mapping, pages.clone(), |first, entries| {
            (next..first).for_each(|_| each(None));
            if first == pages.start
                && let Slot::Page(head) = decode(entries[0])
            {
                (before, following) = (entries[0], head.0 + (first - frames.index(head)));
            }
            for &entry in entries {
                each(match decode(entry) {
                    Slot::Page(head) => {
                        let frame = if entry == before { following } else { head.0 };
                        following = frame + 1;
                        Some(Pfn(frame))
                    }
                    _ => None,
                });
                before = entry;
            }
            next = first + entries.len() as u32;
            true
        });
        (next..pages.end).for_each(|_| each(None));
    }

    /// Unlocks the pages of a file at these places.
    pub(crate) fn unlock_pages<T: Trace>(&self, core: &mut Core<T>, mapping: MappingId, pages: Range<u32>) {
        self.trees.each_stretch(mapping, pages, |_, entries| {
            let pages = entries.iter().filter_map(|&entry| match decode(entry) {
                Slot::Page(pfn) => Some(pfn),
                _ => None,
            });
            core.alloc.frames.clear_flags_of(pages, PageFlags::LOCKED);
            true
        });
    }
}

/// Reads pages at the beginning of a stretch of a leaf: see [`PageCache::read_present`]. Returns how many.
fn read_entries<T: Trace>(
    core: &mut Core<T>,
    lru: &mut Lru,
    cpu: CpuId,
    entries: &[u64],
    last: &mut Option<Pfn>,
) -> usize {
    let is_mark = lru.marks_first_access(core);
    let (mut count, mut before) = (0, *last);
    for &entry in entries {
        let Slot::Page(pfn) = decode(entry) else { break };
        let flags = core.alloc.frames.flags_mut(pfn);
        if flags.has_any(PageFlags::LOCKED.set(PageFlags::READAHEAD)) {
            break;
        }
        if before != Some(pfn) {
            if is_mark && !flags.has(PageFlags::REFERENCED) {
                *flags = flags.set(PageFlags::REFERENCED);
            } else {
                lru.mark_accessed(core, cpu, pfn);
            }
            before = Some(pfn);
        }
        count += 1;
    }
    *last = before;
    count
}

impl Mappings {
    /// The leaf with the slot of a place, if it is there.
    #[inline]
    fn leaf_of(&self, mapping: MappingId, index: u32) -> Option<u32> {
        self.list[mapping.0 as usize].leaf(index >> 6)
    }

    /// Whether a slot of a leaf holds no page.
    #[inline]
    fn is_vacant_in(&self, leaf: u32, index: u32) -> bool {
        decode(self.leaves[leaf as usize].slots[(index & 63) as usize]).is_vacant()
    }

    /// How many slots of a leaf, from the first of these places on, hold nothing.
    #[inline]
    fn empty_in(&self, leaf: u32, places: Range<u32>) -> usize {
        let first = (places.start & 63) as usize;
        let slots = &self.leaves[leaf as usize].slots[first..first + places.len()];
        slots.iter().take_while(|&&entry| entry == EMPTY).count()
    }

    /// Puts pages into slots of a leaf, a node: several where nothing is, or one where no page is. Returns what the
    /// first one held.
    #[inline]
    fn put_pages(&mut self, id: u32, index: u32, pages: &[Pfn]) -> Slot {
        let leaf = &mut self.leaves[id as usize];
        let first = (index & 63) as usize;
        let slots = &mut leaf.slots[first..first + pages.len()];
        let before = slots.first().map_or(Slot::Empty, |&entry| decode(entry));
        for (slot, &pfn) in slots.iter_mut().zip(pages) {
            *slot = encode_page(pfn);
        }
        match before {
            Slot::Empty => leaf.used += u8::try_from(pages.len()).expect("a leaf has 64 slots"),
            _ => leaf.shadows -= 1,
        }
        if leaf.listed {
            self.unlist_leaf(id);
        }
        before
    }

    /// Counts pages that were put into leaves of a file.
    fn count_pages(&mut self, mapping: MappingId, pages: u32) {
        self.list[mapping.0 as usize].pages += pages;
        self.total_pages += u64::from(pages);
    }
}
