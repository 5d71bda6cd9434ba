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
}

impl Walk {
    /// A walk through the subtree of `target` on `node`.
    pub fn new(target: MemcgId, node: NodeId, kind: WalkKind) -> Self {
        Self { target, node, kind, last: None, generation: None, visited: false, over: false }
    }

    /// The next cgroup to visit; none when the walk is over.
    pub fn next(&mut self, memcgs: &Memcgs, positions: &mut WalkPositions) -> Option<MemcgId> {
        if self.over {
            return None;
        }
        let WalkKind::Saved { key } = self.kind else {
            self.last = following(memcgs, self.target, self.last);
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
        let mut next = following(memcgs, self.target, position.last);
        if next.is_none() {
            position.last = None;
            position.generation += 1;
            if self.visited {
                self.over = true;
                return None;
            }
            // Nothing lay behind the saved position: this walk is the next round.
            self.generation = Some(position.generation);
            next = following(memcgs, self.target, None);
        }
        self.visited = true;
        position.last = next;
        next
    }
}

/// The cgroup after `last` in the pre-order of `target`'s subtree.
fn following(memcgs: &Memcgs, target: MemcgId, last: Option<MemcgId>) -> Option<MemcgId> {
    let Some(last) = last else { return Some(target) };
    memcgs.following(last).filter(|&id| memcgs.is_descendant(id, target))
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
            while let Some(id) = walk.next(&self.memcgs, &mut self.positions) {
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
}
