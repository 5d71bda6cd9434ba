//! Single pages for one task, taken one after the other as [`PageAllocator::alloc`] takes each, where all that it
//! does between two of them is known beforehand: the zone and its mark, the list, its end.
//!
//! A run ends where a walk along the zonelist could come to something else: with the pages on the list, and with the
//! first page of a refill, which leaves fewer free pages to the next one's mark. It does not begin where kswapd is to
//! be woken, or where pages of another type would be taken. Next: [`super::page_alloc`].

use units::{CpuId, Order, Pfn};

use crate::alloc::buddy::End;
use crate::alloc::flags::{AllocFlags, gfp_zone};
use crate::alloc::page_alloc::{PageAllocator, Request};
use crate::base::event::Trace;
use crate::base::gfp::Gfp;
use crate::base::layout::ZoneId;
use crate::version::rules::PcpFallback;

/// Pages that are taken from one per-CPU list.
#[derive(Debug)]
#[must_use]
pub(crate) struct Run {
    request: Request,
    zone: ZoneId,
    pcp: usize,
    end: End,
    /// The list is empty: the first page comes with a refill.
    refills: bool,
    left: u32,
    taken: u32,
    refilled: u32,
}

impl<T: Trace> PageAllocator<T> {
    /// From now on every page goes the way of one page, here and wherever [`Self::goes_one_by_one`] is asked: slower,
    /// and otherwise the same. For tests.
    pub fn go_one_by_one(&mut self) {
        self.one_by_one = true;
        self.zones.iter_mut().for_each(|zone| zone.free_area.one_by_one = true);
    }

    /// Whether nothing is to be done for several pages at once.
    #[inline]
    pub(crate) const fn goes_one_by_one(&self) -> bool {
        self.one_by_one
    }

    /// Begins a run of at least one page; none where a request has to be made for it. Nothing is taken yet.
    pub(crate) fn open_run(&mut self, cpu: CpuId, gfp: Gfp, flags: AllocFlags) -> Option<Run> {
        let (want, highest_zoneidx) = (gfp.migrate_type(), gfp_zone(gfp));
        let request = Request { cpu, gfp, order: Order(0), want, highest_zoneidx, flags };
        let zone = self.first_zone(&request)?;
        if self.one_by_one || self.zones[zone.index()].watermarks.boosted {
            return None;
        }
        let pcp = self.pcp_index(cpu, zone);
        let refills = !self.pcps[pcp].has_single(&self.frames, &self.version.rules, want);
        if refills
            && (self.version.rules.pcp_fallback == PcpFallback::Taken
                || !self.has_refill(&request, zone, pcp))
        {
            return None;
        }
        let end = self.end_for(gfp);
        Some(Run { request, zone, pcp, end, refills, left: u32::MAX, taken: 0, refilled: 0 })
    }

    /// Whether the next refill of a list takes nothing from lists of another type.
    fn has_refill(&self, request: &Request, zone: ZoneId, pcp: usize) -> bool {
        let zone = &self.zones[zone.index()];
        let below_high = zone.watermarks.below_high;
        let blocks = self.pcps[pcp].refill_plan(self.version.rules.pcp, request.order, below_high).blocks;
        blocks > 0 && zone.free_area.free_of(request.want) >= u64::from(blocks)
    }

    /// The next page of the run: single, without an owner; all else is for whoever takes it to set.
    #[inline]
    pub(crate) fn take_of_run(&mut self, run: &mut Run) -> Option<Pfn> {
        if run.left == 0 {
            return None;
        }
        if core::mem::take(&mut run.refills) {
            run.refilled = self.refill_own(run.zone, run.pcp, &run.request);
            run.left = 1;
        }
        let (rules, want) = (&self.version.rules, run.request.want);
        let pfn = self.pcps[run.pcp].take(&mut self.frames, rules, Order(0), want, run.end)?;
        run.left -= 1;
        run.taken += 1;
        Some(pfn)
    }

    /// Counts the pages that were taken. Returns how many went from the buddy lists to the per-CPU list.
    pub(crate) fn close_run(&mut self, run: Run) -> u32 {
        self.pcps[run.pcp].note_allocs(run.taken);
        self.count_alloc(run.zone, u64::from(run.taken));
        run.refilled
    }
}
