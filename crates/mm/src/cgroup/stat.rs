//! Statistics of cgroups: live counters, and what readers see of them (MECHANISMS-6X 4.3).
//!
//! ```text
//!   own pages change --> local, at once
//!   flush            --> seen = local + what is seen of the children; a parent keeps the sum of these
//! ```
//! A flush visits only what changed since the last one, as the kernel's does, so its cost does not
//! grow with the cgroups that rest. Where the kernel's counters are always exact, the few that reclaim
//! reads go up the tree with each change. Where they are batched, a cgroup keeps back what changed until
//! it is more than 32, and tells all above it at once (MECHANISMS-510-72 4.2): nobody flushes.
//!
//! Left out: that each CPU keeps back its own changes, so that counters can be off by as much for each CPU;
//! batches of counters that are in bytes, and batches where counters are exact or flushed. Neighbours:
//! [`super`] for the tree, [`crate::reclaim::pass`] for who reads.

use units::{NodeId, PAGE_SIZE};

use crate::base::ids::MemcgId;
use crate::base::vmstat::MemcgStat;
use crate::cgroup::counters::{is_in_bytes, is_kept_live};
use crate::cgroup::tree::Memcgs;
use crate::version::rules::StatFreshness;

/// What a cgroup keeps back of a counter at most (`MEMCG_CHARGE_BATCH` up to 5.12).
pub(super) const STAT_BATCH: i64 = 32;

/// Updates that a CPU keeps to itself (`MEMCG_CHARGE_BATCH`).
const UPDATE_BATCH: u64 = 64;

impl Memcgs {
    #[inline]
    fn slot(&self, memcg: MemcgId, node: NodeId) -> usize {
        (memcg.index() * self.nodes) + node.index()
    }

    /// Adds to a counter of `memcg`'s own pages on `node`.
    #[inline]
    pub fn add_stat(&mut self, memcg: MemcgId, node: NodeId, stat: MemcgStat, n: u64) {
        let slot = self.slot(memcg, node);
        self.stats[slot].local[stat as usize] += n;
        if self.heeds(slot, stat) {
            self.note(memcg, node, stat, n);
        }
    }

    /// [`Self::add_stat`] of one page for each of some pages.
    pub(crate) fn add_stat_by_ones(&mut self, memcg: MemcgId, node: NodeId, stat: MemcgStat, pages: u32) {
        let slot = self.slot(memcg, node);
        self.stats[slot].local[stat as usize] += u64::from(pages);
        self.note_by_ones(memcg, node, stat, i64::from(pages));
    }

    /// [`Self::sub_stat`] of one page for each of some pages.
    pub(crate) fn sub_stat_by_ones(&mut self, memcg: MemcgId, node: NodeId, stat: MemcgStat, pages: u32) {
        let slot = self.slot(memcg, node);
        self.stats[slot].local[stat as usize] -= u64::from(pages);
        self.note_by_ones(memcg, node, stat, -i64::from(pages));
    }

    /// A counter of pages changed by one as often as `by` says.
    fn note_by_ones(&mut self, memcg: MemcgId, node: NodeId, stat: MemcgStat, by: i64) {
        let slot = self.slot(memcg, node);
        if by == 0 || !self.heeds(slot, stat) {
            return;
        }
        self.note_updates(u32::try_from(by.unsigned_abs()).expect("made from 32 bits"));
        match self.freshness {
            _ if !self.stats[slot].tells => {}
            // Each time that one more than a batch is kept back, all of it is told.
            StatFreshness::Batched => {
                let kept_back = self.kept_back(memcg, node, stat);
                let told = kept_back - (kept_back % (STAT_BATCH + 1));
                if told != 0 {
                    self.pass_on(memcg, node, stat, told);
                }
            }
            _ => self.note_change(memcg, node, stat, by.cast_unsigned()),
        }
    }

    /// Whether one large change comes to the same as many small ones: not where what is kept back, or how many
    /// updates there were, is looked at after each.
    #[inline]
    pub(crate) const fn counts_at_once(&self) -> bool {
        matches!(self.freshness, StatFreshness::Live | StatFreshness::Periodic)
    }

    /// Subtracts from a counter of `memcg`'s own pages on `node`.
    #[inline]
    pub fn sub_stat(&mut self, memcg: MemcgId, node: NodeId, stat: MemcgStat, n: u64) {
        let slot = self.slot(memcg, node);
        self.stats[slot].local[stat as usize] -= n;
        if self.heeds(slot, stat) {
            self.note(memcg, node, stat, n.wrapping_neg());
        }
    }

