//! Folios that a policy was told of, and the eviction lists that it keeps them on.
//!
//! ```text
//!   registry:  frame 812 <--> folio 7: lruvec 2, file 3 page 40, on list 1
//!   list 1 of lruvec 2:  head  7 <-> 4 <-> 9  tail
//! ```
//! The kernel's own lists hold the same folios: these are another order of them. A policy names a folio by its number
//! in the registry, which stays the same where a folio moves to another frame. A number that it made up, or that was
//! another cgroup's or a folio's that is gone, is refused. A folio is on one list of a policy at most.
//!
//! Next: [`super::hooks`] for who keeps such lists.

use std_alloc::vec;
use std_alloc::vec::Vec;

use units::Pfn;

use crate::base::frame::{FrameState, Frames, PageFlags};
use crate::base::ids::MappingId;
use crate::base::list::{Link, Links, List, ListId};

/// No number.
const NONE: u32 = u32::MAX;
/// Folios that cannot go, or that are scored, for one request at most.
pub const LOOKS_MAX: u32 = 512;
/// Candidates that are asked for at once at most.
pub const CANDIDATES_MAX: u32 = 32;

/// A folio of the page cache, by its number in the registry. Numbers of folios that are gone are used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Folio(pub u32);

impl ListId for Folio {
    const NIL: Self = Self(NONE);
}

/// One of a policy's lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EvictionList(u32);

impl EvictionList {
    /// No list: what a policy holds before it has made its own.
    pub const NIL: Self = Self(NONE);
}

impl Default for EvictionList {
    fn default() -> Self {
        Self::NIL
    }
}

/// Which page of which file a folio holds; of several the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The file.
    pub file: MappingId,
    /// The page.
    pub index: u32,
}

/// Where on a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Where iteration begins.
    Head,
    /// Where it ends.
    Tail,
}

/// What a policy sees of a folio.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    /// Its number.
    pub folio: Folio,
    /// What it holds.
    pub place: Place,
    /// The page's flags.
    pub flags: PageFlags,
    /// It is on a list of the kernel, and not in a batch on its way there.
    pub is_listed: bool,
}

impl Seen {
    /// Whether the kernel would not free it now: it is being read, is dirty, is being written, or waits in a batch.
    pub const fn is_busy(&self) -> bool {
        let busy = PageFlags::LOCKED.set(PageFlags::DIRTY).set(PageFlags::WRITEBACK);
        self.flags.has_any(busy) || !self.is_listed
    }
}

/// What is to become of a folio that iteration comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It stays in memory.
    Keep,
    /// It stays, and goes to the tail of the list that it is on.
    Rotate,
    /// It is a candidate.
    Evict,
    /// It is left alone, and iteration ends.
    Stop,
}

/// Where iteration puts folios; none: they stay where they are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Moves {
    /// Those that are kept.
    pub kept: Option<(EvictionList, End)>,
    /// Candidates.
    pub evicted: Option<(EvictionList, End)>,
}

/// What the kernel asks for, and the candidates so far.
#[derive(Debug, Clone)]
pub struct Eviction {
    wanted: u32,
    candidates: Vec<Folio>,
}

impl Eviction {
    /// So many folios are wanted.
    pub(super) const fn new(wanted: u32, candidates: Vec<Folio>) -> Self {
        Self { wanted, candidates }
    }

    /// How many more are wanted.
    pub const fn wanted(&self) -> u32 {
        self.wanted.saturating_sub(self.candidates.len() as u32)
    }

    /// Names a candidate; one too many is not heard.
    pub fn propose(&mut self, folio: Folio) {
        if self.wanted() > 0 {
            self.candidates.push(folio);
        }
    }

    pub(super) fn into_candidates(self) -> Vec<Folio> {
        self.candidates
    }
}

/// What is kept of a folio.
#[derive(Debug, Clone, Copy)]
struct Entry {
    link: Link<Folio>,
    pfn: Pfn,
    /// The lruvec whose policy knows it; none of a number that is free.
    group: u32,
    list: u32,
    place: Place,
}

#[derive(Debug, Clone, Default)]
struct Entries(Vec<Entry>);

impl Links<Folio> for Entries {
    fn link(&self, folio: Folio) -> Link<Folio> {
        self.0[folio.0 as usize].link
    }

    fn link_mut(&mut self, folio: Folio) -> &mut Link<Folio> {
        &mut self.0[folio.0 as usize].link
    }
}

/// Every folio that policies know, and all their lists.
#[derive(Debug, Clone)]
pub(crate) struct Registry {
    entries: Entries,
    free: Vec<u32>,
    /// The folio of each frame.
    of_frame: Vec<u32>,
    /// Each with the lruvec whose policy made it.
    lists: Vec<(u32, List<Folio>)>,
}

impl Registry {
    pub(super) fn new(frames: usize) -> Self {
        Self {
            entries: Entries::default(),
            free: Vec::new(),
            of_frame: vec![NONE; frames],
            lists: Vec::new(),
        }
    }

