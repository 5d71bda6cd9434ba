//! The slots of one area: who uses each, and which one is next (`swap_map`; SWAP 3.3).
//!
//! ```text
//!   solid state: each CPU fills its own cluster of 512 slots, then the next free one
//!                no free cluster: wherever a scan finds a slot, or clusters that are partly filled in turn
//!   rotating:    the lowest run of 512 free slots; none: the next free slot
//! ```
//! Left out: that the list of free clusters begins in another order than that of the slots, slots of more than
//! one user (there is no `fork`), and folios of orders between 0 and 9. Neighbour: [`super::areas`].

use std_alloc::collections::VecDeque;
use std_alloc::vec;
use std_alloc::vec::Vec;

use units::CpuId;

use crate::base::ids::MemcgId;

/// Slots of a cluster (`SWAPFILE_CLUSTER`), as many as a huge page has pages.
pub(super) const CLUSTER: u32 = 512;

/// Nobody uses the slot.
const FREE: u8 = 0;
/// A CPU holds it: fetched in advance, or not yet given back.
const HELD: u8 = 0x80;
/// The swap cache has a page of it (`SWAP_HAS_CACHE`).
const CACHED: u8 = 0x40;
/// A page table names it.
const MAPPED: u8 = 1;
/// Never handed out.
const HEADER: u8 = 0xff;

/// The slot is charged to nobody.
const NOBODY: u16 = u16::MAX;

/// The slots of an area.
#[derive(Debug, Clone)]
pub(super) struct SlotMap {
    users: Vec<u8>,
    memcg: Vec<u16>,
    free: u64,
    finder: Finder,
}

#[derive(Debug, Clone)]
enum Finder {
    Rotating { next: u32, left: u32 },
    Clusters(Clusters),
}

/// Where a cluster is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// All of it is free: on the list of these.
    Free,
    /// Some CPU fills it.
    Current,
    /// On the list of those that are partly filled.
    Partial,
    /// On no list.
    Filled,
}

#[derive(Debug, Clone)]
struct Clusters {
    used: Vec<u16>,
    state: Vec<State>,
    free: VecDeque<u32>,
    /// With some that have become something else.
    partial: VecDeque<u32>,
    keeps_partial: bool,
    /// The cluster that each CPU fills, and where it goes on.
    cpus: Vec<Option<(u32, u32)>>,
    scan_from: Vec<u32>,
}

impl SlotMap {
    /// The slots of an area of so many pages behind its header.
    pub(super) fn new(pages: u32, rotating: bool, keeps_partial: bool, cpus: usize) -> Self {
        let mut users = vec![FREE; pages as usize + 1];
        users[0] = HEADER;
        let finder = match rotating {
            true => Finder::Rotating { next: 1, left: 0 },
            false => Finder::Clusters(Clusters::new(pages + 1, keeps_partial, cpus)),
        };
        Self { memcg: vec![NOBODY; users.len()], users, free: u64::from(pages), finder }
    }

    pub(super) fn free(&self) -> u64 {
        self.free
    }

    /// Takes the next slot for a CPU, which holds it then.
    pub(super) fn take(&mut self, cpu: CpuId) -> Option<u32> {
        if self.free == 0 {
            return None;
        }
        let offset = match &mut self.finder {
            Finder::Rotating { next, left } => next_rotating(&self.users, next, left),
            Finder::Clusters(clusters) => clusters.next(&self.users, cpu.index())?,
        };
        self.users[offset as usize] = HELD;
        self.free -= 1;
        Some(offset)
    }

    /// Takes a whole free cluster.
    pub(super) fn take_cluster(&mut self) -> Option<u32> {
        let Finder::Clusters(clusters) = &mut self.finder else { return None };
        let cluster = clusters.free.pop_front()?;
        clusters.state[cluster as usize] = State::Filled;
        clusters.used[cluster as usize] = CLUSTER as u16;
        let first = cluster * CLUSTER;
        self.users[first as usize..(first + CLUSTER) as usize].fill(HELD);
        self.free -= u64::from(CLUSTER);
        Some(first)
    }

