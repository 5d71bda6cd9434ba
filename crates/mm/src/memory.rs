//! The whole memory of a machine: one of each part, and the wires between them.
//!
//! A part's state is its own. Its steps borrow the parts below it; the methods here hand them over, so
//! that whoever drives the machine needs not know what stands on what. What a part has to say to one
//! above it, it returns. Reads for reports are in `readings.rs`.

use std_alloc::format;
use std_alloc::vec::Vec;

use units::{Bytes, CpuId, Nanos, NodeId, Order, Pfn, Seed};

use crate::alloc::boot::BootError;
use crate::alloc::flags::AllocFlags;
use crate::alloc::suitable::{self, Suitability};
use crate::base::event::Trace;
use crate::base::frame::PageFlags;
use crate::base::gfp::Gfp;
use crate::base::ids::{DentryId, MappingId, MemcgId};
use crate::base::layout::{MemoryLayout, ZoneId, ZoneKind};
use crate::base::sysctl::{Sysctl, Sysctls};
use crate::compact::state::{CompactRequest, CompactResult, CompactStep, Compaction, Compactor};
use crate::core::Core;
use crate::fs::dentry::Name;
use crate::fs::inode::InodeObjects;
use crate::fs::state::Fs;
use crate::fs::xfs::ail::{AilNext, AilPush};
use crate::fs::xfs::buf::{CLUSTER_PAGES, ClusterId, ClusterState};
use crate::fs::xfs::inode_reclaim::{InodeNext, InodeReclaim};
use crate::fs::xfs::log::{Change, Committed, Record};
use crate::lru::lists::{Lru, LruList};
use crate::lru::mglru::state::Kind;
use crate::lru::workingset::Shadow;
use crate::pages::anon::AnonMaps;
use crate::pages::cache::{PageCache, Prepared};
use crate::pages::dirty;
use crate::pages::pace::{Balance, DirtyDomains, DirtyLimits, Looking};
use crate::reclaim::mglru::tour::Tour;
use crate::reclaim::mglru::ttl;
use crate::reclaim::mglru::visit::Visit;
use crate::reclaim::pass;
use crate::reclaim::run::{ChunkReport, ScanControl};
use crate::reclaim::state::Reclaim;
use crate::slab::object::{Object, ObjectAlloc};
use crate::version::geometry::Cache;
use crate::version::presets::Version;
use crate::version::rules::{self, ObjectCharge, RemovedGroup, WriteAccess};

/// The memory of a machine and everything that the kernel knows about it.
#[derive(Debug, Clone)]
pub struct Memory<T: Trace> {
    /// The page allocator, the cgroup tree and slab caches.
    pub core: Core<T>,
    /// LRU lists and the batches in front of them.
    pub lru: Lru,
    /// Page cache trees, and which of their pages are dirty.
    pub cache: PageCache,
    /// Page tables of anonymous memory.
    pub anon: AnonMaps,
    /// What filesystems keep: dentries, inodes, metadata of XFS.
    pub fs: Fs,
    /// What reclaim remembers.
    pub reclaim: Reclaim,
    /// What compaction remembers.
    pub compactor: Compactor,
}

impl<T: Trace> Memory<T> {
    /// Boots a machine's memory: everything that boot does not keep is free.
    ///
    /// # Errors
    /// A layout that no kernel could run on.
    pub fn boot(
        layout: &MemoryLayout,
        version: Version,
        sysctls: Sysctls,
        trace: T,
    ) -> Result<Self, BootError> {
        let (nodes, cpus) = (layout.nodes.len(), usize::from(layout.cpus));
        let core = Core::boot(layout, version, sysctls, trace)?;
        let mut memory = Self {
            lru: Lru::new(nodes, cpus),
            cache: PageCache::new(nodes),
            anon: AnonMaps::default(),
            fs: Fs::new(nodes),
            reclaim: Reclaim::new(nodes),
            compactor: Compactor::new(core.alloc.zones()),
            core,
        };
        memory.lru.follow_rules(&mut memory.core);
        memory.draw_lots(Seed(0));
        Ok(memory)
    }

    /// From where chance comes that the kernel leaves things to: in which order global reclaim visits cgroups, where
    /// it goes by the memcg LRU. To be called once after boot.
    pub fn draw_lots(&mut self, seed: Seed) {
        self.reclaim.make_memcg_lrus(&self.core, |node| seed.stream(&format!("memcg-lru{}", node.0)));
    }

