//! Boot: lays out zones and zonelists, hands memory to the buddy lists, computes marks
//! (MECHANISMS 1.1-1.6; MECHANISMS-6X 1.1, 1.2).
//!
//! Zones follow each other without holes, each on a multiple of the largest block. Frames that
//! the allocator does not manage come first in their zone, as firmware and kernel image do; the
//! managed ones are freed in ascending order. Left out: memory holes, memblock. Neighbours: [`crate::base::layout`] for
//! the layout, [`crate::alloc::watermark`] for the figures, `kept.rs` for what boot keeps for good.

use core::fmt;

use std_alloc::string::String;
use std_alloc::vec::Vec;
use std_alloc::{format, vec};

use units::{CpuId, NodeId, Pages, Pfn};

use crate::alloc::buddy::{FreeArea, LARGEST_ORDER};

use crate::alloc::flags::ZoneSet;
use crate::alloc::kept::free_at_boot;
use crate::alloc::page_alloc::{Chunk, PageAllocator};
use crate::alloc::pageblock::BlockSize;
use crate::alloc::pcp::{Pcp, PcpSizes, sizing_mark};
use crate::alloc::watermark::{
    MarkShares, Watermarks, huge_page_min_free_kbytes, lowmem_reserve, min_free_kbytes,
};
use crate::alloc::zone::{Node, Zone};
use crate::base::event::Trace;
use crate::base::frame::Frames;
use crate::base::layout::{HugeSupport, MemoryLayout, ZoneId, ZoneKind, ZoneLayout};
use crate::base::sysctl::{Sysctl, Sysctls};
use crate::base::vmstat::VmEvents;
use crate::version::presets::Version;
use crate::version::rules::{
    GenForm, HighatomicReserve, HugePages, LruKind, MarkGap, ReadaheadFolios, Rules, WriteFolios,
};

/// The smallest machine: below it the smallest `min_free_kbytes` would be most of the memory.
const MIN_MANAGED: u64 = 1024;
/// The largest: 1 TiB. The frame table of a larger one would not fit this process.
const MAX_FRAMES: u64 = 1 << 28;
const CHUNK: u64 = LARGEST_ORDER.pages() as u64;

/// Why a machine cannot boot. The text says which zone and what to change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BootError(String);

impl fmt::Display for BootError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl core::error::Error for BootError {}

fn check_layout(layout: &MemoryLayout) -> Result<(), BootError> {
    let fail = |text: String| Err(BootError(text));
    if layout.cpus == 0 {
        return fail("the machine has no CPU: it needs at least one".into());
    }
    if layout.nodes.is_empty() || layout.nodes.len() > ZoneSet::MAX_ZONES {
        return fail(format!(
            "the machine has {} memory nodes: it needs 1 to {}",
            layout.nodes.len(),
            ZoneSet::MAX_ZONES
        ));
    }
    let zones: usize = layout.nodes.iter().map(|node| node.zones.len()).sum();
    if zones > ZoneSet::MAX_ZONES {
        return fail(format!("the machine has {zones} zones: at most {} are modelled", ZoneSet::MAX_ZONES));
    }
    let mut total = 0;
    for (nid, node) in layout.nodes.iter().enumerate() {
        if node.zones.is_empty() {
            return fail(format!("node {nid} has no memory: leave it out"));
        }
        if !node.zones.is_sorted_by(|a, b| a.kind < b.kind) {
            return fail(format!("zones of node {nid} must be listed once each, lowest first"));
        }
        for zone in &node.zones {
            check_zone(nid, zone)?;
            total += (zone.reserved + zone.managed).0;
        }
    }
    if total < MIN_MANAGED {
        return fail(format!("{total} pages of memory are too few: the smallest machine has {MIN_MANAGED}"));
    }
    if total > MAX_FRAMES {
        return fail(format!("{total} pages of memory are too many: the largest machine has {MAX_FRAMES}"));
    }
    Ok(())
}

