//! What a request does that found no free page: the slow path of the page allocator up to 4.6
//! (`__alloc_pages_slowpath`; MECHANISMS 4.1).
//!
//! ```text
//!   1: wake kswapd, try at the min mark
//!   R: a victim of the OOM killer tries for the last page; one that must not fail pauses and tries on
//!      direct reclaim, and others may run before its pages are tried for
//!      nothing freed: OOM killer, then on at 1
//!      pages freed, none for it: a pause, then on at R, without a wake-up of kswapd
//! ```
//! A small block is never given up, however long that takes. One deviation: a request that may not enter the
//! filesystem, and so kills nobody, tries the free lists in every round, even where reclaim freed nothing.
//! Linux 2.6.32 does not look, and may wait for ever beside pages that others freed; here it looks, so that a
//! run ends. Left out: tasks that reclaim while they reclaim;
//! atomic requests of those who only may not sleep, which may go deeper; where memory can be compacted, what
//! 2.6.35 to 4.6 knew of deferred compaction. Neighbours: [`super::retry`] for the rounds since 4.7,
//! [`super::backoff`] for the pause; `retry_paused_scripts` walks requests through it.

use units::{CpuId, Order};

use crate::alloc::flags::AllocFlags;
use crate::alloc::pcp::COSTLY_ORDER;
use crate::base::event::Trace;
use crate::base::gfp::Gfp;
use crate::compact::state::CompactPriority;
use crate::decide::backoff::Site;
use crate::decide::retry::{Next, Outcome};
use crate::memory::Memory;
use crate::version::rules::{Compaction, FailedReclaim, ReserveUsers};

/// What was asked for last: how to read the outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    Start,
    Wake,
    FirstTry,
    LastPage,
    LastPagePause,
    Compact,
    Rest,
    Reclaim,
    DrainBeforeTry,
    TryAfterReclaim,
    Drain,
    TryAfterDrain,
    TryForOthers,
    LastCompact,
    LastTry,
    Kill,
    Pause,
}

/// A request in the slow path.
#[derive(Debug, Clone, Copy)]
pub struct PausedRetry {
    gfp: Gfp,
    order: Order,
    /// Those since it last started over.
    flags: AllocFlags,
    /// It may take the last page: it was a victim when it last started over.
    may_take_all: bool,
    /// Its first try is over, which alone may stall on fragmentation.
    tried: bool,
    /// Pages that reclaim freed in this round, and in all of them.
    progress: u64,
    reclaimed: u64,
    /// It has compacted before it reclaimed.
    compacted: bool,
    at: At,
}

impl PausedRetry {
    /// A request that found no page at the low mark.
    pub fn new(gfp: Gfp, order: Order) -> Self {
        Self {
            gfp,
            order,
            flags: AllocFlags::slow(ReserveUsers::Atomic, gfp, order, false),
            may_take_all: false,
            tried: false,
            progress: 0,
            reclaimed: 0,
            compacted: false,
            at: At::Start,
        }
    }

    fn go(&mut self, at: At, next: Next) -> Next {
        self.at = at;
        next
    }

    fn start_over(&mut self) -> Next {
        self.go(At::Wake, Next::WakeKswapds)
    }

    /// The next step, for a task on `cpu`; `victim`: the OOM killer took the task by now.
    pub fn step<T: Trace>(&mut self, mem: &Memory<T>, cpu: CpuId, victim: bool, outcome: Outcome) -> Next {
        match self.at {
            At::Start => self.start_over(),
            At::Wake => {
                self.may_take_all = victim && !self.gfp.has(Gfp::NOMEMALLOC);
                let first = !core::mem::replace(&mut self.tried, true);
                let flags = self.flags;
                self.go(At::FirstTry, if first { Next::TryOrStall(flags) } else { Next::Try(flags) })
            }
            At::FirstTry | At::Pause => self.rebalance(mem, victim),
            At::LastPage if self.gfp.has(Gfp::NOFAIL) => self.pause(mem, cpu, Site::HighPriority),
            At::LastPage => self.before_reclaim(mem, victim),
            At::LastPagePause => self.rebalance(mem, victim),
            At::Compact => self.go(At::Rest, Next::Rest),
            At::Rest => self.go(At::Reclaim, Next::Reclaim),
            At::Reclaim => self.after_reclaim(mem, cpu, outcome),
            At::DrainBeforeTry if self.progress == 0 => self.without_page(mem, cpu),
            At::DrainBeforeTry => self.go(At::TryAfterReclaim, Next::Try(self.flags)),
            At::TryAfterReclaim if mem.core.rules().failed_reclaim == FailedReclaim::Drains => {
                self.go(At::Drain, Next::Drain)
            }
            At::Drain => self.go(At::TryAfterDrain, Next::Try(self.flags)),
            At::TryAfterReclaim | At::TryAfterDrain => self.without_page(mem, cpu),
            At::TryForOthers => self.pause(mem, cpu, Site::SlowPath),
            At::LastCompact => Next::Fail,
            At::LastTry => self.after_last_try(outcome),
            At::Kill => match outcome {
                Outcome::Killed => self.start_over(),
                // Where Linux panics.
                Outcome::NobodyLeft => Next::Fail,
                _ => panic!("a kill came to {outcome:?}"),
            },
        }
    }

