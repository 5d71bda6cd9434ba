//! The log of XFS: checkpoints, the memory that they hold, and space in the log (MECHANISMS 11.2,
//! MECHANISMS-6X 8.3).
//!
//! ```text
//!   a change of an inode --> open checkpoint: a log vector, unmovable memory
//!                                 |  30 s, sync, or an eighth of the log is full
//!                                 v
//!                            records of 32 KiB --> disk; the last one waits to be filled, or forced
//!                                 |
//!                                 v
//!                            committed: vectors freed, inodes unpinned, in the AIL
//!   log:  ...free... | tail: oldest change in the AIL ........ head | open checkpoint | ...free...
//! ```
//! A vector is freed with its checkpoint. An inode that changes again while that is open gets a second
//! one if the first is too small, and keeps the other in reserve. So a stream of new
//! files holds an amount of unmovable memory that rises for up to half a minute and then goes at
//! one blow. The record that ends a checkpoint also begins the next one: unless somebody forces the
//! log, it is written when that fills it, and until then nothing of the checkpoint counts as
//! written. In the reference guests with a log of 64 MiB, 11.3 MiB were written when some 33,000
//! files existed and nothing else until memory was full, although the whole AIL was pushed again and
//! again: it was empty.
//!
//! A task that changes something first reserves space. If less than a quarter of the log is free, the
//! AIL is pushed; if too little is, the task waits until the tail has moved.
//!
//! Left out: log items of buffers beside their bytes; that since 5.19 intents take no room in the log; that 6.x adds
//! up the size of the open checkpoint by CPU and so notices late that it is full.
//! Neighbours: [`super::items`], [`super::ail`]; the kernel crate writes records.

use std_alloc::collections::VecDeque;
use std_alloc::vec;
use std_alloc::vec::Vec;

use units::{Bytes, CpuId};

use crate::base::event::Trace;
use crate::base::ids::MappingId;
use crate::core::Core;
use crate::fs::xfs::buf::ClusterId;
pub use crate::fs::xfs::items::CheckpointId;
use crate::fs::xfs::items::{ItemState, Items, Lsn};
use crate::slab::object::Object;
use crate::version::geometry::Cache;
use crate::version::presets::Tuning;

/// A header of each region of an item (`xlog_op_header`).
const REGION: u64 = 12;
/// Format and core of an inode: regions of 56 and 176 bytes (`xfs_inode_log_format`, `xfs_log_dinode`).
const INODE: u64 = 56 + 176 + (2 * REGION);
/// An extent of it (`xfs_bmbt_rec`).
const EXTENT: u64 = 16;
/// Extents that an inode of 512 bytes has room for. Left out: that more are in blocks of their own, and logged there.
const EXTENTS_MAX: u16 = 21;
/// An entry of a directory: inode number, length, name, type and tag, rounded up to 8 bytes, and 8 bytes of
/// hash. A name of 9 bytes: buffers are logged by 128 bytes, which files made one after the other share.
const ENTRY: u64 = 24 + 8;
/// The intent to free an extent, and that it is done (`xfs_efi_log_format` with one extent, each).
const INTENTS: u64 = 2 * (32 + REGION);

/// An in-core log (`logbsize`, by default 32 KiB), and the header in each.
const RECORD: u64 = 32 << 10;
const RECORD_HEADER: u64 = 512;
/// In-core logs (`logbufs`).
const RECORDS_MAX: usize = 8;

/// What a create or a remove reserves in the log: two units of some 180 KB for blocks of 4 KiB (what
/// `xfs_db` prints for `tr_create`).
const RESERVATION: u64 = 360 << 10;

/// How an inode changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// It is made, with its entry in a directory.
    Create,
    /// Blocks are given to it, or its size changes.
    Extend {
        /// Runs of blocks, one behind the other on the disk, that it has then.
        extents: u16,
    },
    /// Its last entry goes, its blocks are freed, and it with them.
    Remove,
    /// The same of the last inode in its chunk, which is freed, too.
    RemoveLast,
    /// Only what stands in itself changes: its times, or its size.
    Core,
}

impl Change {
    /// Bytes beside the inode itself, of one that has so many extents.
    const fn beside(self, extents: u16) -> u64 {
        match self {
            Self::Create => ENTRY,
            Self::Extend { .. } | Self::Core => 0,
            Self::Remove | Self::RemoveLast if extents == 0 => ENTRY,
            Self::Remove | Self::RemoveLast => ENTRY + INTENTS,
        }
    }
}