    /// A slot that a CPU held is used, for a page in the swap cache that is charged to `memcg`.
    pub(super) fn begin_use(&mut self, offset: u32, memcg: MemcgId) {
        assert!(self.users[offset as usize] == HELD, "a slot is used that nobody took");
        self.users[offset as usize] = CACHED;
        self.memcg[offset as usize] = memcg.0;
    }

    /// Whom a slot is charged to; none: it is not in use.
    pub(super) fn memcg(&self, offset: u32) -> Option<MemcgId> {
        let memcg = self.memcg[offset as usize];
        (memcg != NOBODY).then_some(MemcgId(memcg))
    }

    /// Whether a page table names the slot, or the swap cache has its page.
    pub(super) fn is_used(&self, offset: u32) -> bool {
        let users = self.users.get(offset as usize).copied().unwrap_or(HEADER);
        users != FREE && users < HELD
    }

    /// Whether a page table names the slot.
    pub(super) fn is_mapped(&self, offset: u32) -> bool {
        self.is_used(offset) && (self.users[offset as usize] & MAPPED) != 0
    }

    pub(super) fn map(&mut self, offset: u32) {
        let users = &mut self.users[offset as usize];
        assert!(*users == CACHED, "a page table names a slot of a page in the swap cache");
        *users |= MAPPED;
    }

    /// No page table names the slot any more; true when nobody uses it, and the CPU holds it.
    pub(super) fn unmap(&mut self, offset: u32) -> bool {
        assert!(self.is_mapped(offset), "no page table names the slot");
        self.drop_user(offset, MAPPED)
    }

    pub(super) fn cache(&mut self, offset: u32) {
        let users = &mut self.users[offset as usize];
        assert!(*users == MAPPED, "a slot is cached once");
        *users |= CACHED;
    }

    /// Its page left the swap cache; true when nobody uses it, and the CPU holds it.
    pub(super) fn uncache(&mut self, offset: u32) -> bool {
        assert!((self.users[offset as usize] & CACHED) != 0, "its page is not in the swap cache");
        self.drop_user(offset, CACHED)
    }

    fn drop_user(&mut self, offset: u32, user: u8) -> bool {
        let users = &mut self.users[offset as usize];
        *users &= !user;
        let unused = *users == FREE;
        if unused {
            *users = HELD;
        }
        unused
    }

    /// A CPU gives a slot back; returns whom it was charged to.
    pub(super) fn give_back(&mut self, offset: u32) -> Option<MemcgId> {
        assert!(self.users[offset as usize] == HELD, "a slot is given back that is in use or free");
        let memcg = self.memcg(offset);
        self.users[offset as usize] = FREE;
        self.memcg[offset as usize] = NOBODY;
        self.free += 1;
        if let Finder::Clusters(clusters) = &mut self.finder {
            clusters.give_back(offset / CLUSTER);
        }
        memcg
    }

    /// Slots that each cgroup is charged for.
    pub(super) fn charged(&self) -> impl Iterator<Item = (u32, MemcgId)> + '_ {
        (0..)
            .zip(&self.memcg)
            .filter(|&(_, &memcg)| memcg != NOBODY)
            .map(|(slot, &memcg)| (slot, MemcgId(memcg)))
    }

    /// Recounts; what differs.
    pub(super) fn check(&self) -> Result<(), &'static str> {
        let free = self.users.iter().filter(|&&users| users == FREE).count() as u64;
        if free != self.free {
            return Err("an area has another number of free slots than it says");
        }
        for (&users, &memcg) in self.users.iter().zip(&self.memcg) {
            let used = users != FREE && users < HELD;
            if used && memcg == NOBODY {
                return Err("a slot is in use and charged to nobody");
            }
            if users == FREE && memcg != NOBODY {
                return Err("a free slot is charged");
            }
        }
        let Finder::Clusters(clusters) = &self.finder else { return Ok(()) };
        for (cluster, users) in self.users.chunks(CLUSTER as usize).enumerate() {
            let missing = CLUSTER as usize - users.len();
            let used = users.iter().filter(|&&users| users != FREE).count() + missing;
            if used != usize::from(clusters.used[cluster]) {
                return Err("a cluster has another number of used slots than it says");
            }
            if (used == 0) != (clusters.state[cluster] == State::Free)
                && clusters.state[cluster] != State::Current
            {
                return Err("a cluster is free without being on the list of these, or the reverse");
            }
        }
        Ok(())
    }
}

