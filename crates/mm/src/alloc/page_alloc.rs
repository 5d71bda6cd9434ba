//! The page allocator: zones, marks, buddy lists and per-CPU lists under one roof
//! (MECHANISMS 1.8, 1.9, 3).
//!
//! [`PageAllocator::alloc`] is one pass over the zonelist, the kernel's `get_page_from_freelist`.
//! It never reclaims, waits or wakes: [`AllocOutcome`] says what is to be done. The slow path is
//! made of such passes by whoever can wait. Left out: CPU sets, node reclaim, bulk allocation.
//!
//! Start with [`PageAllocator::alloc`] and [`PageAllocator::free`]; then [`crate::alloc::fallback`],
//! [`crate::alloc::pcp`], [`crate::alloc::boot`]; [`crate::alloc::check`] says what always holds.

use std_alloc::vec::Vec;

use units::{CpuId, NodeId, Order, Pages, Pfn};

use crate::alloc::buddy::{End, LARGEST_ORDER};
use crate::alloc::fallback::{FALLBACKS, LockedZone, Mode};
use crate::alloc::flags::{AllocFlags, ZoneSet, gfp_zone};
use crate::alloc::pageblock::BlockSize;
use crate::alloc::pcp::Pcp;
use crate::alloc::watermark::Mark;
use crate::alloc::zone::{Node, Zone};
use crate::base::event::Trace;
use crate::base::frame::{FrameState, Frames, PageFlags};
use crate::base::gfp::{Gfp, MigrateType};
use crate::base::layout::{ZoneId, ZoneKind};
use crate::base::sysctl::{Sysctl, Sysctls};
use crate::base::vmstat::{VmEvent, VmEvents};
use crate::version::presets::{Tuning, Version};
use crate::version::rules::{
    AtomicMark, ColdOrder, ColdPages, DirtySpread, FallbackPolicy, HighatomicReserve, NodeChoice,
    PcpFallback, PcpGeneration, Rules, Spread, SpreadRetry, WatermarkBoost,
};

/// What one pass over the zones came to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[must_use]
pub struct AllocOutcome {
    /// The head of the new block, [`FrameState::InUse`]; `None`: every zone is below its mark or
    /// has no fitting block.
    pub page: Option<Pfn>,
    /// Zones that were boosted: wake kswapd for each, order 0, highest_zoneidx = the zone's own kind.
    pub wake: ZoneSet,
    /// Pages that went from the buddy lists to a per-CPU list.
    pub refilled: u32,
    /// Pageblocks whose pages were counted or moved one by one.
    pub stolen_blocks: u32,
    /// With [`AllocFlags::FRAGMENT_STALL`] and no page: wait, then [`PageAllocator::alloc_after_stall`].
    pub stall: Option<Stall>,
}

/// A walk over the zones that broke off for its task to stall on fragmentation (MECHANISMS 2.9).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stall {
    /// The zone that the request prefers: the one to boost and whose kswapd to wait for.
    pub zone: ZoneId,
    /// Zones that were tried.
    pub tried: ZoneSet,
    /// Where in the zonelist the walk goes on.
    resume: usize,
}

/// Where the frames of a largest block lie: what is asked of a zone page by page.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Chunk {
    pub(crate) zone: ZoneId,
    pub(crate) kind: ZoneKind,
    pub(crate) node: NodeId,
}

/// The largest block that a frame is in: all of one lie alike.
#[inline]
pub(crate) const fn chunk_of(pfn: Pfn) -> u32 {
    pfn.0 >> LARGEST_ORDER.0
}

