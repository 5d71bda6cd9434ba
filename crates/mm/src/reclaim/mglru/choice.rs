//! How much of a cgroup a visit of generations may take, and of which type (MGLRU 5.1, 5.6; MECHANISMS-510-72 11).
//!
//! Neighbours: [`super::visit`] goes by it; [`crate::lru::mglru::aging`] and the feedback of refaults know the
//! generations.

use units::NodeId;

use crate::base::event::Trace;
use crate::base::ids::MemcgId;
use crate::base::sysctl::Sysctl;
use crate::core::Core;
use crate::lru::lists::Lru;
use crate::lru::mglru::state::{Evictable, Gens, Kind, MIN_GENS};
use crate::reclaim::pass::{protection_from_scan, quota_of};
use crate::reclaim::run::{DEF_PRIORITY, Reclaimer, ScanControl};
use crate::reclaim::scan_balance::ANON_ONLY;
use crate::version::rules::{GenQuota, GenWalk};

/// Pages that a batch isolates (`MIN_LRU_BATCH`), and slots of swap below which a cgroup counts as having none.
pub const BATCH: u64 = 64;

/// What a visit may do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Quota {
    /// So many pages in all.
    Pages(u64),
    /// A new generation first, and then as many.
    AgeThen(u64),
    /// A new generation, and no more.
    AgeAndLeave,
    /// Nothing: kswapd makes new generations elsewhere.
    Leave,
}

/// How eagerly anonymous pages of `memcg` are taken: 0 is not at all, which is so without swap.
pub(super) fn swappiness<T: Trace>(core: &Core<T>, memcg: MemcgId, sc: &ScanControl) -> u64 {
    if !sc.may_swap || core.swap.free_for(&core.cgroups, memcg) < BATCH {
        return 0;
    }
    sc.swappiness.unwrap_or_else(|| core.alloc.sysctls().get(Sysctl::Swappiness))
}

/// The types that can be evicted at this swappiness.
pub(super) const fn types_at(swappiness: u64) -> Evictable {
    match swappiness {
        0 => Evictable::Files,
        ANON_ONLY => Evictable::Anon,
        _ => Evictable::Both,
    }
}

/// The types that can be evicted from a cgroup.
pub(super) fn types_of<T: Trace>(core: &Core<T>, memcg: MemcgId, sc: &ScanControl) -> Evictable {
    types_at(swappiness(core, memcg, sc))
}

/// Pages of the types that can be evicted.
pub(super) fn evictable(gens: &Gens, types: Evictable) -> u64 {
    types.kinds().map(|kind| gens.total(kind)).sum()
}

/// Whether a cgroup has enough for a pass at this priority.
pub(super) fn is_sizable<T: Trace>(
    core: &Core<T>,
    lru: &Lru,
    (memcg, node): (MemcgId, NodeId),
    sc: &ScanControl,
) -> bool {
    let gens = lru.lruvec(memcg, node).gens().expect("a kernel with generations");
    (evictable(gens, types_of(core, memcg, sc)) >> sc.priority) > 0
}

/// What a visit may do now (`get_nr_to_scan`). It is asked before each batch where quotas are reckoned anew.
pub(super) fn quota<T: Trace>(
    core: &Core<T>,
    lru: &Lru,
    (memcg, node): (MemcgId, NodeId),
    sc: &mut ScanControl,
) -> Quota {
    let gens = lru.lruvec(memcg, node).gens().expect("a kernel with generations");
    let (types, first) = (types_of(core, memcg, sc), sc.priority == DEF_PRIORITY);
    let total = evictable(gens, types);
    let (online, rules) = (core.cgroups[memcg].online, core.rules());
    let due = gens.needs_aging(types, first);
    if rules.gen_quota == GenQuota::Once {
        let protection = protection_from_scan(core, memcg, sc);
        let pages = if online { quota_of(core, memcg, total, protection, sc.priority) } else { total };
        return match (due, sc.is_global()) {
            (false, _) => Quota::Pages(pages),
            (true, _) if pages == 0 => Quota::Leave,
            (true, true) => Quota::AgeAndLeave,
            (true, false) => Quota::AgeThen(pages),
        };
    }
    let has_old = gens.oldest_evictable(types) + MIN_GENS <= gens.max_seq();
    let pages = if !online { total } else { total >> sc.priority };
    let at_hand = if has_old { pages } else { 0 };
    match (rules.gen_walk, sc.reclaimer) {
        _ if !due || (!online && has_old) => Quota::Pages(pages),
        _ if first => Quota::Pages(at_hand),
        (GenWalk::Tree, Reclaimer::Kswapd) => Quota::Leave,
        (GenWalk::Tree, _) => Quota::AgeThen(pages),
        (GenWalk::Bins, _) => Quota::AgeAndLeave,
    }
}

/// Which types to try at this swappiness, in order, each with the highest tier that is evicted.
pub(super) fn tries(gens: &Gens, swappiness: u64, once: bool) -> [Option<(Kind, usize)>; 2] {
    let of = |kind| (kind, gens.tier_limit(kind));
    let first = match swappiness {
        0 => return [Some(of(Kind::File)), None],
        ANON_ONLY => return [Some(of(Kind::Anon)), None],
        // Up to 6.13 anonymous generations do not fall behind.
        _ if !once && gens.min_seq(Kind::Anon) < gens.min_seq(Kind::File) => of(Kind::Anon),
        1 => of(Kind::File),
        200.. => of(Kind::Anon),
        swappiness => gens.choose(swappiness),
    };
    [Some(first), Some(of(first.0.other()))]
}
