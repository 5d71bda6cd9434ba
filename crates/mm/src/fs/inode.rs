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
//! A file is named by its [`MappingId`], which outlives its objects in memory. Left out:
//! directories, hard links, negative dentries, the delay of RCU. An evicted inode of XFS stays in memory
//! in the set of [`crate::fs::xfs::reclaimable`]; any other is freed at once. Neighbours: [`crate::reclaim::shrinker`] decides how much is scanned,
//! [`crate::slab::caches`] has the objects.

use std_alloc::vec;
use std_alloc::vec::Vec;

use units::{CpuId, NodeId};

use crate::base::event::Trace;
use crate::base::ids::{MappingId, MemcgId};
use crate::base::list::{Link, Links, List};
use crate::base::vmstat::VmEvent;
use crate::core::Core;
use crate::fs::ext4::extents::ExtentStatus;
use crate::fs::xfs::reclaimable::Reclaimable;
use crate::lru::lists::Lru;
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

/// A place on one of the lists.
#[derive(Debug, Clone, Copy)]
struct Place {
    link: Link<MappingId>,
    listed: bool,
    referenced: bool,
}

const UNLISTED: Place = Place { link: Link::UNUSED, listed: false, referenced: false };

impl Links<MappingId> for Vec<Place> {
    fn link(&self, id: MappingId) -> Link<MappingId> {
        self[id.0 as usize].link
    }

    fn link_mut(&mut self, id: MappingId) -> &mut Link<MappingId> {
        &mut self[id.0 as usize].link
    }
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
struct CachedFile {
    dentry: Option<Object>,
    objects: Option<InodeObjects>,
    users: u32,
    /// The inode itself is to be written, whatever its pages.
    dirty: bool,
    /// The inode is only in the reclaimable set of XFS.
    evicted: bool,
}

const NOT_CACHED: CachedFile =
    CachedFile { dentry: None, objects: None, users: 0, dirty: false, evicted: false };

/// All dentries and inodes in memory.
#[derive(Debug, Clone)]
pub struct Vfs {
    /// By mapping.
    files: Vec<CachedFile>,
    /// By [`VfsLru`] and mapping.
    places: [Vec<Place>; 2],
    /// By lruvec: for each cgroup one for each node.
    lists: Vec<[List<MappingId>; 2]>,
    nodes: usize,
    count: u64,
    /// What ext4 knows about the blocks of inodes; it goes with the inode.
    pub extents: ExtentStatus,
    /// Inodes of XFS that are evicted and not freed.
    pub(crate) reclaimable: Reclaimable,
}

impl Vfs {
    /// None yet, on a machine of so many nodes with a root cgroup.
    pub fn new(nodes: usize) -> Self {
        Self {
            files: Vec::new(),
            places: [Vec::new(), Vec::new()],
            lists: vec![[List::EMPTY; 2]; nodes],
            nodes,
            count: 0,
            extents: ExtentStatus::default(),
            reclaimable: Reclaimable::default(),
        }
    }

    /// Makes the lists of a new cgroup.
    pub(crate) fn add_cgroup(&mut self) {
        self.lists.resize(self.lists.len() + self.nodes, [List::EMPTY; 2]);
    }

    fn index(&self, memcg: MemcgId, node: NodeId) -> usize {
        (memcg.index() * self.nodes) + node.index()
    }

    /// Inodes in memory.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Whether the dentry and the inode of a file are in memory.
    pub fn is_cached(&self, mapping: MappingId) -> (bool, bool) {
        self.files
            .get(mapping.0 as usize)
            .map_or((false, false), |file| (file.dentry.is_some(), file.objects.is_some() && !file.evicted))
    }

    /// Objects on all lists of one kind.
    pub fn listed(&self, lru: VfsLru) -> u64 {
        self.lists.iter().map(|lists| u64::from(lists[lru as usize].len())).sum()
    }

    fn file(&mut self, mapping: MappingId) -> &mut CachedFile {
        let index = mapping.0 as usize;
        if self.files.len() <= index {
            self.files.resize(index + 1, NOT_CACHED);
            for places in &mut self.places {
                places.resize(index + 1, UNLISTED);
            }
        }
        &mut self.files[index]
    }

    fn place(&mut self, lru: VfsLru, mapping: MappingId) -> &mut Place {
        &mut self.places[lru as usize][mapping.0 as usize]
    }

    fn push_tail(&mut self, lru: VfsLru, list: usize, id: MappingId) {
        self.lists[list][lru as usize].push_back(&mut self.places[lru as usize], id);
        self.places[lru as usize][id.0 as usize].listed = true;
    }

