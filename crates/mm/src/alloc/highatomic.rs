//! Pageblocks set aside: for high-order requests that cannot wait (MECHANISMS 1.7; MECHANISMS-6X 0, row
//! 10), and before 4.4 for whoever finds nothing else (MECHANISMS 2.4).
//!
//! Since 4.4 a pageblock that served such a request is set aside for more of them, up to about 1 % of the
//! zone. Before an OOM kill the blocks are given back one by one. Order-0 requests never take
//! from it here.
//!
//! Up to 4.3 ([`HighatomicReserve::Blocks`], `setup_zone_migrate_reserve`) one or two pageblocks are set
//! aside whenever marks are set, and [`crate::alloc::fallback`] takes from them last. They are on the same
//! lists, as in the kernel: both types have the number behind those that requests ask for.
//! Neighbours: [`crate::alloc::page_alloc`] reserves, the slow path unreserves, [`crate::alloc::boot`] sets
//! marks.

use units::{Order, Pfn};

use crate::alloc::buddy::LARGEST_ORDER;
use crate::alloc::watermark::Mark;
use crate::alloc::zone::Zone;
use crate::base::frame::{FrameState, Frames};
use crate::base::gfp::MigrateType;
use crate::version::rules::HighatomicReserve;

/// Pageblocks that are set aside at most whenever marks are set.
const BLOCKS_MAX: u64 = 2;

impl Zone {
    /// Pages that the reserve of this zone may hold: about 1 % of it. `spare_small`: none in zones
    /// of which that is less than a pageblock.
    fn highatomic_limit(&self, spare_small: bool) -> u64 {
        let block = u64::from(self.free_area.blocks.size().pages());
        let share = self.managed.0 / 100;
        if !spare_small {
            share + block
        } else if share < block {
            0
        } else {
            share.next_multiple_of(block)
        }
    }

    /// Sets the pageblocks of the block of `order` at `pfn` aside after it served a high-order atomic
    /// request.
    #[cold]
    pub(super) fn reserve_highatomic(
        &mut self,
        frames: &mut Frames,
        pfn: Pfn,
        order: Order,
        spare_small: bool,
    ) {
        let limit = self.highatomic_limit(spare_small);
        let area = &mut self.free_area;
        if area.reserved_highatomic() >= limit || area.blocks.migrate_type(pfn) == MigrateType::HighAtomic {
            return;
        }
        area.had_highatomic = true;
        if order >= area.blocks.size().order() {
            area.blocks.set_covered(pfn, order, MigrateType::HighAtomic);
            area.reserved_highatomic += u64::from(order.pages());
        } else {
            area.retype_pageblock(frames, pfn, MigrateType::HighAtomic);
            area.reserved_highatomic += u64::from(area.blocks.size().pages());
        }
    }

    /// Sets aside as many movable pageblocks as the min mark takes, but two at most, the first ones of the zone;
    /// gives back what was set aside beyond that. A pageblock that boot took a part of is passed over: it
    /// will never be whole.
    pub(super) fn set_blocks_aside(&mut self, frames: &mut Frames) {
        let size = self.free_area.blocks.size();
        let mut left = self.watermarks.base(Mark::Min).div_ceil(size.pages().into()).min(BLOCKS_MAX);
        let end = self.start.0 + self.spanned;
        for block in (self.start.0..end).step_by(size.pages() as usize).map(Pfn) {
            let wanted = match self.free_area.blocks.migrate_type(block) {
                _ if frames.state(block) == FrameState::Reserved => continue,
                MigrateType::Movable if left > 0 => MigrateType::HighAtomic,
                MigrateType::HighAtomic if left > 0 => {
                    left -= 1;
                    continue;
                }
                MigrateType::HighAtomic => MigrateType::Movable,
                _ => continue,
            };
            left -= u64::from(wanted == MigrateType::HighAtomic);
            self.free_area.retype_pageblock(frames, block, wanted);
        }
    }

