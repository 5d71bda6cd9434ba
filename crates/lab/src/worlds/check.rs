//! Worlds of the model alone, checked all along: panics, broken invariants, runs that do not end.
//!
//! # Theory of operation
//! Machines are small (8 to 64 MiB), of any kernel. All invariants of machine and memory are checked while a world
//! runs: after each of its first events, then each time that the run has grown by one part in so many: [`CLOSELY`] of
//! them where it has up to [`SMALLEST`] of memory and its seed is a multiple of 8, which is mostly every event of it,
//! [`SPREAD`] in the others. What is broken stays so, so that a later check finds it. A world that takes [`EVENTS_MAX`]
//! events, [`WALL_MAX`] of a clock, or gets nowhere (`patience.rs` of `sim`) has not ended. A world that lacks memory
//! for Linux, too, is none that is wrong: it is refused, killed, or stands still where nothing is left to reclaim.
//!
//! What is wrong is made smaller at once, and told as one command; `--check` of that looks after every event. Left out:
//! two runs that differ, which `cargo xtask determinism` and the worlds of `pagetide-sim` look for.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use report::{BrokenWorld, CheckedWorlds};
use sim::run::{Checks, SimError, Watch, run_watched};
use sim::{Progress, RunError};
use units::{Bytes, parse_size};
use workload::{Errno, Scenario, SystemError, WorkloadError};

use super::draw::{self, Drawn, Space};
use super::judge::first_line;
use super::run::{WorldDone, WorldsControl, in_order};
use super::smaller::{Smaller, smaller};
use super::{Side, WorldsError, WorldsPlan, WorldsRequest};
use crate::error::LabError;
use crate::resolve::command::command;
use crate::resolve::texts::kernel_named;
use crate::run::simulate::{panic_message, plan};

/// Memory up to which some worlds are looked at closely.
const SMALLEST: Bytes = Bytes(12 << 20);
/// How closely these are.
const CLOSELY: u64 = 4_000;
/// How closely the others are.
const SPREAD: u64 = 64;
/// Events that no small world takes.
const EVENTS_MAX: u64 = 40_000_000;
/// Time on a clock that none takes.
const WALL_MAX: Duration = Duration::from_secs(180);
/// How much longer somebody waits for a run that does not even look up.
const GRACE: Duration = Duration::from_secs(30);
/// How often somebody looks whether a run shall stop.
const LOOK: Duration = Duration::from_millis(100);
/// Time that is spent to make one world smaller.
const SHRINK_MAX: Duration = Duration::from_secs(60);
/// Worlds that are made smaller: more of them have the same few causes.
const SHRUNK_MAX: usize = 8;
/// The name of the threads that worlds run in.
pub const WORLD_THREAD: &str = "world";

/// What can be wrong with a world.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Broken,
    Endless,
    Failed,
}

impl Kind {
    const fn told(self) -> &'static str {
        match self {
            Self::Broken => "broken",
            Self::Endless => "endless",
            Self::Failed => "failed",
        }
    }
}

/// How a checked run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    /// As it should: done, killed, or not possible.
    Fine(&'static str),
    /// It did not.
    Wrong(Kind, String),
    /// Somebody stopped it.
    Stopped,
}

impl WorldsRequest {
    /// Checks what was asked for of worlds of the model alone.
    ///
    /// # Errors
    /// As [`WorldsRequest::plan`]; a real kernel, or a second one.
    pub fn check_plan(&self) -> Result<CheckPlan, LabError> {
        if let Some(backend) = self.backend.as_deref().filter(|backend| *backend != "sim") {
            return Err(WorldsError::CheckOn(backend.to_owned()).into());
        }
        if self.against.is_some() {
            return Err(WorldsError::CheckAgainst.into());
        }
        let kernel =
            self.kernel.as_deref().map(|name| kernel_named(name, &Default::default())).transpose()?;
        let kernel = kernel.map(|kernel| kernel.to_string());
        Ok(CheckPlan { worlds: self.plan()?, kernel })
    }
}

