//! Single pages for one task, taken one after the other as [`PageAllocator::alloc`] takes each, where all that it
//! does between two of them is known beforehand: the zone and its mark, the list, its end.
//!
//! A refill leaves fewer free pages to the next one's mark: after its first page the zone is to pass it again. A run
//! ends where that comes to something else, does not begin where kswapd is to be woken, and takes no pages of another
//! type. Also what tends per-CPU lists from outside. Next: [`super::page_alloc`].

use std_alloc::vec::Vec;
use units::{CpuId, NodeId, Order, Pages, Pfn};

use crate::alloc::buddy::End;
use crate::alloc::flags::{AllocFlags, gfp_zone};
use crate::alloc::page_alloc::{PageAllocator, Request};
use crate::alloc::pcp::{COSTLY_ORDER, is_single};
use crate::base::event::Trace;
use crate::base::gfp::Gfp;
use crate::base::layout::ZoneId;
use crate::base::vmstat::VmEvent;
use crate::version::rules::{PcpFallback, PcpGeneration};

/// Pages that are taken from one per-CPU list.
#[derive(Debug)]
#[must_use]
pub(crate) struct Run {
    request: Request,
    zone: ZoneId,
    pcp: usize,
    end: End,
    /// The list is empty, and can be refilled.
    refills: bool,
    /// The last page that was taken came with a refill: another walk is to allow the next one.
    is_refilled: bool,
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

    /// From now on no page is kept for a CPU, as in a 7.2 that is built without SMP: `count` and `high` of
    /// `/proc/zoneinfo` were 0 in each guest.
    pub fn go_without_lists(&mut self) {
        self.has_lists = false;
        let _ = self.drain_all();
    }

    /// Whether there are pages on the lists of `cpu`.
    pub fn has_listed(&self, cpu: CpuId) -> bool {
        let first = cpu.index() * self.zones.len();
        self.pcps[first..first + self.zones.len()].iter().any(|list| list.count() > 0)
    }

    /// The periodic work on the lists of `cpu`, about once a second (6.7): a list that has grown
    /// shrinks again. Returns the pages that went back to their zones.
    pub fn tick(&mut self, cpu: CpuId) -> Pages {
        match self.version.rules.pcp {
            PcpGeneration::AutoSize => self.drain_cpu_by(cpu, |list| list.decay()),
            _ => Pages::ZERO,
        }
    }

    /// Begins a run of at least one page; none where a request has to be made for it. Nothing is taken yet.
    pub(crate) fn open_run(&mut self, cpu: CpuId, gfp: Gfp, flags: AllocFlags) -> Option<Run> {
        let (want, highest_zoneidx) = (gfp.migrate_type(), gfp_zone(gfp));
        let request = Request { cpu, gfp, order: Order(0), want, highest_zoneidx, flags };
        let zone = self.first_zone(&request)?;
        if self.one_by_one || !self.has_lists || self.zones[zone.index()].watermarks.boosted {
            return None;
        }
        let pcp = self.pcp_index(cpu, zone);
        let refills = !self.pcps[pcp].has_single(&self.frames, &self.version.rules, want);
        if refills && !self.has_refill(&request, zone, pcp) {
            return None;
        }
        let end = self.end_for(gfp);
        Some(Run { request, zone, pcp, end, refills, is_refilled: false, taken: 0, refilled: 0 })
    }

    /// [`Self::open_run`] with the flags of a first try in the slow path: of pages each of which finds no zone
    /// above the mark of the fast path before, as none is; none where that may be otherwise.
    pub(crate) fn open_slow_run(&mut self, cpu: CpuId, gfp: Gfp, flags: AllocFlags) -> Option<Run> {
        let (fast, highest_zoneidx) = (self.fast_flags(cpu, gfp), gfp_zone(gfp));
        let mark = fast.mark().filter(|_| !self.one_by_one && self.has_lists && !gfp.has(Gfp::WRITE))?;
        let (node, list) = (self.node_of(cpu).index(), highest_zoneidx as usize);
        let is_above = |&id: &ZoneId| {
            let zone = &self.zones[id.index()];
            let (mark, free) = (zone.watermarks.mark(mark), zone.free_pages().0);
            zone.watermark_ok(Order(0), mark, highest_zoneidx, fast, free)
        };
        if self.nodes[node].zonelists[list].iter().any(is_above) {
            return None;
        }
        // What walks that come to nothing leave behind.
        for place in 0..self.nodes[node].zonelists[list].len() {
            let id = self.nodes[node].zonelists[list][place];
            self.zones[id.index()].watermarks.below_high |= self.version.rules.pcp == PcpGeneration::AutoSize;
        }
        self.open_run(cpu, gfp, flags)
    }

