//! `memory.low` and `memory.min`: what a cgroup is protected by on a walk (MECHANISMS 8.3).
//!
//! The effective protection of a cgroup is worked out on each walk from the target downwards: a
//! parent shares its own out among its children. Left out: recursive protection
//! (`memory_recursiveprot`). Neighbours: [`crate::cgroup::tree`], [`crate::cgroup::walk`].

use crate::base::ids::MemcgId;
use crate::cgroup::tree::{Memcgs, PageCounter};
use crate::version::rules::SiblingShares;

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

impl Memcgs {
    /// Computes the effective protection of `memcg` on a walk that started at `target`, and says
    /// whether it is protected (`mem_cgroup_calculate_protection`). Parents must have been
    /// visited before: the walk is in pre-order.
    pub fn protection(&mut self, target: MemcgId, memcg: MemcgId) -> Protection {
        if memcg == target {
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
        let (effective_low, effective_min) = if parent == target {
            (low, min)
        } else {
            let above = &self.list[parent.index()];
            let share = |setting, above, siblings| self.share_protection(usage, setting, above, siblings);
            (
                share(low, above.effective_low, above.below.low),
                share(min, above.effective_min, above.below.min),
            )
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

    /// The child's part of what its parent is protected by (MECHANISMS 8.3).
    fn share_protection(&self, usage: u64, setting: u64, parent: u64, siblings: u64) -> u64 {
        let claimed = usage.min(setting);
        match self.sibling_shares {
            SiblingShares::ByUse => setting.min(mul_div(parent, claimed, siblings.max(1))),
            // Their claims, as long as the parent has enough for all of them.
            SiblingShares::ByClaim => mul_div(parent, claimed, siblings.max(parent).max(1)),
        }
    }
}

/// a * b / c without overflow in between.
fn mul_div(a: u64, b: u64, c: u64) -> u64 {
    u64::try_from(u128::from(a) * u128::from(b) / u128::from(c)).expect("a share is no larger than the whole")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cgroup::tree::Limit;
    use crate::version::presets::Version;

    fn tree(kernel: &str) -> Memcgs {
        Memcgs::new(&Version::parse(kernel).unwrap(), 1, 2)
    }

    #[test]
    fn low_protects_a_child_below_the_target_only() {
        let mut tree = tree("linux-6.1");
        let parent = tree.create(MemcgId::ROOT, "P");
        let child = tree.create(parent, "A");
        tree.set_limit(child, Limit::Low, 100);
        tree.charge_by_force(child, 90);
        assert_eq!(tree.protection(parent, child), Protection::BelowLow);
        // Seen from the root, the parent gives no protection to share out.
        assert_eq!(tree.protection(MemcgId::ROOT, parent), Protection::None);
        assert_eq!(tree.protection(MemcgId::ROOT, child), Protection::None);
        assert_eq!(tree.protection(child, child), Protection::None);
    }
}
