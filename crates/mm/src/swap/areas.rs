//! Swap areas: what anonymous pages can go to, and how much of it is left (SWAP 1.1, 3.1).
//!
//! Left out: swap files on filesystems, discard, hibernation, `swapoff`. Neighbours:
//! [`crate::cgroup::tree`] for what a cgroup may use of them.

use std_alloc::vec::Vec;

use crate::base::ids::MemcgId;
use crate::cgroup::tree::Memcgs;

/// What an area is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AreaKind {
    /// A disk or a partition: writes and reads are under way for a while.
    Disk {
        /// Its number among the block devices of the machine.
        device: u16,
        /// Its queue says that it rotates: it is read by clusters and filled from the lowest slot.
        rotating: bool,
    },
    /// Compressed memory: writes and reads are done at once, by whoever asks (`SWP_SYNCHRONOUS_IO`).
    Zram,
}

/// An area as `swapon` takes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AreaSpec {
    /// What it is on.
    pub kind: AreaKind,
    /// Pages that it holds, its header not counted.
    pub pages: u64,
    /// The higher is filled first; none: below all that are there already.
    pub priority: Option<i16>,
}

/// One area.
#[derive(Debug, Clone, Copy)]
struct Area {
    spec: AreaSpec,
    /// Slots that are not handed out.
    free: u64,
}

/// Every swap area of the machine (`total_swap_pages`, `nr_swap_pages`).
#[derive(Debug, Clone, Default)]
pub struct SwapAreas {
    areas: Vec<Area>,
}

impl SwapAreas {
    /// `swapon`.
    pub fn add_area(&mut self, spec: AreaSpec) {
        self.areas.push(Area { spec, free: spec.pages });
    }

    /// Pages of all areas: `total_swap_pages`.
    pub fn total_pages(&self) -> u64 {
        self.areas.iter().map(|area| area.spec.pages).sum()
    }

    /// Slots of all areas that nobody holds: `get_nr_swap_pages`.
    pub fn free_pages(&self) -> u64 {
        self.areas.iter().map(|area| area.free).sum()
    }

    /// Slots that a task of `memcg` may still use, with the limits of all cgroups above it:
    /// `mem_cgroup_get_nr_swap_pages`.
    pub fn free_for(&self, cgroups: &Memcgs, memcg: MemcgId) -> u64 {
        let room = |id: MemcgId| cgroups[id].swap.max.saturating_sub(cgroups[id].swap.usage);
        cgroups.ancestors(memcg).map(room).fold(self.free_pages(), u64::min)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::version::presets::Version;

    /// ```text
    ///   area of 100 pages     P: swap.max 40, uses 30     P/A: no limit, uses 30
    /// ```
    #[test]
    fn what_is_free_for_a_cgroup_is_what_its_parents_leave() {
        let version = Version::parse("linux-6.1").unwrap();
        let mut cgroups = Memcgs::new(&version, 1, 1);
        let parent = cgroups.create(MemcgId::ROOT, "P");
        let child = cgroups.create(parent, "A");
        let mut areas = SwapAreas::default();
        assert_eq!(areas.free_for(&cgroups, child), 0, "no area");
        areas.add_area(AreaSpec { kind: AreaKind::Zram, pages: 100, priority: None });
        assert_eq!(areas.free_for(&cgroups, child), 100);
        cgroups.set_swap_max(parent, 40);
        assert_eq!(cgroups.charge_swap(child, 30), Ok(()));
        assert_eq!(cgroups.charge_swap(child, 11), Err(parent), "10 are left");
        assert_eq!(areas.free_for(&cgroups, child), 10);
        assert_eq!(areas.free_for(&cgroups, MemcgId::ROOT), 100);
    }
}
