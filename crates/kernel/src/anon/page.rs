//! A new page in a mapping: allocated, charged, and locked where the mapping is.
//!
//! Next: [`super::mapping`] and [`super::file_fault`], whose faults ask for it.

use mm::base::event::Trace;
use mm::base::gfp::Gfp;
use units::Order;

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
        let gfp = Gfp::HIGHUSER_MOVABLE;
        let memcg = process.memcg();
        let pfn = self
            .alloc_pages_for(Purpose::AnonFault, Some(process), gfp, Order(0))
            .await
            .ok_or(Errno::NoMem)?;
        let charged = self.charge_pages(process, memcg, 1, gfp).await;
        let cpu = self.machine().current_cpu();
        if let Err(errno) = charged {
            self.mem(|mem| mem.core.alloc.free(cpu, pfn, Order(0)));
            return Err(errno);
        }
        let area = process.0.anon.borrow()[mapping].filter(|_| !process.is_killed());
        let Some(area) = area else {
            self.mem(|mem| {
                mem.core.cgroups.uncharge(memcg, 1);
                mem.core.alloc.free(cpu, pfn, Order(0));
            });
            return Err(Errno::Killed);
        };
        // While it waited for memory, khugepaged may have filled the place.
        self.mem(|mem| match mem.anon.is_range_empty(area.anon, index, 1) {
            true => mem.anon_map(cpu, area.anon, index, pfn, memcg),
            false => {
                mem.core.cgroups.uncharge(memcg, 1);
                mem.core.alloc.free(cpu, pfn, Order(0));
            }
        });
        self.lock_new_pages(process, mapping, index..index + 1);
        self.machine().charge(CostOp::ClearPage, 1);
        Ok(())
    }
}
