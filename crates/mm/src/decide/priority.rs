//! How hard a run of direct or limit reclaim tries (`do_try_to_free_pages`; MECHANISMS 4.6).
//!
//! ```text
//!   priority 12 .. 0: every node in turn, until enough is freed or compaction can work
//!                     up to 4.6 hard pressed reclaimers pause in between, and have the flusher write
//!   nothing freed:    again, over the whole tree, opening active lists, ignoring memory.low
//! ```
//! Left out: wake-ups of the flusher by priority since 4.7. Neighbours: [`crate::reclaim::run`] for one pass,
//! [`super::balance`] for kswapd.

use std_alloc::vec::Vec;

use units::{CpuId, NodeId, Order};

use crate::alloc::flags::gfp_zone;
use crate::alloc::pcp::COSTLY_ORDER;
use crate::base::event::Trace;
use crate::base::gfp::Gfp;
use crate::base::ids::MemcgId;
use crate::base::layout::{ZoneId, ZoneKind};
use crate::base::vmstat::VmEvent;
use crate::decide::backoff::Site;
use crate::decide::effort::{AtPriority, Passes};
use crate::memory::Memory;
use crate::reclaim::run::{DEF_PRIORITY, Reclaimer, ScanControl};
use crate::version::rules::{Aging, DirectPause, MemcgWalk};

/// Pages after which a run has the flusher write (`swap_cluster_max` and a half).
const MUCH: u64 = 48;

/// What a run does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Next {
    /// One pass over this node with [`Escalation::sc`].
    Shrink(NodeId),
    /// Have the flusher write as many pages: so many were looked at.
    WakeFlusher(u64),
    /// Pause here, for want of pages of this zone.
    Pause(Site, ZoneId),
    /// The run is over: as many pages were freed.
    Done(u64),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    Start,
    Priority,
    Node(usize),
    Settle,
    Flushed,
    Lower,
    End,
}

/// A run of direct or limit reclaim.
#[derive(Debug, Clone)]
pub struct Escalation {
    /// The run, for the passes.
    pub sc: ScanControl,
    /// Nodes to be visited at this priority.
    nodes: Vec<NodeId>,
    /// Some zone is ready for compaction.
    ready: bool,
    /// All zones are exhausted: kswapd could free nothing of them (up to 4.7).
    all_unreclaimable: bool,
    /// Pages looked at since the run began.
    scanned: u64,
    /// What was done at each priority of this round.
    passes: Passes,
    noted: AtPriority,
    at: At,
}

impl Escalation {
    /// A task wants a block of `order`.
    pub fn direct(gfp: Gfp, order: Order) -> Self {
        Self::new(gfp, ScanControl::direct(gfp_zone(gfp)).for_order(order))
    }

    /// A charge of `pages` failed at `target`.
    pub fn limit(gfp: Gfp, target: MemcgId, pages: u64) -> Self {
        Self::new(gfp, ScanControl::limit(target, pages))
    }

    /// A write to `memory.reclaim` of `target` asks for `pages`, perhaps with a `swappiness` of its own.
    pub fn proactive(target: MemcgId, pages: u64, swappiness: Option<u64>) -> Self {
        let mut run = Self::limit(Gfp::KERNEL, target, pages);
        (run.sc.proactive, run.sc.swappiness) = (true, swappiness);
        run
    }

    /// A write to `reclaim` of a node asks for `pages` of it, perhaps with a `swappiness` of its own.
    pub fn of_node(node: NodeId, pages: u64, swappiness: Option<u64>) -> Self {
        let mut run = Self::direct(Gfp::KERNEL | Gfp::MOVABLE_BIT, Order(0));
        (run.sc.proactive, run.sc.swappiness) = (true, swappiness);
        (run.sc.only_node, run.sc.nr_to_reclaim) = (Some(node), pages);
        run
    }

    fn new(gfp: Gfp, mut sc: ScanControl) -> Self {
        sc.may_fs = gfp.has(Gfp::FS);
        sc.may_io = gfp.has(Gfp::IO);
        Self {
            sc,
            nodes: Vec::new(),
            ready: false,
            all_unreclaimable: false,
            scanned: 0,
            passes: Passes::default(),
            noted: AtPriority::default(),
            at: At::Start,
        }
    }

    /// What was done at each priority, in the last round where there were several.
    pub const fn passes(&self) -> Passes {
        self.passes
    }

    /// The same for a kernel thread, or for a task.
    #[must_use]
    pub const fn by_kernel_thread(mut self, is_one: bool) -> Self {
        self.sc.kernel_thread = is_one;
        self
    }

    /// Nodes of the priority that was tried last.
    pub(super) fn nodes(&self) -> &[NodeId] {
        &self.nodes
    }

