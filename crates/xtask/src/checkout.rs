//! Where the repository is, what of it is checked out, and where cargo builds it.

use std::path::{Path, PathBuf};
use std::process::Command;

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
