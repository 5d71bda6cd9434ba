//! Which CPU of the host a guest of one CPU runs on.
//!
//! Its kernel and its programs are processes that take turns at each system call. On two CPUs of the host each turn
//! wakes one of them, which in a virtual machine takes tens of microseconds: reading 25 MiB of cached pages took 21 to
//! 24 ms, and on one CPU 5 (6.12, 200 calls). Left out: guests of other processes, and what else the host does; a guest
//! stays where it was put.

use std::collections::BTreeMap;
use std::sync::Mutex;

use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu};

/// How many guests of this process run on each CPU.
static GUESTS: Mutex<BTreeMap<usize, u32>> = Mutex::new(BTreeMap::new());

/// A CPU of the host for one guest, until it is dropped.
pub(in crate::vm) struct Place {
    cpu: usize,
}

impl Place {
    /// The CPU with the fewest of our guests, of several the one that we are on. None where the host does not tell.
    pub(in crate::vm) fn take() -> Option<Self> {
        let allowed = sched_getaffinity(None).ok()?;
        let here = sched_getcpu();
        let mut guests = GUESTS.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let cpus = (0..CpuSet::MAX_CPU).filter(|&cpu| allowed.is_set(cpu));
        let cpu = cpus.min_by_key(|cpu| (guests.get(cpu).copied().unwrap_or(0), *cpu != here))?;
        *guests.entry(cpu).or_default() += 1;
        Some(Self { cpu })
    }

    /// It alone.
    pub(in crate::vm) fn cpus(&self) -> CpuSet {
        let mut cpus = CpuSet::new();
        cpus.set(self.cpu);
        cpus
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut guests = GUESTS.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(count) = guests.get_mut(&self.cpu) {
            *count -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guests_of_one_process_are_spread_over_its_cpus() {
        let here = sched_getaffinity(None).unwrap().count() as usize;
        let places: Vec<Place> = (0..here).filter_map(|_| Place::take()).collect();
        let mut cpus: Vec<usize> = places.iter().map(|place| place.cpu).collect();
        cpus.sort_unstable();
        cpus.dedup();
        assert_eq!(cpus.len(), here, "each has one of its own");
    }
}
