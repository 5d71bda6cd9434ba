//! Worlds in parallel, each to its rows; what has ended is kept at once.
//!
//! A run that does not end within [`RUN_MAX`] is stopped and said to have not ended, of guests as of the model: the
//! world is a row that says so, as one that is refused, killed or fails. Left out: threads within a run.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use recording::chunk::{Fact, FactKind};
use recording::worlds::WorldRow;
use recording::{Recording, is_gauge};

use super::folder::WorldsFolder;
use super::judge::{Class, Judged, first_line, judge_all};
use super::{World, WorldsError, WorldsPlan};
use crate::error::LabError;
use crate::plan::sweep::chunk::facts;
use crate::resolve::command::command;
use crate::resolve::planned::PlannedRun;
use crate::run::batch::{self, Control, Ended};
use crate::run::in_time::in_time;
use crate::run::real::{self, HostPolicy};

/// Longer than this no run of a world takes: they are made to take seconds.
pub(super) const RUN_MAX: Duration = Duration::from_secs(120);

/// A world that has ended.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WorldDone<'a> {
    /// How many have, this one included.
    pub done: usize,
    /// How many there are.
    pub total: usize,
    /// Its seed.
    pub seed: u64,
    /// Its workload.
    pub workload: &'a str,
    /// What it came to, in words.
    pub told: &'a str,
    /// Seconds that it took.
    pub seconds: f64,
    /// Whether something is wrong with the model itself.
    pub is_wrong: bool,
}

/// Who watches, and how to stop.
#[derive(Clone)]
pub struct WorldsControl {
    /// Set to end all worlds soon.
    pub stop: Arc<AtomicBool>,
    /// Told of each world that has ended.
    pub observer: Arc<dyn Fn(WorldDone<'_>) + Send + Sync>,
    /// What guests may take of this host.
    pub host: HostPolicy,
    /// Worlds at a time; 0 is one for each CPU.
    pub jobs: usize,
}

/// How a run ended, as the row `outcome` has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum How {
    Done,
    Killed,
    Panicked,
    Failed,
    TooLong,
}

impl How {
    const ALL: [Self; 5] = [Self::Done, Self::Killed, Self::Panicked, Self::Failed, Self::TooLong];

    const fn told(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Killed => "killed",
            Self::Panicked => "panicked",
            Self::Failed => "failed",
            Self::TooLong => "did not end",
        }
    }
}

/// A run that is over.
struct Over {
    how: How,
    /// Why it was not done.
    why: Option<String>,
    facts: Vec<Fact>,
    seconds: f64,
}

/// Worlds that are tried before anything runs, until one could.
const WORLDS_CHECKED: usize = 8;

/// The first error, if there is one and nothing else.
pub(super) fn unless_all_fail<E>(checks: impl Iterator<Item = Result<(), E>>) -> Result<(), E> {
    let mut first = Ok(());
    for check in checks {
        if check.is_ok() {
            return check;
        }
        first = first.and(check);
    }
    first
}

impl WorldsPlan {
    /// Looks whether the real kernel is here, before anything begins, if a world needs it.
    ///
    /// # Errors
    /// It is not, or does not run here.
    pub fn check(&self, policy: &HostPolicy) -> Result<(), LabError> {
        // A world may have too little memory for itself, which its row says; a kernel that is not here runs none.
        let worlds = self.seeds.clone().filter_map(|seed| self.world(seed).ok());
        let worlds = worlds.filter(|world| known_real(world, &self.known).is_none()).take(WORLDS_CHECKED);
        unless_all_fail(worlds.map(|world| real::check(&world.real, policy).map(drop)))
    }

