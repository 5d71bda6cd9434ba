//! Zones and nodes of a booted machine, and the watermark test (MECHANISMS 1.1, 1.2, 1.7).
//!
//! Left out: what [`crate::base::layout`] leaves out. Neighbours: [`crate::alloc::watermark`] for
//! the marks, [`crate::alloc::buddy`] for free blocks, [`crate::alloc::page_alloc`] walks along zones.

use std_alloc::vec::Vec;

use units::{NodeId, Order, Pages, Pfn};

use crate::alloc::buddy::FreeArea;
use crate::alloc::flags::AllocFlags;
use crate::alloc::watermark::{Mark, Watermarks};
use crate::base::layout::{ZoneId, ZoneKind};
use crate::version::rules::WatermarkTest;

/// One zone.
#[derive(Debug, Clone)]
pub struct Zone {
    /// Its kind.
    pub kind: ZoneKind,
    /// The node that it belongs to.
    pub node: NodeId,
    /// First frame; a multiple of the largest block.
    pub start: Pfn,
    /// Frames from the first to behind the last one, holes included.
    pub spanned: u32,
    /// Pages that the allocator manages.
    pub managed: Pages,
    /// Of those, pages beside the memory that was asked for, see [`crate::base::layout::ZoneLayout::beside`].
    pub beside: Pages,
    /// What it managed when watermarks were computed at boot.
    pub managed_at_boot: Pages,
    /// Marks, boost and reserve.
    pub watermarks: Watermarks,
    /// Free blocks and pageblock types.
    pub free_area: FreeArea,
    /// How a mark is tested for a block of several pages.
    pub watermark_test: WatermarkTest,
}

/// One NUMA node.
#[derive(Debug, Clone)]
pub struct Node {
    /// Its zones, lowest first.
    pub zones: Vec<ZoneId>,
    /// For each highest_zoneidx (index [`ZoneKind`]), the zones to try, nearest and highest first
    /// (MECHANISMS 1.2).
    pub zonelists: [Vec<ZoneId>; ZoneKind::COUNT],
}

impl Zone {
    /// Free pages on the buddy lists; pages on per-CPU lists are not among them.
    #[inline]
    pub fn free_pages(&self) -> Pages {
        Pages(self.free_area.free_pages())
    }

    /// Whether `free` pages are enough to hand out one block of `order` and still leave `mark`
    /// pages and the reserve against `highest_zoneidx` (MECHANISMS 1.7).
    ///
    /// `mark` is a number of pages, usually [`Watermarks::mark`]; `free` is usually
    /// [`Zone::free_pages`], or what could become free when deciding whether to go on reclaiming.
    #[inline]
    pub fn watermark_ok(
        &self,
        order: Order,
        mark: u64,
        highest_zoneidx: ZoneKind,
        flags: AllocFlags,
        free: u64,
    ) -> bool {
        const RESERVE_USERS: AllocFlags = AllocFlags(AllocFlags::HIGHATOMIC.0 | AllocFlags::OOM.0);
        let uses_reserve = flags.has_any(RESERVE_USERS);
        let mut unusable = u64::from(order.pages()) - 1;
        let mut needed = mark;
        if flags.has_any(AllocFlags::HIGH) {
            needed -= needed / 2;
        }
        if !uses_reserve {
            unusable += self.free_area.kept_from_others();
        }
        if flags.has_any(AllocFlags::OOM) {
            needed -= needed / 2;
        } else if flags.has_any(AllocFlags::HARDER) {
            needed -= needed / 4;
        }
        if free.saturating_sub(unusable) <= needed + self.watermarks.reserve(highest_zoneidx) {
            return false;
        }
        order == Order(0)
            || match self.watermark_test {
                WatermarkTest::AnyBlock => self.free_area.has_block(order, uses_reserve),
                WatermarkTest::HalvedByOrder => self.enough_at_each_order(order, needed, free - unusable),
            }
    }

    /// Whether the free blocks of each order up to `order`, and all larger ones, leave their part of
    /// `mark` pages: half as many from one order to the next (`zone_watermark_ok` up to 4.3).
    fn enough_at_each_order(&self, order: Order, mark: u64, free: u64) -> bool {
        let (mut free, mut needed) = (free, mark);
        (0..order.0).map(Order).all(|smaller| {
            free = free.saturating_sub(self.free_area.blocks_free(smaller) << smaller.0);
            needed /= 2;
            free > needed
        })
    }

    /// [`Zone::watermark_ok`] for one of the zone's own marks and its present free pages: the test
    /// of kswapd and of the slow path.
    #[inline]
    pub fn above(&self, mark: Mark, order: Order, highest_zoneidx: ZoneKind) -> bool {
        self.watermark_ok(
            order,
            self.watermarks.mark(mark),
            highest_zoneidx,
            AllocFlags::NO_WATERMARKS,
            self.free_pages().0,
        )
    }

