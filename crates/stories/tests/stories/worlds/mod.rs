//! Random small machines under random programs, checked all along (some after every event).
//!
//! A *world* is a machine of 8 to 64 MiB with any zones, a version of Linux with features added and
//! taken away, sysctls and a program of several tasks that do whatever system calls allow, all drawn
//! from one seed. In every world: no invariant breaks, nothing panics, every task that waits goes on
//! within bounded simulated time and ends, and a second run of the same seed, without checks, on the executor's fast
//! path and with neighbouring pages at once, does the same.
//!
//! `PAGETIDE_WORLDS=5000 cargo test -p pagetide-stories --release every_world` runs more of them;
//! `PAGETIDE_WORLD=17` runs that one. Next: [`world`] draws the machine, [`program`] and [`task`]
//! what runs on it, [`liveness`] is the oracle of waits, [`hangs`] what it must find.

mod hangs;
mod kills;
mod liveness;
mod program;
mod task;
mod world;

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use kernel::Kernel;
use mm::version::rules::Rule;
use sim::run::{Checks, Left, verify_watched};
use units::Nanos;

use liveness::{Calls, NO_HOPE, Oracle, overlong};
use world::World;

/// How closely most worlds are looked at: a check takes time in proportion to memory.
const SPREAD: u64 = 40;
/// How many worlds an ordinary test run makes: as many as there are answers, which the kernels of seeds take turns to
/// begin with.
const WORLDS: u64 = Rule::ALL.len() as u64;

/// What a world came to, in full: two runs are compared by it.
#[derive(Debug, PartialEq, Eq)]
struct Digest {
    text: String,
    events: u64,
    vmstat: BTreeMap<String, u64>,
    longest: Option<(Nanos, String)>,
}

/// What must have happened somewhere in an ordinary test run, or the worlds are too tame.
const MARKS: [&str; 21] = [
    "pgmajfault",
    "oom_kill",
    "allocstall_movable",
    "pgscan_kswapd",
    "pgscan_direct",
    "pgrefill",
    "workingset_activate_file",
    "workingset_nodereclaim",
    "unevictable_pgs_mlocked",
    "kswapd_low_wmark_hit_quickly",
    "thp_fault_alloc",
    "thp_fault_fallback",
    "compact_stall",
    "slabs_scanned",
    "nr_written",
    "nr_vmscan_immediate_reclaim",
    "nr_vmscan_write",
    "perf_count_congestion_wait",
    "pswpout",
    "pswpin",
    "swap_ra_hit",
];

/// The number of worlds that somebody asks for.
pub fn asked() -> Option<u64> {
    number_from_env("PAGETIDE_WORLDS")
}

fn number_from_env(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name}={text} is no number")))
}

/// Runs a world once; the text of whatever went wrong otherwise.
fn run(world: &World, checks: Checks) -> Result<Digest, String> {
    let plan = world.plan.clone();
    let calls = Calls::new(world.bounds());
    let mut oracle = Oracle::new(calls.clone());
    let of_program = calls.clone();
    let ended = catch_unwind(AssertUnwindSafe(|| {
        let watch = move |kernel: &Kernel<_, _>| {
            // Whoever looks on sees each page go its own way; who does not, several at once.
            kernel.mem(|mem| mem.core.alloc.go_one_by_one());
            oracle.look(kernel.machine(), || Left::of(kernel));
        };
        verify_watched(&world.spec, checks, watch, move |system| program::main(system, plan, of_program))
    }));
    match ended {
        Ok(Ok((result, statistics))) => {
            if let Some(problem) = overlong(&calls, &result.stalls) {
                return Err(problem);
            }
            let text = format!("{result:?} {statistics:?}");
            let (events, longest) = (statistics.events, calls.longest());
            Ok(Digest { text, events, vmstat: result.vmstat, longest })
        }
        // A machine that is too small for its own reserves is an answer, not a failure.
        Ok(Err(error)) if world::is_refusal(&error) => Ok(nothing(error.to_string())),
        Ok(Err(error)) => Err(error.to_string()),
        Err(panic) => Err(text_of(panic.as_ref())),
    }
}

/// A world that ended as it should have, without a word more.
fn nothing(text: String) -> Digest {
    Digest { text, events: 0, vmstat: BTreeMap::new(), longest: None }
}

/// What a panic says.
fn text_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic without text").to_owned()
}

/// Runs a world twice; returns what it came to.
fn check(seed: u64) -> Digest {
    check_world(seed, &World::draw(seed))
}

