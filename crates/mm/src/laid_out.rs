//! What laying out a file leaves behind on the lists of a CPU, and of its inode.
//!
//! Left out: buffers. Neighbours: [`crate::alloc::pcp`] for the lists,
//! [`crate::alloc::run`] for kernel memory that was there before.

use std_alloc::vec::Vec;

use units::{CpuId, Order, Pages, Pfn};

use crate::base::event::Trace;
use crate::base::gfp::Gfp;
use crate::base::ids::MemcgId;
use crate::memory::Memory;
use crate::pages::tree::SLOTS;
use crate::slab::object::{Object, ObjectAlloc};
use crate::version::geometry::Cache;

/// Of a larger file what is passed through is no more: lists are as it left them long before.
const STEPS_MAX: u32 = 64;

impl<T: Trace> Memory<T> {
    /// A file of so many pages is written on `cpu`, at most `at_once` of them together, and dropped again, which nobody
    /// counts. What is freed last stays on the lists of `cpu`, which have grown by it with 6.12 and later. `each` is
    /// told of the pages.
    ///
    /// Nodes of its tree go a grace period later: while the next pages are taken, and behind the last ones. Their slabs
    /// are blocks of a higher order that are freed one after the other, with each of which lists of 5.13 and later
    /// give pages back (traced in a guest of 6.12: 2,015 each, until they were empty).
    pub fn pass_file(&mut self, cpu: CpuId, pages: Pages, at_once: Pages, mut each: impl FnMut(&[Pfn])) {
        let events = self.core.alloc.events.clone();
        let (mut left, mut taken, mut dropped) = (pages.0, Vec::new(), Vec::new());
        for _ in 0..STEPS_MAX {
            let step = left.min(at_once.0);
            if step == 0 {
                break;
            }
            let nodes = self.take_objects(cpu, Cache::TreeNode, step.div_ceil(SLOTS as u64));
            self.core.alloc.take_singles(cpu, step, &mut taken);
            each(&taken);
            self.free_nodes(cpu, core::mem::replace(&mut dropped, nodes));
            taken.drain(..).for_each(|pfn| self.core.alloc.free(cpu, pfn, Order(0)));
            left -= step;
        }
        self.free_nodes(cpu, dropped);
        self.core.alloc.events = events;
    }

    /// Objects of a file that was written before, one of each cache, which nobody counts; none where there is no memory
    /// for all of them without reclaim.
    pub fn objects_of_file(&mut self, cpu: CpuId, caches: &[Cache]) -> Option<Vec<Object>> {
        let events = self.core.alloc.events.clone();
        let objects: Vec<Object> =
            caches.iter().flat_map(|&cache| self.take_objects(cpu, cache, 1)).collect();
        let is_whole = objects.len() == caches.len();
        let (kept, left) = if is_whole { (Some(objects), Vec::new()) } else { (None, objects) };
        self.free_objects(cpu, left);
        self.core.alloc.events = events;
        kept
    }

    fn free_objects(&mut self, cpu: CpuId, objects: Vec<Object>) {
        for object in objects {
            self.free_object(cpu, object);
        }
    }

    fn free_nodes(&mut self, cpu: CpuId, nodes: Vec<Object>) {
        self.free_objects(cpu, nodes);
        while self.core.slabs.needs_grace_period() {
            self.grace_period_ended(cpu);
        }
        self.core.slabs.take_rcu_request();
    }

    /// So many objects, as far as there is memory for them without reclaim.
    fn take_objects(&mut self, cpu: CpuId, cache: Cache, count: u64) -> Vec<Object> {
        let (order, mobility) = self.core.slabs.request(cache);
        let gfp = Gfp::NOFS | mobility;
        let mut objects = Vec::new();
        while (objects.len() as u64) < count {
            match self.alloc_object(cpu, cache, MemcgId::ROOT) {
                ObjectAlloc::Done(object) => objects.push(object),
                ObjectAlloc::NeedsSlab => {
                    let flags = self.core.alloc.fast_flags(cpu, gfp);
                    let Some(slab) = self.core.alloc.alloc(cpu, gfp, order, flags).page else { break };
                    self.grow_slab(cpu, cache, MemcgId::ROOT, slab);
                }
                ObjectAlloc::NeedsCharge { .. } => unreachable!("the root pays for nothing"),
            }
        }
        objects
    }
}
