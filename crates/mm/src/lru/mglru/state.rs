//! The generations of one cgroup on one node (`lru_gen_folio`; MGLRU 1, 3).
//!
//! ```text
//!   max_seq      3   2   1   0      = min_seq: the oldest, which eviction takes from
//!   anonymous    .   .   .   .      a list for each zone; a generation's number modulo 4 names its lists
//!   files        .   .   .   .
//!                active  inactive   as statistics have it
//! ```
//! A page knows its generation by its flags, and whose list it is on: a walk of page tables changes the one
//! and not the other. Sizes count pages by generation.
//!
//! Neighbours: [`super::access`] for the flags, [`super::aging`] for new generations and the end of old ones,
//! [`super::feedback`] for what `tiers` are counted for; [`crate::lru::lists`] keeps the sums.

use std_alloc::vec::Vec;

use units::{Nanos, Pfn};

use crate::base::frame::{FrameList, FrameState, Frames, PageFlags};
use crate::base::layout::ZoneKind;
use crate::lru::mglru::access::{self, TIERS};
use crate::lru::mglru::filter::Filters;
use crate::version::rules::{GenAccess, GenForm, GenTiers, GenTypes, Rules};

/// Generations that a type has at most.
pub const MAX_GENS: u64 = 4;
/// Generations that a type keeps: the youngest two are not evicted from.
pub const MIN_GENS: u64 = 2;

const SLOTS: usize = MAX_GENS as usize;

/// The two types of pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// Anonymous memory.
    Anon,
    /// Pages of files.
    File,
}

impl Kind {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Anon, Self::File];

    /// The type of a page.
    #[inline]
    pub const fn of(flags: PageFlags) -> Self {
        if flags.has(PageFlags::SWAP_BACKED) { Self::Anon } else { Self::File }
    }

    /// The other one.
    pub const fn other(self) -> Self {
        match self {
            Self::Anon => Self::File,
            Self::File => Self::Anon,
        }
    }
}

/// Which types of pages may be evicted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Evictable {
    /// Pages of files: there is no swap to be had, or none is wanted.
    Files,
    /// Both types.
    Both,
    /// Anonymous memory: somebody asked for that alone (`swappiness=max`).
    Anon,
}

impl Evictable {
    /// Whether `kind` is among them.
    pub const fn has(self, kind: Kind) -> bool {
        match (self, kind) {
            (Self::Both, _) | (Self::Files, Kind::File) | (Self::Anon, Kind::Anon) => true,
            (Self::Files, Kind::Anon) | (Self::Anon, Kind::File) => false,
        }
    }

    /// All of them.
    pub fn kinds(self) -> impl Iterator<Item = Kind> {
        Kind::ALL.into_iter().filter(move |&kind| self.has(kind))
    }
}

/// What a tier of a type came to: pages evicted and refaulted, and averages of earlier generations.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Tier {
    pub(super) avg_refaulted: u64,
    pub(super) avg_total: u64,
    pub(super) refaulted: u64,
    pub(super) evicted: u64,
    pub(super) protected: u64,
}

type PagesByZone = [u64; ZoneKind::COUNT];

/// The generations of one cgroup on one node.
#[derive(Debug, Clone)]
pub struct Gens {
    pub(super) form: GenForm,
    pub(super) access: GenAccess,
    pub(super) tiers_are: GenTiers,
    pub(super) types_are: GenTypes,
    pub(super) max_seq: u64,
    pub(super) min_seq: [u64; 2],
    lists: [[[FrameList; ZoneKind::COUNT]; 2]; SLOTS],
    pages: [[PagesByZone; 2]; SLOTS],
    pub(super) born: [Nanos; SLOTS],
    pub(super) tiers: [[Tier; TIERS]; 2],
    /// Page tables that walks look at.
    pub(crate) filters: Filters,
}

/// The slot of a generation.
pub(super) const fn slot(seq: u64) -> usize {
    (seq % MAX_GENS) as usize
}

