//! Machines for the scripts that walk the decisions.

use std_alloc::vec;
use std_alloc::vec::Vec;

use units::{CpuId, NodeId, Order, Pages, Pfn};

use crate::alloc::flags::AllocFlags;
use crate::alloc::watermark::Mark;
use crate::base::event::{KeepTrace, NoTrace, Trace};
use crate::base::gfp::Gfp;
use crate::base::ids::{MappingId, MemcgId};
use crate::base::layout::{HugeSupport, MemoryLayout, NodeLayout, ZoneId, ZoneKind, ZoneLayout};
use crate::base::sysctl::Sysctls;
use crate::memory::Memory;
use crate::pages::cache::Prepared;
use crate::version::geometry::Cache;
use crate::version::presets::Version;

const CPU: CpuId = CpuId(0);
const NODE: NodeId = NodeId(0);

/// 64 MiB, all of it free, for the scripts of the machines.
pub(super) fn machine(kernel: &str) -> Memory<NoTrace> {
    boot(kernel, &MemoryLayout::flat(Pages(16_384), 1))
}

/// A machine of which all that boot does not keep is free.
pub(super) fn boot(kernel: &str, layout: &MemoryLayout) -> Memory<NoTrace> {
    boot_traced(kernel, layout, NoTrace)
}

fn boot_traced<T: Trace>(kernel: &str, layout: &MemoryLayout, trace: T) -> Memory<T> {
    Memory::boot(layout, Version::parse(kernel).unwrap(), Sysctls::default(), trace).unwrap()
}

/// Adds a page of a file of its own, still on its way to the lists.
pub(super) fn add_file_page(mem: &mut Memory<NoTrace>, cpu: CpuId) -> Pfn {
    let mapping = empty_file(mem, cpu);
    let flags = AllocFlags::NO_WATERMARKS;
    let pfn = mem.core.alloc.alloc(cpu, Gfp::HIGHUSER_MOVABLE, Order(0), flags).page.unwrap();
    insert(mem, cpu, mapping, pfn);
    pfn
}

/// [`add_file_page`] that is dirty.
pub(super) fn add_dirty_page(mem: &mut Memory<NoTrace>) {
    let pfn = add_file_page(mem, CPU);
    assert!(mem.set_dirty(pfn));
}

/// A file that has what its first page needs in its tree.
fn empty_file<T: Trace>(mem: &mut Memory<T>, cpu: CpuId) -> MappingId {
    let mapping = mem.mapping_create();
    while mem.prepare_insert(cpu, mapping, 0, 1, MemcgId::ROOT) != Prepared::Ready {
        let (order, mobility) = mem.slab_request(Cache::TreeNode);
        let (gfp, flags) = (Gfp::KERNEL | mobility, AllocFlags::NO_WATERMARKS);
        let block = mem.core.alloc.alloc(cpu, gfp, order, flags).page.unwrap();
        mem.grow_slab(cpu, Cache::TreeNode, MemcgId::ROOT, block);
    }
    mapping
}

fn insert<T: Trace>(mem: &mut Memory<T>, cpu: CpuId, mapping: MappingId, pfn: Pfn) {
    assert_eq!(mem.insert_page(mapping, 0, pfn, MemcgId::ROOT), None);
    mem.lru_add(cpu, pfn);
}

/// A node of zones without a free page, to be given back piece by piece.
pub(super) struct Zones {
    pub(super) mem: Memory<KeepTrace>,
    /// Where in each zone the next block is given back.
    at: Vec<Pfn>,
    /// A file for a page in each zone.
    files: Vec<MappingId>,
}

impl Zones {
    /// One zone of 64 MiB of each of `kinds`.
    pub(super) fn full(kernel: &str, kinds: &[ZoneKind]) -> Self {
        Self::full_of_sizes(kernel, &kinds.iter().map(|&kind| (kind, 16_384)).collect::<Vec<_>>())
    }

    /// One zone of each of `kinds`, of as many pages.
    pub(super) fn full_of_sizes(kernel: &str, kinds: &[(ZoneKind, u64)]) -> Self {
        let zones = kinds.iter().map(|&(kind, pages)| ZoneLayout::new(kind, Pages(pages))).collect();
        let layout =
            MemoryLayout { nodes: vec![NodeLayout { zones }], cpus: 1, huge_pages: HugeSupport::Off };
        let mut mem = boot_traced(kernel, &layout, KeepTrace::default());
        let at = mem.core.alloc.zones().iter().map(|zone| zone.start).collect();
        let files = kinds.iter().map(|_| empty_file(&mut mem, CPU)).collect();
        let mut zones = Self { mem, at, files };
        zones.take_all();
        zones
    }

    /// Takes every free page.
    pub(super) fn take_all(&mut self) {
        let (gfp, flags) = (Gfp::HIGHUSER_MOVABLE, AllocFlags::NO_WATERMARKS);
        while self.mem.core.alloc.alloc(CPU, gfp, Order(0), flags).page.is_some() {}
        assert_eq!(self.mem.core.alloc.free_pages(), Pages::ZERO);
    }

    pub(super) fn zone(&self, kind: ZoneKind) -> ZoneId {
        let is_it = |&id: &ZoneId| self.mem.core.alloc.zone(id).kind == kind;
        self.mem.zones_up_to(NODE, ZoneKind::Movable).into_iter().find(is_it).unwrap()
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

    /// Makes the last page of a zone one of a file: there is something to reclaim.
    pub(super) fn add_file_page(&mut self, kind: ZoneKind) -> Pfn {
        let id = self.zone(kind);
        let zone = self.mem.core.alloc.zone(id);
        let last = Pfn(zone.start.0 + zone.spanned - 1);
        insert(&mut self.mem, CPU, self.files[id.index()], last);
        self.mem.lru_drain_all();
        assert_eq!(self.mem.zone_reclaimable_pages(NODE, kind), 1);
        last
    }
}
