//! Steps on the journals of ext4 and on what it knows about extents: the wires of [`Memory`] to them.
//!
//! Neighbours: [`crate::memory`] for all other wires, [`crate::fs::ext4`].

use units::CpuId;

use crate::base::event::Trace;
use crate::base::ids::MappingId;
use crate::fs::ext4::journal::{BlockChange, Journal};
use crate::fs::xfs::buf::ClusterId;
use crate::memory::Memory;
use crate::slab::object::Object;

impl<T: Trace> Memory<T> {
    /// A handle of ext4 changes a metadata block of a disk: [`Journal::change`].
    pub fn journal_change(
        &mut self,
        cpu: CpuId,
        disk: u16,
        block: u32,
        accesses: u32,
        head: &mut Option<Object>,
        without: bool,
    ) -> BlockChange {
        let Self { core, lru, cache, fs, .. } = self;
        fs.journals[usize::from(disk)].change((core, lru, cache), cpu, block, accesses, head, without)
    }

    /// Gives the next disk a journal of so many blocks; `mapping`: the block device as a file.
    pub fn journal_create(&mut self, mapping: MappingId, blocks: u32) {
        self.fs.journals.push(Journal::new(mapping, blocks));
        self.cache.heads.add_device(mapping);
    }

    /// Notes that a metadata block of a disk is made. False: it was there, and has to be read, as all are while there
    /// is no journal.
    pub fn journal_make_block(&mut self, disk: u16, block: u32) -> bool {
        let journal = self.fs.journals.get_mut(usize::from(disk));
        journal.is_some_and(|journal| journal.made.make(block))
    }

    /// Whether a metadata block of a disk was ever used: all were while there is no journal.
    pub fn journal_has_block(&mut self, disk: u16, block: u32) -> bool {
        let journal = self.fs.journals.get_mut(usize::from(disk));
        journal.is_none_or(|journal| journal.made.has(block))
    }

    /// The block of a disk that holds block `number` of a directory, if it has that yet.
    pub fn find_directory_block(&self, disk: u16, directory: u32, number: u32) -> Option<u32> {
        self.fs.journals[usize::from(disk)].directories.find(directory, number)
    }

    /// The same; it is given one if it has none.
    pub fn directory_block(&mut self, disk: u16, directory: u32, number: u32) -> u32 {
        self.fs.journals[usize::from(disk)].directories.block(directory, number)
    }

    /// Lets what is written leave the log of a disk, and closes its running transaction: [`Journal::close`].
    pub fn journal_close(&mut self, cpu: CpuId, disk: u16) -> Option<u32> {
        let journal = &mut self.fs.journals[usize::from(disk)];
        journal.clean(&mut self.core, &mut self.cache, cpu);
        journal.close()
    }

    /// The transaction that was closed is in the log; returns the pages that became dirty.
    pub fn journal_committed(&mut self, disk: u16) -> u64 {
        self.fs.journals[usize::from(disk)].committed(&mut self.core, &mut self.cache)
    }

    /// What keeps the oldest transaction in the log: a block, and whether it is being written.
    pub fn journal_checkpoint(&mut self, cpu: CpuId, disk: u16) -> Option<(u32, bool)> {
        self.fs.journals[usize::from(disk)].checkpoint(&mut self.core, &mut self.cache, cpu)
    }

    /// What was delayed of a file has a place on the disk, in the extent that begins at page `first`.
    pub fn note_mapped(&mut self, cpu: CpuId, mapping: MappingId, first: u32) {
        self.fs.vfs.extents.note_mapped(&mut self.core, cpu, mapping, first);
    }

    /// The blocks of a file from page `first` on are gone: what is known of them goes with them.
    pub fn forget_extents(&mut self, cpu: CpuId, mapping: MappingId, first: u32) {
        self.fs.vfs.extents.forget(&mut self.core, cpu, mapping, first);
    }

    /// The number of a file of XFS that is gone is that of a new one, which takes what is still in memory of it.
    ///
    /// # Panics
    /// When nothing is.
    pub fn reuse_inode(&mut self, mapping: MappingId) {
        assert!(self.fs.vfs.recycle(mapping), "{mapping:?} left nothing in memory");
        self.fs.xfs_log.renew(mapping);
        self.cache.renew(mapping);
    }

    /// Somebody waits until a cluster of XFS inodes is read, and goes on with it then.
    pub fn cluster_await(&mut self, cluster: ClusterId) {
        self.fs.xfs_buffers.begin_wait(cluster);
    }

    /// One that waited for it has it.
    pub fn cluster_awaited(&mut self, cpu: CpuId, cluster: ClusterId) {
        self.fs.xfs_buffers.end_wait(&mut self.core, cpu, cluster);
    }
}
