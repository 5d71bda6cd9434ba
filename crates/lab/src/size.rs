//! How much memory a trace needs: its runs at several limits, the curve that they make, and what to set.
//!
//! The trace runs in a cgroup of a machine that is larger than all it asks for, so that only `memory.max` of the
//! group counts. First without a limit, then at limits over all that it kept there, two for each doubling, then
//! where the curve bends ([`curve`]), at last with what is recommended, set all at once. Limits are chosen by
//! results alone, so that the same request gives the same answer however many run at a time.
//!
//! | file | what it holds |
//! |---|---|
//! | `size/plan.rs` | a request, its names and values checked |
//! | `size/runs.rs` | the runs, of the whole or of a sample, in parallel |
//! | `size/curve.rs` | the knee, what is enough, and which limit to run next |
//! | `size/measured.rs` | what a limit came to, and whether it keeps the target |
//! | `size/advice.rs` | what to set |
//! | `size/verify.rs` | three points on a real kernel |
//! | `size/notes.rs` | what a reader must know |
//! | `size/error.rs` | what is wrong with a request |
//!
//! Left out: how it is shown (`pagetide-report`, `size`).

mod advice;
mod curve;
pub(crate) mod error;
mod measured;
mod notes;
mod plan;
mod runs;
mod verify;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use recording::Recording;
use report::{SampleCheck, Sized, SizedKnee, SizedPoint, VerifiedPoint};
use trace::info::TraceInfo;
use units::Bytes;
use workload::limits::Limits;
use workload::replay::{Held, Sample, Timing};
use workload::trace::{TraceError, TraceReader};

pub use error::SizeError;
pub use plan::{POINTS_MAX, POINTS_MIN, SizePlan, SizeRequest, VERIFY_DEFAULT};

use crate::error::LabError;
use crate::program;
use crate::replay::Input;
use curve::Point;
use measured::{Target, hit_ratio, point};
use runs::{Field, LIMIT_LEAST, Run, Subject};

/// How far the work is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum SizeProgress<'a> {
    /// The trace is being read.
    Read {
        /// Bytes so far.
        bytes: u64,
        /// Bytes that it has; 0 when not known.
        total: u64,
    },
    /// Runs begin; none before, or more than were known of.
    Planned {
        /// As many as are planned so far.
        runs: usize,
    },
    /// A run is over.
    Finished {
        /// How many are, with this one.
        finished: usize,
        /// Kernel and limit.
        label: &'a str,
        /// Its seed.
        seed: u64,
        /// Time on a clock.
        seconds: f64,
    },
    /// The same limits were run on the sample and on all of the trace.
    Timed {
        /// Time on clocks of the sample's runs, in all.
        sample_seconds: f64,
        /// Likewise of all of the trace.
        whole_seconds: f64,
    },
}

/// Who watches, and how to stop.
#[derive(Clone)]
pub struct SizeControl {
    /// Set to end soon; what has finished is reported.
    pub stop: Arc<AtomicBool>,
    /// Called from the threads that run; must not block for long.
    pub observer: Arc<dyn Fn(SizeProgress<'_>) + Send + Sync>,
}

/// Limits that are run at a time: the next ones are chosen by what they came to.
const ROUND: usize = 4;

impl SizePlan {
    /// Runs the trace, up to `jobs` times at once (0: one for each CPU). Recordings are kept in `out` as runs
    /// finish. With the result comes the interruption, if there was one: then it holds what had finished.
    ///
    /// # Errors
    /// A trace that cannot be read or sized; a run that failed for another reason than memory; a target on
    /// what no run has; interrupted before the run without a limit had ended.
    pub fn run(
        &self,
        jobs: usize,
        control: &SizeControl,
        out: Option<&Path>,
    ) -> Result<(Sized, Option<LabError>), LabError> {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(jobs).build()?;
        pool.install(|| {
            let subject = self.subject(control)?;
            let field = Field::new(self, control, subject, out)?;
            let mut search = Search::begin(field)?;
            search.run()?;
            search.result()
        })
    }

    /// The trace of a program, or one of requests, told by its content.
    fn subject(&self, control: &SizeControl) -> Result<Subject, LabError> {
        if self.reads_stdin() || !program::is_one(&self.trace) {
            return self.read(control);
        }
        self.check_program()?;
        let trace = program::read(&self.trace)?;
        let like = self.program_scenario()?;
        let like = Box::new(program::scenario(&like, &self.trace, &trace, Limits::default())?);
        Ok(Subject::Program { info: Box::new(TraceInfo::of(&trace)), trace, like })
    }

