//! The trees themselves: leaves of 64 slots below inner nodes, and the lists of leaves that hold
//! only shadows. Plain data; who pays for a node is told from outside ([`Object`]).
//!
//! A folio of 64 pages and more, or the shadow of one, is an entry of an inner node: the leaf below it is no node,
//! and stands here only so that each page has a slot. It becomes one when a smaller folio comes to its place. Left
//! out: that a node goes when a folio as large as that comes to the place of smaller ones, and that inner nodes with
//! nothing but shadows can be freed.
//!
//! Growth and what counts as a node follow the kernel's xarray: a tree first grows at the root,
//! then down to the leaf, and never shrinks in height until it is empty.

use core::ops::Range;

use std_alloc::boxed::Box;
use std_alloc::vec::Vec;

use units::Pfn;

use crate::base::ids::{MappingId, MemcgId};
use crate::base::list::{Link, Links, List};
use crate::lru::workingset::Shadow;
use crate::slab::object::Object;

/// What a page index of a file holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Slot {
    /// Nothing, and no memory of anything.
    Empty,
    /// A page: the head of its folio.
    Page(Pfn),
    /// A page was evicted from here.
    Shadow(Shadow),
}

impl Slot {
    /// Whether it holds no page.
    #[inline]
    pub const fn is_vacant(self) -> bool {
        !matches!(self, Self::Page(_))
    }
}

pub(crate) const SLOTS: usize = 64;
pub(super) const NO_NODE: u32 = u32::MAX;

pub(super) const SHADOW_BIT: u64 = 1 << 63;
pub(super) const EMPTY: u64 = 0;

#[inline]
pub(super) fn encode_page(pfn: Pfn) -> u64 {
    u64::from(pfn.0) + 1
}

#[inline]
pub(super) fn decode(entry: u64) -> Slot {
    if entry == EMPTY {
        Slot::Empty
    } else if (entry & SHADOW_BIT) != 0 {
        Slot::Shadow(Shadow::unpack(entry & !SHADOW_BIT))
    } else {
        Slot::Page(Pfn(u32::try_from(entry - 1).expect("a page entry is a frame number plus one")))
    }
}

#[inline]
pub(super) fn encode_shadow(shadow: Shadow) -> u64 {
    shadow.pack() | SHADOW_BIT
}

/// Leaves a shadow where the page of this index was, among the slots of its leaf.
#[inline]
pub(crate) fn put_shadow(slots: &mut [u64], index: u32, shadow: Shadow) {
    slots[(index & 63) as usize] = encode_shadow(shadow);
}

#[derive(Debug, Clone)]
pub(super) struct Leaf {
    pub(super) slots: [u64; SLOTS],
    /// Bit n: the page in slot n is dirty.
    pub(super) dirty: u64,
    pub(super) used: u8,
    pub(super) shadows: u8,
    pub(super) mapping: u32,
    pub(super) number: u32,
    /// None: it is a slot of the node above it.
    pub(super) object: Option<Object>,
    /// Its place on the shadow list.
    link: Link<u32>,
    pub(super) listed: bool,
}

impl Leaf {
    fn memcg(&self) -> MemcgId {
        self.object.expect("a leaf on a list is a node").memcg
    }
}

impl Links<u32> for Vec<Leaf> {
    fn link(&self, id: u32) -> Link<u32> {
        self[id as usize].link
    }

    fn link_mut(&mut self, id: u32) -> &mut Link<u32> {
        &mut self[id as usize].link
    }
}

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Inner {
    children: u8,
    object: Option<Object>,
}

/// One file's tree. There are as many as inodes in memory, most of them with one page at most.
#[derive(Debug, Clone, Default)]
pub(super) struct Mapping {
    /// The entry of page 0 while the tree is no more than that.
    pub(super) head: u64,
    pub(super) pages: u32,
    /// Pages to be written.
    dirty: u32,
    /// Pages being written.
    writeback: u64,
    nodes: Option<Box<Nodes>>,
    pub(super) live: bool,
    head_dirty: bool,
    /// Leaves of shadows are on no list: nothing frees them.
    keeps_shadows: bool,
}

