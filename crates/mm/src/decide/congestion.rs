//! Which devices are congested by writes, and when those who wait for that are woken (MECHANISMS 4.1).
//!
//! ```text
//!   writes in flight or queued on a device   0 ------- 103 ------- 113 ------- 128
//!   congested                                  no       |  as before |   yes
//!   a completion wakes all who wait           yes       |     no     |    no
//! ```
//! Reads do not count. Left out: writes that somebody waits for have a count of their own on Linux; a queue
//! of another length than 128. Neighbour: [`super::backoff`], for those who wait.

use std_alloc::vec::Vec;

use crate::version::rules::DeviceCongestion;

/// From so many writes on a device is congested, of 128 that its queue takes.
const ON: u32 = 113;
/// Below so many it is not.
const OFF: u32 = 103;

/// Writes of one device.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Queue {
    writes: u32,
    congested: bool,
}

/// The queues of all devices.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Congestion {
    queues: Vec<Queue>,
}

impl Congestion {
    fn queue(&mut self, device: u16) -> &mut Queue {
        let index = usize::from(device);
        if self.queues.len() <= index {
            self.queues.resize(index + 1, Queue::default());
        }
        &mut self.queues[index]
    }

    /// A write was handed to a device.
    pub fn submitted(&mut self, device: u16) {
        let queue = self.queue(device);
        queue.writes += 1;
        queue.congested |= queue.writes >= ON;
    }

    /// A write of a device is complete; true when all who wait for congestion to end are to be woken:
    /// whoever did not mark the device itself wakes them nevertheless.
    #[must_use]
    pub fn completed(&mut self, device: u16, rule: DeviceCongestion) -> bool {
        let queue = self.queue(device);
        queue.writes -= 1;
        let below = queue.writes < OFF;
        queue.congested &= !below;
        below && rule == DeviceCongestion::Marked
    }

    /// Whether a device is marked as congested.
    pub fn is_marked(&self, device: u16, rule: DeviceCongestion) -> bool {
        let queue = self.queues.get(usize::from(device));
        rule == DeviceCongestion::Marked && queue.is_some_and(|queue| queue.congested)
    }

    /// Whether some device is marked as congested.
    pub fn is_any(&self, rule: DeviceCongestion) -> bool {
        rule == DeviceCongestion::Marked && self.queues.iter().any(|queue| queue.congested)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MARKED: DeviceCongestion = DeviceCongestion::Marked;

    #[test]
    fn a_device_is_congested_from_113_writes_on_until_fewer_than_103_are_left() {
        let mut devices = Congestion::default();
        (0..112).for_each(|_| devices.submitted(1));
        assert!(!devices.is_any(MARKED));
        devices.submitted(1);
        assert!(devices.is_any(MARKED));
        assert_eq!([0, 1].map(|device| devices.is_marked(device, MARKED)), [false, true]);
        let left: Vec<u32> = (0..113).rev().filter(|_| !devices.completed(1, MARKED)).collect();
        assert_eq!(left, (103..113).rev().collect::<Vec<u32>>(), "from 102 on each completion wakes");
        assert!(!devices.is_any(MARKED));
    }

    #[test]
    fn between_the_thresholds_a_device_stays_as_it_was() {
        let mut devices = Congestion::default();
        (0..113).for_each(|_| devices.submitted(0));
        (0..10).for_each(|_| assert!(!devices.completed(0, MARKED)));
        assert!(devices.is_any(MARKED), "103 are left");
        assert!(devices.completed(0, MARKED) && !devices.is_any(MARKED));
        devices.submitted(0);
        assert!(!devices.is_any(MARKED));
    }

    #[test]
    fn one_device_is_enough_and_does_not_speak_for_others() {
        let mut devices = Congestion::default();
        (0..113).for_each(|_| devices.submitted(0));
        devices.submitted(15);
        assert!(devices.completed(15, MARKED), "it never was congested, and wakes nevertheless");
        assert!(devices.is_any(MARKED));
    }

    #[test]
    fn queues_of_blk_mq_say_nothing() {
        let mut devices = Congestion::default();
        (0..128).for_each(|_| devices.submitted(0));
        assert!(!devices.is_any(DeviceCongestion::Never));
        assert!((0..128).all(|_| !devices.completed(0, DeviceCongestion::Never)));
    }
}
