//! Trace events, under the names and with the fields of the kernel's tracepoints, and events of our own
//! where the kernel has none: the life of a page.
//!
//! Tracing is a type parameter: with [`NoTrace`] every call compiles to nothing, its arguments included, which are
//! made only if somebody listens ([`Trace::listens`]). An event is handed over at the moment it happens; whoever
//! records it knows the time and the task. Neighbour: [`crate::core::Core::tell_page`].

use units::{NodeId, Order, Pfn};

use crate::base::gfp::MigrateType;
use crate::base::ids::{AnonId, MappingId, MemcgId};
use crate::base::layout::ZoneKind;

/// Whose page it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Home {
    /// A file's.
    File(MappingId),
    /// A program's anonymous memory.
    Anon(AnonId),
    /// Anonymous memory that no page table and no slot of swap names any more.
    Nobody,
}

/// Which page an event is about: a folio of a file, or anonymous memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageId {
    /// Whose it is.
    pub home: Home,
    /// Its first page in the file or the mapping.
    pub index: u32,
    /// Whom it is charged to.
    pub memcg: MemcgId,
    /// Its node.
    pub node: NodeId,
    /// Its size.
    pub order: Order,
}

/// For whose sake reclaim looks at pages, and how hard it tries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScanFor {
    /// Where reclaim started: the cgroup at its limit, or the root for the machine.
    pub target: MemcgId,
    /// 12 to 0.
    pub priority: u8,
}

/// Level of detail of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Detail {
    /// What reclaimers and the allocator do.
    Reclaim,
    /// What becomes of each page.
    Page,
}

