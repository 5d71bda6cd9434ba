//! The buffer that a simulated task reads files into and writes them from, where it counts: memory of its own, a page
//! for the first time when a call comes to it. Which tasks have one is the workload's to say.

use std::cell::Cell;

use kernel::{AnonMapping, Errno, Machine, Process};
use units::{Bytes, Pages};

use crate::engine::sim::SimKernel;

/// The longest call that the same program makes on a real kernel.
const CALL_MAX: Bytes = Bytes(1 << 20);

/// What one task has.
#[derive(Debug, Default)]
pub(crate) struct Buffer(Cell<Option<(AnonMapping, Pages)>>);

impl Buffer {
    /// From now on the task has one for calls of `len` bytes.
    pub(crate) fn map(&self, kernel: &SimKernel, process: &Process, len: Bytes) -> Result<(), Errno> {
        let len = len.min(CALL_MAX);
        let mapping = kernel.map_anonymous(process, len)?;
        if kernel.machine().build().counts_buffers {
            // Files of such guests are zeroes, so that their disk stays a hole of the host's file.
            kernel.set_compressed_bytes(process, mapping, 0);
        }
        self.0.set(Some((mapping, len.to_pages_ceil())));
        Ok(())
    }

    /// Whether it has one.
    pub(crate) const fn is_mapped(&self) -> bool {
        self.0.get().is_some()
    }

    /// A call of `len` bytes uses it.
    pub(crate) async fn touch(&self, kernel: &SimKernel, process: &Process, len: u64) -> Result<(), Errno> {
        let Some((mapping, pages)) = self.0.get() else { return Ok(()) };
        let used = Bytes(len).to_pages_ceil().min(pages);
        kernel.touch(process, mapping, 0, used.get()).await
    }
}
