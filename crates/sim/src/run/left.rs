//! What is left of memory for whoever waits for some.

use mm::alloc::flags::AllocFlags;
use mm::alloc::watermark::Mark;
use mm::alloc::zone::Zone;
use mm::base::layout::ZoneKind;
use mm::lru::lists::LruList;
use units::Order;

use crate::engine::sim::{SimKernel, SimMemory};

/// What is left of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Left {
    /// Pages that are free.
    pub free: u64,
    /// File pages that no `memory.min` protects.
    pub reclaimable: u64,
    /// Some zone would be above its min mark if all those were freed: what `should_reclaim_retry` asks. Without that a
    /// request that may not enter the filesystem goes round for ever, here and on Linux, which kills nobody for its
    /// sake.
    pub hope: bool,
}

impl Left {
    /// Of this kernel, now.
    pub fn of(kernel: &SimKernel) -> Self {
        let mut left = Self { free: 0, reclaimable: 0, hope: false };
        kernel.mem(|mem| {
            for zone in mem.core.alloc.zones() {
                let (free, file) = (zone.free_pages().0, unprotected(mem, zone));
                left.free += free;
                left.reclaimable += file;
                let min = zone.watermarks.mark(Mark::Min);
                left.hope |=
                    zone.watermark_ok(Order(0), min, ZoneKind::Movable, AllocFlags::WMARK_MIN, free + file);
            }
        });
        left
    }
}

/// File pages of a zone in groups that use more than their effective `memory.min`.
fn unprotected(mem: &SimMemory, zone: &Zone) -> u64 {
    let groups = mem.core.cgroups.ids().filter(|&id| {
        let group = &mem.core.cgroups[id];
        group.effective_min == 0 || group.memory.usage > group.effective_min
    });
    let file = |id, kind| {
        let lists = mem.lru.lruvec(id, zone.node);
        lists.size(LruList::InactiveFile, kind) + lists.size(LruList::ActiveFile, kind)
    };
    let below = (zone.kind as usize).checked_sub(1).map(|index| ZoneKind::ALL[index]);
    groups.map(|id| file(id, zone.kind) - below.map_or(0, |kind| file(id, kind))).sum()
}