    /// Runs all worlds that are not in the folder yet, and returns the rows of all that are then, with what kept some
    /// from running. The real side of a world that is the same in [`super::WorldsRequest::real_of`] is taken from
    /// there.
    ///
    /// # Errors
    /// The folder cannot be used, or a world not be written.
    pub fn run(
        &self,
        path: &Path,
        control: &WorldsControl,
    ) -> Result<(report::WorldsSummary, Option<LabError>), LabError> {
        let (folder, finished) = WorldsFolder::open(path, &self.text())?;
        let finished: BTreeSet<u64> = finished.iter().map(|row| row.seed).collect();
        let left: Vec<u64> = self.seeds.clone().filter(|seed| !finished.contains(seed)).collect();
        let total = self.count();
        let done = AtomicUsize::new(total - left.len());
        let begin = Instant::now();
        let is_over =
            || control.stop.load(Ordering::Relaxed) || self.time.is_some_and(|time| begin.elapsed() >= time);
        let one = |&seed: &u64| -> Result<(), LabError> {
            if is_over() {
                return Ok(());
            }
            let begin = Instant::now();
            let Some(rows) = self.rows(seed, control) else { return Ok(()) };
            folder.keep(seed, &rows)?;
            let done = done.fetch_add(1, Ordering::Relaxed) + 1;
            let (workload, told) = (rows[0].workload.clone(), told(&rows));
            let seconds = begin.elapsed().as_secs_f64();
            let workload = &*workload;
            (control.observer)(WorldDone {
                done,
                total,
                seed,
                workload,
                told: &told,
                seconds,
                is_wrong: false,
            });
            Ok(())
        };
        let ran = in_order(&left, control.jobs, one);
        let rows = folder.merge()?;
        ran?;
        let finished = done.into_inner();
        let stopped = control.stop.load(Ordering::Relaxed) && finished < total;
        let interrupted = stopped.then(|| WorldsError::Interrupted { finished, total }.into());
        Ok((super::summary::summary(&rows), interrupted))
    }

    /// The rows of one world; none where it was stopped.
    fn rows(&self, seed: u64, control: &WorldsControl) -> Option<Vec<WorldRow>> {
        let kernel = self.kernel_label();
        match self.world(seed) {
            Err(refused) => {
                let (drawn, error) = *refused;
                let row = row_of(&kernel, seed, drawn.workload, "global");
                let why = format!("refused: {}", error.told());
                Some(vec![WorldRow { text: Some(why), ..run_row(&row, "outcome") }])
            }
            Ok(world) => self.rows_of(&world, control),
        }
    }

    /// [`Self::rows`] of a world that can run.
    pub(super) fn rows_of(&self, world: &World, control: &WorldsControl) -> Option<Vec<WorldRow>> {
        let row = row_of(&self.kernel_label(), world.seed, world.drawn.workload, world.scope);
        let real = match known_real(world, &self.known) {
            Some(real) => real,
            None => over_all(&world.real, control)?,
        };
        let model = over_all(&world.model, control)?;
        Some(world_rows(world, &row, &real, &model))
    }
}

/// Does `one` for each of `seeds`, the first ones first, in so many threads; after an error begins no more.
pub(super) fn in_order(
    seeds: &[u64],
    jobs: usize,
    one: impl Fn(&u64) -> Result<(), LabError> + Sync,
) -> Result<(), LabError> {
    let threads = if jobs == 0 { std::thread::available_parallelism().map_or(1, usize::from) } else { jobs };
    let next = AtomicUsize::new(0);
    let work = || -> Result<(), LabError> {
        while let Some(seed) = seeds.get(next.fetch_add(1, Ordering::Relaxed)) {
            one(seed).inspect_err(|_| next.store(seeds.len(), Ordering::Relaxed))?;
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads.min(seeds.len())).map(|_| scope.spawn(work)).collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect("panics of runs are caught"))
    })
}

/// Runs each, one after the other, up to one that does not end: the others would not either. None where they were
/// stopped.
fn over_all(runs: &[PlannedRun], control: &WorldsControl) -> Option<Vec<Over>> {
    let mut all: Vec<Over> = Vec::new();
    for run in runs {
        if all.last().is_some_and(|last| last.how == How::TooLong) {
            break;
        }
        all.push(run_one(run, control)?);
    }
    Some(all)
}

fn run_one(run: &PlannedRun, control: &WorldsControl) -> Option<Over> {
    let (ended, too_long) = watched(run, control);
    let over = |how, why, facts, seconds| Some(Over { how, why, facts, seconds });
    match ended {
        Some(Ended::Recorded(recording) | Ended::NotKept(recording, _)) => {
            let seconds = recording.wall_ns.unwrap_or(0) as f64 / 1e9;
            let (how, why) = how_it_ended(&recording);
            over(how, why, facts_since_begin(&recording), seconds)
        }
        _ if control.stop.load(Ordering::Relaxed) => None,
        _ if too_long => {
            let why = format!("it did not end within {} s", RUN_MAX.as_secs());
            over(How::TooLong, Some(why), Vec::new(), 0.0)
        }
        Some(Ended::Failed(error)) => {
            let told = error.told();
            // The model has given up after a day of its own, or nobody got anywhere.
            let is_endless = told.contains(": not done after ") || told.contains(": no progress since ");
            let how = if is_endless { How::TooLong } else { How::Failed };
            over(how, Some(told), Vec::new(), 0.0)
        }
        Some(Ended::NotRun) | None => None,
    }
}

