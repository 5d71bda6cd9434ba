//! LRU lists of each cgroup on each node.
//!
//! ```text
//!   inactive head ... tail --> reclaim
//!   active head   ... tail --> inactive head
//! ```
//!
//! Sizes count pages; a large folio is one list element. Each list's size is kept by zone, and the
//! sum over all cgroups by node, so that nobody has to add up cgroups to know a node.
//! Where the kernel has generations, an lruvec's evictable pages are on their lists instead ([`Gens`]), and the
//! sizes here are what statistics make of them. Neighbours: [`crate::lru::two_lists`] for the batches in front of the
//! lists and for what an access does, [`crate::lru::workingset`] for ages,
//! [`crate::reclaim::pass`] decides how much of a list is looked at, [`crate::reclaim::page`] what
//! becomes of each page.

use std_alloc::boxed::Box;
use std_alloc::vec;
use std_alloc::vec::Vec;

use units::{NodeId, Order, Pfn};

use crate::alloc::page_alloc::chunk_of;
use crate::base::event::Trace;
use crate::base::frame::{FrameList, FrameState, Frames, PageFlags};
use crate::base::ids::MemcgId;
use crate::base::layout::ZoneKind;
use crate::base::vmstat::MemcgStat;
use crate::core::Core;
use crate::lru::cache_ext::attached::Attached;
use crate::version::rules::{LruKind, ZoneSkips};

/// Shorter rests of a batch go page by page: looking for a run takes as long.
pub(super) const RUN_LEAST: usize = 4;
/// Folios of too high zones that a step passes over, where there is a limit.
pub(crate) const MOST_ZONE_SKIPS: usize = 32768;
use crate::lru::mglru::access;
use crate::lru::mglru::state::{Gens, Kind};

/// The lists of an lruvec.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
#[allow(missing_docs)] // Named as in the kernel.
pub enum LruList {
    InactiveAnon,
    ActiveAnon,
    InactiveFile,
    ActiveFile,
    Unevictable,
}

impl LruList {
    /// Every list.
    pub const ALL: [Self; 5] =
        [Self::InactiveAnon, Self::ActiveAnon, Self::InactiveFile, Self::ActiveFile, Self::Unevictable];
    /// How many there are.
    pub const COUNT: usize = Self::ALL.len();
    /// The lists that reclaim scans, in the order in which it does.
    pub const EVICTABLE: [Self; 4] =
        [Self::InactiveAnon, Self::ActiveAnon, Self::InactiveFile, Self::ActiveFile];

    /// The list that a page with these flags belongs on.
    #[inline]
    pub const fn of(flags: PageFlags) -> Self {
        if flags.has(PageFlags::UNEVICTABLE) {
            return Self::Unevictable;
        }
        match (flags.has(PageFlags::SWAP_BACKED), flags.has(PageFlags::ACTIVE)) {
            (true, false) => Self::InactiveAnon,
            (true, true) => Self::ActiveAnon,
            (false, false) => Self::InactiveFile,
            (false, true) => Self::ActiveFile,
        }
    }

    /// Whether it holds file pages.
    #[inline]
    pub const fn is_file(self) -> bool {
        matches!(self, Self::InactiveFile | Self::ActiveFile)
    }

    /// Whether it is one of the active lists.
    #[inline]
    pub const fn is_active(self) -> bool {
        matches!(self, Self::ActiveAnon | Self::ActiveFile)
    }

    /// The list that its pages are deactivated to; itself if that is where they are.
    pub(crate) const fn inactive(self) -> Self {
        match self {
            Self::ActiveAnon => Self::InactiveAnon,
            Self::ActiveFile => Self::InactiveFile,
            other => other,
        }
    }

    /// The list by which statistics count pages of a generation.
    pub(crate) const fn of_kind(kind: Kind, active: bool) -> Self {
        match (kind, active) {
            (Kind::Anon, false) => Self::InactiveAnon,
            (Kind::Anon, true) => Self::ActiveAnon,
            (Kind::File, false) => Self::InactiveFile,
            (Kind::File, true) => Self::ActiveFile,
        }
    }