    /// Creates a cgroup.
    pub fn memcg_create(&mut self, parent: MemcgId, name: &str) -> MemcgId {
        let id = self.core.cgroups.create(parent, name);
        self.lru.add_cgroup();
        self.lru.begin_policies(&self.core);
        self.fs.vfs.add_cgroup();
        self.reclaim.add_cgroup();
        self.reclaim.add_to_memcg_lrus(id);
        id
    }

    /// Takes a cgroup without tasks and children offline. Its pages and objects stay its own until they go, or become
    /// its parent's ([`RemovedGroup`]). What its parent paid for it goes back where it has none.
    pub fn memcg_remove(&mut self, memcg: MemcgId) {
        self.core.cgroups.remove(memcg);
        self.reclaim.offline_in_memcg_lrus(memcg);
        let rules = self.core.rules();
        // Slabs that belong to a cgroup stay with it.
        let stays = rules.removed_group == RemovedGroup::Keeps || rules.object_charge == ObjectCharge::BySlab;
        if !stays && let Some(heir) = self.core.cgroups[memcg].parent {
            self.lru.tell_handed_over(&self.core, memcg, heir);
            self.lru.hand_over(&mut self.core, memcg, heir);
            self.core.cgroups.hand_over(memcg, heir);
            self.core.alloc.frames.hand_over(memcg.0, heir.0);
            self.cache.hand_over(memcg, heir);
            self.fs.vfs.hand_over(memcg, heir);
            self.reclaim.hand_over(memcg, heir);
        }
        self.core.cgroups.release_cost(memcg);
    }

    /// Sets a sysctl as root does at run time: [`crate::alloc::page_alloc::PageAllocator::set_sysctl`]. Pages move
    /// where it is the switch of the multi-gen LRU.
    ///
    /// # Panics
    /// When the value is out of the sysctl's range.
    pub fn set_sysctl(&mut self, sysctl: Sysctl, value: u64) {
        self.core.alloc.set_sysctl(sysctl, value);
        self.lru.follow_rules(&mut self.core);
    }

    /// Every node.
    pub fn nodes(&self) -> impl Iterator<Item = NodeId> + use<T> {
        self.core.nodes()
    }

    // ---- kernel objects ----

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

    /// Hands a block to a cache: [`Core::grow_slab`].
    pub fn grow_slab(&mut self, cpu: CpuId, cache: Cache, memcg: MemcgId, pfn: Pfn) {
        self.core.grow_slab(cpu, cache, memcg, pfn);
    }

    /// A new slab knows who pays for its objects: [`payers_of`](crate::slab::caches::Slabs::payers_of).
    pub fn keep_slab_payers(&mut self, cache: Cache, payers: Object) {
        self.core.slabs.keep_payers(cache, payers);
    }

    /// Frees what waited for a grace period that is over; returns how many objects those were.
    pub fn grace_period_ended(&mut self, cpu: CpuId) -> u64 {
        self.core.grace_period_ended(cpu)
    }

    /// Boot keeps so many pages in slabs of caches that are not modelled: unreclaimable, reclaimable.
    pub fn keep_slab(&mut self, pages: [u64; 2]) {
        self.core.slabs.keep(pages);
    }

    /// Pages of all slabs of reclaimable or of other caches, those that boot keeps included.
    pub fn slab_pages(&self, reclaimable: bool) -> u64 {
        self.core.slabs.pages(reclaimable)
    }

    /// The cgroup that `pfn` is charged to.
    pub fn page_memcg(&self, pfn: Pfn) -> MemcgId {
        self.core.page_memcg(pfn)
    }

    // ---- LRU lists ----

