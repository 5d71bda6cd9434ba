//! Requests to write in the making (`struct blk_plug`). Next: [`super::plug`] fills them and sends them off.

use std::rc::Rc;

use mm::slab::object::Object;
use units::{PAGE_SIZE, Pfn};

use crate::cache::in_flight::PageRange;
use crate::files::inode::Inode;

/// A last request of so many pages is long enough for all to be sent off before another is begun
/// (`BLK_PLUG_FLUSH_SIZE`: 128 KiB).
const LONG: u32 = 32;

/// A request in the making: pages that lie one behind the other on the disk.
#[derive(Debug, Default)]
pub(crate) struct Request {
    pub(crate) device: u16,
    pub(crate) offset: u64,
    pub(crate) pages: u32,
    /// Runs of adjacent frames so far, and the last frame.
    pub(crate) segments: u32,
    pub(crate) last_frame: Option<Pfn>,
    /// Folios of which this request carries the last page: they are clean when it is complete.
    pub(crate) ranges: Vec<PageRange>,
    /// Runs of which it carries the last page.
    pub(crate) runs: u32,
    /// Their bios and vectors.
    pub(crate) bios: Vec<Object>,
    /// Files of XFS whose new ends are logged once it is complete.
    pub(crate) ends: Vec<Rc<Inode>>,
}

impl Request {
    /// Whether what lies at `offset` is behind it, and there is room for a page more.
    fn goes_on(&self, device: u16, offset: u64, most: u32) -> bool {
        self.device == device
            && self.offset + (u64::from(self.pages) * PAGE_SIZE) == offset
            && self.pages < most
    }
}

/// The requests that a task gathers: pages are merged with whichever they follow.
#[derive(Debug, Default)]
pub(crate) struct Plug {
    pub(crate) requests: Vec<Request>,
    /// Pages since the task that fills it last let others run.
    pub(crate) without_rest: u32,
}

impl Plug {
    /// The request that pages at `offset` belong to, at most `most` pages long, if there is one or, with fewer
    /// than `gathers` requests, room for one.
    pub(crate) fn request(
        &mut self,
        device: u16,
        offset: u64,
        most: u32,
        gathers: usize,
    ) -> Option<&mut Request> {
        let place = self.requests.iter().rposition(|request| request.goes_on(device, offset, most));
        let place = match place {
            Some(place) => place,
            None if self.is_full(gathers) => return None,
            None => {
                self.requests.push(Request { device, offset, ..Request::default() });
                self.requests.len() - 1
            }
        };
        Some(&mut self.requests[place])
    }

    fn is_full(&self, gathers: usize) -> bool {
        self.requests.len() >= gathers || self.requests.last().is_some_and(|last| last.pages >= LONG)
    }

    /// Puts the requests in the order in which they lie on the disk.
    pub(crate) fn sort(&mut self) {
        self.requests.sort_by_key(|request| (request.device, request.offset));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pages of several files in turn, as the flusher meets them; what becomes of them.
    fn gathered(streams: u64, pages: u64) -> (Vec<(u64, u32)>, u64) {
        let (mut plug, mut refused) = (Plug::default(), 0);
        for page in 0..pages {
            for stream in 0..streams {
                let offset = ((stream << 30) + page) * PAGE_SIZE;
                match plug.request(0, offset, 128, 16) {
                    Some(request) => request.pages += 1,
                    None => refused += 1,
                }
            }
        }
        plug.sort();
        (plug.requests.iter().map(|request| (request.offset / PAGE_SIZE, request.pages)).collect(), refused)
    }

    #[test]
    fn pages_are_merged_with_whichever_request_they_follow() {
        assert_eq!(gathered(2, 3), (vec![(0, 3), (1 << 30, 3)], 0));
        assert_eq!(gathered(4, 40).0, [0, 1, 2, 3].map(|stream| (stream << 30, 40)));
    }

    #[test]
    fn a_seventeenth_request_has_no_room() {
        let (requests, refused) = gathered(17, 1);
        assert_eq!((requests.len(), refused), (16, 1));
        assert!(requests.is_sorted());
    }

    #[test]
    fn behind_a_long_request_none_is_begun() {
        let (requests, refused) = gathered(1, 130);
        assert_eq!((requests, refused), (vec![(0, 128)], 2), "to be sent off, and tried again");
    }
}
