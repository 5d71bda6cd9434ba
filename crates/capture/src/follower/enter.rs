//! A call begins: what it will come to, as far as that is known now.
//!
//! A read of a regular file comes to what it asks for, up to the end of the file; a write to what it has. So the
//! beginning is enough where nobody waits for the end: the kernel says where the file stands and how long it is,
//! through a descriptor that we hold, too. A call that fails for another reason (a disk that is full or broken) is
//! taken for one that did what it was asked.

use std::sync::Arc;

use trace::{NONE, OperationKind, TraceMapping};

use super::{Follower, Next, UnderWay};
use crate::calls::{Call, CopyEnd, Descriptor, MapCall, Wanted, Way, known};
use crate::files::Held;
use crate::memory::Part;
use crate::sys;

/// Buffers of a call at most (`IOV_MAX`).
const VECTORS_MAX: u64 = 1024;
/// Bytes that one call transfers at most (`MAX_RW_COUNT`).
const TRANSFER_MAX: u64 = 0x7fff_f000;
/// `CLOSE_RANGE_CLOEXEC`: closes later.
const CLOSE_LATER: u32 = 4;
/// `MREMAP_DONTUNMAP`.
const DONT_UNMAP: u32 = 4;

impl Follower {
    /// A call of a task begins. `tells_end`: its end can be told, too.
    pub(crate) fn enter(&mut self, tid: i32, number: u64, arguments: [u64; 6], tells_end: bool) -> Next {
        if let Some(task) = self.tasks.get_mut(&tid) {
            task.sleeps =
                [libc::SYS_nanosleep, libc::SYS_clock_nanosleep].map(|call| call as u64).contains(&number);
        }
        let Some(known) = known(number) else { return Next::Done };
        self.settle(tid);
        match (known.read)(arguments) {
            Call::Transfer { fd, write, wanted, at } => self.transfer(tid, fd, write, wanted, at, tells_end),
            Call::Close { fd } => self.close(tid, fd),
            Call::Replace { fd } => self.close(tid, fd),
            Call::CloseRange { flags, .. } if flags & CLOSE_LATER != 0 => Next::Done,
            Call::CloseRange { first, last, .. } => self.close_range(tid, first, last),
            Call::Open { path, flags } => self.open(tid, path, flags),
            Call::OpenHow { path, address } => {
                let mut flags = [0; 8];
                sys::read_memory(tid, address, &mut flags);
                self.open(tid, path, u64::from_ne_bytes(flags))
            }
            Call::Settle => Next::Done,
            Call::Unseen(name) => {
                *self.gaps.unseen.entry(name).or_default() += 1;
                Next::Done
            }
            call => self.enter_file_call(tid, call, tells_end),
        }
    }

    fn enter_file_call(&mut self, tid: i32, call: Call, tells_end: bool) -> Next {
        match call {
            Call::Copy { from, to } => {
                let (from, to) = (self.end_of_copy(tid, from, false), self.end_of_copy(tid, to, true));
                if from.is_none() && to.is_none() {
                    return Next::Done;
                }
                self.begin(tid, UnderWay::Copy { from, to })
            }
            Call::Send { from, to, len } => self.send(tid, from, to, len, tells_end),
            Call::Advise { fd, offset, len, advice } => {
                self.note_on(tid, fd, OperationKind::AdviseFile, offset, len, advice)
            }
            Call::ReadAhead { fd, offset, len } => {
                self.note_on(tid, fd, OperationKind::ReadAhead, offset, len, 0)
            }
            Call::Cut { fd, len } => {
                if let Some(held) = self.file_of(tid, fd) {
                    self.files.cut(held.file);
                }
                self.note_on(tid, fd, OperationKind::Truncate, 0, len, 0)
            }
            Call::CutPath { path, len } => match self.file_at(tid, path, true) {
                Some(file) => {
                    self.files.cut(file);
                    self.begin(tid, UnderWay::Cut { file, len })
                }
                None => Next::Done,
            },
            Call::Allocate { fd, mode, end } => match self.file_of(tid, fd) {
                // Without a mode it grows the file; with one it keeps the size, or makes holes.
                Some(held) => {
                    let what = UnderWay::Allocate { file: held.file, end, keeps_size: mode != 0 };
                    self.begin(tid, what)
                }
                None => Next::Done,
            },
            Call::Sync { fd } => match self.file_of(tid, fd) {
                Some(held) => self.begin(tid, UnderWay::Sync { file: held.file }),
                None => Next::Done,
            },
            Call::SyncAll => self.begin(tid, UnderWay::SyncAll),
            Call::Unlink { path } => match self.file_at(tid, path, false) {
                Some(file) => self.begin(tid, UnderWay::Unlink { file }),
                None => Next::Done,
            },
            Call::Rename { from, to, flags } => match self.file_at(tid, from, false) {
                Some(file) if flags & libc::RENAME_EXCHANGE == 0 => {
                    let replaced = self.file_at(tid, to, false).unwrap_or(NONE);
                    self.begin(tid, UnderWay::Rename { file, replaced })
                }
                _ => Next::Done,
            },
            call => self.enter_memory_call(tid, call),
        }
    }

