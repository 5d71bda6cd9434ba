//! Requests that are on their way to and from the data disks, by tag. Next: [`super::io`].

use mm::base::ids::MappingId;
use mm::fs::xfs::buf::ClusterId;

/// A request on its way.
#[derive(Debug, Clone)]
pub(crate) enum Transfer {
    Read(PageRange),
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
    },
    /// A record of the log of XFS is written.
    Log(u64),
}

/// Requests that are on their way, by tag.
#[derive(Debug, Default)]
pub(crate) struct InFlight {
    transfers: Vec<Option<Transfer>>,
    free: Vec<u32>,
    /// Mappings of the reads among them, which are few beside writes of small files.
    reading: Vec<MappingId>,
}

impl InFlight {
    /// Notes a request; returns its tag.
    pub(crate) fn add(&mut self, transfer: Transfer) -> u64 {
        if let Transfer::Read(range) = &transfer {
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

    /// Notes a write of these pages to a disk.
    pub(crate) fn add_write(&mut self, device: u16, ranges: Vec<PageRange>) -> u64 {
        self.add(Transfer::Write { device, ranges })
    }

    pub(crate) fn remove(&mut self, tag: u64) -> Transfer {
        let tag = u32::try_from(tag).expect("a tag that was handed out");
        self.free.push(tag);
        let transfer = self.transfers[tag as usize].take().expect("a transfer completes once");
        if let Transfer::Read(range) = &transfer {
            let place = self.reading.iter().position(|&mapping| mapping == range.mapping);
            self.reading.swap_remove(place.expect("every read is listed"));
        }
        transfer
    }

    /// Whether pages of a mapping are being read.
    pub(crate) fn reads(&self, mapping: MappingId) -> bool {
        self.reading.contains(&mapping)
    }

    /// Mappings with pages being written.
    pub(crate) fn written_mappings(&self) -> Vec<MappingId> {
        let ranges = |transfer: &Transfer| match transfer {
            Transfer::Write { ranges, .. } => ranges.iter().map(|range| range.mapping).collect(),
            Transfer::Read(_) | Transfer::Cluster(_) | Transfer::ClusterWrite { .. } | Transfer::Log(_) => {
                Vec::new()
            }
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
