//! Who can free kernel objects, and how much of them is looked at in one visit (MECHANISMS 9.2,
//! MECHANISMS-6X 7.2): pure arithmetic over counts.
//!
//! The set of shrinkers is closed: page cache tree nodes that hold nothing but shadows, the super
//! block of the data disk with its dentries and inodes, and what belongs to no cgroup: extents of ext4, and
//! buffers of XFS metadata; and entries of zswap. Left out: the other shrinkers of XFS (quotas, reclaimable
//! inodes), that of ext4's journal. Neighbour: [`crate::reclaim::shrinker`] works plans off.

use crate::reclaim::run::DEF_PRIORITY;
use crate::version::rules::{DeferredSlab, SlabFloor, SuperBlockBatch};

/// Who can free kernel objects, in the order in which they are asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Shrinker {
    /// Page cache tree nodes without pages: 128 at a time, nothing to make again.
    ShadowNodes,
    /// Extents of ext4 inodes: 128 at a time, two seeks each.
    ExtentStatus,
    /// Dentries and inodes: 1024 at a time as released, two seeks each.
    SuperBlock,
    /// Buffers of XFS metadata: 128 at a time, two seeks each.
    XfsBuffers,
    /// Entries of zswap, which are written back: 128 at a time, two seeks each. Off unless it is switched on.
    Zswap,
}

/// Objects in one step of most shrinkers (`SHRINK_BATCH`).
const BATCH: u64 = 128;

impl Shrinker {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::ShadowNodes, Self::ExtentStatus, Self::SuperBlock, Self::XfsBuffers, Self::Zswap];
    /// How many there are.
    pub const COUNT: usize = Self::ALL.len();

    /// Objects that it looks at in one step.
    pub(super) fn batch(self, super_block: SuperBlockBatch) -> u64 {
        match self {
            Self::SuperBlock if super_block == SuperBlockBatch::Of1024 => 1024,
            Self::ShadowNodes | Self::ExtentStatus | Self::SuperBlock | Self::XfsBuffers | Self::Zswap => {
                BATCH
            }
        }
    }

    /// What it costs to make an object again.
    pub(super) const fn seeks(self) -> u64 {
        match self {
            Self::ShadowNodes => 0,
            Self::ExtentStatus | Self::SuperBlock | Self::XfsBuffers | Self::Zswap => 2,
        }
    }
}

/// One shrinker's work on one cgroup at one priority (`do_shrink_slab`; MECHANISMS 9.2 where what is owed
/// comes due at once, MECHANISMS-6X 7.2 where it does by priority).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShrinkPlan {
    freeable: u64,
    total: u64,
    batch: u64,
    budget: u64,
    scanned: u64,
    payback: DeferredSlab,
}

impl ShrinkPlan {
    /// Plans a pass over `freeable` objects with `deferred` ones owed from earlier passes.
    /// `seeks` is what it costs to make an object again; 0 means it can go by halves.
    ///
    /// # Panics
    /// When there is nothing to free.
    pub fn new(
        freeable: u64,
        deferred: u64,
        priority: u8,
        seeks: u64,
        batch: u64,
        payback: DeferredSlab,
    ) -> Self {
        Self::of_delta(freeable, deferred, (priority, delta(freeable, priority, seeks)), batch, payback)
    }

    /// The same with a batch as the least that a pass asks for, or all objects where there are fewer
    /// ([`SlabFloor::Batch`]).
    ///
    /// # Panics
    /// When there is nothing to free.
    pub fn at_least_a_batch(
        freeable: u64,
        deferred: u64,
        priority: u8,
        seeks: u64,
        batch: u64,
        payback: DeferredSlab,
    ) -> Self {
        let delta = delta(freeable, priority, seeks).max(SlabFloor::Batch.least(freeable, batch));
        Self::of_delta(freeable, deferred, (priority, delta), batch, payback)
    }

    fn of_delta(
        freeable: u64,
        deferred: u64,
        (priority, delta): (u8, u64),
        batch: u64,
        payback: DeferredSlab,
    ) -> Self {
        assert!(freeable > 0, "a shrinker with nothing to free is not visited");
        let budget = deferred + delta;
        let total = match payback {
            DeferredSlab::ByPriority => (deferred >> priority) + delta,
            DeferredSlab::AtOnce if delta < freeable / 4 => budget.min(freeable / 2),
            DeferredSlab::AtOnce => budget,
        };
        Self { freeable, total: total.min(freeable * 2), batch, budget, scanned: 0, payback }
    }

