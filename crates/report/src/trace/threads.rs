//! Threads by their names, numbered as traces number them; and what is kept for each name of a recording.

use std::collections::BTreeMap;

use recording::NameId;

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
pub(super) struct Thread {
    pub(super) pid: i64,
    pub(super) tid: i64,
}

impl Thread {
    /// Kernel threads are those of process 2, `kthreadd`; programs are threads of one process.
    pub(super) const KERNEL_PID: i64 = 2;
    pub(super) const PROGRAM_PID: i64 = 1000;
}

/// Numbers of threads in the order in which their names came up.
#[derive(Debug, Clone, Default)]
pub(super) struct Threads {
    known: BTreeMap<String, Thread>,
    of_kernel: i64,
    of_program: i64,
}

impl Threads {
    /// The thread of this name.
    pub(super) fn number(&mut self, name: &str) -> Thread {
        if let Some(&thread) = self.known.get(name) {
            return thread;
        }
        let thread = if KERNEL_THREADS.iter().any(|begin| name.starts_with(begin)) {
            self.of_kernel += 1;
            Thread { pid: Thread::KERNEL_PID, tid: Thread::KERNEL_PID + self.of_kernel }
        } else {
            self.of_program += 1;
            Thread { pid: Thread::PROGRAM_PID, tid: Thread::PROGRAM_PID + self.of_program }
        };
        self.known.insert(name.to_owned(), thread);
        thread
    }

    /// All names with their numbers.
    pub(super) fn names(&self) -> impl Iterator<Item = (&str, i64)> {
        self.known.iter().map(|(name, thread)| (name.as_str(), thread.tid))
    }
}

/// One `T` for each name that came up.
#[derive(Debug)]
pub(super) struct ByName<T>(Vec<Option<T>>);

impl<T> Default for ByName<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> ByName<T> {
    pub(super) fn place(&mut self, name: NameId) -> &mut Option<T> {
        let index = name.index();
        if self.0.len() <= index {
            self.0.resize_with(index + 1, || None);
        }
        &mut self.0[index]
    }
}