/// Worlds of the model alone that can be checked.
#[derive(Debug, Clone)]
pub struct CheckPlan {
    worlds: WorldsPlan,
    /// The kernel of all of them, if one was named.
    kernel: Option<String>,
}

/// What has been found so far.
#[derive(Default)]
struct Found {
    checked: CheckedWorlds,
    shrunk: usize,
}

impl CheckPlan {
    /// How many worlds were asked for.
    pub fn count(&self) -> usize {
        self.worlds.count()
    }

    /// The commands of all worlds.
    pub fn commands(&self) -> String {
        let line = |seed: u64| match self.world(seed) {
            Some((_, scenario)) => format!("{}\n", command_of(&scenario)),
            None => format!("# {seed}: refused\n"),
        };
        self.worlds.seeds.clone().map(line).collect()
    }

    /// Runs all worlds, and says what is wrong with which.
    ///
    /// # Errors
    /// No threads can be started.
    pub fn run(&self, control: &WorldsControl) -> Result<(CheckedWorlds, Option<LabError>), LabError> {
        let (done, total, begin) = (AtomicUsize::new(0), self.count(), Instant::now());
        let is_over = || {
            control.stop.load(Ordering::Relaxed)
                || self.worlds.time.is_some_and(|time| begin.elapsed() >= time)
        };
        let found = Mutex::new(Found::default());
        let seeds: Vec<u64> = self.worlds.seeds.clone().collect();
        in_order(&seeds, control.jobs, |&seed| {
            if is_over() {
                return Ok(());
            }
            let begin = Instant::now();
            let (workload, verdict, world) = self.check(seed, &control.stop);
            let told = match &verdict {
                Verdict::Stopped => return Ok(()),
                Verdict::Fine(how) => (*how).to_owned(),
                Verdict::Wrong(kind, text) => format!("{}: {}", kind.told(), first_line(text)),
            };
            let done = done.fetch_add(1, Ordering::Relaxed) + 1;
            let is_wrong = matches!(verdict, Verdict::Wrong(..));
            let seconds = begin.elapsed().as_secs_f64();
            let world_done = WorldDone { done, total, seed, workload, told: &told, seconds, is_wrong };
            (control.observer)(world_done);
            let run = |scenario: &Scenario| checked(scenario, Checks::Spread(SPREAD), &control.stop);
            self.note(&found, seed, verdict, world, &run);
            Ok(())
        })?;
        let Found { mut checked, .. } = found.into_inner().unwrap_or_else(PoisonError::into_inner);
        checked.broken.sort_by_key(|world| world.seed);
        let finished = done.into_inner();
        let stopped = control.stop.load(Ordering::Relaxed) && finished < total;
        let interrupted = stopped.then(|| WorldsError::CheckInterrupted { finished, total }.into());
        let failed = checked.broken.len();
        let wrong = (failed > 0).then(|| WorldsError::Broken { failed, total: finished }.into());
        Ok((checked, wrong.or(interrupted)))
    }

    /// Adds what a world came to; one that is wrong is made smaller first, by running others.
    fn note(
        &self,
        found: &Mutex<Found>,
        seed: u64,
        verdict: Verdict,
        world: Option<(Drawn, Scenario)>,
        run: &dyn Fn(&Scenario) -> Verdict,
    ) {
        let locked = || found.lock().unwrap_or_else(PoisonError::into_inner);
        match (verdict, world) {
            (Verdict::Wrong(kind, text), Some(world)) => {
                let shrinks = {
                    let mut found = locked();
                    found.shrunk += 1;
                    found.shrunk <= SHRUNK_MAX
                };
                let broken = self.broken(seed, world, (kind, text), shrinks.then_some(run));
                locked().checked.broken.push(broken);
            }
            (Verdict::Fine(how), _) => *locked().checked.ended.entry(how).or_default() += 1,
            _ => {}
        }
    }

