//! The cost table: how many nanoseconds of CPU each operation of the kernel takes.
//!
//! The reference is one core of about 3 GHz, x86-64, of 2018. Every figure can be overridden by
//! name; [`CostTable::scale_percent`] slows a whole machine down. Sources are marked as in the
//! mechanisms document: \[K\] kernel documentation or a kernel benchmark, \[S0\]..\[S4\] derived
//! from a measurement in that source, \[M\] measured by ourselves on what the comment says, \[I\]
//! inferred.
//!
//! Left out: caches (an operation always costs the same), lock contention, and the difference
//! between NUMA nodes.

use kernel::machine::CostOp;
use units::Nanos;

/// One row of the table of defaults.
struct DefaultCost {
    op: CostOp,
    name: &'static str,
    nanos: u64,
}

const fn row(op: CostOp, name: &'static str, nanos: u64) -> DefaultCost {
    DefaultCost { op, name, nanos }
}

const DEFAULTS: [DefaultCost; CostOp::COUNT] = [
    // [K] floor of read, write, open without speculation mitigations; 300 with them.
    row(CostOp::Syscall, "syscall", 150),
    // [K] page_bench: an allocation and its free take about 200 cycles together.
    row(CostOp::PcpAlloc, "pcp_alloc", 30),
    row(CostOp::PcpFree, "pcp_free", 25),
    // [I] the zone lock, amortised over a batch, and the split or merge.
    row(CostOp::PcpRefillPage, "pcp_refill_page", 40),
    // [I] list operations and cache misses; splits are charged as more of the same.
    row(CostOp::BuddyAlloc, "buddy_alloc", 120),
    // [S2] 886 ns of system time per page read, of which: xarray, LRU batch, memcg charge.
    row(CostOp::PageCacheAdd, "page_cache_add", 150),
    // [S2] copy_to_user of 4 KiB.
    row(CostOp::CopyPage, "copy_page", 150),
    // [S4] clearing 2 MiB takes 84 us: 25 GB/s.
    row(CostOp::ClearPage, "clear_page", 165),
    // [I] beside its request; both together take 2560 for a window of 32 pages.
    row(CostOp::ReadaheadPage, "readahead_page", 5),
    // [I] what 2560 for that window leaves to the request. [M] about 3100 in one run of a guest of 6.12.
    row(CostOp::IoRequest, "io_request", 2_400),
    // [I] isolate, look, put back.
    row(CostOp::ScanPage, "scan_page", 80),
    // [S2] scan and free of a clean unmapped page: 300, less the scan.
    row(CostOp::ReclaimPage, "reclaim_page", 220),
    // [M] pressure of one reader under a limit on 7.2, whose reclaim frees a folio of 512 pages each time; by the
    // factor of reclaim on that CPU (`machines/guest.rs`).
    row(CostOp::ReclaimTail, "reclaim_tail", 42),
    // [M] the same with folios of 32 pages, which have a slot of the tree for each page ([I]).
    row(CostOp::ReclaimLeaf, "reclaim_leaf", 85),
    // [I] as much as a kept page on the inactive list.
    row(CostOp::DeactivatePage, "deactivate_page", 80),
    // Not measured where nobody copies the host's mappings.
    row(CostOp::StartProcess, "start_process", 0),
    // Latency of `fork` by size in the documentation of Redis: 9 to 13 ms a GiB on three machines of four.
    row(CostOp::ForkPage, "fork_page", 50),
    // [I] without a call, by the vDSO.
    row(CostOp::ReadClock, "read_clock", 0),
    // [S4] 660 us for 512 faults and one memset of 2 MiB: 960 beyond the clearing.
    row(CostOp::MinorFault, "minor_fault", 960),
    // [I] a trap is little of it.
    row(CostOp::PopulatePage, "populate_page", 960),
    // No hardware has these.
    row(CostOp::AccessFault, "access_fault", 0),
    row(CostOp::Remap, "remap", 0),
    // [I] an iterator step and three cold cache lines.
    row(CostOp::WalkMemcg, "walk_memcg", 300),
    // [I] one cache miss in an LRU walk of dentries or inodes.
    row(CostOp::SlabScanObject, "slab_scan_object", 100),
    // [I] the lockless path; 40 more with a memcg.
    row(CostOp::SlabObject, "slab_object", 20),
    // [I] a walk over the 512 page structures of a block: 1500 to 3000.
    row(CostOp::StealBlock, "steal_block", 2_000),
    // [I] one interrupt or work item for each CPU.
    row(CostOp::DrainCpu, "drain_cpu", 2_000),
    // [I] copy, tree update and two list operations; a mapped page costs the unmap and its flush too.
    row(CostOp::MigratePage, "migrate_page", 1_800),
    row(CostOp::MigrateMappedPage, "migrate_mapped_page", 2_500),
    // [I] streaming through page structures.
    row(CostOp::CompactScanMigrate, "compact_scan_migrate", 10),
    row(CostOp::CompactScanFree, "compact_scan_free", 8),
    // [S4] a huge fault and a memset of 2 MiB take 168 to 172 us: twice the clearing.
    row(CostOp::ClearHugePage, "clear_huge_page", 84_000),
    // [S4] what is left of it: the entry in the page middle directory, the charge.
    row(CostOp::HugeFault, "huge_fault", 3_000),
    // [I] a path of a few names, and a descriptor.
    row(CostOp::FileOpen, "file_open", 1_500),
    // [S0] 140 us of system time for each file created, written with 4 KiB, closed and removed, 16
    // threads on 8 CPUs: about 100 us without the removal, less what is charged by itself.
    row(CostOp::FileCreate, "file_create", 90_000),
    // Files lie there when a machine starts.
    row(CostOp::LayOutFile, "lay_out_file", 0),
    row(CostOp::LayOutPage, "lay_out_page", 0),
    // [S0] of the same.
    row(CostOp::FileUnlink, "file_unlink", 30_000),
    // [I] XFS: take out of its sets and free.
    row(CostOp::InodeEvict, "inode_evict", 900),
    // [I] find the dirty page, map its block, add it to the request.
    row(CostOp::WritebackPage, "writeback_page", 300),
    // [S0] what it takes is in `file_create`.
    row(CostOp::WritebackInode, "writeback_inode", 0),
    row(CostOp::WritebackInodeExt4, "writeback_inode_ext4", 0),
    row(CostOp::WritebackEnd, "writeback_end", 0),
    // Memory of one's own costs nothing to use; a guest's machine sets what its host takes.
    row(CostOp::FirstUse, "first_use", 0),
    // Not measured where a page is not emulated; in a guest it counts (`machines/guest.rs`).
    row(CostOp::LockPage, "lock_page", 0),
    // By definition, on the reference core.
    row(CostOp::UserMicrosecond, "user_microsecond", 1_000),
    // [K]
    row(CostOp::ContextSwitch, "context_switch", 1_500),
    // [I] a fault without clearing or allocating anything.
    row(CostOp::MajorFault, "major_fault", 1_500),
    // [I] tree, counts.
    row(CostOp::SwapCache, "swap_cache", 250),
    // Not measured where the device copies by itself.
    row(CostOp::SwapWrite, "swap_write", 0),
    // [I] from the CPU's own; 3000 for a refill of 64.
    row(CostOp::SwapSlot, "swap_slot", 40),
    row(CostOp::SwapSlotFetch, "swap_slot_fetch", 47),
    // [I] the walk, the entry, and its share of the flush.
    row(CostOp::UnmapPage, "unmap_page", 460),
    row(CostOp::MapAround, "map_around", 60),
    row(CostOp::ZapPage, "zap_page", 40),
    // [M] mean of heap pages: most differ early.
    row(CostOp::SameFilledTest, "same_filled_test", 55),
    // [M] lz4, a heap page of 4942, and [I] what it takes to store it; 250 to find it again.
    row(CostOp::CompressPage, "compress_page", 5_700),
    row(CostOp::DecompressPage, "decompress_page", 1_890),
];

