//! Per-CPU lists of the three generations, seen from outside (MECHANISMS 3; MECHANISMS-6X 1.4).

use pagetide_mm::Memory;
use pagetide_mm::alloc::flags::AllocFlags;
use pagetide_mm::alloc::page_alloc::{AllocOutcome, PageAllocator};
use pagetide_mm::alloc::watermark::Mark;
use pagetide_mm::base::event::NoTrace;
use pagetide_mm::base::gfp::{Gfp, MigrateType};
use pagetide_mm::base::layout::{HugeSupport, MemoryLayout, NodeLayout, ZoneId, ZoneKind, ZoneLayout};
use pagetide_mm::base::sysctl::Sysctls;
use pagetide_mm::base::vmstat::VmEvent;
use pagetide_mm::version::geometry::Cache;
use pagetide_mm::version::presets::Version;
use pagetide_mm::version::rules::ReserveUsers;
use units::{CpuId, Order, Pages, Pfn};

const CPU: CpuId = CpuId(0);
const DMA32: ZoneId = ZoneId(1);

/// A guest of 512 or 256 MiB with two CPUs.
fn layout(managed: u64) -> MemoryLayout {
    let zone = |kind, managed| ZoneLayout::new(kind, Pages(managed));
    let zones = vec![zone(ZoneKind::Dma, 3840), zone(ZoneKind::Dma32, managed)];
    MemoryLayout { nodes: vec![NodeLayout { zones }], cpus: 2, huge_pages: HugeSupport::Off }
}

fn guest(kernel: &str, managed: u64) -> PageAllocator<NoTrace> {
    PageAllocator::boot(&layout(managed), Version::parse(kernel).unwrap(), Sysctls::default(), NoTrace)
        .unwrap()
}

fn alloc(memory: &mut PageAllocator<NoTrace>, order: u8) -> AllocOutcome {
    memory.alloc(CPU, Gfp::HIGHUSER_MOVABLE, Order(order), AllocFlags::WMARK_LOW)
}

fn take(memory: &mut PageAllocator<NoTrace>, order: u8) -> Pfn {
    alloc(memory, order).page.unwrap()
}

/// Sizes of the refills that `pages` allocations in a row cause.
fn refills(memory: &mut PageAllocator<NoTrace>, pages: usize) -> Vec<u32> {
    (0..pages).map(|_| alloc(memory, 0).refilled).filter(|&pages| pages > 0).collect()
}

#[test]
fn refills_are_one_batch_each_up_to_6_1() {
    assert_eq!(refills(&mut guest("linux-5.5", 51_749), 60), [15; 4]);
    assert_eq!(refills(&mut guest("linux-6.1", 51_749), 60), [15; 4]);
    assert_eq!(refills(&mut guest("linux-6.1", 116_165), 124), [31; 4]);
}

#[test]
fn refills_double_to_32_batches_in_6_12() {
    let sizes = refills(&mut guest("linux-6.12", 50_428), 3000);
    assert_eq!(sizes[..6], [15, 30, 60, 120, 240, 480]);
    assert!(sizes[6..].iter().all(|&pages| pages == 480), "{sizes:?}");
    let sizes = refills(&mut guest("linux-6.12", 114_844), 6000);
    assert_eq!(sizes[..6], [31, 62, 124, 248, 496, 992]);
}

/// Free pages of DMA32 when user allocations first move on to DMA, over several starts.
fn lowest_free(kernel: &str) -> (u64, u64) {
    let mut lowest = u64::MAX;
    let mut min = 0;
    for start in 0..16 {
        let mut memory = guest(kernel, 50_428);
        for _ in 0..start {
            let _ = memory.alloc(CPU, Gfp::KERNEL, Order(5), AllocFlags::WMARK_LOW);
        }
        loop {
            let pfn = take(&mut memory, 0);
            if memory.zone_of(pfn) != DMA32 {
                break;
            }
        }
        lowest = lowest.min(memory.zone(DMA32).free_pages().0);
        min = memory.zone(DMA32).watermarks.mark(Mark::Min);
    }
    (lowest, min)
}

#[test]
fn one_refill_of_6_12_jumps_from_above_low_to_below_half_of_min() {
    let (lowest, min) = lowest_free("linux-6.12");
    assert!(lowest < min / 2, "{lowest}, min {min}");
    let (lowest, min) = lowest_free("linux-6.1");
    assert!(lowest > min, "{lowest}, min {min}: small steps stay between min and low");
}

