//! Memory cgroups: the tree and its page counters; charges, protection and statistics beside it
//! (MECHANISMS 8, MECHANISMS-6X 4).
//!
//! A page is charged to one cgroup and to all its ancestors. Each CPU keeps a small *stock* of
//! pages charged in advance for one cgroup (since 6.16 for several), and a rest of a page for kernel objects of
//! one cgroup; both are real charges, which is why a limit is reached a little early.
//!
//! What would be a sum over many cgroups is kept: see [`crate::cgroup::stat`] for statistics; a parent
//! knows what its children use of their protection.
//!
//! Left out: sockets, `memory.oom.group`, cgroup v1. Neighbours: [`crate::cgroup::walk`] for the
//! order in which reclaim visits the tree, [`crate::lru::lists`] for the lists of each cgroup.

use std_alloc::string::{String, ToString};
use std_alloc::vec;
use std_alloc::vec::Vec;

use units::NodeId;

use crate::base::ids::MemcgId;
use crate::cgroup::counters::{NOTHING, Stats};
use crate::cgroup::order::PreOrder;
use crate::cgroup::stock::CpuStock;
use crate::version::presets::Version;
use crate::version::rules::{Aging, SiblingShares, StatFreshness};

/// No limit: `max` in a cgroup file.
pub const UNLIMITED: u64 = u64::MAX;

/// Usage, limits and protection of a cgroup, in pages (`struct page_counter`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageCounter {
    /// Pages charged to it and its descendants, stocks included.
    pub usage: u64,
    /// Hard limit.
    pub max: u64,
    /// Limit above which tasks reclaim on their way to user mode.
    pub high: u64,
    /// Best-effort protection.
    pub low: u64,
    /// Hard protection.
    pub min: u64,
}

/// What an administrator sets of a cgroup: the fields of [`PageCounter`] but its usage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// `memory.max`.
    Max,
    /// `memory.high`.
    High,
    /// `memory.low`.
    Low,
    /// `memory.min`.
    Min,
}

/// Swap slots that a cgroup and its descendants hold, and may hold (`memory.swap.current`,
/// `memory.swap.max`, `memory.swap.high`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SwapCounter {
    /// Slots charged.
    pub usage: u64,
    /// Hard limit.
    pub max: u64,
    /// Limit above which tasks sleep on their way to user mode: `memory.swap.high`.
    pub high: u64,
    /// What happened to it.
    pub events: SwapEvents,
}

/// What a cgroup and those below it hold of the pool, and may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ZswapCounter {
    /// Bytes: `memory.zswap.current`, `zswap` of `memory.stat`.
    pub bytes: u64,
    /// Pages that are stored in them: `zswapped`.
    pub pages: u64,
    /// `memory.zswap.max`, in bytes.
    pub max: u64,
    /// `memory.zswap.writeback`: entries, and pages that are refused, may go to areas.
    pub writeback: bool,
}

impl Default for ZswapCounter {
    fn default() -> Self {
        Self { bytes: 0, pages: 0, max: UNLIMITED, writeback: true }
    }
}

/// `memory.swap.events`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[allow(missing_docs)] // Named as in the file.
pub struct SwapEvents {
    pub high: u64,
    pub max: u64,
    pub fail: u64,
}

/// `memory.events`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[allow(missing_docs)] // Named as in the file.
pub struct MemcgEvents {
    pub low: u64,
    pub high: u64,
    pub max: u64,
    pub oom: u64,
    pub oom_kill: u64,
}

/// One cgroup.
#[derive(Debug, Clone)]
pub struct Memcg {
    /// Path below the root, such as `P/A`; empty for the root.
    pub path: String,
    /// The cgroup above; none for the root.
    pub parent: Option<MemcgId>,
    /// The cgroups directly below, in order of creation.
    pub children: Vec<MemcgId>,
    /// False once removed; its pages stay charged until they go, or are its parent's since 7.1.
    pub online: bool,
    /// Whose its pages are, where it handed them over.
    pub(super) heir: Option<MemcgId>,
    /// Usage and limits.
    pub memory: PageCounter,
    /// Usage and limit of swap.
    pub swap: SwapCounter,
    /// What it has in zswap.
    pub zswap: ZswapCounter,
    /// Event counts.
    pub events: MemcgEvents,
    /// Bytes of charged pages that no kernel object uses at present (`nr_charged_bytes`).
    pub(super) object_rest: u32,
    /// Bytes that the cgroup above was charged for it, and has not got back ([`crate::cgroup::cost`]).
    pub(super) cost: u32,
    /// Effective protection as last computed on a reclaim walk, in pages.
    pub effective_low: u64,
    /// Effective hard protection as last computed on a reclaim walk, in pages.
    pub effective_min: u64,
    /// What the cgroups directly below use of their protection (`children_low_usage`,
    /// `children_min_usage`).
    pub(super) below: Protected,
}

