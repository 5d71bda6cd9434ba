//! Shrinkers: who can free kernel objects, and how much each is asked to look at (MECHANISMS 9.2,
//! 9.3, MECHANISMS-6X 7.2, 7.3).
//!
//! A reclaim pass visits every shrinker of a cgroup on a node after the cgroup's LRU lists; where slab is
//! pressed by scan, it visits all of the machine after its lists ([`SlabPressure`]). Each
//! visit is a [`SlabScan`]: a [`ShrinkPlan`] that is worked off in batches, one step each.
//!
//! Left out: what [`crate::reclaim::plan`] says; that objects were not kept by node and cgroup up to 3.11
//! (each of their lists is pressed alike), and that dentries and inodes had shrinkers of their own.
//! Neighbours: that for the plan, [`crate::fs::inode`] and [`crate::pages::shadow`] for what is freed.

use std_alloc::vec::Vec;

use units::{CpuId, NodeId};

use crate::base::event::Trace;
use crate::base::ids::MemcgId;
use crate::base::layout::ZoneKind;
use crate::base::sysctl::Sysctl;
use crate::base::vmstat::{MemcgStat, VmEvent};
use crate::core::Core;
use crate::fs::inode::VfsLru;
use crate::fs::state::Fs;
use crate::lru::lists::{Lru, LruList};
use crate::pages::cache::PageCache;
use crate::reclaim::plan::{ShrinkPlan, Shrinker, owed_in_vain};
use crate::reclaim::run::{Reclaimer, SWAP_CLUSTER_MAX, ScanControl, ScannedPart};
use crate::reclaim::state::Reclaim;
use crate::version::rules::{BufferCredit, SlabCredit, SlabDebt, SlabFloor, SlabPressure};

/// One visit to one shrinker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlabScan {
    shrinker: Shrinker,
    memcg: MemcgId,
    node: NodeId,
    plan: ShrinkPlan,
}

/// What one batch did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[must_use]
pub struct SlabReport {
    /// Objects looked at.
    pub scanned: u64,
    /// Inodes evicted.
    pub evicted: u64,
    /// Objects freed, whatever they are.
    pub freed: u64,
    /// Evicted inodes of XFS that are to be looked at, in steps of their own.
    pub evicted_share: u64,
}

/// Seeks of a shrinker that says nothing else.
const DEFAULT_SEEKS: u64 = 2;

impl Reclaim {
    /// After a pass over `node` that looked at so many pages: whether slab is pressed now, all of it, by what
    /// part of the lists that was (MECHANISMS 4.6). A pass that looked at none presses as one that looked at
    /// a chunk. Where slab is pressed by scan, a limit leaves it alone.
    pub fn slab_after_pass<T: Trace>(
        &self,
        core: &Core<T>,
        lru: &Lru,
        node: NodeId,
        scanned: u64,
        sc: &mut ScanControl,
    ) -> bool {
        if core.rules().slab_pressure == SlabPressure::ByPriority || !sc.is_global() {
            return false;
        }
        let on_node = |node| -> u64 {
            let kinds = ZoneKind::ALL.into_iter().filter(|&kind| kind <= sc.reclaim_idx);
            let lists = [LruList::InactiveFile, LruList::ActiveFile];
            kinds.flat_map(|kind| lists.map(|list| lru.zone_pages(list, node, kind))).sum()
        };
        let listed = match sc.reclaimer {
            Reclaimer::Kswapd => on_node(node),
            Reclaimer::Direct | Reclaimer::Limit => core.nodes().map(on_node).sum(),
        };
        let pages = if scanned == 0 { SWAP_CLUSTER_MAX } else { scanned };
        sc.scanned = ScannedPart { pages, listed };
        true
    }

