//! `guest-tcg`: a guest of Debian's kernels in QEMU without KVM, at any size of memory
//! (MECHANISMS-6X 1.1, 1.2; MECHANISMS-510-72 1.1).
//!
//! # What the kernel manages
//! ```text
//!   frames = DMA below 16 MiB | DMA32 ................... | Normal above the hole, from 3.5 GiB on
//!                             | image, firmware, per-CPU  | struct pages, hash tables
//!                             | pages returned when boot  | (in DMA32 where there is no Normal)
//!                             |   is over: initramfs, init|
//! ```
//! Three parts follow from rules of the kernel: 64 bytes of struct page for each frame, in whole
//! sections of 128 MiB; the hash tables of dentries (one bucket of 8 bytes for two pages) and inodes
//! (half as many), each rounded up to a power of two; and 64 MiB of bounce buffers in DMA32 once
//! there is memory above 4 GiB. What is left was [reserved](Boot::reserved) alike in every guest.
//!
//! What boot returned later and what it keeps is linear between measured sizes and constant beyond. The guests'
//! initramfs had 3 MiB, at 1 GiB more.
//!
//! # How far the rule is off
//! Of 42 further guests (128M to 6G, 6.1 and 6.12): pages managed, at most 3; between DMA32 and Normal at 4 and 6 GiB,
//! 440 and 9,900; huge pages on or off, never. With a larger initramfs, which the rule leaves out, `min_free_kbytes` is
//! 1 % less at 512 MiB, 5 % less at 128 MiB.
//!
//! # How fast it is
//! An emulated CPU takes 57 times as long, 10 times in reclaim, faults and swap, and the first use of a page frame
//! costs its host time; a file is created as fast as measured.
//!
//! Left out: where a randomised kernel image lies (with memory above 4 GiB it may be there, which
//! moves some 9,500 pages between the zones); smaller hash tables above 64 GiB.

use mm::base::layout::{HugeSupport, MemoryLayout, NodeLayout, ZoneKind, ZoneLayout};
use mm::version::presets::Version;
use units::{Bytes, Nanos, Pages};

use crate::hardware::cost::CostTable;
use crate::machines::measured::{self, Measured, hash_tables, nearest};

/// Below this QEMU's guests do not unpack themselves: the least that `--on vm:VERSION` takes.
pub(super) const LEAST_MEM: Bytes = Bytes(128 << 20);

/// What the measured guests had set, and what `--on vm:VERSION` sets.
pub(super) const READAHEAD: Bytes = Bytes(128 << 10);

/// An emulated CPU (QEMU's TCG). Calibrated, not derived: to the time of 1 GiB that is streamed under a limit, 6.1 and
/// 6.12.
pub(super) const CPU_PERCENT: u32 = 5_700;

/// The same in reclaim. Measured: `full` memory stall, which counts a CPU that reclaims, is 3.2 to 4.6 us for each page
/// freed by one reader or sixteen on 6.1 and 6.12; the cost table has 395 ns.
const RECLAIM_PERCENT: u32 = 1_000;

/// What that is about. A refill of the per-CPU list costs what its drain does.
const RECLAIM_COSTS: [&str; 8] = [
    "scan_page",
    "reclaim_page",
    "reclaim_tail",
    "reclaim_leaf",
    "deactivate_page",
    "walk_memcg",
    "pcp_free",
    "pcp_refill_page",
];

/// The same in a fault, and in swap. Measured: a sweep over fresh memory, 26 to 36 us a page in 22 runs.
const FAULT_COSTS: [&str; 11] = [
    "minor_fault",
    "populate_page",
    "clear_page",
    "major_fault",
    "unmap_page",
    "swap_cache",
    "swap_slot",
    "swap_slot_fetch",
    "same_filled_test",
    "compress_page",
    "decompress_page",
];

/// What the host takes when a guest uses a page for the first time. Measured: a file that is read into fresh memory,
/// less one that is read through memory in use (6.1).
const FIRST_USE: Nanos = Nanos::from_micros(22);

/// To lock a page, beyond its fault, and to let it go again. Measured: guests of 6.1 and 6.12 that pin 350 MiB anew.
const LOCK_PAGE: Nanos = Nanos::from_micros(22);

