//! Descriptors of a process: what each number is, looked up when it is first used.
//!
//! A number is in the table only while nobody has closed it: every call that closes is seen, so that a number which
//! is absent is looked up anew. Files get the lowest number that is free (open(2)), so that new ones are found where
//! the known ones end ([`Descriptors::next_new`]). A close is seen before it happens: where others have the same
//! numbers, one that is to be closed may still be what it was, free, or new. Numbers that threads of a process do not
//! share (`CLONE_FILES` without `CLONE_THREAD`, or the reverse) are left out.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags};

use crate::calls::Descriptor;
use crate::files::{Files, Held, Looked};
use crate::numbers::ByNumber;

/// `PIDFD_THREAD`.
const THREAD: u32 = libc::O_EXCL.cast_unsigned();

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

/// A number that is there, and was not known.
#[derive(Debug)]
pub(crate) enum New {
    /// This one: a file, or something else.
    Number(Descriptor, Option<Looked>),
    /// There is none.
    None,
    /// The kernel does not say.
    Refused,
}

/// A number that a task was to close.
#[derive(Debug)]
struct Closing {
    by: i32,
    /// Which file it was; nothing where it was none.
    file: Option<u32>,
    /// It has been closed: its task was seen again.
    done: bool,
}

/// Numbers of one process.
#[derive(Debug)]
pub(crate) struct Descriptors {
    /// The process, to take descriptors from; nothing where it is gone.
    process: Option<OwnedFd>,
    slots: BTreeMap<Descriptor, Slot>,
    /// How many numbers each file has.
    names: ByNumber<u32, u32>,
    unknown: Unknown,
    /// Numbers that tasks were to close, of which it is not known yet, or matters still, when they did.
    closing: BTreeMap<Descriptor, Closing>,
    /// Another process has the same numbers, or may have.
    pub(crate) shared: bool,
    /// Lookups that were refused.
    pub(crate) refused: u64,
}

impl Descriptors {
    /// Those of a process that we know nothing of yet.
    pub(crate) fn of(pid: i32) -> Self {
        Self {
            process: opened(pid, PidfdFlags::empty()),
            slots: BTreeMap::new(),
            names: ByNumber::default(),
            unknown: Unknown::default(),
            closing: BTreeMap::new(),
            shared: false,
            refused: 0,
        }
    }

    /// Takes descriptors from another task of the process, and `process` is its first. Kernels before 6.9 have them
    /// from the first alone: then they are refused.
    pub(crate) fn take_from(&mut self, tid: i32, process: i32) {
        let flags = if tid == process { PidfdFlags::empty() } else { PidfdFlags::from_bits_retain(THREAD) };
        self.process = opened(tid, flags);
    }

    /// Those of a child, which begins with its parent's.
    pub(crate) fn forked(&self, pid: i32) -> Self {
        Self {
            slots: self.slots.clone(),
            names: self.names.clone(),
            unknown: self.unknown.clone(),
            shared: self.shared,
            ..Self::of(pid)
        }
    }

    /// Another program runs: what was to be closed then is closed.
    pub(crate) fn forget_all(&mut self) {
        self.slots.clear();
        self.names.clear();
        self.unknown = Unknown::default();
        self.closing.clear();
    }