/// All memory of a machine, free or handed out.
#[derive(Debug, Clone)]
pub struct PageAllocator<T> {
    pub(super) version: Version,
    pub(super) sysctls: Sysctls,
    /// The frame table.
    pub frames: Frames,
    /// By [`ZoneId`].
    pub(super) zones: Vec<Zone>,
    pub(super) nodes: Vec<Node>,
    /// `/proc/vmstat` events.
    pub events: VmEvents,
    /// Receives tracepoints.
    pub trace: T,
    /// Bit n: node n holds its share of dirty pages, so that requests with
    /// [`AllocFlags::SPREAD_DIRTY`] skip it (MECHANISMS 1.9, 10.2).
    pub(super) dirty_full_nodes: u32,
    /// `vm.defrag_mode`: types are kept apart until a request has reclaimed and compacted in vain.
    pub(super) keeps_whole: bool,
    /// Bit n: kswapd of node n is at work, where that matters ([`NodeChoice`]).
    pub(super) busy_kswapds: u32,
    pub(super) pcps: Vec<Pcp>,
    /// Whether per-CPU lists hold anything, see [`Self::go_without_lists`].
    pub(super) has_lists: bool,
    /// Tests compare runs with and without: nothing is done for several pages at once.
    pub(super) one_by_one: bool,
    pub(super) boot_min_free_kbytes: u64,
    pub(super) cpu_node: Vec<NodeId>,
    pub(super) chunks: Vec<Chunk>,
    /// For each node and highest_zoneidx: whether the preferred zone is Normal and has a DMA32 zone beside it.
    pub(super) can_spread: Vec<[bool; ZoneKind::COUNT]>,
}

/// A request on its way along the zonelist.
#[derive(Debug, Clone, Copy)]
pub(super) struct Request {
    pub(super) cpu: CpuId,
    pub(super) gfp: Gfp,
    pub(super) order: Order,
    pub(super) want: MigrateType,
    pub(super) highest_zoneidx: ZoneKind,
    pub(super) flags: AllocFlags,
}

impl<T: Trace> PageAllocator<T> {
    /// What this kernel decides, and how.
    #[inline]
    pub fn rules(&self) -> &Rules {
        &self.version.rules
    }

    /// Numbers of this kernel.
    #[inline]
    pub fn tuning(&self) -> &Tuning {
        &self.version.tuning
    }

    /// Values of all sysctls. Set them by [`PageAllocator::set_sysctl`].
    #[inline]
    pub fn sysctls(&self) -> &Sysctls {
        &self.sysctls
    }

    /// The zones, by [`ZoneId`].
    #[inline]
    pub fn zones(&self) -> &[Zone] {
        &self.zones
    }

    /// The nodes.
    #[inline]
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// Logical CPUs.
    pub fn cpu_count(&self) -> u16 {
        u16::try_from(self.cpu_node.len()).expect("made from 16 bits")
    }

    /// The node that `cpu` belongs to.
    #[inline]
    pub fn node_of(&self, cpu: CpuId) -> NodeId {
        self.cpu_node[cpu.index()]
    }

    /// The zone that `pfn` belongs to.
    #[inline]
    pub fn zone_of(&self, pfn: Pfn) -> ZoneId {
        self.chunk(pfn).zone
    }

    /// Where `pfn` lies.
    #[inline]
    pub(crate) fn chunk(&self, pfn: Pfn) -> Chunk {
        self.chunks[chunk_of(pfn) as usize]
    }

    /// The frame table, and where each frame lies.
    #[inline]
    pub(crate) fn frames_and_chunks(&mut self) -> (&mut Frames, impl Fn(Pfn) -> Chunk + use<'_, T>) {
        let chunks = self.chunks.as_slice();
        (&mut self.frames, move |pfn| chunks[chunk_of(pfn) as usize])
    }

    /// A zone.
    #[inline]
    pub fn zone(&self, id: ZoneId) -> &Zone {
        &self.zones[id.index()]
    }

    /// Zones that a request from `cpu` may use, in the order in which they are tried.
    #[inline]
    pub fn zonelist(&self, cpu: CpuId, gfp: Gfp) -> &[ZoneId] {
        &self.nodes[self.node_of(cpu).index()].zonelists[gfp_zone(gfp) as usize]
    }

    /// How large the pageblocks of this machine are.
    pub fn block_size(&self) -> BlockSize {
        self.zones[0].free_area.pageblocks().size()
    }

    /// Whether pageblocks are to be kept whole (`vm.defrag_mode`).
    #[inline]
    pub const fn keeps_whole(&self) -> bool {
        self.keeps_whole
    }

    /// Free pages on all buddy lists.
    pub fn free_pages(&self) -> Pages {
        self.zones.iter().map(Zone::free_pages).sum()
    }

    /// One CPU's lists for one zone.
    #[inline]
    pub fn pcp(&self, cpu: CpuId, zone: ZoneId) -> &Pcp {
        &self.pcps[(cpu.index() * self.zones.len()) + zone.index()]
    }

