//! The program as one file that runs on any x86-64 Linux, and what is generated from its command line.
//!
//! It is linked to musl, statically, so that a kernel can start it as its init where there is nothing else. Left out:
//! other processors.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use super::{cargo_command, done, rust_flags, told, workshop};
use crate::checkout::{root, target};
use crate::say::say;

/// What it is compiled for.
pub(super) const TARGET: &str = "x86_64-unknown-linux-musl";

/// More than this is not sent to a guest in a moment.
const SIZE_MAX: u64 = 25 << 20;

/// Builds it, generates the pages, and runs it once.
pub(super) fn build() -> Result<(), String> {
    // At once, as what they share would be compiled twice otherwise.
    let mut cargo = cargo_command();
    cargo.args(["build", "--profile=packed", "--locked", "--package=pagetide-cli", "--target", TARGET]);
    done(cargo.args(["--bin=pagetide", "--example=pages"]).env("CARGO_ENCODED_RUSTFLAGS", rust_flags()))?;
    let size = fs::metadata(binary()).map_err(|error| told(&binary(), &error))?.len();
    say(&format!("{}: {:.1} MB", binary().display(), size as f64 / 1e6));
    if size > SIZE_MAX {
        return Err(format!("the program has {size} bytes, more than {SIZE_MAX}"));
    }
    done(Command::new(binary().with_file_name("examples").join("pages")).arg(workshop("pages")))?;
    done(Command::new(binary()).args(["compare", "hot-and-stream", "--quiet", "--format", "csv"]))
}

/// Where it is then.
pub(super) fn binary() -> PathBuf {
    root().join(target()).join(TARGET).join("packed").join("pagetide")
}
