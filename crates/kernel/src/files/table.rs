//! All files of the data disks: what is on the disks, and which inodes are in memory.
//!
//! Every disk has a filesystem of its own; the first one is at the top, others are mounted at directories there.
//! An inode in memory is found by its mapping, and by its number through the inode on the disk. Blocks are given
//! out one behind the other. Left out: a full disk, blocks that are freed. Next: [`super::lookup`] finds files,
//! [`super::names`] makes and removes them.

use std::ops::Range;
use std::rc::Rc;

use mm::base::ids::{DentryId, MappingId};
use mm::fs::dentry::Name;
use mm::fs::xfs::buf::INODES_IN_CLUSTER;
use mm::fs::xfs::items::CLUSTERS_IN_CHUNK;
use mm::fs::xfs::reclaimable::GROUPS;
use units::PAGE_SIZE;

use crate::files::directory::{Directory, EntryPlace};
use crate::files::disk::{DiskInodes, InodeFacts};
use crate::files::inode::{Inode, Metadata, NO_MAPPING};
use crate::files::spelling::Spellings;
use crate::fs::Filesystem;

/// All files of the data disks.
#[derive(Debug)]
pub(crate) struct Files {
    filesystem: Filesystem,
    pub(crate) spellings: Spellings,
    inodes: DiskInodes,
    directories: Vec<Directory>,
    free_directories: Vec<u32>,
    /// Inodes in memory.
    by_mapping: Vec<Option<Rc<Inode>>>,
    /// Memory of inodes that have left, for the next ones.
    spare: Vec<Rc<Inode>>,
    /// The top, and what is mounted there.
    roots: Vec<Rc<Inode>>,
    /// Names at the top where something is mounted, and which root that is.
    mounts: Vec<(Name, usize)>,
    disks: Vec<Disk>,
    /// Inodes without name and descriptors that still have pages on their way.
    pub(crate) orphans: Vec<Rc<Inode>>,
}

/// A disk with its filesystem.
#[derive(Debug)]
struct Disk {
    /// How far each group is given out, in bytes from the begin of the disk.
    used: [u64; GROUPS],
    /// The block device as a file: ext4 keeps its metadata in that mapping.
    device: Rc<Inode>,
}

/// Bytes of a group, of which there is no end: below the inodes of XFS.
const GROUP_BYTES: u64 = 1 << 42;

/// Inodes at most whose memory is kept for the next ones: they leave in bursts.
const SPARE_MAX: usize = 1 << 16;

/// The number of the first root; further ones count down.
const ROOT_NUMBER: u32 = u32::MAX - 1;

impl Files {
    /// No disk yet.
    pub(crate) fn new(filesystem: Filesystem) -> Self {
        Self {
            filesystem,
            spellings: Spellings::default(),
            inodes: DiskInodes::default(),
            directories: Vec::new(),
            free_directories: Vec::new(),
            by_mapping: Vec::new(),
            spare: Vec::new(),
            roots: Vec::new(),
            mounts: Vec::new(),
            disks: Vec::new(),
            orphans: Vec::new(),
        }
    }

    /// Inodes in memory and devices, in the order of their mappings: what `drop_caches` visits.
    pub(crate) fn inodes(&self) -> impl Iterator<Item = &Rc<Inode>> {
        self.by_mapping.iter().flatten()
    }

    /// The block device that `inode` is on, as a file.
    pub(crate) fn device_of(&self, inode: &Inode) -> Rc<Inode> {
        Rc::clone(&self.disks[usize::from(inode.device)].device)
    }

    /// A block device as a file.
    pub(crate) fn device(&self, disk: u16) -> Rc<Inode> {
        Rc::clone(&self.disks[usize::from(disk)].device)
    }

    /// The inode in memory with this mapping.
    pub(crate) fn by_mapping(&self, mapping: MappingId) -> Option<Rc<Inode>> {
        self.by_mapping.get(mapping.0 as usize).cloned().flatten()
    }

    fn register(&mut self, inode: &Rc<Inode>) {
        let index = inode.mapping.0 as usize;
        if self.by_mapping.len() <= index {
            self.by_mapping.resize(index + 1, None);
        }
        assert!(self.by_mapping[index].is_none(), "two inodes have {:?}", inode.mapping);
        self.by_mapping[index] = Some(Rc::clone(inode));
    }

