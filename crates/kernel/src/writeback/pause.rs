//! Pauses of writers that make pages dirty faster than the disk writes them
//! (`balance_dirty_pages`), as [`mm::decide::pause`] decides, or up to 3.1 [`mm::decide::write_out`].

use mm::MemcgId;
use mm::base::event::Trace;
use mm::decide::pause::{Next, Pause};
use mm::decide::write_out::{self, WriteOut, poll};
use mm::version::rules::DirtyPause;

use crate::handle::Kernel;
use crate::machine::{Machine, WaitReason};
use crate::tasks::process::Process;

impl<M: Machine, T: Trace> Kernel<M, T> {
    /// After a page was made dirty: every now and then the writer is to look whether it goes too fast
    /// (`balance_dirty_pages_ratelimited`).
    #[inline]
    pub(crate) fn dirtied_enough(&self, process: &Process) -> bool {
        let mut pace = process.0.pace.get();
        let looks = match self.mem(|mem| mem.core.rules().dirty_pause) {
            DirtyPause::Writes => pace.dirty_page(),
            DirtyPause::Sleeps => {
                let cpu = self.machine().current_cpu();
                pace.dirty_page_on(&mut self.shared.cpu_paces.borrow_mut()[cpu.index()])
            }
        };
        process.0.pace.set(pace);
        looks
    }

    /// A writer to disk `device` looks whether it goes too fast, and pauses then.
    pub(crate) async fn balance_dirty_pages(&self, process: &Process, device: u16) {
        match self.mem(|mem| mem.core.rules().dirty_pause) {
            DirtyPause::Writes => self.write_out(process, device).await,
            DirtyPause::Sleeps => self.pause_writer(process, device).await,
        }
    }

    /// Thresholds of dirty pages have changed: how often writers look goes by them.
    pub(crate) fn set_cpu_paces(&self) {
        let threshold = self.mem(|mem| mem.dirty_limits().threshold);
        let cpus = self.machine().cpu_count();
        for pace in &mut *self.shared.cpu_paces.borrow_mut() {
            pace.set_threshold(threshold, u32::from(cpus));
        }
    }

    async fn pause_writer(&self, process: &Process, device: u16) {
        let memcg = process.memcg();
        let mut pause = Pause::new(&process.0.pace.get());
        loop {
            let (now, dying) = (self.machine().now(), process.is_killed());
            let mut pace = process.0.pace.get();
            let next = self.mem(|mem| pause.step(mem, &mut pace, memcg, now, self.machine().hz(), dying));
            process.0.pace.set(pace);
            match next {
                Next::StartFlusher => self.start_background_writeback(device, memcg),
                Next::Sleep(ticks) => {
                    self.machine().sleep(self.ticks(ticks), WaitReason::DirtyThrottle).await;
                }
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
                write_out::Next::StartFlusher => self.start_background_writeback(device, MemcgId::ROOT),
                write_out::Next::Go => break,
            }
        }
        let mut pace = process.0.pace.get();
        out.done(&mut pace, poll);
        process.0.pace.set(pace);
    }
}