    /// The folio in a frame, if policies know it.
    pub(crate) fn at(&self, pfn: Pfn) -> Option<Folio> {
        let folio = self.of_frame[pfn.index()];
        (folio != NONE).then_some(Folio(folio))
    }

    /// Where a folio is, and the lruvec whose policy knows it.
    pub(super) fn known(&self, folio: Folio) -> Option<(Pfn, u32)> {
        let entry = self.entries.0.get(folio.0 as usize)?;
        (entry.group != NONE).then_some((entry.pfn, entry.group))
    }

    pub(super) fn add(&mut self, pfn: Pfn, group: u32, place: Place) -> Folio {
        assert!(self.of_frame[pfn.index()] == NONE, "{pfn:?} is added twice");
        let entry = Entry { link: Link::UNUSED, pfn, group, list: NONE, place };
        let number = match self.free.pop() {
            Some(number) => {
                self.entries.0[number as usize] = entry;
                number
            }
            None => {
                self.entries.0.push(entry);
                u32::try_from(self.entries.0.len() - 1).expect("fewer folios than frames")
            }
        };
        self.of_frame[pfn.index()] = number;
        Folio(number)
    }

    pub(super) fn forget(&mut self, folio: Folio) {
        self.unlist(folio);
        let entry = &mut self.entries.0[folio.0 as usize];
        entry.group = NONE;
        self.of_frame[entry.pfn.index()] = NONE;
        self.free.push(folio.0);
    }

    /// A folio lies in another frame.
    pub(super) fn moved(&mut self, folio: Folio, to: Pfn) {
        let entry = &mut self.entries.0[folio.0 as usize];
        self.of_frame[entry.pfn.index()] = NONE;
        entry.pfn = to;
        self.of_frame[to.index()] = folio.0;
    }

    /// Folios of one lruvec become another one's, on no list; they are returned by number.
    pub(super) fn hand_over(&mut self, from: u32, to: u32) -> Vec<Folio> {
        let numbers = 0..u32::try_from(self.entries.0.len()).expect("fewer folios than frames");
        let of_it = numbers.filter(|&number| self.entries.0[number as usize].group == from);
        let handed: Vec<Folio> = of_it.map(Folio).collect();
        for &folio in &handed {
            self.unlist(folio);
            self.entries.0[folio.0 as usize].group = to;
        }
        handed
    }

    fn unlist(&mut self, folio: Folio) {
        let list = core::mem::replace(&mut self.entries.0[folio.0 as usize].list, NONE);
        if list != NONE {
            self.lists[list as usize].1.remove(&mut self.entries, folio);
        }
    }

    fn put(&mut self, list: EvictionList, folio: Folio, end: End) {
        self.entries.0[folio.0 as usize].list = list.0;
        let list = &mut self.lists[list.0 as usize].1;
        match end {
            End::Head => list.push_front(&mut self.entries, folio),
            End::Tail => list.push_back(&mut self.entries, folio),
        }
    }

    /// Every folio: its frame, its lruvec and what it holds.
    pub(crate) fn folios(&self) -> impl Iterator<Item = (Folio, Pfn, u32, Place)> + '_ {
        let numbered = (0_u32..).map(Folio).zip(&self.entries.0);
        let known = numbered.filter(|(_, entry)| entry.group != NONE);
        known.map(|(folio, entry)| (folio, entry.pfn, entry.group, entry.place))
    }

    /// Whether each list has the folios that say so, and no others; the first that is wrong.
    pub(crate) fn check(&self) -> Result<(), Folio> {
        let mut listed = 0;
        for (number, (group, list)) in (0_u32..).zip(&self.lists) {
            let mut next = list.first();
            for _ in 0..list.len() {
                let folio = next.ok_or(Folio(NONE))?;
                let entry = &self.entries.0[folio.0 as usize];
                if (entry.list, entry.group) != (number, *group) {
                    return Err(folio);
                }
                listed += 1;
                next = List::next(&self.entries, folio);
            }
            if let Some(folio) = next {
                return Err(folio);
            }
        }
        let says = |entry: &&Entry| entry.group != NONE && entry.list != NONE;
        if self.entries.0.iter().filter(says).count() == listed { Ok(()) } else { Err(Folio(NONE)) }
    }
}

/// The lists of the policy of one cgroup on one node: all that it can see and change.
#[derive(Debug)]
pub struct Lists<'a> {
    registry: &'a mut Registry,
    frames: &'a Frames,
    group: u32,
}

impl<'a> Lists<'a> {
    pub(super) const fn new(registry: &'a mut Registry, frames: &'a Frames, group: u32) -> Self {
        Self { registry, frames, group }
    }

    /// `list_create`: a new list.
    pub fn create(&mut self) -> EvictionList {
        self.registry.lists.push((self.group, List::EMPTY));
        EvictionList(u32::try_from(self.registry.lists.len() - 1).expect("few lists"))
    }

