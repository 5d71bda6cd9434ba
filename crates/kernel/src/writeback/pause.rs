//! Pauses of writers that make pages dirty faster than the disk writes them
//! (`balance_dirty_pages`; MECHANISMS 10.3). Neighbour: [`mm::writeback`] for thresholds and pace.

use mm::event::Trace;
use mm::writeback::Balance;

use crate::handle::Kernel;
use crate::machine::{Machine, WaitReason};
use crate::tasks::process::Process;

impl<M: Machine, T: Trace> Kernel<M, T> {
    /// After a page was made dirty: every now and then the writer looks whether it goes too fast
    /// (`balance_dirty_pages_ratelimited`).
    pub(crate) async fn balance_dirty_pages(&self, process: &Process) {
        let pace = &process.0.pace;
        pace.dirtied.set(pace.dirtied.get() + 1);
        if pace.dirtied.get() < pace.poll.get() {
            return;
        }
        loop {
            let now = self.machine().now();
            let since = now.saturating_sub(pace.paused_at.get());
            let pages = pace.dirtied.get();
            let balance = self.mem(|mem| mem.balance_dirty_pages(now, pages, since));
            if self.is_over_background() {
                self.start_background_writeback();
            }
            let (length, again) = match balance {
                Balance::Go { poll } => {
                    // What was not slept for is not forgotten, but for a writer below freerun.
                    pace.poll.set(poll);
                    pace.dirtied.set(0);
                    pace.paused_at.set(now);
                    return;
                }
                Balance::Pause { length, poll } => {
                    pace.poll.set(poll);
                    (length, false)
                }
                Balance::Wait { length } => (length, true),
            };
            self.machine().sleep(length, WaitReason::DirtyThrottle).await;
            pace.paused_at.set(self.machine().now());
            if !again || process.is_killed() {
                pace.dirtied.set(0);
                return;
            }
        }
    }
}
