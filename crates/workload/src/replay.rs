//! A recorded trace, replayed as reads and writes of pages through a kernel's page cache.
//!
//! A block trace becomes one file as large as the device: a request reads or writes its bytes at
//! its offset. A trace of whole objects becomes one file in which each object has a place of its
//! own, in the order in which objects first turn up, as large as its largest request.
//!
//! Theory of operation: the trace is gone through once before anything runs ([`Layout::scan`]).
//! That finds every broken line first and tells how large the file is. Then one task makes the
//! requests in order, each as soon as the one before is done, or not before its recorded time.
//!
//! A *hit* is a page that was in memory when its request was made. Left out: several clients at
//! once; requests of size 0 (they touch nothing).

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use units::{Bytes, Nanos, PAGE_SIZE};

use crate::metric::{Better, MetricSpec, TIME_RESOLUTION_SECONDS};
use crate::names::UnknownName;
use crate::outcome::{Outcome, WorkloadError};
use crate::system::{OpenMode, System};
use crate::trace::{Request, RequestKind, TraceError, TraceFormat, TraceReader};

/// The metrics that head the report of a replay on a machine.
pub const METRICS: &[MetricSpec] = &[
    MetricSpec {
        name: "page_miss_ratio",
        unit: "ratio",
        better: Better::Less,
        of: None,
        resolution: 0.0,
        help: "pages not in memory when asked",
    },
    MetricSpec {
        name: "page_misses",
        unit: "pages",
        better: Better::Less,
        of: Some("pages_accessed"),
        resolution: 0.0,
        help: "pages not in memory when asked",
    },
    MetricSpec {
        name: "replay_seconds",
        unit: "s",
        better: Better::Less,
        of: None,
        resolution: TIME_RESOLUTION_SECONDS,
        help: "until the last request is done",
    },
];

/// When requests are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Timing {
    /// Each as soon as the one before is done.
    #[default]
    Asap,
    /// Not before its recorded time.
    Recorded,
}

impl Timing {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Asap, Self::Recorded];

    /// The name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Asap => "asap",
            Self::Recorded => "recorded",
        }
    }
}

impl FromStr for Timing {
    type Err = UnknownName;
    fn from_str(text: &str) -> Result<Self, UnknownName> {
        Self::ALL
            .into_iter()
            .find(|timing| timing.name() == text)
            .ok_or_else(|| UnknownName::new("timing", text, Self::ALL.iter().map(|timing| timing.name())))
    }
}

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
    objects: BTreeMap<u64, u64>,
    is_block: bool,
}

impl Layout {
    /// Goes through a trace.
    ///
    /// # Errors
    /// The first record that cannot be read.
    pub fn scan<R: Read>(mut reader: TraceReader<R>) -> Result<Self, TraceError> {
        let is_block = reader.format().is_block();
        let (mut requests, mut end) = (0, 0_u64);
        let mut sizes: Vec<(u64, u32)> = Vec::new();
        let mut places: BTreeMap<u64, usize> = BTreeMap::new();
        for request in reader.by_ref() {
            let request = request?;
            requests += 1;
            if is_block {
                end = end.max(request.offset_bytes.saturating_add(u64::from(request.size_bytes)));
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
        Ok(Self { size: Bytes(end), requests, skipped: reader.skipped(), objects, is_block })
    }

    fn offset(&self, request: &Request) -> u64 {
        if self.is_block { request.offset_bytes } else { self.objects[&request.object] }
    }
}

/// A trace with everything that replaying it depends on.
#[derive(Debug, Clone)]
pub struct Replay {
    path: PathBuf,
    format: TraceFormat,
    layout: Layout,
    timing: Timing,
}

const FILE: &str = "device";

impl Replay {
    /// Opens and checks the trace at `path`; its format is detected unless given.
    ///
    /// # Errors
    /// A file that cannot be opened, or the first record that cannot be read.
    pub fn open(path: &Path, format: Option<TraceFormat>, timing: Timing) -> Result<Self, TraceError> {
        let reader = TraceReader::open(path, format)?;
        let format = reader.format();
        Ok(Self { path: path.to_owned(), format, layout: Layout::scan(reader)?, timing })
    }

    /// Where its requests lie.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Replays it in one task of the root cgroup.
    ///
    /// # Errors
    /// A failing system call, or a trace that changed since it was checked.
    pub async fn run<S: System>(&self, sys: S) -> Result<Outcome, WorkloadError> {
        sys.lay_out_file(FILE, self.layout.size).await?;
        let file = sys.open(FILE, OpenMode::ReadWrite).await?;
        let mut count = Counts::default();
        let begin = sys.now();
        let mut first_time = None;
        let changed = |error: TraceError| WorkloadError::Trace(error.to_string());
        for request in TraceReader::open(&self.path, Some(self.format)).map_err(changed)? {
            let request = request.map_err(changed)?;
            if self.timing == Timing::Recorded {
                let first = *first_time.get_or_insert(request.time_ns);
                let due = begin + Nanos(request.time_ns.saturating_sub(first));
                let ahead = due.saturating_sub(sys.now());
                if ahead > Nanos::ZERO {
                    sys.sleep(ahead).await;
                }
            }
            let (offset, len) = (self.layout.offset(&request), u64::from(request.size_bytes));
            if len == 0 {
                continue;
            }
            count.pages += (offset + len).div_ceil(PAGE_SIZE) - (offset / PAGE_SIZE);
            count.hits += sys.resident_pages(&file, offset, len).await?;
            match request.kind {
                RequestKind::Read => {
                    count.reads += 1;
                    sys.read(&file, offset, len).await?;
                }
                RequestKind::Write => {
                    count.writes += 1;
                    sys.write(&file, offset, len).await?;
                }
            }
        }
        let length = sys.now().saturating_sub(begin);
        sys.mark("replayed");
        Ok(count.outcome(length, self.layout.skipped))
    }
}

#[derive(Debug, Default)]
struct Counts {
    reads: u64,
    writes: u64,
    pages: u64,
    hits: u64,
}

impl Counts {
    fn outcome(&self, length: Nanos, skipped: u64) -> Outcome {
        let mut outcome = Outcome::default();
        outcome.metric("requests", (self.reads + self.writes) as f64);
        outcome.metric("requests_read", self.reads as f64);
        outcome.metric("requests_write", self.writes as f64);
        outcome.metric("records_skipped", skipped as f64);
        outcome.metric("pages_accessed", self.pages as f64);
        outcome.metric("page_hits", self.hits as f64);
        outcome.metric("page_misses", (self.pages - self.hits) as f64);
        if self.pages > 0 {
            outcome.metric("page_miss_ratio", (self.pages - self.hits) as f64 / self.pages as f64);
        }
        outcome.metric("replay_seconds", length.as_secs_f64());
        outcome
    }
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
    fn objects_lie_one_behind_the_other_as_they_turn_up() {
        let layout = scan("time,object,size\n0,77,5000\n1,3,100\n2,77,6000\n");
        assert_eq!(layout.objects, BTreeMap::from([(77, 0), (3, 8192)]));
        assert_eq!(layout.size, Bytes(12288));
    }
}
