//! Anonymous against file pages, on small machines with a swap area: which lists a visit opens, when active
//! anonymous pages are aged, and what counts as reclaimable (SWAP 1, 2.5).
//!
//! Nothing is swapped out here: quotas are read off before they are spent.

use crate::world::{CPU, NODE, World};
use pagetide_mm::MemcgId;
use pagetide_mm::base::gfp::Gfp;
use pagetide_mm::base::layout::ZoneKind;
use pagetide_mm::base::sysctl::Sysctl;
use pagetide_mm::base::vmstat::MemcgStat;
use pagetide_mm::cgroup::tree::Charge;
use pagetide_mm::lru::lists::LruList;
use pagetide_mm::reclaim::mglru::visit::Visit;
use pagetide_mm::reclaim::run::ScanControl;
use pagetide_mm::reclaim::scan_balance::ANON_ONLY;
use pagetide_mm::swap::areas::{AreaKind, AreaSpec};
use pagetide_mm::version::rules::{LruCost, QuotaRest, Rule};
use units::Order;

const ROOT: MemcgId = MemcgId::ROOT;

fn add_swap(world: &mut World, pages: u64) {
    world.mem.core.swap.add_area(AreaSpec { kind: AreaKind::Zram, pages, priority: None });
}

/// `count` pages of `memcg`, written once, on their lists.
fn fault(world: &mut World, memcg: MemcgId, count: u32) {
    let anon = world.mem.anon_create();
    for index in 0..count {
        let flags = world.mem.core.alloc.fast_flags(CPU, Gfp::HIGHUSER_MOVABLE);
        let page = world.mem.core.alloc.alloc(CPU, Gfp::HIGHUSER_MOVABLE, Order(0), flags).page;
        assert_eq!(world.mem.core.cgroups.try_charge(CPU, memcg, 1, 1), Charge::Done);
        world.mem.anon_map(CPU, anon, index, page.expect("the scene fits into memory"), memcg);
    }
    world.settle();
}

/// 2048 anonymous pages and 2048 of a file in A, with 4096 pages of swap.
fn half_and_half(kernel: &str) -> (World, MemcgId) {
    half_and_half_with(kernel, &[])
}

fn half_and_half_with(kernel: &str, answers: &[Rule]) -> (World, MemcgId) {
    let mut world = World::boot_with(kernel, answers, 32);
    add_swap(&mut world, 4096);
    let group = world.group("A");
    fault(&mut world, group, 2048);
    world.read(group, 0..2048);
    world.settle();
    (world, group)
}

/// What a visit to `memcg` is to look at: [anonymous, file], both lists of each.
fn quotas(world: &mut World, memcg: MemcgId, sc: &mut ScanControl) -> [u64; 2] {
    let _ = world.mem.begin_pass(NODE, sc);
    let Some(Visit::TwoLists(scan)) = world.mem.begin_lruvec(memcg, NODE, sc) else {
        panic!("no protection, and two lists of each kind");
    };
    let left = |lists: [LruList; 2]| lists.iter().map(|&list| scan.left(list)).sum();
    [left([LruList::InactiveAnon, LruList::ActiveAnon]), left([LruList::InactiveFile, LruList::ActiveFile])]
}

fn set_swappiness(world: &mut World, value: u64) {
    world.mem.core.alloc.set_sysctl(Sysctl::Swappiness, value);
}

/// Half of the file pages are active, so that inactive ones are not said to be plenty; where anonymous pages start
/// active, nothing has to be done for them.
fn without_plenty(kernel: &str) -> (World, MemcgId) {
    without_plenty_with(kernel, &[])
}

fn without_plenty_with(kernel: &str, answers: &[Rule]) -> (World, MemcgId) {
    let (mut world, group) = half_and_half_with(kernel, answers);
    world.heat(group, 0..1100);
    (world, group)
}

#[test]
fn the_first_rule_that_holds_decides() {
    for kernel in ["linux-4.19", "linux-5.5", "linux-5.10", "linux-6.1", "linux-6.12"] {
        let (mut world, group) = half_and_half(kernel);
        let at = |world: &mut World, priority| {
            let mut sc = ScanControl { priority, ..world.limit(group) };
            quotas(world, group, &mut sc)
        };
        assert_eq!(at(&mut world, 4), [0, 128], "{kernel}: plenty of inactive file pages");
        assert_eq!(at(&mut world, 0), [2048, 2048], "{kernel}: all alike");
        set_swappiness(&mut world, 0);
        assert_eq!(at(&mut world, 0), [0, 2048], "{kernel}: swappiness 0 at a limit");
        let mut global = ScanControl { priority: 0, ..world.direct() };
        let [anon, file] = quotas(&mut world, group, &mut global);
        assert_eq!([anon, file], [0, 2048], "{kernel}: by weight, all of it for files");
        set_swappiness(&mut world, 100);
        let mut boosting = ScanControl { priority: 0, may_swap: false, ..world.direct() };
        assert_eq!(quotas(&mut world, group, &mut boosting), [0, 2048], "{kernel}: not for a boost");
    }
}

