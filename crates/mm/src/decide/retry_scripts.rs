//! Scripts that walk requests through the slow path of [`super::retry`] and say what came of each
//! step.

use std_alloc::string::String;
use std_alloc::vec;
use std_alloc::vec::Vec;

use units::{CpuId, NodeId, Order, Pages, Pfn};

use super::retry::{Next, Outcome, Retry};
use super::scene::{add_dirty_page, add_file_page, boot, machine};
use crate::alloc::flags::AllocFlags;
use crate::alloc::watermark::Mark;
use crate::base::event::NoTrace;
use crate::base::gfp::Gfp;
use crate::base::layout::{HugeSupport, MemoryLayout, NodeLayout, ZoneId, ZoneKind, ZoneLayout};
use crate::compact::state::{CompactPriority, CompactResult};
use crate::memory::Memory;
use crate::version::rules::{CompactRetry, FirstCompaction};

const CPU: CpuId = CpuId(0);

/// What comes of the steps of a request that never gets a page.
#[derive(Clone, Copy)]
struct Script {
    freed: u64,
    compacted: CompactResult,
    /// So many pageblocks of the reserve are given back on demand.
    reserved: usize,
    last_try: Outcome,
    killed: Outcome,
    /// The OOM killer took the task: from the step with this number on.
    victim_from: Option<usize>,
}

const NOTHING_HELPS: Script = Script {
    freed: 0,
    compacted: CompactResult::Complete,
    reserved: 0,
    last_try: Outcome::NoPage,
    killed: Outcome::NobodyLeft,
    victim_from: None,
};

/// A machine without a free page, and none to reclaim.
fn full(kernel: &str) -> Memory<NoTrace> {
    let mut mem = machine(kernel);
    while mem.core.alloc.alloc(CPU, Gfp::KERNEL, Order(0), AllocFlags::NO_WATERMARKS).page.is_some() {}
    mem
}

fn all_free_pages(mem: &mut Memory<NoTrace>) -> Vec<Pfn> {
    let movable = Gfp::HIGHUSER_MOVABLE;
    let mut take = || mem.core.alloc.alloc(CPU, movable, Order(0), AllocFlags::NO_WATERMARKS).page;
    core::iter::from_fn(&mut take).collect()
}

/// A machine of which every other page is free, and none is to be reclaimed.
fn fragmented(kernel: &str) -> Memory<NoTrace> {
    let mut mem = machine(kernel);
    for pfn in all_free_pages(&mut mem).into_iter().filter(|pfn| pfn.0.is_multiple_of(2)) {
        mem.core.alloc.free(CPU, pfn, Order(0));
    }
    let _ = mem.core.alloc.drain_all();
    mem
}

/// One zone with so many free pages, no two of them neighbours, and so many of files; the rest is in use.
fn stock(free: u64, file: u32) -> Memory<NoTrace> {
    let zone = ZoneLayout::new(ZoneKind::Dma32, Pages(8192));
    let layout =
        MemoryLayout { nodes: vec![NodeLayout { zones: vec![zone] }], cpus: 1, huge_pages: HugeSupport::Off };
    let mut mem = boot("linux-6.1", &layout);
    for _ in 0..file {
        add_file_page(&mut mem, CPU);
    }
    mem.lru_drain_all();
    for pfn in all_free_pages(&mut mem).into_iter().filter(|pfn| pfn.0 % 2 == 0).take(free as usize) {
        mem.core.alloc.free(CPU, pfn, Order(0));
    }
    let _ = mem.core.alloc.drain_all();
    assert_eq!(mem.core.alloc.zone(ZoneId(0)).free_pages(), Pages(free));
    mem
}

/// The first 400 steps, a letter each: wake, try or (s)tall, try, reclaim, drain, (u)nreserve, compact
/// (a)sync, (l)ight or (f)ull, (b)locked by writeback, rest (.), (L)ast try, kill, fail (x).
fn walk(mem: &Memory<NoTrace>, gfp: Gfp, order: u8, script: Script) -> String {
    walk_with_flags(mem, gfp, order, script).0
}