/// Pages that are used and protected.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Protected {
    /// By `memory.low`.
    pub(super) low: u64,
    /// By `memory.min`.
    pub(super) min: u64,
}

impl PageCounter {
    /// What is used of the own protection.
    pub(super) fn protected(&self) -> Protected {
        Protected { low: self.usage.min(self.low), min: self.usage.min(self.min) }
    }
}

/// Answer of a charge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Charge {
    /// Charged.
    Done,
    /// This cgroup (the charged one or an ancestor) would be over its limit: reclaim there.
    Over(MemcgId),
}

/// The cgroup tree.
#[derive(Debug, Clone)]
pub struct Memcgs {
    pub(super) list: Vec<Memcg>,
    pub(super) order: PreOrder,
    pub(super) stats: Vec<Stats>,
    /// What changed since it was last flushed, and all above it.
    pub(super) stale: Vec<(MemcgId, NodeId)>,
    /// What reclaim reads of a subtree is kept exact: it reads much of it, and nobody flushes.
    pub(super) keeps_live: bool,
    pub(super) stocks: Vec<CpuStock>,
    pub(super) nodes: usize,
    pub(super) charge_batch: u32,
    /// What a new cgroup costs the one above it.
    pub(super) group_cost: [u32; 2],
    pub(super) freshness: StatFreshness,
    /// Updates since some were last passed on.
    pub(super) updates: u64,
    /// Bytes of objects that are not among them yet.
    pub(super) object_bytes: i64,
    /// Batches of updates that were passed on since the last flush of the whole tree.
    pub(super) pending: u64,
    pub(super) sibling_shares: SiblingShares,
    /// Nobody flushed the whole tree since boot.
    pub(super) just_booted: bool,
    /// Somebody set a `memory.high` or a `memory.swap.high`: charges look for it.
    pub(super) high_set: bool,
}

impl Memcgs {
    /// A tree with only a root, for a machine with these many nodes and CPUs.
    pub fn new(version: &Version, nodes: usize, cpus: usize) -> Self {
        let mut tree = Self {
            list: Vec::new(),
            order: PreOrder::default(),
            stats: Vec::new(),
            stale: Vec::new(),
            keeps_live: version.rules.stat_freshness == StatFreshness::Live
                && version.rules.aging == Aging::Root,
            stocks: vec![CpuStock::new(version.rules.charge_stock); cpus],
            nodes,
            charge_batch: version.tuning.charge_batch,
            group_cost: version.tuning.group_cost.parts(u32::try_from(cpus).expect("CPUs are few")),
            freshness: version.rules.stat_freshness,
            updates: 0,
            object_bytes: 0,
            pending: 0,
            sibling_shares: version.rules.sibling_shares,
            just_booted: false,
            high_set: false,
        };
        tree.push(String::new(), None);
        tree
    }

    fn push(&mut self, path: String, parent: Option<MemcgId>) -> MemcgId {
        let id = MemcgId(u16::try_from(self.list.len()).expect("fewer than 65536 cgroups in a run"));
        self.list.push(Memcg {
            path,
            parent,
            children: Vec::new(),
            online: true,
            heir: None,
            memory: PageCounter { usage: 0, max: UNLIMITED, high: UNLIMITED, low: 0, min: 0 },
            swap: SwapCounter { usage: 0, max: UNLIMITED, high: UNLIMITED, events: SwapEvents::default() },
            zswap: ZswapCounter::default(),
            events: MemcgEvents::default(),
            object_rest: 0,
            cost: 0,
            effective_low: 0,
            effective_min: 0,
            below: Protected::default(),
        });
        self.stats.resize(self.stats.len() + self.nodes, NOTHING);
        if let Some(parent) = parent {
            self.list[parent.index()].children.push(id);
        }
        let list = &self.list;
        self.order = PreOrder::new(|id| &list[id.index()].children, |id| list[id.index()].memory.usage > 0);
        id
    }

    /// Creates the cgroup `name` below `parent`.
    pub fn create(&mut self, parent: MemcgId, name: &str) -> MemcgId {
        let parent_path = &self.list[parent.index()].path;
        let path = if parent_path.is_empty() {
            name.to_string()
        } else {
            std_alloc::format!("{parent_path}/{name}")
        };
        self.push(path, Some(parent))
    }