    /// Plans a visit; none when there is nothing to free or slab is spared. A caller without FS
    /// may not enter the super block: what it should have done is added to what is owed.
    #[inline(always)]
    pub fn begin_slab<T: Trace>(
        &mut self,
        core: &Core<T>,
        cache: &PageCache,
        fs: &Fs,
        shrinker: Shrinker,
        memcg: MemcgId,
        node: NodeId,
        sc: &ScanControl,
    ) -> Option<SlabScan> {
        if !sc.may_shrinkslab {
            return None;
        }
        let freeable = freeable(core, cache, fs, shrinker, memcg, node);
        if freeable == 0 {
            return None;
        }
        let payback = core.rules().deferred_slab;
        let debtor = debtor(core, memcg);
        let owed = core::mem::take(self.owed(shrinker, debtor, node));
        let (seeks, batch) = (shrinker.seeks(), shrinker.batch(core.rules().super_block_batch));
        let plan = match core.rules().slab_pressure {
            SlabPressure::ByScan => {
                let ScannedPart { pages, listed } = sc.scanned;
                ShrinkPlan::by_scan(freeable, owed, pages, listed, DEFAULT_SEEKS.max(seeks))
            }
            SlabPressure::ByPriority => {
                let plan = match core.rules().slab_floor {
                    SlabFloor::None => ShrinkPlan::new,
                    SlabFloor::Batch => ShrinkPlan::at_least_a_batch,
                };
                plan(freeable, owed, sc.priority, seeks, batch, payback)
            }
        };
        if shrinker == Shrinker::SuperBlock && !sc.may_fs {
            *self.owed(shrinker, debtor, node) = plan.deferred_after();
            return None;
        }
        Some(SlabScan { shrinker, memcg, node, plan })
    }

    /// Whether `sc` has no object to look at on `node`, in the root's name: there is none, or only the super block
    /// has any and may not be entered.
    pub fn has_nothing_to_shrink<T: Trace>(
        &self,
        core: &Core<T>,
        cache: &PageCache,
        fs: &Fs,
        node: NodeId,
        sc: &ScanControl,
    ) -> bool {
        Shrinker::ALL.iter().all(|&shrinker| {
            (shrinker == Shrinker::SuperBlock && !sc.may_fs)
                || freeable(core, cache, fs, shrinker, MemcgId::ROOT, node) == 0
        })
    }

    /// What [`begin_slab`](Self::begin_slab) adds to what is owed at all priorities of so many rounds of a run
    /// without FS over `node`, in the root's name.
    pub fn owe_in_vain<T: Trace>(
        &mut self,
        core: &Core<T>,
        cache: &PageCache,
        fs: &Fs,
        node: NodeId,
        rounds: u64,
    ) {
        let shrinker = Shrinker::SuperBlock;
        let freeable = freeable(core, cache, fs, shrinker, MemcgId::ROOT, node);
        if freeable > 0 {
            let owed = self.owed(shrinker, MemcgId::ROOT, node);
            let rules = core.rules();
            let least = rules.slab_floor.least(freeable, shrinker.batch(rules.super_block_batch));
            *owed = owed_in_vain(freeable, *owed, shrinker.seeks(), least, rules.deferred_slab, rounds);
        }
    }

    /// So many walks over `node` that meet nothing but the root:
    /// [`crate::cgroup::walk::WalkPositions::pass_root_alone`].
    pub fn walk_root_alone(&mut self, node: NodeId, passes: u64) {
        self.walk_positions.pass_root_alone(node, passes);
    }

