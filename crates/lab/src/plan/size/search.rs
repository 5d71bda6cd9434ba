//! The runs of a size so far, and the curve that they make. `size.rs` goes on from here.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use recording::Recording;
use report::{OtherDisk, Practice, ProgramCheck, SampleCheck, SizedPoint, VerifiedPoint};
use units::Bytes;
use workload::limits::{GROUP, Limits};

use super::control::SizeProgress;
use super::curve::Point;
use super::measured::{Target, hit_ratio, point};
use super::plan::LIMIT_LEAST;
use super::runs::{Field, Run};
use crate::error::LabError;

/// The search for the curve, with what has finished of it.
pub(super) struct Search<'a> {
    pub(super) field: Field<'a>,
    /// Without a limit, for each seed.
    pub(super) base: Vec<Recording>,
    /// By limit, for each seed.
    pub(super) limited: BTreeMap<Bytes, Vec<Recording>>,
    pub(super) target: Target,
    /// The most that it holds where nothing limits it.
    pub(super) held: Bytes,
    pub(super) planned: usize,
    /// With what is recommended set.
    pub(super) advice: Option<report::Advice>,
    pub(super) checked: Vec<SampleCheck>,
    pub(super) verified: Option<(String, Vec<VerifiedPoint>)>,
    /// Runs of the program itself.
    pub(super) program: Option<ProgramCheck>,
    /// What there is to say of the disk.
    pub(super) disk: Option<String>,
    /// What people set today.
    pub(super) practices: Vec<Practice>,
    /// What is enough on other disks.
    pub(super) other_disks: Vec<OtherDisk>,
    /// What must be known of that.
    pub(super) not_verified: Vec<String>,
    /// Why the program was not run itself.
    pub(super) not_checked: Option<LabError>,
    pub(super) stopped: bool,
}

/// The most that the group held at a sample.
fn most_held(run: &Recording) -> u64 {
    let current = run.series.column(&format!("cg_{GROUP}_current")).unwrap_or_default();
    current.into_iter().max().unwrap_or(0)
}

impl<'a> Search<'a> {
    /// Runs it without a limit; so many runs were planned before.
    pub(super) fn begin(field: Field<'a>, planned: usize) -> Result<Self, LabError> {
        let target = field.plan.target.clone();
        let mut search = Self {
            field,
            base: Vec::new(),
            limited: BTreeMap::new(),
            target,
            held: Bytes(0),
            planned,
            advice: None,
            checked: Vec::new(),
            verified: None,
            program: None,
            disk: None,
            practices: Vec::new(),
            other_disks: Vec::new(),
            not_verified: Vec::new(),
            not_checked: None,
            stopped: false,
        };
        let Some(base) = search.runs(&[Limits::default()], false)?.pop().flatten() else {
            return Err(LabError::Interrupted { finished: 0, total: 1 });
        };
        if base.iter().any(|run| run.metrics.is_empty()) {
            return Err(LabError::refused(
                "without a limit the OOM killer ended the run",
                "give the machine more memory with `--mem`",
            ));
        }
        let pages =
            base.iter().filter_map(|run| run.metrics.get("pages_held")).fold(0.0, |a, &b| f64::max(a, b));
        let at_end = pages as u64 * units::PAGE_SIZE;
        search.held = Bytes(base.iter().map(most_held).fold(at_end, u64::max));
        search.base = base;
        // A target on a name that no run has is told before the others.
        search.target.is_kept(&search.base, &search.base)?;
        Ok(search)
    }

    /// Runs each of these limits with all seeds; nothing where a seed was stopped.
    pub(super) fn runs(
        &mut self,
        limits: &[Limits],
        whole: bool,
    ) -> Result<Vec<Option<Vec<Recording>>>, LabError> {
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
    pub(super) fn add(&mut self, limits: &[Bytes]) -> Result<(), LabError> {
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

    /// The least limit of a run.
    pub(super) fn least(&self) -> Bytes {
        Bytes(LIMIT_LEAST.get() * u64::from(self.field.plan.sample.unwrap_or(1)))
    }

    /// Limits with their hits: the worst seed's, and only where all seeds lived.
    pub(super) fn curve(&self) -> Result<Vec<Point>, LabError> {
        let mut points = Vec::with_capacity(self.limited.len());
        for (&limit, runs) in &self.limited {
            let hits = runs.iter().map(|run| hit_ratio(run).unwrap_or(0.0)).fold(f64::MAX, f64::min);
            let is_enough = self.target.limits.is_empty() || self.target.is_kept(&self.base, runs)?;
            points.push(Point { limit, hits, is_enough });
        }
        Ok(points)
    }

    /// The same limits on all of the trace.
    pub(super) fn check_sample(&mut self) -> Result<(), LabError> {
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

    pub(super) fn points(&self) -> Result<Vec<SizedPoint>, LabError> {
        let limited = self.limited.iter().map(|(&limit, runs)| (Some(limit), runs));
        let all = limited.chain([(None, &self.base)]);
        all.map(|(limit, runs)| point(limit, &self.base, runs, &self.target)).collect()
    }
}
