//! Anonymous or file pages: which lists of a cgroup a pass scans, and in what proportion (`get_scan_count`;
//! SWAP 1.1 to 1.4).
//!
//! ```text
//!   the first that holds:
//!     no swap to be had                             files only
//!     reclaim of a limit, swappiness 0              files only
//!     `swappiness=max`                              anonymous pages only (6.16)
//!     priority 0                                    all alike
//!     hardly any file pages, and many anonymous     anonymous pages only
//!     plenty of inactive file pages                 files only
//!     otherwise                                     in proportion: swappiness : 200 - swappiness, each
//!                                                   weighed by what reclaim of it has cost
//! ```
//! Since 5.5 what lists are like is asked of the whole tree at the run's target, once in a pass; before, of each
//! cgroup. The proportion holds even where one kind has no pages.
//!
//! Left out: `memory.swappiness` of cgroup v1; that 2.6.32 never spares anonymous pages for plenty of
//! file pages, and takes no active list into account before it turns to them. Next: [`crate::reclaim::pass`].

use units::NodeId;

use crate::alloc::watermark::Mark;
use crate::base::event::Trace;
use crate::base::ids::MemcgId;
use crate::base::sysctl::Sysctl;
use crate::base::vmstat::MemcgStat;
use crate::core::Core;
use crate::lru::lists::{Lru, LruList, ScanCosts};
use crate::reclaim::run::{AtTarget, ScanControl};
use crate::version::rules::{Aging, FileBalance, LruCost};

/// What the weights of `swappiness` add up to before costs.
const WHOLE: u64 = 200;

/// The swappiness of those who ask for anonymous pages alone: `swappiness=max`.
pub const ANON_ONLY: u64 = 201;

/// Which lists of a cgroup are scanned, and how much of their share (`enum scan_balance`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScanBalance {
    /// Files only.
    File,
    /// Anonymous pages only.
    Anon,
    /// All lists alike.
    Equal,
    /// Both kinds in proportion.
    Fraction(Weights),
}

/// In what proportion anonymous and file pages are scanned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Weights {
    /// Weight of anonymous pages.
    pub anon: u64,
    /// Weight of file pages.
    pub file: u64,
    /// What the share of either is a part of.
    pub whole: u64,
}

impl Weights {
    /// By what reclaim has cost (5.8): with all cost on one side the other weighs twice as much, before
    /// swappiness.
    ///
    /// # Panics
    /// When `swappiness` is above 200.
    pub fn by_cost(swappiness: u64, [anon_cost, file_cost]: [u64; 2]) -> Self {
        let sum = anon_cost + file_cost;
        let (anon_cost, file_cost) = (sum + anon_cost, sum + file_cost);
        let total = anon_cost + file_cost;
        let anon = swappiness * (total + 1) / (anon_cost + 1);
        let file = (WHOLE - swappiness) * (total + 1) / (file_cost + 1);
        Self { anon, file, whole: anon + file }
    }

    /// By how much of what was scanned lately went back to an active list (up to 5.7).
    ///
    /// # Panics
    /// When `swappiness` is above 200.
    pub fn by_rotations(swappiness: u64, costs: &ScanCosts) -> Self {
        let weight =
            |priority: u64, kind: usize| priority * (costs.scanned[kind] + 1) / (costs.rotated[kind] + 1);
        let (anon, file) = (weight(swappiness, 0), weight(WHOLE - swappiness, 1));
        Self { anon, file, whole: anon + file + 1 }
    }

    /// The part of `pages` of a kind that is scanned, rounded down.
    pub fn part(&self, is_file: bool, pages: u64) -> u64 {
        u64::try_from(self.product(is_file, pages) / u128::from(self.whole)).expect("a part of the pages")
    }

    /// The same, rounded up: of a cgroup that was removed.
    pub fn part_of_removed(&self, is_file: bool, pages: u64) -> u64 {
        let part = self.product(is_file, pages).div_ceil(u128::from(self.whole));
        u64::try_from(part).expect("a part of the pages")
    }

    fn product(&self, is_file: bool, pages: u64) -> u128 {
        u128::from(pages) * u128::from(if is_file { self.file } else { self.anon })
    }
}

impl ScanBalance {
    /// What is scanned of a list of which `scan` pages are due, of a cgroup that is `online`.
    pub fn scan(&self, is_file: bool, scan: u64, online: bool) -> u64 {
        match self {
            Self::Equal => scan,
            Self::File if is_file => scan,
            Self::Anon if !is_file => scan,
            Self::File | Self::Anon => 0,
            Self::Fraction(weights) if online => weights.part(is_file, scan),
            Self::Fraction(weights) => weights.part_of_removed(is_file, scan),
        }
    }
}