    /// Gives one pageblock of the reserve to requests of type `want`, if it has a free page. Unless
    /// `force`, the zone keeps its last one. Returns whether one was given.
    pub(super) fn unreserve_highatomic(
        &mut self,
        frames: &mut Frames,
        want: MigrateType,
        force: bool,
    ) -> bool {
        let area = &mut self.free_area;
        if area.reserve == HighatomicReserve::Blocks {
            return false;
        }
        let size = area.blocks.size();
        if !force && area.reserved_highatomic() <= u64::from(size.pages()) {
            return false;
        }
        let free =
            (0..=LARGEST_ORDER.0).find_map(|order| area.list(MigrateType::HighAtomic, Order(order)).first());
        let Some(pfn) = free else { return false };
        let order = frames.order(pfn).max(size.order());
        // A page freed before its block was given back can still be on the reserve's list.
        if area.blocks.migrate_type(pfn) == MigrateType::HighAtomic {
            area.reserved_highatomic -= u64::from(order.pages());
        }
        area.blocks.set_covered(size.start(pfn), order, want);
        let _ = area.move_pageblock(frames, size.start(pfn), want);
        true
    }
}

#[cfg(test)]
mod tests {
    use units::{NodeId, Pages};

    use super::*;
    use crate::alloc::buddy::{End, FreeArea};
    use crate::alloc::pageblock::{BlockSize, HUGE_ORDER as PAGEBLOCK_ORDER, HUGE_PAGES as PAGEBLOCK_PAGES};
    use crate::alloc::watermark::Watermarks;
    use crate::base::layout::{HugeSupport, ZoneKind};
    use crate::version::presets::Version;

    const BLOCK: u64 = PAGEBLOCK_PAGES as u64;

    /// A zone of so many pageblocks, each of them free, that counts as one of `managed` pages.
    fn zone(pageblocks: u32, managed: u64) -> (Zone, Frames) {
        let pages = pageblocks * PAGEBLOCK_PAGES;
        let mut frames = Frames::new(pages as usize);
        let rules = Version::parse("linux-6.1").unwrap().rules;
        let mut free_area = FreeArea::new(Pfn(0), pages, BlockSize::with(HugeSupport::Off), &rules);
        for block in 0..pageblocks {
            let pfn = Pfn(block * PAGEBLOCK_PAGES);
            free_area.push(&mut frames, pfn, PAGEBLOCK_ORDER, MigrateType::Movable, End::Head);
        }
        let zone = Zone {
            kind: ZoneKind::Dma32,
            node: NodeId(0),
            start: Pfn(0),
            spanned: pages,
            managed: Pages(managed),
            beside: Pages::ZERO,
            managed_at_boot: Pages(managed),
            watermarks: Watermarks::default(),
            free_area,
            watermark_test: rules.watermark_test,
        };
        (zone, frames)
    }

    /// Blocks that the reserve grows to when every pageblock of a zone serves an atomic request.
    fn grows_to(managed: u64, spare_small: bool) -> u64 {
        let (mut zone, mut frames) = zone(8, managed);
        for block in 0..8 {
            let pfn = Pfn(block * PAGEBLOCK_PAGES);
            zone.reserve_highatomic(&mut frames, pfn, Order(3), spare_small);
            zone.reserve_highatomic(&mut frames, pfn, Order(3), spare_small);
        }
        zone.free_area.reserved_highatomic() / BLOCK
    }

    #[test]
    fn the_reserve_grows_to_1_percent_and_a_block_and_since_6_12_to_whole_blocks_of_it() {
        for (managed, up_to_6_1, since_6_12) in [
            (100, 2, 0),
            (51_199, 2, 0),
            (51_200, 2, 1),
            (51_300, 3, 2), // 513 pages
            (51_749, 3, 2), // a guest of 256 MB
            (102_400, 3, 2),
            (114_844, 4, 3), // a guest of 512 MB
        ] {
            assert_eq!(
                [false, true].map(|spare| grows_to(managed, spare)),
                [up_to_6_1, since_6_12],
                "{managed}"
            );
        }
    }

