//! What a load sees of a kernel: of a folio its flags, its file and its place there; of the file its inode's number.
//!
//! ```text
//!   folio 7 { flags, mapping, index } --> address_space 3 { host } --> inode 3 { i_ino }     node 7 { folio }
//! ```
//! Nothing of it can be written, and whatever else a policy looks at is told and ends it: a zero would be a guess.
//! The size of a file (`i_size`) is among that: the model's memory management does not know it.

use mm::base::frame::PageFlags;
use mm::lru::cache_ext::lists::{Folio, Seen};

use crate::fault::{Fault, Ran};
use crate::layout::FlagBits;
use crate::memory::{FOLIOS, INODES, MAPPINGS, NODES, split};
use crate::vm::Vm;

/// From one inode, or `address_space`, to the next.
const STRIDE: u64 = 4096;

/// The part of a field of 8 bytes that a load is about.
fn part(value: u64, field: u32, offset: u32, width: usize) -> Option<u64> {
    let from = offset.checked_sub(field).filter(|from| *from as usize + width <= 8)?;
    let value = value >> (8 * from);
    Some(if width == 8 { value } else { value & ((1 << (8 * width)) - 1) })
}

/// `flags` of a folio.
fn flags(seen: &Seen, bits: FlagBits) -> u64 {
    let is_read = seen.flags.has(PageFlags::LOCKED);
    let sources = [
        (is_read, bits.locked),
        (seen.flags.has(PageFlags::REFERENCED), bits.referenced),
        (!is_read, bits.uptodate),
        (seen.flags.has(PageFlags::DIRTY), bits.dirty),
        (seen.is_listed, bits.lru),
        (seen.flags.has(PageFlags::ACTIVE), bits.active),
        (seen.flags.has(PageFlags::WORKINGSET), bits.workingset),
        (seen.flags.has(PageFlags::WRITEBACK), bits.writeback),
        (seen.flags.has(PageFlags::RECLAIM), bits.reclaim),
        (seen.flags.has(PageFlags::UNEVICTABLE), bits.unevictable),
    ];
    sources.into_iter().filter(|(is_set, _)| *is_set).fold(0, |flags, (_, bit)| flags | 1 << bit)
}

impl Vm<'_, '_> {
    /// Where the list node of a folio lies.
    pub(crate) fn node_address(&self, folio: Folio) -> u64 {
        NODES + u64::from(folio.0) * u64::from(self.linked.layout.node_size)
    }

    /// The number of a file's inode.
    pub(crate) fn inode_number(file: u32) -> u64 {
        u64::from(file) + 1
    }

    /// Loads what is the kernel's.
    pub(crate) fn see(&self, address: u64, width: usize) -> Ran<u64> {
        let layout = &self.linked.layout;
        if let Some((number, offset)) = split(address, NODES, u64::from(layout.node_size)) {
            let folio = layout.folio_address(Folio(number));
            return part(folio, layout.node_folio, offset, width)
                .ok_or_else(|| unseen("cache_ext_list_node", offset));
        }
        if let Some((number, offset)) = split(address, FOLIOS, u64::from(layout.folio_size)) {
            let seen = self.lists.as_deref().and_then(|lists| lists.see(Folio(number)));
            let seen = seen.ok_or_else(|| Fault::new("a look at a folio that is not this cgroup's"))?;
            let fields = [
                (layout.folio_flags, flags(&seen, layout.flags)),
                (layout.folio_mapping, MAPPINGS + u64::from(seen.place.file.0) * STRIDE),
                (layout.folio_index, u64::from(seen.place.index)),
            ];
            let found = fields.iter().find_map(|&(field, value)| part(value, field, offset, width));
            return found.ok_or_else(|| unseen("folio", offset));
        }
        if let Some((file, offset)) = split(address, MAPPINGS, STRIDE) {
            let host = INODES + u64::from(file) * STRIDE;
            return part(host, layout.mapping_host, offset, width)
                .ok_or_else(|| unseen("address_space", offset));
        }
        if let Some((file, offset)) = split(address, INODES, STRIDE) {
            let number = Self::inode_number(file);
            return part(number, layout.inode_number, offset, width).ok_or_else(|| unseen("inode", offset));
        }
        Err(Fault::new(format!("a load of {width} bytes from {address:#x}, where nothing is to be seen")))
    }
}

#[cold]
fn unseen(name: &str, offset: u32) -> Fault {
    Fault::new(format!("a look at byte {offset} of `struct {name}`, which is not modelled"))
}
