//! What the journal of ext4 keeps of a metadata block as long as that is in a transaction, or may still have to be
//! written to its place (`struct journal_head`).
//!
//! An object of 120 bytes for each such block: measured, guests of 5.10 to 7.2, as many as they have changed metadata
//! blocks. It goes when the block leaves its last list, or with its page.
//!
//! Left out: that since 5.14 a page stays as long as its block has one, and a shrinker frees those of written blocks.
//! Neighbour: [`crate::fs::ext4::journal`].

use std_alloc::collections::BTreeMap;
use std_alloc::vec::Vec;

use crate::base::ids::MappingId;
use crate::slab::object::Object;

#[derive(Debug, Clone, Copy)]
struct Head {
    object: Object,
    /// The transaction in the log on whose list the block is.
    logged: Option<u64>,
}

/// Those of all disks.
#[derive(Debug, Clone, Default)]
pub(crate) struct Heads(Vec<(MappingId, BTreeMap<u32, Head>)>);

impl Heads {
    fn of(&self, device: MappingId) -> Option<&BTreeMap<u32, Head>> {
        self.0.iter().find(|(mapping, _)| *mapping == device).map(|(_, heads)| heads)
    }

    fn of_mut(&mut self, device: MappingId) -> Option<&mut BTreeMap<u32, Head>> {
        self.0.iter_mut().find(|(mapping, _)| *mapping == device).map(|(_, heads)| heads)
    }

    /// A disk has a journal.
    pub(crate) fn add_device(&mut self, device: MappingId) {
        self.0.push((device, BTreeMap::new()));
    }

    /// A block gets one, for a transaction.
    pub(crate) fn add(&mut self, device: MappingId, block: u32, object: Object) {
        let heads = self.of_mut(device).expect("the disk has a journal");
        let was = heads.insert(block, Head { object, logged: None });
        assert!(was.is_none(), "block {block} has a journal head");
    }

    /// The transaction of a block is in the log; whichever was before does not wait for it any longer.
    pub(crate) fn log(&mut self, device: MappingId, block: u32, transaction: u64) {
        if let Some(head) = self.of_mut(device).and_then(|heads| heads.get_mut(&block)) {
            head.logged = Some(transaction);
        }
    }

    /// Whether a block is on the list of another transaction than this one by now, or on none.
    pub(crate) fn has_moved(&self, device: MappingId, block: u32, transaction: u64) -> bool {
        let head = self.of(device).and_then(|heads| heads.get(&block));
        head.is_some_and(|head| head.logged != Some(transaction))
    }

    /// A block leaves the list of its transaction in the log, and stays in another one.
    pub(crate) fn unlog(&mut self, device: MappingId, block: u32) {
        if let Some(head) = self.of_mut(device).and_then(|heads| heads.get_mut(&block)) {
            head.logged = None;
        }
    }

    /// The last list of a block is left, or its page leaves memory. What is to be freed.
    pub(crate) fn forget(&mut self, device: MappingId, block: u32) -> Option<Object> {
        self.of_mut(device)?.remove(&block).map(|head| head.object)
    }

    /// How many there are.
    pub(crate) fn objects(&self) -> u64 {
        self.0.iter().map(|(_, heads)| heads.len() as u64).sum()
    }

    /// All blocks that have one.
    pub(crate) fn blocks(&self) -> impl Iterator<Item = (MappingId, u32)> + '_ {
        self.0.iter().flat_map(|(device, heads)| heads.keys().map(move |&block| (*device, block)))
    }
}