fn check_zone(nid: usize, zone: &ZoneLayout) -> Result<(), BootError> {
    let name = zone.kind.name();
    for pages in [zone.managed, zone.managed_at_boot] {
        if pages.0 == 0 || pages.0 > MAX_FRAMES {
            return Err(BootError(format!(
                "zone {name} of node {nid} has {} pages: it needs 1 to {MAX_FRAMES}; leave empty zones out",
                pages.0
            )));
        }
    }
    if zone.kept_reclaimable > zone.kept_by_kernel {
        return Err(BootError(format!(
            "boot keeps {} pages of zone {name} of node {nid} and {} of them reclaimable",
            zone.kept_by_kernel.0, zone.kept_reclaimable.0
        )));
    }
    let kept = zone.kept_by_kernel + zone.beside;
    if kept >= zone.managed {
        return Err(BootError(format!(
            "boot keeps {} of {} pages of zone {name} of node {nid}: nothing is left",
            kept.0, zone.managed.0
        )));
    }
    Ok(())
}

impl<T: Trace> PageAllocator<T> {
    /// Boots a machine. Values in `sysctls` that differ from their defaults are set once boot is
    /// over, as `sysctl.conf` does: they see the memory that is managed by then.
    ///
    /// # Errors
    /// A layout without CPUs or nodes, with empty or repeated zones, too little or too much memory.
    pub fn boot(
        layout: &MemoryLayout,
        version: Version,
        sysctls: Sysctls,
        trace: T,
    ) -> Result<Self, BootError> {
        check_layout(layout)?;
        let mut zones = lay_out_zones(layout, &version.rules);
        let end = zones.last().map_or(0, |zone| zone.start.0 + zone.spanned);
        let mut frames = Frames::new(end as usize);
        let hole = Chunk { zone: ZoneId(0), kind: zones[0].kind, node: zones[0].node };
        let mut chunks = vec![hole; end as usize / LARGEST_ORDER.pages() as usize];
        let layouts = layout.nodes.iter().flat_map(|node| &node.zones);
        for ((id, zone), layout) in zones.iter_mut().enumerate().zip(layouts) {
            let first = (zone.start.0 >> LARGEST_ORDER.0) as usize;
            let count = (zone.spanned >> LARGEST_ORDER.0) as usize;
            let chunk = Chunk { zone: zone_id(id), kind: zone.kind, node: zone.node };
            chunks[first..first + count].fill(chunk);
            free_at_boot(zone, layout, &mut frames).map_err(BootError)?;
        }
        let nodes = lay_out_nodes(layout.nodes.len(), &zones);
        let can_spread = nodes
            .iter()
            .map(|node| {
                ZoneKind::ALL.map(|highest_zoneidx| can_spread(&nodes, &zones, node, highest_zoneidx))
            })
            .collect();
        let mut allocator = Self {
            version,
            sysctls: Sysctls::default(),
            frames,
            zones,
            nodes,
            pcps: Vec::new(),
            has_lists: true,
            one_by_one: false,
            events: VmEvents::default(),
            trace,
            dirty_full_nodes: 0,
            busy_kswapds: 0,
            keeps_whole: false,
            boot_min_free_kbytes: 0,
            cpu_node: nodes_of_cpus(layout),
            chunks,
            can_spread,
        };
        let huge_pages = allocator.set_boot_huge_pages(layout.huge_pages);
        allocator.compute_boot_marks(huge_pages);
        allocator.make_pcps();
        let enabled = if huge_pages { "always" } else { "never" };
        for (sysctl, value) in [(Sysctl::ThpEnabled, enabled), (Sysctl::ThpDefrag, "madvise")] {
            let value = sysctl.parse_value(value).expect("a choice");
            allocator.sysctls.set(sysctl, value);
        }
        allocator.set_boot_lru();
        for &sysctl in Sysctl::ALL {
            let is_set = sysctls.get(sysctl) != Sysctls::default().get(sysctl);
            if is_set && allocator.version.rules.has_sysctl(sysctl) {
                allocator.set_sysctl(sysctl, sysctls.get(sysctl));
            }
        }
        Ok(allocator)
    }

    /// Marks and reserves from what is managed early at boot, then the raise for huge pages.
    fn compute_boot_marks(&mut self, huge_pages: bool) {
        for index in 0..self.zones.len() {
            let mut managed = [0; ZoneKind::COUNT];
            for zone in self.zones.iter().filter(|zone| zone.node == self.zones[index].node) {
                managed[zone.kind as usize] = zone.managed_at_boot.0;
            }
            let reserve = lowmem_reserve(self.zones[index].kind, &managed);
            self.zones[index].watermarks.set_reserve(reserve);
        }
        let early = |zone: &Zone| zone.managed_at_boot;
        let max = self.version.tuning.min_free_kbytes_max;
        let mut kbytes = min_free_kbytes(self.lowmem(early), max);
        self.set_marks(kbytes, early);
        if huge_pages {
            let populated = self.zones.iter().filter(|zone| zone.kind <= ZoneKind::Normal).count() as u64;
            let wanted = huge_page_min_free_kbytes(populated, self.lowmem_above_high());
            if wanted > kbytes {
                kbytes = wanted;
                self.set_marks(kbytes, early);
            }
        }
        self.boot_min_free_kbytes = kbytes;
        self.sysctls.set(Sysctl::MinFreeKbytes, kbytes);
    }

