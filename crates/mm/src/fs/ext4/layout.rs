//! Where ext4 keeps its metadata: block groups, their bitmaps, descriptors and inode tables, directories
//! (the kernel's documentation of ext4's data structures, `Documentation/filesystems/ext4`).
//!
//! ```text
//!   group of 32768 blocks (128 MiB): block bitmap | inode bitmap | 512 blocks of inode table | data
//!                                     1 block       1 block        8192 inodes of 256 bytes
//!   descriptors: 64 groups to a block
//!   directory:   one block of names until it is full, then an index and leaves by the hash of the name
//! ```
//! Pages of the device's mapping are numbered by what they hold, each kind one behind the other, as 16 groups
//! of a `flex_bg` keep theirs together: nothing depends on the true distances, and a scan for dirty pages is short.
//!
//! Left out: superblock copies, a second block of extents (beyond 340 of them), more than 1 Ei of data.
//! Neighbour: [`crate::fs::ext4::journal`].

use std_alloc::vec::Vec;

/// Blocks in a group: what a bitmap of one block covers.
pub const BLOCKS_IN_GROUP: u32 = 32_768;
/// Inodes in a group: one for each 16 KiB, as `mke2fs` makes it.
pub const INODES_IN_GROUP: u32 = 8192;
/// Inodes in a block of the tables, 256 bytes each.
pub const INODES_IN_BLOCK: u32 = 16;
/// Extents that an inode has room for; where there are more, they are in a block of their own.
const EXTENTS_IN_INODE: u32 = 4;
/// Blocks of an extent at most: 128 MiB.
const BLOCKS_IN_EXTENT: u32 = 1 << 15;
/// Descriptors in a block, 64 bytes each.
const DESCRIPTORS_IN_BLOCK: u32 = 64;
/// A kind of metadata, with the first page of its stretch in the device's mapping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
enum Kind {
    Descriptors = 1 << 16,
    BlockBitmaps = 1 << 17,
    InodeBitmaps = 1 << 18,
    Directories = 1 << 19,
    Log = 1 << 20,
    Tables = 1 << 21,
}

/// The first page of the inode tables.
pub const TABLES_FIRST: u32 = Kind::Tables as u32;
/// The first page of metadata blocks of single files, behind all stretches.
const OWN_FIRST: u32 = 3 << 21;
/// Files that have a block of their own; beyond that numbers begin anew.
const OWN_BLOCKS: u32 = 1 << 21;

/// Extents of a run of blocks one behind the other.
pub const fn extents_of_run(blocks: u32) -> u32 {
    blocks.div_ceil(BLOCKS_IN_EXTENT)
}

/// Whether a file with so many extents has a block for them.
pub const fn has_extent_block(extents: u32) -> bool {
    extents > EXTENTS_IN_INODE
}

/// The block of extents of a file.
pub const fn extent_block(inode: u32) -> u32 {
    OWN_FIRST + (inode % OWN_BLOCKS)
}

/// The block of the inode tables that an inode is in.
pub const fn table_block(inode: u32) -> u32 {
    TABLES_FIRST + (inode / INODES_IN_BLOCK)
}

/// The bitmap that tells which inodes of an inode's group are in use.
pub const fn inode_bitmap(inode: u32) -> u32 {
    let groups = Kind::Directories as u32 - Kind::InodeBitmaps as u32;
    Kind::InodeBitmaps as u32 + (inode / INODES_IN_GROUP % groups)
}

/// The descriptor of an inode's group.
pub const fn inode_descriptor(inode: u32) -> u32 {
    Kind::Descriptors as u32 + (inode / INODES_IN_GROUP / DESCRIPTORS_IN_BLOCK)
}

/// The bitmap that tells which blocks around `block` are in use.
pub const fn block_bitmap(block: u64) -> u32 {
    let groups = Kind::InodeBitmaps as u64 - Kind::BlockBitmaps as u64;
    Kind::BlockBitmaps as u32 + (block / BLOCKS_IN_GROUP as u64 % groups) as u32
}

/// The descriptor of a block's group.
pub const fn block_descriptor(block: u64) -> u32 {
    let blocks = Kind::BlockBitmaps as u64 - Kind::Descriptors as u64;
    let group = block / BLOCKS_IN_GROUP as u64;
    Kind::Descriptors as u32 + (group / DESCRIPTORS_IN_BLOCK as u64 % blocks) as u32
}

/// The block of directories with this number; beyond 2 GiB of them numbers begin anew.
pub const fn directory_block(number: u32) -> u32 {
    Kind::Directories as u32 + (number % (Kind::Log as u32 - Kind::Directories as u32))
}

/// The block of the journal's log with this number.
pub const fn log_block(number: u32) -> u32 {
    Kind::Log as u32 + number
}

/// Blocks that `mke2fs` gives the journal of a filesystem of so many blocks.
pub const fn journal_blocks(filesystem_blocks: u64) -> u32 {
    match filesystem_blocks {
        0..32_768 => 1024,
        32_768..262_144 => 4096,
        262_144..524_288 => 8192,
        524_288..4_194_304 => 16_384,
        4_194_304..8_388_608 => 32_768,
        8_388_608..16_777_216 => 65_536,
        16_777_216..33_554_432 => 131_072,
        _ => 262_144,
    }
}

