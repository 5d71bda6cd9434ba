//! Three points of the curve on a real kernel: the knee, one below it and one above.
//!
//! What runs there is the same trace in a cgroup with the same `memory.max`; a trace of requests becomes one of a
//! program that makes them. Run times compare a modelled disk with a real one, hits and refaults do not depend on it
//! as much. Left out: more than one run of each point, and other kernels than one at a time.

use report::VerifiedPoint;
use units::Bytes;
use workload::limits::Limits;

use super::curve;
use super::measured::{Target, point};
use super::search::Search;
use crate::error::LabError;
use crate::resolve::planned::PlannedRun;
use crate::resolve::program_file::cut_unused;
use crate::resolve::{program, program_file};
use crate::run::batch::{Control, outcomes};
use crate::run::real::{self, HostPolicy};

/// How far from the knee the others are at least.
const APART: f64 = 1.25;
/// What a guest has besides the limit: its kernel, and pages that it frees late.
const GUEST_MORE: u64 = 512 << 20;

/// What was found there.
#[derive(Default)]
pub(super) struct Verified {
    pub(super) points: Vec<VerifiedPoint>,
    /// What a reader must know, a sentence each.
    pub(super) notes: Vec<String>,
}

impl Search<'_> {
    /// Runs them, and puts them beside the model's. A point that could not be run keeps no other from being shown: a
    /// note says why.
    pub(super) fn verify(&self, backend: &str) -> Result<Verified, LabError> {
        let plan = self.field.plan;
        let chosen = self.chosen()?;
        let Some(most) = chosen.iter().map(|(_, limit)| *limit).max() else { return Ok(Verified::default()) };
        let mut notes = Vec::new();
        let trace = match program::is_one(&plan.trace) {
            true => program::read(&plan.trace)?,
            false => {
                let mut trace = program_file::read_any(&plan.trace, &plan.options)?;
                notes.extend(cut_unused(&mut trace));
                trace.into()
            }
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
        let mut points = Vec::new();
        for ((what, limit), ended) in
            chosen.into_iter().zip(outcomes(&runs, 1, &control, true, |_, _| Ok(()))?)
        {
            if let Some(failure) = ended.failure() {
                notes.push(format!(
                    "{} could not be run on {backend}: {}",
                    named(what, limit),
                    first_line(failure)
                ));
            }
            let Some(real) = ended.recording() else { continue };
            let target = measured_only(&self.target);
            let model = &self.limited[&limit];
            points.push(VerifiedPoint {
                what: what.to_owned(),
                model: point(Some(limit), &self.base, model, &target)?,
                real: point(Some(limit), &[], std::slice::from_ref(real), &target)?,
            });
        }
        Ok(Verified { points, notes })
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

fn named(what: &str, limit: Bytes) -> String {
    match what {
        "knee" => format!("the knee, {limit},"),
        _ => format!("the point {what} it, {limit},"),
    }
}

/// Without the guest's console.
fn first_line(error: &LabError) -> String {
    error.to_string().lines().next().unwrap_or_default().to_owned()
}

/// Nothing to judge: a real run has none without a limit beside it.
fn measured_only(target: &Target) -> Target {
    Target { limits: Vec::new(), slowdown_of: target.slowdown_of.clone() }
}
