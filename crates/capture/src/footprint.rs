//! How much of files and memory a program used, each byte once: what all of it would need to stay in memory.

use std::collections::HashMap;

use trace::{NONE, Operation, OperationKind, TraceMapping};

use crate::writing::Piece;

const PAGE: u64 = 4096;

/// Whole pages that were used.
#[derive(Debug, Default)]
pub struct Footprint {
    files: Pages,
    memory: Pages,
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
                self.file_bytes += self.files.used(object, offset, len);
            }
            OperationKind::Touch | OperationKind::Dirty => {
                let Some(mapping) = self.mappings.get(object as usize) else { return };
                // A page of a private mapping that was written is memory, not the file.
                if mapping.file != NONE && (mapping.shared || kind == OperationKind::Touch) {
                    self.file_bytes += self.files.used(mapping.file, mapping.file_offset + offset, len);
                } else {
                    self.memory_bytes += self.memory.used(object, offset, len);
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

/// Pages that were used, a bit each, 64 to a word: by the number of what they are of, and of the word.
#[derive(Debug, Default)]
struct Pages(HashMap<(u32, u64), u64>);

impl Pages {
    /// Marks a range as used; how many bytes of it were not yet.
    fn used(&mut self, of: u32, offset: u64, len: u64) -> u64 {
        if len == 0 {
            return 0;
        }
        let (mut page, last) = (offset / PAGE, offset.saturating_add(len - 1) / PAGE);
        let mut new = 0;
        while page <= last {
            let in_word = (64 - page % 64).min(last - page + 1);
            let bits = (u64::MAX >> (64 - in_word)) << (page % 64);
            let word = self.0.entry((of, page / 64)).or_default();
            new += u64::from((bits & !*word).count_ones());
            *word |= bits;
            page += in_word;
        }
        new * PAGE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_page_counts_once() {
        let mut pages = Pages::default();
        assert_eq!(pages.used(1, 100, 1), PAGE);
        assert_eq!(pages.used(1, 0, 2 * PAGE), PAGE);
        assert_eq!(pages.used(2, 0, PAGE), PAGE);
        assert_eq!(pages.used(1, 60 * PAGE + 1, 100 * PAGE), 101 * PAGE);
        assert_eq!(pages.used(1, 0, 1000 * PAGE), (1000 - 103) * PAGE);
        assert_eq!(pages.used(1, 0, 0), 0);
    }
}