    fn unlink(&mut self, lru: VfsLru, list: usize, id: MappingId) {
        self.lists[list][lru as usize].remove(&mut self.places[lru as usize], id);
        self.places[lru as usize][id.0 as usize] = UNLISTED;
    }

    fn rotate(&mut self, lru: VfsLru, list: usize, id: MappingId) {
        self.unlink(lru, list, id);
        self.push_tail(lru, list, id);
    }

    /// Objects that files in memory hold: for checks.
    pub(crate) fn objects(&self) -> impl Iterator<Item = Object> + '_ {
        self.files.iter().flat_map(|file| {
            let inode = file.objects.into_iter();
            file.dentry.into_iter().chain(inode.flat_map(|objects| {
                [Some(objects.inode), Some(objects.extra), objects.log_item].into_iter().flatten()
            }))
        })
    }

    /// Walks every list; returns what is wrong.
    pub(crate) fn check(&self) -> Result<(), &'static str> {
        for lru in VfsLru::ALL {
            let mut walked = 0;
            let places = &self.places[lru as usize];
            for lists in &self.lists {
                let list = lists[lru as usize];
                let (mut last, mut len) = (None, 0);
                for id in list.iter(places) {
                    if !places[id.0 as usize].listed || List::prev(places, id) != last {
                        return Err("the links of a list of dentries or inodes are broken");
                    }
                    let file = &self.files[id.0 as usize];
                    let present = match lru {
                        VfsLru::Dentry => file.dentry.is_some(),
                        VfsLru::Inode => file.objects.is_some() && !file.evicted,
                    };
                    if !present {
                        return Err("a freed dentry or inode is on a list");
                    }
                    len += 1;
                    last = Some(id);
                }
                if len != list.len() || list.last() != last {
                    return Err("a list of dentries or inodes has another length than it says");
                }
                walked += u64::from(len);
            }
            let listed = places.iter().filter(|place| place.listed).count();
            if walked != listed as u64 {
                return Err("a dentry or inode says that it is on a list and is on none");
            }
        }
        let inodes = self.files.iter().filter(|file| file.objects.is_some()).count();
        let mut evicted = 0;
        for (number, mapping) in self.reclaimable.all() {
            let file = &self.files[mapping.0 as usize];
            if !file.evicted || file.objects.is_none_or(|objects| objects.number != number) {
                return Err("the reclaimable set names an inode that is not evicted");
            }
            evicted += 1;
        }
        let said = self.files.iter().filter(|file| file.evicted).count() as u64;
        if evicted != said || evicted != self.reclaimable.count() {
            return Err("the count of evicted inodes is off");
        }
        if self.count == inodes as u64 { Ok(()) } else { Err("the count of inodes is off") }
    }
}

/// What a scan of one of the lists came to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[must_use]
pub struct Pruned {
    /// Dentries or inodes freed.
    pub freed: u64,
    /// Pages (and shadows, which count as pages) that were dropped with them.
    pub stolen: u64,
}

impl Vfs {
    /// The list that an object belongs on: by its cgroup and the node of its slab.
    fn list_of<T: Trace>(&self, core: &Core<T>, object: Object) -> usize {
        self.index(object.memcg, core.object_node(object))
    }

    /// Puts a new dentry on a file, without users yet.
    pub fn attach_dentry(&mut self, mapping: MappingId, dentry: Object) {
        let file = self.file(mapping);
        assert!(file.dentry.is_none(), "{mapping:?} has a dentry already");
        file.dentry = Some(dentry);
    }

    /// Puts a new inode on a file.
    pub fn attach_inode(&mut self, mapping: MappingId, objects: InodeObjects) {
        let file = self.file(mapping);
        assert!(file.objects.is_none(), "{mapping:?} has an inode already");
        file.objects = Some(objects);
        self.count += 1;
    }

    /// A task opens the file: its dentry has one more user. It stays on the LRU if it is there.
    pub fn dentry_get(&mut self, mapping: MappingId) {
        let file = self.file(mapping);
        assert!(file.dentry.is_some(), "only a file with a dentry can be opened");
        file.users += 1;
    }

    /// A file is closed (`dput`): without users the dentry goes on its LRU, or is referenced there.
    pub fn dentry_put<T: Trace>(&mut self, core: &Core<T>, mapping: MappingId) {
        let file = self.file(mapping);
        file.users -= 1;
        let (Some(dentry), 0) = (file.dentry, file.users) else { return };
        let place = self.place(VfsLru::Dentry, mapping);
        if place.listed {
            place.referenced = true;
        } else {
            let list = self.list_of(core, dentry);
            self.push_tail(VfsLru::Dentry, list, mapping);
        }
    }