    /// Makes the next disk, at boot, with the mapping of its block device.
    pub(crate) fn add_disk(&mut self, mapping: MappingId) {
        let pages = u32::MAX - 1;
        let mut device = Inode::new(0, mapping, u64::from(pages) * PAGE_SIZE);
        device.metadata = Metadata::None;
        device.device = u16::try_from(self.disks.len()).expect("a machine has few disks");
        device.add_extent(pages, DEVICE_OFFSET);
        let device = Rc::new(device);
        self.register(&device);
        let used = std::array::from_fn(|group| group as u64 * GROUP_BYTES);
        self.disks.push(Disk { used, device });
        if self.roots.is_empty() {
            self.add_root(0);
        }
    }

    fn add_root(&mut self, device: u16) {
        let index = u32::try_from(self.roots.len()).expect("few directories are mounted");
        let mut root = Inode::new(ROOT_NUMBER - index, NO_MAPPING, 0);
        root.metadata = Metadata::None;
        root.device = device;
        root.directory = Some(self.new_directory());
        self.roots.push(Rc::new(root));
    }

    /// The top of the first disk.
    pub(crate) fn top(&self) -> Rc<Inode> {
        Rc::clone(&self.roots[0])
    }

    /// The dentry of a root.
    pub(crate) fn root_dentry(root: &Inode) -> DentryId {
        DentryId::root(u16::try_from(ROOT_NUMBER - root.number).expect("few directories are mounted"))
    }

    /// Mounts disk `device` at a name at the top that is not taken. False: there is no such disk.
    pub(crate) fn mount(&mut self, name: &str, device: u16) -> bool {
        let exists = usize::from(device) < self.disks.len();
        if exists {
            let name = self.spellings.number(name);
            self.mounts.push((name, self.roots.len()));
            self.add_root(device);
        }
        exists
    }

    /// What is mounted at a name in a directory.
    pub(crate) fn mounted_at(&self, directory: &Inode, name: Name) -> Option<Rc<Inode>> {
        if self.mounts.is_empty() || directory.number != ROOT_NUMBER {
            return None;
        }
        let mount = self.mounts.iter().find(|(mount, _)| *mount == name);
        mount.map(|&(_, root)| Rc::clone(&self.roots[root]))
    }

    /// Where the next block that a disk gives out begins.
    pub(crate) fn next_offset(&self, device: u16) -> u64 {
        self.disks[usize::from(device)].used[0]
    }

    /// Gives blocks to a file up to page `end`, behind everything in its group of its disk that has blocks. `kept`:
    /// whether the blocks behind those, up to a boundary, are kept for it, too ([`kept_until`]).
    pub(crate) fn allocate(&mut self, inode: &Inode, end: u32, kept: bool) {
        let wanted = end.saturating_sub(inode.mapped_pages());
        let within = wanted.min(inode.room.get());
        if within > 0 {
            let behind = inode.extents.borrow().last().expect("what is kept lies behind blocks").end();
            inode.add_extent(within, behind * PAGE_SIZE);
            inode.room.set(inode.room.get() - within);
        }
        let rest = wanted - within;
        if rest > 0 {
            let used = &mut self.disks[usize::from(inode.device)].used[usize::from(inode.group.get())];
            inode.add_extent(rest, *used);
            inode.room.set(if kept { kept_until(end) - end } else { 0 });
            *used += u64::from(rest + inode.room.get()) * PAGE_SIZE;
        }
    }

    /// The largest number that an inode ever had.
    pub(crate) fn last_inode(&self) -> u32 {
        self.inodes.last()
    }

    /// Makes a file that is laid out, with all of its blocks, away from those of others: on the disk alone. Returns the
    /// number of its inode.
    pub(crate) fn lay_out(&mut self, directory: &Inode, name: Name, pages: u32, size: u64) -> u32 {
        let number = self.take_unused_number();
        let mut inode = Inode::new(number, NO_MAPPING, size);
        (inode.metadata, inode.device) = (Metadata::LaidOut, directory.device);
        self.align(inode.device);
        self.allocate(&inode, pages, false);
        self.align(inode.device);
        self.write(&inode);
        self.add_name(directory, name, number);
        let index = directory.directory.expect("a directory") as usize;
        self.directories[index].note_laid_out();
        number
    }

