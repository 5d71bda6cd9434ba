//! A call ends: what it came to.

use std::sync::Arc;

use trace::{NONE, Operation, OperationKind, open};

use rustix::fs::OFlags;

use super::{Begun, Follower, UnderWay};
use crate::calls::Descriptor;
use crate::files::Looked;

/// How much coarser than ours the clock is that dates files, in seconds.
const COARSE: f64 = 0.02;

impl Follower {
    /// The call that a task was in has ended, with this value or minus this error.
    pub(crate) fn leave(&mut self, tid: i32, result: i64) {
        let ended_ns = self.now_ns();
        let Some(task) = self.tasks.get_mut(&tid) else { return };
        let number = task.number;
        let Some(begun) = task.begun.take() else { return };
        let done = match u64::try_from(result) {
            Ok(result) => self.came_to(tid, &begun, result),
            Err(_) => Vec::new(),
        };
        let Begun { place, at_ns, think_ns, what, .. } = begun;
        let blank = Operation {
            at_ns,
            think_ns: 0,
            took_ns: 0,
            task: number,
            kind: OperationKind::Sync,
            object: NONE,
            offset: 0,
            len: 0,
            detail: 0,
        };
        // What one call did, it did at once: the first takes the time.
        let operations: Vec<Operation> = done
            .into_iter()
            .enumerate()
            .map(|(index, Did { kind, object, offset, len, detail })| {
                let (think_ns, took_ns) = if index == 0 { (think_ns, ended_ns - at_ns) } else { (0, 0) };
                Operation { think_ns, took_ns, kind, object, offset, len, detail, ..blank }
            })
            .collect();
        for operation in &operations {
            self.counts[operation.kind as usize] += 1;
        }
        if let Some(task) = self.tasks.get_mut(&tid) {
            match operations.is_empty() {
                true => task.line.give_back(think_ns),
                // Making a mapping is no work that a replay does.
                false if matches!(what, UnderWay::Map { .. } | UnderWay::Remap { .. }) => {}
                false => task.line.forget(),
            }
        }
        self.ledger.end(place, operations);
    }

    /// A task is gone, or begins anew: its call has no end.
    pub(super) fn forget_call(&mut self, tid: i32) {
        self.sent(tid);
        let opening = self.opening_over(tid).map(|(begun, _)| begun);
        self.gaps.unsettled += u64::from(opening.is_some());
        let begun = opening.or_else(|| self.tasks.get_mut(&tid)?.begun.take());
        if let Some(begun) = begun {
            self.came_to_nothing(tid, &begun);
        }
    }

    /// What was to be done was not, as far as is known: the task thought all the same.
    pub(super) fn came_to_nothing(&mut self, tid: i32, begun: &Begun) {
        if let Some(task) = self.tasks.get_mut(&tid) {
            task.line.give_back(begun.think_ns);
        }
        self.ledger.end(begun.place, Vec::new());
    }

    fn came_to(&mut self, tid: i32, begun: &Begun, result: u64) -> Vec<Did> {
        match begun.what {
            UnderWay::Transfer { file, write, offset } => {
                let kind = if write { OperationKind::Write } else { OperationKind::Read };
                vec![Did::on(kind, file, offset, result)]
            }
            UnderWay::Open { flags } => {
                self.opened_at(tid, begun.wall_ns, flags, result).into_iter().collect()
            }
            // Found among what is new, or where the source stands, and not by the call's end.
            UnderWay::Opening { .. } | UnderWay::Sending { .. } => Vec::new(),
            UnderWay::Copy { from, to } => {
                let read = from.map(|(file, at)| Did::on(OperationKind::Read, file, at, result));
                let write = to.map(|(file, at)| Did::on(OperationKind::Write, file, at, result));
                read.into_iter().chain(write).collect()
            }
            UnderWay::Allocate { file: _, end: _, keeps_size: true } => Vec::new(),
            UnderWay::Allocate { file, end, .. } => vec![Did::on(OperationKind::Truncate, file, 0, end)],
            UnderWay::Cut { file, len } => vec![Did::on(OperationKind::Truncate, file, 0, len)],
            UnderWay::Sync { file } => vec![Did::on(OperationKind::Fsync, file, 0, 0)],
            UnderWay::SyncAll => vec![Did::on(OperationKind::Sync, NONE, 0, 0)],
            UnderWay::Unlink { file } => vec![Did::on(OperationKind::Unlink, file, 0, 0)],
            UnderWay::Rename { file, replaced } => {
                vec![Did { detail: replaced, ..Did::on(OperationKind::Rename, file, 0, 0) }]
            }
            UnderWay::Map { mapping } => {
                let number = self.new_mapping(mapping);
                let Some(memory) = self.memory_of(tid) else { return Vec::new() };
                // A fixed address takes the place of what lay there.
                let gone = memory.unmap(result, mapping.len);
                memory.map(result, mapping.len, number);
                let gone = gone
                    .iter()
                    .map(|part| Did::on(OperationKind::Unmap, part.mapping, part.offset, part.len));
                gone.chain([Did::on(OperationKind::Map, number, 0, mapping.len)]).collect()
            }
            UnderWay::Remap { start, old_len, len, keeps_old } => {
                self.remapped(tid, (start, old_len), (result, len), keeps_old)
            }
        }
    }

