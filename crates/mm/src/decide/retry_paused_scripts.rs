//! Scripts that walk requests through the slow path of [`super::retry_paused`] and say what came of each
//! step.

use std_alloc::string::String;

use units::{CpuId, Order};

use super::backoff::Site;
use super::retry::{Next, Outcome};
use super::retry_paused::PausedRetry;
use super::scene::machine;
use crate::alloc::flags::AllocFlags;
use crate::alloc::watermark::Mark;
use crate::base::gfp::Gfp;
use crate::compact::state::{CompactPriority, CompactResult};
use crate::version::rules::{Compaction, FailedReclaim};

const CPU: CpuId = CpuId(0);

/// What comes of the steps of a request that never gets a page.
#[derive(Clone, Copy)]
struct Script {
    freed: u64,
    last_try: Outcome,
    killed: Outcome,
    /// The OOM killer took the task: from the step with this number on.
    victim_from: Option<usize>,
}

const NOTHING_HELPS: Script =
    Script { freed: 0, last_try: Outcome::NoPage, killed: Outcome::NobodyLeft, victim_from: None };
const PROGRESS: Script = Script { freed: 32, ..NOTHING_HELPS };

/// The first 40 steps, a letter each: wake, try or (s)tall, try at the min mark, try for the last (P)age,
/// (.) rest, reclaim, drain, compact (a)sync or (l)ight, pause for the last page (h) or between two rounds
/// (b), (L)ast try at the high mark, kill, fail (x).
fn walk(kernel: &str, gfp: Gfp, order: u8, script: Script) -> String {
    let (mem, mut retry) = (machine(kernel), PausedRetry::new(gfp, Order(order)));
    let (mut steps, mut outcome) = (String::new(), Outcome::NoPage);
    while steps.len() < 40 && !steps.ends_with('x') {
        let victim = script.victim_from.is_some_and(|step| steps.len() >= step);
        let (letter, then) = match retry.step(&mem, CPU, victim, outcome) {
            Next::WakeKswapds => ('w', Outcome::NoPage),
            Next::TryOrStall(_) => ('s', Outcome::NoPage),
            Next::Try(AllocFlags::NO_WATERMARKS) => ('P', Outcome::NoPage),
            Next::Try(flags) => {
                assert_eq!(flags.mark(), Some(Mark::Min));
                ('t', Outcome::NoPage)
            }
            Next::Reclaim => ('r', Outcome::Freed(script.freed)),
            Next::Drain => ('d', Outcome::NoPage),
            Next::Compact(CompactPriority::Async, _) => ('a', Outcome::Compacted(CompactResult::Complete)),
            Next::Compact(_, _) => ('l', Outcome::Compacted(CompactResult::Complete)),
            Next::Pause(site, zone) => {
                assert_eq!(zone, mem.core.alloc.zonelist(CPU, gfp)[0], "the one that it prefers");
                (if site == Site::HighPriority { 'h' } else { 'b' }, Outcome::NoPage)
            }
            Next::Rest => ('.', Outcome::NoPage),
            Next::LastTry(flags) => {
                assert_eq!(flags, AllocFlags::WMARK_HIGH);
                ('L', script.last_try)
            }
            Next::Kill => ('k', script.killed),
            Next::Fail => ('x', Outcome::NoPage),
            Next::Unreserve | Next::WaitForWriteback => panic!("no step of this path"),
        };
        steps.push(letter);
        outcome = then;
    }
    steps
}

fn steps(gfp: Gfp, order: u8, script: Script) -> String {
    walk("linux-2.6.32", gfp, order, script)
}

fn rounds(begin: &str, round: &str) -> String {
    (String::from(begin) + &round.repeat(40))[..40].into()
}

#[test]
fn progress_without_a_page_leads_to_a_pause_and_another_round_that_wakes_nobody() {
    for order in [0, 3] {
        let walked = steps(Gfp::HIGHUSER_MOVABLE, order, PROGRESS);
        let round = if order == 0 { ".rtb" } else { ".rdtb" };
        assert_eq!(walked, rounds("ws", round), "order {order}: kswapd is woken once");
    }
}

#[test]
fn who_may_not_wait_tries_once() {
    assert_eq!(steps(Gfp::KERNEL.without(Gfp::DIRECT_RECLAIM), 0, PROGRESS), "wsx");
}

#[test]
fn without_progress_the_oom_killer_comes_and_then_all_begins_anew() {
    assert_eq!(steps(Gfp::KERNEL, 0, NOTHING_HELPS), "ws.rLkx", "nobody is left to kill");
    let kills = steps(Gfp::KERNEL, 0, Script { killed: Outcome::Killed, ..NOTHING_HELPS });
    assert_eq!(kills, rounds("ws.rLk", "wt.rLk"));
    let locked = steps(Gfp::KERNEL, 0, Script { last_try: Outcome::OomLocked, ..NOTHING_HELPS });
    assert_eq!(locked, rounds("ws.rL", "wt.rL"), "one killer at a time");
}

