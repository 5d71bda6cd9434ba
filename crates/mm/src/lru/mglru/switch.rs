//! The multi-gen LRU on and off, at boot and while the machine runs (`/sys/kernel/mm/lru_gen/enabled`;
//! MGLRU 8).
//!
//! Pages move list by list, the oldest first, so that their order stays: active ones to the youngest generation
//! and others as [`Gens::placement`] says; back by what statistics count as active. Left out: that both ways run
//! at once while lists are emptied. Neighbours: [`super::state`]; the rule of the kernel is what is switched.

use std_alloc::boxed::Box;
use std_alloc::vec::Vec;

use units::Pfn;

use crate::base::event::Trace;
use crate::base::frame::PageFlags;
use crate::core::Core;
use crate::lru::lists::Lru;
use crate::lru::mglru::state::Gens;
use crate::version::rules::LruKind;

impl Lru {
    /// Lets lists be as the rules say now: moves every page if they are of another kind.
    pub(crate) fn follow_rules<T: Trace>(&mut self, core: &mut Core<T>) {
        let wants = core.rules().lru == LruKind::Generations;
        if wants == self.fresh.gens.is_some() {
            return;
        }
        let (active, inactive): (Vec<Pfn>, Vec<Pfn>) = self.take_all(core);
        self.fresh.gens = wants.then(|| Box::new(Gens::new(core.rules())));
        for lruvec in &mut self.lruvecs {
            lruvec.gens.clone_from(&self.fresh.gens);
        }
        for (pages, flag) in [(inactive, PageFlags::NONE), (active, PageFlags::ACTIVE)] {
            for pfn in pages {
                core.alloc.frames.set_flags(pfn, flag);
                self.insert(core, pfn);
            }
        }
    }

    /// Takes every evictable page off its list, the oldest first: active ones and others.
    fn take_all<T: Trace>(&mut self, core: &mut Core<T>) -> (Vec<Pfn>, Vec<Pfn>) {
        let (mut active, mut inactive) = (Vec::new(), Vec::new());
        let spots: Vec<_> =
            core.cgroups.ids().flat_map(|memcg| core.nodes().map(move |node| (memcg, node))).collect();
        for (memcg, node) in spots {
            for (pfn, is_active) in self.listed(core, memcg, node) {
                self.remove(core, pfn);
                core.alloc.frames.clear_flags(pfn, PageFlags::ACTIVE);
                if is_active { active.push(pfn) } else { inactive.push(pfn) }
            }
        }
        (active, inactive)
    }
}
