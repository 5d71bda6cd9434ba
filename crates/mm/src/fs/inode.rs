//! Dentries and inodes in memory: who keeps them, and in which order they go (MECHANISMS 9.4,
//! MECHANISMS-6X 6.6, 7.4).
//!
//! ```text
//!   open file --> dentry in use --last close--> dentry LRU --scanned--> freed
//!                                                                         |
//!                              inode pinned by its dentry <---------------+
//!                                        |  clean, and (5.16+) without pages
//!                                        v
//!                                   inode LRU --scanned--> pages dropped, then evicted
//! ```
//! Both LRUs exist for each cgroup and node and are second-chance lists, oldest first. Objects are
//! taken off a list lazily: one that is in use again stays until a scan meets it.
//!
//! An inode in memory is named by the [`MappingId`] of its pages, from when it is brought into memory until
//! its objects are freed: then it is among the *released* ones ([`Vfs::take_released`]), and its number is
//! used again. What remains of it on the disk is the driver's matter. An evicted inode of XFS stays in memory in
//! the set of [`crate::fs::xfs::reclaimable`]; any other is freed at once. Left out: hard links, the delay of
//! RCU. Neighbours: [`super::dentry`], [`super::prune`] for scans of the lists, [`crate::reclaim::shrinker`] for
//! how much is scanned, [`crate::slab::caches`] for the objects.

use std_alloc::vec::Vec;

use units::{CpuId, NodeId};

use crate::base::event::Trace;
use crate::base::ids::{DentryId, MappingId, MemcgId};
use crate::base::list::ListId;
use crate::core::Core;
use crate::fs::dentry::{Dentries, Name};
use crate::fs::ext4::extents::ExtentStatus;
use crate::fs::object_lru::{Listed, ObjectLru, Place};
use crate::fs::xfs::reclaimable::Reclaimable;
use crate::pages::cache::PageCache;
use crate::slab::object::Object;
use crate::version::geometry::Cache;
use crate::version::rules::InodeLru;

/// The two second-chance lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VfsLru {
    /// Dentries without users.
    Dentry,
    /// Inodes without dentries.
    Inode,
}

impl VfsLru {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Dentry, Self::Inode];
}

/// Objects that an inode consists of.
#[derive(Debug, Clone, Copy)]
pub struct InodeObjects {
    /// The inode's number on the disk.
    pub number: u32,
    /// The inode itself.
    pub inode: Object,
    /// What the filesystem and the security module hang on it.
    pub extra: Object,
    /// The log item of an inode that was changed (XFS).
    pub log_item: Option<Object>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct CachedInode {
    pub(super) objects: Option<InodeObjects>,
    /// [`ListId::NIL`] without one.
    dentry: DentryId,
    place: Place<MappingId>,
    /// The inode itself is to be written, whatever its pages.
    dirty: bool,
    /// It has no name any more, and goes with its last user.
    unlinked: bool,
    /// It is only in the reclaimable set of XFS.
    evicted: bool,
}

const NOT_CACHED: CachedInode = CachedInode {
    objects: None,
    dentry: ListId::NIL,
    place: Place::NONE,
    dirty: false,
    unlinked: false,
    evicted: false,
};

const _: () = assert!(size_of::<CachedInode>() <= 48);

/// Inodes by mapping.
#[derive(Debug, Clone, Default)]
pub(super) struct InodeTable(pub(super) Vec<CachedInode>);

impl Listed<MappingId> for InodeTable {
    fn place(&self, id: MappingId) -> &Place<MappingId> {
        &self.0[id.0 as usize].place
    }

    fn place_mut(&mut self, id: MappingId) -> &mut Place<MappingId> {
        &mut self.0[id.0 as usize].place
    }
}

/// All dentries and inodes in memory.
#[derive(Debug, Clone)]
pub struct Vfs {
    pub(super) dentries: Dentries,
    inodes: InodeTable,
    lru: ObjectLru<MappingId>,
    count: u64,
    /// Inodes of XFS that are evicted and not freed.
    pub(crate) reclaimable: Reclaimable,
    /// What ext4 knows about the blocks of inodes; it goes with the inode.
    pub extents: ExtentStatus,
    /// Inodes that left memory since this was asked last.
    released: Vec<MappingId>,
}

impl Vfs {
    /// None yet, on a machine of so many nodes with a root cgroup.
    pub fn new(nodes: usize) -> Self {
        Self {
            dentries: Dentries::new(nodes),
            inodes: InodeTable::default(),
            lru: ObjectLru::new(nodes),
            count: 0,
            reclaimable: Reclaimable::default(),
            extents: ExtentStatus::default(),
            released: Vec::new(),
        }
    }