    /// Whether anybody goes by a change of a counter.
    #[inline]
    fn heeds(&self, slot: usize, stat: MemcgStat) -> bool {
        let tells = self.stats[slot].tells && (!self.keeps_live || is_kept_live(stat));
        tells || self.counts_updates()
    }

    /// Whether anybody goes by how many updates there were.
    #[inline]
    fn counts_updates(&self) -> bool {
        self.freshness == StatFreshness::Threshold || self.just_booted
    }

    /// A counter changed by `by`, modulo 2^64, and somebody goes by that. Not inlined: callers are, in the hottest
    /// paths, and in most versions hardly any comes here.
    #[inline(never)]
    fn note(&mut self, memcg: MemcgId, node: NodeId, stat: MemcgStat, by: u64) {
        if self.counts_updates() {
            self.note_update_of(stat, by.cast_signed());
        }
        if self.stats[self.slot(memcg, node)].tells {
            self.note_change(memcg, node, stat, by);
        }
    }

    /// A counter changed by `by`.
    fn note_update_of(&mut self, stat: MemcgStat, by: i64) {
        if is_in_bytes(stat) {
            self.note_bytes(stat, by);
        } else {
            self.note_update(by.unsigned_abs());
        }
    }

    /// Somebody counted `n` of something of a cgroup: pages, events, or what has no [`MemcgStat`] and is never
    /// reported (pages charged and uncharged, slots).
    #[inline]
    pub(crate) fn note_update(&mut self, n: u64) {
        if !self.counts_updates() {
            return;
        }
        self.updates += n;
        if self.updates > UPDATE_BATCH {
            self.pending += self.updates / UPDATE_BATCH;
            self.updates = 0;
        }
    }

    /// [`Self::note_update`] of one for each of some pages.
    pub(crate) fn note_updates(&mut self, pages: u32) {
        if self.counts_updates() {
            // The one behind a batch makes it pending, and is forgotten.
            let updates = self.updates + u64::from(pages);
            self.pending += updates / (UPDATE_BATCH + 1);
            self.updates = updates % (UPDATE_BATCH + 1);
        }
    }

    /// Bytes of kernel memory are whole pages, and count as such. Those of objects a CPU keeps back as long as they
    /// come to no more than a page, and then they count as bytes.
    fn note_bytes(&mut self, stat: MemcgStat, by: i64) {
        const PAGE: i64 = PAGE_SIZE.cast_signed();
        if stat == MemcgStat::KernelBytes {
            return self.note_update((by / PAGE).unsigned_abs());
        }
        self.object_bytes += by;
        if self.object_bytes.abs() > PAGE {
            let bytes = core::mem::take(&mut self.object_bytes);
            self.note_update(bytes.unsigned_abs());
        }
    }

    /// A counter changed by `by`, modulo 2^64, of a cgroup that [`Stats::tells`].
    fn note_change(&mut self, memcg: MemcgId, node: NodeId, stat: MemcgStat, by: u64) {
        if self.freshness == StatFreshness::Batched {
            self.pass_batch_on(memcg, node, stat);
        } else if !self.keeps_live {
            self.mark_stale(memcg, node);
        } else if is_kept_live(stat) {
            let mut next = Some(memcg);
            while let Some(id) = next {
                let slot = self.slot(id, node);
                let seen = &mut self.stats[slot].seen[stat as usize];
                *seen = seen.wrapping_add(by);
                next = self.list[id.index()].parent;
            }
        }
    }

    /// What a cgroup keeps back of a counter: its own pages changed by so much since it told of them.
    pub(super) fn kept_back(&self, memcg: MemcgId, node: NodeId, stat: MemcgStat) -> i64 {
        let (stats, at) = (&self.stats[self.slot(memcg, node)], stat as usize);
        let told = stats.seen[at].wrapping_sub(stats.below[at]);
        stats.local[at].wrapping_sub(told).cast_signed()
    }

    /// Once a counter's own changes are more than a batch, the cgroup and all above it see them
    /// (`__mod_memcg_lruvec_state`).
    fn pass_batch_on(&mut self, memcg: MemcgId, node: NodeId, stat: MemcgStat) {
        let kept_back = self.kept_back(memcg, node, stat);
        let batch = if is_in_bytes(stat) { 0 } else { STAT_BATCH };
        if kept_back.abs() > batch {
            self.pass_on(memcg, node, stat, kept_back);
        }
    }

