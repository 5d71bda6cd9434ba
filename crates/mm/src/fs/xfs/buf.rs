//! Buffers of XFS metadata, as far as inodes need them: one for each cluster of 32 inodes
//! (MECHANISMS 11.1).
//!
//! A buffer is four unmovable pages of 4 KiB that are on no list of reclaim. It stays after its use
//! until the shrinker has met it twice without a use in between, then its pages go. Reading inodes
//! back, and making new ones, thus turns over unmovable pages all the time, in a memory that is
//! full of movable ones.
//!
//! Whoever needs a buffer to stay holds it: those who wait until it is read, a write of it, and since 5.9 the inodes of
//! it that are not clean ([`InodeCluster::Pinned`](crate::version::rules::InodeCluster)). The shrinker takes a held one
//! off its list without freeing it; it goes, or is listed again, when nobody holds it any more.
//!
//! Left out: the buffer's own slab object, buffers of directories, free space and inode B-trees.
//! Neighbours: [`crate::reclaim::shrinker`], [`super::items`] for what is flushed into it.

use std_alloc::collections::VecDeque;
use std_alloc::vec;
use std_alloc::vec::Vec;

use units::{CpuId, NodeId, Order, Pfn};

use crate::base::event::Trace;
use crate::core::Core;

/// Inodes of 512 bytes in one buffer.
pub const INODES_IN_CLUSTER: u32 = 32;
/// Pages of a buffer.
pub const CLUSTER_PAGES: usize = 4;
/// Scans that a buffer survives after a use (`XFS_INO_REF`).
const REFERENCES: u8 = 2;

/// A cluster of inodes, by number on the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ClusterId(pub u32);

#[derive(Debug, Clone, Copy)]
struct Buffer {
    pages: [Pfn; CLUSTER_PAGES],
    references: u8,
    valid: bool,
    /// By how many it is held.
    held: u8,
    /// How many wait until it is read, or were woken and have not used it yet: they hold it, too.
    awaited: u32,
    /// It is on the list of its node.
    listed: bool,
    /// It is queued to be written, or being written: nobody else may change it.
    writing: bool,
    /// Of such a write: one who reclaims inodes began it.
    for_reclaim: bool,
}

impl Buffer {
    const fn is_held(&self) -> bool {
        self.held > 0 || self.awaited > 0
    }
}

/// Whether a cluster is in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClusterState {
    /// It is not.
    Missing,
    /// It is being read.
    Reading,
    /// It is being written.
    Writing,
    /// It is.
    Ready,
}

/// What is under way with a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transfer {
    /// It is being read.
    Read,
    /// It is queued to be written, or being written, by the AIL's thread.
    Write,
    /// The same by one who reclaims inodes.
    ReclaimersWrite,
}

/// All buffers in memory.
#[derive(Debug, Clone)]
pub struct XfsBuffers {
    /// By cluster.
    buffers: Vec<Option<Buffer>>,
    /// By node, the next one to be scanned first.
    lists: Vec<VecDeque<ClusterId>>,
    /// Pages of buffers that went.
    pages_freed: u64,
}

impl XfsBuffers {
    /// None yet, on a machine of so many nodes.
    pub fn new(nodes: usize) -> Self {
        Self { buffers: Vec::new(), lists: vec![VecDeque::new(); nodes], pages_freed: 0 }
    }

    /// Buffers in memory on a node.
    pub fn count(&self, node: NodeId) -> u64 {
        self.lists[node.index()].len() as u64
    }

    fn get(&mut self, cluster: ClusterId) -> Option<&mut Buffer> {
        self.buffers.get_mut(cluster.0 as usize)?.as_mut()
    }

    /// Looks a cluster up in order to use it.
    pub fn touch(&mut self, cluster: ClusterId) -> ClusterState {
        match self.get(cluster) {
            None => ClusterState::Missing,
            Some(buffer) => {
                buffer.references = REFERENCES;
                match (buffer.valid, buffer.writing) {
                    (false, _) => ClusterState::Reading,
                    (true, true) => ClusterState::Writing,
                    (true, false) => ClusterState::Ready,
                }
            }
        }
    }