macro_rules! reasons {
    ($($(#[$doc:meta])* $variant:ident = $text:literal,)*) => {
        /// Why something became of a page, or of a cgroup's turn.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Reason {
            $($(#[$doc])* $variant,)*
        }

        impl Reason {
            /// Every reason.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// In words, as recordings have it.
            pub const fn text(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }
        }
    };
}

reasons! {
    // Accesses (`folio_mark_accessed`).
    /// The first one: the Referenced bit is set.
    Referenced = "referenced",
    /// The second one: on its way to the active list.
    Activated = "activated",
    /// The second one, while it waited in this CPU's batch for its list: it goes to the active one.
    ActivatedInBatch = "activated in its batch",
    /// The second one, while it waited in another CPU's batch, where it cannot be reached: nothing comes of it.
    InOtherBatch = "in a batch of another CPU",
    /// It is active, and referenced already.
    AlreadyActive = "already active",
    /// It is locked into memory.
    Unevictable = "unevictable",
    /// Another one, under generations: counted, which moves nothing.
    Counted = "counted for its tier",

    // Freed by reclaim.
    /// Nothing speaks for it.
    NotReferenced = "not referenced",
    /// It was read once, which is no reason to keep a clean page.
    ReadOnce = "read once",

    /// It was read more often, but pages of its tier do not come back often enough to be kept.
    TierNotKept = "read again, but its tier is not kept",

    // Kept by reclaim, back to the head of its list.
    /// A task has it locked: mostly it is still being read.
    Locked = "locked",
    /// It waits in a batch to be activated.
    Activating = "in a batch to be activated",
    /// It is being written, and the reclaimer of this kernel writes pages itself (up to 3.1).
    KeptForWriteback = "under writeback",
    /// Page tables referenced it once.
    Mapped = "referenced by page tables",
    /// It is dirty, and was chosen to be written.
    WriteStarted = "dirty: its write is started",
    /// It is dirty, and was read: it is not written for reclaim's sake.
    DirtyAndRead = "dirty and read",
    /// It is dirty, and this reclaimer may not write.
    MayNotWrite = "dirty, and the reclaimer may not write",
    /// It lies in a zone that does not help the request.
    ZoneAbove = "in a zone above the wanted ones",
    /// Accessed since it came to its queue: it stays where it is, or goes round again.
    HitInQueue = "accessed: another round of its queue",
    /// Its tier is above those that are evicted from now, or its accesses no longer countable: to the next
    /// generation.
    Protected = "kept for its tier: to the next generation",
    /// A walk of page tables found it young.
    Promoted = "young by its page table: to that generation",
    /// It is locked, dirty or being written: to the next generation (up to 6.1).
    NotNow = "locked, dirty or being written: to the next generation",
    /// It was written, as reclaim wanted: to the tail of the inactive list.
    Written = "written: to the inactive tail",

    // Activated by reclaim.
    /// Accessed twice while it was on trial.
    Proven = "accessed on trial: to the main queue",
    /// Page tables referenced it twice.
    MappedTwice = "referenced by page tables again",
    /// The same, and code runs in it.
    Executable = "code, referenced by page tables",
    /// It is anonymous, and there is no swap.
    Anonymous = "anonymous without swap",
    /// It is dirty: the flusher is to write it.
    Dirty = "dirty: left to the flusher",
    /// It is being written.
    Writeback = "under writeback: marked to be freed",
    /// A transaction of the journal holds it.
    Journal = "held by the journal",
    /// The filesystem has no way to write single pages.
    NoWritepage = "dirty, and the filesystem writes no single pages",

    // Swap (SWAP 2.4, 2.8).
    /// It is in its slot now.
    SwappedOut = "swapped out",
    /// Its program gave it up (`MADV_FREE`) and has not written to it since.
    GivenUp = "given up by its program",
    /// It was given up and written to since.
    WrittenAgain = "given up, and written to again",
    /// Its write to swap is under way.
    SwapWrite = "its write to swap is started",
    /// No slot was free, or a `memory.swap.max` forbade it.
    NoSlot = "no slot of swap to be had",
    /// Its device has no room for it.
    WriteFailed = "its swap device is full",
    /// The request allows no I/O.
    MayNotSwap = "the reclaimer may not swap",

    // Back from swap (SWAP 2.6, 3.5, 4).
    /// A fault wants it, from a disk.
    SwapRead = "read from its swap device",
    /// A fault wants a neighbour.
    SwapReadAhead = "read ahead from its swap device",
    /// Out of compressed memory.
    SwapDecompressed = "decompressed from zram",
    /// The same, with a neighbour that a fault wants.
    SwapDecompressedAhead = "decompressed ahead from zram",
    /// Out of the pool in front of its device.
    SwapFromPool = "decompressed from zswap",
    /// A bit says that it is one of zeroes.
    SwapZeroes = "a page of zeroes, not read",

    // Out of the page cache.
    /// Reclaim freed it.
    Reclaimed = "reclaimed",
    /// Its file was removed.
    Truncated = "truncated",
    /// `drop_caches`, or its inode left memory.
    Invalidated = "invalidated",

    // Refaults.
    /// The active list is at least as long as the distance: it would have stayed with a longer inactive list.
    WithinActive = "activated: distance within the active list",
    /// The distance is longer.
    BeyondActive = "not activated: distance beyond the active list",

    /// The oldest generation is the one that it was evicted from, or near it: its tier learns of it.
    InTime = "in time: its generation is still there",
    /// Generations have ended since.
    TooLate = "too late: generations have ended since",

    // A cgroup's protection.
    /// Below `memory.min`: never looked at.
    BelowMin = "protected by memory.min",
    /// Below `memory.low`: passed over as long as there is something else.
    BelowLow = "protected by memory.low",
    /// Below `memory.low`, and looked at even so: there was nothing else.
    LowOverridden = "memory.low overridden",
}

/// A tracepoint that was hit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)] // Fields carry the kernel's names (MECHANISMS section 14).
pub enum TraceEvent {
    /// `mm_page_alloc_extfrag`: a request was served from a block of another mobility type.
    PageAllocExtfrag {
        pfn: Pfn,
        alloc_order: Order,
        fallback_order: Order,
        alloc_migratetype: MigrateType,
        fallback_migratetype: MigrateType,
        change_ownership: bool,
    },
    /// `mm_fragmentation_stall`: a movable request waited for kswapd, in microseconds.
    FragmentationStall { nid: NodeId, duration: u64 },
    /// The marks of a zone were raised, to so many pages above their base.
    WatermarkBoost { nid: NodeId, zone: ZoneKind, boost: u64 },
    /// `mm_vmscan_kswapd_wake`.
    VmscanKswapdWake { nid: NodeId, order: Order },
    /// `mm_vmscan_kswapd_sleep`.
    VmscanKswapdSleep { nid: NodeId },
    /// `mm_vmscan_direct_reclaim_begin` and its memcg form.
    VmscanReclaimBegin { order: Order, memcg: u16 },
    /// `mm_vmscan_direct_reclaim_end` and its memcg form.
    VmscanReclaimEnd { nr_reclaimed: u64, memcg: u16 },
    /// `mm_vmscan_lru_shrink_inactive`.
    VmscanLruShrinkInactive {
        nid: NodeId,
        memcg: u16,
        nr_scanned: u32,
        nr_reclaimed: u32,
        scan: ScanFor,
        file: bool,
    },
    /// `mm_vmscan_lru_shrink_active`.
    VmscanLruShrinkActive {
        nid: NodeId,
        memcg: u16,
        nr_scanned: u32,
        nr_deactivated: u32,
        scan: ScanFor,
        file: bool,
    },
    /// `mm_shrink_slab_start`; the shrinker by its place in [`crate::reclaim::plan::Shrinker::ALL`].
    ShrinkSlabStart { nid: NodeId, memcg: u16, shrinker: u8, scan: ScanFor },
    /// `mm_shrink_slab_end`: objects looked at.
    ShrinkSlabEnd { nid: NodeId, memcg: u16, shrinker: u8, total_scan: u64, scan: ScanFor },
    /// `mm_compaction_begin`.
    CompactionBegin { nid: NodeId, order: Order, sync: bool },
    /// `mm_compaction_end`: `status` in words, pages moved.
    CompactionEnd { nid: NodeId, order: Order, status: &'static str, moved: u64 },
    /// A cgroup's turn in reclaim for `scan`, of which its protection decided.
    MemcgProtected { memcg: MemcgId, nid: NodeId, reason: Reason, scan: ScanFor },
    /// `mark_victim`: the OOM killer took a process of this cgroup, with so many anonymous pages; the limit of
    /// `target` was hit, the root stands for the machine.
    MarkVictim { memcg: MemcgId, target: MemcgId, anon_pages: u64 },

    /// A program maps anonymous memory: what was called so before is gone.
    AnonMapped { anon: AnonId },
    /// `mm_filemap_add_to_page_cache`.
    FilemapAdd { page: PageId },
    /// `mm_filemap_delete_from_page_cache`.
    FilemapDelete { page: PageId, reason: Reason },
    /// `mm_lru_insertion`: from a batch to the list that its flags name.
    LruInsertion { page: PageId, active: bool },
    /// `mm_lru_activate`: to the active list, what `pgactivate` counts. `scan`: reclaim found it so.
    LruActivate { page: PageId, reason: Reason, scan: Option<ScanFor> },
    /// A read or, where that counts, a write of a page of the cache.
    PageAccessed { page: PageId, reason: Reason },
    /// From the active list to the inactive one, what `pgdeactivate` counts.
    PageDeactivated { page: PageId, scan: ScanFor },
    /// Looked at by reclaim and kept; none: it was written and comes to the tail.
    PageRotated { page: PageId, reason: Reason, scan: Option<ScanFor> },
    /// Freed by reclaim, what `pgsteal` counts.
    PageReclaimed { page: PageId, reason: Reason, scan: ScanFor },
    /// It is back from its slot: read, or about to be; what `pswpin`, `zswpin` and `swpin_zero` count.
    PageSwappedIn { page: PageId, reason: Reason },
    /// It is back after it was reclaimed (`workingset_refault`). `counted`: whose statistics count it.
    PageRefaulted { page: PageId, reason: Reason, distance: u64, counted: MemcgId, workingset: bool },
}

impl TraceEvent {
    /// The page that it is about, if it tells the life of one.
    #[inline]
    pub const fn page(mut self) -> Option<PageId> {
        match self.page_mut() {
            Some(page) => Some(*page),
            None => None,
        }
    }

    /// The same of another page.
    #[must_use]
    #[inline]
    pub const fn of_page(mut self, other: PageId) -> Self {
        if let Some(page) = self.page_mut() {
            *page = other;
        }
        self
    }

    /// Whether both tell the same, be it of different pages.
    ///
    /// It looks at fields where they are: who compares copies waits for them to be written.
    #[inline]
    pub fn says_what(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::FilemapAdd { page: _ }, Self::FilemapAdd { page: _ }) => true,
            (Self::FilemapDelete { page: _, reason }, Self::FilemapDelete { page: _, reason: other })
            | (Self::PageAccessed { page: _, reason }, Self::PageAccessed { page: _, reason: other })
            | (Self::PageSwappedIn { page: _, reason }, Self::PageSwappedIn { page: _, reason: other }) => {
                reason == other
            }
            (Self::LruInsertion { page: _, active }, Self::LruInsertion { page: _, active: other }) => {
                active == other
            }
            (
                Self::LruActivate { page: _, reason, scan },
                Self::LruActivate { page: _, reason: other, scan: its },
            )
            | (
                Self::PageRotated { page: _, reason, scan },
                Self::PageRotated { page: _, reason: other, scan: its },
            ) => reason == other && scan == its,
            (Self::PageDeactivated { page: _, scan }, Self::PageDeactivated { page: _, scan: other }) => {
                scan == other
            }
            (
                Self::PageReclaimed { page: _, reason, scan },
                Self::PageReclaimed { page: _, reason: other, scan: its },
            ) => reason == other && scan == its,
            (one, other) => {
                let page = one.page();
                page.is_some_and(|page| *one == other.of_page(page))
            }
        }
    }

    #[inline]
    const fn page_mut(&mut self) -> Option<&mut PageId> {
        match self {
            Self::FilemapAdd { page }
            | Self::FilemapDelete { page, .. }
            | Self::LruInsertion { page, .. }
            | Self::LruActivate { page, .. }
            | Self::PageAccessed { page, .. }
            | Self::PageDeactivated { page, .. }
            | Self::PageRotated { page, .. }
            | Self::PageReclaimed { page, .. }
            | Self::PageSwappedIn { page, .. }
            | Self::PageRefaulted { page, .. } => Some(page),
            _ => None,
        }
    }
}

/// Receives trace events.
pub trait Trace: Clone + 'static {
    /// Whether events of this detail are wanted: if not, none is made.
    fn listens(&self, detail: Detail) -> bool;
    /// Called at every tracepoint that is hit.
    fn event(&mut self, event: TraceEvent);
}

/// Receives nothing and costs nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoTrace;

impl Trace for NoTrace {
    #[inline(always)]
    fn listens(&self, _detail: Detail) -> bool {
        false
    }

    #[inline(always)]
    fn event(&mut self, _event: TraceEvent) {}
}

/// Keeps every event, for tests.
#[derive(Debug, Clone, Default)]
pub struct KeepTrace(pub std_alloc::vec::Vec<TraceEvent>);

impl Trace for KeepTrace {
    fn listens(&self, _detail: Detail) -> bool {
        true
    }

    fn event(&mut self, event: TraceEvent) {
        self.0.push(event);
    }
}
