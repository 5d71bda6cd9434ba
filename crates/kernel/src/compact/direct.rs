//! Direct compaction: a task in the allocator's slow path compacts for its block (MECHANISMS 4.4,
//! 12.1, MECHANISMS-6X 9).
//!
//! `direct_compact` is one round over the zonelist. Next: [`crate::alloc::slow_path`].

use mm::alloc::flags::{AllocFlags, gfp_zone};
use mm::base::event::Trace;
use mm::base::gfp::Gfp;
use mm::base::layout::ZoneId;
use mm::base::vmstat::VmEvent;
use mm::compact::state::{CompactGoal, CompactPriority, CompactRequest, CompactResult};
use mm::version::rules::Compaction;
use units::{Order, Pfn};

use crate::handle::Kernel;
use crate::machine::Machine;
use crate::section::{Section, Site};

impl<M: Machine, T: Trace> Kernel<M, T> {
    /// `try_to_compact_pages`: one round over the zones that a request may use, until one has a
    /// block. The best result counts.
    async fn compact_zonelist(
        &self,
        gfp: Gfp,
        order: Order,
        flags: AllocFlags,
        priority: CompactPriority,
    ) -> CompactResult {
        let mut best = CompactResult::Skipped;
        if !gfp.has(Gfp::IO) || self.mem(|mem| mem.core.rules().compaction) == Compaction::Off {
            return best;
        }
        let highest_zoneidx = gfp_zone(gfp);
        let request = CompactRequest {
            order,
            want: gfp.migrate_type(),
            highest_zoneidx,
            flags,
            priority,
            direct: true,
            may_fs: gfp.has(Gfp::FS),
            goal: CompactGoal::Block,
        };
        let cpu = self.machine().current_cpu();
        let zones: Vec<ZoneId> = self.mem(|mem| mem.core.alloc.zonelist(cpu, gfp).to_vec());
        for zone in zones {
            let can_defer = priority > CompactPriority::SyncFull;
            if can_defer && self.mem(|mem| mem.compaction_deferred(zone, order)) {
                best = best.max(CompactResult::Deferred);
                continue;
            }
            let result = self.compact_zone(zone, request).await;
            best = best.max(result);
            match result {
                CompactResult::Success => {
                    self.mem(|mem| mem.compaction_succeeded(zone, order, false));
                    return best;
                }
                CompactResult::Complete | CompactResult::PartialSkipped
                    if priority != CompactPriority::Async =>
                {
                    self.mem(|mem| mem.defer_compaction(zone, order));
                }
                _ => {}
            }
        }
        best
    }

    /// `__alloc_pages_direct_compact`: compacts, then tries to allocate.
    ///
    /// # Errors
    /// How compaction ended, if there is no page.
    pub(crate) async fn direct_compact(
        &self,
        gfp: Gfp,
        order: Order,
        flags: AllocFlags,
        priority: CompactPriority,
    ) -> Result<Pfn, CompactResult> {
        self.machine().enter(Section::Site(Site::DirectCompaction));
        let result = self.compact_zonelist(gfp, order, flags, priority).await;
        self.machine().leave(Section::Site(Site::DirectCompaction));
        if result <= CompactResult::Deferred {
            return Err(result);
        }
        self.mem(|mem| mem.core.alloc.events.add(VmEvent::CompactStall, 1));
        if let Some(pfn) = self.try_once(gfp, order, flags) {
            self.mem(|mem| {
                let zone = mem.core.alloc.zone_of(pfn);
                mem.compaction_succeeded(zone, order, true);
                mem.core.alloc.events.add(VmEvent::CompactSuccess, 1);
            });
            return Ok(pfn);
        }
        self.mem(|mem| mem.core.alloc.events.add(VmEvent::CompactFail, 1));
        self.machine().cond_resched().await; // after a failed compaction
        Err(result)
    }
}
