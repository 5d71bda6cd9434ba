//! How much a visit looks at, how it is shared out, and what the reclaimer is credited with.

use super::*;
use crate::reclaim::run::ScannedPart;
use crate::version::rules::SlabFloor;

/// 3000 files, of which the oldest 1000 have lost their dentries.
fn three_thousand_files(kernel: &str, sysctls: Sysctls) -> Scene {
    let mut scene = Scene::boot_with(kernel, sysctls);
    scene.files(ROOT, 3000);
    assert_eq!(scene.prune_dentries(1000), 1000);
    assert_eq!(scene.listed(ROOT), (2000, 1000));
    scene
}

#[test]
fn a_batch_is_shared_by_the_lengths_of_the_two_lists_dentries_first() {
    for kernel in ["linux-5.3", "linux-6.12"] {
        let mut scene = three_thousand_files(kernel, Sysctls::default());
        let visit = scene.visit(Shrinker::SuperBlock, ROOT, &mut kswapd(2));
        // 3000 objects at priority 2, two seeks: 1500, of which one batch of 1024 is worth a call:
        // 1024 * 2000 / 3001 + 1 dentries, 1024 * 1000 / 3001 + 1 inodes.
        assert_eq!(visit, Some(Visit { batches: [1024].into(), evicted: 342, freed: 683 + 342 }), "{kernel}");
        // The inodes of those dentries went to the young end before inodes were looked at.
        assert_eq!(scene.listed(ROOT), (2000 - 683, 1000 + 683 - 342), "{kernel}");
        assert!(scene.draw().starts_with(&".".repeat(342)), "{kernel}: the oldest inodes went");
        assert_eq!(scene.event(VmEvent::SlabsScanned), 1024);
    }
}

#[test]
fn pressed_by_scan_objects_are_looked_at_as_pages_are_twice_over() {
    let mut scene = three_thousand_files("linux-2.6.32", Sysctls::default());
    let scanned = |pages| ScanControl { scanned: ScannedPart { pages, listed: 7999 }, ..kswapd(12) };
    // An eighth of the lists: a quarter of the objects, by batches of 128; the rest is owed.
    let visit = scene.visit(Shrinker::SuperBlock, ROOT, &mut scanned(1000)).expect("there are objects");
    assert_eq!(visit.batches, [128; 5]);
    // 110 are owed: a hundred pages more and a batch has come together.
    let few = scene.visit(Shrinker::SuperBlock, ROOT, &mut scanned(100)).expect("there are objects");
    assert_eq!(few.batches, [128]);
}

#[test]
fn a_batch_of_dentries_alone_is_one_look_longer_than_a_batch() {
    // 1024 * 2048 / 2049 + 1 dentries, and one inode although none was there when the batch was cut.
    let mut scene = Scene::boot("linux-6.1");
    scene.files(ROOT, 2048);
    let visit = scene.visit(Shrinker::SuperBlock, ROOT, &mut kswapd(2));
    assert_eq!(visit, Some(Visit { batches: [1024].into(), evicted: 1, freed: 1024 + 1 }));
    assert_eq!(scene.listed(ROOT), (2048 - 1024, 1024 - 1));
}

#[test]
fn the_super_block_is_left_alone_by_whoever_may_not_enter_it_and_the_work_is_owed() {
    // kswapd comes at priority 12, where 3000 objects ask for none by themselves. Up to 5.12 all that
    // is owed comes due, at most half of the objects; since 5.13 the fraction of its priority.
    for (kernel, at_12) in [
        ("linux-5.3", Visit { batches: [1024].into(), evicted: 342, freed: 1025 }),
        ("linux-6.1", Visit::default()),
    ] {
        let mut scene = three_thousand_files(kernel, Sysctls::default());
        let mut inside = ScanControl { may_fs: false, ..kswapd(0) };
        assert_eq!(scene.visit(Shrinker::SuperBlock, ROOT, &mut inside), None);
        assert_eq!(scene.listed(ROOT), (2000, 1000));
        assert_eq!(scene.event(VmEvent::SlabsScanned), 0);
        assert_eq!(scene.visit(Shrinker::SuperBlock, ROOT, &mut kswapd(12)), Some(at_12), "{kernel}");
    }
    // At priority 2 6.1 has 1500 of its own and a quarter of 6000 that are owed.
    let mut scene = three_thousand_files("linux-6.1", Sysctls::default());
    let _ = scene.visit(Shrinker::SuperBlock, ROOT, &mut ScanControl { may_fs: false, ..kswapd(0) });
    let visit = scene.visit(Shrinker::SuperBlock, ROOT, &mut kswapd(2)).expect("there is work");
    assert_eq!(visit.batches, [1024, 1024]);
}

