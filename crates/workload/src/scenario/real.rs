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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::scenario::backend::GUEST_MACHINE;

    fn kernel(base: &str, feature: Option<&str>) -> KernelSpec {
        let features = feature.map(|name| (name.to_owned(), true));
        KernelSpec { base: base.to_owned(), features: BTreeMap::from_iter(features), object: None }
    }

    #[test]
    fn a_guest_takes_the_name_of_the_kernel_that_it_runs_and_no_other() {
        let told = |base, feature, version: &str| {
            check_kernel("--kernel", &kernel(base, feature), &Backend::Vm(version.to_owned()))
                .map_err(|problem| problem.to_string())
        };
        for (base, version) in
            [("linux-6.12", "6.12"), ("linux-6.12", "6.12.117"), ("linux-6.1", "6.1.0-50-cloud-amd64")]
        {
            assert_eq!(told(base, None, version), Ok(()), "{version}");
        }
        assert_eq!(told("linux-6.12", Some("lru-gen"), "6.12"), Ok(()));
        assert_eq!(lru_gen_of(&kernel("linux-6.12", Some("lru-gen"))), Some(LruGen::ON));
        assert_eq!(lru_gen_of(&kernel("linux-6.12", None)), None);
        let refused = [
            told("linux-5.4", None, "6.12"),
            told("linux-6.1", None, "6.12"),
            told("linux-6.12", None, "6.1"),
            told("linux-6.12", None, "6"),
            told("linux-6.12", Some("root-aging"), "6.12"),
            told("linux-6.12", None, "./vmlinuz"),
        ];
        insta::assert_snapshot!(refused.map(Result::unwrap_err).join("\n"), @"
        `--kernel` cannot be `linux-5.4`: the guest runs Debian's 6.12
        `--kernel` cannot be `linux-6.1`: the guest runs Debian's 6.12
        `--kernel` cannot be `linux-6.12`: the guest runs Debian's 6.1
        `--kernel` cannot be `linux-6.12`: the guest runs Debian's 6
        `--kernel` cannot be `linux-6.12+root-aging`: the guest runs Debian's 6.12, of whose features only `lru-gen` can be switched
        `--kernel` cannot be `linux-6.12`: the guest runs the kernel in `./vmlinuz`
        ");
    }

    #[test]
    fn this_host_is_what_it_is() {
        let told = [
            check_kernel("--kernel", &kernel("linux-6.12", None), &Backend::Host),
            check_machine("--machine", "vm-2cpu", &Backend::Host),
            check_mem("--mem", "512M", &Backend::Host),
            check_machine("machine", "skylake-1s", &Backend::Vm("6.12".to_owned())),
        ]
        .map(|result| {
            let problem = result.unwrap_err();
            format!("{problem}; {}", problem.hint().unwrap())
        });
        insta::assert_snapshot!(told.join("\n"), @"
        `--kernel` cannot be `linux-6.12`: this host runs its own kernel; leave it out, or boot another one with `--on uml:VERSION`
        `--machine` cannot be `vm-2cpu`: this host is the machine that it is; leave it out, or simulate it with `--on sim`
        `--mem` cannot be `512M`: this host has the memory that it has; leave it out, or bound what the run may use with `--host-limit`
        `machine` cannot be `skylake-1s`: a guest is a machine of its own, `guest-tcg`; leave it out, or shape it with `--mem`, `--vm-cpus` and `--vm-nodes`
        ");
        let guest = |machine: &str| {
            let checked = check_machine("--machine", machine, &Backend::Vm("6.12".to_owned()));
            checked.map_err(|problem| problem.to_string())
        };
        assert_eq!(guest(GUEST_MACHINE), Ok(()));
        assert_eq!(guest("guest-tcg+readahead=8M"), Ok(()));
        for wrong in ["guest-tcg+cpus=4", "guest-tcg+readahead=8M+cpus=4"] {
            let told = "of a guest only `guest-tcg+readahead=SIZE` can be changed so";
            assert_eq!(guest(wrong), Err(format!("`--machine` cannot be `{wrong}`: {told}")));
        }
        assert_eq!(check_mem("mem", "512M", &Backend::Vm("6.12".to_owned())), Ok(()));
    }
}
