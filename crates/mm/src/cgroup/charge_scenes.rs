//! What a page or a kernel object costs whom: stocks of CPUs, rests of pages, margins (MECHANISMS 8.2,
//! MECHANISMS-6X 4.1).
//!
//! Neighbours: [`super::charge`] for the steps, a property over drawn trees beside `src`.

use units::{CpuId, NodeId, PAGE_SIZE};

use crate::base::ids::MemcgId;
use crate::base::vmstat::MemcgStat;
use crate::cgroup::tree::{Charge, Limit, Memcgs, UNLIMITED};
use crate::version::presets::Version;

const ROOT: MemcgId = MemcgId::ROOT;
const HERE: CpuId = CpuId(0);
const THERE: CpuId = CpuId(1);
const PAGE: u32 = PAGE_SIZE as u32;

/// P with its child A, and a sibling B of P, on a machine of two CPUs: a batch is 64 pages.
fn tree() -> (Memcgs, MemcgId, MemcgId, MemcgId) {
    let mut tree = Memcgs::new(&Version::parse("linux-6.1").unwrap(), 1, 2);
    let parent = tree.create(ROOT, "P");
    let (child, other) = (tree.create(parent, "A"), tree.create(ROOT, "B"));
    (tree, parent, child, other)
}

fn usage(tree: &Memcgs, memcg: MemcgId) -> u64 {
    tree[memcg].memory.usage
}

fn kernel_bytes(tree: &Memcgs, memcg: MemcgId) -> u64 {
    tree.local_stat(memcg, NodeId(0), MemcgStat::KernelBytes)
}

// ---- pages ----

#[test]
fn the_root_pays_for_nothing_itself() {
    let (mut tree, ..) = tree();
    assert_eq!(tree.try_charge(HERE, ROOT, 7, 64), Charge::Done);
    tree.charge_by_force(ROOT, 7);
    assert_eq!(usage(&tree, ROOT), 0);
    tree.uncharge(ROOT, 7);
    assert_eq!((usage(&tree, ROOT), tree.stocked_pages(ROOT)), (0, 0));
}

#[test]
fn a_charge_is_paid_by_every_ancestor_and_given_back_by_all() {
    let (mut tree, parent, child, other) = tree();
    tree.charge_by_force(child, 10);
    assert_eq!([ROOT, parent, child, other].map(|group| usage(&tree, group)), [10, 10, 10, 0]);
    tree.uncharge(child, 4);
    assert_eq!([ROOT, parent, child, other].map(|group| usage(&tree, group)), [6, 6, 6, 0]);
}

#[test]
fn a_stock_serves_charges_up_to_its_last_page_on_its_own_cpu() {
    let (mut tree, _, child, _) = tree();
    assert_eq!(tree.try_charge(HERE, child, 4, 64), Charge::Done);
    assert_eq!((usage(&tree, child), tree.stocked_pages(child)), (64, 60));
    assert_eq!(tree.try_charge(THERE, child, 1, 64), Charge::Done);
    assert_eq!((usage(&tree, child), tree.stocked_pages(child)), (128, 123), "another CPU, another batch");
    assert_eq!(tree.try_charge(HERE, child, 60, 64), Charge::Done);
    assert_eq!((usage(&tree, child), tree.stocked_pages(child)), (128, 63));
    assert_eq!(tree.try_charge(THERE, child, 64, 64), Charge::Done);
    assert_eq!((usage(&tree, child), tree.stocked_pages(child)), (192, 63), "one too many for the stock");
}

#[test]
fn a_charge_larger_than_a_batch_leaves_nothing_in_stock() {
    let (mut tree, _, child, _) = tree();
    assert_eq!(tree.try_charge(HERE, child, 100, 64), Charge::Done);
    assert_eq!((usage(&tree, child), tree.stocked_pages(child)), (100, 0));
}

