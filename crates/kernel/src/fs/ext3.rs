//! ext3: files are mapped by indirect blocks, which are pages of the block device (`ext3_get_block`).
//!
//! ```text
//!   inode   12 blocks | indirect | double indirect
//!                          |            |
//!                     1024 blocks   1024 indirect blocks of 1024 blocks each
//! ```
//! So each 4 MiB of a file need a page of metadata, which every look-up touches: it is active from its
//! second one on (the Buffers of MECHANISMS 17/S1). Extents of ext4 need next to none.
//!
//! Left out: triple indirect blocks; files beyond 8 GiB and more than 8000 files on a disk, whose indirect
//! blocks are taken for one another's; the gaps that indirect blocks leave between a file's own blocks; the
//! journal. Neighbours: [`super::ext4`], with which it shares inode tables and buffer heads.

use std::ops::Range;
use std::rc::Rc;

use mm::MemcgId;
use mm::base::event::Trace;
use mm::base::gfp::Gfp;

use crate::cache::add::Place;
use crate::cache::in_flight::PageRange;
use crate::cache::look::Found;
use crate::errno::Errno;
use crate::files::inode::{Inode, Metadata};
use crate::handle::Kernel;
use crate::machine::Machine;
use crate::tasks::process::Process;

/// Blocks that the inode itself points to.
const DIRECT: u32 = 12;
/// Pointers in a block.
const POINTERS: u32 = 1024;
/// Where indirect blocks begin in the device's mapping, behind the block bitmaps and before the inode tables:
/// a stretch for each inode, whose last block is its double indirect one. Kept small, as whoever looks for
/// dirty blocks goes through all of it.
const INDIRECT_FIRST: u32 = 1 << 16;
const STRETCH: u32 = 1 << 11;
const STRETCHES: u32 = ((1 << 24) - INDIRECT_FIRST) / STRETCH;
/// Bytes of a block group: what a bitmap of one block covers.
const GROUP: u64 = 128 << 20;

/// The indirect block that maps a block of a file; none for the first few.
fn indirect_of(inode: u32, block: u32) -> Option<u32> {
    let number = block.checked_sub(DIRECT)? / POINTERS;
    Some(INDIRECT_FIRST + ((inode % STRETCHES) * STRETCH) + (number % (STRETCH - 1)))
}

/// The double indirect block above the indirect block of `block`; none where the inode points to that one
/// itself.
fn double_indirect_of(inode: u32, block: u32) -> Option<u32> {
    (block >= DIRECT + POINTERS).then(|| INDIRECT_FIRST + ((inode % STRETCHES) * STRETCH) + (STRETCH - 1))
}

/// The metadata blocks that map some blocks of a file, in the order in which they are looked at.
fn path(inode: u32, blocks: Range<u32>) -> impl Iterator<Item = u32> {
    let Range { start, end } = blocks;
    // One block of each stretch that an indirect block maps.
    let next = move |&block: &u32| {
        let behind = block.saturating_sub(DIRECT) / POINTERS + u32::from(block >= DIRECT);
        Some(DIRECT + (behind * POINTERS)).filter(|&next| next < end)
    };
    std::iter::successors((start < end).then_some(start), next)
        .flat_map(move |block| double_indirect_of(inode, block).into_iter().chain(indirect_of(inode, block)))
}

impl<M: Machine, T: Trace> Kernel<M, T> {
    /// Looks up where blocks of a file are: once for a run of them below one indirect block.
    pub(crate) async fn read_indirect(
        &self,
        process: &Process,
        inode: &Inode,
        blocks: Range<u32>,
    ) -> Result<(), Errno> {
        let device = self.device_of(inode);
        for block in path(inode.number, blocks) {
            self.read_block(process, &device, block).await?;
        }
        Ok(())
    }

