//! XFS inodes that the VFS has evicted and that are still in memory (MECHANISMS 11.4).
//!
//! Each allocation group has a set of its own, in the order of inode numbers, and a cursor where the
//! shrinker goes on. An inode in it can be opened again; otherwise it stays until the shrinker or the
//! worker that comes every 5 s finds it clean.
//!
//! Left out: that directories take turns of the groups and files follow theirs; here every 1024 inodes
//! go to the next group. Neighbours: [`super::inode_reclaim`] frees, [`crate::fs::inode`] evicts.

use std_alloc::boxed::Box;
use std_alloc::collections::{BTreeMap, VecDeque};

use crate::base::ids::MappingId;

/// Allocation groups (`mkfs.xfs` makes four on a single disk).
pub const GROUPS: usize = 4;

/// Inodes before the next group has its turn.
const INODES_IN_TURN: u32 = 1024;

/// Inodes with numbers one behind the other, as most are evicted: those of 64.
const INODES_IN_RUN: u32 = 64;

#[derive(Debug, Clone)]
struct Stretch {
    /// Bit n: inode n of the run is there.
    present: u64,
    mappings: [MappingId; INODES_IN_RUN as usize],
}

impl Stretch {
    const EMPTY: Self = Self { present: 0, mappings: [MappingId(0); INODES_IN_RUN as usize] };

    /// Inodes of the run from `first` on.
    fn from(&self, run: u32, first: u32) -> impl Iterator<Item = (u32, MappingId)> + '_ {
        let mut left = self.present & (u64::MAX << first);
        core::iter::from_fn(move || {
            let at = left.trailing_zeros();
            left &= left.wrapping_sub(1);
            (at < INODES_IN_RUN).then(|| ((run * INODES_IN_RUN) + at, self.mappings[at as usize]))
        })
    }
}

#[derive(Debug, Clone, Default)]
struct Group {
    /// By the number of their first inode, divided by [`INODES_IN_RUN`]; none is empty.
    runs: BTreeMap<u32, Box<Stretch>>,
    cursor: u32,
    /// Somebody frees inodes of it (`pag_ici_reclaim_lock`).
    locked: bool,
}

/// The evicted inodes of all groups.
#[derive(Debug, Clone, Default)]
pub struct Reclaimable {
    groups: [Group; GROUPS],
    count: u64,
}

const fn group_of(number: u32) -> usize {
    (number / INODES_IN_TURN) as usize % GROUPS
}

/// Where an inode is in its run, and its bit.
const fn place(number: u32) -> (usize, u64) {
    let at = number % INODES_IN_RUN;
    (at as usize, 1 << at)
}

impl Reclaimable {
    /// Inodes in the sets of all groups.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// An inode is evicted.
    pub(crate) fn add(&mut self, number: u32, mapping: MappingId) {
        let runs = &mut self.groups[group_of(number)].runs;
        let run = runs.entry(number / INODES_IN_RUN).or_insert_with(|| Box::new(Stretch::EMPTY));
        let (at, bit) = place(number);
        assert!((run.present & bit) == 0, "inode {number} is evicted twice");
        run.present |= bit;
        run.mappings[at] = mapping;
        self.count += 1;
    }

    /// An inode is in use again, or freed. Returns whether it was there.
    pub(crate) fn remove(&mut self, number: u32) -> bool {
        let runs = &mut self.groups[group_of(number)].runs;
        let (_, bit) = place(number);
        let Some(run) = runs.get_mut(&(number / INODES_IN_RUN)).filter(|run| (run.present & bit) != 0) else {
            return false;
        };
        run.present &= !bit;
        if run.present == 0 {
            runs.remove(&(number / INODES_IN_RUN));
        }
        self.count -= 1;
        true
    }

    /// Whether an inode is in the set as this one in memory.
    pub(super) fn has(&self, number: u32, mapping: MappingId) -> bool {
        let (at, bit) = place(number);
        let run = self.groups[group_of(number)].runs.get(&(number / INODES_IN_RUN));
        run.is_some_and(|run| (run.present & bit) != 0 && run.mappings[at] == mapping)
    }

