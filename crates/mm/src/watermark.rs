//! Watermarks: how much free memory a zone keeps, and for whom (MECHANISMS 1.3-1.7, 2.8;
//! MECHANISMS-6X 1.2).
//!
//! Three marks per zone (min, low, high), raised together by a boost after fragmenting fallbacks,
//! and a reserve against requests that could also use a higher zone. The free counter is exact:
//! the kernel's per-CPU drift is left out. All figures are pages.
//! Neighbours: [`crate::page_alloc`] tests marks, [`crate::fallback`] boosts them,
//! [`crate::boot`] computes them first.

use units::{Order, Pages};

use crate::alloc_flags::AllocFlags;
use crate::buddy::PAGEBLOCK_PAGES;
use crate::gfp::MigrateType;
use crate::zone::{Zone, ZoneKind};

/// One of a zone's three marks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Mark {
    /// Below it only reserves are left.
    Min,
    /// Below it kswapd is woken.
    Low,
    /// Above it kswapd is done.
    High,
}

impl Mark {
    /// Every mark, lowest first.
    pub const ALL: [Self; 3] = [Self::Min, Self::Low, Self::High];
}

/// A zone's marks, boost, reserve and the flags that go with them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Watermarks {
    base: [u64; 3],
    boost: u64,
    /// Pages kept from requests of each class (index [`ZoneKind`]).
    reserve: [u64; ZoneKind::COUNT],
    /// `ZONE_BOOSTED_WATERMARK`: boosted by a request that may wake kswapd, which nobody did yet.
    pub boosted: bool,
    /// `ZONE_BELOW_HIGH`: an allocation found the zone below its high mark (6.7).
    pub below_high: bool,
    /// `ZONE_RECLAIM_ACTIVE`: kswapd works on this zone, per-CPU lists keep less (5.13).
    pub reclaim_active: bool,
}

impl Watermarks {
    /// The mark without boost.
    #[inline]
    pub const fn base(&self, mark: Mark) -> u64 {
        self.base[mark as usize]
    }

    /// The mark that is in force: base and boost (MECHANISMS 1.5).
    #[inline]
    pub const fn mark(&self, mark: Mark) -> u64 {
        self.base[mark as usize] + self.boost
    }

    /// The present boost.
    #[inline]
    pub const fn boost(&self) -> Pages {
        Pages(self.boost)
    }

    /// Takes `pages` of the boost back: kswapd has reclaimed them.
    pub fn reduce_boost(&mut self, pages: Pages) {
        self.boost = self.boost.saturating_sub(pages.0);
    }

    /// Pages kept from requests of `class`.
    #[inline]
    pub const fn reserve(&self, class: ZoneKind) -> u64 {
        self.reserve[class as usize]
    }

    /// Raises the boost by one pageblock, up to `factor` / 10000 of the high mark but at least one
    /// pageblock. Returns whether boosting is on at all.
    pub(crate) fn raise_boost(&mut self, factor: u64) -> bool {
        let cap = self.base(Mark::High) * factor / 10_000;
        if cap == 0 {
            return false;
        }
        let block = u64::from(PAGEBLOCK_PAGES);
        self.boost = (self.boost + block).min(cap.max(block));
        true
    }

    /// Sets the marks of a zone of `kind` with `managed` pages out of `lowmem`; drops the boost
    /// (MECHANISMS 1.4, 1.5).
    pub(crate) fn set_base(&mut self, shares: MarkShares, kind: ZoneKind, managed: u64) {
        let min = if kind == ZoneKind::Movable {
            (managed / 1024).clamp(32, 128)
        } else {
            (shares.min_free_kbytes / 4) * managed / shares.lowmem.max(1)
        };
        let share = (shares.min_free_kbytes / 4) * managed / shares.lowmem.max(1);
        let gap = (share / 4).max(managed * shares.scale_factor / 10_000);
        self.base = [min, min + gap, min + (2 * gap)];
        self.boost = 0;
    }

    pub(crate) fn set_reserve(&mut self, reserve: [u64; ZoneKind::COUNT]) {
        self.reserve = reserve;
    }
}

