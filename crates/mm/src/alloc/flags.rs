//! What one pass over the zones may do: which watermark it must leave, which reserves it may
//! touch, whether it may mix mobility types (MECHANISMS 1.8, 2.6).
//!
//! A [`Gfp`] is what the caller allows; [`AllocFlags`] is what the allocator makes of it for one
//! attempt. The fast path and each round of the slow path make their own.
//! Left out: CPU sets, CMA. Neighbours: [`crate::alloc::page_alloc`] walks with them,
//! [`crate::alloc::watermark`] reads them.

use core::ops::BitOr;

use units::Order;

use crate::alloc::watermark::Mark;
use crate::base::gfp::Gfp;
use crate::base::layout::{ZoneId, ZoneKind};
use crate::version::rules::ReserveUsers;

/// Flags of one pass over the zones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct AllocFlags(pub(super) u16);

const MARK_MASK: u16 = 3;

impl AllocFlags {
    /// `ALLOC_NO_WATERMARKS`: the last page may be taken.
    pub const NO_WATERMARKS: Self = Self(0);
    /// `ALLOC_WMARK_MIN`.
    pub const WMARK_MIN: Self = Self(1);
    /// `ALLOC_WMARK_LOW`.
    pub const WMARK_LOW: Self = Self(2);
    /// `ALLOC_WMARK_HIGH`: the last try before an OOM kill.
    pub const WMARK_HIGH: Self = Self(3);
    /// `ALLOC_HIGH`: half of the mark is enough.
    pub const HIGH: Self = Self(1 << 2);
    /// `ALLOC_HARDER`: three quarters of what is left are enough.
    pub const HARDER: Self = Self(1 << 3);
    /// `ALLOC_OOM`: a victim of the OOM killer; half of what is left is enough.
    pub const OOM: Self = Self(1 << 4);
    /// `ALLOC_NOFRAGMENT`: do not mix mobility types within a pageblock.
    pub const NOFRAGMENT: Self = Self(1 << 5);
    /// `ALLOC_KSWAPD`: a boost may wake kswapd.
    pub const KSWAPD: Self = Self(1 << 6);
    /// Skip nodes that hold their share of dirty pages (fast path, `__GFP_WRITE`).
    pub const SPREAD_DIRTY: Self = Self(1 << 7);

    /// `ALLOC_HIGHATOMIC`: may use the highatomic reserve, and adds to it.
    pub const HIGHATOMIC: Self = Self(1 << 9);

    /// `ALLOC_FRAGMENT_STALL`: wait for kswapd before a badly fragmenting fallback.
    pub const FRAGMENT_STALL: Self = Self(1 << 8);

    /// Wishes that a walk has at first and drops rather than fail.
    pub(super) const KEEP_APART: Self = Self(Self::NOFRAGMENT.0 | Self::FRAGMENT_STALL.0);

    /// Flags of the fast path. `nofragment`: see [`crate::alloc::page_alloc::PageAllocator::fast_flags`].
    pub const fn fast(gfp: Gfp, nofragment: bool) -> Self {
        let mut flags = Self::WMARK_LOW.0;
        if gfp.has(Gfp::KSWAPD_RECLAIM) {
            flags |= Self::KSWAPD.0;
        }
        if gfp.has(Gfp::WRITE) {
            flags |= Self::SPREAD_DIRTY.0;
        }
        if nofragment {
            flags |= Self::NOFRAGMENT.0;
        }
        Self(flags)
    }

    /// Flags of the slow path for a request of `order` (MECHANISMS 1.8). `oom_victim`: is being killed to free memory.
    /// Left out: that a single page for which nobody may wait can come from the highatomic reserve when no other is
    /// left (6.3).
    pub fn slow(users: ReserveUsers, gfp: Gfp, order: Order, oom_victim: bool) -> Self {
        let reserves = !gfp.has(Gfp::NOMEMALLOC);
        let mut flags = Self::WMARK_MIN.0;
        if gfp.has(Gfp::HIGH) {
            flags |= Self::HIGH.0;
        }
        match users {
            ReserveUsers::Atomic if gfp.has(Gfp::ATOMIC_BIT) && reserves => {
                flags |= Self::HARDER.0 | Self::HIGHATOMIC.0;
            }
            ReserveUsers::NonBlocking if !gfp.has(Gfp::DIRECT_RECLAIM) && reserves => {
                flags |= if gfp.has(Gfp::HIGH) { Self::HARDER.0 } else { 0 };
                flags |= if order > Order(0) { Self::HIGHATOMIC.0 } else { 0 };
            }
            _ => {}
        }
        if oom_victim && reserves {
            flags |= Self::OOM.0;
        }
        if gfp.has(Gfp::KSWAPD_RECLAIM) {
            flags |= Self::KSWAPD.0;
        }
        Self(flags)
    }