    fn align(&mut self, device: u16) {
        let used = &mut self.disks[usize::from(device)].used[0];
        *used = used.next_multiple_of(EXTENT_ALIGN);
    }
}

/// Inodes that come into memory and leave it.
impl Files {
    /// The number in memory of an inode, if it is there.
    pub(crate) fn in_memory(&self, number: u32) -> Option<Rc<Inode>> {
        self.inodes.mapping(number).and_then(|mapping| self.by_mapping(mapping))
    }

    /// The inode of the file at `path`, looked for in memory alone: none where it, or a directory above it, is not.
    pub(crate) fn look(&self, path: &str) -> Option<Rc<Inode>> {
        let mut names = path.split('/').filter(|name| !name.is_empty());
        names.try_fold(self.top(), |directory, text| {
            let name = self.spellings.find(text)?;
            let of_directory =
                || self.in_memory(directory.directory.and_then(|_| self.find(&directory, name))?);
            self.mounted_at(&directory, name).or_else(of_directory)
        })
    }

    /// Paths and mappings of the files in memory, directory by directory; none where directories have more than `most`
    /// names.
    pub(crate) fn named(&self, most: usize) -> Option<Vec<(String, MappingId)>> {
        let (mut seen, mut named) = (0, Vec::new());
        let mut open = vec![(String::new(), self.top())];
        while let Some((path, directory)) = open.pop() {
            let mounts = self.mounts.iter().map(|&(name, root)| (name, Some(Rc::clone(&self.roots[root]))));
            let mounts = mounts.filter(|_| directory.number == ROOT_NUMBER);
            let entries = self.names(&directory).entries();
            for (name, inode) in mounts.chain(entries.map(|(name, number)| (name, self.in_memory(number)))) {
                seen += 1;
                if seen > most {
                    return None;
                }
                let Some(inode) = inode else { continue };
                let path = format!("{path}{}", self.spellings.text(name));
                match inode.directory {
                    Some(_) => open.push((format!("{path}/"), inode)),
                    None => named.push((path, inode.mapping)),
                }
            }
        }
        Some(named)
    }

    /// Reads an inode that is not in memory.
    pub(crate) fn bring_in(&mut self, number: u32, mapping: MappingId) -> Rc<Inode> {
        let InodeFacts { size, device, metadata, directory, extents } = self.inodes.read(number);
        let mut inode = Inode::new(number, mapping, size);
        (inode.device, inode.metadata, inode.directory) = (device, metadata, directory);
        inode.extents = extents.into();
        inode.has_leaf = inode.needs_leaf().into();
        if let Some(directory) = directory {
            self.directories[directory as usize].wake();
        }
        self.enter(inode)
    }

    /// A number for an inode on the disk alone: nothing of one that had it before is in memory.
    fn take_unused_number(&mut self) -> u32 {
        let mut used = Vec::new();
        let number = loop {
            let number = self.inodes.take_number();
            if self.inodes.mapping(number).is_none() {
                break number;
            }
            used.push(number);
        };
        used.into_iter().for_each(|number| self.inodes.free(number));
        number
    }

    /// A number for a new inode. One that had it before and is gone may still be in memory: its mapping.
    pub(crate) fn take_number(&mut self) -> (u32, Option<MappingId>) {
        let number = self.inodes.take_number();
        let left = self.inodes.mapping(number);
        if let Some(mapping) = left {
            self.by_mapping[mapping.0 as usize] = None;
        }
        (number, left)
    }

