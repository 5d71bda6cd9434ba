//! The thread that writes changed XFS inodes to their places (`xfsaild`), as [`mm::fs::xfs::ail`] decides.

use mm::base::event::Trace;
use mm::fs::xfs::ail::{AilNext, AilPush};
use units::Nanos;

use crate::handle::Kernel;
use crate::machine::{CostOp, Machine, WaitReason};

impl<M: Machine, T: Trace> Kernel<M, T> {
    /// The thread.
    pub(crate) async fn ail_pusher(&self) {
        let mut push = AilPush::new(self.mem(|mem| mem.core.alloc.tuning().xfs_push_pause));
        loop {
            match self.mem(|mem| mem.ail_step(&mut push)) {
                AilNext::Walk(looked) => {
                    self.machine().charge(CostOp::SlabScanObject, u64::from(looked));
                    self.machine().cond_resched().await; // xfsaild_push
                }
                AilNext::ForceLog => self.force_log(WaitReason::LogWrite).await,
                AilNext::Read(cluster) => {
                    self.read_cluster_from_reserve(cluster, WaitReason::PageRead).await;
                }
                AilNext::Write(clusters) => self.submit_cluster_writes(&clusters),
                AilNext::Sleep(Some(Nanos::ZERO)) => self.machine().cond_resched().await,
                AilNext::Sleep(length) => {
                    let timeout = length.map(|length| self.timeout(length));
                    let _ = self.machine().wait(self.shared.wait.ail, WaitReason::Periodic, timeout).await;
                }
            }
        }
    }
}
