//! Generations in order, pages where their flags say, and sizes of lists as they are.

use std_alloc::string::String;

use units::{NodeId, Pfn};

use crate::base::event::Trace;
use crate::base::frame::FrameState;
use crate::base::ids::MemcgId;
use crate::base::layout::ZoneKind;
use crate::base::violation::{Violation, ensure};
use crate::lru::lists::LruList;
use crate::lru::mglru::access;
use crate::lru::mglru::state::{Gens, Kind, MAX_GENS, MIN_GENS};
use crate::memory::Memory;
use crate::version::rules::{GenAccess, LruKind};

impl<T: Trace> Memory<T> {
    /// Checks the generations of one cgroup on one node; returns how many folios are on their lists.
    pub(super) fn check_generations(&self, memcg: MemcgId, node: NodeId) -> Result<u64, Violation> {
        let has = self.core.rules().lru == LruKind::Generations;
        let gens = self.lru.lruvec(memcg, node).gens();
        ensure!(gens.is_some() == has, "{memcg:?}: the rules say {has} to generations");
        let Some(gens) = gens else { return Ok(0) };
        for kind in Kind::ALL {
            let count = gens.generations(kind);
            ensure!((MIN_GENS..=MAX_GENS).contains(&count), "{kind:?} of {memcg:?} has {count} generations");
        }
        let ordered = gens.min_seq(Kind::Anon) <= gens.min_seq(Kind::File);
        let may_differ = self.core.rules().gen_access == GenAccess::Accesses;
        ensure!(ordered || may_differ, "files of {memcg:?} are behind its anonymous pages: {gens:?}");
        let mut listed = 0;
        for kind in Kind::ALL {
            let mut sizes = [[0; ZoneKind::COUNT]; MAX_GENS as usize];
            for generation in 0..MAX_GENS as usize {
                for zone in ZoneKind::ALL {
                    listed +=
                        self.check_generation(memcg, node, gens, kind, (generation, zone), &mut sizes)?;
                }
            }
            for active in [false, true] {
                let mut pages = [0; ZoneKind::COUNT];
                for (generation, size) in sizes.iter().enumerate() {
                    let said = gens.counts(generation, kind);
                    ensure!(
                        said == size,
                        "generation {generation} of {memcg:?}: {size:?} pages, says {said:?}"
                    );
                    if gens.is_active(generation) == active {
                        pages.iter_mut().zip(size).for_each(|(sum, pages)| *sum += pages);
                    }
                }
                self.check_sizes(memcg, node, LruList::of_kind(kind, active), pages)?;
            }
        }
        let memcg_lru = self.reclaim.memcg_lrus[node.index()].check(self.core.cgroups.ids().count());
        memcg_lru.map_err(|problem| Violation(String::from(problem)))?;
        Ok(listed)
    }

    /// One list; adds its pages to the sizes of their generations.
    fn check_generation(
        &self,
        memcg: MemcgId,
        node: NodeId,
        gens: &Gens,
        kind: Kind,
        (list, zone): (usize, ZoneKind),
        sizes: &mut [[u64; ZoneKind::COUNT]; MAX_GENS as usize],
    ) -> Result<u64, Violation> {
        let frames = &self.core.alloc.frames;
        let mut listed = 0;
        for pfn in gens.list(list, kind, zone).iter(frames) {
            listed += 1;
            self.check_place(memcg, node, pfn)?;
            let flags = frames.flags(pfn);
            let is_here = Kind::of(flags) == kind && self.core.page_place(pfn).0 == zone;
            ensure!(is_here, "{pfn:?} is on a list of {kind:?} in {zone:?}: {flags:?}");
            ensure!(access::listed(flags) == list, "{pfn:?} is on list {list} with {flags:?}");
            sizes[access::generation(flags)][zone as usize] += u64::from(frames.pages(pfn));
        }
        let said = u64::from(gens.list(list, kind, zone).len());
        ensure!(listed == said, "a list of {kind:?} has {listed} elements and says {said}");
        Ok(listed)
    }

    /// A page on a list of `memcg` on `node` says that it is there.
    pub(super) fn check_place(&self, memcg: MemcgId, node: NodeId, pfn: Pfn) -> Result<(), Violation> {
        let (state, (_, place)) = (self.core.alloc.frames.state(pfn), self.core.page_place(pfn));
        ensure!(state == FrameState::Lru, "{pfn:?} is on a list as {state:?}");
        ensure!(
            self.core.page_memcg(pfn) == memcg,
            "{pfn:?} is on a list of {memcg:?} but charged to {:?}",
            self.core.page_memcg(pfn)
        );
        ensure!(place == node, "{pfn:?} is on a list of {node:?}");
        Ok(())
    }

    /// A list, or what statistics make of generations, has as many pages as is said.
    pub(super) fn check_sizes(
        &self,
        memcg: MemcgId,
        node: NodeId,
        list: LruList,
        pages: [u64; ZoneKind::COUNT],
    ) -> Result<(), Violation> {
        let said = self.lru.lruvec(memcg, node).by_zone(list);
        ensure!(&pages == said, "{list:?} of {memcg:?} has {pages:?} pages and says {said:?}");
        let stat = self.core.cgroups.local_stat(memcg, node, list.stat());
        ensure!(
            stat == pages.iter().sum::<u64>(),
            "{} of {memcg:?} is {stat}, its list has {pages:?}",
            list.stat().name()
        );
        Ok(())
    }
}