#[test]
fn what_is_owed_adds_up_from_visit_to_visit() {
    let mut scene = Scene::boot("linux-5.3");
    scene.files(ROOT, 3000);
    // 366 at priority 4, too few for a batch of 1024; the third visit has 1098 of them.
    for batches in [&[][..], &[], &[1024]] {
        let visit = scene.visit(Shrinker::SuperBlock, ROOT, &mut kswapd(4)).expect("there are objects");
        assert_eq!(visit.batches, batches);
    }
}

/// Real kernels of 4.19 lose the only hot file in memory so, with all its pages; 5.4 does not.
#[test]
fn in_4_19_a_few_objects_are_all_looked_at_at_the_lowest_pressure() {
    for (kernel, floor, batches) in [
        ("linux-4.19", SlabFloor::Batch, &[30][..]),
        ("linux-5.3", SlabFloor::None, &[]),
        ("linux-5.3+small-slab-pressure", SlabFloor::Batch, &[30]),
    ] {
        let mut scene = Scene::boot(kernel);
        assert_eq!(scene.core.rules().slab_floor, floor, "{kernel}");
        scene.files(ROOT, 30);
        let visit = scene.visit(Shrinker::SuperBlock, ROOT, &mut kswapd(12)).expect("there are objects");
        assert_eq!(visit.batches, batches, "{kernel}");
    }
}

#[test]
fn what_one_cgroup_owes_another_one_pays_before_5_13() {
    // Of 3000 dentries at priority 2 a visit asks for 1500: one batch. A owes 6000 more: on 5.3 B pays as
    // much of that as it may, and leaves 2380 to A; on 6.1 A comes with a quarter of its own.
    for (kernel, b_pays, a_pays) in
        [("linux-5.3", &[1024; 5][..], &[1024; 3][..]), ("linux-6.1", &[1024], &[1024; 2])]
    {
        let mut scene = Scene::boot(kernel);
        let (a, b) = (scene.group("A"), scene.group("B"));
        scene.files(a, 3000);
        scene.files(b, 3000);
        let mut inside = ScanControl { may_fs: false, ..kswapd(0) };
        assert_eq!(scene.visit(Shrinker::SuperBlock, a, &mut inside), None);
        let visit = scene.visit(Shrinker::SuperBlock, b, &mut kswapd(2)).expect("there are dentries");
        assert_eq!(visit.batches, b_pays, "{kernel}");
        let visit = scene.visit(Shrinker::SuperBlock, a, &mut kswapd(2)).expect("there are dentries");
        assert_eq!(visit.batches, a_pays, "{kernel}");
    }
}

#[test]
fn without_fs_tree_nodes_and_buffers_are_freed_all_the_same() {
    let mut scene = Scene::boot("linux-6.1");
    scene.buffers(200);
    scene.files(ROOT, 1);
    scene.shadow_leaves(0, 300, ROOT);
    let mut inside = ScanControl { may_fs: false, ..kswapd(0) };
    for (shrinker, freed) in [(Shrinker::ShadowNodes, 128), (Shrinker::XfsBuffers, 0)] {
        let visit = scene.visit(shrinker, ROOT, &mut inside).expect("it is visited");
        assert_eq!((visit.batches[0], visit.freed), (128, freed), "{shrinker:?}: buffers survive two looks");
    }
}