    /// The statistic that counts its pages.
    pub const fn stat(self) -> MemcgStat {
        match self {
            Self::InactiveAnon => MemcgStat::InactiveAnon,
            Self::ActiveAnon => MemcgStat::ActiveAnon,
            Self::InactiveFile => MemcgStat::InactiveFile,
            Self::ActiveFile => MemcgStat::ActiveFile,
            Self::Unevictable => MemcgStat::Unevictable,
        }
    }
}

/// What reclaim of an lruvec has cost, of anonymous and of file pages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ScanCosts {
    /// `anon_cost`, `file_cost` (5.8).
    pub cost: [u64; 2],
    /// `recent_scanned` (up to 5.7).
    pub scanned: [u64; 2],
    /// `recent_rotated` (up to 5.7).
    pub rotated: [u64; 2],
}

/// The lists of one cgroup on one node.
#[derive(Debug, Clone, Default)]
pub struct Lruvec {
    lists: [FrameList; LruList::COUNT],
    /// Pages on each list by zone: what reclaim's quotas are cut from, always exact.
    pages: PagesByZone,
    /// `nonresident_age` (up to 5.4 `inactive_age`): evictions and activations so far.
    pub(super) age: u64,
    /// `refaults`: activations of refaulted pages (anon, file) as of the last snapshot.
    pub(super) refaults: [u64; 2],
    /// What reclaim of them has cost.
    pub(super) costs: ScanCosts,
    /// Where the kernel has generations.
    pub(super) gens: Option<Box<Gens>>,
    /// SIEVE's: the inactive file page that reclaim looks at next; none stands for the tail.
    hand: Option<Pfn>,
}

/// Where on its list a page is put.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Head,
    /// Which reclaim takes from: with a hand, where it stands.
    Next,
    /// Where it was when reclaim took it: with a hand, right behind it; else the head.
    Passed,
}

/// Pages on each list (index [`LruList`]) in each zone of a node.
type PagesByZone = [[u64; ZoneKind::COUNT]; LruList::COUNT];

impl Lruvec {
    /// Pages on `list` in zones up to `highest_zoneidx`.
    #[inline]
    pub fn size(&self, list: LruList, highest_zoneidx: ZoneKind) -> u64 {
        let zones = &self.pages[list as usize];
        match highest_zoneidx {
            ZoneKind::Movable => zones.iter().sum(), // The most common one, without a loop.
            _ => zones[..=(highest_zoneidx as usize)].iter().sum(),
        }
    }

    /// `nonresident_age`: evictions and activations so far.
    pub const fn age(&self) -> u64 {
        self.age
    }

    /// Its generations, where the kernel has them.
    #[inline]
    pub fn gens(&self) -> Option<&Gens> {
        self.gens.as_deref()
    }

    /// One of its lists, the newest page first.
    #[inline]
    pub(crate) fn list(&self, list: LruList) -> &FrameList {
        &self.lists[list as usize]
    }

    /// Pages on `list` by zone.
    pub(crate) fn by_zone(&self, list: LruList) -> &[u64; ZoneKind::COUNT] {
        &self.pages[list as usize]
    }

    /// SIEVE's hand.
    pub(crate) const fn hand(&self) -> Option<Pfn> {
        self.hand
    }

    /// Takes what reclaim looks at next off the inactive file list; none where a step that took some already has come
    /// to the head: what it took is to be put back first.
    fn take_at_hand(&mut self, frames: &mut Frames, is_first: bool) -> Option<Pfn> {
        if self.hand.is_none() && !is_first {
            return None;
        }
        let list = &mut self.lists[LruList::InactiveFile as usize];
        let pfn = self.hand.or_else(|| list.last())?;
        self.hand = FrameList::prev(frames, pfn);
        list.remove(frames, pfn);
        Some(pfn)
    }

    /// A page is about to leave the place where the hand may be.
    #[inline]
    fn step_off(&mut self, frames: &Frames, pfn: Pfn) {
        if self.hand == Some(pfn) {
            self.hand = FrameList::prev(frames, pfn);
        }
    }

    /// Puts a page on a list.
    #[inline]
    fn put(&mut self, frames: &mut Frames, list: LruList, pfn: Pfn, place: Place) {
        let hand = if list == LruList::InactiveFile { self.hand } else { None };
        let list = &mut self.lists[list as usize];
        match (place, hand) {
            (Place::Head, _) | (Place::Passed, None) => list.push_front(frames, pfn),
            (Place::Next, None) => list.push_back(frames, pfn),
            (Place::Passed, Some(hand)) => list.insert_after(frames, hand, pfn),
            (Place::Next, Some(hand)) => {
                list.insert_after(frames, hand, pfn);
                self.hand = Some(pfn);
            }
        }
    }

