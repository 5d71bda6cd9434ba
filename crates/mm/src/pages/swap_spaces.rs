//! Which tree of the page cache is for which slots of swap. Neighbour: [`super::swap_cache`].

use std_alloc::vec::Vec;

use crate::base::ids::MappingId;
use crate::swap::slot::SwapSlot;

/// Slots of one tree (`SWAP_ADDRESS_SPACE_PAGES`).
const SPACE_SLOTS: u32 = 1 << 14;

/// The trees of the swap cache, and the pages in them.
#[derive(Debug, Clone, Default)]
pub(super) struct SwapSpaces {
    /// By slot; they are made when they are first used.
    trees: Vec<Option<MappingId>>,
    pub(super) pages: u64,
    /// Nodes that are parts of tables.
    pub(super) tables: u64,
}

impl SwapSpaces {
    /// The tree of a slot, where there is one, and its place in there.
    #[inline]
    pub(super) fn place(&self, slot: SwapSlot) -> Option<(MappingId, u32)> {
        let tree = self.trees.get((slot.0 / SPACE_SLOTS) as usize).copied().flatten()?;
        Some((tree, slot.0 % SPACE_SLOTS))
    }

    /// The first slot of a tree; none: it is a file's.
    pub(super) fn first_slot(&self, mapping: MappingId) -> Option<SwapSlot> {
        let place = self.trees.iter().position(|&tree| tree == Some(mapping))?;
        Some(SwapSlot(u32::try_from(place).expect("slots have 32 bits") * SPACE_SLOTS))
    }

    pub(super) fn add(&mut self, slot: SwapSlot, tree: MappingId) {
        let place = (slot.0 / SPACE_SLOTS) as usize;
        if self.trees.len() <= place {
            self.trees.resize(place + 1, None);
        }
        self.trees[place] = Some(tree);
    }

    pub(super) fn trees(&self) -> impl Iterator<Item = MappingId> + '_ {
        self.trees.iter().flatten().copied()
    }
}
