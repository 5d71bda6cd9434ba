//! Wires of visits to shrinkers: to who can free kernel objects. Next: [`crate::reclaim::shrinker`].

use units::{CpuId, NodeId};

use crate::base::event::Trace;
use crate::base::ids::MemcgId;
use crate::memory::Memory;
use crate::reclaim::plan::Shrinker;
use crate::reclaim::run::ScanControl;
use crate::reclaim::shrinker::{SlabReport, SlabScan};

impl<T: Trace> Memory<T> {
    /// After a pass over `node` that looked at so many pages: [`crate::reclaim::state::Reclaim::slab_after_pass`].
    pub fn slab_after_pass(&self, node: NodeId, scanned: u64, sc: &mut ScanControl) -> bool {
        self.reclaim.slab_after_pass(&self.core, &self.lru, node, scanned, sc)
    }

    /// Plans a visit to a shrinker: [`crate::reclaim::state::Reclaim::begin_slab`].
    pub fn begin_slab(
        &mut self,
        shrinker: Shrinker,
        memcg: MemcgId,
        node: NodeId,
        sc: &ScanControl,
    ) -> Option<SlabScan> {
        self.reclaim.begin_slab(&self.core, &self.cache, &self.fs, shrinker, memcg, node, sc)
    }

    /// The first visit for which there is something to do, from a place of [`Shrinker::ALL`] on, and its own place
    /// there.
    pub fn next_slab(
        &mut self,
        from: usize,
        memcg: MemcgId,
        node: NodeId,
        sc: &ScanControl,
    ) -> Option<(usize, SlabScan)> {
        let visit = |place: usize| Some((place, self.begin_slab(Shrinker::ALL[place], memcg, node, sc)?));
        (from..Shrinker::COUNT).find_map(visit)
    }

    /// Looks at the next batch of objects: [`crate::reclaim::state::Reclaim::shrink_slab_batch`].
    pub fn shrink_slab_batch(
        &mut self,
        cpu: CpuId,
        scan: &mut SlabScan,
        sc: &mut ScanControl,
    ) -> Option<SlabReport> {
        let Self { core, lru, cache, fs, reclaim, .. } = self;
        reclaim.shrink_slab_batch(core, lru, cache, fs, cpu, scan, sc)
    }

    /// Counts the slab pages that a pass freed as reclaimed: [`crate::reclaim::state::Reclaim::credit_slab`].
    pub fn credit_slab(&self, sc: &mut ScanControl) {
        self.reclaim.credit_slab(&self.core, sc);
    }

    /// Frees every dentry and inode that nobody uses, and every node without pages: the objects freed.
    pub fn drop_slab(&mut self, cpu: CpuId) -> u64 {
        let Self { core, lru, cache, fs, reclaim, .. } = self;
        reclaim.drop_slab(core, lru, cache, fs, cpu)
    }
}
