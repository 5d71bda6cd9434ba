//! Scripts that walk requests through the slow path of [`super::retry`] and say what came of each
//! step.

use std_alloc::string::String;

use units::{CpuId, Order};

use super::retry::{Next, Outcome, Retry};
use super::scene::{add_dirty_page, machine};
use crate::alloc::flags::AllocFlags;
use crate::base::event::NoTrace;
use crate::base::gfp::Gfp;
use crate::compact::state::{CompactPriority, CompactResult};
use crate::memory::Memory;

const CPU: CpuId = CpuId(0);
const KILLED: Outcome = Outcome::Killed { any: true, oneself: false };

/// What comes of the steps of a request that never gets a page.
#[derive(Clone, Copy)]
struct Script {
    freed: u64,
    compacted: CompactResult,
    last_try: Outcome,
    killed: Outcome,
}

const NOTHING_HELPS: Script = Script {
    freed: 0,
    compacted: CompactResult::Complete,
    last_try: Outcome::NoPage,
    killed: Outcome::Killed { any: false, oneself: false },
};

/// A machine without a free page, and none to reclaim.
fn full(kernel: &str) -> Memory<NoTrace> {
    let mut mem = machine(kernel);
    while mem.core.alloc.alloc(CPU, Gfp::KERNEL, Order(0), AllocFlags::NO_WATERMARKS).page.is_some() {}
    mem
}

/// The first 400 steps, a letter each: wake, try or (s)tall, try, reclaim, drain, compact
/// (a)sync, (l)ight or (f)ull, (b)locked by writeback, rest (.), (L)ast try, kill, fail (x).
fn walk(mem: &Memory<NoTrace>, mut retry: Retry, script: Script) -> String {
    let (mut steps, mut outcome) = (String::new(), Outcome::NoPage);
    while steps.len() < 400 && !steps.ends_with('x') {
        let next = retry.step(mem, CPU, outcome);
        let (letter, then) = match next {
            Next::WakeKswapds => ('w', Outcome::NoPage),
            Next::TryOrStall(_) => ('s', Outcome::NoPage),
            Next::Try(_) => ('t', Outcome::NoPage),
            Next::Reclaim => ('r', Outcome::Freed(script.freed)),
            Next::Drain => ('d', Outcome::NoPage),
            Next::Compact(CompactPriority::Async, _) => ('a', Outcome::Compacted(script.compacted)),
            Next::Compact(CompactPriority::SyncLight, _) => ('l', Outcome::Compacted(script.compacted)),
            Next::Compact(CompactPriority::SyncFull, _) => ('f', Outcome::Compacted(script.compacted)),
            Next::WaitForWriteback => ('b', Outcome::NoPage),
            Next::Rest => ('.', Outcome::NoPage),
            Next::LastTry(_) => ('L', script.last_try),
            Next::Kill => ('k', script.killed),
            Next::Fail => ('x', Outcome::NoPage),
        };
        steps.push(letter);
        outcome = then;
    }
    steps
}

fn steps(gfp: Gfp, order: u8, script: Script) -> String {
    walk(&full("linux-6.1"), Retry::new(gfp, Order(order), false), script)
}

#[test]
fn who_may_not_reclaim_tries_twice() {
    assert_eq!(steps(Gfp::KERNEL.without(Gfp::DIRECT_RECLAIM), 0, NOTHING_HELPS), "wswtx");
}

#[test]
fn with_nothing_to_reclaim_the_oom_killer_comes_at_once() {
    assert_eq!(steps(Gfp::KERNEL, 0, NOTHING_HELPS), "wswtrLkx", "nobody is left to kill");
    let kills = steps(Gfp::KERNEL, 0, Script { killed: KILLED, ..NOTHING_HELPS });
    assert!(kills.starts_with("wswtrLkwtrLkwtrLk"), "{kills}: the next one, until there is a page");
    let suicide = Outcome::Killed { any: true, oneself: true };
    assert_eq!(steps(Gfp::KERNEL, 0, Script { killed: suicide, ..NOTHING_HELPS }), "wswtrLkx");
    let locked = steps(Gfp::KERNEL, 0, Script { last_try: Outcome::OomLocked, ..NOTHING_HELPS });
    assert!(locked.starts_with("wswtrLwtrL"), "{locked}: one killer at a time");
}

#[test]
fn fruitless_reclaim_is_repeated_16_times_while_it_could_help() {
    let mem = machine("linux-6.1"); // All of it is free, but others take it before we can.
    let walked = |script| walk(&mem, Retry::new(Gfp::KERNEL, Order(0), false), script);
    assert_eq!(walked(NOTHING_HELPS), String::from("ws") + &"wtr.".repeat(16) + "wtrLkx");
    let progress = walked(Script { freed: 1, ..NOTHING_HELPS });
    assert_eq!(progress, (String::from("ws") + &"wtrtdt.".repeat(60))[..400], "progress has no end");
}

#[test]
fn a_request_that_may_not_enter_the_filesystem_kills_nobody_and_never_gives_up() {
    let walked = steps(Gfp::NOFS, 0, NOTHING_HELPS);
    assert_eq!(walked, (String::from("ws") + &"wtrL.".repeat(90))[..400]);
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
    assert_eq!(steps(Gfp::KERNEL, 2, script(CompactResult::Success)), success);
    assert_eq!(
        steps(Gfp::KERNEL, 2, script(CompactResult::Skipped)),
        begin.clone() + &round("lLkx"),
        "no page is left that compaction could work with"
    );
    let may_fail = Gfp::KERNEL | Gfp::RETRY_MAYFAIL;
    let costly = begin + &round("l.").repeat(4) + &round("lLx");
    assert_eq!(steps(may_fail, 4, script(CompactResult::Success)), costly, "nobody dies for it");
}

#[test]
fn a_victim_gives_up_unless_it_must_not_fail() {
    let mem = full("linux-6.1");
    let walked = |gfp| walk(&mem, Retry::new(gfp, Order(0), true), NOTHING_HELPS);
    assert_eq!(walked(Gfp::KERNEL), "wswtx");
    assert_eq!(walked(Gfp::KERNEL | Gfp::NOFAIL), "wswtrLkx");
}

#[test]
fn a_request_without_success_lets_the_disk_catch_up_only_before_5_16() {
    for (kernel, round) in [("linux-5.4", "wtrb."), ("linux-6.1", "wtr.")] {
        let mut mem = machine(kernel);
        add_dirty_page(&mut mem);
        let walked = walk(&mem, Retry::new(Gfp::KERNEL, Order(0), false), NOTHING_HELPS);
        assert!(walked.starts_with(&(String::from("ws") + round + round)), "{kernel}: {walked}");
    }
}
