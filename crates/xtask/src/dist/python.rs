//! The Python package: a wheel for each C library of Linux, and the source, by maturin.
//!
//! One wheel serves every CPython from 3.10 on (abi3). Zig links both, so that they run where an old C library is:
//! glibc from 2.17 on, musl from 1.2 on. maturin and Zig go into a virtual environment below cargo's target folder.
//! [`install()`] tries both as a person does. Left out: other processors, PyPy, and a try of the wheel for musl.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::{VERSION, done, epoch, folder, outcome, program, rust_flags, workshop};
use crate::checkout::{root, target};
use crate::step::Outcome;

/// What makes them: another version may make other bytes.
const TOOLS: [&str; 2] = ["maturin==1.16.0", "ziglang==0.15.2"];
const WHEELS: [(&str, &str); 2] =
    [("x86_64-unknown-linux-gnu", "manylinux2014"), (program::TARGET, "musllinux_1_2")];

/// Makes wheels and source, where the tools can be had.
pub(super) fn make() -> Outcome {
    let environment = root().join(target()).join("tools").join("wheels");
    let python = environment.join("bin").join("python");
    if !python.is_file() {
        let made =
            Command::new("python3").args(["-m", "venv"]).arg(&environment).stdin(Stdio::null()).status();
        if !made.is_ok_and(|status| status.success()) {
            return Outcome::Skipped("`python3 -m venv` does not work".to_owned());
        }
    }
    let install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
    if let Err(why) = done(Command::new(&python).args(install).args(TOOLS)) {
        return Outcome::Skipped(format!("maturin and Zig could not be installed: {why}"));
    }
    outcome(make_all(&python))
}

/// A run from Python.
const TRY: &str =
    "import pagetide; pagetide.run('hot-and-stream', mem='128M', params={'hot': '8M', 'stream': '64M'})";

/// Installs what is in `made`, each into an environment of its own: the wheel without a look elsewhere, and the source,
/// which is compiled into cargo's target folder without optimization.
pub(super) fn install(made: &Path) -> Outcome {
    let source = made.join(format!("pagetide-{VERSION}.tar.gz"));
    if !source.is_file() {
        return Outcome::Skipped("no Python package was made".to_owned());
    }
    let wheel = ["--no-index", "--only-binary=:all:", "--find-links"].map(OsStr::new);
    let wheel = [&wheel[..], &[made.as_os_str(), OsStr::new("pagetide")]].concat();
    outcome(try_out("wheel", &wheel).and_then(|()| try_out("source", &[source.as_os_str()])))
}

fn try_out(name: &str, what: &[&OsStr]) -> Result<(), String> {
    let environment = workshop(&format!("python-{name}"));
    done(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&environment))?;
    let python = environment.join("bin").join("python");
    let mut pip = Command::new(&python);
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-cache-dir"]).args(what);
    pip.env("CARGO_TARGET_DIR", root().join(target())).env("MATURIN_PEP517_ARGS", "--profile dev");
    done(&mut pip)?;
    done(Command::new(&python).args(["-c", TRY]).current_dir(&environment))
}

fn make_all(python: &Path) -> Result<(), String> {
    done(maturin(python, &["sdist"])?.arg("--out").arg(folder()))?;
    for (target, system) in WHEELS {
        let build = ["build", "--profile", "packed", "--locked", "--zig", "--target", target];
        done(maturin(python, &build)?.args(["--compatibility", system, "--out"]).arg(folder()))?;
    }
    Ok(())
}

fn maturin(python: &Path, arguments: &[&str]) -> Result<Command, String> {
    let programs = python.parent().map(PathBuf::from).unwrap_or_default();
    let others = std::env::var("PATH").unwrap_or_default();
    let mut maturin = Command::new(programs.join("maturin"));
    maturin.args(arguments).current_dir(root()).env("PATH", format!("{}:{others}", programs.display()));
    maturin.env("CARGO_ENCODED_RUSTFLAGS", rust_flags()).env("SOURCE_DATE_EPOCH", epoch()?);
    Ok(maturin)
}
