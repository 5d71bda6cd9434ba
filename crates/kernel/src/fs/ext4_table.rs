//! Which metadata blocks of ext4 a file costs when it is created, written back, removed and read again
//! (MECHANISMS-6X 8.2).
//!
//! | | bitmap of inodes, descriptor | inode table | directory | bitmap of blocks, descriptor |
//! |---|---|---|---|---|
//! | create | changed | changed, its directory's too | changed | |
//! | written back | | changed; its block of extents, if it has one | | changed |
//! | removed | changed | changed, its directory's too | changed | changed |
//!
//! Each is a lookup or several through the buffer cache, so blocks become active at once.
//!
//! Left out: that blocks which the journal held are read, too, once they were reclaimed; groups by directory (an
//! inode's number alone says where it is), the list of orphans, a second level of an index. Next:
//! [`super::ext4_change`], [`mm::fs::ext4::layout`].

use std::rc::Rc;

use mm::base::event::Trace;
use mm::fs::dentry::Name;
use mm::fs::ext4::layout;

use crate::cache::in_flight::PageRange;
use crate::cache::look::Found;
use crate::errno::Errno;
use crate::files::directory::EntryPlace;
use crate::files::inode::{Inode, Metadata};
use crate::handle::Kernel;
use crate::machine::{LaidOut, Machine};
use crate::tasks::process::Process;

/// Lookups of an inode's table block while it is created: for the new inode, for its name, for its size.
const CREATE_LOOKUPS: u32 = 3;

/// Lookups of a block of extents that is made: one makes it, one finds it.
const NEW_LEAF_LOOKUPS: u32 = 2;

/// Blocks of an inode table that are read at once (`inode_readahead_blks`, of the kernel's documentation of ext4).
const TABLE_READAHEAD: u32 = 32;

/// Blocks of tables that the journal holds when files were laid out: measured, of guests of 6.12 with 5,000 to 30,000
/// files the last 89 to 370 were not read.
const TABLES_IN_JOURNAL: u32 = 256;

/// Blocks in the log of a transaction that makes a file and writes it: measured, `logged blocks per transaction` of
/// `/proc/fs/jbd2` on 6.18.
const LOGGED_BY_FILE: u32 = 8;

impl<M: Machine, T: Trace> Kernel<M, T> {
    /// A file is created.
    pub(crate) async fn create_in_tables(&self, process: &Process, inode: &Inode) -> Result<(), Errno> {
        self.start_handle(inode.device).await;
        let (device, number) = (self.device_of(inode), inode.number);
        self.change_inode_bitmap(Some(process), &device, number).await?;
        self.change_block(Some(process), &device, layout::table_block(number), CREATE_LOOKUPS).await
    }

