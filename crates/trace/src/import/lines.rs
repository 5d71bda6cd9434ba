//! The lines of a log, with their numbers.

use std::io::{BufRead, Read};

use super::ImportError;

/// The longest line that is read; `strace` shortens what it prints, unless it is told not to.
const LINE_LEN_MAX: u64 = 4 << 20;

/// Reads line after line into one buffer.
pub(super) struct Lines<R> {
    source: R,
    buffer: Vec<u8>,
    /// The number of the line that was read last.
    pub(super) number: u64,
    /// Whether that ended in a line feed: a log that was cut does not.
    pub(super) is_whole: bool,
}

impl<R: BufRead> Lines<R> {
    pub(super) fn new(source: R) -> Self {
        Self { source, buffer: Vec::new(), number: 0, is_whole: true }
    }

    /// The next line without its end, where bytes that are no UTF-8 are replaced; `None` at the end.
    pub(super) fn next(&mut self) -> Result<Option<String>, ImportError> {
        self.buffer.clear();
        let line = self.number + 1;
        let unreadable = |source| ImportError::Unreadable { line, source };
        let count = self.source.by_ref().take(LINE_LEN_MAX).read_until(b'\n', &mut self.buffer);
        if count.map_err(unreadable)? == 0 {
            return Ok(None);
        }
        self.number = line;
        self.is_whole = self.buffer.last() == Some(&b'\n');
        if !self.is_whole && self.buffer.len() as u64 == LINE_LEN_MAX {
            let problem = format!("longer than {LINE_LEN_MAX} bytes");
            return Err(ImportError::Malformed { line, problem });
        }
        while matches!(self.buffer.last(), Some(b'\n' | b'\r')) {
            self.buffer.pop();
        }
        Ok(Some(String::from_utf8_lossy(&self.buffer).into_owned()))
    }
}