/// To create a file with all that belongs to it. Calibrated, not derived: to the rate of one thread, the median of 24
/// runs; the cost table's figure is of 16 threads that contend for one log.
const FILE_CREATE: Nanos = Nanos::from_micros(480);

/// What a guest's program does beside its calls: nothing.
const OWN_WORK: Nanos = Nanos(0);

/// A kernel of which guests were measured.
struct MeasuredKernel {
    name: &'static str,
    /// Frames, beside struct pages, that hash tables are not sized by: 6.1 takes all that is present, 6.12 what is
    /// free when they are made, without image and initramfs.
    not_hashed: u64,
    /// Pages of the DMA zone that it manages.
    dma_managed: u64,
    /// By MiB of memory, smallest first.
    boots: &'static [(u64, Boot)],
}

/// What boot did to a guest, in pages.
#[derive(Debug, Clone, Copy)]
struct Boot {
    /// Never managed, beside struct pages and hash tables: firmware, kernel image, per-CPU areas.
    reserved: u64,
    /// Managed only after watermarks were computed: initramfs and init memory. From
    /// `min_free_kbytes`, which tells what was managed before.
    returned: u64,
    /// What the workload cannot have: kernel memory, unpacked initramfs, daemons. Less than `MemTotal` - `MemFree`
    /// before the workload, which has the pages on per-CPU lists too.
    kept: u64,
}

const fn boot(mib: u64, reserved: u64, returned: u64, kept: u64) -> (u64, Boot) {
    (mib, Boot { reserved, returned, kept })
}

/// Measured (MECHANISMS-6X 1.1, 1.2): `reserved` from `MemTotal`, `returned` from `min_free_kbytes` and the zones'
/// protection, `kept` from `MemTotal` - `MemFree`, medians of up to 19 guests. On 6.12 and 7.2 per-CPU lists hold
/// thousands of pages when boot is over (MECHANISMS-6X 1.4), which they give back: there `kept` is `MemTotal` less the
/// most that was ever free or counted as the workload's. How 5.10 sizes hash tables was not seen; 7.2 as 6.12.
const MEASURED: [MeasuredKernel; 4] = [
    MeasuredKernel {
        name: "linux-5.10",
        not_hashed: 0,
        dma_managed: 3_977,
        boots: &[boot(256, 7_114, 2_533, 8_838), boot(512, 7_114, 2_533, 8_997)],
    },
    MeasuredKernel {
        name: "linux-6.1",
        not_hashed: 0,
        dma_managed: 3_840,
        boots: &[
            boot(192, 8_827, 2_796, 8_610),
            boot(256, 8_827, 2_803, 8_960),
            boot(512, 8_827, 2_784, 8_960),
            boot(1024, 8_824, 5_512, 10_314),
        ],
    },
    MeasuredKernel {
        name: "linux-6.12",
        not_hashed: 14_300,
        dma_managed: 3_840,
        boots: &[
            boot(192, 10_148, 2_564, 6_164),
            boot(256, 10_148, 2_568, 6_237),
            boot(512, 10_148, 2_573, 6_314),
            boot(1024, 10_148, 5_468, 7_704),
        ],
    },
    MeasuredKernel {
        name: "linux-7.2",
        not_hashed: 14_300,
        dma_managed: 3_840,
        boots: &[boot(256, 11_112, 3_328, 8_319), boot(512, 11_113, 3_328, 8_313)],
    },
];

/// Pages of the DMA zone: all, and those managed that are not free after boot: 3808 of 3840 are, with 5.10 3945
/// of 3977.
const DMA_PAGES: u64 = 4_096;
const DMA_KEPT: u64 = 32;

/// From 3.5 GiB on a PC of QEMU's has 3 GiB below the hole for devices and the rest above 4 GiB.
const HOLE_FROM: u64 = (7 << 29) / units::PAGE_SIZE;
const BELOW_HOLE: u64 = (3 << 30) / units::PAGE_SIZE;
/// Bounce buffers for devices that do not reach beyond 4 GiB.
const SWIOTLB: u64 = (64 << 20) / units::PAGE_SIZE;
/// Page tables and the like for memory above the hole, as measured at 4 and 6 GiB.
const RESERVED_ABOVE_HOLE: u64 = 192;
/// Huge pages are off unless so much is managed when they are set up (`hugepage_init`), which is before the initramfs
/// is returned (MECHANISMS-6X 1.2).
const HUGE_PAGES_FROM: u64 = (512 << 20) / units::PAGE_SIZE;

