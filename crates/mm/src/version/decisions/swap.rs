//! Decisions of Swap: slots, swap-in, advice on anonymous memory (SWAP 0).

use crate::version::decision::decisions;

decisions! {
    /// How pages come back from an area whose reads are done at once (SWAP 2.6).
    SyncSwap = "swap-in from devices without waits" {
        /// Through the swap cache, with readahead, as from a disk (up to 4.14).
        ThroughCache,
        /// Straight into the page table (4.15).
        Bypassed,
    }

    /// What is read ahead of a page that comes back (SWAP 3.5).
    SwapReadahead = "readahead of swap" {
        /// Slots around it, of whomever (up to 4.13).
        Cluster,
        /// Neighbours in its mapping, unless some area rotates (4.14).
        Mapping,
    }

    /// Whether each CPU keeps slots in advance, and those that came free (SWAP 3.2).
    SlotCache = "swap slots that CPUs keep" {
        /// One by one from the areas (up to 4.10, and after 6.13).
        Off,
        /// 64 each way (4.11).
        PerCpu,
    }

    /// Where slots come from once no cluster of an area is free (SWAP 3.3).
    SwapClusters = "slots when no cluster is free" {
        /// From wherever a scan of the area finds one.
        Scan,
        /// From clusters that are partly filled, one after another (6.12).
        Lists,
    }

    /// How long an area is filled before another one of the same priority has its turn (SWAP 3.1; MECHANISMS-510-72
    /// 10).
    SwapTurns = "turns of swap areas of equal priority" {
        /// For what is fetched at once: 64 slots where CPUs keep some, else one (up to 6.13).
        PerCall,
        /// For a cluster of 512 slots (6.14).
        PerCluster,
    }

    /// What becomes of swapped-out pages of zeroes (SWAP 4.2).
    ZeroPages = "swapped-out pages of zeroes" {
        /// They are written.
        Written,
        /// A bit says so, without any I/O (6.12).
        Bitmap,
    }

    /// Whether what goes to zram and comes back are requests to a disk, which `pgpgout` and `pgpgin` count (guests of
    /// 5.10, 6.1, 6.12 and 7.2).
    ZramRequests = "requests of zram" {
        /// It is handed pages (up to 6.2).
        None,
        /// They are (6.3).
        Counted,
    }

    /// How huge pages are swapped out (SWAP 5).
    HugeSwap = "huge pages at swap-out" {
        /// Page by page (up to 4.12).
        Split,
        /// In one piece, where there is a free cluster (4.13).
        Whole,
    }

    /// How long the memory of swapped-out pages lives (SWAP 2.5).
    SwapShadows = "shadows of swapped-out pages" {
        /// Until their slots are free.
        Kept,
        /// The shrinker of shadows takes them, too (6.12).
        Shrunk,
        /// They lie in tables of clusters of slots, as the swap cache does, until those are free (6.18).
        InTables,
    }

    /// Pages that a program said it does not need (`MADV_FREE`; SWAP 2.8).
    LazyFree = "MADV_FREE" {
        /// There is no such advice (up to 4.4).
        Unknown,
        /// There is (4.5).
        Heeded,
    }

    /// `MADV_COLD` and `MADV_PAGEOUT` (SWAP 2.8).
    ColdAdvice = "MADV_COLD and MADV_PAGEOUT" {
        /// There is no such advice (up to 5.3).
        Unknown,
        /// There is (5.4).
        Heeded,
    }

    /// What becomes of tasks whose cgroup uses much swap (SWAP 3.4).
    SwapHigh = "memory.swap.high" {
        /// There is no such limit (up to 5.7).
        None,
        /// They sleep on their way to user mode, the longer the more it is above the limit (5.8).
        Sleep,
    }

    /// Compressed pages in memory in front of swap areas (SWAP 4.4).
    Zswap = "zswap" {
        /// Left out (before 6.1, where the sources begin).
        Absent,
        /// One list of all entries; a page that is read stays stored.
        OneList,
        /// A list for each cgroup, a shrinker, `memory.zswap.writeback` (6.8); a page that is read is stored no longer.
        ListPerGroup,
        /// The same, and pages that do not compress are stored as they are (6.18).
        StoresAll,
    }

    /// How many pages the pool of compressed memory strings together for objects of a size (SWAP 4.3).
    ZspageChain = "chains of pages in compressed memory" {
        /// Up to 4.
        UpToFour,
        /// Up to 8 (6.12; when between 6.1 and that is not known).
        UpToEight,
    }
}
