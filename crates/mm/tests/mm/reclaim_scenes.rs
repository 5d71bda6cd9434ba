//! Reclaim passes step by step: quotas, the balance of the lists, protection, refaults
//! (MECHANISMS 6.4 to 7.3, 8.3; MECHANISMS-6X 3, 4, 11).

use crate::world::{CPU, NODE, Passed, World};
use insta::assert_snapshot;
use pagetide_mm::MemcgId;
use pagetide_mm::base::frame::PageFlags;
use pagetide_mm::base::layout::ZoneKind;
use pagetide_mm::base::vmstat::VmEvent;
use pagetide_mm::cgroup::tree::Limit;
use pagetide_mm::reclaim::run::ScanControl;
use units::Order;

const ROOT: MemcgId = MemcgId::ROOT;

/// Reclaimed pages of each pass.
fn reclaimed(passes: &[Passed]) -> Vec<u64> {
    passes.iter().map(|pass| pass.reclaimed).collect()
}

#[test]
fn a_limit_run_takes_14_then_28_of_58_thousand_pages() {
    // MECHANISMS-6X 11.1: B >> 12 = 14, B >> 11 = 28; 42 in all.
    let mut world = World::boot("linux-6.1", 512);
    let group = world.group("B");
    world.read(group, 0..58_434);
    world.settle();
    let passes = world.run(&mut world.limit(group));
    assert_eq!(reclaimed(&passes), [14, 28]);
}

#[test]
fn a_run_ends_with_the_chunk_that_reaches_its_target() {
    // MECHANISMS-6X 11.2: 9, 19, then a quota of 38 of which one chunk of 32 is taken.
    let mut world = World::boot("linux-6.1", 512);
    let group = world.group("B");
    world.read(group, 0..39_156);
    world.settle();
    let passes = world.run(&mut world.limit(group));
    assert_eq!(reclaimed(&passes), [9, 19, 32]);
}

#[test]
fn direct_reclaim_finishes_its_quota_at_the_first_priority() {
    let mut world = World::boot("linux-6.1", 256);
    world.read(ROOT, 0..49_152);
    world.settle();
    let mut direct = world.direct();
    direct.nr_to_reclaim = 8;
    assert_eq!(world.pass(&mut direct).reclaimed, 12, "the whole quota although 8 were enough");
    let mut limit = world.limit(ROOT);
    limit.nr_to_reclaim = 8;
    assert_eq!(world.pass(&mut limit).reclaimed, 11, "a quota below a chunk is one chunk");
    limit.priority = 10;
    assert_eq!(world.pass(&mut limit).reclaimed, 32, "47 of quota, but one chunk was enough");
}

#[test]
fn only_direct_reclaim_goes_on_at_the_first_priority_when_a_chunk_was_enough() {
    // 196,608 >> 12 = 48: a chunk of 32, and one of 16.
    let mut world = World::boot("linux-6.1", 1024);
    world.read(ROOT, 0..196_608);
    world.settle();
    assert_eq!(world.pass(&mut world.limit(ROOT)).reclaimed, 32);
    assert_eq!(world.pass(&mut ScanControl { nr_to_reclaim: 32, ..world.direct() }).reclaimed, 47);
}

/// A: 1024 hot pages. B: 2048 pages read once.
fn hot_beside_a_stream(kernel: &str) -> (World, MemcgId, MemcgId) {
    let mut world = World::boot(kernel, 16);
    let (a, b) = (world.group("A"), world.group("B"));
    world.heat(a, 0..1024);
    world.read(b, 10_000..12_048);
    world.settle();
    assert_eq!((world.sizes(a), world.sizes(b)), ((1024, 0), (0, 2048)));
    (world, a, b)
}