/// [`walk`], and the flags of each try.
fn walk_with_flags(mem: &Memory<NoTrace>, gfp: Gfp, order: u8, script: Script) -> (String, Vec<AllocFlags>) {
    let mut retry = Retry::new(gfp, Order(order));
    let (mut steps, mut outcome, mut tries) = (String::new(), Outcome::NoPage, Vec::new());
    while steps.len() < 400 && !steps.ends_with('x') {
        let victim = script.victim_from.is_some_and(|step| steps.len() >= step);
        let next = retry.step(mem, CPU, victim, outcome);
        if let Next::TryOrStall(flags) | Next::Try(flags) | Next::Compact(_, flags) | Next::LastTry(flags) =
            next
        {
            tries.push(flags);
        }
        let (letter, then) = match next {
            Next::WakeKswapds => ('w', Outcome::NoPage),
            Next::TryOrStall(_) => ('s', Outcome::NoPage),
            Next::Try(_) => ('t', Outcome::NoPage),
            Next::Reclaim => ('r', Outcome::Freed(script.freed)),
            Next::Drain => ('d', Outcome::NoPage),
            Next::Unreserve => ('u', Outcome::Unreserved(steps.matches('u').count() < script.reserved)),
            Next::Compact(CompactPriority::Async, _) => ('a', Outcome::Compacted(script.compacted)),
            Next::Compact(CompactPriority::SyncLight, _) => ('l', Outcome::Compacted(script.compacted)),
            Next::Compact(CompactPriority::SyncFull, _) => ('f', Outcome::Compacted(script.compacted)),
            Next::WaitForWriteback => ('b', Outcome::NoPage),
            Next::Pause(..) => panic!("there is no such pause since 4.7"),
            Next::Rest => ('.', Outcome::NoPage),
            Next::LastTry(_) => ('L', script.last_try),
            Next::Kill => ('k', script.killed),
            Next::Fail => ('x', Outcome::NoPage),
        };
        steps.push(letter);
        outcome = then;
    }
    (steps, tries)
}

fn steps(gfp: Gfp, order: u8, script: Script) -> String {
    walk(&full("linux-6.1"), gfp, order, script)
}

#[test]
fn who_may_not_reclaim_tries_twice() {
    assert_eq!(steps(Gfp::KERNEL.without(Gfp::DIRECT_RECLAIM), 0, NOTHING_HELPS), "wswtx");
}

#[test]
fn with_nothing_to_reclaim_the_oom_killer_comes_at_once() {
    assert_eq!(steps(Gfp::KERNEL, 0, NOTHING_HELPS), "wswtrLkx", "nobody is left to kill");
    let kills = steps(Gfp::KERNEL, 0, Script { killed: Outcome::Killed, ..NOTHING_HELPS });
    assert!(kills.starts_with("wswtrLkwtrLkwtrLk"), "{kills}: the next one, until there is a page");
    let locked = steps(Gfp::KERNEL, 0, Script { last_try: Outcome::OomLocked, ..NOTHING_HELPS });
    assert!(locked.starts_with("wswtrLwtrL"), "{locked}: one killer at a time");
}

#[test]
fn fruitless_reclaim_is_repeated_16_times_while_it_could_help() {
    let mem = machine("linux-6.1"); // All of it is free, but others take it before we can.
    let walked = |script| walk(&mem, Gfp::KERNEL, 0, script);
    assert_eq!(walked(NOTHING_HELPS), String::from("ws") + &"wtr.".repeat(16) + "wtruLkx");
    let progress = walked(Script { freed: 1, ..NOTHING_HELPS });
    assert_eq!(progress, (String::from("ws") + &"wtrtdt.".repeat(60))[..400], "progress has no end");
}

#[test]
fn after_its_last_retry_a_request_takes_the_highatomic_reserve_apart_before_anybody_dies() {
    let mem = machine("linux-6.1");
    let reserve = Script { reserved: 2, ..NOTHING_HELPS };
    let fruitless = String::from("ws") + &"wtr.".repeat(16);
    assert_eq!(walk(&mem, Gfp::KERNEL, 0, reserve), fruitless + "wtru" + "wtru" + "wtruLkx");
    assert_eq!(steps(Gfp::KERNEL, 0, reserve), "wswtrLkx", "only where reclaim could have helped");
}

#[test]
fn a_request_that_may_not_enter_the_filesystem_kills_nobody_and_never_gives_up() {
    let walked = steps(Gfp::NOFS, 0, NOTHING_HELPS);
    assert_eq!(walked, (String::from("ws") + &"wtrL.".repeat(90))[..400]);
}

