//! What earlier versions wrote, and people wrote for them, still opens: a file of each version of each format.
//!
//! The files in `old` never change, and neither does what is said of them. Recordings are in the crate `recording`,
//! whose tests look at what is in them.

use std::path::Path;

use crate::support::Scene;

const OLD: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cli/old");
const RECORDINGS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../recording/tests/recordings");

#[test]
fn a_scenario_of_the_first_version_is_what_it_was() {
    let file = format!("{OLD}/scenario-1.toml");
    let resolved = Scene::new().data(&format!("run {file} --dry-run"));
    assert_eq!(resolved, std::fs::read_to_string(file).unwrap());
}

#[test]
fn a_workload_and_a_machine_that_people_wrote_still_resolve() {
    let resolved =
        Scene::new().data(&format!("run {OLD}/workload.toml --machine {OLD}/machine.toml --dry-run"));
    for line in ["mem = \"64G\"", "\"vm.min_free_kbytes\" = 262144", "[params]"] {
        assert!(resolved.lines().any(|other| other == line), "{line}: {resolved}");
    }
}

#[test]
fn a_captured_trace_of_the_first_version_is_read() {
    let told = Scene::new().data(&format!("trace info {OLD}/trace-1.trace"));
    assert!(told.contains("1 process: sh") && told.contains("832 B"), "{told}");
}

#[test]
fn a_recording_of_each_version_is_shown() {
    let scene = Scene::new();
    for schema in 1..=5 {
        let folder = format!("{RECORDINGS}/schema-{schema}");
        assert!(Path::new(&folder).is_dir(), "{folder}");
        let told = scene.data(&format!("report {folder}"));
        assert!(told.contains("hot-and-stream"), "{told}");
    }
}
