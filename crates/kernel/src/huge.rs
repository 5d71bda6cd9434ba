//! Huge pages for anonymous memory: faults, and khugepaged (MECHANISMS 12.2, 12.3).
//!
//! A fault in an empty, aligned 2 MiB of a mapping tries for a block of order 9, as hard as
//! `thp.defrag` says, and falls back to a single page. khugepaged looks at mappings a piece at a
//! time and puts a huge page in the place of single ones.
//!
//! Left out: the huge zero page, huge pages of other sizes (6.8), `khugepaged` settings other than
//! their defaults, preference for the local node. Next: [`crate::anon`].

use mm::alloc::pageblock::PAGEBLOCK_ORDER as HUGE_ORDER;
use mm::base::event::Trace;
use mm::base::gfp::Gfp;
use mm::base::ids::AnonId;
use mm::base::sysctl::{ThpDefrag, ThpEnabled};
use mm::base::vmstat::VmEvent;
use units::{Nanos, Pfn};

use crate::kernel::Kernel;
use crate::machine::{CostOp, Machine, WaitReason};
use crate::task::{Errno, Process};

/// Pages of a huge page.
pub(crate) const HUGE_PAGES: u32 = HUGE_ORDER.pages();
/// Page table entries that khugepaged looks at in a round (`pages_to_scan`).
const PAGES_TO_SCAN: u32 = 4096;
/// Between two rounds (`scan_sleep_millisecs`).
const SCAN_SLEEP: Nanos = Nanos::from_secs(10);
/// After an allocation that failed (`alloc_sleep_millisecs`).
const ALLOC_SLEEP: Nanos = Nanos::from_secs(60);

/// A huge page's request without any effort (`GFP_TRANSHUGE_LIGHT`).
const LIGHT: Gfp = Gfp(Gfp::IO.0 | Gfp::FS.0 | Gfp::MOVABLE_BIT.0 | Gfp::NOMEMALLOC.0);

/// Advice on a mapping.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum HugeAdvice {
    /// None was given.
    #[default]
    None,
    /// `MADV_HUGEPAGE`.
    Huge,
    /// `MADV_NOHUGEPAGE`.
    NoHuge,
}