#[test]
fn without_root_aging_a_group_without_inactive_pages_opens_its_active_list() {
    let (mut world, a, b) = hot_beside_a_stream("linux-5.4");
    let mut sc = world.direct();
    sc.priority = 4;
    let passed = world.pass(&mut sc);
    // A by itself looks short of inactive pages: 1024 >> 4 = 64 of them are deactivated.
    assert_eq!((world.sizes(a), passed.deactivated), ((960, 64), 64));
    assert_eq!(world.sizes(b).1, 2048 - 32, "B's quota is 128, a chunk was enough");
}

#[test]
fn with_root_aging_the_streams_pages_protect_the_hot_ones() {
    let (mut world, a, b) = hot_beside_a_stream("linux-5.4+root-aging");
    let mut sc = world.direct();
    sc.priority = 4;
    let passed = world.pass(&mut sc);
    assert_eq!((world.sizes(a), passed.deactivated), ((1024, 0), 0));
    assert_eq!(world.sizes(b).1, 2048 - 32);
    assert!(sc.skipped_deactivate, "a run that freed nothing would open it now");
}

#[test]
fn with_root_aging_the_list_opens_once_the_whole_tree_is_short_of_inactive_pages() {
    let (mut world, a, b) = hot_beside_a_stream("linux-5.5");
    world.heat(b, 10_000..11_100); // 1100 of B's become active: 2124 active, 948 inactive.
    let mut sc = world.direct();
    sc.priority = 4;
    let passed = world.pass(&mut sc);
    assert!(passed.deactivated >= 32 && world.sizes(a).0 < 1024, "{passed:?}");
}

#[test]
fn deactivated_pages_keep_their_referenced_bit_and_one_more_read_brings_them_back() {
    let mut world = World::boot("linux-5.5", 8);
    let group = world.group("A");
    world.heat(group, 0..8);
    world.read(group, [2]);
    let mut sc = world.limit(group);
    sc.priority = 1;
    assert_snapshot!(world.draw(group), @"A: active [7 6 5 4 3 2' 1 0] inactive []");
    let _ = world.pass(&mut sc);
    assert_snapshot!(world.draw(group), @"A: active [7 6 5 4] inactive [3 2' 1 0]");
    world.read(group, [2, 3]);
    world.settle();
    assert_snapshot!(world.draw(group), @"A: active [2 7 6 5 4] inactive [3' 1 0]");
}

/// 64 hot pages and 200 cold ones, of which the oldest 96 are evicted; then the one that went
/// `distance` evictions ago is read again. Returns refaults and activations.
fn refault(kernel: &str, distance: u32) -> (u64, u64) {
    let mut world = World::boot(kernel, 8);
    let group = world.group("A");
    world.heat(group, 0..64);
    world.read(group, 1000..1200);
    world.settle();
    let mut sc = world.limit(group);
    (sc.nr_to_reclaim, sc.priority) = (96, 0);
    assert_eq!(world.pass(&mut sc), Passed { scanned: 96, reclaimed: 96, deactivated: 0 });
    world.mem.core.cgroups.flush_periodic();
    world.read(group, [1000 + (96 - distance)]);
    (world.event(VmEvent::WorkingsetRefaultFile), world.event(VmEvent::WorkingsetActivateFile))
}

#[test]
fn a_refault_within_the_active_lists_length_is_activated() {
    for kernel in ["linux-5.4", "linux-5.5", "linux-6.1", "linux-6.12"] {
        assert_eq!(refault(kernel, 64), (1, 1), "{kernel}: 64 evictions ago, 64 active pages");
        assert_eq!(refault(kernel, 65), (1, 0), "{kernel}: 65 evictions ago");
    }
}

