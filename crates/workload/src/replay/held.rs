//! A trace in memory, for many runs of it: where each request reads or writes, in 12 bytes.
//!
//! One reading makes any number of them: the whole trace, and samples of it ([`Sample`]). Times are kept where a
//! run needs them (8 bytes more). Left out: traces that are larger than memory, which [`Replay::new`] streams.
//!
//! [`Replay::new`]: super::Replay::new

use std::io::Read;
use std::sync::atomic::{AtomicBool, Ordering};

use units::{Bytes, PAGE_SIZE};

use super::Placed;
use super::sample::{Sample, UNIT_PAGES};
use crate::policy::index::Index;
use crate::trace::{FILE_MAX, Place, Request, RequestKind, TraceError, TraceProblem, TraceReader};

/// Bytes that a sample of a block trace takes or leaves together.
static XU: std::sync::LazyLock<u64> = std::sync::LazyLock::new(|| std::env::var("PT_UNIT").map_or(UNIT_PAGES, |t| t.parse().unwrap()) * PAGE_SIZE);
static XL: std::sync::LazyLock<bool> = std::sync::LazyLock::new(|| std::env::var("PT_ORIG").is_ok());

/// All requests of a trace, or of a sample of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Held {
    /// Twice the offset, and one more for a write.
    places: Vec<u64>,
    lens: Vec<u32>,
    /// Empty where nobody needs them.
    times: Vec<u64>,
    /// Records that are no reads or writes.
    pub(super) skipped: u64,
    /// Bytes of the file that they lie in.
    pub(super) size: u64,
    /// Different pages that are asked for.
    pub footprint_pages: u64,
    /// Pages that are asked for, each as often as it is.
    pub accesses: u64,
    /// Of the whole trace, whatever part of it this is.
    pub whole: Whole,
    /// Which part; none: all.
    pub sample: Option<Sample>,
}

/// What is counted of a trace while it is read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Whole {
    /// Requests, without those of no bytes.
    pub requests: u64,
    /// Of these, writes.
    pub writes: u64,
    /// Pages that they ask for, each as often as it is asked for.
    pub accesses: u64,
    /// Different ones of these.
    pub footprint_pages: u64,
    /// From the first request to the last, by the trace's clock.
    pub span_ns: u64,
}

impl Held {
    /// Reads the trace once, for each of `samples`: none is all of it. `watch` is told every few thousand
    /// requests how many bytes were read. Nothing when `stop` was set.
    ///
    /// # Errors
    /// The first record that cannot be read, or that ends beyond what a file can hold.
    pub fn read<R: Read>(
        mut reader: TraceReader<R>,
        keeps_times: bool,
        samples: &[Option<Sample>],
        stop: &AtomicBool,
        mut watch: impl FnMut(u64),
    ) -> Result<Option<Vec<Self>>, TraceError> {
        const TELL_EVERY: u64 = 1 << 15;
        let is_block = reader.format().is_block();
        let mut parts: Vec<Part> =
            samples.iter().map(|&sample| Part::new(sample, is_block, keeps_times)).collect();
        if !samples.contains(&None) {
            // Behind the others, for its footprint alone.
            parts.push(Part { counts_only: true, ..Part::new(None, is_block, false) });
        }
        let (mut whole, mut first_ns) = (Whole::default(), None);
        while let Some(request) = reader.next() {
            let request = request?;
            whole.span_ns = request.time_ns.saturating_sub(*first_ns.get_or_insert(request.time_ns));
            let len = u64::from(request.size_bytes);
            let end = u128::from(request.offset_bytes) + u128::from(len);
            if is_block && end > u128::from(FILE_MAX.get()) {
                return Err(TraceError::at(reader.place(), TraceProblem::BeyondFile { end }));
            }
            if len == 0 {
                continue;
            }
            whole.requests += 1;
            whole.writes += u64::from(request.kind == RequestKind::Write);
            whole.accesses += pages_of(request.offset_bytes, len);
            parts.iter_mut().for_each(|part| part.take(&request));
            if whole.requests.is_multiple_of(TELL_EVERY) {
                watch(reader.bytes_read());
                if stop.load(Ordering::Relaxed) {
                    return Ok(None);
                }
            }
        }
        let of_all = parts.iter().find(|part| part.held.sample.is_none());
        whole.footprint_pages = of_all.map_or(0, Part::footprint_pages);
        parts.truncate(samples.len());
        let skipped = reader.skipped();
        parts.into_iter().map(|part| part.finish(whole, skipped)).collect::<Result<_, _>>().map(Some)
    }

