//! The program itself at limits that the model chose: in a memory cgroup, cold, as often as its length allows.
//!
//! Runs begin at what the model recommends and end where neighbours tell apart what is enough ([`super::bracket`]).
//! What they say takes the place of the model's recommendation; the model is run at the same limits, so that both
//! stand side by side. Times are medians of several runs: three of a program that takes less than ten seconds, two of
//! one that takes less than a minute. A single kill, another exit status than without a limit, or [`TIMES`] its time
//! is a failure.
//!
//! Left out: what a program does to files between two runs, which is its own business; other programs on the host.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use linux::LinuxError;
use linux::limited::{Limited, LimitedEnd, LimitedRun, Room, by_shell};
use recording::{OomKill, Recording};
use report::{Advice, CheckedPoint, Ended, ProgramCheck, Spread};
use units::Bytes;
use workload::limits::GROUP;

use super::bracket::{Bracket, next};
use super::control::SizeProgress;
use super::curve::rounded_up;
use super::measured::Target;
use super::runs::Source;
use super::search::Search;
use crate::error::LabError;
use crate::resolve::texts::shell_quoted;

/// A run that takes so many times the time without a limit, and [`MORE`], is ended.
const TIMES: u32 = 4;
const MORE: Duration = Duration::from_secs(5);
/// Limits go up to so many times what it holds without one: a heap may size itself by its limit.
const BEYOND: f64 = 4.0;
/// Less than this, charged elsewhere, is not told.
const TOLD: u64 = 1 << 20;
/// Without a limit it may take so long.
const LONGEST: Duration = Duration::from_secs(24 * 3600);
/// What a target on the program itself can be about.
const MEASURED: [&str; 3] = ["replay_seconds", "in_requests_seconds", "refaults"];

/// Runs at one limit, and what is made of them.
struct Ran {
    limit: Bytes,
    runs: Vec<Limited>,
    keeps: bool,
}

/// All runs of a check.
struct All {
    place: &'static str,
    repeats: usize,
    base: Vec<Limited>,
    ran: Vec<Ran>,
}

/// What all runs share.
struct Bench<'a> {
    room: Room,
    command: Vec<OsString>,
    cold: Vec<PathBuf>,
    target: Target,
    base: Vec<Limited>,
    repeats: usize,
    search: &'a Search<'a>,
}

