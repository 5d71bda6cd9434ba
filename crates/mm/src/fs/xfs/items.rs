//! Log items of XFS inodes: which inodes in memory are not clean, and why (MECHANISMS 11.2, 11.3).
//!
//! ```text
//!   clean --change--> pinned: in the open checkpoint, or in one on its way to the disk
//!     ^                  |  checkpoint on the disk
//!     |                  v
//!     |     +------> in the AIL, at the checkpoint's place in the log <--+ changed meanwhile
//!     |     | flush      |                                               | (pinned and in the AIL)
//!     |     v            v                                               |
//!     +-- flushing: copied into the buffer of its cluster, which is written
//! ```
//! This is not what the VFS calls dirty: an inode whose pages are written is clean there, and may be
//! not clean here for as long as the log has room. Neither a pinned nor a changed nor a flushing inode
//! can be freed. The inode of a file that is gone has to be written to its place as any other: only a chunk of 64
//! of which none is left is given back (mount option `noikeep`, the default), and nothing of it is written.
//!
//! Left out: items of buffers and dquots; intents are in [`super::log`]. Neighbours:
//! [`super::log`] for checkpoints, [`super::ail`] for who flushes.

use std_alloc::vec::Vec;

use crate::base::ids::MappingId;
use crate::base::list::{Link, Links, List};
use crate::fs::xfs::buf::{ClusterId, INODES_IN_CLUSTER};
use crate::slab::object::Object;

/// A place in the log, in bytes since it was made: that of the checkpoint with the last change.
pub type Lsn = u64;

/// A number that counts checkpoints, from 1 on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct CheckpointId(pub u32);

/// Not in the AIL.
const NOWHERE: Lsn = Lsn::MAX;

#[derive(Debug, Clone, Copy)]
struct Item {
    /// Of the inode, on the disk.
    number: u32,
    /// The last checkpoint that it is in; none if it is clean since.
    logged: Option<CheckpointId>,
    /// Its place in the AIL.
    lsn: Lsn,
    /// `lsn` when it was flushed.
    flushed: Lsn,
    /// Checkpoints that it is in and that are not on the disk.
    pins: u8,
    /// An inode in memory.
    known: bool,
    /// It changed since it was flushed.
    changed: bool,
    /// Its buffer is to be written, or is being written.
    flushing: bool,
    /// Its file is gone.
    removed: bool,
    /// Its place on the disk is gone, too, and need not be written.
    stale: bool,
    /// Its last change frees its chunk.
    frees_chunk: bool,
    /// Its extents, to be logged with it.
    extents: u16,
    /// Where in its newest checkpoint it is.
    place: u32,
    /// A vector for its next change (`li_lv_shadow`).
    spare: Option<Object>,
}

const UNKNOWN: Item = Item {
    number: 0,
    logged: None,
    lsn: NOWHERE,
    flushed: NOWHERE,
    pins: 0,
    known: false,
    changed: false,
    flushing: false,
    removed: false,
    stale: false,
    frees_chunk: false,
    extents: 0,
    place: 0,
    spare: None,
};

impl Item {
    const fn is_clean(&self) -> bool {
        self.pins == 0 && self.lsn == NOWHERE && !self.flushing
    }
}

#[derive(Debug, Clone, Default)]
struct LinkTable(Vec<Link<MappingId>>);

impl Links<MappingId> for LinkTable {
    fn link(&self, id: MappingId) -> Link<MappingId> {
        self.0[id.0 as usize]
    }

    fn link_mut(&mut self, id: MappingId) -> &mut Link<MappingId> {
        &mut self.0[id.0 as usize]
    }
}

/// What an inode in memory is to the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ItemState {
    /// It can go.
    Clean,
    /// It is in a checkpoint that is not on the disk.
    Pinned,
    /// It is being written to its place.
    Flushing,
    /// It can be flushed.
    Dirty,
}

/// What a change came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Logged {
    /// It was not in this checkpoint before.
    pub first_in_checkpoint: bool,
    /// It was clean.
    pub was_clean: bool,
}

/// The log items of all inodes in memory.
#[derive(Debug, Clone, Default)]
pub struct Items {
    /// By mapping.
    items: Vec<Item>,
    /// Those on the disk in the log and not at their places, by their last change.
    ail: List<MappingId>,
    ail_links: LinkTable,
    /// Those not clean, by cluster.
    clusters: Vec<List<MappingId>>,
    cluster_links: LinkTable,
    not_clean: u64,
    /// Their bits, by mapping: whoever looks for clean ones among half a million has them all in its cache.
    busy: Vec<u64>,
}

/// The word of a mapping in [`Items::busy`], and its bit.
const fn busy_place(mapping: MappingId) -> (usize, u64) {
    ((mapping.0 / u64::BITS) as usize, 1 << (mapping.0 % u64::BITS))
}