/// `struct page` for every frame of a section, whether it is there or not.
fn struct_pages(frames: u64) -> u64 {
    const SECTION: u64 = (128 << 20) / units::PAGE_SIZE;
    const STRUCT_PAGE: u64 = 64;
    frames.div_ceil(SECTION) * (SECTION * STRUCT_PAGE / units::PAGE_SIZE)
}

impl Measured for MeasuredKernel {
    fn name(&self) -> &'static str {
        self.name
    }
}

impl MeasuredKernel {
    /// Linear between measured sizes, and as at the nearest one beyond them.
    fn boot(&self, frames: u64) -> Boot {
        let pages = |mib: u64| Bytes(mib << 20).to_pages_floor().0;
        let next = self.boots.partition_point(|&(mib, _)| pages(mib) < frames);
        let (less, more) = (next.saturating_sub(1), next.min(self.boots.len() - 1));
        let ((less_mib, less), (more_mib, more)) = (self.boots[less], self.boots[more]);
        if less_mib == more_mib {
            return less;
        }
        let (part, whole) = (frames - pages(less_mib), pages(more_mib) - pages(less_mib));
        let between = |from: u64, to: u64| ((from * (whole - part)) + (to * part)) / whole;
        Boot {
            reserved: between(less.reserved, more.reserved),
            returned: between(less.returned, more.returned),
            kept: between(less.kept, more.kept),
        }
    }
}

/// What differs from the cost table at the speed of an emulated CPU, but for what somebody sets: it is in `given`.
pub(super) fn set_costs(costs: &mut CostTable, given: &CostTable) {
    let reclaim = CostTable::default().scale_percent(RECLAIM_PERCENT);
    let rows = reclaim.names().filter(|(name, _)| RECLAIM_COSTS.contains(name) || FAULT_COSTS.contains(name));
    let own = [
        ("first_use", FIRST_USE),
        ("lock_page", LOCK_PAGE),
        ("file_create", FILE_CREATE),
        ("user_microsecond", OWN_WORK),
    ];
    let is_default = |name| given.names().zip(CostTable::DEFAULT.names()).any(|(a, b)| a.0 == name && a == b);
    for (name, nanos) in rows.chain(own).filter(|(name, _)| is_default(*name)) {
        costs.set(name, nanos).expect("the cost table has that row");
    }
}

/// The guest's zones with `mem` of memory.
pub(super) fn layout(mem: Bytes, kernel: &Version, cpus: u16) -> MemoryLayout {
    let measured = nearest(&MEASURED, kernel.base);
    let frames = mem.to_pages_floor().0;
    let boot = measured.boot(frames);
    let structs = struct_pages(frames);
    let tables = structs + hash_tables(frames - structs - measured.not_hashed);
    let reserved = boot.reserved - (DMA_PAGES - measured.dma_managed);
    let zone = |kind, managed: u64, returned, kept| ZoneLayout {
        managed_at_boot: Pages(managed - returned),
        kept_by_kernel: Pages(kept),
        ..ZoneLayout::new(kind, Pages(managed))
    };
    let dma = zone(ZoneKind::Dma, measured.dma_managed, 0, DMA_KEPT);
    let kept = boot.kept - DMA_KEPT;
    let zones = if frames < HOLE_FROM {
        let dma32 = frames - DMA_PAGES - reserved - tables;
        vec![dma, zone(ZoneKind::Dma32, dma32, boot.returned, kept)]
    } else {
        let dma32 = BELOW_HOLE - DMA_PAGES - reserved - SWIOTLB;
        let normal = frames - BELOW_HOLE - tables - RESERVED_ABOVE_HOLE;
        // The highest zone is the first that boot takes from.
        vec![dma, zone(ZoneKind::Dma32, dma32, boot.returned, 0), zone(ZoneKind::Normal, normal, 0, kept)]
    };
    let early: u64 = zones.iter().map(|zone| zone.managed_at_boot.0).sum();
    MemoryLayout {
        nodes: vec![NodeLayout { zones }],
        cpus,
        huge_pages: HugeSupport::switched(early >= HUGE_PAGES_FROM),
    }
}