#[test]
fn slab_that_is_spared_is_not_even_owed() {
    let mut scene = three_thousand_files("linux-5.3", Sysctls::default());
    let mut spares = ScanControl { may_shrinkslab: false, ..kswapd(0) };
    for _ in 0..3 {
        assert_eq!(scene.visit(Shrinker::SuperBlock, ROOT, &mut spares), None);
    }
    assert_eq!(scene.visit(Shrinker::SuperBlock, ROOT, &mut kswapd(12)), Some(Visit::default()));
}

#[test]
fn vfs_cache_pressure_weighs_dentries_and_inodes() {
    // F is 2000 * pressure / 100 (1000 dentries were pruned along with their inodes); at priority 1
    // as much is due, in batches of 1024 or at once where F is less than one.
    for (percent, batches) in [(0, None), (10, Some(&[200][..])), (50, Some(&[1000])), (100, Some(&[1024]))] {
        let mut scene = Scene::boot_with("linux-6.1", pressure(percent));
        scene.files(ROOT, 2000);
        let visit = scene.visit(Shrinker::SuperBlock, ROOT, &mut kswapd(1));
        assert_eq!(visit.as_ref().map(|visit| visit.batches.as_slice()), batches, "{percent} %");
    }
}

#[test]
fn vfs_cache_pressure_does_not_weigh_buffers_of_xfs() {
    for percent in [0, 10, 100, 1000] {
        let mut scene = Scene::boot_with("linux-6.1", pressure(percent));
        scene.buffers(200);
        // 200 >> 1 twice: a batch of 128, and the rest is less than one.
        let visit = scene.visit(Shrinker::XfsBuffers, ROOT, &mut kswapd(1)).expect("there are buffers");
        assert_eq!(visit.batches, [128], "{percent} %");
    }
}

/// 200 buffers of four pages: the third visit at priority 0 frees those that nobody holds.
#[test]
fn pages_of_buffers_count_as_reclaimed_since_5_7() {
    let held: Vec<u32> = (0..50).collect();
    for (kernel, credit) in [
        ("linux-5.5", 0),
        ("linux-5.5+xfs-buffer-credit", 4 * 150),
        ("linux-5.7", 4 * 150),
        ("linux-5.7-xfs-buffer-credit", 0),
        ("linux-6.12", 4 * 150),
    ] {
        let mut scene = Scene::boot(kernel);
        scene.buffers(200);
        held.iter().for_each(|&cluster| scene.fs.xfs_buffers.hold(ClusterId(cluster)));
        let mut sc = kswapd(0);
        for _ in 0..2 {
            let _ = scene.visit(Shrinker::XfsBuffers, ROOT, &mut sc);
        }
        assert_eq!((scene.fs.xfs_buffers.count(NODE), sc.nr_reclaimed), (0, credit), "{kernel}");
        held.iter()
            .for_each(|&cluster| scene.fs.xfs_buffers.release(&mut scene.core, CPU, ClusterId(cluster)));
        assert_eq!(sc.nr_reclaimed, credit, "{kernel}: nor does it count for anybody when it goes later");
    }
}

#[test]
fn buffers_belong_to_no_cgroup() {
    let mut scene = Scene::boot("linux-6.1");
    let group = scene.group("A");
    scene.buffers(200);
    assert_eq!(scene.visit(Shrinker::XfsBuffers, group, &mut kswapd(0)), None);
    for _ in 0..2 {
        assert!(scene.visit(Shrinker::XfsBuffers, ROOT, &mut kswapd(0)).is_some());
    }
    assert_eq!(scene.fs.xfs_buffers.count(NODE), 0);
}

#[test]
fn a_cgroups_dentries_are_its_own() {
    let mut scene = Scene::boot("linux-6.1");
    let group = scene.group("A");
    scene.files(group, 40);
    scene.files(ROOT, 2);
    assert_eq!((scene.listed(ROOT), scene.listed(group)), ((2, 0), (40, 0)));
    let visit = scene.visit(Shrinker::SuperBlock, group, &mut limit(group, 0)).expect("it has dentries");
    // 40 are less than a batch, so all 80 looks that are due come at once: 79 for dentries, one for an inode.
    assert_eq!(scene.draw(), std_alloc::format!(".{}dd", "i".repeat(39)));
    assert_eq!((visit.evicted, visit.freed), (1, 41));
}

