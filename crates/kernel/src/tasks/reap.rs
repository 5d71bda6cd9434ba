//! Freeing the memory of a process that is killed or ends.

use mm::base::event::Trace;
use units::CpuId;

use crate::anon::area::AnonArea;
use crate::handle::Kernel;
use crate::machine::{CostOp, Machine};
use crate::tasks::process::Process;

impl<M: Machine, T: Trace> Kernel<M, T> {
    /// Frees a process's memory (`exit_mmap`). What waits in the batches of this CPU goes onto the lists
    /// before (`lru_add_drain`), and again as the pages are let go: mapped ones of files may have been accessed.
    pub(crate) fn unmap_all(&self, process: &Process) {
        let cpu = self.machine().current_cpu();
        self.mem(|mem| mem.lru_drain(cpu));
        let mut unmapped = 0;
        for area in &process.own_areas() {
            let freed = self.mem(|mem| mem.anon_unmap(cpu, area.anon, 0, u32::MAX));
            self.machine().charge(CostOp::PcpFree, freed);
            unmapped += freed + self.zap_file_pages(cpu, area);
        }
        self.mem(|mem| {
            mem.gather(cpu, unmapped);
            mem.lru_drain(cpu);
        });
    }

    /// The OOM reaper frees what it may of a victim's memory (`oom_reap_task`).
    pub(crate) fn oom_reap(&self, victim: &Process) {
        let cpu = self.machine().current_cpu();
        for area in &victim.own_areas() {
            let freed = self.mem(|mem| mem.anon_reap(cpu, area.anon));
            self.machine().charge(CostOp::PcpFree, freed);
            if !area.file.is_some_and(|file| self.mem(|mem| mem.cache.maps.area(file).shared)) {
                self.zap_file_pages(cpu, area);
            }
        }
    }

    /// Empties the page table of a file's mapping; returns the pages that it had.
    pub(crate) fn zap_file_pages(&self, cpu: CpuId, area: &AnonArea) -> u64 {
        let Some(file) = area.file else { return 0 };
        let unmapped = self.mem(|mem| mem.zap_area(cpu, file));
        self.machine().charge(CostOp::ZapPage, unmapped);
        unmapped
    }

    /// Anonymous pages that a process holds: what the OOM killer sorts by.
    pub(crate) fn anon_pages(&self, process: &Process) -> u64 {
        let areas = process.own_areas();
        self.mem(|mem| areas.iter().map(|area| mem.anon.pages(area.anon)).sum())
    }

    /// Its pages that are swapped out: `swapents`.
    pub(crate) fn swapped_pages(&self, process: &Process) -> u64 {
        let areas = process.own_areas();
        self.mem(|mem| areas.iter().map(|area| mem.anon.swapped_pages(area.anon)).sum())
    }
}
