//! Stories about kernels whose file pages go by an object of eBPF (`crates/bpf/tests/objects`).

use std::fs;
use std::path::PathBuf;

use pagetide_lab::{Control, LabError, PlannedRun, Recording, Request, Scenario, Subject, run_all};

fn path(of: &str) -> String {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..").join("..").join(of);
    root.to_str().expect("a path in UTF-8").to_owned()
}

fn object(name: &str) -> String {
    format!("linux-6.12+cache-ext={}", path(&format!("crates/bpf/tests/objects/{name}.bpf.o")))
}

/// Lookups, writes and a scan of files of which the limit holds a part.
fn request(kernel: &str) -> Request {
    let params = ["data=24M", "limit=8M", "lookups=4000", "writes=2000", "scans=1"];
    Request {
        kernel: Some(kernel.to_owned()),
        mem: Some("256M".to_owned()),
        params: params.map(str::to_owned).to_vec(),
        ..Request::new(Subject::of_argument(&path("docs/cases/page-cache-policies.toml")))
    }
}

fn run(scenario: Scenario) -> Result<Recording, LabError> {
    let plan = [PlannedRun { label: "policy".to_owned(), scenario }];
    let batch = run_all(&plan, 1, &Control::default(), |_, _| Ok(()))?;
    batch.into_result().map(|mut recordings| recordings.remove(0))
}

/// What happened, without what it happened to.
fn only_what_happened(recording: Recording) -> Recording {
    let empty = String::new;
    Recording {
        kernel: empty(),
        command: empty(),
        scenario_toml: empty(),
        notes: Vec::new(),
        wall_ns: None,
        ..recording
    }
}

/// The same policy once in Rust, on the hooks, and once compiled for a kernel and interpreted: the same run to the last
/// counter.
#[test]
fn an_object_is_the_policy_of_the_same_name() {
    for name in ["fifo", "mru"] {
        let [of_rust, of_object] = [format!("linux-6.12+cache-ext-{name}"), object(name)].map(|kernel| {
            let recording = run(request(&kernel).resolve().unwrap()).unwrap();
            assert!(recording.vmstat["workingset_refault_file"] > 1000, "it has something to decide");
            only_what_happened(recording)
        });
        assert_eq!(of_rust, of_object, "{name}");
    }
}

#[test]
fn a_recording_names_the_object_that_it_was_made_with() {
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("policy.bpf.o");
    let bytes = fs::read(object("fifo").split_once('=').unwrap().1).unwrap();
    fs::write(&copy, &bytes).unwrap();
    let kernel = format!("linux-6.12+cache-ext={}", copy.display());
    let scenario = request(&kernel).resolve().unwrap();
    let written = scenario.to_toml();
    let again = |text: &str| Request::new(Subject::of_text(text.to_owned())).resolve();
    assert_eq!(again(&written).unwrap(), Scenario { file: None, ..scenario.clone() });
    assert!(scenario.kernel.unwrap().to_string().starts_with(&format!("{kernel}@")));
    // Another byte behind the last section is another object.
    fs::write(&copy, [&bytes[..], &[0]].concat()).unwrap();
    let error = again(&written).unwrap_err();
    assert!(error.to_string().contains("is another policy than the one that was named"), "{error}");
    fs::remove_file(&copy).unwrap();
    assert!(again(&written).unwrap_err().to_string().contains("cannot read the policy"));
}

#[test]
fn what_a_policy_does_wrong_is_the_runs_error() {
    let failed = run(request(&format!("{}:what=11", object("trial"))).resolve().unwrap()).unwrap_err();
    let said = failed.to_string();
    assert!(said.contains("the policy for file pages ends early: a load of 8 bytes from"), "{said}");
    let refused = request(&format!("{}:wot=1", object("trial"))).resolve().unwrap_err().to_string();
    assert!(refused.contains("has no `wot` to set"), "{refused}");
    let both = format!("linux-6.12+cache-ext-lfu+{}", object("fifo").split_once('+').unwrap().1);
    let both = request(&both).resolve().unwrap_err().to_string();
    assert!(both.contains("are both to evict the same file pages"), "{both}");
}
