//! What a request does that found no free page: the slow path of the page allocator as it is since
//! 4.7 (`__alloc_pages_slowpath`; MECHANISMS 4.4).
//!
//! ```text
//!   wake kswapd, try at the min mark
//!    R: wake kswapd again, try with whatever reserves the task may use
//!       direct reclaim, try; if that freed pages but none is left, drain all CPUs and try (since 2.6.36)
//!       compact, try (large orders, and small ones that others cannot make, compact before R too)
//!       retry while reclaim or compaction can still help, or the reserve for high-order atomic
//!       requests has something to give, else OOM
//! ```
//! With `vm.defrag_mode` (6.15) mobility types are kept apart up to the end of the first round (MECHANISMS-510-72 1.7).
//!
//! Left out: CPU sets. Neighbours: [`super::retry_paused`] for what was before, [`super::priority`] for the reclaim;
//! `retry_scripts` walks requests through it.

use units::{CpuId, NodeId, Order};

use crate::alloc::flags::{AllocFlags, gfp_zone};
use crate::alloc::pcp::COSTLY_ORDER;
use crate::alloc::suitable::Suitability;
use crate::alloc::watermark::Mark;
use crate::base::event::Trace;
use crate::base::gfp::Gfp;
use crate::base::layout::ZoneId;
use crate::compact::state::{CompactPriority, CompactResult};
use crate::decide::backoff::Site;
use crate::memory::Memory;
use crate::version::rules::{CompactRetry, FailedReclaim, FirstCompaction, ReserveUsers, Throttle};

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
    /// Whether a pageblock of the reserve for high-order atomic requests was given back.
    Unreserved(bool),
    /// Compaction ended so, and there is no page.
    Compacted(CompactResult),
    /// Another task runs the OOM killer, which was waited for.
    OomLocked,
    /// The OOM killer took somebody, perhaps the task itself.
    Killed,
    /// The OOM killer found nobody to take.
    NobodyLeft,
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
    /// Give a spare pageblock of the reserve for high-order atomic requests back, and drain the
    /// per-CPU lists of all CPUs.
    Drain,
    /// Give a pageblock of that reserve back, the last one too.
    Unreserve,
    /// Compact this hard and try with these flags.
    Compact(CompactPriority, AllocFlags),
    /// Sleep 100 ms: most of what could be freed is dirty.
    WaitForWriteback,
    /// Pause at this site, for want of pages of this zone.
    Pause(Site, ZoneId),
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
    Unreserve,
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
    /// Those of this round.
    flags: AllocFlags,
    /// Rounds in a row that freed nothing.
    fruitless: u32,
    /// Pages that reclaim freed in this round.
    progress: u64,
    /// How hard compaction tries next, how it ended last, and rounds of it at this priority.
    priority: CompactPriority,
    compacted: CompactResult,
    compact_retries: u32,
    /// It does not mix types yet: `vm.defrag_mode`, and no round has failed so far.
    keeps_whole: bool,
    at: At,
}

impl Retry {
    /// A request that found no page at the low mark.
    pub fn new(gfp: Gfp, order: Order) -> Self {
        Self {
            gfp,
            order,
            flags: AllocFlags::WMARK_MIN,
            fruitless: 0,
            progress: 0,
            priority: CompactPriority::SyncLight,
            compacted: CompactResult::Skipped,
            compact_retries: 0,
            keeps_whole: false,
            at: At::Start,
        }
    }

    /// Whether it went round as often as a request may without progress.
    pub const fn is_out_of_rounds(&self) -> bool {
        self.fruitless > MAX_RECLAIM_RETRIES
    }

    fn go(&mut self, at: At, next: Next) -> Next {
        self.at = at;
        next
    }

    fn flags_of_round(&self, users: ReserveUsers, victim: bool) -> AllocFlags {
        let flags = AllocFlags::slow(users, self.gfp, self.order, victim);
        if self.keeps_whole { flags | AllocFlags::NOFRAGMENT } else { flags }
    }

    fn round(&mut self) -> Next {
        self.go(At::RoundWake, Next::WakeKswapds)
    }