// A table that is indexed by the operation must be in the order of the operations.
const _: () = {
    let mut index = 0;
    while index < CostOp::COUNT {
        assert!(DEFAULTS[index].op as usize == index);
        index += 1;
    }
};

/// From waking a task to its first instruction on an idle CPU, without the context switch.
/// \[K\] 5 to 50 us: the interrupt and the way out of an idle state; the lower end.
const WAKEUP_LATENCY: u64 = 5_000;
/// The name under which [`WAKEUP_LATENCY`] is overridden.
const WAKEUP_LATENCY_NAME: &str = "wakeup_latency";

/// A cost that does not exist was named.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no cost `{name}`")]
pub struct UnknownCost {
    /// What was asked for.
    pub name: String,
}

/// Nanoseconds of CPU for each operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CostTable {
    nanos: [u64; CostOp::COUNT],
    wakeup_latency: u64,
}

impl Default for CostTable {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl CostTable {
    /// The reference core.
    pub const DEFAULT: Self = {
        let mut nanos = [0; CostOp::COUNT];
        let mut index = 0;
        while index < CostOp::COUNT {
            nanos[index] = DEFAULTS[index].nanos;
            index += 1;
        }
        Self { nanos, wakeup_latency: WAKEUP_LATENCY }
    };

    /// This table with other costs of some operations, in nanoseconds.
    #[must_use]
    pub const fn with(mut self, costs: &[(CostOp, u64)]) -> Self {
        let mut index = 0;
        while index < costs.len() {
            let (op, nanos) = costs[index];
            self.nanos[op as usize] = nanos;
            index += 1;
        }
        self
    }

