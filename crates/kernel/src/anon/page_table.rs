//! Page tables of mappings: one unmovable page for every 2 MiB that has something in it,
//! from the first fault there until the mapping goes.
//!
//! They are the unmovable load of every program that uses memory of its own: one page in 513, never
//! reclaimed, allocated between its movable pages. A huge page needs one too, which the kernel keeps
//! for the day that it is split (`pgtable_trans_huge_deposit`), so a huge fault makes it as well.
//! Charged to the cgroup of the process.
//!
//! Left out: the upper levels (one page a gigabyte), and the counter `nr_page_table_pages`. Next: [`super::mapping`],
//! and [`crate::tasks::start`] for what a process costs at its start.

use mm::base::event::Trace;
use units::{Order, PAGE_SIZE};

use crate::errno::Errno;
use crate::handle::Kernel;
use crate::machine::Machine;
use crate::tasks::process::Process;

/// Pages that one table maps.
const TABLE_PAGES: u32 = (PAGE_SIZE / 8) as u32;

impl<M: Machine, T: Trace> Kernel<M, T> {
    /// Makes the table for `page` of mapping `mapping` if there is none (`__pte_alloc`).
    ///
    /// # Errors
    /// `NoMem`; `Killed`.
    pub(crate) async fn make_page_table(
        &self,
        process: &Process,
        mapping: usize,
        page: u32,
    ) -> Result<(), Errno> {
        let place = (mapping, page / TABLE_PAGES);
        if process.0.page_tables.borrow().contains_key(&place) {
            return Ok(());
        }
        let pfn = self.alloc_kernel_pages(process, Order(0)).await?;
        // Much may have happened while it waited for memory.
        let is_mapped = process.0.anon.borrow().get(mapping).is_some_and(Option::is_some);
        if !is_mapped || process.is_killed() {
            self.free_kernel_pages(process.memcg(), pfn, Order(0));
            return Err(Errno::Killed);
        }
        let another = process.0.page_tables.borrow_mut().insert(place, pfn);
        if let Some(another) = another {
            self.free_kernel_pages(process.memcg(), another, Order(0));
        }
        Ok(())
    }

    /// Frees the tables of a mapping (`free_pgtables`).
    pub(crate) fn free_page_tables(&self, process: &Process, mapping: usize) {
        let mut tables = process.0.page_tables.borrow_mut();
        let mut behind = tables.split_off(&(mapping, 0));
        let mut others = behind.split_off(&(mapping + 1, 0));
        tables.append(&mut others);
        drop(tables);
        behind.into_values().for_each(|pfn| self.free_kernel_pages(process.memcg(), pfn, Order(0)));
    }
}
