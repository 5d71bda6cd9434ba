//! Memory as the kernel prints it when it runs out: `Mem-Info` (`show_free_areas`, since 6.6 in
//! `mm/show_mem.c`), and what it prints of a cgroup at its limit (`mem_cgroup_print_oom_meminfo`).
//!
//! Lines, their order and their units are the kernel's: pages without a unit, else kB. What nothing here
//! models is 0 (isolated and mapped pages, shared memory, CMA). Left out: pages under writeback by node,
//! which are with the dirty ones as in `writepending`, and huge page pools. Next: `why.rs`, and
//! `alloc/report.rs` of the kernel, which prints what is around it.

use core::fmt::Write;
use std_alloc::format;
use std_alloc::string::String;
use std_alloc::vec::Vec;

use units::{CpuId, NodeId, Order, PAGE_SIZE};

use crate::alloc::buddy::ORDERS;
use crate::alloc::flags::ZoneSet;
use crate::alloc::watermark::Mark;
use crate::base::event::Trace;
use crate::base::gfp::MigrateType;
use crate::base::ids::MemcgId;
use crate::base::layout::{ZoneId, ZoneKind};
use crate::lru::lists::LruList;
use crate::memory::Memory;
use crate::version::geometry::Cache;

const fn kb(pages: u64) -> u64 {
    pages * (PAGE_SIZE / 1024)
}

/// Page tables and kernel stacks, by zone: whoever has processes knows them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct KernelPages {
    tables: [u64; ZoneSet::MAX_ZONES],
    stacks: [u64; ZoneSet::MAX_ZONES],
}

impl KernelPages {
    /// One more page table in a zone.
    pub fn add_table(&mut self, zone: ZoneId) {
        self.tables[zone.index()] += 1;
    }

    /// One more page of a stack in a zone.
    pub fn add_stack(&mut self, zone: ZoneId) {
        self.stacks[zone.index()] += 1;
    }
}

impl<T: Trace> Memory<T> {
    /// All memory of the machine, for a task on `cpu`: LRU lists, slab and dirty pages, each zone, its
    /// free blocks; slabs that nobody can reclaim if they are more than the lists.
    pub fn mem_info(&self, cpu: CpuId, kernel: &KernelPages) -> Vec<String> {
        let [inactive_anon, active_anon, inactive_file, active_file, unevictable] =
            LruList::ALL.map(|list| self.lru_pages(list));
        let zones = 0..u8::try_from(self.core.alloc.zones().len()).expect("8 bits of zones");
        let zones: Vec<ZoneId> = zones.map(ZoneId).collect();
        let per_cpu: u64 = zones.iter().map(|&zone| self.per_cpu_pages(zone)).sum();
        let mut lines = Vec::from([
            String::from("Mem-Info:"),
            format!("active_anon:{active_anon} inactive_anon:{inactive_anon} isolated_anon:0"),
            format!(" active_file:{active_file} inactive_file:{inactive_file} isolated_file:0"),
            format!(
                " unevictable:{unevictable} dirty:{} writeback:{}",
                self.cache.dirty(),
                self.cache.under_writeback()
            ),
            format!(
                " slab_reclaimable:{} slab_unreclaimable:{}",
                self.slab_pages(true),
                self.slab_pages(false)
            ),
            format!(" mapped:0 shmem:0 pagetables:{} bounce:0", kernel.tables.iter().sum::<u64>()),
            format!(" free:{} free_pcp:{per_cpu} free_cma:0", self.core.alloc.free_pages().0),
        ]);
        lines.extend(self.nodes().map(|node| self.node_info(node)));
        for &zone in &zones {
            lines.extend(self.zone_info(zone, cpu, kernel));
        }
        lines.extend(zones.iter().map(|&zone| self.free_blocks(zone)));
        lines.push(format!("{} total pagecache pages", self.cache.trees().total_pages()));
        let (total, free) = (kb(self.core.swap.total_pages()), kb(self.core.swap.free_pages()));
        lines.extend([
            format!("{} pages in swap cache", self.cache.swap_cached()),
            format!("Free swap  = {free}kB"),
            format!("Total swap = {total}kB"),
        ]);
        let managed: u64 = self.core.alloc.zones().iter().map(|zone| zone.managed.0).sum();
        let present: u64 = self.core.alloc.zones().iter().map(|zone| u64::from(zone.spanned)).sum();
        lines.push(format!("{present} pages RAM"));
        lines.push(String::from("0 pages HighMem/MovableOnly"));
        lines.push(format!("{} pages reserved", present - managed));
        // `should_dump_unreclaim_slab`
        if self.slab_pages(false) > LruList::ALL.map(|list| self.lru_pages(list)).iter().sum() {
            lines.extend(self.unreclaimable_slab());
        }
        lines
    }

    fn node_info(&self, node: NodeId) -> String {
        format!(
            "Node {node} {} isolated(anon):0kB isolated(file):0kB mapped:0kB writepending:{}kB shmem:0kB \
             all_unreclaimable? {}",
            self.lists_in_kb(node, None),
            kb(self.cache.pending(node)),
            if self.is_hopeless(node) { "yes" } else { "no" }
        )
    }

