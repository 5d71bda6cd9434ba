//! Where policies for file pages hear of what happens to these. Without one, all of it is one comparison.
//!
//! Under the multi-gen LRU a policy hears of pages and is not asked. Next: `reclaim/proposed.rs`, which asks.

use std_alloc::boxed::Box;
use std_alloc::vec::Vec;

use units::{NodeId, Pfn};

use crate::base::event::Trace;
use crate::base::frame::{FrameState, Frames, PageFlags};
use crate::base::ids::MemcgId;
use crate::base::layout::ZoneKind;
use crate::core::Core;
use crate::lru::cache_ext::attached::Attached;
use crate::lru::cache_ext::hooks::EvictionPolicy;
use crate::lru::cache_ext::lists::Place;
use crate::lru::lists::Lru;

/// Whether policies are told of a page: it is one of a file.
fn is_told_of(frames: &Frames, pfn: Pfn) -> bool {
    !frames.is_anon(pfn) && !frames.flags(pfn).has(PageFlags::SWAP_BACKED)
}

impl Lru {
    /// Gives each cgroup on each node a copy of `pattern` for its file pages, of which there are none yet.
    pub(crate) fn attach<T: Trace>(&mut self, core: &Core<T>, pattern: Box<dyn EvictionPolicy>) {
        self.policies = Some(Box::new(Attached::new(pattern, core.alloc.frames.len())));
        self.begin_policies(core);
    }

    /// Lets the policies of new cgroups begin.
    pub(crate) fn begin_policies<T: Trace>(&mut self, core: &Core<T>) {
        if let Some(attached) = &mut self.policies {
            attached.begin(&core.alloc.frames, self.lruvecs.len());
        }
    }

    /// Whether there are policies.
    #[inline(always)]
    pub(crate) const fn has_policies(&self) -> bool {
        self.policies.is_some()
    }

    /// The number that policies know the lists of `memcg` on `node` by.
    pub(crate) fn group(&self, memcg: MemcgId, node: NodeId) -> u32 {
        u32::try_from(self.index(memcg, node)).expect("few cgroups")
    }

    /// What policies know.
    pub(crate) fn attached(&self) -> Option<&Attached> {
        self.policies.as_deref()
    }

    /// Pages have come into the cache or into memory.
    #[inline(always)]
    pub(crate) fn tell_added<T: Trace>(&mut self, core: &Core<T>, pages: &[Pfn]) {
        if self.policies.is_some() {
            self.do_tell_added(core, pages);
        }
    }

    #[cold]
    fn do_tell_added<T: Trace>(&mut self, core: &Core<T>, pages: &[Pfn]) {
        let frames = &core.alloc.frames;
        for &pfn in pages.iter().filter(|&&pfn| is_told_of(frames, pfn)) {
            let group = self.index(core.page_memcg(pfn), core.page_place(pfn).1);
            if let Some(attached) = &mut self.policies {
                attached.added(frames, pfn, group);
            }
        }
    }

    /// A page is accessed.
    #[inline(always)]
    pub(crate) fn tell_accessed<T: Trace>(&mut self, core: &Core<T>, pfn: Pfn) {
        if self.policies.is_some() {
            self.do_tell_accessed(core, pfn);
        }
    }

    #[cold]
    fn do_tell_accessed<T: Trace>(&mut self, core: &Core<T>, pfn: Pfn) {
        if let Some(attached) = &mut self.policies {
            attached.accessed(&core.alloc.frames, pfn);
        }
    }

    /// A page is about to leave the cache or memory.
    #[inline(always)]
    pub(crate) fn tell_removed<T: Trace>(&mut self, core: &Core<T>, pfn: Pfn) {
        if self.policies.is_some() {
            self.do_tell_removed(core, pfn);
        }
    }

    #[cold]
    fn do_tell_removed<T: Trace>(&mut self, core: &Core<T>, pfn: Pfn) {
        if let Some(attached) = &mut self.policies {
            attached.removed(&core.alloc.frames, pfn);
        }
    }

    /// A page moves to another frame.
    pub(crate) fn tell_moved(&mut self, old: Pfn, new: Pfn) {
        if let Some(attached) = &mut self.policies {
            attached.moved(old, new);
        }
    }

    /// The pages of a cgroup become its heir's.
    pub(crate) fn tell_handed_over<T: Trace>(&mut self, core: &Core<T>, memcg: MemcgId, heir: MemcgId) {
        for node in core.nodes() {
            let [from, to] = [memcg, heir].map(|memcg| self.index(memcg, node));
            if let Some(attached) = &mut self.policies {
                attached.handed_over(&core.alloc.frames, from, to);
            }
        }
    }

    /// Whether a page that a task of `memcg` reads shall come into the cache: the policy of its cgroup on `node`, where
    /// its memory would be, is asked.
    pub(crate) fn admits(&mut self, memcg: MemcgId, node: NodeId, place: Place) -> bool {
        let group = self.index(memcg, node);
        self.policies.as_mut().is_none_or(|attached| attached.admits(group, place))
    }

    /// Takes the candidates of a policy off the kernel's lists, up to `wanted`, those of zones up to `highest_zoneidx`
    /// alone. Their state becomes `Isolated`.
    pub(crate) fn take_proposed<T: Trace>(
        &mut self,
        core: &mut Core<T>,
        (memcg, node): (MemcgId, NodeId),
        highest_zoneidx: ZoneKind,
        wanted: u64,
        taken: &mut Vec<Pfn>,
    ) {
        let (group, first) = (self.index(memcg, node), taken.len());
        let Some(attached) = &mut self.policies else { return };
        attached.ask(&core.alloc.frames, group, wanted, |pfn| taken.push(pfn));
        let mut next = first;
        while let Some(&pfn) = taken.get(next) {
            let (flags, state) = (core.alloc.frames.flags(pfn), core.alloc.frames.state(pfn));
            let is_listed = state == FrameState::Lru && !flags.has(PageFlags::UNEVICTABLE);
            if is_listed && core.page_place(pfn).0 <= highest_zoneidx {
                self.remove(core, pfn);
                next += 1;
            } else {
                taken.remove(next);
            }
        }
    }
}
