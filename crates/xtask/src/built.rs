//! The program `pagetide` as cargo builds it, and what it prints.
//!
//! Left out: what the commands check about it, see `determinism.rs` and `docs.rs`.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::checkout::{root, target};
use crate::step::{Outcome, cargo};

/// What users run and all that tests run, in one build: tests are of what users get. The program alone would have other
/// features of its dependencies, and so compile them once more.
const EVERYTHING: [&str; 8] =
    ["build", "--workspace", "--lib", "--bins", "--tests", "--examples", "--release", "--locked"];
const PROGRAM: [&str; 4] = ["build", "-p", "pagetide-cli", "--locked"];

/// Builds the program and all tests, as a release build.
pub(crate) fn everything() -> Outcome {
    cargo(&EVERYTHING, &[])
}

/// Builds the program as a release build, and goes on with `run`.
pub(crate) fn then(run: impl FnOnce() -> Outcome) -> Outcome {
    match build("release") {
        Outcome::Passed(_) => run(),
        failed => failed,
    }
}

/// Builds the program as a `debug` or `release` build.
pub(crate) fn build(profile: &str) -> Outcome {
    let how = if profile == "release" { &["--release"][..] } else { &[] };
    cargo(&[&PROGRAM, how].concat(), &[])
}

/// Runs it to a successful end and returns what it printed on standard output.
pub(crate) fn output(
    profile: &str,
    arguments: impl IntoIterator<Item = impl AsRef<OsStr>>,
) -> Result<Vec<u8>, String> {
    let mut command = Command::new(binary(profile));
    let output = command
        .args(arguments)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| format!("{command:?}: {error}"))?;
    if !output.status.success() {
        return Err(format!("{command:?}: {}", output.status));
    }
    Ok(output.stdout)
}

/// The program as a `debug` or `release` build.
pub(crate) fn binary(profile: &str) -> PathBuf {
    root().join(target()).join(profile).join("pagetide")
}
