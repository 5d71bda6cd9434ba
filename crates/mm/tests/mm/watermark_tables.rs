//! Marks of real machines, as measured (MECHANISMS 1.3; MECHANISMS-6X 1.1, 1.2;
//! MECHANISMS-510-72 1.1).

use pagetide_mm::alloc::page_alloc::PageAllocator;
use pagetide_mm::alloc::watermark::Mark;
use pagetide_mm::alloc::zone::Zone;
use pagetide_mm::base::event::NoTrace;
use pagetide_mm::base::layout::{HugeSupport, MemoryLayout, NodeLayout, ZoneId, ZoneKind, ZoneLayout};
use pagetide_mm::base::sysctl::{Sysctl, Sysctls};
use pagetide_mm::version::presets::Version;
use units::{CpuId, Pages};

fn zone(kind: ZoneKind, managed: u64, managed_at_boot: u64) -> ZoneLayout {
    ZoneLayout { managed_at_boot: Pages(managed_at_boot), ..ZoneLayout::new(kind, Pages(managed)) }
}

fn guest(kernel: &str, managed: u64, managed_at_boot: u64) -> PageAllocator<NoTrace> {
    let zones = vec![zone(ZoneKind::Dma, 3840, 3840), zone(ZoneKind::Dma32, managed, managed_at_boot)];
    let layout = MemoryLayout { nodes: vec![NodeLayout { zones }], cpus: 2, huge_pages: HugeSupport::Off };
    PageAllocator::boot(&layout, Version::parse(kernel).unwrap(), Sysctls::default(), NoTrace).unwrap()
}

fn marks(zone: &Zone) -> [u64; 3] {
    Mark::ALL.map(|mark| zone.watermarks.mark(mark))
}

struct Row {
    kernel: &'static str,
    managed: u64,
    managed_at_boot: u64,
    min_free_kbytes: u64,
    dma32: [u64; 3],
    dma: [u64; 3],
    dma_reserve: u64,
    batch: u32,
    high: u32,
}

/// What was managed at boot is the fewest pages that give the measured `min_free_kbytes`.
const GUESTS: [Row; 6] = [
    Row {
        kernel: "linux-6.1",
        managed: 116_165,
        managed_at_boot: 113_381,
        min_free_kbytes: 2739,
        dma32: [661, 826, 991],
        dma: [22, 27, 32],
        dma_reserve: 442,
        batch: 31,
        high: 413,
    },
    Row {
        kernel: "linux-6.12",
        managed: 114_844,
        managed_at_boot: 112_271,
        min_free_kbytes: 2726,
        dma32: [658, 822, 986],
        dma: [22, 27, 32],
        dma_reserve: 438,
        batch: 31,
        high: 411,
    },
    Row {
        kernel: "linux-6.1",
        managed: 51_749,
        managed_at_boot: 48_946,
        min_free_kbytes: 1838,
        dma32: [425, 531, 637],
        dma: [33, 41, 49],
        dma_reserve: 191,
        batch: 15,
        high: 265,
    },
    Row {
        kernel: "linux-6.12",
        managed: 50_428,
        managed_at_boot: 47_860,
        min_free_kbytes: 1819,
        dma32: [420, 525, 630],
        dma: [33, 41, 49],
        dma_reserve: 186,
        batch: 15,
        high: 262,
    },
    Row {
        kernel: "linux-7.2",
        managed: 113_879,
        managed_at_boot: 110_551,
        min_free_kbytes: 2705,
        dma32: [653, 816, 979],
        dma: [22, 27, 32],
        dma_reserve: 431,
        batch: 31,
        high: 408,
    },
    Row {
        kernel: "linux-7.2",
        managed: 49_464,
        managed_at_boot: 46_136,
        min_free_kbytes: 1788,
        dma32: [412, 515, 618],
        dma: [34, 42, 50],
        dma_reserve: 180,
        batch: 15,
        high: 257,
    },
];

#[test]
fn guests_of_256_and_512_mib_have_the_marks_that_were_measured() {
    for row in GUESTS {
        let memory = guest(row.kernel, row.managed, row.managed_at_boot);
        assert_eq!(memory.sysctls().get(Sysctl::MinFreeKbytes), row.min_free_kbytes);
        assert_eq!(marks(&memory.zones()[1]), row.dma32);
        assert_eq!(marks(&memory.zones()[0]), row.dma);
        let dma = &memory.zones()[0].watermarks;
        assert_eq!(dma.reserve(ZoneKind::Dma), 0);
        for highest_zoneidx in [ZoneKind::Dma32, ZoneKind::Normal, ZoneKind::Movable] {
            assert_eq!(dma.reserve(highest_zoneidx), row.dma_reserve);
        }
        let sizes = memory.pcp(CpuId(0), ZoneId(1)).sizes();
        assert_eq!((sizes.batch, sizes.high_min), (row.batch, row.high));
        let dma = memory.pcp(CpuId(1), ZoneId(0)).sizes();
        assert_eq!((dma.batch, dma.high_min), (1, u32::try_from(row.dma[1] / 2).unwrap()));
    }
}

/// Of what is managed when the lists are made, as their batch is; no guest tells the figure itself.
#[test]
fn per_cpu_lists_of_6_12_may_grow_to_an_eighth_of_the_zone() {
    let high_max =
        |managed, at_boot| guest("linux-6.12", managed, at_boot).pcp(CpuId(0), ZoneId(1)).sizes().high_max;
    assert_eq!(high_max(114_844, 112_271), 7016);
    assert_eq!(high_max(50_428, 47_860), 2991);
}