    /// Plans as much of `freeable` objects, times `4 / seeks`, as `scanned` pages are of `listed` ones, and
    /// what is owed; less than a batch stays owed (up to 4.11; MECHANISMS 9.2 on 2.6.32).
    ///
    /// # Panics
    /// When there is nothing to free.
    pub fn by_scan(freeable: u64, deferred: u64, scanned: u64, listed: u64, seeks: u64) -> Self {
        assert!(freeable > 0, "a shrinker with nothing to free is not visited");
        let delta = u128::from(4 * scanned / seeks.max(1)) * u128::from(freeable) / (u128::from(listed) + 1);
        let delta = u64::try_from(delta).unwrap_or(u64::MAX);
        let total = deferred.saturating_add(delta).min(freeable * 2);
        let payback = DeferredSlab::AtOnce;
        // However few there are, they are not worth a call of less than a batch.
        Self { freeable: u64::MAX, total, batch: BATCH, budget: total, scanned: 0, payback }
    }

    /// Objects to scan in the next step; none when the pass is over.
    pub fn next_batch(&self) -> Option<u64> {
        let worthwhile = self.total >= self.batch || self.total >= self.freeable;
        worthwhile.then(|| self.total.min(self.batch))
    }

    /// Notes that `n` objects were scanned.
    pub fn scanned(&mut self, n: u64) {
        self.total = self.total.saturating_sub(n);
        self.scanned += n;
    }

    /// What is owed after the pass: all that was not scanned, since 5.13 at most twice the objects.
    pub fn deferred_after(&self) -> u64 {
        capped(self.payback, self.budget.saturating_sub(self.scanned), self.freeable)
    }
}

impl SlabFloor {
    /// The least that a pass asks of a shrinker with so many objects.
    pub(super) fn least(self, freeable: u64, batch: u64) -> u64 {
        match self {
            Self::None => 0,
            Self::Batch => freeable.min(batch),
        }
    }
}

/// What is owed after a [`ShrinkPlan`] at each priority of so many rounds of reclaim, of which none scans and each asks
/// for `least` or more.
pub(super) fn owed_in_vain(
    freeable: u64,
    owed: u64,
    seeks: u64,
    least: u64,
    payback: DeferredSlab,
    rounds: u64,
) -> u64 {
    let deltas: u64 = (0..=DEF_PRIORITY).map(|priority| delta(freeable, priority, seeks).max(least)).sum();
    capped(payback, owed + rounds * deltas, freeable)
}

/// What a pass at `priority` adds.
fn delta(freeable: u64, priority: u8, seeks: u64) -> u64 {
    ((freeable >> priority) * 4).checked_div(seeks).unwrap_or(freeable / 2)
}

fn capped(payback: DeferredSlab, owed: u64, freeable: u64) -> u64 {
    match payback {
        DeferredSlab::AtOnce => owed,
        DeferredSlab::ByPriority => owed.min(freeable * 2),
    }
}

#[cfg(test)]
mod tests {
    use std_alloc::vec::Vec;

    use super::*;
    use DeferredSlab::{AtOnce, ByPriority};

    /// The batches that a pass scans, and what is owed then.
    fn pass(mut plan: ShrinkPlan) -> (Vec<u64>, u64) {
        let mut batches = Vec::new();
        while let Some(batch) = plan.next_batch() {
            batches.push(batch);
            plan.scanned(batch);
        }
        (batches, plan.deferred_after())
    }

    #[test]
    fn a_pass_asks_for_twice_the_objects_of_its_priority() {
        // Two seeks: 4 / 2 of F >> priority. One seek: four times.
        for (priority, seeks, batches, owed) in [
            (12, 2, &[][..], 28),
            (6, 2, &[][..], 1874),
            (5, 2, &[][..], 3750),
            (4, 2, &[5000], 2500),
            (3, 2, &[5000, 5000, 5000], 0),
            (5, 1, &[5000], 2500),
        ] {
            let plan = ShrinkPlan::new(60_000, 0, priority, seeks, 5000, ByPriority);
            assert_eq!(pass(plan), (batches.to_vec(), owed), "priority {priority}, {seeks} seeks");
        }
    }

