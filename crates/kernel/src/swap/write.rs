//! Sending pages off to swap areas on disks (`swap_writepage`; SWAP 4.1).
//!
//! Pages that a chunk swaps out are gathered as those of files are, and merged where their slots are neighbours. When
//! they are written they go to the tail of their list, as file pages do ([`crate::writeback::plug`]). A reclaimer
//! sleeps while the device's queue is full. Left out: requests that the queue merges.

use mm::base::event::Trace;
use mm::swapping::SwapWrite;
use units::{PAGE_SIZE, Pfn};

use crate::cache::in_flight::PageRange;
use crate::cache::io::count_runs;
use crate::handle::Kernel;
use crate::machine::{CostOp, Machine};
use crate::writeback::plug::REQUEST_PAGES;
use crate::writeback::request::Plug;

impl<M: Machine, T: Trace> Kernel<M, T> {
    /// Sends off what reclaim has decided to write to swap.
    pub(crate) async fn write_to_swap(&self) {
        let mut plug = Plug::default();
        for write in self.mem(|mem| mem.take_swap_writes()) {
            self.gather_swap_write(write, &mut plug).await;
        }
        self.submit_in_turn(&mut plug).await;
        if self.mem(|mem| mem.take_zswap_hit()) {
            self.machine().wake_all(self.shared.zswap);
        }
    }

    /// Sends off what was gathered, each request once there is room for it.
    async fn submit_in_turn(&self, plug: &mut Plug) {
        plug.sort();
        for request in std::mem::take(&mut plug.requests) {
            while self.is_queue_of_device_full(request.device) {
                self.wait_for_a_request().await;
            }
            self.submit_write(request);
        }
    }

    async fn gather_swap_write(&self, write: SwapWrite, plug: &mut Plug) {
        self.machine().charge(CostOp::SwapWrite, u64::from(write.pages));
        let mut done = 0;
        while done < write.pages {
            let offset = u64::from(write.offset + done) * PAGE_SIZE;
            let Some(request) = plug.request(write.device, offset, REQUEST_PAGES, self.shared.gathers) else {
                self.submit_in_turn(plug).await;
                continue;
            };
            let count = (write.pages - done).min(REQUEST_PAGES - request.pages);
            let frames = (done..done + count).map(|page| Some(Pfn(write.pfn.0 + page)));
            let (segments, last_frame) = count_runs(frames, request.last_frame);
            request.pages += count;
            request.segments += segments;
            request.last_frame = last_frame;
            done += count;
            if done == write.pages {
                let range = PageRange { mapping: write.mapping, first: write.index, count: write.pages };
                request.ranges.push(range);
            }
        }
    }
}