    /// `list_add`: puts a folio that is on no list on one. False: it is on one, or one of both is not this policy's.
    pub fn add(&mut self, list: EvictionList, folio: Folio, end: End) -> bool {
        let is_right = self.owns(list) && self.list_of(folio) == Some(NONE);
        if is_right {
            self.registry.put(list, folio, end);
        }
        is_right
    }

    /// `list_move`: puts a folio from its list on one. False: it is on none, or one of both is not this policy's.
    pub fn move_to(&mut self, list: EvictionList, folio: Folio, end: End) -> bool {
        let is_right = self.owns(list) && self.list_of(folio).is_some_and(|list| list != NONE);
        if is_right {
            self.registry.unlist(folio);
            self.registry.put(list, folio, end);
        }
        is_right
    }

    /// `list_del`: takes a folio off its list. False: it is on none, or not this policy's.
    pub fn del(&mut self, folio: Folio) -> bool {
        let is_listed = self.list_of(folio).is_some_and(|list| list != NONE);
        if is_listed {
            self.registry.unlist(folio);
        }
        is_listed
    }

    /// How many folios are on a list; none on one that is not this policy's.
    pub fn len(&self, list: EvictionList) -> u32 {
        if self.owns(list) { self.registry.lists[list.0 as usize].1.len() } else { 0 }
    }

    /// Whether no folio is on a list.
    pub fn is_empty(&self, list: EvictionList) -> bool {
        self.len(list) == 0
    }

    /// What can be seen of a folio; none of one that is not this policy's.
    pub fn see(&self, folio: Folio) -> Option<Seen> {
        self.list_of(folio)?;
        let entry = &self.registry.entries.0[folio.0 as usize];
        let (flags, state) = (self.frames.flags(entry.pfn), self.frames.state(entry.pfn));
        Some(Seen { folio, place: entry.place, flags, is_listed: state == FrameState::Lru })
    }

    /// `list_iterate`: goes once through a list from its head, until enough candidates are named or `judge`, which
    /// hears the how-manieth each folio is, says so. Returns how many folios it came to.
    pub fn iterate(
        &mut self,
        list: EvictionList,
        moves: Moves,
        eviction: &mut Eviction,
        mut judge: impl FnMut(u32, Seen) -> Verdict,
    ) -> u32 {
        let length = self.len(list);
        let mut next = self.first(list);
        for count in 0..length {
            let Some(folio) = next.filter(|_| eviction.wanted() > 0) else { return count };
            next = List::next(&self.registry.entries, folio);
            let Some(seen) = self.see(folio) else { return count };
            let to = match judge(count, seen) {
                Verdict::Keep => moves.kept,
                Verdict::Rotate => Some((list, End::Tail)),
                Verdict::Evict => {
                    eviction.propose(folio);
                    moves.evicted
                }
                Verdict::Stop => return count,
            };
            if let Some((to, end)) = to {
                self.move_to(to, folio, end);
            }
        }
        length
    }

    /// `list_iterate` by scores: looks at the first `sample` folios of a list, and names those with the lowest scores
    /// as candidates, of equal ones the first; none: it cannot go now. All of them go to the tail, so that others are
    /// looked at next.
    pub fn evict_lowest(
        &mut self,
        list: EvictionList,
        sample: u32,
        eviction: &mut Eviction,
        mut score: impl FnMut(Seen) -> Option<u64>,
    ) {
        let mut scored: Vec<(u64, u32, Folio)> = Vec::new();
        for count in 0..sample.min(self.len(list)) {
            let Some(folio) = self.first(list) else { break };
            if let Some(score) = self.see(folio).and_then(&mut score) {
                scored.push((score, count, folio));
            }
            self.move_to(list, folio, End::Tail);
        }
        scored.sort_unstable();
        let wanted = eviction.wanted() as usize;
        scored.iter().take(wanted).for_each(|&(.., folio)| eviction.propose(folio));
    }

    /// The folio at the head of a list.
    pub fn first(&self, list: EvictionList) -> Option<Folio> {
        if self.owns(list) { self.registry.lists[list.0 as usize].1.first() } else { None }
    }

    /// The folio behind another one on its list.
    pub fn next(&self, folio: Folio) -> Option<Folio> {
        let is_listed = self.list_of(folio).is_some_and(|list| list != NONE);
        if is_listed { List::next(&self.registry.entries, folio) } else { None }
    }

    /// The cgroup on a node whose lists they are, by a number that no other one of the run has.
    pub const fn group(&self) -> u32 {
        self.group
    }

    fn owns(&self, list: EvictionList) -> bool {
        self.registry.lists.get(list.0 as usize).is_some_and(|&(group, _)| group == self.group)
    }

    /// The list of a folio that is this policy's, [`NONE`] for none.
    fn list_of(&self, folio: Folio) -> Option<u32> {
        let entry = self.registry.entries.0.get(folio.0 as usize)?;
        (entry.group == self.group).then_some(entry.list)
    }
}
