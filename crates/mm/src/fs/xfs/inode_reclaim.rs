//! Freeing inodes that the VFS has evicted: what the super-block shrinker of XFS and its worker do
//! (`xfs_reclaim_inodes_nr`; MECHANISMS 11.5, MECHANISMS-510-72 7.4).
//!
//! ```text
//!   for each group:  lock it (busy: skip it) --> 32 inodes from the cursor on --> next 32 ...
//!     an inode:   clean    -> freed
//!                 flushing -> wait for its buffer      }
//!                 pinned   -> force the log and wait   }  up to 5.8; since 5.9 it is passed by
//!                 dirty    -> write its cluster, wait  }
//! ```
//! Up to 5.8 a shrinker thus writes one inode after the other, with its cluster, and waits; whoever found
//! a group locked comes back to it in a second round and waits for the lock. The worker never waits.
//! The count is looked at behind a batch: however little is left of it, no group is passed over.
//!
//! Left out: inodes that somebody else has locked. Neighbours: [`super::reclaimable`] has the sets; a
//! driver of the kernel crate does what [`InodeReclaim::step`] says.

use std_alloc::collections::VecDeque;

use units::CpuId;

use crate::base::event::Trace;
use crate::base::ids::MappingId;
use crate::core::Core;
use crate::fs::state::Fs;
use crate::fs::xfs::ail::flush_cluster;
use crate::fs::xfs::buf::{ClusterId, ClusterState};
use crate::fs::xfs::items::ItemState;
use crate::fs::xfs::reclaimable::GROUPS;
use crate::version::rules::{self, Rules};

/// Inodes that are looked up at a time (`XFS_LOOKUP_BATCH`).
const BATCH: usize = 32;

/// What to do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum InodeNext {
    /// So many inodes were looked at, of which so many are freed: pay, and go on.
    Looked {
        /// Looked at.
        looked: u64,
        /// Freed.
        freed: u64,
    },
    /// Wait until some group is unlocked: this one is needed.
    WaitForGroup(usize),
    /// Wait until some cluster is written or read.
    WaitForCluster(ClusterId),
    /// Force the log and wait for that.
    ForceLog,
    /// Bring the buffer of a cluster into memory.
    Read(ClusterId),
    /// Write the buffer of a cluster, which is filled and locked, and wait for that.
    Write(ClusterId),
    /// There is no more to do.
    Done,
}

/// One pass over the evicted inodes.
#[derive(Debug, Clone)]
pub struct InodeReclaim {
    waits: bool,
    left: u64,
    /// In the second round locks are waited for, and cursors left alone.
    second_round: bool,
    skipped: bool,
    group: usize,
    /// The group is ours, and how far it is done.
    inside: Option<u32>,
    batch: VecDeque<(u32, MappingId)>,
    is_first_batch: bool,
    is_last_batch: bool,
    /// A group was unlocked, and nobody was told.
    unlocked: bool,
}

impl InodeReclaim {
    /// The shrinker looks at `count` inodes, by whole batches.
    pub fn shrinker(rules: &Rules, count: u64) -> Self {
        Self { waits: rules.inode_reclaim == rules::InodeReclaim::Waits, left: count, ..Self::worker() }
    }

    /// The worker looks at all of them once, and waits for nothing.
    pub fn worker() -> Self {
        Self {
            waits: false,
            left: u64::MAX,
            second_round: false,
            skipped: false,
            group: 0,
            inside: None,
            batch: VecDeque::new(),
            is_first_batch: true,
            is_last_batch: false,
            unlocked: false,
        }
    }

    /// The next step of the pass.
    pub(crate) fn step<T: Trace>(&mut self, fs: &mut Fs, core: &mut Core<T>, cpu: CpuId) -> InodeNext {
        loop {
            if self.inside.is_none() {
                match self.enter_group(fs) {
                    Enter::Entered => {}
                    Enter::Wait => return InodeNext::WaitForGroup(self.group),
                    Enter::Over => return InodeNext::Done,
                }
            }
            if self.batch.is_empty() && !self.next_batch(fs) {
                self.leave_group(fs);
                continue;
            }
            return self.work_on_batch(fs, core, cpu);
        }
    }

    /// Whether a group was unlocked since the last call, so that those who wait for one may look.
    pub fn take_unlocked(&mut self) -> bool {
        core::mem::take(&mut self.unlocked)
    }

