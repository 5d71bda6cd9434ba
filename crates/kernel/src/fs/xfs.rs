//! XFS inodes on the disk: clusters of 32 that are read and made through buffers (MECHANISMS 11.1).
//!
//! A create needs a new chunk of 64 inodes every so often, whose two buffers are made without a
//! read; an inode that comes back, or changes, needs its cluster's buffer. A chunk of which no inode is
//! left is freed, so that none of it is written; left out: that its buffers go, too. Next:
//! [`super::xfs_io`], [`super::xfs_log`], `mm::fs::xfs::buf`.

use mm::base::event::Trace;
use mm::base::gfp::Gfp;
use mm::fs::xfs::buf::{CLUSTER_PAGES, ClusterId, ClusterState, INODES_IN_CLUSTER};
use mm::fs::xfs::items::CLUSTERS_IN_CHUNK;
use units::{Order, Pfn};

use crate::alloc::purpose::Purpose;
use crate::errno::Errno;
use crate::handle::Kernel;
use crate::machine::{Machine, WaitReason};
use crate::tasks::process::Process;

impl<M: Machine, T: Trace> Kernel<M, T> {
    /// A file is created: the first one of a chunk makes the chunk's buffers. Blocks for it are looked for near those
    /// that were freed last, and whoever finds such forces the log first (traced on 6.18: of files that are made and
    /// removed in rounds, the first new chunk of each round, unless a block of their directory comes before it).
    pub(crate) async fn make_clusters(&self, process: &Process, number: u32) -> Result<(), Errno> {
        if !number.is_multiple_of(CLUSTERS_IN_CHUNK * INODES_IN_CLUSTER) {
            return Ok(());
        }
        if self.mem(|mem| mem.fs.xfs_log.has_busy_blocks()) {
            self.force_log(WaitReason::LogWrite).await; // xfs_extent_busy_flush
        }
        let first = number / INODES_IN_CLUSTER;
        for cluster in first..first + CLUSTERS_IN_CHUNK {
            self.get_cluster(Some(process), ClusterId(cluster), false).await?;
        }
        Ok(())
    }

    /// Brings the cluster of an inode into memory.
    pub(crate) async fn read_cluster(&self, process: Option<&Process>, number: u32) -> Result<(), Errno> {
        self.get_cluster(process, ClusterId(number / INODES_IN_CLUSTER), true).await
    }

    pub(crate) async fn get_cluster(
        &self,
        process: Option<&Process>,
        cluster: ClusterId,
        on_disk: bool,
    ) -> Result<(), Errno> {
        loop {
            match self.mem(|mem| mem.cluster_use(cluster)) {
                ClusterState::Ready | ClusterState::Writing => return Ok(()),
                ClusterState::Reading => {
                    self.flush_plug();
                    self.mem(|mem| mem.cluster_await(cluster));
                    self.wait_for_any_read().await;
                    self.cluster_awaited(cluster);
                }
                ClusterState::Missing => {
                    let pages = self.alloc_buffer(process).await?;
                    let cpu = self.machine().current_cpu();
                    let added = self.mem(|mem| {
                        let missing = mem.cluster_use(cluster) == ClusterState::Missing;
                        if missing {
                            mem.cluster_add(cluster, pages, !on_disk);
                        } else {
                            pages.iter().for_each(|&pfn| mem.core.alloc.free(cpu, pfn, Order(0)));
                        }
                        missing
                    });
                    if added && on_disk {
                        self.submit_cluster_read(cluster);
                    }
                }
            }
        }
    }

    /// Four pages, one by one: unmovable, and without FS, as a transaction may be open.
    async fn alloc_buffer(&self, process: Option<&Process>) -> Result<[Pfn; CLUSTER_PAGES], Errno> {
        let mut pages = Vec::with_capacity(CLUSTER_PAGES);
        while pages.len() < CLUSTER_PAGES {
            match self.alloc_pages_for(Purpose::XfsBuffer, process, Gfp::NOFS, Order(0)).await {
                Some(pfn) => pages.push(pfn),
                None => {
                    let cpu = self.machine().current_cpu();
                    self.mem(|mem| pages.into_iter().for_each(|pfn| mem.core.alloc.free(cpu, pfn, Order(0))));
                    return Err(Errno::NoMem);
                }
            }
        }
        Ok(pages.try_into().expect("as many as were asked for"))
    }
}
