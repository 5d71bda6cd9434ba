//! Descriptors of a process: what each number is, looked up when it is first used.
//!
//! A number is in the table only while nobody has closed it: every call that closes is seen, so that a number which
//! is absent is looked up anew. Numbers that threads of a process do not share (`CLONE_FILES` without
//! `CLONE_THREAD`, or the reverse) are left out.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags};

use crate::calls::Descriptor;
use crate::files::{Files, Held};

/// What a number is.
#[derive(Debug, Clone)]
enum Slot {
    /// Nothing that has pages: a socket, a pipe, a terminal.
    Other,
    File(Arc<Held>),
}

/// Numbers of one process.
#[derive(Debug)]
pub(crate) struct Descriptors {
    /// The process, to take descriptors from; nothing where it is gone.
    process: Option<OwnedFd>,
    slots: BTreeMap<Descriptor, Slot>,
    /// Lookups that were refused.
    pub(crate) refused: u64,
}

impl Descriptors {
    /// Those of a process that we know nothing of yet.
    pub(crate) fn of(pid: i32) -> Self {
        let pid = Pid::from_raw(pid);
        let process = pid.and_then(|pid| rustix::process::pidfd_open(pid, PidfdFlags::empty()).ok());
        Self { process, slots: BTreeMap::new(), refused: 0 }
    }

    /// Those of a child, which begins with its parent's.
    pub(crate) fn forked(&self, pid: i32) -> Self {
        Self { slots: self.slots.clone(), ..Self::of(pid) }
    }

    /// Another program runs: what was to be closed then is closed.
    pub(crate) fn forget_all(&mut self) {
        self.slots.clear();
    }

    /// The file of a number; nothing where it is none.
    pub(crate) fn file(&mut self, fd: Descriptor, files: &mut Files) -> Option<Arc<Held>> {
        match self.slots.get(&fd) {
            Some(Slot::File(held)) => Some(Arc::clone(held)),
            Some(Slot::Other) => None,
            None => {
                let slot = self.take(fd)?;
                let held = files.look(slot).map(|looked| Arc::new(looked.held));
                self.set(fd, held.clone());
                held
            }
        }
    }

    /// A descriptor of the process, as one of ours.
    pub(crate) fn take(&mut self, fd: Descriptor) -> Option<OwnedFd> {
        let process = self.process.as_ref().filter(|_| fd >= 0)?;
        match rustix::process::pidfd_getfd(process, fd, PidfdGetfdFlags::empty()) {
            Ok(taken) => Some(taken),
            Err(rustix::io::Errno::BADF) => None,
            Err(_) => {
                self.refused += 1;
                None
            }
        }
    }

    /// What a number is from now on.
    pub(crate) fn set(&mut self, fd: Descriptor, held: Option<Arc<Held>>) {
        self.slots.insert(fd, held.map_or(Slot::Other, Slot::File));
    }

    /// A number is closed; the file, if it was the last of this process that named it.
    pub(crate) fn close(&mut self, fd: Descriptor) -> Option<u32> {
        let Some(Slot::File(held)) = self.slots.remove(&fd) else { return None };
        let same = |slot: &Slot| matches!(slot, Slot::File(other) if other.file == held.file);
        (!self.slots.values().any(same)).then_some(held.file)
    }

    /// Numbers in a range, of those that are known.
    pub(crate) fn known_in(&self, first: u32, last: u32) -> Vec<Descriptor> {
        let bound = |number: u32| Descriptor::try_from(number).unwrap_or(Descriptor::MAX);
        let (first, last) = (bound(first), bound(last));
        if first > last {
            return Vec::new();
        }
        self.slots.range(first..=last).map(|(fd, _)| *fd).collect()
    }
}