    /// Makes these pages in use the buffer of a cluster; `valid`: there is nothing to be read.
    ///
    /// # Panics
    /// When the cluster is in memory already.
    pub fn add<T: Trace>(
        &mut self,
        core: &Core<T>,
        cluster: ClusterId,
        pages: [Pfn; CLUSTER_PAGES],
        valid: bool,
    ) {
        let (_, node) = core.page_place(pages[0]);
        let index = cluster.0 as usize;
        if self.buffers.len() <= index {
            self.buffers.resize(index + 1, None);
        }
        let before = self.buffers[index].replace(Buffer {
            pages,
            references: REFERENCES,
            valid,
            held: 0,
            awaited: 0,
            listed: true,
            writing: false,
            for_reclaim: false,
        });
        assert!(before.is_none(), "cluster {} has two buffers", cluster.0);
        self.lists[node.index()].push_back(cluster);
    }

    /// A cluster that was being read is valid.
    ///
    /// # Panics
    /// When it is not in memory.
    pub fn read_done(&mut self, cluster: ClusterId) {
        self.get(cluster).expect("a buffer that is being read stays").valid = true;
    }

    /// Somebody needs the buffer of a cluster to stay.
    ///
    /// # Panics
    /// When it is not in memory.
    pub(crate) fn hold(&mut self, cluster: ClusterId) {
        self.get(cluster).expect("only a buffer in memory is held").held += 1;
    }

    /// One that held it does not any more (`xfs_buf_rele`).
    ///
    /// # Panics
    /// When nobody holds it.
    pub(crate) fn release<T: Trace>(&mut self, core: &mut Core<T>, cpu: CpuId, cluster: ClusterId) {
        let buffer = self.get(cluster).expect("a held buffer stays");
        buffer.held = buffer.held.checked_sub(1).expect("it was held");
        self.let_go(core, cpu, cluster);
    }

    /// Somebody waits until a cluster is read, and goes on with it then.
    ///
    /// # Panics
    /// When it is not in memory.
    pub(crate) fn begin_wait(&mut self, cluster: ClusterId) {
        self.get(cluster).expect("it is being read").awaited += 1;
    }

    /// One that waited uses it.
    ///
    /// # Panics
    /// When nobody waited for it.
    pub(crate) fn end_wait<T: Trace>(&mut self, core: &mut Core<T>, cpu: CpuId, cluster: ClusterId) {
        let buffer = self.get(cluster).expect("an awaited buffer stays");
        if buffer.valid {
            buffer.references = REFERENCES;
        }
        buffer.awaited = buffer.awaited.checked_sub(1).expect("somebody waited for it");
        self.let_go(core, cpu, cluster);
    }

    /// What becomes of a buffer that may be held by nobody any more.
    fn let_go<T: Trace>(&mut self, core: &mut Core<T>, cpu: CpuId, cluster: ClusterId) {
        let buffer = self.get(cluster).expect("it was held just now");
        if buffer.is_held() || buffer.listed {
            return;
        }
        if buffer.references > 0 {
            buffer.listed = true;
            let (_, node) = core.page_place(buffer.pages[0]);
            self.lists[node.index()].push_back(cluster);
        } else {
            self.free(core, cpu, cluster);
        }
    }

    /// Begins to write a buffer: it is held and locked until then.
    pub(super) fn begin_write(&mut self, cluster: ClusterId) {
        self.hold(cluster);
        let buffer = self.get(cluster).expect("just held");
        assert!(buffer.valid && !buffer.writing, "cluster {} is locked", cluster.0);
        (buffer.writing, buffer.for_reclaim) = (true, false);
    }

    /// A write that was just begun is that of one who reclaims inodes.
    pub(super) fn write_for_reclaim(&mut self, cluster: ClusterId) {
        self.get(cluster).expect("a buffer that is written stays").for_reclaim = true;
    }

