//! Dentries in memory: names below their directories, found by hash (`struct dentry`, `fs/dcache.c`;
//! MECHANISMS 9.4).
//!
//! ```text
//!   root <--parent-- "d00" <--parent-- "0017" <--parent-- "000000042"  in use, or on the LRU
//!                      |                 |          \       |
//!                    inode             inode         \    inode      negative: no inode, the name is
//!                                                     "000000043"    known not to exist
//! ```
//! A dentry is in use while a task holds it or while another lies below it; otherwise it is on the LRU of its
//! cgroup and node. A *negative* one has no inode. One whose name was removed while others hold it is
//! *unhashed*: nobody finds it, and it goes with its last user.
//!
//! Left out: hard links (an inode has one dentry at most), the delay of RCU. Neighbours:
//! [`super::inode`] for what they pin, [`super::prune`] for how they go.

use std_alloc::vec::Vec;

use crate::base::event::Trace;
use crate::base::hash::{IdTable, hash_name};
use crate::base::ids::{DentryId, MappingId, MemcgId};
use crate::base::list::{Link, Links, List, ListId};
use crate::core::Core;
use crate::fs::object_lru::{Listed, ObjectLru, Place};
use crate::slab::object::Object;

/// A name within a directory, as whoever looks names up makes numbers of them: equal ones are equal names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Name(pub u64);

/// One dentry: a cache line.
#[derive(Debug, Clone, Copy)]
pub(super) struct Dentry {
    /// None: the place in the table is free.
    pub(super) object: Option<Object>,
    name: Name,
    pub(super) parent: DentryId,
    /// [`ListId::NIL`] when it is negative.
    inode: MappingId,
    /// Tasks that hold it, and dentries below it.
    pub(super) users: u32,
    pub(super) hashed: bool,
    place: Place<DentryId>,
    /// Its neighbours among the negative dentries of its directory.
    sibling: Link<DentryId>,
    /// Negative dentries below it.
    negative: List<DentryId>,
}

impl Dentry {
    /// None when it is negative.
    #[inline]
    pub(super) fn inode(&self) -> Option<MappingId> {
        (self.inode != ListId::NIL).then_some(self.inode)
    }
}

const _: () = assert!(size_of::<Dentry>() == 64);

/// The table of dentries, by number.
#[derive(Debug, Clone, Default)]
pub(super) struct DentryTable(Vec<Dentry>);

impl Listed<DentryId> for DentryTable {
    fn place(&self, id: DentryId) -> &Place<DentryId> {
        &self.0[id.0 as usize].place
    }

    fn place_mut(&mut self, id: DentryId) -> &mut Place<DentryId> {
        &mut self.0[id.0 as usize].place
    }
}

/// The table as lists of siblings see it.
impl Links<DentryId> for DentryTable {
    fn link(&self, id: DentryId) -> Link<DentryId> {
        self.0[id.0 as usize].sibling
    }

    fn link_mut(&mut self, id: DentryId) -> &mut Link<DentryId> {
        &mut self.0[id.0 as usize].sibling
    }
}

/// All dentries in memory.
#[derive(Debug, Clone)]
pub(super) struct Dentries {
    table: DentryTable,
    free: Vec<DentryId>,
    by_name: IdTable,
    pub(super) lru: ObjectLru<DentryId>,
    negative: u64,
}

impl Dentries {
    pub(super) fn new(nodes: usize) -> Self {
        Self {
            table: DentryTable::default(),
            free: Vec::new(),
            by_name: IdTable::default(),
            lru: ObjectLru::new(nodes),
            negative: 0,
        }
    }

    /// Puts what is on the lists of a cgroup on those of its heir.
    pub(super) fn hand_over(&mut self, memcg: MemcgId, heir: MemcgId) {
        self.lru.hand_over(&mut self.table, memcg, heir);
    }

    #[inline]
    pub(super) fn get(&self, id: DentryId) -> &Dentry {
        &self.table.0[id.0 as usize]
    }

