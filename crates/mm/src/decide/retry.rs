//! What a request does that found no free page: the slow path of the page allocator as it is since
//! 4.7 (`__alloc_pages_slowpath`; MECHANISMS 4.4).
//!
//! ```text
//!   wake kswapd, try at the min mark
//!    R: wake kswapd again, try with whatever reserves the task may use
//!       direct reclaim, try; if that freed pages but none is left, drain all CPUs and try
//!       compact, try (large orders, and small ones that others cannot make, compact before R too)
//!       retry while reclaim or compaction can still help, else OOM
//! ```
//! Left out: CPU sets. Neighbours: [`super::priority`] for the reclaim, [`crate::compact::run`].

use units::{CpuId, Order};

use crate::alloc::flags::{AllocFlags, gfp_zone};
use crate::alloc::pcp::COSTLY_ORDER;
use crate::alloc::suitable::Suitability;
use crate::alloc::watermark::Mark;
use crate::base::event::Trace;
use crate::base::gfp::Gfp;
use crate::compact::state::{CompactPriority, CompactResult};
use crate::memory::Memory;
use crate::version::rules::Throttle;

/// Rounds without progress before the OOM killer (`MAX_RECLAIM_RETRIES`).
const MAX_RECLAIM_RETRIES: u32 = 16;
/// Rounds in which compaction made progress (`MAX_COMPACT_RETRIES`); a quarter of it for costly
/// orders.
const MAX_COMPACT_RETRIES: u32 = 16;

/// What came of the last step. A page ends the path, so nobody asks what comes then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It was done, and there is no page.
    NoPage,
    /// So many pages were freed.
    Freed(u64),
    /// Compaction ended so, and there is no page.
    Compacted(CompactResult),
    /// Another task runs the OOM killer, which was waited for.
    OomLocked,
    /// The OOM killer ran.
    Killed {
        /// Somebody was killed.
        any: bool,
        /// The task itself was.
        oneself: bool,
    },
}

/// What a request does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Next {
    /// Wake kswapd of every node that the request may use.
    WakeKswapds,
    /// Try with these flags; the request may stall on fragmentation.
    TryOrStall(AllocFlags),
    /// Try with these flags.
    Try(AllocFlags),
    /// Direct reclaim.
    Reclaim,
    /// Drain the per-CPU lists of all CPUs.
    Drain,
    /// Compact this hard and try with these flags.
    Compact(CompactPriority, AllocFlags),
    /// Sleep 100 ms: most of what could be freed is dirty.
    WaitForWriteback,
    /// Let others run.
    Rest,
    /// Try with these flags, unless another task runs the OOM killer.
    LastTry(AllocFlags),
    /// Run the OOM killer.
    Kill,
    /// Give up.
    Fail,
}

/// What was asked for last: how to read the outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    Start,
    FirstWake,
    FirstTry,
    FirstCompact,
    RoundWake,
    RoundTry,
    Reclaim,
    TryAfterReclaim,
    Drain,
    TryAfterDrain,
    Compact,
    Wait,
    Rest,
    LastTry,
    Kill,
}

/// A request in the slow path.
#[derive(Debug, Clone, Copy)]
pub struct Retry {
    gfp: Gfp,
    order: Order,
    flags: AllocFlags,
    /// The task was killed by the OOM killer before.
    victim: bool,
    /// Rounds in a row that freed nothing.
    fruitless: u32,
    /// Pages that reclaim freed in this round.
    progress: u64,
    /// How hard compaction tries next, how it ended last, and rounds of it at this priority.
    priority: CompactPriority,
    compacted: CompactResult,
    compact_retries: u32,
    at: At,
}

impl Retry {
    /// A request of a task; `victim`: the OOM killer took it.
    pub fn new(gfp: Gfp, order: Order, victim: bool) -> Self {
        Self {
            gfp,
            order,
            flags: AllocFlags::slow(gfp, false, victim),
            victim,
            fruitless: 0,
            progress: 0,
            priority: CompactPriority::SyncLight,
            compacted: CompactResult::Skipped,
            compact_retries: 0,
            at: At::Start,
        }
    }

    fn go(&mut self, at: At, next: Next) -> Next {
        self.at = at;
        next
    }

