//! Readahead: how many pages around a miss are read, and when the next window starts
//! (MECHANISMS-6X 2.1, 2.2).
//!
//! ```text
//!   miss at 0:      [ 0 ........ 16m ....... 31 ]            window of 32, marker at 16
//!   read reaches m: [ 0 ......... 31 ][ 32m ...... 63 ]      one window ahead, marker at its start
//! ```
//! Windows are those of the modelled kernels for sequential streams; a miss in the middle of nothing
//! reads what was asked for. Large folios (XFS): the order grows by two with every window, up to
//! the window's own size. Left out: `fadvise` hints but for random reads, mmap read-around.

use mm::base::event::Trace;
use mm::base::frame::PageFlags;
use mm::base::gfp::Gfp;
use mm::pages::cache::Prepared;
use mm::pages::tree::Slot;
use mm::version::feature::Feature;
use mm::version::geometry::Cache;
use units::{Order, PAGE_SIZE, Pfn};

use crate::file::{Filesystem, Inode, OpenFile};
use crate::kernel::Kernel;
use crate::machine::{CostOp, Machine};
use crate::task::{Errno, Process};

/// What an open file remembers of its last reads (`file_ra_state`), in pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Readahead {
    /// First page of the last window.
    start: u32,
    /// Its pages.
    size: u32,
    /// Pages left in it when the next window is started.
    async_size: u32,
    /// The last page that was read, none at first.
    pub(crate) previous: Option<u32>,
    /// `FMODE_RANDOM`: only what is asked for is read.
    random: bool,
}

impl Readahead {
    /// A file that was just opened.
    pub(crate) const fn new() -> Self {
        Self { start: 0, size: 0, async_size: 0, previous: None, random: false }
    }

    /// A first window for a request of `request` pages (`get_init_ra_size`).
    fn initial_size(request: u32, max: u32) -> u32 {
        let size = request.next_power_of_two();
        if size <= max / 32 {
            size * 4
        } else if size <= max / 4 {
            size * 2
        } else {
            max
        }
    }

    /// The window after one of this size (`get_next_ra_size`).
    fn next_size(self, max: u32) -> u32 {
        if self.size < max / 16 {
            self.size * 4
        } else if self.size <= max / 2 {
            self.size * 2
        } else {
            max
        }
    }

    /// Moves on to the window for `index`, of which `request` pages are wanted. `on_marker`: the
    /// marker was reached, nothing is missing yet. `history`: pages in memory right before
    /// `index`. None: read just what was asked for (`ondemand_readahead`).
    fn advance(&mut self, index: u32, request: u32, on_marker: bool, history: u32, max: u32) -> Option<()> {
        let expected = index == self.start + (self.size - self.async_size) || index == self.start + self.size;
        if index > 0 && self.size > 0 && expected {
            self.start += self.size;
            self.size = self.next_size(max);
            self.async_size = self.size;
            return Some(());
        }
        let sequential = match self.previous {
            None => index == 0,
            Some(previous) => index == previous || index == previous + 1,
        };
        if on_marker {
            // A marker left by somebody else: go on from the first missing page (given as index).
            self.start = index;
            self.size = request.max(1);
            self.size = self.next_size(max);
            self.async_size = self.size;
        } else if index == 0 || sequential || request > max {
            self.start = index;
            self.size = Self::initial_size(request, max);
            self.async_size = if self.size > request { self.size - request } else { self.size };
        } else if history >= request && history > 0 {
            let history = if history >= index { history * 2 } else { history };
            self.start = index;
            self.size = (history + request).min(max);
            self.async_size = 1;
        } else {
            return None;
        }
        if index == self.start && self.size == self.async_size {
            // The request itself would hit the marker at once: merge the next window in.
            let more = self.next_size(max);
            if self.size + more <= max {
                self.async_size = more;
                self.size += more;
            } else {
                self.size = max;
                self.async_size = max / 2;
            }
        }
        Some(())
    }

    /// Where the marker goes.
    const fn marker(self) -> u32 {
        self.start + (self.size - self.async_size)
    }
}

