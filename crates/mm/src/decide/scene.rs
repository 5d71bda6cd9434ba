//! A machine for the scripts that walk the decisions.

use units::{CpuId, Order, Pages};

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
    let layout = MemoryLayout::flat(Pages(16_384), 1);
    Memory::boot(&layout, Version::parse(kernel).unwrap(), Sysctls::default(), NoTrace).unwrap()
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
