//! zswap: compressed pages in memory, in front of the swap areas (SWAP 4.4).
//!
//! ```text
//!   swapped out --> stored, newest --> . . . --> oldest --second chance, then written back--> area
//!                   refused: pool full, or the cgroup's share of it --> area at once
//! ```
//! An entry is one page, by its slot, and a kernel object of the root. A pool that reached its limit takes nothing
//! until it has fallen to the threshold below it. Entries are listed by cgroup (6.8), or all in one list.
//!
//! Left out: other allocators than zsmalloc, which distributions choose; huge pages in the pool; nodes of trees of
//! entries; that lists of removed cgroups become their parents'. Neighbours: [`super::pool`]; [`crate::pages::zswap`]
//! stores, reads and writes back.

use std_alloc::collections::BTreeMap;

use units::CpuId;

use crate::alloc::page_alloc::PageAllocator;
use crate::base::event::Trace;
use crate::base::ids::MemcgId;
use crate::slab::object::Object;
use crate::swap::pool::Pool;
use crate::swap::slot::SwapSlot;
use crate::version::rules::{Rules, Zswap as Rule};

/// A page in the pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Entry {
    /// What it takes.
    pub(crate) bytes: u16,
    /// Who pays for it.
    pub(crate) memcg: MemcgId,
    /// The entry itself.
    pub(crate) object: Object,
    /// Its place on its list: the lowest is the oldest.
    place: u64,
    /// It has not come to the end of its list yet.
    referenced: bool,
}

/// Entries of a cgroup, or all of them.
#[derive(Debug, Clone, Default)]
struct Entries {
    by_place: BTreeMap<u64, SwapSlot>,
    /// Pages that were read from an area since the shrinker looked last.
    read: u64,
}

/// What happened to it since boot, as `/sys/kernel/debug/zswap` has it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[allow(missing_docs)] // Named as there.
pub struct ZswapCounts {
    pub pool_limit_hit: u64,
    pub written_back_pages: u64,
    pub reject_compress_poor: u64,
}

/// The pool and what is in it.
#[derive(Debug, Clone)]
pub struct Zswap {
    rule: Rule,
    pool: Pool,
    entries: BTreeMap<SwapSlot, Entry>,
    lists: BTreeMap<MemcgId, Entries>,
    next_place: u64,
    /// It reached its limit, and has not fallen to the threshold since.
    full: bool,
    /// Somebody met the limit since the worker was asked for last.
    hit: bool,
    /// Whose entry was written back last.
    turn: Option<MemcgId>,
    /// What happened.
    pub counts: ZswapCounts,
}

impl Zswap {
    /// Nothing is stored.
    pub(super) fn new(rules: &Rules) -> Self {
        Self {
            rule: rules.zswap,
            pool: Pool::new(rules),
            entries: BTreeMap::new(),
            lists: BTreeMap::new(),
            next_place: 0,
            full: false,
            hit: false,
            turn: None,
            counts: ZswapCounts::default(),
        }
    }

    /// Whose list the entries of a cgroup are on.
    fn list_of(&self, memcg: MemcgId) -> MemcgId {
        match self.rule {
            Rule::Absent | Rule::OneList => MemcgId::ROOT,
            Rule::ListPerGroup | Rule::StoresAll => memcg,
        }
    }

    /// Whether another page may come in, by the limit and the threshold in pages.
    pub(crate) fn has_room(&mut self, limit: u64, threshold: u64) -> bool {
        if self.pool.pages() >= limit {
            (self.full, self.hit) = (true, true);
            self.counts.pool_limit_hit += 1;
            return false;
        }
        self.full &= self.pool.pages() > threshold;
        !self.full
    }

    /// Whether the limit was met since the last call.
    pub(crate) fn take_hit(&mut self) -> bool {
        core::mem::take(&mut self.hit)
    }

    /// Whether it is to be written back: it was full, and is above the threshold still.
    pub(crate) fn is_above(&self, threshold: u64) -> bool {
        self.full && self.pool.pages() > threshold
    }

    /// Stores a page; false: no page is left for the pool.
    pub(crate) fn insert<T: Trace>(
        &mut self,
        alloc: &mut PageAllocator<T>,
        cpu: CpuId,
        slot: SwapSlot,
        bytes: u16,
        memcg: MemcgId,
        object: Object,
    ) -> bool {
        if !self.pool.store(alloc, cpu, bytes) {
            return false;
        }
        let entry = Entry { bytes, memcg, object, place: self.next_place, referenced: true };
        self.next_place += 1;
        let before = self.entries.insert(slot, entry);
        assert!(before.is_none(), "{slot:?} is stored twice");
        let list = self.list_of(memcg);
        self.lists.entry(list).or_default().by_place.insert(entry.place, slot);
        true
    }

