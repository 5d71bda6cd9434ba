//! Huge pages for anonymous memory: what a fault asks for (MECHANISMS 12.2).
//!
//! A fault in an empty, aligned 2 MiB of a mapping tries for a block of order 9, as hard as
//! `thp.defrag` says, and falls back to a single page.
//!
//! Left out: the huge zero page, huge pages of other sizes (6.8), preference for the local node.
//! Next: [`super::mapping`], [`super::khugepaged`].

use mm::alloc::pageblock::HUGE_ORDER;
use mm::base::event::Trace;
use mm::base::gfp::Gfp;
use mm::base::ids::AnonId;
use mm::base::sysctl::{ThpDefrag, ThpEnabled};
use mm::base::vmstat::VmEvent;
use units::Pfn;

use crate::alloc::purpose::Purpose;
use crate::anon::area::HugeAdvice;
use crate::errno::Errno;
use crate::handle::Kernel;
use crate::machine::{CostOp, Machine};
use crate::tasks::process::Process;

/// Pages of a huge page.
pub(crate) const HUGE_PAGES: u32 = HUGE_ORDER.pages();

/// A huge page's request without any effort (`GFP_TRANSHUGE_LIGHT`).
pub(crate) const LIGHT: Gfp = Gfp(Gfp::IO.0 | Gfp::FS.0 | Gfp::MOVABLE_BIT.0 | Gfp::NOMEMALLOC.0);

/// Whether huge pages may serve a mapping.
pub(crate) const fn eligible(enabled: ThpEnabled, advice: HugeAdvice) -> bool {
    match (enabled, advice) {
        (ThpEnabled::Never, _) | (_, HugeAdvice::NoHuge) => false,
        (ThpEnabled::Always, _) | (ThpEnabled::Madvise, HugeAdvice::Huge) => true,
        (ThpEnabled::Madvise, HugeAdvice::None) => false,
    }
}

/// What a fault asks the allocator for (`vma_thp_gfp_mask`).
const fn fault_gfp(defrag: ThpDefrag, advised: bool) -> Gfp {
    let direct = Gfp(LIGHT.0 | Gfp::DIRECT_RECLAIM.0);
    let wakes = Gfp(LIGHT.0 | Gfp::KSWAPD_RECLAIM.0);
    match (defrag, advised) {
        (ThpDefrag::Always, false) => Gfp(direct.0 | Gfp::NORETRY.0),
        (ThpDefrag::Always | ThpDefrag::DeferMadvise | ThpDefrag::Madvise, true) => direct,
        (ThpDefrag::Defer, _) | (ThpDefrag::DeferMadvise, false) => wakes,
        (ThpDefrag::Madvise, false) | (ThpDefrag::Never, _) => LIGHT,
    }
}

impl<M: Machine, T: Trace> Kernel<M, T> {
    /// The first page of the huge page that a fault at `page` may bring in: its 2 MiB lie in the
    /// mapping and are empty.
    fn huge_range(&self, process: &Process, mapping: usize, page: u32) -> Option<(AnonId, u32, bool)> {
        let areas = process.0.anon.borrow();
        let area = areas[mapping].as_ref()?;
        let first = page & !(HUGE_PAGES - 1);
        if u64::from(first) + u64::from(HUGE_PAGES) > area.pages {
            return None;
        }
        self.mem(|mem| {
            let may = eligible(mem.core.alloc.sysctls().thp_enabled(), area.advice);
            let empty = may && mem.anon.is_range_empty(area.anon, first, HUGE_PAGES);
            empty.then_some((area.anon, first, area.advice == HugeAdvice::Huge))
        })
    }