    #[inline]
    pub(super) fn pcp_mut(&mut self, cpu: CpuId, zone: ZoneId) -> &mut Pcp {
        let index = (cpu.index() * self.zones.len()) + zone.index();
        &mut self.pcps[index]
    }

    /// Flags of the fast path. Types are kept apart at first if the preferred zone is Normal and
    /// its node has a DMA32 zone to go to instead (MECHANISMS 2.6).
    #[inline]
    pub fn fast_flags(&self, cpu: CpuId, gfp: Gfp) -> AllocFlags {
        let can_spread = self.can_spread[self.node_of(cpu).index()][gfp_zone(gfp) as usize];
        let may = self.version.rules.watermark_boost != WatermarkBoost::V2 || gfp.has(Gfp::KSWAPD_RECLAIM);
        let spreads = can_spread && may && self.version.rules.spread == Spread::Dma32;
        let flags = AllocFlags::fast(gfp, spreads || self.keeps_whole);
        match self.version.rules.dirty_spread {
            DirtySpread::BelowLimit => flags,
            DirtySpread::Any => flags.without(AllocFlags::SPREAD_DIRTY),
        }
    }

    /// Tries once to allocate a block of `order` for a task on `cpu`: walks the zonelist, skips
    /// zones that would fall below their mark, takes from the first other one that has a block.
    ///
    /// The new block has its order set, no flags, no owner (its index is left over), cgroup 0.
    #[inline]
    pub fn alloc(&mut self, cpu: CpuId, gfp: Gfp, order: Order, flags: AllocFlags) -> AllocOutcome {
        let mut out = AllocOutcome::default();
        self.alloc_into(cpu, gfp, order, flags, &mut out);
        out
    }

    /// [`alloc`](Self::alloc) into an outcome of the caller's, [`AllocOutcome::default`] before: to copy what was
    /// just written in pieces is slow.
    #[inline]
    pub fn alloc_into(
        &mut self,
        cpu: CpuId,
        gfp: Gfp,
        order: Order,
        flags: AllocFlags,
        out: &mut AllocOutcome,
    ) {
        assert!(order <= LARGEST_ORDER, "blocks of {order:?} do not exist");
        let (want, highest_zoneidx) = (gfp.migrate_type(), gfp_zone(gfp));
        self.walk_twice(Request { cpu, gfp, order, want, highest_zoneidx, flags }, 0, out);
    }

    /// Goes on with a request whose task has stalled (MECHANISMS 2.9 c). This time types may mix.
    pub fn alloc_after_stall(
        &mut self,
        cpu: CpuId,
        gfp: Gfp,
        order: Order,
        flags: AllocFlags,
        stall: Stall,
    ) -> AllocOutcome {
        let (want, highest_zoneidx) = (gfp.migrate_type(), gfp_zone(gfp));
        let flags = flags.without(AllocFlags::KEEP_APART);
        let mut out = AllocOutcome::default();
        self.walk_twice(Request { cpu, gfp, order, want, highest_zoneidx, flags }, stall.resume, &mut out);
        out
    }

    /// The boost of a task that stalls on `zone` (MECHANISMS 2.9 d).
    pub fn boost_for_stall(&mut self, zone: ZoneId) {
        self.lock(zone).boost_for_stall();
    }

    /// Walks the zonelist from `start`, at first past nodes whose kswapd is at work; then again if the walk kept
    /// types apart in vain.
    #[inline]
    fn walk_twice(&mut self, mut request: Request, mut start: usize, out: &mut AllocOutcome) {
        let mut spared = self.busy_kswapds;
        loop {
            let (end, tried) = self.walk_zones(&request, spared, start, out);
            if out.page.is_some() {
                return;
            }
            if core::mem::take(&mut spared) != 0 {
                continue;
            }
            if !request.flags.has_any(AllocFlags::KEEP_APART) {
                return;
            }
            if self.keeps_whole && request.gfp.has(Gfp::DIRECT_RECLAIM) {
                return; // It shall reclaim first.
            }
            // Better mix types than go to another node or fail (MECHANISMS 2.6).
            start = match self.version.rules.spread_retry {
                SpreadRetry::GoesOn => end,
                SpreadRetry::StartsOver => 0,
            };
            if request.flags.has_any(AllocFlags::FRAGMENT_STALL) {
                let zone = self.zonelist(request.cpu, request.gfp)[0];
                out.stall = Some(Stall { zone, tried, resume: start });
                return;
            }
            request.flags = request.flags.without(AllocFlags::KEEP_APART);
        }
    }

