//! Block devices: a queue, a channel and a latency.
//!
//! A device takes up to `depth` requests from its queue, which an I/O scheduler may sort. Each occupies
//! the device's one channel for the larger of its share of the operations per second and of the
//! bandwidth, and is complete a fixed latency after it leaves the channel:
//!
//! ```text
//! submitted      admitted   channel free           complete
//!     |--- queue ----|-- wait --|=== occupancy ===|--- latency ---|
//!                    |<---------- one of `depth` places --------->|
//! ```
//!
//! So one request alone takes occupancy + latency, many take occupancy each, and never more than
//! depth / (occupancy + latency) are done per second. Each element of a request's scatter-gather list may
//! cost something of its own ([`DeviceModel::segment`]): then it matters whether its pages lie one behind
//! the other in memory. A device may write slower after a burst
//! (an SSD whose fast cells are full) until it has rested, and all devices may share one host adapter.
//!
//! A disk sorts what it has in its places, too (native command queueing): it serves all that it has upwards from
//! where its head is, then what came meanwhile, so that nobody waits longer than for two such *sweeps*. A durable
//! write is between two sweeps, as a flush of the disk's memory is no command that is queued.
//!
//! Left out: how far the head moves, and when the platter comes round; a disk's memory for writes.
//!
//! Read next: `hardware/device.rs` for what devices can do, `elevator.rs` for what waits before them,
//! `machine/state.rs`, which turns completions into events.

use kernel::machine::{IoKind, IoRequest};
use units::{Bytes, CpuId, Nanos};

use crate::devices::elevator::{IoQueue, Pending};
use crate::devices::sweep::Sweep;
use crate::hardware::device::{DeviceModel, Order, Speed, transfer_time};

/// What a device has done so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DeviceCounters {
    /// Reads completed; several that were merged are one.
    pub reads: u64,
    /// Writes completed, likewise.
    pub writes: u64,
    /// Requests that were merged with one that waited.
    pub merges: u64,
    /// Bytes read.
    pub read_bytes: Bytes,
    /// Bytes written.
    pub write_bytes: Bytes,
    /// Runs of adjacent frames in the completed requests.
    pub segments: u64,
    /// Time that the channel was occupied, by requests completed or admitted.
    pub busy: Nanos,
    /// Sum over the completed requests of the time from submission to completion.
    pub waited: Nanos,
    /// The most requests that were submitted and not complete at a time.
    pub most_in_flight: u64,
}

/// A request that the device has begun and will complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Begun {
    /// When it will be complete.
    pub(crate) done: u64,
    /// Its place in the device.
    pub(crate) slot: u32,
}

/// A request that is complete.
#[derive(Debug, Clone)]
pub(crate) struct Completed {
    pub(crate) pending: Pending,
    /// The next one that it begins.
    pub(crate) next: Option<Begun>,
}

/// The adapter between the host and all its devices.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HostLink {
    /// Bytes per second; `None` when it is never the bottleneck.
    pub(crate) bandwidth: Option<u64>,
    free_at: u64,
}

impl HostLink {
    pub(crate) fn new(bandwidth: Option<u64>) -> Self {
        Self { bandwidth, free_at: 0 }
    }

    /// When `len` bytes that begin to move at `start` are through.
    fn pass(&mut self, start: u64, len: Bytes) -> u64 {
        let Some(bandwidth) = self.bandwidth else { return start };
        self.free_at = self.free_at.max(start) + transfer_time(len, bandwidth);
        self.free_at
    }
}

/// A device at work.
#[derive(Debug)]
pub(crate) struct Device {
    model: DeviceModel,
    waiting: IoQueue,
    places: Vec<Option<Pending>>,
    free_places: Vec<u32>,
    /// Of a disk: those of its places that it has not begun, and whether it has begun one.
    sweep: Sweep,
    is_at_work: bool,
    channel_free_at: u64,
    next_offset: u64,
    /// Tracks in the buffer, the most recently used one last.
    buffered: Vec<u64>,
    /// Bytes in the fast cells.
    burst_used: u64,
    /// Since when the device has had nothing to do, when it has not.
    resting_since: u64,
    pub(crate) counters: DeviceCounters,
}

impl Device {
    pub(crate) fn new(model: DeviceModel) -> Self {
        Self {
            free_places: (0..model.depth).rev().collect(),
            places: vec![None; model.depth as usize],
            waiting: IoQueue::new(model.scheduler),
            model,
            sweep: Sweep::default(),
            is_at_work: false,
            channel_free_at: 0,
            next_offset: 0,
            buffered: Vec::new(),
            burst_used: 0,
            resting_since: 0,
            counters: DeviceCounters::default(),
        }
    }

    /// Whether a request has to wait while the CPU that sends it is in the kernel.
    pub(crate) fn waits_for_cpu(&self) -> bool {
        self.model.by_host_thread
    }

    /// Requests after which whoever sends them lets the device have them.
    pub(crate) fn gathers(&self) -> usize {
        usize::from(self.model.gathers)
    }

