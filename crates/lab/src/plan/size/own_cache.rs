//! How to split memory between a program's own cache and the page cache: curves of one command with own caches of
//! several sizes.
//!
//! The command is captured once with each size ([`captures`]), and each trace is run as any other, on machines that
//! are the same. What all are compared with is the fastest of them without a limit, so that a slowdown is that of a
//! split, whatever its parts. The steps:
//!
//! 1. Each without a limit.
//! 2. Each at the same limits, two for each doubling below the most that one of them holds, from above. Below a limit
//!    at which it was killed, or took [`TIMES`] as long, nothing smaller is run; above the largest it goes on while
//!    that limits one of them.
//! 3. Those whose least limit that keeps the target may be the least of all: halved as long as `--resolution` says.
//! 4. All at the least one found, and what is recommended, set all at once; the program itself, if that was asked for.
//!
//! Left out: other settings that go with a cache (threads, a log's size), and work that a command does by the clock: it
//! must do the same work with each size, or its time says nothing.

mod captures;
mod template;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use recording::Recording;
use report::{OwnCache, OwnCaches, Patch, Sized};
use trace::Trace;
use units::{Bytes, PAGE_SIZE};
use workload::amount::Warmup;

use super::control::SizeControl;
use super::curve::{self, Point};
use super::disks::OnDisk;
use super::plan::{Disks, LIMIT_LEAST, SizePlan, SizeRequest, VERIFY_DEFAULT, Verify};
use super::runs::{Field, Source, memory};
use super::search::Search;
use super::{ROUND, measured};
use crate::error::LabError;
use crate::plan::sweep::sizes;
use crate::resolve::program;
use crate::resolve::texts::first_twice;
use captures::{Captured, Captures, capture_each};
use template::{Template, shown};

/// Each is a capture, which takes as long as the command does.
const OWN_CACHES_MAX: usize = 16;
/// Below a limit at which it takes so many times as long nothing is run.
const TIMES: f64 = 4.0;
/// At a limit at which it takes so many times as long as without one, something is taken from it.
const SLOWER: f64 = 1.01;
/// Of its own cache in percent: with less memory of its own, a program has not filled it.
const FILLED_PERCENT: u64 = 90;
/// So many times as long without a limit, with more cache, is told.
const UNSTEADY: f64 = 1.03;
/// Memory of a program's own that differs by less between two captures, or by a twentieth, is the same.
const ALIKE: u64 = 512 << 10;

/// A command to be sized with own caches of several sizes, as a person names everything.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OwnCacheRequest {
    /// Sizes of its own cache: `64M..1G`.
    pub own_cache: String,
    /// The command, with a place for the size, as `program`; all else is as of a trace, and there is none.
    pub size: SizeRequest,
}

/// A command that can be sized: names and values are checked, the command is not.
#[derive(Debug, Clone)]
pub struct OwnCachePlan {
    own_caches: Vec<Bytes>,
    template: Template,
    /// Of a trace that is not there yet.
    like: SizePlan,
    written: String,
}

impl OwnCacheRequest {
    /// Checks all names and values.
    ///
    /// # Errors
    /// The first that cannot be, with what to write instead.
    pub fn plan(&self) -> Result<OwnCachePlan, LabError> {
        self.check_options()?;
        let mut own_caches = sizes("--own-cache", &self.own_cache)?;
        own_caches.sort_unstable();
        if let Some(twice) = first_twice(&own_caches) {
            return Err(LabError::twice("--own-cache", twice));
        }
        if !(2..=OWN_CACHES_MAX).contains(&own_caches.len()) {
            return Err(LabError::refused(
                format!("`--own-cache {}` has so many sizes: {}", self.own_cache, own_caches.len()),
                format!(
                    "give 2 to {OWN_CACHES_MAX}, for each of which the command is captured: `64M..1G` doubles, \
                     `64M..1G*4` has fewer"
                ),
            ));
        }
        let template = Template::new(&self.size.program, &own_caches)?;
        let verify = self.size.verify.is_some().then_some(Verify::Program);
        self.size.check_host_pressure(verify.as_ref())?;
        let size = SizeRequest {
            verify: None,
            program: Vec::new(),
            allow_host_pressure: false,
            ..self.size.clone()
        };
        let mut like = size.plan()?;
        like.verify = verify;
        like.allow_host_pressure = self.size.allow_host_pressure;
        if matches!(&like.disks, Disks::Named(names) if names.len() > 1) {
            return Err(LabError::refused(
                "`--own-cache` is for one disk, and several are named",
                "name the first alone",
            ));
        }
        Ok(OwnCachePlan { own_caches, template, like, written: self.own_cache.clone() })
    }