#[test]
fn what_a_sibling_loses_ages_a_shadow_only_with_root_aging() {
    for (kernel, activated) in [("linux-5.4", 1), ("linux-5.4+root-aging", 0)] {
        let mut world = World::boot(kernel, 8);
        let (a, b) = (world.group("A"), world.group("B"));
        world.heat(a, 0..64);
        world.read(a, 1000..1200);
        world.read(b, 2000..2200);
        world.settle();
        let mut sc = world.direct();
        sc.priority = 0;
        assert_eq!(world.pass(&mut sc).reclaimed, 64, "a chunk of each group");
        sc.nr_reclaimed = 0;
        assert_eq!(world.pass(&mut sc).reclaimed, 64);
        // 64 evictions of A since, 128 of both; 64 pages are active.
        world.read(a, [1000]);
        assert_eq!(world.event(VmEvent::WorkingsetActivateFile), activated, "{kernel}");
    }
}

#[test]
fn a_change_of_activations_since_the_last_run_opens_the_active_list() {
    for kernel in ["linux-5.4", "linux-5.5"] {
        let mut world = World::boot(kernel, 8);
        let group = world.group("A");
        world.heat(group, 0..64);
        world.read(group, 1000..1128);
        world.settle();
        let mut sc = world.limit(group);
        (sc.nr_to_reclaim, sc.priority) = (32, 1);
        let _ = world.pass(&mut sc);
        world.mem.snapshot_refaults(group, NODE);
        world.read(group, [1000]);
        world.settle();
        // Plenty inactive, yet a page that was thrown out came back in time.
        let mut sc = world.limit(group);
        sc.priority = 1;
        assert_eq!(world.pass(&mut sc).deactivated, 32, "{kernel}");
        world.mem.snapshot_refaults(group, NODE);
        let mut sc = world.limit(group);
        sc.priority = 1;
        assert_eq!(world.pass(&mut sc).deactivated, 0, "{kernel}: the snapshot is up to date");
    }
}

/// P and its child P/A, which has read so many pages.
fn pages_of_a_child(pages: u32) -> (World, MemcgId, MemcgId) {
    let mut world = World::boot("linux-6.1", 16);
    let parent = world.group("P");
    let child = world.group("P/A");
    world.read(child, 0..pages);
    world.settle();
    (world, parent, child)
}

#[test]
fn memory_low_skips_a_group_until_it_is_overridden() {
    let (mut world, parent, child) = pages_of_a_child(512);
    for group in [parent, child] {
        world.mem.core.cgroups.set_limit(group, Limit::Low, 2048);
    }
    let mut sc = world.limit(parent);
    sc.priority = 0;
    assert_eq!((world.pass(&mut sc).scanned, sc.memcg_low_skipped), (0, true));
    sc.memcg_low_reclaim = true;
    assert_eq!(world.pass(&mut sc).reclaimed, 32);
    assert_eq!(world.mem.core.cgroups[child].events.low, 1);
    assert_eq!(world.mem.core.cgroups[parent].events.low, 1, "a parent's file counts for the subtree");
}

#[test]
fn memory_low_scales_the_scan_of_a_group_above_it() {
    let (mut world, parent, child) = pages_of_a_child(1024);
    let usage = world.mem.core.cgroups[child].memory.usage;
    for group in [parent, child] {
        world.mem.core.cgroups.set_limit(group, Limit::Low, usage / 2);
    }
    let mut sc = world.limit(parent);
    (sc.priority, sc.nr_to_reclaim) = (2, 10_000);
    // 1024 pages less 1024 * (usage / 2) / (usage + 1), a quarter of the rest.
    let protected = 1024 * (usage / 2) / (usage + 1);
    assert_eq!(world.pass(&mut sc).scanned, (1024 - protected) >> 2);
}

#[test]
fn memory_min_holds_even_when_low_is_overridden() {
    let (mut world, parent, child) = pages_of_a_child(512);
    for group in [parent, child] {
        world.mem.core.cgroups.set_limit(group, Limit::Min, 2048);
    }
    let mut sc = world.limit(parent);
    (sc.priority, sc.memcg_low_reclaim) = (0, true);
    assert_eq!(world.pass(&mut sc).scanned, 0);
    assert!(!sc.memcg_low_skipped);
}