/// No block.
const NONE: u32 = u32::MAX;

/// Which blocks directories have: each is given when the directory first needs it.
#[derive(Debug, Clone, Default)]
pub struct DirectoryBlocks {
    /// By directory.
    blocks: Vec<Vec<u32>>,
    given: u32,
}

impl DirectoryBlocks {
    /// The block of the device that holds block `number` of a directory, if it was given one.
    pub fn find(&self, directory: u32, number: u32) -> Option<u32> {
        let block = *self.blocks.get(directory as usize)?.get(number as usize)?;
        (block != NONE).then_some(block)
    }

    /// The block of the device that holds block `number` of a directory.
    pub fn block(&mut self, directory: u32, number: u32) -> u32 {
        let (index, number) = (directory as usize, number as usize);
        if self.blocks.len() <= index {
            self.blocks.resize(index + 1, Vec::new());
        }
        let blocks = &mut self.blocks[index];
        if blocks.len() <= number {
            blocks.resize(number + 1, NONE);
        }
        if blocks[number] == NONE {
            blocks[number] = directory_block(self.given);
            self.given += 1;
        }
        blocks[number]
    }
}

/// How far each kind of metadata was made: what lies behind is new, and is not read but zeroed
/// (`INODE_UNINIT`, `BLOCK_UNINIT`, a block that a directory grows by).
#[derive(Debug, Clone, Default)]
pub struct Made([u32; 5]);

impl Made {
    const KINDS: [Kind; 5] =
        [Kind::Descriptors, Kind::BlockBitmaps, Kind::InodeBitmaps, Kind::Directories, Kind::Tables];

    fn mark(&mut self, block: u32) -> Option<(&mut u32, u32)> {
        if block >= OWN_FIRST {
            return None;
        }
        let kind = Self::KINDS.iter().rposition(|&kind| kind as u32 <= block)?;
        Some((&mut self.0[kind], block - Self::KINDS[kind] as u32))
    }

    /// Whether `block` is made.
    pub fn has(&mut self, block: u32) -> bool {
        self.mark(block).is_none_or(|(made, number)| number < *made)
    }

    /// Notes that `block` is made. False: it was there.
    pub fn make(&mut self, block: u32) -> bool {
        let Some((made, number)) = self.mark(block) else { return false };
        let is_new = number >= *made;
        *made = (*made).max(number + 1);
        is_new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sixteen_inodes_share_a_block_and_8192_a_group() {
        assert_eq!(table_block(15) + 1, table_block(16));
        assert_eq!(table_block(131_071) - table_block(0), 8191, "32 MiB of tables for 131072 files");
        assert_eq!(inode_bitmap(8191) + 1, inode_bitmap(8192));
        assert_eq!(inode_descriptor(64 * 8192 - 1) + 1, inode_descriptor(64 * 8192));
        assert_eq!(block_bitmap(32_767) + 1, block_bitmap(32_768));
        let last = (u64::MAX / 4096, u32::MAX);
        assert!(block_bitmap(last.0) < inode_bitmap(0) && block_descriptor(last.0) < block_bitmap(0));
        assert!(inode_descriptor(last.1) < block_bitmap(0) && inode_bitmap(last.1) < directory_block(0));
        assert!(directory_block(last.1) < log_block(0) && table_block(last.1) > table_block(0));
        assert!(log_block(journal_blocks(last.0)) < table_block(0));
    }

    /// In a guest of 6.12 a file of 25 MiB had one extent, and one of 1 GiB nine, and a block for them.
    #[test]
    fn what_four_extents_hold_needs_no_block_for_them() {
        let extents = |mib: u32| extents_of_run((mib << 20) / 4096);
        assert_eq!([0, 25, 512, 513, 1024].map(extents), [0, 1, 4, 5, 8]);
        assert_eq!([0, 1, 4, 5, 9].map(has_extent_block), [false, false, false, true, true]);
    }

    #[test]
    fn directories_get_blocks_as_they_grow() {
        let mut directories = DirectoryBlocks::default();
        let first = directories.block(3, 0);
        assert_eq!(directories.block(7, 0), first + 1);
        assert_eq!((directories.block(3, 2), directories.find(3, 1)), (first + 2, None));
        assert_eq!([0, 1, 2].map(|number| directories.block(3, number)), [first, first + 3, first + 2]);
        assert_eq!((directories.find(3, 1), directories.find(4, 0)), (Some(first + 3), None));
    }

    #[test]
    fn journals_are_as_large_as_mke2fs_makes_them() {
        let of_gib = |gib: u64| (u64::from(journal_blocks(gib << 18)) * 4096) >> 20;
        assert_eq!([1, 2, 4, 16, 32, 64, 128, 4096].map(of_gib), [32, 64, 64, 128, 256, 512, 1024, 1024]);
        assert_eq!(journal_blocks(100), 1024);
    }

    #[test]
    fn what_lies_behind_all_that_was_made_is_new() {
        let mut made = Made::default();
        assert!(made.make(table_block(0)));
        assert!(!made.make(table_block(15)), "the same block");
        assert!(made.make(table_block(160)) && !made.make(table_block(16)), "a table is made in order");
        assert!(made.make(inode_bitmap(0)) && made.make(directory_block(0)));
        assert!(!made.make(extent_block(7)), "whoever makes a file's own block tells");
    }
}
