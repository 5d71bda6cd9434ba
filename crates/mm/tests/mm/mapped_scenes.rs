//! Pages that page tables name, drawn as lists: what reclaim makes of accesses through them (MAPPED 4 to 6;
//! MECHANISMS 6.2, 6.3), and counts of entries under random events.

use crate::world::{CPU, NODE, World};
use insta::assert_snapshot;
use pagetide_mm::MemcgId;
use pagetide_mm::base::frame::PageFlags;
use pagetide_mm::base::ids::FileAreaId;
use pagetide_mm::base::vmstat::{MemcgStat, VmEvent};
use pagetide_mm::pages::mapped::{Access, AccessAdvice, FileArea};
use pagetide_mm::version::rules::{AdvisedAccess, FaultAround, MappedReferences, Rule};
use units::{Order, Seed};

/// An area of the first 16 pages of the world's file.
fn map(world: &mut World, memcg: MemcgId, executable: bool) -> FileAreaId {
    let mapping = world.file;
    let (first, pages) = (0, 16);
    let spec = FileArea { mapping, memcg, first, pages, behind: 0, shared: true, writable: true, executable };
    world.mem.map_area(spec)
}

/// Maps all that is in memory, which is young then.
fn fault_in(world: &mut World, area: FileAreaId) {
    for page in 0..16 {
        let _ = world.mem.map_file_page(area, page, false);
    }
}

/// Takes note of accesses so far, and forgets them.
fn access(world: &mut World, area: FileAreaId, pages: impl IntoIterator<Item = u32>) {
    for page in pages {
        assert_eq!(world.mem.access_area(area, page, false), Access::Done, "page {page}");
    }
}

/// A pass that looks at everything inactive.
fn reclaim(world: &mut World, group: MemcgId) -> String {
    let mut sc = world.limit(group);
    (sc.priority, sc.nr_to_reclaim) = (0, 1000);
    let _ = world.pass(&mut sc);
    world.settle();
    world.mem.check_at_rest().expect("a sound machine");
    world.draw(group)
}

/// Six pages that are mapped, of which none was accessed since somebody looked.
fn old_pages(kernel: &str, executable: bool) -> (World, MemcgId, FileAreaId) {
    let mut world = World::boot(kernel, 8);
    let group = world.group("A");
    world.read(group, 0..6);
    world.settle();
    for page in 0..6 {
        let pfn = world.page(page).expect("just read");
        world.mem.core.alloc.frames.clear_flags(pfn, PageFlags::REFERENCED);
    }
    let area = map(&mut world, group, executable);
    fault_in(&mut world, area);
    assert_eq!(world.mem.core.cgroups.local_stat(group, NODE, MemcgStat::FileMapped), 6);
    (world, group, area)
}

#[test]
fn a_page_that_is_accessed_between_looks_is_kept_and_then_active_and_the_others_go() {
    let (mut world, group, area) = old_pages("linux-6.1", false);
    assert_snapshot!(world.draw(group), @"A: active [] inactive [5 4 3 2 1 0]");
    assert_snapshot!(reclaim(&mut world, group), @"A: active [] inactive [5' 4' 3' 2' 1' 0']");
    access(&mut world, area, [1, 4]);
    assert_snapshot!(reclaim(&mut world, group), @"A: active [4' 1'] inactive []");
    assert_eq!(world.mem.access_area(area, 0, false), Access::Missing, "it was unmapped");
    assert_eq!(world.mem.core.cgroups.local_stat(group, NODE, MemcgStat::FileMapped), 2);
}

#[test]
fn code_becomes_active_at_once_and_stays_so_while_it_runs() {
    let (mut world, group, area) = old_pages("linux-6.1", true);
    assert_snapshot!(reclaim(&mut world, group), @"A: active [5' 4' 3' 2' 1' 0'] inactive []");
    access(&mut world, area, [2, 3]);
    assert_snapshot!(reclaim(&mut world, group), @"A: active [3' 2'] inactive [5' 4' 1' 0']");
    assert_eq!(world.event(VmEvent::PgDeactivate), 4, "those that did not run");
}

#[test]
fn pages_that_two_processes_accessed_become_active() {
    let (mut world, group, _) = old_pages("linux-6.1", false);
    let other = map(&mut world, group, false);
    for page in [0, 5] {
        assert!(world.mem.map_file_page(other, page, false));
    }
    assert_eq!(world.mem.cache.maps.mapped_pages(), 6, "each counts once");
    assert_snapshot!(reclaim(&mut world, group), @"A: active [5' 0'] inactive [4' 3' 2' 1']");
}

#[test]
fn accesses_that_are_said_to_be_random_count_up_to_6_2() {
    for (kernel, kept) in [("linux-6.1", 6), ("linux-6.1+random-advice-uncounted", 0), ("linux-6.12", 0)] {
        let (mut world, group, area) = old_pages(kernel, false);
        world.mem.cache.maps.advise(area, AccessAdvice::Random);
        let drawn = reclaim(&mut world, group);
        assert_eq!(world.sizes(group).1, kept, "{kernel}: {drawn}");
    }
}

