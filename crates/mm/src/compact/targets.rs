//! Free blocks as targets of compaction: which pageblocks have some, taking them, handing them out.
//!
//! Neighbours: [`crate::compact::scanners`] and [`crate::compact::search`] say where to look.

use units::{Order, Pfn};

use crate::alloc::buddy::LARGEST_ORDER;
use crate::alloc::pageblock::{BlockSize, head_step};
use crate::alloc::pcp::COSTLY_ORDER;
use crate::base::event::Trace;
use crate::base::frame::{FrameState, Frames, NO_OWNER};
use crate::base::gfp::MigrateType;
use crate::compact::state::{CompactStep, Compaction};
use crate::core::Core;
use crate::version::rules::{CompactFolios, CompactSearch};

/// The first head or reserved frame of a pageblock; none when a block of order 10 that starts
/// before it covers it all.
pub(super) fn first_head(frames: &Frames, block: u32) -> Option<u32> {
    let chunk = Pfn(block & !(LARGEST_ORDER.pages() - 1));
    let covered = chunk.0 != block && head_step(frames, chunk) == LARGEST_ORDER.pages();
    (!covered).then_some(block)
}

/// The first head of `block`, which has `size`, at or behind `at`; the block's end when there is none.
pub(super) fn head_from(frames: &Frames, block: u32, size: BlockSize, at: u32) -> u32 {
    let end = block + size.pages();
    let Some(mut head) = first_head(frames, block) else { return end };
    while head < at && head < end {
        head += head_step(frames, Pfn(head));
    }
    head.min(end)
}

/// `suitable_migration_target`.
pub(super) fn is_target_type<T: Trace>(core: &Core<T>, run: &Compaction, block: u32) -> bool {
    let frames = &core.alloc.frames;
    let Some(head) = first_head(frames, block) else { return false };
    let large = core.rules().compact_folios == CompactFolios::Large;
    let keep = if large { run.request.order } else { run.block.order() };
    let pfn = Pfn(head);
    let is_large_free = frames.state(pfn) == FrameState::Free && frames.order(pfn) >= keep;
    let migrate_type = core.alloc.zone(run.zone).free_area.pageblocks().migrate_type(pfn);
    !is_large_free && migrate_type == MigrateType::Movable
}

/// Takes the smallest target that holds `order`; the upper halves stay targets.
pub(super) fn split_target<T: Trace>(core: &mut Core<T>, run: &mut Compaction, order: Order) -> Option<Pfn> {
    let from = (order.index()..run.targets.len()).find(|&at| !run.targets[at].is_empty())?;
    let pfn = run.targets[from].pop().expect("it is not empty");
    for at in (order.index()..from).rev().map(|at| Order(u8::try_from(at).expect("at most 10"))) {
        let upper = Pfn(pfn.0 + at.pages());
        core.alloc.frames.set_state(upper, FrameState::InUse);
        core.alloc.frames.set_order(upper, at);
        core.alloc.frames.set_owner(upper, NO_OWNER, 0);
        run.targets[at.index()].push(upper);
    }
    core.alloc.frames.set_order(pfn, order);
    run.targets_pages -= u64::from(order.pages());
    Some(pfn)
}

/// `isolate_freepages_block`: takes free blocks from `at` upwards, until there are targets for `wanted` pages; looks at
/// one frame in `stride`. `at` ends behind the last frame that was looked at.
pub(super) fn isolate_free_in<T: Trace>(
    core: &mut Core<T>,
    run: &mut Compaction,
    block: u32,
    at: &mut u32,
    (wanted, stride): (u64, u32),
    step: &mut CompactStep,
) -> u64 {
    let end = block + run.block.pages();
    let counts = core.rules().compact_search == CompactSearch::Counted;
    let mut isolated = 0;
    *at = head_from(&core.alloc.frames, block, run.block, *at);
    while *at < end && run.targets_pages < wanted {
        let pfn = Pfn(*at);
        let state = core.alloc.frames.state(pfn);
        let mut pages = head_step(&core.alloc.frames, pfn);
        if state == FrameState::Free {
            if !isolate_free_block(core, run, pfn) {
                break;
            }
            isolated += u64::from(pages);
        } else if state == FrameState::InUse && pages > COSTLY_ORDER.pages() {
            pages = 1; // What boot left is single pages to the kernel.
        }
        step.free_scanned += if counts { u64::from(pages) } else { 1 };
        *at += pages + if run.targets_pages < wanted { stride - 1 } else { 0 };
    }
    *at = (*at).min(end);
    isolated
}

/// Takes one free block as a target; false when the zone would fall below its min mark.
pub(super) fn isolate_free_block<T: Trace>(core: &mut Core<T>, run: &mut Compaction, pfn: Pfn) -> bool {
    let order = core.alloc.frames.order(pfn);
    if !core.alloc.isolate_free_block(run.zone, pfn) {
        return false;
    }
    run.add_target(pfn, order);
    true
}

impl Compaction {
    /// A free block that was taken, or that was not needed after all.
    pub(super) fn add_target(&mut self, pfn: Pfn, order: Order) {
        self.targets[order.index()].push(pfn);
        self.targets_pages += u64::from(order.pages());
    }
}
