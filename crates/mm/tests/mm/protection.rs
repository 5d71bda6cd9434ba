//! `memory.low` and `memory.min`: how a parent's protection is shared out, and what it takes off a scan
//! (MECHANISMS 6.5, 8.3; MECHANISMS-6X 3.2).

use std::fmt::Write;

use crate::world::{CPU, NODE, World};
use insta::assert_snapshot;
use pagetide_mm::MemcgId;
use pagetide_mm::base::frame::PageFlags;
use pagetide_mm::base::gfp::Gfp;
use pagetide_mm::cgroup::tree::{Limit, Memcgs, UNLIMITED};
use pagetide_mm::decide::priority::{Escalation, Next};
use pagetide_mm::version::presets::Version;

/// A cgroup: its path, pages of its own, `memory.low`, `memory.min`. Parents come first.
type Group<'a> = (&'a str, u64, u64, u64);

/// What each cgroup below `target` is protected by on a walk from there: a line each.
fn walk(kernel: &str, groups: &[Group<'_>], target: &str) -> String {
    let mut tree = Memcgs::new(&Version::parse(kernel).expect("a preset"), 1, 1);
    for &(path, pages, low, min) in groups {
        let (parent, name) = path.rsplit_once('/').unwrap_or(("", path));
        let parent = tree.find(parent).expect("parents come first");
        let id = tree.create(parent, name);
        tree.set_limit(id, Limit::Low, low);
        tree.set_limit(id, Limit::Min, min);
        tree.charge_by_force(id, pages);
    }
    let target = tree.find(target).expect("a group");
    let mut text = String::new();
    for id in tree.subtree(target).to_vec() {
        let verdict = tree.protection(target, id);
        let group = &tree[id];
        let amount = |pages| if pages == UNLIMITED { "all".into() } else { format!("{pages}") };
        let (low, min) = (amount(group.effective_low), amount(group.effective_min));
        let path = if group.path.is_empty() { "root" } else { &group.path };
        let _ = writeln!(text, "{path} ({}): low {low}, min {min}: {verdict:?}", group.memory.usage);
    }
    text
}

const BOTH: [&str; 2] = ["linux-5.4", "linux-6.1"];

#[test]
fn siblings_that_claim_more_than_their_parent_has_share_it_by_what_they_use_of_their_claims() {
    let groups = [("P", 0, 100, 0), ("P/A", 80, 100, 0), ("P/B", 90, 60, 0)];
    // 80 and 60 are claimed of 100.
    let shares = walk(BOTH[1], &groups, "");
    assert_eq!(walk(BOTH[0], &groups, ""), shares);
    assert_snapshot!(shares, @r"
    root (170): low 0, min 0: None
    P (170): low 100, min 0: None
    P/A (80): low 57, min 0: None
    P/B (90): low 42, min 0: None
    ");
    // From P on, nothing above the groups counts.
    assert_snapshot!(walk(BOTH[1], &groups, "P"), @r"
    P (170): low 0, min 0: None
    P/A (80): low 100, min 0: BelowLow
    P/B (90): low 60, min 0: None
    ");
}

#[test]
fn what_a_parent_has_beyond_its_childrens_claims_is_shared_out_only_up_to_5_6() {
    let groups = [("P", 0, 100, 0), ("P/A", 30, 100, 0), ("P/B", 90, 20, 0)];
    // 30 and 20 are claimed of 100: A's part of it is 60, B's 40, of which it asks for 20.
    assert_snapshot!(walk(BOTH[0], &groups, ""), @r"
    root (120): low 0, min 0: None
    P (120): low 100, min 0: None
    P/A (30): low 60, min 0: BelowLow
    P/B (90): low 20, min 0: None
    ");
    assert_snapshot!(walk(BOTH[1], &groups, ""), @r"
    root (120): low 0, min 0: None
    P (120): low 100, min 0: None
    P/A (30): low 30, min 0: BelowLow
    P/B (90): low 20, min 0: None
    ");
}

#[test]
fn a_parent_without_protection_has_none_for_its_children() {
    let groups = [("P", 0, 0, 0), ("P/A", 80, 100, 50), ("P/B", 90, 0, 0)];
    let shares = walk(BOTH[1], &groups, "");
    assert_eq!(walk(BOTH[0], &groups, ""), shares);
    assert_snapshot!(shares, @r"
    root (170): low 0, min 0: None
    P (170): low 0, min 0: None
    P/A (80): low 0, min 0: None
    P/B (90): low 0, min 0: None
    ");
}

#[test]
fn grandchildren_share_what_their_parent_got() {
    let groups =
        [("P", 0, 100, 0), ("P/A", 0, 80, 0), ("P/A/x", 50, 50, 0), ("P/A/y", 40, 60, 0), ("P/B", 60, 40, 0)];
    // A and B claim 80 and 40 of 100, x and y then 50 and 40 of A's 66.
    let shares = walk(BOTH[1], &groups, "");
    assert_eq!(walk(BOTH[0], &groups, ""), shares);
    assert_snapshot!(shares, @r"
    root (150): low 0, min 0: None
    P (150): low 100, min 0: None
    P/A (90): low 66, min 0: None
    P/A/x (50): low 36, min 0: None
    P/A/y (40): low 29, min 0: None
    P/B (60): low 33, min 0: None
    ");
    // x and y claim 50 and 40 of A's 80.
    assert_snapshot!(walk(BOTH[1], &groups, "P"), @r"
    P (150): low 0, min 0: None
    P/A (90): low 80, min 0: None
    P/A/x (50): low 44, min 0: None
    P/A/y (40): low 35, min 0: None
    P/B (60): low 40, min 0: None
    ");
    assert_snapshot!(walk(BOTH[1], &groups, "P/A"), @r"
    P/A (90): low 0, min 0: None
    P/A/x (50): low 50, min 0: BelowLow
    P/A/y (40): low 60, min 0: BelowLow
    ");
}

#[test]
fn low_and_min_are_shared_out_each_by_itself() {
    let groups = [("P", 0, 100, 50), ("P/A", 80, 100, 40), ("P/B", 60, 20, 40)];
    let shares = walk(BOTH[1], &groups, "");
    assert_eq!(walk(BOTH[0], &groups, ""), shares);
    assert_snapshot!(shares, @r"
    root (140): low 0, min 0: None
    P (140): low 100, min 50: None
    P/A (80): low 80, min 25: BelowLow
    P/B (60): low 20, min 25: None
    ");
}

#[test]
fn unlimited_protection_is_no_number_to_multiply() {
    let groups = [("P", 0, UNLIMITED, 0), ("P/A", 30, UNLIMITED, 0), ("P/B", 10, 0, 0)];
    assert_snapshot!(walk(BOTH[0], &groups, ""), @r"
    root (40): low 0, min 0: None
    P (40): low all, min 0: BelowLow
    P/A (30): low all, min 0: BelowLow
    P/B (10): low 0, min 0: None
    ");
    assert_snapshot!(walk(BOTH[1], &groups, ""), @r"
    root (40): low 0, min 0: None
    P (40): low all, min 0: BelowLow
    P/A (30): low 30, min 0: BelowLow
    P/B (10): low 0, min 0: None
    ");
}

#[test]
fn a_group_is_protected_up_to_its_protection_and_an_empty_one_is_not() {
    let groups =
        [("min", 100, 200, 100), ("low", 100, 100, 99), ("none", 100, 99, 99), ("empty", 0, 100, 100)];
    assert_snapshot!(walk(BOTH[1], &groups, ""), @r"
    root (300): low 0, min 0: None
    min (100): low 200, min 100: BelowMin
    low (100): low 100, min 99: BelowLow
    none (100): low 99, min 99: None
    empty (0): low 0, min 0: None
    ");
}

/// P/A with 1000 pages on its inactive list and a usage of 2000.
fn half_file_pages(kernel: &str, low: u64, min: u64) -> (World, MemcgId, MemcgId) {
    let mut world = World::boot(kernel, 16);
    let parent = world.group("P");
    let child = world.group("P/A");
    world.read(child, 0..1000);
    world.settle();
    let cgroups = &mut world.mem.core.cgroups;
    let rest = 2000 - cgroups[child].memory.usage;
    cgroups.charge_by_force(child, rest);
    cgroups.set_limit(child, Limit::Low, low);
    cgroups.set_limit(child, Limit::Min, min);
    (world, parent, child)
}

/// Pages that a pass of reclaim of P scans of A at `priority`, and whether A counts as skipped.
fn scan(kernel: &str, low: u64, min: u64, override_low: bool, priority: u8) -> (u64, bool) {
    let (mut world, parent, _) = half_file_pages(kernel, low, min);
    let mut sc = world.limit(parent);
    (sc.priority, sc.nr_to_reclaim, sc.memcg_low_reclaim) = (priority, 10_000, override_low);
    (world.pass(&mut sc).scanned, sc.memcg_low_skipped)
}

#[test]
fn protection_is_taken_off_a_scan_since_5_4() {
    for kernel in ["linux-4.19", "linux-5.3"] {
        assert_eq!(scan(kernel, 1000, 0, false, 0), (1000, false), "{kernel}: above memory.low is above it");
    }
    for kernel in ["linux-5.4", "linux-5.5", "linux-6.1-scaled-protection-skips"] {
        assert_eq!(scan(kernel, 1000, 0, false, 0), (500, false), "{kernel}: 1000 less 1000 * 1000 / 2000");
    }
    for kernel in ["linux-6.1", "linux-6.12", "linux-5.4+scaled-protection-skips"] {
        assert_eq!(scan(kernel, 1000, 0, false, 0), (501, true), "{kernel}: 1000 less 1000 * 1000 / 2001");
    }
}

#[test]
fn a_scan_is_scaled_by_the_larger_protection_and_without_low_by_min() {
    let (kept, low) = (false, true);
    for (setting, scanned) in [
        ((0, 0, kept), (1000, false)),
        ((1000, 500, kept), (501, true)),
        ((1000, 500, low), (751, false)),
        ((1000, 0, low), (1000, false)),
        ((1000, 1500, kept), (251, false)),
        ((1000, 1000, kept), (501, false)),
    ] {
        let (low, min, override_low) = setting;
        assert_eq!(scan("linux-6.1", low, min, override_low, 0), scanned, "{setting:?}");
    }
}

#[test]
fn whatever_is_protected_32_pages_are_left_to_scan_before_the_priority() {
    for kernel in BOTH {
        let scanned = |priority| scan(kernel, 1999, 0, false, priority).0;
        assert_eq!([0, 1, 5, 6].map(scanned), [32, 16, 1, 0], "{kernel}");
    }
}

#[test]
fn a_protected_group_that_was_emptied_is_visited() {
    for kernel in BOTH {
        let mut world = World::boot(kernel, 16);
        let (parent, child) = (world.group("P"), world.group("P/A"));
        world.mem.core.cgroups.set_limit(child, Limit::Low, UNLIMITED);
        world.mem.core.cgroups.charge_by_force(child, 10);
        let mut sc = world.limit(parent);
        sc.priority = 0;
        let _ = world.pass(&mut sc);
        assert!(sc.memcg_low_skipped);
        world.mem.core.cgroups.uncharge(child, 10);
        let mut sc = world.limit(parent);
        assert!(world.mem.begin_lruvec(child, NODE, &mut sc).is_some(), "{kernel}");
    }
}

#[test]
fn a_run_that_freed_nothing_of_what_protection_left_tries_without_it_since_5_14() {
    // All but 32 pages are protected, and the oldest 200 are being read: whatever the priority, the run
    // meets only those. It gave up, and the task that charged was killed.
    for (kernel, freed) in [("linux-5.4", 0), ("linux-5.5", 0), ("linux-6.1", 32), ("linux-6.12", 32)] {
        let (mut world, parent, _) = half_file_pages(kernel, 1999, 0);
        for index in 0..200 {
            let pfn = world.page(index).expect("just read");
            world.mem.core.alloc.frames.set_flags(pfn, PageFlags::LOCKED);
        }
        let mut run = Escalation::limit(Gfp::KERNEL, parent, 1);
        let done = loop {
            match run.step(&mut world.mem, CPU) {
                Next::Shrink(_) => {
                    let _ = world.pass(&mut run.sc);
                }
                Next::WakeFlusher(_) | Next::Pause(..) => {}
                Next::Done(pages) => break pages,
            }
        };
        assert_eq!(done.min(32), freed, "{kernel}");
    }
}
