//! Swap areas: what anonymous pages can go to, and how much of it is left (SWAP 1.1, 3.1, 3.2, 3.4).
//!
//! ```text
//!   area --fetched, 64 at once--> CPU --used, charged--> page table, swap cache
//!   area <--given back, 64 at once, uncharged-- CPU <--unused--
//! ```
//! Slots of the highest priority go first; areas of the same priority take turns, by calls or by clusters.
//!
//! Left out: swap files on filesystems, discard, hibernation, `swapoff`. Neighbours: [`super::map`] for which slot
//! is next, [`super::store`] for what is in them, [`crate::cgroup::swap`] for what a cgroup may use,
//! [`crate::pages::swap_cache`] for pages that have a slot.

use std_alloc::collections::BTreeMap;
use std_alloc::vec;
use std_alloc::vec::Vec;

use units::CpuId;

use crate::alloc::page_alloc::PageAllocator;
use crate::base::event::Trace;
use crate::base::ids::{AnonId, MemcgId};
use crate::cgroup::tree::{Memcgs, UNLIMITED};
use crate::swap::map::{CLUSTER, SlotMap};
use crate::swap::readahead::ClusterWindow;
use crate::swap::slot::SwapSlot;
use crate::swap::store::{Store, Stored};
use crate::swap::zswap::Zswap;
use crate::version::rules::{Rules, SlotCache, SwapClusters, SwapTurns};

/// Slots that a CPU fetches or gives back at once (`SWAP_SLOTS_CACHE_SIZE`).
const BATCH: usize = 64;

/// What an area is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AreaKind {
    /// A disk or a partition: writes and reads are under way for a while.
    Disk {
        /// Its number among the block devices of the machine.
        device: u16,
        /// Its queue says that it rotates: it is read by clusters and filled from the lowest slot.
        rotating: bool,
    },
    /// Compressed memory: writes and reads are done at once, by whoever asks (`SWP_SYNCHRONOUS_IO`).
    Zram,
}

/// An area as `swapon` takes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AreaSpec {
    /// What it is on.
    pub kind: AreaKind,
    /// Pages that it holds, its header not counted.
    pub pages: u64,
    /// The higher is filled first; none: below all that are there already.
    pub priority: Option<i16>,
}

/// One area.
#[derive(Debug, Clone)]
struct Area {
    spec: AreaSpec,
    priority: i16,
    slots: SlotMap,
    store: Store,
    /// The cluster that it gave a slot of last.
    cluster: Option<u32>,
}

/// Slots that a CPU holds.
#[derive(Debug, Clone, Default)]
struct CpuSlots {
    /// The next one at the end.
    fetched: Vec<SwapSlot>,
    unused: Vec<SwapSlot>,
}

/// A slot for a page that is to be swapped out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub(crate) struct Fetched {
    pub(crate) slot: SwapSlot,
    /// Slots that were fetched for it.
    pub(crate) fetched: u32,
}

/// Every swap area of the machine (`total_swap_pages`, `nr_swap_pages`).
#[derive(Debug, Clone)]
pub struct SwapAreas {
    areas: Vec<Area>,
    /// In the order in which they are tried.
    order: Vec<usize>,
    cpus: Vec<CpuSlots>,
    /// CPUs keep slots in advance: there are enough.
    keeps: bool,
    rules: Rules,
    total: u64,
    /// Readahead by slots.
    pub(crate) readahead: ClusterWindow,
    /// Slots that were given back in this step: shadows in there are to be forgotten.
    given_back: Vec<SwapSlot>,
    /// Compressed pages in front of all areas.
    pub zswap: Zswap,
    /// Which page of which mapping is in a slot, where somebody listens to what becomes of pages.
    owners: BTreeMap<SwapSlot, (AnonId, u32)>,
}

impl SwapAreas {
    /// No area yet, on a machine of so many CPUs.
    pub fn new(rules: &Rules, cpus: usize) -> Self {
        Self {
            areas: Vec::new(),
            order: Vec::new(),
            cpus: vec![CpuSlots::default(); cpus],
            keeps: false,
            rules: *rules,
            total: 0,
            readahead: ClusterWindow::default(),
            given_back: Vec::new(),
            zswap: Zswap::new(rules),
            owners: BTreeMap::new(),
        }
    }