    /// What reclaim of them has cost: [`crate::lru::cost`].
    pub const fn costs(&self) -> &ScanCosts {
        &self.costs
    }

    /// Activations of refaulted anonymous pages as of the last snapshot.
    pub(crate) const fn anon_refaults(&self) -> u64 {
        self.refaults[0]
    }

    /// Activations of refaulted file pages as of the last snapshot.
    pub(crate) fn file_refaults(&self) -> u64 {
        self.refaults[1]
    }
}

/// The batches of one CPU.
#[derive(Debug, Clone, Default)]
pub(super) struct CpuBatches {
    pub(super) add: Vec<Pfn>,
    pub(super) activate: Vec<Pfn>,
    /// Pages that their programs gave up.
    pub(super) given_up: Vec<Pfn>,
}

/// Pages on their way off a list: see [`Lru::isolate_tail`].
struct Isolated<'a> {
    found: [u64; ZoneKind::COUNT],
    left: u64,
    highest_zoneidx: ZoneKind,
    most_skips: usize,
    taken: &'a mut Vec<Pfn>,
    passed: &'a mut Vec<Pfn>,
}

impl Isolated<'_> {
    #[inline(always)]
    fn add(&mut self, pfn: Pfn, order: Order, zone: ZoneKind) {
        let pages = if order == Order(0) { 1 } else { u64::from(order.pages()) };
        self.found[zone as usize] += pages;
        if zone > self.highest_zoneidx && self.passed.len() < self.most_skips {
            self.passed.push(pfn);
        } else {
            self.taken.push(pfn);
            self.left = self.left.saturating_sub(pages);
        }
    }
}

/// All lists and batches of the machine.
#[derive(Debug, Clone)]
pub struct Lru {
    /// For each cgroup one for each node.
    pub(super) lruvecs: Vec<Lruvec>,
    /// Those of a new cgroup.
    pub(super) fresh: Lruvec,
    /// What the lists of all cgroups add up to, by node.
    nodes: Vec<PagesByZone>,
    pub(super) cpus: Vec<CpuBatches>,
    /// Locked pages by node and zone.
    pub(super) locked: Vec<[u64; ZoneKind::COUNT]>,
    /// Where refaulted pages were activated since the last snapshot; not kept with root aging.
    pub(super) activated: Vec<(MemcgId, NodeId)>,
    /// Policies for file pages, where there are some.
    pub(super) policies: Option<Box<Attached>>,
}

impl Lru {
    /// Empty lists of the root cgroup on a machine of so many nodes and CPUs.
    pub fn new(nodes: usize, cpus: usize) -> Self {
        Self {
            lruvecs: vec![Lruvec::default(); nodes],
            fresh: Lruvec::default(),
            nodes: vec![PagesByZone::default(); nodes],
            cpus: vec![CpuBatches::default(); cpus],
            locked: vec![[0; ZoneKind::COUNT]; nodes],
            activated: Vec::new(),
            policies: None,
        }
    }

    /// Makes the lists of a new cgroup.
    pub(crate) fn add_cgroup(&mut self) {
        self.lruvecs.resize(self.lruvecs.len() + self.nodes.len(), self.fresh.clone());
    }

    /// Puts the pages of a cgroup behind those of its heir, list by list (`memcg_reparent_objcgs`). Call it while they
    /// are still the cgroup's own, and count them for the heir. Left out: that generations of equal age are joined;
    /// here their pages are the heir's oldest.
    pub(crate) fn hand_over<T: Trace>(&mut self, core: &mut Core<T>, memcg: MemcgId, heir: MemcgId) {
        for node in core.nodes() {
            let [from, to] = [memcg, heir].map(|memcg| self.index(memcg, node));
            if self.lruvecs[from].gens.is_some() {
                for (pfn, _) in self.listed(core, memcg, node).into_iter().rev() {
                    self.remove(core, pfn);
                    core.alloc.frames.set_memcg(pfn, heir.0);
                    self.insert_tail(core, pfn);
                }
            }
            self.lruvecs[from].hand = None;
            for list in LruList::ALL.map(|list| list as usize) {
                while let Some(pfn) = self.lruvecs[from].lists[list].pop_front(&mut core.alloc.frames) {
                    self.lruvecs[to].lists[list].push_back(&mut core.alloc.frames, pfn);
                }
                let pages = core::mem::take(&mut self.lruvecs[from].pages[list]);
                for (sum, pages) in self.lruvecs[to].pages[list].iter_mut().zip(pages) {
                    *sum += pages;
                }
            }
        }
    }