    /// The file of an inode that stays in memory is gone (`xfs_inactive`): the next file that is made may take its
    /// number, and what is in memory with it. Not if it was the last one of its chunk, which is given back: its numbers
    /// are free when none of its inodes is in memory. 500 files that guests of 5.10 made and removed again and again,
    /// beside others in one chunk of theirs, made 436 inodes more each time.
    pub(crate) fn inactivate(&mut self, inode: &Inode) {
        if inode.directory.is_some() {
            return;
        }
        if !self.is_chunk_empty(inode.number) {
            self.inodes.free(inode.number);
            inode.reusable.set(true);
            return;
        }
        let known = chunk_of(inode.number).start..self.inodes.last() + 1;
        for number in chunk_of(inode.number).filter(|number| known.contains(number)) {
            if self.in_memory(number).is_some_and(|inode| inode.reusable.replace(false)) {
                self.inodes.withdraw(number);
            }
        }
    }

    /// Makes a new inode, which has no name yet.
    pub(crate) fn create(
        &mut self,
        directory: &Inode,
        number: u32,
        mapping: MappingId,
        is_directory: bool,
    ) -> Rc<Inode> {
        let mut inode = Inode::new(number, mapping, 0);
        inode.device = directory.device;
        if is_directory {
            inode.directory = Some(self.new_directory());
        }
        self.enter(inode)
    }

    /// Whether all inodes of the chunk of XFS that this number is in are free, or have lost their names.
    pub(crate) fn is_chunk_empty(&self, number: u32) -> bool {
        chunk_of(number).all(|number| {
            self.inodes.is_free(number) || self.in_memory(number).is_some_and(|inode| inode.unlinked.get())
        })
    }

    fn enter(&mut self, inode: Inode) -> Rc<Inode> {
        let inode = match self.spare.pop() {
            Some(mut spare) => {
                *Rc::get_mut(&mut spare).expect("nobody uses it") = inode;
                spare
            }
            None => Rc::new(inode),
        };
        self.inodes.set_mapping(inode.number, Some(inode.mapping));
        self.register(&inode);
        inode
    }

    fn write(&mut self, inode: &Inode) {
        let facts = InodeFacts {
            size: inode.size.get(),
            device: inode.device,
            metadata: inode.metadata,
            directory: inode.directory,
            extents: inode.extents.take(),
        };
        self.inodes.write(inode.number, facts);
    }

    /// An inode has left memory: it is written, or gone for good when it has no name.
    pub(crate) fn release(&mut self, mapping: MappingId) {
        let mut inode = self.by_mapping[mapping.0 as usize].take().expect("an inode in memory");
        inode.gone.set(true);
        self.inodes.set_mapping(inode.number, None);
        if inode.unlinked.get() {
            if let Some(directory) = inode.directory {
                self.directories[directory as usize] = Directory::default();
                self.free_directories.push(directory);
            }
            if !inode.reusable.get() {
                self.inodes.free(inode.number);
            }
        } else {
            self.write(&inode);
            if let Some(directory) = inode.directory {
                self.directories[directory as usize].rest();
            }
        }
        if self.spare.len() < SPARE_MAX && Rc::get_mut(&mut inode).is_some() {
            self.spare.push(inode);
        }
    }
}

/// Names in directories.
impl Files {
    fn new_directory(&mut self) -> u32 {
        self.free_directories.pop().unwrap_or_else(|| {
            self.directories.push(Directory::default());
            u32::try_from(self.directories.len() - 1).expect("fewer directories than inodes")
        })
    }

    /// The names in a directory.
    pub(crate) fn names(&self, directory: &Inode) -> &Directory {
        &self.directories[directory.directory.expect("a directory") as usize]
    }

    /// The inode that has a name.
    pub(crate) fn find(&self, directory: &Inode, name: Name) -> Option<u32> {
        self.names(directory).find(name)
    }

    /// Where in its directory a name is, or would be.
    pub(crate) fn place(&self, directory: &Inode, name: Name) -> EntryPlace {
        self.names(directory).place(name)
    }

    /// Makes room for a name where it is to go, if it is not there. The blocks that one was split into for that.
    pub(crate) fn make_room(&mut self, directory: &Inode, name: Name) -> Option<[u32; 2]> {
        let length = self.spellings.length(name);
        let index = directory.directory.expect("a directory") as usize;
        let directory = &mut self.directories[index];
        if directory.find(name).is_some() { None } else { directory.make_room(name, self.filesystem, length) }
    }