    /// A trace of requests, and a sample of it for each seed; none of what is not run.
    fn read(&self, control: &SizeControl) -> Result<Subject, LabError> {
        let input = Input::new(&self.trace, false)?;
        let failed = |error: TraceError| input.failed(error);
        let window = runs::window(self)?;
        let sample =
            |one_in| move |&seed| Some(Sample::new(one_in, seed).expect("it was checked").thinned(window));
        let samples = self.sample.map(|one_in| self.seeds.iter().map(sample(one_in)));
        let with_whole = self.sample.is_none() || self.check_sample;
        let wanted: Vec<Option<Sample>> =
            with_whole.then_some(None).into_iter().chain(samples.into_iter().flatten()).collect();
        let total = input.length();
        let mut source = input.open()?;
        let reader = TraceReader::new(&mut source, self.options.format).map_err(failed)?;
        let format = reader.format();
        let watch = |bytes| (control.observer)(SizeProgress::Read { bytes, total });
        let keeps_times = self.options.timing == Timing::Recorded
            || matches!(self.options.warmup, workload::amount::Warmup::Time(_));
        let reader = reader.unsorted(self.options.unsorted);
        let held = Held::read(reader, keeps_times, &wanted, &control.stop, watch).map_err(failed)?;
        let mut held = held.ok_or(LabError::Interrupted { finished: 0, total: 1 })?.into_iter().map(Arc::new);
        let whole = if with_whole { held.next() } else { None };
        let samples: Vec<Arc<Held>> = held.collect();
        self.check_warmup(whole.iter().chain(&samples).map(|held| held.requests()))?;
        if samples.iter().any(|sample| sample.requests() == 0) {
            return Err(SizeError::EmptySample.into());
        }
        Ok(Subject::Requests { whole, samples, format, id: source.id() })
    }
}

/// The search for the curve, with what has finished of it.
struct Search<'a> {
    field: Field<'a>,
    /// Without a limit, for each seed.
    base: Vec<Recording>,
    /// By limit, for each seed.
    limited: BTreeMap<Bytes, Vec<Recording>>,
    target: Target,
    /// What it keeps where nothing limits it.
    held: Bytes,
    planned: usize,
    /// With what is recommended set.
    advice: Option<report::Advice>,
    checked: Vec<SampleCheck>,
    verified: Option<(String, Vec<VerifiedPoint>)>,
    /// What must be known of that.
    not_verified: Vec<String>,
    stopped: bool,
}

impl<'a> Search<'a> {
    /// Runs it without a limit.
    fn begin(field: Field<'a>) -> Result<Self, LabError> {
        let target = field.plan.target.clone();
        let mut search = Self {
            field,
            base: Vec::new(),
            limited: BTreeMap::new(),
            target,
            held: Bytes(0),
            planned: 0,
            advice: None,
            checked: Vec::new(),
            verified: None,
            not_verified: Vec::new(),
            stopped: false,
        };
        let Some(base) = search.runs(&[Limits::default()], false)?.pop().flatten() else {
            return Err(LabError::Interrupted { finished: 0, total: 1 });
        };
        if base.iter().any(|run| run.metrics.is_empty()) {
            return Err(SizeError::KilledUnlimited.into());
        }
        let pages =
            base.iter().filter_map(|run| run.metrics.get("pages_held")).fold(0.0, |a, &b| f64::max(a, b));
        search.held = Bytes(pages as u64 * units::PAGE_SIZE);
        search.base = base;
        // A target on a name that no run has is told before the others.
        search.target.is_kept(&search.base, &search.base)?;
        Ok(search)
    }

    /// Runs each of these limits with all seeds; nothing where a seed was stopped.
    fn runs(&mut self, limits: &[Limits], whole: bool) -> Result<Vec<Option<Vec<Recording>>>, LabError> {
        let seeds = self.field.plan.seeds.len();
        self.planned += limits.len() * seeds;
        (self.field.control.observer)(SizeProgress::Planned { runs: self.planned });
        let run = |&limits: &Limits| (0..seeds).map(move |seed| Run { limits, seed, whole });
        let runs: Vec<Run> = limits.iter().flat_map(run).collect();
        let mut recordings = self.field.run(&runs)?.into_iter();
        let of_limit = |_| recordings.by_ref().take(seeds).collect::<Option<Vec<Recording>>>();
        let ended: Vec<Option<Vec<Recording>>> = limits.iter().map(of_limit).collect();
        self.stopped |= ended.iter().any(Option::is_none) || self.field.control.stop.load(Ordering::Relaxed);
        Ok(ended)
    }

    /// Runs these as `memory.max`, and adds them to the curve.
    fn add(&mut self, limits: &[Bytes]) -> Result<(), LabError> {
        let wanted: Vec<Bytes> =
            limits.iter().copied().filter(|limit| !self.limited.contains_key(limit)).collect();
        let as_max: Vec<Limits> =
            wanted.iter().map(|&max| Limits { max: Some(max), ..Limits::default() }).collect();
        let ended = self.runs(&as_max, false)?;
        for (limit, recordings) in wanted.into_iter().zip(ended) {
            if let Some(recordings) = recordings {
                self.limited.insert(limit, recordings);
            }
        }
        Ok(())
    }

