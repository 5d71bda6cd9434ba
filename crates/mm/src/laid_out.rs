//! What laying out a file leaves behind on the lists of a CPU, of its inode, and of the device that it lies on.
//!
//! Left out: buffers of the file's own pages. Neighbours: [`crate::alloc::pcp`] for the lists,
//! [`crate::alloc::run`] for kernel memory that was there before.

use std_alloc::vec::Vec;

use units::{CpuId, Order, Pages, Pfn};

use crate::base::event::Trace;
use crate::base::gfp::Gfp;
use crate::base::ids::{MappingId, MemcgId};
use crate::memory::Memory;
use crate::pages::cache::Prepared;
use crate::pages::tree::{SLOTS, Slot};
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

    /// A block was written through the page cache of its device: it is there, active and clean, with its buffer, and
    /// nobody counts it. Nothing happens where there is no memory for it without reclaim.
    pub fn keep_block(&mut self, cpu: CpuId, device: MappingId, index: u32) {
        let events = self.core.alloc.events.clone();
        let is_new =
            !matches!(self.cache.find(device, index), Slot::Page(_)) && self.add_block(cpu, device, index);
        if let Slot::Page(pfn) = self.cache.find(device, index) {
            for _ in 0..=u32::from(is_new) {
                self.mark_accessed(cpu, pfn);
            }
        }
        self.core.alloc.events = events;
    }

    fn add_block(&mut self, cpu: CpuId, device: MappingId, index: u32) -> bool {
        let buffer = self.take_objects(cpu, Cache::BufferHead, 1);
        let mut page = Vec::new();
        self.core.alloc.take_singles(cpu, 1, &mut page);
        let (Some(&pfn), false) = (page.first(), buffer.is_empty()) else {
            self.free_objects(cpu, buffer);
            page.into_iter().for_each(|pfn| self.core.alloc.free(cpu, pfn, Order(0)));
            return false;
        };
        loop {
            match self.prepare_insert(cpu, device, index, 1, MemcgId::ROOT) {
                Prepared::Ready => break,
                Prepared::NeedsSlab if self.add_slab(cpu, Cache::TreeNode) => {}
                Prepared::NeedsSlab => {
                    self.free_objects(cpu, buffer);
                    self.core.alloc.free(cpu, pfn, Order(0));
                    return false;
                }
                Prepared::NeedsCharge { .. } => unreachable!("the root pays for nothing"),
            }
        }
        let _ = self.insert_page(device, index, pfn, MemcgId::ROOT);
        self.lru_add(cpu, pfn);
        self.attach_buffers(pfn, &buffer)
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
        let mut objects = Vec::new();
        while (objects.len() as u64) < count {
            match self.alloc_object(cpu, cache, MemcgId::ROOT) {
                ObjectAlloc::Done(object) => objects.push(object),
                ObjectAlloc::NeedsSlab if self.add_slab(cpu, cache) => {}
                ObjectAlloc::NeedsSlab => break,
                ObjectAlloc::NeedsCharge { .. } => unreachable!("the root pays for nothing"),
            }
        }
        objects
    }

    /// One more slab, if there is memory for it without reclaim.
    fn add_slab(&mut self, cpu: CpuId, cache: Cache) -> bool {
        let (order, mobility) = self.core.slabs.request(cache);
        let gfp = Gfp::NOFS | mobility;
        let flags = self.core.alloc.fast_flags(cpu, gfp);
        let slab = self.core.alloc.alloc(cpu, gfp, order, flags).page;
        if let Some(slab) = slab {
            self.grow_slab(cpu, cache, MemcgId::ROOT, slab);
        }
        slab.is_some()
    }
}