    #[test]
    fn what_nobody_needs_to_make_again_goes_by_halves_at_any_priority() {
        for priority in [12, 0] {
            let plan = ShrinkPlan::new(301, 0, priority, 0, 100, ByPriority);
            assert_eq!(pass(plan), ([100].to_vec(), 50), "priority {priority}");
        }
    }

    #[test]
    fn less_than_a_batch_is_scanned_when_it_is_all_there_is() {
        // F = 100: 100 at priority 1, 50 at priority 2.
        assert_eq!(pass(ShrinkPlan::new(100, 0, 1, 2, 128, ByPriority)), ([100].to_vec(), 0));
        assert_eq!(pass(ShrinkPlan::new(100, 0, 2, 2, 128, ByPriority)), ([].to_vec(), 50));
        // What is left of 200 after a batch of 128 is neither.
        assert_eq!(pass(ShrinkPlan::new(100, 0, 0, 2, 128, ByPriority)), ([128].to_vec(), 72));
        // Exactly one batch is worth a call.
        assert_eq!(pass(ShrinkPlan::new(256, 0, 2, 2, 128, ByPriority)), ([128].to_vec(), 0));
    }

    #[test]
    fn a_pass_scans_at_most_twice_the_objects() {
        // Two seeks at priority 0 are 2F already; with one seek or with debts they would be more.
        for (deferred, seeks, payback) in
            [(0, 1, ByPriority), (5000, 2, ByPriority), (0, 1, AtOnce), (5000, 2, AtOnce)]
        {
            let (batches, _) = pass(ShrinkPlan::new(1000, deferred, 0, seeks, 100, payback));
            assert_eq!(batches.iter().sum::<u64>(), 2000, "{deferred} {seeks} {payback:?}");
        }
    }

    #[test]
    fn debts_are_paid_back_by_priority_since_5_13() {
        // 60000 objects at priority 10, two seeks: delta 116, below a batch of 1024.
        assert_eq!(pass(ShrinkPlan::new(60_000, 0, 10, 2, 1024, ByPriority)), ([].to_vec(), 116));
        // Owed 2F: at priority 10 that is worth 117 + 116, still nothing (MECHANISMS-6X 6.3).
        let plan = ShrinkPlan::new(60_000, 120_000, 10, 2, 1024, ByPriority);
        assert_eq!(pass(plan), ([].to_vec(), 120_000), "nor does the debt grow beyond 2F");
        // At priority 7 it is 937 + 936: one batch.
        let plan = ShrinkPlan::new(60_000, 120_000, 7, 2, 1024, ByPriority);
        assert_eq!(pass(plan), ([1024].to_vec(), 120_000 + 936 - 1024));
    }

    #[test]
    fn debts_come_due_at_once_before_5_13_by_half_of_the_objects() {
        // Delta is below F / 4: half of the objects at most, however much is owed, and the rest stays owed.
        let plan = ShrinkPlan::new(60_000, 120_000, 10, 2, 1000, AtOnce);
        assert_eq!(pass(plan), ([1000; 30].to_vec(), 90_116));
        // F / 4 is reached at priority 3: all that is owed, but for the cap of 2F.
        let plan = ShrinkPlan::new(60_000, 30_000, 3, 2, 1000, AtOnce);
        assert_eq!(pass(plan), ([1000; 45].to_vec(), 0));
        let plan = ShrinkPlan::new(60_000, 30_000, 4, 2, 1000, AtOnce);
        assert_eq!(pass(plan), ([1000; 30].to_vec(), 7500));
    }

    /// Visits at priority 10 to 60,000 objects by batches of 1024, one after the other: those that scan.
    fn visits_that_scan(payback: DeferredSlab, visits: u32) -> Vec<u32> {
        let mut owed = 0;
        let mut scan = Vec::new();
        for visit in 1..=visits {
            let (batches, left) = pass(ShrinkPlan::new(60_000, owed, 10, 2, 1024, payback));
            assert!(batches.iter().all(|&batch| batch == 1024));
            scan.extend(batches.iter().map(|_| visit));
            owed = left;
        }
        scan
    }

