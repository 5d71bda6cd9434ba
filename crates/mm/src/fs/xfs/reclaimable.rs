//! XFS inodes that the VFS has evicted and that are still in memory (MECHANISMS 11.4).
//!
//! Each allocation group has a set of its own, in the order of inode numbers, and a cursor where the
//! shrinker goes on. An inode in it can be opened again; otherwise it stays until the shrinker or the
//! worker that comes every 5 s finds it clean.
//!
//! Left out: that directories take turns of the groups and files follow theirs; here every 1024 inodes
//! go to the next group. Neighbours: [`super::inode_reclaim`] frees, [`crate::fs::inode`] evicts.

use std_alloc::collections::BTreeMap;

use crate::base::ids::MappingId;

/// Allocation groups (`mkfs.xfs` makes four on a single disk).
pub const GROUPS: usize = 4;

/// Inodes before the next group has its turn.
const INODES_IN_TURN: u32 = 1024;

#[derive(Debug, Clone, Default)]
struct Group {
    inodes: BTreeMap<u32, MappingId>,
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

impl Reclaimable {
    /// Inodes in the sets of all groups.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// An inode is evicted.
    pub(crate) fn add(&mut self, number: u32, mapping: MappingId) {
        let before = self.groups[group_of(number)].inodes.insert(number, mapping);
        assert!(before.is_none(), "inode {number} is evicted twice");
        self.count += 1;
    }

    /// An inode is in use again, or freed. Returns whether it was there.
    pub(crate) fn remove(&mut self, number: u32) -> bool {
        let there = self.groups[group_of(number)].inodes.remove(&number).is_some();
        self.count -= u64::from(there);
        there
    }

    /// Whether an inode is in the set as this one in memory.
    pub(super) fn has(&self, number: u32, mapping: MappingId) -> bool {
        self.groups[group_of(number)].inodes.get(&number) == Some(&mapping)
    }

    /// Whether a group has any.
    pub(super) fn is_empty(&self, group: usize) -> bool {
        self.groups[group].inodes.is_empty()
    }

    /// Inodes of a group from `number` on.
    pub(super) fn from(&self, group: usize, number: u32) -> impl Iterator<Item = (u32, MappingId)> + '_ {
        self.groups[group].inodes.range(number..).map(|(&number, &mapping)| (number, mapping))
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