    /// Refuses what is for traces.
    fn check_options(&self) -> Result<(), LabError> {
        let SizeRequest { trace, options, sample, check_sample, verify, .. } = &self.size;
        if !trace.as_os_str().is_empty() {
            return Err(LabError::refused(
                format!("`--own-cache` captures a command, and `{}` is a trace", trace.display()),
                "leave the trace out, and name the command after `--`",
            ));
        }
        if let Some(text) = verify.as_deref().filter(|text| *text != VERIFY_DEFAULT) {
            return Err(LabError::refused(
                format!("`--verify {text}` replays a trace, and `--own-cache` has several"),
                "write `--verify program`, which runs the command itself with the recommended split",
            ));
        }
        let given = [
            ("--sample", sample.is_some()),
            ("--check-sample", *check_sample),
            ("--warmup", options.warmup != Warmup::None),
            ("--trace-format", options.format.is_some()),
            ("--unsorted", options.unsorted),
        ];
        match given.into_iter().find(|(_, given)| *given) {
            Some((option, _)) => Err(LabError::refused(
                format!("`{option}` is for traces of requests, and `--own-cache` captures a program"),
                "leave it out",
            )),
            None => Ok(()),
        }
    }
}

/// Where traces are: in a folder that is kept, or one that goes with this.
enum Place {
    Kept(PathBuf),
    Temporary(tempfile::TempDir),
}

impl Place {
    fn new(out: Option<&Path>) -> Result<Self, LabError> {
        let failed = |what: &Path| {
            let what = format!("`{}`", what.display());
            move |source| LabError::Unwritable { what, source }
        };
        match out {
            Some(out) => {
                std::fs::create_dir_all(out).map_err(failed(out)).map(|()| Self::Kept(out.to_owned()))
            }
            None => tempfile::tempdir().map_err(failed(&std::env::temp_dir())).map(Self::Temporary),
        }
    }

    fn path(&self) -> &Path {
        match self {
            Self::Kept(path) => path,
            Self::Temporary(folder) => folder.path(),
        }
    }
}

impl OwnCachePlan {
    /// With patches of what will be recommended.
    #[must_use]
    pub fn patched(self, patches: Vec<Patch>) -> Self {
        Self { like: self.like.patched(patches), ..self }
    }

    /// Captures the command with each own cache and runs the traces, up to `jobs` times at once (0: one for each CPU).
    /// A signal whose number is put into `signal` goes to the command that is captured. With `out`, traces and
    /// recordings are kept there. With the result comes the interruption, if there was one.
    ///
    /// # Errors
    /// The command cannot be captured with any of them; as [`SizePlan::run`]; interrupted before all had run without a
    /// limit.
    pub fn run(
        &self,
        jobs: usize,
        control: &SizeControl,
        signal: &AtomicUsize,
        out: Option<&Path>,
    ) -> Result<(OwnCaches, Option<LabError>), LabError> {
        let place = Place::new(out)?;
        let commands = self.own_caches.iter().map(|&size| (size, self.template.at(size))).collect();
        let Captures { whole, failed } = capture_each(commands, place.path(), control, signal)?;
        let pool = rayon::ThreadPoolBuilder::new().num_threads(jobs).build()?;
        pool.install(|| {
            let traces = whole.iter().map(|one| program::read(&one.trace)).collect::<Result<Vec<_>, _>>()?;
            let OnDisk { plan, told, .. } = self.like.on_its_disk(traces.first().map(|trace| &**trace))?;
            let plans = self.plans(&plan, &whole, &traces, control)?;
            let mut split = Split::begin(&plans, &whole, &traces, control, out)?;
            split.run()?;
            let mut notes: Vec<String> = told.into_iter().collect();
            notes.extend(
                failed
                    .iter()
                    .map(|(size, why)| format!("With an own cache of {size} the command failed: {why}.")),
            );
            let made_by = plan.command_with_own_cache(&self.written, &self.template.shown());
            split.result(self, made_by, notes)
        })
    }

