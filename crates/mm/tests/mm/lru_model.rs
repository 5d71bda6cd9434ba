//! Reclaim of one cgroup against two lists written down in the plainest way.

use std::collections::{BTreeMap, BTreeSet};

use crate::world::{CPU, NODE, World};
use pagetide_mm::MemcgId;
use pagetide_mm::lru::lists::LruList;
use pagetide_mm::reclaim::run::ScanControl;
use pagetide_mm::version::presets::Version;
use pagetide_mm::version::rules::Aging;
use proptest::prelude::*;

/// The lists of a cgroup, newest first, as a textbook has them.
#[derive(Debug, Default)]
struct TwoLists {
    root_aging: bool,
    batch: usize,
    active: Vec<u32>,
    inactive: Vec<u32>,
    adds: Vec<u32>,
    activations: Vec<u32>,
    referenced: BTreeSet<u32>,
    /// In the add batch, or just refaulted, to be put on the active list.
    starts_active: BTreeSet<u32>,
    shadows: BTreeMap<u32, usize>,
    age: usize,
    refault_activations: usize,
    snapshot: usize,
    evictions: Vec<u32>,
}

impl TwoLists {
    fn is_cached(&self, page: u32) -> bool {
        self.adds.contains(&page) || self.active.contains(&page) || self.inactive.contains(&page)
    }

    fn read(&mut self, page: u32) {
        if !self.is_cached(page) {
            self.add(page);
        }
        let active = self.active.contains(&page) || self.starts_active.contains(&page);
        if self.referenced.insert(page) || active {
            return;
        }
        self.referenced.remove(&page);
        self.age += 1;
        if self.adds.contains(&page) {
            self.starts_active.insert(page);
        } else if !self.activations.contains(&page) {
            self.activations.push(page);
            if self.activations.len() == self.batch {
                self.flush_activations();
            }
        }
    }

    fn add(&mut self, page: u32) {
        if let Some(age) = self.shadows.remove(&page)
            && self.age - age <= self.active.len()
        {
            self.starts_active.insert(page);
            self.age += 1;
            self.refault_activations += 1;
        }
        self.adds.push(page);
        if self.adds.len() == self.batch {
            self.flush_adds();
        }
    }

    fn flush_adds(&mut self) {
        for page in std::mem::take(&mut self.adds) {
            let list = if self.starts_active.remove(&page) { &mut self.active } else { &mut self.inactive };
            list.insert(0, page);
        }
    }

    fn flush_activations(&mut self) {
        for page in std::mem::take(&mut self.activations) {
            self.inactive.retain(|&other| other != page);
            self.active.insert(0, page);
        }
    }

    fn drain(&mut self) {
        self.flush_adds();
        self.flush_activations();
    }

    fn may_open(&self) -> bool {
        let changed = self.refault_activations != self.snapshot;
        (changed && (self.root_aging || !self.active.is_empty())) || self.inactive.len() < self.active.len()
    }

    /// One pass of limit reclaim at `priority` for `target` pages.
    fn pass(&mut self, priority: u8, target: usize) {
        let open_at_start = self.may_open();
        let (mut inactive, mut active) = (self.inactive.len() >> priority, self.active.len() >> priority);
        let mut reclaimed = 0;
        while reclaimed < target && (inactive > 0 || active > 0) {
            let chunk = inactive.min(32);
            inactive -= chunk;
            if chunk > 0 {
                self.drain();
                for _ in 0..chunk {
                    let Some(page) = self.inactive.pop() else { break };
                    self.shadows.insert(page, self.age);
                    self.referenced.remove(&page);
                    self.evictions.push(page);
                    self.age += 1;
                    reclaimed += 1;
                }
            }
            let chunk = active.min(32);
            active -= chunk;
            let open = if self.root_aging { open_at_start } else { self.may_open() };
            if chunk > 0 && open {
                self.drain();
                for _ in 0..chunk {
                    let Some(page) = self.active.pop() else { break };
                    self.inactive.insert(0, page);
                }
            }
        }
    }
}

#[derive(Debug, Clone)]
enum Event {
    Read(u32),
    ReadRange(u32, u32),
    Pass { priority: u8, target: u64 },
    EndOfRun,
    Drain,
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        8 => (0_u32..40).prop_map(Event::Read),
        4 => (0_u32..600, 1_u32..80).prop_map(|(first, count)| Event::ReadRange(first, count)),
        4 => (0_u8..5, 1_u64..100).prop_map(|(priority, target)| Event::Pass { priority, target }),
        1 => Just(Event::EndOfRun),
        1 => Just(Event::Drain),
    ]
}

/// Whether world and model show the same lists, and the same pages in memory.
fn compare(world: &World, model: &TwoLists, group: MemcgId) -> Result<(), TestCaseError> {
    prop_assert_eq!(world.indices(group, LruList::ActiveFile), model.active.clone());
    prop_assert_eq!(world.indices(group, LruList::InactiveFile), model.inactive.clone());
    let adds: Vec<u32> =
        world.mem.add_batch(CPU).iter().map(|&pfn| world.mem.core.alloc.frames.index(pfn)).collect();
    prop_assert_eq!(adds, model.adds.clone());
    Ok(())
}

fn play(kernel: &str, events: &[Event]) -> Result<(), TestCaseError> {
    let mut world = World::boot(kernel, 16);
    let group = world.group("A");
    let kernel = Version::parse(kernel).expect("a preset");
    let mut model = TwoLists {
        root_aging: kernel.rules.aging == Aging::Root,
        batch: usize::from(kernel.tuning.lru_batch),
        ..TwoLists::default()
    };
    for event in events {
        // Both see fresh statistics: how stale they are is another test's matter.
        world.mem.core.cgroups.flush_periodic();
        match *event {
            Event::Read(page) => {
                world.read(group, [page]);
                model.read(page);
            }
            Event::ReadRange(first, count) => {
                for page in first..first + count {
                    world.mem.core.cgroups.flush_periodic();
                    world.read(group, [page]);
                    model.read(page);
                }
            }
            Event::Pass { priority, target } => {
                let mut sc = ScanControl::limit(group, target);
                (sc.priority, sc.nr_to_reclaim) = (priority, target);
                let _ = world.pass(&mut sc);
                model.pass(priority, usize::try_from(target).expect("small"));
            }
            Event::EndOfRun => {
                world.mem.snapshot_refaults(group, NODE);
                model.snapshot = model.refault_activations;
            }
            Event::Drain => {
                world.mem.lru.drain(&mut world.mem.core, CPU);
                model.drain();
            }
        }
        compare(&world, &model, group)?;
    }
    prop_assert_eq!(world.mem.check_at_rest(), Ok(()));
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]
    #[test]
    fn a_cgroups_lists_are_the_textbooks_two_lists(
        kernel in prop::sample::select(vec!["linux-5.4", "linux-5.5", "linux-6.1", "linux-6.12"]),
        events in prop::collection::vec(event(), 1..80),
    ) {
        play(kernel, &events)?;
    }
}
