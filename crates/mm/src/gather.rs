//! Pages on which the kernel notes what it has taken out of page tables until it may be freed (`struct mmu_gather`).
//!
//! The first notes fit on the stack, each page of them holds 510 more, and at the most some pages are taken, which are
//! then used again. They are free once all is unmapped. Measured on guests of 5.10 and 6.12 that map 4 KiB to 120 MiB
//! of a file: `pgalloc_normal` and `pgfree` of their end grow by one each 510 pages, up to 19.
//!
//! Left out: that notes are taken before what they note is freed; that a huge page is one note, and not 512.
//! Neighbours: [`crate::mapping`], [`crate::swapping`].

use units::{CpuId, Order};

use crate::base::event::Trace;
use crate::base::gfp::Gfp;
use crate::memory::Memory;

/// Notes that need no page.
const ON_STACK: u64 = 8;
/// Notes on a page: what is left of it behind its header of 16 bytes.
const NOTES: u64 = 510;

impl<T: Trace> Memory<T> {
    /// Takes and frees the pages of notes on `unmapped` pages, those that there is memory for without reclaim
    /// (`tlb_next_batch`).
    pub fn gather(&mut self, cpu: CpuId, unmapped: u64) {
        let most = u64::from(self.core.alloc.tuning().gather_pages_max);
        let wanted = unmapped.saturating_sub(ON_STACK).div_ceil(NOTES).min(most);
        if wanted == 0 {
            return;
        }
        let mut taken = [None; u8::MAX as usize];
        let pages = &mut taken[..usize::try_from(wanted).expect("at most 255")];
        let flags = self.core.alloc.fast_flags(cpu, Gfp::KSWAPD_RECLAIM);
        for page in &mut *pages {
            *page = self.core.alloc.alloc(cpu, Gfp::KSWAPD_RECLAIM, Order(0), flags).page;
        }
        for page in pages.iter().flatten() {
            self.core.alloc.free(cpu, *page, Order(0));
        }
    }
}