/// The largest readahead window in pages (256 MiB): larger settings are cut down to it.
pub(crate) const READAHEAD_PAGES_MAX: u32 = 1 << 16;

/// The largest folio of the page cache that readahead makes: 2^9 pages.
const LARGEST_FOLIO: u32 = 9;

impl<M: Machine, T: Trace> Kernel<M, T> {
    /// `posix_fadvise(POSIX_FADV_RANDOM)`.
    pub fn advise_random(&self, file: &OpenFile) {
        self.machine().charge(CostOp::Syscall, 1);
        let readahead = Readahead { random: true, ..file.readahead.get() };
        file.readahead.set(readahead);
    }

    /// A page is missing at `index` and `request` pages are wanted from there
    /// (`page_cache_sync_readahead`).
    pub(crate) async fn sync_readahead(
        &self,
        process: &Process,
        file: &OpenFile,
        index: u32,
        request: u32,
    ) -> Result<(), Errno> {
        let max = self.shared.readahead_pages;
        let mut window = file.readahead.get();
        let wanted = request.min(max + 1); // More than a window is as good as one page more.
        let history = self.pages_before(file, index, max);
        if max > 0 && !window.random && window.advance(index, wanted, false, history, max).is_some() {
            file.readahead.set(window);
            return self.read_window(process, file, window, 0).await;
        }
        // A random read takes what was asked for, with readahead off one page: no window, no marker.
        let count = if max == 0 { 1 } else { request.max(1) };
        self.read_pages(process, &file.inode, index, count, None).await
    }

    /// The marker at `index`, on a folio of `order`, was reached (`page_cache_async_readahead`).
    pub(crate) async fn async_readahead(
        &self,
        process: &Process,
        file: &OpenFile,
        index: u32,
        request: u32,
        order: Order,
    ) -> Result<(), Errno> {
        let max = self.shared.readahead_pages;
        let request = request.min(max + 1);
        let mut window = file.readahead.get();
        let expected =
            index == window.start + window.size - window.async_size || index == window.start + window.size;
        let from = if expected { index } else { self.first_missing_after(file, index, max) };
        if from > index && from - index > max {
            return Ok(());
        }
        let advanced = if expected {
            window.advance(index, request, true, 0, max)
        } else {
            let size = (from - index) + request;
            window.advance(from, size, true, 0, max)
        };
        if advanced.is_some() {
            file.readahead.set(window);
            return self.read_window(process, file, window, order.0).await;
        }
        Ok(())
    }

    /// Pages in memory right before `index`, at most `max`.
    fn pages_before(&self, file: &OpenFile, index: u32, max: u32) -> u32 {
        self.mem(|mem| {
            (1..=max.min(index))
                .take_while(|back| matches!(mem.cache.find(file.inode.mapping, index - back), Slot::Page(_)))
                .count() as u32
        })
    }

    fn first_missing_after(&self, file: &OpenFile, index: u32, max: u32) -> u32 {
        self.mem(|mem| {
            (index + 1..=index + max)
                .find(|&next| !matches!(mem.cache.find(file.inode.mapping, next), Slot::Page(_)))
                .unwrap_or(index + max + 1)
        })
    }

    /// Allocates and reads the window's pages, as large folios where they fit
    /// (`page_cache_ra_order`).
    async fn read_window(
        &self,
        process: &Process,
        file: &OpenFile,
        window: Readahead,
        order: u8,
    ) -> Result<(), Errno> {
        let large = self.shared.filesystem == Filesystem::Xfs
            && self.mem(|mem| mem.core.alloc.features().has(Feature::LargeFolioReadahead))
            && window.size >= 4;
        if !large {
            let marker = Some(window.marker());
            return self.read_pages(process, &file.inode, window.start, window.size, marker).await;
        }
        let wanted = (u32::from(order) + 2).min(LARGEST_FOLIO).min(window.size.ilog2());
        self.read_folios(process, &file.inode, window, wanted).await
    }

