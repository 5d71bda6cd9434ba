//! Reading and writing clusters of XFS inodes (MECHANISMS 11.3).
//!
//! Nobody here waits for memory: who frees memory, or lets others do so, takes the reserve
//! (`PF_MEMALLOC`). Next: `mm::fs::xfs::buf`; [`super::xfs`] for those who may wait.

use mm::alloc::flags::AllocFlags;
use mm::base::event::Trace;
use mm::base::gfp::Gfp;
use mm::base::vmstat::VmEvent;
use mm::fs::xfs::buf::{CLUSTER_PAGES, ClusterId, ClusterState};
use units::{Bytes, Nanos, Order, PAGE_SIZE, Pfn};

use crate::cache::in_flight::Transfer;
use crate::cache::io::count_runs;
use crate::handle::Kernel;
use crate::machine::{CostOp, IoKind, IoRequest, Machine, WaitReason};

/// Where inodes lie on the disk: away from all data.
const INODES_OFFSET: u64 = 1 << 44;

const CLUSTER_BYTES: u64 = CLUSTER_PAGES as u64 * PAGE_SIZE;

/// Clusters in a request at most: 512 KiB.
const CLUSTERS_MAX: u32 = 32;

/// How long a reader waits when even the reserve is empty (`congestion_wait` of `xfs_buf`).
const RETRY: Nanos = Nanos::from_millis(20);

impl<M: Machine, T: Trace> Kernel<M, T> {
    fn submit_clusters(&self, kind: IoKind, first: ClusterId, count: u32, transfer: Transfer) {
        let event = if kind == IoKind::Read { VmEvent::PgPgIn } else { VmEvent::PgPgOut };
        let len = u64::from(count) * CLUSTER_BYTES;
        let segments = self.mem(|mem| {
            mem.core.alloc.events.add(event, len / 1024);
            let clusters = (first.0..first.0 + count).map(ClusterId);
            let pages = clusters.filter_map(|cluster| mem.fs.xfs_buffers.pages(cluster)).flatten();
            count_runs(pages.map(Some), None).0
        });
        let tag = self.shared.in_flight.borrow_mut().add(transfer);
        let offset = INODES_OFFSET + (u64::from(first.0) * CLUSTER_BYTES);
        self.start_io(IoRequest { device: 0, kind, offset, len: Bytes(len), segments, tag });
    }

    pub(crate) fn submit_cluster_read(&self, cluster: ClusterId) {
        self.submit_clusters(IoKind::Read, cluster, 1, Transfer::Cluster(cluster));
    }

    /// Writes clusters that are filled and locked, in the order of the disk; those that lie side by side
    /// share a request.
    pub(crate) fn submit_cluster_writes(&self, clusters: &[ClusterId]) {
        let mut rest = clusters;
        while let Some(&first) = rest.first() {
            let follows = |&(place, cluster): &(u32, &ClusterId)| cluster.0 == first.0 + place;
            let run = (0..CLUSTERS_MAX).zip(rest).take_while(follows).count();
            let count = u32::try_from(run).expect("at most 32");
            self.submit_clusters(IoKind::Write, first, count, Transfer::ClusterWrite { first, count });
            rest = &rest[run..];
        }
    }

    /// A cluster has been read.
    pub(crate) fn cluster_arrived(&self, cluster: ClusterId) {
        self.mem(|mem| mem.cluster_read_done(cluster));
        self.wake_queue(self.shared.wait.clusters);
        self.wake_any_read();
    }

    /// Clusters are on the disk: the tail of the log may have moved.
    pub(crate) fn clusters_written(&self, first: ClusterId, count: u32) {
        let cpu = self.machine().current_cpu();
        self.mem(|mem| {
            for cluster in first.0..first.0 + count {
                mem.cluster_written(cpu, ClusterId(cluster));
            }
        });
        self.wake_queue(self.shared.wait.clusters);
        self.wake_queue(self.shared.wait.log_space);
    }

    /// Brings a cluster into memory with pages of the reserve.
    pub(crate) async fn read_cluster_from_reserve(&self, cluster: ClusterId, reason: WaitReason) {
        loop {
            match self.mem(|mem| mem.cluster_use(cluster)) {
                ClusterState::Ready | ClusterState::Writing => return,
                ClusterState::Reading => {
                    self.mem(|mem| mem.cluster_await(cluster));
                    let _ = self.machine().wait(self.shared.wait.clusters, reason, None).await;
                    self.cluster_awaited(cluster);
                }
                ClusterState::Missing => match self.take_reserve() {
                    Some(pages) => {
                        self.mem(|mem| mem.cluster_add(cluster, pages, false));
                        self.submit_cluster_read(cluster);
                    }
                    None => self.machine().sleep(self.timeout(RETRY), reason).await,
                },
            }
        }
    }

    /// A task that waited for a cluster was woken.
    pub(crate) fn cluster_awaited(&self, cluster: ClusterId) {
        let cpu = self.machine().current_cpu();
        self.mem(|mem| mem.cluster_awaited(cpu, cluster));
    }

    /// Below the low mark kswapd is to free more; nobody else may be there to wake it.
    fn take_reserve(&self) -> Option<[Pfn; CLUSTER_PAGES]> {
        let cpu = self.machine().current_cpu();
        let mut pages = [None; CLUSTER_PAGES];
        let down_to = |flags| self.mem(|mem| mem.core.alloc.alloc(cpu, Gfp::NOFS, Order(0), flags).page);
        let take = |page: &mut Option<Pfn>| {
            *page = down_to(AllocFlags::WMARK_LOW).or_else(|| {
                self.wakeup_kswapds();
                down_to(AllocFlags::NO_WATERMARKS)
            });
            page.is_some()
        };
        let complete = pages.iter_mut().all(take);
        self.machine().charge(CostOp::PcpAlloc, CLUSTER_PAGES as u64);
        if complete {
            return Some(pages.map(|page| page.expect("all of them are there")));
        }
        self.mem(|mem| pages.into_iter().flatten().for_each(|pfn| mem.core.alloc.free(cpu, pfn, Order(0))));
        None
    }
}
