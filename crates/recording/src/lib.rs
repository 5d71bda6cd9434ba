//! What a run leaves: the data, and a folder on disk that holds it.
//!
//! Start with [`Recording`] (plain data, every field public). [`folder`] writes and reads it;
//! [`files`] is the same without a disk: a recording as bytes and back. [`error`] says what can
//! be wrong with a folder and what to do about it. [`tables`]: its tables as columns in memory. [`chunk`]:
//! runs of a sweep, in one file; [`worlds`]: random worlds, likewise. [`trace`]: what a
//! program did, in one file.
//!
//! Deliberately absent: any knowledge of how a run was made, statistics (`pagetide-stats`) and
//! presentation (`pagetide-report`).
//!
//! Determinism: the same recording gives the same bytes, and those of a simulated run hold
//! nothing that differs between machines. [`Recording::content_hash`] names them.

pub mod chunk;
mod delta;
mod disk;
pub mod error;
pub mod event_columns;
mod event_files;
pub mod events;
pub mod files;
pub mod folder;
pub mod growing;
mod layout;
mod manifest;
mod number;
mod old;
mod packed;
mod partial;
pub mod series;
mod table;
pub mod tables;
pub mod trace;
pub mod waits;
pub mod worlds;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use self::trace::{TraceError, TraceReader, TraceWriter, is_trace, read_trace, write_trace};
pub use error::RecordingError;
pub use event_files::{EventReader, EventWriter};
pub use events::{Chunk, Event, NameId, Names};
pub use growing::RecordingWriter;
pub use layout::MANIFEST;
pub use manifest::ContentHash;
pub use series::{Series, is_gauge};
pub use waits::{WITHIN, Wait, WaitEnd, WaitKind};

/// The version of the format on disk, in which all recordings are written. A reader refuses any that is newer.
///
/// Version 1 was CSV and JSON; 2 brought [`Recording::oom_kills`], 3 [`Recording::waits`], 4
/// [`Recording::sections`], in the middle of what a task waited, and what is told of a kill beside the memory
/// then; 5 Parquet instead of CSV, events, and which program made the recording on what.
pub const SCHEMA: u32 = 5;
/// The oldest version that is read.
const SCHEMA_OLDEST: u32 = 1;

/// What one run leaves.
///
/// Names of counters are those of `/proc/vmstat` and `memory.stat`; times are nanoseconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object with the keys of a recording")]
pub struct Recording {
    /// Version of the format that it was read from; it is written as [`SCHEMA`].
    #[serde(serialize_with = "newest")]
    pub schema: u32,
    /// The pagetide that made it; empty before version 5 of the format.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// What the run is called in tables; often the kernel.
    pub label: String,
    /// The workload, such as `hot-and-stream`.
    pub workload: String,
    /// Where it ran: `sim`, `host` or `vm:6.12`.
    pub backend: String,
    /// The kernel: a name with features, or the release of a real one.
    pub kernel: String,
    /// The seed that all randomness of the run follows from.
    pub seed: u64,
    /// The machine, simulated or not, in a few words; empty where nobody said.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub machine: String,
    /// The command that makes the run again; empty where there is none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub command: String,
    /// The fully resolved scenario as TOML, opaque here. A file of its own on disk.
    #[serde(skip)]
    pub scenario_toml: String,
    /// The workload's results, one number each.
    #[serde(with = "number::map")]
    pub metrics: BTreeMap<String, f64>,
    /// The workload's results that have many samples, in the order they were taken.
    /// A file of its own on disk, but for names without samples.
    #[serde(default, with = "number::only_names", skip_serializing_if = "number::all_have_numbers")]
    pub samples: BTreeMap<String, Vec<f64>>,
    /// `/proc/vmstat`: events over the whole run; gauges (see [`is_gauge`]) at its end.
    pub vmstat: BTreeMap<String, u64>,
    /// For each cgroup path: `memory.stat` and `memory.events`, events over the whole run and
    /// gauges at its end.
    pub memcg: BTreeMap<String, BTreeMap<String, u64>>,
    /// Parts of the run, in order.
    pub phases: Vec<Phase>,
    /// Counters over time. A file of its own on disk, but for the columns that never change.
    #[serde(rename = "series_constant", with = "series::constant_only")]
    pub series: Series,
    /// Who waited, for what, and how long; of real kernels nobody knows it of every wait.
    pub stalls: Vec<Stall>,
    /// Every wait that is known, with what ended it. A file of its own on disk, if there are any.
    #[serde(skip)]
    pub waits: Vec<Wait>,
    /// How long tasks were in which parts of the kernel, if that is known and they were in any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sections: Vec<SectionTime>,
    /// What the OOM killer took. If that ended the run ([`Recording::ended_by`]) there are no metrics, and all
    /// else is as it was up to that moment; a workload that went on has its metrics.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub oom_kills: Vec<OomKill>,
    /// What could not be measured or done on a real kernel, one sentence each, for the reader.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Events that the simulator handled; 0 on a real kernel.
    pub events: u64,
    /// Simulated time that the run took; 0 on a real kernel.
    pub simulated_ns: u64,
    /// Time that the run took on a clock. A computed run's is not written to disk, because it
    /// differs from machine to machine.
    #[serde(default, skip_serializing)] // files.rs writes it where it may
    pub wall_ns: Option<u64>,
    /// The run did not end, or what wrote the recording did not: it holds what had reached the disk by then, and
    /// [`Recording::notes`] say how much that is. Not written: such a folder has no `MANIFEST`.
    #[serde(skip)]
    pub incomplete: bool,
}