    /// `swapon`.
    ///
    /// # Panics
    /// With more than 30 areas, or one of more than 256 GiB.
    pub fn add_area(&mut self, spec: AreaSpec) {
        let pages = u32::try_from(spec.pages).ok().filter(|&pages| pages < SwapSlot::OFFSETS);
        let pages = pages.expect("an area has at most 256 GiB");
        assert!(self.areas.len() < SwapSlot::AREAS_MAX, "a machine has at most 30 areas");
        let rotating = matches!(spec.kind, AreaKind::Disk { rotating: true, .. });
        let keeps_partial = self.rules.swap_clusters == SwapClusters::Lists;
        let lowest = self.areas.iter().map(|area| area.priority).min().unwrap_or(0).min(-1);
        let area = Area {
            spec,
            priority: spec.priority.unwrap_or(lowest - 1),
            slots: SlotMap::new(pages, rotating, keeps_partial, self.cpus.len()),
            store: Store::new(pages, spec.kind == AreaKind::Zram, &self.rules),
            cluster: None,
        };
        self.total += spec.pages;
        let at = self.order.partition_point(|&other| self.areas[other].priority >= area.priority);
        self.order.insert(at, self.areas.len());
        self.areas.push(area);
    }

    /// Pages of all areas: `total_swap_pages`.
    #[inline]
    pub fn total_pages(&self) -> u64 {
        self.total
    }

    /// Slots of all areas that nobody holds: `get_nr_swap_pages`.
    pub fn free_pages(&self) -> u64 {
        self.areas.iter().map(|area| area.slots.free()).sum()
    }

    /// Slots that a task of `memcg` may still use, with the limits of all cgroups above it:
    /// `mem_cgroup_get_nr_swap_pages`.
    pub fn free_for(&self, cgroups: &Memcgs, memcg: MemcgId) -> u64 {
        let room = |id: MemcgId| cgroups[id].swap.max.saturating_sub(cgroups[id].swap.usage);
        cgroups.ancestors(memcg).map(room).fold(self.free_pages(), u64::min)
    }

    /// Whether so little is free that pages in memory give their slots back: more than half of the machine's are
    /// in use, or of what a cgroup above `memcg` may use (`mem_cgroup_swap_full`).
    pub fn is_full_for(&self, cgroups: &Memcgs, memcg: MemcgId) -> bool {
        let is_full = |id: MemcgId| {
            let limit = cgroups[id].swap.max.min(cgroups[id].swap.high);
            limit != UNLIMITED && cgroups[id].swap.usage * 2 >= limit
        };
        self.free_pages() * 2 < self.total || cgroups.ancestors(memcg).any(is_full)
    }

    /// What the area of a slot is on.
    #[inline]
    pub fn kind(&self, slot: SwapSlot) -> AreaKind {
        self.areas[slot.area()].spec.kind
    }

    /// Whether some area rotates: nothing is read ahead by mapping then.
    pub fn any_rotates(&self) -> bool {
        self.areas.iter().any(|area| matches!(area.spec.kind, AreaKind::Disk { rotating: true, .. }))
    }

    /// Slots of the area that `slot` is in, its header included.
    pub fn area_slots(&self, slot: SwapSlot) -> u32 {
        u32::try_from(self.areas[slot.area()].spec.pages).expect("checked when it was added") + 1
    }

    /// Whom a slot in use is charged to.
    pub fn memcg(&self, slot: SwapSlot) -> Option<MemcgId> {
        self.areas[slot.area()].slots.memcg(slot.offset())
    }

    /// Whether a page table names a slot, or the swap cache has its page.
    pub fn is_used(&self, slot: SwapSlot) -> bool {
        self.areas[slot.area()].slots.is_used(slot.offset())
    }

    /// Whether a page table names a slot.
    pub(crate) fn is_mapped(&self, slot: SwapSlot) -> bool {
        self.areas[slot.area()].slots.is_mapped(slot.offset())
    }

