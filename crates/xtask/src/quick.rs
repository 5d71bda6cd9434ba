//! `cargo xtask test quick`: what tells most between two edits.
//!
//! Format, lints of libraries and programs, the repository's own checks, and the tests of crates that differ from the
//! last commit, or of those that are named. Left out: tests of crates that use them, documents, Python, real kernels;
//! `cargo xtask test` has them. It is quick when it has run before: the first time it builds.

use std::collections::BTreeSet;
use std::process::Command;

use crate::checkout::root;
use crate::say::say;
use crate::step::{Report, cargo};

/// The crate whose tests read the whole repository.
const TIDY: &str = "tidy";

/// The crate that has nothing but tests of the whole simulator.
const TESTS_OF_SIM: &str = "stories";

/// Runs it for the crates `named`, or those with changes if none is.
pub(crate) fn test(named: &[&str]) -> Report {
    let mut report = Report::new(3);
    report.step("format", || cargo(&["fmt", "--all", "--check"], &[]));
    report.step("lints of libraries and programs", || {
        cargo(&["clippy", "--workspace", "--locked", "--", "-D", "warnings"], &[])
    });
    let mut crates: BTreeSet<String> = named.iter().map(|name| (*name).to_owned()).collect();
    if crates.is_empty() {
        crates = changed(&status());
    }
    crates.insert(TIDY.to_owned());
    if crates.contains("sim") {
        crates.insert(TESTS_OF_SIM.to_owned());
    }
    say(&format!("tests of {}", crates.iter().cloned().collect::<Vec<_>>().join(", ")));
    let packages: Vec<String> = crates.iter().map(|name| format!("--package=pagetide-{name}")).collect();
    let mut arguments = vec!["test", "--no-fail-fast", "--locked"];
    arguments.extend(packages.iter().map(String::as_str));
    report.step("tests of what has changed", || cargo(&arguments, &[]));
    report
}

/// What git says differs from the last commit: a line `XY path` for each file. Nothing where there is no git.
fn status() -> String {
    let mut git = Command::new("git");
    git.args(["status", "--porcelain", "--untracked-files=all"]).current_dir(root());
    git.output().map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default()
}

/// The crates of the files in `status`, without the Python package, whose tests are not cargo's.
fn changed(status: &str) -> BTreeSet<String> {
    let files = status.lines().filter_map(|line| line.get(3..));
    // A file that was moved has two names.
    let names = files.flat_map(|file| file.split(" -> "));
    let crates = names.filter_map(|name| name.trim_matches('"').strip_prefix("crates/")?.split_once('/'));
    crates.map(|(name, _)| name.to_owned()).filter(|name| name != "python").collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_a_new_and_a_moved_file_name_their_crates() {
        let status = " M crates/mm/src/lib.rs\n?? crates/sim/src/new.rs\nR  crates/lab/a.rs -> crates/cli/a.rs\n\
                      M  README.md\n M crates/python/src/lib.rs\n M crates/mm/tests/mm/main.rs\n";
        let expected = ["cli", "lab", "mm", "sim"].map(str::to_owned);
        assert_eq!(changed(status), BTreeSet::from(expected));
        assert!(changed("").is_empty());
    }
}
