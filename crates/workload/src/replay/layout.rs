//! Where the requests of a trace lie in the file that is replayed on.

use std::collections::BTreeMap;
use std::io::Read;

use units::{Bytes, PAGE_SIZE};

use super::sample::Ahead;
use trace::requests::{FILE_MAX, Place, Request, RequestKind, TraceError, TraceProblem, TraceReader};

/// Where a trace's requests lie in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    /// Size of the file.
    pub size: Bytes,
    /// Requests in the trace.
    pub requests: u64,
    /// Records that are no reads or writes and were passed over.
    pub skipped: u64,
    /// Offset of each object; empty for a block trace.
    pub(super) objects: BTreeMap<u64, u64>,
    pub(super) is_block: bool,
}

impl Layout {
    /// Goes through a trace.
    ///
    /// # Errors
    /// The first record that cannot be read, or that ends beyond what a file can hold.
    pub fn scan<R: Read>(mut reader: TraceReader<R>) -> Result<Self, TraceError> {
        let is_block = reader.format().is_block();
        let (mut requests, mut end) = (0, 0_u64);
        let mut sizes: Vec<(u64, u32)> = Vec::new();
        let mut places: BTreeMap<u64, usize> = BTreeMap::new();
        while let Some(request) = reader.next() {
            let request = request?;
            requests += 1;
            if is_block {
                let own_end = u128::from(request.offset_bytes) + u128::from(request.size_bytes);
                if own_end > u128::from(FILE_MAX.get()) {
                    return Err(TraceError::at(reader.place(), TraceProblem::BeyondFile { end: own_end }));
                }
                end = end.max(own_end as u64); // Below the largest file, checked above.
                continue;
            }
            let place = *places.entry(request.object).or_insert_with(|| {
                sizes.push((request.object, 0));
                sizes.len() - 1
            });
            sizes[place].1 = sizes[place].1.max(request.size_bytes);
        }
        let mut objects = BTreeMap::new();
        for (object, size) in sizes {
            objects.insert(object, end);
            end = end.saturating_add(u64::from(size).next_multiple_of(PAGE_SIZE));
        }
        if end > FILE_MAX.get() {
            return Err(TraceError::at(Place::Byte(0), TraceProblem::ObjectsBeyondFile(Bytes(end))));
        }
        Ok(Self { size: Bytes(end), requests, skipped: reader.skipped(), objects, is_block })
    }

    /// Where a request's bytes begin; `None` when the object was not there before.
    pub(super) fn offset(&self, request: &Request) -> Option<u64> {
        let offset = if self.is_block { request.offset_bytes } else { *self.objects.get(&request.object)? };
        let end = offset.checked_add(u64::from(request.size_bytes))?;
        (end <= self.size.get().next_multiple_of(PAGE_SIZE)).then_some(offset)
    }
}

/// A request and where it lies in the replayed file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Placed {
    pub(super) time_ns: u64,
    pub(super) kind: RequestKind,
    pub(super) offset: u64,
    pub(super) len: u64,
    /// Of the first page, in a sample.
    pub(super) ahead: Ahead,
}

/// Pages that a range touches.
pub(super) fn pages_of(offset: u64, len: u64) -> u64 {
    (offset + len).div_ceil(PAGE_SIZE) - (offset / PAGE_SIZE)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scan(text: &'static str) -> Layout {
        Layout::scan(TraceReader::new(text.as_bytes(), None).unwrap()).unwrap()
    }

    #[test]
    fn a_block_trace_is_as_large_as_its_last_byte() {
        let layout = scan("version,time,op,size,lbn\n1,0,28,4096,8\n1,0,2a,512,1\n");
        assert_eq!((layout.size, layout.requests), (Bytes(8192), 2));
    }

    #[test]
    fn a_block_beyond_what_a_file_can_hold_is_told_by_its_line() {
        let error = |text: &'static str| {
            let reader = TraceReader::new(text.as_bytes(), None).unwrap();
            Layout::scan(reader).unwrap_err().to_string()
        };
        assert_eq!(
            error("1,5,28,512,1\n1,5,28,512,36028797018963967\n"),
            "line 2: the request ends at byte 18446744073709551616 of its file, which cannot have more than 16383G"
        );
        let objects: String = (0..5000).map(|object| format!("0,{object},4294967295\n")).collect();
        assert!(error(objects.leak()).starts_with("the trace's objects take"));
    }

    #[test]
    fn objects_lie_one_behind_the_other_as_they_turn_up() {
        let layout = scan("time,object,size\n0,77,5000\n1,3,100\n2,77,6000\n");
        assert_eq!(layout.objects, BTreeMap::from([(77, 0), (3, 8192)]));
        assert_eq!(layout.size, Bytes(12288));
    }
}
