//! Step-walks: tasks of a machine with two CPUs that come, stall and go, and what is counted of them.

use super::*;

const MS: u64 = 1_000_000;
const S: u64 = 1_000_000_000;

/// Groups and a few tasks, each told what it is now: `r` ready, `c` on its CPU, `i` waits for I/O, `s` sleeps,
/// `-` gone; in capitals it is stalled on memory.
struct Walk {
    groups: Groups,
    tasks: Vec<(u32, u16, Role)>,
    now: u64,
}

impl Walk {
    fn new() -> Self {
        let mut groups = Groups::new(2, 250);
        groups.add(0, 1, 0); // A
        groups.add(0, 2, 1); // A/B
        Self { groups, tasks: Vec::new(), now: 0 }
    }

    fn role(what: char) -> Role {
        let stalled = if what.is_ascii_uppercase() { Role::STALLED } else { 0 };
        Role(
            stalled
                | match what.to_ascii_lowercase() {
                    'r' => Role::READY,
                    'c' => Role::READY | Role::ON_CPU,
                    'i' => Role::WAITS_FOR_IO,
                    's' => 0,
                    '-' => return Role::default(),
                    other => panic!("{other}"),
                },
        )
    }

    /// After `ms` milliseconds task `index` of `group` becomes `what` on `cpu`.
    fn step(&mut self, ms: u64, index: usize, group: u32, cpu: u16, what: char) {
        self.now += ms * MS;
        if self.tasks.len() <= index {
            self.tasks.resize(index + 1, (group, cpu, Role::default()));
        }
        let before = self.tasks[index];
        let now = (group, cpu, Self::role(what));
        self.groups.change(self.now, group, (before.1, before.2), (now.1, now.2));
        self.tasks[index] = now;
    }

    /// Milliseconds of some and full at `ms` later, as the monitor reads them.
    fn totals(&mut self, ms: u64, group: u32) -> (u64, u64) {
        self.now += ms * MS;
        let Pressure { some, full } = self.groups.read(self.now, group, false);
        (some.total.0 / MS, full.total.0 / MS)
    }
}

#[test]
fn one_of_two_tasks_that_stalls_is_some_and_both_are_full() {
    let mut walk = Walk::new();
    walk.step(0, 0, 0, 0, 'c');
    walk.step(0, 1, 0, 0, 'r');
    walk.step(100, 0, 0, 0, 'S'); // asleep in reclaim, while the other one runs
    walk.step(0, 1, 0, 0, 'c');
    assert_eq!(walk.totals(100, 0), (100, 0));
    walk.step(0, 1, 0, 0, 'I');
    assert_eq!(walk.totals(100, 0), (200, 100), "nobody is left who could work");
    walk.step(0, 0, 0, 0, 'c');
    assert_eq!(walk.totals(100, 0), (300, 100), "one is back");
    walk.step(0, 1, 0, 0, 'i');
    assert_eq!(walk.totals(100, 0), (300, 100), "I/O by itself is no pressure on memory");
}

/// Whoever could run beside a reclaimer cannot, as long as that has the CPU.
#[test]
fn a_cpu_that_reclaims_is_full_even_beside_tasks_that_are_ready() {
    let mut walk = Walk::new();
    walk.step(0, 0, 0, 0, 'C');
    walk.step(0, 1, 0, 0, 'r');
    assert_eq!(walk.totals(100, 0), (100, 100));
    walk.step(0, 0, 0, 0, 'R');
    walk.step(0, 1, 0, 0, 'c');
    assert_eq!(walk.totals(100, 0), (200, 100), "it is ready to reclaim, and another one works");
}

/// Two CPUs: the stall of one is half of what goes on while both are busy, all of it while the other is idle.
#[test]
fn cpus_weigh_as_much_as_they_are_busy() {
    let stalled_beside = |busy_ms: u64| {
        let mut walk = Walk::new();
        walk.step(0, 0, 0, 0, 'I');
        walk.step(0, 1, 0, 1, 'c');
        walk.step(busy_ms, 1, 0, 1, '-');
        walk.totals(1000 - busy_ms, 0)
    };
    assert_eq!(stalled_beside(1000), (500, 500));
    assert_eq!(stalled_beside(0), (1000, 1000));
    // 1000 ms weighted by 250 ticks, 0 ms by 62 ticks of 248 ms.
    assert_eq!(stalled_beside(250), (801, 801));
}