    fn map_of(&mut self, slot: SwapSlot) -> &mut SlotMap {
        &mut self.areas[slot.area()].slots
    }

    /// `get_swap_pages`: takes up to `count` slots for a CPU, all of one area.
    fn take(&mut self, cpu: CpuId, count: usize, taken: &mut Vec<SwapSlot>) {
        for place in 0..self.order.len() {
            let index = self.order[place];
            let area = &mut self.areas[index];
            let found = core::iter::from_fn(|| area.slots.take(cpu)).take(count);
            taken.extend(found.map(|offset| SwapSlot::new(index, offset)));
            if !taken.is_empty() {
                if self.ends_turn(taken[0]) {
                    self.pass_turn(place);
                }
                return;
            }
        }
    }

    /// Whether the turn of an area is over that gave this slot: since 6.14 it has to begin another cluster.
    fn ends_turn(&mut self, slot: SwapSlot) -> bool {
        let cluster = slot.offset() / CLUSTER;
        let before = self.areas[slot.area()].cluster.replace(cluster);
        self.rules.swap_turns == SwapTurns::PerCall || before.is_some_and(|before| before != cluster)
    }

    /// The area at this place of the order is the last of its priority next time.
    fn pass_turn(&mut self, place: usize) {
        let priority = self.areas[self.order[place]].priority;
        let same =
            self.order[place..].iter().filter(|&&other| self.areas[other].priority == priority).count();
        self.order[place..place + same].rotate_left(1);
    }

    /// A slot for a page: from those that the CPU holds, where CPUs hold some (`folio_alloc_swap`).
    pub(crate) fn fetch(&mut self, cpu: CpuId) -> Option<Fetched> {
        let mut fetched = core::mem::take(&mut self.cpus[cpu.index()].fetched);
        let mut count = 0;
        if fetched.is_empty() {
            let batch = if self.keeps { BATCH } else { 1 };
            self.take(cpu, batch, &mut fetched);
            fetched.reverse();
            count = fetched.len();
        }
        let slot = fetched.pop();
        self.cpus[cpu.index()].fetched = fetched;
        Some(Fetched { slot: slot?, fetched: u32::try_from(count).expect("64 at most") })
    }

    /// Decides whether CPUs hold slots in advance: while there are many. Returns what they have to give back.
    pub(crate) fn decide_keeping(&mut self) -> Vec<SwapSlot> {
        if self.rules.slot_cache == SlotCache::Off {
            return Vec::new();
        }
        let (free, cpus) = (self.free_pages(), self.cpus.len() as u64);
        if !self.keeps {
            self.keeps = free > cpus * 5 * BATCH as u64;
            return Vec::new();
        }
        self.keeps = free >= cpus * 2 * BATCH as u64;
        if self.keeps {
            return Vec::new();
        }
        let held = self.cpus.iter_mut().flat_map(|cpu| [&mut cpu.fetched, &mut cpu.unused]);
        held.flat_map(core::mem::take).collect()
    }

    /// Takes 512 slots in a row for a huge page.
    pub(crate) fn fetch_cluster(&mut self) -> Option<SwapSlot> {
        for place in 0..self.order.len() {
            let area = self.order[place];
            if let Some(offset) = self.areas[area].slots.take_cluster() {
                self.pass_turn(place);
                return Some(SwapSlot::new(area, offset));
            }
        }
        None
    }

    /// Slots of a page that is going to be in the swap cache, charged to `memcg`.
    pub(crate) fn begin_use(&mut self, slot: SwapSlot, memcg: MemcgId) {
        self.map_of(slot).begin_use(slot.offset(), memcg);
    }

    /// A page table names a slot whose page is in the swap cache.
    pub(crate) fn map(&mut self, slot: SwapSlot) {
        self.map_of(slot).map(slot.offset());
    }

    /// No page table names a slot any more; true when nobody uses it.
    #[must_use]
    pub(crate) fn unmap(&mut self, slot: SwapSlot) -> bool {
        self.map_of(slot).unmap(slot.offset())
    }

