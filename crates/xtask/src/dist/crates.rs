//! The crates for crates.io, as cargo packages them.
//!
//! `cargo xtask dist --check` compiles them from their packages, and asks cargo-semver-checks whether they break those
//! who use the last release: the newest tag `vVERSION` before what is checked out. Left out: publishing.

use std::fs;
use std::process::{Command, Stdio};

use super::{cargo_command, copy, done, folder, has_subcommand, outcome, told};
use crate::checkout::{root, target};
use crate::say::say;
use crate::step::Outcome;

/// What is marked for others, from the bottom.
const CRATES: [&str; 8] = ["units", "language", "mm", "kernel", "trace", "policy", "workload", "sim"];

/// Packs them.
pub(super) fn package() -> Result<(), String> {
    pack(&["--no-verify"])?;
    let packages = root().join(target()).join("package");
    for entry in fs::read_dir(&packages).map_err(|error| told(&packages, &error))?.flatten() {
        if entry.path().extension().is_some_and(|is| is == "crate") {
            copy(&entry.path(), &folder().join(entry.file_name()))?;
        }
    }
    Ok(())
}

/// Packs them and compiles each from its package.
pub(super) fn verify() -> Result<(), String> {
    pack(&[])
}

/// Holds them to the last release: a break needs another version.
pub(super) fn keep_promises() -> Outcome {
    let Some(release) = last_release() else {
        say("there is no release before this, so none that could be broken");
        return Outcome::Passed(Default::default());
    };
    if !has_subcommand("semver-checks") {
        let why = "there is no cargo-semver-checks: `cargo install --locked cargo-semver-checks`";
        return Outcome::Skipped(why.to_owned());
    }
    let mut cargo = cargo_command();
    cargo.args(["semver-checks", "--baseline-rev", &release]);
    outcome(done(cargo.args(CRATES.map(|name| format!("--package=pagetide-{name}")))))
}

fn last_release() -> Option<String> {
    let mut git = Command::new("git");
    git.args(["describe", "--tags", "--abbrev=0", "--match", "v[0-9]*"]).current_dir(root());
    let found = git.stderr(Stdio::null()).output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8_lossy(&found.stdout).trim().to_owned())
}

/// What is not committed is packed, too: `dist --check` is where it would show.
fn pack(options: &[&str]) -> Result<(), String> {
    let mut cargo = cargo_command();
    cargo.args(["package", "--locked", "--allow-dirty"]).args(options);
    done(cargo.args(CRATES.map(|name| format!("--package=pagetide-{name}"))))
}
