//! `/proc/vmstat` and `memory.stat`: what a reader of the machine's memory sees, under the kernel's
//! names and in its units.
//!
//! Neighbours: [`crate::base::vmstat`] for the names,
//! [`crate::cgroup::stat`] for how fresh a cgroup's figures are.

use std_alloc::vec::Vec;

use crate::base::event::Trace;
use crate::base::ids::MemcgId;
use crate::base::vmstat::{MemcgStat, VmEvent};
use crate::lru::lists::LruList;
use crate::memory::Memory;
use crate::version::geometry::Cache;
use crate::version::rules::{Compaction, DefragMode, ProactiveCounts, ProactiveReclaim};

impl<T: Trace> Memory<T> {
    /// Gauges of `/proc/vmstat` in pages, under the kernel's names.
    pub fn gauges(&self) -> [(&'static str, u64); 19] {
        let lru = |list| self.lru_pages(list);
        let limits = self.dirty_limits();
        [
            ("nr_free_pages", self.core.alloc.free_pages().0),
            ("nr_inactive_anon", lru(LruList::InactiveAnon)),
            ("nr_active_anon", lru(LruList::ActiveAnon)),
            ("nr_inactive_file", lru(LruList::InactiveFile)),
            ("nr_active_file", lru(LruList::ActiveFile)),
            ("nr_unevictable", lru(LruList::Unevictable)),
            ("nr_mlock", self.lru.all_locked_pages()),
            ("nr_anon_pages", self.anon.total_pages()),
            ("nr_file_pages", self.cache.trees().total_pages() + self.anon.shared_pages()),
            ("nr_slab_reclaimable", self.slab_pages(true)),
            ("nr_slab_unreclaimable", self.slab_pages(false)),
            ("nr_dirty", self.cache.dirty()),
            ("nr_writeback", self.cache.under_writeback()),
            ("nr_dirty_threshold", limits.threshold),
            ("nr_dirty_background_threshold", limits.background),
            ("workingset_nodes", self.cache.trees().shadow_leaves()),
            ("nr_page_cache_tree_nodes", self.core.slabs.objects(Cache::TreeNode)),
            ("nr_dentries", self.core.slabs.objects(Cache::Dentry)),
            ("nr_inodes", self.fs.vfs.count()),
        ]
    }

    /// `/proc/vmstat`: gauges, then event counts.
    pub fn vmstat(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        let swaps = self.core.swap.total_pages() > 0;
        let zswap = self.core.has_zswap();
        let proactive = self.counts_proactive();
        let rules = self.core.rules();
        let blocks = rules.defrag_mode == DefragMode::Sysctl && rules.compaction == Compaction::On;
        let in_blocks = || self.core.alloc.zones().iter().map(|zone| zone.free_area.pages_in_whole_blocks());
        let blocks = blocks.then(|| ("nr_free_pages_blocks", in_blocks().sum()));
        let is_told = move |event: &VmEvent| {
            (swaps || !event.is_of_swap())
                && (zswap || !event.is_of_zswap())
                && (proactive || !event.is_proactive())
        };
        let told = VmEvent::ALL.iter().filter(move |event| is_told(event));
        let events = told.map(|&event| (event.name(), self.core.alloc.events.get(event)));
        let huge = ("nr_anon_transparent_hugepages", self.anon.huge_pages());
        let swap = [("nr_swapcached", self.cache.swap_cached()), ("nr_zspages", self.core.swap.pool_pages())];
        let swap = swap.into_iter().filter(move |_| swaps);
        let maps = &self.cache.maps;
        let mapped = maps.were_used().then(|| ("nr_mapped", maps.mapped_pages()));
        let shared = self.anon.had_shared().then(|| ("nr_shmem", self.anon.shared_pages()));
        let pool = self.zswap_gauges().into_iter().filter(move |_| zswap);
        self.gauges()
            .into_iter()
            .chain(blocks)
            .chain([huge])
            .chain(swap)
            .chain(pool)
            .chain(mapped)
            .chain(shared)
            .chain(events)
    }

    fn counts_proactive(&self) -> bool {
        let rules = self.core.rules();
        rules.proactive_counts == ProactiveCounts::Proactive
            && rules.proactive_reclaim != ProactiveReclaim::None
    }

    /// What `/sys/kernel/debug/zswap` has, its names behind `zswap_`; sizes in pages.
    fn zswap_gauges(&self) -> [(&'static str, u64); 5] {
        let pool = &self.core.swap.zswap;
        [
            ("zswap_pool_pages", pool.pool_pages()),
            ("zswap_stored_pages", pool.stored_pages()),
            ("zswap_pool_limit_hit", pool.counts.pool_limit_hit),
            ("zswap_written_back_pages", pool.counts.written_back_pages),
            ("zswap_reject_compress_poor", pool.counts.reject_compress_poor),
        ]
    }

    /// `memory.stat` of a cgroup in the file's own units: sizes in bytes, events in pages. Flushes
    /// first, as the kernel does for a reader.
    pub fn memcg_stat(&mut self, memcg: MemcgId) -> Vec<(&'static str, u64)> {
        self.core.cgroups.flush_for_read(memcg);
        self.memcg_stat_as_flushed(memcg)
    }

    /// The same as the last flush left it.
    pub fn memcg_stat_as_flushed(&self, memcg: MemcgId) -> Vec<(&'static str, u64)> {
        let is_size = |stat: MemcgStat| (stat as u8) <= (MemcgStat::Unevictable as u8);
        let in_bytes = |stat| {
            let others =
                [MemcgStat::FileWriteback, MemcgStat::SwapCached, MemcgStat::FileMapped, MemcgStat::Shmem];
            stat == MemcgStat::FileDirty || others.contains(&stat)
        };
        let swaps = self.core.swap.total_pages() > 0;
        let (maps, shares) = (self.cache.maps.were_used(), self.anon.had_shared());
        let proactive = self.counts_proactive();
        let mut lines: Vec<(&'static str, u64)> = MemcgStat::ALL
            .iter()
            .filter(|&&stat| swaps || !stat.is_of_swap())
            .filter(|&&stat| maps || stat != MemcgStat::FileMapped)
            .filter(|&&stat| proactive || !stat.is_proactive())
            .filter(|&&stat| shares || stat != MemcgStat::Shmem)
            .map(|&stat| {
                let value = self.core.cgroups.read_stat(memcg, stat);
                let scale = if is_size(stat) || in_bytes(stat) { units::PAGE_SIZE } else { 1 };
                (stat.name(), value * scale)
            })
            .collect();
        let read = |stat| self.core.cgroups.read_stat(memcg, stat);
        let scans = [MemcgStat::PgScanKswapd, MemcgStat::PgScanDirect, MemcgStat::PgScanProactive];
        let steals = [MemcgStat::PgStealKswapd, MemcgStat::PgStealDirect, MemcgStat::PgStealProactive];
        lines.push(("pgscan", scans.map(read).iter().sum()));
        lines.push(("pgsteal", steals.map(read).iter().sum()));
        let slab = read(MemcgStat::SlabReclaimableBytes) + read(MemcgStat::SlabUnreclaimableBytes);
        lines.push(("slab", slab));
        if self.core.has_zswap() {
            let counter = self.core.cgroups[memcg].zswap;
            lines.extend([("zswap", counter.bytes), ("zswapped", counter.pages * units::PAGE_SIZE)]);
        }
        lines
    }
}
