//! What waits before a device, and the I/O scheduler that merges and sorts it (`mq-deadline`).
//!
//! Background (kernel documentation, `block/deadline-iosched`): a disk that turns loses 8 ms wherever a request
//! does not begin where the one before it ended. So requests that lie side by side are merged while they
//! wait, and the others are sent on in *batches*: up to [`FIFO_BATCH`] of one direction, in ascending order.
//! Between two batches, reads go first, but not more than [`WRITES_STARVED`] times while writes wait; then, if the
//! oldest request of that direction has waited longer than it should ([`READ_EXPIRE`], [`WRITE_EXPIRE`]), or none
//! lies further up, the batch begins with the oldest one.
//!
//! ```text
//!               +- reads:  by age, by place -+
//! add, merge ---|                            |--- batches ---> places of the device
//!               +- writes: by age, by place -+
//! durable writes ------ first come, first served ----------->  (before all others)
//! ```
//!
//! Each step takes O(log n) for n requests that wait. Left out: priorities of tasks, the limit of asynchronous
//! requests (5.14), the longest list of segments. A merged request still counts as several for the kernel's
//! limit of requests (`nr_requests`). Next: `device.rs`, which takes from here when it has a place free.

use std::collections::{BTreeMap, VecDeque};

use kernel::machine::{IoKind, IoRequest};
use units::{CpuId, Nanos};

use crate::hardware::device::IoScheduler;

/// Requests of a batch (`fifo_batch`).
const FIFO_BATCH: u32 = 16;
/// Batches of reads that writes let pass (`writes_starved`).
const WRITES_STARVED: u32 = 2;
/// How long a request may wait before others have to let it pass.
const READ_EXPIRE: Nanos = Nanos::from_millis(500);
const WRITE_EXPIRE: Nanos = Nanos::from_secs(5);
/// No request becomes longer than this by merging: the longest that the kernel makes.
const LONGEST: u64 = 512 << 10;

/// A request as the kernel sent it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sent {
    pub(crate) tag: u64,
    pub(crate) submitted: u64,
}

/// A request in the device or before it: one that was sent, or several that were merged.
#[derive(Debug, Clone)]
pub(crate) struct Pending {
    pub(crate) request: IoRequest,
    /// The CPU that takes the interrupt.
    pub(crate) cpu: CpuId,
    /// When the last part of it was sent, and from when on it is in the device.
    submitted: u64,
    pub(crate) ready_at: u64,
    /// Those that it was merged from, in their order on the disk; empty where it was sent as it is.
    parts: Vec<Sent>,
    expires: u64,
}

impl Pending {
    pub(crate) fn new(request: IoRequest, cpu: CpuId, submitted: u64) -> Self {
        let expire = if request.kind == IoKind::Read { READ_EXPIRE } else { WRITE_EXPIRE };
        let expires = submitted.saturating_add(expire.0);
        Self { request, cpu, submitted, ready_at: submitted, parts: Vec::new(), expires }
    }

    /// The request, in the device from `now` on.
    pub(crate) fn admitted(self, now: u64) -> Self {
        Self { ready_at: self.submitted.max(now), ..self }
    }

    pub(crate) fn end(&self) -> u64 {
        self.request.offset.saturating_add(self.request.len.0)
    }

    /// What it was merged from, or itself.
    pub(crate) fn sent(&self) -> impl Iterator<Item = Sent> + '_ {
        let whole = Sent { tag: self.request.tag, submitted: self.submitted };
        let alone = self.parts.is_empty().then_some(whole);
        alone.into_iter().chain(self.parts.iter().copied())
    }

    /// Appends a request that begins where this one ends.
    fn append(&mut self, behind: Self) {
        if self.parts.is_empty() {
            self.parts.push(Sent { tag: self.request.tag, submitted: self.submitted });
        }
        self.parts.extend(behind.sent());
        self.request.len.0 += behind.request.len.0;
        self.request.segments += behind.request.segments;
        self.submitted = self.submitted.max(behind.submitted);
        self.expires = self.expires.min(behind.expires);
    }
}

/// What waits before a device.
#[derive(Debug)]
pub(crate) enum IoQueue {
    /// First come, first served (`none`).
    Fifo(VecDeque<Pending>),
    /// Merged and sorted.
    Deadline(Box<Deadline>),
}

impl IoQueue {
    pub(crate) fn new(scheduler: IoScheduler) -> Self {
        match scheduler {
            IoScheduler::None => Self::Fifo(VecDeque::new()),
            IoScheduler::MqDeadline => Self::Deadline(Box::new(Deadline::new())),
        }
    }

    /// Takes in a request; tells how many fewer wait for its being merged with those that it touches.
    pub(crate) fn add(&mut self, pending: Pending) -> u64 {
        match self {
            Self::Fifo(queue) => {
                queue.push_back(pending);
                0
            }
            Self::Deadline(deadline) => deadline.add(pending),
        }
    }

    /// The request that the device is to have next.
    pub(crate) fn next(&mut self, now: u64) -> Option<Pending> {
        match self {
            Self::Fifo(queue) => queue.pop_front(),
            Self::Deadline(deadline) => deadline.next(now),
        }
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Fifo(queue) => queue.len(),
            Self::Deadline(deadline) => deadline.len(),
        }
    }
}

