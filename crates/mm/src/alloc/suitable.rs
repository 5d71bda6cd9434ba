//! Whether compaction of a zone makes sense (MECHANISMS 12.1, MECHANISMS-6X 9.2): a question to marks
//! and free lists alone, which reclaim asks as well as compaction.
//!
//! Neighbours: [`crate::compact::run`], [`crate::reclaim::pass`].

use units::Order;

use crate::alloc::buddy::{FreeArea, LARGEST_ORDER};
use crate::alloc::flags::AllocFlags;
use crate::alloc::page_alloc::PageAllocator;
use crate::alloc::pcp::COSTLY_ORDER;
use crate::alloc::watermark::Mark;
use crate::alloc::zone::Zone;
use crate::base::event::Trace;
use crate::base::layout::{ZoneId, ZoneKind};
use crate::version::rules::CompactGap;

/// `vm.extfrag_threshold`: at or below it a failure is for want of memory, not for fragmentation.
const EXTFRAG_THRESHOLD: i64 = 500;

/// Whether compaction of a zone makes sense.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Suitability {
    /// The request fits already.
    Fits,
    /// Yes.
    Suitable,
    /// No.
    Skip,
}

/// Fragmentation index of a zone for `order`, in 1/1000: towards 0 a request fails for want of
/// memory, towards 1000 for fragmentation; -1000 when it would not fail.
pub fn fragmentation_index(area: &FreeArea, order: Order) -> i64 {
    let (mut blocks, mut fits) = (0, false);
    for at in (0..=LARGEST_ORDER.0).map(Order) {
        let here = area.blocks_free(at);
        blocks += here;
        fits |= at >= order && here > 0;
    }
    if blocks == 0 {
        return 0;
    }
    if fits {
        return -1000;
    }
    let share = 1000 + ((area.free_pages() * 1000) / u64::from(order.pages()));
    1000 - i64::try_from(share / blocks).expect("a share of the zone")
}

/// Pages that compaction for `order` works with (`compact_gap`).
pub const fn compact_gap(rule: CompactGap, order: Order) -> u64 {
    let twice = 2 << order.0;
    match rule {
        CompactGap::Chunk if twice > SMALL_GAP => SMALL_GAP,
        CompactGap::Chunk | CompactGap::TwiceBlock => twice,
    }
}

/// A chunk of reclaim (`COMPACT_CLUSTER_MAX`).
const SMALL_GAP: u64 = 32;

/// What must be free for compaction that serves a request at `mark`. A costly one needs more.
fn needed(rule: CompactGap, zone: &Zone, mark: Mark, order: Order) -> u64 {
    let (marks, costly) = (&zone.watermarks, order > COSTLY_ORDER);
    let floor = match rule {
        CompactGap::TwiceBlock => marks.mark(if costly { Mark::Low } else { Mark::Min }),
        CompactGap::Chunk if costly => marks.mark(mark) + (marks.mark(Mark::Low) - marks.mark(Mark::Min)),
        CompactGap::Chunk => marks.mark(mark),
    };
    floor + compact_gap(rule, order)
}

/// `compaction_suitable`: whether compaction of `zone` for `order` makes sense if `free` pages
/// were free.
pub fn suitable_with<T: Trace>(
    alloc: &PageAllocator<T>,
    zone: ZoneId,
    order: Order,
    flags: AllocFlags,
    highest_zoneidx: ZoneKind,
    free: u64,
) -> Suitability {
    let zone = alloc.zone(zone);
    let mark = flags.mark().unwrap_or(Mark::Min);
    if zone.watermark_ok(order, zone.watermarks.mark(mark), highest_zoneidx, flags, free) {
        return Suitability::Fits;
    }
    has_room(alloc, zone, order, mark, highest_zoneidx, free)
}

/// Whether compaction of `zone` makes sense that is to make pageblocks whole up to its high mark
/// (`vm.defrag_mode`).
pub fn suitable_for_whole_blocks<T: Trace>(
    alloc: &PageAllocator<T>,
    zone: ZoneId,
    order: Order,
    highest_zoneidx: ZoneKind,
) -> Suitability {
    let zone = alloc.zone(zone);
    if zone.above_in_whole_blocks(order, highest_zoneidx) {
        return Suitability::Fits;
    }
    has_room(alloc, zone, order, Mark::Min, highest_zoneidx, zone.free_pages().0)
}

/// Whether `free` pages are enough for compaction to work with, and their fragmentation is what is wrong.
fn has_room<T: Trace>(
    alloc: &PageAllocator<T>,
    zone: &Zone,
    order: Order,
    mark: Mark,
    highest_zoneidx: ZoneKind,
    free: u64,
) -> Suitability {
    let needed = needed(alloc.rules().compact_gap, zone, mark, order);
    if !zone.watermark_ok(Order(0), needed, highest_zoneidx, AllocFlags::NO_WATERMARKS, free) {
        return Suitability::Skip;
    }
    let index = if order > COSTLY_ORDER { fragmentation_index(&zone.free_area, order) } else { -1000 };
    if (0..=EXTFRAG_THRESHOLD).contains(&index) { Suitability::Skip } else { Suitability::Suitable }
}

/// [`suitable_with`] for the pages that are free now.
pub fn suitable<T: Trace>(
    alloc: &PageAllocator<T>,
    zone: ZoneId,
    order: Order,
    flags: AllocFlags,
    highest_zoneidx: ZoneKind,
) -> Suitability {
    let free = alloc.zone(zone).free_pages().0;
    suitable_with(alloc, zone, order, flags, highest_zoneidx, free)
}

/// `compaction_ready`: direct reclaim for `order` need not free more of `zone`, as the request
/// fits or compaction has what it needs.
pub fn is_ready<T: Trace>(
    alloc: &PageAllocator<T>,
    zone: ZoneId,
    order: Order,
    highest_zoneidx: ZoneKind,
) -> bool {
    match suitable(alloc, zone, order, AllocFlags::WMARK_MIN, highest_zoneidx) {
        Suitability::Fits => true,
        Suitability::Skip => false,
        Suitability::Suitable => {
            let zone = alloc.zone(zone);
            let rule = alloc.rules().compact_gap;
            let needed = match rule {
                CompactGap::TwiceBlock => zone.watermarks.mark(Mark::High) + compact_gap(rule, order),
                CompactGap::Chunk => needed(rule, zone, Mark::High, order),
            };
            let free = zone.free_pages().0;
            zone.watermark_ok(Order(0), needed, highest_zoneidx, AllocFlags::NO_WATERMARKS, free)
        }
    }
}