/// The nodes of a tree. Most are of small files, and have one leaf.
#[derive(Debug, Clone, Default)]
struct Nodes {
    leaves: Vec<u32>,
    /// A bit for each of the first leaves: it has dirty pages.
    dirty: u64,
    /// The bits of further ones.
    more_dirty: Vec<u64>,
    /// By level, as far as there are inner nodes.
    inner: Vec<Vec<Inner>>,
    /// Inner levels in use: 0 for at most one leaf.
    height: u8,
    /// Nodes of all levels, leaves included; at least 1.
    count: u32,
}

impl Nodes {
    /// Tells whether a leaf has dirty pages.
    #[inline]
    fn tag(&mut self, leaf: u32, dirty: bool) {
        let bit = 1 << (leaf & 63);
        let word = match (leaf >> 6) as usize {
            0 => &mut self.dirty,
            word => {
                if self.more_dirty.len() < word {
                    self.more_dirty.resize(word, 0);
                }
                &mut self.more_dirty[word - 1]
            }
        };
        *word = if dirty { *word | bit } else { *word & !bit };
    }

    /// The first leaf from `from` on that has dirty pages.
    fn next_dirty(&self, from: u32) -> Option<u32> {
        let first = (from >> 6) as usize;
        let mut mask = u64::MAX << (from & 63);
        let words = core::iter::once(&self.dirty).chain(&self.more_dirty);
        for (at, &word) in words.enumerate().skip(first) {
            if (word & mask) != 0 {
                let leaves = u32::try_from(at << 6).expect("page indices have 32 bits");
                return Some(leaves + (word & mask).trailing_zeros());
            }
            mask = u64::MAX;
        }
        None
    }
}

const _: () = assert!(size_of::<Mapping>() <= 40 && size_of::<Nodes>() <= 88);

impl Mapping {
    /// An empty one.
    pub(super) fn new() -> Self {
        Self { live: true, ..Self::default() }
    }

    /// A leaf, by its place.
    #[inline]
    pub(super) fn leaf(&self, number: u32) -> Option<u32> {
        let leaf = *self.nodes.as_ref()?.leaves.get(number as usize)?;
        (leaf != NO_NODE).then_some(leaf)
    }

    /// Every leaf and where there is none, in the order of their pages.
    pub(super) fn leaves(&self) -> &[u32] {
        self.nodes.as_ref().map_or(&[], |nodes| &nodes.leaves)
    }

    /// Whether the entry of a folio, of 64 pages or more if it is `large`, lacks its slot.
    fn lacks(&self, leaves: &[Leaf], number: u32, large: bool) -> bool {
        self.leaf(number).is_none_or(|leaf| !large && leaves[leaf as usize].object.is_none())
    }

    fn node_count(&self) -> u32 {
        self.nodes.as_ref().map_or(0, |nodes| nodes.count)
    }
}

/// All trees of the machine.
#[derive(Debug, Clone, Default)]
pub struct Mappings {
    pub(super) list: Vec<Mapping>,
    pub(super) free: Vec<u32>,
    pub(super) leaves: Vec<Leaf>,
    pub(super) free_leaves: Vec<u32>,
    /// By cgroup: leaves that hold only shadows, the oldest at the head.
    pub(super) shadow_lists: Vec<List<u32>>,
    pub(super) total_pages: u64,
}

impl Mappings {
    /// Looks a page index up.
    #[inline]
    pub fn find(&self, mapping: MappingId, index: u32) -> Slot {
        decode(self.entry(mapping, index))
    }

    #[inline]
    fn entry(&self, mapping: MappingId, index: u32) -> u64 {
        let tree = &self.list[mapping.0 as usize];
        match tree.leaf(index >> 6) {
            Some(leaf) => self.leaves[leaf as usize].slots[(index & 63) as usize],
            None if index == 0 => tree.head,
            None => EMPTY,
        }
    }

