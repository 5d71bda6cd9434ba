//! The agenda: every event that will happen, in one total order.
//!
//! An event is a small `Copy` entry ordered by (time, [`Class`], counter). The counter is taken
//! when the event is added, so that two events of one class and time happen in the order in which
//! they were caused. Nothing else (no address, no hash) takes part, hence the order is the same
//! on every machine.
//!
//! Entries are never removed from the middle. A timer that is no longer wanted stays until it
//! comes up and its generation shows that it is stale; when stale entries outnumber the live
//! ones, all are swept at once.
//!
//! Read next: `engine/core.rs`, which takes the entries out.

use std::collections::BinaryHeap;

/// A time that never comes.
pub(crate) const FOREVER: u64 = u64::MAX;

/// What happens first when several events are due at the same nanosecond.
///
/// A device completes before a timer fires, so that a page that arrives exactly at a timeout has
/// arrived; both come before a CPU goes on with its task, so that the task sees them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Class {
    /// A block device has finished a request.
    DeviceDone,
    /// A sleep or the timeout of a wait is over.
    Timer,
    /// A CPU has finished a stretch of work, a slice or a context switch.
    CpuSegment,
}

/// One event. Which fields mean what depends on the class, see [`Entry::new`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry {
    time: u64,
    /// Class in the top byte, counter below.
    order: u64,
    target: u32,
    detail: u32,
}

const COUNTER_BITS: u32 = 56;

impl Entry {
    /// An event at `time` ns. `target` is the device, task or CPU; `detail` is the request's slot
    /// for a device, the task's timer generation for a timer, 0 for a CPU.
    fn new(time: u64, class: Class, counter: u64, target: u32, detail: u32) -> Self {
        Self { time, order: (u64::from(class as u8) << COUNTER_BITS) | counter, target, detail }
    }

    #[inline]
    pub(crate) fn time(self) -> u64 {
        self.time
    }

    #[inline]
    pub(crate) fn class(self) -> Class {
        match self.order >> COUNTER_BITS {
            0 => Class::DeviceDone,
            1 => Class::Timer,
            _ => Class::CpuSegment,
        }
    }

    #[inline]
    pub(crate) fn target(self) -> u32 {
        self.target
    }

    #[inline]
    pub(crate) fn detail(self) -> u32 {
        self.detail
    }

    #[inline]
    fn key(self) -> u128 {
        (u128::from(self.time) << 64) | u128::from(self.order)
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    /// Reversed: the largest entry of a heap is the one that happens first.
    #[inline]
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        other.key().cmp(&self.key())
    }
}

/// All events to come.
///
/// Taking an event leaves its entry at the top of the heap as a hole, which the next addition
/// fills: one walk down the heap instead of two, and none if what is added is next to happen.
#[derive(Debug, Default)]
pub(crate) struct Agenda {
    heap: BinaryHeap<Entry>,
    /// Whether the top of the heap has been taken. Then the heap is not empty.
    hole: bool,
    counter: u64,
    stale: usize,
}

/// Below this many stale entries a sweep is not worth its walk.
const SWEEP_ABOVE: usize = 1024;

impl Agenda {
    pub(crate) fn add(&mut self, time: u64, class: Class, target: u32, detail: u32) {
        let entry = Entry::new(time, class, self.counter, target, detail);
        self.counter += 1;
        assert!(self.counter < (1 << COUNTER_BITS), "the event counter would reach the class bits");
        if std::mem::take(&mut self.hole) {
            *self.heap.peek_mut().expect("a hole is in a heap") = entry;
        } else {
            self.heap.push(entry);
        }
    }

    /// The next event, which stays where it is.
    #[inline]
    pub(crate) fn peek(&self) -> Option<Entry> {
        if !self.hole {
            return self.heap.peek().copied();
        }
        // The next one after the top of a binary heap is one of its two children.
        match *self.heap.as_slice() {
            [_, left, right, ..] => Some(left.max(right)),
            [_, only] => Some(only),
            _ => None,
        }
    }

    /// The time of the next event; the end of time when there is none.
    #[inline]
    pub(crate) fn next_time(&self) -> u64 {
        self.peek().map_or(FOREVER, Entry::time)
    }

    #[inline]
    pub(crate) fn take(&mut self) -> Option<Entry> {
        self.close_hole();
        let next = self.heap.peek().copied();
        self.hole = next.is_some();
        next
    }

    fn close_hole(&mut self) {
        if std::mem::take(&mut self.hole) {
            self.heap.pop();
        }
    }

    /// Notes that a timer in here is no longer wanted.
    pub(crate) fn note_stale(&mut self) {
        self.stale += 1;
    }

    /// Notes that a stale timer was taken out.
    pub(crate) fn forget_stale(&mut self) {
        self.stale -= 1;
    }

    /// Whether stale entries are the majority and worth a [`Agenda::sweep`].
    #[inline]
    pub(crate) fn wants_sweep(&self) -> bool {
        self.stale > SWEEP_ABOVE && self.stale * 2 > self.heap.len()
    }

    /// Drops every entry for which `live` is false.
    pub(crate) fn sweep(&mut self, live: impl Fn(Entry) -> bool) {
        self.close_hole();
        self.heap.retain(|&entry| live(entry));
        self.stale = 0;
    }

    pub(crate) fn stale(&self) -> usize {
        self.stale
    }

    /// Every entry, in no particular order: for checks.
    pub(crate) fn entries(&self) -> impl Iterator<Item = Entry> {
        self.heap.as_slice().iter().skip(usize::from(self.hole)).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn drain(agenda: &mut Agenda) -> Vec<u32> {
        std::iter::from_fn(|| agenda.take().map(Entry::target)).collect()
    }

    #[test]
    fn at_one_tick_devices_come_before_timers_before_cpus_and_each_class_is_first_come_first_served() {
        let mut agenda = Agenda::default();
        for (time, class, target) in [
            (9, Class::DeviceDone, 6),
            (5, Class::CpuSegment, 4),
            (5, Class::CpuSegment, 5),
            (5, Class::Timer, 2),
            (5, Class::DeviceDone, 1),
            (5, Class::Timer, 3),
            (4, Class::CpuSegment, 0),
        ] {
            agenda.add(time, class, target, 0);
        }
        assert_eq!(drain(&mut agenda), [0, 1, 2, 3, 4, 5, 6]);
    }

    proptest! {
        /// Any mixture of adding and taking gives the order that sorting all entries gives.
        #[test]
        fn the_hole_never_changes_the_order(times in prop::collection::vec((0_u64..20, any::<bool>()), 1..200)) {
            let mut agenda = Agenda::default();
            let mut naive: Vec<(u64, u32)> = Vec::new();
            for (number, (time, take)) in (0_u32..).zip(times) {
                agenda.add(time, Class::Timer, number, 0);
                naive.push((time, number));
                if take {
                    naive.sort_unstable();
                    prop_assert_eq!(agenda.next_time(), naive[0].0);
                    prop_assert_eq!(agenda.take().map(Entry::target), Some(naive.remove(0).1));
                    prop_assert_eq!(agenda.next_time(), naive.first().map_or(u64::MAX, |next| next.0));
                    prop_assert_eq!(agenda.entries().count(), naive.len());
                }
            }
            naive.sort_unstable();
            let rest: Vec<u32> = naive.into_iter().map(|(_, number)| number).collect();
            prop_assert_eq!(drain(&mut agenda), rest);
        }
    }
}
