//! Several frames at once: what is done to each of a row takes one look at it.
//!
//! The table is a slice here, so that a loop keeps its place and length in registers. Neighbours:
//! [`crate::base::frame`] for one frame, [`crate::base::list`] for the lists.

use units::{Order, Pfn};

use crate::base::frame::{Frame, FrameList, FrameState, Frames, NO_OWNER, PageFlags};
use crate::base::list::{Link, Links};

/// Flags that name the list of a page.
const OF_LIST: PageFlags = PageFlags::UNEVICTABLE.set(PageFlags::SWAP_BACKED).set(PageFlags::ACTIVE);

impl Links<Pfn> for [Frame] {
    #[inline]
    fn link(&self, pfn: Pfn) -> Link<Pfn> {
        self[pfn.index()].link
    }

    #[inline]
    fn link_mut(&mut self, pfn: Pfn) -> &mut Link<Pfn> {
        &mut self[pfn.index()].link
    }
}

impl Frames {
    /// Makes single pages that were just handed out those of a file from `first` on, of the cgroup with the raw index
    /// `memcg`, with these flags and no other, on their way to a list.
    #[inline]
    pub(crate) fn begin_file_pages(
        &mut self,
        pages: &[Pfn],
        owner: u32,
        first: u32,
        memcg: u16,
        flags: PageFlags,
    ) {
        let frames = self.frames.as_mut_slice();
        for (&pfn, index) in pages.iter().zip(first..) {
            let frame = &mut frames[pfn.index()];
            (frame.owner, frame.index, frame.memcg, frame.flags) = (owner, index, memcg, flags);
            frame.state = FrameState::Batch;
        }
    }

    /// Clears `flags` on pages.
    #[inline]
    pub(crate) fn clear_flags_of(&mut self, pages: impl Iterator<Item = Pfn>, flags: PageFlags) {
        let frames = self.frames.as_mut_slice();
        for pfn in pages {
            let old = &mut frames[pfn.index()].flags;
            *old = old.clear(flags);
        }
    }

    /// Puts single pages in use on a per-CPU list, one after the other: at its head, or else its tail; as far as they
    /// are `near`. `index` is what the list wants to know of them. Returns how many.
    ///
    /// # Panics
    /// When one is no single page in use: it would be freed twice.
    pub(crate) fn put_on_pcp(
        &mut self,
        list: &mut FrameList,
        pages: &[Pfn],
        index: u32,
        at_head: bool,
        near: impl Fn(Pfn) -> bool,
    ) -> usize {
        let put = |frames: &mut [Frame], pfn: Pfn, link| {
            if !near(pfn) {
                return false;
            }
            let frame = &mut frames[pfn.index()];
            assert!(frame.is_block_in_use(Order(0)), "{pfn:?} ({:?}) freed as a single page", frame.state);
            (frame.link, frame.owner, frame.index) = (link, NO_OWNER, index);
            frame.state = FrameState::Pcp;
            true
        };
        let (frames, pages) = (self.frames.as_mut_slice(), pages.iter().copied());
        if at_head {
            list.push_front_while(frames, pages, put)
        } else {
            list.push_back_while(frames, pages, put)
        }
    }

    /// Puts the pages of a free block, `count` from `head`, on a per-CPU list as single ones, so that they rise from
    /// its head on, or else from its tail.
    pub(crate) fn split_on_pcp(
        &mut self,
        list: &mut FrameList,
        head: Pfn,
        count: u32,
        index: u32,
        from_head: bool,
    ) {
        let put = |frames: &mut [Frame], pfn: Pfn, link| {
            let frame = &mut frames[pfn.index()];
            (frame.link, frame.owner, frame.index, frame.order) = (link, NO_OWNER, index, 0);
            frame.state = FrameState::Pcp;
            true
        };
        let (frames, pages) = (self.frames.as_mut_slice(), (head.0..head.0 + count).map(Pfn));
        if from_head {
            list.push_back_while(frames, pages, put);
        } else {
            list.push_front_while(frames, pages, put);
        }
    }

    /// Takes the page at the tail of a list of single pages, and those that follow it there, as far as they follow it
    /// in memory, too, upwards or downwards, and are one block of up to `most` pages: all but its head are behind
    /// that from now on. Returns the head, how many pages they are, and the one that was taken last.
    #[inline]
    pub(crate) fn take_block(&mut self, list: &mut FrameList, most: u32) -> Option<(Pfn, u32, Pfn)> {
        let Pfn(first) = list.last()?;
        let rises = first.is_multiple_of(2);
        let end = if rises { first } else { first + 1 };
        let most = most.min(1 << end.trailing_zeros().min(31));
        let frames = self.frames.as_mut_slice();
        let at = |place: u32| if rises { first + place } else { first - place };
        let follows = |&place: &u32| frames[at(place - 1) as usize].link.prev() == Some(Pfn(at(place)));
        let in_row = (1..most).take_while(follows).count() as u32 + 1;
        let count = 1 << in_row.ilog2();
        let (head, last) = (first.min(at(count - 1)), Pfn(at(count - 1)));
        let next = frames[last.index()].link.prev();
        let behind = &mut frames[head as usize + 1..(head + count) as usize];
        behind.iter_mut().for_each(|frame| frame.state = FrameState::Tail);
        list.cut(frames, next, count as usize);
        Some((Pfn(head), count, last))
    }

    /// Puts single pages from one place on the list that the flags of the first of them name, at its head, one after
    /// the other: as far as they are of one cgroup, not locked in memory, and `is_near` the first. Returns how many.
    #[inline]
    pub(crate) fn put_on_lru(
        &mut self,
        list: &mut FrameList,
        pages: &[Pfn],
        from: FrameState,
        (flags, memcg): (PageFlags, u16),
        is_near: impl Fn(Pfn) -> bool,
    ) -> usize {
        let (mask, same) = (OF_LIST.set(PageFlags::MLOCKED).0, flags.0 & OF_LIST.0);
        let frames = self.frames.as_mut_slice();
        list.push_front_while(frames, pages.iter().copied(), |frames, pfn, link| {
            let frame = &mut frames[pfn.index()];
            let is_other = frame.state != from || frame.order != 0 || frame.memcg != memcg;
            if is_other || (frame.flags.0 & mask) != same || !is_near(pfn) {
                return false;
            }
            (frame.link, frame.state) = (link, FrameState::Lru);
            true
        })
    }

    /// Takes pages off the tail of their list for reclaim, one after the other, as long as it `wants` the next one, of
    /// this order.
    #[inline]
    pub(crate) fn isolate_while(&mut self, list: &mut FrameList, mut wants: impl FnMut(Pfn, Order) -> bool) {
        list.pop_back_while(self.frames.as_mut_slice(), |frames, pfn| {
            let frame = &mut frames[pfn.index()];
            if !wants(pfn, Order(frame.order)) {
                return None;
            }
            frame.state = FrameState::Isolated;
            Some(frame.link)
        });
    }

    /// Takes `pfn` off for reclaim. Returns its order.
    #[inline]
    pub(crate) fn isolate(&mut self, pfn: Pfn) -> Order {
        let frame = &mut self.frames[pfn.index()];
        frame.state = FrameState::Isolated;
        Order(frame.order)
    }
}
