//! One function for each command: ask the lab, print what it returns.

mod compare;
mod list;
mod record;
mod replay;
mod run;
mod sweep;
mod vm;

pub(crate) use compare::compare;
pub(crate) use list::list;
pub(crate) use record::record;
pub(crate) use replay::replay;
pub(crate) use run::run;
pub(crate) use sweep::sweep;
pub(crate) use vm::vm;

use lab::{GuestRequest, HostPolicy, LabError, Request, Subject};

use crate::args::{HostArgs, ScenarioArgs};

/// The request that `subject` and options make.
fn request(subject: &str, kernel: Option<&String>, args: &ScenarioArgs) -> Request {
    Request {
        kernel: kernel.cloned(),
        machine: args.machine.clone(),
        mem: args.mem.clone(),
        params: args.params.clone(),
        sysctls: args.sysctls.clone(),
        seed: args.seed,
        backend: args.backends.first().cloned(),
        guest: GuestRequest {
            cpus: args.vm.cpus,
            numa_nodes: args.vm.numa_nodes,
            lru_gen: args.vm.lru_gen.clone(),
        },
        ..Request::new(Subject::of_argument(subject))
    }
}

/// What the options allow on this host.
fn host_policy(args: &HostArgs) -> Result<HostPolicy, LabError> {
    let mut policy = HostPolicy { allow_host_pressure: args.allow_host_pressure, ..HostPolicy::default() };
    if let Some(limit) = &args.host_limit {
        policy.limit = lab::parse_mem_of("--host-limit", limit)?;
    }
    policy.dir.clone_from(&args.host_dir);
    Ok(policy)
}