    /// Frees what is stored for a slot.
    pub(crate) fn remove<T: Trace>(
        &mut self,
        alloc: &mut PageAllocator<T>,
        cpu: CpuId,
        slot: SwapSlot,
    ) -> Option<Entry> {
        let entry = self.entries.remove(&slot)?;
        self.pool.free(alloc, cpu, entry.bytes);
        let list = self.list_of(entry.memcg);
        self.lists.get_mut(&list).expect("an entry is listed").by_place.remove(&entry.place);
        Some(entry)
    }

    /// What is stored for a slot.
    pub(crate) fn get(&self, slot: SwapSlot) -> Option<Entry> {
        self.entries.get(&slot).copied()
    }

    /// A page of a cgroup was read from its area.
    pub(crate) fn note_read(&mut self, memcg: MemcgId) {
        let list = self.list_of(memcg);
        if let Some(list) = self.lists.get_mut(&list) {
            list.read += 1;
        }
    }

    /// Entries of a cgroup that the shrinker may take: all but as many as were read from areas since it looked last, in
    /// the proportion to which they compress.
    pub(crate) fn shrinkable(&self, memcg: MemcgId) -> u64 {
        let Some(list) = self.lists.get(&memcg) else { return 0 };
        let left = (list.by_place.len() as u64).saturating_sub(list.read);
        (left * self.pool.pages()).checked_div(self.pool.stored()).unwrap_or(0)
    }

    /// The shrinker has looked at a cgroup.
    pub(crate) fn forget_reads(&mut self, memcg: MemcgId) {
        if let Some(list) = self.lists.get_mut(&memcg) {
            list.read = list.read.saturating_sub(list.by_place.len() as u64);
        }
    }

    /// Looks at the oldest entry of a cgroup: it is to be written back, or has a second chance as the newest.
    pub(crate) fn look_at_oldest(&mut self, memcg: MemcgId) -> Option<Oldest> {
        let list = self.list_of(memcg);
        let list = self.lists.get_mut(&list)?;
        let (&place, &slot) = list.by_place.first_key_value()?;
        let entry = self.entries.get_mut(&slot).expect("a listed entry");
        // One that goes, too: should it not come to that, others are next.
        list.by_place.remove(&place);
        entry.place = self.next_place;
        list.by_place.insert(self.next_place, slot);
        self.next_place += 1;
        let stays = core::mem::take(&mut entry.referenced);
        Some(if stays { Oldest::Stays } else { Oldest::Goes(slot) })
    }

    /// The entry that the worker writes back next: cgroups that may take turns. None: nothing of theirs is stored.
    pub(crate) fn next_to_write(&mut self, may: impl Fn(MemcgId) -> bool) -> Option<SwapSlot> {
        // Each entry is met twice at most before one goes.
        for _ in 0..=2 * self.entries.len() + self.lists.len() {
            let behind = |turn: MemcgId| (core::ops::Bound::Excluded(turn), core::ops::Bound::Unbounded);
            let next = self.turn.and_then(|turn| self.lists.range(behind(turn)).next());
            let (&list, _) = next.or_else(|| self.lists.iter().next())?;
            self.turn = Some(list);
            if may(list)
                && let Some(Oldest::Goes(slot)) = self.look_at_oldest(list)
            {
                return Some(slot);
            }
        }
        None
    }

    /// Pages of the pool: `pool_total_size`.
    pub fn pool_pages(&self) -> u64 {
        self.pool.pages()
    }

    /// Pages that are stored: `stored_pages`.
    pub fn stored_pages(&self) -> u64 {
        self.pool.stored()
    }

    /// Every entry: its slot, who pays, and what it takes.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (SwapSlot, Entry)> + '_ {
        self.entries.iter().map(|(&slot, &entry)| (slot, entry))
    }

    /// Recounts; what differs.
    pub(crate) fn check(&self) -> Result<(), &'static str> {
        let listed: usize = self.lists.values().map(|list| list.by_place.len()).sum();
        let named = |(_, list): (_, &Entries)| {
            list.by_place
                .iter()
                .all(|(place, slot)| self.entries.get(slot).is_some_and(|entry| entry.place == *place))
        };
        match () {
            () if listed != self.entries.len() => Err("zswap lists another number of entries than it has"),
            () if !self.lists.iter().all(named) => Err("an entry of zswap is listed elsewhere than it says"),
            () if self.pool.stored() != listed as u64 => Err("the pool of zswap holds what is no entry"),
            () => Ok(()),
        }
    }
}

/// What becomes of the oldest entry of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Oldest {
    /// It is to be written back.
    Goes(SwapSlot),
    /// It had not been looked at, and is the newest now.
    Stays,
}
