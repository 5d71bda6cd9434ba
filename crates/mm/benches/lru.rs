//! What LRU lists and the page cache cost: adding pages, marking them accessed, reclaiming them.
//!
//! `cargo bench -p pagetide-mm --bench lru`. Compare before and after a change, on one machine.
//! Each round returns a digest of the state, so that no work can be optimised away.

use divan::Bencher;
use divan::counter::ItemsCount;
use pagetide_mm::base::event::NoTrace;
use pagetide_mm::base::gfp::Gfp;
use pagetide_mm::base::ids::MappingId;
use pagetide_mm::base::layout::{MemoryLayout, ZoneKind};
use pagetide_mm::base::sysctl::Sysctls;
use pagetide_mm::lru::lists::LruList;
use pagetide_mm::pages::cache::Prepared;
use pagetide_mm::pages::tree::Slot;
use pagetide_mm::reclaim::run::ScanControl;
use pagetide_mm::version::presets::Version;
use pagetide_mm::{MemcgId, Memory};
use units::{CpuId, NodeId, Order, Pages};

const CPU: CpuId = CpuId(0);
const NODE: NodeId = NodeId(0);
const ROOT: MemcgId = MemcgId::ROOT;
/// Pages that a round works on: 64 MiB.
const PAGES: u32 = 16_384;
const KERNELS: [&str; 2] = ["linux-5.4", "linux-6.12"];

fn main() {
    divan::main();
}

struct Scene {
    mem: Memory<NoTrace>,
    file: MappingId,
}

impl Scene {
    fn boot(kernel: &str) -> Self {
        let layout = MemoryLayout::flat(Pages(256 << 8), 2);
        let kernel = Version::parse(kernel).expect("a preset");
        let mut mem = Memory::boot(&layout, kernel, Sysctls::default(), NoTrace).expect("a plain machine");
        let file = mem.mapping_create();
        Self { mem, file }
    }

    fn filled(kernel: &str) -> Self {
        let mut scene = Self::boot(kernel);
        scene.fill();
        scene.mem.lru_drain_all();
        scene
    }

    /// Reads the whole file into an empty cache.
    fn fill(&mut self) {
        for index in 0..PAGES {
            let flags = self.mem.core.alloc.fast_flags(CPU, Gfp::HIGHUSER_MOVABLE);
            let outcome = self.mem.core.alloc.alloc(CPU, Gfp::HIGHUSER_MOVABLE, Order(0), flags);
            let pfn = outcome.page.expect("memory");
            while self.mem.prepare_insert(CPU, self.file, index, 1, ROOT) == Prepared::NeedsSlab {
                let flags = self.mem.core.alloc.fast_flags(CPU, Gfp::KERNEL);
                let slab = self.mem.core.alloc.alloc(CPU, Gfp::KERNEL, Order(0), flags).page;
                let slab = slab.expect("memory");
                self.mem.grow_slab(CPU, pagetide_mm::version::geometry::Cache::TreeNode, ROOT, slab);
            }
            if let Some(shadow) = self.mem.insert_page(self.file, index, pfn, ROOT) {
                self.mem.refault(pfn, shadow, Gfp::HIGHUSER_MOVABLE);
            }
            self.mem.lru_add(CPU, pfn);
        }
    }

    fn access_all(&mut self) {
        for index in 0..PAGES {
            if let Slot::Page(pfn) = self.mem.cache.find(self.file, index) {
                self.mem.mark_accessed(CPU, pfn);
            }
        }
    }

    /// Reclaims until the lists are empty; returns the pages freed.
    fn reclaim_all(&mut self) -> u64 {
        let mut sc = ScanControl::direct(ZoneKind::Movable);
        (sc.priority, sc.nr_to_reclaim, sc.force_deactivate) = (0, u64::MAX, true);
        while self.mem.lru_pages(LruList::InactiveFile) > 0 {
            let mut walk = self.mem.begin_pass(NODE, &mut sc);
            let mut visited = None;
            while let Some(memcg) = self.mem.next_memcg(&mut walk, visited, &mut sc) {
                visited = Some(memcg);
                let Some(mut scan) = self.mem.begin_lruvec(memcg, NODE, &mut sc) else { continue };
                while self.mem.shrink_chunk(CPU, &mut scan, &mut sc).is_some() {}
            }
        }
        sc.nr_reclaimed
    }
}

/// Allocation, tree insertion and LRU batch of a new page.
#[divan::bench(args = KERNELS)]
fn insert(bencher: Bencher<'_, '_>, kernel: &str) {
    bencher.counter(ItemsCount::new(PAGES)).with_inputs(|| Scene::boot(kernel)).bench_local_values(
        |mut scene| {
            scene.fill();
            scene
        },
    );
}

/// The second access of every page, which activates it.
#[divan::bench(args = KERNELS)]
fn activate(bencher: Bencher<'_, '_>, kernel: &str) {
    let filled = || {
        let mut scene = Scene::filled(kernel);
        scene.access_all();
        scene
    };
    bencher.counter(ItemsCount::new(PAGES)).with_inputs(filled).bench_local_values(|mut scene| {
        scene.access_all();
        scene
    });
}

/// Isolation, decision, shadow and freeing of every page, chunk by chunk.
#[divan::bench(args = KERNELS)]
fn reclaim(bencher: Bencher<'_, '_>, kernel: &str) {
    bencher.counter(ItemsCount::new(PAGES)).with_inputs(|| Scene::filled(kernel)).bench_local_values(
        |mut scene| {
            assert_eq!(scene.reclaim_all(), u64::from(PAGES));
            scene
        },
    );
}

/// Pages over shadows: insertion with refault detection, then eviction.
#[divan::bench(args = KERNELS)]
fn refault_and_evict(bencher: Bencher<'_, '_>, kernel: &str) {
    let evicted = || {
        let mut scene = Scene::filled(kernel);
        scene.reclaim_all();
        scene
    };
    bencher.counter(ItemsCount::new(PAGES)).with_inputs(evicted).bench_local_values(|mut scene| {
        scene.fill();
        scene.mem.lru_drain_all();
        assert_eq!(scene.reclaim_all(), u64::from(PAGES));
        scene
    });
}