    #[inline]
    pub(super) fn index(&self, memcg: MemcgId, node: NodeId) -> usize {
        (memcg.index() * self.nodes.len()) + node.index()
    }

    /// The lists of `memcg` on `node`.
    #[inline]
    pub fn lruvec(&self, memcg: MemcgId, node: NodeId) -> &Lruvec {
        &self.lruvecs[self.index(memcg, node)]
    }

    /// Pages on `list` of one zone kind on a node, of all cgroups.
    #[inline]
    pub fn zone_pages(&self, list: LruList, node: NodeId, kind: ZoneKind) -> u64 {
        self.nodes[node.index()][list as usize][kind as usize]
    }

    /// Pages on `list` on a node, of all cgroups.
    #[inline]
    pub fn node_pages(&self, list: LruList, node: NodeId) -> u64 {
        self.nodes[node.index()][list as usize].iter().sum()
    }

    /// Pages on `list`, of all cgroups and nodes.
    pub fn pages(&self, list: LruList) -> u64 {
        self.nodes.iter().flat_map(|node| &node[list as usize]).sum()
    }

    /// Puts a page that is on no list at the head of the one its flags name.
    #[inline]
    pub(crate) fn insert<T: Trace>(&mut self, core: &mut Core<T>, pfn: Pfn) {
        self.insert_at(core, pfn, Place::Head);
    }

    /// [`Self::insert`] at the tail, which reclaim takes from.
    pub(crate) fn insert_tail<T: Trace>(&mut self, core: &mut Core<T>, pfn: Pfn) {
        self.insert_at(core, pfn, Place::Next);
    }

    /// [`Self::insert`] where reclaim took it from, which keeps it: the head, or behind the hand.
    pub(crate) fn keep_in_place<T: Trace>(&mut self, core: &mut Core<T>, pfn: Pfn) {
        self.insert_at(core, pfn, Place::Passed);
    }

    #[inline]
    fn insert_at<T: Trace>(&mut self, core: &mut Core<T>, pfn: Pfn, place: Place) {
        let flags = core.alloc.frames.flags(pfn);
        let (zone, node) = core.page_place(pfn);
        let memcg = core.page_memcg(pfn);
        let pages = u64::from(core.alloc.frames.pages(pfn));
        let index = self.index(memcg, node);
        let lruvec = &mut self.lruvecs[index];
        let frames = &mut core.alloc.frames;
        let list = match &mut lruvec.gens {
            Some(gens) if !flags.has(PageFlags::UNEVICTABLE) => {
                LruList::of_kind(Kind::of(flags), gens.insert(frames, pfn, zone, place == Place::Next))
            }
            _ => {
                let list = LruList::of(flags);
                lruvec.put(frames, list, pfn, place);
                list
            }
        };
        lruvec.pages[list as usize][zone as usize] += pages;
        self.nodes[node.index()][list as usize][zone as usize] += pages;
        frames.set_state(pfn, FrameState::Lru);
        core.cgroups.add_stat(memcg, node, list.stat(), pages);
    }

    /// [`Self::insert`] of pages that reclaim took and keeps, one after the other.
    pub(crate) fn insert_isolated<T: Trace>(&mut self, core: &mut Core<T>, pages: &[Pfn]) {
        let mut rest = pages;
        while let Some((&pfn, behind)) = rest.split_first() {
            let is_worth_it = rest.len() >= RUN_LEAST;
            let run = if is_worth_it { self.insert_run(core, rest, FrameState::Isolated) } else { 0 };
            rest = if run > 0 { &rest[run..] } else { behind };
            if run == 0 {
                self.insert(core, pfn);
            }
        }
    }

