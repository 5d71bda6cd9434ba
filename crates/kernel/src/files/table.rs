//! All files of the data disks: names, inodes, and which blocks are given out.
//!
//! Every disk has a filesystem of its own, mounted at a directory; what lies in no such directory is on
//! the first disk. Blocks are given out one behind the other. Left out: a full disk, blocks that are
//! freed. Next: [`super::names`] makes and removes files.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use mm::base::ids::MappingId;
use units::PAGE_SIZE;

use crate::files::inode::{Inode, Metadata};

/// All files of the data disks.
#[derive(Debug, Default)]
pub(crate) struct Files {
    pub(crate) by_path: BTreeMap<String, Rc<Inode>>,
    pub(crate) by_mapping: Vec<Option<Rc<Inode>>>,
    pub(crate) directories: BTreeSet<String>,
    /// Directories at which disks are mounted.
    mounts: Vec<(String, u16)>,
    next_inode: u32,
    disks: Vec<Disk>,
    /// Inodes without name and descriptors that still have pages on their way.
    pub(crate) orphans: Vec<Rc<Inode>>,
}

/// A disk with its filesystem.
#[derive(Debug)]
struct Disk {
    /// Bytes that are given out.
    used: u64,
    /// The block device as a file: ext4 keeps its metadata in that mapping.
    device: Rc<Inode>,
}

impl Files {
    /// Every file and the devices: what `drop_caches` visits.
    pub(crate) fn inodes(&self) -> impl Iterator<Item = &Rc<Inode>> {
        let devices = self.disks.iter().map(|disk| &disk.device);
        self.by_path.values().chain(&self.orphans).chain(devices)
    }

    /// The block device that `inode` is on, as a file.
    pub(crate) fn device_of(&self, inode: &Inode) -> Rc<Inode> {
        Rc::clone(&self.disks[usize::from(inode.device)].device)
    }

    /// A block device as a file.
    pub(crate) fn device(&self, disk: u16) -> Rc<Inode> {
        Rc::clone(&self.disks[usize::from(disk)].device)
    }

    /// Lets files below `directory` lie on disk `device`. False: there is no such disk.
    pub(crate) fn mount(&mut self, directory: &str, device: u16) -> bool {
        let exists = usize::from(device) < self.disks.len();
        if exists {
            self.mounts.push((directory.to_string(), device));
        }
        exists
    }

    fn device_at(&self, path: &str) -> u16 {
        let directory = path.split_once('/').map(|(directory, _)| directory);
        let mount = self.mounts.iter().find(|(mount, _)| Some(mount.as_str()) == directory);
        mount.map_or(0, |&(_, device)| device)
    }

    pub(crate) fn by_mapping(&self, mapping: MappingId) -> Option<Rc<Inode>> {
        self.by_mapping.get(mapping.0 as usize).cloned().flatten()
    }

    fn register(&mut self, inode: &Rc<Inode>) {
        let index = inode.mapping.0 as usize;
        if self.by_mapping.len() <= index {
            self.by_mapping.resize(index + 1, None);
        }
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
        self.disks.push(Disk { used: 0, device });
    }

    /// Where the next block that a disk gives out begins.
    pub(crate) fn next_offset(&self, device: u16) -> u64 {
        self.disks[usize::from(device)].used
    }

    /// Gives blocks to a file up to page `end`, behind everything on its disk that has blocks.
    pub(crate) fn allocate(&mut self, inode: &Inode, end: u32) {
        let used = &mut self.disks[usize::from(inode.device)].used;
        let mapped = inode.mapped_pages();
        if end > mapped {
            inode.add_extent(end - mapped, *used);
            *used += u64::from(end - mapped) * PAGE_SIZE;
        }
    }

    /// Gives a file that is laid out all of its blocks, away from those of others.
    pub(crate) fn lay_out(&mut self, inode: &Inode, pages: u32) {
        self.align(inode);
        self.allocate(inode, pages);
        self.align(inode);
    }

    fn align(&mut self, inode: &Inode) {
        let used = &mut self.disks[usize::from(inode.device)].used;
        *used = used.next_multiple_of(EXTENT_ALIGN);
    }

    pub(crate) fn add(&mut self, path: &str, mapping: MappingId, size: u64, metadata: Metadata) -> Rc<Inode> {
        let mut inode = Inode::new(self.next_inode, mapping, size);
        inode.metadata = metadata;
        inode.device = self.device_at(path);
        self.next_inode += 1;
        let inode = Rc::new(inode);
        self.register(&inode);
        self.by_path.insert(path.to_string(), Rc::clone(&inode));
        inode
    }
}

/// Laid-out files start at multiples of 1 MiB, so that windows never share a block.
const EXTENT_ALIGN: u64 = 1 << 20;

/// Where the metadata of ext4 lies: away from all data.
const DEVICE_OFFSET: u64 = 1 << 45;