    /// Pages of all zones up to Normal.
    fn lowmem(&self, managed: impl Fn(&Zone) -> Pages) -> Pages {
        self.zones.iter().filter(|zone| zone.kind <= ZoneKind::Normal).map(managed).sum()
    }

    /// `nr_free_buffer_pages` at boot: lowmem beyond the high marks.
    fn lowmem_above_high(&self) -> Pages {
        self.lowmem(|zone| {
            let high = zone.watermarks.base(crate::alloc::watermark::Mark::High);
            zone.managed_at_boot.saturating_sub(Pages(high))
        })
    }

    fn set_marks(&mut self, min_free_kbytes: u64, managed: impl Fn(&Zone) -> Pages) {
        let scale_factor = match self.version.rules.mark_gap {
            MarkGap::Scaled => Some(self.sysctls.get(Sysctl::WatermarkScaleFactor)),
            MarkGap::QuarterOfMin => None,
        };
        let shares = MarkShares { min_free_kbytes, scale_factor, lowmem: self.lowmem(&managed).0 };
        for zone in &mut self.zones {
            let managed = managed(zone).0;
            zone.watermarks.set_base(shares, zone.kind, managed);
            if self.version.rules.highatomic == HighatomicReserve::Blocks {
                zone.set_blocks_aside(&mut self.frames);
            }
        }
    }

    fn make_pcps(&mut self) {
        for cpu in 0..self.cpu_node.len() {
            for zone in 0..self.zones.len() {
                let sizes = self.pcp_sizes(zone, |zone| zone.managed_at_boot);
                debug_assert_eq!(self.pcps.len(), (cpu * self.zones.len()) + zone);
                self.pcps.push(Pcp::new(sizes));
            }
        }
    }

    /// Sizes of the per-CPU lists of a zone by its present marks and what it manages at the time: at boot, less than in
    /// the end (measured: batches of a guest of 7.2).
    fn pcp_sizes(&self, zone: usize, managed: impl Fn(&Zone) -> Pages) -> PcpSizes {
        let zone = &self.zones[zone];
        let local = self.cpu_node.iter().filter(|&&node| node == zone.node).count();
        let cpus = if local == 0 { self.cpu_node.len() } else { local };
        let cpus = u32::try_from(cpus).expect("CPUs are counted by 16 bits");
        let most = self.version.tuning.pcp_share_max;
        PcpSizes::new(self.version.rules.pcp, managed(zone).0, sizing_mark(&zone.watermarks), cpus, most)
    }

    /// Whether huge pages are on. A kernel that is built without has no large folios of files either.
    fn set_boot_huge_pages(&mut self, huge_pages: HugeSupport) -> bool {
        let rules = &mut self.version.rules;
        if huge_pages == HugeSupport::Absent {
            rules.huge_pages = HugePages::Off;
            rules.readahead_folios = ReadaheadFolios::Single;
            rules.write_folios = WriteFolios::Single;
        }
        huge_pages == HugeSupport::On && rules.huge_pages == HugePages::On
    }

    /// The switch of the multi-gen LRU is as the kernel has it, which needs to have one.
    fn set_boot_lru(&mut self) {
        let rules = &mut self.version.rules;
        if rules.lru == LruKind::Generations && rules.gen_form == GenForm::NotBuilt {
            rules.lru = LruKind::TwoLists;
        }
        let parts = if rules.lru == LruKind::Generations { 7 } else { 0 };
        self.sysctls.set(Sysctl::LruGenEnabled, parts + 1);
    }

    /// Whether there are generations follows the switch. Pages follow by [`crate::lru::lists::Lru::follow_rules`].
    fn switch_lru(&mut self) {
        let lru = &mut self.version.rules.lru;
        match (*lru, self.sysctls.lru_gen()) {
            (LruKind::TwoLists, Some(true)) => *lru = LruKind::Generations,
            (LruKind::Generations, Some(false)) => *lru = LruKind::TwoLists,
            _ => {}
        }
    }

