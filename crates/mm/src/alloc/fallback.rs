//! Taking a block from the free lists, if need be from those of another mobility type
//! (MECHANISMS 2.4, 2.8; MECHANISMS-6X 9.3).
//!
//! Own type first, smallest block first. Then one of three fallbacks:
//!
//! * *largest first* ([`FallbackPolicy::LargestFirst`], 2.6.32): the largest block of another type. If it is
//!   large, or the request reclaimable, all free pages of its pageblock go along.
//! * *classic* (up to 6.11): from the largest block downwards, find a block of another type and
//!   move it, or all free pages of its pageblock, to the wanted lists; then try again. Movable
//!   requests that may not claim a pageblock take the smallest block instead.
//! * *claim, then steal* ([`FallbackPolicy::ClaimThenSteal`]): claim a pageblock whole if half of it is
//!   free or alike, else take one block and leave the rest of it to its owner.
//!
//! Mixing types within a pageblock raises the zone's watermarks ([`WatermarkBoost`]). With
//! [`AllocFlags::FRAGMENT_STALL`] a badly fragmenting fallback is refused, so that the caller waits
//! for kswapd first (MECHANISMS 2.9).
//!
//! Last, up to 4.3, come the pageblocks set aside at boot ([`HighatomicReserve::Blocks`]).
//!
//! Left out: CMA, isolation, the procedures between 2.6.32 and 4.19.

use units::{Order, Pfn};

use crate::alloc::buddy::LARGEST_ORDER;
use crate::alloc::flags::AllocFlags;
use crate::alloc::pageblock::{BlockSize, Census};
use crate::alloc::zone::Zone;
use crate::base::event::{Detail, Trace, TraceEvent};
use crate::base::frame::Frames;
use crate::base::gfp::MigrateType::{self, HighAtomic, Movable, Reclaimable, Unmovable};
use crate::base::vmstat::{VmEvent, VmEvents};
use crate::version::rules::{BoostedZones, FallbackPolicy, HighatomicReserve, Rules, WatermarkBoost};

/// Whose lists to look at next, for each type that requests ask for.
pub(super) const FALLBACKS: [[MigrateType; 2]; MigrateType::PCP_TYPES] =
    [[Reclaimable, Movable], [Reclaimable, Unmovable], [Unmovable, Movable]];

/// Since 5.7 zones with fewer pageblocks are never boosted: one boost would be a quarter of them.
const BOOST_MIN_BLOCKS: u64 = 4;

/// How far the last block taken under the same zone lock had to go (6.12). The pages that follow
/// start there instead of searching in vain again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Mode {
    /// Own type, then claim, then steal.
    #[default]
    Normal,
    /// Steal at once.
    Steal,
}

/// A zone with what code under the zone lock sees of the machine.
pub(super) struct LockedZone<'a, T> {
    pub zone: &'a mut Zone,
    pub frames: &'a mut Frames,
    pub events: &'a mut VmEvents,
    pub trace: &'a mut T,
    pub rules: &'a Rules,
    pub boost_factor: u64,
    /// `vm.fragment_stall_order`.
    pub stall_order: u64,
    /// Pageblocks whose pages were counted or moved one by one.
    pub blocks_walked: u32,
}

/// Why no pageblock is claimed at an order.
enum Fallback {
    Block(Pfn, MigrateType),
    /// No block of this order.
    Empty,
    /// Too small for this type to claim; smaller ones are so too.
    TooSmall,
}

/// Whether a request for `want` may claim the pageblock, of `size`, of a free block of `order`. Kernel types
/// always may: they cannot be moved out of the wrong block again.
const fn may_claim(size: BlockSize, order: Order, want: MigrateType) -> bool {
    order.0 >= size.order().0 / 2 || matches!(want, Unmovable | Reclaimable)
}

/// Whether a free block of `order` serves a request for `want` without mixing types for good: it is
/// of the wanted type, or its pageblock may be claimed. What compaction works for.
pub(crate) fn can_serve(area: &crate::alloc::buddy::FreeArea, order: Order, want: MigrateType) -> bool {
    let of_others = || FALLBACKS[want as usize].into_iter().any(|migrate_type| area.has(migrate_type, order));
    area.has(want, order) || (may_claim(area.blocks.size(), order, want) && of_others())
}

/// The orders from `from` down to `to`.
fn downwards(from: Order, to: Order) -> impl Iterator<Item = Order> {
    (to.0..=from.0).rev().map(Order)
}