/// Slab pages that freeing 2000 inodes of a cgroup gave back at once, unreclaimable ones, and after a grace period; and
/// what the run was credited with.
fn inodes(kernel: &str, global: bool) -> ([u64; 2], u64) {
    let mut scene = Scene::boot(kernel);
    let group = scene.group("A");
    scene.files(group, 2000);
    let dentries = scene.fs.vfs.listed_on(VfsLru::Dentry, group, NODE);
    let Scene { core, cache, fs, .. } = &mut scene;
    assert_eq!(fs.vfs.prune_dentries(core, cache, CPU, group, NODE, dentries).freed, 2000);
    scene.grace_period();
    let pages = |scene: &Scene| [false, true].map(|kind| scene.core.slabs.pages(kind));
    let before = pages(&scene);
    let mut sc = if global { kswapd(0) } else { limit(group, 0) };
    let visit = scene.visit(Shrinker::SuperBlock, group, &mut sc).expect("there are inodes");
    assert_eq!(visit.freed, 2000);
    let at_once = pages(&scene);
    assert_eq!(at_once[1], before[1], "{kernel}: inodes wait for RCU");
    scene.grace_period();
    ([before[0] - at_once[0], before[1] - pages(&scene)[1]], sc.nr_reclaimed)
}

#[test]
fn slab_pages_are_credited_to_whoever_freed_them_at_once_but_in_6_12_not_to_limits() {
    // What hangs on an inode of ext4 goes with it; the inode itself is freed later, to nobody's credit.
    for (kernel, limits_too) in [("linux-5.3", true), ("linux-6.1", true), ("linux-6.12", false)] {
        let ([at_once, later], credit) = inodes(kernel, true);
        assert!(at_once > 20 && later > 400, "{at_once} {later}");
        assert_eq!(credit, at_once, "{kernel}: global reclaim");
        let ([at_once, _], credit) = inodes(kernel, false);
        assert_eq!(credit, if limits_too { at_once } else { 0 }, "{kernel}: limit reclaim");
    }
}

#[test]
fn slab_pages_of_tree_nodes_are_nobodys_credit() {
    for kernel in ["linux-5.3", "linux-6.1"] {
        let mut scene = Scene::boot(kernel);
        scene.files(ROOT, 1);
        scene.shadow_leaves(0, 1200, ROOT);
        scene.grace_period();
        let before = scene.core.slabs.pages(true);
        let mut sc = kswapd(12);
        let visit = scene.visit(Shrinker::ShadowNodes, ROOT, &mut sc).expect("there are leaves");
        assert_eq!((visit.freed % 128, visit.freed > 500, visit.evicted), (0, true, 0));
        assert_eq!(scene.event(VmEvent::WorkingsetNodeReclaim), visit.freed);
        assert_eq!(scene.core.cgroups.live_stat(ROOT, NODE, MemcgStat::WorkingsetNodeReclaim), visit.freed);
        assert_eq!((scene.core.slabs.pages(true), sc.nr_reclaimed), (before, 0), "{kernel}");
        scene.grace_period();
        assert!(scene.core.slabs.pages(true) < before - 30, "{kernel}");
    }
}

#[test]
fn an_object_waits_for_the_period_after_the_one_that_it_was_freed_in() {
    let mut scene = Scene::boot("linux-6.1");
    scene.files(ROOT, 100);
    let dentries = |scene: &Scene| {
        (scene.core.slabs.objects(Cache::Dentry), scene.core.slabs.awaiting_rcu(Cache::Dentry))
    };
    assert!(!scene.core.slabs.take_rcu_request());
    assert_eq!(scene.prune_dentries(10), 10);
    assert!(scene.core.slabs.take_rcu_request() && !scene.core.slabs.take_rcu_request());
    assert_eq!((dentries(&scene), scene.core.grace_period_ended(CPU)), ((90, 10), 0));
    assert_eq!(scene.prune_dentries(5), 5);
    assert!(!scene.core.slabs.take_rcu_request(), "a period is under way");
    assert_eq!((dentries(&scene), scene.core.grace_period_ended(CPU)), ((85, 15), 10));
    assert_eq!((dentries(&scene), scene.core.grace_period_ended(CPU)), ((85, 5), 5));
    assert!(dentries(&scene) == (85, 0) && !scene.core.slabs.needs_grace_period());
}