    /// Takes a request that is sent at `now`, which may lie ahead by the CPU time that its sender has
    /// still to pass; tells when it will be complete if there is a place for it now.
    pub(crate) fn submit(
        &mut self,
        now: u64,
        request: IoRequest,
        cpu: CpuId,
        link: &mut HostLink,
    ) -> Option<Begun> {
        if self.free_places.len() == self.places.len() {
            self.empty_cells(now.saturating_sub(self.resting_since));
        }
        self.counters.merges += self.waiting.add(Pending::new(request, cpu, now));
        let in_flight = self.waiting.len() + self.requests_in_places();
        self.counters.most_in_flight = self.counters.most_in_flight.max(in_flight as u64);
        self.begin_next(now, link)
    }

    /// Completes the request in `slot` and begins the next one that waits.
    pub(crate) fn complete(&mut self, now: u64, slot: u32, link: &mut HostLink) -> Completed {
        let pending = self.places[slot as usize].take().expect("a completion belongs to a request in flight");
        self.free_places.push(slot);
        self.is_at_work = false;
        self.resting_since = now;
        let IoRequest { kind, len, segments, .. } = pending.request;
        let (requests, bytes) = match kind {
            IoKind::Read => (&mut self.counters.reads, &mut self.counters.read_bytes),
            IoKind::Write | IoKind::DurableWrite => {
                (&mut self.counters.writes, &mut self.counters.write_bytes)
            }
        };
        *requests += 1;
        *bytes += len;
        self.counters.segments += u64::from(segments);
        self.counters.waited += Nanos(pending.sent().map(|sent| now - sent.submitted).sum());
        Completed { pending, next: self.begin_next(now, link) }
    }

    /// Gives free places to what waits, and begins what is next.
    fn begin_next(&mut self, now: u64, link: &mut HostLink) -> Option<Begun> {
        match self.model.order {
            Order::Arrival => {
                let slot = self.admit(now)?;
                Some(self.begin(slot, link))
            }
            Order::Position => {
                while let Some(slot) = self.admit(now) {
                    let request = self.placed(slot).request;
                    self.sweep.add(request.offset, slot, request.kind == IoKind::DurableWrite);
                }
                if self.is_at_work {
                    return None;
                }
                let slot = self.sweep.next(self.next_offset)?;
                self.is_at_work = true;
                Some(self.begin(slot, link))
            }
        }
    }

    /// Gives a free place to the next request that waits.
    fn admit(&mut self, now: u64) -> Option<u32> {
        let &slot = self.free_places.last()?;
        let pending = self.waiting.next(now)?;
        self.free_places.pop();
        self.places[slot as usize] = Some(pending.admitted(now));
        Some(slot)
    }

    fn placed(&self, slot: u32) -> &Pending {
        self.places[slot as usize].as_ref().expect("a request has that place")
    }

    fn begin(&mut self, slot: u32, link: &mut HostLink) -> Begun {
        let pending = self.placed(slot);
        let admitted = pending.ready_at;
        let IoRequest { kind, offset, len, segments, .. } = pending.request;
        let sequential = offset == self.next_offset;
        let speed = match self.buffered_read(kind, offset) {
            Some(speed) => speed,
            None => {
                self.next_offset = offset.saturating_add(len.0);
                self.speed(kind, len)
            }
        };
        let gathering = self.model.segment.0 * u64::from(segments);
        let flush = if kind == IoKind::DurableWrite { self.model.flush.0 } else { 0 };
        let occupancy = speed.occupancy(len, sequential) + gathering + flush;
        let start = self.channel_free_at.max(admitted);
        self.channel_free_at = (start + occupancy).max(link.pass(start, len));
        self.counters.busy += Nanos(self.channel_free_at - start);
        Begun { done: self.channel_free_at + speed.latency.0, slot }
    }

    /// The speed of a read whose track is in the buffer; any other read puts it there.
    fn buffered_read(&mut self, kind: IoKind, offset: u64) -> Option<Speed> {
        let buffer = self.model.track_buffer.filter(|_| kind == IoKind::Read)?;
        let track = offset / buffer.track.0;
        let hit = self.buffered.iter().position(|&other| other == track);
        if let Some(place) = hit {
            self.buffered.remove(place);
        } else if self.buffered.len() == buffer.tracks {
            self.buffered.remove(0);
        }
        self.buffered.push(track);
        hit.map(|_| buffer.read)
    }

    /// How fast a request that moves the head is. A write fills fast cells as long as there are some.
    fn speed(&mut self, kind: IoKind, len: Bytes) -> Speed {
        match (kind, self.model.burst) {
            (IoKind::Read, _) => self.model.read,
            (_, Some(burst)) if self.burst_used >= burst.cells.0 => burst.behind,
            (_, _) => {
                self.burst_used += len.0;
                self.model.write
            }
        }
    }

    /// What the device did while it rested for `nanos`: it moved data out of its fast cells.
    fn empty_cells(&mut self, nanos: u64) {
        let Some(burst) = self.model.burst else { return };
        let at_it = u128::from(nanos.saturating_sub(burst.rest.0));
        let moved = at_it * u128::from(burst.drain) / 1_000_000_000;
        self.burst_used = self.burst_used.saturating_sub(u64::try_from(moved).unwrap_or(u64::MAX));
    }

    /// Requests that are to be completed: all in places, or the one that a disk has begun of those.
    pub(crate) fn requests_begun(&self) -> usize {
        match self.model.order {
            Order::Arrival => self.requests_in_places(),
            Order::Position => self.requests_in_places().min(1),
        }
    }

    /// Requests that the device has taken.
    pub(crate) fn requests_in_places(&self) -> usize {
        self.places.len() - self.free_places.len()
    }
}
