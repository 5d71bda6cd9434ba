//! Pages of locked mappings: what faults in there is locked as it comes (`VM_LOCKED`). Next: [`super::mapping`], where
//! `mlock` and `munlock` are, [`super::area`].

use std::ops::Range;

use mm::base::event::Trace;

use crate::handle::Kernel;
use crate::machine::{CostOp, Machine};
use crate::tasks::process::Process;

impl<M: Machine, T: Trace> Kernel<M, T> {
    /// Pages have come to a mapping: those that are to be locked are.
    pub(crate) fn lock_new_pages(&self, process: &Process, mapping: usize, pages: Range<u32>) {
        let Some(locked) = process.0.locked.borrow().within(mapping, pages) else { return };
        self.machine().charge(CostOp::LockPage, u64::from(locked.end - locked.start));
        let cpu = self.machine().current_cpu();
        if let Some(area) = process.0.anon.borrow()[mapping] {
            self.mem(|mem| mem.anon_lock(cpu, area.anon, locked.start, locked.end - locked.start));
        }
    }
}
