//! Allocating pages: one pass at the low mark, and the slow path where that finds none
//! (`__alloc_pages`, `__alloc_pages_slowpath`), which does what [`mm::decide::slow_path`] decides.
//!
//! Next: [`super::page`], [`super::stall`], [`super::oom`], [`crate::reclaim`], [`crate::compact`].

use mm::alloc::flags::{AllocFlags, gfp_zone};
use mm::alloc::page_alloc::AllocOutcome;
use mm::base::event::Trace;
use mm::base::gfp::Gfp;
use mm::decide::retry::{Next, Outcome};
use mm::decide::slow_path::SlowRequest;
use mm::{MemcgId, Memory};
use units::{Nanos, NodeId, Order, Pfn};

use crate::alloc::oom::Verdict;
use crate::alloc::oom_watch::OomCall;
use crate::alloc::purpose::Purpose;
use crate::alloc::report::OomControl;
use crate::handle::Kernel;
use crate::machine::{Machine, WaitReason};
use crate::section::{Section, Site};
use crate::tasks::process::Process;

/// Where the waits between two tries are told.
const PAUSE: Section = Section::Site(Site::AllocationPause);

impl<M: Machine, T: Trace> Kernel<M, T> {
    /// Allocates a block for `process`, or for the kernel itself if none; waits as far as `gfp`
    /// allows. None: out of memory, or `gfp` allowed no more.
    pub async fn alloc_pages(&self, process: Option<&Process>, gfp: Gfp, order: Order) -> Option<Pfn> {
        self.alloc_pages_for(Purpose::Other, process, gfp, order).await
    }

    /// [`Self::alloc_pages`], and says what it is for.
    pub(crate) async fn alloc_pages_for(
        &self,
        purpose: Purpose,
        process: Option<&Process>,
        gfp: Gfp,
        order: Order,
    ) -> Option<Pfn> {
        match self.alloc_at_once(gfp, order) {
            Some(pfn) => Some(pfn),
            None => self.alloc_slow(purpose, process, gfp, order).await,
        }
    }

    /// A try in the fast path; where it comes to nothing [`Self::alloc_slow`] goes on.
    pub(crate) fn alloc_at_once(&self, gfp: Gfp, order: Order) -> Option<Pfn> {
        let cpu = self.machine().current_cpu();
        let mut outcome = AllocOutcome::default();
        self.mem(|mem| {
            let flags = mem.core.alloc.fast_flags(cpu, gfp);
            mem.core.alloc.alloc_into(cpu, gfp, order, flags, &mut outcome);
        });
        self.settle_outcome(&outcome, order)
    }

    /// The slow path of a request.
    pub(crate) async fn alloc_slow(
        &self,
        purpose: Purpose,
        process: Option<&Process>,
        gfp: Gfp,
        order: Order,
    ) -> Option<Pfn> {
        if gfp.has(Gfp::DIRECT_RECLAIM) {
            self.flush_plug();
        }
        let mut request = self.mem(|mem| SlowRequest::new(mem.core.rules(), gfp, order));
        let mut outcome = Outcome::NoPage;
        // From the last try before a kill until the victim's memory is free.
        let mut lock = None;
        loop {
            // Either may have changed while it waited.
            let (cpu, victim) = (self.machine().current_cpu(), process.is_some_and(Process::is_killed));
            let next = self.mem(|mem| request.step(mem, cpu, victim, outcome));
            lock = lock.filter(|_| next == Next::Kill);
            let done = match next {
                Next::WakeKswapds => {
                    self.wake_all_kswapds(gfp, order);
                    Err(Outcome::NoPage)
                }
                Next::TryOrStall(flags) => self.try_or_stall(gfp, order, flags).await.ok_or(Outcome::NoPage),
                Next::Try(flags) => self.try_once(gfp, order, flags).ok_or(Outcome::NoPage),
                Next::Reclaim => {
                    let (freed, passes) = self.direct_reclaim(process, gfp, order).await;
                    request.note_run(freed, passes);
                    Err(Outcome::Freed(freed))
                }
                Next::Drain => {
                    self.drain_for(gfp).await;
                    Err(Outcome::NoPage)
                }
                Next::Unreserve => Err(Outcome::Unreserved(self.unreserve_highatomic(gfp, true))),
                Next::Compact(priority, flags) => {
                    self.direct_compact(gfp, order, flags, priority).await.map_err(Outcome::Compacted)
                }
                Next::WaitForWriteback | Next::Pause(..) => {
                    self.pause_for(next).await;
                    Err(Outcome::NoPage)
                }
                Next::Rest => {
                    self.wake_queue(self.shared.wait.kthreadd);
                    self.machine().cond_resched().await;
                    Err(Outcome::NoPage)
                }
                Next::LastTry(flags) => {
                    lock = self.try_lock_oom();
                    self.last_try(gfp, order, flags, lock.is_some()).await
                }
                Next::Kill => {
                    self.mem(|mem| self.shared.oom_watch.show(mem, OomCall { gfp, order, cpu }));
                    self.kill_for(purpose, process, &request).await;
                    Err(Outcome::Killed)
                }
                Next::Fail => return None,
            };
            match done {
                Ok(pfn) => return Some(pfn),
                Err(came_to) => outcome = came_to,
            }
        }
    }

