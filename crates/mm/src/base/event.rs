//! Trace events, under the names and with the fields of the kernel's tracepoints.
//!
//! Tracing is a type parameter: with [`NoTrace`] every call compiles to nothing. An event is
//! handed over at the moment it happens; whoever records it knows the time.

use units::{NodeId, Order, Pfn};

use crate::base::gfp::MigrateType;

/// A tracepoint that was hit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)] // Fields carry the kernel's names (MECHANISMS section 14).
pub enum TraceEvent {
    /// `mm_page_alloc_extfrag`: a request was served from a block of another mobility type.
    PageAllocExtfrag {
        pfn: Pfn,
        alloc_order: Order,
        fallback_order: Order,
        alloc_migratetype: MigrateType,
        fallback_migratetype: MigrateType,
        change_ownership: bool,
    },
    /// `mm_fragmentation_stall`: a movable request waited for kswapd, in microseconds.
    FragmentationStall { nid: NodeId, duration: u64 },
    /// `mm_vmscan_kswapd_wake`.
    VmscanKswapdWake { nid: NodeId, order: Order },
    /// `mm_vmscan_kswapd_sleep`.
    VmscanKswapdSleep { nid: NodeId },
    /// `mm_vmscan_direct_reclaim_begin` and its memcg form.
    VmscanReclaimBegin { order: Order, memcg: u16 },
    /// `mm_vmscan_direct_reclaim_end` and its memcg form.
    VmscanReclaimEnd { nr_reclaimed: u64, memcg: u16 },
    /// `mm_vmscan_lru_shrink_inactive`.
    VmscanLruShrinkInactive { nid: NodeId, memcg: u16, nr_scanned: u32, nr_reclaimed: u32, priority: u8 },
    /// `mm_vmscan_lru_shrink_active`.
    VmscanLruShrinkActive { nid: NodeId, memcg: u16, nr_taken: u32, nr_deactivated: u32, priority: u8 },
}

/// Receives trace events.
pub trait Trace: 'static {
    /// Called at every tracepoint that is hit.
    fn event(&mut self, event: TraceEvent);
}

/// Receives nothing and costs nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoTrace;

impl Trace for NoTrace {
    #[inline(always)]
    fn event(&mut self, _event: TraceEvent) {}
}

/// Keeps every event: for tests and `explain`.
#[derive(Debug, Clone, Default)]
pub struct KeepTrace(pub std_alloc::vec::Vec<TraceEvent>);

impl Trace for KeepTrace {
    fn event(&mut self, event: TraceEvent) {
        self.0.push(event);
    }
}
