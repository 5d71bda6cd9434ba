//! Memory cgroups: the tree, its page counters, charging, protection and statistics
//! (MECHANISMS 8, MECHANISMS-6X 4).
//!
//! A page is charged to one cgroup and to all its ancestors. Each CPU keeps a small *stock* of
//! pages charged in advance for one cgroup, and a rest of a page for kernel objects of one
//! cgroup; both are real charges, which is why a limit is reached a little early.
//!
//! Statistics exist twice: the live counters of each lruvec, and what readers *see*, which is as
//! fresh as the kernel's flushing rule makes it ([`StatFreshness`]).
//!
//! Left out: swap, sockets, `memory.oom.group`, cgroup v1. Neighbours: [`crate::walk`] for the
//! order in which reclaim visits the tree, [`crate::lru`] for the lists of each cgroup.

mod charge;
mod stat;

use std_alloc::string::{String, ToString};
use std_alloc::vec;
use std_alloc::vec::Vec;

use crate::feature::{Feature, Kernel};
use crate::vmstat::MemcgStat;

/// A cgroup, by its place in the table. Places are not reused, so an id outlives its cgroup.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MemcgId(pub u16);

impl MemcgId {
    /// The root of the tree: everything that is in no other cgroup.
    pub const ROOT: Self = Self(0);

    /// As an index.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

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
    object_rest: u32,
    /// Effective protection as last computed on a reclaim walk, in pages.
    pub effective_low: u64,
    /// Effective hard protection as last computed on a reclaim walk, in pages.
    pub effective_min: u64,
}

/// A protection verdict for one cgroup on a reclaim walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Protection {
    /// Below its effective `memory.min`: never reclaimed here.
    BelowMin,
    /// Below its effective `memory.low`: skipped unless low was overridden.
    BelowLow,
    /// Reclaimed.
    None,
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

/// Which cgroup counters reclaim looks at (MECHANISMS-6X 4.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatFreshness {
    /// Always exact (kernels before 5.16 read counters that are at most a few pages off).
    Live,
    /// Flushed, whole tree, once about 64 updates per CPU are pending.
    Threshold,
    /// As the 2 s worker or the last reader of `memory.stat` left them.
    Periodic,
}

/// Pages charged in advance on one CPU.
#[derive(Debug, Clone, Copy, Default)]
struct Stock {
    memcg: Option<MemcgId>,
    pages: u32,
    object_memcg: Option<MemcgId>,
    object_bytes: u32,
}

type StatArray = [u64; MemcgStat::COUNT];

/// Counters of one cgroup on one node.
#[derive(Debug, Clone)]
struct Stats {
    /// Of the cgroup's own pages, exact.
    local: StatArray,
    /// Of the whole subtree, as of the last flush.
    seen: StatArray,
}

/// The cgroup tree.
#[derive(Debug, Clone)]
pub struct Memcgs {
    list: Vec<Memcg>,
    /// All cgroups that are online or still hold pages, in pre-order.
    preorder: Vec<MemcgId>,
    stats: Vec<Stats>,
    stocks: Vec<Stock>,
    nodes: usize,
    charge_batch: u32,
    freshness: StatFreshness,
    /// Updates since the last flush of the whole tree.
    pending: u64,
    sibling_protection: bool,
}

