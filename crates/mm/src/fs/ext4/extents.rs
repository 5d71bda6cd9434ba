//! The extent status tree of ext4: what is known about the blocks of each inode in memory, and its shrinker
//! (`ext4_es_scan`; MECHANISMS-6X 6.3, 8.2).
//!
//! ```text
//!   first write to an empty file: [ block 0: delayed ][ the rest: a hole ]      two objects of 40 bytes
//!   written back:                 [ block 0: written ][ the rest: a hole ]
//! ```
//! Measured on guests of 5.10, 6.1, 6.12 and 7.2: what reclaimable slab grows by, less the caches that
//! `/proc/slabinfo` names, is 94 to 90 bytes for each file created, and stops growing at 65,000 objects, where a
//! pass at priority 10 has a batch of 128.
//!
//! The shrinker takes inodes in turn, the longest known first, and frees whatever is not delayed. It belongs to no
//! cgroup, and needs no `__GFP_FS`. Left out: extents of files that were laid out, files in more than one
//! piece (an inode has at most these two), the second chance of extents that were looked up.
//! Neighbours: [`crate::reclaim::plan`] for how much is scanned, [`crate::fs::inode`] for when an inode goes.

use std_alloc::vec::Vec;

use units::CpuId;

use crate::base::event::Trace;
use crate::base::ids::{MappingId, MemcgId};
use crate::base::list::{Link, Links, List};
use crate::core::Core;
use crate::slab::object::Object;
use crate::slab::table::SlabId;
use crate::version::geometry::Cache;

const NONE: u32 = u32::MAX;

/// What is known about the blocks of one inode: the slabs of its objects.
#[derive(Debug, Clone, Copy)]
struct Status {
    link: Link<MappingId>,
    hole: u32,
    block: u32,
    /// Block 0 has no place on the disk yet.
    delayed: bool,
}

impl Status {
    const UNKNOWN: Self = Self { link: Link::UNUSED, hole: NONE, block: NONE, delayed: false };

    /// Objects that the shrinker may free.
    fn shrinkable(self) -> u32 {
        u32::from(self.hole != NONE) + u32::from(self.block != NONE && !self.delayed)
    }
}

/// A table of [`Status`] by mapping.
#[derive(Debug, Clone, Default)]
struct Table(Vec<Status>);

impl Links<MappingId> for Table {
    fn link(&self, id: MappingId) -> Link<MappingId> {
        self.0[id.0 as usize].link
    }

    fn link_mut(&mut self, id: MappingId) -> &mut Link<MappingId> {
        &mut self.0[id.0 as usize].link
    }
}

/// Extent status of all inodes in memory.
#[derive(Debug, Clone, Default)]
pub struct ExtentStatus {
    table: Table,
    /// Inodes with something to free, the next to be scanned first.
    list: List<MappingId>,
    /// Objects that can be freed.
    shrinkable: u64,
}

/// The object at a place of the cache; it is charged to nobody.
const fn object(slab: u32) -> Object {
    Object { cache: Cache::ExtentStatus, slab: SlabId(slab), memcg: MemcgId::ROOT }
}

impl ExtentStatus {
    /// Objects that the shrinker can free: all but delayed ones (`ext4_es_count`).
    pub fn shrinkable(&self) -> u64 {
        self.shrinkable
    }

    /// Whether nothing is known about the blocks of a file.
    pub fn is_unknown(&self, mapping: MappingId) -> bool {
        self.table.0.get(mapping.0 as usize).is_none_or(|status| status.hole == NONE && status.block == NONE)
    }

    /// An empty file is written to for the first time: block 0 is delayed, the rest a hole.
    ///
    /// # Panics
    /// When something is known about the file, or the objects are of another cache.
    pub fn note_first_write(&mut self, mapping: MappingId, objects: [Object; 2]) {
        assert!(self.is_unknown(mapping), "{mapping:?} has extents already");
        assert!(objects.iter().all(|&given| given == object(given.slab.0)), "extents, charged to nobody");
        let index = mapping.0 as usize;
        if self.table.0.len() <= index {
            self.table.0.resize(index + 1, Status::UNKNOWN);
        }
        let [hole, block] = objects.map(|object| object.slab.0);
        self.table.0[index] = Status { link: Link::UNUSED, hole, block, delayed: true };
        self.list.push_back(&mut self.table, mapping);
        self.shrinkable += 1;
    }

    /// The delayed block of a file has a place on the disk.
    #[inline]
    pub fn note_mapped(&mut self, mapping: MappingId) {
        let Some(status) = self.table.0.get_mut(mapping.0 as usize).filter(|status| status.delayed) else {
            return;
        };
        status.delayed = false;
        if status.hole == NONE {
            self.list.push_back(&mut self.table, mapping);
        }
        self.shrinkable += 1;
    }

    /// The inode of a file leaves memory.
    #[inline]
    pub(crate) fn forget<T: Trace>(&mut self, core: &mut Core<T>, cpu: CpuId, mapping: MappingId) {
        if self.is_unknown(mapping) {
            return;
        }
        let status = self.table.0[mapping.0 as usize];
        if status.shrinkable() > 0 {
            self.list.remove(&mut self.table, mapping);
            self.shrinkable -= u64::from(status.shrinkable());
        }
        self.table.0[mapping.0 as usize] = Status::UNKNOWN;
        for slab in [status.hole, status.block].into_iter().filter(|&slab| slab != NONE) {
            core.free_object(cpu, object(slab));
        }
    }

    /// Frees up to `count` objects; returns how many.
    pub(crate) fn shrink<T: Trace>(&mut self, core: &mut Core<T>, cpu: CpuId, count: u64) -> u64 {
        let mut freed = 0;
        while freed < count
            && let Some(mapping) = self.list.first()
        {
            let status = &mut self.table.0[mapping.0 as usize];
            let slab = if status.hole == NONE { &mut status.block } else { &mut status.hole };
            let taken = core::mem::replace(slab, NONE);
            if status.shrinkable() == 0 {
                self.list.remove(&mut self.table, mapping);
            }
            core.free_object(cpu, object(taken));
            freed += 1;
        }
        self.shrinkable -= freed;
        freed
    }

    /// Objects in use: for checks.
    pub(crate) fn objects(&self) -> u64 {
        let used = |slab: u32| u64::from(slab != NONE);
        self.table.0.iter().map(|status| used(status.hole) + used(status.block)).sum()
    }

    /// Walks the list; returns what is wrong.
    pub(crate) fn check(&self) -> Result<(), &'static str> {
        let table = &self.table.0;
        let listed: u64 =
            self.list.iter(&self.table).map(|id| u64::from(table[id.0 as usize].shrinkable())).sum();
        let all: u64 = table.iter().map(|status| u64::from(status.shrinkable())).sum();
        let empty = self.list.iter(&self.table).any(|id| table[id.0 as usize].shrinkable() == 0);
        if empty || (listed, all) != (self.shrinkable, self.shrinkable) {
            return Err("the list of extents and their count disagree");
        }
        Ok(())
    }
}
