//! The program `pagetide` as cargo builds it, and what it prints.
//!
//! Left out: what the commands check about it, see `determinism.rs` and `docs.rs`.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::step::{Outcome, cargo};

/// What `cargo xtask test` builds without optimising for users. Fewer packages would have other features
/// of their dependencies, and so compile them once more.
pub(crate) const DEBUG: [&str; 4] = ["build", "--workspace", "--all-targets", "--locked"];
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

/// The root of the repository.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("crates/xtask is two deep").to_owned()
}

/// Where cargo builds: where `CARGO_TARGET_DIR` says, `target` when it does not.
pub(crate) fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// What is checked out: `1234abcd of 2026-11-23`.
pub(crate) fn commit() -> String {
    let git = |arguments: &[&str]| {
        let output = Command::new("git").args(arguments).current_dir(root()).output();
        output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned()).unwrap_or_default()
    };
    let changed = if git(&["status", "--porcelain"]).is_empty() { "" } else { ", with changes" };
    format!("{}{changed}\n", git(&["log", "-1", "--format=%h of %cs"]))
}

/// The program as a `debug` or `release` build.
pub(crate) fn binary(profile: &str) -> PathBuf {
    root().join(target()).join(profile).join("pagetide")
}
