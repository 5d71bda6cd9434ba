//! Scenes of one cache: where slabs go as objects come and go (MECHANISMS-6X 7.1, MECHANISMS-510-72 7.1).
//!
//! A slab is drawn as its objects, four at most, in the order in which slabs were made:
//!
//! ```text
//! ####   full       #...   one object taken      ....   empty, kept
//! ```
//! A slab whose pages came free is not drawn.

use std_alloc::string::String;
use std_alloc::vec::Vec;

use units::{CpuId, NodeId, Order, Pfn};

use crate::slab::cache::SlabCache;
use crate::slab::layout::{CpuPartial, Layout};
use crate::slab::table::{SlabId, SlabPages};
use crate::version::rules::FreeObjects;

/// Objects on a slab.
const PLACES: u32 = 4;
const HERE: CpuId = CpuId(0);
const THERE: CpuId = CpuId(1);

struct Scene {
    cache: SlabCache,
    /// Objects in use, by slab.
    used: Vec<u32>,
    freed: u32,
}

impl Scene {
    fn new(free_objects: FreeObjects, cpu_partial: CpuPartial) -> Self {
        let layout = Layout {
            object_size: 1024,
            order: Order(0),
            least_order: Order(0),
            min_partial: 2,
            cpu_partial,
            sheaf: 3,
        };
        let cache = SlabCache::new(&layout, free_objects, &[NodeId(0); 2], 1);
        Self { cache, used: Vec::new(), freed: 0 }
    }

    /// Takes an object on a CPU: the number of its slab.
    fn alloc(&mut self, cpu: CpuId) -> u32 {
        loop {
            if let Some(SlabId(slab)) = self.cache.alloc(cpu) {
                self.used[slab as usize] += 1;
                return slab;
            }
            let pages = SlabPages { pfn: Pfn(self.used.len() as u32), order: Order(0) };
            self.used.push(0);
            self.cache.grow(cpu, pages, NodeId(0));
        }
    }

    fn fill(&mut self, cpu: CpuId, slabs: u32) {
        for _ in 0..slabs * PLACES {
            self.alloc(cpu);
        }
    }

    fn free(&mut self, cpu: CpuId, slab: u32) {
        self.used[slab as usize] -= 1;
        self.cache.free(cpu, SlabId(slab));
        while self.cache.take_freed().is_some() {
            self.freed += 1;
        }
        self.cache.check().unwrap();
    }

    /// Frees one object of each of these slabs.
    fn thin_out(&mut self, cpu: CpuId, slabs: impl IntoIterator<Item = u32>) {
        slabs.into_iter().for_each(|slab| self.free(cpu, slab));
    }

    fn empty(&mut self, cpu: CpuId, slab: u32) {
        while self.used[slab as usize] > 0 {
            self.free(cpu, slab);
        }
    }

    fn draw(&self) -> String {
        let present: Vec<Pfn> = self.cache.slabs().map(|pages| pages.pfn).collect();
        let slab = |&(number, used): &(usize, u32)| {
            let used = present.contains(&Pfn(number as u32)).then_some(used);
            used.map(|used| "#".repeat(used as usize) + &".".repeat((PLACES - used) as usize))
        };
        let slabs: Vec<String> =
            self.used.iter().copied().enumerate().filter_map(|entry| slab(&entry)).collect();
        slabs.join(" ")
    }
}

fn slabs_of_cpus(cpu_partial: CpuPartial) -> Scene {
    Scene::new(FreeObjects::PartialSlabs, cpu_partial)
}

#[test]
fn each_cpu_has_a_current_slab_of_its_own() {
    let mut scene = slabs_of_cpus(CpuPartial::Slabs(2));
    assert_eq!([scene.alloc(HERE), scene.alloc(THERE), scene.alloc(HERE)], [0, 1, 0]);
    assert_eq!(scene.draw(), "##.. #...");
    // An object that another CPU freed is still of the current slab.
    scene.free(THERE, 0);
    assert_eq!([scene.alloc(HERE), scene.alloc(HERE), scene.alloc(HERE)], [0; 3]);
    assert_eq!(scene.draw(), "#### #...");
}

#[test]
fn a_current_slab_stays_even_when_it_is_empty() {
    for cpu_partial in [CpuPartial::None, CpuPartial::FreeObjects(2), CpuPartial::Slabs(2)] {
        let mut scene = slabs_of_cpus(cpu_partial);
        for _ in 0..5 {
            scene.alloc(HERE);
            scene.free(HERE, 0);
        }
        assert_eq!((scene.draw().as_str(), scene.freed), ("....", 0));
    }
}

#[test]
fn the_slab_of_the_object_freed_last_is_allocated_from_first() {
    let mut scene = slabs_of_cpus(CpuPartial::Slabs(3));
    scene.fill(HERE, 4);
    scene.thin_out(HERE, [0, 1, 2]);
    assert_eq!(scene.draw(), "###. ###. ###. ####");
    assert_eq!([scene.alloc(HERE), scene.alloc(HERE), scene.alloc(HERE)], [2, 1, 0]);
}

#[test]
fn a_cpu_with_too_many_partial_slabs_gives_the_node_all_but_the_newest() {
    // Two slabs; or, as each has one free object when it comes, more than two objects: three slabs.
    for (cpu_partial, kept) in [(CpuPartial::Slabs(2), 2), (CpuPartial::FreeObjects(2), 3)] {
        let mut scene = slabs_of_cpus(cpu_partial);
        scene.fill(HERE, 6);
        // Empty as well: a CPU holds it.
        (0..kept).for_each(|slab| scene.empty(HERE, slab));
        assert_eq!(
            (scene.freed, scene.draw().matches("....").count()),
            (0, kept as usize),
            "{cpu_partial:?}"
        );
        // Two are listed, as many as the node keeps; further empty ones are freed, the oldest first.
        scene.free(HERE, kept);
        assert_eq!(scene.freed, kept - 2, "{cpu_partial:?}");
        // What the CPU has left is the newest alone.
        assert_eq!(scene.alloc(HERE), kept);
    }
}