    /// Whether a group has any.
    pub(super) fn is_empty(&self, group: usize) -> bool {
        self.groups[group].runs.is_empty()
    }

    /// Puts inodes of a group from `number` on into `batch`, until it holds `most`.
    pub(super) fn first_from(
        &self,
        group: usize,
        number: u32,
        most: usize,
        batch: &mut VecDeque<(u32, MappingId)>,
    ) {
        let first = number / INODES_IN_RUN;
        for (&run, inodes) in self.groups[group].runs.range(first..) {
            let before = if run == first { number % INODES_IN_RUN } else { 0 };
            let mut left = inodes.present & (u64::MAX << before);
            while left != 0 {
                if batch.len() == most {
                    return;
                }
                let at = left.trailing_zeros();
                left &= left - 1;
                batch.push_back(((run * INODES_IN_RUN) + at, inodes.mappings[at as usize]));
            }
        }
    }

    /// Inodes of a group from `number` on.
    pub(super) fn from(&self, group: usize, number: u32) -> impl Iterator<Item = (u32, MappingId)> + '_ {
        let first = number / INODES_IN_RUN;
        self.groups[group].runs.range(first..).flat_map(move |(&run, inodes)| {
            inodes.from(run, if run == first { number % INODES_IN_RUN } else { 0 })
        })
    }

    /// Where the shrinker goes on in a group.
    pub(super) fn cursor(&self, group: usize) -> u32 {
        self.groups[group].cursor
    }

    /// Remembers where the shrinker goes on.
    pub(super) fn set_cursor(&mut self, group: usize, number: u32) {
        self.groups[group].cursor = number;
    }

    /// Locks a group; false if somebody has it locked.
    pub(super) fn try_lock(&mut self, group: usize) -> bool {
        !core::mem::replace(&mut self.groups[group].locked, true)
    }

    /// Lets others at a group.
    pub(super) fn unlock(&mut self, group: usize) {
        let was = core::mem::replace(&mut self.groups[group].locked, false);
        assert!(was, "group {group} was not locked");
    }

    /// Whether a group is locked.
    pub fn is_locked(&self, group: usize) -> bool {
        self.groups[group].locked
    }

    /// Every inode in the sets, for checks.
    pub(crate) fn all(&self) -> impl Iterator<Item = (u32, MappingId)> + '_ {
        (0..GROUPS).flat_map(|group| self.from(group, 0))
    }
}

#[cfg(test)]
mod tests {
    use std_alloc::vec::Vec;

    use super::*;

    /// Against a map, with numbers on both sides of the ends of runs.
    #[test]
    fn a_set_has_what_a_map_has_in_the_same_order() {
        let mut stream = units::Seed(11).stream("reclaimable");
        let (mut set, mut map) = (Reclaimable::default(), BTreeMap::new());
        for round in 0..4000 {
            let number = u32::try_from(stream.below(300)).unwrap() + 900;
            let mapping = MappingId(round);
            assert_eq!(set.remove(number), map.remove(&number).is_some());
            if stream.below(2) == 0 {
                set.add(number, mapping);
                map.insert(number, mapping);
            }
            assert_eq!(set.has(number, mapping), map.get(&number) == Some(&mapping));
            assert_eq!(set.count(), map.len() as u64);
            let from = u32::try_from(stream.below(300)).unwrap() + 900;
            for group in 0..GROUPS {
                let of_map = map.range(from..).map(|(&number, &mapping)| (number, mapping));
                let of_map: Vec<_> = of_map.filter(|&(number, _)| group_of(number) == group).collect();
                assert_eq!(set.from(group, from).collect::<Vec<_>>(), of_map);
                let mut batch = VecDeque::new();
                set.first_from(group, from, 32, &mut batch);
                assert!(batch.iter().eq(of_map.iter().take(32)));
                assert_eq!(set.is_empty(group), !map.keys().any(|&number| group_of(number) == group));
            }
        }
    }
}
