//! Readahead: reads the windows that `window` decides on (MECHANISMS-6X 2.1, 2.2).
//!
//! Large folios (XFS, ext4 from 6.16 on): the order grows by two with every window, up to the window's own size.
//! Whose order it is, the folio's that bears the marker or the file's, is a rule of the version.
//! Next: [`super::add`] adds the pages.

use mm::base::event::Trace;
use mm::base::gfp::Gfp;
use mm::pages::tree::Slot;
use mm::pages::window::Window;
use mm::version::rules::{ReadaheadEffort, ReadaheadGap, ReadaheadOrder, ReadaheadReclaim};
use units::{Order, PAGE_SIZE};

use crate::cache::add::Place;
use crate::cache::window::{History, Readahead};
use crate::errno::Errno;
use crate::files::descriptor::OpenFile;
use crate::files::inode::Inode;
use crate::handle::Kernel;
use crate::machine::{CostOp, Machine};
use crate::tasks::process::Process;

/// The largest folio of the page cache: 2^9 pages.
pub(crate) const LARGEST_FOLIO: u32 = 9;

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
        let mut window = file.readahead.get();
        let max = window.largest(self.shared.readahead_pages);
        let wanted = request.min(max + 1); // More than a window is as good as one page more.
        let history = self.pages_before(file, index, max);
        if max > 0 && !window.random && window.miss(index, wanted, history, max).is_some() {
            window.order = 0;
            file.readahead.set(window);
            let order = match self.readahead_order() {
                ReadaheadOrder::OfMarker => 2,
                ReadaheadOrder::OfFile => 0,
            };
            return self.read_window(process, file, window, order).await;
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
        let mut window = file.readahead.get();
        let max = window.largest(self.shared.readahead_pages);
        let request = request.min(max + 1);
        if window.is_marker(index) {
            window.continue_window(max);
        } else {
            let Some(from) = self.first_missing_after(file, index, max) else { return Ok(()) };
            window.take_over(from, from - index + request, max);
        }
        let order = match self.readahead_order() {
            ReadaheadOrder::OfMarker => u32::from(order.0) + 2,
            ReadaheadOrder::OfFile => {
                window.raise_order(max);
                window.order
            }
        };
        // What single pages were read as is no order for the next window.
        let kept = if self.reads_large_folios() { window.order } else { 0 };
        file.readahead.set(Readahead { order: kept, ..window });
        self.read_window(process, file, window, order).await
    }

    fn reads_large_folios(&self) -> bool {
        self.mem(|mem| self.shared.filesystem.reads_large_folios(mem.core.rules()))
    }

    fn readahead_order(&self) -> ReadaheadOrder {
        self.mem(|mem| mem.core.rules().readahead_order)
    }

    /// Pages in memory right before `index`, as far as they are looked at: `max` of them.
    fn pages_before(&self, file: &OpenFile, index: u32, max: u32) -> History {
        self.mem(|mem| {
            let pages = (1..=max.min(index))
                .take_while(|back| !mem.cache.find(file.inode.mapping, index - back).is_vacant())
                .count() as u32;
            let rules = mem.core.rules();
            let pages = match rules.readahead_gap {
                ReadaheadGap::AtLast if pages == max => pages.saturating_sub(1),
                ReadaheadGap::AtLast | ReadaheadGap::Beyond => pages,
            };
            History { pages, rule: rules.readahead_history, miss: rules.readahead_miss }
        })
    }

    /// The first of `max` pages behind `index` that is not in memory, or what passes for it.
    fn first_missing_after(&self, file: &OpenFile, index: u32, max: u32) -> Option<u32> {
        self.mem(|mem| {
            let missing = |&next: &u32| mem.cache.find(file.inode.mapping, next).is_vacant();
            (index + 1..=index + max)
                .find(missing)
                .or((mem.core.rules().readahead_gap == ReadaheadGap::AtLast).then_some(index + max))
        })
    }

    /// Readahead asks for cold pages, as the device writes them first. It may fail: it neither retries nor
    /// kills, since 3.0; nor does reclaim for it enter filesystems, since 5.8.
    fn readahead_gfp(&self) -> Gfp {
        let (reclaim, effort) = self.mem(|mem| {
            let rules = mem.core.rules();
            (rules.readahead_reclaim, rules.readahead_effort)
        });
        let gfp = self.shared.filesystem.page_gfp() | Gfp::COLD;
        let gfp = match reclaim {
            ReadaheadReclaim::AsFile => gfp,
            ReadaheadReclaim::SparesFilesystems => gfp.without(Gfp::FS),
        };
        match effort {
            ReadaheadEffort::Insists => gfp,
            ReadaheadEffort::GivesUp => gfp | Gfp::NORETRY,
        }
    }

    /// Allocates and reads the window's pages, as folios of `order` where they fit (`page_cache_ra_order`).
    pub(crate) async fn read_window(
        &self,
        process: &Process,
        file: &OpenFile,
        window: Readahead,
        order: u32,
    ) -> Result<(), Errno> {
        let marker = Some(window.marker()).filter(|_| !self.ends_unmarked(&file.inode, window));
        if !self.reads_large_folios() || window.size < 4 || order == 0 {
            return self.read_pages(process, &file.inode, window.start, window.size, marker).await;
        }
        let wanted = order.min(LARGEST_FOLIO).min(window.size.ilog2());
        self.read_folios(process, &file.inode, window, marker, wanted).await
    }

    /// Since 6.17 nothing is marked in the last window of a file.
    fn ends_unmarked(&self, inode: &Inode, window: Readahead) -> bool {
        let reaches_end = last_page(inode).is_none_or(|last| window.start + window.size > last);
        reaches_end && self.readahead_order() == ReadaheadOrder::OfFile
    }

    /// Where a window ends that a policy does not let come into the cache as a whole: before the first page that it
    /// refuses.
    fn admitted_before(&self, process: &Process, inode: &Inode, first: u32, end: u32) -> u32 {
        let (cpu, end) = (self.machine().current_cpu(), end.max(first));
        first + self.mem(|mem| mem.admitted_pages(cpu, process.memcg(), inode.mapping, first..end))
    }

    async fn read_folios(
        &self,
        process: &Process,
        inode: &Inode,
        window: Readahead,
        marker: Option<u32>,
        wanted: u32,
    ) -> Result<(), Errno> {
        let Some(last) = last_page(inode) else { return Ok(()) };
        let end = (window.start + window.size).min(last + 1);
        let end = self.admitted_before(process, inode, window.start, end);
        self.map_blocks(process, inode, window.start..end).await?;
        let gfp = self.readahead_gfp();
        let mut index = window.start;
        while index < end {
            let order = folio_order(index, end, wanted);
            let marks = marker.is_some_and(|marker| (index..index + order.pages()).contains(&marker));
            let place = Place { index, order, marker: marks };
            match self.add_folio(process, inode, place, gfp).await {
                Ok(true) => index += order.pages(),
                Err(errno) if order == Order(0) => {
                    self.submit_run(inode, window.start, index);
                    return Err(errno);
                }
                // No large block, or pages of others in its place: the rest in single pages.
                Ok(false) | Err(_) => {
                    self.submit_run(inode, window.start, index);
                    return self.read_pages(process, inode, index, end - index, marker).await;
                }
            }
        }
        self.submit_run(inode, window.start, end);
        Ok(())
    }

    /// Allocates and reads single pages (`page_cache_ra_unbounded`). Fails only if not even the
    /// first page could be had.
    pub(crate) async fn read_pages(
        &self,
        process: &Process,
        inode: &Inode,
        first: u32,
        count: u32,
        marker: Option<u32>,
    ) -> Result<(), Errno> {
        let Some(last) = last_page(inode) else { return Ok(()) };
        let end = first.saturating_add(count).min(last + 1);
        let end = self.admitted_before(process, inode, first, end);
        self.map_blocks(process, inode, first..end).await?;
        let gfp = self.readahead_gfp();
        let (mapping, memcg) = (inode.mapping, process.memcg());
        let mut run_start = first;
        let mut index = first;
        while index < end {
            let window = Window { mapping, pages: index..end, marker, memcg, gfp, slow: None };
            index = self.add_window(process, &window);
            if index == end {
                break;
            }
            let present = self.mem(|mem| matches!(mem.cache.find(inode.mapping, index), Slot::Page(_)));
            let added = if present {
                Ok(false)
            } else {
                let place = Place { marker: marker == Some(index), ..Place::page(index) };
                self.add_folio(process, inode, place, gfp).await
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