    /// An open has ended: what its number is.
    fn opened_at(&mut self, tid: i32, wall_ns: u64, flags: u64, fd: u64) -> Option<Did> {
        let fd = Descriptor::try_from(fd).ok()?;
        let pid = self.tasks.get(&tid)?.process;
        let descriptors = &mut self.processes.get_mut(&pid)?.descriptors;
        let taken = descriptors.take(fd)?;
        match self.files.look(taken) {
            Some(looked) if looked.has_access(flags) => self.opened(pid, wall_ns, flags, fd, looked),
            looked => {
                descriptors.set(fd, looked.map(|looked| Arc::new(looked.held)));
                None
            }
        }
    }

    /// A number is this file now, which was opened by these flags.
    pub(super) fn opened(
        &mut self,
        pid: i32,
        wall_ns: u64,
        flags: u64,
        fd: Descriptor,
        looked: Looked,
    ) -> Option<Did> {
        let Looked { held, flags: has, born } = looked;
        let descriptors = &mut self.processes.get_mut(&pid)?.descriptors;
        let asked = |flag: libc::c_int| flags & u64::from(flag.cast_unsigned()) != 0;
        let began = self.began_at + wall_ns as f64 / 1e9;
        let created = asked(libc::O_CREAT) && born >= began - COARSE;
        let bits = [
            (open::READ, held.may(false)),
            (open::WRITE, held.may(true)),
            (open::CREATED, created),
            (open::TRUNCATED, asked(libc::O_TRUNC) && !created && held.may(true)),
            (open::DIRECT, has.contains(OFlags::DIRECT)),
            (open::SYNC, has.intersects(OFlags::SYNC | OFlags::DSYNC)),
        ];
        let detail = bits.into_iter().filter(|(_, set)| *set).fold(0, |bits, (bit, _)| bits | bit);
        let file = held.file;
        if detail & open::TRUNCATED != 0 {
            self.files.cut(file);
        }
        descriptors.set(fd, Some(Arc::new(held)));
        Some(Did { detail, ..Did::on(OperationKind::Open, file, 0, 0) })
    }

    /// Pages moved or stayed, and a mapping grew or shrank.
    fn remapped(&mut self, tid: i32, old: (u64, u64), new: (u64, u64), keeps_old: bool) -> Vec<Did> {
        let ((start, old_len), (to, len)) = (old, new);
        let Some(memory) = self.memory_of(tid) else { return Vec::new() };
        let unmapped =
            |part: &crate::memory::Part| Did::on(OperationKind::Unmap, part.mapping, part.offset, part.len);
        let (old_len, len) = (crate::memory::pages(old_len), crate::memory::pages(len));
        let kept = old_len.min(len);
        let mut did: Vec<Did> = Vec::new();
        if len < old_len {
            did.extend(memory.unmap(start + len, old_len - len).iter().map(unmapped));
        }
        let model = memory.parts(start, 1).first().copied();
        if to != start {
            did.extend(memory.unmap(to, len).iter().map(unmapped));
            if !keeps_old {
                memory.move_to(start, kept, to);
            }
        }
        // What is new belongs to a mapping of its own, like the one that grew.
        let from = if keeps_old { 0 } else { kept };
        if len > from
            && let Some(model) = model
        {
            let like = self.mappings[model.mapping as usize];
            let file_offset = if like.file == NONE { 0 } else { like.file_offset + model.offset + from };
            let number = self.new_mapping(trace::TraceMapping { file_offset, len: len - from, ..like });
            if let Some(memory) = self.memory_of(tid) {
                memory.map(to + from, len - from, number);
            }
            did.push(Did::on(OperationKind::Map, number, 0, len - from));
        }
        did
    }
}

/// What a call did.
#[derive(Debug, Clone, Copy)]
pub(super) struct Did {
    pub(super) kind: OperationKind,
    pub(super) object: u32,
    pub(super) offset: u64,
    pub(super) len: u64,
    pub(super) detail: u32,
}

impl Did {
    const fn on(kind: OperationKind, object: u32, offset: u64, len: u64) -> Self {
        Self { kind, object, offset, len, detail: 0 }
    }
}