    /// The inode is to be written, or was: its pages do not matter here.
    pub fn set_inode_dirty<T: Trace>(
        &mut self,
        core: &Core<T>,
        cache: &PageCache,
        mapping: MappingId,
        dirty: bool,
    ) {
        self.file(mapping).dirty = dirty;
        if !dirty {
            self.list_inode(core, cache, mapping);
        }
    }

    fn is_inode_busy<T: Trace>(&self, core: &Core<T>, cache: &PageCache, mapping: MappingId) -> bool {
        let file = &self.files[mapping.0 as usize];
        let pages_keep_it =
            core.rules().inode_lru == InodeLru::WithoutPages && !cache.trees().is_shrinkable(mapping);
        file.dentry.is_some() || file.dirty || cache.trees().dirty_pages(mapping) > 0 || pages_keep_it
    }

    /// Puts an inode on its LRU if nothing needs it (`inode_add_lru`).
    fn list_inode<T: Trace>(&mut self, core: &Core<T>, cache: &PageCache, mapping: MappingId) {
        let in_use = self.files.get(mapping.0 as usize).filter(|file| !file.evicted);
        let Some(objects) = in_use.and_then(|file| file.objects) else {
            return;
        };
        let listed = self.place(VfsLru::Inode, mapping).listed;
        if !listed && !self.is_inode_busy(core, cache, mapping) {
            let list = self.list_of(core, objects.inode);
            self.push_tail(VfsLru::Inode, list, mapping);
        }
    }

    /// The last page or node of a mapping went: from 5.16 on its inode may go on the LRU now.
    #[inline]
    pub(crate) fn lost_pages<T: Trace>(&mut self, core: &Core<T>, cache: &PageCache, mapping: MappingId) {
        if core.rules().inode_lru == InodeLru::WithoutPages {
            self.list_inode(core, cache, mapping);
        }
    }

    fn take_off_list<T: Trace>(&mut self, core: &Core<T>, lru: VfsLru, mapping: MappingId) {
        let file = &self.files[mapping.0 as usize];
        let object = match lru {
            VfsLru::Dentry => file.dentry,
            VfsLru::Inode => file.objects.map(|objects| objects.inode),
        };
        if self.places[lru as usize][mapping.0 as usize].listed
            && let Some(object) = object
        {
            let list = self.list_of(core, object);
            self.unlink(lru, list, mapping);
        }
    }

    fn free_dentry<T: Trace>(&mut self, core: &mut Core<T>, cpu: CpuId, mapping: MappingId) {
        self.take_off_list(core, VfsLru::Dentry, mapping);
        if let Some(dentry) = self.files[mapping.0 as usize].dentry.take() {
            core.free_object(cpu, dentry);
        }
    }

    /// An inode is evicted. One of XFS stays in memory until it is found clean
    /// ([`crate::fs::state::Fs::free_evicted`]).
    fn free_inode<T: Trace>(&mut self, core: &mut Core<T>, cpu: CpuId, mapping: MappingId) {
        self.take_off_list(core, VfsLru::Inode, mapping);
        let file = &mut self.files[mapping.0 as usize];
        match file.objects {
            Some(objects) if objects.inode.cache == Cache::XfsInode => {
                if !::core::mem::replace(&mut file.evicted, true) {
                    self.reclaimable.add(objects.number, mapping);
                }
            }
            _ => self.free_objects(core, cpu, mapping),
        }
    }

    /// An evicted inode is found in memory by an open, and in use again; false when it is not there
    /// (`xfs_iget_recycle`).
    pub(crate) fn recycle(&mut self, mapping: MappingId) -> bool {
        let Some(file) = self.files.get_mut(mapping.0 as usize).filter(|file| file.evicted) else {
            return false;
        };
        file.evicted = false;
        let number = file.objects.expect("an evicted inode is in memory").number;
        self.reclaimable.remove(number)
    }

    /// Frees an inode that was evicted.
    pub(super) fn free_evicted<T: Trace>(&mut self, core: &mut Core<T>, cpu: CpuId, mapping: MappingId) {
        assert!(self.recycle(mapping), "{mapping:?} is not evicted");
        self.free_objects(core, cpu, mapping);
    }

    fn free_objects<T: Trace>(&mut self, core: &mut Core<T>, cpu: CpuId, mapping: MappingId) {
        if let Some(objects) = self.files[mapping.0 as usize].objects.take() {
            self.count -= 1;
            self.extents.forget(core, cpu, mapping); // ext4
            core.free_object(cpu, objects.inode);
            core.free_object(cpu, objects.extra);
            if let Some(log_item) = objects.log_item {
                core.free_object(cpu, log_item);
            }
        }
    }