/// Whether anonymous pages of `memcg` can be swapped out: there are free slots that it may use
/// (`can_reclaim_anon_pages`).
pub(crate) fn can_reclaim_anon<T: Trace>(core: &Core<T>, memcg: MemcgId) -> bool {
    can_age_anon(core) && core.swap.free_for(&core.cgroups, memcg) > 0
}

/// Whether there is sense in deactivating anonymous pages: there is a swap area, be it full
/// (`can_age_anon_pages`).
pub(super) fn can_age_anon<T: Trace>(core: &Core<T>) -> bool {
    core.swap.total_pages() > 0
}

/// Looks at the lists of the run's target, at the begin of a pass.
pub(super) fn look_at_target<T: Trace>(
    core: &Core<T>,
    lru: &Lru,
    node: NodeId,
    sc: &ScanControl,
) -> AtTarget {
    if !can_age_anon(core) {
        return AtTarget::default();
    }
    let stat = |stat| core.cgroups.reclaim_stat(sc.target, node, stat);
    let lruvec = lru.lruvec(sc.target, node);
    let may_deactivate_anon = sc.force_deactivate
        || stat(MemcgStat::WorkingsetActivateAnon) != lruvec.anon_refaults()
        || is_anon_low(stat(MemcgStat::InactiveAnon), stat(MemcgStat::ActiveAnon));
    let plenty = (stat(MemcgStat::InactiveFile) >> sc.priority) > 0;
    let tiny = sc.is_global() && !may_deactivate_anon && {
        let inactive_anon = lru.node_pages(LruList::InactiveAnon, node);
        is_file_tiny(core, lru, node) && (inactive_anon >> sc.priority) > 0
    };
    AtTarget {
        may_deactivate_anon,
        cache_trim: plenty && !sc.may_deactivate_file && !sc.no_cache_trim,
        file_is_tiny: tiny,
        cost: lruvec.costs().cost,
    }
}

/// Which lists of `memcg` a pass scans. Weighs rotations where the kernel does, and forgets some of them.
pub(super) fn scan_balance<T: Trace>(
    core: &Core<T>,
    lru: &mut Lru,
    memcg: MemcgId,
    node: NodeId,
    sc: &ScanControl,
) -> ScanBalance {
    if !sc.may_swap || !can_reclaim_anon(core, memcg) {
        return ScanBalance::File;
    }
    let swappiness = sc.swappiness.unwrap_or_else(|| core.alloc.sysctls().get(Sysctl::Swappiness));
    if !sc.is_global() && swappiness == 0 {
        return ScanBalance::File;
    }
    if swappiness == ANON_ONLY {
        return ScanBalance::Anon;
    }
    if sc.priority == 0 && swappiness != 0 {
        return ScanBalance::Equal;
    }
    let AtTarget { file_is_tiny, cache_trim, cost, .. } = match core.rules().aging {
        Aging::Root => sc.at_target,
        Aging::PerCgroup => look_at_own(core, lru, memcg, node, sc),
    };
    if file_is_tiny {
        return ScanBalance::Anon;
    }
    if cache_trim {
        return ScanBalance::File;
    }
    ScanBalance::Fraction(match core.rules().lru_cost {
        LruCost::Rotations => Weights::by_rotations(swappiness, &lru.forget_rotations(memcg, node)),
        LruCost::Io | LruCost::IoAndRotations => Weights::by_cost(swappiness, cost),
    })
}

/// What [`look_at_target`] finds out, of the lists of one cgroup by themselves (up to 5.4): refaults
/// do not matter. The cost is that of the target in any case.
fn look_at_own<T: Trace>(
    core: &Core<T>,
    lru: &Lru,
    memcg: MemcgId,
    node: NodeId,
    sc: &ScanControl,
) -> AtTarget {
    let lruvec = lru.lruvec(memcg, node);
    let size = |list| lruvec.size(list, sc.reclaim_idx);
    let (inactive_anon, inactive_file) = (size(LruList::InactiveAnon), size(LruList::InactiveFile));
    let anon_low = is_anon_low(inactive_anon, size(LruList::ActiveAnon));
    let file_low = inactive_is_low(core.rules().file_balance, inactive_file, size(LruList::ActiveFile));
    let tiny = sc.is_global() && is_file_tiny(core, lru, node);
    AtTarget {
        may_deactivate_anon: anon_low,
        cache_trim: !file_low && (inactive_file >> sc.priority) > 0 && !sc.no_cache_trim,
        file_is_tiny: tiny && !anon_low && (inactive_anon >> sc.priority) > 0,
        cost: lru.lruvec(sc.target, node).costs().cost,
    }
}