    /// The swap cache has a page of a slot that a page table names.
    pub(crate) fn cache(&mut self, slot: SwapSlot) {
        self.map_of(slot).cache(slot.offset());
    }

    /// The page of a slot left the swap cache; true when nobody uses the slot.
    #[must_use]
    pub(crate) fn uncache(&mut self, slot: SwapSlot) -> bool {
        self.map_of(slot).uncache(slot.offset())
    }

    /// A CPU holds a slot that nobody uses; returns those that it has to give back (`free_swap_slot`).
    pub(crate) fn put(&mut self, cpu: CpuId, slot: SwapSlot) -> Vec<SwapSlot> {
        if !self.keeps {
            return vec![slot];
        }
        let unused = &mut self.cpus[cpu.index()].unused;
        let due = if unused.len() >= BATCH { core::mem::take(unused) } else { Vec::new() };
        unused.push(slot);
        due
    }

    /// Notes whose page is in a slot, for events about it.
    pub(crate) fn tell_owner(&mut self, slot: SwapSlot, anon: AnonId, index: u32) {
        self.owners.insert(slot, (anon, index));
    }

    /// Whose page is in a slot, where it was noted.
    pub(crate) fn told_owner(&self, slot: SwapSlot) -> Option<(AnonId, u32)> {
        self.owners.get(&slot).copied()
    }

    /// Slots come back to their area; returns whom it was charged to.
    pub(crate) fn give_back(&mut self, slot: SwapSlot) -> Option<MemcgId> {
        self.given_back.push(slot);
        if !self.owners.is_empty() {
            self.owners.remove(&slot);
        }
        self.map_of(slot).give_back(slot.offset())
    }

    /// Slots that were given back since the last call.
    pub(crate) fn take_given_back(&mut self) -> Vec<SwapSlot> {
        core::mem::take(&mut self.given_back)
    }

    /// Says what the page that a slot is for compresses to, in bytes.
    pub(crate) fn note_content(&mut self, slot: SwapSlot, bytes: u16) {
        self.areas[slot.area()].store.note(slot.offset(), bytes);
    }

    /// What the page of a slot compresses to; none: a bit is to say that it is one of zeroes.
    pub(crate) fn compressed(&self, slot: SwapSlot) -> Option<u16> {
        self.areas[slot.area()].store.compressed(slot.offset())
    }

    /// Writes the page of a slot, as far as that takes no waiting.
    pub(crate) fn store<T: Trace>(
        &mut self,
        alloc: &mut PageAllocator<T>,
        cpu: CpuId,
        slot: SwapSlot,
    ) -> Stored {
        self.areas[slot.area()].store.write(alloc, cpu, slot.offset())
    }

    /// Bytes that were stored for a slot; none: it is on the device.
    pub fn stored_bytes(&self, slot: SwapSlot) -> Option<u16> {
        if let Some(entry) = self.zswap.get(slot) {
            return Some(entry.bytes);
        }
        self.areas[slot.area()].store.length(slot.offset())
    }

    /// Whether a bit says that a slot's page is one of zeroes.
    pub fn is_zero(&self, slot: SwapSlot) -> bool {
        self.areas[slot.area()].store.is_zero(slot.offset())
    }

    /// What was stored for a slot is no longer needed (`swap_slot_free_notify`).
    pub(crate) fn discard<T: Trace>(&mut self, alloc: &mut PageAllocator<T>, cpu: CpuId, slot: SwapSlot) {
        self.areas[slot.area()].store.erase(alloc, cpu, slot.offset());
    }

    /// Pages of all pools: `nr_zspages`.
    pub fn pool_pages(&self) -> u64 {
        self.zswap.pool_pages() + self.areas.iter().map(|area| area.store.pool_pages()).sum::<u64>()
    }

