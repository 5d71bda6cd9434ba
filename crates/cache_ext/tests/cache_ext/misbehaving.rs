//! Policies that propose nothing, the same page again and again, pages that are not theirs, and pages that cannot go:
//! the kernel frees as much as without one, from its own lists.

use mm::lru::cache_ext::hooks::EvictionPolicy;
use mm::lru::cache_ext::lists::{End, Eviction, EvictionList, Folio, Lists};
use mm::lru::lists::LruList;

use crate::world::World;
use crate::{boot, pass};

/// What it does wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Vice {
    Silent,
    /// Names the page that came first as often as it is asked for one.
    Repeats,
    /// Names pages of others, of nobody, and those that are gone.
    Strays,
    /// Puts every page on a list twice, moves and deletes what is not there, uses lists of others.
    Fumbles,
    /// Wants nothing to do with what it was told.
    Hoards,
}

#[derive(Debug, Clone)]
struct Bad {
    vice: Vice,
    list: EvictionList,
    seen: Vec<Folio>,
}

impl EvictionPolicy for Bad {
    fn init(&mut self, lists: &mut Lists<'_>) {
        self.list = lists.create();
    }

    fn evict_folios(&mut self, lists: &mut Lists<'_>, eviction: &mut Eviction) {
        match self.vice {
            Vice::Silent | Vice::Hoards => {}
            Vice::Repeats => (0..100).for_each(|_| eviction.propose(self.seen[0])),
            Vice::Strays => (0..100).rev().for_each(|number| eviction.propose(Folio(number * 1000))),
            Vice::Fumbles => {
                assert!(lists.see(Folio(u32::MAX)).is_none(), "it is nobody");
                assert_eq!(lists.len(EvictionList::NIL), 0, "it is no list");
                self.seen.iter().rev().for_each(|&folio| eviction.propose(folio));
            }
        }
    }

    fn folio_added(&mut self, lists: &mut Lists<'_>, folio: Folio) {
        self.seen.push(folio);
        if self.vice == Vice::Fumbles {
            assert!(!lists.move_to(self.list, folio, End::Head) && !lists.del(folio), "it is on no list");
            assert!(lists.add(self.list, folio, End::Head) && !lists.add(self.list, folio, End::Tail));
            let first_of_others = EvictionList::NIL;
            assert!(!lists.move_to(first_of_others, folio, End::Head));
            assert!(!lists.add(self.list, Folio(folio.0 + 1_000_000), End::Head), "nobody has it");
        }
    }

    fn folio_accessed(&mut self, _lists: &mut Lists<'_>, _folio: Folio) {}

    fn folio_removed(&mut self, lists: &mut Lists<'_>, folio: Folio) {
        if self.vice == Vice::Fumbles {
            // It leaves by itself; that it is put back is too late.
            lists.del(folio);
            lists.add(self.list, folio, End::Head);
        }
    }
}

/// Two groups with pages, some of them active.
fn fill(world: &mut World) -> [mm::MemcgId; 2] {
    let groups = ["A", "B"].map(|name| world.group(name));
    world.read(groups[1], 1000..1100);
    world.heat(groups[0], 0..40);
    world.read(groups[0], 40..300);
    world.settle();
    groups
}

fn misbehave(vice: Vice) -> (World, [mm::MemcgId; 2]) {
    let mut world = boot(Box::new(Bad { vice, list: EvictionList::NIL, seen: Vec::new() }));
    let groups = fill(&mut world);
    (world, groups)
}

#[test]
fn who_proposes_nothing_leaves_it_to_the_kernel() {
    let mut plain = World::boot("linux-6.12", 16);
    let [group, _] = fill(&mut plain);
    for vice in [Vice::Silent, Vice::Hoards] {
        let (mut world, [own, _]) = misbehave(vice);
        let mut plain_freed = Vec::new();
        for _ in 0..4 {
            let freed = pass(&mut world, own);
            plain_freed.push(freed);
        }
        if vice == Vice::Silent {
            let freed: Vec<u64> = (0..4).map(|_| pass(&mut plain, group)).collect();
            assert_eq!(plain_freed, freed);
        }
        assert_eq!(world.draw(own), plain.draw(group), "{vice:?}");
    }
}

#[test]
fn a_page_that_is_named_again_goes_once() {
    let (mut world, [group, _]) = misbehave(Vice::Repeats);
    assert!(world.page(0).is_some(), "it is active, and first");
    let mut freed = Vec::new();
    for _ in 0..4 {
        freed.push(pass(&mut world, group));
    }
    assert!(world.page(0).is_none(), "the policy named it");
    assert!(freed.iter().all(|&pages| pages >= 32), "{freed:?}: the rest is the kernel's");
}

#[test]
fn pages_of_others_stay() {
    let (mut world, [group, other]) = misbehave(Vice::Strays);
    let before = world.draw(other);
    while pass(&mut world, group) > 0 {}
    assert_eq!(world.draw(other), before);
    assert_eq!(world.sizes(group), (0, 0), "the kernel went on without");
}

#[test]
fn lists_refuse_what_makes_no_sense() {
    let (mut world, [group, other]) = misbehave(Vice::Fumbles);
    let freed = pass(&mut world, group);
    assert!(freed >= 32);
    assert!(world.page(299).is_none(), "it named the newest first");
    world.mem.memcg_remove(other);
    world.settle();
    world.mem.check().expect("pages of a group that is gone are its parent's, or its own");
}

/// Dirty pages at the head of the policy's list: they stay, and others go.
#[test]
fn pages_that_cannot_go_do_not_stop_reclaim() {
    for policy in pagetide_cache_ext::POLICIES {
        let mut world = boot((policy.make)());
        let group = world.group("A");
        world.read(group, 0..300);
        world.settle();
        for page in 0..200 {
            let pfn = world.page(page).expect("it was read");
            assert!(world.mem.set_dirty(pfn));
        }
        let mut freed = 0;
        for _ in 0..20 {
            freed += pass(&mut world, group);
        }
        assert_eq!(freed, 100, "{}: all that are clean", policy.feature);
        let list = |list| world.mem.lru_list(group, crate::world::NODE, list).count();
        assert_eq!(list(LruList::InactiveFile) + list(LruList::ActiveFile), 200, "{}", policy.feature);
    }
}
