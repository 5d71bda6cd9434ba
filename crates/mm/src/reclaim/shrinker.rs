//! Shrinkers: who can free kernel objects, and how much each is asked to look at (MECHANISMS 9.2,
//! 9.3, MECHANISMS-6X 7.2, 7.3).
//!
//! A reclaim pass visits every shrinker of a cgroup on a node after the cgroup's LRU lists. Each
//! visit is a [`SlabScan`]: a [`ShrinkPlan`] that is worked off in batches, one step each.
//!
//! The set of shrinkers is closed: page cache tree nodes that hold nothing but shadows, the super
//! block of the data disk with its dentries and inodes, and buffers of XFS metadata, which belong
//! to no cgroup.
//!
//! Left out: the other shrinkers of XFS (quotas, reclaimable inodes) and of ext4's extent
//! status tree. Neighbours: [`crate::slab::cache`] for the plan, [`crate::fs::inode`] and
//! [`crate::pages::cache`] for what is freed.

use units::{CpuId, NodeId};

use crate::base::event::Trace;
use crate::base::ids::MemcgId;
use crate::base::sysctl::Sysctl;
use crate::base::vmstat::VmEvent;
use crate::fs::inode::VfsLru;
use crate::memory::Memory;
use crate::reclaim::plan::ShrinkPlan;
use crate::reclaim::run::{Reclaimer, ScanControl};
use crate::version::feature::Feature;

/// Who can free kernel objects, in the order in which they are asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Shrinker {
    /// Page cache tree nodes without pages: 128 at a time, nothing to make again.
    ShadowNodes,
    /// Dentries and inodes: 1024 at a time, two seeks each.
    SuperBlock,
    /// Buffers of XFS metadata: 128 at a time, two seeks each.
    XfsBuffers,
}

impl Shrinker {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::ShadowNodes, Self::SuperBlock, Self::XfsBuffers];

    /// Objects that it looks at in one step.
    const fn batch(self) -> u64 {
        match self {
            Self::ShadowNodes | Self::XfsBuffers => 128,
            Self::SuperBlock => 1024,
        }
    }

    /// What it costs to make an object again.
    const fn seeks(self) -> u64 {
        match self {
            Self::ShadowNodes => 0,
            Self::SuperBlock | Self::XfsBuffers => 2,
        }
    }
}

/// What the shrinkers of one cgroup on one node still owe.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Deferred([u64; Shrinker::ALL.len()]);

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
}

impl<T: Trace> Memory<T> {
    fn freeable(&self, shrinker: Shrinker, memcg: MemcgId, node: NodeId) -> u64 {
        match shrinker {
            Shrinker::ShadowNodes => self.freeable_shadow_leaves(memcg),
            Shrinker::SuperBlock => {
                let listed: u64 = VfsLru::ALL.iter().map(|&lru| self.vfs_listed(lru, memcg, node)).sum();
                listed * self.core.alloc.sysctls().get(Sysctl::VfsCachePressure) / 100
            }
            Shrinker::XfsBuffers if memcg == MemcgId::ROOT => {
                self.xfs_buffers.count(node) * self.core.alloc.sysctls().get(Sysctl::VfsCachePressure) / 100
            }
            Shrinker::XfsBuffers => 0,
        }
    }

    fn owed(&mut self, shrinker: Shrinker, memcg: MemcgId, node: NodeId) -> &mut u64 {
        let index = self.core.lruvec_index(memcg, node);
        &mut self.deferred[index].0[shrinker as usize]
    }