    /// A fault at `page` tries for a huge page (`do_huge_pmd_anonymous_page`); false: it must make
    /// do with a single one.
    ///
    /// # Errors
    /// `Killed`.
    pub(crate) async fn huge_fault(
        &self,
        process: &Process,
        mapping: usize,
        page: u32,
    ) -> Result<bool, Errno> {
        let Some((anon, first, advised)) = self.huge_range(process, mapping, page) else { return Ok(false) };
        let gfp = fault_gfp(self.mem(|mem| mem.core.alloc.sysctls().thp_defrag()), advised);
        let huge = self.alloc_huge_page(Some(process), process, gfp).await;
        let Some(pfn) = huge else {
            self.mem(|mem| mem.core.alloc.events.add(VmEvent::ThpFaultFallback, 1));
            return Ok(false);
        };
        self.machine().charge(CostOp::ClearHugePage, 1);
        self.machine().charge(CostOp::HugeFault, 1);
        let cpu = self.machine().current_cpu();
        if process.is_killed() {
            self.free_huge_page(process, pfn);
            return Err(Errno::Killed);
        }
        self.mem(|mem| {
            mem.anon_map(cpu, anon, first, pfn, process.memcg());
            mem.core.alloc.events.add(VmEvent::ThpFaultAlloc, 1);
        });
        self.lock_new_pages(process, mapping, first..first + HUGE_PAGES);
        Ok(true)
    }

    /// Allocates a huge page for `by`, or for a kernel thread if none, and charges `process`.
    pub(crate) async fn alloc_huge_page(
        &self,
        by: Option<&Process>,
        process: &Process,
        gfp: Gfp,
    ) -> Option<Pfn> {
        let pfn = self.alloc_pages_for(Purpose::HugeFault, by, gfp, HUGE_ORDER).await?;
        // A limit is no reason to kill for a huge page.
        let (memcg, charge) = (process.memcg(), gfp | Gfp::NORETRY);
        let charged = match by {
            Some(_) => self.charge_pages(process, memcg, HUGE_PAGES, charge).await,
            None => self.charge_unpaid(process, memcg, HUGE_PAGES, charge).await.map(drop),
        };
        if charged.is_err() {
            let cpu = self.machine().current_cpu();
            self.mem(|mem| mem.core.alloc.free(cpu, pfn, HUGE_ORDER));
            return None;
        }
        Some(pfn)
    }

    pub(crate) fn free_huge_page(&self, process: &Process, pfn: Pfn) {
        let cpu = self.machine().current_cpu();
        self.mem(|mem| {
            mem.core.cgroups.uncharge(process.memcg(), u64::from(HUGE_PAGES));
            mem.core.alloc.free(cpu, pfn, HUGE_ORDER);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_advised_faults_may_wait_by_default() {
        let row = |defrag| {
            [false, true].map(|advised| {
                let gfp = fault_gfp(defrag, advised);
                match (gfp.has(Gfp::DIRECT_RECLAIM), gfp.has(Gfp::KSWAPD_RECLAIM)) {
                    (true, false) if gfp.has(Gfp::NORETRY) => "reclaims once",
                    (true, false) => "reclaims",
                    (false, true) => "wakes",
                    (false, false) => "takes what is there",
                    (true, true) => "both",
                }
            })
        };
        assert_eq!(row(ThpDefrag::Always), ["reclaims once", "reclaims"]);
        assert_eq!(row(ThpDefrag::Defer), ["wakes", "wakes"]);
        assert_eq!(row(ThpDefrag::DeferMadvise), ["wakes", "reclaims"]);
        assert_eq!(row(ThpDefrag::Madvise), ["takes what is there", "reclaims"]);
        assert_eq!(row(ThpDefrag::Never), ["takes what is there", "takes what is there"]);
    }

    #[test]
    fn advice_matters_only_where_it_is_asked_for() {
        use HugeAdvice::{Huge, NoHuge, None};
        let row = |enabled| [None, Huge, NoHuge].map(|advice| eligible(enabled, advice));
        assert_eq!(row(ThpEnabled::Always), [true, true, false]);
        assert_eq!(row(ThpEnabled::Madvise), [false, true, false]);
        assert_eq!(row(ThpEnabled::Never), [false, false, false]);
    }
}