    /// Sets a sysctl as root does at run time. Marks are computed anew from what is managed now,
    /// and boosts end (MECHANISMS-6X 1.2). `min_free_kbytes` = 0 goes back to the value of boot.
    ///
    /// # Panics
    /// When the value is out of the sysctl's range.
    pub fn set_sysctl(&mut self, sysctl: Sysctl, value: u64) {
        let value = match (sysctl, value) {
            (Sysctl::MinFreeKbytes, 0) => self.boot_min_free_kbytes,
            _ => value,
        };
        self.sysctls.set(sysctl, value);
        if sysctl == Sysctl::LruGenEnabled {
            self.switch_lru();
        }
        if sysctl == Sysctl::DefragMode {
            self.keeps_whole = value != 0;
        }
        if !matches!(sysctl, Sysctl::MinFreeKbytes | Sysctl::WatermarkScaleFactor) {
            return;
        }
        self.set_marks(self.sysctls.get(Sysctl::MinFreeKbytes), |zone| zone.managed);
        for cpu in 0..self.cpu_count() {
            for zone in 0..self.zones.len() {
                let sizes = self.pcp_sizes(zone, |zone| zone.managed);
                self.pcp_mut(CpuId(cpu), zone_id(zone)).resize(sizes);
            }
        }
    }
}

fn zone_id(index: usize) -> ZoneId {
    ZoneId(u8::try_from(index).expect("at most 32 zones"))
}

fn lay_out_zones(layout: &MemoryLayout, rules: &Rules) -> Vec<Zone> {
    let mut start = 0;
    let mut zones = Vec::new();
    for (nid, node) in layout.nodes.iter().enumerate() {
        for zone in &node.zones {
            let spanned = u32::try_from((zone.reserved + zone.managed).0.next_multiple_of(CHUNK))
                .expect("checked before");
            zones.push(Zone {
                kind: zone.kind,
                node: NodeId(u8::try_from(nid).expect("at most 32 nodes")),
                start: Pfn(start),
                spanned,
                managed: zone.managed,
                beside: zone.beside,
                managed_at_boot: zone.managed_at_boot,
                watermarks: Watermarks::default(),
                free_area: FreeArea::new(Pfn(start), spanned, BlockSize::with(layout.huge_pages), rules),
                watermark_test: rules.watermark_test,
            });
            start += spanned;
        }
    }
    zones
}

/// Zonelists in node order: all zones of the nearest node, highest first, then the next node's
/// (MECHANISMS 1.2). Nodes are as far apart as their numbers, round the ring.
fn lay_out_nodes(count: usize, zones: &[Zone]) -> Vec<Node> {
    let ids_of = |node: usize| {
        let is_here = move |zone: &Zone| zone.node.index() == node;
        (0..zones.len()).filter(move |&id| is_here(&zones[id])).map(zone_id).collect::<Vec<_>>()
    };
    let zonelist = |node: usize, highest_zoneidx: ZoneKind| {
        (0..count)
            .flat_map(|step| ids_of((node + step) % count).into_iter().rev())
            .filter(|id| zones[id.index()].kind <= highest_zoneidx)
            .collect()
    };
    (0..count)
        .map(|node| Node {
            zones: ids_of(node),
            zonelists: ZoneKind::ALL.map(|highest_zoneidx| zonelist(node, highest_zoneidx)),
        })
        .collect()
}

/// The node of each CPU: they are shared out evenly.
fn nodes_of_cpus(layout: &MemoryLayout) -> Vec<NodeId> {
    let node_of = |cpu: u16| {
        let node = usize::from(cpu) * layout.nodes.len() / usize::from(layout.cpus);
        NodeId(u8::try_from(node).expect("at most 32 nodes"))
    };
    (0..layout.cpus).map(node_of).collect()
}

/// Whether requests of `highest_zoneidx` from `node` prefer a Normal zone with a DMA32 zone beside it.
fn can_spread(nodes: &[Node], zones: &[Zone], node: &Node, highest_zoneidx: ZoneKind) -> bool {
    let kind_of = |id: &ZoneId| zones[id.index()].kind;
    node.zonelists[highest_zoneidx as usize].first().is_some_and(|preferred| {
        let home = zones[preferred.index()].node;
        kind_of(preferred) == ZoneKind::Normal
            && nodes[home.index()].zones.iter().any(|id| kind_of(id) == ZoneKind::Dma32)
    })
}
