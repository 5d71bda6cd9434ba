//! `s390-fcp`, the machine of source 1: a guest with 16 disks behind one adapter (MECHANISMS 1.1, 1.3,
//! 16, 17/S1).
//!
//! Memory below 2 GiB is all one zone, ZONE_DMA, so that a request that finds that zone too low has no
//! other one to go to. With 256 MiB the kernel manages 248912 kB, hence `min_free_kbytes` 1995.
//!
//! What the source does not say is [`assumed`] and printed: how many CPUs there are, how fast the disks
//! are, what user space and drivers keep (nothing). `s390-fcp+cpus=16` is the same machine with 16 CPUs,
//! on whose lists a third of the distance between watermarks can lie (MECHANISMS 3.5).
//!
//! Left out: the hypervisor, and disks that are larger than their controller's cache.

use mm::base::layout::{HugeSupport, MemoryLayout, NodeLayout, ZoneKind, ZoneLayout};
use units::{Bytes, PAGE_SIZE, Pages};

/// Less is for no workload: an image, an initramfs and a shell beside 10 MiB that are never managed.
/// Inferred; the source begins with 160 MiB.
pub(super) const LEAST_MEM: Bytes = Bytes(64 << 20);

/// What the source's guest manages at 256 MiB.
const MANAGED_AT_256M: u64 = (248_912 << 10) / PAGE_SIZE;
/// `struct page` of a 64-bit kernel of 2009.
const STRUCT_PAGE: u64 = 56;
/// Kernel image, its tables and per-CPU areas: what is not managed beside the struct pages, at any size.
const RESERVED: u64 = (256 << 20) / PAGE_SIZE - MANAGED_AT_256M - struct_pages((256 << 20) / PAGE_SIZE);

/// Where ZONE_DMA ends.
const DMA_END: u64 = (2 << 30) / PAGE_SIZE;

const fn struct_pages(frames: u64) -> u64 {
    (frames * STRUCT_PAGE).div_ceil(PAGE_SIZE)
}

/// The guest's zones with `mem` of memory: one up to 2 GiB. Beyond, struct pages are in the upper one
/// once they are a small part of it.
pub(super) fn layout(mem: Bytes, cpus: u16) -> MemoryLayout {
    let frames = mem.to_pages_floor().0;
    let (lower, upper) = (frames.min(DMA_END) - RESERVED, frames.saturating_sub(DMA_END));
    let structs = struct_pages(frames);
    let zone = |kind, pages| ZoneLayout::new(kind, Pages(pages));
    let zones = if upper == 0 {
        vec![zone(ZoneKind::Dma, lower - structs)]
    } else if upper < 2 * structs {
        vec![zone(ZoneKind::Dma, lower - structs), zone(ZoneKind::Normal, upper)]
    } else {
        vec![zone(ZoneKind::Dma, lower), zone(ZoneKind::Normal, upper - structs)]
    };
    MemoryLayout { nodes: vec![NodeLayout { zones }], cpus, huge_pages: HugeSupport::Off }
}

/// What the source does not say of its machine.
pub(super) fn assumed(cpus: u16) -> String {
    format!(
        "assumed: {cpus} CPUs at half the speed of the reference, 100 ticks a second, LUNs of 100 MB/s \
         behind an adapter of 1.4 GB/s, ext3 unless the workload says otherwise, no memory kept by drivers and user space; source 1 says none of it"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn all_of_a_small_guest_is_one_zone_and_256_mib_are_the_source_s() {
        let zones = |mib| {
            let layout = layout(Bytes(mib * MIB), 4);
            let zone = |zone: &ZoneLayout| format!("{} {}", zone.kind.name(), zone.managed.0);
            layout.nodes[0].zones.iter().map(zone).collect::<Vec<_>>()
        };
        assert_eq!(zones(256), ["DMA 62228"]);
        assert_eq!(zones(160), ["DMA 37988"]);
        assert_eq!(zones(356), ["DMA 87478"]);
        assert_eq!(zones(4096), ["DMA 521876", "Normal 509952"]);
    }
}