/// The next slot of a rotating area, which has a free one.
fn next_rotating(users: &[u8], next: &mut u32, left: &mut u32) -> u32 {
    let is_free = |offset: u32| users[offset as usize] == FREE;
    let end = users.len() as u32;
    if *left == 0 {
        *left = CLUSTER;
        let mut run = 0;
        let found = (1..end).find(|&offset| {
            run = if is_free(offset) { run + 1 } else { 0 };
            run == CLUSTER
        });
        *next = found.map_or(1, |last| last + 1 - CLUSTER);
    }
    *left -= 1;
    let offset = (*next..end).chain(1..*next).find(|&offset| is_free(offset)).expect("one is free");
    *next = if offset + 1 < end { offset + 1 } else { 1 };
    offset
}

impl Clusters {
    fn new(slots: u32, keeps_partial: bool, cpus: usize) -> Self {
        let count = slots.div_ceil(CLUSTER);
        let mut clusters = Self {
            used: vec![0; count as usize],
            state: vec![State::Free; count as usize],
            free: VecDeque::new(),
            partial: VecDeque::new(),
            keeps_partial,
            cpus: vec![None; cpus],
            scan_from: vec![1; cpus],
        };
        // The header, and what is beyond the end.
        clusters.used[0] = 1;
        clusters.used[count as usize - 1] += ((count * CLUSTER) - slots) as u16;
        for cluster in 0..count {
            if clusters.used[cluster as usize] == 0 {
                clusters.free.push_back(cluster);
            } else {
                clusters.leave(cluster);
            }
        }
        clusters
    }

    /// No CPU fills a cluster any more.
    fn leave(&mut self, cluster: u32) {
        let has_room = u32::from(self.used[cluster as usize]) < CLUSTER;
        let listed = has_room && self.keeps_partial;
        self.state[cluster as usize] = if listed { State::Partial } else { State::Filled };
        if listed {
            self.partial.push_back(cluster);
        }
    }

    fn next(&mut self, users: &[u8], cpu: usize) -> Option<u32> {
        let is_free = |&offset: &u32| users[offset as usize] == FREE;
        loop {
            if let Some((cluster, from)) = self.cpus[cpu] {
                let end = ((cluster + 1) * CLUSTER).min(users.len() as u32);
                if let Some(offset) = (from..end).find(is_free) {
                    self.cpus[cpu] = Some((cluster, offset + 1));
                    self.used[cluster as usize] += 1;
                    return Some(offset);
                }
                self.cpus[cpu] = None;
                self.leave(cluster);
            }
            let is_partial = |cluster: &u32| self.state[*cluster as usize] == State::Partial;
            let next = match self.free.pop_front() {
                Some(cluster) => Some(cluster),
                None => core::iter::from_fn(|| self.partial.pop_front()).find(is_partial),
            };
            let Some(cluster) = next else { break };
            self.state[cluster as usize] = State::Current;
            self.cpus[cpu] = Some((cluster, cluster * CLUSTER));
        }
        let (from, end) = (self.scan_from[cpu], users.len() as u32);
        let offset = (from..end).chain(1..from).find(is_free)?;
        self.scan_from[cpu] = if offset + 1 < end { offset + 1 } else { 1 };
        self.used[(offset / CLUSTER) as usize] += 1;
        Some(offset)
    }

    fn give_back(&mut self, cluster: u32) {
        let index = cluster as usize;
        self.used[index] -= 1;
        if self.used[index] == 0 {
            if self.state[index] == State::Current {
                self.cpus
                    .iter_mut()
                    .filter(|at| at.is_some_and(|(at, _)| at == cluster))
                    .for_each(|at| *at = None);
            }
            self.state[index] = State::Free;
            self.free.push_back(cluster);
        } else if self.state[index] == State::Filled && self.keeps_partial {
            self.leave(cluster);
        }
    }
}

