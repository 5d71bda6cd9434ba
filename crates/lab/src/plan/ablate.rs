//! Ablations: one workload on every kernel between one and another that differs from it in some features.
//!
//! Each feature that is named is switched on the base kernel: taken away where the base has it, added where
//! it does not. Every subset of these changes is a kernel, and every kernel runs with the same seeds, so that
//! effects are exact differences of runs that saw the same. A run is the one that `pagetide run` with that
//! kernel and seed makes: same scenario, same label, same recording. Runs and their folder are those of a
//! sweep ([`crate::plan::sweep`]); what effects are is said in `pagetide-stats`, how they look in `pagetide-report`.
//!
//! Left out: fractions of all subsets, and changes of anything else than features; real kernels, as features
//! are the simulator's.

use mm::version::feature::Feature;
use report::{Ablated, AblatedRun, Subset, View};
use workload::scenario::{Backend, Scenario};
use workload::{KernelSpec, UnknownName, WorkloadSpec};

use crate::error::LabError;
use crate::name::experiment::Experiment;
use crate::name::names::Names;
use crate::plan::compare::SEEDS_MAX;
use crate::plan::replay::Outcomes;
use crate::plan::sweep::{Axis, RUNS_MAX, SweepPlan, SweepRun, Swept};
use crate::resolve::kernel_name::version_of;
use crate::resolve::planned::PlannedRun;
use crate::resolve::request::{Request, Subject};
use crate::resolve::texts::{kernel_named, listed};
use crate::resolve::variant::{self, Variant};
use crate::run::batch::Ended;

pub use crate::resolve::planned::FEATURES_MAX;

/// A feature that is switched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Factor {
    /// The feature.
    pub feature: Feature,
    /// Whether the change adds it; otherwise it takes it away.
    pub added: bool,
}

impl std::fmt::Display for Factor {
    /// As in the name of a kernel: `+root-aging`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}{}", if self.added { '+' } else { '-' }, self.feature)
    }
}

/// An ablation that can run: all kernels of all subsets are checked.
#[derive(Debug, Clone)]
pub struct Ablation {
    /// What is switched, in the order in which it was named.
    pub factors: Vec<Factor>,
    /// A kernel for each subset: in number `i`, factor `f` is changed if bit `f` of `i` is set. Number 0 is
    /// the base.
    pub variants: Vec<Variant>,
    /// The runs: seed after seed, in each the kernels in their order, so that an interruption leaves whole
    /// experiments.
    pub plan: SweepPlan,
}

/// Resolves `request` for each subset of the features that `named` lists (`a,-b,+c`), and for each of `seeds`
/// seeds from the request's own on. Where no kernel is named the base is the baseline of the workload's
/// source, or the newest.
///
/// # Errors
/// No features, too many, one twice or unknown; a sign that does not fit the base; features of which a subset
/// is no kernel; a real backend; what [`Request::resolve`] reports.
pub fn plan(request: &Request, named: &[String], seeds: u64) -> Result<Ablation, LabError> {
    if let Some(backend) = request.backend.as_ref().filter(|backend| *backend != "sim") {
        backend.parse::<Backend>()?;
        return Err(not_simulated(backend));
    }
    let names: Vec<&str> = named
        .iter()
        .flat_map(|list| list.split(','))
        .map(str::trim)
        .filter(|name| !name.is_empty())
        .collect();
    if names.is_empty() {
        let hint =
            "name some, as in `--features root-aging,shared-memcg-walk`; `pagetide list features` has all";
        return Err(LabError::refused("there is nothing to ablate: no feature is named", hint));
    }
    if names.len() > FEATURES_MAX {
        let (count, kernels) = (names.len(), 1_u128 << names.len().min(127));
        return Err(LabError::refused(
            format!(
                "{count} features make {kernels} kernels; an ablation takes {FEATURES_MAX} features at most"
            ),
            "ablate some of them first, then those that matter together",
        ));
    }
    let base = base(request)?;
    let own = base.kernel.as_ref().expect("a simulated run has a kernel");
    let factors = factors(own, &names)?;
    let specs = subsets(own, &factors)?;
    if !(1..=SEEDS_MAX).contains(&seeds) {
        return Err(LabError::seeds(seeds, SEEDS_MAX));
    }
    let kernels = specs.len();
    let count = u128::from(seeds) * kernels as u128;
    if count > RUNS_MAX as u128 {
        return Err(LabError::refused(
            format!(
                "{kernels} kernels with {seeds} seeds make {count} runs; an ablation takes {RUNS_MAX} at most"
            ),
            "take fewer seeds or features",
        ));
    }
    let variant = |spec: &KernelSpec| {
        let own = Request { kernel: Some(spec.to_string()), ..request.clone() };
        let scenario = own.resolve()?;
        Ok(variant::variant(variant::label(&scenario), &scenario, seeds))
    };
    let variants: Vec<Variant> = specs.iter().map(variant).collect::<Result<_, LabError>>()?;
    let plan = runs(&variants);
    Ok(Ablation { factors, variants, plan })
}

