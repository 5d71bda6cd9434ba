//! `cargo xtask test full`: everything that `cargo xtask test` does, and what takes hours.
//!
//! The site of documents, the playground in a browser, a debug build, many more random worlds, rows that the model was
//! fitted to, the tables of `docs/cases`, and wrong code put before the tests of `mm`.
//! When all of it has passed, a file below cargo's target folder says of which commit; `cargo xtask test` ends with it.
//! Left out: who else ran it, and where.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::book;
use crate::built;
use crate::checkout::{commit, target};
use crate::determinism;
use crate::mutants;
use crate::playground;
use crate::say::say;
use crate::step::{Outcome, Report, cargo, passed_on};

/// Random worlds of each kind; an ordinary test makes a twentieth of them.
const WORLDS: &str = "5000";

/// Small worlds of the model alone that an ordinary test checks: a quarter of a minute on two CPUs.
const CHECKED: &str = "1..500";
/// Those that follow.
const MORE_CHECKED: &str = "501..20000";

/// Checks those of an ordinary test.
pub(crate) fn check_worlds() -> Outcome {
    check(CHECKED)
}

/// Runs worlds in the release build, which says how far it is and what it finds.
fn check(seeds: &str) -> Outcome {
    let arguments = ["worlds", "--on", "sim", "--check", "--seeds", seeds];
    let mut worlds = Command::new(built::binary("release"));
    worlds.args(arguments);
    match passed_on(worlds, |_| ()) {
        Ok(status) if status.success() => Outcome::Passed(Default::default()),
        Ok(status) => Outcome::Failed(format!("`pagetide {}`: {status}", arguments.join(" "))),
        Err(error) => error.into(),
    }
}

/// The steps behind those of an ordinary test.
pub(crate) const STEPS: usize = 9;

/// Adds them to `report`, and notes it if all have passed.
pub(crate) fn test(report: &mut Report) {
    report.step("a site of the documents", book::make);
    report.step("the playground in a browser", playground::test);
    // It says that a bench still works, not how fast it is.
    report.step("benches, once each", || {
        cargo(&["test", "--workspace", "--bench", "*", "--locked", "--", "--test"], &[])
    });
    report.step("determinism of a debug build", || determinism::check(&["debug"]));
    report.step("many worlds of the model", || check(MORE_CHECKED));
    report.step("many worlds", || {
        let arguments = ["test", "--package=pagetide-stories", "--release", "--locked", "every_"];
        cargo(&arguments, &[("PAGETIDE_WORLDS", WORLDS)])
    });
    report.step("tuned rows", || {
        let run = ["run", "--package=pagetide-evidence", "--release", "--locked", "--", "hits", "--check"];
        cargo(&run, &[])
    });
    report.step("cases", || {
        let run = ["run", "--package=pagetide-evidence", "--release", "--locked", "--", "cases", "--check"];
        built::then(|| cargo(&run, &[]))
    });
    report.step("mutants", || mutants::run(&[]));
    if report.all_passed() {
        let file = file();
        let noted = fs::create_dir_all(target()).and_then(|()| fs::write(&file, commit()));
        if let Err(error) = noted {
            say(&format!("{}: {error}", file.display()));
        }
    }
}

/// Says when it was last whole.
pub(crate) fn tell_last() {
    match fs::read_to_string(file()) {
        Ok(commit) => say(&format!("`cargo xtask test full` last passed here at {}", commit.trim())),
        Err(_) => say("`cargo xtask test full` has not passed here yet"),
    }
}

fn file() -> PathBuf {
    target().join("full-test-passed")
}