    /// A cgroup and all above it see a change of a counter that it kept back.
    fn pass_on(&mut self, memcg: MemcgId, node: NodeId, stat: MemcgStat, by: i64) {
        let by = by.cast_unsigned();
        let mut next = Some(memcg);
        while let Some(id) = next {
            let slot = self.slot(id, node);
            let stats = &mut self.stats[slot];
            let seen = &mut stats.seen[stat as usize];
            *seen = seen.wrapping_add(by);
            if id != memcg {
                let below = &mut stats.below[stat as usize];
                *below = below.wrapping_add(by);
            }
            next = self.list[id.index()].parent;
        }
    }

    /// Notes that a flush has to look at a place and at those above.
    #[cold]
    fn mark_stale(&mut self, memcg: MemcgId, node: NodeId) {
        let mut next = Some(memcg);
        while let Some(id) = next {
            let slot = self.slot(id, node);
            if !core::mem::take(&mut self.stats[slot].tells) {
                break;
            }
            self.stale.push((id, node));
            next = self.list[id.index()].parent;
        }
    }

    /// A counter of `memcg`'s own pages on `node`, exact.
    #[inline]
    pub fn local_stat(&self, memcg: MemcgId, node: NodeId, stat: MemcgStat) -> u64 {
        self.stats[self.slot(memcg, node)].local[stat as usize]
    }

    /// All counters of `memcg`'s own pages on `node`, exact.
    #[inline]
    pub(crate) fn local_stats(&self, memcg: MemcgId, node: NodeId) -> &[u64; MemcgStat::COUNT] {
        &self.stats[self.slot(memcg, node)].local
    }

    /// A counter of the subtree below `memcg` on `node`, exact: a sum over the subtree where it is not
    /// kept.
    pub fn live_stat(&self, memcg: MemcgId, node: NodeId, stat: MemcgStat) -> u64 {
        if self.keeps_live && is_kept_live(stat) {
            return self.stats[self.slot(memcg, node)].seen[stat as usize];
        }
        self.subtree(memcg).iter().map(|&id| self.local_stat(id, node, stat)).sum()
    }

    /// A counter of the subtree on `node` as reclaim sees it: see [`StatFreshness`].
    pub fn reclaim_stat(&self, memcg: MemcgId, node: NodeId, stat: MemcgStat) -> u64 {
        match self.freshness {
            StatFreshness::Live => self.live_stat(memcg, node, stat),
            _ => self.stats[self.slot(memcg, node)].seen[stat as usize],
        }
    }

    /// A counter of the subtree over all nodes, as writers see it who go by its share of dirty pages
    /// (`mem_cgroup_wb_stats`): exact up to 5.15, later as reclaim does, which they flush for alike.
    pub(crate) fn writer_stat(&self, memcg: MemcgId, stat: MemcgStat) -> u64 {
        let on = |node| match self.freshness {
            StatFreshness::Live | StatFreshness::Batched => self.live_stat(memcg, node, stat),
            StatFreshness::Threshold | StatFreshness::Periodic => self.reclaim_stat(memcg, node, stat),
        };
        self.nodes().map(on).sum()
    }

    fn nodes(&self) -> impl Iterator<Item = NodeId> + use<> {
        (0..self.nodes).map(|node| NodeId(u8::try_from(node).expect("nodes are numbered in 8 bits")))
    }

    /// A counter of the subtree over all nodes, as a reader of `memory.stat` sees it. Call
    /// [`Self::flush_for_read`] before.
    pub fn read_stat(&self, memcg: MemcgId, stat: MemcgStat) -> u64 {
        self.nodes().map(|node| self.reclaim_stat(memcg, node, stat)).sum()
    }

    /// The machine has just booted, which [`Self::flush_for_reclaim`] heeds up to the first flush of the whole tree.
    pub fn set_just_booted(&mut self) {
        self.just_booted = self.freshness == StatFreshness::Periodic;
    }

    /// Before a writer of `memcg` looks at its share: as [`Self::flush_for_reclaim`]. Those of the root have none.
    pub(crate) fn flush_for_writer(&mut self, memcg: MemcgId) {
        if memcg != MemcgId::ROOT {
            self.flush_for_reclaim(memcg);
        }
    }