#[test]
fn a_removed_group_loses_its_protection() {
    let (mut world, parent, child) = pages_of_a_child(512);
    for group in [parent, child] {
        world.mem.core.cgroups.set_limit(group, Limit::Low, 2048);
    }
    world.mem.memcg_remove(child);
    let mut sc = world.limit(parent);
    assert_eq!(world.pass(&mut sc).reclaimed, 32, "also at a priority at which its quota is 0");
}

#[test]
fn pages_of_higher_zones_are_passed_over_and_go_to_the_head() {
    let mut world = World::boot("linux-6.1", 64);
    world.read(ROOT, 0..64);
    world.settle();
    let before = world.draw(ROOT);
    let mut sc = ScanControl::direct(ZoneKind::Dma);
    sc.priority = 0;
    assert_eq!(
        world.pass(&mut sc),
        Passed::default(),
        "no quota: no page of the highest_zoneidx is on the list"
    );
    assert_eq!(world.draw(ROOT), before);
    // One page of the DMA zone at the head of the list, behind everybody else.
    let dma = dma_page(&mut world, 100);
    let passed = world.pass(&mut sc);
    assert_eq!(passed, Passed { scanned: 65, reclaimed: 1, deactivated: 0 });
    assert_eq!((world.event(VmEvent::PgSkipDma), world.event(VmEvent::PgSkipDma32)), (0, 64));
    assert_eq!(sc.met.taken, 1);
    assert_eq!(world.event(VmEvent::PgScanDirect), 65);
    assert_eq!(world.page(100), None, "{dma:?}");
    // Each skipped page went to the head as it was met, oldest first: the order is kept.
    assert_eq!(world.draw(ROOT), before);
}

/// MECHANISMS-510-72 3.3: what is beyond the cap is taken, whatever its zone.
#[test]
fn since_6_13_so_many_pages_are_passed_over_and_no_more() {
    for (kernel, scanned, skipped) in
        [("linux-6.12", 32801, 32800), ("linux-6.12+isolate-skip-cap", 32769, 32768)]
    {
        let mut world = World::boot(kernel, 192);
        world.read(ROOT, 0..32800);
        world.settle();
        let _ = dma_page(&mut world, 40000);
        let mut sc = ScanControl::direct(ZoneKind::Dma);
        sc.priority = 0;
        let passed = world.pass(&mut sc);
        assert_eq!(passed, Passed { scanned, reclaimed: 1, deactivated: 0 }, "{kernel}");
        assert_eq!(world.event(VmEvent::PgSkipDma32), skipped, "{kernel}");
        assert_eq!(
            world.page(40000).is_some(),
            world.page(32768).is_none(),
            "{kernel}: the one or the other"
        );
        world.mem.check().expect("all pages are somewhere");
    }
}

/// MECHANISMS-510-72 4.5.
#[test]
fn since_7_1_a_removed_group_hands_its_pages_to_its_parent_as_the_oldest_ones() {
    let mut world = World::boot("linux-6.12+reparent-lru", 8);
    let parent = world.group("P");
    let child = world.group("P/A");
    world.heat(child, 0..2);
    world.read(child, 2..4);
    world.settle();
    world.read(parent, 4..6);
    world.settle();
    let before = world.mem.core.cgroups[parent].memory.usage;
    world.mem.memcg_remove(child);
    assert_eq!(world.draw(child), "P/A: active [] inactive []");
    assert_eq!(world.draw(parent), "P: active [1 0] inactive [5' 4' 3' 2']", "the head first");
    assert_eq!(world.mem.core.cgroups[child].memory.usage, 0);
    let stocked = before - world.mem.core.cgroups[parent].memory.usage;
    assert!(stocked < 64, "only its stock is given back: {stocked}");
    world.mem.check().expect("charges, lists and statistics agree");
    let mut sc = world.limit(parent);
    sc.priority = 0;
    let _ = world.pass(&mut sc);
    assert_eq!(world.draw(parent), "P: active [1 0] inactive []");
    world.grace_period();
    world.mem.check().expect("what was charged to the child is given back by the parent");
}