    /// Hands out the entries of some places of a file, leaf by leaf, with the first place of each, and without those
    /// that have no leaf; until `each` says that it has enough.
    #[inline]
    pub(super) fn each_stretch(
        &self,
        mapping: MappingId,
        pages: Range<u32>,
        mut each: impl FnMut(u32, &[u64]) -> bool,
    ) {
        let tree = &self.list[mapping.0 as usize];
        let mut index = pages.start;
        while index < pages.end {
            let first = (index & 63) as usize;
            let count = (SLOTS - first).min((pages.end - index) as usize);
            let goes_on = match tree.leaf(index >> 6) {
                Some(leaf) => each(index, &self.leaves[leaf as usize].slots[first..first + count]),
                None if index == 0 => each(0, core::slice::from_ref(&tree.head)),
                None => true,
            };
            if !goes_on {
                return;
            }
            index += u32::try_from(count).expect("64 at most");
        }
    }

    /// Says whether leaves of shadows of a mapping are listed, so that they can be freed.
    pub(super) fn list_shadows(&mut self, mapping: MappingId, listed: bool) {
        self.list[mapping.0 as usize].keeps_shadows = !listed;
    }

    /// Pages of `mapping` in memory.
    pub fn pages(&self, mapping: MappingId) -> u64 {
        u64::from(self.list[mapping.0 as usize].pages)
    }

    /// Pages of all mappings in memory: `nr_file_pages`.
    pub fn total_pages(&self) -> u64 {
        self.total_pages
    }

    /// Pages of `mapping` that are to be written.
    pub fn dirty_pages(&self, mapping: MappingId) -> u64 {
        u64::from(self.list[mapping.0 as usize].dirty)
    }

    /// Pages of `mapping` that are being written.
    pub fn writeback_pages(&self, mapping: MappingId) -> u64 {
        self.list[mapping.0 as usize].writeback
    }

    pub(crate) fn count_writeback(&mut self, mapping: MappingId) -> &mut u64 {
        &mut self.list[mapping.0 as usize].writeback
    }

    /// Tags the page at `index` dirty or clean.
    pub(crate) fn tag_dirty(&mut self, mapping: MappingId, index: u32, dirty: bool) {
        let tree = &mut self.list[mapping.0 as usize];
        let bit = 1 << (index & 63);
        let was = match tree.leaf(index >> 6) {
            Some(leaf) => {
                let tags = &mut self.leaves[leaf as usize].dirty;
                let before = *tags;
                *tags = if dirty { before | bit } else { before & !bit };
                let any = *tags != 0;
                if any != (before != 0) {
                    tree.nodes.as_mut().expect("it has a leaf").tag(index >> 6, any);
                }
                (before & bit) != 0
            }
            None => core::mem::replace(&mut tree.head_dirty, dirty),
        };
        tree.dirty -= u32::from(was);
        tree.dirty += u32::from(dirty);
    }

    /// Whether the page at `index` is tagged dirty.
    #[inline]
    pub(super) fn is_dirty(&self, mapping: MappingId, index: u32) -> bool {
        let tree = &self.list[mapping.0 as usize];
        match tree.leaf(index >> 6) {
            Some(leaf) => (self.leaves[leaf as usize].dirty & (1 << (index & 63))) != 0,
            None => index == 0 && tree.head_dirty,
        }
    }

    /// The first index from `from` on whose page is tagged dirty.
    pub fn next_dirty(&self, mapping: MappingId, from: u32) -> Option<u32> {
        let tree = &self.list[mapping.0 as usize];
        if tree.dirty == 0 {
            return None;
        }
        if tree.head_dirty {
            return (from == 0).then_some(0);
        }
        let (mut number, mut mask) = (from >> 6, u64::MAX << (from & 63));
        loop {
            number = tree.nodes.as_ref()?.next_dirty(number)?;
            let leaf = tree.leaf(number).expect("a leaf with dirty pages");
            if number > from >> 6 {
                mask = u64::MAX;
            }
            let tags = self.leaves[leaf as usize].dirty & mask;
            if tags != 0 {
                return Some((number << 6) + tags.trailing_zeros());
            }
            number += 1;
        }
    }

