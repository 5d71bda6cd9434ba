//! Decisions of those who free memory, and of those who wait for it: small machines whose `step`
//! says what to do next. Who does it, pays for it and waits is the driver of the same name.

pub mod balance;
pub mod charge;
pub mod pause;
pub mod priority;
pub mod retry;
pub mod throttle;

#[cfg(test)]
mod tests {
    use units::{CpuId, Order, Pages};

    use crate::event::NoTrace;
    use crate::feature::Kernel;
    use crate::gfp::Gfp;
    use crate::mapping::Prepared;
    use crate::memcg::MemcgId;
    use crate::memory::Memory;
    use crate::page_alloc::AllocFlags;
    use crate::slab_caches::Cache;
    use crate::sysctl::Sysctls;
    use crate::zone::MemoryLayout;

    const CPU: CpuId = CpuId(0);

    /// 64 MiB, all of it free, for the scripts of the machines.
    pub(super) fn machine(kernel: &str) -> Memory<NoTrace> {
        let layout = MemoryLayout::flat(Pages(16_384), 1);
        Memory::boot(&layout, Kernel::parse(kernel).unwrap(), Sysctls::default(), NoTrace).unwrap()
    }

    /// Adds a dirty page of a file, still on its way to the lists.
    pub(super) fn add_dirty_page(mem: &mut Memory<NoTrace>) {
        let mapping = mem.mapping_create();
        let take = |mem: &mut Memory<NoTrace>, gfp, order| {
            mem.alloc.alloc(CPU, gfp, order, AllocFlags::NO_WATERMARKS).page.unwrap()
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
}
