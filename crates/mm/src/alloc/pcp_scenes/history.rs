//! The lists of 2.6.32 and before, drawn: which end, which order, which type (source 1; MECHANISMS 3.4).
//!
//! ```text
//!   head [ M0 M1 u4 ] tail     pages on a list with the type that they were freed or refilled as
//! ```
//! Pages are numbered as they are touched; refills get them in rising order, as a zone of large blocks
//! hands them out.

use std_alloc::format;
use std_alloc::string::String;

use super::*;
use crate::version::rules::{ColdOrder, PcpLists, PcpReserve};

const BATCH: u32 = 4;

fn cpu(kernel: &str) -> Cpu {
    let mut cpu = Cpu::new(Classic, BATCH, 100, 100);
    cpu.rules = Version::parse(kernel).unwrap().rules;
    cpu
}

const PLAIN: &str = "linux-2.6.32";
const FALLING: &str = "linux-2.6.32-pcp-cold-order";
const SINGLE_LIST: &str = "linux-2.6.32-pcp-per-migratetype";
const NEITHER: &str = "linux-2.6.32-pcp-cold-order-pcp-per-migratetype";

/// Takes a page of a type from an end, after a refill if there is none: its number.
fn take(cpu: &mut Cpu, kind: MigrateType, end: End) -> u32 {
    let found = cpu.pcp.take(&mut cpu.frames, &cpu.rules, SINGLE, kind, end);
    let pfn = found.unwrap_or_else(|| {
        refill(cpu, kind, end);
        cpu.pcp.take(&mut cpu.frames, &cpu.rules, SINGLE, kind, end).expect("it was just refilled")
    });
    pfn.0
}

/// A refill as [`crate::alloc::page_alloc`] makes it for a hot or a cold request.
fn refill(cpu: &mut Cpu, kind: MigrateType, end: End) {
    let end = if cpu.rules.cold_order == ColdOrder::Falling { End::Head } else { end };
    let mut previous = None;
    for _ in 0..BATCH {
        let pfn = cpu.block(SINGLE);
        cpu.pcp.refill_with(&mut cpu.frames, &cpu.rules, pfn, (SINGLE, kind), end, previous);
        previous = Some(pfn);
    }
}

fn free(cpu: &mut Cpu, pfn: u32, kind: MigrateType, end: End) {
    let excess = cpu.pcp.put(&mut cpu.frames, &cpu.rules, Pfn(pfn), (SINGLE, kind), end, &cpu.marks);
    assert_eq!(excess, 0);
}

/// Lists that are not empty, head first.
fn draw(cpu: &Cpu) -> String {
    let page =
        |pfn: Pfn| format!("{}{}", ['u', 'M', 'r', 'H'][recorded_type(&cpu.frames, pfn) as usize], pfn.0);
    let lists = cpu.pcp.lists().filter(|(_, list)| !list.is_empty());
    let lists = lists.map(|(_, list)| {
        let pages: Vec<String> = list.iter(&cpu.frames).map(page).collect();
        format!("[{}]", pages.join(" "))
    });
    lists.collect::<Vec<_>>().join(" ")
}

#[test]
fn a_refill_rises_from_the_end_that_it_is_for_since_e084b_and_from_the_head_before() {
    for (kernel, hot, cold, taken) in [
        (PLAIN, "[M0 M1 M2 M3]", "[M3 M2 M1 M0]", [0, 1, 2, 3]),
        (FALLING, "[M0 M1 M2 M3]", "[M0 M1 M2 M3]", [3, 2, 1, 0]),
        (SINGLE_LIST, "[M0 M1 M2 M3]", "[M3 M2 M1 M0]", [0, 1, 2, 3]),
        (NEITHER, "[M0 M1 M2 M3]", "[M0 M1 M2 M3]", [3, 2, 1, 0]),
    ] {
        let mut memory = cpu(kernel);
        refill(&mut memory, Movable, End::Head);
        assert_eq!(draw(&memory), hot, "{kernel}");
        let mut memory = cpu(kernel);
        refill(&mut memory, Movable, End::Tail);
        assert_eq!(draw(&memory), cold, "{kernel}");
        // What a reader gets that asks for cold pages.
        assert_eq!([(); 4].map(|()| take(&mut memory, Movable, End::Tail)), taken, "{kernel}");
    }
}

#[test]
fn cold_pages_are_taken_and_freed_at_the_tail_and_bulk_frees_take_them_first() {
    for kernel in [PLAIN, SINGLE_LIST] {
        let mut memory = cpu(kernel);
        let pages = [(); 4].map(|()| take(&mut memory, Movable, End::Head));
        free(&mut memory, pages[0], Movable, End::Head);
        free(&mut memory, pages[1], Movable, End::Tail);
        free(&mut memory, pages[2], Movable, End::Head);
        free(&mut memory, pages[3], Movable, End::Tail);
        assert_eq!(draw(&memory), "[M2 M0 M1 M3]", "{kernel}");
        assert_eq!(take(&mut memory, Movable, End::Tail), 3, "reclaim's last page is readahead's next");
        assert_eq!(memory.hand_back(1, SINGLE), 1);
        assert_eq!(draw(&memory), "[M2 M0]", "{kernel}");
        assert_eq!(take(&mut memory, Movable, End::Head), 2);
    }
}