/// Bytes of the extents of an inode: one region.
fn extents_bytes(extents: u16) -> u64 {
    match extents.min(EXTENTS_MAX) {
        0 => 0,
        extents => REGION + (u64::from(extents) * EXTENT),
    }
}

#[derive(Debug, Clone)]
struct Checkpoint {
    id: CheckpointId,
    /// Its inodes, with their vectors.
    items: Vec<(MappingId, Object)>,
    /// Intents to free extents.
    intents: Vec<Object>,
    /// It frees blocks: nobody takes those before it is on the disk.
    frees: bool,
    /// How many of them are unpinned.
    committed: usize,
    bytes: u64,
    /// Where it begins in the log.
    lsn: Lsn,
    /// The record that it ends in.
    last_record: u64,
}

impl Checkpoint {
    fn new(id: CheckpointId) -> Self {
        let (items, intents) = (Vec::new(), Vec::new());
        Self { id, items, intents, frees: false, committed: 0, bytes: 0, lsn: 0, last_record: 0 }
    }
}

/// A record on its way to the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    /// Counts from 0.
    pub number: u64,
    /// Where it lies in the log.
    pub offset: u64,
    /// Its bytes.
    pub len: Bytes,
}

/// Whether a vector is large enough for one of this cache.
fn is_as_large(vector: Object, cache: Cache) -> bool {
    vector.cache == Cache::XfsLogVectorExtents || cache == Cache::XfsLogVector
}

/// What committing came to in one step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub struct Committed {
    /// Inodes unpinned, each with its vector freed.
    pub items: u64,
    /// That was the last one of its checkpoint.
    pub ends: bool,
}

/// The log with all that is on its way through it.
#[derive(Debug, Clone)]
pub struct XfsLog {
    size: u64,
    /// Where the next checkpoint begins.
    head: Lsn,
    open: Checkpoint,
    /// Closed and not committed, the oldest first.
    closed: VecDeque<Checkpoint>,
    items: Items,
    /// Bytes for changes that are being made.
    reserved: u64,
    /// Up to where the AIL is to be pushed, that excluded.
    target: Lsn,
    /// Payload that is not in a record yet.
    unwritten: u64,
    /// The record that is being filled.
    record: u64,
    /// Of records that were sent off, from the first that is not on the disk: whether they are.
    sent: VecDeque<bool>,
    /// Bytes of all records up to now.
    written: u64,
}

impl Default for XfsLog {
    fn default() -> Self {
        Self {
            size: u64::MAX / 4,
            head: 0,
            open: Checkpoint::new(CheckpointId(1)),
            closed: VecDeque::new(),
            items: Items::default(),
            reserved: 0,
            target: 0,
            unwritten: 0,
            record: 0,
            sent: VecDeque::new(),
            written: 0,
        }
    }
}

impl XfsLog {
    /// The log has this size from now on.
    pub fn set_size(&mut self, size: Bytes) {
        // Two changes and a checkpoint have to fit: `mkfs.xfs` makes none that is smaller.
        self.size = size.get().max(4 * RESERVATION);
    }

    /// Inodes that are not clean.
    pub fn items(&self) -> &Items {
        &self.items
    }

    /// An inode is in memory from now on.
    pub(crate) fn register(&mut self, mapping: MappingId, number: u32) {
        self.items.register(mapping, number);
    }

    /// An inode whose file is gone is that of a new one.
    pub(crate) fn renew(&mut self, mapping: MappingId) {
        self.items.renew(mapping);
    }

    /// A clean inode leaves memory; returns a vector that nobody needs any more.
    #[must_use]
    pub(crate) fn unregister(&mut self, mapping: MappingId) -> Option<Object> {
        self.items.unregister(mapping)
    }

    // ---- space ----

    /// The oldest place that is still needed.
    fn tail(&self) -> Lsn {
        let waiting = self.closed.front().map(|checkpoint| checkpoint.lsn);
        let ail = self.items.first_in_ail().map(|(_, lsn)| lsn);
        self.head.min(waiting.unwrap_or(Lsn::MAX)).min(ail.unwrap_or(Lsn::MAX))
    }