impl Search<'_> {
    /// Runs the program, and puts what is enough for it in place of what the model recommends.
    ///
    /// # Errors
    /// The model cannot be run at a limit; it was stopped during the runs without a limit. What else keeps the program
    /// from being checked is told once all that was found is shown.
    pub(super) fn check_by_program(&mut self) -> Result<(), LabError> {
        let start = self.advice.as_ref().map_or(self.held, |advice| Bytes(advice.high));
        let Some((shown, command)) = self.command_of_program() else {
            let message = "the trace does not name a command that can be run again";
            self.not_checked(LabError::refused(message, "name it after `--`"));
            return Ok(());
        };
        let begun = Bench::begin(self, command);
        let All { place, repeats, base, mut ran } = match begun.and_then(|bench| bench.all(start)) {
            Ok(found) => found,
            Err(LabError::Interrupted { .. }) => {
                self.stopped = true;
                return Ok(());
            }
            Err(error) => {
                self.not_checked(error);
                return Ok(());
            }
        };
        ran.sort_by_key(|ran| ran.limit);
        self.not_verified.extend(self.charged_elsewhere());
        let limits: Vec<Bytes> = ran.iter().map(|ran| ran.limit).collect();
        self.add(&limits)?;
        let Bracket { enough, too_small } = Bracket::of(&kept(&ran));
        let points = ran.iter().map(|ran| self.checked(ran, &base)).collect::<Result<_, _>>()?;
        let model = self.advice.take();
        self.advice = enough.map(|enough| self.advised(enough, too_small, model.as_ref()));
        self.program = Some(ProgramCheck {
            command: shown,
            place: place.to_owned(),
            base: point(None, &base, true),
            repeats,
            points,
            model: model.map(|advice| advice.high),
        });
        Ok(())
    }

    /// The program was to be run and was not: that stands in the result, and is an error once that is shown.
    fn not_checked(&mut self, error: LabError) {
        let hint = error.hint();
        let told = hint.as_ref().map_or_else(String::new, |hint| format!("; {hint}"));
        self.not_verified.push(format!("Not checked with the program itself: {error}{told}."));
        let message = format!("not checked with the program itself: {error}");
        self.not_checked = Some(LabError::Refused { message, hint });
    }

    /// The command that was named, or that of the trace, for a reader and for a run.
    fn command_of_program(&self) -> Option<(String, Vec<OsString>)> {
        let named = &self.field.plan.program;
        if !named.is_empty() {
            let words = named.iter().map(|word| shell_quoted(&word.to_string_lossy()));
            return Some((words.collect::<Vec<_>>().join(" "), named.clone()));
        }
        let Source::Program { trace, .. } = &self.field.source else { return None };
        (trace.source == trace::CAPTURED).then(|| (trace.command.clone(), by_shell(&trace.command)))
    }

    /// Files whose pages leave the cache before each run.
    fn files(&self) -> Vec<PathBuf> {
        let Source::Program { trace, .. } = &self.field.source else { return Vec::new() };
        trace.files.iter().filter(|file| !file.in_memory).map(|file| PathBuf::from(&file.path)).collect()
    }

    /// What the program would be charged for, too, if it were the first to look at its files.
    fn charged_elsewhere(&self) -> Option<String> {
        let slab = |run: &Recording| run.memcg.get(GROUP)?.get("slab_reclaimable").copied();
        let bytes = self.base.iter().filter_map(slab).max().unwrap_or(0);
        (!self.field.plan.allow_host_pressure && bytes >= TOLD).then(|| {
            format!(
                "Inodes and dentries that were in memory before a run are charged to whoever brought them. Where the \
                 program is the first to look at its files, it needs up to {:.1} MiB more than was checked: `--allow-host-pressure` \
                 checks that, by dropping those of the whole host before each run.",
                bytes as f64 / f64::from(1 << 20)
            )
        })
    }

    /// Beside what the model says of the same limit.
    fn checked(&self, ran: &Ran, base: &[Limited]) -> Result<CheckedPoint, LabError> {
        let mut checked = point(Some(ran.limit), &ran.runs, ran.keeps);
        checked.slowdown = slowdown(&ran.runs, base);
        if let Some(model) = self.limited.get(&ran.limit) {
            let model = super::measured::point(Some(ran.limit), &self.base, model, &self.target)?;
            checked.predicted = model.slowdown.map(|slowdown| slowdown.mean);
            checked.predicted_killed = model.killed > 0;
        }
        Ok(checked)
    }

    /// What to set by the runs of the program. `memory.low` moves as `memory.high` does.
    fn advised(&self, enough: Bytes, too_small: Option<Bytes>, model: Option<&Advice>) -> Advice {
        let headroom = self.field.plan.headroom;
        let factor = model.map_or(1.0, |model| enough.get() as f64 / model.high as f64);
        let low = model.map_or(enough, |model| rounded_up(model.low as f64 * factor).min(enough));
        Advice {
            high: enough.get(),
            max: rounded_up(enough.get() as f64 * (1.0 + headroom / 100.0)).get(),
            low: low.get(),
            too_small: too_small.map(Bytes::get),
            headroom,
            run_as_set: None,
            low_is_knee: model.is_some_and(|model| model.low_is_knee),
        }
    }
}

impl<'a> Bench<'a> {
    /// Makes a place, and runs the program there without a limit.
    fn begin(search: &'a Search<'a>, command: Vec<OsString>) -> Result<Self, LabError> {
        let mut target = search.target.clone();
        target.limits.retain(|limit| MEASURED.contains(&limit.name.as_str()));
        if target.limits.is_empty() {
            let message = "the target is about nothing that a program's run tells";
            return Err(LabError::refused(
                message,
                "it tells `replay_seconds` and `refaults`; `--slowdown 5%` is one",
            ));
        }
        let room = Room::make().map_err(refused)?;
        let cold = search.files();
        let mut bench = Self { room, command, cold, target, base: Vec::new(), repeats: 1, search };
        let first = bench.once(None, LONGEST)?;
        if matches!(first.end, LimitedEnd::Exited(126 | 127)) {
            let message = format!("the command cannot be run here: {}", said_of(&first.output));
            return Err(LabError::refused(
                message,
                "go where it was captured, or name the command after `--`",
            ));
        }
        bench.repeats = repeats(first.wall);
        bench.base.push(first);
        while bench.base.len() < bench.repeats {
            let run = bench.once(None, LONGEST)?;
            bench.base.push(run);
        }
        Ok(bench)
    }

    /// All limits that tell something, or that were named; those that had finished where it was stopped.
    fn all(mut self, start: Bytes) -> Result<All, LabError> {
        let most = self.base.iter().map(|run| run.peak).max().unwrap_or_default();
        let most = rounded_up(most.get() as f64 * BEYOND);
        let named = self.search.field.plan.limits.as_deref();
        let mut ran: Vec<Ran> = Vec::new();
        while let Some(limit) = match named {
            Some(named) => named.get(ran.len()).copied(),
            None => next(start, most, &kept(&ran)),
        } {
            match self.at(limit) {
                Ok(at) => ran.push(at),
                Err(LabError::Interrupted { .. }) if !ran.is_empty() => break,
                Err(error) => return Err(error),
            }
        }
        Ok(All { place: self.room.told(), repeats: self.repeats, base: self.base, ran })
    }

