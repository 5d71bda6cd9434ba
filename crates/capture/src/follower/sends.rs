//! `sendfile`: its beginning is seen, and how far it came is found when its task is seen next, by where its source
//! stands then. Servers make this call for each request, and its end would cost as much as the request.

use trace::{Operation, OperationKind};

use super::{Begun, Follower, Next, UnderWay};
use crate::calls::{CopyEnd, known};
use crate::maps;

/// A call that has begun so long ago may be over without its task being seen again.
const LONG_NS: u64 = 50_000_000;

impl Follower {
    /// A file is to be sent.
    pub(super) fn send(&mut self, tid: i32, source: CopyEnd, to: CopyEnd, len: u64, tells_end: bool) -> Next {
        let (from, to) = (self.end_of_copy(tid, source, false), self.end_of_copy(tid, to, true));
        if tells_end || from.is_none() {
            return match (from, to) {
                (None, None) => Next::Done,
                (from, to) if tells_end => self.begin(tid, UnderWay::Copy { from, to }),
                _ => Next::Done,
            };
        }
        let (Some(from), Some(held)) = (from, self.file_of(tid, source.fd)) else { return Next::Done };
        let len = self.files.there(&held, from.1, len);
        self.begin(tid, UnderWay::Sending { from, to, source, len });
        Next::Done
    }

    /// A task is seen again, or is about to end: what it was to send is sent, as far as it was.
    pub(super) fn sent(&mut self, tid: i32) {
        let Some(task) = self.tasks.get_mut(&tid) else { return };
        if !matches!(task.begun.as_ref().map(|begun| &begun.what), Some(UnderWay::Sending { .. })) {
            return;
        }
        let number = task.number;
        let Some(begun) = task.begun.take() else { return };
        let UnderWay::Sending { from: (file, offset), to, source, len } = begun.what else { return };
        let Begun { place, at_ns, think_ns, .. } = begun;
        let stands = self.end_of_copy(tid, source, false).filter(|(now, _)| *now == file).map(|(_, at)| at);
        // Where it stands may be forgotten by now, or be used for something else.
        let came = stands.and_then(|at| at.checked_sub(offset)).filter(|came| *came <= len).unwrap_or(len);
        if came == 0 {
            return self.came_to_nothing(tid, &begun);
        }
        let blank = Operation {
            at_ns,
            think_ns,
            took_ns: 0,
            task: number,
            kind: OperationKind::Read,
            object: file,
            offset,
            len: came,
            detail: 0,
        };
        let write = to.map(|(object, offset)| Operation {
            think_ns: 0,
            kind: OperationKind::Write,
            object,
            offset,
            ..blank
        });
        let operations: Vec<Operation> = std::iter::once(blank).chain(write).collect();
        for operation in &operations {
            self.counts[operation.kind as usize] += 1;
        }
        if let Some(task) = self.tasks.get_mut(&tid) {
            task.line.owe(self.pace.prices().of(OperationKind::Read, 0));
        }
        self.gaps.noted += 1;
        self.ledger.end(place, operations);
    }

    /// The same by the clock, for tasks that are not seen again for long.
    pub(super) fn settle_sends(&mut self) {
        let now = self.now_ns();
        let long = |begun: &Begun| {
            matches!(begun.what, UnderWay::Sending { .. }) && now.saturating_sub(begun.at_ns) > LONG_NS
        };
        let sending: Vec<i32> = self
            .tasks
            .iter()
            .filter(|(_, task)| task.begun.as_ref().is_some_and(long))
            .map(|(tid, _)| *tid)
            .collect();
        for tid in sending {
            let sends = maps::call_of(tid).and_then(known).is_some_and(|known| known.sends());
            if !sends {
                self.sent(tid);
            }
        }
    }
}
