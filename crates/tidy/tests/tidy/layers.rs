//! Who may use whom.
//!
//! The tables are those of `ARCHITECTURE.md`. A crate may use those beside its name and whatever these
//! may use; tests and benches of a crate are held to the same. Neighbours: `storeys` for the
//! files inside `mm` and `kernel`.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde_json::Value;

use crate::tree::{assert_none, root};

/// A crate and those that it may use directly.
const MAY_USE: &[(&str, &[&str])] = &[
    ("units", &[]),
    ("mm", &["units"]),
    ("cache-ext", &["mm"]),
    ("bpf", &["mm"]),
    ("language", &["units"]),
    ("trace", &["language"]),
    ("policy", &["trace"]),
    ("recording", &["trace"]),
    ("stats", &["units"]),
    ("workload", &["policy"]),
    ("kernel", &["mm"]),
    ("sim", &["kernel", "workload"]),
    ("stories", &["sim"]),
    ("linux", &["workload"]),
    ("capture", &["trace"]),
    ("report", &["recording", "stats"]),
    ("lab", &["sim", "cache-ext", "bpf", "linux", "capture", "report"]),
    ("evidence", &["lab"]),
    // The command line uses the playground in a test only, which holds the two against each other.
    ("cli", &["lab", "report", "playground"]),
    ("playground", &["lab", "report"]),
    ("python", &["lab", "report"]),
    ("xtask", &[]),
    ("tidy", &[]),
];

/// Crates that hold mechanisms or decide what a run does: no async runtime, no clock, no hash
/// order, no operating system's randomness may come in with a dependency.
const NEVER_USED_BY_MECHANISMS: [&str; 6] = ["tokio", "rand", "getrandom", "rayon", "async-std", "chrono"];

/// Uses of each crate of the workspace, by short name, without build output or network.
fn uses() -> BTreeMap<String, BTreeSet<String>> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps"])
        .current_dir(root())
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("cargo writes JSON");
    let packages = metadata["packages"].as_array().expect("there are packages");
    let name = |value: &Value| value["name"].as_str().expect("names are texts").to_owned();
    let uses_of = |package: &Value| {
        let dependencies = package["dependencies"].as_array().expect("a list");
        (short(&name(package)), dependencies.iter().map(|used| short(&name(used))).collect())
    };
    packages.iter().map(uses_of).collect()
}

fn short(name: &str) -> String {
    name.strip_prefix("pagetide-").unwrap_or(name).to_owned()
}

/// `name` and all that it may use, also through others.
fn allowed(name: &str) -> BTreeSet<&'static str> {
    let mut allowed = BTreeSet::new();
    let mut open = vec![name];
    while let Some(name) = open.pop() {
        let (known, uses) = MAY_USE.iter().find(|(known, _)| *known == name).expect("listed");
        if allowed.insert(*known) {
            open.extend(uses.iter());
        }
    }
    allowed
}

#[test]
fn every_crate_is_on_the_map_and_uses_only_what_stands_below_it() {
    let on_map = |name: &str| MAY_USE.iter().any(|(known, _)| *known == name);
    let mut wrong = Vec::new();
    for (name, used) in uses() {
        if !on_map(&name) {
            wrong.push(format!("{name} is not on the map"));
            continue;
        }
        let allowed = allowed(&name);
        let ours = used.iter().filter(|used| on_map(used));
        let upward = ours.filter(|used| !allowed.contains(used.as_str()));
        wrong.extend(upward.map(|used| format!("{name} uses {used}")));
    }
    assert_none("dependencies against the map in ARCHITECTURE.md", &wrong);
}

#[test]
fn mechanisms_bring_in_no_clock_no_threads_and_no_randomness() {
    let uses = uses();
    let mut wrong = Vec::new();
    for name in ["units", "mm", "cache-ext", "bpf", "kernel", "sim"] {
        let banned = NEVER_USED_BY_MECHANISMS.iter().filter(|banned| uses[name].contains(**banned));
        wrong.extend(banned.map(|banned| format!("{name} uses {banned}")));
    }
    assert_none("dependencies that a deterministic crate must not have", &wrong);
}

#[test]
fn the_map_has_no_circle() {
    for (name, uses) in MAY_USE {
        for used in *uses {
            assert!(!allowed(used).contains(name), "{name} uses {used}, which may use {name}");
        }
    }
}
