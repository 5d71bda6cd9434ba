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
//! | `size/search.rs` | what has run so far, and the curve that it makes |
//! | `size/curve.rs` | the knee, what is enough, and which limit to run next |
//! | `size/disks.rs` | the disk that it is for, and what another one would change |
//! | `size/measured.rs` | what a limit came to, and whether it keeps the target |
//! | `size/advice.rs` | what to set |
//! | `size/verify.rs` | three points on a real kernel |
//! | `size/by_program.rs` | the program itself at limits, and what that corrects |
//! | `size/bracket.rs` | which limit it is run at next |
//! | `size/practice.rs` | what people set today, and what it would cost |
//! | `size/own_cache.rs` | one command with own caches of several sizes |
//! | `size/patches.rs` | which patches are wanted |
//! | `size/watched.rs` | what a series of a container's memory says, without a trace |
//! | `size/notes.rs` | what a reader must know |
//!
//! Left out: how it is shown (`pagetide-report`, `size`).

mod advice;
mod bracket;
mod by_program;
mod control;
mod curve;
mod disks;
mod measured;
mod notes;
mod own_cache;
mod patches;
mod plan;
mod practice;
mod runs;
mod search;
mod verify;
mod watched;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use report::{Sized, SizedKnee};
use trace::Trace;
use trace::info::TraceInfo;
use trace::requests::{TraceError, TraceReader};
use workload::limits::Limits;
use workload::replay::{Held, Sample, Timing};

pub use control::{SizeControl, SizeProgress};
pub use own_cache::{OwnCachePlan, OwnCacheRequest};
pub use patches::patches;
pub use plan::{POINTS_MAX, POINTS_MIN, SizePlan, SizeRequest, VERIFY_DEFAULT};
pub use watched::{WatchedRequest, is_watched};

use crate::error::LabError;
use crate::known::likeness::known_of_trace;
use crate::plan::replay::Input;
use crate::resolve::program;
use plan::{LARGER_SAMPLE, Verify};
use runs::{Field, Source};
use search::Search;

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
            let trace = self.program_trace()?;
            let disks::OnDisk { plan, told, beside } = self.on_its_disk(trace.as_deref())?;
            let source = plan.source(trace, control)?;
            let field = Field::new(&plan, control, source, out)?;
            let mut search = Search::begin(field, 0)?;
            search.disk = told;
            search.run()?;
            search.practices()?;
            search.other_disks(&beside)?;
            search.check()?;
            search.result()
        })
    }

    /// The trace of a program, if it is one, told by its content.
    fn program_trace(&self) -> Result<Option<Arc<Trace>>, LabError> {
        if self.reads_stdin() || !program::is_one(&self.trace) {
            return Ok(None);
        }
        self.check_program()?;
        program::read(&self.trace).map(Some)
    }

    /// That, or a trace of requests.
    fn source(&self, trace: Option<Arc<Trace>>, control: &SizeControl) -> Result<Source, LabError> {
        let Some(trace) = trace else { return self.read(control) };
        let like = self.program_scenario()?;
        let like = Box::new(program::scenario(&like, &self.trace, &trace, Limits::default())?);
        Ok(Source::Program { info: Box::new(TraceInfo::of(&trace)), trace, like })
    }

    /// A trace of requests, and a sample of it for each seed; none of what is not run.
    fn read(&self, control: &SizeControl) -> Result<Source, LabError> {
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
            let message = "the sample has none of the trace's requests";
            return Err(LabError::refused(message, LARGER_SAMPLE));
        }
        Ok(Source::Requests { whole, samples, format, id: source.id() })
    }
}

impl Search<'_> {
    /// Runs it at the limits that were asked for, or at those that tell most; then what is recommended.
    fn run(&mut self) -> Result<(), LabError> {
        let plan = self.field.plan;
        match &plan.limits {
            Some(limits) => self.add(&limits.clone())?,
            None => {
                let least = self.least();
                let top = curve::above(self.held);
                if top <= least {
                    let (trace, held) = (plan.trace.display(), self.held);
                    let hint = match plan.sample {
                        Some(_) => LARGER_SAMPLE,
                        None => "capture more of the program, or give limits by `--limits`",
                    };
                    return Err(LabError::refused(
                        format!(
                            "`{trace}` uses {held} of memory, and a run cannot be limited to less than {least}"
                        ),
                        hint,
                    ));
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
        Ok(())
    }

    /// Has somebody else say whether it is so, if that was asked for.
    fn check(&mut self) -> Result<(), LabError> {
        let plan = self.field.plan;
        if self.stopped {
            return Ok(());
        }
        match &plan.verify {
            None => {}
            Some(Verify::Program) => self.check_by_program()?,
            Some(Verify::Replay(backend)) => {
                let verified = self.verify(backend)?;
                self.verified = Some((backend.clone(), verified.points));
                self.not_verified = verified.notes;
            }
        }
        Ok(())
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
            known: Some(known_of_trace(&plan.kernel.to_string())),
            checked: self.checked,
            verified: self.verified,
            program: self.program,
            practices: self.practices,
            other_disks: self.other_disks,
            patches: plan.patches.clone(),
            command: plan.command(),
            runs: finished,
        };
        sized.notes.splice(0..0, self.disk);
        sized.notes.extend(self.not_verified);
        Ok((sized, interrupted.or(not_kept).or(self.not_checked)))
    }
}
