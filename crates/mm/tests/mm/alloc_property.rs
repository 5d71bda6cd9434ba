//! The page allocator against a naive one: a map of which page belongs to whom.
//!
//! Small worlds of random zones, kernels and events; [`PageAllocator::check`] after every event.
//! The naive side says whether a block overlaps another one, and whether a request may fail.

use mm::alloc::buddy::LARGEST_ORDER;
use mm::alloc::flags::AllocFlags;
use mm::alloc::page_alloc::PageAllocator;
use mm::alloc::pageblock::HUGE_ORDER as PAGEBLOCK_ORDER;
use mm::base::event::NoTrace;
use mm::base::frame::FrameState;
use mm::base::gfp::{Gfp, MigrateType};
use mm::base::layout::{HugeSupport, MemoryLayout, NodeLayout, ZoneId, ZoneKind, ZoneLayout};
use mm::base::sysctl::{Sysctl, Sysctls};
use mm::version::presets::Version;
use mm::version::rules::{HighatomicReserve, Rule};
use pagetide_mm as mm;
use proptest::prelude::*;
use units::{CpuId, Order, Pages, Pfn};

#[derive(Debug, Clone)]
enum Event {
    Alloc {
        cpu: u16,
        gfp: usize,
        order: u8,
        flags: u8,
    },
    Free {
        cpu: u16,
        which: usize,
        cold: bool,
    },
    /// The page is put on an LRU list: it counts as movable from now on.
    ToLru {
        which: usize,
    },
    Drain {
        cpu: u16,
    },
    Tick {
        cpu: u16,
    },
    ReclaimActive {
        zone: usize,
        active: bool,
    },
    ScaleFactor(u64),
    Unreserve {
        force: bool,
    },
}

const GFPS: [Gfp; 7] = [
    Gfp::KERNEL,
    Gfp::HIGHUSER_MOVABLE,
    Gfp(Gfp::KERNEL.0 | Gfp::RECLAIMABLE_BIT.0),
    Gfp::ATOMIC,
    Gfp(Gfp::HIGHUSER_MOVABLE.0 | Gfp::WRITE.0),
    Gfp(Gfp::KERNEL.0 | Gfp::DMA.0),
    Gfp(Gfp::HIGHUSER_MOVABLE.0 | Gfp::COLD.0),
];

/// Whether the allocator asks for this decision.
fn is_allocators(rule: Rule) -> bool {
    matches!(
        rule,
        Rule::Spread(_)
            | Rule::SpreadRetry(_)
            | Rule::WatermarkBoost(_)
            | Rule::BoostedZones(_)
            | Rule::FallbackPolicy(_)
            | Rule::PcpGeneration(_)
            | Rule::AtomicMark(_)
            | Rule::HighatomicReserve(_)
            | Rule::PcpLists(_)
            | Rule::ColdOrder(_)
            | Rule::PcpFallback(_)
            | Rule::ColdPages(_)
            | Rule::PcpReserve(_)
            | Rule::LikelyMerges(_)
            | Rule::WatermarkTest(_)
            | Rule::MarkGap(_)
    )
}

fn event() -> impl Strategy<Value = Event> {
    let order = prop_oneof![8 => Just(0_u8), 4 => 1_u8..4, 1 => 4_u8..=10];
    prop_oneof![
        12 => (0..4_u16, 0..GFPS.len(), order, 0..4_u8)
            .prop_map(|(cpu, gfp, order, flags)| Event::Alloc { cpu, gfp, order, flags }),
        9 => (0..4_u16, any::<usize>(), any::<bool>())
            .prop_map(|(cpu, which, cold)| Event::Free { cpu, which, cold }),
        4 => any::<usize>().prop_map(|which| Event::ToLru { which }),
        1 => (0..4_u16).prop_map(|cpu| Event::Drain { cpu }),
        1 => (0..4_u16).prop_map(|cpu| Event::Tick { cpu }),
        1 => (any::<usize>(), any::<bool>()).prop_map(|(zone, active)| Event::ReclaimActive { zone, active }),
        1 => (1..3000_u64).prop_map(Event::ScaleFactor),
        1 => any::<bool>().prop_map(|force| Event::Unreserve { force }),
    ]
}