    /// Puts single pages, of a batch or isolated, at the heads of their lists, one after the other, as far as they go
    /// to the same one; none that is locked in memory or of a generation. Returns how many.
    pub(super) fn insert_run<T: Trace>(
        &mut self,
        core: &mut Core<T>,
        pages: &[Pfn],
        from: FrameState,
    ) -> usize {
        let Some((first, group)) = pages.first().and_then(|&pfn| core.alloc.frames.single_in(from, pfn))
        else {
            return 0;
        };
        let (list, memcg, (zone, node)) = (LruList::of(first), MemcgId(group), core.page_place(pages[0]));
        let index = self.index(memcg, node);
        if self.lruvecs[index].gens.is_some() {
            return 0;
        }
        if first.has(PageFlags::MLOCKED) {
            return 0;
        }
        let (frames, chunk) = core.alloc.frames_and_chunks();
        let first_chunk = chunk_of(pages[0]);
        let is_near =
            |pfn| chunk_of(pfn) == first_chunk || (chunk(pfn).kind, chunk(pfn).node) == (zone, node);
        let lists = &mut self.lruvecs[index].lists;
        let count = frames.put_on_lru(&mut lists[list as usize], pages, from, (first, group), is_near);
        self.lruvecs[index].pages[list as usize][zone as usize] += count as u64;
        self.nodes[node.index()][list as usize][zone as usize] += count as u64;
        let pages = u32::try_from(count).expect("a batch is short");
        core.cgroups.add_stat_by_ones(memcg, node, list.stat(), pages);
        count
    }

    /// Takes a page off its list; its state becomes `Isolated`.
    #[inline]
    pub(crate) fn remove<T: Trace>(&mut self, core: &mut Core<T>, pfn: Pfn) {
        let flags = core.alloc.frames.flags(pfn);
        let (zone, node) = core.page_place(pfn);
        let memcg = core.page_memcg(pfn);
        let pages = u64::from(core.alloc.frames.pages(pfn));
        let index = self.index(memcg, node);
        let lruvec = &mut self.lruvecs[index];
        let frames = &mut core.alloc.frames;
        let list = match &mut lruvec.gens {
            Some(gens) if !flags.has(PageFlags::UNEVICTABLE) => {
                LruList::of_kind(Kind::of(flags), gens.remove(frames, pfn, zone))
            }
            _ => {
                let list = LruList::of(flags);
                lruvec.step_off(frames, pfn);
                lruvec.lists[list as usize].remove(frames, pfn);
                list
            }
        };
        lruvec.pages[list as usize][zone as usize] -= pages;
        self.nodes[node.index()][list as usize][zone as usize] -= pages;
        frames.set_state(pfn, FrameState::Isolated);
        core.cgroups.sub_stat(memcg, node, list.stat(), pages);
    }

    /// Moves a page from its list to the head of the one that `flags` name, and gives it these flags.
    #[inline]
    pub(super) fn relist<T: Trace>(&mut self, core: &mut Core<T>, pfn: Pfn, flags: PageFlags) {
        let (zone, node) = core.page_place(pfn);
        let at = (core.page_memcg(pfn), node);
        let index = self.index(at.0, node);
        if self.lruvecs[index].gens.is_some() {
            self.remove(core, pfn);
            core.alloc.frames.put_flags(pfn, access::without_list(flags));
            self.insert(core, pfn);
            return;
        }
        let frames = &mut core.alloc.frames;
        let (from, to) = (LruList::of(frames.flags(pfn)), LruList::of(flags));
        frames.put_flags(pfn, flags);
        let pages = u64::from(frames.pages(pfn));
        let lruvec = &mut self.lruvecs[index];
        lruvec.step_off(&core.alloc.frames, pfn);
        lruvec.lists[from as usize].remove(&mut core.alloc.frames, pfn);
        lruvec.lists[to as usize].push_front(&mut core.alloc.frames, pfn);
        self.recount(core, at, zone, from, to, pages);
    }

    /// Pages of a zone count for another list than before.
    #[inline]
    pub(super) fn recount<T: Trace>(
        &mut self,
        core: &mut Core<T>,
        (memcg, node): (MemcgId, NodeId),
        zone: ZoneKind,
        from: LruList,
        to: LruList,
        pages: u64,
    ) {
        let index = self.index(memcg, node);
        for sizes in [&mut self.lruvecs[index].pages, &mut self.nodes[node.index()]] {
            sizes[from as usize][zone as usize] -= pages;
            sizes[to as usize][zone as usize] += pages;
        }
        core.cgroups.sub_stat(memcg, node, from.stat(), pages);
        core.cgroups.add_stat(memcg, node, to.stat(), pages);
    }