    async fn read_folios(
        &self,
        process: &Process,
        inode: &Inode,
        window: Readahead,
        wanted: u32,
    ) -> Result<(), Errno> {
        let Some(last) = last_page(inode) else { return Ok(()) };
        self.map_blocks(process, inode).await?;
        let end = (window.start + window.size).min(last + 1);
        let mut index = window.start;
        while index < end {
            let order = folio_order(index, end, wanted);
            let marks = (index..index + order.pages()).contains(&window.marker());
            match self.add_page(process, inode, index, order, marks).await {
                Ok(true) => index += order.pages(),
                Err(errno) if order == Order(0) => {
                    self.submit_run(inode, window.start, index);
                    return Err(errno);
                }
                // No large block, or pages of others in its place: the rest in single pages.
                Ok(false) | Err(_) => {
                    self.submit_run(inode, window.start, index);
                    let marker = Some(window.marker());
                    return self.read_pages(process, inode, index, end - index, marker).await;
                }
            }
        }
        self.submit_run(inode, window.start, end);
        Ok(())
    }

    /// Allocates and reads single pages (`page_cache_ra_unbounded`). Fails only if not even the
    /// first page could be had.
    async fn read_pages(
        &self,
        process: &Process,
        inode: &Inode,
        first: u32,
        count: u32,
        marker: Option<u32>,
    ) -> Result<(), Errno> {
        let Some(last) = last_page(inode) else { return Ok(()) };
        self.map_blocks(process, inode).await?;
        let end = first.saturating_add(count).min(last + 1);
        let mut run_start = first;
        let mut index = first;
        while index < end {
            let present = self.mem(|mem| matches!(mem.cache.find(inode.mapping, index), Slot::Page(_)));
            let added = if present {
                Ok(false)
            } else {
                self.add_page(process, inode, index, Order(0), marker == Some(index)).await
            };
            match added {
                Ok(true) => {}
                Ok(false) => {
                    self.submit_run(inode, run_start, index);
                    run_start = index + 1;
                }
                Err(errno) => {
                    self.submit_run(inode, run_start, index);
                    return if index == first { Err(errno) } else { Ok(()) };
                }
            }
            index += 1;
        }
        self.submit_run(inode, run_start, end);
        Ok(())
    }

    fn submit_run(&self, inode: &Inode, first: u32, end: u32) {
        if end > first {
            self.machine().charge(CostOp::ReadaheadPage, u64::from(end - first));
            self.submit_read(inode, first, end - first);
        }
    }

    /// Allocates, charges and adds one locked page or folio (`filemap_add_folio`). False: the slot
    /// was taken meanwhile.
    async fn add_page(
        &self,
        process: &Process,
        inode: &Inode,
        index: u32,
        order: Order,
        marker: bool,
    ) -> Result<bool, Errno> {
        // Readahead may fail: it neither retries nor kills.
        let gfp = self.page_gfp() | Gfp::NORETRY;
        let pfn = self.alloc_pages(Some(process), gfp, order).await.ok_or(Errno::NoMem)?;
        let added = self.charge_and_insert(process, inode, index, pfn, gfp).await;
        if added != Ok(true) {
            let cpu = self.machine().current_cpu();
            self.mem(|mem| mem.core.alloc.free(cpu, pfn, order));
            return added;
        }
        self.machine().charge(CostOp::PageCacheAdd, u64::from(order.pages()));
        let cpu = self.machine().current_cpu();
        self.mem(|mem| {
            if marker {
                mem.core.alloc.frames.set_flags(pfn, PageFlags::READAHEAD);
            }
            mem.lru_add(cpu, pfn);
        });
        Ok(true)
    }