/// Adds a page of the DMA zone at `index` and settles it.
fn dma_page(world: &mut World, index: u32) -> units::Pfn {
    use pagetide_mm::base::gfp::Gfp;
    use pagetide_mm::pages::cache::Prepared;
    let gfp = Gfp(Gfp::HIGHUSER_MOVABLE.0 | Gfp::DMA.0);
    let flags = world.mem.core.alloc.fast_flags(CPU, gfp);
    let pfn = world.mem.core.alloc.alloc(CPU, gfp, units::Order(0), flags).page.expect("a DMA page");
    let file = world.file;
    while world.mem.prepare_insert(CPU, file, index, 1, ROOT) == Prepared::NeedsSlab {
        let flags = world.mem.core.alloc.fast_flags(CPU, Gfp::KERNEL);
        let slab = world.mem.core.alloc.alloc(CPU, Gfp::KERNEL, units::Order(0), flags).page;
        let slab = slab.expect("memory");
        world.mem.grow_slab(CPU, pagetide_mm::version::geometry::Cache::TreeNode, ROOT, slab);
    }
    assert_eq!(world.mem.insert_page(file, index, pfn, ROOT), None);
    world.mem.lru_add(CPU, pfn);
    world.settle();
    pfn
}

#[test]
fn a_page_that_is_being_read_is_kept_at_the_head() {
    let mut world = World::boot("linux-6.1", 8);
    world.read(ROOT, 0..4);
    world.settle();
    let pfn = world.page(0).expect("just read");
    world.mem.core.alloc.frames.set_flags(pfn, PageFlags::LOCKED);
    let mut sc = world.direct();
    sc.priority = 0;
    assert_eq!(world.pass(&mut sc), Passed { scanned: 4, reclaimed: 3, deactivated: 0 });
    assert_snapshot!(world.draw(ROOT), @"root: active [] inactive [0']");
}

#[test]
fn a_partial_walk_goes_on_where_the_last_one_met_its_target() {
    let mut world = World::boot("linux-6.12", 64);
    let (a, b) = (world.group("A"), world.group("B"));
    let _ = world.group("P");
    world.read(a, 0..2048);
    world.read(b, 10_000..12_048);
    world.settle();
    let taken = |world: &World| (2048 - world.sizes(a).1, 2048 - world.sizes(b).1);
    let run = |world: &mut World| {
        let mut sc = world.direct();
        sc.priority = 5; // A quota of 64: one chunk and a half meets the target.
        world.pass(&mut sc).reclaimed
    };
    assert_eq!((run(&mut world), taken(&world)), (32, (32, 0)), "root, A: enough");
    assert_eq!((run(&mut world), taken(&world)), (32, (32, 32)), "B: enough");
    assert_eq!((run(&mut world), taken(&world)), (0, (32, 32)), "P is empty, and the round is over");
    assert_eq!((run(&mut world), taken(&world)), (32, (64, 32)), "root, A again");
}

#[test]
fn a_full_walk_takes_from_everybody_every_time() {
    let mut world = World::boot("linux-6.1", 64);
    let (a, b) = (world.group("A"), world.group("B"));
    world.read(a, 0..2048);
    world.read(b, 10_000..12_048);
    world.settle();
    let mut sc = world.direct();
    sc.priority = 5;
    let _ = world.pass(&mut sc);
    assert_eq!((world.sizes(a).1, world.sizes(b).1), (2048 - 32, 2048 - 32));
}

