//! What DAMON says: at the end of each aggregation interval, of each region of a target's memory, in how many of the
//! interval's samples it was found used.
//!
//! ```text
//!   target 0  |  region 0x7f..000 to 0x7f..000: 19 of 20 samples  |  region ...: 0  |  ...     one snapshot
//! ```
//! Kept is what was used, in pages. Left out: ages, which a series of snapshots tells by itself, and what schemes did.
//! Read by [`super::events`] and [`super::damo`], made a trace by [`super`].

use std::collections::BTreeMap;

use crate::import::builder::Noted;

/// Bytes of a page.
pub(super) const PAGE: u64 = 4096;
/// Of a larger region, a terabyte, samples of one page at a time say nothing.
const REGION_PAGES_MAX: u64 = (1 << 40) / PAGE;
/// What that is called.
const TOO_LARGE: &str = "regions of more than a terabyte that were found used are left out";

/// Pages that were found used in an interval, by address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Used {
    pub(super) first: u64,
    /// One behind the last.
    pub(super) past: u64,
    /// Samples that found it so; more than 0.
    pub(super) samples: u32,
}

impl Used {
    pub(super) fn pages(self) -> u64 {
        self.past - self.first
    }
}

/// What one aggregation interval came to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Snapshot {
    /// Where it is told.
    pub(super) start_ns: Option<u64>,
    pub(super) end_ns: u64,
    /// Pages of all its regions.
    pub(super) watched: u64,
    /// In the order of the recording, which is that of addresses.
    pub(super) used: Vec<Used>,
    /// Of those used regions that are too large.
    pub(super) too_large: u64,
}

impl Snapshot {
    /// One more region.
    pub(super) fn region(&mut self, start: u64, end: u64, samples: u64) -> Result<(), String> {
        if end <= start {
            return Err(format!("a region cannot begin at {start} and end at {end}"));
        }
        let (first, past) = (start / PAGE, end.div_ceil(PAGE));
        self.watched = self.watched.saturating_add(past - first);
        match u32::try_from(samples).unwrap_or(u32::MAX) {
            0 => {}
            _ if past - first > REGION_PAGES_MAX => self.too_large += 1,
            samples => match self.used.last_mut() {
                Some(last) if last.past == first && last.samples == samples => last.past = past,
                _ => self.used.push(Used { first, past, samples }),
            },
        }
        Ok(())
    }
}

/// A process, or the memory of a machine.
#[derive(Debug, Default)]
pub(super) struct Target {
    /// The number that DAMON has for it.
    pub(super) id: u64,
    /// How many samples an interval has, where it is told.
    pub(super) samples: Option<u32>,
    pub(super) snapshots: Vec<Snapshot>,
}

impl Target {
    /// One more snapshot, which is whole.
    pub(super) fn push(&mut self, snapshot: Snapshot) -> Result<(), String> {
        let Snapshot { start_ns, end_ns, .. } = snapshot;
        if start_ns.is_some_and(|start_ns| start_ns > end_ns) {
            return Err(format!("a snapshot cannot end at {end_ns} ns, before its beginning"));
        }
        if let Some(before) = self.snapshots.last().filter(|before| before.end_ns > end_ns) {
            return Err(format!("the snapshot of {end_ns} ns comes after that of {} ns", before.end_ns));
        }
        self.snapshots.push(snapshot);
        Ok(())
    }

    /// From one snapshot to the next, on average.
    pub(super) fn interval_ns(&self) -> u64 {
        /// DAMON's own, unless it is told otherwise.
        const DEFAULT_NS: u64 = 100_000_000;
        match self.snapshots.as_slice() {
            [first, .., last] => (last.end_ns - first.end_ns) / (self.snapshots.len() as u64 - 1),
            [Snapshot { start_ns: Some(start_ns), end_ns, .. }] => end_ns - start_ns,
            _ => DEFAULT_NS,
        }
    }

    /// When its first interval began.
    pub(super) fn begin_ns(&self) -> Option<u64> {
        let first = self.snapshots.first()?;
        Some(first.start_ns.unwrap_or_else(|| first.end_ns.saturating_sub(self.interval_ns())))
    }
}

/// All of it.
#[derive(Debug, Default)]
pub(super) struct Recording {
    pub(super) targets: Vec<Target>,
    /// Their places, of those that were asked for by number.
    by_id: BTreeMap<u64, usize>,
    pub(super) noted: Noted,
    /// Regions, used or not.
    pub(super) regions: u64,
}

impl Recording {
    /// The target that DAMON calls so, or a new one.
    pub(super) fn target(&mut self, id: u64) -> &mut Target {
        let place = *self.by_id.entry(id).or_insert(self.targets.len());
        if place == self.targets.len() {
            self.targets.push(Target { id, ..Target::default() });
        }
        &mut self.targets[place]
    }

    /// What cannot be taken as it is told.
    pub(super) fn left_out(&self) -> Option<String> {
        let snapshots = self.targets.iter().flat_map(|target| &target.snapshots);
        let count: u64 = snapshots.map(|snapshot| snapshot.too_large).sum();
        (count > 0).then(|| format!("{TOO_LARGE}: {count}"))
    }
}
