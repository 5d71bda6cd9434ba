//! Neighbouring reads or writes of one file as one system call, or none where there are only zeros.
//!
//! A guest's disk is a sparse file, and what is zero in it need not be there: zeros that a guest writes where
//! nothing lies yet stay a hole, and a hole is read by clearing memory. The host has to give out no memory then.
//!
//! [`Batch::add`] keeps a piece and says that it is done; [`Batch::flush`] does all that are kept. So nobody may
//! look at the memory of a piece in between. Nothing here may panic: the library around has nothing for that.

use core::ffi::{c_int, c_long};

use super::sys::{IoVec, call};

/// `preadv(2)`, `pwritev(2)`, and the calls for one piece.
const SYS_PREADV: c_long = 295;
const SYS_PWRITEV: c_long = 296;
const SYS_PREAD: c_long = 17;
const SYS_PWRITE: c_long = 18;
const SYS_LSEEK: c_long = 8;
const SEEK_DATA: c_long = 3;
const EIO: c_int = 5;
/// No data behind the offset.
const ENXIO: c_long = 6;
/// Pieces of memory that one call moves at most.
const PIECES: usize = 64;
/// Bytes that one call moves at most, as a request of the disk has. The host keeps what larger ones write in larger
/// blocks of memory, which it may have to clear out first: calls of 8 MiB took longer than those of a page.
const BYTES: c_long = 128 << 10;

/// Which way.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Read,
    Write,
}

/// Where in a file.
#[derive(Clone, Copy)]
pub(crate) struct At {
    pub(crate) kind: Kind,
    pub(crate) fd: c_int,
    pub(crate) offset: c_long,
}

/// What is kept.
pub(crate) struct Batch {
    at: At,
    /// Behind the last piece.
    end: c_long,
    count: usize,
    pieces: [IoVec; PIECES],
}

impl Batch {
    pub(crate) const fn new() -> Self {
        let none = IoVec { base: core::ptr::null_mut(), len: 0 };
        let at = At { kind: Kind::Read, fd: -1, offset: 0 };
        Self { at, end: 0, count: 0, pieces: [none; PIECES] }
    }

    /// Keeps a piece, after those that it does not follow are done. An error is theirs.
    ///
    /// # Safety
    /// The memory stays what a call of this kind asks for until [`flush`](Self::flush) has returned.
    pub(crate) unsafe fn add(&mut self, at: At, piece: IoVec) -> Result<(), c_int> {
        let follows = at.kind == self.at.kind && at.fd == self.at.fd && at.offset == self.end;
        let is_full = self.count == PIECES || self.end - self.at.offset + piece.len as c_long > BYTES;
        if !follows || is_full {
            self.flush()?;
        }
        if self.count == 0 {
            self.at = at;
        }
        self.end = at.offset + piece.len as c_long;
        let last = self.count.checked_sub(1).and_then(|last| self.pieces.get_mut(last));
        if let Some(last) = last
            && last.base.wrapping_byte_add(last.len) == piece.base
        {
            last.len += piece.len;
        } else if let Some(next) = self.pieces.get_mut(self.count) {
            *next = piece;
            self.count += 1;
        }
        Ok(())
    }

    /// Does all that is kept.
    pub(crate) fn flush(&mut self) -> Result<(), c_int> {
        let pieces = self.pieces.get(..self.count).unwrap_or_default();
        let At { kind, fd, offset } = self.at;
        self.count = 0;
        if pieces.is_empty() {
            return Ok(());
        }
        // SAFETY: `add`'s caller promised the memory of each piece.
        if unsafe { is_of_zeros(self.at, self.end, pieces) } {
            return Ok(());
        }
        let number = if kind == Kind::Read { SYS_PREADV } else { SYS_PWRITEV };
        // SAFETY: `add`'s caller promised the memory of each piece; the array is ours.
        let moved = unsafe {
            call(number, [fd.into(), pieces.as_ptr() as c_long, pieces.len() as c_long, offset, 0])
        };
        if moved == self.end - offset {
            return Ok(());
        }
        // Piece by piece again, which says which one cannot be done.
        let mut offset = offset;
        for piece in pieces {
            one(At { kind, fd, offset }, piece)?;
            offset += piece.len as c_long;
        }
        Ok(())
    }
}

/// Whether the pieces are read from a hole, and are zero now, or would write only zeros into one.
///
/// # Safety
/// The memory of each piece can be written for [`Kind::Read`], and read for [`Kind::Write`].
unsafe fn is_of_zeros(At { kind, fd, offset }: At, end: c_long, pieces: &[IoVec]) -> bool {
    // SAFETY: the caller's promise.
    if kind == Kind::Write && !pieces.iter().all(|piece| unsafe { is_zero(piece) }) {
        return false;
    }
    // SAFETY: it touches no memory. Nobody else uses the file's position: all calls of the disks name theirs.
    let data = unsafe { call(SYS_LSEEK, [fd.into(), offset, SEEK_DATA, 0, 0]) };
    let is_hole = data >= end || data == -ENXIO;
    if is_hole && kind == Kind::Read {
        for piece in pieces {
            // SAFETY: the caller's promise.
            unsafe { piece.base.cast::<u8>().write_bytes(0, piece.len) };
        }
    }
    is_hole
}

/// Whether all of a piece is zero.
///
/// # Safety
/// Its memory can be read.
unsafe fn is_zero(piece: &IoVec) -> bool {
    // SAFETY: the caller's promise.
    let bytes = unsafe { core::slice::from_raw_parts(piece.base.cast::<u8>(), piece.len) };
    // By lines of memory, which processors compare at once.
    let lines = bytes.chunks_exact(64);
    let rest = lines.remainder();
    lines.chain([rest]).all(|line| line.iter().fold(0, |all, byte| all | byte) == 0)
}

/// One piece to its end. What lies behind the end of the file reads as zeros.
fn one(At { kind, fd, offset }: At, piece: &IoVec) -> Result<(), c_int> {
    let number = if kind == Kind::Read { SYS_PREAD } else { SYS_PWRITE };
    let mut done = 0;
    while done < piece.len {
        let base = piece.base.wrapping_byte_add(done);
        let rest = piece.len - done;
        // SAFETY: it is a part of the piece, whose memory `add`'s caller promised.
        let moved =
            unsafe { call(number, [fd.into(), base as c_long, rest as c_long, offset + done as c_long, 0]) };
        match (usize::try_from(moved), kind) {
            (Ok(0), Kind::Write) => return Err(EIO),
            (Ok(0), Kind::Read) => {
                // SAFETY: as above.
                unsafe { base.cast::<u8>().write_bytes(0, rest) };
                return Ok(());
            }
            (Ok(moved), _) => done += moved,
            (Err(_), _) => return Err(-moved as c_int),
        }
    }
    Ok(())
}
