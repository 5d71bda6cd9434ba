//! Who watches the runs of a size, and how to stop them.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use units::Bytes;

/// How far the work is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum SizeProgress<'a> {
    /// The trace is being read.
    Read {
        /// Bytes so far.
        bytes: u64,
        /// Bytes that it has; 0 when not known.
        total: u64,
    },
    /// Runs begin; none before, or more than were known of.
    Planned {
        /// As many as are planned so far.
        runs: usize,
    },
    /// A run is over.
    Finished {
        /// How many are, with this one.
        finished: usize,
        /// Kernel and limit.
        label: &'a str,
        /// Its seed.
        seed: u64,
        /// Time on a clock.
        seconds: f64,
    },
    /// A command is captured.
    Captures {
        /// Which of them.
        number: usize,
        /// How many there are.
        of: usize,
        /// The own cache that it has.
        own_cache: Bytes,
    },
    /// The program itself is run.
    Checks {
        /// Its limit; none is no limit.
        limit: Option<Bytes>,
    },
    /// The same limits were run on the sample and on all of the trace.
    Timed {
        /// Time on clocks of the sample's runs, in all.
        sample_seconds: f64,
        /// Likewise of all of the trace.
        whole_seconds: f64,
    },
}

/// Who watches, and how to stop.
#[derive(Clone)]
pub struct SizeControl {
    /// Set to end soon; what has finished is reported.
    pub stop: Arc<AtomicBool>,
    /// Called from the threads that run; must not block for long.
    pub observer: Arc<dyn Fn(SizeProgress<'_>) + Send + Sync>,
}