    /// One for each trace, on the same machine.
    fn plans(
        &self,
        like: &SizePlan,
        captured: &[Captured],
        traces: &[Arc<Trace>],
        control: &SizeControl,
    ) -> Result<Vec<SizePlan>, LabError> {
        let mut plans = Vec::new();
        let mut mem = Bytes(0);
        for (one, trace) in captured.iter().zip(traces) {
            let mut plan = like.clone();
            (plan.trace, plan.program) = (one.trace.clone(), one.command.clone());
            mem = mem.max(memory(&plan, plan.source(Some(Arc::clone(trace)), control)?.footprint())?);
            plans.push(plan);
        }
        Ok(plans.iter().map(|plan| plan.with_memory(mem)).collect())
    }
}

/// A command with one own cache.
struct Own<'a> {
    size: Bytes,
    command: &'a Captured,
    search: Search<'a>,
    /// Its own runs without a limit; `search` is compared with the fastest's.
    free: Vec<Recording>,
}

/// All of them.
struct Split<'a> {
    own: Vec<Own<'a>>,
    /// The place of the fastest without a limit.
    fastest: usize,
    /// Limits that all are run at.
    rows: Vec<Bytes>,
    /// Of all runs.
    planned: usize,
    finished: usize,
    stopped: bool,
}

impl<'a> Split<'a> {
    /// Runs each without a limit.
    fn begin(
        plans: &'a [SizePlan],
        captured: &'a [Captured],
        traces: &[Arc<Trace>],
        control: &'a SizeControl,
        out: Option<&Path>,
    ) -> Result<Self, LabError> {
        let mut split =
            Self { own: Vec::new(), fastest: 0, rows: Vec::new(), planned: 0, finished: 0, stopped: false };
        for ((plan, command), trace) in plans.iter().zip(captured).zip(traces) {
            let size = command.own_cache;
            let out = out.map(|out| out.join(format!("own-cache-{size}")));
            let field =
                Field::new(plan, control, plan.source(Some(Arc::clone(trace)), control)?, out.as_deref())?;
            field.finished.store(split.finished, Ordering::Relaxed);
            let search = Search::begin(field, split.planned).map_err(|error| match error {
                LabError::Interrupted { .. } => {
                    LabError::Interrupted { finished: split.finished, total: plans.len() * plan.seeds.len() }
                }
                other => other,
            })?;
            split.planned = search.planned;
            split.finished = search.field.finished.load(Ordering::Relaxed);
            let free = search.base.clone();
            split.own.push(Own { size, command, search, free });
        }
        let times: Vec<f64> =
            split.own.iter().map(|own| own.seconds(&own.free).unwrap_or(f64::INFINITY)).collect();
        split.fastest = (0..times.len()).min_by(|&a, &b| times[a].total_cmp(&times[b])).unwrap_or(0);
        let base = split.own[split.fastest].free.clone();
        split.own.iter_mut().for_each(|own| own.search.base.clone_from(&base));
        Ok(split)
    }

