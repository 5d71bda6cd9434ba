//! The grid of an experiment: the points beside its own at which its source measured, other values of one
//! parameter and other sizes of memory, for every kernel of a comparison.
//!
//! A point is run once however many tables it stands in, and the experiment's own point is the comparison
//! itself. Left out: what the tables look like, see `pagetide-report`. Neighbours: [`crate::name::experiment`] has
//! the layouts, [`crate::plan::compare`] asks.

use std::borrow::Borrow;

use recording::Recording;
use report::{Grid, GridKernel, GridLayout};
use workload::params::split_pair;
use workload::scenario::{Backend, Scenario};

use crate::error::LabError;
use crate::name::experiment::Experiment;
use crate::resolve::planned::PlannedRun;
use crate::resolve::request::{Request, Subject};
use crate::resolve::variant::{Variant, seeded};

/// The points of a grid that are not the comparison's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedGrid {
    layout: GridLayout,
    points: Vec<Point>,
}

/// One kernel with another value of the parameter, or with other memory.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Point {
    /// The place of its kernel among the variants.
    variant: usize,
    at: At,
    /// What its recordings are called.
    label: String,
    /// One for each seed.
    scenarios: Vec<Scenario>,
}

/// Where a point is in its kernel's tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    /// Number of a value of the parameter.
    Value(usize),
    /// Number of a size of memory.
    Mem(usize),
}

/// The grid of what `request` asks for, if its workload's experiment has one: `variants` are the kernels at the
/// experiment's own point. Who says what the grid varies, or where it runs, gets that point only.
///
/// # Errors
/// What [`Request::resolve`] reports of a point.
pub(crate) fn plan(
    request: &Request,
    variants: &[Variant],
    seeds: u64,
) -> Result<Option<PlannedGrid>, LabError> {
    let Some(layout) = layout(request, variants) else { return Ok(None) };
    let mut points = Vec::new();
    for (index, variant) in variants.iter().enumerate() {
        let own = &variant.scenarios[0];
        let asked = Request { kernel: own.kernel.as_ref().map(ToString::to_string), ..request.clone() };
        let values = layout.values.iter().enumerate().map(|(place, value)| {
            let pair = format!("{}={value}", layout.param);
            let params = asked.params.iter().cloned().chain([pair.clone()]).collect();
            (At::Value(place), pair, Request { params, ..asked.clone() })
        });
        let mems = layout.mems.iter().enumerate().map(|(place, &mem)| {
            (At::Mem(place), format!("mem={mem}"), Request { mem: Some(mem.to_owned()), ..asked.clone() })
        });
        for (at, differs, request) in values.chain(mems) {
            let scenario = request.resolve()?;
            // The experiment's own point is there already.
            if scenario != *own {
                let label = format!("{} {differs}", variant.label);
                points.push(Point { variant: index, at, label, scenarios: seeded(&scenario, seeds) });
            }
        }
    }
    Ok(Some(PlannedGrid { layout, points }))
}

fn layout(request: &Request, variants: &[Variant]) -> Option<GridLayout> {
    let Subject::Workload(name) = &request.subject else { return None };
    let experiment = Experiment::of(name)?;
    let layout = *experiment.grid?;
    let is_axis = |pair: &String| split_pair(pair).is_ok_and(|(name, _)| name == layout.param);
    let elsewhere = request.machine.as_ref().is_some_and(|machine| machine != experiment.machine);
    let simulated = |variant: &Variant| variant.scenarios.iter().all(|own| own.backend == Backend::Sim);
    let own = request.mem.is_none() && !request.params.iter().any(is_axis) && !elsewhere;
    (own && variants.iter().all(simulated)).then_some(layout)
}

impl PlannedGrid {
    /// The runs that the comparison does not make anyway.
    pub(crate) fn runs(&self) -> impl Iterator<Item = PlannedRun> + '_ {
        let of_point = |point: &Point| {
            let label = point.label.clone();
            let run =
                move |scenario: &Scenario| PlannedRun { label: label.clone(), scenario: scenario.clone() };
            point.scenarios.iter().map(run).collect::<Vec<_>>()
        };
        self.points.iter().flat_map(of_point)
    }

    /// The grid of a report: `own` are the recordings of `variants`, `others` those of [`PlannedGrid::runs`].
    pub(crate) fn report<'a, R: Borrow<Recording>>(
        &self,
        variants: &[Variant],
        own: &'a [Option<R>],
        others: &'a [Option<R>],
    ) -> Grid<'a> {
        let seeds = variants[0].scenarios.len();
        let kernel = |(index, variant): (usize, &Variant)| {
            // What no point of the grid holds is the comparison's own.
            let own = finished(&own[index * seeds..(index + 1) * seeds]);
            let mut by_value = vec![own.clone(); self.layout.values.len()];
            let mut by_mem = vec![own; self.layout.mems.len()];
            for (place, point) in self.points.iter().enumerate().filter(|(_, point)| point.variant == index) {
                let runs = finished(&others[place * seeds..(place + 1) * seeds]);
                match point.at {
                    At::Value(value) => by_value[value] = runs,
                    At::Mem(mem) => by_mem[mem] = runs,
                }
            }
            GridKernel { label: variant.label.clone(), by_value, by_mem }
        };
        Grid {
            layout: self.layout,
            kernels: variants.iter().enumerate().map(kernel).collect(),
            recordings: finished(own).into_iter().chain(finished(others)).collect(),
        }
    }
}

/// Those of `recordings` that there are.
pub(crate) fn finished<R: Borrow<Recording>>(recordings: &[Option<R>]) -> Vec<&Recording> {
    recordings.iter().flatten().map(Borrow::borrow).collect()
}

#[cfg(test)]
mod tests;
