//! Whether writes were in flight at a time, by looks at the disks every so often.
//!
//! Theory of operation. A look reads of every block device how many writes it has completed and how many
//! are in flight, and where none is, whether pages are under writeback. So of a stretch of time
//! three things can be known: between two looks nothing was written, if both saw nothing in flight and
//! no write was completed in between; a write was in flight, if a look within the stretch saw one or two
//! looks within it saw a write completed in between; else it is not known.
//!
//! Left out: writes over a network. Looks do not allocate. Sources: Documentation/block/stat.rst and
//! ABI/stable/sysfs-block of Linux.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Looks that are remembered; waits that began before the oldest are not judged.
const LOOKS: usize = 64;
/// Devices that are looked at.
const DEVICES_MAX: usize = 64;

/// What a look saw.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Look {
    pub(crate) at_us: u64,
    /// Writes that all devices have completed since boot.
    pub(crate) completed: u64,
    /// Whether a write was in flight; `None` where the numbers do not agree.
    pub(crate) in_flight: Option<bool>,
}

/// The latest looks.
#[derive(Debug, Clone)]
pub(crate) struct Looks {
    ring: [Look; LOOKS],
    count: usize,
}

impl Default for Looks {
    fn default() -> Self {
        Self { ring: [Look { at_us: 0, completed: 0, in_flight: None }; LOOKS], count: 0 }
    }
}

impl Looks {
    pub(crate) fn add(&mut self, look: Look) {
        self.ring[self.count % LOOKS] = look;
        self.count += 1;
    }

    /// When the last one was.
    pub(crate) fn last_us(&self) -> u64 {
        self.count.checked_sub(1).map_or(0, |last| self.ring[last % LOOKS].at_us)
    }

    /// In order of time.
    fn iter(&self) -> impl Iterator<Item = &Look> + Clone {
        (self.count.saturating_sub(LOOKS)..self.count).map(|number| &self.ring[number % LOOKS])
    }

    /// Whether any write was in flight between `begin_us` and `end_us`, which are known to within
    /// `slack_us`; `None` where that cannot be told.
    pub(crate) fn any_write(&self, begin_us: u64, end_us: u64, slack_us: u64) -> Option<bool> {
        // What is surely within, and what is surely around.
        let (first, last) = (begin_us.saturating_add(slack_us), end_us);
        let within = self.iter().filter(|look| (first..=last).contains(&look.at_us));
        let seen = within.clone().any(|look| look.in_flight == Some(true));
        let completed = || Some((within.clone().next()?.completed, within.clone().last()?.completed));
        if seen || completed().is_some_and(|(first, last)| first != last) {
            return Some(true);
        }
        let begin = begin_us.saturating_sub(slack_us);
        let before = self.iter().take_while(|look| look.at_us <= begin).count().checked_sub(1)?;
        let after = self.iter().position(|look| look.at_us >= end_us)?;
        let mut around = self.iter().skip(before).take(after - before + 1);
        let completed = around.clone().next()?.completed;
        let quiet = around.all(|look| look.in_flight == Some(false) && look.completed == completed);
        quiet.then_some(false)
    }
}

/// The block devices of this machine.
#[derive(Debug)]
pub(crate) struct Disks {
    /// `stat` and `inflight` of each.
    devices: Vec<(File, File)>,
    vmstat: File,
}

impl Disks {
    /// All that have a disk behind them; none where one cannot be looked at.
    pub(crate) fn open() -> Option<Self> {
        let mut devices = Vec::new();
        for entry in fs::read_dir("/sys/block").ok()? {
            let path = entry.ok()?.path();
            let name = path.file_name()?.to_str()?.to_owned();
            if ["loop", "ram", "zram"].iter().any(|kind| name.starts_with(kind)) {
                continue;
            }
            let open = |file: &str| File::open(path.join(file)).ok();
            devices.push((open("stat")?, open("inflight")?));
        }
        let vmstat = File::open(Path::new("/proc/vmstat")).ok()?;
        (devices.len() <= DEVICES_MAX).then_some(Self { devices, vmstat })
    }

