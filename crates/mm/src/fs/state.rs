//! What filesystems keep in memory.
//!
//! Neighbours: [`crate::fs::inode`], [`crate::fs::ext4`], [`crate::fs::xfs`].

use std_alloc::vec::Vec;

use units::{Bytes, CpuId};

use crate::base::event::Trace;
use crate::base::ids::MappingId;
use crate::core::Core;
use crate::fs::ext4::journal::Journal;
use crate::fs::inode::Vfs;
use crate::fs::xfs::buf::{ClusterId, ClusterState, XfsBuffers};
use crate::fs::xfs::log::{Change, Committed, XfsLog};
use crate::pages::cache::PageCache;
use crate::slab::object::Object;
use crate::version::geometry::Cache;
use crate::version::rules::InodeCluster;

/// Dentries, inodes, and what filesystems have beside them.
#[derive(Debug, Clone)]
pub struct Fs {
    /// Dentries and inodes.
    pub vfs: Vfs,
    /// Buffers of XFS metadata.
    pub xfs_buffers: XfsBuffers,
    /// The log of XFS.
    pub xfs_log: XfsLog,
    /// Journals of ext4, by disk.
    pub journals: Vec<Journal>,
    /// Bios that are in the making or on their way, and their vectors.
    bios: [u64; 2],
}

impl Fs {
    /// Nothing yet, on a machine of so many nodes.
    pub fn new(nodes: usize) -> Self {
        Self {
            vfs: Vfs::new(nodes),
            xfs_buffers: XfsBuffers::new(nodes),
            xfs_log: XfsLog::default(),
            journals: Vec::new(),
            bios: [0; 2],
        }
    }

    /// Bios that are in the making or on their way, and their vectors.
    pub fn bios(&self) -> [u64; 2] {
        self.bios
    }

    /// There is one more, a bio or a vector.
    pub fn bio_made(&mut self, object: Object) {
        self.bios[usize::from(object.cache == Cache::BioVec)] += 1;
    }

    /// One is about to be freed.
    pub fn bio_done(&mut self, object: Object) {
        self.bios[usize::from(object.cache == Cache::BioVec)] -= 1;
    }

    /// Tells the inodes whose last page went in this step: from 5.16 on they may go on their LRU now
    /// (MECHANISMS-6X 7.4).
    pub(crate) fn list_emptied<T: Trace>(&mut self, core: &Core<T>, cache: &mut PageCache) {
        while let Some(mapping) = cache.take_emptied() {
            self.vfs.lost_pages(core, cache, mapping);
        }
    }

    /// Frees an inode of XFS that is evicted and clean.
    pub(crate) fn free_evicted<T: Trace>(&mut self, core: &mut Core<T>, cpu: CpuId, mapping: MappingId) {
        if let Some(spare) = self.xfs_log.unregister(mapping) {
            core.free_object(cpu, spare);
        }
        self.vfs.free_evicted(core, cpu, mapping);
    }

    /// Frees every inode of XFS that is evicted and clean; how many.
    pub(crate) fn free_clean_evicted<T: Trace>(&mut self, core: &mut Core<T>, cpu: CpuId) -> u64 {
        let evicted = self.vfs.reclaimable.all().map(|(_, mapping)| mapping);
        let clean: Vec<MappingId> =
            evicted.filter(|&mapping| self.xfs_log.items().is_clean(mapping)).collect();
        for &mapping in &clean {
            self.free_evicted(core, cpu, mapping);
        }
        clean.len() as u64
    }

    /// An inode of XFS changes, with a vector if it wants one ([`XfsLog::wants_vector`]). Since 5.9 the first
    /// inode of a cluster that is not clean holds the buffer of it.
    ///
    /// # Errors
    /// That buffer has to be in memory first; nothing has changed.
    pub(crate) fn log_change<T: Trace>(
        &mut self,
        core: &mut Core<T>,
        cpu: CpuId,
        mapping: MappingId,
        change: Change,
        vector: Option<Object>,
    ) -> Result<(), ClusterId> {
        let cluster = self.xfs_log.items().cluster(mapping);
        let pins = core.rules().inode_cluster == InodeCluster::Pinned
            && self.xfs_log.items().is_cluster_clean(cluster);
        if pins {
            match self.xfs_buffers.touch(cluster) {
                ClusterState::Missing | ClusterState::Reading => return Err(cluster),
                ClusterState::Writing | ClusterState::Ready => self.xfs_buffers.hold(cluster),
            }
        }
        if let Some(unused) = self.xfs_log.change(mapping, change, vector) {
            core.free_object(cpu, unused);
        }
        Ok(())
    }

    /// Unpins inodes of a checkpoint that is on the disk: [`XfsLog::commit`].
    pub(crate) fn commit_checkpoint<T: Trace>(
        &mut self,
        core: &mut Core<T>,
        cpu: CpuId,
        count: usize,
    ) -> Option<Committed> {
        let mut clean = Vec::new();
        let committed = self.xfs_log.commit(core, cpu, count, &mut clean);
        for cluster in clean {
            self.let_cluster_go(core, cpu, cluster);
        }
        committed
    }

    /// The buffer of a cluster is on the disk; how many of its inodes are clean now.
    pub(crate) fn cluster_written<T: Trace>(
        &mut self,
        core: &mut Core<T>,
        cpu: CpuId,
        cluster: ClusterId,
    ) -> u32 {
        let (cleaned, all) = self.xfs_log.flushed(cluster);
        if all {
            self.let_cluster_go(core, cpu, cluster);
        }
        self.xfs_buffers.end_write(core, cpu, cluster);
        cleaned
    }

    /// No inode of a cluster holds its buffer any more.
    fn let_cluster_go<T: Trace>(&mut self, core: &mut Core<T>, cpu: CpuId, cluster: ClusterId) {
        if core.rules().inode_cluster == InodeCluster::Pinned {
            self.xfs_buffers.release(core, cpu, cluster);
        }
    }

    /// The log of XFS has this size.
    pub(crate) fn set_xfs_log_size(&mut self, size: Bytes) {
        self.xfs_log.set_size(size);
    }

    /// What is wrong with XFS, if anything is: with its log, its buffers, or its evicted inodes.
    pub(crate) fn check_xfs(&self, inode_cluster: InodeCluster) -> Result<(), &'static str> {
        self.xfs_log.check()?;
        let items = self.xfs_log.items();
        let pins = inode_cluster == InodeCluster::Pinned;
        self.xfs_buffers.check(|cluster| u8::from(pins && !items.is_cluster_clean(cluster)))?;
        if items.flushing_clusters().any(|cluster| !self.xfs_buffers.is_writing(cluster)) {
            return Err("an inode is being flushed into a buffer that nobody writes");
        }
        if self.vfs.reclaimable.all().any(|(_, mapping)| !items.is_known(mapping)) {
            return Err("an evicted inode is not known to the log");
        }
        Ok(())
    }
}