/// What stands for the boot of a kernel of which no guest was measured.
pub(super) fn assumed(kernel: &Version) -> Option<String> {
    measured::assumed(&MEASURED, kernel)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn guest(kernel: &str, mib: u64) -> MemoryLayout {
        layout(Bytes(mib * MIB), &Version::parse(kernel).unwrap(), 2)
    }

    /// `guest-tcg` replaced a table of six guests that was part of `vm-2cpu`.
    #[test]
    fn a_kernel_without_a_measured_guest_says_what_is_assumed() {
        let assumed = |name: &str| assumed(&Version::parse(name).unwrap());
        let text =
            "assumed: linux-5.4 boots as a guest of linux-5.10 does; no guest of linux-5.4 was measured";
        assert_eq!(assumed("linux-5.4+root-aging").as_deref(), Some(text));
        assert_eq!(assumed("linux-6.12-pcp-auto-size"), None);
        assert_eq!(guest("linux-5.4", 512), guest("linux-5.10", 512));
    }

    /// Guests that were looked at later: `managed` of DMA32 and Normal as `/proc/zoneinfo` had it.
    #[test]
    fn the_rule_is_near_guests_of_other_sizes() {
        for (kernel, mib, managed, huge_pages) in [
            ("linux-6.1", 128, 19_543, false),
            ("linux-6.1", 384, 83_911, false),
            ("linux-6.1", 568, 129_799, false),
            ("linux-6.1", 580, 132_871, true),
            ("linux-6.1", 3072, 759_943, true),
            ("linux-6.1", 4096, 757_814 + 243_599, true),
            ("linux-6.12", 192, 34_045, false),
            ("linux-6.12", 257, 50_172, false),
            ("linux-6.12", 316, 65_276, false),
            ("linux-6.12", 320, 66_204, false),
            ("linux-6.12", 768, 179_165, true),
            ("linux-6.12", 3600, 756_503 + 118_147, true),
            ("linux-6.12", 6144, 765_917 + 748_735, true),
        ] {
            let layout = guest(kernel, mib);
            let off = (layout.memory().0 - 3_840).abs_diff(managed);
            assert!(off <= 3, "{kernel} with {mib} MiB: {off} pages off");
            assert_eq!(layout.huge_pages, HugeSupport::switched(huge_pages), "{kernel} with {mib} MiB");
        }
    }

    #[test]
    fn the_rule_gives_the_measured_guests_page_by_page() {
        for (kernel, mib, managed, at_boot, kept) in [
            ("linux-5.10", 512, 117_741, 115_208, 8_997),
            ("linux-5.10", 256, 53_325, 50_792, 8_838),
            ("linux-6.1", 512, 116_165, 113_381, 8_960),
            ("linux-6.12", 512, 114_844, 112_271, 6_314),
            ("linux-6.1", 256, 51_749, 48_946, 8_960),
            ("linux-6.12", 256, 50_428, 47_860, 6_237),
            ("linux-6.1", 1024, 245_000, 239_488, 10_314),
            ("linux-6.12", 1024, 243_676, 238_208, 7_704),
            ("linux-7.2", 512, 113_879, 110_551, 8_313),
            ("linux-7.2", 256, 49_464, 46_136, 8_319),
        ] {
            let zone = |kind, managed, managed_at_boot, kept| ZoneLayout {
                managed_at_boot: Pages(managed_at_boot),
                kept_by_kernel: Pages(kept),
                ..ZoneLayout::new(kind, Pages(managed))
            };
            let dma = if kernel == "linux-5.10" { 3_977 } else { 3_840 };
            let zones =
                vec![zone(ZoneKind::Dma, dma, dma, 32), zone(ZoneKind::Dma32, managed, at_boot, kept - 32)];
            let expected = MemoryLayout {
                nodes: vec![NodeLayout { zones }],
                cpus: 2,
                huge_pages: HugeSupport::switched(mib == 1024),
            };
            assert_eq!(guest(kernel, mib), expected, "{kernel} with {mib} MiB");
        }
    }
}