    /// Frees all that a file holds besides its pages: it was unlinked.
    pub(crate) fn forget<T: Trace>(&mut self, core: &mut Core<T>, cpu: CpuId, mapping: MappingId) {
        if self.files.len() <= mapping.0 as usize {
            return;
        }
        self.free_dentry(core, cpu, mapping);
        self.free_inode(core, cpu, mapping);
        let CachedFile { objects, evicted, .. } = self.files[mapping.0 as usize];
        self.files[mapping.0 as usize] = CachedFile { objects, evicted, ..NOT_CACHED };
    }

    /// Objects on one list.
    pub(crate) fn listed_on(&self, lru: VfsLru, memcg: MemcgId, node: NodeId) -> u64 {
        u64::from(self.lists[self.index(memcg, node)][lru as usize].len())
    }

    /// Looks at up to `count` dentries of a list, oldest first (`prune_dcache_sb`).
    pub(crate) fn prune_dentries<T: Trace>(
        &mut self,
        core: &mut Core<T>,
        cache: &PageCache,
        cpu: CpuId,
        memcg: MemcgId,
        node: NodeId,
        count: u64,
    ) -> Pruned {
        let list = self.index(memcg, node);
        let lru = VfsLru::Dentry;
        let mut pruned = Pruned::default();
        for _ in 0..count {
            let Some(mapping) = self.lists[list][lru as usize].first() else { break };
            if self.files[mapping.0 as usize].users > 0 {
                self.unlink(lru, list, mapping);
            } else if self.place(lru, mapping).referenced {
                self.rotate(lru, list, mapping);
            } else {
                self.free_dentry(core, cpu, mapping);
                self.put_inode(core, cache, mapping);
                pruned.freed += 1;
            }
        }
        pruned
    }

    /// The dentry is gone (`iput_final`).
    fn put_inode<T: Trace>(&mut self, core: &Core<T>, cache: &PageCache, mapping: MappingId) {
        let place = self.place(VfsLru::Inode, mapping);
        if place.listed {
            place.referenced = true;
        } else {
            self.list_inode(core, cache, mapping);
        }
    }

    /// Looks at up to `count` inodes of a list, oldest first (`prune_icache_sb`). An inode with
    /// pages (or from 5.16 on a shadow) first loses those, and goes at the next look.
    pub(crate) fn prune_inodes<T: Trace>(
        &mut self,
        core: &mut Core<T>,
        lru: &mut Lru,
        cache: &mut PageCache,
        cpu: CpuId,
        memcg: MemcgId,
        node: NodeId,
        count: u64,
        is_kswapd: bool,
    ) -> Pruned {
        let list = self.index(memcg, node);
        let kind = VfsLru::Inode;
        let mut pruned = Pruned::default();
        for _ in 0..count {
            let Some(mapping) = self.lists[list][kind as usize].first() else { break };
            if self.is_inode_busy(core, cache, mapping) {
                self.unlink(kind, list, mapping);
            } else if self.place(kind, mapping).referenced {
                self.rotate(kind, list, mapping);
            } else if holds_pages(core, cache, mapping) {
                pruned.stolen += steal_pages(core, lru, cache, cpu, mapping);
                if cache.trees().pages(mapping) > 0 {
                    self.rotate(kind, list, mapping);
                }
            } else {
                cache.clear(core, cpu, mapping);
                self.free_inode(core, cpu, mapping);
                pruned.freed += 1;
            }
        }
        let event = if is_kswapd { VmEvent::KswapdInodeSteal } else { VmEvent::PgInodeSteal };
        core.alloc.events.add(event, pruned.stolen);
        pruned
    }
}

fn holds_pages<T: Trace>(core: &Core<T>, cache: &PageCache, mapping: MappingId) -> bool {
    if core.rules().inode_lru == InodeLru::WithoutPages {
        !cache.trees().is_empty(mapping)
    } else {
        cache.trees().pages(mapping) > 0
    }
}

/// Drops the clean pages of an inode; a lone shadow counts as one (MECHANISMS-6X 6.6).
fn steal_pages<T: Trace>(
    core: &mut Core<T>,
    lru: &mut Lru,
    cache: &mut PageCache,
    cpu: CpuId,
    mapping: MappingId,
) -> u64 {
    if cache.trees().pages(mapping) == 0 {
        cache.clear(core, cpu, mapping);
        return 1;
    }
    cache.invalidate(core, lru, cpu, mapping, true)
}
