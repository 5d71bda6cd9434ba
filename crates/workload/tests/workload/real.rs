//! What can be said of the kernel and the machine of a guest and of this host.

use std::collections::BTreeMap;

use pagetide_workload::KernelSpec;
use pagetide_workload::scenario::{
    Backend, GUEST_MACHINE, LruGen, check_kernel, check_machine, check_mem, lru_gen_of,
};

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