    #[test]
    fn a_block_larger_than_a_pageblock_is_set_aside_whole() {
        let (mut zone, mut frames) = zone(8, 1_000_000);
        zone.reserve_highatomic(&mut frames, Pfn(1024), Order(10), false);
        assert_eq!(zone.free_area.reserved_highatomic(), 1024);
        for block in 0..8 {
            let expected =
                if [2, 3].contains(&block) { MigrateType::HighAtomic } else { MigrateType::Movable };
            assert_eq!(zone.free_area.blocks.migrate_type(Pfn(block * PAGEBLOCK_PAGES)), expected, "{block}");
        }
    }

    #[test]
    fn only_force_takes_the_last_block_and_only_a_block_with_a_free_page_is_given_back() {
        let (mut zone, mut frames) = zone(8, 1_000_000);
        let unreserve = |zone: &mut Zone, frames: &mut Frames, force| {
            let given = zone.unreserve_highatomic(frames, MigrateType::Unmovable, force);
            (given, zone.free_area.reserved_highatomic() / BLOCK)
        };
        assert_eq!(unreserve(&mut zone, &mut frames, true), (false, 0), "there is none");
        for block in [1, 2] {
            zone.reserve_highatomic(&mut frames, Pfn(block * PAGEBLOCK_PAGES), Order(3), false);
        }
        assert_eq!(unreserve(&mut zone, &mut frames, false), (true, 1));
        assert_eq!(unreserve(&mut zone, &mut frames, false), (false, 1), "the last one is kept");
        assert_eq!(unreserve(&mut zone, &mut frames, true), (true, 0));
        assert_eq!(zone.free_area.list(MigrateType::HighAtomic, PAGEBLOCK_ORDER).first(), None);
        for block in 0..8 {
            let given =
                zone.free_area.blocks.migrate_type(Pfn(block * PAGEBLOCK_PAGES)) == MigrateType::Unmovable;
            assert_eq!(given, [1, 2].contains(&block), "{block}");
        }
        // A block in use to its last page stays.
        let pfn = Pfn(5 * PAGEBLOCK_PAGES);
        zone.free_area.take_split(&mut frames, pfn, PAGEBLOCK_ORDER, MigrateType::Movable);
        zone.reserve_highatomic(&mut frames, pfn, Order(3), false);
        assert_eq!(unreserve(&mut zone, &mut frames, true), (false, 1));
    }

    /// Types of the pageblocks, those of 2.6.32 set aside for a min mark of `min` pages.
    fn set_aside(zone: &mut Zone, frames: &mut Frames, min: u64) -> std_alloc::string::String {
        zone.watermarks.base = [min, min, min];
        zone.set_blocks_aside(frames);
        zone.free_area
            .blocks
            .iter()
            .map(|(_, migrate_type)| ['U', 'M', 'R', 'H'][migrate_type as usize])
            .collect()
    }

    #[test]
    fn up_to_4_3_the_first_movable_blocks_are_set_aside_as_far_as_min_goes_and_two_at_most() {
        let (mut zone, mut frames) = zone(8, 4096);
        zone.free_area.blocks.set(Pfn(0), MigrateType::Unmovable);
        for (min, types) in [
            (498, "UHMMMMMM"), // 256 MB
            (512, "UHMMMMMM"),
            (513, "UHHMMMMM"),
            (20_000, "UHHMMMMM"),
            (1, "UHMMMMMM"), // a lower min_free_kbytes gives one back
            (0, "UMMMMMMM"),
        ] {
            assert_eq!(set_aside(&mut zone, &mut frames, min), types, "{min}");
            let set_aside = zone.free_area.free_of(MigrateType::HighAtomic);
            assert_eq!(set_aside, BLOCK * types.matches('H').count() as u64, "its free pages go along");
        }
        assert_eq!(zone.free_area.reserved_highatomic(), 0, "marks know nothing of them");
    }

    #[test]
    fn a_block_that_firmware_took_a_part_of_is_not_set_aside() {
        let (mut zone, mut frames) = zone(8, 4096);
        zone.free_area.take(&mut frames, Pfn(0));
        frames.set_state(Pfn(0), FrameState::Reserved);
        assert_eq!(set_aside(&mut zone, &mut frames, 498), "MHMMMMMM");
    }
}
