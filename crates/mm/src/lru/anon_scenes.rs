//! What comes back from swap, and what reclaim of anonymous and of file pages is said to have cost (SWAP 1.3,
//! 1.4, 2.5).
//!
//! Neighbours: [`super::scenes`] for the machine and for files alone.

use std_alloc::vec::Vec;

use units::Order;

use crate::base::event::NoTrace;
use crate::base::frame::PageFlags;
use crate::base::ids::MemcgId;
use crate::base::vmstat::{MemcgStat, VmEvent};
use crate::lru::cost::ChunkCost;
use crate::lru::lists::{LruList, ScanCosts};
use crate::lru::scenes::{CPU, Machine, NEAR_NODE, ROOT};
use crate::swap::areas::{AreaKind, AreaSpec};

/// A machine with so many free slots, and pages of P/A on each list: [inactive anon, active anon, inactive
/// file, active file].
fn machine(kernel: &str, slots: u64, listed: [u64; 4]) -> Machine {
    let mut machine = Machine::boot(kernel);
    machine.core.swap.add_area(AreaSpec { kind: AreaKind::Zram, pages: slots, priority: None });
    let [_, child, _] = machine.groups;
    for (list, count) in LruList::EVICTABLE.into_iter().zip(listed) {
        for _ in 0..count {
            let pfn = machine.page(child);
            machine.set(pfn, flags_of(list));
            machine.lru.insert(&mut machine.core, pfn);
        }
    }
    machine.core.cgroups.flush_periodic();
    machine
}

fn flags_of(list: LruList) -> PageFlags {
    let flags = if list.is_file() { PageFlags::default() } else { PageFlags::SWAP_BACKED };
    if list.is_active() { flags.set(PageFlags::ACTIVE) } else { flags }
}

/// Whether a page of P/A that was evicted for P is active at once when it comes back `distance` evictions
/// later.
fn comes_back(machine: &mut Machine, anon: bool, workingset: bool, distance: u64) -> bool {
    let [parent, child, _] = machine.groups;
    let kind = if anon { PageFlags::SWAP_BACKED } else { PageFlags::default() };
    let flags = if workingset { kind.set(PageFlags::WORKINGSET) } else { kind };
    let evicted = machine.page(child);
    machine.set(evicted, flags);
    let shadow = machine.evict(evicted, parent);
    let other = machine.page(child);
    (1..distance).for_each(|_| {
        let _ = machine.evict(other, parent);
    });
    let back = machine.page(child);
    machine.set(back, kind);
    machine.refault(back, shadow)
}

#[test]
fn a_refault_is_held_against_what_could_have_gone_instead() {
    let listed = [40, 30, 20, 10];
    for (kernel, slots, of_anon, of_file) in [
        ("linux-6.1", 100, 10 + 20 + 30, 10 + 30 + 40),
        ("linux-6.12", 100, 10 + 20 + 30, 10 + 30 + 40),
        ("linux-6.12", 0, 10 + 20, 10),
        ("linux-5.7", 100, 10 + 20, 10),
    ] {
        for (anon, room) in [(true, of_anon), (false, of_file)] {
            let mut within = machine(kernel, slots, listed);
            assert!(comes_back(&mut within, anon, false, room), "{kernel} {slots} {anon}");
            let mut beyond = machine(kernel, slots, listed);
            assert!(!comes_back(&mut beyond, anon, false, room + 1), "{kernel} {slots} {anon}");
        }
    }
}

#[test]
fn since_6_12_the_swap_of_whom_reclaim_worked_for_counts() {
    for (kernel, counts) in [("linux-6.1", false), ("linux-6.12", true)] {
        let mut machine = machine(kernel, 100, [40, 30, 20, 10]);
        machine.core.cgroups.set_swap_max(machine.groups[1], 0); // P may, P/A may not.
        assert_eq!(comes_back(&mut machine, true, false, 31), counts, "{kernel}");
    }
}

#[test]
fn refaults_are_counted_by_kind_and_those_of_the_working_set_are_a_cost() {
    for (kernel, cost) in [("linux-5.10", 1), ("linux-6.1", 1), ("linux-6.12", 32)] {
        for (anon, counters) in [
            (
                true,
                [
                    VmEvent::WorkingsetRefaultAnon,
                    VmEvent::WorkingsetActivateAnon,
                    VmEvent::WorkingsetRestoreAnon,
                ],
            ),
            (
                false,
                [
                    VmEvent::WorkingsetRefaultFile,
                    VmEvent::WorkingsetActivateFile,
                    VmEvent::WorkingsetRestoreFile,
                ],
            ),
        ] {
            let mut machine = machine(kernel, 100, [200, 200, 200, 200]);
            let counted = |machine: &Machine| counters.map(|event| machine.event(event));
            assert!(comes_back(&mut machine, anon, false, 5));
            assert_eq!((counted(&machine), costs(&machine)), ([1, 1, 0], [[0, 0]; 3]), "{kernel}");
            assert!(comes_back(&mut machine, anon, true, 5));
            let expected = if anon { [cost, 0] } else { [0, cost] };
            assert_eq!((counted(&machine), costs(&machine)), ([2, 2, 1], [expected; 3]), "{kernel}");
            let stat = if anon { MemcgStat::WorkingsetRestoreAnon } else { MemcgStat::WorkingsetRestoreFile };
            assert_eq!(machine.stat(machine.groups[1], stat), 1, "{kernel}");
        }
    }
}

