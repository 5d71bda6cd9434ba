//! `cargo xtask dist`: what people install, below `target/dist`; the same bytes from every checkout of a commit.
//!
//! | file | what it is |
//! |---|---|
//! | `pagetide-VERSION-x86_64-linux.tar.gz` | a static program, man pages, completions; `dist/program.rs` |
//! | `pagetide_VERSION_amd64.deb` | the same for Debian and Ubuntu; `dist/packages.rs` |
//! | `pagetide-VERSION-*.whl`, `pagetide-VERSION.tar.gz` | the Python package and its source; `dist/python.rs` |
//! | `*.crate` | crates for crates.io; `dist/crates.rs` |
//! | `pagetide-VERSION.cdx.json` | what is in the program (CycloneDX); `dist/bill.rs` |
//! | `SHA256SUMS` | of all of them |
//!
//! What cannot be made here is skipped aloud. `--check` holds the crates to `deny.toml` and to the last release,
//! compiles them from their packages, makes everything twice and compares (`dist/check.rs`), and installs the Python
//! packages. Left out: signatures, and sending anything anywhere.

mod bill;
mod check;
mod crates;
mod packages;
mod program;
mod python;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::checkout::{root, target};
use crate::step::{Outcome, Report};

/// The version of everything in the workspace.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Makes all of it, or checks that it comes out the same twice.
pub(crate) fn run(arguments: &[&str]) -> Report {
    let mut report = Report::new(if arguments.is_empty() { 7 } else { CHECKS });
    match arguments {
        [] => make(&mut report),
        ["--check"] => check(&mut report),
        _ => report.step("dist", || Outcome::Failed("it takes `--check` or nothing".to_owned())),
    }
    report
}

/// The steps of [`check()`].
pub(crate) const CHECKS: usize = 5;

/// Licences, crates that compile from their packages and keep what they promised, two builds that are equal, and Python
/// packages that can be installed.
pub(crate) fn check(report: &mut Report) {
    report.step("licences and sources of all crates", bill::check);
    report.step("crates from their packages", || outcome(crates::verify()));
    report.step("promises of the crates", crates::keep_promises);
    report.step("what people install, twice", check::run);
    report.step("Python packages, installed", || python::install(&check::made()));
}

fn make(report: &mut Report) {
    report.step("the program, man pages, completions", || outcome(begin().and_then(|()| program::build())));
    report.step("bill of materials and licences", || outcome(bill::make()));
    report.step("archive", || outcome(packages::archive()));
    report.step("Debian package", packages::debian);
    report.step("Python packages", python::make);
    report.step("crates", || outcome(crates::package()));
    report.step("checksums", || outcome(checksums()));
}

/// An empty folder for what is made.
fn begin() -> Result<(), String> {
    let folder = folder();
    if folder.exists() {
        fs::remove_dir_all(&folder).map_err(|error| told(&folder, &error))?;
    }
    fs::create_dir_all(&folder).map_err(|error| told(&folder, &error))
}

fn checksums() -> Result<(), String> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder()).map_err(|error| told(&folder(), &error))?.flatten() {
        if entry.path().is_file() {
            names.push(entry.file_name());
        }
    }
    names.sort();
    let sums = output(Command::new("sha256sum").args(names).current_dir(folder()))?;
    write(&folder().join("SHA256SUMS"), sums)
}

/// Where results are.
fn folder() -> PathBuf {
    root().join(target()).join("dist")
}

/// Where they are put together.
fn workshop(name: &str) -> PathBuf {
    root().join(target()).join("dist-parts").join(name)
}

/// The time that everything is said to be made at, in seconds since 1970: that of the commit.
fn epoch() -> Result<String, String> {
    if let Ok(epoch) = std::env::var("SOURCE_DATE_EPOCH") {
        return Ok(epoch);
    }
    let time = output(Command::new("git").args(["log", "-1", "--format=%ct"]).current_dir(root()))?;
    Ok(String::from_utf8_lossy(&time).trim().to_owned())
}

/// Flags of the compiler for code that does not tell where it was compiled, as cargo takes them from the environment.
/// They are the same whatever cargo has fetched. Symbols go by a flag, too: of a package with a level of its own, cargo
/// takes no more than debug information away.
fn rust_flags() -> String {
    let crates = cargo_home().join("registry/src");
    let paths = [(root(), "pagetide"), (crates, "crates")];
    let paths = paths.map(|(path, name)| format!("--remap-path-prefix={}={name}", path.display()));
    ["-Cstrip=symbols", &paths[0], &paths[1]].join("\u{1f}")
}

/// Where cargo keeps what it fetched.
fn cargo_home() -> PathBuf {
    let named = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    named
        .or_else(|| std::env::home_dir().map(|home| home.join(".cargo")))
        .expect("cargo has a home where it runs")
}

fn cargo_command() -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(root()).stdin(Stdio::null());
    cargo
}

/// Whether cargo has this command.
fn has_subcommand(name: &str) -> bool {
    let asked = cargo_command().args([name, "--version"]).stderr(Stdio::null()).output();
    asked.is_ok_and(|output| output.status.success())
}

/// Runs a command to its successful end, with its output passed on.
fn done(command: &mut Command) -> Result<(), String> {
    match command.stdin(Stdio::null()).status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{command:?}: {status}")),
        Err(error) => Err(format!("{command:?}: {error}")),
    }
}

/// Runs a command to its successful end and returns what it printed.
fn output(command: &mut Command) -> Result<Vec<u8>, String> {
    match command.stdin(Stdio::null()).stderr(Stdio::inherit()).output() {
        Ok(output) if output.status.success() => Ok(output.stdout),
        Ok(output) => Err(format!("{command:?}: {}", output.status)),
        Err(error) => Err(format!("{command:?}: {error}")),
    }
}

fn write(path: &Path, content: impl AsRef<[u8]>) -> Result<(), String> {
    let folder = path.parent().expect("files are in folders");
    fs::create_dir_all(folder).and_then(|()| fs::write(path, content)).map_err(|error| told(path, &error))
}

fn copy(from: &Path, to: &Path) -> Result<(), String> {
    let folder = to.parent().expect("files are in folders");
    let copied = fs::create_dir_all(folder).and_then(|()| fs::copy(from, to));
    copied.map(drop).map_err(|error| format!("{} to {}: {error}", from.display(), to.display()))
}

fn told(path: &Path, error: &std::io::Error) -> String {
    format!("{}: {error}", path.display())
}

fn outcome(result: Result<(), String>) -> Outcome {
    match result {
        Ok(()) => Outcome::Passed(Default::default()),
        Err(why) => Outcome::Failed(why),
    }
}
