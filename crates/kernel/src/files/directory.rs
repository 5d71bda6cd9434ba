//! A directory on the disk: names and the numbers of their inodes, in the order in which they were made.
//!
//! 12 bytes an entry, and some 17 to find it while the directory's inode is in memory. Those of ext3 and ext4 are
//! sorted by hash: a block that is full is split in two (`do_split`), so that blocks are between half and quite full.
//! A directory never has fewer blocks than it once had. Left out: links to itself and its parent; which entries a block
//! has, so that it is split where half of them would be. Next: [`super::spelling`] for the names,
//! [`crate::fs::directories`] for what a filesystem does with the blocks.

use mm::base::hash::{IdTable, hash_name};
use mm::fs::dentry::Name;

use crate::fs::Filesystem;

/// Bytes of a block.
const BLOCK: u64 = 4096;
/// Bytes in use of a block of XFS. Assumed.
const USED: u64 = 3072;

/// Where in a directory that is sorted by hash the entry of a name lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EntryPlace {
    /// The block that the hash of the name leads to.
    pub(crate) by_hash: u32,
    /// Blocks that the directory has.
    pub(crate) blocks: u32,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    /// The halves of the name, so that an entry takes 12 bytes.
    name: [u32; 2],
    /// [`GONE`] when it was removed.
    inode: u32,
}

/// No inode.
const GONE: u32 = u32::MAX;

impl Entry {
    fn new(name: Name, inode: u32) -> Self {
        Self { name: [(name.0 >> 32) as u32, name.0 as u32], inode }
    }

    fn name(&self) -> Name {
        Name((u64::from(self.name[0]) << 32) | u64::from(self.name[1]))
    }
}

fn hash(name: Name) -> u32 {
    hash_name(0, name.0)
}

/// A block of entries whose hashes are from `first` up to the next block's.
#[derive(Debug, Clone, Copy)]
struct Leaf {
    first: u32,
    bytes: u32,
    /// Its number among all blocks, in the order in which they were made.
    number: u32,
}