    /// Makes the lists of a new cgroup.
    pub(crate) fn add_cgroup(&mut self) {
        self.dentries.lru.add_cgroup();
        self.lru.add_cgroup();
    }

    /// Puts what is on lists of a cgroup on those of its heir.
    pub(crate) fn hand_over(&mut self, memcg: MemcgId, heir: MemcgId) {
        self.dentries.hand_over(memcg, heir);
        self.lru.hand_over(&mut self.inodes, memcg, heir);
    }

    /// Inodes in memory.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Negative dentries in memory.
    pub fn negative_dentries(&self) -> u64 {
        self.dentries.negative()
    }

    #[inline]
    fn cached(&self, mapping: MappingId) -> &CachedInode {
        self.inodes.0.get(mapping.0 as usize).unwrap_or(&NOT_CACHED)
    }

    fn cached_mut(&mut self, mapping: MappingId) -> &mut CachedInode {
        let index = mapping.0 as usize;
        if self.inodes.0.len() <= index {
            self.inodes.0.resize(index + 1, NOT_CACHED);
        }
        &mut self.inodes.0[index]
    }

    /// Whether an inode is in memory, and not evicted.
    #[inline]
    pub fn has_inode(&self, mapping: MappingId) -> bool {
        let cached = self.cached(mapping);
        cached.objects.is_some() && !cached.evicted
    }

    /// Whether objects of an inode are in memory, if only because it was evicted and not freed.
    #[inline]
    pub fn has_objects(&self, mapping: MappingId) -> bool {
        self.cached(mapping).objects.is_some()
    }

    /// The dentry of an inode, if that is in memory.
    #[inline]
    pub fn dentry_of(&self, mapping: MappingId) -> Option<DentryId> {
        let dentry = self.cached(mapping).dentry;
        (dentry != ListId::NIL).then_some(dentry)
    }

    /// Finds a name below a directory; the outer none: nothing in memory says whether there is such a
    /// file (`d_lookup`).
    #[inline]
    pub fn find_dentry(&self, parent: DentryId, name: Name) -> Option<DentryId> {
        self.dentries.find(parent, name)
    }

    /// The inode of a dentry; none when it is negative.
    #[inline]
    pub fn inode_of(&self, dentry: DentryId) -> Option<MappingId> {
        self.dentries.get(dentry).inode()
    }

    /// Objects on all lists of one kind.
    pub fn listed(&self, lru: VfsLru) -> u64 {
        match lru {
            VfsLru::Dentry => self.dentries.lru.total(),
            VfsLru::Inode => self.lru.total(),
        }
    }

    /// Objects on one list.
    #[inline]
    pub(crate) fn listed_on(&self, lru: VfsLru, memcg: MemcgId, node: NodeId) -> u64 {
        match lru {
            VfsLru::Dentry => self.dentries.lru.len(memcg, node),
            VfsLru::Inode => self.lru.len(memcg, node),
        }
    }

    /// The inode that is looked at next on a list.
    pub(super) fn oldest_inode(&self, memcg: MemcgId, node: NodeId) -> Option<MappingId> {
        self.lru.first(memcg, node)
    }

    /// Whether inodes left memory of which nobody has taken note.
    #[inline]
    pub fn has_released(&self) -> bool {
        !self.released.is_empty()
    }

    /// The next inode that left memory: its pages are gone, and its number is free.
    pub(crate) fn take_released(&mut self) -> Option<MappingId> {
        self.released.pop()
    }

    /// Objects that dentries and inodes in memory hold: for checks.
    pub(crate) fn objects(&self) -> impl Iterator<Item = Object> + '_ {
        let dentries = self.dentries.all().filter_map(|(_, dentry)| dentry.object);
        let inodes = self.inodes.0.iter().filter_map(|cached| cached.objects);
        dentries.chain(inodes.flat_map(|objects| {
            [Some(objects.inode), Some(objects.extra), objects.log_item].into_iter().flatten()
        }))
    }