#[test]
fn nobody_is_killed_for_a_request_that_may_fail_is_too_large_or_wants_the_lowest_zone() {
    let killer = Script { killed: Outcome::Killed, ..NOTHING_HELPS };
    for gfp in [Gfp::KERNEL, Gfp::NOFS] {
        for more in [Gfp::RETRY_MAYFAIL, Gfp::DMA] {
            assert_eq!(steps(gfp | more, 0, killer), "wswtrLx", "{gfp:?}, {more:?}");
        }
        assert_eq!(steps(gfp | Gfp::RETRY_MAYFAIL, 4, killer), "wsawtrlLx", "{gfp:?}");
        assert_eq!(steps(gfp | Gfp::NORETRY, 0, killer), "wswtrx", "{gfp:?}: not even a last try");
    }
    for (order, dies) in [(0, true), (3, true), (4, false)] {
        let walked = steps(Gfp::HIGHUSER_MOVABLE, order, killer);
        assert_eq!(walked.contains('k'), dies, "order {order}: {walked}");
    }
}

#[test]
fn a_request_that_must_not_fail_goes_round_where_others_give_up() {
    for (gfp, order, round) in [
        (Gfp::NORETRY, 0, "wtr."),
        (Gfp::RETRY_MAYFAIL, 0, "wtrL."),
        (Gfp::DMA, 0, "wtrL."),
        (Gfp::HIGHUSER_MOVABLE, 4, "wtrl."),
    ] {
        let walked = steps(Gfp::KERNEL | gfp | Gfp::NOFAIL, order, NOTHING_HELPS);
        let begin = if order == 0 { "ws" } else { "wsa" };
        assert!(walked.starts_with(&(String::from(begin) + &round.repeat(3))), "{walked}");
    }
}

#[test]
fn large_blocks_and_small_unmovable_ones_compact_before_they_reclaim() {
    let movable = Gfp::HIGHUSER_MOVABLE;
    assert_eq!(steps(movable, 3, NOTHING_HELPS), "wswtrlLkx");
    assert_eq!(steps(Gfp::KERNEL, 3, NOTHING_HELPS), "wsawtrlLkx");
    assert_eq!(steps(movable, 4, NOTHING_HELPS), "wsawtrlx", "a costly one is no reason to go on");
    let light = movable | Gfp::NORETRY;
    assert_eq!(steps(light, 9, NOTHING_HELPS), "wsawtrax", "and may be no reason to wait for pages");
    let deferred = Script { compacted: CompactResult::Deferred, ..NOTHING_HELPS };
    assert_eq!(steps(light, 9, deferred), "wsax", "nor to reclaim, if compaction will not run anyway");
}

#[test]
fn compaction_tries_harder_while_reclaim_makes_progress() {
    let script = |compacted| Script { freed: 1, compacted, ..NOTHING_HELPS };
    let round = |compact| String::from("wtrtdt") + compact;
    let begin = String::from("wsa");
    assert_eq!(
        steps(Gfp::KERNEL, 2, script(CompactResult::Complete)),
        begin.clone() + &round("l.") + &round("fLkx")
    );
    let success = begin.clone() + &round("l.").repeat(17) + &round("f.").repeat(16) + &round("fLkx");
    for order in [1, 3] {
        assert_eq!(steps(Gfp::KERNEL, order, script(CompactResult::Success)), success, "order {order}");
    }
    assert_eq!(
        steps(Gfp::KERNEL, 2, script(CompactResult::Skipped)),
        begin.clone() + &round("lLkx"),
        "no page is left that compaction could work with"
    );
    let may_fail = Gfp::KERNEL | Gfp::RETRY_MAYFAIL;
    let costly = begin + &round("l.").repeat(4) + &round("lLx");
    assert_eq!(steps(may_fail, 4, script(CompactResult::Success)), costly, "nobody dies for it");
}

const RESERVES: AllocFlags = AllocFlags::OOM;

#[test]
fn a_task_that_is_killed_on_its_way_takes_from_the_reserves_from_its_next_round_on() {
    let mem = machine("linux-6.1"); // Reclaim could help, so that there are rounds.
    for killed_at in 0..12 {
        let script = Script { victim_from: Some(killed_at), ..NOTHING_HELPS };
        let (walked, tries) = walk_with_flags(&mem, Gfp::KERNEL, 0, script);
        assert!(walked.starts_with("wswtr.wtr.wtr."), "{walked}: it reclaims as others do");
        let had: Vec<bool> = tries[..4].iter().map(|flags| flags.has_any(RESERVES)).collect();
        // Tries are steps 1, 3, 7 and 11; the first one is not of a round.
        let expected = [1, 3, 7, 11].map(|step| step > 1 && killed_at <= step);
        assert_eq!(had, expected, "killed at step {killed_at}");
    }
}

