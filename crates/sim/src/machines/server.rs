//! `skylake-1s` and `haswell-2s`, the machines of source 4, `evo-ssd`, that of source 0, and `quad-node-16g`,
//! that of source 3.
//!
//! A smaller one has the same zones, each in proportion, so that a run in a hundredth of the memory
//! goes through the same mechanisms; no real machine is divided so. Left out: what their boot keeps.

use mm::base::layout::{HugeSupport, MemoryLayout, NodeLayout, ZoneKind, ZoneLayout};
use units::{Bytes, Pages};

/// The machine that machine files begin with.
pub const SERVER: &str = "x86-64";

/// Of the installed memory the kernel manages 98 percent: source 4's test made 6022 faults, so it
/// saw 6022 * 2 * 2 MiB / 0.75 of 32 GiB.
const MANAGED_PERCENT: u64 = 98;
/// Installed memory of the machines whose zones smaller ones have in proportion.
pub(super) const SKYLAKE_NODE: Bytes = Bytes(32 << 30);
pub(super) const EVO_NODE: Bytes = Bytes(16 << 30);
/// Of source 3's machine: 16 GiB in four nodes.
pub(super) const QUAD_NODE: Bytes = Bytes(4 << 30);
/// As many nodes as `quad-node-16g` has.
pub(super) const QUAD_NODES: u16 = 4;
/// `mkfs.xfs` of the time made no smaller log.
const XFS_LOG_LEAST: Bytes = Bytes(10 << 20);
/// Below 4 GiB a server has its PCI hole; 1 GiB is inferred.
const FULL_DMA32_PAGES: u64 = (3 << 30) / units::PAGE_SIZE;
/// Pages that the DMA zone of such a server manages.
const FULL_DMA_PAGES: u64 = 3_840;

/// A server with `mem` shared out to its nodes, a full one of which has `full_node`. The first one has the
/// low zones.
pub(super) fn layout(mem: Bytes, cpus: u16, nodes: u16, full_node: Bytes) -> MemoryLayout {
    let node_bytes = mem.0 / u64::from(nodes);
    let managed = Bytes(node_bytes / 100 * MANAGED_PERCENT).to_pages_floor().0;
    let share = |full: u64| {
        let scaled = u128::from(full) * u128::from(node_bytes) / u128::from(full_node.0);
        u64::try_from(scaled).expect("less than the node's memory").min(full)
    };
    // A DMA zone has to hold at least one block of the largest order.
    let dma = share(FULL_DMA_PAGES).max(1024).min(managed / 8);
    let dma32 = share(FULL_DMA32_PAGES);
    let zone = |kind, pages| ZoneLayout::new(kind, Pages(pages));
    let first = vec![
        zone(ZoneKind::Dma, dma),
        zone(ZoneKind::Dma32, dma32),
        zone(ZoneKind::Normal, managed - dma - dma32),
    ];
    let others = (1..nodes).map(|_| vec![zone(ZoneKind::Normal, managed)]);
    let nodes = std::iter::once(first).chain(others).map(|zones| NodeLayout { zones }).collect();
    MemoryLayout { nodes, cpus, huge_pages: HugeSupport::On }
}

/// A server with zones by the rule of x86-64: the first 16 MiB, up to 3 GiB below the PCI hole, and the rest; nodes
/// share memory evenly.
pub(super) fn by_rule(mem: Bytes, cpus: u16, nodes: u16) -> MemoryLayout {
    /// A zone below this is left to the one below it.
    const LEAST_PAGES: u64 = 1024;
    let node_bytes = mem.0 / u64::from(nodes);
    let managed = Bytes(node_bytes / 100 * MANAGED_PERCENT).to_pages_floor().0;
    let zone = |kind, pages| ZoneLayout::new(kind, Pages(pages));
    let dma = FULL_DMA_PAGES.min(managed / 8);
    let below = FULL_DMA32_PAGES.min(managed - dma);
    let below = if managed - dma - below < LEAST_PAGES { managed - dma } else { below };
    let mut first = vec![zone(ZoneKind::Dma, dma), zone(ZoneKind::Dma32, below)];
    if managed > dma + below {
        first.push(zone(ZoneKind::Normal, managed - dma - below));
    }
    let others = (1..nodes).map(|_| vec![zone(ZoneKind::Normal, managed)]);
    let nodes = std::iter::once(first).chain(others).map(|zones| NodeLayout { zones }).collect();
    MemoryLayout { nodes, cpus, huge_pages: HugeSupport::On }
}

/// What the disk of `evo-ssd` writes fast: of a smaller machine less, as its zones are smaller, so that the
/// burst ends in the same part of a workload that is scaled by memory.
pub(super) fn burst(mem: Bytes, full: Bytes) -> Bytes {
    let scaled = u128::from(full.0) * u128::from(mem.0) / u128::from(EVO_NODE.0);
    Bytes(u64::try_from(scaled).map_or(full.0, |scaled| scaled.min(full.0)))
}

/// The log of `quad-node-16g`: of a smaller machine a smaller one, so that as large a part of its memory can be
/// inodes that only the log has. XFS makes none below [`XFS_LOG_LEAST`].
pub(super) fn quad_log(mem: Bytes, full: Bytes) -> Bytes {
    let scaled = u128::from(full.0) * u128::from(mem.0) / (u128::from(QUAD_NODE.0) * u128::from(QUAD_NODES));
    let scaled = u64::try_from(scaled).map_or(full.0, |scaled| scaled.min(full.0));
    Bytes((scaled & !((1 << 20) - 1)).max(XFS_LOG_LEAST.0))
}

/// What a run of `evo-ssd` assumes.
pub(super) fn assumed_of_evo() -> String {
    "assumed: the disk's fast cells, 6 GB at 16G and less with less memory, get empty at 300 MB/s when it has \
     rested for 1 s; cores and zones of source 0's machine"
        .to_string()
}

/// What a run of `quad-node-16g` assumes.
pub(super) fn assumed_of_quad() -> String {
    "assumed: two SATA SSDs, striped, that take 2 ms to write out their own memory, and a log of 2G, the largest \
     of XFS, at 16G and less with less memory; source 3 says nothing of either, and what comes out depends on it \
     (`+flush=0`)"
        .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_server_has_the_zones_of_a_large_one_in_proportion() {
        let zones = |mem, nodes| {
            let pages = |node: NodeLayout| node.zones.iter().map(|zone| zone.managed.0).collect();
            layout(Bytes(mem), 8, nodes, SKYLAKE_NODE).nodes.into_iter().map(pages).collect::<Vec<Vec<u64>>>()
        };
        assert_eq!(zones(32 << 30, 1), [[3840, 786_432, 7_430_563]]);
        assert_eq!(zones(128 << 20, 1), [[1024, 3072, 28_016]]);
        let two = [vec![3840, 786_432, 7_430_563], vec![8_220_835]];
        assert_eq!(zones(64 << 30, 2), two);
    }

    #[test]
    fn fast_cells_are_in_proportion_up_to_the_machine_of_the_source() {
        let of = |mem| burst(Bytes(mem), Bytes(6_000)).0;
        assert_eq!([1 << 30, 8 << 30, 16 << 30, 64 << 30].map(of), [375, 3_000, 6_000, 6_000]);
    }

    #[test]
    fn a_log_is_in_proportion_up_to_the_machine_of_the_source_and_never_too_small() {
        let of = |mem| quad_log(Bytes(mem), Bytes(2 << 30)).0 >> 20;
        assert_eq!([64 << 20, 1 << 30, 8 << 30, 16 << 30, 64 << 30].map(of), [10, 128, 1024, 2048, 2048]);
    }
}
