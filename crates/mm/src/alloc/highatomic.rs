//! The reserve for high-order requests that cannot wait (MECHANISMS 1.7; MECHANISMS-6X 0, row 10).
//!
//! A pageblock that served such a request is set aside for more of them, up to about 1 % of the
//! zone. Before an OOM kill the blocks are given back one by one. Order-0 requests never take
//! from it here. Neighbours: [`crate::alloc::page_alloc`] reserves, the slow path unreserves.

use units::{Order, Pfn};

use crate::alloc::buddy::LARGEST_ORDER;
use crate::alloc::pageblock::{PAGEBLOCK_ORDER, PAGEBLOCK_PAGES, block_start};
use crate::alloc::zone::Zone;
use crate::base::frame::Frames;
use crate::base::gfp::MigrateType;

const BLOCK: u64 = PAGEBLOCK_PAGES as u64;

impl Zone {
    /// Pages that the reserve of this zone may hold: about 1 % of it. `spare_small`: none in zones
    /// of which that is less than a pageblock.
    fn highatomic_limit(&self, spare_small: bool) -> u64 {
        let share = self.managed.0 / 100;
        if !spare_small {
            share + BLOCK
        } else if share < BLOCK {
            0
        } else {
            share.next_multiple_of(BLOCK)
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
        if order >= PAGEBLOCK_ORDER {
            area.blocks.set_covered(pfn, order, MigrateType::HighAtomic);
            area.reserved_highatomic += u64::from(order.pages());
        } else {
            area.retype_pageblock(frames, pfn, MigrateType::HighAtomic);
            area.reserved_highatomic += BLOCK;
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
        if !force && area.reserved_highatomic() <= BLOCK {
            return false;
        }
        let free =
            (0..=LARGEST_ORDER.0).find_map(|order| area.list(MigrateType::HighAtomic, Order(order)).first());
        let Some(pfn) = free else { return false };
        let order = frames.order(pfn).max(PAGEBLOCK_ORDER);
        // A page freed before its block was given back can still be on the reserve's list.
        if area.blocks.migrate_type(pfn) == MigrateType::HighAtomic {
            area.reserved_highatomic -= u64::from(order.pages());
        }
        area.blocks.set_covered(block_start(pfn), order, want);
        area.move_pageblock(frames, block_start(pfn), want);
        true
    }
}