    /// Checks lists and counts; returns what is wrong.
    pub(crate) fn check(&self) -> Result<(), &'static str> {
        self.dentries.check()?;
        let walked = self.lru.check(&self.inodes, |id| self.has_inode(id))?;
        if walked != self.inodes.0.iter().filter(|cached| cached.place.listed).count() as u64 {
            return Err("an inode says that it is on a list and is on none");
        }
        for (id, dentry) in self.dentries.all() {
            let Some(inode) = dentry.inode() else { continue };
            if self.dentry_of(inode) != Some(id) || !self.has_inode(inode) {
                return Err("a dentry and its inode do not know each other");
            }
        }
        let bound = self.inodes.0.iter().filter(|cached| cached.dentry != ListId::NIL).count();
        if bound != self.dentries.all().filter(|(_, dentry)| dentry.inode().is_some()).count() {
            return Err("an inode has a dentry that is another's");
        }
        self.check_evicted()?;
        let inodes = self.inodes.0.iter().filter(|cached| cached.objects.is_some()).count();
        if self.count == inodes as u64 { Ok(()) } else { Err("the count of inodes is off") }
    }

    fn check_evicted(&self) -> Result<(), &'static str> {
        let mut evicted = 0;
        for (number, mapping) in self.reclaimable.all() {
            let cached = self.cached(mapping);
            if !cached.evicted || cached.objects.is_none_or(|objects| objects.number != number) {
                return Err("the reclaimable set names an inode that is not evicted");
            }
            evicted += 1;
        }
        let said = self.inodes.0.iter().filter(|cached| cached.evicted).count() as u64;
        let agree = evicted == said && evicted == self.reclaimable.count();
        if agree { Ok(()) } else { Err("the count of evicted inodes is off") }
    }
}

impl Vfs {
    /// Adds a dentry that was looked up, with one user: that of an inode in memory, or a negative one
    /// (`d_add`).
    pub fn add_dentry(
        &mut self,
        parent: DentryId,
        name: Name,
        object: Object,
        inode: Option<MappingId>,
    ) -> DentryId {
        let id = self.dentries.add(parent, name, object, inode);
        if let Some(inode) = inode {
            self.attach(id, inode);
        }
        id
    }

    /// A file is created under a name that was known not to exist (`d_instantiate`).
    pub fn bind_dentry(&mut self, dentry: DentryId, inode: MappingId) {
        self.dentries.bind(dentry, inode);
        self.attach(dentry, inode);
    }

    fn attach(&mut self, dentry: DentryId, inode: MappingId) {
        let cached = self.cached_mut(inode);
        assert!(cached.objects.is_some(), "a dentry has an inode in memory");
        assert!(cached.dentry == ListId::NIL, "{inode:?} has a dentry already");
        cached.dentry = dentry;
    }

    /// Puts the objects of an inode into memory.
    pub fn attach_inode(&mut self, mapping: MappingId, objects: InodeObjects) {
        let cached = self.cached_mut(mapping);
        assert!(cached.objects.is_none(), "{mapping:?} has an inode already");
        *cached = CachedInode { objects: Some(objects), ..NOT_CACHED };
        self.count += 1;
    }

    /// A dentry has one more user (`dget`). It stays on the LRU if it is there.
    #[inline]
    pub fn hold_dentry(&mut self, dentry: DentryId) {
        self.dentries.hold(dentry);
    }

    /// A dentry has one user less (`dput`): without users it goes on its LRU, or is referenced there. One
    /// whose name was removed is freed.
    pub(crate) fn put_dentry<T: Trace>(
        &mut self,
        core: &mut Core<T>,
        cache: &PageCache,
        cpu: CpuId,
        dentry: DentryId,
    ) {
        let mut next = dentry;
        while self.dentries.release(next) == 0 {
            if self.dentries.get(next).hashed {
                self.dentries.retain(core, next);
                return;
            }
            next = self.free_dentry(core, cache, cpu, next);
        }
    }

