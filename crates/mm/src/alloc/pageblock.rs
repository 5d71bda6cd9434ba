//! Pageblocks: pieces of a zone, as large as a huge page where the machine has such, each with the mobility type
//! that its pages should have (MECHANISMS 2.1).
//!
//! Models the type bitmap and the census of one block. The skip bit of compaction is kept by
//! [`crate::compact::run`].
//! Neighbours: [`crate::alloc::fallback`] decides whether to retype a block, [`crate::alloc::buddy`] asks for
//! the type on free.

use std_alloc::vec;
use std_alloc::vec::Vec;

use units::{Order, Pfn};

use crate::base::frame::{FrameState, Frames};
use crate::base::gfp::MigrateType;
use crate::base::layout::HugeSupport;

/// The order of the largest block of the buddy lists.
pub const LARGEST_ORDER: Order = Order(10);
/// The order of a huge page.
pub const HUGE_ORDER: Order = Order(9);
/// Pages of a huge page.
pub const HUGE_PAGES: u32 = HUGE_ORDER.pages();

/// How large the pageblocks of a machine are (`pageblock_order`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockSize(Order);

impl BlockSize {
    /// With huge pages, on or off, a pageblock is one of them; without, the largest block of the buddy lists.
    pub const fn with(huge_pages: HugeSupport) -> Self {
        match huge_pages {
            HugeSupport::Absent => Self(LARGEST_ORDER),
            HugeSupport::Off | HugeSupport::On => Self(HUGE_ORDER),
        }
    }

    /// As most tests have them.
    #[cfg(test)]
    pub(crate) const HUGE: Self = Self(HUGE_ORDER);

    /// log2 of its pages.
    #[inline]
    pub const fn order(self) -> Order {
        self.0
    }

    /// Its pages.
    #[inline]
    pub const fn pages(self) -> u32 {
        self.0.pages()
    }

    /// First frame of the pageblock that holds `pfn`.
    #[inline]
    pub const fn start(self, pfn: Pfn) -> Pfn {
        Pfn(pfn.0 & !(self.pages() - 1))
    }
}

/// The types of a zone's pageblocks.
#[derive(Debug, Clone)]
pub struct Pageblocks {
    first: u32,
    size: BlockSize,
    types: Vec<MigrateType>,
    /// How many blocks have each type.
    totals: [u32; MigrateType::ALL.len()],
}

impl Pageblocks {
    /// `spanned` frames from `first`, all blocks movable as at boot.
    pub(super) fn new(first: Pfn, spanned: u32, size: BlockSize) -> Self {
        assert!(first.0.is_multiple_of(size.pages()), "zones start at a pageblock");
        let count = spanned.div_ceil(size.pages());
        let mut totals = [0; MigrateType::ALL.len()];
        totals[MigrateType::Movable as usize] = count;
        Self { first: first.0, size, types: vec![MigrateType::Movable; count as usize], totals }
    }

    #[inline]
    fn index(&self, pfn: Pfn) -> usize {
        ((pfn.0 - self.first) >> self.size.order().0) as usize
    }

    /// How large they are.
    #[inline]
    pub const fn size(&self) -> BlockSize {
        self.size
    }

    /// The type of the block that holds `pfn`.
    #[inline]
    pub fn migrate_type(&self, pfn: Pfn) -> MigrateType {
        self.types[self.index(pfn)]
    }

    /// Retypes the block that holds `pfn`.
    #[inline]
    pub(super) fn set(&mut self, pfn: Pfn, migrate_type: MigrateType) {
        self.set_all(self.index(pfn), 1, migrate_type);
    }

    /// Retypes every pageblock that the block of `order`, no smaller than one, at `pfn` covers.
    pub(super) fn set_covered(&mut self, pfn: Pfn, order: Order, migrate_type: MigrateType) {
        self.set_all(self.index(pfn), (order.pages() / self.size.pages()) as usize, migrate_type);
    }

    /// Retypes `count` blocks from the one with this number on.
    fn set_all(&mut self, first: usize, count: usize, migrate_type: MigrateType) {
        for block in &mut self.types[first..first + count] {
            self.totals[*block as usize] -= 1;
            self.totals[migrate_type as usize] += 1;
            *block = migrate_type;
        }
    }

    /// First frame of each block with its type, ascending.
    pub fn iter(&self) -> impl Iterator<Item = (Pfn, MigrateType)> + '_ {
        (self.first..).step_by(self.size.pages() as usize).map(Pfn).zip(self.types.iter().copied())
    }

    /// How many blocks have each type (index [`MigrateType`]).
    pub const fn totals(&self) -> [u32; MigrateType::ALL.len()] {
        self.totals
    }
}

/// What the pages of one pageblock are used for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Census {
    /// Pages on the buddy lists.
    pub free: u32,
    /// Pages in use that can be moved: on an LRU list, in a batch, or isolated from one.
    pub movable: u32,
}

impl Census {
    /// Counts the pages of the block of `size` at `start`, by heads.
    pub(super) fn take(frames: &Frames, start: Pfn, size: BlockSize) -> Self {
        let mut census = Self::default();
        for (pfn, state) in heads(frames, start, size.pages()) {
            match state {
                FrameState::Free => census.free += frames.pages(pfn),
                FrameState::Lru | FrameState::Batch | FrameState::Isolated => {
                    census.movable += frames.pages(pfn);
                }
                FrameState::Reserved | FrameState::Tail | FrameState::Pcp | FrameState::InUse => {}
            }
        }
        census
    }

    /// Whether half of a block of `size` that was `old` is free or goes well with type `want`.
    pub(super) fn is_half(self, size: BlockSize, old: MigrateType, want: MigrateType) -> bool {
        self.free + self.alike(size, old, want) >= size.pages() / 2
    }

    /// Pages that go well with type `want` in a block that was `old`: all movable pages for a
    /// movable request; everything else in a movable block for a kernel request; else none, as
    /// unmovable and reclaimable pages cannot be told apart.
    fn alike(self, size: BlockSize, old: MigrateType, want: MigrateType) -> u32 {
        if want == MigrateType::Movable {
            self.movable
        } else if old == MigrateType::Movable {
            size.pages() - (self.free + self.movable).min(size.pages())
        } else {
            0
        }
    }
}

/// Frames from `pfn`, a head or a reserved frame, to the next one.
#[inline]
pub(crate) fn head_step(frames: &Frames, pfn: Pfn) -> u32 {
    match frames.state(pfn) {
        FrameState::Reserved | FrameState::Tail => 1,
        _ => frames.pages(pfn),
    }
}

/// Heads and reserved frames with their states: `count` frames from `start`, which must be one.
pub(super) fn heads(frames: &Frames, start: Pfn, count: u32) -> impl Iterator<Item = (Pfn, FrameState)> + '_ {
    let end = start.0 + count;
    let mut at = start;
    core::iter::from_fn(move || {
        if at.0 >= end {
            return None;
        }
        let pfn = at;
        at = Pfn(at.0 + head_step(frames, pfn));
        Some((pfn, frames.state(pfn)))
    })
}