    /// Looks at all of them.
    pub(crate) fn look(&self, at_us: u64, buffer: &mut [u8]) -> Option<Look> {
        let (mut completed, mut flying) = (0_u64, 0_u64);
        for (stat, inflight) in &self.devices {
            completed = completed.wrapping_add(column(read(stat, buffer)?, 4)?);
            flying = flying.wrapping_add(column(read(inflight, buffer)?, 1)?);
        }
        let in_flight = match flying {
            // Requests that wait for their turn are in no device, but their pages are under writeback. The
            // counter of these may lag behind.
            0 => (under_writeback(read(&self.vmstat, buffer)?)? == 0).then_some(false),
            _ => Some(true),
        };
        Some(Look { at_us, completed, in_flight })
    }
}

fn read<'a>(file: &File, buffer: &'a mut [u8]) -> Option<&'a str> {
    let len = file.read_at(buffer, 0).ok()?;
    std::str::from_utf8(&buffer[..len]).ok()
}

fn column(text: &str, index: usize) -> Option<u64> {
    text.split_ascii_whitespace().nth(index)?.parse().ok()
}

fn under_writeback(vmstat: &str) -> Option<u64> {
    vmstat.lines().find_map(|line| line.strip_prefix("nr_writeback "))?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Looks at 0, 50, 100 ms and so on: writes completed, and whether any was in flight.
    fn looks(seen: &[(u64, Option<bool>)]) -> Looks {
        let mut looks = Looks::default();
        for (number, &(completed, in_flight)) in (0..).zip(seen) {
            looks.add(Look { at_us: number * 50_000, completed, in_flight });
        }
        looks
    }

    const QUIET: Option<bool> = Some(false);
    const BUSY: Option<bool> = Some(true);

    /// A wait from 70 to 170 ms, between the looks at 50 and at 200 ms.
    fn judged(seen: [(u64, Option<bool>); 5]) -> Option<bool> {
        looks(&seen).any_write(70_000, 170_000, 4_000)
    }

    #[test]
    fn a_wait_is_judged_by_the_looks_around_and_within() {
        let quiet = [(7, BUSY), (7, QUIET), (7, QUIET), (7, QUIET), (7, QUIET)];
        assert_eq!(judged(quiet), Some(false));
        // Seen in flight, or completed, at 100 or 150 ms.
        assert_eq!(judged([(7, QUIET), (7, QUIET), (7, BUSY), (7, QUIET), (7, QUIET)]), Some(true));
        assert_eq!(judged([(7, QUIET), (7, QUIET), (7, QUIET), (8, QUIET), (8, QUIET)]), Some(true));
        // Completed between 50 and 100 ms: before it began or after.
        assert_eq!(judged([(7, QUIET), (7, QUIET), (8, QUIET), (8, QUIET), (8, QUIET)]), None);
        // In flight at 50 ms, or at 200 ms only.
        assert_eq!(judged([(7, QUIET), (7, BUSY), (7, QUIET), (7, QUIET), (7, QUIET)]), None);
        assert_eq!(judged([(7, QUIET), (7, QUIET), (7, QUIET), (7, QUIET), (7, BUSY)]), None);
        // A look that could not tell.
        assert_eq!(judged([(7, QUIET), (7, QUIET), (7, None), (7, QUIET), (7, QUIET)]), None);
    }

    #[test]
    fn what_lies_outside_of_the_looks_is_not_known() {
        let quiet = looks(&[(7, QUIET); 4]);
        assert_eq!(quiet.any_write(10_000, 140_000, 4_000), Some(false));
        assert_eq!(quiet.any_write(10_000, 160_000, 4_000), None, "after the last");
        assert_eq!(Looks::default().any_write(1, 2, 0), None);
        let long = looks(&[(7, QUIET); LOOKS + 10]);
        assert_eq!(long.any_write(400_000, 600_000, 0), None, "forgotten");
        assert_eq!(long.any_write(600_000, 700_000, 0), Some(false));
        assert_eq!(long.last_us(), (LOOKS as u64 + 9) * 50_000);
    }

    #[test]
    fn this_machines_disks_can_be_looked_at_or_are_not_known() {
        let Some(disks) = Disks::open() else { return };
        let mut buffer = vec![0; 64 << 10];
        let look = disks.look(5, &mut buffer).expect("what opens can be read");
        assert_eq!(look.at_us, 5);
        assert_eq!(column("  1  2 3", 1), Some(2));
        assert_eq!(under_writeback("nr_dirty 5\nnr_writeback_temp 3\nnr_writeback 4\n"), Some(4));
    }
}
