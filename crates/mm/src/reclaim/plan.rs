//! Who can free kernel objects, and how much of them is looked at in one visit (MECHANISMS 9.2,
//! MECHANISMS-6X 7.2): pure arithmetic over counts.
//!
//! The set of shrinkers is closed: page cache tree nodes that hold nothing but shadows, the super
//! block of the data disk with its dentries and inodes, and buffers of XFS metadata, which belong
//! to no cgroup. Left out: the other shrinkers of XFS (quotas, reclaimable inodes) and of ext4's
//! extent status tree. Neighbour: [`crate::reclaim::shrinker`] works plans off.

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
    /// How many there are.
    pub const COUNT: usize = Self::ALL.len();

    /// Objects that it looks at in one step.
    pub(super) const fn batch(self) -> u64 {
        match self {
            Self::ShadowNodes | Self::XfsBuffers => 128,
            Self::SuperBlock => 1024,
        }
    }

    /// What it costs to make an object again.
    pub(super) const fn seeks(self) -> u64 {
        match self {
            Self::ShadowNodes => 0,
            Self::SuperBlock | Self::XfsBuffers => 2,
        }
    }
}

/// One shrinker's work on one cgroup at one priority (`do_shrink_slab`; MECHANISMS 9.2 with
/// `deferred-slab-decay` off, MECHANISMS-6X 7.2 with it on).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShrinkPlan {
    freeable: u64,
    total: u64,
    batch: u64,
    budget: u64,
    scanned: u64,
}

impl ShrinkPlan {
    /// Plans a pass over `freeable` objects with `deferred` ones owed from earlier passes.
    /// `seeks` is what it costs to make an object again; 0 means it can go by halves.
    pub fn new(freeable: u64, deferred: u64, priority: u8, seeks: u64, batch: u64, decay: bool) -> Self {
        let delta = ((freeable >> priority) * 4).checked_div(seeks).unwrap_or(freeable / 2);
        let total = if decay {
            (deferred >> priority) + delta
        } else if delta < freeable / 4 {
            (deferred + delta).min(freeable / 2)
        } else {
            deferred + delta
        };
        Self { freeable, total: total.min(freeable * 2), batch, budget: deferred + delta, scanned: 0 }
    }

    /// Objects to scan in the next step; none when the pass is over.
    pub fn next_batch(&self) -> Option<u64> {
        let worthwhile = self.total >= self.batch || (self.total > 0 && self.total >= self.freeable);
        worthwhile.then(|| self.total.min(self.batch))
    }

    /// Notes that `n` objects were scanned.
    pub fn scanned(&mut self, n: u64) {
        self.total = self.total.saturating_sub(n);
        self.scanned += n;
    }

    /// What is owed after the pass.
    pub fn deferred_after(&self) -> u64 {
        self.budget.saturating_sub(self.scanned).min(self.freeable * 2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_deltas_wait_until_a_batch_is_owed() {
        // 60000 objects at priority 10, two seeks: delta 116, below a batch of 1024.
        let plan = ShrinkPlan::new(60_000, 0, 10, 2, 1024, true);
        assert_eq!((plan.next_batch(), plan.deferred_after()), (None, 116));
        // Owed 2F: at priority 10 that is worth 117 + 116, still nothing (MECHANISMS-6X 6.3).
        assert_eq!(ShrinkPlan::new(60_000, 120_000, 10, 2, 1024, true).next_batch(), None);
        // At priority 7 it is 937 + 936: one batch.
        let mut plan = ShrinkPlan::new(60_000, 120_000, 7, 2, 1024, true);
        assert_eq!(plan.next_batch(), Some(1024));
        plan.scanned(1024);
        assert_eq!(plan.next_batch(), None);
    }

    #[test]
    fn before_5_11_all_that_is_owed_comes_due_at_once() {
        let plan = ShrinkPlan::new(60_000, 120_000, 10, 2, 1024, false);
        assert_eq!(plan.total, 30_000, "half of the objects at most for a small delta");
    }
}
