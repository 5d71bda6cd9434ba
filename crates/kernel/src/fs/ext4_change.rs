//! Changing metadata blocks of ext4 in the running transaction (`jbd2_journal_get_write_access`,
//! `jbd2_journal_dirty_metadata`; MECHANISMS-6X 8.2).
//!
//! A block that is missing is read, or made zeroed if it was never used. Whoever wants to begin to change something
//! while the transaction is full waits until it is closed. Left out: the credits that a handle asks for before it
//! knows its blocks. Next: [`super::ext4_commit`], which ends transactions; [`mm::fs::ext4::journal`].

use std::rc::Rc;

use mm::base::event::Trace;
use mm::base::gfp::Gfp;
use mm::fs::ext4::journal::BlockChange;
use mm::fs::ext4::layout::{block_bitmap, block_descriptor, journal_blocks};
use mm::slab::object::Object;
use mm::version::geometry::Cache;
use units::{Bytes, PAGE_SIZE};

use crate::errno::Errno;
use crate::files::inode::Inode;
use crate::handle::Kernel;
use crate::machine::{Machine, WaitReason};
use crate::tasks::process::Process;

/// Of a disk whose size nobody says: how often it holds memory. Assumed: 10.7 to 11.4 times was the one disk of a
/// known size (MMTESTS 2).
const DISK_TO_MEMORY: u64 = 11;

impl<M: Machine, T: Trace> Kernel<M, T> {
    /// Whoever is about to change metadata of a disk waits while the running transaction is full
    /// (`start_this_handle`).
    pub(crate) async fn start_handle(&self, disk: u16) {
        self.make_journals();
        while self.mem(|mem| mem.fs.journals[usize::from(disk)].is_full()) {
            let running = self.mem(|mem| mem.fs.journals[usize::from(disk)].newest());
            self.ask_for_commit(disk, running.expect("it is full"));
            self.flush_plug();
            let done = self.journal_thread(disk, |thread| thread.done);
            let _ = self.machine().wait(done, WaitReason::LogWrite, None).await;
        }
    }

    /// Makes the journals of all disks, once.
    pub(crate) fn make_journals(&self) {
        if self.mem(|mem| !mem.fs.journals.is_empty()) {
            return;
        }
        let disk_size = self.machine().build().disk_size.map(Bytes::to_pages_ceil);
        for disk in self.disks() {
            let device = self.shared.files.borrow().device(disk);
            self.mem(|mem| {
                let memory: u64 = mem.core.alloc.zones().iter().map(|zone| zone.managed.0).sum();
                let blocks = disk_size.map_or(memory * DISK_TO_MEMORY, |pages| pages.0);
                mem.journal_create(device.mapping, journal_blocks(blocks));
            });
        }
        self.start_journal_threads();
    }

    /// Changes a metadata block, and looks it up `accesses` times for that. A process is charged for a block that
    /// has to be brought into memory, a kernel thread is not.
    pub(crate) async fn change_block(
        &self,
        process: Option<&Process>,
        device: &Rc<Inode>,
        block: u32,
        accesses: u32,
    ) -> Result<(), Errno> {
        let mut head = None;
        let changed = self.change_with(process, device, block, accesses, &mut head).await;
        // Somebody else may have given it one while this task waited.
        if let Some(unused) = head {
            let cpu = self.machine().current_cpu();
            self.mem(|mem| mem.free_object(cpu, unused));
        }
        changed
    }

    async fn change_with(
        &self,
        process: Option<&Process>,
        device: &Rc<Inode>,
        block: u32,
        accesses: u32,
        head: &mut Option<Object>,
    ) -> Result<(), Errno> {
        let mut without = false;
        loop {
            let cpu = self.machine().current_cpu();
            let disk = device.device;
            match self.mem(|mem| mem.journal_change(cpu, disk, block, accesses, head, without)) {
                BlockChange::Joined { opened } => {
                    if opened {
                        self.transaction_opened(disk);
                    }
                    return Ok(());
                }
                BlockChange::WantsHead => {
                    let made = self.alloc_object(process, Cache::JournalHead, Gfp::NOFS).await;
                    (without, *head) = (made.is_err(), made.ok());
                }
                BlockChange::Locked => {
                    self.flush_plug();
                    self.wait_for_page(device.mapping, block).await;
                }
                BlockChange::Missing => {
                    self.bring_block(process, device, block).await?;
                }
            }
            if let Some(process) = process {
                process.check_alive()?;
            }
        }
    }

    /// Changes what tells that some blocks of a file are in use, from `offset` on the disk: bitmap and descriptor.
    pub(crate) async fn change_block_bitmap(
        &self,
        process: Option<&Process>,
        device: &Rc<Inode>,
        offset: u64,
    ) -> Result<(), Errno> {
        let block = offset / PAGE_SIZE;
        self.change_block(process, device, block_bitmap(block), 1).await?;
        self.change_block(process, device, block_descriptor(block), 1).await
    }
}
