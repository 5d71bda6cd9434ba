//! Bytes of a trace through one buffer: lines or fixed records as slices of it, nothing copied.
//! Next: `source`, where the bytes come from.

use std::io::{ErrorKind, Read};

use super::source::Source;
use super::{Place, TraceError, TraceProblem};

/// The longest line that is looked at; a request needs less than 100 bytes.
pub(super) const LINE_LEN_MAX: usize = 4096;
/// Enough to make the cost of a read call vanish, and it stays in the second-level cache.
const BUFFER_LEN: usize = 256 << 10;
const _: () = assert!(BUFFER_LEN > 2 * LINE_LEN_MAX);

/// A source and the part of it that is buffered.
#[derive(Debug)]
pub(super) struct Input<R> {
    source: Source<R>,
    buffer: Box<[u8]>,
    /// What is buffered and not consumed: `buffer[start..end]`.
    start: usize,
    end: usize,
    at_end: bool,
    /// Bytes of the source before `buffer[0]`.
    base: u64,
    /// Lines handed out so far, hence the number of the line handed out last.
    lines: u64,
}

impl<R: Read> Input<R> {
    pub(super) fn new(source: R) -> Result<Self, TraceError> {
        let source =
            Source::new(source).map_err(|error| TraceError::at(Place::Byte(0), TraceProblem::Io(error)))?;
        let buffer = vec![0; BUFFER_LEN].into_boxed_slice();
        Ok(Self { source, buffer, start: 0, end: 0, at_end: false, base: 0, lines: 0 })
    }

    /// The first bytes: the whole source where it is smaller than the buffer.
    pub(super) fn peek(&mut self) -> Result<&[u8], TraceError> {
        self.fill()?;
        Ok(&self.buffer[self.start..self.end])
    }

    /// Bytes of the file, compressed or not, that were read so far.
    pub(super) fn bytes_taken(&self) -> u64 {
        self.source.bytes_taken()
    }

    /// Bytes consumed so far, decompressed.
    pub(super) fn position(&self) -> u64 {
        self.base + self.start as u64
    }

    /// The line handed out last.
    pub(super) fn line_place(&self) -> Place {
        Place::Line(self.lines)
    }

    /// Moves what is left to the front and reads until the buffer is full or the source ends.
    #[cold]
    fn fill(&mut self) -> Result<(), TraceError> {
        self.buffer.copy_within(self.start..self.end, 0);
        self.base += self.start as u64;
        self.end -= self.start;
        self.start = 0;
        while !self.at_end && self.end < self.buffer.len() {
            match self.source.read(&mut self.buffer[self.end..]) {
                Ok(0) => self.at_end = true,
                Ok(read) => self.end += read,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(self.unreadable(error)),
            }
        }
        Ok(())
    }

    #[cold]
    fn unreadable(&self, error: std::io::Error) -> TraceError {
        match self.source.compression() {
            Some(kind) => TraceError::at(Place::Byte(0), TraceProblem::Damaged { kind, error }),
            None => TraceError::at(Place::Byte(self.base + self.end as u64), TraceProblem::Io(error)),
        }
    }

    /// The next line without its line feed; `None` at the end.
    #[inline]
    pub(super) fn line(&mut self) -> Result<Option<&[u8]>, TraceError> {
        let mut newline = memchr::memchr(b'\n', &self.buffer[self.start..self.end]);
        if newline.is_none() && !self.at_end {
            self.fill()?;
            newline = memchr::memchr(b'\n', &self.buffer[..self.end]);
        }
        let start = self.start;
        let left = self.end - start;
        let (len, consumed) = match newline {
            Some(len) => (len, len + 1),
            None if left == 0 => return Ok(None),
            None => (left, left),
        };
        self.lines += 1;
        if len > LINE_LEN_MAX {
            return Err(TraceError::at(self.line_place(), TraceProblem::LongLine(LINE_LEN_MAX)));
        }
        self.start += consumed;
        Ok(Some(&self.buffer[start..start + len]))
    }

    /// The next `N` bytes; `None` at the end.
    #[inline]
    pub(super) fn record<const N: usize>(&mut self) -> Result<Option<&[u8; N]>, TraceError> {
        if self.end - self.start < N {
            self.fill()?;
            let left = self.end - self.start;
            if left == 0 {
                return Ok(None);
            }
            if left < N {
                let place = Place::Byte(self.position());
                return Err(TraceError::at(place, TraceProblem::Truncated(left)));
            }
        }
        let start = self.start;
        self.start += N;
        Ok(self.buffer[start..].first_chunk())
    }
}
