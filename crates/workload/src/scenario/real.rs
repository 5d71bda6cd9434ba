//! What a real kernel leaves to say of the kernel and the machine: nothing on this host, the memory
//! and the shape of a guest.
//!
//! `what` is how the caller calls what was said: the option `--kernel`, the key `kernel`. Left out:
//! which releases there are, which the backend finds out.

use crate::language::vocabulary::KernelSpec;
use crate::scenario::backend::Backend;
use crate::scenario::error::ScenarioProblem;
use crate::scenario::guest::LruGen;

/// The one thing of a machine that can be changed behind its name, for a guest, too.
const READAHEAD: &str = "+readahead=";

/// Whether a guest of `backend` can be this machine: its own, or its own `+readahead=SIZE` with the readahead of its
/// disks.
pub fn is_guest_machine(machine: &str, backend: &Backend) -> bool {
    let change = backend.guest_machine().and_then(|own| machine.strip_prefix(own));
    change.is_some_and(|change| {
        change.is_empty() || change.strip_prefix(READAHEAD).is_some_and(|size| !size.contains('+'))
    })
}

/// The one feature of a kernel that a guest can have or not: it is switched while the kernel runs.
const LRU_GEN: &str = "lru-gen";

/// What the kernel's name says of the guest's multi-gen LRU; `None` is nothing.
pub fn lru_gen_of(kernel: &KernelSpec) -> Option<LruGen> {
    kernel.features.get(LRU_GEN).map(|&on| if on { LruGen::ON } else { LruGen::OFF })
}

/// The kernel's name says `wanted` of a guest's multi-gen LRU, and somebody says something else.
///
/// # Errors
/// [`ScenarioProblem::Guest`], if it is something else.
pub fn check_lru_gen(wanted: LruGen, given: LruGen) -> Result<(), ScenarioProblem> {
    if wanted == given || (wanted.is_on() && given.is_on()) {
        return Ok(());
    }
    let why = format!("the name of the kernel says `{wanted}`");
    Err(ScenarioProblem::Guest { key: "lru_gen", value: given.to_string(), why })
}

/// Checks that `backend` can run `kernel`. A guest runs the version that the backend names, with the multi-gen LRU or
/// without ([`lru_gen_of`]).
///
/// # Errors
/// [`ScenarioProblem::NotChosen`].
pub fn check_kernel(what: &str, kernel: &KernelSpec, backend: &Backend) -> Result<(), ScenarioProblem> {
    let (why, or) = match backend {
        Backend::Sim => return Ok(()),
        Backend::Host => {
            ("this host runs its own kernel".to_owned(), "boot another one with `--on uml:VERSION`")
        }
        Backend::Vm(path) | Backend::Uml(path) if path.contains('/') => {
            (format!("the guest runs the kernel in `{path}`"), "name another one with `--on`")
        }
        Backend::Vm(version) | Backend::Uml(version)
            if is_of(kernel, version)
                && (kernel.object.is_some() || kernel.features.keys().any(|name| name != LRU_GEN)) =>
        {
            let why = format!(
                "the guest runs Debian's {version}, of whose features only `{LRU_GEN}` can be switched"
            );
            (why, SIMULATE)
        }
        Backend::Vm(version) | Backend::Uml(version) if is_of(kernel, version) => return Ok(()),
        Backend::Vm(version) | Backend::Uml(version) => {
            (format!("the guest runs Debian's {version}"), SIMULATE)
        }
    };
    Err(not_chosen(what, &kernel.to_string(), why, or))
}

/// Checks that `backend` can be `machine`.
///
/// # Errors
/// [`ScenarioProblem::NotChosen`].
pub fn check_machine(what: &str, machine: &str, backend: &Backend) -> Result<(), ScenarioProblem> {
    let (why, or) = match (backend, backend.guest_machine()) {
        (Backend::Sim, _) => return Ok(()),
        (_, None) => ("this host is the machine that it is".to_owned(), SIMULATE),
        (_, Some(_)) if is_guest_machine(machine, backend) => return Ok(()),
        (_, Some(own)) if machine.starts_with(own) => {
            (format!("of a guest only `{own}{READAHEAD}SIZE` can be changed so"), SHAPE)
        }
        (_, Some(own)) => (format!("a guest is a machine of its own, `{own}`"), SHAPE),
    };
    Err(not_chosen(what, machine, why, or))
}

/// Checks that `backend` can have `mem` of memory.
///
/// # Errors
/// [`ScenarioProblem::NotChosen`].
pub fn check_mem(what: &str, mem: &str, backend: &Backend) -> Result<(), ScenarioProblem> {
    match backend {
        Backend::Sim | Backend::Vm(_) | Backend::Uml(_) => Ok(()),
        Backend::Host => {
            let why = "this host has the memory that it has".to_owned();
            Err(not_chosen(what, mem, why, "bound what the run may use with `--host-limit`"))
        }
    }
}

const SIMULATE: &str = "simulate it with `--on sim`";
const SHAPE: &str = "shape it with `--mem`, `--vm-cpus` and `--vm-nodes`";

fn not_chosen(what: &str, value: &str, why: String, or: &'static str) -> ScenarioProblem {
    ScenarioProblem::NotChosen { what: what.to_owned(), value: value.to_owned(), why, or }
}

/// Whether `version` (`6.12`, `6.12.0-50`) is one of the kernel's own.
fn is_of(kernel: &KernelSpec, version: &str) -> bool {
    let mut numbers = version.split(['.', '-']);
    let major_minor = numbers.next().zip(numbers.next());
    major_minor.is_some_and(|(major, minor)| kernel.base == format!("linux-{major}.{minor}"))
}
