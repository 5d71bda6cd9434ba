//! One scenario on the simulated machine, and what it leaves as a recording.
//!
//! Left out: the model (`pagetide-sim` and below). The wall time is the only number here that
//! differs between two runs, and it is not written to disk.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use kernel::{Filesystem, WaitReason};
use mm::base::event::Detail;
use recording::events::{Chunk, Event, Names};
use recording::{OomKill, Recording, Series, Stall};
use sim::run::{Program, SimError, SimResult, SimRun, Watch};
use sim::trace::{EventNames, EventRow};
use sim::{Progress, RunError, WaitKind};
use units::{Nanos, Seed};
use workload::Scenario;

use crate::error::{FailedAssertion, LabError};
use crate::resolve::command::kept_command;
use crate::resolve::program::with_trace;
use crate::resolve::setting::{Setting, filesystem};
use crate::run::at_kill::with_kill;
use crate::run::balance::with_balance;
use crate::run::clock::Clock;
use crate::run::counted::{phases, since};
use crate::run::events::Translator;
use crate::run::waited::{section, wait, with_waits};

/// Runs `scenario` and returns its recording, labelled `label`. `stop` ends it early.
///
/// # Errors
/// The workload fails, but not when the OOM killer takes its tasks: that is a result; a mechanism's
/// invariant is violated;
/// [`LabError::Interrupted`] when `stop` was set.
pub fn simulate(
    scenario: &Scenario,
    label: &str,
    stop: &Arc<AtomicBool>,
    progress: impl FnMut(Progress) + 'static,
) -> Result<Recording, LabError> {
    simulate_watched(scenario, label, stop, progress, Watch::default())
}

/// As [`simulate`], and hands out what is wanted while the run goes.
///
/// # Errors
/// As [`simulate`].
pub(crate) fn simulate_watched(
    scenario: &Scenario,
    label: &str,
    stop: &Arc<AtomicBool>,
    progress: impl FnMut(Progress) + 'static,
    wanted: Watch,
) -> Result<Recording, LabError> {
    let (spec, identity) = plan(scenario, label)?;
    run_watched(&spec, identity, stop, progress, wanted)
}

/// As [`simulate`], and hands events of this detail to `sink`, chunk by chunk, with their names so far. The
/// recording is the same as without.
///
/// # Errors
/// As [`simulate`].
pub fn simulate_with_events(
    scenario: &Scenario,
    label: &str,
    stop: &Arc<AtomicBool>,
    progress: impl FnMut(Progress) + 'static,
    detail: Detail,
    sink: impl FnMut(&Names, &Chunk) + 'static,
) -> Result<Recording, LabError> {
    let wanted = Watch { events: Some(translated(detail, sink)), ..Watch::default() };
    simulate_watched(scenario, label, stop, progress, wanted)
}

/// Runs a scenario on the simulator with its events in memory.
///
/// # Errors
/// As [`simulate`].
pub fn events_of(scenario: &Scenario, detail: Detail) -> Result<(Recording, Names, Vec<Event>), LabError> {
    let kept = Rc::new(RefCell::new((Names::default(), Vec::new())));
    let sink = {
        let kept = Rc::clone(&kept);
        move |names: &Names, chunk: &Chunk| {
            let (kept_names, events) = &mut *kept.borrow_mut();
            // Names are only ever added.
            let known = kept_names.texts().len();
            names.texts().skip(known).for_each(|text| {
                kept_names.intern(text);
            });
            events.extend_from_slice(&chunk.events);
        }
    };
    let stop = Arc::new(AtomicBool::new(false));
    let recording = simulate_with_events(scenario, "events", &stop, |_| {}, detail, sink)?;
    let (names, events) = kept.take();
    Ok((recording, names, events))
}

/// What is run for a scenario, and what of its recording is known before.
pub(crate) fn plan(scenario: &Scenario, label: &str) -> Result<(SimRun, Recording), LabError> {
    let scenario = &*with_trace(scenario)?;
    let program = Program::Workload(scenario.workload.clone());
    let setting = Setting::of(scenario)?;
    let notes = setting.notes.clone();
    let spec = sim_run(program, setting, filesystem(scenario), scenario.seed.0, scenario.interval);
    let identity = Recording {
        scenario_toml: scenario.to_toml(),
        machine: machine(scenario),
        command: kept_command(scenario),
        notes,
        ..Recording::new(
            label,
            scenario.workload.name(),
            scenario.backend.to_string(),
            scenario.kernel.as_ref().map(ToString::to_string).unwrap_or_default(),
            scenario.seed.0,
        )
    };
    Ok((spec, identity))
}

/// What a scenario runs on, in a few words.
pub(crate) fn machine(scenario: &Scenario) -> String {
    let mem = scenario.mem.map(|mem| format!("{mem} of memory"));
    let cpus = scenario.guest.map(|guest| format!("{} CPUs", guest.cpus));
    let swap = scenario.swap.as_ref().filter(|swap| !swap.is_none()).map(|swap| format!("swap {swap}"));
    scenario.machine.iter().cloned().chain(cpus).chain(mem).chain(swap).collect::<Vec<_>>().join(", ")
}

