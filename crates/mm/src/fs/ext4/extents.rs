//! The extent status tree of ext4: what is known about the blocks of each inode in memory, and its shrinker
//! (`ext4_es_scan`; MECHANISMS-6X 6.3, 8.2).
//!
//! ```text
//!   first write to an empty file: [ block 0: delayed ][ the rest: a hole ]      two objects of 40 bytes
//!   written back:                 [ block 0: written ][ the rest: a hole ]
//! ```
//! Two objects a file: measured on guests of 5.10, 6.1, 6.12 and 7.2, by what reclaimable slab grows by.
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

#[cfg(test)]
mod tests {
    use units::{Order, Pages};

    use super::*;
    use crate::alloc::flags::AllocFlags;
    use crate::base::event::NoTrace;
    use crate::base::gfp::Gfp;
    use crate::base::layout::MemoryLayout;
    use crate::base::sysctl::Sysctls;
    use crate::slab::object::ObjectAlloc;
    use crate::version::presets::Version;

    const CPU: CpuId = CpuId(0);

    struct Scene {
        core: Core<NoTrace>,
        extents: ExtentStatus,
    }

    impl Scene {
        fn new() -> Self {
            let layout = MemoryLayout::flat(Pages(8192), 1);
            let kernel = Version::parse("linux-6.1").unwrap();
            let core = Core::boot(&layout, kernel, Sysctls::default(), NoTrace).unwrap();
            Self { core, extents: ExtentStatus::default() }
        }

        fn object(&mut self) -> Object {
            loop {
                match self.core.alloc_object(CPU, Cache::ExtentStatus, MemcgId::ROOT) {
                    ObjectAlloc::Done(object) => return object,
                    ObjectAlloc::NeedsSlab => {
                        let gfp = Gfp::KERNEL | Gfp::RECLAIMABLE_BIT;
                        let block = self.core.alloc.alloc(CPU, gfp, Order(0), AllocFlags::WMARK_MIN);
                        let page = block.page.expect("memory is free");
                        self.core.grow_slab(CPU, Cache::ExtentStatus, MemcgId::ROOT, page);
                    }
                    ObjectAlloc::NeedsCharge { .. } => panic!("nobody pays for extents"),
                }
            }
        }

        fn write(&mut self, file: u32) {
            let objects = [self.object(), self.object()];
            self.extents.note_first_write(MappingId(file), objects);
        }

        fn pages(&self) -> u64 {
            self.core.slabs.blocks(Cache::ExtentStatus).count() as u64
        }

        fn check(&self) {
            self.extents.check().unwrap();
            assert_eq!(self.extents.objects(), self.core.slabs.objects(Cache::ExtentStatus));
        }
    }

    /// ```text
    ///   file      1            2            3
    ///   written   d h          d h          d h       the holes can go
    ///   mapped    w h          d h          d h       and one block
    ///   4 of them go:  all of 1, the holes of 2 and 3
    /// ```
    #[test]
    fn a_block_without_a_place_on_the_disk_stays_known() {
        let mut scene = Scene::new();
        (1..=3).for_each(|file| scene.write(file));
        assert_eq!(scene.extents.shrinkable(), 3);
        scene.extents.note_mapped(MappingId(1));
        scene.extents.note_mapped(MappingId(1)); // Written again: nothing is delayed.
        scene.extents.note_mapped(MappingId(9)); // Nothing is known of it.
        assert_eq!(scene.extents.shrinkable(), 4);
        let shrunk = scene.extents.shrink(&mut scene.core, CPU, 99);
        assert_eq!((shrunk, scene.extents.objects(), scene.extents.shrinkable()), (4, 2, 0));
        assert!(scene.extents.is_unknown(MappingId(1)) && !scene.extents.is_unknown(MappingId(2)));
        scene.check();
        scene.extents.note_mapped(MappingId(2));
        assert_eq!(scene.extents.shrinkable(), 1, "it can go now, though its hole went before");
        scene.extents.forget(&mut scene.core, CPU, MappingId(2));
        scene.extents.forget(&mut scene.core, CPU, MappingId(3));
        scene.check();
        assert_eq!(scene.extents.objects(), 0);
    }

    #[test]
    fn a_batch_takes_the_inodes_that_are_known_longest_and_so_whole_slab_pages() {
        let mut scene = Scene::new();
        for file in 0..1020 {
            scene.write(file);
            scene.extents.note_mapped(MappingId(file));
        }
        assert_eq!((scene.extents.shrinkable(), scene.pages()), (2040, 20), "102 to a page");
        for _ in 0..8 {
            let freed = scene.extents.shrink(&mut scene.core, CPU, 128);
            assert_eq!(freed, 128);
            scene.check();
        }
        assert!((0..512).all(|file| scene.extents.is_unknown(MappingId(file))));
        assert!((512..1020).all(|file| !scene.extents.is_unknown(MappingId(file))));
        assert!(scene.pages() < 20, "{} pages are left", scene.pages());
        scene.write(3); // It grows anew: known last.
        let freed = scene.extents.shrink(&mut scene.core, CPU, 1016);
        assert_eq!((freed, scene.extents.shrinkable()), (1016, 1), "only the hole of file 3");
    }
}