    /// One walk past the nodes of `spared`, a bit each, and those that hold their share of dirty pages; while types
    /// are kept apart it ends at the first zone of another node. Returns where it ended and the zones that it tried.
    #[inline]
    fn walk_zones(
        &mut self,
        request: &Request,
        spared: u32,
        start: usize,
        out: &mut AllocOutcome,
    ) -> (usize, ZoneSet) {
        let node = self.node_of(request.cpu);
        let list = request.highest_zoneidx as usize;
        let spreads = request.flags.has_any(AllocFlags::SPREAD_DIRTY);
        let passed_by = spared | if spreads { self.dirty_full_nodes } else { 0 };
        let mut tried = ZoneSet::EMPTY;
        let mut local = None;
        let mut index = start;
        while let Some(&id) = self.nodes[node.index()].zonelists[list].get(index) {
            let zone_node = self.zones[id.index()].node;
            let local = *local.get_or_insert(zone_node);
            if (passed_by & (1 << zone_node.0)) == 0 {
                if request.flags.has_any(AllocFlags::KEEP_APART) && zone_node != local && !self.keeps_whole {
                    break;
                }
                tried.insert(id);
                if self.passes_watermark(id, request) {
                    self.take_from_zone(id, request, out);
                    if out.page.is_some() {
                        break;
                    }
                }
            }
            index += 1;
        }
        (index, tried)
    }

    /// kswapd of a node begins to work, or goes to sleep: where there are others, requests pass the node by at first.
    pub(crate) fn set_kswapd_busy(&mut self, node: NodeId, busy: bool) {
        if self.nodes.len() > 1 && self.version.rules.node_choice == NodeChoice::SparesKswapd {
            let bit = 1 << node.0;
            self.busy_kswapds = if busy { self.busy_kswapds | bit } else { self.busy_kswapds & !bit };
        }
    }

    /// The watermark test, made before any list is looked at, even if a per-CPU list could serve
    /// the request.
    #[inline]
    pub(super) fn passes_watermark(&mut self, id: ZoneId, request: &Request) -> bool {
        let free = self.zones[id.index()].free_pages().0;
        self.passes_watermark_with(id, request, free)
    }

    /// The same with so many free pages.
    #[inline]
    pub(super) fn passes_watermark_with(&mut self, id: ZoneId, request: &Request, free: u64) -> bool {
        let Request { order, highest_zoneidx, flags, .. } = *request;
        let zone = &mut self.zones[id.index()];
        if self.version.rules.pcp == PcpGeneration::AutoSize && !zone.watermarks.below_high {
            if zone.watermark_ok(order, zone.watermarks.mark(Mark::High), highest_zoneidx, flags, free) {
                return true;
            }
            zone.watermarks.below_high = true;
        }
        let Some(mark) = flags.mark() else { return true };
        if zone.watermark_ok(order, zone.watermarks.mark(mark), highest_zoneidx, flags, free) {
            return true;
        }
        let ignores_boost = order == Order(0)
            && mark == Mark::Min
            && request.gfp.has(Gfp::ATOMIC_BIT)
            && self.version.rules.atomic_mark == AtomicMark::Unboosted;
        ignores_boost && zone.watermark_ok(order, zone.watermarks.base(mark), highest_zoneidx, flags, free)
    }

    /// `rmqueue`: from the per-CPU lists if they hold this order, else from the buddy lists.
    #[inline]
    fn take_from_zone(&mut self, id: ZoneId, request: &Request, out: &mut AllocOutcome) {
        let order = request.order;
        let mut page = None;
        if self.lists_hold(order) {
            let pcp = self.pcp_index(request.cpu, id);
            self.pcps[pcp].note_alloc();
            page = self.take_from_pcp(pcp, request, request.want);
            if page.is_none() {
                page = self.take_other_or_refill(id, pcp, request, out);
            }
        }
        if page.is_none() && (order > Order(0) || !self.lists_hold(order)) {
            page = self.take_from_buddy(id, request, out);
        }
        if self.zones[id.index()].watermarks.boosted && self.wakes_kswapd(request.flags) {
            self.zones[id.index()].watermarks.boosted = false;
            out.wake.insert(id);
        }
        let Some(pfn) = page else { return };
        self.prepare(pfn, order, id);
        let reserve = self.version.rules.highatomic;
        if order > Order(0)
            && request.flags.has_any(AllocFlags::HIGHATOMIC)
            && reserve != HighatomicReserve::Blocks
        {
            let spare_small = reserve == HighatomicReserve::LargeZones;
            self.zones[id.index()].reserve_highatomic(&mut self.frames, pfn, order, spare_small);
        }
        out.page = Some(pfn);
    }