    /// The name of a dentry was removed; its caller holds it (`d_delete`). Without other users it is negative
    /// from here on, otherwise nobody finds it any more.
    pub(crate) fn delete_dentry(&mut self, dentry: DentryId) {
        let Some(inode) = self.inode_of(dentry) else { return };
        self.cached_mut(inode).unlinked = true;
        if self.dentries.get(dentry).users == 1 {
            self.dentries.unbind(dentry);
            self.cached_mut(inode).dentry = ListId::NIL;
        } else {
            self.dentries.unhash(dentry);
        }
    }

    /// A dentry takes the name of a negative one, which nobody finds any more (`d_move`). Their caller holds both,
    /// and the directories of both.
    pub(crate) fn move_dentry(&mut self, dentry: DentryId, to: DentryId) {
        self.dentries.rename(dentry, to);
    }

    /// Nobody finds a negative dentry any more.
    pub(crate) fn forget_negative(&mut self, parent: DentryId, name: Name) {
        if let Some(dentry) = self.find_dentry(parent, name)
            && self.inode_of(dentry).is_none()
        {
            self.dentries.unhash(dentry);
        }
    }

    /// Frees the negative dentries below a directory that nobody uses (`shrink_dcache_parent`); returns how
    /// many there were.
    pub(crate) fn free_negative_below<T: Trace>(
        &mut self,
        core: &mut Core<T>,
        cache: &PageCache,
        cpu: CpuId,
        parent: DentryId,
    ) -> u64 {
        let (mut freed, mut kept) = (0, None);
        while let Some(id) = self.dentries.negative_below(parent, kept) {
            if self.dentries.get(id).users > 0 {
                kept = Some(id);
                continue;
            }
            let _ = self.free_dentry(core, cache, cpu, id);
            let left = self.dentries.release(parent);
            assert!(left > 0, "its caller holds the directory");
            freed += 1;
        }
        freed
    }

    /// Frees a dentry without users (`__dentry_kill`); its directory, which is still in use by it, is
    /// returned.
    pub(super) fn free_dentry<T: Trace>(
        &mut self,
        core: &mut Core<T>,
        cache: &PageCache,
        cpu: CpuId,
        id: DentryId,
    ) -> DentryId {
        let dentry = self.dentries.take(core, id);
        if let Some(object) = dentry.object {
            core.free_object(cpu, object);
        }
        if let Some(inode) = dentry.inode() {
            self.cached_mut(inode).dentry = ListId::NIL;
            self.put_inode(core, cache, inode);
        }
        dentry.parent
    }

    /// The inode is to be written, or was: its pages do not matter here.
    pub fn set_inode_dirty<T: Trace>(
        &mut self,
        core: &Core<T>,
        cache: &PageCache,
        mapping: MappingId,
        dirty: bool,
    ) {
        if !self.has_inode(mapping) {
            return; // It left memory meanwhile.
        }
        self.cached_mut(mapping).dirty = dirty;
        if !dirty {
            self.list_inode(core, cache, mapping, core.rules().inode_lru == InodeLru::WithPages);
        }
    }

    pub(super) fn is_inode_busy<T: Trace>(
        &self,
        core: &Core<T>,
        cache: &PageCache,
        mapping: MappingId,
    ) -> bool {
        let cached = self.cached(mapping);
        let pages_keep_it =
            core.rules().inode_lru == InodeLru::WithoutPages && !cache.trees().is_shrinkable(mapping);
        cached.dentry != ListId::NIL
            || cached.dirty
            || cached.unlinked
            || cache.trees().dirty_pages(mapping) > 0
            || pages_keep_it
    }

    /// Puts an inode on its LRU if nothing needs it (`inode_add_lru`); one that is there is referenced if the
    /// caller says so.
    fn list_inode<T: Trace>(
        &mut self,
        core: &Core<T>,
        cache: &PageCache,
        mapping: MappingId,
        references: bool,
    ) {
        let cached = self.cached(mapping);
        let Some(objects) = cached.objects.filter(|_| !cached.evicted) else { return };
        let listed = cached.place.listed;
        if (listed && !references) || self.is_inode_busy(core, cache, mapping) {
            return;
        }
        if listed {
            self.inodes.place_mut(mapping).referenced = true;
        } else {
            self.lru.add(core, &mut self.inodes, mapping, objects.inode);
        }
    }