impl Gens {
    /// Four empty generations of each type.
    pub(super) fn new(rules: &Rules) -> Self {
        Self {
            form: rules.gen_form,
            access: rules.gen_access,
            tiers_are: rules.gen_tiers,
            types_are: rules.gen_types,
            max_seq: MAX_GENS - 1,
            min_seq: [0; 2],
            lists: [[[FrameList::EMPTY; ZoneKind::COUNT]; 2]; SLOTS],
            pages: [[[0; ZoneKind::COUNT]; 2]; SLOTS],
            born: [Nanos::ZERO; SLOTS],
            tiers: [[Tier::default(); TIERS]; 2],
            filters: Filters::new(rules),
        }
    }

    /// The youngest generation.
    pub const fn max_seq(&self) -> u64 {
        self.max_seq
    }

    /// The oldest generation of a type.
    pub const fn min_seq(&self, kind: Kind) -> u64 {
        self.min_seq[kind as usize]
    }

    /// How many generations a type has: 2 to 4.
    pub const fn generations(&self, kind: Kind) -> u64 {
        self.max_seq - self.min_seq(kind) + 1
    }

    /// Pages of a type that belong to generation `seq`.
    pub fn pages_of(&self, kind: Kind, seq: u64) -> u64 {
        self.pages[slot(seq)][kind as usize].iter().sum()
    }

    /// Pages of a type.
    pub fn total(&self, kind: Kind) -> u64 {
        self.pages.iter().flat_map(|of| of[kind as usize]).sum()
    }

    /// When the oldest generation of a type was made.
    pub const fn oldest_born(&self, kind: Kind) -> Nanos {
        self.born[slot(self.min_seq(kind))]
    }

    /// Pages of a type by generation (modulo 4) and zone.
    pub(crate) const fn counts(&self, generation: usize, kind: Kind) -> &PagesByZone {
        &self.pages[generation][kind as usize]
    }

    /// Whether statistics count a generation, given modulo 4, as active: the youngest two.
    pub(crate) const fn is_active(&self, generation: usize) -> bool {
        generation == slot(self.max_seq) || generation == slot(self.max_seq - 1)
    }

    /// A list of a generation, the newest page first.
    pub(crate) const fn list(&self, generation: usize, kind: Kind, zone: ZoneKind) -> &FrameList {
        &self.lists[generation][kind as usize][zone as usize]
    }

    /// Every list with its generation, modulo 4: the oldest generation first, zones from the lowest one.
    pub(crate) fn each_list(&self, mut each: impl FnMut(usize, &FrameList)) {
        for kind in Kind::ALL {
            for seq in self.max_seq + 1 - MAX_GENS..=self.max_seq {
                let of = slot(seq);
                self.lists[of][kind as usize].iter().for_each(|list| each(of, list));
            }
        }
    }

    /// Folios on the lists of generation `seq` of a type, the newest of each zone first.
    pub(crate) fn pages_listed(&self, frames: &Frames, kind: Kind, seq: u64) -> Vec<Pfn> {
        self.lists[slot(seq)][kind as usize].iter().flat_map(|list| list.iter(frames)).collect()
    }

    /// The tail of the oldest generation of a type in a zone.
    pub(crate) fn oldest(&self, kind: Kind, zone: ZoneKind) -> Option<Pfn> {
        self.list(slot(self.min_seq(kind)), kind, zone).last()
    }

    /// Whether no page is on the lists of the oldest generation.
    pub(super) fn is_oldest_empty(&self, kind: Kind) -> bool {
        self.lists[slot(self.min_seq(kind))][kind as usize].iter().all(FrameList::is_empty)
    }

    /// The generation that a page is put into (MGLRU 3; MECHANISMS-510-72 11). `tail`: it is to go next.
    pub(crate) fn placement(&self, flags: PageFlags, tail: bool) -> u64 {
        let kind = Kind::of(flags);
        let (max, min) = (self.max_seq, self.min_seq(kind));
        let is_new_anon = kind == Kind::Anon && !flags.has(PageFlags::SWAP_CACHE);
        let is_written =
            flags.has(PageFlags::RECLAIM) && flags.has_any(PageFlags::DIRTY.set(PageFlags::WRITEBACK));
        let (active, workingset) = (flags.has(PageFlags::ACTIVE), flags.has(PageFlags::WORKINGSET));
        if self.access == GenAccess::Accesses {
            let age = match () {
                () if active && workingset => 0,
                () if active => 1,
                () if tail => return min,
                () if is_new_anon || is_written => 1,
                () if workingset || flags.has(PageFlags::REFERENCED) => 2,
                () => 3,
            };
            return max.saturating_sub(age).max(min);
        }
        match () {
            () if active => max,
            () if is_new_anon || is_written => max - 1,
            () if tail || min + MIN_GENS >= max => min,
            () => min + 1,
        }
    }