    /// Bytes of the log that are neither needed nor spoken for.
    pub fn free(&self) -> Bytes {
        let used = self.head - self.tail() + self.open.bytes + self.reserved;
        Bytes(self.size.saturating_sub(used))
    }

    /// Whether there is room for one more change; if so it is reserved (`xlog_grant_head_check`).
    #[must_use]
    pub fn reserve(&mut self) -> bool {
        let fits = self.free().get() >= RESERVATION;
        self.reserved += if fits { RESERVATION } else { 0 };
        fits
    }

    /// A change was made, or given up.
    ///
    /// # Panics
    /// When nothing was reserved.
    pub fn unreserve(&mut self) {
        self.reserved = self.reserved.checked_sub(RESERVATION).expect("it was reserved");
    }

    /// If less than a quarter of the log is free: a quarter from the tail on is to be pushed
    /// (`xlog_grant_push_ail`). Returns whether the target has moved.
    pub fn push_tail(&mut self) -> bool {
        let quarter = self.size / 4;
        let target = self.tail() + quarter.max(RESERVATION);
        let moves = self.free().get() < quarter && target > self.target;
        if moves {
            self.target = target;
        }
        moves
    }

    /// All that is in the AIL now is to be pushed (`xfs_ail_push_all`). Returns whether the target has moved.
    pub fn push_all(&mut self) -> bool {
        let target = self.items.last_in_ail().map_or(0, |last| last + 1);
        let moves = target > self.target;
        if moves {
            self.target = target;
        }
        moves
    }

    /// Whether something in the AIL is to be pushed.
    pub fn has_work(&self) -> bool {
        self.items.first_in_ail().is_some_and(|(_, lsn)| lsn < self.target)
    }

    /// Up to where the AIL is to be pushed.
    pub(super) fn target(&self) -> Lsn {
        self.target
    }

    // ---- changes ----

    /// Bytes that the open checkpoint will take in the log.
    pub fn open_bytes(&self) -> Bytes {
        Bytes(self.open.bytes)
    }

    /// What the open checkpoint may grow to in a log of `log` bytes: an eighth, from 5.7 on at most
    /// 32 MiB ("Lower CIL flush limit for large logs").
    pub fn checkpoint_limit(log: Bytes, tuning: &Tuning) -> Bytes {
        Bytes(log.get() / 8).min(tuning.xfs_checkpoint_max)
    }

    /// Whether it is time to close the open checkpoint.
    pub fn is_checkpoint_full(&self, tuning: &Tuning) -> bool {
        self.open.bytes > Self::checkpoint_limit(Bytes(self.size), tuning).get()
    }

    /// Whether nothing more may be added to the open checkpoint: it is twice as large as it should be, since
    /// 5.7 ("Throttle commits on delayed background CIL push").
    pub fn is_checkpoint_overfull(&self, tuning: &Tuning) -> bool {
        let bounded = tuning.xfs_checkpoint_max.get() < u64::MAX;
        bounded && self.open.bytes >= 2 * Self::checkpoint_limit(Bytes(self.size), tuning).get()
    }

    /// Whether a change of an inode that adds nothing to it would change nothing: it is in the open checkpoint.
    pub fn is_in_open_checkpoint(&self, mapping: MappingId) -> bool {
        self.items.is_in(mapping, self.open.id)
    }

    /// The vector that a change of an inode has to bring along: of this cache, if the spare one that the inode
    /// has is too small or there is none (`xlog_cil_alloc_shadow_bufs`).
    pub fn wants_vector(&self, mapping: MappingId, change: Change) -> Option<Cache> {
        let cache = self.vector_of(mapping, change);
        let fits = self.items.spare(mapping).is_some_and(|spare| is_as_large(spare, cache));
        (!fits).then_some(cache)
    }

    fn vector_of(&self, mapping: MappingId, change: Change) -> Cache {
        if matches!(change, Change::Extend { .. }) || self.items.extents(mapping) > 0 {
            Cache::XfsLogVectorExtents
        } else {
            Cache::XfsLogVector
        }
    }