    /// The zone that the first walk for a request takes from, as long as it has a block.
    fn first_zone(&mut self, request: &Request) -> Option<ZoneId> {
        let node = self.node_of(request.cpu);
        let list = request.highest_zoneidx as usize;
        let spreads = request.flags.has_any(AllocFlags::SPREAD_DIRTY);
        let passed_by = self.busy_kswapds | if spreads { self.dirty_full_nodes } else { 0 };
        let mut local = None;
        for index in 0..self.nodes[node.index()].zonelists[list].len() {
            let id = self.nodes[node.index()].zonelists[list][index];
            let zone_node = self.zones[id.index()].node;
            let local = *local.get_or_insert(zone_node);
            if (passed_by & (1 << zone_node.0)) != 0 {
                continue;
            }
            if request.flags.has_any(AllocFlags::KEEP_APART) && zone_node != local && !self.keeps_whole {
                return None;
            }
            if self.passes_watermark(id, request) {
                return Some(id);
            }
        }
        None
    }

    /// Whether the next refill of a list takes nothing from lists of another type.
    fn has_refill(&self, request: &Request, zone: ZoneId, pcp: usize) -> bool {
        if self.version.rules.pcp_fallback == PcpFallback::Taken {
            return false;
        }
        let zone = &self.zones[zone.index()];
        let below_high = zone.watermarks.below_high;
        let blocks = self.pcps[pcp].refill_plan(self.version.rules.pcp, request.order, below_high).blocks;
        blocks > 0 && zone.free_area.free_of(request.want) >= u64::from(blocks)
    }

    /// The next pages of the run, as many as `taken` holds at most: single ones; all else is for whoever takes them to
    /// set. Returns how many.
    pub(crate) fn take_of_run(&mut self, run: &mut Run, taken: &mut [Pfn]) -> usize {
        let mut count = 0;
        while count < taken.len() {
            // A walk comes to what the first one came to, unless a refill left the zone below its mark.
            if core::mem::take(&mut run.is_refilled) && !self.passes_watermark(run.zone, &run.request) {
                break;
            }
            let (rules, places) = (&self.version.rules, &mut taken[count..]);
            if core::mem::take(&mut run.refills) {
                count += match self.refills_in_order(run) {
                    true => self.take_refill(run, places),
                    false => self.take_refilled(run, places),
                };
                continue;
            }
            let (want, wanted) = (run.request.want, places.len());
            let got = self.pcps[run.pcp].take_singles(&mut self.frames, rules, want, run.end, places);
            count += got;
            if got < wanted {
                run.refills = self.has_refill(&run.request, run.zone, run.pcp);
                if !run.refills {
                    break;
                }
            }
        }
        run.taken += u32::try_from(count).expect("a run is short");
        count
    }

    /// Whether pages leave the list of a run in the order in which a refill puts them there.
    fn refills_in_order(&self, run: &Run) -> bool {
        !is_single(&self.version.rules) && self.refill_end(run.request.gfp) == run.end
    }

    /// Refills the list of a run, and takes a page off it.
    fn take_refilled(&mut self, run: &mut Run, places: &mut [Pfn]) -> usize {
        run.refilled += self.refill_own(run.zone, run.pcp, &run.request);
        run.is_refilled = true;
        let (rules, want) = (&self.version.rules, run.request.want);
        self.pcps[run.pcp].take_singles(&mut self.frames, rules, want, run.end, &mut places[..1])
    }

