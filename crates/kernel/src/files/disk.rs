//! Inodes on the disk: 24 bytes each, whether or not they are in memory.
//!
//! A number that is free is given out again, the lowest first. Left out: times, owners, modes, links. Next:
//! [`super::inode`] for those in memory, [`super::table`], which has both.

use std::collections::BTreeMap;

use mm::base::ids::MappingId;

use crate::files::extents::{Extent, Extents};
use crate::files::inode::Metadata;

/// What is written in an inode.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct InodeFacts {
    pub(crate) size: u64,
    pub(crate) device: u16,
    pub(crate) metadata: Metadata,
    /// It is a directory: which one.
    pub(crate) directory: Option<u32>,
    pub(crate) extents: Extents,
}

/// An inode on the disk.
#[derive(Debug, Clone, Copy)]
struct DiskInode {
    /// The halves of the size, so that an inode takes 24 bytes.
    size: [u32; 2],
    /// Where its first extent begins, in pages; of a directory which one it is.
    first: u32,
    /// Pages of its first extent.
    pages: u32,
    /// Its number in memory; [`NONE`] when it is not there.
    mapping: u32,
    device: u16,
    kind: Kind,
}

const _: () = assert!(size_of::<DiskInode>() == 24);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Free,
    File,
    LaidOut,
    Directory,
}

const NONE: u32 = u32::MAX;

/// All inodes of the disks, by number.
#[derive(Debug, Default)]
pub(crate) struct DiskInodes {
    inodes: Vec<DiskInode>,
    /// Extents behind the first one of those that have more.
    extents: BTreeMap<u32, Vec<Extent>>,
    free: FreeNumbers,
}

impl DiskInodes {
    /// Takes a free number, or the next one.
    pub(crate) fn take_number(&mut self) -> u32 {
        let blank =
            DiskInode { size: [0; 2], first: 0, pages: 0, mapping: NONE, device: 0, kind: Kind::File };
        if let Some(number) = self.free.take() {
            let free = &mut self.inodes[number as usize];
            *free = DiskInode { mapping: free.mapping, ..blank };
            return number;
        }
        self.inodes.push(blank);
        u32::try_from(self.inodes.len() - 1).expect("inodes are numbered in 32 bits")
    }

    /// An inode is no more.
    pub(crate) fn free(&mut self, number: u32) {
        assert!(self.inodes[number as usize].kind != Kind::Free, "inode {number} is freed once");
        self.inodes[number as usize].kind = Kind::Free;
        self.extents.remove(&number);
        self.free.add(number);
    }

    /// A free number is not to be given out until it is free again.
    pub(crate) fn withdraw(&mut self, number: u32) {
        self.inodes[number as usize].kind = Kind::File;
        self.free.remove(number);
    }

    /// Whether there is no such inode.
    pub(crate) fn is_free(&self, number: u32) -> bool {
        self.inodes.get(number as usize).is_none_or(|inode| inode.kind == Kind::Free)
    }

    /// The number in memory of an inode that is there.
    pub(crate) fn mapping(&self, number: u32) -> Option<MappingId> {
        let mapping = self.inodes[number as usize].mapping;
        (mapping != NONE).then_some(MappingId(mapping))
    }

    /// An inode comes into memory, or leaves it.
    pub(crate) fn set_mapping(&mut self, number: u32, mapping: Option<MappingId>) {
        self.inodes[number as usize].mapping = mapping.map_or(NONE, |mapping| mapping.0);
    }

    /// Writes an inode.
    pub(crate) fn write(&mut self, number: u32, facts: InodeFacts) {
        let InodeFacts { size, device, metadata, directory, extents } = facts;
        let kind = match (metadata, directory) {
            (_, Some(_)) => Kind::Directory,
            (Metadata::LaidOut, None) => Kind::LaidOut,
            (Metadata::Table | Metadata::None, None) => Kind::File,
        };
        let (block, pages, more) = extents.into_parts();
        let first = directory.unwrap_or_else(|| u32::try_from(block).expect("disks have less than 16 TiB"));
        let inode = &mut self.inodes[number as usize];
        let size = [(size >> 32) as u32, size as u32];
        *inode = DiskInode { size, first, pages, mapping: inode.mapping, device, kind };
        if more.is_empty() {
            self.extents.remove(&number);
        } else {
            self.extents.insert(number, more);
        }
    }

