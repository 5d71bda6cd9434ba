//! What a process does with its own pages: whoever runs uses its stack, its heap and what it changed of its
//! libraries, and reads what it has from `fork`, so reclaim finds these accessed, and those that went to swap are read
//! again.
//!
//! Between two calls of the kernel a process uses [`USED_PAGES`] of its own. That is looked at only once reclaim has
//! looked at one of them or taken it: before, nothing would change. Left out: pages that are used at times, and code;
//! that each process maps what it has from `fork` by a fault of its own.
//! Next: [`super::start`], which gives them to it.

use mm::base::event::Trace;
use mm::pages::anon_swap::SwapFault;

use crate::anon::area::UsedPages;
use crate::handle::Kernel;
use crate::machine::{CostOp, Machine};
use crate::tasks::process::Process;

/// Of its own anonymous pages, the last so many are in use. Measured in guests of User-Mode Linux 6.12 by
/// `/proc/PID/clear_refs` and `smaps`: in half a second those that create files referenced 10 to 14 of 25 private
/// pages, one that reads a file 10, and writers that pause 3.
const USED_PAGES: u64 = 12;
/// The mapping that has them.
const OWN: usize = 0;

impl<M: Machine, T: Trace> Kernel<M, T> {
    /// The end of a system call (`exit_to_user_mode`): who is above `memory.high` pays for it, who is to give way does,
    /// and then the program runs on.
    pub(crate) async fn return_to_user(&self, process: &Process) {
        if process.owes() {
            self.handle_over_high(process).await;
        }
        self.machine().return_to_user().await;
        if !self.mem(|mem| mem.core.aged.is_empty()) {
            self.program_runs(process).await;
        }
    }

    /// A program runs: it uses its own pages, and those that it has from `fork`.
    pub async fn program_runs(&self, process: &Process) {
        let own = process.0.anon.borrow()[OWN];
        let own = own.map(|area| UsedPages { area, used: USED_PAGES, write: true });
        for pages in [own, self.shared.inherited.get()].into_iter().flatten() {
            if self.mem(|mem| mem.core.aged.take(pages.area.anon)) {
                self.use_pages(process, pages).await;
            }
        }
    }

    async fn use_pages(&self, process: &Process, UsedPages { area, used, write }: UsedPages) {
        for page in area.pages.saturating_sub(used)..area.pages {
            let page = u32::try_from(page).expect("few pages are in use");
            if let Some(accessed) = self.mem(|mem| mem.access_anon(area.anon, page, write)) {
                if accessed.is_fault {
                    self.machine().charge(CostOp::AccessFault, 1);
                    self.count_fault(process.memcg());
                }
            } else if let Some(slot) = self.mem(|mem| mem.anon.swapped_at(area.anon, page)) {
                let fault = SwapFault { anon: area.anon, index: page, slot, write, locked: false };
                let pages = u32::try_from(area.pages).expect("few pages are in use");
                // Whoever cannot have a page of its own back is being killed.
                let Ok(is_major) = self.swap_fault(process, fault, pages).await else { return };
                if is_major {
                    self.count_major_fault(process);
                }
                self.mem(|mem| mem.access_anon(area.anon, page, write));
                self.count_fault(process.memcg());
                self.machine().return_to_user().await; // irqentry_exit
            }
        }
    }
}
