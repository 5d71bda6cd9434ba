//! The state of the lock of a file (`i_rwsem`), and of those who wait for it. Who takes it: [`super::locking`].

use std::cell::Cell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use crate::machine::QueueId;

/// How a task holds the lock of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hold {
    Shared,
    Exclusive,
}

/// Who holds the lock of a file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Held {
    #[default]
    Free,
    /// By so many readers.
    Shared(u32),
    Exclusive,
}

/// The lock of a file.
#[derive(Debug, Default)]
pub(crate) struct FileLock {
    held: Cell<Held>,
    /// Somebody waits in line for it.
    pub(super) awaited: Cell<bool>,
}

impl FileLock {
    /// Takes it if it is free to take, and nobody waits in line.
    #[inline]
    pub(crate) fn take_at_once(&self, hold: Hold) -> bool {
        !self.awaited.get() && self.try_take(hold)
    }

    #[inline]
    pub(super) fn try_take(&self, hold: Hold) -> bool {
        let now = match (self.held.get(), hold) {
            (Held::Free, Hold::Exclusive) => Held::Exclusive,
            (Held::Free, Hold::Shared) => Held::Shared(1),
            (Held::Shared(readers), Hold::Shared) => Held::Shared(readers + 1),
            _ => return false,
        };
        self.held.set(now);
        true
    }

    #[inline]
    pub(super) fn give_back(&self) {
        self.held.set(match self.held.get() {
            Held::Shared(readers) if readers > 1 => Held::Shared(readers - 1),
            _ => Held::Free,
        });
    }
}

/// A task that waits in line.
#[derive(Debug)]
pub(super) struct Waiter {
    pub(super) hold: Hold,
    pub(super) queue: QueueId,
    pub(super) has_it: Rc<Cell<bool>>,
}

/// Those who wait for locks of files.
#[derive(Debug, Default)]
pub(crate) struct FileWaiters {
    /// By number of the inode.
    pub(super) lines: BTreeMap<u32, VecDeque<Waiter>>,
    /// Queues that nobody waits on.
    pub(super) queues: Vec<QueueId>,
}