#[test]
fn without_partial_slabs_of_cpus_the_node_has_them_in_order() {
    let mut scene = slabs_of_cpus(CpuPartial::None);
    scene.fill(HERE, 4);
    scene.thin_out(THERE, [2, 0, 1]);
    assert_eq!([scene.alloc(HERE), scene.alloc(HERE), scene.alloc(HERE)], [2, 0, 1]);
}

#[test]
fn pages_come_free_when_the_last_object_goes_and_the_node_has_enough_slabs() {
    let mut scene = slabs_of_cpus(CpuPartial::None);
    scene.fill(HERE, 5);
    scene.thin_out(HERE, [0, 0, 0]);
    assert_eq!((scene.draw().as_str(), scene.freed), ("#... #### #### #### ####", 0), "one object holds it");
    scene.free(HERE, 0);
    assert_eq!((scene.draw().as_str(), scene.freed), (".... #### #### #### ####", 0), "the only one listed");
    // However full the slabs are that are listed: they are two now.
    scene.free(HERE, 1);
    scene.empty(HERE, 2);
    assert_eq!((scene.draw().as_str(), scene.freed), (".... ###. #### ####", 1));
}

#[test]
fn a_cpu_without_slabs_takes_half_of_what_it_may_keep_from_the_node() {
    // The other CPU, whose current slab is the last, gave the node slabs with one free object each. This one
    // makes the first its current slab and takes more until it has more than half of its limit; it uses the
    // newest of those first.
    for (cpu_partial, slabs, order) in [
        (CpuPartial::Slabs(2), 7, [1, 3, 0, 2]),
        (CpuPartial::Slabs(3), 8, [2, 0, 1, 5]),
        (CpuPartial::FreeObjects(4), 7, [4, 2, 3, 1]),
    ] {
        let mut scene = slabs_of_cpus(cpu_partial);
        scene.fill(THERE, slabs);
        scene.thin_out(THERE, 0..slabs);
        let taken: Vec<u32> = order.iter().map(|_| scene.alloc(HERE)).collect();
        assert_eq!(taken, order, "{cpu_partial:?}");
    }
}

fn sheaves() -> Scene {
    Scene::new(FreeObjects::Sheaves, CpuPartial::None)
}

#[test]
fn a_sheaf_is_filled_from_slabs_and_what_is_freed_goes_into_it() {
    let mut scene = sheaves();
    // Three of the four objects are taken at once: they are free, but not for the other CPU, whose sheaf has the
    // fourth and two of another slab.
    assert_eq!([scene.alloc(HERE), scene.alloc(THERE), scene.alloc(THERE), scene.alloc(THERE)], [0, 1, 1, 0]);
    assert_eq!(scene.cache.places(), (8, 6), "two whole sheaves");
    scene.free(HERE, 1);
    scene.free(HERE, 0);
    assert_eq!([scene.alloc(HERE), scene.alloc(HERE)], [0, 1], "the last one freed is the first one taken");
}

#[test]
fn what_is_no_whole_sheaf_waits_for_another_slab() {
    let mut scene = sheaves();
    scene.fill(HERE, 1);
    // One slab for the first sheaf; of the second one there was an object when another slab was needed.
    assert_eq!((scene.used.len(), scene.cache.places()), (2, (8, 6)));
    // It is not lost where that slab is not to be had.
    let mut short = sheaves();
    for _ in 0..3 {
        short.alloc(HERE);
    }
    for _ in 0..3 {
        assert_eq!(short.cache.alloc(HERE), None);
        short.cache.check().unwrap();
    }
    assert_eq!((short.alloc(HERE), short.cache.objects()), (1, 4));
}

#[test]
fn free_objects_in_sheaves_hold_their_slabs() {
    let mut scene = sheaves();
    scene.fill(HERE, 40);
    for slab in 0..scene.used.len() as u32 {
        scene.empty(HERE, slab);
    }
    // All 160 objects are free. Twelve sheaves of three hold 36 of them: main, spare and ten in the barn. Those
    // that go by the barn's are the later ones, of which the sheaves of the CPU hold the last.
    assert_eq!(scene.cache.objects(), 0);
    let (pages, slabs) = (scene.cache.pages(), scene.used.len());
    assert!((9..=36).contains(&pages), "{pages}");
    assert_eq!(u64::from(scene.freed), scene.used.len() as u64 - pages);
    // The other CPU finds full sheaves in the barn.
    let taken: Vec<u32> = (0..30).map(|_| scene.alloc(THERE)).collect();
    assert_eq!((scene.used.len(), taken.len()), (slabs, 30), "no new slab");
    scene.cache.check().unwrap();
}

/// Each of many tasks that found no object brought a slab, and all of them were listed without a look at how many empty
/// ones there were: found by a world of 24 MiB under 7.2.
#[test]
fn of_the_slabs_that_many_bring_at_once_no_more_empty_ones_are_kept_than_from_others() {
    let mut scene = Scene::new(FreeObjects::Sheaves, CpuPartial::None);
    for number in 0..9 {
        let pages = SlabPages { pfn: Pfn(number), order: Order(0) };
        scene.cache.grow(HERE, pages, NodeId(0));
        scene.cache.check().unwrap();
    }
    assert_eq!(scene.cache.take_freed().map(|freed| freed.pfn), Some(Pfn(8)));
    scene.used.push(0);
    assert_eq!(scene.alloc(HERE), 0, "the first one is at hand");
}
