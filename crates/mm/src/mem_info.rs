//! Memory as the kernel prints it when it runs out: `Mem-Info` (`show_free_areas`, since 6.6 in
//! `mm/show_mem.c`), and what it prints of a cgroup at its limit (`mem_cgroup_print_oom_meminfo`).
//!
//! Lines, their order and their units are the kernel's: pages without a unit, else kB. Left out:
//! fields that nothing here models (isolated, mapped, shmem, CMA), `all_unreclaimable`, huge page
//! pools. Next: `alloc/oom.rs` of the kernel, which decides who is killed.

use core::fmt::Write;
use std_alloc::format;
use std_alloc::string::String;
use std_alloc::vec::Vec;

use units::{NodeId, Order, PAGE_SIZE};

use crate::alloc::buddy::ORDERS;
use crate::alloc::watermark::Mark;
use crate::base::event::Trace;
use crate::base::gfp::MigrateType;
use crate::base::ids::MemcgId;
use crate::base::layout::{ZoneId, ZoneKind};
use crate::lru::lists::LruList;
use crate::memory::Memory;

const fn kb(pages: u64) -> u64 {
    pages * (PAGE_SIZE / 1024)
}

impl<T: Trace> Memory<T> {
    /// All memory of the machine: LRU lists, slab and dirty pages, each zone, its free blocks.
    pub fn mem_info(&self) -> Vec<String> {
        let [inactive_anon, active_anon, inactive_file, active_file, unevictable] =
            LruList::ALL.map(|list| self.lru_pages(list));
        let zones = 0..u8::try_from(self.core.alloc.zones().len()).expect("8 bits of zones");
        let zones: Vec<ZoneId> = zones.map(ZoneId).collect();
        let per_cpu: u64 = zones.iter().map(|&zone| self.per_cpu_pages(zone)).sum();
        let mut lines = Vec::from([
            String::from("Mem-Info:"),
            format!("active_anon:{active_anon} inactive_anon:{inactive_anon}"),
            format!(" active_file:{active_file} inactive_file:{inactive_file}"),
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
            format!(" free:{} free_pcp:{per_cpu}", self.core.alloc.free_pages().0),
        ]);
        lines.extend(self.nodes().map(|node| {
            let lists = self.lists_in_kb(node, None);
            format!("Node {node} {lists}")
        }));
        for &zone in &zones {
            lines.extend(self.zone_info(zone));
        }
        lines.extend(zones.iter().map(|&zone| self.free_blocks(zone)));
        lines.push(format!("{} total pagecache pages", self.cache.trees().total_pages()));
        let managed: u64 = self.core.alloc.zones().iter().map(|zone| zone.managed.0).sum();
        lines.push(format!("{managed} pages RAM"));
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

    fn zone_info(&self, id: ZoneId) -> [String; 2] {
        let zone = self.core.alloc.zone(id);
        let [min, low, high] = Mark::ALL.map(|mark| kb(zone.watermarks.mark(mark)));
        let reserves = ZoneKind::ALL.map(|highest_zoneidx| zone.watermarks.reserve(highest_zoneidx));
        let state = format!(
            "Node {} {} free:{}kB boost:{}kB min:{min}kB low:{low}kB high:{high}kB {} present:{}kB \
             managed:{}kB free_pcp:{}kB",
            zone.node,
            zone.kind.name(),
            kb(zone.free_pages().0),
            kb(zone.watermarks.boost().0),
            self.lists_in_kb(zone.node, Some(zone.kind)),
            kb(u64::from(zone.spanned)),
            kb(zone.managed.0),
            kb(self.per_cpu_pages(id)),
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
