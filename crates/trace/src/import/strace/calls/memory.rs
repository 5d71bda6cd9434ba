//! Calls on memory: mappings, by the addresses that the log has.

use super::super::world::Range;
use super::files::end_of;
use super::{At, Importer};
use crate::{NONE, OperationKind, TraceMapping};

impl Importer {
    // ---- memory ----

    pub(super) fn map(&mut self, at: At<'_>) {
        let is_anonymous = at.has_flag(3, "MAP_ANONYMOUS") || at.has_flag(3, "MAP_ANON");
        let file = if is_anonymous { NONE } else { self.file_of(at, 4).unwrap_or(NONE) };
        let (Some(len), offset) = (at.number(1), at.number(5).unwrap_or(0)) else { return };
        let Some(end) = end_of(offset, len) else { return };
        if file == NONE && !is_anonymous {
            return; // A device or what else is none of its own.
        }
        if file != NONE && !self.sizes[file as usize].told {
            self.builder.at_least(file, end);
        }
        let shared = at.argument(3).contains("MAP_SHARED");
        let (writable, executable) = (at.has_flag(2, "PROT_WRITE"), at.has_flag(2, "PROT_EXEC"));
        self.unmap(at, at.value, len);
        let offset = if file == NONE { 0 } else { offset };
        self.add_mapping(
            at,
            at.value,
            TraceMapping { file, file_offset: offset, len, shared, writable, executable },
        );
    }

    pub(super) fn add_mapping(&mut self, at: At<'_>, address: u64, mapping: TraceMapping) {
        let number = u32::try_from(self.builder.trace.mappings.len()).expect("fewer than 2^32 mappings");
        let len = mapping.len;
        let fits = end_of(mapping.file_offset, len).is_some() && end_of(address, len).is_some();
        if !fits {
            return; // A number that no kernel returns.
        }
        self.builder.trace.mappings.push(mapping);
        self.world.space(at.task).put(address, Range { len, mapping: number, offset: 0 });
        self.push(at, OperationKind::Map, number, (0, len), 0);
    }

    pub(super) fn unmap(&mut self, at: At<'_>, from: u64, len: u64) {
        let end = from.saturating_add(len.checked_next_multiple_of(4096).unwrap_or(len));
        for part in self.world.space(at.task).cut(from, end) {
            self.push(at, OperationKind::Unmap, part.mapping, (part.offset, part.len), 0);
        }
    }

    pub(super) fn remap(&mut self, at: At<'_>, from: u64, old_len: u64) {
        let Some(new_len) = at.number(2) else { return };
        let fits = [old_len, new_len].iter().all(|&len| from.checked_add(len).is_some());
        let parts = self.world.space(at.task).within(from, from.saturating_add(old_len));
        let Some(&part) = parts.first().filter(|_| fits) else { return };
        let of = self.builder.trace.mappings[part.mapping as usize];
        let begin = of.file_offset + if of.file == NONE { 0 } else { part.offset };
        if at.value == from && new_len <= old_len {
            self.unmap(at, from + new_len, old_len - new_len);
        } else if at.value == from {
            let file_offset = begin + if of.file == NONE { 0 } else { old_len };
            let grown = TraceMapping { file_offset, len: new_len - old_len, ..of };
            self.add_mapping(at, from + old_len, grown);
        } else {
            self.unmap(at, from, old_len);
            self.unmap(at, at.value, new_len);
            self.add_mapping(at, at.value, TraceMapping { file_offset: begin, len: new_len, ..of });
        }
    }

    pub(super) fn set_heap_end(&mut self, at: At<'_>) {
        let before = self.world.space(at.task).heap_end.replace(at.value);
        match before {
            Some(before) if at.value > before => {
                let heap = TraceMapping {
                    file: NONE,
                    len: at.value - before,
                    writable: true,
                    ..TraceMapping::default()
                };
                self.add_mapping(at, before, heap);
            }
            Some(before) if at.value < before => self.unmap(at, at.value, before - at.value),
            _ => {}
        }
    }
}