/// Whether all file pages and all free ones of a node together are too few for its high marks.
fn is_file_tiny<T: Trace>(core: &Core<T>, lru: &Lru, node: NodeId) -> bool {
    let file = lru.node_pages(LruList::InactiveFile, node) + lru.node_pages(LruList::ActiveFile, node);
    let zones = || core.alloc.nodes()[node.index()].zones.iter().map(|&id| core.alloc.zone(id));
    let free: u64 = zones().map(|zone| zone.free_pages().0).sum();
    let high: u64 = zones().map(|zone| zone.watermarks.mark(Mark::High)).sum();
    file + free <= high
}

/// Whether active anonymous pages of `memcg` are to be aged although nobody scans them (SWAP 1.6).
pub(super) fn anon_wants_aging<T: Trace>(
    core: &Core<T>,
    lru: &Lru,
    memcg: MemcgId,
    node: NodeId,
    sc: &ScanControl,
) -> bool {
    if !can_age_anon(core) {
        return false;
    }
    let lruvec = lru.lruvec(memcg, node);
    let of = |list: LruList| match core.rules().aging {
        Aging::Root => core.cgroups.reclaim_stat(memcg, node, list.stat()),
        Aging::PerCgroup => lruvec.size(list, sc.reclaim_idx),
    };
    is_anon_low(of(LruList::InactiveAnon), of(LruList::ActiveAnon))
}

/// Whether so many inactive anonymous pages are too few for so many active ones: by memory size in all
/// kernels.
pub(super) fn is_anon_low(inactive: u64, active: u64) -> bool {
    inactive_is_low(FileBalance::ByMemorySize, inactive, active)
}