#[cfg(test)]
mod tests {
    use std_alloc::vec::Vec;

    use super::*;

    const CPU: [CpuId; 2] = [CpuId(0), CpuId(1)];

    fn take(map: &mut SlotMap, cpu: CpuId, count: usize) -> Vec<u32> {
        (0..count).map_while(|_| map.take(cpu)).collect()
    }

    /// Slots of clusters 1 to 3; cluster 0 has the header, so it is not free.
    fn solid(keeps_partial: bool) -> SlotMap {
        SlotMap::new(2047, false, keeps_partial, 2)
    }

    #[test]
    fn each_cpu_fills_its_own_cluster_and_goes_on_to_the_next_free_one() {
        let mut map = solid(false);
        assert_eq!(take(&mut map, CPU[0], 3), [512, 513, 514]);
        assert_eq!(take(&mut map, CPU[1], 2), [1024, 1025]);
        assert_eq!(take(&mut map, CPU[0], 510).last(), Some(&1536), "behind 512 to 1023");
        map.check().unwrap();
    }

    #[test]
    fn a_cluster_that_came_free_waits_for_its_turn_behind_the_others() {
        let mut map = solid(false);
        take(&mut map, CPU[0], 512);
        (512..1024).for_each(|slot| assert_eq!(map.give_back(slot), None));
        assert_eq!(take(&mut map, CPU[0], 1), [1024]);
        assert_eq!(take(&mut map, CPU[1], 1), [1536]);
        assert_eq!(map.take_cluster(), Some(512), "a huge page takes a whole one");
        assert_eq!(map.take_cluster(), None);
        map.check().unwrap();
    }

    #[test]
    fn without_a_free_cluster_6_1_scans_and_6_12_takes_partly_filled_ones_in_turn() {
        for (keeps_partial, found) in [(false, [1, 2, 3]), (true, [700, 1500, 1])] {
            let mut map = solid(keeps_partial);
            let all = take(&mut map, CPU[0], 1536);
            assert_eq!((all[0], all.len(), map.free()), (512, 1536, 511), "all but cluster 0");
            if keeps_partial {
                take(&mut map, CPU[0], 511);
                [700, 1500, 1].into_iter().for_each(|slot| assert_eq!(map.give_back(slot), None));
            }
            assert_eq!(take(&mut map, CPU[0], 3), found);
            map.check().unwrap();
        }
    }

    #[test]
    fn a_rotating_area_is_filled_from_its_lowest_run_of_512_free_slots() {
        let mut map = SlotMap::new(1200, true, false, 1);
        assert_eq!(take(&mut map, CPU[0], 512).last(), Some(&512));
        map.give_back(100);
        map.give_back(512);
        assert_eq!(take(&mut map, CPU[0], 2), [512, 513], "not 100: that is no run");
        take(&mut map, CPU[0], 510);
        assert_eq!(take(&mut map, CPU[0], 2), [100, 1024], "no run is left: the next free one");
        assert_eq!(map.take_cluster(), None);
        map.check().unwrap();
    }

    #[test]
    fn a_slot_is_free_when_neither_page_table_nor_swap_cache_uses_it() {
        let mut map = solid(false);
        let slot = map.take(CPU[0]).unwrap();
        assert!(!map.is_used(slot));
        map.begin_use(slot, MemcgId(3));
        map.map(slot);
        assert!(!map.uncache(slot) && map.is_mapped(slot));
        map.cache(slot);
        assert!(!map.unmap(slot) && map.is_used(slot));
        assert!(map.uncache(slot), "the CPU holds it");
        assert_eq!((map.memcg(slot), map.free()), (Some(MemcgId(3)), 2046), "and it is charged until");
        assert_eq!((map.give_back(slot), map.free()), (Some(MemcgId(3)), 2047), "it is given back");
    }
}
