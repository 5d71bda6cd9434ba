//! Sending requests for pages off to the data disk, and what happens when they have arrived.
//!
//! Left out: errors of the device. Next: [`super::readahead`] decides what to read,
//! [`crate::writeback`] what to write.

use mm::base::event::Trace;
use mm::base::frame::NIL;
use units::{Bytes, PAGE_SIZE, Pfn};

use crate::cache::in_flight::{PageRange, Transfer};
use crate::files::inode::Inode;
use crate::handle::Kernel;
use crate::machine::{CostOp, IoKind, IoRequest, Machine};

impl<M: Machine, T: Trace> Kernel<M, T> {
    /// Starts reading pages that were just added, locked, to `inode`'s mapping. Pages without
    /// blocks are zeroes at once.
    pub(crate) fn submit_read(&self, inode: &Inode, first: u32, count: u32) {
        let (mut first, end) = (first, first + count);
        while first < end {
            let Some((offset, contiguous)) = inode.place(first) else {
                self.unlock_pages(PageRange { mapping: inode.mapping, first, count: end - first });
                return;
            };
            let count = contiguous.min(end - first);
            let range = PageRange { mapping: inode.mapping, first, count };
            let tag = self.shared.in_flight.borrow_mut().add(Transfer::Read(range));
            let len = u64::from(count) * PAGE_SIZE;
            self.mem(|mem| mem.core.alloc.events.add(mm::base::vmstat::VmEvent::PgPgIn, len / 1024));
            let segments = self.segments(range, None).0;
            let (device, len) = (inode.device, Bytes(len));
            self.start_io(IoRequest { device, kind: IoKind::Read, offset, len, segments, tag });
            first += count;
        }
    }

    /// Starts reading the pages of a window from `first` to `end`.
    pub(crate) fn submit_run(&self, inode: &Inode, first: u32, end: u32) {
        if end > first {
            self.machine().charge(CostOp::ReadaheadPage, u64::from(end - first));
            self.submit_read(inode, first, end - first);
        }
    }

    /// Runs of adjacent frames among pages of the cache that follow the frame `last` in a request, and
    /// the last frame of them. Frames that follow `last` itself go on with its run.
    pub(crate) fn segments(&self, range: PageRange, last: Option<Pfn>) -> (u32, Option<Pfn>) {
        let mut runs = Runs::new(last);
        let pages = range.first..range.first + range.count;
        self.mem(|mem| mem.each_frame(range.mapping, pages, |frame| runs.add(frame)));
        runs.end()
    }

    /// Hands a request to its device. All that the kernel does for it as a whole is charged here, also
    /// what comes with its completion.
    pub(crate) fn start_io(&self, request: IoRequest) {
        self.machine().charge(CostOp::IoRequest, 1);
        self.machine().submit(request);
    }

    /// Pages become valid and their waiters run.
    pub(crate) fn unlock_pages(&self, range: PageRange) {
        self.mem(|mem| mem.unlock_pages(range.mapping, range.first..range.first + range.count));
        self.wake_readers(range);
        self.put_closed();
    }
}

/// Runs of adjacent frames, and the last frame. A page that has gone ends a run.
pub(crate) fn count_runs(frames: impl Iterator<Item = Option<Pfn>>, last: Option<Pfn>) -> (u32, Option<Pfn>) {
    let mut runs = Runs::new(last);
    frames.for_each(|frame| runs.add(frame));
    runs.end()
}

/// What [`count_runs`] counts.
struct Runs {
    count: u32,
    /// The frame that goes on with the last run; [`NIL`] where nothing does.
    next: u32,
}

impl Runs {
    fn new(last: Option<Pfn>) -> Self {
        Self { count: 0, next: last.map_or(NIL, |last| last.0 + 1) }
    }

    #[inline]
    fn add(&mut self, frame: Option<Pfn>) {
        let follows = frame == Some(Pfn(self.next));
        self.count += u32::from(!follows);
        self.next = frame.map_or(NIL, |frame| frame.0 + 1);
    }

    /// How many, and the last frame.
    fn end(self) -> (u32, Option<Pfn>) {
        (self.count, (self.next != NIL).then(|| Pfn(self.next - 1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Frames in the order of a request, and its runs.
    #[test]
    fn only_frames_that_ascend_one_by_one_are_one_segment() {
        for (frames, runs) in [
            (&[7][..], 1),
            (&[7, 8, 9, 10], 1),
            (&[10, 9, 8, 7], 4), // As a list that is taken from its wrong end gives them.
            (&[7, 8, 20, 21, 22], 2),
            (&[7, 9, 11, 13], 4),
            (&[7, 7], 2),
        ] {
            let counted = count_runs(frames.iter().map(|&frame| Some(Pfn(frame))), None);
            assert_eq!(counted, (runs, frames.last().map(|&frame| Pfn(frame))), "{frames:?}");
        }
    }

    #[test]
    fn pages_that_are_added_go_on_with_the_last_run() {
        let frames = || [8, 9].map(|frame| Some(Pfn(frame))).into_iter();
        assert_eq!(count_runs(frames(), Some(Pfn(7))), (0, Some(Pfn(9))));
        assert_eq!(count_runs(frames(), Some(Pfn(6))), (1, Some(Pfn(9))));
        assert_eq!(count_runs([Some(Pfn(8)), None, Some(Pfn(9))].into_iter(), None), (3, Some(Pfn(9))));
    }
}