    /// Does something with one of them; runs are counted over all.
    fn with(
        &mut self,
        place: usize,
        work: impl FnOnce(&mut Own<'a>) -> Result<(), LabError>,
    ) -> Result<(), LabError> {
        let own = &mut self.own[place];
        own.search.planned = self.planned;
        own.search.field.finished.store(self.finished, Ordering::Relaxed);
        work(own)?;
        self.planned = own.search.planned;
        self.finished = own.search.field.finished.load(Ordering::Relaxed);
        self.stopped |= own.search.stopped;
        Ok(())
    }

    fn run(&mut self) -> Result<(), LabError> {
        let plan = self.own[0].search.field.plan;
        let held = self.own.iter().map(|own| own.search.held).max().unwrap_or_default();
        self.rows = match &plan.limits {
            Some(limits) => limits.clone(),
            None => {
                let mut limits = curve::coarse(LIMIT_LEAST, held);
                limits.push(curve::above(held));
                limits
            }
        };
        for place in 0..self.own.len() {
            let rows = self.rows.clone();
            self.with(place, |own| own.downwards(&rows))?;
        }
        if plan.limits.is_none() {
            self.upwards()?;
            self.nearer(plan)?;
        }
        let Some(best) = self.best()? else { return Ok(()) };
        self.with(best, |own| {
            own.search.recommend()?;
            own.search.check()
        })?;
        let advised = self.own[best].search.advice.as_ref().map(|advice| Bytes(advice.high));
        if let Some(limit) = advised.filter(|limit| !self.rows.contains(limit)) {
            for place in 0..self.own.len() {
                self.with(place, |own| own.search.add(&[limit]))?;
            }
            self.rows.push(limit);
            self.rows.sort_unstable();
        }
        Ok(())
    }

    /// Goes on above the largest limit while it takes something from one of them: what a run holds at most is seen only
    /// at samples.
    fn upwards(&mut self) -> Result<(), LabError> {
        let footprint =
            self.own.iter().map(|own| own.search.field.source.footprint()).max().unwrap_or_default();
        while let Some(&top) = self.rows.last().filter(|top| **top < footprint && !self.stopped) {
            if !self.own.iter().any(|own| own.is_limited_at(top)) {
                break;
            }
            let next = curve::rounded(top.get() as f64 * std::f64::consts::SQRT_2);
            for place in 0..self.own.len() {
                self.with(place, |own| own.search.add(&[next]))?;
            }
            self.rows.push(next);
        }
        Ok(())
    }

    /// Halves between what is enough and what is not, wherever that may lead to the least of all.
    fn nearer(&mut self, plan: &SizePlan) -> Result<(), LabError> {
        for _ in 0..plan.points {
            let mut next: Option<(usize, Bytes, f64)> = None;
            let least =
                self.own.iter().filter_map(|own| own.bracket().transpose()).collect::<Result<Vec<_>, _>>()?;
            let Some(best) = least.iter().map(|bracket| bracket.1).min() else { return Ok(()) };
            for (place, own) in self.own.iter().enumerate() {
                let Some((below, enough)) = own.bracket()? else { continue };
                let width = enough.get() as f64 / below.get().max(1) as f64;
                let middle = curve::rounded((below.get() as f64 * enough.get() as f64).sqrt());
                let is_between = below < middle && middle < enough && width > 1.0 + plan.resolution;
                if below < best && is_between && next.is_none_or(|(_, _, widest)| width > widest) {
                    next = Some((place, middle, width));
                }
            }
            let Some((place, limit, _)) = next.filter(|_| !self.stopped) else { return Ok(()) };
            self.with(place, |own| own.search.add(&[limit]))?;
        }
        Ok(())
    }

    /// The one that needs the least; of several, the fastest there.
    fn best(&self) -> Result<Option<usize>, LabError> {
        let mut best: Option<(usize, Bytes, f64)> = None;
        for (place, own) in self.own.iter().enumerate() {
            let Some((_, enough)) = own.bracket()? else { continue };
            let seconds =
                own.search.limited.get(&enough).and_then(|runs| own.seconds(runs)).unwrap_or(f64::INFINITY);
            if best.is_none_or(|(_, least, fastest)| enough < least || enough == least && seconds < fastest) {
                best = Some((place, enough, seconds));
            }
        }
        Ok(best.map(|(place, ..)| place))
    }

    fn result(
        self,
        plan: &OwnCachePlan,
        command: String,
        mut notes: Vec<String>,
    ) -> Result<(OwnCaches, Option<LabError>), LabError> {
        let best = self.best()?;
        let of = best.unwrap_or(self.fastest);
        let caches = self.own.iter().map(Own::told).collect::<Result<Vec<_>, _>>()?;
        notes.extend(unfilled(&caches));
        notes.extend(unsteady(&caches));
        notes.push(WORK.to_owned());
        let fastest = self.own[self.fastest].size.get();
        let was_run = |limit: &&Bytes| self.own.iter().any(|own| own.search.limited.contains_key(*limit));
        let rows = self.rows.iter().filter(was_run).map(|limit| limit.get()).collect();
        let (runs, planned, stopped) = (self.finished, self.planned, self.stopped);
        let mut search = self.own.into_iter().nth(of).expect("it is one of them").search;
        search.field.finished.store(runs, Ordering::Relaxed);
        (search.planned, search.stopped) = (planned, stopped);
        let size = caches[of].bytes;
        let (sized, interrupted) = search.result()?;
        let sized = Sized { command, ..sized };
        Ok((
            OwnCaches {
                command: plan.template.shown(),
                caches,
                of: size,
                fastest,
                limits: rows,
                notes,
                sized,
            },
            interrupted,
        ))
    }
}

impl Own<'_> {
    /// Runs at limits from the largest on, as far down as they tell something.
    fn downwards(&mut self, limits: &[Bytes]) -> Result<(), LabError> {
        for limits in limits.rchunks(ROUND) {
            self.search.add(limits)?;
            let least = self.search.limited.first_key_value();
            if self.search.stopped || least.is_some_and(|(_, runs)| self.is_hopeless(runs)) {
                break;
            }
        }
        Ok(())
    }

