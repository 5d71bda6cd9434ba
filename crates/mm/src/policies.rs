//! Wires of policies for file pages ([`crate::lru::cache_ext::hooks`]).

use std_alloc::boxed::Box;

use units::CpuId;

use crate::base::event::Trace;
use crate::base::ids::MemcgId;
use crate::lru::cache_ext::hooks::EvictionPolicy;
use crate::lru::cache_ext::lists::Place;
use crate::memory::Memory;

impl<T: Trace> Memory<T> {
    /// Lets the file pages of every cgroup be evicted by a policy of its own, a copy of this one. To be called after
    /// boot, before a page is read.
    pub fn attach_policy(&mut self, pattern: Box<dyn EvictionPolicy>) {
        self.lru.attach(&self.core, pattern);
    }

    /// Whether a page that a task of `memcg` on `cpu` reads shall come into the cache.
    pub fn admits(&mut self, cpu: CpuId, memcg: MemcgId, place: Place) -> bool {
        !self.lru.has_policies() || self.lru.admits(memcg, self.core.alloc.node_of(cpu), place)
    }
}