    /// Every slot that is charged, and to whom.
    pub(crate) fn charged(&self) -> impl Iterator<Item = (SwapSlot, MemcgId)> + '_ {
        let of = |(index, area): (usize, &'_ Area)| {
            area.slots
                .charged()
                .map(|(offset, memcg)| (SwapSlot::new(index, offset), memcg))
                .collect::<Vec<_>>()
        };
        self.areas.iter().enumerate().flat_map(of)
    }

    /// Recounts; what differs.
    pub(crate) fn check(&self) -> Result<(), &'static str> {
        self.zswap.check()?;
        self.areas.iter().try_for_each(|area| area.slots.check())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::version::presets::Version;

    /// ```text
    ///   area of 100 pages     P: swap.max 40, uses 30     P/A: no limit, uses 30
    /// ```
    #[test]
    fn what_is_free_for_a_cgroup_is_what_its_parents_leave() {
        let version = Version::parse("linux-6.1").unwrap();
        let mut cgroups = Memcgs::new(&version, 1, 1);
        let parent = cgroups.create(MemcgId::ROOT, "P");
        let child = cgroups.create(parent, "A");
        let mut areas = SwapAreas::new(&version.rules, 1);
        assert_eq!(areas.free_for(&cgroups, child), 0, "no area");
        areas.add_area(AreaSpec { kind: AreaKind::Zram, pages: 100, priority: None });
        assert_eq!(areas.free_for(&cgroups, child), 100);
        cgroups.set_swap_max(parent, 40);
        assert_eq!(cgroups.charge_swap(child, 30), Ok(()));
        assert_eq!(cgroups.charge_swap(child, 11), Err(parent), "10 are left");
        assert_eq!(areas.free_for(&cgroups, child), 10);
        assert_eq!(areas.free_for(&cgroups, MemcgId::ROOT), 100);
    }

    const CPU: CpuId = CpuId(0);

    fn areas(kernel: &str, specs: &[(AreaKind, u64, Option<i16>)]) -> SwapAreas {
        let mut areas = SwapAreas::new(&Version::parse(kernel).unwrap().rules, 1);
        for &(kind, pages, priority) in specs {
            areas.add_area(AreaSpec { kind, pages, priority });
        }
        areas
    }

    fn fetched(areas: &mut SwapAreas) -> (usize, u32, u32) {
        assert!(areas.decide_keeping().is_empty());
        let found = areas.fetch(CPU).unwrap();
        (found.slot.area(), found.slot.offset(), found.fetched)
    }

    #[test]
    fn the_first_area_is_filled_first_unless_another_has_a_priority() {
        let zram = |priority| (AreaKind::Zram, 1000, priority);
        for (second, first) in [(None, 0), (Some(5), 1)] {
            let mut areas = areas("linux-5.4", &[zram(None), zram(second)]);
            let used: Vec<usize> = (0..200).map(|_| fetched(&mut areas).0).collect();
            assert_eq!(used, [first; 200]);
        }
    }

    #[test]
    fn areas_of_one_priority_take_turns_by_the_slots_that_are_fetched_at_once() {
        let zram = (AreaKind::Zram, 1000, Some(1));
        let mut one_by_one = areas("linux-2.6.32", &[zram, zram]);
        assert_eq!([(); 4].map(|()| fetched(&mut one_by_one).0), [0, 1, 0, 1]);
        let mut cached = areas("linux-6.12", &[zram, zram]);
        let used: Vec<usize> = (0..192).map(|_| fetched(&mut cached).0).collect();
        let counted: Vec<usize> = used.chunk_by(|a, b| a == b).map(<[usize]>::len).collect();
        assert_eq!(counted, [64, 64, 64]);
    }

    /// ```text
    ///   slots left: 2000, 1936, ..   what the CPU holds is not left, whether it is used or not
    /// ```
    #[test]
    fn a_cpu_fetches_64_slots_and_gives_back_64_when_it_has_one_more() {
        let mut areas = areas("linux-6.1", &[(AreaKind::Zram, 2000, None)]);
        assert_eq!(fetched(&mut areas), (0, 512, 64));
        assert_eq!(areas.free_pages(), 1936);
        assert_eq!(fetched(&mut areas), (0, 513, 0), "in ascending order");
        let used: Vec<SwapSlot> = (0..65).map(|_| areas.fetch(CPU).unwrap().slot).collect();
        for &slot in &used[..64] {
            areas.begin_use(slot, MemcgId::ROOT);
            assert!(areas.uncache(slot) && areas.put(CPU, slot).is_empty());
        }
        areas.begin_use(used[64], MemcgId::ROOT);
        assert!(areas.uncache(used[64]));
        assert_eq!(areas.put(CPU, used[64]), used[..64], "the 65th stays");
    }

    #[test]
    fn cpus_keep_no_slots_once_few_are_left() {
        let mut areas = areas("linux-6.1", &[(AreaKind::Zram, 400, None)]);
        let mut taken: Vec<u32> = Vec::new();
        loop {
            let returned = areas.decide_keeping();
            returned.into_iter().for_each(|slot| assert_eq!(areas.give_back(slot), None));
            let Some(found) = areas.fetch(CPU) else { break };
            taken.push(found.fetched);
        }
        assert_eq!(taken.len(), 400, "the last one, too");
        let batches = taken.iter().filter(|&&count| count == 64).count();
        let singles = taken.iter().filter(|&&count| count == 1).count();
        assert_eq!(batches, 5, "until less than 128 are left");
        assert!(singles >= 80, "then one by one: {singles}");
    }

    /// Which areas the next slots are from, with how many in a row: `a1024 b512`.
    fn turns(kernel: &str, priorities: [Option<i16>; 3], slots: usize) -> std_alloc::string::String {
        use core::fmt::Write;
        let version = Version::parse(kernel).unwrap();
        let mut areas = SwapAreas::new(&version.rules, 1);
        for priority in priorities {
            areas.add_area(AreaSpec { kind: AreaKind::Zram, pages: 2047, priority });
        }
        assert!(areas.decide_keeping().is_empty());
        let (mut text, mut last, mut count) = (std_alloc::string::String::new(), None, 0);
        for _ in 0..=slots {
            let area = areas.fetch(CpuId(0)).map(|fetched| fetched.slot.area());
            if let Some(before) = last.filter(|_| last != Some(area)) {
                let _: Result<(), _> = match before {
                    Some(before) => write!(text, "{}{count} ", char::from(b'a' + before as u8)),
                    None => write!(text, "none "),
                };
                count = 0;
            }
            (last, count) = (Some(area), count + 1);
        }
        text
    }

    #[test]
    fn the_highest_priority_is_filled_first_and_equal_ones_take_turns() {
        assert_eq!(turns("linux-6.1", [None; 3], 6141), "a2047 b2047 c2047 ", "in the order of swapon");
        assert_eq!(turns("linux-6.1", [None, Some(0), Some(7)], 6141), "c2047 b2047 a2047 ");
        let equal = [None, Some(5), Some(5)];
        let at_first = |kernel, slots| turns(kernel, equal, slots);
        assert_eq!(at_first("linux-6.1", 256), "b64 c64 b64 c64 ", "what a CPU fetches at once");
        assert_eq!(at_first("linux-2.6.32", 3), "b1 c1 b1 ", "slots one by one");
        let version = Version::parse("linux-7.2").unwrap();
        assert_eq!(version.rules.swap_turns, SwapTurns::PerCluster);
        // A turn ends with the first slot of the next cluster; the one with the header comes last.
        assert_eq!(at_first("linux-7.2", 2050), "b513 c513 b512 c512 ");
        let last = turns("linux-6.12", equal, 6141);
        assert!(last.ends_with("a2047 "), "below both: {last}");
    }

    #[test]
    fn clusters_for_huge_pages_are_taken_in_turns_too() {
        for (kernel, rule) in [("linux-6.12", SwapTurns::PerCall), ("linux-7.2", SwapTurns::PerCluster)] {
            let version = Version::parse(kernel).unwrap();
            assert_eq!(version.rules.swap_turns, rule);
            let mut areas = SwapAreas::new(&version.rules, 1);
            for _ in 0..2 {
                areas.add_area(AreaSpec { kind: AreaKind::Zram, pages: 2047, priority: Some(1) });
            }
            let order: Vec<_> = (0..4).filter_map(|_| areas.fetch_cluster()).map(SwapSlot::area).collect();
            assert_eq!(order, [0, 1, 0, 1], "{kernel}");
        }
    }
}
