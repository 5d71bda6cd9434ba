//! The whole memory of a machine: the page allocator with cgroups, LRU lists and page cache trees
//! on top of it.
//!
//! All state is here, all steps are `&mut self` methods spread over the modules by concept. Reads
//! for reports ([`Memory::vmstat`], [`Memory::memcg_stat`]) give the kernel's names and units.

use std_alloc::vec;
use std_alloc::vec::Vec;

use units::{CpuId, NodeId, Order, Pfn};

use crate::alloc::boot::BootError;
use crate::base::event::Trace;
use crate::base::gfp::Gfp;
use crate::base::ids::MemcgId;
use crate::base::layout::{MemoryLayout, ZoneKind};
use crate::base::sysctl::Sysctls;
use crate::base::vmstat::{MemcgStat, VmEvent};
use crate::cgroup::walk::WalkPositions;
use crate::compact::run::ZoneCompact;
use crate::core::Core;
use crate::fs::inode::Inodes;
use crate::fs::xfs::buf::XfsBuffers;
use crate::fs::xfs::log::XfsLog;
use crate::lru::lists::{CpuBatches, LruList, Lruvec};
use crate::pages::anon::AnonMaps;
use crate::pages::cache::NodeScratch;
use crate::pages::dirty::Writeback;
use crate::pages::tree::Mappings;
use crate::reclaim::pass::NodeReclaim;
use crate::reclaim::shrinker::Deferred;
use crate::slab::object::{Object, ObjectAlloc};
use crate::version::feature::Kernel;
use crate::version::geometry::Cache;

/// The memory of a machine and everything that the kernel knows about it.
#[derive(Debug, Clone)]
pub struct Memory<T: Trace> {
    /// The page allocator, the cgroup tree and slab caches.
    pub core: Core<T>,
    /// Page cache trees.
    pub mappings: Mappings,
    /// Page tables of anonymous memory.
    pub anon: AnonMaps,
    /// What each zone remembers between compaction runs (index [`crate::base::layout::ZoneId`]).
    pub compact: Vec<ZoneCompact>,
    /// Buffers of XFS metadata.
    pub xfs_buffers: XfsBuffers,
    /// Log vectors of XFS.
    pub xfs_log: XfsLog,
    /// What each node remembers between reclaim runs.
    pub node_reclaim: Vec<NodeReclaim>,
    pub(crate) lruvecs: Vec<Lruvec>,
    pub(crate) cpus: Vec<CpuBatches>,
    /// Dentries and inodes in memory.
    pub inodes: Inodes,
    /// Dirty pages and pages under writeback, and how fast they may grow.
    pub writeback: Writeback,
    pub(crate) deferred: Vec<Deferred>,
    pub(crate) walk_positions: WalkPositions,
    // Scratch lists, empty between steps.
    pub(crate) isolated: Vec<Pfn>,
    pub(crate) skipped: Vec<Pfn>,
    pub(crate) node_scratch: NodeScratch,
    /// Dirty pages that kswapd wants written one by one: see [`Memory::take_pageout`].
    pub(crate) pageout: Vec<Pfn>,
}

impl<T: Trace> Memory<T> {
    /// Boots a machine's memory: everything that boot does not keep is free.
    ///
    /// # Errors
    /// A layout that no kernel could run on.
    pub fn boot(
        layout: &MemoryLayout,
        kernel: Kernel,
        sysctls: Sysctls,
        trace: T,
    ) -> Result<Self, BootError> {
        let cpus = usize::from(layout.cpus);
        let nodes = layout.nodes.len();
        let core = Core::boot(layout, kernel, sysctls, trace)?;
        Ok(Self {
            compact: core.alloc.zones().iter().map(ZoneCompact::new).collect(),
            core,
            mappings: Mappings::default(),
            anon: AnonMaps::default(),
            xfs_buffers: XfsBuffers::new(nodes),
            xfs_log: XfsLog::default(),
            node_reclaim: vec![NodeReclaim::default(); nodes],
            lruvecs: vec![Lruvec::default(); nodes],
            cpus: vec![CpuBatches::default(); cpus],
            inodes: Inodes::new(nodes),
            writeback: Writeback::new(nodes),
            deferred: vec![Deferred::default(); nodes],
            walk_positions: WalkPositions::default(),
            isolated: Vec::new(),
            skipped: Vec::new(),
            node_scratch: Vec::new(),
            pageout: Vec::new(),
        })
    }

    /// Creates a cgroup.
    pub fn memcg_create(&mut self, parent: MemcgId, name: &str) -> MemcgId {
        let id = self.core.cgroups.create(parent, name);
        for _ in 0..self.core.alloc.nodes().len() {
            self.lruvecs.push(Lruvec::default());
            self.deferred.push(Deferred::default());
        }
        self.inodes.add_lists();
        id
    }

    /// Every node.
    pub fn nodes(&self) -> impl Iterator<Item = NodeId> + use<T> {
        self.core.nodes()
    }

    /// Tries to allocate an object for a task of `memcg`.
    pub fn alloc_object(&mut self, cpu: CpuId, cache: Cache, memcg: MemcgId) -> ObjectAlloc {
        self.core.alloc_object(cpu, cache, memcg)
    }

    /// Frees an object; returns the pages that came free with it.
    pub fn free_object(&mut self, cpu: CpuId, object: Object) -> u64 {
        self.core.free_object(cpu, object)
    }

    /// The order that a slab of `cache` is first tried with, and what is added to the request's
    /// flags.
    pub fn slab_request(&self, cache: Cache) -> (Order, Gfp) {
        self.core.slabs.request(cache)
    }

