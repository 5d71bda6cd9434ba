//! A small machine on which a test reads pages of one file and reclaims, and draws its lists.
//!
//! It does what the kernel's drivers do, without waiting: [`World::read`] is a `read(2)` of one
//! page without readahead, [`World::pass`] one pass of reclaim over the cgroup tree.
#![allow(dead_code)] // Each test family uses a part.

pub mod policy;

use std::fmt::Write;

use pagetide_mm as mm;

use mm::base::event::NoTrace;
use mm::base::frame::PageFlags;
use mm::base::gfp::Gfp;
use mm::base::ids::MappingId;
use mm::base::layout::{MemoryLayout, ZoneKind};
use mm::base::sysctl::Sysctls;
use mm::base::vmstat::VmEvent;
use mm::cgroup::tree::Charge;
use mm::lru::lists::LruList;
use mm::pages::cache::Prepared;
use mm::pages::tree::Slot;
use mm::reclaim::run::ScanControl;
use mm::version::geometry::Cache;
use mm::version::presets::Version;
use mm::version::rules::Rule;
use mm::{MemcgId, Memory};
use units::{CpuId, NodeId, Order, Pages, Pfn};

pub const CPU: CpuId = CpuId(0);
pub const REMOTE: CpuId = CpuId(1);
pub const NODE: NodeId = NodeId(0);

/// What one pass did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Passed {
    pub scanned: u64,
    pub reclaimed: u64,
    pub deactivated: u64,
}

pub struct World {
    pub mem: Memory<NoTrace>,
    pub file: MappingId,
    /// Changes of a host's mappings in passes so far.
    pub remapped: u64,
}

impl World {
    /// A machine with 2 CPUs and so many MiB under `kernel`.
    pub fn boot(kernel: &str, mib: u64) -> Self {
        Self::boot_with(kernel, &[], mib)
    }

    /// The same machine under `kernel` with other answers to some decisions.
    pub fn boot_with(kernel: &str, answers: &[Rule], mib: u64) -> Self {
        let layout = MemoryLayout::flat(Pages(mib << 8), 2);
        let mut kernel = Version::parse(kernel).expect("a preset");
        kernel.rules = kernel.rules.edited(answers);
        let mut mem = Memory::boot(&layout, kernel, Sysctls::default(), NoTrace).expect("a plain machine");
        let file = mem.mapping_create();
        Self { mem, file, remapped: 0 }
    }

    pub fn group(&mut self, path: &str) -> MemcgId {
        let (parent, name) = path.rsplit_once('/').unwrap_or(("", path));
        let parent = if parent.is_empty() {
            MemcgId::ROOT
        } else {
            self.mem.core.cgroups.find(parent).expect("a parent")
        };
        self.mem.memcg_create(parent, name)
    }

    /// The page at `index`, if it is in memory.
    pub fn page(&self, index: u32) -> Option<Pfn> {
        match self.mem.cache.find(self.file, index) {
            Slot::Page(pfn) => Some(pfn),
            _ => None,
        }
    }

    /// Allocates, charges and adds a folio to the page cache and to a batch of `cpu`; false when
    /// memory or a limit does not allow it.
    pub fn add(&mut self, cpu: CpuId, memcg: MemcgId, index: u32, order: Order) -> bool {
        let flags = self.mem.core.alloc.fast_flags(cpu, Gfp::HIGHUSER_MOVABLE);
        let Some(pfn) = self.mem.core.alloc.alloc(cpu, Gfp::HIGHUSER_MOVABLE, order, flags).page else {
            return false;
        };
        let batch = self.mem.core.cgroups.charge_batch();
        if self.mem.core.cgroups.try_charge(cpu, memcg, order.pages(), batch) != Charge::Done
            || !self.prepare(cpu, memcg, index, order)
        {
            self.mem.core.alloc.free(cpu, pfn, order);
            return false;
        }
        if let Some(shadow) = self.mem.insert_page(self.file, index, pfn, memcg) {
            self.mem.refault(pfn, shadow, Gfp::HIGHUSER_MOVABLE);
        }
        self.mem.lru_add(cpu, pfn);
        true
    }

    /// What was freed so far has waited for RCU long enough.
    pub fn grace_period(&mut self) {
        for _ in 0..2 {
            self.mem.grace_period_ended(CPU);
        }
    }

    /// Makes the tree nodes for a folio at `index`; false when memory or a limit does not allow it.
    pub fn prepare(&mut self, cpu: CpuId, memcg: MemcgId, index: u32, order: Order) -> bool {
        loop {
            match self.mem.prepare_insert(cpu, self.file, index, order.pages(), memcg) {
                Prepared::Ready => return true,
                Prepared::NeedsCharge { pages } => {
                    let batch = self.mem.core.cgroups.charge_batch();
                    if self.mem.core.cgroups.try_charge(cpu, memcg, pages, batch) != Charge::Done {
                        return false;
                    }
                    self.mem.core.cgroups.object_pages_charged(cpu, memcg, pages);
                }
                Prepared::NeedsSlab => {
                    let gfp = Gfp::KERNEL | Gfp::RECLAIMABLE_BIT;
                    let flags = self.mem.core.alloc.fast_flags(cpu, gfp);
                    let Some(pfn) = self.mem.core.alloc.alloc(cpu, gfp, Order(0), flags).page else {
                        return false;
                    };
                    if let Some(payer) = self.mem.core.slabs.slab_payer(Cache::TreeNode, memcg)
                        && self.mem.core.cgroups.try_charge(cpu, payer, 1, 1) != Charge::Done
                    {
                        self.mem.core.alloc.free(cpu, pfn, Order(0));
                        return false;
                    }
                    self.mem.grow_slab(cpu, Cache::TreeNode, memcg, pfn);
                }
            }
        }
    }

