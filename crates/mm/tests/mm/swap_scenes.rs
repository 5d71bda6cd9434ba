//! Scenes of pages that are swapped out and come back, each on a machine with one cgroup P (SWAP 2, 3, 5).
//!
//! ```text
//!   m in memory   s in its slot   b in both
//! ```

use pagetide_mm as mm;

use mm::base::ids::AnonId;
use mm::base::vmstat::VmEvent;
use mm::lru::lists::LruList;
use mm::swap::areas::{AreaKind, AreaSpec};
use mm::version::geometry::Cache;
use mm::version::rules::{HugeSwap, Rule, SlotCache, SwapReadahead, SyncSwap, ZeroPages, ZramRequests};

use crate::swap_worlds::{DISK, Swapping, ZRAM};
use crate::world::{CPU, NODE};

/// A world with `pages` written pages of P on its lists.
fn written(kernel: &str, area: AreaSpec, answers: &[Rule], pages: u32) -> (Swapping, AnonId) {
    let mut scene = Swapping::new(kernel, &[area], answers);
    let anon = scene.map(pages);
    touch(&mut scene, anon, 0..pages);
    scene.world.settle();
    (scene, anon)
}

fn touch(scene: &mut Swapping, anon: AnonId, pages: std::ops::Range<u32>) {
    for index in pages {
        while !scene.access(anon, 1 << 20, index, true) {
            scene.finish_reads(usize::MAX);
        }
    }
}

fn page_out(scene: &mut Swapping, anon: AnonId, first: u32, count: u32) {
    let _ = scene.world.mem.anon_page_out(CPU, anon, first, count);
    scene.writes.extend(scene.world.mem.take_swap_writes());
}

fn drawn(scene: &Swapping, anon: AnonId, pages: u32) -> String {
    let mem = &scene.world.mem;
    let one = |index| match (mem.anon.find(anon, index), mem.anon.swapped_at(anon, index)) {
        (Some(_), _) if mem.anon_resident(anon, index, 1) == 1 => 'm',
        (None, Some(_)) if mem.anon_resident(anon, index, 1) == 1 => 'b',
        (None, Some(_)) => 's',
        _ => '.',
    };
    (0..pages).map(one).collect()
}

fn events<const N: usize>(scene: &Swapping, events: [VmEvent; N]) -> [u64; N] {
    events.map(|event| scene.world.event(event))
}

const SCANNED: [VmEvent; 3] = [VmEvent::PgScanAnon, VmEvent::PgStealAnon, VmEvent::PswpOut];

/// SWAP 9.1: all pages are young, so each is looked at once before any is freed.
#[test]
fn since_5_9_a_young_page_is_kept_once_and_swapped_out_at_its_second_sight() {
    let (mut scene, anon) = written("linux-6.1", ZRAM, &[], 400);
    scene.reclaim(0, 32);
    assert_eq!(events(&scene, SCANNED), [400, 0, 0]);
    scene.reclaim(0, 32);
    assert_eq!(events(&scene, SCANNED), [400 + 32, 32, 32]);
    assert_eq!(drawn(&scene, anon, 40), format!("{}{}", "s".repeat(32), "m".repeat(8)), "the oldest first");
    assert_eq!(scene.world.event(VmEvent::PgActivate), 0);
    // Those that were accessed since are activated at their second sight.
    touch(&mut scene, anon, 32..64);
    scene.reclaim(0, 32);
    assert_eq!(events(&scene, [VmEvent::PgActivate, VmEvent::PswpOut]), [32, 64]);
    assert_eq!(
        drawn(&scene, anon, 100)[32..].to_owned(),
        format!("{}{}", "m".repeat(32), "s".repeat(32)) + "mmmm"
    );
}

