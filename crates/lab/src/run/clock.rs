//! How long something took on a clock, where there is one: a program of WebAssembly has none.
//!
//! Left out: simulated time, which is the model's own.

use std::time::Duration;

/// A moment on the clock of this machine.
pub(crate) struct Clock {
    #[cfg(unix)]
    begin: std::time::Instant,
}

impl Clock {
    /// Now.
    pub(crate) fn begin() -> Self {
        Self {
            #[cfg(unix)]
            begin: std::time::Instant::now(),
        }
    }

    /// Time since then.
    pub(crate) fn took(&self) -> Option<Duration> {
        #[cfg(unix)]
        return Some(self.begin.elapsed());
        #[cfg(not(unix))]
        None
    }

    /// The same as a recording has it.
    pub(crate) fn took_ns(&self) -> Option<u64> {
        self.took().map(|took| u64::try_from(took.as_nanos()).unwrap_or(u64::MAX))
    }
}
