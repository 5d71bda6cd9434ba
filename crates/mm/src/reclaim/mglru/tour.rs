//! Whom a pass visits: the cgroup tree, or the memcg LRU where global reclaim goes by that (MGLRU 5.7, 5.8).
//!
//! Neighbours: [`super::memcg_lru`]; [`crate::reclaim::pass`] for a walk over the tree, [`super::visit`] for what
//! is done there.

use units::{NodeId, Stream};

use crate::base::event::{Reason, Trace, TraceEvent};
use crate::base::ids::MemcgId;
use crate::cgroup::walk::Walk;
use crate::core::Core;
use crate::lru::lists::{Lru, LruList};
use crate::lru::mglru::state::Kind;
use crate::pages::anon::AnonMaps;
use crate::pages::cache::PageCache;
use crate::reclaim::mglru::choice::{self, BATCH};
use crate::reclaim::mglru::memcg_lru::{BINS, MemcgLru, Rotate};
use crate::reclaim::mglru::ttl::is_young;
use crate::reclaim::mglru::visit::tour_has_enough;
use crate::reclaim::run::{DEF_PRIORITY, Outcome, Reclaimer, ScanControl};
use crate::reclaim::state::Reclaim;
use crate::version::rules::{GenWalk, LruKind};

/// The visits of a pass.
#[derive(Debug, Clone)]
pub enum Tour {
    /// Over the tree.
    Tree(Walk),
    /// Over the old generation of the memcg LRU.
    Bins(BinTour),
}

/// A pass over the memcg LRU of a node.
#[derive(Debug, Clone)]
pub struct BinTour {
    node: NodeId,
    generation: usize,
    first: usize,
    /// Bins that are done.
    done: usize,
    /// Place in the current bin.
    place: usize,
    /// Cgroups looked at since [`Tour::take_steps`].
    steps: u64,
}

impl Tour {
    /// How many cgroups were visited or passed over since the last call.
    pub fn take_steps(&mut self) -> u64 {
        match self {
            Self::Tree(walk) => walk.take_steps(),
            Self::Bins(tour) => core::mem::take(&mut tour.steps),
        }
    }
}

impl Reclaim {
    /// Gives each node its memcg LRU, whose lots are drawn from `lots`.
    pub fn make_memcg_lrus<T: Trace>(&mut self, core: &Core<T>, lots: impl Fn(NodeId) -> Stream) {
        self.memcg_lrus = core.nodes().map(|node| MemcgLru::new(lots(node))).collect();
        for memcg in core.cgroups.ids() {
            self.add_to_memcg_lrus(memcg);
        }
    }

    pub(crate) fn add_to_memcg_lrus(&mut self, memcg: MemcgId) {
        self.memcg_lrus.iter_mut().for_each(|lru| lru.add(memcg));
    }

    /// A cgroup goes offline: it is visited first.
    pub(crate) fn offline_in_memcg_lrus(&mut self, memcg: MemcgId) {
        self.memcg_lrus.iter_mut().for_each(|lru| lru.rotate(memcg, Rotate::Old));
    }

    /// Starts a pass over `node`.
    pub fn begin_tour<T: Trace>(
        &mut self,
        core: &mut Core<T>,
        lru: &mut Lru,
        cache: &mut PageCache,
        anon: &mut AnonMaps,
        node: NodeId,
        sc: &mut ScanControl,
    ) -> Tour {
        let walk = self.begin_pass(core, lru, node, sc);
        if core.rules().lru != LruKind::Generations {
            return Tour::Tree(walk);
        }
        if core.rules().gen_walk == GenWalk::Tree || !sc.is_global() {
            if sc.reclaimer == Reclaimer::Kswapd {
                make_new_generations(core, lru, cache, anon, node, sc);
            }
            return Tour::Tree(walk);
        }
        if sc.reclaimer == Reclaimer::Kswapd {
            for memcg in core.cgroups.subtree(MemcgId::ROOT).to_vec() {
                let _ = core.cgroups.protection(MemcgId::ROOT, memcg); // For those who go by it later.
            }
        }
        set_priority(core, lru, node, sc);
        let bins = &mut self.memcg_lrus[node.index()];
        let (generation, first) = (bins.old(), bins.draw());
        // A pass that must not write, as for a boost, returns at once.
        let done = if sc.may_writepage { 0 } else { BINS };
        Tour::Bins(BinTour { node, generation, first, done, place: 0, steps: 0 })
    }