/// A cluster of 256 slots takes 2,568 bytes in guests of 7.2, and what says where its pages are is in there.
#[test]
fn since_6_18_the_swap_cache_is_part_of_tables_that_no_shrinker_sees() {
    for (kernel, nodes, tables) in [("linux-6.12", 8, 0), ("linux-7.2", 1, 7)] {
        let (mut scene, anon) = written(kernel, DISK, &[], 400);
        let objects = |scene: &Swapping, cache| scene.world.mem.core.slabs.objects(cache);
        let before = objects(&scene, Cache::TreeNode);
        page_out(&mut scene, anon, 0, 400);
        let found = [Cache::TreeNode, Cache::SwapTable].map(|cache| objects(&scene, cache));
        assert_eq!(found, [before + nodes, tables], "{kernel}");
        scene.world.mem.check().expect("sound");
    }
}

#[test]
fn up_to_5_8_pages_start_active_and_a_young_one_is_activated_at_once() {
    let (mut scene, _) = written("linux-5.4", ZRAM, &[], 400);
    let size = |scene: &Swapping, list| scene.world.mem.lru_list(scene.memcg, NODE, list).count();
    assert_eq!(size(&scene, LruList::ActiveAnon), 400);
    // The first visits find inactive pages only once some active ones were aged.
    (0..4).for_each(|_| scene.reclaim(0, 32));
    let [scanned, stolen, out] = events(&scene, SCANNED);
    assert!(
        scanned == stolen && stolen == out && out >= 32,
        "deactivated pages are old: {scanned} {stolen} {out}"
    );
    let (mut scene, anon) = written("linux-5.4", ZRAM, &[], 40);
    scene.world.mem.anon_cool(CPU, anon, 0, 40);
    touch(&mut scene, anon, 0..40);
    scene.reclaim(0, 32);
    assert_eq!(events(&scene, [VmEvent::PgActivate, VmEvent::PswpOut]), [40, 0], "inactive and young");
}

/// SWAP 2.4, 9.7: a disk takes its time, so each page that goes is looked at twice.
#[test]
fn a_page_written_to_a_disk_comes_to_the_tail_when_it_is_written_and_goes_then() {
    let (mut scene, anon) = written("linux-6.1", DISK, &[], 64);
    scene.reclaim(0, 32);
    scene.reclaim(0, 32);
    let out = scene.world.event(VmEvent::PswpOut);
    assert_eq!(
        (out, scene.world.event(VmEvent::PgStealAnon)),
        (64, 0),
        "all writes are under way, none is over"
    );
    assert_eq!(drawn(&scene, anon, 64), "b".repeat(64));
    scene.finish_writes(usize::MAX);
    assert_eq!(scene.world.event(VmEvent::PgRotated), out);
    scene.reclaim(0, 32);
    assert_eq!(events(&scene, [VmEvent::PgStealAnon, VmEvent::PswpOut]), [32, out], "without more I/O");
    assert_eq!(drawn(&scene, anon, 64), "b".repeat(32) + &"s".repeat(32), "the last one to be written first");
}

#[test]
fn a_page_that_was_only_read_since_it_came_back_goes_without_io() {
    let (mut scene, anon) = written("linux-6.1", DISK, &[], 8);
    page_out(&mut scene, anon, 0, 8);
    scene.finish_writes(usize::MAX);
    page_out_cached(&mut scene);
    assert_eq!((drawn(&scene, anon, 8), scene.world.event(VmEvent::PswpOut)), ("ssssssss".into(), 8));
    for write in [false, true] {
        for index in 0..8 {
            while !scene.access(anon, 8, index, write && index == 3) {
                scene.finish_reads(usize::MAX);
            }
        }
        let before = scene.world.event(VmEvent::PswpOut);
        page_out(&mut scene, anon, 0, 8);
        scene.finish_writes(usize::MAX);
        page_out_cached(&mut scene);
        assert_eq!(scene.world.event(VmEvent::PswpOut) - before, u64::from(write), "written: page 3");
    }
}

/// Whatever waits in the swap cache only, clean, goes.
fn page_out_cached(scene: &mut Swapping) {
    scene.world.settle();
    scene.reclaim(0, 4096);
}

