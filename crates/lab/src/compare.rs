//! Comparisons: one workload on several kernels with several seeds.
//!
//! The first kernel is the baseline. Left out: recordings made earlier, see [`crate::folders`]; how
//! a comparison is judged and shown, see `pagetide-stats` and `pagetide-report`.

use recording::Recording;
use report::Group;
use sim::machines::GUEST;
use workload::scenario::{Backend, SEED_DEFAULT, Scenario};

use crate::batch::PlannedRun;
use crate::error::LabError;
use crate::experiment::Experiment;
use crate::resolve::{GuestRequest, Request, Subject, command, machine_spec};

/// Seeds that one comparison takes at most: more runs than that are a mistake.
pub const SEEDS_MAX: u64 = 10_000;

/// One column of a comparison before it has run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variant {
    /// What the column is called.
    pub label: String,
    /// The command that makes its runs again.
    pub command: String,
    /// Its runs, one for each seed.
    pub scenarios: Vec<Scenario>,
}

/// The runs of several kernels with the same seeds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Comparison {
    /// The kernels, the baseline first.
    pub variants: Vec<Variant>,
    /// What was assumed to make them comparable, a sentence each; nobody asked for it in so many words.
    pub assumed: Vec<String>,
}

/// Resolves `request` for each of `kernels` and each of `seeds` seeds from the request's own on.
/// Without kernels it is the source's own before and after.
///
/// With `backends`, every kernel is simulated if `sim` is among them, and each real backend is one
/// variant more. Where kernels are not named, the simulated ones are the models of the real ones:
/// `linux-6.12` for `vm:6.12`, the newest for the host. Where no machine is named, a guest is compared
/// with the machine that stands for it.
///
/// # Errors
/// What [`Request::resolve`] reports; fewer than two variants, one of them twice, no seeds.
pub fn plan(
    request: &Request,
    kernels: &[String],
    backends: &[String],
    seeds: u64,
) -> Result<Comparison, LabError> {
    let parsed = backends.iter().map(|text| text.parse().map_err(LabError::from));
    let mut backends: Vec<Backend> = parsed.collect::<Result<_, _>>()?;
    // What is said of a guest has to fit one of the backends, not each.
    let is_guest = |backend: &Backend| matches!(backend, Backend::Vm(_));
    // Nor would it be a comparison if the model were another machine, or had more memory.
    let mut request = request.clone();
    let has_guest = backends.iter().any(is_guest) && matches!(request.subject, Subject::Workload(_));
    let stands_for_guest = has_guest && request.machine.is_none();
    if has_guest {
        request.machine.get_or_insert_with(|| GUEST.to_owned());
        let guest_mem = || machine_spec(GUEST).default_mem.to_string();
        request.mem.get_or_insert_with(guest_mem);
    }
    // A machine that is named is for what is simulated: a guest is what it is.
    let machine = if has_guest { None } else { request.machine.clone() };
    let of_guest = &Request { machine, ..request.clone() };
    let without_guest = &Request { guest: GuestRequest::default(), ..request.clone() };
    let first = match backends.iter().find(|backend| is_guest(backend)) {
        Some(guest) => Request { backend: Some(guest.to_string()), ..of_guest.clone() }.resolve()?,
        None => request.resolve()?,
    };
    if !(1..=SEEDS_MAX).contains(&seeds) {
        return Err(LabError::Seeds { seeds, max: SEEDS_MAX });
    }
    if backends.is_empty() {
        backends.push(first.backend.clone());
    }
    let models: Vec<Option<String>> = match kernels {
        [] if backends == [Backend::Sim] => {
            default_kernels(first.workload.name())?.into_iter().map(Some).collect()
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
        let own = [model_of(backend)];
        for kernel in if *backend == Backend::Sim { &models[..] } else { &own[..] } {
            let kernel = kernel.clone().or_else(|| request.kernel.clone());
            let asked = if is_guest(backend) { of_guest } else { without_guest };
            let backend = Some(backend.to_string());
            let scenario = Request { kernel, backend, ..asked.clone() }.resolve()?;
            let label = label(&scenario);
            if variants.iter().any(|variant| variant.label == label) {
                return Err(LabError::SameKernel(label));
            }
            variants.push(variant(label, &scenario, seeds));
        }
    }
    match &variants[..] {
        [only] => Err(LabError::OneKernel(only.label.clone())),
        _ => {
            let assumed = if stands_for_guest { assumed_machine(&variants) } else { None };
            Ok(Comparison { variants, assumed: assumed.into_iter().collect() })
        }
    }
}

/// Says on which machine the simulated variants run because a guest is among the others, and where
/// that guest is of another shape; nothing when none is simulated.
fn assumed_machine(variants: &[Variant]) -> Option<String> {
    let mut scenarios = variants.iter().flat_map(|variant| variant.scenarios.first());
    scenarios.clone().find(|scenario| scenario.backend == Backend::Sim)?;
    let real = scenarios.find(|scenario| scenario.guest.is_some())?;
    let spec = machine_spec(GUEST);
    let mut text = format!(
        "assumed: machine {GUEST} for what is simulated, as it is compared with {}; `--machine` names another",
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

/// What a run is called: the simulated kernel, or where it runs and what is special there.
pub fn label(scenario: &Scenario) -> String {
    let differences = scenario.guest.map(|guest| guest.differences()).unwrap_or_default();
    match &scenario.backend {
        Backend::Sim => scenario.kernel.to_string(),
        real if differences.is_empty() => real.to_string(),
        real => format!("{real},{differences}"),
    }
}

/// The model of the kernel that a real backend runs, as far as its name tells.
fn model_of(backend: &Backend) -> Option<String> {
    match backend {
        Backend::Vm(version) if !version.contains('/') => {
            let mut numbers = version.split(['.', '-']);
            let (major, minor) = (numbers.next()?, numbers.next()?);
            let name = format!("linux-{major}.{minor}");
            mm::Kernel::parse(&name).ok().map(|kernel| kernel.name)
        }
        _ => None,
    }
}

fn default_kernels(workload: &str) -> Result<Vec<String>, LabError> {
    let experiment =
        Experiment::of(workload).ok_or_else(|| LabError::NoDefaultKernels(workload.to_owned()))?;
    Ok(experiment.kernels.iter().map(|&kernel| kernel.to_owned()).collect())
}

fn variant(label: String, scenario: &Scenario, seeds: u64) -> Variant {
    let first = scenario.seed.0;
    let seeded = |offset: u64| Scenario { seed: units::Seed(first.wrapping_add(offset)), ..scenario.clone() };
    let command = match seeds {
        1 => command(scenario),
        _ => {
            let unseeded = command(&Scenario { seed: SEED_DEFAULT, ..scenario.clone() });
            let last = first.wrapping_add(seeds - 1);
            format!("for seed in $(seq {first} {last}); do {unseeded} --seed $seed; done")
        }
    };
    Variant { label, command, scenarios: (0..seeds).map(seeded).collect() }
}

impl Comparison {
    /// All runs: variant after variant, seed after seed.
    pub fn runs(&self) -> Vec<PlannedRun> {
        let runs_of = |variant: &Variant| {
            let label = variant.label.clone();
            let run =
                move |scenario: &Scenario| PlannedRun { label: label.clone(), scenario: scenario.clone() };
            variant.scenarios.iter().map(run).collect::<Vec<_>>()
        };
        self.variants.iter().flat_map(runs_of).collect()
    }

    /// The columns of a report on `recordings`, which are those of [`Comparison::runs`]. A variant
    /// of which no run finished has no column.
    ///
    /// # Panics
    /// When there is not one entry for each run.
    pub fn groups<'a>(&self, recordings: &'a [Option<Recording>]) -> Vec<Group<'a>> {
        let mut rest = recordings;
        let mut groups = Vec::new();
        for variant in &self.variants {
            let (own, others) = rest.split_at(variant.scenarios.len());
            rest = others;
            let recordings: Vec<&Recording> = own.iter().flatten().collect();
            if !recordings.is_empty() {
                let (label, command) = (variant.label.clone(), variant.command.clone());
                groups.push(Group { label, command, recordings });
            }
        }
        assert!(rest.is_empty(), "there are more recordings than runs");
        groups
    }
}