fn check_world(seed: u64, world: &World) -> Digest {
    let fail = |problem: &str| -> ! {
        panic!(
            "world {seed}: {problem}\n{world}\nreplay: PAGETIDE_WORLD={seed} cargo test -p pagetide-stories --release every_world"
        )
    };
    // Every event of some worlds, some events of all.
    let checks = if seed.is_multiple_of(24) { Checks::EveryEvent } else { Checks::Spread(SPREAD) };
    let first = match run(world, checks) {
        Ok(first) => first,
        // A second run would not end.
        Err(problem) if problem.starts_with(NO_HOPE) => return nothing(problem),
        Err(problem) => fail(&problem),
    };
    // Nobody looks at this one, so that it takes the fast paths.
    let second = run(world, Checks::AtTheEnd).unwrap_or_else(|problem| fail(&problem));
    if first != second {
        fail("a second run of the same seed ended differently");
    }
    first
}

/// What many worlds came to.
#[derive(Default)]
struct Totals {
    vmstat: BTreeMap<String, u64>,
    /// Events and seed of the largest.
    largest: (u64, u64),
    longest: Option<(Nanos, String)>,
    /// Worlds that ended without memory.
    without_memory: u64,
}

impl Totals {
    fn add(&mut self, seed: u64, digest: Digest) {
        self.without_memory += u64::from(digest.text.starts_with(NO_HOPE));
        for (name, value) in digest.vmstat {
            *self.vmstat.entry(name).or_insert(0) += value;
        }
        self.largest = self.largest.max((digest.events, seed));
        let longest = digest.longest.map(|(length, text)| (length, format!("{text} of world {seed}")));
        self.longest = self.longest.take().max(longest);
    }
}

#[test]
#[allow(clippy::print_stdout)] // The rate, for whoever asks with `--nocapture`.
fn every_world_keeps_its_invariants_goes_on_and_repeats() {
    if let Some(seed) = number_from_env("PAGETIDE_WORLD") {
        check(seed);
        return;
    }
    let count = asked().unwrap_or(WORLDS);
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(4);
    let (next, events, totals) = (AtomicU64::new(0), AtomicU64::new(0), Mutex::new(Totals::default()));
    let begin = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= count {
                        break;
                    }
                    let digest = check(seed);
                    events.fetch_add(digest.events * 2, Ordering::Relaxed);
                    totals.lock().expect("no thread panics with the lock").add(seed, digest);
                }
            });
        }
    });
    let (events, seconds) = (events.into_inner(), begin.elapsed().as_secs_f64());
    let rate = count as f64 * 60.0 / seconds;
    println!("{count} worlds, {events} events in {seconds:.1} s: {rate:.0} worlds a minute");
    let Totals { vmstat, largest, longest, without_memory } =
        totals.into_inner().expect("no thread panics with the lock");
    println!("largest: {} events in world {}; longest call: {longest:?}", largest.0, largest.1);
    assert!(without_memory * 20 < count, "{without_memory} of {count} worlds end without memory");
    let missing: Vec<&str> =
        MARKS.into_iter().filter(|&mark| vmstat.get(mark).is_none_or(|&n| n == 0)).collect();
    assert!(count < WORLDS || missing.is_empty(), "never: {missing:?}");
}

#[test]
fn worlds_draw_every_version_and_every_answer_to_every_decision() {
    let kernels: Vec<mm::Version> = (0..WORLDS).map(world::draw_kernel).collect();
    let versions: BTreeSet<&str> = kernels.iter().map(|kernel| kernel.base).collect();
    assert_eq!(versions, mm::Version::presets().map(|(name, _)| name).collect());
    for &rule in Rule::ALL {
        let with = kernels.iter().filter(|kernel| kernel.rules.has(rule)).count();
        assert!(0 < with && with < kernels.len(), "{rule:?} holds in {with} of {}", kernels.len());
    }
}

/// Rounds with a pause after each never end by themselves for small blocks: every such request must find
/// pages, or somebody to kill for them.
#[test]
fn worlds_of_2_6_32_go_on_whatever_its_requests_wait_for() {
    let kernels = ["", "+pressure-wait", "+wait-iff-congested", "+drain-after-failed-reclaim"];
    let mut totals = Totals::default();
    for (seed, change) in (10_000..10_128).zip(kernels.into_iter().cycle()) {
        let kernel = mm::Version::parse(&format!("linux-2.6.32{change}")).expect("a kernel");
        let world = World::draw(seed).under(kernel);
        let digest = check_world(seed, &world);
        totals.add(seed, digest);
    }
    let count = |name| totals.vmstat.get(name).copied().unwrap_or(0);
    let (entries, kills) = (count("perf_count_pages_direct_reclaim"), count("oom_kill"));
    assert!(entries > 10 && kills > 0, "{entries} reclaim themselves, {kills} kills");
    assert!(totals.without_memory < 4, "{} worlds end without memory", totals.without_memory);
}
