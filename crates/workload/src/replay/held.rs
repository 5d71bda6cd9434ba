//! A trace in memory, for many runs of it: where each request reads or writes, in 12 bytes.
//!
//! One reading makes any number of them: the whole trace, and samples of it ([`Sample`]). Times are kept where a
//! run needs them (8 bytes more). Left out: traces that are larger than memory, which [`Replay::new`] streams.
//!
//! [`Replay::new`]: super::Replay::new

use std::io::Read;
use std::sync::atomic::{AtomicBool, Ordering};

use units::{Bytes, PAGE_SIZE};

use super::layout::{Placed, pages_of};
use super::sample::{Ahead, Run, Sample, UNIT_PAGES};
use policy::index::Index;
use trace::requests::{FILE_MAX, Place, Request, RequestKind, TraceError, TraceProblem, TraceReader};

/// Bytes of a block of a block trace's sample.
const UNIT: u64 = UNIT_PAGES * PAGE_SIZE;

/// Beyond any offset.
const BROUGHT: u64 = 1 << 63;
const GOES_ON: u64 = 1 << 62;

/// All requests of a trace, or of a sample of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Held {
    /// Twice the offset, and one more for a write; [`BROUGHT`] or [`GOES_ON`] more for what [`Ahead`] says of the first
    /// page.
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
    /// Whether its addresses are those of a device.
    is_block: bool,
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

    /// Neighbouring pages of the trace's device of which this part has one; 1 of a trace of objects.
    pub fn one_of(&self) -> u32 {
        self.sample.filter(|_| self.is_block).map_or(1, Sample::one_of)
    }

    /// Requests of this part for each that the whole would have in it, were all as large as there.
    pub fn request_parts(&self) -> f64 {
        self.requests() as f64 * self.times() / self.whole.requests.max(1) as f64
    }

    /// How many requests there are.
    pub fn requests(&self) -> u64 {
        self.places.len() as u64
    }

    pub(super) fn get(&self, number: usize) -> Option<Placed> {
        let (&place, &len) = (self.places.get(number)?, self.lens.get(number)?);
        let kind = if place & 1 == 1 { RequestKind::Write } else { RequestKind::Read };
        let time_ns = self.times.get(number).copied().unwrap_or(0);
        let ahead = match place & (BROUGHT | GOES_ON) {
            0 => Ahead::Nothing,
            BROUGHT => Ahead::Brought,
            _ => Ahead::GoesOn,
        };
        let offset = (place & !(BROUGHT | GOES_ON)) >> 1;
        Some(Placed { time_ns, kind, offset, len: u64::from(len), ahead })
    }
}