/// The scenario in which nothing is switched.
fn base(request: &Request) -> Result<Scenario, LabError> {
    let of_source = match &request.subject {
        Subject::Workload(name) => Experiment::of(name).map(|source| source.kernels[0].to_owned()),
        Subject::File(_) | Subject::Written { .. } | Subject::Text(_) => None,
    };
    let scenario = Request { kernel: request.kernel.clone().or(of_source), ..request.clone() }.resolve()?;
    match &scenario.backend {
        Backend::Sim => Ok(scenario),
        real => Err(not_simulated(&real.to_string())),
    }
}

fn not_simulated(backend: &str) -> LabError {
    let hint = "leave `--on` out; `pagetide compare --on` puts real kernels beside simulated ones";
    LabError::refused(format!("features are switched on simulated kernels; `{backend}` is a real one"), hint)
}

/// What each name switches on `base`.
fn factors(base: &KernelSpec, names: &[&str]) -> Result<Vec<Factor>, LabError> {
    let version = version_of(base);
    let mut factors: Vec<Factor> = Vec::with_capacity(names.len());
    for &text in names {
        let name = text.strip_prefix(['+', '-']).unwrap_or(text);
        let feature = Feature::named(name).ok_or_else(|| {
            UnknownName::new("feature", name, Feature::ALL.iter().map(|feature| feature.name()))
        })?;
        let has = version.rules.has(feature.on());
        if text.len() > name.len() && text.starts_with('-') != has {
            let (of_base, so, sign) = match has {
                true => ("has", "taken away and not added", '-'),
                false => ("has no", "added and not taken away", '+'),
            };
            return Err(LabError::refused(
                format!("`{base}` {of_base} `{feature}`, so it is {so}"),
                format!("write `{sign}{feature}`, or leave the sign out"),
            ));
        }
        if factors.iter().any(|factor| factor.feature == feature) {
            return Err(LabError::refused(format!("feature `{feature}` is named twice"), "name it once"));
        }
        factors.push(Factor { feature, added: !has });
    }
    Ok(factors)
}

/// The kernel of each subset of `factors`.
fn subsets(base: &KernelSpec, factors: &[Factor]) -> Result<Vec<KernelSpec>, LabError> {
    check_decisions(factors)?;
    let specs: Vec<KernelSpec> = (0..1_usize << factors.len()).map(|set| with(base, factors, set)).collect();
    // A subset of few features that is no kernel says more than one of many.
    let mut by_size: Vec<usize> = (1..specs.len()).collect();
    by_size.sort_by_key(|set| set.count_ones());
    for set in by_size {
        let named = kernel_named(&specs[set].to_string(), &Names::default());
        let Err(error) = named else { continue };
        let involved = involved(base, factors, set);
        return Err(match involved[..] {
            [_] => error,
            _ => exclude(&involved, &error.told()),
        });
    }
    Ok(specs)
}

/// Two forms of one decision cannot both be switched: one takes the other's place.
fn check_decisions(factors: &[Factor]) -> Result<(), LabError> {
    for (index, second) in factors.iter().enumerate() {
        let decision = second.feature.on().decision();
        if let Some(first) = factors[..index].iter().find(|f| f.feature.on().decision() == decision) {
            let why = format!("they are forms of one decision, {decision}");
            return Err(exclude(&[first.feature, second.feature], &why));
        }
    }
    Ok(())
}

/// That not every subset of these is a kernel.
fn exclude(features: &[Feature], why: &str) -> LabError {
    let names: Vec<String> = features.iter().map(ToString::to_string).collect();
    let told = listed(&names.iter().map(String::as_str).collect::<Vec<_>>()).unwrap_or_default();
    let hint = names.last().map(|last| format!("every subset is run: leave `{last}` out, or another one"));
    LabError::Refused { message: format!("{told} cannot be ablated together: {why}"), hint }
}

