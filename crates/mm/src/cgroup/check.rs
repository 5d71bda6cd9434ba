//! What is kept about cgroups, held against sums over all of them.
//!
//! Left out: pages and objects, which [`crate::check`] counts. Neighbours: [`crate::cgroup::tree`] and
//! [`crate::cgroup::stat`] keep it.

use units::NodeId;

use crate::base::ids::MemcgId;
use crate::base::vmstat::MemcgStat;
use crate::cgroup::counters::is_kept_live;
use crate::cgroup::stat::STAT_BATCH;
use crate::cgroup::tree::{Memcgs, Protected};
use crate::version::rules::StatFreshness;

impl Memcgs {
    /// Compares what is kept with sums over all cgroups; returns what differs.
    pub(crate) fn check(&self) -> Result<(), &'static str> {
        for id in self.ids() {
            let parts = self[id].children.iter().map(|&child| self[child].memory.protected());
            let sum = parts.fold(Protected::default(), |sum, part| Protected {
                low: sum.low + part.low,
                min: sum.min + part.min,
            });
            if sum != self[id].below {
                return Err("a cgroup is wrong about what its children use of their protection");
            }
            if self.order.is_charged(id) != (self[id].memory.usage > 0) {
                return Err("a walk is wrong about who is charged for anything");
            }
        }
        self.check_stats()
    }

    fn check_stats(&self) -> Result<(), &'static str> {
        for (slot, stats) in self.stats.iter().enumerate() {
            let (id, node) = (MemcgId((slot / self.nodes) as u16), NodeId((slot % self.nodes) as u8));
            for &stat in MemcgStat::ALL.iter().filter(|&&stat| self.keeps_live && is_kept_live(stat)) {
                let sum: u64 = self.subtree(id).iter().map(|&id| self.local_stat(id, node, stat)).sum();
                if sum != self.live_stat(id, node, stat) {
                    return Err("a statistic that is kept exact is off");
                }
            }
            if self.freshness == StatFreshness::Batched {
                self.check_batches(id, node)?;
                continue;
            }
            let is_settled =
                (0..MemcgStat::COUNT).all(|at| stats.seen[at] == stats.local[at] + stats.below[at]);
            if self.freshness != StatFreshness::Live && stats.tells && !is_settled {
                return Err("statistics changed that no flush would look at");
            }
        }
        Ok(())
    }

    fn check_batches(&self, id: MemcgId, node: NodeId) -> Result<(), &'static str> {
        for &stat in MemcgStat::ALL {
            if self.kept_back(id, node, stat).abs() > STAT_BATCH {
                return Err("a cgroup keeps back more than a batch of a statistic");
            }
            let kept: i64 = self.subtree(id).iter().map(|&id| self.kept_back(id, node, stat)).sum();
            if self.reclaim_stat(id, node, stat).wrapping_add_signed(kept) != self.live_stat(id, node, stat) {
                return Err("a batched statistic is off by more than what is kept back");
            }
        }
        Ok(())
    }
}
