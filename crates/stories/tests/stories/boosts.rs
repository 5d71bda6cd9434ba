//! Watermark boosts on the guests that the model is held against: each mixed pageblock raises the boost by
//! one of its size up to the cap, and kswapd takes off what its run began with (MECHANISMS 2.8, 5.3;
//! MECHANISMS-6X 6.1, 6.5).

use mm::MemcgId;
use mm::alloc::flags::AllocFlags;
use mm::base::gfp::Gfp;
use mm::base::layout::{ZoneId, ZoneKind};
use mm::base::sysctl::Sysctls;
use mm::decide::balance::{Balance, BalanceNext};
use mm::memory::Memory;
use sim::machines::{self, GUEST};
use sim::{SimMemory, SimTrace};
use units::{Bytes, CpuId, NodeId, Order};

const CPU: CpuId = CpuId(0);
const NODE: NodeId = NodeId(0);

/// A guest whose memory is in use by movable blocks of 32 pages, of which every 24th was freed: no pageblock
/// is whole. The per-CPU lists hold no such blocks, and no refill mixes two at a time.
struct Guest {
    mem: SimMemory,
    dma32: ZoneId,
}

impl Guest {
    fn fragmented(kernel: &str, mib: u64) -> Self {
        let kernel = mm::Version::parse(kernel).expect("a preset");
        let (_, layout) = machines::build(GUEST, Bytes(mib << 20), &kernel).expect("a machine");
        let mem = Memory::boot(&layout, kernel, Sysctls::default(), SimTrace::default()).expect("it boots");
        let dma32 = mem.zones_up_to(NODE, ZoneKind::Dma32)[1];
        let mut guest = Self { mem, dma32 };
        let mut blocks = Vec::new();
        while let Some(block) = guest.alloc(Gfp::HIGHUSER_MOVABLE, Order(5)) {
            blocks.push(block);
        }
        while guest.alloc(Gfp::HIGHUSER_MOVABLE, Order(0)).is_some() {}
        // What filling up has mixed is not the story.
        for zone in guest.mem.zones_up_to(NODE, ZoneKind::Dma32) {
            guest.mem.core.alloc.reduce_boost(zone, units::Pages(u64::MAX));
        }
        for &block in blocks.iter().step_by(24) {
            guest.mem.core.alloc.free(CPU, block, Order(5));
        }
        guest
    }

    fn alloc(&mut self, gfp: Gfp, order: Order) -> Option<units::Pfn> {
        self.mem.core.alloc.alloc(CPU, gfp, order, AllocFlags::NO_WATERMARKS).page
    }

    fn boost(&self) -> units::Pages {
        self.mem.core.alloc.zone(self.dma32).watermarks.boost()
    }

    /// Slab grows until it has mixed another pageblock; what the boost is then.
    fn mix_a_block(&mut self) -> u64 {
        let before = self.boost();
        while self.boost() == before {
            self.alloc(Gfp::KERNEL, Order(4)).expect("there are free pages");
        }
        self.boost().0
    }
}

/// The caps are one and a half times the base high marks that the guests had (MECHANISMS-6X 6.1).
#[test]
fn each_mixed_block_boosts_by_its_size_up_to_the_cap_that_guests_had() {
    for (kernel, mib, boosts) in [
        ("linux-6.1", 256, &[512, 955][..]),
        ("linux-6.12", 256, &[512, 945]),
        ("linux-6.1", 512, &[512, 1024, 1486]),
        ("linux-6.12", 512, &[512, 1024, 1479]),
    ] {
        let mut guest = Guest::fragmented(kernel, mib);
        let seen: Vec<u64> = boosts.iter().map(|_| guest.mix_a_block()).collect();
        assert_eq!(seen, boosts, "{kernel} with {mib} MiB");
    }
}

/// The guests showed boosts of 443 and 433 pages: the cap less the 512 that a run began with.
#[test]
fn a_run_leaves_what_was_boosted_while_it_ran() {
    for (kernel, left) in [("linux-6.1", 443), ("linux-6.12", 433)] {
        let mut guest = Guest::fragmented(kernel, 256);
        guest.mix_a_block();
        let mut run = Balance::begin(&mut guest.mem, NODE, Order(0), ZoneKind::Dma32);
        guest.mix_a_block();
        while !matches!(run.step(&mut guest.mem, false), BalanceNext::Done { .. }) {}
        assert_eq!(guest.boost().0, left, "{kernel}");
    }
}

/// Pages freed by runs that had nothing to do but to work a boost off, at so many a pass.
fn run_length(kernel: &str, events: usize, a_pass: u64) -> u64 {
    let mut guest = Guest::fragmented(kernel, 256);
    (0..events).for_each(|_| {
        guest.mix_a_block();
    });
    let mut run = Balance::begin(&mut guest.mem, NODE, Order(0), ZoneKind::Dma32);
    loop {
        match run.step(&mut guest.mem, false) {
            BalanceNext::Shrink => {
                assert!(
                    run.sc.priority >= 10 && !run.sc.may_writepage,
                    "{kernel}: a boost is all that it is for"
                );
                assert_eq!((run.sc.target, run.sc.order), (MemcgId::ROOT, Order(0)));
                run.sc.nr_reclaimed += a_pass;
            }
            BalanceNext::Done { boosted } => {
                assert!(boosted);
                return run.sc.nr_reclaimed;
            }
            BalanceNext::Rest { .. } | BalanceNext::Relieve(_) | BalanceNext::Pause(..) => {}
        }
    }
}

/// `pgscan_kswapd` of the guests came in runs of 512 and 955 or 945 pages (MECHANISMS-6X 6.5 iii): what is free
/// has no part in it.
#[test]
fn a_run_frees_the_boost_and_the_rest_of_its_last_pass() {
    for (kernel, cap) in [("linux-5.3", 955), ("linux-6.1", 955), ("linux-6.12", 945)] {
        assert_eq!(run_length(kernel, 1, 1), 512, "{kernel}");
        assert_eq!(run_length(kernel, 1, 29), 18 * 29, "{kernel}");
        if kernel != "linux-5.3" {
            assert_eq!(run_length(kernel, 2, 1), cap, "{kernel}");
        }
    }
}