    /// Runs one limit until it is clear: at once where it is killed, else as often as at first without a limit. Where
    /// it is too slow, as often without a limit, too: other work on the host may be what slows it down.
    fn at(&mut self, limit: Bytes) -> Result<Ran, LabError> {
        let longest = self.base.iter().map(|run| run.wall).max().unwrap_or_default();
        let mut runs = Vec::new();
        let mut lives = true;
        while lives && runs.len() < self.repeats {
            let run = self.once(Some(limit), longest * TIMES + MORE)?;
            lives = run.oom_kills == 0 && run.end == self.base[0].end;
            runs.push(run);
        }
        let mut keeps = lives && self.is_kept(&runs)?;
        if lives && !keeps {
            let now = self.without_limit()?;
            keeps =
                self.target.is_kept(&[as_recording("no limit", &now)], &[as_recording("limit", &runs)])?;
            self.base.extend(now);
        }
        Ok(Ran { limit, runs, keeps })
    }

    fn without_limit(&self) -> Result<Vec<Limited>, LabError> {
        (0..self.repeats).map(|_| self.once(None, LONGEST)).collect()
    }

    fn is_kept(&self, runs: &[Limited]) -> Result<bool, LabError> {
        self.target.is_kept(&[as_recording("no limit", &self.base)], &[as_recording("limit", runs)])
    }

    fn once(&self, limit: Option<Bytes>, patience: Duration) -> Result<Limited, LabError> {
        let control = self.search.field.control;
        let without_inodes = self.search.field.plan.allow_host_pressure;
        let run = LimitedRun { command: &self.command, limit, cold: &self.cold, without_inodes, patience };
        (control.observer)(SizeProgress::Checks { limit });
        self.room.run(&run, &control.stop).map_err(refused)
    }
}

fn refused(error: LinuxError) -> LabError {
    match error {
        LinuxError::Stopped => LabError::Interrupted { finished: 0, total: 1 },
        error => LabError::Refused { message: error.to_string(), hint: error.hint() },
    }
}

/// How often a program is run that takes so long.
fn repeats(wall: Duration) -> usize {
    match wall.as_secs() {
        0..10 => 3,
        10..60 => 2,
        _ => 1,
    }
}

fn kept(ran: &[Ran]) -> Vec<(Bytes, bool)> {
    ran.iter().map(|ran| (ran.limit, ran.keeps)).collect()
}

/// The median of runs, with the names that the model's runs have.
fn as_recording(label: &str, runs: &[Limited]) -> Recording {
    let mut recording = Recording::new(label.to_owned(), "program", "host", "", 1);
    let seconds = median(runs, |run| run.wall.as_secs_f64());
    let refaults = median(runs, |run| run.refaults as f64);
    recording.metrics = MEASURED.map(str::to_owned).into_iter().zip([seconds, seconds, refaults]).collect();
    let killed = runs.iter().map(|run| run.oom_kills).sum::<u64>();
    recording.oom_kills = (0..killed).map(|_| OomKill::default()).collect();
    recording
}

fn median(runs: &[Limited], value: impl Fn(&Limited) -> f64) -> f64 {
    stats::describe::median(&runs.iter().map(value).collect::<Vec<_>>()).unwrap_or(0.0)
}

/// Percent by which the median is above that without a limit; none where it was cut short.
fn slowdown(runs: &[Limited], base: &[Limited]) -> Option<f64> {
    let whole = runs.iter().all(|run| run.oom_kills == 0 && run.end == base[0].end);
    let seconds = |runs: &[Limited]| median(runs, |run| run.wall.as_secs_f64());
    whole.then(|| 100.0 * (seconds(runs) / seconds(base).max(1e-9) - 1.0))
}

fn point(limit: Option<Bytes>, runs: &[Limited], keeps: bool) -> CheckedPoint {
    let most = |value: fn(&Limited) -> Bytes| runs.iter().map(value).max().unwrap_or_default().get();
    let ended = runs.iter().find_map(|run| match run.end {
        LimitedEnd::Exited(0) => None,
        LimitedEnd::Exited(status) => Some(Ended::Status(status)),
        LimitedEnd::TooLong => Some(Ended::TooLong(run.wall.as_secs_f64())),
    });
    CheckedPoint {
        limit: limit.map(Bytes::get),
        seconds: Spread::of(runs.iter().map(|run| run.wall.as_secs_f64())),
        runs: runs.len(),
        slowdown: None,
        predicted: None,
        predicted_killed: false,
        refaults: median(runs, |run| run.refaults as f64),
        major_faults: median(runs, |run| run.major_faults as f64),
        peak: most(|run| run.peak),
        anon_peak: most(|run| run.anon_peak),
        killed: runs.iter().filter(|run| run.oom_kills > 0).count(),
        ended,
        keeps,
    }
}

/// What the shell that was to become the command said last, without where it stands itself.
fn said_of(text: &str) -> &str {
    let last = text.lines().last().unwrap_or("it says nothing");
    last.split_once("exec: ").map_or(last, |(_, said)| said)
}
