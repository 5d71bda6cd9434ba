//! Memory cgroups: the tree and its page counters; charges, protection and statistics beside it
//! (MECHANISMS 8, MECHANISMS-6X 4).
//!
//! A page is charged to one cgroup and to all its ancestors. Each CPU keeps a small *stock* of
//! pages charged in advance for one cgroup, and a rest of a page for kernel objects of one
//! cgroup; both are real charges, which is why a limit is reached a little early.
//!
//! Statistics exist twice: the live counters of each lruvec, and what readers *see*, which is as
//! fresh as the kernel's flushing rule makes it ([`StatFreshness`]).
//!
//! Left out: swap, sockets, `memory.oom.group`, cgroup v1. Neighbours: [`crate::cgroup::walk`] for the
//! order in which reclaim visits the tree, [`crate::lru::lists`] for the lists of each cgroup.

use std_alloc::string::{String, ToString};
use std_alloc::vec;
use std_alloc::vec::Vec;

use crate::base::ids::MemcgId;
use crate::base::vmstat::MemcgStat;
use crate::version::presets::Version;
use crate::version::rules::{SiblingShares, StatFreshness};

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
    /// False once removed; its pages stay charged until they go.
    pub online: bool,
    /// Usage and limits.
    pub memory: PageCounter,
    /// Event counts.
    pub events: MemcgEvents,
    /// Bytes of charged pages that no kernel object uses at present (`nr_charged_bytes`).
    pub(super) object_rest: u32,
    /// Effective protection as last computed on a reclaim walk, in pages.
    pub effective_low: u64,
    /// Effective hard protection as last computed on a reclaim walk, in pages.
    pub effective_min: u64,
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

/// Pages charged in advance on one CPU.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Stock {
    pub(super) memcg: Option<MemcgId>,
    pub(super) pages: u32,
    pub(super) object_memcg: Option<MemcgId>,
    pub(super) object_bytes: u32,
}

type StatArray = [u64; MemcgStat::COUNT];

/// Counters of one cgroup on one node.
#[derive(Debug, Clone)]
pub(super) struct Stats {
    /// Of the cgroup's own pages, exact.
    pub(super) local: StatArray,
    /// Of the whole subtree, as of the last flush.
    pub(super) seen: StatArray,
}

/// The cgroup tree.
#[derive(Debug, Clone)]
pub struct Memcgs {
    pub(super) list: Vec<Memcg>,
    /// All cgroups that are online or still hold pages, in pre-order.
    preorder: Vec<MemcgId>,
    /// The place of each cgroup in the pre-order.
    places: Vec<usize>,
    pub(super) stats: Vec<Stats>,
    pub(super) stocks: Vec<Stock>,
    pub(super) nodes: usize,
    pub(super) charge_batch: u32,
    pub(super) freshness: StatFreshness,
    /// Updates since the last flush of the whole tree.
    pub(super) pending: u64,
    pub(super) sibling_shares: SiblingShares,
}

impl Memcgs {
    /// A tree with only a root, for a machine with these many nodes and CPUs.
    pub fn new(version: &Version, nodes: usize, cpus: usize) -> Self {
        let mut tree = Self {
            list: Vec::new(),
            preorder: Vec::new(),
            places: Vec::new(),
            stats: Vec::new(),
            stocks: vec![Stock::default(); cpus],
            nodes,
            charge_batch: version.tuning.charge_batch,
            freshness: version.rules.stat_freshness,
            pending: 0,
            sibling_shares: version.rules.sibling_shares,
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
            memory: PageCounter { usage: 0, max: UNLIMITED, high: UNLIMITED, low: 0, min: 0 },
            events: MemcgEvents::default(),
            object_rest: 0,
            effective_low: 0,
            effective_min: 0,
        });
        for _ in 0..self.nodes {
            self.stats.push(Stats { local: [0; MemcgStat::COUNT], seen: [0; MemcgStat::COUNT] });
        }
        if let Some(parent) = parent {
            self.list[parent.index()].children.push(id);
        }
        self.preorder.clear();
        let mut stack = vec![MemcgId::ROOT];
        self.places.resize(self.list.len(), 0);
        while let Some(next) = stack.pop() {
            self.places[next.index()] = self.preorder.len();
            self.preorder.push(next);
            stack.extend(self.list[next.index()].children.iter().rev());
        }
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

    /// Sets a limit or protection of a cgroup, in pages. What is above a limit stays charged.
    pub fn set_limit(&mut self, memcg: MemcgId, limit: Limit, pages: u64) {
        let counter = &mut self.list[memcg.index()].memory;
        *match limit {
            Limit::Max => &mut counter.max,
            Limit::High => &mut counter.high,
            Limit::Low => &mut counter.low,
            Limit::Min => &mut counter.min,
        } = pages;
    }

    /// Whether no identity is left for another cgroup.
    pub fn is_full(&self) -> bool {
        self.list.len() > usize::from(u16::MAX)
    }

    /// Takes a cgroup offline. Its pages stay charged to it and reclaim still visits it, but its
    /// protection is over (`mem_cgroup_css_offline`).
    pub fn remove(&mut self, memcg: MemcgId) {
        let group = &mut self.list[memcg.index()];
        group.online = false;
        (group.memory.low, group.memory.min) = (0, 0);
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

    /// The cgroup after `memcg` in pre-order: a parent, then its children in order of creation.
    pub fn following(&self, memcg: MemcgId) -> Option<MemcgId> {
        self.preorder.get(self.places[memcg.index()] + 1).copied()
    }

    /// Whether `memcg` is `ancestor` or below it.
    pub fn is_descendant(&self, memcg: MemcgId, ancestor: MemcgId) -> bool {
        self.ancestors(memcg).any(|id| id == ancestor)
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