    #[inline]
    fn get_mut(&mut self, id: DentryId) -> &mut Dentry {
        &mut self.table.0[id.0 as usize]
    }

    pub(super) fn negative(&self) -> u64 {
        self.negative
    }

    /// Finds a name below a directory.
    #[inline]
    pub(super) fn find(&self, parent: DentryId, name: Name) -> Option<DentryId> {
        let is = |id: u32| {
            let dentry = &self.table.0[id as usize];
            dentry.name == name && dentry.parent == parent
        };
        self.by_name.find(hash_name(parent.0, name.0), is).map(DentryId)
    }

    /// Adds a dentry that has one user, negative without an inode; its directory is in use by it.
    pub(super) fn add(
        &mut self,
        parent: DentryId,
        name: Name,
        object: Object,
        inode: Option<MappingId>,
    ) -> DentryId {
        let dentry = Dentry {
            object: Some(object),
            name,
            parent,
            inode: inode.unwrap_or(ListId::NIL),
            users: 1,
            hashed: true,
            place: Place::NONE,
            sibling: Link::UNUSED,
            negative: List::EMPTY,
        };
        let id = match self.free.pop() {
            Some(id) => {
                *self.get_mut(id) = dentry;
                id
            }
            None => {
                self.table.0.push(dentry);
                DentryId(u32::try_from(self.table.0.len() - 1).expect("fewer dentries than bytes"))
            }
        };
        self.by_name.insert(hash_name(parent.0, name.0), id.0);
        self.hold(parent);
        if inode.is_none() {
            self.note_negative(id);
        }
        id
    }

    fn note_negative(&mut self, id: DentryId) {
        self.negative += 1;
        let parent = self.get(id).parent;
        if !parent.is_root() {
            let mut list = self.get(parent).negative;
            list.push_back(&mut self.table, id);
            self.get_mut(parent).negative = list;
        }
    }

    fn forget_negative(&mut self, id: DentryId) {
        self.negative -= 1;
        let parent = self.get(id).parent;
        if !parent.is_root() {
            let mut list = self.get(parent).negative;
            list.remove(&mut self.table, id);
            self.get_mut(parent).negative = list;
        }
    }

    /// Some negative dentry below a directory, from `after` on.
    pub(super) fn negative_below(&self, parent: DentryId, after: Option<DentryId>) -> Option<DentryId> {
        match after {
            Some(id) => List::next(&self.table, id),
            None => self.get(parent).negative.first(),
        }
    }

    /// A negative dentry gets an inode (`d_instantiate`).
    pub(super) fn bind(&mut self, id: DentryId, inode: MappingId) {
        assert!(self.get(id).inode().is_none(), "{id:?} has an inode already");
        self.forget_negative(id);
        self.get_mut(id).inode = inode;
    }

    /// A dentry loses its inode: negative from here on if it can be found (`dentry_unlink_inode`).
    pub(super) fn unbind(&mut self, id: DentryId) {
        self.get_mut(id).inode = ListId::NIL;
        self.note_negative(id);
    }

    /// Nobody finds it any more (`__d_drop`).
    pub(super) fn unhash(&mut self, id: DentryId) {
        let &Dentry { parent, name, hashed, .. } = self.get(id);
        if hashed {
            self.by_name.remove(hash_name(parent.0, name.0), id.0);
            self.get_mut(id).hashed = false;
        }
    }

    /// A dentry takes the name of a negative one, which nobody finds any more (`d_move`). Others use the directories
    /// of both.
    pub(super) fn rename(&mut self, id: DentryId, to: DentryId) {
        let &Dentry { parent, name, .. } = self.get(to);
        assert!(
            self.get(id).inode().is_some() && self.get(to).inode().is_none(),
            "{id:?} cannot become {to:?}"
        );
        self.unhash(id);
        self.unhash(to);
        self.hold(parent);
        let left = self.get(id).parent;
        let dentry = self.get_mut(id);
        (dentry.parent, dentry.name, dentry.hashed) = (parent, name, true);
        self.by_name.insert(hash_name(parent.0, name.0), id.0);
        assert!(self.release(left) > 0, "a task uses {left:?}");
    }

