//! Samples for whoever wants them while a run goes, such as a recording that shall outlive a killed process.
//!
//! Handed out chunk by chunk, the first ones small, so that little is lost of a short run; how many rows a chunk
//! has depends on the rows before it alone, so that the same run has the same chunks. Next:
//! [`crate::run::begin::Watch`].

use std::collections::BTreeMap;
use std::fmt;

use units::Nanos;

/// Rows of the first chunk; each further one has twice as many as the one before.
const FIRST_ROWS: usize = 16;
/// Rows of a chunk at most.
const MOST_ROWS: usize = 256;

/// All counters at the end of a phase.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PhaseSample {
    /// The phase's name.
    pub name: String,
    /// When it ended.
    pub at: Nanos,
    /// `/proc/vmstat` names: events since boot, gauges as they are.
    pub vmstat: BTreeMap<String, u64>,
}

/// Who is handed chunks.
pub type SampleSink = Box<dyn FnMut(SampleChunk<'_>)>;

/// The next rows, and what else is known of the run by then.
#[derive(Debug)]
pub struct SampleChunk<'a> {
    /// Names of the columns, of which there may be more in every chunk.
    pub columns: Vec<String>,
    /// Simulated time and one value for each column; of two rows of one instant the later one stands.
    pub rows: Vec<(Nanos, Vec<u64>)>,
    /// All phases that have ended.
    pub phases: &'a [PhaseSample],
    /// `/proc/vmstat` when the program began.
    pub vmstat_before: &'a BTreeMap<String, u64>,
    /// `/proc/vmstat` now.
    pub vmstat: BTreeMap<String, u64>,
}

/// How much was handed out.
pub(crate) struct Handing {
    sink: SampleSink,
    /// Rows that were handed out.
    pub(crate) handed: usize,
    /// Rows of the next chunk.
    room: usize,
}

impl Handing {
    pub(crate) fn new(sink: SampleSink) -> Self {
        Self { sink, handed: 0, room: FIRST_ROWS }
    }

    /// Whether the next chunk is full with the last of so many rows.
    pub(crate) fn is_due(&self, rows: usize) -> bool {
        rows - self.handed >= self.room
    }

    pub(crate) fn hand(&mut self, chunk: SampleChunk<'_>) {
        self.handed += chunk.rows.len();
        self.room = (self.room * 2).min(MOST_ROWS);
        (self.sink)(chunk);
    }
}

impl fmt::Debug for Handing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handing").field("handed", &self.handed).finish_non_exhaustive()
    }
}
