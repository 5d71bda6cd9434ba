//! Scenes of files in memory, and what visits of the shrinkers make of them (MECHANISMS 9.2 to 9.4,
//! MECHANISMS-6X 6.6, 7.2 to 7.4).
//!
//! One letter per file, in the order in which they were opened first:
//!
//! ```text
//! O   open            d   closed: dentry and inode in memory
//! i   inode alone     .   nothing
//! ```
//! [`inodes`] takes the rules of the two lists of objects one by one, [`visits`] how much a visit looks
//! at and what it is credited with.

mod inodes;
mod visits;

use std_alloc::string::String;
use std_alloc::vec::Vec;

use units::{CpuId, NodeId, Order, Pages, Pfn};

use crate::alloc::flags::AllocFlags;
use crate::base::event::NoTrace;
use crate::base::gfp::Gfp;
use crate::base::ids::{DentryId, MappingId, MemcgId};
use crate::base::layout::{MemoryLayout, ZoneKind};
use crate::base::sysctl::{Sysctl, Sysctls};
use crate::base::vmstat::{MemcgStat, VmEvent};
use crate::cgroup::tree::Charge;
use crate::core::Core;
use crate::fs::dentry::Name;
use crate::fs::inode::{InodeObjects, VfsLru};
use crate::fs::state::Fs;
use crate::fs::xfs::buf::{CLUSTER_PAGES, ClusterId};
use crate::lru::lists::Lru;
use crate::pages::cache::{PageCache, Prepared, release_file_page};
use crate::reclaim::plan::Shrinker;
use crate::reclaim::run::ScanControl;
use crate::reclaim::state::Reclaim;
use crate::slab::object::{Object, ObjectAlloc};
use crate::version::geometry::Cache;
use crate::version::presets::Version;

const CPU: CpuId = CpuId(0);
const NODE: NodeId = NodeId(0);
const ROOT: MemcgId = MemcgId::ROOT;
/// The directory of all files.
const TOP: DentryId = DentryId::root(0);

/// What one visit did: objects looked at in each batch, and freed.
#[derive(Debug, Default, PartialEq, Eq)]
struct Visit {
    batches: Vec<u64>,
    evicted: u64,
    freed: u64,
}

/// The parts that shrinkers work on.
struct Scene {
    core: Core<NoTrace>,
    lru: Lru,
    cache: PageCache,
    fs: Fs,
    reclaim: Reclaim,
    files: Vec<MappingId>,
    open: Vec<bool>,
}

impl Scene {
    /// 64 MiB, all of it free.
    fn boot(kernel: &str) -> Self {
        Self::boot_with(kernel, Sysctls::default())
    }

    fn boot_with(kernel: &str, sysctls: Sysctls) -> Self {
        let layout = MemoryLayout::flat(Pages(16_384), 1);
        let core = Core::boot(&layout, Version::parse(kernel).unwrap(), sysctls, NoTrace).unwrap();
        Self {
            core,
            lru: Lru::new(1, 1),
            cache: PageCache::new(1),
            fs: Fs::new(1),
            reclaim: Reclaim::new(1),
            files: Vec::new(),
            open: Vec::new(),
        }
    }

    fn group(&mut self, name: &str) -> MemcgId {
        self.lru.add_cgroup();
        self.fs.vfs.add_cgroup();
        self.reclaim.add_cgroup();
        self.core.cgroups.create(ROOT, name)
    }

    fn take(&mut self, gfp: Gfp, order: Order) -> Pfn {
        self.core.alloc.alloc(CPU, gfp, order, AllocFlags::WMARK_MIN).page.expect("memory is free")
    }

    fn charge_objects(&mut self, memcg: MemcgId, pages: u32) {
        assert_eq!(self.core.cgroups.try_charge(CPU, memcg, pages, pages), Charge::Done);
        self.core.cgroups.object_pages_charged(CPU, memcg, pages);
    }

