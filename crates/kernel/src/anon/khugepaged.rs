//! khugepaged: looks at mappings a piece at a time and puts a huge page in the place of single ones
//! (MECHANISMS 12.3). Left out: settings other than their defaults.

use mm::base::event::Trace;
use mm::base::gfp::Gfp;
use mm::base::ids::AnonId;
use mm::base::vmstat::VmEvent;
use units::Nanos;

use crate::anon::area::HugeAdvice;
use crate::anon::huge::{HUGE_PAGES, LIGHT, eligible};
use crate::handle::Kernel;
use crate::machine::{CostOp, Machine, WaitReason};
use crate::tasks::process::Process;

/// Page table entries that khugepaged looks at in a round (`pages_to_scan`).
const PAGES_TO_SCAN: u32 = 4096;

/// Between two rounds (`scan_sleep_millisecs`).
const SCAN_SLEEP: Nanos = Nanos::from_secs(10);

/// After an allocation that failed (`alloc_sleep_millisecs`).
const ALLOC_SLEEP: Nanos = Nanos::from_secs(60);

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
            let range = self.mem(|mem| mem.anon_range(candidate.anon, candidate.first));
            // Any number of empty entries but all will do (`max_ptes_none` = 511).
            let fits = range.present > 0 && range.referenced && !range.huge && !range.busy;
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
        let Some(pfn) = self.alloc_huge_page(None, process, gfp).await else {
            self.mem(|mem| mem.core.alloc.events.add(VmEvent::ThpCollapseAllocFailed, 1));
            return false;
        };
        self.mem(|mem| mem.core.alloc.events.add(VmEvent::ThpCollapseAlloc, 1));
        // Much may have happened meanwhile: the process may be gone, the range be freed.
        let owns = process.0.anon.borrow().iter().flatten().any(|area| area.anon == *anon);
        let range = self.mem(|mem| mem.anon_range(*anon, *first));
        if process.is_killed() || !owns || range.present == 0 || range.huge || range.busy {
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