#[test]
fn one_list_is_searched_for_the_type_from_either_end() {
    let mut memory = cpu(SINGLE_LIST);
    for (pfn, kind) in [Unmovable, Movable, Reclaimable, Movable, Unmovable].into_iter().enumerate() {
        let page = memory.block(SINGLE).0;
        assert_eq!(page as usize, pfn);
        free(&mut memory, page, kind, End::Tail);
    }
    assert_eq!(draw(&memory), "[u0 M1 r2 M3 u4]");
    assert_eq!(take(&mut memory, Movable, End::Tail), 3);
    assert_eq!(take(&mut memory, Unmovable, End::Head), 0);
    assert_eq!(take(&mut memory, Movable, End::Tail), 1);
    assert_eq!(draw(&memory), "[r2 u4]", "{NEITHER}");
    // None of the type is left: a refill, at the end that asks.
    assert_eq!(take(&mut memory, Movable, End::Tail), 5);
    assert_eq!(draw(&memory), "[r2 u4 M8 M7 M6]");
    assert_eq!(take(&mut memory, Unmovable, End::Tail), 4);
    assert_eq!(take(&mut memory, Unmovable, End::Head), 9);
    assert_eq!(draw(&memory), "[u10 u11 u12 r2 M8 M7 M6]");
    assert_eq!(memory.pcp.count(), 7);
}

#[test]
fn before_e084b_a_cold_refill_goes_before_all_others() {
    let mut memory = cpu(NEITHER);
    refill(&mut memory, Unmovable, End::Head);
    assert_eq!(take(&mut memory, Movable, End::Tail), 7, "the last of its batch");
    assert_eq!(draw(&memory), "[M4 M5 M6 u0 u1 u2 u3]");
}

#[test]
fn one_list_gives_back_from_its_tail_whatever_the_type_and_lists_by_type_in_turn() {
    for (kernel, left) in [(SINGLE_LIST, "[r8 r9 r10 r11 M4 M5]"), (PLAIN, "[u0 u1] [M4 M5] [r8 r9]")] {
        let mut memory = cpu(kernel);
        for kind in [Unmovable, Movable, Reclaimable] {
            refill(&mut memory, kind, End::Head);
        }
        assert_eq!(memory.hand_back(6, SINGLE), 6);
        assert_eq!(draw(&memory), left, "{kernel}");
    }
}

#[test]
fn pages_of_other_types_fill_one_list_but_leave_the_others_empty() {
    // What source 1 suspects of 5f8dcc21: pages are at hand, and a request goes to the zone. With one list
    // they are just as little use to it.
    for kernel in [PLAIN, SINGLE_LIST] {
        let mut memory = cpu(kernel);
        (0..20).for_each(|_| refill(&mut memory, Unmovable, End::Head));
        assert_eq!(memory.pcp.count(), 80);
        assert_eq!(take(&mut memory, Movable, End::Head), 80, "{kernel}: a refill");
    }
}

#[test]
fn pages_set_aside_leak_from_lists_by_type_until_2_6_33_and_never_from_one_list() {
    assert_eq!(cpu(PLAIN).rules.pcp_reserve, PcpReserve::Leaks);
    let by_type = cpu(PLAIN).rules;
    let single = by_type.with(Rule::PcpLists(PcpLists::Single));
    let stays = Rule::PcpReserve(PcpReserve::Stays);
    for (rules, kind) in [
        (by_type, Movable),
        (by_type.with(stays), HighAtomic),
        (single, HighAtomic),
        (single.with(stays), HighAtomic),
    ] {
        let mut memory = cpu(PLAIN);
        memory.rules = rules;
        let page = memory.block(SINGLE).0;
        memory.area.blocks.set(Pfn(page), HighAtomic);
        free(&mut memory, page, HighAtomic, End::Head);
        // One list is searched for movable pages, and this is none.
        let serves = memory.pcp.clone().take(&mut memory.frames.clone(), &rules, SINGLE, Movable, End::Head);
        assert_eq!(serves.is_some(), rules.pcp_lists == PcpLists::PerType);
        assert_eq!(memory.hand_back(1, SINGLE), 1);
        assert_eq!(recorded_type(&memory.frames, Pfn(page)), kind, "{:?}", rules.pcp_lists);
    }
}

#[test]
fn lists_of_larger_blocks_are_never_one() {
    let mut memory = Cpu::new(HighOrder, BATCH, 100, 100);
    memory.rules = memory.rules.with(Rule::PcpLists(PcpLists::Single));
    for kind in [Unmovable, Movable] {
        memory.kind = kind;
        memory.free_quietly(1);
    }
    assert_eq!(memory.singles(), [1, 1, 0]);
}
