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
//! A *hit* is a page that was in memory when its request was made; of a request that finds some of
//! its pages, as many bytes are missed as pages, in proportion. The requests of a warm-up are made and
//! not counted. Left out: several clients at once; requests of size 0 (they touch nothing).
//!
//! With [`Limits`] the requests are made in a cgroup of their own, and its figures are measured, too. A trace that
//! many runs share is [`Held`] in memory, whole or as a hashed [`Sample`] of its addresses.
//!
//! | file | what it holds |
//! |---|---|
//! | `replay/layout.rs` | where requests lie in the file |
//! | `replay/held.rs` | a trace in memory |
//! | `replay/sample.rs` | which addresses are in a sample |

mod held;
mod layout;
mod sample;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use sample::Ahead;
use units::{Bytes, Nanos};

pub use held::{Held, Whole};
pub use layout::Layout;
use layout::{Placed, pages_of};
pub use sample::{ONE_IN_MAX, Sample, UNIT_PAGES};

use crate::parts::group_figures::GroupFigures;
use crate::parts::limits::Limits;
use crate::system::outcome::{Outcome, WorkloadError};
use crate::system::{OpenMode, System};
use language::amount::Warmup;
use language::metric::{Better, MetricSpec, TIME_RESOLUTION_SECONDS, metric};
use language::names::UnknownName;
use trace::requests::{RequestKind, TraceError, TraceFormat, TraceReader};

/// The metrics that head the report of a replay on a machine.
pub const METRICS: &[MetricSpec] = &[
    metric("page_miss_ratio", "ratio", Better::Less, "pages not in memory when asked"),
    metric("page_misses", "pages", Better::Less, "pages not in memory when asked").of("pages_accessed"),
    metric("replay_seconds", "s", Better::Less, "until the last request is done")
        .resolved_to(TIME_RESOLUTION_SECONDS),
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

/// How a trace is replayed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReplayOptions {
    /// The trace's format; `None` looks at its content.
    pub format: Option<TraceFormat>,
    /// Whether times may decrease.
    pub unsorted: bool,
    /// When requests are made.
    pub timing: Timing,
    /// What is not counted.
    pub warmup: Warmup,
}

/// A trace with everything that replaying it depends on.
#[derive(Debug, Clone)]
pub struct Replay {
    source: Source,
    options: ReplayOptions,
    layout: Layout,
    /// Of the cgroup that its requests are made in; none: they are made in the root.
    limits: Option<Limits>,
    /// Requests made so far, for whoever watches.
    done: Arc<AtomicU64>,
}

/// Where its requests come from.
#[derive(Debug, Clone)]
enum Source {
    /// A file, read by each run.
    File(PathBuf),
    /// Memory, shared by all.
    Held(Arc<Held>),
}

const FILE: &str = "device";

impl Replay {
    /// Checks the trace in `source`, whose bytes are those of the file `path`; its format is detected
    /// unless given.
    ///
    /// # Errors
    /// The first record that cannot be read.
    pub fn new(path: &Path, source: impl Read, options: ReplayOptions) -> Result<Self, TraceError> {
        let reader = TraceReader::new(source, options.format)?.unsorted(options.unsorted);
        let options = ReplayOptions { format: Some(reader.format()), ..options };
        let layout = Layout::scan(reader)?;
        let source = Source::File(path.to_owned());
        Ok(Self { source, options, layout, limits: None, done: Arc::default() })
    }

    /// Of a trace in memory. Times count only where they were kept.
    pub fn of_held(held: Arc<Held>, options: ReplayOptions) -> Self {
        let (requests, skipped, objects) = (held.requests(), held.skipped, BTreeMap::new());
        let layout = Layout { size: Bytes(held.size), requests, skipped, objects, is_block: true };
        Self { source: Source::Held(held), options, layout, limits: None, done: Arc::default() }
    }

    /// The same one with its requests made in a cgroup with these limits, whose figures are measured, too.
    #[must_use]
    pub fn limited(self, limits: Limits) -> Self {
        Self { limits: Some(limits), ..self }
    }

