//! A second-chance list of objects for each cgroup and node (`struct list_lru`; MECHANISMS 9.3, 9.4).
//!
//! Oldest first. Whoever is used again stays where it is until a scan meets it. Next: [`super::dentry`] and
//! [`super::inode`], which have one each.

use std_alloc::vec;
use std_alloc::vec::Vec;

use units::NodeId;

use crate::base::event::Trace;
use crate::base::ids::MemcgId;
use crate::base::list::{Link, Links, List, ListId};
use crate::core::Core;
use crate::slab::object::Object;

/// The place of an entry on its list.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place<I> {
    link: Link<I>,
    pub(super) listed: bool,
    pub(super) referenced: bool,
}

impl<I: ListId> Place<I> {
    pub(super) const NONE: Self = Self { link: Link::UNUSED, listed: false, referenced: false };
}

/// A table whose entries have places on a list.
pub(super) trait Listed<I> {
    fn place(&self, id: I) -> &Place<I>;
    fn place_mut(&mut self, id: I) -> &mut Place<I>;
}

/// A table as lists of links see it.
struct Linked<'a, L: ?Sized>(&'a mut L);

impl<I: ListId, L: Listed<I> + ?Sized> Links<I> for Linked<'_, L> {
    fn link(&self, id: I) -> Link<I> {
        self.0.place(id).link
    }

    fn link_mut(&mut self, id: I) -> &mut Link<I> {
        &mut self.0.place_mut(id).link
    }
}

/// The lists of one kind of objects.
#[derive(Debug, Clone)]
pub(super) struct ObjectLru<I> {
    /// For each cgroup one for each node.
    lists: Vec<List<I>>,
    nodes: usize,
}

impl<I: ListId + core::fmt::Debug> ObjectLru<I> {
    pub(super) fn new(nodes: usize) -> Self {
        Self { lists: vec![List::EMPTY; nodes], nodes }
    }

    pub(super) fn add_cgroup(&mut self) {
        self.lists.resize(self.lists.len() + self.nodes, List::EMPTY);
    }

    /// Puts all entries of a cgroup behind those of its heir.
    pub(super) fn hand_over(&mut self, table: &mut (impl Listed<I> + ?Sized), memcg: MemcgId, heir: MemcgId) {
        for node in 0..self.nodes {
            let [from, to] = [memcg, heir].map(|memcg| (memcg.index() * self.nodes) + node);
            while let Some(id) = self.lists[from].pop_front(&mut Linked(table)) {
                self.lists[to].push_back(&mut Linked(table), id);
            }
        }
    }

    fn index(&self, memcg: MemcgId, node: NodeId) -> usize {
        (memcg.index() * self.nodes) + node.index()
    }

    /// The list that an object belongs on: by its cgroup and the node of its slab.
    fn list_of<T: Trace>(&self, core: &Core<T>, object: Object) -> usize {
        self.index(core.cgroups.heir(object.memcg), core.object_node(object))
    }

    /// The oldest entry of a list.
    pub(super) fn first(&self, memcg: MemcgId, node: NodeId) -> Option<I> {
        self.lists[self.index(memcg, node)].first()
    }

    #[inline]
    pub(super) fn len(&self, memcg: MemcgId, node: NodeId) -> u64 {
        u64::from(self.lists[self.index(memcg, node)].len())
    }

    pub(super) fn total(&self) -> u64 {
        self.lists.iter().map(|list| u64::from(list.len())).sum()
    }

    /// Puts an entry, which is on none, on the list of its object, last.
    pub(super) fn add<T: Trace>(
        &mut self,
        core: &Core<T>,
        table: &mut (impl Listed<I> + ?Sized),
        id: I,
        object: Object,
    ) {
        let list = self.list_of(core, object);
        self.lists[list].push_back(&mut Linked(table), id);
        table.place_mut(id).listed = true;
    }

    /// Takes an entry off the list of its object if it is there.
    pub(super) fn remove<T: Trace>(
        &mut self,
        core: &Core<T>,
        table: &mut (impl Listed<I> + ?Sized),
        id: I,
        object: Object,
    ) {
        if table.place(id).listed {
            let list = self.list_of(core, object);
            self.lists[list].remove(&mut Linked(table), id);
            *table.place_mut(id) = Place::NONE;
        }
    }

    /// Gives an entry its second chance: last, and no longer referenced.
    pub(super) fn rotate<T: Trace>(
        &mut self,
        core: &Core<T>,
        table: &mut (impl Listed<I> + ?Sized),
        id: I,
        object: Object,
    ) {
        self.remove(core, table, id, object);
        self.add(core, table, id, object);
    }

    /// Walks every list; returns what is wrong, or how many entries there are on them. `is_alive`: whether
    /// an entry is in use at all.
    pub(super) fn check(
        &self,
        table: &(impl Listed<I> + ?Sized),
        is_alive: impl Fn(I) -> bool,
    ) -> Result<u64, &'static str> {
        let mut walked = 0;
        for list in &self.lists {
            let (mut next, mut last, mut len) = (list.first(), None, 0);
            while let Some(id) = next {
                if !is_alive(id) {
                    return Err("a freed dentry or inode is on a list");
                }
                let Place { link, listed, .. } = *table.place(id);
                if !listed || link.prev() != last {
                    return Err("the links of a list of dentries or inodes are broken");
                }
                (next, last, len) = (link.next(), Some(id), len + 1);
            }
            if len != list.len() || list.last() != last {
                return Err("a list of dentries or inodes has another length than it says");
            }
            walked += u64::from(len);
        }
        Ok(walked)
    }
}
