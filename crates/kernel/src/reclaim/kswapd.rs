//! kswapd: the background reclaimer of a node. What it does is decided by [`mm::decide::balance`] or
//! [`mm::decide::balance_zones`], and [`mm::decide::kswapd`].
//!
//! kcompactd is woken after a boosted run and before dozing. Neighbours: [`super::pass`],
//! [`crate::compact::kcompactd`].

use mm::MemcgId;
use mm::base::event::{Trace, TraceEvent};
use mm::base::gfp::Gfp;
use mm::base::layout::ZoneKind;
use mm::decide::balance::BalanceNext;
use mm::decide::balance_zones::Run;
use mm::decide::kswapd::{FallAsleep, Job, SleepNext};
use mm::reclaim::run::ScanControl;
use units::{NodeId, Order};

use crate::alloc::purpose::Purpose;
use crate::alloc::report::OomControl;
use crate::handle::Kernel;
use crate::machine::{BuiltPreemption, CostOp, Machine, WaitReason, Woken};
use crate::section::{Section, Site};

impl<M: Machine, T: Trace> Kernel<M, T> {
    /// The thread.
    pub(crate) async fn kswapd(&self, node: NodeId) {
        let (mut job, mut ran) = (Job::FIRST, Order(0));
        loop {
            self.kswapd_try_to_sleep(node, &job, ran).await;
            self.kswapd_request(node, |request| job.take(request));
            ran = job.order;
            self.mem(|mem| mem.core.tell(|_| TraceEvent::VmscanKswapdWake { nid: node, order: job.order }));
            self.machine().enter(Section::Site(Site::Kswapd));
            let reclaim_order = self.balance_pgdat(node, job.order, job.highest_zoneidx).await;
            self.machine().leave(Section::Site(Site::Kswapd));
            self.kswapd_request(node, |request| job.settle(reclaim_order, *request));
        }
    }

    async fn kswapd_try_to_sleep(&self, node: NodeId, job: &Job, ran: Order) {
        let (machine, queues) = (self.machine(), self.shared.queues[node.index()]);
        let mut fall = FallAsleep::new(node, job, ran);
        let mut woken = Woken::TimedOut;
        loop {
            let is_woken = woken == Woken::Signalled;
            match self.kswapd_request(node, |asked| self.mem(|mem| fall.step(mem, asked, is_woken))) {
                SleepNext::LetWaitersGo => {
                    machine.wake_all(queues.pfmemalloc);
                }
                SleepNext::Doze(length) => {
                    self.wakeup_kcompactd(node, job.order, job.highest_zoneidx);
                    let doze = self.timeout(length);
                    woken = machine.wait(queues.kswapd, WaitReason::KswapdDoze, Some(doze)).await;
                    if woken == Woken::Signalled {
                        self.kswapd_request(node, |request| job.ask_again(request));
                    }
                }
                SleepNext::Sleep => {
                    let _ = machine.wait(queues.kswapd, WaitReason::KswapdIdle, None).await;
                    return;
                }
                SleepNext::Stay => return,
            }
        }
    }

    /// `balance_pgdat`: returns the order that it still reclaims for.
    async fn balance_pgdat(&self, node: NodeId, order: Order, highest_zoneidx: ZoneKind) -> Order {
        let machine = self.machine();
        let waiters = self.shared.queues[node.index()].pfmemalloc;
        let mut run = self.mem(|mem| Run::begin(mem, node, order, highest_zoneidx));
        loop {
            let anybody_waits = machine.has_waiters(waiters);
            match self.mem(|mem| run.step(mem, anybody_waits)) {
                BalanceNext::Shrink => {
                    self.age_active_anon(node, run.sc()).await;
                    self.heed_min_ttl(node, run.sc());
                    self.shrink_node(node, run.sc()).await;
                }
                BalanceNext::Relieve(zone) => self.check_zone_pressure(zone),
                BalanceNext::Pause(site, zone) => self.pause(site, zone).await,
                BalanceNext::Rest { wake } => {
                    self.check_node_pressure(node);
                    if wake {
                        machine.wake_all(waiters);
                    }
                    if machine.build().preemption != Some(BuiltPreemption::None) {
                        machine.cond_resched().await; // kthread_freezable_should_stop
                    }
                }
                BalanceNext::Done { boosted } => {
                    machine.charge(CostOp::WalkMemcg, 1);
                    if boosted {
                        let order = self.mem(|mem| mem.core.alloc.block_size().order());
                        self.wakeup_kcompactd(node, order, highest_zoneidx);
                    }
                    return run.order();
                }
            }
        }
    }

    /// Kills a process where no generation lasts as long as `min_ttl_ms` says.
    fn heed_min_ttl(&self, node: NodeId, sc: &ScanControl) {
        let now = self.machine().now();
        if !self.mem(|mem| mem.all_too_young(node, sc, now)) {
            return;
        }
        let Some(_lock) = self.try_lock_oom() else { return };
        let why = vec!["no generation lasts for lru_gen.min_ttl_ms".to_owned()];
        let (by, gfp, order, purpose) = (None, Gfp::KERNEL, Order(0), Purpose::Other);
        // Whatever comes of it, kswapd goes on.
        let _ = self.oom_kill(OomControl { memcg: MemcgId::ROOT, by, gfp, order, purpose, why });
    }
}
