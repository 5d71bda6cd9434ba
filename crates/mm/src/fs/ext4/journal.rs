//! The journal of ext4: which metadata blocks belong to which transaction (jbd2; MECHANISMS-6X 8.2).
//!
//! ```text
//!   change --> running --5 s, full, fsync--> committing --log written--> dirty --flusher--> clean
//!                 ^                              |                         \--checkpoint--/
//!                 +------- changed again --------+
//! ```
//! A metadata block is a page of the block device's mapping with one buffer head. While it belongs to a transaction
//! its page is not dirty: nobody but the journal may write it, and nobody can drop its buffers, so reclaim that meets
//! it puts it on the active list ([`PageFlags::JOURNAL`]). After the commit it is a dirty page like any other. Its
//! copy in the log takes up room until it is written: a log without room makes its oldest transactions written
//! (a checkpoint).
//!
//! Each commit begins with what was written since then: the oldest transactions leave the log, up to the first block
//! that still is dirty (`__jbd2_journal_clean_checkpoint_list`).
//!
//! Left out: the wait of a change for a block that is being written, blocks that are revoked, that a checkpoint of a
//! block in the running transaction commits that one first, and the shrinker of the journal (5.14). Neighbours:
//! [`crate::pages::heads`] for what each block costs, [`super::layout`] for what blocks there are; when to commit, and
//! the I/O, are the driver's.

use std_alloc::collections::{BTreeSet, VecDeque};
use std_alloc::vec::Vec;

use units::CpuId;

use crate::base::event::Trace;
use crate::base::frame::PageFlags;
use crate::base::ids::MappingId;
use crate::core::Core;
use crate::fs::ext4::layout::{DirectoryBlocks, Made};
use crate::lru::lists::Lru;
use crate::pages::cache::PageCache;
use crate::pages::tree::Slot;
use crate::slab::object::Object;

/// Blocks that one descriptor block of the log names: 16 bytes each.
const TAGS: u32 = 4096 / 16 - 1;

/// What came of a change to a metadata block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum BlockChange {
    /// It belongs to the running transaction now; `opened`: that one begins with it.
    Joined {
        /// The transaction was empty before.
        opened: bool,
    },
    /// The block is not in memory.
    Missing,
    /// The block is being read.
    Locked,
    /// An object for it is needed first ([`crate::pages::heads`]).
    WantsHead,
}

/// A transaction whose copy is in the log.
#[derive(Debug, Clone)]
struct Logged {
    id: u64,
    log_blocks: u32,
    blocks: Vec<u32>,
}

/// The journal of one disk, with the metadata blocks that it protects.
#[derive(Debug, Clone)]
pub struct Journal {
    /// The block device as a file.
    mapping: MappingId,
    /// Blocks of the log.
    size: u32,
    /// Blocks of the log that are taken.
    used: u32,
    /// Blocks of the running transaction, each once.
    running: Vec<u32>,
    /// Blocks of the one that is being committed, ascending.
    committing: Vec<u32>,
    /// Those of them that the running transaction changed since.
    again: BTreeSet<u32>,
    /// Transactions that may still have blocks to be written, the oldest first.
    logged: VecDeque<Logged>,
    /// The number of the running transaction.
    running_id: u64,
    /// Transactions below this number are in the log.
    committed_id: u64,
    /// How far the metadata was made.
    pub made: Made,
    /// Where directories are.
    pub directories: DirectoryBlocks,
}

impl Journal {
    /// An empty one with so many blocks of log, for the block device with this mapping.
    pub fn new(mapping: MappingId, size: u32) -> Self {
        Self {
            mapping,
            size,
            used: 0,
            running: Vec::new(),
            committing: Vec::new(),
            again: BTreeSet::new(),
            logged: VecDeque::new(),
            running_id: 0,
            committed_id: 0,
            made: Made::default(),
            directories: DirectoryBlocks::default(),
        }
    }

    /// The mapping of the block device.
    pub fn mapping(&self) -> MappingId {
        self.mapping
    }

    /// Blocks of the log.
    pub fn size(&self) -> u32 {
        self.size
    }

    /// Blocks of the log that are taken.
    pub fn used(&self) -> u32 {
        self.used
    }

    /// Whether a new change has to wait until the running transaction is closed (`j_max_transaction_buffers`).
    pub fn is_full(&self) -> bool {
        self.running.len() >= self.size as usize / 4
    }

    /// The transaction that all changes up to now are in; none when they are all in the log.
    pub fn newest(&self) -> Option<u64> {
        if !self.running.is_empty() {
            return Some(self.running_id);
        }
        (!self.committing.is_empty()).then(|| self.running_id - 1)
    }

    /// Whether a transaction is in the log.
    pub fn is_committed(&self, id: u64) -> bool {
        id < self.committed_id
    }

    /// A handle changes `block` and looks it up `accesses` times on the way. If it needs a `head` it is given that,
    /// and asks for one unless there is none to be had (`without`).
    pub(crate) fn change<T: Trace>(
        &mut self,
        (core, lru, cache): (&mut Core<T>, &mut Lru, &mut PageCache),
        cpu: CpuId,
        block: u32,
        accesses: u32,
        head: &mut Option<Object>,
        without: bool,
    ) -> BlockChange {
        let Slot::Page(pfn) = cache.find(self.mapping, block) else { return BlockChange::Missing };
        let flags = core.alloc.frames.flags(pfn);
        if flags.has(PageFlags::LOCKED) {
            return BlockChange::Locked;
        }
        if !flags.has_any(PageFlags::JOURNAL.set(PageFlags::JOURNAL_HEAD)) {
            match head.take() {
                Some(object) => {
                    cache.heads.add(self.mapping, block, object);
                    core.alloc.frames.set_flags(pfn, PageFlags::JOURNAL_HEAD);
                }
                None if without => {}
                None => return BlockChange::WantsHead,
            }
        }
        for _ in 0..accesses {
            lru.mark_accessed(core, cpu, pfn);
        }
        let joins = if flags.has(PageFlags::JOURNAL) {
            self.committing.binary_search(&block).is_ok() && self.again.insert(block)
        } else {
            core.alloc.frames.set_flags(pfn, PageFlags::JOURNAL);
            true
        };
        if joins {
            self.running.push(block);
        }
        BlockChange::Joined { opened: joins && self.running.len() == 1 }
    }

