//! In which order reclaim visits the cgroup tree, and where it stops (MECHANISMS 6.7,
//! MECHANISMS-6X 4.2).
//!
//! A *full* walk goes through the target's subtree in pre-order. Where positions are saved
//! (up to 5.4 for each node and priority, in 6.12 for each node), direct and limit reclaim
//! continue after the cgroup that the last run stopped at, and stop when they have enough:
//!
//! ```text
//!   root  A  B  P            saved position: B, target met there
//!   next run, priority 12:   P, end of tree -> position gone, generation + 1, pass over
//!             priority 11:   root, A, B ... stops where the target is met
//! ```
//!
//! Left out: removal of a saved cgroup in mid-walk (cgroups keep their place in the table).

use std_alloc::vec::Vec;

use units::NodeId;

use crate::base::ids::MemcgId;
use crate::cgroup::tree::Memcgs;

/// A saved position: the last visited cgroup, and how many rounds have ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Position {
    last: Option<MemcgId>,
    generation: u32,
}

/// All saved positions of a machine.
#[derive(Debug, Clone, Default)]
pub struct WalkPositions {
    entries: Vec<((MemcgId, NodeId, u8), Position)>,
}

impl WalkPositions {
    fn entry(&mut self, key: (MemcgId, NodeId, u8)) -> &mut Position {
        let index = match self.entries.binary_search_by_key(&key, |entry| entry.0) {
            Ok(index) => index,
            Err(index) => {
                self.entries.insert(index, (key, Position::default()));
                index
            }
        };
        &mut self.entries[index].1
    }
}

impl WalkPositions {
    /// `passes` walks of direct reclaim over `node` from where the last one stopped, one after the other, on a machine
    /// without cgroups: each meets the root.
    pub fn pass_root_alone(&mut self, node: NodeId, passes: u64) {
        let position = self.entry((MemcgId::ROOT, node, 0));
        // Behind the root is nothing: one that stopped there ended its round.
        let left_over = u32::from(position.last.take().is_some());
        position.generation += left_over + u32::try_from(passes).expect("a few");
    }
}

/// Whether a walk remembers where it stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WalkKind {
    /// From the target through its whole subtree.
    Full,
    /// From a saved position that is shared by all walkers with this key (the priority up to
    /// 5.4, 0 in 6.12).
    Saved {
        /// Tells positions of one target and node apart.
        key: u8,
    },
}

/// A walk in progress.
#[derive(Debug, Clone)]
pub struct Walk {
    target: MemcgId,
    node: NodeId,
    kind: WalkKind,
    last: Option<MemcgId>,
    generation: Option<u32>,
    visited: bool,
    over: bool,
    /// Cgroups visited or passed over since [`Self::take_steps`].
    steps: u64,
}

impl Walk {
    /// A walk through the subtree of `target` on `node`.
    pub fn new(target: MemcgId, node: NodeId, kind: WalkKind) -> Self {
        Self { target, node, kind, last: None, generation: None, visited: false, over: false, steps: 0 }
    }

    /// The node whose lists it is for.
    pub const fn node(&self) -> NodeId {
        self.node
    }

    /// The next cgroup to visit; none when the walk is over. With `pass_idle` those without a charged
    /// page are passed over: there is nothing to do at any of them.
    pub fn next(
        &mut self,
        memcgs: &Memcgs,
        positions: &mut WalkPositions,
        pass_idle: bool,
    ) -> Option<MemcgId> {
        if self.over {
            return None;
        }
        let WalkKind::Saved { key } = self.kind else {
            self.last = self.following(memcgs, self.last, pass_idle);
            self.over = self.last.is_none();
            return self.last;
        };
        let position = positions.entry((self.target, self.node, key));
        match self.generation {
            None => self.generation = Some(position.generation),
            Some(generation) if generation != position.generation => {
                self.over = true;
                return None;
            }
            Some(_) => {}
        }
        let before = self.steps;
        let mut next = self.following(memcgs, position.last, pass_idle);
        if next.is_none() {
            position.last = None;
            position.generation += 1;
            if self.visited || self.steps > before {
                self.over = true;
                return None;
            }
            // Nothing lay behind the saved position: this walk is the next round.
            self.generation = Some(position.generation);
            next = self.following(memcgs, None, pass_idle);
        }
        self.visited = true;
        position.last = next;
        next
    }

    /// The cgroup after `last` in the pre-order of the target's subtree.
    fn following(&mut self, memcgs: &Memcgs, last: Option<MemcgId>, pass_idle: bool) -> Option<MemcgId> {
        let (next, steps) = match last {
            Some(last) => memcgs.order.following(last, self.target, pass_idle),
            None => (Some(self.target), 1),
        };
        self.steps += steps;
        next
    }