    /// Looks at the next batch of objects; none when the visit is over.
    pub fn shrink_slab_batch<T: Trace>(
        &mut self,
        core: &mut Core<T>,
        lru: &mut Lru,
        cache: &mut PageCache,
        fs: &mut Fs,
        cpu: CpuId,
        scan: &mut SlabScan,
        sc: &mut ScanControl,
    ) -> Option<SlabReport> {
        let SlabScan { shrinker, memcg, node, .. } = *scan;
        let Some(batch) = scan.plan.next_batch() else {
            *self.owed(shrinker, debtor(core, memcg), node) += scan.plan.deferred_after();
            return None;
        };
        let mut report = SlabReport { scanned: batch, ..SlabReport::default() };
        let before = core.slabs.pages_freed();
        match shrinker {
            Shrinker::ShadowNodes => {
                report.freed = shrink_shadow_leaves(core, cache, fs, cpu, memcg, batch);
            }
            Shrinker::SuperBlock => {
                sc.reclaimed_slab +=
                    shrink_super_block(core, lru, cache, fs, cpu, memcg, node, batch, sc, &mut report);
            }
            Shrinker::ExtentStatus => report.freed = fs.vfs.extents.shrink(core, cpu, batch),
            Shrinker::XfsBuffers => {
                let before = fs.xfs_buffers.pages_freed();
                report.freed = fs.xfs_buffers.shrink(core, cpu, node, batch);
                if core.rules().buffer_credit == BufferCredit::Reclaimer {
                    sc.reclaimed_slab += fs.xfs_buffers.pages_freed() - before;
                }
            }
            Shrinker::Zswap => {
                core.swap.zswap.forget_reads(memcg);
                let before = self.swap_writes.len();
                self.swap_writes.extend((0..batch).filter_map(|_| cache.shrink_zswap(core, lru, cpu, memcg)));
                report.freed = (self.swap_writes.len() - before) as u64;
            }
        }
        fs.list_emptied(core, cache);
        sc.reclaimed_slab += core.slabs.pages_freed() - before;
        sc.slab_scanned += batch;
        scan.plan.scanned(batch);
        core.alloc.events.add(VmEvent::SlabsScanned, batch);
        Some(report)
    }

    /// Visits every shrinker for all that it has, in rounds until they free little (`drop_slab`): the objects freed.
    /// A referenced one takes a second round, an inode that of its dentry first.
    ///
    /// Left out: that what lies in zswap is written back.
    pub fn drop_slab<T: Trace>(
        &mut self,
        core: &mut Core<T>,
        lru: &mut Lru,
        cache: &mut PageCache,
        fs: &mut Fs,
        cpu: CpuId,
    ) -> u64 {
        let mut sc = ScanControl::limit(MemcgId::ROOT, 1);
        (sc.priority, sc.scanned) = (0, ScannedPart { pages: 1000, listed: 1000 });
        let mut total = 0;
        for round in 0.. {
            let freed = self.drop_round(core, lru, cache, fs, cpu, &mut sc);
            total += freed;
            if freed >> round <= 1 {
                break;
            }
        }
        fs.list_emptied(core, cache);
        total
    }

    fn drop_round<T: Trace>(
        &mut self,
        core: &mut Core<T>,
        lru: &mut Lru,
        cache: &mut PageCache,
        fs: &mut Fs,
        cpu: CpuId,
        sc: &mut ScanControl,
    ) -> u64 {
        let groups: Vec<MemcgId> = core.cgroups.ids().collect();
        let mut freed = 0;
        for (node, &memcg) in core.nodes().flat_map(|node| groups.iter().map(move |memcg| (node, memcg))) {
            for shrinker in Shrinker::ALL.into_iter().filter(|&shrinker| shrinker != Shrinker::Zswap) {
                let Some(mut scan) = self.begin_slab(core, cache, fs, shrinker, memcg, node, sc) else {
                    continue;
                };
                while let Some(report) = self.shrink_slab_batch(core, lru, cache, fs, cpu, &mut scan, sc) {
                    freed += report.freed;
                }
            }
        }
        freed + fs.free_clean_evicted(core, cpu)
    }

    /// After a pass over a node: slab pages that the reclaimer freed in it, pages that it dropped with their inodes,
    /// and since 5.7 those of buffers of XFS, count as reclaimed (`flush_reclaim_state`; MECHANISMS 6.7). What RCU
    /// frees later counts for nobody.
    pub fn credit_slab<T: Trace>(&self, core: &Core<T>, sc: &mut ScanControl) {
        let freed = core::mem::take(&mut sc.reclaimed_slab);
        if sc.is_global() || core.rules().slab_credit == SlabCredit::AllReclaim {
            sc.nr_reclaimed += freed;
        }
    }
}

