//! The thread that writes changed inodes to their places, so that the log can go on (`xfsaild_push`;
//! MECHANISMS 11.3, MECHANISMS-6X 8.3).
//!
//! It walks the AIL from its tail to the target. An inode that is pinned holds it up: when the walk is
//! over it forces the log. Any other is flushed with all of its cluster that can be; the buffers are
//! written together when the walk ends. Then it rests, for a time by how much it was held up.
//!
//! Left out: quotas, buffers in the AIL. Neighbours: [`super::log`] has the target, a thread of the
//! kernel crate does what [`AilPush::step`] says.

use std_alloc::vec::Vec;

use units::Nanos;

use crate::base::ids::MappingId;
use crate::fs::xfs::buf::{ClusterId, ClusterState, XfsBuffers};
use crate::fs::xfs::items::{ItemState, Lsn};
use crate::fs::xfs::log::XfsLog;

/// Inodes that it looks at in one step.
const CHUNK: u32 = 64;
/// A walk ends when it was held up by more than so many.
const STUCK_MAX: u32 = 100;
/// How long it rests at the target, and where nearly all was on its way or pinned.
const REST_DONE: Nanos = Nanos::from_millis(50);
const REST_STUCK: Nanos = Nanos::from_millis(20);

/// What the thread does next.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum AilNext {
    /// Pay for so many inodes looked at, and go on.
    Walk(u32),
    /// Force the log and wait for that.
    ForceLog,
    /// Bring the buffer of a cluster into memory: it was evicted.
    Read(ClusterId),
    /// Write these buffers, in the order of the disk; wait for nothing.
    Write(Vec<ClusterId>),
    /// Rest for so long, or until woken.
    Sleep(Option<Nanos>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Begins,
    Walks,
    Ends,
    Rests,
}

/// The thread between two waits.
#[derive(Debug, Clone)]
pub struct AilPush {
    phase: Phase,
    /// Where the walk goes on.
    cursor: Option<(MappingId, Lsn)>,
    looked: u32,
    stuck: u32,
    flushing: u32,
    at_target: bool,
    wants_force: bool,
    queued: Vec<ClusterId>,
    /// How long it rests between two walks that get on.
    pause: Nanos,
}

impl AilPush {
    /// A thread that has done nothing yet and rests for `pause` between two walks that get on.
    pub const fn new(pause: Nanos) -> Self {
        Self {
            phase: Phase::Begins,
            cursor: None,
            looked: 0,
            stuck: 0,
            flushing: 0,
            at_target: false,
            wants_force: false,
            queued: Vec::new(),
            pause,
        }
    }

    /// What to do next, with the log and the buffers as they are now.
    pub fn step(&mut self, log: &mut XfsLog, buffers: &mut XfsBuffers) -> AilNext {
        if self.phase == Phase::Begins {
            (self.looked, self.stuck, self.flushing, self.at_target) = (0, 0, 0, false);
            self.phase = Phase::Walks;
            if core::mem::take(&mut self.wants_force) && self.cursor.is_none() && log.has_work() {
                return AilNext::ForceLog;
            }
        }
        if self.phase == Phase::Walks
            && let Some(next) = self.walk(log, buffers)
        {
            return next;
        }
        if self.phase == Phase::Ends {
            self.phase = Phase::Rests;
            if !self.queued.is_empty() {
                self.queued.sort_unstable();
                return AilNext::Write(core::mem::take(&mut self.queued));
            }
        }
        self.phase = Phase::Begins;
        AilNext::Sleep(self.rest(log))
    }

    /// Where the walk goes on, unless that inode has moved: then at the tail.
    fn position(&self, log: &XfsLog) -> Option<(MappingId, Lsn)> {
        let there = self.cursor.filter(|&(mapping, lsn)| log.items().is_at(mapping, lsn));
        there.or_else(|| log.items().first_in_ail())
    }

    fn walk(&mut self, log: &mut XfsLog, buffers: &mut XfsBuffers) -> Option<AilNext> {
        let mut position = self.position(log);
        for looked in 0..CHUNK {
            let Some((mapping, _)) = position.filter(|&(_, lsn)| lsn < log.target()) else {
                self.at_target = true;
                self.phase = Phase::Ends;
                return Some(AilNext::Walk(looked));
            };
            if self.stuck > STUCK_MAX {
                self.cursor = position;
                self.phase = Phase::Ends;
                return Some(AilNext::Walk(looked));
            }
            match log.state(mapping) {
                ItemState::Pinned => {
                    self.stuck += 1;
                    self.wants_force = true;
                }
                ItemState::Flushing => self.flushing += 1,
                ItemState::Dirty => {
                    let cluster = log.items().cluster(mapping);
                    match buffers.touch(cluster) {
                        ClusterState::Missing => {
                            self.cursor = position;
                            return Some(AilNext::Read(cluster));
                        }
                        ClusterState::Reading | ClusterState::Writing => self.stuck += 1,
                        ClusterState::Ready => {
                            flush_cluster(log, buffers, cluster);
                            self.queued.push(cluster);
                        }
                    }
                }
                ItemState::Clean => unreachable!("a clean inode is not in the AIL"),
            }
            self.looked += 1;
            position = log.items().next_in_ail(mapping);
        }
        self.cursor = position;
        if position.is_none() {
            self.at_target = true;
            self.phase = Phase::Ends;
        }
        Some(AilNext::Walk(CHUNK))
    }

    fn rest(&mut self, log: &XfsLog) -> Option<Nanos> {
        if self.at_target || self.looked == 0 {
            self.cursor = None;
            return log.has_work().then_some(REST_DONE);
        }
        if (self.stuck + self.flushing) * 100 / self.looked > 90 {
            self.cursor = None;
            return Some(REST_STUCK);
        }
        Some(self.pause)
    }
}

/// Copies what can be flushed of a cluster into its buffer, which is locked until it is written.
pub(crate) fn flush_cluster(log: &mut XfsLog, buffers: &mut XfsBuffers, cluster: ClusterId) {
    buffers.begin_write(cluster);
    let flushed = log.flush(cluster);
    assert!(flushed > 0, "cluster {} is flushed for an inode of it", cluster.0);
}