    /// How many cgroups were visited or passed over since the last call: each costs the task that walks
    /// the same.
    pub fn take_steps(&mut self) -> u64 {
        core::mem::take(&mut self.steps)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::version::presets::Version;

    struct Scene {
        memcgs: Memcgs,
        positions: WalkPositions,
    }

    impl Scene {
        /// root, A, B, P: the tree of the measured guests.
        fn new() -> Self {
            let mut memcgs = Memcgs::new(&Version::parse("linux-6.12").unwrap(), 1, 2);
            for name in ["A", "B", "P"] {
                memcgs.create(MemcgId::ROOT, name);
            }
            Self { memcgs, positions: WalkPositions::default() }
        }

        fn walk_until(&mut self, kind: WalkKind, stop: &str) -> Vec<&str> {
            let mut walk = Walk::new(MemcgId::ROOT, NodeId(0), kind);
            let mut visited = Vec::new();
            while let Some(id) = walk.next(&self.memcgs, &mut self.positions, false) {
                visited.push(id);
                if self.memcgs[id].path == stop {
                    break;
                }
            }
            visited.into_iter().map(|id| self.memcgs[id].path.as_str()).collect()
        }
    }

    #[test]
    fn a_full_walk_sees_everybody_every_time() {
        let mut scene = Scene::new();
        for _ in 0..2 {
            assert_eq!(scene.walk_until(WalkKind::Full, "-"), ["", "A", "B", "P"]);
        }
    }

    #[test]
    fn a_saved_walk_goes_on_after_the_one_that_met_the_target() {
        let mut scene = Scene::new();
        let saved = WalkKind::Saved { key: 0 };
        assert_eq!(scene.walk_until(saved, "B"), ["", "A", "B"]);
        assert_eq!(scene.walk_until(saved, "B"), ["P"], "only what lay behind B");
        assert_eq!(scene.walk_until(saved, "B"), ["", "A", "B"]);
    }

    #[test]
    fn a_saved_walk_that_stopped_at_the_last_cgroup_starts_over() {
        let mut scene = Scene::new();
        let saved = WalkKind::Saved { key: 0 };
        assert_eq!(scene.walk_until(saved, "P"), ["", "A", "B", "P"]);
        assert_eq!(scene.walk_until(saved, "B"), ["", "A", "B"]);
    }

    /// Walks over random trees that stop at random places, by a walker that calls at every cgroup and by
    /// one that passes over those without a page: both do the same work and pay for the same steps.
    #[test]
    fn a_walk_that_passes_over_idle_cgroups_meets_the_others_as_one_that_does_not() {
        let version = Version::parse("linux-6.12").unwrap();
        for seed in 0..200 {
            let mut stream = units::Seed(seed).stream("walk");
            let mut memcgs = Memcgs::new(&version, 1, 2);
            for _ in 0..stream.below(30) {
                let above = MemcgId(u16::try_from(stream.below(memcgs.ids().count() as u64)).unwrap());
                let id = memcgs.create(above, "x");
                if stream.chance(1, 3) {
                    memcgs.charge_by_force(id, 1);
                }
            }
            let target = MemcgId(u16::try_from(stream.below(memcgs.ids().count() as u64)).unwrap());
            let (mut all, mut charged) = (WalkPositions::default(), WalkPositions::default());
            for round in 0..8 {
                let key = u8::try_from(stream.below(2)).unwrap();
                let kind = if stream.chance(1, 4) { WalkKind::Full } else { WalkKind::Saved { key } };
                let stop = 1 + stream.below(6);
                let told = |positions, pass_idle| tell(&memcgs, positions, target, kind, stop, pass_idle);
                assert_eq!(told(&mut charged, true), told(&mut all, false), "seed {seed}, round {round}");
            }
        }
    }

    /// The cgroups at which there is something to do, and all steps; over after `stop` of them.
    fn tell(
        memcgs: &Memcgs,
        positions: &mut WalkPositions,
        target: MemcgId,
        kind: WalkKind,
        stop: u64,
        pass_idle: bool,
    ) -> (Vec<MemcgId>, u64) {
        let mut walk = Walk::new(target, NodeId(0), kind);
        let mut met = Vec::new();
        while let Some(id) = walk.next(memcgs, positions, pass_idle) {
            if memcgs[id].memory.usage > 0 {
                met.push(id);
            }
            if met.len() as u64 == stop {
                break;
            }
        }
        (met, walk.take_steps())
    }
}
