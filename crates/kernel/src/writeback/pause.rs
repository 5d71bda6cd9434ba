//! Pauses of writers that make pages dirty faster than the disk writes them
//! (`balance_dirty_pages`), as [`mm::decide::pause`] decides, or up to 3.1 [`mm::decide::write_out`].

use mm::base::event::Trace;
use mm::decide::pause::{Next, Pause};
use mm::decide::write_out::{self, WriteOut, poll};
use mm::version::rules::DirtyPause;

use crate::handle::Kernel;
use crate::machine::{Machine, WaitReason};
use crate::tasks::process::Process;

/// After a page was made dirty: every now and then the writer is to look whether it goes too fast
/// (`balance_dirty_pages_ratelimited`).
pub(crate) fn dirtied_enough(process: &Process) -> bool {
    let mut pace = process.0.pace.get();
    let looks = pace.dirty_page();
    process.0.pace.set(pace);
    looks
}

impl<M: Machine, T: Trace> Kernel<M, T> {
    /// A writer to disk `device` looks whether it goes too fast, and pauses then.
    pub(crate) async fn balance_dirty_pages(&self, process: &Process, device: u16) {
        match self.mem(|mem| mem.core.rules().dirty_pause) {
            DirtyPause::Writes => self.write_out(process, device).await,
            DirtyPause::Sleeps => self.pause_writer(process, device).await,
        }
    }

    async fn pause_writer(&self, process: &Process, device: u16) {
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

    /// The writer writes back itself.
    async fn write_out(&self, process: &Process, device: u16) {
        let memory = self.mem(|mem| mem.core.alloc.zones().iter().map(|zone| zone.managed).sum());
        let poll = poll(memory, self.machine().cpu_count());
        let (mut out, mut written) = (WriteOut::new(poll, self.jiffy()), 0);
        loop {
            let dying = process.is_killed();
            let next = self.mem(|mem| out.step(mem, written, dying));
            written = 0;
            match next {
                write_out::Next::Write(pages) => written = self.write_back_for_writer(device, pages).await,
                write_out::Next::Sleep(ticks) => {
                    self.machine().sleep(self.ticks(ticks), WaitReason::DirtyThrottle).await;
                }
                write_out::Next::StartFlusher => self.start_background_writeback(device),
                write_out::Next::Go => break,
            }
        }
        let mut pace = process.0.pace.get();
        out.done(&mut pace, poll, self.machine().now());
        process.0.pace.set(pace);
    }
}
