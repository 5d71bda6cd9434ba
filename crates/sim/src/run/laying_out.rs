//! Files that lie on a disk when a run begins.
//!
//! Where a program lays them out just before, as in guests, its machine's lists of free pages have what it left there;
//! samples have that from the run's first one on. Next: [`kernel::machine::LaidOut`].

use std::cell::RefCell;

use kernel::machine::{CostOp, LaidOut};
use kernel::{Errno, Machine};
use units::{Bytes, Seed};
use workload::system::ALL_CACHES;

use crate::engine::sim::SimKernel;
use crate::run::sample::Sampler;

/// By how much laying out files takes longer at some times than at the best.
const SPREAD_PERCENT: u64 = 40;

/// Lays `files` out, or tells which one cannot be.
pub(super) fn lay_out<'f>(
    kernel: &SimKernel,
    sampler: &RefCell<Sampler>,
    seed: Seed,
    files: &[&'f (String, Bytes)],
) -> Result<(), (&'f str, Errno)> {
    let lay_out = || {
        for (path, size) in files {
            kernel.lay_out_file(path, *size).map_err(|errno| (&**path, errno))?;
        }
        // How fast a disk is that day decides where a run begins in the periods of the kernel's workers.
        let percent = 100 + seed.stream("pace of laying out").below(SPREAD_PERCENT);
        let pages: u64 = files.iter().map(|(_, size)| size.to_pages_ceil().0).sum();
        kernel.machine().charge(CostOp::LayOutFile, files.len() as u64 * percent / 100);
        kernel.machine().charge(CostOp::LayOutPage, pages * percent / 100);
        Ok(())
    };
    match kernel.machine().build().laid_out {
        LaidOut::LongAgo => lay_out(), // Memory knows nothing of it.
        LaidOut::JustBefore => sampler.borrow_mut().beforehand(kernel, lay_out),
    }
}

/// What was laid out just before leaves in the journal, once the time that it takes is over.
pub(super) fn keep_journal(kernel: &SimKernel, sampler: &RefCell<Sampler>, files: &[&(String, Bytes)]) {
    if kernel.machine().build().laid_out == LaidOut::JustBefore {
        let keep = || files.iter().for_each(|(path, size)| kernel.keep_journal_of(path, *size));
        sampler.borrow_mut().beforehand(kernel, keep);
    }
}

/// Drops all caches behind files that were laid out. Where that was just before, their inodes were in memory until
/// then, and what is freed is not the run's.
pub(super) async fn begin_cold(kernel: &SimKernel, sampler: &RefCell<Sampler>) -> Result<(), Errno> {
    if kernel.machine().build().laid_out == LaidOut::LongAgo {
        return kernel.drop_caches(ALL_CACHES).await;
    }
    let before = sampler.borrow_mut().row(kernel);
    let events = kernel.mem(|mem| mem.core.alloc.events.clone());
    let dropped = kernel.drop_caches(ALL_CACHES).await;
    kernel.monitor_takes_over(); // It reads the counters when that is over.
    kernel.mem(|mem| mem.core.alloc.events = events);
    sampler.borrow_mut().was_beforehand(kernel, &before);
    dropped
}