    /// Reads an inode.
    pub(crate) fn read(&self, number: u32) -> InodeFacts {
        let DiskInode { size, first, pages, device, kind, .. } = self.inodes[number as usize];
        assert!(kind != Kind::Free, "a name leads to the free inode {number}");
        let more = self.extents.get(&number).cloned().unwrap_or_default();
        InodeFacts {
            size: (u64::from(size[0]) << 32) | u64::from(size[1]),
            device,
            metadata: if kind == Kind::LaidOut { Metadata::LaidOut } else { Metadata::Table },
            directory: (kind == Kind::Directory).then_some(first),
            extents: Extents::from_parts(if pages == 0 { 0 } else { u64::from(first) }, pages, more),
        }
    }

    /// The largest number that was ever given.
    pub(crate) fn last(&self) -> u32 {
        self.inodes.len() as u32 - 1
    }

    /// Inodes that there are.
    pub(crate) fn count(&self) -> usize {
        self.inodes.iter().filter(|inode| inode.kind != Kind::Free).count()
    }
}

/// Numbers that are free: a bit each, a bit for each 64 of those, and a bit for each 64 of these.
#[derive(Debug, Default)]
struct FreeNumbers {
    levels: [Vec<u64>; 3],
}

impl FreeNumbers {
    fn add(&mut self, number: u32) {
        let mut at = number as usize;
        for level in &mut self.levels {
            if level.len() <= at / 64 {
                level.resize((at / 64) + 1, 0);
            }
            level[at / 64] |= 1 << (at % 64);
            at /= 64;
        }
    }

    fn remove(&mut self, number: u32) {
        let mut at = number as usize;
        for level in &mut self.levels {
            level[at / 64] &= !(1 << (at % 64));
            if level[at / 64] != 0 {
                break;
            }
            at /= 64;
        }
    }

    /// Takes the lowest one.
    fn take(&mut self) -> Option<u32> {
        let [numbers, words, top] = &mut self.levels;
        let third = top.iter().position(|&word| word != 0)?;
        let second = (third * 64) + top[third].trailing_zeros() as usize;
        let first = (second * 64) + words[second].trailing_zeros() as usize;
        let number = (first * 64) + numbers[first].trailing_zeros() as usize;
        let number = u32::try_from(number).expect("it was added as one");
        self.remove(number);
        Some(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_free_number_is_given_out_first() {
        let mut free = FreeNumbers::default();
        let mut stream = units::Seed(3).stream("numbers");
        let mut numbers: Vec<u32> = (0..400).map(|_| stream.below(1 << 20) as u32).collect();
        for &number in &numbers {
            free.add(number);
        }
        numbers.sort_unstable();
        numbers.dedup();
        let taken: Vec<u32> = std::iter::from_fn(|| free.take()).collect();
        assert_eq!(taken, numbers);
    }

    #[test]
    fn what_is_written_is_read() {
        let mut disk = DiskInodes::default();
        let file = InodeFacts {
            size: 5 << 32 | 7,
            device: 3,
            metadata: Metadata::LaidOut,
            directory: None,
            extents: Extents::from_parts(77, 9, Vec::new()),
        };
        let two = vec![Extent { first: 9, pages: 1, block: 4 }];
        let extents = Extents::from_parts(77, 9, two);
        let long = InodeFacts { extents, metadata: Metadata::Table, ..file.clone() };
        let directory = InodeFacts { directory: Some(6), extents: Extents::default(), ..long.clone() };
        let empty = InodeFacts { size: 0, directory: None, ..directory.clone() };
        let all = [file, long, directory, empty];
        for facts in &all {
            let number = disk.take_number();
            disk.write(number, facts.clone());
        }
        for (number, facts) in (0..).zip(&all) {
            assert_eq!(disk.read(number), *facts);
            assert_eq!(disk.mapping(number), None);
        }
        disk.free(1);
        disk.free(0);
        assert_eq!((disk.take_number(), disk.read(0).extents.pages()), (0, 0), "and nothing is left of it");
        assert_eq!((disk.take_number(), disk.count()), (1, 4));
    }
}