    /// Flushes before a reclaim pass of the subtree of `target` if the kernel would: 6.1 does once the pending updates
    /// exceed its threshold, 6.12 leaves it to the 2 s worker; before there was nothing to flush. As long as that one
    /// did not run since boot, 6.12 takes it to be late and flushes as 6.1 does (measured: the first two seconds of
    /// guests of 6.12 are those of 6.1), but for what is pending of each cgroup: here of all.
    pub fn flush_for_reclaim(&mut self, target: MemcgId) {
        if self.pending <= self.stocks.len() as u64 {
            return;
        }
        match self.freshness {
            StatFreshness::Threshold => self.flush(MemcgId::ROOT),
            StatFreshness::Periodic if self.just_booted => {
                self.flush(target);
                self.pending = 0;
            }
            _ => {}
        }
    }

    /// Flushes the subtree of `memcg` for a reader of its `memory.stat`.
    pub fn flush_for_read(&mut self, memcg: MemcgId) {
        let root = if self.freshness == StatFreshness::Threshold { MemcgId::ROOT } else { memcg };
        self.flush(root);
    }

    /// Flushes the whole tree: what the 2 s worker does.
    pub fn flush_periodic(&mut self) {
        self.flush(MemcgId::ROOT);
    }

    fn flush(&mut self, root: MemcgId) {
        if matches!(self.freshness, StatFreshness::Live | StatFreshness::Batched) {
            return;
        }
        // Children come after their parents in creation order: backwards, each is looked at before its
        // parent.
        self.stale.sort_unstable();
        let mut stale = core::mem::take(&mut self.stale);
        for &(memcg, node) in stale.iter().rev() {
            if self.is_descendant(memcg, root) {
                self.settle(memcg, node);
            }
        }
        stale.retain(|&(memcg, _)| !self.is_descendant(memcg, root));
        self.stale = stale;
        if root == MemcgId::ROOT {
            self.pending = 0;
            self.just_booted = false;
        }
    }

