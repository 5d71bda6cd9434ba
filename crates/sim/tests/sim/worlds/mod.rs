//! Random small machines under random programs, checked all along (some after every event).
//!
//! A *world* is a machine of 8 to 64 MiB, a kernel with features added and taken away, sysctls and
//! a program of several tasks that do whatever system calls allow, all drawn from one seed. In
//! every world: no invariant breaks, nothing panics, every task ends, and a second run of the same
//! seed, without checks and on the executor's fast path, does the same.
//!
//! `PAGETIDE_WORLDS=5000 cargo test -p pagetide-sim --release --test sim worlds` runs more of them;
//! `PAGETIDE_WORLD=17` runs that one. Next: [`world`] draws the machine, [`program`] the tasks.

mod program;
mod world;

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use pagetide_sim::run::{Checks, verify};
use world::World;

/// How closely most worlds are looked at: a check takes time in proportion to memory.
const SPREAD: u64 = 40;
/// How many worlds an ordinary test run makes.
const WORLDS: u64 = 96;

/// What a world came to, in full: two runs are compared by it.
#[derive(Debug, PartialEq, Eq)]
struct Digest {
    text: String,
    events: u64,
    vmstat: BTreeMap<String, u64>,
}

/// What must have happened somewhere in an ordinary test run, or the worlds are too tame.
const MARKS: [&str; 9] = [
    "oom_kill",
    "allocstall_movable",
    "pgscan_kswapd",
    "pgscan_direct",
    "pgrefill",
    "workingset_activate_file",
    "workingset_nodereclaim",
    "unevictable_pgs_mlocked",
    "kswapd_low_wmark_hit_quickly",
];

fn number_from_env(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name}={text} is no number")))
}

/// Runs a world once; the text of whatever went wrong otherwise.
fn run(world: &World, checks: Checks) -> Result<Digest, String> {
    let plan = world.plan.clone();
    let ended = catch_unwind(AssertUnwindSafe(|| {
        verify(&world.spec, checks, move |system| async move { program::main(system, plan).await })
    }));
    match ended {
        Ok(Ok((result, statistics))) => {
            let text = format!("{result:?} {statistics:?}");
            Ok(Digest { text, events: statistics.events, vmstat: result.vmstat })
        }
        // A machine that is too small for its own reserves is an answer, not a failure.
        Ok(Err(error)) if world::is_refusal(&error) => {
            Ok(Digest { text: error.to_string(), events: 0, vmstat: BTreeMap::new() })
        }
        Ok(Err(error)) => Err(error.to_string()),
        Err(panic) => Err(panic
            .downcast_ref::<String>()
            .cloned()
            .or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()))
            .unwrap_or_else(|| "a panic without text".to_owned())),
    }
}

/// Runs a world twice; returns the events of both and `/proc/vmstat` at the end.
fn check(seed: u64) -> (u64, BTreeMap<String, u64>) {
    let world = World::draw(seed);
    let fail = |problem: &str| -> ! {
        panic!(
            "world {seed}: {problem}\n{world}\nreplay: PAGETIDE_WORLD={seed} cargo test -p pagetide-sim --release --test sim worlds"
        )
    };
    // Every event of some worlds, some events of all.
    let checks = if seed.is_multiple_of(24) { Checks::EveryEvent } else { Checks::Spread(SPREAD) };
    let first = run(&world, checks).unwrap_or_else(|problem| fail(&problem));
    // Nobody looks at this one, so that it takes the executor's fast path.
    let second = run(&world, Checks::AtTheEnd).unwrap_or_else(|problem| fail(&problem));
    if first != second {
        fail("a second run of the same seed ended differently");
    }
    (first.events * 2, first.vmstat)
}

#[test]
#[allow(clippy::print_stdout)] // The rate, for whoever asks with `--nocapture`.
fn every_world_keeps_its_invariants_ends_and_repeats() {
    if let Some(seed) = number_from_env("PAGETIDE_WORLD") {
        check(seed);
        return;
    }
    let count = number_from_env("PAGETIDE_WORLDS").unwrap_or(WORLDS);
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(4);
    let (next, events, totals) = (AtomicU64::new(0), AtomicU64::new(0), Mutex::new(BTreeMap::new()));
    let begin = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= count {
                        break;
                    }
                    let (count, vmstat) = check(seed);
                    events.fetch_add(count, Ordering::Relaxed);
                    let mut totals = totals.lock().expect("no thread panics with the lock");
                    for (name, value) in vmstat {
                        *totals.entry(name).or_insert(0) += value;
                    }
                }
            });
        }
    });
    let (events, seconds) = (events.into_inner(), begin.elapsed().as_secs_f64());
    let rate = count as f64 * 60.0 / seconds;
    println!("{count} worlds, {events} events in {seconds:.1} s: {rate:.0} worlds a minute");
    let totals = totals.into_inner().expect("no thread panics with the lock");
    let missing: Vec<&str> = MARKS.into_iter().filter(|&mark| totals.get(mark) == Some(&0)).collect();
    let unknown: Vec<&str> = MARKS.into_iter().filter(|&mark| !totals.contains_key(mark)).collect();
    assert!(count < WORLDS || (missing.is_empty() && unknown.is_empty()), "never: {missing:?} {unknown:?}");
}