/// Reads or writes that wait.
#[derive(Debug, Default)]
struct Lane {
    /// By place on the disk, and by age where several begin at one.
    by_place: BTreeMap<(u64, u64), Pending>,
    /// Places by age.
    by_age: BTreeMap<u64, u64>,
    /// The next batch goes on behind this one, which was sent on last.
    last: Option<(u64, u64)>,
}

impl Lane {
    fn insert(&mut self, age: u64, pending: Pending) {
        self.by_age.insert(age, pending.request.offset);
        self.by_place.insert((pending.request.offset, age), pending);
    }

    fn remove(&mut self, key: (u64, u64)) -> Pending {
        self.by_age.remove(&key.1).expect("what has a place has an age");
        self.by_place.remove(&key).expect("what has an age has a place")
    }

    /// Adds a request, as part of those that it touches if that makes none too long; tells how many these are.
    fn add(&mut self, mut age: u64, mut pending: Pending) -> u64 {
        let (offset, end, mut merged) = (pending.request.offset, pending.end(), 0);
        let fits = |one: &Pending, other: &Pending| one.request.len.0 + other.request.len.0 <= LONGEST;
        let before = self.by_place.range(..(offset, 0)).next_back();
        if let Some((&key, _)) = before.filter(|(_, other)| other.end() == offset && fits(other, &pending)) {
            let mut front = self.remove(key);
            front.append(pending);
            (pending, age, merged) = (front, age.min(key.1), 1);
        }
        let behind = self.by_place.range((end, 0)..).next();
        if let Some((&key, _)) = behind.filter(|(key, other)| key.0 == end && fits(other, &pending)) {
            pending.append(self.remove(key));
            (age, merged) = (age.min(key.1), merged + 1);
        }
        self.insert(age, pending);
        merged
    }

    /// The next one upwards from where the last batch ended.
    fn upwards(&self) -> Option<(u64, u64)> {
        use std::ops::Bound::{Excluded, Unbounded};
        let behind = (self.last.map_or(Unbounded, Excluded), Unbounded);
        self.by_place.range(behind).next().map(|(&key, _)| key)
    }

    fn oldest(&self) -> Option<(u64, u64)> {
        self.by_age.first_key_value().map(|(&age, &offset)| (offset, age))
    }

    /// Where a batch begins.
    fn first_of_batch(&self, now: u64) -> Option<(u64, u64)> {
        let oldest = self.oldest()?;
        let is_late = self.by_place[&oldest].expires <= now;
        if is_late { Some(oldest) } else { self.upwards().or(Some(oldest)) }
    }

    fn take(&mut self, key: (u64, u64)) -> Pending {
        self.last = Some(key);
        self.remove(key)
    }

    fn is_empty(&self) -> bool {
        self.by_place.is_empty()
    }
}

/// The scheduler `mq-deadline`.
#[derive(Debug)]
pub(crate) struct Deadline {
    /// Durable writes, which no scheduler sees.
    durable: VecDeque<Pending>,
    reads: Lane,
    writes: Lane,
    /// The direction of the batch, and how many of it were sent on.
    writing: bool,
    sent: u32,
    /// Batches of reads that writes let pass.
    starved: u32,
    /// Requests so far: the age of the next one.
    added: u64,
}

impl Deadline {
    fn new() -> Self {
        Self {
            durable: VecDeque::new(),
            reads: Lane::default(),
            writes: Lane::default(),
            writing: false,
            sent: FIFO_BATCH, // A batch is to begin.
            starved: 0,
            added: 0,
        }
    }

    fn add(&mut self, pending: Pending) -> u64 {
        let age = self.added;
        self.added += 1;
        match pending.request.kind {
            IoKind::Read => self.reads.add(age, pending),
            IoKind::Write => self.writes.add(age, pending),
            IoKind::DurableWrite => {
                self.durable.push_back(pending);
                0
            }
        }
    }

    fn next(&mut self, now: u64) -> Option<Pending> {
        if let Some(durable) = self.durable.pop_front() {
            return Some(durable);
        }
        let key = match self.lane().upwards().filter(|_| self.sent < FIFO_BATCH) {
            Some(key) => key,
            None => {
                self.choose_direction();
                self.sent = 0;
                self.lane().first_of_batch(now)?
            }
        };
        self.sent += 1;
        Some(self.lane().take(key))
    }

    /// Reads go first, unless writes have waited for some batches of them.
    fn choose_direction(&mut self) {
        let both = !self.reads.is_empty() && !self.writes.is_empty();
        self.writing = self.reads.is_empty() || (both && self.starved >= WRITES_STARVED);
        self.starved = if both && !self.writing { self.starved + 1 } else { 0 };
    }

    fn lane(&mut self) -> &mut Lane {
        if self.writing { &mut self.writes } else { &mut self.reads }
    }

    fn len(&self) -> usize {
        self.durable.len() + self.reads.by_place.len() + self.writes.by_place.len()
    }
}