#[test]
fn a_cgroup_is_full_while_the_machine_works() {
    let mut walk = Walk::new();
    walk.step(0, 0, 2, 0, 'I'); // in A/B
    walk.step(0, 1, 0, 0, 'c'); // in no cgroup
    assert_eq!(
        [walk.totals(100, 0), walk.totals(0, 1), walk.totals(0, 2)],
        [(100, 0), (100, 100), (100, 100)]
    );
    walk.step(0, 2, 1, 1, 'c'); // in A, on the other CPU
    let a = walk.totals(100, 1);
    // 100 ms as before; then CPU 0 is stalled for 25 ticks, and CPU 1 works for 25.
    assert_eq!(a, (150, 150));
    assert_eq!(walk.totals(0, 2), (200, 200), "A/B has nobody there");
}

/// A sleeper counts where it was last, and where it wakes up from then on.
#[test]
fn a_stalled_task_takes_its_stall_along_to_another_cpu() {
    let mut walk = Walk::new();
    walk.step(0, 0, 0, 0, 'S');
    walk.step(100, 0, 0, 1, 'C');
    let times =
        |walk: &Walk, cpu: usize| walk.groups.groups[0].cpus[cpu].times(walk.now).map(|time| time / MS);
    assert_eq!([times(&walk, 0), times(&walk, 1)], [[100; 3], [0; 3]]);
    walk.step(100, 0, 0, 1, 'c');
    assert_eq!([times(&walk, 0), times(&walk, 1)], [[100; 3], [100; 3]]);
}

/// CPU time that is charged and has not passed lets a stall begin later than another task's change comes.
#[test]
fn what_comes_before_the_last_change_of_a_cpu_takes_no_time_away() {
    let mut walk = Walk::new();
    walk.step(10, 0, 0, 0, 'C'); // by its own debt 10 ms ahead of the others
    walk.now -= 5 * MS;
    walk.step(0, 1, 0, 0, 'r');
    assert_eq!(walk.totals(0, 0), (0, 0));
    assert_eq!(walk.totals(5, 0), (0, 0));
    assert_eq!(walk.totals(7, 0), (7, 7));
}

/// A task changes at its own time, which may be before that of the last look: it was an overflow.
#[test]
fn a_look_ahead_of_a_change_is_made_up_for_and_not_taken_back() {
    let mut walk = Walk::new();
    walk.step(0, 0, 0, 0, 'I');
    assert_eq!(walk.totals(10, 0), (10, 10));
    walk.now -= 5 * MS;
    walk.step(0, 0, 0, 0, 'c'); // the stall was over after 5 ms
    assert_eq!(walk.totals(15, 0), (10, 10), "5 ms too many, which stay");
    walk.step(0, 0, 0, 0, 'I');
    assert_eq!(walk.totals(5, 0), (10, 10), "and are made up for");
    assert_eq!(walk.totals(5, 0), (15, 15));
}

#[test]
fn averages_move_every_two_seconds_and_a_look_does_not_change_when() {
    let averages = |looks: &[u64]| {
        let mut walk = Walk::new();
        walk.step(0, 0, 0, 0, 'I');
        for &at in looks {
            let _ = walk.groups.read(at * S, 0, true);
        }
        walk.groups.read(10 * S, 0, false).some.average
    };
    let undisturbed = averages(&[]);
    // Four periods of 2.004 s, all of them stalled.
    assert_eq!(undisturbed, [55_04, 12_45, 2_70]);
    assert_eq!(averages(&[1, 3, 5, 7, 9]), undisturbed);
}

/// Nothing happens for a minute: the clock stops, and the next change catches up.
#[test]
fn an_idle_group_stops_its_clock_and_decays_all_the_same() {
    let mut walk = Walk::new();
    walk.step(0, 0, 0, 0, 'I');
    walk.step(2_004, 0, 0, 0, 's');
    let before = walk.groups.read(walk.now, 0, false).some.average[0];
    assert_eq!(before, 18_11);
    walk.totals(10_000, 0);
    assert_eq!(walk.groups.groups[0].due, FOREVER, "nobody did anything in the last two seconds");
    walk.step(50_000, 0, 0, 0, 'c');
    walk.step(2_004, 0, 0, 0, 'c');
    let after = walk.groups.read(walk.now, 0, true).some.average[0];
    assert!(after < 10, "{after}: 18.11 % a minute ago");
}

#[test]
fn sites_of_reclaim_are_stalls_and_pauses_are_not() {
    let stalls = [
        Site::AllocationStall,
        Site::AllocationPause,
        Site::LimitReclaim,
        Site::DirectCompaction,
        Site::OverHigh,
        Site::Kswapd,
    ];
    assert_eq!(stalls.map(is_stall), [true, false, true, true, true, true]);
}
