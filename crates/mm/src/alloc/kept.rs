//! What boot keeps for good, and in which pageblocks.
//!
//! The kernel keeps pages at the front of a zone, in unmovable pageblocks and then in reclaimable ones. A kernel that
//! was measured also left free blocks between the unmovable ones ([`ZoneLayout::left_free`]), memory that movable
//! pages get only by falling back, and between those of its own program ([`ZoneLayout::left_movable`]), which they get
//! first. The file of that program lies behind them ([`ZoneLayout::beside`]).
//! ```text
//!   reserved | U U U U U U U U U U U f f f | movable                          none left free between
//!   reserved | U U U U U U U U U U U U U U | U f f f f U f f | R R f f f f f f | M f f f f f | file | movable
//! ```
//! Left out: what boot needed for a moment. Read next: `boot.rs`.

use std_alloc::format;
use std_alloc::string::String;
use std_alloc::vec::Vec;

use units::{Order, Pages, Pfn};

use crate::alloc::buddy::{End, LARGEST_ORDER};
use crate::alloc::zone::Zone;
use crate::base::frame::{FrameState, Frames};
use crate::base::gfp::MigrateType;
use crate::base::layout::ZoneLayout;

const ORDERS_LEFT: usize = LARGEST_ORDER.0 as usize;

/// How much of the pageblocks with free blocks between kept pages is free: so much that a fallback claims them. In
/// guests of 6.12 and 7.2, more than half of nearly all is free or of the guest's own program, which is movable
/// (`/proc/kpageflags`).
const MIXED_FREE: (u32, u32) = (3, 4);

/// First managed frame of a zone.
fn first_managed(zone: &Zone) -> u32 {
    zone.start.0 + zone.spanned - u32::try_from(zone.managed.0).expect("a zone has 32-bit frames")
}

/// Frees the managed frames in ascending order, in the largest aligned blocks, but for what the kernel keeps: that
/// lies in unmovable pageblocks, in whole largest blocks.
///
/// # Errors
/// More blocks are left free than lie between so few kept pages, or than the zone has.
pub(super) fn free_at_boot(zone: &mut Zone, layout: &ZoneLayout, frames: &mut Frames) -> Result<(), String> {
    let (start, end) = (first_managed(zone), zone.start.0 + zone.spanned);
    let [kept, reclaimable] = [layout.kept_by_kernel, layout.kept_reclaimable].map(pages32);
    let own = of_program(&layout.left_movable);
    let unmovable = kept.saturating_sub(reclaimable + own);
    let between = pages_of(&layout.left_free);
    let whole = |end: u32| end.next_multiple_of(LARGEST_ORDER.pages());
    let unmovable_end = if kept + between == 0 { start } else { whole(start + unmovable + between) };
    let reclaimable_end = if reclaimable == 0 { unmovable_end } else { whole(unmovable_end + reclaimable) };
    let own_end =
        if own == 0 { reclaimable_end } else { reclaimable_end + own + pages_of(&layout.left_movable) };
    let file_end = own_end + pages32(layout.beside);
    if file_end > end || kept < reclaimable + own {
        return Err(format!(
            "boot keeps {kept} of {} pages of zone {} and leaves {between} free between them: nothing is left",
            zone.managed.0,
            zone.kind.name()
        ));
    }
    set_pageblocks(zone, (start, unmovable_end), MigrateType::Unmovable);
    set_pageblocks(zone, (unmovable_end, reclaimable_end), MigrateType::Reclaimable);
    if between == 0 {
        keep_in_front(zone, (start, unmovable_end), unmovable, MigrateType::Unmovable, frames);
    } else {
        let spare = unmovable_end - start - unmovable - between;
        let mixed = whole(((between + spare) * MIXED_FREE.1).div_ceil(MIXED_FREE.0));
        let mixed_start = start.max(unmovable_end.saturating_sub(mixed));
        let in_front = mixed_start - start;
        keep_in_front(zone, (start, mixed_start), in_front, MigrateType::Unmovable, frames);
        let left_free = left_free(&layout.left_free, spare);
        keep_between(zone, (mixed_start, unmovable_end), &left_free, MigrateType::Unmovable, frames)?;
    }
    keep_in_front(zone, (unmovable_end, reclaimable_end), reclaimable, MigrateType::Reclaimable, frames);
    if own > 0 {
        let left_free = layout.left_movable.map(u32::from);
        keep_between(zone, (reclaimable_end, own_end), &left_free, MigrateType::Movable, frames)?;
    }
    (own_end..file_end).for_each(|pfn| keep(Pfn(pfn), frames));
    keep_in_front(zone, (file_end, end), 0, MigrateType::Movable, frames);
    Ok(())
}