/// [anon, file] cost of the root, P and P/A.
fn costs(machine: &Machine) -> [[u64; 2]; 3] {
    let [parent, child, _] = machine.groups;
    [ROOT, parent, child].map(|memcg| machine.near(memcg).costs().cost)
}

fn note(machine: &mut Machine, memcg: MemcgId, list: LruList, chunk: ChunkCost) {
    machine.lru.note_chunk(&machine.core, (memcg, NEAR_NODE, list), chunk);
}

#[test]
fn a_chunk_costs_what_was_written_and_since_6_2_what_was_scanned_in_vain() {
    let chunk = ChunkCost { scanned: 32, taken: 30, reclaimed: 10, pageout: 4, rotated: 3 };
    for (kernel, cost) in
        [("linux-6.1", 4), ("linux-6.12", (32 * 4) + 22), ("linux-6.1+rotation-cost", (32 * 4) + 22)]
    {
        let mut machine = machine(kernel, 100, [400, 400, 400, 400]);
        let child = machine.groups[1];
        note(&mut machine, child, LruList::ActiveAnon, chunk);
        assert_eq!(costs(&machine), [[0, 0]; 3], "{kernel}: an active list costs nothing");
        note(&mut machine, child, LruList::InactiveAnon, chunk);
        assert_eq!(costs(&machine), [[cost, 0]; 3], "{kernel}: in all cgroups above");
    }
}

#[test]
fn beyond_a_quarter_of_the_lists_both_costs_are_halved_once() {
    let mut machine = machine("linux-6.1", 100, [10, 10, 10, 10]);
    let [_, child, other] = machine.groups;
    let written = |pageout| ChunkCost { scanned: 32, taken: 32, reclaimed: 0, pageout, rotated: 0 };
    note(&mut machine, child, LruList::InactiveFile, written(10));
    assert_eq!(costs(&machine), [[0, 10]; 3], "a quarter of 40");
    note(&mut machine, child, LruList::InactiveAnon, written(7));
    assert_eq!(costs(&machine), [[3, 5]; 3]);
    note(&mut machine, child, LruList::InactiveAnon, written(100));
    assert_eq!(costs(&machine), [[51, 2]; 3], "one step for each event, however far beyond");
    note(&mut machine, other, LruList::InactiveAnon, written(1));
    assert_eq!(costs(&machine), [[26, 1], [51, 2], [51, 2]], "what another group costs the root knows alone");
}

#[test]
fn up_to_5_7_each_group_knows_its_own_rotations_and_forgets_half_beyond_a_quarter() {
    let mut machine = machine("linux-5.7", 100, [60, 40, 20, 20]);
    let child = machine.groups[1];
    let chunk = ChunkCost { scanned: 32, taken: 26, reclaimed: 10, pageout: 4, rotated: 16 };
    note(&mut machine, child, LruList::ActiveAnon, chunk);
    let of = |machine: &Machine, memcg| *machine.near(memcg).costs();
    let noted = ScanCosts { scanned: [26, 0], rotated: [16, 0], ..ScanCosts::default() };
    assert_eq!((of(&machine, child), of(&machine, ROOT)), (noted, ScanCosts::default()));
    let halved = ScanCosts { scanned: [13, 0], rotated: [8, 0], ..ScanCosts::default() };
    assert_eq!(machine.lru.forget_rotations(child, NEAR_NODE), halved, "26 are more than a quarter of 100");
    assert_eq!(machine.lru.forget_rotations(child, NEAR_NODE), halved, "13 are not");
}

#[test]
fn without_a_swap_area_nothing_is_noted() {
    let mut machine = Machine::boot("linux-6.12");
    let child = machine.groups[1];
    note(&mut machine, child, LruList::InactiveFile, ChunkCost { scanned: 32, ..ChunkCost::default() });
    assert_eq!(costs(&machine), [[0, 0]; 3]);
    let pages: Vec<_> = (0..3).map(|_| machine.block(CPU, child, Order(0), false)).collect();
    let mut old = Machine::boot("linux-4.19");
    pages.iter().for_each(|_| {
        let pfn = old.page(child);
        old.add(CPU, pfn);
    });
    let Machine { core, lru, .. }: &mut Machine = &mut old;
    lru.drain::<NoTrace>(core, CPU);
    assert_eq!(*old.near(child).costs(), ScanCosts::default());
}
