//! Time and waits in sections, in scenes of one task that reclaims.

use super::*;
use kernel::section::{Section, Shrinker, Site, Whom};

const STALL: Section = Section::Site(Site::AllocationStall);
const SUPER_BLOCK: Section = Section::Shrinker(Shrinker::SuperBlock);

/// ```text
///   us    0        100       103        107           127         132        133
///         | naps   | stall   | shrinker | waits 20 us | works 5   | out      | out, naps
///                  | works 3 | works 4  | own write   |           | works 1  |
/// ```
fn reclaimer(sim: &Sim) {
    let here = sim.clone();
    let queue = sim.new_queue();
    sim.spawn("creator", None, async move {
        nap(&here, 100).await;
        here.enter(STALL);
        here.charge(CostOp::Syscall, 3); // has still to pass when the shrinker is entered
        here.enter(SUPER_BLOCK);
        work(&here, 4).await;
        here.blame(Some(Whom::OwnInodeWrite));
        let longest = Some(Nanos::from_micros(20));
        let _ = here.wait(queue, WaitReason::InodeReclaim, longest).await;
        here.blame(None);
        work(&here, 5).await;
        here.leave(SUPER_BLOCK);
        work(&here, 1).await;
        here.leave(STALL);
        nap(&here, 1000).await;
    });
}

fn told(sim: &Sim) -> String {
    let micros = |Nanos(nanos)| nanos / 1000;
    let path = |within: crate::Within| within.path().collect::<Vec<_>>().join(" > ");
    let sections = sim.sections().into_iter().map(|time| {
        let (within, stays) = (path(time.within), format!("{}, {} with a wait", time.count, time.waited));
        format!("{}: {} us in {within} ({stays})", time.phase, micros(time.spent))
    });
    let waits = sim.waits().into_iter().filter(|waits| waits.reason != WaitReason::UserSleep).map(|waits| {
        let on = crate::whom_name(waits.reason, waits.within.whom);
        format!("{}: waits {} us in `{}` on {on}", waits.phase, micros(waits.spent), path(waits.within))
    });
    sections.chain(waits).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_stall_and_the_shrinker_in_it_are_told_with_the_wait_and_whom_it_was_on() {
    let (mut simulation, sim) = boot(hardware(2));
    reclaimer(&sim);
    simulation.run_until_idle(Nanos::from_secs(1)).expect("it ends");
    insta::assert_snapshot!(told(&sim), @r"
    0: 33 us in 1 x allocation stall
    0: 29 us in 1 x allocation stall > super-block shrinker
    0: waits 20 us in `allocation stall > super-block shrinker` on own inode write
    ");
}

/// What lasts at the end counts up to then; what ends in the next phase belongs to that.
#[test]
fn a_section_belongs_to_the_phase_in_which_it_ends_and_counts_while_it_lasts() {
    let (mut simulation, sim) = boot(hardware(2));
    reclaimer(&sim);
    simulation.run_until(Nanos::from_micros(117)).expect("it runs");
    insta::assert_snapshot!(told(&sim), @r"
    0: 17 us in 1 x allocation stall
    0: 14 us in 1 x allocation stall > super-block shrinker
    0: waits 10 us in `allocation stall > super-block shrinker` on own inode write
    ");
    sim.end_phase();
    simulation.run_until_idle(Nanos::from_secs(1)).expect("it ends");
    insta::assert_snapshot!(told(&sim), @r"
    1: 33 us in 1 x allocation stall
    1: 29 us in 1 x allocation stall > super-block shrinker
    1: waits 20 us in `allocation stall > super-block shrinker` on own inode write
    ");
}

#[test]
#[should_panic(expected = "is left within")]
fn sections_are_left_in_the_order_of_their_nesting() {
    let (mut simulation, sim) = boot(hardware(1));
    let here = sim.clone();
    sim.spawn("creator", None, async move {
        here.enter(STALL);
        here.enter(SUPER_BLOCK);
        here.leave(STALL);
    });
    let _ = simulation.run_until_idle(Nanos::from_secs(1));
}
