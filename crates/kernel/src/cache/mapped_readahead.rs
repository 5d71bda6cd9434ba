//! Readahead of faults on mapped files (`do_sync_mmap_readahead`, `do_async_mmap_readahead`; MAPPED 3).
//!
//! ```text
//!   a miss at page 100, windows of 32 pages:   84 ......... 100 ... 108m ... 115      half before it, marker at 3/4
//!   a fault on the marker:                     116m ............ 147                  on as for a read
//! ```
//! A program that said that it accesses at random gets what it asks for; one that said sequentially is read ahead for
//! as if by `read`. Code gets a window from the miss on, since 7.2 ([`CodeReadahead`]). A file in which misses are more
//! than pages found by a hundred is no longer read around.
//!
//! Next: [`super::readahead`], which reads the windows; [`super::window`].

use mm::base::event::Trace;
use mm::pages::mapped::AccessAdvice;
use mm::version::rules::CodeReadahead;
use units::Order;

use crate::cache::window::Readahead;
use crate::errno::Errno;
use crate::files::descriptor::{Descriptor, OpenFile};
use crate::handle::Kernel;
use crate::machine::Machine;
use crate::tasks::process::Process;

/// More misses than pages found than this, and nothing is read around a miss (`MMAP_LOTSAMISS`).
const LOTS_OF_MISSES: u32 = 100;

impl Descriptor {
    /// Faults found so many pages in memory.
    pub(crate) fn mapped_pages_found(&self, pages: u32) {
        let readahead = self.readahead.get();
        let misses = readahead.misses.saturating_sub(pages);
        self.readahead.set(Readahead { misses, ..readahead });
    }
}

impl<M: Machine, T: Trace> Kernel<M, T> {
    /// A fault misses the page at `index`.
    pub(crate) async fn sync_mapped_readahead(
        &self,
        process: &Process,
        file: &OpenFile,
        index: u32,
        advice: AccessAdvice,
        is_code: bool,
    ) -> Result<(), Errno> {
        let max = self.shared.readahead_pages;
        let forward = is_code && self.mem(|mem| mem.core.rules().code_readahead) == CodeReadahead::Forward;
        match advice {
            _ if max == 0 => return Ok(()),
            AccessAdvice::Normal | AccessAdvice::Random if forward => {
                return self.read_pages(process, &file.inode, index, max, None).await;
            }
            AccessAdvice::Random => return Ok(()),
            AccessAdvice::Sequential => return self.sync_readahead(process, file, index, max).await,
            AccessAdvice::Normal => {}
        }
        let mut window = file.readahead.get();
        window.misses = (window.misses + 1).min(LOTS_OF_MISSES * 10);
        file.readahead.set(window);
        if window.misses > LOTS_OF_MISSES {
            return Ok(());
        }
        window.start = index.saturating_sub(max / 2);
        (window.size, window.async_size, window.order) = (max, max / 4, 0);
        file.readahead.set(window);
        self.read_window(process, file, window, 0).await
    }

    /// A fault finds the marker at `index`, on a folio of `order`.
    pub(crate) async fn async_mapped_readahead(
        &self,
        process: &Process,
        file: &OpenFile,
        index: u32,
        order: Order,
    ) -> Result<(), Errno> {
        let max = self.shared.readahead_pages;
        if max == 0 {
            return Ok(());
        }
        self.async_readahead(process, file, index, max, order).await
    }
}
