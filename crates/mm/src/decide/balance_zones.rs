//! A run of kswapd that ends when every zone is above its high mark (`balance_pgdat` up to 4.7, as of 2.6.32;
//! MECHANISMS 5.5).
//!
//! ```text
//!   priority 12 .. 0: the highest zone below its high mark is the last one; from the lowest one to it:
//!                       pass over the zone, unless it has eight times its high mark
//!                       nothing freed, and scanned six times what it has: it is exhausted, and left alone
//!                     all were above their marks: done
//!                     below priority 10: a pause
//!                     32 pages freed: from the start, at priority 12
//!   all priorities:   from the start; if not even 32 pages came of them, for single pages
//! ```
//! Which pause it is says [`super::backoff`]; since 2.6.33 there is none while some zone is below its min mark.
//! Left out: lists of each zone by itself (a pass over a zone looks at its pages and those of lower ones);
//! a zone with so many free pages has its slab shrunk all the same on Linux, and is exhausted only if no object
//! came free either, where here no page may. Neighbours: [`super::balance`] for the run since 4.8,
//! [`crate::reclaim::scans`].

use units::{NodeId, Order};

use crate::alloc::flags::AllocFlags;
use crate::alloc::watermark::Mark;
use crate::base::event::Trace;
use crate::base::layout::{ZoneId, ZoneKind};
use crate::base::vmstat::VmEvent;
use crate::decide::backoff::Site;
use crate::decide::balance::{Balance, BalanceNext, Span};
use crate::memory::Memory;
use crate::reclaim::run::{DEF_PRIORITY, SWAP_CLUSTER_MAX, ScanControl};
use crate::version::rules::{Backoff, KswapdDone};

/// A zone with so many times its high mark is not scanned for the sake of others.
const PLENTY: u64 = 8;

impl<T: Trace> Memory<T> {
    /// A pass over a node for pages of zones up to `highest` looked at so many pages: as many of each zone as
    /// its share of what can be reclaimed (up to 4.7).
    pub fn note_scanned(&mut self, node: NodeId, highest: ZoneKind, pages: u64) {
        if self.core.rules().kswapd_done == KswapdDone::SomeZone || pages == 0 {
            return;
        }
        let zones = self.zones_up_to(node, highest);
        let reclaimable =
            |mem: &Self, id: ZoneId| mem.zone_reclaimable_pages(node, mem.core.alloc.zone(id).kind);
        let all: u64 = zones.iter().map(|&id| reclaimable(self, id)).sum();
        for &id in &zones {
            let given_back = self.core.alloc.zone(id).free_area.given_back();
            // What was the last page is gone from the lists: it counts for the zone that was asked for.
            let share = match all {
                0 if Some(&id) == zones.last() => pages,
                0 => 0,
                all => (pages * reclaimable(self, id)).div_ceil(all),
            };
            self.reclaim.scans.note(id, given_back, share);
        }
    }

    fn note_fruitless(&mut self, node: NodeId, id: ZoneId) {
        let zone = self.core.alloc.zone(id);
        let (kind, given_back) = (zone.kind, zone.free_area.given_back());
        let reclaimable = self.zone_reclaimable_pages(node, kind);
        self.reclaim.scans.note_fruitless(id, given_back, reclaimable);
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    Priority,
    /// The zone with this place is next.
    Zone(usize),
    /// It was scanned.
    Scanned(usize),
    Rested,
    Paused,
    StartOver,
}

/// A run of kswapd over every zone of its node.
#[derive(Debug, Clone)]
pub struct ZoneBalance {
    node: NodeId,
    order: Order,
    span: Span,
    /// The run, for the passes.
    pub sc: ScanControl,
    /// The last zone of this priority.
    last: usize,
    /// Every zone was above its high mark, at this priority, and some was below its min mark.
    all_ok: bool,
    some_below_min: bool,
    /// Pages looked at since it last started over.
    scanned: u64,
    freed_before: u64,
    at: At,
}

impl ZoneBalance {
    /// Begins a run for a block of `order`.
    pub fn begin<T: Trace>(mem: &mut Memory<T>, node: NodeId, order: Order) -> Self {
        let span = Span::begin(mem, node, ZoneKind::Movable);
        let sc = ScanControl::kswapd(ZoneKind::Movable);
        Self {
            node,
            order,
            span,
            sc,
            last: 0,
            all_ok: true,
            some_below_min: false,
            scanned: 0,
            freed_before: 0,
            at: At::Priority,
        }
    }

    /// The order that it still reclaims for: 0 once a whole round freed next to nothing.
    pub const fn order(&self) -> Order {
        self.order
    }

