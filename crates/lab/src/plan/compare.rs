//! Comparisons: one workload on several kernels with several seeds.
//!
//! The first kernel is the baseline. Left out: recordings made earlier, see [`crate::keep::folders`]; how
//! a comparison is judged and shown, see `pagetide-stats` and `pagetide-report`.

#[cfg(unix)]
mod folder;

use std::borrow::Borrow;

use recording::Recording;
use report::{Grid, Group};
use workload::KernelSpec;
use workload::scenario::{Backend, Scenario, check_kernel, is_guest_machine};

use crate::error::LabError;
use crate::name::experiment::Experiment;
use crate::name::names::Names;
use crate::plan::grid::{self, PlannedGrid, finished};
use crate::resolve::defaults::guest_mem;
use crate::resolve::planned::PlannedRun;
use crate::resolve::request::{GuestRequest, Request};
use crate::resolve::setting::machine_spec;
use crate::resolve::texts::{first_twice, kernel_named, listed};
use crate::resolve::variant::{Variant, label, variant};

/// Seeds that one comparison takes at most: more runs than that are a mistake.
pub const SEEDS_MAX: u64 = 10_000;

/// The runs of several kernels with the same seeds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Comparison {
    /// The kernels, the baseline first.
    pub variants: Vec<Variant>,
    /// What was assumed to make them comparable, or applies to some only: a sentence each.
    pub assumed: Vec<String>,
    /// Further points of the workload's experiment, if it has any and nobody chose one.
    pub grid: Option<PlannedGrid>,
}

/// Resolves `request` for each of `kernels` and each of `seeds` seeds from the request's own on.
/// Without kernels it is the source's own before and after.
///
/// With `backends`, every kernel is simulated if `sim` is among them, and each real backend is one
/// variant more. Where kernels are not named, the simulated ones are the models of the real ones:
/// `linux-6.12` for `vm:6.12`, the newest for the host. What a real kernel does not leave to choose is
/// for the simulated side, and refused where there is none. Where no machine is named, a guest is
/// compared with the machine that stands for it.
///
/// # Errors
/// What [`Request::resolve`] reports; fewer than two variants, one of them twice, no seeds.
pub fn plan(
    request: &Request,
    kernels: &[String],
    backends: &[String],
    seeds: u64,
) -> Result<Comparison, LabError> {
    let mut backends = distinct(backends)?;
    let simulated = backends.contains(&Backend::Sim);
    let guest = backends.iter().find(|backend| backend.is_guest()).cloned();
    let sides = Sides { request, kernels, simulated, guest };
    let first = match sides.guest.as_ref().or(backends.first()) {
        Some(backend) => sides.of(backend).0.resolve()?,
        None => request.resolve()?,
    };
    if !(1..=SEEDS_MAX).contains(&seeds) {
        return Err(LabError::seeds(seeds, SEEDS_MAX));
    }
    if backends.is_empty() {
        backends.push(first.backend.clone());
    }
    let mut assumed = Vec::new();
    let models: Vec<Option<String>> = match kernels {
        [] if backends == [Backend::Sim] => {
            let compared = default_kernels(first.workload.name())?;
            assumed.extend(left_out(request, &first, &compared));
            compared.into_iter().map(Some).collect()
        }
        [] => {
            let mut models: Vec<_> = backends.iter().filter(|b| **b != Backend::Sim).map(model_of).collect();
            models.dedup();
            models
        }
        kernels => kernels.iter().cloned().map(Some).collect(),
    };
    let mut variants: Vec<Variant> = Vec::new();
    for backend in &backends {
        let (asked, in_vain) = sides.of(backend);
        assumed.extend(in_vain);
        let own = [None];
        for kernel in if *backend == Backend::Sim { &models[..] } else { &own[..] } {
            let kernel = kernel.clone().or_else(|| asked.kernel.clone());
            let (scenario, told) = Request { kernel, ..asked.clone() }.resolve_telling()?;
            assumed.extend(told);
            let label = label(&scenario);
            if variants.iter().any(|variant| variant.label == label) {
                return Err(LabError::same_kernel(&label));
            }
            variants.push(variant(label, &scenario, seeds));
        }
        if *backend != Backend::Sim && !sides.simulated {
            // Nobody else is there whom they could be for.
            for kernel in kernels {
                Request { kernel: Some(kernel.clone()), ..asked.clone() }.resolve()?;
            }
        }
    }
    match &variants[..] {
        [only] => Err(nothing_beside(only)),
        _ => {
            if sides.guest_stands_for_machine() {
                assumed.extend(assumed_machine(&variants));
            }
            let grid = grid::plan(request, &variants, seeds)?;
            Ok(Comparison { variants, assumed, grid })
        }
    }
}

