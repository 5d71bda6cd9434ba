//! The extent status tree of ext4: what is known about the blocks of each inode in memory, and its shrinker
//! (`ext4_es_scan`; MECHANISMS-6X 6.3, 8.2).
//!
//! ```text
//!   first write to an empty file: [ 0: delayed ][ the rest: a hole ]                 two objects of 40 bytes
//!   written back:                 [ 0: written ][ a hole ]
//!   written to again:             [ 0: written ][ 1: delayed ][ a hole ]
//!   written back, elsewhere:      [ 0: written ][ 1: written ][ a hole ]             else one for both
//! ```
//! Of 2,000 files that got a block each in ten rounds, written back after each, guests of 5.10 had 8,031 objects after
//! three rounds, 12,022 after five and 22,032 at the end.
//!
//! The shrinker takes inodes in turn, and of each all extents. It frees what is neither delayed nor was looked up since
//! its last visit. It belongs to no cgroup, and needs no `__GFP_FS`. Left out: parts of a written extent (what is known
//! of it is known whole), where in an inode the last visit ended, extents of directories. Neighbours:
//! [`crate::reclaim::plan`] for how much is scanned, [`crate::fs::inode`] for when an inode goes.

use std_alloc::collections::BTreeMap;
use std_alloc::vec::Vec;

use units::CpuId;

use crate::base::event::Trace;
use crate::base::ids::{MappingId, MemcgId};
use crate::base::list::{Link, Links, List};
use crate::core::Core;
use crate::slab::object::Object;
use crate::slab::table::SlabId;
use crate::version::geometry::Cache;

/// An object: the slab that it is in, and whether it was looked up since the shrinker saw it last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Known(u32);

impl Known {
    const NONE: Self = Self(u32::MAX);
    /// No slab has so high a number.
    const SEEN: u32 = 1 << 31;

    const fn is_none(self) -> bool {
        self.0 == Self::NONE.0
    }

    const fn object(self) -> Object {
        object(self.0 & !Self::SEEN)
    }

    fn count(self) -> u32 {
        u32::from(!self.is_none())
    }

    /// It is looked for; whether it is there.
    fn look_up(&mut self) -> bool {
        let is_known = !self.is_none();
        self.0 |= Self::SEEN;
        is_known
    }

    /// The shrinker comes by.
    fn visit(&mut self) -> Visit {
        let was = *self;
        if was.is_none() {
            return Visit::Nothing;
        }
        if (was.0 & Self::SEEN) != 0 {
            self.0 &= !Self::SEEN;
            return Visit::Kept;
        }
        *self = Self::NONE;
        Visit::Freed(was.object())
    }
}

enum Visit {
    Nothing,
    Kept,
    Freed(Object),
}

/// The object in a slab; it is charged to nobody.
const fn object(slab: u32) -> Object {
    Object { cache: Cache::ExtentStatus, slab: SlabId(slab), memcg: MemcgId::ROOT }
}

fn known(given: Object) -> Known {
    assert!(given == object(given.slab.0), "extents, charged to nobody");
    Known(given.slab.0)
}

/// A written extent behind the first one, by its first page.
type Piece = (u32, Known);

/// Those of the inodes that have such.
type Behind = BTreeMap<MappingId, Vec<Piece>>;

/// What is known about the blocks of one inode.
#[derive(Debug, Clone, Copy)]
struct Status {
    link: Link<MappingId>,
    /// What lies behind all that was written.
    hole: Known,
    /// What has no place on the disk yet.
    delayed: Known,
    /// The written extent that begins at page 0; those behind it are in [`ExtentStatus::behind`].
    first: Known,
    /// Of those behind it.
    behind: u32,
}

impl Status {
    const UNKNOWN: Self =
        Self { link: Link::UNUSED, hole: Known::NONE, delayed: Known::NONE, first: Known::NONE, behind: 0 };

    /// Objects that the shrinker may free.
    fn shrinkable(self) -> u32 {
        self.hole.count() + self.first.count() + self.behind
    }

