//! How long generations are to last: `min_ttl_ms` (MGLRU 8).
//!
//! Where no cgroup has pages that kswapd may take and that are older than that, memory is too small for what is in
//! use: a process is killed. Nobody refuses to evict younger pages. Neighbours: [`super::tour`];
//! the driver of kswapd kills.

use units::{Nanos, NodeId};

use crate::base::event::Trace;
use crate::base::ids::MemcgId;
use crate::base::sysctl::Sysctl;
use crate::core::Core;
use crate::lru::lists::Lru;
use crate::lru::mglru::state::Kind;
use crate::reclaim::mglru::choice;
use crate::reclaim::run::ScanControl;
use crate::version::rules::{GenForm, LruKind};

/// Whether the oldest generation of files of a cgroup is younger than generations are to last.
pub(super) fn is_young<T: Trace>(
    core: &Core<T>,
    lru: &Lru,
    (memcg, node): (MemcgId, NodeId),
    now: Nanos,
) -> bool {
    let ttl = Nanos::from_millis(core.alloc.sysctls().get(Sysctl::LruGenMinTtlMs));
    let gens = lru.lruvec(memcg, node).gens().expect("a kernel with generations");
    ttl > Nanos::ZERO && gens.oldest_born(Kind::File) + ttl > now
}

/// Whether kswapd, about to begin a pass over `node`, finds no generation that has lasted long enough.
pub fn all_too_young<T: Trace>(
    core: &Core<T>,
    lru: &Lru,
    node: NodeId,
    sc: &ScanControl,
    now: Nanos,
) -> bool {
    let rules = core.rules();
    if rules.lru != LruKind::Generations || core.alloc.sysctls().get(Sysctl::LruGenMinTtlMs) == 0 {
        return false;
    }
    if rules.gen_form == GenForm::First && sc.order.0 > 0 {
        return false;
    }
    core.cgroups.ids().all(|memcg| {
        let group = &core.cgroups[memcg];
        let below_min = memcg != MemcgId::ROOT && group.memory.usage <= group.effective_min;
        below_min
            || !choice::is_sizable(core, lru, (memcg, node), sc)
            || is_young(core, lru, (memcg, node), now)
    })
}