    /// Goes through all rounds of a run that has not begun, in which no pass frees or meets anything, and
    /// leaves the passes to the caller. Returns the rounds.
    pub(super) fn go_through_in_vain<T: Trace>(&mut self, mem: &mut Memory<T>, cpu: CpuId) -> u64 {
        self.choose_nodes(mem, cpu);
        self.at = At::End;
        let mut rounds = 0;
        loop {
            if !self.sc.proactive {
                mem.core.alloc.events.add(allocstall(self.sc.reclaim_idx), 1);
            }
            rounds += 1;
            if !self.can_try_harder(mem) {
                self.passes = Passes::IN_VAIN;
                return rounds;
            }
        }
    }

    /// The next step, for a task on `cpu`.
    pub fn step<T: Trace>(&mut self, mem: &mut Memory<T>, cpu: CpuId) -> Next {
        loop {
            match self.at {
                At::Start => {
                    if self.sc.reclaimer == Reclaimer::Direct && !self.sc.proactive {
                        mem.core.alloc.events.add(allocstall(self.sc.reclaim_idx), 1);
                    }
                    self.passes.begin();
                    self.at = At::Priority;
                }
                At::Priority => {
                    self.sc.nr_scanned = 0;
                    self.choose_nodes(mem, cpu);
                    self.at = At::Node(0);
                }
                At::Node(index) => {
                    if let Some(&node) = self.nodes.get(index) {
                        self.at = At::Node(index + 1);
                        return Next::Shrink(node);
                    }
                    self.scanned += self.sc.nr_scanned;
                    self.noted = self.passes.note(&self.sc, self.noted);
                    let enough = self.sc.nr_reclaimed >= self.sc.nr_to_reclaim;
                    self.at = if self.ready || enough { At::End } else { At::Settle };
                }
                At::Settle if mem.core.rules().direct_pause == DirectPause::None => self.at = At::Lower,
                At::Settle => {
                    self.at = At::Flushed;
                    if self.scanned > MUCH {
                        return Next::WakeFlusher(self.scanned);
                    }
                }
                At::Flushed => {
                    self.at = At::Lower;
                    if self.sc.nr_scanned > 0 && self.sc.priority < DEF_PRIORITY - 2 {
                        return Next::Pause(Site::DirectReclaim, self.preferred_zone(mem, cpu));
                    }
                }
                At::Lower if self.sc.priority == 0 => self.at = At::End,
                At::Lower => {
                    self.sc.priority -= 1;
                    self.at = At::Priority;
                }
                At::End => {
                    for node in mem.nodes() {
                        mem.snapshot_refaults(self.sc.target, node);
                    }
                    if self.ready && self.sc.nr_reclaimed == 0 {
                        return Next::Done(1); // Compaction has what it needs: that counts as progress.
                    }
                    if self.all_unreclaimable && self.sc.nr_reclaimed < self.sc.nr_to_reclaim {
                        return Next::Done(0); // A page or two are no reason to go on.
                    }
                    if self.sc.nr_reclaimed > 0 || !self.can_try_harder(mem) {
                        return Next::Done(self.sc.nr_reclaimed);
                    }
                    self.at = At::Start;
                }
            }
        }
    }

    fn preferred_zone<T: Trace>(&self, mem: &Memory<T>, cpu: CpuId) -> ZoneId {
        run_zones(mem, &self.sc, cpu)[0]
    }

    /// Nodes in the order of the task's zonelist, and whether one of their zones is ready for
    /// compaction. A node of which every zone is ready, or from the second priority on exhausted, is left
    /// out (`shrink_zones`).
    fn choose_nodes<T: Trace>(&mut self, mem: &Memory<T>, cpu: CpuId) {
        let sc = &self.sc;
        let is_direct = sc.reclaimer == Reclaimer::Direct;
        let checks = sc.order > COSTLY_ORDER && is_direct;
        let leaves_exhausted = is_direct && sc.priority != DEF_PRIORITY;
        self.nodes.clear();
        self.ready = false;
        for &id in run_zones(mem, sc, cpu) {
            let node = mem.core.alloc.zone(id).node;
            if sc.only_node.is_some_and(|only| only != node) {
                continue;
            }
            if leaves_exhausted && mem.is_unreclaimable(id) {
                continue;
            }
            if checks && mem.compaction_ready(id, sc.order, sc.reclaim_idx) {
                self.ready = true;
            } else if !self.nodes.contains(&node) {
                self.nodes.push(node);
            }
        }
        self.all_unreclaimable = leaves_exhausted && self.nodes.is_empty() && !self.ready;
    }

    /// A run that freed nothing is repeated: over the whole tree if it walked a part, opening the
    /// active lists if it left them alone, ignoring `memory.low` if it respected it.
    fn can_try_harder<T: Trace>(&mut self, mem: &Memory<T>) -> bool {
        let (rules, sc) = (mem.core.rules(), &mut self.sc);
        if rules.memcg_walk == MemcgWalk::Partial && !sc.memcg_full_walk {
            sc.memcg_full_walk = true;
        } else if rules.aging == Aging::Root && sc.skipped_deactivate && !sc.force_deactivate {
            sc.force_deactivate = true;
            sc.skipped_deactivate = false;
        } else if sc.memcg_low_skipped && !sc.memcg_low_reclaim {
            sc.memcg_low_reclaim = true;
            sc.memcg_low_skipped = false;
            sc.force_deactivate = false;
        } else {
            return false;
        }
        sc.priority = DEF_PRIORITY;
        true
    }
}

