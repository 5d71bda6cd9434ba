//! All files of the data disk: names, inodes, and which blocks are given out.
//!
//! Blocks are given out one behind the other. Left out: a full disk, blocks that are freed. Next:
//! [`super::names`] makes and removes files.

use std::collections::BTreeMap;
use std::rc::Rc;

use mm::base::ids::MappingId;
use units::PAGE_SIZE;

use crate::files::inode::{Inode, Metadata};

/// All files of the data disk.
#[derive(Debug, Default)]
pub(crate) struct Files {
    pub(crate) by_path: BTreeMap<String, Rc<Inode>>,
    pub(crate) by_mapping: Vec<Option<Rc<Inode>>>,
    pub(crate) directories: Vec<String>,
    next_inode: u32,
    pub(crate) disk_used: u64,
    /// The block device as a file: ext4 keeps its metadata in that mapping.
    device: Option<Rc<Inode>>,
    /// Inodes without name and descriptors that still have pages on their way.
    pub(crate) orphans: Vec<Rc<Inode>>,
}

impl Files {
    /// Every file and the device: what `drop_caches` visits.
    pub(crate) fn inodes(&self) -> impl Iterator<Item = &Rc<Inode>> {
        self.by_path.values().chain(&self.orphans).chain(&self.device)
    }

    pub(crate) fn device(&self) -> Option<Rc<Inode>> {
        self.device.clone()
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

    /// Makes the device's mapping, once, at boot.
    pub(crate) fn set_device(&mut self, mapping: MappingId) {
        let pages = u32::MAX - 1;
        let mut device = Inode::new(0, mapping, u64::from(pages) * PAGE_SIZE);
        device.metadata = Metadata::None;
        device.add_extent(pages, DEVICE_OFFSET);
        let device = Rc::new(device);
        self.register(&device);
        self.device = Some(device);
    }

    /// Gives blocks to a file up to page `end`, behind everything that has blocks.
    pub(crate) fn allocate(&mut self, inode: &Inode, end: u32) {
        let mapped = inode.mapped_pages();
        if end > mapped {
            inode.add_extent(end - mapped, self.disk_used);
            self.disk_used += u64::from(end - mapped) * PAGE_SIZE;
        }
    }

    pub(crate) fn add(&mut self, path: &str, mapping: MappingId, size: u64, metadata: Metadata) -> Rc<Inode> {
        let mut inode = Inode::new(self.next_inode, mapping, size);
        inode.metadata = metadata;
        self.next_inode += 1;
        let inode = Rc::new(inode);
        self.register(&inode);
        self.by_path.insert(path.to_string(), Rc::clone(&inode));
        inode
    }
}

/// Laid-out files start at multiples of 1 MiB, so that windows never share a block.
pub(crate) const EXTENT_ALIGN: u64 = 1 << 20;

/// Where the metadata of ext4 lies: away from all data.
const DEVICE_OFFSET: u64 = 1 << 45;
