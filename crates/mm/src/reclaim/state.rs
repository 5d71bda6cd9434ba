//! What reclaim remembers between runs.
//!
//! Neighbours: [`crate::reclaim::pass`], [`crate::reclaim::page`] and [`crate::reclaim::shrinker`],
//! which work on it.

use std_alloc::vec;
use std_alloc::vec::Vec;

use units::{NodeId, Pfn};

use crate::base::ids::MemcgId;
use crate::cgroup::walk::WalkPositions;
use crate::lru::lists::LruList;
use crate::lru::mglru::filter::Table;
use crate::reclaim::mglru::memcg_lru::MemcgLru;
use crate::reclaim::plan::Shrinker;
use crate::reclaim::run::Met;
use crate::reclaim::scans::Scans;

/// What a node remembers between reclaim runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NodeReclaim {
    /// Runs of kswapd in a row that freed nothing.
    pub kswapd_failures: u32,
    /// Dirty pages at the tail of the lists: kswapd writes them (`PGDAT_DIRTY`).
    pub dirty: bool,
    /// Pages under writeback at the tail of the lists (`PGDAT_WRITEBACK`).
    pub writeback: bool,
    /// A device is congested (`PGDAT_CONGESTED`).
    pub congested: bool,
}

/// Reclaim: what nodes and shrinkers remember, and where walks stopped.
#[derive(Debug, Clone)]
pub struct Reclaim {
    pub(super) nodes: Vec<NodeReclaim>,
    /// What the shrinkers of each cgroup on each node still owe.
    deferred: Vec<[u64; Shrinker::COUNT]>,
    /// What was scanned of each zone in vain.
    pub(crate) scans: Scans,
    /// Scans that were too small so far, of the lists of each cgroup on each node (`nr_saved_scan`).
    saved: Vec<[u64; LruList::EVICTABLE.len()]>,
    pub(super) walk_positions: WalkPositions,
    /// In which order cgroups are visited by generations, by node.
    pub(crate) memcg_lrus: Vec<MemcgLru>,
    /// The filesystem lets kswapd write single pages.
    pub(super) has_writepage_hook: bool,
    /// Dirty pages that kswapd wants written one by one.
    pub(super) pageout: Vec<Pfn>,
    /// Pages of the swap cache whose write is to be sent off.
    pub(super) swap_writes: Vec<Pfn>,
    /// The cgroup of the page that is decided on has its share of zswap.
    pub(super) zswap_full: Option<MemcgId>,
    /// One of its entries was asked to go for that page.
    pub(super) zswap_tried: bool,
    /// The owner and place of the page whose mapping by a host was changed last.
    pub(super) remapped: (u32, u32),
    // Scratch lists, empty between steps.
    /// Pages of huge ones that were split.
    pub(super) split: Vec<Pfn>,
    /// Pages that eviction saw accesses to beside those that it looks at.
    pub(super) young: Vec<Pfn>,
    /// Page tables that much of is young, around what eviction looked at.
    pub(super) dense: Vec<Table>,
    /// Isolated pages of anonymous memory among them: nobody looks around these once more.
    pub(super) looked_at: Vec<Pfn>,
    pub(super) isolated: Vec<Pfn>,
    /// Isolated pages that are kept, on their way back to their lists.
    pub(super) kept: Vec<Pfn>,
    pub(super) skipped: Vec<Pfn>,
}

impl Reclaim {
    /// Nothing happened yet, on a machine of so many nodes.
    pub fn new(nodes: usize) -> Self {
        Self {
            nodes: vec![NodeReclaim::default(); nodes],
            deferred: vec![[0; Shrinker::COUNT]; nodes],
            scans: Scans::default(),
            saved: vec![[0; LruList::EVICTABLE.len()]; nodes],
            walk_positions: WalkPositions::default(),
            memcg_lrus: Vec::new(),
            has_writepage_hook: false,
            pageout: Vec::new(),
            swap_writes: Vec::new(),
            zswap_full: None,
            zswap_tried: false,
            remapped: (0, 0),
            split: Vec::new(),
            young: Vec::new(),
            dense: Vec::new(),
            looked_at: Vec::new(),
            isolated: Vec::new(),
            kept: Vec::new(),
            skipped: Vec::new(),
        }
    }

    /// Makes room for a new cgroup.
    pub(crate) fn add_cgroup(&mut self) {
        let lruvecs = self.deferred.len() + self.nodes.len();
        self.deferred.resize(lruvecs, [0; Shrinker::COUNT]);
        self.saved.resize(lruvecs, [0; LruList::EVICTABLE.len()]);
    }

    /// What was put off for a cgroup is owed by its heir.
    pub(crate) fn hand_over(&mut self, memcg: MemcgId, heir: MemcgId) {
        for node in 0..self.nodes.len() {
            let [from, to] = [memcg, heir].map(|memcg| (memcg.index() * self.nodes.len()) + node);
            let owed = core::mem::take(&mut self.deferred[from]);
            for (sum, owed) in self.deferred[to].iter_mut().zip(owed) {
                *sum += owed;
            }
        }
    }

    /// Says whether the filesystem lets kswapd write single pages.
    pub fn set_writepage_hook(&mut self, exists: bool) {
        self.has_writepage_hook = exists;
    }

    /// What a node remembers.
    #[inline]
    pub fn node(&self, node: NodeId) -> &NodeReclaim {
        &self.nodes[node.index()]
    }

    /// A pass of kswapd over a node is over: what it met tells later passes about the state of
    /// writeback (the end of `shrink_node`; MECHANISMS 6.8).
    pub fn note_pass(&mut self, node: NodeId, met: &Met) {
        let flags = &mut self.nodes[node.index()];
        flags.writeback |= met.writeback > 0 && met.writeback == met.taken;
        flags.dirty |= met.unqueued_dirty == met.file_taken;
        flags.congested |= met.all_congested();
    }

    /// kswapd of a node goes to sleep: what passes said about writeback is forgotten.
    pub fn note_sleep(&mut self, node: NodeId) {
        let flags = &mut self.nodes[node.index()];
        (flags.dirty, flags.writeback, flags.congested) = (false, false, false);
    }

    /// The zones of a node are congested: all dirty pages that a pass met wait for congested devices.
    pub fn note_congested(&mut self, node: NodeId) {
        self.nodes[node.index()].congested = true;
    }

    /// A run of kswapd freed nothing.
    pub fn note_failure(&mut self, node: NodeId) {
        self.nodes[node.index()].kswapd_failures += 1;
    }

    /// A pass over a node freed something, for whom and of what kind ever: kswapd has hope again.
    pub fn note_success(&mut self, node: NodeId) {
        self.nodes[node.index()].kswapd_failures = 0;
    }

    /// Dirty pages that kswapd met at the tail of the lists again and again and wants written one
    /// by one; the list is handed over.
    pub fn take_pageout(&mut self) -> Vec<Pfn> {
        core::mem::take(&mut self.pageout)
    }

    /// What a shrinker still owes a cgroup on a node.
    pub(super) fn owed(&mut self, shrinker: Shrinker, memcg: MemcgId, node: NodeId) -> &mut u64 {
        let index = self.index(memcg, node);
        &mut self.deferred[index][shrinker as usize]
    }

    /// What scans of a list that were too small add up to.
    pub(super) fn saved_scan(&mut self, list: LruList, memcg: MemcgId, node: NodeId) -> &mut u64 {
        let index = self.index(memcg, node);
        &mut self.saved[index][list as usize]
    }

    fn index(&self, memcg: MemcgId, node: NodeId) -> usize {
        (memcg.index() * self.nodes.len()) + node.index()
    }
}
