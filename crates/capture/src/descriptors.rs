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

/// Whether a number is there.
#[derive(Debug)]
pub(crate) enum Probe {
    /// It is.
    Open(OwnedFd),
    /// It is not.
    Free,
    /// The kernel does not say.
    Refused,
}

/// Numbers above this are not probed for a free one.
const PROBED_MAX: Descriptor = 4096;

/// Numbers of one process.
#[derive(Debug)]
pub(crate) struct Descriptors {
    /// The process, to take descriptors from; nothing where it is gone.
    process: Option<OwnedFd>,
    slots: BTreeMap<Descriptor, Slot>,
    /// Another process has the same numbers, or may have.
    pub(crate) shared: bool,
    /// Lookups that were refused.
    pub(crate) refused: u64,
}

impl Descriptors {
    /// Those of a process that we know nothing of yet.
    pub(crate) fn of(pid: i32) -> Self {
        let pid = Pid::from_raw(pid);
        let process = pid.and_then(|pid| rustix::process::pidfd_open(pid, PidfdFlags::empty()).ok());
        Self { process, slots: BTreeMap::new(), shared: false, refused: 0 }
    }

    /// Those of a child, which begins with its parent's.
    pub(crate) fn forked(&self, pid: i32) -> Self {
        Self { slots: self.slots.clone(), shared: self.shared, ..Self::of(pid) }
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
        match self.probe(fd) {
            Probe::Open(taken) => Some(taken),
            Probe::Free => None,
            Probe::Refused => {
                self.refused += u64::from(self.process.is_some());
                None
            }
        }
    }

    /// Whether a number is there now.
    pub(crate) fn probe(&self, fd: Descriptor) -> Probe {
        if fd < 0 {
            return Probe::Free;
        }
        let Some(process) = &self.process else { return Probe::Refused };
        match rustix::process::pidfd_getfd(process, fd, PidfdGetfdFlags::empty()) {
            Ok(taken) => Probe::Open(taken),
            Err(rustix::io::Errno::BADF) => Probe::Free,
            Err(_) => Probe::Refused,
        }
    }

    /// The number that the next file gets: the lowest that is free. Those below that we did not know are known
    /// then. Nothing where it cannot be had for sure.
    pub(crate) fn next_number(&mut self, files: &mut Files) -> Option<Descriptor> {
        loop {
            let mut free = 0;
            for fd in self.slots.keys() {
                if *fd != free {
                    break;
                }
                free += 1;
            }
            if free > PROBED_MAX {
                return None;
            }
            match self.probe(free) {
                Probe::Free => return Some(free),
                Probe::Refused => return None,
                Probe::Open(taken) => {
                    let held = files.look(taken).map(|looked| Arc::new(looked.held));
                    self.set(free, held);
                }
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