    fn enter_memory_call(&mut self, tid: i32, call: Call) -> Next {
        match call {
            Call::Map(call) => self.map(tid, call),
            Call::Unmap { start, len } => {
                let gone = self.memory_of(tid).map(|memory| memory.unmap(start, len)).unwrap_or_default();
                self.note_parts(tid, OperationKind::Unmap, &gone, 0);
                Next::Done
            }
            Call::Remap { start, old_len, len, flags } => {
                let keeps_old = flags & DONT_UNMAP != 0 || old_len == 0;
                self.begin(tid, UnderWay::Remap { start, old_len, len, keeps_old })
            }
            Call::Break { end } => self.heap(tid, end),
            Call::AdviseMemory { start, len, advice } => {
                let Some(memory) = self.memory_of(tid) else { return Next::Done };
                if advice == trace::advice::DONT_NEED {
                    memory.emptied(start, len);
                }
                let parts = memory.parts(start, len);
                self.note_parts(tid, OperationKind::AdviseMapping, &parts, advice);
                Next::Done
            }
            Call::SyncMemory { start } => {
                let part = self.memory_of(tid).and_then(|memory| memory.parts(start, 1).first().copied());
                match part.map(|part| self.mappings[part.mapping as usize].file) {
                    Some(file) if file != NONE => self.begin(tid, UnderWay::Sync { file }),
                    _ => Next::Done,
                }
            }
            _ => Next::Done,
        }
    }

    fn transfer(
        &mut self,
        tid: i32,
        fd: Descriptor,
        write: bool,
        wanted: Wanted,
        at: Option<u64>,
        tells_end: bool,
    ) -> Next {
        let Some(held) = self.file_of(tid, fd).filter(|held| held.may(write)) else { return Next::Done };
        let offset = match (write, at) {
            (true, at) => held.write_position(at),
            (false, Some(at)) => at,
            (false, None) => held.position(),
        };
        if tells_end {
            return self.begin(tid, UnderWay::Transfer { file: held.file, write, offset });
        }
        let wanted = self.wanted(tid, wanted).min(TRANSFER_MAX);
        if self.cutting > 0 {
            self.files.cut(held.file);
        }
        let len = if write { wanted } else { self.files.there(&held, offset, wanted) };
        self.gaps.noted += 1;
        let kind = if write { OperationKind::Write } else { OperationKind::Read };
        self.note(tid, kind, held.file, offset.min(i64::MAX as u64), len, 0);
        Next::Done
    }

    fn wanted(&mut self, tid: i32, wanted: Wanted) -> u64 {
        let (address, count) = match wanted {
            Wanted::Bytes(bytes) => return bytes,
            Wanted::Vectors(address, count) => (address, count.min(VECTORS_MAX)),
        };
        let mut vectors = vec![0; count as usize * 16];
        let read = sys::read_memory(tid, address, &mut vectors);
        self.gaps.unread += u64::from(read < vectors.len());
        let length =
            |vector: &[u8]| vector.get(8..16).and_then(|bytes| bytes.try_into().ok()).map(u64::from_ne_bytes);
        vectors[..read].chunks_exact(16).filter_map(length).fold(0, u64::saturating_add)
    }

