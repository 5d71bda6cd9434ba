//! Who waited in which wait, for how long, what ended it, and whether anything could have.
//!
//! A wait is *futile* when it ran to its timeout and nothing was under way that could have ended it.
//! What could have is a property of the wait:
//!
//! | kind | what ends it early | futile if it timed out and |
//! |---|---|---|
//! | [`WaitKind::Writes`] | the end of some write | none was in flight, nor sent while it lasted |
//! | [`WaitKind::Reclaim`] | progress of others in reclaim | always: nobody made any |
//! | [`WaitKind::Io`] | its own request | never |
//! | [`WaitKind::Pause`] | nothing: it is meant to last | never |
//! | [`WaitKind::Task`] | another task, which holds a lock or works | never |
//! | [`WaitKind::Idle`] | work | never: nobody suffers |
//!
//! Waits are kept as sums by task, wait, section ([`Within`]), end and futility, and by phase of the
//! program; a wait belongs to the phase in which it ended. Memory is bounded by the numbers of these, not
//! by that of waits, and no wait allocates but the first of its kind.
//!
//! Left out: which write it would have been. Read next: `machine/wait.rs`, which notes a wait when it is over.

use kernel::machine::{TaskId, WaitReason, Woken};
use units::Nanos;

use crate::accounts::sections::Within;
use crate::event::FOREVER;

/// Lengths are counted by powers of two of a microsecond: class 0 is below 1 us, class `n` below `2^n` us.
pub const LENGTH_CLASSES: usize = 32;

/// What ends a wait, other than its timeout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum WaitKind {
    /// A thread with nothing to do, or a program that sleeps or waits for its own tasks by choice.
    Idle,
    /// The request that it waits for.
    Io,
    /// Some write to some disk.
    Writes,
    /// Progress of somebody else in reclaim.
    Reclaim,
    /// Nothing: a pause of a given length.
    Pause,
    /// Another task: a lock that it holds, or work that was asked of it.
    Task,
}

impl WaitKind {
    /// What ends a wait for `reason`.
    pub const fn of(reason: WaitReason) -> Self {
        match reason {
            WaitReason::Congestion | WaitReason::ThrottleWriteback => Self::Writes,
            WaitReason::DirectReclaimThrottle
            | WaitReason::FragmentStall
            | WaitReason::ThrottleNoProgress
            | WaitReason::PressureWait => Self::Reclaim,
            WaitReason::PageRead
            | WaitReason::PageWriteback
            | WaitReason::RequestQueue
            | WaitReason::LogWrite
            | WaitReason::LogSpace
            | WaitReason::InodeReclaim => Self::Io,
            WaitReason::DirtyThrottle | WaitReason::OverHigh | WaitReason::OomLock => Self::Pause,
            WaitReason::FileLock | WaitReason::ListDrain => Self::Task,
            WaitReason::KswapdIdle
            | WaitReason::KswapdDoze
            | WaitReason::KcompactdIdle
            | WaitReason::KhugepagedIdle
            | WaitReason::FlusherIdle
            | WaitReason::UserSleep
            | WaitReason::Join
            | WaitReason::Periodic => Self::Idle,
        }
    }

    /// Whether a wait that ended so was for nothing; `no_write` says that no write was in flight from
    /// its begin to its end.
    const fn is_futile(self, ended: Ended, no_write: bool) -> bool {
        match (ended, self) {
            (Ended::TimedOut, Self::Writes) => no_write,
            (Ended::TimedOut, Self::Reclaim) => true,
            _ => false,
        }
    }
}

/// The function of the kernel that waits for `reason`, by its newest name, and where that has several
/// reasons the reason.
pub const fn kernel_name(reason: WaitReason) -> &'static str {
    match reason {
        WaitReason::Congestion => "congestion_wait",
        WaitReason::PressureWait => "zonepressure_wait",
        WaitReason::ThrottleWriteback => "reclaim_throttle: writeback",
        WaitReason::ThrottleNoProgress => "reclaim_throttle: no progress",
        WaitReason::DirectReclaimThrottle => "throttle_direct_reclaim",
        WaitReason::FragmentStall => "stall_fragmentation",
        WaitReason::PageRead => "folio_wait_locked",
        WaitReason::PageWriteback => "folio_wait_writeback",
        WaitReason::RequestQueue => "blk_mq_get_tag",
        WaitReason::LogWrite => "xlog_wait",
        WaitReason::LogSpace => "xlog_grant_head_wait",
        WaitReason::InodeReclaim => "xfs_reclaim_inode",
        WaitReason::FileLock => "i_rwsem",
        WaitReason::DirtyThrottle => "balance_dirty_pages",
        WaitReason::OverHigh => "mem_cgroup_handle_over_high",
        WaitReason::OomLock => "oom_lock",
        WaitReason::ListDrain => "drain_all_pages",
        WaitReason::KswapdIdle => "kswapd asleep",
        WaitReason::KswapdDoze => "kswapd dozing",
        WaitReason::KcompactdIdle => "kcompactd asleep",
        WaitReason::KhugepagedIdle => "khugepaged asleep",
        WaitReason::FlusherIdle => "flusher asleep",
        WaitReason::UserSleep => "nanosleep",
        WaitReason::Join => "wait4",
        WaitReason::Periodic => "delayed work",
    }
}