    #[test]
    fn at_priority_10_every_ninth_visit_scans_a_batch_before_5_13_and_none_after() {
        // Each adds 116, and nine of them are 1044 (MECHANISMS-510-72 7.2); the 20 left over come on top.
        assert_eq!(visits_that_scan(AtOnce, 45), [9, 18, 27, 36, 45]);
        assert_eq!(visits_that_scan(AtOnce, 80)[5..], [53, 62, 71, 80]);
        // Since then what is owed grows to twice the objects, and never counts for more than 117 (6X 6.3).
        assert_eq!(visits_that_scan(ByPriority, 3000), []);
        // It takes 262,144 objects for a batch at priority 10.
        for (objects, batches) in [(262_143, &[][..]), (262_144, &[1024])] {
            let plan = ShrinkPlan::new(objects, 2 * objects, 10, 2, 1024, ByPriority);
            assert_eq!(pass(plan).0, batches, "{objects}");
        }
    }

    #[test]
    fn what_a_run_owes_that_never_scans_is_what_its_passes_owe_one_after_the_other() {
        for (freeable, owed) in [(1, 0), (60_000, 0), (60_000, 7), (60_000, 500_000), (5000, 9990)] {
            for (payback, rounds) in [(AtOnce, 1), (ByPriority, 1), (ByPriority, 2)] {
                let one_by_one =
                    (0..rounds).flat_map(|_| (0..=DEF_PRIORITY).rev()).fold(owed, |owed, priority| {
                        ShrinkPlan::new(freeable, owed, priority, 2, 1024, payback).deferred_after()
                    });
                assert_eq!(
                    owed_in_vain(freeable, owed, 2, 0, payback, rounds),
                    one_by_one,
                    "{freeable} {owed}"
                );
            }
        }
    }

    #[test]
    fn in_4_19_a_pass_asks_for_a_batch_of_however_few_objects() {
        for (objects, priority, batches, owed) in [
            (2000, 12, &[1000][..], 0),
            (900, 12, &[900], 0),
            (60_000, 12, &[1000], 0),
            (60_000, 6, &[1000], 874),
        ] {
            let plan = ShrinkPlan::at_least_a_batch(objects, 0, priority, 2, 1000, AtOnce);
            assert_eq!(pass(plan), (batches.to_vec(), owed), "{objects} objects");
        }
        assert_eq!(pass(ShrinkPlan::new(900, 0, 12, 2, 1000, AtOnce)).0, [], "as before and since");
        let one_by_one = (0..=DEF_PRIORITY).rev().fold(7, |owed, priority| {
            ShrinkPlan::at_least_a_batch(2000, owed, priority, 2, 1000, AtOnce).deferred_after()
        });
        assert_eq!(owed_in_vain(2000, 7, 2, 1000, AtOnce, 1), one_by_one);
    }

    #[test]
    fn what_is_owed_has_no_bound_before_5_13() {
        for (payback, owed) in [(AtOnce, 500_000 + 2000), (ByPriority, 2000)] {
            let plan = ShrinkPlan::new(1000, 500_000, 0, 2, 1000, payback);
            assert_eq!(plan.deferred_after(), owed, "{payback:?}: a caller that may not scan");
        }
    }

    #[test]
    fn by_scan_objects_go_in_proportion_to_pages_by_whole_batches() {
        // A hundredth of the lists, two seeks: twice as many objects; 200 of 10,000.
        assert_eq!(pass(ShrinkPlan::by_scan(10_000, 0, 10, 999, 2)), ([128].to_vec(), 72));
        assert_eq!(pass(ShrinkPlan::by_scan(10_000, 72, 10, 999, 2)), ([128, 128].to_vec(), 16));
        assert_eq!(pass(ShrinkPlan::by_scan(10_000, 0, 1, 999, 2)), ([].to_vec(), 20));
        // Twice the objects at most, debts included; so few that two times are no batch are never looked at.
        assert_eq!(pass(ShrinkPlan::by_scan(100, 5000, 999, 999, 2)), ([128].to_vec(), 72));
        assert_eq!(pass(ShrinkPlan::by_scan(63, 5000, 999, 999, 2)), ([].to_vec(), 126));
    }

    #[test]
    fn shrinkers_have_the_batches_and_seeks_of_their_kind() {
        let table = |batch| Shrinker::ALL.map(|shrinker| (shrinker.batch(batch), shrinker.seeks()));
        let released = table(SuperBlockBatch::Of1024);
        let sections = "MECHANISMS 9.2, 11.1, MECHANISMS-6X 6.3";
        assert_eq!(released, [(128, 0), (128, 2), (1024, 2), (128, 2), (128, 2)], "{sections}");
        assert_eq!(table(SuperBlockBatch::Of128), [(128, 0), (128, 2), (128, 2), (128, 2), (128, 2)]);
    }
}
