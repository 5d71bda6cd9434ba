//! Reads past the page cache: of pages that a policy does not admit ([`mm::lru::cache_ext::hooks`]). They go from the
//! disk to the program, as `O_DIRECT` has it, and nobody finds them afterwards.
//!
//! Left out: such reads by a program's own wish. Next: [`super::filemap`], which comes here from a read.

use std::cell::Cell;
use std::rc::Rc;

use mm::base::event::Trace;
use mm::base::vmstat::VmEvent;
use units::{Bytes, PAGE_SIZE};

use crate::cache::in_flight::{PageRange, Transfer};
use crate::errno::Errno;
use crate::files::inode::Inode;
use crate::handle::Kernel;
use crate::machine::{IoKind, IoRequest, Machine, WaitReason};
use crate::tasks::process::Process;

impl<M: Machine, T: Trace> Kernel<M, T> {
    /// Pages from `index` on, up to `count`, that are missing and that the policy of the reader's cgroup refuses.
    pub(crate) fn refused_pages(&self, process: &Process, inode: &Inode, index: u32, count: u32) -> u32 {
        let cpu = self.machine().current_cpu();
        self.mem(|mem| mem.refused_pages(cpu, process.memcg(), inode.mapping, index..index + count))
    }

    /// Reads pages from `index` on that are not in the cache, and leaves none there.
    pub(crate) async fn read_uncached(
        &self,
        process: &Process,
        inode: &Inode,
        index: u32,
        count: u32,
    ) -> Result<(), Errno> {
        self.map_blocks(process, inode, index..index + count).await?;
        let (mut first, end) = (index, index + count);
        while first < end {
            // Without blocks there are zeroes.
            let Some((offset, contiguous)) = inode.place(first) else { return Ok(()) };
            let range = PageRange { mapping: inode.mapping, first, count: contiguous.min(end - first) };
            let len = u64::from(range.count) * PAGE_SIZE;
            let is_done = Rc::new(Cell::new(false));
            let tag = self.shared.in_flight.borrow_mut().add(Transfer::Past(range, Rc::clone(&is_done)));
            self.mem(|mem| mem.core.alloc.events.add(VmEvent::PgPgIn, len / 1024));
            let (device, segments) = (inode.device, range.count);
            self.start_io(IoRequest { device, kind: IoKind::Read, offset, len: Bytes(len), segments, tag });
            while !is_done.get() {
                let queue = self.shared.reads.enter(self.machine(), inode.mapping, first);
                let _ = self.machine().wait(queue, WaitReason::PageRead, None).await; // bio_await
                self.shared.reads.leave(inode.mapping, first);
            }
            first += range.count;
        }
        process.check_alive()
    }
}