#[test]
fn who_kills_itself_tries_once_more_with_reserves_and_then_gives_up() {
    let mem = full("linux-6.1");
    let suicide = Script { killed: Outcome::Killed, victim_from: Some(8), ..NOTHING_HELPS };
    let (walked, tries) = walk_with_flags(&mem, Gfp::KERNEL, 0, suicide);
    assert_eq!(walked, "wswtrLkwtrLkx");
    let had: Vec<bool> = tries.iter().map(|flags| flags.has_any(RESERVES)).collect();
    assert_eq!(had, [false, false, false, true, false], "not the last try, at the high mark");
}

#[test]
fn compaction_that_withdrew_is_repeated_as_it_was_before_5_4_and_tries_harder_since() {
    for (kernel, rule) in [
        ("linux-4.19", CompactRetry::AsItWas),
        ("linux-5.3", CompactRetry::AsItWas),
        ("linux-5.4", CompactRetry::Harder),
        ("linux-6.12", CompactRetry::Harder),
    ] {
        let mem = fragmented(kernel);
        assert_eq!(mem.core.rules().compact_retry, rule, "{kernel}");
        for compacted in [CompactResult::Deferred, CompactResult::PartialSkipped, CompactResult::Contended] {
            let script = Script { freed: 1, compacted, ..NOTHING_HELPS };
            let walked = walk(&mem, Gfp::KERNEL, 2, script);
            let light = String::from("wsa") + &"wtrtdtl.".repeat(2);
            match rule {
                CompactRetry::AsItWas => {
                    assert!(walked.starts_with(&light) && !walked.contains('f'), "{kernel}: {walked}");
                    assert!(!walked.ends_with('x'), "{kernel}: {walked}");
                }
                CompactRetry::Harder => {
                    assert_eq!(walked, "wsawtrtdtl.wtrtdtfLkx", "{kernel}, {compacted:?}");
                }
            }
            let nowhere = walk(&full(kernel), Gfp::KERNEL, 2, script);
            let ends = if rule == CompactRetry::AsItWas { "lLkx" } else { "fLkx" };
            assert!(nowhere.ends_with(ends), "{kernel}: {nowhere}, with no page to work with");
        }
        // What reclaim must help with first is repeated as long as it can.
        let skipped = Script { freed: 1, compacted: CompactResult::Skipped, ..NOTHING_HELPS };
        assert!(!walk(&mem, Gfp::KERNEL, 2, skipped).contains(['f', 'L']), "{kernel}");
        assert!(walk(&full(kernel), Gfp::KERNEL, 2, skipped).ends_with("lLkx"), "{kernel}");
    }
}

#[test]
fn a_huge_request_that_wants_no_retries_reclaims_before_5_4_where_compaction_lacks_memory() {
    let light = Gfp::HIGHUSER_MOVABLE | Gfp::NORETRY;
    for (kernel, rule) in [
        ("linux-4.19", FirstCompaction::PutOff),
        ("linux-5.3", FirstCompaction::PutOff),
        ("linux-5.4", FirstCompaction::NotRun),
        ("linux-6.12", FirstCompaction::NotRun),
        ("linux-6.12+compact-before-reclaim-loop", FirstCompaction::Never),
    ] {
        let mem = full(kernel);
        assert_eq!(mem.core.rules().first_compaction, rule, "{kernel}");
        let walked = |order, compacted| walk(&mem, light, order, Script { compacted, ..NOTHING_HELPS });
        let reclaims = "wsawtrax";
        let (lacks, put_off) = match rule {
            FirstCompaction::PutOff => (reclaims, "wsax"),
            FirstCompaction::NotRun => ("wsax", "wsax"),
            FirstCompaction::Never => (reclaims, reclaims),
        };
        for order in [4, 9] {
            assert_eq!(walked(order, CompactResult::Skipped), lacks, "{kernel}");
            assert_eq!(walked(order, CompactResult::Deferred), put_off, "{kernel}");
            for ran in [CompactResult::Complete, CompactResult::PartialSkipped, CompactResult::Contended] {
                assert_eq!(walked(order, ran), reclaims, "{kernel}");
            }
        }
        let small = walk(
            &mem,
            Gfp::KERNEL | Gfp::NORETRY,
            3,
            Script { compacted: CompactResult::Deferred, ..NOTHING_HELPS },
        );
        assert_eq!(small, "wsawtrlx", "{kernel}: a small one reclaims anyway");
        let mayfail = walk(
            &mem,
            Gfp::HIGHUSER_MOVABLE,
            9,
            Script { compacted: CompactResult::Deferred, ..NOTHING_HELPS },
        );
        assert_eq!(mayfail, "wsawtrlx", "{kernel}: so does one that did not say so");
    }
}