    /// The group that the pass has locked.
    pub fn locked(&self) -> Option<usize> {
        self.inside.map(|_| self.group)
    }

    fn enter_group(&mut self, fs: &mut Fs) -> Enter {
        loop {
            if self.group == GROUPS {
                if !self.waits || !self.skipped || self.left == 0 || self.second_round {
                    return Enter::Over;
                }
                (self.second_round, self.group) = (true, 0);
            }
            let evicted = &mut fs.vfs.reclaimable;
            if !evicted.is_empty(self.group) {
                if evicted.try_lock(self.group) {
                    let from = if self.second_round { 0 } else { evicted.cursor(self.group) };
                    self.inside = Some(from);
                    (self.is_first_batch, self.is_last_batch) = (true, false);
                    return Enter::Entered;
                }
                if self.second_round {
                    return Enter::Wait;
                }
                self.skipped = true;
            }
            self.group += 1;
        }
    }

    /// Looks the next inodes of the group up; false when it is done.
    fn next_batch(&mut self, fs: &Fs) -> bool {
        let from = self.inside.expect("a group is ours");
        let is_enough = self.left == 0 && !self.is_first_batch;
        if is_enough || self.is_last_batch {
            return false;
        }
        self.is_first_batch = false;
        fs.vfs.reclaimable.first_from(self.group, from, BATCH, &mut self.batch);
        self.is_last_batch = self.batch.len() < BATCH;
        let Some(&(last, _)) = self.batch.back() else { return false };
        self.inside = Some(last + 1);
        if self.left != u64::MAX {
            self.left = self.left.saturating_sub(BATCH as u64);
        }
        true
    }

    fn leave_group(&mut self, fs: &mut Fs) {
        let from = self.inside.take().expect("a group is ours");
        let evicted = &mut fs.vfs.reclaimable;
        if !self.second_round {
            evicted.set_cursor(self.group, if self.is_last_batch { 0 } else { from });
        }
        evicted.unlock(self.group);
        self.unlocked = true;
        self.group += 1;
    }

    fn work_on_batch<T: Trace>(&mut self, fs: &mut Fs, core: &mut Core<T>, cpu: CpuId) -> InodeNext {
        if !self.waits {
            return self.free_clean(fs, core, cpu);
        }
        let (mut looked, mut freed) = (0, 0);
        while let Some(&(number, mapping)) = self.batch.front() {
            if !fs.vfs.reclaimable.has(number, mapping) {
                self.batch.pop_front(); // Somebody opened it, or freed it.
                continue;
            }
            match fs.xfs_log.state(mapping) {
                ItemState::Clean => {
                    fs.free_evicted(core, cpu, mapping);
                    freed += 1;
                }
                state if looked == 0 => return wait_for(fs, mapping, state),
                _ => return InodeNext::Looked { looked, freed },
            }
            self.batch.pop_front();
            looked += 1;
        }
        InodeNext::Looked { looked, freed }
    }

    /// Frees those of the batch that are clean. It was looked up just now, and nobody came in between.
    fn free_clean<T: Trace>(&mut self, fs: &mut Fs, core: &mut Core<T>, cpu: CpuId) -> InodeNext {
        let (looked, mut freed) = (self.batch.len() as u64, 0);
        for (_, mapping) in self.batch.drain(..) {
            if fs.xfs_log.items().is_clean(mapping) {
                fs.free_evicted(core, cpu, mapping);
                freed += 1;
            }
        }
        InodeNext::Looked { looked, freed }
    }
}

enum Enter {
    Entered,
    Wait,
    Over,
}

/// What has to happen before an inode is clean.
fn wait_for(fs: &mut Fs, mapping: MappingId, state: ItemState) -> InodeNext {
    let cluster = fs.xfs_log.items().cluster(mapping);
    match state {
        ItemState::Clean => unreachable!("a clean inode is freed"),
        ItemState::Flushing => InodeNext::WaitForCluster(cluster),
        ItemState::Pinned => InodeNext::ForceLog,
        ItemState::Dirty => match fs.xfs_buffers.touch(cluster) {
            ClusterState::Missing => InodeNext::Read(cluster),
            ClusterState::Reading | ClusterState::Writing => InodeNext::WaitForCluster(cluster),
            ClusterState::Ready => {
                flush_cluster(&mut fs.xfs_log, &mut fs.xfs_buffers, cluster);
                fs.xfs_buffers.write_for_reclaim(cluster);
                InodeNext::Write(cluster)
            }
        },
    }
}