fn layout() -> impl Strategy<Value = MemoryLayout> {
    let zone = (700_u64..2600, 0..600_u64, 0..600_u64);
    let node = proptest::collection::vec(proptest::option::weighted(0.7, zone), 3);
    (proptest::collection::vec(node, 1..=2), 1..=4_u16).prop_map(|(nodes, cpus)| {
        let make_zone = |(kind, sizes): (usize, (u64, u64, u64))| ZoneLayout {
            managed_at_boot: Pages(sizes.0 - sizes.1),
            kept_by_kernel: Pages(sizes.2),
            ..ZoneLayout::new(ZoneKind::ALL[kind], Pages(sizes.0))
        };
        let make_node = |sizes: Vec<Option<(u64, u64, u64)>>| {
            let mut present: Vec<_> =
                sizes.into_iter().enumerate().filter_map(|(i, s)| Some((i, s?))).collect();
            if present.is_empty() {
                present.push((1, (1500, 0, 0)));
            }
            NodeLayout { zones: present.into_iter().map(make_zone).collect() }
        };
        let mut nodes: Vec<NodeLayout> = nodes.into_iter().map(make_node).collect();
        nodes[0].zones[0].managed.0 += 1024; // Never below the smallest machine.
        MemoryLayout { nodes, cpus, huge_pages: HugeSupport::Off }
    })
}

/// A version as it is, or with some other answers to what its allocator asks.
fn kernel() -> impl Strategy<Value = Version> {
    let answers: Vec<Rule> = Rule::ALL.iter().copied().filter(|&rule| is_allocators(rule)).collect();
    let bases: Vec<&str> = Version::presets().map(|(name, _)| name).collect();
    let others = proptest::collection::vec(proptest::sample::select(answers), 0..12);
    (proptest::sample::select(bases), proptest::option::of(others)).prop_map(|(base, others)| {
        let mut kernel = Version::parse(base).unwrap();
        kernel.rules = kernel.rules.edited(&others.unwrap_or_default());
        kernel
    })
}

struct World {
    real: PageAllocator<NoTrace>,
    /// Pages in use, by frame: boot's own and ours.
    used: Vec<bool>,
    live: Vec<(Pfn, Order)>,
    /// By zone: whether it ever had a highatomic reserve.
    had_reserve: Vec<bool>,
    at_boot: u64,
}

impl World {
    fn boot(layout: &MemoryLayout, kernel: Version) -> Self {
        let real = PageAllocator::boot(layout, kernel, Sysctls::default(), NoTrace).unwrap();
        real.check().unwrap();
        let mut used = vec![true; real.frames.len()];
        for pfn in (0..used.len()).map(|i| Pfn(u32::try_from(i).unwrap())) {
            if real.frames.state(pfn) == FrameState::Free {
                mark(&mut used, pfn, real.frames.order(pfn), false);
            }
        }
        let at_boot = real.free_pages().0;
        let had_reserve = vec![false; real.zones().len()];
        Self { real, used, live: Vec::new(), had_reserve, at_boot }
    }

    fn cpu(&self, cpu: u16) -> CpuId {
        CpuId(cpu % self.real.cpu_count())
    }

    fn step(&mut self, event: &Event) {
        match *event {
            Event::Alloc { cpu, gfp, order, flags } => {
                self.alloc(self.cpu(cpu), GFPS[gfp], Order(order), flags)
            }
            Event::Free { cpu, which, cold } if !self.live.is_empty() => {
                let (pfn, order) = self.live.swap_remove(which % self.live.len());
                mark(&mut self.used, pfn, order, false);
                match cold {
                    true => self.real.free_cold(self.cpu(cpu), pfn, order),
                    false => self.real.free(self.cpu(cpu), pfn, order),
                }
            }
            Event::ToLru { which } if !self.live.is_empty() => {
                let (pfn, _) = self.live[which % self.live.len()];
                self.real.frames.set_state(pfn, FrameState::Lru);
            }
            Event::Free { .. } | Event::ToLru { .. } => {}
            Event::Drain { cpu } => drop(self.real.drain_cpu(self.cpu(cpu))),
            Event::Tick { cpu } => drop(self.real.tick(self.cpu(cpu))),
            Event::ReclaimActive { zone, active } => {
                let zone = u8::try_from(zone % self.real.zones().len()).unwrap();
                self.real.set_reclaim_active(ZoneId(zone), active);
            }
            Event::ScaleFactor(factor) => self.real.set_sysctl(Sysctl::WatermarkScaleFactor, factor),
            Event::Unreserve { force } => {
                let zones = self.real.zonelist(CpuId(0), Gfp::KERNEL).to_vec();
                let _ = self.real.unreserve_highatomic(&zones, Gfp::KERNEL.migrate_type(), force);
            }
        }
        for (had, zone) in self.had_reserve.iter_mut().zip(self.real.zones()) {
            *had |= zone.free_area.reserved_highatomic() > 0;
        }
    }