#[test]
fn a_victim_gives_up_once_its_reserves_did_not_help_unless_it_must_not_fail() {
    let victim = Script { killed: Outcome::Killed, victim_from: Some(0), ..NOTHING_HELPS };
    assert_eq!(steps(Gfp::KERNEL, 0, victim), "wswtrLkx");
    assert_eq!(steps(Gfp::KERNEL | Gfp::NOMEMALLOC, 0, victim), "wswtrLkx", "it may not use any");
    assert_eq!(steps(Gfp::NOFS, 0, victim), "wswtrLx");
    let locked = Script { last_try: Outcome::OomLocked, ..victim };
    assert_eq!(steps(Gfp::KERNEL, 0, locked), "wswtrLx");
    let must = steps(Gfp::KERNEL | Gfp::NOFAIL, 0, victim);
    assert!(must.starts_with("wswtrLkwtrLkwtrLk"), "{must}");
}

#[test]
fn a_request_is_retried_as_long_as_free_and_file_pages_pass_the_min_mark_together() {
    let min = stock(0, 0).core.alloc.zone(ZoneId(0)).watermarks.mark(Mark::Min);
    for file in [0, 40] {
        for (free, retried) in [(min - u64::from(file), false), (min + 1 - u64::from(file), true)] {
            let walked = walk(&stock(free, file), Gfp::KERNEL, 0, NOTHING_HELPS);
            let begin = if retried { "wswtr.wtr." } else { "wswtrLkx" };
            assert!(walked.starts_with(begin), "{free} free, {file} of files, min {min}: {walked}");
        }
    }
    let walked = walk(&stock(min + 100, 100), Gfp::HIGHUSER_MOVABLE, 1, NOTHING_HELPS);
    assert_eq!(walked, "wswtrlLkx", "single pages are no block");
}

#[test]
fn compaction_that_lacks_memory_is_retried_if_a_part_of_the_file_pages_would_do() {
    let skipped = Script { freed: 1, compacted: CompactResult::Skipped, ..NOTHING_HELPS };
    let min = stock(0, 0).core.alloc.zone(ZoneId(0)).watermarks.mark(Mark::Min);
    // Twice the block above the min mark, and a share of the file pages the smaller the larger it is.
    for (order, file, share) in [(1, 0, 0), (1, 40, 40), (2, 40, 20), (3, 40, 13)] {
        for (free, retried) in [(min + (2 << order) - share, false), (min + (2 << order) + 1 - share, true)] {
            let walked = walk(&stock(free, file), Gfp::HIGHUSER_MOVABLE, order, skipped);
            let begin = if retried { "wswtrtdtl.wtrtdtl." } else { "wswtrtdtlLkx" };
            assert!(walked.starts_with(begin), "order {order}, {free} free, {file} of files: {walked}");
        }
    }
}

#[test]
fn a_costly_request_counts_its_rounds_whether_reclaim_makes_progress_or_not() {
    let mem = machine("linux-6.1");
    let round = "wtrtdtl";
    for (order, ends) in [(3, false), (4, true)] {
        let gfp = Gfp::HIGHUSER_MOVABLE | Gfp::RETRY_MAYFAIL;
        let walked = walk(&mem, gfp, order, Script { freed: 1, ..NOTHING_HELPS });
        let begin = String::from(if order > 3 { "wsa" } else { "ws" });
        let many = begin + &[round, "."].concat().repeat(16) + round;
        assert!(walked.starts_with(&many), "order {order}: {walked}");
        assert_eq!(walked[many.len()..] == *"uLx", ends, "order {order}: {walked}");
    }
}

#[test]
fn only_the_last_try_must_leave_the_high_mark() {
    let movable = Gfp::HIGHUSER_MOVABLE;
    let (walked, tries) = walk_with_flags(&full("linux-6.1"), movable, 3, NOTHING_HELPS);
    assert_eq!(walked, "wswtrlLkx");
    let slow = AllocFlags::WMARK_MIN | AllocFlags::KSWAPD;
    assert_eq!(slow.mark(), Some(Mark::Min));
    assert_eq!(tries, [slow, slow, slow, AllocFlags::WMARK_HIGH]);
}

