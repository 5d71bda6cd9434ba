//! Freeing XFS inodes that the VFS has evicted, as [`mm::fs::xfs::inode_reclaim`] decides: a share of
//! what the super-block shrinker looks at, and a worker (MECHANISMS 11.5).
//!
//! Up to 5.8 whoever reclaims memory waits here for writes of inodes.

use mm::base::event::Trace;
use mm::fs::xfs::buf::{ClusterId, Transfer};
use mm::fs::xfs::inode_reclaim::{InodeNext, InodeReclaim};
use units::Nanos;

use crate::handle::Kernel;
use crate::machine::{CostOp, Machine, WaitReason};
use crate::section::{Site, Whom};

/// How often evicted inodes that are clean are freed (a sixth of `xfs_syncd_centisecs`).
pub(crate) const RECLAIM_PERIOD: Nanos = Nanos::from_secs(5);

impl<M: Machine, T: Trace> Kernel<M, T> {
    /// The shrinker's share (`xfs_reclaim_inodes_nr`), called by a reclaimer in `site`.
    pub(crate) async fn reclaim_inodes(&self, count: u64, site: Site) {
        self.push_all();
        let pass = self.mem(|mem| InodeReclaim::shrinker(mem.core.rules(), count));
        self.run_inode_reclaim(pass, Some(site)).await;
    }

    /// The worker (`xfs_reclaim_worker`).
    pub(crate) async fn inode_worker(&self, first: Nanos) {
        let mut pause = first;
        loop {
            self.machine().sleep(pause, WaitReason::Periodic).await;
            pause = RECLAIM_PERIOD;
            self.run_inode_reclaim(InodeReclaim::worker(), None).await;
        }
    }

    async fn run_inode_reclaim(&self, mut pass: InodeReclaim, site: Option<Site>) {
        let wait = &self.shared.wait;
        let mut sent = None;
        loop {
            let cpu = self.machine().current_cpu();
            let next = self.mem(|mem| mem.inode_reclaim_step(&mut pass, cpu));
            if let Some(group) = pass.locked() {
                self.shared.inode_group_holders[group].set(site);
            }
            if pass.take_unlocked() {
                self.wake_queue(wait.inode_groups); // Not for nothing: a waiter that looks is no news to others.
            }
            match next {
                InodeNext::Looked { looked, freed } => {
                    self.machine().charge(CostOp::SlabScanObject, looked);
                    self.machine().charge(CostOp::SlabObject, 3 * freed);
                    self.machine().cond_resched().await; // xfs_reclaim_inodes_ag
                }
                InodeNext::WaitForGroup(group) => {
                    self.machine().blame(Some(Whom::GroupLock(self.shared.inode_group_holders[group].get())));
                    let _ = self.machine().wait(wait.inode_groups, WaitReason::InodeReclaim, None).await;
                }
                InodeNext::WaitForCluster(cluster) => {
                    let own = (sent == Some(cluster)).then_some(Whom::OwnInodeWrite);
                    self.machine().blame(own.or_else(|| self.who_transfers(cluster)));
                    self.wait_for_clusters().await;
                }
                InodeNext::ForceLog => {
                    self.machine().blame(Some(Whom::Log));
                    self.force_log(WaitReason::InodeReclaim).await;
                }
                InodeNext::Read(cluster) => {
                    self.machine().blame(Some(Whom::InodeRead));
                    self.read_cluster_from_reserve(cluster, WaitReason::InodeReclaim).await;
                }
                InodeNext::Write(cluster) => {
                    self.submit_cluster_writes(&[cluster]);
                    sent = Some(cluster);
                    self.machine().blame(Some(Whom::OwnInodeWrite));
                    self.wait_for_clusters().await;
                }
                InodeNext::Done => break,
            }
        }
        self.machine().blame(None);
    }

    fn who_transfers(&self, cluster: ClusterId) -> Option<Whom> {
        self.mem(|mem| mem.fs.xfs_buffers.transfer(cluster)).map(|transfer| match transfer {
            Transfer::Read => Whom::InodeRead,
            Transfer::Write => Whom::AilInodeWrite,
            Transfer::ReclaimersWrite => Whom::ReclaimersInodeWrite,
        })
    }

    async fn wait_for_clusters(&self) {
        let _ = self.machine().wait(self.shared.wait.clusters, WaitReason::InodeReclaim, None).await;
    }
}