/// What the marks of all zones are made from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MarkShares {
    /// kB that the min marks add up to.
    pub min_free_kbytes: u64,
    /// `vm.watermark_scale_factor`.
    pub scale_factor: u64,
    /// Managed pages of all zones up to Normal.
    pub lowmem: u64,
}

/// `min_free_kbytes` as computed at boot for `lowmem` pages: 4 * sqrt(kB), in 128..=`max`
/// (MECHANISMS 1.3).
pub fn min_free_kbytes(lowmem: Pages, max: u64) -> u64 {
    (16 * lowmem.to_kib()).isqrt().clamp(128, max)
}

/// What huge pages ask for in `min_free_kbytes`: room for two pageblocks and for each pair of
/// types one more per zone, but at most 5 % of `lowmem` pages (MECHANISMS 1.3).
pub fn huge_page_min_free_kbytes(populated_zones: u64, lowmem: Pages) -> u64 {
    const PCP_TYPES: u64 = MigrateType::PCP_TYPES as u64;
    let block = u64::from(PAGEBLOCK_PAGES);
    let wanted = block * populated_zones * (2 + (PCP_TYPES * PCP_TYPES));
    Pages(wanted.min(lowmem.0 / 20)).to_kib()
}

/// Divisors of `vm.lowmem_reserve_ratio`, by kind of the zone that is protected; 0 = off.
const LOWMEM_RESERVE_RATIO: [u64; ZoneKind::COUNT] = [256, 256, 32, 0];

/// Pages that a zone of `kind` keeps from each class; `managed` holds the pages of its node's
/// zones by kind (MECHANISMS 1.6).
pub(crate) fn lowmem_reserve(kind: ZoneKind, managed: &[u64; ZoneKind::COUNT]) -> [u64; ZoneKind::COUNT] {
    let ratio = LOWMEM_RESERVE_RATIO[kind as usize];
    let mut reserve = [0; ZoneKind::COUNT];
    let mut above = 0;
    for class in (kind as usize + 1)..ZoneKind::COUNT {
        above += managed[class];
        reserve[class] = u64::checked_div(above, ratio).unwrap_or(0);
    }
    reserve
}

impl Zone {
    /// Free pages on the buddy lists; pages on per-CPU lists are not among them.
    #[inline]
    pub fn free_pages(&self) -> Pages {
        Pages(self.free_area.free_pages())
    }

    /// Whether `free` pages are enough to hand out one block of `order` and still leave `mark`
    /// pages and the reserve against `class` (MECHANISMS 1.7, the rule since 4.4).
    ///
    /// `mark` is a number of pages, usually [`Watermarks::mark`]; `free` is usually
    /// [`Zone::free_pages`], or what could become free when deciding whether to go on reclaiming.
    #[inline]
    pub fn watermark_ok(
        &self,
        order: Order,
        mark: u64,
        class: ZoneKind,
        flags: AllocFlags,
        free: u64,
    ) -> bool {
        const RESERVE_USERS: AllocFlags = AllocFlags(AllocFlags::HARDER.0 | AllocFlags::OOM.0);
        let uses_reserve = flags.has_any(RESERVE_USERS);
        let mut unusable = u64::from(order.pages()) - 1;
        let mut needed = mark;
        if flags.has_any(AllocFlags::HIGH) {
            needed -= needed / 2;
        }
        if !uses_reserve {
            unusable += self.free_area.reserved_highatomic();
        } else if flags.has_any(AllocFlags::OOM) {
            needed -= needed / 2;
        } else {
            needed -= needed / 4;
        }
        if free.saturating_sub(unusable) <= needed + self.watermarks.reserve(class) {
            return false;
        }
        order == Order(0) || self.free_area.has_block(order, uses_reserve)
    }