    fn grow(&mut self, cache: Cache, memcg: MemcgId) {
        let (order, mobility) = self.core.slabs.request(cache);
        let block = self.take(Gfp::KERNEL | mobility, order);
        if let Some(payer) = self.core.slabs.slab_payer(cache, memcg) {
            let pages = order.pages();
            assert_eq!(self.core.cgroups.try_charge(CPU, payer, pages, pages), Charge::Done);
        }
        self.core.grow_slab(CPU, cache, memcg, block);
    }

    /// A grace period passes for all that was freed.
    fn grace_period(&mut self) {
        for _ in 0..2 {
            self.core.grace_period_ended(CPU);
        }
        assert!(!self.core.slabs.needs_grace_period());
    }

    fn object(&mut self, cache: Cache, memcg: MemcgId) -> Object {
        loop {
            match self.core.alloc_object(CPU, cache, memcg) {
                ObjectAlloc::Done(object) => return object,
                ObjectAlloc::NeedsCharge { pages } => self.charge_objects(memcg, pages),
                ObjectAlloc::NeedsSlab => self.grow(cache, memcg),
            }
        }
    }

    /// A file that a task of `memcg` opened and closed: its number.
    fn file(&mut self, memcg: MemcgId) -> usize {
        self.files.push(self.cache.create());
        self.open.push(false);
        let file = self.files.len() - 1;
        self.reopen(file, memcg);
        self.close(file);
        file
    }

    fn files(&mut self, memcg: MemcgId, count: usize) {
        for _ in 0..count {
            self.file(memcg);
        }
    }

    /// Opens a file again, bringing back what is gone.
    fn reopen(&mut self, file: usize, memcg: MemcgId) {
        let mapping = self.files[file];
        let dentry = self.fs.vfs.dentry_of(mapping);
        let object = dentry.is_none().then(|| self.object(Cache::Dentry, memcg));
        if !self.fs.vfs.has_inode(mapping) {
            let inode = self.object(Cache::Ext4Inode, memcg);
            let extra = self.object(Cache::Ext4Extra, memcg);
            self.fs
                .vfs
                .attach_inode(mapping, InodeObjects { number: mapping.0, inode, extra, log_item: None });
        }
        match (dentry, object) {
            (Some(dentry), _) => self.fs.vfs.hold_dentry(dentry),
            (None, object) => {
                let object = object.expect("just allocated");
                self.fs.vfs.add_dentry(TOP, Name(file as u64), object, Some(mapping));
            }
        }
        self.open[file] = true;
    }

    fn close(&mut self, file: usize) {
        let dentry = self.fs.vfs.dentry_of(self.files[file]).expect("an open file has one");
        self.fs.vfs.put_dentry(&mut self.core, &self.cache, CPU, dentry);
        self.open[file] = false;
    }

    fn set_inode_dirty(&mut self, file: usize, dirty: bool) {
        self.fs.vfs.set_inode_dirty(&self.core, &self.cache, self.files[file], dirty);
    }

    /// Adds a clean page to a file.
    fn page(&mut self, file: usize, index: u32, memcg: MemcgId) -> Pfn {
        let mapping = self.files[file];
        loop {
            match self.cache.prepare_insert(&mut self.core, CPU, mapping, index, 1, memcg) {
                Prepared::Ready => break,
                Prepared::NeedsCharge { pages } => self.charge_objects(memcg, pages),
                Prepared::NeedsSlab => self.grow(Cache::TreeNode, memcg),
            }
        }
        assert_eq!(self.core.cgroups.try_charge(CPU, memcg, 1, 1), Charge::Done);
        let pfn = self.take(Gfp::HIGHUSER_MOVABLE, Order(0));
        let _ = self.cache.insert_page(&mut self.core, mapping, index, pfn, memcg);
        self.lru.add(&mut self.core, CPU, pfn);
        self.lru.drain(&mut self.core, CPU);
        pfn
    }