/// Whether huge pages may serve a mapping.
const fn eligible(enabled: ThpEnabled, advice: HugeAdvice) -> bool {
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

/// Where khugepaged goes on.
#[derive(Debug, Clone, Copy, Default)]
struct Cursor {
    process: u32,
    mapping: usize,
    page: u32,
}

/// A 2 MiB range that khugepaged may collapse.
struct Candidate {
    process: Process,
    anon: AnonId,
    first: u32,
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
        let huge = self.alloc_huge_page(process, gfp).await;
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
        Ok(true)
    }

    /// Allocates and charges a huge page.
    async fn alloc_huge_page(&self, process: &Process, gfp: Gfp) -> Option<Pfn> {
        let pfn = self.alloc_pages(Some(process), gfp, HUGE_ORDER).await?;
        // A limit is no reason to kill for a huge page.
        let charge = gfp | Gfp::NORETRY;
        if self.charge_pages(process, process.memcg(), HUGE_PAGES, charge).await.is_err() {
            let cpu = self.machine().current_cpu();
            self.mem(|mem| mem.core.alloc.free(cpu, pfn, HUGE_ORDER));
            return None;
        }
        Some(pfn)
    }

    fn free_huge_page(&self, process: &Process, pfn: Pfn) {
        let cpu = self.machine().current_cpu();
        self.mem(|mem| {
            mem.core.cgroups.uncharge(process.memcg(), u64::from(HUGE_PAGES));
            mem.core.alloc.free(cpu, pfn, HUGE_ORDER);
        });
    }

    // ---- khugepaged ----

    /// A mapping that huge pages may serve exists: khugepaged has work (`khugepaged_enter`).
    pub(crate) fn khugepaged_enter(&self, advice: HugeAdvice) {
        if self.mem(|mem| eligible(mem.core.alloc.sysctls().thp_enabled(), advice)) {
            self.machine().wake_all(self.shared.khugepaged);
        }
    }

    /// The thread.
    pub(crate) async fn khugepaged(&self) {
        let mut cursor = Cursor::default();
        loop {
            if !self.has_huge_mapping() {
                let _ = self.machine().wait(self.shared.khugepaged, WaitReason::KhugepagedIdle, None).await;
                continue;
            }
            let pause = if self.khugepaged_round(&mut cursor).await { SCAN_SLEEP } else { ALLOC_SLEEP };
            self.machine().sleep(pause, WaitReason::KhugepagedIdle).await;
        }
    }

    fn has_huge_mapping(&self) -> bool {
        let enabled = self.mem(|mem| mem.core.alloc.sysctls().thp_enabled());
        self.shared.processes.borrow().list.iter().any(|process| {
            process
                .0
                .anon
                .borrow()
                .iter()
                .flatten()
                .any(|area| area.pages >= u64::from(HUGE_PAGES) && eligible(enabled, area.advice))
        })
    }

    /// One round over [`PAGES_TO_SCAN`] pages; false when an allocation failed.
    async fn khugepaged_round(&self, cursor: &mut Cursor) -> bool {
        self.mem(|mem| mem.lru_drain_all());
        for _ in 0..PAGES_TO_SCAN / HUGE_PAGES {
            let Some(candidate) = self.next_range(cursor) else { return true };
            self.machine().charge(CostOp::CompactScanMigrate, u64::from(HUGE_PAGES));
            let census = self.mem(|mem| mem.anon_census(candidate.anon, candidate.first));
            // Any number of empty entries but all will do (`max_ptes_none` = 511).
            let fits = census.present > 0 && census.referenced && !census.huge && !census.busy;
            if fits && !self.collapse(&candidate).await {
                return false;
            }
            self.machine().cond_resched().await; // khugepaged_do_scan
        }
        true
    }

    /// The next aligned 2 MiB of any eligible mapping; none at the end of the list, which starts
    /// over with the next call.
    fn next_range(&self, cursor: &mut Cursor) -> Option<Candidate> {
        let enabled = self.mem(|mem| mem.core.alloc.sysctls().thp_enabled());
        let processes = self.shared.processes.borrow();
        let first = cursor.process;
        for process in processes.list.iter().filter(|process| process.0.id.0 >= first) {
            if process.0.id.0 > cursor.process {
                *cursor = Cursor { process: process.0.id.0, ..Cursor::default() };
            }
            let areas = process.0.anon.borrow();
            while cursor.mapping < areas.len() {
                let area = areas[cursor.mapping].as_ref().filter(|area| eligible(enabled, area.advice));
                if let Some(area) = area
                    && u64::from(cursor.page) + u64::from(HUGE_PAGES) <= area.pages
                {
                    let candidate =
                        Candidate { process: process.clone(), anon: area.anon, first: cursor.page };
                    cursor.page += HUGE_PAGES;
                    return Some(candidate);
                }
                (cursor.mapping, cursor.page) = (cursor.mapping + 1, 0);
            }
        }
        *cursor = Cursor::default();
        None
    }

    /// `collapse_huge_page`; false when there was no huge page to be had.
    async fn collapse(&self, candidate: &Candidate) -> bool {
        let Candidate { process, anon, first } = candidate;
        let gfp = Gfp(LIGHT.0 | Gfp::DIRECT_RECLAIM.0);
        let Some(pfn) = self.alloc_huge_page(process, gfp).await else {
            self.mem(|mem| mem.core.alloc.events.add(VmEvent::ThpCollapseAllocFailed, 1));
            return false;
        };
        self.mem(|mem| mem.core.alloc.events.add(VmEvent::ThpCollapseAlloc, 1));
        // Much may have happened meanwhile: the process may be gone, the range be freed.
        let owns = process.0.anon.borrow().iter().flatten().any(|area| area.anon == *anon);
        let census = self.mem(|mem| mem.anon_census(*anon, *first));
        if process.is_killed() || !owns || census.present == 0 || census.huge || census.busy {
            self.free_huge_page(process, pfn);
            return true;
        }
        let cpu = self.machine().current_cpu();
        let copied = self.mem(|mem| mem.anon_collapse(cpu, *anon, *first, pfn, process.memcg()));
        self.machine().charge(CostOp::CopyPage, u64::from(copied));
        self.machine().charge(CostOp::ClearPage, u64::from(HUGE_PAGES - copied));
        self.machine().charge(CostOp::PcpFree, u64::from(copied));
        true
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