    /// Whether it is known what a number is.
    pub(crate) fn knows(&self, fd: Descriptor) -> bool {
        self.slots.contains_key(&fd)
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
                self.refused += 1;
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

    /// A number that is there and was not known, if there is one; [`Self::set`] is to say what it is. `reserved`: as
    /// many numbers as calls of others may have taken, or given back, without a file in them: open(2) and accept(2)
    /// take theirs first, and then wait.
    pub(crate) fn next_new(&mut self, files: &mut Files, mut reserved: u32) -> New {
        let mut from = 0;
        loop {
            let fd = self.unknown.from(from);
            let closing = self.closing.get(&fd);
            match self.probe(fd) {
                Probe::Open(taken) => {
                    let looked = files.look(taken);
                    let file = looked.as_ref().map(|looked| looked.held.file);
                    if closing.is_none_or(|closing| closing.done || closing.file != file) {
                        return New::Number(fd, looked);
                    }
                }
                // What was opened before it was closed lies beyond.
                Probe::Free if closing.is_some() => {}
                Probe::Free if reserved > 0 => reserved -= 1,
                Probe::Free => return New::None,
                Probe::Refused => return New::Refused,
            }
            from = fd + 1;
        }
    }

    /// Numbers that were to be closed, and are the same file as before: opened again, or not closed yet.
    pub(crate) fn maybe_closed(&self) -> Vec<Descriptor> {
        let maybe = |(_, closing): &(&Descriptor, &Closing)| !closing.done && closing.file.is_some();
        self.closing.iter().filter(maybe).map(|(fd, _)| *fd).collect()
    }

    /// A task is seen again: what it was to close is closed.
    pub(crate) fn closed_by(&mut self, tid: i32) {
        self.closing.values_mut().filter(|closing| closing.by == tid).for_each(|closing| closing.done = true);
    }

    /// Nobody opens now: where a number was that is closed does not matter any more.
    pub(crate) fn forget_closed(&mut self) {
        self.closing.retain(|_, closing| !closing.done);
    }

    /// What a number is from now on.
    pub(crate) fn set(&mut self, fd: Descriptor, held: Option<Arc<Held>>) {
        self.remove(fd);
        self.closing.remove(&fd);
        if let Some(held) = &held {
            *self.names.entry(held.file).or_default() += 1;
        }
        self.slots.insert(fd, held.map_or(Slot::Other, Slot::File));
        self.unknown.known(fd);
    }

    /// A number is about to be closed; the file, if it was the last of this process that named it. `by`: the task
    /// that does, where others have the same numbers.
    pub(crate) fn close(&mut self, fd: Descriptor, by: Option<i32>) -> Option<u32> {
        let held = self.remove(fd);
        if let Some(by) = by {
            let file = held.as_ref().map(|held| held.file);
            self.closing.insert(fd, Closing { by, file, done: false });
        }
        let held = held?;
        (!self.names.contains_key(&held.file)).then_some(held.file)
    }

    /// The file that a number was.
    fn remove(&mut self, fd: Descriptor) -> Option<Arc<Held>> {
        let slot = self.slots.remove(&fd)?;
        self.unknown.unknown(fd);
        let Slot::File(held) = slot else { return None };
        if let Some(names) = self.names.get_mut(&held.file) {
            *names -= 1;
            if *names == 0 {
                self.names.remove(&held.file);
            }
        }
        Some(held)
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

fn opened(task: i32, flags: PidfdFlags) -> Option<OwnedFd> {
    rustix::process::pidfd_open(Pid::from_raw(task)?, flags).ok()
}

/// Numbers that are not known: some, and all from one on.
#[derive(Debug, Clone, Default)]
struct Unknown {
    some: BTreeSet<Descriptor>,
    from: Descriptor,
    /// Known numbers far beyond.
    far: BTreeSet<Descriptor>,
}

impl Unknown {
    /// Numbers further beyond than this are kept by themselves, and not all that lie between.
    const FAR: Descriptor = 1024;

    fn known(&mut self, fd: Descriptor) {
        if fd < self.from {
            self.some.remove(&fd);
        } else if fd - self.from > Self::FAR {
            self.far.insert(fd);
        } else {
            self.some.extend(self.from..fd);
            self.from = fd + 1;
            self.far.remove(&fd);
            while self.far.remove(&self.from) {
                self.from += 1;
            }
        }
    }

    fn unknown(&mut self, fd: Descriptor) {
        if fd < self.from {
            self.some.insert(fd);
        }
        self.far.remove(&fd);
    }

    /// The first one from this number on.
    fn from(&self, fd: Descriptor) -> Descriptor {
        if let Some(first) = self.some.range(fd..).next() {
            return *first;
        }
        let mut first = self.from.max(fd);
        while self.far.contains(&first) {
            first += 1;
        }
        first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_number_that_is_not_known_is_found() {
        let mut unknown = Unknown::default();
        (0..10).chain([12, 255, 5000]).for_each(|fd| unknown.known(fd));
        assert_eq!((unknown.from(0), unknown.from(11), unknown.from(13)), (10, 11, 13));
        unknown.unknown(4);
        unknown.known(10);
        assert_eq!((unknown.from(0), unknown.from(5)), (4, 11));
        unknown.known(4);
        unknown.known(11);
        (13..5000).for_each(|fd| unknown.known(fd));
        assert_eq!((unknown.from(0), unknown.from(5000)), (5001, 5001));
        unknown.unknown(5000);
        assert_eq!((unknown.from(0), unknown.from(6000)), (5000, 6000));
        assert!(unknown.far.is_empty());
    }
}