    /// Whether nothing below these runs is worth one.
    fn is_hopeless(&self, runs: &[Recording]) -> bool {
        let times =
            self.seconds(runs).zip(self.seconds(&self.search.base)).map(|(run, base)| run / base.max(1e-9));
        runs.iter().any(|run| !run.oom_kills.is_empty()) || times.is_none_or(|times| times > TIMES)
    }

    /// Whether runs at a limit were killed, or slower than those without one.
    fn is_limited_at(&self, limit: Bytes) -> bool {
        let Some(runs) = self.search.limited.get(&limit) else { return false };
        let slower =
            self.seconds(runs).zip(self.seconds(&self.free)).is_some_and(|(run, free)| run > SLOWER * free);
        slower || runs.iter().any(|run| !run.oom_kills.is_empty())
    }

    /// The mean time of runs.
    fn seconds(&self, runs: &[Recording]) -> Option<f64> {
        seconds(runs, &self.search.target.slowdown_of)
    }

    /// The largest limit that was run and is too small, and the least that is enough; none where none is.
    fn bracket(&self) -> Result<Option<(Bytes, Bytes)>, LabError> {
        let points: Vec<Point> = self.search.curve()?;
        let Some(place) = curve::enough(&points).filter(|_| !self.search.target.limits.is_empty()) else {
            return Ok(None);
        };
        let below = place.checked_sub(1).map_or(LIMIT_LEAST, |below| points[below].limit);
        Ok(Some((below, points[place].limit)))
    }

    /// What was found of it.
    fn told(&self) -> Result<OwnCache, LabError> {
        let search = &self.search;
        let own = own_memory(&search.field.source);
        let bracket = self.bracket()?;
        let points =
            search.limited.iter().map(|(&limit, runs)| (Some(limit), runs)).chain([(None, &self.free)]);
        let point =
            |(limit, runs): (_, &Vec<Recording>)| measured::point(limit, &search.base, runs, &search.target);
        Ok(OwnCache {
            bytes: self.size.get(),
            command: shown(&self.command.command),
            held: search.held.get().max(own),
            own,
            is_filled: own >= self.size.get() / 100 * FILLED_PERCENT,
            enough: bracket.map(|(_, enough)| enough.get()),
            points: points.map(point).collect::<Result<_, _>>()?,
        })
    }
}

/// The mean of what a slowdown is of.
fn seconds(runs: &[Recording], name: &str) -> Option<f64> {
    let spread = report::Spread::of(runs.iter().filter_map(|run| run.metrics.get(name).copied()));
    spread.map(|spread| spread.mean)
}

/// The most memory of no file that a program had: no more than it had mapped at a time, nor than it ever touched.
fn own_memory(source: &Source) -> u64 {
    let Source::Program { info, .. } = source else { return 0 };
    info.memory.anonymous_bytes_most.min(info.footprint.anonymous_pages * PAGE_SIZE)
}

