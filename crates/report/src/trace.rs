//! A run as a trace that other programs show: for the Perfetto user interface, and as the text that a kernel's
//! `trace` file has.
//!
//! Both take events chunk by chunk, each by itself, and hand over what they have written after each, so that
//! memory does not grow with the run. The same recording gives the same bytes. [`perfetto`] draws what a recording
//! tells of the whole run, [`events`] what each event is on it; [`packets`] and [`proto`] are how it is written,
//! [`counters`] which unit a counter has.

mod counters;
mod events;
mod packets;
mod perfetto;
mod proto;

use std::collections::BTreeMap;

pub use perfetto::PerfettoTrace;

/// Threads of the kernel by what their names begin with, of the simulator and of real kernels.
const KERNEL_THREADS: [&str; 14] = [
    "kswapd",
    "kcompactd",
    "khugepaged",
    "kthreadd",
    "kworker",
    "ksoftirqd",
    "kblockd",
    "flusher",
    "jbd2/",
    "xfs",
    "rcu",
    "vmstat-worker",
    "memcg-stat-flush",
    "oom_reaper",
];

/// A thread as traces number it: recordings have names only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Thread {
    pid: i64,
    tid: i64,
}

impl Thread {
    /// Kernel threads are those of process 2, `kthreadd`; programs are threads of one process.
    const KERNEL_PID: i64 = 2;
    const PROGRAM_PID: i64 = 1000;
}

/// Numbers of threads in the order in which their names came up.
#[derive(Debug, Clone, Default)]
struct Threads {
    known: BTreeMap<String, Thread>,
    of_kernel: i64,
    of_program: i64,
}

impl Threads {
    /// The thread of this name, and whether the name is new.
    fn number(&mut self, name: &str) -> (Thread, bool) {
        if let Some(&thread) = self.known.get(name) {
            return (thread, false);
        }
        let thread = if KERNEL_THREADS.iter().any(|begin| name.starts_with(begin)) {
            self.of_kernel += 1;
            Thread { pid: Thread::KERNEL_PID, tid: Thread::KERNEL_PID + self.of_kernel }
        } else {
            self.of_program += 1;
            Thread { pid: Thread::PROGRAM_PID, tid: Thread::PROGRAM_PID + self.of_program }
        };
        self.known.insert(name.to_owned(), thread);
        (thread, true)
    }
}

#[cfg(test)]
mod tests;
