//! Ages and refault distances (MECHANISMS 7, MECHANISMS-6X 2.5).

use std::fmt::Write;

use crate::world::{CPU, NODE, World};
use insta::assert_snapshot;
use pagetide_mm::MemcgId;
use pagetide_mm::base::frame::PageFlags;
use pagetide_mm::base::gfp::Gfp;
use pagetide_mm::base::vmstat::{MemcgStat, VmEvent};
use pagetide_mm::lru::lists::LruList;
use pagetide_mm::lru::workingset::{AGE_MASK, Shadow};
use pagetide_mm::reclaim::run::ScanControl;
use units::Order;

const ROOT: MemcgId = MemcgId::ROOT;

/// Two groups, P and its child P/A, which has read 40 pages once.
struct Family {
    world: World,
    parent: MemcgId,
    child: MemcgId,
}

impl Family {
    fn new(kernel: &str) -> Self {
        let mut world = World::boot(kernel, 8);
        let (parent, child) = (world.group("P"), world.group("P/A"));
        world.read(child, 0..40);
        world.settle();
        Self { world, parent, child }
    }

    /// Evicts the oldest page by a run of this kind.
    fn evict_one(&mut self, mut sc: ScanControl) {
        sc.priority = 5; // 40 >> 5 = 1
        assert_eq!(self.world.pass(&mut sc).reclaimed, 1);
    }

    /// A page of `memcg` that is read back where `shadow` lay.
    fn refault(&mut self, memcg: MemcgId, shadow: Shadow) {
        assert!(self.world.add(CPU, memcg, 100, Order(0)));
        let pfn = self.world.page(100).expect("it was just added");
        self.world.mem.refault(pfn, shadow, Gfp::HIGHUSER_MOVABLE);
    }

    fn age(&self, memcg: MemcgId) -> u64 {
        self.world.mem.lru.lruvec(memcg, NODE).age()
    }

    /// The groups that are older than 0, by how much if by more than a page.
    fn aged(&self) -> String {
        let groups = [(self.child, "A"), (self.parent, "P"), (ROOT, "root")];
        let aged = groups.into_iter().filter(|&(id, _)| self.age(id) > 0);
        let names = aged.map(|(id, name)| match self.age(id) {
            1 => name.to_owned(),
            pages => format!("{name} {pages}"),
        });
        names.collect::<Vec<_>>().join(" ")
    }
}

/// A shadow of a page that was evicted from `memcg` at this age.
fn shadow(memcg: MemcgId, age: u64) -> Shadow {
    Shadow { memcg, node: NODE, age, workingset: false }
}

