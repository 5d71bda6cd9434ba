//! A run that stops where somebody wants to look at it: the state as the kernel's own files show it.
//!
//! Looking changes nothing, so that a run that was looked at ends as any other. What a file of a real kernel changes
//! when it is read (`memory.stat` flushes statistics, MECHANISMS-6X 4.3) is therefore shown as it was last flushed.
//! Left out: going back; whoever wants to begins again, which gives the same run. Next: `going.rs`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use kernel::Machine;
use mm::base::ids::MappingId;
use units::Nanos;

use crate::engine::sim::SimMemory;
use crate::engine::simulation::{Progress, RunError};
use crate::machine::readings::Unfinished;
use crate::run::begin::{Watch, begin};
use crate::run::going::Going;
use crate::run::result::{SimError, SimResult};
use crate::run::sample::memcg_stats;
use crate::run::spec::SimRun;

/// A run that can be looked at between two events.
pub struct Stepping {
    going: Going,
}

impl Stepping {
    /// Boots the machine; the program has done nothing yet. `stop` ends a run soon after it is set, and `progress` is
    /// called every few thousand events.
    ///
    /// # Errors
    /// A machine that cannot be built or booted.
    pub fn begin(
        spec: &SimRun,
        stop: Arc<AtomicBool>,
        progress: impl FnMut(Progress) + 'static,
    ) -> Result<Self, SimError> {
        Ok(Self { going: begin(spec, stop, Box::new(progress), Watch::default())? })
    }

    /// Goes on up to `time`, or to the end of the program; nothing happens if that has passed.
    ///
    /// # Errors
    /// The run was stopped, deadlocked, or took too long.
    pub fn run_until(&mut self, time: Nanos) -> Result<(), RunError> {
        self.going.run_until(time)
    }

    /// Goes on by one event, such as the end of a piece of work on a CPU, a timer or a request.
    ///
    /// # Errors
    /// As [`Stepping::run_until`].
    pub fn step(&mut self) -> Result<(), RunError> {
        self.going.step()
    }

    /// Whether the program has ended.
    pub const fn is_over(&self) -> bool {
        self.going.is_over()
    }

    /// The time of the last event.
    pub fn now(&self) -> Nanos {
        self.going.kernel.machine().now()
    }

    /// Events so far.
    pub fn events(&self) -> u64 {
        self.going.kernel.machine().statistics().events
    }

    /// `/proc/vmstat`: events since boot, gauges as they are.
    pub fn vmstat(&self) -> BTreeMap<String, u64> {
        self.going.kernel.vmstat().into_iter().collect()
    }

    /// `memory.stat` and the other files of every cgroup but the root, by path, as last flushed.
    pub fn memcg(&self) -> BTreeMap<String, BTreeMap<String, u64>> {
        memcg_stats(&self.going.kernel, false)
    }

    /// The tasks that have not ended, and what each does now.
    pub fn tasks(&self) -> Vec<Unfinished> {
        self.going.kernel.machine().unfinished()
    }

    /// The mapping of the file at `path`, if its inode is in memory.
    pub fn mapping_of(&self, path: &str) -> Option<MappingId> {
        self.going.kernel.mapping_of(path)
    }

    /// Paths and mappings of the files in memory; none where there are more than `most` names to look at.
    pub fn files(&self, most: usize) -> Option<Vec<(String, MappingId)>> {
        self.going.kernel.files_in_memory(most)
    }

    /// A look at the memory.
    pub fn memory<R>(&self, look: impl FnOnce(&SimMemory) -> R) -> R {
        self.going.kernel.mem(|memory| look(memory))
    }

    /// Goes on to the end, and returns what the run left.
    ///
    /// # Errors
    /// See [`SimError`].
    pub fn finish(self) -> Result<SimResult, SimError> {
        self.going.finish()
    }
}
