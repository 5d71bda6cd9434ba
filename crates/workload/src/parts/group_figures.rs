//! What a replay in a cgroup of its own measures of it: the same files on a simulated and on a real kernel.
//!
//! Reading `memory.stat` flushes the kernel's batched statistics, so it is read where a phase ends only. What a
//! kernel does not count is left out. Next: [`crate::parts::limits`] makes the group.

use units::PAGE_SIZE;

use crate::parts::limits::GROUP;
use crate::system::System;
use crate::system::errno::Errno;
use crate::system::outcome::{Outcome, WorkloadError};

/// Figures of the group; those that are `None` have no counter.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct GroupFigures {
    /// Pages that came back after they had been reclaimed.
    refaults: Option<u64>,
    scanned: Option<u64>,
    stolen: Option<u64>,
    /// Microseconds in which a task of the group waited for memory: `some` of `memory.pressure`.
    stalled_us: Option<u64>,
    /// `memory.current`.
    held_bytes: u64,
}

impl GroupFigures {
    /// What they are now.
    pub(crate) async fn read<S: System>(sys: &S) -> Result<Self, WorkloadError> {
        let current = sys.cgroup_read(GROUP, "memory.current").await?;
        let pressure = match sys.cgroup_read(GROUP, "memory.pressure").await {
            Ok(text) => total_of_some(&text),
            Err(error) if matches!(error.errno, Errno::NoEnt | Errno::NotSup) => None,
            Err(error) => return Err(error.into()),
        };
        let stat = sys.cgroup_read(GROUP, "memory.stat").await?;
        let number = |name: &str| {
            let line = stat.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
            line.and_then(|number| number.trim().parse().ok())
        };
        Ok(Self {
            refaults: number("workingset_refault_file").or_else(|| number("workingset_refault")),
            scanned: number("pgscan"),
            stolen: number("pgsteal"),
            stalled_us: pressure,
            held_bytes: current.trim().parse().unwrap_or(0),
        })
    }

    /// What came to them since.
    pub(crate) fn since(&self, before: &Self) -> Self {
        let less = |now: Option<u64>, before: Option<u64>| Some(now?.saturating_sub(before.unwrap_or(0)));
        Self {
            refaults: less(self.refaults, before.refaults),
            scanned: less(self.scanned, before.scanned),
            stolen: less(self.stolen, before.stolen),
            stalled_us: less(self.stalled_us, before.stalled_us),
            held_bytes: self.held_bytes,
        }
    }

    pub(crate) fn tell(&self, outcome: &mut Outcome) {
        let told =
            [("refaults", self.refaults), ("pages_scanned", self.scanned), ("pages_stolen", self.stolen)];
        for (name, value) in told {
            if let Some(value) = value {
                outcome.metric(name, value as f64);
            }
        }
        if let Some(stalled_us) = self.stalled_us {
            outcome.metric("stalled_seconds", stalled_us as f64 / 1e6);
        }
        outcome.metric("pages_held", (self.held_bytes / PAGE_SIZE) as f64);
    }
}

/// Microseconds of `some avg10=0.00 avg60=0.00 avg300=0.00 total=1234`.
fn total_of_some(pressure: &str) -> Option<u64> {
    let line = pressure.lines().find(|line| line.starts_with("some "))?;
    line.rsplit_once("total=")?.1.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stall_is_read_in_the_kernels_own_form() {
        let text = "some avg10=0.12 avg60=0.00 avg300=0.00 total=4711\nfull avg10=0.00 total=9\n";
        assert_eq!(total_of_some(text), Some(4711));
        assert_eq!(total_of_some("full avg10=0.00 total=9\n"), None);
    }
}