/// Each answer by itself, on 6.1.
#[test]
fn answers_decide_what_accesses_are_worth_and_what_a_fault_maps() {
    let scene = |rule| {
        let mut world = World::boot_with("linux-6.1", &[rule], 8);
        let group = world.group("A");
        world.read(group, 0..6);
        world.settle();
        for page in 0..6 {
            let pfn = world.page(page).expect("just read");
            world.mem.core.alloc.frames.clear_flags(pfn, PageFlags::REFERENCED);
        }
        let area = map(&mut world, group, false);
        (world, group, area)
    };
    let answers = [(MappedReferences::FirstActivates, (6, 0)), (MappedReferences::SecondActivates, (0, 6))];
    for (answer, sizes) in answers {
        let (mut world, group, area) = scene(Rule::MappedReferences(answer));
        fault_in(&mut world, area);
        let _ = reclaim(&mut world, group);
        assert_eq!(world.sizes(group), sizes, "{answer:?}");
    }
    for (answer, kept) in [(AdvisedAccess::RandomCounts, 6), (AdvisedAccess::NeitherCounts, 0)] {
        let (mut world, group, area) = scene(Rule::AdvisedAccess(answer));
        world.mem.cache.maps.advise(area, AccessAdvice::Random);
        fault_in(&mut world, area);
        let _ = reclaim(&mut world, group);
        assert_eq!(world.sizes(group).1, kept, "{answer:?}");
    }
    for (answer, entries) in [(FaultAround::None, None), (FaultAround::Sixteen, Some(6))] {
        let (mut world, _, area) = scene(Rule::FaultAround(answer));
        let copies = world.mem.anon_create();
        let around = world.mem.map_around(area, copies, 3);
        assert_eq!(around.map(|around| around.entries), entries, "{answer:?}");
    }
}

/// Where a program that reads 36 pages in their order, all in memory, takes faults: on Linux 6.18, and in guests of
/// 6.12 and 7.2, with mappings that begin so many pages behind a multiple of 64 KiB.
#[test]
fn a_fault_maps_sixteen_pages_from_a_multiple_of_as_many_or_from_where_the_mapping_begins() {
    for (behind, expected) in [(0, &[0, 16, 32][..]), (5, &[0, 16, 27]), (15, &[0, 16, 17, 33])] {
        let mut world = World::boot("linux-6.12", 8);
        let group = world.group("A");
        world.read(group, 0..36);
        let spec = FileArea {
            mapping: world.file,
            memcg: group,
            first: 0,
            pages: 36,
            behind,
            shared: true,
            writable: false,
            executable: false,
        };
        let (area, copies) = (world.mem.map_area(spec), world.mem.anon_create());
        let mut faults = Vec::new();
        for page in 0..36 {
            if world.mem.access_area(area, page, false) != Access::Done {
                assert!(world.mem.map_around(area, copies, page).expect("it maps around").wanted);
                faults.push(page);
            }
        }
        assert_eq!(faults, expected, "{behind} pages behind");
    }
}

/// An access, and a look, until 2.6.33 and since.
#[test]
fn an_access_was_enough_for_the_active_list() {
    for (kernel, active) in
        [("linux-2.6.32", 6), ("linux-2.6.32+mapped-twice-activates", 0), ("linux-4.19", 0)]
    {
        let mut world = World::boot(kernel, 8);
        world.read(MemcgId::ROOT, 0..6);
        world.settle();
        let area = map(&mut world, MemcgId::ROOT, false);
        for page in 0..6 {
            let pfn = world.page(page).expect("just read");
            world.mem.core.alloc.frames.clear_flags(pfn, PageFlags::REFERENCED);
        }
        fault_in(&mut world, area);
        // 2.6.32 saves up scans of less than 32 pages.
        while world.event(VmEvent::PgScanDirect) == 0 {
            let mut sc = world.direct();
            (sc.priority, sc.nr_to_reclaim) = (0, 1000);
            let _ = world.pass(&mut sc);
        }
        world.settle();
        assert_eq!(world.sizes(MemcgId::ROOT).0, active, "{kernel}");
    }
}