#[test]
fn a_request_that_may_not_enter_the_filesystem_kills_nobody_and_looks_for_pages_of_others_in_every_round() {
    assert_eq!(steps(Gfp::NOFS, 0, NOTHING_HELPS), rounds("ws", ".rtb"), "one look, not with the drain");
    assert_eq!(steps(Gfp::NOFS, 3, NOTHING_HELPS), rounds("ws", ".rdtb"));
    assert_eq!(steps(Gfp::NOFS, 0, PROGRESS), rounds("ws", ".rtb"), "no second look after progress");
    assert_eq!(
        walk("linux-2.6.32+drain-after-failed-reclaim", Gfp::NOFS, 0, NOTHING_HELPS),
        rounds("ws", ".rtb")
    );
    assert_eq!(steps(Gfp::NOFS | Gfp::NORETRY, 0, NOTHING_HELPS), "ws.rx");
}

#[test]
fn nobody_is_killed_for_a_large_block_which_ends_unless_it_must_not_fail() {
    let killer = Script { killed: Outcome::Killed, ..NOTHING_HELPS };
    assert_eq!(steps(Gfp::KERNEL, 4, killer), "ws.rdLx");
    assert_eq!(steps(Gfp::KERNEL, 4, PROGRESS), "ws.rdtx", "progress is no reason to go on");
    assert_eq!(steps(Gfp::KERNEL | Gfp::NOFAIL, 4, killer), rounds("ws.rdL", "wt.rdL"));
    assert_eq!(steps(Gfp::KERNEL | Gfp::NOFAIL, 4, PROGRESS), rounds("ws", ".rdtb"));
}

#[test]
fn a_large_block_that_may_fail_is_worth_as_many_pages_as_it_has() {
    let gfp = Gfp::KERNEL | Gfp::RETRY_MAYFAIL;
    assert_eq!(steps(gfp, 6, PROGRESS), "ws.rdtb.rdtx", "64 pages were freed");
    assert_eq!(steps(gfp, 7, PROGRESS), String::from("ws") + &".rdtb".repeat(3) + ".rdtx");
    assert_eq!(steps(gfp, 3, PROGRESS), rounds("ws", ".rdtb"), "a small one never ends");
}

#[test]
fn who_wants_no_retries_reclaims_once_and_kills_nobody() {
    for (order, freed) in [(0, 0), (0, 32), (4, 32)] {
        let script = Script { freed, killed: Outcome::Killed, ..NOTHING_HELPS };
        let walked = steps(Gfp::KERNEL | Gfp::NORETRY, order, script);
        assert!(walked.ends_with('x') && !walked.contains(['L', 'b']), "{walked}");
    }
}

#[test]
fn a_victim_tries_for_the_last_page_once_it_starts_over_and_then_gives_up() {
    let suicide = Script { killed: Outcome::Killed, victim_from: Some(5), ..NOTHING_HELPS };
    assert_eq!(steps(Gfp::KERNEL, 0, suicide), "ws.rLkwtPx");
    assert_eq!(steps(Gfp::KERNEL | Gfp::NOMEMALLOC, 0, suicide), "ws.rLkwtx", "it may not use reserves");
    let paused = Script { victim_from: Some(5), ..PROGRESS };
    assert_eq!(steps(Gfp::KERNEL, 0, paused), "ws.rtbx", "between two rounds it does not even try");
}

#[test]
fn a_victim_that_must_not_fail_pauses_until_somebody_frees_a_page() {
    let victim = Script { victim_from: Some(0), ..NOTHING_HELPS };
    assert_eq!(steps(Gfp::NOFS | Gfp::NOFAIL, 0, victim), rounds("ws", "Ph"));
}

#[test]
fn when_all_cpus_are_drained_depends_on_the_kernel() {
    let drains = "linux-2.6.32+drain-after-failed-reclaim";
    assert_eq!(machine("linux-2.6.32").core.rules().failed_reclaim, FailedReclaim::GoesOn);
    assert_eq!(machine(drains).core.rules().failed_reclaim, FailedReclaim::Drains);
    for order in [0, 2] {
        assert_eq!(walk(drains, Gfp::KERNEL, order, PROGRESS), rounds("ws", ".rtdtb"), "order {order}");
        assert!(!walk(drains, Gfp::KERNEL, order, NOTHING_HELPS).contains('d'), "nothing was freed");
    }
}

#[test]
fn where_memory_can_be_compacted_a_block_is_before_the_first_reclaim_and_at_the_end() {
    for (kernel, rule) in [("linux-5.4", Compaction::On), ("linux-2.6.32", Compaction::Off)] {
        assert_eq!(machine(kernel).core.rules().compaction, rule);
    }
    assert_eq!(walk("linux-5.4", Gfp::KERNEL, 4, PROGRESS), "wsa.rtdtlx");
    assert_eq!(walk("linux-5.4", Gfp::KERNEL, 2, PROGRESS), rounds("wsa", ".rtdtb"));
    assert_eq!(walk("linux-5.4", Gfp::KERNEL, 0, PROGRESS), rounds("ws", ".rtdtb"), "a page needs none");
}
