//! Taking free blocks out of the zone for compaction to move pages to (`__isolate_free_page`).
//!
//! Left out: isolation for memory offlining. Neighbour: [`crate::compact::scanners`] says which.

use units::{Order, Pfn};

use crate::alloc::flags::AllocFlags;
use crate::alloc::page_alloc::PageAllocator;
use crate::alloc::watermark::Mark;
use crate::base::event::Trace;
use crate::base::frame::{FrameState, NO_OWNER};
use crate::base::gfp::MigrateType;
use crate::base::layout::{ZoneId, ZoneKind};
use crate::version::rules::FallbackPolicy;

impl<T: Trace> PageAllocator<T> {
    /// Turns the list of the free block at `pfn` until that is at the head, or else at the tail, so that a later search
    /// meets others first (`move_freelist_head`, `move_freelist_tail`).
    pub(crate) fn turn_free_list(&mut self, zone: ZoneId, pfn: Pfn, to_head: bool) {
        self.zones[zone.index()].free_area.turn_list(&mut self.frames, pfn, to_head);
    }

    /// Takes the free block at `pfn` out of `zone`, in use then; false when the zone would fall below
    /// its min mark.
    pub(crate) fn isolate_free_block(&mut self, zone: ZoneId, pfn: Pfn) -> bool {
        let order = self.frames.order(pfn);
        let zone = &mut self.zones[zone.index()];
        let needed = zone.watermarks.base(Mark::Min) + u64::from(order.pages());
        let free = zone.free_pages().0;
        if !zone.watermark_ok(Order(0), needed, ZoneKind::Dma, AllocFlags::NO_WATERMARKS, free) {
            return false;
        }
        let frames = &mut self.frames;
        zone.free_area.take(frames, pfn);
        frames.set_state(pfn, FrameState::InUse);
        frames.set_owner(pfn, NO_OWNER, 0);
        let size = zone.free_area.blocks.size();
        if order.0 + 1 >= size.order().0 {
            let by_block = self.version.rules.fallback == FallbackPolicy::ClaimThenSteal;
            for block in (pfn.0..pfn.0 + order.pages()).step_by(size.pages() as usize) {
                let block = size.start(Pfn(block));
                let migrate_type = zone.free_area.blocks.migrate_type(block);
                if matches!(migrate_type, MigrateType::HighAtomic | MigrateType::Movable) {
                    continue;
                }
                zone.free_area.blocks.set(block, MigrateType::Movable);
                if by_block && order < size.order() {
                    zone.free_area.retype_pageblock(frames, block, MigrateType::Movable);
                }
            }
        }
        true
    }
}