/// MECHANISMS-510-72 10: `swappiness=max`.
#[test]
fn who_asks_for_anonymous_memory_alone_gets_it_however_many_file_pages_there_are_and_none_without_swap() {
    let (mut world, group) = half_and_half("linux-7.2");
    let mut sc = ScanControl { priority: 4, ..world.limit(group) };
    let mut with = |swappiness| {
        sc.swappiness = Some(swappiness);
        quotas(&mut world, group, &mut sc)
    };
    assert_eq!(with(200), [0, 128], "plenty of inactive file pages");
    assert_eq!(with(ANON_ONLY), [128, 0]);
    let mut last = ScanControl { priority: 0, swappiness: Some(ANON_ONLY), ..world.limit(group) };
    assert_eq!(quotas(&mut world, group, &mut last), [2048, 0], "at the last priority, too");
    world.mem.core.cgroups.set_swap_max(group, 0);
    assert_eq!(quotas(&mut world, group, &mut last), [0, 2048], "no slot is to be had: that is asked first");
}

#[test]
fn swappiness_divides_what_is_due_and_memory_reclaim_may_have_its_own() {
    for (kernel, expected) in [("linux-5.10", [38, 89]), ("linux-6.1", [38, 89]), ("linux-6.12", [38, 89])] {
        let (mut world, group) = without_plenty(kernel);
        let mut sc = ScanControl { priority: 4, ..world.limit(group) };
        let [anon, file] = quotas(&mut world, group, &mut sc);
        // Files: 948 >> 4 = 59 and 1100 >> 4 = 68, of each seven tenths.
        assert_eq!([anon, file], [expected[0], 41 + 47], "{kernel}");
        sc.swappiness = Some(200);
        assert_eq!(quotas(&mut world, group, &mut sc), [128, 0], "{kernel}");
    }
}

#[test]
fn up_to_5_7_rotations_weigh_and_pages_that_come_from_batches_count() {
    let (mut world, group) = without_plenty("linux-5.7");
    // Each fault counted as scanned and rotated, each new file page as scanned, each activation as both.
    let costs = *world.mem.lru.lruvec(group, NODE).costs();
    assert_eq!((costs.scanned, costs.rotated, costs.cost), ([2048, 2048 + 1100], [2048, 1100], [0, 0]));
    let mut sc = ScanControl { priority: 4, ..world.limit(group) };
    // Halved first: both are beyond a quarter of the lists. Files 140 * 1575 / 551 = 400 against 60.
    let [anon, file] = quotas(&mut world, group, &mut sc);
    assert_eq!([anon, file], [128 * 60 / 461, (59 * 400 / 461) + (68 * 400 / 461)]);
    assert_eq!(world.mem.lru.lruvec(group, NODE).costs().scanned, [1024, 1574]);
    let answers = [Rule::LruCost(LruCost::Io)];
    let mut world = World::boot_with("linux-5.7", &answers, 32);
    add_swap(&mut world, 100);
    let group = world.group("A");
    fault(&mut world, group, 100);
    assert_eq!(*world.mem.lru.lruvec(group, NODE).costs(), Default::default(), "not counted since 5.8");
}

#[test]
fn swap_that_is_not_to_be_had_leaves_files_only() {
    let mut world = World::boot("linux-6.1", 32);
    let (parent, group) = (world.group("P"), world.group("P/A"));
    fault(&mut world, group, 2048);
    world.read(group, 0..2048);
    world.settle();
    let last =
        |world: &mut World| quotas(world, group, &mut ScanControl { priority: 0, ..world.limit(parent) });
    assert_eq!(last(&mut world), [0, 2048], "no area");
    add_swap(&mut world, 100);
    assert_eq!(last(&mut world), [2048, 2048]);
    world.mem.core.cgroups.set_swap_max(parent, 40);
    assert_eq!(world.mem.core.cgroups.charge_swap(group, 40), Ok(()));
    assert_eq!(last(&mut world), [0, 2048], "P has used up what it may");
    world.mem.core.cgroups.uncharge_swap(group, 1);
    assert_eq!(last(&mut world), [2048, 2048]);
}

