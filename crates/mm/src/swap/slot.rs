//! The name of a swap slot, as page tables have it (`swp_entry_t`). Neighbour: [`super::areas`].

/// A slot of an area. Slot 0 of each area is its header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct SwapSlot(pub u32);

/// Bits of the place within the area: 256 GiB.
const OFFSET_BITS: u32 = 26;

impl SwapSlot {
    /// Most areas of a machine; the name of a slot has 31 bits.
    pub const AREAS_MAX: usize = 30;
    /// Most slots of an area, its header included.
    pub const OFFSETS: u32 = 1 << OFFSET_BITS;

    /// The slot at `offset` of an area.
    pub(super) fn new(area: usize, offset: u32) -> Self {
        assert!(area < Self::AREAS_MAX && offset < Self::OFFSETS, "a slot has 31 bits");
        Self(((area as u32) << OFFSET_BITS) | offset)
    }

    /// The number of its area, in order of `swapon`.
    #[inline]
    pub const fn area(self) -> usize {
        (self.0 >> OFFSET_BITS) as usize
    }

    /// Its place in the area.
    #[inline]
    pub const fn offset(self) -> u32 {
        self.0 & (Self::OFFSETS - 1)
    }

    /// The slot so many places behind it.
    #[must_use]
    pub const fn plus(self, places: u32) -> Self {
        Self(self.0 + places)
    }
}