/// The features that make subset `set` no kernel: its own, and where it is of one only, the one that would
/// make it a kernel if it were changed, too.
fn involved(base: &KernelSpec, factors: &[Factor], set: usize) -> Vec<Feature> {
    let of = |set: usize| (0..factors.len()).filter(move |factor| set >> factor & 1 == 1);
    let is_kernel =
        |set: usize| kernel_named(&with(base, factors, set).to_string(), &Names::default()).is_ok();
    let helper = (0..factors.len()).find(|factor| set >> factor & 1 == 0 && is_kernel(set | 1 << factor));
    let helped = set | if set.count_ones() == 1 { helper.map_or(0, |factor| 1 << factor) } else { 0 };
    of(helped).map(|factor| factors[factor].feature).collect()
}

/// `base` with the factors of `set` changed, written as shortly as it can be.
fn with(base: &KernelSpec, factors: &[Factor], set: usize) -> KernelSpec {
    let mut spec = base.clone();
    for (_, factor) in factors.iter().enumerate().filter(|(index, _)| set >> index & 1 == 1) {
        let name = factor.feature.name();
        // What the base's own text changed is changed back by leaving it out.
        if spec.features.remove(name).is_none() {
            spec.features.insert(name.to_owned(), factor.added);
        }
    }
    spec
}

fn runs(variants: &[Variant]) -> SweepPlan {
    let first = &variants[0].scenarios;
    let seeds: Vec<String> = first.iter().map(|scenario| scenario.seed.0.to_string()).collect();
    let labels: Vec<String> = variants.iter().map(|variant| variant.label.clone()).collect();
    let mut runs = Vec::with_capacity(seeds.len() * variants.len());
    for (place, seed) in seeds.iter().enumerate() {
        for variant in variants {
            let label = variant.label.clone();
            let run =
                SweepRun { label: format!("{label}-seed{seed}"), values: vec![seed.clone(), label.clone()] };
            runs.push((run, PlannedRun { label, scenario: variant.scenarios[place].clone() }));
        }
    }
    let axis = |what: Swept, name: &str, values| Axis { what, name: name.to_owned(), values };
    let kernels = axis(Swept::Kernel, "kernel", labels);
    SweepPlan::of_ablation(first[0].workload.name(), kernels, axis(Swept::Seed, "seed", seeds), runs)
}

impl Ablation {
    /// How many runs there are and why: `8 runs: 4 kernels (+root-aging, -nofragment) x 2 seeds`.
    pub fn size(&self) -> String {
        let factors: Vec<String> = self.factors.iter().map(ToString::to_string).collect();
        let seeds = self.variants[0].scenarios.len();
        let many = if seeds == 1 { "1 seed".to_owned() } else { format!("{seeds} seeds") };
        format!(
            "{} runs: {} kernels ({} with {} or not) x {many}",
            self.plan.runs.len(),
            self.variants.len(),
            self.variants[0].label,
            factors.join(", "),
        )
    }

    /// What `outcomes` of the plan's runs are as a report.
    ///
    /// # Panics
    /// When there is not one outcome for each run.
    pub fn ablated<'a>(&self, outcomes: &'a Outcomes, view: View) -> Ablated<'a> {
        assert_eq!(outcomes.len(), self.plan.runs.len(), "an outcome for each run");
        let run = |outcome: &'a Ended| match outcome {
            Ended::Recorded(recording) | Ended::NotKept(recording, _) => AblatedRun::Recorded(recording),
            Ended::Failed(error) => AblatedRun::Failed(error.told()),
            Ended::NotRun => AblatedRun::NotRun,
        };
        let subset = |(index, variant): (usize, &Variant)| Subset {
            label: variant.label.clone(),
            command: variant.command.clone(),
            runs: outcomes.iter().skip(index).step_by(self.variants.len()).map(run).collect(),
        };
        let workload = self.plan.subject.clone();
        let varies = WorkloadSpec::known(&workload).map_or(&[][..], |spec| spec.varies);
        Ablated {
            workload,
            factors: self.factors.iter().map(ToString::to_string).collect(),
            subsets: self.variants.iter().enumerate().map(subset).collect(),
            seeds: self.variants[0].scenarios.iter().map(|scenario| scenario.seed.0).collect(),
            varies: varies.iter().map(|&what| what.to_owned()).collect(),
            view,
        }
    }
}

#[cfg(test)]
mod tests;