    /// Where its requests lie.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The trace's format.
    pub fn format(&self) -> TraceFormat {
        self.options.format.expect("known since the trace was checked")
    }

    /// The same one, which counts the requests that it has made in `done`.
    #[must_use]
    pub fn watched(&self, done: Arc<AtomicU64>) -> Self {
        Self { done, ..self.clone() }
    }

    /// Replays it in one task of the root cgroup, or in one of a group of its own.
    ///
    /// # Errors
    /// A failing system call, or a trace that changed since it was checked.
    pub async fn run<S: System>(&self, sys: S) -> Result<Outcome, WorkloadError> {
        sys.lay_out_file(FILE, self.layout.size).await?;
        let Some(limits) = self.limits else { return self.make_requests(sys, false).await };
        limits.group(&sys).await?;
        let own = self.clone();
        let requests = move |sys| async move { own.make_requests(sys, true).await };
        let task = sys.spawn(Limits::task("replay"), requests).await?;
        sys.join(task).await?
    }

    async fn make_requests<S: System>(&self, sys: S, limited: bool) -> Result<Outcome, WorkloadError> {
        let file = sys.open(FILE, OpenMode::ReadWrite).await?;
        let warmup = self.options.warmup.of(self.layout.requests);
        let mut count = Counts::default();
        let mut warms_up = self.options.warmup != Warmup::None;
        let mut group = GroupFigures::default();
        if limited {
            sys.mark("laid out");
        }
        let (start, mut begin) = (sys.now(), sys.now());
        let mut first_time = None;
        let mut requests = self.requests()?;
        let of_sample = matches!(&self.source, Source::Held(held) if held.sample.is_some());
        let mut look = Look { of_sample, missed: false };
        let mut number = 0;
        while let Some(request) = requests.next()? {
            let since_first =
                Nanos(request.time_ns.saturating_sub(*first_time.get_or_insert(request.time_ns)));
            if warms_up && !warmup.covers(number, since_first) {
                warms_up = false;
                sys.mark("warm-up");
                if limited {
                    group = GroupFigures::read(&sys).await?;
                }
                (count, begin) = (Counts { warmup: number, ..Counts::default() }, sys.now());
            }
            number += 1;
            self.done.store(number, Ordering::Relaxed);
            if self.options.timing == Timing::Recorded {
                let ahead = (start + since_first).saturating_sub(sys.now());
                if ahead > Nanos::ZERO {
                    sys.sleep(ahead).await;
                }
            }
            let Placed { offset, len, .. } = request;
            if len == 0 {
                continue;
            }
            let asked = sys.now();
            count.request(offset, len, look.hits(&sys, &file, &request).await?);
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
            count.in_requests += sys.now().saturating_sub(asked);
        }
        if number != self.layout.requests {
            return Err(changed());
        }
        if warms_up {
            return Err(WorkloadError::Trace(warmup_is_all(self.options.warmup, number)));
        }
        let length = sys.now().saturating_sub(begin);
        sys.mark("replayed");
        let mut outcome = count.outcome(length, self.layout.skipped, self.options.warmup);
        if limited {
            outcome.metric("in_requests_seconds", count.in_requests.as_secs_f64());
            GroupFigures::read(&sys).await?.since(&group).tell(&mut outcome);
        }
        Ok(outcome)
    }

    /// Its requests from the first one on.
    fn requests(&self) -> Result<Requests<'_>, WorkloadError> {
        match &self.source {
            Source::Held(held) => Ok(Requests::Held { held, next: 0 }),
            Source::File(path) => {
                let reader = TraceReader::open(path, self.options.format).map_err(failed)?;
                let reader = Box::new(reader.unsorted(self.options.unsorted));
                Ok(Requests::File { reader, layout: &self.layout })
            }
        }
    }
}

/// Looks which pages are there before a request.
#[derive(Debug)]
struct Look {
    /// Of a sample those count, too, that readahead of the whole would have brought ([`Ahead`]).
    of_sample: bool,
    /// Whether the last page of the read before was not there; known of a sample only.
    missed: bool,
}