/// Clusters in a chunk, the unit in which inodes are allocated and freed (MECHANISMS 11.1).
pub const CLUSTERS_IN_CHUNK: u32 = 2;

/// The clusters of the chunk that one of them is in.
fn chunk_of(ClusterId(cluster): ClusterId) -> impl Iterator<Item = ClusterId> {
    let first = cluster / CLUSTERS_IN_CHUNK * CLUSTERS_IN_CHUNK;
    (first..first + CLUSTERS_IN_CHUNK).map(ClusterId)
}

impl Items {
    fn item(&self, mapping: MappingId) -> &Item {
        self.items.get(mapping.0 as usize).unwrap_or(&UNKNOWN)
    }

    /// Whether an inode is in memory.
    pub fn is_known(&self, mapping: MappingId) -> bool {
        self.item(mapping).known
    }

    /// Whether the last change of an inode is not on the disk.
    pub fn is_pinned(&self, mapping: MappingId) -> bool {
        self.item(mapping).pins > 0
    }

    /// Whether this is the newest checkpoint that an inode is in.
    pub(super) fn is_in(&self, mapping: MappingId, checkpoint: CheckpointId) -> bool {
        self.item(mapping).logged == Some(checkpoint)
    }

    /// Whether an inode is in the AIL.
    pub fn is_in_ail(&self, mapping: MappingId) -> bool {
        self.item(mapping).lsn != NOWHERE
    }

    /// Whether an inode needs not be written anywhere.
    pub fn is_clean(&self, mapping: MappingId) -> bool {
        let (word, bit) = busy_place(mapping);
        self.busy.get(word).is_none_or(|busy| (busy & bit) == 0)
    }

    /// Inodes that are not clean.
    pub fn not_clean(&self) -> u64 {
        self.not_clean
    }

    /// Inodes in the AIL.
    pub fn in_ail(&self) -> u64 {
        u64::from(self.ail.len())
    }

    /// What an inode is to the log.
    pub fn state(&self, mapping: MappingId) -> ItemState {
        let item = self.item(mapping);
        if item.flushing {
            ItemState::Flushing
        } else if item.pins > 0 {
            ItemState::Pinned
        } else if item.lsn != NOWHERE {
            ItemState::Dirty
        } else {
            ItemState::Clean
        }
    }

    /// The cluster that an inode in memory is in.
    pub fn cluster(&self, mapping: MappingId) -> ClusterId {
        ClusterId(self.item(mapping).number / INODES_IN_CLUSTER)
    }

    /// Whether no inode of a cluster has to be written.
    pub(crate) fn is_cluster_clean(&self, cluster: ClusterId) -> bool {
        self.clusters.get(cluster.0 as usize).is_none_or(List::is_empty)
    }

    pub(super) fn register(&mut self, mapping: MappingId, number: u32) {
        let index = mapping.0 as usize;
        if self.items.len() <= index {
            self.items.resize(index + 1, UNKNOWN);
            self.busy.resize(index / 64 + 1, 0);
            self.ail_links.0.resize(index + 1, Link::UNUSED);
            self.cluster_links.0.resize(index + 1, Link::UNUSED);
        }
        assert!(!self.items[index].known, "{mapping:?} is in memory already");
        self.items[index] = Item { number, known: true, ..UNKNOWN };
    }

    /// An inode leaves memory; returns its spare vector.
    pub(super) fn unregister(&mut self, mapping: MappingId) -> Option<Object> {
        let item = self.items.get_mut(mapping.0 as usize)?;
        assert!(item.is_clean(), "{mapping:?} goes although it is not clean");
        core::mem::replace(item, UNKNOWN).spare
    }

    /// The vector that an inode has for its next change.
    pub(super) fn spare(&self, mapping: MappingId) -> Option<Object> {
        self.item(mapping).spare
    }

    /// Gives an inode another spare vector; returns the one before.
    pub(super) fn set_spare(&mut self, mapping: MappingId, spare: Option<Object>) -> Option<Object> {
        core::mem::replace(&mut self.items[mapping.0 as usize].spare, spare)
    }