    /// Pages that may still be charged to a cgroup before it or one above it reaches `memory.max` or `memory.high`.
    pub fn headroom(&self, memcg: MemcgId) -> u64 {
        let room = |id: MemcgId| {
            let PageCounter { usage, max, high, .. } = self.list[id.index()].memory;
            max.min(high).saturating_sub(usage)
        };
        self.ancestors(memcg).map(room).min().unwrap_or(0)
    }

    /// Sets a limit or protection of a cgroup, in pages. What is above a limit stays charged.
    pub fn set_limit(&mut self, memcg: MemcgId, limit: Limit, pages: u64) {
        self.high_set |= limit == Limit::High;
        self.change(memcg, |counter| {
            *match limit {
                Limit::Max => &mut counter.max,
                Limit::High => &mut counter.high,
                Limit::Low => &mut counter.low,
                Limit::Min => &mut counter.min,
            } = pages;
        });
    }

    /// Changes what a cgroup uses; returns the cgroup above.
    #[inline]
    pub(super) fn set_usage(&mut self, memcg: MemcgId, change: impl FnOnce(u64) -> u64) -> Option<MemcgId> {
        let group = &mut self.list[memcg.index()];
        let before = group.memory;
        group.memory.usage = change(before.usage);
        let crosses_zero = before.usage == 0 || group.memory.usage == 0;
        let parent = group.parent;
        if crosses_zero || (before.low | before.min) != 0 {
            self.note_usage(memcg, before);
        }
        parent
    }

    /// Changes limits or protection of a cgroup.
    fn change(&mut self, memcg: MemcgId, change: impl FnOnce(&mut PageCounter)) {
        let before = self[memcg].memory;
        change(&mut self.list[memcg.index()].memory);
        self.note_usage(memcg, before);
    }

    /// Usage or protection of a cgroup changed: its parent knows what is used of it
    /// (`propagate_protected_usage`), walks know whether it is charged at all.
    fn note_usage(&mut self, memcg: MemcgId, before: PageCounter) {
        let after = self[memcg].memory;
        self.order.set_charged(memcg, after.usage > 0);
        self.note_protected(memcg, before.protected(), after.protected());
    }

    fn note_protected(&mut self, memcg: MemcgId, before: Protected, after: Protected) {
        if let Some(parent) = self.list[memcg.index()].parent {
            let below = &mut self.list[parent.index()].below;
            below.low = below.low - before.low + after.low;
            below.min = below.min - before.min + after.min;
        }
    }

    /// Whether no identity is left for another cgroup.
    pub fn is_full(&self) -> bool {
        self.list.len() > usize::from(u16::MAX)
    }

    /// Takes a cgroup offline. Its pages stay charged to it and reclaim still visits it, but its
    /// protection is over (`mem_cgroup_css_offline`).
    pub fn remove(&mut self, memcg: MemcgId) {
        self.list[memcg.index()].online = false;
        self.change(memcg, |counter| (counter.low, counter.min) = (0, 0));
    }

    /// Counts an event of `memcg` in its `memory.events` and in those of its ancestors: the file
    /// is about the whole subtree.
    pub fn count_event(&mut self, memcg: MemcgId, event: fn(&mut MemcgEvents) -> &mut u64) {
        let mut next = Some(memcg);
        while let Some(id) = next {
            let group = &mut self.list[id.index()];
            *event(&mut group.events) += 1;
            next = group.parent;
        }
    }

    /// The online cgroup with this path.
    pub fn find(&self, path: &str) -> Option<MemcgId> {
        self.ids().find(|&id| self[id].online && self[id].path == path)
    }

    /// Every cgroup, in order of creation.
    pub fn ids(&self) -> impl Iterator<Item = MemcgId> + use<> {
        (0..self.list.len()).map(|index| MemcgId(u16::try_from(index).expect("checked at creation")))
    }

    /// A cgroup and all below it, in pre-order: a parent, then its children in order of creation.
    pub fn subtree(&self, memcg: MemcgId) -> &[MemcgId] {
        self.order.subtree(memcg)
    }

    /// Whether `memcg` is `ancestor` or below it.
    #[inline]
    pub fn is_descendant(&self, memcg: MemcgId, ancestor: MemcgId) -> bool {
        self.order.is_within(memcg, ancestor)
    }

    /// `memcg` and everything above it, up to and with the root.
    #[inline]
    pub fn ancestors(&self, memcg: MemcgId) -> impl Iterator<Item = MemcgId> + '_ {
        core::iter::successors(Some(memcg), |id| self.list[id.index()].parent)
    }
}

impl core::ops::Index<MemcgId> for Memcgs {
    type Output = Memcg;
    #[inline]
    fn index(&self, id: MemcgId) -> &Memcg {
        &self.list[id.index()]
    }
}
