//! Counters under the names of `/proc/vmstat` and `memory.stat`.
//!
//! [`VmEvent`] counts what happened since boot, for the whole machine. [`MemcgStat`] holds what one
//! cgroup's own pages add up to or went through; sums over a subtree are made by
//! [`crate::cgroup::tree`]. Gauges such as `nr_free_pages` are read off the state itself by
//! [`crate::Memory::vmstat`], so they cannot drift.
//!
//! Names are those of today; 2.6.32 has `pgrefill`, `pgsteal`, `pgscan_kswapd` and `pgscan_direct` by zone,
//! which add up to the same. Counters of source 1 count on every kernel, so that eras can be compared: a
//! request that goes from reclaim to its back-off is a pause of its caller whatever the back-off is.
//! Units: pages unless the name says otherwise; a large folio counts each of its pages.

macro_rules! counters {
    ($(#[$top:meta])* $enum:ident { $($variant:ident = $name:literal,)* }) => {
        $(#[$top])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        #[allow(missing_docs)] // The kernel's own documentation names them.
        pub enum $enum {
            $($variant,)*
        }

        impl $enum {
            /// Every counter, in the order of their declaration.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];
            /// How many there are: the length of a counter array.
            pub const COUNT: usize = Self::ALL.len();

            /// The kernel's name.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }
        }
    };
}

counters! {
    /// Events of `/proc/vmstat`, machine-wide since boot.
    VmEvent {
        PgPgIn = "pgpgin",
        PgPgOut = "pgpgout",
        PgAllocDma = "pgalloc_dma",
        PgAllocDma32 = "pgalloc_dma32",
        PgAllocNormal = "pgalloc_normal",
        PgAllocMovable = "pgalloc_movable",
        AllocStallDma = "allocstall_dma",
        AllocStallDma32 = "allocstall_dma32",
        AllocStallNormal = "allocstall_normal",
        AllocStallMovable = "allocstall_movable",
        PgSkipDma = "pgskip_dma",
        PgSkipDma32 = "pgskip_dma32",
        PgSkipNormal = "pgskip_normal",
        PgSkipMovable = "pgskip_movable",
        PgFree = "pgfree",
        PgActivate = "pgactivate",
        PgDeactivate = "pgdeactivate",
        PgFault = "pgfault",
        PgMajFault = "pgmajfault",
        PgRefill = "pgrefill",
        PgStealKswapd = "pgsteal_kswapd",
        PgStealDirect = "pgsteal_direct",
        PgScanKswapd = "pgscan_kswapd",
        PgScanDirect = "pgscan_direct",
        PgScanDirectThrottle = "pgscan_direct_throttle",
        PgScanAnon = "pgscan_anon",
        PgScanFile = "pgscan_file",
        PgStealAnon = "pgsteal_anon",
        PgStealFile = "pgsteal_file",
        PgInodeSteal = "pginodesteal",
        SlabsScanned = "slabs_scanned",
        KswapdInodeSteal = "kswapd_inodesteal",
        KswapdLowWmarkHitQuickly = "kswapd_low_wmark_hit_quickly",
        KswapdHighWmarkHitQuickly = "kswapd_high_wmark_hit_quickly",
        PageOutRun = "pageoutrun",
        PgRotated = "pgrotated",
        DropPageCache = "drop_pagecache",
        DropSlab = "drop_slab",
        OomKill = "oom_kill",
        NrVmscanWrite = "nr_vmscan_write",
        NrVmscanImmediateReclaim = "nr_vmscan_immediate_reclaim",
        NrDirtied = "nr_dirtied",
        NrWritten = "nr_written",
        WorkingsetRefaultAnon = "workingset_refault_anon",
        WorkingsetRefaultFile = "workingset_refault_file",
        WorkingsetActivateAnon = "workingset_activate_anon",
        WorkingsetActivateFile = "workingset_activate_file",
        WorkingsetRestoreAnon = "workingset_restore_anon",
        WorkingsetRestoreFile = "workingset_restore_file",
        WorkingsetNodeReclaim = "workingset_nodereclaim",
        UnevictablePgsCulled = "unevictable_pgs_culled",
        UnevictablePgsScanned = "unevictable_pgs_scanned",
        UnevictablePgsRescued = "unevictable_pgs_rescued",
        UnevictablePgsMlocked = "unevictable_pgs_mlocked",
        UnevictablePgsMunlocked = "unevictable_pgs_munlocked",
        CompactStall = "compact_stall",
        CompactSuccess = "compact_success",
        CompactFail = "compact_fail",
        CompactMigrateScanned = "compact_migrate_scanned",
        CompactFreeScanned = "compact_free_scanned",
        CompactIsolated = "compact_isolated",
        PgMigrateSuccess = "pgmigrate_success",
        PgMigrateFail = "pgmigrate_fail",
        CompactDaemonWake = "compact_daemon_wake",
        CompactDaemonMigrateScanned = "compact_daemon_migrate_scanned",
        CompactDaemonFreeScanned = "compact_daemon_free_scanned",
        ThpFaultAlloc = "thp_fault_alloc",
        ThpFaultFallback = "thp_fault_fallback",
        ThpCollapseAlloc = "thp_collapse_alloc",
        ThpCollapseAllocFailed = "thp_collapse_alloc_failed",
        ThpSplitPage = "thp_split_page",
        FragmentStall = "fragment_stall",
        // Not in /proc/vmstat: the mm_page_alloc_extfrag tracepoint, all and fragmenting ones.
        ExtfragEvents = "extfrag_events_all",
        ExtfragFragmenting = "extfrag_events",
        // Neither is this: the mm_fragmentation_stall tracepoint's durations, in whole ticks.
        FragmentStallUsec = "fragment_stall_usec",
        // 2.6.33: kswapd did not pause, as some zone was below its min mark.
        KswapdSkipCongestionWait = "kswapd_skip_congestion_wait",
        // Counters that the reporter of source 1 added: calls of congestion_wait, from where, and requests
        // that reclaimed themselves, in vain, and in vain although pages were freed.
        PerfCongestionWait = "perf_count_congestion_wait",
        PerfPauseHighPriority = "perf_count_call_congestion_wait_from_alloc_pages_high_priority",
        PerfPauseSlowPath = "perf_count_call_congestion_wait_from_alloc_pages_slowpath",
        PerfDirectReclaim = "perf_count_pages_direct_reclaim",
        PerfFailedDirectReclaim = "perf_count_failed_pages_direct_reclaim",
        PerfFailedButProgress = "perf_count_failed_pages_direct_reclaim_but_progress",
        // Told where reclaim that somebody asked for is counted by itself.
        PgStealProactive = "pgsteal_proactive",
        PgScanProactive = "pgscan_proactive",
        // Told where there is swap only: see [`VmEvent::is_of_swap`].
        PswpIn = "pswpin",
        PswpOut = "pswpout",
        SwapRa = "swap_ra",
        SwapRaHit = "swap_ra_hit",
        PgLazyFree = "pglazyfree",
        PgLazyFreed = "pglazyfreed",
        ThpSwpOut = "thp_swpout",
        ThpSwpOutFallback = "thp_swpout_fallback",
        SwpInZero = "swpin_zero",
        SwpOutZero = "swpout_zero",
        // Told where there is zswap only.
        ZswpIn = "zswpin",
        ZswpOut = "zswpout",
        ZswpWb = "zswpwb",
    }
}

counters! {
    /// Counters of one cgroup on one node: what `memory.stat` is made of.
    MemcgStat {
        Anon = "anon",
        File = "file",
        InactiveAnon = "inactive_anon",
        ActiveAnon = "active_anon",
        InactiveFile = "inactive_file",
        ActiveFile = "active_file",
        Unevictable = "unevictable",
        PgScanKswapd = "pgscan_kswapd",
        PgScanDirect = "pgscan_direct",
        PgStealKswapd = "pgsteal_kswapd",
        PgStealDirect = "pgsteal_direct",
        PgFault = "pgfault",
        PgMajFault = "pgmajfault",
        PgRefill = "pgrefill",
        PgActivate = "pgactivate",
        PgDeactivate = "pgdeactivate",
        WorkingsetRefaultAnon = "workingset_refault_anon",
        WorkingsetRefaultFile = "workingset_refault_file",
        WorkingsetActivateAnon = "workingset_activate_anon",
        WorkingsetActivateFile = "workingset_activate_file",
        WorkingsetRestoreAnon = "workingset_restore_anon",
        WorkingsetRestoreFile = "workingset_restore_file",
        WorkingsetNodeReclaim = "workingset_nodereclaim",
        FileDirty = "file_dirty",
        FileWriteback = "file_writeback",
        // In bytes, as accounting charges objects, not pages.
        KernelBytes = "kernel",
        SlabReclaimableBytes = "slab_reclaimable",
        SlabUnreclaimableBytes = "slab_unreclaimable",
        // Told where there is swap only.
        SwapCached = "swapcached",
        PgLazyFree = "pglazyfree",
        PgLazyFreed = "pglazyfreed",
        // Told where files are mapped only.
        FileMapped = "file_mapped",
        // Told where reclaim that somebody asked for is counted by itself.
        PgScanProactive = "pgscan_proactive",
        PgStealProactive = "pgsteal_proactive",
        // Told where there are files in memory only.
        Shmem = "shmem",
    }
}

impl VmEvent {
    /// Whether it is told only where there is swap: it would stay 0, or is of little interest then.
    pub const fn is_of_swap(self) -> bool {
        (self as u8) >= (Self::PswpIn as u8) && (self as u8) <= (Self::SwpOutZero as u8)
    }

    /// Whether it is told only where reclaim that somebody asked for is counted by itself.
    pub const fn is_proactive(self) -> bool {
        matches!(self, Self::PgStealProactive | Self::PgScanProactive)
    }

    /// Whether it is told only where there is zswap.
    pub const fn is_of_zswap(self) -> bool {
        matches!(self, Self::ZswpIn | Self::ZswpOut | Self::ZswpWb)
    }
}

impl MemcgStat {
    /// Whether it is told only where reclaim that somebody asked for is counted by itself.
    pub const fn is_proactive(self) -> bool {
        matches!(self, Self::PgStealProactive | Self::PgScanProactive)
    }

    /// Whether it is told only where there is swap.
    pub const fn is_of_swap(self) -> bool {
        matches!(self, Self::SwapCached | Self::PgLazyFree | Self::PgLazyFreed)
    }
}

/// Machine-wide event counts since boot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VmEvents([u64; VmEvent::COUNT]);

impl Default for VmEvents {
    fn default() -> Self {
        Self([0; VmEvent::COUNT])
    }
}

impl VmEvents {
    /// The count of `event`.
    #[inline]
    pub const fn get(&self, event: VmEvent) -> u64 {
        self.0[event as usize]
    }

    /// Counts `event` `n` times.
    #[inline]
    pub fn add(&mut self, event: VmEvent, n: u64) {
        self.0[event as usize] += n;
    }
}
