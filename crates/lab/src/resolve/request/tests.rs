//! The command that makes a run again names what ran, and nothing else.

use super::*;
use crate::plan::compare;
use crate::resolve::command::command;
use crate::resolve::texts::newest_kernel;

fn request(backend: Option<&str>) -> Request {
    let subject = Subject::Workload("hot-and-stream".to_owned());
    Request { backend: backend.map(str::to_owned), ..Request::new(subject) }
}

/// It had `--kernel linux-6.12`, the newest model, whatever the guest or the host ran.
#[test]
fn made_by_named_a_kernel_that_did_not_run() {
    let made_by = |backend| command(&request(backend).resolve().unwrap());
    assert_eq!(made_by(None), "pagetide run hot-and-stream --kernel linux-6.12");
    assert_eq!(made_by(Some("host")), "pagetide run hot-and-stream --on host");
    assert_eq!(made_by(Some("vm:6.1.0-50")), "pagetide run hot-and-stream --on vm:6.1.0-50");
    let larger = Request { mem: Some("1G".to_owned()), ..request(Some("vm:6.1")) };
    assert_eq!(command(&larger.resolve().unwrap()), "pagetide run hot-and-stream --mem 1G --on vm:6.1");
}

/// It became `linux-7.2` when that was added.
#[test]
fn a_kernel_that_is_not_maintained_for_long_was_taken_where_none_was_named() {
    assert_eq!(mm::Version::presets().last().unwrap().0, "linux-7.2");
    assert_eq!(newest_kernel(), "linux-6.12");
}

#[test]
fn each_side_of_a_comparison_is_asked_for_what_it_has() {
    let request =
        Request { mem: Some("1G".to_owned()), machine: Some("vm-2cpu".to_owned()), ..request(None) };
    let backends = ["sim", "host", "vm:6.1"].map(str::to_owned);
    let planned = compare::plan(&request, &["linux-6.1".to_owned()], &backends, 1).unwrap();
    let commands: Vec<&str> = planned.variants.iter().map(|variant| variant.command.as_str()).collect();
    assert_eq!(
        commands,
        [
            "pagetide run hot-and-stream --kernel linux-6.1 --mem 1G",
            "pagetide run hot-and-stream --on host",
            "pagetide run hot-and-stream --mem 1G --on vm:6.1",
        ]
    );
    assert_eq!(
        planned.assumed,
        [
            "`host` is what it is: `--kernel`, `--machine` and `--mem` for the simulated side only",
            "`vm:6.1` is what it is: `--machine` for the simulated side only",
        ]
    );
}

#[test]
fn a_kernel_of_the_guests_own_name_was_told_to_be_for_the_other_side() {
    let told = |kernel: &str| {
        let backends = ["sim", "vm:6.12"].map(str::to_owned);
        let mut assumed = compare::plan(&request(None), &[kernel.to_owned()], &backends, 1).unwrap().assumed;
        assumed.retain(|text| !text.starts_with("assumed: machine"));
        assumed
    };
    assert_eq!(told("linux-6.12"), Vec::<String>::new());
    assert_eq!(told("linux-6.1"), ["`vm:6.12` is what it is: `--kernel` for the simulated side only"]);
}