    /// Reclaim takes a page and leaves a shadow.
    fn evict(&mut self, pfn: Pfn) {
        let shadow = self.lru.evict_shadow(&self.core, pfn, ROOT);
        self.lru.detach(&mut self.core, pfn);
        self.cache.remove_page(&mut self.core, CPU, pfn, Some(shadow));
        release_file_page(&mut self.core, CPU, pfn);
    }

    /// Leaves of a file that hold one shadow each.
    fn shadow_leaves(&mut self, file: usize, count: u32, memcg: MemcgId) {
        for leaf in 0..count {
            let pfn = self.page(file, leaf * 64, memcg);
            self.evict(pfn);
        }
    }

    fn pages_of(&self, file: usize) -> u64 {
        self.cache.trees().pages(self.files[file])
    }

    fn buffers(&mut self, count: u32) {
        for cluster in 0..count {
            let pages = [0; CLUSTER_PAGES].map(|_| self.take(Gfp::NOFS, Order(0)));
            self.fs.xfs_buffers.add(&self.core, ClusterId(cluster), pages, true);
        }
    }

    /// Looks at the oldest `count` dentries, or at inodes, as a shrinker would.
    fn prune_dentries(&mut self, count: u64) -> u64 {
        self.fs.vfs.prune_dentries(&mut self.core, &self.cache, CPU, ROOT, NODE, count).freed
    }

    fn prune_inodes(&mut self, count: u64) -> (u64, u64) {
        let Self { core, lru, cache, fs, .. } = self;
        let pruned = fs.vfs.prune_inodes(core, lru, cache, CPU, ROOT, NODE, count, true);
        (pruned.freed, pruned.stolen)
    }

    /// Dentries and inodes of a cgroup on their lists.
    fn listed(&self, memcg: MemcgId) -> (u64, u64) {
        let of = |lru| self.fs.vfs.listed_on(lru, memcg, NODE);
        (of(VfsLru::Dentry), of(VfsLru::Inode))
    }

    /// One visit to a shrinker; none when it is not visited.
    fn visit(&mut self, shrinker: Shrinker, memcg: MemcgId, sc: &mut ScanControl) -> Option<Visit> {
        let Self { core, lru, cache, fs, reclaim, .. } = self;
        let mut scan = reclaim.begin_slab(core, cache, fs, shrinker, memcg, NODE, sc)?;
        let mut visit = Visit::default();
        while let Some(report) = reclaim.shrink_slab_batch(core, lru, cache, fs, CPU, &mut scan, sc) {
            visit.batches.push(report.scanned);
            visit.evicted += report.evicted;
            visit.freed += report.freed;
        }
        reclaim.credit_slab(core, sc);
        self.check();
        Some(visit)
    }

    fn check(&self) {
        self.core.alloc.check().unwrap();
        self.core.slabs.check().unwrap();
        self.fs.vfs.check().unwrap();
    }

    fn event(&self, event: VmEvent) -> u64 {
        self.core.alloc.events.get(event)
    }

    /// One letter per file.
    fn draw(&self) -> String {
        let letter = |(&mapping, &open): (&MappingId, &bool)| match self.fs.vfs.dentry_of(mapping) {
            _ if open => 'O',
            Some(_) => 'd',
            None if self.fs.vfs.has_inode(mapping) => 'i',
            None => '.',
        };
        self.files.iter().zip(&self.open).map(letter).collect()
    }
}

/// A run of kswapd at this priority.
fn kswapd(priority: u8) -> ScanControl {
    ScanControl { priority, ..ScanControl::kswapd(ZoneKind::Movable) }
}

/// A run of limit reclaim at this priority.
fn limit(target: MemcgId, priority: u8) -> ScanControl {
    ScanControl { priority, ..ScanControl::limit(target, 1) }
}

fn pressure(percent: u64) -> Sysctls {
    let mut sysctls = Sysctls::default();
    sysctls.set(Sysctl::VfsCachePressure, percent);
    sysctls
}