#[test]
fn a_cgroup_without_room_in_swap_keeps_its_pages_and_counts_that() {
    let (mut scene, anon) = written("linux-6.1", ZRAM, &[], 40);
    scene.world.mem.core.cgroups.set_swap_max(scene.memcg, 8);
    page_out(&mut scene, anon, 0, 40);
    assert_eq!(drawn(&scene, anon, 40), format!("{}{}", "s".repeat(8), "m".repeat(32)));
    let swap = scene.world.mem.core.cgroups[scene.memcg].swap;
    assert_eq!((swap.usage, swap.events.max, swap.events.fail), (8, 32, 32));
    assert_eq!(scene.world.mem.lru_list(scene.memcg, NODE, LruList::ActiveAnon).count(), 32, "activated");
}

/// SWAP 9.5: what came back has its slots freed, of which the CPU keeps 64.
#[test]
fn paged_out_memory_is_not_counted_as_scanned_and_its_slots_come_back_but_for_64() {
    for (rule, left) in [(SlotCache::PerCpu, 64), (SlotCache::Off, 0)] {
        let (mut scene, anon) = written("linux-6.1", ZRAM, &[Rule::SlotCache(rule)], 512);
        page_out(&mut scene, anon, 0, 512);
        assert_eq!(events(&scene, SCANNED), [0, 0, 512]);
        assert_eq!(scene.world.mem.core.cgroups[scene.memcg].swap.usage, 512);
        touch(&mut scene, anon, 0..512);
        assert_eq!(scene.world.event(VmEvent::PswpIn), 512);
        assert_eq!(scene.world.mem.core.cgroups[scene.memcg].swap.usage, left, "{rule:?}");
        page_out(&mut scene, anon, 0, 512);
        assert_eq!(scene.world.event(VmEvent::PswpOut), 1024, "written anew: the slots were free");
    }
}

#[test]
fn memory_that_is_given_up_goes_without_a_slot_unless_it_is_written_to_again() {
    let (mut scene, anon) = written("linux-6.1", ZRAM, &[], 40);
    scene.world.mem.anon_give_up(CPU, anon, 0, 40);
    assert_eq!(scene.world.event(VmEvent::PgLazyFree), 30, "two batches of 15; the rest waits");
    touch(&mut scene, anon, 2..3);
    scene.reclaim(0, 64);
    scene.reclaim(0, 64);
    assert_eq!(events(&scene, [VmEvent::PgLazyFreed, VmEvent::PswpOut]), [39, 0]);
    assert_eq!(drawn(&scene, anon, 5), "..m..");
    assert!(scene.world.mem.anon.is_range_empty(anon, 3, 37));
}

#[test]
fn cold_memory_leaves_the_active_list_and_never_active_memory_changes_no_counter() {
    let (mut scene, anon) = written("linux-6.1", ZRAM, &[], 20);
    scene.world.mem.anon_cool(CPU, anon, 0, 20);
    assert_eq!(scene.world.event(VmEvent::PgDeactivate), 0);
    scene.reclaim(0, 1);
    assert_eq!(scene.world.event(VmEvent::PswpOut), 20, "it was not young: gone at first sight");
    let (mut scene, anon) = written("linux-5.4", ZRAM, &[], 20);
    scene.world.mem.anon_cool(CPU, anon, 0, 20);
    assert_eq!(scene.world.event(VmEvent::PgDeactivate), 20, "where memory starts active");
}

