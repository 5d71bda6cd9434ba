//! Worlds: random scenarios, each on a real kernel and on the model, and how near the two are.
//!
//! # Theory of operation
//! A *world* is a scenario that follows from a seed: a workload, each of its parameters, memory, swap, sysctls. It is
//! run on a real kernel some times, and on the model with some seeds on the machine that such a guest is. Every
//! counter and metric of it is judged by what two real runs differ by anyway. All worlds of a folder are one table;
//! what is in it is not run again, so a stopped run goes on. [`summary`] says where the model is near and which
//! counters are not, by how many worlds.
//!
//! | file | what it holds |
//! |---|---|
//! | `draw.rs` | from a seed to a world |
//! | `run.rs` | worlds in parallel, each to its rows |
//! | `judge.rs` | how near a counter is |
//! | `folder.rs` | rows on disk |
//! | `summary.rs` | many worlds in a few tables |
//! | `check.rs` | small worlds of the model alone, checked all along |
//! | `smaller.rs` | a world made smaller while something holds of it |
//! | `one.rs` | a world of a folder again, and the counter that disagrees |
//! | `shrink.rs` | that world made smaller while it disagrees |
//! | `evidence.rs` | both sides of it beside each other, and where a counter's samples part |
//!
//! Left out: recordings, which one command a world makes again. Neighbours: `batch.rs` runs what a world consists of.

mod check;
mod draw;
mod evidence;
mod folder;
mod judge;
mod one;
mod run;
mod shrink;
mod smaller;
mod summary;

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use recording::worlds::WorldRow;
use sim::machines::MachineSpec;
use units::{Nanos, parse_nanos};
use workload::scenario::{Backend, Scenario, UML_MACHINE, lru_gen_of};
use workload::{WorkloadSpec, catalog};

use crate::error::LabError;
use crate::known::{self, likeness::scope};
use crate::name::machine_file;
use crate::name::names::Names;
use crate::plan::compare::model_of;
use crate::plan::sweep::folder::first_and_hash;
use crate::resolve::command::command;
use crate::resolve::planned::PlannedRun;
use crate::resolve::request::{GuestRequest, Request, Subject};
use crate::resolve::texts::{kernel_named, newest_kernel};

pub use crate::error::worlds::{WORLDS_MAX, WorldsError};
pub use check::{CheckPlan, WORLD_THREAD};
pub use draw::Drawn;
pub use folder::TABLE;
pub use judge::{Class, judge_itself};
pub use one::{OneWorld, WorldRequest};
pub use run::{WorldDone, WorldsControl};
pub use shrink::WorldTried;

/// Real runs of a world when nobody says.
pub const REPEATS: u64 = 2;
/// Runs of the model when nobody says.
pub const MODEL_SEEDS: u64 = 3;
/// Seeds whose worlds tell one plan from another.
const HASHED: RangeInclusive<u64> = 1..=16;

/// Worlds as a person asks for them.
#[derive(Debug, Clone, Default)]
pub struct WorldsRequest {
    /// Where they run beside the model: `uml:6.12`; none or `sim` is nowhere.
    pub backend: Option<String>,
    /// The kernel of the model; none is that of the real one, or the newest.
    pub kernel: Option<String>,
    /// The machine of the model, or a machine file; none is `guest-uml` of a host with protection keys or without, as
    /// this one is or as that of [`Self::real_of`] was.
    pub machine: Option<String>,
    /// Another kernel of the model in place of a real one.
    pub against: Option<String>,
    /// A folder of an earlier call that the real side is taken from.
    pub real_of: Option<PathBuf>,
    /// The seeds: `1..500`.
    pub seeds: String,
    /// The workloads; none are all.
    pub workloads: Vec<String>,
    /// After which time no world begins: `10m`.
    pub time: Option<String>,
    /// Runs of each on the real kernel.
    pub repeats: Option<u64>,
    /// Runs of each on the model.
    pub model_seeds: Option<u64>,
}

/// Worlds that can run.
#[derive(Debug, Clone)]
pub struct WorldsPlan {
    /// What stands for the real side; of worlds of the model alone, nothing.
    real: Option<Side>,
    model: Side,
    seeds: RangeInclusive<u64>,
    workloads: Vec<&'static WorkloadSpec>,
    time: Option<Duration>,
    /// What ran for real already.
    known: Vec<WorldRow>,
    repeats: u64,
    model_seeds: u64,
}

/// Where worlds run.
#[derive(Debug, Clone)]
struct Side {
    backend: Backend,
    kernel: Option<String>,
    guest: GuestRequest,
    /// The machine of a side of the model.
    machine: Option<String>,
}

/// A world that can run.
#[derive(Debug, Clone)]
pub(crate) struct World {
    pub(crate) seed: u64,
    pub(crate) drawn: Drawn,
    /// Whose room is short: `limit` or `global`.
    pub(crate) scope: &'static str,
    pub(crate) real: Vec<PlannedRun>,
    pub(crate) model: Vec<PlannedRun>,
}

