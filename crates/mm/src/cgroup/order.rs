//! The order in which reclaim visits cgroups, kept so that neither a question about the tree nor a
//! walk through it costs more where there are more cgroups without a page.
//!
//! ```text
//!   pre-order   root  A  A/x  B  C        subtree of A: places 1..3
//!   charged      1    1   0   0  1        behind A comes C
//! ```
//! A cgroup without a charged page has none on any list and no kernel object, and so have those below
//! it. Left out: the walk itself, see [`crate::cgroup::walk`].

use core::ops::Range;
use std_alloc::vec;
use std_alloc::vec::Vec;

use crate::base::ids::MemcgId;

/// All cgroups in pre-order: a parent, then its children in order of creation.
#[derive(Debug, Clone, Default)]
pub(super) struct PreOrder {
    order: Vec<MemcgId>,
    /// By cgroup: the places of its subtree in the order, itself first.
    places: Vec<Range<usize>>,
    /// By place: one bit for each cgroup that is charged for something.
    charged: Vec<u64>,
}

impl PreOrder {
    /// The order of the tree in which `children` are below each cgroup.
    pub(super) fn new<'a>(
        children: impl Fn(MemcgId) -> &'a [MemcgId],
        charged: impl Fn(MemcgId) -> bool,
    ) -> Self {
        let mut order = Vec::new();
        let mut stack = vec![MemcgId::ROOT];
        while let Some(next) = stack.pop() {
            order.push(next);
            stack.extend(children(next).iter().rev());
        }
        let mut places = vec![0..0; order.len()];
        // A subtree ends where that of its last child does.
        for (place, &id) in order.iter().enumerate().rev() {
            let end = children(id).last().map_or(place + 1, |last| places[last.index()].end);
            places[id.index()] = place..end;
        }
        let mut this = Self { charged: vec![0; order.len().div_ceil(64)], order, places };
        for index in 0..this.order.len() {
            let id = this.order[index];
            this.set_charged(id, charged(id));
        }
        this
    }

    /// A cgroup and all below it.
    pub(super) fn subtree(&self, memcg: MemcgId) -> &[MemcgId] {
        &self.order[self.places[memcg.index()].clone()]
    }

    /// Whether `memcg` is `ancestor` or below it.
    #[inline]
    pub(super) fn is_within(&self, memcg: MemcgId, ancestor: MemcgId) -> bool {
        self.places[ancestor.index()].contains(&self.places[memcg.index()].start)
    }

    /// Notes whether `memcg` is charged for anything.
    pub(super) fn set_charged(&mut self, memcg: MemcgId, is_charged: bool) {
        let place = self.places[memcg.index()].start;
        let bit = 1 << (place % 64);
        let word = &mut self.charged[place / 64];
        *word = if is_charged { *word | bit } else { *word & !bit };
    }

    /// Whether it was last noted as charged.
    pub(super) fn is_charged(&self, memcg: MemcgId) -> bool {
        let place = self.places[memcg.index()].start;
        (self.charged[place / 64] & (1 << (place % 64))) != 0
    }

    /// The cgroup behind `memcg` in the subtree of `target`, and how many steps lie in between: the
    /// very next one, or with `charged` the next that is charged for something. Without one the
    /// steps are those to the end of the subtree.
    pub(super) fn following(&self, memcg: MemcgId, target: MemcgId, charged: bool) -> (Option<MemcgId>, u64) {
        let (at, end) = (self.places[memcg.index()].start, self.places[target.index()].end);
        let next = if charged { self.next_charged(at + 1) } else { at + 1 };
        if next < end { (Some(self.order[next]), (next - at) as u64) } else { (None, (end - 1 - at) as u64) }
    }

    /// The first place from `from` on that is charged; beyond the end where there is none.
    fn next_charged(&self, from: usize) -> usize {
        let mut mask = u64::MAX << (from % 64);
        for (index, word) in self.charged.iter().enumerate().skip(from / 64) {
            if (word & mask) != 0 {
                return (index * 64) + (word & mask).trailing_zeros() as usize;
            }
            mask = u64::MAX;
        }
        usize::MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// root, 200 children, the third of which has two of its own.
    fn order(charged: &[u16]) -> PreOrder {
        let mut children = vec![Vec::new(); 203];
        children[0] = (1..=200).map(MemcgId).collect();
        children[3] = vec![MemcgId(201), MemcgId(202)];
        PreOrder::new(|id| &children[id.index()], |id| charged.contains(&id.0))
    }

    #[test]
    fn a_subtree_is_one_stretch_of_the_order() {
        let order = order(&[]);
        assert_eq!(order.subtree(MemcgId(3)), [MemcgId(3), MemcgId(201), MemcgId(202)]);
        assert_eq!(order.subtree(MemcgId(4)), [MemcgId(4)]);
        assert_eq!(order.subtree(MemcgId::ROOT).len(), 203);
        let within = |memcg| order.is_within(MemcgId(memcg), MemcgId(3));
        assert_eq!([2, 3, 201, 202, 4, 0].map(within), [false, true, true, true, false, false]);
    }

    #[test]
    fn what_is_not_charged_is_passed_over_and_counted() {
        let mut order = order(&[0, 3, 202, 150]);
        let after = |order: &PreOrder, memcg, target| order.following(MemcgId(memcg), MemcgId(target), true);
        assert_eq!(after(&order, 0, 0), (Some(MemcgId(3)), 3));
        assert_eq!(after(&order, 3, 0), (Some(MemcgId(202)), 2));
        assert_eq!(after(&order, 202, 0), (Some(MemcgId(150)), 147));
        assert_eq!(after(&order, 150, 0), (None, 50), "to the end of the tree");
        assert_eq!(after(&order, 202, 3), (None, 0), "to the end of the subtree");
        assert_eq!(order.following(MemcgId(150), MemcgId::ROOT, false), (Some(MemcgId(151)), 1));
        order.set_charged(MemcgId(200), true);
        order.set_charged(MemcgId(202), false);
        assert_eq!(after(&order, 3, 0), (Some(MemcgId(150)), 149));
        assert_eq!(after(&order, 150, 0), (Some(MemcgId(200)), 50));
        assert_eq!(after(&order, 200, 0), (None, 0));
    }
}
