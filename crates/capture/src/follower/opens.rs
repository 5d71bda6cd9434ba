//! Opens, of which the beginning is seen, and whose end nobody waits for where it can be told later.
//!
//! A file that is opened gets the lowest number that is free (open(2)). It is known before, and when the task is
//! seen next it is there or not: then the open is settled. All other calls that give the number to a file, and
//! `exec`, which may close it, are seen, too, before they happen. Where other tasks have the same numbers, and
//! where the file is cut, the end is waited for.

use rustix::fs::OFlags;
use trace::Operation;

use super::{Begun, Follower, Next, UnderWay};
use crate::calls::{Descriptor, known};
use crate::descriptors::Probe;
use crate::{maps, sys};

impl Follower {
    /// A file is to be opened.
    pub(super) fn open(&mut self, tid: i32, flags: u64) -> Next {
        let number = self.sure_number(tid, flags);
        match (self.begin(tid, UnderWay::Open { flags, number }), number) {
            (_, Some(_)) => Next::Done,
            (next, None) => next,
        }
    }

    /// The number that it gets, if that is sure until the task is seen next.
    fn sure_number(&mut self, tid: i32, flags: u64) -> Option<Descriptor> {
        let cuts = flags & u64::from(OFlags::TRUNC.bits()) != 0;
        // Numbers are asked of the first task, which may be gone while others are left.
        if self.tells_ends || cuts || self.tasks.get(&tid)?.process != tid {
            return None;
        }
        let process = self.processes.get_mut(&tid)?;
        let alone = process.tasks == 1 && !process.descriptors.shared;
        if alone { process.descriptors.next_number(&mut self.files) } else { None }
    }

    /// A task is seen again, or is about to end: whether what it was to open is open.
    pub(crate) fn settle(&mut self, tid: i32) {
        let Some((flags, number)) = self.unsettled(tid) else { return };
        let probe = self.process_of(tid).map_or(Probe::Refused, |process| process.descriptors.probe(number));
        self.settle_by(tid, flags, number, probe);
    }

    /// The same by the clock, for tasks that are not seen again for long.
    pub(crate) fn settle_all(&mut self) {
        let tasks: Vec<i32> =
            self.tasks.keys().copied().filter(|tid| self.unsettled(*tid).is_some()).collect();
        for tid in tasks {
            let Some((flags, number)) = self.unsettled(tid) else { continue };
            let is_over = is_in_another_call(tid);
            let Some(process) = self.process_of(tid) else { continue };
            match process.descriptors.probe(number) {
                Probe::Free if !is_over => {}
                Probe::Refused => {}
                probe => self.settle_by(tid, flags, number, probe),
            }
        }
    }

    /// What a task was to open, and where.
    pub(super) fn unsettled(&self, tid: i32) -> Option<(u64, Descriptor)> {
        match self.tasks.get(&tid)?.begun.as_ref()?.what {
            UnderWay::Open { flags, number: Some(number) } => Some((flags, number)),
            _ => None,
        }
    }

    fn settle_by(&mut self, tid: i32, flags: u64, number: Descriptor, probe: Probe) {
        let Some(task) = self.tasks.get_mut(&tid) else { return };
        let task_number = task.number;
        let Some(Begun { place, at_ns, think_ns, .. }) = task.begun.take() else { return };
        let opened = match probe {
            Probe::Open(taken) => self.opened(tid, at_ns, flags, number, taken),
            Probe::Free => None,
            Probe::Refused => {
                self.gaps.unsettled += 1;
                None
            }
        };
        let operation = opened.map(|did| Operation {
            at_ns,
            think_ns,
            took_ns: 0,
            task: task_number,
            kind: did.kind,
            object: did.object,
            offset: did.offset,
            len: did.len,
            detail: did.detail,
        });
        if let Some(operation) = operation {
            self.counts[operation.kind as usize] += 1;
            self.gaps.noted += 1;
            if let Some(task) = self.tasks.get_mut(&tid) {
                task.idle_since_ns = at_ns;
            }
        }
        self.ledger.end(place, operation.into_iter().collect());
    }

    /// Whether a child has its parent's numbers, and not a copy of them.
    pub(super) fn shares_numbers(parent: i32, child: i32) -> bool {
        sys::same_files(parent, child).unwrap_or(true)
    }
}

/// Whether a task waits in a call that does not open.
fn is_in_another_call(tid: i32) -> bool {
    let Some(number) = maps::call_of(tid) else { return false };
    !known(number).is_some_and(|known| known.opens())
}
