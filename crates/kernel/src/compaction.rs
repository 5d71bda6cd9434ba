//! Who compacts memory, and when: tasks in the allocator's slow path, and kcompactd
//! (MECHANISMS 4.4, 12.1, MECHANISMS-6X 9).
//!
//! [`Kernel::direct_compact`] is one round over the zonelist for a task that waits for a block;
//! [`Kernel::kcompactd`] does the same for its node when kswapd has nothing more to do. The steps
//! themselves are those of `mm::compact::run`.
//!
//! Left out: proactive compaction, `compact_memory`. Next: [`crate::allocate`].

use mm::alloc::flags::{AllocFlags, class_of};
use mm::alloc::suitable::Suitability;
use mm::base::event::Trace;
use mm::base::gfp::{Gfp, MigrateType};
use mm::base::layout::{ZoneId, ZoneKind};
use mm::base::vmstat::VmEvent;
use mm::compact::state::{CompactPriority, CompactRequest, CompactResult, CompactStep};
use units::{NodeId, Order, Pfn};

use crate::allocate::COSTLY_ORDER;
use crate::kernel::Kernel;
use crate::machine::{CostOp, Machine, WaitReason};

/// Rounds in which compaction made progress (`MAX_COMPACT_RETRIES`); a quarter of it for costly
/// orders.
const MAX_COMPACT_RETRIES: u32 = 16;

/// What the slow path remembers of its compaction rounds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CompactTries {
    pub(crate) priority: CompactPriority,
    pub(crate) result: CompactResult,
    retries: u32,
}

impl CompactTries {
    pub(crate) const fn new() -> Self {
        Self { priority: CompactPriority::SyncLight, result: CompactResult::Skipped, retries: 0 }
    }
}

/// What kcompactd of a node was asked for since it last looked.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct KcompactdRequest {
    order: Order,
    class: Option<ZoneKind>,
}

impl<M: Machine, T: Trace> Kernel<M, T> {
    /// One run on one zone.
    async fn compact_zone(&self, zone: ZoneId, request: CompactRequest) -> CompactResult {
        let cpu = self.machine().current_cpu();
        let mut run = match self.mem(|mem| mem.begin_compact(cpu, zone, request)) {
            Ok(run) => run,
            Err(result) => return result,
        };
        let result = loop {
            let cpu = self.machine().current_cpu();
            let step = self.mem(|mem| mem.compact_step(cpu, &mut run));
            self.pay_for_compaction(&step, request.direct);
            if let Some(result) = step.done {
                break result;
            }
            self.machine().cond_resched().await; // isolate_migratepages and migrate_pages
        };
        let cpu = self.machine().current_cpu();
        self.mem(|mem| mem.end_compact(cpu, run));
        result
    }