    fn round(&mut self) -> Next {
        self.go(At::RoundWake, Next::WakeKswapds)
    }

    /// The next step, for a task on `cpu`.
    pub fn step<T: Trace>(&mut self, mem: &Memory<T>, cpu: CpuId, outcome: Outcome) -> Next {
        match self.at {
            At::Start => self.go(At::FirstWake, Next::WakeKswapds),
            At::FirstWake => self.go(At::FirstTry, Next::TryOrStall(self.flags)),
            At::FirstTry if self.compacts_first() => {
                self.go(At::FirstCompact, Next::Compact(CompactPriority::Async, self.flags))
            }
            At::FirstTry => self.round(),
            At::FirstCompact => self.after_first_compaction(outcome),
            At::RoundWake => self.go(At::RoundTry, Next::Try(self.flags)),
            At::RoundTry if !self.gfp.has(Gfp::DIRECT_RECLAIM) => Next::Fail,
            At::RoundTry if self.victim && !self.gfp.has(Gfp::NOFAIL) => Next::Fail,
            At::RoundTry => self.go(At::Reclaim, Next::Reclaim),
            At::Reclaim => {
                let Outcome::Freed(progress) = outcome else { panic!("reclaim came to {outcome:?}") };
                self.progress = progress;
                if progress > 0 {
                    self.go(At::TryAfterReclaim, Next::Try(self.flags))
                } else {
                    self.compact(mem, cpu)
                }
            }
            At::TryAfterReclaim => self.go(At::Drain, Next::Drain),
            At::Drain => self.go(At::TryAfterDrain, Next::Try(self.flags)),
            At::TryAfterDrain => self.compact(mem, cpu),
            At::Compact => {
                self.note_compaction(outcome);
                self.after_round(mem, cpu)
            }
            At::Wait => self.go(At::Rest, Next::Rest),
            At::Rest => self.round(),
            At::LastTry => self.after_last_try(outcome),
            At::Kill => self.after_kill(outcome),
        }
    }

    /// Large blocks are left to compaction before any reclaim, and so are small ones that it can make
    /// out of what others freed.
    fn compacts_first(&self) -> bool {
        let for_others = self.order > Order(0) && !self.gfp.has(Gfp::MOVABLE_BIT);
        self.gfp.has(Gfp::DIRECT_RECLAIM) && (self.order > COSTLY_ORDER || for_others)
    }

    fn note_compaction(&mut self, outcome: Outcome) {
        let Outcome::Compacted(result) = outcome else { panic!("compaction came to {outcome:?}") };
        self.compacted = result;
    }

    fn after_first_compaction(&mut self, outcome: Outcome) -> Next {
        self.note_compaction(outcome);
        if self.order > COSTLY_ORDER && self.gfp.has(Gfp::NORETRY) {
            if self.compacted <= CompactResult::Deferred {
                return Next::Fail;
            }
            self.priority = CompactPriority::Async;
        }
        self.round()
    }

    fn compact<T: Trace>(&mut self, mem: &Memory<T>, cpu: CpuId) -> Next {
        if self.order == Order(0) {
            return self.after_round(mem, cpu);
        }
        self.go(At::Compact, Next::Compact(self.priority, self.flags))
    }

    /// Reclaim and compaction did not help: again, or the end?
    fn after_round<T: Trace>(&mut self, mem: &Memory<T>, cpu: CpuId) -> Next {
        let gfp = self.gfp;
        let gives_up = gfp.has(Gfp::NORETRY) || (self.order > COSTLY_ORDER && !gfp.has(Gfp::RETRY_MAYFAIL));
        if gives_up && !gfp.has(Gfp::NOFAIL) {
            return Next::Fail;
        }
        if self.progress > 0 && self.order <= COSTLY_ORDER {
            self.fruitless = 0;
        } else {
            self.fruitless += 1;
        }
        if self.fruitless <= MAX_RECLAIM_RETRIES && self.reclaim_can_help(mem, cpu) {
            // Up to 5.15 a request that reclaim did not help lets the disk catch up first.
            let heeds_disk = self.progress == 0 && mem.core.rules().throttle == Throttle::CongestionWait;
            if heeds_disk && mem.nodes().any(|node| mem.is_mostly_dirty(node)) {
                return self.go(At::Wait, Next::WaitForWriteback);
            }
            return self.go(At::Rest, Next::Rest);
        }
        if self.progress > 0 && self.should_compact_retry(mem, cpu) {
            return self.go(At::Rest, Next::Rest);
        }
        self.go(At::LastTry, Next::LastTry(AllocFlags::WMARK_HIGH))
    }