/// How a wait came to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ended {
    /// Somebody woke the task.
    Woken,
    /// The timeout passed.
    TimedOut,
    /// It has not: it lasted when the run ended.
    Lasts,
}

impl From<Woken> for Ended {
    fn from(woken: Woken) -> Self {
        match woken {
            Woken::Signalled => Self::Woken,
            Woken::TimedOut => Self::TimedOut,
        }
    }
}

/// All waits of one task in one phase that are alike.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waits {
    /// The number of phases that were over when they ended.
    pub phase: usize,
    /// The task.
    pub task: TaskId,
    /// Its name.
    pub name: String,
    /// What it waited for.
    pub reason: WaitReason,
    /// In the middle of what, and who could have ended it.
    pub within: Within,
    /// What ended them.
    pub ended: Ended,
    /// Whether nothing could have ended them before their timeout.
    pub futile: bool,
    /// How many there were.
    pub count: u64,
    /// The sum of their timeouts; 0 where they had none.
    pub requested: Nanos,
    /// How long they lasted altogether; of one that lasts still, up to now.
    pub spent: Nanos,
    /// The longest one.
    pub longest: Nanos,
    /// How many were of which length: see [`LENGTH_CLASSES`].
    pub lengths: [u32; LENGTH_CLASSES],
}

/// A wait that is over, or lasts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Finished {
    pub(crate) reason: WaitReason,
    pub(crate) within: Within,
    pub(crate) ended: Ended,
    /// [`FOREVER`] for none.
    pub(crate) timeout: u64,
    pub(crate) spent: u64,
    /// Whether no write was in flight meanwhile.
    pub(crate) no_write: bool,
}

impl Finished {
    pub(crate) const fn is_futile(&self) -> bool {
        WaitKind::of(self.reason).is_futile(self.ended, self.no_write)
    }

    /// The timeout, 0 for none.
    pub(crate) const fn requested(&self) -> u64 {
        if self.timeout == FOREVER { 0 } else { self.timeout }
    }

    /// The class of its length.
    pub(crate) fn length_class(&self) -> usize {
        let bits = u64::BITS - (self.spent / 1000).leading_zeros();
        (bits as usize).min(LENGTH_CLASSES - 1)
    }
}

/// Waits of a task that are alike, in one phase.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WaitTotal {
    pub(crate) reason: WaitReason,
    pub(crate) within: Within,
    pub(crate) ended: Ended,
    pub(crate) futile: bool,
    pub(crate) count: u64,
    /// Sum of the timeouts of those that had one.
    pub(crate) requested: u64,
    pub(crate) spent: u64,
    pub(crate) longest: u64,
    pub(crate) lengths: [u32; LENGTH_CLASSES],
}

impl WaitTotal {
    /// One wait.
    pub(crate) fn of(wait: Finished) -> Self {
        let mut total = Self {
            reason: wait.reason,
            within: wait.within,
            ended: wait.ended,
            futile: wait.is_futile(),
            count: 0,
            requested: 0,
            spent: 0,
            longest: 0,
            lengths: [0; LENGTH_CLASSES],
        };
        total.add(wait);
        total
    }

    fn add(&mut self, wait: Finished) {
        self.count += 1;
        self.requested += wait.requested();
        self.spent += wait.spent;
        self.longest = self.longest.max(wait.spent);
        let class = &mut self.lengths[wait.length_class()];
        *class = class.saturating_add(1);
    }
}

/// Adds a wait to those that are alike, of which a task has few.
pub(crate) fn note(waits: &mut Vec<WaitTotal>, wait: Finished) {
    let futile = wait.is_futile();
    let alike = |total: &&mut WaitTotal| {
        total.reason == wait.reason
            && total.within == wait.within
            && total.ended == wait.ended
            && total.futile == futile
    };
    match waits.iter_mut().find(alike) {
        Some(total) => total.add(wait),
        None => waits.push(WaitTotal::of(wait)),
    }
}

/// Sums of a phase that is over.
#[derive(Debug)]
pub(crate) struct Past {
    pub(crate) phase: usize,
    pub(crate) task: u32,
    pub(crate) total: WaitTotal,
}
