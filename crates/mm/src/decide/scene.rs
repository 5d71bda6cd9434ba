//! Machines for the scripts that walk the decisions.

use std_alloc::vec;
use std_alloc::vec::Vec;

use units::{CpuId, NodeId, Order, Pages, Pfn};

use crate::alloc::flags::AllocFlags;
use crate::alloc::watermark::Mark;
use crate::base::event::NoTrace;
use crate::base::gfp::Gfp;
use crate::base::ids::MemcgId;
use crate::base::layout::{MemoryLayout, NodeLayout, ZoneId, ZoneKind, ZoneLayout};
use crate::base::sysctl::Sysctls;
use crate::memory::Memory;
use crate::pages::cache::Prepared;
use crate::version::feature::Kernel;
use crate::version::geometry::Cache;

const CPU: CpuId = CpuId(0);

/// 64 MiB, all of it free, for the scripts of the machines.
pub(super) fn machine(kernel: &str) -> Memory<NoTrace> {
    boot(kernel, &MemoryLayout::flat(Pages(16_384), 1))
}

fn boot(kernel: &str, layout: &MemoryLayout) -> Memory<NoTrace> {
    Memory::boot(layout, Kernel::parse(kernel).unwrap(), Sysctls::default(), NoTrace).unwrap()
}

/// Adds a dirty page of a file, still on its way to the lists.
pub(super) fn add_dirty_page(mem: &mut Memory<NoTrace>) {
    let mapping = mem.mapping_create();
    let take = |mem: &mut Memory<NoTrace>, gfp, order| {
        mem.core.alloc.alloc(CPU, gfp, order, AllocFlags::NO_WATERMARKS).page.unwrap()
    };
    while mem.prepare_insert(CPU, mapping, 0, 1, MemcgId::ROOT) != Prepared::Ready {
        let (order, mobility) = mem.slab_request(Cache::TreeNode);
        let block = take(mem, Gfp::KERNEL | mobility, order);
        mem.grow_slab(Cache::TreeNode, block);
    }
    let pfn = take(mem, Gfp::HIGHUSER_MOVABLE, Order(0));
    assert_eq!(mem.insert_page(mapping, 0, pfn, MemcgId::ROOT), None);
    mem.lru_add(CPU, pfn);
    assert!(mem.set_dirty(pfn));
}

/// A node of zones of 64 MiB without a free page, to be given back piece by piece.
pub(super) struct Zones {
    pub(super) mem: Memory<NoTrace>,
    /// Where in each zone the next block is given back.
    at: Vec<Pfn>,
}

impl Zones {
    /// One zone of each of `kinds`.
    pub(super) fn full(kernel: &str, kinds: &[ZoneKind]) -> Self {
        let zones = kinds.iter().map(|&kind| ZoneLayout::new(kind, Pages(16_384))).collect();
        let layout = MemoryLayout { nodes: vec![NodeLayout { zones }], cpus: 1, huge_pages: false };
        let mut mem = boot(kernel, &layout);
        let at = mem.core.alloc.zones().iter().map(|zone| zone.start).collect();
        let (gfp, flags) = (Gfp::HIGHUSER_MOVABLE, AllocFlags::NO_WATERMARKS);
        while mem.core.alloc.alloc(CPU, gfp, Order(0), flags).page.is_some() {}
        assert_eq!(mem.core.alloc.free_pages(), Pages::ZERO);
        Self { mem, at }
    }

    pub(super) fn zone(&self, kind: ZoneKind) -> ZoneId {
        let is_it = |&id: &ZoneId| self.mem.core.alloc.zone(id).kind == kind;
        self.mem.zones_up_to(NodeId(0), ZoneKind::Movable).into_iter().find(is_it).unwrap()
    }

    pub(super) fn mark(&self, kind: ZoneKind, mark: Mark) -> u64 {
        self.mem.core.alloc.zone(self.zone(kind)).watermarks.mark(mark)
    }

    /// Frees `count` blocks of `order` that no other free block is beside of.
    pub(super) fn free(&mut self, kind: ZoneKind, order: u8, count: u64) {
        let (zone, order) = (self.zone(kind), Order(order));
        let at = &mut self.at[zone.index()];
        for _ in 0..count {
            at.0 = at.0.next_multiple_of(2 << order.0);
            (at.0..at.0 + order.pages()).for_each(|pfn| self.mem.core.alloc.free(CPU, Pfn(pfn), Order(0)));
            at.0 += 2 << order.0;
        }
        self.mem.core.alloc.drain_all();
        assert_eq!(self.mem.core.alloc.zone_of(Pfn(at.0 - 1)), zone, "the zone has no room for so many");
    }
}