/// One sample while the trace is read. Until the end a place is that within its object or unit, whose slot
/// stands in `slots`.
struct Part {
    held: Held,
    keeps_times: bool,
    /// Its requests are not kept.
    counts_only: bool,
    units: Units,
    slots: Vec<u32>,
    seen: Seen,
    run: Run,
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
        let held = Held { sample, is_block, ..Held::default() };
        Self {
            held,
            keeps_times,
            counts_only: false,
            units,
            slots: Vec::new(),
            seen: Seen::new(),
            run: Run::default(),
        }
    }

    fn take(&mut self, request: &Request) {
        let len = u64::from(request.size_bytes);
        match (self.held.is_block, self.held.sample) {
            (true, None) => self.push(request, request.offset_bytes, len, None),
            (true, Some(sample)) => self.take_pages(request, sample),
            (false, sample) if sample.is_none_or(|sample| sample.has(request.object)) => {
                let slot = self.units.slot(request.object);
                let size = &mut self.units.sizes[slot as usize];
                *size = request.size_bytes.max(*size);
                self.push(request, 0, len, Some(slot));
            }
            (false, _) => {}
        }
    }

    /// Of a request to a device: its pages that are in the sample. Those that lie side by side there stay one request.
    fn take_pages(&mut self, request: &Request, sample: Sample) {
        let (begin, end) = (request.offset_bytes, request.offset_bytes + u64::from(request.size_bytes));
        let pages = begin / PAGE_SIZE..end.div_ceil(PAGE_SIZE);
        let is_read = request.kind == RequestKind::Read;
        if is_read {
            self.run.read(pages.start, pages.end - 1);
        }
        let requests = self.held.places.len();
        // From where to where in the sample, and the slot of its first unit.
        let mut run: Option<(u64, u64, u32)> = None;
        let mut ahead = None;
        for page in pages.clone() {
            let Some(place) = sample.place(page) else { continue };
            if is_read {
                ahead.get_or_insert_with(|| self.run.ahead(sample, pages.start, page));
            }
            let slot = self.units.slot(place / UNIT_PAGES);
            let to_sample = |byte: u64| (place * PAGE_SIZE) + byte - (page * PAGE_SIZE);
            let from = to_sample(begin.max(page * PAGE_SIZE));
            let to = to_sample(end.min((page + 1) * PAGE_SIZE));
            run = match run {
                Some((first, last, slot)) if last == from => Some((first, to, slot)),
                other => {
                    if let Some((from, to, slot)) = other {
                        self.push(request, from, to - from, Some(slot));
                    }
                    Some((from, to, slot))
                }
            };
        }
        if let Some((from, to, slot)) = run {
            self.push(request, from, to - from, Some(slot));
        }
        if let Some(first) = self.held.places.get_mut(requests) {
            *first |= match ahead.unwrap_or(Ahead::Nothing) {
                Ahead::Nothing => 0,
                Ahead::Brought => BROUGHT,
                Ahead::GoesOn => GOES_ON,
            };
        }
    }

    fn push(&mut self, request: &Request, offset: u64, len: u64, slot: Option<u32>) {
        self.held.accesses += pages_of(offset, len);
        if self.held.is_block {
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
        match self.held.is_block {
            true => self.seen.pages,
            false => self.units.sizes.iter().map(|&size| u64::from(size).div_ceil(PAGE_SIZE)).sum(),
        }
    }

    /// Lays out what turned up, and moves each request to its place.
    fn finish(self, whole: Whole, skipped: u64) -> Result<Held, TraceError> {
        let footprint_pages = self.footprint_pages();
        let Self { mut held, units, slots, .. } = self;
        let is_block = held.is_block;
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
                begins[slot] = end;
                end += UNIT;
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
            let offset = (*place & !(BROUGHT | GOES_ON)) >> 1;
            let within = if is_block { offset % UNIT } else { offset };
            *place = ((begins[slot as usize] + within) << 1) | (*place & (BROUGHT | GOES_ON | 1));
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

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, samples: &[Option<Sample>]) -> Vec<Held> {
        let reader = TraceReader::new(text.as_bytes(), None).unwrap();
        Held::read(reader, false, samples, &AtomicBool::new(false), |_| {}).unwrap().unwrap()
    }

    fn places(held: &Held) -> Vec<(u64, u64)> {
        (0..).map_while(|number| held.get(number)).map(|placed| (placed.offset, placed.len)).collect()
    }

    #[test]
    fn all_of_a_trace_lies_where_a_replay_from_the_file_puts_it() {
        for text in [
            "version,time,op,size,lbn\n1,0,28,4096,8\n1,0,2a,512,1\n1,1,28,70000,300\n",
            "time,object,size\n0,77,5000\n1,3,100\n2,77,6000\n3,9,0\n",
        ] {
            let held = read(text, &[None]).pop().unwrap();
            let layout =
                crate::replay::layout::Layout::scan(TraceReader::new(text.as_bytes(), None).unwrap())
                    .unwrap();
            let requests = TraceReader::new(text.as_bytes(), None).unwrap().map(Result::unwrap);
            let expected: Vec<(u64, u64)> = requests
                .filter(|request| request.size_bytes > 0)
                .map(|request| (layout.offset(&request).unwrap(), u64::from(request.size_bytes)))
                .collect();
            assert_eq!((places(&held), held.size), (expected, layout.size.get()));
        }
    }

    #[test]
    fn pages_are_counted_each_time_and_each_once() {
        let held = read("1,5,28,8192,8\n1,5,28,4096,16\n1,6,2a,512,1\n", &[None]).pop().unwrap();
        assert_eq!((held.accesses, held.footprint_pages), (4, 3));
        let Whole { requests, writes, accesses, footprint_pages, span_ns } = held.whole;
        assert_eq!((requests, writes, accesses, footprint_pages, span_ns), (3, 1, 4, 3, 1_000_000_000));
    }

    /// Two thousand units of a device, each read whole: those of a sample lie side by side and in order, and no
    /// request of another one is there.
    #[test]
    fn a_sample_of_a_device_has_whole_units_side_by_side() {
        let unit = UNIT_PAGES * PAGE_SIZE;
        let line = |number: u64| format!("1,5,28,{unit},{}\n", number * unit / 512);
        let text: String = (0..2000).map(line).collect();
        let sample = Sample::new(16, 3).unwrap();
        let held = read(&text, &[Some(sample)]).pop().unwrap();
        let count = (0..2000).filter(|&number| sample.has(number)).count() as u64;
        assert_eq!((held.requests(), held.size), (count, count * unit));
        assert_eq!(places(&held), (0..count).map(|number| (number * unit, unit)).collect::<Vec<_>>());
        assert_eq!(held.footprint_pages, count * UNIT_PAGES);
        assert_eq!(held.times(), 2000.0 / count as f64);
    }

    /// One request over all of a device: what lies in units of the sample that touch each other stays one request.
    #[test]
    fn a_request_is_cut_at_the_edges_of_the_sample_only() {
        let unit = UNIT_PAGES * PAGE_SIZE;
        let sample = Sample::new(2, 1).unwrap();
        let held = read(&format!("1,5,28,{},8\n", 40 * unit), &[Some(sample)]).pop().unwrap();
        // It begins at byte 4096, so it has the end of unit 0 and the beginning of unit 40.
        let taken = |number: u64| sample.has(number);
        let runs = (0..=40).filter(|&number| taken(number) && (number == 0 || !taken(number - 1))).count();
        assert_eq!(held.requests(), runs as u64);
        let bytes: u64 = places(&held).iter().map(|(_, len)| len).sum();
        let expected = (0..=40).filter(|&number| taken(number)).map(|number| match number {
            0 => unit - 4096,
            40 => 4096,
            _ => unit,
        });
        assert_eq!(bytes, expected.sum::<u64>());
    }

    /// All of a device read in order, a thinned sample of it too: each request of a group's length is a page, and each
    /// continues where the one before it ended. A page that nobody asks for keeps its place.
    #[test]
    fn a_run_stays_a_run_in_a_thinned_sample() {
        let group = 16 * PAGE_SIZE;
        let line = |number: u64| format!("1,5,28,{group},{}\n", number * group / 512);
        let text: String = (0..1000).filter(|number| number % 10 != 9).map(line).collect();
        let sample = Sample::new(16, 3).unwrap().thinned(32);
        let held = read(&text, &[Some(sample)]).pop().unwrap();
        let expected =
            (0..1000).filter(|number| number % 10 != 9).map(|number| (number * PAGE_SIZE, PAGE_SIZE));
        assert_eq!(places(&held), expected.collect::<Vec<_>>());
        assert_eq!((held.one_of(), held.footprint_pages, held.times()), (16, 900, 16.0));
        assert_eq!(held.request_parts(), 16.0);
    }

    /// A run of single pages. One sampled page in 16 is the first of its group, where the run only goes on; of all
    /// others readahead has brought the page, but for one that may be among the first two of the run.
    #[test]
    fn what_readahead_of_the_whole_has_brought_is_marked_in_a_sample() {
        let line = |page: u64| format!("1,5,28,4096,{}\n", page * PAGE_SIZE / 512);
        let text: String = (0..16_000).map(line).collect();
        let held = read(&text, &[Some(Sample::new(16, 3).unwrap().thinned(32))]).pop().unwrap();
        let ahead: Vec<Ahead> =
            (0..).map_while(|number| held.get(number)).map(|placed| placed.ahead).collect();
        let count = |wanted| ahead.iter().filter(|&&ahead| ahead == wanted).count();
        assert!((40..90).contains(&count(Ahead::GoesOn)), "{}, expected 63", count(Ahead::GoesOn));
        assert!(count(Ahead::Nothing) <= 1 && ahead.len() == 1000);
        assert_eq!(places(&held), (0..1000).map(|page| (page * PAGE_SIZE, PAGE_SIZE)).collect::<Vec<_>>());
    }

    /// A request over many groups is one of many pages; one that misses the page of its group is none.
    #[test]
    fn a_request_has_as_many_pages_as_its_groups_are() {
        let sample = Sample::new(16, 3).unwrap().thinned(32);
        let long = read(&format!("1,5,28,{},0\n", 64 * 16 * PAGE_SIZE), &[Some(sample)]).pop().unwrap();
        assert_eq!(places(&long), [(0, 64 * PAGE_SIZE)]);
        let line = |page: u64| format!("1,5,2a,512,{}\n", page * PAGE_SIZE / 512);
        let text: String = (0..16).map(line).collect();
        assert_eq!(places(&read(&text, &[Some(sample)]).pop().unwrap()), [(0, 512)]);
    }

    #[test]
    fn a_sample_of_objects_has_all_requests_of_each_or_none() {
        let text: String = (0..3000).map(|number| format!("{number},{},4096\n", number % 300)).collect();
        let sample = Sample::new(4, 1).unwrap();
        let both = read(&text, &[None, Some(sample)]);
        let objects = (0..300).filter(|&object| sample.has(object)).count() as u64;
        assert_eq!((both[1].footprint_pages, both[1].accesses), (objects, 10 * objects));
        assert_eq!((both[0].footprint_pages, both[0].accesses), (300, 3000));
        assert_eq!(both[1].whole, both[0].whole);
        assert_eq!(read(&text, &[Some(sample)]), both[1..], "whatever else is read with it");
    }

    #[test]
    fn who_stops_the_reading_gets_nothing() {
        let text: String = (0..40_000).map(|number| format!("{number},1,4096\n")).collect();
        let reader = TraceReader::new(text.as_bytes(), None).unwrap();
        assert_eq!(Held::read(reader, false, &[None], &AtomicBool::new(true), |_| {}).unwrap(), None);
    }
}