    /// A file has lost its last name. Without memory for a block that has to be read again, the change is taken as
    /// made.
    pub(crate) async fn remove_from_tables(&self, inode: &Inode) {
        if !inode.is_in_table() {
            return;
        }
        self.start_handle(inode.device).await;
        let (device, number) = (self.device_of(inode), inode.number);
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

    /// A name is looked for: by the index in a leaf, or in the only block. Leaves that nothing was put into are not
    /// there yet.
    pub(crate) async fn read_entry(
        &self,
        process: &Process,
        directory: &Inode,
        name: Name,
    ) -> Result<(), Errno> {
        let place = self.shared.files.borrow().place(directory, name);
        for number in index_block(place).into_iter().chain([leaf(place)]) {
            self.read_entries(process, directory, number).await?;
        }
        Ok(())
    }

    /// The names in a block of a directory are read.
    pub(crate) async fn read_entries(
        &self,
        process: &Process,
        directory: &Inode,
        number: u32,
    ) -> Result<(), Errno> {
        self.make_journals();
        let device = self.device_of(directory);
        let Some((block, is_new)) = self.find_entries(directory, number) else { return Ok(()) };
        if is_new && self.machine().build().laid_out == LaidOut::JustBefore {
            return self.keep_in_journal(&device, block).await;
        }
        self.use_metadata(process, &device, block).await.map(drop)
    }

    /// The block of the device that holds block `number` of a directory. Those of a directory of laid-out files are on
    /// the disk, though nobody wrote them.
    fn find_entries(&self, directory: &Inode, number: u32) -> Option<(u32, bool)> {
        let (disk, id) = (directory.device, directory_id(directory));
        let laid_out = self.shared.files.borrow().names(directory).laid_out();
        let is_laid_out = number < laid_out || (number == laid_out && laid_out > 1);
        self.mem(|mem| {
            let known = mem.find_directory_block(disk, id, number);
            if known.is_some() || !is_laid_out {
                return known.map(|block| (block, false));
            }
            let block = mem.directory_block(disk, id, number);
            mem.journal_make_block(disk, block);
            Some((block, true))
        })
    }

    /// A name is added or removed: its block changes, and the times of the directory. The index leads there. Where a
    /// block is full, half of it goes to a new one.
    pub(crate) async fn change_entry(
        &self,
        process: &Process,
        directory: &Inode,
        name: Name,
    ) -> Result<(), Errno> {
        self.start_handle(directory.device).await;
        let (split, place) = {
            let mut files = self.shared.files.borrow_mut();
            (files.make_room(directory, name), files.place(directory, name))
        };
        let device = self.device_of(directory);
        if let Some(number) = index_block(place) {
            match self.find_entries(directory, number) {
                Some((index, _)) if split.is_none() => {
                    self.read_metadata(process, &device, index).await?;
                }
                _ => self.change_entries(process, directory, number).await?,
            }
        }
        let changed: &[u32] = match &split {
            Some(both) => both,
            None => &[place.by_hash],
        };
        for &by_hash in changed {
            self.change_entries(process, directory, leaf(EntryPlace { by_hash, ..place })).await?;
        }
        // The root has one of the first inodes.
        let number = if directory.is_root() { 0 } else { directory.number };
        self.change_block(Some(process), &device, layout::table_block(number), 1).await
    }

    /// A block of a directory changes. A new one is looked up twice, to have it made and to use it: in guests of 5.10
    /// to 7.2 it is active at once.
    async fn change_entries(&self, process: &Process, directory: &Inode, number: u32) -> Result<(), Errno> {
        let device = self.device_of(directory);
        let (block, accesses) = match self.find_entries(directory, number) {
            Some((block, _)) => (block, 1),
            None => {
                let id = directory_id(directory);
                (self.mem(|mem| mem.directory_block(device.device, id, number)), 2)
            }
        };
        self.change_block(Some(process), &device, block, accesses).await
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
        self.map_extents(&device, inode).await;
    }

    /// Pages of a file were given blocks: what was delayed is written, and the block of its extents changes. Without
    /// memory for that one, the change is taken as made.
    async fn map_extents(&self, device: &Rc<Inode>, inode: &Inode) {
        if inode.has_leaf.get() || inode.needs_leaf() {
            let block = layout::extent_block(inode.number);
            let is_new = !inode.has_leaf.replace(true);
            if is_new && self.add_metadata_page(None, device, block).await == Ok(true) {
                self.unlock_pages(PageRange { mapping: device.mapping, first: block, count: 1 });
            }
            let _ = self.change_block(None, device, block, if is_new { NEW_LEAF_LOOKUPS } else { 1 }).await;
        }
        let last = inode.extents.borrow().last();
        if let Some(run) = last.filter(|_| !inode.gone.get()) {
            let cpu = self.machine().current_cpu();
            self.mem(|mem| mem.note_mapped(cpu, inode.mapping, run.first));
        }
    }

    /// An inode comes into memory. Where its block of the table has to be read, those around it are read with it.
    pub(crate) async fn read_inode(&self, process: &Process, inode: &Inode) -> Result<(), Errno> {
        self.make_journals();
        let (device, block) = (self.device_of(inode), layout::table_block(inode.number));
        if inode.metadata == Metadata::LaidOut && self.keep_laid_out(&device, block).await? {
            return Ok(());
        }
        if matches!(self.look(&device, block), Found::Missing) {
            self.read_table_around(process, &device, block).await;
        }
        self.read_metadata(process, &device, block).await.map(drop)
    }

    /// Tables of files that were laid out are on the disk, though nobody wrote them; the last of them are still in
    /// memory, as the journal holds them. True: the block is the one that is read by `mount`, and not looked for.
    async fn keep_laid_out(&self, device: &Rc<Inode>, block: u32) -> Result<bool, Errno> {
        let last = layout::table_block(self.shared.files.borrow().last_inode());
        self.mem(|mem| mem.journal_make_block(device.device, last));
        let is_held = last - block < TABLES_IN_JOURNAL && block != layout::table_block(0);
        if is_held {
            self.keep_in_journal(device, block).await?;
        }
        Ok(block == layout::table_block(0))
    }

    /// A block of files that were laid out just before is still in memory, as the journal holds it: it was read and
    /// changed by whoever laid them out, so no cgroup pays for it, and it is active (guests of 6.1 to 7.2; that 5.10
    /// reads inode tables again is left out).
    async fn keep_in_journal(&self, device: &Rc<Inode>, block: u32) -> Result<(), Errno> {
        if !matches!(self.look(device, block), Found::Missing) {
            return Ok(());
        }
        if self.add_block(None, device, block).await? {
            self.unlock_pages(PageRange { mapping: device.mapping, first: block, count: 1 });
        }
        let cpu = self.machine().current_cpu();
        if let Found::Ready(pfn) = self.look(device, block) {
            self.mem(|mem| (0..2).for_each(|_| mem.mark_accessed(cpu, pfn)));
        }
        Ok(())
    }

    /// A file was laid out just before, with a commit for each part of it that is written at once: of the log the
    /// device keeps what names the blocks that follow, and the commit block.
    pub(crate) fn keep_log_of_file(&self, disk: u16, parts: u64) {
        self.make_journals();
        let (device, size) = (self.shared.files.borrow().device(disk).mapping, self.log_size(disk));
        let cpu = self.machine().current_cpu();
        for _ in 0..parts.clamp(1, size.into()) {
            let head = self.journal_thread(disk, |thread| thread.head);
            self.journal_thread(disk, |thread| thread.head = (head + LOGGED_BY_FILE) % size);
            for number in [0, LOGGED_BY_FILE - 1] {
                self.mem(|mem| mem.keep_block(cpu, device, layout::log_block((head + number) % size)));
            }
        }
    }

    /// The blocks of an aligned window of the table that were ever used and are not in memory are read, neighbours at
    /// once, as long as there is memory for them.
    async fn read_table_around(&self, process: &Process, device: &Rc<Inode>, block: u32) {
        let first = block - block % TABLE_READAHEAD;
        let mut run = first..first;
        for block in first..first + TABLE_READAHEAD {
            let is_wanted = matches!(self.look(device, block), Found::Missing)
                && self.mem(|mem| mem.journal_has_block(device.device, block));
            let is_added = match is_wanted {
                true => self.add_block(Some(process), device, block).await,
                false => Ok(false),
            };
            if is_added != Ok(true) {
                self.submit_read(device, run.start, run.end - run.start);
                run.start = block + 1;
            }
            run.end = block + 1;
            if is_added.is_err() {
                break;
            }
        }
        self.submit_read(device, run.start, run.end - run.start);
    }
}

/// Which directory this is.
fn directory_id(directory: &Inode) -> u32 {
    directory.directory.expect("only directories have entries")
}

/// The block of a directory that leads to its leaves, if it has more than one.
fn index_block(place: EntryPlace) -> Option<u32> {
    (place.blocks > 1).then_some(0)
}

/// The block of a directory that holds an entry.
fn leaf(place: EntryPlace) -> u32 {
    if place.blocks > 1 { 1 + place.by_hash } else { 0 }
}
