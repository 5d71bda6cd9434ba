//! The reserve for high-order requests that cannot wait (MECHANISMS 1.7; MECHANISMS-6X 0, row 10).
//!
//! A pageblock that served such a request is set aside for more of them, up to about 1 % of the
//! zone. Before an OOM kill the blocks are given back one by one. Order-0 requests never take
//! from it here. Neighbours: [`crate::alloc::page_alloc`] reserves, the slow path unreserves.

use units::{Order, Pfn};

use crate::alloc::buddy::LARGEST_ORDER;
use crate::alloc::page_alloc::PageAllocator;
use crate::alloc::pageblock::block_start;
use crate::alloc::pageblock::{PAGEBLOCK_ORDER, PAGEBLOCK_PAGES};
use crate::base::event::Trace;
use crate::base::gfp::MigrateType;
use crate::base::layout::ZoneId;
use crate::version::feature::Feature;

const BLOCK: u64 = PAGEBLOCK_PAGES as u64;

impl<T: Trace> PageAllocator<T> {
    /// Pages that the reserve of a zone may hold: about 1 % of it.
    fn highatomic_limit(&self, id: ZoneId) -> u64 {
        let share = self.zone(id).managed.0 / 100;
        if !self.features.has(Feature::SmallZoneNoHighatomic) {
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
    pub(crate) fn reserve_highatomic(&mut self, id: ZoneId, pfn: Pfn, order: Order) {
        let limit = self.highatomic_limit(id);
        let area = &mut self.zones[id.index()].free_area;
        if area.reserved_highatomic() >= limit || area.blocks.kind(pfn) == MigrateType::HighAtomic {
            return;
        }
        area.had_highatomic = true;
        if order >= PAGEBLOCK_ORDER {
            area.blocks.set_covered(pfn, order, MigrateType::HighAtomic);
            area.reserved_highatomic += u64::from(order.pages());
        } else {
            area.retype_pageblock(&mut self.frames, pfn, MigrateType::HighAtomic);
            area.reserved_highatomic += BLOCK;
        }
    }

    /// Gives one pageblock of the reserves along `zones` to requests of type `want`, if it has a
    /// free page. Unless `force`, each zone keeps its last one. Returns whether one was given.
    pub fn unreserve_highatomic(&mut self, zones: &[ZoneId], want: MigrateType, force: bool) -> bool {
        for &id in zones {
            let area = &mut self.zones[id.index()].free_area;
            if !force && area.reserved_highatomic() <= BLOCK {
                continue;
            }
            let free = (0..=LARGEST_ORDER.0)
                .find_map(|order| area.list(MigrateType::HighAtomic, Order(order)).first());
            let Some(pfn) = free else { continue };
            let order = self.frames.order(pfn).max(PAGEBLOCK_ORDER);
            // A page freed before its block was given back can still be on the reserve's list.
            if area.blocks.kind(pfn) == MigrateType::HighAtomic {
                area.reserved_highatomic -= u64::from(order.pages());
            }
            area.blocks.set_covered(block_start(pfn), order, want);
            area.move_pageblock(&mut self.frames, block_start(pfn), want);
            return true;
        }
        false
    }
}
