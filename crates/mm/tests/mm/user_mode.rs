//! Page tables that no hardware walks, as in User-Mode Linux: which accesses are faults, which nobody learns of, and
//! how often a host's mappings have to follow ([`PageTables::UserMode`]). Measured: programs as `init` of 5.10, 6.1,
//! 6.12 and 7.2 that count their faults around `MADV_COLD`.

use pagetide_mm::MemcgId;
use pagetide_mm::base::frame::PageFlags;
use pagetide_mm::base::ids::FileAreaId;
use pagetide_mm::base::layout::{FollowTables, OldReads, PageTables};
use pagetide_mm::pages::mapped::{Access, FileArea};
use pagetide_mm::swapping::Accessed;

use crate::swap_worlds::Swapping;
use crate::world::{CPU, World};

const SEEN: Accessed = Accessed { is_huge: false, is_fault: false };
const FAULT: Accessed = Accessed { is_huge: false, is_fault: true };

const fn followed(follow: FollowTables, reads: OldReads) -> PageTables {
    PageTables::UserMode { follow, reads }
}

fn boot(kernel: &str, follow: FollowTables) -> Swapping {
    let mut swapping = Swapping::new(kernel, &[], &[]);
    swapping.world.mem.core.page_tables = followed(follow, OldReads::Unseen);
    swapping
}

/// Six pages of a file that are in memory, mapped by one fault on the first.
fn map_around(world: &mut World, group: MemcgId) -> FileAreaId {
    world.read(group, 0..6);
    world.settle();
    for page in 0..6 {
        let pfn = world.page(page).expect("just read");
        world.mem.core.alloc.frames.clear_flags(pfn, PageFlags::REFERENCED);
    }
    let spec = FileArea {
        mapping: world.file,
        memcg: group,
        first: 0,
        behind: 0,
        pages: 16,
        shared: true,
        writable: true,
        executable: false,
    };
    let area = world.mem.map_area(spec);
    let anon = world.mem.anon_create();
    let around = world.mem.map_around(area, anon, 0).expect("this kernel maps around");
    assert_eq!((around.entries, around.wanted), (6, true));
    area
}

#[test]
fn a_page_whose_accessed_bit_was_taken_is_written_by_a_fault_and_read_by_one_where_there_are_protection_keys()
{
    for (tables, read, write) in [
        (PageTables::Hardware, SEEN, SEEN),
        (followed(FollowTables::ByEntry, OldReads::Unseen), SEEN, FAULT),
        (followed(FollowTables::ByRun, OldReads::Unseen), SEEN, FAULT),
        // The read let it in with all rights, as it was dirty.
        (followed(FollowTables::ByEntry, OldReads::Fault), FAULT, SEEN),
        (followed(FollowTables::ByRun, OldReads::Fault), FAULT, SEEN),
    ] {
        let mut swapping = boot("linux-6.12", FollowTables::ByRun);
        swapping.world.mem.core.page_tables = tables;
        let anon = swapping.map(1);
        assert!(swapping.access(anon, 1, 0, true));
        let mem = &mut swapping.world.mem;
        let mut access = |write| mem.access_anon(anon, 0, write).expect("it is there");
        assert_eq!(access(true), SEEN, "{tables:?}: it is young");
        mem.anon_cool(CPU, anon, 0, 1);
        let mut access = |write| mem.access_anon(anon, 0, write).expect("it is there");
        assert_eq!([access(false), access(true), access(true)], [read, write, SEEN], "{tables:?}");
    }
}

#[test]
fn pages_mapped_around_a_fault_are_a_fault_each_where_mappings_follow_by_entry() {
    for (follow, first) in [(FollowTables::ByEntry, Access::Fault), (FollowTables::ByRun, Access::Done)] {
        let Swapping { mut world, .. } = boot("linux-6.1", follow);
        let group = world.group("A");
        let area = map_around(&mut world, group);
        let mut read = |page| world.mem.access_area(area, page, false);
        assert_eq!([read(0), read(0)], [Access::Done; 2], "the fault was on it");
        assert_eq!([read(3), read(3)], [first, Access::Done], "{follow:?}");
    }
}

/// Neighbours in a mapping leave it together; by entry each is a change of its own.
#[test]
fn a_run_of_neighbours_that_reclaim_unmaps_is_one_change_of_the_hosts_mappings() {
    for (follow, remapped) in [(FollowTables::ByEntry, 6 + 6), (FollowTables::ByRun, 1 + 1)] {
        let Swapping { mut world, .. } = boot("linux-6.12", follow);
        let group = world.group("A");
        let _ = map_around(&mut world, group);
        for _ in 0..2 {
            let mut sc = world.limit(group);
            (sc.priority, sc.nr_to_reclaim) = (0, 1000);
            let _ = world.pass(&mut sc);
            world.settle();
        }
        assert_eq!(world.remapped, remapped, "{follow:?}: bits taken, then pages");
        world.mem.check_at_rest().expect("a sound machine");
    }
}

/// A mapped page that is read between two looks of reclaim: `madvise(MADV_COLD)` on 256 pages of a file, then a read of
/// each, takes 256 faults on a host with protection keys, and none on one without.
///
/// ```text
///   look: bit taken      read: ?               look: is it accessed?
///   without keys         nothing               no: it goes, and with it what the program uses
///   with keys            a fault, bit set      yes: it stays
/// ```
#[test]
fn reclaim_learns_of_reads_of_mapped_pages_where_the_host_has_protection_keys() {
    for (reads, read, stays) in
        [(OldReads::Unseen, Access::Done, false), (OldReads::Fault, Access::Fault, true)]
    {
        let Swapping { mut world, .. } = boot("linux-6.12", FollowTables::ByRun);
        world.mem.core.page_tables = followed(FollowTables::ByRun, reads);
        let group = world.group("A");
        let area = map_around(&mut world, group);
        for pass in 0..2 {
            let mut sc = world.limit(group);
            (sc.priority, sc.nr_to_reclaim) = (0, 1000);
            let _ = world.pass(&mut sc);
            world.settle();
            if pass == 0 {
                let mut access = || world.mem.access_area(area, 2, false);
                assert_eq!([access(), access()], [read, Access::Done], "{reads:?}");
            }
        }
        assert_eq!(world.page(2).is_some(), stays, "{reads:?}");
        assert!(world.page(3).is_none(), "nobody read it");
        world.mem.check_at_rest().expect("a sound machine");
    }
}