    /// A world that is wrong, and the smallest one that is in the same way, if others are to be run for that.
    fn broken(
        &self,
        seed: u64,
        (drawn, scenario): (Drawn, Scenario),
        (kind, text): (Kind, String),
        run: Option<&dyn Fn(&Scenario) -> Verdict>,
    ) -> BrokenWorld {
        let command = command_of(&scenario);
        let smallest = run.map(|run| self.shrunk(drawn, kind, &text, run));
        let smaller = smallest.as_ref().and_then(|smallest| self.scenario(&smallest.drawn).ok());
        BrokenWorld {
            seed,
            workload: scenario.workload.name().to_owned(),
            kernel: scenario.kernel.as_ref().map(ToString::to_string).unwrap_or_default(),
            what: kind.told(),
            text,
            smaller: smaller.map(|scenario| command_of(&scenario)).filter(|smaller| *smaller != command),
            command,
            tried: smallest.map_or(0, |smallest| smallest.tried),
        }
    }

    /// The smallest world that is found to be wrong in the same way.
    fn shrunk(&self, drawn: Drawn, kind: Kind, text: &str, run: &dyn Fn(&Scenario) -> Verdict) -> Smaller {
        let begin = Instant::now();
        smaller(drawn, |other| {
            if begin.elapsed() > SHRINK_MAX {
                return None;
            }
            let Ok(scenario) = self.scenario(other) else { return Some(false) };
            match run(&scenario) {
                Verdict::Stopped => None,
                Verdict::Fine(_) => Some(false),
                Verdict::Wrong(now, told) => Some(now == kind && is_same(&told, text)),
            }
        })
    }

    /// Its workload, how it ended, and what it is, if it could be.
    fn check(&self, seed: u64, stop: &Arc<AtomicBool>) -> (&'static str, Verdict, Option<(Drawn, Scenario)>) {
        let Some((drawn, scenario)) = self.world(seed) else { return ("-", Verdict::Fine("refused"), None) };
        let is_small = parse_size(&drawn.mem).is_ok_and(|mem| mem <= SMALLEST);
        let closely = is_small && seed.is_multiple_of(8);
        let checks = Checks::Spread(if closely { CLOSELY } else { SPREAD });
        (drawn.workload, checked(&scenario, checks, stop), Some((drawn, scenario)))
    }

    /// The world of this seed, drawn anew until it can run.
    fn world(&self, seed: u64) -> Option<(Drawn, Scenario)> {
        (0..draw::ATTEMPTS).find_map(|attempt| {
            let mut drawn = draw::draw_from(Space::Small, seed, &self.worlds.workloads, attempt);
            drawn.kernel = self.kernel.clone().or(drawn.kernel);
            let scenario = self.scenario(&drawn).ok()?;
            // What cannot be built shows only here.
            plan(&scenario, "world").ok()?;
            Some((drawn, scenario))
        })
    }

    fn scenario(&self, drawn: &Drawn) -> Result<Scenario, LabError> {
        Side::of_model(String::new(), None).scenario(drawn)
    }
}

/// The command that shows it again.
fn command_of(scenario: &Scenario) -> String {
    format!("{} --check", command(scenario))
}

/// Whether two texts say the same but for numbers.
fn is_same(one: &str, other: &str) -> bool {
    let plain = |text: &str| first_line(text).chars().filter(|c| !c.is_ascii_digit()).collect::<String>();
    // Of an endless run only the beginning tells: who waits differs.
    let [one, other] = [one, other].map(|text| plain(text).chars().take(24).collect::<String>());
    one == other
}