/// The hash by which a directory is sorted. The hash table takes bits from below, and is fond of names that count
/// upwards.
fn sorted_by(name: Name) -> u32 {
    hash_name(1, name.0.wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

/// Where a block from one hash to another is split: where half of its entries are. With 200 of them that is within
/// 3.5 % of the middle two times in three; if it were the middle, all blocks would be full at the same time.
fn middle(first: u32, end: u64, number: u32) -> u32 {
    let span = end - u64::from(first);
    let off = hash_name(2, number.into()).count_ones();
    (u64::from(first) + span / 2 + span * u64::from(off) / 81 - span * 16 / 81) as u32
}

/// A directory.
#[derive(Debug, Default)]
pub(crate) struct Directory {
    entries: Vec<Entry>,
    index: IdTable,
    /// Bytes of its entries on XFS, and the most that there ever were.
    bytes: u64,
    most_bytes: u64,
    /// Blocks that are sorted by hash, with their hashes from below.
    leaves: Vec<Leaf>,
    /// Blocks that it had when the last of its files was laid out: those are on the disk since long ago.
    laid_out: u32,
}

impl Filesystem {
    /// Bytes that an entry takes whose name has so many characters (`ext4_dir_rec_len`,
    /// `xfs_dir2_data_entsize`).
    const fn entry_bytes(self, length: u32) -> u64 {
        match self {
            Self::Ext3 | Self::Ext4 => (length as u64 + 8).next_multiple_of(4),
            Self::Xfs => (length as u64 + 12).next_multiple_of(8),
        }
    }
}

impl Directory {
    fn position(&self, name: Name) -> Option<u32> {
        self.index.find(hash(name), |at| self.entries[at as usize].name() == name)
    }

    /// The inode that has this name.
    pub(crate) fn find(&self, name: Name) -> Option<u32> {
        self.position(name).map(|at| self.entries[at as usize].inode)
    }

    /// How many names there are.
    pub(crate) fn len(&self) -> u32 {
        self.index.len()
    }

    /// Gives an inode a name, of so many characters, that is not taken.
    pub(crate) fn add(&mut self, name: Name, inode: u32, filesystem: Filesystem, length: u32) {
        assert!(inode != GONE, "the last number is no inode's");
        let at = u32::try_from(self.entries.len()).expect("fewer names than inodes");
        self.index.insert(hash(name), at);
        self.entries.push(Entry::new(name, inode));
        let bytes = filesystem.entry_bytes(length);
        if filesystem == Filesystem::Xfs {
            self.bytes += bytes;
            self.most_bytes = self.most_bytes.max(self.bytes);
            return;
        }
        self.make_room(name, filesystem, length);
        let leaf = self.leaf(name);
        self.leaves[leaf].bytes += bytes as u32;
    }

    /// Splits the block that a name is to go into, if it has no room. The two that it becomes: itself, and a new one.
    pub(crate) fn make_room(&mut self, name: Name, filesystem: Filesystem, length: u32) -> Option<[u32; 2]> {
        if self.leaves.is_empty() {
            self.leaves.push(Leaf { first: 0, bytes: 0, number: 0 });
        }
        let at = self.leaf(name);
        let Leaf { first, bytes, number } = self.leaves[at];
        if u64::from(bytes) + filesystem.entry_bytes(length) <= BLOCK {
            return None;
        }
        let end = self.leaves.get(at + 1).map_or(1 << 32, |next| u64::from(next.first));
        let new = self.blocks();
        let middle = middle(first, end, new);
        if middle == first {
            return None;
        }
        self.leaves[at].bytes -= bytes / 2;
        self.leaves.insert(at + 1, Leaf { first: middle, bytes: bytes / 2, number: new });
        Some([number, new])
    }

    /// Which of the blocks that are sorted by hash has a name, or would have it.
    fn leaf(&self, name: Name) -> usize {
        let hash = sorted_by(name);
        self.leaves.partition_point(|leaf| leaf.first <= hash) - 1
    }

    /// Takes a name away that is there.
    pub(crate) fn remove(&mut self, name: Name, filesystem: Filesystem, length: u32) {
        let at = self.position(name).expect("only what is there is removed");
        self.index.remove(hash(name), at);
        self.entries[at as usize].inode = GONE;
        let bytes = filesystem.entry_bytes(length);
        if filesystem == Filesystem::Xfs {
            self.bytes -= bytes;
        } else {
            let leaf = self.leaf(name);
            // A split takes entries to be as many on both sides, and they may be fewer on this one.
            self.leaves[leaf].bytes = self.leaves[leaf].bytes.saturating_sub(bytes as u32);
        }
        if self.entries.len() > (2 * self.index.len() as usize) + 16 || self.index.is_empty() {
            self.close_gaps();
        }
    }

    /// Forgets removed entries: as many as are left at least, so that each pays for itself.
    fn close_gaps(&mut self) {
        self.entries.retain(|entry| entry.inode != GONE);
        self.entries.shrink_to_fit();
        self.index = IdTable::default();
        for (at, entry) in (0..).zip(&self.entries) {
            self.index.insert(hash(entry.name()), at);
        }
    }

    /// Nobody looks for names here as long as its inode is out of memory: what finds them goes.
    pub(crate) fn rest(&mut self) {
        self.index = IdTable::default();
        self.entries.retain(|entry| entry.inode != GONE);
        self.entries.shrink_to_fit();
    }

    /// Names can be found again.
    pub(crate) fn wake(&mut self) {
        if self.index.is_empty() && !self.entries.is_empty() {
            self.close_gaps();
        }
    }

    /// All names with their inodes, the oldest first.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (Name, u32)> + '_ {
        let present = self.entries.iter().filter(|entry| entry.inode != GONE);
        present.map(|entry| (entry.name(), entry.inode))
    }

    /// All that it has now was there before anything ran.
    pub(crate) fn note_laid_out(&mut self) {
        self.laid_out = self.blocks();
    }

    /// Blocks that were there before anything ran, without the one that leads to the others.
    pub(crate) fn laid_out(&self) -> u32 {
        self.laid_out
    }

    /// Blocks that it has.
    pub(crate) fn blocks(&self) -> u32 {
        if !self.leaves.is_empty() {
            return u32::try_from(self.leaves.len()).expect("a directory has less than 16 TiB");
        }
        let blocks = if self.most_bytes <= BLOCK { 1 } else { self.most_bytes.div_ceil(USED) };
        u32::try_from(blocks).expect("a directory has less than 16 TiB")
    }

    /// Where the entry of a name is, or would be, of a directory that is sorted by hash.
    pub(crate) fn place(&self, name: Name) -> EntryPlace {
        if self.leaves.is_empty() {
            return EntryPlace { by_hash: 0, blocks: 1 };
        }
        EntryPlace { by_hash: self.leaves[self.leaf(name)].number, blocks: self.blocks() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FS: Filesystem = Filesystem::Ext4;

    fn add(directory: &mut Directory, names: std::ops::Range<u64>) {
        for name in names {
            directory.add(Name(name), name as u32, FS, 12);
        }
    }

    #[test]
    fn a_directory_that_rested_finds_its_names() {
        let mut directory = Directory::default();
        add(&mut directory, 0..100);
        directory.remove(Name(7), FS, 12);
        directory.rest();
        directory.wake();
        assert_eq!((directory.len(), directory.find(Name(7)), directory.find(Name(8))), (99, None, Some(8)));
    }

    #[test]
    fn names_stay_in_the_order_in_which_they_were_made() {
        let mut directory = Directory::default();
        add(&mut directory, 0..100);
        for name in (0..100).filter(|name| name % 10 != 3) {
            directory.remove(Name(name), FS, 12);
        }
        add(&mut directory, 5..7);
        let names: Vec<u32> = directory.entries().map(|(_, inode)| inode).collect();
        assert_eq!(names, [3, 13, 23, 33, 43, 53, 63, 73, 83, 93, 5, 6]);
        assert_eq!((directory.find(Name(43)), directory.find(Name(44))), (Some(43), None));
        assert!(directory.entries.len() < 50, "removed entries are forgotten");
    }

    /// 20 bytes each: 204 fill a block. Of 1,000 names in four blocks, 250 are in each, so most are split.
    #[test]
    fn a_directory_keeps_its_blocks() {
        let mut directory = Directory::default();
        assert_eq!(directory.blocks(), 1);
        add(&mut directory, 0..204);
        assert_eq!(directory.blocks(), 1);
        add(&mut directory, 204..1000);
        assert_eq!(directory.blocks(), 7, "20000 bytes");
        let places: Vec<EntryPlace> = (0..1000).map(|name| directory.place(Name(name))).collect();
        for block in 0..7 {
            let here = places.iter().filter(|place| place.by_hash == block).count();
            assert!((60..=220).contains(&here), "{here} of 1000 names in block {block}");
        }
        for name in 0..1000 {
            directory.remove(Name(name), FS, 12);
        }
        assert_eq!((directory.len(), directory.blocks()), (0, 7));
    }
}
