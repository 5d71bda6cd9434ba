//! Scenes of XFS inodes on their way through the log (MECHANISMS 11.2 to 11.5).
//!
//! One letter for each inode, in the order of their numbers:
//!
//! ```text
//! .   clean             p   pinned: its last change is not on the disk
//! a   in the AIL        P   pinned, and in the AIL for an older change
//! f   flushing          F   flushing, and changed meanwhile
//! -   not in memory
//! ```
//! [`log`] takes checkpoints, records and space, [`ail`] the thread that pushes, [`buffers`] what the check of them
//! finds, [`reclaim`] what becomes of evicted inodes; [`property`] does anything in any order.

mod ail;
mod buffers;
mod log;
mod property;
mod reclaim;

use std_alloc::string::String;
use std_alloc::vec::Vec;

use units::{CpuId, NodeId, Order, Pages};

use crate::alloc::flags::AllocFlags;
use crate::base::event::NoTrace;
use crate::base::gfp::Gfp;
use crate::base::ids::{MappingId, MemcgId};
use crate::base::layout::MemoryLayout;
use crate::base::sysctl::Sysctls;
use crate::fs::inode::InodeObjects;
use crate::fs::xfs::buf::{CLUSTER_PAGES, ClusterId, ClusterState, INODES_IN_CLUSTER};
use crate::fs::xfs::items::ItemState;
use crate::fs::xfs::log::{Change, Record};
use crate::memory::Memory;
use crate::slab::object::{Object, ObjectAlloc};
use crate::version::geometry::Cache;
use crate::version::presets::Version;

const CPU: CpuId = CpuId(0);
const NODE: NodeId = NodeId(0);
const ROOT: MemcgId = MemcgId::ROOT;
/// An inode gets blocks, all in one run.
const EXTEND: Change = Change::Extend { extents: 1 };

/// A memory with some inodes of XFS in it.
struct Scene {
    mem: Memory<NoTrace>,
    inodes: Vec<MappingId>,
    sent: Vec<Record>,
}

impl Scene {
    /// 64 MiB of memory, and a log of `log` MiB.
    fn boot(kernel: &str, log: u64) -> Self {
        let layout = MemoryLayout::flat(Pages(16_384), 1);
        let version = Version::parse(kernel).unwrap();
        let mut mem = Memory::boot(&layout, version, Sysctls::default(), NoTrace).unwrap();
        mem.set_xfs_log_size(units::Bytes(log << 20));
        Self { mem, inodes: Vec::new(), sent: Vec::new() }
    }

    fn object(&mut self, cache: Cache) -> Object {
        loop {
            match self.mem.alloc_object(CPU, cache, ROOT) {
                ObjectAlloc::Done(object) => return object,
                ObjectAlloc::NeedsSlab => {
                    let (order, mobility) = self.mem.slab_request(cache);
                    let gfp = Gfp::NOFS | mobility;
                    let page = self.mem.core.alloc.alloc(CPU, gfp, order, AllocFlags::WMARK_MIN).page;
                    self.mem.grow_slab(CPU, cache, ROOT, page.expect("memory is free"));
                }
                ObjectAlloc::NeedsCharge { .. } => unreachable!("the root pays for nothing"),
            }
        }
    }

    /// Inodes of new files, with the buffers of their clusters: their numbers follow those before.
    fn inodes(&mut self, count: usize) {
        for _ in 0..count {
            let number = u32::try_from(self.inodes.len()).unwrap();
            let mapping = self.mem.mapping_create();
            self.inodes.push(mapping);
            self.load(number as usize);
            self.buffer(ClusterId(number / INODES_IN_CLUSTER));
        }
    }

    /// Brings an inode into memory.
    fn load(&mut self, inode: usize) {
        let mapping = self.inodes[inode];
        if self.mem.recycle_inode(mapping) {
            return;
        }
        let (object, extra) = (self.object(Cache::XfsInode), self.object(Cache::XfsExtra));
        let number = u32::try_from(inode).unwrap();
        let objects = InodeObjects { number, inode: object, extra, log_item: None };
        self.mem.attach_inode(mapping, objects);
    }

    /// Brings a cluster into memory.
    fn buffer(&mut self, cluster: ClusterId) {
        if self.mem.cluster_use(cluster) == ClusterState::Missing {
            let page = |_| self.mem.core.alloc.alloc(CPU, Gfp::NOFS, Order(0), AllocFlags::WMARK_MIN).page;
            let pages = [0; CLUSTER_PAGES].map(page).map(|page| page.expect("memory is free"));
            self.mem.cluster_add(cluster, pages, true);
        }
    }

    /// The shrinker of buffers comes often enough to free all that it may.
    fn shrink_buffers(&mut self) {
        let Memory { core, fs, .. } = &mut self.mem;
        for _ in 0..3 {
            let count = fs.xfs_buffers.count(NODE);
            fs.xfs_buffers.shrink(core, CPU, NODE, count);
        }
    }

    fn change(&mut self, inode: usize, change: Change) {
        let mapping = self.inodes[inode];
        for _ in 0..self.mem.fs.xfs_log.wants_intents(mapping, change) {
            let intent = self.object(Cache::XfsExtentFree);
            self.mem.log_intent(intent);
        }
        let wants = self.mem.fs.xfs_log.wants_vector(mapping, change);
        let vector = wants.map(|cache| self.object(cache));
        while let Err(cluster) = self.mem.log_change(CPU, mapping, change, vector) {
            self.buffer(cluster);
        }
    }

    fn create(&mut self, inode: usize) {
        self.change(inode, Change::Create);
    }

    /// Closes the open checkpoint and sends its records off.
    fn close(&mut self, forced: bool) {
        self.mem.log_close();
        while let Some(record) = self.mem.log_next_record(forced) {
            self.sent.push(record);
        }
    }

    /// All records that were sent off are on the disk, and are committed.
    fn arrive(&mut self) {
        for record in core::mem::take(&mut self.sent) {
            self.mem.log_record_written(record.number);
        }
        while self.mem.log_commit(CPU, 3).is_some() {}
    }

    /// What `xfs_log_force` does.
    fn force(&mut self) {
        self.close(true);
        self.arrive();
    }

    /// The inode is evicted, as by the shrinker.
    fn evict(&mut self, inode: usize) {
        self.mem.fs.vfs.forget(&mut self.mem.core, CPU, self.inodes[inode]);
    }

    /// A letter for each inode.
    fn drawn(&self) -> String {
        let log = &self.mem.fs.xfs_log;
        let letter = |&mapping: &MappingId| {
            let in_ail = log.items().is_in_ail(mapping);
            match log.state(mapping) {
                _ if !log.items().is_known(mapping) => '-',
                ItemState::Clean => '.',
                ItemState::Pinned => {
                    if in_ail {
                        'P'
                    } else {
                        'p'
                    }
                }
                ItemState::Dirty => 'a',
                ItemState::Flushing => {
                    if log.items().is_pinned(mapping) {
                        'F'
                    } else {
                        'f'
                    }
                }
            }
        };
        self.inodes.iter().map(letter).collect()
    }

    fn check(&self) {
        self.mem.check_at_rest().unwrap();
    }
}