#[test]
fn where_very_many_objects_wait_the_period_is_hurried() {
    let mut scene = Scene::boot("linux-6.1");
    scene.files(ROOT, 10_001);
    assert_eq!(scene.prune_dentries(10_001), 10_001);
    assert_eq!(scene.core.slabs.awaiting_rcu(Cache::Dentry), 10_001, "a period ended, for those before them");
    // All inodes with their dentries gone, 10,001 later the dentries are free.
    assert_eq!(scene.prune_inodes(10_001).0, 10_001);
    assert_eq!(scene.core.slabs.awaiting_rcu(Cache::Dentry), 0);
    assert_eq!(scene.core.slabs.awaiting_rcu(Cache::Ext4Inode), 10_001);
    scene.grace_period();
    scene.check();
}

#[test]
fn pages_that_go_with_their_inode_are_the_reclaimers_credit() {
    for (kernel, mut sc, event) in [
        ("linux-5.3", kswapd(0), VmEvent::KswapdInodeSteal),
        ("linux-5.3", limit(ROOT, 0), VmEvent::PgInodeSteal),
    ] {
        let mut scene = Scene::boot(kernel);
        scene.files(ROOT, 40);
        for file in 0..40 {
            scene.page(file, 0, ROOT);
        }
        assert_eq!(scene.prune_dentries(40), 40);
        let _ = scene.visit(Shrinker::SuperBlock, ROOT, &mut sc);
        assert_eq!((sc.nr_reclaimed, scene.event(event)), (40, 40), "{event:?}");
        assert_eq!((0..40).map(|file| scene.pages_of(file)).sum::<u64>(), 0);
    }
}

#[test]
fn drop_caches_frees_whatever_nobody_uses_however_often_it_was_referenced() {
    for kernel in ["linux-5.3", "linux-6.1"] {
        let mut scene = Scene::boot(kernel);
        let group = scene.group("A");
        scene.files(ROOT, 3);
        scene.files(group, 3);
        scene.reopen(0, ROOT); // Open.
        scene.reopen(1, ROOT); // Referenced dentry.
        scene.close(1);
        let _ = scene.prune_dentries(1);
        scene.buffers(3);
        scene.shadow_leaves(4, 3, group);
        let Scene { core, lru, cache, fs, reclaim, .. } = &mut scene;
        let freed = reclaim.drop_slab(core, lru, cache, fs, CPU);
        assert_eq!(scene.draw(), "O.....", "{kernel}");
        assert_eq!(scene.fs.xfs_buffers.count(NODE), 0);
        assert_eq!(scene.cache.trees().shadow_leaves(), 0);
        // Two dentries and inodes of the root, three of each of the group, and three buffers. The leaves go before
        // inodes if they are more than the group's memory calls for, and else with them.
        assert!([10 + 3, 10 + 3 + 3].contains(&freed), "{kernel}: {freed}");
        assert!(scene.event(VmEvent::SlabsScanned) >= freed, "it looks at what it frees, as any reclaimer");
        scene.check();
    }
}

#[test]
fn drop_caches_frees_buffers_on_a_machine_without_cgroups() {
    let mut scene = Scene::boot("linux-6.1");
    scene.buffers(3);
    let Scene { core, lru, cache, fs, reclaim, .. } = &mut scene;
    // Where a round frees nothing there is no second one, and a buffer wants to be met three times.
    assert_eq!([0; 2].map(|_| reclaim.drop_slab(core, lru, cache, fs, CPU)), [0, 3]);
    assert_eq!(scene.fs.xfs_buffers.count(NODE), 0);
    scene.check();
}