    /// `should_reclaim_retry`: could any zone pass its min mark if all its file pages were freed?
    fn reclaim_can_help<T: Trace>(&self, mem: &Memory<T>, cpu: CpuId) -> bool {
        mem.core.alloc.zonelist(cpu, self.gfp).iter().any(|&id| {
            let zone = mem.core.alloc.zone(id);
            let available = zone.free_pages().0 + mem.zone_reclaimable_pages(zone.node, zone.kind);
            let mark = zone.watermarks.mark(Mark::Min);
            zone.watermark_ok(self.order, mark, gfp_zone(self.gfp), self.flags, available)
        })
    }

    /// `should_compact_retry`: another round is worth it, perhaps one that tries harder.
    fn should_compact_retry<T: Trace>(&mut self, mem: &Memory<T>, cpu: CpuId) -> bool {
        if self.order == Order(0) {
            return false;
        }
        let costly = self.order > COSTLY_ORDER;
        match self.compacted {
            CompactResult::Skipped
            | CompactResult::Deferred
            | CompactResult::Contended
            | CompactResult::PartialSkipped => return self.compaction_can_help(mem, cpu),
            CompactResult::Success => {
                self.compact_retries += 1;
                let most = if costly { MAX_COMPACT_RETRIES / 4 } else { MAX_COMPACT_RETRIES };
                if self.compact_retries <= most {
                    return true;
                }
            }
            CompactResult::Complete => {}
        }
        let hardest = if costly { CompactPriority::SyncLight } else { CompactPriority::SyncFull };
        if self.priority <= hardest {
            return false;
        }
        self.priority = match self.priority {
            CompactPriority::Async => CompactPriority::SyncLight,
            _ => CompactPriority::SyncFull,
        };
        self.compact_retries = 0;
        true
    }

    /// `compaction_zonelist_suitable`: could any zone be compacted if a part of its file pages were
    /// freed?
    fn compaction_can_help<T: Trace>(&self, mem: &Memory<T>, cpu: CpuId) -> bool {
        mem.core.alloc.zonelist(cpu, self.gfp).iter().any(|&id| {
            let zone = mem.core.alloc.zone(id);
            let reclaimable = mem.zone_reclaimable_pages(zone.node, zone.kind) / u64::from(self.order.0);
            let available = zone.free_pages().0 + reclaimable;
            let highest_zoneidx = gfp_zone(self.gfp);
            mem.compaction_suitable_with(id, self.order, self.flags, highest_zoneidx, available)
                != Suitability::Skip
        })
    }

    fn may_kill(&self) -> bool {
        self.order <= COSTLY_ORDER && self.gfp.has(Gfp::FS) && !self.gfp.has(Gfp::RETRY_MAYFAIL)
    }

    fn after_last_try(&mut self, outcome: Outcome) -> Next {
        if outcome == Outcome::OomLocked {
            self.fruitless = 0;
            return self.round();
        }
        if self.may_kill() {
            return self.go(At::Kill, Next::Kill);
        }
        if self.gfp.has(Gfp::FS) {
            return Next::Fail;
        }
        // Loops as the kernel does: somebody else must free memory.
        self.fruitless = 0;
        self.go(At::Rest, Next::Rest)
    }

    fn after_kill(&mut self, outcome: Outcome) -> Next {
        let Outcome::Killed { any, oneself } = outcome else { panic!("a kill came to {outcome:?}") };
        if !any || (oneself && !self.gfp.has(Gfp::NOFAIL)) {
            return Next::Fail;
        }
        self.fruitless = 0;
        self.round()
    }
}

#[cfg(test)]
mod tests {
    use std_alloc::string::String;

    use super::*;
    use crate::base::event::NoTrace;
    use crate::decide::scene::{add_dirty_page, machine};

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
}
