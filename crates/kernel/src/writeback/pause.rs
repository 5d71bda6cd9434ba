//! Pauses of writers that make pages dirty faster than the disk writes them
//! (`balance_dirty_pages`), as [`mm::decide::pause`] decides.

use mm::base::event::Trace;
use mm::decide::pause::{Next, Pause};

use crate::handle::Kernel;
use crate::machine::{Machine, WaitReason};
use crate::tasks::process::Process;

impl<M: Machine, T: Trace> Kernel<M, T> {
    /// After a page of a file on disk `device` was made dirty: every now and then the writer looks whether it goes too fast
    /// (`balance_dirty_pages_ratelimited`).
    pub(crate) async fn balance_dirty_pages(&self, process: &Process, device: u16) {
        let mut pace = process.0.pace.get();
        let looks = pace.dirty_page();
        process.0.pace.set(pace);
        if !looks {
            return;
        }
        let mut pause = Pause::new();
        loop {
            let (now, dying) = (self.machine().now(), process.is_killed());
            let mut pace = process.0.pace.get();
            let next = self.mem(|mem| pause.step(mem, &mut pace, now, dying));
            process.0.pace.set(pace);
            match next {
                Next::StartFlusher => self.start_background_writeback(device),
                Next::Sleep(length) => self.machine().sleep(length, WaitReason::DirtyThrottle).await,
                Next::Go => return,
            }
        }
    }
}
