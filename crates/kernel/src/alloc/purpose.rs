//! What a block of memory is for: the place in the kernel that a report of the OOM killer names, where
//! the kernel prints a call trace.
//!
//! Left out: the whole trace. Next: [`super::slow_path`], [`super::oom`].

use mm::version::geometry::Cache;

/// What a request is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Purpose {
    /// Something else of the kernel's.
    #[default]
    Other,
    /// A page of anonymous memory.
    AnonFault,
    /// A page that comes back from swap.
    SwapIn,
    /// A huge page of anonymous memory.
    HugeFault,
    /// A page of a file.
    PageCache,
    /// A page table, or another page that a process costs.
    PageTable,
    /// A slab of this cache.
    Slab(Cache),
    /// A buffer of XFS metadata.
    XfsBuffer,
    /// The stack of a new worker.
    Stack,
}

impl Purpose {
    /// The functions above the allocator, as a call trace has them.
    pub(crate) fn trace(self) -> Vec<String> {
        let functions: &[&str] = match self {
            Self::Other => &["alloc_pages"],
            Self::AnonFault => &["do_anonymous_page", "handle_mm_fault"],
            Self::SwapIn => &["do_swap_page", "handle_mm_fault"],
            Self::HugeFault => &["do_huge_pmd_anonymous_page", "handle_mm_fault"],
            Self::PageCache => &["page_cache_alloc", "pagecache_get_page"],
            Self::PageTable => &["pte_alloc_one", "__pte_alloc"],
            Self::Slab(_) => &["allocate_slab"],
            Self::XfsBuffer => &["xfs_buf_allocate_memory", "xfs_buf_get_map"],
            Self::Stack => &["copy_process", "kernel_thread", "kthreadd"],
        };
        let mut trace: Vec<String> = functions.iter().map(ToString::to_string).collect();
        if let Self::Slab(cache) = self {
            trace.push(format!("kmem_cache_alloc ({})", cache.name()));
        }
        trace
    }

    /// The thread that asks, where that is no process.
    pub(crate) const fn thread(self) -> &'static str {
        if matches!(self, Self::Stack) { "kthreadd" } else { "kworker" }
    }
}