    /// The next cgroup to visit; none when the pass is over.
    pub fn next_visit<T: Trace>(
        &mut self,
        core: &mut Core<T>,
        lru: &Lru,
        tour: &mut Tour,
        visited: Option<MemcgId>,
        sc: &mut ScanControl,
    ) -> Option<MemcgId> {
        let tour = match tour {
            Tour::Tree(walk) => {
                let aged = sc.gens.outcome == Outcome::Aged && core.rules().gen_walk == GenWalk::Bins;
                if let Some(memcg) = visited.filter(|_| aged && core.rules().lru == LruKind::Generations) {
                    self.memcg_lrus[walk.node().index()].rotate(memcg, Rotate::Young);
                    sc.gens.outcome = Outcome::Evicted;
                }
                return self.next_memcg(core, walk, visited, sc);
            }
            Tour::Bins(tour) => tour,
        };
        if let Some(memcg) = visited {
            self.settle(core, lru, tour, memcg, sc);
            if tour_has_enough(core, tour.node, sc) {
                return None;
            }
        }
        while tour.done < BINS {
            let bins = &mut self.memcg_lrus[tour.node.index()];
            let bin = (tour.first + tour.done) % BINS;
            let Some(memcg) = bins.get(tour.generation, bin, tour.place) else {
                (tour.done, tour.place) = (tour.done + 1, 0);
                continue;
            };
            tour.steps += 1;
            match protected(core, bins, memcg, tour.node, sc) {
                Some(to) => bins.rotate(memcg, to),
                None => return Some(memcg),
            }
        }
        None
    }

    /// After a visit: where the cgroup goes.
    fn settle<T: Trace>(
        &mut self,
        core: &Core<T>,
        lru: &Lru,
        tour: &mut BinTour,
        memcg: MemcgId,
        sc: &ScanControl,
    ) {
        let online = core.cgroups[memcg].online;
        let aged = sc.gens.outcome == Outcome::Aged;
        let bins = &mut self.memcg_lrus[tour.node.index()];
        let to = match () {
            () if aged && online => Rotate::Young,
            () if !aged && choice::is_sizable(core, lru, (memcg, tour.node), sc) => {
                tour.place += 1;
                return;
            }
            () if bins.was_at_tail(memcg) => Rotate::Young,
            () => Rotate::Tail,
        };
        bins.rotate(memcg, to);
    }
}

/// Where a cgroup goes instead of being visited, by the protection that kswapd reckoned last: none if it is to be
/// visited.
fn protected<T: Trace>(
    core: &mut Core<T>,
    bins: &MemcgLru,
    memcg: MemcgId,
    nid: NodeId,
    sc: &ScanControl,
) -> Option<Rotate> {
    let (group, scan) = (&core.cgroups[memcg], sc.scan_for());
    let usage = group.memory.usage;
    let (below_min, below_low) = (usage <= group.effective_min, usage <= group.effective_low);
    let (to, reason) = match () {
        () if usage == 0 || memcg == MemcgId::ROOT || !(below_min || below_low) => return None,
        () if below_min => (Some(Rotate::Young), Reason::BelowMin),
        () if !bins.was_at_tail(memcg) => (Some(Rotate::Tail), Reason::BelowLow),
        () => (None, Reason::LowOverridden),
    };
    if to.is_none() {
        core.cgroups.count_event(memcg, |events| &mut events.low);
    }
    core.tell(|_| TraceEvent::MemcgProtected { memcg, nid, reason, scan });
    to
}

/// Up to 6.2 kswapd makes new generations where they are due, before a pass, unless the one before it did without.
fn make_new_generations<T: Trace>(
    core: &mut Core<T>,
    lru: &mut Lru,
    cache: &mut PageCache,
    anon: &mut AnonMaps,
    node: NodeId,
    sc: &mut ScanControl,
) {
    if !core::mem::replace(&mut sc.gens.makes_new, true) {
        return;
    }
    for memcg in core.cgroups.subtree(MemcgId::ROOT).to_vec() {
        let _ = core.cgroups.protection(MemcgId::ROOT, memcg);
        let group = &core.cgroups[memcg];
        if memcg != MemcgId::ROOT && group.memory.usage <= group.effective_min {
            continue;
        }
        let types = choice::types_of(core, memcg, sc);
        let gens = lru.lruvec(memcg, node).gens().expect("a kernel with generations");
        let due = gens.needs_aging(types, sc.priority == DEF_PRIORITY);
        if due && !is_young(core, lru, (memcg, node), sc.gens.now) {
            let (young, rule) = (cache.young_of(core, lru, (memcg, node)), core.rules().advised_access);
            lru.age(core, (memcg, node), types, sc.gens.now, young, |id| anon.was_accessed(id, rule));
        }
    }
}

/// How hard the first pass tries that wants much: as hard as it must for its target, priority 6 at most
/// (`set_initial_priority`).
fn set_priority<T: Trace>(core: &Core<T>, lru: &Lru, node: NodeId, sc: &mut ScanControl) {
    if sc.priority != DEF_PRIORITY || sc.nr_to_reclaim < BATCH {
        return;
    }
    let mut pages = lru.node_pages(LruList::InactiveFile, node);
    if choice::types_of(core, MemcgId::ROOT, sc).has(Kind::Anon) {
        pages += lru.node_pages(LruList::InactiveAnon, node);
    }
    let bits = |number: u64| u64::BITS - number.leading_zeros();
    let wanted = (bits(pages) as i32) - 1 - (bits(sc.nr_to_reclaim - 1) as i32);
    sc.priority = u8::try_from(wanted.clamp(6, i32::from(DEF_PRIORITY))).expect("6 to 12");
}