/// A part of a run that the workload named.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Phase {
    /// The name that the workload gave when the phase ended.
    pub name: String,
    /// When the phase ended.
    pub at_ns: u64,
    /// Events since the phase before; gauges at the end of this one.
    pub vmstat: BTreeMap<String, u64>,
}

/// All waits of one task for one reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stall {
    /// The task's name.
    pub task: String,
    /// What it waited for, named after the kernel's own sleep.
    pub reason: String,
    /// How often.
    pub count: u64,
    /// How long in all.
    pub total_ns: u64,
    /// The longest single wait.
    pub max_ns: u64,
}

/// Time of one task in one part of the kernel in one phase, waits and all.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SectionTime {
    /// The phase in which it ended, as [`Wait::phase`].
    pub phase: String,
    /// The task's name.
    pub task: String,
    /// The part, as [`Wait::within`].
    pub within: String,
    /// How often the task was there.
    pub count: u64,
    /// How long in all.
    pub spent_ns: u64,
    /// The longest stay.
    pub longest_ns: u64,
    /// In how many of the stays the task waited.
    pub waited: u64,
}

/// A process that the OOM killer took, or the panic of a kernel that found none to take.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OomKill {
    /// When, on the run's own clock.
    pub at_ns: u64,
    /// The process, as the workload calls its task; in a panic, the one that asked for memory.
    pub task: String,
    /// Its cgroup, or the one whose limit was reached where that is all that is known; empty for
    /// the root.
    pub cgroup: String,
    /// Whether a cgroup's limit was reached, rather than the end of the machine's memory.
    pub by_limit: bool,
    /// Anonymous pages that it held; `None` where a kernel did not tell.
    pub anon_pages: Option<u64>,
    /// What the kernel prints of it, memory at that moment above all, line by line; empty where it could not
    /// be read.
    pub memory: Vec<String>,
    /// Nobody was left to kill, and the kernel panicked.
    #[serde(default, skip_serializing_if = "is_false")]
    pub panicked: bool,
    /// Why reclaim gave up, line by line; empty where nobody knows, as of real kernels.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub why: Vec<String>,
    /// Gauges at that moment, as in [`Recording::vmstat`]; empty where they could not be read.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub gauges: BTreeMap<String, u64>,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde asks so