    /// Whether an inode with this mapping may be on the inode LRU (`mapping_shrinkable`): it has
    /// neither pages nor nodes, at most one shadow at index 0.
    pub(crate) fn is_shrinkable(&self, mapping: MappingId) -> bool {
        let tree = &self.list[mapping.0 as usize];
        tree.pages == 0 && tree.nodes.is_none()
    }

    /// Whether nothing at all is left, not even a shadow.
    pub(crate) fn is_empty(&self, mapping: MappingId) -> bool {
        self.is_shrinkable(mapping) && self.list[mapping.0 as usize].head == EMPTY
    }

    /// Live mappings.
    pub fn ids(&self) -> impl Iterator<Item = MappingId> + '_ {
        self.list
            .iter()
            .enumerate()
            .filter(|(_, tree)| tree.live)
            .map(|(index, _)| MappingId(u32::try_from(index).expect("mappings are numbered in 32 bits")))
    }

    /// Every page of `mapping` in ascending order of index, heads once.
    pub fn heads(&self, mapping: MappingId) -> Vec<(u32, Pfn)> {
        let tree = &self.list[mapping.0 as usize];
        let mut heads = Vec::with_capacity(tree.pages as usize);
        if let Slot::Page(pfn) = decode(tree.head) {
            heads.push((0, pfn));
        }
        for &leaf in tree.leaves().iter().filter(|&&leaf| leaf != NO_NODE) {
            let leaf = &self.leaves[leaf as usize];
            for (offset, &entry) in (0..).zip(leaf.slots.iter()) {
                if let Slot::Page(pfn) = decode(entry)
                    && heads.last().is_none_or(|&(_, last)| last != pfn)
                {
                    heads.push(((leaf.number << 6) + offset, pfn));
                }
            }
        }
        heads
    }

    /// Nodes of all trees.
    pub fn nodes(&self) -> u64 {
        self.list.iter().map(|tree| u64::from(tree.node_count())).sum()
    }

    /// Leaves that hold only shadows: `workingset_nodes`.
    pub fn shadow_leaves(&self) -> u64 {
        self.shadow_lists.iter().map(|list| u64::from(list.len())).sum()
    }

    /// Recounts `mapping` and compares with its counters; returns what differs.
    pub(crate) fn check(&self, mapping: MappingId) -> Result<(), &'static str> {
        let tree = &self.list[mapping.0 as usize];
        let mut pages = u64::from(matches!(decode(tree.head), Slot::Page(_)));
        let mut dirty = u32::from(tree.head_dirty);
        for &id in tree.leaves().iter().filter(|&&leaf| leaf != NO_NODE) {
            let leaf = &self.leaves[id as usize];
            let shadows = leaf.slots.iter().filter(|&&entry| (entry & SHADOW_BIT) != 0).count();
            let used = leaf.slots.iter().filter(|&&entry| entry != EMPTY).count();
            if (usize::from(leaf.used), usize::from(leaf.shadows)) != (used, shadows) {
                return Err("a leaf's counts differ from its slots");
            }
            if leaf.listed != (used > 0 && used == shadows && leaf.object.is_some() && !tree.keeps_shadows) {
                return Err("a leaf is on the shadow list without being all shadows, or the reverse");
            }
            pages += (used - shadows) as u64;
            let tagged =
                tree.nodes.as_ref().is_some_and(|nodes| nodes.next_dirty(leaf.number) == Some(leaf.number));
            if tagged != (leaf.dirty != 0) {
                return Err("a leaf's dirty tag differs from those of its pages");
            }
            dirty += leaf.dirty.count_ones();
        }
        if dirty != tree.dirty {
            return Err("the dirty count differs from the tags");
        }
        if pages == u64::from(tree.pages) { Ok(()) } else { Err("the page count differs from the slots") }
    }

    /// Leaves of `memcg` that hold only shadows, the oldest at the head.
    pub(super) fn shadow_list(&self, memcg: MemcgId) -> List<u32> {
        self.shadow_lists.get(memcg.index()).copied().unwrap_or_default()
    }

    /// Makes the leaves of a cgroup its heir's: those that hold only shadows are the last ones there.
    pub(super) fn hand_over(&mut self, memcg: MemcgId, heir: MemcgId) {
        let listed: Vec<u32> = {
            let mut next = self.shadow_list(memcg).first();
            core::iter::from_fn(|| {
                let id = next?;
                next = self.leaves.link(id).next();
                Some(id)
            })
            .collect()
        };
        listed.iter().for_each(|&id| self.unlist_leaf(id));
        let objects = self.leaves.iter_mut().filter_map(|leaf| leaf.object.as_mut());
        objects.filter(|object| object.memcg == memcg).for_each(|object| object.memcg = heir);
        listed.into_iter().for_each(|id| self.list_leaf(id));
    }

    fn list_leaf(&mut self, id: u32) {
        let leaf = &mut self.leaves[id as usize];
        leaf.listed = true;
        let memcg = leaf.memcg().index();
        if self.shadow_lists.len() <= memcg {
            self.shadow_lists.resize(memcg + 1, List::EMPTY);
        }
        self.shadow_lists[memcg].push_back(&mut self.leaves, id);
    }

    pub(super) fn unlist_leaf(&mut self, id: u32) {
        let leaf = &mut self.leaves[id as usize];
        leaf.listed = false;
        let memcg = leaf.memcg().index();
        self.shadow_lists[memcg].remove(&mut self.leaves, id);
    }

    /// Sets one slot; the leaf must exist (or be page 0 of a tree without leaves). Returns a leaf
    /// that became empty.
    #[inline]
    pub(super) fn set(&mut self, mapping: MappingId, index: u32, entry: u64) -> Option<u32> {
        self.put_entry(mapping, index, entry).1
    }

    /// [`Self::set`], and the entry that lay there before.
    pub(super) fn put_entry(&mut self, mapping: MappingId, index: u32, entry: u64) -> (u64, Option<u32>) {
        let tree = &mut self.list[mapping.0 as usize];
        let Some(leaf_id) = tree.leaf(index >> 6) else {
            assert!(index == 0, "an insertion was not prepared");
            return (core::mem::replace(&mut tree.head, entry), None);
        };
        let leaf = &mut self.leaves[leaf_id as usize];
        let old = core::mem::replace(&mut leaf.slots[(index & 63) as usize], entry);
        leaf.used -= u8::from(old != EMPTY);
        leaf.used += u8::from(entry != EMPTY);
        leaf.shadows -= u8::from((old & SHADOW_BIT) != 0);
        leaf.shadows += u8::from((entry & SHADOW_BIT) != 0);
        let all_shadows = leaf.used > 0 && leaf.used == leaf.shadows;
        let should_list = all_shadows && leaf.object.is_some() && !tree.keeps_shadows;
        let (listed, used) = (leaf.listed, leaf.used);
        if should_list && !listed {
            self.list_leaf(leaf_id);
        } else if !should_list && listed {
            self.unlist_leaf(leaf_id);
        }
        (old, (used == 0).then_some(leaf_id))
    }

    /// Lets `put` put shadows into slots that hold pages, all of the leaf that `index` is in; it says how many.
    #[inline]
    pub(super) fn put_shadows(
        &mut self,
        mapping: MappingId,
        index: u32,
        put: impl FnOnce(&mut [u64]) -> u32,
    ) -> u32 {
        let tree = &mut self.list[mapping.0 as usize];
        let leaf = tree.leaf(index >> 6);
        let count = put(match leaf {
            Some(id) => &mut self.leaves[id as usize].slots[..],
            None => core::slice::from_mut(&mut tree.head),
        });
        if let Some(id) = leaf {
            let leaf = &mut self.leaves[id as usize];
            leaf.shadows += u8::try_from(count).expect("a leaf has 64 slots");
            if leaf.shadows == leaf.used && leaf.object.is_some() && !tree.keeps_shadows {
                self.list_leaf(id);
            }
        }
        count
    }

    /// The first node that is missing for pages up to `last` at `index`: its level (0 = leaf) and
    /// number. As in the kernel, a tree first grows at the root, then down to the leaf.
    pub(super) fn missing_node(&self, mapping: MappingId, index: u32, pages: u32) -> Option<(usize, u32)> {
        let tree = &self.list[mapping.0 as usize];
        let last = index + (pages - 1);
        let large = is_large(pages);
        let mut lacking = ((index >> 6)..=(last >> 6)).filter(|&leaf| tree.lacks(&self.leaves, leaf, large));
        let leaf = lacking.next()?;
        let needed = height_for(last).max(usize::from(large));
        let Some(nodes) = &tree.nodes else {
            if last == 0 {
                return None;
            }
            // Page 0 moves into a leaf of its own.
            let level = if tree.head == EMPTY { needed } else { 0 };
            return Some((level, 0));
        };
        if usize::from(nodes.height) < needed {
            return Some((usize::from(nodes.height) + 1, 0));
        }
        let inner_missing = |leaf: u32| {
            let above = |&level: &usize| {
                let inner = nodes.inner[level - 1].get((leaf >> (6 * level)) as usize);
                inner.is_none_or(|inner| inner.object.is_none())
            };
            (1..=usize::from(nodes.height)).rev().find(above).map(|level| (level, leaf >> (6 * level)))
        };
        match inner_missing(leaf) {
            None if large => lacking.find_map(inner_missing),
            None => Some((0, leaf)),
            missing => missing,
        }
    }

    /// Gives a folio of 64 pages or more its slots, for which nodes were made.
    pub(super) fn add_slots(&mut self, mapping: MappingId, index: u32, pages: u32) {
        let numbers = if is_large(pages) { (index >> 6)..((index + pages) >> 6) } else { 0..0 };
        for number in numbers {
            if self.list[mapping.0 as usize].leaf(number).is_none() {
                self.add_leaf(mapping, number, None);
                let nodes = self.list[mapping.0 as usize].nodes.as_mut().expect("an insertion is prepared");
                nodes.inner[0][(number >> 6) as usize].children += 1;
            }
        }
    }

    pub(super) fn add_node(&mut self, mapping: MappingId, level: usize, number: u32, object: Object) {
        if level == 0 && self.make_node(mapping, number, object) {
            return;
        }
        if level == 0 {
            self.add_leaf(mapping, number, Some(object));
        } else {
            let nodes = self.list[mapping.0 as usize].nodes.get_or_insert_default();
            // A new root finds what the tree had so far below it; any other node starts empty.
            let had_below = nodes.count > 0 && level > usize::from(nodes.height);
            nodes.inner.resize(nodes.inner.len().max(level), Vec::new());
            let inner = &mut nodes.inner[level - 1];
            if inner.len() <= number as usize {
                inner.resize(number as usize + 1, Inner::default());
            }
            inner[number as usize] = Inner { children: u8::from(had_below), object: Some(object) };
            nodes.height = nodes.height.max(u8::try_from(level).expect("five levels at most"));
        }
        let nodes = self.list[mapping.0 as usize].nodes.as_mut().expect("it has one now");
        nodes.count += 1;
        if level < usize::from(nodes.height) {
            nodes.inner[level][(number >> 6) as usize].children += 1;
        }
    }

    /// Makes a node of a slot of the node above it, if there is one.
    fn make_node(&mut self, mapping: MappingId, number: u32, object: Object) -> bool {
        let Some(id) = self.list[mapping.0 as usize].leaf(number) else { return false };
        let leaf = &mut self.leaves[id as usize];
        assert!(leaf.object.is_none(), "a leaf is made once");
        leaf.object = Some(object);
        let all_shadows = leaf.used > 0 && leaf.used == leaf.shadows;
        let tree = &mut self.list[mapping.0 as usize];
        tree.nodes.as_mut().expect("it has a leaf").count += 1;
        if all_shadows && !tree.keeps_shadows {
            self.list_leaf(id);
        }
        true
    }

    fn add_leaf(&mut self, mapping: MappingId, number: u32, object: Option<Object>) {
        let leaf = Leaf {
            slots: [EMPTY; SLOTS],
            dirty: 0,
            used: 0,
            shadows: 0,
            mapping: mapping.0,
            number,
            object,
            link: Link::UNUSED,
            listed: false,
        };
        let id = match self.free_leaves.pop() {
            Some(id) => {
                self.leaves[id as usize] = leaf;
                id
            }
            None => {
                self.leaves.push(leaf);
                u32::try_from(self.leaves.len() - 1).expect("fewer leaves than pages")
            }
        };
        let tree = &mut self.list[mapping.0 as usize];
        let leaves = &mut tree.nodes.get_or_insert_default().leaves;
        if leaves.len() <= number as usize {
            leaves.resize(number as usize + 1, NO_NODE);
        }
        leaves[number as usize] = id;
        let head = core::mem::replace(&mut tree.head, EMPTY);
        if head != EMPTY {
            assert!(number == 0, "page 0 moves before other leaves are made");
            let _ = self.set(mapping, 0, head);
            let tree = &mut self.list[mapping.0 as usize];
            let dirty = core::mem::take(&mut tree.head_dirty);
            self.leaves[id as usize].dirty = u64::from(dirty);
            tree.nodes.as_mut().expect("it has a leaf").tag(0, dirty);
        }
    }

    /// Drops an empty leaf and the inner nodes that it leaves empty; returns their objects.
    pub(super) fn drop_leaf(&mut self, id: u32, freed: &mut Vec<Object>) {
        let leaf = &self.leaves[id as usize];
        assert!(leaf.used == 0 && !leaf.listed, "dropped a leaf in use");
        let (mapping, number) = (leaf.mapping, leaf.number);
        let object = leaf.object;
        freed.extend(object);
        self.free_leaves.push(id);
        let tree = &mut self.list[mapping as usize];
        let nodes = tree.nodes.as_mut().expect("a leaf is a node");
        nodes.leaves[number as usize] = NO_NODE;
        nodes.count -= u32::from(object.is_some());
        let mut child = number;
        for level in 0..usize::from(nodes.height) {
            child >>= 6;
            let inner = &mut nodes.inner[level][child as usize];
            inner.children -= 1;
            if inner.children > 0 {
                break;
            }
            freed.extend(inner.object.take());
            nodes.count -= 1;
        }
        if nodes.count == 0 {
            tree.nodes = None;
        }
    }

    /// Takes what is left of a tree without pages and shadows: nodes that were prepared for an
    /// insertion that never came.
    pub(super) fn take_remains(&mut self, mapping: MappingId, freed: &mut Vec<Object>) {
        if let Some(mut nodes) = self.list[mapping.0 as usize].nodes.take() {
            freed.extend(nodes.inner.iter_mut().flatten().filter_map(|inner| inner.object.take()));
        }
    }
}

/// Whether a folio is an entry of an inner node.
const fn is_large(pages: u32) -> bool {
    pages as usize >= SLOTS
}

/// Inner levels that a tree needs to reach page `last`.
fn height_for(last: u32) -> usize {
    let mut height = 0;
    let mut leaves = last >> 6;
    while leaves > 0 {
        leaves >>= 6;
        height += 1;
    }
    height
}
