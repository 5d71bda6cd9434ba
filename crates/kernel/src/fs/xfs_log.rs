//! Writing the log of XFS: which changes enter it, and the worker that closes checkpoints
//! (`xlog_cil_push_work`, `xfs_log_worker`; MECHANISMS 11.2).
//!
//! An inode is logged when it is created and when blocks are given to it; both allocate unmovable
//! memory, without FS. A checkpoint is written when an eighth of the log has come together, every
//! 30 s, and by `sync` and `fsync`; that frees the memory.
//!
//! Left out: the transaction at the end of a write that sets the size (mostly in the same
//! checkpoint), unlinks, tasks that wait because a checkpoint is twice too large, pinned inodes (an
//! inode may be evicted while its change is on the way), and the space in the log. Next:
//! [`mm::fs::xfs::log`].

use mm::base::event::Trace;
use mm::base::gfp::Gfp;
use mm::base::vmstat::VmEvent;
use mm::fs::xfs::log::{CheckpointId, XfsLog};
use mm::version::geometry::Cache;
use units::{Bytes, Nanos};

use crate::cache::in_flight::Transfer;
use crate::files::inode::Inode;
use crate::handle::Kernel;
use crate::machine::{CostOp, IoKind, IoRequest, Machine, WaitReason};
use crate::tasks::process::Process;

/// How often all that was logged is written (`xfs_syncd_centisecs`).
pub(crate) const LOG_PERIOD: Nanos = Nanos::from_secs(30);

/// The longest write to the log: an in-core log of the size that a disk gets unless it is told otherwise
/// (`logbsize` in Linux's admin-guide/xfs). Each has to be on the medium before what is behind it may be.
const RECORD_BYTES: u64 = 32 << 10;

/// Where the log lies on the disk: away from all data and inodes.
const LOG_OFFSET: u64 = 1 << 46;

impl<M: Machine, T: Trace> Kernel<M, T> {
    /// An inode changes in a transaction. Without memory for that the change is taken as logged all
    /// the same: a real transaction would wait until there is some.
    pub(crate) async fn log_change(&self, process: Option<&Process>, inode: &Inode) {
        if !inode.is_in_table() {
            return;
        }
        let is_logged = || inode.logged_in.get() == Some(self.mem(|mem| mem.fs.xfs_log.open_checkpoint()));
        if is_logged() {
            return;
        }
        let Ok(vector) = self.alloc_object(process, Cache::XfsLogVector, Gfp::NOFS).await else {
            return;
        };
        if is_logged() {
            // Another task was faster while this one waited for memory.
            let cpu = self.machine().current_cpu();
            self.mem(|mem| mem.free_object(cpu, vector));
            return;
        }
        self.mem(|mem| {
            inode.logged_in.set(Some(mem.fs.xfs_log.open_checkpoint()));
            mem.log_add(vector);
        });
        if self.is_checkpoint_full() {
            self.wake_queue(self.shared.wait.log_worker);
        }
    }

    /// The worker that writes checkpoints; `first`: how long after boot its first period ends.
    pub(crate) async fn log_worker(&self, first: Nanos) {
        let mut timeout = first;
        loop {
            let queue = self.shared.wait.log_worker;
            let _ = self.machine().wait(queue, WaitReason::Periodic, Some(timeout)).await;
            timeout = LOG_PERIOD;
            self.write_checkpoint().await;
            while self.is_checkpoint_full() {
                self.write_checkpoint().await;
            }
        }
    }

    fn is_checkpoint_full(&self) -> bool {
        self.mem(|mem| {
            let limit = XfsLog::checkpoint_limit(self.shared.xfs_log_size, mem.core.alloc.tuning());
            mem.fs.xfs_log.open_bytes() > limit
        })
    }

    /// Writes all changes up to now and waits for that (`xfs_log_force`).
    pub(crate) async fn force_log(&self) {
        self.write_checkpoint().await;
        while self.mem(|mem| mem.fs.xfs_log.is_writing()) {
            let _ = self.machine().wait(self.shared.wait.log, WaitReason::LogWrite, None).await;
        }
    }

    async fn write_checkpoint(&self) {
        let Some((id, bytes)) = self.mem(|mem| mem.log_close()) else { return };
        self.submit_checkpoint(id, bytes);
        while self.shared.in_flight.borrow().logs(id) {
            let _ = self.machine().wait(self.shared.wait.log, WaitReason::LogWrite, None).await;
        }
        let cpu = self.machine().current_cpu();
        let freed = self.mem(|mem| mem.log_written(cpu, id));
        self.machine().charge(CostOp::SlabObject, freed);
        self.log_arrived();
    }

    fn submit_checkpoint(&self, id: CheckpointId, bytes: Bytes) {
        self.mem(|mem| mem.core.alloc.events.add(VmEvent::PgPgOut, bytes.get().div_ceil(1024)));
        let mut left = bytes.get();
        while left > 0 {
            let len = left.min(RECORD_BYTES);
            let tag = self.shared.in_flight.borrow_mut().add(Transfer::Log(id));
            let at = self.shared.log_head.get();
            self.shared.log_head.set((at + len) % self.shared.xfs_log_size.get().max(RECORD_BYTES));
            let offset = LOG_OFFSET + at;
            let (kind, bytes) = (IoKind::DurableWrite, Bytes(len));
            // An in-core log is one block of memory.
            self.start_io(IoRequest { device: 0, kind, offset, len: bytes, segments: 1, tag });
            left -= len;
        }
    }

    /// Some record of the log is on the disk, or a checkpoint was freed.
    pub(crate) fn log_arrived(&self) {
        self.wake_queue(self.shared.wait.log);
    }
}
