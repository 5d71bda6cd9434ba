//! Stalling on fragmentation, from the slow path to kswapd and back (MECHANISMS 2.9).
//!
//! The scene: a node whose DMA32 zone is full and whose Normal zone has page cache and single free
//! pages between unmovable ones, far above its marks. A movable request must mix types, and stalls first.

use std::cell::RefCell;
use std::rc::Rc;

use kernel::{Filesystem, Kernel, KernelConfig};
use mm::MemcgId;
use mm::alloc::flags::AllocFlags;
use mm::base::event::{Detail, TraceEvent};
use mm::base::gfp::Gfp;
use mm::base::layout::{HugeSupport, MemoryLayout, NodeLayout, ZoneId, ZoneKind, ZoneLayout};
use mm::base::sysctl::{Sysctl, Sysctls};
use mm::base::vmstat::VmEvent;
use sim::trace::{EventRow, What};
use sim::{DeviceModel, Hardware, SimKernel, Simulation};
use units::{Bytes, CpuId, Nanos, Order, Pages, Seed};

const CPU: CpuId = CpuId(0);
/// Page cache, so that kswapd has something to look at in its first pass: 16384 >> 12 = 4 pages.
const CACHED: Bytes = Bytes(64 << 20);

/// What a run of the scene ended in.
struct Ending {
    stalls: Vec<u64>,
    traced: Vec<u64>,
    counted: u64,
    boost: Pages,
    took: Nanos,
}

/// How long kswapd takes to get to the end of a pass: its CPU time for one cgroup.
#[derive(Clone, Copy)]
struct Pass(Nanos);

impl Pass {
    /// As the cost table has it: some microseconds.
    const QUICK: Self = Self(Nanos::from_micros(0));
    /// The end of the pass is in the jiffy after that in which the scene begins.
    const WITHIN_A_JIFFY: Self = Self(Nanos::from_micros(3500));
    /// kswapd makes no progress for longer than anybody waits for it.
    const STUCK: Self = Self(Nanos::from_millis(700));
}

/// Lengths of the stalls that were traced.
type Traced = Rc<RefCell<Vec<u64>>>;

fn boot(kernel: &str, sysctls: Sysctls, pass: Pass) -> (Simulation, SimKernel, Traced) {
    let zone = |kind, pages| ZoneLayout::new(kind, Pages(pages));
    let zones = vec![zone(ZoneKind::Dma32, 4096), zone(ZoneKind::Normal, 32_768)];
    let mut hardware = Hardware::with_cpus(2).with_device(DeviceModel::NVME);
    if pass.0 > Nanos::ZERO {
        hardware.costs.set("walk_memcg", pass.0).unwrap();
    }
    let config = KernelConfig {
        version: mm::Version::parse(kernel).unwrap(),
        sysctls,
        layout: MemoryLayout { nodes: vec![NodeLayout { zones }], cpus: 2, huge_pages: HugeSupport::Off },
        filesystem: Filesystem::Xfs,
        xfs_log_size: units::Bytes(64 << 20),
        gathers: 16,
        readahead_pages: 32,
        policy: None,
        seed: Seed(1),
    };
    let simulation = Simulation::new(hardware).unwrap();
    let traced = Traced::default();
    let to = Rc::clone(&traced);
    let lengths = move |row: &EventRow| match row.what {
        What::Kernel(TraceEvent::FragmentationStall { duration, .. }) => Some(duration),
        _ => None,
    };
    let sink =
        Box::new(move |rows: &[EventRow], _: &_| to.borrow_mut().extend(rows.iter().filter_map(&lengths)));
    let machine = simulation.machine();
    let trace = machine.trace(Detail::Reclaim, sink);
    let kernel = Kernel::boot(machine, config, trace).unwrap();
    (simulation, kernel, traced)
}

/// Fills all memory with unmovable pages, then frees every other page of the Normal zone.
fn shatter(kernel: &SimKernel) {
    kernel.mem(|mem| {
        let mut pages = Vec::new();
        while let Some(pfn) = mem.core.alloc.alloc(CPU, Gfp::KERNEL, Order(0), AllocFlags::NO_WATERMARKS).page
        {
            pages.push(pfn);
        }
        let is_normal = |zone: &mm::alloc::zone::Zone| zone.kind == ZoneKind::Normal;
        for pfn in pages {
            if is_normal(mem.core.alloc.zone(mem.core.alloc.zone_of(pfn))) && pfn.0 % 2 == 0 {
                mem.core.alloc.free(CPU, pfn, Order(0));
            }
        }
        let _ = mem.core.alloc.drain_all();
        mem.core.alloc.events = mm::base::vmstat::VmEvents::default();
        for zone in (0..u8::try_from(mem.core.alloc.zones().len()).unwrap()).map(ZoneId) {
            mem.core.alloc.reduce_boost(zone, Pages(u64::MAX));
        }
    });
}

fn run(kernel: &str, sysctls: Sysctls) -> Ending {
    run_with(kernel, sysctls, Pass::QUICK)
}