    /// Spare vectors of all inodes, for checks.
    pub(super) fn spares(&self) -> impl Iterator<Item = Object> + '_ {
        self.items.iter().filter_map(|item| item.spare)
    }

    /// Where an inode is in its newest checkpoint.
    pub(super) fn place(&self, mapping: MappingId) -> usize {
        self.item(mapping).place as usize
    }

    pub(super) fn set_place(&mut self, mapping: MappingId, place: usize) {
        self.items[mapping.0 as usize].place = u32::try_from(place).expect("fewer inodes than 32 bits");
    }

    /// Sets how many extents are logged with an inode from now on.
    pub(super) fn set_extents(&mut self, mapping: MappingId, extents: u16) {
        self.items[mapping.0 as usize].extents = extents;
    }

    pub(super) fn extents(&self, mapping: MappingId) -> u16 {
        self.item(mapping).extents
    }

    /// The file of an inode is gone, and with `frees_chunk` it was the last one of its chunk: no place of it will
    /// be written once that is on the disk in the log. Otherwise its place has to be, like any other.
    pub(super) fn remove(&mut self, mapping: MappingId, frees_chunk: bool) {
        let item = &mut self.items[mapping.0 as usize];
        (item.removed, item.frees_chunk) = (true, frees_chunk);
        if !frees_chunk {
            return;
        }
        for cluster in chunk_of(self.cluster(mapping)) {
            let mut next = self.clusters.get(cluster.0 as usize).and_then(List::first);
            while let Some(mapping) = next {
                let item = &mut self.items[mapping.0 as usize];
                item.stale |= item.removed;
                next = List::next(&self.cluster_links, mapping);
            }
        }
    }

    /// The place of an inode whose file is gone is that of a new one. Its chunk stays if it was to be freed: while that
    /// was logged, somebody may have made a file in it.
    pub(super) fn renew(&mut self, mapping: MappingId) {
        let item = &mut self.items[mapping.0 as usize];
        (item.removed, item.stale, item.frees_chunk) = (false, false, false);
    }

    /// If the last change of an inode freed its chunk, and is on the disk in the log: nothing of the chunk is left to
    /// be written. Appends its clusters that are clean by that.
    pub(super) fn drop_freed_chunk(&mut self, mapping: MappingId, clean: &mut Vec<ClusterId>) {
        let item = &mut self.items[mapping.0 as usize];
        if item.pins > 0 || !core::mem::take(&mut item.frees_chunk) {
            return;
        }
        for cluster in chunk_of(self.cluster(mapping)) {
            let mut dropped = false;
            let mut next = self.clusters.get(cluster.0 as usize).and_then(List::first);
            while let Some(mapping) = next {
                next = List::next(&self.cluster_links, mapping);
                let item = &mut self.items[mapping.0 as usize];
                if item.stale && item.pins == 0 && item.lsn != NOWHERE && !item.flushing {
                    (item.lsn, item.changed) = (NOWHERE, false);
                    self.ail.remove(&mut self.ail_links, mapping);
                    dropped |= self.settle(mapping);
                }
            }
            if dropped && self.is_cluster_clean(cluster) {
                clean.push(cluster);
            }
        }
    }

    /// An inode changed, and is in this checkpoint.
    pub(super) fn log(&mut self, mapping: MappingId, checkpoint: CheckpointId) -> Logged {
        let item = &mut self.items[mapping.0 as usize];
        assert!(item.known, "{mapping:?} is logged and not in memory");
        let was_clean = item.is_clean();
        let first_in_checkpoint = item.logged != Some(checkpoint);
        item.changed = true;
        if first_in_checkpoint {
            item.logged = Some(checkpoint);
            item.pins += 1;
        }
        if was_clean {
            let cluster = (item.number / INODES_IN_CLUSTER) as usize;
            if self.clusters.len() <= cluster {
                self.clusters.resize(cluster + 1, List::EMPTY);
            }
            self.clusters[cluster].push_back(&mut self.cluster_links, mapping);
            self.not_clean += 1;
            let (word, bit) = busy_place(mapping);
            self.busy[word] |= bit;
        }
        Logged { first_in_checkpoint, was_clean }
    }

    /// The checkpoint at `lsn` is on the disk, and an inode with it. Returns whether it is clean.
    pub(super) fn unpin(&mut self, mapping: MappingId, lsn: Lsn) -> bool {
        let item = &mut self.items[mapping.0 as usize];
        item.pins -= 1;
        let goes = item.stale && item.pins == 0;
        let was_in_ail = core::mem::replace(&mut item.lsn, if goes { NOWHERE } else { lsn }) != NOWHERE;
        item.changed &= !goes;
        if was_in_ail {
            self.ail.remove(&mut self.ail_links, mapping);
        }
        if !goes {
            self.ail.push_back(&mut self.ail_links, mapping);
        }
        self.settle(mapping)
    }

    /// Takes a clean inode off the list of its cluster. Returns whether it is clean.
    fn settle(&mut self, mapping: MappingId) -> bool {
        let item = &mut self.items[mapping.0 as usize];
        let clean = item.is_clean();
        if clean {
            item.logged = None;
            let cluster = (item.number / INODES_IN_CLUSTER) as usize;
            self.clusters[cluster].remove(&mut self.cluster_links, mapping);
            self.not_clean -= 1;
            let (word, bit) = busy_place(mapping);
            self.busy[word] &= !bit;
        }
        clean
    }

    /// Copies every inode of a cluster that can be flushed into its buffer; how many (`xfs_iflush_cluster`).
    pub(super) fn flush(&mut self, cluster: ClusterId) -> u32 {
        let mut flushed = 0;
        let mut next = self.clusters.get(cluster.0 as usize).and_then(List::first);
        while let Some(mapping) = next {
            let item = &mut self.items[mapping.0 as usize];
            if item.pins == 0 && item.changed && !item.flushing {
                (item.flushing, item.changed, item.flushed) = (true, false, item.lsn);
                flushed += 1;
            }
            next = List::next(&self.cluster_links, mapping);
        }
        flushed
    }

    /// The buffer of a cluster is on the disk: what was in it and has not been logged since leaves the
    /// AIL (`xfs_iflush_done`). Returns how many inodes are clean now.
    pub(super) fn flushed(&mut self, cluster: ClusterId) -> u32 {
        let mut cleaned = 0;
        let mut next = self.clusters.get(cluster.0 as usize).and_then(List::first);
        while let Some(mapping) = next {
            next = List::next(&self.cluster_links, mapping);
            let item = &mut self.items[mapping.0 as usize];
            if !item.flushing {
                continue;
            }
            item.flushing = false;
            if item.lsn == item.flushed && item.lsn != NOWHERE {
                item.lsn = NOWHERE;
                self.ail.remove(&mut self.ail_links, mapping);
            }
            cleaned += u32::from(self.settle(mapping));
        }
        cleaned
    }

    /// The inode in the AIL with the oldest change, and the place of that in the log.
    pub fn first_in_ail(&self) -> Option<(MappingId, Lsn)> {
        self.ail.first().map(|mapping| (mapping, self.item(mapping).lsn))
    }

    /// The place of the newest change in the AIL.
    pub fn last_in_ail(&self) -> Option<Lsn> {
        self.ail.last().map(|mapping| self.item(mapping).lsn)
    }

    /// The inode behind another one in the AIL.
    pub(super) fn next_in_ail(&self, mapping: MappingId) -> Option<(MappingId, Lsn)> {
        List::next(&self.ail_links, mapping).map(|next| (next, self.item(next).lsn))
    }

    /// Whether an inode is in the AIL at this place.
    pub(super) fn is_at(&self, mapping: MappingId, lsn: Lsn) -> bool {
        lsn != NOWHERE && self.item(mapping).lsn == lsn
    }

    /// Clusters of inodes that are being flushed, for checks.
    pub(crate) fn flushing_clusters(&self) -> impl Iterator<Item = ClusterId> + '_ {
        let flushing = self.items.iter().filter(|item| item.flushing);
        flushing.map(|item| ClusterId(item.number / INODES_IN_CLUSTER))
    }

    /// Walks every item and every list; returns what is wrong.
    pub(super) fn check(&self, pins: &[u8]) -> Result<(), &'static str> {
        let mut last = 0;
        let mut walked = 0;
        for mapping in self.ail.iter(&self.ail_links) {
            let item = self.item(mapping);
            if item.lsn == NOWHERE || item.lsn < last {
                return Err("the AIL is not in the order of the log");
            }
            (last, walked) = (item.lsn, walked + 1);
        }
        let mut listed = 0;
        for (cluster, list) in self.clusters.iter().enumerate() {
            for mapping in list.iter(&self.cluster_links) {
                let item = self.item(mapping);
                // By what it is and by its bit: with the counts below, all three name the same inodes.
                let clean = item.is_clean() || self.is_clean(mapping);
                if clean || (item.number / INODES_IN_CLUSTER) as usize != cluster {
                    return Err("a cluster names an inode that is clean, or of another one");
                }
                listed += 1;
            }
        }
        for (index, item) in self.items.iter().enumerate() {
            if item.pins != pins.get(index).copied().unwrap_or(0) {
                return Err("an inode is pinned by other checkpoints than have it");
            }
            if !item.known && !item.is_clean() {
                return Err("an inode that is not clean has left memory");
            }
            if item.changed && item.is_clean() {
                return Err("an inode that changed is clean");
            }
            if item.lsn != NOWHERE && item.pins == 0 && !item.changed && !item.flushing {
                return Err("an inode in the AIL has nothing to write");
            }
        }
        let ail = self.items.iter().filter(|item| item.lsn != NOWHERE).count();
        let not_clean = self.items.iter().filter(|item| !item.is_clean()).count() as u64;
        if walked != ail || self.ail.len() as usize != ail {
            return Err("the AIL has another length than it says");
        }
        let bits: u64 = self.busy.iter().map(|busy| u64::from(busy.count_ones())).sum();
        let counted = listed == not_clean && self.not_clean == not_clean && bits == not_clean;
        if counted { Ok(()) } else { Err("the count of inodes that are not clean is off") }
    }
}