/// The simulator's view of a run.
pub(crate) fn sim_run(
    program: Program,
    setting: Setting,
    filesystem: Filesystem,
    seed: u64,
    interval: Option<Nanos>,
) -> SimRun {
    let Setting { kernel, policy, sysctls, hardware, layout, swap, notes: _ } = setting;
    let spec = SimRun::new(program, kernel, hardware, layout);
    let sample_period = interval.unwrap_or(spec.sample_period);
    let policy = policy.map(|policy| policy.make(Seed(seed)));
    SimRun { policy, sysctls, swap, filesystem, seed, sample_period, ..spec }
}

/// Runs `spec`, completes `identity` with what it leaves, and hands out what is wanted while the run goes.
pub(crate) fn run_watched(
    spec: &SimRun,
    identity: Recording,
    stop: &Arc<AtomicBool>,
    progress: impl FnMut(Progress) + 'static,
    wanted: Watch,
) -> Result<Recording, LabError> {
    let clock = Clock::begin();
    let run = || sim::run::run_watched(spec, Arc::clone(stop), progress, wanted);
    // A violated assertion ends this run only; others of the batch go on.
    let ended = catch_unwind(AssertUnwindSafe(run));
    completed(identity, ended, clock.took_ns())
}

/// The recording of a run that has ended, or what it ended with.
pub(crate) fn completed(
    identity: Recording,
    ended: std::thread::Result<Result<SimResult, SimError>>,
    wall_ns: Option<u64>,
) -> Result<Recording, LabError> {
    match ended {
        Ok(Ok(result)) => Ok(Recording { wall_ns, ..recorded(identity, result) }),
        Ok(Err(error)) => Err(failure(identity, &error)),
        Err(panic) => Err(violation(identity, panic_message(panic.as_ref()))),
    }
}

/// Events of this detail for `sink`, as those of a recording.
pub(crate) fn translated(
    detail: Detail,
    sink: impl FnMut(&Names, &Chunk) + 'static,
) -> (Detail, sim::trace::Sink) {
    let mut translator = Translator::new(sink);
    (detail, Box::new(move |rows: &[EventRow], names: &EventNames| translator.take(rows, names)))
}

/// Sorts the simulator's errors by whose fault they are.
pub(crate) fn failure(run: Recording, error: &SimError) -> LabError {
    match error {
        SimError::Run(RunError::Stopped { .. }) => LabError::Interrupted { finished: 0, total: 1 },
        SimError::Violation(_) | SimError::Run(RunError::Deadlock { .. }) => {
            violation(run, error.to_string())
        }
        _ => {
            let Recording { label, seed, .. } = run;
            LabError::Run { label, seed, message: error.to_string(), hint: error.hint() }
        }
    }
}

pub(crate) fn violation(run: Recording, message: String) -> LabError {
    let Recording { label, seed, command, .. } = run;
    LabError::Invariant { label, seed, source: FailedAssertion(message), command }
}

pub(crate) fn panic_message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "a panic without text".into())
}

pub(crate) fn recorded(identity: Recording, result: SimResult) -> Recording {
    let rows = result.rows.into_iter().map(|(at, values)| (at.get(), values)).collect();
    let ended = result.phases.into_iter().map(|phase| (phase.name, phase.at.get(), phase.vmstat));
    let recording = Recording {
        metrics: result.outcome.metrics,
        samples: result.outcome.samples,
        vmstat: since(&result.vmstat_before, &result.vmstat),
        memcg: result.memcg,
        phases: phases(result.vmstat_before, ended),
        series: Series::new(result.columns, rows),
        stalls: stalls(result.stalls),
        events: result.events,
        simulated_ns: result.simulated.get(),
        ..identity
    };
    let dirty_inodes =
        result.oom_kills.first().and_then(|kill| kill.gauges.get("nr_xfs_inodes_not_clean").copied());
    let recording = recording.killed(result.oom_kills.into_iter().map(oom_kill).collect());
    let phases = recording.phases_to_the_end();
    let recording = with_kill(with_balance(recording), dirty_inodes);
    let waits = result.waits.into_iter().map(|waits| wait(waits, &phases)).collect();
    let sections = result.sections.into_iter().map(|time| section(time, &phases)).collect();
    with_waits(recording, waits).within(sections)
}

fn oom_kill(kill: kernel::OomKill) -> OomKill {
    let kernel::OomKill { at, task, cgroup, by_limit, anon_pages, panicked, memory, why, gauges } = kill;
    let anon_pages = (!panicked).then_some(anon_pages);
    OomKill { at_ns: at.get(), task, cgroup, by_limit, anon_pages, memory, panicked, why, gauges }
}

/// Waits that somebody suffered. Idle kernel threads, and programs that sleep or wait for their
/// own tasks by choice, are no stalls.
fn stalls(stalls: Vec<sim::Stall>) -> Vec<Stall> {
    let suffered = stalls.into_iter().filter(|stall| WaitKind::of(stall.reason) != WaitKind::Idle);
    let stall = |stall: sim::Stall| Stall {
        task: stall.name,
        reason: stall_name(stall.reason).to_owned(),
        count: stall.count,
        total_ns: stall.total.get(),
        max_ns: stall.longest.get(),
    };
    suffered.map(stall).collect()
}

/// What stalls are called, which is not always the function that waits.
fn stall_name(reason: WaitReason) -> &'static str {
    match reason {
        WaitReason::PageRead => "page read",
        WaitReason::PageWriteback => "page writeback",
        WaitReason::RequestQueue => "request queue",
        WaitReason::LogWrite => "log",
        WaitReason::LogSpace => "log space",
        WaitReason::InodeReclaim => "inode reclaim",
        other => sim::kernel_name(other),
    }
}
