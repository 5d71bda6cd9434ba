//! The cgroup that a replay runs in, and what it may have.
//!
//! The group's files are those of cgroup v2, on a simulated kernel as on a real one. Left out: limits on swap and
//! on anything but memory. Next: [`crate::replay`], and whoever else replays a program in one group.

use units::Bytes;

use crate::system::errno::SystemError;
use crate::system::{System, TaskSpec};

/// The group, below the workload's root.
pub const GROUP: &str = "app";

/// Limits of one group; none means as the kernel makes a group: no limit, no protection.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Limits {
    /// `memory.max`: charges beyond it reclaim, or end in the OOM killer.
    pub max: Option<Bytes>,
    /// `memory.high`: charges beyond it reclaim.
    pub high: Option<Bytes>,
    /// `memory.low`: what reclaim for others leaves alone.
    pub low: Option<Bytes>,
}

impl Limits {
    /// Makes the group with these limits.
    ///
    /// # Errors
    /// Those of [`System::cgroup_create`] and [`System::cgroup_write`].
    pub async fn group<S: System>(&self, sys: &S) -> Result<(), SystemError> {
        sys.cgroup_create(GROUP).await?;
        let limits = [("memory.low", self.low), ("memory.high", self.high), ("memory.max", self.max)];
        for (file, limit) in limits {
            if let Some(limit) = limit {
                sys.cgroup_write(GROUP, file, &limit.get().to_string()).await?;
            }
        }
        Ok(())
    }

    /// A task called `name` in the group, moved there once it has begun: its program is no part of the trace.
    pub fn task(name: &str) -> TaskSpec {
        TaskSpec::named(name).in_cgroup(GROUP).moved()
    }
}
