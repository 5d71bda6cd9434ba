//! Writing the log of XFS: who closes checkpoints, who forces the log, and who commits what is on the
//! disk (`xlog_cil_push_work`, `xfs_log_force`, `xlog_ioend_work`, `xfs_log_worker`; MECHANISMS 11.2).
//!
//! Nobody here takes memory, so reclaim may force the log. Left out: that since 5.14 only the first and the
//! last record of a checkpoint flush the disk's own memory. Next: [`mm::fs::xfs::log`]; [`super::xfs_log`] for changes.

use mm::base::event::Trace;
use mm::base::vmstat::VmEvent;
use mm::fs::xfs::log::Record;
use units::Nanos;

use crate::cache::in_flight::Transfer;
use crate::handle::Kernel;
use crate::machine::{CostOp, IoKind, IoRequest, Machine, WaitReason};

/// How often all that was logged is written, to the log and to its place (`xfs_syncd_centisecs`).
pub(crate) const LOG_PERIOD: Nanos = Nanos::from_secs(30);

/// Where the log lies on the disk: away from all data and inodes.
const LOG_OFFSET: u64 = 1 << 46;

/// Inodes that are unpinned in one step.
const COMMIT_CHUNK: usize = 64;

impl<M: Machine, T: Trace> Kernel<M, T> {
    /// The worker that closes checkpoints when they are full.
    pub(crate) async fn checkpoint_worker(&self) {
        loop {
            while self.mem(|mem| mem.fs.xfs_log.is_checkpoint_full(mem.core.alloc.tuning())) {
                self.write_checkpoint(false, WaitReason::LogWrite).await;
            }
            let _ = self.machine().wait(self.shared.wait.checkpoint, WaitReason::Periodic, None).await;
        }
    }

    /// The worker that forces the log every 30 s from the mount on, here the boot, and has the AIL pushed.
    pub(crate) async fn log_worker(&self) {
        loop {
            self.machine().sleep(LOG_PERIOD, WaitReason::Periodic).await;
            self.force_log(WaitReason::LogWrite).await;
            self.push_all();
        }
    }

    /// All that the log keeps from moving on is to be written.
    pub(crate) fn push_all(&self) {
        if self.mem(|mem| mem.log_push_all()) {
            self.wake_queue(self.shared.wait.ail);
        }
    }

    /// The worker that commits checkpoints that are on the disk.
    pub(crate) async fn commit_worker(&self) {
        loop {
            let cpu = self.machine().current_cpu();
            let Some(committed) = self.mem(|mem| mem.log_commit(cpu, COMMIT_CHUNK)) else {
                let _ = self.machine().wait(self.shared.wait.commit, WaitReason::Periodic, None).await;
                continue;
            };
            self.machine().charge(CostOp::SlabObject, committed.items);
            if committed.ends {
                for queue in [self.shared.wait.log, self.shared.wait.log_space, self.shared.wait.ail] {
                    self.wake_queue(queue);
                }
            }
            self.machine().cond_resched().await; // xlog_ioend_work
        }
    }

    /// Writes all changes up to now and waits until they count (`xfs_log_force`).
    pub(crate) async fn force_log(&self, reason: WaitReason) {
        self.write_checkpoint(true, reason).await;
        let Some(last) = self.mem(|mem| mem.fs.xfs_log.last_closed()) else { return };
        while self.mem(|mem| mem.fs.xfs_log.is_waiting(last)) {
            let _ = self.machine().wait(self.shared.wait.log, reason, None).await;
        }
    }

    /// Closes the open checkpoint and sends its records off; its last one only if that is forced.
    async fn write_checkpoint(&self, forced: bool, reason: WaitReason) {
        if self.mem(|mem| mem.log_close()) {
            self.wake_queue(self.shared.wait.log); // Others wait for a new checkpoint.
        }
        loop {
            while self.mem(|mem| mem.fs.xfs_log.are_records_busy()) {
                let _ = self.machine().wait(self.shared.wait.log, reason, None).await;
            }
            let Some(record) = self.mem(|mem| mem.log_next_record(forced)) else { break };
            self.submit_record(record);
        }
    }

    fn submit_record(&self, record: Record) {
        let Record { number, offset, len } = record;
        self.mem(|mem| mem.core.alloc.events.add(VmEvent::PgPgOut, len.get().div_ceil(1024)));
        let tag = self.shared.in_flight.borrow_mut().add(Transfer::Log(number));
        let (kind, offset) = (IoKind::DurableWrite, LOG_OFFSET + offset);
        // An in-core log is one block of memory.
        self.start_io(IoRequest { device: 0, kind, offset, len, segments: 1, tag });
    }

    /// A record of the log is on the disk.
    pub(crate) fn log_arrived(&self, record: u64) {
        let commits = self.mem(|mem| {
            mem.log_record_written(record);
            mem.fs.xfs_log.can_commit()
        });
        self.wake_queue(self.shared.wait.log);
        if commits {
            self.wake_queue(self.shared.wait.commit);
        }
    }
}
