//! Workloads by name: all of them are built, and what is wrong with parameters is said.

use pagetide_workload::{Workload, WorkloadSpec, captured, catalog, inode_storm, small_files};

#[test]
fn every_workload_builds_from_its_defaults_and_documents_its_parameters() {
    for spec in catalog() {
        let workload = spec.build(spec.defaults()).unwrap();
        assert_eq!(workload.name(), spec.name);
        let undocumented = spec.params.iter().find(|param| param.help.is_empty());
        assert_eq!(undocumented, None, "of {}", spec.name);
        assert_eq!(WorkloadSpec::find(spec.name).unwrap().name, spec.name);
    }
}

#[test]
fn wrong_names_come_with_the_nearest() {
    let report = |name, pairs: &[(&'static str, &'static str)]| {
        let error = Workload::new(name, pairs.iter().copied()).unwrap_err();
        format!("{error}; {}", error.hint().unwrap_or_default())
    };
    assert_eq!(
        report("hot-n-stream", &[]),
        "unknown workload `hot-n-stream`; did you mean `hot-and-stream`?"
    );
    assert_eq!(
        report("hot-and-stream", &[("hotreads", "3")]),
        "unknown parameter `hotreads`; did you mean `hot_reads`?"
    );
}

#[test]
fn sizes_that_do_not_go_together_are_refused_with_their_remedy() {
    let refused = |pairs: &[(&'static str, &'static str)]| {
        let error = Workload::new(inode_storm::NAME, pairs.iter().copied()).unwrap_err();
        format!("{error}; {}", error.hint().unwrap_or_default())
    };
    insta::assert_snapshot!(refused(&[("files", "15")]), @"parameter `files`: 15 files for 16 processes; give `files=16` at least, or fewer `processes`");
    insta::assert_snapshot!(refused(&[("pin_from", "2G"), ("pin_to", "1G")]), @"parameter `pin_to`: 1G is less than `pin_from`, which is 2G; give `pin_to=2G` at least, for one step");
}

#[test]
fn fewer_files_than_processes_are_refused() {
    let error = Workload::new(small_files::NAME, [("files", "15")]).unwrap_err();
    assert_eq!(error.to_string(), "parameter `files`: 15 files for 16 processes");
    assert_eq!(error.hint().as_deref(), Some("give `files=16` at least, or fewer `processes`"));
    assert!(Workload::new(small_files::NAME, [("files", "15"), ("processes", "15")]).is_ok());
}

#[test]
fn a_program_without_its_trace_says_what_is_missing() {
    let workload =
        Workload::new(captured::NAME, [("trace", "app.trace"), ("limit", "64M")]).expect("its parameters");
    assert_eq!(workload.trace_path(), Some("app.trace"));
    assert!(workload.trace().is_none());
    let unknown =
        Workload::new(captured::NAME, [("trace", "a\nb")]).expect_err("a scenario file has it in one line");
    assert_eq!(unknown.to_string(), "parameter `trace`: `a\\nb` is no path without control characters");
}