    /// What is under way with the buffer of a cluster, for those who wait for it to be told on whom.
    pub fn transfer(&self, cluster: ClusterId) -> Option<Transfer> {
        let buffer = self.buffers.get(cluster.0 as usize)?.as_ref()?;
        match (buffer.valid, buffer.writing, buffer.for_reclaim) {
            (false, ..) => Some(Transfer::Read),
            (true, true, false) => Some(Transfer::Write),
            (true, true, true) => Some(Transfer::ReclaimersWrite),
            (true, false, _) => None,
        }
    }

    /// It is on the disk.
    pub(crate) fn end_write<T: Trace>(&mut self, core: &mut Core<T>, cpu: CpuId, cluster: ClusterId) {
        self.get(cluster).expect("a buffer that is written stays").writing = false;
        self.release(core, cpu, cluster);
    }

    fn free<T: Trace>(&mut self, core: &mut Core<T>, cpu: CpuId, cluster: ClusterId) {
        let buffer = self.buffers[cluster.0 as usize].take().expect("it is in memory");
        for pfn in buffer.pages {
            core.alloc.free(cpu, pfn, Order(0));
        }
        self.pages_freed += CLUSTER_PAGES as u64;
    }

    /// Pages that came free with their buffers since boot.
    pub(crate) fn pages_freed(&self) -> u64 {
        self.pages_freed
    }

    /// The pages of a cluster in memory.
    pub fn pages(&self, cluster: ClusterId) -> Option<[Pfn; CLUSTER_PAGES]> {
        self.buffers.get(cluster.0 as usize)?.map(|buffer| buffer.pages)
    }

    /// By how many the buffer of a cluster is held; none when it is not in memory.
    pub fn holders(&self, cluster: ClusterId) -> Option<u8> {
        self.buffers.get(cluster.0 as usize)?.map(|buffer| buffer.held)
    }

