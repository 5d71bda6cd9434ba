//! The program `pagetide` as cargo builds it, and what it prints.
//!
//! Left out: what the commands check about it, see `determinism.rs` and `docs.rs`.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::checkout::{root, target};
use crate::step::{Outcome, cargo};

/// What `cargo xtask test` builds without optimising for users: all that `cargo test` runs. Fewer packages would have
/// other features of their dependencies, and so compile them once more.
const DEBUG: [&str; 7] = ["build", "--workspace", "--lib", "--bins", "--tests", "--examples", "--locked"];
const RELEASE: [&str; 5] = ["build", "-p", "pagetide-cli", "--release", "--locked"];

/// Builds it as a `debug` or `release` build.
pub(crate) fn build(profile: &str) -> Outcome {
    if profile == "release" { cargo(&RELEASE, &[]) } else { cargo(&DEBUG, &[]) }
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