    /// An inode in memory changes. Its vector is used unless it has one in this checkpoint already that is
    /// large enough; the other one stays with it. Returns a vector that nobody needs.
    ///
    /// # Panics
    /// When it wants a vector and gets none.
    pub(crate) fn change(
        &mut self,
        mapping: MappingId,
        change: Change,
        vector: Option<Object>,
    ) -> Option<Object> {
        let cache = self.vector_of(mapping, change);
        let unneeded = match (vector, self.wants_vector(mapping, change)) {
            (Some(vector), Some(cache)) => {
                assert!(is_as_large(vector, cache), "{mapping:?} is logged with too small a vector");
                self.items.set_spare(mapping, Some(vector))
            }
            (vector, None) => vector, // Another change was faster.
            (None, Some(_)) => panic!("{mapping:?} is logged without a vector"),
        };
        let mut extents = self.items.extents(mapping);
        self.open.frees |= change == Change::RemoveLast || (change == Change::Remove && extents > 0);
        let before = extents_bytes(extents);
        if let Change::Extend { extents: now } = change {
            extents = extents.max(now);
            self.items.set_extents(mapping, extents);
        }
        let logged = self.items.log(mapping, self.open.id);
        self.open.bytes += change.beside(extents);
        if matches!(change, Change::Remove | Change::RemoveLast) {
            self.items.remove(mapping, change == Change::RemoveLast);
        }
        if logged.first_in_checkpoint {
            self.open.bytes += INODE + extents_bytes(extents);
            let vector = self.items.set_spare(mapping, None).expect("it has one");
            self.items.set_place(mapping, self.open.items.len());
            self.open.items.push((mapping, vector));
            return unneeded;
        }
        self.open.bytes += extents_bytes(extents) - before;
        let used = &mut self.open.items[self.items.place(mapping)];
        if !is_as_large(used.1, cache) {
            let spare = self.items.set_spare(mapping, None).expect("it has one");
            let smaller = core::mem::replace(&mut used.1, spare);
            self.items.set_spare(mapping, Some(smaller));
        }
        unneeded
    }

    // ---- checkpoints ----

    /// Closes the open checkpoint in order to write it; false when nothing has changed.
    pub fn close(&mut self) -> bool {
        if self.open.items.is_empty() {
            return false;
        }
        let next = Checkpoint::new(CheckpointId(self.open.id.0 + 1));
        let mut checkpoint = core::mem::replace(&mut self.open, next);
        self.unwritten += checkpoint.bytes;
        checkpoint.lsn = self.head;
        checkpoint.last_record = self.record + (self.unwritten - 1) / (RECORD - RECORD_HEADER);
        self.head += checkpoint.bytes;
        self.closed.push_back(checkpoint);
        true
    }

    /// Whether all in-core logs are on their way to the disk.
    pub fn are_records_busy(&self) -> bool {
        self.sent.len() >= RECORDS_MAX
    }

    /// The next record to be sent off: a full one, or if it is forced what there is.
    pub fn next_record(&mut self, forced: bool) -> Option<Record> {
        let payload = self.unwritten.min(RECORD - RECORD_HEADER);
        if payload == 0 || (payload < RECORD - RECORD_HEADER && !forced) {
            return None;
        }
        let len = (payload + RECORD_HEADER).next_multiple_of(512);
        let record = Record { number: self.record, offset: self.written % self.size, len: Bytes(len) };
        self.unwritten -= payload;
        self.record += 1;
        self.written += len;
        self.sent.push_back(false);
        Some(record)
    }

    /// A record is on the disk.
    ///
    /// # Panics
    /// When it is not on its way.
    pub fn record_written(&mut self, number: u64) {
        let first = self.record - self.sent.len() as u64;
        let index = usize::try_from(number - first).expect("few records are on their way");
        self.sent[index] = true;
        while self.sent.front() == Some(&true) {
            self.sent.pop_front();
        }
    }

    /// Records on their way to the disk.
    pub fn records_on_their_way(&self) -> core::ops::Range<u64> {
        self.record - self.sent.len() as u64..self.record
    }

    /// Whether a checkpoint up to `id` is not committed.
    pub fn is_waiting(&self, id: CheckpointId) -> bool {
        self.closed.front().is_some_and(|checkpoint| checkpoint.id <= id)
    }

    /// The newest checkpoint that is closed and not committed.
    pub fn last_closed(&self) -> Option<CheckpointId> {
        self.closed.back().map(|checkpoint| checkpoint.id)
    }

    /// Whether a checkpoint is on the disk that is not committed: [`XfsLog::commit`] has work.
    pub fn can_commit(&self) -> bool {
        let on_disk = self.record - self.sent.len() as u64;
        self.closed.front().is_some_and(|checkpoint| checkpoint.last_record < on_disk)
    }