fn run_with(kernel: &str, sysctls: Sysctls, pass: Pass) -> Ending {
    let (mut simulation, kernel, traced) = boot(kernel, sysctls, pass);
    let took = Rc::new(RefCell::new(Nanos::ZERO));
    let machine = simulation.machine();
    let (here, slot, clock) = (kernel.clone(), Rc::clone(&took), machine.clone());
    let main = kernel::Machine::spawn(&machine, "faulter", None, async move {
        use kernel::{Machine, WaitReason};
        let process = here.process_start("faulter", MemcgId::ROOT).await.unwrap();
        here.lay_out_file("file", CACHED).unwrap();
        let file = here.open(&process, "file", false).await.unwrap();
        here.read(&process, &file, 0, CACHED.0).await.unwrap();
        let kswapd_sleeps = Nanos::from_millis(501).saturating_sub(clock.now());
        clock.sleep(kswapd_sleeps, WaitReason::UserSleep).await;
        shatter(&here);
        let begin = clock.now();
        let page = here.alloc_pages(None, Gfp::HIGHUSER_MOVABLE, Order(0)).await;
        clock.cond_resched().await;
        *slot.borrow_mut() = Nanos(clock.now().0 - begin.0);
        assert!(page.is_some(), "half of the zone is free");
    });
    simulation.run_until_task_done(main, Nanos::from_secs(10)).unwrap();
    let took = *took.borrow();
    simulation.machine().end_events();
    kernel.mem(|mem| Ending {
        stalls: kernel.fragment_stalls(),
        traced: traced.take(),
        counted: mem.core.alloc.events.get(VmEvent::FragmentStall),
        boost: mem.core.alloc.zones().last().unwrap().watermarks.boost(),
        took,
    })
}

const SERIES: &str = "linux-4.20-rc1+nofragment+watermark-boost-v2+fragment-stall";

#[test]
fn kswapd_ends_a_stall_long_before_the_timeout() {
    let ending = run(SERIES, Sysctls::default());
    assert!(ending.took > Nanos::from_micros(5), "it slept: {}", ending.took);
    assert!(ending.took < Nanos::from_millis(8), "but not for 100 ms: {}", ending.took);
    assert_eq!(ending.stalls, ending.traced);
    assert_eq!(ending.counted, ending.stalls.len() as u64);
    assert!(ending.stalls.iter().all(|usec| usec % 4000 == 0 && *usec > 0), "{:?}", ending.stalls);
}

#[test]
fn with_order_zero_or_without_the_feature_nobody_stalls() {
    let mut off = Sysctls::default();
    off.set(Sysctl::FragmentStallOrder, 0);
    for (kernel, sysctls) in [(SERIES, off), ("linux-4.20-rc1+nofragment", Sysctls::default())] {
        let ending = run(kernel, sysctls);
        assert!(ending.took < Nanos::from_micros(20), "{kernel}: {}", ending.took);
        assert_eq!((ending.stalls.len(), ending.counted), (0, 0), "{kernel}");
    }
}

#[test]
fn without_stalls_a_refill_boosts_once_for_each_page_that_it_steals() {
    let plain = run("linux-4.20-rc1+nofragment+watermark-boost-v2", Sysctls::default());
    assert_eq!(plain.boost, Pages(7 * 512), "a batch of 7, all of them single pages");
    assert!(plain.took < run(SERIES, Sysctls::default()).took);
}

/// The series with the stall of a posting: its feature, and the form of the boost that it came with.
fn posting(boost: &str, stall: &str) -> String {
    format!("linux-4.20-rc1+nofragment+{boost}+{stall}")
}

const POSTINGS: [(&str, &str); 4] = [
    ("watermark-boost-v2", "fragment-stall-v1"),
    ("watermark-boost-v2", "fragment-stall"),
    ("watermark-boost", "fragment-stall-v3"),
    ("watermark-boost", "fragment-stall-v5"),
];

#[test]
fn when_kswapd_gets_nowhere_a_stall_ends_with_its_timeout() {
    // 250 jiffies a second: HZ / 10 = 25 of them, HZ / 50 = 5.
    for ((boost, stall), timeout_usec) in POSTINGS[1..].iter().zip([100_000, 20_000, 20_000]) {
        let ending = run_with(&posting(boost, stall), Sysctls::default(), Pass::STUCK);
        assert_eq!(ending.stalls, [timeout_usec], "{stall}");
        assert_eq!((ending.traced, ending.counted), (vec![timeout_usec], 1), "{stall}");
        // The scene begins 1 ms after a tick, and timeouts end on one, not before they are over.
        let waited = Nanos::from_micros(timeout_usec + 4000 - 1000);
        let late = ending.took.saturating_sub(waited);
        assert!(ending.took >= waited && late < Nanos::from_micros(50), "{stall}: {}", ending.took);
    }
}

#[test]
fn a_kswapd_that_ends_its_pass_wakes_who_stalls_a_jiffy_later() {
    for (boost, stall) in &POSTINGS[1..] {
        let ending = run_with(&posting(boost, stall), Sysctls::default(), Pass::WITHIN_A_JIFFY);
        assert_eq!((ending.stalls, ending.traced, ending.counted), (vec![4000], vec![4000], 1), "{stall}");
        assert!((3500..3600).contains(&(ending.took.0 / 1000)), "{stall}: {}", ending.took);
    }
}

#[test]
fn the_first_posting_stalls_for_each_zone_and_leaves_no_trace_of_it() {
    let (boost, stall) = POSTINGS[0];
    let ending = run_with(&posting(boost, stall), Sysctls::default(), Pass::STUCK);
    assert_eq!((ending.stalls.len(), ending.traced.len(), ending.counted), (0, 0, 0));
    // DMA32 and Normal: 26 jiffies each, the first one begun 1 ms after a tick.
    let two = Nanos::from_millis(207);
    assert!(ending.took >= two && ending.took < Nanos::from_millis(208), "{}", ending.took);
}
