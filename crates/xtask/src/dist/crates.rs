//! The crates for crates.io, as cargo packages them.
//!
//! `cargo xtask dist --check` compiles them from their packages. Left out: publishing, and whether a version breaks
//! those who use the last one, as there is none yet.

use std::fs;

use super::{cargo_command, copy, done, folder, told};
use crate::checkout::{root, target};

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

/// What is not committed is packed, too: `dist --check` is where it would show.
fn pack(options: &[&str]) -> Result<(), String> {
    let mut cargo = cargo_command();
    cargo.args(["package", "--locked", "--allow-dirty"]).args(options);
    done(cargo.args(CRATES.map(|name| format!("--package=pagetide-{name}"))))
}