#[test]
fn a_freed_page_is_the_next_to_be_handed_out() {
    for kernel in ["linux-5.5", "linux-6.1", "linux-6.12"] {
        let mut memory = guest(kernel, 51_749);
        let pages = [take(&mut memory, 0), take(&mut memory, 0)];
        pages.iter().for_each(|&pfn| memory.free(CPU, pfn, Order(0)));
        assert_eq!([take(&mut memory, 0), take(&mut memory, 0)], [pages[1], pages[0]]);
        assert_eq!(memory.events.get(VmEvent::PgAllocDma32), 4);
        assert_eq!(memory.events.get(VmEvent::PgFree), 2);
    }
}

/// Frees `count` pages one by one; returns the largest count of the list on the way.
fn free_many(memory: &mut PageAllocator<NoTrace>, count: usize) -> u32 {
    let pages: Vec<_> = (0..count).map(|_| take(memory, 0)).collect();
    let _ = memory.drain_all();
    let mut most = 0;
    for pfn in pages {
        memory.free(CPU, pfn, Order(0));
        most = most.max(memory.pcp(CPU, DMA32).count());
    }
    memory.check().unwrap();
    most
}

#[test]
fn a_cpu_that_only_frees_keeps_at_most_high() {
    assert_eq!(free_many(&mut guest("linux-5.5", 51_749), 2000), 89);
    let mut memory = guest("linux-6.1", 51_749);
    let high = memory.pcp(CPU, DMA32).high();
    assert_eq!(free_many(&mut memory, 2000), high - 1);
}

#[test]
fn while_kswapd_works_lists_keep_four_batches() {
    for kernel in ["linux-6.1", "linux-6.12"] {
        let mut memory = guest(kernel, 51_749);
        memory.set_reclaim_active(DMA32, true);
        assert_eq!(free_many(&mut memory, 2000), 59, "{kernel}");
        memory.set_reclaim_active(DMA32, false);
        assert!(free_many(&mut memory, 2000) > 59, "{kernel}");
    }
}

#[test]
fn high_grows_by_allocating_and_decays_every_second() {
    let mut memory = guest("linux-6.12", 50_428);
    let sizes = memory.pcp(CPU, DMA32).sizes();
    let pages: Vec<_> = (0..20_000).map(|_| take(&mut memory, 0)).collect();
    assert_eq!(memory.pcp(CPU, DMA32).high(), sizes.high_max);
    pages.iter().for_each(|&pfn| memory.free(CPU, pfn, Order(0)));
    let held = memory.pcp(CPU, DMA32).count();
    assert!(held > sizes.high_min, "{held}");
    for _ in 0..40 {
        let _ = memory.tick(CPU);
    }
    assert!(memory.pcp(CPU, DMA32).count() <= sizes.high_min);
    assert_eq!(memory.pcp(CPU, DMA32).high(), sizes.high_min);
    memory.check().unwrap();
}

#[test]
fn orders_up_to_three_and_nine_are_listed_since_5_13() {
    for (kernel, listed) in [("linux-5.5", false), ("linux-6.1", true), ("linux-6.12", true)] {
        for order in [1, 2, 3, 9] {
            let mut memory = guest(kernel, 116_165);
            let outcome = alloc(&mut memory, order);
            assert_eq!(outcome.refilled > 0, listed, "{kernel}, order {order}");
            let blocks = if listed { (31 >> order).max(2) } else { 0 };
            assert_eq!(outcome.refilled, blocks << order);
            memory.free(CPU, outcome.page.unwrap(), Order(order));
            memory.check().unwrap();
        }
    }
}

#[test]
fn the_watermark_is_tested_before_the_list_is_looked_at() {
    let mut memory = guest("linux-5.5", 51_749);
    let low = memory.zone(DMA32).watermarks.mark(Mark::Low);
    let mut last = Vec::new();
    while let Some(pfn) = alloc(&mut memory, 0).page {
        last.push(pfn);
    }
    assert!(memory.zone(DMA32).free_pages().0 <= low);
    let on_lists = memory.pcp(CPU, DMA32).count();
    assert!(on_lists > 0, "pages are at hand, but none is given");
    assert_eq!(memory.drain_cpu(CPU), Pages(u64::from(on_lists + memory.pcp(CPU, ZoneId(0)).count())));
}

