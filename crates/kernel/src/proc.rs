//! `/proc/sys/vm`, `/proc/vmstat`, `drop_caches` and `swapon`.

use std::rc::Rc;

use mm::base::event::Trace;
use mm::base::sysctl::Sysctl;
use mm::base::vmstat::VmEvent;
use mm::swap::areas::AreaSpec;
use units::CpuId;

use crate::errno::Errno;
use crate::files::inode::Inode;
use crate::handle::Kernel;
use crate::machine::{CostOp, Machine};

impl<M: Machine, T: Trace> Kernel<M, T> {
    /// `swapon`: adds an area, below those that are there already unless it has a priority.
    pub fn swap_on(&self, area: AreaSpec) {
        self.mem(|mem| mem.add_swap_area(area));
    }

    /// Reads a sysctl.
    ///
    /// # Errors
    /// `NoEnt`, also for one that the version does not have.
    pub fn sysctl_read(&self, name: &str) -> Result<String, Errno> {
        let sysctl = self.find_sysctl(name)?;
        Ok(sysctl.value_text(self.mem(|mem| mem.core.alloc.sysctls().get(sysctl))))
    }

    fn find_sysctl(&self, name: &str) -> Result<Sysctl, Errno> {
        let found = Sysctl::parse(name).ok();
        found.filter(|&sysctl| self.mem(|mem| mem.core.rules().has_sysctl(sysctl))).ok_or(Errno::NoEnt)
    }

    /// Writes a sysctl; watermarks follow at once.
    ///
    /// # Errors
    /// `NoEnt`; `Inval` for a value out of range.
    pub fn sysctl_write(&self, name: &str, value: &str) -> Result<(), Errno> {
        let sysctl = self.find_sysctl(name)?;
        let value = sysctl.parse_value(value).map_err(|_| Errno::Inval)?;
        if value > self.mem(|mem| mem.core.rules().sysctl_max(sysctl)) {
            return Err(Errno::Inval);
        }
        self.mem(|mem| mem.set_sysctl(sysctl, value));
        self.start_zswap();
        if sysctl == Sysctl::DirtyRatio {
            self.set_cpu_paces();
        }
        if sysctl == Sysctl::ThpEnabled {
            // khugepaged looks again whether it has work.
            self.machine().wake_all(self.shared.khugepaged);
        }
        Ok(())
    }

    /// `/proc/vmstat`.
    pub fn vmstat(&self) -> Vec<(String, u64)> {
        self.mem(|mem| mem.vmstat().map(|(name, value)| (name.to_string(), value)).collect())
    }

    /// `drop_caches`, after a `sync`: bit 0 frees clean page cache, bit 1 dentries and inodes that
    /// nobody uses.
    ///
    /// # Errors
    /// `Inval` for other bits.
    pub async fn drop_caches(&self, mask: u8) -> Result<(), Errno> {
        if mask == 0 || mask > 3 {
            return Err(Errno::Inval);
        }
        self.sync().await;
        self.put_closed();
        if (mask & 1) != 0 {
            self.mem(|mem| {
                mem.lru_drain_all();
                mem.core.alloc.events.add(VmEvent::DropPageCache, 1);
            });
            let inodes: Vec<Rc<Inode>> = self.shared.files.borrow().inodes().cloned().collect();
            for inode in inodes {
                let cpu: CpuId = self.machine().current_cpu();
                if inode.gone.get() {
                    continue; // It went while we waited.
                }
                let freed = self.mem(|mem| mem.mapping_invalidate(cpu, inode.mapping, true));
                self.machine().charge(CostOp::PcpFree, freed);
                self.machine().cond_resched().await; // drop_pagecache_sb
            }
        }
        if (mask & 2) != 0 {
            let cpu = self.machine().current_cpu();
            let freed = self.mem(|mem| {
                mem.core.alloc.events.add(VmEvent::DropSlab, 1);
                mem.drop_slab(cpu)
            });
            self.machine().charge(CostOp::SlabScanObject, freed);
            self.machine().cond_resched().await; // drop_slab
        }
        Ok(())
    }
}