#[test]
fn since_6_12_pages_of_zeroes_are_a_bit_and_before_they_are_written() {
    for (rule, expected) in [(ZeroPages::Bitmap, [0, 0, 0, 10, 10]), (ZeroPages::Written, [10, 10, 10, 0, 0])]
    {
        let (mut scene, anon) = written("linux-6.12", ZRAM, &[Rule::ZeroPages(rule)], 10);
        scene.world.mem.anon.set_compressed(anon, 0);
        page_out(&mut scene, anon, 0, 10);
        assert_eq!(
            scene.world.mem.core.swap.pool_pages(),
            0,
            "one repeated word takes no memory in either case"
        );
        touch(&mut scene, anon, 0..10);
        let [out, back] = [VmEvent::PswpOut, VmEvent::PswpIn];
        let found = [out, VmEvent::NrWritten, back, VmEvent::SwpOutZero, VmEvent::SwpInZero];
        assert_eq!(events(&scene, found), expected);
    }
}

#[test]
fn since_6_3_what_goes_to_zram_and_comes_back_counts_as_read_and_written() {
    for (rule, expected) in [(ZramRequests::Counted, [10, 10, 40, 40]), (ZramRequests::None, [10, 10, 0, 0])]
    {
        let (mut scene, anon) = written("linux-6.12", ZRAM, &[Rule::ZramRequests(rule)], 10);
        page_out(&mut scene, anon, 0, 10);
        touch(&mut scene, anon, 0..10);
        let found = [VmEvent::PswpOut, VmEvent::PswpIn, VmEvent::PgPgOut, VmEvent::PgPgIn];
        assert_eq!(events(&scene, found), expected);
    }
}

#[test]
fn a_huge_page_goes_whole_where_a_cluster_is_free_and_comes_back_page_by_page() {
    let big = AreaSpec { kind: AreaKind::Zram, pages: 2000, priority: None };
    let small = AreaSpec { pages: 600, ..big };
    for (rule, area, expected) in [
        (HugeSwap::Whole, big, [1, 0, 0, 512]),
        (HugeSwap::Whole, small, [0, 1, 1, 512]),
        (HugeSwap::Split, big, [0, 0, 1, 512]),
    ] {
        let mut scene = Swapping::new("linux-6.1", &[area], &[Rule::HugeSwap(rule)]);
        let anon = scene.map(512);
        scene.map_huge(anon, 0);
        page_out(&mut scene, anon, 0, 512);
        let found = [VmEvent::ThpSwpOut, VmEvent::ThpSwpOutFallback, VmEvent::ThpSplitPage, VmEvent::PswpOut];
        assert_eq!(events(&scene, found), expected, "{rule:?}, {} slots", area.pages);
        touch(&mut scene, anon, 0..512);
        assert_eq!((scene.world.event(VmEvent::PswpIn), scene.world.mem.anon.huge_pages()), (512, 0));
        scene.world.mem.check().expect("it is sound");
    }
}

/// SWAP 3.5: windows of 1, 2, 4, 8, 8 .. pages in a sweep by mapping; groups of slots up to 4.13.
#[test]
fn a_sweep_from_a_disk_reads_ahead_and_one_from_zram_does_not() {
    for (area, answers, majors, ahead) in [
        (DISK, vec![], 10, 54),
        (DISK, vec![Rule::SwapReadahead(SwapReadahead::Cluster)], 10, 54),
        (ZRAM, vec![], 64, 0),
        (ZRAM, vec![Rule::SyncSwap(SyncSwap::ThroughCache)], 10, 54),
    ] {
        let (mut scene, anon) = written("linux-6.1", area, &answers, 64);
        page_out(&mut scene, anon, 0, 64);
        scene.finish_writes(usize::MAX);
        page_out_cached(&mut scene);
        assert_eq!(scene.world.mem.anon.swapped_pages(anon), 64);
        let mut misses = 0;
        for index in 0..64 {
            misses += u32::from(scene.world.mem.anon_resident(anon, index, 1) == 0);
            touch(&mut scene, anon, index..index + 1);
        }
        let found = events(&scene, [VmEvent::SwapRa, VmEvent::SwapRaHit]);
        assert!(
            misses.abs_diff(majors) <= 1 && found[0].abs_diff(ahead) <= 1,
            "{answers:?}: {misses}, {found:?}"
        );
        assert_eq!(found[0], found[1], "each is used");
    }
}
