//! Limit reclaim: a charge that hit a limit frees pages below it (MECHANISMS 8.2, MECHANISMS-6X 4).
//!
//! Next: [`super::run`], [`crate::cgroup::charge`], [`crate::cgroup::proactive`].

use mm::MemcgId;
use mm::base::event::Trace;
use mm::base::gfp::Gfp;
use mm::decide::effort::Passes;
use mm::decide::priority::Escalation;
use units::NodeId;

use crate::handle::Kernel;
use crate::machine::Machine;
use crate::section::{Section, Site};

impl<M: Machine, T: Trace> Kernel<M, T> {
    /// Limit reclaim at `target` for a charge of `pages`: returns the pages freed, and what was done at each
    /// priority.
    pub(crate) async fn limit_reclaim(&self, target: MemcgId, pages: u64, gfp: Gfp) -> (u64, Passes) {
        self.machine().enter(Section::Site(Site::LimitReclaim));
        let mut run = Escalation::limit(gfp, target, pages);
        let freed = self.try_to_free_pages(&mut run).await;
        self.machine().leave(Section::Site(Site::LimitReclaim));
        (freed, run.passes())
    }

    /// Reclaim of a node for a write to its `reclaim`: returns the pages freed.
    pub(crate) async fn node_reclaim(&self, node: NodeId, pages: u64, swappiness: Option<u64>) -> u64 {
        self.machine().enter(Section::Site(Site::LimitReclaim));
        let mut run = Escalation::of_node(node, pages, swappiness);
        let freed = self.try_to_free_pages(&mut run).await;
        self.machine().leave(Section::Site(Site::LimitReclaim));
        freed
    }

    /// Reclaim at `target` for a write to `memory.reclaim`: returns the pages freed.
    pub(crate) async fn proactive_reclaim(
        &self,
        target: MemcgId,
        pages: u64,
        swappiness: Option<u64>,
    ) -> u64 {
        self.machine().enter(Section::Site(Site::LimitReclaim));
        let mut run = Escalation::proactive(target, pages, swappiness);
        let freed = self.try_to_free_pages(&mut run).await;
        self.machine().leave(Section::Site(Site::LimitReclaim));
        freed
    }
}
