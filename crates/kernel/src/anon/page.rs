//! A new page in a mapping: allocated, charged, and locked where the mapping is.
//!
//! Next: [`super::mapping`] and [`super::file_fault`], whose faults ask for it.

use mm::MemcgId;
use mm::base::event::Trace;
use mm::base::gfp::Gfp;
use units::{Order, Pfn};

use crate::alloc::purpose::Purpose;
use crate::anon::area::{AnonArea, AnonMapping};
use crate::errno::Errno;
use crate::handle::Kernel;
use crate::machine::{CostOp, Machine};
use crate::tasks::process::Process;

impl<M: Machine, T: Trace> Kernel<M, T> {
    /// The mapping, unless it is gone.
    pub(crate) fn area(&self, process: &Process, mapping: AnonMapping) -> Option<AnonArea> {
        process.0.anon.borrow().get(mapping.index).copied().flatten()
    }

    /// Allocates and charges an anonymous page and puts it into mapping `mapping` at `index`.
    pub(crate) async fn add_anon_page(
        &self,
        process: &Process,
        mapping: usize,
        index: u32,
    ) -> Result<(), Errno> {
        let page = self.new_anon_page(process).await?;
        self.place_anon_page(process, mapping, index, page)
    }

    /// A page for anonymous memory of a process, charged to its cgroup, which comes with it.
    ///
    /// # Errors
    /// There is no memory to be had.
    pub(crate) async fn new_anon_page(&self, process: &Process) -> Result<(Pfn, MemcgId), Errno> {
        let gfp = Gfp::HIGHUSER_MOVABLE;
        let memcg = process.memcg();
        let pfn = self
            .alloc_pages_for(Purpose::AnonFault, Some(process), gfp, Order(0))
            .await
            .ok_or(Errno::NoMem)?;
        match self.charge_pages(process, memcg, 1, gfp).await {
            Ok(()) => Ok((pfn, memcg)),
            Err(errno) => {
                let cpu = self.machine().current_cpu();
                self.mem(|mem| mem.core.alloc.free(cpu, pfn, Order(0)));
                Err(errno)
            }
        }
    }

    /// Gives such a page back.
    pub(crate) fn drop_anon_page(&self, (pfn, memcg): (Pfn, MemcgId)) {
        let cpu = self.machine().current_cpu();
        self.mem(|mem| {
            mem.core.cgroups.uncharge(memcg, 1);
            mem.core.alloc.free(cpu, pfn, Order(0));
        });
    }

    /// Maps such a page.
    ///
    /// # Errors
    /// The process is killed, or has the mapping no longer.
    pub(crate) fn place_anon_page(
        &self,
        process: &Process,
        mapping: usize,
        index: u32,
        page: (Pfn, MemcgId),
    ) -> Result<(), Errno> {
        let area = process.0.anon.borrow()[mapping].filter(|_| !process.is_killed());
        let Some(area) = area else {
            self.drop_anon_page(page);
            return Err(Errno::Killed);
        };
        // While it waited for memory, khugepaged may have filled the place.
        if self.mem(|mem| mem.anon.is_range_empty(area.anon, index, 1)) {
            let cpu = self.machine().current_cpu();
            self.mem(|mem| mem.anon_map(cpu, area.anon, index, page.0, page.1));
        } else {
            self.drop_anon_page(page);
        }
        self.lock_new_pages(process, mapping, index..index + 1);
        self.machine().charge(CostOp::ClearPage, 1);
        Ok(())
    }
}