/// Zones that a run may take pages of, in the order of the zonelist of a task on `cpu`.
pub(super) fn run_zones<'a, T: Trace>(mem: &'a Memory<T>, sc: &ScanControl, cpu: CpuId) -> &'a [ZoneId] {
    let here = mem.core.alloc.node_of(cpu);
    &mem.core.alloc.nodes()[here.index()].zonelists[sc.reclaim_idx as usize]
}

const fn allocstall(highest_zoneidx: ZoneKind) -> VmEvent {
    match highest_zoneidx {
        ZoneKind::Dma => VmEvent::AllocStallDma,
        ZoneKind::Dma32 => VmEvent::AllocStallDma32,
        ZoneKind::Normal => VmEvent::AllocStallNormal,
        ZoneKind::Movable => VmEvent::AllocStallMovable,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decide::scene::machine;

    const CPU: CpuId = CpuId(0);

    /// Walks a run: `pass` says what each pass does to it. Returns the priority of each pass and
    /// what the run came to.
    fn walk(kernel: &str, mut run: Escalation, mut pass: impl FnMut(&mut ScanControl)) -> (Vec<u8>, u64) {
        let mut mem = machine(kernel);
        let mut priorities = Vec::new();
        loop {
            match run.step(&mut mem, CPU) {
                Next::Shrink(node) => {
                    assert_eq!(node, NodeId(0));
                    priorities.push(run.sc.priority);
                    pass(&mut run.sc);
                }
                Next::WakeFlusher(_) | Next::Pause(..) => {}
                Next::Done(freed) => return (priorities, freed),
            }
        }
    }

    fn limit() -> Escalation {
        Escalation::limit(Gfp::KERNEL, MemcgId::ROOT, 1)
    }

    fn down_to(priority: u8) -> Vec<u8> {
        (priority..=12).rev().collect()
    }

    #[test]
    fn a_run_ends_once_it_has_freed_32_pages() {
        let (priorities, freed) = walk("linux-5.4", limit(), |sc| sc.nr_reclaimed += 16);
        assert_eq!((priorities, freed), (down_to(11), 32));
    }

    #[test]
    fn a_run_that_frees_too_little_tries_every_priority_once() {
        let once = |sc: &mut ScanControl| sc.nr_reclaimed = 1;
        assert_eq!(walk("linux-6.12", limit(), once), (down_to(0), 1));
    }

    #[test]
    fn a_run_that_frees_nothing_drops_its_scruples_one_by_one() {
        let rounds = |kernel, skips: fn(&mut ScanControl)| walk(kernel, limit(), skips).0.len() / 13;
        assert_eq!(rounds("linux-5.4", |_| {}), 1);
        assert_eq!(rounds("linux-6.12", |_| {}), 2, "the whole tree");
        let deactivate = |sc: &mut ScanControl| sc.skipped_deactivate |= !sc.force_deactivate;
        assert_eq!(rounds("linux-5.5", deactivate), 2, "then the active lists");
        assert_eq!(rounds("linux-5.4", deactivate), 1, "which older kernels decide for each cgroup");
        let low = |sc: &mut ScanControl| sc.memcg_low_skipped |= !sc.memcg_low_reclaim;
        assert_eq!(rounds("linux-5.4", low), 2, "then memory.low");
        assert_eq!(
            rounds("linux-6.12", |sc| {
                sc.skipped_deactivate |= !sc.force_deactivate && !sc.memcg_low_reclaim;
                sc.memcg_low_skipped |= !sc.memcg_low_reclaim;
            }),
            4
        );
    }

    #[test]
    fn a_costly_block_is_left_to_compaction_where_that_can_work() {
        let direct = |order| walk("linux-6.1", Escalation::direct(Gfp::KERNEL, Order(order)), |_| {});
        assert_eq!(direct(4), (Vec::new(), 1), "all is free: no pass, and that is progress");
        assert_eq!(direct(3).0, down_to(0), "a small block is reclaimed for in any case");
    }

    #[test]
    fn each_round_of_direct_reclaim_is_a_stall_of_its_class() {
        let mut mem = machine("linux-6.12");
        let mut run = Escalation::direct(Gfp::KERNEL, Order(0));
        while let Next::Shrink(_) = run.step(&mut mem, CPU) {}
        assert_eq!(mem.core.alloc.events.get(VmEvent::AllocStallNormal), 2);
        assert!(run.sc.may_fs && !Escalation::direct(Gfp::NOFS, Order(0)).sc.may_fs);
    }
}