/// Runs it in a thread of its own, so that one that does not even look up can be left behind.
pub(super) fn checked(scenario: &Scenario, checks: Checks, stop: &Arc<AtomicBool>) -> Verdict {
    let own = Arc::new(AtomicBool::new(false));
    let (sender, over) = channel();
    let begin = Instant::now();
    let thread = {
        let (scenario, own) = (scenario.clone(), Arc::clone(&own));
        std::thread::Builder::new().name(WORLD_THREAD.to_owned()).spawn(move || {
            // Who waited too long is gone.
            let _ = sender.send(run(&scenario, checks, &own));
        })
    };
    let thread = match thread {
        Ok(thread) => thread,
        Err(error) => return Verdict::Wrong(Kind::Failed, format!("no thread for it: {error}")),
    };
    loop {
        match over.recv_timeout(LOOK) {
            Ok(Verdict::Stopped) if begin.elapsed() > WALL_MAX => {
                return Verdict::Wrong(Kind::Endless, format!("not done after {} s", WALL_MAX.as_secs()));
            }
            Ok(verdict) => {
                let _ = thread.join(); // Panics are caught.
                return verdict;
            }
            Err(RecvTimeoutError::Disconnected) => {
                return Verdict::Wrong(Kind::Failed, "its thread has ended without a word".to_owned());
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
        let is_late = begin.elapsed() > WALL_MAX;
        own.fetch_or(is_late || stop.load(Ordering::Relaxed), Ordering::Relaxed);
        if begin.elapsed() > WALL_MAX + GRACE {
            return Verdict::Wrong(Kind::Endless, "it does not come to its next event".to_owned());
        }
    }
}

fn run(scenario: &Scenario, checks: Checks, stop: &Arc<AtomicBool>) -> Verdict {
    let Ok((spec, _)) = plan(scenario, "world") else { return Verdict::Fine("refused") };
    let watch = Watch { checks, events_max: Some(EVENTS_MAX), ..Watch::default() };
    let ended =
        catch_unwind(AssertUnwindSafe(|| run_watched(&spec, Arc::clone(stop), |_: Progress| {}, watch)));
    match ended {
        Err(panic) => Verdict::Wrong(Kind::Broken, panic_message(panic.as_ref())),
        Ok(Ok(result)) if result.oom_kills.is_empty() => Verdict::Fine("done"),
        Ok(Ok(_)) => Verdict::Fine("killed"),
        Ok(Err(error)) => verdict(&error),
    }
}

fn verdict(error: &SimError) -> Verdict {
    let lacks = |errno: Errno| matches!(errno, Errno::NoMem | Errno::Killed | Errno::NoSpc);
    match error {
        SimError::Hardware(_) | SimError::Boot(_) | SimError::Policy(_) => Verdict::Fine("refused"),
        SimError::Workload(WorkloadError::System(SystemError { errno, .. })) if lacks(*errno) => {
            Verdict::Fine("failed for lack of room")
        }
        SimError::Run(RunError::Stopped { .. }) => Verdict::Stopped,
        SimError::Run(RunError::Halted { .. }) => Verdict::Fine("killed"),
        SimError::Run(RunError::NoProgress { hope: false, .. }) => {
            Verdict::Fine("stood still as Linux would")
        }
        SimError::Workload(WorkloadError::PinsTooMuch { .. } | WorkloadError::TooFewDisks { .. }) => {
            Verdict::Fine("refused")
        }
        SimError::Workload(_) => Verdict::Wrong(Kind::Failed, error.to_string()),
        SimError::Violation(_) => Verdict::Wrong(Kind::Broken, error.to_string()),
        SimError::Run(_) => Verdict::Wrong(Kind::Endless, error.to_string()),
    }
}

#[cfg(test)]
impl CheckPlan {
    /// The first world of a seed that is so.
    pub(super) fn one_where(&self, is_so: impl Fn(&Drawn) -> bool) -> u64 {
        let is_so = |seed: &u64| self.world(*seed).is_some_and(|(drawn, _)| is_so(&drawn));
        (1..1000).find(is_so).expect("a thousand worlds have all there is")
    }

    /// The world of this seed as it is told where `run` is what runs it.
    pub(super) fn broken_by(&self, seed: u64, run: &dyn Fn(&Scenario) -> Verdict) -> Option<BrokenWorld> {
        let (drawn, scenario) = self.world(seed)?;
        match run(&scenario) {
            Verdict::Wrong(kind, text) => Some(self.broken(seed, (drawn, scenario), (kind, text), Some(run))),
            _ => None,
        }
    }
}
