//! One pass over the zones for a page, and what it costs. Next: [`super::slow_path`].

use mm::alloc::flags::AllocFlags;
use mm::alloc::page_alloc::AllocOutcome;
use mm::base::event::Trace;
use mm::base::gfp::Gfp;
use units::{Order, Pfn};

use crate::handle::Kernel;
use crate::machine::{CostOp, Machine};

impl<M: Machine, T: Trace> Kernel<M, T> {
    /// Charges the CPU for one pass and wakes kswapd where the pass boosted a zone.
    pub(crate) fn settle_outcome(&self, outcome: &AllocOutcome, order: Order) -> Option<Pfn> {
        let machine = self.machine();
        machine.charge(if order == Order(0) { CostOp::PcpAlloc } else { CostOp::BuddyAlloc }, 1);
        if outcome.refilled > 0 {
            machine.charge(CostOp::PcpRefillPage, u64::from(outcome.refilled));
        }
        if outcome.stolen_blocks > 0 {
            machine.charge(CostOp::StealBlock, u64::from(outcome.stolen_blocks));
        }
        for zone in outcome.wake.iter() {
            let (node, kind) =
                self.mem(|mem| (mem.core.alloc.zone(zone).node, mem.core.alloc.zone(zone).kind));
            let _ = self.wakeup_kswapd(node, Order(0), kind);
        }
        if let Some(pfn) = outcome.page {
            let fresh = self.shared.used_frames.borrow_mut().use_block(pfn, order);
            if fresh > 0 {
                machine.charge(CostOp::FirstUse, fresh);
            }
        }
        outcome.page
    }

    pub(crate) fn try_once(&self, gfp: Gfp, order: Order, flags: AllocFlags) -> Option<Pfn> {
        let cpu = self.machine().current_cpu();
        let outcome = self.mem(|mem| mem.core.alloc.alloc(cpu, gfp, order, flags));
        self.settle_outcome(&outcome, order)
    }
}