    /// Plans a visit; none when there is nothing to free or slab is spared. A caller without FS
    /// may not enter the super block: what it should have done is added to what is owed.
    pub fn begin_slab(
        &mut self,
        shrinker: Shrinker,
        memcg: MemcgId,
        node: NodeId,
        sc: &ScanControl,
    ) -> Option<SlabScan> {
        if !sc.may_shrinkslab {
            return None;
        }
        let freeable = self.freeable(shrinker, memcg, node);
        if freeable == 0 {
            return None;
        }
        let decay = self.core.alloc.features().has(Feature::DeferredSlabDecay);
        let owed = core::mem::take(self.owed(shrinker, memcg, node));
        let plan = ShrinkPlan::new(freeable, owed, sc.priority, shrinker.seeks(), shrinker.batch(), decay);
        if shrinker == Shrinker::SuperBlock && !sc.may_fs {
            *self.owed(shrinker, memcg, node) = plan.deferred_after();
            return None;
        }
        Some(SlabScan { shrinker, memcg, node, plan })
    }

    /// Looks at the next batch of objects; none when the visit is over.
    pub fn shrink_slab_batch(
        &mut self,
        cpu: CpuId,
        scan: &mut SlabScan,
        sc: &mut ScanControl,
    ) -> Option<SlabReport> {
        let SlabScan { shrinker, memcg, node, .. } = *scan;
        let Some(batch) = scan.plan.next_batch() else {
            *self.owed(shrinker, memcg, node) += scan.plan.deferred_after();
            return None;
        };
        let mut report = SlabReport { scanned: batch, ..SlabReport::default() };
        let credit = match shrinker {
            Shrinker::ShadowNodes => {
                let (leaves, pages) = self.shrink_shadow_leaves(cpu, memcg, batch);
                report.freed = leaves;
                pages
            }
            Shrinker::SuperBlock => self.shrink_super_block(cpu, memcg, node, batch, sc, &mut report),
            Shrinker::XfsBuffers => {
                report.freed = self.shrink_clusters(cpu, node, batch);
                0
            }
        };
        scan.plan.scanned(batch);
        self.core.alloc.events.add(VmEvent::SlabsScanned, batch);
        if sc.is_global() || !self.core.alloc.features().has(Feature::SlabCreditGlobalOnly) {
            sc.nr_reclaimed += credit;
        }
        Some(report)
    }

    /// Splits a batch by the lengths of the two lists, dentries first. Slab pages that come free
    /// are not credited, as RCU frees them later; pages of evicted inodes are.
    fn shrink_super_block(
        &mut self,
        cpu: CpuId,
        memcg: MemcgId,
        node: NodeId,
        batch: u64,
        sc: &ScanControl,
        report: &mut SlabReport,
    ) -> u64 {
        let [dentries, inodes] = VfsLru::ALL.map(|lru| self.vfs_listed(lru, memcg, node));
        let total = dentries + inodes + 1;
        let share = |listed: u64| (batch * listed / total) + 1;
        let dentry = self.prune_dentries(cpu, memcg, node, share(dentries));
        let is_kswapd = sc.reclaimer == Reclaimer::Kswapd;
        let inode = self.prune_inodes(cpu, memcg, node, share(inodes), is_kswapd);
        report.evicted = inode.freed;
        report.freed = dentry.freed + inode.freed;
        inode.stolen
    }

    /// Frees every dentry and inode that nobody uses, and every node without pages
    /// (`drop_slab`). Returns the objects freed.
    pub fn drop_slab(&mut self, cpu: CpuId) -> u64 {
        let mut freed = 0;
        for memcg in self.core.cgroups.ids() {
            for node in self.nodes() {
                // Referenced objects are met a second time, inodes after their dentries and pages.
                for _ in 0..2 {
                    let dentries = self.vfs_listed(VfsLru::Dentry, memcg, node);
                    freed += self.prune_dentries(cpu, memcg, node, dentries).freed;
                }
                if memcg == MemcgId::ROOT {
                    freed += self.shrink_clusters(cpu, node, 3 * self.xfs_buffers.count(node));
                }
                for _ in 0..3 {
                    let inodes = self.vfs_listed(VfsLru::Inode, memcg, node);
                    freed += self.prune_inodes(cpu, memcg, node, inodes, false).freed;
                }
            }
            freed += self.shrink_shadow_leaves(cpu, memcg, u64::MAX).0;
        }
        freed
    }
}