    /// A file's end of a copy: where it stands.
    pub(super) fn end_of_copy(&mut self, tid: i32, end: CopyEnd, write: bool) -> Option<(u32, u64)> {
        let held = self.file_of(tid, end.fd)?;
        let mut at = [0; 8];
        let at = (end.offset_at != 0 && sys::read_memory(tid, end.offset_at, &mut at) == 8)
            .then(|| u64::from_ne_bytes(at));
        let offset = if write { held.write_position(at) } else { at.unwrap_or_else(|| held.position()) };
        Some((held.file, offset))
    }

    fn note_on(
        &mut self,
        tid: i32,
        fd: Descriptor,
        kind: OperationKind,
        offset: u64,
        len: u64,
        detail: u32,
    ) -> Next {
        if let Some(held) = self.file_of(tid, fd)
            && offset.checked_add(len).is_some_and(|end| i64::try_from(end).is_ok())
        {
            self.note(tid, kind, held.file, offset, len, detail);
        }
        Next::Done
    }

    fn note_parts(&mut self, tid: i32, kind: OperationKind, parts: &[Part], detail: u32) {
        for part in parts {
            self.note(tid, kind, part.mapping, part.offset, part.len, detail);
        }
    }

    fn close(&mut self, tid: i32, fd: Descriptor) -> Next {
        let alone = self.process_of(tid).is_none_or(|process| process.is_alone());
        if !alone {
            self.file_of(tid, fd); // It is known what it was.
        }
        let by = (!alone).then_some(tid);
        let closed = self.process_of(tid).and_then(|process| process.descriptors.close(fd, by));
        if let Some(file) = closed {
            self.note(tid, OperationKind::Close, file, 0, 0, 0);
        }
        Next::Done
    }

    fn close_range(&mut self, tid: i32, first: u32, last: u32) -> Next {
        let known = self.process_of(tid).map(|process| process.descriptors.known_in(first, last));
        for fd in known.unwrap_or_default() {
            self.close(tid, fd);
        }
        Next::Done
    }

    fn map(&mut self, tid: i32, call: MapCall) -> Next {
        let has = |flag: libc::c_int| call.flags & flag.cast_unsigned() != 0;
        let may = |right: libc::c_int| call.protection & right.cast_unsigned() != 0;
        let anonymous = has(libc::MAP_ANONYMOUS);
        let held: Option<Arc<Held>> = if anonymous { None } else { self.file_of(tid, call.fd) };
        // A device that is mapped is not memory of ours to follow: it is kept as one without a file.
        let mapping = TraceMapping {
            file: held.as_ref().map_or(NONE, |held| held.file),
            file_offset: if held.is_some() { call.offset } else { 0 },
            len: crate::memory::pages(call.len),
            shared: has(libc::MAP_SHARED),
            // Memory is often reserved first and made writable piece by piece, which is not followed.
            writable: held.is_none() || may(libc::PROT_WRITE),
            executable: may(libc::PROT_EXEC),
        };
        self.begin(tid, UnderWay::Map { mapping })
    }

    fn heap(&mut self, tid: i32, end: u64) -> Next {
        let Some(memory) = self.memory_of(tid) else { return Next::Done };
        let Some((start, len, grows)) = memory.heap_change(end) else { return Next::Done };
        memory.set_heap_end(end);
        if !grows {
            let gone = memory.unmap(start, len);
            self.note_parts(tid, OperationKind::Unmap, &gone, 0);
            return Next::Done;
        }
        let mapping = TraceMapping {
            file: NONE,
            file_offset: 0,
            len,
            shared: false,
            writable: true,
            executable: false,
        };
        let number = self.new_mapping(mapping);
        if let Some(memory) = self.memory_of(tid) {
            memory.map(start, len, number);
        }
        self.note(tid, OperationKind::Map, number, 0, len, 0);
        Next::Done
    }

    /// Whether no signal ends this call, because it is on a file, and it is told by a notice, which one can end.
    pub(crate) fn is_quiet(&mut self, tid: i32, number: u64, arguments: [u64; 6]) -> bool {
        let noted = known(number).filter(|known| known.way == Way::Noted);
        match noted.map(|known| (known.read)(arguments)) {
            Some(Call::Transfer { fd, .. }) => self.file_of(tid, fd).is_some(),
            // A pipe or a terminal may be waited for, and a signal ends that.
            Some(Call::Open { path, .. } | Call::OpenHow { path, .. }) => !Self::is_waited_for(tid, path),
            // So may a socket.
            Some(Call::Send { .. }) | None => false,
            Some(_) => true,
        }
    }
}
