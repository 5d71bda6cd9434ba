//! Tracks of tasks in a Perfetto trace. Next: `perfetto.rs`, the whole trace; `events.rs`, what tasks do.

use std::collections::BTreeMap;

use super::packets::{Kind, Packets, Track};
use super::threads::{Thread, Threads};

/// Tracks of tasks, made when they first do something.
#[derive(Debug, Default)]
pub(super) struct Tasks {
    threads: Threads,
    tracks: BTreeMap<String, Track>,
}

impl Tasks {
    /// The two processes that threads belong to: the kernel, and the workload.
    pub(super) fn start_processes(&mut self, workload: &str, packets: &mut Packets) {
        packets.track("kernel threads", None, 1, Kind::Process(Thread::KERNEL_PID));
        packets.track(workload, None, 2, Kind::Process(Thread::PROGRAM_PID));
    }

    /// The track of the task called `name`.
    pub(super) fn track(&mut self, name: &str, packets: &mut Packets) -> Track {
        if let Some(&track) = self.tracks.get(name) {
            return track;
        }
        let thread = self.threads.number(name);
        let track = packets.track(name, None, thread.tid, Kind::Thread(thread.pid, thread.tid));
        self.tracks.insert(name.to_owned(), track);
        track
    }
}
