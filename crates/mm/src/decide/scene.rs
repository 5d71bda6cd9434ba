//! A machine for the scripts that walk the decisions.

use units::{CpuId, Order, Pages, Pfn};

use crate::alloc::flags::AllocFlags;
use crate::base::event::NoTrace;
use crate::base::gfp::Gfp;
use crate::base::ids::MemcgId;
use crate::base::layout::MemoryLayout;
use crate::base::sysctl::Sysctls;
use crate::memory::Memory;
use crate::pages::cache::Prepared;
use crate::version::geometry::Cache;
use crate::version::presets::Version;

const CPU: CpuId = CpuId(0);

/// 64 MiB, all of it free, for the scripts of the machines.
pub(super) fn machine(kernel: &str) -> Memory<NoTrace> {
    boot(kernel, &MemoryLayout::flat(Pages(16_384), 1))
}

/// A machine of which all that boot does not keep is free.
pub(super) fn boot(kernel: &str, layout: &MemoryLayout) -> Memory<NoTrace> {
    Memory::boot(layout, Version::parse(kernel).unwrap(), Sysctls::default(), NoTrace).unwrap()
}

/// Adds a page of a file of its own, still on its way to the lists.
pub(super) fn add_file_page(mem: &mut Memory<NoTrace>, cpu: CpuId) -> Pfn {
    let mapping = mem.mapping_create();
    let take = |mem: &mut Memory<NoTrace>, gfp, order| {
        mem.core.alloc.alloc(cpu, gfp, order, AllocFlags::NO_WATERMARKS).page.unwrap()
    };
    while mem.prepare_insert(cpu, mapping, 0, 1, MemcgId::ROOT) != Prepared::Ready {
        let (order, mobility) = mem.slab_request(Cache::TreeNode);
        let block = take(mem, Gfp::KERNEL | mobility, order);
        mem.grow_slab(Cache::TreeNode, block);
    }
    let pfn = take(mem, Gfp::HIGHUSER_MOVABLE, Order(0));
    assert_eq!(mem.insert_page(mapping, 0, pfn, MemcgId::ROOT), None);
    mem.lru_add(cpu, pfn);
    pfn
}

/// [`add_file_page`] that is dirty.
pub(super) fn add_dirty_page(mem: &mut Memory<NoTrace>) {
    let pfn = add_file_page(mem, CPU);
    assert!(mem.set_dirty(pfn));
}
