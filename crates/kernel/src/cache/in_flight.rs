//! Requests that are on their way to and from the data disks, by tag. Next: [`super::io`].

use std::cell::Cell;
use std::collections::VecDeque;
use std::rc::Rc;

use mm::base::ids::MappingId;
use mm::fs::xfs::buf::ClusterId;
use mm::slab::object::Object;

use crate::files::inode::Inode;

/// A request on its way.
#[derive(Debug, Clone)]
pub(crate) enum Transfer {
    Read(PageRange),
    /// Pages are read and do not come into the cache; where their reader learns that they are there.
    Past(PageRange, Rc<Cell<bool>>),
    /// A cluster of XFS inodes is read.
    Cluster(ClusterId),
    /// Clusters of XFS inodes that lie side by side are written.
    ClusterWrite {
        first: ClusterId,
        count: u32,
    },
    Write {
        device: u16,
        ranges: Vec<PageRange>,
        /// Runs of pages that end with it.
        runs: u32,
        /// Their bios and vectors.
        bios: Vec<Object>,
        /// Files of XFS that end behind what they did: their new ends are logged before these pages are clean.
        ends: Vec<Rc<Inode>>,
        /// Writes before it.
        number: u64,
    },
    /// A record of the log of XFS is written.
    Log(u64),
    /// Blocks of the journal of ext4 on a disk are written.
    Journal(u16),
}

/// Requests that are on their way, by tag.
#[derive(Debug, Default)]
pub(crate) struct InFlight {
    transfers: Vec<Option<Transfer>>,
    free: Vec<u32>,
    /// Mappings of the reads among them, which are few beside writes.
    reading: Vec<MappingId>,
    /// Writes of pages so far.
    writes: u64,
    /// Tags of those that are complete and put off.
    ended: VecDeque<u64>,
}

impl InFlight {
    /// Notes a request; returns its tag.
    pub(crate) fn add(&mut self, transfer: Transfer) -> u64 {
        if let Transfer::Read(range) | Transfer::Past(range, _) = &transfer {
            self.reading.push(range.mapping);
        }
        match self.free.pop() {
            Some(tag) => {
                self.transfers[tag as usize] = Some(transfer);
                u64::from(tag)
            }
            None => {
                self.transfers.push(Some(transfer));
                (self.transfers.len() - 1) as u64
            }
        }
    }

    /// Notes a write of pages, which is told its number.
    pub(crate) fn add_write(&mut self, write: impl FnOnce(u64) -> Transfer) -> u64 {
        let number = self.writes;
        self.writes += 1;
        self.add(write(number))
    }

    /// Where a transfer that is complete is a write, and new ends of files are to be logged before its pages are clean:
    /// puts it off, and returns its disk.
    pub(crate) fn put_off(&mut self, tag: u64) -> Option<u16> {
        match &self.transfers[tag as usize] {
            Some(Transfer::Write { device, ends, .. }) if !ends.is_empty() => {
                self.ended.push_back(tag);
                Some(*device)
            }
            _ => None,
        }
    }

    /// The next write that was put off, and the files.
    pub(crate) fn take_put_off(&mut self) -> Option<(u64, Vec<Rc<Inode>>)> {
        let tag = self.ended.pop_front()?;
        let Some(Transfer::Write { ends, .. }) = &mut self.transfers[tag as usize] else {
            unreachable!("only writes are put off, and none is removed before");
        };
        Some((tag, std::mem::take(ends)))
    }

    pub(crate) fn remove(&mut self, tag: u64) -> Transfer {
        let tag = u32::try_from(tag).expect("a tag that was handed out");
        self.free.push(tag);
        let transfer = self.transfers[tag as usize].take().expect("a transfer completes once");
        if let Transfer::Read(range) | Transfer::Past(range, _) = &transfer {
            let place = self.reading.iter().position(|&mapping| mapping == range.mapping);
            self.reading.swap_remove(place.expect("every read is listed"));
        }
        transfer
    }

    /// Whether pages of a mapping are being read.
    pub(crate) fn reads(&self, mapping: MappingId) -> bool {
        self.reading.contains(&mapping)
    }

    /// Writes of pages so far: the number of the next one.
    pub(crate) fn writes(&self) -> u64 {
        self.writes
    }

    /// Whether a write of pages to a disk that began before number `before` is on its way.
    pub(crate) fn writes_before(&self, disk: u16, before: u64) -> bool {
        let is_old = |transfer: &Transfer| match transfer {
            Transfer::Write { device, number, .. } => *device == disk && *number < before,
            _ => false,
        };
        self.transfers.iter().flatten().any(is_old)
    }

    /// Whether a write of pages of a mapping that began before number `before` is on its way.
    pub(crate) fn writes_of_before(&self, mapping: MappingId, before: u64) -> bool {
        let is_old = |transfer: &Transfer| match transfer {
            Transfer::Write { ranges, number, .. } => {
                *number < before && ranges.iter().any(|range| range.mapping == mapping)
            }
            _ => false,
        };
        self.transfers.iter().flatten().any(is_old)
    }

    /// Whether blocks of the journal of a disk are being written.
    pub(crate) fn writes_journal(&self, disk: u16) -> bool {
        self.transfers
            .iter()
            .flatten()
            .any(|transfer| matches!(transfer, Transfer::Journal(on) if *on == disk))
    }

    /// Mappings with pages being written.
    pub(crate) fn written_mappings(&self) -> Vec<MappingId> {
        let ranges = |transfer: &Transfer| match transfer {
            Transfer::Write { ranges, .. } => ranges.iter().map(|range| range.mapping).collect(),
            Transfer::Read(_)
            | Transfer::Past(..)
            | Transfer::Cluster(_)
            | Transfer::ClusterWrite { .. }
            | Transfer::Log(_)
            | Transfer::Journal(_) => Vec::new(),
        };
        self.transfers.iter().flatten().flat_map(ranges).collect()
    }
}

/// Consecutive pages of a mapping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PageRange {
    pub(crate) mapping: MappingId,
    pub(crate) first: u32,
    pub(crate) count: u32,
}
