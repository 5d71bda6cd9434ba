//! The agenda: every event that will happen, in one total order.
//!
//! An event is a small `Copy` entry ordered by (time, [`Class`], counter). The counter is taken
//! when the event is added, so that two events of one class and time happen in the order in which
//! they were caused. Nothing else (no address, no hash) takes part, hence the order is the same
//! on every machine.
//!
//! A CPU is at one thing at a time, and most that CPUs do takes about as long: what they end is a queue, where the next
//! one is put from its end. All else is in a heap, where entries are never removed from the middle. A timer that is no
//! longer wanted stays until it comes up and its generation shows that it is stale; when stale entries outnumber the
//! live ones, all are swept at once.
//!
//! Read next: `engine/core.rs`, which takes the entries out.

use std::collections::{BinaryHeap, VecDeque};

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
#[derive(Debug, Default)]
pub(crate) struct Agenda {
    /// Those of devices and timers.
    heap: BinaryHeap<Entry>,
    /// When CPUs end what they are at, and which, in order: of two at one time the one that was added first.
    segments: VecDeque<(u64, u16)>,
    counter: u64,
    stale: usize,
}

/// Below this many stale entries a sweep is not worth its walk.
const SWEEP_ABOVE: usize = 1024;

impl Agenda {
    /// Adds an event of a device or a timer.
    pub(crate) fn add(&mut self, time: u64, class: Class, target: u32, detail: u32) {
        assert!(class != Class::CpuSegment, "what CPUs end is in another place");
        self.counter += 1;
        assert!(self.counter < (1 << COUNTER_BITS), "the event counter would reach the class bits");
        self.heap.push(Entry::new(time, class, self.counter, target, detail));
    }

    /// Adds the end of what a CPU is at.
    #[inline]
    pub(crate) fn add_segment(&mut self, time: u64, cpu: u16) {
        let later = self.segments.iter().rev().take_while(|&&(end, _)| end > time).count();
        if later == 0 {
            self.segments.push_back((time, cpu));
        } else {
            self.segments.insert(self.segments.len() - later, (time, cpu));
        }
    }

    /// The next event, which stays where it is.
    #[inline]
    pub(crate) fn peek(&self) -> Option<Entry> {
        match (self.heap.peek(), self.segments.front()) {
            (Some(&entry), Some(&(end, _))) if entry.time <= end => Some(entry),
            (_, Some(&segment)) => Some(ending(segment)),
            (entry, None) => entry.copied(),
        }
    }

    /// The time of the next event; the end of time when there is none.
    #[inline]
    pub(crate) fn next_time(&self) -> u64 {
        let end = self.segments.front().map_or(FOREVER, |&(end, _)| end);
        self.heap.peek().map_or(end, |entry| entry.time.min(end))
    }

    /// Takes the next event, which [`Self::peek`] has shown.
    #[inline]
    pub(crate) fn take(&mut self, next: Entry) {
        match next.class() {
            Class::CpuSegment => drop(self.segments.pop_front()),
            Class::DeviceDone | Class::Timer => drop(self.heap.pop()),
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

    /// Drops every entry of a timer or device for which `live` is false.
    pub(crate) fn sweep(&mut self, live: impl Fn(Entry) -> bool) {
        self.heap.retain(|&entry| live(entry));
        self.stale = 0;
    }

    pub(crate) fn stale(&self) -> usize {
        self.stale
    }

    /// Every entry, in no particular order: for checks.
    pub(crate) fn entries(&self) -> impl Iterator<Item = Entry> {
        self.heap.iter().copied().chain(self.segments.iter().copied().map(ending))
    }
}

/// The end of what a CPU is at: its counter is its place in the queue.
#[inline]
fn ending((time, cpu): (u64, u16)) -> Entry {
    Entry::new(time, Class::CpuSegment, 0, cpu.into(), 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn take(agenda: &mut Agenda) -> Option<Entry> {
        let next = agenda.peek()?;
        agenda.take(next);
        Some(next)
    }

    fn drain(agenda: &mut Agenda) -> Vec<u32> {
        std::iter::from_fn(|| take(agenda).map(Entry::target)).collect()
    }

    #[test]
    fn at_one_tick_devices_come_before_timers_before_cpus_and_each_class_is_first_come_first_served() {
        let mut agenda = Agenda::default();
        for (time, class, target) in [
            (9, Class::DeviceDone, 10),
            (5, Class::CpuSegment, 4),
            (5, Class::CpuSegment, 3),
            (5, Class::Timer, 8),
            (5, Class::DeviceDone, 7),
            (5, Class::Timer, 9),
            (4, Class::CpuSegment, 0),
        ] {
            match class {
                Class::CpuSegment => agenda.add_segment(time, target as u16),
                _ => agenda.add(time, class, target, 0),
            }
        }
        assert_eq!(drain(&mut agenda), [0, 7, 8, 9, 4, 3, 10]);
    }

    const CPUS: u16 = 4;

    proptest! {
        /// Any mixture of adding and taking gives the order that sorting all entries gives.
        #[test]
        fn taking_gives_the_order_that_sorting_gives(
            steps in prop::collection::vec((0_u64..20, 0..CPUS + 2, any::<bool>()), 1..200),
        ) {
            let mut agenda = Agenda::default();
            let mut naive: Vec<(u64, Class, u32, u32)> = Vec::new();
            for (number, (time, what, takes)) in (0_u32..).zip(steps) {
                let is_busy = |naive: &[(u64, Class, u32, u32)]| {
                    naive.iter().any(|&(_, class, _, target)| class == Class::CpuSegment && target == u32::from(what))
                };
                if what >= CPUS {
                    let class = if what == CPUS { Class::Timer } else { Class::DeviceDone };
                    agenda.add(time, class, number, 0);
                    naive.push((time, class, number, number));
                } else if !is_busy(&naive) {
                    agenda.add_segment(time, what);
                    naive.push((time, Class::CpuSegment, number, what.into()));
                }
                naive.sort_unstable();
                if takes && !naive.is_empty() {
                    prop_assert_eq!(agenda.next_time(), naive[0].0);
                    prop_assert_eq!(take(&mut agenda).map(Entry::target), Some(naive.remove(0).3));
                }
                prop_assert_eq!(agenda.next_time(), naive.first().map_or(FOREVER, |next| next.0));
                prop_assert_eq!(agenda.entries().count(), naive.len());
            }
            let rest: Vec<u32> = naive.into_iter().map(|(_, _, _, target)| target).collect();
            prop_assert_eq!(drain(&mut agenda), rest);
        }
    }
}