impl WorldsRequest {
    /// Checks all that was asked for.
    ///
    /// # Errors
    /// Names that do not exist, numbers that make no sense, sides that do not go together.
    pub fn plan(&self) -> Result<WorldsPlan, LabError> {
        let backend: Backend = self.backend.as_deref().unwrap_or("sim").parse()?;
        let named = self.kernel.as_deref().map(|name| kernel_named(name, &Names::default())).transpose()?;
        let file = machine_file::of_option(self.machine.as_deref())?;
        let mut machine = file.map(|file| file.machine).or_else(|| self.machine.clone());
        if let Some(machine) = &machine {
            MachineSpec::parse(machine)?;
        }
        let seeds = seeds(&self.seeds)?;
        let known = self.real_of.as_deref().map(folder::rows_there).transpose()?;
        if machine.is_none() && matches!(backend, Backend::Uml(_)) {
            machine = match known.as_deref() {
                Some(known) => folder::machine_of(known, &seeds)?,
                None => guest_here(),
            };
        }
        let (real, kernel) = match &backend {
            Backend::Host => return Err(WorldsError::NotThere(backend.to_string()).into()),
            Backend::Sim => {
                let against = self.against.as_deref();
                let against = against.map(|name| kernel_named(name, &Names::default())).transpose()?;
                let side = against.map(|kernel| Side::of_model(kernel.to_string(), machine.clone()));
                (side, named.map_or_else(|| newest_kernel().to_owned(), |kernel| kernel.to_string()))
            }
            Backend::Vm(_) | Backend::Uml(_) => {
                if self.against.is_some() {
                    return Err(WorldsError::Against(backend.to_string()).into());
                }
                let lru_gen = named.as_ref().and_then(lru_gen_of).map(|lru_gen| lru_gen.to_string());
                let guest = GuestRequest { lru_gen, ..GuestRequest::default() };
                let kernel = named.map(|kernel| kernel.to_string()).or_else(|| model_of(&backend));
                let kernel = kernel.ok_or_else(|| WorldsError::NoModel(backend.to_string()))?;
                (Some(Side { backend, kernel: None, guest, machine: None }), kernel)
            }
        };
        Ok(WorldsPlan {
            real,
            model: Side::of_model(kernel, machine),
            seeds,
            workloads: workloads(&self.workloads)?,
            time: self.time.as_deref().map(time).transpose()?,
            known: known.unwrap_or_default(),
            repeats: runs("--repeats", self.repeats, REPEATS)?,
            model_seeds: runs("--model-seeds", self.model_seeds, MODEL_SEEDS)?,
        })
    }
}

/// What a guest of this host is, where that is not the machine that was measured.
fn guest_here() -> Option<String> {
    linux::vm::uml::sees_reads().then(|| format!("{UML_MACHINE}+protection_keys=true"))
}

/// `1..500`, both included.
fn seeds(text: &str) -> Result<RangeInclusive<u64>, WorldsError> {
    let wrong = || WorldsError::Seeds(text.to_owned());
    let number = |text: &str| text.trim().parse::<u64>().map_err(|_| wrong());
    let Some((first, last)) = text.split_once("..") else {
        return Err(WorldsError::SeedOrCount(number(text)?));
    };
    let (first, last) = (number(first)?, number(last)?);
    let count = last.checked_sub(first).ok_or_else(wrong)?.saturating_add(1);
    if count > WORLDS_MAX {
        return Err(WorldsError::TooMany { text: text.to_owned(), count });
    }
    Ok(first..=last)
}

fn workloads(names: &[String]) -> Result<Vec<&'static WorkloadSpec>, LabError> {
    if names.is_empty() {
        return Ok(catalog().iter().collect());
    }
    let mut found: Vec<&'static WorkloadSpec> = Vec::new();
    for name in names {
        let known = catalog().iter().map(|spec| spec.name);
        let spec = catalog().iter().find(|spec| spec.name == name);
        let spec = spec.ok_or_else(|| workload::UnknownName::new("workload", name, known))?;
        if found.iter().any(|other| other.name == spec.name) {
            return Err(WorldsError::WorkloadTwice(name.clone()).into());
        }
        found.push(spec);
    }
    // The same worlds in whichever order they are named.
    found.sort_by_key(|spec| spec.name);
    Ok(found)
}

/// A time to work for.
fn time(text: &str) -> Result<Duration, WorldsError> {
    match parse_nanos(text) {
        Ok(time) if time != Nanos::ZERO => Ok(Duration::from_nanos(time.get())),
        _ => Err(WorldsError::Time(text.to_owned())),
    }
}

fn runs(option: &'static str, given: Option<u64>, default: u64) -> Result<u64, WorldsError> {
    let given = given.unwrap_or(default);
    if (1..=16).contains(&given) { Ok(given) } else { Err(WorldsError::Runs { option, given }) }
}

impl Side {
    fn of_model(kernel: String, machine: Option<String>) -> Self {
        Self { backend: Backend::Sim, kernel: Some(kernel), guest: GuestRequest::default(), machine }
    }

