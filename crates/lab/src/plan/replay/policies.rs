//! One reading of a trace for any number of policies.
//!
//! The trace goes through in parts: while all caches are fed one, in parallel, the next is read. What
//! a cache counts depends on the order of requests alone, so neither the parts nor the threads show.

use std::collections::BTreeMap;
use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use policy::{Cache, Capacity, Counted, Future, PolicySpec, Wanted};
use rayon::prelude::*;
use trace::requests::{TraceError, TraceReader};
use units::Nanos;
use workload::amount::{Warmup, WarmupEnd};

/// Requests in a part: large beside what it costs to hand it over, small beside a cache of the CPU.
const PART_LEN: usize = 1 << 14;

/// Whom to ask whether to stop, and whom to tell how many bytes were read.
pub(super) struct Watch<'a> {
    pub(super) stop: &'a AtomicBool,
    pub(super) report: &'a (dyn Fn(u64) + Sync),
}

/// What a reading left.
pub(super) struct Fed {
    pub(super) requests: u64,
    /// Those of them that were not counted.
    pub(super) warmup: u64,
    /// For each cache.
    pub(super) counted: Vec<Counted>,
}

/// Feeds all of a trace to caches; nothing when it was stopped.
pub(super) fn feed<R: Read + Send>(
    reader: &mut TraceReader<R>,
    warmup: WarmupEnd,
    caches: impl Iterator<Item = (PolicySpec, Capacity)>,
    future: &Arc<Future>,
    watch: &Watch<'_>,
) -> Result<Option<Fed>, TraceError> {
    let mut caches: Vec<Cache> =
        caches.map(|(policy, capacity)| Cache::new(&policy, capacity, future)).collect();
    let mut parts = Parts { reader, warmup, first_ns: None, requests: 0, uncounted: 0 };
    let mut part = Part::default();
    let mut next = Part::default();
    let mut told = 0;
    parts.read(&mut part)?;
    while !part.requests.is_empty() {
        if watch.stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let (warm, counted) = part.requests.split_at(part.warm);
        let feed = |cache: &mut Cache| {
            cache.feed(warm, false);
            cache.feed(counted, true);
        };
        let (read, ()) = rayon::join(|| parts.read(&mut next), || caches.par_iter_mut().for_each(feed));
        read?;
        std::mem::swap(&mut part, &mut next);
        let bytes = parts.reader.bytes_read();
        (watch.report)(bytes - told);
        told = bytes;
    }
    let counted = caches.iter().map(Cache::counted).collect();
    Ok(Some(Fed { requests: parts.requests, warmup: parts.uncounted, counted }))
}

/// Requests that follow each other; the first `warm` of them are not counted.
#[derive(Default)]
struct Part {
    requests: Vec<Wanted>,
    warm: usize,
}

struct Parts<'a, R> {
    reader: &'a mut TraceReader<R>,
    warmup: WarmupEnd,
    first_ns: Option<u64>,
    requests: u64,
    uncounted: u64,
}

impl<R: Read> Parts<'_, R> {
    /// The next part; empty at the end.
    fn read(&mut self, part: &mut Part) -> Result<(), TraceError> {
        part.requests.clear();
        part.warm = 0;
        for request in self.reader.by_ref().take(PART_LEN) {
            let request = request?;
            let since_first = request.time_ns.saturating_sub(*self.first_ns.get_or_insert(request.time_ns));
            // Once a request counts, all that follow do.
            if self.uncounted == self.requests && self.warmup.covers(self.requests, Nanos(since_first)) {
                self.uncounted += 1;
                part.warm += 1;
            }
            self.requests += 1;
            part.requests.push(Wanted { object: request.object, bytes: request.size_bytes });
        }
        Ok(())
    }
}

/// What a recording says of a cache.
pub(super) fn metrics(counted: &Counted, warmup: Warmup, uncounted: u64) -> BTreeMap<String, f64> {
    let ratio = |ratio: Option<f64>| ratio.unwrap_or(f64::NAN);
    let mut metrics = vec![
        ("requests", counted.requests as f64),
        ("misses", counted.misses as f64),
        ("evictions", counted.evictions as f64),
        ("miss_ratio", ratio(counted.miss_ratio())),
        ("requested_bytes", counted.bytes as f64),
        ("missed_bytes", counted.missed_bytes as f64),
        ("byte_miss_ratio", ratio(counted.byte_miss_ratio())),
    ];
    if counted.read_ahead > 0 {
        metrics.push(("objects_read_ahead", counted.read_ahead as f64));
    }
    if warmup != Warmup::None {
        metrics.push(("warmup_requests", uncounted as f64));
    }
    metrics.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}