/// What is to be said of the kernel of a scenario file that is none of those compared.
fn left_out(request: &Request, first: &Scenario, compared: &[String]) -> Option<String> {
    let own = first.kernel.as_ref().filter(|_| !request.subject.is_workload())?.to_string();
    let told = || format!("`{own}` of the file is none of those compared, {}", compared.join(" and "));
    (!compared.contains(&own)).then(told)
}

fn nothing_beside(only: &Variant) -> LabError {
    let hint = match only.scenarios[0].backend {
        Backend::Sim => "name a second one with `--kernel`",
        _ => "name a second one with `--on`, such as `--on sim`",
    };
    LabError::refused(format!("there is only `{}`: nothing to compare it with", only.label), hint)
}

fn distinct(backends: &[String]) -> Result<Vec<Backend>, LabError> {
    let parsed = backends.iter().map(|text| text.parse().map_err(LabError::from));
    let backends: Vec<Backend> = parsed.collect::<Result<_, _>>()?;
    match first_twice(&backends) {
        Some(twice) => Err(LabError::twice("--on", twice)),
        None => Ok(backends),
    }
}

/// What is asked of each side of a comparison.
struct Sides<'a> {
    request: &'a Request,
    kernels: &'a [String],
    /// Whether one of the sides is simulated.
    simulated: bool,
    /// The first of them that is a guest.
    guest: Option<Backend>,
}

impl Sides<'_> {
    /// Whether what is simulated runs on the guest's machine without anybody having named it.
    fn guest_stands_for_machine(&self) -> bool {
        self.guest.is_some() && self.request.machine.is_none() && self.request.subject.is_workload()
    }

    /// The request for `backend`, and a sentence on what is for the simulated side only. What is said
    /// of a guest has to fit one of the sides, not each.
    fn of(&self, backend: &Backend) -> (Request, Option<String>) {
        let mut asked = Request { backend: Some(backend.to_string()), ..self.request.clone() };
        if self.guest.is_some() && !backend.is_guest() {
            asked.guest = GuestRequest::default();
        }
        if let (Backend::Sim, Some(guest), true) = (backend, &self.guest, asked.subject.is_workload()) {
            // It would be no comparison if the model were another machine, or had more memory.
            let machine = guest.guest_machine().expect("it is a guest");
            asked.machine.get_or_insert_with(|| machine.to_owned());
            asked.mem.get_or_insert_with(|| guest_mem(guest).to_string());
        }
        if !self.simulated || *backend == Backend::Sim {
            return (asked, None);
        }
        let mut others = Vec::new();
        let kernels: Vec<_> = self.kernels.iter().cloned().chain(asked.kernel.take()).collect();
        let named = kernels.iter().filter_map(|text| kernel_named(text, &Names::default()).ok());
        let named: Vec<_> = named.collect();
        match &named[..] {
            // What its name says of the guest, too.
            [only] if backend.is_guest() && check_kernel("", only, backend).is_ok() => {
                asked.kernel = Some(only.to_string());
            }
            // A guest is one variant: it cannot have a feature and not have it.
            several => {
                let is_other = |kernel: &KernelSpec| {
                    check_kernel("", kernel, backend).is_err() || !kernel.features.is_empty()
                };
                if several.iter().any(is_other) {
                    others.push("--kernel");
                }
            }
        }
        if asked.machine.take_if(|machine| !is_guest_machine(machine, backend)).is_some() {
            others.push("--machine");
        }
        if *backend == Backend::Host && asked.mem.take().is_some() {
            others.push("--mem");
        }
        let told = listed(&others)
            .map(|options| format!("`{backend}` is what it is: {options} for the simulated side only"));
        (asked, told)
    }
}

