//! What a scenario has where nobody said: machine, memory, swap and kernel of its workload, or of its backend.
//!
//! Next: [`crate::name::experiment`], which has them for each workload; `request.rs`, which asks.

use sim::machines::{MACHINES, MachineSpec};
use units::Bytes;
use workload::scenario::{Guest, SEED_DEFAULT, Swap};
use workload::small_files::{FULL, SOURCE_MEMORY};
use workload::{Backend, Scenario, WorkloadSpec};

use crate::error::LabError;
use crate::name::experiment::Experiment;
use crate::name::names::Names;
use crate::resolve::setting::machine_spec;
use crate::resolve::texts::{kernel_named, newest_kernel};

/// The workload in its source's setting, or on the first machine where it has none; on the newest
/// kernel. On a real one what is there.
pub(crate) fn defaults(spec: &'static WorkloadSpec, backend: Backend) -> Result<Scenario, LabError> {
    let mut scenario = Scenario {
        workload: spec.build(spec.defaults())?,
        file: None,
        kernel: None,
        machine: None,
        mem: None,
        swap: None,
        sysctls: Default::default(),
        seed: SEED_DEFAULT,
        interval: None,
        backend,
        guest: None,
    };
    fill_in(&mut scenario)?;
    Ok(scenario)
}

/// Gives a scenario what its backend needs and nobody said.
pub(crate) fn fill_in(scenario: &mut Scenario) -> Result<(), LabError> {
    match &scenario.backend {
        Backend::Sim => {
            let (machine, mem) = default_machine(scenario.workload.name());
            let mem = match &scenario.machine {
                _ if is_full(scenario) => SOURCE_MEMORY,
                Some(named) if named != machine => machine_spec(named).default_mem,
                _ => mem,
            };
            if scenario.kernel.is_none() {
                scenario.kernel = Some(kernel_named(newest_kernel(), &Names::default())?);
            }
            scenario.machine.get_or_insert_with(|| machine.to_owned());
            scenario.mem.get_or_insert(mem);
            fill_in_swap(scenario);
        }
        Backend::Vm(_) | Backend::Uml(_) => {
            let own = scenario.backend.guest_machine().expect("it is a guest");
            scenario.machine.get_or_insert_with(|| own.to_owned());
            let mem = if is_full(scenario) { SOURCE_MEMORY } else { guest_mem(&scenario.backend) };
            scenario.mem.get_or_insert(mem);
            fill_in_swap(scenario);
        }
        Backend::Host => {}
    }
    Ok(())
}

/// What the workload's own machine swaps to.
pub(crate) fn default_swap(scenario: &Scenario) -> Swap {
    let of_source = Experiment::of(scenario.workload.name()).map(|source| source.swap);
    of_source.map_or(Swap::NONE, |swap| swap.parse().expect("a test reads all of them"))
}

/// A scenario says what it swaps to where it does, or where its workload's own machine would.
pub(crate) fn fill_in_swap(scenario: &mut Scenario) {
    let own = default_swap(scenario);
    if scenario.swap.is_none() && !own.is_none() {
        scenario.swap = Some(own);
    }
}

/// Whether the workload is to run at the size of its source, on as much memory.
pub(crate) fn is_full(scenario: &Scenario) -> bool {
    scenario.workload.params().get("scale") == Some(workload::ParamValue::Choice(FULL))
}

/// The guest as far as it is said, else that of its backend.
pub(crate) fn guest_of(scenario: &Scenario) -> Guest {
    scenario.guest.unwrap_or_else(|| scenario.backend.default_guest())
}

pub(crate) fn default_machine(workload: &str) -> (&'static str, Bytes) {
    match Experiment::of(workload) {
        Some(experiment) => (experiment.machine, experiment.mem),
        None => {
            let first = first_machine();
            (first.name, first.default_mem)
        }
    }
}

/// Memory of a guest of `backend` when nobody says.
pub(crate) fn guest_mem(backend: &Backend) -> Bytes {
    machine_spec(backend.guest_machine().expect("only guests are asked for it")).default_mem
}

/// The machine of what is no workload.
pub(crate) fn first_machine() -> &'static MachineSpec {
    MACHINES.first().expect("there are machines")
}