/// Runs it for its recording; why there is none.
pub(super) fn recorded(run: &PlannedRun, control: &WorldsControl) -> Result<Recording, String> {
    match watched(run, control) {
        (Some(Ended::Recorded(recording) | Ended::NotKept(recording, _)), _) => Ok(recording),
        (_, true) => Err(format!("it did not end within {} s", RUN_MAX.as_secs())),
        (Some(Ended::Failed(error)), _) => Err(error.told()),
        _ => Err("it was stopped".to_owned()),
    }
}

/// What a run came to. Gauges of the machine are what they changed by: what booting left in a guest, its own program
/// among it, no model has.
fn facts_since_begin(recording: &Recording) -> Vec<Fact> {
    let mut facts = facts(recording);
    for fact in facts.iter_mut().filter(|fact| fact.kind == FactKind::Vmstat && is_gauge(&fact.name)) {
        let before = recording.series.column(&fact.name).and_then(|column| column.first().copied());
        fact.value = fact.value.zip(before).map(|(value, before)| value - before as f64);
    }
    facts
}

/// Runs it, and whether it had to be stopped for its length.
fn watched(run: &PlannedRun, control: &WorldsControl) -> (Option<Ended>, bool) {
    let (outcome, too_long) = in_time(Some(RUN_MAX), &control.stop, |stop| {
        let own = Control { stop: Arc::clone(stop), host: control.host.clone(), ..Control::default() };
        batch::outcomes(std::slice::from_ref(run), 1, &own, true, |_, _| Ok(()))
    });
    let ended = match outcome {
        Ok(ended) => ended.into_iter().next(),
        Err(error) => Some(Ended::Failed(error)),
    };
    (ended, too_long)
}

fn how_it_ended(recording: &Recording) -> (How, Option<String>) {
    match recording.ended_by() {
        None => (How::Done, None),
        Some(kill) if kill.panicked => (How::Panicked, Some(How::Panicked.told().to_owned())),
        Some(kill) => (How::Killed, Some(format!("{} `{}`", How::Killed.told(), kill.task))),
    }
}

fn row_of(kernel: &str, seed: u64, workload: &str, scope: &str) -> WorldRow {
    WorldRow {
        seed,
        kernel: kernel.to_owned(),
        workload: workload.to_owned(),
        scope: scope.to_owned(),
        kind: String::new(),
        counter: String::new(),
        real: Vec::new(),
        model: Vec::new(),
        class: String::new(),
        error: None,
        text: None,
    }
}

/// A row that says something of the runs.
fn run_row(row: &WorldRow, counter: &str) -> WorldRow {
    WorldRow { kind: FactKind::Run.name().to_owned(), counter: counter.to_owned(), ..row.clone() }
}

fn world_rows(world: &World, row: &WorldRow, real: &[Over], model: &[Over]) -> Vec<WorldRow> {
    let mut rows = Vec::new();
    for (side, runs) in [("real", &world.real), ("model", &world.model)] {
        if let Some(run) = runs.first() {
            rows.push(WorldRow { text: Some(command(&run.scenario)), ..run_row(row, side) });
        }
    }
    rows.push(outcome_row(row, real, model));
    if !real.is_empty() {
        let seconds = real.iter().map(|over| over.seconds).collect();
        rows.push(WorldRow { real: seconds, ..run_row(row, "seconds") });
    }
    let all_done = real.iter().chain(model).all(|over| over.how == How::Done);
    if all_done {
        let facts = |side: &[Over]| side.iter().map(|over| over.facts.clone()).collect::<Vec<_>>();
        let judged = judge_all(&facts(real), &facts(model)).into_iter();
        rows.extend(judged.map(|judged| judged_row(row, judged, !real.is_empty())));
    }
    rows
}