    /// Every evictable page of a cgroup on a node, the oldest of each list first, and whether it is active.
    pub(super) fn listed<T: Trace>(&self, core: &Core<T>, memcg: MemcgId, node: NodeId) -> Vec<(Pfn, bool)> {
        let (lruvec, frames) = (self.lruvec(memcg, node), &core.alloc.frames);
        let mut listed = Vec::new();
        let mut add = |list: &FrameList, is_active: bool| {
            let from = listed.len();
            listed.extend(list.iter(frames).map(|pfn| (pfn, is_active)));
            listed[from..].reverse();
        };
        match &lruvec.gens {
            None => LruList::EVICTABLE.into_iter().for_each(|list| add(lruvec.list(list), list.is_active())),
            Some(gens) => gens.each_list(|generation, list| add(list, gens.is_active(generation))),
        }
        listed
    }

    /// Takes pages off the tail of a list, oldest first, until `wanted` pages of zones up to `highest_zoneidx`
    /// are in `taken`; those of zones above go to `passed`, as far as [`ZoneSkips`] lets them. Their state becomes
    /// `Isolated`. Returns how many pages there were of each zone kind.
    pub(crate) fn isolate_tail<T: Trace>(
        &mut self,
        core: &mut Core<T>,
        (memcg, node, list): (MemcgId, NodeId, LruList),
        highest_zoneidx: ZoneKind,
        wanted: u64,
        taken: &mut Vec<Pfn>,
        passed: &mut Vec<Pfn>,
    ) -> [u64; ZoneKind::COUNT] {
        let index = self.index(memcg, node);
        let lruvec = &mut self.lruvecs[index];
        let most_skips = match core.rules().zone_skips {
            ZoneSkips::Unlimited => usize::MAX,
            ZoneSkips::Capped => MOST_ZONE_SKIPS,
        };
        let by_hand = core.rules().lru == LruKind::Sieve && list == LruList::InactiveFile;
        let (frames, chunk) = core.alloc.frames_and_chunks();
        let mut isolated = Isolated {
            found: [0; ZoneKind::COUNT],
            left: wanted,
            highest_zoneidx,
            most_skips,
            taken,
            passed,
        };
        if by_hand {
            while isolated.left > 0
                && let Some(pfn) = lruvec.take_at_hand(frames, isolated.left == wanted)
            {
                isolated.add(pfn, frames.isolate(pfn), chunk(pfn).kind);
            }
        } else {
            let (mut last_chunk, mut zone) = (u32::MAX, ZoneKind::Dma);
            frames.isolate_while(&mut lruvec.lists[list as usize], |pfn, order| {
                let wants = isolated.left > 0;
                if wants {
                    if chunk_of(pfn) != last_chunk {
                        (last_chunk, zone) = (chunk_of(pfn), chunk(pfn).kind);
                    }
                    isolated.add(pfn, order, zone);
                }
                wants
            });
        }
        let found = isolated.found;
        let sums = &mut self.nodes[node.index()];
        for (zone, &pages) in found.iter().enumerate().filter(|(_, pages)| **pages > 0) {
            lruvec.pages[list as usize][zone] -= pages;
            sums[list as usize][zone] -= pages;
        }
        core.cgroups.sub_stat(memcg, node, list.stat(), found.iter().sum());
        found
    }

    /// Puts `pfn`, so far a part of the folio at `at`, right behind it on the folio's list.
    pub(crate) fn split_off<T: Trace>(&mut self, core: &mut Core<T>, at: Pfn, pfn: Pfn) {
        let flags = core.alloc.frames.flags(at);
        let (zone, node) = core.page_place(at);
        let index = self.index(core.page_memcg(at), node);
        let frames = &mut core.alloc.frames;
        match &mut self.lruvecs[index].gens {
            Some(gens) if !flags.has(PageFlags::UNEVICTABLE) => gens.split_off(frames, at, pfn, zone),
            _ => self.lruvecs[index].lists[LruList::of(flags) as usize].insert_after(frames, at, pfn),
        }
        frames.set_state(pfn, FrameState::Lru);
    }
}