    /// [`Zone::watermark_ok`] for one of the zone's own marks and its present free pages: the test
    /// of kswapd and of the slow path.
    #[inline]
    pub fn above(&self, mark: Mark, order: Order, class: ZoneKind) -> bool {
        self.watermark_ok(
            order,
            self.watermarks.mark(mark),
            class,
            AllocFlags::NO_WATERMARKS,
            self.free_pages().0,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buddy::{End, FreeArea};
    use crate::frame::Frames;
    use units::{NodeId, Pfn};

    /// A DMA zone with marks 100, 125, 150, a reserve of 40 against users, one free block of order
    /// 3 of each of `kinds`.
    fn zone(kinds: &[MigrateType]) -> Zone {
        let mut frames = Frames::new(1024);
        let mut free_area = FreeArea::new(Pfn(0), 1024);
        for (block, &kind) in (0..).zip(kinds) {
            free_area.push(&mut frames, Pfn(16 * block), Order(3), kind, End::Head);
        }
        let mut watermarks = Watermarks { base: [100, 125, 150], ..Watermarks::default() };
        watermarks.set_reserve([0, 40, 40, 40]);
        Zone {
            kind: ZoneKind::Dma,
            node: NodeId(0),
            start: Pfn(0),
            spanned: 1024,
            managed: Pages(1024),
            managed_at_boot: Pages(1024),
            watermarks,
            free_area,
        }
    }

    /// The fewest free pages that pass the min mark.
    fn least(zone: &Zone, order: u8, class: ZoneKind, flags: AllocFlags) -> Option<u64> {
        (0..2000).find(|&free| zone.watermark_ok(Order(order), 100, class, flags, free))
    }

    #[test]
    fn each_reserve_lets_a_request_go_deeper() {
        let zone = zone(&[]);
        let flags = |more: &[AllocFlags]| more.iter().fold(AllocFlags::WMARK_MIN, |all, &flag| all | flag);
        let (high, harder, oom) = (AllocFlags::HIGH, AllocFlags::HARDER, AllocFlags::OOM);
        for (flags, needed) in [
            (flags(&[]), 101),
            (flags(&[high]), 51),
            (flags(&[harder]), 76),
            (flags(&[high, harder]), 50 - 12 + 1),
            (flags(&[oom]), 51),
            (flags(&[high, oom, harder]), 26),
        ] {
            assert_eq!(least(&zone, 0, ZoneKind::Dma, flags), Some(needed), "{flags:?}");
            assert_eq!(least(&zone, 0, ZoneKind::Movable, flags), Some(needed + 40), "{flags:?}");
        }
    }

    #[test]
    fn a_larger_block_must_leave_the_mark_and_exist() {
        let zone = zone(&[MigrateType::Reclaimable]);
        assert_eq!(least(&zone, 3, ZoneKind::Dma, AllocFlags::WMARK_MIN), Some(108));
        assert_eq!(least(&zone, 4, ZoneKind::Dma, AllocFlags::WMARK_MIN), None);
    }

    #[test]
    fn the_highatomic_reserve_counts_for_atomic_requests_only() {
        let mut zone = zone(&[MigrateType::HighAtomic]);
        zone.free_area.reserved_highatomic = 512;
        assert_eq!(least(&zone, 0, ZoneKind::Dma, AllocFlags::WMARK_MIN), Some(613));
        assert_eq!(least(&zone, 3, ZoneKind::Dma, AllocFlags::WMARK_MIN), None);
        let harder = AllocFlags::WMARK_MIN | AllocFlags::HARDER;
        assert_eq!(least(&zone, 3, ZoneKind::Dma, harder), Some(83));
    }

    #[test]
    fn a_boost_raises_all_three_marks_until_it_is_taken_back() {
        let mut marks = Watermarks { base: [1000, 1250, 1500], ..Watermarks::default() };
        assert!(marks.raise_boost(15_000));
        assert_eq!(Mark::ALL.map(|mark| marks.mark(mark)), [1512, 1762, 2012]);
        for _ in 0..9 {
            marks.raise_boost(15_000);
        }
        assert_eq!(marks.boost(), Pages(2250), "one and a half times the base high mark");
        marks.reduce_boost(Pages(250));
        assert_eq!(marks.boost(), Pages(2000));
        assert!(!marks.raise_boost(0), "switched off");
    }
}