    /// Walks every list; returns what is wrong. `keepers`: by how many a buffer has to be held beside a write
    /// of it.
    pub(crate) fn check(&self, keepers: impl Fn(ClusterId) -> u8) -> Result<(), &'static str> {
        let mut listed = vec![false; self.buffers.len()];
        for &cluster in self.lists.iter().flatten() {
            match self.buffers.get(cluster.0 as usize) {
                Some(Some(buffer)) if buffer.listed => {}
                _ => return Err("a list of buffers names one that is not in memory, or not listed"),
            }
            if core::mem::replace(&mut listed[cluster.0 as usize], true) {
                return Err("a buffer is on a list twice");
            }
        }
        for (cluster, (buffer, listed)) in (0..).map(ClusterId).zip(self.buffers.iter().zip(listed)) {
            let keepers = keepers(cluster);
            let Some(buffer) = buffer else {
                if keepers > 0 {
                    return Err("the buffer of inodes that are not clean is not in memory");
                }
                continue;
            };
            if buffer.listed != listed {
                return Err("a buffer says that it is on a list and is on none");
            }
            if buffer.held != keepers + u8::from(buffer.writing) {
                return Err("a buffer is held by others than its write and its inodes");
            }
            if !buffer.listed && !buffer.is_held() {
                return Err("a buffer is on no list, and nobody holds it");
            }
            if buffer.writing && !buffer.valid {
                return Err("a buffer is written that was not read");
            }
        }
        Ok(())
    }

    /// Pages of all buffers, for checks.
    pub(crate) fn all_pages(&self) -> impl Iterator<Item = Pfn> + '_ {
        self.buffers.iter().flatten().flat_map(|buffer| buffer.pages)
    }

    /// Whether the buffer of a cluster is being written, for checks.
    pub(crate) fn is_writing(&self, cluster: ClusterId) -> bool {
        self.buffers.get(cluster.0 as usize).is_some_and(|buffer| buffer.is_some_and(|it| it.writing))
    }

    /// Looks `count` times at a buffer of a node, at each in turn; returns how many it took off its list. Whose
    /// pages came free is [`Self::pages_freed`].
    pub(crate) fn shrink<T: Trace>(
        &mut self,
        core: &mut Core<T>,
        cpu: CpuId,
        node: NodeId,
        count: u64,
    ) -> u64 {
        let mut freed = 0;
        for _ in 0..count {
            let list = &mut self.lists[node.index()];
            let Some(cluster) = list.pop_front() else { break };
            let buffer = self.get(cluster).expect("a listed buffer exists");
            if buffer.references > 0 || !buffer.valid {
                buffer.references = buffer.references.saturating_sub(1);
                self.lists[node.index()].push_back(cluster);
                continue;
            }
            buffer.listed = false;
            if !buffer.is_held() {
                self.free(core, cpu, cluster);
            }
            freed += 1;
        }
        freed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alloc::flags::AllocFlags;
    use crate::base::event::NoTrace;
    use crate::base::gfp::Gfp;
    use crate::base::layout::MemoryLayout;
    use crate::base::sysctl::Sysctls;
    use crate::version::presets::Version;
    use units::Pages;

    const CPU: CpuId = CpuId(0);
    const NODE: NodeId = NodeId(0);

    fn add(core: &mut Core<NoTrace>, buffers: &mut XfsBuffers, cluster: u32, valid: bool) {
        let page = |_| {
            core.alloc.alloc(CPU, Gfp::KERNEL, Order(0), AllocFlags::WMARK_MIN).page.expect("memory is free")
        };
        let pages = [0; CLUSTER_PAGES].map(page);
        buffers.add(core, ClusterId(cluster), pages, valid);
    }

    #[test]
    fn a_buffer_goes_at_the_third_scan_after_its_last_use() {
        let layout = MemoryLayout::flat(Pages(8192), 1);
        let kernel = Version::parse("linux-4.20-rc1").unwrap();
        let mut core = Core::boot(&layout, kernel, Sysctls::default(), NoTrace).unwrap();
        let mut buffers = XfsBuffers::new(1);
        add(&mut core, &mut buffers, 7, true);
        add(&mut core, &mut buffers, 9, true);
        add(&mut core, &mut buffers, 11, false);
        assert_eq!(buffers.count(NODE), 3);
        let mut scan = |buffers: &mut XfsBuffers| {
            let all = buffers.count(NODE);
            buffers.shrink(&mut core, CPU, NODE, all)
        };
        assert_eq!((scan(&mut buffers), scan(&mut buffers)), (0, 0));
        assert_eq!(buffers.touch(ClusterId(9)), ClusterState::Ready);
        assert_eq!(scan(&mut buffers), 1, "the one that was not used");
        assert_eq!(buffers.touch(ClusterId(7)), ClusterState::Missing);
        assert_eq!((scan(&mut buffers), scan(&mut buffers)), (0, 1));
        assert_eq!(buffers.touch(ClusterId(11)), ClusterState::Reading, "never while it is read");
        buffers.read_done(ClusterId(11));
        assert_eq!(buffers.touch(ClusterId(11)), ClusterState::Ready);
        core.alloc.check().unwrap();
    }

    /// Two that reclaimed without a pause took it away before the one that read it could use it, for ever: found by a
    /// world of 9 MiB under 5.4.
    #[test]
    fn a_buffer_that_was_read_stays_until_its_reader_has_used_it() {
        let layout = MemoryLayout::flat(Pages(8192), 1);
        let mut core =
            Core::boot(&layout, Version::parse("linux-5.4").unwrap(), Sysctls::default(), NoTrace).unwrap();
        let mut buffers = XfsBuffers::new(1);
        add(&mut core, &mut buffers, 7, false);
        buffers.begin_wait(ClusterId(7));
        buffers.read_done(ClusterId(7));
        (0..9).for_each(|_| _ = buffers.shrink(&mut core, CPU, NODE, 1));
        buffers.end_wait(&mut core, CPU, ClusterId(7));
        assert_eq!(buffers.touch(ClusterId(7)), ClusterState::Ready, "others have looked at it nine times");
        (0..3).for_each(|_| _ = buffers.shrink(&mut core, CPU, NODE, 1));
        assert_eq!(buffers.touch(ClusterId(7)), ClusterState::Missing);
        buffers.check(|_| 0).unwrap();
    }
}