    fn pay_for_compaction(&self, step: &CompactStep, direct: bool) {
        let machine = self.machine();
        machine.charge(CostOp::CompactScanMigrate, step.migrate_scanned);
        machine.charge(CostOp::CompactScanFree, step.free_scanned);
        machine.charge(CostOp::MigratePage, step.moved_file + step.failed);
        machine.charge(CostOp::MigrateMappedPage, step.moved_anon);
        machine.charge(CostOp::PcpRefillPage, step.drained);
        if !direct {
            self.mem(|mem| {
                let events = &mut mem.core.alloc.events;
                events.add(VmEvent::CompactDaemonMigrateScanned, step.migrate_scanned);
                events.add(VmEvent::CompactDaemonFreeScanned, step.free_scanned);
            });
        }
    }

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
        if !gfp.has(Gfp::IO) {
            return best;
        }
        let class = class_of(gfp);
        let request = CompactRequest {
            order,
            want: gfp.migrate_type(),
            class,
            flags,
            priority,
            direct: true,
            may_fs: gfp.has(Gfp::FS),
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

    /// `__alloc_pages_direct_compact`: compacts, then tries to allocate. Stores the result.
    pub(crate) async fn direct_compact(
        &self,
        gfp: Gfp,
        order: Order,
        flags: AllocFlags,
        priority: CompactPriority,
        result: &mut CompactResult,
    ) -> Option<Pfn> {
        if order == Order(0) {
            return None;
        }
        *result = self.compact_zonelist(gfp, order, flags, priority).await;
        if *result <= CompactResult::Deferred {
            return None;
        }
        self.mem(|mem| mem.core.alloc.events.add(VmEvent::CompactStall, 1));
        if let Some(pfn) = self.try_once(gfp, order, flags) {
            self.mem(|mem| {
                let zone = mem.core.alloc.zone_of(pfn);
                mem.compaction_succeeded(zone, order, true);
                mem.core.alloc.events.add(VmEvent::CompactSuccess, 1);
            });
            return Some(pfn);
        }
        self.mem(|mem| mem.core.alloc.events.add(VmEvent::CompactFail, 1));
        self.machine().cond_resched().await; // after a failed compaction
        None
    }

    /// `should_compact_retry`: another round is worth it, perhaps one that tries harder.
    pub(crate) fn should_compact_retry(
        &self,
        gfp: Gfp,
        order: Order,
        flags: AllocFlags,
        tries: &mut CompactTries,
    ) -> bool {
        if order == Order(0) {
            return false;
        }
        let costly = order > COSTLY_ORDER;
        match tries.result {
            CompactResult::Skipped
            | CompactResult::Deferred
            | CompactResult::Contended
            | CompactResult::PartialSkipped => return self.compaction_can_help(gfp, order, flags),
            CompactResult::Success => {
                tries.retries += 1;
                let most = if costly { MAX_COMPACT_RETRIES / 4 } else { MAX_COMPACT_RETRIES };
                if tries.retries <= most {
                    return true;
                }
            }
            CompactResult::Complete => {}
        }
        let hardest = if costly { CompactPriority::SyncLight } else { CompactPriority::SyncFull };
        if tries.priority <= hardest {
            return false;
        }
        tries.priority = match tries.priority {
            CompactPriority::Async => CompactPriority::SyncLight,
            _ => CompactPriority::SyncFull,
        };
        tries.retries = 0;
        true
    }

    /// `compaction_zonelist_suitable`: could any zone be compacted if a part of its file pages were
    /// freed?
    fn compaction_can_help(&self, gfp: Gfp, order: Order, flags: AllocFlags) -> bool {
        let cpu = self.machine().current_cpu();
        self.mem(|mem| {
            mem.core.alloc.zonelist(cpu, gfp).iter().any(|&id| {
                let zone = mem.core.alloc.zone(id);
                let reclaimable = mem.zone_reclaimable_pages(zone.node, zone.kind) / u64::from(order.0);
                let available = zone.free_pages().0 + reclaimable;
                let suits = mem.compaction_suitable_with(id, order, flags, class_of(gfp), available);
                suits != Suitability::Skip
            })
        })
    }

    // ---- kcompactd ----

    /// The thread.
    pub(crate) async fn kcompactd(&self, node: NodeId) {
        let queue = self.shared.compaction.queues[node.index()];
        loop {
            let request = std::mem::take(&mut self.shared.compaction.requests.borrow_mut()[node.index()]);
            if request.order > Order(0) {
                self.kcompactd_do_work(node, request.order, request.class.unwrap_or(ZoneKind::Movable)).await;
            } else {
                let _ = self.machine().wait(queue, WaitReason::KcompactdIdle, None).await;
            }
        }
    }

    /// `wakeup_kcompactd`: notes the request; wakes if some zone can be compacted.
    pub(crate) fn wakeup_kcompactd(&self, node: NodeId, order: Order, class: ZoneKind) {
        if order == Order(0) {
            return;
        }
        {
            let request = &mut self.shared.compaction.requests.borrow_mut()[node.index()];
            request.order = request.order.max(order);
            request.class = Some(request.class.map_or(class, |before| before.min(class)));
        }
        let queue = self.shared.compaction.queues[node.index()];
        if self.machine().has_waiters(queue) {
            let suits = self.zones_up_to(node, class).into_iter().any(|zone| self.suits(zone, order, class));
            if suits {
                self.machine().wake_all(queue);
            }
        }
    }

    fn suits(&self, zone: ZoneId, order: Order, class: ZoneKind) -> bool {
        let flags = AllocFlags::WMARK_MIN;
        self.mem(|mem| mem.compaction_suitable(zone, order, flags, class)) == Suitability::Suitable
    }

    async fn kcompactd_do_work(&self, node: NodeId, order: Order, class: ZoneKind) {
        self.mem(|mem| mem.core.alloc.events.add(VmEvent::CompactDaemonWake, 1));
        let request = CompactRequest {
            order,
            want: MigrateType::Movable,
            class,
            flags: AllocFlags::WMARK_MIN,
            priority: CompactPriority::SyncLight,
            direct: false,
            may_fs: true,
        };
        for zone in self.zones_up_to(node, class) {
            if self.mem(|mem| mem.compaction_deferred(zone, order)) || !self.suits(zone, order, class) {
                continue;
            }
            match self.compact_zone(zone, request).await {
                CompactResult::Success => self.mem(|mem| mem.compaction_succeeded(zone, order, false)),
                CompactResult::PartialSkipped | CompactResult::Complete => {
                    // Pages on per-CPU lists may be all that is missing.
                    self.mem(|mem| {
                        let _ = mem.core.alloc.drain_all();
                        mem.defer_compaction(zone, order);
                    });
                    self.machine().charge(CostOp::DrainCpu, u64::from(self.machine().cpu_count()));
                }
                _ => {}
            }
        }
    }
}
