//! Advice on a range of a file, and reading it ahead: `posix_fadvise(2)`, `readahead(2)`.
//!
//! What the manual pages say of Linux: `NORMAL` sets the readahead window to its default size, `SEQUENTIAL` doubles
//! it, `RANDOM` reads nothing ahead, each for the whole descriptor; `WILLNEED` starts reading the range; `DONTNEED`
//! starts writing what is dirty of it and then drops the clean pages that are wholly in it. What they do not say: since
//! 3.14 a kernel reads no more of a range than a request to the disk or a readahead window holds. Left out: `NOREUSE`,
//! which changes nothing; that up to 3.13 no more was read than half of what is free or inactive. Next:
//! [`crate::cache`] reads, [`crate::writeback`] writes.

use std::rc::Rc;

use mm::base::event::Trace;
use mm::version::rules::RangeReadahead;
use units::PAGE_SIZE;

use crate::errno::Errno;
use crate::files::descriptor::OpenFile;
use crate::files::inode::Inode;
use crate::handle::Kernel;
use crate::machine::{CostOp, Machine};
use crate::tasks::process::Process;

/// Pages that are asked for at once (`force_page_cache_readahead`): 2 MiB.
const AT_A_TIME: u32 = 512;

/// What `posix_fadvise(2)` is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileAdvice {
    /// Read ahead as far as the device's setting.
    Normal,
    /// Read nothing ahead.
    Random,
    /// Read ahead twice as far.
    Sequential,
    /// Read it now.
    WillNeed,
    /// Drop it.
    DontNeed,
    /// Nothing.
    NoReuse,
}

impl<M: Machine, T: Trace> Kernel<M, T> {
    /// `posix_fadvise(2)` on `len` bytes from `offset`, 0 being all up to the end.
    ///
    /// # Errors
    /// `Killed`.
    pub async fn advise_file(
        &self,
        process: &Process,
        file: &OpenFile,
        offset: u64,
        len: u64,
        advice: FileAdvice,
    ) -> Result<(), Errno> {
        process.check_alive()?;
        self.machine().charge(CostOp::Syscall, 1);
        let end = if len == 0 { u64::MAX } else { offset.saturating_add(len) };
        let mut readahead = file.readahead.get();
        match advice {
            FileAdvice::Normal => (readahead.random, readahead.doubled) = (false, false),
            FileAdvice::Sequential => (readahead.random, readahead.doubled) = (false, true),
            FileAdvice::Random => readahead.random = true,
            FileAdvice::WillNeed => self.read_range(process, file, offset, end).await?,
            FileAdvice::DontNeed => self.drop_range(&file.inode, offset, end).await,
            FileAdvice::NoReuse => {}
        }
        if !matches!(advice, FileAdvice::WillNeed | FileAdvice::DontNeed) {
            file.readahead.set(readahead);
        }
        self.return_to_user(process).await;
        Ok(())
    }

    /// `readahead(2)`: starts reading the pages of a range that are not in memory.
    ///
    /// # Errors
    /// `Killed`.
    pub async fn read_ahead(
        &self,
        process: &Process,
        file: &OpenFile,
        offset: u64,
        len: u64,
    ) -> Result<(), Errno> {
        process.check_alive()?;
        self.machine().charge(CostOp::Syscall, 1);
        self.read_range(process, file, offset, offset.saturating_add(len)).await?;
        self.return_to_user(process).await;
        Ok(())
    }

    /// Begins to read what is not in memory of a range, as far as the kernel reads ahead when it is asked to
    /// (`force_page_cache_ra`). Without memory for a page the rest is not read, which is no error.
    pub(crate) async fn read_range(
        &self,
        process: &Process,
        file: &OpenFile,
        offset: u64,
        end: u64,
    ) -> Result<(), Errno> {
        let inode = &file.inode;
        let end = end.min(inode.size.get());
        let (mut index, past) = (page(offset.min(end) / PAGE_SIZE), page(end.div_ceil(PAGE_SIZE)));
        let past = past.min(index.saturating_add(self.range_pages_max(file)));
        while index < past {
            let count = AT_A_TIME.min(past - index);
            if self.read_pages(process, inode, index, count, None).await.is_err() {
                return process.check_alive();
            }
            index += count;
        }
        Ok(())
    }

    fn range_pages_max(&self, file: &OpenFile) -> u32 {
        let window = file.readahead.get().largest(self.shared.readahead_pages);
        let request = match self.mem(|mem| mem.core.rules().range_readahead) {
            RangeReadahead::Whole => return u32::MAX,
            RangeReadahead::Request1280K => 320,
            RangeReadahead::Request4M => 1024,
        };
        window.max(self.machine().build().request_pages_max.unwrap_or(request))
    }

    async fn drop_range(&self, inode: &Rc<Inode>, offset: u64, end: u64) {
        let size = inode.size.get();
        let begun = page(offset.min(size) / PAGE_SIZE);
        self.start_range(inode, begun, page(end.min(size).div_ceil(PAGE_SIZE))).await;
        if inode.is_orphan() {
            return;
        }
        // Pages that are in the range in part stay, but for the one that the file ends in.
        let first = page(offset.min(size).div_ceil(PAGE_SIZE));
        let past = if end >= size { u32::MAX } else { page(end / PAGE_SIZE) };
        let cpu = self.machine().current_cpu();
        self.mem(|mem| mem.mapping_invalidate_range(cpu, inode.mapping, first..past));
    }
}

/// A number of pages that a file can have.
pub(super) fn page(index: u64) -> u32 {
    u32::try_from(index).expect("sizes are checked at creation")
}
