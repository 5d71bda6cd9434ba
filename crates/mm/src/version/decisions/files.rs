//! Decisions of The page cache: readahead, writes, anonymous pages, and what a CPU runs.

use crate::version::decision::decisions;

decisions! {
    /// What readahead allocates on XFS (MECHANISMS-6X 2.2).
    ReadaheadFolios = "folios of readahead" {
        /// Single pages.
        Single,
        /// Large folios (5.18).
        Large,
    }

    /// What buffered writes allocate on XFS (MECHANISMS-6X 2.2).
    WriteFolios = "folios of buffered writes" {
        /// Single pages.
        Single,
        /// Large folios (6.6).
        Large,
    }

    /// Whether a buffered write is an access to its page, as a read is (MECHANISMS 6.2).
    WriteAccess = "what a buffered write is to its page" {
        /// No access: a page that is only written never becomes active, and one that comes back for it is no refault
        /// (4.7).
        None,
        /// An access: the second one makes it active (up to 4.6).
        Access,
    }

    /// Which list new anonymous pages start on (5.9).
    AnonStart = "where anonymous pages start" {
        /// The active list.
        Active,
        /// The inactive list (5.9).
        Inactive,
    }

    /// What a mapped page of a file is worth that page tables saw accesses to (MAPPED 4).
    MappedReferences = "accesses through page tables" {
        /// It is activated (up to 2.6.33).
        FirstActivates,
        /// It is kept, and activated the second time, if more than one process accessed it, or if it is code
        /// (2.6.34; code 3.3).
        SecondActivates,
    }

    /// Whether accesses through a mapping count that its program said to be of a kind (MAPPED 4).
    AdvisedAccess = "accesses to a mapping with advice" {
        /// Not where it said that they are sequential (up to 6.2).
        RandomCounts,
        /// Nor where it said that they are random (6.3).
        NeitherCounts,
    }

    /// What a read fault maps besides its own page (MAPPED 2).
    FaultAround = "pages mapped around a fault" {
        /// Nothing (up to 3.14).
        None,
        /// Those of the 16 pages around it that are in memory (3.15).
        Sixteen,
    }

    /// What `pgfault` counts of a fault that had to wait for the disk (MAPPED 2).
    FaultCount = "what counts as a fault" {
        /// Each try: two (up to 6.3).
        Tries,
        /// The fault (6.4).
        Completed,
    }

    /// How a write to a shared mapping waits for writeback, once it has made its page dirty (MAPPED 2.3).
    WriteFault = "how a write fault on a shared mapping ends" {
        /// Within the fault (up to 5.4).
        Holding,
        /// Having let go of the address space, whether or not it has to wait: so the fault is tried again (5.5).
        TriedAgain,
        /// The same, but where the page is mapped and only may not be written to, the fault is complete ("mm: avoid
        /// unnecessary page fault retires on shared memory types", 6.0). Two rounds of writes to a mapping of 25,970
        /// pages that were written back in between: three faults a page in guests of 6.1.176, four in those of 5.10.46.
        Completed,
    }

    /// What fault-around counts as found, which lets a file be read around further (MAPPED 3.2).
    MappedHits = "pages that a fault around counts as found" {
        /// Each that it finds, also for the fault that has just read them (up to 7.1).
        Around,
        /// The page of the fault, where that needed no second try and no refault brought it (7.2).
        Wanted,
    }

    /// What a miss in a mapping reads in which code runs.
    CodeReadahead = "readahead of faults on code" {
        /// As in any mapping: around it, and nothing more where accesses are said to be random (6.12).
        Around,
        /// A window from it on, without a marker, also where accesses are said to be random (7.2; measured: 64 misses
        /// where 2,048 pages are accessed in order, 174 at random, for 1 and 89).
        Forward,
    }

    /// Whether kswapd may write a single dirty page where the filesystem lets it: ext4 up to 6.2, XFS up
    /// to 5.17 (MECHANISMS 6.8, MECHANISMS-6X 0 row 9).
    Writepage = "writes of single dirty pages" {
        /// Every reclaimer that may writes them, whatever the filesystem (up to 3.1).
        Anyone,
        /// It only marks them.
        Never,
        /// It writes them.
        Kswapd,
        /// Nobody thinks of it: a dirty page of a file becomes active, whatever kswapd met before (6.17,
        /// MECHANISMS-510-72 3.5).
        Unasked,
    }

    /// What readahead does when memory is short.
    ReadaheadEffort = "readahead when memory is short" {
        /// What every request for page cache does: it is repeated (up to 2.6.39).
        Insists,
        /// It gives up after its first failure ("readahead: readahead page allocations are OK to fail", 3.0;
        /// MECHANISMS-6X 2.2).
        GivesUp,
    }

    /// Whether reclaim for readahead may enter filesystems. Where it may not, dentries, inodes and pages of files in
    /// memory stay.
    ReadaheadReclaim = "filesystems in reclaim for readahead" {
        /// If that for other pages of the file may (up to 5.7).
        AsFile,
        /// It may not ("mm: use memalloc_nofs_save in readahead path", f2c817bed58d, 5.8).
        SparesFilesystems,
    }

    /// How many pages in memory right before a missing one make a random read the next of a run.
    ReadaheadHistory = "pages before a miss that make it part of a run" {
        /// One is enough, and the window begins larger than both (up to 2013).
        AnyPage,
        /// More than are asked for; the window is both together ("readahead: make context readahead more conservative";
        /// MECHANISMS-6X 2.1; so measured on a host of 6.18).
        MoreThanAsked,
    }

    /// How much is read of a range that a program says it will need (`POSIX_FADV_WILLNEED`, `MADV_WILLNEED`,
    /// `readahead(2)`).
    RangeReadahead = "reading of a range that will be needed" {
        /// All of it (up to 3.13).
        Whole,
        /// As much as a request to the disk holds, 1280 KiB unless its driver has another limit, or as a window
        /// ("mm: don't cap request size based on read-ahead setting", 4.10; before that a window; measured on 6.12).
        Request1280K,
        /// The same, where a request holds 4 MiB (6.14).
        Request4M,
    }

    /// What a miss right behind the last window is, or where that has its marker.
    ReadaheadMiss = "a miss where the next window was to begin" {
        /// The next window begins there (up to 6.10).
        Continues,
        /// A miss as any other: pages before it decide (6.11; measured on 6.12 and 7.2).
        LooksBack,
    }

    /// What a look for the first gap ahead of a marker, or before a miss, finds where it looks at pages of memory only.
    ReadaheadGap = "a gap that readahead does not find" {
        /// The last page that it looked at (`page_cache_next_miss`; measured on 5.10 and 6.1): a window is read from
        /// there on, as far as it is not in memory.
        AtLast,
        /// That there is none: no window (measured on 6.12 and 7.2; since when is not).
        Beyond,
    }

    /// Where a file was read up to: a miss there or one page further is sequential.
    ReadaheadPosition = "the position that makes a miss sequential" {
        /// The last page of the call before (up to 5.10; measured there).
        LastPage,
        /// The byte behind the last one read, also by the call that misses (from 5.11 on; measured on 6.1).
        EndOfBatch,
        /// The byte behind the last one of the call before (measured on 6.12 and 7.2; since when is not).
        EndOfCall,
    }

    /// Where requests for pages that are about to be written go (MECHANISMS 1.9, 10.2).
    DirtySpread = "zones for pages that are about to be dirty" {
        /// Where all go (up to 3.2).
        Any,
        /// Past nodes that hold their share of dirty pages, at first (3.3).
        BelowLimit,
    }

    /// What a writer does when too much is dirty (MECHANISMS 10).
    DirtyPause = "writers when too much is dirty" {
        /// It writes back itself (up to 3.1).
        Writes,
        /// It is paused (3.2).
        Sleeps,
    }

    /// How tasks share a CPU, which decides when kswapd runs beside those that it works for. Not memory
    /// management, but a part of which Linux this is.
    Scheduler = "which task a CPU runs" {
        /// The one that ran least; one that wakes up preempts one that is well ahead of it (2.6.23 to 6.5).
        Cfs,
        /// One that is owed time, until its request is done (6.6).
        Eevdf,
    }

    /// When a task that is to give way does so inside the kernel; a program gives way at any time. Configurable in
    /// all versions: this is what Debian builds.
    Preemption = "preemption inside the kernel" {
        /// Where kernel code offers it, `cond_resched()` (`PREEMPT_VOLUNTARY`).
        Voluntary,
        /// On the way back to its program, or at the next tick, wherever it is then; `cond_resched()` does nothing
        /// (`PREEMPT_LAZY`, 6.13; the default since 7.0, which has no other one but full preemption).
        Lazy,
    }

    /// What the page cache of ext4 is made of, where readahead and writes make large folios at all
    /// (`ext4_set_inode_mapping_order`, MECHANISMS-510-72 2.2).
    Ext4Folios = "folios of ext4" {
        /// Single pages.
        Single,
        /// Large folios for regular files (6.16).
        Large,
    }

    /// How large the folios of the next readahead window are (`page_cache_async_ra`, MECHANISMS-6X 2.2,
    /// MECHANISMS-510-72 2.3).
    ReadaheadOrder = "the order of readahead folios" {
        /// Two orders more than the folio whose marker was reached; the first window has order 2 (5.18).
        OfMarker,
        /// Two orders more than the last window had, which the open file remembers: 0 after a miss. Windows end
        /// where a folio of that order does (6.17).
        OfFile,
    }

    /// The readahead window of a disk for which nobody says one (`read_ahead_kb`, MECHANISMS-510-72 2.4).
    DefaultReadahead = "the readahead that nobody set" {
        /// 128 KiB.
        Fixed,
        /// Twice the largest request of a rotating disk: 8 MiB. 128 KiB of others (6.17, `blk_apply_bdi_limits`).
        Rotational,
    }
}
