//! The journal thread of ext4 (`kjournald2`, `jbd2_journal_commit_transaction`; MECHANISMS-6X 8.2).
//!
//! ```text
//!   5 s after its first change, when it is full, or for sync and fsync:
//!     make room in the log --> close --> wait for data --> write blocks --> write the commit block --> dirty pages
//! ```
//! `data=ordered`: data of the files that were given blocks is on its way when the transaction is closed, as
//! allocation is delayed until writeback; the commit waits for all writes that began before. The commit block is
//! written when everything else is on the disk.
//!
//! Left out: cache flushes of the disk, tasks that make room in the log themselves, fast commits. Neighbours:
//! [`super::ext4_change`] for who fills transactions, [`mm::fs::ext4::journal`] for what is in them.

use mm::MemcgId;
use mm::base::event::Trace;
use mm::base::vmstat::VmEvent;
use mm::fs::ext4::journal::Journal;
use mm::fs::ext4::layout::log_block;
use units::{Bytes, Nanos, PAGE_SIZE};

use crate::cache::in_flight::{PageRange, Transfer};
use crate::cache::look::Found;
use crate::handle::Kernel;
use crate::machine::{IoKind, IoRequest, Machine, WaitReason};
use crate::queues::JournalThread;
use crate::writeback::plug::REQUEST_PAGES;
use crate::writeback::request::Plug;

/// How old a transaction becomes (`commit=5`).
const COMMIT_INTERVAL: Nanos = Nanos::from_secs(5);

/// Where the journal lies on the disk: away from all data and metadata.
const JOURNAL_OFFSET: u64 = 1 << 46;

impl<M: Machine, T: Trace> Kernel<M, T> {
    pub(crate) fn journal_thread<R>(&self, disk: u16, step: impl FnOnce(&mut JournalThread) -> R) -> R {
        step(&mut self.shared.journal_threads.borrow_mut()[usize::from(disk)])
    }

    /// Starts the threads, one for each disk: when metadata is changed for the first time.
    pub(crate) fn start_journal_threads(&self) {
        for disk in self.disks() {
            let (queue, done) = (self.machine().new_queue(), self.machine().new_queue());
            let thread = JournalThread { queue, done, due: Nanos::ZERO, asked: None, head: 0 };
            self.shared.journal_threads.borrow_mut().push(thread);
            let kernel = self.clone();
            self.machine().spawn(
                &format!("jbd2/{disk}"),
                None,
                async move { kernel.commit_forever(disk).await },
            );
        }
    }

    /// The running transaction of a disk has its first change.
    pub(crate) fn transaction_opened(&self, disk: u16) {
        let due = self.machine().now() + COMMIT_INTERVAL;
        self.journal_thread(disk, |thread| thread.due = due);
        self.wake_queue(self.journal_thread(disk, |thread| thread.queue));
    }

    /// Wants a transaction committed at once (`jbd2_log_start_commit`).
    pub(crate) fn ask_for_commit(&self, disk: u16, id: u64) {
        self.journal_thread(disk, |thread| thread.asked = thread.asked.max(Some(id)));
        self.wake_queue(self.journal_thread(disk, |thread| thread.queue));
    }

    /// Commits all changes up to now and waits for that: `sync` and `fsync`.
    pub(crate) async fn commit_all(&self) {
        for disk in self.disks() {
            let journal = usize::from(disk);
            let Some(id) = self.mem(|mem| mem.fs.journals.get(journal).and_then(|journal| journal.newest()))
            else {
                continue;
            };
            while !self.mem(|mem| mem.fs.journals[journal].is_committed(id)) {
                self.ask_for_commit(disk, id);
                let done = self.journal_thread(disk, |thread| thread.done);
                let _ = self.machine().wait(done, WaitReason::LogWrite, None).await;
            }
        }
    }

    async fn commit_forever(&self, disk: u16) {
        loop {
            let open = self.mem(|mem| mem.fs.journals[usize::from(disk)].newest());
            let thread = self.journal_thread(disk, |thread| *thread);
            let left = thread.due.saturating_sub(self.machine().now());
            if open.is_some() && (open <= thread.asked || left == Nanos::ZERO) {
                self.commit(disk).await;
            } else {
                let timeout = open.map(|_| left);
                let _ = self.machine().wait(thread.queue, WaitReason::Periodic, timeout).await;
            }
        }
    }

