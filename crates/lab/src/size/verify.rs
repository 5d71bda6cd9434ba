//! Three points of the curve on a real kernel: the knee, one below it and one above.
//!
//! What runs there is the same trace in a cgroup with the same `memory.max`; a trace of requests becomes one of a
//! program that makes them. Run times compare a modelled disk with a real one, hits and refaults do not depend on it
//! as much. Left out: more than one run of each point, and other kernels than one at a time.

use report::VerifiedPoint;
use units::Bytes;
use workload::limits::Limits;

use super::measured::point;
use super::{Search, curve};
use crate::batch::{Control, run_all};
use crate::error::LabError;
use crate::planned::PlannedRun;
use crate::real::{self, HostPolicy};
use crate::{program, program_file};

/// How far from the knee the others are at least.
const APART: f64 = 1.25;
/// What a guest has besides the limit: its kernel, and pages that it frees late.
const GUEST_MORE: u64 = 512 << 20;

impl Search<'_> {
    /// Runs them, and puts them beside the model's.
    pub(super) fn verify(&self, backend: &str) -> Result<Vec<VerifiedPoint>, LabError> {
        let plan = self.field.plan;
        let chosen = self.chosen()?;
        let Some(most) = chosen.iter().map(|(_, limit)| *limit).max() else { return Ok(Vec::new()) };
        let trace = match program::is_one(&plan.trace) {
            true => program::read(&plan.trace)?,
            false => program_file::read_any(&plan.trace, &plan.options)?.into(),
        };
        let mem = Bytes((most.get() + GUEST_MORE).next_multiple_of(256 << 20));
        let like = plan.real_scenario(backend, mem)?;
        let mut like = program::scenario(&like, &plan.trace, &trace, Limits::default())?;
        let mut runs = Vec::new();
        for (what, limit) in &chosen {
            let limits = Limits { max: Some(*limit), ..Limits::default() };
            like = program::scenario(&like, &plan.trace, &trace, limits)?;
            runs.push(PlannedRun { label: format!("{what} {limit}"), scenario: like.clone() });
        }
        let policy = HostPolicy::default();
        real::check(&runs, &policy)?;
        let control = Control { stop: self.field.control.stop.clone(), host: policy, ..Control::default() };
        let recordings = run_all(&runs, 1, &control, |_, _| Ok(()))?.into_result()?;
        let pair = |((what, limit), real): ((&str, Bytes), recording::Recording)| {
            let target = measured_only(&self.target);
            let model = &self.limited[&limit];
            Ok(VerifiedPoint {
                what: what.to_owned(),
                model: point(Some(limit), &self.base, model, &target)?,
                real: point(Some(limit), &[], &[real], &target)?,
            })
        };
        chosen.into_iter().zip(recordings).map(pair).collect()
    }

    /// The knee, or what keeps the target, and those on both sides.
    fn chosen(&self) -> Result<Vec<(&'static str, Bytes)>, LabError> {
        let points = self.curve()?;
        let Some(middle) = curve::knee(&points).or_else(|| curve::enough(&points)) else {
            return Ok(Vec::new());
        };
        let at = points[middle].limit;
        let below = points.iter().rev().find(|point| point.limit.get() as f64 * APART <= at.get() as f64);
        let above = points.iter().find(|point| point.limit.get() as f64 >= at.get() as f64 * APART);
        let named = [("below", below), ("knee", points.get(middle)), ("above", above)];
        Ok(named.into_iter().filter_map(|(what, point)| Some((what, point?.limit))).collect())
    }
}

/// Nothing to judge: a real run has none without a limit beside it.
fn measured_only(target: &super::Target) -> super::Target {
    super::Target { limits: Vec::new(), slowdown_of: target.slowdown_of.clone() }
}