    /// R: the begin of a round.
    fn rebalance<T: Trace>(&mut self, mem: &Memory<T>, victim: bool) -> Next {
        if self.may_take_all {
            return self.go(At::LastPage, Next::Try(AllocFlags::NO_WATERMARKS));
        }
        self.before_reclaim(mem, victim)
    }

    /// Others may run before it reclaims. Who may not wait ends here, and so does a victim, that it can exit.
    fn before_reclaim<T: Trace>(&mut self, mem: &Memory<T>, victim: bool) -> Next {
        if !self.gfp.has(Gfp::DIRECT_RECLAIM) || (victim && !self.gfp.has(Gfp::NOFAIL)) {
            return Next::Fail;
        }
        if self.compacts(mem) && !core::mem::replace(&mut self.compacted, true) {
            return self.go(At::Compact, Next::Compact(CompactPriority::Async, self.flags));
        }
        self.go(At::Rest, Next::Rest)
    }

    fn compacts<T: Trace>(&self, mem: &Memory<T>) -> bool {
        self.order > Order(0) && mem.core.rules().compaction == Compaction::On
    }

    fn after_reclaim<T: Trace>(&mut self, mem: &Memory<T>, cpu: CpuId, outcome: Outcome) -> Next {
        let Outcome::Freed(progress) = outcome else { panic!("reclaim came to {outcome:?}") };
        self.progress = progress;
        if self.order > Order(0) && mem.core.rules().failed_reclaim == FailedReclaim::GoesOn {
            self.go(At::DrainBeforeTry, Next::Drain)
        } else if progress > 0 {
            self.go(At::TryAfterReclaim, Next::Try(self.flags))
        } else {
            self.without_page(mem, cpu)
        }
    }

    /// Reclaim is over, and there is no page: the OOM killer, a pause, or the end?
    fn without_page<T: Trace>(&mut self, mem: &Memory<T>, cpu: CpuId) -> Next {
        if self.progress == 0 && self.gfp.has(Gfp::FS) && !self.gfp.has(Gfp::NORETRY) {
            return self.go(At::LastTry, Next::LastTry(AllocFlags::WMARK_HIGH));
        }
        self.reclaimed += self.progress;
        if self.should_retry() {
            if self.progress == 0 {
                // The deviation: others may have freed pages meanwhile.
                return self.go(At::TryForOthers, Next::Try(self.flags));
            }
            self.pause(mem, cpu, Site::SlowPath)
        } else if self.compacts(mem) {
            self.go(At::LastCompact, Next::Compact(CompactPriority::SyncLight, self.flags))
        } else {
            Next::Fail
        }
    }

    /// `should_alloc_retry`
    const fn should_retry(&self) -> bool {
        let gfp = self.gfp;
        if gfp.has(Gfp::NORETRY) {
            return false;
        }
        let wants_more = gfp.has(Gfp::RETRY_MAYFAIL) && self.reclaimed < self.order.pages() as u64;
        self.order.0 <= COSTLY_ORDER.0 || wants_more || gfp.has(Gfp::NOFAIL)
    }

    fn pause<T: Trace>(&mut self, mem: &Memory<T>, cpu: CpuId, site: Site) -> Next {
        let preferred = mem.core.alloc.zonelist(cpu, self.gfp)[0];
        let at = if site == Site::HighPriority { At::LastPagePause } else { At::Pause };
        self.go(at, Next::Pause(site, preferred))
    }

    /// Nobody is killed for a large block, which that would not bring about; unless it must not fail it ends.
    fn after_last_try(&mut self, outcome: Outcome) -> Next {
        let costly = self.order > COSTLY_ORDER;
        if costly && !self.gfp.has(Gfp::NOFAIL) {
            Next::Fail
        } else if costly || outcome == Outcome::OomLocked {
            self.start_over()
        } else {
            self.go(At::Kill, Next::Kill)
        }
    }
}
