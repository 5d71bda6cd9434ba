//! How much of files and memory a program used, each byte once: what all of it would need to stay in memory.

use std::collections::HashMap;

use trace::{NONE, Operation, OperationKind, TraceMapping};

use crate::ranges::Ranges;
use crate::writing::Piece;

const PAGE: u64 = 4096;

/// Whole pages that were used.
#[derive(Debug, Default)]
pub struct Footprint {
    files: HashMap<u32, Ranges<()>>,
    memory: HashMap<u32, Ranges<()>>,
    mappings: Vec<TraceMapping>,
    file_bytes: u64,
    memory_bytes: u64,
}

impl Footprint {
    /// Takes the next piece of a capture.
    pub fn add(&mut self, piece: &Piece) {
        self.mappings.extend_from_slice(&piece.mappings);
        for operation in &piece.operations {
            self.operation(operation);
        }
    }

    fn operation(&mut self, operation: &Operation) {
        let Operation { kind, object, offset, len, .. } = *operation;
        match kind {
            OperationKind::Read | OperationKind::Write => {
                self.file_bytes += used(self.files.entry(object).or_default(), offset, len);
            }
            OperationKind::Touch | OperationKind::Dirty => {
                let Some(mapping) = self.mappings.get(object as usize) else { return };
                // A page of a private mapping that was written is memory, not the file.
                if mapping.file != NONE && (mapping.shared || kind == OperationKind::Touch) {
                    let at = mapping.file_offset + offset;
                    self.file_bytes += used(self.files.entry(mapping.file).or_default(), at, len);
                } else {
                    self.memory_bytes += used(self.memory.entry(object).or_default(), offset, len);
                }
            }
            _ => {}
        }
    }

    /// Bytes of files.
    pub const fn file_bytes(&self) -> u64 {
        self.file_bytes
    }

    /// Bytes of memory that is no file's, of all mappings that there ever were.
    pub const fn memory_bytes(&self) -> u64 {
        self.memory_bytes
    }
}

/// Marks a range as used; how many bytes of it were not yet.
fn used(ranges: &mut Ranges<()>, offset: u64, len: u64) -> u64 {
    if len == 0 {
        return 0;
    }
    let (start, end) = (offset / PAGE * PAGE, (offset + len).next_multiple_of(PAGE));
    let (mut from, mut to) = (start, end);
    let mut known = 0;
    // Neighbours grow together, so that a file that is read from end to end stays one range.
    for range in ranges.remove(start.saturating_sub(1), end + 1) {
        let cut = range.end.min(end).saturating_sub(range.start.max(start));
        known += cut;
        from = from.min(range.start);
        to = to.max(range.end);
    }
    ranges.insert(from, to, ());
    end - start - known
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_page_counts_once() {
        let mut ranges = Ranges::default();
        assert_eq!(used(&mut ranges, 100, 1), PAGE);
        assert_eq!(used(&mut ranges, 0, 2 * PAGE), PAGE);
        assert_eq!(used(&mut ranges, 4 * PAGE, PAGE), PAGE);
        assert_eq!(used(&mut ranges, PAGE, 4 * PAGE), 2 * PAGE);
        assert_eq!(used(&mut ranges, 0, 5 * PAGE), 0);
        assert_eq!(used(&mut ranges, 0, 0), 0);
    }

    /// Reading on and on costs no memory.
    #[test]
    fn neighbours_grow_together() {
        let mut ranges = Ranges::default();
        for page in 0..1000 {
            used(&mut ranges, page * PAGE, PAGE);
        }
        assert!(ranges.within(0, u64::MAX).len() < 3, "{}", ranges.within(0, u64::MAX).len());
    }
}