#[test]
fn hardly_any_file_pages_leave_anonymous_ones_only_for_the_whole_machine_not_for_a_limit() {
    for kernel in ["linux-4.19", "linux-6.1"] {
        let mut world = World::boot(kernel, 32);
        add_swap(&mut world, 4096);
        let group = world.group("A");
        fault(&mut world, group, 1024);
        world.read(group, 0..64);
        world.settle();
        // Anonymous pages are inactive for the most part.
        let sc = ScanControl { force_deactivate: true, priority: 0, ..world.limit(group) };
        if kernel == "linux-4.19" {
            for _ in 0..20 {
                let _ = world.mem.age_anon(CPU, group, NODE, &sc);
            }
        }
        world.mem.core.cgroups.flush_periodic();
        let flags = pagetide_mm::alloc::flags::AllocFlags::NO_WATERMARKS;
        while world.mem.core.alloc.alloc(CPU, Gfp::KERNEL, Order(0), flags).page.is_some() {}
        let mut global = ScanControl { priority: 1, ..world.direct() };
        let [anon, file] = quotas(&mut world, group, &mut global);
        assert_eq!([anon, file], [512, 0], "{kernel}");
        let mut limit = ScanControl { priority: 1, ..world.limit(group) };
        let [anon, file] = quotas(&mut world, group, &mut limit);
        assert_ne!([anon, file], [512, 0], "{kernel}: a limit does not ask");
    }
}

#[test]
fn what_can_be_reclaimed_counts_anonymous_pages_while_any_swap_is_free() {
    let (mut world, _) = half_and_half("linux-6.1");
    let all = |world: &World| -> u64 {
        ZoneKind::ALL.iter().map(|&kind| world.mem.zone_reclaimable_pages(NODE, kind)).sum()
    };
    assert_eq!(all(&world), 4096);
    let mut without = World::boot("linux-6.1", 32);
    fault(&mut without, ROOT, 2048);
    without.read(ROOT, 0..100);
    without.settle();
    assert_eq!(all(&without), 100);
    add_swap(&mut world, 1);
    assert_eq!(all(&world), 4096);
}

#[test]
fn a_visit_ends_with_a_look_at_active_anonymous_pages_that_are_too_many() {
    for (kernel, swap, aged) in [
        ("linux-5.4", 100, 32),
        ("linux-5.4", 0, 0),
        ("linux-5.7", 100, 32),
        ("linux-6.1", 100, 0), // Pages start inactive.
    ] {
        let mut world = World::boot(kernel, 32);
        add_swap(&mut world, swap);
        let group = world.group("A");
        fault(&mut world, group, 1000);
        world.read(group, 0..2000);
        world.settle();
        // Files only: there are plenty of inactive ones.
        let mut sc = ScanControl { priority: 4, ..world.limit(group) };
        let passed = world.pass(&mut sc);
        assert_eq!((passed.scanned, passed.reclaimed, passed.deactivated), (32, 32, aged), "{kernel} {swap}");
        let stat = |stat| world.mem.core.cgroups.local_stat(group, NODE, stat);
        assert_eq!(stat(MemcgStat::PgDeactivate), aged, "{kernel}");
    }
}

#[test]
fn kswapd_ages_all_cgroups_where_the_machine_has_too_few_inactive_pages_up_to_5_4_those_that_have() {
    let ages = |kernel| {
        let mut world = World::boot(kernel, 32);
        add_swap(&mut world, 100);
        let (hot, cold) = (world.group("A"), world.group("B"));
        fault(&mut world, hot, 300);
        fault(&mut world, cold, 500);
        let sc = ScanControl::kswapd(ZoneKind::Movable);
        for _ in 0..8 {
            let _ = world.mem.age_anon(CPU, cold, NODE, &sc);
        }
        let first = world.mem.anon_to_age(NODE, &sc);
        for _ in 0..5 {
            let _ = world.mem.age_anon(CPU, cold, NODE, &sc);
        }
        [first, world.mem.anon_to_age(NODE, &sc)].map(|groups| groups.len())
    };
    // A: 300 active. B: 244 active, 256 inactive, then 84 and 416.
    assert_eq!(ages("linux-5.4"), [1, 1]);
    assert_eq!(ages("linux-5.5"), [3, 0], "with the root");
    assert_eq!(ages("linux-6.1"), [0, 0], "all start inactive");
}

/// A visit meets its target of 32 pages in the first round, in which most of the few anonymous pages are looked at
/// that it is to: the same part of several hundred file pages is left.
#[test]
fn since_6_0_the_rest_of_the_quotas_is_dropped_after_one_round_more() {
    let [spent, dropped] = [QuotaRest::Spent, QuotaRest::Dropped].map(|rest| {
        let (mut world, group) = without_plenty_with("linux-6.1", &[Rule::QuotaRest(rest)]);
        set_swappiness(&mut world, 10);
        let mut sc = ScanControl { priority: 1, ..world.limit(group) };
        let _ = world.mem.begin_pass(NODE, &mut sc);
        let mut visit = world.mem.begin_lruvec(group, NODE, &mut sc).expect("no protection");
        let mut scanned = 0;
        while let Some(report) = world.mem.shrink_chunk(CPU, &mut visit, &mut sc) {
            scanned += u64::from(report.scanned);
        }
        scanned
    });
    assert!(dropped <= 2 * 4 * 32 && spent > dropped + 100, "{spent} and {dropped} pages");
}