    /// How many times as large the whole is: its pages by those of this part.
    pub fn times(&self) -> f64 {
        self.whole.footprint_pages as f64 / self.footprint_pages.max(1) as f64
    }

    /// How many requests there are.
    pub fn requests(&self) -> u64 {
        self.places.len() as u64
    }

    pub(super) fn get(&self, number: usize) -> Option<Placed> {
        let (&place, &len) = (self.places.get(number)?, self.lens.get(number)?);
        let kind = if place & 1 == 1 { RequestKind::Write } else { RequestKind::Read };
        let time_ns = self.times.get(number).copied().unwrap_or(0);
        Some(Placed { time_ns, kind, offset: place >> 1, len: u64::from(len) })
    }
}

/// Pages that a range touches.
fn pages_of(offset: u64, len: u64) -> u64 {
    (offset + len).div_ceil(PAGE_SIZE) - (offset / PAGE_SIZE)
}

/// One sample while the trace is read. Until the end a place is that within its object or unit, whose slot
/// stands in `slots`.
struct Part {
    held: Held,
    is_block: bool,
    keeps_times: bool,
    /// Its requests are not kept.
    counts_only: bool,
    units: Units,
    slots: Vec<u32>,
    seen: Seen,
}

/// Objects, or units of a device, in the order in which they turned up.
struct Units {
    index: Index,
    numbers: Vec<u64>,
    /// Bytes of the largest request of each.
    sizes: Vec<u32>,
}

impl Units {
    fn slot(&mut self, number: u64) -> u32 {
        if let Some(slot) = self.index.find(number, &self.numbers) {
            return slot;
        }
        let slot = u32::try_from(self.numbers.len()).expect("fewer objects than 2^32");
        self.index.insert(number, slot);
        self.numbers.push(number);
        self.sizes.push(0);
        slot
    }
}

impl Part {
    fn new(sample: Option<Sample>, is_block: bool, keeps_times: bool) -> Self {
        let units = Units { index: Index::new(), numbers: Vec::new(), sizes: Vec::new() };
        let held = Held { sample, ..Held::default() };
        Self { held, is_block, keeps_times, counts_only: false, units, slots: Vec::new(), seen: Seen::new() }
    }

    fn take(&mut self, request: &Request) {
        let len = u64::from(request.size_bytes);
        match (self.is_block, self.held.sample) {
            (true, None) => self.push(request, request.offset_bytes, len, None),
            (true, Some(sample)) => self.take_units(request, sample),
            (false, sample) if sample.is_none_or(|sample| sample.has(request.object)) => {
                let slot = self.units.slot(request.object);
                let size = &mut self.units.sizes[slot as usize];
                *size = request.size_bytes.max(*size);
                self.push(request, 0, len, Some(slot));
            }
            (false, _) => {}
        }
    }

    /// Of a request to a device: what lies in units of the sample.
    fn take_units(&mut self, request: &Request, sample: Sample) {
        let (mut from, end) = (request.offset_bytes, request.offset_bytes + u64::from(request.size_bytes));
        while from < end {
            let unit = from / (*XU);
            let mut to = end.min((unit + 1) * (*XU));
            if !sample.has(unit) {
                from = to;
                continue;
            }
            let slot = self.units.slot(unit);
            while to < end && sample.has(to / (*XU)) {
                self.units.slot(to / (*XU));
                to = end.min(((to / (*XU)) + 1) * (*XU));
            }
            self.push(request, from, to - from, Some(slot));
            from = to;
        }
    }