/// Whether so many inactive pages are too few for so many active ones, which are scanned then (MECHANISMS
/// 6.4). By memory size the ratio is 1 below 1 GiB and grows with the square root of the size.
pub(super) fn inactive_is_low(balance: FileBalance, inactive: u64, active: u64) -> bool {
    const PAGES_PER_GIB: u64 = 1 << 18;
    match balance {
        FileBalance::Always => true,
        FileBalance::MoreThanInactive => active > inactive,
        FileBalance::ByMemorySize => {
            let gib = (inactive + active) / PAGES_PER_GIB;
            let ratio = if gib == 0 { 1 } else { (10 * gib).isqrt() };
            inactive * ratio < active
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use std_alloc::vec::Vec;

    use units::Seed;

    /// Pages of a list of `size` that are scanned at each of these priorities.
    fn at_priorities(weights: Weights, is_file: bool, size: u64, priorities: &[u8]) -> Vec<u64> {
        priorities.iter().map(|&priority| weights.part(is_file, size >> priority)).collect()
    }

    #[test]
    fn without_costs_swappiness_alone_divides() {
        let weights = Weights::by_cost(60, [0, 0]);
        assert_eq!(weights, Weights { anon: 60, file: 140, whole: 200 });
        // SWAP 9.1: of purely anonymous memory, too, three tenths: 7.3 thousand pages of 24,500 down to
        // priority 1.
        let down: Vec<u8> = (1..=12).collect();
        assert_eq!(at_priorities(weights, false, 24_500, &down).iter().sum::<u64>(), 7_341);
    }

    #[test]
    fn a_few_pages_swapped_out_and_no_file_read_leave_anonymous_pages_less_than_a_fifth() {
        // SWAP 9.1: 58 pages were written, none of a file came back.
        let weights = Weights::by_cost(60, [58, 0]);
        assert_eq!((weights.anon, weights.file), (89, 415));
        let scans = at_priorities(weights, false, 24_463, &[12, 11, 10, 9, 8, 7]);
        assert_eq!((scans.iter().sum(), scans), (62_u64, [0, 1, 4, 8, 16, 33].to_vec()));
    }

    #[test]
    fn refaults_of_files_alone_double_the_weight_of_anonymous_pages() {
        // SWAP 9.3: about 30 : 285, a little less than a tenth.
        let weights = Weights::by_cost(10, [0, 10_000]);
        assert_eq!((weights.anon, weights.file), (29, 284));
        assert_eq!(weights.part(false, 100_000), 9_265);
        assert_eq!(Weights::by_cost(200, [0, 10_000]).file, 0, "nothing of files");
        assert_eq!(Weights::by_cost(0, [10_000, 0]).anon, 0);
    }

    #[test]
    fn no_cost_gives_a_kind_more_than_two_thirds() {
        let mut stream = Seed(5).stream("costs");
        for _ in 0..2000 {
            let size = 1 + stream.below(40);
            let costs = [0, 1].map(|_| stream.below(1 << size));
            let even = Weights::by_cost(100, costs);
            let [anon, file] = [false, true].map(|is_file| even.part(is_file, 3_000_000));
            // Rounding down costs a weight one in a hundred at most.
            assert!(anon.min(file) > 990_000 && anon.max(file) < 2_010_000, "{costs:?}: {anon} {file}");
            let swappiness = stream.below(201);
            let weights = Weights::by_cost(swappiness, costs);
            assert!(weights.whole > 0, "never both 0");
            let parts = weights.part(false, 1 << 36) + weights.part(true, 1 << 36);
            assert!(parts <= 1 << 36 && (1 << 36) - parts <= 1, "all of it but for rounding");
            let (cheap, dear) =
                if costs[0] < costs[1] { (even.anon, even.file) } else { (even.file, even.anon) };
            assert!(cheap >= dear, "what costs less is scanned more: {costs:?}");
        }
    }

    #[test]
    fn up_to_5_7_pages_that_go_back_to_the_active_list_are_spared() {
        let costs = ScanCosts { scanned: [1000, 1000], rotated: [1000, 100], ..ScanCosts::default() };
        let weights = Weights::by_rotations(60, &costs);
        assert_eq!(weights, Weights { anon: 60, file: 1_387, whole: 1_448 });
        assert_eq!(weights.part(false, 14_480), 600);
        assert_eq!(
            Weights::by_rotations(100, &ScanCosts::default()),
            Weights { anon: 100, file: 100, whole: 201 }
        );
        let mut stream = Seed(6).stream("rotations");
        for _ in 0..2000 {
            let [first, second] = [0, 1].map(|_| stream.below(1 << 36));
            let costs = ScanCosts {
                scanned: [first, second],
                rotated: [stream.below(first + 1), stream.below(second + 1)],
                ..ScanCosts::default()
            };
            let weights = Weights::by_rotations(stream.below(101), &costs);
            let parts = weights.part(false, 1 << 36) + weights.part(true, 1 << 36);
            assert!(weights.anon + weights.file > 0 && parts <= 1 << 36, "{weights:?}");
        }
    }

    #[test]
    fn of_a_removed_cgroup_the_last_page_is_scanned_too() {
        let weights = Weights::by_cost(60, [0, 0]);
        let scan =
            |online| [false, true].map(|is_file| ScanBalance::Fraction(weights).scan(is_file, 1, online));
        assert_eq!((scan(true), scan(false)), ([0, 0], [1, 1]));
        for (balance, scans) in
            [(ScanBalance::File, [0, 9]), (ScanBalance::Anon, [9, 0]), (ScanBalance::Equal, [9, 9])]
        {
            assert_eq!([false, true].map(|is_file| balance.scan(is_file, 9, true)), scans, "{balance:?}");
        }
    }

    fn low_by_size(inactive: u64, active: u64) -> bool {
        inactive_is_low(FileBalance::ByMemorySize, inactive, active)
    }

    #[test]
    fn the_inactive_list_may_shrink_as_memory_grows() {
        let gib = |n: u64| n << 18;
        assert!(low_by_size(99, 100));
        assert!(!low_by_size(100, 100));
        // 10 GiB: ratio 10. A tenth of the active list is enough.
        assert!(low_by_size(gib(1) - 1, gib(10)));
        assert!(!low_by_size(gib(1), gib(10)));
    }

    #[test]
    fn up_to_4_6_memory_of_any_size_wants_as_many_inactive_pages_as_active_ones() {
        for size in [1, 1 << 18, 1 << 22] {
            assert!(!inactive_is_low(FileBalance::MoreThanInactive, size, size));
            assert!(inactive_is_low(FileBalance::MoreThanInactive, size, size + 1));
            assert!(inactive_is_low(FileBalance::Always, size, 0), "up to 2.6.30 nothing was compared");
        }
    }

    #[test]
    fn the_ratio_of_the_lists_is_the_root_of_ten_times_their_gigabytes() {
        // The least inactive pages that are enough, of all pages in GiB: active / ratio.
        for (gib, ratio) in [(1_u64, 3), (2, 4), (3, 5), (9, 9), (10, 10), (100, 31), (1024, 101)] {
            let total = gib << 18;
            let enough = total.div_ceil(ratio + 1);
            assert!(!low_by_size(enough, total - enough), "{total} pages");
            assert!(low_by_size(enough - 1, total - (enough - 1)), "{total} pages");
        }
        // One page less than 1 GiB: as many inactive as active ones.
        assert!(low_by_size((1 << 17) - 1, 1 << 17));
        assert!(!low_by_size(1 << 17, 1 << 17), "a page more: a third is enough");
        assert!(!low_by_size(0, 0));
    }
}