    /// Gives an inode a name that is not taken.
    pub(crate) fn add_name(&mut self, directory: &Inode, name: Name, number: u32) {
        let length = self.spellings.length(name);
        let index = directory.directory.expect("a directory") as usize;
        self.directories[index].add(name, number, self.filesystem, length);
    }

    /// Takes a name away that is there.
    pub(crate) fn remove_name(&mut self, directory: &Inode, name: Name) {
        let length = self.spellings.length(name);
        let index = directory.directory.expect("a directory") as usize;
        self.directories[index].remove(name, self.filesystem, length);
    }

    /// The directory on the disk that a path leads to, as if it were in memory; none when there is none.
    pub(crate) fn directory_on_disk(&mut self, path: &str) -> Option<Rc<Inode>> {
        let mut directory = self.top();
        for name in path.split('/').filter(|name| !name.is_empty()) {
            let name = self.spellings.find(name)?;
            if let Some(root) = self.mounted_at(&directory, name) {
                directory = root;
                continue;
            }
            let number = self.find(&directory, name)?;
            directory = match self.in_memory(number) {
                Some(inode) => inode,
                None => {
                    let facts = self.inodes.read(number);
                    let mut inode = Inode::new(number, NO_MAPPING, facts.size);
                    (inode.device, inode.directory) = (facts.device, facts.directory);
                    Rc::new(inode)
                }
            };
            self.directories[directory.directory? as usize].wake();
        }
        Some(directory)
    }

    /// Checks that names, inodes on the disk and inodes in memory agree; returns what is wrong. For tests.
    pub(crate) fn check(&self) -> Result<(), String> {
        let roots = self.roots.iter().map(|root| root.directory.expect("a directory"));
        let mut directories: Vec<u32> = roots.collect();
        let mut named = 0;
        while let Some(directory) = directories.pop() {
            for (name, number) in self.directories[directory as usize].entries() {
                named += 1;
                let facts = self.inodes.read(number);
                let inode = self.in_memory(number);
                let unlinked = inode.is_some_and(|inode| inode.unlinked.get() || inode.gone.get());
                if unlinked {
                    return Err(format!("{} leads to an inode that is gone", self.spellings.text(name)));
                }
                let below = self.in_memory(number).map_or(facts.directory, |inode| inode.directory);
                directories.extend(below);
            }
        }
        let nameless = self.inodes().filter(|inode| inode.unlinked.get() && !inode.reusable.get()).count();
        if named + nameless == self.inodes.count() {
            Ok(())
        } else {
            Err(format!("{} inodes, {named} names, {nameless} without one", self.inodes.count()))
        }
    }
}

/// Numbers of the inodes in a chunk of XFS.
fn chunk_of(number: u32) -> Range<u32> {
    const INODES: u32 = CLUSTERS_IN_CHUNK * INODES_IN_CLUSTER;
    let first = number / INODES * INODES;
    first..first + INODES
}

/// Laid-out files start at multiples of 1 MiB, so that windows never share a block.
const EXTENT_ALIGN: u64 = 1 << 20;

/// Blocks of a file on ext4 up to which a file of `pages` that is open is given blocks one behind the other, while
/// others are written beside it (`ext4_mb_normalize_request`). The first 16 come from where all small files take
/// theirs. Measured: 1,000 files that got a block each in 40 rounds had 16 extents after 16 of them, 17 up to the 32nd,
/// and then 18; beyond that as known of Linux.
const fn kept_until(pages: u32) -> u32 {
    match pages {
        0..=16 => pages,
        17..=256 => pages.next_power_of_two(),
        257..=1024 => pages.next_multiple_of(512),
        1025..=2048 => pages.next_multiple_of(1024),
        _ => pages.next_multiple_of(2048),
    }
}

/// Where the metadata of ext4 lies: away from all data.
const DEVICE_OFFSET: u64 = 1 << 45;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_grows_keeps_what_lies_behind_it() {
        let kept = [1, 16, 17, 33, 256, 257, 1024, 1025, 2049].map(kept_until);
        assert_eq!(kept, [1, 16, 32, 64, 256, 512, 1024, 2048, 4096]);
    }
}