    /// Changes the extents behind the first one, if there are such.
    fn change_behind(
        &mut self,
        mapping: MappingId,
        behind: &mut Behind,
        change: impl FnOnce(&mut Vec<Piece>),
    ) {
        if self.behind == 0 {
            return;
        }
        let pieces = behind.get_mut(&mapping).expect("they are counted");
        change(pieces);
        self.behind = u32::try_from(pieces.len()).expect("fewer than pages");
        if pieces.is_empty() {
            behind.remove(&mapping);
        }
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
    behind: Behind,
    /// Inodes with something to free, the next to be scanned first.
    list: List<MappingId>,
    /// Objects that can be freed.
    shrinkable: u64,
}

/// What an object says of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// There is nothing behind all that was written.
    Hole,
    /// What lies behind the last block is to get blocks.
    Delayed,
    /// The extent that begins at page `first` has blocks.
    Written {
        /// The page.
        first: u32,
    },
}

impl ExtentStatus {
    /// Objects that the shrinker can free: all but delayed ones (`ext4_es_count`).
    pub fn shrinkable(&self) -> u64 {
        self.shrinkable
    }

    fn status(&self, mapping: MappingId) -> Status {
        self.table.0.get(mapping.0 as usize).copied().unwrap_or(Status::UNKNOWN)
    }

    /// Changes what is known of an inode, and puts it on the list or takes it off.
    fn change<R>(&mut self, mapping: MappingId, change: impl FnOnce(&mut Status, &mut Behind) -> R) -> R {
        let index = mapping.0 as usize;
        if self.table.0.len() <= index {
            self.table.0.resize(index + 1, Status::UNKNOWN);
        }
        let before = self.table.0[index].shrinkable();
        let done = change(&mut self.table.0[index], &mut self.behind);
        let after = self.table.0[index].shrinkable();
        self.shrinkable = self.shrinkable + u64::from(after) - u64::from(before);
        match (before, after) {
            (0, 1..) => self.list.push_back(&mut self.table, mapping),
            (1.., 0) => self.list.remove(&mut self.table, mapping),
            _ => {}
        }
        done
    }

    /// A file is about to be written to behind its last block: what is not known for that. The hole is looked up.
    #[inline]
    pub fn lacking(&mut self, mapping: MappingId) -> [Option<Part>; 2] {
        let Some(status) = self.table.0.get_mut(mapping.0 as usize) else {
            return [Some(Part::Hole), Some(Part::Delayed)];
        };
        let (has_hole, has_delayed) = (status.hole.look_up(), !status.delayed.is_none());
        [(!has_hole).then_some(Part::Hole), (!has_delayed).then_some(Part::Delayed)]
    }

    /// What was delayed has a place on the disk, in the extent that begins at page `first`.
    #[inline]
    pub(crate) fn note_mapped<T: Trace>(
        &mut self,
        core: &mut Core<T>,
        cpu: CpuId,
        mapping: MappingId,
        first: u32,
    ) {
        if self.status(mapping).delayed.is_none() {
            return;
        }
        let object =
            self.change(mapping, |status, _| core::mem::replace(&mut status.delayed, Known::NONE).object());
        if let Some(joined) = self.put(mapping, Part::Written { first }, object) {
            core.free_object(cpu, joined);
        }
    }

    /// Whether the written extent that begins at page `first` is known; it is looked up.
    #[inline]
    pub fn look_up(&mut self, mapping: MappingId, first: u32) -> bool {
        let Some(status) = self.table.0.get_mut(mapping.0 as usize) else { return false };
        if first == 0 {
            return status.first.look_up();
        }
        if status.behind == 0 {
            return false;
        }
        let pieces = self.behind.get_mut(&mapping).expect("they are counted");
        pieces.binary_search_by_key(&first, |(page, _)| *page).is_ok_and(|place| pieces[place].1.look_up())
    }

    /// Whether it is known, without a lookup.
    pub fn is_known(&self, mapping: MappingId, first: u32) -> bool {
        if first == 0 {
            return !self.status(mapping).first.is_none();
        }
        let pieces = self.behind.get(&mapping);
        pieces.is_some_and(|pieces| pieces.binary_search_by_key(&first, |(page, _)| *page).is_ok())
    }