    /// `dump_unreclaimable_slab`
    fn unreclaimable_slab(&self) -> Vec<String> {
        let slabs = &self.core.slabs;
        let caches = Cache::ALL.into_iter().filter(|&cache| !slabs.geometry(cache).reclaimable);
        let line = |cache: Cache| {
            let (places, used) = slabs.places(cache);
            let kb = |objects: u64| objects * u64::from(slabs.layout(cache).object_size) / 1024;
            (places > 0).then(|| format!("{:<17} {:>10}KB {:>10}KB", cache.name(), kb(used), kb(places)))
        };
        let mut lines = Vec::from([
            String::from("Unreclaimable slab info:"),
            String::from("Name                      Used          Total"),
        ]);
        lines.extend(caches.filter_map(line));
        lines
    }

    /// A cgroup at its limit: usage, and what it consists of.
    pub fn memcg_info(&mut self, memcg: MemcgId) -> Vec<String> {
        let stats = self.memcg_stat(memcg);
        let group = &self.core.cgroups[memcg];
        let mut lines = Vec::from([
            format!(
                "memory: usage {}kB, limit {}kB, failcnt {}",
                kb(group.memory.usage),
                kb(group.memory.max.min(u64::MAX / 4)),
                group.events.max
            ),
            format!("Memory cgroup stats for /{}:", group.path),
        ]);
        let counted = stats.into_iter().filter(|&(_, value)| value > 0);
        lines.extend(counted.map(|(name, value)| format!("{name} {value}")));
        lines
    }

    fn zone_info(&self, id: ZoneId, cpu: CpuId, kernel: &KernelPages) -> [String; 2] {
        let zone = self.core.alloc.zone(id);
        let [min, low, high] = Mark::ALL.map(|mark| kb(zone.watermarks.mark(mark)));
        let reserves = ZoneKind::ALL.map(|highest_zoneidx| zone.watermarks.reserve(highest_zoneidx));
        let state = format!(
            "Node {} {} free:{}kB boost:{}kB min:{min}kB low:{low}kB high:{high}kB \
             reserved_highatomic:{}KB {} present:{}kB managed:{}kB mlocked:{}kB kernel_stack:{}kB pagetables:{}kB \
             bounce:0kB free_pcp:{}kB local_pcp:{}kB free_cma:0kB",
            zone.node,
            zone.kind.name(),
            kb(zone.free_pages().0),
            kb(zone.watermarks.boost().0),
            kb(zone.free_area.reserved_highatomic()),
            self.lists_in_kb(zone.node, Some(zone.kind)),
            kb(u64::from(zone.spanned)),
            kb(zone.managed.0),
            kb(self.lru.locked_pages(zone.node, zone.kind)),
            kb(kernel.stacks[id.index()]),
            kb(kernel.tables[id.index()]),
            kb(self.per_cpu_pages(id)),
            kb(u64::from(self.core.alloc.pcp(cpu, id).count())),
        );
        let [dma, dma32, normal, movable] = reserves;
        [state, format!("lowmem_reserve[]: {dma} {dma32} {normal} {movable}")]
    }

    /// `4*4kB (UM) 1*8kB (M) ... = 24kB`: free blocks of every order and the types that have them.
    fn free_blocks(&self, id: ZoneId) -> String {
        let zone = self.core.alloc.zone(id);
        let mut line = format!("Node {} {}:", zone.node, zone.kind.name());
        for order in (0..ORDERS).map(|order| Order(u8::try_from(order).expect("11 orders"))) {
            let blocks = zone.free_area.blocks_free(order);
            let has = |migrate_type: &MigrateType| !zone.free_area.list(*migrate_type, order).is_empty();
            let types: String =
                MigrateType::ALL.iter().filter(|migrate_type| has(migrate_type)).map(letter).collect();
            let types = if types.is_empty() { types } else { format!(" ({types})") };
            let _ = write!(line, " {blocks}*{}kB{types}", kb(order.pages().into()));
        }
        let _ = write!(line, " = {}kB", kb(zone.free_area.free_pages()));
        line
    }

    /// The LRU lists of a node, or of one of its zones.
    fn lists_in_kb(&self, node: NodeId, kind: Option<ZoneKind>) -> String {
        let pages = |list| match kind {
            Some(kind) => self.lru.zone_pages(list, node, kind),
            None => self.lru.node_pages(list, node),
        };
        let [inactive_anon, active_anon, inactive_file, active_file, unevictable] =
            LruList::ALL.map(|list| kb(pages(list)));
        format!(
            "active_anon:{active_anon}kB inactive_anon:{inactive_anon}kB active_file:{active_file}kB \
             inactive_file:{inactive_file}kB unevictable:{unevictable}kB"
        )
    }

    fn per_cpu_pages(&self, zone: ZoneId) -> u64 {
        let cpus = (0..self.core.alloc.cpu_count()).map(units::CpuId);
        cpus.map(|cpu| u64::from(self.core.alloc.pcp(cpu, zone).count())).sum()
    }
}

/// As `show_migration_types` names them.
const fn letter(migrate_type: &MigrateType) -> char {
    match migrate_type {
        MigrateType::Unmovable => 'U',
        MigrateType::Movable => 'M',
        MigrateType::Reclaimable => 'E',
        MigrateType::HighAtomic => 'H',
    }
}