#[test]
fn dma_stops_serving_users_at_its_low_mark_and_reserve() {
    let mut memory = guest("linux-6.1", 51_749);
    while alloc(&mut memory, 0).page.is_some() {}
    let dma = memory.zone(ZoneId(0));
    let floor = dma.watermarks.mark(Mark::Low) + dma.watermarks.reserve(ZoneKind::Movable);
    assert_eq!(dma.free_pages(), Pages(floor));
    let outcome = memory.alloc(
        CPU,
        Gfp::ATOMIC,
        Order(0),
        AllocFlags::slow(ReserveUsers::Atomic, Gfp::ATOMIC, Order(0), false),
    );
    assert_eq!(
        outcome.page.map(|pfn| memory.zone_of(pfn)),
        Some(DMA32),
        "half of min is for atomic requests"
    );
}

// ---- 2.6.32 and what was proposed for it ----

/// A page of a type for CPU 0, and how many pages a refill took for it.
fn take_as(memory: &mut PageAllocator<NoTrace>, gfp: Gfp) -> (Pfn, u32) {
    let outcome = memory.alloc(CPU, gfp, Order(0), AllocFlags::WMARK_LOW);
    (outcome.page.unwrap(), outcome.refilled)
}

const COLD: Gfp = Gfp(Gfp::HIGHUSER_MOVABLE.0 | Gfp::COLD.0);
const RECLAIMABLE: Gfp = Gfp(Gfp::KERNEL.0 | Gfp::RECLAIMABLE_BIT.0);

#[test]
fn a_cold_reader_gets_rising_frames_since_e084b_and_falling_ones_before() {
    for (kernel, step) in [
        ("linux-2.6.32", 1),
        ("linux-2.6.32-pcp-cold-order", -1),
        ("linux-2.6.32-pcp-per-migratetype", 1),
        ("linux-2.6.32-pcp-cold-order-pcp-per-migratetype", -1),
        ("linux-4.19", 1),
    ] {
        let mut memory = guest(kernel, 51_200);
        let batch = memory.pcp(CPU, DMA32).sizes().batch;
        for refill in 0..3 {
            let pages: Vec<i64> = (0..batch).map(|_| i64::from(take_as(&mut memory, COLD).0.0)).collect();
            let steps: Vec<i64> = pages.windows(2).map(|pair| pair[1] - pair[0]).collect();
            assert_eq!(steps, vec![step; batch as usize - 1], "{kernel}, refill {refill}");
        }
        memory.check().unwrap();
    }
}

#[test]
fn what_reclaim_frees_is_readaheads_next_page_up_to_4_14() {
    for (kernel, next) in [("linux-2.6.32", 1), ("linux-4.19", 1)] {
        let mut memory = guest(kernel, 51_749);
        let pages = [take_as(&mut memory, COLD).0, take_as(&mut memory, COLD).0];
        pages.iter().for_each(|&pfn| memory.free_cold(CPU, pfn, Order(0)));
        assert_eq!(take_as(&mut memory, COLD).0, pages[next], "{kernel}");
        let hot = take_as(&mut memory, Gfp::HIGHUSER_MOVABLE).0;
        assert_eq!(hot == pages[0], kernel == "linux-4.19", "a hot request starts at the other end");
    }
}

#[test]
fn one_list_and_lists_by_type_hold_as_much() {
    for kernel in ["linux-2.6.32", "linux-2.6.32-pcp-per-migratetype"] {
        let mut memory = guest(kernel, 51_749);
        assert_eq!(refills(&mut memory, 60), [15; 4]);
        assert_eq!(free_many(&mut memory, 2000), 89, "{kernel}");
    }
}

#[test]
fn across_types_a_request_takes_what_its_cpu_has_before_it_refills() {
    for (kernel, order) in
        [("linux-2.6.32", 0), ("linux-2.6.32-pcp-per-migratetype", 0), ("linux-6.1", 0), ("linux-6.12", 2)]
    {
        let mut memory = guest(&format!("{kernel}+pcp-cross-fallback"), 51_749);
        let take = |memory: &mut PageAllocator<NoTrace>, gfp| {
            let outcome = memory.alloc(CPU, gfp, Order(order), AllocFlags::WMARK_LOW);
            (outcome.page.unwrap(), outcome.refilled)
        };
        let (kernels, first) = take(&mut memory, Gfp::KERNEL);
        assert!(first > 1);
        let (users, refilled) = take(&mut memory, Gfp::HIGHUSER_MOVABLE);
        assert_eq!((users.0, refilled), (kernels.0 + (1 << order), 0), "{kernel}: its neighbour");
        let block = |pfn| memory.zone(DMA32).free_area.pageblocks().migrate_type(pfn);
        assert_eq!(block(users), MigrateType::Unmovable, "which stays what it is");
        assert_eq!(memory.events.get(VmEvent::ExtfragEvents), 1, "that of the first refill");
        // The fallback table's order, whatever was freed last.
        memory.free(CPU, users, Order(order));
        let (reclaimable, _) = take(&mut memory, RECLAIMABLE);
        assert_eq!(reclaimable, users);
        memory.check().unwrap();
        while take(&mut memory, Gfp::HIGHUSER_MOVABLE).1 == 0 {}
        assert_ne!(memory.pcp(CPU, DMA32).count(), 0, "{kernel}: with nothing at hand it refills");
    }
    let mut memory = guest("linux-2.6.32", 51_749);
    let _ = take_as(&mut memory, Gfp::KERNEL);
    assert_eq!(take_as(&mut memory, Gfp::HIGHUSER_MOVABLE).1, 15, "without, they are left there");
}