    /// A part of a file is known from now on. Returns the object where it was already.
    ///
    /// # Panics
    /// When the object is of another cache.
    pub fn put(&mut self, mapping: MappingId, part: Part, object: Object) -> Option<Object> {
        self.change(mapping, |status, behind| {
            let place = match part {
                Part::Hole => &mut status.hole,
                Part::Delayed => &mut status.delayed,
                Part::Written { first: 0 } => &mut status.first,
                Part::Written { first } => {
                    let pieces = behind.entry(mapping).or_default();
                    let place = pieces.binary_search_by_key(&first, |(page, _)| *page);
                    if let Err(place) = place {
                        pieces.insert(place, (first, Known::NONE));
                        status.behind += 1;
                    }
                    &mut pieces[place.unwrap_or_else(|place| place)].1
                }
            };
            if !place.is_none() {
                return Some(object);
            }
            *place = known(object);
            None
        })
    }

    /// The blocks of a file from page `first` on are gone; from 0 on, or without the file in memory: all.
    pub(crate) fn forget<T: Trace>(
        &mut self,
        core: &mut Core<T>,
        cpu: CpuId,
        mapping: MappingId,
        first: u32,
    ) {
        let status = self.status(mapping);
        if status.shrinkable() == 0 && status.delayed.is_none() {
            return;
        }
        let mut gone = Vec::new();
        self.change(mapping, |status, behind| {
            gone.extend(
                [&mut status.hole, &mut status.delayed].map(|place| core::mem::replace(place, Known::NONE)),
            );
            if first == 0 {
                gone.push(core::mem::replace(&mut status.first, Known::NONE));
            }
            status.change_behind(mapping, behind, |pieces| {
                let from = pieces.partition_point(|&(page, _)| page < first);
                gone.extend(pieces.drain(from..).map(|(_, known)| known));
            });
        });
        for known in gone.into_iter().filter(|known| !known.is_none()) {
            core.free_object(cpu, known.object());
        }
    }

    /// Looks at up to `count` objects; returns how many it freed.
    pub(crate) fn shrink<T: Trace>(&mut self, core: &mut Core<T>, cpu: CpuId, count: u64) -> u64 {
        let (mut looked, mut freed) = (0, Vec::new());
        let last = self.list.last();
        while let Some(mapping) = self.list.first().filter(|_| looked < count) {
            self.list.remove(&mut self.table, mapping);
            self.list.push_back(&mut self.table, mapping);
            self.change(mapping, |status, behind| {
                looked += u64::from(status.delayed.count());
                let mut visit = |known: &mut Known| {
                    let visit = if looked < count { known.visit() } else { Visit::Nothing };
                    looked += u64::from(!matches!(visit, Visit::Nothing));
                    if let Visit::Freed(object) = visit {
                        freed.push(object);
                    }
                };
                visit(&mut status.first);
                status.change_behind(mapping, behind, |pieces| {
                    pieces.iter_mut().for_each(|(_, known)| visit(known));
                    pieces.retain(|(_, known)| !known.is_none());
                });
                visit(&mut status.hole);
            });
            if Some(mapping) == last {
                break;
            }
        }
        for &object in &freed {
            core.free_object(cpu, object);
        }
        freed.len() as u64
    }

    /// Objects in use: for checks.
    pub(crate) fn objects(&self) -> u64 {
        self.table.0.iter().map(|status| u64::from(status.shrinkable() + status.delayed.count())).sum()
    }

    /// Walks the list; returns what is wrong.
    pub(crate) fn check(&self) -> Result<(), &'static str> {
        let table = &self.table.0;
        let listed: u64 =
            self.list.iter(&self.table).map(|id| u64::from(table[id.0 as usize].shrinkable())).sum();
        let all: u64 = table.iter().map(|status| u64::from(status.shrinkable())).sum();
        let empty = self.list.iter(&self.table).any(|id| table[id.0 as usize].shrinkable() == 0);
        let behind: usize = self.behind.values().map(Vec::len).sum();
        let counted: u64 = table.iter().map(|status| u64::from(status.behind)).sum();
        if empty || (listed, all) != (self.shrinkable, self.shrinkable) || behind as u64 != counted {
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
            for part in self.extents.lacking(MappingId(file)).into_iter().flatten() {
                let object = self.object();
                assert_eq!(self.extents.put(MappingId(file), part, object), None);
            }
        }