/// `should_continue_reclaim` (MECHANISMS-6X 9.1): orders above 3 at any priority, smaller ones only
/// once reclaim has gone deeper than priority 10.
#[test]
fn a_pass_for_a_block_is_followed_by_another_at_its_priority_while_compaction_lacks_memory() {
    let mut world = World::boot("linux-6.1", 64);
    let mut index = 0;
    while world.add(CPU, ROOT, index, Order(0)) {
        index += 1;
    }
    world.settle();
    let goes_on = |world: &World, order: u8, priority: u8, freed: u64| {
        let mut sc = world.direct().for_order(Order(order));
        sc.priority = priority;
        world.mem.should_continue_reclaim(NODE, &sc, freed)
    };
    for (order, priority, expected) in
        [(0, 0, false), (1, 10, false), (1, 9, true), (3, 10, false), (3, 9, true), (4, 12, true)]
    {
        assert_eq!(goes_on(&world, order, priority, 1), expected, "order {order} at {priority}");
        assert!(!goes_on(&world, order, priority, 0), "order {order} at {priority}: nothing was freed");
    }
    // 2 << 10 = 2048 pages must be left on the inactive list, and one more.
    let (_, inactive) = world.sizes(ROOT);
    let hot = u32::try_from(inactive - 2049).expect("16,384 pages at most");
    world.heat(ROOT, 0..hot);
    assert_eq!(world.sizes(ROOT).1, 2049);
    assert!(goes_on(&world, 10, 12, 1));
    world.heat(ROOT, hot..hot + 1);
    assert!(!goes_on(&world, 10, 12, 1), "there is too little to reclaim");
}

/// MECHANISMS-6X 4.2: the saved position is for those who stop in mid-tree; kswapd has none.
#[test]
fn on_6_12_kswapd_and_a_run_that_found_nothing_walk_the_whole_tree() {
    let mut world = World::boot("linux-6.12", 16);
    for (path, first) in [("A", 0), ("B", 64), ("C", 128)] {
        let group = world.group(path);
        world.read(group, first..first + 64);
    }
    world.settle();
    let mut visited = |mut sc: ScanControl| {
        sc.nr_reclaimed = sc.nr_to_reclaim; // Enough: whoever may stop does so at the first cgroup.
        let mut walk = world.mem.begin_pass(NODE, &mut sc);
        let mut paths = Vec::new();
        let mut last = None;
        while let Some(memcg) = world.mem.next_memcg(&mut walk, last, &mut sc) {
            last = Some(memcg);
            paths.push(world.mem.core.cgroups[memcg].path.clone());
        }
        paths.retain(|path| !path.is_empty());
        paths
    };
    let direct = || ScanControl::direct(ZoneKind::Movable);
    let kswapd = || ScanControl::kswapd(ZoneKind::Movable);
    let full = || ScanControl { memcg_full_walk: true, ..direct() };
    assert!((0..2).any(|_| visited(direct()) == ["A"]), "behind the root");
    assert_eq!(visited(kswapd()), ["A", "B", "C"]);
    assert_eq!(visited(full()), ["A", "B", "C"]);
    assert_eq!(visited(direct()), ["B"], "behind A, whatever others did meanwhile");
}

/// What CPU time a folio takes goes by its pages behind the first, and by those that have a slot of their own.
#[test]
fn pages_behind_the_first_of_a_freed_folio_are_told_and_those_that_fill_no_leaf() {
    let of = |order| {
        let mut world = World::boot("linux-7.2", 64);
        let group = world.group("B");
        assert!(world.add(CPU, group, 0, Order(order)), "the scene fits into memory");
        world.settle();
        let mut sc = ScanControl { priority: 0, ..world.limit(group) };
        let _ = world.mem.begin_pass(NODE, &mut sc);
        let mut visit = world.mem.begin_lruvec(group, NODE, &mut sc).expect("no protection");
        let report = world.mem.shrink_chunk(CPU, &mut visit, &mut sc).expect("a list is not empty");
        (report.reclaimed, report.tails, report.leaf_tails)
    };
    assert_eq!([0, 2, 5].map(of), [(1, 0, 0), (4, 3, 3), (32, 31, 31)]);
    assert_eq!([6, 9].map(of), [(64, 63, 0), (512, 511, 0)], "a leaf has 64 slots");
}
