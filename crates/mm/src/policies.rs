//! Wires of policies for file pages ([`crate::lru::cache_ext::hooks`]).

use core::ops::Range;

use std_alloc::boxed::Box;
use std_alloc::string::String;

use units::CpuId;

use crate::base::event::Trace;
use crate::base::ids::{MappingId, MemcgId};
use crate::lru::cache_ext::hooks::EvictionPolicy;
use crate::lru::cache_ext::lists::Place;
use crate::memory::Memory;

impl<T: Trace> Memory<T> {
    /// Lets the file pages of every cgroup be evicted by a policy of its own, a copy of this one. To be called after
    /// boot, before a page is read.
    pub fn attach_policy(&mut self, pattern: Box<dyn EvictionPolicy>) {
        self.lru.attach(&self.core, pattern);
    }

    /// Why a policy gave up, if one did.
    pub fn policy_failure(&self) -> Option<String> {
        self.lru.attached()?.failure()
    }

    /// How many of the first of these pages of a file are missing and shall not come into the cache, by the policy of
    /// `memcg` on the node of `cpu`.
    pub fn refused_pages(&mut self, cpu: CpuId, memcg: MemcgId, file: MappingId, pages: Range<u32>) -> u32 {
        self.first_pages(cpu, memcg, file, pages, true)
    }

    /// How many of the first of these pages of a file may be read ahead: those before one that [`Self::refused_pages`]
    /// would count.
    pub fn admitted_pages(&mut self, cpu: CpuId, memcg: MemcgId, file: MappingId, pages: Range<u32>) -> u32 {
        self.first_pages(cpu, memcg, file, pages, false)
    }

    fn first_pages(
        &mut self,
        cpu: CpuId,
        memcg: MemcgId,
        file: MappingId,
        pages: Range<u32>,
        refused: bool,
    ) -> u32 {
        if !self.lru.has_policies() {
            return if refused { 0 } else { pages.end - pages.start };
        }
        let node = self.core.alloc.node_of(cpu);
        let is_alike = |&index: &u32| {
            let is_missing = self.cache.find(file, index).is_vacant();
            (is_missing && !self.lru.admits(memcg, node, Place { file, index })) == refused
        };
        u32::try_from(pages.take_while(is_alike).count()).expect("a part of a file")
    }
}