    /// A table in which nothing costs anything: for tests that set what they look at.
    pub fn free() -> Self {
        Self { nanos: [0; CostOp::COUNT], wakeup_latency: 0 }
    }

    /// The cost of one `op`.
    #[inline]
    pub fn get(&self, op: CostOp) -> Nanos {
        Nanos(self.nanos[op as usize])
    }

    /// From waking a task to its first instruction on an idle CPU, without the context switch.
    pub fn wakeup_latency(&self) -> Nanos {
        Nanos(self.wakeup_latency)
    }

    /// Overrides one cost by its name, such as `scan_page` or `wakeup_latency`.
    ///
    /// # Errors
    /// When there is no such name; [`CostTable::names`] lists them.
    pub fn set(&mut self, name: &str, cost: Nanos) -> Result<(), UnknownCost> {
        if name == WAKEUP_LATENCY_NAME {
            self.wakeup_latency = cost.0;
            return Ok(());
        }
        let unknown = || UnknownCost { name: name.to_owned() };
        let index = DEFAULTS.iter().position(|row| row.name == name).ok_or_else(unknown)?;
        self.nanos[index] = cost.0;
        Ok(())
    }

    /// Every name that [`CostTable::set`] knows, with its present value.
    pub fn names(&self) -> impl Iterator<Item = (&'static str, Nanos)> {
        let operations = DEFAULTS.iter().zip(self.nanos).map(|(row, nanos)| (row.name, Nanos(nanos)));
        operations.chain([(WAKEUP_LATENCY_NAME, self.wakeup_latency())])
    }

    /// The same table for a CPU that needs `percent` of the time: 200 for a core of 2010 \[I\].
    /// Values saturate.
    #[must_use]
    pub fn scale_percent(mut self, percent: u32) -> Self {
        for nanos in self.nanos.iter_mut().chain([&mut self.wakeup_latency]) {
            *nanos = nanos.saturating_mul(u64::from(percent)) / 100;
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cost_can_be_overridden_by_its_name_and_only_by_that() {
        let mut table = CostTable::default();
        let names: Vec<&str> = table.names().map(|(name, _)| name).collect();
        for (value, name) in (1..).zip(&names) {
            table.set(name, Nanos(value)).expect("a listed name");
        }
        let expected: Vec<(&str, Nanos)> = names.iter().copied().zip((1..).map(Nanos)).collect();
        assert_eq!(table.names().collect::<Vec<_>>(), expected);
        assert_eq!(table.set("scan-page", Nanos(1)).unwrap_err().to_string(), "there is no cost `scan-page`");
    }

    #[test]
    fn a_core_of_2010_takes_twice_as_long() {
        let slow = CostTable::default().scale_percent(200);
        assert_eq!((slow.get(CostOp::MinorFault), slow.wakeup_latency()), (Nanos(1920), Nanos(10_000)));
    }
}