    /// Whether blocks were freed that nobody takes before a checkpoint is on the disk (`xfs_extent_busy`).
    pub fn has_busy_blocks(&self) -> bool {
        self.open.frees || self.closed.iter().any(|checkpoint| checkpoint.frees)
    }

    /// Intents that a change of an inode needs, each an object of [`Cache::XfsExtentFree`]: two extents of a file that
    /// goes are freed in one transaction (`XFS_ITRUNC_MAX_EXTENTS`).
    pub fn wants_intents(&self, mapping: MappingId, change: Change) -> usize {
        let goes = matches!(change, Change::Remove | Change::RemoveLast);
        if goes { usize::from(self.items.extents(mapping).div_ceil(2)) } else { 0 }
    }

    /// The open checkpoint holds an intent until it is on the disk.
    pub(crate) fn add_intent(&mut self, intent: Object) {
        self.open.intents.push(intent);
    }

    /// Unpins up to `count` inodes of the oldest checkpoint if it is on the disk, and frees their vectors.
    /// Appends clusters that are clean now.
    pub(crate) fn commit<T: Trace>(
        &mut self,
        core: &mut Core<T>,
        cpu: CpuId,
        count: usize,
        clean: &mut Vec<ClusterId>,
    ) -> Option<Committed> {
        if !self.can_commit() {
            return None;
        }
        let checkpoint = self.closed.front_mut().expect("just seen");
        let from = checkpoint.committed;
        checkpoint.committed = checkpoint.items.len().min(from + count);
        let items = checkpoint.committed - from;
        for &(mapping, vector) in &checkpoint.items[from..checkpoint.committed] {
            core.free_object(cpu, vector);
            let cluster = self.items.cluster(mapping);
            if self.items.unpin(mapping, checkpoint.lsn) && self.items.is_cluster_clean(cluster) {
                clean.push(cluster);
            }
            self.items.drop_freed_chunk(mapping, clean);
        }
        let ends = checkpoint.committed == checkpoint.items.len();
        if ends {
            let done = self.closed.pop_front().expect("just seen");
            for intent in done.intents {
                core.free_object(cpu, intent);
            }
        }
        Some(Committed { items: items as u64, ends })
    }

    // ---- flushing ----

    /// Copies what can be flushed of a cluster into its buffer; how many inodes.
    pub(super) fn flush(&mut self, cluster: ClusterId) -> u32 {
        self.items.flush(cluster)
    }

    /// The buffer of a cluster is on the disk; how many inodes are clean now, and whether all of it is.
    pub(crate) fn flushed(&mut self, cluster: ClusterId) -> (u32, bool) {
        let cleaned = self.items.flushed(cluster);
        (cleaned, cleaned > 0 && self.items.is_cluster_clean(cluster))
    }

    /// What an inode is to the log.
    pub fn state(&self, mapping: MappingId) -> ItemState {
        self.items.state(mapping)
    }

    // ---- for checks ----

    /// Vectors in checkpoints and in reserve, and intents.
    pub(crate) fn objects(&self) -> impl Iterator<Item = Object> + '_ {
        let all = || self.closed.iter().chain([&self.open]);
        let used = all().flat_map(|checkpoint| &checkpoint.items[checkpoint.committed..]);
        let intents = all().flat_map(|checkpoint| &checkpoint.intents);
        used.map(|(_, vector)| *vector).chain(self.items.spares()).chain(intents.copied())
    }

    /// What is wrong, if anything is.
    pub(crate) fn check(&self) -> Result<(), &'static str> {
        let mut pins = vec![];
        for checkpoint in self.closed.iter().chain([&self.open]) {
            for &(mapping, _) in &checkpoint.items[checkpoint.committed..] {
                let index = mapping.0 as usize;
                if pins.len() <= index {
                    pins.resize(index + 1, 0);
                }
                pins[index] += 1;
            }
        }
        self.items.check(&pins)?;
        let starts = self.closed.iter().map(|checkpoint| checkpoint.lsn);
        if !starts.is_sorted() || self.closed.back().is_some_and(|last| last.lsn + last.bytes != self.head) {
            return Err("checkpoints do not lie one behind the other in the log");
        }
        let used = self.head - self.tail() + self.open.bytes;
        if used > self.size { Err("the log holds more than there is room for") } else { Ok(()) }
    }
}