    /// Hands a block to a cache.
    pub fn grow_slab(&mut self, cache: Cache, pfn: Pfn) {
        self.core.grow_slab(cache, pfn);
    }

    /// Pages of all slabs of reclaimable or of other caches.
    pub fn slab_pages(&self, reclaimable: bool) -> u64 {
        self.core.slabs.pages(reclaimable)
    }

    /// The cgroup that `pfn` is charged to.
    #[inline]
    pub fn page_memcg(&self, pfn: Pfn) -> MemcgId {
        self.core.page_memcg(pfn)
    }

    /// Pages on `list`, of all cgroups and nodes.
    pub fn lru_pages(&self, list: LruList) -> u64 {
        self.lruvecs.iter().map(|lruvec| lruvec.size(list, ZoneKind::Movable)).sum()
    }

    /// Reclaimable file pages of one zone kind on a node: what `should_reclaim_retry` counts on.
    pub fn zone_reclaimable_pages(&self, node: NodeId, kind: ZoneKind) -> u64 {
        self.lruvecs
            .iter()
            .skip(node.index())
            .step_by(self.core.alloc.nodes().len())
            .map(|lruvec| {
                lruvec.pages[LruList::InactiveFile as usize][kind as usize]
                    + lruvec.pages[LruList::ActiveFile as usize][kind as usize]
            })
            .sum()
    }

    /// Inactive file pages of a node, of all cgroups.
    pub(crate) fn node_inactive_file_pages(&self, node: NodeId) -> u64 {
        let lruvecs = self.lruvecs.iter().skip(node.index()).step_by(self.core.alloc.nodes().len());
        lruvecs.map(|lruvec| lruvec.size(LruList::InactiveFile, ZoneKind::Movable)).sum()
    }

    /// Gauges of `/proc/vmstat` in pages, under the kernel's names.
    pub fn gauges(&self) -> [(&'static str, u64); 19] {
        let lru = |list| self.lru_pages(list);
        let limits = self.dirty_limits();
        let anon: u64 =
            self.nodes().map(|node| self.core.cgroups.live_stat(MemcgId::ROOT, node, MemcgStat::Anon)).sum();
        [
            ("nr_free_pages", self.core.alloc.free_pages().0),
            ("nr_inactive_anon", lru(LruList::InactiveAnon)),
            ("nr_active_anon", lru(LruList::ActiveAnon)),
            ("nr_inactive_file", lru(LruList::InactiveFile)),
            ("nr_active_file", lru(LruList::ActiveFile)),
            ("nr_unevictable", lru(LruList::Unevictable)),
            ("nr_mlock", lru(LruList::Unevictable)),
            ("nr_anon_pages", anon),
            ("nr_file_pages", self.mappings.total_pages()),
            ("nr_slab_reclaimable", self.slab_pages(true)),
            ("nr_slab_unreclaimable", self.slab_pages(false)),
            ("nr_dirty", self.writeback.dirty()),
            ("nr_writeback", self.writeback.under_writeback()),
            ("nr_dirty_threshold", limits.threshold),
            ("nr_dirty_background_threshold", limits.background),
            ("workingset_nodes", self.mappings.shadow_leaves()),
            ("nr_page_cache_tree_nodes", self.core.slabs.cache(Cache::TreeNode).objects()),
            ("nr_dentries", self.core.slabs.cache(Cache::Dentry).objects()),
            ("nr_inodes", self.inodes.count()),
        ]
    }

    /// `/proc/vmstat`: gauges, then event counts.
    pub fn vmstat(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        let events = VmEvent::ALL.iter().map(|&event| (event.name(), self.core.alloc.events.get(event)));
        let huge = ("nr_anon_transparent_hugepages", self.anon.huge_pages());
        self.gauges().into_iter().chain([huge]).chain(events)
    }

    /// `memory.stat` of a cgroup in the file's own units: sizes in bytes, events in pages. Flushes
    /// first, as the kernel does for a reader.
    pub fn memcg_stat(&mut self, memcg: MemcgId) -> Vec<(&'static str, u64)> {
        self.core.cgroups.flush_for_read(memcg);
        self.memcg_stat_as_flushed(memcg)
    }

    /// The same as the last flush left it.
    pub fn memcg_stat_as_flushed(&self, memcg: MemcgId) -> Vec<(&'static str, u64)> {
        let is_size = |stat: MemcgStat| (stat as u8) <= (MemcgStat::Unevictable as u8);
        let in_bytes = |stat| matches!(stat, MemcgStat::FileDirty | MemcgStat::FileWriteback);
        let mut lines: Vec<(&'static str, u64)> = MemcgStat::ALL
            .iter()
            .map(|&stat| {
                let value = self.core.cgroups.read_stat(memcg, stat);
                let scale = if is_size(stat) || in_bytes(stat) { units::PAGE_SIZE } else { 1 };
                (stat.name(), value * scale)
            })
            .collect();
        let read = |stat| self.core.cgroups.read_stat(memcg, stat);
        lines.push(("pgscan", read(MemcgStat::PgScanKswapd) + read(MemcgStat::PgScanDirect)));
        lines.push(("pgsteal", read(MemcgStat::PgStealKswapd) + read(MemcgStat::PgStealDirect)));
        let slab = read(MemcgStat::SlabReclaimableBytes) + read(MemcgStat::SlabUnreclaimableBytes);
        lines.push(("slab", slab));
        lines
    }
}
