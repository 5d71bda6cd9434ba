//! The inode tables of ext3, as pages of the block device.
//!
//! Left out: bitmaps of inodes, group descriptors, directories, the journal. Next: [`super::ext3`]; ext4 has all
//! of that in [`super::ext4_table`].

use mm::base::event::Trace;
use units::Order;

use crate::errno::Errno;
use crate::files::inode::Inode;
use crate::handle::Kernel;
use crate::machine::Machine;
use crate::tasks::process::Process;

/// The first page of the inode tables in the device's mapping.
const TABLE_FIRST: u32 = 1 << 24;
/// Inodes in one block of 4 KiB.
const INODES_IN_BLOCK: u32 = 16;

impl<M: Machine, T: Trace> Kernel<M, T> {
    /// The block of the inode tables that a created file is in. It is read when the inode comes back;
    /// when the file is created, it is made dirty.
    pub(crate) async fn touch_ext3_table(
        &self,
        process: &Process,
        inode: &Inode,
        create: bool,
    ) -> Result<(), Errno> {
        let device = self.device_of(inode);
        let block = TABLE_FIRST + (inode.number / INODES_IN_BLOCK);
        if !create {
            return self.read_block(process, &device, block).await;
        }
        // Looking a block up for its buffers is an access, which a write of a file is not.
        if let Some(pfn) = self.write_folio(process, &device, block, false, Order(0)).await?.page {
            let cpu = self.machine().current_cpu();
            self.mem(|mem| mem.mark_accessed(cpu, pfn));
        }
        Ok(())
    }
}