    /// Blocks of log that a transaction of so many blocks takes: with descriptors and the commit block.
    fn log_blocks(blocks: usize) -> u32 {
        let blocks = u32::try_from(blocks).expect("fewer blocks than pages");
        blocks + blocks.div_ceil(TAGS) + 1
    }

    /// Which of the first `blocks` blocks of a transaction in the log are not copies of metadata but name those:
    /// descriptors, each before the blocks that it has room for.
    pub fn descriptors(blocks: u32) -> impl Iterator<Item = u32> {
        (0..blocks).step_by(1 + TAGS as usize)
    }

    /// Whether the running transaction fits into the log as it is.
    pub fn has_room(&self) -> bool {
        self.logged.is_empty() || self.used + Self::log_blocks(self.running.len()) <= self.size
    }

    /// Closes the running transaction in order to commit it. Returns the blocks of log that it takes, without the
    /// commit block, which is written when they are there; none when nothing has changed.
    ///
    /// # Panics
    /// When another one is being committed.
    pub fn close(&mut self) -> Option<u32> {
        assert!(self.committing.is_empty(), "one transaction is committed at a time");
        if self.running.is_empty() {
            return None;
        }
        core::mem::swap(&mut self.running, &mut self.committing);
        self.committing.sort_unstable();
        self.running_id += 1;
        Some(Self::log_blocks(self.committing.len()) - 1)
    }

    /// The transaction is in the log: its blocks are dirty now, but for those that changed since. Returns how many
    /// pages became dirty.
    pub(crate) fn committed<T: Trace>(&mut self, core: &mut Core<T>, cache: &mut PageCache) -> u64 {
        let blocks = core::mem::take(&mut self.committing);
        let mut dirtied = 0;
        let id = self.running_id - 1;
        for block in &blocks {
            cache.heads.log(self.mapping, *block, id);
            if self.again.contains(block) {
                continue;
            }
            let Slot::Page(pfn) = cache.find(self.mapping, *block) else {
                panic!("block {block} went while it was in a transaction")
            };
            core.alloc.frames.clear_flags(pfn, PageFlags::JOURNAL);
            dirtied += u64::from(cache.set_dirty(core, pfn));
        }
        self.again.clear();
        let log_blocks = Self::log_blocks(blocks.len());
        self.used += log_blocks;
        self.logged.push_back(Logged { id, log_blocks, blocks });
        self.committed_id = self.running_id;
        dirtied
    }

    /// What still has to be written before the oldest transaction may leave the log: the first such block, and
    /// whether it is on its way already. None: it has left, or there is none.
    pub(crate) fn checkpoint<T: Trace>(
        &mut self,
        core: &mut Core<T>,
        cache: &mut PageCache,
        cpu: CpuId,
    ) -> Option<(u32, bool)> {
        let oldest = self.logged.front_mut()?;
        while let Some(&block) = oldest.blocks.last() {
            if let Slot::Page(pfn) = cache.find(self.mapping, block)
                && !cache.heads.has_moved(self.mapping, block, oldest.id)
            {
                let flags = core.alloc.frames.flags(pfn);
                // One that changed since is in the log a second time, or will be.
                if flags.has(PageFlags::JOURNAL) {
                    cache.heads.unlog(self.mapping, block);
                } else if flags.has_any(PageFlags::DIRTY.set(PageFlags::WRITEBACK)) {
                    return Some((block, flags.has(PageFlags::WRITEBACK)));
                } else {
                    cache.drop_head(core, cpu, pfn);
                }
            }
            oldest.blocks.pop();
        }
        self.used -= oldest.log_blocks;
        self.logged.pop_front();
        None
    }

    /// Lets the oldest transactions leave the log of which everything is written.
    pub(crate) fn clean<T: Trace>(&mut self, core: &mut Core<T>, cache: &mut PageCache, cpu: CpuId) {
        while !self.logged.is_empty() && self.checkpoint(core, cache, cpu).is_none() {}
    }

    /// Walks all transactions; returns what is wrong. `held`: pages that say they belong to one.
    pub(crate) fn check(&self, held: &dyn Fn(u32) -> bool, all_held: u64) -> Result<(), &'static str> {
        let of: BTreeSet<u32> = self.running.iter().chain(&self.committing).copied().collect();
        if !of.iter().all(|&block| held(block)) {
            return Err("a block of a transaction has left memory");
        }
        if of.len() as u64 != all_held {
            return Err("a page says that it belongs to a transaction, and belongs to none");
        }
        let both = self.running.len() + self.committing.len() - self.again.len();
        if both != of.len() {
            return Err("a block is in a transaction twice");
        }
        let used: u32 = self.logged.iter().map(|logged| logged.log_blocks).sum();
        if used == self.used { Ok(()) } else { Err("the log has another length than its transactions") }
    }
}