    /// Reads one page on `cpu` as a task of `memcg`.
    pub fn read_on(&mut self, cpu: CpuId, memcg: MemcgId, index: u32) {
        if self.page(index).is_none() {
            assert!(self.add(cpu, memcg, index, Order(0)), "the scene fits into memory");
        }
        let pfn = self.page(index).expect("it was just added");
        self.mem.mark_accessed(cpu, pfn);
    }

    pub fn read(&mut self, memcg: MemcgId, indices: impl IntoIterator<Item = u32>) {
        for index in indices {
            self.read_on(CPU, memcg, index);
        }
    }

    /// Reads pages twice and empties all batches: they are active.
    pub fn heat(&mut self, memcg: MemcgId, indices: std::ops::Range<u32>) {
        self.read(memcg, indices.clone());
        self.read(memcg, indices);
        self.settle();
    }

    /// Empties all batches and flushes statistics.
    pub fn settle(&mut self) {
        self.mem.lru_drain_all();
        self.mem.core.cgroups.flush_periodic();
    }

    /// One pass at the run's priority.
    pub fn pass(&mut self, sc: &mut ScanControl) -> Passed {
        let before = (sc.nr_scanned, sc.nr_reclaimed);
        let mut passed = Passed::default();
        let mut walk = self.mem.begin_pass(NODE, sc);
        let mut visited = None;
        while let Some(memcg) = self.mem.next_memcg(&mut walk, visited, sc) {
            visited = Some(memcg);
            let Some(mut scan) = self.mem.begin_lruvec(memcg, NODE, sc) else { continue };
            while let Some(report) = self.mem.shrink_chunk(CPU, &mut scan, sc) {
                passed.deactivated += u64::from(report.deactivated);
                self.remapped += u64::from(report.swap.remapped);
            }
        }
        (passed.scanned, passed.reclaimed) = (sc.nr_scanned - before.0, sc.nr_reclaimed - before.1);
        passed
    }

    /// Passes from priority 12 on until the run has enough, then the snapshot of refaults.
    pub fn run(&mut self, sc: &mut ScanControl) -> Vec<Passed> {
        let mut passes = Vec::new();
        loop {
            passes.push(self.pass(sc));
            if sc.nr_reclaimed >= sc.nr_to_reclaim || sc.priority == 0 {
                break;
            }
            sc.priority -= 1;
        }
        self.mem.snapshot_refaults(sc.target, NODE);
        passes
    }

    pub fn limit(&self, target: MemcgId) -> ScanControl {
        ScanControl::limit(target, 1)
    }

    pub fn direct(&self) -> ScanControl {
        ScanControl::direct(ZoneKind::Movable)
    }

    pub fn sizes(&self, memcg: MemcgId) -> (usize, usize) {
        let len = |list| self.mem.lru_list(memcg, NODE, list).count();
        (len(LruList::ActiveFile), len(LruList::InactiveFile))
    }

    pub fn event(&self, event: VmEvent) -> u64 {
        self.mem.core.alloc.events.get(event)
    }

    /// File indices on a list, the newest first.
    pub fn indices(&self, memcg: MemcgId, list: LruList) -> Vec<u32> {
        self.mem.lru_list(memcg, NODE, list).map(|pfn| self.mem.core.alloc.frames.index(pfn)).collect()
    }

    /// The lists of a cgroup, newest first; `'` marks a page that is Referenced. Pages in a batch
    /// are on no list yet.
    pub fn draw(&self, memcg: MemcgId) -> String {
        let name = &self.mem.core.cgroups[memcg].path;
        let mut text = format!("{}:", if name.is_empty() { "root" } else { name });
        for (title, list) in [("active", LruList::ActiveFile), ("inactive", LruList::InactiveFile)] {
            let pages: Vec<Pfn> = self.mem.lru_list(memcg, NODE, list).collect();
            let _ = write!(text, " {title} [{}]", self.draw_pages(&pages));
        }
        for cpu in [CPU, REMOTE] {
            let batch: Vec<Pfn> = self.mem.add_batch(cpu).to_vec();
            if !batch.is_empty() {
                let _ = write!(text, " cpu{cpu} adds [{}]", self.draw_pages(&batch));
            }
        }
        text
    }

    fn draw_pages(&self, pages: &[Pfn]) -> String {
        let frames = &self.mem.core.alloc.frames;
        let one = |&pfn: &Pfn| {
            let mark = if frames.flags(pfn).has(PageFlags::REFERENCED) { "'" } else { "" };
            format!("{}{mark}", frames.index(pfn))
        };
        pages.iter().map(one).collect::<Vec<_>>().join(" ")
    }
}