    /// What it is called in tables.
    fn name(&self) -> String {
        match (&self.backend, &self.kernel) {
            (Backend::Sim, Some(kernel)) => kernel.clone(),
            (backend, _) => match &self.guest.lru_gen {
                Some(lru_gen) => format!("{backend},lru_gen={lru_gen}"),
                None => backend.to_string(),
            },
        }
    }

    /// The scenario of a world here, with its first seed.
    fn scenario(&self, drawn: &Drawn) -> Result<Scenario, LabError> {
        let machine = drawn.machine.as_ref().or(self.machine.as_ref());
        let machine = machine.map_or_else(|| UML_MACHINE.to_owned(), String::clone);
        let request = Request {
            kernel: drawn.kernel.clone().or_else(|| self.kernel.clone()),
            machine: (self.backend == Backend::Sim).then_some(machine),
            mem: Some(drawn.mem.clone()),
            swap: Some(drawn.swap.clone().unwrap_or_else(|| "none".to_owned())),
            params: drawn.params.clone(),
            sysctls: drawn.sysctls.clone(),
            seed: Some(1),
            backend: Some(self.backend.to_string()),
            guest: self.guest.clone(),
            ..Request::new(Subject::Workload(drawn.workload.to_owned()))
        };
        request.resolve()
    }

    /// Its runs of a world.
    fn runs(&self, drawn: &Drawn, count: u64) -> Result<Vec<PlannedRun>, LabError> {
        let scenario = self.scenario(drawn)?;
        let run = |seed| PlannedRun {
            label: self.name(),
            scenario: Scenario { seed: units::Seed(seed), ..scenario.clone() },
        };
        Ok((1..=count).map(run).collect())
    }
}

impl WorldsPlan {
    /// How many worlds were asked for.
    pub fn count(&self) -> usize {
        usize::try_from(self.seeds.end() - self.seeds.start() + 1).expect("not that many")
    }

    /// Whether something runs beside the model.
    pub fn has_real(&self) -> bool {
        self.real.is_some()
    }

    /// Whether each world boots a kernel.
    pub fn boots(&self) -> bool {
        self.real.as_ref().is_some_and(|side| side.backend.is_guest())
    }

    /// The commands of all worlds, a line for each side.
    pub fn commands(&self) -> String {
        let mut text = String::new();
        for seed in self.seeds.clone() {
            match self.world(seed) {
                Ok(world) => {
                    for run in world.real.first().into_iter().chain(world.model.first()) {
                        text += &format!("{}\n", command(&run.scenario));
                    }
                }
                Err(refused) => {
                    let (drawn, error) = *refused;
                    text += &format!("# {}: refused: {}\n", drawn.workload, error.told());
                }
            }
        }
        text
    }

    /// The kernel that the table names.
    pub(crate) fn kernel_label(&self) -> String {
        self.real.as_ref().unwrap_or(&self.model).name()
    }

    /// The world of this seed.
    ///
    /// # Errors
    /// What was drawn, and why it cannot run: however often it was drawn anew.
    pub(crate) fn world(&self, seed: u64) -> Result<World, Box<(Drawn, LabError)>> {
        let mut refused = None;
        for attempt in 0..draw::ATTEMPTS {
            let drawn = draw::draw(seed, &self.workloads, attempt);
            match self.sides(seed, &drawn) {
                Ok(world) => return Ok(world),
                Err(error) => refused = Some(Box::new((drawn, error))),
            }
        }
        Err(refused.expect("there is an attempt"))
    }

    /// What was drawn, on both sides.
    pub(crate) fn sides(&self, seed: u64, drawn: &Drawn) -> Result<World, LabError> {
        let model = self.model.runs(drawn, self.model_seeds)?;
        let real = self.real.as_ref().map(|side| side.runs(drawn, self.repeats)).transpose()?;
        let scope = scope(&model[0].scenario);
        Ok(World { seed, drawn: drawn.clone(), scope, real: real.unwrap_or_default(), model })
    }

    /// A line for each thing that makes the worlds what they are; their seeds do not.
    fn text(&self) -> String {
        let workloads: Vec<&str> = self.workloads.iter().map(|spec| spec.name).collect();
        let mut text =
            format!("real = {}\n", self.real.as_ref().map_or_else(|| "none".to_owned(), Side::name));
        text += &format!("model = {}\nworkloads = {}\n", self.model.name(), workloads.join(", "));
        if let Some(machine) = &self.model.machine {
            text += &format!("machine = {machine}\n");
        }
        if self.has_real() {
            text += &format!("repeats = {}\n", self.repeats);
        }
        text += &format!("model seeds = {}\n", self.model_seeds);
        let scenarios = HASHED.filter_map(|seed| self.world(seed).ok()).map(|world| {
            let runs = world.real.iter().chain(&world.model);
            runs.map(|run| run.scenario.to_toml()).collect::<String>()
        });
        text + &first_and_hash("", &scenarios.collect::<String>())
    }
}

/// All that is never drawn: what, and why.
pub fn never_drawn() -> Vec<(String, &'static str)> {
    known::ranges::never()
}

#[cfg(test)]
mod tests;