    /// The next step, for a task on `cpu`. `victim`: the OOM killer took the task by now; from its
    /// next round on it may use a part of the reserves (MECHANISMS 1.8).
    pub fn step<T: Trace>(&mut self, mem: &Memory<T>, cpu: CpuId, victim: bool, outcome: Outcome) -> Next {
        match self.at {
            At::Start => {
                self.keeps_whole = mem.core.alloc.keeps_whole() && self.gfp.has(Gfp::DIRECT_RECLAIM);
                self.flags = self.flags_of_round(mem.core.rules().reserve_users, false);
                self.go(At::FirstWake, Next::WakeKswapds)
            }
            At::FirstWake => self.go(At::FirstTry, Next::TryOrStall(self.flags)),
            At::FirstTry if self.compacts_first() => {
                self.go(At::FirstCompact, Next::Compact(CompactPriority::Async, self.flags))
            }
            At::FirstTry => self.round(),
            At::FirstCompact => self.after_first_compaction(mem, outcome),
            At::RoundWake => {
                self.flags = self.flags_of_round(mem.core.rules().reserve_users, victim);
                self.go(At::RoundTry, Next::Try(self.flags))
            }
            At::RoundTry if !self.gfp.has(Gfp::DIRECT_RECLAIM) => Next::Fail,
            At::RoundTry => self.go(At::Reclaim, Next::Reclaim),
            At::Reclaim => {
                let Outcome::Freed(progress) = outcome else { panic!("reclaim came to {outcome:?}") };
                self.progress = progress;
                if progress == 0 {
                    self.compact(mem, cpu)
                } else if self.order > Order(0) && mem.core.rules().failed_reclaim == FailedReclaim::GoesOn {
                    self.go(At::Drain, Next::Drain)
                } else {
                    self.go(At::TryAfterReclaim, Next::Try(self.flags))
                }
            }
            At::TryAfterReclaim if mem.core.rules().failed_reclaim == FailedReclaim::Drains => {
                self.go(At::Drain, Next::Drain)
            }
            At::TryAfterReclaim => self.compact(mem, cpu),
            At::Drain => self.go(At::TryAfterDrain, Next::Try(self.flags)),
            At::TryAfterDrain => self.compact(mem, cpu),
            At::Compact => {
                self.note_compaction(outcome);
                self.after_round(mem, cpu)
            }
            At::Unreserve if outcome == Outcome::Unreserved(true) => self.round(),
            At::Unreserve => self.after_reclaim(mem, cpu),
            At::Wait => self.go(At::Rest, Next::Rest),
            At::Rest => self.round(),
            At::LastTry => self.after_last_try(victim, outcome),
            At::Kill => self.after_kill(victim, outcome),
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

    fn after_first_compaction<T: Trace>(&mut self, mem: &Memory<T>, outcome: Outcome) -> Next {
        self.note_compaction(outcome);
        if self.order > COSTLY_ORDER && self.gfp.has(Gfp::NORETRY) {
            let fails = match mem.core.rules().first_compaction {
                FirstCompaction::PutOff => self.compacted == CompactResult::Deferred,
                FirstCompaction::NotRun => self.compacted <= CompactResult::Deferred,
                FirstCompaction::Never => false,
            };
            if fails {
                return self.fail();
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
        if gives_up {
            return self.fail();
        }
        if core::mem::take(&mut self.keeps_whole) {
            return self.go(At::Rest, Next::Rest); // Reclaim and compaction failed once.
        }
        if self.progress > 0 && self.order <= COSTLY_ORDER {
            self.fruitless = 0;
        } else {
            self.fruitless += 1;
        }
        if self.fruitless > MAX_RECLAIM_RETRIES {
            return self.go(At::Unreserve, Next::Unreserve);
        }
        if let Some(node) = self.reclaim_can_help(mem, cpu) {
            // Up to 5.15 a request that reclaim did not help lets the disk catch up first.
            let heeds_disk = self.progress == 0 && mem.core.rules().throttle == Throttle::CongestionWait;
            if heeds_disk && mem.is_mostly_dirty(node) {
                return self.go(At::Wait, Next::WaitForWriteback);
            }
            return self.go(At::Rest, Next::Rest);
        }
        self.after_reclaim(mem, cpu)
    }

    /// Reclaim is at its end: compaction, or the OOM killer?
    fn after_reclaim<T: Trace>(&mut self, mem: &Memory<T>, cpu: CpuId) -> Next {
        if self.progress > 0 && self.should_compact_retry(mem, cpu) {
            return self.go(At::Rest, Next::Rest);
        }
        self.go(At::LastTry, Next::LastTry(AllocFlags::WMARK_HIGH))
    }

    /// `should_reclaim_retry`: the node of the first zone that could pass its min mark if all its file
    /// pages were freed.
    fn reclaim_can_help<T: Trace>(&self, mem: &Memory<T>, cpu: CpuId) -> Option<NodeId> {
        let zones = mem.core.alloc.zonelist(cpu, self.gfp).iter().map(|&id| mem.core.alloc.zone(id));
        let mut passing = zones.filter(|zone| {
            let available = zone.free_pages().0 + mem.zone_reclaimable_pages(zone.node, zone.kind);
            let mark = zone.watermarks.mark(Mark::Min);
            zone.watermark_ok(self.order, mark, gfp_zone(self.gfp), self.flags, available)
        });
        passing.next().map(|zone| zone.node)
    }

    /// `should_compact_retry`: another round is worth it, perhaps one that tries harder.
    fn should_compact_retry<T: Trace>(&mut self, mem: &Memory<T>, cpu: CpuId) -> bool {
        if self.order == Order(0) {
            return false;
        }
        let costly = self.order > COSTLY_ORDER;
        match self.compacted {
            // Reclaim must help first.
            CompactResult::Skipped => return self.compaction_can_help(mem, cpu),
            CompactResult::Deferred | CompactResult::Contended | CompactResult::PartialSkipped => {
                if mem.core.rules().compact_retry == CompactRetry::AsItWas {
                    return self.compaction_can_help(mem, cpu);
                }
            }
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
        self.priority = self.priority.harder();
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

    /// Whether memory for this request is worth a life: it is not too large, nor willing to fail, and
    /// what is short is more than the lowest zone (MECHANISMS 13.1).
    fn is_worth_a_kill(&self) -> bool {
        self.order <= COSTLY_ORDER && !self.gfp.has(Gfp::RETRY_MAYFAIL) && !self.gfp.has(Gfp::DMA)
    }

    /// A victim that had its reserves in this round, or may not use any, ends here: it shall exit.
    fn is_spent(&self, victim: bool) -> bool {
        let had_reserves = self.flags.has_any(AllocFlags::OOM) || self.gfp.has(Gfp::NOMEMALLOC);
        victim && had_reserves && !self.gfp.has(Gfp::NOFAIL)
    }

    fn after_last_try(&mut self, victim: bool, outcome: Outcome) -> Next {
        if outcome == Outcome::OomLocked {
            return self.after_progress(victim);
        }
        if !self.is_worth_a_kill() {
            return self.fail();
        }
        if self.gfp.has(Gfp::FS) {
            return self.go(At::Kill, Next::Kill);
        }
        if self.is_spent(victim) {
            return Next::Fail;
        }
        // Loops as the kernel does: somebody else must free memory.
        self.rest()
    }

    /// The end, unless the request must not fail.
    fn fail(&mut self) -> Next {
        if self.gfp.has(Gfp::NOFAIL) { self.rest() } else { Next::Fail }
    }

    fn rest(&mut self) -> Next {
        self.fruitless = 0;
        self.go(At::Rest, Next::Rest)
    }

    fn after_kill(&mut self, victim: bool, outcome: Outcome) -> Next {
        match outcome {
            Outcome::Killed => self.after_progress(victim),
            // Where Linux panics.
            Outcome::NobodyLeft => Next::Fail,
            _ => panic!("a kill came to {outcome:?}"),
        }
    }

    /// Somebody's memory comes free.
    fn after_progress(&mut self, victim: bool) -> Next {
        if self.is_spent(victim) {
            return Next::Fail;
        }
        self.fruitless = 0;
        self.round()
    }
}