    /// Whether a boost by this request wakes kswapd: in v2 whatever it allows.
    fn wakes_kswapd(&self, flags: AllocFlags) -> bool {
        flags.has_any(AllocFlags::KSWAPD) || self.version.rules.watermark_boost == WatermarkBoost::V2
    }

    /// Whether blocks of `order` go through per-CPU lists.
    #[inline]
    pub(super) const fn lists_hold(&self, order: Order) -> bool {
        self.has_lists && self.version.rules.pcp.holds(order)
    }

    #[inline]
    pub(super) fn pcp_index(&self, cpu: CpuId, zone: ZoneId) -> usize {
        (cpu.index() * self.zones.len()) + zone.index()
    }

    /// Makes a block that was taken off a list a page in use. Its order is set and it has no owner
    /// already: both are so on every free list.
    #[inline]
    fn prepare(&mut self, pfn: Pfn, order: Order, zone: ZoneId) {
        self.frames.set_state(pfn, FrameState::InUse);
        self.frames.put_flags(pfn, PageFlags::NONE);
        self.frames.set_memcg(pfn, 0);
        self.count_alloc(zone, u64::from(order.pages()));
    }

    #[inline]
    pub(super) fn count_alloc(&mut self, zone: ZoneId, pages: u64) {
        self.events.add(pgalloc(self.zones[zone.index()].kind), pages);
    }

