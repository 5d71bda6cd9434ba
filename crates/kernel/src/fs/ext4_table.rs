//! Which metadata blocks of ext4 a file costs when it is created, written back, removed and read again
//! (MECHANISMS-6X 8.2).
//!
//! | | bitmap of inodes, descriptor | inode table | directory | bitmap of blocks, descriptor |
//! |---|---|---|---|---|
//! | create | changed | changed, its directory's too | changed | |
//! | written back | | changed | | changed |
//! | removed | changed | changed, its directory's too | changed | changed |
//!
//! Each is a lookup or several through the buffer cache, so blocks become active at once.
//!
//! Left out: groups by directory (an inode's number alone says where it is), the list of orphans, where in a
//! directory a name is. Next: [`super::ext4_change`], [`mm::fs::ext4::layout`].

use std::rc::Rc;

use mm::base::event::Trace;
use mm::fs::ext4::layout;

use crate::errno::Errno;
use crate::files::inode::Inode;
use crate::handle::Kernel;
use crate::machine::Machine;
use crate::tasks::process::Process;

/// Lookups of an inode's table block while it is created: for the new inode, for its name, for its size.
const CREATE_LOOKUPS: u32 = 3;

/// Bytes of a name, where nobody says what it is: eight hexadecimal digits and some.
const NAME_BYTES: u32 = 12;

impl<M: Machine, T: Trace> Kernel<M, T> {
    /// A file is created.
    pub(crate) async fn create_in_tables(&self, process: &Process, inode: &Inode) -> Result<(), Errno> {
        self.start_handle(inode.device).await;
        let (device, number) = (self.device_of(inode), inode.number);
        self.change_inode_bitmap(Some(process), &device, number).await?;
        self.change_block(Some(process), &device, layout::table_block(number), CREATE_LOOKUPS).await?;
        self.change_block(Some(process), &device, self.directory_block(number), 2).await
    }

    /// A file has lost its last name. Without memory for a block that has to be read again, the change is taken as
    /// made.
    pub(crate) async fn remove_from_tables(&self, inode: &Inode) {
        if !inode.is_in_table() {
            return;
        }
        self.start_handle(inode.device).await;
        let (device, number) = (self.device_of(inode), inode.number);
        let _ = self.change_block(None, &device, self.directory_block(number), 2).await;
        let _ = self.change_block(None, &device, layout::table_block(number), 2).await;
        let _ = self.change_inode_bitmap(None, &device, number).await;
        if let Some((offset, _)) = inode.place(0) {
            let _ = self.change_block_bitmap(None, &device, offset).await;
        }
    }

    async fn change_inode_bitmap(
        &self,
        process: Option<&Process>,
        device: &Rc<Inode>,
        number: u32,
    ) -> Result<(), Errno> {
        self.change_block(process, device, layout::inode_bitmap(number), 1).await?;
        self.change_block(process, device, layout::inode_descriptor(number), 1).await
    }

    /// The block with the name of a file, taken as if all files were in directories that are filled one after
    /// the other.
    fn directory_block(&self, number: u32) -> u32 {
        let blocks = layout::directory_blocks(u64::from(number) + 1, NAME_BYTES) - 1;
        layout::directory_block(u32::try_from(blocks).expect("fewer blocks than files"))
    }

    /// Pages of a file are being written and were given blocks for that. Without memory for a block that has to be
    /// read again, the change is taken as made.
    pub(crate) async fn map_in_tables(&self, inode: &Inode) {
        if !inode.is_in_table() || inode.is_orphan() {
            return;
        }
        self.start_handle(inode.device).await;
        let device = self.device_of(inode);
        if let Some((offset, _)) = inode.place(inode.mapped_pages().saturating_sub(1)) {
            let _ = self.change_block_bitmap(None, &device, offset).await;
        }
        let _ = self.change_block(None, &device, layout::table_block(inode.number), 1).await;
        if !inode.gone.get() {
            self.mem(|mem| mem.note_mapped(inode.mapping));
        }
    }

    /// An inode comes back into memory.
    pub(crate) async fn read_inode(&self, process: &Process, inode: &Inode) -> Result<(), Errno> {
        self.read_block(process, &self.device_of(inode), layout::table_block(inode.number)).await
    }
}