#[test]
fn whom_evictions_activations_and_refaults_age() {
    type Step = fn(&mut Family);
    let steps: [(&str, Step); 6] = [
        ("reclaim of A", |family| family.evict_one(ScanControl::limit(family.child, 1))),
        ("reclaim of P", |family| family.evict_one(ScanControl::limit(family.parent, 1))),
        ("global reclaim", |family| family.evict_one(family.world.direct())),
        ("activation", |family| {
            family.world.read(family.child, [7]);
            family.world.settle();
        }),
        // Nobody writes the oldest page yet, so it goes to the active list.
        ("dirty tail", |family| {
            let pfn = family.world.page(0).expect("it was read");
            family.world.mem.core.alloc.frames.set_flags(pfn, PageFlags::DIRTY);
            let mut sc = ScanControl::limit(family.child, 1);
            sc.priority = 5;
            assert_eq!(family.world.pass(&mut sc).reclaimed, 0);
            assert_eq!(family.world.sizes(family.child), (1, 39));
        }),
        // In time: no eviction since. The page was P's when it was evicted, and is A's now.
        ("refault from P", |family| family.refault(family.child, shadow(family.parent, 0))),
    ];
    let mut text = format!("{:20}", "");
    steps.iter().for_each(|(name, _)| write!(text, "| {name:15}").expect("a string"));
    for kernel in ["linux-5.4", "linux-5.5", "linux-6.1", "linux-6.12", "linux-6.1-root-aging"] {
        let _ = write!(text, "\n{kernel:20}");
        for (_, step) in steps {
            let mut family = Family::new(kernel);
            step(&mut family);
            let _ = write!(text, "| {:15}", family.aged());
        }
    }
    let text: Vec<_> = text.lines().map(str::trim_end).collect();
    assert_snapshot!(text.join("\n"), @r"
                        | reclaim of A   | reclaim of P   | global reclaim | activation     | dirty tail     | refault from P
    linux-5.4           | A              | A              | A              | A              |                | P
    linux-5.5           | A P root       | A P root       | A P root       | A P root       |                | A P root
    linux-6.1           | A P root       | P root         | root           | A P root       | A P root       | A P root
    linux-6.12          | A P root       | P root         | root           | A P root       | A P root       | A P root
    linux-6.1-root-aging| A              | A              | A              | A              | A              | P
    ");
}

#[test]
fn what_global_reclaim_takes_does_not_age_a_group_for_its_own_refaults_since_5_8() {
    // A page goes by A's own limit, then global reclaim takes 7 more of A; 3 pages are active. It is
    // back after 1 eviction for A's sake, and after 8 altogether.
    for (kernel, activated) in [("linux-5.5", 0), ("linux-5.5+eviction-ages-target", 1), ("linux-6.1", 1)] {
        let mut family = Family::new(kernel);
        family.world.heat(family.child, 200..203);
        family.evict_one(ScanControl::limit(family.child, 1));
        for _ in 0..7 {
            family.evict_one(family.world.direct());
        }
        family.world.settle();
        family.world.read(family.child, [0]);
        assert_eq!(family.world.event(VmEvent::WorkingsetRefaultFile), 1, "{kernel}");
        assert_eq!(family.world.event(VmEvent::WorkingsetActivateFile), activated, "{kernel}");
    }
}

#[test]
fn a_large_folio_ages_by_all_its_pages() {
    let mut family = Family::new("linux-6.1");
    let folio = family.world.group("F");
    assert!(family.world.add(CPU, folio, 512, Order(4)));
    let mut sc = family.world.limit(folio);
    (sc.priority, sc.nr_to_reclaim) = (4, 1);
    assert_eq!(family.world.pass(&mut sc).reclaimed, 16);
    assert_eq!((family.age(folio), family.age(ROOT), family.age(family.parent)), (16, 16, 0));
}

#[test]
fn a_distance_is_right_when_the_age_has_wrapped() {
    // 8 pages are active although nothing has aged yet.
    let scene = |age| {
        let mut family = Family::new("linux-6.1");
        for index in 200..208 {
            assert!(family.world.add(CPU, family.child, index, Order(0)));
            let pfn = family.world.page(index).expect("it was just added");
            family.world.mem.core.alloc.frames.set_flags(pfn, PageFlags::ACTIVE);
        }
        family.world.settle();
        assert_eq!(family.world.sizes(family.child), (8, 40));
        family.refault(family.child, shadow(family.child, age));
        family.world.event(VmEvent::WorkingsetActivateFile)
    };
    assert_eq!(scene(AGE_MASK - 7), 1, "8 evictions ago");
    assert_eq!(scene(AGE_MASK - 8), 0, "9 evictions ago");
    assert_eq!(scene(0), 1, "just now");
    assert_eq!(scene(1), 0, "nearly a round ago");
}

#[test]
fn only_a_page_that_returns_in_time_and_was_working_set_is_so_again() {
    for (workingset, age, restored) in [(true, 0, 1), (false, 0, 0), (true, AGE_MASK, 0)] {
        let mut family = Family::new("linux-6.1");
        family.refault(family.child, Shadow { workingset, ..shadow(family.child, age) });
        let pfn = family.world.page(100).expect("it is back");
        let flags = family.world.mem.core.alloc.frames.flags(pfn);
        assert_eq!(flags.has(PageFlags::WORKINGSET), restored == 1);
        assert_eq!(family.world.event(VmEvent::WorkingsetRestoreFile), restored);
        family.world.settle();
        let active = LruList::ActiveFile;
        let is_active = family.world.mem.lru_list(family.child, NODE, active).any(|other| other == pfn);
        assert_eq!(is_active, age == 0);
    }
}

#[test]
fn a_refault_is_counted_where_the_page_was_evicted_or_since_5_5_for_its_owner() {
    for (kernel, counted) in [("linux-5.4", [0, 1]), ("linux-5.5", [1, 0]), ("linux-6.12", [1, 0])] {
        let mut family = Family::new(kernel);
        family.refault(family.child, Shadow { workingset: true, ..shadow(family.parent, 0) });
        let local = |stat| {
            [family.child, family.parent].map(|id| family.world.mem.core.cgroups.local_stat(id, NODE, stat))
        };
        for stat in [
            MemcgStat::WorkingsetRefaultFile,
            MemcgStat::WorkingsetActivateFile,
            MemcgStat::WorkingsetRestoreFile,
        ] {
            assert_eq!(local(stat), counted, "{kernel}: {stat:?}");
        }
    }
}

#[test]
fn a_run_remembers_activations_of_its_target_or_up_to_5_4_of_every_group_below_it() {
    // Deactivations of a pass over A and one over B, a stranger, after a refault in each and then the
    // snapshot at the end of a run on P.
    for (kernel, remembered) in [("linux-5.4", [true, false, false]), ("linux-5.5", [false, false, true])] {
        let Family { mut world, parent, child } = Family::new(kernel);
        let stranger = world.group("B");
        world.read(stranger, 1000..1040);
        for (memcg, index) in [(child, 100), (stranger, 101)] {
            assert!(world.add(CPU, memcg, index, Order(0)));
            let pfn = world.page(index).expect("it was just added");
            world.mem.refault(pfn, shadow(memcg, 0), Gfp::HIGHUSER_MOVABLE);
        }
        world.settle();
        world.mem.snapshot_refaults(parent, NODE);
        for (target, remembered) in [child, stranger, parent].into_iter().zip(remembered) {
            let mut sc = ScanControl::limit(target, 1);
            (sc.priority, sc.nr_to_reclaim) = (0, 1000);
            let opened = world.pass(&mut sc).deactivated > 0;
            assert_eq!(opened, !remembered, "{kernel}: {}", world.mem.core.cgroups[target].path);
        }
    }
}
