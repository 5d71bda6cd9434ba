//! The policies of a machine: one for each cgroup on each node, all of a kind. Next: [`super::told`], who tells them.

use std_alloc::boxed::Box;
use std_alloc::string::String;
use std_alloc::vec::Vec;

use units::Pfn;

use crate::base::frame::Frames;
use crate::base::ids::MappingId;
use crate::lru::cache_ext::hooks::EvictionPolicy;
use crate::lru::cache_ext::lists::{CANDIDATES_MAX, Eviction, Folio, Lists, Place, Registry};

/// Policies, and the folios that they know.
#[derive(Debug, Clone)]
pub(crate) struct Attached {
    /// What each of them is a copy of.
    pattern: Box<dyn EvictionPolicy>,
    /// By lruvec.
    policies: Vec<Box<dyn EvictionPolicy>>,
    pub(crate) registry: Registry,
    /// Empty between steps.
    candidates: Vec<Folio>,
}

impl Attached {
    pub(super) fn new(pattern: Box<dyn EvictionPolicy>, frames: usize) -> Self {
        let registry = Registry::new(frames);
        Self { pattern, policies: Vec::new(), registry, candidates: Vec::new() }
    }

    /// Lets policies begin until there are so many.
    pub(super) fn begin(&mut self, frames: &Frames, lruvecs: usize) {
        while self.policies.len() < lruvecs {
            let group = u32::try_from(self.policies.len()).expect("few cgroups");
            let mut policy = self.pattern.clone();
            policy.init(&mut Lists::new(&mut self.registry, frames, group));
            self.policies.push(policy);
        }
    }

    pub(super) fn added(&mut self, frames: &Frames, pfn: Pfn, group: usize) {
        let place = Place { file: MappingId(frames.owner(pfn)), index: frames.index(pfn) };
        let number = u32::try_from(group).expect("few cgroups");
        let folio = self.registry.add(pfn, number, place);
        self.policies[group].folio_added(&mut Lists::new(&mut self.registry, frames, number), folio);
    }

    pub(super) fn accessed(&mut self, frames: &Frames, pfn: Pfn) {
        let Some((folio, group)) = self.known(pfn) else { return };
        let lists = &mut Lists::new(&mut self.registry, frames, group);
        self.policies[group as usize].folio_accessed(lists, folio);
    }

    pub(super) fn removed(&mut self, frames: &Frames, pfn: Pfn) {
        let Some((folio, group)) = self.known(pfn) else { return };
        let lists = &mut Lists::new(&mut self.registry, frames, group);
        self.policies[group as usize].folio_removed(lists, folio);
        self.registry.forget(folio);
    }

    pub(super) fn moved(&mut self, old: Pfn, new: Pfn) {
        if let Some(folio) = self.registry.at(old) {
            self.registry.moved(folio, new);
        }
    }

    /// Folios of one lruvec become new ones of another.
    pub(super) fn handed_over(&mut self, frames: &Frames, from: usize, to: usize) {
        let [from, group] = [from, to].map(|group| u32::try_from(group).expect("few cgroups"));
        for folio in self.registry.hand_over(from, group) {
            self.policies[to].folio_added(&mut Lists::new(&mut self.registry, frames, group), folio);
        }
    }

    /// Asks the policy of an lruvec for candidates: `each` hears of the frame of every one that it has, once.
    pub(super) fn ask(&mut self, frames: &Frames, group: usize, wanted: u64, mut each: impl FnMut(Pfn)) {
        let number = u32::try_from(group).expect("few cgroups");
        let wanted = u32::try_from(wanted).map_or(CANDIDATES_MAX, |wanted| wanted.min(CANDIDATES_MAX));
        let mut eviction = Eviction::new(wanted, core::mem::take(&mut self.candidates));
        self.policies[group].evict_folios(&mut Lists::new(&mut self.registry, frames, number), &mut eviction);
        let mut candidates = eviction.into_candidates();
        for (count, folio) in candidates.iter().enumerate() {
            let known = self.registry.known(*folio).filter(|&(_, of)| of == number);
            if let Some((pfn, _)) = known.filter(|_| !candidates[..count].contains(folio)) {
                each(pfn);
            }
        }
        candidates.clear();
        self.candidates = candidates;
    }

    /// Why one of them gave up, if one did.
    pub(crate) fn failure(&self) -> Option<String> {
        self.pattern.failure()
    }

    pub(super) fn admits(&mut self, group: usize, place: Place) -> bool {
        self.policies[group].admit_folio(place)
    }

    fn known(&self, pfn: Pfn) -> Option<(Folio, u32)> {
        let folio = self.registry.at(pfn)?;
        self.registry.known(folio).map(|(_, group)| (folio, group))
    }
}