        fn write_back(&mut self, file: u32, first: u32) {
            self.extents.note_mapped(&mut self.core, CPU, MappingId(file), first);
        }

        fn shrink(&mut self, count: u64) -> u64 {
            let freed = self.extents.shrink(&mut self.core, CPU, count);
            self.check();
            freed
        }

        fn pages(&self) -> u64 {
            self.core.slabs.blocks(Cache::ExtentStatus).count() as u64
        }

        /// Objects, and those that can go.
        fn counts(&self) -> (u64, u64) {
            (self.extents.objects(), self.extents.shrinkable())
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
        assert_eq!(scene.counts(), (6, 3));
        scene.write_back(1, 0);
        scene.write_back(1, 0); // Written again: nothing is delayed.
        scene.write_back(9, 0); // Nothing is known of it.
        assert_eq!(scene.counts(), (6, 4));
        assert_eq!((scene.shrink(99), scene.counts()), (4, (2, 0)));
        scene.write_back(2, 0);
        assert_eq!(scene.counts(), (2, 1), "it can go now, though its hole went before");
        for file in [2, 3] {
            scene.extents.forget(&mut scene.core, CPU, MappingId(file), 0);
        }
        scene.check();
        assert_eq!(scene.counts(), (0, 0));
    }

    /// ```text
    ///   page            0     1     2     3
    ///   written back    w     d     h              elsewhere on the disk: an extent of its own
    ///                   w     w     d     h        right behind page 1: it joins that one
    ///                   w     w w         h
    ///   cut behind 1    w
    /// ```
    #[test]
    fn what_lies_right_behind_an_extent_on_the_disk_joins_it() {
        let mut scene = Scene::new();
        scene.write(1);
        scene.write_back(1, 0);
        scene.write(1);
        assert_eq!(scene.counts(), (3, 2));
        scene.write_back(1, 1);
        scene.write(1);
        assert_eq!(scene.counts(), (4, 3));
        scene.write_back(1, 1);
        assert_eq!(scene.counts(), (3, 3));
        scene.extents.forget(&mut scene.core, CPU, MappingId(1), 1);
        assert_eq!(scene.counts(), (1, 1));
        scene.check();
    }

    /// `EXTENT_STATUS_REFERENCED`.
    #[test]
    fn what_was_looked_up_is_kept_once() {
        let mut scene = Scene::new();
        for first in [0, 8, 16] {
            scene.write(1);
            scene.write_back(1, first);
        }
        let file = MappingId(1);
        assert_eq!([0, 8, 4].map(|first| scene.extents.look_up(file, first)), [true, true, false]);
        assert_eq!((scene.shrink(4), scene.counts()), (1, (3, 3)), "page 16; the hole was written to");
        assert_eq!((scene.shrink(2), scene.counts()), (2, (1, 1)), "pages 0 and 8");
        let object = scene.object();
        assert_eq!(scene.extents.put(file, Part::Written { first: 8 }, object), None, "it is read again");
        assert!(scene.extents.look_up(file, 8));
        scene.check();
    }

    #[test]
    fn a_batch_takes_the_inodes_that_are_known_longest_and_so_whole_slab_pages() {
        let mut scene = Scene::new();
        for file in 0..1020 {
            scene.write(file);
            scene.write_back(file, 0);
        }
        assert_eq!((scene.extents.shrinkable(), scene.pages()), (2040, 20), "102 to a page");
        for _ in 0..8 {
            assert_eq!(scene.shrink(128), 128);
        }
        let is_known = |scene: &Scene, file| scene.extents.status(MappingId(file)).shrinkable() > 0;
        assert!((0..512).all(|file| !is_known(&scene, file)));
        assert!((512..1020).all(|file| is_known(&scene, file)));
        assert!(scene.pages() < 20, "{} pages are left", scene.pages());
        scene.write(3); // It grows anew: known last.
        assert_eq!((scene.shrink(1016), scene.extents.shrinkable()), (1016, 1), "only the hole of file 3");
    }
}