    /// The same for the high mark, of free pages in whole pageblocks alone.
    pub fn above_in_whole_blocks(&self, order: Order, highest_zoneidx: ZoneKind) -> bool {
        let (mark, free) = (self.watermarks.mark(Mark::High), self.free_area.pages_in_whole_blocks());
        self.watermark_ok(order, mark, highest_zoneidx, AllocFlags::NO_WATERMARKS, free)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alloc::buddy::End;
    use crate::alloc::pageblock::BlockSize;
    use crate::base::frame::Frames;
    use crate::base::gfp::MigrateType;
    use crate::version::presets::Version;

    /// A DMA zone with marks 100, 125, 150, a reserve of 40 against users, one free block of order
    /// 3 of each of `types`.
    fn zone(types: &[MigrateType]) -> Zone {
        zone_of("linux-4.19", types)
    }

    fn zone_of(kernel: &str, types: &[MigrateType]) -> Zone {
        let mut frames = Frames::new(1024);
        let rules = Version::parse(kernel).unwrap().rules;
        let mut free_area = FreeArea::new(Pfn(0), 1024, BlockSize::HUGE, &rules);
        for (block, &migrate_type) in (0..).zip(types) {
            free_area.push(&mut frames, Pfn(16 * block), Order(3), migrate_type, End::Head);
        }
        let mut watermarks = Watermarks { base: [100, 125, 150], ..Watermarks::default() };
        watermarks.set_reserve([0, 40, 40, 40]);
        Zone {
            kind: ZoneKind::Dma,
            node: NodeId(0),
            start: Pfn(0),
            spanned: 1024,
            managed: Pages(1024),
            beside: Pages::ZERO,
            managed_at_boot: Pages(1024),
            watermarks,
            free_area,
            watermark_test: rules.watermark_test,
        }
    }

    /// The fewest free pages that pass the min mark.
    fn least(zone: &Zone, order: u8, highest_zoneidx: ZoneKind, flags: AllocFlags) -> Option<u64> {
        (0..2000).find(|&free| zone.watermark_ok(Order(order), 100, highest_zoneidx, flags, free))
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
        let harder = AllocFlags::WMARK_MIN | AllocFlags::HARDER | AllocFlags::HIGHATOMIC;
        assert_eq!(least(&zone, 3, ZoneKind::Dma, harder), Some(83));
    }

    #[test]
    fn since_6_12_others_miss_only_what_is_free_of_the_highatomic_reserve() {
        for (kernel, needed) in [("linux-6.1", 613), ("linux-6.12", 101 + 8)] {
            // It has a free block of 8 pages.
            let mut zone = zone_of(kernel, &[MigrateType::HighAtomic]);
            zone.free_area.reserved_highatomic = 512;
            let found = least(&zone, 0, ZoneKind::Dma, AllocFlags::WMARK_MIN);
            assert_eq!(found, Some(needed), "{kernel}");
        }
    }

    #[test]
    fn up_to_4_3_larger_blocks_must_leave_half_of_the_mark_at_each_order() {
        // 150 single pages, which are no use for pairs: beside them half of 100 must be left.
        let mut frames = Frames::new(1024);
        let mut zone = zone(&[]);
        for page in 0..150 {
            zone.free_area.push(
                &mut frames,
                Pfn(512 + (2 * page)),
                Order(0),
                MigrateType::Movable,
                End::Head,
            );
        }
        zone.watermark_test = WatermarkTest::HalvedByOrder;
        let min = AllocFlags::WMARK_MIN;
        for (order, needed) in [(0, 101), (1, 150 + 50 + 2), (2, 150 + 50 + 4), (3, 150 + 50 + 8)] {
            assert_eq!(least(&zone, order, ZoneKind::Dma, min), Some(needed), "order {order}");
        }
        // The reserve of the zone is asked for once, and those who may go deeper halve what is left to them.
        assert_eq!(least(&zone, 0, ZoneKind::Movable, min), Some(141));
        assert_eq!(least(&zone, 1, ZoneKind::Movable, min), Some(202));
        assert_eq!(least(&zone, 1, ZoneKind::Dma, min | AllocFlags::HIGH), Some(150 + 25 + 2));
        // Pairs count for the next order only.
        for page in 0..10 {
            zone.free_area.push(&mut frames, Pfn(4 * page), Order(1), MigrateType::Movable, End::Head);
        }
        assert_eq!(least(&zone, 1, ZoneKind::Dma, min), Some(202));
        assert_eq!(
            least(&zone, 2, ZoneKind::Dma, min),
            Some(150 + 50 + 4),
            "20 of the 50, and 25 were enough"
        );
        zone.watermark_test = WatermarkTest::AnyBlock;
        assert_eq!(least(&zone, 1, ZoneKind::Dma, min), Some(102), "since 4.4 one pair will do");
        assert_eq!(least(&zone, 2, ZoneKind::Dma, min), None);
    }
}
