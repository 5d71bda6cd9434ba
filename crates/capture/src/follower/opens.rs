//! Opens: their beginning is seen, and what they came to is found later.
//!
//! A file that is opened gets the lowest number that is free (open(2)). All numbers of a process are known when an
//! open begins; when its task is seen next, a number that is new is what it has opened: then the open is settled.
//! All other calls that give a number to a file, and `exec`, which may close it, are seen, too, before they happen.
//! Where several tasks of a process open at a time, a new number is that of the one whose path ends as the file's
//! does, or of the oldest. So each is told once, and of two that differ in nothing it does not matter which is whose.

use std::sync::Arc;

use rustix::fs::OFlags;
use trace::Operation;

use super::{Begun, Follower, Next, UnderWay};
use crate::calls::{Descriptor, PathAt, known};
use crate::descriptors::{New, Probe};
use crate::files::Looked;
use crate::{maps, sys};

impl Follower {
    /// A file is to be opened.
    pub(super) fn open(&mut self, tid: i32, path: PathAt, flags: u64) -> Next {
        let Some(pid) = self.tasks.get(&tid).map(|task| task.process) else { return Next::Done };
        if self.tells_ends {
            return self.begin(tid, UnderWay::Open { flags });
        }
        // What is there already is not what is opened now.
        self.find_new(pid, None);
        let Some(process) = self.processes.get_mut(&pid) else { return Next::Done };
        process.opening.push(tid);
        let alone = process.is_alone();
        let name = if alone { None } else { sys::read_path(tid, path.address) };
        let name = name.and_then(|path| Some(path.rsplit(|byte| *byte == b'/').next()?.to_vec()));
        self.cutting += usize::from(cuts(flags));
        self.begin(tid, UnderWay::Opening { flags, name });
        Next::Done
    }

    /// A task is seen again, or is about to end: whether what it was to open is open.
    pub(crate) fn settle(&mut self, tid: i32) {
        let Some(task) = self.tasks.get(&tid) else { return };
        let pid = task.process;
        if let Some(process) = self.processes.get_mut(&pid) {
            process.closed_by(tid);
        }
        self.sent(tid);
        if self.process_that_opens(tid).is_none() {
            return;
        }
        let told = self.find_new(pid, Some(tid)) && !self.is_opened_again(pid, tid);
        if let Some((begun, _)) = self.opening_over(tid) {
            self.gaps.unsettled += u64::from(!told);
            self.came_to_nothing(tid, &begun);
        }
    }

    /// The same by the clock, for tasks that are not seen again for long.
    pub(crate) fn settle_all(&mut self) {
        let opening: Vec<i32> =
            self.processes.values().flat_map(|process| process.opening.iter().copied()).collect();
        self.settle_sends();
        for tid in opening {
            let is_over = is_in_another_call(tid);
            let Some(pid) = self.process_that_opens(tid) else { continue };
            if self.find_new(pid, Some(tid)) && is_over {
                self.settle(tid);
            }
        }
    }

    /// The process of a task of which it is not known whether it has opened what it was to.
    pub(super) fn process_that_opens(&self, tid: i32) -> Option<i32> {
        let task = self.tasks.get(&tid)?;
        let opens = matches!(task.begun.as_ref()?.what, UnderWay::Opening { .. });
        opens.then_some(task.process)
    }

    /// Looks what numbers of a process are new, and whose they are; up to that of `wanted`, if it is told. Whether
    /// the kernel said.
    pub(super) fn find_new(&mut self, pid: i32, wanted: Option<i32>) -> bool {
        while let Some(process) = self.processes.get_mut(&pid) {
            let (fd, looked) = match process.descriptors.next_new(&mut self.files, process.reserved()) {
                New::Number(fd, looked) => (fd, looked),
                New::None => return true,
                New::Refused => return false,
            };
            let alone = process.is_alone();
            match looked {
                Some(looked) => self.is_new(pid, fd, looked),
                None => {
                    process.descriptors.set(fd, None);
                    // What it has opened is no file, or it was given this number later, because it has opened none.
                    if alone && wanted.is_some() {
                        return true;
                    }
                }
            }
            if wanted.is_some_and(|tid| self.process_that_opens(tid).is_none()) {
                return true;
            }
        }
        false
    }