    /// Puts a page that is on no list at the head of its generation, or at the tail. Returns whether statistics
    /// count it as active.
    pub(crate) fn insert(&mut self, frames: &mut Frames, pfn: Pfn, zone: ZoneKind, tail: bool) -> bool {
        let mut flags = frames.flags(pfn);
        let (kind, to) = (Kind::of(flags), slot(self.placement(flags, tail)));
        if flags.has(PageFlags::ACTIVE) {
            flags = flags.clear(PageFlags::ACTIVE);
            if self.form == GenForm::Settled && self.access == GenAccess::Reads {
                flags = access::with_count(flags.clear(PageFlags::REFERENCED), 0);
            }
        }
        frames.put_flags(pfn, access::with_list(flags, to));
        self.pages[to][kind as usize][zone as usize] += u64::from(frames.pages(pfn));
        let list = &mut self.lists[to][kind as usize][zone as usize];
        if tail {
            list.push_back(frames, pfn)
        } else {
            list.push_front(frames, pfn)
        }
        self.is_active(to)
    }

    /// Takes a page off its list. Returns whether statistics counted it as active.
    pub(crate) fn remove(&mut self, frames: &mut Frames, pfn: Pfn, zone: ZoneKind) -> bool {
        let flags = frames.flags(pfn);
        let (kind, of) = (Kind::of(flags) as usize, access::generation(flags));
        self.pages[of][kind][zone as usize] -= u64::from(frames.pages(pfn));
        self.lists[access::listed(flags)][kind][zone as usize].remove(frames, pfn);
        frames.put_flags(pfn, access::without_list(flags));
        self.is_active(of)
    }

    /// Puts `pfn`, so far a part of the folio at `at`, right behind it.
    pub(crate) fn split_off(&mut self, frames: &mut Frames, at: Pfn, pfn: Pfn, zone: ZoneKind) {
        assert!(frames.state(at) == FrameState::Lru, "{at:?} is split on its list");
        let (flags, own) = (frames.flags(at), frames.flags(pfn));
        let list = access::listed(flags);
        let placed = access::with_generation(access::with_list(own, list), access::generation(flags));
        frames.put_flags(pfn, placed);
        self.lists[list][Kind::of(flags) as usize][zone as usize].insert_after(frames, at, pfn);
    }

    /// Whether a listed page belongs to another generation than that whose list it is on: a walk found it young.
    pub(crate) const fn is_promoted(flags: PageFlags) -> bool {
        access::generation(flags) != access::listed(flags)
    }

    /// Lets a listed page belong to another generation; it stays where it is. Returns whether statistics
    /// counted it as active before, and do now.
    pub(super) fn set_generation(
        &mut self,
        frames: &mut Frames,
        pfn: Pfn,
        zone: ZoneKind,
        seq: u64,
    ) -> (bool, bool) {
        let flags = frames.flags(pfn);
        let (kind, from, to) = (Kind::of(flags) as usize, access::generation(flags), slot(seq));
        let pages = u64::from(frames.pages(pfn));
        self.pages[from][kind][zone as usize] -= pages;
        self.pages[to][kind][zone as usize] += pages;
        frames.put_flags(pfn, access::with_generation(flags, to));
        (self.is_active(from), self.is_active(to))
    }

    /// Moves a listed page to the head or the tail of the list of its generation.
    pub(super) fn move_home(&mut self, frames: &mut Frames, pfn: Pfn, zone: ZoneKind, tail: bool) {
        let flags = frames.flags(pfn);
        let (kind, to) = (Kind::of(flags) as usize, access::generation(flags));
        self.lists[access::listed(flags)][kind][zone as usize].remove(frames, pfn);
        frames.put_flags(pfn, access::with_list(flags, to));
        let list = &mut self.lists[to][kind][zone as usize];
        if tail { list.push_back(frames, pfn) } else { list.push_front(frames, pfn) }
    }
}