#[test]
fn pages_set_aside_leak_from_lists_by_type_in_2_6_32() {
    for (kernel, left) in [("linux-2.6.32", 0), ("linux-2.6.32-pcp-per-migratetype", 512)] {
        let mut memory = guest(kernel, 51_200);
        let area = &memory.zone(DMA32).free_area;
        assert_eq!(area.free_of(MigrateType::HighAtomic), 1024, "a block of order 10 goes along whole");
        let everything = AllocFlags::NO_WATERMARKS;
        let all = core::iter::from_fn(|| memory.alloc(CPU, Gfp::HIGHUSER_MOVABLE, Order(0), everything).page);
        let mut pages: Vec<Pfn> = all.collect();
        pages.retain(|&pfn| memory.zone_of(pfn) == DMA32);
        // The last one, in the other half of that block, stays in use: the halves do not merge.
        let last = pages.pop().unwrap();
        pages.iter().for_each(|&pfn| memory.free(CPU, pfn, Order(0)));
        let _ = memory.drain_all();
        memory.check().unwrap();
        let area = &memory.zone(DMA32).free_area;
        assert_eq!(area.pageblocks().migrate_type(Pfn(last.0 - 512)), MigrateType::HighAtomic);
        assert_eq!(area.free_of(MigrateType::HighAtomic), left, "{kernel}");
    }
}

/// Guests of 6.12 that had laid out a file of 16 MiB had a few hundred to eight thousand pages there, with 128 MiB to
/// 2 GiB.
/// They stay there, on lists that have grown by it, unless slabs of its tree's nodes go behind them one after the
/// other: that empties lists of 5.13 and later.
#[test]
fn a_file_that_came_and_went_is_left_on_lists_unless_slabs_go_behind_it() {
    let left = |kernel: &str, pages| {
        let version = Version::parse(kernel).unwrap();
        let mut memory = Memory::boot(&layout(126_000), version, Sysctls::default(), NoTrace).unwrap();
        let (free, events) = (memory.core.alloc.free_pages().0, memory.core.alloc.events.clone());
        memory.pass_file(CPU, Pages(pages), Pages(8192), |_| {});
        memory.check().unwrap();
        assert_eq!(memory.core.alloc.events, events, "nobody counts it");
        let listed = memory.core.alloc.pcp(CPU, DMA32).count();
        let slab = memory.core.slabs.cache_pages(Cache::TreeNode);
        assert_eq!(u64::from(listed) + slab, free - memory.core.alloc.free_pages().0);
        listed
    };
    let of = |kernel| [0, 100, 4096, 8192, 8192 + 640, 1 << 20].map(|pages| left(kernel, pages));
    assert_eq!(of("linux-5.5"), [0, 124, 155, 155, 155, 155]);
    assert_eq!(of("linux-6.1"), [0, 152, 33, 0, 195, 0]);
    assert_eq!(of("linux-6.12"), [0, 245, 4949, 4945, 6929, 0]);
}

/// A guest's run of 75 to 88 unmovable pages refilled their list once, and had more than one refill of it in the model.
#[test]
fn what_starts_a_run_leaves_kernel_memory_on_lists() {
    let refilled = |kernel: &str| {
        let mut memory = guest(kernel, 126_000);
        let events = memory.events.clone();
        memory.pass_kernel_memory(CPU);
        memory.check().unwrap();
        assert_eq!(&memory.events, &events);
        let free = memory.free_pages().0;
        let taken = [Gfp::KERNEL, RECLAIMABLE].map(|gfp| take_as(&mut memory, gfp));
        assert_eq!(memory.free_pages().0, free, "{kernel}: both come from lists");
        taken.map(|(_, refilled)| refilled)
    };
    assert_eq!(["linux-5.10", "linux-6.1", "linux-6.12"].map(refilled), [[0, 0]; 3]);
}