/// In whose name what visits to `memcg` leave undone is remembered.
fn debtor<T: Trace>(core: &Core<T>, memcg: MemcgId) -> MemcgId {
    match core.rules().slab_debt {
        SlabDebt::PerNode => MemcgId::ROOT,
        SlabDebt::PerCgroup => memcg,
    }
}

#[inline(always)]
fn freeable<T: Trace>(
    core: &Core<T>,
    cache: &PageCache,
    fs: &Fs,
    shrinker: Shrinker,
    memcg: MemcgId,
    node: NodeId,
) -> u64 {
    match shrinker {
        Shrinker::ShadowNodes => cache.freeable_shadow_leaves(core, memcg),
        Shrinker::SuperBlock => {
            let dentries = fs.vfs.listed_on(VfsLru::Dentry, memcg, node);
            let inodes = fs.vfs.listed_on(VfsLru::Inode, memcg, node);
            // XFS counts the evicted inodes of the whole filesystem, for whatever cgroup and node.
            let listed = dentries + inodes + fs.vfs.reclaimable.count();
            listed * core.alloc.sysctls().get(Sysctl::VfsCachePressure) / 100
        }
        // What `vfs_cache_pressure` weighs are dentries and inodes.
        Shrinker::XfsBuffers if memcg == MemcgId::ROOT => fs.xfs_buffers.count(node),
        Shrinker::ExtentStatus if memcg == MemcgId::ROOT => fs.vfs.extents.shrinkable(),
        Shrinker::Zswap if core.alloc.sysctls().get(Sysctl::ZswapShrinkerEnabled) > 0 => {
            core.swap.zswap.shrinkable(memcg)
        }
        Shrinker::ExtentStatus | Shrinker::XfsBuffers | Shrinker::Zswap => 0,
    }
}

/// Splits a batch by the lengths of the two lists and the number of evicted inodes, dentries first. Returns
/// the pages that inodes lost.
fn shrink_super_block<T: Trace>(
    core: &mut Core<T>,
    lru: &mut Lru,
    cache: &mut PageCache,
    fs: &mut Fs,
    cpu: CpuId,
    memcg: MemcgId,
    node: NodeId,
    batch: u64,
    sc: &ScanControl,
    report: &mut SlabReport,
) -> u64 {
    let [dentries, inodes] = VfsLru::ALL.map(|lru| fs.vfs.listed_on(lru, memcg, node));
    let evicted = fs.vfs.reclaimable.count();
    let total = dentries + inodes + evicted + 1;
    let share = |listed: u64| (batch * listed / total) + 1;
    let dentry = fs.vfs.prune_dentries(core, cache, cpu, memcg, node, share(dentries));
    let is_kswapd = sc.reclaimer == Reclaimer::Kswapd;
    let inode = fs.vfs.prune_inodes(core, lru, cache, cpu, memcg, node, share(inodes), is_kswapd);
    report.evicted = inode.freed;
    report.evicted_share = if evicted > 0 { share(evicted) } else { 0 };
    report.freed = dentry.freed + inode.freed;
    inode.stolen
}

/// Frees up to `count` of the oldest leaves of `memcg` that hold only shadows. Returns how many there were.
fn shrink_shadow_leaves<T: Trace>(
    core: &mut Core<T>,
    cache: &mut PageCache,
    fs: &mut Fs,
    cpu: CpuId,
    memcg: MemcgId,
    count: u64,
) -> u64 {
    let mut freed = 0;
    while freed < count
        && let Some(leaf) = cache.shrink_shadow_leaf(core, cpu, memcg)
    {
        if let Some(mapping) = leaf.emptied {
            fs.vfs.lost_pages(core, cache, mapping);
        }
        freed += 1;
    }
    core.alloc.events.add(VmEvent::WorkingsetNodeReclaim, freed);
    core.cgroups.add_stat(memcg, NodeId(0), MemcgStat::WorkingsetNodeReclaim, freed);
    freed
}