    /// Whether a task has opened the very file that another one was to close, under its number: its path ends as the
    /// file's does, and it has got no other number.
    fn is_opened_again(&mut self, pid: i32, tid: i32) -> bool {
        let numbers = self.processes.get(&pid).map(|process| process.descriptors.maybe_closed());
        for fd in numbers.unwrap_or_default() {
            let Some(process) = self.processes.get_mut(&pid) else { return false };
            let Probe::Open(taken) = process.descriptors.probe(fd) else { continue };
            let Some(looked) = self.files.look(taken) else { continue };
            if self.asked_for(tid, &looked).is_some_and(|name| name == self.name_of(&looked)) {
                self.is_new(pid, fd, looked);
                return true;
            }
        }
        false
    }

    /// A number of a process is this file now.
    fn is_new(&mut self, pid: i32, fd: Descriptor, looked: Looked) {
        let opener = self.opener_of(pid, &looked);
        let opened = opener.and_then(|tid| Some((tid, self.opening_over(tid)?)));
        let Some((tid, (begun, flags))) = opened else {
            // It came by another way, which nobody sees: over a socket.
            if let Some(process) = self.processes.get_mut(&pid) {
                process.descriptors.set(fd, Some(Arc::new(looked.held)));
            }
            return;
        };
        let Begun { place, at_ns, wall_ns, think_ns, .. } = begun;
        let Some(did) = self.opened(pid, wall_ns, flags, fd, looked) else { return };
        let Some(task) = self.tasks.get_mut(&tid) else { return };
        task.line.owe(self.pace.prices().of(did.kind, 0));
        let operation = Operation {
            at_ns,
            think_ns,
            took_ns: 0,
            task: task.number,
            kind: did.kind,
            object: did.object,
            offset: did.offset,
            len: did.len,
            detail: did.detail,
        };
        self.counts[operation.kind as usize] += 1;
        self.gaps.noted += 1;
        self.ledger.end(place, vec![operation]);
    }

    /// Which task of a process opened this: one that asked for the same access; of several the one that asked for
    /// the same name, or the oldest.
    fn opener_of(&self, pid: i32, looked: &Looked) -> Option<i32> {
        let opening = || self.processes.get(&pid).into_iter().flat_map(|process| process.opening.iter());
        let mut openers = opening().filter(|tid| self.asked_for(**tid, looked).is_some());
        let oldest = *openers.next()?;
        if openers.next().is_none() {
            return Some(oldest);
        }
        let name = self.name_of(looked);
        let same = opening().find(|tid| self.asked_for(**tid, looked).is_some_and(|asked| asked == name));
        Some(same.copied().unwrap_or(oldest))
    }

    /// The name that a task asked for, nothing where it is alone; `None` where it is to open none of this access.
    fn asked_for(&self, tid: i32, looked: &Looked) -> Option<&[u8]> {
        match &self.tasks.get(&tid)?.begun.as_ref()?.what {
            UnderWay::Opening { flags, name } if looked.has_access(*flags) => {
                Some(name.as_deref().unwrap_or_default())
            }
            _ => None,
        }
    }

    /// The last part of a file's path.
    fn name_of(&self, looked: &Looked) -> &[u8] {
        let path = self.files.rows.get(looked.held.file as usize).map_or(&[][..], |row| row.path.as_bytes());
        path.rsplit(|byte| *byte == b'/').next().unwrap_or_default()
    }

    /// What a task was to open is open, or not: nothing is under way any more.
    pub(super) fn opening_over(&mut self, tid: i32) -> Option<(Begun, u64)> {
        let pid = self.process_that_opens(tid)?;
        let begun = self.tasks.get_mut(&tid)?.begun.take()?;
        let flags = if let UnderWay::Opening { flags, .. } = begun.what { flags } else { 0 };
        self.cutting = self.cutting.saturating_sub(usize::from(cuts(flags)));
        if let Some(process) = self.processes.get_mut(&pid) {
            process.opening.retain(|other| *other != tid);
            if process.opening.is_empty() {
                process.descriptors.forget_closed();
                process.tasks_peak = process.tasks.max(1);
            }
        }
        Some((begun, flags))
    }

    /// Whether a child has its parent's numbers, and not a copy of them.
    pub(super) fn shares_numbers(parent: i32, child: i32) -> bool {
        sys::same_files(parent, child).unwrap_or(true)
    }
}

/// Whether an open cuts its file.
fn cuts(flags: u64) -> bool {
    flags & u64::from(OFlags::TRUNC.bits()) != 0
}

/// Whether a task waits in a call that does not open.
fn is_in_another_call(tid: i32) -> bool {
    let Some(number) = maps::call_of(tid) else { return false };
    !known(number).is_some_and(|known| known.opens())
}