#[test]
fn a_stock_holds_one_batch_at_most() {
    let (mut tree, _, child, _) = tree();
    assert_eq!(tree.charge_batch(), 64);
    assert_eq!(tree.try_charge(HERE, child, 1, 65), Charge::Done);
    assert_eq!((usage(&tree, child), tree.stocked_pages(child)), (65, 64));
    assert_eq!(tree.try_charge(HERE, child, 64, 64), Charge::Done);
    assert_eq!((usage(&tree, child), tree.stocked_pages(child)), (65, 0), "a whole batch comes out of it");
    assert_eq!(tree.try_charge(HERE, child, 1, 66), Charge::Done);
    assert_eq!((usage(&tree, child), tree.stocked_pages(child)), (66, 0), "65 would be too many: given back");
}

#[test]
fn draining_a_subtree_leaves_the_stocks_of_others() {
    let (mut tree, parent, child, other) = tree();
    let _ = tree.try_charge(HERE, child, 1, 64);
    let _ = tree.try_charge(THERE, other, 1, 64);
    assert_eq!([ROOT, parent, child, other].map(|group| tree.stocked_pages(group)), [126, 63, 63, 63]);
    tree.drain_all_stocks(parent);
    assert_eq!([child, other].map(|group| tree.stocked_pages(group)), [0, 63]);
    assert_eq!([child, other].map(|group| usage(&tree, group)), [1, 64]);
    assert_eq!(tree.try_charge(HERE, child, 1, 64), Charge::Done);
    assert_eq!(tree.stocked_pages(child), 63, "the next charge fills it again");
}

#[test]
fn the_nearest_full_ancestor_stands_in_the_way_and_a_limit_can_be_reached() {
    let (mut tree, parent, child, _) = tree();
    tree.set_limit(parent, Limit::Max, 10);
    assert_eq!(tree.try_charge(HERE, child, 10, 10), Charge::Done);
    assert_eq!(tree.try_charge(HERE, child, 1, 1), Charge::Over(parent));
    tree.set_limit(child, Limit::Max, 10);
    assert_eq!(tree.try_charge(HERE, child, 1, 1), Charge::Over(child));
    assert_eq!(tree.try_charge(HERE, child, 1, 64), Charge::Over(child), "nor a batch");
    assert_eq!((usage(&tree, child), usage(&tree, parent)), (10, 10), "who fails pays nothing");
    tree.charge_by_force(child, 1);
    assert_eq!(usage(&tree, child), 11, "a dying task passes any limit");
}

#[test]
fn the_margin_is_what_is_left_below_the_own_limit() {
    let (mut tree, _, child, _) = tree();
    tree.charge_by_force(child, 10);
    assert_eq!(tree.margin(child), UNLIMITED - 10);
    for (max, margin) in [(15, 5), (10, 0), (3, 0)] {
        tree.set_limit(child, Limit::Max, max);
        assert_eq!(tree.margin(child), margin);
    }
}

// ---- kernel objects ----

/// Charges a page for objects of `memcg` on `cpu`, as a task does whose stock does not suffice.
fn charge_objects(tree: &mut Memcgs, cpu: CpuId, memcg: MemcgId) {
    tree.charge_by_force(memcg, 1);
    tree.object_pages_charged(cpu, memcg, 1);
}

#[test]
fn objects_come_out_of_a_page_that_was_charged_to_the_last_byte() {
    let (mut tree, _, child, other) = tree();
    assert!(tree.consume_object_stock(HERE, ROOT, 100), "the root pays for nothing");
    assert!(!tree.consume_object_stock(HERE, child, 1), "no page yet");
    charge_objects(&mut tree, HERE, child);
    assert_eq!(kernel_bytes(&tree, child), PAGE_SIZE);
    assert!(!tree.consume_object_stock(HERE, other, 1), "another group's page");
    assert!(!tree.consume_object_stock(THERE, child, 1), "another CPU's page");
    assert!(tree.consume_object_stock(HERE, child, PAGE - 1));
    assert!(!tree.consume_object_stock(HERE, child, 2));
    assert!(tree.consume_object_stock(HERE, child, 1));
    assert!(!tree.consume_object_stock(HERE, child, 1));
}