    /// The folios on one list of `memcg` on `node`, the newest first.
    pub fn lru_list(&self, memcg: MemcgId, node: NodeId, list: LruList) -> impl Iterator<Item = Pfn> + '_ {
        self.lru.lruvec(memcg, node).list(list).iter(&self.core.alloc.frames)
    }

    /// The folios on the lists of a generation of `memcg` on `node`, the newest of each zone first; none where there
    /// are no generations.
    pub fn generation(&self, memcg: MemcgId, node: NodeId, kind: Kind, seq: u64) -> Vec<Pfn> {
        let gens = self.lru.lruvec(memcg, node).gens();
        gens.map_or_else(Vec::new, |gens| gens.pages_listed(&self.core.alloc.frames, kind, seq))
    }

    /// The folios in the batch of `cpu` on their way to a list, the oldest first.
    pub fn add_batch(&self, cpu: CpuId) -> &[Pfn] {
        self.lru.add_batch(cpu)
    }

    /// Pages on `list`, of all cgroups and nodes.
    pub fn lru_pages(&self, list: LruList) -> u64 {
        self.lru.pages(list)
    }

    /// Reclaimable pages of one zone kind on a node: what `should_reclaim_retry` counts on. Anonymous ones are
    /// among them while any swap is free.
    pub fn zone_reclaimable_pages(&self, node: NodeId, kind: ZoneKind) -> u64 {
        let of = |list| self.lru.zone_pages(list, node, kind);
        let file = of(LruList::InactiveFile) + of(LruList::ActiveFile);
        if self.core.swap.free_pages() == 0 {
            return file;
        }
        file + of(LruList::InactiveAnon) + of(LruList::ActiveAnon)
    }

    /// Queues a new page for its list: [`Lru::add`].
    pub fn lru_add(&mut self, cpu: CpuId, pfn: Pfn) {
        self.lru.add(&mut self.core, cpu, pfn);
    }

    /// Empties the batches of one CPU onto the lists: [`Lru::drain`].
    pub fn lru_drain(&mut self, cpu: CpuId) {
        self.lru.drain(&mut self.core, cpu);
    }

    /// Empties the batches of all CPUs onto the lists.
    pub fn lru_drain_all(&mut self) {
        self.lru.drain_all(&mut self.core);
    }

    /// An access through `read`: [`Lru::mark_accessed`].
    pub fn mark_accessed(&mut self, cpu: CpuId, pfn: Pfn) {
        self.lru.mark_accessed(&mut self.core, cpu, pfn);
    }

    /// A buffered write: [`Lru::mark_written`].
    pub fn mark_written(&mut self, cpu: CpuId, pfn: Pfn) {
        self.lru.mark_written(&mut self.core, cpu, pfn);
    }

    /// `pfn`, allocated with `gfp`, is back and `shadow` lay in its slot: [`Lru::refault`]. Where a write is no access,
    /// what is about to be written over was not missed.
    pub fn refault(&mut self, pfn: Pfn, shadow: Shadow, gfp: Gfp) {
        if !gfp.has(Gfp::WRITE) || self.core.rules().write_access == WriteAccess::Access {
            self.lru.refault(&mut self.core, pfn, shadow);
        }
    }

    /// Remembers how many refaulted pages were activated so far: [`Lru::snapshot_refaults`].
    pub fn snapshot_refaults(&mut self, target: MemcgId, node: NodeId) {
        self.lru.snapshot_refaults(&self.core, target, node);
    }

    // ---- the page cache ----

    /// A new empty mapping.
    pub fn mapping_create(&mut self) -> MappingId {
        self.cache.create()
    }

    /// Makes the tree nodes that an insertion needs: [`PageCache::prepare_insert`].
    pub fn prepare_insert(
        &mut self,
        cpu: CpuId,
        mapping: MappingId,
        index: u32,
        pages: u32,
        memcg: MemcgId,
    ) -> Prepared {
        self.cache.prepare_insert(&mut self.core, cpu, mapping, index, pages, memcg)
    }

    /// Adds a page or folio to the page cache: [`PageCache::insert_page`].
    pub fn insert_page(
        &mut self,
        mapping: MappingId,
        index: u32,
        pfn: Pfn,
        memcg: MemcgId,
    ) -> Option<Shadow> {
        self.cache.insert_page(&mut self.core, mapping, index, pfn, memcg)
    }

    /// Frees all that a file has in memory: every page, dirty or not, its tree and its inode, which is released.
    /// Truncation on unlink.
    pub fn mapping_remove(&mut self, cpu: CpuId, mapping: MappingId) {
        self.cache.truncate(&mut self.core, &mut self.lru, cpu, mapping);
        if !self.fs.vfs.forget(&mut self.core, cpu, mapping) {
            self.cache.release(mapping);
        }
    }

    /// Takes the next mapping whose inode left memory; its number is used again from here on.
    pub fn take_released(&mut self) -> Option<MappingId> {
        let mapping = self.fs.vfs.take_released()?;
        self.cache.release(mapping);
        Some(mapping)
    }

    /// Frees the pages of a file that nothing needs: [`PageCache::invalidate`].
    pub fn mapping_invalidate(&mut self, cpu: CpuId, mapping: MappingId, clean_only: bool) -> u64 {
        let freed = self.cache.invalidate(&mut self.core, &mut self.lru, cpu, mapping, clean_only);
        self.fs.list_emptied(&self.core, &mut self.cache);
        freed
    }

    /// The thresholds of dirty pages now.
    pub fn dirty_limits(&self) -> DirtyLimits {
        self.cache.dirty_limits(&self.core, &self.lru)
    }

    /// Somebody wrote before the run: the pace of writers goes by the thresholds of now.
    pub fn begin_pace(&mut self) {
        let limits = self.dirty_limits();
        self.cache.pace.begin(&limits);
    }

    /// The thresholds that whoever writes for a cgroup keeps to: [`PageCache::dirty_domains`].
    pub fn dirty_domains(&mut self, memcg: MemcgId) -> DirtyDomains {
        self.core.cgroups.flush_for_writer(memcg);
        self.cache.dirty_domains(&self.core, &self.lru, memcg)
    }

    /// [`PageCache::dirty_of`]
    pub fn dirty_of(&self, memcg: MemcgId) -> u64 {
        self.cache.dirty_of(&self.core, memcg)
    }

    /// Notes which nodes hold more than their share of dirty pages: to be called before a page is
    /// allocated that will be dirtied.
    pub fn note_dirty_full_nodes(&mut self) {
        self.cache.note_dirty_full_nodes(&mut self.core, &self.lru);
    }

    /// A writer looks, and is told what to do: [`PageCache::balance_dirty_pages`].
    pub fn balance_dirty_pages(&mut self, domains: &DirtyDomains, now: Nanos, looking: Looking) -> Balance {
        self.cache.balance_dirty_pages(&self.core, domains, now, looking)
    }

    /// Marks a page of the cache dirty; false if it was already.
    pub fn set_dirty(&mut self, pfn: Pfn) -> bool {
        self.cache.set_dirty(&mut self.core, pfn)
    }

    /// Starts writeback of a run of dirty pages: [`PageCache::start_writeback`].
    pub fn start_writeback(&mut self, mapping: MappingId, from: u32, max: u32) -> Option<(u32, u32)> {
        self.cache.start_writeback(&mut self.core, mapping, from, max)
    }

    /// A reclaimer writes one page: [`PageCache::start_pageout`].
    pub fn start_pageout(&mut self, mapping: MappingId, index: u32) -> Option<(u32, u32)> {
        self.cache.start_pageout(&mut self.core, mapping, index)
    }

    /// A reclaimer wanted a page written, and its filesystem would not: it is marked no longer (`pageout`).
    pub fn refuse_pageout(&mut self, pfn: Pfn) {
        self.core.alloc.frames.clear_flags(pfn, PageFlags::RECLAIM);
    }

    /// Pages are written: [`PageCache::end_writeback`].
    pub fn end_writeback(
        &mut self,
        mapping: MappingId,
        first: u32,
        count: u32,
        written: &mut Vec<(NodeId, MemcgId, u64)>,
    ) {
        self.cache.end_writeback(&mut self.core, &mut self.lru, mapping, first, count, written);
    }

    /// [`dirty::attach_buffers`]
    #[must_use]
    pub fn attach_buffers(&mut self, pfn: Pfn, buffers: &[Object]) -> bool {
        dirty::attach_buffers(&mut self.core, pfn, buffers)
    }

    // ---- filesystems ----

    /// Puts the objects of an inode into memory.
    pub fn attach_inode(&mut self, mapping: MappingId, objects: InodeObjects) {
        if objects.inode.cache == Cache::XfsInode {
            self.fs.xfs_log.register(mapping, objects.number);
        }
        self.fs.vfs.attach_inode(mapping, objects);
    }

    /// An evicted inode of XFS that is still in memory is in use again; false when there is none.
    pub fn recycle_inode(&mut self, mapping: MappingId) -> bool {
        self.fs.vfs.recycle(mapping)
    }

    /// A task that found an inode without a dentry has no use for it.
    pub fn put_inode(&mut self, mapping: MappingId) {
        self.fs.vfs.put_inode(&self.core, &self.cache, mapping);
    }

    /// Adds a dentry that was looked up, with one user: [`crate::fs::inode::Vfs::add_dentry`].
    pub fn add_dentry(
        &mut self,
        directory: DentryId,
        name: Name,
        object: Object,
        inode: Option<MappingId>,
    ) -> DentryId {
        self.fs.vfs.add_dentry(directory, name, object, inode)
    }

    /// A file is created under the name of a negative dentry: [`crate::fs::inode::Vfs::bind_dentry`].
    pub fn bind_dentry(&mut self, dentry: DentryId, inode: MappingId) {
        self.fs.vfs.bind_dentry(dentry, inode);
    }

    /// A dentry has one user more.
    pub fn hold_dentry(&mut self, dentry: DentryId) {
        self.fs.vfs.hold_dentry(dentry);
    }

    /// A dentry has one user less: without any it goes on its LRU.
    pub fn put_dentry(&mut self, cpu: CpuId, dentry: DentryId) {
        self.fs.vfs.put_dentry(&mut self.core, &self.cache, cpu, dentry);
    }

    /// The name of a dentry, which its caller holds, was removed (`d_delete`).
    pub fn delete_dentry(&mut self, dentry: DentryId) {
        self.fs.vfs.delete_dentry(dentry);
    }

    /// Lets a name be looked up anew that was known not to exist.
    pub fn forget_negative(&mut self, directory: DentryId, name: Name) {
        self.fs.vfs.forget_negative(directory, name);
    }

    /// Frees the negative dentries of a directory, which its caller holds; returns how many there were.
    pub fn free_negative_below(&mut self, cpu: CpuId, directory: DentryId) -> u64 {
        self.fs.vfs.free_negative_below(&mut self.core, &self.cache, cpu, directory)
    }

    /// The inode is to be written, or was: its pages do not matter here.
    pub fn set_inode_dirty(&mut self, mapping: MappingId, dirty: bool) {
        self.fs.vfs.set_inode_dirty(&self.core, &self.cache, mapping, dirty);
    }

    /// Looks a cluster of XFS inodes up in order to use it.
    pub fn cluster_use(&mut self, cluster: ClusterId) -> ClusterState {
        self.fs.xfs_buffers.touch(cluster)
    }

    /// Makes these pages in use the buffer of a cluster; `valid`: there is nothing to be read.
    pub fn cluster_add(&mut self, cluster: ClusterId, pages: [Pfn; CLUSTER_PAGES], valid: bool) {
        self.fs.xfs_buffers.add(&self.core, cluster, pages, valid);
    }

    /// A cluster that was being read is valid.
    pub fn cluster_read_done(&mut self, cluster: ClusterId) {
        self.fs.xfs_buffers.read_done(cluster);
    }

    /// The log of XFS has this size from now on.
    pub fn set_xfs_log_size(&mut self, size: Bytes) {
        self.fs.set_xfs_log_size(size);
    }

    /// An inode of XFS changes: [`Fs::log_change`].
    ///
    /// # Errors
    /// The buffer of this cluster has to be in memory first.
    pub fn log_change(
        &mut self,
        cpu: CpuId,
        mapping: MappingId,
        change: Change,
        vector: Option<Object>,
    ) -> Result<(), ClusterId> {
        self.fs.log_change(&mut self.core, cpu, mapping, change, vector)
    }

    /// The open checkpoint of XFS takes an intent to free extents.
    pub fn log_intent(&mut self, intent: Object) {
        self.fs.xfs_log.add_intent(intent);
    }

    /// Reserves space in the log of XFS for a change; false when there is too little.
    #[must_use]
    pub fn log_reserve(&mut self) -> bool {
        self.fs.xfs_log.reserve()
    }

    /// Gives reserved space back: the change was made.
    pub fn log_unreserve(&mut self) {
        self.fs.xfs_log.unreserve();
    }

    /// If little of the log is free, its tail is to be pushed; whether that is news.
    pub fn log_push_tail(&mut self) -> bool {
        self.fs.xfs_log.push_tail()
    }

    /// All that the log keeps from moving on is to be pushed; whether that is news.
    pub fn log_push_all(&mut self) -> bool {
        self.fs.xfs_log.push_all()
    }

    /// Closes the open checkpoint in order to write it; false when nothing has changed.
    pub fn log_close(&mut self) -> bool {
        self.fs.xfs_log.close()
    }

    /// The next record of the log to be written.
    pub fn log_next_record(&mut self, forced: bool) -> Option<Record> {
        self.fs.xfs_log.next_record(forced)
    }

    /// A record of the log is on the disk.
    pub fn log_record_written(&mut self, number: u64) {
        self.fs.xfs_log.record_written(number);
    }

    /// Unpins up to `count` inodes of a checkpoint that is on the disk; none if there is no such.
    pub fn log_commit(&mut self, cpu: CpuId, count: usize) -> Option<Committed> {
        self.fs.commit_checkpoint(&mut self.core, cpu, count)
    }

    /// What the thread that pushes the AIL does next.
    pub fn ail_step(&mut self, push: &mut AilPush) -> AilNext {
        push.step(&mut self.fs.xfs_log, &mut self.fs.xfs_buffers)
    }

    /// What a pass over evicted inodes of XFS does next.
    pub fn inode_reclaim_step(&mut self, pass: &mut InodeReclaim, cpu: CpuId) -> InodeNext {
        pass.step(&mut self.fs, &mut self.core, cpu)
    }

    /// The buffer of a cluster is on the disk; how many of its inodes are clean now.
    pub fn cluster_written(&mut self, cpu: CpuId, cluster: ClusterId) -> u32 {
        self.fs.cluster_written(&mut self.core, cpu, cluster)
    }

    // ---- reclaim ----

    /// Starts a pass over `node`: [`Reclaim::begin_tour`].
    pub fn begin_pass(&mut self, node: NodeId, sc: &mut ScanControl) -> Tour {
        self.reclaim.begin_tour(&mut self.core, &mut self.lru, &mut self.cache, &mut self.anon, node, sc)
    }

    /// Whether kswapd finds that no generation lasts as long as it should: [`ttl::all_too_young`].
    pub fn all_too_young(&self, node: NodeId, sc: &ScanControl, now: Nanos) -> bool {
        ttl::all_too_young(&self.core, &self.lru, node, sc, now)
    }

    /// The next cgroup of a pass: [`Reclaim::next_visit`].
    pub fn next_memcg(
        &mut self,
        tour: &mut Tour,
        visited: Option<MemcgId>,
        sc: &mut ScanControl,
    ) -> Option<MemcgId> {
        self.reclaim.next_visit(&mut self.core, &self.lru, tour, visited, sc)
    }

    /// Starts on one cgroup: [`Reclaim::begin_visit`].
    pub fn begin_lruvec(&mut self, memcg: MemcgId, node: NodeId, sc: &mut ScanControl) -> Option<Visit> {
        self.reclaim.begin_visit(&mut self.core, &mut self.lru, memcg, node, sc)
    }

    /// The cgroups of which kswapd deactivates anonymous pages before a pass: [`Reclaim::anon_to_age`]; none where
    /// there are generations.
    pub fn anon_to_age(&self, node: NodeId, sc: &ScanControl) -> Vec<MemcgId> {
        match self.core.rules().lru {
            rules::LruKind::Generations => Vec::new(),
            _ => self.reclaim.anon_to_age(&self.core, &self.lru, node, sc),
        }
    }

    /// Deactivates a chunk of anonymous pages of `memcg`: [`Reclaim::age_anon`].
    pub fn age_anon(&mut self, cpu: CpuId, memcg: MemcgId, node: NodeId, sc: &ScanControl) -> ChunkReport {
        self.reclaim.age_anon(&mut self.core, &mut self.lru, &mut self.cache, cpu, memcg, node, sc)
    }

    /// Goes on with a visit by a chunk of the lists or a batch of a generation: [`Reclaim::shrink_chunk`],
    /// [`Reclaim::shrink_batch`].
    pub fn shrink_chunk(
        &mut self,
        cpu: CpuId,
        visit: &mut Visit,
        sc: &mut ScanControl,
    ) -> Option<ChunkReport> {
        let freed = self.core.slabs.pages_freed();
        let Self { core, lru, cache, anon, fs, reclaim, .. } = self;
        let report = match visit {
            Visit::TwoLists(scan) => reclaim.shrink_chunk(core, lru, cache, anon, cpu, scan, sc),
            Visit::Generations(visit) => reclaim.shrink_batch(core, lru, cache, anon, cpu, visit, sc),
        };
        fs.list_emptied(core, cache);
        sc.reclaimed_slab += core.slabs.pages_freed() - freed;
        report
    }

    /// Dirty pages that kswapd wants written one by one; the list is handed over.
    pub fn take_pageout(&mut self) -> Vec<Pfn> {
        self.reclaim.take_pageout()
    }

    // ---- compaction ----

    /// Whether compaction of `zone` makes sense if `free` pages were free: [`suitable::suitable_with`].
    pub fn compaction_suitable_with(
        &self,
        zone: ZoneId,
        order: Order,
        flags: AllocFlags,
        highest_zoneidx: ZoneKind,
        free: u64,
    ) -> Suitability {
        suitable::suitable_with(&self.core.alloc, zone, order, flags, highest_zoneidx, free)
    }

    /// Whether compaction of `zone` makes sense now.
    pub fn compaction_suitable(
        &self,
        zone: ZoneId,
        order: Order,
        flags: AllocFlags,
        highest_zoneidx: ZoneKind,
    ) -> Suitability {
        suitable::suitable(&self.core.alloc, zone, order, flags, highest_zoneidx)
    }

    /// Whether direct reclaim need not free more of `zone`: [`suitable::is_ready`].
    pub fn compaction_ready(&self, zone: ZoneId, order: Order, highest_zoneidx: ZoneKind) -> bool {
        let compacts = self.core.rules().compaction == rules::Compaction::On;
        compacts && suitable::is_ready(&self.core.alloc, zone, order, highest_zoneidx)
    }

    /// Whether another pass at the same priority is due: [`pass::should_continue`].
    pub fn should_continue_reclaim(&self, node: NodeId, sc: &ScanControl, freed: u64) -> bool {
        let rules = self.core.rules();
        let by_generations = rules.lru == rules::LruKind::Generations;
        // A pass over the memcg LRU is the only one of its priority.
        let once = by_generations && rules.gen_walk == rules::GenWalk::Bins && sc.is_global();
        !once && pass::should_continue(&self.core, &self.lru, node, sc, freed)
    }

    /// Asks whether compaction of `zone` is put off; counts the question.
    pub fn compaction_deferred(&mut self, zone: ZoneId, order: Order) -> bool {
        self.compactor.is_deferred(zone, order)
    }

    /// Puts compaction of `zone` off for some requests: it failed.
    pub fn defer_compaction(&mut self, zone: ZoneId, order: Order) {
        self.compactor.defer(zone, order);
    }

    /// Compaction of `zone` made a block of `order`; `allocated`: the request got one.
    pub fn compaction_succeeded(&mut self, zone: ZoneId, order: Order, allocated: bool) {
        self.compactor.succeeded(zone, order, allocated);
    }

    /// kswapd goes to sleep: [`Compactor::reset_skip_bits`].
    pub fn reset_skip_bits(&mut self, zone: ZoneId) {
        self.compactor.reset_skip_bits(zone);
    }

    /// Starts a run on a zone.
    ///
    /// # Errors
    /// The result, where no run is needed or makes sense.
    pub fn begin_compact(
        &mut self,
        cpu: CpuId,
        zone: ZoneId,
        request: CompactRequest,
    ) -> Result<Compaction, CompactResult> {
        self.compactor.begin(&mut self.core, &mut self.lru, cpu, zone, request)
    }

    /// Goes on with a run by up to 32 pages of one pageblock.
    pub fn compact_step(&mut self, cpu: CpuId, run: &mut Compaction) -> CompactStep {
        let Self { core, lru, cache, anon, compactor, .. } = self;
        compactor.step(core, lru, cache, anon, cpu, run)
    }

    /// Ends a run: targets that were not needed are free again.
    pub fn end_compact(&mut self, cpu: CpuId, run: Compaction) {
        self.compactor.end(&mut self.core, cpu, run);
    }
}