    fn alloc(&mut self, cpu: CpuId, gfp: Gfp, order: Order, flags: u8) {
        let users = self.real.rules().reserve_users;
        let flags = match flags {
            0 => self.real.fast_flags(cpu, gfp),
            1 => AllocFlags::slow(users, gfp, order, false),
            2 => AllocFlags::slow(users, gfp, order, true),
            _ => AllocFlags::NO_WATERMARKS,
        };
        let outcome = self.real.alloc(cpu, gfp, order, flags);
        match outcome.page {
            Some(pfn) => {
                assert_eq!(pfn.0 % order.pages(), 0, "aligned");
                let zone = self.real.zone_of(pfn);
                assert!(self.real.zonelist(cpu, gfp).contains(&zone), "from a zone of the zonelist");
                mark(&mut self.used, pfn, order, true);
                self.live.push((pfn, order));
            }
            None if flags == AllocFlags::NO_WATERMARKS => self.may_fail(cpu, gfp, order),
            None => {}
        }
    }

    /// Without watermarks and with nothing on per-CPU lists, only real lack of a block is a reason.
    fn may_fail(&mut self, cpu: CpuId, gfp: Gfp, order: Order) {
        let _ = self.real.drain_all();
        let outcome = self.real.alloc(cpu, gfp, order, AllocFlags::NO_WATERMARKS);
        if let Some(pfn) = outcome.page {
            mark(&mut self.used, pfn, order, true);
            self.live.push((pfn, order));
            return;
        }
        for &id in self.real.zonelist(cpu, gfp) {
            let zone = self.real.zone(id);
            let for_all = self.real.rules().highatomic == HighatomicReserve::Blocks;
            if !for_all && zone.free_area.free_of(MigrateType::HighAtomic) > 0 {
                continue;
            }
            let starts = (zone.start.0..zone.start.0 + zone.spanned).step_by(order.pages() as usize);
            let free = starts.map(Pfn).find(|&pfn| {
                let block = &self.used[pfn.index()..][..order.pages() as usize];
                !block.contains(&true) && !self.may_be_halves(id, pfn, order)
            });
            assert_eq!(free, None, "zone {} has a block of {order:?}", id.0);
        }
    }

    /// Pageblocks of the reserve do not merge with others, nor does giving them back merge them: the
    /// largest block may be free in two halves.
    fn may_be_halves(&self, zone: ZoneId, pfn: Pfn, order: Order) -> bool {
        order == LARGEST_ORDER
            && self.had_reserve[zone.0 as usize]
            && self.real.frames.order(pfn) == PAGEBLOCK_ORDER
    }

    fn finish(mut self) {
        for (pfn, order) in std::mem::take(&mut self.live) {
            self.real.free(CpuId(0), pfn, order);
        }
        let _ = self.real.drain_all();
        self.real.check().unwrap();
        assert_eq!(self.real.free_pages(), Pages(self.at_boot), "everything came back");
    }
}

fn mark(used: &mut [bool], pfn: Pfn, order: Order, to: bool) {
    for page in &mut used[pfn.index()..pfn.index() + order.pages() as usize] {
        assert_ne!(*page, to, "{pfn:?} of {order:?} overlaps");
        *page = to;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_sequence_of_events_breaks_the_books(
        layout in layout(),
        kernel in kernel(),
        events in proptest::collection::vec(event(), 1..200),
    ) {
        let mut world = World::boot(&layout, kernel);
        for event in &events {
            world.step(event);
            if let Err(violation) = world.real.check() {
                panic!("{violation} after {event:?}");
            }
        }
        world.finish();
    }
}

/// Found by the property: giving back a reserve leaves two halves of order 9, and no block of order 10.
#[test]
fn the_halves_of_a_reserve_that_was_given_back_are_no_largest_block() {
    let zone = ZoneLayout {
        managed_at_boot: Pages(1226),
        kept_by_kernel: Pages(1),
        ..ZoneLayout::new(ZoneKind::Dma, Pages(2250))
    };
    let layout =
        MemoryLayout { nodes: vec![NodeLayout { zones: vec![zone] }], cpus: 1, huge_pages: HugeSupport::Off };
    let mut world = World::boot(&layout, Version::parse("linux-6.1").unwrap());
    let alloc = |gfp, order, flags| Event::Alloc { cpu: 0, gfp, order, flags };
    world.step(&alloc(3, 8, 1));
    world.step(&Event::Free { cpu: 0, which: 0, cold: false });
    world.step(&Event::Unreserve { force: true });
    world.step(&alloc(1, 0, 0));
    let area = &world.real.zones()[0].free_area;
    assert_eq!([9, 10].map(|order| area.blocks_free(Order(order))), [3, 0]);
    world.step(&alloc(0, 10, 3));
    world.finish();
}
