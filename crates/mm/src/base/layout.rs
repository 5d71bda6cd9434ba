//! Nodes and zones: how physical memory is divided (MECHANISMS 1.1, MECHANISMS-6X 1.1 and 1.2).
//!
//! x86-64: DMA below 16 MiB, DMA32 below 4 GiB, Normal above. A zone knows two sizes: what it
//! manages now, and what it managed when the watermarks were computed early at boot, before init
//! memory was returned. Left out: Highmem, CMA, hotplug.

use std_alloc::vec::Vec;

use units::Pages;

/// The kind of a zone; also the highest one that a request may use (`highest_zoneidx`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum ZoneKind {
    /// Below 16 MiB.
    Dma,
    /// Below 4 GiB.
    Dma32,
    /// The rest.
    Normal,
    /// Movable requests only; without memory on all machines that are modelled, but still the
    /// highest_zoneidx of page cache and anonymous memory.
    Movable,
}

impl ZoneKind {
    /// Every kind, lowest first.
    pub const ALL: [Self; 4] = [Self::Dma, Self::Dma32, Self::Normal, Self::Movable];
    /// How many there are.
    pub const COUNT: usize = Self::ALL.len();

    /// The name in `/proc/zoneinfo`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Dma => "DMA",
            Self::Dma32 => "DMA32",
            Self::Normal => "Normal",
            Self::Movable => "Movable",
        }
    }
}

/// What a zone is made from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ZoneLayout {
    /// Its kind.
    pub kind: ZoneKind,
    /// Pages that the allocator manages once boot is over.
    pub managed: Pages,
    /// Pages that it managed when watermarks were computed (MECHANISMS-6X 1.2); equal to
    /// `managed` where nothing else is known.
    pub managed_at_boot: Pages,
    /// Pages that boot-time allocations keep for good, out of `managed`.
    pub kept_by_kernel: Pages,
    /// Of those, pages in reclaimable pageblocks; the others are in unmovable ones.
    pub kept_reclaimable: Pages,
    /// Free blocks of 1, 2, 4 .. 512 pages that boot left between what it keeps, in unmovable pageblocks.
    pub left_free: [u16; 10],
    /// The same in movable pageblocks, between pages of the program that runs when boot is over; they are among those
    /// kept.
    pub left_movable: [u16; 10],
    /// Pages beside the memory that was asked for, out of `managed` and not of `kept_by_kernel`: the file of the
    /// program that watches a run, in movable pageblocks. Nothing takes them, and compaction cannot move them.
    pub beside: Pages,
    /// Frames at its start that were never managed, such as those of the kernel's image: what scans the zone looks at
    /// them.
    pub reserved: Pages,
}

impl ZoneLayout {
    /// A zone whose pages were all managed when watermarks were computed, none kept by boot.
    pub const fn new(kind: ZoneKind, pages: Pages) -> Self {
        Self {
            kind,
            managed: pages,
            managed_at_boot: pages,
            kept_by_kernel: Pages::ZERO,
            kept_reclaimable: Pages::ZERO,
            left_free: [0; 10],
            left_movable: [0; 10],
            beside: Pages::ZERO,
            reserved: Pages::ZERO,
        }
    }
}

/// What a node is made from: its zones, lowest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeLayout {
    /// Zones with memory, lowest first.
    pub zones: Vec<ZoneLayout>,
}

/// What a machine's memory is made from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryLayout {
    /// The nodes.
    pub nodes: Vec<NodeLayout>,
    /// Logical CPUs, for per-CPU lists. CPU c belongs to node c * nodes / cpus.
    pub cpus: u16,
    /// What it has of huge pages.
    pub huge_pages: HugeSupport,
}

/// What a machine has of huge pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HugeSupport {
    /// Its kernels are built without any: a pageblock is the largest block of the buddy lists, and files have no
    /// large folios.
    Absent,
    /// Transparent ones are switched off at boot, as with less than 512 MiB of memory.
    Off,
    /// Transparent ones are on, which raises `min_free_kbytes`.
    On,
}

impl HugeSupport {
    /// On or off, by the memory that there is.
    pub const fn switched(on: bool) -> Self {
        if on { Self::On } else { Self::Off }
    }
}

/// Who walks the page tables of programs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum PageTables {
    /// The CPU, which sets accessed and dirty bits as it does.
    #[default]
    Hardware,
    /// Nobody: a program of User-Mode Linux runs in a process of the host, whose mappings follow the page tables. A
    /// page of which reclaim took the accessed bit is to be executed alone there: the next write is a fault, as is the
    /// first write to a clean page.
    UserMode {
        /// When they follow.
        follow: FollowTables,
        /// What a read of such a page is.
        reads: OldReads,
    },
}

/// What a read of a page is that a host has mapped to be executed alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OldReads {
    /// Nothing, on CPUs without protection keys: reclaim never learns of it.
    Unseen,
    /// A fault, on CPUs with them, which sets the accessed bit.
    Fault,
}

impl OldReads {
    /// What it is on a host with protection keys, or without.
    pub const fn on_a_host(protection_keys: bool) -> Self {
        if protection_keys { Self::Fault } else { Self::Unseen }
    }
}

/// When a host's mappings follow page tables of User-Mode Linux.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FollowTables {
    /// An entry that goes or grows old at once; one that comes with the next fault on it (measured: 5.10, 6.1).
    ByEntry,
    /// Runs of neighbouring entries when the program runs again (measured: 6.12, 7.2).
    ByRun,
}

impl MemoryLayout {
    /// One node with a DMA zone of 15 MiB and the rest in DMA32 (and Normal above 4 GiB), all of
    /// it managed from the start: a machine of which only `MemTotal` is known.
    pub fn flat(total: Pages, cpus: u16) -> Self {
        const DMA_PAGES: u64 = 3840;
        const DMA32_PAGES: u64 = (1 << 20) - 4096;
        let plain = |kind, pages| ZoneLayout::new(kind, Pages(pages));
        let dma = total.0.min(DMA_PAGES);
        let dma32 = (total.0 - dma).min(DMA32_PAGES);
        let normal = total.0 - dma - dma32;
        let zones = [(ZoneKind::Dma, dma), (ZoneKind::Dma32, dma32), (ZoneKind::Normal, normal)]
            .into_iter()
            .filter(|&(_, pages)| pages > 0)
            .map(|(kind, pages)| plain(kind, pages))
            .collect();
        Self {
            nodes: std_alloc::vec![NodeLayout { zones }],
            cpus,
            huge_pages: HugeSupport::switched(total.0 >= (512 << 8)),
        }
    }

    /// Pages managed by all zones, but for those beside the memory that was asked for.
    pub fn memory(&self) -> Pages {
        self.zones().map(|zone| zone.managed - zone.beside).sum()
    }

    /// Pages beside the memory that was asked for, in all zones.
    pub fn beside(&self) -> Pages {
        self.zones().map(|zone| zone.beside).sum()
    }

    fn zones(&self) -> impl Iterator<Item = &ZoneLayout> {
        self.nodes.iter().flat_map(|node| &node.zones)
    }
}

/// Index of a zone in [`crate::Memory`]: nodes in order, zones of a node lowest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ZoneId(pub u8);

impl ZoneId {
    /// As an index.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}