#[test]
fn a_page_goes_back_once_all_its_bytes_were_freed_and_the_root_never_had_one() {
    let (mut tree, _, child, _) = tree();
    charge_objects(&mut tree, HERE, child);
    assert!(tree.consume_object_stock(HERE, child, PAGE));
    tree.uncharge_object(HERE, child, PAGE - 1);
    assert_eq!((usage(&tree, child), kernel_bytes(&tree, child)), (1, PAGE_SIZE));
    tree.uncharge_object(HERE, ROOT, PAGE);
    assert_eq!(usage(&tree, ROOT), 1);
    tree.uncharge_object(HERE, child, 1);
    assert_eq!((usage(&tree, child), kernel_bytes(&tree, child)), (0, 0));
    assert!(!tree.consume_object_stock(HERE, child, 1), "nothing is left of it");
}

#[test]
fn of_several_pages_freed_at_once_the_rest_stays() {
    let (mut tree, _, child, _) = tree();
    for _ in 0..3 {
        charge_objects(&mut tree, HERE, child);
    }
    assert!(tree.consume_object_stock(HERE, child, 3 * PAGE));
    tree.uncharge_object(HERE, child, 2 * PAGE + 10);
    assert_eq!((usage(&tree, child), kernel_bytes(&tree, child)), (1, PAGE_SIZE));
    assert!(!tree.consume_object_stock(HERE, child, 11));
    assert!(tree.consume_object_stock(HERE, child, 10));
}

#[test]
fn a_rest_that_a_cpu_gives_up_waits_for_the_next_that_needs_it() {
    let (mut tree, _, child, other) = tree();
    charge_objects(&mut tree, HERE, child);
    assert!(tree.consume_object_stock(HERE, child, 1000));
    // Another group's objects push it out: 3096 bytes of a page in use stay charged.
    charge_objects(&mut tree, HERE, other);
    assert_eq!((usage(&tree, child), kernel_bytes(&tree, child)), (1, PAGE_SIZE));
    assert!(!tree.consume_object_stock(HERE, child, 1));
    // The next page for the first group comes on top of that rest.
    charge_objects(&mut tree, THERE, child);
    assert!(tree.consume_object_stock(THERE, child, 3096 + PAGE));
    assert!(!tree.consume_object_stock(THERE, child, 1));
    assert_eq!(usage(&tree, child), 2);
}

#[test]
fn whole_pages_of_what_a_cpu_gives_up_are_free_again() {
    let (mut tree, parent, child, other) = tree();
    for group in [child, other] {
        for _ in 0..2 {
            charge_objects(&mut tree, if group == child { HERE } else { THERE }, group);
        }
    }
    assert!(tree.consume_object_stock(HERE, child, 100));
    tree.drain_all_stocks(parent);
    assert_eq!((usage(&tree, child), kernel_bytes(&tree, child)), (1, PAGE_SIZE));
    assert_eq!((usage(&tree, other), kernel_bytes(&tree, other)), (2, 2 * PAGE_SIZE), "not below P");
    tree.uncharge_object(THERE, child, 100);
    assert_eq!((usage(&tree, child), kernel_bytes(&tree, child)), (0, 0), "with the rest it is a page");
}

#[test]
fn stacks_and_page_tables_count_as_kernel_memory_while_they_live() {
    let (mut tree, _, child, _) = tree();
    tree.count_kernel_pages(child, 4);
    assert_eq!(kernel_bytes(&tree, child), 4 * PAGE_SIZE);
    tree.uncount_kernel_pages(child, 3);
    assert_eq!(kernel_bytes(&tree, child), PAGE_SIZE);
}