    /// What there is to wait for before the next try.
    async fn pause_for(&self, next: Next) {
        self.machine().enter(PAUSE);
        match next {
            Next::Pause(site, zone) => self.pause(site, zone).await,
            _ => self.congestion_wait(Nanos::from_millis(100)).await,
        }
        self.machine().leave(PAUSE);
    }

    /// Reclaim gave up: the OOM killer runs. Where nobody is left to kill nothing comes after it.
    async fn kill_for(&self, purpose: Purpose, by: Option<&Process>, request: &SlowRequest) {
        let (memcg, cpu, (gfp, order)) = (MemcgId::ROOT, self.machine().current_cpu(), request.wanted());
        let why = self.mem(|mem| mem.why_given_up(cpu, request));
        match self.oom_kill(OomControl { memcg, by, gfp, order, purpose, why }) {
            Verdict::Killed => self.machine().cond_resched().await, // until the oom_reaper is done
            Verdict::Awaits => self.machine().sleep(self.ticks(1), WaitReason::OomLock).await,
            Verdict::NobodyLeft => self.stop_after_panic().await,
        }
    }

    /// Shows memory to `watch` whenever the OOM killer is called for want of pages, before it takes anybody.
    pub fn before_oom_kills(&self, watch: impl FnMut(&Memory<T>, OomCall) + 'static) {
        self.shared.oom_watch.set(watch);
    }

    /// Before the OOM killer runs: one try, unless another task holds its lock.
    async fn last_try(
        &self,
        gfp: Gfp,
        order: Order,
        flags: AllocFlags,
        locked: bool,
    ) -> Result<Pfn, Outcome> {
        if !locked {
            self.machine().enter(PAUSE);
            self.machine().sleep(self.ticks(1), WaitReason::OomLock).await;
            self.machine().leave(PAUSE);
            return Err(Outcome::OomLocked);
        }
        self.try_once(gfp, order, flags).ok_or(Outcome::NoPage)
    }

    /// Reclaim made progress, but others took it all: pages on per-CPU lists may be left.
    async fn drain_for(&self, gfp: Gfp) {
        let _ = self.unreserve_highatomic(gfp, false);
        self.drain_lists().await;
    }

    /// Gives a pageblock of the reserves back that the request could use; unless `force`, each zone
    /// keeps its last one. Returns whether one was given.
    fn unreserve_highatomic(&self, gfp: Gfp, force: bool) -> bool {
        let cpu = self.machine().current_cpu();
        self.mem(|mem| {
            let zones = mem.core.alloc.zonelist(cpu, gfp).to_vec();
            mem.core.alloc.unreserve_highatomic(&zones, gfp.migrate_type(), force)
        })
    }

    /// Whether a request in the slow path would find nobody to wake, and nothing of its own to send off.
    pub(crate) fn would_wake_nobody(&self, gfp: Gfp) -> bool {
        let cpu = self.machine().current_cpu();
        let sleeps = |node: NodeId| self.machine().has_waiters(self.shared.queues[node.index()].kswapd);
        gfp.has(Gfp::KSWAPD_RECLAIM)
            && self.shared.plugs.borrow().is_empty()
            && self.mem(|mem| {
                let alloc = &mem.core.alloc;
                !alloc.zonelist(cpu, gfp).iter().any(|&zone| sleeps(alloc.zone(zone).node))
            })
    }

    pub(crate) fn wake_all_kswapds(&self, gfp: Gfp, order: Order) {
        if !gfp.has(Gfp::KSWAPD_RECLAIM) {
            return;
        }
        let cpu = self.machine().current_cpu();
        // With `vm.defrag_mode` whole pageblocks are wanted in any case.
        let order = self.mem(|mem| {
            let alloc = &mem.core.alloc;
            if alloc.keeps_whole() { order.max(alloc.block_size().order()) } else { order }
        });
        let mut woken: Option<NodeId> = None;
        let node_of = |place| {
            self.mem(|mem| {
                mem.core.alloc.zonelist(cpu, gfp).get(place).map(|&zone| mem.core.alloc.zone(zone).node)
            })
        };
        for node in (0..).map_while(node_of) {
            if woken != Some(node) {
                let sleeps_on = !self.wakeup_kswapd(node, order, gfp_zone(gfp));
                if sleeps_on && !gfp.has(Gfp::DIRECT_RECLAIM) {
                    self.wakeup_kcompactd(node, order, gfp_zone(gfp));
                }
                woken = Some(node);
            }
        }
    }
}