    /// The dentry is gone, or a task that found the inode without one has no use for it (`iput_final`).
    pub(crate) fn put_inode<T: Trace>(&mut self, core: &Core<T>, cache: &PageCache, mapping: MappingId) {
        self.list_inode(core, cache, mapping, true);
    }

    /// The last page or node of a mapping went: from 5.16 on its inode may go on the LRU now.
    #[inline]
    pub(crate) fn lost_pages<T: Trace>(&mut self, core: &Core<T>, cache: &PageCache, mapping: MappingId) {
        if core.rules().inode_lru == InodeLru::WithoutPages {
            self.list_inode(core, cache, mapping, false);
        }
    }

    pub(super) fn is_inode_referenced(&self, mapping: MappingId) -> bool {
        self.cached(mapping).place.referenced
    }

    fn object(&self, mapping: MappingId) -> Object {
        self.cached(mapping).objects.expect("an inode in memory").inode
    }

    pub(super) fn unlist_inode<T: Trace>(&mut self, core: &Core<T>, mapping: MappingId) {
        let object = self.object(mapping);
        self.lru.remove(core, &mut self.inodes, mapping, object);
    }

    pub(super) fn rotate_inode<T: Trace>(&mut self, core: &Core<T>, mapping: MappingId) {
        let object = self.object(mapping);
        self.lru.rotate(core, &mut self.inodes, mapping, object);
    }

    /// An inode without dentry and pages is evicted. One of XFS stays in memory until it is found clean
    /// ([`crate::fs::state::Fs::free_evicted`]).
    pub(super) fn free_inode<T: Trace>(&mut self, core: &mut Core<T>, cpu: CpuId, mapping: MappingId) {
        self.unlist_inode(core, mapping);
        let cached = self.cached_mut(mapping);
        assert!(cached.dentry == ListId::NIL, "{mapping:?} is evicted with a dentry");
        let objects = cached.objects.expect("an inode in memory");
        *cached = CachedInode { objects: Some(objects), evicted: true, ..NOT_CACHED };
        if objects.inode.cache == Cache::XfsInode {
            self.reclaimable.add(objects.number, mapping);
        } else {
            self.free_objects(core, cpu, mapping);
        }
    }

    /// An evicted inode is found in memory by an open, and in use again; false when it is not there
    /// (`xfs_iget_recycle`).
    pub(crate) fn recycle(&mut self, mapping: MappingId) -> bool {
        let cached = self.cached(mapping);
        let Some(objects) = cached.objects.filter(|_| cached.evicted) else { return false };
        self.cached_mut(mapping).evicted = false;
        self.reclaimable.remove(objects.number)
    }

    /// Frees an inode that was evicted.
    pub(super) fn free_evicted<T: Trace>(&mut self, core: &mut Core<T>, cpu: CpuId, mapping: MappingId) {
        assert!(self.recycle(mapping), "{mapping:?} is not evicted");
        self.free_objects(core, cpu, mapping);
    }

    /// Nothing is left of an inode: it is released.
    fn free_objects<T: Trace>(&mut self, core: &mut Core<T>, cpu: CpuId, mapping: MappingId) {
        let cached = ::core::mem::replace(self.cached_mut(mapping), NOT_CACHED);
        let objects = cached.objects.expect("an inode in memory");
        self.count -= 1;
        self.extents.forget(core, cpu, mapping, 0); // ext4
        core.free_object(cpu, objects.inode);
        core.free_object(cpu, objects.extra);
        if let Some(log_item) = objects.log_item {
            core.free_object(cpu, log_item);
        }
        self.released.push(mapping);
    }

    /// Frees the inode of a file that was unlinked and has lost its pages. False: there was none in memory.
    pub(crate) fn forget<T: Trace>(&mut self, core: &mut Core<T>, cpu: CpuId, mapping: MappingId) -> bool {
        if !self.has_inode(mapping) {
            return self.has_objects(mapping);
        }
        if let Some(dentry) = self.dentry_of(mapping) {
            // Somebody holds the dentry for its name alone.
            self.dentries.unhash(dentry);
            self.dentries.unbind(dentry);
            self.cached_mut(mapping).dentry = ListId::NIL;
        }
        self.free_inode(core, cpu, mapping);
        true
    }
}
