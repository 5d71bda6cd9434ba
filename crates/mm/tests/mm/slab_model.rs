//! A slab cache against what its user knows: which objects it holds, and nothing of lists or sheaves.

use std::collections::BTreeMap;

use proptest::prelude::*;

use pagetide_mm::slab::cache::SlabCache;
use pagetide_mm::slab::layout::{CpuPartial, Layout};
use pagetide_mm::slab::table::{SlabId, SlabPages};
use pagetide_mm::version::rules::FreeObjects;
use units::{CpuId, NodeId, Order, Pfn};

/// Two CPUs on each of two nodes.
const NODES: [NodeId; 4] = [NodeId(0), NodeId(0), NodeId(1), NodeId(1)];
/// Slabs of four pages, or one where there is no such block.
const OBJECT_SIZE: u32 = 1000;

fn layout(cpu_partial: CpuPartial) -> Layout {
    let order = Order(2);
    Layout { object_size: OBJECT_SIZE, order, least_order: Order(0), min_partial: 5, cpu_partial, sheaf: 7 }
}

#[derive(Debug, Clone, Copy)]
enum Step {
    /// So many objects on a CPU; slabs are small ones if need be.
    Alloc { cpu: u16, objects: u8, small: bool },
    /// So many objects on a CPU, every `stride`-th from some place on.
    Free { cpu: u16, objects: u8, from: usize, stride: usize },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (0..4_u16, 1..60_u8, prop::bool::weighted(0.2)).prop_map(|(cpu, objects, small)| Step::Alloc {
            cpu,
            objects,
            small
        }),
        (0..4_u16, 1..90_u8, any::<usize>(), 1..20_usize)
            .prop_map(|(cpu, objects, from, stride)| Step::Free { cpu, objects, from, stride }),
    ]
}

/// What the user knows: his objects in order of allocation, and the blocks that he gave.
struct User {
    cache: SlabCache,
    objects: Vec<SlabId>,
    blocks: BTreeMap<Pfn, Order>,
    next: u32,
    returned: u32,
}

impl User {
    fn alloc(&mut self, cpu: CpuId, small: bool) {
        loop {
            if let Some(slab) = self.cache.alloc(cpu) {
                return self.objects.push(slab);
            }
            let (pfn, order) = (Pfn(self.next), Order(if small { 0 } else { 2 }));
            self.next += 4;
            self.blocks.insert(pfn, order);
            self.cache.grow(cpu, SlabPages { pfn, order }, NODES[cpu.index()]);
        }
    }

    fn free(&mut self, cpu: CpuId, at: usize) {
        let slab = self.objects.swap_remove(at);
        self.cache.free(cpu, slab);
        while let Some(SlabPages { pfn, order }) = self.cache.take_freed() {
            assert_eq!(self.blocks.remove(&pfn), Some(order), "a block comes back once, as it was given");
            self.returned += 1;
        }
    }

    fn apply(&mut self, step: Step) {
        match step {
            Step::Alloc { cpu, objects, small } => (0..objects).for_each(|_| self.alloc(CpuId(cpu), small)),
            Step::Free { cpu, objects, from, stride } => {
                for number in 0..usize::from(objects).min(self.objects.len()) {
                    self.free(CpuId(cpu), from.wrapping_add(number * stride) % self.objects.len());
                }
            }
        }
    }

    fn compare(&self) {
        self.cache.check().unwrap();
        assert_eq!(self.cache.objects(), self.objects.len() as u64);
        let blocks: BTreeMap<Pfn, Order> = self.cache.slabs().map(|slab| (slab.pfn, slab.order)).collect();
        assert_eq!(blocks, self.blocks, "all that did not come back is there");
        let pages: u64 = self.blocks.values().map(|order| u64::from(order.pages())).sum();
        assert_eq!(self.cache.pages(), pages);
        let mut used: BTreeMap<SlabId, u32> = BTreeMap::new();
        for &slab in &self.objects {
            *used.entry(slab).or_default() += 1;
        }
        assert!(used.values().all(|&objects| objects <= 16), "no slab has more objects than room");
        assert!(used.len() <= self.blocks.len(), "objects lie in slabs that are there");
    }
}

fn kinds() -> impl Strategy<Value = (FreeObjects, CpuPartial)> {
    prop_oneof![
        Just((FreeObjects::PartialSlabs, CpuPartial::None)),
        Just((FreeObjects::PartialSlabs, CpuPartial::FreeObjects(6))),
        Just((FreeObjects::PartialSlabs, CpuPartial::Slabs(3))),
        Just((FreeObjects::Sheaves, CpuPartial::None)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]
    #[test]
    fn whatever_is_taken_and_freed_no_object_is_lost_and_no_page_comes_back_early(
        (free_objects, cpu_partial) in kinds(),
        steps in prop::collection::vec(step(), 1..60),
    ) {
        let cache = SlabCache::new(&layout(cpu_partial), free_objects, &NODES, 2);
        let mut user = User { cache, objects: Vec::new(), blocks: BTreeMap::new(), next: 0, returned: 0 };
        for step in steps {
            user.apply(step);
            user.compare();
        }
        while !user.objects.is_empty() {
            user.free(CpuId(0), user.objects.len() / 2);
        }
        user.compare();
        // By node min_partial, by CPU the current slab and its partial ones; or as many as sheaves reach.
        let by_cpu = match cpu_partial {
            CpuPartial::None => 1,
            CpuPartial::FreeObjects(objects) => 2 + objects as usize,
            CpuPartial::Slabs(slabs) => 1 + slabs as usize,
        };
        let most = match free_objects {
            FreeObjects::PartialSlabs => (2 * 5) + (4 * by_cpu),
            FreeObjects::Sheaves => (2 * 5) + (((3 * 4) + (2 * 10)) * 7),
        };
        prop_assert!(user.blocks.len() <= most, "{} slabs are kept", user.blocks.len());
    }
}