#[test]
fn a_dirty_page_is_unmapped_before_it_is_marked_and_a_write_to_the_disk_takes_the_right_to_write() {
    let (mut world, group, area) = old_pages("linux-6.1", false);
    let pfn = world.page(2).expect("it is there");
    assert!(!world.mem.map_file_page(area, 2, true), "clean");
    assert!(world.mem.set_dirty(pfn) && world.mem.map_file_page(area, 2, true));
    assert_eq!(world.mem.access_area(area, 2, true), Access::Done);
    assert_eq!(world.mem.access_area(area, 3, true), Access::ReadOnly);
    let file = world.file;
    assert_eq!(world.mem.start_writeback(file, 0, 1), Some((2, 1)));
    assert_eq!(world.mem.access_area(area, 2, true), Access::ReadOnly);
    world.mem.end_writeback(file, 2, 1, &mut Vec::new());
    assert!(world.mem.set_dirty(pfn) && world.mem.map_file_page(area, 2, true));
    assert_snapshot!(reclaim(&mut world, group), @"A: active [] inactive [5' 4' 3' 2' 1' 0']");
    assert_snapshot!(reclaim(&mut world, group), @"A: active [2] inactive []");
    assert_eq!(world.mem.access_area(area, 2, false), Access::Missing);
    assert!(world.mem.core.alloc.frames.flags(pfn).has(PageFlags::RECLAIM.set(PageFlags::DIRTY)));
}

#[test]
fn unmapping_is_an_access_to_what_was_accessed() {
    let (mut world, group, area) = old_pages("linux-6.1", false);
    let _ = reclaim(&mut world, group);
    access(&mut world, area, [1, 4]);
    assert_eq!(world.mem.unmap_area(CPU, area), 6);
    world.settle();
    assert_snapshot!(world.draw(group), @"A: active [4 1] inactive [5' 3' 2' 0']");
}

#[test]
fn generations_keep_what_page_tables_saw_and_look_around_it() {
    for kernel in ["linux-6.1+lru-gen", "linux-6.12+lru-gen", "linux-7.2+lru-gen"] {
        let mut world = World::boot(kernel, 8);
        let group = world.group("A");
        world.read(group, 0..6);
        world.read(group, 100..400);
        world.settle();
        let area = map(&mut world, group, false);
        fault_in(&mut world, area);
        for round in 0..3 {
            let mut sc = world.limit(group);
            (sc.priority, sc.nr_to_reclaim) = (0, 1000);
            let _ = world.pass(&mut sc);
            let left = (0..6).filter(|&page| world.page(page).is_some()).count();
            assert_eq!(left, 6, "{kernel}, round {round}");
            access(&mut world, area, 0..6);
            world.mem.check().expect("a sound machine");
        }
    }
}

/// Areas come and go, pages are faulted in, accessed, written, reclaimed and truncated, in any order.
#[test]
fn entries_and_counts_agree_whatever_happens() {
    for seed in 0..40 {
        let kernel =
            ["linux-6.1", "linux-6.12", "linux-2.6.32", "linux-6.1+lru-gen", "linux-7.2+lru-gen"][seed % 5];
        let mut world = World::boot(kernel, 8);
        let group = if kernel == "linux-2.6.32" { MemcgId::ROOT } else { world.group("A") };
        let mut stream = Seed(seed as u64).stream("mapped");
        let mut areas: Vec<FileAreaId> = Vec::new();
        for _ in 0..400 {
            let page = stream.below(16) as u32;
            let area = areas.get(stream.below(4) as usize).copied();
            match (stream.below(12), area) {
                (0, _) if areas.len() < 4 => areas.push(map(&mut world, group, stream.chance(1, 2))),
                (1, Some(area)) if stream.chance(1, 4) => {
                    let _ = world.mem.unmap_area(CPU, area);
                    areas.retain(|&other| other != area);
                }
                (2, Some(area)) => {
                    let _ = world.mem.zap_area(CPU, area);
                }
                (3, _) => {
                    let order = Order(if stream.chance(1, 4) { 2 } else { 0 });
                    let index = page & !(order.pages() - 1);
                    if (index..index + order.pages()).all(|index| world.page(index).is_none()) {
                        assert!(world.add(CPU, group, index, order));
                    }
                }
                (4..=6, Some(area)) => {
                    let _ = world.mem.map_file_page(area, page, false);
                }
                (7, Some(area)) => {
                    if let Some(pfn) = world.page(page) {
                        let _ = world.mem.set_dirty(pfn);
                    }
                    let _ = world.mem.map_file_page(area, page, true);
                }
                (8, Some(area)) => {
                    let _ = world.mem.access_area(area, page, stream.chance(1, 2));
                }
                (9, _) => {
                    let mut sc = world.direct();
                    (sc.priority, sc.nr_to_reclaim) = (stream.below(3) as u8, 1000);
                    let _ = world.pass(&mut sc);
                }
                (10, _) => {
                    let file = world.file;
                    if let Some((first, count)) = world.mem.start_writeback(file, page, 4) {
                        world.mem.end_writeback(file, first, count, &mut Vec::new());
                    }
                }
                (11, Some(area)) => {
                    let advice = [AccessAdvice::Normal, AccessAdvice::Random, AccessAdvice::Sequential];
                    world.mem.cache.maps.advise(area, advice[stream.below(3) as usize]);
                }
                _ => world.settle(),
            }
            world.mem.check().unwrap_or_else(|violation| panic!("seed {seed}: {violation:?}"));
        }
        let file = world.file;
        let _ = world.mem.mapping_invalidate(CPU, file, true);
        world.mem.check().expect("a sound machine");
    }
}
