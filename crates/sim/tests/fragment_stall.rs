//! Stalling on fragmentation, from the slow path to kswapd and back (MECHANISMS 2.9).
//!
//! The scene: a node whose DMA32 zone is full and whose Normal zone has single free pages between
//! unmovable ones, far above its marks. A movable request must mix types, and stalls first.

use std::cell::RefCell;
use std::rc::Rc;

use kernel::{Filesystem, Kernel, KernelConfig};
use mm::event::{KeepTrace, TraceEvent};
use mm::gfp::Gfp;
use mm::page_alloc::AllocFlags;
use mm::sysctl::{Sysctl, Sysctls};
use mm::vmstat::VmEvent;
use mm::zone::{MemoryLayout, NodeLayout, ZoneKind, ZoneLayout};
use pagetide_sim::{DeviceModel, Hardware, Sim, Simulation};
use units::{CpuId, Nanos, Order, Pages, Seed};

const CPU: CpuId = CpuId(0);

/// What a run of the scene ended in.
struct Ending {
    stalls: Vec<u64>,
    traced: Vec<u64>,
    counted: u64,
    boost: Pages,
    took: Nanos,
}

fn boot(kernel: &str, sysctls: Sysctls) -> (Simulation, Kernel<Sim, KeepTrace>) {
    let zone = |kind, pages| ZoneLayout {
        kind,
        managed: Pages(pages),
        managed_at_boot: Pages(pages),
        kept_by_kernel: Pages::ZERO,
    };
    let zones = vec![zone(ZoneKind::Dma32, 4096), zone(ZoneKind::Normal, 32_768)];
    let hardware = Hardware::with_cpus(2).with_device(DeviceModel::NVME);
    let config = KernelConfig {
        version: mm::Kernel::parse(kernel).unwrap(),
        sysctls,
        layout: MemoryLayout { nodes: vec![NodeLayout { zones }], cpus: 2, huge_pages: false },
        filesystem: Filesystem::Xfs,
        readahead_pages: 32,
        seed: Seed(1),
    };
    let simulation = Simulation::new(hardware).unwrap();
    let kernel = Kernel::boot(simulation.machine(), config, KeepTrace::default()).unwrap();
    (simulation, kernel)
}

/// Fills all memory with unmovable pages, then frees every other page of the Normal zone.
fn shatter(kernel: &Kernel<Sim, KeepTrace>) {
    kernel.mem(|mem| {
        let mut pages = Vec::new();
        while let Some(pfn) = mem.alloc.alloc(CPU, Gfp::KERNEL, Order(0), AllocFlags::NO_WATERMARKS).page {
            pages.push(pfn);
        }
        let is_normal = |zone: &mm::zone::Zone| zone.kind == ZoneKind::Normal;
        for pfn in pages {
            if is_normal(mem.alloc.zone(mem.alloc.zone_of(pfn))) && pfn.0 % 2 == 0 {
                mem.alloc.free(CPU, pfn, Order(0));
            }
        }
        let _ = mem.alloc.drain_all();
        mem.alloc.events = mm::vmstat::VmEvents::default();
        mem.alloc.trace.0.clear();
        for zone in &mut mem.alloc.zones {
            zone.watermarks.reduce_boost(Pages(u64::MAX));
        }
    });
}

fn run(kernel: &str, sysctls: Sysctls) -> Ending {
    let (mut simulation, kernel) = boot(kernel, sysctls);
    let took = Rc::new(RefCell::new(Nanos::ZERO));
    let machine = simulation.machine();
    let (here, slot, clock) = (kernel.clone(), Rc::clone(&took), machine.clone());
    let main = kernel::Machine::spawn(&machine, "faulter", None, async move {
        use kernel::{Machine, WaitReason};
        clock.sleep(Nanos::from_millis(501), WaitReason::UserSleep).await; // kswapd sleeps by then
        shatter(&here);
        let begin = clock.now();
        let page = here.alloc_pages(None, Gfp::HIGHUSER_MOVABLE, Order(0)).await;
        clock.cond_resched().await;
        *slot.borrow_mut() = Nanos(clock.now().0 - begin.0);
        assert!(page.is_some(), "half of the zone is free");
    });
    simulation.run_until_task_done(main, Nanos::from_secs(10)).unwrap();
    let took = *took.borrow();
    let stalls = kernel.fragment_stalls();
    kernel.mem(|mem| {
        let length = |event: &TraceEvent| match event {
            TraceEvent::FragmentationStall { duration, .. } => Some(*duration),
            _ => None,
        };
        Ending {
            stalls,
            traced: mem.alloc.trace.0.iter().filter_map(length).collect(),
            counted: mem.alloc.events.get(VmEvent::FragmentStall),
            boost: mem.alloc.zones.last().unwrap().watermarks.boost(),
            took,
        }
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
