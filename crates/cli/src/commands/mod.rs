//! One function for each command: ask the lab, print what it returns.

mod compare;
mod list;
mod replay;
mod run;
mod sweep;

pub(crate) use compare::compare;
pub(crate) use list::list;
pub(crate) use replay::replay;
pub(crate) use run::run;
pub(crate) use sweep::sweep;

use lab::{Request, Subject};

use crate::args::ScenarioArgs;

/// The request that `subject` and options make.
fn request(subject: &str, kernel: Option<&String>, args: &ScenarioArgs) -> Request {
    Request {
        kernel: kernel.cloned(),
        machine: args.machine.clone(),
        mem: args.mem.clone(),
        params: args.params.clone(),
        sysctls: args.sysctls.clone(),
        seed: args.seed,
        backend: args.backend.clone(),
        ..Request::new(Subject::of_argument(subject))
    }
}