    /// The zone with what is needed under its lock.
    pub(super) fn lock(&mut self, id: ZoneId) -> LockedZone<'_, T> {
        LockedZone {
            zone: &mut self.zones[id.index()],
            frames: &mut self.frames,
            events: &mut self.events,
            trace: &mut self.trace,
            rules: &self.version.rules,
            boost_factor: self.sysctls.get(Sysctl::WatermarkBoostFactor),
            stall_order: self.sysctls.get(Sysctl::FragmentStallOrder),
            blocks_walked: 0,
        }
    }

    /// The end of a per-CPU list that a request takes from: the tail if it is cold (MECHANISMS 3.2).
    #[inline]
    pub(super) fn end_for(&self, gfp: Gfp) -> End {
        let is_cold = gfp.has(Gfp::COLD) && self.version.rules.cold_pages == ColdPages::Tail;
        if is_cold { End::Tail } else { End::Head }
    }

    #[inline]
    fn take_from_pcp(&mut self, pcp: usize, request: &Request, migrate_type: MigrateType) -> Option<Pfn> {
        let end = self.end_for(request.gfp);
        let rules = &self.version.rules;
        self.pcps[pcp].take(&mut self.frames, rules, request.order, migrate_type, end)
    }

    /// The CPU has no page of the wanted type.
    #[cold]
    fn take_other_or_refill(
        &mut self,
        id: ZoneId,
        pcp: usize,
        request: &Request,
        out: &mut AllocOutcome,
    ) -> Option<Pfn> {
        if self.version.rules.pcp_fallback == PcpFallback::Taken {
            let mut others = FALLBACKS[request.want as usize].into_iter();
            if let Some(pfn) = others.find_map(|other| self.take_from_pcp(pcp, request, other)) {
                return Some(pfn);
            }
        }
        self.refill(id, pcp, request, out);
        self.take_from_pcp(pcp, request, request.want)
    }

    /// `rmqueue_bulk`: fills an empty per-CPU list.
    fn refill(&mut self, id: ZoneId, pcp: usize, request: &Request, out: &mut AllocOutcome) {
        let Request { order, want, flags, .. } = *request;
        let below_high = self.zones[id.index()].watermarks.below_high;
        let blocks = self.pcps[pcp].refill_plan(self.version.rules.pcp, order, below_high).blocks;
        if order == Order(0)
            && !self.one_by_one
            && self.zones[id.index()].free_area.free_of(want) >= u64::from(blocks)
        {
            out.refilled += self.refill_own(id, pcp, request);
            return;
        }
        let blocks = self.pcps[pcp].refill_blocks(self.version.rules.pcp, order, below_high);
        let end = self.refill_end(request.gfp);
        let mut mode = Mode::default();
        let mut previous = None;
        for _ in 0..blocks {
            let mut locked = self.lock(id);
            let page = locked.take_block(order, want, flags, &mut mode);
            out.stolen_blocks += locked.blocks_walked;
            let Some(pfn) = page else { break };
            let rules = &self.version.rules;
            self.pcps[pcp].refill_with(&mut self.frames, rules, pfn, (order, want), end, previous);
            previous = Some(pfn);
            out.refilled += order.pages();
        }
    }

    /// [`Self::refill`] with single pages, all of them from blocks of the wanted type: of each block as many as are
    /// wanted at once. Returns how many.
    pub(super) fn refill_own(&mut self, id: ZoneId, pcp: usize, request: &Request) -> u32 {
        let end = self.refill_end(request.gfp);
        let zone = &mut self.zones[id.index()];
        let (rules, want) = (&self.version.rules, request.want);
        let pcp = &mut self.pcps[pcp];
        let pages = pcp.refill_blocks(rules.pcp, Order(0), zone.watermarks.below_high);
        let mut previous = None;
        zone.free_area.take_singles(&mut self.frames, want, pages, |frames, singles| {
            previous = pcp.refill_with_singles(frames, rules, singles, want, end, previous);
        });
        pages
    }

    /// The end of a per-CPU list that a refill puts its first block at.
    pub(super) fn refill_end(&self, gfp: Gfp) -> End {
        match self.version.rules.cold_order {
            ColdOrder::Falling => End::Head,
            ColdOrder::Rising => self.end_for(gfp),
        }
    }

    /// Takes a block past the per-CPU lists.
    #[cold]
    fn take_from_buddy(&mut self, id: ZoneId, request: &Request, out: &mut AllocOutcome) -> Option<Pfn> {
        let Request { order, want, flags, .. } = *request;
        let mut locked = self.lock(id);
        let mut page = None;
        let has_own = locked.rules.highatomic != HighatomicReserve::Blocks;
        if order > Order(0) && flags.has_any(AllocFlags::HIGHATOMIC) && has_own {
            page = locked.take_own(order, MigrateType::HighAtomic);
        }
        if page.is_none() {
            page = locked.take_block(order, want, flags, &mut Mode::default());
        }
        out.stolen_blocks += locked.blocks_walked;
        page
    }

    /// Frees the block of `order` that `pfn` heads, to the lists of `cpu` or to the zone.
    ///
    /// # Panics
    /// When no block of this order in use starts there: it would be freed twice.
    #[inline]
    pub fn free(&mut self, cpu: CpuId, pfn: Pfn, order: Order) {
        self.free_at(cpu, pfn, order, End::Head);
    }

    /// [`PageAllocator::free`] for a page that nobody has touched lately: reclaim's. Up to 4.14 it is the last
    /// to be taken from the lists of `cpu`, but for cold requests the first.
    ///
    /// # Panics
    /// As [`PageAllocator::free`].
    #[inline]
    pub fn free_cold(&mut self, cpu: CpuId, pfn: Pfn, order: Order) {
        self.free_at(cpu, pfn, order, self.end_for(Gfp::COLD));
    }

    #[inline]
    fn free_at(&mut self, cpu: CpuId, pfn: Pfn, order: Order, end: End) {
        let in_use = self.frames.is_block_in_use(pfn, order);
        assert!(in_use, "{pfn:?} ({:?}) freed with {order:?}", self.frames.state(pfn));
        self.events.add(VmEvent::PgFree, u64::from(order.pages()));
        let id = self.zone_of(pfn);
        let is_listed = self.lists_hold(order);
        let zone = &mut self.zones[id.index()];
        let migrate_type = zone.free_area.blocks.migrate_type(pfn);
        if !is_listed {
            let retype = self.version.rules.fallback == FallbackPolicy::ClaimThenSteal;
            zone.free_area.free_block(&mut self.frames, pfn, order, migrate_type, retype, 1);
            return;
        }
        let index = (cpu.index() * self.zones.len()) + id.index();
        let zone = &self.zones[id.index()];
        let (rules, block) = (&self.version.rules, (order, migrate_type));
        let excess = self.pcps[index].put(&mut self.frames, rules, pfn, block, end, &zone.watermarks);
        if excess > 0 {
            self.free_excess(index, id, excess, order, migrate_type);
        }
    }

    /// Gives pages of a per-CPU list back to the zone; returns how many.
    #[cold]
    pub(super) fn free_excess(
        &mut self,
        pcp: usize,
        id: ZoneId,
        pages: u32,
        order: Order,
        migrate_type: MigrateType,
    ) -> u64 {
        let zone = &mut self.zones[id.index()];
        let before = self.pcps[pcp].count();
        let (rules, freed) = (&self.version.rules, (order, migrate_type));
        self.pcps[pcp].free_bulk(pages, rules, freed, &mut self.frames, &mut zone.free_area);
        if zone.watermarks.below_high && zone.above(Mark::High, Order(0), ZoneKind::Movable) {
            zone.watermarks.below_high = false;
        }
        u64::from(before - self.pcps[pcp].count())
    }

    /// Gives all pages on the lists of `cpu` back to their zones; returns how many.
    pub fn drain_cpu(&mut self, cpu: CpuId) -> Pages {
        self.drain_cpu_by(cpu, |list| list.count())
    }

    /// Gives back as many pages of each list of `cpu` as `excess` says; returns how many.
    pub(super) fn drain_cpu_by(&mut self, cpu: CpuId, excess: impl Fn(&mut Pcp) -> u32) -> Pages {
        let mut drained = 0;
        for zone in 0..self.zones.len() {
            let index = (cpu.index() * self.zones.len()) + zone;
            let excess = excess(&mut self.pcps[index]);
            if excess > 0 {
                let id = ZoneId(u8::try_from(zone).expect("at most 32 zones"));
                drained += self.free_excess(index, id, excess, Order(0), MigrateType::Unmovable);
            }
        }
        Pages(drained)
    }

    /// Gives the pages of one zone on the lists of `cpu` back to it.
    pub(crate) fn drain_cpu_zone(&mut self, cpu: CpuId, id: ZoneId) -> u64 {
        let index = self.pcp_index(cpu, id);
        match self.pcps[index].count() {
            0 => 0,
            count => self.free_excess(index, id, count, Order(0), MigrateType::Unmovable),
        }
    }

    /// [`PageAllocator::drain_cpu`] for every CPU.
    pub fn drain_all(&mut self) -> Pages {
        (0..self.cpu_count()).map(|cpu| self.drain_cpu(CpuId(cpu))).sum()
    }

    /// Gives one pageblock of the reserves along `zones` to requests of type `want`, if it has a
    /// free page. Unless `force`, each zone keeps its last one. Returns whether one was given.
    pub fn unreserve_highatomic(&mut self, zones: &[ZoneId], want: MigrateType, force: bool) -> bool {
        zones.iter().any(|id| self.zones[id.index()].unreserve_highatomic(&mut self.frames, want, force))
    }

    /// Takes `pages` of the boost of `zone` back: kswapd has reclaimed them.
    pub fn reduce_boost(&mut self, zone: ZoneId, pages: Pages) {
        self.zones[zone.index()].watermarks.reduce_boost(pages);
    }

    /// Says which nodes hold their share of dirty pages, one bit for each: requests with
    /// [`AllocFlags::SPREAD_DIRTY`] skip them (MECHANISMS 1.9, 10.2).
    pub(crate) fn set_dirty_full_nodes(&mut self, nodes: u32) {
        self.dirty_full_nodes = nodes;
    }

    /// kswapd starts or ends work on `zone`: per-CPU lists keep less meanwhile (5.13).
    pub fn set_reclaim_active(&mut self, zone: ZoneId, active: bool) {
        self.zones[zone.index()].watermarks.reclaim_active = active;
    }
}

/// The event that counts allocations from a zone of `kind`.
#[inline]
const fn pgalloc(kind: ZoneKind) -> VmEvent {
    match kind {
        ZoneKind::Dma => VmEvent::PgAllocDma,
        ZoneKind::Dma32 => VmEvent::PgAllocDma32,
        ZoneKind::Normal => VmEvent::PgAllocNormal,
        ZoneKind::Movable => VmEvent::PgAllocMovable,
    }
}