/// Pages between which so many are free in whole largest blocks.
fn of_program(left_movable: &[u16; ORDERS_LEFT]) -> u32 {
    let free = pages_of(left_movable);
    free.next_multiple_of(LARGEST_ORDER.pages()) - free
}

fn pages32(pages: Pages) -> u32 {
    u32::try_from(pages.0).expect("less than the zone")
}

fn set_pageblocks(zone: &mut Zone, (start, end): (u32, u32), migrate_type: MigrateType) {
    let pages = zone.free_area.blocks.size().pages() as usize;
    for (at, order) in aligned_blocks(start, end) {
        for block in (at..at + order.pages()).step_by(pages) {
            zone.free_area.blocks.set(Pfn(block), migrate_type);
        }
    }
}

fn pages_of(left_free: &[u16; ORDERS_LEFT]) -> u32 {
    left_free.iter().enumerate().map(|(order, &blocks)| u32::from(blocks) << order).sum()
}

/// The frames from `start` to `end` in the largest aligned blocks.
fn aligned_blocks(start: u32, end: u32) -> impl Iterator<Item = (u32, Order)> {
    let order = |at: u32| Order(u8::try_from(at.trailing_zeros()).expect("below 33").min(LARGEST_ORDER.0));
    let mut at = start;
    core::iter::from_fn(move || {
        let block = (at < end).then(|| (at, order(at)))?;
        at += block.1.pages();
        Some(block)
    })
}

/// Frees the blocks from `start` to `end`, which have a type of their own, and takes out what the kernel keeps, in
/// blocks as large as possible.
fn keep_in_front(
    zone: &mut Zone,
    (start, end): (u32, u32),
    kept: u32,
    migrate_type: MigrateType,
    frames: &mut Frames,
) {
    for (at, order) in aligned_blocks(start, end) {
        zone.free_area.push(frames, Pfn(at), order, migrate_type, End::Tail);
    }
    let mut left = kept;
    let mut order = LARGEST_ORDER;
    while left > 0 {
        let fits = order.pages() <= left;
        if fits && zone.free_area.take_smallest(frames, order, migrate_type).is_some() {
            left -= order.pages();
        } else {
            order = Order(order.0 - 1);
        }
    }
}

/// With the `spare` pages that fill the last block, in the largest blocks.
fn left_free(between: &[u16; ORDERS_LEFT], spare: u32) -> [u32; ORDERS_LEFT] {
    core::array::from_fn(|order| u32::from(between[order]) + (spare >> order & 1))
}

/// Leaves `left_free` blocks of each order free between `start` and `end`, spread evenly, and keeps the rest page by
/// page. From the largest block downwards: of each pair of buddies the upper half may stay free, all others are split.
fn keep_between(
    zone: &mut Zone,
    (start, end): (u32, u32),
    left_free: &[u32; ORDERS_LEFT],
    migrate_type: MigrateType,
    frames: &mut Frames,
) -> Result<(), String> {
    let mut pieces: Vec<u32> = Vec::new();
    for order in (0..=LARGEST_ORDER.0).rev().map(Order) {
        pieces.extend(aligned_blocks(start, end).filter(|block| block.1 == order).map(|(at, _)| at));
        pieces.sort_unstable();
        let wanted = left_free.get(order.index()).copied().unwrap_or(0);
        let is_upper = |at: u32| at & order.pages() != 0;
        let uppers = u32::try_from(pieces.iter().filter(|&&at| is_upper(at)).count()).expect("below a zone");
        if wanted > uppers {
            let name = zone.kind.name();
            return Err(format!(
                "boot leaves {wanted} blocks of {} pages free in zone {name}: between what it keeps {uppers} lie",
                order.pages()
            ));
        }
        let mut seen = 0;
        let (free, rest): (Vec<u32>, Vec<u32>) = pieces.iter().partition(|&&at| {
            let share = |upper: u32| u64::from(upper) * u64::from(wanted) / u64::from(uppers.max(1));
            seen += u32::from(is_upper(at));
            is_upper(at) && share(seen) != share(seen - 1)
        });
        for at in free {
            zone.free_area.push(frames, Pfn(at), order, migrate_type, End::Tail);
        }
        pieces = rest;
        if order > Order(0) {
            let half = order.pages() / 2;
            pieces = pieces.into_iter().flat_map(|at| [at, at + half]).collect();
        }
    }
    pieces.into_iter().for_each(|pfn| keep(Pfn(pfn), frames));
    Ok(())
}

fn keep(pfn: Pfn, frames: &mut Frames) {
    frames.set_state(pfn, FrameState::InUse);
    frames.set_order(pfn, Order(0));
}