    /// The same where the pages come off in the order in which they are put there: the first one, and as many as there
    /// are places for if the walk after it allows, go past the list.
    fn take_refill(&mut self, run: &mut Run, places: &mut [Pfn]) -> usize {
        let Run { zone, pcp, request, .. } = *run;
        let (watermarks, free) =
            (&self.zones[zone.index()].watermarks, self.zones[zone.index()].free_pages().0);
        let rules = &self.version.rules;
        let pages = self.pcps[pcp].refill_blocks(rules.pcp, Order(0), watermarks.below_high);
        let left = free - u64::from(pages);
        run.refilled += pages;
        run.is_refilled = places.len() == 1 || !self.passes_watermark_with(zone, &request, left);
        let most = if run.is_refilled { 1 } else { places.len() };
        let (frames, pcp, rules) = (&mut self.frames, &mut self.pcps[pcp], &self.version.rules);
        let (want, mut count) = (request.want, 0);
        self.zones[zone.index()].free_area.take_singles(frames, want, pages, |frames, (Pfn(head), pages)| {
            let singles = (head..head + pages).zip(&mut places[count..most]);
            let past = singles.map(|(pfn, place)| {
                *place = Pfn(pfn);
                frames.set_order(Pfn(pfn), Order(0));
            });
            let past = past.count();
            count += past;
            let (past, end) = (past as u32, run.end);
            if past < pages {
                pcp.refill_with_singles(frames, rules, (Pfn(head + past), pages - past), want, end, None);
            }
        });
        count
    }

    /// [`Self::free_cold`] of single pages, one after the other.
    pub(crate) fn free_cold_singles(&mut self, cpu: CpuId, pages: &[Pfn]) {
        if !self.has_lists {
            return pages.iter().for_each(|&pfn| self.free_cold(cpu, pfn, Order(0)));
        }
        self.events.add(VmEvent::PgFree, pages.len() as u64);
        let end = self.end_for(Gfp::COLD);
        let mut rest = pages;
        while let Some(&first) = rest.first() {
            let zone = self.zone_of(first);
            let migrate_type = self.zones[zone.index()].free_area.blocks.migrate_type(first);
            let pcp = self.pcp_index(cpu, zone);
            // Types of pageblocks, none of which is smaller than a huge page, change only when pages go back to zones.
            let (rules, marks) = (&self.version.rules, &self.zones[zone.index()].watermarks);
            let (put, excess) =
                self.pcps[pcp].put_singles(&mut self.frames, rules, rest, migrate_type, end, marks);
            rest = &rest[put..];
            if excess > 0 {
                self.free_excess(pcp, zone, excess, Order(0), migrate_type);
            }
        }
    }

    /// Takes up to `pages` pages for a file on `cpu`, as long as there are any without reclaim.
    pub fn take_singles(&mut self, cpu: CpuId, pages: u64, taken: &mut Vec<Pfn>) {
        let gfp = Gfp::HIGHUSER_MOVABLE;
        let flags = self.fast_flags(cpu, gfp);
        taken.extend((0..pages).map_while(|_| self.alloc(cpu, gfp, Order(0), flags).page));
    }

    /// Takes kernel memory of each kind on `cpu` and frees it again, which nobody counts: what starts a run has had
    /// some, so that each list of `cpu` has what a refill brings.
    pub fn pass_kernel_memory(&mut self, cpu: CpuId) {
        let events = self.events.clone();
        for gfp in [Gfp::KERNEL, Gfp::KERNEL | Gfp::RECLAIMABLE_BIT] {
            for order in (0..=COSTLY_ORDER.0).map(Order) {
                if let Some(pfn) = self.alloc(cpu, gfp, order, self.fast_flags(cpu, gfp)).page {
                    self.free(cpu, pfn, order);
                }
            }
        }
        self.events = events;
    }

    /// Counts the pages that were taken. Returns their node, and how many went from the buddy lists to the per-CPU
    /// list.
    pub(crate) fn close_run(&mut self, run: Run) -> (NodeId, u32) {
        self.pcps[run.pcp].note_allocs(run.taken);
        self.count_alloc(run.zone, u64::from(run.taken));
        (self.zones[run.zone.index()].node, run.refilled)
    }
}