/// What makes captures of several commands comparable.
const WORK: &str = "Each size is another capture: the command must do the same work with each, and what else this host did \
                    meanwhile is in their times. Differences of a few percent between two of them may be chance.";

/// That values were too large to tell something, or changed nothing.
fn unfilled(caches: &[OwnCache]) -> Vec<String> {
    let mut notes = Vec::new();
    let (least, most) =
        caches.iter().fold((u64::MAX, 0), |(least, most), one| (least.min(one.own), most.max(one.own)));
    if caches.len() > 1 && most - least <= (most / 20).max(ALIKE) {
        notes.push(
            "Its own memory is the same with all of these sizes: see whether the command takes the size where it is put, \
             and whether its work fills a cache of it."
                .to_owned(),
        );
    } else if let Some(first) = caches.iter().find(|one| !one.is_filled) {
        notes.push(format!(
            "With an own cache of {} and more it is not filled: the program had {} of its own at most. What is larger \
             differs by chance.",
            Bytes(first.bytes),
            mib(first.own),
        ));
    }
    notes
}

/// That more cache made it slower, which chance does, too.
fn unsteady(caches: &[OwnCache]) -> Option<String> {
    let free = |cache: &OwnCache| Some(cache.points.last()?.run?.mean);
    let slower =
        |pair: &[OwnCache]| Some((free(&pair[1])? / free(&pair[0])?.max(1e-9), pair[0].bytes, pair[1].bytes));
    let (times, smaller, larger) = caches.windows(2).filter_map(slower).max_by(|a, b| a.0.total_cmp(&b.0))?;
    (times > UNSTEADY).then(|| {
        format!(
            "Without a limit it is {:.0} % slower with an own cache of {} than with {}: either more cache makes it slower, or \
             that is what other work on this host does to its times, and which size is best is as unsure. Run it again \
             when the host is quiet.",
            100.0 * (times - 1.0),
            Bytes(larger),
            Bytes(smaller),
        )
    })
}

fn mib(bytes: u64) -> String {
    format!("{} MiB", bytes.div_ceil(1 << 20))
}

#[cfg(test)]
mod tests {
    use super::*;
    use report::{SizedPoint, Spread};

    /// Of mebibytes: its own cache, its own memory; and how long it takes without a limit.
    fn cache(mebibytes: u64, own: u64, seconds: f64) -> OwnCache {
        let spread = |value| Some(Spread { least: value, mean: value, most: value });
        let free = SizedPoint {
            limit: None,
            hit_ratio: None,
            refaults: None,
            in_reclaim: None,
            stalled: None,
            read: None,
            written: None,
            run: spread(seconds),
            slowdown: spread(0.0),
            keeps: Some(true),
            killed: 0,
        };
        OwnCache {
            bytes: mebibytes << 20,
            command: String::new(),
            held: own << 20,
            own: own << 20,
            is_filled: own >= mebibytes,
            enough: None,
            points: vec![free],
        }
    }

    #[test]
    fn caches_that_are_not_filled_or_no_caches_are_told() {
        assert_eq!(unfilled(&[cache(16, 20, 2.0), cache(64, 70, 1.0)]), Vec::<String>::new());
        let told = unfilled(&[cache(16, 20, 2.0), cache(64, 40, 1.0), cache(256, 41, 1.0)]).concat();
        assert!(
            told.starts_with("With an own cache of 64M and more it is not filled") && told.contains("40 MiB")
        );
        let told = unfilled(&[cache(16, 300, 2.0), cache(64, 300, 1.0)]).concat();
        assert!(told.contains("the same with all of these sizes"), "{told}");
    }

    #[test]
    fn more_cache_that_makes_it_slower_is_told() {
        assert_eq!(unsteady(&[cache(16, 20, 2.0), cache(64, 70, 2.01), cache(256, 256, 1.0)]), None);
        let told = unsteady(&[cache(16, 20, 2.0), cache(64, 70, 1.0), cache(256, 256, 1.25)]).unwrap();
        assert!(told.contains("25 % slower with an own cache of 256M than with 64M"), "{told}");
    }
}