    /// One user more; it stays on its LRU if it is there.
    #[inline]
    pub(super) fn hold(&mut self, id: DentryId) {
        if !id.is_root() {
            self.get_mut(id).users += 1;
        }
    }

    /// One user less; how many are left. Nobody looks at a root for that.
    #[inline]
    pub(super) fn release(&mut self, id: DentryId) -> u32 {
        if id.is_root() {
            return 1;
        }
        let dentry = self.get_mut(id);
        dentry.users -= 1;
        dentry.users
    }

    fn object(&self, id: DentryId) -> Object {
        self.get(id).object.expect("a dentry in use")
    }

    /// Without users it goes on its LRU, or is referenced there (`retain_dentry`).
    pub(super) fn retain<T: Trace>(&mut self, core: &Core<T>, id: DentryId) {
        let place = self.table.place_mut(id);
        if place.listed {
            place.referenced = true;
        } else {
            let object = self.object(id);
            self.lru.add(core, &mut self.table, id, object);
        }
    }

    /// Takes it off its LRU.
    pub(super) fn unlist<T: Trace>(&mut self, core: &Core<T>, id: DentryId) {
        let object = self.object(id);
        self.lru.remove(core, &mut self.table, id, object);
    }

    pub(super) fn is_referenced(&self, id: DentryId) -> bool {
        self.table.place(id).referenced
    }

    pub(super) fn rotate<T: Trace>(&mut self, core: &Core<T>, id: DentryId) {
        let object = self.object(id);
        self.lru.rotate(core, &mut self.table, id, object);
    }

    /// Takes a dentry without users out of the table: what it was.
    pub(super) fn take<T: Trace>(&mut self, core: &Core<T>, id: DentryId) -> Dentry {
        self.unlist(core, id);
        self.unhash(id);
        let dentry = *self.get(id);
        assert!(dentry.users == 0, "{id:?} is freed in use");
        if dentry.inode().is_none() {
            self.forget_negative(id);
        }
        self.get_mut(id).object = None;
        self.free.push(id);
        dentry
    }

    /// Dentries in use: numbers and what they are.
    pub(super) fn all(&self) -> impl Iterator<Item = (DentryId, &Dentry)> {
        let numbered = (0..).map(DentryId).zip(&self.table.0);
        numbered.filter(|(_, dentry)| dentry.object.is_some())
    }

    /// Checks the lists, the numbers of users and who is found by name.
    pub(super) fn check(&self) -> Result<(), &'static str> {
        let walked = self.lru.check(&self.table, |id| self.get(id).object.is_some())?;
        if walked != self.all().filter(|&(id, _)| self.table.place(id).listed).count() as u64 {
            return Err("a dentry says that it is on a list and is on none");
        }
        let mut below = std_alloc::vec![0_u32; self.table.0.len()];
        let (mut hashed, mut negative) = (0, 0);
        for (id, dentry) in self.all() {
            if dentry.hashed && self.find(dentry.parent, dentry.name) != Some(id) {
                return Err("a dentry is not found by its name");
            }
            hashed += u32::from(dentry.hashed);
            negative += u64::from(dentry.inode().is_none());
            if !dentry.parent.is_root() {
                below[dentry.parent.0 as usize] += 1;
            }
        }
        if hashed != self.by_name.len() || negative != self.negative {
            return Err("the counts of dentries are off");
        }
        for (id, dentry) in self.all() {
            if dentry.users < below[id.0 as usize] {
                return Err("a directory has fewer users than dentries below it");
            }
            if dentry.users == 0 && !self.table.place(id).listed {
                return Err("a dentry without users is on no list");
            }
        }
        Ok(())
    }
}