#[test]
fn a_request_waits_for_the_disk_only_where_its_own_node_is_mostly_dirty() {
    for (dirty, round) in [(0, "wtrb."), (1, "wtr.")] {
        let zone = ZoneLayout::new(ZoneKind::Normal, Pages(8192));
        let node = NodeLayout { zones: vec![zone] };
        let layout = MemoryLayout { nodes: vec![node.clone(), node], cpus: 2, huge_pages: HugeSupport::Off };
        let mut mem = boot("linux-5.4", &layout);
        let cpu = (0..2).map(CpuId).find(|&cpu| mem.core.alloc.node_of(cpu) == NodeId(dirty));
        let pfn = add_file_page(&mut mem, cpu.expect("each node has a CPU"));
        assert!(mem.set_dirty(pfn));
        assert_eq!(mem.core.alloc.zone(mem.core.alloc.zone_of(pfn)).node, NodeId(dirty));
        let walked = walk(&mem, Gfp::KERNEL, 0, NOTHING_HELPS);
        assert!(walked.starts_with(&(String::from("ws") + round + round)), "node {dirty}: {walked}");
    }
}

#[test]
fn a_request_without_success_lets_the_disk_catch_up_only_before_5_16() {
    for (kernel, round) in [("linux-5.4", "wtrb."), ("linux-6.1", "wtr.")] {
        let mut mem = machine(kernel);
        add_dirty_page(&mut mem);
        let walked = walk(&mem, Gfp::KERNEL, 0, NOTHING_HELPS);
        assert!(walked.starts_with(&(String::from("ws") + round + round)), "{kernel}: {walked}");
    }
}

/// MECHANISMS-510-72 1.7: reclaim and compaction have to fail once before types mix.
#[test]
fn in_defrag_mode_a_request_mixes_types_only_after_a_round_in_vain_or_where_it_may_not_reclaim() {
    use crate::base::sysctl::Sysctl;
    use crate::base::vmstat::VmEvent;
    use crate::version::rules::DefragMode;

    let mut mem = full("linux-7.2");
    assert_eq!(mem.core.rules().defrag_mode, DefragMode::Sysctl);
    assert_eq!(machine("linux-6.12").core.rules().defrag_mode, DefragMode::None);
    assert_eq!(walk(&mem, Gfp::KERNEL, 0, NOTHING_HELPS), "wswtrLkx");
    mem.set_sysctl(Sysctl::DefragMode, 1);
    let apart = |mem: &_, gfp, order| {
        let (steps, tries) = walk_with_flags(mem, gfp, order, NOTHING_HELPS);
        let apart = tries.iter().filter(|flags| flags.has_any(AllocFlags::NOFRAGMENT)).count();
        (steps, apart, tries.len() - apart)
    };
    assert_eq!(apart(&mem, Gfp::KERNEL, 0), (String::from("wswtr.wtrLkx"), 2, 2), "the next round does");
    let (steps, kept, mixed) = apart(&mem, Gfp::HIGHUSER_MOVABLE, 2);
    assert!(steps.starts_with("wswtrl.wtrl"), "{steps}");
    assert!(kept == 3 && mixed > 0, "{kept} tries apart, {mixed} not, of {steps}");
    assert_eq!(apart(&mem, Gfp::KERNEL.without(Gfp::DIRECT_RECLAIM), 0).1, 0);
    // Free pages are movable, and single.
    let mut mem = fragmented("linux-7.2");
    mem.set_sysctl(Sysctl::DefragMode, 1);
    let mixed = |mem: &Memory<NoTrace>| mem.core.alloc.events.get(VmEvent::ExtfragFragmenting);
    let before = mixed(&mem);
    let take = |mem: &mut Memory<NoTrace>, gfp| {
        let flags = mem.core.alloc.fast_flags(CPU, gfp);
        mem.core.alloc.alloc(CPU, gfp, Order(0), flags).page.is_some()
    };
    assert!(take(&mut mem, Gfp::HIGHUSER_MOVABLE), "pages of its own type");
    assert!(!take(&mut mem, Gfp::KERNEL));
    assert_eq!(mixed(&mem), before);
    assert!(take(&mut mem, Gfp::KERNEL.without(Gfp::DIRECT_RECLAIM)), "at once");
    assert!(mixed(&mem) > before);
}