    /// Reads a metadata block through the block device's own page cache.
    pub(crate) async fn read_block(
        &self,
        process: &Process,
        device: &Inode,
        block: u32,
    ) -> Result<(), Errno> {
        let mut was_read = false;
        loop {
            match self.look(device, block) {
                Found::Missing if was_read => return Ok(()),
                Found::Ready(pfn) => {
                    let cpu = self.machine().current_cpu();
                    self.mem(|mem| mem.mark_accessed(cpu, pfn));
                    return Ok(());
                }
                Found::Marker(_) => {}
                Found::Locked => {
                    self.wait_for_page(device.mapping, block).await;
                    was_read = true;
                }
                Found::Missing => {
                    if self.add_folio(process, device, Place::page(block), Gfp::HIGHUSER_MOVABLE).await? {
                        self.submit_read(device, block, 1);
                    }
                }
            }
        }
    }

    /// A page of a file is written for the first time: its block is taken from the bitmap of a group, and
    /// noted in its indirect block. One that has a block is only looked up.
    pub(crate) async fn give_block(&self, process: &Process, inode: &Inode, block: u32) -> Result<(), Errno> {
        if inode.metadata == Metadata::None {
            return Ok(()); // The device itself.
        }
        if block < inode.mapped_pages() {
            return self.read_indirect(process, inode, block..block + 1).await;
        }
        let group = self.shared.files.borrow().next_offset(inode.device) / GROUP;
        let bitmap = u32::try_from(group).unwrap_or(u32::MAX) % INDIRECT_FIRST;
        let device = self.device_of(inode);
        for block in path(inode.number, block..block + 1).chain([bitmap]) {
            self.dirty_block(process, &device, block).await?;
        }
        Ok(())
    }

    /// Makes a metadata block dirty, which is an access; one that is missing is taken for new.
    async fn dirty_block(&self, process: &Process, device: &Rc<Inode>, block: u32) -> Result<(), Errno> {
        loop {
            match self.look(device, block) {
                Found::Ready(pfn) => {
                    let cpu = self.machine().current_cpu();
                    self.mem(|mem| {
                        mem.set_dirty(pfn);
                        mem.mark_accessed(cpu, pfn);
                    });
                    self.note_dirty_inode(device, MemcgId::ROOT);
                    return Ok(());
                }
                Found::Marker(_) => {}
                Found::Locked => self.wait_for_page(device.mapping, block).await,
                Found::Missing => {
                    if self.add_folio(process, device, Place::page(block), Gfp::HIGHUSER_MOVABLE).await? {
                        self.unlock_pages(PageRange { mapping: device.mapping, first: block, count: 1 });
                    }
                }
            }
            process.check_alive()?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(blocks: Range<u32>) -> Vec<u32> {
        path(7, blocks).map(|block| block - INDIRECT_FIRST - (7 * STRETCH)).collect()
    }

    /// ```text
    ///   block    0 .. 11 | 12 .. 1035 | 1036 .. 2059 | 2060 ..
    ///   mapped by  inode |      0     |  double, 1   | double, 2
    /// ```
    #[test]
    fn four_mib_of_a_file_need_one_indirect_block() {
        let double = STRETCH - 1;
        assert_eq!(places(0..12), []);
        assert_eq!(places(0..13), [0]);
        assert_eq!(places(12..1036), [0]);
        assert_eq!(places(1035..1037), [0, double, 1]);
        assert_eq!(places(1036..2060), [double, 1]);
        assert_eq!(places(2000..2100), [double, 1, double, 2]);
        assert_eq!(places(500..500), []);
    }

    #[test]
    fn no_two_files_share_an_indirect_block() {
        assert_eq!(indirect_of(8, 12).unwrap() - indirect_of(7, 12).unwrap(), STRETCH);
        let last = DIRECT + ((STRETCH - 2) * POINTERS);
        assert_eq!(indirect_of(7, last).unwrap() + 1, double_indirect_of(7, last).unwrap());
        assert!(
            double_indirect_of(STRETCHES - 1, last).unwrap() < 1 << 24,
            "and all lie before the inode tables"
        );
    }
}