    fn push(&mut self, request: &Request, offset: u64, len: u64, slot: Option<u32>) {
        self.held.accesses += pages_of(offset, len);
        if self.is_block {
            self.seen.add(offset / PAGE_SIZE, pages_of(offset, len));
        }
        if self.counts_only {
            return;
        }
        self.held.places.push((offset << 1) | u64::from(request.kind == RequestKind::Write));
        self.held.lens.push(u32::try_from(len).expect("a part of a request"));
        self.slots.extend(slot);
        if self.keeps_times {
            self.held.times.push(request.time_ns);
        }
    }

    /// Different pages so far.
    fn footprint_pages(&self) -> u64 {
        match self.is_block {
            true => self.seen.pages,
            false => self.units.sizes.iter().map(|&size| u64::from(size).div_ceil(PAGE_SIZE)).sum(),
        }
    }

    /// Lays out what turned up, and moves each request to its place.
    fn finish(self, whole: Whole, skipped: u64) -> Result<Held, TraceError> {
        let footprint_pages = self.footprint_pages();
        let Self { mut held, is_block, units, slots, .. } = self;
        held.footprint_pages = footprint_pages;
        (held.whole, held.skipped) = (whole, skipped);
        if slots.is_empty() {
            let ends = held.places.iter().zip(&held.lens).map(|(place, &len)| (place >> 1) + u64::from(len));
            held.size = ends.max().unwrap_or(0);
            return Ok(held);
        }
        let mut begins = vec![0_u64; units.numbers.len()];
        let mut end = 0_u64;
        if is_block {
            let mut order: Vec<usize> = (0..begins.len()).collect();
            order.sort_unstable_by_key(|&slot| units.numbers[slot]);
            for slot in order {
                if *XL { end = units.numbers[slot] * *XU; }
                begins[slot] = end;
                end += *XU;
            }
        } else {
            for (begin, &size) in begins.iter_mut().zip(&units.sizes) {
                *begin = end;
                end = end.saturating_add(u64::from(size).next_multiple_of(PAGE_SIZE));
            }
        }
        if end > FILE_MAX.get() {
            return Err(TraceError::at(Place::Byte(0), TraceProblem::ObjectsBeyondFile(Bytes(end))));
        }
        for (place, &slot) in held.places.iter_mut().zip(&slots) {
            let within = if is_block { (*place >> 1) % (*XU) } else { *place >> 1 };
            *place = ((begins[slot as usize] + within) << 1) | (*place & 1);
        }
        held.size = end;
        Ok(held)
    }
}

/// Pages of a device that were seen: a bit for each of those around one that was.
struct Seen {
    index: Index,
    numbers: Vec<u64>,
    bits: Vec<[u64; 16]>,
    pages: u64,
}

/// Pages that have their bits together.
const TOGETHER: u64 = 16 * 64;

impl Seen {
    fn new() -> Self {
        Self { index: Index::new(), numbers: Vec::new(), bits: Vec::new(), pages: 0 }
    }

    fn add(&mut self, first: u64, count: u64) {
        for page in first..first + count {
            let number = page / TOGETHER;
            let slot = self.index.find(number, &self.numbers).unwrap_or_else(|| {
                let slot = u32::try_from(self.numbers.len()).expect("fewer than 2^32 of 4 MiB each");
                self.index.insert(number, slot);
                self.numbers.push(number);
                self.bits.push([0; 16]);
                slot
            });
            let within = page % TOGETHER;
            let word = &mut self.bits[slot as usize][(within / 64) as usize];
            let bit = 1 << (within % 64);
            self.pages += u64::from(*word & bit == 0);
            *word |= bit;
        }
    }
}