/// The orders from `from` up to the largest.
fn upwards(from: Order) -> impl Iterator<Item = Order> {
    (from.0..=LARGEST_ORDER.0).map(Order)
}

impl<T: Trace> LockedZone<'_, T> {
    #[inline]
    const fn block(&self) -> BlockSize {
        self.zone.free_area.blocks.size()
    }

    /// Takes a block of `order` for a request of type `want`; on return it is in use.
    #[inline]
    pub fn take_block(
        &mut self,
        order: Order,
        want: MigrateType,
        flags: AllocFlags,
        mode: &mut Mode,
    ) -> Option<Pfn> {
        if *mode == Mode::Normal
            && let Some(pfn) = self.take_own(order, want)
        {
            return Some(pfn);
        }
        self.fall_back(order, want, flags, mode)
    }

    /// Takes a block when there is none of the own type, or after that was seen before.
    #[cold]
    fn fall_back(
        &mut self,
        order: Order,
        want: MigrateType,
        flags: AllocFlags,
        mode: &mut Mode,
    ) -> Option<Pfn> {
        let pfn = match self.rules.fallback {
            FallbackPolicy::LargestFirst => self.take_largest(order, want, flags),
            FallbackPolicy::StealAndClaim => self.steal_then_take(order, want, flags),
            FallbackPolicy::ClaimThenSteal => self.claim_or_steal(order, want, flags, mode),
        };
        pfn.or_else(|| self.take_set_aside(order, flags))
    }

    /// The last resort of all requests up to 4.3; a request that keeps types apart looks elsewhere first.
    fn take_set_aside(&mut self, order: Order, flags: AllocFlags) -> Option<Pfn> {
        let may =
            self.rules.highatomic == HighatomicReserve::Blocks && !flags.has_any(AllocFlags::KEEP_APART);
        if may { self.take_own(order, HighAtomic) } else { None }
    }

    /// Takes a block from the lists of `migrate_type` only.
    #[inline]
    pub fn take_own(&mut self, order: Order, migrate_type: MigrateType) -> Option<Pfn> {
        self.zone.free_area.take_smallest(self.frames, order, migrate_type)
    }

    /// The first block of `order` of the types that `want` falls back to.
    fn fallback_block(&self, order: Order, want: MigrateType) -> Option<(Pfn, MigrateType)> {
        let area = &self.zone.free_area;
        FALLBACKS[want as usize].into_iter().find(|&migrate_type| area.has(migrate_type, order)).map(
            |migrate_type| (area.list(migrate_type, order).first().expect("it is not empty"), migrate_type),
        )
    }

    /// With NOFRAGMENT only whole pageblocks change hands.
    fn smallest_fallback(&self, order: Order, flags: AllocFlags) -> Order {
        if flags.has_any(AllocFlags::NOFRAGMENT) { order.max(self.block().order()) } else { order }
    }

    // ---- largest first ----

    /// Takes from the largest block of another type. The free pages of its pageblock become those of `want` if
    /// the block is large or the request reclaimable, and the pageblock, too, if it is half free. The rest of
    /// a block that is taken alone stays what it was.
    fn take_largest(&mut self, order: Order, want: MigrateType, flags: AllocFlags) -> Option<Pfn> {
        let smallest = self.smallest_fallback(order, flags);
        let mut largest = downwards(LARGEST_ORDER, smallest);
        let (pfn, migrate_type) = largest.find_map(|at| self.fallback_block(at, want))?;
        let from = self.frames.order(pfn);
        let mut rest = migrate_type;
        if !self.is_atomic_reserve(pfn) {
            if from >= self.block().order() {
                self.zone.free_area.blocks.set_covered(pfn, from, want);
                rest = want;
            } else {
                self.boost(flags);
                if self.stalls(from, flags) {
                    return None;
                }
                if from.0 >= self.block().order().0 / 2 || want == Reclaimable {
                    self.take_free_pages_along(pfn, want);
                    rest = want;
                }
            }
        }
        self.zone.free_area.take_split(self.frames, pfn, order, rest);
        self.note_extfrag(pfn, order, from, want, migrate_type);
        Some(pfn)
    }

    fn take_free_pages_along(&mut self, pfn: Pfn, want: MigrateType) {
        self.blocks_walked += 1;
        let start = self.block().start(pfn);
        if self.zone.free_area.move_pageblock(self.frames, start, want) >= self.block().pages() / 2 {
            self.zone.free_area.blocks.set(start, want);
        }
    }

    /// Whether `pfn` lies in a pageblock that is kept for high-order atomic requests.
    fn is_atomic_reserve(&self, pfn: Pfn) -> bool {
        self.rules.highatomic != HighatomicReserve::Blocks
            && self.zone.free_area.blocks.migrate_type(pfn) == HighAtomic
    }

    // ---- classic ----

    /// Moves free pages of another type to the lists of `want` and takes from there.
    fn steal_then_take(&mut self, order: Order, want: MigrateType, flags: AllocFlags) -> Option<Pfn> {
        let (pfn, migrate_type) = self.classic_choice(order, want, flags)?;
        let from = self.frames.order(pfn);
        if !self.classic_steal(pfn, from, want, flags) {
            return None;
        }
        self.note_extfrag(pfn, order, from, want, migrate_type);
        self.take_own(order, want)
    }

    /// Whether the request is to wait before a fallback to a block of order `from`.
    fn stalls(&self, from: Order, flags: AllocFlags) -> bool {
        flags.has_any(AllocFlags::FRAGMENT_STALL) && u64::from(from.0) < self.stall_order
    }

    /// Which block the classic fallback takes: the largest, or for a movable request that would
    /// not get a pageblock of its own, the smallest.
    fn classic_choice(
        &self,
        order: Order,
        want: MigrateType,
        flags: AllocFlags,
    ) -> Option<(Pfn, MigrateType)> {
        let smallest = self.smallest_fallback(order, flags);
        let largest =
            downwards(LARGEST_ORDER, smallest).find_map(|at| Some((at, self.fallback_block(at, want)?)));
        let (at, block) = largest?;
        if !may_claim(self.block(), at, want) && want == Movable && at > order {
            return upwards(order).find_map(|at| self.fallback_block(at, want));
        }
        Some(block)
    }

    /// STEAL of MECHANISMS 2.4 for the free block of order `from` at `pfn`. False: nothing moved, the
    /// request is to stall first.
    fn classic_steal(&mut self, pfn: Pfn, from: Order, want: MigrateType, flags: AllocFlags) -> bool {
        let old = self.zone.free_area.blocks.migrate_type(pfn);
        if old != HighAtomic {
            if from >= self.block().order() {
                self.zone.free_area.blocks.set_covered(pfn, from, want);
            } else {
                self.boost(flags);
                if self.stalls(from, flags) {
                    return false;
                }
                if may_claim(self.block(), from, want) {
                    self.classic_take_pageblock(pfn, old, want);
                    return true;
                }
            }
        }
        self.zone.free_area.move_block(self.frames, pfn, want);
        true
    }

    /// Moves all free pages of a pageblock to the lists of `want`; the block changes its type too
    /// if half of it is then free or alike.
    fn classic_take_pageblock(&mut self, pfn: Pfn, old: MigrateType, want: MigrateType) {
        let start = self.block().start(pfn);
        let census = self.census(start);
        let _ = self.zone.free_area.move_pageblock(self.frames, start, want);
        if census.is_half(self.block(), old, want) {
            self.zone.free_area.blocks.set(start, want);
        }
    }

    // ---- claim, then steal ----

    /// Claims a pageblock or else steals a block. Once it has stolen it goes on so.
    fn claim_or_steal(
        &mut self,
        order: Order,
        want: MigrateType,
        flags: AllocFlags,
        mode: &mut Mode,
    ) -> Option<Pfn> {
        if *mode == Mode::Normal
            && let Some(pfn) = self.claim(order, want, flags)
        {
            return Some(pfn);
        }
        if flags.has_any(AllocFlags::NOFRAGMENT) {
            return None;
        }
        let pfn = self.steal_single(order, want, flags)?;
        *mode = Mode::Steal;
        Some(pfn)
    }

    /// Claims a pageblock for `want`, largest free block first, and takes from it.
    fn claim(&mut self, order: Order, want: MigrateType, flags: AllocFlags) -> Option<Pfn> {
        for at in downwards(LARGEST_ORDER, self.smallest_fallback(order, flags)) {
            match self.claimable(at, want) {
                Fallback::TooSmall => return None,
                Fallback::Empty => {}
                Fallback::Block(pfn, migrate_type) => {
                    if self.claim_block(pfn, at, migrate_type, want, flags) {
                        let taken = self.take_own(order, want).expect("the claimed block is large enough");
                        self.note_extfrag(taken, order, at, want, migrate_type);
                        return Some(taken);
                    }
                }
            }
        }
        None
    }

    fn claimable(&self, order: Order, want: MigrateType) -> Fallback {
        if !may_claim(self.block(), order, want) {
            return Fallback::TooSmall;
        }
        match self.fallback_block(order, want) {
            Some((pfn, migrate_type)) => Fallback::Block(pfn, migrate_type),
            None => Fallback::Empty,
        }
    }

    /// Claims the pageblock of the free block at `pfn`, whole or not at all. An attempt on a block
    /// in use boosts the watermarks even if it fails.
    fn claim_block(
        &mut self,
        pfn: Pfn,
        from: Order,
        migrate_type: MigrateType,
        want: MigrateType,
        flags: AllocFlags,
    ) -> bool {
        if from >= self.block().order() {
            self.zone.free_area.blocks.set_covered(pfn, from, want);
            self.zone.free_area.move_block(self.frames, pfn, want);
            return true;
        }
        self.boost(flags);
        let census = self.census(self.block().start(pfn));
        let claimed = census.is_half(self.block(), migrate_type, want);
        if claimed {
            self.zone.free_area.retype_pageblock(self.frames, pfn, want);
        }
        claimed
    }

    /// Takes the smallest block of another type; what is left of it stays on its own lists.
    fn steal_single(&mut self, order: Order, want: MigrateType, flags: AllocFlags) -> Option<Pfn> {
        let (at, (pfn, migrate_type)) =
            upwards(order).find_map(|at| Some((at, self.fallback_block(at, want)?)))?;
        if self.stalls(at, flags) {
            return None;
        }
        self.zone.free_area.take_split(self.frames, pfn, order, migrate_type);
        self.note_extfrag(pfn, order, at, want, migrate_type);
        Some(pfn)
    }

    // ---- both ----

    fn census(&mut self, start: Pfn) -> Census {
        self.blocks_walked += 1;
        Census::take(self.frames, start, self.block())
    }

    /// Raises the zone's watermarks because types are about to mix (MECHANISMS 2.8).
    fn boost(&mut self, flags: AllocFlags) {
        let on = self.raise_boost(1);
        let wakes = match self.rules.watermark_boost {
            WatermarkBoost::Off => false,
            WatermarkBoost::V2 => true,
            WatermarkBoost::Merged => on && flags.has_any(AllocFlags::KSWAPD),
        };
        if wakes {
            self.zone.watermarks.boosted = true;
        }
    }

    /// Raises the zone's boost by `blocks`; whether it has one to raise.
    fn raise_boost(&mut self, blocks: u64) -> bool {
        let block = u64::from(self.block().pages());
        let spared = self.rules.boosted_zones == BoostedZones::FourPageblocks
            && self.zone.managed.0 < BOOST_MIN_BLOCKS * block;
        let is_raised = !spared
            && self.zone.watermarks.raise_boost(self.rules.watermark_boost, self.boost_factor, block, blocks);
        if is_raised && self.trace.listens(Detail::Reclaim) {
            let (nid, zone) = (self.zone.node, self.zone.kind);
            let boost = self.zone.watermarks.boost().0;
            self.trace.event(TraceEvent::WatermarkBoost { nid, zone, boost });
        }
        is_raised
    }

    /// A task stalls on this zone: raises the boost seven times as fast (MECHANISMS 2.9 d).
    pub fn boost_for_stall(&mut self) {
        /// One pageblock, and one for each pair of types, as for `min_free_kbytes` of huge pages.
        const FAST: u64 = 1 + (2 * MigrateType::PCP_TYPES as u64);
        let _ = self.raise_boost(FAST);
    }

    fn note_extfrag(
        &mut self,
        pfn: Pfn,
        order: Order,
        from: Order,
        want: MigrateType,
        migrate_type: MigrateType,
    ) {
        self.events.add(VmEvent::ExtfragEvents, 1);
        if from < self.block().order() {
            self.events.add(VmEvent::ExtfragFragmenting, 1);
        }
        if self.trace.listens(Detail::Reclaim) {
            self.trace.event(TraceEvent::PageAllocExtfrag {
                pfn,
                alloc_order: order,
                fallback_order: from,
                alloc_migratetype: want,
                fallback_migratetype: migrate_type,
                change_ownership: self.zone.free_area.blocks.migrate_type(pfn) == want,
            });
        }
    }
}