    /// Lets readers see what is known of a place, and its parent know what is seen.
    fn settle(&mut self, memcg: MemcgId, node: NodeId) {
        let slot = self.slot(memcg, node);
        let stats = &mut self.stats[slot];
        stats.tells = true;
        let before = stats.seen;
        for (seen, (local, below)) in stats.seen.iter_mut().zip(stats.local.iter().zip(&stats.below)) {
            *seen = local + below;
        }
        let after = stats.seen;
        if let Some(parent) = self[memcg].parent {
            let above = self.slot(parent, node);
            let parts = before.iter().zip(&after);
            for (below, (before, after)) in self.stats[above].below.iter_mut().zip(parts) {
                *below = *below - before + after;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std_alloc::vec::Vec;

    use crate::cgroup::charge::Uncharged;
    use crate::version::presets::Version;

    fn tree(kernel: &str) -> Memcgs {
        Memcgs::new(&Version::parse(kernel).unwrap(), 1, 2)
    }

    #[test]
    fn six_twelve_sees_old_numbers_until_somebody_flushes() {
        let mut tree = tree("linux-6.12");
        let parent = tree.create(MemcgId::ROOT, "P");
        let child = tree.create(parent, "A");
        let see = |tree: &Memcgs, id| tree.reclaim_stat(id, NodeId(0), MemcgStat::InactiveFile);
        tree.add_stat(child, NodeId(0), MemcgStat::InactiveFile, 1000);
        tree.flush_for_reclaim(MemcgId::ROOT);
        assert_eq!(see(&tree, parent), 0);
        tree.flush_for_read(parent);
        assert_eq!(
            (see(&tree, parent), see(&tree, MemcgId::ROOT)),
            (1000, 0),
            "a read refreshes its subtree only"
        );
        tree.flush_periodic();
        assert_eq!(see(&tree, MemcgId::ROOT), 1000);
    }

    #[test]
    fn six_twelve_sees_fresh_numbers_until_the_worker_ran_for_the_first_time() {
        let mut tree = tree("linux-6.12");
        tree.set_just_booted();
        let group = tree.create(MemcgId::ROOT, "A");
        let mut see = |flushes: fn(&mut Memcgs)| {
            tree.add_stat(group, NodeId(0), MemcgStat::InactiveFile, 1000);
            flushes(&mut tree);
            tree.flush_for_reclaim(MemcgId(1));
            tree.reclaim_stat(group, NodeId(0), MemcgStat::InactiveFile)
        };
        assert_eq!(see(|_| {}), 1000);
        assert_eq!(see(|tree| tree.flush_for_read(MemcgId(1))), 2000, "a reader of the group is no worker");
        assert_eq!(see(|_| {}), 3000);
        assert_eq!(see(Memcgs::flush_periodic), 4000);
        assert_eq!(see(|_| {}), 4000);
    }

    fn seen(tree: &mut Memcgs, stat: MemcgStat) -> u64 {
        tree.flush_for_reclaim(MemcgId::ROOT);
        tree.reclaim_stat(MemcgId::ROOT, NodeId(0), stat)
    }

    #[test]
    fn six_one_flushes_once_enough_is_pending() {
        let mut tree = tree("linux-6.1");
        let group = tree.create(MemcgId::ROOT, "A");
        for _ in 0..194 {
            tree.add_stat(group, NodeId(0), MemcgStat::File, 1);
        }
        assert_eq!(seen(&mut tree, MemcgStat::File), 0, "two batches of 65, and 64 updates");
        tree.add_stat(group, NodeId(0), MemcgStat::File, 1);
        assert_eq!(seen(&mut tree, MemcgStat::File), 195);
        // What is more than a whole number of batches is forgotten: 127 are one batch, 128 are two.
        for (chunk, sees) in [(127, 195), (127, 195), (63, 195), (2, 514)] {
            tree.add_stat(group, NodeId(0), MemcgStat::File, chunk);
            assert_eq!(seen(&mut tree, MemcgStat::File), sees);
        }
    }

    /// A page that comes back from zram and one that goes there are 7 and 10 updates on 6.1, 4 of which nobody reports:
    /// charged, uncharged, a slot taken, a slot given back (measured: traced runs of a guest).
    #[test]
    fn charges_and_slots_that_nobody_reports_bring_the_flush_nearer() {
        let mut tree = tree("linux-6.1");
        let group = tree.create(MemcgId::ROOT, "C");
        tree.add_stat(group, NodeId(0), MemcgStat::Anon, 100);
        tree.flush_periodic();
        let mut uncharged = Uncharged::default();
        for _ in 0..40 {
            assert_eq!(tree.charge_swap(group, 1), Ok(()));
            tree.sub_stat(group, NodeId(0), MemcgStat::Anon, 1);
            tree.gather_uncharge(&mut uncharged, group, 0);
        }
        tree.finish_uncharge(uncharged);
        assert_eq!(seen(&mut tree, MemcgStat::Anon), 100, "a batch of 65, and 55 updates");
        for _ in 0..30 {
            tree.uncharge_swap(group, 1);
            tree.note_update(1);
        }
        assert_eq!(seen(&mut tree, MemcgStat::Anon), 100);
        tree.add_stat(group, NodeId(0), MemcgStat::PgFault, 15);
        assert_eq!(seen(&mut tree, MemcgStat::Anon), 60, "three batches");
    }

    #[test]
    fn objects_are_told_of_by_more_than_a_page_and_then_in_bytes() {
        let mut tree = tree("linux-6.1");
        let group = tree.create(MemcgId::ROOT, "B");
        let node = NodeId(0);
        for _ in 0..60 {
            tree.add_stat(group, node, MemcgStat::KernelBytes, PAGE_SIZE);
        }
        for _ in 0..100 {
            tree.add_stat(group, node, MemcgStat::SlabReclaimableBytes, 592);
            tree.sub_stat(group, node, MemcgStat::SlabReclaimableBytes, 592);
        }
        tree.add_stat(group, node, MemcgStat::SlabReclaimableBytes, 6 * 592);
        assert_eq!(seen(&mut tree, MemcgStat::KernelBytes), 0, "60 pages are 60 updates");
        tree.add_stat(group, node, MemcgStat::SlabReclaimableBytes, 592);
        assert_eq!(seen(&mut tree, MemcgStat::KernelBytes), 60 * PAGE_SIZE);
    }

    /// The figures that a guest of 5.10 showed for 6401 active and 1 inactive pages of its hot file
    /// (MECHANISMS-510-72 4.2).
    #[test]
    fn five_ten_keeps_back_up_to_a_batch_of_each_counter() {
        let mut tree = tree("linux-5.10");
        let parent = tree.create(MemcgId::ROOT, "P");
        let child = tree.create(parent, "A");
        let see = |tree: &Memcgs, id| {
            [MemcgStat::ActiveFile, MemcgStat::InactiveFile]
                .map(|stat| tree.reclaim_stat(id, NodeId(0), stat))
        };
        tree.add_stat(child, NodeId(0), MemcgStat::InactiveFile, 6402);
        for page in 0..6401 {
            assert_eq!(see(&tree, child), [page - (page % 33), 6402 - page + (page % 33)]);
            tree.sub_stat(child, NodeId(0), MemcgStat::InactiveFile, 1);
            tree.add_stat(child, NodeId(0), MemcgStat::ActiveFile, 1);
        }
        for id in [child, parent, MemcgId::ROOT] {
            assert_eq!(see(&tree, id), [6369, 33], "all above see what the cgroup told");
        }
        tree.flush_for_reclaim(MemcgId::ROOT);
        tree.flush_for_read(parent);
        tree.flush_periodic();
        assert_eq!(see(&tree, parent), [6369, 33], "nobody can ask for the rest");
        tree.add_stat(parent, NodeId(0), MemcgStat::ActiveFile, 1);
        assert_eq!(see(&tree, MemcgId::ROOT), [6369, 33], "each cgroup has a batch of its own");
        tree.add_stat(child, NodeId(0), MemcgStat::ActiveFile, 1);
        assert_eq!(see(&tree, MemcgId::ROOT), [6402, 33]);
        tree.add_stat(child, NodeId(0), MemcgStat::KernelBytes, 8);
        assert_eq!(tree.read_stat(parent, MemcgStat::KernelBytes), 8, "bytes are exact");
    }

    #[test]
    fn many_changes_by_one_at_once_are_what_they_are_one_after_the_other() {
        let node = NodeId(0);
        for kernel in ["linux-5.5", "linux-5.10", "linux-6.1", "linux-6.12"] {
            let [mut at_once, mut each] = [(); 2].map(|()| {
                let mut tree = tree(kernel);
                let parent = tree.create(MemcgId::ROOT, "P");
                tree.create(parent, "A");
                tree
            });
            let mut stream = units::Seed(3).stream("ones");
            let (memcg, stat) = (MemcgId(2), MemcgStat::InactiveFile);
            for _ in 0..500 {
                let pages = u32::try_from(stream.below(150)).unwrap();
                let held = u32::try_from(each.local_stat(memcg, node, stat)).unwrap();
                if stream.chance(1, 2) {
                    at_once.add_stat_by_ones(memcg, node, stat, pages);
                    (0..pages).for_each(|_| each.add_stat(memcg, node, stat, 1));
                } else {
                    at_once.sub_stat_by_ones(memcg, node, stat, pages.min(held));
                    (0..pages.min(held)).for_each(|_| each.sub_stat(memcg, node, stat, 1));
                }
                let state = |tree: &Memcgs| {
                    let seen: Vec<u64> = tree.ids().map(|id| tree.reclaim_stat(id, node, stat)).collect();
                    (seen, tree.updates, tree.pending, tree.stale.clone())
                };
                assert_eq!(state(&at_once), state(&each), "{kernel}");
                if stream.chance(1, 20) {
                    [&mut at_once, &mut each]
                        .into_iter()
                        .for_each(|tree| tree.flush_for_reclaim(MemcgId::ROOT));
                }
            }
        }
    }

    /// Counts what a walk over the whole tree would: the flush of 6.1 before it visited changes only.
    fn sums(tree: &Memcgs, stat: MemcgStat) -> Vec<u64> {
        let sum = |id| tree.subtree(id).iter().map(|&id| tree.local_stat(id, NodeId(0), stat)).sum();
        tree.ids().map(sum).collect()
    }

    #[test]
    fn a_flush_of_what_changed_sees_what_a_flush_of_everything_would() {
        for kernel in ["linux-5.5", "linux-6.1", "linux-6.12"] {
            let mut tree = tree(kernel);
            let mut stream = units::Seed(7).stream("tree");
            let stat = MemcgStat::InactiveFile;
            for _ in 0..2000 {
                let count = tree.ids().count() as u64;
                let memcg = MemcgId(u16::try_from(stream.below(count)).unwrap());
                match stream.below(20) {
                    0 if count < 40 => {
                        tree.create(memcg, "child");
                    }
                    1 => tree.flush_for_read(memcg),
                    2..8 => {
                        let held = tree.local_stat(memcg, NodeId(0), stat);
                        tree.sub_stat(memcg, NodeId(0), stat, stream.below(held + 1));
                    }
                    _ => tree.add_stat(memcg, NodeId(0), stat, stream.below(100)),
                }
                let live: Vec<u64> = tree.ids().map(|id| tree.live_stat(id, NodeId(0), stat)).collect();
                assert_eq!(live, sums(&tree, stat), "{kernel}");
            }
            tree.flush_periodic();
            let seen: Vec<u64> = tree.ids().map(|id| tree.reclaim_stat(id, NodeId(0), stat)).collect();
            assert_eq!(seen, sums(&tree, stat), "{kernel}");
        }
    }
}