impl Look {
    async fn hits<S: System>(
        &mut self,
        sys: &S,
        file: &S::File,
        request: &Placed,
    ) -> Result<u64, WorkloadError> {
        let &Placed { offset, len, kind, ahead, .. } = request;
        let hits = sys.resident_pages(file, offset, len).await?;
        let missed_before = std::mem::replace(&mut self.missed, false);
        // Anybody else is spared more looks, each of which is a system call on a real kernel.
        if !self.of_sample || hits == pages_of(offset, len) {
            return Ok(hits);
        }
        if kind == RequestKind::Read {
            self.missed = sys.resident_pages(file, offset + len - 1, 1).await? == 0;
        }
        let had_readahead = match ahead {
            Ahead::Nothing => false,
            Ahead::Brought => true,
            Ahead::GoesOn => missed_before,
        };
        let is_brought = had_readahead && sys.resident_pages(file, offset, 1).await? == 0;
        Ok(hits + u64::from(is_brought))
    }
}

/// The requests of a run, one after the other.
enum Requests<'a> {
    File { reader: Box<TraceReader<File>>, layout: &'a Layout },
    Held { held: &'a Held, next: usize },
}

impl Requests<'_> {
    fn next(&mut self) -> Result<Option<Placed>, WorkloadError> {
        match self {
            Self::Held { held, next } => {
                *next += 1;
                Ok(held.get(*next - 1))
            }
            Self::File { reader, layout } => {
                let Some(request) = reader.next() else { return Ok(None) };
                let request = request.map_err(failed)?;
                let offset = layout.offset(&request).ok_or_else(changed)?;
                let len = u64::from(request.size_bytes);
                Ok(Some(Placed {
                    time_ns: request.time_ns,
                    kind: request.kind,
                    offset,
                    len,
                    ahead: Ahead::Nothing,
                }))
            }
        }
    }
}

fn failed(error: TraceError) -> WorkloadError {
    WorkloadError::Trace(error.to_string())
}

fn changed() -> WorkloadError {
    WorkloadError::Trace("the trace has changed since it was checked".to_owned())
}

/// Why there is nothing to count.
pub fn warmup_is_all(warmup: Warmup, requests: u64) -> String {
    format!("a warm-up of `{warmup}` leaves none of the trace's {requests} requests to count")
}

#[derive(Debug, Default)]
struct Counts {
    /// Requests before the first that counts.
    warmup: u64,
    reads: u64,
    writes: u64,
    /// Requests that found all of their pages.
    request_hits: u64,
    bytes: u64,
    missed_bytes: u64,
    pages: u64,
    hits: u64,
    /// Time between asking and having.
    in_requests: Nanos,
}

impl Counts {
    fn request(&mut self, offset: u64, len: u64, hits: u64) {
        let pages = pages_of(offset, len);
        self.pages += pages;
        self.hits += hits;
        self.request_hits += u64::from(hits == pages);
        self.bytes += len;
        self.missed_bytes += len * (pages - hits) / pages;
    }

    fn outcome(&self, length: Nanos, skipped: u64, warmup: Warmup) -> Outcome {
        let requests = self.reads + self.writes;
        let mut outcome = Outcome::default();
        outcome.metric("requests", requests as f64);
        outcome.metric("requests_read", self.reads as f64);
        outcome.metric("requests_write", self.writes as f64);
        outcome.metric("records_skipped", skipped as f64);
        outcome.metric("pages_accessed", self.pages as f64);
        outcome.metric("page_hits", self.hits as f64);
        outcome.metric("page_misses", (self.pages - self.hits) as f64);
        outcome.metric("accessed_bytes", self.bytes as f64);
        if self.pages > 0 {
            outcome.metric("page_miss_ratio", (self.pages - self.hits) as f64 / self.pages as f64);
            outcome.metric("miss_ratio", (requests - self.request_hits) as f64 / requests as f64);
            outcome.metric("byte_miss_ratio", self.missed_bytes as f64 / self.bytes as f64);
        }
        if warmup != Warmup::None {
            outcome.metric("warmup_requests", self.warmup as f64);
        }
        outcome.metric("replay_seconds", length.as_secs_f64());
        outcome
    }
}