    /// The next step; `waiters`: somebody waits for the reserve.
    pub fn step<T: Trace>(&mut self, mem: &mut Memory<T>, waiters: bool) -> BalanceNext {
        loop {
            match self.at {
                At::Priority => {
                    let Some(last) = self.last_zone(mem) else { return self.span.end(mem) };
                    (self.last, self.all_ok, self.some_below_min) = (last, true, false);
                    self.at = At::Zone(0);
                }
                At::Zone(place) if place > self.last => {
                    self.at = At::Rested;
                    return self.rest(mem, waiters);
                }
                At::Zone(place) => {
                    if let Some(next) = self.look(mem, place) {
                        return next;
                    }
                }
                At::Scanned(place) => {
                    let zone = self.span.zones[place];
                    self.scanned += self.sc.nr_scanned;
                    if self.sc.nr_reclaimed == self.freed_before {
                        mem.note_fruitless(self.node, zone);
                    }
                    self.at = At::Zone(place + 1);
                    return BalanceNext::Relieve(zone);
                }
                At::Rested if self.all_ok => return self.span.end(mem),
                At::Rested => {
                    self.at = At::Paused;
                    if self.scanned > 0 && self.sc.priority < DEF_PRIORITY - 2 && self.may_pause(mem) {
                        return BalanceNext::Pause(Site::Kswapd, self.span.zones[self.last]);
                    }
                }
                At::Paused if self.sc.nr_reclaimed >= SWAP_CLUSTER_MAX || self.sc.priority == 0 => {
                    self.at = At::StartOver;
                    return self.rest(mem, waiters);
                }
                At::Paused => {
                    self.sc.priority -= 1;
                    self.at = At::Priority;
                }
                At::StartOver => self.start_over(),
            }
        }
    }

    fn rest<T: Trace>(&self, mem: &Memory<T>, waiters: bool) -> BalanceNext {
        BalanceNext::Rest { wake: waiters && mem.allow_direct_reclaim(self.node) }
    }

    /// The place of the highest zone that is below its high mark.
    fn last_zone<T: Trace>(&self, mem: &Memory<T>) -> Option<usize> {
        self.span.zones.iter().rposition(|&id| {
            !self.is_left_alone(mem, id)
                && !mem.core.alloc.zone(id).above(Mark::High, self.order, ZoneKind::Dma)
        })
    }

    /// An exhausted zone is looked at no more than once in a round.
    fn is_left_alone<T: Trace>(&self, mem: &Memory<T>, zone: ZoneId) -> bool {
        self.sc.priority != DEF_PRIORITY && mem.is_unreclaimable(zone)
    }

    /// What a zone needs.
    fn look<T: Trace>(&mut self, mem: &Memory<T>, place: usize) -> Option<BalanceNext> {
        let id = self.span.zones[place];
        self.at = At::Zone(place + 1);
        if self.is_left_alone(mem, id) {
            return None;
        }
        let zone = mem.core.alloc.zone(id);
        let class = mem.core.alloc.zone(self.span.zones[self.last]).kind;
        if !zone.above(Mark::High, self.order, class) {
            self.all_ok = false;
            self.some_below_min |= !zone.above(Mark::Min, self.order, class);
        }
        let (plenty, free) = (PLENTY * zone.watermarks.mark(Mark::High), zone.free_pages().0);
        if zone.watermark_ok(self.order, plenty, class, AllocFlags::NO_WATERMARKS, free) {
            return Some(BalanceNext::Relieve(id));
        }
        self.sc.reclaim_idx = zone.kind;
        self.sc.order = self.order;
        self.sc.nr_to_reclaim = u64::MAX; // All that it looks at, as for any zone.
        self.sc.nr_scanned = 0;
        self.freed_before = self.sc.nr_reclaimed;
        self.at = At::Scanned(place);
        Some(BalanceNext::Shrink)
    }

    /// Since 2.6.33 kswapd goes on at once while requests may have nothing left.
    fn may_pause<T: Trace>(&self, mem: &mut Memory<T>) -> bool {
        let hurries = self.some_below_min && mem.core.rules().backoff != Backoff::CongestionWait;
        if hurries {
            mem.core.alloc.events.add(VmEvent::KswapdSkipCongestionWait, 1);
        }
        !hurries
    }

    fn start_over(&mut self) {
        if self.sc.nr_reclaimed < SWAP_CLUSTER_MAX {
            self.order = Order(0); // A block does not come about; single pages matter more.
        }
        (self.scanned, self.sc.nr_reclaimed, self.sc.priority) = (0, 0, DEF_PRIORITY);
        self.at = At::Priority;
    }
}

/// A run of kswapd by the rule of its kernel.
#[derive(Debug, Clone)]
pub enum Run {
    /// Until some zone is above its high mark.
    SomeZone(Balance),
    /// Until every zone is.
    EveryZone(ZoneBalance),
}

impl Run {
    /// Begins a run for a block of `order` in zones up to `highest_zoneidx`.
    pub fn begin<T: Trace>(
        mem: &mut Memory<T>,
        node: NodeId,
        order: Order,
        highest_zoneidx: ZoneKind,
    ) -> Self {
        match mem.core.rules().kswapd_done {
            KswapdDone::SomeZone => Self::SomeZone(Balance::begin(mem, node, order, highest_zoneidx)),
            KswapdDone::EveryZone => Self::EveryZone(ZoneBalance::begin(mem, node, order)),
        }
    }

    /// The next step; `waiters`: somebody waits for the reserve.
    pub fn step<T: Trace>(&mut self, mem: &mut Memory<T>, waiters: bool) -> BalanceNext {
        match self {
            Self::SomeZone(run) => run.step(mem, waiters),
            Self::EveryZone(run) => run.step(mem, waiters),
        }
    }

    /// The run, for the passes.
    pub const fn sc(&mut self) -> &mut ScanControl {
        match self {
            Self::SomeZone(run) => &mut run.sc,
            Self::EveryZone(run) => &mut run.sc,
        }
    }

    /// The order that it still reclaims for.
    pub const fn order(&self) -> Order {
        match self {
            Self::SomeZone(run) => run.order(),
            Self::EveryZone(run) => run.order(),
        }
    }
}