fn newest<S: serde::Serializer>(_: &u32, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u32(SCHEMA)
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde asks so
const fn is_false(flag: &bool) -> bool {
    !*flag
}

impl Recording {
    /// A recording of nothing yet: identity filled in, everything else empty.
    pub fn new(
        label: impl Into<String>,
        workload: impl Into<String>,
        backend: impl Into<String>,
        kernel: impl Into<String>,
        seed: u64,
    ) -> Self {
        Self {
            schema: SCHEMA,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            label: label.into(),
            workload: workload.into(),
            backend: backend.into(),
            kernel: kernel.into(),
            seed,
            machine: String::new(),
            command: String::new(),
            scenario_toml: String::new(),
            metrics: BTreeMap::new(),
            samples: BTreeMap::new(),
            vmstat: BTreeMap::new(),
            memcg: BTreeMap::new(),
            phases: Vec::new(),
            series: Series::default(),
            stalls: Vec::new(),
            waits: Vec::new(),
            sections: Vec::new(),
            oom_kills: Vec::new(),
            notes: Vec::new(),
            events: 0,
            simulated_ns: 0,
            wall_ns: None,
            incomplete: false,
        }
    }

    /// Whether the run was simulated, so that the same scenario gives the same recording.
    pub fn is_simulated(&self) -> bool {
        self.backend == "sim"
    }

    /// Whether the time that the run took on a clock is no part of its result: it was computed, by the
    /// simulator or a plain policy.
    pub fn is_computed(&self) -> bool {
        matches!(self.backend.as_str(), "sim" | "policy")
    }

    /// How long the run took on its own clock: simulated time, or wall time on a real kernel.
    pub fn duration_ns(&self) -> Option<u64> {
        if self.is_simulated() { Some(self.simulated_ns) } else { self.wall_ns }
    }

    /// This recording as that of a run in which the OOM killer took these; unchanged without `kills`.
    #[must_use]
    pub fn killed(mut self, kills: Vec<OomKill>) -> Self {
        self.oom_kills = kills;
        self
    }

    /// This recording with what is known of its waits; unchanged without any.
    #[must_use]
    pub fn waited(mut self, waits: Vec<Wait>) -> Self {
        self.waits = waits;
        self
    }

    /// This recording with what is known of the time in parts of the kernel; unchanged without any.
    #[must_use]
    pub fn within(mut self, sections: Vec<SectionTime>) -> Self {
        self.sections = sections;
        self
    }

    /// The kill that the run ended by: the panic, or the first one unless the workload went on, in which case it
    /// has metrics.
    pub fn ended_by(&self) -> Option<&OomKill> {
        let panic = self.oom_kills.iter().find(|kill| kill.panicked);
        panic.or_else(|| self.oom_kills.first().filter(|_| self.metrics.is_empty()))
    }

    /// The phases, and behind them the rest of the run where it went on after the last one ended:
    /// their events add up to those of the whole run. Empty without phases.
    pub fn phases_to_the_end(&self) -> Vec<Phase> {
        let mut phases = self.phases.clone();
        let Some(last) = phases.last() else { return phases };
        let end = self.duration_ns().unwrap_or(0).max(last.at_ns);
        let rest = |(name, &total): (&String, &u64)| {
            let told = |phase: &Phase| phase.vmstat.get(name).copied().unwrap_or(0);
            let past = if is_gauge(name) { 0 } else { self.phases.iter().map(told).sum() };
            (name.clone(), total.saturating_sub(past))
        };
        let vmstat: BTreeMap<String, u64> = self.vmstat.iter().map(rest).collect();
        let is_over = end == last.at_ns && vmstat.iter().all(|(name, &count)| is_gauge(name) || count == 0);
        if !is_over {
            phases.push(Phase { name: format!("after {}", last.name), at_ns: end, vmstat });
        }
        phases
    }

    /// The hash of the bytes that this recording is written as.
    ///
    /// Two simulated runs of the same scenario have the same one. The label is part of it, the
    /// wall time of a simulated run is not.
    pub fn content_hash(&self) -> ContentHash {
        files::Files::encode(self).content_hash()
    }
}
