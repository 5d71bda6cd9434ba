//! ext4: metadata blocks in the page cache of the block device, and a buffer head for every page
//! that is dirtied.
//!
//! Left out: the journal (a commit costs nothing, and keeps no page).

use mm::event::Trace;
use mm::gfp::Gfp;
use mm::mapping::Slot;
use mm::slab_caches::Cache;

use crate::cache::filemap::Found;
use crate::errno::Errno;
use crate::files::inode::Inode;
use crate::handle::Kernel;
use crate::machine::Machine;
use crate::tasks::process::Process;

/// The first page of the inode tables in the device's mapping, and inodes in one block of 4 KiB.
pub(crate) const TABLE_FIRST: u32 = 1 << 24;

pub(crate) const INODES_IN_BLOCK: u32 = 16;

impl<M: Machine, T: Trace> Kernel<M, T> {
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
                    if self.add_single(process, device, block, Gfp::HIGHUSER_MOVABLE).await? {
                        self.submit_read(device, block, 1);
                    }
                }
            }
        }
    }

    pub(crate) async fn give_buffer(
        &self,
        process: &Process,
        inode: &Inode,
        index: u32,
    ) -> Result<(), Errno> {
        let bare = |mem: &mut mm::Memory<T>| match mem.mappings.find(inode.mapping, index) {
            Slot::Page(pfn) if !mem.alloc.frames.flags(pfn).has(mm::frame::PageFlags::PRIVATE) => Some(pfn),
            _ => None,
        };
        if self.mem(bare).is_none() {
            return Ok(());
        }
        let buffer = self.alloc_object(Some(process), Cache::BufferHead, Gfp::NOFS).await?;
        let cpu = self.machine().current_cpu();
        self.mem(|mem| match bare(mem) {
            Some(pfn) if mem.page_memcg(pfn) == buffer.memcg => mem.attach_buffer(cpu, pfn, buffer),
            _ => {
                mem.free_object(cpu, buffer);
            }
        });
        Ok(())
    }
}