/// Of the model alone nothing is judged.
fn judged_row(row: &WorldRow, judged: Judged, has_real: bool) -> WorldRow {
    let Judged { kind, counter, real, model, class, error } = judged;
    let class = if has_real { class.name() } else { "" };
    WorldRow {
        kind: kind.name().to_owned(),
        counter,
        real,
        model,
        class: class.to_owned(),
        error,
        ..row.clone()
    }
}

/// Whether at least half of the model's runs ended as some real run did; codes of [`How`].
pub(super) fn ended_alike(real: &[f64], model: &[f64]) -> bool {
    2 * model.iter().filter(|how| real.contains(how)).count() >= model.len()
}

/// How the runs of both sides ended.
fn outcome_row(row: &WorldRow, real: &[Over], model: &[Over]) -> WorldRow {
    let codes = |side: &[Over]| side.iter().map(|over| f64::from(over.how as u8)).collect::<Vec<_>>();
    let (real_codes, model_codes) = (codes(real), codes(model));
    let class = match (real.is_empty(), ended_alike(&real_codes, &model_codes)) {
        (true, _) => "",
        (false, true) => Class::Spread.name(),
        (false, false) => Class::Beyond.name(),
    };
    let why = |name: &str, side: &[Over]| {
        side.iter().find_map(|over| over.why.clone()).map(|why| format!("{name}: {why}"))
    };
    let told: Vec<String> = why("real", real).into_iter().chain(why("model", model)).collect();
    WorldRow {
        real: real_codes,
        model: model_codes,
        class: class.to_owned(),
        text: (!told.is_empty()).then(|| told.join("; ")),
        ..run_row(row, "outcome")
    }
}

/// The real side of a world as it is known already: the same world has the same command.
fn known_real(world: &World, known: &[WorldRow]) -> Option<Vec<Over>> {
    let rows = &known[known.partition_point(|row| row.seed < world.seed)..];
    let rows: Vec<&WorldRow> = rows.iter().take_while(|row| row.seed == world.seed).collect();
    let of_runs = |counter: &str| {
        let is = |row: &&&WorldRow| row.kind == FactKind::Run.name() && row.counter == counter;
        rows.iter().find(is).copied()
    };
    let here = command(&world.real.first()?.scenario);
    let outcome = of_runs("outcome")?;
    let has_all = outcome.real.len() >= world.real.len();
    if !has_all && outcome.real.last() != Some(&f64::from(How::TooLong as u8)) {
        return None;
    }
    if of_runs("real")?.text.as_ref() != Some(&here) {
        return None;
    }
    let seconds = of_runs("seconds")?;
    let why = outcome.text.as_deref().and_then(|text| text.strip_prefix("real: "));
    let why = why.and_then(|text| text.split("; model: ").next());
    let over = |run: usize| {
        let kind = |row: &WorldRow| FactKind::ALL.into_iter().find(|kind| kind.name() == row.kind);
        let fact = |row: &&WorldRow| {
            let kind = kind(row).filter(|kind| *kind != FactKind::Run)?;
            Some(Fact {
                kind,
                name: row.counter.clone(),
                value: Some(*row.real.get(run)?),
                text: None,
                error: None,
            })
        };
        let how = How::ALL.into_iter().find(|how| f64::from(*how as u8) == outcome.real[run])?;
        let seconds = seconds.real.get(run).copied().unwrap_or(0.0);
        let why = why.filter(|_| how != How::Done).map(str::to_owned);
        // Nothing was counted of a world in which some run was not done; it is not now either.
        Some(Over { how, why, facts: rows.iter().filter_map(fact).collect(), seconds })
    };
    (0..world.real.len().min(outcome.real.len())).map(over).collect()
}

/// A world in a few words.
fn told(rows: &[WorldRow]) -> String {
    let outcome = rows.iter().find(|row| row.kind == FactKind::Run.name() && row.counter == "outcome");
    let classes = rows.iter().filter_map(|row| Class::named(&row.class)).filter(|class| class.is_judged());
    let (judged, apart) =
        classes.fold((0, 0), |(all, apart), class| (all + 1, apart + usize::from(class.disagrees())));
    match outcome.and_then(|row| row.text.as_ref()) {
        Some(text) => first_line(text).to_owned(),
        None if judged > 1 => format!("{apart} of {judged} counters more than 10 % apart"),
        None => "done".to_owned(),
    }
}