    /// The mark that must be left, if any.
    #[inline]
    pub const fn mark(self) -> Option<Mark> {
        match self.0 & MARK_MASK {
            1 => Some(Mark::Min),
            2 => Some(Mark::Low),
            3 => Some(Mark::High),
            _ => None,
        }
    }

    /// Whether any of `flags` is set; marks do not count.
    #[inline]
    pub const fn has_any(self, flags: Self) -> bool {
        (self.0 & flags.0 & !MARK_MASK) != 0
    }

    /// Without `flags`; the mark stays.
    #[inline]
    #[must_use]
    pub const fn without(self, flags: Self) -> Self {
        Self(self.0 & (!flags.0 | MARK_MASK))
    }
}

impl BitOr for AllocFlags {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// The highest kind of zone that a request may use: Movable for page cache and anonymous memory,
/// DMA for `__GFP_DMA`, Normal for the rest.
#[inline]
pub const fn gfp_zone(gfp: Gfp) -> ZoneKind {
    if gfp.has(Gfp::DMA) {
        ZoneKind::Dma
    } else if gfp.has(Gfp::MOVABLE_BIT) {
        ZoneKind::Movable
    } else {
        ZoneKind::Normal
    }
}

/// A set of zones.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ZoneSet(u32);

impl ZoneSet {
    /// No zone.
    pub const EMPTY: Self = Self(0);
    /// Zones that a machine can have at most.
    pub const MAX_ZONES: usize = 32;

    /// Adds a zone.
    #[inline]
    pub fn insert(&mut self, zone: ZoneId) {
        self.0 |= 1 << zone.0;
    }

    /// Whether there is none.
    #[inline]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The zones, lowest number first.
    pub fn iter(self) -> impl Iterator<Item = ZoneId> {
        // Every allocation asks, and the answer is nearly always none.
        let mut left = self.0;
        core::iter::from_fn(move || {
            let zone = (left != 0).then(|| left.trailing_zeros())?;
            left &= left - 1;
            Some(ZoneId(u8::try_from(zone).expect("32 bits")))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_atomic_request_goes_below_the_min_mark_unless_it_forbids_reserves() {
        let high = AllocFlags::WMARK_MIN | AllocFlags::HIGH | AllocFlags::KSWAPD;
        let (harder, reserve) = (AllocFlags::HARDER, AllocFlags::HIGHATOMIC);
        for (users, order, expected) in [
            (ReserveUsers::Atomic, 0, high | harder | reserve),
            (ReserveUsers::Atomic, 1, high | harder | reserve),
            (ReserveUsers::NonBlocking, 0, high | harder),
            (ReserveUsers::NonBlocking, 1, high | harder | reserve),
        ] {
            let slow = |gfp, victim| AllocFlags::slow(users, gfp, Order(order), victim);
            assert_eq!(slow(Gfp::ATOMIC, false), expected, "{users:?} {order}");
            assert_eq!(slow(Gfp::ATOMIC | Gfp::NOMEMALLOC, true), high, "{users:?} {order}");
        }
    }

    #[test]
    fn since_6_3_whoever_may_not_wait_for_a_block_uses_the_highatomic_reserve() {
        let min = AllocFlags::WMARK_MIN | AllocFlags::KSWAPD;
        let slow = |users, gfp, order| AllocFlags::slow(users, gfp, Order(order), false);
        let (old, new) = (ReserveUsers::Atomic, ReserveUsers::NonBlocking);
        assert_eq!(slow(old, Gfp::KSWAPD_RECLAIM, 1), min);
        assert_eq!(slow(new, Gfp::KSWAPD_RECLAIM, 1), min | AllocFlags::HIGHATOMIC);
        assert_eq!(slow(new, Gfp::KSWAPD_RECLAIM, 0), min, "a page is no block");
        assert_eq!(slow(new, Gfp::KSWAPD_RECLAIM | Gfp::NOMEMALLOC, 3), min, "as pools ask");
        assert_eq!(slow(new, Gfp::NOFS, 1), min, "it may wait");
    }

    #[test]
    fn a_set_of_zones_lists_them_in_ascending_order() {
        let mut set = ZoneSet::EMPTY;
        assert_eq!(set.iter().next(), None);
        for zone in [31, 0, 7] {
            set.insert(ZoneId(zone));
        }
        assert!(set.iter().eq([0, 7, 31].map(ZoneId)));
    }

    #[test]
    fn the_slow_path_keeps_the_min_mark_and_the_fast_path_the_low_one() {
        let slow = |victim| AllocFlags::slow(ReserveUsers::Atomic, Gfp::NOFS, Order(0), victim);
        assert_eq!([false, true].map(|victim| slow(victim).mark()), [Some(Mark::Min); 2]);
        assert_eq!(AllocFlags::fast(Gfp::NOFS, true).mark(), Some(Mark::Low));
    }
}