#[test]
fn a_high_mark_of_5_x_is_six_batches_and_zero_in_a_small_zone() {
    let memory = guest("linux-5.5", 51_749, 51_749);
    let sizes = |zone| {
        let sizes = memory.pcp(CpuId(0), ZoneId(zone)).sizes();
        (sizes.batch, sizes.high_min, sizes.high_max)
    };
    assert_eq!(sizes(1), (15, 90, 90));
    assert_eq!(sizes(0), (1, 0, 0), "a freed page goes straight to the zone");
}

#[test]
fn one_zone_of_248912_kb_has_a_min_of_1995_kb() {
    let layout = MemoryLayout {
        nodes: vec![NodeLayout { zones: vec![zone(ZoneKind::Dma, 248_912 / 4, 248_912 / 4)] }],
        cpus: 1,
        huge_pages: HugeSupport::Off,
    };
    let kernel = Version::parse("linux-5.3").unwrap();
    let memory = PageAllocator::boot(&layout, kernel, Sysctls::default(), NoTrace).unwrap();
    assert_eq!(memory.sysctls().get(Sysctl::MinFreeKbytes), 1995);
    assert_eq!(marks(&memory.zones()[0])[0], 498);
}

#[test]
fn huge_pages_raise_a_machine_of_three_zones_to_67584_kb() {
    let layout = MemoryLayout::flat(Pages(8 << 18), 8);
    let memory =
        PageAllocator::boot(&layout, Version::parse("linux-5.3").unwrap(), Sysctls::default(), NoTrace)
            .unwrap();
    assert_eq!(memory.sysctls().get(Sysctl::MinFreeKbytes), 67584);
    let small = MemoryLayout { huge_pages: HugeSupport::On, ..MemoryLayout::flat(Pages(64 << 8), 1) };
    let memory =
        PageAllocator::boot(&small, Version::parse("linux-5.3").unwrap(), Sysctls::default(), NoTrace)
            .unwrap();
    let kbytes = memory.sysctls().get(Sysctl::MinFreeKbytes);
    assert_eq!(kbytes, 3200, "5 % of what 64 MiB hold above the high marks of 384 pages");
}

#[test]
fn a_written_min_free_kbytes_counts_the_pages_of_now() {
    let mut memory = guest("linux-6.1", 116_165, 113_381);
    memory.set_sysctl(Sysctl::MinFreeKbytes, 2739);
    assert_eq!(marks(&memory.zones()[1]), [662, 827, 992]);
    memory.set_sysctl(Sysctl::WatermarkScaleFactor, 1000);
    assert_eq!(marks(&memory.zones()[1]), [662, 662 + 11_616, 662 + 23_232]);
    assert_eq!(memory.pcp(CpuId(0), ZoneId(1)).sizes().high_min, 6139, "lists follow the low mark");
    memory.set_sysctl(Sysctl::MinFreeKbytes, 0);
    assert_eq!(memory.sysctls().get(Sysctl::MinFreeKbytes), 2739, "back to the value of boot");
}

#[test]
fn absurd_machines_do_not_boot_and_say_why() {
    let boot = |layout: MemoryLayout| {
        let kernel = Version::parse("linux-6.1").unwrap();
        PageAllocator::boot(&layout, kernel, Sysctls::default(), NoTrace).err().map(|error| error.to_string())
    };
    let flat = |pages| MemoryLayout::flat(Pages(pages), 1);
    let with_zones =
        |zones| MemoryLayout { nodes: vec![NodeLayout { zones }], cpus: 1, huge_pages: HugeSupport::Off };
    let normal = zone(ZoneKind::Normal, 4096, 4096);
    for (layout, message) in [
        (flat(1023), "1023 pages of memory are too few: the smallest machine has 1024"),
        (flat(0), "node 0 has no memory: leave it out"),
        (
            flat(u64::MAX),
            "zone Normal of node 0 has 18446744073708503295 pages: it needs 1 to 268435456; leave empty zones out",
        ),
        (MemoryLayout { cpus: 0, ..flat(4096) }, "the machine has no CPU: it needs at least one"),
        (MemoryLayout { nodes: vec![], ..flat(4096) }, "the machine has 0 memory nodes: it needs 1 to 32"),
        (with_zones(vec![normal, normal]), "zones of node 0 must be listed once each, lowest first"),
        (
            with_zones(vec![ZoneLayout { kept_by_kernel: Pages(4096), ..normal }]),
            "boot keeps 4096 of 4096 pages of zone Normal of node 0: nothing is left",
        ),
    ] {
        assert_eq!(boot(layout).as_deref(), Some(message));
    }
    assert_eq!(boot(flat(1024)), None);
}

/// The machine of source 1: 256 MB in one zone (MECHANISMS 1.3, 3.1, 3.5).
#[test]
fn linux_2_6_32_with_256_mb_in_one_zone_has_the_marks_of_source_1() {
    let zones = vec![zone(ZoneKind::Dma, 62_228, 62_228)];
    let layout = MemoryLayout { nodes: vec![NodeLayout { zones }], cpus: 4, huge_pages: HugeSupport::Off };
    let kernel = Version::parse("linux-2.6.32").unwrap();
    let memory = PageAllocator::boot(&layout, kernel, Sysctls::default(), NoTrace).unwrap();
    assert_eq!(memory.sysctls().get(Sysctl::MinFreeKbytes), 1995);
    assert_eq!(marks(&memory.zones()[0]), [498, 622, 747]);
    let sizes = memory.pcp(CpuId(0), ZoneId(0)).sizes();
    assert_eq!((sizes.batch, sizes.high_min), (15, 90));
    assert_eq!(memory.zones()[0].free_area.pageblocks().totals()[3], 1, "one pageblock is set aside");
}
