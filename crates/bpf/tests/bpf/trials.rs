//! What a policy may do, and what becomes of one that does something else.

use crate::world::World;
use crate::{boot, gone, pass, trial};

/// Pages 0 to 400, of which those that `often` names are read three times.
fn read(what: u64, often: impl Fn(u32) -> bool) -> (World, mm::MemcgId) {
    let mut world = boot(trial(what));
    let group = world.group("A");
    world.read(group, 0..400);
    for _ in 0..2 {
        (0..400).filter(|&page| often(page)).for_each(|page| world.read(group, page..page + 1));
    }
    (world, group)
}

#[test]
fn a_walk_names_those_that_the_callback_picks() {
    // Those that were read once: their access counts, and the one that they came with.
    let (mut world, group) = read(0, |page| page < 100);
    assert_eq!(pass(&mut world, group), 32);
    assert_eq!(gone(&world, 0..400), (100..132).collect::<Vec<_>>());
    assert_eq!(world.mem.policy_failure(), None);
}

#[test]
fn a_sample_gives_the_lowest_of_each_group() {
    let (mut world, group) = read(1, |page| page % 4 != 2);
    assert_eq!(pass(&mut world, group), 32);
    assert_eq!(gone(&world, 0..400), (0..128).filter(|page| page % 4 == 2).collect::<Vec<_>>());
    // All that were looked at went to the tail: the next ones are from there on.
    assert_eq!(pass(&mut world, group), 32);
    assert_eq!(gone(&world, 0..400), (0..256).filter(|page| page % 4 == 2).collect::<Vec<_>>());
    assert_eq!(world.mem.policy_failure(), None);
}

/// What goes to the tail of the list that is walked comes round again, as in a kernel.
#[test]
fn a_walk_goes_round_its_list() {
    let (mut world, group) = read(2, |_| false);
    assert_eq!(pass(&mut world, group), 32, "two accesses each: the second round finds some");
    assert_eq!(gone(&world, 0..400), (0..32).collect::<Vec<_>>());
    assert_eq!(world.mem.policy_failure(), None);
}

#[test]
fn lists_are_five_maps_forget_and_user_space_answers() {
    for what in [3, 4, 5] {
        let (world, _) = read(what, |_| false);
        assert_eq!(world.mem.policy_failure(), None, "{what}");
    }
}

/// The kernel's lists take over, and the run's end tells why.
#[test]
fn what_a_policy_must_not_do_ends_it() {
    let told = [10, 11, 12, 13, 14, 15, 16, 17, 18].map(|what| {
        let (mut world, group) = read(what, |_| false);
        assert_eq!(pass(&mut world, group), 32, "{what}");
        world.mem.policy_failure().expect("it did wrong")
    });
    insta::assert_snapshot!(told.join("\n"), @"
    the program runs too long in `folio_added`, at instruction 54 of `trial_folio_added`
    a load of 8 bytes from 0x6d4328, where nothing is to be seen in `folio_added`, at instruction 52 of `trial_folio_added`
    a write to a constant at 0xffff88b000000000 in `folio_added`, at instruction 66 of `trial_folio_added`
    a callback calls for lists, whose lock a kernel would hold, in `evict_folios`, at instruction 14 of `those_read_once`
    a look at byte 24 of `struct folio`, which is not modelled in `folio_added`, at instruction 38 of `trial_folio_added`
    the time is asked, which is not modelled, in `folio_added`, at instruction 68 of `trial_folio_added`
    the current task is asked, which is not modelled, in `folio_added`, at instruction 70 of `trial_folio_added`
    the policy does not begin: -12 in `init`
    calls go deeper than 8 in `folio_added`, at instruction 4 of `deeper`
    ");
}

#[test]
fn an_invented_folio_is_not_heard() {
    let (mut world, group) = read(19, |_| false);
    assert_eq!(pass(&mut world, group), 32, "from the kernel's own lists");
    assert_eq!(world.mem.policy_failure(), None);
}