    fn run(&mut self) -> Result<(), LabError> {
        let plan = self.field.plan;
        match &plan.limits {
            Some(limits) => self.add(&limits.clone())?,
            None => {
                let least = self.least();
                let top = curve::above(self.held);
                if top <= least {
                    let (path, held, sampled) = (plan.trace.clone(), self.held, plan.sample.is_some());
                    return Err(SizeError::TraceTooSmall { path, held, least, sampled }.into());
                }
                let mut limits = curve::coarse(least, self.held);
                limits.push(top);
                limits.truncate(plan.points);
                self.add(&limits)?;
                while !self.stopped && self.limited.len() < plan.points {
                    let count = ROUND.min(plan.points - self.limited.len());
                    let next = curve::next(&self.curve()?, plan.resolution, count);
                    if next.is_empty() {
                        break;
                    }
                    self.add(&next)?;
                }
            }
        }
        self.recommend()?;
        if plan.check_sample && !self.stopped {
            self.check_sample()?;
        }
        if let Some(backend) = plan.verify.as_deref().filter(|_| !self.stopped) {
            let verified = self.verify(backend)?;
            self.verified = Some((backend.to_owned(), verified.points));
            self.not_verified = verified.notes;
        }
        Ok(())
    }

    /// The least limit of a run.
    fn least(&self) -> Bytes {
        Bytes(LIMIT_LEAST.get() * u64::from(self.field.plan.sample.unwrap_or(1)))
    }

    /// Limits with their hits: the worst seed's, and only where all seeds lived.
    fn curve(&self) -> Result<Vec<Point>, LabError> {
        let mut points = Vec::with_capacity(self.limited.len());
        for (&limit, runs) in &self.limited {
            let hits = runs.iter().map(|run| hit_ratio(run).unwrap_or(0.0)).fold(f64::MAX, f64::min);
            let is_enough = self.target.limits.is_empty() || self.target.is_kept(&self.base, runs)?;
            points.push(Point { limit, hits, is_enough });
        }
        Ok(points)
    }

    /// The same limits on all of the trace.
    fn check_sample(&mut self) -> Result<(), LabError> {
        let max = |&limit: &Bytes| Limits { max: Some(limit), ..Limits::default() };
        let limits: Vec<Limits> = self.limited.keys().map(max).chain([Limits::default()]).collect();
        let whole = self.runs(&limits, true)?;
        let sampled = self.limited.values().chain([&self.base]);
        let (mut sample_seconds, mut whole_seconds) = (0.0, 0.0);
        let seconds =
            |runs: &[Recording]| runs.iter().filter_map(|run| run.wall_ns).sum::<u64>() as f64 / 1e9;
        let mean = |runs: &[Recording], value: &dyn Fn(&Recording) -> Option<f64>| {
            report::Spread::of(runs.iter().filter_map(value)).map(|spread| spread.mean)
        };
        let run = |run: &Recording| run.metrics.get("replay_seconds").copied();
        for ((limits, whole), sampled) in limits.iter().zip(&whole).zip(sampled) {
            let Some(whole) = whole else { continue };
            sample_seconds += seconds(sampled);
            whole_seconds += seconds(whole);
            let hits = mean(sampled, &hit_ratio).zip(mean(whole, &hit_ratio));
            let runs = mean(sampled, &run).zip(mean(whole, &run));
            if let (Some(hit_ratio), Some(run)) = (hits, runs) {
                self.checked.push(SampleCheck { limit: limits.max.map(Bytes::get), hit_ratio, run });
            }
        }
        (self.field.control.observer)(SizeProgress::Timed { sample_seconds, whole_seconds });
        Ok(())
    }

    fn points(&self) -> Result<Vec<SizedPoint>, LabError> {
        let limited = self.limited.iter().map(|(&limit, runs)| (Some(limit), runs));
        let all = limited.chain([(None, &self.base)]);
        all.map(|(limit, runs)| point(limit, &self.base, runs, &self.target)).collect()
    }

    /// What was found, and the interruption if there was one, or why a recording could not be kept.
    fn result(self) -> Result<(Sized, Option<LabError>), LabError> {
        let plan = self.field.plan;
        let curve = self.curve()?;
        let limit = |place: usize| curve.get(place).map(|point| point.limit.get());
        let knee = curve::knee(&curve).map(|place| SizedKnee {
            limit: curve[place].limit.get(),
            between: (place.checked_sub(1).and_then(limit), limit(place + 1)),
        });
        let finished = self.field.finished.load(Ordering::Relaxed);
        let not_kept = self.field.not_kept.lock().expect("no panic holds it").take();
        let interrupted = self.stopped.then_some(LabError::Interrupted { finished, total: self.planned });
        let mut sized = Sized {
            trace: plan.name(),
            holds: notes::holds(&self.field),
            kernel: plan.kernel.to_string(),
            machine: format!("{}, {} of memory", plan.machine, self.field.mem),
            seeds: plan.seeds.clone(),
            one_in: plan.sample,
            held: self.held.get(),
            targets: plan.targets.clone(),
            slowdown_of: Some(self.target.slowdown_of.clone()),
            points: self.points()?,
            resolution: plan.limits.is_none().then_some(plan.resolution),
            knee,
            notes: notes::notes(&self.field, self.advice.as_ref(), interrupted.is_some()),
            advice: self.advice,
            checked: self.checked,
            verified: self.verified,
            command: plan.command(),
            runs: finished,
        };
        sized.notes.extend(self.not_verified);
        Ok((sized, interrupted.or(not_kept)))
    }
}
