//! Runs in the folders of mmtests, written and read: `work/log/RUN/iter-N/` and what its scripts look for in it.
//!
//! For each iteration that is `tests-timestamp` (the benchmarks, their durations), `tests-sysstate.gz`
//! (`/proc/vmstat` before and after each), `tests-activity` (the order of runs) and `BENCHMARK/logs/` with the
//! benchmark's own output. Files may be packed by gzip. Left out: monitors over time, the dump of the machine, logs
//! of benchmarks that have no counterpart here (their durations and counters are read).
//!
//! Start with [`export`] and [`import`]; [`logs`] has the texts. Which benchmark has samples such as ours is said in
//! `pagetide-report`'s `Place`.

pub(crate) mod export;
pub(crate) mod import;
mod logs;

pub use export::export;
pub use import::import;