    pub(crate) async fn charge_and_insert(
        &self,
        process: &Process,
        inode: &Inode,
        index: u32,
        pfn: Pfn,
        gfp: Gfp,
    ) -> Result<bool, Errno> {
        let memcg = process.memcg();
        let pages = self.mem(|mem| mem.core.alloc.frames.pages(pfn));
        self.charge_pages(process, memcg, pages, gfp).await?;
        if let Err(errno) = self.prepare_tree(process, inode, index, pages).await {
            self.mem(|mem| mem.core.cgroups.uncharge(memcg, u64::from(pages)));
            return Err(errno);
        }
        Ok(self.mem(|mem| {
            let taken = (index..index + pages)
                .any(|index| matches!(mem.cache.find(inode.mapping, index), Slot::Page(_)));
            if taken {
                mem.core.cgroups.uncharge(memcg, u64::from(pages));
                return false;
            }
            mem.core.alloc.frames.set_flags(pfn, PageFlags::LOCKED);
            if let Some(shadow) = mem.insert_page(inode.mapping, index, pfn, memcg) {
                mem.refault(pfn, shadow);
            }
            true
        }))
    }

    /// Makes the tree nodes on the way to `index`, charging and allocating slab as needed.
    pub(crate) async fn prepare_tree(
        &self,
        process: &Process,
        inode: &Inode,
        index: u32,
        pages: u32,
    ) -> Result<(), Errno> {
        let gfp = Gfp::KERNEL;
        loop {
            let cpu = self.machine().current_cpu();
            let memcg = process.memcg();
            match self.mem(|mem| mem.prepare_insert(cpu, inode.mapping, index, pages, memcg)) {
                Prepared::Ready => return Ok(()),
                Prepared::NeedsCharge { pages } => self.charge_objects(process, pages, gfp).await?,
                Prepared::NeedsSlab => self.grow_slab(Some(process), Cache::TreeNode, gfp).await?,
            }
        }
    }
}

/// The order of the next folio of a window that ends before `end`: `wanted` or what alignment and
/// the end leave of it.
fn folio_order(index: u32, end: u32, wanted: u32) -> Order {
    let aligned = if index == 0 { wanted } else { wanted.min(index.trailing_zeros()) };
    let order = aligned.min((end - index).ilog2());
    // Order 1 has no room for a large folio's own data.
    let order = if order == 1 { 0 } else { order };
    Order(u8::try_from(order).expect("at most 9"))
}

/// Index of the last page of a file; none for an empty one.
fn last_page(inode: &Inode) -> Option<u32> {
    let pages = inode.size.get().div_ceil(PAGE_SIZE);
    let last = pages.checked_sub(1)?;
    Some(u32::try_from(last).expect("sizes are checked at creation"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn windows(reads: &[(u32, u32, bool)], max: u32) -> Vec<(u32, u32, u32)> {
        let mut state = Readahead::new();
        reads
            .iter()
            .map(|&(index, request, marker)| {
                state.advance(index, request, marker, 0, max).expect("a sequential read has a window");
                (state.start, state.size, state.marker())
            })
            .collect()
    }

    #[test]
    fn a_stream_of_128_kib_reads_is_always_one_window_ahead() {
        // (start, size, marker); MECHANISMS-6X 2.1.
        assert_eq!(
            windows(&[(0, 32, false), (16, 16, true), (32, 32, true), (64, 32, true)], 32),
            [(0, 32, 16), (32, 32, 32), (64, 32, 64), (96, 32, 96)]
        );
    }

    #[test]
    fn small_reads_ramp_up_to_the_full_window() {
        // One page at a time: 4, then doubling to 32.
        assert_eq!(
            windows(&[(0, 1, false), (1, 1, true), (4, 1, true), (12, 1, true), (28, 1, true)], 32),
            [(0, 4, 1), (4, 8, 4), (12, 16, 12), (28, 32, 28), (60, 32, 60)]
        );
    }

    #[test]
    fn a_miss_in_the_middle_of_nothing_opens_no_window() {
        let mut state = Readahead::new();
        assert_eq!(state.advance(1000, 4, false, 0, 32), None);
        assert_eq!(state, Readahead::new());
    }

    #[test]
    fn pages_found_before_a_miss_count_as_a_sequential_past() {
        let mut state = Readahead::new();
        assert_eq!(state.advance(1000, 4, false, 8, 32), Some(()));
        assert_eq!((state.start, state.size, state.async_size), (1000, 12, 1));
    }
}