/// Says on which machine the simulated variants run because a guest is among the others, and where
/// that guest is of another shape; nothing when none is simulated.
fn assumed_machine(variants: &[Variant]) -> Option<String> {
    let mut scenarios = variants.iter().flat_map(|variant| variant.scenarios.first());
    scenarios.clone().find(|scenario| scenario.backend == Backend::Sim)?;
    let real = scenarios.find(|scenario| scenario.guest.is_some())?;
    let machine = real.backend.guest_machine()?;
    let spec = machine_spec(machine);
    let mut text = format!(
        "assumed: machine {machine} for what is simulated, as it is compared with {}; `--machine` names another",
        real.backend
    );
    if let Some(guest) = real.guest.filter(|g| (g.cpus, g.numa_nodes) != (spec.cpus, spec.nodes)) {
        text += &format!(
            " (it has {} CPUs and {} node, the guest {} and {})",
            spec.cpus, spec.nodes, guest.cpus, guest.numa_nodes
        );
    }
    Some(text)
}

/// The model of the kernel that a real backend runs, as far as its name tells.
pub(crate) fn model_of(backend: &Backend) -> Option<String> {
    match backend {
        Backend::Vm(version) | Backend::Uml(version) if !version.contains('/') => {
            let mut numbers = version.split(['.', '-']);
            let (major, minor) = (numbers.next()?, numbers.next()?);
            let name = format!("linux-{major}.{minor}");
            mm::Version::parse(&name).ok().map(|kernel| kernel.name)
        }
        _ => None,
    }
}

fn default_kernels(workload: &str) -> Result<Vec<String>, LabError> {
    let experiment = Experiment::of(workload).ok_or_else(|| {
        let message = format!("`{workload}` has no kernels of its own to compare");
        LabError::refused(message, "name two or more with `--kernel`")
    })?;
    Ok(experiment.kernels.iter().map(|&kernel| kernel.to_owned()).collect())
}

impl Comparison {
    /// All runs: variant after variant, seed after seed; then those of the grid.
    pub fn runs(&self) -> Vec<PlannedRun> {
        let runs_of = |variant: &Variant| {
            let label = variant.label.clone();
            let run =
                move |scenario: &Scenario| PlannedRun { label: label.clone(), scenario: scenario.clone() };
            variant.scenarios.iter().map(run).collect::<Vec<_>>()
        };
        let of_grid = self.grid.iter().flat_map(PlannedGrid::runs);
        self.variants.iter().flat_map(runs_of).chain(of_grid).collect()
    }

    /// How many of the runs are those of variants.
    fn own_runs(&self) -> usize {
        self.variants.iter().map(|variant| variant.scenarios.len()).sum()
    }

    /// The grid of a report on `recordings`, which are those of [`Comparison::runs`], if there is one.
    pub fn grid<'a, R: Borrow<Recording>>(&self, recordings: &'a [Option<R>]) -> Option<Grid<'a>> {
        let (own, others) = recordings.split_at(self.own_runs());
        self.grid.as_ref().map(|grid| grid.report(&self.variants, own, others))
    }

    /// The columns of a report on `recordings`, which are those of [`Comparison::runs`]. A variant
    /// of which no run finished has no column.
    ///
    /// # Panics
    /// When there is not one entry for each run.
    pub fn groups<'a, R: Borrow<Recording>>(&self, recordings: &'a [Option<R>]) -> Vec<Group<'a>> {
        let (mut rest, of_grid) = recordings.split_at(self.own_runs());
        let mut groups = Vec::new();
        for variant in &self.variants {
            let (own, others) = rest.split_at(variant.scenarios.len());
            rest = others;
            let recordings = finished(own);
            if !recordings.is_empty() {
                let (label, command) = (variant.label.clone(), variant.command.clone());
                groups.push(Group { label, command, recordings });
            }
        }
        let others = self.grid.as_ref().map_or(0, |grid| grid.runs().count());
        assert_eq!(of_grid.len(), others, "there is not one recording for each run");
        groups
    }
}
