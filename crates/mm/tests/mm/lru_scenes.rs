//! What accesses do to pages, drawn: lists newest first, `'` = Referenced (MECHANISMS 6.1, 6.2).

use crate::world::{CPU, NODE, REMOTE, World};
use insta::assert_snapshot;
use pagetide_mm::MemcgId;
use pagetide_mm::lru::lists::LruList;
use units::{CpuId, Order};

const ROOT: MemcgId = MemcgId::ROOT;

#[test]
fn new_pages_reach_the_list_when_their_batch_is_full() {
    let mut world = World::boot("linux-6.1", 8);
    world.read(ROOT, 0..14);
    assert_snapshot!(world.draw(ROOT), @"root: active [] inactive [] cpu0 adds [0' 1' 2' 3' 4' 5' 6' 7' 8' 9' 10' 11' 12' 13']");
    world.read(ROOT, 14..17);
    assert_snapshot!(world.draw(ROOT), @"root: active [] inactive [14' 13' 12' 11' 10' 9' 8' 7' 6' 5' 4' 3' 2' 1' 0'] cpu0 adds [15' 16']");
}

#[test]
fn since_6_8_a_batch_holds_31() {
    let mut world = World::boot("linux-6.12", 8);
    world.read(ROOT, 0..30);
    assert_eq!(world.mem.lru_pages(LruList::InactiveFile), 0);
    world.read(ROOT, 30..31);
    assert_eq!(world.mem.lru_pages(LruList::InactiveFile), 31);
}

#[test]
fn the_second_access_activates_and_the_third_starts_over() {
    let mut world = World::boot("linux-5.4", 8);
    world.read(ROOT, 0..4);
    world.settle();
    assert_snapshot!(world.draw(ROOT), @"root: active [] inactive [3' 2' 1' 0']");
    world.read(ROOT, [1, 2]);
    world.settle();
    assert_snapshot!(world.draw(ROOT), @"root: active [2 1] inactive [3' 0']");
    world.read(ROOT, [1]);
    assert_snapshot!(world.draw(ROOT), @"root: active [2 1'] inactive [3' 0']");
}

#[test]
fn a_write_is_an_access_only_up_to_4_6() {
    for (kernel, drawn) in [
        ("linux-4.19", "root: active [] inactive [1 0]"),
        ("linux-6.12", "root: active [] inactive [1 0]"),
        ("linux-4.19+writes-are-accesses", "root: active [1] inactive [0']"),
    ] {
        let mut world = World::boot(kernel, 8);
        for index in [0, 1, 1] {
            if world.page(index).is_none() {
                assert!(world.add(CPU, ROOT, index, Order(0)));
            }
            let pfn = world.page(index).expect("it was just added");
            world.mem.mark_written(CPU, pfn);
        }
        world.settle();
        assert_eq!(world.draw(ROOT), drawn, "{kernel}");
    }
}

#[test]
fn a_second_access_while_in_the_own_batch_makes_the_page_start_active() {
    let mut world = World::boot("linux-5.4", 8);
    world.read(ROOT, [0, 1, 0]);
    assert_snapshot!(world.draw(ROOT), @"root: active [] inactive [] cpu0 adds [0 1']");
    world.settle();
    assert_snapshot!(world.draw(ROOT), @"root: active [0] inactive [1']");
}

#[test]
fn a_second_access_from_another_cpu_while_batched_is_lost() {
    let mut world = World::boot("linux-5.4", 8);
    world.read_on(CPU, ROOT, 0);
    world.read_on(REMOTE, ROOT, 0);
    world.settle();
    // Not active, and no longer Referenced either: the access found nothing to move.
    assert_snapshot!(world.draw(ROOT), @"root: active [] inactive [0]");
}

#[test]
fn a_large_folio_flushes_its_batch_at_once() {
    let mut world = World::boot("linux-6.1", 8);
    world.read(ROOT, 0..3);
    assert!(world.add(CPU, ROOT, 64, Order(4)));
    assert_snapshot!(world.draw(ROOT), @"root: active [] inactive [64 2' 1' 0']");
    assert_eq!(world.mem.lru_pages(LruList::InactiveFile), 3 + 16, "sizes count pages");
}

#[test]
fn locked_memory_is_on_the_unevictable_list_only() {
    use pagetide_mm::base::gfp::Gfp;
    let mut world = World::boot("linux-6.1", 8);
    let flags = world.mem.core.alloc.fast_flags(CPU, Gfp::HIGHUSER_MOVABLE);
    let outcome = world.mem.core.alloc.alloc(CPU, Gfp::HIGHUSER_MOVABLE, Order(0), flags);
    let pfn = outcome.page.expect("memory");
    let anon = world.mem.anon_create();
    world.mem.anon_map(CPU, anon, 0, pfn, ROOT);
    world.mem.lru.mlock(&mut world.mem.core, REMOTE, pfn);
    world.mem.lru_drain_all();
    let on = |list| world.mem.lru_list(ROOT, NODE, list).collect::<Vec<_>>();
    assert_eq!((on(LruList::Unevictable), on(LruList::InactiveAnon)), (vec![pfn], vec![]));
    world.mem.anon_remove(CpuId(0), anon);
    world.mem.check_at_rest().unwrap();
    world.mem.check_sample(64).unwrap();
}

#[test]
fn a_page_that_is_freed_in_a_batch_leaves_it() {
    let mut world = World::boot("linux-6.1", 8);
    world.read(ROOT, 0..3);
    let file = world.file;
    world.mem.mapping_remove(CPU, file);
    assert_eq!(world.mem.add_batch(CPU), []);
    world.mem.check_at_rest().unwrap();
}