impl Memcgs {
    /// A tree with only a root, for a machine with these many nodes and CPUs.
    pub fn new(kernel: &Kernel, nodes: usize, cpus: usize) -> Self {
        let freshness = if kernel.features.has(Feature::MemcgStatPeriodic) {
            StatFreshness::Periodic
        } else if kernel.features.has(Feature::MemcgStatThreshold) {
            StatFreshness::Threshold
        } else {
            StatFreshness::Live
        };
        let mut tree = Self {
            list: Vec::new(),
            preorder: Vec::new(),
            stats: Vec::new(),
            stocks: vec![Stock::default(); cpus],
            nodes,
            charge_batch: kernel.tuning.charge_batch,
            freshness,
            pending: 0,
            sibling_protection: kernel.features.has(Feature::SiblingProtection),
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
        while let Some(next) = stack.pop() {
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

    /// Every cgroup in pre-order: a parent, then its children in order of creation.
    pub fn preorder(&self) -> &[MemcgId] {
        &self.preorder
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

    /// Computes the effective protection of `memcg` on a walk that started at `target`, and says
    /// whether it is protected (`mem_cgroup_calculate_protection`). Parents must have been
    /// visited before: the walk is in pre-order.
    pub fn protection(&mut self, target: MemcgId, memcg: MemcgId) -> Protection {
        if memcg == target || memcg == MemcgId::ROOT {
            // The target's own protection is against its parent, not against itself.
            let group = &mut self.list[memcg.index()];
            (group.effective_low, group.effective_min) = (0, 0);
            return Protection::None;
        }
        let group = &self.list[memcg.index()];
        let PageCounter { usage, low, min, .. } = group.memory;
        if usage == 0 {
            return Protection::None;
        }
        let parent = group.parent.expect("only the root has no parent");
        let at_top = parent == target || (!self.sibling_protection && parent == MemcgId::ROOT);
        let (effective_low, effective_min) = if at_top {
            (low, min)
        } else {
            let above = &self.list[parent.index()];
            let share = |setting, above: u64, of: fn(&PageCounter) -> u64| {
                let siblings = self.children_protected(parent, of);
                self.share_protection(usage, setting, above, siblings)
            };
            (share(low, above.effective_low, |c| c.low), share(min, above.effective_min, |c| c.min))
        };
        let group = &mut self.list[memcg.index()];
        (group.effective_low, group.effective_min) = (effective_low, effective_min);
        if usage <= effective_min {
            Protection::BelowMin
        } else if usage <= effective_low {
            Protection::BelowLow
        } else {
            Protection::None
        }
    }

    fn children_protected(&self, parent: MemcgId, setting: fn(&PageCounter) -> u64) -> u64 {
        self[parent].children.iter().map(|&id| self[id].memory.usage.min(setting(&self[id].memory))).sum()
    }

    /// The child's part of what its parent is protected by (MECHANISMS 8.3).
    fn share_protection(&self, usage: u64, setting: u64, parent: u64, siblings: u64) -> u64 {
        let protected = usage.min(setting);
        if self.sibling_protection {
            return if siblings > parent { mul_div(protected, parent, siblings) } else { protected };
        }
        let capped = setting.min(parent);
        if parent > 0 && siblings > 0 { capped.min(mul_div(parent, protected, siblings)) } else { capped }
    }
}

impl core::ops::Index<MemcgId> for Memcgs {
    type Output = Memcg;
    #[inline]
    fn index(&self, id: MemcgId) -> &Memcg {
        &self.list[id.index()]
    }
}

impl core::ops::IndexMut<MemcgId> for Memcgs {
    #[inline]
    fn index_mut(&mut self, id: MemcgId) -> &mut Memcg {
        &mut self.list[id.index()]
    }
}

/// a * b / c without overflow in between.
fn mul_div(a: u64, b: u64, c: u64) -> u64 {
    u64::try_from(u128::from(a) * u128::from(b) / u128::from(c)).expect("a share is no larger than the whole")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(kernel: &str) -> Memcgs {
        Memcgs::new(&Kernel::parse(kernel).unwrap(), 1, 2)
    }

    #[test]
    fn low_protects_a_child_below_the_target_only() {
        let mut tree = tree("linux-6.1");
        let parent = tree.create(MemcgId::ROOT, "P");
        let child = tree.create(parent, "A");
        tree[child].memory.low = 100;
        tree.charge_by_force(child, 90);
        assert_eq!(tree.protection(parent, child), Protection::BelowLow);
        // Seen from the root, the parent gives no protection to share out.
        assert_eq!(tree.protection(MemcgId::ROOT, parent), Protection::None);
        assert_eq!(tree.protection(MemcgId::ROOT, child), Protection::None);
        assert_eq!(tree.protection(child, child), Protection::None);
    }
}