    /// Commits the running transaction.
    async fn commit(&self, disk: u16) {
        let journal = usize::from(disk);
        while !self.mem(|mem| mem.fs.journals[journal].has_room()) {
            self.write_oldest(disk).await;
        }
        let cpu = self.machine().current_cpu();
        let Some(blocks) = self.mem(|mem| mem.journal_close(cpu, disk)) else { return };
        self.wake_queue(self.journal_thread(disk, |thread| thread.done)); // The next one may be filled.
        let before = self.shared.in_flight.borrow().writes();
        while self.shared.in_flight.borrow().writes_before(disk, before) {
            let _ = self.machine().wait(self.shared.wait.requests, WaitReason::PageWriteback, None).await;
        }
        self.get_log_blocks(disk, Journal::descriptors(blocks)).await;
        self.write_log(disk, blocks).await;
        self.get_log_blocks(disk, 0..1).await; // The commit block.
        self.write_log(disk, 1).await;
        if self.mem(|mem| mem.journal_committed(disk)) > 0 {
            let device = self.shared.files.borrow().device(disk);
            self.note_dirty_inode(&device, MemcgId::ROOT);
        }
        self.wake_queue(self.journal_thread(disk, |thread| thread.done));
    }

    /// Blocks of the log that are no copies of metadata are pages of the device, as all that go through its buffer
    /// cache (`jbd2_journal_get_descriptor_buffer`); a new one is looked up twice, and so is active. Without memory for
    /// one it is written all the same.
    async fn get_log_blocks(&self, disk: u16, blocks: impl Iterator<Item = u32>) {
        let device = self.shared.files.borrow().device(disk);
        let (head, size) = (self.journal_thread(disk, |thread| thread.head), self.log_size(disk));
        for number in blocks {
            let block = log_block((head + number) % size);
            let is_new = matches!(self.look(&device, block), Found::Missing)
                && self.add_metadata_page(None, &device, block).await == Ok(true);
            if is_new {
                self.unlock_pages(PageRange { mapping: device.mapping, first: block, count: 1 });
            }
            let cpu = self.machine().current_cpu();
            if let Found::Ready(pfn) = self.look(&device, block) {
                self.mem(|mem| (0..=u32::from(is_new)).for_each(|_| mem.mark_accessed(cpu, pfn)));
            }
        }
    }

    pub(crate) fn log_size(&self, disk: u16) -> u32 {
        self.mem(|mem| mem.fs.journals[usize::from(disk)].size())
    }

    /// Writes blocks to the log, one behind the other, and waits for them.
    async fn write_log(&self, disk: u16, blocks: u32) {
        let size = self.log_size(disk);
        self.mem(|mem| mem.core.alloc.events.add(VmEvent::PgPgOut, u64::from(blocks) * PAGE_SIZE / 1024));
        let mut left = blocks;
        while left > 0 {
            let head = self.journal_thread(disk, |thread| thread.head);
            let count = left.min(REQUEST_PAGES).min(size - head);
            self.journal_thread(disk, |thread| thread.head = (head + count) % size);
            let tag = self.shared.in_flight.borrow_mut().add(Transfer::Journal(disk));
            let offset = JOURNAL_OFFSET + (u64::from(head) * PAGE_SIZE);
            let len = Bytes(u64::from(count) * PAGE_SIZE);
            // Each block is a page somewhere.
            self.start_io(IoRequest { device: disk, kind: IoKind::Write, offset, len, segments: count, tag });
            left -= count;
        }
        while self.shared.in_flight.borrow().writes_journal(disk) {
            let done = self.journal_thread(disk, |thread| thread.done);
            let _ = self.machine().wait(done, WaitReason::LogWrite, None).await;
        }
    }

    /// Blocks of the journal are on the disk.
    pub(crate) fn journal_arrived(&self, disk: u16) {
        self.wake_queue(self.journal_thread(disk, |thread| thread.done));
    }

    /// Writes what keeps the oldest transaction in the log (`jbd2_log_do_checkpoint`).
    async fn write_oldest(&self, disk: u16) {
        let device = self.shared.files.borrow().device(disk);
        let oldest = || {
            let cpu = self.machine().current_cpu();
            self.mem(|mem| mem.journal_checkpoint(cpu, disk))
        };
        while let Some((block, is_written)) = oldest() {
            if is_written {
                self.wait_for_written_pages().await;
                continue;
            }
            let mut plug = Plug::default();
            if let Some((first, count)) =
                self.mem(|mem| mem.start_writeback(device.mapping, block, REQUEST_PAGES))
            {
                self.add_to_plug(&device, first, count, &mut plug);
            }
            self.submit_plug(&mut plug);
        }
    }
}
